//! Partitions that come and go, in the loop of a crawl.

use super::*;
use crate::cluster::link::Committed;
use crate::cluster::partition::partition_of;
use crate::cluster::replay::{MovedHost, MovedUrl};
use crate::cluster::wire::Record;
use crate::frontier::{HostRules, Stage, Tag};
use crate::guard::{Candidate, Counts};
use crate::journal::{Event, Queued};
use crate::robots;
use crate::settings::seconds;

impl Crawl {
    /// Takes in a part of the state of a partition.
    pub(in crate::crawl) fn open_part(&mut self, opening: Opening) {
        let Opening {
            partition,
            epoch,
            hosts,
            ended,
            waiting,
            is_last,
        } = opening;
        if let Some(member) = &mut self.member {
            member.epochs[usize::from(partition)] = epoch;
        }
        for host in hosts {
            self.open_host(&host);
        }
        let ended = ended.into_iter().map(|key| {
            let (host, rest) = ((key >> 64) as u64, key as u64);
            Moved::Ended(Fingerprint { host, rest })
        });
        let waiting = waiting.into_iter().filter_map(|(origin, moved)| {
            let url = NormalUrl::from_parts(&origin, &moved.rest)?;
            let fingerprint = Fingerprint::of(&url);
            Some(Moved::Waiting(url, fingerprint, Box::new(moved)))
        });
        let items = ended.chain(waiting).map(Item::Moved);
        self.found.extend(items);
        if is_last {
            self.found.push(Item::Moved(Moved::Opened(partition)));
        }
    }

    /// Takes in a host. After a crash it rests for its delay: it is not known when it was asked.
    fn open_host(&mut self, moved: &MovedHost) {
        let Some(url) = NormalUrl::from_parts(&moved.origin, "/") else {
            return;
        };
        let Some(id) = self.host_of(&url, Fingerprint::of(&url).host) else {
            return;
        };
        let (now, date) = (self.now(), (self.seams.clock)());
        let host = &mut self.frontier.hosts[id as usize];
        host.pace.asked_delay = Duration::from_millis(moved.delay);
        let settings = &self.shared.settings;
        let polite = settings.polite_of(&host.origin, host.name());
        let rest = match moved.rest {
            Some(millis) => Duration::from_millis(millis),
            None => {
                let delay = host
                    .pace
                    .delay(Duration::ZERO, None, &polite, date.as_secs());
                delay.max(seconds(polite.address_delay))
            }
        };
        let left = Duration::from_millis(moved.not_before).saturating_sub(date);
        let left = left.min(Duration::from_secs(24 * 3600));
        host.next = host.next.max(now + rest.max(left));
        if let Some((read, text)) = &moved.rules {
            let age = Duration::from_secs(date.as_secs().saturating_sub(*read));
            let until = robots::MAX_AGE.saturating_sub(age);
            if *read <= date.as_secs() && !until.is_zero() {
                host.rules = HostRules::Kept(text.as_str().into(), now + until);
                let (host, date) = (id, *read);
                self.journal.push(Event::Rules { host, date, text });
            }
        }
        if moved.delay > 0 {
            let (host, millis) = (id, moved.delay);
            self.journal.push(Event::Delay { host, millis });
        }
        let site = self.frontier.hosts.site(id);
        self.frontier.count_pages(site, moved.n_done);
        if let Some(trust) = moved.trust {
            self.frontier.set_trust(site, trust);
        }
    }

    /// Goes on with something that has come, now that the seen set knows it.
    pub(in crate::crawl) fn take_moved(&mut self, moved: Moved) {
        match moved {
            Moved::Ended(_) => {}
            Moved::Waiting(url, fingerprint, moved) => self.queue_moved(&url, fingerprint, &moved),
            Moved::Opened(partition) => self.finish_opening(partition),
            Moved::Closed(partition) => {
                let closing = self
                    .member
                    .iter_mut()
                    .flat_map(|member| &mut member.closing);
                let mut closing = closing.filter(|(of, _)| *of == partition);
                if let Some((_, stage)) = closing.next() {
                    *stage = Closing::Ready;
                }
            }
            Moved::Applied(delivery) => {
                if let Some(member) = &mut self.member {
                    member.applied.push(delivery);
                }
            }
        }
    }

    fn queue_moved(&mut self, url: &NormalUrl, fingerprint: Fingerprint, moved: &MovedUrl) {
        let Some(host) = self.host_of(url, fingerprint.host) else {
            return;
        };
        let queued = Queued {
            host,
            depth: moved.depth,
            weight: moved.weight,
            class: moved.class,
            is_last: moved.is_last,
            of_repeat: moved.of_repeat,
            n_redirects: moved.n_redirects,
            kind: moved.kind,
            rest: url.rest(),
            found_on: &moved.found_on,
        };
        let place = self.journal.push(Event::Url(queued));
        self.frontier
            .push(&queued, Tag::of(fingerprint.rest), place);
        self.frontier.advance(host);
        self.frontier.raise(host, moved.weight.mass);
    }

    /// Takes links to a partition from now on, and queues its seeds.
    fn finish_opening(&mut self, partition: u8) {
        let Some(member) = &mut self.member else {
            return;
        };
        if member.closes(partition) {
            return;
        }
        member.set_owned(partition, true);
        let seeds = member.seeds.iter().filter(|(of, ..)| *of == partition);
        let seeds: Vec<_> = seeds.map(|(_, url, kind)| (url.clone(), *kind)).collect();
        for (url, kind) in seeds {
            let seed = super::links::seed_of(url, kind);
            self.found.push(Item::Link(seed));
        }
    }

    /// Queues URLs that another agent has found, as far as they are in scope.
    pub(in crate::crawl) fn apply_urls(
        &mut self,
        delivery: u64,
        partition: u8,
        urls: Vec<SentUrl>,
    ) {
        // Whoever sent them sends them to the next owner.
        let member = self.member.as_ref();
        if member.is_none_or(|member| !member.accepts(partition)) {
            return;
        }
        for sent in urls {
            let Ok(url) = self.shared.normalize(&sent.url, None) else {
                continue;
            };
            let candidate = Candidate {
                url: &url,
                link_depth: sent.depth,
                robots: None,
            };
            let approved = self.shared.guard.approve_for(&candidate, sent.kind.into());
            let is_right = url.as_str() == sent.url && partition_of(url.site()) == partition;
            let mut counts = Counts::default();
            counts.add(approved);
            self.counters.judge(&counts);
            if approved.is_err() || !is_right || url.is_file() {
                continue;
            }
            let found = Found {
                fingerprint: Fingerprint::of(&url),
                url,
                kind: sent.kind,
                is_redirect: false,
                class: sent.class,
                is_repeat: false,
                words: None,
            };
            let gift = Gift {
                mass: sent.mass,
                trust: sent.trust,
                draw: found.fingerprint.rest,
                is_link: true,
            };
            self.found.push(Item::Link(Pending {
                found,
                depth: sent.depth,
                n_redirects: sent.n_redirects,
                from: None,
                found_on: sent.found_on.into(),
                is_last: sent.is_last,
                of_repeat: sent.of_repeat,
                gift,
                is_again: false,
                parent: Default::default(),
                mark: None,
            }));
        }
        self.found.push(Item::Moved(Moved::Applied(delivery)));
    }

    /// Finishes with partitions that are to go and of which nothing is under way.
    pub(in crate::crawl) fn close_partitions(&mut self) -> Result<(), Error> {
        let Some(member) = &mut self.member else {
            return Ok(());
        };
        let (asked, n_in_flight) = (&member.asked, &member.n_in_flight);
        let is_asked = |partition: u8| {
            let mut of = asked.iter().filter(|(_, of)| *of == partition);
            n_in_flight[usize::from(partition)] > 0
                || of.any(|(ticket, _)| self.open.contains_key(ticket))
        };
        let mut ready = Vec::new();
        for (partition, stage) in &mut member.closing {
            match stage {
                Closing::Asked if !is_asked(*partition) => {
                    // Links go to the next owner from here on; those before are waited for.
                    let owned = &member.link.shared.owned[usize::from(*partition)];
                    owned.store(false, Ordering::Relaxed);
                    *stage = Closing::Behind;
                    self.found.push(Item::Moved(Moved::Closed(*partition)));
                }
                Closing::Ready => ready.push(*partition),
                Closing::Asked | Closing::Behind => {}
            }
        }
        match ready.is_empty() {
            true => Ok(()),
            false => self.close_all(&ready),
        }
    }

    /// Finishes with partitions.
    fn close_all(&mut self, closed: &[u8]) -> Result<(), Error> {
        self.commit()?;
        let now = self.now();
        let Some(member) = &mut self.member else {
            return Ok(());
        };
        let mut rests = by_partition();
        let hosts = (0..).zip(&member.hosts);
        let hosts = hosts.filter(|(id, (partition, _))| {
            closed.contains(partition) && self.frontier.hosts.is_warm(*id)
        });
        for (id, &(partition, told)) in hosts {
            let left = self.frontier.hosts[id as usize].next.saturating_sub(now);
            if told == member.epochs[usize::from(partition)] {
                let millis = left.as_millis() as u64 + 1;
                rests[usize::from(partition)].push(&Record::Rest { id, millis });
            }
        }
        let commit = Committed {
            then: told(rests),
            closed: closed.to_vec(),
            ..Committed::default()
        };
        let end = self.journal.end();
        let rest = member.rest();
        member.unwritten.extend(rest.map(|rest| (end, rest)));
        member.unwritten.push_back((end, commit));
        member
            .closing
            .retain(|(partition, _)| !closed.contains(partition));
        for &partition in closed {
            member.epochs[usize::from(partition)] = 0;
        }
        let gone = (0..).zip(&member.hosts);
        let gone = gone.filter(|(_, (partition, _))| closed.contains(partition));
        let gone: Vec<HostId> = gone.map(|(id, _)| id).collect();
        for id in gone {
            self.forget_host(id);
            self.frontier.hosts.shelve(2)?;
        }
        // Where nothing was left to write.
        if self.background.n_commits == 0 {
            self.note_written(end);
        }
        Ok(())
    }

    /// Takes all URLs off the queue of a host that others crawl from now on.
    pub(in crate::crawl) fn forget_host(&mut self, id: HostId) {
        if !self.frontier.hosts.may_have_work(id) {
            return;
        }
        let host = &mut self.frontier.hosts[id as usize];
        let places = host.drain();
        let deferred = std::mem::take(&mut host.deferred);
        host.jobs.clear();
        (host.rules, host.is_lost) = (HostRules::Unknown, false);
        if host.stage == Stage::Parked {
            host.stage = Stage::Rest;
        }
        self.dust.deferred.set(id, host);
        for place in places {
            self.drop_url(id, place);
        }
        for place in deferred.into_keys() {
            self.journal.push(Event::Dropped { host: id, place });
        }
    }
}
