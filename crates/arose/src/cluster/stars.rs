//! Star clusters: every member is similar to the one document that is kept.

use super::graph::Graph;
use super::{Cluster, Pair, Priority, Scored};
use crate::{DocId, Threshold};

/// Divides the documents of `pairs` into stars, by ascending ID of the representative.
///
/// The method is greedy. The document with the highest priority becomes a representative and takes
/// all its neighbours at `tau` or above. Then the remaining document with the highest priority does
/// the same, until no document remains. A document near several representatives therefore belongs
/// to the first of them, and two representatives are never neighbours. Any two members of a star
/// have a Jaccard similarity of at least `2 tau - 1`.
///
/// Documents without a pair at `tau` or above are not listed; they are alone. Documents left alone
/// because representatives took all their neighbours are listed, with no members. The result does
/// not depend on the order of the pairs, and is the same if components are processed one by one.
///
/// Time `O(m log m)` for `m` pairs, memory about 80 bytes per pair.
///
/// ```
/// use arose::cluster::{Pair, Priority, stars};
/// use arose::{DocId, Threshold};
/// // A chain: 0 - 1 - 2. Document 2 is not known to be like 0, so it stays.
/// let pairs = [(0, 1), (1, 2)].map(|(a, b)| Pair { a: DocId(a), b: DocId(b), similarity: 0.9 });
/// let clusters = stars(&pairs, Threshold::new(0.8).unwrap(), Priority::of);
/// let kept: Vec<u64> = clusters.iter().map(|cluster| cluster.representative.0).collect();
/// assert_eq!(kept, [0, 2]);
/// ```
pub fn stars(pairs: &[Pair], tau: Threshold, priority: impl Fn(DocId) -> Priority) -> Vec<Cluster> {
    let graph = Graph::new(pairs, tau);
    let mut is_taken = vec![false; graph.docs.len()];
    let mut clusters = Vec::new();
    for centre in graph.by_priority(priority) {
        // A centre needs no mark: its star takes all its neighbours, so no other centre can take
        // it.
        if !is_taken[centre] {
            clusters.push(star(&graph, centre, &mut is_taken));
        }
    }
    clusters.sort_unstable_by_key(|cluster| cluster.representative);
    clusters
}

/// Returns the star around `centre`: all its neighbours that are still free.
fn star(graph: &Graph, centre: usize, is_taken: &mut [bool]) -> Cluster {
    let free = graph.neighbours(centre).iter();
    let members = free
        .filter(|link| !std::mem::replace(&mut is_taken[link.to], true))
        .map(|link| Scored {
            doc: graph.docs[link.to],
            similarity: link.similarity,
        });
    Cluster {
        representative: graph.docs[centre],
        members: members.collect(),
    }
}
