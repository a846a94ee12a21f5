//! Seeded randomness: every choice of the synthetic web is a function of a key.
//!
//! Nothing is stored, so nothing may depend on earlier requests. The words, size and links of a
//! page come from generators seeded by [`key`]s: the seed of the web, the site, the page, and a
//! word for the purpose. SplitMix64 (Steele, Lea & Flood 2014) is fast to seed, which matters more
//! here than a long period.

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Scrambles the bits of `x`; distinct inputs give distinct outputs.
pub(crate) const fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The key of `part` below `parent`.
pub(crate) const fn key(parent: u64, part: u64) -> u64 {
    mix(parent.wrapping_add(GOLDEN) ^ mix(part.wrapping_add(GOLDEN)))
}

/// The key of a text, such as a path.
pub(crate) fn text_key(parent: u64, text: &str) -> u64 {
    text.bytes()
        .fold(parent, |state, byte| key(state, u64::from(byte)))
}

/// The generator.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(key: u64) -> Self {
        Self(key)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Uniform in `0..bound`, 0 when `bound` is 0.
    pub(crate) const fn below(&mut self, bound: u64) -> u64 {
        ((self.next() as u128 * bound as u128) >> 64) as u64
    }

    /// Uniform in `0.0..1.0`.
    pub(crate) const fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal (Box & Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Pareto: at least `least`, with a tail of `x^-alpha`.
    pub(crate) fn pareto(&mut self, least: f64, alpha: f64) -> f64 {
        least * (1.0 - self.unit()).powf(-1.0 / alpha)
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// A popularity law: rank `r` in `0..n` is sampled in proportion to `(r + 1)^(-10/11)`.
///
/// Ranks of this law have degrees whose density falls as `d^-2.1`, the in-degree law of the web
/// (Broder et al. 2000). Because of the exponent `1/11` of the integral, sampling takes one
/// eleventh power.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Popularity {
    n: u32,
    /// `(n + 1)^(1/11) - 1`.
    span: f64,
}

impl Popularity {
    pub(crate) fn new(n: u32) -> Self {
        let span = (f64::from(n) + 1.0).powf(1.0 / 11.0) - 1.0;
        Self { n, span }
    }

    /// A rank; 0 if there are none to choose from.
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let rank = (1.0 + random.unit() * self.span).powi(11) as u32;
        rank.saturating_sub(1).min(self.n.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published first output for seed zero.
    #[test]
    fn reference_output() {
        assert_eq!(Random::new(0).next(), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn keys_differ() {
        let keys = [
            key(1, 2),
            key(2, 1),
            key(1, 1),
            key(0, 0),
            text_key(1, "ab"),
            text_key(1, "ba"),
        ];
        let distinct: std::collections::BTreeSet<u64> = keys.into_iter().collect();
        assert_eq!(distinct.len(), keys.len());
    }

    /// Mean 0 and variance 1, within 4 standard errors of 100,000 samples (`1/sqrt(n)` and
    /// `sqrt(2/n)`).
    #[test]
    fn normal_moments() {
        let mut random = Random::new(5);
        let draws: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let n = draws.len() as f64;
        let mean = draws.iter().sum::<f64>() / n;
        let variance = draws.iter().map(|x| x * x).sum::<f64>() / n;
        assert!(mean.abs() < 4.0 / n.sqrt(), "{mean}");
        assert!(
            (variance - 1.0).abs() < 4.0 * (2.0 / n).sqrt(),
            "{variance}"
        );
    }

    /// `P(rank 0)` is `(2^(1/11) - 1) / (1001^(1/11) - 1)`, and every rank stays below `n`.
    #[test]
    fn popularity_of_the_first() {
        let popularity = Popularity::new(1000);
        let mut random = Random::new(6);
        let n = 100_000;
        let ranks: Vec<u32> = (0..n).map(|_| popularity.draw(&mut random)).collect();
        assert!(ranks.iter().all(|&rank| rank < 1000));
        let p = (2_f64.powf(1.0 / 11.0) - 1.0) / (1001_f64.powf(1.0 / 11.0) - 1.0);
        let share = ranks.iter().filter(|&&rank| rank == 0).count() as f64 / f64::from(n);
        let error = (p * (1.0 - p) / f64::from(n)).sqrt();
        assert!((share - p).abs() < 4.0 * error, "{share} for {p}");
    }

    #[test]
    fn popularity_of_few() {
        let mut random = Random::new(7);
        assert_eq!(Popularity::new(0).draw(&mut random), 0);
        assert_eq!(Popularity::new(1).draw(&mut random), 0);
    }
}
