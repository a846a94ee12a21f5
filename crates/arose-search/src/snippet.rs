//! Makes snippets: a few words around a match.
//!
//! *Question.* Which two lines of a text best show why it is a result?
//!
//! *Idea.* Mark every run of words that the query names. Of all windows of [`WINDOW`] words, take
//! the one with the most distinct marks, then the most marks, then the first. If another window
//! shows marks that this one lacks, take it too. A text is examined in pieces of [`PIECE`] bytes,
//! and no further than the piece in which the last pattern of the query was found.
//!
//! *Cost.* Linear in the examined part of the text, at most [`MAX_BYTES`], times the number of runs
//! of words that the query names. Words are compared by fingerprint. Memory: 18 bytes per word, for
//! any query.

use std::ops::Range;

use arose::token::fingerprint;

use crate::query::Query;
use crate::words;

/// Maximum number of bytes of a text that are examined.
const MAX_BYTES: usize = 1 << 18;

/// Number of bytes examined between two checks whether that was enough.
const PIECE: usize = 1 << 14;

/// Number of words in a window.
const WINDOW: usize = 32;

/// Maximum number of bytes shown of a window.
const MAX_SHOWN: usize = 320;

/// Maximum number of windows shown.
const MAX_WINDOWS: usize = 2;

/// Maximum number of windows that are compared.
const MAX_WEIGHED: usize = 256;

/// A stretch of a snippet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// The text of the document, with single spaces.
    pub text: String,
    /// Whether it matches the query.
    pub marked: bool,
}

/// The patterns of a query: runs of words, as fingerprints, and prefixes of words; no two are
/// equal.
pub(crate) struct Patterns {
    runs: Vec<Vec<u64>>,
    prefixes: Vec<String>,
}

impl Patterns {
    pub(crate) fn new(query: &Query) -> Self {
        let mut patterns: Vec<Vec<u64>> = Vec::new();
        for (_, words) in query.marks() {
            let words = words.iter().map(|word| fingerprint(word.as_bytes()));
            let pattern: Vec<u64> = words.collect();
            if !pattern.is_empty() && !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        let mut prefixes: Vec<String> = query.prefixes().into_iter().map(str::to_owned).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        Self {
            runs: patterns,
            prefixes,
        }
    }

    fn len(&self) -> usize {
        self.runs.len() + self.prefixes.len()
    }

    /// Calls `sink` with the fingerprint of each word, its place, and the number of the first
    /// prefix that matches it.
    fn for_each_word(&self, text: &str, mut sink: impl FnMut(u64, Range<usize>, Option<usize>)) {
        if self.prefixes.is_empty() {
            return words::for_each_fingerprint(text, |word, place| sink(word, place, None));
        }
        words::for_each(text, |word, place| {
            let mut prefixes = self.prefixes.iter();
            let prefix = prefixes.position(|prefix| word.starts_with(&**prefix));
            let number = prefix.map(|prefix| self.runs.len() + prefix);
            sink(fingerprint(word.as_bytes()), place, number);
        });
    }

    /// The part of a text that best shows the matches.
    pub(crate) fn snippet(&self, text: &str) -> Vec<Fragment> {
        let end = text.floor_char_boundary(MAX_BYTES);
        let marked = Marked::new(&text[..end], self);
        let mut fragments = Vec::new();
        for (i, window) in marked.windows().into_iter().enumerate() {
            if i > 0 {
                push(&mut fragments, " ", false);
            }
            marked.show(window, &mut fragments);
        }
        fragments
    }
}

/// A word that matches the query.
#[derive(Debug, Clone, Copy)]
struct Mark {
    /// Number of words before it.
    word: usize,
    /// The pattern it belongs to.
    pattern: usize,
}

/// The words of a text, and which of them match the query.
struct Marked<'a> {
    /// The examined part.
    text: &'a str,
    /// Whether the text continues after this part.
    goes_on: bool,
    places: Vec<Range<u32>>,
    /// Marks in text order, at most one per word.
    marks: Vec<Mark>,
}

impl<'a> Marked<'a> {
    fn new(text: &'a str, patterns: &Patterns) -> Self {
        let (mut words, mut places) = (Vec::new(), Vec::new());
        // For each word, one more than the first pattern that it matches.
        let mut belongs: Vec<u16> = Vec::new();
        let mut is_seen = vec![false; patterns.len()];
        // How far each run of words is marked; it may overlap itself.
        let mut marked_to = vec![0; patterns.runs.len()];
        let mut looked_at = 0;
        while looked_at < text.len() && (looked_at == 0 || is_seen.contains(&false)) {
            let piece = piece(&text[looked_at..]);
            patterns.for_each_word(piece, |word, place, prefix| {
                words.push(word);
                let place = place.start + looked_at..place.end + looked_at;
                places.push(place.start as u32..place.end as u32);
                belongs.push(prefix.map_or(0, |prefix| prefix as u16 + 1));
                if let Some(prefix) = prefix {
                    is_seen[prefix] = true;
                }
                for (pattern, asked) in patterns.runs.iter().enumerate() {
                    if asked.last() == Some(&word) && words.ends_with(asked) {
                        is_seen[pattern] = true;
                        let first = marked_to[pattern].max(words.len() - asked.len());
                        let unmarked = belongs[first..].iter_mut().filter(|held| **held == 0);
                        unmarked.for_each(|held| *held = pattern as u16 + 1);
                        marked_to[pattern] = words.len();
                    }
                }
            });
            looked_at += piece.len();
        }
        let marks = belongs.iter().enumerate().filter_map(|(word, pattern)| {
            let pattern = usize::from(pattern.checked_sub(1)?);
            Some(Mark { word, pattern })
        });
        Self {
            marks: marks.collect(),
            text: &text[..looked_at],
            goes_on: looked_at < text.len(),
            places,
        }
    }

    /// The windows to show, in text order.
    fn windows(&self) -> Vec<Range<usize>> {
        let mut seen = Vec::new();
        let mut windows: Vec<Range<usize>> = Vec::new();
        while windows.len() < MAX_WINDOWS {
            match self.best_window(&seen) {
                Some(window) => {
                    seen.extend(self.marks_in(&window).iter().map(|mark| mark.pattern));
                    windows.push(window);
                }
                None => break,
            }
        }
        if windows.is_empty() {
            windows.push(0..WINDOW.min(self.places.len()));
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

    /// The window with the most new marks; none if no window has any.
    fn best_window(&self, seen: &[usize]) -> Option<Range<usize>> {
        let is_new = |mark: &&Mark| !seen.contains(&mark.pattern);
        let mut best: Option<((usize, usize), Range<usize>)> = None;
        let mut different = Vec::new();
        for mark in self.marks.iter().filter(is_new).take(MAX_WEIGHED) {
            // A few words before the first mark give its context.
            let start = mark.word.saturating_sub(WINDOW / 6);
            let window = start..(start + WINDOW).min(self.places.len());
            let new = self.marks_in(&window).iter().filter(is_new);
            different.clear();
            different.extend(new.map(|mark| mark.pattern));
            let n_marks = different.len();
            different.sort_unstable();
            different.dedup();
            let worth = (different.len(), n_marks);
            if best.as_ref().is_none_or(|(held, _)| worth > *held) {
                best = Some((worth, window));
            }
        }
        best.map(|(_, window)| window)
    }

    fn marks_in(&self, window: &Range<usize>) -> &[Mark] {
        let at = |word: usize| self.marks.partition_point(|mark| mark.word < word);
        &self.marks[at(window.start)..at(window.end)]
    }

    /// Position of a word in the text.
    fn place(&self, word: usize) -> Option<Range<usize>> {
        let place = self.places.get(word)?;
        Some(place.start as usize..place.end as usize)
    }

    fn show(&self, window: Range<usize>, fragments: &mut Vec<Fragment>) {
        let (Some(first), Some(last)) = (
            self.place(window.start),
            self.place(window.end.saturating_sub(1)),
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
        for mark in self.marks_in(&window) {
            let Some(place) = self.place(mark.word) else {
                break;
            };
            if place.end > limit || place.start < at {
                continue;
            }
            push(fragments, &self.text[at..place.start], false);
            push(fragments, &self.text[place.clone()], true);
            at = place.end;
        }
        push(fragments, &self.text[at..limit.max(at)], false);
        if limit < self.text.len() || self.goes_on {
            push(fragments, " …", false);
        }
    }
}

/// The first part of a text, not much longer than [`PIECE`], that ends at a word boundary: at ASCII
/// whitespace or at the end of the text.
fn piece(text: &str) -> &str {
    let bytes = text.as_bytes();
    let blank = bytes
        .iter()
        .skip(PIECE)
        .position(|byte| byte.is_ascii_whitespace());
    blank.map_or(text, |blank| &text[..PIECE + blank + 1])
}

/// Appends a text with single spaces.
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

    fn snippet(text: &str, query: &Query) -> Vec<Fragment> {
        Patterns::new(query).snippet(text)
    }
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
    fn words_that_start_like_a_prefix_are_marked() {
        check(
            "Roses and rosé, a prose",
            "ros* OR prose",
            "[Roses] and [rosé], a [prose]",
        );
        check("a rose", "r* OR \"a rose\"", "[a] [rose]");
    }

    /// A run of words that overlaps itself marks each word once, however often it matches.
    #[test]
    fn issue_23_overlapping_runs_take_no_memory() {
        let text = "a ".repeat(MAX_BYTES / 2);
        let query = format!("\"{}\" OR zzz", "a ".repeat(250))
            .parse::<Query>()
            .unwrap();
        let marked = Marked::new(&text, &Patterns::new(&query));
        assert_eq!(marked.marks.len(), MAX_BYTES / 2);
        assert!(marked.marks.capacity() <= MAX_BYTES);
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

    /// A match far into a text is found, and early matches end the search.
    #[test]
    fn long_texts_are_read_as_far_as_needed() {
        let far = format!("{}rose", "x ".repeat(30_000));
        check(&far, "rose", "… x x x x x [rose]");
        let early = format!("red {} red red", "x ".repeat(30_000));
        check(&early, "red", &format!("[red]{} …", " x".repeat(31)));
        let beyond = format!("{}rose", "x ".repeat(200_000));
        check(&beyond, "rose", &format!("{}…", "x ".repeat(32)));
        let no_blank = format!("red {}", "é".repeat(40_000));
        let fragments = snippet(&no_blank, &"red".parse().unwrap());
        assert!(fragments.iter().map(|part| part.text.len()).sum::<usize>() < 400);
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
