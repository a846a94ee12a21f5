//! The files of a crawl and the order in which they change.
//!
//! A commit makes all changes survive the end of the process: first the archive, then the journal,
//! which records how much of the archive is valid, then the seen set, which can be rebuilt from the
//! journal. A sync makes them survive a power failure, in the same order. The next start can resume
//! after a crash between any two steps.
//!
//! All of this may be slow, so it is done on a separate thread ([`super::background`]) in the order
//! in which the crawl requests it. Further threads rewrite the journal and merge the seen set in
//! the meantime.

use std::collections::HashSet;
use std::sync::atomic::AtomicBool;

use super::background::Text;
use super::restore::DurableExtents;
use super::*;
use crate::archive::{Heads, Part};
use crate::content::Claim;
use crate::focus::{Changes, FocusFiles};
use crate::journal::{Batch, Event, Pool, Successor};
use crate::log::Log;
use crate::pages::{self, PageId, Record, Table};
use crate::robots;
use crate::seen::{Entry, Membership};
use crate::statistics::StatisticsFile;
use crate::task::Task;

/// A page, and the data that a visit needs, if still available.
pub(super) type Recall = (PageId, Option<pages::Recalled>);

/// A page whose response is appended to the archive.
#[derive(Debug)]
pub(super) struct Visited {
    pub(super) page: PageId,
    pub(super) record: Record,
    /// Whether the response is the one to refer to later.
    pub(super) moves: bool,
}

/// Maximum size in bytes of a journal that is rewritten at the end of a run: a few seconds.
const MAX_TIDIED: u64 = 128 << 20;

/// The reason in the log for URLs of hosts whose name does not exist.
const UNKNOWN_NAME: &str = "unknown-name";

/// The files of the store.
#[derive(Debug)]
pub(super) struct StoreFiles {
    pub(super) journal: Journal,
    pub(super) seen: Seen,
    pub(super) archive: ArchiveWriter,
    /// The archive of robots.txt files.
    pub(super) robots_archive: ArchiveWriter,
    pub(super) standing: DurableExtents,
    pub(super) shared: Arc<Shared>,
    /// Number of URLs in the journal, done or not, and of those that are queued.
    pub(super) n_urls: u64,
    pub(super) n_queued: u64,
    /// Number of new URLs at the last commit.
    pub(super) n_new: u64,
    pub(super) rewriting: Rewriting,
    pub(super) log: Log,
    pub(super) statistics: StatisticsFile,
    pub(super) table: Table,
    /// Pages visited since the last commit whose records were appended.
    pub(super) visited: Vec<(PageId, Record)>,
    /// Only in a crawl that looks for a topic.
    pub(super) focus: Option<FocusFiles>,
}

/// When and how to rewrite the journal.
#[derive(Debug, Default)]
pub(super) struct Rewriting {
    /// Size from which the journal is checked for completed URLs.
    look_at: u64,
    under_way: Option<Task<Option<Successor>>>,
    /// URLs that were queued in the meantime.
    n_urls: u64,
}

/// All changes since the last commit.
#[derive(Debug)]
pub(super) struct Commit {
    pub(super) batch: Arc<Batch>,
    pub(super) counters: String,
    /// Number of new URLs at the last URL of the batch, by [`Seen::n_new`].
    pub(super) n_new: u64,
    /// Number of queued URLs.
    pub(super) n_queued: u64,
    /// The current time in seconds since 1970.
    pub(super) date: u64,
    /// Lines of the log.
    pub(super) lines: String,
    pub(super) given_up: Vec<GivenUp>,
    /// Pages with changes that do not come from a response.
    pub(super) visited: Vec<(PageId, Record)>,
    /// The state of a crawl that looks for a topic.
    pub(super) focus: Changes,
}

/// A host whose name does not exist: all its queued URLs are dropped without a request.
#[derive(Debug)]
pub(super) struct GivenUp {
    pub(super) origin: Box<str>,
    pub(super) places: Vec<Place>,
}

impl Commit {
    /// Returns its approximate size in memory.
    pub(super) fn n_bytes(&self) -> usize {
        let hosts = self.given_up.iter();
        let n_places: usize = hosts.map(|host| host.places.len()).sum();
        let n_places = n_places * size_of::<Place>();
        self.batch.n_bytes() + self.lines.len() + n_places + self.focus.n_bytes()
    }
}

impl StoreFiles {
    pub(super) fn pool(&self) -> Arc<Pool> {
        self.journal.pool()
    }

    /// Returns whether links were met before, in their order.
    pub(super) fn ask(&mut self, items: &[Item]) -> Result<Vec<Membership>, Error> {
        let links = items.iter().filter_map(|item| match item {
            Item::Link(pending) => Some(pending.found.fingerprint),
            Item::Moved(moved) => moved.fingerprint(),
            Item::Page(_) | Item::Rules { .. } => None,
        });
        let entries = links.map(|fingerprint| Entry {
            fingerprint,
            url: "",
        });
        let entries: Vec<Entry<'_>> = entries.collect();
        self.seen.insert(&entries)
    }

    /// Appends a record to an archive.
    pub(super) fn append(
        &mut self,
        part: Part,
        record: &Packed,
        claim: Option<Claim>,
        date: i64,
        visited: Option<Visited>,
    ) -> Result<(), Error> {
        let position = match part {
            Part::Pages => self.archive.append(record, date)?,
            Part::Robots => self.robots_archive.append(record, date)?,
        };
        if let Some(Visited {
            page,
            mut record,
            moves,
        }) = visited
        {
            if moves {
                record.position = position;
            }
            self.visited.push((page, record));
        }
        if let (Some(contents), Some(claim)) = (&self.shared.contents, claim) {
            contents.give_back(claim);
        }
        Ok(())
    }

    /// Makes all changes survive the end of the process.
    pub(super) fn commit(&mut self, commit: &Commit) -> Result<(), Error> {
        let extent = self.archive.flush()?;
        let robots_extent = self.robots_archive.flush()?;
        if let Some(contents) = &self.shared.contents {
            self.standing.row = contents.archived_below().map_err(Error::Contents)?;
        }
        let mut more: Vec<Event<'_>> = vec![Event::Counters(&commit.counters)];
        more.extend(self.standing.events());
        let full = self.robots_archive.take_full();
        more.extend(full.iter().map(|full| full.robots_event()));
        more.push(robots_extent.robots_event());
        more.extend(self.archive.take_full().iter().map(|full| full.event()));
        more.push(extent.event());
        self.visited.extend_from_slice(&commit.visited);
        let rows = self.visited.iter();
        let rows: Vec<_> = rows.map(|(page, row)| (*page, row.to_bytes())).collect();
        let visits = rows
            .iter()
            .map(|&(page, ref record)| Event::Visited { page, record });
        more.extend(visits);
        self.log.append(&commit.lines)?;
        if let Some(focus) = &self.focus {
            focus.write(&commit.focus)?;
        }
        self.journal.append(&commit.batch, &more)?;
        for (page, record) in self.visited.drain(..) {
            self.table.put(page, record);
        }
        self.log_given_up(commit)?;
        self.n_urls += commit.batch.n_urls;
        self.rewriting.n_urls += commit.batch.n_urls;
        (self.n_queued, self.n_new) = (commit.n_queued, commit.n_new);
        if self.seen.is_full()? {
            self.sync_journal()?;
        }
        self.seen.commit_first(self.n_new, self.journal.mark())?;
        self.rewrite_if_due(commit.date)
    }

    /// Writes a line for each dropped URL. Their events must be in the journal, because they have
    /// not been read until now.
    fn log_given_up(&mut self, commit: &Commit) -> Result<(), Error> {
        const PIECE: usize = 1024;
        let pool = self.journal.pool();
        let mut buffer = Vec::new();
        for GivenUp { origin, places } in &commit.given_up {
            for places in places.chunks(PIECE) {
                let mut lines = String::new();
                for &place in places {
                    let text = Text::from(pool.read(place, &mut buffer)?);
                    lines.push_str(&text.untried(origin, UNKNOWN_NAME, commit.date as i64));
                }
                self.log.append(&lines)?;
            }
        }
        Ok(())
    }

    /// Makes all commits survive a power failure.
    pub(super) fn sync(&mut self) -> Result<(), Error> {
        self.archive.flush()?;
        self.robots_archive.flush()?;
        self.sync_journal()?;
        self.seen.commit_first(self.n_new, self.journal.mark())?;
        self.seen.sync_committed()?;
        self.standing.n_seen = self.seen.n_committed();
        // After the journal, which contains what the table lacks.
        self.table.sync()?;
        if let Some(focus) = &self.focus {
            focus.sync()?;
        }
        self.standing.n_pages = self.table.n_stored();
        Ok(())
    }

    /// Syncs the files to which the journal refers before the journal itself.
    fn sync_journal(&mut self) -> Result<(), Error> {
        self.archive.sync()?;
        self.robots_archive.sync()?;
        if let Some(contents) = &self.shared.contents {
            contents.sync().map_err(Error::Contents)?;
            self.standing.committed = contents.committed().map_err(Error::Contents)?;
        }
        self.journal.sync()
    }

    /// Reads back the data that visits of pages need. Pending records are passed to the operating
    /// system first.
    pub(super) fn recall(&mut self, pages: &[PageId]) -> Result<Vec<Recall>, Error> {
        self.archive.flush()?;
        let mut heads = Heads::new(self.archive.folder());
        let mut recalls = Vec::with_capacity(pages.len());
        // The table does not have these yet; the last record of a page counts.
        let uncommitted: HashMap<_, _> = self.visited.iter().copied().collect();
        for &page in pages {
            let record = match uncommitted.get(&page) {
                Some(&record) => Some(record),
                None => self.table.get(page)?,
            };
            let recalled = match record {
                Some(record) => pages::recall(&mut heads, page, record)?,
                None => None,
            };
            recalls.push((page, recalled));
        }
        Ok(recalls)
    }

    /// Returns the numbers of the pages in the table with these fingerprints.
    pub(super) fn find(&self, keys: &HashSet<u128>) -> Result<HashMap<u128, PageId>, Error> {
        let mut found = HashMap::new();
        self.table.each(|page, record| {
            let key = record.fingerprint.key();
            if keys.contains(&key) {
                found.insert(key, page);
            }
        })?;
        Ok(found)
    }

    /// Rewrites the journal if it has become too long, or continues to do so.
    fn rewrite_if_due(&mut self, date: u64) -> Result<(), Error> {
        if let Some(task) = self.rewriting.under_way.take_if(|task| task.is_finished()) {
            return self.replace_journal(task.join()?);
        }
        if self.rewriting.under_way.is_some() || !self.is_too_long() {
            return Ok(());
        }
        // URLs that only the old journal contains are in the seen set alone, and no crash may undo
        // what the new one says about the archive.
        self.sync()?;
        let rules_since = date.saturating_sub(robots::MAX_AGE.as_secs());
        let old = self.journal.old(rules_since)?;
        let path = self.journal.path().to_owned();
        self.rewriting.n_urls = 0;
        let work = move |stop: &AtomicBool| old.rewrite(&path, stop);
        match self.shared.settings.machine.threads {
            0 => self.replace_journal(work(&AtomicBool::new(false))?),
            _ => {
                self.rewriting.under_way = Some(Task::start(work));
                Ok(())
            }
        }
    }

    fn is_too_long(&mut self) -> bool {
        let n_bytes = self.journal.n_bytes();
        if n_bytes < self.rewriting.look_at {
            return false;
        }
        // Estimated from URLs, which make up nearly all of it.
        let share = self.n_queued as f64 / self.n_urls.max(1) as f64;
        self.look_again_beyond((n_bytes as f64 * share.min(1.0)) as u64);
        n_bytes >= self.rewriting.look_at
    }

    /// The journal may become twice as long as necessary.
    fn look_again_beyond(&mut self, n_needed: u64) {
        self.rewriting.look_at = self.shared.settings.archive.compact.max(2 * n_needed);
    }

    fn replace_journal(&mut self, successor: Option<Successor>) -> Result<(), Error> {
        let Some(successor) = successor else {
            return Ok(());
        };
        // No crash may undo what is appended to it either.
        self.sync()?;
        self.n_urls = successor.n_urls + self.rewriting.n_urls;
        self.journal.give_way(successor)?;
        self.look_again_beyond(self.journal.n_bytes());
        Ok(())
    }

    /// Rewrites the journal now if that is worthwhile, so that the next start need not read the
    /// events of this run. A rewriting in progress covers only what was done when it began. A large
    /// journal is rewritten only while the crawl runs, because a run must end soon.
    pub(super) fn tidy(&mut self, date: u64) -> Result<(), Error> {
        if self.journal.n_bytes() > MAX_TIDIED {
            self.rewriting.under_way = None;
            return Ok(());
        }
        self.finish_rewriting()?;
        self.rewriting.look_at = 0;
        self.rewrite_if_due(date)?;
        self.finish_rewriting()
    }

    fn finish_rewriting(&mut self) -> Result<(), Error> {
        match self.rewriting.under_way.take() {
            Some(task) => self.replace_journal(task.join()?),
            None => Ok(()),
        }
    }
}
