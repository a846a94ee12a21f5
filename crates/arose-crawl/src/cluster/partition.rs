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
//! equal; scores are taken from the highest on, and an agent with as many partitions as its cap
//! gets no further ones.
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

/// Returns the owner of each partition, as an index of `nodes`; none if no node has a weight.
#[must_use]
pub(crate) fn owners(nodes: &[Node]) -> Option<[usize; N_PARTITIONS]> {
    let total: f64 = nodes.iter().map(|node| node.weight).sum();
    let caps = nodes.iter().map(|node| {
        let part = N_PARTITIONS as f64 * node.weight / total;
        part.ceil() as usize
    });
    assign(nodes, caps.collect())
}

/// As [`owners`], with the largest number of partitions of each node.
fn assign(nodes: &[Node], mut left: Vec<usize>) -> Option<[usize; N_PARTITIONS]> {
    let nodes = || nodes.iter().enumerate();
    let mut scores = Vec::new();
    for partition in 0..N_PARTITIONS {
        let able = nodes().filter(|(_, node)| node.weight > 0.0);
        scores.extend(able.map(|(at, node)| (score(node, partition as u8), partition, at)));
    }
    scores.sort_by(|a, b| {
        b.0.total_cmp(&a.0)
            .then_with(|| (a.1, a.2).cmp(&(b.1, b.2)))
    });
    let mut owners = [usize::MAX; N_PARTITIONS];
    for (_, partition, at) in scores {
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
        assign(nodes, vec![N_PARTITIONS; nodes.len()]).unwrap()
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

    #[test]
    fn caps_make_equal_parts() {
        let [three, four] = ["abc", "abcd"].map(|names| owners(&nodes(names)).unwrap());
        let mut parts = counts(&three, 3);
        parts.sort_unstable();
        assert_eq!(parts, [84, 86, 86]);
        // 64 would be the least. More of them depend on the names where there are more agents.
        assert_eq!(moved(&three, &four).len(), 66);
        let [eight, nine] = ["abcdefgh", "abcdefghi"].map(|names| owners(&nodes(names)).unwrap());
        assert_eq!(moved(&eight, &nine).len(), 37);
    }

    #[test]
    fn weights_count() {
        let mut nodes = nodes("abc");
        (nodes[0].weight, nodes[1].weight) = (2.0, 0.0);
        let parts = counts(&owners(&nodes).unwrap(), 3);
        assert_eq!((parts[1], parts[0] + parts[2]), (0, 256));
        assert!((170..=171).contains(&parts[0]), "{parts:?}");
        nodes.iter_mut().for_each(|node| node.weight = 0.0);
        assert_eq!((owners(&nodes), owners(&[])), (None, None));
    }
}
