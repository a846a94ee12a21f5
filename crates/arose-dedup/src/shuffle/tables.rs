//! The rows of documents and of pairs.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arose::rule::{Policy, Rule};
use arrow_array::RecordBatch;
use bytemuck::{Pod, Zeroable};

use super::components::Label;
use super::document::{Class, Docs, Member};
use super::stars::Dropped;
use super::wire::{Cursor, Message, Sink};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::{Config, Empty, Verify};
use crate::record::{Accepted, EMPTY, Ordinal};
use crate::stage::tables::{
    DocumentRows, PairRows, document_schema, exact_scores, has_site_rule, listed, pair_schema,
    site_rule,
};
use crate::stage::verdict::Verdict;

/// Rows in a batch.
const BATCH_ROWS: usize = 1 << 14;

/// The step that makes a row of every document.
pub(super) struct Documents {
    empty: Empty,
    context: Context,
    docs: Vec<Docs>,
    labels: Vec<Label>,
    dropped: Vec<Dropped>,
}

impl Documents {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            empty: config.empty,
            context,
            docs: Vec::new(),
            labels: Vec::new(),
            dropped: Vec::new(),
        }
    }
}

impl Step for Documents {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        match message.kind {
            kind::DOCS => self.docs.push(Docs::of(message)?),
            kind::LABEL => self.labels.extend(message.records::<Label>()?),
            _ => self.dropped.extend(message.records::<Dropped>()?),
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let mut doc = self.context.start_of(part)?;
        let mut labels = std::mem::take(&mut self.labels);
        let mut dropped = std::mem::take(&mut self.dropped);
        labels.sort_unstable();
        labels.dedup();
        dropped.sort_unstable();
        let (mut labels, mut dropped) = (labels.iter().peekable(), dropped.iter().peekable());
        for docs in std::mem::take(&mut self.docs) {
            let mut rows = DocumentRows::default();
            for record in &docs.records {
                let label = labels.next_if(|label| label.doc == doc);
                let label = label.map_or(doc, |label| label.label);
                let verdict = match self.empty {
                    Empty::Drop if record.flags & EMPTY != 0 => Verdict::EMPTY,
                    _ => verdict(dropped.next_if(|dropped| dropped.doc == doc)),
                };
                let nowhere = Path::new("");
                let source = docs.sources.get(record.source as usize);
                let source = source.map_or(nowhere, |source| source);
                rows.push(doc, &docs.name(record)?, record, source, label, &verdict);
                doc += 1;
            }
            let batch = RecordBatch::try_new(Arc::new(document_schema()), rows.finish());
            out.rows(batch.expect("columns are those of the schema"));
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
            known_as: None,
        };
    };
    let similarity = f64::from_bits(dropped.similarity);
    Verdict {
        kept_doc: Some(dropped.kept_doc),
        rule: Rule::ALL.get(dropped.rule as usize).copied(),
        similarity: (!similarity.is_nan()).then_some(similarity),
        known_as: None,
    }
}

/// An accepted pair of documents, or of contents; two ids follow.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(super) struct ListedPair {
    scores: Accepted,
    sites: [u64; 2],
    sizes: [u32; 2],
    n_ids: [u32; 2],
}

impl ListedPair {
    pub(super) fn new(scores: &Accepted, sizes: [u32; 2], sites: [u64; 2]) -> Self {
        Self {
            scores: *scores,
            sites,
            sizes,
            n_ids: [0; 2],
        }
    }

    /// Pairs of documents that it stands for.
    pub(super) fn product(&self) -> u64 {
        u64::from(self.sizes[0]) * u64::from(self.sizes[1])
    }

    pub(super) fn push(mut self, kind: i32, part: i64, ids: [&str; 2], out: &mut Sink) {
        self.n_ids = ids.map(|id| id.len() as u32);
        let pieces = [
            bytemuck::bytes_of(&self),
            ids[0].as_bytes(),
            ids[1].as_bytes(),
        ];
        out.push(kind, part, self.scores.a.into(), &pieces);
    }

    fn all(message: &Message<'_>) -> Result<Vec<(Self, [String; 2])>, Error> {
        let mut cursor = Cursor(&message.bytes);
        let mut pairs = Vec::new();
        while !cursor.is_empty() {
            let pair: Self = cursor.record()?;
            let [a, b] = pair.n_ids.map(|n| n as usize);
            pairs.push((pair, [cursor.text(a)?, cursor.text(b)?]));
        }
        Ok(pairs)
    }
}

/// Classes of the current part, by their first document.
#[derive(Default)]
struct Classes(BTreeMap<Ordinal, Class>);

impl Classes {
    fn take(&mut self, message: &Message<'_>) -> Result<(), Error> {
        let classes = Class::all(message)?.into_iter();
        self.0.extend(classes.map(|class| (class.first(), class)));
        Ok(())
    }

    /// The documents that `first` stands for.
    fn members(&self, first: Ordinal, site: u64, id: &str) -> Vec<Member> {
        match self.0.get(&first) {
            Some(class) => class.members.clone(),
            None => vec![Member {
                doc: first,
                site,
                id: id.to_owned(),
            }],
        }
    }
}

/// The step that puts the copies of the first document in its place.
pub(super) struct Expand {
    context: Context,
    classes: Classes,
}

impl Expand {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            classes: Classes::default(),
        }
    }
}

impl Step for Expand {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        if message.kind == kind::CLASS {
            return self.classes.take(message);
        }
        for (pair, [id_a, id_b]) in ListedPair::all(message)? {
            let part = self.context.shard_of(pair.scores.b);
            if pair.product() > self.context.limit {
                pair.push(kind::LISTED, part, [&id_a, &id_b], out);
                continue;
            }
            for member in self.classes.members(pair.scores.a, pair.sites[0], &id_a) {
                let mut own = pair;
                own.scores.a = member.doc;
                own.sites[0] = member.site;
                own.push(kind::LISTED, part, [&member.id, &id_b], out);
            }
        }
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        self.classes.0.clear();
        Ok(())
    }
}

/// Rows of pairs on their way out.
struct Rows {
    verify: Verify,
    rows: PairRows,
    n: usize,
}

impl Rows {
    fn new(config: &Config) -> Self {
        Self {
            verify: config.verify,
            rows: PairRows::default(),
            n: 0,
        }
    }

    /// A row with the earlier document first.
    fn push(&mut self, a: &Member, b: &Member, scores: &Accepted, out: &mut Sink) {
        let ids = match a.doc < b.doc {
            true => [a.id.as_str(), b.id.as_str()],
            false => [b.id.as_str(), a.id.as_str()],
        };
        self.rows
            .push(&listed(a.doc, b.doc, scores), ids, self.verify);
        self.n += 1;
        if self.n == BATCH_ROWS {
            self.end(out);
        }
    }

    fn end(&mut self, out: &mut Sink) {
        if self.n > 0 {
            let batch = RecordBatch::try_new(Arc::new(pair_schema()), self.rows.finish());
            out.rows(batch.expect("columns are those of the schema"));
            self.n = 0;
        }
    }
}

/// The step that puts the copies of the second document in its place and makes rows.
pub(super) struct List {
    policy: Policy,
    has_site_rule: bool,
    limit: u64,
    classes: Classes,
    rows: Rows,
}

impl List {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            policy: config.policy,
            has_site_rule: has_site_rule(config),
            limit: context.limit,
            classes: Classes::default(),
            rows: Rows::new(config),
        }
    }

    fn list(&mut self, pair: &ListedPair, [id_a, id_b]: [String; 2], out: &mut Sink) {
        let a = Member {
            doc: pair.scores.a,
            site: pair.sites[0],
            id: id_a,
        };
        let is_whole = pair.product() <= self.limit;
        let members = match is_whole {
            true => self.classes.members(pair.scores.b, pair.sites[1], &id_b),
            false => Classes::default().members(pair.scores.b, pair.sites[1], &id_b),
        };
        for b in members {
            let rule = match self.has_site_rule && is_whole && pair.product() > 1 {
                true => site_rule(&self.policy, [a.site, b.site], &pair.scores),
                false => Some(pair.scores.rule),
            };
            if let Some(rule) = rule {
                let scores = Accepted {
                    rule,
                    ..pair.scores
                };
                self.rows.push(&a, &b, &scores, out);
            }
        }
    }
}

impl Step for List {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        if message.kind == kind::CLASS {
            return self.classes.take(message);
        }
        for (pair, ids) in ListedPair::all(message)? {
            self.list(&pair, ids, out);
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        self.classes.0.clear();
        self.rows.end(out);
        Ok(())
    }
}

/// The step that makes rows of pairs of equal content.
pub(super) struct Copies {
    limit: u64,
    rows: Rows,
}

impl Copies {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            limit: context.limit,
            rows: Rows::new(config),
        }
    }
}

impl Step for Copies {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        for class in Class::all(message)? {
            let scores = exact_scores(class.n_tokens);
            let n = class.members.len() as u64;
            let n_pairs = n * (n - 1) / 2;
            let is_whole = n_pairs <= self.limit;
            let n_centres = if is_whole { class.members.len() } else { 1 };
            for (i, a) in class.members.iter().enumerate().take(n_centres) {
                for b in &class.members[i + 1..] {
                    self.rows.push(a, b, &scores, out);
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        self.rows.end(out);
        Ok(())
    }
}
