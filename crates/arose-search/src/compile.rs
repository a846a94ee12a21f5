//! Queries as the index library takes them.
//!
//! What matches is decided by the words of title and text together ([`Part::Text`]); a word that is
//! also in the title adds what it is worth there, so that a page about roses comes before one that
//! mentions them.

use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, Occur, PhraseQuery, Query as Clause,
    TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use crate::query::{Part, Query};
use crate::schema::Fields;

/// A query as the index library takes it.
pub(crate) struct Compiled {
    /// Matches what the query describes, ranked by BM25.
    pub(crate) scored: Box<dyn Clause>,
    /// For one word or a choice of words: matches the same, without scores.
    pub(crate) choice: Option<Box<dyn Clause>>,
}

/// Compiles a query.
pub(crate) fn compile(query: &Query, fields: &Fields) -> Compiled {
    let titles = query
        .marks()
        .into_iter()
        .filter(|(part, _)| *part == Part::Text)
        .map(|(_, words)| (Occur::Should, in_field(fields.title_words, words)));
    let mut titles: Clauses = titles.collect();
    if let Some(words) = choice(query) {
        // What is in the title is in the body as well, so the titles match nothing more, and a
        // flat choice of words can be searched for the best alone.
        let in_body = |record| words.iter().map(move |word| one(fields.body, word, record));
        titles.extend(should(in_body(IndexRecordOption::WithFreqs)));
        let choice = should(in_body(IndexRecordOption::Basic)).collect();
        return Compiled {
            scored: Box::new(BooleanQuery::new(titles)),
            choice: Some(Box::new(BooleanQuery::new(choice))),
        };
    }
    let matching = matching(query, fields);
    let scored = match titles.is_empty() {
        true => matching,
        false => Box::new(BooleanQuery::new(vec![
            (Occur::Must, matching),
            (Occur::Should, Box::new(BooleanQuery::new(titles))),
        ])),
    };
    Compiled {
        scored,
        choice: None,
    }
}

type Clauses = Vec<(Occur, Box<dyn Clause>)>;

/// The words of a query that asks for any of some words of the text.
fn choice(query: &Query) -> Option<Vec<&str>> {
    let parts = match query {
        Query::Any(parts) if !parts.is_empty() => &parts[..],
        query => std::slice::from_ref(query),
    };
    let words = parts.iter().map(|part| match part {
        Query::Words(Part::Text, words) if words.len() == 1 => Some(&*words[0]),
        _ => None,
    });
    words.collect()
}

fn should(
    clauses: impl Iterator<Item = TermQuery>,
) -> impl Iterator<Item = (Occur, Box<dyn Clause>)> {
    clauses.map(|clause| (Occur::Should, Box::new(clause) as Box<dyn Clause>))
}

/// The part of `query` that is in one cluster.
pub(crate) fn within(query: Compiled, cluster: u64, fields: &Fields) -> Compiled {
    let term = Term::from_field_u64(fields.cluster, cluster);
    let members = TermQuery::new(term, IndexRecordOption::Basic);
    let scored = BooleanQuery::new(vec![
        (Occur::Must, query.scored),
        (Occur::Must, unscored(Box::new(members))),
    ]);
    Compiled {
        scored: Box::new(scored),
        choice: None,
    }
}

/// What matches.
pub(crate) fn matching(query: &Query, fields: &Fields) -> Box<dyn Clause> {
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
fn all(parts: &[Query], fields: &Fields) -> Box<dyn Clause> {
    let mut clauses: Vec<(Occur, Box<dyn Clause>)> = Vec::new();
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

fn in_field(field: Field, words: &[String]) -> Box<dyn Clause> {
    match words {
        [] => Box::new(EmptyQuery),
        [word] => Box::new(one(field, word, IndexRecordOption::WithFreqs)),
        words => {
            let terms = words.iter().map(|word| Term::from_field_text(field, word));
            Box::new(PhraseQuery::new(terms.collect()))
        }
    }
}

fn one(field: Field, word: &str, record: IndexRecordOption) -> TermQuery {
    TermQuery::new(Term::from_field_text(field, word), record)
}

fn exactly(field: Field, value: &str) -> Box<dyn Clause> {
    let term = Term::from_field_text(field, value);
    unscored(Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
}

/// A condition that is worth nothing by itself.
fn unscored(query: Box<dyn Clause>) -> Box<dyn Clause> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}
