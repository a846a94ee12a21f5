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

impl Assessor {
    /// Bytes of the first [`RATIO_CHARS`] characters, divided by their bytes in the format of zlib;
    /// none without text. The compressor is zlib-rs, whose output is within 2% of zlib's length.
    pub fn ratio(&mut self, text: &str) -> Option<f64> {
        let end = text.char_indices().nth(RATIO_CHARS);
        let start = &text[..end.map_or(text.len(), |(at, _)| at)];
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
    ) -> (Repetition, Facts) {
        let mut visible = std::mem::take(&mut self.visible);
        let visibility = page.and_then(|page| page.visibility.as_deref());
        let text = seen(text, visibility, &mut visible);
        let found = (
            self.analyzer.repetition(text),
            self.facts(text, title, visibility),
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
        let facts = self.facts(text, document.title.as_deref(), visibility);
        self.visible = visible;
        Assessment {
            weight: weight(&signals.repetition, &facts),
            has_shares: visibility.is_some(),
            signals,
            facts,
        }
    }

    fn facts(&mut self, text: &str, title: Option<&str>, visibility: Option<&Visibility>) -> Facts {
        let title_words = title.unwrap_or_default().split_whitespace().count();
        Facts {
            ratio: self.ratio(text),
            title_words: u32::try_from(title_words).unwrap_or(u32::MAX),
            anchor: visibility.map_or(0.0, Visibility::anchor),
            hidden: visibility.map_or(0.0, Visibility::hidden),
            n_links: visibility.map_or(0, |visibility| visibility.n_links),
        }
    }
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
