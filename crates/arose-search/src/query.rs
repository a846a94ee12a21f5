//! The query language.
//!
//! | query | finds documents |
//! |---|---|
//! | `red rose` | with both words |
//! | `red OR rose` | with at least one of them |
//! | `rose -thorn`, `rose NOT thorn` | with the first and without the second |
//! | `"red rose"` | with the words in this order, next to each other |
//! | `(red OR white) rose` | as grouped by the parentheses |
//! | `ros*` | with a word that starts with `ros`; this does not affect the ranking |
//! | `site:example.org` | on a host, or on a domain and all below it; a URL stands for its host |
//! | `lang:en`, `lang:en-GB` | in a language, as the document states it |
//! | `year:2024` | fetched in this year, UTC |
//! | `title:rose`, `title:"red rose"` | with the words in the title |
//! | `url:roses` | with the word in the URL |
//! | `*` | all documents |
//!
//! Words are those of [`arose::token`]: case and punctuation are ignored, and a word like `foo-bar`
//! is the phrase of its parts. `AND` may be written between words and binds more tightly than `OR`.
//! An unknown field is an error; in quotes, `"note:this"` is two words. The size of a query and the
//! depth of its parentheses are limited, so that no query takes too much work.

use std::fmt;
use std::iter::Peekable;
use std::str::{CharIndices, FromStr};

use arose_dedup::results::documents::host_of;

use crate::rows::normalized_language;
use crate::words::words;

/// Maximum length of a query, in bytes.
const MAX_BYTES: usize = 4096;

/// Maximum number of words in a query.
const MAX_WORDS: usize = 256;

/// Maximum nesting of parentheses and negations.
const MAX_DEPTH: usize = 32;

/// A parsed query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Query {
    /// These words, next to each other, in a part of the document; a single one is a word.
    Words(Part, Vec<String>),
    /// A word with this prefix in a part of the document.
    Prefix(Part, String),
    /// Of this host, or of this domain.
    Site(String),
    /// In this language, `en` or `en-gb`.
    Language(String),
    /// Fetched in this year, UTC.
    Year(i32),
    /// All of these must match; an empty list matches everything.
    All(Vec<Query>),
    /// At least one of these must match; an empty list matches nothing.
    Any(Vec<Query>),
    /// Documents that this does not match.
    Not(Box<Query>),
}

/// A searchable part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The title and the text.
    Text,
    /// The title.
    Title,
    /// The URL.
    Url,
}

impl Query {
    /// Matches documents in which the words of `text` follow each other; matches nothing if it has
    /// no words.
    ///
    /// ```
    /// use arose_search::Query;
    /// assert_eq!(Query::phrase("Red Rose"), "\"red rose\"".parse().unwrap());
    /// ```
    #[must_use]
    pub fn phrase(text: &str) -> Self {
        Self::in_part(Part::Text, text)
    }

    fn in_part(part: Part, text: &str) -> Self {
        match words(text) {
            words if words.is_empty() => Self::Any(Vec::new()),
            words => Self::Words(part, words),
        }
    }

    /// The runs of words in texts and titles that make a document match, to be marked in it.
    pub(crate) fn marks(&self) -> Vec<(Part, &[String])> {
        let mut marks = Vec::new();
        self.add_marks(&mut marks);
        marks
    }

    fn add_marks<'a>(&'a self, marks: &mut Vec<(Part, &'a [String])>) {
        match self {
            Self::Words(part @ (Part::Text | Part::Title), words) => marks.push((*part, words)),
            Self::All(parts) | Self::Any(parts) => {
                parts.iter().for_each(|part| part.add_marks(marks));
            }
            _ => {}
        }
    }

    /// The prefixes of words in texts and titles that make a document match.
    pub(crate) fn prefixes(&self) -> Vec<&str> {
        match self {
            Self::Prefix(Part::Text | Part::Title, prefix) => vec![prefix],
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::prefixes).collect(),
            _ => Vec::new(),
        }
    }

    /// Whether all matches are from one host or domain that the query names.
    pub(crate) fn names_site(&self) -> bool {
        match self {
            Self::Site(_) => true,
            Self::All(parts) => parts.iter().any(Self::names_site),
            _ => false,
        }
    }
}

/// An error in a query, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryError {
    /// Number of characters before the error.
    pub at: usize,
    /// The error.
    pub what: String,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character {} of the query: {}", self.at + 1, self.what)
    }
}

impl std::error::Error for QueryError {}

impl FromStr for Query {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, QueryError> {
        if text.len() > MAX_BYTES {
            let what = format!(
                "the query has {} bytes; the maximum is {MAX_BYTES}",
                text.len()
            );
            return Err(QueryError { at: 0, what });
        }
        let mut parser = Parser {
            tokens: tokens(text)?.into_iter().peekable(),
            n_words: 0,
            end: text.chars().count(),
        };
        let query = parser.either(0)?;
        match parser.tokens.next() {
            None => Ok(query),
            Some((at, _)) => Err(fault(at, "closing parenthesis without an opening one")),
        }
    }
}

fn fault(at: usize, what: impl Into<String>) -> QueryError {
    let what = what.into();
    QueryError { at, what }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    Or,
    And,
    Not,
    /// A word and the field before it.
    Word(Option<Field>, String),
    /// A quoted text and the field before it.
    Quoted(Option<Field>, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Site,
    Language,
    Year,
    Part(Part),
}

/// The existing fields, for messages.
const FIELDS: &str = "site, lang, year, title, url and text";

impl Field {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "site" => Self::Site,
            "lang" | "language" => Self::Language,
            "year" => Self::Year,
            "title" => Self::Part(Part::Title),
            "url" => Self::Part(Part::Url),
            "text" => Self::Part(Part::Text),
            _ => return None,
        })
    }
}

/// Splits a query into tokens, each with the number of characters before it.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, QueryError> {
    let mut tokens = Vec::new();
    let mut chars = Characters::new(text);
    while let Some((at, c)) = chars.peek() {
        let token = match c {
            '(' => chars.take(Token::Open),
            ')' => chars.take(Token::Close),
            '"' => Token::Quoted(None, chars.quoted(at)?),
            '-' if chars.begins_word() => chars.take(Token::Not),
            c if c.is_whitespace() || c.is_control() => {
                chars.next();
                continue;
            }
            _ => chars.word(at)?,
        };
        // Symbols between words are ignored, except `*`, which matches all documents.
        if matches!(&token, Token::Word(None, text) if text != "*" && words(text).is_empty()) {
            continue;
        }
        tokens.push((at, token));
    }
    Ok(tokens)
}

struct Characters<'a> {
    text: &'a str,
    chars: Peekable<std::iter::Enumerate<CharIndices<'a>>>,
}

impl<'a> Characters<'a> {
    fn new(text: &'a str) -> Self {
        let chars = text.char_indices().enumerate().peekable();
        Self { text, chars }
    }

    fn peek(&mut self) -> Option<(usize, char)> {
        self.chars.peek().map(|&(at, (_, c))| (at, c))
    }

    fn next(&mut self) -> Option<char> {
        self.chars.next().map(|(_, (_, c))| c)
    }

    fn take(&mut self, token: Token) -> Token {
        self.next();
        token
    }

    /// Whether the next character starts a word.
    fn begins_word(&mut self) -> bool {
        let Some(&(_, (byte, c))) = self.chars.peek() else {
            return false;
        };
        let after = self.text[byte + c.len_utf8()..].chars().next();
        after.is_some_and(|next| !next.is_whitespace() && next != '-')
    }

    /// The text between the quote at `at` and the next one.
    fn quoted(&mut self, at: usize) -> Result<String, QueryError> {
        self.next();
        let mut text = String::new();
        while let Some(c) = self.next() {
            match c {
                '"' => return Ok(text),
                c => text.push(c),
            }
        }
        Err(fault(at, "unclosed quote"))
    }

    /// A word, an operator, or a field with its value.
    fn word(&mut self, at: usize) -> Result<Token, QueryError> {
        let mut word = String::new();
        while let Some((_, c)) = self.peek() {
            if c.is_whitespace() || matches!(c, '(' | ')' | '"') {
                break;
            }
            word.push(c);
            self.next();
        }
        let Some((name, value)) = word.split_once(':') else {
            return Ok(match &word[..] {
                "OR" => Token::Or,
                "AND" => Token::And,
                "NOT" => Token::Not,
                _ => Token::Word(None, word),
            });
        };
        match Field::named(&name.to_ascii_lowercase()) {
            Some(field) if !value.is_empty() => Ok(Token::Word(Some(field), value.to_owned())),
            Some(field) => match self.peek() {
                Some((at, '"')) => Ok(Token::Quoted(Some(field), self.quoted(at)?)),
                _ => Err(fault(at, format!("no value after `{word}`"))),
            },
            None if is_like_field(name, value) => Err(fault(
                at,
                format!(
                    "no field `{name}`; the fields are {FIELDS}; put the words in quotes \
                     to search for them"
                ),
            )),
            None => Ok(Token::Word(None, word)),
        }
    }
}

/// Whether `name:value` looks like a field rather than a URL, a time or a word with a colon.
fn is_like_field(name: &str, value: &str) -> bool {
    let is_name = name.len() > 1 && name.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_name && !value.is_empty() && !value.starts_with('/')
}

struct Parser {
    tokens: Peekable<std::vec::IntoIter<(usize, Token)>>,
    n_words: usize,
    end: usize,
}

impl Parser {
    fn peek(&mut self) -> Option<&Token> {
        self.tokens.peek().map(|(_, token)| token)
    }

    fn either(&mut self, depth: usize) -> Result<Query, QueryError> {
        let mut choices = vec![self.both(depth)?];
        while self.peek() == Some(&Token::Or) {
            self.tokens.next();
            choices.push(self.both(depth)?);
        }
        Ok(one_or(choices, Query::Any))
    }

    fn both(&mut self, depth: usize) -> Result<Query, QueryError> {
        let mut parts = vec![self.single(depth)?];
        loop {
            match self.peek() {
                None | Some(Token::Or | Token::Close) => break,
                Some(Token::And) => {
                    self.tokens.next();
                }
                Some(_) => {}
            }
            parts.push(self.single(depth)?);
        }
        Ok(one_or(parts, Query::All))
    }

    fn single(&mut self, depth: usize) -> Result<Query, QueryError> {
        let Some((at, token)) = self.tokens.next() else {
            return Err(fault(self.end, "missing word"));
        };
        if depth > MAX_DEPTH {
            return Err(fault(
                at,
                format!("parentheses are nested deeper than {MAX_DEPTH}"),
            ));
        }
        match token {
            Token::Not => Ok(Query::Not(Box::new(self.single(depth + 1)?))),
            Token::Open => {
                let query = self.either(depth + 1)?;
                match self.tokens.next() {
                    Some((_, Token::Close)) => Ok(query),
                    _ => Err(fault(at, "unclosed parenthesis")),
                }
            }
            Token::Close => Err(fault(at, "missing word before a closing parenthesis")),
            Token::Or | Token::And => Err(fault(at, "missing word before AND or OR")),
            Token::Word(field, text) => self.leaf(at, plain(at, field, &text)?),
            Token::Quoted(field, text) => self.leaf(at, quoted(at, field, &text)?),
        }
    }

    fn leaf(&mut self, at: usize, query: Query) -> Result<Query, QueryError> {
        self.n_words += match &query {
            Query::Words(_, words) => words.len(),
            Query::Any(_) => return Err(fault(at, "no letter or digit to search for")),
            _ => 1,
        };
        match self.n_words > MAX_WORDS {
            true => Err(fault(
                at,
                format!("the query has more than {MAX_WORDS} words"),
            )),
            false => Ok(query),
        }
    }
}

/// The query for a word, which may end with `*`.
fn plain(at: usize, field: Option<Field>, text: &str) -> Result<Query, QueryError> {
    let part = match field {
        None => Part::Text,
        Some(Field::Part(part)) => part,
        Some(_) => return quoted(at, field, text),
    };
    let Some(stem) = text.strip_suffix('*') else {
        return match text.contains('*') {
            true => Err(fault(at, "`*` is allowed only at the end of a word")),
            false => quoted(at, field, text),
        };
    };
    if stem.is_empty() && field.is_none() {
        return Ok(Query::All(Vec::new()));
    }
    match &words(stem)[..] {
        [word] if !stem.contains('*') => Ok(Query::Prefix(part, word.clone())),
        [_, _, ..] => Err(fault(
            at,
            format!("`*` must follow a single word; `{stem}` is several"),
        )),
        _ => Err(fault(at, "`*` is allowed only at the end of a word")),
    }
}

/// The query for a quoted text, word by word.
fn quoted(at: usize, field: Option<Field>, text: &str) -> Result<Query, QueryError> {
    Ok(match field {
        Some(Field::Site) => match site(text) {
            Some(site) => Query::Site(site),
            None => return Err(fault(at, format!("`site:{text}` is not a host"))),
        },
        Some(Field::Language) => Query::Language(normalized_language(text)),
        Some(Field::Year) => match text.trim().parse() {
            Ok(year @ 1..=9999) => Query::Year(year),
            _ => {
                let what = format!("`year:{text}` is not a year; expected e.g. `year:2024`");
                return Err(fault(at, what));
            }
        },
        Some(Field::Part(part)) => Query::in_part(part, text),
        None => Query::in_part(Part::Text, text),
    })
}

/// The host or domain that a text names: itself, or the host of a URL.
fn site(text: &str) -> Option<String> {
    let text = text.trim();
    let host = match text.contains("//") {
        true => host_of(text)?,
        false => text.split(['/', '?', '#']).next()?,
    };
    let host = match host.starts_with('[') {
        true => host,
        false => host.split(':').next()?,
    };
    let host = host
        .trim_start_matches("*.")
        .trim_matches('.')
        .to_lowercase();
    (!host.is_empty()).then_some(host)
}

fn one_or(mut parts: Vec<Query>, many: impl FnOnce(Vec<Query>) -> Query) -> Query {
    match parts.len() {
        1 => parts.remove(0),
        _ => many(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word(text: &str) -> Query {
        Query::Words(Part::Text, vec![text.to_owned()])
    }

    fn phrase(part: Part, words: &[&str]) -> Query {
        Query::Words(part, words.iter().map(|&word| word.to_owned()).collect())
    }

    fn not(query: Query) -> Query {
        Query::Not(Box::new(query))
    }

    #[track_caller]
    fn check(text: &str, expected: Query) {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }

    #[test]
    fn words_and_operators() {
        use Query::{All, Any};
        let [a, b, c] = ["a", "b", "c"].map(word);
        check("A", a.clone());
        check(" a\tb ", All(vec![a.clone(), b.clone()]));
        check("a AND b", All(vec![a.clone(), b.clone()]));
        let tight = All(vec![b.clone(), c.clone()]);
        check("a OR b c", Any(vec![a.clone(), tight.clone()]));
        check(
            "a (b OR c)",
            All(vec![a.clone(), Any(vec![b.clone(), c.clone()])]),
        );
        check("a -b", All(vec![a.clone(), not(b.clone())]));
        check("NOT a", not(a.clone()));
        check("-(b c)", not(tight));
        check("a or b", All(vec![a.clone(), word("or"), b.clone()]));
        check("a - b", All(vec![a.clone(), b.clone()]));
        check("a & (b)", All(vec![a, b]));
    }

    #[test]
    fn phrases_and_fields() {
        check("\"Red, rose\"", phrase(Part::Text, &["red", "rose"]));
        check("foo-bar", phrase(Part::Text, &["foo", "bar"]));
        check("東京", phrase(Part::Text, &["東", "京"]));
        check("title:\"a b\"", phrase(Part::Title, &["a", "b"]));
        check("url:a/b", phrase(Part::Url, &["a", "b"]));
        check("site:.Example.ORG.", Query::Site("example.org".to_owned()));
        check("LANG:EN", Query::Language("en".to_owned()));
        check("http://x", phrase(Part::Text, &["http", "x"]));
        check("12:30", phrase(Part::Text, &["12", "30"]));
        check("note:", word("note"));
    }

    #[test]
    fn issue_23_fields_and_prefixes() {
        check("lang:en_GB", Query::Language("en-gb".to_owned()));
        for text in [
            "site:https://X.org/",
            "site:x.org/a?b",
            "site:*.x.org",
            "site:x.org:80",
        ] {
            check(text, Query::Site("x.org".to_owned()));
        }
        check("select*", Query::Prefix(Part::Text, "select".to_owned()));
        check("title:Sel*", Query::Prefix(Part::Title, "sel".to_owned()));
        check("\"sel*\"", word("sel"));
        check("*", Query::All(Vec::new()));
        check("year:2024", Query::Year(2024));
        check_fault(
            "a author:smith",
            "character 3 of the query: no field `author`; the fields are site, lang, year, title, \
             url and text; put the words in quotes to search for them",
        );
        check_fault(
            "s*t",
            "character 1 of the query: `*` is allowed only at the end of a word",
        );
        check_fault(
            "foo-bar*",
            "character 1 of the query: `*` must follow a single word; `foo-bar` is several",
        );
        check_fault(
            "site:///",
            "character 1 of the query: `site:///` is not a host",
        );
        check_fault(
            "year:x",
            "character 1 of the query: `year:x` is not a year; expected e.g. `year:2024`",
        );
    }

    #[track_caller]
    fn check_fault(text: &str, expected: &str) {
        let fault = text.parse::<Query>().unwrap_err();
        assert_eq!(fault.to_string(), expected, "{text}");
    }

    #[test]
    fn faults_are_named_with_their_place() {
        check_fault("", "character 1 of the query: missing word");
        check_fault("é \"b", "character 3 of the query: unclosed quote");
        check_fault("(a", "character 1 of the query: unclosed parenthesis");
        check_fault(
            "a)",
            "character 2 of the query: closing parenthesis without an opening one",
        );
        check_fault("a OR", "character 5 of the query: missing word");
        check_fault(
            "OR a",
            "character 1 of the query: missing word before AND or OR",
        );
        check_fault(
            "()",
            "character 2 of the query: missing word before a closing parenthesis",
        );
        check_fault(
            "a site:",
            "character 3 of the query: no value after `site:`",
        );
        check_fault("?!", "character 3 of the query: missing word");
        check_fault(
            "a \"?\"",
            "character 3 of the query: no letter or digit to search for",
        );
        let long = "a ".repeat(50_000);
        check_fault(
            &long,
            "character 1 of the query: the query has 100000 bytes; the maximum is 4096",
        );
        assert!("(".repeat(4000).parse::<Query>().is_err());
        assert!("-".repeat(4000).parse::<Query>().is_err());
        assert!("NOT ".repeat(1000).parse::<Query>().is_err());
        assert!("a ".repeat(300).parse::<Query>().is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_query_or_a_fault(text in "[a-c()\" :\\-ORAND\u{0}é東]{0,40}") {
            let _ = text.parse::<Query>();
        }
    }
}
