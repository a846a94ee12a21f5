//! Measures arose against its plain versions and its rivals, quality beside time.
//!
//! `cargo run --release -- kernels` prints the table of `README.md`. All engines run on the same
//! texts in the same process, one after the other in each round; a figure is the median over the
//! rounds of the processor time of this one thread. Before anything is timed, the fast versions are
//! compared with the plain ones on every text.
//!
//! `truth` and `floor` serve the comparison in `neardup/`: the pairs that are to be found, and the
//! least time that finding them can take.
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
    /// Tokens, shingles, sketches and simhash: plain, fast and gaoya.
    Kernels(Options),
    /// All pairs of a corpus that resemble each other, exactly: the truth that engines are held to.
    Truth {
        /// JSON lines, or whatever `arose read` reads.
        input: PathBuf,
        /// The least resemblance of a pair.
        threshold: f64,
        /// Lines of id, id, resemblance, tabs between them.
        output: PathBuf,
        /// Tokens per shingle.
        #[arg(long, default_value = "5")]
        w: NonZeroUsize,
    },
    /// Reads, parses, tokenises and shingles with one thread and does nothing else.
    Floor {
        /// JSON lines, or whatever `arose read` reads.
        input: PathBuf,
        /// Tokens per shingle.
        #[arg(long, default_value = "5")]
        w: NonZeroUsize,
    },
}

#[derive(clap::Args)]
struct Options {
    /// JSON lines with a `text` field, plain or zstd.
    #[arg(
        long,
        default_value = "../../shared/data/crawl-wikispeedia/articles.jsonl.zst"
    )]
    input: PathBuf,
    /// Rounds; the median counts.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Megabytes of text: the input is repeated, each copy with a number before it.
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
