//! Generates a corpus with known duplicates.
//!
//! *Question.* Recall needs all true pairs, which are unknown in a real corpus. Which corpus of any
//! size comes with its ground truth?
//!
//! *Idea.* Generate *families*: a page and the pages derived from it ([`FamilyKind`]). Pages of one
//! family are compared with each other, and the exact Jaccard similarity of each pair is written
//! down. Pages of different families consist of independently sampled words and share next to
//! nothing. Most families have one page; the sizes of the others follow Pareto's law, `P(size > n)
//! = n^(-4/3)` up to 50, as clusters of the web do.
//!
//! A page is a pure function of the [`PlantConfig`] and its position: only the starts of families
//! are stored, so that any number of pages can be generated in any order. An invertible permutation
//! (a Feistel network) scatters positions over the families, so that the duplicates of a page can
//! be anywhere in the file.
//!
//! *Parameters.* [`Recipe::Mixed`] for the speed and recall of a search, with words distributed as
//! in a language; [`Recipe::Acceptance`] for rules, after the evaluation protocol of Henzinger's
//! comparison: 50 pages per site, every word new.
//!
//! *Cost.* 4 bytes per family; about 15 ns per word of a page. *Error.* The ground truth is exact
//! except for collisions of 64-bit shingles. Two words are equal with probability 0.0078 in a mixed
//! corpus, so two families share a given run of five words with probability 3e-11.
//!
//! *Not for* deciding what people consider duplicates: ask people ([`super::labelled`]).

mod family;
mod shuffle;
mod words;
mod write;

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use arose::shingle::{ShingleSet, Shingler, jaccard};

use super::Error;
use family::Family;
use shuffle::Shuffle;
use words::Style;
pub use write::{Planted, write};

/// The corpus to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlantConfig {
    /// Number of pages.
    pub n_documents: u32,
    /// Number of sites.
    pub n_sites: u32,
    /// Seed of the corpus.
    pub seed: u64,
    /// Words of the median page of a mixed corpus.
    pub median_words: u32,
    /// Tokens per shingle for the ground truth.
    pub w: NonZeroUsize,
    /// The kind of corpus.
    pub recipe: Recipe,
}

/// The families of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recipe {
    /// Single pages and families of all kinds except tables, of any size.
    Mixed,
    /// On each site: 20 pages of one template, 5 of one table, 5 pages at two times, 5 pages and
    /// their mirrors, and 5 single pages.
    Acceptance,
}

impl Recipe {
    /// Pages on a site of the acceptance corpus.
    pub const ACCEPTANCE_PAGES: u32 = 50;
}

/// The relation of the pages of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FamilyKind {
    /// None: the family is one page.
    Unique,
    /// Duplicates on other sites, the same except for case, punctuation and whitespace.
    Exact,
    /// Duplicates on other sites that differ in the words of their own URL.
    Mirror,
    /// Duplicates on one site with another session ID in some places and in the URL.
    Session,
    /// Duplicates on one site at different times, with different dates.
    Stamp,
    /// Duplicates with one run of words replaced.
    Block,
    /// Duplicates with single words replaced.
    Scatter,
    /// Duplicates without their end.
    Truncation,
    /// Duplicates with text added at the end.
    Extension,
    /// Pages of one site that share a template around different items. They are not duplicates.
    Template,
    /// Pages of one site with a long table of the same few words and different items. They are not
    /// duplicates.
    Table,
}

impl FamilyKind {
    /// Every kind, in the order of its declaration.
    pub const ALL: [Self; 11] = [
        Self::Unique,
        Self::Exact,
        Self::Mirror,
        Self::Session,
        Self::Stamp,
        Self::Block,
        Self::Scatter,
        Self::Truncation,
        Self::Extension,
        Self::Template,
        Self::Table,
    ];

    /// Returns the name of the kind in files, which never changes.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unique => "unique",
            Self::Exact => "exact",
            Self::Mirror => "mirror",
            Self::Session => "session",
            Self::Stamp => "stamp",
            Self::Block => "block",
            Self::Scatter => "scatter",
            Self::Truncation => "truncation",
            Self::Extension => "extension",
            Self::Template => "template",
            Self::Table => "table",
        }
    }

    /// Returns whether its pages are duplicates of each other, or only look similar.
    #[must_use]
    pub const fn is_copy(self) -> bool {
        !matches!(self, Self::Unique | Self::Template | Self::Table)
    }
}

impl fmt::Display for FamilyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for FamilyKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let kind = Self::ALL.into_iter().find(|kind| kind.as_str() == name);
        kind.ok_or_else(|| Error::Setting(format!("`{}` is not a kind", name.escape_debug())))
    }
}

/// A page of the corpus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// `p` and its position.
    pub id: String,
    /// Its URL.
    pub url: String,
    /// Its text.
    pub text: String,
}

/// Two pages of one family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TruePair {
    /// The position of the page that comes first.
    pub a: u32,
    /// The position of the other.
    pub b: u32,
    /// Their relation.
    pub kind: FamilyKind,
    /// The Jaccard similarity of their shingle sets.
    pub jaccard: f64,
}

/// A corpus that is generated page by page.
#[derive(Debug, Clone)]
pub struct Plan {
    config: PlantConfig,
    /// The slot of the first page of each family. Slots are the pages by family.
    begins: Vec<u32>,
    shuffle: Shuffle,
    shingler: Shingler,
}

impl Plan {
    /// Lays out the families.
    ///
    /// # Errors
    ///
    /// If there is no page or no site, or an acceptance corpus does not have 50 pages per site.
    pub fn new(config: PlantConfig) -> Result<Self, Error> {
        check(&config)?;
        let mut begins = Vec::new();
        let mut n_pages = 0_u32;
        while n_pages < config.n_documents {
            begins.push(n_pages);
            let family = Family::new(&config, begins.len() as u32 - 1);
            n_pages = n_pages.saturating_add(family.size);
        }
        Ok(Self {
            config,
            begins,
            shuffle: Shuffle::new(config.n_documents, config.seed),
            shingler: Shingler::new(config.w),
        })
    }

    /// Returns the settings.
    #[must_use]
    pub fn config(&self) -> &PlantConfig {
        &self.config
    }

    /// Returns the number of families.
    #[must_use]
    pub fn n_families(&self) -> u32 {
        self.begins.len() as u32
    }

    /// Returns the page at a position below the number of documents.
    #[must_use]
    pub fn page(&self, position: u32) -> Page {
        let slot = self.shuffle.slot(position);
        let index = self.begins.partition_point(|&begin| begin <= slot) - 1;
        let member = slot - self.begins[index];
        let family = Family::new(&self.config, index as u32);
        let style = match family.kind {
            FamilyKind::Exact => Style::ALL[member as usize % Style::ALL.len()],
            _ => Style::Plain,
        };
        Page {
            id: format!("p{position}"),
            url: family.url(member, position),
            text: words::spell(&family.words(member), style),
        }
    }

    /// Returns the kind of a family and the number of its pages in the corpus.
    #[must_use]
    pub fn family(&self, index: u32) -> (FamilyKind, u32) {
        let family = Family::new(&self.config, index);
        (family.kind, self.n_members(index))
    }

    /// Returns all pairs of a family, by ascending positions.
    #[must_use]
    pub fn truth(&self, index: u32) -> Vec<TruePair> {
        let n_members = self.n_members(index);
        if n_members < 2 {
            return Vec::new();
        }
        let family = Family::new(&self.config, index);
        let begin = self.begins[index as usize];
        let member = |member| {
            let set = self.shingler.set(&family.words(member));
            (self.shuffle.position(begin + member), set)
        };
        let mut members: Vec<(u32, ShingleSet)> = (0..n_members).map(member).collect();
        members.sort_unstable_by_key(|&(position, _)| position);
        let mut pairs = Vec::new();
        for (i, (a, set_a)) in members.iter().enumerate() {
            pairs.extend(members[i + 1..].iter().map(|(b, set_b)| TruePair {
                a: *a,
                b: *b,
                kind: family.kind,
                jaccard: jaccard(set_a, set_b).unwrap_or(0.0),
            }));
        }
        pairs
    }

    /// The last family ends at the end of the corpus.
    fn n_members(&self, index: u32) -> u32 {
        let begin = self.begins[index as usize];
        let next = self.begins.get(index as usize + 1).copied();
        next.unwrap_or(self.config.n_documents) - begin
    }
}

fn check(config: &PlantConfig) -> Result<(), Error> {
    let n_acceptance = config.n_sites.checked_mul(Recipe::ACCEPTANCE_PAGES);
    let is_uneven = config.recipe == Recipe::Acceptance && n_acceptance != Some(config.n_documents);
    let flaw = match config {
        PlantConfig { n_documents: 0, .. } => "a corpus needs at least one document",
        PlantConfig { n_sites: 0, .. } => "a corpus needs at least one site",
        PlantConfig {
            median_words: 0, ..
        } => "a page needs at least one word",
        _ if config.w.get() > 100 => "--shingle is at most 100 here",
        _ if is_uneven => "an acceptance corpus has 50 pages on each site",
        _ => return Ok(()),
    };
    Err(Error::Setting(flaw.to_owned()))
}

#[cfg(test)]
mod tests;
