//! Candidate pairs: tables of keys, and a cheap test of pairs that share a key.
//!
//! A sketch has a key in each of a few tables. Two documents are compared if they share a key in
//! one of them. Policies differ in their tables:
//!
//! | policy | tables | a pair that shares a key is a candidate if |
//! |---|---|---|
//! | jaccard | bands of MinHash values ([`arose::banding`]) | enough MinHash values agree, and parities allow it ([`arose::parity`]) |
//! | content | two sets of bands, in [`marks`](crate::marks) | enough weighted values agree, or parities allow that both are nearly the same |
//! | b, combined | subsets of super-shingles ([`arose::feature::mega_shingles`]) | the rule matches |
//! | c | pieces of bits ([`arose::simhash::pieces`]) | the rule matches |
//! | site | both | the rule matches |
//!
//! Only the lowest 16 bits of a MinHash value are stored. They agree by chance once in 65,536, and
//! the test allows for it. Keys cannot. Consider a band in which only one MinHash value is specific
//! to a page: it has 65,536 different values. Of a million pages that share a template, each would
//! share a key with a dozen others by chance. So eight bits of the remaining bits of the values of
//! a band are stored too. A sketch of 128 MinHash values has 388 bytes.

use arose::Threshold;
use arose::banding::Banding;
use arose::binomial::{at_least, choose};
use arose::feature::{Features, b_sim};
use arose::filter::Filter;
use arose::mix::mix;
use arose::parity::Parity;
use arose::rule::{Criterion, Evidence, Policy, SiteRelation, decide};
use arose::simhash::{Fingerprint, Fingerprint384, law, pieces::Pieces};
use bytemuck::{Pod, Zeroable};

use crate::config::{Config, Verify};
use crate::record::{MAX_BANDS, N_SAMPLES, Samples, Vectors};

/// Number of bits of a key.
pub(crate) const KEY_BITS: u32 = 40;

/// Returns these bits of a number.
pub(crate) fn key_bits(number: u64) -> u64 {
    number & ((1 << KEY_BITS) - 1)
}

/// Tables of keys over sketches of one kind.
pub(crate) trait KeyTables: Sync {
    type Sketch: Pod + Send + Sync;

    /// Returns the number of tables.
    fn n_tables(&self) -> u32;

    /// Returns the key of a sketch in a table, of at most [`KEY_BITS`]. With a hundred million
    /// documents, one in ten thousand shares a key of a table by chance, which costs a comparison.
    fn key(&self, table: u32, sketch: &Self::Sketch) -> u64;

    /// Returns whether two documents that share a key are candidates.
    fn accepts(&self, a: &Self::Sketch, b: &Self::Sketch) -> bool;

    /// Returns how close two sketches are. A greater number is closer.
    fn closeness(&self, a: &Self::Sketch, b: &Self::Sketch) -> u32;

    /// Returns whether candidates as close as this are almost certainly verified.
    fn is_sure(&self, _closeness: u32) -> bool {
        true
    }

    /// Returns the average number of tables in which a pair at the threshold shares a key, if it
    /// shares any.
    fn n_meetings(&self) -> f64 {
        1.0
    }
}

/// Bands of MinHash values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bands {
    banding: Banding,
    /// Minimum number of agreeing MinHash values.
    min_equal: u32,
    /// Number of agreeing MinHash values that is rarely reached below the threshold.
    sure_equal: u32,
    /// Minimum similarity, unless pairs are not verified.
    least: Option<Threshold>,
    n_meetings: f64,
}

/// The probability that the stored bits of different MinHash values agree.
const ACCIDENT: f64 = 1.0 / 65_536.0;
/// The share of the pairs at the threshold that the test may miss, if recall allows it.
const TEST_LOSS: f64 = 5e-4;
/// The share of the pairs at the threshold that count as surely above it.
const SURE_ERROR: f64 = 0.01;

impl Bands {
    pub(crate) fn new(config: &Config, threshold: Threshold) -> Result<Self, crate::Error> {
        // The test uses at most half of the allowed loss, and the bands compensate for it.
        let recall = config.recall.get();
        let loss = TEST_LOSS.min((1.0 - recall) / 2.0);
        let (min_equal, least) = match config.verify {
            Verify::None => (0, None),
            _ => (min_equal(threshold.get(), loss), Some(threshold)),
        };
        let shape = longest_rows(
            threshold.get(),
            recall / passing(threshold.get(), min_equal),
        );
        let (b, q) = shape.ok_or(crate::Error::Recall {
            recall,
            threshold: threshold.get(),
        })?;
        let banding = Banding::new(b, q)?;
        let sure_equal = match config.verify {
            Verify::None => 0,
            Verify::Sketch => estimated_at(threshold),
            Verify::Text => sure_equal(threshold.get()),
        };
        Ok(Self {
            banding,
            min_equal,
            sure_equal,
            least,
            n_meetings: n_meetings(&banding, threshold.get()),
        })
    }

    /// Returns the probability that a pair of this Jaccard similarity becomes a candidate.
    pub(crate) fn probability(&self, jaccard: f64) -> f64 {
        self.banding.candidate_probability(jaccard) * passing(jaccard, self.min_equal)
    }

    pub(crate) fn banding(&self) -> Banding {
        self.banding
    }

    /// Returns the stored form of a sketch and of its shingles.
    pub(crate) fn keep(&self, sketch: &[u32], shingles: &[u64]) -> Samples {
        let mut kept = Samples::zeroed();
        if let Some(parity) = Parity::of(shingles) {
            kept.parity = parity.bits;
            kept.n_shingles = parity.n;
        }
        for (low, sample) in kept.low.iter_mut().zip(sketch) {
            *low = *sample as u16;
        }
        for (rest, rows) in kept.rest.iter_mut().zip(sketch.chunks(self.banding.q())) {
            *rest = rest_of(rows);
        }
        kept
    }

    /// Returns the keys of a sketch in all tables, from its stored form.
    pub(crate) fn keys(&self, sketch: &[u32]) -> impl ExactSizeIterator<Item = u64> {
        let bands = sketch.chunks_exact(self.banding.q()).take(self.banding.b());
        bands.map(|rows| band_key(rows.iter().map(|row| *row as u16), rest_of(rows)))
    }

    /// Returns the Jaccard similarity estimated from two sketches.
    pub(crate) fn estimate(a: &Samples, b: &Samples) -> f64 {
        estimate(n_equal(a, b))
    }
}

/// Returns the Jaccard similarity estimated from this many equal MinHash values.
fn estimate(n_equal: u32) -> f64 {
    let share = f64::from(n_equal) / N_SAMPLES as f64;
    ((share - ACCIDENT) / (1.0 - ACCIDENT)).max(0.0)
}

/// Returns the smallest number of MinHash values whose estimate reaches the threshold.
fn estimated_at(threshold: Threshold) -> u32 {
    let reaches = |n: &u32| threshold.reached_by(estimate(*n));
    let all = N_SAMPLES as u32;
    (0..=all).find(reaches).unwrap_or(all)
}

/// Returns the smallest number of MinHash values that pairs at the threshold share with a
/// probability of at most [`SURE_ERROR`].
fn sure_equal(threshold: f64) -> u32 {
    let agree = threshold + (1.0 - threshold) * ACCIDENT;
    let is_rare = |n: &u32| at_least(N_SAMPLES as u64, agree, u64::from(*n)) <= SURE_ERROR;
    let all = N_SAMPLES as u32;
    (0..=all).find(is_rare).unwrap_or(all)
}

/// Returns the average number of common bands of a pair of this Jaccard similarity, if it has one.
fn n_meetings(banding: &Banding, jaccard: f64) -> f64 {
    let all = banding.b() as f64 * jaccard.powi(banding.q() as i32);
    all / banding.candidate_probability(jaccard)
}

/// Returns the longest rows, in at most [`MAX_BANDS`] bands, that reach the recall with the
/// available MinHash values. With keys of a single value, most documents would share one, so there
/// are at least two rows.
fn longest_rows(threshold: f64, recall: f64) -> Option<(usize, usize)> {
    (2..=N_SAMPLES).rev().find_map(|q| {
        let b = ((-recall).ln_1p() / (-threshold.powi(q as i32)).ln_1p())
            .ceil()
            .max(1.0);
        (b <= MAX_BANDS as f64 && b * q as f64 <= N_SAMPLES as f64).then_some((b as usize, q))
    })
}

/// Returns the largest number of agreeing MinHash values to require such that pairs at the
/// threshold fail with a probability of at most `loss`.
fn min_equal(threshold: f64, loss: f64) -> u32 {
    let passes = |n: &u32| passing(threshold, *n) >= 1.0 - loss;
    (0..=N_SAMPLES as u32).rev().find(passes).unwrap_or(0)
}

/// Returns the probability that this many MinHash values of a pair of this Jaccard similarity
/// agree.
fn passing(jaccard: f64, min_equal: u32) -> f64 {
    let agree = jaccard + (1.0 - jaccard) * ACCIDENT;
    at_least(N_SAMPLES as u64, agree, u64::from(min_equal))
}

/// Returns the stored bits of the high halves of the MinHash values of a band.
fn rest_of(rows: &[u32]) -> u8 {
    let all = rows.iter().fold(0_u64, |all, sample| {
        all.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(sample >> 16)
    });
    mix(all) as u8
}

/// Returns the key of a band from the low halves of its MinHash values, four at a time, and the
/// stored bits of the high halves.
fn band_key(mut rows: impl ExactSizeIterator<Item = u16>, rest: u8) -> u64 {
    let mut key = u64::from(rest);
    while rows.len() > 0 {
        let chunk = rows.by_ref().take(4);
        let word = chunk.fold(0, |word, sample| word << 16 | u64::from(sample));
        key = mix(key ^ word);
    }
    key_bits(key)
}

fn n_equal(a: &Samples, b: &Samples) -> u32 {
    // Counted in lanes as wide as the values, as many at a time as fit into a register.
    let equal = a.low.iter().zip(&b.low).map(|(a, b)| u16::from(a == b));
    equal.sum::<u16>().into()
}

impl KeyTables for Bands {
    type Sketch = Samples;

    fn n_tables(&self) -> u32 {
        self.banding.b() as u32
    }

    fn key(&self, table: u32, sketch: &Samples) -> u64 {
        let q = self.banding.q();
        let rows = &sketch.low[table as usize * q..][..q];
        band_key(rows.iter().copied(), sketch.rest[table as usize])
    }

    fn accepts(&self, a: &Samples, b: &Samples) -> bool {
        let may_reach = |least: Threshold| least.reached_by(a.most_jaccard(b));
        n_equal(a, b) >= self.min_equal && self.least.is_none_or(may_reach)
    }

    fn closeness(&self, a: &Samples, b: &Samples) -> u32 {
        n_equal(a, b)
    }

    fn is_sure(&self, closeness: u32) -> bool {
        closeness >= self.sure_equal
    }

    fn n_meetings(&self) -> f64 {
        self.n_meetings
    }
}

/// Subsets of super-shingles, pieces of simhashes, or both, followed by a rule.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    policy: Policy,
    verify: Verify,
    subsets: Vec<Vec<usize>>,
    pieces: Option<Pieces<6>>,
}

impl Rules {
    pub(crate) fn new(config: &Config) -> Result<Self, crate::Error> {
        let (r, min_bits) = match config.policy.criterion {
            Criterion::B { min_features } => (Some(min_features), None),
            Criterion::C { min_bits } => (None, Some(min_bits)),
            Criterion::Combined(both) => (Some(both.min_features), None),
            Criterion::Site {
                same,
                cross_min_bits,
                ..
            } => (Some(same.min_features), Some(cross_min_bits)),
            Criterion::Exact
            | Criterion::Jaccard(_)
            | Criterion::Content(_)
            | Criterion::Contained(_)
            | Criterion::Url => (None, None),
        };
        let k = Features::SIX_BY_FOURTEEN.k();
        let subsets = match r {
            None => Vec::new(),
            Some(r) => {
                Filter::new(Features::SIX_BY_FOURTEEN, r as usize)?;
                subsets(k, r as usize)
            }
        };
        // With fewer bits, a pair need not have a piece in common, and the expected recall would be
        // wrong.
        if let Some(min_bits) = min_bits.filter(|&bits| bits < MIN_BITS) {
            return Err(crate::Error::Bits { min_bits });
        }
        let pieces = min_bits.map(n_pieces).map(Pieces::new).transpose()?;
        Ok(Self {
            policy: config.policy,
            verify: config.verify,
            subsets,
            pieces,
        })
    }

    /// Returns the evidence of the sketches of two documents.
    pub(crate) fn evidence(&self, a: &Vectors, b: &Vectors) -> Evidence {
        Evidence {
            site: site_relation([a.site, b.site]),
            b_sim: b_sim(&a.features, &b.features) as u32,
            c_sim: Fingerprint(a.simhash).c_sim(&Fingerprint(b.simhash)),
            jaccard: None,
            level: None,
            same_content: false,
            either_short: false,
        }
    }

    /// Returns the probability of finding a pair whose Jaccard similarity and cosine are
    /// `similarity`.
    pub(crate) fn probability(&self, similarity: f64) -> f64 {
        let features = |r: u32| {
            Filter::new(Features::SIX_BY_FOURTEEN, r as usize)
                .map_or(0.0, |filter| filter.acceptance(similarity))
        };
        let bits = |min: u32| law::tail(min, similarity, Fingerprint384::BITS);
        match self.policy.criterion {
            Criterion::B { min_features } => features(min_features),
            Criterion::C { min_bits } => bits(min_bits),
            Criterion::Combined(both) => features(both.min_features) * bits(both.min_bits),
            Criterion::Site { same, .. } => features(same.min_features) * bits(same.min_bits),
            // Exact duplicates are always found.
            Criterion::Exact | Criterion::Contained(_) | Criterion::Url => {
                f64::from(u8::from(similarity >= 1.0))
            }
            Criterion::Jaccard(_) | Criterion::Content(_) => 0.0,
        }
    }
}

/// Returns the relation of the sites of two documents, which are zero if unknown.
pub(crate) fn site_relation(sites: [u64; 2]) -> SiteRelation {
    match sites {
        [0, _] | [_, 0] => SiteRelation::Unknown,
        [a, b] if a == b => SiteRelation::Same,
        _ => SiteRelation::Different,
    }
}

/// More pieces would be so short that most documents share one.
const MAX_PIECES: u32 = 24;

/// Minimum number of matching bits that can decide alone.
const MIN_BITS: u32 = Fingerprint384::BITS + 1 - MAX_PIECES;

/// Returns enough pieces that a pair at the threshold has one without a differing bit.
fn n_pieces(min_bits: u32) -> u32 {
    let max_distance = Fingerprint384::BITS.saturating_sub(min_bits);
    (max_distance + 1).clamp(6, MAX_PIECES)
}

/// Returns the subsets of `0..k` with `r` members, in lexicographic order.
fn subsets(k: usize, r: usize) -> Vec<Vec<usize>> {
    let mut all = Vec::with_capacity(choose(k as u64, r as u64) as usize);
    for bits in 0_u32..1 << k {
        if bits.count_ones() as usize == r {
            all.push((0..k).filter(|i| bits >> i & 1 == 1).collect());
        }
    }
    all.sort();
    all
}

impl KeyTables for Rules {
    type Sketch = Vectors;

    fn n_tables(&self) -> u32 {
        let n_pieces = self.pieces.map_or(0, |pieces| pieces.sizes().count());
        (self.subsets.len() + n_pieces) as u32
    }

    fn key(&self, table: u32, sketch: &Vectors) -> u64 {
        let table = table as usize;
        if let Some(subset) = self.subsets.get(table) {
            let features = subset.iter().map(|&j| sketch.features[j]);
            return key_bits(features.fold(0, |key, feature| mix(key ^ feature)));
        }
        let fingerprint = Fingerprint(sketch.simhash);
        let mut keys = self
            .pieces
            .iter()
            .flat_map(|pieces| pieces.keys(&fingerprint));
        key_bits(mix(keys.nth(table - self.subsets.len()).unwrap_or(0)))
    }

    fn accepts(&self, a: &Vectors, b: &Vectors) -> bool {
        self.verify == Verify::None || decide(&self.policy, &self.evidence(a, b)).is_some()
    }

    fn closeness(&self, a: &Vectors, b: &Vectors) -> u32 {
        let evidence = self.evidence(a, b);
        evidence.c_sim + 64 * evidence.b_sim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(threshold: f64) -> Bands {
        Bands::new(&Config::default(), Threshold::new(threshold).unwrap()).unwrap()
    }

    #[test]
    fn bands_reach_the_recall_with_the_samples_there_are() {
        for threshold in [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0] {
            let bands = bands(threshold);
            let (b, q) = (bands.banding.b(), bands.banding.q());
            assert!(b <= 64 && b * q <= N_SAMPLES, "{b} x {q}");
            assert!(
                bands.probability(threshold) > 0.994,
                "{threshold}: {b} x {q}"
            );
        }
        let default = bands(0.8).banding;
        assert_eq!((default.b(), default.q()), (18, 6));
    }

    /// The expected recall includes the pairs that the test of the sketches misses.
    #[test]
    fn the_recall_promised_is_reached_at_the_threshold() {
        for recall in [0.9, 0.95, 0.99, 0.995, 0.999, 0.9999] {
            for threshold in [0.5, 0.6, 0.7, 0.8, 0.9, 0.95] {
                let config = Config {
                    recall: Threshold::new(recall).unwrap(),
                    ..Config::default()
                };
                let threshold = Threshold::new(threshold).unwrap();
                // High recall at a low threshold needs more MinHash values than there are.
                let Ok(bands) = Bands::new(&config, threshold) else {
                    assert!(recall > 0.99 && threshold.get() < 0.6);
                    continue;
                };
                let reached = bands.probability(threshold.get());
                assert!(reached >= recall, "{reached} for {recall} at {threshold:?}");
            }
        }
    }

    /// A pair just below the threshold rarely counts as surely above it.
    #[test]
    fn what_is_sure_is_above_the_threshold() {
        assert_eq!(bands(0.8).sure_equal, 113);
        for threshold in [0.5, 0.8, 0.95] {
            let bands = bands(threshold);
            assert!(bands.sure_equal > bands.min_equal, "{threshold}");
            let below = at_least(128, threshold - 0.01, bands.sure_equal.into());
            assert!(below < SURE_ERROR, "{threshold}: {below}");
        }
        let config = Config {
            verify: Verify::Sketch,
            ..Config::default()
        };
        let bands = Bands::new(&config, Threshold::new(0.75).unwrap()).unwrap();
        assert_eq!(bands.sure_equal, 97);
    }

    #[test]
    fn recall_out_of_reach_is_an_error() {
        let config = Config::default();
        assert!(Bands::new(&config, Threshold::new(0.1).unwrap()).is_err());
    }

    /// Sketches that agree in all 16 stored bits of each MinHash value, but differ in one complete
    /// value per band.
    #[test]
    fn strangers_with_one_template_seldom_meet() {
        let bands = bands(0.8);
        let q = bands.banding.q() as u32;
        let page = |number: u32| {
            let samples = (0..N_SAMPLES as u32).map(|i| {
                let own = if i % q == 0 { number << 16 } else { 0 };
                own | i.wrapping_mul(40_503) & 0xffff
            });
            bands.keep(&samples.collect::<Vec<_>>(), &[])
        };
        let first = page(0);
        let n = 1000;
        let met = (1..=n).map(|number| {
            let other = page(number);
            let tables = 0..bands.n_tables();
            tables
                .filter(|&table| bands.key(table, &first) == bands.key(table, &other))
                .count()
        });
        let (met, all) = (met.sum::<usize>(), (n * bands.n_tables()) as usize);
        assert!(met > 0 && met * 256 < 2 * all, "{met} of {all}");
    }

    #[test]
    fn keys_are_those_of_what_is_kept() {
        use arose::mix::SplitMix;
        let mut random = SplitMix::new(9);
        for threshold in [0.5, 0.8, 0.95] {
            let bands = bands(threshold);
            let sketch: Vec<u32> = (0..N_SAMPLES).map(|_| random.next_u64() as u32).collect();
            let kept = bands.keep(&sketch, &[]);
            let expected = (0..bands.n_tables()).map(|table| bands.key(table, &kept));
            let keys: Vec<u64> = bands.keys(&sketch).collect();
            assert_eq!(keys, expected.collect::<Vec<_>>());
            assert!(keys.iter().all(|key| *key < 1 << KEY_BITS));
        }
    }

    /// Texts of a known cosine are found as often as expected under the policy `c`: bits are
    /// independent, and every pair with enough of them shares a key.
    #[test]
    fn issue_20_policy_c_finds_what_it_promises() {
        use arose::mix::SplitMix;
        let mut config = Config::default();
        config.policy.criterion = Criterion::PUBLISHED_C;
        let rules = Rules::new(&config).unwrap();
        let mut random = SplitMix::new(20);
        let n_pairs = 400;
        for n_replaced in [1, 2, 3, 4, 8] {
            let n_tokens = 400;
            let mut n_found = 0;
            for _ in 0..n_pairs {
                let mut tokens: Vec<u64> = (0..n_tokens).map(|_| random.next_u64()).collect();
                let vectors = |tokens: &[u64]| Vectors {
                    simhash: Fingerprint384::of(tokens).unwrap().0,
                    ..Vectors::zeroed()
                };
                let a = vectors(&tokens);
                for token in &mut tokens[..n_replaced] {
                    *token = random.next_u64();
                }
                let b = vectors(&tokens);
                let meet =
                    (0..rules.n_tables()).any(|table| rules.key(table, &a) == rules.key(table, &b));
                let is_duplicate = rules.accepts(&a, &b);
                assert!(meet || !is_duplicate, "a duplicate that does not meet");
                n_found += usize::from(meet && is_duplicate);
            }
            let cosine = 1.0 - n_replaced as f64 / n_tokens as f64;
            let promised = rules.probability(cosine);
            let share = n_found as f64 / n_pairs as f64;
            let error = (promised * (1.0 - promised) / n_pairs as f64).sqrt();
            // Four standard errors, and the effect of the small number of tokens on the
            // distribution.
            assert!(
                (share - promised).abs() < 4.0 * error + 0.02,
                "{share} of the pairs at {cosine}, {promised} promised"
            );
        }
    }

    #[test]
    fn bits_that_no_pieces_find_are_an_error() {
        let mut config = Config::default();
        for (min_bits, is_found) in [(360, false), (361, true), (384, true)] {
            config.policy.criterion = Criterion::C { min_bits };
            assert_eq!(Rules::new(&config).is_ok(), is_found, "{min_bits}");
        }
    }

    #[test]
    fn subsets_come_in_lexicographic_order() {
        let pairs = subsets(6, 2);
        assert_eq!(pairs.len(), 15);
        assert_eq!(pairs[..3], [vec![0, 1], vec![0, 2], vec![0, 3]]);
        assert!(pairs.is_sorted());
    }
}
