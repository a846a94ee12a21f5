//! What happens to a document: it stays, or is dropped for another of the run or of an index.

use arose::rule::Rule;

use crate::Error;
use crate::column::Column;
use crate::record::Ordinal;
use crate::stage::cluster::{NOT_TAKEN, Star};
use crate::stage::known::Answers;

/// What happens to a document, and why.
pub(crate) struct Verdict {
    pub(crate) kept_doc: Option<Ordinal>,
    /// None if it is kept.
    pub(crate) rule: Option<Rule>,
    pub(crate) similarity: Option<f64>,
    /// What an index calls the document it was dropped for.
    pub(crate) known_as: Option<String>,
}

impl Verdict {
    /// The verdict on an empty document that is not wanted.
    pub(crate) const EMPTY: Self = Self {
        kept_doc: None,
        rule: Some(Rule::Empty),
        similarity: None,
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
            known_as: Some(answers.name(&known)?),
        }))
    }

    /// The verdict among the documents of the run.
    pub(crate) fn of(
        doc: Ordinal,
        first: Ordinal,
        stars: &Column<Star>,
        keepers: &Column<Ordinal>,
    ) -> Result<Self, Error> {
        let star = stars.get(first)?;
        if star.centre != NOT_TAKEN {
            return Ok(Self {
                kept_doc: Some(keepers.get(star.centre)?),
                rule: Some(Rule::ALL[star.rule as usize]),
                similarity: (!star.jaccard.is_nan()).then_some(star.jaccard),
                known_as: None,
            });
        }
        let keeper = keepers.get(first)?;
        let is_kept = keeper == doc;
        Ok(Self {
            kept_doc: (!is_kept).then_some(keeper),
            rule: (!is_kept).then_some(Rule::Exact),
            similarity: (!is_kept).then_some(1.0),
            known_as: None,
        })
    }
}
