//! A random sample of a few of many.
//!
//! *Question.* Which three of a million pairs should a person inspect, such that two runs choose
//! the same ones and no order of reading favours any?
//!
//! *Idea.* Every item draws a number, a hash of the seed and its own name, and the smallest numbers
//! are chosen. This is a uniform sample without replacement, and it does not depend on the order of
//! the items. *Cost.* Memory for `k` items; time `O(1)` for an item that is not chosen.

use arose::mix::mix;

/// The items chosen so far.
#[derive(Debug, Clone)]
pub(super) struct Lot<T> {
    seed: u64,
    size: usize,
    /// By the number drawn.
    winners: Vec<(u64, T)>,
}

impl<T> Lot<T> {
    /// Creates a sample of `size` items.
    pub(super) fn new(seed: u64, size: usize) -> Self {
        Self {
            seed,
            size,
            winners: Vec::new(),
        }
    }

    /// Draws a number for the item `name`, which must be unique.
    pub(super) fn draw(&mut self, name: u64, item: impl FnOnce() -> T) {
        let number = mix(mix(self.seed) ^ name);
        let place = self.winners.partition_point(|(held, _)| *held < number);
        if place < self.size {
            self.winners.truncate(self.size - 1);
            self.winners.insert(place, (number, item()));
        }
    }

    /// Returns the items with the smallest numbers, smallest first.
    pub(super) fn winners(&self) -> impl Iterator<Item = &T> {
        self.winners.iter().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn choose(seed: u64, size: usize, names: &[u64]) -> Vec<u64> {
        let mut lot = Lot::new(seed, size);
        for &name in names {
            lot.draw(name, || name);
        }
        lot.winners().copied().collect()
    }

    proptest! {
        #[test]
        fn order_does_not_matter(seed: u64, size in 1_usize..5, n in 0_u64..30) {
            let names: Vec<u64> = (0..n).collect();
            let mut turned = names.clone();
            arose::mix::SplitMix::new(seed).shuffle(&mut turned);
            let chosen = choose(seed, size, &names);
            prop_assert_eq!(choose(seed, size, &turned), chosen.clone());
            prop_assert_eq!(chosen.len(), size.min(names.len()));
        }
    }

    /// Each of 10 items is chosen 3,000 times in 10,000 draws of 3, within four standard errors
    /// (46).
    #[test]
    fn everyone_has_the_same_chance() {
        let names: Vec<u64> = (0..10).collect();
        let mut wins = [0_u32; 10];
        for seed in 0..10_000 {
            for name in choose(seed, 3, &names) {
                wins[name as usize] += 1;
            }
        }
        assert!(wins.iter().all(|n| n.abs_diff(3000) < 184), "{wins:?}");
    }
}
