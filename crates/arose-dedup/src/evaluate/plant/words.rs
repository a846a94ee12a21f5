//! Words: sampled as numbers, spelled as text.
//!
//! A word of the language has a rank in `1..65536`, drawn by Zipf's law in steps: first an octave
//! of ranks, each equally likely, then a rank in it. This takes two draws and no table, and is the
//! same on every machine. A *fresh* word is a random number beyond all ranks that occurs nowhere
//! else, such as a session ID.

use arose::mix::SplitMix;

/// Set in the number of a fresh word.
const FRESH: u64 = 1 << 63;

/// Number of random bits of a fresh word: ten letters of five bits.
const FRESH_BITS: u32 = 50;

/// Number of octaves of ranks.
const N_OCTAVES: u64 = 16;

/// Number of words per line.
const LINE: usize = 12;

/// The source of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    /// The language.
    Zipf,
    /// None: each word is new.
    Fresh,
}

impl Vocabulary {
    /// Appends `n` words.
    pub(super) fn draw(self, random: &mut SplitMix, n: usize, out: &mut Vec<u64>) {
        match self {
            Self::Zipf => out.extend((0..n).map(|_| ranked(random))),
            Self::Fresh => out.extend((0..n).map(|_| fresh(random))),
        }
    }
}

fn ranked(random: &mut SplitMix) -> u64 {
    let octave = 1 << random.below(N_OCTAVES);
    octave + random.below(octave)
}

/// Returns a word that occurs nowhere else.
pub(super) fn fresh(random: &mut SplitMix) -> u64 {
    FRESH | random.next_u64() >> (u64::BITS - FRESH_BITS)
}

/// The style of a text. The tokens are the same in any style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Lines of words.
    Plain,
    /// Sentences: a capital letter and a full stop per line.
    Sentences,
    /// Capital letters, and more spaces than needed.
    Capitals,
}

impl Style {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Sentences, Self::Capitals];
}

/// Returns the text of words.
pub(super) fn spell(words: &[u64], style: Style) -> String {
    let mut text = String::with_capacity(words.len() * 8);
    for line in words.chunks(LINE) {
        let begin = text.len();
        for &word in line {
            spell_word(word, &mut text);
            text.push_str(if style == Style::Capitals { "  " } else { " " });
        }
        let end = match style {
            Style::Plain => begin,
            Style::Sentences => begin + 1,
            Style::Capitals => text.len(),
        };
        if let Some(part) = text.get_mut(begin..end) {
            part.make_ascii_uppercase();
        }
        text.truncate(text.trim_end().len());
        text.push_str(if style == Style::Sentences {
            ".\n"
        } else {
            "\n"
        });
    }
    text.truncate(text.trim_end().len());
    text
}

/// Spells a rank in syllables, with short frequent words; a fresh word in letters and digits.
pub(super) fn spell_word(word: u64, text: &mut String) {
    const CONSONANTS: &[u8; 20] = b"bcdfghjklmnpqrstvwxz";
    const VOWELS: &[u8; 5] = b"aeiou";
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    if word & FRESH != 0 {
        let letters = (0..FRESH_BITS / 5).map(|i| LETTERS[(word >> (5 * i)) as usize % 32]);
        text.extend(letters.map(char::from));
        return;
    }
    let mut rest = word as usize;
    while rest > 0 {
        let syllable = rest % 100;
        text.push(char::from(CONSONANTS[syllable / 5]));
        text.push(char::from(VOWELS[syllable % 5]));
        rest /= 100;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::token::Tokenizer;
    use std::collections::BTreeSet;

    #[test]
    fn every_rank_has_its_own_word() {
        let spelled = |rank| {
            let mut text = String::new();
            spell_word(rank, &mut text);
            text
        };
        let words: BTreeSet<String> = (1..1 << 16).map(spelled).collect();
        assert_eq!(words.len(), (1 << 16) - 1);
        assert_eq!(words.iter().map(String::len).max(), Some(6));
        assert_eq!(spelled(1 << 63).len(), 10);
    }

    /// A word is one token, in any style.
    #[test]
    fn styles_have_the_same_tokens() {
        let mut words = Vec::new();
        let mut random = SplitMix::new(1);
        Vocabulary::Zipf.draw(&mut random, 500, &mut words);
        Vocabulary::Fresh.draw(&mut random, 500, &mut words);
        let tokens = Style::ALL.map(|style| Tokenizer::default().tokens(&spell(&words, style)));
        assert_eq!(tokens[0].len(), 1000);
        assert!(tokens.iter().all(|style| *style == tokens[0]));
        let texts: BTreeSet<_> = Style::ALL.map(|style| spell(&words, style)).into();
        assert_eq!(texts.len(), 3);
    }

    /// The probability of two equal words is the sum of squares, 2 / 256 (1 - 2^-16), within four
    /// standard errors of 100,000 draws.
    #[test]
    fn equal_words_are_as_frequent_as_stated() {
        let mut words = Vec::new();
        Vocabulary::Zipf.draw(&mut SplitMix::new(3), 200_000, &mut words);
        let n_equal = words.chunks(2).filter(|pair| pair[0] == pair[1]).count();
        let expected = 2.0 / 256.0 * (1.0 - 0.5_f64.powi(16));
        let error = (expected * (1.0 - expected) / 100_000.0).sqrt();
        assert!(
            (n_equal as f64 / 1e5 - expected).abs() <= 4.0 * error,
            "{n_equal}"
        );
    }
}
