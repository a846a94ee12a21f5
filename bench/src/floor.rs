//! The floor: the cost of reading, parsing, tokens and shingles alone.
//!
//! Every tool has to do these steps, so no batch job built from the same parts can be faster. The
//! time of a job above the floor is the cost of sketches, candidates, verification and output.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::path::Path;

use arose::shingle::Shingler;
use arose::token::Tokenizer;
use arose_corpus::{Config, Item};
use rustix::time::{ClockId, clock_gettime};

/// Tokens and shingles of one document, in reused memory.
#[derive(Default)]
struct Scratch {
    tokens: Vec<u64>,
    shingles: Vec<u64>,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Prints the number of documents and shingles, and the CPU time of one worker thread and of the
/// main thread.
pub fn run(input: &Path, w: NonZeroUsize) -> anyhow::Result<()> {
    let (tokenizer, shingler) = (Tokenizer::default(), Shingler::new(w));
    let config = Config {
        threads: NonZeroUsize::MIN,
        ..Config::default()
    };
    let begin = processor_seconds();
    let counts = arose_corpus::read_map(&[input.to_owned()], config, move |item| match item {
        Item::Document(document) => Some(n_shingles(&tokenizer, &shingler, &document.text)),
        Item::Skipped(_) => None,
    })?;
    let (mut n_documents, mut n_shingles) = (0, 0);
    for count in counts.flatten() {
        n_documents += 1;
        n_shingles += count;
    }
    let seconds = processor_seconds() - begin;
    let megabytes = std::fs::metadata(input)?.len() as f64 / 1e6;
    let rate = megabytes / seconds;
    println!("{n_documents} documents, {n_shingles} shingles, {seconds:.3} CPU s, {rate:.0} MB/s");
    Ok(())
}

fn n_shingles(tokenizer: &Tokenizer, shingler: &Shingler, text: &str) -> usize {
    SCRATCH.with_borrow_mut(|Scratch { tokens, shingles }| {
        tokens.clear();
        shingles.clear();
        tokenizer.fingerprints_into(text, tokens);
        shingler.shingles_into(tokens, shingles);
        shingles.len()
    })
}

/// CPU time of all threads of this process.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
