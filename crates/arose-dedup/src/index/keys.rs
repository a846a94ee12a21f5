//! The keys under which a document is found, and the comparison of candidates.
//!
//! A key is a table number and a value, hashed together to 64 bits, of which the index stores the
//! first [`PREFIX_BITS`]. The tables follow from the [`Settings`]: there are enough that any two
//! documents that match the rule share a key. Keys that agree by chance cost a read but change no
//! result, since every candidate is compared by its stored sketch.

use arose::content::{NEARLY_EQUAL, Score};
use arose::digest::{Digest, digest64};
use arose::feature::{agreement, mega_shingles};
use arose::mix::mix;
use arose::rule::{Criterion, Evidence, Policy, Rule, ShortPolicy, SiteRelation, decide};
use arose::simhash::pieces::Pieces;
use arose::simhash::{Fingerprint, Fingerprint384};
use arose::slot_index::n_probes;

use super::own::{self, Weighing};
use super::settings::{FeatureKeys, Kind, N_FEATURES, Settings};
use super::sketch::{Sketch, samples_of};
use crate::marks::{MarkTables, Marks};
use crate::scheme::{Bands, KeyTables as _};

/// Number of bits of a hash that an index stores. Among `n` entries, a key that is not in the index
/// matches `n / 2^35` by chance: 0.012 for 20 million documents of 20 keys.
pub(super) const PREFIX_BITS: u32 = 35;

/// Returns the bits of a key that an index stores.
#[inline]
pub(super) fn prefix_of(key: u64) -> u64 {
    key >> (64 - PREFIX_BITS)
}

/// Computes keys and compares candidates.
#[derive(Debug)]
pub(super) struct KeyPlan {
    pub(super) settings: Settings,
    /// Number of words of a sketch.
    pub(super) n_words: usize,
    policy: Policy,
    features: Option<(usize, FeatureKeys)>,
    pieces: Option<Pieces<6>>,
    bands: Option<Bands>,
    marks: Option<MarkTables>,
    /// Weighs documents, if the policy is `content`.
    pub(super) weighing: Option<Weighing>,
    /// One salt per table, so that equal values of different tables are different keys.
    salts: Vec<u64>,
    /// The first key that is not the key of a name. Names have a range of keys to themselves, so
    /// that they are contiguous in every sorted run.
    pub(super) names_end: u64,
}

/// Number of tables that every index has.
const NAMES: usize = 0;
const DIGESTS: usize = 1;
const FIRST_OF_SKETCH: usize = 2;

impl KeyPlan {
    pub(super) fn new(settings: &Settings) -> Self {
        let (n_words, policy) = (settings.n_words(), settings.policy());
        let n_tables = FIRST_OF_SKETCH + N_FEATURES.max(20) + n_words.max(64);
        let mut plan = Self {
            settings: *settings,
            n_words,
            policy,
            features: settings.min_features(),
            pieces: settings.n_pieces().map(|n| {
                Pieces::new(n).expect("the number of pieces follows from checked settings")
            }),
            bands: settings.bands(),
            marks: (settings.is_content())
                .then(|| MarkTables::of(policy.criterion).expect("the bands are constants")),
            weighing: settings.is_content().then(|| Weighing::new(settings.seed)),
            salts: (1..=n_tables as u64).map(mix).collect(),
            names_end: u64::MAX,
        };
        let mut keys = Vec::new();
        let mut sketch = Sketch::empty();
        sketch.words.resize(n_words, 0);
        plan.sketch_keys(&sketch, &mut keys);
        plan.names_end = u64::MAX / (keys.len() as u64 + 1);
        plan
    }

    /// Returns the key under which a name is found.
    pub(super) fn name_key(&self, name: &str) -> u64 {
        let hash = mix(digest64(name.as_bytes()) ^ self.salts[NAMES]);
        scaled(hash, self.names_end)
    }

    /// Replaces `keys` by all keys under which a document is found.
    pub(super) fn document_keys(&self, name: &str, sketch: &Sketch, keys: &mut Vec<u64>) {
        self.sketch_keys(sketch, keys);
        keys.push(self.name_key(name));
    }

    /// Replaces `keys` by all keys under which a sketch is found.
    pub(super) fn sketch_keys(&self, sketch: &Sketch, keys: &mut Vec<u64>) {
        keys.clear();
        let digest = sketch.digest.0;
        keys.push(self.key(DIGESTS, (digest ^ (digest >> 64)) as u64));
        // The levels of `content` themselves require enough text.
        let is_exact_only = sketch.is_short
            && self.settings.short == ShortPolicy::ExactOnly
            && !self.settings.is_content();
        if sketch.words.is_empty() || is_exact_only {
            return;
        }
        match self.settings.kind {
            Kind::Exact => {}
            Kind::Jaccard { .. } => self.band_keys(&sketch.words, keys),
            Kind::Content { .. } => self.mark_keys(&sketch.words, keys),
            Kind::Compact { .. } => self.compact_keys(&sketch.words, keys),
            Kind::Full {
                n_samples,
                min_agreeing,
            } => {
                // Any set of this many slots contains an agreement, hence so do the first ones, and
                // the others need no table.
                let n = n_probes(n_samples.get().into(), min_agreeing.get().into());
                self.slot_keys(&sketch.words[..n], FIRST_OF_SKETCH, keys);
            }
        }
    }

    fn band_keys(&self, words: &[u64], keys: &mut Vec<u64>) {
        let samples = samples_of(words);
        if let Some(bands) = &self.bands {
            let tables = (0..bands.n_tables()).zip(FIRST_OF_SKETCH..);
            // Keys in existing index files were computed from 32 bits.
            let key = |band| u64::from(bands.key(band, &samples) as u32);
            keys.extend(tables.map(|(band, table)| self.key(table, key(band))));
        }
    }

    fn mark_keys(&self, words: &[u64], keys: &mut Vec<u64>) {
        let Some(tables) = &self.marks else {
            return;
        };
        let marks = own::marks_of(words);
        let numbers = (0..tables.n_tables()).zip(FIRST_OF_SKETCH..);
        keys.extend(numbers.map(|(number, table)| self.key(table, tables.key(number, &marks))));
    }

    fn compact_keys(&self, words: &[u64], keys: &mut Vec<u64>) {
        let (features, simhash) = words.split_at(N_FEATURES);
        let mut table = FIRST_OF_SKETCH;
        match self.features {
            Some((r, FeatureKeys::Tables)) => {
                self.slot_keys(&features[..n_probes(N_FEATURES, r)], table, keys);
            }
            Some((r, FeatureKeys::Mega)) => {
                let mega = mega_shingles(features, r).expect("r is 1 to 6, checked in settings");
                self.slot_keys(&mega, table, keys);
            }
            None => {}
        }
        table += 20;
        if let (Some(pieces), Some(simhash)) = (self.pieces, simhash.first_chunk()) {
            let simhash = Fingerprint(*simhash);
            let pieces = pieces.keys(&simhash).zip(table..);
            keys.extend(pieces.map(|(piece, table)| self.key(table, piece)));
        }
    }

    fn slot_keys(&self, values: &[u64], table: usize, keys: &mut Vec<u64>) {
        let slots = values.iter().zip(table..);
        keys.extend(slots.map(|(&value, table)| self.key(table, value)));
    }

    fn key(&self, table: usize, value: u64) -> u64 {
        let hash = mix(value ^ self.salts[table]);
        self.names_end + scaled(hash, u64::MAX - self.names_end)
    }

    /// Returns the test of candidates for a sketch.
    pub(super) fn test<'a>(&'a self, sketch: &Sketch) -> CandidateTest<'a> {
        let tables = self.marks.as_ref().filter(|_| !sketch.words.is_empty());
        CandidateTest {
            digest: sketch.digest,
            marks: tables.map(|tables| (tables, own::marks_of(&sketch.words))),
        }
    }

    /// The scores of two sketches of this index, and the rule that makes the two duplicates.
    pub(super) fn judge(&self, a: &Sketch, b: &Sketch) -> Judged {
        let (evidence, score) = self.evidence(a, b);
        let rule = self.rule(a, b, &evidence);
        Judged {
            similarity: self.similarity(&evidence, score.as_ref()),
            evidence,
            score,
            rule,
        }
    }

    fn rule(&self, a: &Sketch, b: &Sketch, evidence: &Evidence) -> Option<Rule> {
        let Some(bands) = &self.bands else {
            return decide(&self.policy, evidence);
        };
        // MinHash values only estimate the similarity, and an estimate below the threshold may be
        // chance. So every pair that a run would compare by text counts as reaching the threshold.
        let passes = evidence.jaccard.is_some() && {
            let [a, b] = [a, b].map(|sketch| samples_of(&sketch.words));
            bands.accepts(&a, &b)
        };
        let jaccard = passes.then_some(1.0);
        let decided = Evidence {
            jaccard,
            ..*evidence
        };
        decide(&self.policy, &decided)
    }

    /// The scores of two sketches of this index.
    fn evidence(&self, a: &Sketch, b: &Sketch) -> (Evidence, Option<Score>) {
        let mut score = None;
        let both = !a.words.is_empty() && !b.words.is_empty();
        let mut evidence = Evidence {
            site: match (a.site, b.site) {
                (Some(a), Some(b)) if a == b => SiteRelation::Same,
                (Some(_), Some(_)) => SiteRelation::Different,
                _ => SiteRelation::Unknown,
            },
            b_sim: 0,
            c_sim: 0,
            jaccard: None,
            level: None,
            same_content: a.digest.same_content(b.digest),
            either_short: a.is_short || b.is_short,
        };
        match self.settings.kind {
            Kind::Compact { .. } if both => {
                let [(left, left_bits), (right, right_bits)] =
                    [a, b].map(|sketch| sketch.words.split_at(N_FEATURES));
                evidence.b_sim = agreement(left, right) as u32;
                let words = left_bits.iter().zip(right_bits);
                evidence.c_sim = words.map(|(x, y)| (x ^ y).count_zeros()).sum();
            }
            Kind::Jaccard { .. } if both => {
                let [left, right] = [a, b].map(|sketch| samples_of(&sketch.words));
                let estimate = Bands::estimate(&left, &right);
                evidence.jaccard = Some(estimate.min(left.most_jaccard(&right)));
            }
            Kind::Full { n_samples, .. } if both => {
                let n_agreeing = agreement(&a.words, &b.words) as f64;
                evidence.jaccard = Some(n_agreeing / f64::from(n_samples.get()));
            }
            Kind::Content { .. } if both => {
                let found = own::score(&a.words, &b.words);
                evidence.level = Some(found.level());
                score = Some(found);
            }
            _ => {}
        }
        (evidence, score)
    }

    /// Returns a number in `0..=1` for the similarity of two documents, to rank those that match
    /// the rule.
    fn similarity(&self, evidence: &Evidence, score: Option<&Score>) -> f64 {
        if evidence.same_content {
            return 1.0;
        }
        match self.policy.criterion {
            Criterion::Content(_) => score.map_or(0.0, similarity_of),
            Criterion::Jaccard(_) => evidence.jaccard.unwrap_or(0.0),
            Criterion::B { .. } => f64::from(evidence.b_sim) / N_FEATURES as f64,
            _ => f64::from(evidence.c_sim) / f64::from(Fingerprint384::BITS),
        }
    }
}

/// The test of a run that rules out most candidates before they are compared. Only the policy
/// `content` needs it, whose comparison takes long.
pub(super) struct CandidateTest<'a> {
    digest: Digest,
    marks: Option<(&'a MarkTables, Marks)>,
}

impl CandidateTest<'_> {
    pub(super) fn passes(&self, other: &Sketch) -> bool {
        let Some((tables, marks)) = &self.marks else {
            return true;
        };
        let may_be_alike =
            || !other.words.is_empty() && tables.accepts(marks, &own::marks_of(&other.words));
        self.digest.same_content(other.digest) || may_be_alike()
    }
}

/// The result of a comparison of two sketches.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    pub(super) evidence: Evidence,
    /// The scores of the policy `content`.
    pub(super) score: Option<Score>,
    pub(super) rule: Option<Rule>,
    pub(super) similarity: f64,
}

/// Returns the deciding score: the unweighted one for documents that are nearly the same.
fn similarity_of(score: &Score) -> f64 {
    match score.u >= NEARLY_EQUAL {
        true => score.u.max(score.s),
        false => score.s,
    }
}

/// Maps a hash to a number below `end`, preserving the order of hashes.
#[inline]
fn scaled(hash: u64, end: u64) -> u64 {
    ((u128::from(hash) * u128::from(end)) >> 64) as u64
}
