//! Sums of exponentials over all rates at once.
//!
//! A decision needs a few hundred exponentials. Written without branches and calls, loops over them
//! compile to vector instructions; the error is below 2e-11 relative to the result.

use super::rates::{N_RATES, RATES};

/// One number for each rate.
pub(super) type Column = [f64; N_RATES];

/// Exponents beyond this give about 1e-304 and count as zero.
const MAX: f64 = 700.0;

/// Computes `exp(-x)` for `x` of at least 0.
#[inline(always)]
pub(super) fn exp_minus(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    let x = -(if x < MAX { x } else { MAX });
    // The nearest integer is in the lowest bits of the sum.
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let f = x - n * LN_2_HIGH - n * LN_2_LOW;
    let mut sum = 1.0 / 362_880.0;
    for factorial in [40_320.0, 5_040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0] {
        sum = sum * f + 1.0 / factorial;
    }
    let scale = f64::from_bits((rounded.to_bits() << 52).wrapping_add(1023 << 52));
    sum * scale
}

/// Computes `exp(-r t)` for each rate.
#[inline]
pub(super) fn decays(t: f64) -> Column {
    let mut column = [0.0; N_RATES];
    for (decay, rate) in column.iter_mut().zip(&RATES) {
        *decay = exp_minus(rate * t);
    }
    column
}

/// Returns the sum of the products.
#[inline]
pub(super) fn dot(a: &Column, b: &Column) -> f64 {
    // Four sums, so that additions do not wait for each other.
    let mut sums = [0.0; 4];
    for (a, b) in a.chunks_exact(4).zip(b.chunks_exact(4)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_exponential() {
        for i in 0..200_000 {
            let x = f64::from(i) * 0.0035;
            let (fast, exact) = (exp_minus(x), (-x).exp());
            assert!((fast / exact - 1.0).abs() < 2e-11, "{x}: {fast} {exact}");
        }
        assert_eq!(exp_minus(0.0), 1.0);
        assert!(exp_minus(f64::INFINITY) < 1e-300);
        assert!(exp_minus(1e300) < 1e-300);
    }
}
