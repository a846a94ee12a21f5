//! The hot functions, one by one.

use std::f64::consts::PI;
use std::hint::black_box;
use std::ops::Range;

use arose::shingle::Shingler;
use arose::simhash::Fingerprint384;
use arose::sketch::{NarrowMinHash, OnePermutation, Sketcher};
use arose::testing;
use arose::token::Tokenizer;
use gaoya::minhash::{MinHasher, MinHasher32, compute_minhash_similarity};
use gaoya::simhash::{SimHash, SimHashBits, SimSipHasher64};
use rustix::time::{ClockId, clock_gettime};

use crate::quality::Pairs;

/// Prints the table.
pub fn run(texts: &[String], rounds: usize) {
    let prepared = Prepared::new(texts);
    prepared.check();
    let n_bytes: usize = texts.iter().map(String::len).sum();
    let n_tokens: usize = prepared.tokens.iter().map(Vec::len).sum();
    let megabytes = n_bytes as f64 / 1e6;
    let n_texts = texts.len();
    println!("{n_texts} texts, {megabytes:.1} MB, {n_tokens} tokens, median of {rounds} rounds\n");
    let rows = rows(&prepared);
    let medians = medians(&prepared, &rows, rounds);
    println!("| stage | engine | ns per token | MB/s of text | times the first | mean error |");
    println!("|---|---|---|---|---|---|");
    let mut first = ("", 0.0);
    for (row, seconds) in rows.iter().zip(medians) {
        if row.stage != first.0 {
            first = (row.stage, seconds);
        }
        let error = row
            .error
            .map_or_else(String::new, |error| format!("{error:.4}"));
        println!(
            "| {} | {} | {:.2} | {:.0} | {:.2} | {error} |",
            row.stage,
            row.engine,
            seconds * 1e9 / n_tokens as f64,
            megabytes / seconds,
            first.1 / seconds,
        );
    }
}

/// All rows run in each round, so that a slow minute of the machine affects all of them.
fn medians(p: &Prepared<'_>, rows: &[Row<'_>], rounds: usize) -> Vec<f64> {
    let mut seconds = vec![Vec::new(); rows.len()];
    for _ in 0..rounds {
        for (row, seconds) in rows.iter().zip(&mut seconds) {
            seconds.push(timed(p, row));
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    seconds.iter_mut().map(median).collect()
}

/// Number of texts that a row processes at once; with their tokens and shingles they fit into the
/// second-level cache.
const CHUNK: usize = 64;

/// Returns the CPU time of a row on this thread.
///
/// In a pipeline, each stage finds its input in the cache, where the stage before has just written
/// it. The same holds for a row here: its input is read once before its clock starts.
fn timed(p: &Prepared<'_>, row: &Row<'_>) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let mut total = 0.0;
    for begin in (0..p.texts.len()).step_by(CHUNK) {
        let range = begin..(begin + CHUNK).min(p.texts.len());
        p.touch(range.clone());
        let start = now();
        (row.work)(range);
        total += now() - start;
    }
    total
}

struct Row<'a> {
    stage: &'static str,
    engine: &'static str,
    /// Mean difference of its estimates from the exact values.
    error: Option<f64>,
    work: Box<dyn Fn(Range<usize>) + 'a>,
}

/// Texts with the input of every stage.
struct Prepared<'a> {
    texts: &'a [String],
    tokenizer: Tokenizer,
    shingler: Shingler,
    tokens: Vec<Vec<u64>>,
    shingles: Vec<Vec<u64>>,
    pairs: Pairs,
}

const SEED: u64 = 1;

fn narrow(t: u16) -> NarrowMinHash {
    NarrowMinHash::new(t.try_into().expect("t is not zero"), SEED)
}

fn one_permutation(t: u16) -> OnePermutation {
    OnePermutation::new(t.try_into().expect("t is not zero"), SEED)
}

impl<'a> Prepared<'a> {
    fn new(texts: &'a [String]) -> Self {
        let (tokenizer, shingler) = (
            Tokenizer::default(),
            Shingler::new(arose::shingle::FEATURE_W),
        );
        let tokens: Vec<Vec<u64>> = texts
            .iter()
            .map(|text| tokenizer.tokens(text).fingerprints)
            .collect();
        let shingles = tokens.iter().map(|tokens| {
            let mut shingles = Vec::new();
            shingler.shingles_into(tokens, &mut shingles);
            shingles
        });
        let shingles = shingles.collect();
        let pairs = Pairs::new(texts);
        Self {
            texts,
            tokenizer,
            shingler,
            tokens,
            shingles,
            pairs,
        }
    }

    fn touch(&self, range: Range<usize>) {
        let bytes = self.texts[range.clone()]
            .iter()
            .flat_map(|text| text.bytes());
        black_box(bytes.map(u64::from).sum::<u64>());
        for lists in [&self.tokens, &self.shingles] {
            black_box(
                lists[range.clone()]
                    .iter()
                    .flatten()
                    .fold(0, |sum, x| sum ^ x),
            );
        }
    }

    /// The optimized versions equal the reference implementations on every text.
    fn check(&self) {
        let (narrow, bins) = (narrow(84), one_permutation(128));
        let prepared = self.tokens.iter().zip(&self.shingles);
        for (text, (tokens, shingles)) in self.texts.iter().zip(prepared) {
            assert_eq!(&testing::tokens(&self.tokenizer, text).fingerprints, tokens);
            assert_eq!(&testing::shingles(&self.shingler, tokens), shingles);
            assert_eq!(
                narrow.sketch(shingles),
                testing::min_hash(&narrow, shingles)
            );
            assert_eq!(Fingerprint384::of(tokens), testing::simhash(tokens));
            if shingles.len() < 200 {
                assert_eq!(
                    bins.sketch(shingles),
                    testing::one_permutation(&bins, shingles)
                );
            }
        }
    }

    fn sketch_error<S: Sketcher>(&self, sketcher: &S) -> Option<f64> {
        Some(self.pairs.resemblance_error(|a, b| {
            let estimate = sketcher.estimate(&sketcher.sketch(a), &sketcher.sketch(b));
            estimate.expect("long texts have sketches")
        }))
    }

    fn gaoya_error(&self, hasher: &MinHasher32<impl std::hash::BuildHasher>) -> Option<f64> {
        Some(self.pairs.resemblance_error(|a, b| {
            let [a, b] = [a, b].map(|set| hasher.create_signature(set.iter()));
            compute_minhash_similarity(&a, &b)
        }))
    }
}

fn rows<'a>(p: &'a Prepared<'a>) -> Vec<Row<'a>> {
    let mut rows = token_rows(p);
    rows.extend(shingle_rows(p));
    rows.extend(permutation_rows(p, 84, "shingles to 84 minima"));
    rows.extend(permutation_rows(p, 128, "shingles to 128 minima"));
    rows.extend(one_permutation_rows(p));
    rows.extend(simhash_rows(p));
    rows.extend(whole_rows(p));
    rows
}

fn tokens_fast(p: &Prepared<'_>, range: Range<usize>) {
    let mut out = Vec::new();
    for text in &p.texts[range] {
        out.clear();
        p.tokenizer.fingerprints_into(text, &mut out);
        black_box(&out);
    }
}

fn text_to_sketch<S: Sketcher>(p: &Prepared<'_>, range: Range<usize>, sketcher: &S) {
    let (mut tokens, mut shingles, mut out) = (Vec::new(), Vec::new(), Vec::new());
    for text in &p.texts[range] {
        tokens.clear();
        shingles.clear();
        p.tokenizer.fingerprints_into(text, &mut tokens);
        p.shingler.shingles_into(&tokens, &mut shingles);
        sketcher.sketch_into(&shingles, &mut out);
        black_box(&out);
    }
}

fn token_rows<'a>(p: &'a Prepared<'a>) -> Vec<Row<'a>> {
    let plain = |range: Range<usize>| {
        for text in &p.texts[range] {
            black_box(testing::tokens(&p.tokenizer, text));
        }
    };
    let gaoya = |range: Range<usize>| {
        for text in &p.texts[range] {
            let lower = text.to_lowercase();
            black_box(gaoya::text::whitespace_split(&lower).collect::<Vec<_>>());
        }
    };
    let stage = "text to tokens";
    vec![
        Row {
            stage,
            engine: "plain",
            error: None,
            work: Box::new(plain),
        },
        Row {
            stage,
            engine: "fast",
            error: None,
            work: Box::new(|range| tokens_fast(p, range)),
        },
        Row {
            stage,
            engine: "gaoya (split, no hash)",
            error: None,
            work: Box::new(gaoya),
        },
    ]
}

fn shingle_rows<'a>(p: &'a Prepared<'a>) -> Vec<Row<'a>> {
    let plain = |range: Range<usize>| {
        for tokens in &p.tokens[range] {
            black_box(testing::shingles(&p.shingler, tokens));
        }
    };
    let fast = |range: Range<usize>| {
        let mut out = Vec::new();
        for tokens in &p.tokens[range] {
            out.clear();
            p.shingler.shingles_into(tokens, &mut out);
            black_box(&out);
        }
    };
    let stage = "tokens to shingles, w = 8";
    vec![
        Row {
            stage,
            engine: "plain",
            error: None,
            work: Box::new(plain),
        },
        Row {
            stage,
            engine: "fast",
            error: None,
            work: Box::new(fast),
        },
    ]
}

fn permutation_rows<'a>(p: &'a Prepared<'a>, t: u16, stage: &'static str) -> Vec<Row<'a>> {
    let error = p.sketch_error(&narrow(t));
    let plain = move |range: Range<usize>| {
        let sketcher = narrow(t);
        for shingles in &p.shingles[range] {
            black_box(testing::min_hash(&sketcher, shingles));
        }
    };
    let fast = move |range: Range<usize>| {
        let (sketcher, mut out) = (narrow(t), Vec::new());
        for shingles in &p.shingles[range] {
            sketcher.sketch_into(shingles, &mut out);
            black_box(&out);
        }
    };
    let gaoya = move |range: Range<usize>| {
        let hasher = MinHasher32::new(t.into());
        for shingles in &p.shingles[range] {
            black_box(hasher.create_signature(shingles.iter()));
        }
    };
    let gaoya_error = p.gaoya_error(&MinHasher32::new(t.into()));
    vec![
        Row {
            stage,
            engine: "plain",
            error,
            work: Box::new(plain),
        },
        Row {
            stage,
            engine: "fast",
            error,
            work: Box::new(fast),
        },
        Row {
            stage,
            engine: "gaoya",
            error: gaoya_error,
            work: Box::new(gaoya),
        },
    ]
}

fn one_permutation_rows<'a>(p: &'a Prepared<'a>) -> Vec<Row<'a>> {
    let whole = |range| text_to_sketch(p, range, &one_permutation(128));
    let alone = |range: Range<usize>| {
        let (sketcher, mut out) = (one_permutation(128), Vec::new());
        for shingles in &p.shingles[range] {
            sketcher.sketch_into(shingles, &mut out);
            black_box(&out);
        }
    };
    let error = p.sketch_error(&one_permutation(128));
    let stage = "text to one-permutation sketch, 128 bins";
    vec![
        Row {
            stage,
            engine: "tokens alone",
            error: None,
            work: Box::new(|range| tokens_fast(p, range)),
        },
        Row {
            stage,
            engine: "tokens, shingles, bins",
            error,
            work: Box::new(whole),
        },
        Row {
            stage,
            engine: "bins alone",
            error,
            work: Box::new(alone),
        },
    ]
}

fn simhash_rows<'a>(p: &'a Prepared<'a>) -> Vec<Row<'a>> {
    let plain = |range: Range<usize>| {
        for tokens in &p.tokens[range] {
            black_box(testing::simhash::<6>(tokens));
        }
    };
    let fast = |range: Range<usize>| {
        for tokens in &p.tokens[range] {
            black_box(Fingerprint384::of(tokens));
        }
    };
    let gaoya_hasher = || SimHash::<SimSipHasher64, u64, 64>::new(SimSipHasher64::new(1, 2));
    let gaoya = move |range: Range<usize>| {
        let hasher = gaoya_hasher();
        for tokens in &p.tokens[range] {
            black_box(hasher.create_signature(tokens.iter()));
        }
    };
    let error = Some(p.pairs.cosine_error(|a, b| {
        let [a, b] =
            [a, b].map(|tokens| Fingerprint384::of(tokens).expect("long texts have tokens"));
        arose::simhash::law::implied_cosine(a.c_sim(&b), Fingerprint384::BITS)
    }));
    let gaoya_error = Some(p.pairs.cosine_error(|a, b| {
        let [a, b] = [a, b].map(|tokens| gaoya_hasher().create_signature(tokens.iter()));
        (PI * a.hamming_distance(&b) as f64 / 64.0).cos()
    }));
    let stage = "tokens to simhash, 384 bits";
    vec![
        Row {
            stage,
            engine: "plain",
            error,
            work: Box::new(plain),
        },
        Row {
            stage,
            engine: "fast",
            error,
            work: Box::new(fast),
        },
        Row {
            stage,
            engine: "gaoya (64 bits)",
            error: gaoya_error,
            work: Box::new(gaoya),
        },
    ]
}

fn whole_rows<'a>(p: &'a Prepared<'a>) -> Vec<Row<'a>> {
    let gaoya = |range: Range<usize>| {
        let hasher = MinHasher32::new(128);
        for text in &p.texts[range] {
            let lower = text.to_lowercase();
            let words: Vec<&str> = gaoya::text::whitespace_split(&lower).collect();
            black_box(hasher.create_signature(gaoya::text::shingle_tokens(&words, 8)));
        }
    };
    let fast = |range| text_to_sketch(p, range, &narrow(128));
    let stage = "text to 128 minima";
    let error = p.sketch_error(&narrow(128));
    let gaoya_error = p.gaoya_error(&MinHasher32::new(128));
    vec![
        Row {
            stage,
            engine: "gaoya",
            error: gaoya_error,
            work: Box::new(gaoya),
        },
        Row {
            stage,
            engine: "fast",
            error,
            work: Box::new(fast),
        },
    ]
}
