//! Searches: compares search engines on the results of real queries.
//!
//! *Question.* For the queries that people send, which search engine returns more pages, and which
//! share of all results does each return?
//!
//! *Idea.* Send every query to every search engine, fetch *all* results, keep the pages that really
//! match, collapse duplicates, and note for each page which search engines returned it. Only
//! queries with fewer than [`MAX_RESULTS`] results in total can be fetched in full. Then divide
//! sums: results of A by results of B, or by the union. The literature averages the ratios of the
//! queries instead, which is biased: for results (2, 1) and (1, 2) the mean ratio is 1.25 in *both*
//! directions ([`mean_of_ratios`] exists to show this).
//!
//! If A and B are independent, `|A and B| / |B|` is the share of all pages in A, so `N = |A| |B| /
//! |A and B|` ([`two_engine_size`]). They are not, so this is a lower bound.
//!
//! *Papers.* Lawrence & Giles 1998 (575 queries, 320 million pages), 1999 (1,050 queries).
//! *Parameters.* The queries; the subject of the interval ([`About`]). *Cost.* Linear in the
//! queries for each resample. *Error.* From resampling the *queries*: results of one query are not
//! independent. A few queries have most of the results, so intervals are studentized, on the
//! logarithm of the ratio ([`Bootstrap::studentised`]). That suffices for intervals about the
//! results that people get. For intervals about the contents of search engines, some pages match
//! many queries and others none, so the ratio also depends on which of them a search engine happens
//! to have. The variance is then that of queries plus that of pages minus their common part
//! (Cameron, Gelbach & Miller 2011), and minus the part that pages would add if all occurred
//! equally often, because the ratio is then that of the sizes. In simulations, intervals about
//! pages contain the true value in 94% to 98% of the cases, intervals about queries contain *that*
//! value in 43% to 94%. *Not for* queries with more results than can be fetched: the first results
//! are not representative.

use std::collections::BTreeMap;

use crate::Error;
use crate::estimate::bootstrap::{Bootstrap, Measured};
use crate::estimate::capture::{Captures, chao1};
use crate::estimate::joint::EngineSet;
use crate::estimate::{Estimate, Method, Note};
use crate::judgement::Interval;

/// Queries with this many results in total, or more, are not used.
pub const MAX_RESULTS: usize = 600;

/// Chao's number of pages is a lower bound. With 1.5 times this number, the intervals are rather
/// too wide: 94% to 97% of them contain the true value in worlds of 500 to 4,000 pages of even or
/// uneven lengths, compared with 91% to 96% with the bound itself.
const BEYOND_CHAO: f64 = 1.5;

/// A verified result of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifiedResult {
    /// The page; its number does not depend on the query that found it.
    pub page: u64,
    /// The search engines that returned it.
    pub engines: EngineSet,
}

/// The distinct verified results of one query over all search engines.
pub type Results = Vec<VerifiedResult>;

/// The subject of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum About {
    /// The result over all queries of this kind: how the search engines perform on the queries of
    /// people.
    Queries,
    /// The contents of the search engines: how large they are.
    Pages,
}

/// Returns the queries with fewer results than [`MAX_RESULTS`], counted per search engine before
/// pages are collapsed over search engines, and the number of omitted queries.
#[must_use]
pub fn usable(queries: Vec<Results>) -> (Vec<Results>, usize) {
    let n_before = queries.len();
    let n_results = |results: &Results| {
        results
            .iter()
            .map(|found| found.engines.len() as usize)
            .sum::<usize>()
    };
    let kept: Vec<Results> = queries
        .into_iter()
        .filter(|results| n_results(results) < MAX_RESULTS)
        .collect();
    let n_dropped = n_before - kept.len();
    (kept, n_dropped)
}

/// Estimates `|A| / |B|`: the results of A divided by the results of B, both summed over all
/// queries.
///
/// # Errors
///
/// Returns an error if B has no results at all.
///
/// ```
/// use arose::estimate::bootstrap::Bootstrap;
/// use arose::estimate::joint::EngineSet;
/// use arose::estimate::searches::{About, VerifiedResult, mean_of_ratios, ratio_of_sums};
/// let found = |page, engines| VerifiedResult { page, engines: EngineSet(engines) };
/// // By A alone and by B alone.
/// let queries = vec![
///     vec![found(1, 1), found(2, 1), found(3, 2)],
///     vec![found(4, 1), found(5, 2), found(6, 2)],
/// ];
/// assert_eq!(ratio_of_sums(&queries, 0, 1, About::Pages, &Bootstrap::new(1))?.value, 1.0);
/// assert_eq!(mean_of_ratios(&queries, 0, 1)?.value, 1.25);
/// assert_eq!(mean_of_ratios(&queries, 1, 0)?.value, 1.25);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn ratio_of_sums(
    queries: &[Results],
    a: usize,
    b: usize,
    about: About,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    let count = |engines: EngineSet| [engines.contains(a), engines.contains(b)].map(one);
    ratio(Method::RatioOfSums, &hits(queries, count), about, bootstrap)
}

/// Returns the share of a search engine in the results of all search engines.
///
/// # Errors
///
/// Returns an error if there are no results at all.
pub fn coverage(
    queries: &[Results],
    engine: usize,
    about: About,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    let count = |engines: EngineSet| [engines.contains(engine), !engines.is_empty()].map(one);
    ratio(
        Method::SearchCoverage,
        &hits(queries, count),
        about,
        bootstrap,
    )
}

/// Returns the number of all pages, from the known size of A and the share of B's results that A
/// returned as well.
///
/// # Errors
///
/// Returns an error if the size is not positive, or if A and B share no result.
pub fn two_engine_size(
    size_of_a: f64,
    queries: &[Results],
    a: usize,
    b: usize,
    about: About,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    if !(size_of_a.is_finite() && size_of_a > 0.0) {
        return Err(Error::parameter(
            "size_of_a",
            size_of_a,
            "a positive number",
        ));
    }
    let count = |engines: EngineSet| {
        let in_both = engines.contains(a) && engines.contains(b);
        [size_of_a * one(engines.contains(b)), one(in_both)]
    };
    let estimate = ratio(Method::TwoEngines, &hits(queries, count), about, bootstrap)?;
    Ok(estimate.with_notes([Note::LowerBound]))
}

/// The mean over queries of the ratio of two search engines' results, as in the literature.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanOfRatios {
    /// The mean. The mean of the inverse ratios is *not* its inverse.
    pub value: f64,
    /// Queries omitted because the second search engine had no result.
    pub n_dropped: usize,
}

/// Averages `A's results / B's results` over the queries, for comparison with [`ratio_of_sums`].
///
/// # Errors
///
/// Returns an error if B has no result for any query.
pub fn mean_of_ratios(queries: &[Results], a: usize, b: usize) -> Result<MeanOfRatios, Error> {
    let ratios: Vec<f64> = queries
        .iter()
        .filter(|results| held_by(results, b) > 0.0)
        .map(|results| held_by(results, a) / held_by(results, b))
        .collect();
    if ratios.is_empty() {
        return Err(nothing_to_divide_by(Method::RatioOfSums));
    }
    Ok(MeanOfRatios {
        value: super::mean(&ratios),
        n_dropped: queries.len() - ratios.len(),
    })
}

/// The amounts that a page adds to both sums.
#[derive(Debug, Clone, Copy)]
struct Contribution {
    page: u64,
    counts: [f64; 2],
}

/// Returns the amounts that each query adds to both sums, page by page.
fn hits(queries: &[Results], count: impl Fn(EngineSet) -> [f64; 2]) -> Vec<Vec<Contribution>> {
    let hit = |found: &VerifiedResult| Contribution {
        page: found.page,
        counts: count(found.engines),
    };
    let queries = queries.iter();
    queries
        .map(|results| results.iter().map(hit).collect())
        .collect()
}

/// Returns the ratio of two sums over queries, with an interval from resampling the queries.
fn ratio(
    method: Method,
    hits: &[Vec<Contribution>],
    about: About,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    let of_query = |hits: &Vec<Contribution>| {
        let all = hits.iter();
        all.fold([0.0; 2], |sums, hit| {
            [0, 1].map(|side| sums[side] + hit.counts[side])
        })
    };
    let counts: Vec<[f64; 2]> = hits.iter().map(of_query).collect();
    if counts.iter().all(|[_, denominator]| *denominator == 0.0) {
        return Err(nothing_to_divide_by(method));
    }
    let [above, below] = sums(&counts, &vec![1; counts.len()]);
    let estimate = Estimate::new(method, above / below, counts.len() as u64)?;
    if above == 0.0 || counts.len() < 2 {
        return Ok(estimate.with_bootstrap(None, bootstrap.seed));
    }
    let statistic = |times: &[u32]| log_ratio(&counts, times);
    let interval = bootstrap.studentised(counts.len(), statistic)?;
    let stretch = match about {
        About::Queries => 1.0,
        About::Pages => stretch(method, hits, estimate.value),
    };
    let end = |end: f64| estimate.value * (stretch * (end - estimate.value.ln())).exp();
    let interval = interval.map(|interval| Interval {
        low: end(interval.low),
        high: match method {
            // A share is at most 1.
            Method::SearchCoverage => end(interval.high).min(1.0),
            _ => end(interval.high),
        },
    });
    Ok(estimate.with_bootstrap(interval, bootstrap.seed))
}

/// Returns the factor by which the error grows if not only the queries are random, but also which
/// search engine has which of their pages.
fn stretch(method: Method, hits: &[Vec<Contribution>], ratio: f64) -> f64 {
    let mut of_pages: BTreeMap<u64, (u64, f64)> = BTreeMap::new();
    let (mut by_query, mut by_hit) = (0.0, 0.0);
    for own in hits {
        let mut of_query = 0.0;
        for hit in own {
            let residual = hit.counts[0] - ratio * hit.counts[1];
            of_query += residual;
            by_hit += residual * residual;
            let (times, sum) = of_pages.entry(hit.page).or_default();
            *times += 1;
            *sum += residual;
        }
        by_query += of_query * of_query;
    }
    let by_page: f64 = of_pages.values().map(|(_, sum)| sum * sum).sum();
    let if_equal = match method {
        // The pages that both search engines have are random, however often each is requested.
        Method::TwoEngines => 0.0,
        _ => mean_times(of_pages.values().map(|(times, _)| *times)) * by_hit,
    };
    let more = by_page - by_hit - if_equal;
    // Not below one: if pages compensate for each other, that is random as well.
    (1.0 + more.max(0.0) / by_query).sqrt()
}

/// Returns the mean number of times that a page was found, over all pages that could have been
/// found, from the counts of those that were found.
fn mean_times(times: impl Iterator<Item = u64> + Clone) -> f64 {
    let count = |n: u64| times.clone().filter(|&times| times == n).count() as u64;
    let captures = Captures {
        n_seen: times.clone().count() as u64,
        n_once: count(1),
        n_twice: count(2),
    };
    let n_pages = chao1(&captures).map_or(1.0, |estimate| estimate.value);
    times.sum::<u64>() as f64 / (BEYOND_CHAO * n_pages)
}

/// Returns the logarithm of the ratio of two sums, with its standard error from the spread of
/// queries around the ratio (Cochran's linearization).
fn log_ratio(counts: &[[f64; 2]], times: &[u32]) -> Measured {
    let [above, below] = sums(counts, times);
    let ratio = above / below;
    let residuals = counts.iter().zip(times);
    let squares = residuals.map(|([numerator, denominator], &n)| {
        f64::from(n) * (numerator - ratio * denominator).powi(2)
    });
    let n = counts.len() as f64;
    Measured {
        value: ratio.ln(),
        standard_error: (squares.sum::<f64>() * n / (n - 1.0)).sqrt() / above,
    }
}

fn sums(counts: &[[f64; 2]], times: &[u32]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for ([numerator, denominator], &n) in counts.iter().zip(times) {
        sums[0] += numerator * f64::from(n);
        sums[1] += denominator * f64::from(n);
    }
    sums
}

fn one(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

fn nothing_to_divide_by(method: Method) -> Error {
    let reason = match method {
        Method::TwoEngines => "the engines share no result",
        _ => "no query has a result to divide by",
    };
    Error::no_estimate(method.quantity(), reason)
}

fn held_by(results: &Results, engine: usize) -> f64 {
    let held = results
        .iter()
        .filter(|found| found.engines.contains(engine));
    held.count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EngineSet = EngineSet(1);
    const B: EngineSet = EngineSet(2);
    const BOTH: EngineSet = EngineSet(3);

    /// Queries that each find a separate page for each set.
    fn found(queries: &[&[EngineSet]]) -> Vec<Results> {
        let mut pages = 0..;
        let mut one = |&engines: &EngineSet| VerifiedResult {
            page: pages.next().unwrap(),
            engines,
        };
        let queries = queries.iter();
        queries
            .map(|sets| sets.iter().map(&mut one).collect())
            .collect()
    }

    #[test]
    fn sums_agree_in_both_directions_and_means_do_not() {
        let queries = found(&[&[A, A, B], &[A, B, B]]);
        let bootstrap = Bootstrap::new(1);
        assert_eq!(
            ratio_of_sums(&queries, 0, 1, About::Queries, &bootstrap)
                .unwrap()
                .value,
            1.0
        );
        assert_eq!(
            ratio_of_sums(&queries, 1, 0, About::Queries, &bootstrap)
                .unwrap()
                .value,
            1.0
        );
        assert_eq!(mean_of_ratios(&queries, 0, 1).unwrap().value, 1.25);
        assert_eq!(mean_of_ratios(&queries, 1, 0).unwrap().value, 1.25);
    }

    /// The mean omits the query without a denominator, the sum does not.
    #[test]
    fn zero_denominators() {
        let queries = found(&[&[A, BOTH], &[A, A]]);
        let mean = mean_of_ratios(&queries, 0, 1).unwrap();
        assert_eq!(
            mean,
            MeanOfRatios {
                value: 2.0,
                n_dropped: 1
            }
        );
        assert_eq!(
            ratio_of_sums(&queries, 1, 0, About::Queries, &Bootstrap::new(1))
                .unwrap()
                .value,
            0.25
        );
    }

    #[test]
    fn shares_of_the_union() {
        let queries = found(&[&[A, BOTH, B, B], &[BOTH, BOTH, A, B]]);
        let bootstrap = Bootstrap::new(1);
        assert_eq!(
            coverage(&queries, 0, About::Queries, &bootstrap)
                .unwrap()
                .value,
            5.0 / 8.0
        );
        let size = two_engine_size(30.0, &queries, 0, 1, About::Queries, &bootstrap).unwrap();
        assert_eq!(
            (size.value, size.notes),
            (30.0 * 6.0 / 3.0, vec![Note::LowerBound])
        );
    }

    #[test]
    fn large_queries_are_dropped() {
        // 300 pages in both search engines are 600 results.
        let (kept, n_dropped) = usable(found(&[&[BOTH; 300], &[A; 599], &[]]));
        assert_eq!((kept.len(), n_dropped), (2, 1));
    }

    /// A page that five queries find is one observation, not five: errors grow by the square root
    /// of five if nothing else is repeated. Pages found once do not change them. Residuals are one
    /// for every hit here.
    #[test]
    fn pages_found_again_and_again() {
        let page = |page: u64| VerifiedResult {
            page,
            engines: if page.is_multiple_of(2) { A } else { B },
        };
        let interval = |queries: &[Results], about| {
            let estimate = ratio_of_sums(queries, 0, 1, about, &Bootstrap::new(1)).unwrap();
            let interval = estimate.interval.unwrap();
            (interval.high / interval.low).ln()
        };
        let again: Vec<Results> = (0..100).map(|query| vec![page(query % 20)]).collect();
        // The growth is smaller: twenty pages found five times each are probably all pages, or
        // thirty to be cautious, and pages that occur equally often cause no error.
        let wide = interval(&again, About::Pages) / interval(&again, About::Queries);
        let expected = (1.0 + (500.0 - 100.0 - 100.0 * 100.0 / 30.0) / 100.0_f64).sqrt();
        assert!((wide - expected).abs() < 1e-9, "{wide}, {expected}");
        let size = |about| {
            let both = |query: u64| VerifiedResult {
                page: query % 20,
                engines: if query % 20 < 10 { BOTH } else { B },
            };
            let queries: Vec<Results> = (0..100).map(|query| vec![both(query)]).collect();
            let estimate = two_engine_size(7.0, &queries, 0, 1, about, &Bootstrap::new(1));
            let interval = estimate.unwrap().interval.unwrap();
            (interval.high / interval.low).ln()
        };
        let wide = size(About::Pages) / size(About::Queries);
        assert!((wide - 5_f64.sqrt()).abs() < 1e-9, "{wide}");
        let once: Vec<Results> = (0..100).map(|query| vec![page(query)]).collect();
        let same = interval(&once, About::Pages) / interval(&once, About::Queries);
        assert!((same - 1.0).abs() < 1e-9, "{same}");
    }

    #[test]
    fn bad_data() {
        let bootstrap = Bootstrap::new(1);
        assert!(ratio_of_sums(&[], 0, 1, About::Queries, &bootstrap).is_err());
        assert!(ratio_of_sums(&found(&[&[A]]), 0, 1, About::Queries, &bootstrap).is_err());
        assert!(coverage(&[vec![], vec![]], 0, About::Queries, &bootstrap).is_err());
        assert!(mean_of_ratios(&found(&[&[A]]), 0, 1).is_err());
        let error =
            two_engine_size(5.0, &found(&[&[A, B]]), 0, 1, About::Queries, &bootstrap).unwrap_err();
        assert!(error.to_string().contains("share no result"), "{error}");
        assert!(
            two_engine_size(
                f64::NAN,
                &found(&[&[BOTH]]),
                0,
                1,
                About::Queries,
                &bootstrap
            )
            .is_err()
        );
        let single =
            ratio_of_sums(&found(&[&[BOTH, A]]), 0, 1, About::Queries, &bootstrap).unwrap();
        assert_eq!((single.value, single.interval), (2.0, None));
        // Only one of many queries has results of B. Resamples without it have no value. The true
        // ratio may be anything below the observed 31, and far more above it.
        let mut queries = vec![&[A][..]; 30];
        queries.push(&[BOTH]);
        let queries = found(&queries);
        let estimate = ratio_of_sums(&queries, 0, 1, About::Queries, &bootstrap).unwrap();
        let interval = estimate.interval.unwrap();
        assert!(interval.low == 0.0 && interval.high > 150.0, "{interval:?}");
    }
}
