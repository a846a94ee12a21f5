//! What a crawl that visits pages again has of them in memory: 16 bytes each.

use arose::freshness::{History, Pages, Prior, Stats};

use super::{PageId, Record, State};

/// Pages of a block; memory grows by blocks, never by doubling.
const BLOCK: usize = 1 << 14;

/// Pages that a prior is learned from.
const SAMPLE: usize = 4096;

/// Rounds of expectation maximization a day.
const ROUNDS: usize = 10;

/// The statistics of all pages, by number.
#[derive(Debug, Default)]
pub(crate) struct Known {
    blocks: Vec<Box<[Stats; BLOCK]>>,
    n_pages: usize,
    prior: Prior,
}

/// Stands for a page that is not to be visited.
const NONE: u32 = 0;

impl Known {
    /// Takes down what is known of a page.
    pub(crate) fn put(&mut self, page: PageId, record: &Record) {
        let is_visited = matches!(record.state, State::Live | State::Missing(_));
        let stats = match is_visited {
            true => record.stats,
            false => Stats::default(),
        };
        self.n_pages = self.n_pages.max(page as usize + 1);
        let block = page as usize / BLOCK;
        while self.blocks.len() <= block {
            self.blocks.push(Box::new([Stats::default(); BLOCK]));
        }
        self.blocks[block][page as usize % BLOCK] = stats;
    }

    fn get(&self, page: PageId) -> Option<Stats> {
        let block = self.blocks.get(page as usize / BLOCK)?;
        Some(block[page as usize % BLOCK]).filter(|stats| stats.last != NONE)
    }

    /// Pages that are to be visited, about so many of them, at equal distances.
    pub(crate) fn sample(&self, n: usize) -> Vec<Stats> {
        let stride = self.n_pages.div_ceil(n.max(1)).max(1);
        let pages = (0..self.n_pages).step_by(stride);
        pages.filter_map(|page| self.get(page as PageId)).collect()
    }

    /// Learns how often pages change, beginning with what is known of it.
    pub(crate) fn learn(&mut self) {
        let histories: Vec<History> = self.sample(SAMPLE).iter().map(Stats::history).collect();
        self.prior = self.prior.learned(&histories, ROUNDS);
    }

    /// The prior of all pages.
    pub(crate) fn common(&self) -> &Prior {
        &self.prior
    }
}

impl Pages for Known {
    fn stats(&self, page: u32) -> Option<Stats> {
        self.get(page)
    }

    fn prior(&self, _page: u32) -> &Prior {
        &self.prior
    }
}
