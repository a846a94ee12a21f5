//! Restores a crawl from its journal, archives and seen set.

use std::collections::{BTreeMap, HashSet};

use arose::freshness::Quality;
use arose_corpus::time;
use arose_dedup::index::Committed;

use super::dust;
use super::replay::Withdrawn;
use super::store::{ARCHIVE, CONTENTS, JOURNAL, ROBOTS, SEEN};
use super::*;
use crate::archive;
use crate::archive::{Extent, Part};
use crate::content::{Contents, Name, settings_of};
use crate::error::Context;
use crate::fingerprint::Fingerprint;
use crate::guard::Guard;
use crate::journal::{ByHost, Event, Frame};
use crate::pages::{PageId, Record};
use crate::seen::{self, Entry};
use crate::settings::{DuplicatePolicy, seconds};

/// The state recorded in the journal.
pub(super) struct Restored {
    pub(super) frontier: Frontier,
    pub(super) counters: Counters,
    pub(super) extent: Extent,
    pub(super) robots_extent: Extent,
    pub(super) settings: Settings,
    /// The time of the last commit, since 1970.
    pub(super) date: Duration,
    /// The mark of the last commit in the seen set, and the URLs of later commits.
    pub(super) seen_mark: u64,
    pub(super) unseen: Vec<NormalUrl>,
    pub(super) standing: DurableExtents,
    pub(super) is_closed: bool,
    pub(super) n_urls: u64,
    /// Decides which queued URLs the settings still allow; `None` if this is not checked.
    pub(super) guard: Option<Guard>,
    /// Queued URLs that it does not approve.
    pub(super) withdrawn: Withdrawn,
    /// URLs of hosts being restored that it does not approve.
    pub(super) unapproved: Vec<(HostId, Place)>,
    /// Events of hosts that are not in memory.
    pub(super) by_host: ByHost,
    /// What the journal knows of pages that were visited, and of those to be visited again.
    pub(super) visited: BTreeMap<PageId, Record>,
    pub(super) again: BTreeMap<Place, PageId>,
    pub(super) untrusted: HashSet<HostId>,
    pub(super) qualities: BTreeMap<HostId, Quality>,
    /// URL rules, and the URLs that they defer.
    pub(super) url_rules: dust::Lines,
    pub(super) deferred: dust::Deferred,
}

/// How much of the companions of the journal was on the disk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DurableExtents {
    pub(super) n_seen: u64,
    /// The row of the index of contents below which all pages are in the archive.
    pub(super) row: u32,
    pub(super) committed: Committed,
    /// Number of pages in the page table.
    pub(super) n_pages: u32,
}

impl DurableExtents {
    /// Returns the state as events of the journal.
    pub(super) fn events(self) -> [Event<'static>; 3] {
        let Self {
            n_seen: n_urls,
            row,
            committed,
            n_pages,
        } = self;
        let contents = Event::Contents {
            row,
            log: committed.log,
            bytes: committed.n_bytes,
        };
        [Event::Seen { n_urls }, contents, Event::Table { n_pages }]
    }
}

/// Restores a crawl after a crash, or starts a new one; changes no existing file. Frames of the
/// journal that may not have been on the disk count as far as the archive confirms them.
pub(super) fn restore(
    folder: &Path,
    settings: &Settings,
    guard: Option<Guard>,
    date: Duration,
) -> Result<(Journal, Restored), Error> {
    let path = folder.join(JOURNAL);
    let mut restored = Restored {
        guard,
        ..Restored::new(settings, date)
    };
    restored.limit(folder, "hosts.tmp", settings.machine.hosts_in_memory.max(1))?;
    if !path.exists() {
        return match archive::files(&folder.join(ARCHIVE))?.is_empty() {
            false => Err(Error::NoJournal {
                path: folder.to_owned(),
            }),
            true => Ok((Journal::create(&path)?, restored)),
        };
    }
    restored.seen_mark = Seen::last_mark(&folder.join(SEEN), seen_config(settings))?;
    let journal = Journal::open(&path, |frame| {
        if !frame.is_synced && !restored.is_borne_out(folder, frame)? {
            return Ok(false);
        }
        restored.take(frame).map(|()| true)
    })?;
    restored.finish()?;
    archive::check(&folder.join(ARCHIVE), restored.extent)?;
    archive::check(&folder.join(ROBOTS), restored.robots_extent)?;
    Ok((journal, restored))
}

pub(super) fn seen_config(settings: &Settings) -> seen::SeenConfig {
    seen::SeenConfig {
        buffer_keys: settings.machine.seen_buffer.max(1),
        held_bytes: usize::try_from(settings.machine.max_memory / 4).unwrap_or(usize::MAX),
        merges: match settings.machine.threads {
            0 => seen::Merges::Here,
            _ => seen::Merges::Aside,
        },
        ..seen::SeenConfig::default()
    }
}

/// Opens the index of contents, and forgets pages whose records are not in the archive: they were
/// compared just before the last run ended, and will be fetched again.
pub(super) fn open_contents(
    folder: &Path,
    restored: &Restored,
    policy: DuplicatePolicy,
) -> Result<Contents, Error> {
    let DurableExtents { row, committed, .. } = restored.standing;
    let path = folder.join(CONTENTS);
    let settings = settings_of(policy);
    let contents = Contents::open(&path, committed, settings).map_err(Error::Contents)?;
    if *contents.settings() != settings {
        return Err(Error::Settings(format!(
            "`duplicates.policy` is \"{}\", but this crawl has compared its pages by the policy {}; \
             set it back, or start another crawl",
            policy.as_str(),
            contents.settings().describe()
        )));
    }
    let names = contents.names_from(row).map_err(Error::Contents)?;
    if !names.is_empty() {
        let archived = archived_names(folder, restored.extent)?;
        for key in &names {
            let is_archived = Name::parse(key).is_some_and(|name| {
                let date = time::format(name.date);
                let digits = date.chars().filter(char::is_ascii_digit);
                archived.contains(&format!("{} {}", digits.collect::<String>(), name.url))
            });
            if !is_archived {
                contents.forget(key).map_err(Error::Contents)?;
            }
        }
        contents.sync().map_err(Error::Contents)?;
    }
    Ok(contents)
}

/// Returns the dates and URLs of the records in the last two files of the archive. The pages in
/// question were compared shortly after each other, so no other file has records of them. If one
/// had, its page would only be forgotten as an original.
fn archived_names(folder: &Path, extent: Extent) -> Result<HashSet<String>, Error> {
    let mut names = HashSet::new();
    for file in extent.file.saturating_sub(1)..=extent.file {
        let path = archive::cdxj_path(&folder.join(ARCHIVE), file)?;
        let mut text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            text => text.context("reading", &path)?,
        };
        if file == extent.file {
            text.truncate(extent.index_bytes as usize);
        }
        let found = text.lines().filter_map(archive::name_in_line);
        names.extend(found.map(|(url, digits)| format!("{digits} {url}")));
    }
    Ok(names)
}

impl Restored {
    pub(super) fn new(settings: &Settings, date: Duration) -> Self {
        let mut frontier = Frontier::new(settings.budget.clone(), settings.crawl.order);
        frontier.first_turn = least_rest(settings);
        if settings.focus.is_on() {
            frontier.set_focused();
        }
        Self {
            frontier,
            counters: Counters::default(),
            extent: Extent::default(),
            robots_extent: Extent::default(),
            settings: settings.clone(),
            date,
            seen_mark: 0,
            unseen: Vec::new(),
            standing: DurableExtents::default(),
            is_closed: false,
            n_urls: 0,
            guard: None,
            withdrawn: Withdrawn::default(),
            unapproved: Vec::new(),
            by_host: ByHost::default(),
            visited: BTreeMap::new(),
            again: BTreeMap::new(),
            untrusted: HashSet::new(),
            qualities: BTreeMap::new(),
            url_rules: dust::Lines::default(),
            deferred: dust::Deferred::default(),
        }
    }

    /// Whether the archives contain everything that a frame says they do.
    fn is_borne_out(&self, folder: &Path, frame: &Frame<'_>) -> Result<bool, Error> {
        let (mut pages, mut robots) = (self.extent, self.robots_extent);
        for (event, _) in &frame.events {
            let is_there = match Extent::of(event) {
                Some((to, Part::Pages)) => advance(&folder.join(ARCHIVE), &mut pages, to)?,
                Some((to, Part::Robots)) => advance(&folder.join(ROBOTS), &mut robots, to)?,
                None => true,
            };
            if !is_there {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns how long every host rests when a crawl is opened again.
fn least_rest(settings: &Settings) -> Duration {
    seconds(settings.polite.delay.max(settings.polite.address_delay))
}

/// Advances to an extent of the same file or the next one; returns whether it exists.
fn advance(folder: &Path, from: &mut Extent, to: Extent) -> Result<bool, Error> {
    if to.file == from.file + 1 {
        *from = Extent {
            file: to.file,
            ..Extent::default()
        };
    }
    let is_there = to.file == from.file && archive::bears_out(folder, *from, to)?;
    *from = to;
    Ok(is_there)
}

/// Adds the URLs of commits that a crash kept from the seen set.
pub(super) fn restore_seen(seen: &mut Seen, restored: &Restored, mark: u64) -> Result<(), Error> {
    for urls in restored.unseen.chunks(4096) {
        let entries: Vec<Entry<'_>> = urls
            .iter()
            .map(|url| Entry {
                fingerprint: Fingerprint::of(url),
                url: url.as_str(),
            })
            .collect();
        seen.insert(&entries)?;
    }
    if seen.len() < restored.n_urls.max(restored.standing.n_seen) {
        let what = "it has lost URLs that the journal knows; rebuild it with `arose crawl repair`";
        return Err(Error::damaged(seen.folder(), what));
    }
    seen.commit_as(mark)
}
