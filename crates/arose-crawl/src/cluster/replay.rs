//! The state of a partition, read from its log.
//!
//! Each owner writes its journal as far as it concerns the partition, with its own numbers of hosts
//! and places, and the next owner goes on with its own. A URL is known by its fingerprint, so it
//! does not matter how often it was queued: once it is done, it stays done.
//!
//! A log that has grown is replaced by a *snapshot*: records that lead to the same state. It counts
//! only if all of it is there, so an owner may crash while it writes one.

use std::collections::{BTreeMap, HashMap};

use super::link::Records;
use super::wire::{MAX_BATCH, Record, SentUrl, Title, read_frame};
use crate::fingerprint::Fingerprint;
use crate::journal::{Event, HostId, Kind, Place, Queued};
use crate::order::Weight;
use crate::url::NormalUrl;

/// What is known of a host.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MovedHost {
    pub(crate) origin: String,
    /// Milliseconds between requests that it asks for.
    pub(crate) delay: u64,
    /// Milliseconds since 1970 before which it is left alone.
    pub(crate) not_before: u64,
    /// Milliseconds that it had to be left alone when it was handed over; none after a crash.
    pub(crate) rest: Option<u64>,
    /// Its robots.txt and the date of that, in seconds since 1970.
    pub(crate) rules: Option<(u64, String)>,
    /// The trust of its site, if it is the first host of it.
    pub(crate) trust: Option<f32>,
    /// Pages that were fetched.
    pub(crate) n_done: u64,
}

impl MovedHost {
    /// Records that lead to this state of a host.
    fn tell(&self, id: HostId, records: &mut Records) {
        let origin = &self.origin;
        records.push(&Record::Host { id, origin });
        let mut push = |event| records.push(&Record::Event { place: 0, event });
        if self.delay > 0 {
            let millis = self.delay;
            push(Event::Delay { host: id, millis });
        }
        if self.not_before > 0 {
            let millis = self.not_before;
            push(Event::NotBefore { host: id, millis });
        }
        if let Some((date, text)) = &self.rules {
            let date = *date;
            push(Event::Rules {
                host: id,
                date,
                text,
            });
        }
        if let Some(trust) = self.trust {
            push(Event::Trust { host: id, trust });
        }
        if self.n_done > 0 {
            let n_done = self.n_done;
            records.push(&Record::Pages { id, n_done });
        }
    }
}

/// A URL that waits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MovedUrl {
    /// Its host, as an index of the hosts.
    pub(crate) host: usize,
    pub(crate) rest: String,
    pub(crate) found_on: String,
    pub(crate) depth: u32,
    pub(crate) weight: Weight,
    pub(crate) class: u8,
    pub(crate) is_last: bool,
    pub(crate) of_repeat: bool,
    pub(crate) n_redirects: u8,
    pub(crate) kind: Kind,
}

/// URLs for another partition that nobody has confirmed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unconfirmed {
    /// The epoch and the batch by which the log knows them.
    pub(crate) epoch: u64,
    pub(crate) batch: u64,
    pub(crate) target: u8,
    pub(crate) urls: Vec<SentUrl>,
}

/// The state of a partition.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) hosts: Vec<MovedHost>,
    by_origin: HashMap<String, usize>,
    /// URLs by fingerprint; none if they are done.
    urls: HashMap<u128, Option<MovedUrl>>,
    unconfirmed: BTreeMap<(u64, u64, u8), Vec<SentUrl>>,
    /// The numbers of the present owner.
    epoch: u64,
    ids: HashMap<HostId, usize>,
    places: HashMap<Place, u128>,
    /// A snapshot that is not complete.
    snapshot: Option<Box<State>>,
}

impl State {
    /// Takes in a message of the log. None if it makes no sense.
    pub(crate) fn take(&mut self, message: &[u8]) -> Option<Title> {
        // The epoch is in the title, which is known when the records are read.
        let epoch = super::wire::title_of(message)?.epoch;
        if epoch != self.epoch {
            self.epoch = epoch;
            self.snapshot = None;
            self.ids.clear();
            self.places.clear();
            self.hosts.iter_mut().for_each(|host| host.rest = None);
        }
        read_frame(message, |record| self.apply(record))
    }

    fn apply(&mut self, record: Record<'_>) -> Option<()> {
        match (&record, &mut self.snapshot) {
            (Record::Snapshot, _) => {
                self.snapshot = Some(Box::new(Self {
                    epoch: self.epoch,
                    ..Self::default()
                }));
                return Some(());
            }
            (Record::Complete, snapshot) => {
                *self = *snapshot.take()?;
                return Some(());
            }
            (_, Some(snapshot)) => return snapshot.apply(record),
            (_, None) => {}
        }
        match record {
            Record::Snapshot | Record::Complete => {}
            Record::Ended(keys) => {
                let (keys, []) = keys.as_chunks() else {
                    return None;
                };
                let keys = keys.iter().map(|key| u128::from_le_bytes(*key));
                self.urls.extend(keys.map(|key| (key, None)));
            }
            Record::Pages { id, n_done } => {
                let host = *self.ids.get(&id)?;
                self.hosts[host].n_done = n_done;
            }
            Record::Unconfirmed {
                epoch,
                batch,
                target,
                urls,
            } => {
                let key = (epoch, batch, target);
                self.unconfirmed.entry(key).or_default().extend(urls);
            }
            Record::Host { id, origin } => {
                let host = self.host(origin);
                self.ids.insert(id, host);
            }
            Record::Event { place, event } => self.apply_event(place, event)?,
            Record::Sent {
                batch,
                target,
                urls,
            } => {
                let key = (self.epoch, batch, target);
                self.unconfirmed.entry(key).or_default().extend(urls);
            }
            Record::Received { epoch, batch } => {
                let range = (epoch, batch, 0)..=(epoch, batch, u8::MAX);
                let keys: Vec<_> = self.unconfirmed.range(range).map(|(key, _)| *key).collect();
                for key in keys {
                    self.unconfirmed.remove(&key);
                }
            }
            Record::Rest { id, millis } => {
                let host = *self.ids.get(&id)?;
                self.hosts[host].rest = Some(millis);
            }
        }
        Some(())
    }

    fn host(&mut self, origin: &str) -> usize {
        if let Some(&host) = self.by_origin.get(origin) {
            return host;
        }
        let host = self.hosts.len();
        self.hosts.push(MovedHost {
            origin: origin.to_owned(),
            ..MovedHost::default()
        });
        self.by_origin.insert(origin.to_owned(), host);
        host
    }

    fn apply_event(&mut self, place: Place, event: Event<'_>) -> Option<()> {
        let host = *self.ids.get(&event.host()?)?;
        match event {
            Event::Url(queued) => {
                let url = NormalUrl::from_parts(&self.hosts[host].origin, queued.rest)?;
                let key = Fingerprint::of(&url).key();
                self.places.insert(place, key);
                let moved = MovedUrl {
                    host,
                    rest: queued.rest.to_owned(),
                    found_on: queued.found_on.to_owned(),
                    depth: queued.depth,
                    weight: queued.weight,
                    class: queued.class,
                    is_last: queued.is_last,
                    of_repeat: queued.of_repeat,
                    n_redirects: queued.n_redirects,
                    kind: queued.kind,
                };
                let state = self.urls.entry(key).or_insert_with(|| Some(moved.clone()));
                if let Some(waiting) = state {
                    *waiting = moved;
                }
            }
            Event::Done { place, .. } | Event::Dropped { place, .. } => {
                // Snapshots do not have the places of URLs that are done.
                let key = self.places.get(&place);
                let state = key.and_then(|key| self.urls.get_mut(key));
                let was_waiting = state.is_some_and(|state| state.take().is_some());
                let is_done = matches!(event, Event::Done { .. }) && was_waiting;
                self.hosts[host].n_done += u64::from(is_done);
            }
            Event::Weight { place, weight, .. } => {
                let key = self.places.get(&place);
                if let Some(Some(waiting)) = key.and_then(|key| self.urls.get_mut(key)) {
                    waiting.weight = weight;
                }
            }
            Event::Delay { millis, .. } => self.hosts[host].delay = millis,
            Event::NotBefore { millis, .. } => self.hosts[host].not_before = millis,
            Event::Rules { date, text, .. } => {
                self.hosts[host].rules = Some((date, text.to_owned()));
            }
            Event::Trust { trust, .. } => self.hosts[host].trust = Some(trust),
            _ => {}
        }
        Some(())
    }

    /// Fingerprints of URLs that need no request, and the others, in ascending order.
    pub(crate) fn into_urls(self) -> (Vec<MovedHost>, Vec<u128>, Vec<MovedUrl>) {
        let mut urls: Vec<_> = self.urls.into_iter().collect();
        urls.sort_unstable_by_key(|(key, _)| *key);
        let (mut ended, mut waiting) = (Vec::new(), Vec::new());
        for (key, url) in urls {
            match url {
                Some(url) => waiting.push(url),
                None => ended.push(key),
            }
        }
        (self.hosts, ended, waiting)
    }

    /// Records that lead to this state, for the present owner, with its numbers and places.
    pub(crate) fn snapshot(&self) -> Records {
        let mut records = Records::default();
        records.push(&Record::Snapshot);
        let mut ids: Vec<Option<HostId>> = vec![None; self.hosts.len()];
        let mut told: Vec<_> = self.ids.iter().collect();
        told.sort_unstable();
        for (id, host) in told {
            ids[*host] = Some(*id);
        }
        // Hosts and URLs that the owner has not met yet get numbers that it does not use.
        let unused = (0..=HostId::MAX).rev();
        let mut unused = unused.filter(|id| !self.ids.contains_key(id));
        let ids = ids.into_iter().map(|id| id.or_else(|| unused.next()));
        let ids: Vec<HostId> = ids.map(Option::unwrap_or_default).collect();
        for (host, &id) in self.hosts.iter().zip(&ids) {
            host.tell(id, &mut records);
        }
        let mut urls: Vec<_> = self.urls.iter().collect();
        urls.sort_unstable_by_key(|(key, _)| **key);
        let (mut ended, mut waiting) = (Vec::new(), Vec::new());
        for (key, url) in urls {
            match url {
                Some(url) => waiting.push((*key, url)),
                None => ended.push(*key),
            }
        }
        for keys in ended.chunks(4096) {
            let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
            records.push(&Record::Ended(&bytes));
        }
        let mut placed: Vec<_> = self.places.iter().collect();
        placed.sort_unstable();
        // Of a URL with several places, the last one counts.
        let places = placed.into_iter().map(|(place, key)| (*key, *place));
        let places: HashMap<u128, Place> = places.collect();
        for (number, (key, url)) in (0..).zip(waiting) {
            let place = places.get(&key).copied().unwrap_or(Place::MAX - number);
            let event = Event::Url(Queued {
                host: ids[url.host],
                depth: url.depth,
                weight: url.weight,
                class: url.class,
                is_last: url.is_last,
                of_repeat: url.of_repeat,
                n_redirects: url.n_redirects,
                kind: url.kind,
                rest: &url.rest,
                found_on: &url.found_on,
            });
            records.push(&Record::Event { place, event });
        }
        for (&(epoch, batch, target), urls) in &self.unconfirmed {
            for urls in urls.chunks(MAX_BATCH) {
                records.push(&Record::Unconfirmed {
                    epoch,
                    batch,
                    target,
                    urls: urls.to_vec(),
                });
            }
        }
        records.push(&Record::Complete);
        records
    }

    /// URLs for other partitions that nobody has confirmed.
    pub(crate) fn unconfirmed(&self) -> Vec<Unconfirmed> {
        let all = self.unconfirmed.iter();
        let all = all.map(|(&(epoch, batch, target), urls)| Unconfirmed {
            epoch,
            batch,
            target,
            urls: urls.clone(),
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::frame;
    use super::*;
    use crate::journal::Queued;

    fn log(epoch: u64, number: u64, records: &[Record<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.write(&mut bytes));
        let title = Title {
            agent: format!("a-{epoch}"),
            epoch,
            number,
        };
        frame(&title, &bytes)
    }

    fn queued(id: HostId, rest: &str, place: Place) -> Record<'_> {
        let queued = Queued {
            host: id,
            depth: 1,
            weight: Weight::default(),
            class: 0,
            is_last: false,
            of_repeat: false,
            n_redirects: 0,
            kind: Kind::Page,
            rest,
            found_on: "/",
        };
        Record::Event {
            place,
            event: Event::Url(queued),
        }
    }

    fn done(host: HostId, place: Place) -> Record<'static> {
        Record::Event {
            place: place + 1000,
            event: Event::Done { host, place },
        }
    }

    fn host(id: HostId) -> Record<'static> {
        let origin = "http://h.test";
        Record::Host { id, origin }
    }

    /// Numbers of hosts and places are those of each owner; URLs that are done stay so, and those
    /// that an owner had no time to queue again still wait.
    #[test]
    fn owners_follow_each_other() {
        let mut state = State::default();
        let first = [
            host(7),
            queued(7, "/a", 10),
            queued(7, "/b", 20),
            queued(7, "/c", 30),
            done(7, 10),
        ];
        state.take(&log(1, 0, &first)).unwrap();
        // Place 10 is another URL now, and `/c` was not queued again before the crash.
        let second = [host(0), queued(0, "/b", 10), done(0, 10)];
        state.take(&log(2, 0, &second)).unwrap();
        let third = [host(1), queued(1, "/a", 5), queued(1, "/d", 6)];
        state.take(&log(3, 0, &third)).unwrap();
        let (hosts, ended, waiting) = state.into_urls();
        let mut rests: Vec<&str> = waiting.iter().map(|url| &*url.rest).collect();
        rests.sort_unstable();
        assert_eq!((hosts.len(), hosts[0].n_done, ended.len()), (1, 2, 2));
        assert_eq!(rests, ["/c", "/d"]);
    }

    #[test]
    fn unconfirmed_urls_are_sent_again() {
        let url = SentUrl {
            url: "http://o.test/".to_owned(),
            found_on: String::new(),
            depth: 1,
            n_redirects: 0,
            kind: Kind::Page,
            class: 0,
            is_last: false,
            of_repeat: false,
            mass: 1.0,
            trust: 1.0,
        };
        let sent = |batch, target| Record::Sent {
            batch,
            target,
            urls: vec![url.clone()],
        };
        let mut state = State::default();
        state.take(&log(1, 0, &[sent(1, 5), sent(2, 6)])).unwrap();
        let received = Record::Received { epoch: 1, batch: 1 };
        state.take(&log(2, 0, &[sent(1, 7), received])).unwrap();
        let left: Vec<_> = state.unconfirmed();
        let left: Vec<_> = left.iter().map(|u| (u.epoch, u.batch, u.target)).collect();
        assert_eq!(left, [(1, 2, 6), (2, 1, 7)]);
    }

    /// A snapshot in the middle of an epoch leads to the same state as all messages, and only if
    /// it is complete.
    #[test]
    fn snapshots_replace_logs() {
        let first = [
            host(7),
            queued(7, "/a", 10),
            queued(7, "/b", 20),
            done(7, 10),
        ];
        let url = SentUrl {
            url: "http://o.test/".to_owned(),
            found_on: String::new(),
            depth: 1,
            n_redirects: 0,
            kind: Kind::Page,
            class: 0,
            is_last: false,
            of_repeat: false,
            mass: 1.0,
            trust: 1.0,
        };
        let sent = Record::Sent {
            batch: 3,
            target: 9,
            urls: vec![url],
        };
        let rules = Record::Event {
            place: 5,
            event: Event::Rules {
                host: 7,
                date: 99,
                text: "User-agent: *",
            },
        };
        let second = [host(2), queued(2, "/c", 30), queued(2, "/d", 40)];
        // Behind the snapshot.
        let third = [done(2, 30), done(2, 30), queued(2, "/e", 50)];
        let logs = [
            log(1, 0, &first),
            log(1, 1, &[sent, rules]),
            log(2, 0, &second),
        ];
        let mut whole = State::default();
        for message in &logs {
            whole.take(message).unwrap();
        }
        let pieces = whole.snapshot().into_pieces();
        let title = |number| Title {
            agent: "a-2".to_owned(),
            epoch: 2,
            number,
        };
        let snapshot: Vec<_> = pieces.iter().map(|piece| frame(&title(1), piece)).collect();
        // From the snapshot alone, and behind the log it replaces.
        let mut alone = State::default();
        let mut behind = State::default();
        for message in &logs {
            behind.take(message).unwrap();
        }
        for message in &snapshot {
            alone.take(message).unwrap();
            behind.take(message).unwrap();
        }
        let mut partial = State::default();
        for message in &logs {
            partial.take(message).unwrap();
        }
        let cut = [Record::Snapshot, host(2), queued(2, "/x", 60)];
        partial.take(&log(2, 1, &cut)).unwrap();
        for state in [&mut whole, &mut alone, &mut behind] {
            state.take(&log(2, 2, &third)).unwrap();
        }
        let unconfirmed = whole.unconfirmed();
        assert_eq!((unconfirmed.len(), alone.unconfirmed()), (1, unconfirmed));
        let expected = whole.into_urls();
        assert_eq!(expected.0[0].rules.as_ref().unwrap().0, 99);
        assert_eq!(
            (expected.0[0].n_done, expected.1.len(), expected.2.len()),
            (2, 2, 3)
        );
        assert_eq!(alone.into_urls(), expected);
        assert_eq!(behind.into_urls(), expected);
        // The next owner finds what was there before the snapshot that was not finished.
        partial.take(&log(3, 0, &[host(1)])).unwrap();
        let (_, ended, waiting) = partial.into_urls();
        assert_eq!((ended.len(), waiting.len()), (1, 3));
    }

    #[test]
    fn senseless_logs_are_refused() {
        let mut state = State::default();
        assert!(state.take(&log(1, 0, &[done(0, 10)])).is_none());
        assert!(state.take(b"\x01nonsense").is_none());
    }
}
