//! Dropped records of web archives, and the documents for which they were dropped.
//!
//! Many records are not documents: requests, images, revisits. All of them are copied, so the copy
//! needs a list of records to leave out, not of records to include. This list is read back from the
//! table of documents, for the documents of archives alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use arose_corpus::{Dropped, DroppedRecord, Payloads, Position, RefersTo};
use arrow_array::Array;

use crate::Error;
use crate::column::{Column, Scan};
use crate::config::{Config, DroppedAs};
use crate::record::{DocRecord, NOT_FETCHED, Ordinal};
use crate::results::documents::details;
use crate::results::table::scan;
use crate::source::InputFile;
use crate::stage::columns::DOCS;

/// The dropped documents of all archives.
pub(crate) struct DroppedDocs {
    /// By source; none if it is not an archive.
    archives: Vec<Option<Archive>>,
    payloads: Payloads,
}

#[derive(Default)]
struct Archive {
    dropped: Vec<DroppedRecord>,
    /// Kept documents for which others were dropped.
    originals: Vec<(Position, u64)>,
}

/// A dropped document, and the document for which it was dropped.
struct DroppedRow {
    source: u32,
    position: Position,
    kept_doc: Option<u64>,
    known_as: Option<String>,
    rule: String,
    similarity: Option<f64>,
}

impl DroppedDocs {
    /// Reads the dropped documents from the table of documents.
    pub(crate) fn read(
        documents: &Path,
        read: &Path,
        sources: &[InputFile],
        config: &Config,
    ) -> Result<Self, Error> {
        let is_archive =
            |source: &InputFile| arose_corpus::is_archive(&source.path, &config.corpus);
        let archives = sources
            .iter()
            .map(|source| is_archive(source).then(Archive::default));
        let mut found = Self {
            archives: archives.collect(),
            payloads: Payloads::new(),
        };
        if found.archives.iter().all(Option::is_none) {
            return match config.output.dropped {
                DroppedAs::Revisit if !sources.is_empty() => Err(Error::NoArchive),
                _ => Ok(found),
            };
        }
        let rows = found.rows(documents, read)?;
        let originals = match config.output.dropped {
            DroppedAs::Nothing => BTreeMap::new(),
            DroppedAs::Revisit => found.originals(&rows, documents, read)?,
        };
        for row in rows {
            let original = match config.output.dropped {
                DroppedAs::Nothing => None,
                DroppedAs::Revisit => original(&row, &originals),
            };
            if let Some(Some(archive)) = found.archives.get_mut(row.source as usize) {
                archive.dropped.push(DroppedRecord {
                    position: row.position,
                    original,
                });
            }
        }
        for archive in found.archives.iter_mut().flatten() {
            // If a file was passed twice, each record occurs twice.
            archive.dropped.sort_by_key(|record| record.position);
            archive.dropped.dedup_by_key(|record| record.position);
            archive.originals.sort_unstable();
        }
        Ok(found)
    }

    /// Keeps the given records of a source. If a file was passed twice, a record is both kept and
    /// dropped. The positions must be ascending.
    pub(crate) fn spare(&mut self, source: usize, kept: &[Position]) {
        if let Some(Some(archive)) = self.archives.get_mut(source) {
            let is_kept = |record: &DroppedRecord| kept.binary_search(&record.position).is_ok();
            archive.dropped.retain(|record| !is_kept(record));
        }
    }

    /// Returns the dropped records of a source; none if it is not an archive.
    pub(crate) fn of(&mut self, source: usize) -> Option<Dropped<'_>> {
        let archive = self.archives.get(source)?.as_ref()?;
        let (dropped, originals) = (&archive.dropped, &archive.originals);
        Some(Dropped::new(dropped, originals, &mut self.payloads))
    }

    /// The dropped documents of archives.
    fn rows(&self, documents: &Path, read: &Path) -> Result<Vec<DroppedRow>, Error> {
        let mut records = Scan::<DocRecord>::open(&read.join(DOCS))?;
        let mut rows = Vec::new();
        let columns = ["kept", "kept_doc", "known_as", "rule", "similarity"];
        scan(documents, &columns, |batch| {
            let (kept, kept_docs) = (batch.bools("kept")?, batch.u64s("kept_doc")?);
            let (known_as, rules) = (batch.strings("known_as")?, batch.strings("rule")?);
            let similarities = batch.f64s("similarity")?;
            for i in 0..batch.n_rows() {
                let record = records.next()?.expect("a record for every document");
                let is_archive = self.archives[record.source as usize].is_some();
                if kept.value(i) || !is_archive {
                    continue;
                }
                rows.push(DroppedRow {
                    source: record.source,
                    position: position(&record),
                    kept_doc: kept_docs.is_valid(i).then(|| kept_docs.value(i)),
                    known_as: known_as.is_valid(i).then(|| known_as.value(i).to_owned()),
                    rule: rules.value(i).to_owned(),
                    similarity: similarities.is_valid(i).then(|| similarities.value(i)),
                });
            }
            Ok::<(), Error>(())
        })?;
        Ok(rows)
    }

    /// Returns the documents for which others were dropped, in the form that revisit records need.
    /// Their payloads are stored when their records are copied.
    fn originals(
        &mut self,
        rows: &[DroppedRow],
        documents: &Path,
        read: &Path,
    ) -> Result<BTreeMap<u64, RefersTo>, Error> {
        let wanted: BTreeSet<u64> = rows.iter().filter_map(|row| row.kept_doc).collect();
        let wanted: Vec<u64> = wanted.into_iter().collect();
        let records = Column::<DocRecord>::open(&read.join(DOCS), 0)?;
        let mut originals = BTreeMap::new();
        for (doc, detail) in details(documents, &wanted)? {
            let record = records.get(doc as Ordinal)?;
            let archive = self.archives[record.source as usize].as_mut();
            // Only records of archives have a URI as their name.
            let id = archive.map(|archive| {
                archive.originals.push((position(&record), doc));
                detail.id
            });
            self.payloads.insert(doc, None);
            let original = RefersTo {
                number: Some(doc),
                id,
                url: detail.url,
                date: (record.fetched != NOT_FETCHED).then_some(record.fetched),
                rule: String::new(),
                similarity: None,
            };
            originals.insert(doc, original);
        }
        Ok(originals)
    }
}

/// Returns the reference of the revisit record of a dropped document; none if it duplicates
/// nothing.
fn original(row: &DroppedRow, originals: &BTreeMap<u64, RefersTo>) -> Option<RefersTo> {
    let there = row.kept_doc.and_then(|doc| originals.get(&doc)).cloned();
    let original = there.or_else(|| {
        let url = row.known_as.clone().filter(|name| name.contains("://"));
        row.known_as.is_some().then_some(RefersTo {
            number: None,
            id: None,
            url,
            date: None,
            rule: String::new(),
            similarity: None,
        })
    })?;
    Some(RefersTo {
        rule: row.rule.clone(),
        similarity: row.similarity,
        ..original
    })
}

fn position(record: &DocRecord) -> Position {
    Position {
        offset: record.offset,
        inner: record.inner,
    }
}
