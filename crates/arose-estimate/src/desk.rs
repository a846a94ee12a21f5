//! Queries the words of a pool in one search engine and keeps the results.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use arose::estimate::pool::{Answer, Draws, Picking, inverse_degree, sample};
use arose::mix::{SplitMix, mix};

use super::pool::{PageMeasure, PoolSettings};
use super::vocabulary::{Vocabulary, lexicon};
use crate::engine::{Page, Panel, Question, Reply};
use arose_search::words;

use crate::Error;

/// Number of frequent words queried to find out how many results are shown.
const N_PILOTS: usize = 10;

/// Maximum number of consecutive queries that give no page.
const MAX_DRAWS: u64 = 20_000;

/// Number of attempts to find a valid query of a page before all its queries are sent.
const MAX_TRIALS: u64 = 200;

/// One search engine, queried for the words of a pool.
pub(super) struct Desk<'a> {
    pub(super) panel: &'a mut Panel,
    engine: usize,
    pub(super) pool: Vec<String>,
    places: HashMap<String, usize>,
    /// Number of results from which on more pages may match than are shown.
    limit: usize,
    trusts_counts: bool,
    predicted: HashMap<usize, Option<Rc<Vec<usize>>>>,
    pub(super) n_unfetched: u64,
    n_unexpected: u64,
    /// Number of pages for which all queries were sent, since hardly any was valid.
    n_exact: u64,
    /// Words with more results than the search engine shows.
    overflowing: HashSet<usize>,
    remarks: Vec<String>,
}

impl<'a> Desk<'a> {
    /// Determines how the search engine counts and truncates results.
    pub(super) fn open(
        panel: &'a mut Panel,
        engine: usize,
        vocabulary: &Vocabulary,
        pool: Vec<String>,
        n_controls: u32,
    ) -> Result<Self, Error> {
        if pool.is_empty() {
            return Err(Error::Words {
                what: "the pool is empty: no word of the lexicon is within --min-pages and --max-pages"
                    .to_owned(),
            });
        }
        let mut random = SplitMix::new(mix(n_controls.into()));
        let words = lexicon(vocabulary)?;
        panel.compare_counts(engine, &words, n_controls, &mut random)?;
        let shown = pilot(panel, engine, vocabulary)?;
        let trusts_counts = shown.iter().all(|(_, has_count)| *has_count)
            && !panel.health(engine).has_wrong_counts();
        let most = shown.iter().map(|(n, _)| *n).max().unwrap_or(0);
        let n_at_most = shown.iter().filter(|(n, _)| *n == most).count();
        let mut limit = panel.limit(engine);
        let mut remarks = Vec::new();
        if !trusts_counts && n_at_most >= 3 && most > 0 && most < limit {
            limit = most;
            remarks.push(format!(
                "{} seems to show at most {most} results, fewer than the {} requested",
                panel.name(engine),
                panel.limit(engine)
            ));
        }
        let places = pool.iter().cloned().zip(0..).collect();
        Ok(Self {
            panel,
            engine,
            pool,
            places,
            limit,
            trusts_counts,
            predicted: HashMap::new(),
            n_unfetched: 0,
            n_unexpected: 0,
            n_exact: 0,
            overflowing: HashSet::new(),
            remarks,
        })
    }

    /// The result of a query of the pool.
    pub(super) fn answer(&mut self, query: usize) -> Result<Answer, Error> {
        let question = Question::all(&[&self.pool[query]]);
        Ok(match &*self.panel.search(self.engine, &question)? {
            Reply::Missing(_) => Answer::Missing,
            Reply::Answer(hits) => {
                let overflows = match self.trusts_counts {
                    true => hits.is_cut(self.limit),
                    false => hits.n_results >= self.limit,
                };
                if overflows {
                    self.overflowing.insert(query);
                    return Ok(Answer::Overflow);
                }
                Answer::Pages(hits.pages.clone())
            }
        })
    }

    /// The text of a page; none if it is not available.
    pub(super) fn page(&mut self, page: usize) -> Result<Option<Page>, Error> {
        Ok(match &*self.panel.fetch(self.engine, page)? {
            Reply::Answer(found) => Some(found.clone()),
            Reply::Missing(_) => {
                self.n_unfetched += 1;
                None
            }
        })
    }

    /// The queries that should return a page, by its text; none if the text is not available.
    pub(super) fn predicted(&mut self, page: usize) -> Result<Option<Rc<Vec<usize>>>, Error> {
        if let Some(known) = self.predicted.get(&page) {
            return Ok(known.clone());
        }
        let queries = self
            .page(page)?
            .map(|found| Rc::new(self.queries_in(&found.text)));
        self.predicted.insert(page, queries.clone());
        Ok(queries)
    }

    /// The distinct pool words of a text.
    pub(super) fn queries_in(&self, text: &str) -> Vec<usize> {
        let words = words::words(text);
        let mut queries: Vec<usize> = words
            .iter()
            .filter_map(|word| self.places.get(word).copied())
            .collect();
        queries.sort_unstable();
        queries.dedup();
        queries
    }

    /// Whether a query is valid and returns a page.
    fn returns(&mut self, query: usize, page: usize) -> Result<bool, Error> {
        Ok(match self.answer(query)? {
            Answer::Pages(pages) => pages.contains(&page),
            Answer::Overflow | Answer::Missing => false,
        })
    }

    /// An unbiased estimate of one over the degree; none if there is no text or no valid query.
    pub(super) fn inverse_degree(
        &mut self,
        page: usize,
        random: &mut SplitMix,
    ) -> Result<Option<f64>, Error> {
        let Some(queries) = self.predicted(page)? else {
            return Ok(None);
        };
        let mut n_asked = 0;
        let guess = inverse_degree(queries.len(), MAX_TRIALS, random, |place| {
            n_asked += 1;
            self.returns(queries[place], page)
        })?;
        self.n_exact += u64::from(n_asked > MAX_TRIALS);
        self.n_unexpected += u64::from(guess.is_none());
        Ok(guess)
    }

    /// All valid queries that return a page.
    pub(super) fn queries_of(&mut self, page: usize) -> Result<Vec<usize>, Error> {
        let Some(queries) = self.predicted(page)? else {
            return Ok(Vec::new());
        };
        let mut valid = Vec::new();
        for &query in queries.iter() {
            if self.returns(query, page)? {
                valid.push(query);
            }
        }
        Ok(valid)
    }

    pub(super) fn draw_one(
        &mut self,
        picking: Picking,
        random: &mut SplitMix,
    ) -> Result<usize, Error> {
        let draws = Draws {
            n_pool: self.pool.len(),
            limit: self.limit,
            n_samples: 1,
            max_queries: MAX_DRAWS,
        };
        let drawn = sample(&draws, picking, random, |query| self.answer(query))?;
        Ok(drawn.pages[0])
    }

    /// Samples pages; fewer than wanted if the budget ends.
    pub(super) fn draw(
        &mut self,
        settings: &PoolSettings,
        picking: Picking,
        random: &mut SplitMix,
    ) -> Result<Vec<usize>, Error> {
        let mut pages = Vec::new();
        while pages.len() < settings.n_samples {
            match self.draw_one(picking, random) {
                Ok(page) => pages.push(page),
                Err(error) if error.ends_study() && !pages.is_empty() => {
                    let n = pages.len();
                    self.remarks
                        .push(format!("the budget of requests was spent after {n} pages"));
                    break;
                }
                Err(error) => return Err(error),
            }
            self.panel.advance();
        }
        Ok(pages)
    }

    pub(super) fn value(
        &mut self,
        page: usize,
        measure: &PageMeasure,
    ) -> Result<Option<f64>, Error> {
        Ok(self.page(page)?.map(|found| measure.of(&found)))
    }

    pub(super) fn values(
        &mut self,
        pages: &[usize],
        settings: &PoolSettings,
    ) -> Result<Vec<f64>, Error> {
        let mut values = Vec::new();
        for &page in pages {
            values.extend(self.value(page, &settings.measure)?);
        }
        Ok(values)
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = self.remarks.clone();
        if !self.overflowing.is_empty() {
            let n = self.overflowing.len();
            warnings.push(format!(
                "{n} words of the pool have more results than are shown; pages that only such \
                 words return are not counted"
            ));
        }
        if self.n_unfetched > 0 {
            let n = self.n_unfetched;
            warnings.push(format!("{n} pages could not be fetched and were omitted"));
        }
        if self.n_exact > 0 {
            let n = self.n_exact;
            warnings.push(format!(
                "for {n} pages, {MAX_TRIALS} consecutive words returned too much or another page; all \
                 their words were queried instead"
            ));
        }
        if self.n_unexpected > 0 {
            let n = self.n_unexpected;
            warnings.push(format!(
                "{n} pages were returned for words that their text does not contain, and omitted"
            ));
        }
        warnings
    }
}

/// The number of results shown for the most frequent words, and whether they have a count.
fn pilot(
    panel: &mut Panel,
    engine: usize,
    vocabulary: &Vocabulary,
) -> Result<Vec<(usize, bool)>, Error> {
    let mut frequent: Vec<&(String, u64)> = vocabulary.iter().collect();
    frequent.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let mut shown = Vec::new();
    for (word, _) in frequent.into_iter().take(N_PILOTS) {
        if let Reply::Answer(hits) = &*panel.search(engine, &Question::all(&[word]))? {
            shown.push((hits.n_results, hits.claimed.is_some()));
        }
    }
    Ok(shown)
}
