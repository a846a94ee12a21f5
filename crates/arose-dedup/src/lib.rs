//! Exact and near duplicates in files, from the input to the documents kept, with evidence.
#![forbid(unsafe_code)]

pub mod index;
