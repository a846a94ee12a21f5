//! Explains why two documents have the same content or not: counted text, frames and common text.
//!
//! The policy `content` weighs word pairs, but people read passages. The weight of a token is that
//! of the heavier of its two word pairs. A token is common to both documents if one of its word
//! pairs is in the chain. Rows show both texts side by side: first text that both have in the same
//! order, then text that only one of them has.

use std::ops::Range;

use arose::content::{Content, Score, Scorer, shingler};
use arose::token::Tokenizer;
use arose_corpus::Document;

/// A document ready to be explained.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    text: &'a str,
    /// The range of each token in the text. An image has an empty range.
    places: Vec<Range<usize>>,
    content: Content,
}

impl<'a> Source<'a> {
    /// Prepares a document; `weigh` computes its content from its shingles of two tokens.
    #[must_use]
    pub fn new(
        document: &'a Document,
        tokenizer: &Tokenizer,
        weigh: impl FnOnce(&[u64]) -> Content,
    ) -> Self {
        let text = document.text.as_str();
        let (mut places, mut start) = (Vec::new(), 0);
        let cut = |range: Range<usize>, places: &mut Vec<Range<usize>>| {
            tokenizer.for_each_place(&text[range.clone()], |_, place| {
                places.push(range.start + place.start..range.start + place.end);
            });
        };
        for image in &document.images {
            let end = text.floor_char_boundary(image.at).max(start);
            cut(start..end, &mut places);
            places.push(end..end);
            start = end;
        }
        cut(start..text.len(), &mut places);
        let tokens = crate::tokens(tokenizer, document);
        let mut shingles = Vec::new();
        shingler().shingles_into(&tokens.fingerprints, &mut shingles);
        Self {
            text,
            places,
            content: weigh(&shingles),
        }
    }

    /// Whether each token weighs less than 1, and its weight.
    fn weights(&self) -> Vec<f64> {
        let pairs = self.content.weights();
        let weight = |pair: Option<usize>| pair.and_then(|pair| pairs.get(pair)).copied();
        let tokens = 0..self.places.len();
        let heavier = tokens.map(|token| {
            let [before, after] = [token.checked_sub(1), Some(token)].map(weight);
            before.unwrap_or(0.0).max(after.unwrap_or(0.0))
        });
        heavier.collect()
    }

    /// Returns the passages of a range of tokens: runs that are entirely frame, or entirely
    /// counted.
    fn passages(&self, tokens: Range<usize>, weights: &[f64]) -> Vec<Passage<'a>> {
        let own = &weights[tokens.clone()];
        let mut start = tokens.start;
        let runs = own.chunk_by(|one, next| (*one < 1.0) == (*next < 1.0));
        let passages = runs.map(|run| {
            let range = start..start + run.len();
            start = range.end;
            Passage {
                text: self.text_of(range),
                n_tokens: run.len(),
                weight: run.iter().sum::<f64>() / run.len() as f64,
            }
        });
        passages.collect()
    }

    /// Returns the text from the first token of a range to the start of the token after the range.
    fn text_of(&self, tokens: Range<usize>) -> &'a str {
        let start = match tokens.start {
            0 => 0,
            first => self.places[first].start,
        };
        let end = self.places.get(tokens.end);
        let end = end.map_or(self.text.len(), |place| place.start);
        self.text[start..end.max(start)].trim()
    }
}

/// A passage of a document that is entirely frame, or entirely counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage<'a> {
    /// Its text, as in the document.
    pub text: &'a str,
    /// Its number of tokens, including images.
    pub n_tokens: usize,
    /// The mean weight of its tokens: 1 if it is counted in full.
    pub weight: f64,
}

impl Passage<'_> {
    /// Returns whether other pages of the site repeat it, so that it counts less.
    #[must_use]
    pub fn is_frame(&self) -> bool {
        self.weight < 1.0
    }
}

/// Passages side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct SideRow<'a> {
    /// Whether both documents contain it.
    pub is_common: bool,
    /// The passages of each.
    pub sides: [Vec<Passage<'a>>; 2],
}

/// Two documents side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained<'a> {
    /// The scores, which determine the level.
    pub score: Score,
    /// Both texts from beginning to end.
    pub rows: Vec<SideRow<'a>>,
}

/// Compares two documents side by side.
#[must_use]
pub fn explain<'a>(a: &Source<'a>, b: &Source<'a>) -> Explained<'a> {
    let mut scorer = Scorer::default();
    let score = scorer.score(&a.content, &b.content);
    let weights = [a.weights(), b.weights()];
    let mut rows = Vec::new();
    let mut push = |is_common: bool, [in_a, in_b]: [Range<usize>; 2]| {
        if !in_a.is_empty() || !in_b.is_empty() {
            let sides = [a.passages(in_a, &weights[0]), b.passages(in_b, &weights[1])];
            rows.push(SideRow { is_common, sides });
        }
    };
    let (mut at, ends) = ([0; 2], [a.places.len(), b.places.len()]);
    for run in runs(scorer.chain(&a.content, &b.content), ends) {
        push(false, [at[0]..run[0].start, at[1]..run[1].start]);
        at = [run[0].end, run[1].end];
        push(true, run);
    }
    push(false, [at[0]..ends[0], at[1]..ends[1]]);
    Explained { score, rows }
}

/// Returns the runs of tokens that both texts contain, from the chain of word pairs. Runs do not
/// overlap.
fn runs(chain: &[(u32, u32)], ends: [usize; 2]) -> Vec<[Range<usize>; 2]> {
    let steps = chain.chunk_by(|one, next| (one.0 + 1, one.1 + 1) == *next);
    let mut from = [0; 2];
    let runs = steps.filter_map(|run| {
        let (first, last) = (run.first()?, run.last()?);
        // A token at the end of the previous run on either side cannot start another run.
        let skip = |place: u32, from: usize| from.saturating_sub(place as usize);
        let n_skipped = skip(first.0, from[0]).max(skip(first.1, from[1]));
        let range = |first: u32, last: u32, end: usize| {
            first as usize + n_skipped..(last as usize + 2).min(end)
        };
        let run = [
            range(first.0, last.0, ends[0]),
            range(first.1, last.1, ends[1]),
        ];
        if run.iter().any(Range::is_empty) {
            return None;
        }
        from = [run[0].end, run[1].end];
        Some(run)
    });
    runs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    fn document(text: &str) -> Document {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.txt");
        std::fs::write(&path, text).unwrap();
        let mut items = arose_corpus::read(&[path], arose_corpus::Config::default()).unwrap();
        match items.next() {
            Some(arose_corpus::Item::Document(document)) => *document,
            other => panic!("{other:?}"),
        }
    }

    /// The rows of two texts; word pairs that contain `menu` are on 9 other pages.
    #[track_caller]
    fn check(a: &str, b: &str, expected: &[(bool, &str, &str)]) {
        let tokenizer = Tokenizer::default();
        let documents = [a, b].map(document);
        let frame = tokenizer.tokens("home menu menu home").fingerprints;
        let mut framed = Vec::new();
        shingler().shingles_into(&frame, &mut framed);
        let weigh = |shingles: &[u64]| {
            Content::of_site(shingles, |shingle| 9 * u64::from(framed.contains(&shingle)))
        };
        let [a, b] = documents
            .each_ref()
            .map(|document| Source::new(document, &tokenizer, weigh));
        let explained = explain(&a, &b);
        let side = |passages: &[Passage<'_>]| -> String {
            let shown = passages.iter().map(|passage| match passage.is_frame() {
                true => format!("[{:.2} {}]", passage.weight, passage.text),
                false => passage.text.to_owned(),
            });
            shown.collect::<Vec<_>>().join(" ")
        };
        let rows = explained.rows.iter();
        let rows: Vec<(bool, String, String)> = rows
            .map(|row| (row.is_common, side(&row.sides[0]), side(&row.sides[1])))
            .collect();
        let rows: Vec<(bool, &str, &str)> = rows
            .iter()
            .map(|(is_common, a, b)| (*is_common, &**a, &**b))
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn issue_24_passages_side_by_side() {
        check("", "", &[]);
        check("a rose.", "a rose", &[(true, "a rose.", "a rose")]);
        check(
            "Home menu one two, three four.",
            "Home menu one two and three four",
            &[
                (
                    true,
                    "[0.11 Home] menu one two,",
                    "[0.11 Home] menu one two",
                ),
                (false, "", "and"),
                (true, "three four.", "three four"),
            ],
        );
        check(
            "home menu menu home one",
            "two home menu menu home",
            &[
                (false, "", "two"),
                (
                    true,
                    "[0.11 home menu menu] home",
                    "home [0.11 menu menu home]",
                ),
                (false, "one", ""),
            ],
        );
        check("one two", "three four", &[(false, "one two", "three four")]);
    }

    /// Every token is in one row on its side, in order.
    #[test]
    fn issue_24_rows_are_the_whole_texts() {
        let mut random = SplitMix::new(7);
        for _ in 0..200 {
            let mut text = |n: u64| -> String {
                let words = (0..random.below(n)).map(|_| random.below(6));
                let words: Vec<u64> = words.collect();
                words.iter().map(|word| format!("w{word} ")).collect()
            };
            let texts = [text(30), text(30)];
            let documents = texts.each_ref().map(|text| document(text));
            let tokenizer = Tokenizer::default();
            let [a, b] = documents
                .each_ref()
                .map(|document| Source::new(document, &tokenizer, Content::new));
            let explained = explain(&a, &b);
            for (side, text) in texts.iter().enumerate() {
                let rows = explained.rows.iter();
                let passages = rows.flat_map(|row| &row.sides[side]);
                let shown: Vec<&str> = passages.map(|passage| passage.text).collect();
                assert_eq!(shown.join(" "), text.trim());
            }
            let common = explained.rows.iter().filter(|row| row.is_common);
            for row in common {
                let [a, b] = row
                    .sides
                    .each_ref()
                    .map(|side| side.iter().map(|passage| passage.text).collect::<String>());
                assert_eq!(a, b);
            }
        }
    }
}
