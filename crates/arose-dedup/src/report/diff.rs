//! Differences of two texts, word by word, with limits.
//!
//! *Question.* What differences would a person see between two documents side by side?
//!
//! *Idea.* Split both texts into [pieces](Pieces): words with the whitespace and symbols after
//! them, or single characters in scripts written without spaces. Two pieces are equal if their
//! tokens are equal. So text that similarity ignores (case, punctuation, whitespace) is shown but
//! not marked. Then find a short list of changes (Myers 1986, as in `similar`), and show each with
//! a few words around it.
//!
//! *Limits.* Texts are foreign and may have millions of words. Equal text at both ends is skipped
//! in linear time. The rest is compared in windows of 16,384 pieces. The changes up to the last
//! long common run of a window are accepted, and the next window starts after it. The comparison
//! stops at a limit of readable output ([`Bounds`]). A window that takes long has many changes and
//! so is the last. The time is therefore linear plus that of one window (about 0.2 s), and, unlike
//! with a deadline, the result is always the same.
//!
//! *Error.* If a passage longer than a window was inserted in the middle of one text, it may be
//! shown as replacing the text that follows it.

use std::ops::Range;

use arose::content::shingler;
use arose::mix::mix;
use arose::token::Tokenizer;
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Number of pieces compared at a time.
const WINDOW: usize = 1 << 14;

/// Number of consecutive common pieces after which a window may be cut.
const ANCHOR: usize = 8;

/// Limits on the shown differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Number of changes after which the comparison stops.
    pub max_changes: usize,
    /// Number of changed pieces after which the comparison stops.
    pub max_changed: usize,
    /// Number of common pieces shown before and after a change.
    pub context: usize,
}

impl Bounds {
    /// Limits for one of many pairs on a page.
    pub const SAMPLE: Self = Self {
        max_changes: 40,
        max_changed: 800,
        context: 12,
    };

    /// Limits for a page about one pair.
    pub const PAGE: Self = Self {
        max_changes: 400,
        max_changed: 4000,
        context: 40,
    };
}

/// A text split into pieces.
#[derive(Debug, Default)]
pub struct Pieces<'a> {
    text: &'a str,
    /// The start of each piece. A piece extends to the next one.
    starts: Vec<u32>,
    /// The value by which each piece is compared.
    keys: Vec<u64>,
    /// The tokens of all pieces, and the end of the tokens of each.
    tokens: Vec<u64>,
    token_ends: Vec<u32>,
    /// The weight of each under the policy `content`; empty if unknown.
    weights: Vec<f64>,
}

impl<'a> Pieces<'a> {
    /// Splits a text of less than 4 GiB.
    #[must_use]
    pub fn new(text: &'a str, tokenizer: Tokenizer) -> Self {
        let mut pieces = Self {
            text,
            ..Self::default()
        };
        let mut fingerprints = Vec::new();
        for word in words(text) {
            fingerprints.clear();
            tokenizer.fingerprints_into(&text[word.clone()], &mut fingerprints);
            if fingerprints.is_empty() {
                continue;
            }
            let start = if pieces.starts.is_empty() {
                0
            } else {
                word.start
            };
            pieces.starts.push(u32::try_from(start).unwrap_or(u32::MAX));
            let key = fingerprints.iter().fold(0, |key, token| mix(key ^ token));
            pieces.keys.push(key);
            pieces.tokens.extend(&fingerprints);
            pieces.token_ends.push(pieces.tokens.len() as u32);
        }
        pieces
    }

    /// Returns the pairs of neighbouring tokens, as in the policy `content`.
    pub(crate) fn word_pairs(&self) -> Vec<u64> {
        let mut shingles = Vec::new();
        shingler().shingles_into(&self.tokens, &mut shingles);
        shingles
    }

    /// Sets the weight of each word pair. The weight of a piece is that of the heaviest word pair
    /// of which it is part.
    pub(crate) fn weigh(&mut self, weights: &[f64]) {
        let mut start = 0;
        let ends = self.token_ends.iter().map(|&end| end as usize);
        let pieces = ends.map(|end| {
            let pairs = weights.get(start.max(1) - 1..end.min(weights.len()));
            start = end;
            pairs
                .unwrap_or_default()
                .iter()
                .copied()
                .fold(0.0, f64::max)
        });
        self.weights = pieces.collect();
    }

    /// Divides pieces into runs that are entirely frame, or entirely counted. Returns each
    /// run, with its mean weight if it is frame.
    pub(crate) fn runs(&self, pieces: Range<usize>) -> Vec<(Range<usize>, Option<f64>)> {
        let Some(weights) = self.weights.get(pieces.clone()) else {
            return vec![(pieces, None)];
        };
        let mut start = pieces.start;
        let runs = weights.chunk_by(|one, next| (*one < 1.0) == (*next < 1.0));
        let runs = runs.map(|run| {
            let range = start..start + run.len();
            start = range.end;
            let weight = run.iter().sum::<f64>() / run.len() as f64;
            (range, (weight < 1.0).then_some(weight))
        });
        runs.collect()
    }

    /// Returns the number of pieces.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether the text has no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the text of a range of pieces.
    #[must_use]
    pub fn text(&self, pieces: Range<usize>) -> &'a str {
        let end = self.text.len();
        let at = |piece: usize| self.starts.get(piece).map_or(end, |&start| start as usize);
        match pieces.is_empty() {
            true => "",
            false => &self.text[at(pieces.start)..at(pieces.end)],
        }
    }
}

/// Returns runs of characters between whitespace, and single characters of unspaced scripts.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut chars = text.char_indices().peekable();
    std::iter::from_fn(move || {
        let (start, first) = chars.find(|(_, c)| !c.is_whitespace())?;
        let mut end = start + first.len_utf8();
        if is_unspaced(first) {
            return Some(start..end);
        }
        let is_more = |c: char| !c.is_whitespace() && !is_unspaced(c);
        while let Some((at, c)) = chars.next_if(|&(_, c)| is_more(c)) {
            end = at + c.len_utf8();
        }
        Some(start..end)
    })
}

/// Returns whether a character is in a block of Thai, Lao, Myanmar, Khmer, Kana, Hangul or Han:
/// roughly the scripts whose tokens are single characters or clusters.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{2E80}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{20000}'..='\u{3FFFF}')
}

/// A passage of one text that replaces one of the other. One of the two may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Pieces of the first text.
    pub a: Range<usize>,
    /// Pieces of the second.
    pub b: Range<usize>,
}

/// Neighbouring changes, with common text around and between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Number of hidden common pieces since the previous hunk.
    pub n_hidden: usize,
    /// Shown pieces of the first text.
    pub a: Range<usize>,
    /// Shown pieces of the second.
    pub b: Range<usize>,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

/// The shown differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    /// The hunks, in order.
    pub hunks: Vec<Hunk>,
    /// Number of common pieces after the last hunk.
    pub n_hidden_after: usize,
    /// Number of pieces of each text that were not compared.
    pub n_left: [usize; 2],
}

impl Diff {
    /// Compares two texts.
    #[must_use]
    pub fn new(a: &Pieces<'_>, b: &Pieces<'_>, bounds: Bounds) -> Self {
        let (changes, ends) = changes(&a.keys, &b.keys, bounds);
        let hunks = hunks(&changes, ends, bounds.context);
        let shown = hunks.last().map_or(0, |hunk| hunk.a.end);
        Self {
            hunks,
            n_hidden_after: ends[0] - shown,
            n_left: [a.len() - ends[0], b.len() - ends[1]],
        }
    }
}

/// Returns the changes, and the position in each text up to which they are known.
pub(crate) fn changes(a: &[u64], b: &[u64], bounds: Bounds) -> (Vec<Change>, [usize; 2]) {
    let n_before = n_common(a.iter(), b.iter());
    let n_after = n_common(a[n_before..].iter().rev(), b[n_before..].iter().rev());
    let (a_end, b_end) = (a.len() - n_after, b.len() - n_after);
    let (mut i, mut j) = (n_before, n_before);
    let mut changes = Vec::new();
    while i < a_end && j < b_end {
        let (a_to, b_to) = (a_end.min(i + WINDOW), b_end.min(j + WINDOW));
        let ops = capture_diff_slices(Algorithm::Myers, &a[i..a_to], &b[j..b_to]);
        let ops = match (a_to, b_to) == (a_end, b_end) {
            true => &ops[..],
            false => up_to_anchor(&ops),
        };
        let (from_a, from_b) = (i, j);
        for op in ops {
            let (old, new) = (op.old_range(), op.new_range());
            if !matches!(op, DiffOp::Equal { .. }) {
                if is_enough(&changes, bounds) {
                    return (changes, [from_a + old.start, from_b + new.start]);
                }
                changes.push(Change {
                    a: from_a + old.start..from_a + old.end,
                    b: from_b + new.start..from_b + new.end,
                });
            }
            (i, j) = (from_a + old.end, from_b + new.end);
        }
    }
    if (i, j) != (a_end, b_end) {
        let (a, b) = (i..a_end, j..b_end);
        changes.push(Change { a, b });
    }
    (changes, [a.len(), b.len()])
}

fn n_common<'a>(a: impl Iterator<Item = &'a u64>, b: impl Iterator<Item = &'a u64>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// Returns the steps of a window up to its last long common run. Beyond it, the content of a later
/// window might matter.
fn up_to_anchor(ops: &[DiffOp]) -> &[DiffOp] {
    let is_anchor = |op: &DiffOp| matches!(op, DiffOp::Equal { len, .. } if *len >= ANCHOR);
    match ops.iter().rposition(is_anchor) {
        Some(last) => &ops[..=last],
        None => ops,
    }
}

fn is_enough(changes: &[Change], bounds: Bounds) -> bool {
    let sizes = changes.iter().map(|change| change.a.len() + change.b.len());
    changes.len() >= bounds.max_changes || sizes.sum::<usize>() > bounds.max_changed
}

/// Combines neighbouring changes and adds the text around them.
fn hunks(changes: &[Change], ends: [usize; 2], context: usize) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for change in changes {
        let shown = hunks.last().map_or(0, |hunk| hunk.a.end);
        let n_common = change.a.start - shown;
        match hunks.last_mut() {
            Some(hunk) if n_common <= 2 * context => {
                (hunk.a.end, hunk.b.end) = (change.a.end, change.b.end);
                hunk.changes.push(change.clone());
            }
            last => {
                let n_after = last.map_or(0, |hunk| hunk.extend(context));
                let n_before = context.min(n_common - n_after);
                hunks.push(Hunk {
                    n_hidden: n_common - n_after - n_before,
                    a: change.a.start - n_before..change.a.end,
                    b: change.b.start - n_before..change.b.end,
                    changes: vec![change.clone()],
                });
            }
        }
    }
    if let Some(last) = hunks.last_mut() {
        last.extend(context.min(ends[0] - last.a.end));
    }
    hunks
}

impl Hunk {
    /// Shows `n` more common pieces at the end.
    fn extend(&mut self, n: usize) -> usize {
        self.a.end += n;
        self.b.end += n;
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: Bounds = Bounds::SAMPLE;

    fn pieces(text: &str) -> Pieces<'_> {
        Pieces::new(text, Tokenizer::default())
    }

    fn cut(text: &str) -> Vec<&str> {
        let pieces = pieces(text);
        (0..pieces.len()).map(|i| pieces.text(i..i + 1)).collect()
    }

    #[test]
    fn words_take_the_signs_after_them() {
        assert_eq!(
            cut("\u{201c}A rose -- is,\na  rose!"),
            [
                "\u{201c}A ",
                "rose -- ",
                "is,\na  ".split_at(4).0,
                "a  ",
                "rose!"
            ]
        );
        assert_eq!(
            cut("東京 タワー2024"),
            ["東", "京 ", "タ", "ワ", "ー2024".split_at(3).0, "2024"]
        );
        assert_eq!(cut(" ... "), [""; 0]);
        assert_eq!(pieces("a b c").text(1..3), "b c");
        assert_eq!(pieces("a b c").text(1..1), "");
    }

    /// The changes as texts, and the numbers of hidden pieces.
    #[track_caller]
    fn check(a: &str, b: &str, expected: &[(&str, &str)], hidden: &[usize]) {
        let (a, b) = (pieces(a), pieces(b));
        let diff = Diff::new(&a, &b, BOUNDS);
        let changes = diff.hunks.iter().flat_map(|hunk| &hunk.changes);
        let texts: Vec<(&str, &str)> = changes
            .map(|change| {
                (
                    a.text(change.a.clone()).trim(),
                    b.text(change.b.clone()).trim(),
                )
            })
            .collect();
        assert_eq!(texts, expected);
        let before = diff.hunks.iter().map(|hunk| hunk.n_hidden);
        let found: Vec<usize> = before.chain([diff.n_hidden_after]).collect();
        assert_eq!(found, hidden);
        assert_eq!(diff.n_left, [0, 0]);
    }

    #[test]
    fn small_changes() {
        check("a b c", "A, b; C!", &[], &[3]);
        check("a b c", "a x c", &[("b", "x")], &[0, 0]);
        check("a b", "a b c", &[("", "c")], &[0, 0]);
        check("", "a", &[("", "a")], &[0, 0]);
        check("", "", &[], &[0]);
        check("a a a", "a a", &[("a", "")], &[0, 0]);
    }

    #[test]
    fn what_is_common_is_hidden_beyond_the_context() {
        let common = |n: usize, word: &str| format!("{word} ").repeat(n);
        let text = |x: &str, gap: usize| {
            [
                &common(20, "p"),
                x,
                " ",
                &common(gap, "q"),
                x,
                " ",
                &common(30, "r"),
            ]
            .concat()
        };
        let (two, one) = ([("x", "y"), ("x", "y")], BOUNDS.context);
        check(&text("x", 24), &text("y", 24), &two, &[20 - one, 30 - one]);
        check(
            &text("x", 25),
            &text("y", 25),
            &two,
            &[20 - one, 25 - 2 * one, 30 - one],
        );
    }

    /// Whether the changes turn one sequence into the other, up to the position where they are
    /// known.
    fn is_right(a: &[u64], b: &[u64]) -> bool {
        let (changes, ends) = changes(a, b, BOUNDS);
        let (mut i, mut j, mut is_equal) = (0, 0, true);
        for change in changes.iter().chain([&Change {
            a: ends[0]..ends[0],
            b: ends[1]..ends[1],
        }]) {
            is_equal &= a[i..change.a.start] == b[j..change.b.start];
            (i, j) = (change.a.end, change.b.end);
        }
        is_equal && (ends == [a.len(), b.len()] || is_enough(&changes, BOUNDS))
    }

    proptest! {
        #[test]
        fn changes_explain_the_difference(
            a in prop::collection::vec(0_u64..4, 0..60),
            b in prop::collection::vec(0_u64..4, 0..60),
        ) {
            prop_assert!(is_right(&a, &b));
        }
    }

    /// A million words with a change at each end, in the middle, or everywhere.
    #[test]
    fn long_texts() {
        let a: Vec<u64> = (0..1_000_000).map(|i| mix(i) % 5000).collect();
        let edited = |every: usize| {
            let mut b = a.clone();
            b.iter_mut()
                .skip(5)
                .step_by(every)
                .for_each(|key| *key = 9999);
            b
        };
        let far_apart = edited(999_900);
        assert!(is_right(&a, &far_apart));
        assert_eq!(changes(&a, &far_apart, BOUNDS).0.len(), 2);
        let everywhere = edited(100);
        assert!(is_right(&a, &everywhere));
        assert_eq!(changes(&a, &everywhere, BOUNDS).0.len(), BOUNDS.max_changes);
        let mut turned = a.clone();
        turned.rotate_left(a.len() / 2);
        assert!(is_right(&a, &turned));
        assert!(is_right(&a, &a[..400_000]));
        assert!(is_right(&a[600_000..], &a));
    }
}
