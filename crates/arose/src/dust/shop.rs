//! A synthetic shop that writes a session ID into every link, and the cost of crawling it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use super::*;
use crate::mix::SplitMix;

/// Items with links to each other. Half of the links have a parameter for the sort order or the
/// referring page.
struct Shop {
    links: Vec<Vec<(usize, String)>>,
    /// Items whose page depends on the referring page.
    fickle: HashSet<usize>,
    n_sessions: u64,
}

impl Shop {
    fn new(n_items: usize, fickle_share: f64, seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        let mut link = || {
            let to = random.below(n_items as u64) as usize;
            let mark = match random.below(4) {
                0 => format!(
                    "&sort={}",
                    ["price", "name", "date"][random.below(3) as usize]
                ),
                1 => format!(
                    "&ref={}",
                    ["home", "list", "mail", "ad"][random.below(4) as usize]
                ),
                _ => String::new(),
            };
            (to, mark)
        };
        let links = (0..n_items).map(|_| (0..8).map(|_| link()).collect());
        let links = links.collect();
        let n_fickle = (fickle_share * n_items as f64).round() as usize;
        Self {
            links,
            fickle: (0..n_fickle).map(|n| (n * 7919) % n_items).collect(),
            n_sessions: 0,
        }
    }

    fn item(url: &str) -> usize {
        let path = url.split('?').next().unwrap();
        path.rsplit('/').next().unwrap().parse().unwrap()
    }

    fn content(&self, url: &str) -> u64 {
        let item = Self::item(url);
        let from = url.split(['?', '&']).find(|one| one.starts_with("ref="));
        let from = from.filter(|_| self.fickle.contains(&item));
        crate::digest::digest64(format!("{item} {from:?}").as_bytes())
    }

    /// Links of a page, each with a new session ID.
    fn links(&mut self, url: &str) -> Vec<String> {
        let links = self.links[Self::item(url)].clone();
        let with_session = |(to, mark): (usize, String)| {
            self.n_sessions += 1;
            let session = crate::mix::mix(self.n_sessions);
            format!("http://shop.example/item/{to}?sid={session:x}{mark}")
        };
        links.into_iter().map(with_session).collect()
    }

    /// The number of contents that can be found.
    fn contents(&self) -> usize {
        let mut all = BTreeSet::new();
        for (to, mark) in self.links.iter().flatten() {
            all.insert(self.content(&format!("http://shop.example/item/{to}?sid=1{mark}")));
        }
        all.insert(self.content("http://shop.example/item/0"));
        all.len()
    }
}

/// A crawl that consults the learner for each URL.
struct Crawl {
    learner: Learner,
    queue: VecDeque<(String, bool)>,
    seen: HashSet<String>,
    shadow: Vec<(String, Vec<RuleId>)>,
    n_fetched: usize,
    found: HashSet<u64>,
    n_audits: usize,
    /// The number of fetches after which each rule became active.
    active_after: HashMap<String, usize>,
    /// URLs that a rule had deferred when it was suspended.
    worst: u32,
}

impl Crawl {
    fn new(config: Config) -> Self {
        Self {
            learner: Learner::new(config),
            queue: VecDeque::new(),
            seen: HashSet::new(),
            shadow: Vec::new(),
            n_fetched: 0,
            found: HashSet::new(),
            n_audits: 0,
            active_after: HashMap::new(),
            worst: 0,
        }
    }

    /// Queues a URL, or defers it; `has_place` says whether it was already in the queue.
    fn meet(&mut self, url: &str, has_place: bool) -> Option<String> {
        match self.learner.place(url) {
            Treatment::Fetch => {
                (has_place || self.seen.insert(url.to_owned())).then(|| url.to_owned())
            }
            Treatment::Same(canonical) => {
                if self.seen.insert(canonical.url.clone()) && !canonical.is_known {
                    return Some(match canonical.is_fetchable {
                        true => canonical.url,
                        false => url.to_owned(),
                    });
                }
                if self.learner.defer(url, &canonical) {
                    self.n_audits += 1;
                    self.queue.push_front((url.to_owned(), true));
                } else {
                    self.shadow.push((url.to_owned(), canonical.rules));
                }
                None
            }
        }
    }

    fn run(&mut self, shop: &mut Shop, max: usize) {
        self.seen.insert("http://shop.example/item/0".to_owned());
        self.queue
            .push_back(("http://shop.example/item/0".to_owned(), true));
        while self.n_fetched < max
            && let Some((url, is_wanted)) = self.queue.pop_front()
        {
            let url = match is_wanted {
                true => Some(url),
                false => self.meet(&url, true),
            };
            if let Some(url) = url {
                self.fetch(&url, shop);
            }
        }
    }

    fn fetch(&mut self, url: &str, shop: &mut Shop) {
        self.n_fetched += 1;
        let content = shop.content(url);
        let is_new = self.found.insert(content);
        for wanted in self.learner.fetched(url, Some(content)) {
            if self.seen.insert(wanted.clone()) {
                self.queue.push_front((wanted, true));
            }
        }
        for event in self.learner.take_events() {
            self.hear(event);
        }
        // Links of duplicates are not followed.
        if is_new {
            for link in shop.links(url) {
                if let Some(url) = self.meet(&link, false) {
                    self.queue.push_back((url, false));
                }
            }
        }
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Activated(id) => {
                let rule = self.learner.rule(id).unwrap().rule.to_string();
                self.active_after.insert(rule, self.n_fetched);
            }
            Event::Suspended(id) => {
                let standing = self.learner.rule(id).unwrap();
                self.worst = self.worst.max(standing.n_deferred);
                let shadow = std::mem::take(&mut self.shadow);
                for (url, rules) in shadow {
                    match rules.contains(&id) {
                        true => {
                            if let Some(url) = self.meet(&url, true) {
                                self.queue.push_back((url, false));
                            }
                        }
                        false => self.shadow.push((url, rules)),
                    }
                }
            }
        }
    }

    fn state(&self, rule: &str) -> State {
        let standing = self
            .learner
            .rules()
            .find(|one| one.rule.to_string() == rule);
        standing.unwrap().state
    }
}

fn crawl(fickle_share: f64, seed: u64, strict: Sequential) -> (Crawl, Shop) {
    let mut shop = Shop::new(400, fickle_share, seed);
    let mut crawl = Crawl::new(Config {
        has_prior: false,
        strict,
        ..Config::default()
    });
    let max = 6000;
    crawl.run(&mut shop, max);
    (crawl, shop)
}

/// The reference needs 609 fetches for the 400 items, with 21 equal pairs for each parameter. By
/// default, parameters with few values need 58; the last test shows the benefit.
#[test]
fn a_shop_with_sessions_is_crawled() {
    for (strict, most) in [
        (Sequential::default(), 609),
        (Config::default().strict, 720),
    ] {
        for seed in 1..=20 {
            let (crawl, shop) = crawl(0.0, seed, strict);
            let (n, audits) = (crawl.n_fetched, crawl.n_audits);
            println!("{n} fetches, {audits} audits, {:?}", crawl.active_after);
            assert_eq!(crawl.found.len(), shop.contents(), "everything is found");
            assert!(n <= most, "{n} fetches");
            assert!(crawl.active_after["parameter sid"] <= 70);
            for rule in ["parameter sid", "parameter sort", "parameter ref"] {
                assert_eq!(crawl.state(rule), State::Active, "{rule}");
            }
        }
    }
}

/// Without rules, the same crawl does not end.
#[test]
fn a_shop_without_rules_is_endless() {
    let mut shop = Shop::new(400, 0.0, 1);
    let mut crawl = Crawl::new(Config {
        max_hypotheses: 0,
        ..Config::default()
    });
    crawl.run(&mut shop, 3000);
    assert_eq!(crawl.n_fetched, 3000);
}

/// A parameter that matters only for some items: everything is found, and its rule does not stay
/// active. The reference needs 2,427 fetches.
#[test]
fn a_parameter_that_matters_sometimes() {
    for share in [0.05, 0.3] {
        for seed in 1..=20 {
            let (crawl, shop) = crawl(share, seed, Config::default().strict);
            let n = crawl.n_fetched;
            let (found, all) = (crawl.found.len(), shop.contents());
            println!(
                "{share}: {n} fetches, {found} of {all}, {} audits, worst {}, {:?}",
                crawl.n_audits, crawl.worst, crawl.active_after
            );
            assert_eq!(found, all);
            assert!(n <= 2427, "{n}");
            assert_ne!(crawl.state("parameter ref"), State::Active);
            assert_eq!(crawl.state("parameter sid"), State::Active);
            assert!(crawl.worst <= 50, "{}", crawl.worst);
        }
    }
}
