//! A link graph with popular pages, dead ends and unreachable pages.

use std::num::NonZeroUsize;

use super::check_share;
use super::corpus::MAX_COUNT;
use crate::Error;
use crate::estimate::links::Links;
use crate::mix::SplitMix;

/// Settings of the links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphConfig {
    /// Pages.
    pub n_pages: usize,
    /// Links per page on average; the number is geometric, so many pages have none.
    pub mean_links: f64,
    /// The share of links that copy the target of an earlier link, so that popular pages become
    /// more popular.
    pub popularity: f64,
    /// Pages per host; the pages of a host have consecutive numbers.
    pub pages_per_host: NonZeroUsize,
    /// The seed of everything.
    pub seed: u64,
}

impl Default for GraphConfig {
    /// 1,000 pages, each on its own host; most pages lead to about 770 of them.
    fn default() -> Self {
        Self {
            n_pages: 1000,
            mean_links: 3.5,
            popularity: 0.5,
            pages_per_host: NonZeroUsize::MIN,
            seed: 2,
        }
    }
}

/// Pages and their links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkGraph {
    /// The pages that each page links to.
    pub links: Links,
    /// Number of pages with consecutive numbers that share a host, at least one.
    pub pages_per_host: NonZeroUsize,
}

impl LinkGraph {
    /// Generates the links.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no page or more than ten million, the mean is not in
    /// `0..=1000`, or the popularity is not in `0..=1`.
    ///
    /// ```
    /// use arose::estimate::simulate::{GraphConfig, LinkGraph};
    /// let graph = LinkGraph::new(&GraphConfig::default())?;
    /// let n_reachable = graph.links.reachable(&[0]).iter().filter(|&&reached| reached).count();
    /// assert!(n_reachable < 1000);
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn new(config: &GraphConfig) -> Result<Self, Error> {
        check_share("popularity", config.popularity)?;
        if !(1..=MAX_COUNT).contains(&config.n_pages) {
            return Err(Error::parameter(
                "n_pages",
                config.n_pages,
                "1 up to ten million",
            ));
        }
        if !(0.0..=1000.0).contains(&config.mean_links) {
            return Err(Error::parameter(
                "mean_links",
                config.mean_links,
                "0..=1000",
            ));
        }
        let mut random = SplitMix::new(config.seed);
        let mut links = Links::default();
        for _ in 0..config.n_pages {
            let mut own = Vec::new();
            // A geometric number: each further link with probability m / (m + 1).
            while random.next_f64() < config.mean_links / (config.mean_links + 1.0) {
                let so_far = links.targets();
                let n_so_far = so_far.len() + own.len();
                let is_copied = n_so_far > 0 && random.next_f64() < config.popularity;
                own.push(match is_copied {
                    true => {
                        let place = random.below(n_so_far as u64) as usize;
                        let later = || own[place - so_far.len()];
                        so_far.get(place).copied().unwrap_or_else(later)
                    }
                    false => random.below(config.n_pages as u64) as u32,
                });
            }
            links.push(own);
        }
        Ok(Self {
            links,
            pages_per_host: config.pages_per_host,
        })
    }

    /// Returns the host of a page.
    #[must_use]
    pub const fn host_of(&self, page: u32) -> u32 {
        (page as usize / self.pages_per_host.get()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_their_ends() {
        let config = GraphConfig {
            n_pages: 4000,
            ..GraphConfig::default()
        };
        let graph = LinkGraph::new(&config).unwrap();
        let n_links = graph.links.n_links();
        // A geometric number of mean 3.5 has the variance 15.75: 4 sqrt(15.75 / 4000) = 0.25.
        assert!((n_links as f64 / 4000.0 - 3.5).abs() < 0.25, "{n_links}");
        assert_eq!(graph.links.n_pages(), 4000);
        assert_eq!((graph.host_of(0), graph.host_of(3999)), (0, 3999));
    }

    #[test]
    fn hosts_hold_neighbours() {
        let graph = LinkGraph {
            links: Links::default(),
            pages_per_host: 2.try_into().unwrap(),
        };
        assert_eq!([1, 2, 3].map(|page| graph.host_of(page)), [0, 1, 1]);
    }

    #[test]
    fn bad_settings() {
        let good = GraphConfig::default();
        for bad in [
            GraphConfig { n_pages: 0, ..good },
            GraphConfig {
                mean_links: f64::NAN,
                ..good
            },
            GraphConfig {
                popularity: 1.1,
                ..good
            },
        ] {
            assert!(LinkGraph::new(&bad).is_err(), "{bad:?}");
        }
    }
}
