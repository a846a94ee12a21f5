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
use crate::stage::weigher::{Others, Weigher, key, others, salt};

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
    weigher: Weigher,
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
            weigher: Weigher::online(),
            marker: Marker::of_seed(seed),
        }
    }

    /// Returns the weighed form of a sketch of word pairs.
    pub(super) fn weigh(
        &self,
        sketch: &Sketch,
        pairs: &Pairs,
        count: impl Fn(u64) -> u32,
    ) -> Weighed {
        let site = site_salt(sketch);
        let page = page_key(sketch, pairs);
        let is_counted = count(page) > 0;
        let mut numbers = Vec::with_capacity(pairs.shingles.len());
        let mut keys = Vec::new();
        for &shingle in &pairs.shingles {
            let number = match self.weigher.counts(shingle) {
                true => {
                    let key = key(shingle, site);
                    keys.push(key);
                    count(key).saturating_sub(is_counted.into())
                }
                false => 0,
            };
            numbers.push(others(number.into()));
        }
        self.weigher.sample(&pairs.shingles, &mut numbers);
        let words = ROOM.with_borrow_mut(
            |Room {
                 numbered,
                 elements,
                 marks,
             }| {
                numbered.elements_into(&pairs.shingles, elements);
                let marks = self.marker.marks(elements, &numbers, marks);
                encode(&marks, elements, &numbers)
            },
        );
        let n_pages = count(mix(!site)).into();
        let keys = match is_counted {
            true => Vec::new(),
            false => finish_keys(keys, site, page),
        };
        Weighed {
            sketch: Sketch {
                words,
                pairs: None,
                ..sketch.clone()
            },
            n_pages,
            keys,
        }
    }
}

/// Returns the keys that a page adds to the counts of its site; the last one stands for the page.
/// Empty if it has no word pairs to weigh.
pub(super) fn page_keys(sketch: &Sketch) -> Vec<u64> {
    let pairs = sketch.pairs.as_ref();
    let Some(pairs) = pairs.filter(|pairs| !pairs.shingles.is_empty()) else {
        return Vec::new();
    };
    let (site, weigher) = (site_salt(sketch), Weigher::online());
    let shingles = pairs.shingles.iter().copied();
    let counted = shingles.filter(|&shingle| weigher.counts(shingle));
    let keys = counted.map(|shingle| key(shingle, site)).collect();
    finish_keys(keys, site, page_key(sketch, pairs))
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
    keys.sort_unstable();
    keys.dedup();
    // The keys of the longest texts are a sample.
    keys.truncate(MAX_COUNTED);
    keys.extend([mix(!site), page]);
    keys
}

/// Memory that a thread uses again.
#[derive(Default)]
struct Room {
    numbered: Numbered,
    elements: Vec<u64>,
    marks: MarkRoom,
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
    let mut bytes = bytemuck::bytes_of(marks).to_vec();
    let (head, mut n) = (bytes.len(), 0_u16);
    bytes.extend([0; 4]);
    for (&one, &number) in sampled {
        bytes.extend(((one >> 48) as u16).to_le_bytes());
        bytes.push((zeros(one) as u8) << 4 | weight_code(number));
        n += 1;
    }
    bytes[head..head + 2].copy_from_slice(&n.to_le_bytes());
    bytes[head + 2] = rate as u8;
    bytes.resize(8 * N_WORDS, 0);
    let words = bytes.as_chunks().0.iter();
    words.map(|&word| u64::from_le_bytes(word)).collect()
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

/// A decoded sketch.
struct Kept {
    marks: Marks,
    rate: u32,
    /// Hash, rate of the coarsest sample it is in, and weight, in text order.
    pairs: Vec<(u16, u32, f64)>,
}

impl Kept {
    fn of(words: &[u64]) -> Self {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let (marks, rest) = bytes.split_at(size_of::<Marks>());
        let n = usize::from(u16::from_le_bytes([rest[0], rest[1]])).min(MAX_KEPT);
        let pairs = rest[4..].chunks_exact(PAIR_BYTES).take(n);
        let pairs = pairs.map(|pair| {
            let hash = u16::from_le_bytes([pair[0], pair[1]]);
            (hash, u32::from(pair[2] >> 4), weight_of(pair[2] & 15))
        });
        Self {
            marks: bytemuck::pod_read_unaligned(marks),
            rate: rest[2].into(),
            pairs: pairs.collect(),
        }
    }

    /// Hashes and weights of a coarser sample.
    fn sample(&self, rate: u32) -> (Vec<u16>, Weights) {
        let kept = self.pairs.iter().filter(|(_, zeros, _)| *zeros >= rate);
        let (hashes, weights): (Vec<u16>, Vec<f64>) =
            kept.map(|&(hash, _, weight)| (hash, weight)).unzip();
        (hashes, Weights::new(weights))
    }
}

/// Returns the marks of a stored sketch.
pub(super) fn marks_of(words: &[u64]) -> Marks {
    let n_words = size_of::<Marks>().div_ceil(size_of::<u64>());
    let words = words.iter().take(n_words);
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    bytemuck::pod_read_unaligned(&bytes[..size_of::<Marks>()])
}

/// Compares two stored sketches.
pub(super) fn score(a: &[u64], b: &[u64]) -> Score {
    let [a, b] = [a, b].map(Kept::of);
    let rate = a.rate.max(b.rate);
    let [(hashes, weights), (others, other_weights)] = [&a, &b].map(|kept| kept.sample(rate));
    let matches = matches(&hashes, &others);
    let mut score = Scorer::default().score_matches([&weights, &other_weights], matches);
    score.own = [a.marks.own(), b.marks.own()];
    if !a.marks.may_be_equal(&b.marks) {
        score.u = score.u.min(NEARLY_EQUAL.next_down());
    }
    score
}

/// Matches the n-th occurrence of each hash with its n-th in the other text, by position in the
/// first.
fn matches(a: &[u16], b: &[u16]) -> Vec<(u32, u32, u64)> {
    let [a, b] = [a, b].map(|hashes| {
        let mut sorted: Vec<(u16, u32)> = hashes.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        sorted
    });
    let (mut i, mut j) = (0, 0);
    let mut matches = Vec::new();
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if x.0 == y.0 {
            matches.push((x.1, y.1, x.0.into()));
        }
        i += usize::from(x.0 <= y.0);
        j += usize::from(y.0 <= x.0);
    }
    matches.sort_unstable();
    matches
}
