use super::*;
use crate::mix::{SplitMix, mix};
use proptest::prelude::*;
use std::num::NonZeroU16;

fn size(n: usize) -> NonZeroU16 {
    NonZeroU16::new(n.try_into().unwrap()).unwrap()
}

/// Two random sets with exactly `common` elements in both and `only` elements in one alone.
fn pair_of_sets(seed: u64, common: usize, only: [usize; 2]) -> [Vec<u64>; 2] {
    let mut random = SplitMix::new(seed);
    let elements: Vec<u64> = (0..common + only[0] + only[1])
        .map(|_| random.next_u64())
        .collect();
    let (both, rest) = elements.split_at(common);
    [
        [both, &rest[..only[0]]].concat(),
        [both, &rest[only[0]..]].concat(),
    ]
}

/// Mean and variance of the estimate over `runs` sketchers or pairs.
fn moments(estimates: &[f64]) -> (f64, f64) {
    let n = estimates.len() as f64;
    let mean = estimates.iter().sum::<f64>() / n;
    (
        mean,
        estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (n - 1.0),
    )
}

/// The estimates of `runs` sketchers made by `sketcher(seed)` on a new pair each, J = 0.6.
fn estimates<S: Sketcher>(sketcher: impl Fn(u64) -> S, union: usize, runs: u64) -> Vec<f64> {
    let common = union * 6 / 10;
    let only = union - common;
    let run = |seed| {
        let [a, b] = pair_of_sets(seed, common, [only / 2, only - only / 2]);
        let sketcher = sketcher(seed ^ 0x5EED);
        sketcher
            .estimate(&sketcher.sketch(&a), &sketcher.sketch(&b))
            .unwrap()
    };
    (0..runs).map(run).collect()
}

/// Unbiased, with the stated variance: the mean within 4 standard errors, the variance within 4 of
/// its own (`sqrt(2 / runs)` relative, for nearly normal estimates).
#[track_caller]
fn check_moments(estimates: &[f64], j: f64, variance: f64) {
    let runs = estimates.len() as f64;
    let (mean, observed) = moments(estimates);
    let standard_error = (variance / runs).sqrt();
    assert!(
        (mean - j).abs() <= 4.0 * standard_error,
        "mean {mean}, SE {standard_error}"
    );
    let ratio = observed / variance;
    assert!(
        (ratio - 1.0).abs() <= 4.0 * (2.0 / runs).sqrt(),
        "variance ratio {ratio}"
    );
}

const T: usize = 84;
const RUNS: u64 = 600;
const J: f64 = 0.6;

#[test]
fn min_hash_families_are_unbiased() {
    let variance = J * (1.0 - J) / T as f64;
    for family in [Permutations::Mixed, Permutations::Linear] {
        let estimates = estimates(|seed| MinHash::new(family, size(T), seed), 200, RUNS);
        check_moments(&estimates, J, variance);
    }
    check_moments(
        &estimates(|seed| NarrowMinHash::new(size(T), seed), 200, RUNS),
        J,
        variance,
    );
}

/// Sequential shingles: harmless after mixing, biased without it (0.575 for 0.6 in the literature).
#[test]
fn sequential_values_need_mixing() {
    let (t, runs) = (50, 400_u64);
    let sets: [Vec<u64>; 2] = [(0..80).collect(), (20..100).collect()];
    let standard_error = (J * (1.0 - J) / t as f64 / runs as f64).sqrt();
    let mean = |sketch: &dyn Fn(u64, &[u64]) -> Vec<u64>| {
        let run = |seed| agreement(&sketch(seed, &sets[0]), &sketch(seed, &sets[1])).unwrap();
        (0..runs).map(run).sum::<f64>() / runs as f64
    };
    let mixed = mean(&|seed, set| MinHash::new(Permutations::Linear, size(t), seed).sketch(set));
    assert!((mixed - J).abs() <= 4.0 * standard_error, "mixed {mixed}");
    let raw = mean(&|seed, set| {
        let mut random = SplitMix::new(seed);
        let permutations: Vec<_> = (0..t)
            .map(|_| (random.next_u64() | 1, random.next_u64()))
            .collect();
        let minimum = |&(a, b): &(u64, u64)| {
            set.iter()
                .map(|&x| a.wrapping_mul(x).wrapping_add(b))
                .min()
                .unwrap()
        };
        permutations.iter().map(minimum).collect()
    });
    assert!(raw < J - 4.0 * standard_error, "raw {raw} shows no bias");
}

/// Narrow values of different shingles are equal with probability `2^-32`. Disjoint sets of `n`
/// thus have `n^2 / 2^32` values in common, each the minimum of both with probability `1 / 2n`: a
/// false agreement of `n / 2^33`. Counted over a million shingles on each side, within four
/// standard errors of the 232.8 expected.
#[test]
fn narrow_values_of_different_shingles_are_rarely_equal() {
    let n = 1_000_000_u64;
    let sketcher = NarrowMinHash::new(size(1), 1);
    let values = |shingles: std::ops::Range<u64>| -> Vec<u32> {
        let value = |shingle| sketcher.sketch_plain(&[shingle])[0];
        let mut values: Vec<u32> = shingles.map(value).collect();
        values.sort_unstable();
        values
    };
    let (a, b) = (values(0..n), values(n..2 * n));
    let n_equal = a
        .iter()
        .filter(|value| b.binary_search(value).is_ok())
        .count();
    let expected = (n * n) as f64 / 2_f64.powi(32);
    assert!(
        (n_equal as f64 - expected).abs() <= 4.0 * expected.sqrt(),
        "{n_equal}"
    );
}

#[test]
fn standard_errors_of_the_literature() {
    let standard_error = |j: f64, t: f64| (j * (1.0 - j) / t).sqrt();
    let rows = [
        (84.0, [0.0327, 0.0436, 0.0546]),
        (200.0, [0.0212, 0.0283, 0.0354]),
    ];
    for (t, expected) in rows {
        for (j, expected) in [0.9, 0.8, 0.5].into_iter().zip(expected) {
            assert!((standard_error(j, t) - expected).abs() <= 0.5e-4);
        }
    }
}

/// Broder's bottom-s, with its finite-population correction, and exact for small unions.
#[test]
fn bottom_s_is_unbiased_and_exact_for_small_unions() {
    let (s, union) = (64.0, 200.0);
    let variance = J * (1.0 - J) / s * (union - s) / (union - 1.0);
    check_moments(
        &estimates(|seed| BottomS::new(size(64), seed), 200, RUNS),
        J,
        variance,
    );
    assert!(
        estimates(|seed| BottomS::new(size(100), seed), 100, 20)
            .iter()
            .all(|&e| e == 0.6)
    );
}

/// The divisor of the shared values matters: `s`, or the size of the union of the sketches, gives a
/// biased estimate.
#[test]
fn bottom_s_shortcuts_are_biased() {
    let (s, runs) = (64, 400);
    let mut sums = [0.0; 2];
    for seed in 0..runs {
        let [a, b] = pair_of_sets(seed, 300, [100, 600]);
        let sketcher = BottomS::new(size(s), seed);
        let [a, b] = [sketcher.sketch(&a), sketcher.sketch(&b)];
        let common = a.iter().filter(|value| b.contains(value)).count();
        sums[0] += common as f64 / s as f64;
        sums[1] += common as f64 / (2 * s - common) as f64;
    }
    let standard_error = (0.3_f64 * 0.7 / s as f64 / runs as f64).sqrt();
    for sum in sums {
        let mean = sum / runs as f64;
        assert!((mean - 0.3).abs() > 4.0 * standard_error, "mean {mean}");
    }
}

/// J = 0.4 with sizes 600 and 800, m = 25: mean 0.396 over 400 runs and containment 0.666 in the
/// literature. A ratio of counts around 40 is slightly biased, which 4 standard errors cover.
#[test]
fn mod_m_estimates_resemblance_and_containment() {
    let runs = 400_u64;
    let (mut jaccard, mut containment) = (Vec::new(), Vec::new());
    for seed in 0..runs {
        let [a, b] = pair_of_sets(seed, 400, [200, 400]);
        let sketcher = ModM::new(25.try_into().unwrap(), seed);
        let [a, b] = [sketcher.sketch(&a), sketcher.sketch(&b)];
        jaccard.extend(sketcher.estimate(&a, &b));
        containment.extend(sketcher.containment(&a, &b));
    }
    for (estimates, truth) in [(jaccard, 0.4), (containment, 2.0 / 3.0)] {
        let (mean, variance) = moments(&estimates);
        let standard_error = (variance / runs as f64).sqrt();
        assert!(
            (mean - truth).abs() <= 4.0 * standard_error,
            "{mean} for {truth}"
        );
    }
}

#[test]
fn mod_m_of_nothing_says_nothing() {
    let sketcher = ModM::new(25.try_into().unwrap(), 1);
    assert_eq!(sketcher.estimate(&[], &[]), None);
    assert_eq!(sketcher.containment(&[], &[25]), None);
    assert_eq!(sketcher.estimate(&[], &[25]), Some(0.0));
}

#[test]
fn mod_m_capped_sketches_compare_at_the_larger_modulus() {
    let [a, b] = pair_of_sets(3, 3000, [500, 20_000]);
    let sketcher = ModM::new(25.try_into().unwrap(), 1);
    let ((j_a, mut a), (j_b, b)) = (
        sketcher.sketch_capped(&a, 1000),
        sketcher.sketch_capped(&b, 1000),
    );
    assert!(j_a < j_b && a.len() <= 1000 && b.len() <= 1000);
    ModM::coarsen(&mut a, j_b);
    let estimate = sketcher.estimate(&a, &b).unwrap();
    let truth = 3000.0 / 23_500.0;
    let standard_error = (truth * (1.0 - truth) / (23_500.0 / f64::from(1 << j_b))).sqrt();
    assert!(
        (estimate - truth).abs() <= 4.0 * standard_error,
        "{estimate}"
    );
}

/// One permutation in 64 bins, J = 0.6: variance 0.85, 0.87 and 1.28 of `J (1 - J) / t` for unions
/// of 1000, 100 and 25, each within 4 standard errors (`sqrt(2 / runs)`, and as much again for the
/// published numbers, which are one run each).
#[test]
fn one_permutation_variances() {
    let (t, runs) = (64, 2000);
    for (union, published) in [(1000, 0.85), (100, 0.87), (25, 1.28)] {
        let run = |seed: u64| {
            let [a, b] = pair_of_sets(seed, union * 6 / 10, [union / 5, union / 5]);
            let sketcher = OnePermutation::new(size(t), seed);
            let [a, b] = [a, b].map(|set| sketcher.densify(&sketcher.sketch(&set)));
            a.estimate(&b).unwrap()
        };
        let estimates: Vec<f64> = (0..runs).map(run).collect();
        let (mean, variance) = moments(&estimates);
        let ideal = J * (1.0 - J) / t as f64;
        assert!(
            (mean - J).abs() <= 4.0 * (1.5 * ideal / runs as f64).sqrt(),
            "{union}: mean {mean}"
        );
        let ratio = variance / ideal;
        println!("union {union}: variance ratio {ratio:.3}, published {published}");
        let tolerance = 4.0 * (2.0 / runs as f64).sqrt() + 4.0 * (2.0_f64 / 400.0).sqrt();
        assert!(
            (ratio / published - 1.0).abs() <= tolerance,
            "{union}: ratio {ratio}"
        );
    }
}

#[test]
fn one_permutation_raw_estimate_is_unbiased() {
    let estimates = estimates(|seed| OnePermutation::new(size(64), seed), 1000, RUNS);
    let (mean, variance) = moments(&estimates);
    assert!(
        (mean - J).abs() <= 4.0 * (variance / RUNS as f64).sqrt(),
        "mean {mean}"
    );
}

#[test]
fn densification_is_the_same_for_all_documents() {
    let sketcher = OnePermutation::new(size(84), 9);
    let one = sketcher.densify(&sketcher.sketch(&[42]));
    assert!(one.values().iter().all(|value| value == &one.values()[0]));
    assert_eq!(
        one.estimate(&sketcher.densify(&sketcher.sketch(&[42, 42]))),
        Some(1.0)
    );
    assert_eq!(sketcher.densify(&[]).values(), &[] as &[u64]);
    assert_eq!(
        sketcher.densify(&vec![EMPTY_BIN; 84]).values(),
        &[] as &[u64]
    );
    assert!(sketcher.is_short(167) && !sketcher.is_short(168));
}

/// The variances of Li and König at J = 0.6: 2.67, 1.56, 1.11 and 1.007 times that of whole values.
#[test]
fn b_bit_variances() {
    let ideal = J * (1.0 - J) / 128.0;
    for (bits, published) in [(1, 2.67), (2, 1.56), (4, 1.11), (8, 1.007)] {
        let theory = (1.0 - J) / 128.0 * (J + 1.0 / (2_f64.powi(bits as i32) - 1.0));
        assert!(
            (theory / ideal - published).abs() < 0.006,
            "{bits}: {}",
            theory / ideal
        );
        let sketcher = |seed| BBit::new(NarrowMinHash::new(size(128), seed), bits).unwrap();
        check_moments(&estimates(sketcher, 500, RUNS), J, theory);
    }
    for bits in [0, 3, 16, 64] {
        assert!(BBit::new(NarrowMinHash::new(size(128), 1), bits).is_err());
    }
}

/// Files contain these values.
#[test]
fn sketches_are_frozen() {
    let set = [1, 2, 3];
    let first = |values: Vec<u64>| values[0];
    let frozen = [
        first(MinHash::new(Permutations::Mixed, size(4), 1).sketch(&set)),
        first(MinHash::new(Permutations::Linear, size(4), 1).sketch(&set)),
        u64::from(NarrowMinHash::new(size(4), 1).sketch(&set)[0]),
        first(BottomS::new(size(4), 1).sketch(&set)),
        first(OnePermutation::new(size(1), 1).sketch(&set)),
    ];
    assert_eq!(
        frozen.map(|value| format!("{value:016x}")),
        [
            "4a2a45a1bd1c8017",
            "096d19e598580957",
            "000000001d4391d9",
            "83ec686c1600460a",
            "83ec686c1600460a",
        ]
    );
}

/// The lecture's tables, by explicit row orders instead of hash functions.
mod lecture {
    use super::*;

    const SETS: [&[u64]; 3] = [&[1, 3, 4], &[2, 5], &[1, 2, 4]];

    /// The sketch by row orders: each entry is the first row of the set in that order.
    fn rows(set: &[u64], orders: &[[u64; 5]]) -> Vec<u64> {
        let place =
            |order: [u64; 5]| move |row| order.iter().position(|&r| r == row).unwrap() as u64;
        let first = |&order: &[u64; 5]| order[signature(set, &[&place(order)])[0] as usize];
        orders.iter().map(first).collect()
    }

    fn agreements(orders: &[[u64; 5]]) -> [Option<f64>; 3] {
        let [a, b, c] = SETS.map(|set| rows(set, orders));
        [agreement(&a, &b), agreement(&a, &c), agreement(&b, &c)]
    }

    #[test]
    fn three_row_orders() {
        let orders = [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1], [3, 4, 5, 1, 2]];
        assert_eq!(
            SETS.map(|set| rows(set, &orders)),
            [[1, 4, 3], [2, 5, 5], [1, 4, 4]]
        );
        assert_eq!(agreements(&orders), [Some(0.0), Some(2.0 / 3.0), Some(0.0)]);
    }

    /// Over all 120 orders, the share of matches is exactly the similarity.
    #[test]
    fn all_row_orders() {
        let mut orders = vec![vec![]];
        for row in 1..=5 {
            let insert = |order: &Vec<u64>, at| [&order[..at], &[row], &order[at..]].concat();
            let longer = |order: &Vec<u64>| (0..=order.len()).map(|at| insert(order, at)).collect();
            orders = orders
                .iter()
                .flat_map(|order| -> Vec<_> { longer(order) })
                .collect();
        }
        let orders: Vec<[u64; 5]> = orders.into_iter().map(|o| o.try_into().unwrap()).collect();
        assert_eq!(orders.len(), 120);
        assert_eq!(agreements(&orders), [Some(0.0), Some(0.5), Some(0.25)]);
    }

    /// One pass over the rows with h(x) = x mod 5 and g(x) = 2x + 1 mod 5, slots after each row.
    #[test]
    fn one_pass() {
        let (h, g) = (|x| x % 5, |x| (2 * x + 1) % 5);
        let mut slots = [vec![], vec![]];
        let after_rows = (1..=5).map(|row| {
            for (slots, column) in slots.iter_mut().zip([[1, 3, 4], [2, 3, 5]]) {
                if column.contains(&row) {
                    *slots = minima(slots, &signature(&[row], &[&h, &g]));
                }
            }
            slots.clone()
        });
        let expected: [[&[u64]; 2]; 5] = [
            [&[1, 3], &[]],
            [&[1, 3], &[2, 0]],
            [&[1, 2], &[2, 0]],
            [&[1, 2], &[2, 0]],
            [&[1, 2], &[0, 0]],
        ];
        assert_eq!(after_rows.collect::<Vec<_>>(), expected);
    }

    /// Values are compared slot by slot, so the 155 in different slots does not count. The smallest
    /// of these hashes is 123, not 192 as printed in one source.
    #[test]
    fn slots_and_minima() {
        let [a, b] = [[192, 155, 187, 255], [143, 179, 187, 155]];
        assert_eq!(agreement(&a, &b), Some(0.25));
        let smallest = |hashes: &[u64]| signature(hashes, &[&|hash| hash]);
        assert_eq!(smallest(&[357, 192, 755, 123, 987, 345]), [123]);
        assert_eq!(smallest(&[132, 345, 487, 564, 778, 120]), [120]);
    }

    /// Of the 24 orders of four rows the 12 even ones are exactly min-wise: every row of every set
    /// comes first equally often. No smaller family is, since lcm(1, 2, 3, 4) = 12.
    #[test]
    fn smallest_exact_family_of_four() {
        let orders: Vec<[u64; 4]> = (0..256_u64)
            .map(|code| std::array::from_fn(|i| code >> (2 * i) & 3))
            .filter(|order| (0..4).all(|row| order.contains(&row)))
            .filter(|order| {
                let inversions = (0..4).flat_map(|i| (0..i).map(move |j| (i, j)));
                inversions.filter(|&(i, j)| order[j] > order[i]).count() % 2 == 0
            })
            .collect();
        assert_eq!(orders.len(), 12);
        for members in 1..16_u64 {
            let set: Vec<u64> = (0..4).filter(|row| members >> row & 1 == 1).collect();
            let firsts = |row| {
                let is_first = |order: &&[u64; 4]| {
                    signature(
                        &set,
                        &[&|x| order.iter().position(|&r| r == x).unwrap() as u64],
                    ) == signature(
                        &[row],
                        &[&|x| order.iter().position(|&r| r == x).unwrap() as u64],
                    )
                };
                orders.iter().filter(is_first).count()
            };
            assert!(
                set.iter().all(|&row| firsts(row) * set.len() == 12),
                "{set:?}"
            );
        }
    }
}

/// A shingle whose narrow value would be zero is not the minimum of every permutation: two sets
/// that share only such values do not look similar.
#[test]
fn no_shingle_is_the_minimum_everywhere() {
    let zeros = [crate::mix::unmix(17), crate::mix::unmix(99)];
    let sets = zeros.map(|zero| {
        (0..1000)
            .map(|i| mix(i ^ zero))
            .chain([zero])
            .collect::<Vec<_>>()
    });
    let sketcher = NarrowMinHash::new(size(T), 1);
    let [a, b] = sets.map(|set| sketcher.sketch(&set));
    assert!(!a.contains(&0));
    assert!(sketcher.estimate(&a, &b).unwrap() < 0.05);
}

/// MinHash values stay independent for tiny sets: disjoint sets of 3 and 20 elements.
#[test]
fn b_bit_samples_of_small_sets_are_independent() {
    for n in [3, 20] {
        for bits in [1, 4] {
            let run = |seed| {
                let [a, b] = pair_of_sets(seed, 0, [n, n]);
                let sketcher = BBit::new(NarrowMinHash::new(size(128), seed), bits).unwrap();
                sketcher
                    .estimate(&sketcher.sketch(&a), &sketcher.sketch(&b))
                    .unwrap()
            };
            let estimates: Vec<f64> = (0..RUNS).map(run).collect();
            check_moments(
                &estimates,
                0.0,
                1.0 / 128.0 / (2_f64.powi(bits as i32) - 1.0),
            );
        }
    }
}

fn a_set() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any::<u64>(), 0..200)
}

/// Properties of every kind of sketch.
fn check_sketcher<S: Sketcher>(sketcher: &S, set: &[u64]) {
    let sketch = sketcher.sketch(set);
    let mut disordered = [set, set].concat();
    SplitMix::new(1).shuffle(&mut disordered);
    assert_eq!(
        sketcher.sketch(&disordered),
        sketch,
        "order or repeats matter"
    );
    assert_eq!(sketcher.sketch(&[]), []);
    // There is nothing to compare or, if every set is sampled at the same rate, nothing in common.
    assert!(matches!(sketcher.estimate(&sketch, &[]), None | Some(0.0)));
    assert_eq!(sketcher.estimate(&[], &[]), None);
    match sketcher.estimate(&sketch, &sketch) {
        Some(estimate) => assert_eq!(estimate, 1.0),
        None => assert!(sketch.is_empty()),
    }
}

fn check_mergeable<S: Mergeable>(sketcher: &S, a: &[u64], b: &[u64]) {
    check_sketcher(sketcher, a);
    let union = sketcher.sketch(&[a, b].concat());
    assert_eq!(
        sketcher.merge(&sketcher.sketch(a), &sketcher.sketch(b)),
        union
    );
    let (a, b) = (sketcher.sketch(a), sketcher.sketch(b));
    assert_eq!(sketcher.estimate(&a, &b), sketcher.estimate(&b, &a));
}

proptest! {
    #[test]
    fn min_hash_equals_its_definition(set in a_set(), seed: u64) {
        let mut random = SplitMix::new(seed);
        let [(_, b0), (a1, b1)] = [(); 2].map(|()| (random.next_u64() | 1, random.next_u64()));
        let mixed = MinHash::new(Permutations::Mixed, size(2), seed).sketch(&set);
        let linear = MinHash::new(Permutations::Linear, size(2), seed).sketch(&set);
        let first_mixed = signature(&set, &[&|x| mix(x ^ b0)]);
        let second_linear = signature(&set, &[&|x| a1.wrapping_mul(mix(x)).wrapping_add(b1)]);
        prop_assert_eq!(mixed.first(), first_mixed.first());
        prop_assert_eq!(linear.get(1), second_linear.first());
    }

    #[test]
    fn every_kind(a in a_set(), b in a_set(), seed: u64, t in 1_usize..150) {
        check_mergeable(&MinHash::new(Permutations::Mixed, size(t), seed), &a, &b);
        check_mergeable(&MinHash::new(Permutations::Linear, size(t), seed), &a, &b);
        check_mergeable(&NarrowMinHash::new(size(t), seed), &a, &b);
        check_mergeable(&BottomS::new(size(t), seed), &a, &b);
        check_mergeable(&ModM::new((t as u64).try_into().unwrap(), seed), &a, &b);
        check_mergeable(&OnePermutation::new(size(t), seed), &a, &b);
        for bits in [1, 2, 4, 8] {
            check_sketcher(&BBit::new(NarrowMinHash::new(size(t), seed), bits).unwrap(), &a);
        }
    }

    #[test]
    fn narrow_equals_plain(set in prop::collection::vec(any::<u64>(), 0..3000), t in 1_usize..150) {
        let sketcher = NarrowMinHash::new(size(t), 7);
        prop_assert_eq!(sketcher.sketch(&set), sketcher.sketch_plain(&set));
    }

    #[test]
    fn one_permutation_equals_plain(set in a_set(), t in 1_usize..150) {
        let sketcher = OnePermutation::new(size(t), 7);
        prop_assert_eq!(sketcher.sketch(&set), sketcher.sketch_plain(&set));
    }

    #[test]
    fn bottom_s_equals_sorting(
        set in prop::collection::vec(any::<u64>(), 0..1000),
        s in 1_usize..100,
    ) {
        let mut all: Vec<u64> = set.iter().map(|&x| mix(x ^ mix(7))).collect();
        all.sort_unstable();
        all.dedup();
        all.truncate(s);
        prop_assert_eq!(BottomS::new(size(s), 7).sketch(&set), all);
    }
}
