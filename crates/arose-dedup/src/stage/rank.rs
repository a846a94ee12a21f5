//! Ranks: of several duplicates, the one with the lowest rank is kept.

use std::path::Path;

use bytemuck::{Pod, Zeroable};

use crate::Error;
use crate::column::{Column, Scan, Writer};
use crate::config::{Config, Keep};
use crate::record::{Copied, DocRecord, NOT_FETCHED, Ordinal};
use crate::sorter::{Sorted, Sorter};
use crate::stage::columns::DOCS;
use crate::stage::exact::COPIES;

/// The priority of a document. The one with the lowest value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Rank {
    pub(crate) major: u64,
    pub(crate) middle: u64,
    pub(crate) minor: u64,
    pub(crate) doc: u64,
}

/// The ranks of all contents.
pub(crate) enum Ranks {
    /// By ordinal.
    First,
    /// By merit: for the first document of each content, the rank of the best exact duplicate.
    Merit(Column<Rank>),
}

/// Returns the rank of a document among those of its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Claim {
    first: u64,
    rank: Rank,
}

/// The name of the file of ranks by merit.
const RANKS: &str = "ranks";

impl Ranks {
    /// Ranks the contents: in memory if there are few documents, otherwise in a file in `folder`.
    pub(crate) fn new(
        read: &Path,
        exact: &Path,
        config: &Config,
        folder: &Path,
    ) -> Result<Self, Error> {
        if config.keep == Keep::First {
            return Ok(Self::First);
        }
        let path = folder.join(RANKS);
        let mut out = Writer::create(&path)?;
        let n_docs = write_ranks(claims(read, exact, config, folder)?, config.keep, &mut out)?;
        pad(&mut out, n_docs)?;
        out.finish()?;
        Ok(Self::Merit(Column::open(&path, config.part(4))?))
    }

    pub(crate) fn of(&self, first: Ordinal) -> Result<Rank, Error> {
        match self {
            Self::First => Ok(Rank {
                doc: first.into(),
                ..Rank::zeroed()
            }),
            Self::Merit(ranks) => ranks.get(first),
        }
    }

    /// Returns which exact duplicate of a content is kept.
    pub(crate) fn best(&self, first: Ordinal) -> Result<Ordinal, Error> {
        Ok(self.of(first)?.doc as Ordinal)
    }
}

/// Returns the ranks of all documents, as if each were unique, by content.
fn claims(
    read: &Path,
    exact: &Path,
    config: &Config,
    folder: &Path,
) -> Result<Sorted<Claim>, Error> {
    let mut docs = Scan::<DocRecord>::open(&read.join(DOCS))?;
    let mut copies = Scan::<Copied>::open(&exact.join(COPIES))?;
    let mut copy = copies.next()?;
    let mut claims = Sorter::new(&folder.join("claims"), config.part(4));
    let mut ordinal = 0;
    while let Some(doc) = docs.next()? {
        let mut first = u64::from(ordinal);
        if let Some(this) = copy.filter(|copy| copy.doc == ordinal) {
            first = this.first.into();
            copy = copies.next()?;
        }
        let rank = rank(config.keep, &doc, 1, ordinal.into());
        claims.push(Claim { first, rank })?;
        ordinal += 1;
    }
    claims.finish()
}

/// Writes the rank of each content at the position of its first document, and arbitrary values at
/// others. Returns the number of documents.
fn write_ranks(
    mut claims: Sorted<Claim>,
    keep: Keep,
    out: &mut Writer<Rank>,
) -> Result<u64, Error> {
    let mut n_docs = 0;
    let mut next = claims.next()?;
    while let Some(Claim { first, mut rank }) = next {
        let mut n_copies = 0;
        // The best copy comes first, since all have the same number of copies.
        while next.is_some_and(|claim| claim.first == first) {
            n_copies += 1;
            next = claims.next()?;
        }
        if keep == Keep::Copies {
            rank.major = by_copies(n_copies);
        }
        n_docs += n_copies;
        pad(out, first)?;
        out.push(&rank)?;
    }
    Ok(n_docs)
}

fn pad(out: &mut Writer<Rank>, n: u64) -> Result<(), Error> {
    while out.len() < n {
        out.push(&Rank::zeroed())?;
    }
    Ok(())
}

/// Smaller for a content with more documents.
fn by_copies(n_copies: u64) -> u64 {
    !n_copies
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
        Keep::Copies => (
            by_copies(n_copies),
            heaviest_first(doc.weight),
            oldest_first,
        ),
    };
    Rank {
        major,
        middle,
        minor,
        doc: ordinal,
    }
}

/// Maps a signed number to an unsigned one, preserving the order.
fn ordered(value: i64) -> u64 {
    value as u64 ^ 1 << 63
}

/// Smaller for greater weights. NaN is the smallest weight.
fn heaviest_first(weight: f64) -> u64 {
    if weight.is_nan() {
        return u64::MAX;
    }
    // The bits of positive numbers are in their order, those of negative numbers in reverse order.
    let bits = (weight + 0.0).to_bits();
    let ascending = if weight < 0.0 { !bits } else { bits | 1 << 63 };
    !ascending
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
