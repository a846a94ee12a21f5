//! Opens, commits and closes the directory of a crawl.

use std::net::SocketAddr;

use arose_dedup::disk;

use super::background::{Command, Reply, Wanted};
use super::files::{Commit, Rewriting, StoreFiles};
use super::focused::Focusing;
use super::replay::Withdrawn;
use super::restore::{open_contents, restore, restore_seen, seen_config};
use super::*;
use crate::archive;
use crate::counters::Counter;
use crate::error::Context;
use crate::fetch::Fetch;
use crate::focus::{self, Judge};
use crate::frontier::MAX_PLACE;
use crate::journal::Event;
use crate::log::{self, Log};
use crate::page;
use crate::pages::{TABLE, Table};
use crate::settings::seconds;

/// The position at which a journal ends at the latest. The remaining space is far more than one
/// commit needs.
const LAST_PLACE: Place = MAX_PLACE - (1 << 36);

/// Time between two points that survive a power failure.
const SYNC: Duration = Duration::from_secs(30);

/// Bytes of events after which they are committed. Reading them takes ten times as much memory.
const MAX_PENDING: usize = 1 << 20;

impl Crawl {
    /// Opens the crawl in a directory, or starts one there.
    ///
    /// # Errors
    ///
    /// If the directory is in use, damaged or cannot be written, or the settings are invalid.
    pub fn open(folder: &Path, settings: Settings, seams: Seams) -> Result<Self, Error> {
        let mut crawl = Self::restore(folder, settings, seams)?;
        crawl.begin_all()?;
        Ok(crawl)
    }

    /// Uses this fetcher for all further requests, in place of HTTP and local files.
    pub fn fetch_with(&mut self, fetcher: Rc<dyn Fetch>) {
        self.fetcher.replace(Some(fetcher));
    }

    /// Opens the crawl in a directory to request only the URLs that are lost for now.
    ///
    /// # Errors
    ///
    /// Those of [`Crawl::open`].
    pub fn open_lost(folder: &Path, settings: Settings, seams: Seams) -> Result<Self, Error> {
        let mut crawl = Self::restore(folder, settings, seams)?;
        crawl.frontier.hold_queues()?;
        crawl.begin_all()?;
        Ok(crawl)
    }

    /// Puts all hosts where they have to wait. From then on, a thread keeps those that are not in
    /// memory.
    fn begin_all(&mut self) -> Result<(), Error> {
        self.ask_for_lost()?;
        self.advance_all()?;
        if self.settings().machine.threads > 0 {
            let bell = Arc::clone(&self.background.bell);
            self.frontier.hosts.keep_aside(move || bell.notify_one());
        }
        Ok(())
    }

    /// Makes lost URLs be requested again.
    fn ask_for_lost(&mut self) -> Result<(), Error> {
        for id in 0..self.frontier.hosts.len() as HostId {
            if self.frontier.hosts.has_lost(id) {
                self.frontier.hosts[id as usize].forgive();
                self.journal.push(Event::Found { host: id });
                self.frontier.hosts.shelve(2)?;
            }
        }
        Ok(())
    }

    fn advance_all(&mut self) -> Result<(), Error> {
        for host in 0..self.frontier.hosts.len() as HostId {
            if self.frontier.hosts.may_have_work(host) {
                self.frontier.advance(host);
                self.frontier.hosts.shelve(2)?;
            }
        }
        Ok(())
    }

    fn restore(folder: &Path, settings: Settings, seams: Seams) -> Result<Self, Error> {
        // Problems of the topic are reported before anything is written.
        focus::check(folder, settings.focus.is_on(), is_crawl(folder))?;
        let judge = Judge::of(&settings.focus)?.map(Arc::new);
        disk::create_folder(folder).context("creating", folder)?;
        let lock = lock(folder)?;
        let seen_config = seen_config(&settings);
        let (guard, date) = (Some(page::guard(&settings)?), (seams.clock)());
        let is_new = !is_crawl(folder);
        if let (Some(judge), true) = (&judge, is_new) {
            Focusing::open(folder, &settings, judge, &Counters::default())?;
        }
        let (mut journal, restored) = restore(folder, &settings, guard, date)?;
        journal.cut()?;
        let config = archive::ArchiveConfig::new(&settings)?;
        let date = (seams.clock)().as_secs() as i64;
        let pages = folder.join(ARCHIVE);
        let archive = ArchiveWriter::open(&pages, restored.extent, config.clone(), date)?;
        let robots = folder.join(ROBOTS);
        let robots_archive = ArchiveWriter::open(&robots, restored.robots_extent, config, date)?;
        let mut seen = Seen::open_until(&folder.join(SEEN), seen_config, journal.mark())?;
        restore_seen(&mut seen, &restored, journal.mark())?;
        let contents = match settings.duplicates.check {
            true => Some(Arc::new(open_contents(
                folder,
                &restored,
                settings.duplicates.policy,
            )?)),
            false => None,
        };
        let n_host_pages = match settings.limits_pages() {
            true => log::pages_by_host(folder)?,
            false => HashMap::new(),
        };
        let fetcher = Fetchers::new(&settings, Rc::clone(&seams.connector))?;
        let n_stored = restored.standing.n_pages;
        let table = Table::open(&folder.join(TABLE), n_stored, restored.visited)?;
        let recrawl = RecrawlState::new(
            &settings,
            &table,
            restored.again,
            restored.untrusted,
            date as u32,
            &restored.frontier,
            &restored.qualities,
        )?;
        let dust = Dust::restore(&settings, restored.url_rules, restored.deferred)?;
        let shared = Arc::new(Shared {
            judge,
            ..Shared::new(settings, contents)?
        });
        let settings = &shared.settings;
        let is_synced = journal.is_synced();
        let next = journal.next_batch();
        let (topic, focus_files) = match &shared.judge {
            Some(judge) => {
                let counters = &restored.counters;
                let (topic, files) = Focusing::open(folder, settings, judge, counters)?;
                (Some(Box::new(topic)), Some(files))
            }
            None => (None, None),
        };
        let (statistics, statistics_file) = Statistics::open(folder)?;
        let files = StoreFiles {
            n_new: seen.n_new(),
            journal,
            seen,
            archive,
            robots_archive,
            standing: restored.standing,
            shared: Arc::clone(&shared),
            n_urls: restored.n_urls,
            n_queued: restored.frontier.n_queued + dust.deferred.n(),
            rewriting: Rewriting::default(),
            log: Log::open(folder)?,
            statistics: statistics_file,
            table,
            visited: Vec::new(),
            focus: focus_files,
        };
        // Every open request and every lookup has room for its result.
        let (sent, arrived) = mpsc::channel(2 * settings.fetch.in_flight.max(1) + 1024);
        let mut crawl = Self {
            folder: folder.to_owned(),
            start: Instant::now(),
            idle: Idle::new(
                settings.fetch.idle_connections,
                seconds(settings.fetch.idle),
            ),
            load: Load::new(settings),
            statistics,
            lines: String::new(),
            given_up: Vec::new(),
            slowest: Slowest::default(),
            workers: Workers::new(&shared),
            seams: Rc::new(seams),
            frontier: restored.frontier,
            names: Names::default(),
            journal: Draft::new(next),
            n_new: files.n_new,
            background: Background::new(files, settings.fetch.in_flight),
            before: restored.counters.clone(),
            limit: None,
            counters: restored.counters,
            fetcher: Rc::new(fetcher),
            bad_seeds: Vec::new(),
            found: Vec::new(),
            n_reported: 0,
            later: BinaryHeap::new(),
            open: HashMap::new(),
            n_tickets: 0,
            n_in_flight: 0,
            is_paused: false,
            n_host_pages,
            slots: Slots::default(),
            turns: Turns::default(),
            stalled: Duration::ZERO,
            outage: Outage::default(),
            n_fetched: 0,
            recrawl,
            topic,
            dust,
            ordered: None,
            member: None,
            n_known_seeds: 0,
            committed: Duration::ZERO,
            synced: Duration::ZERO,
            sent,
            arrived,
            shared,
            _lock: lock,
        };
        if crawl.frontier.hosts.len() == 0 {
            crawl.frontier.first_turn = Duration::ZERO;
        }
        if let Some(program) = crawl
            .shared
            .judge
            .as_ref()
            .and_then(|judge| judge.program())
        {
            program.set_bell(Arc::clone(&crawl.background.bell));
        }
        crawl.recall_waiting()?;
        crawl.withdraw(&restored.withdrawn)?;
        crawl.recall_if_off()?;
        crawl.resume_errands();
        // Sync what the last run left in the caches of the operating system, so that it is checked
        // only once.
        if !is_synced {
            crawl.background.send(Command::Sync)?;
            crawl.settle()?;
        }
        Ok(crawl)
    }

    /// Removes the queued URLs that the settings no longer allow.
    fn withdraw(&mut self, withdrawn: &Withdrawn) -> Result<(), Error> {
        for (id, place) in withdrawn.iter() {
            self.counters.add(Counter::Withdrawn, 1);
            self.drop_url(id, place);
            if self.journal.pending() > MAX_PENDING {
                self.commit()?;
                self.settle()?;
            }
        }
        Ok(())
    }

    /// Commits if a commit is due and the store has completed the earlier ones.
    pub(super) fn commit_if_due(&mut self) -> Result<(), Error> {
        let now = self.now();
        let is_due = now - self.committed >= seconds(self.settings().archive.commit);
        if is_due && self.background.n_commits == 0 || self.journal.pending() > MAX_PENDING {
            self.commit()?;
        }
        if now - self.synced >= SYNC && self.background.n_others == 0 {
            self.synced = now;
            self.background.send(Command::Sync)?;
        }
        Ok(())
    }

    /// Starts a commit: once it is complete, all changes so far survive the end of the process.
    pub(super) fn commit(&mut self) -> Result<(), Error> {
        self.committed = self.now();
        for event in self.frontier.take_changes() {
            self.journal.push(event);
        }
        self.note_url_rules();
        if self.journal.pending() == 0 {
            return Ok(());
        }
        if self.journal.end() > LAST_PLACE {
            return Err(Error::Full {
                path: self.folder.clone(),
            });
        }
        let batch = self.journal.take();
        self.note_commit(&batch);
        let commit = Commit {
            batch,
            lines: std::mem::take(&mut self.lines),
            given_up: std::mem::take(&mut self.given_up),
            visited: std::mem::take(&mut self.recrawl.visited),
            focus: match &mut self.topic {
                Some(topic) => topic.take_changes(self.committed),
                None => Default::default(),
            },
            counters: self.counters.to_text(),
            n_new: self.n_new,
            n_queued: self.frontier.n_queued + self.dust.deferred.n(),
            date: (self.seams.clock)().as_secs(),
        };
        self.background.send(Command::Commit(Box::new(commit)))
    }

    /// Processes the replies of the store and of the reader.
    pub(super) fn take_replies(&mut self) -> Result<(), Error> {
        while let Some(reply) = self.background.try_next()? {
            self.take_reply(reply)?;
        }
        Ok(())
    }

    fn take_reply(&mut self, reply: Reply) -> Result<(), Error> {
        match reply {
            Reply::Answered {
                items,
                answers,
                n_new,
            } => {
                self.n_new = n_new;
                self.take_answers(items, &answers)
            }
            Reply::Written(end) => {
                self.journal.note_written(end);
                self.note_written(end);
                Ok(())
            }
            Reply::Synced | Reply::Tidied | Reply::Noted => Ok(()),
            Reply::Counted(n_pages) => {
                // Added to those counted since then.
                let n_pages = n_pages.into_iter();
                n_pages.for_each(|(name, n)| *self.n_host_pages.entry(name).or_default() += n);
                Ok(())
            }
            Reply::Recalled(recalls) => self.take_recalled(recalls),
            Reply::Located(Wanted::Order, found) => self.take_located(&found),
            Reply::Located(Wanted::Signals, found) => {
                self.take_announced(&found);
                Ok(())
            }
            Reply::Read(host, turn, text) => self.go_on(host, turn, &text),
            Reply::Failed(error) => Err(*error),
        }
    }

    /// Waits until the store has executed all commands.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        while self.background.is_busy() {
            if let Some(reply) = self.background.next()? {
                self.take_reply(reply)?;
            }
        }
        while let Some((id, arriving)) = self.frontier.hosts.wait_arrived()? {
            self.take_host(id, &arriving)?;
        }
        self.frontier.hosts.check()
    }

    /// Waits until the threads have less to do. They are left with something, so that they and this
    /// thread work at the same time.
    pub(super) fn catch_up(&mut self) -> Result<(), Error> {
        while self.background.is_behind()
            && let Some(reply) = self.background.next()?
        {
            self.take_reply(reply)?;
        }
        while self.frontier.hosts.is_busy()
            && let Some((id, arriving)) = self.frontier.hosts.wait_arrived()?
        {
            self.take_host(id, &arriving)?;
        }
        self.frontier.hosts.check()
    }

    /// Commits all changes, including links that are being looked up; returns when that is done.
    pub(super) fn commit_all(&mut self) -> Result<(), Error> {
        self.queue_found()?;
        self.settle()?;
        self.commit()?;
        self.settle()
    }

    /// Commits, and records that no request was open.
    pub(super) fn close(&mut self) -> Result<(), Error> {
        if let Some(topic) = &mut self.topic {
            topic.close();
        }
        self.commit_all()?;
        let date = (self.seams.clock)().as_secs();
        self.background.send(Command::Tidy(date))?;
        self.journal.push(Event::Closed);
        self.commit()?;
        self.background.send(Command::Sync)?;
        // Again, so that the note of how much the first one synced is on disk too.
        self.background.send(Command::Sync)?;
        self.settle()
    }
}

/// Files in the directory of a crawl.
pub(crate) const JOURNAL: &str = "journal";
pub(crate) const SEEN: &str = "seen";
pub(crate) const CONTENTS: &str = "contents";
pub(crate) const ARCHIVE: &str = "archive";
pub(crate) const ROBOTS: &str = "robots";

pub(super) fn lock(folder: &Path) -> Result<disk::Lock, Error> {
    let path = folder.join("lock");
    let lock = disk::Lock::take(&path).context("locking", &path)?;
    lock.ok_or_else(|| Error::Locked {
        path: folder.to_owned(),
    })
}

/// Returns the IP address of a host with its port.
pub(super) fn socket(host: &crate::frontier::Host, address: IpAddr) -> SocketAddr {
    SocketAddr::new(address, host.port())
}
