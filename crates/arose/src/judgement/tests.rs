//! Tests of the module against textbook values, and of the consistency of the published numbers.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Verdict::{Correct, Incorrect, Undecided};
use super::*;

fn tally(correct: u64, incorrect: u64, undecided: u64) -> Tally {
    Tally {
        correct,
        incorrect,
        undecided,
    }
}

#[track_caller]
fn check_close(value: f64, expected: f64, tolerance: f64) {
    assert!(
        (value - expected).abs() <= tolerance,
        "{value}, expected {expected}"
    );
}

mod tallies {
    use super::*;

    #[test]
    fn undecided_pairs_count_against_precision() {
        let tally = tally(50, 27, 23);
        assert_eq!(tally.total(), 100);
        assert_eq!(tally.precision(), Some(0.50));
        assert_eq!(tally.share(Incorrect), Some(0.27));
        assert_eq!(tally.share(Undecided), Some(0.23));
        assert_eq!(tally.precision_of_decided(), Some(50.0 / 77.0));
        assert_eq!(tally.interval(Correct), wilson(50, 100, Z_95));
    }

    #[test]
    fn nothing_judged_has_no_precision() {
        assert_eq!(Tally::default().precision(), None);
        assert_eq!(tally(0, 0, 3).precision(), Some(0.0));
        assert_eq!(tally(0, 0, 3).precision_of_decided(), None);
    }

    #[test]
    fn names_are_stable_and_read_back() {
        assert_eq!(
            Verdict::ALL.map(Verdict::as_str),
            ["correct", "incorrect", "undecided"]
        );
        for verdict in Verdict::ALL {
            assert_eq!(verdict.to_string().parse(), Ok(verdict));
        }
        assert!("Correct".parse::<Verdict>().is_err());
    }

    /// One pair of each B-sim and C-sim, with ratings that cycle through all three.
    fn grid() -> Vec<Judged> {
        let scores = (0..=6).flat_map(|b_sim| (0..=384).map(move |c_sim| (b_sim, c_sim)));
        let judged = scores.enumerate().map(|(i, (b_sim, c_sim))| Judged {
            b_sim,
            c_sim,
            verdict: Verdict::ALL[i % 3],
        });
        judged.collect()
    }

    #[test]
    fn tables_divide_the_pairs() {
        let judged = grid();
        assert_eq!(by_b_sim(&judged).map(|tally| tally.total()), [385; 5]);
        assert_eq!(
            by_c_sim(&judged).map(|tally| tally.total()),
            [21, 21, 21, 28]
        );
        // 385 = 3 * 128 + 1, and row 2 starts at item 770 = 2 modulo 3.
        assert_eq!(by_b_sim(&judged)[0], tally(128, 128, 129));
    }

    #[track_caller]
    fn check_bin(c_sim: u32, expected: Option<usize>) {
        let pair = Judged {
            b_sim: 0,
            c_sim,
            verdict: Correct,
        };
        let table = by_c_sim(&[pair]);
        assert_eq!(
            table.iter().position(|tally| tally.total() == 1),
            expected,
            "{c_sim}"
        );
    }

    #[test]
    fn bins_are_closed_below() {
        let bins = [
            (371, None),
            (372, Some(0)),
            (374, Some(0)),
            (375, Some(1)),
            (377, Some(1)),
        ];
        bins.into_iter()
            .for_each(|(c_sim, bin)| check_bin(c_sim, bin));
        let bins = [
            (378, Some(2)),
            (380, Some(2)),
            (381, Some(3)),
            (384, Some(3)),
            (385, None),
        ];
        bins.into_iter()
            .for_each(|(c_sim, bin)| check_bin(c_sim, bin));
    }
}

mod wilson_interval {
    use super::*;

    #[track_caller]
    fn check(successes: u64, trials: u64, low: f64, high: f64) {
        let interval = wilson(successes, trials, Z_95);
        check_close(interval.low, low, 5e-5);
        check_close(interval.high, high, 5e-5);
    }

    #[test]
    fn textbook_values() {
        check(50, 100, 0.4038, 0.5962);
        check(0, 10, 0.0, 0.2775);
        check(10, 10, 0.7225, 1.0);
        check(81, 263, 0.2553, 0.3662);
        check(0, 0, 0.0, 1.0);
        check(11, 10, 0.7225, 1.0);
    }

    proptest! {
        /// The bounds are the shares p for which the observed share lies z standard errors away,
        /// which is where the formula comes from.
        #[test]
        fn bounds_are_z_standard_errors_away(n in 1_u64..5000, part in 0.0..=1.0, z in 0.5..4.0) {
            let successes = (part * n as f64) as u64;
            let observed = successes as f64 / n as f64;
            let interval = wilson(successes, n, z);
            for bound in [interval.low, interval.high] {
                let standard_error = (bound * (1.0 - bound) / n as f64).sqrt();
                prop_assert!(((observed - bound).abs() - z * standard_error).abs() < 1e-6);
            }
            prop_assert!(interval.low <= observed + 1e-12 && observed <= interval.high + 1e-12);
        }
    }

    /// Over 2,000 samples of 100 at p = 0.3 about 95% of the intervals contain p. The exact
    /// coverage at this n and p is 0.9372 (22 to 38 successes); four standard errors of the share
    /// are 0.022.
    #[test]
    fn coverage() {
        let mut random = SplitMix::new(1);
        let holds = |interval: Interval| (interval.low..=interval.high).contains(&0.3);
        let mut draw = || (0..100).filter(|_| random.next_f64() < 0.3).count() as u64;
        let n_held = (0..2000)
            .filter(|_| holds(wilson(draw(), 100, Z_95)))
            .count();
        check_close(n_held as f64 / 2000.0, 0.9372, 0.022);
    }
}

mod samples {
    use super::*;

    /// Each of `n` items is in a sample of `capacity` with probability p = capacity / n: over 4,000
    /// seeds, 4000 p times within 4 x sqrt(4000 p (1 - p)).
    #[track_caller]
    fn check_uniform(capacity: usize, n: usize) {
        let mut counts = vec![0_u32; n];
        for seed in 0..4000 {
            let mut reservoir = Reservoir::new(capacity, seed);
            (0..n).for_each(|item| reservoir.offer(item));
            reservoir.sample.iter().for_each(|&item| counts[item] += 1);
        }
        let p = capacity as f64 / n as f64;
        for count in counts {
            check_close(
                f64::from(count),
                4000.0 * p,
                4.0 * (4000.0 * p * (1.0 - p)).sqrt(),
            );
        }
    }

    #[test]
    fn every_item_is_equally_likely() {
        check_uniform(1, 2);
        check_uniform(2, 3);
        check_uniform(10, 50);
    }

    proptest! {
        #[test]
        fn a_sample_holds_different_items_of_the_stream(
            capacity in 0_usize..20, n in 0_u64..100, seed: u64,
        ) {
            let [first, second] = [(); 2].map(|()| {
                let mut reservoir = Reservoir::new(capacity, seed);
                (0..n).for_each(|item| reservoir.offer(item));
                reservoir
            });
            prop_assert_eq!(&first.sample, &second.sample);
            prop_assert_eq!(first.n_offered, n);
            let mut items = first.sample;
            items.sort_unstable();
            items.dedup();
            prop_assert_eq!(items.len(), capacity.min(n as usize));
            prop_assert!(items.iter().all(|&item| item < n));
        }
    }

    #[test]
    fn weights_are_one_over_the_pairs() {
        assert_eq!(pair_weight(2, 2), 1.0);
        assert_eq!(pair_weight(5, 100), 1.0 / 10.0);
        assert_eq!(pair_weight(100, 5), 1.0 / 10.0);
        assert_eq!(pair_weight(0, 1), 1.0);
    }

    /// With all pairs in the sample, each cluster weighs one: a cluster of 10 (all 45 pairs
    /// incorrect) and three of 2 (correct) have precision 3/48 by pairs, but 3/4 by clusters.
    #[test]
    fn weights_let_clusters_count_alike() {
        let sizes_and_values = [(10_u64, 0.0), (2, 1.0), (2, 1.0), (2, 1.0)];
        let pairs = sizes_and_values.iter().flat_map(|&(size, value)| {
            let n_pairs = (size * (size - 1) / 2) as usize;
            std::iter::repeat_n((pair_weight(size, size), value), n_pairs)
        });
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let unweighted = weighted_mean(pairs.iter().map(|&(_, value)| (1.0, value))).unwrap();
        check_close(unweighted, 3.0 / 48.0, 1e-12);
        check_close(weighted_mean(pairs).unwrap(), 0.75, 1e-12);
    }

    #[test]
    fn no_weight_has_no_mean() {
        assert_eq!(weighted_mean([]), None);
        assert_eq!(weighted_mean([(0.0, 1.0)]), None);
    }
}

mod recall {
    use super::*;

    fn stratum(found_by: u64, n_pairs: u64, sample: Tally) -> Stratum {
        Stratum {
            found_by: Finders(found_by),
            n_pairs,
            sample,
        }
    }

    /// Estimated correct pairs: 1000 x 0.4 by B alone, 2000 x 0.5 by C alone, 100 x 0.9 by both.
    #[test]
    fn strata_count_by_their_size() {
        let strata = [
            stratum(0b01, 1000, tally(40, 50, 10)),
            stratum(0b10, 2000, tally(10, 5, 5)),
            stratum(0b11, 100, tally(9, 1, 0)),
        ];
        check_close(relative_recall(&strata, 0).unwrap(), 490.0 / 1490.0, 1e-12);
        check_close(relative_recall(&strata, 1).unwrap(), 1090.0 / 1490.0, 1e-12);
        assert_eq!(relative_recall(&strata, 2), Some(0.0));
        assert_eq!(relative_recall(&strata, 64), Some(0.0));
    }

    #[test]
    fn unjudged_strata_have_no_recall() {
        assert_eq!(relative_recall(&[], 0), None);
        assert_eq!(
            relative_recall(&[stratum(1, 10, Tally::default())], 0),
            None
        );
        assert_eq!(relative_recall(&[stratum(1, 10, tally(0, 5, 0))], 0), None);
        let strata = [
            stratum(1, 10, tally(1, 0, 0)),
            stratum(2, 0, Tally::default()),
        ];
        assert_eq!(relative_recall(&strata, 0), Some(1.0));
    }

    /// On a planted set with known ground truth, the estimate is within 4 standard errors. Of
    /// 30,000 pairs, found by A alone (every third correct), by B alone (every second) or by both
    /// (all but every tenth), 500 of each stratum are rated. The recall of A is 12,334 of 17,334 =
    /// 0.7115; its standard error, from those of the three precisions, is 0.0098.
    #[test]
    fn estimate_meets_the_truth_on_a_planted_set() {
        let is_correct = |found_by: u64, i: u64| match found_by {
            0b01 => i.is_multiple_of(3),
            0b10 => i.is_multiple_of(2),
            _ => !i.is_multiple_of(10),
        };
        let mut truth = BTreeMap::new();
        let strata: Vec<Stratum> = [0b01, 0b10, 0b11]
            .into_iter()
            .map(|found_by| {
                let mut reservoir = Reservoir::new(500, found_by);
                for i in 0..10_000 {
                    let verdict = if is_correct(found_by, i) {
                        Correct
                    } else {
                        Incorrect
                    };
                    *truth.entry(found_by).or_insert(0.0) +=
                        f64::from(u8::from(verdict == Correct));
                    reservoir.offer(verdict);
                }
                stratum(found_by, 10_000, reservoir.sample.into_iter().collect())
            })
            .collect();
        let recall = (truth[&0b01] + truth[&0b11]) / truth.values().sum::<f64>();
        check_close(relative_recall(&strata, 0).unwrap(), recall, 4.0 * 0.0098);
    }
}

mod agreement {
    use super::*;

    fn judged(counts: &[(Verdict, Verdict, usize)]) -> Vec<(Verdict, Verdict)> {
        let repeat = |&(first, second, n)| std::iter::repeat_n((first, second), n);
        counts.iter().flat_map(repeat).collect()
    }

    /// 35 of 50 agree, 25 would by chance: (35 - 25) / (50 - 25).
    #[test]
    fn textbook_value() {
        let verdicts = judged(&[
            (Correct, Correct, 20),
            (Correct, Incorrect, 5),
            (Incorrect, Correct, 10),
            (Incorrect, Incorrect, 15),
        ]);
        check_close(kappa(&verdicts).unwrap(), 0.4, 1e-12);
    }

    /// Three classes: 9 of 12 agree; chance 4 x 5 + 4 x 4 + 4 x 3 = 48 of 144, hence 4 of 12.
    #[test]
    fn three_classes() {
        let verdicts = judged(&[
            (Correct, Correct, 4),
            (Incorrect, Incorrect, 3),
            (Incorrect, Undecided, 1),
            (Undecided, Undecided, 2),
            (Undecided, Correct, 1),
            (Undecided, Incorrect, 1),
        ]);
        check_close(kappa(&verdicts).unwrap(), (9.0 - 4.0) / (12.0 - 4.0), 1e-12);
    }

    #[test]
    fn extremes() {
        assert_eq!(kappa(&[]), None);
        assert_eq!(kappa(&judged(&[(Correct, Correct, 5)])), None);
        let full = judged(&[(Correct, Correct, 5), (Undecided, Undecided, 5)]);
        assert_eq!(kappa(&full), Some(1.0));
        let opposite = judged(&[(Correct, Incorrect, 5), (Incorrect, Correct, 5)]);
        assert_eq!(kappa(&opposite), Some(-1.0));
    }
}

/// The published numbers of Henzinger 2006 are consistent.
mod published {
    use super::*;

    /// B-sim, pairs, correct, incorrect (0.23 for the misprint 0.25 at 5), undecided.
    const BY_B_SIM: [(u32, f64, [f64; 3]); 5] = [
        (2, 1032.0, [0.24, 0.68, 0.08]),
        (3, 389.0, [0.42, 0.48, 0.10]),
        (4, 240.0, [0.55, 0.36, 0.09]),
        (5, 143.0, [0.71, 0.23, 0.06]),
        (6, 106.0, [0.85, 0.05, 0.10]),
    ];

    #[test]
    fn precision_by_site() {
        let b = weighted_mean([(0.919, 0.34), (0.081, 0.86)]).unwrap();
        check_close(b, 0.382, 5e-4);
        let c = weighted_mean([(0.74, 0.36), (0.26, 0.90)]).unwrap();
        check_close(c, 0.500, 5e-4);
    }

    #[test]
    fn rows_by_b_sim() {
        let n_pairs: f64 = BY_B_SIM.iter().map(|&(_, n_pairs, _)| n_pairs).sum();
        assert_eq!(n_pairs, 1910.0);
        for (b_sim, _, shares) in BY_B_SIM {
            check_close(shares.iter().sum(), 1.0, 1e-12);
            assert!((2..=6).contains(&b_sim));
        }
        for (class, expected) in [0.3847, 0.5304, 0.0849].into_iter().enumerate() {
            let rows = BY_B_SIM.map(|(_, n_pairs, shares)| (n_pairs, shares[class]));
            check_close(weighted_mean(rows).unwrap(), expected, 5e-5);
        }
        let at_least_3 = BY_B_SIM.map(|(b_sim, n, _)| (n, f64::from(u8::from(b_sim >= 3))));
        check_close(weighted_mean(at_least_3).unwrap(), 0.46, 5e-3);
    }

    /// The misprinted row would sum to 1.02.
    #[test]
    fn precision_grows_with_b_sim() {
        assert!(BY_B_SIM.is_sorted_by(|left, right| left.2[0] < right.2[0]));
        check_close(0.71 + 0.25 + 0.06, 1.02, 1e-12);
    }

    /// 0.79 overall with 82% on one site at 0.74 would need 1.018 between sites, which only
    /// rounding explains: 0.785 overall and 0.745 on one site need at least 0.967, published as
    /// 0.97.
    #[test]
    fn combined_precision_between_sites() {
        let overall = |same: f64, cross: f64| weighted_mean([(0.82, same), (0.18, cross)]).unwrap();
        check_close(overall(0.74, 1.018), 0.79, 5e-4);
        assert!(overall(0.745, 0.968) >= 0.785);
        assert!(overall(0.745, 0.966) < 0.785);
    }

    #[test]
    fn derived_figures() {
        check_close(1.0 - 0.50 - 0.23, 0.27, 1e-12);
        check_close(35.5 / 27.4 - 1.0, 0.296, 5e-4);
    }

    /// With 1,910 rated pairs the precision of B is known to about two hundredths.
    #[test]
    fn precision_with_interval() {
        let tally = tally(734, 1013, 163);
        assert_eq!(tally.total(), 1910);
        let interval = tally.interval(Correct);
        check_close(interval.low, 0.363, 1e-3);
        check_close(interval.high, 0.406, 1e-3);
    }
}
