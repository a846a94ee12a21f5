//! The URL approval guard: decides whether a URL may be crawled at all.
//!
//! *Question.* Links lead everywhere: out of the wanted part of the web, to schemes that cannot be
//! fetched, and into traps, where a server generates new links without end. Which are worth a
//! request?
//!
//! *Idea.* A list of checks on the URL alone, cheap ones first. The first check that fails is the
//! reason, so every rejected URL has exactly one, and [`Counts`] add up to the number of URLs. The
//! scope comes from the user: hosts, domains with all below them, regular expressions. The limits
//! defend against traps: a path of more than 20 segments, a segment that occurs more than three
//! times, one to three segments that repeat more than three times in a row, more than 100
//! parameters. These are rare on honest sites. A server that generates URLs without end must hit
//! one of them or the budget of its site, which is enforced where pages are counted.
//!
//! *Cost.* Linear in the URL (`n log n` in its at most 20 segments), less than a microsecond
//! without regular expressions, which are linear too. *Not for* IP addresses: whether a host leads
//! to a private network is known only after the DNS lookup, and is checked where the connection is
//! made.
//!
//! ```
//! use arose_crawl::guard::{Candidate, Config, Guard, Reason};
//! use arose_crawl::url::Normalizer;
//!
//! let domains = vec!["example.org".to_owned()];
//! let guard = Guard::new(Config { domains, ..Config::default() })?;
//! let approve = |text| {
//!     let url = Normalizer::default().normalize(text, None)?;
//!     guard.approve(&Candidate { url: &url, link_depth: 0, robots: None })
//! };
//! assert_eq!(approve("http://www.example.org/a"), Ok(()));
//! assert_eq!(approve("http://example.com/"), Err(Reason::OutOfScope));
//! assert_eq!(approve("ftp://example.org/"), Err(Reason::Scheme));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeSet;

use regex::{RegexSet, RegexSetBuilder};

use crate::journal::Kind;
use crate::robots::Robots;
use crate::scope::Roots;
use crate::url::{Invalid, NormalUrl};

/// Settings of the guard.
#[derive(Debug, Clone)]
pub struct Config {
    /// Maximum length of a URL in bytes.
    pub max_length: usize,
    /// Maximum number of links from a seed; a seed has 0.
    pub max_link_depth: u32,
    /// Maximum number of segments in a path.
    pub max_path_depth: usize,
    /// Maximum occurrences of a path segment, and maximum consecutive repetitions of one to three
    /// segments.
    pub max_repeats: usize,
    /// Maximum number of parameters in a query.
    pub max_parameters: usize,
    /// Hosts to crawl. If there are neither hosts nor domains, all hosts are crawled.
    pub hosts: Vec<String>,
    /// Domains to crawl, with all hosts below them.
    pub domains: Vec<String>,
    /// Domains not to crawl, with everything below them, whatever the lists above say.
    pub blocked: Vec<String>,
    /// Regular expressions. If there are any, at least one must match somewhere in the URL.
    pub include: Vec<String>,
    /// Regular expressions none of which may match.
    pub exclude: Vec<String>,
    /// If neither hosts nor domains are listed: what URLs in scope must have in common with a seed.
    pub roots: Option<Roots>,
    /// Directories of local files, as URL paths. Other files are always out of scope.
    pub files: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_length: 2048,
            max_link_depth: u32::MAX,
            max_path_depth: 20,
            max_repeats: 3,
            max_parameters: 100,
            hosts: Vec::new(),
            domains: Vec::new(),
            blocked: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            roots: None,
            files: Vec::new(),
        }
    }
}

/// An invalid regular expression of a [`Config`].
#[derive(Debug, thiserror::Error)]
#[error("invalid regular expression in `{setting}`")]
pub struct BadPattern {
    /// `include` or `exclude`.
    pub setting: &'static str,
    /// The error.
    pub source: regex::Error,
}

/// Why a URL is not crawled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Reason {
    /// It is not a URL.
    #[error("it is not a valid URL")]
    Invalid,
    /// It is neither `http` nor `https`.
    #[error("its scheme is not http or https")]
    Scheme,
    /// It is longer than [`Config::max_length`].
    #[error("it is too long")]
    Length,
    /// Its host is not a valid name: a label is empty or over 63 bytes, or the name is over 253
    /// bytes.
    #[error("its host is not a valid host name")]
    HostName,
    /// Its host or a domain above it is blocked.
    #[error("its host is blocked")]
    Blocked,
    /// Its host is not one of those to crawl.
    #[error("its host is out of scope")]
    OutOfScope,
    /// A regular expression excludes it.
    #[error("a pattern excludes it")]
    Excluded,
    /// No regular expression includes it.
    #[error("no pattern includes it")]
    NotIncluded,
    /// Its path has too many segments.
    #[error("its path is too deep")]
    PathDepth,
    /// A cycle of segments repeats too often.
    #[error("segments of its path repeat in a cycle")]
    Cycle,
    /// A segment occurs too often.
    #[error("a segment of its path occurs too often")]
    RepeatedSegment,
    /// It has too many parameters.
    #[error("it has too many parameters")]
    Parameters,
    /// It is too many links away from the seeds.
    #[error("it is too far from the seeds")]
    LinkDepth,
    /// robots.txt disallows it.
    #[error("robots.txt disallows it")]
    Robots,
}

impl Reason {
    /// All of them, in the order in which they are checked.
    pub const ALL: [Self; 14] = [
        Self::Invalid,
        Self::Scheme,
        Self::Length,
        Self::HostName,
        Self::Blocked,
        Self::OutOfScope,
        Self::Excluded,
        Self::NotIncluded,
        Self::PathDepth,
        Self::Cycle,
        Self::RepeatedSegment,
        Self::Parameters,
        Self::LinkDepth,
        Self::Robots,
    ];

    /// Returns its machine-readable code.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Scheme => "scheme",
            Self::Length => "length",
            Self::HostName => "host-name",
            Self::Blocked => "blocked",
            Self::OutOfScope => "out-of-scope",
            Self::Excluded => "excluded",
            Self::NotIncluded => "not-included",
            Self::PathDepth => "path-depth",
            Self::Cycle => "cycle",
            Self::RepeatedSegment => "repeated-segment",
            Self::Parameters => "parameters",
            Self::LinkDepth => "link-depth",
            Self::Robots => "robots",
        }
    }
}

impl From<Invalid> for Reason {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Scheme => Self::Scheme,
            Invalid::Relative | Invalid::Syntax(_) => Self::Invalid,
        }
    }
}

/// What a URL is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// As a page.
    Page,
    /// To display a page in scope: it may be anywhere that is not blocked or excluded.
    Requisite,
}

impl From<Kind> for Purpose {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Page | Kind::Sitemap => Self::Page,
            Kind::Requisite => Self::Requisite,
        }
    }
}

/// A URL to be checked, and what is known about it.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'c> {
    /// The URL.
    pub url: &'c NormalUrl,
    /// Its number of links from a seed.
    pub link_depth: u32,
    /// The robots.txt rules of its site, if they are known.
    pub robots: Option<&'c Robots>,
}

/// Checks URLs; a pure function of its [`Config`].
#[derive(Debug, Clone)]
pub struct Guard {
    config: Config,
    hosts: BTreeSet<String>,
    domains: BTreeSet<String>,
    blocked: BTreeSet<String>,
    include: RegexSet,
    exclude: RegexSet,
}

impl Guard {
    /// Compiles the regular expressions.
    ///
    /// # Errors
    ///
    /// [`BadPattern`] if one of them is invalid or too large.
    pub fn new(config: Config) -> Result<Self, BadPattern> {
        Ok(Self {
            hosts: names(&config.hosts),
            domains: names(&config.domains),
            blocked: names(&config.blocked),
            include: patterns("include", &config.include)?,
            exclude: patterns("exclude", &config.exclude)?,
            config,
        })
    }

    /// Whether the candidate may be crawled.
    ///
    /// # Errors
    ///
    /// The first [`Reason`] why not.
    pub fn approve(&self, candidate: &Candidate<'_>) -> Result<(), Reason> {
        self.approve_for(candidate, Purpose::Page)
    }

    /// Like [`Guard::approve`], for a URL that is wanted for this purpose.
    pub(crate) fn approve_for(
        &self,
        candidate: &Candidate<'_>,
        purpose: Purpose,
    ) -> Result<(), Reason> {
        let url = candidate.url;
        reject(url.as_str().len() > self.config.max_length, Reason::Length)?;
        reject(!is_host_name(url.host()), Reason::HostName)?;
        self.check_scope(url, purpose)?;
        self.check_path(url.path())?;
        let n_parameters = url.query().map_or(0, |query| query.split('&').count());
        reject(
            n_parameters > self.config.max_parameters,
            Reason::Parameters,
        )?;
        let is_far = candidate.link_depth > self.config.max_link_depth;
        reject(is_far, Reason::LinkDepth)?;
        let robots = candidate.robots.map(|robots| robots.verdict(url));
        reject(
            robots.is_some_and(|verdict| !verdict.allowed),
            Reason::Robots,
        )
    }

    fn check_scope(&self, url: &NormalUrl, purpose: Purpose) -> Result<(), Reason> {
        let host = url.host();
        if url.is_file() {
            let is_in = |directory: &String| url.path().starts_with(directory.as_str());
            let is_in_scope = self.config.files.iter().any(is_in);
            reject(!is_in_scope, Reason::OutOfScope)?;
            reject(self.exclude.is_match(url.as_str()), Reason::Excluded)?;
            let is_included = self.include.is_empty() || self.include.is_match(url.as_str());
            return reject(!is_included, Reason::NotIncluded);
        }
        reject(is_below(host, &self.blocked), Reason::Blocked)?;
        let is_named = match self.hosts.is_empty() && self.domains.is_empty() {
            true => {
                let roots = self.config.roots.as_ref();
                roots.is_none_or(|roots| roots.contain(url))
            }
            false => self.hosts.contains(host) || is_below(host, &self.domains),
        };
        let is_in_scope = is_named || purpose == Purpose::Requisite;
        reject(!is_in_scope, Reason::OutOfScope)?;
        reject(self.exclude.is_match(url.as_str()), Reason::Excluded)?;
        let is_included = self.include.is_empty()
            || purpose == Purpose::Requisite
            || self.include.is_match(url.as_str());
        reject(!is_included, Reason::NotIncluded)
    }

    fn check_path(&self, path: &str) -> Result<(), Reason> {
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = path.strip_suffix('/').unwrap_or(path);
        let n_segments = if path.is_empty() {
            0
        } else {
            path.split('/').count()
        };
        reject(n_segments > self.config.max_path_depth, Reason::PathDepth)?;
        let mut segments: Vec<&str> = path.split('/').collect();
        let max_repeats = self.config.max_repeats;
        let is_cycle = (1..=3).any(|period| n_rounds(&segments, period) > max_repeats);
        reject(is_cycle, Reason::Cycle)?;
        segments.sort_unstable();
        let n_same = segments.chunk_by(|a, b| a == b).map(<[_]>::len).max();
        reject(n_same > Some(max_repeats), Reason::RepeatedSegment)
    }
}

fn reject(is_rejected: bool, reason: Reason) -> Result<(), Reason> {
    if is_rejected { Err(reason) } else { Ok(()) }
}

/// Returns how often `period` segments follow each other without a break.
fn n_rounds(segments: &[&str], period: usize) -> usize {
    let (mut run, mut longest) = (0, 0);
    for (a, b) in segments.iter().zip(segments.iter().skip(period)) {
        run = if a == b { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest / period + 1
}

/// Returns host names as they are in normalized URLs.
fn names(names: &[String]) -> BTreeSet<String> {
    let normal = |name: &String| {
        let name = name.trim().trim_matches('.');
        match url::Host::parse(name) {
            Ok(host) => host.to_string(),
            Err(_) => name.to_lowercase(),
        }
    };
    names.iter().map(normal).collect()
}

/// Whether the host or a domain above it is among `domains`.
fn is_below(host: &str, domains: &BTreeSet<String>) -> bool {
    if domains.is_empty() {
        return false;
    }
    let mut name = host;
    loop {
        if domains.contains(name) {
            return true;
        }
        match name.split_once('.') {
            Some((_, above)) => name = above,
            None => return false,
        }
    }
}

fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| !label.is_empty() && label.len() <= 63;
    host.starts_with('[') || (host.len() <= 253 && host.split('.').all(is_label))
}

fn patterns(setting: &'static str, patterns: &[String]) -> Result<RegexSet, BadPattern> {
    RegexSetBuilder::new(patterns)
        .build()
        .map_err(|source| BadPattern { setting, source })
}

/// Numbers of approved URLs, and of rejected URLs by reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of approved URLs.
    pub approved: u64,
    rejected: [u64; Reason::ALL.len()],
}

impl Counts {
    /// Counts a decision.
    pub fn add(&mut self, judgement: Result<(), Reason>) {
        match judgement {
            Ok(()) => self.approved += 1,
            Err(reason) => self.rejected[reason as usize] += 1,
        }
    }

    /// Returns the number of URLs rejected for `reason`.
    #[must_use]
    pub fn rejected(&self, reason: Reason) -> u64 {
        self.rejected[reason as usize]
    }

    /// Returns the number of all URLs.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.approved + self.rejected.iter().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Normalizer;
    use proptest::prelude::*;

    fn judge(config: Config, text: &str) -> Result<(), Reason> {
        let guard = Guard::new(config).unwrap();
        let url = Normalizer::default().normalize(text, None)?;
        guard.approve(&Candidate {
            url: &url,
            link_depth: 2,
            robots: None,
        })
    }

    #[track_caller]
    fn check(text: &str, expected: Result<(), Reason>) {
        assert_eq!(judge(Config::default(), text), expected, "{text}");
    }

    #[test]
    fn no_web_address() {
        check("mailto:a@b.org", Err(Reason::Scheme));
        check("/a", Err(Reason::Invalid));
        check("http://", Err(Reason::Invalid));
    }

    #[test]
    fn length() {
        let of_length = |n: usize| format!("http://h/{}", "a".repeat(n - "http://h/".len()));
        check(&of_length(2048), Ok(()));
        check(&of_length(2049), Err(Reason::Length));
    }

    #[test]
    fn host_names() {
        check("http://a..b/", Err(Reason::HostName));
        check("http://./", Err(Reason::HostName));
        check(&format!("http://{}.org/", "a".repeat(63)), Ok(()));
        check(
            &format!("http://{}.org/", "a".repeat(64)),
            Err(Reason::HostName),
        );
        check(
            &format!("http://{}org/", "a.".repeat(126)),
            Err(Reason::HostName),
        );
        check("http://[::1]/", Ok(()));
    }

    #[test]
    fn deep_paths() {
        let of_depth = |n: usize| (0..n).map(|n| format!("/{n}")).collect::<String>();
        check(&format!("http://h{}", of_depth(20)), Ok(()));
        check(&format!("http://h{}/", of_depth(20)), Ok(()));
        check(&format!("http://h{}", of_depth(21)), Err(Reason::PathDepth));
    }

    #[test]
    fn cycles() {
        check("http://h/a/a/a", Ok(()));
        check("http://h/a/a/a/a", Err(Reason::Cycle));
        check("http://h/x/a/b/a/b/a/b", Ok(()));
        check("http://h/x/a/b/a/b/a/b/a/b/y", Err(Reason::Cycle));
        check("http://h/1/2/3/1/2/3/1/2/3/1/2/3", Err(Reason::Cycle));
        check("http://h////", Ok(()));
        check("http://h//////", Err(Reason::Cycle));
    }

    #[test]
    fn repeated_segments() {
        check("http://h/a/1/a/2/a/3", Ok(()));
        check("http://h/a/1/a/2/a/3/a", Err(Reason::RepeatedSegment));
    }

    #[test]
    fn parameters() {
        let of_parameters = |n: usize| format!("http://h/?{}", vec!["a=1"; n].join("&"));
        check(&of_parameters(100), Ok(()));
        check(&of_parameters(101), Err(Reason::Parameters));
    }

    fn scope() -> Config {
        let list = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Config {
            hosts: list(&["www.one.org"]),
            domains: list(&["Two.org.", "bücher.de"]),
            blocked: list(&["bad.two.org"]),
            include: list(&["/docs/", r"\.html$"]),
            exclude: list(&["[?&]print="]),
            ..Config::default()
        }
    }

    #[test]
    fn scopes() {
        for (text, expected) in [
            ("http://www.one.org/docs/", Ok(())),
            ("http://one.org/docs/", Err(Reason::OutOfScope)),
            ("http://a.www.one.org/docs/", Err(Reason::OutOfScope)),
            ("http://two.org/docs/", Ok(())),
            ("http://a.b.two.org/x.html", Ok(())),
            ("http://xtwo.org/docs/", Err(Reason::OutOfScope)),
            ("http://xn--bcher-kva.de/docs/", Ok(())),
            ("http://a.bad.two.org/docs/", Err(Reason::Blocked)),
            ("http://two.org/docs/?print=1", Err(Reason::Excluded)),
            ("http://two.org/x.htm", Err(Reason::NotIncluded)),
        ] {
            assert_eq!(judge(scope(), text), expected, "{text}");
        }
    }

    #[test]
    fn links_from_the_seed() {
        let config = |max_link_depth| Config {
            max_link_depth,
            ..Config::default()
        };
        assert_eq!(judge(config(2), "http://h/"), Ok(()));
        assert_eq!(judge(config(1), "http://h/"), Err(Reason::LinkDepth));
    }

    #[test]
    fn robots() {
        let robots = Robots::parse(b"User-agent: *\nDisallow: /a\n", "x");
        let guard = Guard::new(Config::default()).unwrap();
        let judge = |text: &str| {
            let url = Normalizer::default().normalize(text, None).unwrap();
            guard.approve(&Candidate {
                url: &url,
                link_depth: 0,
                robots: Some(&robots),
            })
        };
        assert_eq!(judge("http://h/b"), Ok(()));
        assert_eq!(judge("http://h/a"), Err(Reason::Robots));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let config = Config {
            exclude: vec!["(".to_owned()],
            ..Config::default()
        };
        let error = Guard::new(config).unwrap_err();
        assert_eq!(error.to_string(), "invalid regular expression in `exclude`");
    }

    #[test]
    fn codes_are_distinct_and_in_order() {
        let codes: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(codes.len(), Reason::ALL.len());
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }

    /// The definition of a cycle: `period` segments that occur more than `max` times in a row.
    fn has_cycle(segments: &[&str], period: usize, max: usize) -> bool {
        let windows = segments.windows(period * (max + 1));
        windows.into_iter().any(|window| {
            let mut rounds = window.chunks(period);
            rounds.all(|round| round == &window[..period])
        })
    }

    proptest! {
        #[test]
        fn rounds_are_counted_right(path in prop::collection::vec("[ab]", 1..20), period in 1..4_usize) {
            let segments: Vec<&str> = path.iter().map(String::as_str).collect();
            prop_assert_eq!(n_rounds(&segments, period) > 3, has_cycle(&segments, period, 3));
        }

        #[test]
        fn counts_add_up(texts in prop::collection::vec("(http://)?[a.]{1,3}(/[ab]){0,6}", 0..50)) {
            let mut counts = Counts::default();
            for text in &texts {
                counts.add(judge(Config::default(), text));
            }
            let n_rejected: u64 = Reason::ALL.map(|reason| counts.rejected(reason)).iter().sum();
            prop_assert_eq!(counts.total(), texts.len() as u64);
            prop_assert_eq!(counts.approved + n_rejected, counts.total());
        }
    }
}
