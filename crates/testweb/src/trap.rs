//! Traps: responses for endless URLs, and redirects of every kind.

use crate::config::Kind;
use crate::graph::PageId;
use crate::prose::Prose;
use crate::random::{key, text_key};
use crate::web::Web;

/// A redirect, as a host sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// The header `Location`, if there is one: a path, a relative path, a URL, or garbage.
    pub location: Option<String>,
}

impl Web {
    /// The redirect at a path of a [redirecting](Kind::Redirects) host.
    pub(crate) fn redirect_at(&self, host: u32, path: &str) -> Option<Redirect> {
        if self.hosts()[host as usize].kind != Kind::Redirects {
            return None;
        }
        let page = 1.min(self.hosts()[host as usize].n_pages - 1);
        let destination = || self.path(PageId { host, page });
        let path_rest = path.strip_prefix('/')?;
        let (name, number) = path_rest.split_once('/').unwrap_or((path_rest, ""));
        let number: Option<u32> = number.parse().ok();
        let location = match (name, number) {
            ("hop", Some(0)) => destination(),
            ("hop", Some(n)) => format!("/hop/{}", n - 1),
            ("spiral", Some(n)) => format!("/spiral/{}", n.saturating_add(1)),
            ("away", Some(_)) => self.origin(&self.hosts()[0].name) + "/",
            ("relative", Some(_)) => format!("..{}", destination()),
            ("loop", None) if path == "/loop/a" => "/loop/b".to_owned(),
            ("loop", None) if path == "/loop/b" => "/loop/a".to_owned(),
            ("self", None) => "/self".to_owned(),
            ("garbage", None) => "ht tp://[bad::/%zz".to_owned(),
            ("nowhere", None) => String::new(),
            _ => return None,
        };
        let status = [301, 302, 303, 307, 308][number.unwrap_or(0) as usize % 5];
        let location = Some(location).filter(|location| !location.is_empty());
        Some(Redirect { status, location })
    }

    /// Whether a path belongs to a trap of its host. `place` says whether the request named the
    /// host itself or a host below its name.
    pub(crate) fn is_trap(&self, host: u32, path: &str, place: Place) -> bool {
        match self.hosts()[host as usize].kind {
            Kind::Calendar => path.starts_with("/cal/"),
            Kind::Maze => path.starts_with("/maze/"),
            Kind::Deep => path.starts_with("/deep/"),
            Kind::EndlessHosts => place == Place::Below,
            Kind::SoftNotFound => true,
            Kind::Redirects => path == "/refresh",
            _ => false,
        }
    }

    /// Appends the page of a trap.
    pub(crate) fn render_trap(&self, host: u32, name: &str, path: &str, out: &mut Vec<u8>) {
        let own = &self.hosts()[host as usize];
        let path_key = text_key(own.key, path);
        let next = |n: u64| format!("{:x}", key(path_key, n));
        match own.kind {
            Kind::Calendar => calendar(path, out),
            Kind::Maze => {
                // The same text on every page: only the URL is new.
                self.push_trap_text(own.key, "Welcome back", out);
                push_links((0..5).map(|n| format!("/maze/{}", next(n))), out);
            }
            Kind::Deep => {
                self.push_trap_text(own.key, "Deeper", out);
                push_links(["a/", "b/", "./a/"].map(str::to_owned), out);
            }
            Kind::EndlessHosts => {
                self.push_trap_text(own.key, "This name is for sale", out);
                let name_key = text_key(own.key, name);
                let url = |n| {
                    let label = key(name_key, n);
                    self.origin(&format!("x{label:x}.{}", own.name)) + "/"
                };
                push_links((0..5).map(url), out);
            }
            Kind::Redirects => {
                let page = 1.min(own.n_pages - 1);
                let target = self.path(PageId { host, page });
                let meta = "<!doctype html><meta http-equiv=refresh content=\"0; url=";
                out.extend_from_slice(format!("{meta}{target}\">\n").as_bytes());
            }
            _ => {
                self.push_trap_text(own.key, "Sorry, this page could not be found", out);
                push_links((0..5).map(|n| format!("/gone/{}", next(n))), out);
            }
        }
    }

    fn push_trap_text(&self, text: u64, title: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("<!doctype html><title>{title}</title><p>").as_bytes());
        Prose::new(self.vocabulary(), text, None).sentences(40, out);
        out.extend_from_slice(b"</p>\n<a href=\"/\">home</a>\n");
    }
}

/// The kind of host name that a request used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The name of the host, or `www.` before it.
    At,
    /// A name below it.
    Below,
}

fn push_links(links: impl IntoIterator<Item = String>, out: &mut Vec<u8>) {
    for link in links {
        out.extend_from_slice(format!("<a href=\"{link}\">more</a>\n").as_bytes());
    }
}

/// A month or a day of any year, with links to the days, the adjacent months and the years.
fn calendar(path: &str, out: &mut Vec<u8>) {
    let mut parts = path.split('/').skip(2).map(|part| part.parse::<u32>().ok());
    let year = parts.next().flatten().unwrap_or(2026).min(1_000_000_000);
    let month = parts.next().flatten().unwrap_or(1).clamp(1, 12);
    let day = parts.next().flatten();
    let title = day.map_or_else(String::new, |day| format!("day {day} of "));
    let head =
        format!("<!doctype html><title>Events</title><p>No events on {title}{month}/{year}\n");
    out.extend_from_slice(head.as_bytes());
    let before = if month == 1 {
        (year.saturating_sub(1), 12)
    } else {
        (year, month - 1)
    };
    let after = if month == 12 {
        (year + 1, 1)
    } else {
        (year, month + 1)
    };
    let months = [before, after, (year + 1, month)];
    push_links(
        months.map(|(year, month)| format!("/cal/{year}/{month}")),
        out,
    );
    if day.is_none() {
        push_links(
            (1..=28).map(|day| format!("/cal/{year}/{month}/{day}")),
            out,
        );
    }
}
