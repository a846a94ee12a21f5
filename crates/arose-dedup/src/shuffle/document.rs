//! The documents of a shard, and classes of equal content.

use std::path::PathBuf;

use bytemuck::{Pod, Zeroable};

use super::wire::{Cursor, Message};
use crate::Error;
use crate::names::Name;
use crate::record::{DocRecord, Ordinal};
use crate::source::path_text;
use crate::stage::rank::Rank;

/// Some documents of a shard: sources, records, then names.
#[derive(Debug, Default)]
pub(crate) struct Docs {
    pub(crate) sources: Vec<PathBuf>,
    pub(crate) records: Vec<DocRecord>,
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
        let mut bytes = Vec::new();
        bytes.extend((self.sources.len() as u32).to_le_bytes());
        bytes.extend((self.records.len() as u32).to_le_bytes());
        for source in &self.sources {
            let name = path_text(source);
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend_from_slice(bytemuck::cast_slice(&self.records));
        bytes.extend_from_slice(&self.names);
        bytes
    }

    pub(crate) fn of(message: &Message<'_>) -> Result<Self, Error> {
        let mut cursor = Cursor(&message.bytes);
        let [n_sources, n_docs] = cursor.record::<[u32; 2]>()?;
        let mut sources = Vec::new();
        for _ in 0..n_sources {
            let n = cursor.record::<u32>()?;
            sources.push(cursor.text(n as usize)?.into());
        }
        Ok(Self {
            sources,
            records: cursor.records(n_docs as usize)?,
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

/// Documents of equal content, two or more.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    /// The rank of the best, whose `doc` stays.
    pub(crate) best: Rank,
    /// Of each.
    pub(crate) n_tokens: u32,
    /// By ordinal.
    pub(crate) members: Vec<Member>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) doc: Ordinal,
    pub(crate) site: u64,
    pub(crate) id: String,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ClassHead {
    best: Rank,
    n_members: u32,
    n_tokens: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct MemberHead {
    site: u64,
    doc: Ordinal,
    n_id: u32,
}

impl Class {
    pub(crate) fn first(&self) -> Ordinal {
        self.members.first().map_or(0, |member| member.doc)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = bytemuck::bytes_of(&ClassHead {
            best: self.best,
            n_members: self.members.len() as u32,
            n_tokens: self.n_tokens,
        })
        .to_vec();
        for member in &self.members {
            bytes.extend_from_slice(bytemuck::bytes_of(&MemberHead {
                site: member.site,
                doc: member.doc,
                n_id: member.id.len() as u32,
            }));
            bytes.extend_from_slice(member.id.as_bytes());
        }
        bytes
    }

    /// All classes in a message.
    pub(crate) fn all(message: &Message<'_>) -> Result<Vec<Self>, Error> {
        let mut cursor = Cursor(&message.bytes);
        let mut classes = Vec::new();
        while !cursor.is_empty() {
            let head: ClassHead = cursor.record()?;
            let mut members = Vec::new();
            for _ in 0..head.n_members {
                let MemberHead { site, doc, n_id } = cursor.record()?;
                let id = cursor.text(n_id as usize)?;
                members.push(Member { doc, site, id });
            }
            classes.push(Self {
                best: head.best,
                n_tokens: head.n_tokens,
                members,
            });
        }
        Ok(classes)
    }
}
