//! Lines, paragraphs and sentences of a text.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::cells::cluster_start;

/// A part of a text that is compared or cut as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Up to a line break.
    Line,
    /// Up to an empty line.
    Paragraph,
    /// A sentence (UAX 29) inside a paragraph.
    Sentence,
}

/// Returns the units of a text, each with the whitespace after it; empty ones belong to the unit
/// before, and those at the beginning to the first. Together the units are the whole text.
///
/// ```
/// use arose::passage::{Unit, units};
/// assert_eq!(units("Home\n\nAbout us\n", Unit::Line), [0..6, 6..15]);
/// assert_eq!(units("One. Two?\n\nThree", Unit::Sentence), [0..5, 5..11, 11..16]);
/// ```
#[must_use]
pub fn units(text: &str, unit: Unit) -> Vec<Range<usize>> {
    match unit {
        Unit::Line => joined(text, line_ends(text)),
        Unit::Paragraph => joined(text, paragraph_ends(text)),
        Unit::Sentence => {
            let mut start = 0;
            let mut ends = Vec::new();
            for end in paragraph_ends(text) {
                let sentences = text[start..end].split_sentence_bound_indices();
                let within = sentences.map(|(at, sentence)| start + at + sentence.len());
                ends.extend(within.map(|end| cluster_start(text, end)));
                start = end;
            }
            joined(text, ends.into_iter())
        }
    }
}

/// Returns the pieces that end at `ends`; blank ones are joined with the piece before.
fn joined(text: &str, ends: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut units: Vec<Range<usize>> = Vec::new();
    let (mut start, mut has_text) = (0, false);
    for end in ends {
        if end <= start {
            continue;
        }
        let is_blank = text[start..end].trim().is_empty();
        match units.last_mut() {
            Some(last) if is_blank || !has_text => last.end = end,
            _ => units.push(start..end),
        }
        has_text |= !is_blank;
        start = end;
    }
    match has_text {
        true => units,
        false => Vec::new(),
    }
}

/// Returns the end of each line, including its line break.
fn line_ends(text: &str) -> impl Iterator<Item = usize> {
    let is_break = |c: char| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let breaks = text.match_indices(is_break);
    let ends = breaks.filter_map(|(at, found)| {
        let is_pair = found == "\r" && text.as_bytes().get(at + 1) == Some(&b'\n');
        (!is_pair).then_some(at + found.len())
    });
    ends.chain((!text.is_empty()).then_some(text.len()))
}

/// Returns the end of each paragraph, including the empty lines after it.
fn paragraph_ends(text: &str) -> impl Iterator<Item = usize> {
    let mut ends = Vec::new();
    let (mut start, mut is_after_blank) = (0, false);
    for end in line_ends(text) {
        let is_blank = text[start..end].trim().is_empty();
        if is_after_blank && !is_blank {
            ends.push(start);
        }
        is_after_blank = is_blank;
        start = end;
    }
    ends.push(text.len());
    ends.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(text: &str, unit: Unit, expected: &[&str]) {
        let found: Vec<&str> = units(text, unit)
            .into_iter()
            .map(|range| &text[range])
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn lines() {
        check("", Unit::Line, &[]);
        check(" \n\n", Unit::Line, &[]);
        check("a", Unit::Line, &["a"]);
        check(
            "\n\na\r\n\r\nb\rc\u{2028}d",
            Unit::Line,
            &["\n\na\r\n\r\n", "b\r", "c\u{2028}", "d"],
        );
    }

    #[test]
    fn paragraphs() {
        check(
            "a\nb\n\n \nc\nd\n\n",
            Unit::Paragraph,
            &["a\nb\n\n \n", "c\nd\n\n"],
        );
        check("\n\na", Unit::Paragraph, &["\n\na"]);
    }

    #[test]
    fn sentences() {
        let text = "X said so. Then, no. 5 came!\n\nWhy? 春眠。暁\n";
        let expected = [
            "X said so. ",
            "Then, no. 5 came!\n\n",
            "Why? ",
            "春眠。",
            "暁\n",
        ];
        check(text, Unit::Sentence, &expected);
    }

    proptest! {
        #[test]
        fn units_are_the_whole_text(text in "[a-c.?! \n\r\u{2029}\u{301}\u{e33}]{0,40}") {
            for unit in [Unit::Line, Unit::Paragraph, Unit::Sentence] {
                let units = units(&text, unit);
                let is_blank = text.trim().is_empty();
                prop_assert_eq!(units.is_empty(), is_blank);
                prop_assert_eq!(units.iter().map(ExactSizeIterator::len).sum::<usize>(),
                    if is_blank { 0 } else { text.len() });
                prop_assert!(units.windows(2).all(|two| two[0].end == two[1].start));
                prop_assert!(units.iter().all(|unit| !text[unit.clone()].trim().is_empty()));
            }
        }
    }
}
