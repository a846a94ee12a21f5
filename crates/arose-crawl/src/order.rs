//! The order of fetching: mass, trust and shares, as numbers alone.
//!
//! *Question.* A crawl never sees the whole web, so its value depends on what it fetches first.
//! Which of the queued URLs are the most useful ones, if only the links to them are known?
//!
//! *Idea.* Base OPIC (after Abiteboul et al. 2003). Every known page has a *mass* of [`BASE`], a
//! seed [`SEED`]. A page that is fetched passes [`DAMPING`] of its mass on, in equal parts to the
//! pages it links to; the part of a page that was fetched before is dropped. The URL with the
//! largest mass is next. Each link is followed once, and no graph is stored. On `cnr-2000`, half of
//! all PageRank is fetched with the first fifth of the pages, for which breadth first needs a third
//! more.
//!
//! *Guard.* Every order by links can be manipulated with links: a farm of pages that link to each
//! other takes three quarters of such a crawl. So *trust* is passed on along with mass. Only seeds
//! create it, one each, and links divide it in the same way. The trust that a site received from
//! other sites, where each single link is limited, and did not pass on to others decides how many
//! of its pages get full priority ([`share`]). Beyond that the priority falls with each page, but
//! never to zero. Trust that circulates among the thousand domains of one owner does not grow: they
//! share what one domain would get.
//!
//! *Cost.* 17 bits per URL: mass and trust are logarithms ([`Level`]), mass in steps of 0.27% and
//! trust, which only counts in sums over many pages, in steps of a factor of 2. Additions are
//! rounded up or down at random, so that a million small contributions are not lost. The random
//! numbers depend only on the two pages, so the same crawl has the same order again.

use arose::mix::mix;

/// The mass of every known page.
pub(crate) const BASE: f32 = 0.15;

/// The mass of a seed.
pub(crate) const SEED: f32 = 10.0;

/// The part of its mass that a page passes on.
pub(crate) const DAMPING: f32 = 0.85;

/// Number of steps of a [`Level`] per factor of two.
pub(crate) const STEPS: i32 = 256;

/// The binary logarithm of the smallest level.
const LEAST: f32 = -36.0;

/// The masses of queued URLs are above this level, which is 1/8; this many levels are
/// distinguished.
const MASS_FLOOR: u16 = 33 * STEPS as u16;
pub(crate) const N_MASSES: u16 = 14 * STEPS as u16;

/// The smallest trust of a page, the number of levels to the next one, and their number.
const TRUST_FLOOR: u16 = 16 * STEPS as u16;
const TRUST_GRAIN: u16 = STEPS as u16;
const N_TRUSTS: u16 = 31;

/// An amount of mass or trust: 2^-36 to 2^28, or zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub(crate) struct Level(u16);

impl Level {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const MOST: Self = Self(64 * STEPS as u16 - 1);

    /// Returns the nearest level.
    pub(crate) fn of(amount: f32) -> Self {
        Self::rounded(amount, 1 << 31)
    }

    /// Returns the trust of a page, rounded at random by `draw`.
    pub(crate) fn of_trust(amount: f32, draw: u64) -> Self {
        Self::NONE.plus_trust(amount, mix(draw) as u32)
    }

    /// Returns the level with this number, as stored.
    pub(crate) fn from_bits(bits: u16) -> Self {
        Self(bits).min(Self::MOST)
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    pub(crate) fn amount(self) -> f32 {
        match self.0 {
            0 => 0.0,
            bits => (f32::from(bits) / STEPS as f32 + LEAST).exp2(),
        }
    }

    /// Adds an amount, rounded at random by `dice`.
    fn plus(self, amount: f32, dice: u32) -> Self {
        match amount > 0.0 {
            true => Self::rounded(self.amount() + amount, dice).max(self),
            false => self,
        }
    }

    fn rounded(amount: f32, dice: u32) -> Self {
        // Zero and NaN.
        if amount.is_nan() || amount <= 0.0 {
            return Self::NONE;
        }
        let exact = (f64::from(amount).log2() - f64::from(LEAST)) * f64::from(STEPS);
        let exact = exact.clamp(1.0, f64::from(Self::MOST.0));
        let is_up = is_below(dice, exact.fract());
        Self(exact as u16 + u16::from(is_up)).min(Self::MOST)
    }

    /// Adds trust, in the levels that a page may have. The expected value is the exact sum.
    fn plus_trust(self, amount: f32, dice: u32) -> Self {
        let sum = f64::from(self.amount()) + f64::from(amount);
        if amount.is_nan() || amount <= 0.0 {
            return self;
        }
        let grain = f64::from(TRUST_GRAIN) / f64::from(STEPS);
        let floor = Self(TRUST_FLOOR);
        let above = (sum / f64::from(floor.amount())).log2() / grain;
        if above < 0.0 {
            let is_up = is_below(dice, (above * grain).exp2());
            return if is_up { floor.max(self) } else { self };
        }
        let part = ((above.fract() * grain).exp2() - 1.0) / (grain.exp2() - 1.0);
        let number = (above as u16).saturating_add(u16::from(is_below(dice, part)));
        Self(TRUST_FLOOR + number.min(N_TRUSTS - 1) * TRUST_GRAIN).max(self)
    }
}

/// Whether a random number is below a probability.
fn is_below(dice: u32, probability: f64) -> bool {
    (probability * 4_294_967_296.0) as u64 > u64::from(dice)
}

/// The mass and trust of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Weight {
    pub(crate) mass: Level,
    pub(crate) trust: Level,
}

impl Weight {
    /// Adds the contribution of a link. `name` identifies the page.
    pub(crate) fn plus(self, gift: Gift, name: u64) -> Self {
        let dice = mix(gift.draw ^ mix(name));
        Self {
            mass: self.mass.plus(gift.mass, dice as u32),
            trust: self.trust.plus_trust(gift.trust, (dice >> 32) as u32),
        }
    }

    /// Encodes mass and trust in 12 and 5 bits for a queue. Masses are from 1/8 to 2,048, and the
    /// maximum trust is 1,024.
    pub(crate) fn to_small(self) -> (u16, u16) {
        let mass = self.mass.0.saturating_sub(MASS_FLOOR);
        let above = self.trust.0.checked_sub(TRUST_FLOOR);
        let trust = above.map_or(0, |above| above / TRUST_GRAIN + 1);
        (mass.clamp(1, N_MASSES - 1), trust.min(N_TRUSTS))
    }

    /// Decodes the result of [`Self::to_small`].
    pub(crate) fn from_small(mass: u16, trust: u16) -> Self {
        let trust = match trust {
            0 => Level::NONE,
            _ => Level(TRUST_FLOOR + (trust - 1) * TRUST_GRAIN),
        };
        Self {
            mass: Level(MASS_FLOOR + mass),
            trust,
        }
    }
}

/// The contribution of a link to the page it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Gift {
    pub(crate) mass: f32,
    pub(crate) trust: f32,
    /// Identifies the contributing page, whose contributions are rounded in its own way.
    pub(crate) draw: u64,
    /// Whether it comes from a link of a page, not from a redirect or a duplicate.
    pub(crate) is_link: bool,
}

impl Gift {
    pub(crate) const NONE: Self = Self {
        mass: 0.0,
        trust: 0.0,
        draw: 0,
        is_link: false,
    };

    /// Returns the contribution to each of `n_links` pages, from a page with a weight and a quality
    /// between 0 and 1.
    pub(crate) fn share_of(weight: Weight, quality: f32, n_links: usize, draw: u64) -> Self {
        let quality = if quality >= 0.0 {
            quality.min(1.0)
        } else {
            1.0
        };
        let part = DAMPING * quality / n_links.max(1) as f32;
        Self {
            mass: part * weight.mass.amount(),
            trust: part * weight.trust.amount(),
            draw,
            is_link: true,
        }
    }

    /// Whether it is zero.
    pub(crate) fn is_nothing(&self) -> bool {
        self.mass + self.trust <= 0.0
    }

    /// Returns the contribution to the page that replaces this one: the target of a redirect, or
    /// the original of a duplicate.
    pub(crate) fn whole(weight: Weight, draw: u64) -> Self {
        Self {
            mass: weight.mass.amount(),
            trust: weight.trust.amount(),
            draw,
            is_link: false,
        }
    }
}

/// Returns the share of its priority that the next page of a site has: 1 for the first `pages`
/// pages per unit of trust, then less with every page, but never zero.
pub(crate) fn share(trust: f32, n_fetched: u64, pages: f64) -> f64 {
    let trust = f64::from(trust).max(1e-9);
    let pages = if pages > 0.0 { pages } else { 1.0 };
    (pages * trust / (1.0 + n_fetched as f64)).clamp(1e-15, 1.0)
}

/// Converts the priority of a page in a sitemap, from 0 to 1, to a class of [`class_steps`]; 0 if
/// it is missing or invalid.
pub(crate) fn class_of(priority: f32) -> u8 {
    match (0.0..=1.0).contains(&priority) {
        true => 1 + (priority * 6.0).round() as u8,
        false => 0,
    }
}

/// Returns the number of steps by which a class moves a page among those of its host: a factor of
/// 1/2 to 2.
pub(crate) fn class_steps(class: u8) -> i32 {
    match class {
        1..=7 => (i32::from(class) - 4) * STEPS / 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    const LINKS: [&[usize]; 5] = [&[1, 2], &[2], &[0], &[2, 0], &[]];

    /// Computes the order and the masses at the time of the fetch by the formulas above, without
    /// levels.
    #[test]
    fn base_opic_of_four_pages() {
        let mut mass = [0.0; 5];
        let mut is_fetched = [false; 5];
        mass[3] = SEED;
        let mut order = Vec::new();
        loop {
            let waiting = (0..5).filter(|&page| !is_fetched[page] && mass[page] > 0.0);
            let Some(page) = waiting.max_by(|&a, &b| f32::total_cmp(&mass[a], &mass[b])) else {
                break;
            };
            is_fetched[page] = true;
            order.push((page, mass[page]));
            let given = DAMPING * mass[page] / LINKS[page].len() as f32;
            for &to in LINKS[page] {
                if !is_fetched[to] {
                    mass[to] = given + if mass[to] > 0.0 { mass[to] } else { BASE };
                }
            }
        }
        let expected = [(3, 10.0), (2, 4.4), (0, 8.14), (1, 3.6095)];
        assert_eq!(order.len(), 4);
        for ((page, mass), (expected, amount)) in order.into_iter().zip(expected) {
            assert_eq!(page, expected);
            assert!((mass - amount).abs() < 1e-5, "{mass} {amount}");
        }
    }

    /// Computes the same with levels and contributions.
    #[test]
    fn levels_keep_the_masses_of_four_pages() {
        let mut weights = [Weight::default(); 5];
        weights[3].mass = Level::of(SEED);
        for page in [3, 2, 0] {
            let gift = Gift::share_of(weights[page], 1.0, LINKS[page].len(), page as u64);
            for &to in LINKS[page] {
                if weights[to] == Weight::default() {
                    weights[to].mass = Level::of(BASE);
                }
                weights[to] = weights[to].plus(gift, to as u64);
            }
        }
        // Page 2 received more from page 0 after it had been fetched.
        for (page, amount) in [(3, 10.0), (0, 8.14), (1, 3.6095)] {
            let mass = weights[page].mass.amount();
            assert!((mass / amount - 1.0).abs() < 8e-3, "{page}: {mass}");
        }
    }

    /// Trust that is passed on until nothing is left equals personalised PageRank.
    #[test]
    fn trust_is_personalised_pagerank() {
        let (mut left, mut all) = ([0.0; 5], [0.0_f64; 5]);
        left[3] = 1.0;
        for _ in 0..400 {
            let before = std::mem::take(&mut left);
            for (page, links) in LINKS.iter().enumerate() {
                all[page] += 0.15 * before[page];
                for &to in *links {
                    left[to] += f64::from(DAMPING) * before[page] / links.len() as f64;
                }
            }
        }
        let expected = [0.355568, 0.151116, 0.343315, 0.15, 0.0];
        for (found, expected) in all.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn levels_are_near_their_amounts() {
        for amount in [1e-9, 0.15, 1.0, 10.0, 123_456.0] {
            let back = Level::of(amount).amount();
            assert!((back / amount - 1.0).abs() < 14e-4, "{amount} {back}");
        }
        assert_eq!(Level::of(0.0), Level::NONE);
        assert_eq!(Level::of(f32::NAN), Level::NONE);
        assert_eq!(Level::of(-1.0), Level::NONE);
        assert_eq!(Level::of(f32::INFINITY), Level::MOST);
        assert_eq!(Level::NONE.amount(), 0.0);
    }

    /// A million contributions far below one step are not lost: a page has about their sum, and the
    /// mean of many pages is close to it.
    #[test]
    fn a_million_small_gifts_count() {
        let mut random = SplitMix::new(3);
        let mut masses = Vec::new();
        for page in 0..16 {
            let mut weight = Weight {
                mass: Level::of(BASE),
                trust: Level::NONE,
            };
            for n in 0..1_000_000_u64 {
                let gift = Gift {
                    mass: 1e-5 * (0.5 + (random.below(1000) as f32) / 1000.0),
                    draw: n,
                    ..Gift::NONE
                };
                weight = weight.plus(gift, page);
            }
            let mass = weight.mass.amount();
            assert!((mass / 10.15 - 1.0).abs() < 0.15, "{mass}");
            masses.push(mass);
        }
        let mean = masses.iter().sum::<f32>() / 16.0;
        assert!((mean / 10.15 - 1.0).abs() < 0.03, "{mean}");
    }

    /// Trust has few levels: that of one page may be twice too large, that of many is not.
    #[test]
    fn issue_26_trust_is_right_on_average() {
        for (each, n_gifts) in [(1e-6, 1000), (1e-3, 200), (0.03, 1), (1.0, 3)] {
            let mut sum = 0.0;
            for page in 0..4000_u64 {
                let mut weight = Weight::default();
                for draw in 0..n_gifts {
                    let gift = Gift {
                        trust: each,
                        draw: mix(draw + (1 << 40)),
                        ..Gift::NONE
                    };
                    weight = weight.plus(gift, page);
                    let (mass, trust) = weight.to_small();
                    assert_eq!(Weight::from_small(mass, trust).trust, weight.trust);
                }
                sum += weight.trust.amount();
            }
            let mean = sum / 4000.0 / n_gifts as f32;
            assert!((mean / each - 1.0).abs() < 0.04, "{each}: {mean}");
        }
        assert_eq!(Level::of_trust(1.0, 7).amount(), 1.0);
        assert_eq!(Level::of_trust(f32::INFINITY, 7).amount(), 1024.0);
        assert_eq!(Level::of_trust(f32::NAN, 7), Level::NONE);
    }

    #[test]
    fn a_gift_never_takes() {
        let weight = Weight {
            mass: Level::of(5.0),
            trust: Level::of(1.0),
        };
        for bad in [f32::NAN, -1.0, 0.0] {
            let gift = Gift {
                mass: bad,
                trust: bad,
                draw: 3,
                is_link: true,
            };
            assert_eq!(weight.plus(gift, 1), weight);
        }
        let bad = Gift::share_of(weight, f32::NAN, 0, 0);
        assert!((bad.mass - 4.25).abs() < 0.01, "{bad:?}");
        assert!(Gift::share_of(weight, 0.0, 3, 1).is_nothing());
    }

    #[test]
    fn shares_fall_with_pages_and_never_to_nothing() {
        assert_eq!(share(1.0, 0, 300.0), 1.0);
        assert_eq!(share(1.0, 299, 300.0), 1.0);
        assert!((share(1.0, 599, 300.0) - 0.5).abs() < 1e-12);
        assert!((share(0.01, 29, 300.0) - 0.1).abs() < 1e-6);
        assert!(share(0.0, u64::MAX, 300.0) > 0.0);
        assert!(share(f32::NAN, 5, f64::NAN) > 0.0);
    }

    #[test]
    fn priorities_of_sitemaps() {
        assert_eq!([0.0, 0.5, 1.0].map(class_of), [1, 4, 7]);
        assert_eq!([f32::NAN, -0.1, 1.5, f32::INFINITY].map(class_of), [0; 4]);
        let steps = [1, 4, 7, 0, 8].map(class_steps);
        assert_eq!(steps, [-STEPS, 0, STEPS, 0, 0]);
    }
}
