//! The pairs that are put before raters: drawn with a seed, level by level.
//!
//! *Question.* Which of millions of pairs should people look at, so that every level of similarity
//! is judged and nobody's choice matters?
//!
//! *Idea.* Every pair draws a number made of the seed and its two documents; of each level the
//! pairs with the smallest numbers are taken, by B-sim and by C-sim apart. Raters see them in the
//! order of another such number, so that levels come mixed. The same seed and run give the same
//! sample in the same order to every rater. *Cost.* One pass over the pairs; memory for the sample.

use std::collections::BTreeMap;
use std::path::Path;

use arose::mix::mix;
use arose_dedup::evaluate::ratings::{Level, Population, Sites};
use arose_dedup::results::documents::site_of;
use arose_dedup::results::{Error, Pair, details, pairs};

/// By which score pairs are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum By {
    #[default]
    B,
    C,
}

impl By {
    pub(crate) fn parse(name: &str) -> Self {
        match name {
            "c" => Self::C,
            _ => Self::B,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::B => "b",
            Self::C => "c",
        }
    }
}

/// A pair to be rated.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chosen {
    pub(crate) pair: Pair,
    pub(crate) sites: Sites,
}

/// The pairs to be rated, and how many there are to draw from.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    pub(crate) by_b: Vec<Chosen>,
    pub(crate) by_c: Vec<Chosen>,
    pub(crate) population: Population,
}

impl Sample {
    /// Draws `n` pairs of each level.
    pub(crate) fn draw(pairs: &Path, documents: &Path, seed: u64, n: usize) -> Result<Self, Error> {
        let mut population = Population::default();
        let (mut by_b, mut by_c) = (Strata::new(n), Strata::new(n));
        pairs::for_each(pairs, |pair| {
            population.add(pair.b_sim, pair.c_sim);
            let number = mix(mix(seed) ^ mix(pair.a).wrapping_add(pair.b));
            by_b.offer(Level::of_b(pair.b_sim), number, &pair);
            by_c.offer(Level::of_c(pair.c_sim), number, &pair);
            Ok(())
        })?;
        Ok(Self {
            by_b: by_b.finish(documents)?,
            by_c: by_c.finish(documents)?,
            population,
        })
    }

    pub(crate) fn pairs(&self, by: By) -> &[Chosen] {
        match by {
            By::B => &self.by_b,
            By::C => &self.by_c,
        }
    }
}

/// The pairs with the smallest numbers of each level.
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

    /// All of them in the order in which they are shown.
    fn finish(self, documents: &Path) -> Result<Vec<Chosen>, Error> {
        let mut chosen: Vec<(u64, Pair)> = self.levels.into_values().flatten().collect();
        chosen.sort_by_key(|(number, _)| mix(*number));
        let mut docs: Vec<u64> = chosen
            .iter()
            .flat_map(|(_, pair)| [pair.a, pair.b])
            .collect();
        docs.sort_unstable();
        docs.dedup();
        let details = details(documents, &docs)?;
        let site = |doc: u64| {
            details
                .get(&doc)
                .and_then(|detail| site_of(detail.url.as_deref()?))
        };
        let chosen = chosen.into_iter().map(|(_, pair)| Chosen {
            sites: Sites::of(site(pair.a).as_deref(), site(pair.b).as_deref()),
            pair,
        });
        Ok(chosen.collect())
    }
}
