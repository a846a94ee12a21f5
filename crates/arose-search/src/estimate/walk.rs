//! Random walks on a link graph: shares of the pages that links reach.
//!
//! *Question.* Which share of the pages has some property, if all one can do is follow links?
//!
//! *Idea.* Several walks with jumps from common seeds, each beginning at one of them. A walk knows
//! the links of the pages it has visited and no others; on that part it computes the PageRank of
//! its own jumps, and each visit counts one over it ([`arose::estimate::walk`]). Walks that
//! disagree, or still find new pages late, have not converged, and the findings say so.
//!
//! *Papers.* Henzinger et al. 1999, 2000. *Parameters.* Walks and their steps. *Cost.* Per walk its
//! steps and some 180 passes over the links it knows. *Error.* Student's quantile over walks. *Not
//! for* pages that no seed leads to.

use std::collections::BTreeMap;

use arose::estimate::chain::{self, MAX_R_HAT, Weighted, split_r_hat};
use arose::estimate::pagerank::pagerank;
use arose::estimate::walk::{Config, Walk, mean_over_walks, undirected, with_jumps};
use arose::estimate::{Estimate, Method};
use arose::mix::{SplitMix, mix};

use super::graph::{self, Graph};
use super::{Figure, Findings, Series, is_point};
use crate::Error;

/// Beyond this share of late discoveries a walk is not done.
const MAX_LATE: f64 = 0.02;

/// What is measured of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// Whether at least so many links lead to it.
    InDegree(u64),
    /// Whether it has at least so many links.
    OutDegree(u64),
    /// Whether its name holds this.
    Name(String),
}

impl Measure {
    fn name(&self) -> String {
        match self {
            Self::InDegree(n) => format!("share of pages with {n} in-links or more"),
            Self::OutDegree(n) => format!("share of pages with {n} links or more"),
            Self::Name(part) => format!("share of pages with {part} in the name"),
        }
    }

    /// The indicator of each page.
    fn values(&self, graph: &Graph) -> Vec<f64> {
        let indicator = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::InDegree(least) => {
                let degrees = graph.in_degrees();
                degrees.iter().map(|n| indicator(n >= least)).collect()
            }
            Self::OutDegree(least) => {
                let links = graph.links.iter();
                links
                    .map(|own| indicator(own.len() as u64 >= *least))
                    .collect()
            }
            Self::Name(part) if graph.names.is_empty() => {
                let all = 0..graph.links.len();
                all.map(|page| indicator(page.to_string().contains(part.as_str())))
                    .collect()
            }
            Self::Name(part) => {
                let names = graph.names.iter();
                names
                    .map(|name| indicator(name.contains(part.as_str())))
                    .collect()
            }
        }
    }
}

/// Along which links to walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Forwards, with jumps.
    Forwards,
    /// Both ways, without.
    BothWays,
}

/// How to walk.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Walks; five at least for an interval.
    pub n_walks: usize,
    /// Steps of each.
    pub n_steps: usize,
    /// Where walks begin, one after the other; random pages with links if empty.
    pub seeds: Vec<usize>,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// Along which links.
    pub direction: Direction,
    /// The seed of all choices.
    pub seed: u64,
}

/// One walk with the weight of each visit.
struct Weighed {
    visits: Vec<usize>,
    weights: Vec<f64>,
    late_share: f64,
    n_seen: usize,
}

/// Walks and computes. The truth over all pages that the seeds reach is given beside it.
///
/// # Errors
///
/// When there are too few walks, no seed has links, or a seed is no page.
pub fn run(graph: &Graph, settings: &Settings) -> Result<Findings, Error> {
    let mut seeds = seeds(graph, settings)?;
    let mut walks = Vec::new();
    let neighbours = match settings.direction {
        Direction::Forwards => Vec::new(),
        Direction::BothWays => {
            let both = graph.neighbours();
            seeds = in_one_part(&both, &seeds, settings.seed);
            both
        }
    };
    for (place, &seed) in seeds.iter().enumerate() {
        let mut random = SplitMix::new(mix(settings.seed ^ mix(place as u64 + 1)));
        walks.push(match settings.direction {
            Direction::Forwards => forwards(graph, &seeds, settings, &mut random)?,
            Direction::BothWays => both_ways(&neighbours, seed, settings, &mut random)?,
        });
    }
    let reachable = match settings.direction {
        Direction::Forwards => graph::reachable(&graph.links, &seeds),
        Direction::BothWays => graph::reachable(&neighbours, &seeds),
    };
    let counted = "pages that links lead to from the seeds";
    let mut findings = Findings::new("walk", counted, settings.seed);
    for measure in &settings.measures {
        let values = measure.values(graph);
        let figure = figure(measure, &values, &walks, settings, &mut findings)?;
        findings
            .figures
            .push(figure.with_truth(truth(&values, &reachable)));
    }
    findings.doubts.extend(doubts(&walks, settings));
    Ok(findings.with_biases())
}

/// A seed for each walk.
fn seeds(graph: &Graph, settings: &Settings) -> Result<Vec<usize>, Error> {
    if let Some(seed) = settings
        .seeds
        .iter()
        .find(|&&seed| seed >= graph.links.len())
    {
        return Err(Error::Words {
            what: format!("the seed {seed} is no page of the graph"),
        });
    }
    let with_links: Vec<usize> = (0..graph.links.len())
        .filter(|&page| !graph.links[page].is_empty())
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

/// Without jumps a walk never leaves its part of the graph, so all must begin in the same: that of
/// the first seed. Seeds elsewhere are drawn anew.
fn in_one_part(neighbours: &[Vec<usize>], seeds: &[usize], seed: u64) -> Vec<usize> {
    let reached = graph::reachable(neighbours, &seeds[..seeds.len().min(1)]);
    let part: Vec<usize> = (0..neighbours.len())
        .filter(|&page| reached[page])
        .collect();
    let mut random = SplitMix::new(mix(seed ^ 0xB074));
    let moved = seeds.iter().map(|&page| match reached[page] {
        true => page,
        false => part[random.below(part.len() as u64) as usize],
    });
    moved.collect()
}

fn forwards(
    graph: &Graph,
    seeds: &[usize],
    settings: &Settings,
    random: &mut SplitMix,
) -> Result<Weighed, Error> {
    let config = Config::new(settings.n_steps);
    let host = |page: usize| graph.hosts[page];
    let links = |page: usize| Ok::<_, Error>(graph.links[page].clone());
    let walk = with_jumps(seeds, &config, random, host, links)?;
    let ranks = ranks(graph, &walk, config.jump)?;
    Ok(Weighed {
        weights: walk.visits.iter().map(|page| 1.0 / ranks[page]).collect(),
        late_share: walk.late_share(),
        n_seen: walk.n_seen(),
        visits: walk.visits,
    })
}

/// The PageRank of the pages visited, on what the walk knows of the graph.
fn ranks(graph: &Graph, walk: &Walk, jump: f64) -> Result<BTreeMap<usize, f64>, Error> {
    let mut visited = vec![false; graph.links.len()];
    for &page in &walk.visits {
        visited[page] = true;
    }
    let law = walk.jump_law(graph.links.len());
    // Seen pages get new numbers, so that the ranks cost no more than the walk knows.
    let seen: Vec<usize> = (0..law.len()).filter(|&page| law[page] > 0.0).collect();
    let mut number = vec![usize::MAX; graph.links.len()];
    for (place, &page) in seen.iter().enumerate() {
        number[page] = place;
    }
    let links: Vec<Vec<usize>> = seen
        .iter()
        .map(|&page| match visited[page] {
            false => Vec::new(),
            true => graph.links[page].iter().map(|&to| number[to]).collect(),
        })
        .collect();
    let law: Vec<f64> = seen.iter().map(|&page| law[page]).collect();
    let ranks = pagerank(&links, &law, jump)?;
    let known = seen.iter().zip(ranks);
    let known = known.filter(|(page, _)| visited[**page]);
    Ok(known.map(|(&page, rank)| (page, rank)).collect())
}

fn both_ways(
    neighbours: &[Vec<usize>],
    seed: usize,
    settings: &Settings,
    random: &mut SplitMix,
) -> Result<Weighed, Error> {
    let near = |page: usize| Ok::<_, Error>(neighbours[page].clone());
    let visits = undirected(seed, settings.n_steps, random, near)?;
    let weight = |&page: &usize| 1.0 / neighbours[page].len() as f64;
    let mut distinct = visits.clone();
    distinct.sort_unstable();
    distinct.dedup();
    Ok(Weighed {
        weights: visits.iter().map(weight).collect(),
        late_share: 0.0,
        n_seen: distinct.len(),
        visits,
    })
}

fn figure(
    measure: &Measure,
    values: &[f64],
    walks: &[Weighed],
    settings: &Settings,
    findings: &mut Findings,
) -> Result<Figure, Error> {
    let method = match settings.direction {
        Direction::Forwards => Method::RandomWalk,
        Direction::BothWays => Method::UndirectedWalk,
    };
    let steps: Vec<Vec<Weighted>> = walks.iter().map(|walk| walk.steps(values)).collect();
    let estimate: Estimate = match &steps[..] {
        [] => mean_over_walks(method, &steps)?,
        [only] => chain::weighted_mean(method, only)?,
        _ => mean_over_walks(method, &steps)?,
    };
    let mut figure = Figure::new(measure.name(), &estimate);
    let raw: f64 = walks
        .iter()
        .flat_map(|walk| &walk.visits)
        .map(|&page| values[page])
        .sum();
    let n: usize = walks.iter().map(|walk| walk.visits.len()).sum();
    figure
        .notes
        .push(format!("{:.4} uncorrected", raw / n as f64));
    let indicators: Vec<Vec<f64>> = walks
        .iter()
        .map(|walk| walk.visits.iter().map(|&page| values[page]).collect())
        .collect();
    let chains: Vec<&[f64]> = indicators.iter().map(Vec::as_slice).collect();
    if let Ok(r_hat) = split_r_hat(&chains) {
        figure.notes.push(format!("R-hat {r_hat:.4}"));
        if r_hat >= MAX_R_HAT {
            findings.doubts.push(format!(
                "the walks disagree on the {} (R-hat {r_hat:.3}, below {MAX_R_HAT} is taken for \
                 converged): walk longer",
                measure.name()
            ));
        }
    }
    findings.series.push(course(measure, &steps));
    Ok(figure)
}

/// The corrected share over all walks as they went on.
fn course(measure: &Measure, walks: &[Vec<Weighted>]) -> Series {
    let n_steps = walks.iter().map(Vec::len).min().unwrap_or(0);
    let (mut sum, mut total) = (0.0, 0.0);
    let mut points = Vec::new();
    for step in 0..n_steps {
        for walk in walks {
            sum += walk[step].weight * walk[step].value;
            total += walk[step].weight;
        }
        if is_point(step + 1, n_steps) {
            points.push((step as u64 + 1, sum / total));
        }
    }
    Series {
        name: measure.name(),
        points,
    }
}

impl Weighed {
    fn steps(&self, values: &[f64]) -> Vec<Weighted> {
        let visits = self.visits.iter().zip(&self.weights);
        let step = |(&page, &weight): (&usize, &f64)| Weighted {
            value: values[page],
            weight,
        };
        visits.map(step).collect()
    }
}

fn truth(values: &[f64], reachable: &[bool]) -> f64 {
    let (mut sum, mut n) = (0.0, 0.0);
    for (value, _) in values
        .iter()
        .zip(reachable)
        .filter(|(_, reached)| **reached)
    {
        sum += value;
        n += 1.0;
    }
    sum / n
}

fn doubts(walks: &[Weighed], settings: &Settings) -> Vec<String> {
    let late = walks.iter().map(|walk| walk.late_share).fold(0.0, f64::max);
    let n_seen = walks.iter().map(|walk| walk.n_seen).max().unwrap_or(0);
    let mut doubts = Vec::new();
    if late > MAX_LATE {
        doubts.push(format!(
            "the second half of a walk still found {:.0} % of its {n_seen} pages: pages near the \
             seeds count for too much; walk longer than {} steps",
            100.0 * late,
            settings.n_steps
        ));
    }
    doubts
}
