//! robots.txt: the URLs that a site allows a crawler to fetch, and the required delays.
//!
//! *Question.* A site publishes rules for crawlers. Given the file, the name of the crawler and a
//! URL: may the crawler fetch it, which line says so, how long must it wait between requests, and
//! at what hours may it come?
//!
//! *Idea.* RFC 9309. Lines form groups, each headed by the crawlers it is for. All groups that name
//! the crawler are merged, and those for `*` count only if none does. Of the rules whose pattern
//! matches the path and query, the longest pattern decides. *Allow* goes before *Disallow* if they
//! are equally long, and no match means allowed. In patterns, `*` stands for anything and a final
//! `$` for the end. Both sides are normalized before the comparison: escapes of unreserved
//! characters are decoded, and characters that are not allowed in URLs are escaped. Three
//! extensions are read per group: [`Robots::crawl_delay`] (the longest if there are several),
//! [`RequestRate`] and [`VisitTime`] (Conner 1996). Sitemaps are listed for the whole file.
//!
//! An extension belongs to the crawlers named so far in its group and does not end the group. After
//! `User-agent: a`, `Crawl-delay: 5`, `User-agent: b`, `Disallow: /`, the rule is for both, and the
//! delay only for `a`. A missing colon and common misspellings of *Disallow* and *User-agent* are
//! accepted, because their authors wanted to be obeyed.
//!
//! *Names.* A name in the file ends at `/`, `*` or whitespace and must equal that of the crawler,
//! ignoring case. Digits and dots are part of it (`k2spider`, `sitecheck.internetseer.com`).
//!
//! *Cost.* Parsing is linear and stops at [`MAX_BYTES`]. A verdict is linear too. A rule costs at
//! most its length; a rule with stars (at most [`MAX_STARS`] rules) also costs the length of the
//! URL, regardless of the number of stars. The longest rules are tried first. *Not for* telling
//! whether a page wants to be indexed (meta robots, X-Robots-Tag).
//!
//! *Why not a library.* `robotxt` 0.7, the best of those compared, does not say which line decided
//! and supports neither Request-rate nor Visit-time. It differs from the agreed verdicts of the
//! collections in 12 of 141 and 7 of 4,971 cases. This module differs only in the cases that its
//! tests list.
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

/// Maximum number of bytes of a file that are read. The RFC requires at least 500 KiB, but there
/// are files of 1.4 MB with rules up to the end. The line at the limit is not read, because half a
/// pattern has another meaning.
pub const MAX_BYTES: usize = 2 << 20;

/// Maximum number of rules with stars; further ones are not read. These rules make a verdict slow:
/// this many, written for the purpose, cost 10 ms.
pub const MAX_STARS: usize = 10_000;

/// The rules of a site for one crawler.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Robots {
    /// In the order in which they are tried: the first match decides.
    rules: Vec<Rule>,
    n_stars: usize,
    /// The minimum time between two requests.
    pub crawl_delay: Option<Duration>,
    /// Numbers of documents per period, possibly by time of day; the first that applies counts.
    pub request_rates: Vec<RequestRate>,
    /// The visiting hours; any time if there are none.
    pub visit_times: Vec<VisitTime>,
    /// Sitemaps as written, for all crawlers. They should be absolute URLs, but need not be.
    pub sitemaps: Vec<String>,
    /// Whether the file exceeded [`MAX_BYTES`] or [`MAX_STARS`].
    pub is_cut: bool,
}

/// A line that allows or disallows the URLs that its pattern matches.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Whether it allows or disallows.
    pub kind: RuleKind,
    /// The pattern as in the file.
    pub written: Box<str>,
    /// The line number in the file, starting at 1.
    pub line: u32,
    pattern: Pattern,
}

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleKind {
    /// Allows URLs. Before `Disallow`, because it wins among equals.
    Allow,
    /// Disallows URLs.
    Disallow,
}

impl RuleKind {
    /// Returns the keyword in files.
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
    /// Whether it may be fetched.
    pub allowed: bool,
    /// The rule that decided; without one, the URL is allowed.
    pub rule: Option<&'r Rule>,
}

impl Robots {
    /// Parses the file for the crawler `agent`, given by its product token; a version after a slash
    /// is ignored. Any bytes are legal.
    #[must_use]
    pub fn parse(file: &[u8], agent: &str) -> Self {
        parse::parse(file, agent)
    }

    /// Returns the rules of a site without a file.
    #[must_use]
    pub fn allow_all() -> Self {
        Self::default()
    }

    /// Returns the rules of a site whose file is not available. The rule that decides has line 0.
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

    /// Returns the minimum time between two requests at this time of day: the longer of the delay
    /// and the time that the rate requires.
    #[must_use]
    pub fn delay(&self, now: TimeOfDay) -> Duration {
        let rate = self.request_rates.iter().find(|rate| rate.applies(now));
        let per_document = rate.map(RequestRate::per_document).unwrap_or_default();
        self.crawl_delay.unwrap_or_default().max(per_document)
    }

    /// Returns a file with the same rules for every crawler, without sitemaps. Rules are kept in
    /// this form.
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
    /// position in the file.
    fn precedence(&self) -> (std::cmp::Reverse<usize>, RuleKind, u32) {
        let length = std::cmp::Reverse(self.pattern.n_octets());
        (length, self.kind, self.line)
    }
}

/// Writes the rule as in the file: `Disallow: /private/`.
impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.as_str(), self.written)
    }
}
