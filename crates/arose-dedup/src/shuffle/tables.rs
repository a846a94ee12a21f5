//! The rows of documents and of pairs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arose::rule::Rule;
use arrow_array::RecordBatch;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::document::Docs;
use super::stars::{Dropped, Version};
use super::wire::{Cursor, Message, Sink, misfit, torn};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::{Config, Empty, Verify};
use crate::record::{Accepted, EMPTY, Ordinal};
use crate::stage::cluster::Link;
use crate::stage::tables::{DocumentRows, PairRows, document_schema, pair_schema};
use crate::stage::verdict::Verdict;

/// Number of rows in a batch.
const BATCH_ROWS: usize = 1 << 14;

/// The documents of a shard, and the decisions on some of them.
pub(super) struct Decided {
    context: Context,
    docs: Vec<Docs>,
    dropped: Vec<Dropped>,
    versions: Vec<Version>,
}

impl Decided {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            docs: Vec::new(),
            dropped: Vec::new(),
            versions: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, message: &Message<'_>) -> Result<(), Error> {
        match message.kind {
            kind::DOCS => self.docs.push(Docs::of(message)?),
            kind::GROUP => self.versions.extend(message.records::<Version>()?),
            _ => self.dropped.extend(message.records::<Dropped>()?),
        }
        Ok(())
    }

    /// Returns the groups of versions that are not those of clusters, by document, before the part
    /// ends.
    fn versions(&mut self) -> Vec<Version> {
        let mut versions = std::mem::take(&mut self.versions);
        versions.sort_unstable();
        versions
    }

    /// Returns the documents with the ordinal of the first, and the dropped documents, by ordinal.
    pub(super) fn end(&mut self, part: i64) -> Result<(Ordinal, Vec<Docs>, Vec<Dropped>), Error> {
        let mut dropped = std::mem::take(&mut self.dropped);
        dropped.sort_unstable();
        self.versions.clear();
        let docs = std::mem::take(&mut self.docs);
        let start = self.context.start_of(part)?;
        let end = start
            + docs
                .iter()
                .map(|docs| docs.records.len() as Ordinal)
                .sum::<Ordinal>();
        let is_elsewhere = |dropped: &&Dropped| !(start..end).contains(&dropped.doc);
        if let Some(dropped) = dropped.iter().find(is_elsewhere) {
            return Err(misfit("a decision", dropped.doc));
        }
        if let Some(twice) = dropped.windows(2).find(|two| two[0].doc == two[1].doc) {
            return Err(misfit("a decision", twice[0].doc));
        }
        Ok((start, docs, dropped))
    }
}

/// The step that outputs a row for every document.
pub(super) struct Documents {
    empty: Empty,
    decided: Decided,
}

impl Documents {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            empty: config.empty,
            decided: Decided::new(context),
        }
    }
}

impl Step for Documents {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        self.decided.take(message)
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let versions = self.decided.versions();
        let (mut doc, docs, dropped) = self.decided.end(part)?;
        let mut dropped = dropped.iter().peekable();
        let mut versions = versions.iter().peekable();
        for docs in docs {
            let mut rows = DocumentRows::default();
            for record in &docs.records {
                let mut verdict = match self.empty {
                    Empty::Drop if record.flags & EMPTY != 0 => Verdict::EMPTY,
                    _ => verdict(dropped.next_if(|dropped| dropped.doc == doc)),
                };
                let version = versions.next_if(|version| version.doc == doc);
                verdict.group = version.map(|version| version.group);
                let nowhere = Path::new("");
                let source = docs.sources.get(record.source as usize);
                let source = source.map_or(nowhere, |source| source);
                let name = docs.name(record)?;
                let name = (&*name.id, name.url.as_deref());
                rows.push(doc, name, record, source, &verdict);
                doc += 1;
            }
            let batch = RecordBatch::try_new(Arc::new(document_schema()), rows.finish());
            out.rows(batch.expect("columns are those of the schema"))?;
        }
        Ok(())
    }
}

fn verdict(dropped: Option<&Dropped>) -> Verdict {
    let Some(dropped) = dropped else {
        return Verdict {
            kept_doc: None,
            rule: None,
            similarity: None,
            scores: None,
            group: None,
            known_as: None,
        };
    };
    let scores = dropped.scores;
    Verdict {
        kept_doc: Some(dropped.kept_doc),
        rule: Some(scores.rule()),
        // Documents without tokens are exact duplicates, but have no scores.
        similarity: match scores.rule() {
            Rule::Exact => Some(1.0),
            _ => scores.similarity(),
        },
        scores: Some(scores),
        group: None,
        known_as: None,
    }
}

/// The step that sends accepted pairs to the shards with the names of their worse documents.
pub(super) struct Linked(Context);

impl Linked {
    pub(super) fn new(context: Context) -> Self {
        Self(context)
    }
}

impl Step for Linked {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        for link in message.records::<Link>()? {
            let pair = Dropped {
                doc: link.other,
                kept_doc: link.centre,
                scores: link.scores,
            };
            let (to, seq) = (self.0.shard_of(pair.doc), pair.doc.into());
            out.push(kind::LINKED, to, seq, &[bytemuck::bytes_of(&pair)])?;
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// A pair on its way to its better document, followed by the ID of the other.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct NamedHead {
    pair: Dropped,
    n_id: u32,
    /// Not zero if one was dropped for the other.
    is_dropped: u32,
}

/// The step that names the worse documents of pairs: of documents dropped for another, and of pairs
/// verified on the way.
pub(super) struct Name {
    decided: Decided,
    linked: Vec<Dropped>,
}

impl Name {
    pub(super) fn new(context: Context) -> Self {
        Self {
            decided: Decided::new(context),
            linked: Vec::new(),
        }
    }

    /// Returns every pair once, by its worse document, and whether that was dropped for the other.
    fn pairs(&mut self, dropped: Vec<Dropped>) -> Vec<(Dropped, bool)> {
        let linked = std::mem::take(&mut self.linked).into_iter();
        let mut pairs: Vec<_> = linked.map(|pair| (pair, false)).collect();
        pairs.extend(dropped.into_iter().map(|pair| (pair, true)));
        // Under the policy `contained`, the pair has a lower score than the decision.
        pairs.sort_unstable();
        pairs.dedup_by(|(next, is_dropped), (pair, is_either)| {
            let is_same = (next.doc, next.kept_doc) == (pair.doc, pair.kept_doc);
            *is_either |= is_same && *is_dropped;
            is_same
        });
        pairs
    }
}

impl Step for Name {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        match message.kind {
            kind::LINKED => self.linked.extend(message.records::<Dropped>()?),
            _ => self.decided.take(message)?,
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let (mut doc, docs, dropped) = self.decided.end(part)?;
        let mut pairs = self.pairs(dropped).into_iter().peekable();
        for docs in docs {
            for record in &docs.records {
                while let Some((pair, is_dropped)) = pairs.next_if(|(pair, _)| pair.doc == doc) {
                    let id = docs.name(record)?.id;
                    let head = NamedHead {
                        pair,
                        n_id: id.len() as u32,
                        is_dropped: is_dropped.into(),
                    };
                    let to = self.decided.context.shard_of(pair.kept_doc);
                    let pieces = [bytemuck::bytes_of(&head), id.as_bytes()];
                    out.push(kind::LISTED, to, pair.kept_doc.into(), &pieces)?;
                }
                doc += 1;
            }
        }
        match pairs.next() {
            Some((pair, _)) => Err(misfit("a pair", pair.doc)),
            None => Ok(()),
        }
    }
}

/// A pair, with the ID of its worse document.
struct Named {
    pair: Dropped,
    is_dropped: bool,
    id: String,
}

/// Returns the pairs in a message.
fn named(message: &Message<'_>) -> Result<Vec<Named>, Error> {
    let mut cursor = Cursor(&message.bytes);
    let mut named = Vec::new();
    while !cursor.is_empty() {
        let head: NamedHead = cursor.record()?;
        named.push(Named {
            pair: head.pair,
            is_dropped: head.is_dropped != 0,
            id: cursor.text(head.n_id as usize)?,
        });
    }
    Ok(named)
}

/// The step that counts clusters.
#[derive(Default)]
pub(super) struct Tally {
    /// Number of documents dropped for each.
    sizes: BTreeMap<Ordinal, u64>,
}

impl Step for Tally {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        for named in named(message)?.iter().filter(|named| named.is_dropped) {
            *self.sizes.entry(named.pair.kept_doc).or_default() += 1;
        }
        out.forward(message)
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let sizes = std::mem::take(&mut self.sizes);
        let n_clusters = sizes.len() as u64;
        out.note(&json!({
            "clusters": n_clusters,
            "members": n_clusters + sizes.values().sum::<u64>(),
            "max_cluster": sizes.values().max().map_or(0, |n| n + 1),
        }))
    }
}

/// The step that outputs a row for every pair.
pub(super) struct List {
    verify: Verify,
    context: Context,
    docs: Vec<Docs>,
    named: Vec<Named>,
}

impl List {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            verify: config.verify,
            context,
            docs: Vec::new(),
            named: Vec::new(),
        }
    }
}

impl Step for List {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        match message.kind {
            kind::DOCS => self.docs.push(Docs::of(message)?),
            _ => self.named.extend(named(message)?),
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let mut start = self.context.start_of(part)?;
        let docs = std::mem::take(&mut self.docs);
        let mut named = std::mem::take(&mut self.named);
        named.sort_unstable_by_key(|named| (named.pair.kept_doc, named.pair.doc));
        let mut left = &named[..];
        for docs in &docs {
            let end = start + docs.records.len() as Ordinal;
            let n_own = left.partition_point(|named| named.pair.kept_doc < end);
            let (own, rest) = left.split_at(n_own);
            left = rest;
            for own in own.chunks(BATCH_ROWS) {
                let mut rows = PairRows::default();
                for Named { pair, id, .. } in own {
                    let place = pair.kept_doc.checked_sub(start).ok_or_else(torn)?;
                    let record = docs.records.get(place as usize).ok_or_else(torn)?;
                    let kept_id = docs.name(record)?.id;
                    let ids = match pair.kept_doc < pair.doc {
                        true => [kept_id.as_str(), id.as_str()],
                        false => [id.as_str(), kept_id.as_str()],
                    };
                    let pair = Accepted::new(pair.kept_doc, pair.doc, pair.scores);
                    rows.push(&pair, ids, self.verify);
                }
                let batch = RecordBatch::try_new(Arc::new(pair_schema()), rows.finish());
                out.rows(batch.expect("columns are those of the schema"))?;
            }
            start = end;
        }
        match left.first() {
            Some(named) => Err(misfit("a pair", named.pair.kept_doc)),
            None => Ok(()),
        }
    }
}
