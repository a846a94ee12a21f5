//! The queued URLs of a host, the one with the largest mass first.
//!
//! *Question.* Masses change while URLs are queued: every page that links to a URL raises it. Which
//! URL is next, and where in the queue is the target of a link? There may be fifty million of them.
//!
//! *Idea.* URLs are sorted by a hash of their names, the *tag*, and divided into buckets of a few
//! hundred, like the leaves of a B-tree, so that a URL is found by binary search. A tree above the
//! buckets has the best rank of each. Among equals, the URL that was found first comes first.
//!
//! While the journal is replayed, URLs are looked up by their positions, which ascend. Then there
//! is one list in that order, in which removed URLs leave a gap. The first lookup by tag sorts it
//! by tag.
//!
//! *Cost.* 11 bytes per URL, and about one for blocks ([`super::blocks`]) and the tree. A URL is
//! found in logarithmic time. Adding or removing one moves and scans its bucket, whose size is
//! bounded whatever the names are. *Error.* Tags are 28 bits of a hash. Two URLs of a host with
//! the same tag share the mass of the one found first, and the contribution of a link to a page
//! that was already fetched goes to a given queued URL with a probability of 1 in 270 million.
//! (With 24 bits, the order of a host with 300,000 URLs changed noticeably.)

use arose::mix::mix;

use super::blocks::Blocks;
use crate::journal::{Decoder, Place, push_number};
use crate::order::{Gift, Level, Weight, class_steps};

/// Maximum number of URLs in a bucket; a larger one is split.
const FULL: usize = 512;

/// Number of bits of a tag that are among the others of an entry; 24 more precede them.
const LOW_BITS: u32 = 4;
const TAG_BITS: u32 = 24 + LOW_BITS;
const PLACE_BITS: u32 = 40;
/// The first bits of the class, the lower bits of the tag, the position and the rank among the URLs
/// of a host; the trust is below.
const CLASS: u32 = 5;
const LOW: u32 = CLASS + 3;
const PLACE: u32 = LOW + LOW_BITS;
const STEPS_AT: u32 = PLACE + PLACE_BITS;
/// The bits of class and trust, and those of the trust.
const OTHERS: u64 = (1 << LOW) - 1;
const TRUST: u64 = (1 << CLASS) - 1;

/// The largest position of an entry: a terabyte of journal, done or not.
pub(crate) const MAX_PLACE: Place = (1 << PLACE_BITS) - 1;

/// Identifies a URL at its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Tag(u32);

impl Tag {
    /// Returns the tag for the second half of a fingerprint.
    pub(crate) fn of(rest_hash: u64) -> Self {
        Self((mix(rest_hash) >> (64 - TAG_BITS)) as u32)
    }

    pub(crate) fn to_number(self) -> u32 {
        self.0
    }

    /// Returns the tag with this number, of which 28 bits are used.
    pub(crate) fn from_number(number: u32) -> Self {
        Self(number & ((1 << TAG_BITS) - 1))
    }
}

/// A queued URL.
#[derive(Debug, Clone, Copy)]
#[repr(C, packed)]
pub(crate) struct QueueEntry {
    /// The upper bits of the tag.
    high: [u8; 3],
    /// Ordered so that the largest comes first: 12 bits for the mass, moved by the class from a
    /// sitemap, zero if removed; 40 bits for the position, the earliest being the largest; then 4
    /// bits for the tag, 3 for the class and 5 for the trust.
    rest: u64,
}

impl QueueEntry {
    pub(crate) fn new(tag: Tag, place: Place, weight: Weight, class: u8) -> Self {
        let mut entry = Self::with(tag, place, u64::from(class & 7) << CLASS);
        entry.set(weight);
        entry
    }

    /// Returns an entry with these other bits.
    fn with(Tag(tag): Tag, place: Place, others: u64) -> Self {
        let turn = MAX_PLACE - place.min(MAX_PLACE);
        let [_, high @ ..] = (tag >> LOW_BITS).to_be_bytes();
        let low = u64::from(tag) & ((1 << LOW_BITS) - 1);
        Self {
            high,
            rest: turn << PLACE | low << LOW | others,
        }
    }

    fn tag(&self) -> Tag {
        let [a, b, c] = self.high;
        let low = (self.rest >> LOW) as u32 & ((1 << LOW_BITS) - 1);
        Tag(u32::from_be_bytes([0, a, b, c]) << LOW_BITS | low)
    }

    pub(super) fn place(&self) -> Place {
        MAX_PLACE - (self.rest >> PLACE & MAX_PLACE)
    }

    pub(super) fn weight(&self) -> Weight {
        let mass = (self.rest >> STEPS_AT) as i32 - class_steps(self.class()) - class_steps(7);
        Weight::from_small(mass as u16, (self.rest & TRUST) as u16)
    }

    fn set(&mut self, weight: Weight) {
        let (mass, trust) = weight.to_small();
        let steps = i32::from(mass) + class_steps(self.class()) + class_steps(7);
        let others = self.rest & ((1 << STEPS_AT) - 1) & !TRUST;
        self.rest = (steps as u64) << STEPS_AT | others | u64::from(trust);
    }

    fn is_removed(&self) -> bool {
        self.rest >> STEPS_AT == 0
    }

    fn remove(&mut self) {
        self.rest &= (1 << STEPS_AT) - 1;
    }

    fn class(&self) -> u8 {
        (self.rest >> CLASS) as u8 & 7
    }

    /// Whether a user waits for it.
    pub(super) fn is_urgent(&self) -> bool {
        self.class() == 7
    }

    /// Returns the sort key.
    fn key(&self) -> (Tag, Place) {
        (self.tag(), self.place())
    }

    /// Returns the rank; the largest comes first. Never 0.
    fn rank(&self) -> u64 {
        self.rest >> PLACE
    }
}

/// The URLs of a host.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Sorted by tag, none of them empty unless it is the only one; or all by position.
    buckets: Vec<Blocks>,
    /// The best rank of each bucket, in the second half, and of each two below; only if there are
    /// several.
    tops: Vec<u64>,
    n: usize,
    /// Whether there is one bucket with ascending positions, and gaps.
    is_list: bool,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.n
    }

    /// Adds a URL, which must not be in the queue.
    pub(crate) fn push(&mut self, entry: QueueEntry) {
        if self.n == 0 {
            *self = Self {
                buckets: vec![Blocks::default()],
                is_list: true,
                ..Self::default()
            };
        }
        let last = self.buckets[0].last();
        if self.is_list && last.is_some_and(|last| last.place() >= entry.place()) {
            self.divide();
        }
        self.n += 1;
        if self.is_list {
            self.buckets[0].push(entry);
            return;
        }
        let at = self.bucket_of(entry.key());
        let bucket = &mut self.buckets[at];
        let to = bucket.partition_point(|other| other.key() < entry.key());
        bucket.insert(to, entry);
        match bucket.len() > FULL {
            true => self.cut(at),
            false => self.raise(at, entry.rank()),
        }
    }

    /// Returns the first URL.
    pub(super) fn first(&self) -> Option<&QueueEntry> {
        if self.is_list {
            let waiting = self.iter();
            return waiting.max_by_key(|entry| entry.rank());
        }
        let (bucket, at) = self.find_first()?;
        self.buckets[bucket].get(at)
    }

    /// Removes the first URL and returns it.
    pub(super) fn pop(&mut self) -> Option<QueueEntry> {
        self.divide();
        let (at, found) = self.find_first()?;
        let bucket = &mut self.buckets[at];
        let entry = bucket.remove(found)?;
        self.n -= 1;
        self.renew(at);
        if self.buckets[at].len() <= FULL / 8 && self.buckets.len() > 1 {
            self.merge(at);
        }
        Some(entry)
    }

    /// Returns the bucket of the first URL, and its position there.
    fn find_first(&self) -> Option<(usize, usize)> {
        let n_buckets = self.buckets.len();
        let mut at = 1;
        let top = match self.tops.get(1) {
            Some(&top) => top,
            None => best(self.buckets.first()?),
        };
        while at < n_buckets {
            at = 2 * at + usize::from(self.tops[2 * at] != top);
        }
        let bucket = at - n_buckets;
        let mut entries = self.buckets[bucket].iter();
        let found = entries.position(|entry| entry.rank() == top)?;
        Some((bucket, found))
    }

    /// Splits a bucket.
    fn cut(&mut self, at: usize) {
        let entries: Vec<QueueEntry> = self.buckets[at].iter().copied().collect();
        let (first, second) = entries.split_at(FULL / 2);
        // Its blocks are freed first, so that the halves get them.
        self.buckets[at] = Blocks::default();
        self.buckets[at] = Blocks::of(first);
        let half = Blocks::of(second);
        let mut leaves = match self.tops.is_empty() {
            true => vec![0],
            false => self.tops.split_off(self.buckets.len()),
        };
        leaves[at] = best(&self.buckets[at]);
        leaves.insert(at + 1, best(&half));
        self.buckets.reserve_exact(1);
        self.buckets.insert(at + 1, half);
        self.build_tops(&leaves);
    }

    /// Merges a bucket with few URLs with its neighbour, unless that has too many.
    fn merge(&mut self, at: usize) {
        let left = at.min(self.buckets.len() - 2);
        let n = self.buckets[left].len() + self.buckets[left + 1].len();
        if n > FULL {
            return;
        }
        let mut leaves = self.tops.split_off(self.buckets.len());
        let next = self.buckets.remove(left + 1);
        let bucket = &mut self.buckets[left];
        let entries: Vec<QueueEntry> = bucket.iter().chain(next.iter()).copied().collect();
        *bucket = Blocks::of(&entries);
        let best = leaves.remove(left + 1);
        leaves[left] = leaves[left].max(best);
        self.build_tops(&leaves);
    }

    /// Adds a contribution to the URL with a tag. Returns its position and its new weight, if that
    /// has grown. `name` identifies the URL.
    pub(crate) fn give(&mut self, tag: Tag, name: u64, gift: Gift) -> Option<(Place, Weight)> {
        self.change(tag, |entry| entry.weight().plus(gift, name))
    }

    /// Raises the URL with a tag to at least this weight. Returns its position and its old weight.
    pub(super) fn lift(&mut self, tag: Tag, least: Weight) -> Option<(Place, Weight)> {
        self.change(tag, |entry| Weight {
            mass: entry.weight().mass.max(least.mass),
            trust: entry.weight().trust.max(least.trust),
        })
    }

    /// Sets the mass of the URL with a tag. Returns its position and its new weight.
    pub(super) fn reweigh(&mut self, tag: Tag, mass: Level) -> Option<(Place, Weight)> {
        self.change(tag, |entry| Weight {
            mass,
            ..entry.weight()
        })
    }

    fn change(
        &mut self,
        tag: Tag,
        to: impl FnOnce(&QueueEntry) -> Weight,
    ) -> Option<(Place, Weight)> {
        let (bucket, at) = self.find_tag(tag)?;
        let entry = self.buckets[bucket].get_mut(at)?;
        let weight = to(entry);
        if weight == entry.weight() {
            return None;
        }
        let before = entry.rank();
        entry.set(weight);
        let (place, rank) = (entry.place(), entry.rank());
        match rank > before {
            true => self.raise(bucket, rank),
            false => self.renew(bucket),
        }
        Some((place, weight))
    }

    /// Returns the trust of the URL with a tag.
    pub(super) fn trust(&mut self, tag: Tag) -> Option<Level> {
        let (bucket, at) = self.find_tag(tag)?;
        Some(self.buckets[bucket].get(at)?.weight().trust)
    }

    /// Returns the bucket of the first URL with a tag, and its position there.
    fn find_tag(&mut self, tag: Tag) -> Option<(usize, usize)> {
        self.divide();
        let mut bucket = self.bucket_of((tag, 0));
        let entries = self.buckets.get(bucket)?;
        let mut at = entries.partition_point(|entry| entry.key() < (tag, 0));
        if at == entries.len() {
            (bucket, at) = (bucket + 1, 0);
        }
        let found = self.buckets.get(bucket)?.get(at)?;
        (found.key().0 == tag).then_some((bucket, at))
    }

    /// Removes the URL at a position.
    pub(super) fn remove(&mut self, place: Place) -> Option<QueueEntry> {
        let entry = self.find(place)?;
        let removed = *entry;
        entry.remove();
        self.n -= 1;
        let list = &mut self.buckets[0];
        if list.len() > 2 * self.n + 8 {
            *list = those(list, |_| true);
        }
        Some(removed)
    }

    /// Sets the weight of the URL at a position. Returns whether it is in the queue.
    pub(super) fn set(&mut self, place: Place, weight: Weight) -> bool {
        self.find(place).map(|entry| entry.set(weight)).is_some()
    }

    fn find(&mut self, place: Place) -> Option<&mut QueueEntry> {
        self.line_up();
        let list = self.buckets.first_mut()?;
        let found = list.partition_point(|entry| entry.place() < place);
        let entry = list.get_mut(found)?;
        (entry.place() == place && !entry.is_removed()).then_some(entry)
    }

    /// Removes all URLs for which `stays` is false.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(Place) -> bool) {
        self.line_up();
        if let Some(list) = self.buckets.first_mut() {
            *list = those(list, |entry| stays(entry.place()));
            self.n = list.len();
        }
    }

    /// Returns all URLs, in any order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &QueueEntry> {
        let all = self.buckets.iter().flat_map(Blocks::iter);
        all.filter(|entry| !entry.is_removed())
    }

    /// Returns the bucket to which a key belongs.
    fn bucket_of(&self, key: (Tag, Place)) -> usize {
        let is_before = |bucket: &Blocks| bucket.get(0).is_some_and(|first| first.key() <= key);
        let n_before = self.buckets.partition_point(is_before);
        n_before.saturating_sub(1)
    }

    /// Sorts by tag, so that URLs are found by tag.
    fn divide(&mut self) {
        if !std::mem::take(&mut self.is_list) {
            return;
        }
        let mut list: Vec<QueueEntry> = self.iter().copied().collect();
        list.sort_unstable_by_key(QueueEntry::key);
        self.buckets.clear();
        self.buckets = match list.len() > FULL {
            true => list.chunks(FULL * 3 / 4).map(Blocks::of).collect(),
            false => vec![Blocks::of(&list)],
        };
        let leaves: Vec<u64> = self.buckets.iter().map(best).collect();
        self.build_tops(&leaves);
    }

    /// Sorts by position, so that URLs are found by position.
    fn line_up(&mut self) {
        if self.is_list || self.buckets.is_empty() {
            return;
        }
        let mut list: Vec<QueueEntry> = self.iter().copied().collect();
        list.sort_unstable_by_key(QueueEntry::place);
        self.buckets.clear();
        (self.buckets, self.tops) = (vec![Blocks::of(&list)], Vec::new());
        self.is_list = true;
    }

    /// Builds the tree above the best ranks of all buckets.
    fn build_tops(&mut self, leaves: &[u64]) {
        let n_buckets = leaves.len();
        if n_buckets < 2 {
            self.tops = Vec::new();
            return;
        }
        let mut tops = vec![0; 2 * n_buckets];
        tops[n_buckets..].copy_from_slice(leaves);
        for at in (1..n_buckets).rev() {
            tops[at] = tops[2 * at].max(tops[2 * at + 1]);
        }
        self.tops = tops;
    }

    /// Records that a bucket has a URL of this rank.
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

    /// Finds the best rank of a bucket again.
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

    /// Appends the queue as bytes. Positions ascend, so the difference to the previous one is
    /// short.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut entries: Vec<QueueEntry> = self.iter().copied().collect();
        if !self.is_list {
            entries.sort_unstable_by_key(QueueEntry::place);
        }
        push_number(out, entries.len() as u64);
        let mut before = 0;
        for entry in entries {
            push_number(out, entry.place() - before);
            before = entry.place();
            let Tag(tag) = entry.tag();
            out.extend(tag.to_be_bytes());
            let weight = entry.rest >> STEPS_AT << LOW | entry.rest & OTHERS;
            out.extend(weight.to_le_bytes().iter().take(3));
        }
    }

    /// Reads a queue from its bytes.
    pub(super) fn read(reader: &mut Decoder<'_>) -> Option<Self> {
        let mut queue = Self::default();
        let mut place = 0_u64;
        let n = reader.number()?;
        if n > 0 {
            queue.buckets = vec![Blocks::default()];
            queue.is_list = true;
        }
        for _ in 0..n {
            place = place.checked_add(reader.number()?)?;
            let mut bytes = [0; 7];
            for byte in &mut bytes {
                *byte = reader.byte()?;
            }
            let [tag @ .., a, b, c] = bytes;
            let weight = u64::from(u32::from_le_bytes([a, b, c, 0]));
            let others = weight >> LOW << STEPS_AT | weight & OTHERS;
            let tag = Tag::from_number(u32::from_be_bytes(tag));
            queue.buckets[0].push(QueueEntry::with(tag, place, others));
            queue.n += 1;
        }
        Some(queue)
    }
}

/// Returns the best rank of some URLs; 0 if there are none.
fn best(entries: &Blocks) -> u64 {
    let rests = entries.slices().map(|slice| {
        let rests = slice.iter().map(|entry| entry.rest);
        rests.max().unwrap_or(0)
    });
    rests.max().unwrap_or(0) >> PLACE
}

/// Returns the URLs of a list that are not removed and that are to stay.
fn those(list: &Blocks, mut stay: impl FnMut(&QueueEntry) -> bool) -> Blocks {
    let entries = list.iter().filter(|entry| !entry.is_removed());
    let entries: Vec<QueueEntry> = entries.filter(|entry| stay(entry)).copied().collect();
    Blocks::of(&entries)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use arose::mix::SplitMix;

    fn weight(mass: f32) -> Weight {
        Weight {
            mass: Level::of(mass),
            trust: Level::NONE,
        }
    }

    fn gift(mass: f32) -> Gift {
        Gift { mass, ..Gift::NONE }
    }

    fn tag(n: u64) -> Tag {
        Tag::of(n)
    }

    /// Returns the first URL according to an unsorted list.
    fn first(model: &BTreeMap<Place, (Weight, u8)>) -> Option<Place> {
        let rank =
            |weight: Weight, class| QueueEntry::new(tag(0), 0, weight, class).rank() >> PLACE_BITS;
        let all = model.iter().rev();
        all.max_by_key(|(_, (weight, class))| rank(*weight, *class))
            .map(|(&place, _)| place)
    }

    /// Whatever is pushed, raised, removed and written, the order is that of an unsorted list.
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
                    queue.push(QueueEntry::new(tag(place), place, entry.0, entry.1));
                    let entry = (QueueEntry::new(tag(0), 0, entry.0, 0).weight(), entry.1);
                    model.insert(place, entry);
                }
                n if n < 8 => {
                    let expected = first(&model);
                    assert_eq!(queue.first().map(QueueEntry::place), expected);
                    let found = queue.pop().map(|entry| entry.place());
                    assert_eq!(found, expected, "{round}");
                    expected.map(|place| model.remove(&place));
                }
                8 => {
                    let from = random.below(place.max(1));
                    if let Some((&place, entry)) = model.range_mut(from..).next() {
                        let mass = random.below(4) as f32;
                        let gift = Gift {
                            mass,
                            trust: 0.1,
                            draw: round,
                            is_link: true,
                        };
                        let given = queue.give(tag(place), place, gift);
                        let before = entry.0;
                        entry.0 = before.plus(gift, place);
                        let is_more = entry.0 != before;
                        assert_eq!(given, is_more.then_some((place, entry.0)));
                    }
                    assert_eq!(queue.give(tag(7), 7, Gift::NONE), None);
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

    /// The cost of a push, a contribution and a removal does not grow with the number of different
    /// masses.
    #[test]
    fn many_masses() {
        let mut queue = Queue::default();
        for n in 0..200_000_u64 {
            queue.push(QueueEntry::new(tag(n), n, weight(1.0 + n as f32), 0));
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

    /// Eleven bytes per URL, and little spare capacity.
    #[test]
    fn issue_26_urls_are_small() {
        assert_eq!(size_of::<QueueEntry>(), 11);
        for n_urls in [100, 500, 3000, 100_000] {
            let mut queue = Queue::default();
            for n in 0..n_urls {
                queue.push(QueueEntry::new(tag(n), n, weight(1.0), 0));
                queue.give(tag(n), n, gift(1.0));
            }
            // A block of memory has a header of eight bytes and is rounded up to sixteen.
            let block = |n_bytes: usize| (n_bytes + 8).next_multiple_of(16);
            let n_bytes: usize = queue.buckets.iter().map(Blocks::n_bytes).sum();
            let above = block(48 * queue.buckets.capacity()) + block(8 * queue.tops.capacity());
            let each = (n_bytes + above + size_of::<Queue>()) as f64 / n_urls as f64;
            assert!(
                each < if n_urls < 500 { 14.0 } else { 12.0 },
                "{n_urls}: {each}"
            );
        }
    }

    /// Thousands of names that share a tag cost no more than others, and the first one gets the
    /// contributions of links.
    #[test]
    fn issue_26_equal_tags() {
        let mut queue = Queue::default();
        for n in 0..20_000 {
            queue.push(QueueEntry::new(tag(n % 3), n, weight(1.0), 0));
            queue.give(tag(0), 0, gift(0.1));
        }
        assert!(queue.buckets.iter().all(|bucket| bucket.len() <= FULL));
        assert_eq!(queue.pop().map(|entry| entry.place()), Some(0));
        let others = std::iter::from_fn(|| queue.pop()).map(|entry| entry.place());
        assert!(others.eq(1..20_000));
    }

    /// The largest positions, and masses beyond the largest.
    #[test]
    fn extremes() {
        let most = Weight {
            mass: Level::MOST,
            trust: Level::MOST,
        };
        let entry = QueueEntry::new(tag(1), MAX_PLACE, most, 7);
        assert_eq!((entry.place(), entry.class()), (MAX_PLACE, 7));
        assert!((entry.weight().mass.amount() / 2048.0 - 1.0).abs() < 3e-3);
        assert_eq!(entry.weight().trust.amount(), 1024.0);
        assert!(entry.rank() > QueueEntry::new(tag(1), MAX_PLACE - 1, most, 6).rank());
        let least = QueueEntry::new(tag(1), MAX_PLACE, Weight::default(), 1);
        assert!(least.rank() > 0 && !least.is_removed());
    }
}
