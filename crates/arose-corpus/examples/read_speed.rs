//! Reads a corpus and prints the wall time and the CPU time.
//!
//! `cargo run --release -p arose-corpus --example read_speed -- THREADS ROUNDS INPUT...`. The CPU
//! time is that of all threads together (Linux only). The best round counts. Documents are counted
//! and discarded.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

use arose_corpus::{Config, read};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [threads, rounds, inputs @ ..] = arguments.as_slice() else {
        println!("usage: read_speed THREADS ROUNDS INPUT...");
        return;
    };
    let threads: NonZeroUsize = threads.parse().expect("a number of threads");
    let rounds: usize = rounds.parse().expect("a number of rounds");
    let inputs: Vec<PathBuf> = inputs.iter().map(PathBuf::from).collect();
    let mut best = [f64::INFINITY; 2];
    let mut counts = None;
    for _ in 0..rounds {
        let start = (Instant::now(), processor_seconds());
        let config = Config {
            threads,
            ..Config::default()
        };
        let mut documents = read(&inputs, config).expect("they exist");
        documents.by_ref().for_each(drop);
        counts = Some(documents.counts().clone());
        best[0] = best[0].min(start.0.elapsed().as_secs_f64());
        best[1] = best[1].min(processor_seconds() - start.1);
    }
    let sizes = inputs.iter().filter_map(|input| input.metadata().ok());
    let megabytes = sizes.map(|metadata| metadata.len()).sum::<u64>() as f64 / 1e6;
    let counts = counts.unwrap_or_default();
    println!(
        "{threads} threads: {megabytes:.0} MB of input, {} documents, {:.0} MB of text: \
         {:.2} s, {:.2} s of CPU time, {:.0} MB of input per CPU second",
        counts.documents,
        counts.text_bytes as f64 / 1e6,
        best[0],
        best[1],
        megabytes / best[1]
    );
}

/// CPU time of this process so far, in user and system mode.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks
        .filter_map(|field| field.parse::<f64>().ok())
        .sum::<f64>()
        / 100.0
}
