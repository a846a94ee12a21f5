//! What is known of every document without reading it: columns, opened once and then shared.
//!
//! Where a document stands among its copies is asked for with every match, so it is held in memory:
//! 4 bytes a document. Everything else is asked for documents that are shown, and stays on disk.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::columnar::{Column, ColumnValues};
use tantivy::{DocAddress, DocId, Searcher, SegmentReader};

use crate::schema::{CLUSTER, DOC, GROUP, TIME};

/// Where a document stands in its cluster, as one number in the index: 0 if it is alone, else the
/// cluster and whether it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Group(u64);

impl Group {
    pub(crate) fn alone() -> Self {
        Self(0)
    }

    pub(crate) fn kept(cluster: u64) -> Self {
        Self(((cluster + 1) << 1) | 1)
    }

    pub(crate) fn dropped(cluster: u64) -> Self {
        Self((cluster + 1) << 1)
    }

    pub(crate) fn as_u64(self) -> u64 {
        self.0
    }
}

/// The same as a number in memory, where clusters of several documents are counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) const ALONE: Self = Self(0);

    /// The number of its cluster; none if it is alone.
    #[inline]
    pub(crate) fn cluster(self) -> Option<usize> {
        (self.0 as usize >> 1).checked_sub(1)
    }

    /// Whether the run has kept it; documents without duplicates are.
    #[inline]
    pub(crate) fn is_kept(self) -> bool {
        self == Self::ALONE || self.0 & 1 == 1
    }
}

/// The columns of all segments of an index.
pub(crate) struct Columns {
    pub(crate) segments: Vec<Segment>,
    /// Clusters of several documents.
    pub(crate) n_clusters: usize,
}

/// The columns of a segment.
pub(crate) struct Segment {
    /// Where each document stands.
    pub(crate) places: Vec<Place>,
    /// The ordinals of its documents.
    pub(crate) docs: Arc<dyn ColumnValues<u64>>,
    pub(crate) clusters: Arc<dyn ColumnValues<u64>>,
    pub(crate) times: Column<i64>,
}

impl Columns {
    pub(crate) fn open(searcher: &Searcher) -> tantivy::Result<Self> {
        let mut numbers = HashMap::new();
        let segments = searcher.segment_readers().iter();
        let segments = segments.map(|reader| Segment::open(reader, &mut numbers));
        Ok(Self {
            segments: segments.collect::<tantivy::Result<_>>()?,
            n_clusters: numbers.len(),
        })
    }

    pub(crate) fn of(&self, address: DocAddress) -> (&Segment, DocId) {
        (&self.segments[address.segment_ord as usize], address.doc_id)
    }
}

impl Segment {
    /// Opens the columns of a segment; clusters that have no number yet are given one.
    fn open(reader: &SegmentReader, numbers: &mut HashMap<u64, u32>) -> tantivy::Result<Self> {
        let columns = reader.fast_fields();
        let groups = columns.column_first_or_default::<u64>(GROUP)?;
        let mut place = |group: u64| match group {
            0 => Place::ALONE,
            group => {
                let next = numbers.len() as u32 + 1;
                let number = *numbers.entry(group >> 1).or_insert(next);
                Place((number << 1) | (group & 1) as u32)
            }
        };
        Ok(Self {
            places: (0..reader.max_doc())
                .map(|doc| place(groups.get_val(doc)))
                .collect(),
            docs: columns.column_first_or_default(DOC)?,
            clusters: columns.column_first_or_default(CLUSTER)?,
            times: columns.i64(TIME)?,
        })
    }
}
