//! The documents of a shard, and classes of exact duplicates.

use std::path::PathBuf;

use bytemuck::{Pod, Zeroable};

use super::wire::{Cursor, Message};
use crate::Error;
use crate::names::Name;
use crate::record::{DocRecord, NullText, Ordinal};
use crate::source::path_text;
use crate::stage::rank::Rank;

/// Some documents of a shard: sources, records, records without text, then names.
#[derive(Debug, Default)]
pub(crate) struct Docs {
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) records: Vec<DocRecord>,
    /// Records whose text is null, which are always kept.
    pub(crate) nulls: Vec<NullText>,
    names: Vec<u8>,
}

impl Docs {
    pub(crate) fn push(&mut self, source: u32, record: &DocRecord, id: &str, url: Option<&str>) {
        self.records.push(DocRecord {
            names_at: self.names.len() as u64,
            source,
            ..*record
        });
        let n_url = url.map_or(u32::MAX, |url| url.len() as u32);
        self.names.extend((id.len() as u32).to_le_bytes());
        self.names.extend(n_url.to_le_bytes());
        self.names.extend(id.as_bytes());
        self.names.extend(url.unwrap_or_default().as_bytes());
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let counts = [self.sources.len(), self.records.len(), self.nulls.len()];
        let counts = counts.map(|n| n as u32);
        let mut bytes = bytemuck::bytes_of(&counts).to_vec();
        for source in &self.sources {
            let name = path_text(source);
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend_from_slice(bytemuck::cast_slice(&self.records));
        bytes.extend_from_slice(bytemuck::cast_slice(&self.nulls));
        bytes.extend_from_slice(&self.names);
        bytes
    }

    pub(crate) fn of(message: &Message<'_>) -> Result<Self, Error> {
        let mut cursor = Cursor(&message.bytes);
        let [n_sources, n_docs, n_nulls] = cursor.record::<[u32; 3]>()?;
        let mut sources = Vec::new();
        for _ in 0..n_sources {
            let n = cursor.record::<u32>()?;
            sources.push(cursor.text(n as usize)?.into());
        }
        Ok(Self {
            sources,
            records: cursor.records(n_docs as usize)?,
            nulls: cursor.records(n_nulls as usize)?,
            names: cursor.0.to_vec(),
        })
    }

    pub(crate) fn name(&self, record: &DocRecord) -> Result<Name, Error> {
        let mut cursor = Cursor(
            self.names
                .get(record.names_at as usize..)
                .unwrap_or_default(),
        );
        let [n_id, n_url] = cursor.record::<[u32; 2]>()?;
        let id = cursor.text(n_id as usize)?;
        let url = match n_url {
            u32::MAX => None,
            n => Some(cursor.text(n as usize)?),
        };
        Ok(Name { id, url })
    }
}

/// Two or more exact duplicates, which are listed in [`Copies`].
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Class {
    /// The rank of the best, whose `doc` is kept.
    pub(crate) best: Rank,
    /// The first of them, which identifies the class.
    pub(crate) first: Ordinal,
    /// Number of tokens of each.
    pub(crate) n_tokens: u32,
}

/// Some documents of a class, including the first: as many as fit into a message.
#[derive(Debug, Clone)]
pub(crate) struct Copies {
    pub(crate) first: Ordinal,
    pub(crate) docs: Vec<Ordinal>,
}

/// Maximum number of documents of a class in one record.
pub(crate) const MAX_COPIES: usize = 1 << 15;

impl Copies {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let head = [self.first, self.docs.len() as u32];
        let mut bytes = bytemuck::bytes_of(&head).to_vec();
        bytes.extend_from_slice(bytemuck::cast_slice(&self.docs));
        bytes
    }

    /// Returns all records in a message.
    pub(crate) fn all(message: &Message<'_>) -> Result<Vec<Self>, Error> {
        let mut cursor = Cursor(&message.bytes);
        let mut all = Vec::new();
        while !cursor.is_empty() {
            let [first, n] = cursor.record::<[u32; 2]>()?;
            let docs = cursor.records(n as usize)?;
            all.push(Self { first, docs });
        }
        Ok(all)
    }
}
