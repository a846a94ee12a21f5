//! Finds repeated passages in files and writes the documents without them.
//!
//! [`run`] finds every string of at least [`PassagesConfig::min`] tokens that occurs more than
//! once, lists all its places, and removes the selected occurrences. The definitions are in
//! [`arose::passage`]. The job is a sequence of stages over immutable files, like [`crate::run`].
//! Each stage is a scan or a sort of at most one record per window:
//!
//! ```text
//! read ─► anchors ─► runs ─► occurrences ─► passages ─► documents ─► kept
//! ```
//!
//! Windows are grouped by their content and never paired, so a line that occurs a million times
//! needs only a million records. Records are sorted in parts that fit into little memory.

pub mod against;
mod anchors;
mod choices;
mod classes;
mod config;
mod cores;
mod cut;
mod documents;
mod frame;
mod groups;
pub mod index;
mod job;
mod kept;
mod listing;
mod occurrences;
mod partners;
mod parts;
mod place_set;
mod read;
mod report;
mod runs;
mod sheet;
mod spool;
#[cfg(test)]
mod tests;
mod text;
mod windows;

pub use choices::{Choices, Tokens, Which};
pub use config::{Digits, PassagesConfig, Remove, TextElements};
pub use job::{run, run_moved};

/// The stages of a run, in order.
pub(crate) const STAGES: [&str; 7] = [
    "read",
    "anchors",
    "runs",
    "occurrences",
    "passages",
    "documents",
    "kept",
];
