//! The signals of a text, in one pass over it.

use super::glance::{Glance, REUSE_WORDS};
use super::grams::{Grams, Numbers, WordNumbers};
use crate::digest::digest64;

/// The repetition within a text, used for the weight of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Repetition {
    /// Words, separated by whitespace.
    pub n_words: u32,
    /// Characters.
    pub n_chars: u64,
    /// Words per distinct word, among the first 1,000.
    pub reuse: f64,
    /// Share of the words that are the most frequent one of at least four characters.
    pub top_word: f64,
    /// Share of the characters in lines that repeat an earlier one.
    pub dup_line_chars: f64,
    /// Share of the characters in 5-grams of words that repeat an earlier one.
    pub dup_5_grams: f64,
}

/// All signals of a text. A share is 0 if its denominator is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Signals {
    /// The signals used for the weight.
    pub repetition: Repetition,
    /// Lines that are not blank.
    pub n_lines: u32,
    /// Characters per word.
    pub mean_word: f64,
    /// Hash signs per word.
    pub hashes: f64,
    /// Ellipses per word.
    pub ellipses: f64,
    /// Share of the lines that start with a bullet.
    pub bullet_lines: f64,
    /// Share of the lines that end with an ellipsis.
    pub ellipsis_lines: f64,
    /// Share of the words with a letter.
    pub alphabetic_words: f64,
    /// Occurrences of eight frequent English words.
    pub stop_words: u32,
    /// Share of the lines that repeat an earlier one.
    pub dup_lines: f64,
    /// Share of the paragraphs that repeat an earlier one.
    pub dup_paragraphs: f64,
    /// Share of the characters in paragraphs that repeat an earlier one.
    pub dup_paragraph_chars: f64,
    /// Share of the characters in the most frequent 2-, 3- and 4-gram of words.
    pub top_grams: [f64; 3],
    /// Share of the characters in 5- to 10-grams of words that repeat an earlier one.
    pub dup_grams: [f64; 6],
    /// Share of the lines that end with a punctuation mark.
    pub punctuated_lines: f64,
    /// Share of the lines of at most 30 characters.
    pub short_lines: f64,
    /// Share of the characters, line ends excluded, in lines that repeat an earlier one.
    pub dup_chars: f64,
    /// Line ends per word.
    pub newlines: f64,
    /// Sentences in the lines that C4 would keep.
    pub sentences: u32,
    /// Opening braces.
    pub braces: u32,
    /// Occurrences of the phrase "lorem ipsum".
    pub lorem_ipsum: u32,
}

/// Words of Gopher's rule.
const STOP_WORDS: [&str; 8] = ["the", "be", "to", "of", "and", "that", "have", "with"];

/// Computes the signals of texts one after another and reuses its memory.
#[derive(Debug, Default)]
pub struct Analyzer {
    numbers: Numbers,
    lines: Numbers,
    grams: Grams,
    words: Vec<u32>,
    ends: Vec<u64>,
    counts: Vec<u32>,
    glance: Glance,
}

/// Counts of one pass.
#[derive(Debug, Default)]
struct Pass {
    n_lines: u64,
    n_dup_lines: u64,
    dup_line_chars: u64,
    n_newlines: u64,
    n_text_chars: u64,
    n_bullets: u64,
    n_ellipsis_lines: u64,
    n_punctuated: u64,
    n_short: u64,
    n_hashes: u64,
    n_ellipses: u64,
    n_alphabetic: u64,
    n_stop: u64,
    n_braces: u64,
    n_lorem: u64,
    n_sentences: u64,
    paragraphs: Paragraphs,
}

#[derive(Debug, Default)]
struct Paragraphs {
    /// Digests of the lines of the open paragraph, mixed, and its characters.
    open: Option<(u64, u64)>,
    keys: Vec<(u64, u64)>,
}

impl Paragraphs {
    fn line(&mut self, digest: u64, n_chars: u64) {
        let (key, n) = self.open.unwrap_or((0, 0));
        let key = crate::mix::mix(key.rotate_left(1) ^ digest);
        // The line end between two lines belongs to the paragraph.
        let joint = u64::from(self.open.is_some());
        self.open = Some((key, n + n_chars + joint));
    }

    fn end(&mut self) {
        self.keys.extend(self.open.take());
    }
}

impl Analyzer {
    /// Returns the signals that the weight of a page needs: less than half of the work.
    pub fn repetition(&mut self, text: &str) -> Repetition {
        let seed = digest64(text.as_bytes());
        self.begin(text, seed);
        let mut tally = Pass::default();
        let mut n_chars = 0;
        for line in text.split('\n') {
            n_chars += count_chars(line) + 1;
            self.number_words(line);
            self.count_line(line, &mut tally);
        }
        self.repeats(n_chars.saturating_sub(1), &tally, seed)
    }

    /// Returns the same values if they may lower the weight. Otherwise the numbers of words and
    /// characters are exact, and the shares are upper bounds that do not affect the weight. This is
    /// several times faster.
    pub fn repetition_if_notable(&mut self, text: &str) -> Repetition {
        let bounds = self.glance.at(text);
        if !bounds.are_plain() {
            return self.repetition(text);
        }
        Repetition {
            n_words: bounds.n_words,
            n_chars: bounds.n_chars,
            reuse: bounds.reuse,
            top_word: bounds.top_word,
            dup_line_chars: bounds.dup_line_chars,
            dup_5_grams: bounds.dup_5_grams,
        }
    }

    /// Returns all signals.
    pub fn signals(&mut self, text: &str) -> Signals {
        let seed = digest64(text.as_bytes());
        self.begin(text, seed);
        let mut tally = Pass::default();
        let mut n_chars = 0;
        for line in text.split('\n') {
            n_chars += count_chars(line) + 1;
            tally.n_newlines += 1;
            self.number_words(line);
            self.count_line(line, &mut tally);
            look_at_line(line, &mut tally);
        }
        tally.paragraphs.end();
        tally.n_newlines -= 1;
        n_chars -= 1;
        let repetition = self.repeats(n_chars, &tally, seed);
        let (top_grams, dup_grams) = self.gram_shares(n_chars, seed);
        self.finish(&tally, repetition, top_grams, dup_grams)
    }

    fn begin(&mut self, text: &str, seed: u64) {
        // Enough for most texts of this length; the tables grow for others.
        self.numbers.clear(text.len() / 12, seed);
        self.lines.clear(text.len() / 64, seed);
        self.words.clear();
        self.ends.clear();
    }

    fn number_words(&mut self, line: &str) {
        let mut end = self.ends.last().copied().unwrap_or(0);
        let mut add = |word: &[u8], n_chars: u64| {
            end += n_chars;
            self.ends.push(end);
            self.words.push(self.numbers.of(digest64(word)));
        };
        if line.is_ascii() {
            let words = line.as_bytes().split(|byte| is_blank(*byte));
            words
                .filter(|word| !word.is_empty())
                .for_each(|word| add(word, word.len() as u64));
        } else {
            line.split_whitespace()
                .for_each(|word| add(word.as_bytes(), count_chars(word)));
        }
    }

    fn count_line(&mut self, line: &str, tally: &mut Pass) {
        let line = line.trim();
        if line.is_empty() {
            tally.paragraphs.end();
            return;
        }
        let n_chars = count_chars(line);
        let digest = digest64(line.as_bytes());
        tally.n_lines += 1;
        tally.n_text_chars += n_chars;
        let n_known = self.lines.len();
        if (self.lines.of(digest) as usize) < n_known {
            tally.n_dup_lines += 1;
            tally.dup_line_chars += n_chars;
        }
        tally.paragraphs.line(digest, n_chars);
    }

    fn all_words(&self) -> WordNumbers<'_> {
        WordNumbers {
            numbers: &self.words,
            ends: &self.ends,
        }
    }

    fn repeats(&mut self, n_chars: u64, tally: &Pass, seed: u64) -> Repetition {
        let n_words = self.words.len();
        let first = &self.words[..n_words.min(REUSE_WORDS)];
        // Numbers are given in order of appearance.
        let n_distinct = first.iter().max().map_or(0, |last| last + 1);
        self.counts.clear();
        self.counts.resize(self.numbers.len(), 0);
        let mut top = 0;
        let mut start = 0;
        for (word, end) in self.words.iter().zip(&self.ends) {
            let n = std::mem::replace(&mut start, *end);
            if end - n >= 4 {
                let count = &mut self.counts[*word as usize];
                *count += 1;
                top = top.max(*count);
            }
        }
        let n_first = first.len() as u64;
        let words = WordNumbers {
            numbers: &self.words,
            ends: &self.ends,
        };
        self.grams.start_with_five(words);
        let repeated = self.grams.repeated_chars(words, &mut self.numbers, seed);
        Repetition {
            n_words: u32::try_from(n_words).unwrap_or(u32::MAX),
            n_chars,
            reuse: share(n_first, n_distinct.into()),
            top_word: share(top.into(), n_words as u64),
            dup_line_chars: share(tally.dup_line_chars, n_chars),
            dup_5_grams: share(repeated, n_chars),
        }
    }

    fn gram_shares(&mut self, n_chars: u64, seed: u64) -> ([f64; 3], [f64; 6]) {
        let (mut top, mut dup) = ([0.0; 3], [0.0; 6]);
        let words = WordNumbers {
            numbers: &self.words,
            ends: &self.ends,
        };
        self.grams.start(words);
        for share_of in &mut top {
            self.grams.grow(words);
            let n = self.grams.top_chars(words, &mut self.numbers, seed);
            *share_of = share(n, n_chars);
        }
        for share_of in &mut dup {
            self.grams.grow(words);
            let n = self.grams.repeated_chars(words, &mut self.numbers, seed);
            *share_of = share(n, n_chars);
        }
        (top, dup)
    }

    fn finish(
        &mut self,
        tally: &Pass,
        repetition: Repetition,
        top_grams: [f64; 3],
        dup_grams: [f64; 6],
    ) -> Signals {
        let n_words = u64::from(repetition.n_words);
        let (n_dup, dup_chars) = self.dup_paragraphs(&tally.paragraphs.keys);
        let n_word_chars = self.all_words().ends.last().copied().unwrap_or(0);
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Signals {
            n_lines: small(tally.n_lines),
            mean_word: share(n_word_chars, n_words),
            hashes: share(tally.n_hashes, n_words),
            ellipses: share(tally.n_ellipses, n_words),
            bullet_lines: share(tally.n_bullets, tally.n_lines),
            ellipsis_lines: share(tally.n_ellipsis_lines, tally.n_lines),
            alphabetic_words: share(tally.n_alphabetic, n_words),
            stop_words: small(tally.n_stop),
            dup_lines: share(tally.n_dup_lines, tally.n_lines),
            dup_paragraphs: share(n_dup, tally.paragraphs.keys.len() as u64),
            dup_paragraph_chars: share(dup_chars, repetition.n_chars),
            top_grams,
            dup_grams,
            punctuated_lines: share(tally.n_punctuated, tally.n_lines),
            short_lines: share(tally.n_short, tally.n_lines),
            dup_chars: share(tally.dup_line_chars, tally.n_text_chars),
            newlines: share(tally.n_newlines, n_words),
            sentences: small(tally.n_sentences),
            braces: small(tally.n_braces),
            lorem_ipsum: small(tally.n_lorem),
            repetition,
        }
    }

    fn dup_paragraphs(&mut self, keys: &[(u64, u64)]) -> (u64, u64) {
        let seed = keys.iter().fold(1, |seed, (key, _)| seed ^ key);
        self.lines.clear(keys.len(), crate::mix::mix(seed));
        let (mut n, mut n_chars) = (0, 0);
        for (key, chars) in keys {
            let n_known = self.lines.len();
            if (self.lines.of(*key) as usize) < n_known {
                n += 1;
                n_chars += chars;
            }
        }
        (n, n_chars)
    }
}

/// Counts the properties of a line that rules use.
fn look_at_line(line: &str, tally: &mut Pass) {
    let line = line.trim();
    if line.is_empty() {
        return;
    }
    let ends_with_ellipsis = line.ends_with("...") || line.ends_with('…');
    tally.n_bullets += u64::from(line.starts_with(['•', '-']));
    tally.n_ellipsis_lines += u64::from(ends_with_ellipsis);
    tally.n_punctuated += u64::from(line.ends_with(ends_sentence));
    tally.n_short += u64::from(line.chars().take(31).count() <= 30);
    let (mut n_words, mut longest) = (0, 0);
    for word in line.split_whitespace() {
        n_words += 1;
        longest = longest.max(word.len());
        tally.n_hashes += word.matches('#').count() as u64;
        tally.n_braces += word.matches('{').count() as u64;
        tally.n_ellipses += (word.matches("...").count() + word.matches('…').count()) as u64;
        tally.n_alphabetic += u64::from(word.chars().any(char::is_alphabetic));
        tally.n_stop += u64::from(STOP_WORDS.contains(&word));
    }
    let lower = line.to_lowercase();
    tally.n_lorem += lower.matches("lorem ipsum").count() as u64;
    let is_long = longest > 1_000
        && line
            .split_whitespace()
            .any(|word| count_chars(word) > 1_000);
    let is_prose = n_words >= 3 && !is_long && !ends_with_ellipsis;
    let is_notice = || NOTICES.iter().any(|notice| lower.contains(notice));
    if is_prose && without_citations(line).ends_with(ends_sentence) && !is_notice() {
        tally.n_sentences += count_sentences(line);
    }
}

/// C4 leaves out lines with these.
const NOTICES: [&str; 7] = [
    "javascript",
    "terms of use",
    "privacy policy",
    "cookie policy",
    "uses cookies",
    "use of cookies",
    "use cookies",
];

/// Returns a line without the reference at its end, such as `[3]` or `[edit]`.
fn without_citations(line: &str) -> &str {
    let mut line = line;
    while let Some((before, inner)) = line
        .strip_suffix(']')
        .and_then(|start| start.rsplit_once('['))
    {
        let is_number = inner.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number && inner != "edit" && inner != "citation needed" {
            break;
        }
        line = before.trim_end();
    }
    line
}

/// Counts the places where a mark that ends sentences, and any quotes or brackets after it, are
/// followed by whitespace or the end; at least one.
fn count_sentences(line: &str) -> u64 {
    let ends = line.split_whitespace().filter(|word| {
        let word = word.trim_end_matches(['"', '\'', ')', ']', '”', '’']);
        word.ends_with(['.', '!', '?', '。', '！', '？'])
    });
    (ends.count() as u64).max(1)
}

/// Marks at the end of a sentence, and the quotes that may follow.
fn ends_sentence(c: char) -> bool {
    matches!(
        c,
        '.' | '?'
            | '!'
            | '"'
            | '\''
            | '。'
            | '！'
            | '？'
            | '؟'
            | '۔'
            | '।'
            | '॥'
            | '։'
            | '።'
            | '។'
    )
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}

/// Returns whether an ASCII character is whitespace.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

/// Counts characters; most words are ASCII.
pub(super) fn count_chars(text: &str) -> u64 {
    match text.is_ascii() {
        true => text.len() as u64,
        false => text.chars().count() as u64,
    }
}
