//! Cells: the text split into one piece per token, never inside a grapheme cluster.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

/// The beginnings of the cells of a text.
///
/// A cell extends from the first character of its token to that of the next. Text before the first
/// token belongs to the cell of that token. A boundary inside a grapheme cluster moves back to the
/// beginning of the cluster. Tokens whose cells then begin at the same place share a cell, which is
/// removed only together with all of them.
///
/// ```
/// use arose::passage::Cells;
/// use arose::token::Tokenizer;
/// let text = "Alice wanted to go to the store";
/// let mut starts = Vec::new();
/// Tokenizer::default().for_each_place(text, |_, place| starts.push(place.start));
/// let cells = Cells::new(text, starts);
/// assert_eq!(cells.without(text, &[2..6], ""), "Alice wanted store");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cells {
    starts: Vec<u32>,
    n_bytes: u32,
}

impl Cells {
    /// Creates the cells of tokens that begin at these bytes, in ascending order.
    #[must_use]
    pub fn new(text: &str, token_starts: impl IntoIterator<Item = usize>) -> Self {
        let token_starts = token_starts.into_iter();
        let mut starts: Vec<u32> = Vec::with_capacity(token_starts.size_hint().0);
        for start in token_starts {
            let start = match starts.last() {
                None => 0,
                Some(&last) => cluster_start(text, start).max(last as usize),
            };
            starts.push(start as u32);
        }
        Self {
            starts,
            n_bytes: text.len() as u32,
        }
    }

    /// Creates cells with the given beginnings.
    #[must_use]
    pub fn from_starts(starts: Vec<u32>, n_bytes: u32) -> Self {
        Self { starts, n_bytes }
    }

    /// Returns the beginning of each cell.
    #[must_use]
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// Returns the bytes of the cells of some tokens.
    #[must_use]
    pub fn bytes(&self, tokens: Range<u32>) -> Range<u32> {
        let start = |token: u32| match self.starts.get(token as usize) {
            Some(start) => *start,
            None => self.n_bytes,
        };
        start(tokens.start)..start(tokens.end)
    }

    /// Returns the part of disjoint ranges of tokens whose cells can be removed: all except cells
    /// shared with a token that is kept.
    #[must_use]
    pub fn whole(&self, tokens: &[Range<u32>]) -> Vec<Range<u32>> {
        let is_shared = |token: u32| {
            let [before, here] =
                [token.wrapping_sub(1), token].map(|i| self.starts.get(i as usize));
            before.is_some() && before == here
        };
        let shrunk = tokens.iter().map(|range| {
            let mut range = range.clone();
            while range.start < range.end && is_shared(range.start) {
                range.start += 1;
            }
            while range.start < range.end && is_shared(range.end) {
                range.end -= 1;
            }
            range
        });
        shrunk.filter(|range| !range.is_empty()).collect()
    }

    /// Returns the text without the cells of some tokens, with `seam` in each gap.
    #[must_use]
    pub fn without(&self, text: &str, tokens: &[Range<u32>], seam: &str) -> String {
        let gone = self.whole(tokens);
        let bytes = gone.iter().map(|range| self.bytes(range.clone()));
        without(text, bytes, seam)
    }
}

/// Returns the text without some bytes, given as disjoint ranges in order, with `seam` in each gap.
pub fn without(text: &str, gone: impl IntoIterator<Item = Range<u32>>, seam: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut at = 0;
    for range in gone {
        left.push_str(&text[at..range.start as usize]);
        left.push_str(seam);
        at = range.end as usize;
    }
    left.push_str(&text[at..]);
    left
}

/// Returns the beginning of the grapheme cluster that contains `at`, which must be the start of a
/// character.
#[inline]
pub(super) fn cluster_start(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let is_ascii = |i: usize| bytes.get(i).is_none_or(u8::is_ascii);
    let is_line_feed = bytes.get(at) == Some(&b'\n');
    if at == 0 || is_ascii(at) && is_ascii(at - 1) && !is_line_feed {
        return at;
    }
    searched_start(text, at)
}

fn searched_start(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
        _ => at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Tokenizer;
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    fn cells(text: &str) -> Cells {
        let mut starts = Vec::new();
        Tokenizer::default().for_each_place(text, |_, place| starts.push(place.start));
        Cells::new(text, starts)
    }

    #[track_caller]
    fn check(text: &str, gone: Range<u32>, expected: &str) {
        assert_eq!(cells(text).without(text, &Vec::from([gone]), ""), expected);
    }

    #[test]
    fn cells_of_tokens() {
        check(
            "Alice wanted to go to the store",
            2..6,
            "Alice wanted store",
        );
        check("(a) x, y; z.", 2..3, "(a) x, z.");
        check("(a) x, y; z.", 0..1, "x, y; z.");
        check("X. The passage, whole. Next?", 1..4, "X. Next?");
        check("(a)", 0..1, "");
    }

    /// U+0600 joins the digit after it, so the boundary moves back before it.
    #[test]
    fn no_cut_inside_a_cluster() {
        check("a \u{600}1 b", 0..1, "\u{600}1 b");
        check("a \u{600}1 b", 1..2, "a b");
        // Two Han characters without a joiner are two clusters, whatever marks they have.
        check("春\u{E0100}眠不", 1..2, "春\u{E0100}不");
    }

    /// A letter after a joiner that turns it into an emoji, as separate tokens.
    #[test]
    fn a_shared_cluster_stays_unless_both_go() {
        let text = "x \u{1F170}\u{200D}\u{1F170} y";
        let cells = Cells::new(text, [0, 2, 9, 14]);
        assert_eq!(cells.starts(), [0, 2, 2, 14]);
        let without = |gone: Range<u32>| cells.without(text, &Vec::from([gone]), "|");
        assert_eq!(without(1..2), text);
        assert_eq!(without(2..3), text);
        assert_eq!(without(1..3), "x |y");
        assert_eq!(without(0..2), format!("|{}", &text[2..]));
    }

    proptest! {
        /// Kept and removed characters together are all characters, and no cluster is split.
        #[test]
        fn nothing_is_lost_and_clusters_stay_whole(
            text in "[a-c .,\u{600}\u{301}\u{200D}\u{1F170}春ไท\r\n]{0,40}",
            from in 0_usize..10,
            n in 0_usize..10,
        ) {
            let cells = cells(&text);
            let n_tokens = cells.starts().len();
            let gone = from.min(n_tokens) as u32..(from + n).min(n_tokens) as u32;
            let whole = cells.whole(std::slice::from_ref(&gone));
            let bytes: Vec<Range<u32>> = whole.into_iter().map(|range| cells.bytes(range)).collect();
            let n_gone: usize = bytes.iter().map(ExactSizeIterator::len).sum();
            prop_assert_eq!(without(&text, bytes.clone(), "").len() + n_gone, text.len());
            let boundaries: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).collect();
            for range in bytes {
                for at in [range.start as usize, range.end as usize] {
                    prop_assert!(at == text.len() || boundaries.contains(&at));
                }
            }
        }
    }
}
