//! What is written: records as they came (`keep`) or as revisit records (`revisit`), and documents
//! as JSON Lines and Parquet (`write`); `rewrite` copies records with other texts in some of them.

pub(crate) mod keep;
pub(crate) mod revisit;
pub(crate) mod rewrite;
pub(crate) mod write;
