//! Settings of a web: the number of hosts, their kinds, and their sizes.

use std::path::PathBuf;

use crate::error::Error;
use crate::robots::Robots;

/// The settings of a web. The same settings give the same bytes for every page, except for the port
/// in absolute links.
#[derive(Debug, Clone)]
pub struct Config {
    /// Seed of all random choices.
    pub seed: u64,
    /// Number of synthetic hosts, at least 1, in addition to directories.
    pub n_hosts: u32,
    /// Number of IP addresses in 127.0.0.0/8 that the hosts share in turn, at least 1. Each takes
    /// one listening socket, so the limit on open files must be higher.
    pub n_addresses: u32,
    /// Number of pages per host.
    pub pages: PageCount,
    /// Median of the log-normal page size, in bytes.
    pub median_bytes: u32,
    /// Standard deviation of the logarithm of the page size.
    pub size_sigma: f64,
    /// Kinds of hosts with their weights. In each run of as many hosts as the sum of the weights,
    /// every kind occurs as often as its weight, in an order selected by the seed. The first host
    /// of all is always plain.
    pub kinds: Vec<(Kind, u32)>,
    /// Robots files with their weights, for the hosts whose kind leaves the choice open.
    pub robots: Vec<(Robots, u32)>,
    /// Share of leaf pages that are duplicates, half of them exact, of another page of their host.
    pub copies: f64,
    /// Number of words per thousand that are replaced in a near duplicate. 0.6 gives a similarity
    /// of about 0.99 over shingles of eight words, 6 gives 0.91.
    pub edits_per_thousand: f64,
    /// The product token that robots files with a group for the crawler name.
    pub agent: String,
    /// Directories of files to serve, one host each.
    pub folders: Vec<Folder>,
    /// Whether relative links of pages in directories have a session ID that is new in each link of
    /// each URL, `?sid=...`, and half of them a tracking parameter. Pages do not depend on these.
    pub folder_sessions: bool,
    /// Port of every host; 0 selects a free port.
    pub port: u16,
    /// UDP port of the DNS server on 127.0.0.1; 0 selects a free port.
    pub dns_port: u16,
    /// Where requests are recorded.
    pub log: LogTo,
}

impl Default for Config {
    /// A hundred hosts of every kind.
    fn default() -> Self {
        Self {
            seed: 1,
            n_hosts: 100,
            n_addresses: 100,
            pages: PageCount::Pareto {
                least: 10,
                alpha: 1.1,
                most: 1000,
            },
            median_bytes: 10_240,
            size_sigma: 0.8,
            kinds: Kind::EVERY.to_vec(),
            robots: Robots::EVERY.to_vec(),
            copies: 0.05,
            edits_per_thousand: 0.6,
            agent: "arose".to_owned(),
            folders: Vec::new(),
            folder_sessions: false,
            port: 0,
            dns_port: 0,
            log: LogTo::Memory,
        }
    }
}

impl Config {
    /// A web without faults, of any size: plain hosts, each with its own IP address and fifty
    /// pages, and one disallowed directory each.
    #[must_use]
    pub fn plain(n_hosts: u32) -> Self {
        Self {
            n_hosts,
            n_addresses: n_hosts,
            pages: PageCount::Fixed(50),
            kinds: vec![(Kind::Plain, 1)],
            robots: vec![(Robots::NotPrivate, 1)],
            copies: 0.0,
            ..Self::default()
        }
    }

    /// A web in which half of the hosts are spam, of every kind; robots may go everywhere.
    #[must_use]
    pub fn spam(n_hosts: u32) -> Self {
        let spam = Kind::SPAM.map(|kind| (kind, 1));
        let n_spam = spam.len() as u32;
        Self {
            kinds: [(Kind::Plain, n_spam)].into_iter().chain(spam).collect(),
            robots: vec![(Robots::AllowAll, 1)],
            ..Self::plain(n_hosts)
        }
    }

    /// A web of URL variants: a plain host, followed by the same number of hosts of each flavour.
    #[must_use]
    pub fn variants(n_each: u32) -> Self {
        Self {
            kinds: vec![(Kind::Variants, 1)],
            robots: vec![(Robots::AllowAll, 1)],
            ..Self::plain(1 + n_each * crate::Flavour::ALL.len() as u32)
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let in_range = |name, value: u32, most, expected| match value {
            1.. if value <= most => Ok(()),
            _ => Err(Error::parameter(name, value, expected)),
        };
        in_range("n_hosts", self.n_hosts, 10_000_000, "1 to 10,000,000")?;
        in_range("n_addresses", self.n_addresses, 1 << 20, "1 to 1,048,576")?;
        in_range("median_bytes", self.median_bytes, 1 << 20, "1 to 1,048,576")?;
        let share = |name, value: f64, most: f64, expected| {
            if (0.0..=most).contains(&value) {
                return Ok(());
            }
            Err(Error::parameter(name, value, expected))
        };
        share("size_sigma", self.size_sigma, 3.0, "0 to 3")?;
        share("copies", self.copies, 1.0, "0 to 1")?;
        share(
            "edits_per_thousand",
            self.edits_per_thousand,
            80.0,
            "0 to 80",
        )?;
        check_weights("kinds", self.kinds.iter().map(|&(_, weight)| weight))?;
        check_weights("robots", self.robots.iter().map(|&(_, weight)| weight))
    }
}

fn check_weights(name: &'static str, weights: impl Iterator<Item = u32>) -> Result<(), Error> {
    let sum: u64 = weights.map(u64::from).sum();
    match sum {
        1..=100_000 => Ok(()),
        _ => Err(Error::parameter(
            name,
            sum,
            "weights that sum to 1 to 100,000",
        )),
    }
}

/// Number of pages of a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageCount {
    /// The same for all hosts.
    Fixed(u32),
    /// A power law: most hosts have few pages, a few have many.
    Pareto {
        /// Minimum.
        least: u32,
        /// The tail falls as `n^-alpha`.
        alpha: f64,
        /// Maximum.
        most: u32,
    },
}

/// A directory to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The name of the host.
    pub host: String,
    /// Its root directory; links that lead out of it are followed.
    pub path: PathBuf,
}

impl Folder {
    /// Each subdirectory of `root` as a host named after it, below `.test`, in the order of names.
    ///
    /// # Errors
    /// If `root` cannot be read.
    pub fn below(root: &std::path::Path) -> Result<Vec<Self>, Error> {
        let what = || format!("cannot read the directory {}", root.display());
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(root).map_err(Error::io(what()))? {
            let path = entry.map_err(Error::io(what()))?.path();
            if path.is_dir() {
                folders.push(Self::named_after(path));
            }
        }
        folders.sort_by(|a, b| a.host.cmp(&b.host));
        Ok(folders)
    }

    /// The documentation that Debian packages have installed, one host each.
    ///
    /// # Errors
    /// If a package has no documentation here.
    pub fn debian(packages: &[String]) -> Result<Vec<Self>, Error> {
        let folder = |package: &String| {
            let path = PathBuf::from("/usr/share/doc").join(package);
            let is_plain = !package.is_empty() && !package.contains('/') && package != "..";
            if is_plain && path.is_dir() {
                return Ok(Self::named_after(path));
            }
            let expected = "packages with a directory in /usr/share/doc";
            Err(Error::parameter("folders", package, expected))
        };
        packages.iter().map(folder).collect()
    }

    /// The path of every file that is served, in order: the ground truth of the directory.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn targets(&self) -> Result<Vec<String>, Error> {
        let what = format!("cannot read the directory {}", self.path.display());
        crate::folder::targets(&self.path).map_err(Error::io(what))
    }

    /// Makes the name of the host from the letters, digits and dashes of the directory name.
    fn named_after(path: PathBuf) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let label: String = name
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_lowercase()
                } else {
                    '-'
                }
            })
            .collect();
        let host = format!("{}.test", label.trim_matches('-'));
        Self { host, path }
    }
}

/// Where requests are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTo {
    /// Nowhere.
    Nothing,
    /// In memory, about 150 bytes per request, for [`Server::log`](crate::Server::log).
    Memory,
    /// To a file, for [`Log::open`](crate::log::Log::open).
    File(PathBuf),
}

/// The kind of a host. [`Kind::has_pages`] says which kinds also have ordinary pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Ordinary pages.
    Plain,
    /// The pages of a plain host, byte for byte.
    Mirror,
    /// The pages of a plain host, with a few words and the last line changed.
    NearMirror,
    /// Much text that is the same on all pages, around an item that differs; compressed on request.
    Template,
    /// Links have a session ID in the path, `/S-XXXXXXXXXXX/...`; pages do not depend on it.
    PathCrumb,
    /// Links have a session ID in the query, `?sid=...`; pages do not depend on it.
    QueryCrumb,
    /// Several URLs for a page: `/story/7`, `/story?id=7`, `/story/7/index.html`, with and without
    /// `www.`.
    Dust,
    /// Pages show the time and count their visits; sent in chunks.
    Timestamp,
    /// Pages change with the [version](crate::Control::set_version), each at its own rate. A feed
    /// lists the changes, and sitemaps have [dates](crate::Dates), true or not.
    Changing,
    /// Every fifth request gets a response with status 429 or 503 and `Retry-After`.
    Busy,
    /// Redirects of every status: chains, loops, spirals, to other hosts, to nowhere.
    Redirects,
    /// Every path gets a response with status 200: a page that says it does not exist, with links
    /// to more.
    SoftNotFound,
    /// An endless calendar.
    Calendar,
    /// A session ID in the path that is new on every page, so that URLs never end.
    Maze,
    /// Relative links that go one directory deeper, forever.
    Deep,
    /// Endless host names below the name of the host.
    EndlessHosts,
    /// A page for each [`Fault`](crate::Fault), and endless damaged responses at `/noise/1`,
    /// `/noise/2` and so on, to which nothing links.
    Broken,
    /// Files of a directory. Not for [`Config::kinds`]: directories are listed separately.
    Folder,
    /// The host name does not exist.
    NoName,
    /// The DNS server fails for this host.
    NameFailure,
    /// The DNS server does not respond for this host.
    NameSilence,
    /// The IP address refuses connections.
    Refused,
    /// The DNS server does not respond for the IPv4 address of this host, and says that there is no
    /// IPv6 address.
    NameHalfSilence,
    /// The home page is that of every other host of this kind; the pages below it differ.
    SameHome,
    /// All pages have the same text and links, except for a number and a price.
    Shop,
    /// Every link of every response has a new session ID in the query, `?sid=...`; pages do not
    /// depend on it.
    FreshSessions,
    /// Pages of several topics, which link mostly to pages of their own topic
    /// ([`topic_words`](crate::topic_words)).
    Topic,
    /// Spam: pages with few distinct words, repeated over and over.
    Stuffed,
    /// Spam: a few sentences over and over, with some words exchanged.
    Spun,
    /// Spam: the text of pages of a plain host, with its own links.
    Scraped,
    /// Spam: much text that is not shown.
    Hidden,
    /// Spam: pages that consist only of links.
    Farm,
    /// Spam: one page for all hosts of the kind, except for a keyword, all at one IP address.
    Wildcard,
    /// Pages with many URLs, by the [flavours](crate::Flavour) in turn.
    Variants,
}

impl Kind {
    /// The kinds of the default mixture, with their weights.
    pub const EVERY: [(Kind, u32); 21] = [
        (Kind::Plain, 30),
        (Kind::Mirror, 6),
        (Kind::NearMirror, 6),
        (Kind::Template, 8),
        (Kind::PathCrumb, 3),
        (Kind::QueryCrumb, 3),
        (Kind::Dust, 3),
        (Kind::Timestamp, 3),
        (Kind::Changing, 3),
        (Kind::Busy, 2),
        (Kind::Redirects, 2),
        (Kind::SoftNotFound, 2),
        (Kind::Calendar, 2),
        (Kind::Maze, 1),
        (Kind::Deep, 1),
        (Kind::EndlessHosts, 1),
        (Kind::Broken, 3),
        (Kind::NoName, 1),
        (Kind::NameFailure, 1),
        (Kind::NameSilence, 1),
        (Kind::Refused, 1),
    ];

    /// The kinds of spam, for webs that have some.
    pub const SPAM: [Kind; 6] = [
        Kind::Stuffed,
        Kind::Spun,
        Kind::Scraped,
        Kind::Hidden,
        Kind::Farm,
        Kind::Wildcard,
    ];

    /// Whether pages of such hosts are spam.
    #[must_use]
    pub fn is_spam(self) -> bool {
        Self::SPAM.contains(&self)
    }

    /// The prefix of the names of such hosts.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Mirror => "mirror",
            Kind::NearMirror => "near",
            Kind::Template => "template",
            Kind::PathCrumb => "crumb",
            Kind::QueryCrumb => "session",
            Kind::Dust => "dust",
            Kind::Timestamp => "clock",
            Kind::Changing => "changing",
            Kind::Busy => "busy",
            Kind::Redirects => "redirects",
            Kind::SoftNotFound => "soft",
            Kind::Calendar => "calendar",
            Kind::Maze => "maze",
            Kind::Deep => "deep",
            Kind::EndlessHosts => "endless",
            Kind::Broken => "broken",
            Kind::Folder => "folder",
            Kind::NoName => "noname",
            Kind::NameFailure => "failing",
            Kind::NameSilence => "silent",
            Kind::Refused => "refused",
            Kind::NameHalfSilence => "half",
            Kind::SameHome => "twin",
            Kind::Shop => "shop",
            Kind::FreshSessions => "fresh",
            Kind::Topic => "topic",
            Kind::Stuffed => "stuffed",
            Kind::Spun => "spun",
            Kind::Scraped => "scraped",
            Kind::Hidden => "hidden",
            Kind::Farm => "farm",
            Kind::Wildcard => "wildcard",
            Kind::Variants => "variants",
        }
    }

    /// Whether hosts of this kind respond with ordinary pages.
    #[must_use]
    pub const fn has_pages(self) -> bool {
        !matches!(
            self,
            Kind::Folder
                | Kind::NoName
                | Kind::NameFailure
                | Kind::NameSilence
                | Kind::NameHalfSilence
                | Kind::Refused
        )
    }

    /// Whether the robots file is sampled from the mixture. Other kinds allow everything, so that
    /// their faults can be met.
    pub(crate) const fn has_any_robots(self) -> bool {
        matches!(
            self,
            Kind::Plain | Kind::Mirror | Kind::NearMirror | Kind::Template
        )
    }

    /// Whether the pages are those of another host.
    pub(crate) const fn is_mirror(self) -> bool {
        matches!(self, Kind::Mirror | Kind::NearMirror)
    }
}
