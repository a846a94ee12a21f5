//! Settings of a crawl, as a TOML file holds them.
//!
//! Every setting has a default; [`TEMPLATE`] is a file with all of them and what they mean, and a
//! test keeps the two equal. Unknown names are errors, so that a misspelt limit does not go
//! unnoticed.

mod focus;
mod host;
mod policy;
mod recrawl;
mod rules;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use focus::{Focus, ScorerKind};
pub use host::HostSettings;
pub(crate) use host::host_name;
pub use policy::DuplicatePolicy;
pub use recrawl::Recrawl;
pub use rules::Rules;

use crate::guard;
use crate::scope::Roots;

/// A settings file with every default.
pub const TEMPLATE: &str = include_str!("settings.toml");

/// All settings, in the sections of the file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Who we are.
    pub agent: Agent,
    /// What is crawled.
    pub scope: Scope,
    /// What is crawled first.
    pub crawl: Crawl,
    /// When it ends.
    pub stop: Stop,
    /// How often a site is asked.
    pub polite: Polite,
    /// How pages are fetched.
    pub fetch: Fetch,
    /// Names and addresses.
    pub network: Network,
    /// What becomes of duplicates.
    pub duplicates: Duplicates,
    /// How URL rules are learned.
    pub rules: Rules,
    /// Which pages are rejected for their quality.
    pub quality: Quality,
    /// How much of the crawl a site may take.
    pub budget: Budget,
    /// How pages are visited again.
    pub recrawl: Recrawl,
    /// Which pages the crawl looks for.
    #[serde(skip_serializing_if = "Focus::is_default")]
    pub focus: Focus,
    /// What is kept.
    pub archive: Archive,
    /// What the crawl may take of the machine.
    pub machine: Machine,
    /// Settings for single hosts, by name or origin.
    pub host: BTreeMap<String, HostSettings>,
}

/// Who we are.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// The product token, which robots.txt files name.
    pub name: String,
    /// A URL or an email address where site owners can reach the operator.
    pub contact: String,
    /// Who runs the crawl, for the archive; the contact if empty.
    pub operator: String,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            name: "arose".to_owned(),
            contact: String::new(),
            operator: String::new(),
        }
    }
}

/// What is crawled.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scope {
    /// How far from the seeds the crawl goes, where neither hosts nor domains are listed.
    pub reach: Reach,
    /// Whether to fetch also what pages need to be shown, from any host.
    pub requisites: bool,
    /// What seeds and URLs in scope have in common; not limited by seeds if there is nothing.
    #[serde(skip)]
    pub roots: Option<Roots>,
    /// Directories of local files to crawl, as paths of URLs: those of seeds.
    #[serde(skip)]
    pub files: Vec<String>,
    /// Hosts to crawl; with neither hosts nor domains, those within reach of the seeds.
    pub hosts: Vec<String>,
    /// Domains to crawl, with all hosts below them.
    pub domains: Vec<String>,
    /// Domains not to crawl.
    pub blocked: Vec<String>,
    /// Regular expressions of which one must match.
    pub include: Vec<String>,
    /// Regular expressions of which none may match.
    pub exclude: Vec<String>,
    /// Links from a seed.
    pub max_depth: u32,
    /// Bytes of a URL.
    pub max_url_bytes: usize,
    /// Segments of a path.
    pub max_path_depth: usize,
    /// Repeats of a segment.
    pub max_repeats: usize,
    /// Parameters of a query.
    pub max_parameters: usize,
    /// Whether sessions and marks of campaigns are taken out of URLs.
    pub drop_crumbs: bool,
    /// Whether links with `rel=nofollow` are followed.
    pub follow_nofollow: bool,
    /// Whether the sitemaps that robots.txt names and the feeds of home pages are read.
    pub sitemaps: bool,
}

impl Default for Scope {
    fn default() -> Self {
        let guard = guard::Config::default();
        Self {
            reach: Reach::Site,
            requisites: false,
            roots: None,
            files: Vec::new(),
            hosts: Vec::new(),
            domains: Vec::new(),
            blocked: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            max_depth: guard.max_link_depth,
            max_url_bytes: guard.max_length,
            max_path_depth: guard.max_path_depth,
            max_repeats: guard.max_repeats,
            max_parameters: guard.max_parameters,
            drop_crumbs: false,
            follow_nofollow: false,
            sitemaps: true,
        }
    }
}

impl Scope {
    /// What the approval guard needs of it.
    #[must_use]
    pub fn guard(&self) -> guard::Config {
        guard::Config {
            max_length: self.max_url_bytes,
            max_link_depth: self.max_depth,
            max_path_depth: self.max_path_depth,
            max_repeats: self.max_repeats,
            max_parameters: self.max_parameters,
            hosts: self.hosts.clone(),
            domains: self.domains.clone(),
            blocked: self.blocked.clone(),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            roots: self.roots.clone(),
            files: self.files.clone(),
        }
    }
}

/// What is crawled first.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Crawl {
    /// Which of the URLs that wait is next.
    pub order: Order,
}

/// Which of the URLs that wait is next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The one that the most important pages link to, as far as the crawl has seen.
    #[default]
    Opic,
    /// The one with the fewest links from a seed, or what the caller's own order says.
    Breadth,
}

/// How far from the seeds a crawl goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The directory of a seed and all below it.
    Prefix,
    /// The host of a seed.
    Host,
    /// The registrable domain of a seed, with all hosts below it.
    Site,
    /// Everywhere.
    Web,
}

/// When a crawl ends; zero stands for no limit.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Pages fetched.
    pub pages: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Seconds of this run.
    pub seconds: f64,
    /// How long to wait, in seconds, for sites that are closed or in trouble when nothing else is
    /// left to do; what they hold stays queued for the next run.
    pub patience: f64,
    /// How long to wait, in seconds, for the crawler's own connection when no host can be reached
    /// any more.
    pub outage: f64,
}

impl Default for Stop {
    fn default() -> Self {
        Self {
            pages: 0,
            bytes: 0,
            seconds: 0.0,
            patience: 60.0,
            outage: 3600.0,
        }
    }
}

/// How often a site is asked. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Polite {
    /// The least time between the end of a request and the next one to the same host.
    pub delay: f64,
    /// The same for all hosts at one address.
    pub address_delay: f64,
    /// The delay as a multiple of the time the last download took.
    pub factor: f64,
    /// The longest delay that is not asked for by robots.txt.
    pub max_delay: f64,
    /// A host whose robots.txt asks for more is left for another time.
    pub defer_above: f64,
}

impl Default for Polite {
    fn default() -> Self {
        Self {
            delay: 1.0,
            address_delay: 1.0,
            factor: 10.0,
            max_delay: 60.0,
            defer_above: 300.0,
        }
    }
}

/// How pages are fetched. Times are in seconds, sizes in bytes.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fetch {
    /// Time for a connection, handshakes included.
    pub connect: f64,
    /// Time for the first byte of an answer.
    pub first_byte: f64,
    /// Time for a whole answer.
    pub whole: f64,
    /// The largest head of an answer.
    pub max_head: usize,
    /// The largest body; what is longer is cut and marked.
    pub max_body: usize,
    /// How many times its size a compressed body may become.
    pub max_expansion: usize,
    /// Redirects in a row.
    pub max_redirects: u8,
    /// How often a URL is tried.
    pub tries: u8,
    /// Seconds before a host that failed is tried again, doubled each time.
    pub retry_delay: f64,
    /// Requests in flight at most; requests that take longer than a quarter of a second are counted
    /// apart, up to as many again.
    pub in_flight: usize,
    /// Connections kept open for later requests.
    pub idle_connections: usize,
    /// Seconds for which they are kept.
    pub idle: f64,
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            connect: 10.0,
            first_byte: 30.0,
            whole: 120.0,
            max_head: 64 << 10,
            max_body: 10 << 20,
            max_expansion: 20,
            max_redirects: 5,
            tries: 3,
            retry_delay: 10.0,
            in_flight: 1000,
            idle_connections: 4000,
            idle: 15.0,
        }
    }
}

/// Names and addresses.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Whether private, loopback and link-local addresses may be asked.
    pub allow_private: bool,
    /// Name servers; those of the system if none are given.
    pub name_servers: Vec<SocketAddr>,
    /// A file of certificates (PEM) to trust beside those of the web.
    pub certificates: Option<PathBuf>,
    /// Hosts whose certificates are not checked.
    pub ignore_certificates: Vec<String>,
    /// A Netscape cookie file.
    pub cookies: Option<PathBuf>,
    /// Bytes a second; zero for no limit.
    pub max_bytes_per_second: u64,
}

/// What becomes of duplicates.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Duplicates {
    /// Whether pages are compared with those fetched before.
    pub check: bool,
    /// What makes near duplicates. Fixed when the crawl is started.
    pub policy: DuplicatePolicy,
    /// When the links of duplicates are followed. Those of seeds always are.
    pub links: DuplicateLinks,
    /// Whether the bodies of near duplicates are stored.
    pub body: DuplicateBody,
    /// After so many pages in a row that gave nothing new, a directory of a site, or URLs with the
    /// same query parameters, get one request per day.
    pub stale_after: u32,
}

/// When the links of duplicates are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicateLinks {
    /// Behind all other links of their site, and when other sites leave capacity.
    Last,
    /// Never.
    Never,
    /// Like other links.
    First,
}

/// What becomes of the body of a page that is a near duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicateBody {
    /// It is stored, with what the page resembles.
    Keep,
    /// It is not; a revisit record names what the page resembles.
    Drop,
}

impl Default for Duplicates {
    fn default() -> Self {
        Self {
            check: true,
            policy: DuplicatePolicy::default(),
            links: DuplicateLinks::Last,
            body: DuplicateBody::Keep,
            stale_after: 50,
        }
    }
}

/// Which pages are rejected for their quality.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quality {
    /// Rules such as `ratio > 4`: the links of a page that one applies to are not followed.
    pub reject: Vec<String>,
}

/// How much of the crawl a site may take.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Pages of a site, at most.
    pub max_pages: u64,
    /// Pages of a site with full priority, for as much trust as a seed has, at first; more as the
    /// crawl grows. Trust goes from page to page by links; what reached a site from others and was
    /// not passed on to others counts.
    pub pages: u64,
    /// Hosts of a site, at most.
    pub max_hosts: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_pages: 10_000,
            pages: 300,
            max_hosts: 100,
        }
    }
}

/// What is kept.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archive {
    /// What the names of archive files begin with.
    pub prefix: String,
    /// Bytes of an archive file before the next is begun.
    pub max_file: u64,
    /// Compression, 1 (fast) to 9.
    pub level: u32,
    /// Seconds between two points at which a killed crawl resumes.
    pub commit: f64,
    /// Whether requests are written down beside their answers.
    pub requests: bool,
    /// Bytes of the journal from which on it is rewritten without what is done, whenever that
    /// halves it.
    pub compact: u64,
}

impl Default for Archive {
    fn default() -> Self {
        Self {
            prefix: "arose".to_owned(),
            max_file: 1 << 30,
            level: 1,
            commit: 1.0,
            requests: false,
            compact: 64 << 20,
        }
    }
}

/// What the crawl may take of the machine.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// Threads that read pages beside the one that fetches them; zero reads them there too.
    pub threads: usize,
    /// Bytes of memory above which fewer requests are made at a time. A quarter of it may hold URLs
    /// met before.
    pub max_memory: u64,
    /// URLs met lately that are held in memory, 50 bytes each, before they go to the disk.
    pub seen_buffer: usize,
    /// Share of failed requests above which fewer are made at a time.
    pub max_errors: f64,
    /// Hosts in memory; others rest in a file that is gone with the process. About 1 KB each.
    pub hosts_in_memory: usize,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            threads: 1,
            max_memory: 4 << 30,
            seen_buffer: 1 << 18,
            max_errors: 0.5,
            hosts_in_memory: 100_000,
        }
    }
}

impl Settings {
    /// Reads a settings file.
    ///
    /// # Errors
    ///
    /// With line and column, if it is no TOML, has a name unknown here, or a value of another type.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// All settings as a file, to be read by [`Settings::parse`].
    ///
    /// # Errors
    ///
    /// If TOML cannot represent a value, such as NaN.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// All settings as one line, for the archive; without what single hosts are sent, which is
    /// nobody else's business.
    pub(crate) fn to_json(&self) -> String {
        let hosts = self.host.iter();
        let hosts = hosts.map(|(name, host)| (name.clone(), host.without_secrets()));
        let public = Self {
            host: hosts.collect(),
            ..self.clone()
        };
        serde_json::to_string(&public).unwrap_or_default()
    }

    /// Whether they hold something that is not for everyone to read.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        self.host.values().any(HostSettings::is_sent)
    }

    /// What is set for a host alone; the entry for its origin before the one for its name.
    pub(crate) fn of_host(&self, origin: &str, name: &str) -> Option<&HostSettings> {
        match self.host.is_empty() {
            true => None,
            false => self.host.get(origin).or_else(|| self.host.get(name)),
        }
    }

    /// The pace for a host.
    pub(crate) fn polite_of(&self, origin: &str, name: &str) -> Polite {
        // A disk has nobody who minds.
        if origin.starts_with("file:") {
            return Polite {
                delay: 0.0,
                address_delay: 0.0,
                factor: 0.0,
                ..self.polite.clone()
            };
        }
        let delay = self.of_host(origin, name).and_then(|host| host.delay);
        Polite {
            delay: delay.unwrap_or(self.polite.delay),
            address_delay: delay.unwrap_or(self.polite.address_delay),
            ..self.polite.clone()
        }
    }

    /// The header `User-Agent`.
    #[must_use]
    pub fn user_agent(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match self.agent.contact.as_str() {
            "" => format!("{}/{version}", self.agent.name),
            contact => format!("{}/{version} (+{contact})", self.agent.name),
        }
    }
}

/// Seconds as a duration; nonsense as none.
pub(crate) fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_holds_every_default() {
        assert_eq!(Settings::parse(TEMPLATE).unwrap(), Settings::default());
        let active = TEMPLATE
            .lines()
            .filter(|line| !line.starts_with('#') && line.contains('='));
        assert_eq!(active.count(), 91);
    }

    #[test]
    fn settings_survive_being_written() {
        let mut settings = Settings::default();
        settings.polite.delay = 0.25;
        settings.network.certificates = Some("x.pem".into());
        let text = settings.to_toml().unwrap();
        assert_eq!(Settings::parse(&text).unwrap(), settings);
    }

    #[test]
    fn misspelt_names_are_errors() {
        let error = Settings::parse("[polite]\ndeley = 2.0\n").unwrap_err();
        assert!(error.to_string().contains("deley"), "{error}");
    }

    #[test]
    fn the_user_agent_names_a_contact() {
        let mut settings = Settings::default();
        settings.agent.contact = "https://example.org/bot".to_owned();
        let expected = format!(
            "arose/{} (+https://example.org/bot)",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(settings.user_agent(), expected);
    }
}
