//! The order of a crawl over a known graph, without network, clock or files.
//!
//! *Question.* Which pages would a crawl fetch first? A graph with known PageRank shows how good an
//! order is, and a graph with a link farm shows how well it is guarded.
//!
//! *Idea.* Uses the real frontier: hosts, queues, workbench and shares are those of a crawl. Only
//! time is missing: a host may be next again at once, or after a number of other turns.
//!
//! ```
//! use arose_crawl::rehearsal::{Rehearsal, Site};
//! use arose_crawl::settings::{Budget, Order};
//!
//! let links: [&[u32]; 4] = [&[1, 2], &[2], &[0], &[2, 0]];
//! let mut rehearsal = Rehearsal::new(Order::Opic, Budget::default(), 0);
//! rehearsal.seed(3, Site(0));
//! let mut order = Vec::new();
//! while let Some(page) = rehearsal.fetch(|page| links[page as usize].to_vec(), |_| Site(0)) {
//!     order.push(page);
//! }
//! assert_eq!(order, [3, 2, 0, 1]);
//! ```

mod focused;
mod pages;
mod queues;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use arose::mix::mix;

use crate::frontier::{Arrival, Frontier, Tag, Taken};
use crate::journal::{HostId, Kind, Place, Queued};
use crate::order::{Gift, Weight};
use crate::settings::{Budget, Order};
use crate::url::NormalUrl;

pub use focused::{Focused, SeenPage};
pub use pages::Pages;
pub use queues::Queues;

/// The site of a page, which is one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site(pub u32);

/// A simulated crawl.
#[derive(Debug)]
pub struct Rehearsal {
    frontier: Frontier,
    hosts: HashMap<Site, HostId>,
    /// Pages by position in the order of discovery, and their depths.
    pages: Vec<(u32, u32)>,
    /// Positions of pages.
    places: HashMap<u32, Place>,
    /// Number of turns for which a host rests, and number of turns so far.
    rest: u32,
    now: Duration,
    last: Option<Fetched>,
    given: f64,
    dropped: f64,
}

/// The page that was fetched last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fetched {
    /// Its number.
    pub page: u32,
    /// Its mass.
    pub mass: f32,
    /// Its trust.
    pub trust: f32,
}

impl Rehearsal {
    /// Starts a crawl in which a host rests for this many turns after each of its own.
    #[must_use]
    pub fn new(order: Order, budget: Budget, rest: u32) -> Self {
        Self {
            frontier: Frontier::new(budget, order),
            hosts: HashMap::new(),
            pages: Vec::new(),
            places: HashMap::new(),
            rest,
            now: Duration::ZERO,
            last: None,
            given: 0.0,
            dropped: 0.0,
        }
    }

    /// Adds a seed.
    pub fn seed(&mut self, page: u32, site: Site) {
        if !self.places.contains_key(&page) {
            self.queue(None, page, site, Gift::NONE, 0);
        }
    }

    /// Fetches the next page and follows its links; returns `None` if nothing is left. Repeated
    /// links count once.
    pub fn fetch(
        &mut self,
        links: impl FnOnce(u32) -> Vec<u32>,
        site_of: impl Fn(u32) -> Site,
    ) -> Option<u32> {
        self.now += Duration::from_secs(1);
        let host = self.next_host()?;
        let address = address(host);
        let Some(turn) = self.frontier.hosts[host as usize].pop() else {
            self.frontier.release(host, self.now, address, self.now);
            return self.fetch(links, site_of);
        };
        let (page, depth) = self.pages[turn.place as usize];
        self.frontier.n_queued -= 1;
        let site = self.frontier.hosts.site(host);
        self.frontier.count_pages(site, 1);
        self.last = Some(Fetched {
            page,
            mass: turn.weight.mass.amount(),
            trust: turn.weight.trust.amount(),
        });
        self.follow(host, turn.weight, depth + 1, links(page), site_of);
        let next = self.now + Duration::from_secs(self.rest.into());
        self.frontier.release(host, next, address, next);
        Some(page)
    }

    /// Returns the next host.
    fn next_host(&mut self) -> Option<HostId> {
        loop {
            match self.frontier.take(self.now) {
                Some(Taken::Host(host)) => return Some(host),
                Some(Taken::Later) => {}
                None => self.now = self.frontier.bench.next_time()?.max(self.now),
            }
        }
    }

    fn follow(
        &mut self,
        from: HostId,
        weight: Weight,
        depth: u32,
        mut links: Vec<u32>,
        site_of: impl Fn(u32) -> Site,
    ) {
        let site = self.frontier.hosts.site(from);
        let mut met = std::collections::HashSet::new();
        links.retain(|&link| met.insert(link));
        let draw = self.last.map_or(0, |last| last.page.into());
        let gift = Gift::share_of(weight, 1.0, links.len(), draw);
        self.given += f64::from(gift.mass) * links.len() as f64;
        for link in links {
            match self.places.contains_key(&link) {
                false => self.queue(Some(from), link, site_of(link), gift, depth),
                true => {
                    let host = self.hosts[&site_of(link)];
                    let gift = self.frontier.carried(from, host, gift);
                    self.frontier.entrust(Some(site), host, gift.trust);
                    let is_given = self.frontier.give(host, mix(link.into()), gift).is_some();
                    self.dropped += if is_given { 0.0 } else { gift.mass.into() };
                }
            }
        }
    }

    fn queue(&mut self, from: Option<HostId>, page: u32, site: Site, gift: Gift, depth: u32) {
        let host = self.host(site);
        let gift = match from {
            Some(from) => self.frontier.carried(from, host, gift),
            None => gift,
        };
        let weight = self.frontier.scale().order.weigh(Arrival {
            is_seed: from.is_none(),
            is_list: false,
            gift,
            number: depth,
        });
        self.queue_with(from, page, site, weight, depth);
    }

    fn queue_with(
        &mut self,
        from: Option<HostId>,
        page: u32,
        site: Site,
        weight: Weight,
        depth: u32,
    ) {
        let host = self.host(site);
        let place = self.pages.len() as Place;
        self.pages.push((page, depth));
        self.places.insert(page, place);
        self.put(host, page, place, weight, depth);
        let from = from.map(|from| self.frontier.hosts.site(from));
        self.frontier.entrust(from, host, weight.trust.amount());
        self.frontier.advance(host);
        self.frontier.raise(host, weight.mass);
    }

    fn put(&mut self, host: HostId, page: u32, place: Place, weight: Weight, depth: u32) {
        let queued = Queued {
            host,
            depth,
            weight,
            class: 0,
            is_last: false,
            of_repeat: false,
            n_redirects: 0,
            kind: Kind::Page,
            rest: "/",
            found_on: "",
        };
        let tag = Tag::of(mix(page.into()));
        self.frontier.push(&queued, tag, place);
    }

    fn host(&mut self, site: Site) -> HostId {
        if let Some(&host) = self.hosts.get(&site) {
            return host;
        }
        let name = format!("http://{}.example", site.0);
        let host = self.frontier.hosts.len() as HostId;
        if let Some(url) = NormalUrl::from_parts(&name, "/") {
            self.frontier.restore_host(&url, mix(site.0.into()));
        }
        self.frontier.hosts[host as usize].address = Some(address(host));
        self.hosts.insert(site, host);
        host
    }

    /// Returns the page that was fetched last.
    #[must_use]
    pub fn last(&self) -> Option<Fetched> {
        self.last
    }

    /// Returns the number of queued URLs.
    #[must_use]
    pub fn n_queued(&self) -> u64 {
        self.frontier.n_queued
    }

    /// Returns the mass that pages passed on, and the part that reached pages fetched before.
    #[must_use]
    pub fn mass(&self) -> (f64, f64) {
        (self.given, self.dropped)
    }
}

fn address(host: HostId) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from(u128::from(host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    /// Returns all pages of a graph, in the order of the crawl.
    fn play(order: Order, links: &[Vec<u32>], seeds: &[u32], n_sites: u32) -> Vec<u32> {
        let site = |page| Site(page % n_sites);
        let mut rehearsal = Rehearsal::new(order, Budget::default(), 0);
        seeds
            .iter()
            .for_each(|&seed| rehearsal.seed(seed, site(seed)));
        let next = || rehearsal.fetch(|page| links[page as usize].clone(), site);
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn masses_of_four_pages() {
        let links: [&[u32]; 4] = [&[1, 2], &[2], &[0], &[2, 0]];
        let mut rehearsal = Rehearsal::new(Order::Opic, Budget::default(), 0);
        rehearsal.seed(3, Site(0));
        let mut fetch = || {
            rehearsal.fetch(|page| links[page as usize].to_vec(), |_| Site(0))?;
            rehearsal.last()
        };
        for (page, mass) in [(3, 10.0), (2, 4.4), (0, 8.14), (1, 3.6095)] {
            let last = fetch().unwrap();
            assert_eq!(last.page, page);
            assert!((last.mass / mass - 1.0).abs() < 2e-3, "{last:?}");
        }
        assert_eq!(fetch(), None);
        // 0.85 of all four masses was passed on, and the part of pages fetched before was dropped.
        let (given, dropped) = rehearsal.mass();
        assert!((given / (0.85 * 26.1495) - 1.0).abs() < 2e-3, "{given}");
        assert!(
            (dropped / (3.4595 + 0.85 * 3.6095) - 1.0).abs() < 5e-3,
            "{dropped}"
        );
    }

    fn random_graph(n: u64, n_links: u64) -> Vec<Vec<u32>> {
        let mut random = SplitMix::new(n);
        let mut links = |_| (0..n_links).map(|_| random.below(n) as u32).collect();
        (0..n).map(&mut links).collect()
    }

    /// Every reachable page is fetched exactly once, for any order and any shares.
    #[test]
    fn every_page_of_a_finite_web_is_fetched() {
        let mut links = random_graph(3000, 4);
        links[0] = (1..200).collect();
        for order in [Order::Opic, Order::Breadth] {
            for n_sites in [1, 7, 900] {
                let mut pages = play(order, &links, &[0], n_sites);
                pages.sort_unstable();
                let n_pages = pages.len();
                pages.dedup();
                assert_eq!(pages.len(), n_pages);
                let mut reached = vec![0];
                let mut is_reached = vec![false; links.len()];
                is_reached[0] = true;
                while let Some(page) = reached.pop() {
                    for &link in &links[page] {
                        if !std::mem::replace(&mut is_reached[link as usize], true) {
                            reached.push(link as usize);
                        }
                    }
                }
                let n_reached = is_reached.iter().filter(|&&is| is).count();
                assert_eq!(n_pages, n_reached, "{order:?} {n_sites}");
            }
        }
    }

    /// Breadth first on one site is the order of discovery.
    #[test]
    fn breadth_first_is_first_in_first_out() {
        let links = random_graph(500, 3);
        let mut expected = vec![7, 3];
        let mut at = 0;
        while at < expected.len() {
            for &link in &links[expected[at] as usize] {
                if !expected.contains(&link) {
                    expected.push(link);
                }
            }
            at += 1;
        }
        assert_eq!(play(Order::Breadth, &links, &[7, 3], 1), expected);
    }

    /// A page with a hundred thousand links, some of them to itself and all of them twice.
    #[test]
    fn a_page_with_many_links() {
        let n = 100_000;
        let mut links = vec![Vec::new(); n];
        links[0] = (0..n as u32).chain(0..n as u32).collect();
        let pages = play(Order::Opic, &links, &[0], 10);
        assert_eq!(pages.len(), n);
    }

    /// A million pages link to one page, which is fetched before nearly all of them.
    #[test]
    fn many_pages_that_point_to_one() {
        let n: u32 = 1_000_000;
        let mut links = vec![vec![n]; n as usize];
        links.push(vec![n, 0]);
        let budget = Budget {
            max_pages: u64::MAX,
            ..Budget::default()
        };
        let mut rehearsal = Rehearsal::new(Order::Opic, budget, 0);
        for seed in 0..n {
            rehearsal.seed(seed, Site(seed % 100));
        }
        let mut place = None;
        let mut at = 0;
        while let Some(page) =
            rehearsal.fetch(|page| links[page as usize].clone(), |page| Site(page % 100))
        {
            at += 1;
            if page == n {
                place = Some((at, rehearsal.last().map_or(0.0, |last| last.mass)));
            }
        }
        assert_eq!(at, n + 1);
        let (at, mass) = place.unwrap();
        assert!(at < 20, "{at}");
        assert!(mass > 10.0, "{mass}");
    }

    /// An owner with a hundred thousand domains gets as much as one domain would.
    #[test]
    fn domains_cannot_be_bought() {
        let (n_good, n_bad) = (20_000_u64, 100_000_u64);
        let mut random = SplitMix::new(5);
        let mut links: Vec<Vec<u32>> = Vec::new();
        for n in 0..n_good {
            let mut of: Vec<u32> = (0..8).map(|_| random.below(n_good) as u32).collect();
            if n == 3 {
                of.push(n_good as u32);
            }
            links.push(of);
        }
        // The one page of the owner that a good page links to links to all its pages.
        links.push((0..n_bad).map(|n| (n_good + n) as u32).collect());
        for _ in 1..n_bad {
            let to = |_| (n_good + random.below(n_bad)) as u32;
            links.push((0..20).map(to).collect());
        }
        let site = |page: u32| match u64::from(page) < n_good {
            true => Site(page % 50),
            false => Site(50 + page),
        };
        let mut rehearsal = Rehearsal::new(Order::Opic, Budget::default(), 0);
        (0..10).for_each(|seed| rehearsal.seed(seed, site(seed)));
        let mut n_bad_fetched = 0;
        for _ in 0..n_good / 2 {
            let page = rehearsal.fetch(|page| links[page as usize].clone(), site);
            n_bad_fetched += u64::from(page.is_some_and(|page| u64::from(page) >= n_good));
        }
        assert!(n_bad_fetched < n_good / 2 / 10, "{n_bad_fetched}");
    }
}
