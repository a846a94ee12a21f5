//! Measures the online index, the stores it could have been built on, and its rivals.
//!
//! `README.md` has the commands and what they gave. Times are processor time of the whole process,
//! merging included, beside wall time; memory is the peak that the system reports.
#![forbid(unsafe_code)]

mod documents;
mod growth;
mod meter;
mod rivals;
mod stores;
mod texts;

use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Inserts generated documents into a new index and asks for unseen ones.
    Growth {
        /// The folder of the index.
        folder: PathBuf,
        /// Documents to insert.
        #[arg(long, default_value_t = 20_000_000)]
        documents: u64,
        /// Questions to ask in the end.
        #[arg(long, default_value_t = 200_000)]
        queries: u64,
    },
    /// Asks an index made before for unseen documents.
    Query {
        /// The folder of the index.
        folder: PathBuf,
        /// Questions to ask.
        #[arg(long, default_value_t = 200_000)]
        queries: u64,
    },
    /// Puts keys into an embedded store, or into runs, and asks for unseen ones.
    Store {
        /// fjall, redb or runs.
        engine: stores::Engine,
        /// The folder of the store.
        folder: PathBuf,
        /// Keys to insert; runs take twenty a document.
        #[arg(long, default_value_t = 20_000_000)]
        keys: u64,
    },
    /// Inserts min-hash signatures into gaoya and into an index, and asks for edited ones.
    Rivals {
        /// The folder of the index.
        folder: PathBuf,
        /// Documents to insert, and questions to ask.
        #[arg(long, default_value_t = 100_000)]
        documents: u64,
    },
    /// Inserts texts into gaoya and into an index, and asks for edited ones.
    Texts {
        /// The folder of the index.
        folder: PathBuf,
        /// The documents, in any format that is read.
        corpus: PathBuf,
        /// Documents to insert, and questions to ask.
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
        Command::Rivals { folder, documents } => rivals::run(&folder, documents),
        Command::Texts {
            folder,
            corpus,
            documents,
        } => texts::run(&folder, corpus, documents),
    }
}
