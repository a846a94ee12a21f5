//! Cost of a query before it runs: the bytes of the posting lists that it reads.
//!
//! A prefix query reads the lists of all words with the prefix before its first match, and cannot
//! be stopped meanwhile. Therefore these lists are counted separately.

use std::iter::Sum;
use std::ops::Bound;

use tantivy::schema::Field;
use tantivy::{InvertedIndexReader, Searcher, Term};

use crate::compile::{field, prefix_range};
use crate::query::{Part, Query};
use crate::schema::Fields;

/// The cost of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Approximate number of index bytes that it reads.
    pub bytes: u64,
    /// Bytes that are read in steps that cannot be stopped.
    pub at_once: u64,
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::default(), |sum, cost| Self {
            bytes: sum.bytes + cost.bytes,
            at_once: sum.at_once + cost.at_once,
        })
    }
}

impl From<u64> for Cost {
    fn from(bytes: u64) -> Self {
        let at_once = 0;
        Self { bytes, at_once }
    }
}

/// The cost of a query.
pub(crate) fn of(query: &Query, fields: &Fields, searcher: &Searcher) -> tantivy::Result<Cost> {
    Ok(match query {
        Query::Words(part, words) => {
            let mut cost = of_words(field(*part, fields), words, searcher)?;
            if *part == Part::Text {
                cost += of_words(fields.title_words, words, searcher)?;
            }
            cost.into()
        }
        Query::Prefix(part, prefix) => {
            let bytes = of_prefix(field(*part, fields), prefix, searcher)?;
            let at_once = bytes;
            Cost { bytes, at_once }
        }
        Query::Site(site) => of_words(fields.domain, std::slice::from_ref(site), searcher)?.into(),
        Query::Language(name) => {
            of_words(fields.language, std::slice::from_ref(name), searcher)?.into()
        }
        // Reads every document.
        Query::Year(_) => searcher.num_docs().into(),
        Query::Not(inner) => {
            let all = [searcher.num_docs().into(), of(inner, fields, searcher)?];
            all.into_iter().sum()
        }
        Query::All(parts) if parts.is_empty() => searcher.num_docs().into(),
        Query::All(parts) | Query::Any(parts) => {
            let costs = parts.iter().map(|part| of(part, fields, searcher));
            costs.sum::<tantivy::Result<Cost>>()?
        }
    })
}

/// A word that occurs twice in a phrase is compared twice.
fn of_words(field: Field, words: &[String], searcher: &Searcher) -> tantivy::Result<u64> {
    let mut cost = 0;
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(field)?;
        for word in words {
            cost += match inverted.get_term_info(&Term::from_field_text(field, word))? {
                Some(info) if words.len() > 1 => {
                    info.postings_range.len() + info.positions_range.len()
                }
                Some(info) => info.postings_range.len(),
                None => 0,
            } as u64;
        }
    }
    Ok(cost)
}

fn of_prefix(field: Field, prefix: &str, searcher: &Searcher) -> tantivy::Result<u64> {
    let mut cost = 0;
    for segment in searcher.segment_readers() {
        cost += of_range(
            &*segment.inverted_index(field)?,
            prefix_range(field, prefix),
        )?;
    }
    Ok(cost)
}

fn of_range(
    inverted: &InvertedIndexReader,
    (start, end): (Bound<Term>, Bound<Term>),
) -> tantivy::Result<u64> {
    let mut range = inverted.terms().range();
    if let Bound::Included(start) = &start {
        range = range.ge(start.serialized_value_bytes());
    }
    if let Bound::Excluded(end) = &end {
        range = range.lt(end.serialized_value_bytes());
    }
    let (mut terms, mut cost) = (range.into_stream()?, 0);
    while terms.advance() {
        cost += terms.value().postings_range.len() as u64;
    }
    Ok(cost)
}
