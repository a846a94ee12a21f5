//! Settings of a crawl, read from a TOML file.
//!
//! Every setting has a default. [`TEMPLATE`] is a file with all settings, their defaults and
//! explanations; a test compares it with the code. Unknown names are errors, so that a misspelt
//! limit is noticed.

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

pub use focus::{FocusSettings, ScorerKind};
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
    /// The identity of the crawler.
    pub agent: Agent,
    /// Which URLs to crawl.
    pub scope: Scope,
    /// Which URLs to fetch first.
    pub crawl: CrawlSettings,
    /// When to stop.
    pub stop: Stop,
    /// How often to send requests to a host.
    pub polite: Polite,
    /// How to fetch pages.
    pub fetch: FetchSettings,
    /// DNS, IP addresses and certificates.
    pub network: Network,
    /// How to treat duplicates.
    pub duplicates: Duplicates,
    /// How to learn URL rules.
    pub rules: Rules,
    /// Which pages to reject for their quality.
    pub quality: Quality,
    /// How much of the crawl one site may take.
    pub budget: Budget,
    /// How to visit pages again.
    pub recrawl: Recrawl,
    /// Which pages the crawl looks for.
    #[serde(skip_serializing_if = "FocusSettings::is_default")]
    pub focus: FocusSettings,
    /// What to store.
    pub archive: Archive,
    /// Which resources of the machine to use.
    pub machine: Machine,
    /// Settings for single hosts, by host name or origin.
    pub host: BTreeMap<String, HostSettings>,
}

/// The identity of the crawler.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Agent {
    /// The product token, which robots.txt files name.
    pub name: String,
    /// A URL or an email address where site owners can reach the operator.
    pub contact: String,
    /// The operator, as recorded in the archive; the contact if empty.
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

/// Which URLs to crawl.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scope {
    /// The distance from the seeds to crawl, if neither hosts nor domains are listed.
    pub reach: Reach,
    /// Whether to also fetch the styles, images and scripts of pages, from any host.
    pub requisites: bool,
    /// The common part of seeds and URLs in scope. If it is empty, seeds do not limit the scope.
    #[serde(skip)]
    pub roots: Option<Roots>,
    /// Directories of local files to crawl, as URL paths: those of the seeds.
    #[serde(skip)]
    pub files: Vec<String>,
    /// Hosts to crawl. If neither hosts nor domains are set, those in scope of the seeds.
    pub hosts: Vec<String>,
    /// Domains to crawl, with all their subdomains.
    pub domains: Vec<String>,
    /// Domains to exclude.
    pub blocked: Vec<String>,
    /// Regular expressions, at least one of which must match.
    pub include: Vec<String>,
    /// Regular expressions, none of which may match.
    pub exclude: Vec<String>,
    /// Maximum link depth from a seed.
    pub max_depth: u32,
    /// Maximum length of a URL in bytes.
    pub max_url_bytes: usize,
    /// Maximum number of segments of a path.
    pub max_path_depth: usize,
    /// Maximum number of repetitions of a segment.
    pub max_repeats: usize,
    /// Maximum number of query parameters.
    pub max_parameters: usize,
    /// Whether to remove session IDs and tracking parameters from URLs.
    pub drop_session_ids: bool,
    /// Whether to follow links with `rel=nofollow`.
    pub follow_nofollow: bool,
    /// Whether to read the sitemaps listed in robots.txt and the feeds of home pages.
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
            drop_session_ids: false,
            follow_nofollow: false,
            sitemaps: true,
        }
    }
}

impl Scope {
    /// Returns the settings of the approval guard.
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

/// Which URLs to fetch first.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CrawlSettings {
    /// The order of queued URLs.
    pub order: Order,
}

/// The order of queued URLs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// First the URL with the most important links to it, according to the pages fetched so far.
    #[default]
    Opic,
    /// First the URL with the lowest link depth from a seed, or the order of the caller.
    Breadth,
}

/// The distance from the seeds to crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reach {
    /// The directory of a seed and everything below it.
    Prefix,
    /// The host of a seed.
    Host,
    /// The registrable domain of a seed, with all its subdomains.
    Site,
    /// Everything.
    Web,
}

/// When to stop; zero means no limit.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Maximum number of fetched pages.
    pub pages: u64,
    /// Maximum number of received bytes.
    pub bytes: u64,
    /// Maximum duration of this run in seconds.
    pub seconds: f64,
    /// How long to wait, in seconds, for sites that are closed or failing when nothing else is left
    /// to do. Their URLs stay queued for the next run.
    pub patience: f64,
    /// How long to wait, in seconds, for the connection of the crawler itself when no host can be
    /// reached any more.
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

/// How often to send requests to a host. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Polite {
    /// Minimum time between the end of a request and the next one to the same host.
    pub delay: f64,
    /// The same for all hosts with one IP address.
    pub address_delay: f64,
    /// Minimum delay as a multiple of the last download time.
    pub factor: f64,
    /// Maximum delay unless robots.txt requests a longer one.
    pub max_delay: f64,
    /// Hosts whose robots.txt requests a longer delay are not crawled in this run.
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

/// How to fetch pages. Times are in seconds, sizes in bytes.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchSettings {
    /// Time limit for a connection, including handshakes.
    pub connect: f64,
    /// Time limit for the first byte of a response.
    pub first_byte: f64,
    /// Time limit for a complete response.
    pub whole: f64,
    /// Maximum size of the header of a response.
    pub max_head: usize,
    /// Maximum size of a body. Longer bodies are truncated and marked.
    pub max_body: usize,
    /// Maximum expansion factor of a compressed body.
    pub max_expansion: usize,
    /// Maximum number of consecutive redirects.
    pub max_redirects: u8,
    /// Maximum number of attempts per URL.
    pub tries: u8,
    /// Seconds before a failed host is tried again, doubled each time.
    pub retry_delay: f64,
    /// Maximum number of open requests. Requests that take longer than a quarter of a second are
    /// counted separately, up to the same number.
    pub in_flight: usize,
    /// Number of connections kept open for later requests.
    pub idle_connections: usize,
    /// Seconds for which they are kept.
    pub idle: f64,
}

impl Default for FetchSettings {
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

/// DNS, IP addresses and certificates.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Whether to allow private, loopback and link-local IP addresses.
    pub allow_private: bool,
    /// DNS servers; those of the system if none are set.
    pub name_servers: Vec<SocketAddr>,
    /// A PEM file of certificates to trust in addition to those of the web.
    pub certificates: Option<PathBuf>,
    /// Hosts whose certificates are not verified.
    pub ignore_certificates: Vec<String>,
    /// A Netscape cookie file.
    pub cookies: Option<PathBuf>,
    /// Maximum bytes per second; zero means no limit.
    pub max_bytes_per_second: u64,
}

/// How to treat duplicates.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Duplicates {
    /// Whether to compare pages with those fetched before.
    pub check: bool,
    /// The definition of near duplicates. Fixed when the crawl is started.
    pub policy: DuplicatePolicy,
    /// When to follow the links of duplicates. Those of seeds are always followed.
    pub links: DuplicateLinks,
    /// Whether to store the bodies of near duplicates.
    pub body: DuplicateBody,
    /// After this many consecutive pages that repeat others and were found on such pages, a
    /// directory of a site, or URLs with the same query parameters, get one request per day.
    pub stale_after: u32,
}

/// When to follow the links of duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicateLinks {
    /// After all other links of their site, and when other sites leave capacity.
    Last,
    /// Never.
    Never,
    /// Like other links.
    First,
}

/// Whether to store the body of a near duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DuplicateBody {
    /// Store it, and record the page it duplicates.
    Keep,
    /// Do not store it; a revisit record names the page it duplicates.
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

/// Which pages to reject for their quality.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quality {
    /// Rules such as `ratio > 4`. The links of a page that matches one are not followed.
    pub reject: Vec<String>,
}

/// How much of the crawl one site may take.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Maximum number of pages of a site.
    pub max_pages: u64,
    /// Number of pages of a site with full priority, per trust of one seed, at the start; it grows
    /// with the crawl. Links pass trust from page to page. The trust of a site is what it received
    /// from other sites and did not pass on to others.
    pub pages: u64,
    /// Maximum number of hosts of a site.
    pub max_hosts: u32,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            max_pages: 1_000_000,
            pages: 300,
            max_hosts: 100,
        }
    }
}

/// What to store.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archive {
    /// Prefix of the names of archive files.
    pub prefix: String,
    /// Size in bytes at which the next archive file is started.
    pub max_file: u64,
    /// Compression level, 1 (fast) to 9.
    pub level: u32,
    /// Seconds between two points from which a killed crawl resumes.
    pub commit: f64,
    /// Whether to store requests beside their responses.
    pub requests: bool,
    /// Size in bytes from which the journal is rewritten without completed URLs, whenever that
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

/// Which resources of the machine to use.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// Threads that parse pages beside the thread that fetches them; with zero, that thread also
    /// parses them.
    pub threads: usize,
    /// Memory limit in bytes above which fewer requests are open at a time. URLs met may take up to
    /// a quarter of it.
    pub max_memory: u64,
    /// Number of recently met URLs in memory, 50 bytes each, before they are written to disk.
    pub seen_buffer: usize,
    /// Share of failed requests above which fewer are open at a time.
    pub max_errors: f64,
    /// Number of hosts in memory, about 1 KB each. The others are in a file that is deleted when
    /// the process ends.
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
    /// Parses a settings file.
    ///
    /// # Errors
    ///
    /// With line and column, if it is not TOML, or contains an unknown name or a value of the wrong
    /// type.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Returns all settings as a file that [`Settings::parse`] reads.
    ///
    /// # Errors
    ///
    /// If TOML cannot represent a value, such as NaN.
    pub fn to_toml(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// Returns all settings as one line for the archive, without the credentials of single hosts.
    pub(crate) fn to_json(&self) -> String {
        let hosts = self.host.iter();
        let hosts = hosts.map(|(name, host)| (name.clone(), host.without_secrets()));
        let public = Self {
            host: hosts.collect(),
            ..self.clone()
        };
        serde_json::to_string(&public).unwrap_or_default()
    }

    /// Whether the settings contain secrets.
    #[must_use]
    pub fn has_secrets(&self) -> bool {
        self.host.values().any(HostSettings::is_sent)
    }

    /// Returns the settings of a host. The entry for its origin takes precedence over the one for
    /// its name.
    pub(crate) fn of_host(&self, origin: &str, name: &str) -> Option<&HostSettings> {
        match self.host.is_empty() {
            true => None,
            false => self.host.get(origin).or_else(|| self.host.get(name)),
        }
    }

    /// Returns the pace for a host.
    pub(crate) fn polite_of(&self, origin: &str, name: &str) -> Polite {
        // Local files need no delay.
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

    /// Returns the `User-Agent` header.
    #[must_use]
    pub fn user_agent(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        match self.agent.contact.as_str() {
            "" => format!("{}/{version}", self.agent.name),
            contact => format!("{}/{version} (+{contact})", self.agent.name),
        }
    }
}

/// Converts seconds to a duration; invalid values become zero.
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
