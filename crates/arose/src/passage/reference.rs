//! A reference: items whose windows are looked up in other texts.
//!
//! *Question.* Which of a few texts (test questions, a quotation) occur in a corpus, in part or as
//! a whole?
//!
//! *Idea.* Hash every window of the items once. Each window of a text is looked up behind a small
//! filter, so text that has nothing in common with the reference costs one hash and one lookup in
//! the filter. Windows that pass are compared by 122 bits of hash.
//!
//! *Short items.* An item with fewer tokens than a window has none. [`WholeItems`] finds it as a
//! whole, if it has at least [`MIN_WHOLE`] tokens.
//!
//! *Cost.* Time linear in items and texts; memory about [`BYTES_PER_WINDOW`] bytes for each window
//! of the items. *Error.* None except hash collisions, 2^-122 per pair of windows.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::rolling::{RollingHash, WindowHash};

/// Items with fewer tokens are not decided.
pub const MIN_WHOLE: usize = 8;
/// Maximum bytes of memory for each window of a reference.
pub const BYTES_PER_WINDOW: u64 = 48;

/// An in-memory index of items that finds them in any text.
///
/// ```
/// use arose::passage::Reference;
/// let reference = Reference::new([&[1, 2, 3, 4, 5][..]], 3);
/// let runs = reference.shared_runs(&[9, 2, 3, 4, 5, 9]);
/// assert_eq!((runs[0].item, runs[0].item_tokens.clone(), runs[0].start), (0, 1..5, 1));
/// ```
#[derive(Debug, Clone)]
pub struct Reference {
    n_tokens: usize,
    n_windows: u64,
    /// Distinct windows by hash.
    distinct: Vec<Distinct>,
    /// Items and tokens, distinct window by distinct window.
    places: Vec<[u32; 2]>,
    filter: HashFilter,
    /// The first distinct window for each hash prefix.
    starts: Vec<u32>,
}

/// A distinct window.
#[derive(Debug, Clone, Copy)]
struct Distinct {
    hash: WindowHash,
    /// The index of its first place.
    places_at: u32,
}

/// A window of a text that is also in the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hit {
    /// The first token in the text.
    pub start: u32,
    /// The number of the distinct window; see [`Reference::places`].
    pub window: u32,
}

/// A maximal run of tokens that an item and a text have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedRun {
    /// The number of the item.
    pub item: u32,
    /// Its tokens.
    pub item_tokens: Range<u32>,
    /// The first token in the text.
    pub start: u32,
}

impl Reference {
    /// Builds a reference from items given as token fingerprints, for windows of `n_tokens`.
    #[must_use]
    pub fn new<'a>(items: impl IntoIterator<Item = &'a [u64]>, n_tokens: usize) -> Self {
        let mut builder = Builder::new(n_tokens);
        for item in items {
            builder.push(item);
        }
        builder.finish()
    }

    /// Returns the number of windows of all items.
    #[must_use]
    pub fn n_windows(&self) -> u64 {
        self.n_windows
    }

    /// Returns the number of distinct windows.
    #[must_use]
    pub fn n_distinct(&self) -> usize {
        self.distinct.len()
    }

    /// Returns the places of a distinct window: items and tokens, in order.
    #[must_use]
    pub fn places(&self, window: u32) -> &[[u32; 2]] {
        let end = match self.distinct.get(window as usize + 1) {
            Some(next) => next.places_at as usize,
            None => self.places.len(),
        };
        &self.places[self.distinct[window as usize].places_at as usize..end]
    }

    /// Returns the windows of a text that are also in the reference, in order.
    #[must_use]
    pub fn hits(&self, tokens: &[u64]) -> Vec<Hit> {
        if tokens.len() < self.n_tokens || self.distinct.is_empty() {
            return Vec::new();
        }
        let rolling = RollingHash::new(tokens);
        let mut starts = Vec::new();
        rolling.for_each_first(self.n_tokens, |start, hash| {
            if self.filter.may_hold(hash) && self.finds_first(hash) {
                starts.push(start as u32);
            }
        });
        if starts.is_empty() {
            return Vec::new();
        }
        // Few texts need the other half of the hash.
        let hashes = rolling.windows(self.n_tokens);
        let hit = |start: u32| {
            let window = self.find(hashes[start as usize])?;
            Some(Hit { start, window })
        };
        starts.into_iter().filter_map(hit).collect()
    }

    /// Returns all maximal runs of at least one window that a text shares with an item, by item,
    /// then place.
    #[must_use]
    pub fn shared_runs(&self, tokens: &[u64]) -> Vec<SharedRun> {
        let mut joiner = Joiner::new(self.n_tokens as u32);
        let mut runs = Vec::new();
        for hit in self.hits(tokens) {
            joiner.push(hit.start, self.places(hit.window), |run| runs.push(run));
        }
        joiner.finish(|run| runs.push(run));
        runs.sort_unstable_by_key(|run| (run.item, run.item_tokens.start, run.start));
        runs
    }

    fn bucket(&self, first: u64) -> Range<usize> {
        let key = (first >> self.filter.bucket_shift) as usize;
        self.starts[key] as usize..self.starts[key + 1] as usize
    }

    fn finds_first(&self, first: u64) -> bool {
        let bucket = &self.distinct[self.bucket(first)];
        bucket.iter().any(|window| window.hash[0] == first)
    }

    fn find(&self, hash: WindowHash) -> Option<u32> {
        let bucket = self.bucket(hash[0]);
        let place = self.distinct[bucket.clone()]
            .iter()
            .position(|window| window.hash == hash)?;
        Some((bucket.start + place) as u32)
    }
}

/// Builds a [`Reference`] from items one after the other.
#[derive(Debug)]
pub struct Builder {
    n_tokens: usize,
    n_items: u32,
    windows: Vec<(WindowHash, [u32; 2])>,
}

impl Builder {
    /// Creates a builder for windows of `n_tokens`.
    #[must_use]
    pub fn new(n_tokens: usize) -> Self {
        Self {
            n_tokens,
            n_items: 0,
            windows: Vec::new(),
        }
    }

    /// Adds an item.
    pub fn push(&mut self, tokens: &[u64]) {
        let item = self.n_items;
        self.n_items += 1;
        let hashes = RollingHash::new(tokens).windows(self.n_tokens);
        let placed = hashes.into_iter().zip(0..);
        self.windows
            .extend(placed.map(|(hash, token)| (hash, [item, token])));
    }

    /// Returns the reference.
    #[must_use]
    pub fn finish(mut self) -> Reference {
        self.windows.sort_unstable();
        let mut distinct: Vec<Distinct> = Vec::new();
        let mut places = Vec::with_capacity(self.windows.len());
        for (hash, place) in &self.windows {
            if distinct.last().is_none_or(|last| last.hash != *hash) {
                distinct.push(Distinct {
                    hash: *hash,
                    places_at: places.len() as u32,
                });
            }
            places.push(*place);
        }
        let filter = HashFilter::new(distinct.iter().map(|window| window.hash[0]));
        let mut starts = vec![0; (1 << (HASH_BITS - filter.bucket_shift)) + 1];
        for window in &distinct {
            starts[(window.hash[0] >> filter.bucket_shift) as usize + 1] += 1;
        }
        for key in 1..starts.len() {
            starts[key] += starts[key - 1];
        }
        Reference {
            n_tokens: self.n_tokens,
            n_windows: places.len() as u64,
            distinct,
            places,
            filter,
            starts,
        }
    }
}

/// Bits of the first half of a window's hash.
const HASH_BITS: u32 = 61;

/// A filter that rejects most hashes that are not in a set.
#[derive(Debug, Clone)]
struct HashFilter {
    words: Vec<u64>,
    /// Bits removed from a hash to find its word.
    word_shift: u32,
    /// Bits removed from a hash to find its bucket: one for about two windows.
    bucket_shift: u32,
}

impl HashFilter {
    /// Creates a filter with sixteen bits for each hash, three of them set, all in one word.
    fn new(hashes: impl ExactSizeIterator<Item = u64>) -> Self {
        let n_words = (hashes.len() / 4).next_power_of_two().max(2);
        let n_buckets = (hashes.len() / 2).next_power_of_two().max(2);
        let mut filter = Self {
            words: vec![0; n_words],
            word_shift: HASH_BITS - n_words.ilog2(),
            bucket_shift: HASH_BITS - n_buckets.ilog2(),
        };
        for hash in hashes {
            let word = (hash >> filter.word_shift) as usize;
            filter.words[word] |= bits(hash);
        }
        filter
    }

    fn may_hold(&self, hash: u64) -> bool {
        let bits = bits(hash);
        self.words[(hash >> self.word_shift) as usize] & bits == bits
    }
}

fn bits(hash: u64) -> u64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63)
}

/// An index of short items that finds them as a whole.
///
/// ```
/// use arose::passage::WholeItems;
/// let items = WholeItems::new([(7, &[1, 2, 3, 4, 5, 6, 7, 8, 9][..])]);
/// assert_eq!(items.find(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]), [[7, 1]]);
/// assert!(items.find(&[1, 2, 3, 4, 5, 6, 7, 8]).is_empty());
/// ```
#[derive(Debug, Clone)]
pub struct WholeItems {
    /// The first [`MIN_WHOLE`] tokens of each distinct item.
    beginnings: Reference,
    /// The distinct items with their numbers.
    items: HashMap<Vec<u64>, Vec<u32>>,
    /// By distinct beginning, the lengths of the items that have it.
    lengths: Vec<BTreeSet<usize>>,
}

impl WholeItems {
    /// Builds an index of items of at least [`MIN_WHOLE`] tokens and their numbers. Shorter items
    /// are omitted.
    #[must_use]
    pub fn new<'a>(numbered: impl IntoIterator<Item = (u32, &'a [u64])>) -> Self {
        let mut items: HashMap<Vec<u64>, Vec<u32>> = HashMap::new();
        let mut builder = Builder::new(MIN_WHOLE);
        let mut lengths = Vec::new();
        for (number, tokens) in numbered {
            let Some(beginning) = tokens.first_chunk::<MIN_WHOLE>() else {
                continue;
            };
            let numbers = items.entry(tokens.to_vec()).or_default();
            if numbers.is_empty() {
                builder.push(beginning);
                lengths.push(tokens.len());
            }
            numbers.push(number);
        }
        let beginnings = builder.finish();
        let of_window = |window| {
            let places = beginnings.places(window).iter();
            places.map(|[item, _]| lengths[*item as usize]).collect()
        };
        let lengths = (0..beginnings.n_distinct() as u32).map(of_window).collect();
        Self {
            beginnings,
            items,
            lengths,
        }
    }

    /// Returns whether there are no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the places of items in a text: number and first token.
    #[must_use]
    pub fn find(&self, tokens: &[u64]) -> Vec<[u32; 2]> {
        let mut found = Vec::new();
        for Hit { start, window } in self.beginnings.hits(tokens) {
            let rest = &tokens[start as usize..];
            let lengths = self.lengths[window as usize].iter();
            let there = lengths.filter_map(|&n| rest.get(..n));
            let items = there.filter_map(|part| self.items.get(part)).flatten();
            found.extend(items.map(|&item| [item, start]));
        }
        found
    }
}

/// Joins windows of a text that are also consecutive in an item.
#[derive(Debug)]
pub struct Joiner {
    n_tokens: u32,
    /// Runs that extend to the previous window, by item and token.
    open: Vec<SharedRun>,
    last: u32,
}

impl Joiner {
    /// Creates a joiner for windows of `n_tokens`.
    #[must_use]
    pub fn new(n_tokens: u32) -> Self {
        Self {
            n_tokens,
            open: Vec::new(),
            last: 0,
        }
    }

    /// Adds the next window of the text, with its places in order, and reports runs that end.
    pub fn push(&mut self, start: u32, places: &[[u32; 2]], mut end: impl FnMut(SharedRun)) {
        if start != self.last + 1 {
            self.open.drain(..).for_each(&mut end);
        }
        self.last = start;
        let mut before = std::mem::take(&mut self.open).into_iter().peekable();
        for &[item, token] in places {
            let wanted = (item, token + self.n_tokens - 1);
            let key = |run: &SharedRun| (run.item, run.item_tokens.end);
            while let Some(run) = before.next_if(|run| key(run) < wanted) {
                end(run);
            }
            let run = match before.next_if(|run| key(run) == wanted) {
                Some(mut run) => {
                    run.item_tokens.end += 1;
                    run
                }
                None => SharedRun {
                    item,
                    item_tokens: token..token + self.n_tokens,
                    start,
                },
            };
            self.open.push(run);
        }
        before.for_each(end);
    }

    /// Reports the remaining runs. The next window belongs to another text.
    pub fn finish(&mut self, end: impl FnMut(SharedRun)) {
        self.open.drain(..).for_each(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Runs by the definition: equal, at least `n` long, and not extensible on either side.
    fn runs_by_definition(items: &[Vec<u64>], text: &[u64], n: usize) -> Vec<SharedRun> {
        let mut runs = Vec::new();
        for (number, item) in items.iter().enumerate() {
            for i in 0..item.len() {
                for j in 0..text.len() {
                    let is_start = i == 0 || j == 0 || item[i - 1] != text[j - 1];
                    let pairs = item[i..].iter().zip(&text[j..]);
                    let length = pairs.take_while(|(a, b)| a == b).count();
                    if is_start && length >= n {
                        runs.push(SharedRun {
                            item: number as u32,
                            item_tokens: i as u32..(i + length) as u32,
                            start: j as u32,
                        });
                    }
                }
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn shared_runs_follow_the_definition(
            mut items in prop::collection::vec(prop::collection::vec(0..3_u64, 0..14), 0..4),
            text in prop::collection::vec(0..3_u64, 0..40),
            copied in 0..30_usize,
            n in 1_usize..10,
        ) {
            items.push(text.iter().skip(copied).take(9).copied().collect());
            let slices = items.iter().map(Vec::as_slice);
            let found = Reference::new(slices, n).shared_runs(&text);
            prop_assert_eq!(found, runs_by_definition(&items, &text, n));
        }

        #[test]
        fn whole_items_are_where_their_tokens_are(
            mut items in prop::collection::vec(prop::collection::vec(0..2_u64, 6..11), 0..6),
            text in prop::collection::vec(0..2_u64, 0..60),
        ) {
            items.push(text.iter().skip(5).take(9).copied().collect());
            let slices = items.iter().map(Vec::as_slice);
            let mut found = WholeItems::new((0..).zip(slices)).find(&text);
            found.sort_unstable();
            let mut expected = Vec::new();
            for (number, item) in (0..).zip(&items).filter(|(_, item)| item.len() >= MIN_WHOLE) {
                let places = (0..).zip(text.windows(item.len()));
                let places = places.filter(|(_, part)| part == item);
                expected.extend(places.map(|(start, _)| [number, start]));
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn an_empty_reference_finds_nothing() {
        let reference = Reference::new([&[][..], &[1, 2]], 3);
        assert!(reference.shared_runs(&[1, 2, 3, 4]).is_empty());
        assert_eq!(reference.n_windows(), 0);
        assert!(WholeItems::new([(0, &[1, 2][..])]).is_empty());
    }
}
