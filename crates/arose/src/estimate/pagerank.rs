//! PageRank: the stationary distribution of a walk along links with random jumps.
//!
//! *Question.* A walk follows links at random and sometimes jumps elsewhere. How often will it be
//! at each page in the long run?
//!
//! *Idea.* Start anywhere and move the probability along the links, repeatedly. With jump
//! probability `d`, each round reduces the influence of the start by a factor `1 - d`, so it
//! converges. A page without links always jumps.
//!
//! *Paper.* Brin & Page 1998. *Parameters.* The jump probability, 1/7 as in Henzinger et al. 1999;
//! the distribution of the jumps, which must be that of the walk to be corrected
//! ([`crate::estimate::walk`]). *Cost.* One pass over all links per round, 180 rounds for 1/7.
//! *Error.* At most 1e-12 in sum, or 1e-14 for each page if that is more: one part in a million of
//! the smallest rank, up to ten million pages. *Not for* the importance of pages: link farms are
//! built to rank high.

use crate::Error;
use crate::estimate::links::Links;

/// The maximum change in the last round: in sum, and per page on average.
const TOLERANCE: f64 = 1e-13;
const TOLERANCE_PER_PAGE: f64 = 1e-15;

/// Returns the probability of each page under a walk that jumps with probability `jump`.
///
/// `links` has the pages that each page links to. `jump_law` has the weight of each page as the
/// target of a jump; the weights need not sum to one.
///
/// # Errors
///
/// Returns an error if there is no page, a link leads nowhere, `jump` is not in `0..=1` or is zero,
/// or the jump law has another length, a negative or infinite weight, or no positive one.
///
/// ```
/// use arose::estimate::pagerank::pagerank;
/// // Two pages link to a third, which links back to the first.
/// let links = [[2], [2], [0]].into_iter().collect();
/// let ranks = pagerank(&links, &[1.0; 3], 0.15)?;
/// assert!(ranks[2] > ranks[0] && ranks[0] > ranks[1]);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn pagerank(links: &Links, jump_law: &[f64], jump: f64) -> Result<Vec<f64>, Error> {
    check(links, jump_law, jump)?;
    let total: f64 = jump_law.iter().sum();
    let jump_law: Vec<f64> = jump_law.iter().map(|weight| weight / total).collect();
    let mut ranks = jump_law.clone();
    let mut next = vec![0.0; ranks.len()];
    let tolerance = TOLERANCE.max(TOLERANCE_PER_PAGE * ranks.len() as f64);
    // (1 - jump)^rounds is below the tolerance at the end, however small the jump probability.
    let max_rounds = (TOLERANCE.ln() / (1.0 - jump).ln()).ceil().clamp(1.0, 1e6) as u64 + 1;
    for _ in 0..max_rounds {
        advance(&ranks, links, &jump_law, jump, &mut next);
        std::mem::swap(&mut ranks, &mut next);
        let changes = ranks.iter().zip(&next);
        let change: f64 = changes.map(|(new, old)| (new - old).abs()).sum();
        if change < tolerance {
            break;
        }
    }
    Ok(ranks)
}

/// Computes one step of the walk.
fn advance(ranks: &[f64], links: &Links, jump_law: &[f64], jump: f64, next: &mut [f64]) {
    next.fill(0.0);
    let mut jumping = 0.0;
    for (rank, targets) in ranks.iter().zip(links.rows()) {
        if targets.is_empty() {
            jumping += rank;
            continue;
        }
        jumping += jump * rank;
        let share = (1.0 - jump) * rank / targets.len() as f64;
        for &target in targets {
            next[target as usize] += share;
        }
    }
    for (rank, weight) in next.iter_mut().zip(jump_law) {
        *rank += jumping * weight;
    }
}

fn check(links: &Links, jump_law: &[f64], jump: f64) -> Result<(), Error> {
    let n_pages = links.n_pages();
    if n_pages == 0 {
        return Err(Error::no_estimate("page ranks", "no page"));
    }
    let is_nowhere = |target: &&u32| **target as usize >= n_pages;
    if let Some(target) = links.targets().iter().find(is_nowhere) {
        return Err(Error::parameter(
            "link",
            target,
            "below the number of pages",
        ));
    }
    if !(jump > 0.0 && jump <= 1.0) {
        return Err(Error::parameter("jump", jump, "above 0, up to 1"));
    }
    if jump_law.len() != n_pages {
        return Err(Error::parameter(
            "jump_law",
            jump_law.len(),
            "one weight per page",
        ));
    }
    let is_weight = |weight: &f64| weight.is_finite() && *weight >= 0.0;
    if !jump_law.iter().all(is_weight) || jump_law.iter().sum::<f64>() <= 0.0 {
        let expected = "weights from zero, some above";
        return Err(Error::parameter("jump_law", "not a law", expected));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Pages 0 and 1 link to 2, and 2 to 0. With d = 1/4 and uniform jumps: r1 = d/3, r2 = d/3 +
    /// (1-d)(r0 + r1), r0 = d/3 + (1-d) r2, so r2 (1 - (1-d)^2) = d/3 (1 + 2(1-d)).. solved by
    /// hand.
    #[test]
    fn three_pages() {
        let links = [[2], [2], [0]].into_iter().collect();
        let ranks = pagerank(&links, &[1.0; 3], 0.25).unwrap();
        let (d, f) = (0.25 / 3.0, 0.75_f64);
        let third = d * (1.0 + 2.0 * f) / (1.0 - f * f);
        let expected = [d + f * third, d, third];
        for (rank, expected) in ranks.iter().zip(expected) {
            assert!((rank - expected).abs() < 1e-12, "{ranks:?}");
        }
    }

    #[test]
    fn pages_without_links_jump() {
        // Both pages are dead ends, so every step is a jump.
        let links = [[], []].into_iter().collect();
        assert_eq!(pagerank(&links, &[3.0, 1.0], 0.1).unwrap(), [0.75, 0.25]);
    }

    #[test]
    fn bad_data() {
        let links: Links = [[1], [0]].into_iter().collect();
        assert!(pagerank(&Links::default(), &[], 0.1).is_err());
        assert!(pagerank(&[[1]].into_iter().collect(), &[1.0], 0.1).is_err());
        for jump in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(pagerank(&links, &[1.0; 2], jump).is_err());
        }
        for law in [
            vec![1.0],
            vec![0.0; 2],
            vec![1.0, f64::NAN],
            vec![2.0, -1.0],
        ] {
            assert!(pagerank(&links, &law, 0.1).is_err());
        }
    }

    proptest! {
        /// Ranks are a probability distribution, and one more step does not change them.
        #[test]
        fn ranks_are_stationary(
            links in prop::collection::vec(prop::collection::vec(0_u32..8, 0..4), 8),
            jump in 0.05..1.0_f64,
        ) {
            let links: Links = links.into_iter().collect();
            let law = [0.125; 8];
            let ranks = pagerank(&links, &law, jump).unwrap();
            prop_assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let mut next = [0.0; 8];
            advance(&ranks, &links, &law, jump, &mut next);
            prop_assert!(next.iter().zip(&ranks).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }
}
