//! Stored sketches of an index of the policy `content`, and their comparison.
//!
//! A run compares the word pairs of two texts in order, but an index has no texts. It stores the
//! marks by which candidates are found ([`Marks`]), and up to [`MAX_KEPT`] word pairs in order: 16
//! bits of each, with its weight. Of a longer text it stores the word pairs whose hash ends in
//! enough zeros, which are the same in every text. So for up to 256 word pairs, the scores are
//! those of the definition. Above that, they are estimates with a standard error of at most 0.03 at
//! a score of 0.9. The rule is that of a run ([`Score::level`]).
//!
//! Stored weights are those at the time of insertion. The weights of a query are current, and the
//! score is the smaller of both sides. So a template that was unknown at first is recognized from
//! then on.

use std::cell::RefCell;

use arose::content::{NEARLY_EQUAL, Numbered, Score, Scorer, Weights, weight};
use arose::mix::mix;

use super::sketch::{Pairs, Sketch};
use crate::marks::{MarkRoom, Marker, Marks};
use crate::stage::weigher::{Others, Weigher, key, nearest, others, salt};

/// Maximum number of word pairs stored per document.
pub(super) const MAX_KEPT: usize = 256;

/// Bytes of a stored word pair: 16 bits of its hash, four bits for the coarsest sample that
/// contains it, and four bits of its weight.
const PAIR_BYTES: usize = 3;

/// Maximum number of word pairs of a page that are counted.
const MAX_COUNTED: usize = 4096;

/// Words of 64 bits stored per document.
pub(super) const N_WORDS: usize =
    (size_of::<Marks>() + 4 + PAIR_BYTES * MAX_KEPT).div_ceil(size_of::<u64>());

/// Weighs documents and computes their stored sketches.
pub(super) struct Weighing {
    marker: Marker,
}

impl std::fmt::Debug for Weighing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Weighing")
    }
}

/// A document that was weighed.
pub(super) struct Weighed {
    /// The stored sketch.
    pub(super) sketch: Sketch,
    /// Number of counted pages of its site, including this page if it was counted.
    pub(super) n_pages: u64,
    /// The keys to which its page adds one; empty if the page was counted before.
    pub(super) keys: Vec<u64>,
}

impl Weighing {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            marker: Marker::of_seed(seed),
        }
    }

    /// Returns the weighed form of a sketch of word pairs. `count` appends the numbers of keys.
    pub(super) fn weigh(
        &self,
        sketch: &Sketch,
        pairs: &Pairs,
        count: impl FnOnce(&[u64], &mut Vec<u32>),
    ) -> Weighed {
        ROOM.with_borrow_mut(|room| {
            let site = site_salt(sketch);
            room.numbered
                .elements_into(&pairs.shingles, &mut room.elements);
            room.counted.clear();
            room.keys.clear();
            for (position, &shingle) in pairs.shingles.iter().enumerate() {
                if Weigher::counts_online(shingle) {
                    room.counted.push((position, 0));
                    room.keys.push(key(shingle, site));
                }
            }
            room.keys.extend([mix(!site), page_key(sketch, pairs)]);
            room.numbers.clear();
            count(&room.keys, &mut room.numbers);
            let [numbers @ .., n_pages, n_counted] = &room.numbers[..] else {
                unreachable!("site and page have numbers");
            };
            let is_counted = *n_counted > 0;
            for ((_, n_others), n) in room.counted.iter_mut().zip(numbers) {
                *n_others = others(n.saturating_sub(is_counted.into()).into());
            }
            let keys = match is_counted {
                true => Vec::new(),
                false => room.new_keys(&pairs.shingles),
            };
            let numbers = nearest(&room.counted, pairs.shingles.len());
            let marks = self.marker.marks(&room.elements, &numbers, &mut room.marks);
            Weighed {
                sketch: Sketch {
                    digest: sketch.digest,
                    site: sketch.site,
                    is_short: sketch.is_short,
                    words: encode(&marks, &mut room.elements, &numbers),
                    pairs: None,
                },
                n_pages: (*n_pages).into(),
                keys,
            }
        })
    }
}

/// Returns the keys that a page adds to the counts of its site; the last one stands for the page.
/// Empty if it has no word pairs to weigh.
pub(super) fn page_keys(sketch: &Sketch) -> Vec<u64> {
    let pairs = sketch.pairs.as_ref();
    let Some(pairs) = pairs.filter(|pairs| !pairs.shingles.is_empty()) else {
        return Vec::new();
    };
    let site = site_salt(sketch);
    let shingles = pairs.shingles.iter().copied();
    let counted = shingles.filter(|&shingle| Weigher::counts_online(shingle));
    let mut keys: Vec<u64> = counted.map(|shingle| key(shingle, site)).collect();
    keys.sort_unstable();
    keys.dedup();
    finish_keys(keys, mix(!site), page_key(sketch, pairs))
}

fn site_salt(sketch: &Sketch) -> u64 {
    salt(sketch.site.map_or(0, |site| site.0.get().into()))
}

/// Returns the key of a page, which is its URL or else its text.
fn page_key(sketch: &Sketch, pairs: &Pairs) -> u64 {
    let page = pairs.page.unwrap_or(sketch.digest.0 as u64);
    // Distinct from the keys of all word pairs, which are mixed only once.
    mix(!key(page, site_salt(sketch)))
}

/// Returns the distinct keys of word pairs, then that of the site, then that of the page.
fn finish_keys(mut keys: Vec<u64>, site: u64, page: u64) -> Vec<u64> {
    // The keys of the longest texts are a sample.
    if keys.len() > MAX_COUNTED {
        keys.select_nth_unstable(MAX_COUNTED);
        keys.truncate(MAX_COUNTED);
    }
    keys.extend([site, page]);
    keys
}

/// Memory that a thread uses again.
#[derive(Default)]
struct Room {
    numbered: Numbered,
    elements: Vec<u64>,
    /// Positions of counted word pairs, with the number of other pages of each.
    counted: Vec<(usize, Others)>,
    /// Their keys, then that of the site, then that of the page, and the number of each key.
    keys: Vec<u64>,
    numbers: Vec<u32>,
    marks: MarkRoom,
}

impl Room {
    /// Returns the keys that the page adds: that of each counted word pair once.
    fn new_keys(&self, shingles: &[u64]) -> Vec<u64> {
        let [keys @ .., site, page] = &self.keys[..] else {
            unreachable!("site and page have keys");
        };
        // The element of a first occurrence is the word pair itself.
        let is_first = |position: usize| self.elements[position] == shingles[position];
        let counted = self.counted.iter().zip(keys);
        let firsts = counted.filter(|((position, _), _)| is_first(*position));
        finish_keys(firsts.map(|(_, &key)| key).collect(), *site, *page)
    }
}

thread_local! {
    static ROOM: RefCell<Room> = RefCell::default();
}

/// Returns marks and sampled word pairs, as words; none without word pairs. `elements` are those of
/// the text and are mixed here.
fn encode(marks: &Marks, elements: &mut [u64], numbers: &[Others]) -> Vec<u64> {
    if elements.is_empty() {
        return Vec::new();
    }
    let mut n_by_zeros = [0_usize; 16];
    for element in &mut *elements {
        *element = mix(*element);
        n_by_zeros[zeros(*element) as usize] += 1;
    }
    let mut n_left = elements.len();
    let mut rate = 0;
    while n_left > MAX_KEPT && rate < 15 {
        n_left -= n_by_zeros[rate as usize];
        rate += 1;
    }
    let sampled = elements.iter().zip(numbers);
    let sampled = sampled
        .filter(|(one, _)| zeros(**one) >= rate)
        .take(MAX_KEPT);
    let mut words = vec![0_u64; N_WORDS];
    let (marked, rest) = bytemuck::cast_slice_mut(&mut words).split_at_mut(size_of::<Marks>());
    marked.copy_from_slice(bytemuck::bytes_of(marks));
    let (head, pairs) = rest.split_at_mut(4);
    let (pairs, _) = pairs.as_chunks_mut::<PAIR_BYTES>();
    let mut n = 0_u16;
    for ((&one, &number), pair) in sampled.zip(pairs) {
        let [low, high] = ((one >> 48) as u16).to_le_bytes();
        *pair = [low, high, (zeros(one) as u8) << 4 | weight_code(number)];
        n += 1;
    }
    head[..2].copy_from_slice(&n.to_le_bytes());
    head[2] = rate as u8;
    words
}

/// A sample of rate `r` consists of the hashes that end in `r` zeros.
fn zeros(hash: u64) -> u32 {
    hash.trailing_zeros().min(15)
}

/// Encodes the number of other pages in four bits: up to three, each number from 4 to 15, and three
/// ranges.
fn weight_code(n_others: Others) -> u8 {
    match n_others {
        0..=3 => 0,
        4..=15 => n_others as u8 - 3,
        16..=31 => 13,
        32..=99 => 14,
        100.. => 15,
    }
}

/// Returns the weight of a code; for ranges, that of a middle number.
fn weight_of(code: u8) -> f64 {
    weight(match code {
        0 => 0,
        1..=12 => u64::from(code) + 3,
        13 => 22,
        14 => 55,
        _ => 300,
    })
}

/// The word pairs of a decoded sketch that are in a sample.
struct KeptPairs {
    /// In text order.
    hashes: Vec<u16>,
    weights: Weights,
}

impl KeptPairs {
    /// Decodes the part of a sketch after its marks.
    fn of(bytes: &[u8], rate: u8) -> Self {
        let n = usize::from(u16::from_le_bytes([bytes[0], bytes[1]])).min(MAX_KEPT);
        let pairs = bytes[4..].chunks_exact(PAIR_BYTES).take(n);
        let sampled = pairs.filter(|pair| pair[2] >> 4 >= rate);
        let decoded = sampled.map(|pair| {
            let hash = u16::from_le_bytes([pair[0], pair[1]]);
            (hash, weight_of(pair[2] & 15))
        });
        let (hashes, weights) = decoded.unzip();
        Self {
            hashes,
            weights: Weights::new(weights),
        }
    }
}

/// Returns the marks of a stored sketch.
pub(super) fn marks_of(words: &[u64]) -> Marks {
    let bytes: &[u8] = bytemuck::cast_slice(words);
    bytemuck::pod_read_unaligned(&bytes[..size_of::<Marks>()])
}

/// Compares two stored sketches.
pub(super) fn score(a: &[u64], b: &[u64]) -> Score {
    let marks = [a, b].map(marks_of);
    let [a, b]: [&[u8]; 2] = [a, b].map(bytemuck::cast_slice);
    let [a, b] = [a, b].map(|bytes| &bytes[size_of::<Marks>()..]);
    // The samples of the coarser rate of both.
    let rate = a[2].max(b[2]);
    let [a, b] = [a, b].map(|bytes| KeptPairs::of(bytes, rate));
    let matches = matches(&a.hashes, &b.hashes);
    let mut score =
        SCORER.with_borrow_mut(|scorer| scorer.score_matches([&a.weights, &b.weights], matches));
    let [a, b] = marks;
    score.own = [a.own(), b.own()];
    if !a.may_be_equal(&b) {
        score.u = score.u.min(NEARLY_EQUAL.next_down());
    }
    score
}

thread_local! {
    static SCORER: RefCell<Scorer> = RefCell::default();
}

/// Number of lists of positions by hash.
const N_LISTS: usize = 2 * MAX_KEPT;

/// Matches the n-th occurrence of each hash with its n-th in the other text.
fn matches(a: &[u16], b: &[u16]) -> Vec<(u32, u32, u64)> {
    // The first position of each list in `a`, and the next one after each; plus one, zero at the
    // end.
    let (mut first, mut next) = ([0_u16; N_LISTS], [0_u16; MAX_KEPT]);
    for (position, hash) in a.iter().enumerate().rev() {
        let list = &mut first[usize::from(*hash) % N_LISTS];
        next[position] = std::mem::replace(list, position as u16 + 1);
    }
    let mut is_matched = [false; MAX_KEPT];
    let mut matches = Vec::with_capacity(b.len());
    for (other, &hash) in b.iter().enumerate() {
        let mut at = first[usize::from(hash) % N_LISTS];
        while let Some(position) = usize::from(at).checked_sub(1) {
            if a[position] == hash && !is_matched[position] {
                is_matched[position] = true;
                matches.push((position as u32, other as u32, hash.into()));
                break;
            }
            at = next[position];
        }
    }
    matches
}
