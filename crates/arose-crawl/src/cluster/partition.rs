//! Partitions: which agent crawls which sites?
//!
//! *Question.* Agents join and leave while a crawl runs. Every site must have one owner that all
//! agents agree on without asking each other, and a new agent should move no more than its part.
//!
//! *Idea.* A hash of the registrable domain selects one of 256 partitions, so all hosts of a site
//! have the same owner. Every agent has a score for every partition, `-w / ln(u)` with its weight
//! `w` and a hash `u` between 0 and 1, and the highest score wins: weighted rendezvous hashing
//! (Thaler & Ravishankar, 1998). An agent that joins takes the partitions it has the highest score
//! for, and no other partition moves. A cap on the number of partitions per agent keeps loads
//! equal: scores are taken from the highest on, and an agent with as many partitions as its cap
//! gets no further ones.
//!
//! Caps cost movement: with a ninth agent the caps of eight others fall, and computed from nothing
//! 35 partitions change owners on average, where 28 are the part of the new one. So agents keep
//! what they have up to their new parts, and only the rest is assigned by score.
//!
//! *Cost.* 256 hashes per agent, when the set of agents changes. *Error.* Without caps, the largest
//! of 8 agents has 1.26 times the mean; with caps at most one partition more than its part.

use xxhash_rust::xxh3::xxh3_64;

/// Number of partitions of a crawl.
pub(crate) const N_PARTITIONS: usize = 256;

/// An agent that can own partitions.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Its name, which decides which partitions it gets.
    pub(crate) name: String,
    /// How much of the crawl it takes, relative to the others. Nothing at 0.
    pub(crate) weight: f64,
}

/// Returns the partition of a site, which is a registrable domain or an IP address.
#[must_use]
pub(crate) fn partition_of(site: &str) -> u8 {
    (xxh3_64(site.as_bytes()) >> 56) as u8
}

/// Owners of all partitions, as indices of nodes.
pub(crate) type Owners = [usize; N_PARTITIONS];

/// Returns the owner of each partition, as an index of `nodes`; none if no node has a weight.
/// `current` has the present owners: a node keeps what it has up to its cap, the highest scores
/// first, so that nothing moves but what is above the caps.
#[must_use]
pub(crate) fn owners(nodes: &[Node], current: &[Option<usize>]) -> Option<Owners> {
    let total: f64 = nodes.iter().map(|node| node.weight).sum();
    let parts = nodes
        .iter()
        .map(|node| N_PARTITIONS as f64 * node.weight / total);
    let caps = match current.iter().any(Option::is_some) {
        true => quotas(&parts.collect::<Vec<_>>(), current),
        false => parts.map(|part| part.ceil() as usize).collect(),
    };
    assign(nodes, current, caps)
}

/// Returns the parts of nodes in whole partitions. What is left by rounding goes to nodes that
/// would otherwise have to give it up, then to the first ones.
fn quotas(parts: &[f64], current: &[Option<usize>]) -> Vec<usize> {
    let mut quotas: Vec<usize> = parts.iter().map(|part| *part as usize).collect();
    let n_left = N_PARTITIONS.saturating_sub(quotas.iter().sum());
    let n_owned = |at: usize| current.iter().filter(|&&owner| owner == Some(at)).count();
    let mut order: Vec<usize> = (0..parts.len()).filter(|&at| parts[at] > 0.0).collect();
    order.sort_by_key(|&at| n_owned(at) <= quotas[at]);
    for &at in order.iter().cycle().take(n_left) {
        quotas[at] += 1;
    }
    quotas
}

/// As [`owners`], with the largest number of partitions of each node.
fn assign(nodes: &[Node], current: &[Option<usize>], mut left: Vec<usize>) -> Option<Owners> {
    let mut scores = Vec::new();
    for partition in 0..N_PARTITIONS {
        let able = nodes.iter().enumerate();
        let able = able.filter(|(_, node)| node.weight > 0.0);
        scores.extend(able.map(|(at, node)| (score(node, partition as u8), partition, at)));
    }
    scores.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
    });
    let mut owners = [usize::MAX; N_PARTITIONS];
    let has = |at: usize, partition: usize| current.get(partition) == Some(&Some(at));
    let kept = scores
        .iter()
        .filter(|(_, partition, at)| has(*at, *partition));
    for &(_, partition, at) in kept.chain(&scores) {
        if owners[partition] == usize::MAX && left[at] > 0 {
            owners[partition] = at;
            left[at] -= 1;
        }
    }
    owners.iter().all(|&at| at < usize::MAX).then_some(owners)
}

/// How much a node wants a partition.
fn score(node: &Node, partition: u8) -> f64 {
    let mut key = node.name.as_bytes().to_vec();
    key.push(0);
    key.extend(u16::from(partition).to_le_bytes());
    let unit = (xxh3_64(&key) as f64 + 0.5) / 2f64.powi(64);
    -node.weight / unit.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &str) -> Vec<Node> {
        let node = |name: char| Node {
            name: name.to_string(),
            weight: 1.0,
        };
        names.chars().map(node).collect()
    }

    fn uncapped(nodes: &[Node]) -> [usize; N_PARTITIONS] {
        assign(nodes, &[], vec![N_PARTITIONS; nodes.len()]).unwrap()
    }

    fn counts(owners: &[usize; N_PARTITIONS], n_nodes: usize) -> Vec<usize> {
        let count = |at| owners.iter().filter(|&&owner| owner == at).count();
        (0..n_nodes).map(count).collect()
    }

    fn first(owners: &[usize; N_PARTITIONS], names: &str) -> String {
        let name = |&at: &usize| names.chars().nth(at).unwrap();
        owners[..16].iter().map(name).collect()
    }

    /// The nodes that partitions move to.
    fn moved(a: &[usize; N_PARTITIONS], b: &[usize; N_PARTITIONS]) -> Vec<usize> {
        let pairs = a.iter().zip(b).filter(|(a, b)| a != b);
        pairs.map(|(_, b)| *b).collect()
    }

    #[test]
    fn partitions_of_domains() {
        let domains = ["example.com", "tu-braunschweig.de", "wikipedia.org"];
        assert_eq!(domains.map(partition_of), [139, 71, 140]);
    }

    #[test]
    fn scores_choose_owners() {
        let three = uncapped(&nodes("abc"));
        assert_eq!(counts(&three, 3), [66, 98, 92]);
        assert_eq!(first(&three, "abc"), "cbbabccbbbcbabbc");
        let four = uncapped(&nodes("abcd"));
        assert_eq!(first(&four, "abcd"), "cbbadccbbbdbabbc");
        assert_eq!(moved(&three, &four), [3; 67]);
    }

    fn numbered(n: usize) -> Vec<Node> {
        let node = |at| Node {
            name: format!("agent-{at}"),
            weight: 1.0,
        };
        (0..n).map(node).collect()
    }

    /// How many partitions move when an agent joins, computed from nothing.
    fn moved_on_join(of: impl Fn(usize) -> Vec<Node>, n: usize) -> usize {
        let [before, after] = [n, n + 1].map(|n| owners(&of(n), &[]).unwrap());
        moved(&before, &after).len()
    }

    #[test]
    fn caps_make_equal_parts() {
        let three = owners(&nodes("abc"), &[]).unwrap();
        let mut parts = counts(&three, 3);
        parts.sort_unstable();
        assert_eq!(parts, [84, 86, 86]);
        // The number depends on the names. 64 and 28 are the least.
        let letters = |n| nodes(&"abcdefghi"[..n]);
        assert_eq!([3, 8].map(|n| moved_on_join(numbered, n)), [67, 31]);
        assert_eq!([3, 8].map(|n| moved_on_join(letters, n)), [66, 37]);
    }

    /// With an agent that joins, little more than its part moves; when one leaves, only its part.
    #[test]
    fn agents_keep_what_they_have() {
        let mut current = vec![None; N_PARTITIONS];
        for n in 1..=20 {
            let owners = owners(&numbered(n), &current).unwrap();
            let changed = (0..N_PARTITIONS).filter(|&at| current[at] != Some(owners[at]));
            let n_changed = changed.count();
            let most = 1.1 * N_PARTITIONS as f64 / n as f64;
            assert!(n == 1 || n_changed as f64 <= most, "{n}: {n_changed}");
            assert!(
                counts(&owners, n)
                    .iter()
                    .all(|&part| part <= N_PARTITIONS.div_ceil(n))
            );
            current = owners.map(Some).to_vec();
        }
        let left = owners(
            &numbered(19),
            &current
                .iter()
                .map(|at| at.filter(|&at| at < 19))
                .collect::<Vec<_>>(),
        );
        let left = left.unwrap();
        let mut stays = (0..N_PARTITIONS).filter(|&at| current[at] != Some(19));
        assert!(stays.all(|at| current[at] == Some(left[at])));
    }

    #[test]
    fn weights_count() {
        let mut nodes = nodes("abc");
        (nodes[0].weight, nodes[1].weight) = (2.0, 0.0);
        let parts = counts(&owners(&nodes, &[]).unwrap(), 3);
        assert_eq!((parts[1], parts[0] + parts[2]), (0, 256));
        assert!((170..=171).contains(&parts[0]), "{parts:?}");
        nodes.iter_mut().for_each(|node| node.weight = 0.0);
        assert_eq!((owners(&nodes, &[]), owners(&[], &[])), (None, None));
    }
}
