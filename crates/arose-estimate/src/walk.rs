//! Random walks along links: shares of reachable pages.
//!
//! *Question.* Which share of the pages has some property, if pages can only be reached by
//! following links?
//!
//! *Idea.* Run several walks with jumps, each starting at one of the common seeds. A walk knows
//! only the links of the pages it has visited. On that part it computes the PageRank with its own
//! jumps, and each visit counts one over it ([`arose::estimate::walk`]). Visits of the first half
//! do not count, because jumps favour pages near the seeds while many pages are unseen. Walks that
//! disagree, or still find many new pages, have not converged, and the findings say so.
//!
//! A walk can also sample pages: each visit with a probability proportional to one over the
//! PageRank, so that pages are about equally likely. [`coverage`](crate::coverage) looks them up in
//! search engines.
//!
//! [`run`] walks on a known [`Graph`], where the true values are available for comparison; [`live`]
//! walks on the web, where they are not.
//!
//! *Papers.* Henzinger et al. 1999, 2000. *Parameters.* The number of walks and their steps.
//! *Cost.* Per walk, its steps and about 180 passes over the links it knows. *Error.* Student's
//! quantile over walks. *Not for* pages that cannot be reached from a seed.

pub mod live;
mod tally;

use arose::estimate::chain::{self, MAX_R_HAT, Part, Sums, r_hat};
use arose::estimate::links::Links;
use arose::estimate::pagerank::pagerank;
use arose::estimate::walk::{Walk, WalkConfig, Walker, mean_over_walks, undirected};
use arose::estimate::{Estimate, Method};
use arose::mix::{SplitMix, mix};

use super::graph::Graph;
use super::{Figure, Findings, Series};
use crate::Error;
use tally::{Keep, Measured, Tally, Weighed, course};

/// Maximum share of unknown pages of a finished walk; with more, estimates may be off by as much.
const MAX_UNSEEN: f64 = 0.01;

/// The measured property of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphMeasure {
    /// Whether at least this many links lead to it.
    InDegree(u64),
    /// Whether it has at least this many links.
    OutDegree(u64),
    /// Whether its URL contains this.
    Name(String),
}

impl GraphMeasure {
    fn name(&self) -> String {
        match self {
            Self::InDegree(n) => format!("share of pages with at least {n} in-links"),
            Self::OutDegree(n) => format!("share of pages with at least {n} links"),
            Self::Name(part) => format!("share of pages with {part} in the URL"),
        }
    }

    /// Whether each page has the property.
    fn values(&self, graph: &Graph) -> Vec<bool> {
        match self {
            Self::InDegree(least) => {
                let degrees = graph.links.in_degrees();
                degrees.iter().map(|&n| u64::from(n) >= *least).collect()
            }
            Self::OutDegree(least) => {
                let rows = graph.links.rows();
                rows.map(|own| own.len() as u64 >= *least).collect()
            }
            Self::Name(part) if graph.names.is_empty() => {
                let all = 0..graph.links.n_pages();
                all.map(|page| page.to_string().contains(part.as_str()))
                    .collect()
            }
            Self::Name(part) => {
                let names = graph.names.iter();
                names.map(|name| name.contains(part.as_str())).collect()
            }
        }
    }
}

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Forwards along links, with jumps.
    Forwards,
    /// In both directions, without jumps.
    BothWays,
}

/// Settings of walks.
#[derive(Debug, Clone, PartialEq)]
pub struct WalkSettings {
    /// Number of walks; at least five for an interval.
    pub n_walks: usize,
    /// Steps per walk.
    pub n_steps: usize,
    /// The first pages of the walks, in turn; random pages with links if empty.
    pub seeds: Vec<u32>,
    /// The properties to measure.
    pub measures: Vec<GraphMeasure>,
    /// The direction of the walks.
    pub direction: Direction,
    /// Number of pages to sample, from all walks together.
    pub n_drawn: usize,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The results of walks.
#[derive(Debug, Clone, PartialEq)]
pub struct Walked {
    /// The estimates.
    pub findings: Findings,
    /// The sampled pages, by name, with the walk that sampled each.
    pub drawn: Vec<(String, u32)>,
}

/// Walks and computes the estimates, with the true values over all reachable pages.
///
/// # Errors
///
/// If there are too few walks, no seed has links, or a seed is not a page.
pub fn run(graph: &Graph, settings: &WalkSettings) -> Result<Walked, Error> {
    let mut seeds = seeds(graph, settings)?;
    let measures = settings.measures.iter();
    let values: Vec<Vec<bool>> = measures.map(|measure| measure.values(graph)).collect();
    let keep = keep(settings.n_walks);
    let mut tallies = Vec::new();
    let mut drawing = Drawing::new(settings.n_drawn, settings.n_walks, settings.seed);
    let reachable = match settings.direction {
        Direction::Forwards => {
            for place in 0..seeds.len() {
                let walk = forwards(graph, &seeds, settings, place)?;
                let links = |page| graph.links.of(page);
                let weights = weights(links, graph.links.n_pages(), &walk)?;
                let weighed = Weighed::new(&walk, &weights);
                drawing.draw(&weighed)?;
                tallies.push(weighed.tally(&values, keep));
            }
            graph.links.reachable(&seeds)
        }
        Direction::BothWays => {
            let links = graph.links.both_ways();
            seeds = in_one_part(&links, &seeds, settings.seed);
            let weights: Vec<f64> = links.rows().map(|own| 1.0 / own.len() as f64).collect();
            for (place, &seed) in seeds.iter().enumerate() {
                let mut random = random(settings.seed, place);
                let visits = undirected(seed, settings.n_steps, &mut random, &links)?;
                let weighed = by_degree(&visits, &weights);
                drawing.draw(&weighed)?;
                tallies.push(weighed.tally(&values, keep));
            }
            links.reachable(&seeds)
        }
    };
    let method = match settings.direction {
        Direction::Forwards => Method::RandomWalk,
        Direction::BothWays => Method::UndirectedWalk,
    };
    let counted = "pages reachable by links from the seeds";
    let mut findings = Findings::new("walk", counted, settings.seed);
    add_figures(&mut findings, method, &settings.measures, &tallies)?;
    for (figure, has) in findings.figures.iter_mut().zip(&values) {
        figure.truth = Some(truth(has, &reachable));
    }
    findings
        .warnings
        .extend(warnings(&tallies, settings.n_steps));
    let name = |page: u32| match graph.names.get(page as usize) {
        Some(name) => name.clone(),
        None => page.to_string(),
    };
    Ok(Walked {
        findings: findings.with_biases(),
        drawn: drawing.named(name),
    })
}

/// Samples pages from one walk after the other, about as many from each.
struct Drawing {
    n: usize,
    n_walks: usize,
    random: SplitMix,
    /// Pages, and the walk that sampled each.
    drawn: Vec<(u32, u32)>,
    n_done: usize,
}

impl Drawing {
    fn new(n: usize, n_walks: usize, seed: u64) -> Self {
        Self {
            n,
            n_walks,
            random: SplitMix::new(mix(seed ^ 0xD2A8)),
            drawn: Vec::new(),
            n_done: 0,
        }
    }

    fn draw(&mut self, walk: &Weighed<'_>) -> Result<(), Error> {
        let place = self.n_done;
        self.n_done += 1;
        let upto = |place: usize| self.n * place / self.n_walks.max(1);
        let n = upto(place + 1) - upto(place);
        let pages = walk.draw(n, &mut self.random)?;
        self.drawn
            .extend(pages.into_iter().map(|page| (page, place as u32)));
        Ok(())
    }

    fn named(self, name: impl Fn(u32) -> String) -> Vec<(String, u32)> {
        let drawn = self.drawn.into_iter();
        drawn.map(|(page, walk)| (name(page), walk)).collect()
    }
}

/// A single walk is assessed by its own steps, several walks by each other.
fn keep(n_walks: usize) -> Keep {
    match n_walks {
        1 => Keep::Steps,
        _ => Keep::Sums,
    }
}

/// The random numbers of a walk.
fn random(seed: u64, place: usize) -> SplitMix {
    SplitMix::new(mix(seed ^ mix(place as u64 + 1)))
}

/// A seed for each walk.
fn seeds(graph: &Graph, settings: &WalkSettings) -> Result<Vec<u32>, Error> {
    let n_pages = graph.links.n_pages();
    let is_nowhere = |seed: &&u32| **seed as usize >= n_pages;
    if let Some(seed) = settings.seeds.iter().find(is_nowhere) {
        return Err(Error::Words {
            what: format!("seed {seed} is not a page of the graph"),
        });
    }
    let with_links: Vec<u32> = (0..n_pages as u32)
        .filter(|&page| !graph.links.of(page).is_empty())
        .collect();
    if with_links.is_empty() {
        return Err(Error::Words {
            what: "no page of the graph has a link".to_owned(),
        });
    }
    let mut random = SplitMix::new(mix(settings.seed ^ 0x5EED));
    let walks = 0..settings.n_walks;
    Ok(walks
        .map(|walk| match settings.seeds.is_empty() {
            false => settings.seeds[walk % settings.seeds.len()],
            true => with_links[random.below(with_links.len() as u64) as usize],
        })
        .collect())
}

/// Without jumps, a walk never leaves its component of the graph, so all walks must start in the
/// same component: that of the first seed. Seeds elsewhere are sampled again.
fn in_one_part(links: &Links, seeds: &[u32], seed: u64) -> Vec<u32> {
    let reached = links.reachable(&seeds[..seeds.len().min(1)]);
    let part: Vec<u32> = (0..links.n_pages() as u32)
        .filter(|&page| reached[page as usize])
        .collect();
    let mut random = SplitMix::new(mix(seed ^ 0xB074));
    let moved = seeds.iter().map(|&page| match reached[page as usize] {
        true => page,
        false => part[random.below(part.len() as u64) as usize],
    });
    moved.collect()
}

fn forwards(
    graph: &Graph,
    seeds: &[u32],
    settings: &WalkSettings,
    place: usize,
) -> Result<Walk, Error> {
    let config = WalkConfig::new(settings.n_steps);
    let host = |page: u32| graph.hosts[page as usize];
    let mut walker = Walker::new(seeds, &config, random(settings.seed, place), host)?;
    while let Some(page) = walker.page() {
        walker.step(graph.links.of(page), host);
    }
    Ok(walker.end())
}

/// One over the PageRank of the visited pages, on the part of the graph that the walk knows; zero
/// for others.
fn weights<'l>(
    links: impl Fn(u32) -> &'l [u32],
    n_pages: usize,
    walk: &Walk,
) -> Result<Vec<f64>, Error> {
    let mut visited = vec![false; n_pages];
    for &page in &walk.visits {
        visited[page as usize] = true;
    }
    let law = walk.jump_law(n_pages);
    // Seen pages get new numbers, so that computing ranks costs no more than the known part.
    let seen: Vec<usize> = (0..n_pages).filter(|&page| law[page] > 0.0).collect();
    let mut number = vec![0; n_pages];
    for (place, &page) in (0..).zip(&seen) {
        number[page] = place;
    }
    let known: Links = seen
        .iter()
        .map(|&page| {
            let own = match visited[page] {
                true => links(page as u32),
                false => &[],
            };
            own.iter().map(|&to| number[to as usize])
        })
        .collect();
    let law: Vec<f64> = seen.iter().map(|&page| law[page]).collect();
    let ranks = pagerank(&known, &law, WalkConfig::new(1).jump)?;
    let mut weights = vec![0.0; n_pages];
    for (&page, rank) in seen.iter().zip(ranks) {
        if visited[page] {
            weights[page] = 1.0 / rank;
        }
    }
    Ok(weights)
}

/// A walk in both directions, whose visits are proportional to the number of links.
fn by_degree<'w>(visits: &'w [u32], weights: &'w [f64]) -> Weighed<'w> {
    let mut visited = vec![false; weights.len()];
    let is_new = |page: &&u32| !std::mem::replace(&mut visited[**page as usize], true);
    Weighed {
        visits,
        n_early: 0,
        unseen_share: 0.0,
        n_seen: visits.iter().filter(is_new).count(),
        weights,
    }
}

/// An estimate for each measure, with the agreement of the walks.
fn add_figures(
    findings: &mut Findings,
    method: Method,
    measures: &[GraphMeasure],
    tallies: &[Tally],
) -> Result<(), Error> {
    for (place, measure) in measures.iter().enumerate() {
        let walks: Vec<&Measured> = tallies.iter().map(|walk| &walk.measured[place]).collect();
        let estimate: Estimate = match &walks[..] {
            [only] => chain::weighted_mean(method, &only.steps)?,
            _ => {
                let sums: Vec<Sums> = walks.iter().map(|walk| walk.sums()).collect();
                mean_over_walks(method, &sums)?
            }
        };
        let mut figure = Figure::new(measure.name(), &estimate);
        let counts = walks.iter().map(|walk| walk.counts());
        let (n, n_with) = counts.fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1));
        figure
            .notes
            .push(format!("{:.4} uncorrected", n_with as f64 / n as f64));
        let halves: Vec<Part> = walks.iter().flat_map(|walk| walk.halves()).collect();
        if let Ok(r_hat) = r_hat(&halves) {
            figure.notes.push(format!("R-hat {r_hat:.4}"));
            if r_hat >= MAX_R_HAT {
                findings.warnings.push(format!(
                    "the walks disagree on the {}: R-hat {r_hat:.3}, converged below {MAX_R_HAT}; \
                     walk longer",
                    measure.name()
                ));
            }
        }
        findings.figures.push(figure);
        findings.series.push(Series {
            name: measure.name(),
            points: course(walks.iter().copied()),
        });
    }
    Ok(())
}

fn truth(has: &[bool], reachable: &[bool]) -> f64 {
    let reached = has.iter().zip(reachable).filter(|(_, reached)| **reached);
    let (n_with, n) = reached.fold((0, 0), |(n_with, n), (has, _)| {
        (n_with + u64::from(*has), n + 1)
    });
    n_with as f64 / n as f64
}

fn warnings(walks: &[Tally], n_steps: usize) -> Option<String> {
    let unseen = walks.iter().map(|walk| walk.unseen_share);
    let unseen = unseen.sum::<f64>() / walks.len() as f64;
    let n_seen = walks.iter().map(|walk| walk.n_seen).max().unwrap_or(0);
    (unseen > MAX_UNSEEN).then(|| {
        format!(
            "on average over the counted visits, {:.0}% of {n_seen} pages were not yet known, so \
             pages near the seeds count too much; walk longer than {n_steps} steps",
            100.0 * unseen
        )
    })
}
