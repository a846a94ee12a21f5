//! The contract of fingerprints and their statistics, on random documents.

use super::*;
use crate::mix::SplitMix;
use proptest::prelude::*;

/// Distinct features.
fn random_features(random: &mut SplitMix, n: usize) -> Vec<u64> {
    (0..n).map(|_| random.next_u64()).collect()
}

fn of(features: &[u64]) -> Fingerprint384 {
    Fingerprint::of(features).unwrap()
}

/// Lengths around every block, tree and plane boundary, far beyond 2^16.
#[test]
fn fast_equals_plain_at_the_boundaries() {
    let mut random = SplitMix::new(1);
    let features = random_features(&mut random, 70_000);
    let around = |n: usize| n.saturating_sub(2)..=n + 2;
    let lengths = (1..=300).chain([512, 1024, 2048, 4096].into_iter().flat_map(around));
    for n in lengths.chain([16_383, 16_384, 32_769, 65_535, 65_536, 65_537, 70_000]) {
        assert_eq!(
            Fingerprint384::of(&features[..n]),
            plain::fingerprint(&features[..n]),
            "{n}"
        );
    }
}

/// One repeated feature fills every counter to its limit.
#[test]
fn equal_features_project_as_one() {
    for n in (1..=200).chain([1023, 1024, 1025, 65_535, 65_536, 65_537, 140_000]) {
        let features = vec![42; n];
        assert_eq!(of(&features), of(&[42]), "{n}");
    }
}

/// As many of one feature as of another: each bit in which they differ is a tie.
#[test]
fn ties_give_zero() {
    for n in [1, 2, 7, 31, 32, 33, 64, 500, 40_000] {
        let mut features = vec![1; n];
        features.extend(vec![2; n]);
        let (one, two) = (of(&[1]), of(&[2]));
        let both = std::array::from_fn(|j| one.0[j] & two.0[j]);
        assert_eq!(of(&features), Fingerprint(both), "{n}");
        features.push(1);
        assert_eq!(of(&features), one, "{n}");
    }
}

/// Other widths use the same words: word `j` depends on `j` alone.
#[test]
fn wider_fingerprints_extend_narrower_ones() {
    let features = random_features(&mut SplitMix::new(2), 333);
    let wide = Fingerprint::<9>::of(&features).unwrap();
    assert_eq!(wide.0[..6], of(&features).0);
    assert_eq!(wide.0[..1], Fingerprint::<1>::of(&features).unwrap().0);
    assert_eq!(Some(wide), plain::fingerprint(&features));
}

proptest! {
    #[test]
    fn fast_equals_plain(features in prop::collection::vec(any::<u64>(), 0..700)) {
        prop_assert_eq!(Fingerprint384::of(&features), plain::fingerprint(&features));
    }

    /// There are few distinct features, so that repeats and ties are frequent.
    #[test]
    fn fast_equals_plain_with_repeats(features in prop::collection::vec(0_u64..5, 0..400)) {
        prop_assert_eq!(Fingerprint384::of(&features), plain::fingerprint(&features));
    }

    #[test]
    fn order_does_not_matter(
        mut features in prop::collection::vec(0_u64..50, 1..300),
        seed: u64,
    ) {
        let before = of(&features);
        SplitMix::new(seed).shuffle(&mut features);
        prop_assert_eq!(of(&features), before);
    }

    /// Repeating the document multiplies all counts; so does scaling the weights.
    #[test]
    fn scale_does_not_matter(
        features in prop::collection::vec(0_u64..50, 1..100),
        factor in 1_u32..1000,
    ) {
        let twice = features.repeat(2);
        prop_assert_eq!(of(&twice), of(&features));
        let weight = Weight::new(f64::from(factor) / 16.0).unwrap();
        let weighted: Vec<_> = features.iter().map(|&x| (x, weight)).collect();
        prop_assert_eq!(Fingerprint::of_weighted(&weighted), Some(of(&features)));
    }

    /// A weight of k is k occurrences.
    #[test]
    fn weights_are_occurrences(counts in prop::collection::vec((any::<u64>(), 0_u32..6), 0..60)) {
        let repeated: Vec<u64> =
            counts.iter().flat_map(|&(x, n)| std::iter::repeat_n(x, n as usize)).collect();
        let weight = |n| Weight::new(f64::from(n)).unwrap();
        let weighted: Vec<_> = counts.iter().map(|&(x, n)| (x, weight(n))).collect();
        prop_assert_eq!(Fingerprint384::of_weighted(&weighted), Fingerprint::of(&repeated));
    }

    #[test]
    fn c_sim_is_symmetric_and_full_for_equals(a: [u64; 6], b: [u64; 6]) {
        let (a, b) = (Fingerprint(a), Fingerprint(b));
        prop_assert_eq!(a.c_sim(&a), 384);
        prop_assert_eq!(a.c_sim(&b), b.c_sim(&a));
        prop_assert_eq!(a.c_sim(&b) + a.distance(&b), 384);
        let bit_by_bit = |i: usize| a.0[i / 64] >> (i % 64) & 1 == b.0[i / 64] >> (i % 64) & 1;
        prop_assert_eq!(a.c_sim(&b) as usize, (0..384).filter(|&i| bit_by_bit(i)).count());
    }
}

#[test]
fn nothing_has_no_fingerprint() {
    assert_eq!(Fingerprint384::of(&[]), None);
    assert_eq!(Fingerprint384::of_distinct(&[]), None);
    assert_eq!(Fingerprint384::of_weighted(&[]), None);
    assert_eq!(Fingerprint384::of_weighted(&[(1, Weight::default())]), None);
    assert_eq!(plain::fingerprint::<6>(&[]), None);
}

/// The projection must never change: stored fingerprints depend on it.
#[test]
fn one_feature_is_its_projection() {
    use crate::mix::mix;
    let words = std::array::from_fn(|j| mix(42 ^ mix(j as u64 + 1)));
    assert_eq!(of(&[42]), Fingerprint(words));
    assert_eq!(
        Fingerprint::of_weighted(&[(42, Weight::new(0.3).unwrap())]),
        Some(of(&[42]))
    );
}

/// With two features a bit needs both signs: 96 of 384 bits set, of deviation 8.49 each; the mean
/// over 200 documents within four standard errors, 2.40.
#[test]
fn two_features_set_a_quarter_of_the_bits() {
    let mut random = SplitMix::new(3);
    let ones = |features: &[u64]| {
        of(features)
            .0
            .iter()
            .map(|word| word.count_ones())
            .sum::<u32>()
    };
    let total: u32 = (0..200)
        .map(|_| ones(&random_features(&mut random, 2)))
        .sum();
    let mean = f64::from(total) / 200.0;
    let error = (384.0 * 0.25 * 0.75 / 200.0_f64).sqrt();
    assert!((mean - 96.0).abs() < 4.0 * error, "{mean}");
}

/// The mean C-sim over `n_pairs` documents of `n` distinct tokens and copies with `n_replaced` of
/// them new must lie within four standard errors of `expected`.
#[track_caller]
fn check_mean(n: usize, n_replaced: usize, n_pairs: u32, expected: f64) {
    let mut random = SplitMix::new(4);
    let mut c_sim = || {
        let mut features = random_features(&mut random, n + n_replaced);
        let original = of(&features[..n]);
        features.rotate_left(n_replaced);
        original.c_sim(&of(&features[..n]))
    };
    let mean = (0..n_pairs).map(|_| f64::from(c_sim())).sum::<f64>() / f64::from(n_pairs);
    let error = law::deviation(expected / 384.0, 384) / f64::from(n_pairs).sqrt();
    assert!(
        (mean - expected).abs() < 4.0 * error,
        "{mean} +- {error}, expected {expected}"
    );
}

#[test]
fn four_of_200_replaced() {
    assert!(
        (law::expected_c_sim(law::cosine_after_replacing(4.0, 200.0), 384) - 359.51).abs() < 0.005
    );
    check_mean(200, 4, 40, 359.51);
}

#[test]
fn two_of_400_replaced() {
    assert!(
        (law::expected_c_sim(law::cosine_after_replacing(2.0, 400.0), 384) - 371.77).abs() < 0.005
    );
    check_mean(400, 2, 40, 371.77);
}

#[test]
fn unrelated_documents_agree_on_half() {
    check_mean(401, 401, 200, 192.0);
}

/// Short documents have more matching bits than the law predicts: 345.18 for one of 20 tokens. A
/// bit differs only if the other 19 signs sum to +1, `C(19, 10) / 2^19`, and the two tokens then
/// decide differently; on -1 both sums are at most zero. That makes 384 (1 - 0.1762 / 2) = 350.17.
#[test]
fn one_of_20_replaced_is_biased_upward() {
    assert!((law::expected_c_sim(0.95, 384) - 345.18).abs() < 0.005);
    check_mean(20, 1, 400, 384.0 * (1.0 - 92_378.0 / 524_288.0 / 2.0));
}

/// Shingles as features: two of 400 tokens replaced alter 16 of 393 shingles of 8, so C-sim falls
/// to about 349; the mean over 40 pairs within four standard errors.
#[test]
fn shingles_feel_a_changed_token_as_often_as_they_are_long() {
    let mut random = SplitMix::new(5);
    let shingler = crate::shingle::Shingler::new(crate::shingle::FEATURE_W);
    let of_shingles = |tokens: &[u64]| {
        let mut shingles = Vec::new();
        shingler.shingles_into(tokens, &mut shingles);
        of(&shingles)
    };
    let mut c_sim = || {
        let tokens = random_features(&mut random, 400);
        let mut edited = tokens.clone();
        (edited[100], edited[300]) = (random.next_u64(), random.next_u64());
        of_shingles(&tokens).c_sim(&of_shingles(&edited))
    };
    let mean = (0..40).map(|_| f64::from(c_sim())).sum::<f64>() / 40.0;
    let expected = law::expected_c_sim(law::cosine_after_replacing(16.0, 393.0), 384);
    assert_eq!(expected.round(), 349.0);
    let error = law::deviation(expected / 384.0, 384) / 40_f64.sqrt();
    assert!(
        (mean - expected).abs() < 4.0 * error,
        "{mean}, expected {expected}"
    );
}

/// Tokens as features are insensitive to order, shingles are not.
#[test]
fn shingles_feel_the_order() {
    let tokens = random_features(&mut SplitMix::new(6), 400);
    let mut shuffled = tokens.clone();
    SplitMix::new(7).shuffle(&mut shuffled);
    assert_eq!(of(&tokens), of(&shuffled));
    let shingler = crate::shingle::Shingler::new(2.try_into().unwrap());
    let [a, b] = [&tokens, &shuffled].map(|tokens| of(&shingler.shingles_plain(tokens)));
    assert!(!MinCSim::FILTER.reached_by(a.c_sim(&b)), "{}", a.c_sim(&b));
}

#[test]
fn thresholds_are_inclusive() {
    assert!(MinCSim::ALONE.reached_by(372));
    assert!(!MinCSim::ALONE.reached_by(371));
    assert!(MinCSim::FILTER.reached_by(355));
    assert!(!MinCSim::FILTER.reached_by(354));
    assert_eq!(MinCSim::ALONE.max_distance(), 12);
    assert_eq!(MinCSim::FILTER.max_distance(), 29);
    assert_eq!(MinCSim::<6>::new(372).unwrap(), MinCSim::ALONE);
    assert!(MinCSim::<6>::new(385).is_err());
    assert!(MinCSim::<1>::new(65).is_err());
}

#[test]
fn binary_weights_ignore_repeats() {
    let simhash = Simhash::<6> {
        weights: FeatureWeights::Binary,
        ..Simhash::default()
    };
    assert_eq!(
        simhash.fingerprint(&[5, 1, 5, 5, 3]),
        Fingerprint::of(&[1, 3, 5])
    );
    assert_ne!(
        simhash.fingerprint(&[5, 1, 5, 5, 3]),
        Fingerprint::of(&[5, 1, 5, 5, 3])
    );
}

#[test]
fn tables_weigh_each_occurrence() {
    let heavy = Weight::new(2.5).unwrap();
    let table = WeightTable::new(vec![(1, heavy), (2, Weight::default())], Weight::ONE);
    let simhash = Simhash::<6> {
        weights: FeatureWeights::Table(&table),
        ..Simhash::default()
    };
    // Two occurrences of 1 weigh 5, features 3 and 4 together weigh 3, and 2 weighs nothing.
    assert_eq!(simhash.fingerprint(&[1, 2, 1, 3, 4, 3]), Some(of(&[1])));
    assert_eq!(simhash.fingerprint(&[2, 2]), None);
    let light = WeightTable::new(vec![], Weight::ONE);
    let plain_weights = FeatureWeights::Table(&light);
    let simhash = Simhash::<6> {
        weights: plain_weights,
        ..Simhash::default()
    };
    assert_eq!(
        simhash.fingerprint(&[1, 3, 4, 3]),
        Fingerprint::of(&[1, 3, 4, 3])
    );
}

#[test]
fn kinds_are_never_compared() {
    let table = WeightTable::new(vec![], Weight::ONE);
    let other_table = WeightTable::new(vec![(9, Weight::ONE)], Weight::ONE);
    let shingles = |w| FeatureKind::Shingles(NonZeroU32::new(w).unwrap());
    let kinds = [
        (FeatureKind::Tokens, FeatureWeights::Count),
        (FeatureKind::Tokens, FeatureWeights::Binary),
        (FeatureKind::Tokens, FeatureWeights::Table(&table)),
        (FeatureKind::Tokens, FeatureWeights::Table(&other_table)),
        (shingles(2), FeatureWeights::Count),
        (shingles(8), FeatureWeights::Count),
    ];
    let sketches = kinds.map(|(features, weights)| {
        let simhash = Simhash::<6> { features, weights };
        simhash.sketch(&[1, 2, 3]).unwrap()
    });
    for (i, a) in sketches.iter().enumerate() {
        for (j, b) in sketches.iter().enumerate() {
            assert_eq!(a.c_sim(b).is_some(), i == j, "{a:?} {b:?}");
        }
    }
}
