//! Decisions: a document is kept, or dropped for another document of the run or of an index.

use arose::rule::Rule;

use crate::Error;
use crate::column::Column;
use crate::record::{DocRecord, Ordinal, Scores};
use crate::stage::cluster::{NOT_TAKEN, Star};
use crate::stage::indexed::IndexMatches;

/// The decision on a document, and its reason.
pub(crate) struct Verdict {
    pub(crate) kept_doc: Option<Ordinal>,
    /// The rule that matched; none if the document is kept.
    pub(crate) rule: Option<Rule>,
    pub(crate) similarity: Option<f64>,
    /// The scores in the list of pairs, if it was dropped for a document of the run.
    pub(crate) scores: Option<Scores>,
    /// The kept document under which its versions are grouped; none if that is the kept document of
    /// its cluster.
    pub(crate) group: Option<Ordinal>,
    /// The name in the index of the document for which it was dropped.
    pub(crate) known_as: Option<String>,
}

impl Verdict {
    /// The decision on an empty document if empty documents are dropped.
    pub(crate) const EMPTY: Self = Self {
        kept_doc: None,
        rule: Some(Rule::Empty),
        similarity: None,
        scores: None,
        group: None,
        known_as: None,
    };

    /// The decision on a document that the filter rejects.
    pub(crate) const FILTERED: Self = Self {
        kept_doc: None,
        rule: Some(Rule::Filter),
        similarity: None,
        scores: None,
        group: None,
        known_as: None,
    };

    /// The decision on a version of a page that was fetched again later.
    pub(crate) const SUPERSEDED: Self = Self {
        rule: Some(Rule::Superseded),
        ..Self::FILTERED
    };

    /// Returns the decision on a document already in an index; none if it is not.
    pub(crate) fn in_index(first: Ordinal, matches: &IndexMatches) -> Result<Option<Self>, Error> {
        let found = matches.of(first)?;
        let Some(rule) = found.rule() else {
            return Ok(None);
        };
        Ok(Some(Self {
            kept_doc: None,
            rule: Some(rule),
            similarity: Some(found.similarity),
            scores: None,
            group: None,
            known_as: Some(matches.name(&found)?),
        }))
    }

    /// Returns the decision among the documents of the run, from the cluster of its first exact
    /// duplicate, the exact duplicate to keep, and the rule for exact duplicates.
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
        let scores = Scores::of_copies(copies, record.n_tokens);
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
