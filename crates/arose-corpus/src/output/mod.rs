//! What is written: records as they came (`keep`) or as revisit records (`revisit`), and documents
//! as JSON Lines and Parquet (`write`); `rewrite` copies records with other texts in some of them.

mod archive;
pub(crate) mod keep;
mod packed;
pub(crate) mod parts;
pub(crate) mod revisit;
pub(crate) mod rewrite;
mod rows;
pub(crate) mod write;
