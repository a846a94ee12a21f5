//! Estimates against simulated truth: every method in its own world, many times over.
//!
//! Two questions to each method. Does it come out right, within the limits that the literature or
//! its own standard error set? And do its nominal 95% intervals hold the truth in 90 to 99% of
//! 300 studies? A binomial share of 0.95 over 300 studies has the standard error 0.0126, so these
//! limits are four below and three above.

mod engines;
mod pages;
mod sizes;
mod walks;

use arose::estimate::Estimate;
use arose::estimate::bootstrap::Bootstrap;

const N_STUDIES: u64 = 300;

/// A bootstrap for tests that run hundreds of them: fewer resamples make the ends of an interval
/// less sure, not shorter.
fn quick(seed: u64) -> Bootstrap {
    Bootstrap {
        n_resamples: 400,
        ..Bootstrap::new(seed)
    }
}

/// Of 300 studies, 270 to 297 must have an interval that contains the true value. This holds for
/// each estimate.
///
/// A study returns estimates with their true values, always in the same order.
#[track_caller]
fn check_coverage(name: &str, mut study: impl FnMut(u64) -> Vec<(Estimate, f64)>) {
    let mut n_covering: Vec<u64> = Vec::new();
    for seed in 0..N_STUDIES {
        let estimates = study(seed);
        n_covering.resize(estimates.len(), 0);
        for ((estimate, truth), n) in estimates.iter().zip(&mut n_covering) {
            let interval = estimate.interval.unwrap();
            *n += u64::from(interval.contains(*truth));
        }
    }
    println!("{name}: {n_covering:?} of {N_STUDIES} intervals hold the truth");
    assert!(
        n_covering.iter().all(|n| (270..=297).contains(n)),
        "{name}: {n_covering:?} of {N_STUDIES}"
    );
}

/// The mean and the standard deviation of some values.
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let (mean, error) = crate::statistics::mean_and_error(values);
    (mean, error * (values.len() as f64).sqrt())
}
