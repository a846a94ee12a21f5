//! Rewriting the journal without what is done.
//!
//! The journal grows with every URL that is met and every one that is done. When it is twice as
//! large as it would have to be, and not small, what still matters is written into a new one:
//! hosts, URLs that wait or are under way, and what is known of hosts and sites. URLs keep their
//! order, so each moves towards the beginning, and queues that hold places in ascending order still
//! do. The new journal counts from the moment it is renamed; a crash before that leaves the old
//! one.
//!
//! *Cost.* No more than one URL is rewritten for each that is done, so the time of a crawl grows by
//! a constant factor. The crawl stands still meanwhile, about as long as a start takes: a second
//! for a million URLs that wait.

use super::*;
use crate::archive::Extent;
use crate::frontier::{Host, Rules};
use crate::journal::Event;
use crate::robots;

/// Bytes of a frame of the new journal.
const FRAME: usize = 4 << 20;

impl Crawl {
    /// Rewrites the journal if it has become too long, which is looked at right after a commit.
    pub(super) fn compact_if_due(&mut self) -> Result<(), Error> {
        if self.journal.n_bytes() < self.compact_at || self.journal.pending() > 0 {
            return Ok(());
        }
        // As far as URLs tell, which are nearly all of it.
        let share = self.frontier.n_queued as f64 / self.n_journal_urls.max(1) as f64;
        let n_needed = (self.journal.n_bytes() as f64 * share.min(1.0)) as u64;
        self.look_again_beyond(n_needed);
        if self.journal.n_bytes() < self.compact_at {
            return Ok(());
        }
        // What the old journal knew and the new one does not is in the seen set alone, and no crash
        // may take back what the new one says of the archive.
        self.sync()?;
        self.compact()?;
        self.n_journal_urls = self.frontier.n_queued;
        self.look_again_beyond(self.journal.n_bytes());
        Ok(())
    }

    /// The journal may become twice as long as it has to be.
    fn look_again_beyond(&mut self, n_needed: u64) {
        self.compact_at = self.settings().archive.compact.max(2 * n_needed);
    }

    fn compact(&mut self) -> Result<(), Error> {
        let extent = self.archive.flush()?;
        let mut others = self.other_places();
        let mut new = self.journal.successor()?;
        let hosts = &mut self.frontier.hosts;
        self.journal.replay(|event, place| {
            match event {
                Event::Host(_) => {
                    new.push(event);
                }
                Event::Url(queued) => {
                    let to = new.next_place();
                    if hosts[queued.host as usize].replace(queued.priority, place, to) {
                        new.push(event);
                    } else if let Some(other) = others.get_mut(&place) {
                        *other = new.push(event);
                    }
                }
                _ => {}
            }
            write_if_full(&mut new, extent)
        })?;
        self.push_state(&mut new, extent, &others)?;
        self.journal.give_way(new)?;
        self.move_others(&others);
        Ok(())
    }

    /// Places that are not in the queue of their host.
    fn other_places(&mut self) -> HashMap<Place, Place> {
        let hosts = self.frontier.hosts.iter_mut();
        let others = hosts.flat_map(|host| host.others()).map(|place| *place);
        let open = self.open.values().copied();
        others.chain(open).map(|place| (place, place)).collect()
    }

    fn move_others(&mut self, moved: &HashMap<Place, Place>) {
        let hosts = self.frontier.hosts.iter_mut();
        let others = hosts.flat_map(|host| host.others());
        for place in others.chain(self.open.values_mut()) {
            *place = moved.get(place).copied().unwrap_or(*place);
        }
    }

    /// Writes what is known of sites and hosts, the counters, and how far the archives go.
    fn push_state(
        &mut self,
        new: &mut Journal,
        extent: Extent,
        moved: &HashMap<Place, Place>,
    ) -> Result<(), Error> {
        let mut told = vec![false; self.frontier.sites.len()];
        let (now, date) = (self.now(), (self.seams.clock)());
        for (id, host) in (0..).zip(&self.frontier.hosts) {
            if !std::mem::replace(&mut told[host.site as usize], true) {
                let site = &self.frontier.sites[host.site as usize];
                // Those under way count once more when they are done, if this is read again by
                // then.
                let n = site.n_pages;
                new.push(Event::Pages { host: id, n });
                for &site in &site.referrers {
                    new.push(Event::Referrer { host: id, site });
                }
            }
            push_host(new, id, host, now, date);
            push_retries(new, id, host, moved);
            push_lost(new, id, host, moved);
            write_if_full(new, extent)?;
        }
        let robots_extent = self.robots_archive.flush()?;
        self.standing.push(new);
        new.push(Event::Counters(&self.counters.to_text()));
        new.push(robots_extent.robots_event());
        new.push(extent.event());
        Ok(())
    }
}

/// What a restart has to know of a host.
fn push_host(new: &mut Journal, id: HostId, host: &Host, now: Duration, date: Duration) {
    if !host.pace.asked_delay.is_zero() {
        let millis = host.pace.asked_delay.as_millis() as u64;
        new.push(Event::Delay { host: id, millis });
    }
    // Who could not be reached may be there when the crawl is started again.
    if host.next > now && host.unreachable_since == 0 && !host.is_lost {
        let millis = (date + (host.next - now)).as_millis() as u64;
        new.push(Event::NotBefore { host: id, millis });
    }
    if host.unreachable_since > 0 {
        let since = host.unreachable_since;
        new.push(Event::Unreachable { host: id, since });
    }
    if let Rules::Known(rules, until) = &host.rules {
        let age = robots::MAX_AGE.saturating_sub(until.saturating_sub(now));
        let date = date.saturating_sub(age).as_secs();
        let text = &rules.to_text();
        if text.len() <= super::robots::MAX_KEPT_RULES {
            new.push(Event::Rules {
                host: id,
                date,
                text,
            });
        }
    }
}

/// How often URLs were tried, at the places that they have in the new journal.
fn push_retries(new: &mut Journal, id: HostId, host: &Host, moved: &HashMap<Place, Place>) {
    for Turn { place, n_tries } in host.retries() {
        if let Some(&place) = moved.get(&place) {
            let host = id;
            new.push(Event::Tried {
                host,
                place,
                n_tries,
            });
        }
    }
}

/// What is lost for now at a host, by the places in the new journal.
fn push_lost(new: &mut Journal, id: HostId, host: &Host, moved: &HashMap<Place, Place>) {
    let all = host.is_lost.then_some(0);
    let some = host
        .lost
        .iter()
        .filter_map(|place| moved.get(place).copied());
    for place in all.into_iter().chain(some) {
        new.push(Event::Lost { host: id, place });
    }
}

/// Ends a frame that is long enough. Each says how far the archive goes, as frames do.
fn write_if_full(new: &mut Journal, extent: Extent) -> Result<(), Error> {
    if new.pending() < FRAME {
        return Ok(());
    }
    new.push(extent.event());
    new.write()
}
