//! Queries as the index library takes them.
//!
//! What matches is decided by the words of title and text together ([`Part::Text`]); a word that is
//! also in the title adds what it is worth there, so that a page about roses comes before one that
//! mentions them.

use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, Occur, PhraseQuery, Query as Compiled,
    TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use crate::query::{Part, Query};
use crate::schema::Fields;

/// A query that matches what `query` describes, ranked by BM25.
pub(crate) fn compile(query: &Query, fields: &Fields) -> Box<dyn Compiled> {
    let matching = matching(query, fields);
    let titles: Vec<(Occur, Box<dyn Compiled>)> = query
        .marks()
        .into_iter()
        .filter(|(part, _)| *part == Part::Text)
        .map(|(_, words)| (Occur::Should, in_field(fields.title_words, words)))
        .collect();
    if titles.is_empty() {
        return matching;
    }
    Box::new(BooleanQuery::new(vec![
        (Occur::Must, matching),
        (Occur::Should, Box::new(BooleanQuery::new(titles))),
    ]))
}

/// The part of `query` that is in one cluster.
pub(crate) fn within(query: Box<dyn Compiled>, cluster: u64, fields: &Fields) -> Box<dyn Compiled> {
    let term = Term::from_field_u64(fields.cluster, cluster);
    let members = TermQuery::new(term, IndexRecordOption::Basic);
    Box::new(BooleanQuery::new(vec![
        (Occur::Must, query),
        (Occur::Must, unscored(Box::new(members))),
    ]))
}

/// What matches.
pub(crate) fn matching(query: &Query, fields: &Fields) -> Box<dyn Compiled> {
    match query {
        Query::Words(part, words) => in_field(field(*part, fields), words),
        Query::Site(site) => exactly(fields.site, site),
        Query::Language(language) => exactly(fields.language, language),
        Query::All(parts) => all(parts, fields),
        Query::Any(parts) if parts.is_empty() => Box::new(EmptyQuery),
        Query::Any(parts) => {
            let choices = parts
                .iter()
                .map(|part| (Occur::Should, matching(part, fields)));
            Box::new(BooleanQuery::new(choices.collect()))
        }
        Query::Not(_) => all(std::slice::from_ref(query), fields),
    }
}

/// What all of these find; negations need something to take from.
fn all(parts: &[Query], fields: &Fields) -> Box<dyn Compiled> {
    let mut clauses: Vec<(Occur, Box<dyn Compiled>)> = Vec::new();
    for part in parts {
        clauses.push(match part {
            Query::Not(inner) => (Occur::MustNot, matching(inner, fields)),
            part => (Occur::Must, matching(part, fields)),
        });
    }
    if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
        clauses.push((Occur::Must, unscored(Box::new(AllQuery))));
    }
    Box::new(BooleanQuery::new(clauses))
}

fn field(part: Part, fields: &Fields) -> Field {
    match part {
        Part::Text => fields.body,
        Part::Title => fields.title_words,
        Part::Url => fields.url_words,
    }
}

fn in_field(field: Field, words: &[String]) -> Box<dyn Compiled> {
    let mut terms: Vec<Term> = words
        .iter()
        .map(|word| Term::from_field_text(field, word))
        .collect();
    match terms.len() {
        0 => Box::new(EmptyQuery),
        1 => Box::new(TermQuery::new(
            terms.remove(0),
            IndexRecordOption::WithFreqs,
        )),
        _ => Box::new(PhraseQuery::new(terms)),
    }
}

fn exactly(field: Field, value: &str) -> Box<dyn Compiled> {
    let term = Term::from_field_text(field, value);
    unscored(Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
}

/// A condition that is worth nothing by itself.
fn unscored(query: Box<dyn Compiled>) -> Box<dyn Compiled> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}
