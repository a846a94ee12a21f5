//! Corpus size: estimates the number of pages of a search engine from queries alone.
//!
//! *Question.* Pages cannot be sampled uniformly and nothing is known about other search engines.
//! How many pages are there?
//!
//! *Idea.* Let every page that a pool of queries matches distribute one unit in equal parts to all
//! the queries that return it: 1/degree to each ([`crate::estimate::pool`]). Then the queries have
//! as many units as there are pages, and the mean over random queries times their number is the
//! number of matched pages, without bias ([`matched_pages`]). To extend this to all pages, use the
//! matched share of a uniform page sample ([`from_matched_share`]), or a second pool of queries
//! that is independent of the first: `|D| = |D_A| |D_B| / |D_AB|` ([`two_pools`]).
//!
//! Using all results of a query instead of one costs nothing and reduces the variance. So do rare
//! terms, which have few results, and sampling a query in proportion to its expected results
//! ([`QueryOdds`]).
//!
//! *Paper.* Broder et al. 2006. *Parameters.* The pools, such as terms of middle frequency and
//! five-digit numbers. *Cost.* One query and the degrees of its results per sample. *Error.*
//! Queries differ widely in their weight: 200 sampled uniformly give about 10%, sampled by their
//! expected results half of that. Bootstrap over queries. *Not for* correlated pools, such as words
//! of one language: pages that match one then match the other, and the size is underestimated.

use crate::Error;
use crate::estimate::bootstrap::Bootstrap;
use crate::estimate::{Estimate, Factor, Method, mean, mean_drawn, product};
use crate::judgement::{Z_95, wilson};
use crate::mix::SplitMix;

/// Returns the weight of a query: the sum of 1 / degree over the pages it returns.
///
/// A query that is empty or overflows weighs nothing, since it is not part of the degree of any
/// page. A query without a response has no weight and must be omitted.
///
/// # Errors
///
/// Returns an error if a degree is zero: the query returned the page, so it has at least that one.
///
/// ```
/// use arose::estimate::corpus_size::query_weight;
/// assert_eq!(query_weight(&[2, 1, 4])?, 1.75);
/// assert!(query_weight(&[2, 0]).is_err());
/// # Ok::<(), arose::Error>(())
/// ```
pub fn query_weight(degrees: &[u64]) -> Result<f64, Error> {
    if degrees.contains(&0) {
        let reason = "a query returned a page that no query is said to return";
        return Err(Error::no_estimate(Method::MatchedPages.quantity(), reason));
    }
    Ok(degrees.iter().map(|&degree| 1.0 / degree as f64).sum())
}

/// Samples queries of a pool nearly in proportion to their expected numbers of results.
///
/// A query with many results has a large weight. If it is drawn more often and counted
/// correspondingly less each time, the mean is the same and the variance is smaller. The mean is
/// correct even if the expectation is wrong. A quarter of the mean expectation is added to each
/// query, so that no query counts more than five times its weight.
///
/// ```
/// use arose::estimate::corpus_size::QueryOdds;
/// let odds = QueryOdds::new(&[10, 0, 2]);
/// // 4 x 10 + 4, 4 x 0 + 4 and 4 x 2 + 4, of 60.
/// assert_eq!(odds.factor(0), 60.0 / (3.0 * 44.0));
/// assert_eq!(odds.factor(1), 60.0 / (3.0 * 4.0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryOdds {
    /// Sums of the sizes up to and including each query.
    up_to: Vec<u64>,
}

impl QueryOdds {
    /// Prepares sampling from the expected number of results of each query of the pool.
    #[must_use]
    pub fn new(n_expected: &[u64]) -> Self {
        let n_queries = n_expected.len().max(1) as u64;
        let mean = n_expected.iter().sum::<u64>().div_ceil(n_queries).max(1);
        let sum_up = |sum: &mut u64, n: &u64| {
            *sum += 4 * n + mean;
            Some(*sum)
        };
        Self {
            up_to: n_expected.iter().scan(0, sum_up).collect(),
        }
    }

    /// Draws a query.
    ///
    /// # Panics
    ///
    /// Panics if the pool is empty.
    pub fn draw(&self, random: &mut SplitMix) -> usize {
        let total = self.up_to.last().expect("a pool with a query");
        let place = random.below(*total);
        self.up_to.partition_point(|&sum| sum <= place)
    }

    /// Returns the factor for the weight of a drawn query, so that the mean over draws equals that
    /// of queries drawn uniformly.
    #[must_use]
    pub fn factor(&self, query: usize) -> f64 {
        let before = query.checked_sub(1).map_or(0, |before| self.up_to[before]);
        let total = self.up_to.last().copied().unwrap_or(0);
        total as f64 / (self.up_to.len() as f64 * (self.up_to[query] - before) as f64)
    }
}

/// Returns the number of pages that a pool matches, from the weights of queries drawn uniformly
/// from it, or multiplied by the factors of [`QueryOdds`].
///
/// # Errors
///
/// Returns an error if no query was drawn, or a weight is negative or not finite.
pub fn matched_pages(
    n_pool: u64,
    weights: &[f64],
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    check_weights(Method::MatchedPages, weights)?;
    let size = |times: &[u32]| n_pool as f64 * mean_drawn(weights, times);
    let value = n_pool as f64 * mean(weights);
    let interval = bootstrap.interval(weights.len(), size)?;
    let estimate = Estimate::new(Method::MatchedPages, value, weights.len() as u64)?;
    Ok(estimate.with_bootstrap(interval, bootstrap.seed))
}

/// Returns the number of all pages, from the number that a pool matches and the share of a uniform
/// page sample that it matches.
///
/// # Errors
///
/// Returns an error if no page of the sample is matched, if more pages are matched than it has, or
/// if the number of matched pages has no interval.
pub fn from_matched_share(
    matched: &Estimate,
    n_matched: u64,
    n_sampled: u64,
) -> Result<Estimate, Error> {
    let no = |reason: String| Error::no_estimate(Method::MatchedShare.quantity(), reason);
    if n_matched == 0 || n_matched > n_sampled {
        return Err(no(format!(
            "{n_matched} of {n_sampled} pages of the sample are matched"
        )));
    }
    let interval = matched.interval.filter(|interval| interval.low > 0.0);
    let interval = interval.ok_or_else(|| no("the matched pages have no interval".into()))?;
    let share = Factor {
        value: n_matched as f64 / n_sampled as f64,
        interval: wilson(n_matched, n_sampled, Z_95),
    };
    let all = product(&[
        Factor {
            value: matched.value,
            interval,
        },
        share.inverse(),
    ]);
    let n_samples = matched.n_samples.saturating_add(n_sampled);
    let estimate = Estimate::new(Method::MatchedShare, all.value, n_samples)?;
    Ok(Estimate {
        seed: matched.seed,
        ..estimate.with_interval(all.interval)
    })
}

/// Queries drawn from one of two pools.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolSample<'a> {
    /// Queries in the pool.
    pub n_pool: u64,
    /// The weight of each query drawn.
    pub weights: &'a [f64],
    /// The same, counting only pages that the other pool matches as well.
    pub shared_weights: &'a [f64],
}

impl PoolSample<'_> {
    /// Returns the number of matched pages, and of pages matched by both pools.
    fn sizes(&self, times: &[u32]) -> (f64, f64) {
        let n_pool = self.n_pool as f64;
        let [all, shared] = [self.weights, self.shared_weights];
        (
            n_pool * mean_drawn(all, times),
            n_pool * mean_drawn(shared, times),
        )
    }

    fn check(&self) -> Result<(), Error> {
        check_weights(Method::TwoPools, self.weights)?;
        if self.shared_weights.len() != self.weights.len() {
            let expected = "as many as weights";
            return Err(Error::parameter(
                "shared_weights",
                self.shared_weights.len(),
                expected,
            ));
        }
        check_weights(Method::TwoPools, self.shared_weights)
    }
}

/// Returns the number of all pages, from two independent pools.
///
/// The pages matched by both are estimated from either pool, and the mean is taken.
///
/// # Errors
///
/// Returns an error if a sample is empty or a weight is NaN, or if no page is matched by both
/// pools.
pub fn two_pools(
    first: PoolSample<'_>,
    second: PoolSample<'_>,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    first.check()?;
    second.check()?;
    let n_first = first.weights.len();
    let size = |times: &[u32]| {
        let (in_first, shared) = first.sizes(&times[..n_first]);
        let (in_second, also_shared) = second.sizes(&times[n_first..]);
        in_first * in_second / f64::midpoint(shared, also_shared)
    };
    let n_units = [n_first, second.weights.len()];
    let value = size(&vec![1; n_first + second.weights.len()]);
    if !value.is_finite() {
        let reason = "no page is matched by both pools";
        return Err(Error::no_estimate(Method::TwoPools.quantity(), reason));
    }
    let intervals = bootstrap.intervals(&n_units, |times| vec![size(times)])?;
    let n_samples = n_units.iter().sum::<usize>() as u64;
    let estimate = Estimate::new(Method::TwoPools, value, n_samples)?;
    Ok(estimate.with_bootstrap(intervals[0], bootstrap.seed))
}

fn check_weights(method: Method, weights: &[f64]) -> Result<(), Error> {
    if weights.is_empty() {
        return Err(Error::no_estimate(method.quantity(), "no query was drawn"));
    }
    match weights
        .iter()
        .find(|weight| !weight.is_finite() || **weight < 0.0)
    {
        Some(weight) => {
            let reason = format!("a query has the weight {weight}");
            Err(Error::no_estimate(method.quantity(), reason))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::pool::Pool;

    fn weights(pool: &Pool) -> Vec<f64> {
        let degrees = |query| {
            pool.results(query)
                .iter()
                .map(|&page| pool.degree(page))
                .collect::<Vec<_>>()
        };
        (0..pool.n_queries())
            .map(|query| query_weight(&degrees(query)).unwrap())
            .collect()
    }

    #[test]
    fn units_sum_to_pages() {
        let pool = Pool::new(
            vec![vec![1, 2, 3], vec![3, 4], vec![1, 3, 5], vec![3]],
            6,
            10,
        )
        .unwrap();
        let weights = weights(&pool);
        assert_eq!(weights, [1.75, 1.25, 1.75, 0.25]);
        let estimate = matched_pages(4, &weights, &Bootstrap::new(1)).unwrap();
        assert_eq!(
            (estimate.value, estimate.n_samples, estimate.seed),
            (5.0, 4, Some(1))
        );
        // With a limit of two, the second and the last query remain, and the pages 3 and 4.
        let cut = Pool::new(
            vec![vec![1, 2, 3], vec![3, 4], vec![1, 3, 5], vec![3]],
            6,
            2,
        )
        .unwrap();
        let weights = self::weights(&cut);
        assert_eq!(weights, [0.0, 1.5, 0.0, 0.5]);
        assert_eq!(
            matched_pages(4, &weights, &Bootstrap::new(1))
                .unwrap()
                .value,
            2.0
        );
    }

    /// However wrong the expectations are, the mean over all draws is the mean weight.
    #[test]
    fn odds_leave_the_mean() {
        let weights = [1.75, 1.25, 1.75, 0.25];
        for n_expected in [[3, 2, 3, 1], [0, 0, 0, 0], [0, 90, 1, 7], [5, 5, 5, 5]] {
            let odds = QueryOdds::new(&n_expected);
            let chance = |query: usize| 1.0 / (4.0 * odds.factor(query));
            let chances: f64 = (0..4).map(chance).sum();
            let mean: f64 = (0..4)
                .map(|query| chance(query) * odds.factor(query) * weights[query])
                .sum();
            assert!((chances - 1.0).abs() < 1e-12 && (mean - 1.25).abs() < 1e-12);
            assert!((0..4).all(|query| odds.factor(query) <= 5.0));
            let mut random = SplitMix::new(1);
            let mut n_drawn = [0_u32; 4];
            for _ in 0..100_000 {
                n_drawn[odds.draw(&mut random)] += 1;
            }
            for query in 0..4 {
                let share = f64::from(n_drawn[query]) / 100_000.0;
                assert!((share - chance(query)).abs() < 0.007, "{n_drawn:?}");
            }
        }
    }

    #[test]
    fn to_all_pages() {
        let matched = matched_pages(10, &[0.2, 0.8, 0.5, 0.5], &Bootstrap::new(1)).unwrap();
        let all = from_matched_share(&matched, 50, 100).unwrap();
        assert!((all.value - 10.0).abs() < 1e-12);
        // Wider than either of its factors.
        let (part, whole) = (matched.interval.unwrap(), all.interval.unwrap());
        assert!(whole.high / all.value > part.high / matched.value);
    }

    /// Pools that match 6 and 5 pages and share 3: 10 pages.
    #[test]
    fn six_and_five_sharing_three() {
        let first = Pool::new(vec![vec![0, 1, 2, 3], vec![2, 3, 4, 5]], 8, 10).unwrap();
        let second = Pool::new(vec![vec![0, 2, 6], vec![4, 7]], 8, 10).unwrap();
        let shared = |own: &Pool, other: &Pool| -> Vec<f64> {
            let shared_weight = |query: usize| {
                let pages = own
                    .results(query)
                    .iter()
                    .filter(|&&page| other.degree(page) > 0);
                pages.map(|&page| 1.0 / own.degree(page) as f64).sum()
            };
            (0..own.n_queries()).map(shared_weight).collect()
        };
        let (all_first, all_second) = (weights(&first), weights(&second));
        let (shared_first, shared_second) = (shared(&first, &second), shared(&second, &first));
        let sample = |weights, shared_weights| PoolSample {
            n_pool: 2,
            weights,
            shared_weights,
        };
        let estimate = two_pools(
            sample(&all_first, &shared_first),
            sample(&all_second, &shared_second),
            &Bootstrap::new(1),
        );
        assert!((estimate.unwrap().value - 10.0).abs() < 1e-12);
    }

    #[test]
    fn bad_data() {
        let bootstrap = Bootstrap::new(1);
        assert!(matched_pages(5, &[], &bootstrap).is_err());
        for weight in [f64::NAN, f64::INFINITY, -1.0] {
            assert!(matched_pages(5, &[1.0, weight], &bootstrap).is_err());
        }
        let single = matched_pages(5, &[1.0], &bootstrap).unwrap();
        assert_eq!(single.interval, None);
        assert!(from_matched_share(&single, 1, 2).is_err());
        let matched = matched_pages(5, &[1.0, 2.0, 3.0], &bootstrap).unwrap();
        assert!(from_matched_share(&matched, 0, 10).is_err());
        assert!(from_matched_share(&matched, 11, 10).is_err());
        let apart = PoolSample {
            n_pool: 5,
            weights: &[1.0, 2.0],
            shared_weights: &[0.0, 0.0],
        };
        let error = two_pools(apart, apart, &bootstrap).unwrap_err().to_string();
        assert!(error.contains("no page is matched by both"), "{error}");
        let uneven = PoolSample {
            shared_weights: &[1.0],
            ..apart
        };
        assert!(two_pools(uneven, apart, &bootstrap).is_err());
    }
}
