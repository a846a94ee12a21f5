//! Which of several duplicates is kept: the one of the least rank.

use std::path::Path;

use bytemuck::{Pod, Zeroable};

use crate::Error;
use crate::column::Scan;
use crate::config::{Config, Keep};
use crate::record::{Copied, DocRecord, NOT_FETCHED, Ordinal};
use crate::stage::exact::COPIES;
use crate::stage::read::DOCS;

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
pub(crate) enum Ranks {
    /// By ordinal.
    First,
    /// By merit: for the first document of each content the rank of the best copy.
    Merit(Vec<Rank>),
}

impl Ranks {
    pub(crate) fn new(
        read: &Path,
        exact: &Path,
        config: &Config,
        n_docs: usize,
    ) -> Result<Self, Error> {
        if config.keep == Keep::First {
            return Ok(Self::First);
        }
        let mut firsts: Vec<Ordinal> = (0..n_docs as Ordinal).collect();
        let mut n_copies = vec![1_u64; n_docs];
        let mut copies = Scan::<Copied>::open(&exact.join(COPIES))?;
        while let Some(copy) = copies.next()? {
            firsts[copy.doc as usize] = copy.first;
            n_copies[copy.first as usize] += 1;
        }
        let mut docs = Scan::<DocRecord>::open(&read.join(DOCS))?;
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

    pub(crate) fn of(&self, first: Ordinal) -> Rank {
        match self {
            Self::First => Rank {
                doc: first.into(),
                ..Rank::zeroed()
            },
            Self::Merit(ranks) => ranks[first as usize],
        }
    }

    /// Which copy of a content stays.
    pub(crate) fn best(&self, first: Ordinal) -> Ordinal {
        self.of(first).doc as Ordinal
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
