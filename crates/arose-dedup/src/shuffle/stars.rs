//! Clusters: determines which document is dropped for which.

use std::collections::BTreeMap;

use arose::mix::mix;
use arose::rule::{Criterion, Rule};
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::components::Nodes;
use super::document::{Class, Copies};
use super::spill::Scratch;
use super::wire::{Message, Sink, misfit};
use super::{Context, Step, groups, kind};
use crate::Error;
use crate::config::Config;
use crate::lookup::Flags;
use crate::record::{Ordinal, Scores};
use crate::sorter::Sorter;
use crate::stage::cluster::{Link, Tie, take_stars};
use crate::stage::exact::copy_rule;
use crate::stage::rank::Rank;
use crate::stage::repair::{Around, Centre};

/// The step that sends the pairs of a component to one part.
pub(super) struct Attach {
    context: Context,
    /// The kind of the output.
    kind: i32,
    nodes: Nodes,
    /// The nodes of the part with their components; none until the first pair arrives.
    labels: Option<Vec<[Ordinal; 2]>>,
}

impl Attach {
    pub(super) fn new(context: Context, kind: i32) -> Self {
        Self {
            nodes: Nodes::new(&context),
            context,
            kind,
            labels: None,
        }
    }

    /// Reads the components of nodes from their smallest neighbours.
    fn end_edges(&mut self) -> Result<Vec<[Ordinal; 2]>, Error> {
        let mut labels: Vec<[Ordinal; 2]> = Vec::new();
        let mut edges = self.nodes.end()?;
        while let Some(edge) = edges.next()? {
            if labels.last().is_none_or(|[node, _]| *node != edge.node) {
                labels.push([edge.node, edge.other.min(edge.node)]);
            }
        }
        Ok(labels)
    }
}

impl Step for Attach {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        if message.kind == kind::EDGE {
            return self.nodes.take(message);
        }
        let labels = match self.labels.take() {
            Some(labels) => labels,
            None => self.end_edges()?,
        };
        for link in message.records::<Link>()? {
            let doc = link.centre.min(link.other);
            let at = labels.binary_search_by_key(&doc, |[node, _]| *node);
            let [_, label] = labels[at.map_err(|_| misfit("a pair", doc))?];
            let part = self.context.part_of(mix(label.into()));
            out.push(self.kind, part, label.into(), &[bytemuck::bytes_of(&link)])?;
        }
        self.labels = Some(labels);
        Ok(())
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        self.labels = None;
        self.nodes.end().map(drop)
    }
}

/// The first document of a content that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Taken {
    pub(super) doc: Ordinal,
    pub(super) kept_doc: Ordinal,
    pub(super) scores: Scores,
}

/// Number of collected documents, besides twice the unique ones, at which they are deduplicated.
const MANY_DOCS: usize = 1 << 20;

/// The step that takes documents. For a component, it stores 8 bytes per document and the ranks of
/// the kept documents. Pairs go to files.
pub(super) struct Stars {
    context: Context,
    criterion: Criterion,
    scratch: Scratch,
    links: Option<Sorter<Link>>,
    docs: Vec<Ordinal>,
    /// Their number when each was last present once.
    n_unique: usize,
}

impl Stars {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            criterion: config.policy.criterion,
            scratch: Scratch::new(&context),
            context,
            links: None,
            docs: Vec::new(),
            n_unique: 0,
        }
    }

    /// Returns every document once, by ordinal.
    fn sort_docs(&mut self) {
        self.docs.sort_unstable();
        self.docs.dedup();
        self.n_unique = self.docs.len();
    }
}

/// The documents for which others were taken.
struct Centres<'a> {
    /// All documents, by ordinal.
    docs: &'a [Ordinal],
    /// For each document, the position of its centre.
    places: Vec<u32>,
    /// The ranks of centres.
    ranks: BTreeMap<u32, Rank>,
}

/// A document that was not taken.
const NOT_TAKEN: u32 = u32::MAX;

impl Centres<'_> {
    fn place(&self, doc: Ordinal) -> usize {
        self.docs.partition_point(|other| *other < doc)
    }

    fn take(&mut self, link: &Link) {
        let [doc, centre] = [link.other, link.centre].map(|doc| self.place(doc));
        self.places[doc] = centre as u32;
        self.ranks.insert(centre as u32, link.rank);
    }

    fn of(&self, doc: Ordinal) -> Option<Centre> {
        let centre = self.places[self.place(doc)];
        let rank = self.ranks.get(&centre)?;
        Some(Centre {
            doc: self.docs[centre as usize],
            rank: *rank,
        })
    }
}

impl Step for Stars {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if self.links.is_none() {
            self.links = Some(self.scratch.sorter()?);
        }
        let links = self.links.as_mut().expect("just set");
        let all = message.records::<Link>()?.into_iter();
        for link in all.filter(|link| self.criterion.removes(link.scores.rule())) {
            links.push(link)?;
            self.docs.extend([link.centre, link.other]);
        }
        // Not after every message, since a document has many links and there are many messages.
        if self.docs.len() > 2 * self.n_unique + MANY_DOCS {
            self.sort_docs();
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let Some(links) = self.links.take() else {
            return Ok(());
        };
        self.sort_docs();
        self.n_unique = 0;
        let docs = std::mem::take(&mut self.docs);
        let mut is_taken = Flags::new(docs.len());
        let mut centres = Centres {
            places: vec![NOT_TAKEN; docs.len()],
            docs: &docs,
            ranks: BTreeMap::new(),
        };
        let index = |doc: Ordinal| docs.partition_point(|other| *other < doc);
        let mut ties = self.scratch.sorter::<Tie>()?;
        let mut links = links.finish()?;
        take_stars(&mut links, &mut is_taken, index, &mut ties, |link| {
            centres.take(link);
            let taken = Taken {
                doc: link.other,
                kept_doc: link.rank.doc as Ordinal,
                scores: link.scores,
            };
            let part = self.context.shard_of(taken.doc);
            let seq = taken.doc.into();
            out.push(kind::TAKEN, part, seq, &[bytemuck::bytes_of(&taken)])
        })?;
        let (mut ties, mut around, mut last) = (ties.finish()?, Around::default(), None);
        let mut n_repairs = 0_u64;
        let mut push = |pair| {
            n_repairs += 1;
            groups::push_pair(&self.context, pair, out)
        };
        while let Some([dropped, other]) = ties.next()? {
            if last.replace(dropped) != Some(dropped) {
                around.begin(centres.of(dropped));
            }
            match centres.of(other) {
                None => around.add(other, &mut push)?,
                Some(own) => around.add_dropped(other, own, &mut push)?,
            }
        }
        out.note(&json!({ "repairs": n_repairs }))
    }
}

/// The decision on a document that is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Dropped {
    pub(super) doc: Ordinal,
    pub(super) kept_doc: Ordinal,
    pub(super) scores: Scores,
}

/// A document, and the kept document under which its versions are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Version {
    pub(super) doc: Ordinal,
    pub(super) group: Ordinal,
}

/// The step that decides on all documents of a content. Exact duplicates arrive last, so that they
/// need not be stored.
pub(super) struct Decide {
    /// The rule for exact duplicates.
    copy_rule: Rule,
    context: Context,
    classes: BTreeMap<Ordinal, Class>,
    taken: BTreeMap<Ordinal, Taken>,
    /// The document under which the versions of a content are grouped, if it is not of its cluster.
    versions: BTreeMap<Ordinal, Ordinal>,
}

impl Decide {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            copy_rule: copy_rule(config),
            context,
            classes: BTreeMap::new(),
            taken: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    fn push_group(&self, doc: Ordinal, group: Ordinal, out: &mut Sink) -> Result<(), Error> {
        let part = self.context.shard_of(doc);
        let version = Version { doc, group };
        let bytes = [bytemuck::bytes_of(&version)];
        out.push(kind::GROUP, part, doc.into(), &bytes)
    }

    fn push(&self, dropped: &Dropped, out: &mut Sink) -> Result<(), Error> {
        let part = self.context.shard_of(dropped.doc);
        let seq = dropped.doc.into();
        out.push(kind::VERDICT, part, seq, &[bytemuck::bytes_of(dropped)])
    }

    fn push_copies(&self, copies: &Copies, out: &mut Sink) -> Result<(), Error> {
        let class = self.classes.get(&copies.first);
        let class = class.ok_or_else(|| misfit("a copy", copies.first))?;
        let (kept_doc, scores) = match self.taken.get(&copies.first) {
            Some(taken) => (taken.kept_doc, taken.scores),
            None => {
                let scores = Scores::of_copies(self.copy_rule, class.n_tokens);
                (class.best.doc as Ordinal, scores)
            }
        };
        if let Some(&group) = self.versions.get(&copies.first) {
            let mut docs = copies.docs.iter();
            docs.try_for_each(|&doc| self.push_group(doc, group, out))?;
        }
        let mut dropped = copies.docs.iter().filter(|doc| **doc != kept_doc);
        dropped.try_for_each(|&doc| {
            let dropped = Dropped {
                doc,
                kept_doc,
                scores,
            };
            self.push(&dropped, out)
        })
    }
}

impl Step for Decide {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        match message.kind {
            kind::CLASS => {
                let classes = message.records::<Class>()?.into_iter();
                self.classes
                    .extend(classes.map(|class| (class.first, class)));
            }
            kind::VERSION => {
                let versions = message.records::<Version>()?.into_iter();
                self.versions
                    .extend(versions.map(|version| (version.doc, version.group)));
            }
            kind::COPIES => {
                let copies = Copies::all(message)?;
                return copies.iter().try_for_each(|one| self.push_copies(one, out));
            }
            _ => {
                for taken in message.records::<Taken>()? {
                    if self.taken.insert(taken.doc, taken).is_some() {
                        return Err(misfit("a decision", taken.doc));
                    }
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let classes = std::mem::take(&mut self.classes);
        let taken = std::mem::take(&mut self.taken);
        for (doc, group) in std::mem::take(&mut self.versions) {
            if !classes.contains_key(&doc) {
                self.push_group(doc, group, out)?;
            }
        }
        let alone = taken.into_values();
        let mut alone = alone.filter(|taken| !classes.contains_key(&taken.doc));
        alone.try_for_each(|taken| {
            let dropped = Dropped {
                doc: taken.doc,
                kept_doc: taken.kept_doc,
                scores: taken.scores,
            };
            self.push(&dropped, out)
        })
    }
}
