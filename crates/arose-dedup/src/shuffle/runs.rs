//! Exact duplicates, and documents that share a key.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use arose::mix::mix;
use arose::rule::Criterion;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::document::{Class, Copies, Docs, MAX_COPIES};
use super::spill::Scratch;
use super::wire::{Cursor, Message, Sink, torn};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::{Config, Keep};
use crate::record::{DocRecord, EMPTY, Ordinal, SHORT};
use crate::scheme::{Bands, KeyTables, Rules};
use crate::sorter::Sorter;
use crate::stage::bucket::n_always;
use crate::stage::exact;
use crate::stage::rank::{Rank, rank};

/// A document under its key in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    key: u64,
    table: u32,
    doc: Ordinal,
    /// Half of the content digest. Of documents that agree in it, only the first counts.
    digest: u64,
}

impl Ord for Entry {
    /// Among entries of one key, documents of one content are adjacent, ordered by ordinal.
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |entry: &Self| (entry.table, entry.key, entry.digest, entry.doc);
        place(self).cmp(&place(other))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The content of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Content {
    digest: [u64; 2],
    /// The fields of the record that determine its priority.
    fetched: i64,
    weight: u64,
    n_bytes: u32,
    n_tokens: u32,
    doc: Ordinal,
    unused: u32,
}

impl Content {
    fn rank(&self, keep: Keep, n_copies: u64) -> Rank {
        let record = DocRecord {
            fetched: self.fetched,
            weight: f64::from_bits(self.weight),
            n_bytes: self.n_bytes,
            ..DocRecord::zeroed()
        };
        rank(keep, &record, n_copies, self.doc.into())
    }
}

impl Ord for Content {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.digest, self.doc).cmp(&(other.digest, other.doc))
    }
}

impl PartialOrd for Content {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Bytes of a key and of a content in messages.
pub(super) const MESSAGE_BYTES: [usize; 2] = [size_of::<Entry>(), size_of::<Content>()];

/// A document that shares its key with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Live {
    pub(super) key: u64,
    pub(super) table: u32,
    pub(super) doc: Ordinal,
}

/// The step that computes keys.
pub(super) fn keys(config: &Config, context: Context) -> Result<Box<dyn Step>, Error> {
    Ok(match config.policy.criterion {
        Criterion::Jaccard(threshold) => Box::new(Keys {
            tables: Bands::new(config, threshold)?,
            alone: exact::alone(config),
            context,
        }),
        _ => Box::new(Keys {
            tables: Rules::new(config)?,
            alone: exact::alone(config),
            context,
        }),
    })
}

struct Keys<T> {
    tables: T,
    /// The flag of documents that are never exact duplicates.
    alone: u16,
    context: Context,
}

impl<T: KeyTables + Send> Step for Keys<T> {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let docs = Docs::of(message)?;
        let sketches = message.more.as_deref().ok_or_else(torn)?;
        let mut cursor = Cursor(sketches);
        let sketches = cursor.records::<T::Sketch>(docs.records.len())?;
        let start = self.context.start_of(message.part)? + message.seq as Ordinal;
        for (index, (record, sketch)) in docs.records.iter().zip(&sketches).enumerate() {
            let doc = start + index as Ordinal;
            push_content(&self.context, doc, record, self.alone, out)?;
            if record.flags & (SHORT | EMPTY) != 0 {
                continue;
            }
            let (tables, context) = (&self.tables, &self.context);
            push_keys(tables, context, doc, record.digest[0], sketch, out)?;
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// Sends a document to the parts of its keys.
pub(super) fn push_keys<T: KeyTables>(
    tables: &T,
    context: &Context,
    doc: Ordinal,
    digest: u64,
    sketch: &T::Sketch,
    out: &mut Sink,
) -> Result<(), Error> {
    (0..tables.n_tables()).try_for_each(|table| {
        let entry = Entry {
            key: tables.key(table, sketch),
            table,
            doc,
            digest,
        };
        let part = context.part_of(hash(table, entry.key));
        out.push(kind::ENTRY, part, doc.into(), &[bytemuck::bytes_of(&entry)])
    })
}

/// Sends a document to the part of its content, unless it has the flag `alone`.
fn push_content(
    context: &Context,
    doc: Ordinal,
    record: &DocRecord,
    alone: u16,
    out: &mut Sink,
) -> Result<(), Error> {
    if record.flags & alone != 0 {
        return Ok(());
    }
    let content = Content {
        digest: record.digest,
        fetched: record.fetched,
        weight: record.weight.to_bits(),
        n_bytes: record.n_bytes,
        n_tokens: record.n_tokens,
        doc,
        unused: 0,
    };
    let part = context.part_of(mix(record.digest[0]));
    let seq = doc.into();
    out.push(kind::CONTENT, part, seq, &[bytemuck::bytes_of(&content)])
}

/// The step that sends documents to the parts of their contents, for policies whose keys are
/// computed later.
pub(super) struct Contents {
    alone: u16,
    context: Context,
}

impl Contents {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            alone: exact::alone(config),
            context,
        }
    }
}

impl Step for Contents {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let docs = Docs::of(message)?;
        let start = self.context.start_of(message.part)? + message.seq as Ordinal;
        let mut docs = (start..).zip(&docs.records);
        docs.try_for_each(|(doc, record)| push_content(&self.context, doc, record, self.alone, out))
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// Distributes keys of all tables over parts.
pub(super) fn hash(table: u32, key: u64) -> u64 {
    mix(key ^ u64::from(table) << 56)
}

/// The step that finds runs of equal keys and classes of exact duplicates.
pub(super) struct Runs {
    keep: Keep,
    cap: usize,
    /// Whether the shards of copies need to know them.
    tells_copies: bool,
    context: Context,
    scratch: Scratch,
    entries: Option<Sorter<Entry>>,
    contents: Option<Sorter<Content>>,
}

/// The documents under one key while they are processed.
struct Run {
    table: u32,
    key: u64,
    /// The content of the last document.
    digest: u64,
    /// Number of documents with different contents.
    n: usize,
    /// The first of them, until there is another one.
    alone: Ordinal,
    /// The smallest of them, as many as always take part.
    least: BinaryHeap<Ordinal>,
}

impl Run {
    fn of(entry: &Entry) -> Self {
        Self {
            table: entry.table,
            key: entry.key,
            digest: entry.digest,
            n: 1,
            alone: entry.doc,
            least: BinaryHeap::from([entry.doc]),
        }
    }

    fn is_of(&self, entry: &Entry) -> bool {
        (self.table, self.key) == (entry.table, entry.key)
    }

    fn add(&mut self, entry: &Entry, n_least: usize) {
        self.digest = entry.digest;
        self.n += 1;
        self.least.push(entry.doc);
        if self.least.len() > n_least {
            self.least.pop();
        }
    }
}

/// Exact duplicates while they are processed.
struct Equal {
    /// The document of the lowest rank so far.
    best: Content,
    n: u64,
    /// Documents that were not sent yet.
    copies: Copies,
}

impl Runs {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            keep: config.keep,
            cap: config.cap.get(),
            tells_copies: matches!(config.policy.criterion, Criterion::Content(_)),
            scratch: Scratch::new(&context),
            context,
            entries: None,
            contents: None,
        }
    }

    fn push_live(&self, run: &Run, doc: Ordinal, out: &mut Sink) -> Result<(), Error> {
        let live = Live {
            key: run.key,
            table: run.table,
            doc,
        };
        let part = self.context.shard_of(doc);
        out.push(kind::LIVE, part, doc.into(), &[bytemuck::bytes_of(&live)])
    }

    /// Reports every document in a run of two or more.
    fn end_entries(&mut self, entries: Sorter<Entry>, out: &mut Sink) -> Result<(), Error> {
        let mut entries = entries.finish()?;
        let n_least = n_always(self.cap);
        let (mut long, mut n_live) = (Vec::new(), 0);
        let mut count = |run: &Run| {
            n_live += if run.n > 1 { run.n } else { 0 };
            if run.n > self.cap {
                let last = run.least.peek().copied().unwrap_or_default();
                long.push((run.table, run.key, run.n, last));
            }
        };
        let mut run: Option<Run> = None;
        while let Some(entry) = entries.next()? {
            let Some(run) = run.as_mut().filter(|run| run.is_of(&entry)) else {
                run.replace(Run::of(&entry)).iter().for_each(&mut count);
                continue;
            };
            if run.digest == entry.digest {
                continue;
            }
            run.add(&entry, n_least);
            if run.n == 2 {
                self.push_live(run, run.alone, out)?;
            }
            self.push_live(run, entry.doc, out)?;
        }
        run.iter().for_each(&mut count);
        out.note(&json!({ "live": n_live, "long": long }))
    }

    fn end_contents(&mut self, contents: Sorter<Content>, out: &mut Sink) -> Result<(), Error> {
        let mut contents = contents.finish()?;
        let (mut n_copies, mut n_classes, mut largest) = (0, 0, 0);
        let mut equal: Option<Equal> = None;
        loop {
            let content = contents.next()?;
            if let (Some(equal), Some(content)) = (&mut equal, &content)
                && equal.best.digest == content.digest
            {
                self.add(equal, content, out)?;
                continue;
            }
            if let Some(equal) = equal.take() {
                largest = largest.max(equal.n);
                n_copies += equal.n - 1;
                n_classes += u64::from(equal.n > 1);
                self.end_class(&equal, out)?;
            }
            let Some(content) = content else {
                break;
            };
            equal = Some(Equal {
                best: content,
                n: 1,
                copies: Copies {
                    first: content.doc,
                    docs: vec![content.doc],
                },
            });
        }
        out.note(&json!({
            "copies": n_copies,
            "classes": n_classes,
            "max_class": largest,
        }))
    }

    fn add(&self, equal: &mut Equal, content: &Content, out: &mut Sink) -> Result<(), Error> {
        equal.n += 1;
        // The final number is the same for all of them.
        if content.rank(self.keep, 1) < equal.best.rank(self.keep, 1) {
            equal.best = *content;
        }
        equal.copies.docs.push(content.doc);
        if self.tells_copies {
            let part = self.context.shard_of(content.doc);
            let seq = content.doc.into();
            out.push(kind::COPY, part, seq, &[&content.doc.to_le_bytes()])?;
        }
        match equal.copies.docs.len() >= MAX_COPIES {
            true => self.push_copies(&mut equal.copies, out),
            false => Ok(()),
        }
    }

    fn push_copies(&self, copies: &mut Copies, out: &mut Sink) -> Result<(), Error> {
        let part = self.context.shard_of(copies.first);
        let bytes = copies.to_bytes();
        copies.docs.clear();
        out.push(kind::COPIES, part, copies.first.into(), &[&bytes])
    }

    fn end_class(&self, equal: &Equal, out: &mut Sink) -> Result<(), Error> {
        if equal.n < 2 {
            return Ok(());
        }
        let mut copies = equal.copies.clone();
        if !copies.docs.is_empty() {
            self.push_copies(&mut copies, out)?;
        }
        let class = Class {
            best: equal.best.rank(self.keep, equal.n),
            first: copies.first,
            n_tokens: equal.best.n_tokens,
        };
        let part = self.context.shard_of(class.first);
        let seq = class.first.into();
        out.push(kind::CLASS, part, seq, &[bytemuck::bytes_of(&class)])
    }
}

impl Step for Runs {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if message.kind == kind::ENTRY {
            if self.entries.is_none() {
                self.entries = Some(self.scratch.sorter()?);
            }
            let entries = self.entries.as_mut().expect("just set");
            return entries.extend(&message.records()?);
        }
        if self.contents.is_none() {
            self.contents = Some(self.scratch.sorter()?);
        }
        let contents = self.contents.as_mut().expect("just set");
        contents.extend(&message.records()?)
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        if let Some(entries) = self.entries.take() {
            self.end_entries(entries, out)?;
        }
        match self.contents.take() {
            Some(contents) => self.end_contents(contents, out),
            None => Ok(()),
        }
    }
}
