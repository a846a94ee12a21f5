//! Random walks: a sample of the web itself, without any engine.
//!
//! *Question.* Which share of the web's pages has some property, or is held by an engine, if pages
//! can be reached by links only?
//!
//! *Idea.* Follow random links; with probability 1/7, or where there is none, jump to a random host
//! among those seen so far and there to a random page seen. In the long run the walk visits pages
//! by their PageRank, popular ones far too often; so let every visit count one over the
//! [PageRank](crate::estimate::pagerank) of its page, with the jumps of this very walk
//! ([`Walk::jump_law`]), or one over how often the page was visited ([`inverse_visits`]). Where
//! links can be followed backwards as well, no jumps are needed: the walk then visits pages by
//! their number of links, and visits count one over that ([`undirected`]).
//!
//! *Papers.* Henzinger et al. 1999, 2000. *Parameters.* Jump probability 1/7. *Cost.* A fetch per
//! step; memory of the pages seen. *Error.* Batch means within a walk
//! ([`chain`](crate::estimate::chain)), Student's quantile over several ([`mean_over_walks`]); two
//! walks from different seeds must agree ([`split_r_hat`](crate::estimate::chain::split_r_hat),
//! [`disagreement`](crate::estimate::chain::disagreement)) and have stopped to find new pages
//! ([`Walk::late_share`]). *Not for* pages that no seed leads to; short walks stay near their
//! seeds.

use std::collections::{BTreeMap, BTreeSet};

use crate::Error;
use crate::estimate::chain::{Weighted, check_weighted, variance};
use crate::estimate::{Estimate, Method, Note, normal};
use crate::judgement::Interval;
use crate::mix::SplitMix;

/// With fewer walks than this their spread says too little.
const MIN_WALKS: usize = 5;

/// How to walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Pages to visit, the first included.
    pub n_steps: usize,
    /// The probability of a jump at each step.
    pub jump: f64,
}

impl Config {
    /// A walk that jumps with probability 1/7.
    #[must_use]
    pub const fn new(n_steps: usize) -> Self {
        Self {
            n_steps,
            jump: 1.0 / 7.0,
        }
    }
}

/// Where a walk has been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// The pages visited, in order, with repetition.
    pub visits: Vec<usize>,
    /// Steps that were jumps.
    pub n_jumps: usize,
    /// Pages visited or linked to when half of the steps were done.
    pub n_seen_at_half: usize,
    seen: Seen,
}

impl Walk {
    /// How many pages were visited or linked to.
    #[must_use]
    pub fn n_seen(&self) -> usize {
        self.seen.pages.len()
    }

    /// The share of the pages seen that only the second half of the walk found.
    ///
    /// Until it is near zero, jumps reach a part of the pages only, and those near the seeds count
    /// for too much; no comparison of walks shows that.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        1.0 - self.n_seen_at_half as f64 / self.n_seen() as f64
    }

    /// The probability of each of `n_pages` pages to be jumped to, as the walk ended.
    #[must_use]
    pub fn jump_law(&self, n_pages: usize) -> Vec<f64> {
        let mut law = vec![0.0; n_pages];
        let n_hosts = self.seen.by_host.len() as f64;
        for pages in &self.seen.by_host {
            for &page in pages.iter().filter(|&&page| page < n_pages) {
                law[page] = 1.0 / (n_hosts * pages.len() as f64);
            }
        }
        law
    }
}

/// The pages known to a walk, by host in the order of their discovery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    pages: BTreeSet<usize>,
    place_of_host: BTreeMap<usize, usize>,
    by_host: Vec<Vec<usize>>,
}

impl Seen {
    fn insert(&mut self, page: usize, host: usize) {
        if !self.pages.insert(page) {
            return;
        }
        let next = self.by_host.len();
        let place = *self.place_of_host.entry(host).or_insert(next);
        if place == next {
            self.by_host.push(Vec::new());
        }
        self.by_host[place].push(page);
    }

    fn jump(&self, random: &mut SplitMix) -> usize {
        let pages = &self.by_host[random.below(self.by_host.len() as u64) as usize];
        pages[random.below(pages.len() as u64) as usize]
    }
}

/// Walks along links and jumps now and then.
///
/// Pages are numbered by the caller; `host_of` says whose they are, `links` where they lead.
///
/// # Errors
///
/// When there is no seed or step, the jump probability is not in `0..=1`, or `links` fails.
///
/// ```
/// use arose::estimate::walk::{Config, with_jumps};
/// use arose::mix::SplitMix;
/// let graph = [vec![1, 2], vec![2], vec![]];
/// let links = |page: usize| Ok::<_, arose::Error>(graph[page].clone());
/// let walk = with_jumps(&[0], &Config::new(1000), &mut SplitMix::new(1), |page| page, links)?;
/// assert_eq!((walk.visits.len(), walk.n_seen()), (1000, 3));
/// # Ok::<(), arose::Error>(())
/// ```
pub fn with_jumps<E: From<Error>>(
    seeds: &[usize],
    config: &Config,
    random: &mut SplitMix,
    mut host_of: impl FnMut(usize) -> usize,
    mut links: impl FnMut(usize) -> Result<Vec<usize>, E>,
) -> Result<Walk, E> {
    if !(0.0..=1.0).contains(&config.jump) {
        return Err(Error::parameter("jump", config.jump, "0..=1").into());
    }
    if seeds.is_empty() || config.n_steps == 0 {
        let reason = "the walk has no seed or no step";
        return Err(Error::no_estimate(Method::RandomWalk.quantity(), reason).into());
    }
    let mut walk = Walk {
        visits: Vec::new(),
        n_jumps: 0,
        n_seen_at_half: 0,
        seen: Seen::default(),
    };
    for &seed in seeds {
        walk.seen.insert(seed, host_of(seed));
    }
    let mut visited = BTreeSet::new();
    let mut page = seeds[random.below(seeds.len() as u64) as usize];
    loop {
        walk.visits.push(page);
        if walk.visits.len() == config.n_steps.div_ceil(2) {
            walk.n_seen_at_half = walk.n_seen();
        }
        if walk.visits.len() == config.n_steps {
            return Ok(walk);
        }
        let targets = links(page)?;
        if visited.insert(page) {
            for &target in &targets {
                walk.seen.insert(target, host_of(target));
            }
        }
        page = if targets.is_empty() || random.next_f64() < config.jump {
            walk.n_jumps += 1;
            walk.seen.jump(random)
        } else {
            targets[random.below(targets.len() as u64) as usize]
        };
    }
}

/// Walks along links in both directions, without jumps; in the long run pages come by degree.
///
/// `neighbours` gives the pages that link to a page or are linked from it. Weights are one over
/// their number.
///
/// # Errors
///
/// When there is no step, a page has no neighbours, or `neighbours` fails.
pub fn undirected<E: From<Error>>(
    start: usize,
    n_steps: usize,
    random: &mut SplitMix,
    mut neighbours: impl FnMut(usize) -> Result<Vec<usize>, E>,
) -> Result<Vec<usize>, E> {
    let no = |reason: String| Error::no_estimate(Method::UndirectedWalk.quantity(), reason);
    if n_steps == 0 {
        return Err(no("the walk has no step".into()).into());
    }
    let mut visits = vec![start];
    let mut page = start;
    while visits.len() < n_steps {
        let near = neighbours(page)?;
        if near.is_empty() {
            return Err(no(format!("page {page} has no neighbours")).into());
        }
        page = near[random.below(near.len() as u64) as usize];
        visits.push(page);
    }
    Ok(visits)
}

/// For each visit, one over how often its page was visited in all.
#[must_use]
pub fn inverse_visits(visits: &[usize]) -> Vec<f64> {
    let mut times: BTreeMap<usize, u64> = BTreeMap::new();
    for &page in visits {
        *times.entry(page).or_default() += 1;
    }
    visits.iter().map(|page| 1.0 / times[page] as f64).collect()
}

/// Draws `n` of the visited pages, each visit by its weight, with replacement.
///
/// # Errors
///
/// When there are not as many weights as visits, or they are no weights.
pub fn draw_visits(
    visits: &[usize],
    weights: &[f64],
    n: usize,
    random: &mut SplitMix,
) -> Result<Vec<usize>, Error> {
    if visits.len() != weights.len() {
        return Err(Error::parameter(
            "weights",
            weights.len(),
            "one for each visit",
        ));
    }
    let steps: Vec<Weighted> = weights
        .iter()
        .map(|&weight| Weighted { value: 0.0, weight })
        .collect();
    check_weighted(Method::RandomWalk.quantity(), &steps)?;
    let mut total = 0.0;
    let sums: Vec<f64> = weights
        .iter()
        .map(|weight| {
            total += weight;
            total
        })
        .collect();
    let mut draw = || {
        let target = random.next_f64() * total;
        let place = sums.partition_point(|&sum| sum <= target);
        visits[place.min(visits.len() - 1)]
    };
    Ok((0..n).map(|_| draw()).collect())
}

/// The weighted mean over several independent walks, with Student's interval over the walks.
///
/// # Errors
///
/// When there are fewer than five walks, or one of them is empty or holds no numbers.
pub fn mean_over_walks(method: Method, walks: &[Vec<Weighted>]) -> Result<Estimate, Error> {
    if walks.len() < MIN_WALKS {
        let reason = format!("{} walks are too few to see their spread", walks.len());
        return Err(Error::no_estimate(method.quantity(), reason));
    }
    walks
        .iter()
        .try_for_each(|walk| check_weighted(method.quantity(), walk))?;
    let total: f64 = walks.iter().flatten().map(|step| step.weight).sum();
    let sum: f64 = walks
        .iter()
        .flatten()
        .map(|step| step.weight * step.value)
        .sum();
    let estimate = Estimate::new(method, sum / total, walks.len() as u64)?;
    let n = walks.len() as f64;
    let influence = |walk: &Vec<Weighted>| {
        let residuals = walk
            .iter()
            .map(|step| step.weight * (step.value - estimate.value));
        residuals.sum::<f64>() * n / total
    };
    let influences: Vec<f64> = walks.iter().map(influence).collect();
    let standard_error = (variance(&influences) / n).sqrt();
    if standard_error == 0.0 {
        return Ok(estimate.with_notes([Note::NoSpread]));
    }
    let half = normal::student_quantile(0.975, walks.len() as u64 - 1) * standard_error;
    let (low, high) = (estimate.value - half, estimate.value + half);
    Ok(estimate.with_interval(Interval { low, high }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::chain::weighted_mean;
    use crate::estimate::pagerank::pagerank;

    /// Pages 0, 1, 2 on host 0, page 3 on host 1, page 4 unknown to all.
    const LINKS: [&[usize]; 5] = [&[1, 2], &[3], &[3], &[0], &[0]];

    fn example(n_steps: usize, seed: u64) -> Walk {
        let links = |page: usize| Ok::<_, Error>(LINKS[page].to_vec());
        let host_of = |page| usize::from(page == 3);
        with_jumps(
            &[0],
            &Config::new(n_steps),
            &mut SplitMix::new(seed),
            host_of,
            links,
        )
        .unwrap()
    }

    #[test]
    fn jumps_choose_the_host_first() {
        let walk = example(5000, 1);
        assert_eq!((walk.n_seen(), walk.late_share()), (4, 0.0));
        // Of three steps two are the first half; only after them the second page's links are seen.
        assert_eq!(example(3, 1).n_seen_at_half, 3);
        let sixth = 1.0 / 6.0;
        assert_eq!(walk.jump_law(5), [sixth, sixth, sixth, 0.5, 0.0]);
        // A seventh of the steps, within four standard errors sqrt(p (1-p) / n) = .005.
        let share = walk.n_jumps as f64 / 4999.0;
        assert!((share - 1.0 / 7.0).abs() < 0.02, "{share}");
    }

    /// Visits come by PageRank with the walk's own jumps, and weights make them uniform.
    #[test]
    fn visits_come_by_pagerank() {
        let walk = example(100_000, 2);
        let links = LINKS.map(<[usize]>::to_vec);
        let ranks = pagerank(&links, &walk.jump_law(5), 1.0 / 7.0).unwrap();
        for page in 0..4 {
            let steps = |weigh: fn(f64) -> f64| -> Vec<Weighted> {
                let weighted = |&visit: &usize| Weighted {
                    value: f64::from(u8::from(visit == page)),
                    weight: weigh(ranks[visit]),
                };
                walk.visits.iter().map(weighted).collect()
            };
            // Four standard errors of the batch means.
            let check = |estimate: Estimate, expected: f64| {
                let interval = estimate.interval.unwrap();
                let standard_error = (interval.high - interval.low) / (2.0 * 1.98);
                assert!(
                    (estimate.value - expected).abs() < 4.0 * standard_error,
                    "{estimate:?}"
                );
                assert!(standard_error < 0.01);
            };
            check(
                weighted_mean(Method::RandomWalk, &steps(|_| 1.0)).unwrap(),
                ranks[page],
            );
            check(
                weighted_mean(Method::RandomWalk, &steps(|rank| 1.0 / rank)).unwrap(),
                0.25,
            );
        }
    }

    #[test]
    fn inverse_visits_make_pages_equal() {
        assert_eq!(
            inverse_visits(&[7, 8, 7, 7, 9]),
            [1.0 / 3.0, 1.0, 1.0 / 3.0, 1.0 / 3.0, 1.0]
        );
        // Weighted by them, each of three pages is drawn a third of the time.
        let visits = [7, 8, 7, 7, 9];
        let drawn = draw_visits(
            &visits,
            &inverse_visits(&visits),
            9000,
            &mut SplitMix::new(1),
        );
        let n = drawn.unwrap().iter().filter(|&&page| page == 7).count() as f64;
        assert!(
            (n / 9000.0 - 1.0 / 3.0).abs() < 4.0 * (2.0 / 9.0 / 9000.0_f64).sqrt(),
            "{n}"
        );
    }

    /// A star: the centre is visited every other step, and 1/degree undoes that.
    #[test]
    fn undirected_walks_come_by_degree() {
        let neighbours = |page| Ok::<_, Error>(if page == 0 { vec![1, 2, 3] } else { vec![0] });
        let visits = undirected(0, 10_000, &mut SplitMix::new(1), neighbours).unwrap();
        let n_centre = visits.iter().filter(|&&page| page == 0).count();
        assert_eq!(n_centre, 5000);
        let weighted: f64 = visits
            .iter()
            .map(|&page| if page == 0 { 1.0 / 3.0 } else { 1.0 })
            .sum();
        assert!((n_centre as f64 / 3.0 / weighted - 0.25).abs() < 1e-12);
    }

    #[test]
    fn bad_data() {
        let links = |_| Ok::<_, Error>(vec![]);
        let mut random = SplitMix::new(1);
        let config = Config::new(10);
        assert!(with_jumps(&[], &config, &mut random, |_| 0, links).is_err());
        assert!(with_jumps(&[0], &Config::new(0), &mut random, |_| 0, links).is_err());
        let never = Config {
            jump: f64::NAN,
            ..config
        };
        assert!(with_jumps(&[0], &never, &mut random, |_| 0, links).is_err());
        assert!(undirected(0, 10, &mut random, links).is_err());
        assert!(undirected(0, 0, &mut random, links).is_err());
        assert!(draw_visits(&[1], &[], 1, &mut random).is_err());
        assert!(draw_visits(&[1], &[0.0], 1, &mut random).is_err());
        assert!(draw_visits(&[], &[], 1, &mut random).is_err());
        let step = Weighted {
            value: 1.0,
            weight: 1.0,
        };
        assert!(mean_over_walks(Method::RandomWalk, &vec![vec![step]; 4]).is_err());
        assert!(mean_over_walks(Method::RandomWalk, &vec![vec![]; 5]).is_err());
        let same = mean_over_walks(Method::RandomWalk, &vec![vec![step]; 5]).unwrap();
        assert_eq!(same.notes, [Note::NoSpread]);
    }
}
