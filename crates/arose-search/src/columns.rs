//! Columns of document properties, opened once and shared.
//!
//! The position of a document among its duplicates is needed for every match, so it is held in
//! memory. That takes 4 bytes per document, and 4 more if there are versions. Everything else is
//! needed only for displayed documents, and stays on disk.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tantivy::columnar::{Column, ColumnValues, StrColumn};
use tantivy::{DocAddress, DocId, Searcher, SegmentReader};

use crate::current::Current;
use crate::schema::{CLUSTER, DOC, EXACT, FETCHED, GROUP, KEPT, MAIN_LANGUAGE, PAGE, SITE, TIME};

/// Position of a document in its cluster, or in the group of its versions. Clusters and groups of
/// several documents are numbered from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(u32);

impl Place {
    pub(crate) const ALONE: Self = Self(0);

    /// The number of its cluster; none if it is alone.
    #[inline]
    pub(crate) fn cluster(self) -> Option<usize> {
        (self.0 as usize >> 3).checked_sub(1)
    }

    /// Whether it represents its cluster: the kept document, or a document alone in its cluster.
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        self == Self::ALONE || self.0 & 1 == 1
    }

    /// Whether it is an exact duplicate of the representative document.
    #[inline]
    pub(crate) fn is_exact(self) -> bool {
        self.0 & 2 == 2
    }

    /// Whether it is in another cluster than the representative document.
    #[inline]
    pub(crate) fn is_version(self) -> bool {
        self.0 & 4 == 4
    }
}

/// The columns of all segments of an index.
pub(crate) struct Columns {
    pub(crate) segments: Vec<Segment>,
    /// Number of clusters of several documents.
    pub(crate) n_clusters: usize,
    /// Number of groups of several documents; none if no document has versions, and groups are
    /// clusters.
    pub(crate) n_groups: Option<usize>,
    /// Whether the documents are from at least two sites.
    pub(crate) has_sites: bool,
    /// The current captures of pages; found when they are asked for.
    current: OnceLock<Current>,
}

/// The columns of a segment.
pub(crate) struct Segment {
    /// Position of each document in its cluster.
    pub(crate) places: Vec<Place>,
    /// Position of each document among its versions; empty if no document has any.
    pub(crate) group_places: Vec<Place>,
    /// The ordinals of its documents.
    pub(crate) docs: Arc<dyn ColumnValues<u64>>,
    pub(crate) clusters: Arc<dyn ColumnValues<u64>>,
    pub(crate) groups: Arc<dyn ColumnValues<u64>>,
    pub(crate) kept: Arc<dyn ColumnValues<u64>>,
    pub(crate) pages: Arc<dyn ColumnValues<u64>>,
    pub(crate) fetched: Column<i64>,
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
        let clusters = numbers(readers, &segments, |segment| &*segment.clusters);
        let has_versions = |(segment, reader): (&Segment, &SegmentReader)| {
            let mut docs = reader.doc_ids_alive();
            docs.any(|doc| segment.groups.get_val(doc) != segment.clusters.get_val(doc))
        };
        let has_versions = segments.iter().zip(readers).any(has_versions);
        let groups = has_versions.then(|| numbers(readers, &segments, |segment| &*segment.groups));
        for (segment, reader) in segments.iter_mut().zip(readers) {
            let docs = 0..reader.max_doc();
            let place = |local| segment.place(local, &*segment.clusters, &clusters);
            let places = docs.clone().map(place).collect();
            if let Some(groups) = &groups {
                let place = |local| segment.place(local, &*segment.groups, groups);
                segment.group_places = docs.map(place).collect();
            }
            segment.places = places;
        }
        Ok(Self {
            n_clusters: clusters.len(),
            n_groups: groups.map(|groups| groups.len()),
            has_sites: has_sites(&segments)?,
            current: OnceLock::new(),
            segments,
        })
    }

    /// The current captures of pages.
    pub(crate) fn current(&self, searcher: &Searcher) -> &Current {
        self.current.get_or_init(|| Current::find(searcher, self))
    }

    pub(crate) fn of(&self, address: DocAddress) -> (&Segment, DocId) {
        (&self.segments[address.segment_ord as usize], address.doc_id)
    }
}

/// Numbers the ordinals that several documents share.
fn numbers(
    readers: &[SegmentReader],
    segments: &[Segment],
    heads: impl Fn(&Segment) -> &dyn ColumnValues<u64>,
) -> HashMap<u64, u32> {
    let mut numbers: HashMap<u64, u32> = HashMap::new();
    for (segment, reader) in segments.iter().zip(readers) {
        for local in reader.doc_ids_alive() {
            let head = heads(segment).get_val(local);
            if head != segment.docs.get_val(local) {
                let next = numbers.len() as u32 + 1;
                numbers.entry(head).or_insert(next);
            }
        }
    }
    numbers
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
            group_places: Vec::new(),
            docs: columns.column_first_or_default(DOC)?,
            clusters: columns.column_first_or_default(CLUSTER)?,
            groups: columns.column_first_or_default(GROUP)?,
            kept: columns.column_first_or_default(KEPT)?,
            pages: columns.column_first_or_default(PAGE)?,
            fetched: columns.i64(FETCHED)?,
            exact: columns.column_first_or_default(EXACT)?,
            times: columns.i64(TIME)?,
            sites: columns.str(SITE)?,
            languages: columns.str(MAIN_LANGUAGE)?,
        })
    }

    /// Position of a document among those that share an ordinal.
    fn place(
        &self,
        local: DocId,
        heads: &dyn ColumnValues<u64>,
        numbers: &HashMap<u64, u32>,
    ) -> Place {
        let head = heads.get_val(local);
        match numbers.get(&head) {
            None => Place::ALONE,
            Some(number) => {
                let is_first = head == self.docs.get_val(local);
                let is_version = head != self.clusters.get_val(local);
                let is_exact = !is_first && !is_version && self.exact.get_val(local) == 1;
                let bits = [is_first, is_exact, is_version].map(u32::from);
                Place((number << 3) | (bits[2] << 2) | (bits[1] << 1) | bits[0])
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
