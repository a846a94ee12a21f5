//! Which captures of pages are current.
//!
//! *Question.* An archive has several captures of a URL, or a run was made from such an archive.
//! Which documents show what was there last? *Idea.* Every row has a hash of its URL. Of the rows
//! with the same hash, the one fetched last is current, and of several fetched at the same time the
//! one read last. A row without URL or time is always current. A run that dropped superseded
//! documents has already recorded which these are ([`SUPERSEDED`]).
//!
//! *Cost.* A pass over two columns and a sort when current captures are asked for first, with 32
//! bytes of memory per document; then one bit per document.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arose::token::fingerprint;
use tantivy::index::SegmentId;
use tantivy::query::{
    BitSetDocSet, ConstScorer, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight,
};
use tantivy::{BitSet, DocId, Score, Searcher, SegmentOrdinal, SegmentReader, TantivyError};

use crate::columns::Columns;

/// Stands for no URL.
pub(crate) const NO_PAGE: u64 = 0;

/// Stands for the URL of a document that a run found to be superseded.
pub(crate) const SUPERSEDED: u64 = u64::MAX;

/// The hash of a URL.
pub(crate) fn page_of(url: Option<&str>) -> u64 {
    let hash = url.map(|url| fingerprint(url.as_bytes()));
    hash.map_or(NO_PAGE, |hash| hash.clamp(NO_PAGE + 1, SUPERSEDED - 1))
}

/// Finds the documents that are current.
#[derive(Clone)]
pub(crate) struct Current {
    /// `None` if all documents are current.
    segments: Option<Arc<HashMap<SegmentId, BitSet>>>,
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current")
    }
}

/// A capture of a page: its time, its ordinal, and its place in the index.
type Capture = (u64, i64, u64, (SegmentOrdinal, DocId));

impl Current {
    pub(crate) fn find(searcher: &Searcher, columns: &Columns) -> Self {
        let readers = || (0..).zip(searcher.segment_readers()).zip(&columns.segments);
        let mut captures: Vec<Capture> = Vec::new();
        let mut bits = Vec::new();
        for ((number, reader), segment) in readers() {
            let mut current = BitSet::with_max_value(reader.max_doc());
            for local in reader.doc_ids_alive() {
                match (segment.pages.get_val(local), segment.fetched.first(local)) {
                    (SUPERSEDED, _) => {}
                    (NO_PAGE, _) | (_, None) => {
                        current.insert(local);
                    }
                    (page, Some(time)) => {
                        let doc = segment.docs.get_val(local);
                        captures.push((page, time, doc, (number, local)));
                    }
                }
            }
            bits.push(current);
        }
        captures.sort_unstable();
        let next = captures.iter().skip(1).map(Some).chain([None]);
        for (capture, next) in captures.iter().zip(next) {
            if next.is_none_or(|next| next.0 != capture.0) {
                let (segment, local) = capture.3;
                bits[segment as usize].insert(local);
            }
        }
        let n_current: usize = bits.iter().map(BitSet::len).sum();
        let is_all = n_current as u64 == searcher.num_docs();
        let segments = searcher.segment_readers().iter();
        let segments = segments.map(SegmentReader::segment_id).zip(bits);
        Self {
            segments: (!is_all).then(|| Arc::new(segments.collect())),
        }
    }

    /// Whether all documents are current.
    pub(crate) fn is_all(&self) -> bool {
        self.segments.is_none()
    }
}

impl Query for Current {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for Current {
    fn scorer(&self, reader: &SegmentReader, _: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let segments = self.segments.as_ref();
        Ok(
            match segments.and_then(|all| all.get(&reader.segment_id())) {
                Some(bits) => Box::new(ConstScorer::new(BitSetDocSet::from(bits.clone()), 0.0)),
                None => Box::new(EmptyScorer),
            },
        )
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        let message = "current captures are not explained";
        Err(TantivyError::InvalidArgument(message.to_owned()))
    }
}
