//! Samples the pairs to rate: a random sample from every similarity range.
//!
//! *Question.* Which of millions of pairs should people look at, so that every similarity range is
//! rated and the choice is unbiased?
//!
//! *Idea.* Every pair gets a random number derived from the seed and its two documents. The pairs
//! with the smallest numbers of each range are taken, separately by B-sim and by C-sim. Raters see
//! them in the order of another such number, so that the ranges are mixed. The same seed and run
//! give the same sample in the same order to every rater. *Cost.* One pass over the pairs, and
//! memory for the sample.

use std::collections::BTreeMap;
use std::path::Path;

use arose::mix::mix;
use arose_dedup::evaluate::ratings::{By, Level, Population, Sites, SitesOf};
use arose_dedup::results::{Error, Pair, pairs};

/// A pair to rate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) pair: Pair,
    pub(crate) sites: Sites,
}

/// The pairs to rate, and the number of pairs they are sampled from.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) by_b: Vec<Chosen>,
    pub(crate) by_c: Vec<Chosen>,
    pub(crate) population: Population,
}

impl Sample {
    /// Samples `n` pairs from each similarity range.
    pub(crate) fn draw(pairs: &Path, documents: &Path, seed: u64, n: usize) -> Result<Self, Error> {
        let mut population = Population::default();
        let (mut by_b, mut by_c) = (Strata::new(n), Strata::new(n));
        let sites = SitesOf::read(documents)?;
        pairs::for_each(pairs, |pair| {
            population.add(pair.b_sim, pair.c_sim, sites.of(pair.a, pair.b));
            let number = mix(mix(seed) ^ mix(pair.a).wrapping_add(pair.b));
            by_b.offer(Level::of_b(pair.b_sim), number, &pair);
            by_c.offer(Level::of_c(pair.c_sim), number, &pair);
            Ok(())
        })?;
        Ok(Self {
            by_b: by_b.finish(&sites),
            by_c: by_c.finish(&sites),
            population,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_b.is_empty() && self.by_c.is_empty()
    }

    pub(crate) fn pairs(&self, by: By) -> &[Chosen] {
        match by {
            By::B => &self.by_b,
            By::C => &self.by_c,
        }
    }
}

/// The pairs with the smallest numbers of each range.
struct Strata {
    size: usize,
    levels: BTreeMap<Level, Vec<(u64, Pair)>>,
}

impl Strata {
    fn new(size: usize) -> Self {
        let levels = BTreeMap::new();
        Self { size, levels }
    }

    fn offer(&mut self, level: Level, number: u64, pair: &Pair) {
        let held = self.levels.entry(level).or_default();
        let place = held.partition_point(|(other, _)| *other < number);
        if place < self.size {
            held.truncate(self.size - 1);
            held.insert(place, (number, pair.clone()));
        }
    }

    /// All pairs in display order.
    fn finish(self, sites: &SitesOf) -> Vec<Chosen> {
        let mut chosen: Vec<(u64, Pair)> = self.levels.into_values().flatten().collect();
        chosen.sort_by_key(|(number, _)| mix(*number));
        let chosen = chosen.into_iter().map(|(_, pair)| Chosen {
            sites: sites.of(pair.a, pair.b),
            pair,
        });
        chosen.collect()
    }
}
