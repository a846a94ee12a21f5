//! Rewrites the journal without finished URLs while the crawl continues.
//!
//! *Question.* The journal grows with every URL that is met and every URL that is done. When it is
//! twice as long as necessary, most of it can be dropped. Which events are still needed? The crawl
//! loop should not have to say.
//!
//! *Idea.* The journal itself has the answer. A first pass over the part that is on the disk finds
//! the URLs that are not done and the last state of each host. A second pass copies these events,
//! in order, into a successor. Every event keeps its position: if events were left out, a
//! [`Event::Skip`] says how many bytes they had. So nothing that the crawl has in memory changes.
//! Visits of pages are left out, because the page table has them. Events written meanwhile are
//! appended ([`Journal::catch_up`]), and then the successor takes the name of the journal.
//!
//! *Cost.* At most one URL is rewritten for each that is done, so the time of a crawl grows by a
//! constant factor. Memory meanwhile: 4 bytes and one bit for each URL in the file, 12 bytes for
//! each host, about 40 bytes for each queued URL whose weight has changed, and the records of
//! failed URLs.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::frame::replay_synced;
use super::{Batch, Event, Frame, HostId, Journal, Place};
use crate::error::Error;
use crate::frontier::RECALLED;
use crate::order::Weight;

/// Size of a frame of the successor in bytes: finding a URL may read a whole frame.
const FRAME: usize = 4 << 10;

/// Maximum number of contents of URLs that are kept.
pub(crate) const MAX_CONTENTS: usize = 1 << 20;

/// The journal to be rewritten.
#[derive(Debug)]
pub(crate) struct Old {
    pub(super) file: File,
    /// The length of the part that is on the disk.
    pub(super) until: u64,
    pub(super) mark: u64,
    /// Rules read before this time, in seconds since 1970, are out of date.
    pub(super) rules_since: u64,
}

/// A journal that is almost complete.
#[derive(Debug)]
pub(crate) struct Successor {
    pub(super) journal: Journal,
    /// How much of the old one is in it.
    pub(super) until: u64,
    /// Number of URLs in it.
    pub(crate) n_urls: u64,
}

impl Old {
    /// Writes the successor under a temporary name; returns `None` if it was told to stop.
    pub(crate) fn rewrite(
        &self,
        path: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<Successor>, Error> {
        let mut survey = Survey::default();
        let go_on = || !stop.load(Ordering::Relaxed);
        replay_synced(self.until, &self.file, path, |frame| {
            survey.take(frame, self.rules_since);
            Ok(go_on())
        })?;
        let mut writer = Writer {
            journal: Journal::begin_at(&super::new_path(path), self.mark)?,
            batch: Batch::new(0, 0),
            next: 0,
        };
        let (mut url, mut state) = (0, 0);
        replay_synced(self.until, &self.file, path, |frame| {
            for &(mut event, place) in &frame.events {
                let is_kept = match &mut event {
                    Event::Host(_) => true,
                    Event::Url(queued) | Event::Again { queued, .. } => {
                        url += 1;
                        if let Some(weight) = survey.weights.get(&(url - 1)) {
                            queued.weight = *weight;
                        }
                        survey.waits.get(url - 1)
                    }
                    other if state_of(other).is_some() => {
                        state += 1;
                        survey.is_last.get(state - 1)
                    }
                    _ => false,
                };
                if is_kept {
                    writer.keep(event, place)?;
                }
            }
            Ok(go_on())
        })?;
        if !go_on() {
            return Ok(None);
        }
        let n_urls = survey.waits.n_set();
        survey.write_rest(&mut writer)?;
        Ok(Some(Successor {
            journal: writer.journal,
            until: self.until,
            n_urls,
        }))
    }
}

/// The result of the first pass.
#[derive(Default)]
struct Survey {
    urls: Places,
    /// Which URLs are not done, in the order of the file, and their last weights if they have
    /// changed.
    waits: Bits,
    weights: HashMap<usize, Weight>,
    /// Which states are the last of their kind and host, in the order of the file.
    is_last: Bits,
    /// Numbers of the last states: of rules and of trust by host, which nearly all hosts have, and
    /// of others.
    rules: Vec<u32>,
    trust: Vec<u32>,
    states: HashMap<(HostId, u8), u32>,
    /// Number of pages fetched, by host.
    n_pages: Vec<u32>,
    trouble: BTreeMap<HostId, FailedUrls>,
    /// URLs that rules defer, and those that were deferred earlier.
    deferred: BTreeMap<(HostId, Place), u32>,
    recalled: BTreeSet<(HostId, Place)>,
    /// The last version of each URL rule, as written.
    url_rules: BTreeMap<u64, Vec<u8>>,
    /// The last contents of URLs, 16 bytes each.
    contents: VecDeque<[u8; 16]>,
    /// The last of each kind of event that every frame has, as written.
    last: BTreeMap<u8, Vec<u8>>,
}

/// Failed URLs of a host, as in [`crate::frontier::Host`].
#[derive(Default)]
struct FailedUrls {
    is_lost: bool,
    retries: Vec<(Place, u8)>,
    lost: Vec<Place>,
}

impl FailedUrls {
    fn remove(&mut self, place: Place) {
        self.retries.retain(|(other, _)| *other != place);
        self.lost.retain(|other| *other != place);
    }

    fn forgive(&mut self) {
        self.is_lost = false;
        let lost = self.lost.drain(..).map(|place| (place, 0));
        let tried = self.retries.iter_mut();
        tried.for_each(|(_, n_tries)| *n_tries = 0);
        self.retries.extend(lost);
    }
}

/// Returns the host and kind of an event that replaces earlier ones.
fn state_of(event: &Event<'_>) -> Option<(HostId, u8)> {
    match *event {
        Event::Rules { host, .. } => Some((host, 0)),
        Event::Delay { host, .. } => Some((host, 1)),
        Event::NotBefore { host, .. } => Some((host, 2)),
        Event::Unreachable { host, .. } => Some((host, 3)),
        Event::Trust { host, .. } => Some((host, 4)),
        Event::Untrusted { host } => Some((host, 5)),
        Event::Signals { host, .. } => Some((host, 6)),
        _ => None,
    }
}

impl Survey {
    fn take(&mut self, frame: &Frame<'_>, rules_since: u64) {
        for &(event, place) in &frame.events {
            if let Some((host, kind)) = state_of(&event) {
                let counts = !matches!(event, Event::Rules { date, .. } if date < rules_since);
                self.take_state(host, kind, counts);
                continue;
            }
            match event {
                Event::Host(_) => {
                    self.rules.push(NONE);
                    self.trust.push(NONE);
                    self.n_pages.push(0);
                }
                Event::Url(_) | Event::Again { .. } => {
                    self.urls.push(place);
                    self.waits.push(true);
                }
                Event::Weight { place, weight, .. } => {
                    if let Some(number) = self.urls.find(place) {
                        self.weights.insert(number, weight);
                    }
                }
                Event::Done { host, place } => {
                    let is_page = self.end(host, place);
                    self.count_pages(host, u64::from(is_page));
                }
                Event::Dropped { host, place } => {
                    self.end(host, place);
                }
                Event::Pages { host, n } => self.count_pages(host, n),
                Event::Deferred { host, place, tag } => {
                    self.forget(host, place);
                    self.deferred.insert((host, place), tag);
                }
                Event::Tried {
                    host,
                    place,
                    n_tries: RECALLED,
                } => {
                    self.forget(host, place);
                    self.recalled.insert((host, place));
                }
                Event::UrlContents(pairs) => {
                    let (pairs, _) = pairs.as_chunks::<16>();
                    self.contents.extend(pairs);
                    let n_over = self.contents.len().saturating_sub(MAX_CONTENTS);
                    self.contents.drain(..n_over);
                }
                // A request for learning that has ended.
                Event::UrlRule { key, text: "" } => {
                    self.url_rules.remove(&key);
                }
                Event::UrlRule { key, .. } => {
                    let bytes = self.url_rules.entry(key).or_default();
                    bytes.clear();
                    event.write(bytes);
                }
                Event::Tried {
                    host,
                    place,
                    n_tries,
                } => {
                    self.forget(host, place);
                    let trouble = self.trouble.entry(host).or_default();
                    trouble.retries.push((place, n_tries));
                }
                Event::Lost { host, place } => {
                    self.recalled.remove(&(host, place));
                    let trouble = self.trouble.entry(host).or_default();
                    match place {
                        0 => trouble.is_lost = true,
                        _ => {
                            trouble.remove(place);
                            trouble.lost.push(place);
                        }
                    }
                }
                Event::Found { host } => {
                    if let Some(trouble) = self.trouble.get_mut(&host) {
                        trouble.forgive();
                    }
                }
                Event::Archive { .. } => self.take_last(0, event),
                Event::RobotsArchive { .. } => self.take_last(1, event),
                Event::Counters(_) => self.take_last(2, event),
                Event::Seen { .. } => self.take_last(3, event),
                Event::Contents { .. } => self.take_last(4, event),
                Event::Doublings { .. } => self.take_last(5, event),
                Event::Table { .. } => self.take_last(6, event),
                _ => {}
            }
        }
    }

    /// Records that a URL needs no further request; returns whether it was queued.
    fn end(&mut self, host: HostId, place: Place) -> bool {
        self.forget(host, place);
        let number = self.urls.find(place);
        number.is_some_and(|number| {
            self.weights.remove(&number);
            self.waits.clear(number)
        })
    }

    /// Forgets everything about a URL except that it is queued.
    fn forget(&mut self, host: HostId, place: Place) {
        if let Some(trouble) = self.trouble.get_mut(&host) {
            trouble.remove(place);
        }
        self.deferred.remove(&(host, place));
        self.recalled.remove(&(host, place));
    }

    fn count_pages(&mut self, host: HostId, n: u64) {
        if let Some(n_pages) = self.n_pages.get_mut(host as usize) {
            let n = u32::try_from(n).unwrap_or(u32::MAX);
            *n_pages = n_pages.saturating_add(n);
        }
    }

    fn take_state(&mut self, host: HostId, kind: u8, counts: bool) {
        let number = self.is_last.n_bits as u32;
        self.is_last.push(counts);
        let before = match kind {
            0 | 4 => {
                let lasts = if kind == 0 {
                    &mut self.rules
                } else {
                    &mut self.trust
                };
                let last = lasts.get_mut(host as usize);
                last.map(|last| std::mem::replace(last, number))
            }
            _ => self.states.insert((host, kind), number),
        };
        if let Some(before) = before.filter(|&before| before != NONE) {
            self.is_last.clear(before as usize);
        }
        // Rules are out of date if robots.txt is no longer available.
        if kind == 3
            && let Some(rules) = self.rules.get_mut(host as usize)
        {
            let rules = std::mem::replace(rules, NONE);
            if rules != NONE {
                self.is_last.clear(rules as usize);
            }
        }
    }

    fn take_last(&mut self, kind: u8, event: Event<'_>) {
        let bytes = self.last.entry(kind).or_default();
        bytes.clear();
        event.write(bytes);
    }

    /// Writes the states of hosts and of the companions of the journal.
    fn write_rest(self, writer: &mut Writer) -> Result<(), Error> {
        writer.flush()?;
        for (host, n) in (0..).zip(self.n_pages).filter(|(_, n)| *n > 0) {
            let n = n.into();
            writer.add(Event::Pages { host, n })?;
        }
        for (host, trouble) in self.trouble {
            for (place, n_tries) in trouble.retries {
                writer.add(Event::Tried {
                    host,
                    place,
                    n_tries,
                })?;
            }
            let all = trouble.is_lost.then_some(0);
            for place in trouble.lost.into_iter().chain(all) {
                writer.add(Event::Lost { host, place })?;
            }
        }
        for ((host, place), tag) in self.deferred {
            writer.add(Event::Deferred { host, place, tag })?;
        }
        for (host, place) in self.recalled {
            let n_tries = RECALLED;
            writer.add(Event::Tried {
                host,
                place,
                n_tries,
            })?;
        }
        for bytes in self.url_rules.into_values() {
            writer.batch.events.extend(bytes);
            writer.flush_if_full()?;
        }
        let contents: Vec<[u8; 16]> = self.contents.into();
        for pairs in contents.chunks(FRAME / 16) {
            writer.add(Event::UrlContents(pairs.as_flattened()))?;
        }
        for bytes in self.last.into_values().rev() {
            writer.batch.events.extend(bytes);
        }
        writer.flush()
    }
}

/// Stands for no state.
const NONE: u32 = u32::MAX;

/// Writes events with their positions.
struct Writer {
    journal: Journal,
    batch: Batch,
    /// The position after the last event.
    next: Place,
}

impl Writer {
    fn keep(&mut self, event: Event<'_>, place: Place) -> Result<(), Error> {
        if self.batch.events.is_empty() {
            self.batch = Batch::new(place, self.journal.n_hosts);
        } else if place > self.next {
            let n_bytes = place - self.next;
            Event::Skip { n_bytes }.write(&mut self.batch.events);
            self.batch.is_dense = false;
        }
        let n_before = self.batch.n_bytes();
        self.batch.push(event);
        self.next = place + (self.batch.n_bytes() - n_before) as u64;
        self.flush_if_full()
    }

    fn add(&mut self, event: Event<'_>) -> Result<(), Error> {
        self.batch.push(event);
        self.flush_if_full()
    }

    fn flush_if_full(&mut self) -> Result<(), Error> {
        match self.batch.events.len() < FRAME {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let batch = self.batch.take();
        self.journal.append(&batch, &[])
    }
}

/// Ascending positions of URLs, each stored as its distance from the first of its chunk.
#[derive(Default)]
struct Places {
    /// The first position of each chunk, and its number.
    chunks: Vec<(Place, usize)>,
    offsets: Vec<u32>,
}

/// Positions per chunk.
const CHUNK: usize = 1024;

impl Places {
    fn push(&mut self, place: Place) {
        let last = self.chunks.last();
        let offset = last.and_then(|&(first, start)| {
            let is_full = self.offsets.len() - start >= CHUNK;
            let offset = u32::try_from(place - first).ok();
            offset.filter(|_| !is_full)
        });
        if offset.is_none() {
            self.chunks.push((place, self.offsets.len()));
        }
        self.offsets.push(offset.unwrap_or(0));
    }

    /// Returns the number of a position.
    fn find(&self, place: Place) -> Option<usize> {
        let after = self.chunks.partition_point(|&(first, _)| first <= place);
        let &(first, start) = self.chunks.get(after.checked_sub(1)?)?;
        let end = self
            .chunks
            .get(after)
            .map_or(self.offsets.len(), |next| next.1);
        let offset = u32::try_from(place - first).ok()?;
        let found = self.offsets[start..end].binary_search(&offset).ok()?;
        Some(start + found)
    }
}

/// A row of bits.
#[derive(Default)]
struct Bits {
    words: Vec<u64>,
    n_bits: usize,
}

impl Bits {
    fn push(&mut self, bit: bool) {
        if self.n_bits.is_multiple_of(64) {
            self.words.push(0);
        }
        self.words[self.n_bits / 64] |= u64::from(bit) << (self.n_bits % 64);
        self.n_bits += 1;
    }

    fn get(&self, at: usize) -> bool {
        self.words
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Clears a bit; returns whether it was set.
    fn clear(&mut self, at: usize) -> bool {
        let was_set = self.get(at);
        if was_set {
            self.words[at / 64] &= !(1 << (at % 64));
        }
        was_set
    }

    fn n_set(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Positions are found by their numbers, however far apart they are.
    #[test]
    fn places_are_found() {
        let mut random = SplitMix::new(3);
        let mut places = Places::default();
        let (mut all, mut place) = (Vec::new(), 0);
        for n in 0..5000 {
            place += 1 + random.below(if n % 997 == 0 { 1 << 40 } else { 90 });
            places.push(place);
            all.push(place);
        }
        for (number, &place) in all.iter().enumerate() {
            assert_eq!(places.find(place), Some(number));
            let other = all.binary_search(&(place + 1)).ok();
            assert_eq!(places.find(place + 1), other);
        }
        assert_eq!(places.find(0), None);
    }
}
