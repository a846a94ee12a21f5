//! Synthetic search engines with known content, well-behaved or not.
//!
//! A [`World`] is a corpus, a share of which each search engine has. Words are written `w0`, `w1`
//! and so on, URLs `sim://page/0`. A [`Fault`] is a way in which real search engines misbehave.

use std::rc::Rc;

use arose::estimate::simulate::{self, Corpus, CorpusConfig, EngineConfig, holdings};
use arose::mix::mix;

use super::{Engine, Joining, Page, Question, Reply, Requests, ResultList};
use crate::Error;

/// A corpus, and the part of it in each search engine.
#[derive(Debug, Clone)]
pub struct World {
    /// The pages.
    pub corpus: Rc<Corpus>,
    /// For each search engine and page, whether the search engine has the page.
    pub holds: Vec<Vec<bool>>,
}

impl World {
    /// Generates the pages and gives each search engine its share.
    ///
    /// # Errors
    ///
    /// If a setting is out of range.
    pub fn new(config: &CorpusConfig, shares: &[f64], dependence: f64) -> Result<Self, Error> {
        let corpus = Corpus::new(config)?;
        let holds = holdings(config.n_pages, shares, dependence, mix(config.seed ^ 1))?;
        Ok(Self {
            corpus: Rc::new(corpus),
            holds,
        })
    }

    /// One of the search engines.
    ///
    /// # Errors
    ///
    /// If there is no search engine with this number, or a setting is out of range.
    pub fn engine(
        &self,
        place: usize,
        config: EngineConfig,
        fault: Fault,
    ) -> Result<Simulated, Error> {
        let holds = self.holds.get(place).cloned().unwrap_or_default();
        let engine = simulate::Engine::new(&self.corpus, holds, config)?;
        Ok(Simulated {
            corpus: Rc::clone(&self.corpus),
            engine,
            config,
            fault,
            n_asked: 0,
        })
    }

    /// Ground truth: the number of pages of a search engine.
    #[must_use]
    pub fn n_held(&self, place: usize) -> usize {
        let holds = self.holds.get(place).map_or(&[][..], Vec::as_slice);
        holds.iter().filter(|&&held| held).count()
    }

    /// Ground truth: the number of pages in at least one search engine.
    #[must_use]
    pub fn n_union(&self) -> usize {
        let is_held = |&page: &usize| self.holds.iter().any(|holds| holds[page]);
        (0..self.corpus.pages.len()).filter(is_held).count()
    }

    /// The words of all pages with the number of pages that contain each.
    #[must_use]
    pub fn vocabulary(&self) -> Vec<(String, u64)> {
        let frequencies = self.corpus.frequencies().into_iter().enumerate();
        let known = frequencies.filter(|&(_, frequency)| frequency > 0);
        known
            .map(|(term, frequency)| (word(term as u32), frequency))
            .collect()
    }
}

/// A way to misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// Claims three times its size for some queries, and a third for others.
    Lies,
    /// Every tenth query times out.
    TimesOut,
    /// Shows every other result twice.
    Repeats,
    /// Responds to every third query, always the same ones, with a page without results or a count.
    Nonsense,
    /// Loses half of its pages after this many queries.
    Changes(u64),
}

/// A synthetic search engine.
#[derive(Debug, Clone)]
pub struct Simulated {
    corpus: Rc<Corpus>,
    engine: simulate::Engine,
    config: EngineConfig,
    fault: Fault,
    n_asked: u64,
}

impl Simulated {
    /// Ground truth: the pages that pool words return, without words that have too many results.
    #[must_use]
    pub fn matched_by(&self, pool: &[String]) -> Vec<usize> {
        let each = pool.iter().filter_map(|word| term(word));
        let results = each.map(|term| self.engine.matching_all(&[term]));
        let valid = results.filter(|pages| pages.len() <= self.config.limit);
        let mut pages: Vec<usize> = valid.flatten().collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// The failure of a query, if there is no response at all.
    fn failure(&self, question: &Question) -> Option<&'static str> {
        match self.fault {
            Fault::TimesOut if self.n_asked.is_multiple_of(10) => Some("timed out"),
            Fault::Nonsense if self.chance(question).is_multiple_of(3) => {
                Some("the response contains neither results nor a count")
            }
            _ => None,
        }
    }

    /// Whether a page has been lost.
    fn has_lost(&self, page: usize) -> bool {
        match self.fault {
            Fault::Changes(after) => self.n_asked > after && mix(page as u64).is_multiple_of(2),
            _ => false,
        }
    }

    fn matching(&self, question: &Question) -> Vec<usize> {
        let terms: Vec<Option<u32>> = question.parts.iter().map(|part| term(part)).collect();
        let mut pages = match question.joining {
            Joining::All => match terms.iter().copied().collect::<Option<Vec<u32>>>() {
                Some(terms) => self.engine.matching_all(&terms),
                None => Vec::new(),
            },
            Joining::Any => {
                let each = terms.into_iter().flatten();
                let mut pages: Vec<usize> = each
                    .flat_map(|term| self.engine.matching_all(&[term]))
                    .collect();
                pages.sort_unstable();
                pages.dedup();
                pages
            }
        };
        pages.retain(|&page| !self.has_lost(page));
        pages
    }

    /// A pseudorandom number for a query.
    fn chance(&self, question: &Question) -> u64 {
        let terms = question.parts.iter().filter_map(|part| term(part));
        let fold = |hash: u64, term: u32| mix(hash ^ mix(u64::from(term) + 1));
        terms.fold(self.config.seed, fold)
    }

    /// The count it claims if `n_pages` pages match.
    fn claim(&self, n_pages: usize, question: &Question) -> u64 {
        let chance = self.chance(question);
        let n = n_pages as f64;
        let factor = match self.fault {
            Fault::Lies if chance.is_multiple_of(2) => 3.0,
            Fault::Lies => 1.0 / 3.0,
            _ => {
                let deviation = (chance >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
                1.0 + self.config.count_noise * deviation
            }
        };
        (n * factor).round() as u64
    }
}

impl Engine for Simulated {
    fn limit(&self) -> usize {
        self.config.limit
    }

    fn search(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<Reply<ResultList>, Error> {
        requests.take()?;
        self.n_asked += 1;
        if let Some(reason) = self.failure(question) {
            return Ok(Reply::Missing(reason.to_owned()));
        }
        let mut pages = self.matching(question);
        let claimed = Some(self.claim(pages.len(), question));
        let seed = self.config.seed;
        pages.sort_by_key(|&page| mix(seed ^ mix(page as u64)));
        pages.truncate(limit.min(self.config.limit));
        if self.fault == Fault::Repeats {
            pages = pages
                .iter()
                .enumerate()
                .flat_map(|(place, &page)| std::iter::repeat_n(page, 1 + place % 2))
                .collect();
        }
        Ok(Reply::Answer(ResultList {
            claimed,
            addresses: pages.into_iter().map(address).collect(),
        }))
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        requests.take()?;
        let page = place(address).and_then(|place| self.corpus.pages.get(place));
        Ok(match page {
            None => Reply::Missing("no such page".to_owned()),
            Some(page) => {
                let words: Vec<String> = page.tokens.iter().map(|&term| word(term)).collect();
                Reply::Answer(Page {
                    address: address.to_owned(),
                    text: words.join(" "),
                })
            }
        })
    }

    fn has_lookup(&self) -> bool {
        true
    }

    fn contains(&mut self, address: &str, requests: &Requests) -> Result<Reply<bool>, Error> {
        requests.take()?;
        self.n_asked += 1;
        if self.fault == Fault::TimesOut && self.n_asked.is_multiple_of(10) {
            return Ok(Reply::Missing("timed out".to_owned()));
        }
        let is_held = |page| self.engine.contains(page) && !self.has_lost(page);
        Ok(Reply::Answer(place(address).is_some_and(is_held)))
    }
}

fn word(term: u32) -> String {
    format!("w{term}")
}

fn term(word: &str) -> Option<u32> {
    word.strip_prefix('w')?.parse().ok()
}

fn place(address: &str) -> Option<usize> {
    address.strip_prefix("sim://page/")?.parse().ok()
}

fn address(page: usize) -> String {
    format!("sim://page/{page}")
}
