//! The records of documents on disk, packed.
//!
//! A [`DocRecord`] has 96 bytes in memory. Places in files need no more than six bytes each, and
//! most inputs have neither times nor priorities, which go to a file of their own if there are any.
//! What is left are 68 bytes per document, found by its number.

use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};

use crate::Error;
use crate::column::{Column, Scan, Writer};
use crate::record::{DocRecord, NOT_FETCHED, Ordinal};

/// The file of packed records.
pub(crate) const DOCS: &str = "docs";
/// The file of times and priorities.
const MERITS: &str = "merits";

/// A record without time and priority.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Packed {
    digest: [u32; 4],
    /// Source, tokens, bytes, literals and the place of the sketch.
    numbers: [u32; 5],
    /// Where tokens and names begin; offset and inner offset in the source, and the end there.
    places: [[u16; 3]; 5],
    flags: u8,
    dictionary: u8,
}

impl Packed {
    fn of(doc: &DocRecord) -> Self {
        let places = [doc.tokens_at, doc.names_at, doc.offset, doc.inner, doc.end];
        Self {
            digest: bytemuck::cast(doc.digest),
            numbers: [
                doc.source,
                doc.n_tokens,
                doc.n_bytes,
                doc.n_literals,
                doc.sketch_at,
            ],
            places: places.map(|place| [place as u16, (place >> 16) as u16, (place >> 32) as u16]),
            flags: doc.flags as u8,
            dictionary: doc.dictionary as u8,
        }
    }

    /// The record, as if neither time nor priority were known.
    pub(crate) fn unpack(self) -> DocRecord {
        let [tokens_at, names_at, offset, inner, end] = self.places.map(|[low, middle, high]| {
            u64::from(low) | u64::from(middle) << 16 | u64::from(high) << 32
        });
        let [source, n_tokens, n_bytes, n_literals, sketch_at] = self.numbers;
        DocRecord {
            digest: bytemuck::cast(self.digest),
            tokens_at,
            names_at,
            offset,
            inner,
            end,
            fetched: NOT_FETCHED,
            weight: f64::NAN,
            source,
            n_tokens,
            n_bytes,
            n_literals,
            sketch_at,
            flags: self.flags.into(),
            dictionary: self.dictionary.into(),
        }
    }
}

/// What one of several duplicates may be kept for.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Merit {
    fetched: i64,
    weight: f64,
}

impl Merit {
    const NONE: Self = Self {
        fetched: NOT_FETCHED,
        weight: f64::NAN,
    };

    fn of(doc: &DocRecord) -> Self {
        Self {
            fetched: doc.fetched,
            weight: doc.weight,
        }
    }

    fn is_none(&self) -> bool {
        self.fetched == NOT_FETCHED && self.weight.is_nan()
    }
}

fn with_merit(packed: Packed, merit: Option<Merit>) -> DocRecord {
    let Merit { fetched, weight } = merit.unwrap_or(Merit::NONE);
    DocRecord {
        fetched,
        weight,
        ..packed.unpack()
    }
}

/// Writes records one after the other.
pub(crate) struct DocWriter {
    docs: Writer<Packed>,
    /// From the first document that has one on.
    merits: Option<Writer<Merit>>,
    merits_path: PathBuf,
}

impl DocWriter {
    pub(crate) fn create(folder: &Path) -> Result<Self, Error> {
        Ok(Self {
            docs: Writer::create(&folder.join(DOCS))?,
            merits: None,
            merits_path: folder.join(MERITS),
        })
    }

    /// Goes on after the first records of files that were not finished.
    pub(crate) fn resume(folder: &Path, n_docs: u64, has_merits: bool) -> Result<Self, Error> {
        let merits_path = folder.join(MERITS);
        let merits = match has_merits {
            true => Some(Writer::resume(&merits_path, n_docs)?),
            false => {
                remove_if_there(&merits_path)?;
                None
            }
        };
        Ok(Self {
            docs: Writer::resume(&folder.join(DOCS), n_docs)?,
            merits,
            merits_path,
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.docs.len()
    }

    /// Whether any document so far has a time or a priority.
    pub(crate) fn has_merits(&self) -> bool {
        self.merits.is_some()
    }

    pub(crate) fn push(&mut self, doc: &DocRecord) -> Result<(), Error> {
        let merit = Merit::of(doc);
        if self.merits.is_none() && !merit.is_none() {
            let mut merits = Writer::create(&self.merits_path)?;
            for _ in 0..self.docs.len() {
                merits.push(&Merit::NONE)?;
            }
            self.merits = Some(merits);
        }
        if let Some(merits) = &mut self.merits {
            merits.push(&merit)?;
        }
        self.docs.push(&Packed::of(doc))
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.merits.as_mut().map_or(Ok(()), Writer::flush)?;
        self.docs.flush()
    }

    pub(crate) fn finish(mut self) -> Result<(), Error> {
        self.flush()
    }
}

/// The records in order.
pub(crate) struct DocScan {
    docs: Scan<Packed>,
    merits: Option<Scan<Merit>>,
}

impl DocScan {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let merits = folder.join(MERITS);
        Ok(Self {
            docs: Scan::open(&folder.join(DOCS))?,
            merits: merits.exists().then(|| Scan::open(&merits)).transpose()?,
        })
    }

    /// How many records are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.docs.left()
    }

    pub(crate) fn next(&mut self) -> Result<Option<DocRecord>, Error> {
        let merit = match &mut self.merits {
            Some(merits) => merits.next()?,
            None => None,
        };
        Ok(self.docs.next()?.map(|packed| with_merit(packed, merit)))
    }
}

/// Records by the numbers of their documents, read from the file.
pub(crate) struct DocColumn {
    docs: Column<Packed>,
    merits: Option<Column<Merit>>,
}

impl DocColumn {
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let merits = folder.join(MERITS);
        let merits = merits.exists().then(|| Column::open(&merits, 0));
        Ok(Self {
            docs: Column::open(&folder.join(DOCS), 0)?,
            merits: merits.transpose()?,
        })
    }

    pub(crate) fn get(&self, doc: Ordinal) -> Result<DocRecord, Error> {
        let merit = self.merits.as_ref().map(|merits| merits.get(doc));
        Ok(with_merit(self.docs.get(doc)?, merit.transpose()?))
    }
}

fn remove_if_there(path: &Path) -> Result<(), Error> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    fn record(random: &mut SplitMix, has_merit: bool) -> DocRecord {
        let mut place = || random.next_u64() >> 16;
        let [tokens_at, names_at, offset, inner, end] = std::array::from_fn(|_| place());
        let mut number = || random.next_u64() as u32;
        DocRecord {
            digest: [u64::from(number()) << 32 | 5, number().into()],
            tokens_at,
            names_at,
            offset,
            inner,
            end,
            fetched: if has_merit { -7 } else { NOT_FETCHED },
            // Compared below, so it must be a number.
            weight: if has_merit { 0.25 } else { 0.0 },
            source: number(),
            n_tokens: number(),
            n_bytes: number(),
            n_literals: number(),
            sketch_at: number(),
            flags: 7,
            dictionary: 63,
        }
    }

    #[test]
    fn records_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SplitMix::new(1);
        let merits = [false, false, true, false, true];
        let mut records = merits.map(|has_merit| record(&mut random, has_merit));
        let mut writer = DocWriter::create(folder.path()).unwrap();
        for (record, has_merit) in records.iter_mut().zip(merits) {
            if !has_merit {
                record.weight = f64::NAN;
            }
            assert_eq!(writer.len() > 2, writer.has_merits());
            writer.push(record).unwrap();
        }
        writer.finish().unwrap();
        let mut scan = DocScan::open(folder.path()).unwrap();
        let column = DocColumn::open(folder.path()).unwrap();
        for (doc, mut expected) in (0..).zip(records) {
            let scanned = scan.next().unwrap().unwrap();
            let mut found = column.get(doc).unwrap();
            assert_eq!(found.weight.to_bits(), scanned.weight.to_bits());
            assert_eq!(found.weight.is_nan(), expected.weight.is_nan());
            if expected.weight.is_nan() {
                (found.weight, expected.weight) = (0.0, 0.0);
            }
            assert_eq!(found, expected);
        }
        assert!(scan.next().unwrap().is_none());
    }

    /// What was written after the place to go on from is gone, merits included.
    #[test]
    fn writing_goes_on_without_later_merits() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = SplitMix::new(2);
        let mut writer = DocWriter::create(folder.path()).unwrap();
        for has_merit in [false, true] {
            let mut record = record(&mut random, has_merit);
            if !has_merit {
                record.weight = f64::NAN;
            }
            writer.push(&record).unwrap();
        }
        writer.finish().unwrap();
        let mut writer = DocWriter::resume(folder.path(), 1, false).unwrap();
        let mut plain = record(&mut random, false);
        plain.weight = f64::NAN;
        writer.push(&plain).unwrap();
        writer.finish().unwrap();
        let mut scan = DocScan::open(folder.path()).unwrap();
        while let Some(doc) = scan.next().unwrap() {
            assert!(doc.weight.is_nan());
        }
    }
}
