//! What a pair of texts of 430 words costs by the measure of `arose::content`.
//!
//! `cargo bench -p arose --bench content` prints microseconds per pair, the median of nine rounds,
//! for pairs of several kinds, with the reference implementation beside it. `valgrind
//! --tool=callgrind` on the binary counts instructions.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and prints"
)]

use std::hint::black_box;
use std::time::Instant;

use arose::content::{Content, Scorer, shingler};
use arose::mix::{SplitMix, mix};
use arose::testing;

const N_WORDS: u64 = 430;
const N_PAIRS: u64 = 50;
const N_ROUNDS: usize = 9;

fn main() {
    let mut random = SplitMix::new(1);
    let shingler = shingler();
    let cut = |tokens: &[u64]| {
        let mut shingles = Vec::new();
        shingler.shingles_into(tokens, &mut shingles);
        shingles
    };
    println!("| pairs | fast, µs | plain, µs |\n|---|---|---|");
    for (name, other) in KINDS {
        let pairs = (0..N_PAIRS).map(|_| {
            let a = text(&mut random);
            let b = other(&a, &mut random);
            [a, b].map(|tokens| Content::new(&cut(&tokens)))
        });
        let pairs: Vec<[Content; 2]> = pairs.collect();
        let mut scorer = Scorer::default();
        let fast = median(100, || {
            for [a, b] in &pairs {
                black_box(scorer.score(black_box(a), black_box(b)));
            }
        });
        let plain = median(1, || {
            for [a, b] in &pairs {
                black_box(testing::content_score(black_box(a), black_box(b)));
            }
        });
        println!("| {name} | {fast:.2} | {plain:.2} |");
    }
    let texts: Vec<Vec<u64>> = (0..N_PAIRS).map(|_| text(&mut random)).collect();
    let prepare = median(10, || {
        for tokens in &texts {
            black_box(Content::new(&cut(black_box(tokens))));
        }
    });
    println!("\nPreparing a text from its tokens: {prepare:.2} µs");
}

/// Makes the second text of a pair.
type Other = fn(&[u64], &mut SplitMix) -> Vec<u64>;

const KINDS: [(&str, Other); 5] = [
    ("equal", |a, _| a.to_vec()),
    ("one word in ten replaced", |a, random| {
        let mut b = a.to_vec();
        for _ in 0..N_WORDS / 10 {
            b[random.below(N_WORDS) as usize] = mix(random.below(5000));
        }
        b
    }),
    ("halves exchanged", |a, _| {
        let (first, second) = a.split_at(a.len() / 2);
        [second, first].concat()
    }),
    ("word pairs reversed", |a, _| {
        a.chunks(2).rev().flatten().copied().collect()
    }),
    ("unrelated", |_, random| text(random)),
];

/// Words of frequencies that fall as one over their rank, about as in a language.
fn text(random: &mut SplitMix) -> Vec<u64> {
    let word = |random: &mut SplitMix| mix(3000_f64.powf(random.next_f64()) as u64);
    (0..N_WORDS).map(|_| word(random)).collect()
}

/// Microseconds per pair.
fn median(n_times: u32, mut work: impl FnMut()) -> f64 {
    let mut rounds: Vec<f64> = (0..N_ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..n_times).for_each(|_| work());
            start.elapsed().as_secs_f64() * 1e6 / f64::from(n_times) / N_PAIRS as f64
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}
