//! The binomial distribution, accurate in its tails.
//!
//! *Question.* A filter examines `n` independent samples, each of which matches with probability
//! `p`. What is the probability that exactly, or at least, `c` of them match, even if it is 1e-15
//! or `n` is 1e8?
//!
//! *Idea.* The textbook product `C(n, i) p^i (1-p)^(n-i)` overflows, and its logarithm cancels:
//! both parts grow with `n` while the result does not. Write the factorials by Stirling's series
//! instead and group the remaining terms into two deviances `x ln(x/m) + m - x`, which are small
//! and can be computed without cancellation (Loader 2000). A tail is summed from its largest term
//! outward; a tail that contains the mean is one minus the other tail. So small probabilities keep
//! their relative precision.
//!
//! *Cost.* [`pmf`] takes constant time; [`at_least`] and [`at_most`] take about `O(sqrt(n))` terms,
//! fewer far from the mean. *Error.* The relative error is 1e-13 or better for `n` up to 1e9, as
//! the tests show where exact values are available. *Not for* millions of tails that a normal
//! approximation, which is cheaper, would serve.
//!
//! Probabilities outside `0..=1` are clamped; NaN stays NaN.

use std::f64::consts::PI;

/// Returns the natural logarithm of the gamma function, for `x > 0`.
///
/// Infinite at zero; NaN below zero, where the gamma function changes sign.
///
/// ```
/// use arose::binomial::ln_gamma;
/// assert!((ln_gamma(5.0) - 24_f64.ln()).abs() < 1e-14);
/// assert!((ln_gamma(0.5) - std::f64::consts::PI.sqrt().ln()).abs() < 1e-14);
/// ```
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    // Gamma(x) = Gamma(x + m) / (x (x+1) .. (x+m-1)), moved to where Stirling's series converges.
    let mut product = 1.0;
    let mut shifted = x;
    while shifted < STIRLING_FROM {
        product *= shifted;
        shifted += 1.0;
    }
    if shifted == f64::INFINITY {
        return f64::INFINITY;
    }
    let ln_power = (shifted - 0.5) * shifted.ln() - shifted + 0.5 * (2.0 * PI).ln();
    ln_power + stirling_series(shifted) - f64::ln(product)
}

/// Returns the number of ways to choose `k` of `n` things; exact for `n <= 50`, infinite beyond
/// 1.8e308.
///
/// ```
/// use arose::binomial::choose;
/// assert_eq!(choose(6, 2), 15.0);
/// assert_eq!(choose(2, 6), 0.0);
/// ```
#[must_use]
pub fn choose(n: u64, k: u64) -> f64 {
    if k > n {
        return 0.0;
    }
    let k = k.min(n - k);
    if k > 1100 {
        // The smallest such number, C(2202, 1101), already exceeds every `f64`.
        return f64::INFINITY;
    }
    // Each partial product is itself a binomial coefficient, so the division is exact in integers.
    (0..k).fold(1.0, |ways, i| ways * (n - i) as f64 / (i + 1) as f64)
}

/// Returns the natural logarithm of [`choose`], finite for every `k <= n`.
#[must_use]
pub fn ln_choose(n: u64, k: u64) -> f64 {
    if k > n {
        return f64::NEG_INFINITY;
    }
    let k = k.min(n - k);
    if k == 0 {
        return 0.0;
    }
    let (whole, part) = (n as f64, k as f64);
    let rest = whole - part;
    let entropy = part * (whole / part).ln() - rest * (-part / whole).ln_1p();
    let width = 0.5 * (whole / (2.0 * PI * part * rest)).ln();
    entropy + width + stirling_error(n) - stirling_error(k) - stirling_error(n - k)
}

/// Returns the probability of exactly `i` successes in `n` trials of probability `p`.
///
/// ```
/// use arose::binomial::pmf;
/// assert!((pmf(4, 0.5, 2) - 0.375).abs() < 1e-15);
/// ```
#[must_use]
pub fn pmf(n: u64, p: f64, i: u64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    density(n, p, 1.0 - p, i)
}

/// Returns the probability of at least `c` successes in `n` trials of probability `p`.
///
/// ```
/// use arose::binomial::at_least;
/// // A pair of similarity 0.8 agrees in 160 of 200 MinHash values a little more often than not.
/// assert!((at_least(200, 0.8, 160) - 0.542).abs() < 0.0005);
/// ```
#[must_use]
pub fn at_least(n: u64, p: f64, c: u64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    upper_tail(n, p, 1.0 - p, c)
}

/// Returns the probability of at most `c` successes in `n` trials of probability `p`.
#[must_use]
pub fn at_most(n: u64, p: f64, c: u64) -> f64 {
    let p = p.clamp(0.0, 1.0);
    // At most c successes are at least n - c failures.
    upper_tail(n, 1.0 - p, p, n.saturating_sub(c))
}

/// Returns P(X >= c) for success probability `p` and failure probability `q`.
fn upper_tail(n: u64, p: f64, q: f64, c: u64) -> f64 {
    if p.is_nan() {
        f64::NAN
    } else if c == 0 {
        1.0
    } else if c > n {
        0.0
    } else if c as f64 > n as f64 * p {
        sum_from(n, p, q, c)
    } else {
        1.0 - sum_from(n, q, p, n - c + 1)
    }
}

/// Returns the sum of the terms `c..=n`, for `c` above the mean, where each term is smaller than
/// the last.
fn sum_from(n: u64, p: f64, q: f64, c: u64) -> f64 {
    let mut term = density(n, p, q, c);
    let mut sum = term;
    for i in c..n {
        term *= (n - i) as f64 / (i + 1) as f64 * (p / q);
        sum += term;
        if term <= sum * 1e-18 {
            break;
        }
    }
    sum
}

/// Computes Loader's form of the binomial term; `q = 1 - p`.
fn density(n: u64, p: f64, q: f64, i: u64) -> f64 {
    if p.is_nan() {
        return f64::NAN;
    }
    if i > n {
        return 0.0;
    }
    if i == 0 {
        return power_of_complement(p, q, n);
    }
    if i == n {
        return power_of_complement(q, p, n);
    }
    if p == 0.0 || q == 0.0 {
        return 0.0;
    }
    let (whole, part) = (n as f64, i as f64);
    let rest = whole - part;
    let exponent = stirling_error(n)
        - stirling_error(i)
        - stirling_error(n - i)
        - deviance(part, whole * p)
        - deviance(rest, whole * q);
    (whole / (2.0 * PI * part * rest)).sqrt() * exponent.exp()
}

/// Computes `q^n` with `q = 1 - p`, precise even if `p` is tiny.
fn power_of_complement(p: f64, q: f64, n: u64) -> f64 {
    if n == 0 {
        return 1.0;
    }
    let ln_q = if p < 0.5 { (-p).ln_1p() } else { q.ln() };
    (n as f64 * ln_q).exp()
}

/// Computes `x ln(x/m) + m - x`: the distance of `x` from its mean `m`, zero if equal.
fn deviance(x: f64, m: f64) -> f64 {
    let difference = x - m;
    if difference.abs() >= 0.1 * (x + m) {
        return x * (x / m).ln() - difference;
    }
    // ln(x/m) = 2 artanh(v) = 2 (v + v^3/3 + v^5/5 + ..) with |v| < 0.1; the first term cancels.
    let v = difference / (x + m);
    let mut sum = difference * v;
    let mut power = 2.0 * x * v;
    for odd in (3..40).step_by(2) {
        power *= v * v;
        sum += power / f64::from(odd);
    }
    sum
}

/// From this value on, five terms of Stirling's series are exact to the last digit.
const STIRLING_FROM: f64 = 16.0;

/// Returns `ln n!` minus Stirling's approximation `(n + 1/2) ln n - n + ln(2 pi) / 2`, for
/// `n >= 1`.
fn stirling_error(n: u64) -> f64 {
    let x = n as f64;
    if x >= STIRLING_FROM {
        return stirling_series(x);
    }
    let factorial: u64 = (1..=n).product();
    (factorial as f64).ln() - (x + 0.5) * x.ln() + x - 0.5 * (2.0 * PI).ln()
}

/// Computes `1/(12x) - 1/(360x^3) + 1/(1260x^5) - 1/(1680x^7) + 1/(1188x^9)`.
fn stirling_series(x: f64) -> f64 {
    let y = 1.0 / (x * x);
    let coefficients = [
        1.0 / 1188.0,
        -1.0 / 1680.0,
        1.0 / 1260.0,
        -1.0 / 360.0,
        1.0 / 12.0,
    ];
    coefficients.iter().fold(0.0, |sum, c| sum * y + c) / x
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check_close(actual: f64, expected: f64, relative: f64) {
        assert!(
            (actual - expected).abs() <= relative * expected.abs(),
            "{actual:e}, expected {expected:e}"
        );
    }

    /// C(n, i) in integers.
    fn exact_choose(n: u128, i: u128) -> u128 {
        (0..i).fold(1, |ways, j| ways * (n - j) / (j + 1))
    }

    #[test]
    fn gamma_at_integers_and_halves() {
        for n in 1..=20_u64 {
            let factorial: u64 = (1..n).product();
            let error = ln_gamma(n as f64) - (factorial as f64).ln();
            assert!(error.abs() < 4e-14, "n = {n}: {error:e}");
        }
        // Gamma(n + 1/2) = (2n)! / (4^n n!) sqrt(pi).
        check_close(ln_gamma(3.5), (15.0 / 8.0 * PI.sqrt()).ln(), 1e-14);
        // ln(100!), from the 158 digits of 100!.
        check_close(ln_gamma(101.0), 363.739_375_555_563_49, 1e-15);
        assert_eq!(ln_gamma(0.0), f64::INFINITY);
        assert_eq!(ln_gamma(f64::INFINITY), f64::INFINITY);
        assert!(ln_gamma(-1.5).is_nan());
    }

    #[test]
    fn coefficients_are_exact() {
        for n in 0..=57 {
            for k in 0..=n {
                let exact = exact_choose(n, k) as f64;
                let (n, k) = (n as u64, k as u64);
                check_close(choose(n, k), exact, 1e-15);
                check_close(ln_choose(n, k).exp(), exact, 1e-13);
            }
        }
        assert_eq!(choose(8, 4), 70.0);
        assert_eq!(choose(5000, 2500), f64::INFINITY);
        assert_eq!(ln_choose(3, 4), f64::NEG_INFINITY);
        // C(1e9, 2) = 1e9 (1e9 - 1) / 2.
        check_close(
            ln_choose(1_000_000_000, 2),
            499_999_999_500_000_000_f64.ln(),
            1e-15,
        );
    }

    /// Fair coins have tails that are integers over 2^n.
    #[test]
    fn fair_coin_tails_are_exact() {
        for c in 0..=84 {
            let ways: u128 = (c..=84).map(|i| exact_choose(84, i)).sum();
            let exact = ways as f64 / 2_f64.powi(84);
            check_close(at_least(84, 0.5, c as u64), exact, 1e-13);
            check_close(at_most(84, 0.5, 84 - c as u64), exact, 1e-13);
        }
    }

    /// The central term is `sqrt(2 / (pi n)) (1 - 1/(4n) + ..)`, which a difference of logarithms
    /// of factorials would miss in the seventh digit for n = 1e9.
    #[test]
    fn large_n() {
        for n in [1_000_000_u64, 1_000_000_000] {
            let x = n as f64;
            let centre = (2.0 / (PI * x)).sqrt() * (1.0 - 0.25 / x);
            check_close(pmf(n, 0.5, n / 2), centre, 1e-12);
            check_close(at_least(n, 0.5, n / 2), 0.5 + centre / 2.0, 1e-11);
        }
        // Rare events are nearly Poisson: P(0) = (1 - 1e-9)^(1e9) = exp(-1) to nine digits.
        check_close(pmf(1_000_000_000, 1e-9, 0), (-1_f64).exp(), 1e-9);
    }

    #[test]
    fn borders() {
        assert_eq!(at_least(5, 0.3, 0), 1.0);
        assert_eq!(at_least(5, 0.3, 6), 0.0);
        assert_eq!(at_least(0, 0.3, 0), 1.0);
        assert_eq!(at_most(5, 0.3, 5), 1.0);
        assert_eq!(at_most(5, 0.3, 9), 1.0);
        assert_eq!(at_least(5, 0.0, 1), 0.0);
        assert_eq!(at_least(5, 1.0, 5), 1.0);
        assert_eq!(at_least(5, 7.0, 5), 1.0);
        assert_eq!(pmf(5, 1.0, 4), 0.0);
        assert_eq!(pmf(5, 0.5, 6), 0.0);
        assert_eq!(pmf(0, 1.0, 0), 1.0);
        assert!(at_least(5, f64::NAN, 2).is_nan());
        assert!(at_most(5, f64::NAN, 2).is_nan());
        check_close(at_least(5, 1e-300, 1), 5e-300, 1e-13);
        check_close(at_most(3, 1.0 - 1e-12, 2), 3e-12, 1e-4);
    }

    proptest! {
        #[test]
        fn terms_sum_to_one_and_tails_complement(
            n in 0_u64..300,
            p in 0.0..=1.0_f64,
            c in 0_u64..300,
        ) {
            let total: f64 = (0..=n).map(|i| pmf(n, p, i)).sum();
            prop_assert!((total - 1.0).abs() < 1e-12);
            let direct: f64 = (c..=n).map(|i| pmf(n, p, i)).sum();
            prop_assert!((at_least(n, p, c) - direct).abs() < 1e-12);
            if c > 0 {
                let both = at_least(n, p, c) + at_most(n, p, c - 1);
                prop_assert!((both - 1.0).abs() < 1e-12);
            }
        }

        #[test]
        fn tails_grow_with_p(n in 1_u64..100, c in 0_u64..100, p in 0.0..0.99_f64) {
            prop_assert!(at_least(n, p, c) <= at_least(n, p + 0.01, c) + 1e-14);
        }
    }
}
