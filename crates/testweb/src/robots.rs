//! Robots files of every kind, and what each of them means.
//!
//! The meaning is fixed here by construction, not by a parser: a file either lets everybody in
//! everywhere, or keeps them out of `/private/`, or out of everything (RFC 9309: an answer of 4xx
//! opens a host, an answer of 5xx or none closes it). So a crawler's own parser can be judged by
//! [`Robots::verdict`].

use std::time::Duration;

use crate::fault::Step;
use crate::reply::Reply;

/// How a host answers for `/robots.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Robots {
    /// `Disallow:` with nothing behind it.
    AllowAll,
    /// `/private/` is closed.
    NotPrivate,
    /// Everything is closed.
    DisallowAll,
    /// Closed, but for what longer rules with `*` and `$` open again: all except `/private/`.
    Wildcards,
    /// A group for our agent, beside one that closes the host to others.
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
    /// Redirected to itself: no file is found, so nothing is closed.
    RedirectLoop,
    /// 700 KiB, its one rule in the first 500.
    Huge,
    /// Random bytes.
    Garbage,
    /// A byte order mark before the first line.
    Bom,
    /// Lines end with a carriage return alone.
    OldMac,
    /// A page in HTML.
    Html,
    /// A byte every 50 ms.
    Slow,
    /// Never answered.
    Silent,
    /// A byte every second.
    Trickle,
}

/// What a robots file means for one of our agent's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Allowed.
    Allowed,
    /// Closed by a rule or by failure.
    Disallowed,
    /// Allowed, but not at this time of day.
    OutOfHours,
}

/// What a robots file closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closes {
    Nothing,
    Private,
    Everything,
}

/// The prefix that most files close.
pub(crate) const PRIVATE: &str = "/private/";
/// Where a redirected file is found at last.
const MOVED: [&str; 4] = [
    "/robots.txt",
    "/robots-1.txt",
    "/robots-2.txt",
    "/robots-3.txt",
];

impl Robots {
    /// Those of the default mixture, with their weights.
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

    /// Whether our agent may fetch `path` at `minute` of the day (UTC), if the hour matters.
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

    /// The least time between two requests that the file asks for.
    #[must_use]
    pub const fn delay(self) -> Duration {
        match self {
            Robots::CrawlDelay => Duration::from_secs(2),
            Robots::RequestRate => Duration::from_secs(3),
            _ => Duration::ZERO,
        }
    }

    /// Whether the visiting hours, 06:00 to 18:00 inclusive where there are any, hold `minute`.
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

    /// Answers for a path that belongs to the file; `None` if this is none of them.
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

/// What a file needs to know of its host.
pub(crate) struct Around<'a> {
    pub(crate) agent: &'a str,
    /// `http://host:port`.
    pub(crate) origin: &'a str,
    /// Where the file of the web's first host lies.
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
