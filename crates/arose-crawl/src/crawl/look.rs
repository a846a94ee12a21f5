//! Looking at the folder of a crawl without touching it.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dust::{Lines, UrlRule, most_important};
use super::focused::Topic;
use super::restore::Restored;
use super::store::{ARCHIVE, JOURNAL};
use arose::dust::State;

use crate::archive;
use crate::counters::Counters;
use crate::error::{Context, Error};
use crate::fingerprint::Fingerprint;
use crate::frontier::{Frontier, SiteQuality, SiteStanding, Standing, Waiting};
use crate::journal::{Event, Place, Queued, replay};
use crate::settings::Settings;
use crate::statistics;

/// How a crawl stands, as of its last commit.
#[derive(Debug, Clone)]
pub struct Status {
    /// Counters of all runs.
    pub counters: Counters,
    /// URLs that wait.
    pub n_queued: u64,
    /// Of these: lost for now, because no try got a response.
    pub n_lost: u64,
    /// Hosts met.
    pub n_hosts: u64,
    /// Whether a process crawls into the folder now.
    pub is_running: bool,
    /// Whether the last run ended in good order.
    pub is_closed: bool,
    /// Files of the archive.
    pub n_archive_files: u64,
    /// Bytes of the archive.
    pub n_archive_bytes: u64,
    /// The URLs with the highest priority, the first one first.
    pub waiting: Vec<Standing>,
    /// The sites that are trusted most.
    pub sites: Vec<SiteStanding>,
    /// The sites with the most pages of low quality in the last run.
    pub poor_sites: Vec<SiteQuality>,
    /// Pages that a site gets with full priority for as much trust as a seed has, by now.
    pub pages_for_trust: f64,
    /// The state of a crawl that looks for a topic; none if it has none.
    pub topic: Option<Topic>,
    /// URLs that rules defer, beside those that wait.
    pub n_deferred: u64,
    /// Rules that do so.
    pub n_active_rules: u64,
    /// The URL rules that matter most.
    pub url_rules: Vec<UrlRule>,
}

/// URLs and sites that a status lists.
const N_LISTED: usize = 10;

/// Whether a folder holds a crawl.
#[must_use]
pub fn is_crawl(folder: &Path) -> bool {
    folder.join(JOURNAL).is_file()
}

/// The web archives of a crawl, in order.
///
/// # Errors
///
/// If the folder cannot be read.
pub fn archives(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = archive::files(&folder.join(ARCHIVE))?;
    Ok(files.into_iter().map(|(_, path)| path).collect())
}

/// How a crawl stands. Reads the whole journal.
///
/// # Errors
///
/// If there is no crawl in the folder, or it is damaged.
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

/// The URL rules of a crawl. Reads the whole journal.
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

/// Why a URL stands where it stands; none if it does not wait.
///
/// # Errors
///
/// If there is no crawl in the folder, or it is damaged.
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

/// The settings of a crawl, as far as they can be read.
fn kept(folder: &Path) -> Settings {
    super::start::kept_settings(folder).unwrap_or_default()
}

/// What there is to say of URLs, whose texts are in the journal.
fn standings(
    frontier: &Frontier,
    waiting: &[Waiting],
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

/// Hosts beyond a number go to a file that has no name, if one can be made beside the journal.
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

/// The journal of a folder, which a running crawl may replace at any time by another.
fn journal(folder: &Path) -> Result<(PathBuf, File), Error> {
    if !is_crawl(folder) {
        let message = format!("there is no crawl in `{}`", folder.display());
        return Err(Error::Settings(message));
    }
    let path = folder.join(JOURNAL);
    let file = File::open(&path).context("reading", &path)?;
    Ok((path, file))
}

/// Whether a process crawls into a directory now.
///
/// # Errors
///
/// If that cannot be found out.
pub fn is_running(folder: &Path) -> Result<bool, Error> {
    let path = folder.join("lock");
    let file = match File::open(&path) {
        // A power cut may have taken it. Without a journal there was no crawl here.
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

/// The lines of all CDXJ files of a crawl, those of unfinished records left out.
///
/// # Errors
///
/// If there is no crawl in the folder, or a file cannot be read.
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

/// The URLs that still wait, by host in the order in which hosts were met.
///
/// # Errors
///
/// If there is no crawl in the folder, or it is damaged.
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
