//! Measures arose, its reference implementations and other tools, with quality beside time.
//!
//! `cargo run --release -- kernels` prints the table of `README.md`. All tools run on the same
//! texts in the same process, one after the other in each round. A number is the median over the
//! rounds of the CPU time of this one thread. Before anything is timed, the optimized versions are
//! compared with the reference implementations on every text.
//!
//! `truth` and `floor` serve the comparison in `neardup/`: the pairs to be found, and the minimum
//! time in which they can be found.
#![forbid(unsafe_code)]

mod floor;
mod kernels;
mod quality;
mod texts;
mod truth;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Tokens, shingles, sketches and simhash: reference, optimized and gaoya
    Kernels(Options),
    /// All similar pairs of a corpus, computed exactly: the ground truth
    Truth {
        /// JSON Lines, or any other format that `arose read` reads
        input: PathBuf,
        /// Minimum similarity of a pair
        threshold: f64,
        /// Lines of ID, ID and similarity, separated by tabs
        output: PathBuf,
        /// Tokens per shingle
        #[arg(long, default_value = "5")]
        w: NonZeroUsize,
    },
    /// Read, parse, tokenize and shingle with one thread, and do nothing else
    Floor {
        /// JSON Lines, or any other format that `arose read` reads
        input: PathBuf,
        /// Tokens per shingle
        #[arg(long, default_value = "5")]
        w: NonZeroUsize,
    },
}

#[derive(clap::Args)]
struct Options {
    /// JSON Lines with a `text` field, uncompressed or compressed with zstd
    #[arg(
        long,
        default_value = "../../shared/data/crawl-wikispeedia/articles.jsonl.zst"
    )]
    input: PathBuf,
    /// Number of rounds; the median counts
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Megabytes of text: the input is repeated, each copy with a number before it
    #[arg(long, default_value_t = 40)]
    megabytes: usize,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Kernels(options) => {
            let texts = texts::load(&options.input, options.megabytes * 1_000_000)?;
            kernels::run(&texts, options.rounds);
            Ok(())
        }
        Command::Truth {
            input,
            threshold,
            output,
            w,
        } => truth::run(&input, threshold, w, &output),
        Command::Floor { input, w } => floor::run(&input, w),
    }
}
