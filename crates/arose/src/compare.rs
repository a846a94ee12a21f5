//! Compares two texts by every score of this crate.
//!
//! *Question.* How similar are these two texts exactly, and which scores does each method give
//! them?
//!
//! *Idea.* Make a [`Profile`] of each text: its tokens, shingles, sketch, super-shingles and
//! simhash, with the settings of the literature (84 MinHash values in 6 super-shingles, 384 bits).
//! Compare the shingle sets for the exact scores and the rest for the estimates, and let a
//! [`Policy`] decide.
//!
//! *Cost.* Linear in the texts, except for sorting. Memory is about 24 bytes per token while a
//! profile is made, then 8 bytes per distinct shingle and 20 per token.
//!
//! *Not for* many documents, for which shingles are not stored.

use std::num::{NonZeroU16, NonZeroU64, NonZeroUsize};

use crate::content::{self, Content, Score, Scorer};
use crate::digest::Digest;
use crate::feature::{Features, b_sim};
use crate::rule::{Criterion, Evidence, Policy, Rule, ShortPolicy, SiteRelation, decide};
use crate::shingle::{self, ShingleSet, Shingler};
use crate::simhash::{Fingerprint384, law};
use crate::sketch::{ModM, NarrowMinHash, Sketcher};
use crate::token::{Tokenizer, Tokens};

/// MinHash values in a sketch: six super-shingles of fourteen values.
const N_SAMPLES: NonZeroU16 = NonZeroU16::new(84).expect("84 is not zero");

/// One shingle in this many is kept to estimate containment.
const M: NonZeroU64 = NonZeroU64::new(16).expect("16 is not zero");

/// Minimum number of kept shingles for an estimate. At a containment of 0.9, 20 shingles have a
/// standard error of 0.067.
const MIN_KEPT: usize = 20;

/// Seed of the permutations of every profile. Only profiles with the same seed can be compared.
const SEED: u64 = 1;

/// Makes profiles with one set of settings.
///
/// ```
/// use arose::compare::Profiler;
/// let profiler = Profiler::new(3.try_into()?);
/// let a = profiler.profile("Once upon a midnight dreary, while I pondered");
/// let b = profiler.profile("Once upon a time, while I pondered");
/// let comparison = profiler.compare(&a, &b);
/// assert_eq!(comparison.jaccard, Some(2.0 / 9.0));
/// assert_eq!(comparison.containment, [Some(1.0 / 3.0), Some(2.0 / 5.0)]);
/// # Ok::<(), std::num::TryFromIntError>(())
/// ```
#[derive(Debug, Clone)]
pub struct Profiler {
    tokenizer: Tokenizer,
    shingler: Shingler,
    pairs: Shingler,
    sketcher: NarrowMinHash,
    modulo: ModM,
    features: Features,
}

/// The tokens, shingles and sketches of one text.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The number of tokens.
    pub n_tokens: usize,
    /// The number of windows of `w` tokens, repeats included.
    pub n_shingles: usize,
    /// The windows, each once.
    pub shingles: ShingleSet,
    /// The MinHash values of 84 permutations; empty for a text without tokens.
    pub sketch: Vec<u32>,
    /// The shingles that are divisible by 16 under one permutation.
    pub sixteenth: Vec<u64>,
    /// Six super-shingles of 14 MinHash values each; empty for a text without tokens.
    pub features: Vec<u64>,
    /// 384 bits over the tokens, by count; none for a text without tokens.
    pub simhash: Option<Fingerprint384>,
    /// The pairs of words, all with weight 1, since the site is unknown.
    pub content: Content,
    /// The content digest: equal for exact duplicates.
    pub digest: Digest,
    /// Whether the text has fewer than `2 w` tokens.
    pub is_short: bool,
}

/// The scores of two texts. Scores that are undefined for empty texts are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Distinct shingles in both texts.
    pub n_common: usize,
    /// Distinct shingles in either text.
    pub n_union: usize,
    /// Exact Jaccard similarity of the shingle sets.
    pub jaccard: Option<f64>,
    /// Exact containment: the share of each shingle set that the other also has.
    pub containment: [Option<f64>; 2],
    /// The similarity, estimated from the 84 MinHash values.
    pub jaccard_estimate: Option<f64>,
    /// The containments, estimated from one shingle in 16. If a text keeps fewer than 20 of these,
    /// the estimate follows from the estimated similarity and the sizes of the sets.
    pub containment_estimate: [Option<f64>; 2],
    /// Matching super-shingles, `0..=6`.
    pub b_sim: u32,
    /// Matching simhash bits, `0..=384`; none if a text has no simhash.
    pub c_sim: Option<u32>,
    /// The cosine of the token counts that these bits imply.
    pub cosine_estimate: Option<f64>,
    /// The word pairs that both texts have in the same order. The weighted score does not consider
    /// sites.
    pub content: Score,
    /// Whether the texts are exact duplicates: equal after Unicode and whitespace normalization,
    /// and not empty.
    pub same_content: bool,
    /// Whether either text is short.
    pub either_short: bool,
}

impl Profiler {
    /// Creates a profiler with shingles of `w` tokens.
    #[must_use]
    pub fn new(w: NonZeroUsize) -> Self {
        let features = Features::SIX_BY_FOURTEEN;
        Self {
            tokenizer: Tokenizer::default(),
            shingler: Shingler::new(w),
            pairs: content::shingler(),
            sketcher: NarrowMinHash::new(N_SAMPLES, SEED),
            modulo: ModM::new(M, SEED),
            features,
        }
    }

    /// Makes the profile of a text.
    #[must_use]
    pub fn profile(&self, text: &str) -> Profile {
        self.profile_of_tokens(&self.tokenizer.tokens(text), Digest::of_text(text))
    }

    /// Makes the profile of a document whose tokens and content digest are known.
    #[must_use]
    pub fn profile_of_tokens(&self, tokens: &Tokens, digest: Digest) -> Profile {
        let mut occurrences = Vec::new();
        self.shingler
            .shingles_into(&tokens.fingerprints, &mut occurrences);
        let n_shingles = occurrences.len();
        let mut pairs = Vec::new();
        self.pairs.shingles_into(&tokens.fingerprints, &mut pairs);
        let shingles = ShingleSet::from_occurrences(occurrences);
        let sketch = self.sketcher.sketch(shingles.as_slice());
        let sixteenth = self.modulo.sketch(shingles.as_slice());
        let features = match sketch.as_slice() {
            [] => Vec::new(),
            sketch => self
                .features
                .of(sketch)
                .expect("the sketch has as many samples"),
        };
        Profile {
            n_tokens: tokens.len(),
            n_shingles,
            shingles,
            sketch,
            sixteenth,
            features,
            simhash: Fingerprint384::of(&tokens.fingerprints),
            content: Content::new(&pairs),
            digest,
            is_short: shingle::is_short(tokens.len(), self.shingler.w()),
        }
    }

    /// Compares two profiles made by this profiler.
    #[must_use]
    pub fn compare(&self, a: &Profile, b: &Profile) -> Comparison {
        let (set_a, set_b) = (&a.shingles, &b.shingles);
        let n_common = set_a.n_common(set_b);
        let n_union = set_a.len() + set_b.len() - n_common;
        let share = |n: usize| (n > 0).then(|| n_common as f64 / n as f64);
        let jaccard_estimate = self.sketcher.estimate(&a.sketch, &b.sketch);
        let implied = |of: &ShingleSet| {
            let common = shingle::implied_common(jaccard_estimate?, set_a.len(), set_b.len());
            Some((common / of.len() as f64).min(1.0))
        };
        let contained = |a: &Profile, b: &Profile| match a.sixteenth.len() {
            0..MIN_KEPT => implied(&a.shingles),
            _ => self.modulo.containment(&a.sixteenth, &b.sixteenth),
        };
        let c_sim = a.simhash.zip(b.simhash).map(|(a, b)| a.c_sim(&b));
        Comparison {
            n_common,
            n_union,
            jaccard: share(n_union),
            containment: [share(set_a.len()), share(set_b.len())],
            jaccard_estimate,
            containment_estimate: [contained(a, b), contained(b, a)],
            b_sim: b_sim(&a.features, &b.features) as u32,
            c_sim,
            cosine_estimate: c_sim.map(|c_sim| law::implied_cosine(c_sim, Fingerprint384::BITS)),
            content: Scorer::default().score(&a.content, &b.content),
            same_content: a.digest.same_content(b.digest),
            either_short: a.is_short || b.is_short,
        }
    }
}

impl Comparison {
    /// Returns the rule of `policy` that makes the texts duplicates, if any.
    #[must_use]
    pub fn rule(&self, policy: &Policy, site: SiteRelation) -> Option<Rule> {
        if let Criterion::Contained(least) = policy.criterion
            && !self.same_content
        {
            let shares = self.containment.into_iter().flatten();
            let is_contained = shares.fold(0.0, f64::max);
            let is_judged = !self.either_short || policy.short == ShortPolicy::LikeAny;
            return (is_judged && least.reached_by(is_contained)).then_some(Rule::Contained);
        }
        let evidence = Evidence {
            site,
            b_sim: self.b_sim,
            c_sim: self.c_sim.unwrap_or(0),
            jaccard: self.jaccard,
            level: Some(self.content.level()),
            same_content: self.same_content,
            either_short: self.either_short,
        };
        decide(policy, &evidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Threshold;
    use crate::rule::{Criterion, ShortPolicy};
    use proptest::prelude::*;

    fn compare(w: usize, a: &str, b: &str) -> Comparison {
        let profiler = Profiler::new(w.try_into().unwrap());
        profiler.compare(&profiler.profile(a), &profiler.profile(b))
    }

    fn jaccard(threshold: f64) -> Policy {
        Policy {
            criterion: Criterion::Jaccard(Threshold::new(threshold).unwrap()),
            short: ShortPolicy::ExactOnly,
        }
    }

    #[test]
    fn exact_means_equal_symbols_too() {
        let check = |a: &str, b: &str, expected: Option<Rule>| {
            let comparison = compare(2, a, b);
            assert_eq!(comparison.jaccard, Some(1.0));
            assert_eq!((comparison.b_sim, comparison.c_sim), (6, Some(384)));
            let rule = comparison.rule(&jaccard(0.8), SiteRelation::Unknown);
            assert_eq!(rule, expected, "{a:?} and {b:?}");
        };
        check("A rose, is a", "A  rose,\nis a ", Some(Rule::Exact));
        check("a rose, is a rose", "a rose is a ROSE", Some(Rule::Jaccard));
        check("C++", "C#", None);
    }

    #[test]
    fn empty_texts_are_no_duplicates() {
        for (a, b) in [("", ""), ("", " \n")] {
            let comparison = compare(8, a, b);
            assert!(!comparison.same_content);
            assert_eq!(
                comparison.rule(&Policy::default(), SiteRelation::Unknown),
                None
            );
        }
        assert!(compare(8, "...", " ...").same_content);
    }

    /// Every shingle of one text is in the other, but both texts are short and differ.
    #[test]
    fn short_texts_are_duplicates_only_if_equal() {
        let comparison = compare(3, "a rose is a rose", "a rose is a rose is a rose");
        assert_eq!(comparison.jaccard, Some(1.0));
        assert!(comparison.either_short);
        assert_eq!(comparison.rule(&jaccard(0.8), SiteRelation::Unknown), None);
    }

    #[test]
    fn empty_texts_have_no_measures() {
        let comparison = compare(8, "", "...");
        assert_eq!(comparison.jaccard, None);
        assert_eq!(comparison.containment, [None, None]);
        assert_eq!(comparison.jaccard_estimate, None);
        assert_eq!(comparison.containment_estimate, [None, None]);
        assert_eq!((comparison.c_sim, comparison.cosine_estimate), (None, None));
        assert_eq!(compare(8, "", "a rose").jaccard, Some(0.0));
    }

    /// A short text in a long one: a MinHash sketch of fixed size is too coarse, but one shingle in
    /// 16 is enough.
    #[test]
    fn issue_29_containment_of_an_excerpt() {
        let words: Vec<String> = (0..20_000).map(|i| format!("word{i}")).collect();
        let mut excerpt = words[3000..4600].to_vec();
        let whole = compare(5, &excerpt.join(" "), &words.join(" "));
        assert_eq!(whole.containment_estimate[0], Some(1.0));
        for word in excerpt.iter_mut().step_by(50) {
            "other".clone_into(word);
        }
        let edited = compare(5, &excerpt.join(" "), &words.join(" "));
        let (exact, estimate) = (edited.containment[0], edited.containment_estimate[0]);
        let (exact, estimate) = (exact.unwrap(), estimate.unwrap());
        // Four standard errors of the hundred values kept of 1,596.
        let error = (exact * (1.0 - exact) / 100.0).sqrt();
        assert!(
            (estimate - exact).abs() <= 4.0 * error,
            "{estimate} {exact}"
        );
        assert!(estimate < 1.0);
    }

    #[test]
    fn a_changed_word_in_a_long_text() {
        let words: Vec<String> = (0..500).map(|i| format!("word{i}")).collect();
        let mut edited = words.clone();
        edited[250] = "other".to_owned();
        let comparison = compare(8, &words.join(" "), &edited.join(" "));
        assert_eq!(comparison.jaccard, Some(485.0 / 501.0));
        assert_eq!(
            comparison.rule(&jaccard(0.9), SiteRelation::Unknown),
            Some(Rule::Jaccard)
        );
        assert_eq!(comparison.rule(&jaccard(0.99), SiteRelation::Unknown), None);
        let estimate = comparison.jaccard_estimate.unwrap();
        // Four standard errors of 84 MinHash values at 0.968.
        assert!((estimate - 0.968).abs() <= 4.0 * 0.0192, "{estimate}");
    }

    proptest! {
        /// Equal content digests imply equal super-shingles and equal bits.
        #[test]
        fn equal_content_means_equal_vectors(words in prop::collection::vec("[a-z]{1,8}", 0..60)) {
            let profiler = Profiler::new(shingle::FEATURE_W);
            let a = profiler.profile(&words.join(" "));
            let b = profiler.profile(&words.join("\n\n"));
            prop_assert_eq!(a.digest, b.digest);
            prop_assert_eq!((&a.features, a.simhash), (&b.features, b.simhash));
            prop_assert_eq!(&a.sketch, &b.sketch);
        }

        #[test]
        fn comparison_is_symmetric(a in "[a-c ]{0,80}", b in "[a-c ]{0,80}") {
            let (there, back) = (compare(2, &a, &b), compare(2, &b, &a));
            let policy = jaccard(0.5);
            prop_assert_eq!(
                there.rule(&policy, SiteRelation::Unknown),
                back.rule(&policy, SiteRelation::Unknown)
            );
            prop_assert_eq!(there.jaccard, back.jaccard);
            prop_assert_eq!(there.containment[0], back.containment[1]);
            prop_assert_eq!(there.containment_estimate[0], back.containment_estimate[1]);
        }
    }
}
