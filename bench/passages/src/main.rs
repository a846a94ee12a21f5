//! Repeated passages by a suffix array: the same search as `arose passages`, to compare it with.
//!
//!     arose-bench-passages CORPUS.jsonl OUT
//!
//! Reads the corpus with the reader of `arose`, numbers its words, and builds their suffix array
//! and the longest common prefixes with libsais on one thread. From these it finds every passage of at
//! least 50 tokens, and writes passages and places as tables of tab-separated text. Prints the CPU
//! time of each step and the counts that `arose passages` has in its summary.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use arose::passage::Cells;
use arose::token::Tokenizer;
use arose_corpus::{Config, Item};
use libsais::SuffixArrayConstruction;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// Tokens in a window.
const MIN: i32 = 50;
/// The end of a document, until all words have numbers.
const END: i32 = -1;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let path = arguments.next().context("name a file of JSON lines")?;
    let out = arguments
        .next()
        .context("name a directory for the tables")?;
    std::fs::create_dir_all(&out)?;
    let mut clock = Clock::new();
    let mut corpus = Corpus::read(&path)?;
    clock.step("read");
    let windows = Windows::find(&mut corpus.text, &mut clock)?;
    let counts = write(&corpus, &windows, &out)?;
    clock.step("list");
    println!(
        "{}",
        json!({ "counts": counts, "cpu_seconds": clock.steps })
    );
    Ok(())
}

/// All documents as numbers of words, each with a number of its own at its end.
struct Corpus {
    text: Vec<i32>,
    /// The number at the end of the first document. Those of words are less.
    first_end: i32,
    /// The first byte of each word in its document.
    starts: Vec<u32>,
}

impl Corpus {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let config = Config {
            threads: NonZeroUsize::MIN,
            ..Config::default()
        };
        let mut numbers: HashMap<u64, i32, BuildHasherDefault<Hashed>> = HashMap::default();
        let (mut text, mut starts) = (Vec::new(), Vec::new());
        let (mut words, mut places) = (Vec::new(), Vec::new());
        for item in arose_corpus::read(&[path.to_owned()], config)? {
            let Item::Document(document) = item else {
                continue;
            };
            words.clear();
            places.clear();
            Tokenizer::default().fingerprints_with_starts(&document.text, &mut words, &mut places);
            for word in &words {
                let next = numbers.len() as i32;
                text.push(*numbers.entry(*word).or_insert(next));
            }
            text.push(END);
            let places = places.iter().map(|place| *place as usize);
            starts.extend_from_slice(Cells::new(&document.text, places).starts());
            starts.push(document.text.len() as u32);
        }
        let first_end = numbers.len() as i32;
        let ends = text.iter_mut().filter(|number| **number == END);
        (first_end..)
            .zip(ends)
            .for_each(|(number, end)| *end = number);
        Ok(Self {
            text,
            first_end,
            starts,
        })
    }
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("keys are numbers")
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// The windows that occur more than once, by the position of their first word.
struct Windows {
    /// Number of places, 0 for a window that occurs once.
    counts: Vec<u32>,
    /// The first place.
    firsts: Vec<u32>,
    /// Whether all places of the window are followed by the same word.
    is_followed: Vec<bool>,
}

impl Windows {
    fn find(text: &mut Vec<i32>, clock: &mut Clock) -> anyhow::Result<Self> {
        let n = text.len();
        let suffixes = SuffixArrayConstruction::for_text_mut(text)
            .in_owned_buffer32()
            .single_threaded()
            .run()
            .map_err(|error| anyhow!("{error:?}"))?;
        clock.step("suffix array");
        let prefixes = suffixes
            .plcp_construction()
            .single_threaded()
            .run()
            .map_err(|error| anyhow!("{error:?}"))?;
        clock.step("common prefixes");
        let mut windows = Self {
            counts: vec![0; n],
            firsts: vec![0; n],
            is_followed: vec![false; n],
        };
        let (suffixes, prefixes) = (prefixes.suffix_array(), prefixes.plcp());
        let mut begin = 0;
        while begin < n {
            let mut end = begin + 1;
            let mut least = i32::MAX;
            while end < n && prefixes[suffixes[end] as usize] >= MIN {
                least = least.min(prefixes[suffixes[end] as usize]);
                end += 1;
            }
            if end > begin + 1 {
                windows.set(&suffixes[begin..end], least > MIN);
            }
            begin = end;
        }
        clock.step("windows");
        Ok(windows)
    }

    fn set(&mut self, places: &[i32], is_followed: bool) {
        let first = *places.iter().min().expect("two places or more") as u32;
        for place in places {
            self.counts[*place as usize] = places.len() as u32;
            self.firsts[*place as usize] = first;
            self.is_followed[*place as usize] = is_followed;
        }
    }

    /// Whether a window and the next one have the same places.
    fn is_joined(&self, place: usize) -> bool {
        self.is_followed[place] && self.counts.get(place + 1) == Some(&self.counts[place])
    }
}

/// Writes the tables. Returns the counts.
fn write(corpus: &Corpus, windows: &Windows, out: &Path) -> anyhow::Result<serde_json::Value> {
    let mut places = BufWriter::new(File::create(out.join("places.tsv"))?);
    let mut passages = BufWriter::new(File::create(out.join("passages.tsv"))?);
    let (mut document, mut begin, mut covered_to) = (0, 0, 0);
    let (mut n_occurrences, mut n_passages, mut n_covered) = (0, 0, 0);
    let mut place = 0;
    while place < corpus.text.len() {
        if corpus.text[place] >= corpus.first_end {
            document += 1;
            begin = place + 1;
        }
        if windows.counts[place] == 0 {
            place += 1;
            continue;
        }
        let first = place;
        while windows.is_joined(place) {
            place += 1;
        }
        place += 1;
        let end = place - 1 + MIN as usize;
        n_occurrences += 1;
        n_covered += end - first.max(covered_to);
        covered_to = end;
        let source = windows.firsts[first];
        let (start_byte, end_byte) = (corpus.starts[first], corpus.starts[end]);
        let (start, length) = (first - begin, end - first);
        writeln!(
            places,
            "{source}\t{document}\t{start}\t{length}\t{start_byte}\t{end_byte}"
        )?;
        if source as usize == first {
            n_passages += 1;
            writeln!(passages, "{source}\t{length}\t{}", windows.counts[first])?;
        }
    }
    places.flush()?;
    passages.flush()?;
    Ok(json!({
        "tokens": corpus.text.len() - document,
        "repeated": windows.counts.iter().filter(|count| **count > 0).count(),
        "occurrences": n_occurrences,
        "passages": n_passages,
        "covered": n_covered,
    }))
}

/// CPU time of steps.
struct Clock {
    last: f64,
    steps: serde_json::Map<String, serde_json::Value>,
}

impl Clock {
    fn new() -> Self {
        Self {
            last: cpu_seconds(),
            steps: serde_json::Map::new(),
        }
    }

    fn step(&mut self, name: &str) {
        let now = cpu_seconds();
        self.steps.insert(name.to_owned(), json!(now - self.last));
        self.last = now;
    }
}

fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
