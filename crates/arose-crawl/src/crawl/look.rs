//! Looking at the folder of a crawl without touching it.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::restore::Restored;
use super::store::{ARCHIVE, JOURNAL};
use crate::archive;
use crate::counters::Counters;
use crate::error::{Context, Error};
use crate::journal::{Event, Queued, replay};
use crate::settings::Settings;

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
}

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
    let restored = restore(folder)?;
    let mut n_archive_bytes = 0;
    let archives = archives(folder)?;
    for path in &archives {
        n_archive_bytes += std::fs::metadata(path).context("reading", path)?.len();
    }
    Ok(Status {
        counters: restored.counters,
        n_queued: restored.frontier.n_queued,
        n_lost: restored.frontier.n_lost(),
        n_hosts: restored.frontier.hosts.len() as u64,
        is_running: is_running(folder)?,
        is_closed: restored.is_closed,
        n_archive_files: archives.len() as u64,
        n_archive_bytes,
    })
}

pub(super) fn restore(folder: &Path) -> Result<Restored, Error> {
    let (path, file) = journal(folder)?;
    restore_from(&path, &file)
}

fn restore_from(path: &Path, file: &File) -> Result<Restored, Error> {
    let mut restored = Restored::new(&Settings::default(), Duration::ZERO);
    replay(file, path, |frame| restored.take(frame).map(|()| true))?;
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
    let mut restored = restore_from(&path, &file)?;
    let mut waiting = std::collections::HashSet::new();
    for host in 0..restored.frontier.hosts.len() {
        waiting.extend(restored.frontier.hosts[host].drain());
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
            }
        }
        Ok(true)
    })?;
    urls.sort_by_key(|(host, _)| *host);
    Ok(urls.into_iter().map(|(_, url)| url).collect())
}
