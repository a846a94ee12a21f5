//! What becomes of a candidate, once its documents are at hand.

use arose::feature::b_sim;
use arose::rule::{Criterion, Evidence, Policy, Rule, SiteRelation, decide};
use arose::simhash::Fingerprint384;

use crate::Error;
use crate::config::{Config, Verify};
use crate::record::{Accepted, NO_SCORE, PairKey, Samples, Vectors, rule_index};
use crate::scheme::{Bands, Rules};
use crate::stage::row::has_simhash;

/// Scores pairs and asks the rule.
pub(crate) struct Scorer {
    policy: Policy,
    verify: Verify,
    bands: Option<Bands>,
    rules: Rules,
    /// Whether sketches hold no simhashes, the policy having no use for them.
    pub(crate) is_without_simhash: bool,
}

impl Scorer {
    pub(crate) fn new(config: &Config) -> Result<Self, Error> {
        let bands = match config.policy.criterion {
            Criterion::Jaccard(threshold) => Some(Bands::new(config, threshold)?),
            _ => None,
        };
        Ok(Self {
            policy: config.policy,
            verify: config.verify,
            bands,
            rules: Rules::new(config)?,
            is_without_simhash: !has_simhash(config),
        })
    }

    /// Whether [`by_sketch`](Self::by_sketch) looks at samples.
    pub(crate) fn needs_samples(&self) -> bool {
        self.bands.is_some() && self.verify == Verify::Sketch
    }

    /// Whether a coefficient, or one that is no greater, says that a pair is rejected.
    pub(crate) fn is_too_low(&self, jaccard: f64) -> bool {
        matches!(self.policy.criterion, Criterion::Jaccard(least) if !least.reached_by(jaccard))
    }

    /// A pair whose coefficient is known; simhashes are those that sketches may be without.
    pub(crate) fn by_text(
        &self,
        pair: PairKey,
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
        Some(Accepted {
            a: pair.a,
            b: pair.b,
            jaccard,
            b_sim: evidence.b_sim as u16,
            c_sim: c_sim as u16,
            rule: rule_index(rule),
        })
    }

    /// A pair that is judged by its sketches, or not at all.
    pub(crate) fn by_sketch(
        &self,
        pair: PairKey,
        [a, b]: &[Vectors; 2],
        samples: Option<&[Samples; 2]>,
    ) -> Option<Accepted> {
        let mut evidence = self.rules.evidence(a, b);
        evidence.jaccard = samples.map(|[a, b]| Bands::estimate(a, b));
        let rule = match self.verify {
            Verify::None => Some(self.unverified_rule(&evidence)),
            _ => decide(&self.policy, &evidence),
        };
        rule.map(|rule| Accepted {
            a: pair.a,
            b: pair.b,
            jaccard: evidence.jaccard.unwrap_or(f64::NAN),
            b_sim: b_sim(&a.features, &b.features) as u16,
            c_sim: if self.is_without_simhash {
                NO_SCORE
            } else {
                evidence.c_sim as u16
            },
            rule: rule_index(rule),
        })
    }

    /// The rule that a candidate would have to pass.
    fn unverified_rule(&self, evidence: &Evidence) -> Rule {
        match self.policy.criterion {
            Criterion::Exact => Rule::Exact,
            Criterion::Jaccard(_) => Rule::Jaccard,
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

    /// How many pairs like this one there are for each that is found.
    pub(crate) fn inverse_chance(&self, pair: &Accepted) -> f64 {
        match &self.bands {
            Some(bands) if pair.jaccard.is_finite() => 1.0 / bands.probability(pair.jaccard),
            _ => 1.0,
        }
    }
}
