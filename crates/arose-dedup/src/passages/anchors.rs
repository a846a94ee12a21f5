//! Second stage: the anchors of all documents, in parts by their hash.
//!
//! An anchor stands for the windows that selected it. Its record has a hash of their tokens, so
//! that later stages can tell which anchors have equal windows without reading tokens.

use std::path::Path;

use arose::mix::mix;
use arose::passage::{RollingHash, Scope, gram_length};
use arose::winnow::{Anchor, Ties, anchors};
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::config::PassagesConfig;
use super::parts::{Keyed, MAX_PARTS, Parts};
use super::text::Texts;
use crate::{Error, Progress};

/// Anchors, in parts by their hash.
pub(crate) const ANCHORS: &str = "anchors";

/// Limits of the number of tokens whose anchors form a part.
const MIN_PART_TOKENS: u64 = 1 << 6;
const MAX_PART_TOKENS: u64 = 1 << 21;
/// More memory does not make a sorter faster.
const MAX_ALLOWANCE: u64 = 32 << 20;

/// How equal windows are found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// Tokens in a window.
    pub(crate) n_tokens: usize,
    /// Tokens in a gram.
    pub(crate) gram: usize,
    pub(crate) ties: Ties,
    /// Replaces the hash of a gram. Results do not depend on it.
    pub(crate) rehash: Option<fn(u64) -> u64>,
    pub(crate) scope: Scope,
    /// Memory for one sorter, in bytes.
    pub(crate) allowance: u64,
}

impl Search {
    /// Creates a search with the window length of the settings.
    pub(crate) fn new(config: &PassagesConfig, scope: Scope) -> Self {
        Self {
            n_tokens: config.min,
            gram: gram_length(config.min),
            ties: Ties::Robust,
            rehash: None,
            scope,
            allowance: config.part(8).min(MAX_ALLOWANCE),
        }
    }

    /// Returns a salt for the hashes of a document, so that only equal places in its scope have
    /// equal hashes.
    pub(crate) fn salt(&self, doc: u32) -> u64 {
        match self.scope {
            Scope::Within => mix(u64::from(doc) + 1),
            Scope::Any | Scope::Across => 0,
        }
    }

    /// Returns the number of tokens whose anchors form a part, which is sorted in memory.
    fn part_tokens(&self) -> u64 {
        (self.allowance / 8).clamp(MIN_PART_TOKENS, MAX_PART_TOKENS)
    }

    /// Anchors are few and small beside the tokens of a batch.
    pub(crate) fn batch_tokens(&self) -> u64 {
        (self.allowance / 64).clamp(1 << 12, 1 << 17)
    }
}

/// An anchor, sorted by its hash and the content of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Member {
    /// The hash of the selected gram, scattered, since the highest bits of minima are mostly zero.
    pub(crate) hash: u64,
    /// A hash of the tokens of all its windows, and of the place of the anchor in them.
    pub(crate) content: u64,
    pub(crate) doc: u32,
    /// The first window.
    pub(crate) first: u32,
    /// The first token in the file of tokens, the number of windows, and whether the anchor is
    /// tied: 46, 17 and 1 bits.
    extent: u64,
    /// The number of tokens from the first window to the gram that was selected.
    pub(crate) lead: u64,
}

/// Maximum number of tokens of a corpus, so that each has a number of 46 bits.
const MAX_TOKENS: u64 = 1 << 46;

impl Keyed for Member {
    fn key(&self) -> u64 {
        self.hash
    }
}

impl Member {
    pub(crate) fn tokens_at(&self) -> u64 {
        self.extent >> 18
    }

    pub(crate) fn n_windows(&self) -> u32 {
        (self.extent >> 1) as u32 & 0x1_FFFF
    }

    pub(crate) fn is_tied(&self) -> bool {
        self.extent & 1 == 1
    }
}

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Anchors {
    pub(crate) n_windows: u64,
    pub(crate) n_anchors: u64,
    pub(crate) n_parts: u64,
}

pub(crate) fn run(
    texts: &Texts,
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Anchors, Error> {
    let n_tokens = texts.n_tokens()?;
    if n_tokens >= MAX_TOKENS {
        return Err(Error::TooManyTokens);
    }
    let n_parts = (n_tokens / search.part_tokens())
        .next_power_of_two()
        .clamp(1, MAX_PARTS);
    let mut parts = Parts::create(&folder.join(ANCHORS), n_parts)?;
    let mut found = Anchors {
        n_parts,
        ..Anchors::default()
    };
    let mut tokens_at = 0;
    texts.batches(search.batch_tokens(), progress, |batch| {
        let lists = batch
            .par_iter()
            .map(|(doc, tokens)| members(*doc, tokens, search));
        let lists: Vec<Vec<Member>> = lists.collect();
        for ((_, tokens), list) in batch.iter().zip(lists) {
            found.n_windows += (tokens.len() + 1).saturating_sub(search.n_tokens) as u64;
            for mut member in list {
                member.extent += (tokens_at + u64::from(member.first)) << 18;
                parts.push(part(member.hash, n_parts), &member)?;
            }
            tokens_at += tokens.len() as u64;
        }
        Ok(())
    })?;
    found.n_anchors = parts.finish()?;
    Ok(found)
}

fn part(hash: u64, n_parts: u64) -> u64 {
    ((u128::from(hash) * u128::from(n_parts)) >> 64) as u64
}

/// Returns the anchors of a document, and their hashes, whose lowest bit is zero.
pub(crate) fn of_document(
    doc: u32,
    tokens: &[u64],
    search: &Search,
) -> impl Iterator<Item = (u64, Anchor)> {
    salted(doc, selected(tokens, search).1, search)
}

/// Returns the hashes of all grams of a document, and its anchors.
fn selected(tokens: &[u64], search: &Search) -> (Vec<u64>, Vec<Anchor>) {
    if tokens.len() < search.n_tokens {
        return (Vec::new(), Vec::new());
    }
    let grams = RollingHash::new(tokens).grams(search.gram);
    let n_grams = search.n_tokens - search.gram + 1;
    let found = match search.rehash {
        None => anchors(&grams, n_grams, search.ties),
        Some(rehash) => {
            let hashes: Vec<u64> = grams.iter().map(|hash| rehash(*hash)).collect();
            anchors(&hashes, n_grams, search.ties)
        }
    };
    (grams, found)
}

fn salted(
    doc: u32,
    found: Vec<Anchor>,
    search: &Search,
) -> impl Iterator<Item = (u64, Anchor)> + use<> {
    let salt = search.salt(doc);
    found.into_iter().map(move |anchor| match salt {
        0 => (anchor.hash & !1, anchor),
        salt => (mix(anchor.hash ^ salt) & !1, anchor),
    })
}

/// The same, as records without the position of the document's tokens.
fn members(doc: u32, tokens: &[u64], search: &Search) -> Vec<Member> {
    let (grams, found) = selected(tokens, search);
    let members = salted(doc, found, search).map(|(hash, anchor)| {
        let end = anchor.last_window + search.n_tokens;
        let lead = (anchor.position - anchor.first_window) as u64;
        let n_windows = (anchor.last_window - anchor.first_window + 1) as u64;
        Member {
            hash: mix(hash),
            content: content(&grams, search.gram, anchor.first_window, end) ^ mix(lead + 1),
            doc,
            first: anchor.first_window as u32,
            extent: n_windows << 1 | u64::from(anchor.is_tied),
            lead,
        }
    });
    members.collect()
}

/// Returns a hash of a range of tokens, which has at least the length of a gram. The grams that
/// cover it determine its tokens, so they need not be read again.
fn content(grams: &[u64], gram: usize, start: usize, end: usize) -> u64 {
    let last = end - gram;
    let before = (start..last).step_by(gram).map(|at| grams[at]);
    let all = before.chain([grams[last]]);
    all.fold((end - start) as u64, |hash, gram| mix(hash ^ gram))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    #[test]
    fn content_tells_ranges_apart() {
        let mut random = SplitMix::new(3);
        let tokens: Vec<u64> = (0..200).map(|_| random.below(2)).collect();
        for gram in [1, 2, 7, 25] {
            let grams = RollingHash::new(&tokens).grams(gram);
            let ranges = (0..150).flat_map(|start| (gram..=40).map(move |n| start..start + n));
            let mut seen = std::collections::HashMap::new();
            for range in ranges {
                let hash = content(&grams, gram, range.start, range.end);
                let same = &tokens[seen.entry(hash).or_insert_with(|| range.clone()).clone()];
                assert_eq!(same, &tokens[range]);
            }
            let distinct: std::collections::HashSet<&[u64]> = (0..150)
                .flat_map(|start| (gram..=40).map(move |n| start..start + n))
                .map(|range| &tokens[range])
                .collect();
            assert_eq!(seen.len(), distinct.len());
        }
    }
}
