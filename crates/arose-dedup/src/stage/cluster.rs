//! Fifth stage: clusters. A cluster is a kept document and the documents dropped for it.
//!
//! Clusters are stars, built greedily: the best remaining document takes all its partners, then the
//! next best. In a file of pairs sorted by their better document this is one pass. When it is the
//! turn of a document, all better ones have had theirs, so it is known whether it was taken; if
//! not, it takes the partners that are still free. The result is that of [`arose::cluster::stars`],
//! which needs all pairs in memory.
//!
//! Not every pair is found, so some kept documents are compared again, and the stars are rebuilt
//! with the pairs found by that ([`repair`](super::repair)).
//!
//! Memory: one bit per document in addition to the limits of sorters and lookups.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::rule::{Criterion, Remove};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::column::{Scan, Writer};
use crate::config::Config;
use crate::lookup::{Chosen, Flags, Lookup};
use crate::record::{Accepted, CandidateKey, DocRecord, Ordinal, Scores};
use crate::sorter::{Sorted, Sorter};
use crate::stage::candidates::write_candidates;
use crate::stage::columns::DOCS;
use crate::stage::indexed::{IndexMatch, MATCHES};
use crate::stage::rank::{Rank, Ranks};
use crate::stage::repair::{Around, Centre, MAX_ROUNDS};
use crate::stage::verify::{self, PAIRS, TextsIn, VerifyResults};
use crate::stage::versions::{self, VersionResults};
use crate::{Error, Progress};

/// File with the decision on each document that is the first of its exact duplicates.
pub(crate) const STARS: &str = "stars";
/// File with the exact duplicate to keep, for each document that is the first of its exact
/// duplicates.
pub(crate) const KEEPERS: &str = "keepers";

/// The decision on the first of several exact duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Star {
    /// The first document of the content for which it was dropped, or [`NOT_TAKEN`].
    pub(crate) centre: Ordinal,
    unused: u32,
    /// The scores of the deciding pair; undefined if it was not taken.
    pub(crate) scores: Scores,
}

impl Star {
    fn centre(self) -> Ordinal {
        self.centre
    }
}

/// A document that no better one took.
pub(crate) const NOT_TAKEN: Ordinal = Ordinal::MAX;

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ClusterResults {
    /// Rounds of repair that found pairs.
    pub(crate) n_repairs: u32,
    /// Number of pairs that these rounds found.
    pub(crate) n_repaired: u64,
    /// Groups of kept documents with the same content.
    pub(crate) versions: VersionResults,
}

/// Clusters the accepted pairs and writes stars and keepers to `folder`.
pub(crate) fn run(
    stages: &Stages<'_>,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<ClusterResults, Error> {
    let n_docs = Scan::<DocRecord>::open(&stages.texts.read.join(DOCS))?.left() as usize;
    let ranks = Ranks::new(stages.texts.read, stages.exact, config, folder)?;
    write_keepers(&ranks, n_docs, folder)?;
    let mut found = ClusterResults::default();
    let mut pairs = vec![stages.verify.join(PAIRS)];
    loop {
        let (is_taken, ties) = stars(stages, &pairs, &ranks, n_docs, config, folder, progress)?;
        let repair = repair_folder(folder, found.n_repairs);
        fs::create_dir_all(&repair).map_err(Error::io("create", &repair))?;
        let is_last = found.n_repairs == MAX_ROUNDS
            || find_repairs(ties, &is_taken, &ranks, config, folder, &repair)? == 0;
        let verified = match is_last {
            true => VerifyResults::default(),
            false => verify::run(&stages.texts, &repair, config, &repair, progress)?,
        };
        if verified.n_pairs > 0 {
            found.n_repairs += 1;
            found.n_repaired += verified.n_pairs;
            pairs.push(repair.join(PAIRS));
        }
        // Pairs that drop no document do not change the stars.
        if verified.n_removing == 0 {
            if config.policy.criterion == Criterion::Content(Remove::Same) {
                found.versions = versions::run(
                    stages, &mut pairs, &ranks, &is_taken, config, folder, progress,
                )?;
            }
            return Ok(found);
        }
    }
}

/// Writes which exact duplicate to keep.
pub(crate) fn write_keepers(ranks: &Ranks, n_docs: usize, folder: &Path) -> Result<(), Error> {
    let mut keepers = Writer::create(&folder.join(KEEPERS))?;
    for doc in 0..n_docs as Ordinal {
        keepers.push(&ranks.best(doc)?)?;
    }
    keepers.finish().map(drop)
}

/// The file of the pairs that a round of repair found.
pub(crate) fn repair_folder(cluster: &Path, round: u32) -> PathBuf {
    cluster.join(format!("repair{round}"))
}

/// The directories of the earlier stages.
pub(crate) struct Stages<'a> {
    pub(crate) texts: TextsIn<'a>,
    pub(crate) exact: &'a Path,
    pub(crate) verify: &'a Path,
    /// The directory of index lookups, if there is an index.
    pub(crate) lookup: Option<&'a Path>,
}

/// A pair from its better to its lesser document, in the order in which stars are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) rank: Rank,
    pub(crate) other: Ordinal,
    pub(crate) centre: Ordinal,
    pub(crate) scores: Scores,
}

impl Link {
    /// Returns the link of a pair whose documents have these ranks.
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
            scores: pair.scores,
        }
    }
}

/// A document that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Taken {
    pub(crate) doc: Ordinal,
    pub(crate) centre: Ordinal,
    pub(crate) scores: Scores,
}

/// Builds the stars of all pairs in some files. Returns the taken documents and their ties.
fn stars(
    stages: &Stages<'_>,
    pairs: &[PathBuf],
    ranks: &Ranks,
    n_docs: usize,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<(Flags, Sorter<Tie>), Error> {
    let mut links = Sorter::new(&folder.join("links"), config.part(4));
    for path in pairs {
        let mut pairs = Scan::<Accepted>::open(path)?;
        progress.expect(pairs.left());
        while let Some(pair) = pairs.next()? {
            if config.policy.criterion.removes(pair.scores.rule()) {
                links.push(Link::new(&pair, [ranks.of(pair.a)?, ranks.of(pair.b)?]))?;
            }
            progress.advance(1)?;
        }
    }
    let mut links = links.finish()?;
    let mut is_taken = taken_by_index(stages, n_docs)?;
    let mut taken = Sorter::new(&folder.join("taken"), config.part(8));
    let mut ties = Sorter::new(&folder.join("ties"), config.part(8));
    let index = |doc: Ordinal| doc as usize;
    take_stars(&mut links, &mut is_taken, index, &mut ties, |link| {
        taken.push(Taken {
            doc: link.other,
            centre: link.centre,
            scores: link.scores,
        })
    })?;
    drop(links);
    write_stars(&mut taken.finish()?, n_docs, folder)?;
    Ok((is_taken, ties))
}

/// Returns the documents already in the index, which neither take others nor are taken.
fn taken_by_index(stages: &Stages<'_>, n_docs: usize) -> Result<Flags, Error> {
    let mut is_taken = Flags::new(n_docs);
    if let Some(folder) = stages.lookup {
        let mut matches = Scan::<IndexMatch>::open(&folder.join(MATCHES))?;
        for doc in 0..n_docs {
            if matches.next()?.is_some_and(|found| found.rule().is_some()) {
                is_taken.set(doc);
            }
        }
    }
    Ok(is_taken)
}

/// A dropped document and another document of one of its pairs.
pub(crate) type Tie = [Ordinal; 2];

/// Visits links from better to lesser documents and calls `take` for each document that is taken.
///
/// `index` assigns each document its own position in `is_taken`. Every link also becomes a tie from
/// a document that is taken to the other one, which may be taken as well.
pub(crate) fn take_stars(
    links: &mut Sorted<Link>,
    is_taken: &mut Flags,
    index: impl Fn(Ordinal) -> usize,
    ties: &mut Sorter<Tie>,
    mut take: impl FnMut(&Link) -> Result<(), Error>,
) -> Result<(), Error> {
    while let Some(link) = links.next()? {
        let [other, centre] = [link.other, link.centre].map(&index);
        if is_taken.is_set(centre) {
            ties.push([link.centre, link.other])?;
            continue;
        }
        ties.push([link.other, link.centre])?;
        if !is_taken.is_set(other) {
            is_taken.set(other);
            take(&link)?;
        }
    }
    Ok(())
}

pub(crate) fn write_stars(
    taken: &mut Sorted<Taken>,
    n_docs: usize,
    folder: &Path,
) -> Result<(), Error> {
    let mut out = Writer::create(&folder.join(STARS))?;
    let mut next = taken.next()?;
    for doc in 0..n_docs as Ordinal {
        let star = match next {
            Some(this) if this.doc == doc => {
                next = taken.next()?;
                (this.centre, this.scores)
            }
            _ => (NOT_TAKEN, Scores::zeroed()),
        };
        let (centre, scores) = star;
        out.push(&Star {
            centre,
            unused: 0,
            scores,
        })?;
    }
    out.finish().map(drop)
}

/// Writes the pairs of documents that share a dropped document. Returns their number.
fn find_repairs(
    ties: Sorter<Tie>,
    is_taken: &Flags,
    ranks: &Ranks,
    config: &Config,
    folder: &Path,
    repair: &Path,
) -> Result<u64, Error> {
    let mut ties = ties.finish()?;
    let mut stars = Scan::<Star>::open(&folder.join(STARS))?;
    // The centre is looked up only for documents that were taken.
    let taken = Arc::new(Chosen::new(is_taken.clone()));
    let centres = Lookup::open_part(&folder.join(STARS), &taken, config.part(8), Star::centre)?;
    let centre_of = |centre: Ordinal| match centre {
        NOT_TAKEN => Ok(None),
        doc => ranks.of(doc).map(|rank| Some(Centre { doc, rank })),
    };
    let mut out = Sorter::new(&repair.join("pairs"), config.part(8));
    let mut tie = ties.next()?;
    let mut around = Around::default();
    let mut doc = 0;
    while let Some(star) = stars.next()? {
        around.begin(centre_of(star.centre)?);
        while let Some([dropped, other]) = tie
            && dropped == doc
        {
            if !is_taken.is_set(other as usize) {
                around.add(other, |pair: CandidateKey| out.push(pair))?;
            } else if let Some(own) = centre_of(centres.get(other)?)? {
                around.add_dropped(other, own, |pair: CandidateKey| out.push(pair))?;
            }
            tie = ties.next()?;
        }
        doc += 1;
    }
    write_candidates(out, repair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::cluster::{self, Pair, Priority};
    use arose::rule::Rule;
    use arose::{DocId, Threshold};
    use proptest::prelude::*;

    proptest! {
        /// The pass over sorted pairs builds the same stars as the graph in memory.
        #[test]
        fn stars_are_those_of_the_whole_graph(
            edges in prop::collection::btree_set((0_u32..30, 0_u32..30), 0..80)
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            let edges: Vec<_> = edges.into_iter().filter(|(a, b)| a < b).collect();
            let mut out = Writer::create(&path.join(PAIRS)).unwrap();
            for &(a, b) in &edges {
                out.push(&Accepted { a, b, scores: Scores::unknown(Rule::Jaccard) }).unwrap();
            }
            out.finish().unwrap();
            let texts = TextsIn { read: path, sites: path };
            let stages = Stages { texts, exact: path, verify: path, lookup: None };
            let (config, progress) = (Config::default(), Progress::default());
            let files = [path.join(PAIRS)];
            stars(&stages, &files, &Ranks::First, 30, &config, path, &progress).unwrap();
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
