//! Refresh on demand: visits requested pages as soon as possible.
//!
//! The order is a file `refresh` in the directory of the crawl, with one URL per line. A running
//! crawl takes it within a second, and a crawl that is started later takes it at once: it renames
//! the file to `refresh.taken`, so that the next order is another file, and removes it when the
//! pages have been looked up. The pages go to the front of the queues of their hosts, with the
//! usual delays. The result is a file `refresh.answer` with one line per URL: the seconds until its
//! turn, or why it has none. Of several programs that give orders, one at a time waits for the
//! result.

use std::collections::HashSet;

use arose_dedup::disk;

use super::background::{Command, Wanted};
use super::recrawl::URGENT;
use super::*;
use crate::error::Context;
use crate::fingerprint::Fingerprint;
use crate::journal::Event;
use crate::pages::PageId;

const ORDER: &str = "refresh";
const TAKEN: &str = "refresh.taken";
const ANSWER: &str = "refresh.answer";
const LOCK: &str = "refresh.lock";

/// Maximum number of URLs of an order: the data for their visits are in memory until then.
const MAX_URLS: usize = 100_000;

/// How long a running crawl may take to respond, and how long to wait before looking again.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

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
/// happens to each. A URL that ends in `*` stands for all fetched pages whose URLs have this
/// prefix, and a fetched sitemap or feed for itself and the pages that it lists. If no crawl is
/// running there, the next one visits them first.
///
/// # Errors
///
/// If there is no crawl in the directory, it cannot be written, there are more than 100,000 pages,
/// or the running crawl does not respond.
pub fn refresh(folder: &Path, urls: &[String]) -> Result<Vec<(String, Refresh)>, Error> {
    if !is_crawl(folder) {
        let message = format!("no crawl in `{}`", folder.display());
        return Err(Error::Settings(message));
    }
    let wanted = expand(folder, urls)?;
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let start = std::time::Instant::now();
    let _lock = lock_orders(folder, start)?;
    let (order, answer) = (folder.join(ORDER), folder.join(ANSWER));
    live::remove(&answer)?;
    let before = std::fs::read_to_string(&order).unwrap_or_default();
    let n_urls = before.lines().count() + wanted.len();
    if n_urls > MAX_URLS {
        return Err(Error::Settings(format!(
            "{n_urls} pages are more than the {MAX_URLS} that can be visited at once; pass fewer, \
             or visit all pages with `--recrawl`"
        )));
    }
    let text = format!("{before}{}\n", wanted.join("\n"));
    disk::replace(&order, text.as_bytes()).context("writing", &order)?;
    if !is_running(folder)? {
        let next = wanted.into_iter().map(|url| (url, Refresh::Next));
        return Ok(next.collect());
    }
    loop {
        if let Ok(text) = std::fs::read_to_string(&answer) {
            let answers = text.lines().filter_map(Refresh::from_line);
            let mut answers: HashMap<String, Refresh> = answers.collect();
            let of_url = |url: &String| answers.remove_entry(url);
            let found: Vec<(String, Refresh)> = wanted.iter().filter_map(of_url).collect();
            // Otherwise, it is the answer to an order whose giver has gone.
            if found.len() == wanted.len() {
                return Ok(found);
            }
        }
        if start.elapsed() > PATIENCE || !is_running(folder)? {
            return Err(unanswered(folder));
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// Waits until no other program gives an order.
fn lock_orders(folder: &Path, start: std::time::Instant) -> Result<disk::Lock, Error> {
    let path = folder.join(LOCK);
    loop {
        if let Some(lock) = disk::Lock::take(&path).context("locking", &path)? {
            return Ok(lock);
        }
        if start.elapsed() > PATIENCE {
            return Err(unanswered(folder));
        }
        std::thread::park_timeout(PAUSE);
    }
}

fn unanswered(folder: &Path) -> Error {
    let folder = folder.display();
    Error::Settings(format!("the crawl in `{folder}` does not respond"))
}

/// Returns the URLs without repetitions, and in place of prefixes and after lists the pages that
/// they stand for.
fn expand(folder: &Path, urls: &[String]) -> Result<Vec<String>, Error> {
    let (prefixes, plain): (Vec<&String>, Vec<&String>) =
        urls.iter().partition(|url| url.ends_with('*'));
    let mut wanted: Vec<String> = plain.into_iter().cloned().collect();
    wanted.extend(versions::listed_pages(folder, &wanted)?);
    if !prefixes.is_empty() {
        let is_wanted = |url: &str| {
            let mut prefixes = prefixes.iter().map(|prefix| prefix.trim_end_matches('*'));
            prefixes.any(|prefix| url.starts_with(prefix))
        };
        listing::pages(folder, 0, |page| {
            wanted.extend(page.url.filter(|url| is_wanted(url)));
            Ok(())
        })?;
    }
    let mut met = HashSet::new();
    let trimmed = wanted.iter().map(|url| url.trim());
    let plain = trimmed.filter(|url| !url.is_empty() && !url.contains(['\n', '\r']));
    let new = plain.filter(|url| met.insert(*url));
    Ok(new.map(str::to_owned).collect())
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
        if self.ordered.is_some() {
            return Ok(());
        }
        let (order, path) = (self.folder.join(ORDER), self.folder.join(TAKEN));
        // An order that was taken when the process was killed comes first.
        if !path.exists() {
            if !order.exists() {
                return Ok(());
            }
            disk::rename(&order, &path).context("renaming", &order)?;
        }
        let text = std::fs::read_to_string(&path).context("reading", &path)?;
        let urls: Vec<(String, Option<NormalUrl>)> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .take(MAX_URLS) // As `refresh` has checked.
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
        live::remove(&self.folder.join(TAKEN))?;
        let path = self.folder.join(ANSWER);
        disk::replace(&path, answer.as_bytes()).context("writing", &path)
    }

    /// Moves pages that wait for a visit to the front of the queues of their hosts. A page whose
    /// request is open is being visited anyway.
    pub(super) fn move_forward(&mut self, pages: &HashSet<PageId>) {
        let recrawl = &self.recrawl;
        let queued = recrawl.places.iter();
        let queued = queued.filter(|(_, page)| pages.contains(page));
        let queued = queued.filter_map(|(place, page)| {
            let waiting = recrawl.waiting.get(page);
            let waiting = waiting.filter(|waiting| !waiting.is_in_front())?;
            let record = waiting.recalled.revisit.record;
            Some((self.frontier.find(record.fingerprint.host)?, *place))
        });
        let mut queued: Vec<(HostId, Place)> = queued.collect();
        queued.sort_unstable();
        for of_host in queued.chunk_by(|a, b| a.0 == b.0) {
            let host = of_host[0].0;
            let places: Vec<Place> = of_host.iter().map(|(_, place)| *place).collect();
            for place in self.frontier.hosts[host as usize].remove_all(&places) {
                self.move_to_front(host, place);
            }
        }
    }

    /// Queues a page again that was removed from the queue of its host.
    fn move_to_front(&mut self, host: HostId, place: Place) {
        self.journal.push(Event::Dropped { host, place });
        self.frontier.n_queued = self.frontier.n_queued.saturating_sub(1);
        self.frontier.end_again(host);
        let page = self.recrawl.places.remove(&place);
        if let Some(waiting) = page.and_then(|page| self.recrawl.waiting.remove(&page)) {
            self.queue_again(waiting.recalled, URGENT);
        }
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
