//! Items of a reference in a corpus: decontamination and quotation search.
//!
//! [`run`] determines for each item (a document of the reference) how much of it occurs in the
//! corpus, and for each document of the corpus which items it contains. Repetition inside either
//! side does not count.
//!
//! ```text
//! read, reference ─► matches ─► items ─► documents ─► kept
//! ```
//!
//! The stage `matches` looks up every window of the corpus in a table of the reference if that fits
//! into memory (`lookup`), and otherwise sorts the anchors of both sides (`sorted`). Both write the
//! same records.

mod documents;
mod items;
mod job;
mod lookup;
mod matches;
mod report;
mod short;
mod sorted;
#[cfg(test)]
mod tests;

use std::num::NonZeroU64;
use std::path::PathBuf;

pub use job::{run, run_moved};

use crate::Moved;

/// The stages of a run, in order.
pub(crate) const STAGES: [&str; 6] = ["read", "reference", "matches", "items", "documents", "kept"];

/// The default length of a window. Runs of 13 tokens seldom occur by chance.
pub const DEFAULT_TOKENS: usize = 13;
/// The default of [`ReferenceSearch::common`].
pub const DEFAULT_COMMON: u64 = 1000;

/// Settings of a search for a reference, in addition to [`PassagesConfig`](super::PassagesConfig).
///
/// Of the latter, `remove` says whether to write the corpus without the matches, with its `cut`,
/// `seam` and `min_left`. `times`, `scope` and `removal` have no effect here.
#[derive(Debug, Clone)]
pub struct ReferenceSearch {
    /// The items.
    pub reference: Reference,
    /// Windows in more than this many documents are reported separately, e.g. licences, famous
    /// lines and instructions.
    pub common: NonZeroU64,
    /// What to do with documents that contain an item, if the corpus is written.
    pub found: MatchRemoval,
}

/// The source of the items.
#[derive(Debug, Clone)]
pub enum Reference {
    /// Files and directories.
    Files(Vec<PathBuf>),
    /// One file that is moved into the output directory.
    Table(Moved),
}

/// What to do with documents in which an item was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchRemoval {
    /// Cut the matches.
    Cut,
    /// Drop the documents.
    Drop,
}
