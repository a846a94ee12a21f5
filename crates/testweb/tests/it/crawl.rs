//! Compares the ground truth with a brute-force crawl over the network.
//!
//! This crawler knows only the host names of the web: it resolves them, reads robots files with its
//! own parser, and follows links and redirects. It queries the web only whether a path belongs to a
//! trap or a fault, since no crawler could end otherwise.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;

use testweb::truth::Visit;
use testweb::{Config, Kind, PageId, Robots, Server, Target};

use crate::client::{config, fetch, resolve};

const MAX_REDIRECTS: usize = 5;

struct Crawler<'a> {
    server: &'a Server,
    addresses: BTreeMap<String, Option<Ipv4Addr>>,
    robots: BTreeMap<String, Rules>,
    found: BTreeSet<PageId>,
}

/// Patterns, each with whether it allows.
type Rules = Vec<(String, bool)>;

impl Crawler<'_> {
    fn crawl(&mut self, seed: &str) {
        let mut seen = BTreeSet::from([seed.to_owned()]);
        let mut queue = VecDeque::from([(seed.to_owned(), 0)]);
        while let Some((url, n_hops)) = queue.pop_front() {
            for (next, n_hops) in self.visit(&url, n_hops) {
                if n_hops <= MAX_REDIRECTS && seen.insert(next.clone()) {
                    queue.push_back((next, n_hops));
                }
            }
            assert!(seen.len() < 50_000, "the web does not end at {url}");
        }
    }

    /// The links of a page, with the number of consecutive redirects so far.
    fn visit(&mut self, url: &str, n_hops: usize) -> Vec<(String, usize)> {
        let Some((host, target)) = split_url(url) else {
            return Vec::new();
        };
        let web = &self.server.web;
        let kind_of_target = web.target(host, target);
        if matches!(kind_of_target, Target::Trap | Target::Fault(_)) {
            return Vec::new();
        }
        if !self.is_allowed(host, target) {
            return Vec::new();
        }
        let Some(fetched) = self.get(host, target) else {
            return Vec::new();
        };
        match fetched.status {
            429 | 503 => self.visit(url, n_hops),
            300..400 => {
                let location = fetched.header("Location");
                let next = location.and_then(|location| join(url, location));
                next.map(|next| (next, n_hops + 1)).into_iter().collect()
            }
            200 => {
                let idx = web.find_host(host).unwrap();
                self.found.extend(web.page_at(idx, target));
                let page = String::from_utf8(fetched.body).unwrap();
                let hrefs = page.split("href=\"").skip(1);
                let links = hrefs.filter_map(|rest| join(url, rest.split('"').next()?));
                links.map(|link| (link, 0)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn get(&mut self, host: &str, target: &str) -> Option<crate::client::Fetched> {
        let server = self.server;
        let address = *self
            .addresses
            .entry(host.to_owned())
            .or_insert_with(|| resolve(server, host)?.1);
        let refuses = address? == Ipv4Addr::new(127, 250, 250, 250);
        if refuses {
            return None;
        }
        fetch(server, address?, host, target)
    }

    fn is_allowed(&mut self, host: &str, target: &str) -> bool {
        if !self.robots.contains_key(host) {
            let rules = self.read_robots(host);
            self.robots.insert(host.to_owned(), rules);
        }
        let rules = &self.robots[host];
        let matching = rules.iter().filter(|(pattern, _)| matches(pattern, target));
        let longest = matching.max_by_key(|(pattern, allows)| (pattern.len(), *allows));
        longest.is_none_or(|(_, allows)| *allows)
    }

    /// RFC 9309: 4xx and too many redirects allow everything, 5xx and no response disallow
    /// everything.
    fn read_robots(&mut self, host: &str) -> Rules {
        let closed = vec![("/".to_owned(), false)];
        let mut url = format!("http://{host}/robots.txt");
        for _ in 0..=MAX_REDIRECTS {
            let (host, target) = split_url(&url).unwrap();
            let Some(fetched) = self.get(host, target) else {
                return closed;
            };
            match fetched.status {
                200 => return parse_robots(&String::from_utf8_lossy(&fetched.body)),
                300..400 => url = join(&url, fetched.header("Location").unwrap()).unwrap(),
                400..500 => return Vec::new(),
                _ => return closed,
            }
        }
        Vec::new()
    }
}

/// The rules for `arose`, or those for all crawlers.
fn parse_robots(text: &str) -> Rules {
    let mut groups: BTreeMap<String, Rules> = BTreeMap::new();
    let mut agents: Vec<String> = Vec::new();
    let mut in_rules = false;
    for line in text.trim_start_matches('\u{feff}').split(['\r', '\n']) {
        let Some((name, value)) = line.split('#').next().unwrap().split_once(':') else {
            continue;
        };
        let value = value.trim();
        match name.trim().to_lowercase().as_str() {
            "user-agent" => {
                if in_rules {
                    agents.clear();
                    in_rules = false;
                }
                agents.push(value.to_lowercase());
                groups.entry(value.to_lowercase()).or_default();
            }
            rule @ ("allow" | "disallow") => {
                in_rules = true;
                for agent in agents.iter().filter(|_| !value.is_empty()) {
                    let rules = groups.get_mut(agent).unwrap();
                    rules.push((value.to_owned(), rule == "allow"));
                }
            }
            _ => {}
        }
    }
    let own = groups.remove("arose");
    own.or_else(|| groups.remove("*")).unwrap_or_default()
}

fn matches(pattern: &str, target: &str) -> bool {
    let (pattern, is_anchored) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut parts = pattern.split('*');
    let Some(mut rest) = target.strip_prefix(parts.next().unwrap()) else {
        return false;
    };
    for part in parts {
        match rest.find(part) {
            Some(place) => rest = &rest[place + part.len()..],
            None => return false,
        }
    }
    !is_anchored || rest.is_empty()
}

fn split_url(url: &str) -> Option<(&str, &str)> {
    let rest = url.strip_prefix("http://")?;
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].split(':').next()?;
    Some((host, if end == rest.len() { "/" } else { &rest[end..] }))
}

/// Resolves a link, as far as the web uses links; without the port, which is the same everywhere.
fn join(base: &str, link: &str) -> Option<String> {
    if link.contains(' ') {
        return None;
    }
    if link.starts_with("http://") {
        let (host, target) = split_url(link)?;
        return Some(format!("http://{host}{target}"));
    }
    let (host, target) = split_url(base)?;
    if link.starts_with('/') {
        return Some(format!("http://{host}{link}"));
    }
    let mut folders: Vec<&str> = target.split('/').collect();
    folders.pop();
    for segment in link.split('/') {
        match segment {
            "." => {}
            ".." => {
                folders.pop();
            }
            _ => folders.push(segment),
        }
    }
    Some(format!(
        "http://{host}/{}",
        folders.join("/").trim_start_matches('/')
    ))
}

#[track_caller]
fn check(config: Config) {
    let server = Server::start(config).unwrap();
    let home = server.web.url(PageId { host: 0, page: 0 });
    let mut crawler = Crawler {
        server: &server,
        addresses: BTreeMap::new(),
        robots: BTreeMap::new(),
        found: BTreeSet::new(),
    };
    crawler.crawl(&home);
    let visit = Visit {
        seeds: vec![home],
        max_redirects: MAX_REDIRECTS as u32,
        minute: None,
    };
    let reachable = server.web.reachable(&visit);
    let urls = |ids: BTreeSet<PageId>| -> Vec<String> {
        ids.into_iter().map(|id| server.web.url(id)).collect()
    };
    let (missed, unexpected) = (&reachable - &crawler.found, &crawler.found - &reachable);
    assert_eq!((urls(missed), urls(unexpected)), (Vec::new(), Vec::new()));
    let n_pages = server.web.pages().count();
    assert!(reachable.len() > n_pages / 2 && reachable.len() < n_pages);
    // The URLs that this parser allows are those that the judge allows, at noon.
    let mut log = server.log();
    log.started = std::time::Duration::from_secs(12 * 3600);
    assert!(log.disallowed(&server.web).is_empty());
    assert!(log.before_robots().is_empty());
}

#[test]
fn the_truth_is_what_a_crawl_finds() {
    check(config());
}

#[test]
fn every_robots_file_means_what_is_said() {
    check(Config {
        n_hosts: 43,
        kinds: vec![(Kind::Plain, 1)],
        robots: Robots::EVERY.map(|(robots, _)| (robots, 1)).to_vec(),
        ..config()
    });
}
