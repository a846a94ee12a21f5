//! The URLs that wait at a host, the one with the largest mass first.
//!
//! *Question.* Masses change while URLs wait: every page that links to one raises it. Which URL is
//! next, and where is the one that a link leads to? There may be fifty million of them.
//!
//! *Idea.* URLs are divided by a hash of their names, the *tag*, into buckets of some fifty, so one
//! that is raised is found by looking through its bucket. A tree above the buckets has the best
//! rank of each. Both ways are logarithmic. Among equals the one that was found first is first.
//!
//! While the journal is read again, URLs are asked for by their places, which ascend: then there is
//! one list in that order, and those that are removed leave a gap. The first question of the other
//! kind divides it.
//!
//! *Cost.* 14 bytes for a URL, and about two for room to grow and the tree. *Error.* Two URLs of a
//! host with the same tag, 32 bits of a hash with a seed that no site knows, share the mass of one.

use crate::journal::{Decoder, Place, push_number};
use crate::order::{Gift, Level, Weight, class_steps};

/// URLs in a bucket before there are twice as many buckets, on average.
const FULL: usize = 64;

const PLACE_BITS: u32 = 45;

/// A URL that waits.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed(2))]
pub(crate) struct Entry {
    tag: u32,
    /// The low half of the place.
    low: u32,
    /// 13 bits of the place, and the class that a sitemap gave it.
    high: u16,
    /// Its mass, nothing where it was removed; and its trust.
    mass: u16,
    trust: u16,
}

impl Entry {
    pub(crate) fn new(tag: u32, place: Place, weight: Weight, class: u8) -> Self {
        let place = place & ((1 << PLACE_BITS) - 1);
        Self {
            tag,
            low: place as u32,
            high: (place >> 32) as u16 | u16::from(class & 7) << 13,
            mass: weight.mass.bits().max(1),
            trust: weight.trust.bits(),
        }
    }

    pub(super) fn place(&self) -> Place {
        u64::from(self.high & 0x1fff) << 32 | u64::from(self.low)
    }

    pub(super) fn weight(&self) -> Weight {
        Weight {
            mass: Level::from_bits(self.mass),
            trust: Level::from_bits(self.trust),
        }
    }

    fn set(&mut self, weight: Weight) {
        (self.mass, self.trust) = (weight.mass.bits().max(1), weight.trust.bits());
    }

    fn class(&self) -> u8 {
        (self.high >> 13) as u8
    }

    /// The largest goes first; never 0.
    fn rank(&self) -> u64 {
        let steps = i32::from(self.mass) + class_steps(self.class());
        let last = (1 << PLACE_BITS) - 1;
        (steps.max(1) as u64) << PLACE_BITS | (last - self.place())
    }
}

/// The URLs of a host.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// By the first bits of the tags; a power of two, or none.
    buckets: Vec<Vec<Entry>>,
    /// The best rank of each bucket, from the middle on, and of each two below; where there are
    /// several buckets.
    tops: Vec<u64>,
    n: usize,
    /// Whether there is one bucket with ascending places, and gaps.
    is_list: bool,
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.n
    }

    /// Adds a URL, which must not be there.
    pub(super) fn push(&mut self, entry: Entry) {
        if self.n == 0 {
            self.buckets.truncate(1);
            self.buckets.iter_mut().for_each(Vec::clear);
            self.tops = Vec::new();
            self.is_list = true;
        }
        if self.buckets.is_empty() {
            self.buckets = vec![Vec::new()];
        }
        let last = self.buckets[0].last();
        if self.is_list && last.is_some_and(|last| last.place() >= entry.place()) {
            self.divide();
        }
        self.n += 1;
        if self.is_list {
            add(&mut self.buckets[0], entry);
            return;
        }
        let at = self.bucket_of(entry.tag);
        add(&mut self.buckets[at], entry);
        self.raise(at, entry.rank());
        if self.n > FULL * self.buckets.len() {
            self.spread(2 * self.buckets.len());
        }
    }

    /// The first URL.
    pub(super) fn first(&self) -> Option<&Entry> {
        let all = match self.tops.get(1) {
            Some(&top) => self.buckets.get(self.find_top(top)),
            None => self.buckets.first(),
        };
        let waiting = all?.iter().filter(|entry| entry.mass > 0);
        waiting.max_by_key(|entry| entry.rank())
    }

    /// Takes the first URL out.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.divide();
        let at = match self.tops.get(1) {
            Some(&top) => self.find_top(top),
            None => 0,
        };
        let bucket = self.buckets.get_mut(at)?;
        let ranks = bucket.iter().map(Entry::rank).enumerate();
        let (found, _) = ranks.max_by_key(|&(_, rank)| rank)?;
        let entry = bucket.swap_remove(found);
        if 2 * bucket.len() + 16 < bucket.capacity() {
            bucket.shrink_to(bucket.len() + 4);
        }
        self.n -= 1;
        self.renew(at);
        if self.buckets.len() > 1 && 8 * self.n < FULL * self.buckets.len() {
            self.spread(self.buckets.len() / 2);
        }
        Some(entry)
    }

    /// Gives something to the URL with a tag; returns its place and what it has now, if that is
    /// more than before. `name` stands for the URL whatever the seed of tags.
    pub(super) fn give(&mut self, tag: u32, name: u64, gift: Gift) -> Option<(Place, Weight)> {
        self.change(tag, |entry| entry.weight().plus(gift, name))
    }

    /// Raises the URL with a tag to this weight at least; returns its place and what it had.
    pub(super) fn lift(&mut self, tag: u32, least: Weight) -> Option<(Place, Weight)> {
        self.change(tag, |entry| Weight {
            mass: entry.weight().mass.max(least.mass),
            trust: entry.weight().trust.max(least.trust),
        })
    }

    fn change(&mut self, tag: u32, to: impl FnOnce(&Entry) -> Weight) -> Option<(Place, Weight)> {
        self.divide();
        let at = self.bucket_of(tag);
        let bucket = self.buckets.get_mut(at)?;
        let entry = bucket.iter_mut().find(|entry| entry.tag == tag)?;
        let weight = to(entry);
        if weight == entry.weight() {
            return None;
        }
        entry.set(weight);
        let (place, rank) = (entry.place(), entry.rank());
        self.raise(at, rank);
        Some((place, weight))
    }

    /// The trust of the URL with a tag.
    pub(super) fn trust(&mut self, tag: u32) -> Option<Level> {
        self.divide();
        let bucket = self.buckets.get(self.bucket_of(tag))?;
        let entry = bucket.iter().find(|entry| entry.tag == tag);
        entry.map(|entry| entry.weight().trust)
    }

    /// Takes the URL at a place out.
    pub(super) fn remove(&mut self, place: Place) -> Option<Entry> {
        let entry = self.find(place)?;
        let removed = *entry;
        entry.mass = 0;
        self.n -= 1;
        let list = &mut self.buckets[0];
        if list.len() > 2 * self.n + 8 {
            list.retain(|entry| entry.mass > 0);
            list.shrink_to_fit();
        }
        Some(removed)
    }

    /// Sets the weight of the URL at a place; whether it is there.
    pub(super) fn set(&mut self, place: Place, weight: Weight) -> bool {
        self.find(place).map(|entry| entry.set(weight)).is_some()
    }

    fn find(&mut self, place: Place) -> Option<&mut Entry> {
        self.line_up();
        let list = self.buckets.first_mut()?;
        let found = list.binary_search_by_key(&place, Entry::place).ok()?;
        list.get_mut(found).filter(|entry| entry.mass > 0)
    }

    /// Takes those out that are not to stay.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(Place) -> bool) {
        self.line_up();
        if let Some(list) = self.buckets.first_mut() {
            list.retain(|entry| entry.mass > 0 && stays(entry.place()));
            self.n = list.len();
        }
    }

    /// All URLs, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let all = self.buckets.iter().flatten();
        all.filter(|entry| entry.mass > 0)
    }

    fn bucket_of(&self, tag: u32) -> usize {
        let bits = self.buckets.len().max(1).ilog2();
        (u64::from(tag) << bits >> 32) as usize
    }

    /// Has tags find URLs.
    fn divide(&mut self) {
        if std::mem::take(&mut self.is_list) {
            self.buckets[0].retain(|entry| entry.mass > 0);
            let n_buckets = self.n.div_ceil(FULL).next_power_of_two();
            if n_buckets > 1 {
                self.spread(n_buckets);
            }
        }
    }

    /// Has places find URLs.
    fn line_up(&mut self) {
        if self.is_list || self.buckets.is_empty() {
            return;
        }
        let mut list = std::mem::take(&mut self.buckets).concat();
        list.sort_unstable_by_key(Entry::place);
        (self.buckets, self.tops) = (vec![list], Vec::new());
        self.is_list = true;
    }

    /// Distributes the URLs over this many buckets.
    fn spread(&mut self, n_buckets: usize) {
        let old = std::mem::take(&mut self.buckets);
        let mean = self.n / n_buckets;
        self.buckets = (0..n_buckets)
            .map(|_| Vec::with_capacity(mean + mean / 8))
            .collect();
        for bucket in old {
            for entry in bucket {
                let at = self.bucket_of(entry.tag);
                add(&mut self.buckets[at], entry);
            }
        }
        if n_buckets == 1 {
            self.tops = Vec::new();
            return;
        }
        self.tops = vec![0; 2 * n_buckets];
        for at in 0..n_buckets {
            self.tops[n_buckets + at] = best(&self.buckets[at]);
        }
        for at in (1..n_buckets).rev() {
            self.tops[at] = self.tops[2 * at].max(self.tops[2 * at + 1]);
        }
    }

    fn find_top(&self, top: u64) -> usize {
        let n_buckets = self.buckets.len();
        let mut at = 1;
        while at < n_buckets {
            at = 2 * at + usize::from(self.tops[2 * at] != top);
        }
        at - n_buckets
    }

    /// Takes down that a bucket has a URL of this rank.
    fn raise(&mut self, bucket: usize, rank: u64) {
        if self.tops.is_empty() {
            return;
        }
        let mut at = self.buckets.len() + bucket;
        while at > 0 && self.tops[at] < rank {
            self.tops[at] = rank;
            at /= 2;
        }
    }

    /// Looks for the best of a bucket again.
    fn renew(&mut self, bucket: usize) {
        if self.tops.is_empty() {
            return;
        }
        let mut at = self.buckets.len() + bucket;
        self.tops[at] = best(&self.buckets[bucket]);
        while at > 1 {
            at /= 2;
            self.tops[at] = self.tops[2 * at].max(self.tops[2 * at + 1]);
        }
    }

    /// Appends all of it as bytes. Places ascend: the difference to the one before is short.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut entries: Vec<Entry> = self.iter().copied().collect();
        if !self.is_list {
            entries.sort_unstable_by_key(Entry::place);
        }
        push_number(out, entries.len() as u64);
        let mut before = 0;
        for entry in entries {
            push_number(out, entry.place() - before);
            before = entry.place();
            let (tag, mass, trust) = (entry.tag, entry.mass, entry.trust);
            out.extend(tag.to_le_bytes());
            out.extend(mass.to_le_bytes());
            out.extend(trust.to_le_bytes());
            out.push(entry.class());
        }
    }

    /// Reads what was written.
    pub(super) fn read(reader: &mut Decoder<'_>) -> Option<Self> {
        let mut queue = Self::default();
        let mut place = 0_u64;
        let n = reader.number()?;
        if n > 0 {
            // A length that is not true must not take memory.
            queue.buckets = vec![Vec::with_capacity(n.min(1 << 16) as usize)];
            queue.is_list = true;
        }
        for _ in 0..n {
            place = place.checked_add(reader.number()?)?;
            let mut bytes = [0; 9];
            for byte in &mut bytes {
                *byte = reader.byte()?;
            }
            let [a, b, c, d, mass @ .., _, _, _] = bytes;
            let [.., e, f, class] = bytes;
            let weight = Weight {
                mass: Level::from_bits(u16::from_le_bytes(mass)),
                trust: Level::from_bits(u16::from_le_bytes([e, f])),
            };
            let tag = u32::from_le_bytes([a, b, c, d]);
            queue.buckets[0].push(Entry::new(tag, place, weight, class));
            queue.n += 1;
        }
        Some(queue)
    }
}

/// The best rank of some URLs; 0 if there are none.
fn best(entries: &[Entry]) -> u64 {
    entries.iter().map(Entry::rank).max().unwrap_or(0)
}

/// Adds to a list that grows by an eighth, since there are many of them.
fn add(list: &mut Vec<Entry>, entry: Entry) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 2);
    }
    list.push(entry);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use arose::mix::{SplitMix, mix};

    fn weight(mass: f32) -> Weight {
        Weight {
            mass: Level::of(mass),
            trust: Level::NONE,
        }
    }

    fn gift(mass: f32) -> Gift {
        Gift { mass, ..Gift::NONE }
    }

    fn tag(n: u64) -> u32 {
        (mix(n) >> 32) as u32
    }

    /// The URL that a plain list would give first.
    fn first(model: &BTreeMap<Place, (Weight, u8)>) -> Option<Place> {
        let rank = |weight: Weight, class| Entry::new(0, 0, weight, class).rank() >> PLACE_BITS;
        let all = model.iter().rev();
        all.max_by_key(|(_, (weight, class))| rank(*weight, *class))
            .map(|(&place, _)| place)
    }

    /// Whatever is pushed, raised, removed and written, the order is that of a plain list.
    #[test]
    fn as_a_plain_list() {
        let mut random = SplitMix::new(11);
        let mut queue = Queue::default();
        let mut model: BTreeMap<Place, (Weight, u8)> = BTreeMap::new();
        let mut place = 0;
        for round in 0..35_000_u64 {
            let growth = if (round / 5000) % 2 == 0 { 6 } else { 2 };
            match random.below(10) {
                n if n < growth => {
                    place += 1 + random.below(1 << 20);
                    let entry = (weight(random.below(50) as f32 / 7.0), (place % 8) as u8);
                    queue.push(Entry::new(tag(place), place, entry.0, entry.1));
                    let entry = (Entry::new(0, 0, entry.0, 0).weight(), entry.1);
                    model.insert(place, entry);
                }
                n if n < 8 => {
                    let expected = first(&model);
                    assert_eq!(queue.first().map(Entry::place), expected);
                    let found = queue.pop().map(|entry| entry.place());
                    assert_eq!(found, expected, "{round}");
                    expected.map(|place| model.remove(&place));
                }
                8 => {
                    let from = random.below(place.max(1));
                    if let Some((&place, entry)) = model.range_mut(from..).next() {
                        let mass = random.below(4) as f32;
                        let draw = round;
                        let gift = Gift {
                            mass,
                            trust: 0.1,
                            draw,
                        };
                        let given = queue.give(tag(place), place, gift);
                        entry.0 = entry.0.plus(gift, place);
                        assert_eq!(given, Some((place, entry.0)));
                    }
                    assert_eq!(queue.give(7, 7, Gift::NONE), None);
                }
                _ if round % 50 == 0 => {
                    let from = random.below(place.max(1));
                    let found = model.range(from..).next().map(|(&place, _)| place);
                    let removed = found.and_then(|place| queue.remove(place));
                    assert_eq!(removed.map(|entry| entry.place()), found);
                    found.map(|place| model.remove(&place));
                    let mut bytes = Vec::new();
                    queue.write(&mut bytes);
                    queue = Queue::read(&mut Decoder::new(&bytes)).unwrap();
                }
                _ => {}
            }
            assert_eq!(
                (queue.len(), queue.iter().count()),
                (model.len(), model.len())
            );
        }
        assert!(model.len() > 1000, "{}", model.len());
        let kept: Vec<Place> = model
            .keys()
            .copied()
            .filter(|place| place % 3 == 0)
            .collect();
        queue.retain(|place| place % 3 == 0);
        let mut places: Vec<Place> = std::iter::from_fn(|| queue.pop())
            .map(|entry| entry.place())
            .collect();
        places.sort_unstable();
        assert_eq!(places, kept);
    }

    /// What a push, a gift and a removal cost does not grow with the number of different masses.
    #[test]
    fn many_masses() {
        let mut queue = Queue::default();
        for n in 0..200_000_u64 {
            queue.push(Entry::new(tag(n), n, weight(1.0 + n as f32), 0));
            if n % 2 == 1 {
                let mass = (n * 7919 % 1000) as f32;
                queue.give(tag(n * 31 % n), n, gift(mass));
            }
        }
        let mut before = Level::MOST;
        for _ in 0..200_000 {
            let mass = queue.pop().unwrap().weight().mass;
            assert!(mass <= before);
            before = mass;
        }
        assert!(queue.pop().is_none() && queue.first().is_none());
    }

    /// Fourteen bytes a URL, and little room.
    #[test]
    fn urls_are_small() {
        assert_eq!(size_of::<Entry>(), 14);
        for n_urls in [500, 3000, 100_000] {
            let mut queue = Queue::default();
            for n in 0..n_urls {
                queue.push(Entry::new(tag(n), n, weight(1.0), 0));
                queue.give(tag(n), n, gift(1.0));
            }
            let buckets = queue.buckets.iter();
            let n_bytes: usize = buckets.map(|bucket| 14 * bucket.capacity() + 24).sum();
            let each = (n_bytes + 8 * queue.tops.len()) as f64 / n_urls as f64;
            assert!(each < 17.0, "{n_urls}: {each}");
        }
    }

    /// Places of 35 terabytes, and masses beyond the largest.
    #[test]
    fn extremes() {
        let place = (1 << PLACE_BITS) - 1;
        let most = Weight {
            mass: Level::MOST,
            trust: Level::MOST,
        };
        let entry = Entry::new(u32::MAX, place, most, 7);
        assert_eq!(
            (entry.place(), entry.weight(), entry.class()),
            (place, most, 7)
        );
        assert!(entry.rank() > Entry::new(0, place - 1, most, 6).rank());
        assert!(Entry::new(0, place, Weight::default(), 1).rank() > 0);
    }
}
