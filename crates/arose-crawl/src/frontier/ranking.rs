//! Orders: how URLs are ranked at their host, and hosts among each other.
//!
//! Everything that distinguishes the values of [`Order`] is here: the initial mass of a URL, what a
//! link adds to it, and the rank of a host, from the mass of its best URL and the share of its
//! site. A new order is a new value and a new arm in each match below.

use super::workbench::Rank;
use crate::order::{BASE, Gift, Level, N_MASSES, SEED, STEPS, Weight};
use crate::settings::Order;

/// Added to levels of priority, so that ranks far below the smallest level stay positive.
const FLOOR: i32 = 1 << 20;

/// If the best priority is below this, sites get more pages for their trust.
const SCARCE: f32 = 0.01;

/// How a URL was met.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrival {
    /// Whether a user passed it; it then has the trust of a seed.
    pub(crate) is_seed: bool,
    /// Whether it is a list of pages, which goes before pages.
    pub(crate) is_list: bool,
    /// The contribution of the link.
    pub(crate) gift: Gift,
    /// The number that the caller's own order assigns; the smallest go first.
    pub(crate) number: u32,
}

impl Order {
    /// Returns the weight of a new URL.
    pub(crate) fn weigh(self, arrival: Arrival) -> Weight {
        let Arrival { is_seed, gift, .. } = arrival;
        let base = match is_seed || arrival.is_list {
            true => SEED,
            false => BASE,
        };
        Weight {
            mass: match self {
                Self::Opic => Level::of(base + gift.mass),
                Self::Breadth => in_turn(arrival.number),
            },
            trust: Level::of_trust(gift.trust + f32::from(u8::from(is_seed)), gift.draw),
        }
    }

    /// Returns the contribution of a link to a queued URL.
    pub(crate) fn received(self, gift: Gift) -> Gift {
        match self {
            Self::Opic => gift,
            Self::Breadth => Gift { mass: 0.0, ..gift },
        }
    }
}

/// Returns a level that falls as a number grows. Numbers that are close to each other and far from
/// both ends of their range may get the same level.
fn in_turn(number: u32) -> Level {
    const EXACT: u32 = 1_700;
    // The number of levels that a queue distinguishes.
    const LAST: u32 = N_MASSES as u32 - 2;
    const BETWEEN: u64 = (LAST - 2 * EXACT) as u64;
    let to_end = u32::MAX - number;
    let turn = if number < EXACT {
        number
    } else if to_end < EXACT {
        LAST - to_end
    } else {
        EXACT + ((u64::from(number) * BETWEEN) >> 32) as u32
    };
    Weight::from_small((LAST - turn + 1) as u16, 0).mass
}

/// Ranks hosts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) order: Order,
    /// Pages of a site at full priority per unit of trust, at the start.
    pub(crate) pages: f64,
    /// How often that was doubled. Ranks are relative to it: the order of all hosts that a share
    /// limits stays the same when it grows.
    pub(crate) n_doublings: u32,
    /// Whether the crawl has a topic.
    pub(crate) is_focused: bool,
}

impl Scale {
    /// Returns the current number of pages per unit of trust.
    pub(crate) fn pages(&self) -> f64 {
        self.pages * f64::from(self.n_doublings.min(60)).exp2()
    }

    /// Returns the exponent of shares in a priority. In a crawl with a topic, the priority is the
    /// predicted score times the fourth root of mass times share. Otherwise, the site of the only
    /// seed would go before better pages of all others.
    pub(crate) fn power(&self) -> f64 {
        if self.is_focused { 0.25 } else { 1.0 }
    }

    /// Returns the rank of a host, from the mass of its best URL and the share of its site.
    pub(crate) fn rank(&self, mass: Level, share: f64) -> Rank {
        let steps = f64::from(STEPS) * self.power();
        let level = match self.order {
            Order::Opic => i32::from(mass.bits()) + (share.log2() * steps) as i32,
            // Hosts take turns; those of a site that has used its share come later.
            Order::Breadth => {
                i32::from(Level::of(1.0).bits()) + share.log2().floor() as i32 * STEPS
            }
        };
        (FLOOR + level - self.doublings()).clamp(1, i32::MAX - 1) as Rank
    }

    /// Returns the doublings as levels of priority.
    fn doublings(&self) -> i32 {
        let steps = f64::from(STEPS) * self.power();
        (f64::from(self.n_doublings.min(60)) * steps) as i32
    }

    /// Whether a rank means hardly any priority.
    pub(crate) fn is_scarce(&self, rank: Rank) -> bool {
        i64::from(rank) - i64::from(FLOOR) + i64::from(self.doublings())
            < i64::from(Level::of(SCARCE).bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_order() {
        let numbers = [0, 1, 2, 1699, 1700, 1 << 20, 1 << 31, u32::MAX - 1700];
        let more = [u32::MAX - 1699, u32::MAX - 2, u32::MAX - 1, u32::MAX];
        let levels: Vec<Level> = numbers.into_iter().chain(more).map(in_turn).collect();
        assert!(levels.is_sorted_by(|a, b| a >= b), "{levels:?}");
        assert!(in_turn(0) > in_turn(1) && in_turn(u32::MAX - 1) > in_turn(u32::MAX));
        assert!(in_turn(1) > in_turn(u32::MAX - 1) && in_turn(u32::MAX) > Level::NONE);
    }

    /// A rank is that of mass times share, and doubling leaves the order of limited sites alone.
    #[test]
    fn ranks_are_priorities() {
        let scale = |n_doublings| Scale {
            order: Order::Opic,
            pages: 300.0,
            n_doublings,
            is_focused: false,
        };
        let mass = Level::of(8.0);
        let full = scale(0).rank(Level::of(2.0), 1.0);
        assert!(scale(0).rank(mass, 0.25).abs_diff(full) <= 1);
        assert_eq!(scale(3).rank(mass, 1.0), scale(0).rank(mass, 0.125));
        assert!(scale(0).is_scarce(scale(0).rank(mass, 0.001)));
        assert!(!scale(0).is_scarce(full));
        assert!(!scale(4).is_scarce(scale(0).rank(mass, 0.001)));
        assert!(scale(60).rank(Level::NONE, 1e-15) > 0);
    }

    /// With a topic, a share of a sixteenth halves the priority.
    #[test]
    fn shares_count_less_with_a_topic() {
        let scale = |n_doublings| Scale {
            order: Order::Opic,
            pages: 300.0,
            n_doublings,
            is_focused: true,
        };
        let [one, two] = [1.0, 2.0].map(Level::of);
        assert_eq!(scale(0).rank(two, 1.0 / 16.0), scale(0).rank(one, 1.0));
        assert_eq!(scale(4).rank(two, 1.0), scale(0).rank(two, 1.0 / 16.0));
    }
}
