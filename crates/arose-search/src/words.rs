//! The searchable words of texts, which are the tokens of duplicate detection.
//!
//! [`arose::token`] splits a text, so case, punctuation and layout are ignored and every language
//! can be searched. A query word is split the same way. If it gives several tokens, like `foo-bar`
//! or `東京`, it is a phrase. Tokens beyond 96 bytes are truncated, in texts and queries alike.

use std::ops::Range;

use arose::token::Tokenizer;
use tantivy::tokenizer::{Token, TokenStream};

/// Maximum length of a word in bytes; longer words are truncated.
const MAX_BYTES: usize = 96;

/// The name of this tokenizer in the index.
pub(crate) const NAME: &str = "arose-words-1";

/// Returns the words of a text, in its order.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for_each(text, |word, _| words.push(word.to_owned()));
    words
}

/// Calls `sink` with each word and its place in the text.
pub fn for_each(text: &str, mut sink: impl FnMut(&str, Range<usize>)) {
    Tokenizer::default().for_each_place(text, |token, place| {
        let end = token.floor_char_boundary(MAX_BYTES.min(token.len()));
        sink(&token[..end], place);
    });
}

/// Calls `sink` with the fingerprint of each word and its place in the text.
pub(crate) fn for_each_fingerprint(text: &str, sink: impl FnMut(u64, Range<usize>)) {
    Tokenizer::default().for_each_fingerprint(text, MAX_BYTES, sink);
}

/// Splits texts for the index library.
#[derive(Debug, Clone, Default)]
pub(crate) struct Words {
    /// All words of a text, concatenated.
    text: String,
    /// The end of each word in `text`, and its position in the document.
    ends: Vec<(usize, Range<usize>)>,
}

impl tantivy::tokenizer::Tokenizer for Words {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        self.text.clear();
        self.ends.clear();
        for_each(text, |word, place| {
            self.text.push_str(word);
            self.ends.push((self.text.len(), place));
        });
        Stream {
            words: self,
            next: 0,
            start: 0,
            token: Token::default(),
        }
    }
}

/// The words of one text.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    words: &'a Words,
    next: usize,
    start: usize,
    token: Token,
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        let Some((end, place)) = self.words.ends.get(self.next) else {
            return false;
        };
        self.token.text.clear();
        self.token.text.push_str(&self.words.text[self.start..*end]);
        (self.token.offset_from, self.token.offset_to) = (place.start, place.end);
        self.token.position = self.next;
        self.start = *end;
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::token::fingerprint;
    use tantivy::tokenizer::Tokenizer as _;

    #[test]
    fn the_index_sees_the_same_words() {
        let text = "A Rosé--is 東京タワー, ภาษา x";
        let mut cutter = Words::default();
        let mut stream = cutter.token_stream(text);
        let mut seen = Vec::new();
        while let Some(token) = stream.next() {
            assert_eq!(token.position, seen.len());
            seen.push(token.text.clone());
        }
        assert_eq!(seen, words(text));
        assert_eq!(seen[..5], ["a", "rosé", "is", "東", "京"]);
    }

    #[test]
    fn fingerprints_are_those_of_the_words() {
        let text = format!("A Rosé--is 東京 {} x", "é".repeat(500));
        let mut seen = Vec::new();
        for_each_fingerprint(&text, |word, _| seen.push(word));
        let words = words(&text);
        let expected = words.iter().map(|word| fingerprint(word.as_bytes()));
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }

    #[test]
    fn long_words_are_cut() {
        assert_eq!(words(&"é".repeat(500)), ["é".repeat(48)]);
    }
}
