//! Robots files of every kind, and their meaning.
//!
//! The meaning is fixed here by construction, not by a parser. A file either allows everything, or
//! disallows `/private/`, or disallows everything (RFC 9309: a 4xx response opens a host, a 5xx
//! response or none closes it). Therefore the parser of a crawler can be checked against
//! [`Robots::verdict`].

use std::time::Duration;

use crate::fault::Step;
use crate::reply::Reply;

/// The response of a host for `/robots.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Robots {
    /// `Disallow:` with nothing after it.
    AllowAll,
    /// `/private/` is disallowed.
    NotPrivate,
    /// Everything is disallowed.
    DisallowAll,
    /// Disallowed, except for paths that longer rules with `*` and `$` allow: all except
    /// `/private/`.
    Wildcards,
    /// A group for the crawler, next to one that disallows everything for others.
    OwnGroup,
    /// `Crawl-delay: 2`.
    CrawlDelay,
    /// `Request-rate: 1/3`.
    RequestRate,
    /// `Visit-time` of twelve hours.
    VisitTime,
    /// Status 404.
    Missing,
    /// Status 403.
    Forbidden,
    /// Status 500.
    ServerError,
    /// Redirected to another path, three times.
    Redirected,
    /// Redirected to the file of the first host of the web.
    RedirectedAway,
    /// Redirected to itself: no file is found, so nothing is disallowed.
    RedirectLoop,
    /// 700 KiB, with its one rule in the first 500.
    Huge,
    /// Random bytes.
    Garbage,
    /// A byte-order mark before the first line.
    Bom,
    /// Lines that end with only a carriage return.
    OldMac,
    /// An HTML page.
    Html,
    /// One byte every 50 ms.
    Slow,
    /// No response.
    Silent,
    /// One byte per second.
    Trickle,
}

/// The meaning of a robots file for a request of the crawler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Allowed.
    Allowed,
    /// Disallowed by a rule or by failure.
    Disallowed,
    /// Allowed, but not at this time of day.
    OutOfHours,
}

/// The scope that a robots file disallows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closes {
    Nothing,
    Private,
    Everything,
}

/// The prefix that most files disallow.
pub(crate) const PRIVATE: &str = "/private/";
/// The final locations of a redirected file.
const MOVED: [&str; 4] = [
    "/robots.txt",
    "/robots-1.txt",
    "/robots-2.txt",
    "/robots-3.txt",
];

impl Robots {
    /// The robots files of the default mixture, with their weights.
    pub const EVERY: [(Robots, u32); 21] = [
        (Robots::AllowAll, 4),
        (Robots::NotPrivate, 20),
        (Robots::DisallowAll, 1),
        (Robots::Wildcards, 2),
        (Robots::OwnGroup, 2),
        (Robots::CrawlDelay, 1),
        (Robots::RequestRate, 1),
        (Robots::VisitTime, 1),
        (Robots::Missing, 4),
        (Robots::Forbidden, 1),
        (Robots::ServerError, 1),
        (Robots::Redirected, 1),
        (Robots::RedirectedAway, 1),
        (Robots::RedirectLoop, 1),
        (Robots::Huge, 1),
        (Robots::Garbage, 1),
        (Robots::Bom, 1),
        (Robots::OldMac, 1),
        (Robots::Html, 1),
        (Robots::Slow, 1),
        (Robots::Silent, 1),
    ];

    /// Whether the crawler may fetch `path` at `minute` of the day (UTC), if the time matters.
    #[must_use]
    pub fn verdict(self, path: &str, minute: Option<u16>) -> Verdict {
        let is_file = path == "/robots.txt";
        let is_closed = match self.closes() {
            Closes::Nothing => false,
            Closes::Private => path.starts_with(PRIVATE),
            Closes::Everything => true,
        };
        let is_out = minute.is_some_and(|minute| !self.is_open_at(minute));
        match (is_file, is_closed, is_out) {
            (true, _, _) => Verdict::Allowed,
            (_, true, _) => Verdict::Disallowed,
            (_, _, true) => Verdict::OutOfHours,
            _ => Verdict::Allowed,
        }
    }

    /// The minimum time between two requests that the file requires.
    #[must_use]
    pub const fn delay(self) -> Duration {
        match self {
            Robots::CrawlDelay => Duration::from_secs(2),
            Robots::RequestRate => Duration::from_secs(3),
            _ => Duration::ZERO,
        }
    }

    /// Whether the visiting hours, 06:00 to 18:00 inclusive if there are any, include `minute`.
    #[must_use]
    pub const fn is_open_at(self, minute: u16) -> bool {
        !matches!(self, Robots::VisitTime) || (minute >= 6 * 60 && minute <= 18 * 60)
    }

    const fn closes(self) -> Closes {
        match self {
            Robots::AllowAll
            | Robots::Missing
            | Robots::Forbidden
            | Robots::RedirectLoop
            | Robots::Garbage
            | Robots::Html => Closes::Nothing,
            Robots::DisallowAll | Robots::ServerError | Robots::Silent => Closes::Everything,
            _ => Closes::Private,
        }
    }

    /// The response for a path of the file; `None` for other paths.
    pub(crate) fn answer(self, path: &str, site: &Around<'_>) -> Option<Reply> {
        let hop = MOVED.iter().position(|&moved| moved == path)?;
        if hop > 0 && self != Robots::Redirected {
            return None;
        }
        let reply = match self {
            Robots::Missing => Reply::text(404, "no robots file here\n"),
            Robots::Forbidden => Reply::text(403, "go away\n"),
            Robots::ServerError => Reply::text(500, "out of order\n"),
            Robots::Redirected if hop + 1 < MOVED.len() => Reply::redirect(302, MOVED[hop + 1]),
            Robots::RedirectedAway if !site.is_first => Reply::redirect(301, site.first_robots),
            Robots::RedirectLoop => Reply::redirect(301, "/robots.txt"),
            Robots::Html => Reply::html(200, b"<!doctype html><p>Disallow: /\n".to_vec()),
            Robots::Silent => Reply::script(200, vec![Step::Hang]),
            Robots::Slow => slow(&self.file(site), Duration::from_millis(50)),
            Robots::Trickle => slow(&self.file(site), Duration::from_secs(1)),
            _ => Reply::typed(200, "text/plain", self.file(site)),
        };
        Some(reply)
    }

    fn file(self, site: &Around<'_>) -> Vec<u8> {
        let agent = site.agent;
        let text = match self {
            Robots::AllowAll => "User-agent: *\nDisallow:\n".to_owned(),
            Robots::DisallowAll => "# nobody\nUser-agent: *\nDisallow: /\n".to_owned(),
            Robots::Wildcards => {
                "User-agent: *\nDisallow: /\nAllow: /$\nAllow: /*p*.html\nDisallow: /private/*.html\n"
                    .to_owned()
            }
            Robots::OwnGroup => {
                format!("User-agent: *\nDisallow: /\n\nUser-agent: {agent}\nDisallow: /private/\n")
            }
            Robots::CrawlDelay => format!("{NOT_PRIVATE}Crawl-delay: 2\n"),
            Robots::RequestRate => format!("{NOT_PRIVATE}Request-rate: 1/3\n"),
            Robots::VisitTime => format!("{NOT_PRIVATE}Visit-time: 0600-1800\n"),
            Robots::Bom => format!("\u{feff}{NOT_PRIVATE}"),
            Robots::OldMac => NOT_PRIVATE.replace('\n', "\r"),
            Robots::Huge => return huge(),
            Robots::Garbage => return garbage(),
            _ => format!("{NOT_PRIVATE}\nSitemap: {}/sitemap.xml\n", site.origin),
        };
        text.into_bytes()
    }
}

/// The properties of the host that a file needs.
pub(crate) struct Around<'a> {
    pub(crate) agent: &'a str,
    /// `http://host:port`.
    pub(crate) origin: &'a str,
    /// The URL of the robots file of the first host.
    pub(crate) first_robots: &'a str,
    /// Whether this is that host.
    pub(crate) is_first: bool,
}

const NOT_PRIVATE: &str = "User-agent: *\nDisallow: /private/\n";

/// 400 KiB of comments, the rule, 300 KiB more.
fn huge() -> Vec<u8> {
    let comment = "# a line that says nothing, sixty-four bytes of it and no more..\n";
    let fill = |n_bytes: usize| comment.repeat(n_bytes / comment.len());
    [fill(400 << 10), NOT_PRIVATE.to_owned(), fill(300 << 10)]
        .concat()
        .into_bytes()
}

/// Bytes without a colon, so that no line can be read as a rule.
fn garbage() -> Vec<u8> {
    let mut random = crate::random::Random::new(13);
    let bytes = (0..4096).map(|_| random.next() as u8);
    bytes.filter(|&byte| byte != b':').collect()
}

fn slow(file: &[u8], every: Duration) -> Reply {
    let head = crate::reply::head(200, "text/plain", file.len());
    let drip = Step::Drip {
        bytes: file.to_vec(),
        every,
    };
    Reply::script(200, vec![Step::Send(head), drip])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(robots: Robots, path: &str, minute: Option<u16>, expected: Verdict) {
        assert_eq!(robots.verdict(path, minute), expected, "{robots:?} {path}");
    }

    #[test]
    fn verdicts() {
        check(
            Robots::NotPrivate,
            "/private/p9.html",
            None,
            Verdict::Disallowed,
        );
        check(Robots::NotPrivate, "/private", None, Verdict::Allowed);
        check(Robots::AllowAll, "/private/p9.html", None, Verdict::Allowed);
        check(Robots::DisallowAll, "/", None, Verdict::Disallowed);
        check(Robots::DisallowAll, "/robots.txt", None, Verdict::Allowed);
        check(Robots::ServerError, "/", None, Verdict::Disallowed);
        check(Robots::Missing, "/private/", None, Verdict::Allowed);
    }

    #[test]
    fn visiting_hours() {
        check(Robots::VisitTime, "/", None, Verdict::Allowed);
        check(Robots::VisitTime, "/", Some(359), Verdict::OutOfHours);
        check(Robots::VisitTime, "/", Some(360), Verdict::Allowed);
        check(Robots::VisitTime, "/", Some(1080), Verdict::Allowed);
        check(Robots::VisitTime, "/", Some(1081), Verdict::OutOfHours);
        check(Robots::VisitTime, "/private/", Some(0), Verdict::Disallowed);
        check(Robots::NotPrivate, "/", Some(0), Verdict::Allowed);
    }

    #[test]
    fn the_rule_of_the_huge_file_lies_early() {
        let file = String::from_utf8(huge()).unwrap();
        let place = file.find("Disallow").unwrap();
        assert!(place < 500 << 10 && file.len() > 600 << 10);
    }
}
