//! Measures arose against its plain versions and its rivals, quality beside time.
//!
//! `cargo run --release -- kernels` prints the table of `README.md`. All engines run on the same
//! texts in the same process, one after the other in each round; a figure is the median over the
//! rounds of the processor time of this one thread. Before anything is timed, the fast versions are
//! compared with the plain ones on every text.
#![forbid(unsafe_code)]

mod kernels;
mod quality;
mod texts;

use std::path::PathBuf;

use clap::Parser;

#[derive(Parser)]
enum Command {
    /// Tokens, shingles, sketches and simhash: plain, fast and gaoya.
    Kernels(Options),
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
    let Command::Kernels(options) = Command::parse();
    let texts = texts::load(&options.input, options.megabytes * 1_000_000)?;
    kernels::run(&texts, options.rounds);
    Ok(())
}
