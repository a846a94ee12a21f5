//! Where extracted text gathers: words one blank apart, blocks one line apart.

/// What stands between the text so far and the text to come; the larger one wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    /// The next characters continue the word.
    #[default]
    None,
    /// A blank.
    Blank,
    /// A new line.
    Line,
}

/// Text under construction. White space at either end never gets in.
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

    /// Separates what comes from what is there.
    pub(super) fn gap(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// Appends text, its white space collapsed.
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

    /// Appends text that is a word or words of its own.
    pub(super) fn push_apart(&mut self, text: &str) {
        self.gap(Gap::Blank);
        self.push(text);
        self.gap(Gap::Blank);
    }

    /// Appends text without superfluous white space.
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

/// ASCII white space, by a table: this is asked for every byte of text.
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

/// The end of the longest stretch from `start` whose white space is already single blanks.
fn stretch_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
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
    fn white_space_collapses() {
        check(&["  a  b \n\t c "], "a b c");
        check(&["a b c"], "a b c");
        check(&["   "], "");
        check(&["é\u{a0} ü"], "é\u{a0} ü");
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
