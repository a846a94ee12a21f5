//! Families: a page and the pages derived from it.

use arose::mix::{SplitMix, mix};

use super::words::{Vocabulary, fresh, spell_word};
use super::{FamilyKind, PlantConfig, Recipe};

/// Maximum number of pages of a family in a mixed corpus.
const MAX_SIZE: u32 = 50;

/// The kinds of families with more than one page in a mixed corpus, in proportion to their
/// frequency.
const KINDS: [FamilyKind; 16] = [
    FamilyKind::Exact,
    FamilyKind::Exact,
    FamilyKind::Mirror,
    FamilyKind::Mirror,
    FamilyKind::Session,
    FamilyKind::Session,
    FamilyKind::Stamp,
    FamilyKind::Stamp,
    FamilyKind::Block,
    FamilyKind::Block,
    FamilyKind::Scatter,
    FamilyKind::Truncation,
    FamilyKind::Extension,
    FamilyKind::Template,
    FamilyKind::Template,
    FamilyKind::Template,
];

/// Quantiles of a log-normal distribution of median 1 and sigma 0.6, from 1/32 to 31/32.
const LENGTHS: [f64; 16] = [
    0.327, 0.454, 0.546, 0.628, 0.707, 0.786, 0.867, 0.954, 1.048, 1.153, 1.273, 1.415, 1.593,
    1.833, 2.205, 3.058,
];

/// The common data of the pages of a family.
#[derive(Debug, Clone)]
pub(super) struct Family {
    pub(super) kind: FamilyKind,
    /// Number of pages, limited by the size of the corpus.
    pub(super) size: u32,
    /// Seed of the words that they share.
    random: SplitMix,
    /// Seed of the page's own words, after mixing with its number.
    seed: u64,
    vocabulary: Vocabulary,
    n_words: usize,
    /// Number of a page's own words that replace shared ones, if it is fixed.
    n_own: usize,
    /// The position of these words.
    at: usize,
    /// Minimum number of words to which a page is cut.
    n_least: usize,
    site: u32,
    n_sites: u32,
    /// Number of sites by which a copy is moved.
    stride: u32,
}

impl Family {
    /// Returns the family with an index. There are as many as needed.
    pub(super) fn new(config: &PlantConfig, index: u32) -> Self {
        let seed = mix(mix(config.seed).wrapping_add(u64::from(index)));
        let random = SplitMix::new(seed);
        match config.recipe {
            Recipe::Mixed => Self::mixed(config, random, seed),
            Recipe::Acceptance => Self::acceptance(config, random, seed, index),
        }
    }

    fn mixed(config: &PlantConfig, mut random: SplitMix, seed: u64) -> Self {
        let is_single = random.below(10) < 7;
        let kind = KINDS[random.below(KINDS.len() as u64) as usize];
        // A Pareto distribution with exponent 4/3. Roots are exact, but powers differ between
        // machines.
        let root = (1.0 - random.next_f64()).sqrt();
        let size = (1.0 / (root * root.sqrt())).min(f64::from(MAX_SIZE - 1)) as u32 + 1;
        // Twice the shingle length is the minimum length of a document that is not short.
        let n_least = 2 * config.w.get();
        let length = LENGTHS[random.below(LENGTHS.len() as u64) as usize];
        let length = length * (0.9 + 0.2 * random.next_f64()) * f64::from(config.median_words);
        let n_words = (length as usize).max(n_least + 4);
        let n_own = match kind {
            FamilyKind::Mirror => 2 + random.below(3) as usize,
            FamilyKind::Stamp => 3,
            FamilyKind::Session => n_words.div_ceil(40),
            FamilyKind::Template => n_words * [5, 10, 20, 30][random.below(4) as usize] / 100 + 1,
            _ => 0,
        };
        Self {
            kind: if is_single { FamilyKind::Unique } else { kind },
            size: if is_single { 1 } else { size },
            at: random.below((n_words - n_own) as u64 + 1) as usize,
            site: random.below(u64::from(config.n_sites)) as u32,
            random,
            seed,
            vocabulary: Vocabulary::Zipf,
            n_words,
            n_own,
            n_least,
            n_sites: config.n_sites,
            stride: 1,
        }
    }

    /// Each site has 17 families: a template, a table, five stamps, five mirrors, five singles.
    fn acceptance(config: &PlantConfig, random: SplitMix, seed: u64, index: u32) -> Self {
        let (site, place) = (index / 17, index % 17);
        let (kind, size, n_words, n_own) = match place {
            0 => {
                let n_own = [100, 100, 50, 25][site as usize % 4];
                (FamilyKind::Template, 20, 500, n_own)
            }
            1 => (FamilyKind::Table, 5, 500, 100),
            2..=6 => (FamilyKind::Stamp, 2, 500, 3),
            7..=11 => (
                FamilyKind::Mirror,
                2,
                2000,
                [3, 3, 3, 4, 8][place as usize - 7],
            ),
            _ => (FamilyKind::Unique, 1, 500, 0),
        };
        Self {
            kind,
            size,
            random,
            seed,
            vocabulary: Vocabulary::Fresh,
            n_words,
            n_own,
            at: if kind == FamilyKind::Table { 400 } else { 200 },
            n_least: 2 * config.w.get(),
            site,
            n_sites: config.n_sites,
            stride: place.saturating_sub(6),
        }
    }

    /// Returns the words of one of its pages.
    pub(super) fn words(&self, member: u32) -> Vec<u64> {
        let mut words = self.shared();
        let mut own = self.own_random(member);
        let is_original = member == 0;
        match self.kind {
            FamilyKind::Unique | FamilyKind::Exact => {}
            FamilyKind::Mirror | FamilyKind::Stamp => {
                replace(&mut words, self.at, self.n_own, || fresh(&mut own));
            }
            FamilyKind::Session => self.put_session(&mut words, fresh(&mut own)),
            FamilyKind::Template | FamilyKind::Table => {
                let mut item = Vec::new();
                self.vocabulary.draw(&mut own, self.n_own, &mut item);
                words[self.at..self.at + self.n_own].copy_from_slice(&item);
            }
            _ if is_original => {}
            FamilyKind::Block => {
                let n = self.part(&mut own, 0.3);
                let at = own.below((words.len() - n) as u64 + 1) as usize;
                replace_by_draws(&mut words, at, n, self.vocabulary, &mut own);
            }
            FamilyKind::Scatter => {
                for _ in 0..self.part(&mut own, 0.06) {
                    let at = own.below(words.len() as u64) as usize;
                    replace_by_draws(&mut words, at, 1, self.vocabulary, &mut own);
                }
            }
            FamilyKind::Truncation => {
                let n_left = words.len() - self.part(&mut own, 0.5);
                words.truncate(n_left.max(self.n_least));
            }
            FamilyKind::Extension => {
                let n = self.part(&mut own, 0.8);
                self.vocabulary.draw(&mut own, n, &mut words);
            }
        }
        words
    }

    /// Returns the URL of one of its pages.
    pub(super) fn url(&self, member: u32, position: u32) -> String {
        let moves_by = match self.kind {
            FamilyKind::Session | FamilyKind::Stamp | FamilyKind::Template | FamilyKind::Table => 0,
            _ => u64::from(member) * u64::from(self.stride),
        };
        let site = (u64::from(self.site) + moves_by) % u64::from(self.n_sites);
        let mut url = format!("https://www.site{site}.example/");
        if self.kind == FamilyKind::Session {
            url.push_str("S-");
            spell_word(fresh(&mut self.own_random(member)), &mut url);
            url.push('/');
        }
        url + &position.to_string()
    }

    /// Returns the common text of all pages: the table of a table page, the text of others.
    fn shared(&self) -> Vec<u64> {
        let mut random = self.random.clone();
        let mut words = Vec::with_capacity(self.n_words + self.n_words / 2);
        if self.kind == FamilyKind::Table {
            self.vocabulary.draw(&mut random, 5, &mut words);
            words = words.repeat(self.n_words / 5);
        } else {
            self.vocabulary.draw(&mut random, self.n_words, &mut words);
        }
        words
    }

    /// Replaces words at positions spread over the page by the same session ID.
    fn put_session(&self, words: &mut [u64], id: u64) {
        let step = words.len() / self.n_own;
        let places = words.iter_mut().skip(self.at % step).step_by(step);
        places.for_each(|word| *word = id);
    }

    /// Returns a number of words of the page: at least one, at most a share of `most`, with small
    /// numbers more likely.
    fn part(&self, random: &mut SplitMix, most: f64) -> usize {
        let share = random.next_f64();
        (share * share * most * self.n_words as f64) as usize + 1
    }

    fn own_random(&self, member: u32) -> SplitMix {
        SplitMix::new(mix(self.seed ^ mix(u64::from(member) + 1)))
    }
}

fn replace(words: &mut [u64], at: usize, n: usize, mut draw: impl FnMut() -> u64) {
    words[at..at + n].iter_mut().for_each(|word| *word = draw());
}

fn replace_by_draws(
    words: &mut [u64],
    at: usize,
    n: usize,
    vocabulary: Vocabulary,
    random: &mut SplitMix,
) {
    let mut drawn = Vec::with_capacity(n);
    vocabulary.draw(random, n, &mut drawn);
    words[at..at + n].copy_from_slice(&drawn);
}
