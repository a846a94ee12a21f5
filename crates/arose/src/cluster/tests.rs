//! All clusterings, on real sets whose Jaccard similarities are computed by brute force.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::Threshold;

type Set = BTreeSet<u64>;

fn jaccard(a: &Set, b: &Set) -> f64 {
    let n_common = a.intersection(b).count();
    let n_all = a.union(b).count();
    if n_all == 0 {
        1.0
    } else {
        n_common as f64 / n_all as f64
    }
}

fn similarity(sets: &[Set], a: DocId, b: DocId) -> f64 {
    jaccard(&sets[a.0 as usize], &sets[b.0 as usize])
}

/// All pairs of documents, whatever their similarity.
fn all_pairs(sets: &[Set]) -> Vec<Pair> {
    let ids = (0..sets.len() as u64).flat_map(|a| (0..a).map(move |b| (DocId(a), DocId(b))));
    let pairs = ids.map(|(a, b)| Pair {
        a,
        b,
        similarity: similarity(sets, a, b),
    });
    pairs.collect()
}

fn least_similarity(sets: &[Set], cluster: &Cluster) -> f64 {
    cluster.min_pair_similarity(u64::MAX, 0, |a, b| similarity(sets, a, b))
}

fn tau(value: f64) -> Threshold {
    Threshold::new(value).unwrap()
}

fn docs(cluster: &Cluster) -> Vec<DocId> {
    let members = cluster.members.iter().map(|member| member.doc);
    std::iter::once(cluster.representative)
        .chain(members)
        .collect()
}

/// The windows `{i, ..., i + 9}` that drift apart.
fn windows() -> Vec<Set> {
    (0..=10).map(|i| (i..i + 10).collect()).collect()
}

/// Documents near one another: each contains most of 16 values.
fn near_sets(n_docs: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Set>> {
    let flags = proptest::collection::vec(proptest::bool::weighted(0.9), 16);
    let set = flags.prop_map(|flags| (0..16).filter(|&i| flags[i as usize]).collect());
    proptest::collection::vec(set, n_docs)
}

/// Priorities with ties in every field except the ID.
fn priority(seed: u64) -> impl Fn(DocId) -> Priority + Copy {
    move |id| {
        let mut random = SplitMix::new(seed ^ crate::mix::mix(id.0));
        Priority {
            exact_copies: 1 + random.below(2),
            weight: random.below(2) as f64,
            first_seen: random.below(2),
            id,
        }
    }
}

fn shuffled(pairs: &[Pair], seed: u64) -> Vec<Pair> {
    let mut pairs = pairs.to_vec();
    let mut random = SplitMix::new(seed);
    random.shuffle(&mut pairs);
    for pair in &mut pairs {
        if random.below(2) == 0 {
            std::mem::swap(&mut pair.a, &mut pair.b);
        }
    }
    pairs
}

fn components(n_docs: usize, pairs: &[Pair], tau: Threshold) -> Components {
    let components = Components::new(n_docs).unwrap();
    for pair in pairs.iter().filter(|pair| tau.reached_by(pair.similarity)) {
        components.union(pair.a, pair.b).unwrap();
    }
    components
}

/// Each document's smallest reachable document, by spreading labels until nothing changes.
fn spread_labels(n_docs: usize, edges: &[(u64, u64)]) -> Vec<DocId> {
    let mut labels: Vec<u64> = (0..n_docs as u64).collect();
    loop {
        let before = labels.clone();
        for &(a, b) in edges {
            let least = labels[a as usize].min(labels[b as usize]);
            labels[a as usize] = least;
            labels[b as usize] = least;
        }
        if labels == before {
            return labels.into_iter().map(DocId).collect();
        }
    }
}

mod drift {
    use super::*;

    #[test]
    fn coefficients() {
        let sets = windows();
        for pair in sets.windows(2) {
            assert_eq!(jaccard(&pair[0], &pair[1]), 9.0 / 11.0);
        }
        assert_eq!(jaccard(&sets[0], &sets[9]), 1.0 / 19.0);
        assert_eq!(jaccard(&sets[0], &sets[10]), 0.0);
    }

    #[test]
    fn components_join_all() {
        let components = components(11, &all_pairs(&windows()), tau(0.8));
        assert_eq!(components.count(), 1);
        assert!(components.labels().all(|label| label == DocId(0)));
    }

    #[test]
    fn stars_do_not() {
        let clusters = stars(&all_pairs(&windows()), tau(0.8), Priority::of);
        let groups: Vec<Vec<u64>> = clusters
            .iter()
            .map(|cluster| docs(cluster).iter().map(|doc| doc.0).collect())
            .collect();
        let expected: [&[u64]; 6] = [&[0, 1], &[2, 3], &[4, 5], &[6, 7], &[8, 9], &[10]];
        assert_eq!(groups, expected);
        assert_eq!(clusters[0].min_similarity(), 9.0 / 11.0);
        assert_eq!(clusters[5].min_similarity(), 1.0);
    }

    /// Around the middle of the chain a star takes both neighbours, whose own similarity of 8/12
    /// lies above the bound of 2 x 0.8 - 1 but below the threshold; complete link takes one.
    #[test]
    fn a_star_is_wider_than_a_clique() {
        let middle_first = |id: DocId| Priority {
            weight: f64::from(u8::from(id == DocId(1))),
            ..Priority::of(id)
        };
        let sets = windows();
        let pairs = all_pairs(&sets[..3]);
        let similarity = |a, b| similarity(&sets, a, b);
        let clusters = stars(&pairs, tau(0.8), middle_first);
        assert_eq!(docs(&clusters[0]), [1, 0, 2].map(DocId));
        assert_eq!(
            clusters[0].min_pair_similarity(3, 0, similarity),
            8.0 / 12.0
        );
        let clusters = complete_link(&pairs, tau(0.8), middle_first);
        assert_eq!(docs(&clusters[0]), [1, 0].map(DocId));
        assert_eq!(docs(&clusters[1]), [2].map(DocId));
    }
}

mod priority {
    use super::*;

    #[test]
    fn copies_then_weight_then_age_then_id() {
        let base = Priority::of(DocId(5));
        let ascending = [
            Priority {
                weight: f64::NAN,
                ..base
            },
            Priority {
                weight: -1.0,
                ..base
            },
            Priority {
                id: DocId(6),
                ..base
            },
            base,
            Priority {
                id: DocId(4),
                ..base
            },
            Priority {
                first_seen: 7,
                id: DocId(9),
                ..base
            },
            Priority {
                first_seen: 6,
                id: DocId(9),
                ..base
            },
            Priority {
                weight: 0.5,
                id: DocId(10),
                ..base
            },
            Priority {
                exact_copies: 2,
                weight: -9.0,
                id: DocId(11),
                ..base
            },
        ];
        assert!(ascending.is_sorted_by(|left, right| left < right));
        assert_eq!(
            Priority {
                weight: -0.0,
                ..base
            },
            base
        );
        let nan = Priority {
            weight: f64::NAN,
            ..base
        };
        assert_eq!(nan, nan);
    }
}

mod components_of_random_graphs {
    use super::*;

    fn graph() -> impl Strategy<Value = (usize, Vec<(u64, u64)>)> {
        (1_usize..60).prop_flat_map(|n_docs| {
            let doc = 0..n_docs as u64;
            let edges = proptest::collection::vec((doc.clone(), doc), 0..60);
            edges.prop_map(move |edges| (n_docs, edges))
        })
    }

    proptest! {
        #[test]
        fn labels_are_the_smallest_reachable((n_docs, edges) in graph()) {
            let components = Components::new(n_docs).unwrap();
            let mut n_mergers = 0;
            for &(a, b) in &edges {
                n_mergers += usize::from(components.union(DocId(a), DocId(b)).unwrap());
            }
            let expected = spread_labels(n_docs, &edges);
            // From the deepest up: ascending, each search would shorten the path of the next.
            for (doc, &label) in expected.iter().enumerate().rev() {
                prop_assert_eq!(components.find(DocId(doc as u64)).unwrap(), label);
            }
            prop_assert_eq!(components.labels().collect::<Vec<_>>(), expected);
            prop_assert_eq!(components.count(), n_docs - n_mergers);
        }
    }

    /// Of three documents one thread unites the last with the first, the other the last with the
    /// second, in the same instant: neither link may be lost.
    #[test]
    fn threads_that_collide_lose_no_union() {
        const N_TRIPLES: u64 = 50_000;
        let components = Components::new(3 * N_TRIPLES as usize).unwrap();
        let progress = [AtomicU64::new(0), AtomicU64::new(0)];
        let work = |thread: usize| {
            for triple in 0..N_TRIPLES {
                meet(&progress, thread, triple + 1);
                let first = 3 * triple;
                let last = DocId(first + 2);
                components
                    .union(last, DocId(first + thread as u64))
                    .unwrap();
            }
        };
        thread::scope(|scope| {
            scope.spawn(|| work(0));
            scope.spawn(|| work(1));
        });
        let expected = (0..3 * N_TRIPLES).map(|doc| DocId(doc / 3 * 3));
        assert!(components.labels().eq(expected));
    }

    /// Waits until both threads have reached the same place. Spinning keeps them close; yielding
    /// lets the other run if there is only one core.
    fn meet(progress: &[AtomicU64; 2], thread: usize, place: u64) {
        progress[thread].store(place, SeqCst);
        let mut n_spins = 0;
        while progress[1 - thread].load(SeqCst) < place {
            n_spins += 1;
            if n_spins % 1000 == 0 {
                thread::yield_now();
            }
        }
    }

    /// Long paths and high contention: four threads unite shuffled neighbours of 20,000 documents.
    #[test]
    fn threads_do_not_matter() {
        const N: u64 = 20_000;
        let is_cut = |a: u64| a % 1000 == 999;
        let mut edges: Vec<u64> = (0..N - 1).filter(|&a| !is_cut(a)).collect();
        for n_threads in [1, 2, 4] {
            SplitMix::new(n_threads).shuffle(&mut edges);
            let components = Components::new(N as usize).unwrap();
            let n_mergers: usize = thread::scope(|scope| {
                // Each thread takes every n-th pair, so that all work on the same components.
                let unite = |offset| {
                    let own = edges.iter().skip(offset).step_by(n_threads as usize);
                    own.filter(|&&a| components.union(DocId(a + 1), DocId(a)).unwrap())
                        .count()
                };
                let workers: Vec<_> = (0..n_threads as usize)
                    .map(|offset| scope.spawn(move || unite(offset)))
                    .collect();
                workers
                    .into_iter()
                    .map(|worker| worker.join().unwrap())
                    .sum()
            });
            assert_eq!(n_mergers, edges.len());
            assert_eq!(components.count(), 20);
            let expected = (0..N).map(|doc| DocId(doc / 1000 * 1000));
            assert!(components.labels().eq(expected), "{n_threads} threads");
        }
    }

    #[test]
    fn foreign_documents_and_too_many_are_refused() {
        let components = Components::new(2).unwrap();
        assert!(components.union(DocId(0), DocId(2)).is_err());
        assert!(components.find(DocId(u64::MAX)).is_err());
        assert!(Components::new(u32::MAX as usize + 1).is_err());
        assert_eq!(Components::new(0).unwrap().count(), 0);
    }
}

mod stars_of_real_sets {
    use super::*;

    proptest! {
        /// The bound allows for the rounding of two quotients.
        #[test]
        fn any_two_members_are_alike(sets in near_sets(2..30), t in 10_u32..20, seed: u64) {
            let tau = tau(f64::from(t) / 20.0);
            for cluster in stars(&all_pairs(&sets), tau, priority(seed)) {
                for member in &cluster.members {
                    let real = similarity(&sets, member.doc, cluster.representative);
                    prop_assert_eq!(member.similarity, real);
                    prop_assert!(tau.reached_by(real));
                }
                let least = least_similarity(&sets, &cluster);
                prop_assert!(least >= 2.0 * tau.get() - 1.0 - 1e-12);
                prop_assert!(least <= cluster.min_similarity());
            }
        }

        /// The definition step by step: the remaining document with the highest priority is next.
        #[test]
        fn greedy_by_priority(sets in near_sets(2..20), t in 10_u32..20, seed: u64) {
            let tau = tau(f64::from(t) / 20.0);
            let alike = |a: DocId, b: DocId| tau.reached_by(similarity(&sets, a, b));
            let ids: Vec<DocId> = (0..sets.len() as u64).map(DocId).collect();
            let has_neighbour = |&a: &DocId| ids.iter().any(|&b| a != b && alike(a, b));
            let mut left: BTreeSet<DocId> = ids.iter().copied().filter(has_neighbour).collect();
            let mut expected = BTreeMap::new();
            while let Some(&centre) = left.iter().max_by_key(|&&doc| priority(seed)(doc)) {
                left.remove(&centre);
                let members: Vec<DocId> = left.extract_if(.., |doc| alike(*doc, centre)).collect();
                expected.insert(centre, members);
            }
            let clusters = stars(&all_pairs(&sets), tau, priority(seed));
            let found: BTreeMap<DocId, Vec<DocId>> =
                clusters.iter().map(|c| (c.representative, docs(c)[1..].to_vec())).collect();
            prop_assert_eq!(found, expected);
            prop_assert!(clusters.is_sorted_by_key(|cluster| cluster.representative));
        }

        #[test]
        fn order_of_pairs_does_not_matter(sets in near_sets(2..20), seed: u64) {
            let pairs = all_pairs(&sets);
            let mut twice = shuffled(&pairs, seed);
            twice.extend_from_within(..);
            for method in [stars, complete_link] {
                let expected = method(&pairs, tau(0.8), Priority::of);
                prop_assert_eq!(method(&twice, tau(0.8), Priority::of), expected);
            }
        }

        #[test]
        fn component_by_component_is_the_same(
            sets in near_sets(2..20), t in 15_u32..20, seed: u64,
        ) {
            let tau = tau(f64::from(t) / 20.0);
            let pairs: Vec<Pair> = all_pairs(&sets);
            let components = components(sets.len(), &pairs, tau);
            let mut groups: BTreeMap<DocId, Vec<Pair>> = BTreeMap::new();
            for &pair in &pairs {
                groups.entry(components.find(pair.a).unwrap()).or_default().push(pair);
            }
            // Pairs below the threshold may connect components; they are not links.
            for method in [stars, complete_link] {
                let by_group = groups.values().flat_map(|own| method(own, tau, priority(seed)));
                let mut by_group: Vec<Cluster> = by_group.collect();
                by_group.sort_by_key(|cluster| cluster.representative);
                prop_assert_eq!(by_group, method(&pairs, tau, priority(seed)));
            }
        }
    }

    #[test]
    fn useless_pairs_are_ignored() {
        let pair = |a, b, similarity| Pair {
            a: DocId(a),
            b: DocId(b),
            similarity,
        };
        let pairs = [
            pair(1, 1, 1.0),
            pair(2, 3, f64::NAN),
            pair(4, 5, 0.79),
            pair(7, 6, 0.8),
            pair(6, 7, 0.9),
        ];
        for method in [stars, complete_link] {
            let clusters = method(&pairs, tau(0.8), Priority::of);
            let members = vec![Scored {
                doc: DocId(7),
                similarity: 0.9,
            }];
            assert_eq!(
                clusters,
                [Cluster {
                    representative: DocId(6),
                    members
                }]
            );
            assert!(method(&[], tau(0.8), Priority::of).is_empty());
        }
    }

    #[test]
    fn sampled_diameter() {
        let members = (1..200).map(|doc| Scored {
            doc: DocId(doc),
            similarity: 0.9,
        });
        let cluster = Cluster {
            representative: DocId(0),
            members: members.collect(),
        };
        let mut n_calls = 0;
        let least = cluster.min_pair_similarity(500, 7, |a, b| {
            n_calls += 1;
            assert_ne!(a, b);
            1.0 - a.0.abs_diff(b.0) as f64 / 1000.0
        });
        assert_eq!(n_calls, 500);
        // The widest of 500 pairs spans at least 170 of 199 except for a chance of (1 - 0.023)^500.
        assert!((0.8..0.83).contains(&least), "{least}");
        assert_eq!(cluster.size(), 200);
    }
}

mod complete_link_of_real_sets {
    use super::*;

    /// Agglomeration as in textbooks: compare all groups, merge the best two, start over.
    fn naive(sets: &[Set], tau: Threshold) -> Vec<Vec<u64>> {
        let mut groups: Vec<Vec<u64>> = (0..sets.len() as u64).map(|doc| vec![doc]).collect();
        let least = |a: &[u64], b: &[u64]| {
            let pairs = a
                .iter()
                .flat_map(|&x| b.iter().map(move |&y| (DocId(x), DocId(y))));
            pairs
                .map(|(x, y)| similarity(sets, x, y))
                .fold(1.0, f64::min)
        };
        loop {
            let mut best = None;
            for a in 0..groups.len() {
                for b in a + 1..groups.len() {
                    let least = least(&groups[a], &groups[b]);
                    if tau.reached_by(least) && best.is_none_or(|(most, _, _)| least > most) {
                        best = Some((least, a, b));
                    }
                }
            }
            let Some((_, a, b)) = best else {
                return groups;
            };
            let absorbed = groups.remove(b);
            groups[a].extend(absorbed);
            groups[a].sort_unstable();
        }
    }

    proptest! {
        #[test]
        fn every_pair_is_alike_and_the_groups_are_the_naive_ones(
            sets in near_sets(2..20), t in 10_u32..20, seed: u64,
        ) {
            let tau = tau(f64::from(t) / 20.0);
            let clusters = complete_link(&all_pairs(&sets), tau, priority(seed));
            for cluster in &clusters {
                let least = least_similarity(&sets, cluster);
                prop_assert!(tau.reached_by(least));
                let kept = docs(cluster).into_iter().max_by_key(|&doc| priority(seed)(doc));
                prop_assert_eq!(kept, Some(cluster.representative));
            }
            let listed = |group: &Vec<u64>| {
                clusters.iter().any(|cluster| {
                    let mut docs: Vec<u64> = docs(cluster).iter().map(|doc| doc.0).collect();
                    docs.sort_unstable();
                    docs == *group
                })
            };
            let naive = naive(&sets, tau);
            prop_assert!(naive.iter().filter(|group| group.len() > 1).all(listed), "{naive:?}");
            let n_larger = |sizes: &[usize]| sizes.iter().filter(|&&size| size > 1).count();
            let sizes: Vec<usize> = clusters.iter().map(Cluster::size).collect();
            let naive_sizes: Vec<usize> = naive.iter().map(Vec::len).collect();
            prop_assert_eq!(n_larger(&sizes), n_larger(&naive_sizes));
        }
    }
}

mod online {
    use super::*;

    const TAU: f64 = 0.8;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Insert(u64),
        Remove(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0_u64..20).prop_map(Step::Insert),
            1 => (0_u64..20).prop_map(Step::Remove),
        ];
        proptest::collection::vec(step, 0..80)
    }

    /// Scores every document, live or not, in an arbitrary order.
    fn search(sets: &[Set], doc: DocId) -> Vec<Scored> {
        let others = (0..sets.len() as u64).rev().map(DocId);
        let scored = others.map(|other| Scored {
            doc: other,
            similarity: similarity(sets, other, doc),
        });
        scored.collect()
    }

    fn step(clusters: &mut OnlineClusters, sets: &[Set], seed: u64, step: Step) {
        match step {
            Step::Insert(doc) => {
                let doc = DocId(doc);
                _ = clusters.insert(priority(seed)(doc), &search(sets, doc));
            }
            Step::Remove(doc) => {
                let similarity = |a, b| similarity(sets, a, b);
                _ = clusters.remove(DocId(doc), similarity, |other| search(sets, other));
            }
        }
    }

    /// Each live document in exactly one cluster, at a true similarity that reaches the threshold.
    fn check_invariants(clusters: &OnlineClusters, sets: &[Set], live: &BTreeSet<DocId>) {
        let mut seen = Vec::new();
        for cluster in clusters.clusters() {
            for doc in docs(&cluster) {
                assert_eq!(clusters.representative(doc), Some(cluster.representative));
                seen.push(doc);
            }
            for member in &cluster.members {
                let real = similarity(sets, member.doc, cluster.representative);
                assert_eq!(member.similarity, real);
                assert!(real >= TAU);
            }
        }
        seen.sort_unstable();
        assert!(seen.iter().eq(live), "{seen:?} {live:?}");
    }

    /// The most similar representative, with the smaller ID among equals, by trying all.
    fn expected_placement(clusters: &OnlineClusters, sets: &[Set], doc: DocId) -> Placement {
        let mut placement = Placement::Founded;
        let mut most = 0.0;
        for cluster in clusters.clusters() {
            let similarity = similarity(sets, doc, cluster.representative);
            if similarity >= TAU && similarity > most {
                most = similarity;
                let doc = cluster.representative;
                placement = Placement::Joined(Scored { doc, similarity });
            }
        }
        placement
    }

    proptest! {
        #[test]
        fn invariants_hold_after_every_step(
            sets in near_sets(20..21), steps in steps(), seed: u64,
        ) {
            let mut clusters = OnlineClusters::new(tau(TAU));
            let mut live = BTreeSet::new();
            for &next in &steps {
                step(&mut clusters, &sets, seed, next);
                match next {
                    Step::Insert(doc) => live.insert(DocId(doc)),
                    Step::Remove(doc) => live.remove(&DocId(doc)),
                };
                check_invariants(&clusters, &sets, &live);
            }
        }

        #[test]
        fn a_replay_gives_the_same_clusters(
            sets in near_sets(20..21), steps in steps(), seed: u64,
        ) {
            let [mut first, mut second] = [(); 2].map(|()| OnlineClusters::new(tau(TAU)));
            steps.iter().for_each(|&next| step(&mut first, &sets, seed, next));
            steps.iter().for_each(|&next| step(&mut second, &sets, seed, next));
            prop_assert_eq!(first, second);
        }

        #[test]
        fn a_new_document_joins_the_best(sets in near_sets(20..21), steps in steps(), seed: u64) {
            let mut clusters = OnlineClusters::new(tau(TAU));
            steps.iter().for_each(|&next| step(&mut clusters, &sets, seed, next));
            for doc in (0..20).map(DocId).filter(|&doc| clusters.representative(doc).is_none()) {
                let expected = expected_placement(&clusters, &sets, doc);
                let mut trial = clusters.clone();
                let placement = trial.insert(priority(seed)(doc), &search(&sets, doc)).unwrap();
                prop_assert_eq!(placement, expected);
            }
        }

        #[test]
        fn the_greatest_priority_takes_over(
            sets in near_sets(20..21), steps in steps(), seed: u64,
        ) {
            let mut clusters = OnlineClusters::new(tau(TAU));
            steps.iter().for_each(|&next| step(&mut clusters, &sets, seed, next));
            for cluster in clusters.clusters() {
                let members = &docs(&cluster)[1..];
                let heir = members.iter().copied().max_by_key(|&doc| priority(seed)(doc));
                let mut trial = clusters.clone();
                let similarity = |a, b| similarity(&sets, a, b);
                let removed = cluster.representative;
                let removal = trial.remove(removed, similarity, |doc| search(&sets, doc)).unwrap();
                prop_assert_eq!(removal.promoted, heir);
                let strangers = members.iter().filter(|&&doc| {
                    heir.is_some_and(|heir| doc != heir && similarity(doc, heir) < TAU)
                });
                let strangers: BTreeSet<DocId> = strangers.copied().collect();
                let replaced = removal.replaced.iter().map(|&(doc, _)| doc);
                prop_assert_eq!(replaced.collect::<BTreeSet<_>>(), strangers);
            }
        }
    }

    /// 1 and 3 are similar to 2 but not to each other; when 2 is removed, 1 takes over and 3 founds
    /// a cluster.
    #[test]
    fn a_stranger_to_the_heir_is_placed_anew() {
        let sets = windows();
        let mut clusters = OnlineClusters::new(tau(TAU));
        for doc in [2, 1, 3] {
            clusters
                .insert(Priority::of(DocId(doc)), &search(&sets, DocId(doc)))
                .unwrap();
        }
        assert_eq!(clusters.clusters().count(), 1);
        let similarity = |a, b| similarity(&sets, a, b);
        let removal = clusters
            .remove(DocId(2), similarity, |doc| search(&sets, doc))
            .unwrap();
        assert_eq!(removal.promoted, Some(DocId(1)));
        assert_eq!(removal.replaced, [(DocId(3), Placement::Founded)]);
    }

    #[test]
    fn the_same_document_twice_and_an_unknown_one_are_refused() {
        let mut clusters = OnlineClusters::new(tau(TAU));
        let doc = Priority::of(DocId(1));
        assert_eq!(clusters.insert(doc, &[]), Ok(Placement::Founded));
        assert!(clusters.insert(doc, &[]).is_err());
        assert!(
            clusters
                .remove(DocId(2), |_, _| 1.0, |_| Vec::new())
                .is_err()
        );
        assert!(
            clusters
                .remove(DocId(1), |_, _| 1.0, |_| Vec::new())
                .is_ok()
        );
        assert_eq!(clusters.clusters().count(), 0);
    }
}
