//! What is written: records as they came (`keep`), and documents as JSON lines and Parquet (`write`).

pub(crate) mod keep;
pub(crate) mod write;
