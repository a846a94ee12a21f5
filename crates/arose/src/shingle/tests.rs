use super::*;
use crate::mix::SplitMix;
use crate::token::Tokenizer;
use proptest::prelude::*;

const ROSE: &str = "a rose is a rose is a rose";
const SHORT_ROSE: &str = "a rose is a rose";

fn shingler(w: usize) -> Shingler {
    Shingler::new(NonZeroUsize::new(w).unwrap())
}

fn set(text: &str, w: usize) -> ShingleSet {
    shingler(w).set(&Tokenizer::default().tokens(text).fingerprints)
}

/// The published values use Rabin fingerprints as tokens.
#[test]
fn rose_fingerprints() {
    let rabin = Rabin::default();
    let tokens: Vec<u64> = ROSE
        .split(' ')
        .map(|t| rabin.fingerprint(t.as_bytes()))
        .collect();
    let [a, b, c] = [
        0xF6BF_E765_9469_F7E3,
        0x7B38_7842_BA71_5615,
        0xBE6C_AA67_AA21_C97C,
    ];
    let mut windows = Vec::new();
    shingler(4).shingles_into(&tokens, &mut windows);
    assert_eq!(windows, [a, b, c, a, b]);
    assert_eq!(shingler(4).shingles_plain(&tokens), [a, b, c, a, b]);
    assert_eq!(shingler(4).set(&tokens).as_slice(), [b, c, a]);
}

#[test]
fn rose_resemblance() {
    let expected = [1.0, 1.0, 1.0, 2.0 / 3.0, 1.0 / 3.0, 0.0];
    for (w, expected) in (1..).zip(expected) {
        assert_eq!(
            jaccard(&set(SHORT_ROSE, w), &set(ROSE, w)),
            Some(expected),
            "w = {w}"
        );
    }
}

#[test]
fn rose_counted() {
    let counted = |text, w| shingler(w).counted(&Tokenizer::default().tokens(text).fingerprints);
    for (w, expected) in [(4, 2.0 / 5.0), (3, 1.0 / 2.0)] {
        assert_eq!(
            counted(SHORT_ROSE, w).jaccard(&counted(ROSE, w)),
            Some(expected),
            "w = {w}"
        );
    }
}

#[test]
fn midnight() {
    let a = set("Once upon a midnight dreary, while I pondered", 3);
    let b = set("Once upon a time, while I pondered", 3);
    assert_eq!((a.len(), b.len(), a.n_common(&b)), (6, 5, 2));
    assert_eq!(jaccard(&a, &b), Some(2.0 / 9.0));
    assert_eq!(containment(&a, &b), Some(1.0 / 3.0));
    assert_eq!(containment(&b, &a), Some(2.0 / 5.0));
}

#[test]
fn implied_intersection() {
    let common = implied_common(0.4, 600, 800);
    assert!((common / 600.0 - 2.0 / 3.0).abs() < 1e-12);
}

/// Columns 011010 and 101011 of the lecture: two rows in common, five in the union.
#[test]
fn columns_of_bits() {
    let column = |rows: &str| {
        let rows = rows.bytes().zip(0..).filter(|&(bit, _)| bit == b'1');
        ShingleSet::from_occurrences(rows.map(|(_, row)| row).collect())
    };
    assert_eq!(
        jaccard(&column("011010"), &column("101011")),
        Some(2.0 / 5.0)
    );
}

#[test]
fn short_and_empty_documents() {
    let (none, one, two) = (set("", 8), set("one rose", 8), set("two roses", 8));
    assert_eq!((none.len(), one.len(), two.len()), (0, 1, 1));
    assert_eq!(jaccard(&none, &none), None);
    assert_eq!(containment(&none, &one), None);
    assert_eq!(jaccard(&none, &one), Some(0.0));
    assert_eq!(jaccard(&one, &one), Some(1.0));
    assert_eq!(jaccard(&one, &two), Some(0.0));
    assert!(is_short(15, FEATURE_W) && !is_short(16, FEATURE_W));
}

/// A short shingle includes its length: three tokens under w = 8 are not a window under w = 3.
#[test]
fn short_shingles_are_of_their_own_kind() {
    assert_eq!(
        jaccard(&set("a rose is", 8), &set("a rose is", 3)),
        Some(0.0)
    );
}

#[test]
fn short_texts_can_be_dropped() {
    let shingler = Shingler {
        short: ShortText::Drop,
        ..shingler(3)
    };
    assert!(shingler.set(&[1, 2]).is_empty());
    assert!(shingler.shingles_plain(&[1, 2]).is_empty());
    assert_eq!(shingler.set(&[1, 2, 3]).len(), 1);
}

#[test]
fn unspaced_documents_may_use_longer_shingles() {
    let eight = FEATURE_W;
    let length = ShingleLength {
        w: eight,
        unspaced_w: NonZeroUsize::new(12).unwrap(),
    };
    assert_eq!(
        length.of(&Tokenizer::default().tokens("東京の空")).get(),
        12
    );
    assert_eq!(
        length
            .of(&Tokenizer::default().tokens("the sky of 東京"))
            .get(),
        8
    );
    assert_eq!(
        ShingleLength::uniform(eight).of(&Tokenizer::default().tokens("東京")),
        eight
    );
}

/// The effect of edits on the similarity of a text of 1,000 distinct words, compared with the
/// formulas and numbers of the literature.
mod edits {
    use super::*;

    const N: u64 = 1000;
    const W: usize = 8;

    #[track_caller]
    fn check(edited: &[u64], formula: f64, published: f64, digits: i32) {
        let original: Vec<u64> = (0..N).collect();
        let exact = jaccard(&shingler(W).set(&original), &shingler(W).set(edited)).unwrap();
        assert!((exact - formula).abs() < 1e-12, "{exact} is not {formula}");
        let half_a_digit = 0.5 * 10_f64.powi(-digits);
        assert!(
            (exact - published).abs() <= half_a_digit,
            "{exact} is not {published}"
        );
    }

    #[test]
    fn isolated_words_changed() {
        for (c, published) in [(5, 0.9226), (6, 0.9078), (7, 0.8932)] {
            let edited: Vec<u64> = (0..N)
                .map(|i| {
                    if i % 100 == 50 && i / 100 < c {
                        N + i
                    } else {
                        i
                    }
                })
                .collect();
            let (all, touched) = ((N as usize - W + 1) as f64, (W as u64 * c) as f64);
            check(&edited, (all - touched) / (all + touched), published, 4);
        }
    }

    #[test]
    fn block_deleted() {
        // A block of 86 words brings the similarity to 0.90; the 50 to 60 words sometimes quoted
        // do not.
        for (d, published) in [(55, 0.931), (86, 0.900), (50, 0.936), (60, 0.926)] {
            let edited: Vec<u64> = (0..300).chain(300 + d..N).collect();
            let all = (N as usize - W + 1) as f64;
            let w = W as f64;
            check(
                &edited,
                (all - d as f64 - w + 1.0) / (all + w - 1.0),
                published,
                3,
            );
        }
    }

    #[test]
    fn block_replaced() {
        let d = 45;
        let edited: Vec<u64> = (0..300).chain(N..N + d).chain(300 + d..N).collect();
        let all = (N as usize - W + 1) as f64;
        let touched = (d as usize + W - 1) as f64;
        check(&edited, (all - touched) / (all + touched), 0.9005, 4);
    }
}

fn small_set() -> impl Strategy<Value = ShingleSet> {
    prop::collection::vec(0_u64..30, 1..20).prop_map(ShingleSet::from_occurrences)
}

proptest! {
    #[test]
    fn fast_equals_plain(
        seed in 0_u64..4,
        w in 1_usize..12,
        tokens: Vec<u64>,
        repeat in 1_usize..4,
    ) {
        let shingler = Shingler::with_rabin(NonZeroUsize::new(w).unwrap(), Rabin::from_seed(seed));
        let tokens = tokens.repeat(repeat);
        let mut fast = vec![42];
        shingler.shingles_into(&tokens, &mut fast);
        prop_assert_eq!(&fast[1..], shingler.shingles_plain(&tokens));
        let n = tokens.len();
        let expected = if n == 0 { 0 } else { (n + 1).saturating_sub(w).max(1) };
        prop_assert_eq!(fast.len() - 1, expected);
    }

    #[test]
    fn set_operations_equal_hash_sets(a in small_set(), b in small_set()) {
        use std::collections::BTreeSet;
        let [left, right]: [BTreeSet<u64>; 2] =
            [&a, &b].map(|set| set.as_slice().iter().copied().collect());
        let common = left.intersection(&right).count();
        prop_assert_eq!(a.n_common(&b), common);
        let n_union = left.union(&right).count();
        prop_assert_eq!(jaccard(&a, &b), Some(common as f64 / n_union as f64));
        prop_assert_eq!(containment(&a, &b), Some(common as f64 / left.len() as f64));
        let implied = implied_common(jaccard(&a, &b).unwrap(), a.len(), b.len());
        prop_assert!((implied - common as f64).abs() < 1e-9);
    }

    #[test]
    fn distance_is_a_metric(a in small_set(), b in small_set(), c in small_set()) {
        let distance = |a, b| 1.0 - jaccard(a, b).unwrap();
        prop_assert!(distance(&a, &c) <= distance(&a, &b) + distance(&b, &c) + 1e-12);
        prop_assert_eq!(distance(&a, &b), distance(&b, &a));
        prop_assert_eq!(distance(&a, &b) == 0.0, a == b);
    }

    #[test]
    fn counted_is_sum_of_minima_over_sum_of_maxima(
        a in prop::collection::vec(0_u64..6, 1..20),
        b in prop::collection::vec(0_u64..6, 1..20),
    ) {
        let count = |tokens: &[u64], value| tokens.iter().filter(|&&t| t == value).count();
        let sums = (0..6).fold((0, 0), |(min, max), value| {
            let (in_a, in_b) = (count(&a, value), count(&b, value));
            (min + in_a.min(in_b), max + in_a.max(in_b))
        });
        let [counted_a, counted_b] = [&a, &b].map(|tokens| shingler(1).counted(tokens));
        let exact = sums.0 as f64 / sums.1 as f64;
        prop_assert_eq!(counted_a.jaccard(&counted_b), Some(exact));
        let [labels_a, labels_b] =
            [counted_a, counted_b].map(|counted| ShingleSet::from_occurrences(counted.labels()));
        prop_assert_eq!(jaccard(&labels_a, &labels_b), Some(exact));
    }
}

/// Shuffling the tokens preserves the words but not the shingles.
#[test]
fn order_matters() {
    let tokens: Vec<u64> = (0..500).collect();
    let mut shuffled = tokens.clone();
    SplitMix::new(1).shuffle(&mut shuffled);
    let [a, b] = [&tokens, &shuffled].map(|tokens| shingler(2).set(tokens));
    assert!(jaccard(&a, &b).unwrap() < 0.05);
}
