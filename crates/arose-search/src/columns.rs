//! Columns of document properties, opened once and shared.
//!
//! The position of a document among its duplicates is needed for every match, so it is kept in
//! memory: 4 bytes per document. Everything else is needed for displayed documents only, and stays
//! on disk.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::columnar::{Column, ColumnValues, StrColumn};
use tantivy::{DocAddress, DocId, Searcher, SegmentReader};

use crate::schema::{CLUSTER, DOC, EXACT, KEPT, MAIN_LANGUAGE, SITE, TIME};

/// Position of a document in its cluster; clusters of several documents are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) const ALONE: Self = Self(0);

    /// The number of its cluster; none if it is alone.
    #[inline]
    pub(crate) fn cluster(self) -> Option<usize> {
        (self.0 as usize >> 2).checked_sub(1)
    }

    /// Whether it represents its cluster: the kept document, or a single one.
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        self == Self::ALONE || self.0 & 1 == 1
    }

    /// Whether it is an exact duplicate of the kept document of its cluster.
    #[inline]
    pub(crate) fn is_exact(self) -> bool {
        self.0 & 2 == 2
    }
}

/// The columns of all segments of an index.
pub(crate) struct Columns {
    pub(crate) segments: Vec<Segment>,
    /// Clusters of several documents.
    pub(crate) n_clusters: usize,
    /// Whether the documents are of at least two sites.
    pub(crate) has_sites: bool,
}

/// The columns of a segment.
pub(crate) struct Segment {
    /// Position of each document.
    pub(crate) places: Vec<Place>,
    /// The ordinals of its documents.
    pub(crate) docs: Arc<dyn ColumnValues<u64>>,
    pub(crate) clusters: Arc<dyn ColumnValues<u64>>,
    pub(crate) kept: Arc<dyn ColumnValues<u64>>,
    exact: Arc<dyn ColumnValues<u64>>,
    pub(crate) times: Column<i64>,
    pub(crate) sites: Option<StrColumn>,
    pub(crate) languages: Option<StrColumn>,
}

impl Columns {
    pub(crate) fn open(searcher: &Searcher) -> tantivy::Result<Self> {
        let readers = searcher.segment_readers();
        let segments = readers.iter().map(Segment::open);
        let mut segments: Vec<Segment> = segments.collect::<tantivy::Result<_>>()?;
        // A cluster has several documents if one of them goes by another ordinal than its own.
        let mut numbers: HashMap<u64, u32> = HashMap::new();
        for (segment, reader) in segments.iter().zip(readers) {
            for local in reader.doc_ids_alive() {
                let cluster = segment.clusters.get_val(local);
                if cluster != segment.docs.get_val(local) {
                    let next = numbers.len() as u32 + 1;
                    numbers.entry(cluster).or_insert(next);
                }
            }
        }
        for (segment, reader) in segments.iter_mut().zip(readers) {
            let place = |local| segment.place(local, &numbers);
            segment.places = (0..reader.max_doc()).map(place).collect();
        }
        Ok(Self {
            n_clusters: numbers.len(),
            has_sites: has_sites(&segments)?,
            segments,
        })
    }

    pub(crate) fn of(&self, address: DocAddress) -> (&Segment, DocId) {
        (&self.segments[address.segment_ord as usize], address.doc_id)
    }
}

/// Whether there are at least two sites.
fn has_sites(segments: &[Segment]) -> tantivy::Result<bool> {
    let mut first: Option<String> = None;
    for column in segments.iter().filter_map(|segment| segment.sites.as_ref()) {
        if column.num_terms() > 1 {
            return Ok(true);
        }
        let mut name = String::new();
        if column.num_terms() == 1 && column.ord_to_str(0, &mut name)? {
            match &first {
                Some(first) if *first != name => return Ok(true),
                _ => first = Some(name),
            }
        }
    }
    Ok(false)
}

impl Segment {
    fn open(reader: &SegmentReader) -> tantivy::Result<Self> {
        let columns = reader.fast_fields();
        Ok(Self {
            places: Vec::new(),
            docs: columns.column_first_or_default(DOC)?,
            clusters: columns.column_first_or_default(CLUSTER)?,
            kept: columns.column_first_or_default(KEPT)?,
            exact: columns.column_first_or_default(EXACT)?,
            times: columns.i64(TIME)?,
            sites: columns.str(SITE)?,
            languages: columns.str(MAIN_LANGUAGE)?,
        })
    }

    fn place(&self, local: DocId, numbers: &HashMap<u64, u32>) -> Place {
        let cluster = self.clusters.get_val(local);
        match numbers.get(&cluster) {
            None => Place::ALONE,
            Some(number) => {
                let is_first = cluster == self.docs.get_val(local);
                let is_exact = !is_first && self.exact.get_val(local) == 1;
                Place((number << 2) | (u32::from(is_exact) << 1) | u32::from(is_first))
            }
        }
    }

    /// The site of a document.
    pub(crate) fn site(&self, local: DocId) -> tantivy::Result<Option<String>> {
        let Some(column) = &self.sites else {
            return Ok(None);
        };
        let Some(ord) = column.term_ords(local).next() else {
            return Ok(None);
        };
        let mut name = String::new();
        Ok(column.ord_to_str(ord, &mut name)?.then_some(name))
    }
}
