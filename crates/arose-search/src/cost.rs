//! What a query costs before it is run: the bytes of the lists that it reads.

use std::ops::Bound;

use tantivy::schema::Field;
use tantivy::{InvertedIndexReader, Searcher, Term};

use crate::compile::{field, prefix_range};
use crate::query::{Part, Query};
use crate::schema::Fields;

/// Bytes of the index that a query reads, about.
pub(crate) fn of(query: &Query, fields: &Fields, searcher: &Searcher) -> tantivy::Result<u64> {
    Ok(match query {
        Query::Words(part, words) => {
            let mut cost = of_words(field(*part, fields), words, searcher)?;
            if *part == Part::Text {
                cost += of_words(fields.title_words, words, searcher)?;
            }
            cost
        }
        Query::Prefix(part, prefix) => of_prefix(field(*part, fields), prefix, searcher)?,
        Query::Site(site) => of_words(fields.domain, std::slice::from_ref(site), searcher)?,
        Query::Language(name) => of_words(fields.language, std::slice::from_ref(name), searcher)?,
        // Looks at every document.
        Query::Year(_) => searcher.num_docs(),
        Query::Not(inner) => searcher.num_docs() + of(inner, fields, searcher)?,
        Query::All(parts) if parts.is_empty() => searcher.num_docs(),
        Query::All(parts) | Query::Any(parts) => {
            let costs = parts.iter().map(|part| of(part, fields, searcher));
            costs.sum::<tantivy::Result<u64>>()?
        }
    })
}

/// A word that occurs twice in a phrase is read twice.
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
