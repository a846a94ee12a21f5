//! Comparing what was observed with what theory says.

/// The share of `n_hits` must lie within four standard errors `sqrt(P (1 - P) / n)` of `expected`.
#[track_caller]
pub(crate) fn check_rate(name: &str, n_hits: usize, n_trials: usize, expected: f64) {
    let standard_error = (expected * (1.0 - expected) / n_trials as f64).sqrt();
    check_within(
        name,
        n_hits as f64 / n_trials as f64,
        expected,
        standard_error,
    );
}

/// `observed` must lie within four standard errors of `expected`.
#[track_caller]
pub(crate) fn check_within(name: &str, observed: f64, expected: f64, standard_error: f64) {
    println!("{name}: {observed:.5}, expected {expected:.5} +- {standard_error:.5}");
    assert!(
        (observed - expected).abs() <= 4.0 * standard_error,
        "{name}: {observed}, expected {expected} +- {standard_error}"
    );
}

/// The mean of independent values and its standard error, from their spread.
pub(crate) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n * (n - 1.0))).sqrt())
}
