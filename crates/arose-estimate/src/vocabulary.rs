//! The words that queries are made of.
//!
//! *Question.* Search engines split texts into words in different ways: is `don't` one word or two,
//! is `U.S.` a word? A query of such words finds a page in one search engine but not in another,
//! although both have it.
//!
//! *Idea.* Query only words that every search engine splits in the same way: letters, possibly
//! followed by digits, surrounded by whitespace or simple punctuation. The words of a page are
//! taken where they occur in this form ([`plain_words`]), and so is the vocabulary of a corpus
//! ([`open`]).
//!
//! *Parameters.* Words of 3 to 24 letters; at most [`MAX_WORDS`] words, the rest omitted evenly.
//! *Not for* languages written without spaces, whose words no two search engines split in the same
//! way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use arose::estimate::lexicon::Lexicon;
use arose::mix::mix;
use arose_corpus::{Config, Item, read};

use crate::engine::Local;
use arose_search::words;

use crate::Error;

/// Maximum number of words of a vocabulary.
pub const MAX_WORDS: usize = 50_000;

/// Words with the number of pages that contain each, in alphabetical order.
pub type Vocabulary = Vec<(String, u64)>;

/// The distinct words of a text that every search engine splits in the same way, in alphabetical
/// order.
///
/// ```
/// use arose_estimate::vocabulary::plain_words;
/// let words = plain_words("Don't ask the U.S. about (roses), or foo-bar: ask roses!");
/// assert_eq!(words, ["about", "ask", "roses", "the"]);
/// ```
#[must_use]
pub fn plain_words(text: &str) -> Vec<String> {
    let distinct: BTreeSet<String> = plain_occurrences(text).into_iter().collect();
    distinct.into_iter().collect()
}

/// The words of a text that every search engine splits in the same way, with repetitions.
pub(crate) fn plain_occurrences(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    words::for_each(text, |word, place| {
        let before = text[..place.start].chars().next_back();
        let after = &text[place.end..];
        if is_plain(word) && before.is_none_or(begins_word) && ends_word(after) {
            found.push(word.to_owned());
        }
    });
    found
}

/// Whether a word is one that every search engine recognizes: letters, then letters and digits.
fn is_plain(word: &str) -> bool {
    let n = word.chars().count();
    let mut letters = word.chars();
    (3..=24).contains(&n)
        && letters.next().is_some_and(char::is_alphabetic)
        && word.chars().all(char::is_alphanumeric)
}

fn begins_word(before: char) -> bool {
    before.is_whitespace() || matches!(before, '(' | '"' | '“' | '„')
}

/// Whether the next characters end a word: whitespace or a closing mark, perhaps after punctuation.
fn ends_word(after: &str) -> bool {
    let is_edge = |c: char| c.is_whitespace() || matches!(c, ')' | '"' | '”');
    let mut rest = after.chars();
    match rest.next() {
        None => true,
        Some('.' | ',' | ':' | ';' | '!' | '?') => rest.next().is_none_or(is_edge),
        Some(c) => is_edge(c),
    }
}

/// Reads a vocabulary: from a `.tsv` file one word and number per line, from any other file the
/// words of its documents.
///
/// # Errors
///
/// If a file cannot be read, or a line is not a word with a number.
pub fn open(paths: &[PathBuf], config: Config) -> Result<Vocabulary, Error> {
    let is_list = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "tsv");
    let (lists, documents): (Vec<PathBuf>, Vec<PathBuf>) = paths.iter().cloned().partition(is_list);
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for path in lists {
        for (word, n) in read_list(&path)? {
            *counts.entry(word).or_default() += n;
        }
    }
    if !documents.is_empty() {
        for item in read(&documents, config)? {
            if let Item::Document(document) = item {
                for word in plain_words(&document.text) {
                    *counts.entry(word).or_default() += 1;
                }
            }
        }
    }
    Ok(thinned(counts.into_iter().collect()))
}

fn read_list(path: &Path) -> Result<Vocabulary, Error> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let (word, n) = line.split_once('\t').unwrap_or((line, "1"));
            let n = n.trim().parse().map_err(|_| Error::Settings {
                path: path.to_owned(),
                what: format!(
                    "line {} has no number after the tab; expected WORD<TAB>PAGES",
                    number + 1
                ),
            })?;
            Ok((word.trim().to_lowercase(), n))
        })
        .collect()
}

/// The words of a local search engine.
///
/// # Errors
///
/// If its index is damaged.
pub fn of_local(engine: &Local) -> Result<Vocabulary, Error> {
    Ok(thinned(engine.index().vocabulary(is_plain)?))
}

/// At most [`MAX_WORDS`] words, selected by their letters only.
fn thinned(mut words: Vocabulary) -> Vocabulary {
    if words.len() > MAX_WORDS {
        let rank = |word: &str| {
            word.bytes()
                .fold(0, |hash, byte| mix(hash ^ u64::from(byte)))
        };
        let mut ranks: Vec<u64> = words.iter().map(|(word, _)| rank(word)).collect();
        let (_, &mut bound, _) = ranks.select_nth_unstable(MAX_WORDS - 1);
        words.retain(|(word, _)| rank(word) <= bound);
    }
    words
}

/// The words as a lexicon to sample from.
///
/// # Errors
///
/// If there are fewer than two.
pub fn lexicon(words: &[(String, u64)]) -> Result<Lexicon<String>, Error> {
    Lexicon::new(words.to_vec()).map_err(|_| Error::Words {
        what: format!(
            "{} words are too few to query; pass documents or a list with --lexicon",
            words.len()
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_blanks_only() {
        for (text, expected) in [
            (
                "One, two. Three! FOUR?",
                &["four", "one", "three", "two"][..],
            ),
            (
                "e.g. www.example.org a/b/cde x_y co-operate rock'n'roll",
                &[],
            ),
            ("tea1 1tea té tee 3.14 abc,def", &["tea1", "tee"]),
            ("“quoted” (bracketed)", &["bracketed", "quoted"]),
        ] {
            assert_eq!(plain_words(text), expected, "{text}");
        }
    }

    #[test]
    fn counts_are_of_pages() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let lines = "{\"text\": \"one one two\"}\n{\"text\": \"two three\"}\n";
        fs::write(at("pages.jsonl"), lines).unwrap();
        fs::write(at("list.tsv"), "two\t5\nfour\t1\n").unwrap();
        let paths = [at("pages.jsonl"), at("list.tsv")];
        let counted = open(&paths, Config::default()).unwrap();
        let expected = [("four", 1), ("one", 1), ("three", 1), ("two", 7)];
        assert_eq!(counted, expected.map(|(word, n)| (word.to_owned(), n)));
    }

    #[test]
    fn large_vocabularies_are_thinned() {
        let many = |n: u64| (0..n).map(|i| (format!("w{i:06}"), i + 1)).collect();
        assert_eq!(thinned(many(100)).len(), 100);
        let few = thinned(many(120_000));
        assert_eq!(few.len(), MAX_WORDS);
        let n_frequent = few.iter().filter(|(_, n)| *n > 60_000).count();
        assert!((24_000..26_000).contains(&n_frequent), "{n_frequent}");
    }
}
