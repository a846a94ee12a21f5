//! Groups of kept documents that are versions of the same content.
//!
//! Both steps form the clusters of a component again, from the pairs that drop documents.

use arose::rule::{Criterion, Rule};
use serde_json::json;

use super::spill::Scratch;
use super::stars::Version;
use super::wire::{Message, Sink};
use super::{Context, Step, groups, kind};
use crate::Error;
use crate::config::Config;
use crate::lookup::Flags;
use crate::record::{CandidateKey, Ordinal};
use crate::sorter::{Sorted, Sorter};
use crate::stage::cluster::{Link, Tie, take_stars};

/// Number of collected documents, besides twice the unique ones, at which they are deduplicated.
const MANY_DOCS: usize = 1 << 20;

/// A document that has no place.
const NOWHERE: u32 = u32::MAX;

/// The pairs of components while they arrive.
struct Links {
    scratch: Scratch,
    criterion: Criterion,
    all: Option<Sorter<Link>>,
    removing: Option<Sorter<Link>>,
    docs: Vec<Ordinal>,
    /// Number of documents when each was last present once.
    n_unique: usize,
}

/// The clusters of components, and all pairs.
struct ComponentClusters {
    /// By ordinal.
    docs: Vec<Ordinal>,
    is_taken: Flags,
    /// For each document, the position of the document that was kept in its place.
    kept: Vec<u32>,
    links: Sorted<Link>,
}

impl Links {
    fn new(config: &Config, context: &Context) -> Self {
        Self {
            scratch: Scratch::new(context),
            criterion: config.policy.criterion,
            all: None,
            removing: None,
            docs: Vec::new(),
            n_unique: 0,
        }
    }

    fn take(&mut self, message: &Message<'_>) -> Result<(), Error> {
        if self.all.is_none() {
            self.all = Some(self.scratch.sorter()?);
            self.removing = Some(self.scratch.sorter()?);
        }
        let (Some(all), Some(removing)) = (&mut self.all, &mut self.removing) else {
            return Ok(());
        };
        for link in message.records::<Link>()? {
            all.push(link)?;
            // Documents kept in place of versions are all kept.
            let is_first = message.kind == kind::LINK;
            if is_first && self.criterion.removes(link.scores.rule()) {
                removing.push(link)?;
            }
            self.docs.extend([link.centre, link.other]);
        }
        if self.docs.len() > 2 * self.n_unique + MANY_DOCS {
            self.sort_docs();
        }
        Ok(())
    }

    fn sort_docs(&mut self) {
        self.docs.sort_unstable();
        self.docs.dedup();
        self.n_unique = self.docs.len();
    }

    /// Forms the clusters; none if there are no pairs.
    fn end(&mut self) -> Result<Option<ComponentClusters>, Error> {
        let (Some(all), Some(removing)) = (self.all.take(), self.removing.take()) else {
            return Ok(None);
        };
        self.sort_docs();
        self.n_unique = 0;
        let docs = std::mem::take(&mut self.docs);
        let index = |doc: Ordinal| docs.partition_point(|other| *other < doc);
        let mut is_taken = Flags::new(docs.len());
        let mut kept: Vec<u32> = (0..docs.len() as u32).collect();
        let mut ties = self.scratch.sorter::<Tie>()?;
        take_stars(
            &mut removing.finish()?,
            &mut is_taken,
            index,
            &mut ties,
            |link| {
                kept[index(link.other)] = index(link.centre) as u32;
                Ok(())
            },
        )?;
        Ok(Some(ComponentClusters {
            is_taken,
            kept,
            links: all.finish()?,
            docs,
        }))
    }
}

impl ComponentClusters {
    fn kept(&self, doc: Ordinal) -> Ordinal {
        let place = self.docs.partition_point(|other| *other < doc);
        self.docs[self.kept[place] as usize]
    }
}

/// The step that finds the pairs of documents kept in place of versions.
pub(super) struct VersionPairs {
    context: Context,
    links: Links,
}

impl VersionPairs {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            links: Links::new(config, &context),
            context,
        }
    }
}

impl Step for VersionPairs {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        self.links.take(message)
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let Some(mut clusters) = self.links.end()? else {
            return Ok(());
        };
        let mut n_pairs = 0_u64;
        while let Some(link) = clusters.links.next()? {
            let [a, b] = [link.centre, link.other].map(|doc| clusters.kept(doc));
            let is_same = a == b || [a, b] == [link.centre, link.other];
            if link.scores.rule() == Rule::Content && !is_same {
                let (a, b) = (a.min(b), a.max(b));
                groups::push_pair(&self.context, CandidateKey { a, b }, out)?;
                n_pairs += 1;
            }
        }
        out.note(&json!({ "pairs": n_pairs }))
    }
}

/// The step that groups the kept documents.
pub(super) struct Groups {
    context: Context,
    links: Links,
}

impl Groups {
    pub(super) fn new(config: &Config, context: Context) -> Self {
        Self {
            links: Links::new(config, &context),
            context,
        }
    }
}

impl Step for Groups {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        self.links.take(message)
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let Some(clusters) = self.links.end()? else {
            return Ok(());
        };
        let ComponentClusters {
            docs,
            mut is_taken,
            kept,
            mut links,
        } = clusters;
        let index = |doc: Ordinal| docs.partition_point(|other| *other < doc);
        // For each document, the kept document of the content of which it is a version.
        let mut groups: Vec<u32> = vec![NOWHERE; docs.len()];
        let (mut n_groups, mut n_versions, mut last) = (0_u64, 0_u64, None);
        let mut ties = self.links.scratch.sorter::<Tie>()?;
        // Pairs of dropped documents change nothing, since these are taken already.
        take_stars(&mut links, &mut is_taken, index, &mut ties, |link| {
            let is_new = last.replace(link.centre) != Some(link.centre);
            n_groups += u64::from(is_new);
            n_versions += 1 + u64::from(is_new);
            groups[index(link.other)] = link.rank.doc as u32;
            Ok(())
        })?;
        for (&doc, &kept) in docs.iter().zip(&kept) {
            let group = groups[kept as usize];
            if group != NOWHERE {
                let part = self.context.shard_of(doc);
                let version = Version { doc, group };
                let bytes = [bytemuck::bytes_of(&version)];
                out.push(kind::VERSION, part, doc.into(), &bytes)?;
            }
        }
        out.note(&json!({ "version_groups": n_groups, "versions": n_versions }))
    }
}
