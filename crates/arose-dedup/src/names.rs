//! IDs and URLs of documents: all in order, or the IDs of chosen documents by ordinal.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;
use crate::column::{Column, Writer};
use crate::lookup::Chosen;
use crate::record::{DocRecord, Ordinal};
use crate::stage::columns::{DOCS, NAMES};

/// The ID and URL of a document in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) id: String,
    pub(crate) url: Option<String>,
}

/// Writes the name of the next document: two lengths, then the bytes of ID and URL. A missing URL
/// has length `u32::MAX`.
pub(crate) fn write(names: &mut Writer<u8>, id: &str, url: Option<&str>) -> Result<(), Error> {
    let n_url = url.map_or(u32::MAX, |url| url.len() as u32);
    names.extend(&(id.len() as u32).to_le_bytes())?;
    names.extend(&n_url.to_le_bytes())?;
    names.extend(id.as_bytes())?;
    names.extend(url.unwrap_or_default().as_bytes())
}

/// The names in the order of the documents.
pub(crate) struct NameScan {
    path: PathBuf,
    file: BufReader<File>,
}

impl NameScan {
    /// Opens the names that the first stage wrote to `read`.
    pub(crate) fn open(read: &Path) -> Result<Self, Error> {
        let path = read.join(NAMES);
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        let file = BufReader::with_capacity(1 << 18, file);
        Ok(Self { path, file })
    }

    /// Returns the name of the next document, which must exist.
    pub(crate) fn next(&mut self) -> Result<Name, Error> {
        let mut bytes = [0; 8];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(Error::io("read", &self.path))?;
        let [n_id, n_url] = lengths(bytes);
        let id = self.text(n_id)?;
        let url = match n_url {
            u32::MAX => None,
            n => Some(self.text(n)?),
        };
        Ok(Name { id, url })
    }

    /// Skips the name of the next document, which must exist.
    pub(crate) fn skip(&mut self) -> Result<(), Error> {
        let mut bytes = [0; 8];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(Error::io("read", &self.path))?;
        let [n_id, n_url] = lengths(bytes);
        let n = i64::from(n_id) + if n_url == u32::MAX { 0 } else { n_url.into() };
        let skipped = self.file.seek_relative(n);
        skipped.map_err(Error::io("read", &self.path))
    }

    fn text(&mut self, n: u32) -> Result<String, Error> {
        let mut bytes = vec![0; n as usize];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(Error::io("read", &self.path))?;
        Ok(text(bytes))
    }
}

/// The names of a range of documents.
pub(crate) struct NameRange {
    bytes: Vec<u8>,
    /// The position of the next name.
    at: usize,
}

impl NameRange {
    /// Reads the names from one position to another.
    pub(crate) fn read(names: &Column<u8>, start: u64, end: u64) -> Result<Self, Error> {
        let mut bytes = vec![0; end.saturating_sub(start) as usize];
        names.read_into(start, &mut bytes)?;
        Ok(Self { bytes, at: 0 })
    }

    /// Returns ID and URL of the next document; empty after the last one.
    pub(crate) fn next(&mut self) -> (Cow<'_, str>, Option<Cow<'_, str>>) {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let (bytes, rest) = rest.split_first_chunk().unwrap_or((&[0; 8], &[]));
        let [n_id, n_url] = lengths(*bytes);
        let (id, rest) = rest.split_at(rest.len().min(n_id as usize));
        let url = (n_url != u32::MAX).then(|| &rest[..rest.len().min(n_url as usize)]);
        self.at += bytes.len() + id.len() + url.map_or(0, <[u8]>::len);
        (
            String::from_utf8_lossy(id),
            url.map(String::from_utf8_lossy),
        )
    }
}

/// The IDs of the chosen documents.
pub(crate) enum Ids {
    Memory {
        chosen: Arc<Chosen>,
        /// All IDs, concatenated.
        text: String,
        /// The end of each ID.
        ends: Vec<u64>,
    },
    File {
        docs: Column<DocRecord>,
        names: Column<u8>,
    },
}

impl Ids {
    /// Gathers the IDs from the columns in `read`, in at most about `allowance` bytes.
    pub(crate) fn open(
        read: &Path,
        n_docs: u64,
        chosen: &Arc<Chosen>,
        allowance: u64,
    ) -> Result<Self, Error> {
        let mut names = NameScan::open(read)?;
        let mut text = String::new();
        let mut ends = Vec::with_capacity(chosen.len() as usize);
        // Names after the last chosen one are not needed.
        let n_docs = chosen
            .last()
            .map_or(0, |last| n_docs.min(u64::from(last) + 1));
        for doc in 0..n_docs as Ordinal {
            if !chosen.contains(doc) {
                names.skip()?;
                continue;
            }
            let name = names.next()?;
            text.push_str(&name.id);
            ends.push(text.len() as u64);
            // Twice, since a growing string is copied.
            if 2 * text.len() as u64 + 8 * u64::from(chosen.len()) > allowance {
                return Ok(Self::File {
                    docs: Column::open(&read.join(DOCS), 0)?,
                    names: Column::open(&read.join(NAMES), 0)?,
                });
            }
        }
        Ok(Self::Memory {
            chosen: Arc::clone(chosen),
            text,
            ends,
        })
    }

    /// Passes the ID of a document, which must be a chosen one, to `take`.
    pub(crate) fn with<R>(&self, doc: Ordinal, take: impl FnOnce(&str) -> R) -> Result<R, Error> {
        match self {
            Self::Memory { chosen, text, ends } => {
                let place = chosen.place(doc);
                let start = place.checked_sub(1).map_or(0, |before| ends[before]);
                Ok(take(&text[start as usize..ends[place] as usize]))
            }
            Self::File { docs, names } => {
                let at = docs.get(doc)?.names_at;
                let mut bytes = [0; 8];
                names.read_into(at, &mut bytes)?;
                let mut id = vec![0; lengths(bytes)[0] as usize];
                names.read_into(at + 8, &mut id)?;
                Ok(take(&text(id)))
            }
        }
    }
}

/// The lengths of ID and URL.
fn lengths(bytes: [u8; 8]) -> [u32; 2] {
    let both = u64::from_le_bytes(bytes);
    [both as u32, (both >> 32) as u32]
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Writer;
    use crate::lookup::Flags;

    fn name(doc: usize) -> Name {
        Name {
            id: format!("{}é", "x".repeat(doc % 70)),
            url: doc
                .is_multiple_of(3)
                .then(|| format!("https://a.test/{doc}")),
        }
    }

    /// Writes names like the first stage. Returns the start of each, and the end of the last.
    fn write(folder: &Path, n: usize) -> Vec<u64> {
        let mut out = Writer::<u8>::create(&folder.join(NAMES)).unwrap();
        let mut starts = Vec::new();
        for doc in 0..n {
            starts.push(out.len());
            let Name { id, url } = name(doc);
            let n_url = url.as_ref().map_or(u32::MAX, |url| url.len() as u32);
            for part in [
                &(id.len() as u32).to_le_bytes()[..],
                &n_url.to_le_bytes(),
                id.as_bytes(),
                url.unwrap_or_default().as_bytes(),
            ] {
                out.extend(part).unwrap();
            }
        }
        starts.push(out.finish().unwrap());
        starts
    }

    #[test]
    fn names_are_read_in_order_and_in_ranges() {
        let folder = tempfile::tempdir().unwrap();
        let starts = write(folder.path(), 20_000);
        let mut scan = NameScan::open(folder.path()).unwrap();
        for doc in 0..20_000 {
            match doc % 7 == 0 {
                true => assert_eq!(scan.next().unwrap(), name(doc)),
                false => scan.skip().unwrap(),
            }
        }
        let column = Column::open(&folder.path().join(NAMES), 0).unwrap();
        for range in [0..0, 0..20_000, 5..6, 19_990..20_000] {
            let (start, end) = (starts[range.start], starts[range.end]);
            let mut names = NameRange::read(&column, start, end).unwrap();
            for doc in range {
                let (id, url) = names.next();
                let found = Name {
                    id: id.into_owned(),
                    url: url.map(Cow::into_owned),
                };
                assert_eq!(found, name(doc));
            }
        }
    }

    #[test]
    fn ids_of_chosen_documents_are_found() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), 20_000);
        for docs in [vec![], vec![0, 5000, 19_999], vec![3, 64, 65]] {
            let mut flags = Flags::new(20_000);
            docs.iter().for_each(|doc| flags.set(*doc));
            let chosen = Arc::new(Chosen::new(flags));
            let ids = Ids::open(folder.path(), 20_000, &chosen, 1 << 20).unwrap();
            for doc in docs {
                let id = ids.with(doc as Ordinal, str::to_owned).unwrap();
                assert_eq!(id, name(doc).id);
            }
        }
    }
}
