//! Collects extracted text: words separated by one space, blocks by one line end.

/// The separator between the text so far and the next text; the larger one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// The next characters continue the word.
    #[default]
    None,
    /// A space.
    Blank,
    /// A new line.
    Line,
}

/// Text under construction. It never has whitespace at either end.
#[derive(Debug, Default)]
pub(super) struct Sink {
    pub(super) text: String,
    gap: Gap,
}

impl Sink {
    /// A sink that holds `capacity` bytes before it grows.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            gap: Gap::None,
        }
    }

    /// Separates the next text from the text so far.
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Appends text, with its whitespace collapsed.
    pub(super) fn push(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            if is_space(bytes[at]) {
                self.gap(Gap::Blank);
                at += 1;
                continue;
            }
            let end = stretch_end(bytes, at);
            self.push_stretch(&text[at..end]);
            at = end;
        }
    }

    /// Appends text as separate words.
    pub(super) fn push_apart(&mut self, text: &str) {
        self.gap(Gap::Blank);
        self.push(text);
        self.gap(Gap::Blank);
    }

    /// Appends text without superfluous whitespace.
    fn push_stretch(&mut self, stretch: &str) {
        if !self.text.is_empty() {
            match self.gap {
                Gap::None => {}
                Gap::Blank => self.text.push(' '),
                Gap::Line => self.text.push('\n'),
            }
        }
        self.gap = Gap::None;
        self.text.push_str(stretch);
    }
}

/// Tests for ASCII whitespace with a table, because this runs for every byte of text.
#[inline]
fn is_space(byte: u8) -> bool {
    static SPACE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            table[byte] = (byte as u8).is_ascii_whitespace();
            byte += 1;
        }
        table
    };
    SPACE[byte as usize]
}

/// The end of the longest stretch from `start` whose whitespace consists only of single spaces.
fn stretch_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        at = skip_plain(bytes, at);
        while at < bytes.len() && !is_space(bytes[at]) {
            at += 1;
        }
        let single =
            bytes.get(at) == Some(&b' ') && bytes.get(at + 1).is_some_and(|next| !is_space(*next));
        if !single {
            return at;
        }
        at += 1;
    }
}

/// Skips text whose only whitespace is single spaces, eight bytes at a time. The byte at the end
/// may be a space if another byte precedes it.
#[inline]
fn skip_plain(bytes: &[u8], start: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let mut at = start;
    while let Some(eight) = bytes[at..].first_chunk::<8>() {
        let eight = u64::from_le_bytes(*eight);
        // Sums stay within their bytes; bytes that are not ASCII are masked out at the end.
        let low = eight & !HIGH;
        let is_other = (low + (0x80 - 9) * EACH) & !(low + (0x80 - 14) * EACH) & !eight & HIGH;
        let is_blank = !((low ^ (0x20 * EACH)) + 0x7F * EACH) & !eight & HIGH;
        if is_other != 0 || is_blank & (is_blank << 8) != 0 {
            break;
        }
        // A space at the end is examined together with the next byte.
        at += 8 - (is_blank >> 63) as usize;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pieces: &[&str], expected: &str) {
        let mut sink = Sink::default();
        for piece in pieces {
            match *piece {
                "|" => sink.gap(Gap::Line),
                text => sink.push(text),
            }
        }
        assert_eq!(sink.text, expected);
    }

    #[test]
    fn whitespace_collapses() {
        check(&["  a  b \n\t c "], "a b c");
        check(&["a b c"], "a b c");
        check(&["   "], "");
        check(&["é\u{a0} ü"], "é\u{a0} ü");
    }

    /// Whitespace collapses at any position among eight bytes.
    #[test]
    fn whitespace_collapses_anywhere() {
        for gap in [" ", "  ", "\t", "\n", "\r", "\x0C", " \n", "\n ", "   "] {
            for before in 1..20 {
                for after in 1..20 {
                    for letter in ["x", "é", "\u{a0}"] {
                        let words = [letter.repeat(before), letter.repeat(after)];
                        check(&[&words.join(gap)], &words.join(" "));
                    }
                }
            }
        }
        // A control character that is not whitespace in HTML.
        check(
            &["abcdefgh\x0Bij klmnopqr\x0B"],
            "abcdefgh\x0Bij klmnopqr\x0B",
        );
    }

    #[test]
    fn pieces_join_unless_apart() {
        check(&["ro", "se"], "rose");
        check(&["ro ", "se"], "ro se");
        check(&["ro", " ", " se"], "ro se");
        check(&["ro ", "|", " se", "|"], "ro\nse");
        check(&["|", "rose"], "rose");
    }
}
