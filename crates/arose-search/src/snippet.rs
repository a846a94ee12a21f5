//! A few words around what was found.
//!
//! *Question.* Which two lines of a text show best why it is a result?
//!
//! *Idea.* Mark every run of words that the query names. Of all windows of [`WINDOW`] words take
//! the one with most different marks, then most marks, then the first; if another one shows marks
//! that this one does not, take it too. *Cost.* Linear in the text, of which only the first
//! [`MAX_BYTES`] are looked at.

use std::ops::Range;

use arose::token::fingerprint;

use crate::query::Query;
use crate::words;

/// How much of a text is looked at.
const MAX_BYTES: usize = 1 << 18;

/// Words shown around each other.
const WINDOW: usize = 32;

/// Bytes shown of a window, whatever its words.
const MAX_SHOWN: usize = 320;

/// Windows shown.
const MAX_WINDOWS: usize = 2;

/// A stretch of a snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// The text as it stands in the document; blanks are single.
    pub text: String,
    /// Whether the query asked for it.
    pub marked: bool,
}

/// The part of `text` that shows best what `query` found in it.
///
/// ```
/// use arose_search::{Query, snippet};
/// let fragments = snippet("A rose is a Rose.", &"rose".parse::<Query>()?);
/// let marked: Vec<&str> = fragments.iter().filter(|f| f.marked).map(|f| &*f.text).collect();
/// assert_eq!(marked, ["rose", "Rose"]);
/// # Ok::<(), arose_search::QueryError>(())
/// ```
#[must_use]
pub fn snippet(text: &str, query: &Query) -> Vec<Fragment> {
    let end = text.floor_char_boundary(MAX_BYTES);
    let marked = Marked::new(&text[..end], query);
    let windows = marked.windows();
    let mut fragments = Vec::new();
    for (i, window) in windows.iter().enumerate() {
        if i > 0 {
            push(&mut fragments, " ", false);
        }
        marked.show(window.clone(), &mut fragments);
    }
    fragments
}

/// The words of a text, and which of them the query asked for.
struct Marked<'a> {
    text: &'a str,
    places: Vec<Range<usize>>,
    /// For each word the number of the mark it belongs to; 0 for none.
    marks: Vec<u32>,
}

impl<'a> Marked<'a> {
    fn new(text: &'a str, query: &Query) -> Self {
        let (mut keys, mut places) = (Vec::new(), Vec::new());
        words::for_each(text, |word, place| {
            keys.push(fingerprint(word.as_bytes()));
            places.push(place);
        });
        let patterns: Vec<Vec<u64>> = query
            .marks()
            .into_iter()
            .map(|(_, words)| {
                words
                    .iter()
                    .map(|word| fingerprint(word.as_bytes()))
                    .collect()
            })
            .collect();
        let mut marks = vec![0; keys.len()];
        for at in 0..keys.len() {
            for (number, pattern) in (1..).zip(&patterns) {
                if keys[at..].starts_with(pattern) {
                    marks[at..at + pattern.len()].fill(number);
                }
            }
        }
        Self {
            text,
            places,
            marks,
        }
    }

    /// The windows to be shown, in the order of the text.
    fn windows(&self) -> Vec<Range<usize>> {
        let mut seen = Vec::new();
        let mut windows: Vec<Range<usize>> = Vec::new();
        while windows.len() < MAX_WINDOWS {
            match self.best_window(&seen) {
                Some(window) => {
                    seen.extend(self.marks[window.clone()].iter().copied());
                    windows.push(window);
                }
                None => break,
            }
        }
        if windows.is_empty() {
            windows.push(0..WINDOW.min(self.marks.len()));
        }
        windows.sort_by_key(|window| window.start);
        if let [first, second] = &windows[..]
            && first.end >= second.start
        {
            let joined = first.start..second.end;
            windows.clear();
            windows.push(joined);
        }
        windows
    }

    /// The window with most marks that were not seen; none if there is none with any.
    fn best_window(&self, seen: &[u32]) -> Option<Range<usize>> {
        let is_new = |mark: u32| mark != 0 && !seen.contains(&mark);
        let starts = (0..self.marks.len()).filter(|&at| is_new(self.marks[at]));
        // A few words before the first mark say what it is about.
        let windows = starts.map(|at| {
            let start = at.saturating_sub(WINDOW / 6);
            start..(start + WINDOW).min(self.marks.len())
        });
        let worth = |window: &Range<usize>| {
            let marks = &self.marks[window.clone()];
            let mut different: Vec<u32> = marks.iter().copied().filter(|&m| is_new(m)).collect();
            let n_marks = different.len();
            different.sort_unstable();
            different.dedup();
            (different.len(), n_marks)
        };
        let mut best: Option<((usize, usize), Range<usize>)> = None;
        for window in windows.take(256) {
            let worth = worth(&window);
            if best.as_ref().is_none_or(|(held, _)| worth > *held) {
                best = Some((worth, window));
            }
        }
        best.map(|(_, window)| window)
    }

    fn show(&self, window: Range<usize>, fragments: &mut Vec<Fragment>) {
        let (Some(first), Some(last)) = (
            self.places.get(window.start),
            self.places.get(window.end.saturating_sub(1)),
        ) else {
            let end = self.text.floor_char_boundary(MAX_SHOWN);
            return push(fragments, &self.text[..end], false);
        };
        if window.start > 0 && fragments.is_empty() {
            push(fragments, "… ", false);
        }
        let is_last = window.end == self.places.len();
        let end = if is_last { self.text.len() } else { last.end };
        let limit = self
            .text
            .floor_char_boundary(end.min(first.start + MAX_SHOWN));
        let mut at = if window.start == 0 { 0 } else { first.start };
        at = at.max(
            self.text
                .floor_char_boundary(first.start.saturating_sub(16)),
        );
        for word in window.clone().filter(|&word| self.marks[word] != 0) {
            let place = self.places[word].clone();
            if place.end > limit || place.start < at {
                continue;
            }
            push(fragments, &self.text[at..place.start], false);
            push(fragments, &self.text[place.clone()], true);
            at = place.end;
        }
        push(fragments, &self.text[at..limit.max(at)], false);
        if limit < self.text.len() {
            push(fragments, " …", false);
        }
    }
}

/// Adds a text, its blanks made single.
fn push(fragments: &mut Vec<Fragment>, text: &str, marked: bool) {
    let mut shown = match fragments.last_mut() {
        Some(last) if last.marked == marked => std::mem::take(&mut last.text),
        _ => {
            let text = String::new();
            fragments.push(Fragment { text, marked });
            String::new()
        }
    };
    for c in text.chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        if c != ' ' || !shown.ends_with(' ') {
            shown.push(c);
        }
    }
    match fragments.last_mut() {
        Some(last) if !shown.is_empty() => last.text = shown,
        _ => {
            fragments.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, query: &str, expected: &str) {
        let query: Query = query.parse().unwrap();
        let shown: String = snippet(text, &query)
            .iter()
            .map(|fragment| match fragment.marked {
                true => format!("[{}]", fragment.text),
                false => fragment.text.clone(),
            })
            .collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn words_and_phrases_are_marked() {
        check("A rose is a  rose.", "rose", "A [rose] is a [rose].");
        check(
            "A rose is a rose.",
            "\"a rose\"",
            "[A] [rose] is [a] [rose].",
        );
        check("a rose is", "\"is a\" OR rose", "a [rose] is");
        check("東京タワー", "東京", "[東京]タワー");
        check("a rose", "-rose", "a rose");
        check("", "rose", "");
        check("no word", "rose", "no word");
    }

    #[test]
    fn the_window_with_most_is_taken() {
        let gap = "x ".repeat(100);
        let text = format!("red {gap}red rose {gap}");
        check(
            &text,
            "red rose",
            &format!("… x x x x x [red] [rose]{} …", " x".repeat(25)),
        );
        let apart = format!("{gap}red {gap}rose {gap}");
        let one = |word: &str| format!("x x x x x [{word}]{} …", " x".repeat(26));
        let both = format!("… {} {}", one("red"), one("rose"));
        check(&apart, "rose red", &both);
    }

    proptest! {
        #[test]
        fn any_text_gives_short_fragments(text in "[ab c東\u{301}<\n]{0,2000}", query in "[abc東]") {
            let Ok(query) = query.parse::<Query>() else { return Ok(()) };
            let fragments = snippet(&text, &query);
            let n_bytes: usize = fragments.iter().map(|fragment| fragment.text.len()).sum();
            prop_assert!(n_bytes <= 2 * (MAX_SHOWN + 40));
        }
    }
}
