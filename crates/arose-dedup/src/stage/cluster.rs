//! Fifth stage: components for statistics, stars for removal.
//!
//! Stars are greedy: the best document that is left takes all its neighbours, then the next best.
//! In a file of pairs sorted by their better document that is one pass: when a document's turn
//! comes, every better one has had its turn, so it is known whether it was taken; if not, it takes
//! the partners that are still free. The result is that of [`arose::cluster::stars`], which needs
//! all pairs in memory. Resident are five bytes a document, and thirty if another than the first
//! document of a group is to stay.

use std::path::Path;

use arose::DocId;
use arose::cluster::Components;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::column::{Scan, Writer};
use crate::config::{Config, Keep};
use crate::record::{Accepted, Copied, DocRecord, NOT_FETCHED, Ordinal};
use crate::sorter::{Sorted, Sorter};
use crate::stage::exact::COPIES;
use crate::stage::known::{KNOWN, Known};
use crate::stage::read::DOCS;
use crate::stage::verify::PAIRS;
use crate::{Error, Progress};

/// For each document the smallest ordinal of its component.
pub(crate) const LABELS: &str = "labels";
/// For each document that is the first of its content, what became of it.
pub(crate) const STARS: &str = "stars";
/// For each document that is the first of its content, which of the copies stays.
pub(crate) const KEEPERS: &str = "keepers";

/// What became of the first document of a content.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Star {
    /// Not a number if unknown.
    pub(crate) jaccard: f64,
    /// The first document of the content it was dropped for, or [`NOT_TAKEN`].
    pub(crate) centre: Ordinal,
    /// The rule's place in [`arose::rule::Rule::ALL`].
    pub(crate) rule: u32,
}

/// A document that no better one took.
pub(crate) const NOT_TAKEN: Ordinal = Ordinal::MAX;

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Clusters {
    /// Components of two documents or more, copies included.
    pub(crate) n_clusters: u64,
    pub(crate) largest: u64,
    /// Documents in them.
    pub(crate) n_members: u64,
}

/// Clusters the accepted pairs and leaves labels and verdicts in `folder`.
pub(crate) fn run(
    stages: &Stages<'_>,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Clusters, Error> {
    let n_docs = Scan::<DocRecord>::open(&stages.read.join(DOCS))?.left() as usize;
    let ranks = Ranks::new(stages, config, n_docs)?;
    stars(stages, &ranks, n_docs, config, folder, progress)?;
    let mut keepers = Writer::create(&folder.join(KEEPERS))?;
    for doc in 0..n_docs as Ordinal {
        keepers.push(&ranks.best(doc))?;
    }
    keepers.finish()?;
    drop(ranks);
    components(stages, n_docs, folder)
}

/// Where the stages before left their results.
pub(crate) struct Stages<'a> {
    pub(crate) read: &'a Path,
    pub(crate) exact: &'a Path,
    pub(crate) verify: &'a Path,
    /// Where an index was asked, if one was.
    pub(crate) known: Option<&'a Path>,
}

fn components(stages: &Stages<'_>, n_docs: usize, folder: &Path) -> Result<Clusters, Error> {
    let components = Components::new(n_docs)?;
    let unite = |a: Ordinal, b: Ordinal| components.union(DocId(a.into()), DocId(b.into()));
    let mut pairs = Scan::<Accepted>::open(&stages.verify.join(PAIRS))?;
    while let Some(pair) = pairs.next()? {
        unite(pair.a, pair.b)?;
    }
    let mut copies = Scan::<Copied>::open(&stages.exact.join(COPIES))?;
    while let Some(copy) = copies.next()? {
        unite(copy.first, copy.doc)?;
    }
    let mut out = Writer::create(&folder.join(LABELS))?;
    let mut sizes = vec![0_u32; n_docs];
    for label in components.labels() {
        out.push(&(label.0 as Ordinal))?;
        sizes[label.0 as usize] += 1;
    }
    out.finish()?;
    let groups = sizes
        .iter()
        .filter(|size| **size > 1)
        .map(|&n| u64::from(n));
    Ok(Clusters {
        n_clusters: groups.clone().count() as u64,
        largest: groups.clone().max().unwrap_or(0),
        n_members: groups.sum(),
    })
}

/// A pair from its better to its lesser document, in the order in which stars are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) rank: Rank,
    pub(crate) other: Ordinal,
    pub(crate) centre: Ordinal,
    /// Bits of the coefficient.
    pub(crate) jaccard: u64,
    pub(crate) rule: u64,
}

/// A document that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Taken {
    doc: Ordinal,
    centre: Ordinal,
    jaccard: u64,
    rule: u64,
}

fn stars(
    stages: &Stages<'_>,
    ranks: &Ranks,
    n_docs: usize,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let mut pairs = Scan::<Accepted>::open(&stages.verify.join(PAIRS))?;
    progress.expect(pairs.left());
    let mut links = Sorter::new(&folder.join("links"), config.part(4));
    while let Some(pair) = pairs.next()? {
        links.push(ranks.link(&pair))?;
        progress.advance(1)?;
    }
    let mut links = links.finish()?;
    let mut is_taken = taken_by_index(stages, n_docs)?;
    let mut taken = Sorter::new(&folder.join("taken"), config.part(8));
    let index = |doc: Ordinal| doc as usize;
    take_stars(&mut links, &mut is_taken, index, |link| {
        taken.push(Taken {
            doc: link.other,
            centre: link.centre,
            jaccard: link.jaccard,
            rule: link.rule,
        })
    })?;
    drop(links);
    write_stars(&mut taken.finish()?, n_docs, folder)
}

/// Which documents an index knows: these neither take others nor are taken.
fn taken_by_index(stages: &Stages<'_>, n_docs: usize) -> Result<Vec<bool>, Error> {
    let mut is_taken = vec![false; n_docs];
    if let Some(folder) = stages.known {
        let mut known = Scan::<Known>::open(&folder.join(KNOWN))?;
        for is_taken in &mut is_taken {
            *is_taken = known.next()?.is_some_and(|known| known.rule().is_some());
        }
    }
    Ok(is_taken)
}

/// Goes through links from better to lesser documents and tells of each that is taken.
///
/// `index` gives each document a place of its own in `is_taken`.
pub(crate) fn take_stars(
    links: &mut Sorted<Link>,
    is_taken: &mut [bool],
    index: impl Fn(Ordinal) -> usize,
    mut take: impl FnMut(&Link) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(link) = links.next()? {
        let [other, centre] = [link.other, link.centre].map(&index);
        if !is_taken[other] && !is_taken[centre] {
            is_taken[other] = true;
            take(&link)?;
        }
    }
    Ok(())
}

fn write_stars(taken: &mut Sorted<Taken>, n_docs: usize, folder: &Path) -> Result<(), Error> {
    let mut out = Writer::create(&folder.join(STARS))?;
    let mut next = taken.next()?;
    for doc in 0..n_docs as Ordinal {
        let star = match next {
            Some(this) if this.doc == doc => {
                next = taken.next()?;
                Star {
                    jaccard: f64::from_bits(this.jaccard),
                    centre: this.centre,
                    rule: this.rule as u32,
                }
            }
            _ => Star {
                jaccard: f64::NAN,
                centre: NOT_TAKEN,
                rule: 0,
            },
        };
        out.push(&star)?;
    }
    out.finish().map(drop)
}

/// How much a document deserves to stay; the least value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Rank {
    pub(crate) major: u64,
    pub(crate) middle: u64,
    pub(crate) minor: u64,
    pub(crate) doc: u64,
}

/// The ranks of all contents.
enum Ranks {
    /// By ordinal.
    First,
    /// By merit: for the first document of each content the rank of the best copy.
    Merit(Vec<Rank>),
}

impl Ranks {
    fn new(stages: &Stages<'_>, config: &Config, n_docs: usize) -> Result<Self, Error> {
        if config.keep == Keep::First {
            return Ok(Self::First);
        }
        let mut firsts: Vec<Ordinal> = (0..n_docs as Ordinal).collect();
        let mut n_copies = vec![1_u64; n_docs];
        let mut copies = Scan::<Copied>::open(&stages.exact.join(COPIES))?;
        while let Some(copy) = copies.next()? {
            firsts[copy.doc as usize] = copy.first;
            n_copies[copy.first as usize] += 1;
        }
        let mut docs = Scan::<DocRecord>::open(&stages.read.join(DOCS))?;
        let mut ranks = Vec::with_capacity(n_docs);
        let mut ordinal = 0;
        while let Some(doc) = docs.next()? {
            let first = firsts[ordinal] as usize;
            let rank = rank(config.keep, &doc, n_copies[first], ordinal as u64);
            ranks.push(rank);
            // The first document of a content has its rank before any copy has.
            ranks[first] = ranks[first].min(rank);
            ordinal += 1;
        }
        Ok(Self::Merit(ranks))
    }

    fn of(&self, first: Ordinal) -> Rank {
        match self {
            Self::First => Rank {
                doc: first.into(),
                ..Rank::zeroed()
            },
            Self::Merit(ranks) => ranks[first as usize],
        }
    }

    /// Which copy of a content stays.
    fn best(&self, first: Ordinal) -> Ordinal {
        self.of(first).doc as Ordinal
    }

    fn link(&self, pair: &Accepted) -> Link {
        Link::new(pair, [self.of(pair.a), self.of(pair.b)])
    }
}

impl Link {
    /// A pair whose contents have these ranks.
    pub(crate) fn new(pair: &Accepted, [a, b]: [Rank; 2]) -> Self {
        let (rank, centre, other) = if a < b {
            (a, pair.a, pair.b)
        } else {
            (b, pair.b, pair.a)
        };
        Self {
            rank,
            other,
            centre,
            jaccard: pair.jaccard.to_bits(),
            rule: pair.rule.into(),
        }
    }
}

pub(crate) fn rank(keep: Keep, doc: &DocRecord, n_copies: u64, ordinal: u64) -> Rank {
    let known = doc.fetched != NOT_FETCHED;
    let newest_first = if known {
        !ordered(doc.fetched)
    } else {
        u64::MAX
    };
    let oldest_first = if known {
        ordered(doc.fetched)
    } else {
        u64::MAX
    };
    let (major, middle, minor) = match keep {
        Keep::First => (0, 0, 0),
        Keep::Longest => (!u64::from(doc.n_bytes), 0, 0),
        Keep::Newest => (newest_first, 0, 0),
        Keep::Priority => (heaviest_first(doc.weight), 0, 0),
        Keep::Copies => (!n_copies, heaviest_first(doc.weight), oldest_first),
    };
    Rank {
        major,
        middle,
        minor,
        doc: ordinal,
    }
}

/// A signed number as an unsigned one of the same order.
fn ordered(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

/// Smaller for heavier; what is not a number is lightest.
fn heaviest_first(weight: f64) -> u64 {
    if weight.is_nan() {
        return u64::MAX;
    }
    // The bits of positive numbers are in their order, those of negative ones in the reverse.
    let bits = (weight + 0.0).to_bits();
    let ascending = if weight < 0.0 { !bits } else { bits | 1 << 63 };
    !ascending
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::Threshold;
    use arose::cluster::{self, Pair, Priority};
    use proptest::prelude::*;

    #[test]
    fn heavier_is_better_and_no_weight_is_worst() {
        let weights = [
            f64::INFINITY,
            2.5,
            1.0,
            0.0,
            -1.0,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let keys = weights.map(heaviest_first);
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        assert_eq!(heaviest_first(0.0), heaviest_first(-0.0));
    }

    proptest! {
        /// The pass over sorted pairs makes the stars that the graph in memory has.
        #[test]
        fn stars_are_those_of_the_whole_graph(
            edges in prop::collection::btree_set((0_u32..30, 0_u32..30), 0..80)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a < b).collect();
            let mut out = Writer::create(&path.join(PAIRS)).unwrap();
            for &(a, b) in &edges {
                out.push(&Accepted { a, b, jaccard: 0.9, b_sim: 6, c_sim: 384, rule: 1 }).unwrap();
            }
            out.finish().unwrap();
            let stages = Stages { read: path, exact: path, verify: path, known: None };
            let config = Config::default();
            stars(&stages, &Ranks::First, 30, &config, path, &Progress::default()).unwrap();
            let mut found = Vec::new();
            let mut scan = Scan::<Star>::open(&path.join(STARS)).unwrap();
            while let Some(star) = scan.next().unwrap() {
                found.push(star.centre);
            }
            let pairs: Vec<Pair> = edges.iter().map(|&(a, b)| Pair {
                a: DocId(a.into()), b: DocId(b.into()), similarity: 0.9,
            }).collect();
            let mut expected = vec![NOT_TAKEN; 30];
            let tau = Threshold::new(0.8).unwrap();
            for star in cluster::stars(&pairs, tau, Priority::of) {
                for member in star.members {
                    expected[member.doc.0 as usize] = star.representative.0 as Ordinal;
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
