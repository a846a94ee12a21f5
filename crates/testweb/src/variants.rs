//! Hosts whose pages have many URLs, one flavour for each way to make them.
//!
//! | flavour | URLs | irrelevant parts |
//! |---|---|---|
//! | session | `/item/7?sid=X&sort=name&ref=mail` | `sid`, `sort`, `ref` |
//! | fickle | the same | `sid`, `sort`; `ref` matters for one item in twenty |
//! | path session | `/item/7;jsessionid=X` | `jsessionid` |
//! | crumb | `/S-XXXXXXXXXXX/item/7` | the first segment |
//! | campaign | `/item/7?utm_source=a&utm_medium=b` | both |
//! | index | `/item/7/` and `/item/7/index.html` | `index.html` |
//! | print | `/item/7` and `/print/item/7` | `print` |
//! | twin | `a.test/item/7` and `www.a.test/item/7` | `www.` |
//! | query | `/view.php?id=7&lang=de`, `/list/7?page=2` | nothing |
//! | pair | `/item/7?sid=X&a=1&b=2` | `sid`; `b` matters if `a` is 1 |
//! | soft | `/item/7?sid=X&p=2`, any other | every URL has the same page: an error |
//!
//! Items link to each other. The linked items, and those parts of the links that may matter, are
//! the same in every response. Session IDs are new in each link of each URL, so that URLs never
//! end.

use std::collections::BTreeSet;

use crate::config::Kind;
use crate::page::session_name;
use crate::prose::Prose;
use crate::random::{Random, key, text_key};
use crate::reply::Reply;
use crate::web::Web;

/// How a host makes variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flavour {
    /// A session ID, a sort order and a tracking parameter in the query, which do not matter.
    Session,
    /// The same, but the tracking parameter matters for one item in twenty.
    Fickle,
    /// A session ID after a semicolon in the path.
    PathSession,
    /// A session ID as a segment of the path.
    Crumb,
    /// Tracking parameters of campaigns.
    Campaign,
    /// Directories with and without the name of their page.
    Index,
    /// Print views.
    Print,
    /// With and without `www.`.
    Twin,
    /// Parameters that select the page.
    Query,
    /// A parameter that matters only with another.
    Pair,
    /// One error page with status 200 for all URLs.
    Soft,
}

impl Flavour {
    /// All flavours; hosts of this kind have them in turn.
    pub const ALL: [Self; 11] = [
        Self::Session,
        Self::Fickle,
        Self::PathSession,
        Self::Crumb,
        Self::Campaign,
        Self::Index,
        Self::Print,
        Self::Twin,
        Self::Query,
        Self::Pair,
        Self::Soft,
    ];
}

/// The parts of a URL that select a page of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selection {
    /// The item.
    pub item: u32,
    /// Parts of the URL that may matter, as written.
    pub parts: String,
}

/// Number of links of an item to the items below it in a tree; there are as many other links.
const BRANCHES: u32 = 4;
const OTHERS: u64 = 4;
/// One item in this many is fickle.
const FICKLE: u32 = 20;
/// Number of sentences of a page.
const N_SENTENCES: usize = 24;

impl Web {
    /// The flavour of a host of [variants](Kind::Variants).
    #[must_use]
    pub fn flavour(&self, host: u32) -> Option<Flavour> {
        let is_it = self.hosts().get(host as usize)?.kind == Kind::Variants;
        let n_before = self.hosts()[..host as usize].iter();
        let n_before = n_before.filter(|host| host.kind == Kind::Variants).count();
        is_it.then(|| Flavour::ALL[n_before % Flavour::ALL.len()])
    }

    /// The selection of a URL of such a host, with a number for its content; none if there is no
    /// page.
    #[must_use]
    pub fn variant_at(&self, host: u32, target: &str) -> Option<(Selection, u64)> {
        let flavour = self.flavour(host)?;
        let n_items = self.hosts()[host as usize].n_pages;
        if target == "/" {
            return Some(select(flavour, 0, "", self.host_key(host)));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = match flavour {
            Flavour::Crumb => crate::graph::strip_crumb(path).map_or(path, |(_, rest)| rest),
            Flavour::Print => path.strip_prefix("/print").unwrap_or(path),
            _ => path,
        };
        let rest = path.strip_prefix("/item/");
        let number = match flavour {
            Flavour::PathSession => rest?.split(";jsessionid=").next()?,
            Flavour::Index => {
                let rest = rest?;
                rest.strip_suffix("/index.html")
                    .or_else(|| rest.strip_suffix('/'))?
            }
            Flavour::Query if path == "/view.php" => parameter(query, "id")?,
            Flavour::Query => path.strip_prefix("/list/")?,
            _ => rest?,
        };
        let item: u32 = number.parse().ok().filter(|&item| item < n_items)?;
        let parts = match flavour {
            Flavour::Session | Flavour::Fickle => mark(query, &["sort", "ref"]),
            Flavour::Pair => mark(query, &["a", "b"]),
            Flavour::Query if path == "/view.php" => {
                format!("view&lang={}", parameter(query, "lang").unwrap_or("en"))
            }
            Flavour::Query => format!("list&page={}", parameter(query, "page").unwrap_or("1")),
            _ => String::new(),
        };
        Some(select(flavour, item, &parts, self.host_key(host)))
    }

    /// All selections of the links of a host, which stay distinct under correct rules, and the
    /// contents.
    #[must_use]
    pub fn variants(&self, host: u32) -> (BTreeSet<Selection>, BTreeSet<u64>) {
        let n_items = self.hosts()[host as usize].n_pages;
        let mut selections = BTreeSet::new();
        let mut contents = BTreeSet::new();
        let flavour = self.flavour(host);
        let links = (0..n_items).flat_map(|item| self.variant_links(host, item));
        for (item, parts) in std::iter::once((0, String::new())).chain(links) {
            if let Some(flavour) = flavour {
                let (selection, content) = select(flavour, item, &parts, self.host_key(host));
                selections.insert(selection);
                contents.insert(content);
            }
        }
        (selections, contents)
    }

    fn host_key(&self, host: u32) -> u64 {
        self.hosts()[host as usize].key
    }

    /// The items that an item links to, with the parts that may matter.
    fn variant_links(&self, host: u32, item: u32) -> Vec<(u32, String)> {
        let own = &self.hosts()[host as usize];
        let mut random = Random::new(key(key(own.key, u64::from(item)), 31));
        let first = item.saturating_mul(BRANCHES).saturating_add(1);
        let below = first..first.saturating_add(BRANCHES).min(own.n_pages);
        let mut items: Vec<u32> = below.collect();
        items.extend((0..OTHERS).map(|_| random.below(u64::from(own.n_pages)) as u32));
        let flavour = self.flavour(host);
        let links = items.into_iter().map(|item| {
            let parts = flavour.map_or_else(String::new, |flavour| draw(flavour, &mut random));
            (item, parts)
        });
        links.collect()
    }

    /// The response to a request to a host of variants.
    pub(crate) fn answer_variant(&self, host: u32, target: &str) -> Reply {
        let own = &self.hosts()[host as usize];
        let is_soft = self.flavour(host) == Some(Flavour::Soft);
        let found = self.variant_at(host, target);
        let (item, content) = match found {
            Some((selection, content)) => (selection.item, content),
            None if is_soft => (0, select(Flavour::Soft, 0, "", own.key).1),
            None => return Reply::html(404, b"<p>Not found\n".to_vec()),
        };
        let mut body = b"<!doctype html><html><head><title>".to_vec();
        let mut prose = Prose::new(self.vocabulary(), content, None);
        prose.words(4, &mut body);
        body.extend_from_slice(b"</title></head><body><p>");
        prose.sentences(N_SENTENCES, &mut body);
        body.extend_from_slice(b"</p>\n");
        // Pages without a session ID are the same, byte for byte, whatever their URL.
        let url_key = match self.flavour(host) {
            Some(Flavour::Index | Flavour::Print | Flavour::Twin) => key(own.key, item.into()),
            _ => text_key(own.key, target),
        };
        for (idx, (to, parts)) in (0..).zip(self.variant_links(host, item)) {
            let session = key(url_key, idx);
            let link = self.variant_link(host, to, &parts, session);
            body.extend_from_slice(format!("<a href=\"{link}\">").as_bytes());
            Prose::new(self.vocabulary(), key(content, idx), None).words(2, &mut body);
            body.extend_from_slice(b"</a>\n");
        }
        body.extend_from_slice(b"</body></html>\n");
        Reply::html(200, body)
    }

    /// A URL of an item, with a session ID or in a form selected by a number.
    fn variant_link(&self, host: u32, item: u32, parts: &str, session: u64) -> String {
        let name = session_name(session);
        let flavour = self.flavour(host);
        match flavour.unwrap_or(Flavour::Query) {
            Flavour::Session | Flavour::Fickle | Flavour::Pair | Flavour::Soft => {
                format!("/item/{item}?sid={name}{parts}")
            }
            Flavour::PathSession => format!("/item/{item};jsessionid={name}"),
            Flavour::Crumb => format!("/S-{name}/item/{item}"),
            Flavour::Campaign => {
                let medium = ["mail", "web", "ad"][(session % 3) as usize];
                format!(
                    "/item/{item}?utm_source={}&utm_medium={medium}",
                    session % 97
                )
            }
            Flavour::Index => {
                let end = ["", "index.html"][(session % 2) as usize];
                format!("/item/{item}/{end}")
            }
            Flavour::Print => {
                let start = ["", "/print"][(session % 2) as usize];
                format!("{start}/item/{item}")
            }
            Flavour::Twin => {
                let own = &self.hosts()[host as usize].name;
                let start = ["", "www."][(session % 2) as usize];
                self.origin(&format!("{start}{own}")) + &format!("/item/{item}")
            }
            Flavour::Query => match parts.strip_prefix("view") {
                Some(parts) => format!("/view.php?id={item}{parts}"),
                None => {
                    let parts = parts.strip_prefix("list&").unwrap_or(parts);
                    format!("/list/{item}?{parts}")
                }
            },
        }
    }
}

impl Web {
    /// A page with a session ID in each relative link.
    pub(crate) fn with_sessions(&self, host: u32, target: &str, html: &[u8]) -> Vec<u8> {
        const START: &[u8] = b"href=\"";
        let url_key = text_key(self.host_key(host), target);
        let mut out = Vec::with_capacity(html.len() + html.len() / 8);
        let mut rest = html;
        let mut n = 0;
        while let Some(at) = rest.windows(START.len()).position(|some| some == START) {
            let (before, link) = rest.split_at(at + START.len());
            out.extend_from_slice(before);
            let end = link.iter().position(|&byte| byte == b'"');
            let (link, after) = link.split_at(end.unwrap_or(link.len()));
            let path = link.iter().position(|&byte| byte == b'#');
            let (path, fragment) = link.split_at(path.unwrap_or(link.len()));
            out.extend_from_slice(path);
            if !path.is_empty() && !path.iter().any(|byte| b":?".contains(byte)) {
                let session = key(url_key, n);
                out.extend_from_slice(format!("?sid={}", session_name(session)).as_bytes());
                if session.is_multiple_of(2) {
                    let mark = format!("&amp;utm_source={}", session / 2 % 9);
                    out.extend_from_slice(mark.as_bytes());
                }
                n += 1;
            }
            out.extend_from_slice(fragment);
            rest = after;
        }
        out.extend_from_slice(rest);
        out
    }
}

/// Random parts of a link that may matter.
fn draw(flavour: Flavour, random: &mut Random) -> String {
    let mut one_of =
        |values: &[&str]| values[random.below(values.len() as u64) as usize].to_owned();
    match flavour {
        Flavour::Session | Flavour::Fickle => one_of(&[
            "",
            "",
            "",
            "",
            "&sort=price",
            "&sort=name",
            "&ref=home",
            "&ref=mail",
        ]),
        Flavour::Query => one_of(&[
            "view&lang=de",
            "view&lang=en",
            "list&page=1",
            "list&page=2",
            "list&page=3",
        ]),
        Flavour::Pair => one_of(&["&a=0&b=1", "&a=0&b=2", "&a=1&b=1", "&a=1&b=2"]),
        Flavour::Soft => one_of(&["&p=1", "&p=2", "&p=3"]),
        _ => String::new(),
    }
}

/// The selection of a URL, from the parts that may matter, and its content.
fn select(flavour: Flavour, item: u32, parts: &str, host_key: u64) -> (Selection, u64) {
    let value = |name| parameter(parts.trim_start_matches('&'), name).unwrap_or("");
    let parts = match flavour {
        Flavour::Fickle if !value("ref").is_empty() => format!("ref={}", value("ref")),
        Flavour::Query if item == 0 && parts.is_empty() => "view&lang=en".to_owned(),
        Flavour::Query => parts.to_owned(),
        Flavour::Pair => format!("a={} b={}", value("a"), value("b")),
        _ => String::new(),
    };
    let matters = match flavour {
        Flavour::Fickle => item % FICKLE == 3,
        Flavour::Pair => parts.starts_with("a=1"),
        _ => true,
    };
    let content = match flavour {
        Flavour::Soft => 0,
        Flavour::Pair if !matters => text_key(u64::from(item), parts.get(..3).unwrap_or("")),
        _ if !matters => u64::from(item),
        _ => text_key(u64::from(item), &parts),
    };
    (Selection { item, parts }, key(key(host_key, 32), content))
}

/// The value of a parameter.
fn parameter<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let mut all = query.split('&').filter_map(|one| one.split_once('='));
    all.find(|&(found, _)| found == name)
        .map(|(_, value)| value)
}

/// These parameters of a query, in this order.
fn mark(query: &str, names: &[&str]) -> String {
    let parts = names.iter().filter_map(|name| {
        let value = parameter(query, name)?;
        Some(format!("&{name}={value}"))
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, PageCount};
    use crate::web::{Moment, Request};

    fn web() -> Web {
        Web::new(Config {
            pages: PageCount::Fixed(60),
            ..Config::variants(1)
        })
        .unwrap()
    }

    fn get(web: &Web, host: u32, target: &str) -> (u16, String) {
        let request = Request {
            host: &web.hosts()[host as usize].name,
            target,
            ..Request::default()
        };
        let reply = web.answer(&request, &Moment::default(), Vec::new());
        (reply.status, String::from_utf8(reply.body).unwrap())
    }

    /// The links of a page, without the name of the host.
    fn links(html: &str) -> Vec<String> {
        let links = html.split("<a href=\"").skip(1);
        let links = links.filter_map(|link| link.split_once('"'));
        let path = |link: &str| match link.split_once("://") {
            Some((_, rest)) => rest[rest.find('/').unwrap()..].to_owned(),
            None => link.to_owned(),
        };
        links.map(|(link, _)| path(link)).collect()
    }

    fn text(html: &str) -> &str {
        html.split("<p>")
            .nth(1)
            .unwrap()
            .split("</p>")
            .next()
            .unwrap()
    }

    /// Following all links, but each selection only once, finds everything.
    #[test]
    fn all_that_is_linked_can_be_found() {
        let web = web();
        for host in 1..=Flavour::ALL.len() as u32 {
            let flavour = web.flavour(host).unwrap();
            let mut found = BTreeSet::new();
            let mut contents = BTreeSet::new();
            let mut texts = BTreeSet::new();
            let mut queue = vec!["/".to_owned()];
            while let Some(target) = queue.pop() {
                let Some((selection, content)) = web.variant_at(host, &target) else {
                    panic!("{flavour:?} {target}");
                };
                if !found.insert(selection) {
                    continue;
                }
                let (status, html) = get(&web, host, &target);
                assert_eq!(status, 200, "{target}");
                contents.insert(content);
                texts.insert(text(&html).to_owned());
                queue.extend(links(&html));
            }
            assert_eq!((found, contents), web.variants(host), "{flavour:?}");
            let (_, contents) = web.variants(host);
            assert_eq!(texts.len(), contents.len(), "{flavour:?}");
        }
    }

    #[test]
    fn folders_get_sessions_too() {
        let html =
            b"<a href=\"a.html#x\">a</a> <a href=\"http://h/\"> <a href=\"#y\"> <a href=\"b/\">";
        let html = web().with_sessions(1, "/", html);
        let html = String::from_utf8(html).unwrap();
        let sessions = html.matches("?sid=").count();
        assert!(html.contains("href=\"a.html?sid=") && html.contains("href=\"b/?sid="));
        assert!(html.contains("#x\">a</a>") && html.contains("href=\"#y\""));
        assert_eq!(sessions, 2, "{html}");
    }

    /// Parts that do not matter do not change the text; parts that matter do.
    #[test]
    fn only_what_matters_matters() {
        let web = web();
        let host = |flavour| {
            let hosts = 1..=Flavour::ALL.len() as u32;
            hosts
                .into_iter()
                .find(|&host| web.flavour(host) == Some(flavour))
                .unwrap()
        };
        let is_same = |flavour, a: &str, b: &str| {
            let [a, b] = [a, b].map(|target| get(&web, host(flavour), target));
            assert_eq!((a.0, b.0), (200, 200));
            text(&a.1) == text(&b.1)
        };
        use Flavour::*;
        assert!(is_same(
            Session,
            "/item/7",
            "/item/7?sid=x&sort=name&ref=mail"
        ));
        assert!(!is_same(Session, "/item/7", "/item/8"));
        assert!(is_same(Fickle, "/item/7", "/item/7?ref=mail"));
        assert!(!is_same(Fickle, "/item/23", "/item/23?ref=mail"));
        assert!(is_same(PathSession, "/item/7", "/item/7;jsessionid=x"));
        assert!(is_same(Crumb, "/item/7", "/S-abcdefghij0/item/7"));
        assert!(is_same(
            Campaign,
            "/item/7",
            "/item/7?utm_source=3&utm_medium=ad"
        ));
        assert!(is_same(Index, "/item/7/", "/item/7/index.html"));
        assert!(is_same(Print, "/item/7", "/print/item/7"));
        assert!(!is_same(Query, "/view.php?id=7&lang=de", "/view.php?id=7"));
        assert!(!is_same(Query, "/list/7?page=2", "/list/7"));
        assert!(is_same(Pair, "/item/7?a=0&b=1", "/item/7?a=0&b=2"));
        assert!(!is_same(Pair, "/item/7?a=1&b=1", "/item/7?a=1&b=2"));
        assert!(!is_same(Pair, "/item/7?a=0", "/item/7?a=1"));
        assert!(is_same(Soft, "/item/7", "/nowhere"));
        assert_eq!(get(&web, host(Query), "/view.php?lang=de").0, 404);
        assert_eq!(get(&web, host(Session), "/item/60").0, 404);
    }
}
