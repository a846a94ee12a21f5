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
                sentence_ends(&text[start..end], |at| {
                    ends.push(cluster_start(text, start + at));
                });
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

/// The classes of ASCII characters for sentence boundaries (UAX 29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AsciiClass {
    Other,
    Upper,
    Lower,
    Numeric,
    Space,
    /// Quotation marks and brackets.
    Close,
    /// A comma and the like, after which a sentence continues.
    Continue,
    /// A full stop, which may also be part of an abbreviation or a number.
    Stop,
    /// A mark that ends a sentence.
    End,
    /// A line break.
    Break,
}

/// All bytes beyond ASCII are others.
const CLASSES: [AsciiClass; 256] = {
    let mut classes = [AsciiClass::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'A'..=b'Z' => AsciiClass::Upper,
            b'a'..=b'z' => AsciiClass::Lower,
            b'0'..=b'9' => AsciiClass::Numeric,
            b'\t' | 0x0B | 0x0C | b' ' => AsciiClass::Space,
            b'"' | b'\'' | b'(' | b')' | b'[' | b']' | b'{' | b'}' => AsciiClass::Close,
            b',' | b'-' | b':' | b';' => AsciiClass::Continue,
            b'.' => AsciiClass::Stop,
            b'!' | b'?' => AsciiClass::End,
            b'\n' | b'\r' => AsciiClass::Break,
            _ => AsciiClass::Other,
        };
        byte += 1;
    }
    classes
};

/// Calls `push` with the end of each sentence of a text.
///
/// No rule of UAX 29 looks across a line break, or across the space between an end mark and a
/// capital letter. So a text is cut there, and parts without other than ASCII characters need no
/// tables of Unicode.
fn sentence_ends(text: &str, mut push: impl FnMut(usize)) {
    if text.is_ascii() {
        return ascii_sentence_ends(text.as_bytes(), push);
    }
    let mut start = 0;
    let mut part = |end: usize| {
        let part = &text[start..end];
        if part.is_ascii() {
            ascii_sentence_ends(part.as_bytes(), |at| push(start + at));
        } else {
            let sentences = part.split_sentence_bound_indices();
            sentences.for_each(|(at, sentence)| push(start + at + sentence.len()));
        }
        start = end;
    };
    certain_ends(text.as_bytes(), &mut part);
    part(text.len());
}

/// Calls `push` with the ends of sentences that depend on ASCII characters next to them alone.
fn certain_ends(text: &[u8], mut push: impl FnMut(usize)) {
    let class = |at: usize| text.get(at).map(|byte| CLASSES[usize::from(*byte)]);
    let mut at = 0;
    while let Some(here) = class(at) {
        at += 1;
        match here {
            AsciiClass::Break => {
                at += usize::from(text[at - 1] == b'\r' && text.get(at) == Some(&b'\n'));
                push(at);
            }
            AsciiClass::Stop | AsciiClass::End => {
                while class(at) == Some(AsciiClass::Close) {
                    at += 1;
                }
                let n_before = at;
                while class(at) == Some(AsciiClass::Space) {
                    at += 1;
                }
                if at > n_before && class(at) == Some(AsciiClass::Upper) {
                    push(at);
                }
            }
            _ => {}
        }
    }
}

/// Calls `push` with the end of each sentence of an ASCII text, by the rules of UAX 29 in one scan.
/// Their general implementation looks up every character in a table of ranges.
fn ascii_sentence_ends(text: &[u8], mut push: impl FnMut(usize)) {
    let class = |at: usize| text.get(at).map(|byte| CLASSES[usize::from(*byte)]);
    let mut last = 0;
    let mut at = 0;
    while let Some(here) = class(at) {
        at += 1;
        match here {
            AsciiClass::Break => {
                // SB3, SB4
                at += usize::from(text[at - 1] == b'\r' && text.get(at) == Some(&b'\n'));
                push(at);
                last = at;
            }
            AsciiClass::Stop | AsciiClass::End => {
                let before = at.checked_sub(2).and_then(class);
                let is_inside = here == AsciiClass::Stop
                    && match class(at) {
                        // SB6
                        Some(AsciiClass::Numeric) => true,
                        // SB7
                        Some(AsciiClass::Upper) => {
                            matches!(before, Some(AsciiClass::Upper | AsciiClass::Lower))
                        }
                        _ => false,
                    };
                if is_inside {
                    continue;
                }
                // SB9, SB10
                while class(at) == Some(AsciiClass::Close) {
                    at += 1;
                }
                while class(at) == Some(AsciiClass::Space) {
                    at += 1;
                }
                let goes_on = match class(at) {
                    // The end of the text, or of the line, which follows.
                    None | Some(AsciiClass::Break) => true,
                    // SB8a
                    Some(AsciiClass::Continue | AsciiClass::Stop | AsciiClass::End) => true,
                    // SB8
                    _ => here == AsciiClass::Stop && is_before_lower(&text[at..]),
                };
                if !goes_on {
                    // SB11
                    push(at);
                    last = at;
                }
            }
            _ => {}
        }
    }
    if last < text.len() {
        push(text.len());
    }
}

/// Whether the first letter is lower case, and no end of a sentence or line is before it.
fn is_before_lower(text: &[u8]) -> bool {
    let mut classes = text.iter().map(|byte| CLASSES[usize::from(*byte)]);
    let first = classes.find(|class| {
        let is_letter = matches!(class, AsciiClass::Upper | AsciiClass::Lower);
        is_letter
            || matches!(
                class,
                AsciiClass::Break | AsciiClass::Stop | AsciiClass::End
            )
    });
    first == Some(AsciiClass::Lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_sentences(text: &str) {
        let mut ends = Vec::new();
        sentence_ends(text, |end| ends.push(end));
        let plain = text.split_sentence_bound_indices();
        let plain: Vec<usize> = plain.map(|(at, part)| at + part.len()).collect();
        assert_eq!(ends, plain, "{text:?}");
    }

    #[test]
    fn every_ascii_character_in_every_place() {
        for c in (0..128).map(char::from) {
            check_sentences(&format!("A{c}B.{c} a! {c}b? ({c}) C.{c}D .{c}{c}e {c}"));
        }
    }

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
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn sentences_are_those_of_the_rules(
            text in prop_oneof![
                "[aB1 .!?,;)\"'\t\n\r_]{0,24}",
                "[\\x00-\\x7F]{0,24}",
                "[aB1 .!?)\n\réÉ…。»\u{85}\u{AD}\u{301}\u{600}\u{2028}春]{0,24}",
            ],
        ) {
            check_sentences(&text);
        }

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
