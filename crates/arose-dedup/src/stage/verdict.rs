//! What happens to a document: it stays, or is dropped for another of the run or of an index.

use arose::rule::Rule;

use crate::Error;
use crate::column::Column;
use crate::record::{DocRecord, Ordinal, Scores};
use crate::stage::cluster::{NOT_TAKEN, Star};
use crate::stage::known::Answers;

/// What happens to a document, and why.
pub(crate) struct Verdict {
    pub(crate) kept_doc: Option<Ordinal>,
    /// None if it is kept.
    pub(crate) rule: Option<Rule>,
    pub(crate) similarity: Option<f64>,
    /// What it is listed with, if it was dropped for a document of the run.
    pub(crate) scores: Option<Scores>,
    /// The kept document that its versions are grouped under; none if that is the one of its
    /// cluster.
    pub(crate) group: Option<Ordinal>,
    /// What an index calls the document it was dropped for.
    pub(crate) known_as: Option<String>,
}

impl Verdict {
    /// The verdict on an empty document that is not wanted.
    pub(crate) const EMPTY: Self = Self {
        kept_doc: None,
        rule: Some(Rule::Empty),
        similarity: None,
        scores: None,
        group: None,
        known_as: None,
    };

    /// The verdict on a document that the filter rejects.
    pub(crate) const FILTERED: Self = Self {
        kept_doc: None,
        rule: Some(Rule::Filter),
        similarity: None,
        scores: None,
        group: None,
        known_as: None,
    };

    /// The verdict on a version of a page that was fetched again later.
    pub(crate) const SUPERSEDED: Self = Self {
        rule: Some(Rule::Superseded),
        ..Self::FILTERED
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
            scores: None,
            group: None,
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
                rule: Some(star.scores.rule()),
                similarity: star.scores.similarity(),
                scores: Some(star.scores),
                group: None,
                known_as: None,
            });
        }
        let is_kept = keeper == doc;
        let scores = match copies {
            Rule::Exact => Scores::equal(record.n_tokens),
            _ => Scores::unknown(copies),
        };
        Ok(Self {
            kept_doc: (!is_kept).then_some(keeper),
            rule: (!is_kept).then_some(copies),
            similarity: (!is_kept && copies == Rule::Exact).then_some(1.0),
            scores: (!is_kept).then_some(scores),
            group: None,
            known_as: None,
        })
    }
}
