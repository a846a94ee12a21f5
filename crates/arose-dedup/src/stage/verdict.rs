//! What happens to a document: it stays, or is dropped for another of the run or of an index.

use arose::rule::Rule;

use crate::Error;
use crate::column::Column;
use crate::record::{Accepted, DocRecord, NO_SCORE, Ordinal, rule_index};
use crate::stage::cluster::{NOT_TAKEN, Star};
use crate::stage::known::Answers;
use crate::stage::tables::exact_scores;

/// What happens to a document, and why.
pub(crate) struct Verdict {
    pub(crate) kept_doc: Option<Ordinal>,
    /// None if it is kept.
    pub(crate) rule: Option<Rule>,
    pub(crate) similarity: Option<f64>,
    /// B-sim and C-sim of the two, where they were computed.
    pub(crate) sims: [u16; 2],
    /// What an index calls the document it was dropped for.
    pub(crate) known_as: Option<String>,
}

impl Verdict {
    /// The verdict on an empty document that is not wanted.
    pub(crate) const EMPTY: Self = Self {
        kept_doc: None,
        rule: Some(Rule::Empty),
        similarity: None,
        sims: [NO_SCORE; 2],
        known_as: None,
    };

    /// The verdict on a content that an index holds; none if it does not.
    pub(crate) fn held(first: Ordinal, answers: &Answers) -> Result<Option<Self>, Error> {
        let known = answers.of(first)?;
        let Some(rule) = known.rule() else {
            return Ok(None);
        };
        Ok(Some(Self {
            kept_doc: None,
            rule: Some(rule),
            similarity: Some(known.similarity),
            sims: [NO_SCORE; 2],
            known_as: Some(answers.name(&known)?),
        }))
    }

    /// The verdict among the documents of the run, given what happened to its content, which copy
    /// stays and the rule that makes copies.
    pub(crate) fn of(
        doc: Ordinal,
        record: &DocRecord,
        star: &Star,
        keeper: Ordinal,
        keepers: &Column<Ordinal>,
        copies: Rule,
    ) -> Result<Self, Error> {
        if star.centre != NOT_TAKEN {
            return Ok(Self {
                kept_doc: Some(keepers.get(star.centre)?),
                rule: Some(Rule::ALL[star.rule as usize]),
                similarity: (!star.jaccard.is_nan()).then_some(star.jaccard),
                sims: star.sims,
                known_as: None,
            });
        }
        let is_kept = keeper == doc;
        let exact = exact_scores(record.n_tokens);
        let is_same = copies == Rule::Exact;
        Ok(Self {
            kept_doc: (!is_kept).then_some(keeper),
            rule: (!is_kept).then_some(copies),
            similarity: (!is_kept && is_same).then_some(1.0),
            sims: match is_same {
                true => [exact.b_sim, exact.c_sim],
                false => [NO_SCORE; 2],
            },
            known_as: None,
        })
    }

    /// What a dropped document is listed with.
    pub(crate) fn scores(&self) -> Accepted {
        let [b_sim, c_sim] = self.sims;
        let rule = self.rule.unwrap_or(Rule::Exact);
        // Documents without tokens are equal, but have no similarity.
        let is_empty = rule == Rule::Exact && b_sim == NO_SCORE;
        Accepted {
            a: 0,
            b: 0,
            jaccard: self.similarity.filter(|_| !is_empty).unwrap_or(f64::NAN),
            b_sim,
            c_sim,
            rule: rule_index(rule),
        }
    }
}
