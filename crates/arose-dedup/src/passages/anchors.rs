//! Second stage: anchors, and those that share their hash with another anchor.
//!
//! Equal windows have anchors of equal hashes, so an anchor that is alone with its hash and not
//! tied has no repeated window, and goes. In unrelated text that is nearly all.

use std::path::Path;

use arose::mix::mix;
use arose::passage::{RollingHash, Scope, gram_length};
use arose::winnow::{Ties, anchors};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::config::Config;
use super::text::Texts;
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Anchors to look at, by place.
pub(crate) const ANCHORS: &str = "anchors";

/// How windows are found again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// Tokens in a window.
    pub(crate) n_tokens: usize,
    /// Tokens in a gram.
    pub(crate) gram: usize,
    pub(crate) ties: Ties,
    /// Makes a hash of the hash of a gram; results do not depend on it.
    pub(crate) rehash: fn(u64) -> u64,
    pub(crate) scope: Scope,
    /// Bytes for one sorter.
    pub(crate) allowance: u64,
}

impl Search {
    /// Windows of the length that the settings say.
    pub(crate) fn new(config: &Config, scope: Scope) -> Self {
        Self {
            n_tokens: config.min,
            gram: gram_length(config.min),
            ties: Ties::Robust,
            rehash: |hash| hash,
            scope,
            allowance: config.part(4),
        }
    }

    /// What is mixed into the hashes of a document, so that only equal places of its scope meet.
    pub(crate) fn salt(&self, doc: u32) -> u64 {
        match self.scope {
            Scope::Within => mix(u64::from(doc) + 1),
            Scope::Any | Scope::Across => 0,
        }
    }

    /// Anchors are few and small beside the tokens of a batch.
    pub(crate) fn batch_tokens(&self) -> u64 {
        (self.allowance / 64).clamp(1 << 12, 1 << 20)
    }
}

/// An anchor, sorted by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Hashed {
    high: u32,
    /// Its lowest bit says that the anchor is tied.
    low: u32,
    pub(crate) doc: u32,
    position: u32,
    reach: u32,
}

impl Hashed {
    /// The hash, without the bit of the tie.
    pub(crate) fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low & !1)
    }
}

/// An anchor, sorted by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Placed {
    pub(crate) doc: u32,
    position: u32,
    /// How far before the position its first window starts, and its last one, 16 bits each.
    reach: u32,
    high: u32,
    low: u32,
}

impl Placed {
    /// The hash; anchors of equal hashes form a group.
    pub(crate) fn hash(&self) -> u64 {
        u64::from(self.high) << 32 | u64::from(self.low & !1)
    }

    pub(crate) fn is_tied(&self) -> bool {
        self.low & 1 == 1
    }

    /// The first window, and how many there are.
    pub(crate) fn windows(&self) -> (u32, u32) {
        let first = self.position - (self.reach >> 16);
        let last = self.position - (self.reach & 0xFFFF);
        (first, last - first + 1)
    }

    /// How far after the first window the anchor stands.
    pub(crate) fn lead(&self) -> u32 {
        self.reach >> 16
    }
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Anchors {
    pub(crate) n_windows: u64,
    pub(crate) n_anchors: u64,
    /// Anchors that share their hash or are tied.
    pub(crate) n_shared: u64,
}

pub(crate) fn run(
    texts: &Texts,
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Anchors, Error> {
    let mut found = Anchors::default();
    let mut hashed = Sorter::<Hashed>::new(&folder.join("hashed"), search.allowance);
    texts.batches(search.batch_tokens(), progress, |batch| {
        let lists = batch
            .par_iter()
            .map(|(doc, tokens)| of_document(*doc, tokens, search));
        let lists: Vec<Vec<Hashed>> = lists.collect();
        for ((_, tokens), list) in batch.iter().zip(lists) {
            found.n_windows += (tokens.len() + 1).saturating_sub(search.n_tokens) as u64;
            found.n_anchors += list.len() as u64;
            list.into_iter()
                .try_for_each(|anchor| hashed.push(anchor))?;
        }
        Ok(())
    })?;
    let mut hashed = hashed.finish()?;
    let mut placed = Sorter::<Placed>::new(&folder.join("placed"), search.allowance);
    // The first anchor of a group waits for a second one.
    let mut waiting: Option<Hashed> = None;
    let mut group = None;
    while let Some(anchor) = hashed.next()? {
        if group != Some(anchor.hash()) {
            group = Some(anchor.hash());
            waiting = Some(anchor);
        } else {
            waiting
                .take()
                .map_or(Ok(()), |first| placed.push(at_place(first)))?;
            placed.push(at_place(anchor))?;
        }
        if let Some(tied) = waiting.take_if(|anchor| anchor.low & 1 == 1) {
            placed.push(at_place(tied))?;
        }
    }
    drop(hashed);
    found.n_shared = placed.write(&folder.join(ANCHORS))?;
    Ok(found)
}

pub(crate) fn of_document(doc: u32, tokens: &[u64], search: &Search) -> Vec<Hashed> {
    if tokens.len() < search.n_tokens {
        return Vec::new();
    }
    let mut grams = RollingHash::new(tokens).grams(search.gram);
    for hash in &mut grams {
        // The lowest bit is needed for the tie.
        *hash = (search.rehash)(*hash) & !1;
    }
    let n_grams = search.n_tokens - search.gram + 1;
    let salt = search.salt(doc);
    let anchors = anchors(&grams, n_grams, search.ties).into_iter();
    let hashed = anchors.map(|anchor| {
        let hash = match salt {
            0 => anchor.hash,
            salt => mix(anchor.hash ^ salt),
        };
        let reach = |window: usize| (anchor.position - window) as u32;
        Hashed {
            high: (hash >> 32) as u32,
            low: hash as u32 & !1 | u32::from(anchor.is_tied),
            doc,
            position: anchor.position as u32,
            reach: reach(anchor.first_window) << 16 | reach(anchor.last_window),
        }
    });
    hashed.collect()
}

pub(crate) fn at_place(anchor: Hashed) -> Placed {
    Placed {
        doc: anchor.doc,
        position: anchor.position,
        reach: anchor.reach,
        high: anchor.high,
        low: anchor.low,
    }
}
