//! What is dropped for what.

use std::collections::BTreeMap;

use arose::mix::mix;
use bytemuck::{Pod, Zeroable};
use serde_json::json;

use super::components::Nodes;
use super::document::Class;
use super::wire::{Message, Sink};
use super::{Context, Step, groups, kind};
use crate::Error;
use crate::lookup::Flags;
use crate::record::{Ordinal, Scores};
use crate::sorter::Sorter;
use crate::stage::cluster::{Link, Tie, take_stars};
use crate::stage::repair::{Around, Centre};

/// The step that sends the pairs of a component to one part.
pub(super) struct Attach {
    context: Context,
    nodes: Nodes,
    links: Vec<Link>,
}

impl Attach {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            nodes: Nodes::default(),
            links: Vec::new(),
        }
    }
}

impl Step for Attach {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        match message.kind {
            kind::EDGE => self.nodes.take(message)?,
            _ => self.links.extend(message.records::<Link>()?),
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let edges = self.nodes.end();
        for link in std::mem::take(&mut self.links) {
            let doc = link.centre.min(link.other);
            let at = edges.partition_point(|edge| edge.node < doc);
            let label = match edges.get(at) {
                Some(edge) if edge.node == doc => edge.other.min(doc),
                _ => doc,
            };
            let part = self.context.part_of(mix(label.into()));
            out.push(kind::LINK, part, label.into(), &[bytemuck::bytes_of(&link)]);
        }
        Ok(())
    }
}

/// The first document of a content that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Taken {
    doc: Ordinal,
    kept_doc: Ordinal,
    scores: Scores,
}

/// Bytes of links that are held before they go to a file.
const LINK_BYTES: u64 = 128 << 20;

/// Documents that may be there more than once.
const MANY_DOCS: usize = 1 << 20;

/// The step that takes documents.
pub(super) struct Stars {
    context: Context,
    links: Option<(tempfile::TempDir, Sorter<Link>, Sorter<Tie>)>,
    docs: Vec<Ordinal>,
    /// How many of them there were when each was last there once.
    n_unique: usize,
}

impl Stars {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            links: None,
            docs: Vec::new(),
            n_unique: 0,
        }
    }

    /// Every document once, by ordinal.
    fn sort_docs(&mut self) {
        self.docs.sort_unstable();
        self.docs.dedup();
        self.n_unique = self.docs.len();
    }

    fn sorter(&mut self) -> Result<&mut Sorter<Link>, Error> {
        if self.links.is_none() {
            let folder = tempfile::tempdir();
            let folder = folder.map_err(Error::io("create", &std::env::temp_dir()))?;
            let links = Sorter::new(&folder.path().join("links"), LINK_BYTES);
            let ties = Sorter::new(&folder.path().join("ties"), LINK_BYTES);
            self.links = Some((folder, links, ties));
        }
        let (_, sorter, _) = self.links.as_mut().expect("just set");
        Ok(sorter)
    }
}

impl Step for Stars {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        for link in message.records::<Link>()? {
            self.sorter()?.push(link)?;
            self.docs.extend([link.centre, link.other]);
        }
        // Not after every message: a document has many links, and there are many messages.
        if self.docs.len() > 2 * self.n_unique + MANY_DOCS {
            self.sort_docs();
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let Some((_folder, links, mut ties)) = self.links.take() else {
            return Ok(());
        };
        self.sort_docs();
        self.n_unique = 0;
        let docs = std::mem::take(&mut self.docs);
        let index = |doc: Ordinal| docs.partition_point(|other| *other < doc);
        let mut is_taken = Flags::new(docs.len());
        let mut centres: Vec<Option<Centre>> = vec![None; docs.len()];
        let mut links = links.finish()?;
        take_stars(&mut links, &mut is_taken, index, &mut ties, |link| {
            centres[index(link.other)] = Some(Centre {
                doc: link.centre,
                rank: link.rank,
            });
            let taken = Taken {
                doc: link.other,
                kept_doc: link.rank.doc as Ordinal,
                scores: link.scores,
            };
            let part = self.context.shard_of(taken.doc);
            let seq = taken.doc.into();
            out.push(kind::TAKEN, part, seq, &[bytemuck::bytes_of(&taken)]);
            Ok(())
        })?;
        let (mut ties, mut around, mut last) = (ties.finish()?, Around::default(), None);
        let mut n_repairs = 0_u64;
        let mut push = |pair| {
            n_repairs += 1;
            groups::push_pair(&self.context, pair, out);
            Ok(())
        };
        while let Some([dropped, other]) = ties.next()? {
            if last.replace(dropped) != Some(dropped) {
                around.begin(centres[index(dropped)]);
            }
            match centres[index(other)] {
                None => around.add(other, &mut push)?,
                Some(own) => around.add_dropped(other, own, &mut push)?,
            }
        }
        out.note(&json!({ "repairs": n_repairs }));
        Ok(())
    }
}

/// What happens to a document that does not stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Dropped {
    pub(super) doc: Ordinal,
    pub(super) kept_doc: Ordinal,
    pub(super) scores: Scores,
}

/// The step that decides for all documents of a content.
pub(super) struct Decide {
    context: Context,
    classes: BTreeMap<Ordinal, Class>,
    taken: Vec<Taken>,
}

impl Decide {
    pub(super) fn new(context: Context) -> Self {
        Self {
            context,
            classes: BTreeMap::new(),
            taken: Vec::new(),
        }
    }

    fn push(&self, dropped: &Dropped, out: &mut Sink) {
        let part = self.context.shard_of(dropped.doc);
        let seq = dropped.doc.into();
        out.push(kind::VERDICT, part, seq, &[bytemuck::bytes_of(dropped)]);
    }
}

impl Step for Decide {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        match message.kind {
            kind::CLASS => {
                let classes = Class::all(message)?.into_iter();
                self.classes
                    .extend(classes.map(|class| (class.first(), class)));
            }
            _ => self.taken.extend(message.records::<Taken>()?),
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let mut classes = std::mem::take(&mut self.classes);
        for taken in std::mem::take(&mut self.taken) {
            let class = classes.remove(&taken.doc);
            let copies = class.iter().flat_map(|class| &class.members[1..]);
            for doc in std::iter::once(taken.doc).chain(copies.map(|copy| copy.doc)) {
                let dropped = Dropped {
                    doc,
                    kept_doc: taken.kept_doc,
                    scores: taken.scores,
                };
                self.push(&dropped, out);
            }
        }
        for class in classes.values() {
            let kept_doc = class.best.doc as Ordinal;
            let scores = Scores::equal(class.n_tokens);
            for member in class.members.iter().filter(|member| member.doc != kept_doc) {
                let dropped = Dropped {
                    doc: member.doc,
                    kept_doc,
                    scores,
                };
                self.push(&dropped, out);
            }
        }
        Ok(())
    }
}
