//! The filter polynomial assumes independent permutations. How far do the cheaper families obey it?

use arose::feature::Features;
use arose::filter::Filter;
use arose::mix::SplitMix;
use arose::sketch::{NarrowMinHash, OnePermutation, Sketcher};

use crate::statistics::{check_rate, check_within};

const FILTER: Filter = Filter::TWO_OF_SIX;

/// Two random sets with a union of `n_union` elements, of which `n_common` are in both and the
/// others are halved between them.
fn pair_of_sets(random: &mut SplitMix, n_union: usize, n_common: usize) -> [Vec<u64>; 2] {
    let union: Vec<u64> = (0..n_union).map(|_| random.next_u64()).collect();
    let (common, rest) = union.split_at(n_common);
    let (only_a, only_b) = rest.split_at(rest.len() / 2);
    [[common, only_a].concat(), [common, only_b].concat()]
}

/// How many of `n_pairs` pairs of random sets the filter accepts, by the features that
/// `features_of` makes of each set.
fn n_accepted(
    n_pairs: usize,
    [n_union, n_common]: [usize; 2],
    features_of: impl Fn(usize, &[u64]) -> Vec<u64>,
) -> usize {
    let mut random = SplitMix::new((n_union * 1000 + n_common) as u64);
    let accepted = |pair_idx: &usize| {
        let [a, b] =
            pair_of_sets(&mut random, n_union, n_common).map(|set| features_of(*pair_idx, &set));
        FILTER.accepts(&a, &b)
    };
    (0..n_pairs).filter(accepted).count()
}

/// The features of a densified sketch of 84 bins, each pair under a permutation of its own.
fn densified_features(pair_idx: usize, set: &[u64]) -> Vec<u64> {
    let sketcher = OnePermutation::new(84.try_into().unwrap(), pair_idx as u64);
    let densified = sketcher.densify(&sketcher.sketch(set));
    Features::SIX_BY_FOURTEEN.of(densified.values()).unwrap()
}

const N_DENSIFIED: usize = 20_000;

#[track_caller]
fn check_densified(n_union: usize, published: f64) -> f64 {
    let n = n_accepted(
        N_DENSIFIED,
        [n_union, n_union * 19 / 20],
        densified_features,
    );
    let rate = n as f64 / N_DENSIFIED as f64;
    // The published rates are one run each, with a standard error of 0.03.
    let own = (published * (1.0 - published) / N_DENSIFIED as f64).sqrt();
    let name = format!("densified, union {n_union}");
    check_within(&name, rate, published, own.hypot(0.03));
    rate
}

/// At J = 0.95 independent samples are accepted with probability 0.879. Densified bins of small
/// sets repeat each other's values, so features agree or differ together: 0.870 of 20,000 pairs. In
/// sets of more elements than bins, samples are drawn without replacement and vary less: 0.894. The
/// polynomial is a hundredth off either way.
#[test]
fn densified_sketches_obey_the_polynomial_nearly() {
    let expected = FILTER.acceptance(0.95);
    assert!((expected - 0.879).abs() < 5e-4);
    let (of_40, of_200) = (check_densified(40, 0.82), check_densified(200, 0.89));
    assert!((expected - 0.02..expected).contains(&of_40), "{of_40}");
    assert!((expected..expected + 0.02).contains(&of_200), "{of_200}");
}

/// 32-bit lanes, `a x mod 2^32` on the high half of mixed shingles, are as good as independent
/// permutations: 2,000 pairs at each exact similarity, within four standard errors.
#[test]
fn narrow_min_hash_obeys_the_polynomial() {
    let sketcher = NarrowMinHash::new(84.try_into().unwrap(), 1);
    let features_of = |_, set: &[u64]| Features::SIX_BY_FOURTEEN.of(&sketcher.sketch(set)).unwrap();
    for (n_common, table) in [
        (700, 6.776e-4),
        (800, 0.025776),
        (900, 0.415051),
        (950, 0.878638),
    ] {
        let expected = FILTER.acceptance(n_common as f64 / 1000.0);
        assert!((expected / table - 1.0).abs() < 1e-4, "{expected}");
        let n = n_accepted(2000, [1000, n_common], features_of);
        check_rate(&format!("narrow at {n_common} of 1000"), n, 2000, expected);
    }
}
