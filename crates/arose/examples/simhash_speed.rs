//! Nanoseconds per feature of simhash: plain counters against bit slices, 384 bits, one core.
//!
//! `cargo run --release -p arose --example simhash_speed`
#![expect(clippy::disallowed_methods, reason = "a timing reads the clock")]
#![expect(clippy::print_stdout, reason = "and prints what it read")]

use std::hint::black_box;
use std::time::Instant;

use arose::mix::SplitMix;
use arose::simhash::{Fingerprint384, plain};

fn main() {
    println!("features      plain       fast");
    for n_features in [20, 100, 400, 1000, 10_000] {
        let mut random = SplitMix::new(1);
        let features: Vec<u64> = (0..n_features).map(|_| random.next_u64()).collect();
        assert_eq!(Fingerprint384::of(&features), plain::fingerprint(&features));
        let plain = nanoseconds(&features, plain::fingerprint);
        let fast = nanoseconds(&features, Fingerprint384::of);
        println!("{n_features:8} {plain:7.1} ns {fast:7.2} ns");
    }
}

/// The best of many short rounds, which a busy machine disturbs the least.
fn nanoseconds(features: &[u64], fingerprint: impl Fn(&[u64]) -> Option<Fingerprint384>) -> f64 {
    let n_repeats = 2000_usize.div_ceil(features.len());
    let round = || {
        let start = Instant::now();
        for _ in 0..n_repeats {
            black_box(fingerprint(black_box(features)));
        }
        start.elapsed().as_secs_f64() * 1e9 / (n_repeats * features.len()) as f64
    };
    (0..300).map(|_| round()).fold(f64::INFINITY, f64::min)
}
