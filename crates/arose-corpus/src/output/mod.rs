//! What is written: records as they came (`keep`) or as revisit records (`revisit`), and documents
//! as JSON Lines and Parquet (`write`).

pub(crate) mod keep;
pub(crate) mod revisit;
pub(crate) mod write;
