//! The documents of a component as sets of numbers, for fast computation of their similarity.

use std::ops::Range;

use arose::mix::mix;
use arose::simhash::Fingerprint384;

/// The documents of one component as sets of shingle numbers, and reused memory.
#[derive(Default)]
pub(crate) struct Room {
    pub(super) tokens: Vec<u64>,
    pub(crate) shingles: Vec<u64>,
    pub(super) simhashes: Vec<Option<Fingerprint384>>,
    /// Super-shingles, if they are not in a column.
    pub(super) features: Vec<[u64; 6]>,
    numbers: Numbers,
    /// The sets, one after the other: intervals, ascending within each set.
    intervals: Vec<Range<u32>>,
    sets: Vec<Set>,
    /// For each number, the last document in which it was seen, plus one.
    seen: Vec<u32>,
}

/// The position of the set of a document, and its number of elements.
struct Set {
    intervals: Range<usize>,
    n: u32,
}

impl Room {
    pub(crate) fn clear(&mut self) {
        self.simhashes.clear();
        self.features.clear();
        self.intervals.clear();
        self.sets.clear();
        self.seen.clear();
        self.numbers.clear();
    }

    /// Adds `shingles` as those of the next document.
    pub(crate) fn push_doc(&mut self) {
        let doc = self.sets.len() as u32 + 1;
        let first = self.intervals.len();
        let mut current = 0..0;
        let (mut n, mut next) = (0, 0);
        for &shingle in &self.shingles {
            let number = self.numbers.number(shingle, next);
            next = number + 1;
            if number as usize == self.seen.len() {
                self.seen.push(0);
            }
            if std::mem::replace(&mut self.seen[number as usize], doc) == doc {
                continue;
            }
            n += 1;
            if number == current.end {
                current.end += 1;
            } else {
                self.intervals
                    .push(std::mem::replace(&mut current, number..number + 1));
            }
        }
        self.intervals.push(current);
        let own = &mut self.intervals[first..];
        own.sort_unstable_by_key(|interval| (interval.start, interval.end));
        self.sets.push(Set {
            intervals: first..self.intervals.len(),
            n,
        });
    }

    /// Returns an upper bound on the similarity, by the sizes of the sets.
    pub(crate) fn most_jaccard(&self, places: [usize; 2]) -> f64 {
        let [a, b] = places.map(|place| self.sets[place].n);
        f64::from(a.min(b)) / f64::from(a.max(b))
    }

    pub(crate) fn jaccard(&self, places: [usize; 2]) -> f64 {
        let [a, b] = places.map(|place| &self.sets[place]);
        let common = n_common(
            &self.intervals[a.intervals.clone()],
            &self.intervals[b.intervals.clone()],
        );
        f64::from(common) / f64::from(a.n + b.n - common)
    }
}

/// Returns the number of common elements of two ascending lists of intervals. Which list advances
/// is computed without a branch, since it is unpredictable.
fn n_common(a: &[Range<u32>], b: &[Range<u32>]) -> u32 {
    let (mut i, mut j, mut n) = (0, 0, 0);
    while let (Some(one), Some(other)) = (a.get(i), b.get(j)) {
        let end = one.end.min(other.end);
        n += end.saturating_sub(one.start.max(other.start));
        i += usize::from(one.end == end);
        j += usize::from(other.end == end);
    }
    n
}

/// Numbers shingles in the order of their first occurrence: an open hash table that doubles when it
/// is half full.
#[derive(Default)]
pub(super) struct Numbers {
    /// Numbers plus one; zero is a free slot.
    slots: Vec<u32>,
    shingles: Vec<u64>,
}

/// Number of slots of an empty table.
const N_SLOTS: usize = 1 << 12;

impl Numbers {
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.slots.resize(N_SLOTS, 0);
        self.shingles.clear();
    }

    /// Returns the number of a shingle, which usually is `guess`.
    pub(super) fn number(&mut self, shingle: u64, guess: u32) -> u32 {
        if self.shingles.get(guess as usize) == Some(&shingle) {
            return guess;
        }
        let at = self.slot(shingle);
        match self.slots[at] {
            0 => self.insert(shingle, at),
            number => number - 1,
        }
    }

    fn insert(&mut self, shingle: u64, at: usize) -> u32 {
        let number = self.shingles.len() as u32;
        self.shingles.push(shingle);
        self.slots[at] = number + 1;
        if 2 * self.shingles.len() > self.slots.len() {
            self.grow();
        }
        number
    }

    /// Returns the slot of a shingle, or the slot where it would be.
    fn slot(&self, shingle: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = mix(shingle) as usize & mask;
        loop {
            match self.slots[at] {
                0 => return at,
                number if self.shingles[number as usize - 1] == shingle => return at,
                _ => at = (at + 1) & mask,
            }
        }
    }

    fn grow(&mut self) {
        let n_slots = 2 * self.slots.len();
        self.slots.clear();
        self.slots.resize(n_slots, 0);
        for number in 0..self.shingles.len() {
            let at = self.slot(self.shingles[number]);
            self.slots[at] = number as u32 + 1;
        }
    }
}
