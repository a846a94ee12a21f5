//! Equal contents, and documents with a key in common: who meets whom.

use std::collections::BTreeSet;

use arose::mix::mix;
use arose::rule::Criterion;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::document::{Class, Docs, Member};
use super::wire::{Cursor, Message, Sink, torn};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::{Config, Keep};
use crate::record::{DocRecord, EMPTY, Ordinal, SHORT};
use crate::scheme::{Bands, Rules, Tables};
use crate::stage::bucket::n_always;
use crate::stage::rank::rank;

/// A document under its key in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    key: u64,
    table: u32,
    doc: Ordinal,
    /// Half of the content digest: of documents that agree in it only the first counts.
    digest: u64,
}

/// The content of a document; its id follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Content {
    digest: [u64; 2],
    doc: Ordinal,
    n_id: u32,
    site: u64,
    /// Of the record, those fields that say how much it deserves to stay.
    fetched: i64,
    weight: u64,
    n_bytes: u32,
    n_tokens: u32,
}

/// A document that meets another under its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Live {
    pub(super) key: u64,
    pub(super) table: u32,
    pub(super) doc: Ordinal,
}

/// The step that makes keys.
pub(super) fn keys(config: &Config, context: Context) -> Result<Box<dyn Step>, Error> {
    Ok(match config.policy.criterion {
        Criterion::Jaccard(threshold) => Box::new(Keys {
            tables: Bands::new(config, threshold)?,
            context,
        }),
        _ => Box::new(Keys {
            tables: Rules::new(config)?,
            context,
        }),
    })
}

struct Keys<T> {
    tables: T,
    context: Context,
}

impl<T: Tables + Send> Step for Keys<T> {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let docs = Docs::of(message)?;
        let sketches = message.more.as_deref().ok_or_else(torn)?;
        let mut cursor = Cursor(sketches);
        let sketches = cursor.records::<T::Sketch>(docs.records.len())?;
        let start = self.context.start_of(message.part)? + message.seq as Ordinal;
        for (index, (record, sketch)) in docs.records.iter().zip(&sketches).enumerate() {
            let doc = start + index as Ordinal;
            let site = self.tables.site(sketch);
            // Empty documents are nobody's duplicates.
            if record.flags & EMPTY == 0 {
                self.push_content(doc, record, &docs.name(record)?.id, site, out);
            }
            if record.flags & (SHORT | EMPTY) != 0 {
                continue;
            }
            for table in 0..self.tables.n_tables() {
                let entry = Entry {
                    key: self.tables.key(table, sketch).into(),
                    table,
                    doc,
                    digest: record.digest[0],
                };
                let part = self.context.part_of(hash(table, entry.key));
                out.push(kind::ENTRY, part, doc.into(), &[bytemuck::bytes_of(&entry)]);
            }
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

impl<T> Keys<T> {
    fn push_content(&self, doc: Ordinal, record: &DocRecord, id: &str, site: u64, out: &mut Sink) {
        let content = Content {
            digest: record.digest,
            doc,
            n_id: id.len() as u32,
            site,
            fetched: record.fetched,
            weight: record.weight.to_bits(),
            n_bytes: record.n_bytes,
            n_tokens: record.n_tokens,
        };
        let part = self.context.part_of(mix(record.digest[0]));
        let pieces = [bytemuck::bytes_of(&content), id.as_bytes()];
        out.push(kind::CONTENT, part, doc.into(), &pieces);
    }
}

/// Spreads keys of all tables over parts.
pub(super) fn hash(table: u32, key: u64) -> u64 {
    mix(key ^ u64::from(table) << 56)
}

/// The step that finds runs of equal keys and classes of equal content.
pub(super) struct Runs {
    keep: Keep,
    cap: usize,
    context: Context,
    entries: Vec<Entry>,
    contents: Vec<(Content, String)>,
}

impl Runs {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            keep: config.keep,
            cap: config.cap.get(),
            context,
            entries: Vec::new(),
            contents: Vec::new(),
        }
    }

    /// Tells of every document in a run of two or more.
    fn end_entries(&mut self, out: &mut Sink) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by_key(|entry| (entry.table, entry.key, entry.doc));
        let mut long = Vec::new();
        let mut n_live = 0;
        for run in entries.chunk_by(|a, b| (a.table, a.key) == (b.table, b.key)) {
            let firsts = firsts(run);
            if firsts.len() < 2 {
                continue;
            }
            n_live += firsts.len();
            if firsts.len() > self.cap {
                let last = firsts[n_always(self.cap) - 1];
                long.push((run[0].table, run[0].key, firsts.len(), last));
            }
            for doc in firsts {
                let live = Live {
                    key: run[0].key,
                    table: run[0].table,
                    doc,
                };
                let part = self.context.shard_of(doc);
                out.push(kind::LIVE, part, doc.into(), &[bytemuck::bytes_of(&live)]);
            }
        }
        out.note(&json!({ "live": n_live, "long": long }));
    }

    fn end_contents(&mut self, out: &mut Sink) {
        let mut contents = std::mem::take(&mut self.contents);
        contents.sort_unstable_by_key(|(content, _)| (content.digest, content.doc));
        let (mut n_copies, mut n_classes, mut largest) = (0, 0, 0);
        for class in contents.chunk_by(|(a, _), (b, _)| a.digest == b.digest) {
            let n = class.len() as u64;
            largest = largest.max(n);
            if n < 2 {
                continue;
            }
            n_copies += n - 1;
            n_classes += 1;
            let class = self.class(class);
            let part = self.context.shard_of(class.first());
            out.push(
                kind::CLASS,
                part,
                class.first().into(),
                &[&class.to_bytes()],
            );
        }
        out.note(&json!({
            "copies": n_copies,
            "classes": n_classes,
            "max_class": largest,
        }));
    }

    fn class(&self, contents: &[(Content, String)]) -> Class {
        let n_copies = contents.len() as u64;
        let ranks = contents.iter().map(|(content, _)| {
            let record = DocRecord {
                fetched: content.fetched,
                weight: f64::from_bits(content.weight),
                n_bytes: content.n_bytes,
                ..DocRecord::zeroed()
            };
            rank(self.keep, &record, n_copies, content.doc.into())
        });
        let members = contents.iter().map(|(content, id)| Member {
            doc: content.doc,
            site: content.site,
            id: id.clone(),
        });
        Class {
            best: ranks.min().expect("a class has members"),
            n_tokens: contents[0].0.n_tokens,
            members: members.collect(),
        }
    }
}

/// The documents of a run, the first of each content, by ordinal.
fn firsts(run: &[Entry]) -> Vec<Ordinal> {
    if let [only] = run {
        return vec![only.doc];
    }
    let mut seen = BTreeSet::new();
    let new = run.iter().filter(|entry| seen.insert(entry.digest));
    new.map(|entry| entry.doc).collect()
}

impl Step for Runs {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if message.kind == kind::ENTRY {
            self.entries.extend(message.records::<Entry>()?);
            return Ok(());
        }
        let mut cursor = Cursor(&message.bytes);
        while !cursor.is_empty() {
            let content: Content = cursor.record()?;
            let id = cursor.text(content.n_id as usize)?;
            self.contents.push((content, id));
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        self.end_entries(out);
        self.end_contents(out);
        Ok(())
    }
}
