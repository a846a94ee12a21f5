//! Digests: test exact equality in 8 or 16 bytes.
//!
//! *Question.* Did this document occur before, byte for byte or as a text?
//!
//! *Idea.* Store a digest instead of the document. XXH3 (Collet 2019) has a published specification
//! and a frozen output in both widths, so digests can be written to files and compared across
//! machines, languages and versions. Two texts have the same *content* if they are equal after
//! Unicode normalization (NFC) and whitespace normalization: every run of whitespace becomes one
//! space, and whitespace at both ends is removed. Case, punctuation and symbols count. An empty
//! text has no content, so it equals nothing, not even another empty text
//! ([`Digest::same_content`]).
//!
//! *Cost.* About 10 GB/s for bytes and half of that for ASCII text, which is normalized in blocks
//! of 64 bytes. *Error.* Among `n` documents, some pair of different ones shares the 128-bit digest
//! with probability about `n^2 / 2^129`: 1.5e-19 for ten billion.
//!
//! *Not for* hostile input where a forged equality does harm: XXH3 is not a cryptographic hash.

use std::borrow::Cow;

use icu_normalizer::ComposingNormalizerBorrowed;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_128};

use crate::simd::gaps::collapse;

/// A 128-bit hash for exact equality, printed as 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest of no bytes, and of a text without content.
    pub const EMPTY: Self = Self(0x99AA_06D3_0147_98D8_6001_C324_468D_497F);

    /// Returns the digest of unmodified bytes: equal for byte-identical bodies.
    ///
    /// ```
    /// use arose::digest::Digest;
    /// assert_eq!(Digest::of_bytes(b"").to_string(), "99aa06d3014798d86001c324468d497f");
    /// ```
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(xxh3_128(bytes))
    }

    /// Returns the content digest of a text: equal for texts that differ only in whitespace and
    /// Unicode normalization form.
    ///
    /// ```
    /// use arose::digest::Digest;
    /// assert_eq!(Digest::of_text("a  rose\n"), Digest::of_text("a rose"));
    /// assert_ne!(Digest::of_text("C++"), Digest::of_text("C"));
    /// ```
    #[must_use]
    pub fn of_text(text: &str) -> Self {
        let mut hasher = ContentHasher::new();
        hasher.push_text(text);
        hasher.finish()
    }

    /// Returns whether two content digests are those of exact duplicates: equal, and not of empty
    /// texts.
    #[must_use]
    pub fn same_content(self, other: Self) -> bool {
        self == other && self != Self::EMPTY
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Computes the content digest of a document from its pieces: texts and images.
pub struct ContentHasher {
    hasher: Xxh3Default,
    /// Normalized text that is not hashed yet. A space at its end counts only if more text follows.
    room: [u8; ROOM],
    n_waiting: usize,
    /// Whether there was only whitespace since the last text or image, or since the beginning.
    in_gap: bool,
}

/// Bytes that wait to be hashed together.
const ROOM: usize = 1024 + BLOCK;
/// Room for one step.
const BLOCK: usize = 64;
/// Runs of ASCII characters up to this length, between other characters, are not split off as a
/// piece.
const NEAR: usize = 16;
/// No character whose first byte is smaller is changed by NFC or changes its neighbours: U+0300 is
/// the first combining mark.
const FIRST_COMBINING: u8 = 0xCC;
/// A byte that does not occur in UTF-8 text.
const IMAGE: [u8; 1] = [0xFF];

impl Default for ContentHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl ContentHasher {
    /// Starts without content.
    #[must_use]
    pub fn new() -> Self {
        Self {
            hasher: Xxh3Default::new(),
            room: [0; ROOM],
            n_waiting: 0,
            in_gap: true,
        }
    }

    /// Appends text.
    ///
    /// ASCII is used as it is, up to the character before the first non-ASCII one. From there to a
    /// later ASCII character, across which no composition extends, the text is normalized to NFC
    /// separately.
    pub fn push_text(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let room = &mut self.room[self.n_waiting..];
            let (n_read, n_written) = collapse(rest.as_bytes(), &mut self.in_gap, room);
            self.n_waiting += n_written;
            rest = &rest[n_read..];
            if self.n_waiting + BLOCK > ROOM {
                self.flush();
            } else if !rest.is_empty() {
                let (piece, after) = rest.split_at(unicode_end(rest.as_bytes()));
                match piece.bytes().fold(0, u8::max) {
                    0..FIRST_COMBINING => self.push_unicode(piece),
                    _ => self.push_unicode(&nfc(piece)),
                }
                rest = after;
            }
        }
    }

    /// Appends an image: its URL as written, trimmed. Whitespace next to an image does not count.
    pub fn push_image(&mut self, src: &str) {
        self.end_text();
        for part in [&IMAGE, src.trim().as_bytes(), &IMAGE] {
            self.hasher.update(part);
        }
    }

    /// Returns the digest of everything that was appended.
    #[must_use]
    pub fn finish(mut self) -> Digest {
        self.end_text();
        Digest(self.hasher.digest128())
    }

    /// Appends text in NFC.
    fn push_unicode(&mut self, text: &str) {
        let mut words = text.split(char::is_whitespace);
        self.push_word(words.next().unwrap_or_default());
        for word in words {
            if !self.in_gap {
                self.push(b" ");
                self.in_gap = true;
            }
            self.push_word(word);
        }
    }

    fn push_word(&mut self, word: &str) {
        if !word.is_empty() {
            self.push(word.as_bytes());
            self.in_gap = false;
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        for bytes in bytes.chunks(BLOCK) {
            if self.n_waiting + BLOCK > ROOM {
                self.flush();
            }
            self.room[self.n_waiting..][..bytes.len()].copy_from_slice(bytes);
            self.n_waiting += bytes.len();
        }
    }

    /// Hashes the pending text, except for a space at the end.
    fn flush(&mut self) {
        let n_left = usize::from(self.in_gap).min(self.n_waiting);
        self.hasher.update(&self.room[..self.n_waiting - n_left]);
        self.room[0] = b' ';
        self.n_waiting = n_left;
    }

    /// Hashes the pending text and discards a space at its end.
    fn end_text(&mut self) {
        self.flush();
        (self.n_waiting, self.in_gap) = (0, true);
    }
}

/// Returns the end of a piece that begins with a non-ASCII character, or with the character before
/// one. It ends before an ASCII character that has no non-ASCII character nearby.
fn unicode_end(bytes: &[u8]) -> usize {
    let mut end = 1;
    loop {
        let n_more = bytes[end..].iter().position(u8::is_ascii);
        end = n_more.map_or(bytes.len(), |n| end + n);
        let near = &bytes[end..bytes.len().min(end + NEAR)];
        match near.iter().rposition(|byte| !byte.is_ascii()) {
            Some(at) => end += at,
            None => return end,
        }
    }
}

fn nfc(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// Returns the 64-bit digest of `bytes`, for tables in memory and keys in files.
#[must_use]
pub fn digest64(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Values of the published XXH3, on which files depend.
    #[test]
    fn frozen_values() {
        assert_eq!(digest64(b""), 0x2D06_8005_38D3_94C2);
        assert_eq!(Digest::of_bytes(b""), Digest::EMPTY);
        assert_eq!(ContentHasher::new().finish(), Digest::EMPTY);
    }

    /// The definition: NFC, words, one space between two.
    #[track_caller]
    fn check(text: &str) {
        let words: Vec<String> = nfc(text).split_whitespace().map(str::to_owned).collect();
        let plain = Digest::of_bytes(words.join(" ").as_bytes());
        assert_eq!(Digest::of_text(text), plain, "{text:?}");
    }

    #[test]
    fn normalization_follows_the_definition() {
        let long = "word ".repeat(40);
        for text in [
            "",
            " \n\t\u{a0}\u{3000}",
            "C++",
            " a\r\nb  c ",
            "e\u{301}\u{323} \u{301}a <\u{338}",
            "\u{85}x\u{2028}y\u{1680}z\u{1c}",
            "\u{1100}\u{1161}\u{11a8} \u{f900}",
            &long,
            &format!("{long}e\u{301}{long}\u{e9}\n\n{long}"),
            &"\u{4e00}".repeat(100),
        ] {
            check(text);
        }
        assert_ne!(Digest::of_text("a b"), Digest::of_text("ab"));
        assert_ne!(Digest::of_text("\u{1F600}"), Digest::of_text("\u{1F389}"));
    }

    #[test]
    fn images_are_content_and_whitespace_beside_them_is_not() {
        let page = |before: &str, src: &str, after: &str| {
            let mut hasher = ContentHasher::new();
            hasher.push_text(before);
            hasher.push_image(src);
            hasher.push_text(after);
            hasher.finish()
        };
        assert_eq!(page("a ", "x.png", " b"), page("a", " x.png", "b"));
        assert_ne!(page("a", "x.png", "b"), page("a", "y.png", "b"));
        assert_ne!(page("a", "x.png", "b"), page("ab", "x.png", ""));
        assert!(page("", "x.png", "").same_content(page(" ", "x.png", "")));
        assert!(!Digest::of_text("").same_content(Digest::of_text(" ")));
    }

    proptest! {
        #[test]
        fn any_text_follows_the_definition(text: String) {
            check(&text);
        }

        /// Words, gaps and marks in any order, over several blocks.
        #[test]
        fn long_text_follows_the_definition(
            parts in prop::collection::vec("[a-c]{0,9}| {1,3}|\n|\u{e9}|e\u{301}|\u{301}|\u{a0}|\u{3042}", 0..80)
        ) {
            check(&parts.concat());
        }

        #[test]
        fn text_may_come_in_pieces(a in "[a-c \n]{0,150}", b in "[a-c \n]{0,150}") {
            let mut hasher = ContentHasher::new();
            hasher.push_text(&a);
            hasher.push_text(&b);
            prop_assert_eq!(hasher.finish(), Digest::of_text(&(a + &b)));
        }
    }
}
