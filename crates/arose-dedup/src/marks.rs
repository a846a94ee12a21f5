//! Sketches for finding candidates of the policy `content`: two sets of bands.
//!
//! Suppose that a shingle weighs the same in both documents. Then a weighted score of `t` implies a
//! weighted bag Jaccard similarity of at least `t / (2 - t)` ([`arose::content::bag_bound`]), so
//! 0.6 at the level `content`. Weighted MinHash values in 39 bands of 4 find 0.995 of the pairs at
//! 0.6. Documents of two sites may give a shingle different weights. Then the bound is only
//! approximate.
//!
//! Documents without own text are duplicates only if they are nearly the same: an unweighted score
//! of 0.97 implies an unweighted bag similarity of at least 0.94. MinHash values in 7 bands of 10
//! find 0.995 of the pairs at 0.94. Of these, only the keys are stored, together with parities
//! ([`arose::parity`]), which show for most pages of one template that they are not nearly the
//! same.

use std::num::NonZeroU16;

use arose::banding::Banding;
use arose::binomial::at_least;
use arose::content::{CONTENT, MIN_OWN, NEARLY_EQUAL, Numbered, SAME, bag_bound, weight};
use arose::mix::mix;
use arose::parity::{self, Parity};
use arose::rule::{Criterion, Remove};
use arose::sketch::{LightElement, WeightedMinHash};
use bytemuck::{Pod, Zeroable};

use crate::Error;
use crate::config::Config;
use crate::scheme::{KeyTables, key_bits};
use crate::stage::weigher::Others;

/// Number of bands of weighted values, and of values per band.
const WEIGHTED: (usize, usize) = (39, 4);
/// Number of bands of unweighted values, and of values per band.
const PLAIN: (usize, usize) = (7, 10);
/// Number of weighted values.
const N_WEIGHTED: usize = WEIGHTED.0 * WEIGHTED.1;

/// The weighted similarity below which a candidate pair is not verified. It is lower than the level
/// `content` implies, since the weights of two sites differ.
const LEAST_TESTED: f64 = 0.5;
/// The share of the pairs at that similarity that the test may miss.
const TEST_LOSS: f64 = 5e-4;
/// The share of the pairs at a level that count as surely above it.
const SURE_ERROR: f64 = 0.01;
/// The probability that the stored bits of different values agree.
const ACCIDENT: f64 = 1.0 / 65_536.0;

/// The sketch of a document.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Marks {
    /// The lowest 16 bits of each weighted value, three bands in a row.
    low: [[u16; 12]; WEIGHTED.0 / 3],
    /// Eight bits of the remaining bits of the values of each band. The last byte is not used.
    rest: [[u8; 8]; 5],
    /// The keys of the unweighted bands.
    plain: [u32; PLAIN.0],
    /// Parities of the word pairs.
    parity: [u32; parity::N_WORDS],
    /// Number of word pairs of the parities; zero if there are none.
    n_parity: u32,
    /// Number of word pairs.
    n: u32,
    own: f32,
}

impl Marks {
    /// Returns whether both have own text, and how many of their weighted values agree.
    fn n_equal(&self, other: &Self) -> u32 {
        if !self.has_own() || !other.has_own() {
            return 0;
        }
        let equal = self.low.as_flattened().iter();
        let equal = equal.zip(other.low.as_flattened());
        equal.map(|(a, b)| u16::from(a == b)).sum::<u16>().into()
    }

    /// The sum of the weights.
    pub(crate) fn own(&self) -> f64 {
        self.own.into()
    }

    fn has_own(&self) -> bool {
        f64::from(self.own) >= MIN_OWN
    }

    fn n_plain(&self, other: &Self) -> usize {
        let keys = self.plain.iter().zip(&other.plain);
        keys.filter(|(a, b)| a == b).count()
    }

    /// Returns whether the lengths and the parities allow both to be nearly the same.
    pub(crate) fn may_be_equal(&self, other: &Self) -> bool {
        let (shorter, longer) = (self.n.min(other.n), self.n.max(other.n));
        if f64::from(shorter) < NEARLY_EQUAL * f64::from(longer) {
            return false;
        }
        match [self, other].map(Self::parity) {
            [Some(a), Some(b)] => a.max_jaccard(&b) >= bag_bound(NEARLY_EQUAL),
            _ => true,
        }
    }

    fn parity(&self) -> Option<Parity> {
        (self.n_parity > 0).then_some(Parity {
            bits: self.parity,
            n: self.n_parity,
        })
    }
}

/// Computes marks.
pub(crate) struct Marker {
    sketcher: WeightedMinHash,
}

/// Reused memory.
#[derive(Default)]
pub(crate) struct MarkRoom {
    numbered: Numbered,
    elements: Vec<u64>,
    /// Elements that weigh 1, and the others, unchanged and prepared for sketching.
    whole: Vec<u64>,
    light: Vec<u64>,
    weighted: Vec<LightElement>,
    firsts: Vec<u32>,
    minima: Vec<u32>,
}

/// Orders of the unweighted values, padded to full vectors.
const PLAIN_ORDERS: usize = (PLAIN.0 * PLAIN.1).next_multiple_of(16);

impl Marker {
    pub(crate) fn new(config: &Config) -> Self {
        Self::of_seed(config.seed)
    }

    pub(crate) fn of_seed(seed: u64) -> Self {
        let n = NonZeroU16::new(N_WEIGHTED as u16).expect("there are bands");
        Self {
            sketcher: WeightedMinHash::new(n, seed),
        }
    }

    /// Returns the marks of a document, given its word pairs in text order and the number of other
    /// pages of its site that contain each.
    pub(crate) fn marks_of_shingles(
        &self,
        shingles: &[u64],
        others: &[Others],
        room: &mut MarkRoom,
    ) -> Marks {
        let mut elements = std::mem::take(&mut room.elements);
        room.numbered.elements_into(shingles, &mut elements);
        let marks = self.marks(&elements, others, room);
        room.elements = elements;
        marks
    }

    /// Returns the marks of a document, given its elements and the number of other pages that
    /// contain the word pair of each.
    ///
    /// Weighted and unweighted values use the same orders, so that elements of weight 1, which are
    /// the majority, are processed once for both.
    pub(crate) fn marks(&self, elements: &[u64], others: &[Others], room: &mut MarkRoom) -> Marks {
        let mut marks = Marks::zeroed();
        if elements.is_empty() {
            return marks;
        }
        marks.n = elements.len() as u32;
        marks.own = room.divide(elements, others) as f32;
        if let Some(parity) = Parity::of(elements) {
            marks.parity = parity.bits;
            marks.n_parity = parity.n;
        }
        let n_orders = match marks.has_own() {
            true => self.sketcher.n_orders(),
            false => PLAIN_ORDERS,
        };
        let MarkRoom { firsts, minima, .. } = room;
        self.sketcher.minima_into(n_orders, &room.whole, firsts);
        minima.clear();
        minima.extend(&firsts[..PLAIN_ORDERS]);
        self.sketcher.lower_minima(&room.light, minima);
        for (key, rows) in marks.plain.iter_mut().zip(minima.chunks(PLAIN.1)) {
            *key = hash(rows.iter().map(|&value| value.into())) as u32;
        }
        if marks.has_own() {
            self.sketcher.add_light(&room.weighted, firsts);
            for (low, value) in marks.low.as_flattened_mut().iter_mut().zip(&*firsts) {
                *low = *value as u16;
            }
            let rests = marks.rest.as_flattened_mut().iter_mut();
            for (rest, rows) in rests.zip(firsts[..N_WEIGHTED].chunks(WEIGHTED.1)) {
                *rest = hash(rows.iter().map(|&value| u64::from(value >> 16))) as u8;
            }
        }
        marks
    }
}

impl MarkRoom {
    /// Divides elements into those that weigh 1 and others. Returns the sum of the weights.
    fn divide(&mut self, elements: &[u64], others: &[Others]) -> f64 {
        self.whole.clear();
        self.light.clear();
        self.weighted.clear();
        let mut own = 0.0;
        for (&element, &n_others) in elements.iter().zip(others) {
            let weight = weight(n_others.into());
            if weight == 1.0 {
                self.whole.push(element);
            } else {
                own += weight;
                self.light.push(element);
                self.weighted.push(LightElement::new(element, weight));
            }
        }
        own + self.whole.len() as f64
    }
}

fn hash(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, |hash, value| mix(hash ^ value))
}

/// The tables of the policy `content`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MarkTables {
    weighted: Banding,
    plain: Banding,
    min_equal: u32,
    sure_equal: u32,
}

impl MarkTables {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        Self::of(config.policy.criterion)
    }

    /// Creates the tables for the levels that a criterion removes.
    pub(crate) fn of(criterion: Criterion) -> Result<Self, Error> {
        let removed = match criterion {
            Criterion::Content(Remove::Content) => CONTENT,
            _ => SAME,
        };
        let all = N_WEIGHTED as u32;
        let may_test = |n: &u32| passing(LEAST_TESTED, *n) >= 1.0 - TEST_LOSS;
        let is_rare = |n: &u32| passing(removed, *n) <= SURE_ERROR;
        Ok(Self {
            weighted: Banding::new(WEIGHTED.0, WEIGHTED.1)?,
            plain: Banding::new(PLAIN.0, PLAIN.1)?,
            min_equal: (0..=all).rev().find(may_test).unwrap_or(0),
            sure_equal: (0..=all).find(is_rare).unwrap_or(all),
        })
    }

    /// Returns the minimum probability that a pair with these scores becomes a candidate, if a
    /// shingle weighs the same in both documents.
    pub(crate) fn probability(&self, weighted: f64, plain: f64) -> f64 {
        let [weighted, plain] = [weighted, plain].map(bag_bound);
        let by_weight = self.weighted.candidate_probability(weighted);
        (by_weight * passing(weighted, self.min_equal)).max(self.plain.candidate_probability(plain))
    }

    /// Describes the tables in words.
    pub(crate) fn method(&self) -> String {
        let [(b, q), (plain_b, plain_q)] = [WEIGHTED, PLAIN];
        format!(
            "{b} bands of {q} weighted MinHash values, {plain_b} bands of {plain_q} unweighted ones"
        )
    }
}

/// Returns the probability that this many weighted values of a pair of this similarity agree.
fn passing(similarity: f64, min_equal: u32) -> f64 {
    let agree = similarity + (1.0 - similarity) * ACCIDENT;
    at_least(N_WEIGHTED as u64, agree, min_equal.into())
}

impl KeyTables for MarkTables {
    type Sketch = Marks;

    fn n_tables(&self) -> u32 {
        (WEIGHTED.0 + PLAIN.0) as u32
    }

    fn key(&self, table: u32, marks: &Marks) -> u64 {
        let band = table as usize;
        if let Some(plain) = band.checked_sub(WEIGHTED.0) {
            return marks.plain[plain].into();
        }
        if !marks.has_own() {
            // A key that only exact duplicates have, which also share the unweighted bands.
            return key_bits(hash(marks.plain.iter().map(|&key| key.into())));
        }
        let rows = &marks.low.as_flattened()[band * WEIGHTED.1..][..WEIGHTED.1];
        let word = rows
            .iter()
            .fold(0, |word, &low| word << 16 | u64::from(low));
        key_bits(mix(mix(marks.rest.as_flattened()[band].into()) ^ word))
    }

    fn accepts(&self, a: &Marks, b: &Marks) -> bool {
        a.n_equal(b) >= self.min_equal || a.n_plain(b) > 0 && a.may_be_equal(b)
    }

    fn closeness(&self, a: &Marks, b: &Marks) -> u32 {
        let plain = match a.may_be_equal(b) {
            true => a.n_plain(b) * N_WEIGHTED / PLAIN.0,
            false => 0,
        };
        a.n_equal(b).max(plain as u32)
    }

    fn is_sure(&self, closeness: u32) -> bool {
        closeness >= self.sure_equal
    }

    fn n_meetings(&self) -> f64 {
        let similarity = bag_bound(CONTENT);
        let all = WEIGHTED.0 as f64 * similarity.powi(WEIGHTED.1 as i32);
        all / self.weighted.candidate_probability(similarity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> MarkTables {
        let mut config = Config::default();
        config.policy.criterion = Criterion::Content(Remove::Same);
        MarkTables::new(&config).unwrap()
    }

    #[test]
    fn issue_24_recall_at_the_levels() {
        let tables = tables();
        assert!(tables.probability(CONTENT, 0.0) > 0.994);
        assert!(tables.probability(SAME, 0.0) > 0.9999);
        assert!(tables.probability(0.0, NEARLY_EQUAL) > 0.994);
        assert!(tables.probability(0.3, 0.3) < 0.05);
    }

    /// Pages without own text share keys only in the unweighted bands.
    #[test]
    fn issue_24_pages_without_own_text() {
        let (tables, marker) = (tables(), Marker::new(&Config::default()));
        let mut room = MarkRoom::default();
        let mut page = |words: std::ops::Range<u64>, n_others: Others| {
            let shingles: Vec<u64> = words.map(mix).collect();
            let others = vec![n_others; shingles.len()];
            marker.marks_of_shingles(&shingles, &others, &mut room)
        };
        let (a, b, c) = (page(0..300, 100), page(0..292, 100), page(0..250, 100));
        let meet = |a: &Marks, b: &Marks, tables_: std::ops::Range<u32>| {
            let met = tables_.filter(|&t| tables.key(t, a) == tables.key(t, b));
            met.count()
        };
        let n_tables = tables.n_tables();
        assert_eq!(meet(&a, &b, 0..39), 0);
        assert!(meet(&a, &b, 39..n_tables) > 0 && tables.accepts(&a, &b));
        assert!(!tables.accepts(&a, &c), "too short");
        let (own, other) = (page(0..300, 0), page(0..240, 0));
        assert!(meet(&own, &other, 0..39) > 0 && tables.accepts(&own, &other));
        assert!(tables.is_sure(tables.closeness(&own, &own)));
        assert!(!tables.is_sure(tables.closeness(&own, &other)));
    }
}
