//! Measures the order of a crawl over a known graph: `order GRAPH [OPTION...]`.
//!
//! Plays a crawl through the crawler's own frontier. After several percentages of the pages, prints
//! the fetched share of all PageRank, and of the 1% of the pages with the highest PageRank.
//! `bench/order/README.md` has the format of graphs, the options and the results.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "that is what it is for, and a measurement may stop at the first surprise"
)]

use std::io::Read;

use arose::mix::SplitMix;
use arose_crawl::rehearsal::{Rehearsal, Site};
use arose_crawl::settings::{Budget, Order};

const AT: [usize; 6] = [1, 5, 10, 20, 30, 50];

/// A graph, its seeds and the sites of its pages.
struct Web {
    links: Vec<Vec<u32>>,
    sites: Vec<u32>,
    seeds: Vec<u32>,
    /// Number of pages of the graph as read; others were added.
    n_read: usize,
}

fn main() {
    let options = Options::read();
    let web = options.web();
    let n_links: usize = web.links.iter().map(Vec::len).sum();
    println!(
        "{} pages, {n_links} links, {} seeds",
        web.links.len(),
        web.seeds.len()
    );
    let ranks = page_rank(&web.links);
    let columns: Vec<String> = AT.iter().map(|at| format!("{at:>4} %")).collect();
    println!("{:<28} {}  hot at 10, 20 %", "order", columns.join(" "));
    println!("{:<28} {}", "ideal", ideal(&ranks));
    for (name, order, pages, per_site, rest) in RUNS {
        if options.is_wanted(name) {
            let run = Run {
                order,
                pages: if pages > 0 { pages } else { options.pages },
                has_sites: per_site,
                rest,
            };
            println!("{name:<28} {}", run.play(&web, &ranks));
        }
    }
    if options.has("--farm") {
        farm(&web, &options);
    }
    if options.has("--site") {
        large_site(&web, &options);
    }
}

/// Name, order, pages per unit of trust (0: as given by the options), whether there are sites, and
/// number of turns that a host rests.
const RUNS: [(&str, Order, u64, bool, u32); 6] = [
    ("breadth", Order::Breadth, u64::MAX, false, 0),
    ("opic", Order::Opic, u64::MAX, false, 0),
    ("opic-hosts", Order::Opic, u64::MAX, true, 0),
    ("opic-polite", Order::Opic, u64::MAX, true, 100),
    ("opic-shares", Order::Opic, 0, true, 0),
    ("opic-shares-polite", Order::Opic, 0, true, 100),
];

#[derive(Clone, Copy)]
struct Run {
    order: Order,
    pages: u64,
    has_sites: bool,
    rest: u32,
}

impl Run {
    fn site(self, web: &Web, page: u32) -> Site {
        Site(if self.has_sites {
            web.sites[page as usize]
        } else {
            0
        })
    }

    /// Passes pages to `take` in the order of the crawl, until it has enough.
    fn crawl(self, web: &Web, mut take: impl FnMut(usize, u32) -> bool) {
        let budget = Budget {
            pages: self.pages,
            max_pages: u64::MAX,
            max_hosts: u32::MAX,
        };
        let mut rehearsal = Rehearsal::new(self.order, budget, self.rest);
        for &seed in &web.seeds {
            rehearsal.seed(seed, self.site(web, seed));
        }
        let links = |page: u32| web.links[page as usize].clone();
        let mut n = 0;
        while let Some(page) = rehearsal.fetch(links, |page| self.site(web, page)) {
            n += 1;
            if !take(n, page) {
                return;
            }
        }
    }

    fn play(self, web: &Web, ranks: &[f64]) -> String {
        let hot = hot(ranks);
        let mut curve = Curve::new(ranks.len());
        let (mut sum, mut n_hot) = (0.0, 0);
        self.crawl(web, |n, page| {
            sum += ranks[page as usize];
            n_hot += usize::from(hot[page as usize]);
            curve.note(n, sum, n_hot as f64 / (ranks.len() / 100) as f64)
        });
        curve.text()
    }
}

/// Sums at the percentages of interest.
struct Curve {
    n_all: usize,
    sums: Vec<(f64, f64)>,
}

impl Curve {
    fn new(n_all: usize) -> Self {
        Self {
            n_all,
            sums: Vec::new(),
        }
    }

    /// Returns whether more is needed.
    fn note(&mut self, n: usize, sum: f64, hot: f64) -> bool {
        if let Some(&at) = AT.get(self.sums.len())
            && n * 100 >= at * self.n_all
        {
            self.sums.push((sum, hot));
        }
        self.sums.len() < AT.len()
    }

    fn text(&self) -> String {
        let sums: Vec<String> = self
            .sums
            .iter()
            .map(|(sum, _)| format!("{sum:.4}"))
            .collect();
        let hot = |at: usize| self.sums.get(at).map_or(0.0, |(_, hot)| *hot);
        format!("{}  {:.3} {:.3}", sums.join(" "), hot(2), hot(3))
    }
}

fn ideal(ranks: &[f64]) -> String {
    let mut sorted = ranks.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut curve = Curve::new(ranks.len());
    let mut sum = 0.0;
    for (n, rank) in sorted.iter().enumerate() {
        sum += rank;
        curve.note(n + 1, sum, 1.0);
    }
    curve.text()
}

/// The 1% of the pages with the highest PageRank.
fn hot(ranks: &[f64]) -> Vec<bool> {
    let mut pages: Vec<usize> = (0..ranks.len()).collect();
    pages.sort_by(|&a, &b| ranks[b].total_cmp(&ranks[a]));
    let mut hot = vec![false; ranks.len()];
    pages[..ranks.len() / 100]
        .iter()
        .for_each(|&page| hot[page] = true);
    hot
}

/// PageRank, with jumps from pages without links to all pages.
fn page_rank(links: &[Vec<u32>]) -> Vec<f64> {
    let n = links.len() as f64;
    let mut ranks = vec![1.0 / n; links.len()];
    for _ in 0..100 {
        let mut next = vec![0.0; links.len()];
        let mut dangling = 0.0;
        for (rank, links) in ranks.iter().zip(links) {
            if links.is_empty() {
                dangling += rank;
            }
            for &link in links {
                next[link as usize] += 0.85 * rank / links.len() as f64;
            }
        }
        let jump = (0.15 + 0.85 * dangling) / n;
        next.iter_mut().for_each(|rank| *rank += jump);
        ranks = next;
    }
    ranks
}

/// Adds a farm of pages on a thousand hosts that link to each other, entered by five links.
fn farm(web: &Web, options: &Options) {
    const N_PAGES: u64 = 100_000;
    const N_HOSTS: u64 = 1000;
    let mut random = SplitMix::new(1);
    let mut with = web.copy();
    let first = with.links.len() as u64;
    let first_site = with.sites.iter().max().map_or(0, |site| site + 1);
    for n in 0..N_PAGES {
        let links = (0..20).map(|_| (first + random.below(N_PAGES)) as u32);
        with.links.push(links.collect());
        with.sites.push(first_site + (n % N_HOSTS) as u32);
    }
    for seed in [7, 23, 41, 66, 90] {
        let seed = with.seeds[seed % with.seeds.len()] as usize;
        let entry = (first + random.below(N_PAGES)) as u32;
        with.links[seed].push(entry);
    }
    println!(
        "\nfarm of {N_PAGES} pages: its share of what was fetched, and PageRank of the others"
    );
    println!("{:<28}    5 %   10 %   20 %", "order");
    let ranks = page_rank(&web.links);
    for (name, order, pages) in [
        ("breadth, no shares", Order::Breadth, u64::MAX),
        ("opic, no shares", Order::Opic, u64::MAX),
        ("breadth", Order::Breadth, options.pages),
        ("opic", Order::Opic, options.pages),
    ] {
        for rest in [0, 100] {
            let run = Run {
                order,
                pages,
                has_sites: true,
                rest,
            };
            let (mut n_farm, mut sum, mut row) = (0, 0.0, Vec::new());
            let mut wanted = [5, 10, 20].into_iter().peekable();
            run.crawl(&with, |n, page| {
                match ranks.get(page as usize) {
                    Some(rank) => sum += rank,
                    None => n_farm += 1,
                }
                if wanted.next_if(|at| n * 100 >= at * with.n_read).is_some() {
                    row.push(format!("{:.4} ({sum:.3})", f64::from(n_farm) / n as f64));
                }
                wanted.peek().is_some()
            });
            println!("{:<28} {}", format!("{name}, rest {rest}"), row.join(" "));
        }
    }
}

/// Adds a single large site to which many other pages link, in contrast to the farm.
fn large_site(web: &Web, options: &Options) {
    const N_PAGES: u64 = 30_000;
    let mut random = SplitMix::new(2);
    let mut with = web.copy();
    let first = with.links.len() as u64;
    let site = with.sites.iter().max().map_or(0, |site| site + 1);
    for n in 0..N_PAGES {
        // Half of the links lead to a few pages, as in an encyclopedia.
        let links = (0..20).map(|at| match at % 2 {
            0 => first + random.below(N_PAGES),
            _ => {
                let most = 1 + random.below(n + 1);
                first + random.below(most)
            }
        });
        with.links.push(links.map(|page| page as u32).collect());
        with.sites.push(site);
    }
    for page in 0..with.n_read {
        if random.below(20) == 0 {
            with.links[page].push((first + random.below(N_PAGES)) as u32);
        }
    }
    println!(
        "\nsite of {N_PAGES} pages, one page in twenty links to it: the share of its pages fetched"
    );
    println!("{:<28}   10 %   20 %   30 %   50 %   70 %   90 %", "order");
    for (name, order, pages) in [
        ("breadth", Order::Breadth, options.pages),
        ("opic, no shares", Order::Opic, u64::MAX),
        ("opic", Order::Opic, options.pages),
    ] {
        let run = Run {
            order,
            pages,
            has_sites: true,
            rest: 0,
        };
        let (mut n_site, mut row) = (0, Vec::new());
        let mut wanted = [10, 20, 30, 50, 70, 90].into_iter().peekable();
        run.crawl(&with, |n, page| {
            n_site += usize::from(page as usize >= with.n_read);
            if wanted
                .next_if(|at| n * 100 >= at * with.links.len())
                .is_some()
            {
                row.push(format!("{:.4}", n_site as f64 / N_PAGES as f64));
            }
            wanted.peek().is_some()
        });
        println!("{name:<28} {}", row.join(" "));
    }
}

impl Web {
    fn copy(&self) -> Self {
        Self {
            links: self.links.clone(),
            sites: self.sites.clone(),
            seeds: self.seeds.clone(),
            n_read: self.n_read,
        }
    }
}

/// The options.
struct Options {
    arguments: Vec<String>,
    pages: u64,
}

impl Options {
    fn read() -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let mut options = Self {
            arguments,
            pages: Budget::default().pages,
        };
        if let Some(pages) = options.value("--pages") {
            options.pages = pages.parse().unwrap();
        }
        options
    }

    fn has(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument == name)
    }

    fn value(&self, name: &str) -> Option<&str> {
        let at = self
            .arguments
            .iter()
            .position(|argument| argument == name)?;
        self.arguments.get(at + 1).map(String::as_str)
    }

    fn is_wanted(&self, name: &str) -> bool {
        let orders = self.value("--orders");
        orders.is_none_or(|orders| orders.split(',').any(|order| order == name))
    }

    fn web(&self) -> Web {
        let path = self
            .arguments
            .first()
            .expect("usage: order GRAPH [OPTION...]");
        let links = parse(&text_of(path), self.has("--absolute"));
        let n = links.len();
        let seeds = match self.value("--seeds") {
            Some(path) => text_of(path)
                .split_whitespace()
                .map(|seed| seed.parse().unwrap())
                .collect(),
            None => (0..100)
                .map(|seed| (seed * n.div_ceil(100)) as u32)
                .collect(),
        };
        let sites = match self.value("--sites") {
            Some(path) => text_of(path)
                .split_whitespace()
                .map(|site| site.parse().unwrap())
                .collect(),
            None => (0..n as u32).map(|page| page / 1000).collect(),
        };
        assert_eq!(n, Vec::len(&sites), "a site for each page");
        let is_page = |page: &u32| (*page as usize) < n;
        assert!(links.iter().flatten().all(is_page), "a link leads nowhere");
        Web {
            n_read: n,
            seeds: Vec::into_iter(seeds).filter(|page| is_page(page)).collect(),
            links,
            sites,
        }
    }
}

fn text_of(path: &str) -> String {
    let file = std::fs::File::open(path).unwrap();
    let mut text = String::new();
    match path.ends_with(".zst") {
        true => zstd::Decoder::new(file).unwrap().read_to_string(&mut text),
        false => { file }.read_to_string(&mut text),
    }
    .unwrap();
    text
}

/// Parses a line for each page: the numbers of the pages it links to, or the first number and then
/// differences.
fn parse(text: &str, is_absolute: bool) -> Vec<Vec<u32>> {
    let line = |line: &str| {
        let mut before = 0;
        let number = |word: &str| {
            let number: u32 = word.parse().unwrap();
            before = if is_absolute { number } else { before + number };
            before
        };
        line.split_whitespace().map(number).collect()
    };
    text.lines().map(line).collect()
}
