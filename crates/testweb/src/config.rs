//! What web to make: how many hosts, of which kinds, how large.

use std::path::PathBuf;

use crate::error::Error;
use crate::robots::Robots;

/// The settings of a web. The same settings give the same bytes for every page, up to the port in
/// absolute links.
#[derive(Debug, Clone)]
pub struct Config {
    /// Selects everything that is random.
    pub seed: u64,
    /// Synthetic hosts, at least 1; folders come on top.
    pub n_hosts: u32,
    /// Addresses in 127.0.0.0/8 that the hosts share in turn, at least 1. Each takes one listening
    /// socket, so the limit of open files must lie above it.
    pub n_addresses: u32,
    /// Pages of a host.
    pub pages: PageCount,
    /// Median of the log-normal page size, in bytes.
    pub median_bytes: u32,
    /// Deviation of the logarithm of the page size.
    pub size_sigma: f64,
    /// Kinds of hosts with their weights: each run of as many hosts as the weights sum to holds
    /// every kind as often as its weight, in an order drawn by the seed. The first host of all is
    /// always plain.
    pub kinds: Vec<(Kind, u32)>,
    /// Robots files with their weights, for the hosts whose kind leaves the choice.
    pub robots: Vec<(Robots, u32)>,
    /// Share of leaf pages that are copies, half of them exact, of another page of their host.
    pub copies: f64,
    /// Words of a thousand that a near duplicate has replaced. 0.6 makes a resemblance of about
    /// 0.99 over shingles of eight words, 6 one of 0.91.
    pub edits_per_thousand: f64,
    /// The product token that the robots files with a group of their own speak to.
    pub agent: String,
    /// Folders of files to serve, a host each.
    pub folders: Vec<Folder>,
    /// Whether relative links of pages in folders carry a session that is new in each link of each
    /// URL, `?sid=...`, and half of them a mark of a campaign; pages do not depend on these.
    pub folder_sessions: bool,
    /// Port of every host; 0 for one that is free.
    pub port: u16,
    /// UDP port of the name server on 127.0.0.1; 0 for one that is free.
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
    /// A web without trouble, as large as asked: plain hosts, an address and fifty pages each, one
    /// folder of each disallowed.
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

    /// A web of which half of the hosts are spam, of every kind; robots may go everywhere.
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

    /// A web of URL variants: after a plain host, as many hosts of each flavour.
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

/// How many pages a host has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageCount {
    /// The same for all.
    Fixed(u32),
    /// A power law: most have few, a few have many.
    Pareto {
        /// The fewest.
        least: u32,
        /// The tail falls as `n^-alpha`.
        alpha: f64,
        /// The most.
        most: u32,
    },
}

/// A folder to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The host's name.
    pub host: String,
    /// Its root; links that lead out of it are followed.
    pub path: PathBuf,
}

impl Folder {
    /// Each folder below `root` as a host named after it, below `.test`, in the order of names.
    ///
    /// # Errors
    /// When `root` cannot be read.
    pub fn below(root: &std::path::Path) -> Result<Vec<Self>, Error> {
        let what = || format!("cannot read the folder {}", root.display());
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

    /// The documentation that Debian packages have installed, a host each.
    ///
    /// # Errors
    /// When a package has none here.
    pub fn debian(packages: &[String]) -> Result<Vec<Self>, Error> {
        let folder = |package: &String| {
            let path = PathBuf::from("/usr/share/doc").join(package);
            let is_plain = !package.is_empty() && !package.contains('/') && package != "..";
            if is_plain && path.is_dir() {
                return Ok(Self::named_after(path));
            }
            let expected = "packages with a folder in /usr/share/doc";
            Err(Error::parameter("folders", package, expected))
        };
        packages.iter().map(folder).collect()
    }

    /// The path of every file that is served, in order: the truth about the folder.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn targets(&self) -> Result<Vec<String>, Error> {
        let what = format!("cannot read the folder {}", self.path.display());
        crate::folder::targets(&self.path).map_err(Error::io(what))
    }

    /// Letters, digits and dashes of the folder's name make the host's.
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
    /// In memory, some 150 bytes a request, for [`Server::log`](crate::Server::log).
    Memory,
    /// To a file, for [`Log::open`](crate::log::Log::open).
    File(PathBuf),
}

/// What a host is like. [`Kind::has_pages`] says which have ordinary pages too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Ordinary pages.
    Plain,
    /// Byte for byte the pages of a plain host.
    Mirror,
    /// The pages of a plain host, with a few words and the last line changed.
    NearMirror,
    /// Much text that is the same on all pages around an item that is not; compressed on request.
    Template,
    /// Links carry a session in the path, `/S-XXXXXXXXXXX/...`; pages do not depend on it.
    PathCrumb,
    /// Links carry a session in the query, `?sid=...`; pages do not depend on it.
    QueryCrumb,
    /// Several addresses for a page: `/story/7`, `/story?id=7`, `/story/7/index.html`, with and
    /// without `www.`.
    Dust,
    /// Pages tell the time and count their readers; sent in chunks.
    Timestamp,
    /// Pages change with the [version](crate::Control::set_version), each at its own rate.
    Changing,
    /// Every fifth request is answered with 429 or 503 and `Retry-After`.
    Busy,
    /// Redirects of every status: chains, loops, spirals, to other hosts, to nowhere.
    Redirects,
    /// Any path is answered with 200, a page that says it is not there, and links to more.
    SoftNotFound,
    /// A calendar without end.
    Calendar,
    /// A session in the path that is new on every page, so that addresses never end.
    Maze,
    /// Relative links that go one folder deeper, for ever.
    Deep,
    /// Names without end below the host's name.
    EndlessHosts,
    /// A page for each [`Fault`](crate::Fault), and damaged replies without end at `/noise/1`,
    /// `/noise/2` and so on, to which nothing links.
    Broken,
    /// Files of a folder. Not for [`Config::kinds`]: folders are listed by themselves.
    Folder,
    /// The name does not exist.
    NoName,
    /// The name server fails for this name.
    NameFailure,
    /// The name server does not answer for this name.
    NameSilence,
    /// The address refuses connections.
    Refused,
    /// The name server does not answer for the IPv4 address of this name and says that there is no
    /// IPv6 address.
    NameHalfSilence,
    /// The home page is that of every other host of this kind; the pages below differ.
    SameHome,
    /// All pages have one text and one list of links, except for a number and a price.
    Shop,
    /// Every link of every response carries a new session in the query, `?sid=...`; pages do not
    /// depend on it.
    FreshSessions,
    /// Pages of several topics, which link mostly to their own ([`topic_words`](crate::topic_words)).
    Topic,
    /// Spam: pages of few words, drawn again and again.
    Stuffed,
    /// Spam: a few sentences again and again, some words exchanged.
    Spun,
    /// Spam: the text of pages of a plain host, under its own links.
    Scraped,
    /// Spam: much text that nobody sees.
    Hidden,
    /// Spam: pages of links and nothing else.
    Farm,
    /// Spam: one page for all hosts of the kind except for a key word; all at one address.
    Wildcard,
    /// Pages with many URLs, of the [flavours](crate::Flavour) in turn.
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

    /// The first part of the names of such hosts.
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

    /// Whether hosts of this kind answer requests with ordinary pages.
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

    /// Whether the robots file is drawn from the mixture; other kinds let everybody in, so that
    /// their trouble can be met.
    pub(crate) const fn has_any_robots(self) -> bool {
        matches!(
            self,
            Kind::Plain | Kind::Mirror | Kind::NearMirror | Kind::Template
        )
    }

    /// Whether pages are those of another host.
    pub(crate) const fn is_mirror(self) -> bool {
        matches!(self, Kind::Mirror | Kind::NearMirror)
    }
}
