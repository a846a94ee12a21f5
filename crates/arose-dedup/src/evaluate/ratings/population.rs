//! The pairs of a run by similarity range and site, from which samples are drawn.

use std::collections::BTreeMap;
use std::path::Path;

use arose::judgement::C_SIM_BINS;
use arose::token::fingerprint;

use super::{By, Sites};
use crate::results::documents;

/// A similarity range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// This many super-shingles in common.
    B(u32),
    /// Fewer matching bits than the first of the published bins.
    CBelow,
    /// One of the published bins of matching bits.
    C(usize),
    /// Not computed.
    Unknown,
}

impl Level {
    /// Returns the range of a pair in a sample.
    #[must_use]
    pub fn of(by: By, b_sim: Option<u32>, c_sim: Option<u32>) -> Self {
        match by {
            By::B => Self::of_b(b_sim),
            By::C => Self::of_c(c_sim),
        }
    }

    /// Returns the range of a number of matching super-shingles.
    #[must_use]
    pub fn of_b(b_sim: Option<u32>) -> Self {
        b_sim.map_or(Self::Unknown, Self::B)
    }

    /// Returns the range of a number of matching bits.
    #[must_use]
    pub fn of_c(c_sim: Option<u32>) -> Self {
        let Some(c_sim) = c_sim else {
            return Self::Unknown;
        };
        let bin = C_SIM_BINS.iter().position(|bin| bin.contains(&c_sim));
        bin.map_or(Self::CBelow, Self::C)
    }

    /// Returns the label of the range in a table.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::B(b_sim) => b_sim.to_string(),
            Self::CBelow => format!("below {}", C_SIM_BINS[0].start()),
            Self::C(bin) => {
                let bin = &C_SIM_BINS[bin];
                format!("{}-{}", bin.start(), bin.end())
            }
            Self::Unknown => "not computed".to_owned(),
        }
    }
}

/// The sites of all documents of a run, as hashes: 8 bytes per document.
#[derive(Debug, Default)]
pub struct SitesOf(Vec<u64>);

impl SitesOf {
    /// Reads the URLs of a table of documents.
    ///
    /// # Errors
    ///
    /// If the table cannot be read.
    pub fn read(path: &Path) -> Result<Self, crate::results::Error> {
        let mut sites = Vec::new();
        documents::for_each_url(path, |url| {
            let site = url.and_then(documents::site_of);
            sites.push(site.map_or(0, |site| fingerprint(site.as_bytes()).max(1)));
        })?;
        Ok(Self(sites))
    }

    /// Returns the relation of the sites of two documents.
    #[must_use]
    pub fn of(&self, a: u64, b: u64) -> Sites {
        let site = |doc: u64| {
            let site = usize::try_from(doc).ok().and_then(|doc| self.0.get(doc));
            site.copied().unwrap_or_default()
        };
        match (site(a), site(b)) {
            (0, _) | (_, 0) => Sites::Unknown,
            (a, b) if a == b => Sites::Same,
            _ => Sites::Different,
        }
    }
}

/// Number of pairs that a run has found, by sample, similarity range and sites.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Population(BTreeMap<(By, Level, Sites), u64>);

impl Population {
    /// Counts a pair.
    pub fn add(&mut self, b_sim: Option<u32>, c_sim: Option<u32>, sites: Sites) {
        for by in [By::B, By::C] {
            let level = Level::of(by, b_sim, c_sim);
            *self.0.entry((by, level, sites)).or_default() += 1;
        }
    }

    /// Counts the pairs of a run.
    ///
    /// # Errors
    ///
    /// If a table in the directory cannot be read.
    pub fn of_run(folder: &Path) -> Result<Self, crate::results::Error> {
        let sites = SitesOf::read(&folder.join("documents.parquet"))?;
        let mut population = Self::default();
        crate::results::pairs::for_each(&folder.join("pairs.parquet"), |pair| {
            population.add(pair.b_sim, pair.c_sim, sites.of(pair.a, pair.b));
            Ok(())
        })?;
        Ok(population)
    }

    /// Returns the ranges of a sample.
    pub(super) fn levels(&self, by: By) -> impl Iterator<Item = Level> {
        let cells = self.0.keys().filter(move |(of, ..)| *of == by);
        cells.map(|(_, level, _)| *level)
    }

    /// Returns the number of pairs of a sample in a range for whose sites `is_wanted` is true; none
    /// if it has none.
    pub(super) fn count(
        &self,
        by: By,
        level: Level,
        is_wanted: impl Fn(Sites) -> bool,
    ) -> Option<u64> {
        let cells = self
            .0
            .iter()
            .filter(|((of, at, sites), _)| *of == by && *at == level && is_wanted(*sites));
        cells.map(|(_, n)| *n).reduce(|a, b| a + b)
    }
}
