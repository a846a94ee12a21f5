//! Random walks: a sample of the web itself, without a search engine.
//!
//! *Question.* Which share of the pages of the web has some property, or is in a search engine, if
//! pages can only be reached by links?
//!
//! *Idea.* Follow random links. With probability 1/7, or if there is no link, jump to a random
//! host among those seen so far, and there to a random page seen. In the long run, the walk visits
//! pages in proportion to their PageRank, so popular ones far too often. So let every visit count
//! one over the [PageRank](crate::estimate::pagerank) of its page, computed with the jumps of this
//! walk ([`Walk::jump_law`]), or one over the number of visits to the page ([`inverse_visits`]). If
//! links can also be followed backwards, no jumps are needed: the walk then visits pages in
//! proportion to their number of links, and visits count one over that number ([`undirected`]).
//!
//! Early in a walk, jumps reach only few pages near the seeds, and no rank computed later corrects
//! this: it is better to omit these visits ([`Walk::settled`]).
//!
//! *Papers.* Henzinger et al. 1999, 2000. *Parameters.* Jump probability 1/7. *Cost.* One fetch per
//! step; memory for the pages seen. *Error.* Batch means within a walk
//! ([`chain`](crate::estimate::chain)), Student's quantile over several ([`mean_over_walks`]). Two
//! walks from different seeds must agree ([`split_r_hat`](crate::estimate::chain::split_r_hat),
//! [`disagreement`](crate::estimate::chain::disagreement)) and must no longer find new pages
//! ([`Walk::unseen_share`]). *Not for* pages that cannot be reached from a seed; short walks stay
//! near their seeds.

use crate::Error;
use crate::estimate::chain::{Sums, Weighted, check_weighted, variance};
use crate::estimate::links::Links;
use crate::estimate::{Estimate, Method, Note, normal};
use crate::judgement::Interval;
use crate::mix::SplitMix;

/// With fewer walks, their spread is not reliable.
pub const MIN_WALKS: usize = 5;

/// Settings of a walk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WalkConfig {
    /// Pages to visit, the first included.
    pub n_steps: usize,
    /// The probability of a jump at each step.
    pub jump: f64,
}

impl WalkConfig {
    /// Creates the settings of a walk that jumps with probability 1/7.
    #[must_use]
    pub const fn new(n_steps: usize) -> Self {
        Self {
            n_steps,
            jump: 1.0 / 7.0,
        }
    }
}

/// The pages that a walk visited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// The pages visited, in order, with repetition.
    pub visits: Vec<u32>,
    /// Number of steps that were jumps.
    pub n_jumps: usize,
    seen: Seen,
}

impl Walk {
    /// Returns the number of pages that were visited or linked to.
    #[must_use]
    pub fn n_seen(&self) -> usize {
        self.seen.since.len()
    }

    /// Returns the share of the finally seen pages that were still unseen, on average over the
    /// [`settled`](Self::settled) visits.
    ///
    /// Pages that could not be reached by a jump count too little, and those near the seeds too
    /// much. A comparison of walks does not show that. But the error of a share over pages is at
    /// most about this value, provided that the pages seen are all pages.
    #[must_use]
    pub fn unseen_share(&self) -> f64 {
        let n_early = self.visits.len() - self.settled().len();
        let unknown = self.seen.since.iter();
        let unknown = unknown.map(|&since| (since as usize).saturating_sub(n_early) as f64);
        let n = self.settled().len() * self.n_seen();
        unknown.sum::<f64>() / n.max(1) as f64
    }

    /// Returns the visits of the second half, when jumps could reach most of the pages that they
    /// ever reach.
    #[must_use]
    pub fn settled(&self) -> &[u32] {
        &self.visits[self.visits.len() / 2..]
    }

    /// Returns the probability that a jump leads to each of `n_pages` pages, at the end of the
    /// walk.
    #[must_use]
    pub fn jump_law(&self, n_pages: usize) -> Vec<f64> {
        let mut law = vec![0.0; n_pages];
        let n_hosts = self.seen.by_host.len() as f64;
        for pages in &self.seen.by_host {
            for &page in pages.iter().filter(|&&page| (page as usize) < n_pages) {
                law[page as usize] = 1.0 / (n_hosts * pages.len() as f64);
            }
        }
        law
    }
}

/// The pages known to a walk, by host in the order of their discovery.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Seen {
    /// Whether each page is known.
    pages: Vec<bool>,
    /// The index of each host below plus one, or zero.
    place_of_host: Vec<u32>,
    by_host: Vec<Vec<u32>>,
    /// The number of visits before each discovery.
    since: Vec<u32>,
}

impl Seen {
    fn insert(&mut self, page: u32, host: u32, n_visits: usize) {
        if std::mem::replace(entry(&mut self.pages, page), true) {
            return;
        }
        self.since.push(n_visits as u32);
        let place = entry(&mut self.place_of_host, host);
        if *place == 0 {
            self.by_host.push(Vec::new());
            *place = self.by_host.len() as u32;
        }
        self.by_host[*place as usize - 1].push(page);
    }

    fn jump(&self, random: &mut SplitMix) -> u32 {
        let pages = &self.by_host[random.below(self.by_host.len() as u64) as usize];
        pages[random.below(pages.len() as u64) as usize]
    }
}

/// Returns the entry of a number in a table that grows as needed.
fn entry<T: Clone + Default>(table: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if table.len() <= number {
        table.resize(number + 1, T::default());
    }
    &mut table[number]
}

/// A walk in progress. It is at a page and continues when it is given the links of that page.
///
/// The caller numbers pages and hosts from zero, without gaps: memory depends on the largest
/// number.
///
/// ```
/// use arose::estimate::walk::{WalkConfig, Walker};
/// use arose::mix::SplitMix;
/// let links = [vec![1, 2], vec![2], vec![]];
/// let own_host = |page: u32| page;
/// let mut walker = Walker::new(&[0], &WalkConfig::new(1000), SplitMix::new(1), own_host)?;
/// while let Some(page) = walker.page() {
///     walker.step(&links[page as usize], own_host);
/// }
/// let walk = walker.end();
/// assert_eq!((walk.visits.len(), walk.n_seen()), (1000, 3));
/// # Ok::<(), arose::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Walker {
    config: WalkConfig,
    random: SplitMix,
    page: u32,
    has_visited: Vec<bool>,
    walk: Walk,
}

impl Walker {
    /// Starts at one of the seeds. Jumps can lead to all of them.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no seed or step, there are more than 2^32 steps, or the jump
    /// probability is not in `0..=1`.
    pub fn new(
        seeds: &[u32],
        config: &WalkConfig,
        mut random: SplitMix,
        mut host_of: impl FnMut(u32) -> u32,
    ) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&config.jump) {
            return Err(Error::parameter("jump", config.jump, "0..=1"));
        }
        if u32::try_from(config.n_steps).is_err() {
            return Err(Error::parameter("n_steps", config.n_steps, "below 2^32"));
        }
        if seeds.is_empty() || config.n_steps == 0 {
            let reason = "the walk has no seed or no step";
            return Err(Error::no_estimate(Method::RandomWalk.quantity(), reason));
        }
        let mut walk = Walk::default();
        for &seed in seeds {
            walk.seen.insert(seed, host_of(seed), 0);
        }
        Ok(Self {
            config: *config,
            page: seeds[random.below(seeds.len() as u64) as usize],
            random,
            has_visited: Vec::new(),
            walk,
        })
    }

    /// Returns the page whose links are needed; none after the last step.
    #[must_use]
    pub fn page(&self) -> Option<u32> {
        (self.walk.visits.len() < self.config.n_steps).then_some(self.page)
    }

    /// Visits the current page, which has these links, and continues.
    pub fn step(&mut self, links: &[u32], mut host_of: impl FnMut(u32) -> u32) {
        let walk = &mut self.walk;
        walk.visits.push(self.page);
        if !std::mem::replace(entry(&mut self.has_visited, self.page), true) {
            for &target in links {
                walk.seen.insert(target, host_of(target), walk.visits.len());
            }
        }
        if walk.visits.len() >= self.config.n_steps {
            return;
        }
        self.page = if links.is_empty() || self.random.next_f64() < self.config.jump {
            walk.n_jumps += 1;
            walk.seen.jump(&mut self.random)
        } else {
            links[self.random.below(links.len() as u64) as usize]
        };
    }

    /// Returns the complete walk.
    #[must_use]
    pub fn end(self) -> Walk {
        self.walk
    }
}

/// Walks along links in both directions, without jumps. In the long run, pages are visited in
/// proportion to their degree.
///
/// `links` must lead both ways ([`Links::both_ways`]). Weights are one over the number of links.
///
/// # Errors
///
/// Returns an error if there is no step, or a page has no links.
pub fn undirected(
    start: u32,
    n_steps: usize,
    random: &mut SplitMix,
    links: &Links,
) -> Result<Vec<u32>, Error> {
    let no = |reason: String| Error::no_estimate(Method::UndirectedWalk.quantity(), reason);
    if n_steps == 0 {
        return Err(no("the walk has no step".into()));
    }
    let mut visits = vec![start];
    let mut page = start;
    while visits.len() < n_steps {
        let near = links.of(page);
        if near.is_empty() {
            return Err(no(format!("page {page} has no neighbours")));
        }
        page = near[random.below(near.len() as u64) as usize];
        visits.push(page);
    }
    Ok(visits)
}

/// Returns for each visit one over the total number of visits to its page.
#[must_use]
pub fn inverse_visits(visits: &[u32]) -> Vec<f64> {
    let mut times: Vec<u32> = Vec::new();
    for &page in visits {
        *entry(&mut times, page) += 1;
    }
    let weight = |&page: &u32| 1.0 / f64::from(times[page as usize]);
    visits.iter().map(weight).collect()
}

/// Samples `n` of the visited pages, each visit in proportion to its weight, with replacement.
///
/// # Errors
///
/// Returns an error if there are not as many weights as visits, or if they are not valid weights.
pub fn draw_visits(
    visits: &[u32],
    weights: &[f64],
    n: usize,
    random: &mut SplitMix,
) -> Result<Vec<u32>, Error> {
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

/// Returns the weighted mean over several independent walks, with Student's interval over the
/// walks.
///
/// The sums of the steps of each walk suffice.
///
/// # Errors
///
/// Returns an error if there are fewer than five walks, or if one of them is empty or its values
/// are not numbers.
pub fn mean_over_walks(method: Method, walks: &[Sums]) -> Result<Estimate, Error> {
    if walks.len() < MIN_WALKS {
        let reason = format!("{} walks are too few to see their spread", walks.len());
        return Err(Error::no_estimate(method.quantity(), reason));
    }
    for walk in walks {
        let is_mean = walk.weight.is_finite() && walk.weight > 0.0 && walk.value.is_finite();
        if !is_mean {
            let reason = format!("a walk has weight {} and sum {}", walk.weight, walk.value);
            return Err(Error::no_estimate(method.quantity(), reason));
        }
    }
    let all: Sums = walks.iter().copied().sum();
    let n = walks.len() as f64;
    let estimate = Estimate::new(method, all.value / all.weight, walks.len() as u64)?;
    let influence = |walk: &Sums| (walk.value - estimate.value * walk.weight) * n / all.weight;
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

    /// Pages 0, 1, 2 on host 0, page 3 on host 1, page 4 has no links to it.
    const LINKS: [&[u32]; 5] = [&[1, 2], &[3], &[3], &[0], &[0]];

    fn example(n_steps: usize, seed: u64) -> Walk {
        let host_of = |page| u32::from(page == 3);
        let random = SplitMix::new(seed);
        let mut walker = Walker::new(&[0], &WalkConfig::new(n_steps), random, host_of).unwrap();
        while let Some(page) = walker.page() {
            walker.step(LINKS[page as usize], host_of);
        }
        walker.end()
    }

    #[test]
    fn jumps_choose_the_host_first() {
        let walk = example(5000, 1);
        assert_eq!((walk.n_seen(), walk.unseen_share()), (4, 0.0));
        // Two of three visits count. Before the first of them, one page of four is unknown.
        assert_eq!(example(3, 1).unseen_share(), 0.125);
        assert_eq!(example(3, 1).settled().len(), 2);
        let sixth = 1.0 / 6.0;
        assert_eq!(walk.jump_law(5), [sixth, sixth, sixth, 0.5, 0.0]);
        // A seventh of the steps, within four standard errors sqrt(p (1-p) / n) = 0.005.
        let share = walk.n_jumps as f64 / 4999.0;
        assert!((share - 1.0 / 7.0).abs() < 0.02, "{share}");
    }

    /// Pages are visited in proportion to PageRank with the walk's own jumps, and weights make them
    /// uniform.
    #[test]
    fn visits_come_by_pagerank() {
        let walk = example(100_000, 2);
        let links = LINKS.iter().map(|row| row.iter().copied()).collect();
        let ranks = pagerank(&links, &walk.jump_law(5), 1.0 / 7.0).unwrap();
        for page in 0..4_u32 {
            let steps = |weigh: fn(f64) -> f64| -> Vec<Weighted> {
                let weighted = |&visit: &u32| Weighted {
                    value: f64::from(u8::from(visit == page)),
                    weight: weigh(ranks[visit as usize]),
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
                ranks[page as usize],
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

    /// A star: the centre is visited every other step, and 1/degree corrects that.
    #[test]
    fn undirected_walks_come_by_degree() {
        let links: Links = [vec![1, 2, 3], vec![], vec![], vec![]]
            .into_iter()
            .collect();
        let both = links.both_ways();
        let visits = undirected(0, 10_000, &mut SplitMix::new(1), &both).unwrap();
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
        let mut random = SplitMix::new(1);
        let config = WalkConfig::new(10);
        let begin = |seeds: &[u32], config: &WalkConfig| {
            Walker::new(seeds, config, SplitMix::new(1), |_| 0).map(|_| ())
        };
        assert!(begin(&[], &config).is_err());
        assert!(begin(&[0], &WalkConfig::new(0)).is_err());
        assert!(begin(&[0], &WalkConfig::new(1 << 32)).is_err());
        let never = WalkConfig {
            jump: f64::NAN,
            ..config
        };
        assert!(begin(&[0], &never).is_err());
        assert!(undirected(0, 10, &mut random, &Links::default()).is_err());
        assert!(undirected(0, 0, &mut random, &Links::default()).is_err());
        assert!(draw_visits(&[1], &[], 1, &mut random).is_err());
        assert!(draw_visits(&[1], &[0.0], 1, &mut random).is_err());
        assert!(draw_visits(&[], &[], 1, &mut random).is_err());
        let one = Sums {
            value: 1.0,
            weight: 1.0,
        };
        assert!(mean_over_walks(Method::RandomWalk, &[one; 4]).is_err());
        assert!(mean_over_walks(Method::RandomWalk, &[Sums::default(); 5]).is_err());
        let same = mean_over_walks(Method::RandomWalk, &[one; 5]).unwrap();
        assert_eq!(same.notes, [Note::NoSpread]);
    }
}
