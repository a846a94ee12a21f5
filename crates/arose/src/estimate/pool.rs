//! Pool-based sampling: uniform samples of pages from a search engine that ranks and truncates
//! results.
//!
//! *Question.* A random query returns long pages more often than short ones, because they match
//! more queries. How can each page be sampled with the same probability?
//!
//! *Idea.* Fix a pool of queries. A query is *valid* if it returns something and the search engine
//! does not truncate its results. Pages and valid queries form a graph with an edge for each
//! result. The degree of a page is the number of valid queries that return it, and can be found
//! from its text by querying its words. Sampling a uniform edge samples a page in proportion to its
//! degree ([`Picking::ByCardinality`]): take a random query, keep it with probability results /
//! limit, take one result. A known bias can be corrected:
//!
//! - keep a page with probability C / degree, where C is the smallest degree ([`reject`]);
//! - or let it count 1 / degree ([`importance_mean`]);
//! - or walk from page to query to page, and reject some steps to higher degrees ([`metropolis`]).
//!
//! Bharat & Broder's method, any valid query and any of its results ([`Picking::AnyQuery`]), has a
//! bias that no degree corrects.
//!
//! *Papers.* Bar-Yossef & Gurevich 2006, 2007. *Parameters.* The pool: words of middle frequency;
//! the result limit of the search engine. *Cost.* One query per sample, most of which are rejected
//! if the limit is high, and the degree: one query per pool word of the page, or words per degree
//! with [`inverse_degree`]. *Error.* Bootstrap over pages, batch means over a walk. *Not for* pages
//! that no query of the pool returns: they have degree zero and are never sampled.

use crate::Error;
use crate::estimate::bootstrap::Bootstrap;
use crate::estimate::chain::{Weighted, check_weighted};
use crate::estimate::{Estimate, Method, Note};
use crate::judgement::{Z_95, wilson};
use crate::mix::SplitMix;

/// The response of a search engine to a query. The caller numbers pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// All pages that match.
    Pages(Vec<usize>),
    /// More pages match than are shown.
    Overflow,
    /// No response.
    Missing,
}

impl Answer {
    /// Returns the distinct pages of a valid response: at least one, at most `limit`.
    fn valid(self, limit: usize) -> Result<Vec<usize>, Invalid> {
        let mut pages = match self {
            Self::Pages(pages) => pages,
            Self::Overflow => return Err(Invalid::Overflow),
            Self::Missing => return Err(Invalid::Missing),
        };
        pages.sort_unstable();
        pages.dedup();
        match pages.len() {
            0 => Err(Invalid::Empty),
            n if n > limit => Err(Invalid::Overflow),
            _ => Ok(pages),
        }
    }
}

enum Invalid {
    Empty,
    Overflow,
    Missing,
}

/// The cost of sampling, and the results of the queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Effort {
    /// Queries sent.
    pub n_queries: u64,
    /// Queries without a result.
    pub n_empty: u64,
    /// Queries with more results than are shown.
    pub n_overflow: u64,
    /// Queries without a response.
    pub n_missing: u64,
    /// Valid queries, or steps, that were rejected at random.
    pub n_refused: u64,
}

impl Effort {
    fn count(&mut self, invalid: &Invalid) {
        match invalid {
            Invalid::Empty => self.n_empty += 1,
            Invalid::Overflow => self.n_overflow += 1,
            Invalid::Missing => self.n_missing += 1,
        }
    }
}

/// The valid queries from which a page is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Picking {
    /// Every one: pages are sampled in proportion to the sum of 1 / results over their queries.
    AnyQuery,
    /// Each with probability results / limit: pages are sampled in proportion to their degree.
    ByCardinality,
}

/// Settings for sampling pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Draws {
    /// Queries in the pool.
    pub n_pool: usize,
    /// Maximum number of results that the search engine shows.
    pub limit: usize,
    /// Number of pages to sample.
    pub n_samples: usize,
    /// Maximum number of queries; the sample is smaller if they do not suffice.
    pub max_queries: u64,
}

/// Pages drawn, with repetition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drawn {
    /// The pages, in sampling order.
    pub pages: Vec<usize>,
    /// The cost.
    pub effort: Effort,
}

impl Drawn {
    /// Returns an error if there are no pages.
    pub(super) fn or_none<E: From<Error>>(self) -> Result<Self, E> {
        if self.pages.is_empty() {
            return Err(Error::no_estimate("a mean over pages", no_page(&self.effort)).into());
        }
        Ok(self)
    }
}

/// Samples pages with random queries of the pool, which are numbered from zero.
///
/// # Errors
///
/// Returns an error if the pool is empty or the limit zero, if no query gives a page, or if
/// `search` fails.
///
/// ```
/// use arose::estimate::pool::{Answer, Draws, Picking, sample};
/// use arose::mix::SplitMix;
/// let draws = Draws { n_pool: 2, limit: 10, n_samples: 100, max_queries: 10_000 };
/// let results = [vec![1], vec![1, 2]];
/// let search = |query: usize| Ok::<_, arose::Error>(Answer::Pages(results[query].clone()));
/// let drawn = sample(&draws, Picking::ByCardinality, &mut SplitMix::new(1), search)?;
/// // Page 1 has degree two, page 2 degree one.
/// let n_first = drawn.pages.iter().filter(|&&page| page == 1).count();
/// assert!((50..85).contains(&n_first));
/// # Ok::<(), arose::Error>(())
/// ```
pub fn sample<E: From<Error>>(
    draws: &Draws,
    picking: Picking,
    random: &mut SplitMix,
    mut search: impl FnMut(usize) -> Result<Answer, E>,
) -> Result<Drawn, E> {
    if draws.n_pool == 0 || draws.limit == 0 {
        return Err(Error::parameter("pool or limit", 0, "at least one").into());
    }
    let mut drawn = Drawn::default();
    while drawn.pages.len() < draws.n_samples && drawn.effort.n_queries < draws.max_queries {
        drawn.effort.n_queries += 1;
        let answer = search(random.below(draws.n_pool as u64) as usize)?;
        match answer.valid(draws.limit) {
            Err(invalid) => drawn.effort.count(&invalid),
            Ok(pages) if is_kept(pages.len(), draws.limit, picking, random) => {
                drawn.pages.push(pick(&pages, random));
            }
            Ok(_) => drawn.effort.n_refused += 1,
        }
    }
    drawn.or_none()
}

fn is_kept(n_results: usize, limit: usize, picking: Picking, random: &mut SplitMix) -> bool {
    match picking {
        Picking::AnyQuery => true,
        Picking::ByCardinality => (random.below(limit as u64) as usize) < n_results,
    }
}

fn pick(pages: &[usize], random: &mut SplitMix) -> usize {
    pages[random.below(pages.len() as u64) as usize]
}

fn no_page(effort: &Effort) -> String {
    format!(
        "none of {} queries gave a page: {} empty, {} with too many results, {} without a response",
        effort.n_queries, effort.n_empty, effort.n_overflow, effort.n_missing
    )
}

/// A page drawn by degree, and its degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PageDegree {
    /// The page.
    pub page: usize,
    /// The number of valid queries of the pool that return it.
    pub degree: u64,
}

/// Thins pages drawn by degree to a uniform sample: each is kept with probability `least / degree`.
///
/// # Errors
///
/// Returns an error if `least` is zero, or a page has a smaller degree.
pub fn reject(
    sample: &[PageDegree],
    least: u64,
    random: &mut SplitMix,
) -> Result<Vec<usize>, Error> {
    if least == 0 {
        return Err(Error::parameter("least", least, "at least one"));
    }
    if let Some(below) = sample.iter().find(|page| page.degree < least) {
        let reason = format!(
            "page {} has degree {}, below {least}",
            below.page, below.degree
        );
        return Err(Error::no_estimate(Method::Rejection.quantity(), reason));
    }
    let kept = sample
        .iter()
        .filter(|page| random.below(page.degree) < least);
    Ok(kept.map(|page| page.page).collect())
}

/// Returns the share of pages with some property, which `n_with` of `n` uniformly sampled pages
/// have.
///
/// # Errors
///
/// Returns an error if there are no pages, or if more pages have the property than there are.
pub fn share(n_with: u64, n: u64) -> Result<Estimate, Error> {
    if n == 0 || n_with > n {
        let reason = format!("{n_with} of {n} pages is not a share");
        return Err(Error::no_estimate(Method::Rejection.quantity(), reason));
    }
    let estimate = Estimate::new(Method::Rejection, n_with as f64 / n as f64, n)?;
    Ok(estimate.with_interval(wilson(n_with, n, Z_95)))
}

/// Returns an unbiased estimate of `1 / degree` of a page that costs few queries.
///
/// The text of the page suggests `n_predicted` pool queries. They are drawn one after the other,
/// with replacement, until one is valid and returns the page. The number of draws divided by
/// `n_predicted` is `1 / degree` on average. If `max_trials` do not suffice, all of them are sent.
/// From there, a valid query is still `n_predicted / degree` draws away on average, so the estimate
/// stays unbiased. `None` if no query is valid; the caller must count such pages.
///
/// # Errors
///
/// Returns an error if `is_valid` fails.
pub fn inverse_degree<E>(
    n_predicted: usize,
    max_trials: u64,
    random: &mut SplitMix,
    mut is_valid: impl FnMut(usize) -> Result<bool, E>,
) -> Result<Option<f64>, E> {
    if n_predicted == 0 {
        return Ok(None);
    }
    for trial in 1..=max_trials {
        if is_valid(random.below(n_predicted as u64) as usize)? {
            return Ok(Some(trial as f64 / n_predicted as f64));
        }
    }
    let mut degree = 0_u64;
    for query in 0..n_predicted {
        degree += u64::from(is_valid(query)?);
    }
    let drawn = max_trials as f64 / n_predicted as f64;
    Ok((degree > 0).then(|| drawn + 1.0 / degree as f64))
}

/// A mean over pages drawn by degree.
#[derive(Debug, Clone, PartialEq)]
pub struct Importance {
    /// The weighted mean.
    pub estimate: Estimate,
    /// The equivalent number of uniform pages: `(sum w)^2 / sum w^2`.
    pub effective_size: f64,
}

/// Returns the mean over pages drawn by degree, each with the weight 1 / degree.
///
/// # Errors
///
/// Returns an error if there are no pages, a value is not finite, or a weight is not a positive
/// number, such as that of a page of degree zero.
pub fn importance_mean(sample: &[Weighted], bootstrap: &Bootstrap) -> Result<Importance, Error> {
    check_weighted(Method::Importance.quantity(), sample)?;
    let mean = |times: &[u32]| {
        let (mut sum, mut total) = (0.0, 0.0);
        for (page, &n) in sample.iter().zip(times) {
            let weight = page.weight * f64::from(n);
            sum += weight * page.value;
            total += weight;
        }
        sum / total
    };
    let value = mean(&vec![1; sample.len()]);
    let interval = bootstrap.interval(sample.len(), mean)?;
    let total: f64 = sample.iter().map(|page| page.weight).sum();
    let squares: f64 = sample.iter().map(|page| page.weight * page.weight).sum();
    let effective_size = total * total / squares;
    let is_uneven = effective_size < sample.len() as f64 / 10.0;
    let estimate = Estimate::new(Method::Importance, value, sample.len() as u64)?
        .with_bootstrap(interval, bootstrap.seed)
        .with_notes(is_uneven.then_some(Note::FewEffective));
    Ok(Importance {
        estimate,
        effective_size,
    })
}

/// The length of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Number of steps that are kept.
    pub n_kept: usize,
    /// Number of steps before them, which are discarded because they depend on the start.
    pub burn_in: usize,
}

/// Walks from page to valid query to page so that in the long run every page is visited equally
/// often.
///
/// `queries_of` returns the valid pool queries that return a page, and `search` the results of one.
/// From a page of degree d, a page of degree e is accepted with probability `min(1, d / e)`. If a
/// response is not valid, or a page has no queries, the walk stays where it is, and the step is
/// counted. For the mean over the steps, use
/// [`chain::weighted_mean`](crate::estimate::chain::weighted_mean) with weights of one.
///
/// # Errors
///
/// Returns an error if the walk begins at a page that no query returns, or if a closure fails.
pub fn metropolis<E: From<Error>>(
    start: usize,
    steps: Steps,
    random: &mut SplitMix,
    mut queries_of: impl FnMut(usize) -> Result<Vec<usize>, E>,
    mut search: impl FnMut(usize) -> Result<Answer, E>,
) -> Result<Drawn, E> {
    let mut drawn = Drawn::default();
    let (mut page, mut queries) = (start, queries_of(start)?);
    if queries.is_empty() {
        let reason = format!("the walk begins at page {start}, which no query returns");
        return Err(Error::no_estimate(Method::MetropolisHastings.quantity(), reason).into());
    }
    for step in 0..steps.burn_in.saturating_add(steps.n_kept) {
        drawn.effort.n_queries += 1;
        match search(pick(&queries, random))?.valid(usize::MAX) {
            Err(invalid) => drawn.effort.count(&invalid),
            Ok(results) => {
                let proposed = pick(&results, random);
                let others = queries_of(proposed)?;
                let ratio = queries.len() as f64 / others.len() as f64;
                // A page without queries gives an infinite ratio, but the walk could not leave it.
                if !others.is_empty() && random.next_f64() < ratio {
                    (page, queries) = (proposed, others);
                } else {
                    drawn.effort.n_refused += 1;
                }
            }
        }
        if step >= steps.burn_in {
            drawn.pages.push(page);
        }
    }
    Ok(drawn)
}

/// A pool whose results are all known, for simulations, replays, and small search engines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The distinct results of each query; empty if it is not valid.
    results: Vec<Vec<usize>>,
    /// The valid queries that return each page.
    queries_of: Vec<Vec<usize>>,
}

impl Pool {
    /// Creates the pool of queries with these results, of which the search engine shows at most
    /// `limit`.
    ///
    /// # Errors
    ///
    /// Returns an error if a page is not numbered below `n_pages`.
    pub fn new(results: Vec<Vec<usize>>, n_pages: usize, limit: usize) -> Result<Self, Error> {
        if let Some(page) = results.iter().flatten().find(|&&page| page >= n_pages) {
            return Err(Error::parameter("page", page, "below the number of pages"));
        }
        let valid = |pages| {
            Answer::Pages(pages)
                .valid(limit)
                .unwrap_or_else(|_| Vec::new())
        };
        let results: Vec<Vec<usize>> = results.into_iter().map(valid).collect();
        let mut queries_of = vec![Vec::new(); n_pages];
        for (query, pages) in results.iter().enumerate() {
            for &page in pages {
                queries_of[page].push(query);
            }
        }
        Ok(Self {
            results,
            queries_of,
        })
    }

    /// Returns the number of queries, valid or not.
    #[must_use]
    pub fn n_queries(&self) -> usize {
        self.results.len()
    }

    /// Returns the results of a query; none if it is not valid.
    #[must_use]
    pub fn results(&self, query: usize) -> &[usize] {
        self.results.get(query).map_or(&[], Vec::as_slice)
    }

    /// Returns the valid queries that return a page.
    #[must_use]
    pub fn queries_of(&self, page: usize) -> &[usize] {
        self.queries_of.get(page).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of valid queries that return a page.
    #[must_use]
    pub fn degree(&self, page: usize) -> u64 {
        self.queries_of(page).len() as u64
    }

    /// Returns the number of pages that some valid query returns.
    #[must_use]
    pub fn n_matched(&self) -> usize {
        self.queries_of
            .iter()
            .filter(|queries| !queries.is_empty())
            .count()
    }

    /// Returns the probability of each page under [`Picking::AnyQuery`]; empty without a valid
    /// query.
    #[must_use]
    pub fn query_law(&self) -> Vec<f64> {
        let chance = |&query: &usize| 1.0 / self.results[query].len() as f64;
        normalised(
            self.queries_of
                .iter()
                .map(|queries| queries.iter().map(chance).sum()),
        )
    }

    /// Returns the probability of each page under [`Picking::ByCardinality`]; empty without a valid
    /// query.
    #[must_use]
    pub fn degree_law(&self) -> Vec<f64> {
        normalised(self.queries_of.iter().map(|queries| queries.len() as f64))
    }
}

fn normalised(weights: impl Iterator<Item = f64>) -> Vec<f64> {
    let weights: Vec<f64> = weights.collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

#[cfg(test)]
mod tests;
