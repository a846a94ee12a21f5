//! Generates prose: text that looks like a language, at several hundred megabytes per second.
//!
//! *Question.* Pages must be cheap, reproducible and, above all, *different from each other* unless
//! planted as duplicates: a duplicate detector must not find accidental ones. If sentences come
//! from a list, pages share whole shingles. If words come from one frequency table, long pages
//! agree in their word counts, which a random-projection sketch takes for similarity.
//!
//! *Idea.* Words are sampled one by one from a Zipf law (rank `r` in proportion to `1/(r + 2)`).
//! Only every fourth word comes from the table itself. The other three lanes use the same table
//! rotated by three offsets of the text, its topic. Two texts therefore share the frequent words
//! and nothing else.
//!
//! *Cost.* One 64-bit random number and four 16-byte copies per four words. Tables: 192 KiB of
//! words and 128 KiB of ranks, shared by all texts.
//!
//! *Not for* grammar, nor for languages without spaces.

use crate::random::{Random, key};

/// Number of words in a vocabulary; a power of two, so that rotation is a mask.
const N_WORDS: usize = 8192;
/// Words in a sentence: three groups of four.
pub(crate) const SENTENCE_WORDS: usize = 12;
/// Mean bytes of a sentence, to convert sizes to numbers of sentences.
pub(crate) const SENTENCE_BYTES: usize = 70;

/// A word with its trailing space, padded so that it can be copied as one block.
#[derive(Clone, Copy)]
struct Word {
    bytes: [u8; 16],
    len: usize,
}

/// The words of a web, and their frequencies.
pub(crate) struct Vocabulary {
    words: Vec<Word>,
    /// Maps a 16-bit random number to a word; frequent words occur often here.
    ranks: Vec<u16>,
}

impl Vocabulary {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(key(seed, 0x776f_7264));
        let mut words: Vec<Word> = (0..N_WORDS).map(|rank| word(rank, &mut random)).collect();
        // Each web has its own frequent words, short and long.
        random.shuffle(&mut words);
        Self {
            words,
            ranks: zipf_table(),
        }
    }

    fn word(&self, draw: u16, topic: usize) -> &Word {
        let rank = usize::from(self.ranks[usize::from(draw)]);
        &self.words[(rank + topic) & (N_WORDS - 1)]
    }
}

/// Syllables that spell the rank, so that no two words are equal, and for half of the words a final
/// consonant.
fn word(rank: usize, random: &mut Random) -> Word {
    const CONSONANTS: &[u8; 16] = b"bcdfghklmnprstvw";
    const VOWELS: &[u8; 5] = b"aeiou";
    let mut bytes = [b' '; 16];
    let mut len = 0;
    let mut rest = rank + 1;
    while rest > 0 {
        rest -= 1;
        bytes[len] = CONSONANTS[rest % 16];
        bytes[len + 1] = VOWELS[rest / 16 % 5];
        len += 2;
        rest /= 80;
    }
    let end = random.below(8) as usize;
    if let Some(&consonant) = b"nrls".get(end) {
        bytes[len] = consonant;
        len += 1;
    }
    Word {
        bytes,
        len: len + 1,
    }
}

/// `ranks[u]` for a 16-bit random number `u`, each rank in proportion to `1/(rank + 2)`.
fn zipf_table() -> Vec<u16> {
    let weight = |rank: usize| 1.0 / (rank as f64 + 2.0);
    let total: f64 = (0..N_WORDS).map(weight).sum();
    let n_slots = usize::from(u16::MAX) + 1;
    let mut ranks = Vec::with_capacity(n_slots);
    let mut sum = 0.0;
    for rank in 0..N_WORDS {
        sum += weight(rank);
        let end = (sum / total * n_slots as f64).round() as usize;
        ranks.resize(end.min(n_slots), rank as u16);
    }
    ranks.resize(n_slots, 0);
    ranks
}

/// Small changes to a text, which make a near duplicate.
#[derive(Debug, Clone)]
pub(crate) struct Edits {
    random: Random,
    /// A sentence is edited if a random number is below this.
    below: u64,
}

impl Edits {
    /// Replaces about `per_thousand` words per thousand, at places selected by `key`.
    pub(crate) fn new(key: u64, per_thousand: f64) -> Self {
        let per_sentence = per_thousand / 1000.0 * SENTENCE_WORDS as f64;
        Self {
            random: Random::new(key),
            below: (per_sentence.clamp(0.0, 1.0) * u64::MAX as f64) as u64,
        }
    }

    /// The position of the replaced word in the next sentence, if any.
    fn place(&mut self) -> Option<usize> {
        let draw = self.random.next();
        (draw < self.below).then(|| self.random.below(SENTENCE_WORDS as u64) as usize)
    }
}

/// A stream of sentences.
pub(crate) struct Prose<'a> {
    vocabulary: &'a Vocabulary,
    random: Random,
    topics: [usize; 4],
    edits: Option<Edits>,
}

impl<'a> Prose<'a> {
    pub(crate) fn new(vocabulary: &'a Vocabulary, text_key: u64, edits: Option<Edits>) -> Self {
        let mut random = Random::new(text_key);
        let topic = random.next() as usize;
        Self {
            vocabulary,
            random,
            topics: [0, topic, topic >> 16, topic >> 32],
            edits,
        }
    }

    /// Appends `n` words, each followed by a space.
    pub(crate) fn words(&mut self, n: usize, out: &mut Vec<u8>) {
        for _ in 0..n {
            let draw = self.random.next() as u16;
            push(self.vocabulary.word(draw, self.topics[1]), out);
        }
    }

    /// Appends sentences, each followed by a full stop and a space.
    pub(crate) fn sentences(&mut self, n: usize, out: &mut Vec<u8>) {
        for _ in 0..n {
            let edit = self.edits.as_mut().and_then(Edits::place);
            self.sentence(edit, out);
        }
    }

    fn sentence(&mut self, edit: Option<usize>, out: &mut Vec<u8>) {
        let start = out.len();
        for word_idx in (0..SENTENCE_WORDS).step_by(4) {
            let draw = self.random.next();
            for (lane, topic) in self.topics.into_iter().enumerate() {
                let is_edited = edit == Some(word_idx + lane);
                // Half a rotation away there is a different word.
                let topic = topic + if is_edited { N_WORDS / 2 } else { 0 };
                push(
                    self.vocabulary.word((draw >> (16 * lane)) as u16, topic),
                    out,
                );
            }
        }
        out[start].make_ascii_uppercase();
        out.pop();
        out.extend_from_slice(b". ");
    }
}

/// Copies sixteen bytes and removes the padding: twice as fast as a copy of unknown length.
fn push(word: &Word, out: &mut Vec<u8>) {
    out.extend_from_slice(&word.bytes);
    out.truncate(out.len() - (word.bytes.len() - word.len));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn text(text_key: u64, edits: Option<Edits>) -> String {
        let vocabulary = Vocabulary::new(1);
        let mut out = Vec::new();
        Prose::new(&vocabulary, text_key, edits).sentences(100, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn shingles(text: &str) -> BTreeSet<Vec<&str>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        words.windows(8).map(<[&str]>::to_vec).collect()
    }

    fn jaccard(a: &str, b: &str) -> f64 {
        let (a, b) = (shingles(a), shingles(b));
        a.intersection(&b).count() as f64 / a.union(&b).count() as f64
    }

    #[test]
    fn words_are_distinct() {
        let vocabulary = Vocabulary::new(3);
        let distinct: BTreeSet<&[u8]> = vocabulary
            .words
            .iter()
            .map(|word| &word.bytes[..word.len])
            .collect();
        assert_eq!(distinct.len(), N_WORDS);
        assert!(distinct.iter().all(|word| word.ends_with(b" ")));
    }

    #[test]
    fn same_key_same_text() {
        assert_eq!(text(9, None), text(9, None));
        assert_ne!(text(9, None), text(10, None));
    }

    #[test]
    fn texts_share_no_shingles() {
        assert_eq!(jaccard(&text(9, None), &text(10, None)), 0.0);
    }

    /// The constant that converts bytes to sentences is within a tenth of the true value.
    #[test]
    fn sentences_have_the_stated_size() {
        let bytes = text(9, None).len() as f64 / 100.0;
        assert!((bytes / SENTENCE_BYTES as f64 - 1.0).abs() < 0.1, "{bytes}");
    }

    /// Five words per thousand: each loses 8 shingles, so the similarity is about 0.92.
    #[test]
    fn edits_change_little() {
        let similarity = jaccard(&text(9, None), &text(9, Some(Edits::new(4, 5.0))));
        assert!((0.85..0.98).contains(&similarity), "{similarity}");
    }

    #[test]
    fn no_edits_no_change() {
        assert_eq!(text(9, None), text(9, Some(Edits::new(4, 0.0))));
    }

    /// The cosine of the word counts of two texts stays far below that of near duplicates.
    #[test]
    fn texts_differ_in_their_word_counts() {
        let count = |text: &str| {
            let mut counts = std::collections::BTreeMap::new();
            for word in text.to_lowercase().split([' ', '.']) {
                *counts.entry(word.to_owned()).or_insert(0.0) += 1.0;
            }
            counts.remove("");
            counts
        };
        let (a, b) = (count(&text(1, None)), count(&text(2, None)));
        let dot: f64 = a.iter().map(|(w, x)| x * b.get(w).unwrap_or(&0.0)).sum();
        let norm = |counts: &std::collections::BTreeMap<String, f64>| {
            counts.values().map(|x| x * x).sum::<f64>().sqrt()
        };
        let cosine = dot / norm(&a) / norm(&b);
        assert!(cosine < 0.7, "{cosine}");
    }
}
