//! Searches: comparing engines by what they answer to real queries.
//!
//! *Question.* Take the queries that people ask. Whose answers hold more pages, and how much of all
//! answers does each engine give?
//!
//! *Idea.* Send every query to every engine, fetch *all* results, keep the pages that really match,
//! collapse duplicates, and note for each page which engines returned it. Only queries with fewer
//! than [`MAX_RESULTS`] results in total can be fetched in full. Then divide sums: results of A
//! over results of B, or over the union. The literature averages the ratio of each query instead,
//! which is not sound: of results (2, 1) and (1, 2) the mean ratio is 1.25 in *both* directions
//! ([`mean_of_ratios`] is there to show it).
//!
//! If A and B are independent, `|A and B| / |B|` is the share of everything that A holds, so
//! `N = |A| |B| / |A and B|` ([`two_engine_size`]); they are not, so this is a lower bound.
//!
//! *Papers.* Lawrence & Giles 1998 (575 queries, 320 million pages), 1999 (1,050 queries).
//! *Parameters.* The queries. *Cost.* Linear in the results for each resample. *Error.* From
//! drawing the *queries* anew: results of one query are no independent witnesses. *Not for* queries
//! with more results than can be fetched: what ranks first is not what is held.

use crate::Error;
use crate::estimate::bootstrap::Bootstrap;
use crate::estimate::joint::EngineSet;
use crate::estimate::{Estimate, Method, Note};

/// Queries with this many results in total, or more, are not used.
pub const MAX_RESULTS: usize = 600;

/// The distinct verified results of one query over all engines: who returned each page.
pub type Results = Vec<EngineSet>;

/// The queries with fewer results than [`MAX_RESULTS`], counted per engine before pages are
/// collapsed over engines, and how many were left out.
#[must_use]
pub fn usable(queries: Vec<Results>) -> (Vec<Results>, usize) {
    let n_before = queries.len();
    let n_results = |results: &Results| {
        results
            .iter()
            .map(|page| page.len() as usize)
            .sum::<usize>()
    };
    let kept: Vec<Results> = queries
        .into_iter()
        .filter(|results| n_results(results) < MAX_RESULTS)
        .collect();
    let n_dropped = n_before - kept.len();
    (kept, n_dropped)
}

/// `|A| / |B|` as the results of A over the results of B, both summed over all queries.
///
/// # Errors
///
/// When B has no results at all.
///
/// ```
/// use arose::estimate::bootstrap::Bootstrap;
/// use arose::estimate::joint::EngineSet;
/// use arose::estimate::searches::{mean_of_ratios, ratio_of_sums};
/// let (only_a, only_b) = (EngineSet(1), EngineSet(2));
/// let queries = vec![vec![only_a, only_a, only_b], vec![only_a, only_b, only_b]];
/// assert_eq!(ratio_of_sums(&queries, 0, 1, &Bootstrap::new(1))?.value, 1.0);
/// assert_eq!(mean_of_ratios(&queries, 0, 1)?.value, 1.25);
/// assert_eq!(mean_of_ratios(&queries, 1, 0)?.value, 1.25);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn ratio_of_sums(
    queries: &[Results],
    a: usize,
    b: usize,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    let count = |results: &Results| [held_by(results, a), held_by(results, b)];
    let counts: Vec<[f64; 2]> = queries.iter().map(count).collect();
    ratio(Method::RatioOfSums, &counts, bootstrap)
}

/// The share of an engine in the results of all engines.
///
/// # Errors
///
/// When there are no results at all.
pub fn coverage(
    queries: &[Results],
    engine: usize,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    let in_any = |results: &Results| results.iter().filter(|page| !page.is_empty()).count() as f64;
    let count = |results: &Results| [held_by(results, engine), in_any(results)];
    let counts: Vec<[f64; 2]> = queries.iter().map(count).collect();
    ratio(Method::SearchCoverage, &counts, bootstrap)
}

/// All pages, from the known size of A and the share of B's results that A returned as well.
///
/// # Errors
///
/// When the size is not positive, or when A and B share no result.
pub fn two_engine_size(
    size_of_a: f64,
    queries: &[Results],
    a: usize,
    b: usize,
    bootstrap: &Bootstrap,
) -> Result<Estimate, Error> {
    if !(size_of_a.is_finite() && size_of_a > 0.0) {
        return Err(Error::parameter(
            "size_of_a",
            size_of_a,
            "a positive number",
        ));
    }
    let in_both = |results: &Results| {
        let both = results
            .iter()
            .filter(|page| page.contains(a) && page.contains(b));
        both.count() as f64
    };
    let count = |results: &Results| [size_of_a * held_by(results, b), in_both(results)];
    let counts: Vec<[f64; 2]> = queries.iter().map(count).collect();
    let estimate = ratio(Method::TwoEngines, &counts, bootstrap)?;
    Ok(estimate.with_notes([Note::LowerBound]))
}

/// The mean over queries of the ratio of two engines' results, as the literature has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanOfRatios {
    /// The mean. The mean of the inverse ratios is *not* its inverse.
    pub value: f64,
    /// Queries left out because the second engine had no result.
    pub n_dropped: usize,
}

/// Averages `A's results / B's results` over the queries, for comparison with [`ratio_of_sums`].
///
/// # Errors
///
/// When B has no result for any query.
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

/// The ratio of two sums over queries, with the queries drawn anew for its interval.
fn ratio(method: Method, counts: &[[f64; 2]], bootstrap: &Bootstrap) -> Result<Estimate, Error> {
    let ratio = |times: &[u32]| {
        let (mut above, mut below) = (0.0, 0.0);
        for ([numerator, denominator], &n) in counts.iter().zip(times) {
            above += numerator * f64::from(n);
            below += denominator * f64::from(n);
        }
        above / below
    };
    if counts.iter().all(|[_, denominator]| *denominator == 0.0) {
        return Err(nothing_to_divide_by(method));
    }
    let value = ratio(&vec![1; counts.len()]);
    let interval = bootstrap.interval(counts.len(), ratio)?;
    let estimate = Estimate::new(method, value, counts.len() as u64)?;
    Ok(estimate.with_bootstrap(interval, bootstrap.seed))
}

fn nothing_to_divide_by(method: Method) -> Error {
    let reason = match method {
        Method::TwoEngines => "the engines share no result",
        _ => "no query has a result to divide by",
    };
    Error::no_estimate(method.quantity(), reason)
}

fn held_by(results: &Results, engine: usize) -> f64 {
    results.iter().filter(|page| page.contains(engine)).count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EngineSet = EngineSet(1);
    const B: EngineSet = EngineSet(2);
    const BOTH: EngineSet = EngineSet(3);

    #[test]
    fn sums_agree_in_both_directions_and_means_do_not() {
        let queries = [vec![A, A, B], vec![A, B, B]];
        let bootstrap = Bootstrap::new(1);
        assert_eq!(
            ratio_of_sums(&queries, 0, 1, &bootstrap).unwrap().value,
            1.0
        );
        assert_eq!(
            ratio_of_sums(&queries, 1, 0, &bootstrap).unwrap().value,
            1.0
        );
        assert_eq!(mean_of_ratios(&queries, 0, 1).unwrap().value, 1.25);
        assert_eq!(mean_of_ratios(&queries, 1, 0).unwrap().value, 1.25);
    }

    /// The mean drops the query without a denominator, the sum does not.
    #[test]
    fn zero_denominators() {
        let queries = [vec![A, BOTH], vec![A, A]];
        let mean = mean_of_ratios(&queries, 0, 1).unwrap();
        assert_eq!(
            mean,
            MeanOfRatios {
                value: 2.0,
                n_dropped: 1
            }
        );
        assert_eq!(
            ratio_of_sums(&queries, 1, 0, &Bootstrap::new(1))
                .unwrap()
                .value,
            0.25
        );
    }

    #[test]
    fn shares_of_the_union() {
        let queries = vec![vec![A, BOTH, B, B], vec![BOTH, BOTH, A, B]];
        let bootstrap = Bootstrap::new(1);
        assert_eq!(coverage(&queries, 0, &bootstrap).unwrap().value, 5.0 / 8.0);
        let size = two_engine_size(30.0, &queries, 0, 1, &bootstrap).unwrap();
        assert_eq!(
            (size.value, size.notes),
            (30.0 * 6.0 / 3.0, vec![Note::LowerBound])
        );
    }

    #[test]
    fn large_queries_are_dropped() {
        // 300 pages in both engines are 600 results.
        let (kept, n_dropped) = usable(vec![vec![BOTH; 300], vec![A; 599], vec![]]);
        assert_eq!((kept.len(), n_dropped), (2, 1));
    }

    #[test]
    fn bad_data() {
        let bootstrap = Bootstrap::new(1);
        assert!(ratio_of_sums(&[], 0, 1, &bootstrap).is_err());
        assert!(ratio_of_sums(&[vec![A]], 0, 1, &bootstrap).is_err());
        assert!(coverage(&[vec![], vec![]], 0, &bootstrap).is_err());
        assert!(mean_of_ratios(&[vec![A]], 0, 1).is_err());
        let error = two_engine_size(5.0, &[vec![A, B]], 0, 1, &bootstrap).unwrap_err();
        assert!(error.to_string().contains("share no result"), "{error}");
        assert!(two_engine_size(f64::NAN, &[vec![BOTH]], 0, 1, &bootstrap).is_err());
        // One of many queries has results of B: no resample without it has a value.
        let mut queries = vec![vec![A]; 30];
        queries.push(vec![BOTH]);
        let estimate = ratio_of_sums(&queries, 0, 1, &bootstrap).unwrap();
        assert_eq!(estimate.interval.unwrap().high, f64::INFINITY);
    }
}
