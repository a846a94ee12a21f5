//! The hot functions one by one.

use std::hint::black_box;

use arose::shingle::Shingler;
use arose::sketch::{NarrowMinHash, OnePermutation, Sketcher};
use arose::token::Tokenizer;
use gaoya::minhash::{MinHasher, MinHasher32};
use rustix::time::{ClockId, clock_gettime};

/// Prints the table.
pub fn run(texts: &[String], rounds: usize) {
    let prepared = Prepared::new(texts);
    prepared.check();
    let n_bytes: usize = texts.iter().map(String::len).sum();
    let n_tokens: usize = prepared.tokens.iter().map(Vec::len).sum();
    println!("{} texts, {:.1} MB, {n_tokens} tokens, {rounds} rounds", texts.len(), n_bytes as f64 / 1e6);
    let rows = rows(&prepared);
    let mut seconds = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for (row, seconds) in rows.iter().zip(&mut seconds) {
            seconds.push(timed(&row.work));
        }
    }
    let medians: Vec<f64> = seconds.iter_mut().map(|s| median(s)).collect();
    println!("\n| stage | engine | ns per token | MB/s of text | times the first |");
    println!("|---|---|---|---|---|");
    let mut first = 0.0;
    let mut stage = "";
    for (row, &median) in rows.iter().zip(&medians) {
        if row.stage != stage {
            (stage, first) = (row.stage, median);
        }
        let (nanos, rate) = (median * 1e9 / n_tokens as f64, n_bytes as f64 / median / 1e6);
        println!("| {} | {} | {nanos:.2} | {rate:.0} | {:.2} |", row.stage, row.engine, first / median);
    }
}

struct Row<'a> {
    stage: &'static str,
    engine: &'static str,
    work: Box<dyn Fn() + 'a>,
}

/// Texts with everything the stages start from.
struct Prepared<'a> {
    texts: &'a [String],
    tokenizer: Tokenizer,
    shingler: Shingler,
    tokens: Vec<Vec<u64>>,
    shingles: Vec<Vec<u64>>,
}

const SEED: u64 = 1;

fn narrow(t: usize) -> NarrowMinHash {
    NarrowMinHash::new(t.try_into().expect("t is not zero"), SEED)
}

fn one_permutation(t: usize) -> OnePermutation {
    OnePermutation::new(t.try_into().expect("t is not zero"), SEED)
}

impl<'a> Prepared<'a> {
    fn new(texts: &'a [String]) -> Self {
        let (tokenizer, shingler) = (Tokenizer::default(), Shingler::default());
        let tokens: Vec<Vec<u64>> = texts.iter().map(|text| tokenizer.tokens(text).fingerprints).collect();
        let shingles = tokens
            .iter()
            .map(|tokens| {
                let mut shingles = Vec::new();
                shingler.shingles_into(tokens, &mut shingles);
                shingles
            })
            .collect();
        Self { texts, tokenizer, shingler, tokens, shingles }
    }

    /// The fast versions equal the plain ones on every text.
    fn check(&self) {
        let (narrow, bins) = (narrow(84), one_permutation(128));
        for (text, (tokens, shingles)) in self.texts.iter().zip(self.tokens.iter().zip(&self.shingles)) {
            assert_eq!(&self.tokenizer.tokens_plain(text).fingerprints, tokens);
            assert_eq!(&self.shingler.shingles_plain(tokens), shingles);
            assert_eq!(narrow.sketch(shingles), narrow.sketch_plain(shingles));
            if shingles.len() < 200 {
                assert_eq!(bins.sketch(shingles), bins.sketch_plain(shingles));
            }
        }
        println!("fast equals plain on all texts");
    }
}

fn rows<'a>(p: &'a Prepared<'a>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let mut row = |stage, engine, work: Box<dyn Fn() + 'a>| rows.push(Row { stage, engine, work });
    row("text to tokens", "plain", Box::new(|| {
        p.texts.iter().for_each(|text| drop(black_box(p.tokenizer.tokens_plain(text))));
    }));
    row("text to tokens", "fast", Box::new(|| {
        let mut out = Vec::new();
        for text in p.texts {
            out.clear();
            p.tokenizer.fingerprints_into(text, &mut out);
            black_box(&out);
        }
    }));
    row("text to tokens", "gaoya", Box::new(|| {
        for text in p.texts {
            let lower = text.to_lowercase();
            black_box(gaoya::text::whitespace_split(&lower).collect::<Vec<_>>());
        }
    }));
    row("tokens to shingles, w = 8", "plain", Box::new(|| {
        p.tokens.iter().for_each(|tokens| drop(black_box(p.shingler.shingles_plain(tokens))));
    }));
    row("tokens to shingles, w = 8", "fast", Box::new(|| {
        let mut out = Vec::new();
        for tokens in &p.tokens {
            out.clear();
            p.shingler.shingles_into(tokens, &mut out);
            black_box(&out);
        }
    }));
    for (t, stage) in [(84, "84 permutations"), (128, "128 permutations")] {
        row(stage, "plain", Box::new(move || {
            let sketcher = narrow(t);
            p.shingles.iter().for_each(|shingles| drop(black_box(sketcher.sketch_plain(shingles))));
        }));
        row(stage, "fast", Box::new(move || {
            let (sketcher, mut out) = (narrow(t), Vec::new());
            for shingles in &p.shingles {
                sketcher.sketch_into(shingles, &mut out);
                black_box(&out);
            }
        }));
        row(stage, "gaoya", Box::new(move || {
            let hasher = MinHasher32::new(t);
            p.shingles.iter().for_each(|s| drop(black_box(hasher.create_signature(s.iter()))));
        }));
    }
    row("one permutation, 128 bins", "fast", Box::new(|| {
        let (sketcher, mut out) = (one_permutation(128), Vec::new());
        for shingles in &p.shingles {
            sketcher.sketch_into(shingles, &mut out);
            black_box(&out);
        }
    }));
    row("text to one-permutation sketch", "tokens alone", Box::new(|| {
        let mut out = Vec::new();
        for text in p.texts {
            out.clear();
            p.tokenizer.fingerprints_into(text, &mut out);
            black_box(&out);
        }
    }));
    row("text to one-permutation sketch", "fast", Box::new(|| {
        let sketcher = one_permutation(128);
        let (mut tokens, mut shingles, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for text in p.texts {
            tokens.clear();
            shingles.clear();
            p.tokenizer.fingerprints_into(text, &mut tokens);
            p.shingler.shingles_into(&tokens, &mut shingles);
            sketcher.sketch_into(&shingles, &mut out);
            black_box(&out);
        }
    }));
    rows
}

/// The processor time that `work` takes on this thread.
fn timed(work: &dyn Fn()) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let start = now();
    work();
    now() - start
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
