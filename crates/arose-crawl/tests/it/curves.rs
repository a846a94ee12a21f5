//! The order of a crawl of a real graph (`webgraph-cnr2000`) through the crawler's own frontier:
//! how much PageRank comes first, and what a link farm and a large site get. `bench/order` prints
//! the same for any graph.

use arose::mix::SplitMix;
use arose_crawl::rehearsal::{Rehearsal, Site};
use arose_crawl::settings::{Budget, Order};

use crate::shared;

/// Pages of the graph as read.
const N_PAGES: usize = 325_557;

/// Distance between two of the hundred seeds, which reach everything.
const SEED_STEP: usize = 3256;

/// For each page, the pages it links to. A line has the first as a number and each further one as
/// the difference to the one before.
fn graph() -> Option<Vec<Vec<u32>>> {
    let text = shared::bytes("webgraph-cnr2000/adjacency.txt.zst")?;
    let text = String::from_utf8(text).unwrap();
    let line = |line: &str| {
        let mut page = 0;
        let words = line.split_whitespace();
        let links = words.map(|word| {
            page += word.parse::<u32>().unwrap();
            page
        });
        links.collect()
    };
    let links: Vec<Vec<u32>> = text.lines().map(line).collect();
    assert_eq!(links.len(), N_PAGES);
    Some(links)
}

/// PageRank with a damping of 0.85; pages without links jump to all.
fn page_rank(links: &[Vec<u32>]) -> Vec<f64> {
    let n = links.len() as f64;
    let mut ranks = vec![1.0 / n; links.len()];
    for _ in 0..60 {
        let dangling = links
            .iter()
            .zip(&ranks)
            .filter(|(links, _)| links.is_empty());
        let dangling: f64 = dangling.map(|(_, rank)| rank).sum();
        let mut next = vec![(0.15 + 0.85 * dangling) / n; links.len()];
        for (rank, links) in ranks.iter().zip(links) {
            for &link in links {
                next[link as usize] += 0.85 * rank / links.len() as f64;
            }
        }
        ranks = next;
    }
    ranks
}

/// Crawls the graph from the seeds until `take` returns false for a page and its number in the
/// order. A host rests for so many turns.
fn crawl(
    order: Order,
    budget: Budget,
    rest: u32,
    links: &[Vec<u32>],
    site: impl Fn(u32) -> Site + Copy,
    mut take: impl FnMut(usize, u32) -> bool,
) {
    let mut rehearsal = Rehearsal::new(order, budget, rest);
    for seed in (0..100).map(|n| (n * SEED_STEP) as u32) {
        rehearsal.seed(seed, site(seed));
    }
    let mut n = 0;
    while let Some(page) = rehearsal.fetch(|page| links[page as usize].clone(), site) {
        n += 1;
        if !take(n, page) {
            return;
        }
    }
}

/// The shares of PageRank that the section on priority of the specification has for both orders,
/// after 10, 20, 30 and 50% of the pages.
#[test]
fn issue_26_important_pages_come_first() {
    let Some(links) = graph() else { return };
    let ranks = page_rank(&links);
    // One host, whose trust has no bounds.
    let budget = Budget {
        pages: u64::MAX,
        max_pages: u64::MAX,
        ..Budget::default()
    };
    for (order, expected) in [
        (Order::Opic, [0.412, 0.515, 0.611, 0.768]),
        (Order::Breadth, [0.357, 0.411, 0.457, 0.606]),
    ] {
        let (mut sum, mut shares) = (0.0, Vec::new());
        let mut at = [10, 20, 30, 50].into_iter().peekable();
        crawl(
            order,
            budget.clone(),
            0,
            &links,
            |_| Site(0),
            |n, page| {
                sum += ranks[page as usize];
                let is_due = |percent: &usize| n * 100 >= percent * N_PAGES;
                shares.extend(at.next_if(is_due).map(|_| sum));
                at.peek().is_some()
            },
        );
        println!("{order:?}: {shares:.4?}, expected {expected:?}");
        assert_eq!(shares.len(), expected.len());
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() <= 0.01, "{order:?}: {shares:?}");
        }
    }
}

/// The shares of the default settings, where a thousand neighbouring pages are a site.
fn site(page: u32) -> Site {
    Site(page / 1000)
}

/// A farm of 100,000 pages on 1,000 hosts that link to each other, entered by five links from
/// seeds, gets at most 6% of the fetches when a fifth of the graph is fetched, whether hosts rest
/// or not.
#[test]
fn issue_26_a_link_farm_gets_little() {
    const N_FARM: u64 = 100_000;
    const N_HOSTS: u32 = 1000;
    let Some(mut links) = graph() else { return };
    let mut random = SplitMix::new(1);
    let mut farm = || (N_PAGES as u64 + random.below(N_FARM)) as u32;
    for seed in [7, 23, 41, 66, 90] {
        links[seed * SEED_STEP].push(farm());
    }
    links.extend((0..N_FARM).map(|_| (0..20).map(|_| farm()).collect()));
    let site = |page: u32| match (page as usize).checked_sub(N_PAGES) {
        Some(n) => Site(1000 + n as u32 % N_HOSTS),
        None => site(page),
    };
    for rest in [0, 100] {
        let (mut n_all, mut n_farm) = (0, 0);
        crawl(
            Order::Opic,
            Budget::default(),
            rest,
            &links,
            site,
            |n, page| {
                n_all = n;
                n_farm += usize::from(page as usize >= N_PAGES);
                n * 5 < N_PAGES
            },
        );
        let share = n_farm as f64 / n_all as f64;
        println!("{share:.4} of {n_all} fetches, hosts rest {rest} turns");
        assert!(n_farm > 0 && share <= 0.06, "{share} {rest}");
    }
}

/// A site of 30,000 pages to which one page in twenty links, as to an encyclopedia, has 89% of its
/// pages fetched after a fifth of the crawl, and more than 90% after three tenths, under the same
/// shares that hold the farm.
#[test]
fn issue_26_a_large_site_gets_its_pages() {
    const N_LARGE: u64 = 30_000;
    let Some(mut links) = graph() else { return };
    let mut random = SplitMix::new(2);
    let first = N_PAGES as u64;
    for links in &mut links {
        if random.below(20) == 0 {
            links.push((first + random.below(N_LARGE)) as u32);
        }
    }
    for n in 0..N_LARGE {
        // Half of the links lead to a few pages.
        let most = |at: u64, random: &mut SplitMix| match at % 2 {
            0 => N_LARGE,
            _ => 1 + random.below(n + 1),
        };
        let to = |at| {
            let most = most(at, &mut random);
            (first + random.below(most)) as u32
        };
        links.push((0..20).map(to).collect());
    }
    let site = |page: u32| match page as usize >= N_PAGES {
        true => Site(u32::MAX),
        false => site(page),
    };
    let budget = Budget::default();
    let (n_all, mut n_large) = (links.len(), 0);
    let (mut at, mut shares) = ([2, 3].into_iter().peekable(), Vec::new());
    crawl(Order::Opic, budget, 0, &links, site, |n, page| {
        n_large += u64::from(page as usize >= N_PAGES);
        let is_due = |tenths: &usize| n * 10 >= tenths * n_all;
        let share = n_large as f64 / N_LARGE as f64;
        shares.extend(at.next_if(is_due).map(|_| share));
        at.peek().is_some()
    });
    println!("{shares:.4?} of the pages after two and three tenths of the crawl");
    assert!(shares[0] > 0.88 && shares[1] >= 0.9, "{shares:?}");
}
