//! IDs and URLs of documents: all in order, or the IDs of chosen documents by ordinal.

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

    fn text(&mut self, n: u32) -> Result<String, Error> {
        let mut bytes = vec![0; n as usize];
        let read = self.file.read_exact(&mut bytes);
        read.map_err(Error::io("read", &self.path))?;
        Ok(text(bytes))
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
        for doc in 0..n_docs as Ordinal {
            let name = names.next()?;
            if !chosen.contains(doc) {
                continue;
            }
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
