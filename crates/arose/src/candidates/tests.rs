use super::*;
use crate::feature::mega_shingles;
use crate::mix::SplitMix;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Candidate pairs without a cap, by comparing all entries with each other.
fn candidate_pairs_by_comparison(entries: &[(u64, DocId)]) -> Vec<Candidate> {
    let mut pairs = Vec::new();
    for (i, &(key, doc)) in entries.iter().enumerate() {
        let same_key = entries[i + 1..].iter().filter(|other| other.0 == key);
        pairs.extend(same_key.filter_map(|other| Candidate::new(doc, other.1)));
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn pair(a: u64, b: u64) -> Candidate {
    Candidate {
        a: DocId(a),
        b: DocId(b),
    }
}

/// Vassilvitskii's table of three super-shingles.
const TABLE: [(DocId, [u64; 3]); 4] = [
    (DocId(1), [1011, 6543, 7327]),
    (DocId(2), [4523, 5498, 8754]),
    (DocId(3), [5487, 5498, 8754]),
    (DocId(4), [8766, 1258, 6255]),
];

#[test]
fn vassilvitskiis_table() {
    let second_column: Vec<u64> = sorted_table(&TABLE, 1)
        .iter()
        .map(|entry| entry.1.0)
        .collect();
    assert_eq!(second_column, [4, 2, 3, 1]);
    let found = similar_pairs(&TABLE, 2, DEFAULT_CAP).unwrap();
    assert_eq!(
        found,
        SimilarPairs {
            pairs: vec![(pair(2, 3), 2)],
            long_runs: vec![]
        }
    );
    assert_eq!(similar_pairs(&TABLE, 3, DEFAULT_CAP).unwrap().pairs, []);
}

/// A bucket of five gives ten pairs, not the four pairs of neighbours.
#[test]
fn runs_yield_all_pairs() {
    let entries: Vec<(u64, DocId)> = (0..5).map(|doc| (9, DocId(doc))).collect();
    assert_eq!(candidate_pairs(entries.clone(), 5).pairs.len(), 10);
    let capped = candidate_pairs(entries, 4);
    assert_eq!(
        capped.pairs,
        [pair(0, 1), pair(0, 2), pair(0, 3), pair(0, 4)]
    );
    assert_eq!(
        capped.long_runs,
        [LongRun {
            key: 9,
            n_docs: 5,
            n_pairs_lost: 6
        }]
    );
}

#[test]
fn the_same_document_is_no_pair() {
    let entries = vec![(1, DocId(4)), (1, DocId(4)), (2, DocId(4))];
    assert_eq!(candidate_pairs(entries, 1), Candidates::default());
    assert_eq!(Candidate::new(DocId(4), DocId(4)), None);
    assert_eq!(Candidate::new(DocId(5), DocId(4)), Some(pair(4, 5)));
}

#[test]
fn empty_tables() {
    assert_eq!(candidate_pairs(vec![], 0), Candidates::default());
    assert_eq!(common_values(vec![], 0), CommonValues::default());
    let no_rows: [(DocId, [u64; 2]); 0] = [];
    assert_eq!(similar_pairs(&no_rows, 1, 10), Ok(SimilarPairs::default()));
    assert_eq!(sorted_table(&TABLE, 3), []);
}

#[test]
fn bad_rows_are_refused() {
    assert!(similar_pairs(&TABLE, 0, 10).is_err());
    assert!(similar_pairs(&TABLE, 4, 10).is_err());
    let uneven = [(DocId(1), vec![1, 2]), (DocId(2), vec![1])];
    assert!(similar_pairs(&uneven, 1, 10).is_err());
    let twice = [(DocId(1), vec![1]), (DocId(1), vec![2])];
    assert!(similar_pairs(&twice, 1, 10).is_err());
}

/// The boilerplate value 0 is in every document and is ignored at cap 2.
#[test]
fn common_values_make_no_pairs_but_count() {
    let sets: [&[u64]; 4] = [&[0, 1, 2], &[0, 1, 3], &[0], &[0, 4]];
    let found = common_values(entries_of(&sets), 2);
    let expected = PairCount {
        pair: pair(0, 1),
        n_common: 2,
        n_common_ignored: 1,
        n_union: 4,
    };
    assert_eq!(found.pairs, [expected]);
    assert_eq!(found.pairs[0].jaccard(), 0.5);
    assert_eq!(
        found.ignored,
        [LongRun {
            key: 0,
            n_docs: 4,
            n_pairs_lost: 6
        }]
    );
    let ignored: Vec<(usize, usize)> = found
        .docs
        .iter()
        .map(|count| (count.n_values, count.n_ignored))
        .collect();
    assert_eq!(ignored, [(3, 1), (3, 1), (1, 1), (2, 1)]);
    // Half is not more than half.
    let fallback: Vec<bool> = found.docs.iter().map(DocCount::needs_fallback).collect();
    assert_eq!(fallback, [false, false, true, false]);
    let reaching = |value| found.similar(Threshold::new(value).unwrap()).count();
    assert_eq!((reaching(0.5), reaching(0.51)), (1, 0));
}

/// The default cap is inclusive: 1,000 documents with one value are expanded, 1,001 are not.
#[test]
fn a_thousand_documents_are_still_expanded() {
    let entries: Vec<(u64, DocId)> = (0..1000).map(|doc| (1, DocId(doc))).collect();
    let found = common_values(entries.clone(), DEFAULT_CAP);
    assert_eq!(found.pairs.len(), 499_500);
    let more = entries.into_iter().chain([(1, DocId(1000))]).collect();
    let found = common_values(more, DEFAULT_CAP);
    assert!(found.pairs.is_empty());
    assert!(found.docs.iter().all(DocCount::needs_fallback));
    assert_eq!(found.ignored[0].n_pairs_lost, 500_500);
}

fn entries_of(sets: &[impl AsRef<[u64]>]) -> Vec<(u64, DocId)> {
    let docs = (0..).map(DocId).zip(sets);
    docs.flat_map(|(doc, set)| set.as_ref().iter().map(move |&value| (value, doc)))
        .collect()
}

fn sets() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(0..10_u64, 0..7), 0..10)
}

/// The number of sets that contain each of the values 0..10.
fn holders(sets: &[BTreeSet<u64>]) -> Vec<usize> {
    (0..10)
        .map(|value| sets.iter().filter(|set| set.contains(&value)).count())
        .collect()
}

proptest! {
    #[test]
    fn pairs_equal_brute_force(sets in sets(), seed: u64) {
        let mut entries = entries_of(&sets);
        let expected = candidate_pairs_by_comparison(&entries);
        let sorted = candidate_pairs(entries.clone(), DEFAULT_CAP);
        SplitMix::new(seed).shuffle(&mut entries);
        let shuffled = candidate_pairs(entries, DEFAULT_CAP);
        prop_assert_eq!(&sorted, &shuffled);
        prop_assert_eq!(sorted, Candidates { pairs: expected, long_runs: vec![] });
    }

    /// A star loses pairs but no document: every document that had a partner still has one.
    #[test]
    fn capped_runs_keep_every_document(sets in sets(), cap in 0_usize..5, seed: u64) {
        let mut entries = entries_of(&sets);
        let all: BTreeSet<Candidate> =
            candidate_pairs_by_comparison(&entries).into_iter().collect();
        let capped = candidate_pairs(entries.clone(), cap);
        SplitMix::new(seed).shuffle(&mut entries);
        prop_assert_eq!(&capped, &candidate_pairs(entries, cap));
        let kept: BTreeSet<Candidate> = capped.pairs.iter().copied().collect();
        prop_assert!(kept.is_subset(&all));
        let members = |pairs: &BTreeSet<Candidate>| -> BTreeSet<DocId> {
            pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect()
        };
        prop_assert_eq!(members(&kept), members(&all));
        let n_lost: u64 = capped.long_runs.iter().map(|run| run.n_pairs_lost).sum();
        prop_assert!((all.len() - kept.len()) as u64 <= n_lost);
    }

    /// The prefix rule, mega-shingles and comparing all pairs find the same pairs.
    #[test]
    fn similar_pairs_equal_brute_force(
        rows in prop::collection::vec(prop::collection::vec(0..3_u64, 6), 0..12),
        r in 1_usize..=6,
    ) {
        // Like real super-shingles, these differ between positions.
        let rows: Vec<(DocId, Vec<u64>)> = (0..).map(DocId).zip(rows).map(|(doc, row)| {
            (doc, (0..).zip(row).map(|(j, value)| 10 * j + value).collect())
        }).collect();
        let mut expected = Vec::new();
        for (i, (a, x)) in rows.iter().enumerate() {
            for (b, y) in &rows[i + 1..] {
                if b_sim(x, y) >= r {
                    expected.push((Candidate { a: *a, b: *b }, b_sim(x, y)));
                }
            }
        }
        let mut keys = Vec::new();
        for (doc, row) in &rows {
            keys.extend(mega_shingles(row, r).unwrap().into_iter().map(|key| (key, *doc)));
        }
        let by_keys = candidate_pairs(keys, DEFAULT_CAP).pairs;
        prop_assert_eq!(by_keys, expected.iter().map(|found| found.0).collect::<Vec<_>>());
        prop_assert_eq!(similar_pairs(&rows, r, DEFAULT_CAP).unwrap().pairs, expected);
    }

    #[test]
    fn common_values_equal_brute_force(sets in sets(), cap in 0_usize..8, seed: u64) {
        let mut entries = entries_of(&sets);
        SplitMix::new(seed).shuffle(&mut entries);
        let found = common_values(entries, cap);

        let sets: Vec<BTreeSet<u64>> =
            sets.into_iter().map(|set| set.into_iter().collect()).collect();
        let holders = holders(&sets);
        let is_ignored = |value: &&u64| holders[**value as usize] > cap;
        let docs: Vec<DocCount> = (0..).map(DocId).zip(&sets).filter(|(_, set)| !set.is_empty())
            .map(|(doc, set)| DocCount {
                doc, n_values: set.len(), n_ignored: set.iter().filter(is_ignored).count(),
            })
            .collect();
        let mut pairs = Vec::new();
        for (i, x) in sets.iter().enumerate() {
            for (j, y) in sets.iter().enumerate().skip(i + 1) {
                let n_common = x.intersection(y).count();
                let n_common_ignored = x.intersection(y).filter(is_ignored).count();
                if n_common > n_common_ignored {
                    let n_union = x.union(y).count();
                    let pair = pair(i as u64, j as u64);
                    pairs.push(PairCount { pair, n_common, n_common_ignored, n_union });
                }
            }
        }
        prop_assert_eq!(found.docs, docs);
        prop_assert_eq!(found.pairs, pairs);
        let ignored: Vec<(u64, usize)> = (0..).zip(holders.iter().copied())
            .filter(|&(_, n_docs)| n_docs > cap && n_docs > 0).collect();
        let reported: Vec<(u64, usize)> =
            found.ignored.iter().map(|run| (run.key, run.n_docs)).collect();
        prop_assert_eq!(reported, ignored);
    }
}
