//! The suffix array of the words of a corpus: what a search for repeated passages costs with it.
//!
//! Reads JSON lines with a `text` field, numbers the words that `arose` compares, and builds their
//! suffix array and the array of longest common prefixes with libsais on one thread. Prints the CPU
//! time of each step; a whole tool would still have to list the repeated ranges.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};

use anyhow::{Context, anyhow};
use arose::token::Tokenizer;
use libsais::SuffixArrayConstruction;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).context("name a file of JSON lines")?;
    let begin = cpu_seconds();
    let mut numbers: HashMap<u64, i32> = HashMap::new();
    let mut text: Vec<i32> = Vec::new();
    let tokenizer = Tokenizer::default();
    for line in BufReader::new(File::open(path)?).lines() {
        let document: Value = serde_json::from_str(&line?)?;
        let words = tokenizer.tokens(document["text"].as_str().unwrap_or_default());
        for word in words.fingerprints {
            let next = numbers.len() as i32 + 1;
            text.push(*numbers.entry(word).or_insert(next));
        }
        // Ends of documents, so that nothing is found across them.
        text.push(0);
    }
    let read = cpu_seconds();
    let suffixes = SuffixArrayConstruction::for_text_mut(&mut text)
        .in_owned_buffer32()
        .single_threaded()
        .run()
        .map_err(|error| anyhow!("{error:?}"))?;
    let (n_tokens, sorted) = (suffixes.suffix_array().len(), cpu_seconds());
    let plcp = suffixes
        .plcp_construction()
        .single_threaded()
        .run()
        .map_err(|error| anyhow!("{error:?}"))?;
    let repeated = plcp.plcp().iter().filter(|length| **length >= 50).count();
    let found = json!({
        "tokens": n_tokens,
        "suffixes that share 50 tokens with the one before": repeated,
        "cpu_seconds": {
            "read": read - begin,
            "suffix array": sorted - read,
            "common prefixes": cpu_seconds() - sorted,
        },
    });
    println!("{found}");
    Ok(())
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
