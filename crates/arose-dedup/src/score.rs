//! Scores of a candidate pair once both documents are available.

use arose::feature::b_sim;
use arose::rule::{Criterion, Evidence, Policy, Rule, SiteRelation, decide};
use arose::simhash::Fingerprint384;

use crate::Error;
use crate::config::{Config, Verify};
use crate::marks::MarkTables;
use crate::record::{Accepted, CandidateKey, NO_SCORE, Samples, Scores, Vectors};
use crate::scheme::{Bands, Rules};
use crate::stage::row::has_simhash;

/// Scores pairs and applies the rule.
pub(crate) struct Scorer {
    policy: Policy,
    verify: Verify,
    bands: Option<Bands>,
    marks: Option<MarkTables>,
    rules: Rules,
    /// Whether sketches have no simhashes, because the policy does not use them.
    pub(crate) is_without_simhash: bool,
}

impl Scorer {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let bands = match config.policy.criterion {
            Criterion::Jaccard(threshold) => Some(Bands::new(config, threshold)?),
            _ => None,
        };
        let marks = match config.policy.criterion {
            Criterion::Content(_) => Some(MarkTables::new(config)?),
            _ => None,
        };
        Ok(Self {
            policy: config.policy,
            verify: config.verify,
            bands,
            marks,
            rules: Rules::new(config)?,
            is_without_simhash: !has_simhash(config),
        })
    }

    /// Returns whether [`by_sketch`](Self::by_sketch) uses MinHash values.
    pub(crate) fn needs_samples(&self) -> bool {
        self.bands.is_some() && self.verify == Verify::Sketch
    }

    /// Returns whether a pair of this similarity, or a lower one, is rejected.
    pub(crate) fn is_too_low(&self, jaccard: f64) -> bool {
        matches!(self.policy.criterion, Criterion::Jaccard(least) if !least.reached_by(jaccard))
    }

    /// Scores a pair of known similarity. `simhashes` are given if the sketches may lack them.
    pub(crate) fn by_text(
        &self,
        pair: CandidateKey,
        [a, b]: &[Vectors; 2],
        jaccard: f64,
        simhashes: [Option<Fingerprint384>; 2],
    ) -> Option<Accepted> {
        let mut evidence = self.rules.evidence(a, b);
        evidence.jaccard = Some(jaccard);
        let rule = decide(&self.policy, &evidence)?;
        let c_sim = match simhashes {
            [Some(a), Some(b)] => a.c_sim(&b),
            _ => evidence.c_sim,
        };
        let scores = Scores {
            jaccard: jaccard.to_bits(),
            b_sim: evidence.b_sim as u16,
            c_sim: c_sim as u16,
            ..Scores::unknown(rule)
        };
        Some(Accepted::new(pair.a, pair.b, scores))
    }

    /// Scores a pair that is verified by its sketches, or not at all.
    pub(crate) fn by_sketch(
        &self,
        pair: CandidateKey,
        [a, b]: &[Vectors; 2],
        samples: Option<&[Samples; 2]>,
    ) -> Option<Accepted> {
        let mut evidence = self.rules.evidence(a, b);
        evidence.jaccard = samples.map(|[a, b]| Bands::estimate(a, b));
        let rule = match self.verify {
            Verify::None => Some(self.unverified_rule(&evidence)),
            _ => decide(&self.policy, &evidence),
        };
        let scores = Scores {
            jaccard: evidence.jaccard.unwrap_or(f64::NAN).to_bits(),
            b_sim: b_sim(&a.features, &b.features) as u16,
            c_sim: if self.is_without_simhash {
                NO_SCORE
            } else {
                evidence.c_sim as u16
            },
            ..Scores::unknown(rule?)
        };
        Some(Accepted::new(pair.a, pair.b, scores))
    }

    /// Returns the rule that a candidate would have to match.
    fn unverified_rule(&self, evidence: &Evidence) -> Rule {
        match self.policy.criterion {
            Criterion::Exact => Rule::Exact,
            Criterion::Contained(_) => Rule::Contained,
            Criterion::Url => Rule::Url,
            Criterion::Jaccard(_) => Rule::Jaccard,
            Criterion::Content(_) => Rule::Content,
            Criterion::B { .. } => Rule::B,
            Criterion::C { .. } => Rule::C,
            Criterion::Combined(_) => Rule::Combined,
            Criterion::Site { .. } => match evidence.site {
                SiteRelation::Same => Rule::SiteSame,
                SiteRelation::Different => Rule::SiteCross,
                SiteRelation::Unknown => Rule::Combined,
            },
        }
    }

    /// Returns the number of pairs like this one per pair that is found.
    pub(crate) fn inverse_chance(&self, pair: &Accepted) -> f64 {
        if let (Some(marks), [Some(s), Some(u)]) = (&self.marks, pair.scores.content()) {
            return 1.0 / marks.probability(s, u);
        }
        match (&self.bands, pair.scores.jaccard()) {
            (Some(bands), Some(jaccard)) => 1.0 / bands.probability(jaccard),
            _ => 1.0,
        }
    }
}
