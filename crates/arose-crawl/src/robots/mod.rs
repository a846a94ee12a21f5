//! robots.txt: what does this site let us fetch, and how fast?
//!
//! *Question.* A site publishes rules for crawlers. Given the file, our name and a URL: may we
//! fetch it, which line says so, how long must we wait between requests, and at what hours may we
//! come?
//!
//! *Idea.* RFC 9309. Lines form groups, each headed by the crawlers it is for; all groups that name
//! us are merged, and those for `*` count only if none does. Of the rules whose pattern matches the
//! path and query, the longest pattern decides, *Allow* before *Disallow* if they are equally long,
//! and no match means allowed. In patterns `*` stands for anything and a final `$` for the end.
//! Both sides are compared in one spelling: escapes of unreserved characters decoded, characters
//! that do not belong into a URL escaped. Three extensions are read per group:
//! [`Robots::crawl_delay`] (the longest if there are several), [`RequestRate`] and [`VisitTime`]
//! (Conner 1996); sitemaps are listed for the whole file.
//!
//! An extension belongs to the crawlers named so far in its group and does not end the group: after
//! `User-agent: a`, `Crawl-delay: 5`, `User-agent: b`, `Disallow: /` the rule is for both, the
//! delay for `a` alone. A missing colon and common misspellings of *Disallow* and *User-agent* are
//! understood, since whoever wrote them wanted to be obeyed.
//!
//! *Names.* A name in the file ends at `/`, `*` or white space and must equal ours but for case.
//! Digits and dots belong to it (`k2spider`, `sitecheck.internetseer.com`).
//!
//! *Cost.* Parsing is linear and stops at [`MAX_BYTES`]. A verdict is linear too: a rule costs at
//! most its length, with stars (no more than [`MAX_STARS`] rules) that of the URL in addition,
//! whatever the stars; the longest are tried first. *Not for* telling whether a page wants to be
//! indexed (meta robots, X-Robots-Tag).
//!
//! *Why not a library.* `robotxt` 0.7, the best of those compared, does not say which line decided,
//! knows neither Request-rate nor Visit-time, and differs from the agreed verdicts of the
//! collections in 12 of 141 and 7 of 4,971 cases; this module differs in those that its tests list.
//!
//! ```
//! use arose_crawl::robots::Robots;
//! use arose_crawl::url::Normalizer;
//!
//! let robots = Robots::parse(b"User-agent: *\nDisallow: /private/\nRequest-rate: 1/5\n", "arose");
//! let url = Normalizer::default().normalize("http://h/private/a", None)?;
//! let verdict = robots.verdict(&url);
//! assert!(!verdict.allowed);
//! let rule = verdict.rule.unwrap();
//! assert_eq!((rule.to_string().as_str(), rule.line), ("Disallow: /private/", 2));
//! # Ok::<(), arose_crawl::url::Invalid>(())
//! ```

mod extension;
mod file;
mod parse;
mod pattern;
mod status;
mod tag;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::url::NormalUrl;
use pattern::Pattern;

pub use extension::{MAX_DELAY, RequestRate, TimeOfDay, VisitTime};
pub(crate) use file::File;
pub use status::{MAX_AGE, MAX_REDIRECTS, Outcome, UNREACHABLE_FOR};
pub(crate) use tag::forbids_following;

/// How much of a file is read. The RFC asks for at least 500 KiB, but files of 1.4 MB with rules to
/// the end exist. The line that this cuts is not read, since half a pattern says something else.
pub const MAX_BYTES: usize = 2 << 20;

/// How many rules with stars are kept; further ones are not read. They are what makes a verdict
/// slow: this many, made for the purpose, cost 10 ms.
pub const MAX_STARS: usize = 10_000;

/// What a site says to one crawler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Robots {
    /// In the order in which they are tried: the first that matches decides.
    rules: Vec<Rule>,
    n_stars: usize,
    /// The least time between two requests.
    pub crawl_delay: Option<Duration>,
    /// How many documents in what time, perhaps by time of day; the first that fits counts.
    pub request_rates: Vec<RequestRate>,
    /// When to come; at any time if there is none.
    pub visit_times: Vec<VisitTime>,
    /// Sitemaps as written, for whichever crawler. They should be absolute URLs, but need not be.
    pub sitemaps: Vec<String>,
    /// Whether the file exceeded [`MAX_BYTES`] or [`MAX_STARS`].
    pub is_cut: bool,
}

/// A line that allows or disallows what its pattern matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Which of the two.
    pub kind: RuleKind,
    /// The pattern as it is written in the file.
    pub written: Box<str>,
    /// The line of the file, from 1.
    pub line: u32,
    pattern: Pattern,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleKind {
    /// Lets the crawler in. Before `Disallow`, because it wins among equals.
    Allow,
    /// Keeps it out.
    Disallow,
}

impl RuleKind {
    /// As files have it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Disallow => "Disallow",
        }
    }
}

/// Whether a URL may be fetched, and why.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict<'r> {
    /// Whether it may.
    pub allowed: bool,
    /// The rule that decided; without one everything is allowed.
    pub rule: Option<&'r Rule>,
}

impl Robots {
    /// Reads the file as the crawler `agent`, named by its product token; a version behind a slash
    /// is ignored. Any bytes are legal.
    #[must_use]
    pub fn parse(file: &[u8], agent: &str) -> Self {
        parse::parse(file, agent)
    }

    /// What holds where there is no file.
    #[must_use]
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// What holds where the file is not available. The rule that decides has line 0.
    #[must_use]
    pub fn disallow_all() -> Self {
        Self {
            rules: vec![Rule::new(RuleKind::Disallow, b"/", 0)],
            ..Self::default()
        }
    }

    /// Whether `url`, which must be of this site, may be fetched. `/robots.txt` always may.
    #[must_use]
    pub fn verdict(&self, url: &NormalUrl) -> Verdict<'_> {
        let path = pattern::canonical_path(url.rest().as_bytes());
        let rule = if url.rest() == "/robots.txt" {
            None
        } else {
            self.rules.iter().find(|rule| rule.pattern.is_match(&path))
        };
        Verdict {
            allowed: rule.is_none_or(|rule| rule.kind == RuleKind::Allow),
            rule,
        }
    }

    /// The least time between two requests at this time of day: the longer of the delay and what
    /// the rate asks for.
    #[must_use]
    pub fn delay(&self, now: TimeOfDay) -> Duration {
        let rate = self.request_rates.iter().find(|rate| rate.applies(now));
        let per_document = rate.map(RequestRate::per_document).unwrap_or_default();
        self.crawl_delay.unwrap_or_default().max(per_document)
    }

    /// A file that says the same to every crawler, its sitemaps aside: what is kept of rules.
    pub(crate) fn to_text(&self) -> String {
        let mut text = "User-agent: *\n".to_owned();
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            text.push_str(&format!("{name}: {value}\n"));
        };
        for rule in &self.rules {
            line(rule.kind.as_str(), &rule.pattern);
        }
        if let Some(delay) = self.crawl_delay {
            line("Crawl-delay", &delay.as_secs_f64());
        }
        self.request_rates
            .iter()
            .for_each(|rate| line("Request-rate", rate));
        self.visit_times
            .iter()
            .for_each(|hours| line("Visit-time", hours));
        text
    }

    /// Whether the site may be visited at this time of day.
    #[must_use]
    pub fn is_open(&self, now: TimeOfDay) -> bool {
        self.visit_times.is_empty() || self.visit_times.iter().any(|hours| hours.contains(now))
    }
}

impl Rule {
    fn new(kind: RuleKind, written: &[u8], line: u32) -> Self {
        Self {
            kind,
            written: String::from_utf8_lossy(written).into(),
            line,
            pattern: Pattern::new(written),
        }
    }

    /// Orders rules so that the first match decides: the longest pattern, then `Allow`, then the
    /// place in the file.
    fn precedence(&self) -> (std::cmp::Reverse<usize>, RuleKind, u32) {
        let length = std::cmp::Reverse(self.pattern.n_octets());
        (length, self.kind, self.line)
    }
}

/// As in the file: `Disallow: /private/`.
impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.written)
    }
}
