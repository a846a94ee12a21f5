//! The quality of documents and pages: [`arose::quality`] with what only a reader of pages knows.
//!
//! Adds the compression ratio of the text and, for web pages, the words of the title and the shares
//! of hidden text and of text in links. Addresses that the mode `henzinger` puts into the text are
//! not part of what is judged.

use arose::quality::{Analyzer, Facts, RATIO_CHARS, Repetition, Signals, weight};
use flate2::{Compress, Compression, FlushCompress};

use crate::document::Document;
use crate::html::{Metadata, Visibility};

/// Everything that is known of the quality of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assessment {
    /// The signals of its text.
    pub signals: Signals,
    /// What is known beside the text.
    pub facts: Facts,
    /// Whether shares of hidden text and of text in links are known.
    pub has_shares: bool,
    /// The weight, from 0.1 to 1.
    pub weight: f64,
}

/// The signals beside those of the rules, by the names of their columns.
pub const SIGNALS: [&str; 8] = [
    "quality",
    "compression_ratio",
    "title_words",
    "anchor_share",
    "hidden_share",
    "links_per_word",
    "word_reuse",
    "top_word_share",
];

impl Assessment {
    /// The values of [`SIGNALS`]; none where unknown.
    #[must_use]
    pub fn values(&self) -> [Option<f64>; SIGNALS.len()] {
        let (text, facts) = (&self.signals.repetition, &self.facts);
        let of_page = |value: f64| self.has_shares.then_some(value);
        [
            Some(self.weight),
            facts.ratio,
            Some(facts.title_words.into()),
            of_page(facts.anchor),
            of_page(facts.hidden),
            of_page(facts.links_per_word(text.n_words)),
            Some(text.reuse),
            Some(text.top_word),
        ]
    }
}

/// Judges documents one after another, in memory that is used again.
#[derive(Debug)]
pub struct Assessor {
    analyzer: Analyzer,
    compressor: Compress,
    compressed: Vec<u8>,
    visible: String,
}

impl Default for Assessor {
    fn default() -> Self {
        Self {
            analyzer: Analyzer::default(),
            compressor: Compress::new(Compression::new(LEVEL), true),
            compressed: Vec::new(),
            visible: String::new(),
        }
    }
}

/// The level of zlib at which ratios are taken.
const LEVEL: u32 = 6;

/// Texts that a fast compressor brings to less than this weigh the same whatever their ratio is: of
/// 3,100 good pages none of them had one above the threshold of the weight.
const PLAIN: f64 = 2.3;

/// When the compression ratio of a page is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ratio {
    /// Always.
    Exact,
    /// Where it may matter to the weight; elsewhere it is none.
    IfNotable,
}

impl Assessor {
    /// Bytes of the first [`RATIO_CHARS`] characters, divided by their bytes in the format of zlib;
    /// none without text. The compressor is zlib-rs, whose output is within 2% of zlib's length.
    pub fn ratio(&mut self, text: &str) -> Option<f64> {
        let start = start_of(text);
        if start.is_empty() {
            return None;
        }
        self.compressor.reset();
        self.compressed.clear();
        // Text that does not compress grows by a few bytes.
        self.compressed.reserve(start.len() + start.len() / 8 + 128);
        let done = self.compressor.compress_vec(
            start.as_bytes(),
            &mut self.compressed,
            FlushCompress::Finish,
        );
        debug_assert!(matches!(done, Ok(flate2::Status::StreamEnd)));
        done.ok()?;
        Some(start.len() as f64 / self.compressed.len().max(1) as f64)
    }

    /// What the weight of a page depends on.
    pub fn page(
        &mut self,
        text: &str,
        title: Option<&str>,
        page: Option<&Metadata>,
        ratio: Ratio,
    ) -> (Repetition, Facts) {
        let mut visible = std::mem::take(&mut self.visible);
        let visibility = page.and_then(|page| page.visibility.as_deref());
        let text = seen(text, visibility, &mut visible);
        let found = (
            self.analyzer.repetition(text),
            self.facts(text, title, visibility, ratio),
        );
        self.visible = visible;
        found
    }

    /// All that is known of a document.
    pub fn document(&mut self, document: &Document) -> Assessment {
        let mut visible = std::mem::take(&mut self.visible);
        let page = document.page.as_deref();
        let visibility = page.and_then(|page| page.visibility.as_deref());
        let text = seen(&document.text, visibility, &mut visible);
        let signals = self.analyzer.signals(text);
        let facts = self.facts(text, document.title.as_deref(), visibility, Ratio::Exact);
        self.visible = visible;
        Assessment {
            weight: weight(&signals.repetition, &facts),
            has_shares: visibility.is_some(),
            signals,
            facts,
        }
    }

    fn facts(
        &mut self,
        text: &str,
        title: Option<&str>,
        visibility: Option<&Visibility>,
        ratio: Ratio,
    ) -> Facts {
        let title_words = title.unwrap_or_default().split_whitespace().count();
        let is_wanted = ratio == Ratio::Exact || fast_ratio(start_of(text)) >= PLAIN;
        Facts {
            ratio: is_wanted.then(|| self.ratio(text)).flatten(),
            title_words: u32::try_from(title_words).unwrap_or(u32::MAX),
            anchor: visibility.map_or(0.0, Visibility::anchor),
            hidden: visibility.map_or(0.0, Visibility::hidden),
            n_links: visibility.map_or(0, |visibility| visibility.n_links),
        }
    }
}

/// The characters of which the ratio is taken.
fn start_of(text: &str) -> &str {
    if text.len() <= RATIO_CHARS {
        return text;
    }
    let end = text.char_indices().nth(RATIO_CHARS);
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// About the compression ratio, twenty times faster: literals and matches that a compressor with
/// one look back would write, at the bits that zlib takes for one of each. Good pages have 0.84 to
/// 1.15 times their ratio.
fn fast_ratio(text: &str) -> f64 {
    const LITERAL: f64 = 6.14;
    const MATCH: f64 = 11.9;
    const FRAME: f64 = 225.0;
    let bytes = text.as_bytes();
    // One more than where four bytes were last, by a hash.
    let mut last = [0_u16; 4096];
    let (mut at, mut n_literals, mut n_matches) = (0, 0_usize, 0_usize);
    while let Some(&four) = bytes[at..].first_chunk::<4>() {
        let hash = u32::from_le_bytes(four).wrapping_mul(2_654_435_761) >> 20;
        let before = std::mem::replace(&mut last[hash as usize], at as u16 + 1);
        let earlier = before
            .checked_sub(1)
            .map_or(&bytes[..0], |at| &bytes[at.into()..]);
        if !earlier.starts_with(&four) {
            (at, n_literals) = (at + 1, n_literals + 1);
            continue;
        }
        let pairs = earlier.iter().zip(&bytes[at..]);
        at += pairs.take_while(|(a, b)| a == b).count();
        n_matches += 1;
    }
    n_literals += bytes.len() - at;
    let bits = LITERAL * n_literals as f64 + MATCH * n_matches as f64 + FRAME;
    8.0 * bytes.len() as f64 / bits
}

/// The text without addresses.
fn seen<'a>(text: &'a str, visibility: Option<&Visibility>, buffer: &'a mut String) -> &'a str {
    match visibility {
        Some(visibility) if !visibility.addresses.is_empty() => {
            buffer.clear();
            visibility.cut(text, buffer);
            buffer
        }
        _ => text,
    }
}
