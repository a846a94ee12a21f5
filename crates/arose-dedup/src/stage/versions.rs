//! Versions: groups of kept documents with the same content.
//!
//! Under the policy `content`, documents are dropped at the level `same` by default. Kept documents
//! at the level `content` are versions of each other. Like clusters, groups of versions are stars:
//! the best document takes all its versions that are still free. So every document of a group was
//! verified to be a version of its first, and groups do not chain.
//!
//! A document of a verified pair may have been dropped. The document kept in its place replaces it,
//! if that is also a version. These pairs are verified here.

use std::fs;
use std::path::{Path, PathBuf};

use arose::rule::Rule;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::Config;
use crate::lookup::Flags;
use crate::record::{Accepted, CandidateKey, Ordinal};
use crate::sorter::Sorter;
use crate::stage::candidates::write_candidates;
use crate::stage::cluster::{Link, NOT_TAKEN, STARS, Stages, Star, take_stars};
use crate::stage::rank::Ranks;
use crate::stage::verify::{self, PAIRS};
use crate::{Error, Progress};

/// For each document that is kept and the first of its content, the document of which it is a
/// version.
pub(crate) const VERSIONS: &str = "versions";

/// The file of the pairs that were verified for this.
pub(crate) const KEPT_VERSIONS: &str = "kept";

/// The results.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct VersionResults {
    /// Number of groups of two or more kept documents.
    pub(crate) n_groups: u64,
    /// Number of kept documents in them.
    pub(crate) n_documents: u64,
}

/// Groups the kept documents by the accepted pairs in these files, and writes the groups to
/// `folder`. The additional verified pairs are added to `pairs`.
pub(crate) fn run(
    stages: &Stages<'_>,
    pairs: &mut Vec<PathBuf>,
    ranks: &Ranks,
    is_taken: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<VersionResults, Error> {
    let verified = verify_kept(stages, pairs, is_taken, config, folder, progress)?;
    pairs.push(verified);
    let mut links = Sorter::new(&folder.join("links"), config.part(4));
    for path in pairs.iter() {
        let mut pairs = Scan::<Accepted>::open(path)?;
        while let Some(pair) = pairs.next()? {
            let is_kept = |doc: Ordinal| !is_taken.is_set(doc as usize);
            if is_kept(pair.a) && is_kept(pair.b) {
                links.push(Link::new(&pair, [ranks.of(pair.a)?, ranks.of(pair.b)?]))?;
            }
        }
    }
    let mut taken = Sorter::<[Ordinal; 2]>::new(&folder.join("taken"), config.part(8));
    let mut ties = Sorter::new(&folder.join("ties"), config.part(8));
    let mut is_version = is_taken.clone();
    let index = |doc: Ordinal| doc as usize;
    let mut found = VersionResults::default();
    let mut last = NOT_TAKEN;
    let mut links = links.finish()?;
    take_stars(&mut links, &mut is_version, index, &mut ties, |link| {
        let is_new = std::mem::replace(&mut last, link.centre) != link.centre;
        found.n_groups += u64::from(is_new);
        found.n_documents += 1 + u64::from(is_new);
        taken.push([link.other, link.centre])
    })?;
    let mut taken = taken.finish()?;
    let mut next = taken.next()?;
    let mut out = Writer::create(&folder.join(VERSIONS))?;
    for doc in 0..is_taken.len() as Ordinal {
        match next.filter(|next| next[0] == doc) {
            Some([_, centre]) => {
                out.push(&centre)?;
                next = taken.next()?;
            }
            None => out.push(&doc)?,
        }
    }
    out.finish()?;
    Ok(found)
}

/// Takes pairs of versions of which at least one document was dropped, and verifies the pairs of
/// the documents kept in their place. Returns the file of the accepted pairs.
fn verify_kept(
    stages: &Stages<'_>,
    pairs: &[PathBuf],
    is_taken: &Flags,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<PathBuf, Error> {
    let stars = Column::<Star>::open(&folder.join(STARS), config.part(8))?;
    let kept = |doc: Ordinal| match is_taken.is_set(doc as usize) {
        false => Ok(doc),
        true => stars.get(doc).map(|star| star.centre),
    };
    let own = folder.join(KEPT_VERSIONS);
    fs::create_dir_all(&own).map_err(Error::io("create", &own))?;
    let mut candidates = Sorter::new(&own.join("pairs"), config.part(8));
    for path in pairs {
        let mut pairs = Scan::<Accepted>::open(path)?;
        while let Some(pair) = pairs.next()? {
            let (a, b) = (kept(pair.a)?, kept(pair.b)?);
            let is_same = a == b || (a, b) == (pair.a, pair.b);
            // A document already in an index has no kept document in the run.
            let is_held = a == NOT_TAKEN || b == NOT_TAKEN;
            if pair.scores.rule() == Rule::Content && !is_same && !is_held {
                candidates.push(CandidateKey {
                    a: a.min(b),
                    b: a.max(b),
                })?;
            }
        }
    }
    write_candidates(candidates, &own)?;
    verify::run(&stages.texts, &own, config, &own, progress)?;
    Ok(own.join(PAIRS))
}
