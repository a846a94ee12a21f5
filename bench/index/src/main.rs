//! Measures the online index, the stores on which it could have been built, and other tools.
//!
//! `README.md` has the commands and their results. Times are CPU time of the whole process,
//! including merging, beside wall time; memory is the peak reported by the operating system.
#![forbid(unsafe_code)]

mod documents;
mod growth;
mod meter;
mod others;
mod stores;
mod texts;

use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Insert generated documents into a new index and query unseen ones
    Growth {
        /// Directory of the index
        folder: PathBuf,
        /// Number of documents to insert
        #[arg(long, default_value_t = 20_000_000)]
        documents: u64,
        /// Number of queries at the end
        #[arg(long, default_value_t = 200_000)]
        queries: u64,
    },
    /// Query unseen documents in an existing index
    Query {
        /// Directory of the index
        folder: PathBuf,
        /// Number of queries
        #[arg(long, default_value_t = 200_000)]
        queries: u64,
    },
    /// Insert keys into an embedded store, or into sorted runs, and look up unseen ones
    Store {
        /// fjall, redb or runs
        engine: stores::Engine,
        /// Directory of the store
        folder: PathBuf,
        /// Number of keys to insert; runs take twenty per document
        #[arg(long, default_value_t = 20_000_000)]
        keys: u64,
    },
    /// Insert MinHash sketches into gaoya and into an index, and query edited ones
    Others {
        /// Directory of the index
        folder: PathBuf,
        /// Number of documents to insert, and of queries
        #[arg(long, default_value_t = 100_000)]
        documents: u64,
    },
    /// Insert texts into gaoya and into an index, and query edited ones
    Texts {
        /// Directory of the index
        folder: PathBuf,
        /// Documents, in any format that arose reads
        corpus: PathBuf,
        /// Number of documents to insert, and of queries
        #[arg(long, default_value_t = 100_000)]
        documents: usize,
    },
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Growth {
            folder,
            documents,
            queries,
        } => growth::insert(&folder, documents).and_then(|()| growth::query(&folder, queries)),
        Command::Query { folder, queries } => growth::query(&folder, queries),
        Command::Store {
            engine,
            folder,
            keys,
        } => stores::run(engine, &folder, keys),
        Command::Others { folder, documents } => others::run(&folder, documents),
        Command::Texts {
            folder,
            corpus,
            documents,
        } => texts::run(&folder, corpus, documents),
    }
}
