//! Evaluation: precision and recall of rules and of runs.
//!
//! *Question.* A rule decides which documents are duplicates. How often is it correct, how much
//! does it find, and which settings should be the default?
//!
//! *Idea.* Only a ground truth that does not come from the rule can answer. There are two kinds.
//! People have labelled pairs: [`labelled`] reads them, [`pairs`] compares every rule and threshold
//! with the labels, and [`difference`] classifies the differences of two documents. Or the corpus
//! was generated, so that its duplicates are known: [`plant`] generates one, and [`run`] scores the
//! output directory of a run against it. [`ratings`] stores the ratings of sampled pairs of a run
//! and computes tables of them. [`metric`] has the metrics: counts of correct and incorrect pairs,
//! the probability that a duplicate scores above a distinct pair, and intervals.
//!
//! *Papers.* The classes and the tables by B-sim and C-sim are those of Henzinger 2006.
//!
//! *Cost.* Labelled pairs are stored in memory as shingle sets: about 30 bytes per token. Planted
//! corpora are generated one page at a time, and scoring needs about 40 bytes per document and 24
//! per planted pair.
//!
//! *Error.* None for planted corpora: the ground truth is counted, not estimated. Labelled pairs
//! have a sampling error, which the intervals state, and errors of the raters, which they do not.
//!
//! *Not for* choosing a threshold on labelled pairs and quoting its score on the same pairs.

pub mod difference;
mod error;
pub mod labelled;
mod lines;
pub mod metric;
pub mod pairs;
pub mod plant;
pub mod ratings;
pub mod run;

pub use error::Error;
