//! Search engines that have parts of a corpus.

use super::corpus::MAX_COUNT;
use super::{Corpus, check_share};
use crate::Error;
use crate::estimate::pool::Answer;
use crate::mix::{SplitMix, mix};

/// The behaviour of a search engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EngineConfig {
    /// Maximum number of results that it shows.
    pub limit: usize,
    /// Claimed counts are off by up to this share, either way.
    pub count_noise: f64,
    /// The share of queries that time out. The same query always times out or never does.
    pub missing: f64,
    /// The seed of ranks, noise and timeouts.
    pub seed: u64,
}

impl Default for EngineConfig {
    /// Shows 100 results, counts correctly and always responds.
    fn default() -> Self {
        Self {
            limit: 100,
            count_noise: 0.0,
            missing: 0.0,
            seed: 1,
        }
    }
}

/// A search engine over pages that only the simulation can count.
#[derive(Debug, Clone, PartialEq)]
pub struct Engine {
    config: EngineConfig,
    holds: Vec<bool>,
    /// The pages of the search engine with each word, in ascending order.
    postings: Vec<Vec<usize>>,
}

impl Engine {
    /// Indexes the pages of a corpus that `holds` selects.
    ///
    /// # Errors
    ///
    /// Returns an error if `holds` does not have one entry per page, or the noise or missing share
    /// is not in `0..=1`.
    ///
    /// ```
    /// use arose::estimate::simulate::{Corpus, CorpusConfig, Engine, EngineConfig, holdings};
    /// let corpus = Corpus::new(&CorpusConfig { n_pages: 500, ..CorpusConfig::default() })?;
    /// let holds = holdings(500, &[0.5], 0.0, 1)?.remove(0);
    /// let engine = Engine::new(&corpus, holds, EngineConfig::default())?;
    /// assert!((200..300).contains(&engine.n_pages()));
    /// # Ok::<(), arose::Error>(())
    /// ```
    pub fn new(corpus: &Corpus, holds: Vec<bool>, config: EngineConfig) -> Result<Self, Error> {
        check_share("count_noise", config.count_noise)?;
        check_share("missing", config.missing)?;
        if holds.len() != corpus.pages.len() {
            return Err(Error::parameter("holds", holds.len(), "one entry per page"));
        }
        let mut postings = vec![Vec::new(); corpus.n_terms];
        for (place, page) in corpus
            .pages
            .iter()
            .enumerate()
            .filter(|&(place, _)| holds[place])
        {
            for term in page.terms() {
                postings[term as usize].push(place);
            }
        }
        Ok(Self {
            config,
            holds,
            postings,
        })
    }

    /// Returns the number of its pages: the ground truth.
    #[must_use]
    pub fn n_pages(&self) -> usize {
        self.holds.iter().filter(|&&held| held).count()
    }

    /// Returns its pages, in ascending order: the ground truth.
    #[must_use]
    pub fn pages(&self) -> Vec<usize> {
        (0..self.holds.len())
            .filter(|&page| self.holds[page])
            .collect()
    }

    /// Returns whether it has a page.
    #[must_use]
    pub fn contains(&self, page: usize) -> bool {
        self.holds.get(page).copied().unwrap_or(false)
    }

    /// Returns all pages with all of these words, in ascending order: the ground truth.
    #[must_use]
    pub fn matching_all(&self, terms: &[u32]) -> Vec<usize> {
        let mut lists: Vec<&[usize]> = terms.iter().map(|&term| self.posting(term)).collect();
        lists.sort_by_key(|list| list.len());
        let Some((shortest, others)) = lists.split_first() else {
            return Vec::new();
        };
        let in_all = |page: &&usize| others.iter().all(|list| list.binary_search(page).is_ok());
        shortest.iter().filter(in_all).copied().collect()
    }

    /// Returns the best results for all of these words, at most the limit; `None` on a timeout.
    #[must_use]
    pub fn search(&self, terms: &[u32]) -> Option<Vec<usize>> {
        if self.times_out(terms) {
            return None;
        }
        let mut pages = self.matching_all(terms);
        pages.sort_by_key(|&page| mix(self.config.seed ^ mix(page as u64)));
        pages.truncate(self.config.limit);
        Some(pages)
    }

    /// Returns the response to a query, as a sampler sees it.
    #[must_use]
    pub fn answer(&self, terms: &[u32]) -> Answer {
        if self.times_out(terms) {
            return Answer::Missing;
        }
        let pages = self.matching_all(terms);
        if pages.len() > self.config.limit {
            return Answer::Overflow;
        }
        Answer::Pages(pages)
    }

    /// Returns the claimed number of pages with any of these words.
    #[must_use]
    pub fn claim(&self, terms: &[u32]) -> u64 {
        let mut pages: Vec<usize> = terms
            .iter()
            .flat_map(|&term| self.posting(term))
            .copied()
            .collect();
        pages.sort_unstable();
        pages.dedup();
        let deviation = 2.0 * self.chance(terms, 1) - 1.0;
        (pages.len() as f64 * (1.0 + self.config.count_noise * deviation)).round() as u64
    }

    fn posting(&self, term: u32) -> &[usize] {
        self.postings.get(term as usize).map_or(&[], Vec::as_slice)
    }

    fn times_out(&self, terms: &[u32]) -> bool {
        self.chance(terms, 2) < self.config.missing
    }

    /// Returns a number in `0.0..1.0` that is fixed for a query.
    fn chance(&self, terms: &[u32], purpose: u64) -> f64 {
        let fold = |hash, &term: &u32| mix(hash ^ mix(u64::from(term) + 1));
        let hash = terms.iter().fold(mix(self.config.seed ^ purpose), fold);
        SplitMix::new(hash).next_f64()
    }
}

/// Returns the pages, out of `n_pages`, that each search engine has, given the share of each.
///
/// With `dependence` zero, the search engines choose independently. With one, they all have the
/// most popular pages. Between, each page is chosen in common with that probability. Shares do not
/// depend on it.
///
/// # Errors
///
/// Returns an error if there are more than ten million pages, or a share or the dependence is not
/// in `0..=1`.
///
/// ```
/// use arose::estimate::simulate::holdings;
/// let engines = holdings(1000, &[0.5, 0.2], 1.0, 7)?;
/// // All that the smaller holds, the larger holds too.
/// assert!((0..1000).all(|page| engines[0][page] || !engines[1][page]));
/// # Ok::<(), arose::Error>(())
/// ```
pub fn holdings(
    n_pages: usize,
    shares: &[f64],
    dependence: f64,
    seed: u64,
) -> Result<Vec<Vec<bool>>, Error> {
    check_share("dependence", dependence)?;
    if n_pages > MAX_COUNT {
        return Err(Error::parameter("n_pages", n_pages, "up to ten million"));
    }
    shares
        .iter()
        .try_for_each(|&share| check_share("share", share))?;
    let mut random = SplitMix::new(seed);
    let mut engines = vec![Vec::with_capacity(n_pages); shares.len()];
    for _ in 0..n_pages {
        let popularity = random.next_f64();
        let in_common = random.next_f64() < dependence;
        for (engine, &share) in engines.iter_mut().zip(shares) {
            let own = random.next_f64();
            engine.push(if in_common { popularity } else { own } < share);
        }
    }
    Ok(engines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::simulate::CorpusConfig;

    fn engine(config: EngineConfig) -> Engine {
        let corpus = CorpusConfig {
            n_pages: 400,
            ..CorpusConfig::default()
        };
        let corpus = Corpus::new(&corpus).unwrap();
        Engine::new(
            &corpus,
            holdings(400, &[0.5], 0.0, 3).unwrap().remove(0),
            config,
        )
        .unwrap()
    }

    /// Every response equals a search through the pages themselves.
    #[test]
    fn answers_are_the_matching_pages() {
        let corpus = CorpusConfig {
            n_pages: 400,
            ..CorpusConfig::default()
        };
        let corpus = Corpus::new(&corpus).unwrap();
        let engine = engine(EngineConfig {
            limit: 20,
            ..EngineConfig::default()
        });
        assert_eq!(engine.pages().len(), engine.n_pages());
        for terms in [
            vec![0],
            vec![3, 40],
            vec![100],
            vec![19_999, 19_998],
            vec![99_999],
        ] {
            let has = |page: &usize, term: &u32| corpus.pages[*page].tokens.contains(term);
            let held = || (0..400).filter(|&page| engine.contains(page));
            let all: Vec<usize> = held()
                .filter(|page| terms.iter().all(|t| has(page, t)))
                .collect();
            let any = held()
                .filter(|page| terms.iter().any(|t| has(page, t)))
                .count();
            assert_eq!(engine.matching_all(&terms), all);
            assert_eq!(engine.claim(&terms), any as u64);
            let shown = engine.search(&terms).unwrap();
            assert_eq!(shown.len(), all.len().min(20));
            assert!(shown.iter().all(|page| all.contains(page)));
            let expected = if all.len() > 20 {
                Answer::Overflow
            } else {
                Answer::Pages(all)
            };
            assert_eq!(engine.answer(&terms), expected);
        }
        assert!(engine.matching_all(&[]).is_empty());
    }

    #[test]
    fn noise_and_time_outs() {
        let engine = engine(EngineConfig {
            count_noise: 0.2,
            missing: 0.1,
            ..EngineConfig::default()
        });
        let n_missing = (0..1000)
            .filter(|&term| engine.search(&[term]).is_none())
            .count();
        // 100 expected, standard deviation 9.5.
        assert!((62..=138).contains(&n_missing), "{n_missing}");
        let agree =
            |term| (engine.answer(&[term]) == Answer::Missing) == engine.search(&[term]).is_none();
        assert!((0..1000).all(agree));
        let truth = engine.matching_all(&[0]).len() as f64;
        let claim = engine.claim(&[0]) as f64;
        assert!(
            (claim / truth - 1.0).abs() <= 0.21 && claim != truth,
            "{claim}, {truth}"
        );
    }

    /// Shares do not change and overlaps grow: p q if independent, the smaller one if fully
    /// dependent; within 4 sqrt(p (1-p) / n) = 0.016 at most.
    #[test]
    fn dependence_moves_the_overlap() {
        for dependence in [0.0, 0.5, 1.0] {
            let engines = holdings(16_000, &[0.5, 0.3], dependence, 5).unwrap();
            let share = |held: &dyn Fn(usize) -> bool| {
                (0..16_000).filter(|&p| held(p)).count() as f64 / 16e3
            };
            let both = share(&|page| engines[0][page] && engines[1][page]);
            let expected = 0.3 * dependence + 0.15 * (1.0 - dependence);
            assert!((both - expected).abs() < 0.016, "{dependence}: {both}");
            assert!((share(&|page| engines[0][page]) - 0.5).abs() < 0.016);
            assert!((share(&|page| engines[1][page]) - 0.3).abs() < 0.016);
        }
    }

    #[test]
    fn bad_settings() {
        let corpus = CorpusConfig {
            n_pages: 4,
            ..CorpusConfig::default()
        };
        let corpus = Corpus::new(&corpus).unwrap();
        let good = EngineConfig::default();
        assert!(Engine::new(&corpus, vec![true; 3], good).is_err());
        let loud = EngineConfig {
            count_noise: 2.0,
            ..good
        };
        assert!(Engine::new(&corpus, vec![true; 4], loud).is_err());
        let silent = EngineConfig {
            missing: f64::NAN,
            ..good
        };
        assert!(Engine::new(&corpus, vec![true; 4], silent).is_err());
        assert!(holdings(usize::MAX, &[0.5], 0.0, 1).is_err());
        assert!(holdings(4, &[1.5], 0.0, 1).is_err());
        assert!(holdings(4, &[0.5], -0.1, 1).is_err());
    }
}
