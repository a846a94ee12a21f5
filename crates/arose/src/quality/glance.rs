//! Glances: bounds of the signals of a text, computed several times faster than the signals.
//!
//! *Question.* Nearly all pages repeat so little that no signal of repetition lowers their weight.
//! How can this be shown without counting every word?
//!
//! *Idea.* Hashes instead of tables. Different words may share a bit or a counter, but equal words
//! always do. So the counts are bounds of the exact ones: no more distinct words, and no fewer
//! occurrences of the most frequent word, repeated lines and repeated 5-grams. If these bounds stay
//! within the thresholds, the weight equals that of the exact signals. Otherwise the exact signals
//! are computed.
//!
//! *Cost.* One pass over the text; four bits of memory per byte.

use super::threshold;

/// Number of counters for words. The count of a word is at most that of its counter.
const N_COUNTERS: usize = 1 << 10;
/// Number of bits for distinct words among the first [`REUSE_WORDS`].
const N_DISTINCT: usize = 1 << 14;
/// Number of words of a text among which distinct ones are counted.
pub(super) const REUSE_WORDS: usize = 1_000;
/// Number of words in a gram.
const GRAM: usize = 5;

/// Upper bounds of the signals of a text.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) n_words: u32,
    pub(super) n_chars: u64,
    pub(super) reuse: f64,
    pub(super) top_word: f64,
    pub(super) dup_line_chars: f64,
    pub(super) dup_5_grams: f64,
}

impl Bounds {
    /// Returns whether no signal of repetition can lower the weight.
    pub(super) fn are_plain(&self) -> bool {
        self.n_words < super::FEW_WORDS
            || self.reuse <= threshold::REUSE
                && self.top_word <= threshold::TOP_WORD
                && self.dup_line_chars <= threshold::DUP_LINE_CHARS
                && self.dup_5_grams <= threshold::DUP_5_GRAMS
    }
}

/// Computes the bounds of texts, one after another, and reuses its memory.
#[derive(Debug, Default)]
pub(super) struct Glance {
    lines: Bits,
    grams: Bits,
    distinct: Bits,
    counters: Vec<u32>,
    n_distinct: u32,
    n_words: usize,
    /// Number of characters of the words so far, and of those in repeated grams and lines.
    n_word_chars: u64,
    n_gram_chars: u64,
    n_line_chars: u64,
    /// The last words: their hashes, and the number of characters of the words before each.
    last: [u64; 8],
    starts: [u64; 8],
    /// The key of the last five words.
    gram: u64,
    /// The index of the first word that no repeated gram has covered.
    uncovered: usize,
}

impl Glance {
    pub(super) fn at(&mut self, text: &str) -> Bounds {
        self.begin(text.len());
        let mut n_chars = 0;
        for line in text.split('\n') {
            let n = super::signals::count_chars(line);
            n_chars += n + 1;
            self.line(line);
            if n == line.len() as u64 {
                self.ascii_words(line.as_bytes());
            } else {
                line.split_whitespace()
                    .for_each(|word| self.word(word.as_bytes(), word.chars().count()));
            }
        }
        self.bounds(n_chars.saturating_sub(1))
    }

    fn begin(&mut self, n_bytes: usize) {
        self.lines.clear(n_bytes / 2);
        self.grams.clear(4 * n_bytes);
        self.distinct.clear(N_DISTINCT);
        self.counters.clear();
        self.counters.resize(N_COUNTERS, 0);
        (self.n_distinct, self.n_words, self.uncovered) = (0, 0, 0);
        (self.n_word_chars, self.n_gram_chars, self.n_line_chars) = (0, 0, 0);
        (self.last, self.gram) = ([0; 8], 0);
    }

    fn line(&mut self, line: &str) {
        let line = line.trim();
        if !line.is_empty() && self.lines.insert(crate::digest::digest64(line.as_bytes())) {
            self.n_line_chars += super::signals::count_chars(line);
        }
    }

    /// Splits an ASCII line into words, eight bytes at a time.
    fn ascii_words(&mut self, line: &[u8]) {
        let mut start = 0;
        let (chunks, rest) = line.as_chunks::<8>();
        for (n, chunk) in chunks.iter().enumerate() {
            let mut blanks = blanks(u64::from_le_bytes(*chunk));
            while blanks != 0 {
                let end = 8 * n + blanks.trailing_zeros() as usize / 8;
                if end > start {
                    self.word(&line[start..end], end - start);
                }
                start = end + 1;
                blanks &= blanks - 1;
            }
        }
        let at = line.len() - rest.len();
        let ends = (at..line.len()).filter(|&at| super::signals::is_blank(line[at]));
        for end in ends.chain([line.len()]) {
            if end > start {
                self.word(&line[start..end], end - start);
            }
            start = end + 1;
        }
    }

    #[inline]
    fn word(&mut self, word: &[u8], n_chars: usize) {
        let hash = hash(word);
        let at = self.n_words % 8;
        self.n_words += 1;
        self.starts[at] = self.n_word_chars;
        self.n_word_chars += n_chars as u64;
        if self.n_words <= REUSE_WORDS {
            self.n_distinct += u32::from(!self.distinct.insert(hash));
        }
        if n_chars >= 4 {
            self.counters[hash as usize % N_COUNTERS] += 1;
        }
        // A polynomial hash: the oldest word is removed.
        let oldest = self.last[(at + 8 - GRAM) % 8];
        self.gram = self.gram.wrapping_mul(BASE).wrapping_add(hash);
        self.gram = self.gram.wrapping_sub(oldest.wrapping_mul(BASE_5));
        self.last[at] = hash;
        if self.n_words >= GRAM && self.grams.insert(self.gram.wrapping_mul(SPREAD)) {
            let first = (self.n_words - GRAM).max(self.uncovered);
            self.n_gram_chars += self.n_word_chars - self.starts[first % 8];
            self.uncovered = self.n_words;
        }
    }

    fn bounds(&self, n_chars: u64) -> Bounds {
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let n_first = self.n_words.min(REUSE_WORDS) as u64;
        let top = self.counters.iter().copied().max().unwrap_or(0);
        Bounds {
            n_words: u32::try_from(self.n_words).unwrap_or(u32::MAX),
            n_chars,
            reuse: share(n_first, self.n_distinct.into()),
            top_word: share(top.into(), self.n_words as u64),
            dup_line_chars: share(self.n_line_chars, n_chars),
            dup_5_grams: share(self.n_gram_chars, n_chars),
        }
    }
}

const BASE: u64 = 0x9E37_79B9_7F4A_7C15;
const BASE_5: u64 = {
    let square = BASE.wrapping_mul(BASE);
    square.wrapping_mul(square).wrapping_mul(BASE)
};
const SPREAD: u64 = 0xD6E8_FEB8_6659_FD93;

/// A set of hashes with false positives.
#[derive(Debug, Default)]
struct Bits {
    words: Vec<u64>,
    shift: u32,
}

impl Bits {
    /// Empties the set and sizes it for at least this many bits.
    fn clear(&mut self, n_bits: usize) {
        let n_bits = n_bits.next_power_of_two().max(1 << 10);
        self.words.clear();
        self.words.resize(n_bits / 64, 0);
        self.shift = 64 - n_bits.trailing_zeros();
    }

    /// Adds a hash, of which the upper bits count. Returns whether it may have been in the set.
    #[inline]
    fn insert(&mut self, hash: u64) -> bool {
        let bit = (hash >> self.shift) as usize;
        let word = &mut self.words[bit / 64];
        let before = *word;
        *word |= 1 << (bit % 64);
        before == *word
    }
}

/// Returns the highest bit of each byte that is whitespace; all bytes must be ASCII.
fn blanks(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let is_not_space = (bytes ^ (0x20 * EACH)) + 0x7F * EACH;
    let from_tab = bytes + (0x80 - 9) * EACH;
    let behind_return = bytes + (0x80 - 14) * EACH;
    (!is_not_space | (from_tab & !behind_return)) & HIGH
}

/// Returns a hash of a word; fast for short words.
#[inline]
fn hash(word: &[u8]) -> u64 {
    let n = word.len();
    let four = |at: usize| {
        let bytes = word[at..].first_chunk::<4>();
        bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)))
    };
    let mut sum = (n as u64).wrapping_mul(SPREAD);
    let mut at = 0;
    while n - at > 8 {
        sum = fold(sum ^ (four(at) | four(at + 4) << 32));
        at += 8;
    }
    let end = match n - at {
        0..=3 => {
            let rest = word[at..].iter();
            rest.fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        }
        _ => four(at) | four(n - 4) << 32,
    };
    fold(sum ^ end)
}

fn fold(sum: u64) -> u64 {
    let product = u128::from(sum ^ SPREAD) * u128::from(BASE);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;
    use crate::quality::{Analyzer, Facts, weight};

    /// Texts of few and many words, in long and short lines, ASCII or not.
    fn texts() -> impl Iterator<Item = String> {
        let mut random = SplitMix::new(26);
        (0..400).map(move |n| {
            let n_words = 1 + random.below(3_000);
            let n_distinct = 1 + random.below([5, 50, 500, 5_000][n % 4]);
            let mut text = String::new();
            for _ in 0..n_words {
                let word = random.below(n_distinct);
                let letters = (word % 13 + 1) as usize;
                let letter = if n % 7 == 0 { "é" } else { "w" };
                text.push_str(&letter.repeat(letters));
                text.push_str(&word.to_string());
                let gap = random.below(40);
                text.push_str(match gap {
                    0 => "\n",
                    1 => " \t\r\n",
                    2 if n % 5 == 0 => "\u{a0}\u{2003}",
                    3 => "\x0B ",
                    _ => " ",
                });
            }
            text
        })
    }

    /// Counts are exact and everything else is a bound; the weight is that of the exact signals.
    #[test]
    fn issue_21_a_glance_bounds_every_signal() {
        let (mut glance, mut analyzer) = (Glance::default(), Analyzer::default());
        let mut n_plain = 0;
        for text in texts().chain([String::new(), "\n \n".into(), "one".into()]) {
            let bounds = glance.at(&text);
            let exact = analyzer.repetition(&text);
            assert_eq!(
                (bounds.n_words, bounds.n_chars),
                (exact.n_words, exact.n_chars)
            );
            let pairs = [
                (bounds.reuse, exact.reuse),
                (bounds.top_word, exact.top_word),
                (bounds.dup_line_chars, exact.dup_line_chars),
                (bounds.dup_5_grams, exact.dup_5_grams),
            ];
            for (bound, exact) in pairs {
                assert!(bound >= exact, "{bounds:?} {exact}");
            }
            let quick = analyzer.repetition_if_notable(&text);
            let facts = Facts::default();
            assert_eq!(weight(&quick, &facts), weight(&exact, &facts));
            n_plain += usize::from(bounds.are_plain());
        }
        assert!((50..350).contains(&n_plain), "{n_plain}");
    }

    #[test]
    fn blanks_are_those_of_ascii() {
        for byte in 0..128_u8 {
            for at in 0..8 {
                let mut bytes = [b'x'; 8];
                bytes[at] = byte;
                let expected = match super::super::signals::is_blank(byte) {
                    true => 0x80 << (8 * at),
                    false => 0,
                };
                assert_eq!(blanks(u64::from_le_bytes(bytes)), expected, "{byte}");
            }
        }
    }
}
