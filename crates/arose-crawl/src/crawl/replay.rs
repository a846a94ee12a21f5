//! Replays the journal: applies each event to the crawl and its hosts.
//!
//! *Question.* The journal has events of ten million hosts, of which a hundred thousand may be in
//! memory. How can it be replayed in little memory and time? *Idea.* Hosts are kept in memory up to
//! their maximum number, and their events are applied at once. The events of the other hosts are
//! first sorted by host ([`ByHost`]). Then these hosts are built one after the other and go to the
//! shelf. Sites and the tables of all hosts are in memory anyway.

use arose::digest::digest64;

use super::recrawl::again_name;
use super::restore::Restored;
use super::store::JOURNAL;
use super::*;
use crate::archive::{Extent, Part};
use crate::fingerprint::Fingerprint;
use crate::frontier::{Host, HostRules, QueueEntry, Tag, nameless};
use crate::guard::Candidate;
use crate::journal::{ByHost, Decoder, Event, Frame, PART, Queued, Told, push_number};
use crate::pages::{PageId, Record};

/// Queued URLs that are no longer to be requested, in a few bytes each.
#[derive(Debug, Default)]
pub(super) struct Withdrawn(Vec<u8>);

impl Withdrawn {
    fn push(&mut self, host: HostId, place: Place) {
        push_number(&mut self.0, host.into());
        push_number(&mut self.0, place);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (HostId, Place)> {
        let mut reader = Decoder::new(&self.0);
        std::iter::from_fn(move || Some((reader.number()? as HostId, reader.number()?)))
    }
}

impl Restored {
    /// Keeps at most this many hosts in memory, and the others in files of a directory that have a
    /// name only briefly.
    pub(super) fn limit(&mut self, folder: &Path, name: &str, limit: usize) -> Result<(), Error> {
        self.frontier.hosts.limit(folder, name, limit)?;
        let path = folder.join(name);
        self.by_host = ByHost::in_file(path.clone(), nameless(&path)?);
        Ok(())
    }

    /// Applies the events of a frame.
    pub(super) fn take(&mut self, frame: &Frame<'_>) -> Result<(), Error> {
        let is_fresh = frame.mark > self.seen_mark;
        for &(event, place) in &frame.events {
            self.note_closed(&event);
            match (event, event.host()) {
                (Event::Host(origin), _) => self.meet(origin)?,
                (_, Some(host)) => self.tell(Told {
                    host: self.check(host)?,
                    event,
                    place,
                    is_fresh,
                })?,
                (_, None) => self.take_general(event)?,
            }
        }
        Ok(())
    }

    /// Builds the hosts that are not in memory, and removes unapproved URLs from the queues.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        for (id, places) in self.take_unapproved() {
            if let Some(mut host) = self.frontier.hosts.lend(id) {
                self.withdraw(id, &mut host, &places);
                self.frontier.hosts.set(id, host);
            }
        }
        let by_host = std::mem::take(&mut self.by_host);
        for part in 0..by_host.n_parts() {
            self.make_part(&by_host, part)?;
        }
        Ok(())
    }

    fn make_part(&mut self, by_host: &ByHost, part: usize) -> Result<(), Error> {
        let first = (part * PART) as HostId;
        let mut hosts: Vec<Option<Host>> = Vec::new();
        hosts.resize_with(PART, || None);
        by_host.each(part, |told| {
            let host = &mut hosts[(told.host - first) as usize];
            match (told.event, host) {
                (Event::Host(origin), host) => {
                    let site = self.frontier.hosts.site(told.host);
                    *host = Some(self.frontier.new_host(origin, site));
                    Ok(())
                }
                (_, Some(host)) => self.apply(host, &told),
                (_, None) => Err(unmet()),
            }
        })?;
        for (id, places) in self.take_unapproved() {
            if let Some(host) = &mut hosts[(id - first) as usize] {
                self.withdraw(id, host, &places);
            }
        }
        for (id, host) in (first..).zip(&hosts) {
            if let Some(host) = host {
                self.frontier.hosts.fill(id, host)?;
            }
        }
        Ok(())
    }

    /// Returns the URLs that are not approved, by host and in ascending order.
    fn take_unapproved(&mut self) -> Vec<(HostId, Vec<Place>)> {
        let mut all = std::mem::take(&mut self.unapproved);
        all.sort_unstable();
        let chunks = all.chunk_by(|a, b| a.0 == b.0);
        let places = |chunk: &[(HostId, Place)]| chunk.iter().map(|&(_, place)| place).collect();
        chunks.map(|chunk| (chunk[0].0, places(chunk))).collect()
    }

    fn withdraw(&mut self, id: HostId, host: &mut Host, places: &[Place]) {
        for place in host.remove_all(places) {
            self.withdrawn.push(id, place);
        }
    }

    fn check(&self, host: HostId) -> Result<HostId, Error> {
        match (host as usize) < self.frontier.hosts.len() {
            true => Ok(host),
            false => Err(unmet()),
        }
    }

    fn note_closed(&mut self, event: &Event<'_>) {
        self.is_closed = match event {
            Event::Closed => true,
            Event::Archive { .. }
            | Event::RobotsArchive { .. }
            | Event::Counters(_)
            | Event::Seen { .. }
            | Event::Table { .. }
            | Event::Contents { .. } => self.is_closed,
            _ => false,
        };
    }

    /// Adds a host. A host once admitted stays, even if the settings have changed.
    fn meet(&mut self, origin: &str) -> Result<(), Error> {
        let url = NormalUrl::from_parts(origin, "/");
        let url = url.ok_or_else(|| Error::damaged(Path::new(JOURNAL), "a host has no name"))?;
        let hash = Fingerprint::of(&url).host;
        if self.frontier.hosts.has_room() {
            self.frontier.restore_host(&url, hash);
            return Ok(());
        }
        let site = self.frontier.admit_host(&url);
        let host = self.frontier.hosts.push_empty(site, hash);
        self.by_host.push(&Told {
            host,
            event: Event::Host(origin),
            place: 0,
            is_fresh: false,
        })
    }

    /// Applies an event that does not belong to a host.
    fn take_general(&mut self, event: Event<'_>) -> Result<(), Error> {
        match event {
            Event::RobotsArchive { .. } | Event::Archive { .. } => match Extent::of(&event) {
                Some((extent, Part::Pages)) => self.extent = extent,
                Some((extent, Part::Robots)) => self.robots_extent = extent,
                None => {}
            },
            Event::Counters(text) => {
                let counters = Counters::from_text(text);
                let unread = || Error::damaged(Path::new(JOURNAL), "a counter has no number");
                self.counters = counters.ok_or_else(unread)?;
            }
            Event::Doublings { n } => {
                let n = n.try_into().unwrap_or(u32::MAX);
                self.frontier.set_doublings(n);
            }
            Event::UrlRule { key, text } => self.url_rules.set(key, text),
            Event::UrlContents(pairs) => self.url_rules.remember(pairs),
            Event::Seen { n_urls } => self.standing.n_seen = n_urls,
            Event::Table { n_pages } => self.standing.n_pages = n_pages,
            Event::Visited { page, record } => {
                let record = record.try_into().ok().and_then(Record::from_bytes);
                let unread = || Error::damaged(Path::new(JOURNAL), "a page has no record");
                self.visited.insert(page, record.ok_or_else(unread)?);
            }
            Event::Contents { row, log, bytes } => {
                self.standing.row = row;
                self.standing.committed = arose_dedup::index::Committed {
                    log,
                    n_bytes: bytes,
                };
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies an event of a host, now or when the host is built.
    fn tell(&mut self, told: Told<'_>) -> Result<(), Error> {
        let site = self.frontier.hosts.site(told.host);
        match told.event {
            Event::Trust { trust, .. } => {
                self.frontier.set_trust(site, trust);
                return Ok(());
            }
            Event::Pages { n, .. } => {
                self.frontier.count_pages(site, n);
                return Ok(());
            }
            Event::Untrusted { host } => {
                self.untrusted.insert(host);
                return Ok(());
            }
            Event::Signals { host, quality } => {
                self.qualities.insert(host, quality);
                return Ok(());
            }
            _ => {}
        }
        let Some(mut host) = self.frontier.hosts.lend(told.host) else {
            return self.by_host.push(&told);
        };
        let applied = self.apply(&mut host, &told);
        self.frontier.hosts.set(told.host, host);
        applied
    }

    /// Applies an event to its host.
    fn apply(&mut self, host: &mut Host, told: &Told<'_>) -> Result<(), Error> {
        let n_deferred = host.deferred.len();
        self.apply_to(host, told);
        if host.deferred.len() != n_deferred {
            self.deferred.set(told.host, host);
        }
        Ok(())
    }

    fn apply_to(&mut self, host: &mut Host, told: &Told<'_>) {
        match told.event {
            Event::Url(queued) => self.queue(host, &queued, told),
            Event::Again { page, queued } => self.queue_again(host, page, &queued, told),
            Event::Deferred { place, tag, .. } => {
                let tag = Tag::from_number(tag);
                self.frontier.n_queued -= u64::from(host.defer(place, tag));
            }
            Event::Tried { place, n_tries, .. } => {
                let is_deferred = host.deferred.contains_key(&place);
                self.frontier.n_queued += u64::from(is_deferred);
                if let Some(turn) = host.remove(place) {
                    host.put_back(Turn { n_tries, ..turn });
                }
            }
            Event::Dropped { place, .. } => {
                if self.again.remove(&place).is_some() {
                    self.frontier.end_again(told.host);
                }
                let n_removed = u64::from(host.remove(place).is_some());
                self.frontier.n_queued -= n_removed;
            }
            Event::Done { place, .. } => {
                let n_removed = u64::from(host.remove(place).is_some());
                self.frontier.n_queued -= n_removed;
                self.frontier.count_pages(host.site, n_removed);
            }
            Event::Delay { millis, .. } => {
                host.pace.asked_delay = Duration::from_millis(millis);
                self.rest(host, Duration::ZERO);
            }
            Event::NotBefore { millis, .. } => self.rest(host, Duration::from_millis(millis)),
            Event::Weight { place, weight, .. } => host.set_weight(place, weight),
            Event::Rules { date, text, .. } => self.keep_rules(host, date, text),
            Event::Unreachable { since, .. } => {
                host.unreachable_since = since;
                host.rules = HostRules::Unknown;
            }
            Event::Lost { place, .. } => match place {
                0 => host.is_lost = true,
                _ => host.lose(place),
            },
            Event::Found { .. } => host.forgive(),
            _ => {}
        }
    }

    fn queue(&mut self, host: &mut Host, queued: &Queued<'_>, told: &Told<'_>) {
        self.n_urls += 1;
        self.frontier.n_queued += 1;
        let tag = Tag::of(digest64(queued.rest.as_bytes()));
        let entry = QueueEntry::new(tag, told.place, queued.weight, queued.class);
        host.push(entry, queued.is_last);
        if self.guard.is_none() && !told.is_fresh {
            return;
        }
        let url = NormalUrl::from_parts(&host.origin, queued.rest);
        if !self.is_approved(url.as_ref(), queued) {
            self.unapproved.push((told.host, told.place));
        }
        self.unseen.extend(url.filter(|_| told.is_fresh));
    }

    fn queue_again(&mut self, host: &mut Host, page: PageId, queued: &Queued<'_>, told: &Told<'_>) {
        self.frontier.n_queued += 1;
        self.frontier.begin_again(told.host);
        self.again.insert(told.place, page);
        let tag = Tag::of(again_name(digest64(queued.rest.as_bytes())));
        let entry = QueueEntry::new(tag, told.place, queued.weight, queued.class);
        host.push_again(entry);
        let url = NormalUrl::from_parts(&host.origin, queued.rest);
        if !self.is_approved(url.as_ref(), queued) {
            self.unapproved.push((told.host, told.place));
        }
    }

    fn is_approved(&self, url: Option<&NormalUrl>, queued: &Queued<'_>) -> bool {
        let (Some(guard), Some(url)) = (&self.guard, url) else {
            return true;
        };
        let candidate = Candidate {
            url,
            link_depth: queued.depth,
            robots: None,
        };
        guard.approve_for(&candidate, queued.kind.into()).is_ok()
    }

    /// Makes a host rest for its delay, because it is unknown which hosts received a request just
    /// before the last run ended. Other waits continue, but a clock that was set back must not make
    /// them endless.
    fn rest(&self, host: &mut Host, until: Duration) {
        const MAX_WAIT: Duration = Duration::from_secs(24 * 3600);
        let left = until.saturating_sub(self.date).min(MAX_WAIT);
        let pace = &host.pace;
        let delay = pace.delay(
            Duration::ZERO,
            None,
            &self.settings.polite,
            self.date.as_secs(),
        );
        host.next = host.next.max(left).max(delay);
    }

    /// Restores the rules of a robots.txt, which are valid for a day, even if the clock jumps
    /// meanwhile.
    fn keep_rules(&self, host: &mut Host, read: u64, text: &str) {
        let date = self.date.as_secs();
        let age = Duration::from_secs(date.saturating_sub(read));
        let until = crate::robots::MAX_AGE.saturating_sub(age);
        let is_valid = read <= date && !until.is_zero();
        host.rules = match is_valid {
            true => HostRules::Kept(text.into(), until),
            false => HostRules::Unknown,
        };
    }
}

fn unmet() -> Error {
    Error::damaged(Path::new(JOURNAL), "it refers to an unknown host")
}
