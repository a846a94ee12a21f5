//! The graph: the pages of a host, their paths, and their links.
//!
//! *Question.* How can a page know its links without storing them, so that all pages are reachable
//! and degrees follow the laws of the web?
//!
//! *Idea.* The pages of a host form a tree by arithmetic: the children of page `p` are `4 p + 1` to
//! `4 p + 4`. Home pages link to the home pages of other hosts along a random tree. In addition,
//! each page has random links. Their number follows a Pareto law whose density falls as `d^-2.72`.
//! Their targets come from [`Popularity`](crate::random::Popularity), whose in-degrees fall as
//! `d^-2.1` (Broder et al. 2000). One link in five leaves the host.
//!
//! *Cost.* One random number and one eleventh power per link; nothing is stored.

use crate::config::Kind;
use crate::fault::Fault;
use crate::random::{Random, key};
use crate::robots::PRIVATE;
use crate::truth::Likeness;
use crate::web::Web;

/// A page: its host and its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageId {
    /// Index into [`Web::hosts`].
    pub host: u32,
    /// Below [`Host::n_pages`](crate::Host::n_pages).
    pub page: u32,
}

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Link {
    /// To an ordinary page of the same host: the same bytes on a mirror.
    Own(u32),
    /// To an ordinary page, with the name of its host.
    Page(PageId),
    /// To a path of the same host that is not an ordinary page.
    Path(String),
    /// To any other URL.
    Url(String),
}

/// Number of children of a page in the tree of its host.
const BRANCHES: u32 = 4;
/// Every tenth page is in the disallowed directory.
const PRIVATE_EVERY: u32 = 10;
const FEWEST_LINKS: f64 = 8.0;
const MOST_LINKS: f64 = 200.0;

impl Web {
    /// The links of a page, in order.
    pub(crate) fn links(&self, id: PageId) -> Vec<Link> {
        let host = self.host(id);
        // Duplicates repeat the links of their originals, and mirrors those of their original host.
        let page = self.copied(id).map_or(id.page, |(page, _)| page);
        let mut random = Random::new(key(key(host.key, u64::from(page)), 1));
        let n_links = random.pareto(FEWEST_LINKS, 1.72).min(MOST_LINKS) as usize;
        if host.kind == Kind::Topic {
            return self.links_of_topic(id);
        }
        if host.kind == Kind::Shop {
            return (0..host.n_pages).map(Link::Own).collect();
        }
        let mut links = vec![Link::Own(0)];
        let first = page.saturating_mul(BRANCHES).saturating_add(1);
        let last = first.saturating_add(BRANCHES).min(host.n_pages);
        links.extend((first..last).map(Link::Own));
        if page == 0 && host.kind == Kind::SameHome {
            return links;
        }
        if page == 0 {
            let children = &self.hosts()[host.original as usize].children;
            links.extend(
                children
                    .iter()
                    .map(|&host| Link::Page(PageId { host, page: 0 })),
            );
            self.special_links(id.host, &mut links);
        }
        while links.len() < n_links {
            let target = match random.below(5) {
                0 => Link::Page(self.popular_page(&mut random)),
                _ => Link::Own(host.popularity.draw(&mut random)),
            };
            links.push(target);
        }
        links
    }

    fn popular_page(&self, random: &mut Random) -> PageId {
        let host = self.popularity.draw(random);
        let page = self.hosts()[host as usize].popularity.draw(random);
        PageId { host, page }
    }

    /// The links of the home page of a host with faults.
    fn special_links(&self, host: u32, links: &mut Vec<Link>) {
        let paths: &[&str] = match self.hosts()[host as usize].kind {
            Kind::Calendar => &["/cal/2026/1"],
            Kind::Maze => &["/maze/0"],
            Kind::Deep => &["/deep/"],
            Kind::SoftNotFound => &["/gone/0"],
            Kind::Redirects => &[
                "/hop/0",
                "/hop/2",
                "/hop/9",
                "/hop/10000",
                "/loop/a",
                "/self",
                "/spiral/0",
                "/away/1",
                "/relative/1",
                "/nowhere",
                "/garbage",
                "/refresh",
            ],
            _ => &[],
        };
        links.extend(paths.iter().map(|&path| Link::Path(path.to_owned())));
        match self.hosts()[host as usize].kind {
            Kind::Broken => links.extend(Fault::ALL.map(|fault| Link::Path(fault.path()))),
            Kind::EndlessHosts => {
                let name = format!("x0.{}", self.hosts()[host as usize].name);
                links.push(Link::Url(self.origin(&name) + "/"));
            }
            _ => {}
        }
    }

    /// The page of the same host that this one duplicates, if any. Only leaves of the tree are
    /// duplicates, so that no page becomes unreachable.
    pub(crate) fn copied(&self, id: PageId) -> Option<(u32, Likeness)> {
        let host = self.host(id);
        let is_leaf = id.page.saturating_mul(BRANCHES).saturating_add(1) >= host.n_pages;
        // If the text depends on more than the page, a duplicate would not remain one.
        let is_steady = matches!(host.kind, Kind::Plain | Kind::Mirror | Kind::NearMirror);
        if !is_leaf || !is_steady || id.page < 2 {
            return None;
        }
        let mut random = Random::new(key(key(host.key, u64::from(id.page)), 2));
        if random.unit() >= self.config().copies {
            return None;
        }
        let likeness = match random.below(2) {
            0 => Likeness::Exact,
            _ => Likeness::Near,
        };
        // An inner page, which is never a duplicate itself.
        let n_inner = host.n_pages.saturating_sub(2) / BRANCHES;
        let page = 1 + random.below(u64::from(n_inner)) as u32;
        (n_inner > 0).then_some((page, likeness))
    }

    /// Appends the path of a page, without session IDs.
    pub(crate) fn push_path(&self, id: PageId, out: &mut Vec<u8>) {
        let host = self.host(id);
        match (host.kind, id.page) {
            (_, 0) => out.push(b'/'),
            (Kind::Dust, page) => {
                out.extend_from_slice(b"/story/");
                push_number(page, out);
            }
            (_, page) => {
                if page % PRIVATE_EVERY == PRIVATE_EVERY - 1 {
                    out.extend_from_slice(PRIVATE.as_bytes());
                } else {
                    let host_key = match host.kind {
                        Kind::SameHome => self.config().seed,
                        _ => host.key,
                    };
                    let folder = key(host_key, u64::from(page)) as u8 % 8;
                    out.extend_from_slice(&[b'/', b't', b'0' + folder, b'/']);
                }
                out.push(b'p');
                push_number(page, out);
                out.extend_from_slice(b".html");
            }
        }
    }

    /// The path of a page, without session IDs.
    #[must_use]
    pub fn path(&self, id: PageId) -> String {
        let mut path = Vec::new();
        self.push_path(id, &mut path);
        String::from_utf8(path).expect("paths are ASCII")
    }

    /// The page at a path with its query, for all session IDs and other forms of the host.
    #[must_use]
    pub fn page_at(&self, host: u32, target: &str) -> Option<PageId> {
        let kind = self.hosts()[host as usize].kind;
        if !kind.has_pages() {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if kind == Kind::Dust {
            return self.story_at(host, path, query);
        }
        let path = match kind {
            Kind::PathCrumb => strip_crumb(path).map_or(path, |(_, rest)| rest),
            _ => path,
        };
        if path == "/" {
            return Some(PageId { host, page: 0 });
        }
        let name = path.rsplit_once("/p")?.1.strip_suffix(".html")?;
        let page = name.parse().ok().filter(|&page| page > 0)?;
        let id = PageId { host, page };
        (page < self.host(id).n_pages && self.path(id) == path).then_some(id)
    }

    fn story_at(&self, host: u32, path: &str, query: &str) -> Option<PageId> {
        let path = path.strip_suffix("index.html").unwrap_or(path);
        let number = match path {
            "/" => "0",
            "/story" => query.strip_prefix("id=")?,
            _ => path.strip_prefix("/story/")?.trim_end_matches('/'),
        };
        let page = number.parse().ok()?;
        (page < self.hosts()[host as usize].n_pages).then_some(PageId { host, page })
    }
}

/// Splits `/S-XXXXXXXXXXX/rest` into the session ID and `/rest`.
pub(crate) fn strip_crumb(path: &str) -> Option<(&str, &str)> {
    let rest = path.strip_prefix("/S-")?;
    let (session, rest) = (rest.get(..11)?, rest.get(11..)?);
    let is_crumb = rest.starts_with('/') && session.bytes().all(|b| b.is_ascii_alphanumeric());
    is_crumb.then_some((session, rest))
}

pub(crate) fn push_number(number: u32, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 10];
    let mut start = digits.len();
    let mut rest = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, PageCount};

    fn web() -> Web {
        Web::new(Config::default()).unwrap()
    }

    #[test]
    fn pages_are_found_by_their_paths() {
        let web = web();
        for id in web.pages() {
            assert_eq!(
                web.page_at(id.host, &web.path(id)),
                Some(id),
                "{}",
                web.path(id)
            );
        }
    }

    #[test]
    fn nothing_lies_elsewhere() {
        let web = web();
        for path in [
            "",
            "/p1.html",
            "/t9/p1.html",
            "/t0/p0.html",
            "/t0/p01.html",
            "/x",
        ] {
            assert_eq!(web.page_at(0, path), None, "{path}");
        }
        let beyond = format!("/private/p{}9.html", web.hosts()[0].n_pages);
        assert_eq!(web.page_at(0, &beyond), None);
    }

    #[test]
    fn crumbs_do_not_matter() {
        let web = web();
        let host_of = |kind| {
            let found = web.hosts().iter().position(|host| host.kind == kind);
            found.unwrap() as u32
        };
        let page = |host| Some(PageId { host, page: 3 });
        let crumb = host_of(Kind::PathCrumb);
        let path = web.path(page(crumb).unwrap());
        assert_eq!(
            web.page_at(crumb, &format!("/S-abcdefghij0{path}")),
            page(crumb)
        );
        assert_eq!(web.page_at(crumb, &format!("/S-abc{path}")), None);
        let dust = host_of(Kind::Dust);
        for path in [
            "/story/3",
            "/story?id=3",
            "/story/3/index.html",
            "/story/3/",
        ] {
            assert_eq!(web.page_at(dust, path), page(dust), "{path}");
        }
    }

    /// The density of in-degrees falls as `d^-2.1`, so the counts `N(>= d)` fall as `d^-1.1`: from
    /// 20 to 160 links, the share shrinks by `8^1.1 = 9.8`. The tree and the finite web distort
    /// this, so a factor between 5 and 20 passes. Links without preference would give thousands.
    #[test]
    fn few_pages_have_most_links() {
        let web = Web::new(Config {
            pages: PageCount::Fixed(200),
            ..Config::plain(100)
        })
        .unwrap();
        let mut degrees = std::collections::BTreeMap::new();
        for id in web.pages() {
            for link in web.links(id) {
                let target = match link {
                    Link::Own(page) => PageId {
                        host: id.host,
                        page,
                    },
                    Link::Page(target) => target,
                    _ => continue,
                };
                *degrees.entry(target).or_insert(0) += 1;
            }
        }
        let at_least = |d: u32| degrees.values().filter(|&&degree| degree >= d).count() as f64;
        let ratio = at_least(20) / at_least(160);
        assert!((5.0..20.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn numbers() {
        for number in [0, 7, 10, 4_294_967_295] {
            let mut out = Vec::new();
            push_number(number, &mut out);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
