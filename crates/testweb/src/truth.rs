//! The ground truth: which pages exist, which can be reached, which duplicate others.
//!
//! A crawler is compared with this. It is computed from the same functions that generate the pages,
//! so a test of this crate crawls a small web by brute force and compares.
//!
//! Pages are counted by [`PageId`], not by URL: a page with a thousand session IDs is one page, and
//! [`Web::page_at`] says which. Traps and faults are not pages.
//! [`Folder::targets`](crate::Folder::targets) lists the files of a directory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::graph::{Link, PageId};
use crate::robots::Verdict;
use crate::web::{Target, Web};

/// The similarity of a duplicate to its original.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Likeness {
    /// The same bytes.
    Exact,
    /// A few words differ.
    Near,
}

/// How a crawl proceeds.
#[derive(Debug, Clone)]
pub struct Visit {
    /// The URLs it starts from.
    pub seeds: Vec<String>,
    /// Maximum number of consecutive redirects.
    pub max_redirects: u32,
    /// The minute of the day (UTC), if visiting hours apply.
    pub minute: Option<u16>,
}

/// A page with duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// The original page.
    pub original: PageId,
    /// Its duplicates, in order.
    pub copies: Vec<(PageId, Likeness)>,
}

impl Web {
    /// Every ordinary page of every host, by host and number.
    pub fn pages(&self) -> impl Iterator<Item = PageId> + '_ {
        let hosts = self.hosts().iter().zip(0_u32..);
        hosts.flat_map(|(own, host)| (0..own.n_pages).map(move |page| PageId { host, page }))
    }

    /// The canonical URL of a page.
    #[must_use]
    pub fn url(&self, id: PageId) -> String {
        self.origin(&self.host(id).name) + &self.path(id)
    }

    /// The original of a page, if it is a duplicate.
    #[must_use]
    pub fn original(&self, id: PageId) -> Option<(PageId, Likeness)> {
        let host = self.host(id);
        let by_host = match host.kind {
            crate::Kind::Mirror => Some(Likeness::Exact),
            crate::Kind::NearMirror => Some(Likeness::Near),
            _ => None,
        };
        let by_page = self.copied(id);
        let original = PageId {
            host: host.original,
            page: by_page.map_or(id.page, |(page, _)| page),
        };
        // A near duplicate of an exact duplicate is near.
        let likeness = by_host.max(by_page.map(|(_, likeness)| likeness))?;
        Some((original, likeness))
    }

    /// Every page that has duplicates.
    #[must_use]
    pub fn duplicates(&self) -> Vec<Cluster> {
        let mut groups: BTreeMap<PageId, Vec<(PageId, Likeness)>> = BTreeMap::new();
        for id in self.pages() {
            if let Some((original, likeness)) = self.original(id) {
                groups.entry(original).or_default().push((id, likeness));
            }
        }
        let groups = groups.into_iter();
        groups
            .map(|(original, copies)| Cluster { original, copies })
            .collect()
    }

    /// The pages that a crawl within the rules of robots files fetches, in order.
    #[must_use]
    pub fn reachable(&self, visit: &Visit) -> BTreeSet<PageId> {
        let mut found = BTreeSet::new();
        let mut queue = VecDeque::new();
        for seed in &visit.seeds {
            let page = self
                .split_url(seed)
                .and_then(|(host, path)| self.follow(host, path, visit));
            queue.extend(page.filter(|&id| found.insert(id)));
        }
        while let Some(id) = queue.pop_front() {
            let links = self.links(id);
            let targets = links
                .iter()
                .filter_map(|link| self.followed(id, link, visit));
            for target in targets {
                if found.insert(target) {
                    queue.push_back(target);
                }
            }
        }
        found
    }

    fn followed(&self, from: PageId, link: &Link, visit: &Visit) -> Option<PageId> {
        let id = match link {
            Link::Own(page) => PageId {
                page: *page,
                ..from
            },
            Link::Page(id) => *id,
            Link::Path(path) => return self.follow(from.host, path, visit),
            Link::Url(_) => return None,
        };
        let exists = id.page < self.host(id).n_pages;
        (exists && self.is_allowed(id.host, &self.path(id), visit)).then_some(id)
    }

    /// The page that a path leads to, through redirects.
    fn follow(&self, mut host: u32, path: &str, visit: &Visit) -> Option<PageId> {
        let mut path = path.to_owned();
        for _ in 0..=visit.max_redirects {
            if !self.is_allowed(host, &path, visit) {
                return None;
            }
            let location = match self.target(&self.hosts()[host as usize].name, &path) {
                Target::Page(id) => return Some(id),
                Target::Redirect(redirect) => redirect.location?,
                _ => return None,
            };
            path = match self.split_url(&location) {
                Some((other, other_path)) => {
                    host = other;
                    other_path.to_owned()
                }
                // The only relative form in use goes up from one directory to the root.
                None => location.strip_prefix("..").unwrap_or(&location).to_owned(),
            };
        }
        None
    }

    fn is_allowed(&self, host: u32, path: &str, visit: &Visit) -> bool {
        self.robots(host).verdict(path, visit.minute) == Verdict::Allowed
    }

    /// Host and target of a URL in this web.
    #[must_use]
    pub fn split_url<'a>(&self, url: &'a str) -> Option<(u32, &'a str)> {
        let rest = url.strip_prefix("http://")?;
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let name = authority.split(':').next().unwrap_or_default();
        let target = if target.is_empty() { "/" } else { target };
        Some((self.find_host(name)?, target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::web::{Moment, Request};

    fn body(web: &Web, id: PageId) -> Vec<u8> {
        let request = Request {
            host: &web.host(id).name,
            target: &web.path(id),
            ..Request::default()
        };
        web.answer(&request, &Moment::default(), Vec::new()).body
    }

    fn words(page: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(page);
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn shingles(page: &[u8]) -> BTreeSet<Vec<String>> {
        words(page).windows(8).map(<[String]>::to_vec).collect()
    }

    fn jaccard(a: &BTreeSet<Vec<String>>, b: &BTreeSet<Vec<String>>) -> f64 {
        a.intersection(b).count() as f64 / a.union(b).count() as f64
    }

    fn web() -> Web {
        Web::new(Config {
            copies: 0.3,
            ..Config::default()
        })
        .unwrap()
    }

    #[test]
    fn exact_copies_have_the_same_bytes_and_near_ones_almost() {
        let web = web();
        let mut n_checked = [0, 0];
        for group in web.duplicates().iter().step_by(7) {
            let original = body(&web, group.original);
            for &(copy, likeness) in group.copies.iter().take(3) {
                let copy = body(&web, copy);
                match likeness {
                    Likeness::Exact => assert!(copy == original),
                    Likeness::Near => {
                        assert!(copy != original);
                        let similarity = jaccard(&shingles(&copy), &shingles(&original));
                        assert!(similarity > 0.9, "{similarity}");
                    }
                }
                n_checked[likeness as usize] += 1;
            }
        }
        assert!(n_checked.into_iter().all(|n| n > 20), "{n_checked:?}");
    }

    /// Pages that are not duplicates of each other share no shingle, except for templates.
    #[test]
    fn other_pages_are_unlike() {
        let web = web();
        let plain = web
            .pages()
            .filter(|&id| web.original(id).is_none() && web.host(id).kind == crate::Kind::Plain);
        let sample = plain.step_by(40).take(20);
        let sets: Vec<_> = sample.map(|id| shingles(&body(&web, id))).collect();
        for (i, a) in sets.iter().enumerate() {
            for b in &sets[..i] {
                assert!(jaccard(a, b) < 0.05);
            }
        }
    }

    #[test]
    fn nothing_is_reachable_from_nowhere() {
        let visit = Visit {
            seeds: vec!["http://nowhere.test/".to_owned(), "garbage".to_owned()],
            max_redirects: 5,
            minute: None,
        };
        assert!(web().reachable(&visit).is_empty());
    }
}
