//! Complete-link clusters: all members are similar to each other.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use super::graph::Graph;
use super::{Cluster, Pair, Priority, Scored};
use crate::{DocId, Threshold};

/// Divides the documents of `pairs` into groups in which every pair reaches `tau`, by ascending ID
/// of the representative.
///
/// The method is agglomerative. Every document starts alone. Repeatedly, the two groups whose least
/// similar pair is most similar are merged (ties: the smaller IDs), as long as that pair reaches
/// `tau`. Pairs that are not given do not reach it. The document with the highest priority
/// represents its group.
///
/// Each merge visits the links of both groups: up to `O(n m log m)` time for `n` documents and `m`
/// pairs, `O(m)` memory. Suitable for components of up to a few thousand documents; use
/// [`stars`](super::stars()) for larger ones.
///
/// ```
/// use arose::cluster::{Pair, Priority, complete_link};
/// use arose::{DocId, Threshold};
/// let pair = |a, b, similarity| Pair { a: DocId(a), b: DocId(b), similarity };
/// let pairs = [pair(0, 1, 0.8), pair(1, 2, 0.9)];
/// let clusters = complete_link(&pairs, Threshold::new(0.8).unwrap(), Priority::of);
/// let sizes: Vec<usize> = clusters.iter().map(|cluster| cluster.size()).collect();
/// assert_eq!(sizes, [1, 2]);
/// ```
pub fn complete_link(
    pairs: &[Pair],
    tau: Threshold,
    priority: impl Fn(DocId) -> Priority,
) -> Vec<Cluster> {
    let graph = Graph::new(pairs, tau);
    let groups = Agglomeration::new(&graph).run();
    let to_cluster = |group: Vec<usize>| cluster(&graph, &group, &priority);
    let mut clusters: Vec<Cluster> = groups.into_iter().filter_map(to_cluster).collect();
    clusters.sort_unstable_by_key(|cluster| cluster.representative);
    clusters
}

/// Chooses the representative of a group and scores the others; `None` for an empty group.
fn cluster(
    graph: &Graph,
    group: &[usize],
    priority: &impl Fn(DocId) -> Priority,
) -> Option<Cluster> {
    let centre = *group.iter().max_by_key(|&&doc| priority(graph.docs[doc]))?;
    let near = graph.neighbours(centre).iter();
    let members = near
        .filter(|link| group.binary_search(&link.to).is_ok())
        .map(|link| Scored {
            doc: graph.docs[link.to],
            similarity: link.similarity,
        });
    Some(Cluster {
        representative: graph.docs[centre],
        members: members.collect(),
    })
}

/// The current groups. A group is identified by the number of its smallest document.
struct Agglomeration {
    groups: Vec<Vec<usize>>,
    /// For each group, the groups with which it may merge, and the smallest similarity between the
    /// two.
    links: Vec<BTreeMap<usize, Least>>,
    /// Merges to try, best first. An entry is outdated if `links` has another value.
    queue: BinaryHeap<(Least, Reverse<(usize, usize)>)>,
}

/// A smallest similarity, in the total order of numbers.
#[derive(Clone, Copy)]
struct Least(f64);

impl Agglomeration {
    fn new(graph: &Graph) -> Self {
        let docs = 0..graph.docs.len();
        let links_of = |doc| {
            let links = graph.neighbours(doc).iter();
            links
                .map(|link| (link.to, Least(link.similarity)))
                .collect()
        };
        let links: Vec<BTreeMap<usize, Least>> = docs.clone().map(links_of).collect();
        let queue = links.iter().enumerate().flat_map(|(a, near)| {
            let above = near.range(a..);
            above.map(move |(&b, &least)| (least, Reverse((a, b))))
        });
        Self {
            groups: docs.map(|doc| vec![doc]).collect(),
            queue: queue.collect(),
            links,
        }
    }

    /// Merges until no merge is possible; absorbed groups remain as empty ones.
    fn run(mut self) -> Vec<Vec<usize>> {
        while let Some((least, Reverse((a, b)))) = self.queue.pop() {
            if self.links[a].get(&b) == Some(&least) {
                self.merge(a, b);
            }
        }
        self.groups
            .iter_mut()
            .for_each(|group| group.sort_unstable());
        self.groups
    }

    /// Merges group `b` into `a`, the smaller. Groups linked to both stay linked, with the smaller
    /// similarity.
    fn merge(&mut self, a: usize, b: usize) {
        let absorbed = std::mem::take(&mut self.groups[b]);
        self.groups[a].extend(absorbed);
        let near_a = std::mem::take(&mut self.links[a]);
        let near_b = std::mem::take(&mut self.links[b]);
        for &other in near_a.keys().chain(near_b.keys()) {
            self.links[other].remove(&a);
            self.links[other].remove(&b);
        }
        for (other, to_a) in near_a {
            if let Some(&to_b) = near_b.get(&other) {
                self.link(a, other, to_a.min(to_b));
            }
        }
    }

    fn link(&mut self, a: usize, b: usize, least: Least) {
        self.links[a].insert(b, least);
        self.links[b].insert(a, least);
        self.queue.push((least, Reverse((a.min(b), a.max(b)))));
    }
}

impl Ord for Least {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Least {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Least {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Least {}
