//! Output: unchanged records (`keep`), revisit records (`revisit`), documents as JSON Lines and
//! Parquet (`write`), and records with changed texts (`rewrite`).

mod archive;
pub(crate) mod keep;
mod packed;
pub(crate) mod parts;
pub(crate) mod revisit;
pub(crate) mod rewrite;
mod rows;
pub(crate) mod write;
