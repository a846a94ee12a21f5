//! Reads the directory of a crawl without changing it.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dust::{Lines, UrlRule, most_important};
use super::focused::Topic;
use super::join::COPIES;
use super::restore::Restored;
use super::store::{ARCHIVE, JOURNAL};
use arose::dust::State;

use crate::archive;
use crate::counters::Counters;
use crate::error::{Context, Error};
use crate::fingerprint::Fingerprint;
use crate::frontier::{Frontier, QueuedUrl, SiteQuality, SiteStanding, Standing};
use crate::journal::{Event, Place, Queued, replay};
use crate::settings::Settings;
use crate::statistics;

/// The state of a crawl as of its last commit.
#[derive(Debug, Clone)]
pub struct Status {
    /// Counters of all runs.
    pub counters: Counters,
    /// Number of queued URLs.
    pub n_queued: u64,
    /// Number of URLs lost for now, because no attempt got a response.
    pub n_lost: u64,
    /// Number of hosts met.
    pub n_hosts: u64,
    /// Whether a process is crawling into the directory now.
    pub is_running: bool,
    /// Whether the last run ended in good order.
    pub is_closed: bool,
    /// Number of archive files.
    pub n_archive_files: u64,
    /// Size of the archive in bytes.
    pub n_archive_bytes: u64,
    /// The URLs with the highest priority, highest first.
    pub waiting: Vec<Standing>,
    /// The sites with the most trust.
    pub sites: Vec<SiteStanding>,
    /// The sites with the most pages of low quality in the last run.
    pub poor_sites: Vec<SiteQuality>,
    /// Pages that a site currently gets with full priority, per trust of one seed.
    pub pages_for_trust: f64,
    /// The state of a crawl that looks for a topic; none for other crawls.
    pub topic: Option<Topic>,
    /// Number of URLs deferred by rules, in addition to the queued ones.
    pub n_deferred: u64,
    /// Number of rules that defer URLs.
    pub n_active_rules: u64,
    /// The most important URL rules.
    pub url_rules: Vec<UrlRule>,
}

/// Number of URLs and sites that a status lists.
const N_LISTED: usize = 10;

/// Whether a directory contains a crawl.
#[must_use]
pub fn is_crawl(folder: &Path) -> bool {
    folder.join(JOURNAL).is_file()
}

/// Returns the directories of the agents of one crawl that are in a directory, by name; none if it
/// is itself the directory of a crawl.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn agents(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut agents = Vec::new();
    if is_crawl(folder) || !folder.is_dir() {
        return Ok(agents);
    }
    for entry in std::fs::read_dir(folder).context("reading", folder)? {
        let path = entry.context("reading", folder)?.path();
        if is_crawl(&path) && path.join(COPIES).is_dir() {
            agents.push(path);
        }
    }
    agents.sort();
    Ok(agents)
}

/// Returns the web archives of a crawl, in order.
///
/// # Errors
///
/// If the directory cannot be read.
pub fn archives(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = archive::files(&folder.join(ARCHIVE))?;
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// Returns the state of a crawl. Reads the whole journal.
///
/// # Errors
///
/// If the directory contains no crawl, or a damaged one.
pub fn status(folder: &Path) -> Result<Status, Error> {
    let (path, file) = journal(folder)?;
    let mut restored = restore_from(folder, &path, &file, &kept(folder))?;
    let waiting = restored.frontier.most_important(N_LISTED)?;
    let frontier = &restored.frontier;
    let waiting = standings(frontier, &waiting, &path, &file)?;
    let mut n_archive_bytes = 0;
    let archives = archives(folder)?;
    for path in &archives {
        n_archive_bytes += std::fs::metadata(path).context("reading", path)?.len();
    }
    let saved = restored.url_rules.saved()?.into_iter();
    let rules: Vec<UrlRule> = saved.map(|saved| saved.standing).collect();
    let is_active = |rule: &&UrlRule| rule.state == State::Active;
    Ok(Status {
        topic: statistics::topic(folder, &restored.counters),
        counters: restored.counters,
        n_queued: restored.frontier.n_queued,
        n_lost: restored.frontier.n_lost(),
        n_hosts: restored.frontier.hosts.len() as u64,
        is_running: is_running(folder)?,
        is_closed: restored.is_closed,
        n_archive_files: archives.len() as u64,
        n_archive_bytes,
        waiting,
        sites: frontier.most_trusted(N_LISTED),
        poor_sites: statistics::poor_sites(folder),
        pages_for_trust: frontier.pages_for_trust(),
        n_deferred: restored.deferred.n(),
        n_active_rules: rules.iter().filter(is_active).count() as u64,
        url_rules: most_important(rules.iter()),
    })
}

/// Returns the URL rules of a crawl. Reads the whole journal.
pub(super) fn url_rules(folder: &Path) -> Result<Lines, Error> {
    let (path, file) = journal(folder)?;
    let mut lines = Lines::default();
    replay(&file, &path, |frame| {
        for (event, _) in &frame.events {
            if let Event::UrlRule { key, text } = *event {
                lines.set(key, text);
            }
        }
        Ok(true)
    })?;
    Ok(lines)
}

/// Explains the priority of a URL; none if it is not queued.
///
/// # Errors
///
/// If the directory contains no crawl, or a damaged one.
pub fn standing(folder: &Path, url: &str) -> Result<Option<Standing>, Error> {
    let settings = kept(folder);
    let url = match crate::page::normalizer(&settings).normalize(url, None) {
        Ok(url) => url,
        Err(error) => return Err(Error::Settings(format!("`{url}` is not a URL: {error}"))),
    };
    let (path, file) = journal(folder)?;
    let restored = restore_from(folder, &path, &file, &settings)?;
    let frontier = &restored.frontier;
    let Some(host) = frontier.find(Fingerprint::of(&url).host) else {
        return Ok(None);
    };
    let mut found = None;
    replay(&file, &path, |frame| {
        for (event, place) in &frame.events {
            if let Event::Url(queued) = event
                && queued.host == host
                && queued.rest == url.rest()
            {
                found = frontier.waiting(host, *place);
            }
        }
        Ok(found.is_none())
    })?;
    Ok(found.map(|waiting| {
        let mut standing = frontier.standing(waiting, url.rest());
        let mut poor = statistics::poor_sites(folder).into_iter();
        standing.quality = poor.find(|site| site.name == standing.site.name);
        standing
    }))
}

/// Returns the settings of a crawl, as far as they can be read.
fn kept(folder: &Path) -> Settings {
    super::start::kept_settings(folder).unwrap_or_default()
}

/// Returns details of URLs, whose texts are in the journal.
fn standings(
    frontier: &Frontier,
    waiting: &[QueuedUrl],
    path: &Path,
    file: &File,
) -> Result<Vec<Standing>, Error> {
    let mut texts: HashMap<Place, String> = HashMap::new();
    if !waiting.is_empty() {
        replay(file, path, |frame| {
            for (event, place) in &frame.events {
                if let Event::Url(queued) = event
                    && waiting.iter().any(|waiting| waiting.place == *place)
                {
                    texts.insert(*place, queued.rest.to_owned());
                }
            }
            Ok(texts.len() < waiting.len())
        })?;
    }
    let waiting = waiting.iter();
    let told = waiting.filter_map(|&waiting| {
        let rest = texts.get(&waiting.place)?;
        Some(frontier.standing(waiting, rest))
    });
    Ok(told.collect())
}

pub(super) fn restore(folder: &Path) -> Result<Restored, Error> {
    let (path, file) = journal(folder)?;
    restore_from(folder, &path, &file, &Settings::default())
}

/// Hosts beyond a limit are stored in an unnamed file, if one can be created beside the journal.
fn restore_from(
    folder: &Path,
    path: &Path,
    file: &File,
    settings: &Settings,
) -> Result<Restored, Error> {
    let mut restored = Restored::new(settings, Duration::ZERO);
    let name = format!("hosts.{}.tmp", std::process::id());
    let _ = restored.limit(folder, &name, settings.machine.hosts_in_memory);
    replay(file, path, |frame| restored.take(frame).map(|()| true))?;
    restored.finish()?;
    Ok(restored)
}

/// Returns the journal of a directory, which a running crawl may replace at any time.
fn journal(folder: &Path) -> Result<(PathBuf, File), Error> {
    if !is_crawl(folder) {
        let message = format!("no crawl in `{}`", folder.display());
        return Err(Error::Settings(message));
    }
    let path = folder.join(JOURNAL);
    let file = File::open(&path).context("reading", &path)?;
    Ok((path, file))
}

/// Whether a process is crawling into a directory now.
///
/// # Errors
///
/// If that cannot be determined.
pub fn is_running(folder: &Path) -> Result<bool, Error> {
    let path = folder.join("lock");
    let file = match File::open(&path) {
        // A power failure may have removed it. Without a journal, there was no crawl here.
        Err(error) if error.kind() == ErrorKind::NotFound && is_crawl(folder) => {
            return Ok(false);
        }
        file => file.context("reading", &path)?,
    };
    Ok(matches!(
        file.try_lock_shared(),
        Err(std::fs::TryLockError::WouldBlock)
    ))
}

/// Returns the lines of all CDXJ files of a crawl, without those of unfinished records.
///
/// # Errors
///
/// If the directory contains no crawl, or a file cannot be read.
pub fn index_lines(folder: &Path) -> Result<Vec<String>, Error> {
    let extent = restore(folder)?.extent;
    let mut lines = Vec::new();
    for (number, path) in archive::index_files(&folder.join(ARCHIVE))? {
        let mut text = std::fs::read_to_string(&path).context("reading", &path)?;
        if number == extent.file {
            text.truncate(extent.index_bytes as usize);
        }
        if number <= extent.file {
            lines.extend(text.lines().map(str::to_owned));
        }
    }
    Ok(lines)
}

/// Returns the queued URLs, by host in the order in which hosts were met.
///
/// # Errors
///
/// If the directory contains no crawl, or a damaged one.
pub fn queued_urls(folder: &Path) -> Result<Vec<String>, Error> {
    let (path, file) = journal(folder)?;
    let mut restored = restore_from(folder, &path, &file, &Settings::default())?;
    let mut waiting = std::collections::HashSet::new();
    for host in 0..restored.frontier.hosts.len() {
        if restored.frontier.hosts.may_have_work(host as u32) {
            waiting.extend(restored.frontier.hosts[host].drain());
            restored.frontier.hosts.shelve(2)?;
        }
    }
    let mut urls = Vec::new();
    replay(&file, &path, |frame| {
        for (event, place) in &frame.events {
            if let Event::Url(queued) | Event::Again { queued, .. } = event
                && let Queued { host, rest, .. } = queued
                && waiting.contains(place)
            {
                let origin = &restored.frontier.hosts[*host as usize].origin;
                urls.push((*host, format!("{origin}{rest}")));
                restored.frontier.hosts.shelve(2)?;
            }
        }
        Ok(true)
    })?;
    urls.sort_by_key(|(host, _)| *host);
    Ok(urls.into_iter().map(|(_, url)| url).collect())
}
