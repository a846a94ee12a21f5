//! Random walks over a link graph, corrected for where they like to be.

use arose::estimate::Method;
use arose::estimate::chain::{
    MAX_R_HAT, Sums, Weighted, batch_means, disagreement, split_r_hat, weighted_mean,
};
use arose::estimate::pagerank::pagerank;
use arose::estimate::simulate::{GraphConfig, LinkGraph};
use arose::estimate::walk::{
    Walk, WalkConfig, Walker, inverse_visits, mean_over_walks, undirected,
};
use arose::mix::SplitMix;

use super::{check_coverage, mean_and_deviation};
use crate::statistics::mean_and_error;

/// A graph, which pages have five links or more leading to them, and the truth about that.
struct World {
    graph: LinkGraph,
    is_popular: Vec<bool>,
    reachable_share: f64,
    all_share: f64,
}

impl World {
    fn new(config: &GraphConfig) -> Self {
        let graph = LinkGraph::new(config).unwrap();
        let degrees = graph.links.in_degrees();
        let is_popular: Vec<bool> = degrees.iter().map(|&degree| degree >= 5).collect();
        let reachable = graph.links.reachable(&[0]);
        let share = |counts: &dyn Fn(usize) -> bool| {
            let pages: Vec<usize> = (0..is_popular.len()).filter(|&page| counts(page)).collect();
            pages.iter().filter(|&&page| is_popular[page]).count() as f64 / pages.len() as f64
        };
        let (all_share, reachable_share) = (share(&|_| true), share(&|page| reachable[page]));
        let n_reachable = reachable.iter().filter(|&&reached| reached).count();
        println!(
            "{n_reachable} reachable; popular: {all_share:.4}, reachable {reachable_share:.4}"
        );
        Self {
            graph,
            is_popular,
            reachable_share,
            all_share,
        }
    }

    fn walk(&self, n_steps: usize, seed: u64) -> Walk {
        let host_of = |page| self.graph.host_of(page);
        let random = SplitMix::new(seed);
        let mut walker = Walker::new(&[0], &WalkConfig::new(n_steps), random, host_of).unwrap();
        while let Some(page) = walker.page() {
            walker.step(self.graph.links.of(page), host_of);
        }
        walker.end()
    }

    fn ranks(&self, walk: &Walk) -> Vec<f64> {
        let links = &self.graph.links;
        pagerank(links, &walk.jump_law(links.n_pages()), 1.0 / 7.0).unwrap()
    }

    fn steps(&self, visits: &[u32], weigh: impl Fn(usize) -> f64) -> Vec<Weighted> {
        let step = |&page: &u32| Weighted {
            value: f64::from(u8::from(self.is_popular[page as usize])),
            weight: weigh(page as usize),
        };
        visits.iter().map(step).collect()
    }
}

fn plain_mean(steps: &[Weighted]) -> f64 {
    let total: f64 = steps.iter().map(|step| step.weight).sum();
    steps
        .iter()
        .map(|step| step.weight * step.value)
        .sum::<f64>()
        / total
}

/// 50,000 steps, 10 walks: the plain share is far too high, the corrected one within 0.01 of the
/// reachable truth; by visits it is that of the pages visited, which are all reachable ones.
#[test]
fn popular_pages_of_a_walk() {
    let world = World::new(&GraphConfig::default());
    let walks: Vec<Walk> = (0..10).map(|seed| world.walk(50_000, seed)).collect();
    let ranks = world.ranks(&walks[0]);
    let shares = |weigh: &dyn Fn(usize) -> f64| -> Vec<f64> {
        walks
            .iter()
            .map(|walk| plain_mean(&world.steps(&walk.visits, weigh)))
            .collect()
    };
    let (raw, _) = mean_and_deviation(&shares(&|_| 1.0));
    let (corrected, deviation) = mean_and_deviation(&shares(&|page| 1.0 / ranks[page]));
    println!("raw {raw:.3}, corrected {corrected:.4} +- {deviation:.4}");
    assert!(raw > world.reachable_share + 0.2);
    for share in shares(&|page| 1.0 / ranks[page]) {
        assert!((share - world.reachable_share).abs() <= 0.01, "{share}");
    }
    assert!(
        (corrected - world.all_share).abs() > 0.02,
        "unreachable pages stay unseen"
    );
    let by_visits: Vec<Weighted> = {
        let weights = inverse_visits(&walks[0].visits);
        let steps = world.steps(&walks[0].visits, |_| 1.0);
        steps
            .iter()
            .zip(weights)
            .map(|(step, weight)| Weighted { weight, ..*step })
            .collect()
    };
    let by_visits = plain_mean(&by_visits);
    println!("by visits {by_visits:.4}");
    assert!((by_visits - world.reachable_share).abs() <= 0.01);
}

/// Walks of 50,000 steps agree and find nothing new. Walks of 500 agree as well, by R-hat, though
/// they are still finding pages; walks over different graphs pass R-hat, but not their errors.
#[test]
fn convergence() {
    let world = World::new(&GraphConfig::default());
    let other = World::new(&GraphConfig {
        popularity: 0.2,
        ..GraphConfig::default()
    });
    let values = |world: &World, n_steps, seed| -> Vec<f64> {
        let visits = world.walk(n_steps, seed).visits;
        world
            .steps(&visits, |_| 1.0)
            .iter()
            .map(|step| step.value)
            .collect()
    };
    let [first, second] = [1, 2].map(|seed| values(&world, 50_000, seed));
    let elsewhere = values(&other, 50_000, 3);
    let r_hats = [&second, &elsewhere].map(|other| split_r_hat(&[&first, other]).unwrap());
    let means = [&first, &second, &elsewhere].map(|values| batch_means(values).unwrap());
    let apart = [1, 2].map(|other| disagreement(&means[0], &means[other]));
    let unseen = [500, 5000, 50_000].map(|n_steps| world.walk(n_steps, 1).unseen_share());
    println!("R-hat {r_hats:.4?}, {apart:.2?} errors apart, unseen {unseen:.3?}");
    assert!(r_hats[0] < MAX_R_HAT && apart[0] < 4.0 && unseen[2] == 0.0);
    assert!(r_hats[1] < MAX_R_HAT && apart[1] > 4.0 && unseen[0] > 0.1);
}

/// After 5,000 steps the corrected share is still too high by more than the limit of 0.01, and by
/// far more than the errors of ten walks would have it.
#[test]
fn short_walks_stay_near_their_seeds() {
    let world = World::new(&GraphConfig::default());
    let corrected = |seed| {
        let walk = world.walk(5000, seed);
        let ranks = world.ranks(&walk);
        plain_mean(&world.steps(&walk.visits, |page| 1.0 / ranks[page]))
    };
    let (mean, error) = mean_and_error(&(0..10).map(corrected).collect::<Vec<_>>());
    println!("after 5,000 steps {mean:.3} +- {error:.3}");
    assert!(mean - world.reachable_share > f64::max(0.01, 4.0 * error));
}

/// A walk that began at the seeds and has found the rest: its first 5,000 steps are omitted.
#[test]
fn walk_intervals_cover() {
    let world = World::new(&GraphConfig::default());
    let ranks = world.ranks(&world.walk(50_000, 1));
    check_coverage("random walk", |seed| {
        let visits = &world.walk(25_000, seed).visits[5000..];
        let steps = world.steps(visits, |page| 1.0 / ranks[page]);
        vec![(
            weighted_mean(Method::RandomWalk, &steps).unwrap(),
            world.reachable_share,
        )]
    });
}

/// Along links in both directions: 1/degree gives the share of the pages connected to the start.
#[test]
fn undirected_walks() {
    let world = World::new(&GraphConfig {
        n_pages: 2000,
        ..GraphConfig::default()
    });
    let both = world.graph.links.both_ways();
    let degree = |page: usize| both.of(page as u32).len() as f64;
    let connected = both.reachable(&[0]);
    let pages: Vec<usize> = (0..2000).filter(|&page| connected[page]).collect();
    let n_popular = pages.iter().filter(|&&page| world.is_popular[page]).count();
    let truth = n_popular as f64 / pages.len() as f64;
    let walk = |n_steps: usize, random: &mut SplitMix| {
        let start = pages[random.below(pages.len() as u64) as usize];
        let visits = undirected(start as u32, n_steps, random, &both).unwrap();
        world.steps(&visits, |page| 1.0 / degree(page))
    };
    let share = plain_mean(&walk(50_000, &mut SplitMix::new(1)));
    println!(
        "{} pages connected, {truth:.4} popular, estimated {share:.4}",
        pages.len()
    );
    assert!((share - truth).abs() <= 0.01);
    check_coverage("undirected walks: one, and eight", |seed| {
        let mut random = SplitMix::new(seed);
        let one = weighted_mean(Method::UndirectedWalk, &walk(10_000, &mut random)).unwrap();
        let sums = |random: &mut SplitMix| -> Sums { walk(1000, random).into_iter().collect() };
        let walks: Vec<Sums> = (0..8).map(|_| sums(&mut random)).collect();
        let eight = mean_over_walks(Method::UndirectedWalk, &walks).unwrap();
        vec![(one, truth), (eight, truth)]
    });
}
