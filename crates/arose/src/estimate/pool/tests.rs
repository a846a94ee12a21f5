use super::*;
use proptest::prelude::*;

/// Queries {1,2,3}, {3,4}, {1,3,5}, {3} over pages 1 to 6; page 0 does not exist.
fn example() -> Pool {
    Pool::new(
        vec![vec![1, 2, 3], vec![3, 4], vec![1, 3, 5], vec![3]],
        7,
        10,
    )
    .unwrap()
}

fn search(pool: &Pool) -> impl FnMut(usize) -> Result<Answer, Error> + '_ {
    |query| Ok(Answer::Pages(pool.results(query).to_vec()))
}

fn draws(pool: &Pool, n_samples: usize) -> Draws {
    Draws {
        n_pool: pool.n_queries(),
        limit: 3,
        n_samples,
        max_queries: u64::MAX,
    }
}

/// Each page's share must lie within four standard errors `sqrt(p (1-p) / n)` of its probability.
#[track_caller]
fn check_law(pages: &[usize], law: &[f64]) {
    for (page, &p) in law.iter().enumerate() {
        let share =
            pages.iter().filter(|&&drawn| drawn == page).count() as f64 / pages.len() as f64;
        let standard_error = (p * (1.0 - p) / pages.len() as f64).sqrt();
        assert!(
            (share - p).abs() <= 4.0 * standard_error,
            "page {page}: {share}, not {p}"
        );
    }
}

#[test]
fn laws_of_the_example() {
    let pool = example();
    let degrees: Vec<u64> = (1..=6).map(|page| pool.degree(page)).collect();
    assert_eq!((degrees, pool.n_matched()), (vec![2, 1, 4, 1, 1, 0], 5));
    let twenty_fourths = [0.0, 4.0, 2.0, 13.0, 3.0, 2.0];
    for (p, expected) in pool.query_law().iter().zip(twenty_fourths) {
        assert!((p - expected / 24.0).abs() < 1e-15);
    }
    let ninths = [0.0, 2.0, 1.0, 4.0, 1.0, 1.0];
    for (p, expected) in pool.degree_law().iter().zip(ninths) {
        assert!((p - expected / 9.0).abs() < 1e-15);
    }
}

#[test]
fn samplers_follow_their_laws() {
    let pool = example();
    let mut random = SplitMix::new(1);
    let any = sample(
        &draws(&pool, 20_000),
        Picking::AnyQuery,
        &mut random,
        search(&pool),
    )
    .unwrap();
    check_law(&any.pages, &pool.query_law());
    let by_degree = sample(
        &draws(&pool, 20_000),
        Picking::ByCardinality,
        &mut random,
        search(&pool),
    )
    .unwrap();
    check_law(&by_degree.pages, &pool.degree_law());
    // 9 of 12 pairs of a query and a number below the limit are kept.
    let kept = 20_000.0 / by_degree.effort.n_queries as f64;
    assert!(
        (kept - 0.75).abs() < 4.0 * (0.75 * 0.25 / 26_667.0_f64).sqrt(),
        "{kept}"
    );
}

#[test]
fn all_three_ways_to_uniform() {
    let pool = example();
    let uniform = [0.0, 0.2, 0.2, 0.2, 0.2, 0.2];
    let mut random = SplitMix::new(2);
    let drawn = sample(
        &draws(&pool, 40_000),
        Picking::ByCardinality,
        &mut random,
        search(&pool),
    );
    let pages = drawn.unwrap().pages;
    let with_degree = |&page: &usize| PageDegree {
        page,
        degree: pool.degree(page),
    };
    let degrees: Vec<PageDegree> = pages.iter().map(with_degree).collect();
    check_law(&reject(&degrees, 1, &mut random).unwrap(), &uniform);
    for page in 1..=5 {
        let weighted: Vec<Weighted> = degrees
            .iter()
            .map(|drawn| Weighted {
                value: f64::from(u8::from(drawn.page == page)),
                weight: 1.0 / drawn.degree as f64,
            })
            .collect();
        let bootstrap = Bootstrap {
            n_resamples: 100,
            kind: crate::estimate::bootstrap::IntervalKind::Percentile,
            seed: 1,
        };
        let importance = importance_mean(&weighted, &bootstrap).unwrap();
        // Var = E[w^2 (f - 1/5)^2] / E[w]^2 / n, at most 0.8 E[w^2]/E[w]^2 / n: 1.2 of a uniform
        // one.
        let standard_error = (0.16 * 1.3 / 40_000.0_f64).sqrt();
        assert!((importance.estimate.value - 0.2).abs() < 4.0 * standard_error);
        // (5/9)^2 over (2/4 + 1 + 4/16 + 1 + 1)/9 of the sample.
        let expected = (25.0 / 81.0) / (3.75 / 9.0) * 40_000.0;
        assert!((importance.effective_size / expected - 1.0).abs() < 0.02);
    }
    let steps = Steps {
        n_kept: 40_000,
        burn_in: 100,
    };
    let queries_of = |page| Ok::<_, Error>(pool.queries_of(page).to_vec());
    let walk = metropolis(4, steps, &mut random, queries_of, search(&pool)).unwrap();
    // Every tenth step is nearly independent of the last.
    let apart: Vec<usize> = walk.pages.iter().copied().step_by(10).collect();
    check_law(&apart, &uniform);
}

/// The mean of the estimates is 1/deg; one estimate from a geometric number of trials deviates by
/// `sqrt(1 - p) / p / n_predicted` with p = deg / n_predicted.
#[test]
fn inverse_degrees_are_unbiased() {
    let mut random = SplitMix::new(3);
    let (n_predicted, degree, n) = (10, 4, 20_000);
    let guess = |_| {
        inverse_degree(n_predicted, u64::MAX, &mut random, |query| {
            Ok::<_, Error>(query < degree)
        })
    };
    let sum: f64 = (0..n).map(guess).map(|guess| guess.unwrap().unwrap()).sum();
    let standard_error = 0.6_f64.sqrt() / 0.4 / 10.0 / f64::from(n).sqrt();
    assert!((sum / f64::from(n) - 0.25).abs() < 4.0 * standard_error);
}

/// Sending all queries after a few draws does not change the mean: one in a hundred is valid, and
/// nearly nine of ten pages need more than ten draws.
#[test]
fn inverse_degrees_stay_unbiased_after_the_last_draw() {
    let mut random = SplitMix::new(4);
    let (n_predicted, max_trials, n) = (100, 10, 20_000);
    let guess = |_| {
        inverse_degree(n_predicted, max_trials, &mut random, |query| {
            Ok::<_, Error>(query == 17)
        })
    };
    let guesses: Vec<f64> = (0..n)
        .map(guess)
        .map(|guess| guess.unwrap().unwrap())
        .collect();
    let mean = guesses.iter().sum::<f64>() / f64::from(n);
    let squares: f64 = guesses.iter().map(|guess| (guess - mean).powi(2)).sum();
    let standard_error = squares.sqrt() / f64::from(n);
    assert!((mean - 1.0).abs() < 4.0 * standard_error, "{mean}");
}

#[test]
fn invalid_answers_are_counted() {
    let answers = [
        Answer::Pages(vec![7, 7]),
        Answer::Pages(vec![]),
        Answer::Pages(vec![1, 2, 3, 4]),
        Answer::Overflow,
        Answer::Missing,
    ];
    let draws = Draws {
        n_pool: 5,
        limit: 3,
        n_samples: 100,
        max_queries: 100,
    };
    let search = |query: usize| Ok::<_, Error>(answers[query].clone());
    let drawn = sample(&draws, Picking::AnyQuery, &mut SplitMix::new(1), search).unwrap();
    let effort = drawn.effort;
    assert!(drawn.pages.iter().all(|&page| page == 7) && effort.n_queries == 100);
    let n_invalid = effort.n_empty + effort.n_overflow + effort.n_missing;
    assert_eq!(drawn.pages.len() as u64 + n_invalid, 100);
    assert!(effort.n_overflow > effort.n_missing && effort.n_missing > 0);
}

#[test]
fn bad_data() {
    let mut random = SplitMix::new(1);
    let draws = Draws {
        n_pool: 3,
        limit: 3,
        n_samples: 10,
        max_queries: 50,
    };
    let silent = |_| Ok::<_, Error>(Answer::Missing);
    let error = sample(&draws, Picking::AnyQuery, &mut random, silent)
        .unwrap_err()
        .to_string();
    assert!(error.contains("none of 50 queries gave a page"), "{error}");
    let no_pool = Draws { n_pool: 0, ..draws };
    assert!(sample(&no_pool, Picking::AnyQuery, &mut random, silent).is_err());
    let no_limit = Draws { limit: 0, ..draws };
    assert!(sample(&no_limit, Picking::ByCardinality, &mut random, silent).is_err());

    let page = PageDegree { page: 3, degree: 1 };
    assert!(reject(&[page], 0, &mut random).is_err());
    assert!(reject(&[page], 2, &mut random).is_err());
    assert!(share(0, 0).is_err() && share(3, 2).is_err());
    let bootstrap = Bootstrap::new(1);
    assert!(importance_mean(&[], &bootstrap).is_err());
    let of_degree_zero = Weighted {
        value: 1.0,
        weight: 1.0 / 0.0,
    };
    assert!(importance_mean(&[of_degree_zero], &bootstrap).is_err());
    let never = inverse_degree(5, 20, &mut random, |_| Ok::<_, Error>(false));
    assert_eq!(never, Ok(None));
    assert_eq!(
        inverse_degree(0, 20, &mut random, |_| Ok::<_, Error>(true)),
        Ok(None)
    );

    let pool = example();
    let queries_of = |page| Ok::<_, Error>(pool.queries_of(page).to_vec());
    let steps = Steps {
        n_kept: 10,
        burn_in: 0,
    };
    assert!(metropolis(6, steps, &mut random, queries_of, search(&pool)).is_err());
    assert!(metropolis(99, steps, &mut random, queries_of, search(&pool)).is_err());
    assert!(Pool::new(vec![], 0, 5).unwrap().degree_law().is_empty());
    assert_eq!(Pool::new(vec![vec![0, 1, 2]], 3, 2).unwrap().n_matched(), 0);
    assert!(Pool::new(vec![vec![0, usize::MAX]], 3, 2).is_err());
}

proptest! {
    /// Both distributions sum to one, and the degrees sum to the number of results of all queries.
    #[test]
    fn laws_are_laws(results in prop::collection::vec(prop::collection::vec(0_usize..20, 0..6), 1..10)) {
        let pool = Pool::new(results, 20, 4).unwrap();
        let n_results: usize = (0..pool.n_queries()).map(|query| pool.results(query).len()).sum();
        let n_edges: u64 = (0..20).map(|page| pool.degree(page)).sum();
        prop_assert_eq!(n_results as u64, n_edges);
        if n_edges > 0 {
            prop_assert!((pool.query_law().iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!((pool.degree_law().iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
