//! Evaluation: precision and recall of rules and of runs.
//!
//! *Question.* A rule says which documents are duplicates. How often is it right, how much does it
//! find, and which settings should be the default?
//!
//! *Idea.* Only a truth that does not come from the rule can answer. There are two kinds here.
//! People have judged pairs: [`gold`] reads them, and [`pairs`] puts every rule and every threshold
//! beside their judgement; [`difference`] says what kind of text two documents differ in. Or the
//! corpus was made, so that its copies are known: [`plant`] makes one, and [`run`] scores the
//! output folder of a run by it. [`ratings`] keeps what people say of sampled pairs of a run, and
//! makes tables of it. [`metric`] holds the figures: counts of right and wrong, the chance of
//! ranking a copy above a stranger, intervals.
//!
//! *Papers.* The classes and the tables by B-sim and C-sim are those of Henzinger 2006.
//!
//! *Cost.* Gold sets are held in memory, as shingle sets: about 30 bytes a token. Planted corpora
//! are made one page at a time, and scoring holds some 40 bytes a document and 24 a planted pair.
//!
//! *Error.* Of planted corpora none: the truth is counted, not estimated. Of judged pairs the
//! sampling error, which the intervals state, and the judges', which nothing states.
//!
//! *Not for* choosing a threshold on a gold set and quoting its score on the same set as if it were
//! news.

pub mod difference;
mod error;
pub mod gold;
mod lines;
pub mod metric;
pub mod pairs;
pub mod plant;
pub mod ratings;
pub mod run;

pub use error::Error;
