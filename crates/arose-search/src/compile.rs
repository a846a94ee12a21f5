//! Compiles queries for the index library.
//!
//! The words of title and text together decide which documents match ([`Part::Text`]). A word that
//! is also in the title adds its title score, so that a page about roses comes before one that only
//! mentions them.

use std::ops::Bound;

use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, InvertedIndexRangeQuery, Occur,
    Query as Clause, RangeQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use crate::collapse::GoOn;
use crate::current::Current;
use crate::phrase::Phrase;
use crate::query::{Part, Query};
use crate::schema::Fields;

/// A query in the form of the index library.
pub(crate) struct Compiled {
    /// Matches the query, ranked by BM25.
    pub(crate) scored: Box<dyn Clause>,
    /// For one word or any of several words: matches the same documents, without scores.
    pub(crate) choice: Option<Box<dyn Clause>>,
}

/// Compiles queries.
pub(crate) struct Compiler<'a> {
    pub(crate) fields: &'a Fields,
    /// Returns whether to continue a search for the query.
    pub(crate) go_on: &'a GoOn,
}

impl Compiler<'_> {
    /// Compiles a query.
    pub(crate) fn compile(&self, query: &Query) -> Compiled {
        let fields = self.fields;
        let titles = query
            .marks()
            .into_iter()
            .filter(|(part, _)| *part == Part::Text)
            .map(|(_, words)| (Occur::Should, self.in_field(fields.title_words, words)));
        let mut titles: Clauses = titles.collect();
        if let Some(words) = choice(query) {
            // Every word of the title is also in the body, so titles add no matches. A flat choice
            // of words can be searched for only the best documents.
            let in_body = |record| words.iter().map(move |word| one(fields.body, word, record));
            titles.extend(should(in_body(IndexRecordOption::WithFreqs)));
            let choice = should(in_body(IndexRecordOption::Basic)).collect();
            return Compiled {
                scored: Box::new(BooleanQuery::new(titles)),
                choice: Some(Box::new(BooleanQuery::new(choice))),
            };
        }
        let matching = self.matching(query);
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

    /// A clause for the documents that match.
    pub(crate) fn matching(&self, query: &Query) -> Box<dyn Clause> {
        let fields = self.fields;
        match query {
            Query::Words(part, words) => self.in_field(field(*part, fields), words),
            Query::Prefix(part, prefix) => {
                let (start, end) = prefix_range(field(*part, fields), prefix);
                unscored(Box::new(InvertedIndexRangeQuery::new(start, end)))
            }
            Query::Year(year) => {
                let at = |year| Term::from_field_i64(fields.time, start_of(year));
                let (start, end) = (Bound::Included(at(*year)), Bound::Excluded(at(year + 1)));
                unscored(Box::new(RangeQuery::new(start, end)))
            }
            Query::Site(site) => exactly(fields.domain, site),
            Query::Language(language) => exactly(fields.language, language),
            Query::All(parts) => self.all(parts),
            Query::Any(parts) if parts.is_empty() => Box::new(EmptyQuery),
            Query::Any(parts) => {
                let choices = parts.iter();
                let choices = choices.map(|part| (Occur::Should, self.matching(part)));
                Box::new(BooleanQuery::new(choices.collect()))
            }
            Query::Not(_) => self.all(std::slice::from_ref(query)),
        }
    }

    /// A clause that matches all of the parts; negations need a set to exclude from.
    fn all(&self, parts: &[Query]) -> Box<dyn Clause> {
        let mut clauses: Clauses = Vec::new();
        for part in parts {
            clauses.push(match part {
                Query::Not(inner) => (Occur::MustNot, self.matching(inner)),
                part => (Occur::Must, self.matching(part)),
            });
        }
        if clauses.iter().all(|(occur, _)| *occur == Occur::MustNot) {
            clauses.push((Occur::Must, unscored(Box::new(AllQuery))));
        }
        Box::new(BooleanQuery::new(clauses))
    }

    fn in_field(&self, field: Field, words: &[String]) -> Box<dyn Clause> {
        match words {
            [] => Box::new(EmptyQuery),
            [word] => Box::new(one(field, word, IndexRecordOption::WithFreqs)),
            words => {
                let terms = words.iter().map(|word| Term::from_field_text(field, word));
                Box::new(Phrase {
                    terms: terms.collect(),
                    go_on: self.go_on.clone(),
                })
            }
        }
    }
}

type Clauses = Vec<(Occur, Box<dyn Clause>)>;

/// The words of a query that matches any of several words of the text.
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

/// Restricts `query` to current captures of pages.
pub(crate) fn among(query: Compiled, current: &Current) -> Compiled {
    if current.is_all() {
        return query;
    }
    let scored = BooleanQuery::new(vec![
        (Occur::Must, query.scored),
        (Occur::Must, Box::new(current.clone()) as Box<dyn Clause>),
    ]);
    Compiled {
        scored: Box::new(scored),
        choice: None,
    }
}

/// Restricts `query` to documents with a number in a field.
pub(crate) fn within(query: Compiled, field: Field, number: u64) -> Compiled {
    let term = Term::from_field_u64(field, number);
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

/// The words of a field that start with `prefix`, as a range of terms.
pub(crate) fn prefix_range(field: Field, prefix: &str) -> (Bound<Term>, Bound<Term>) {
    let mut end = prefix.as_bytes().to_vec();
    // No byte of UTF-8 is 255, so the last byte can be incremented.
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    let mut after = Term::from_field_text(field, "");
    after.append_bytes(&end);
    (
        Bound::Included(Term::from_field_text(field, prefix)),
        Bound::Excluded(after),
    )
}

/// The first second of a year, since 1970, UTC.
pub(crate) fn start_of(year: i32) -> i64 {
    let before = i64::from(year) - 1;
    let days =
        365 * before + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    (days - 719_162) * 86_400
}

/// The year of a time in seconds since 1970, UTC.
pub(crate) fn year_of(time: i64) -> i32 {
    // A year has 365.2425 days on average; the guess is off by at most one.
    let guess = (1970 + time.div_euclid(31_556_952)).clamp(-9999, 9999) as i32;
    if start_of(guess) > time {
        guess - 1
    } else if start_of(guess + 1) <= time {
        guess + 1
    } else {
        guess
    }
}

pub(crate) fn field(part: Part, fields: &Fields) -> Field {
    match part {
        Part::Text => fields.body,
        Part::Title => fields.title_words,
        Part::Url => fields.url_words,
    }
}

fn one(field: Field, word: &str, record: IndexRecordOption) -> TermQuery {
    TermQuery::new(Term::from_field_text(field, word), record)
}

fn exactly(field: Field, value: &str) -> Box<dyn Clause> {
    let term = Term::from_field_text(field, value);
    unscored(Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
}

/// A condition that does not affect the score.
fn unscored(query: Box<dyn Clause>) -> Box<dyn Clause> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_begin_and_end() {
        assert_eq!(start_of(1970), 0);
        assert_eq!(start_of(2000), 946_684_800);
        assert_eq!(start_of(2025), 1_735_689_600);
        for year in -50..4000 {
            let start = start_of(year);
            assert_eq!((year_of(start), year_of(start - 1)), (year, year - 1));
        }
    }
}
