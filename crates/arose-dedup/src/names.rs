//! Ids and addresses of documents, by ordinal.

use std::path::Path;

use crate::Error;
use crate::column::Column;
use crate::record::{DocRecord, Ordinal};
use crate::stage::read::{DOCS, NAMES};

/// Looks names up.
pub(crate) struct Names {
    docs: Column<DocRecord>,
    bytes: Column<u8>,
}

/// What the input calls a document.
pub(crate) struct Name {
    pub(crate) id: String,
    pub(crate) url: Option<String>,
}

impl Names {
    /// Opens the names that the first stage left in `read`, holding at most `allowance` bytes of
    /// each of two files in memory.
    pub(crate) fn open(read: &Path, allowance: u64) -> Result<Self, Error> {
        Ok(Self {
            docs: Column::open(&read.join(DOCS), allowance)?,
            bytes: Column::open(&read.join(NAMES), allowance)?,
        })
    }

    pub(crate) fn record(&self, doc: Ordinal) -> Result<DocRecord, Error> {
        self.docs.get(doc)
    }

    pub(crate) fn id(&self, doc: Ordinal) -> Result<String, Error> {
        let at = self.docs.get(doc)?.names_at;
        let [n_id, _] = self.lengths(at)?;
        self.text(at + 8, n_id)
    }

    /// The name that begins at this byte.
    pub(crate) fn name_at(&self, at: u64) -> Result<Name, Error> {
        let [n_id, n_url] = self.lengths(at)?;
        let id = self.text(at + 8, n_id)?;
        let url = match n_url {
            u32::MAX => None,
            n => Some(self.text(at + 8 + u64::from(n_id), n)?),
        };
        Ok(Name { id, url })
    }

    fn lengths(&self, at: u64) -> Result<[u32; 2], Error> {
        let mut bytes = [0; 8];
        self.bytes.read_into(at, &mut bytes)?;
        let (id, url) = bytes.split_at(4);
        let length = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four of eight"));
        Ok([length(id), length(url)])
    }

    fn text(&self, at: u64, n: u32) -> Result<String, Error> {
        let mut bytes = vec![0; n as usize];
        self.bytes.read_into(at, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
