//! PageRank: where a surfer who sometimes jumps spends the time.
//!
//! *Question.* A walk follows links at random and jumps elsewhere now and then. How often will it
//! be at each page in the long run?
//!
//! *Idea.* Start anywhere and move the probability along the links, again and again. With jump
//! probability `d`, each round forgets the start by a factor `1 - d`, so it settles. A page without
//! links jumps always.
//!
//! *Paper.* Brin & Page 1998. *Parameters.* The jump probability, 1/7 as in Henzinger et al. 1999;
//! the law of the jumps, which must be that of the walk to be corrected
//! ([`crate::estimate::walk`]). *Cost.* One pass over all links per round, 180 rounds for 1/7.
//! *Error.* At most 1e-12 in sum. *Not for* the importance of pages: link farms are made to rank.

use crate::Error;

/// How much may change in a last round.
const TOLERANCE: f64 = 1e-13;

/// The probability of each page under a walk that jumps with probability `jump`.
///
/// `links` holds the pages that each page links to; `jump_law` the weight of each page as the
/// target of a jump, which need not sum to one.
///
/// # Errors
///
/// When there is no page, a link leads nowhere, `jump` is not in `0..=1` or is zero, or the jump
/// law has another length, a negative or infinite weight, or no positive one.
///
/// ```
/// use arose::estimate::pagerank::pagerank;
/// // Two pages link to a third, which links back to the first.
/// let ranks = pagerank(&[vec![2], vec![2], vec![0]], &[1.0; 3], 0.15)?;
/// assert!(ranks[2] > ranks[0] && ranks[0] > ranks[1]);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn pagerank(links: &[Vec<usize>], jump_law: &[f64], jump: f64) -> Result<Vec<f64>, Error> {
    check(links, jump_law, jump)?;
    let total: f64 = jump_law.iter().sum();
    let jump_law: Vec<f64> = jump_law.iter().map(|weight| weight / total).collect();
    let mut ranks = jump_law.clone();
    // (1 - jump)^rounds is below the tolerance at the end, however small the jump probability.
    let max_rounds = (TOLERANCE.ln() / (1.0 - jump).ln()).ceil().clamp(1.0, 1e6) as u64 + 1;
    for _ in 0..max_rounds {
        let next = advance(&ranks, links, &jump_law, jump);
        let change: f64 = next
            .iter()
            .zip(&ranks)
            .map(|(new, old)| (new - old).abs())
            .sum();
        ranks = next;
        if change < TOLERANCE {
            break;
        }
    }
    Ok(ranks)
}

/// One step of the walk.
fn advance(ranks: &[f64], links: &[Vec<usize>], jump_law: &[f64], jump: f64) -> Vec<f64> {
    let mut next = vec![0.0; ranks.len()];
    let mut jumping = 0.0;
    for (rank, targets) in ranks.iter().zip(links) {
        if targets.is_empty() {
            jumping += rank;
            continue;
        }
        jumping += jump * rank;
        let share = (1.0 - jump) * rank / targets.len() as f64;
        for &target in targets {
            next[target] += share;
        }
    }
    for (rank, weight) in next.iter_mut().zip(jump_law) {
        *rank += jumping * weight;
    }
    next
}

fn check(links: &[Vec<usize>], jump_law: &[f64], jump: f64) -> Result<(), Error> {
    if links.is_empty() {
        return Err(Error::no_estimate("page ranks", "there is no page"));
    }
    if let Some(target) = links
        .iter()
        .flatten()
        .find(|&&target| target >= links.len())
    {
        return Err(Error::parameter(
            "link",
            target,
            "below the number of pages",
        ));
    }
    if !(jump > 0.0 && jump <= 1.0) {
        return Err(Error::parameter("jump", jump, "above 0, up to 1"));
    }
    if jump_law.len() != links.len() {
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
        let ranks = pagerank(&[vec![2], vec![2], vec![0]], &[1.0; 3], 0.25).unwrap();
        let (d, f) = (0.25 / 3.0, 0.75_f64);
        let third = d * (1.0 + 2.0 * f) / (1.0 - f * f);
        let expected = [d + f * third, d, third];
        for (rank, expected) in ranks.iter().zip(expected) {
            assert!((rank - expected).abs() < 1e-12, "{ranks:?}");
        }
    }

    #[test]
    fn pages_without_links_jump() {
        // Both pages are at a dead end, so every step is a jump.
        assert_eq!(
            pagerank(&[vec![], vec![]], &[3.0, 1.0], 0.1).unwrap(),
            [0.75, 0.25]
        );
    }

    #[test]
    fn bad_data() {
        let links = [vec![1], vec![0]];
        assert!(pagerank(&[], &[], 0.1).is_err());
        assert!(pagerank(&[vec![1]], &[1.0], 0.1).is_err());
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
        /// Ranks are a law, and one more step does not change them.
        #[test]
        fn ranks_are_stationary(
            links in prop::collection::vec(prop::collection::vec(0_usize..8, 0..4), 8),
            jump in 0.05..1.0_f64,
        ) {
            let law = [0.125; 8];
            let ranks = pagerank(&links, &law, jump).unwrap();
            prop_assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            let next = advance(&ranks, &links, &law, jump);
            prop_assert!(next.iter().zip(&ranks).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }
}
