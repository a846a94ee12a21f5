//! Finds quotations: documents that share passages with a text.
//!
//! *Question.* Which documents contain at least `n` consecutive tokens of a given text, and which
//! of its tokens are in them?
//!
//! *Idea.* Split the text into blocks of half as many tokens, rounded up. Any `n` consecutive
//! tokens then contain a complete block. Each block is looked up as a phrase. Documents that
//! contain a block are read and compared with the text, in windows of `n` tokens. So no passage is
//! missed, and no false one is reported.
//!
//! *Cost.* One phrase query per `n / 2` tokens of the text, and reading the documents that contain
//! a block. *Error.* Windows are compared by hashes of 122 bits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use arose::passage::{RollingHash, WindowHash};
use arose::token::fingerprint;
use tantivy::query::EnableScoring;
use tantivy::{DocAddress, SegmentOrdinal};

use crate::Error;
use crate::collapse::{GoOn, for_each_block};
use crate::index::{Index, View};
use crate::query::{Part, Query};
use crate::results::Indexed;
use crate::words;

/// Maximum number of tokens of a text.
const MAX_TOKENS: usize = 1_000_000;

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quoting {
    /// Minimum number of tokens of a passage; 2 or more.
    pub min_tokens: usize,
    /// A document to leave out: the one that the text belongs to.
    pub except: Option<u64>,
    /// Maximum number of documents to compare, those with most of the text first.
    pub max_documents: usize,
}

/// The documents that share passages with a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Quotations {
    /// Number of tokens of the text.
    pub n_tokens: usize,
    /// Documents, those with most tokens of the text first.
    pub documents: Vec<Quotation>,
    /// Number of documents that were not compared because of the maximum.
    pub n_left_out: usize,
}

/// A document that shares passages with a text.
#[derive(Debug, Clone, PartialEq)]
pub struct Quotation {
    /// The ordinal of the document.
    pub doc: u64,
    /// Its properties, without its text.
    pub document: Indexed,
    /// Number of tokens of the text that are in shared passages.
    pub n_tokens: usize,
    /// The passages in the text, as byte ranges: the longest stretches in which every window of the
    /// minimum length is in the document.
    pub passages: Vec<Range<usize>>,
}

impl Index {
    /// Finds the documents that share passages with a text, as long as `go_on` returns true; none
    /// if it was stopped.
    ///
    /// # Errors
    ///
    /// If the text has more than a million tokens, or the index is damaged.
    pub fn quotations_while(
        &self,
        text: &str,
        quoting: &Quoting,
        go_on: &GoOn,
    ) -> Result<Option<Quotations>, Error> {
        let text = Text::new(text, quoting.min_tokens.max(2));
        if text.words.len() > MAX_TOKENS {
            return Err(Error::TooLong {
                n_tokens: text.words.len(),
                max: MAX_TOKENS,
            });
        }
        self.with_view(|view| self.quotations(view, &text, quoting, go_on))
    }

    fn quotations(
        &self,
        view: &View,
        text: &Text,
        quoting: &Quoting,
        go_on: &GoOn,
    ) -> tantivy::Result<Option<Quotations>> {
        let Some(candidates) = self.candidates(view, text, go_on)? else {
            return Ok(None);
        };
        let mut documents = Vec::new();
        let (mut n_compared, mut n_left_out) = (0, 0);
        for address in candidates {
            if !go_on() {
                return Ok(None);
            }
            let (columns, local) = view.columns.of(address);
            let doc = columns.docs.get_val(local);
            if quoting.except == Some(doc) {
                continue;
            }
            if n_compared == quoting.max_documents {
                n_left_out += 1;
                continue;
            }
            n_compared += 1;
            let mut document = self.indexed(view, address)?;
            let shared = text.shared_with(&document.text.take().unwrap_or_default());
            if !shared.is_empty() {
                documents.push(Quotation {
                    doc,
                    document,
                    n_tokens: shared.iter().map(ExactSizeIterator::len).sum(),
                    passages: shared
                        .into_iter()
                        .map(|tokens| text.bytes(tokens))
                        .collect(),
                });
            }
        }
        documents.sort_by_key(|found| (std::cmp::Reverse(found.n_tokens), found.doc));
        Ok(Some(Quotations {
            n_tokens: text.words.len(),
            documents,
            n_left_out,
        }))
    }

    /// The documents that contain a block of the text, those with most blocks first; none if the
    /// search was stopped.
    fn candidates(
        &self,
        view: &View,
        text: &Text,
        go_on: &GoOn,
    ) -> tantivy::Result<Option<Vec<DocAddress>>> {
        let mut n_blocks: BTreeMap<DocAddress, u32> = BTreeMap::new();
        let unscored = EnableScoring::disabled_from_searcher(&view.searcher);
        let mut seen = HashSet::new();
        for block in text.words.chunks_exact(text.min_tokens.div_ceil(2)) {
            if !seen.insert(block) {
                continue;
            }
            let query = Query::Words(Part::Text, block.to_vec());
            let weight = self.compiler(go_on).matching(&query).weight(unscored)?;
            for (segment, reader) in (0..).zip(view.searcher.segment_readers()) {
                let segment: SegmentOrdinal = segment;
                let goes_on = for_each_block(&*weight, reader, go_on, |docs| {
                    for &doc in docs {
                        *n_blocks.entry(DocAddress::new(segment, doc)).or_default() += 1;
                    }
                })?;
                if !goes_on {
                    return Ok(None);
                }
            }
        }
        let mut candidates: Vec<(DocAddress, u32)> = n_blocks.into_iter().collect();
        candidates.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
        Ok(Some(candidates.into_iter().map(|(doc, _)| doc).collect()))
    }
}

/// A text split into windows of `min_tokens` tokens.
struct Text {
    min_tokens: usize,
    words: Vec<String>,
    /// Position of each word.
    places: Vec<Range<usize>>,
    /// The number of each window, and the windows by hash; equal windows share a number.
    numbers: Vec<u32>,
    windows: HashMap<WindowHash, u32>,
}

impl Text {
    fn new(text: &str, min_tokens: usize) -> Self {
        let (mut words, mut places) = (Vec::new(), Vec::new());
        words::for_each(text, |word, place| {
            words.push(word.to_owned());
            places.push(place);
        });
        let tokens = words.iter().map(|word| fingerprint(word.as_bytes()));
        let tokens: Vec<u64> = tokens.collect();
        let mut windows: HashMap<WindowHash, u32> = HashMap::new();
        let hashes = RollingHash::new(&tokens).windows(min_tokens);
        let numbers = hashes.into_iter().map(|hash| {
            let next = windows.len() as u32;
            *windows.entry(hash).or_insert(next)
        });
        Self {
            min_tokens,
            numbers: numbers.collect(),
            words,
            places,
            windows,
        }
    }

    /// The tokens of this text that are in windows of another text, as stretches.
    fn shared_with(&self, other: &str) -> Vec<Range<usize>> {
        let mut tokens = Vec::new();
        words::for_each_fingerprint(other, |word, _| tokens.push(word));
        let mut is_shared = vec![false; self.windows.len()];
        for hash in RollingHash::new(&tokens).windows(self.min_tokens) {
            if let Some(&number) = self.windows.get(&hash) {
                is_shared[number as usize] = true;
            }
        }
        let mut shared: Vec<Range<usize>> = Vec::new();
        for (start, &number) in self.numbers.iter().enumerate() {
            if !is_shared[number as usize] {
                continue;
            }
            let end = start + self.min_tokens;
            match shared.last_mut() {
                Some(last) if start <= last.end => last.end = end,
                _ => shared.push(start..end),
            }
        }
        shared
    }

    fn bytes(&self, tokens: Range<usize>) -> Range<usize> {
        self.places[tokens.start].start..self.places[tokens.end - 1].end
    }
}
