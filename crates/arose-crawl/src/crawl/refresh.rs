//! Refresh on demand: visits requested pages as soon as possible.
//!
//! The order is a file `refresh` in the directory of the crawl, with one URL per line. A running
//! crawl takes it within a second, and a crawl that is started later takes it at once. The pages go
//! to the front of the queues of their hosts, with the usual delays. The result is a file
//! `refresh.answer` with one line per URL: the seconds until its turn, or why it has none.

use std::collections::HashSet;

use arose_dedup::disk;

use super::background::{Command, Wanted};
use super::*;
use crate::error::Context;
use crate::fingerprint::Fingerprint;
use crate::pages::PageId;

const ORDER: &str = "refresh";
const ANSWER: &str = "refresh.answer";

/// Maximum number of URLs of an order; the rest stay for the next one.
const MAX_URLS: usize = 100_000;

/// How long a running crawl may take to respond.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to a URL that is to be visited.
#[derive(Debug, Clone, PartialEq)]
pub enum Refresh {
    /// It is visited in about this many seconds.
    In(f64),
    /// It was never fetched.
    Unknown,
    /// It is not a URL.
    Invalid,
    /// No crawl is running; the next run visits it first.
    Next,
}

impl Refresh {
    fn to_line(&self, url: &str) -> String {
        let what = match self {
            Self::In(seconds) => format!("{seconds:.1}"),
            Self::Unknown => "unknown".to_owned(),
            Self::Invalid => "invalid".to_owned(),
            Self::Next => "next".to_owned(),
        };
        format!("{what} {url}\n")
    }

    fn from_line(line: &str) -> Option<(String, Self)> {
        let (what, url) = line.split_once(' ')?;
        let refresh = match what {
            "unknown" => Self::Unknown,
            "invalid" => Self::Invalid,
            "next" => Self::Next,
            seconds => Self::In(seconds.parse().ok()?),
        };
        Some((url.to_owned(), refresh))
    }
}

/// Makes the crawl in a directory visit pages as soon as politeness allows, and returns what
/// happens to each. A fetched sitemap or feed stands for itself and the pages that it lists. If no
/// crawl is running there, the next one visits them first.
///
/// # Errors
///
/// If there is no crawl in the directory, it cannot be written, or the running crawl does not
/// respond.
pub fn refresh(folder: &Path, urls: &[String]) -> Result<Vec<(String, Refresh)>, Error> {
    if !is_crawl(folder) {
        let message = format!("no crawl in `{}`", folder.display());
        return Err(Error::Settings(message));
    }
    let (order, answer) = (folder.join(ORDER), folder.join(ANSWER));
    let mut urls = urls.to_vec();
    urls.extend(versions::listed_pages(folder, &urls)?);
    let is_plain = |url: &&String| !url.is_empty() && !url.contains(['\n', '\r']);
    let lines: Vec<&str> = urls.iter().filter(is_plain).map(String::as_str).collect();
    live::remove(&answer)?;
    let before = std::fs::read_to_string(&order).unwrap_or_default();
    let text = format!("{before}{}\n", lines.join("\n"));
    disk::replace(&order, text.as_bytes()).context("writing", &order)?;
    if !is_running(folder)? {
        return Ok(urls
            .iter()
            .map(|url| (url.clone(), Refresh::Next))
            .collect());
    }
    let start = std::time::Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(&answer) {
            return Ok(text.lines().filter_map(Refresh::from_line).collect());
        }
        if start.elapsed() > PATIENCE || !is_running(folder)? {
            let message = format!("the crawl in `{}` does not respond", folder.display());
            return Err(Error::Settings(message));
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// An order being processed.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    /// URLs as written, with their fingerprints.
    urls: Vec<(String, Option<NormalUrl>)>,
}

impl Crawl {
    /// Takes an order, if there is one and none is being processed.
    pub(super) fn take_refresh(&mut self) -> Result<(), Error> {
        let path = self.folder.join(ORDER);
        if self.ordered.is_some() || !path.exists() {
            return Ok(());
        }
        let text = std::fs::read_to_string(&path).context("reading", &path)?;
        let urls: Vec<(String, Option<NormalUrl>)> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(MAX_URLS)
            .map(|line| {
                let url = self.shared.normalize(line.trim(), None).ok();
                (line.trim().to_owned(), url)
            })
            .collect();
        let keys: HashSet<u128> = urls
            .iter()
            .filter_map(|(_, url)| Some(Fingerprint::of(url.as_ref()?).key()))
            .collect();
        self.ordered = Some(Ordered { urls });
        self.background.send(Command::Find(Wanted::Order, keys))
    }

    /// Queues the pages of an order and writes the result.
    pub(super) fn take_located(&mut self, found: &HashMap<u128, PageId>) -> Result<(), Error> {
        let Some(ordered) = self.ordered.take() else {
            return Ok(());
        };
        let mut answer = String::new();
        let mut pages = Vec::new();
        let mut n_of_host: HashMap<u64, u32> = HashMap::new();
        for (text, url) in &ordered.urls {
            let page = url.as_ref().map(|url| {
                let fingerprint = Fingerprint::of(url);
                (fingerprint.host, found.get(&fingerprint.key()))
            });
            let refresh = match page {
                None => Refresh::Invalid,
                Some((_, None)) => Refresh::Unknown,
                Some((host, Some(&page))) => {
                    self.recrawl.urgent.insert(page);
                    pages.push(page);
                    let n = n_of_host.entry(host).or_default();
                    *n += 1;
                    Refresh::In(self.seconds_until(host, *n - 1))
                }
            };
            answer.push_str(&refresh.to_line(text));
        }
        if !pages.is_empty() {
            self.recall(pages)?;
        }
        live::remove(&self.folder.join(ORDER))?;
        let path = self.folder.join(ANSWER);
        disk::replace(&path, answer.as_bytes()).context("writing", &path)
    }

    /// Returns the seconds until the turn of a URL of a host after `n_before` others.
    fn seconds_until(&self, host: u64, n_before: u32) -> f64 {
        let Some(id) = self.frontier.find(host) else {
            return 0.0;
        };
        let host = &self.frontier.hosts[id as usize];
        let delay = self.settings().polite_of(&host.origin, host.name()).delay;
        let wait = host.next.saturating_sub(self.now()).as_secs_f64();
        wait + f64::from(n_before) * delay
    }
}
