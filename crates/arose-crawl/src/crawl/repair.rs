//! Rebuilds a crawl from its readable parts.
//!
//! *Question.* The journal or the seen set is damaged or missing. Which URLs were fetched, and
//! which are still to be fetched?
//!
//! *Idea.* Three sources have parts of the answer. The intact frames of the journal contain URLs
//! with their depth, and which of them are done. The archive contains every response, and its pages
//! contain the links from which lost URLs came. A URL is queued again if an intact frame or a page
//! contains it and no record is a response to it. Journal and seen set are rebuilt from that. The
//! old ones are set aside, and the archive continues in another file. Nothing in it is deleted:
//! bytes at the end of a file that are not a record are moved beside it.
//!
//! The page table keeps its readable rows; pages that are not in it get a row from their archive
//! records.
//!
//! *Cost.* Reads the whole archive. *Limits.* Seeds that were never fetched and were in a damaged
//! frame are lost; pass them again. Failures are lost too: such URLs are tried again.

mod new_journal;
mod table;

use std::collections::{BTreeMap, HashMap, HashSet};

use arose::digest::digest64;
use arose_corpus::time;
use arose_dedup::disk;
use arose_dedup::index::Committed;

use self::new_journal::NewJournal;
use super::restore::{DurableExtents, seen_config};
use super::store::{ARCHIVE, CONTENTS, JOURNAL, ROBOTS, SEEN, lock};
use super::*;
use crate::archive::{self, Extent, FileScan, Stored};
use crate::content::{Contents, Name, settings_of};
use crate::error::Context;
use crate::fetch::Message;
use crate::fingerprint::Fingerprint;
use crate::frontier::Arrival;
use crate::journal::{Event, Queued, salvage};
use crate::page::{Job, Reader};
use crate::pages::{self, Record};
use crate::seen::Entry;

/// The result of a repair.
#[derive(Debug, Clone, Default)]
pub struct Repaired {
    /// Whether the crawl was intact.
    pub is_sound: bool,
    /// Bytes of the journal that could not be read.
    pub n_lost_bytes: u64,
    /// Number of responses found in the archive.
    pub n_records: u64,
    /// Bytes of the archive that are not records and stay where they are.
    pub n_damaged_bytes: u64,
    /// Bytes moved from the ends of archive files into files of their own: records truncated by a
    /// crash.
    pub n_cut_bytes: u64,
    /// Number of rebuilt index files.
    pub n_index_files: u64,
    /// Number of hosts.
    pub n_hosts: u64,
    /// Number of queued URLs.
    pub n_queued: u64,
    /// Number of queued URLs that were found only in pages.
    pub n_from_links: u64,
    /// Number of rows of the page table that were restored from the archive.
    pub n_restored_pages: u64,
    /// The paths to which damaged files were moved.
    pub aside: Vec<PathBuf>,
}

/// Rebuilds the queue of a crawl from its archive, its index and the readable part of its journal.
///
/// # Errors
///
/// If the directory contains no crawl, is in use, or cannot be read or written.
pub fn repair(folder: &Path, settings: Settings) -> Result<Repaired, Error> {
    let has_archive = folder.join(ARCHIVE).is_dir();
    if !is_crawl(folder) && !has_archive {
        let message = format!("no crawl in `{}`", folder.display());
        return Err(Error::Settings(message));
    }
    let _lock = lock(folder)?;
    if is_sound(folder, &settings) {
        return Ok(Repaired {
            is_sound: true,
            ..Repaired::default()
        });
    }
    let mut repair = Repair {
        folder,
        frontier: Frontier::new(settings.budget.clone(), settings.crawl.order),
        journal: Readable::default(),
        fetched: HashSet::new(),
        names: HashSet::new(),
        linked: BTreeMap::new(),
        n_pages: BTreeMap::new(),
        rows: table::TableRows::default(),
        done: Repaired::default(),
    };
    let config = crate::seen::SeenConfig {
        merges: crate::seen::Merges::Here,
        ..seen_config(&settings)
    };
    repair.read_journal()?;
    let reader = Reader::of_each(Arc::new(Shared::new(settings, None)?));
    let extent = repair.read_archive(&folder.join(ARCHIVE), Some(reader))?;
    let robots_extent = repair.read_archive(&folder.join(ROBOTS), None)?;
    let mut standing = DurableExtents::default();
    repair.check_contents(&mut standing)?;
    let mark = repair.journal.mark + 1;
    standing.n_seen = repair.write_seen(config, mark)?;
    let table = std::mem::take(&mut repair.rows).write(folder)?;
    standing.n_pages = table.n_pages;
    repair.done.n_restored_pages = table.n_restored;
    repair.write_journal(mark, standing, extent, robots_extent)?;
    table.replace()?;
    Ok(repair.done)
}

fn is_sound(folder: &Path, settings: &Settings) -> bool {
    if !is_crawl(folder) {
        return false;
    }
    let restored = super::restore::restore(folder, settings, None, Duration::ZERO);
    restored.is_ok_and(|(journal, restored)| {
        let table = pages::check(&folder.join(pages::TABLE), restored.standing.n_pages);
        let config = seen_config(settings);
        let seen = Seen::open_until(&folder.join(SEEN), config, journal.mark());
        let is_seen = seen.is_ok_and(|mut seen| {
            super::restore::restore_seen(&mut seen, &restored, journal.mark()).is_ok()
        });
        is_seen && table.is_ok()
    })
}

/// A repair in progress.
struct Repair<'a> {
    folder: &'a Path,
    frontier: Frontier,
    journal: Readable,
    /// Fingerprints of URLs with a record.
    fetched: HashSet<u128>,
    /// Hashes of the date and URL of records.
    names: HashSet<u64>,
    /// URLs that pages contain and the journal does not.
    linked: BTreeMap<u128, Linked>,
    /// Records of sites.
    n_pages: BTreeMap<u32, u64>,
    rows: table::TableRows,
    done: Repaired,
}

/// The contents of the intact frames of a journal.
#[derive(Default)]
struct Readable {
    mark: u64,
    /// New numbers of hosts, by their old numbers.
    hosts: HashMap<HostId, HostId>,
    /// Positions of completed URLs, and the standing of others by the links to them.
    done: HashSet<Place>,
    weights: HashMap<Place, Weight>,
    /// Depths of URLs, and what they lead to.
    urls: HashMap<u128, (u32, Kind)>,
    counters: String,
}

/// A URL to which a page links.
struct Linked {
    url: NormalUrl,
    depth: u32,
    kind: Kind,
    n_redirects: u8,
    found_on: Box<str>,
}

impl Repair<'_> {
    /// The journal, if there is one.
    fn old_journal(&self) -> Result<Option<std::fs::File>, Error> {
        let path = self.folder.join(JOURNAL);
        match std::fs::File::open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            file => file.context("reading", &path).map(Some),
        }
    }

    /// Reads hosts, depths and completed URLs from the intact frames.
    fn read_journal(&mut self) -> Result<(), Error> {
        let Some(file) = self.old_journal()? else {
            return Ok(());
        };
        let (frontier, readable) = (&mut self.frontier, &mut self.journal);
        let rows = &mut self.rows.journaled;
        let n_lost = salvage(&file, &self.folder.join(JOURNAL), |frame| {
            readable.mark = readable.mark.max(frame.mark);
            let mut n_hosts = frame.n_hosts as HostId;
            for (event, _) in &frame.events {
                match *event {
                    Event::Host(origin) => {
                        if let Some(url) = NormalUrl::from_parts(origin, "/") {
                            readable.hosts.insert(n_hosts, host_of(frontier, &url));
                        }
                        n_hosts += 1;
                    }
                    Event::Url(queued) => {
                        if let Some(url) = readable.url(frontier, &queued) {
                            let key = Fingerprint::of(&url).key();
                            readable.urls.insert(key, (queued.depth, queued.kind));
                        }
                    }
                    Event::Done { place, .. } => {
                        readable.done.insert(place);
                        readable.weights.remove(&place);
                    }
                    Event::Weight { place, weight, .. } => {
                        readable.weights.insert(place, weight);
                    }
                    Event::Counters(text) => text.clone_into(&mut readable.counters),
                    Event::Visited { page, record } => {
                        let record = record.try_into().ok().and_then(Record::from_bytes);
                        rows.extend(record.map(|record| (page, record)));
                    }
                    _ => {}
                }
            }
            Ok(())
        })?;
        self.done.n_lost_bytes = n_lost;
        Ok(())
    }

    /// Reads all files of an archive, repairs their indexes, and returns the file in which it
    /// continues.
    fn read_archive(&mut self, folder: &Path, mut reader: Option<Reader>) -> Result<Extent, Error> {
        let mut next = 0;
        for (number, path) in archive::files(folder)? {
            next = number + 1;
            let mut lines = Vec::new();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let stem = name.trim_end_matches(".warc.gz").to_owned();
            let scan = FileScan::read(&path, |record| {
                lines.extend(record.line(&stem));
                if let Some(reader) = &mut reader {
                    self.take_record(record, number, reader);
                }
            })?;
            self.done.n_damaged_bytes += scan.n_damaged;
            self.done.n_cut_bytes += scan.cut(&path)?;
            let index_path = folder.join(format!("{stem}.cdxj"));
            self.done.n_index_files += u64::from(archive::mend_index(&index_path, &lines)?);
        }
        Ok(Extent {
            file: next,
            ..Extent::default()
        })
    }

    /// Records the URL of a record and the links of its page.
    fn take_record(&mut self, record: &Stored, file: u64, reader: &mut Reader) {
        let field = |name: &str| record.field(name).unwrap_or_default();
        let url = reader.normalize(field("WARC-Target-URI"));
        let Some(url) = url.filter(|_| record.is_indexed()) else {
            return;
        };
        self.done.n_records += 1;
        let date = time::parse(field("WARC-Date")).unwrap_or(0);
        self.names.insert(name_hash(date, url.as_str()));
        let key = Fingerprint::of(&url).key();
        if self.fetched.insert(key) {
            let host = host_of(&mut self.frontier, &url);
            let site = self.frontier.hosts[host as usize].site;
            *self.n_pages.entry(site).or_default() += 1;
        }
        let linked = self.linked.remove(&key);
        let linked = linked.map(|linked| (linked.depth, linked.kind));
        let known = self.journal.urls.get(&key).copied().or(linked);
        let (depth, kind) = known.unwrap_or_else(|| (0, kind_of(&record.block)));
        let mut visit = table::ArchivedVisit::of(record, &url, kind, depth, file);
        if field("WARC-Type") == "response" {
            let payload = field("WARC-Payload-Digest").to_owned();
            let job = job(record, url, kind, depth, date);
            let report = reader.look(&job, &payload);
            visit.digest = report.version.digest;
            self.take_links(&job, report.links);
        }
        self.rows.take(&visit);
    }

    /// Records the links of a page.
    fn take_links(&mut self, job: &Job, links: Vec<Found>) {
        for found in links {
            let key = found.fingerprint.key();
            if self.fetched.contains(&key) || self.journal.urls.contains_key(&key) {
                continue;
            }
            let steps = u32::from(!found.is_redirect);
            self.linked.entry(key).or_insert_with(|| Linked {
                url: found.url,
                depth: job.depth.saturating_add(steps),
                kind: found.kind,
                n_redirects: u8::from(found.is_redirect),
                found_on: job.url.as_str().into(),
            });
        }
    }

    /// Removes documents without a record from the index of contents. An unreadable index is set
    /// aside.
    fn check_contents(&mut self, standing: &mut DurableExtents) -> Result<(), Error> {
        let path = self.folder.join(CONTENTS);
        if !path.is_dir() {
            return Ok(());
        }
        let forget = || {
            let policy = kept_settings(self.folder).map(|settings| settings.duplicates.policy);
            let settings = settings_of(policy.unwrap_or_default());
            let contents = Contents::open(&path, Committed::default(), settings)?;
            for key in contents.names_from(0)? {
                let name = Name::parse(&key);
                let is_kept =
                    name.is_some_and(|name| self.names.contains(&name_hash(name.date, name.url)));
                if !is_kept {
                    contents.forget(&key)?;
                }
            }
            contents.sync()?;
            Ok((contents.archived_below()?, contents.committed()?))
        };
        match forget() {
            Ok((row, committed)) => {
                standing.row = row;
                standing.committed = committed;
            }
            Err(arose_dedup::index::Error::Locked { path }) => return Err(Error::Locked { path }),
            Err(_) => self.set_aside(CONTENTS)?,
        }
        Ok(())
    }

    /// Moves a file or directory aside.
    fn set_aside(&mut self, name: &str) -> Result<(), Error> {
        let from = self.folder.join(name);
        if from.exists() {
            let to = self.free_name(name);
            disk::rename(&from, &to).context("renaming", &from)?;
            self.done.aside.push(to);
        }
        Ok(())
    }

    fn free_name(&self, name: &str) -> PathBuf {
        let names = (1..).map(|n| self.folder.join(format!("{name}.damaged-{n}")));
        let mut free = names.filter(|path| !path.exists());
        free.next().unwrap_or_default()
    }

    /// Rebuilds the seen set from all known URLs and replaces the old one.
    fn write_seen(&mut self, config: crate::seen::SeenConfig, mark: u64) -> Result<u64, Error> {
        let path = self.folder.join("seen.new");
        if path.exists() {
            std::fs::remove_dir_all(&path).context("removing", &path)?;
        }
        let mut seen = Seen::open(&path, config)?;
        let known = self.journal.urls.keys().copied();
        let all = self.fetched.iter().copied().chain(known);
        let all = all.chain(self.linked.keys().copied());
        let mut entries: Vec<Entry<'_>> = all
            .map(|key| Entry {
                fingerprint: Fingerprint {
                    host: (key >> 64) as u64,
                    rest: key as u64,
                },
                url: "",
            })
            .collect();
        entries.sort_unstable_by_key(|entry| entry.fingerprint.key());
        for batch in entries.chunks(1 << 16) {
            seen.insert(batch)?;
            seen.commit_as(mark)?;
        }
        seen.commit_as(mark)?;
        seen.sync()?;
        let n_seen = seen.len();
        drop(seen);
        self.set_aside(SEEN)?;
        let to = self.folder.join(SEEN);
        disk::rename(&path, &to).context("renaming", &path)?;
        disk::sync_folder(self.folder).context("writing", self.folder)?;
        Ok(n_seen)
    }

    /// Rebuilds the journal. The old one keeps its name until the new one replaces it.
    fn write_journal(
        &mut self,
        mark: u64,
        standing: DurableExtents,
        extent: Extent,
        robots_extent: Extent,
    ) -> Result<(), Error> {
        let path = self.folder.join(JOURNAL);
        let mut new = NewJournal::begin(&path, mark)?;
        for host in 0..self.frontier.hosts.len() {
            new.push(Event::Host(&self.frontier.hosts[host].origin));
            new.write_if_full()?;
        }
        self.push_readable(&mut new)?;
        self.push_linked(&mut new)?;
        for id in 0..self.frontier.hosts.len() as HostId {
            let site = self.frontier.hosts[id as usize].site;
            if let Some(n) = self.n_pages.remove(&site) {
                new.push(Event::Pages { host: id, n });
            }
        }
        for event in standing.events() {
            new.push(event);
        }
        new.push(Event::Counters(&self.journal.counters));
        new.push(robots_extent.robots_event());
        new.push(extent.event());
        new.write()?;
        if path.exists() {
            let aside = self.free_name(JOURNAL);
            std::fs::hard_link(&path, &aside).context("keeping", &aside)?;
            self.done.aside.push(aside);
        }
        new.journal.rename(&path)?;
        self.done.n_hosts = self.frontier.hosts.len() as u64;
        Ok(())
    }

    /// Queues the URLs queued in the old journal, and copies its events about hosts.
    fn push_readable(&mut self, new: &mut NewJournal) -> Result<(), Error> {
        let Some(file) = self.old_journal()? else {
            return Ok(());
        };
        let (readable, frontier) = (&self.journal, &self.frontier);
        let (fetched, done) = (&self.fetched, &mut self.done);
        salvage(&file, &self.folder.join(JOURNAL), |frame| {
            for (event, place) in &frame.events {
                if let Event::Url(queued) = event {
                    let url = readable.url(frontier, queued);
                    let is_open = url.is_some_and(|url| {
                        let key = Fingerprint::of(&url).key();
                        !readable.done.contains(place) && !fetched.contains(&key)
                    });
                    done.n_queued += u64::from(is_open);
                    if !is_open {
                        continue;
                    }
                }
                if let Some(event) = readable.renumbered(*event, *place) {
                    new.push(event);
                }
            }
            new.write_if_full()
        })?;
        Ok(())
    }

    /// Queues the URLs that only pages contain.
    fn push_linked(&mut self, new: &mut NewJournal) -> Result<(), Error> {
        for linked in self.linked.values() {
            let hash = Fingerprint::of(&linked.url).host;
            let host = match self.frontier.find(hash) {
                Some(host) => host,
                None => match self.frontier.add_host(&linked.url, hash) {
                    Ok(host) => {
                        new.push(Event::Host(linked.url.origin()));
                        host
                    }
                    // As in a crawl, the number of hosts per site is limited.
                    Err(_) => continue,
                },
            };
            new.push(Event::Url(Queued {
                host,
                depth: linked.depth,
                weight: self.frontier.scale().order.weigh(Arrival {
                    is_seed: linked.depth == 0,
                    is_list: linked.kind == Kind::Sitemap,
                    gift: Gift::NONE,
                    number: linked.depth,
                }),
                class: 0,
                is_last: false,
                of_repeat: false,
                n_redirects: linked.n_redirects,
                kind: linked.kind,
                rest: linked.url.rest(),
                found_on: &linked.found_on,
            }));
            self.done.n_queued += 1;
            self.done.n_from_links += 1;
            new.write_if_full()?;
        }
        Ok(())
    }
}

impl Readable {
    fn url(&self, frontier: &Frontier, queued: &Queued<'_>) -> Option<NormalUrl> {
        let host = *self.hosts.get(&queued.host)?;
        let origin = &frontier.hosts[host as usize].origin;
        NormalUrl::from_parts(origin, queued.rest)
    }

    /// Returns an event about a known host, with its number in the new journal; none for other
    /// events. Rules are left out: the next run requests robots.txt, which may list sitemaps that
    /// are lost. Failed, dropped and lost URLs are left out too, and are tried again.
    fn renumbered<'b>(&self, event: Event<'b>, place: Place) -> Option<Event<'b>> {
        let of = |host: HostId| self.hosts.get(&host).copied();
        Some(match event {
            Event::Url(queued) => Event::Url(Queued {
                host: of(queued.host)?,
                weight: self.weights.get(&place).copied().unwrap_or(queued.weight),
                ..queued
            }),
            Event::Delay { host, millis } => Event::Delay {
                host: of(host)?,
                millis,
            },
            Event::NotBefore { host, millis } => Event::NotBefore {
                host: of(host)?,
                millis,
            },
            Event::Trust { host, trust } => Event::Trust {
                host: of(host)?,
                trust,
            },
            Event::Doublings { n } => Event::Doublings { n },
            // URLs deferred by rules are queued again.
            Event::UrlRule { key, text } => Event::UrlRule { key, text },
            Event::UrlContents(pairs) => Event::UrlContents(pairs),
            Event::Unreachable { host, since } => Event::Unreachable {
                host: of(host)?,
                since,
            },
            _ => return None,
        })
    }
}

/// Returns the host of a URL, which is added if it is new.
fn host_of(frontier: &mut Frontier, url: &NormalUrl) -> HostId {
    let hash = Fingerprint::of(url).host;
    if frontier.find(hash).is_none() {
        frontier.restore_host(url, hash);
    }
    frontier.find(hash).unwrap_or_default()
}

/// Whether a response of unknown kind looks like a sitemap.
fn kind_of(block: &[u8]) -> Kind {
    let start = &block[..block.len().min(4096)];
    let has = |name: &[u8]| memchr::memmem::find(start, name).is_some();
    match has(b"<urlset") || has(b"<sitemapindex") {
        true => Kind::Sitemap,
        false => Kind::Page,
    }
}

fn name_hash(date: i64, url: &str) -> u64 {
    digest64(format!("{date} {url}").as_bytes())
}

/// A record whose links are to be read.
fn job(record: &Stored, url: NormalUrl, kind: Kind, depth: u32, date: i64) -> Job {
    let bytes = record.block.clone();
    let head_end = memchr::memmem::find(&bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    Job {
        host: 0,
        ticket: Some(0),
        url,
        kind,
        depth,
        n_redirects: 0,
        is_last: false,
        of_repeat: false,
        weight: Weight::default(),
        found_on: "".into(),
        took: Duration::ZERO,
        message: Message {
            bytes,
            head_end,
            cut: None,
        },
        date,
        address: IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        revisit: None,
    }
}
