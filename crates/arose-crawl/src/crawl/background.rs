//! The threads beside the loop: one that writes, and one that reads queued URLs.
//!
//! *Question.* The loop must never be late for a host, but file operations may be slow: a sync may
//! take a second, and so may reading a URL that was queued days ago. *Idea.* Other threads wait.
//! The loop sends commands to the *store*, which executes them in order ([`StoreFiles`]) and sends
//! replies. A *reader* looks up URLs whose turn it is and that are not in memory. In the meantime,
//! the loop continues with other hosts.
//!
//! *Order.* Commands are executed in the order in which they were sent. The links of a page are
//! looked up before the page counts as done, and the record of a page is appended before the commit
//! that says so. A URL becomes a permanent member of the seen set only with the commit that queues
//! it.
//!
//! *Bounds.* Commands take at most [`MAX_BYTES`] of memory plus one batch. At that limit, the loop
//! accepts no pages, and then sends no requests. There are no more replies than commands.
//!
//! With `machine.threads = 0`, the loop does everything at once itself. Tests use this so that time
//! stands still in the meantime.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use super::files::{Commit, Recall, StoreFiles, Visited};
use super::*;
use crate::archive::Part;
use crate::content::Claim;
use crate::journal::{Pool, Queued};
use crate::log::{self, Line};
use crate::pages::PageId;
use crate::seen::Membership;
use crate::statistics::NextLine;

/// The reason for looking up pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// A user wants them visited.
    Order,
    /// Their sites announce changes.
    Signals,
}

/// Number of commands in the channel; others wait in the loop.
const QUEUE: usize = 256;

/// Bytes of commands from which the loop waits.
const MAX_BYTES: usize = 64 << 20;

/// A command of the loop.
#[derive(Debug)]
pub(super) enum Command {
    /// Return whether these links were met before.
    Ask(Vec<Item>),
    /// Append a record.
    Append {
        part: Part,
        record: Packed,
        claim: Option<Claim>,
        date: i64,
        visited: Option<Visited>,
    },
    /// Read back the data that visits of these pages need.
    Recall(Vec<PageId>),
    /// Look up the pages with these fingerprints.
    Find(Wanted, HashSet<u128>),
    /// Make all changes survive the end of the process.
    Commit(Box<Commit>),
    /// Make all commits survive a power failure.
    Sync,
    /// Append a line to the statistics.
    Statistics(NextLine),
    /// Count the pages of each host in the log of this directory.
    CountPages(PathBuf),
    /// Compact the journal. Contains the current time in seconds since 1970.
    Tidy(u64),
}

impl Command {
    /// Returns its approximate size in memory.
    fn n_bytes(&self) -> usize {
        match self {
            Self::Ask(items) => items.iter().map(Item::n_bytes).sum(),
            Self::Append { record, .. } => record.n_bytes(),
            Self::Commit(commit) => commit.n_bytes(),
            Self::Sync
            | Self::Tidy(_)
            | Self::Recall(_)
            | Self::Find(..)
            | Self::Statistics(_)
            | Self::CountPages(_) => 0,
        }
    }
}

/// A reply to the loop.
#[derive(Debug)]
pub(super) enum Reply {
    /// Links, and whether each was met before.
    Answered {
        items: Vec<Item>,
        answers: Vec<Membership>,
        /// Number of new URLs so far.
        n_new: u64,
    },
    /// Events before this position are in the file.
    Written(Place),
    /// Everything is on disk.
    Synced,
    /// The journal has been compacted.
    Tidied,
    /// A line of the statistics has been appended.
    Noted,
    /// The number of pages in the log, by host name.
    Counted(HashMap<String, u64>),
    /// The data that visits of pages need.
    Recalled(Vec<Recall>),
    /// The pages with some fingerprints.
    Located(Wanted, HashMap<u128, PageId>),
    /// The next URL of a host.
    Read(HostId, Turn, Box<Text>),
    /// The thread has stopped.
    Failed(Box<Error>),
}

/// A queued URL as read back.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) depth: u32,
    pub(super) is_last: bool,
    pub(super) of_repeat: bool,
    pub(super) class: u8,
    pub(super) n_redirects: u8,
    pub(super) kind: Kind,
    pub(super) rest: Box<str>,
    found_on: Box<str>,
}

impl Text {
    /// Returns the URL on which it was found, if known; `origin` is that of its host.
    pub(super) fn found_on(&self, origin: &str) -> String {
        match self.found_on.starts_with('/') {
            true => format!("{origin}{}", self.found_on),
            false => self.found_on.to_string(),
        }
    }

    /// Returns the line of the log that says why it was dropped without a request.
    pub(super) fn untried(&self, origin: &str, reason: &str, date: i64) -> String {
        let line = Line {
            date,
            reason,
            found_on: &self.found_on(origin),
            url: &format!("{origin}{}", self.rest),
            ..Line::default()
        };
        line.text()
    }
}

impl From<Queued<'_>> for Text {
    fn from(queued: Queued<'_>) -> Self {
        Self {
            depth: queued.depth,
            is_last: queued.is_last,
            of_repeat: queued.of_repeat,
            class: queued.class,
            n_redirects: queued.n_redirects,
            kind: queued.kind,
            rest: queued.rest.into(),
            found_on: queued.found_on.into(),
        }
    }
}

/// The side of the loop.
#[derive(Debug)]
pub(super) struct Background {
    place: Where,
    pool: Arc<Pool>,
    /// Notifies the loop of a reply.
    pub(super) bell: Arc<Notify>,
    /// Commands for which the channel had no room.
    overflow: VecDeque<Command>,
    /// Bytes of commands that are not executed yet.
    n_bytes: Arc<AtomicUsize>,
    /// Number of expected lookups, commits and other replies.
    pub(super) n_asked: usize,
    pub(super) n_commits: usize,
    pub(super) n_others: usize,
    pub(super) n_recalls: usize,
    pub(super) n_reading: usize,
    /// Reused memory.
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Where {
    Here(Box<StoreFiles>, VecDeque<Reply>),
    Threads {
        replies: Receiver<Reply>,
        commands: SyncSender<Command>,
        reads: SyncSender<(HostId, Turn)>,
        threads: Vec<JoinHandle<()>>,
    },
    Nowhere,
}

impl Background {
    /// Takes over the files of a crawl with this many open requests.
    pub(super) fn new(files: StoreFiles, n_requests: usize) -> Self {
        let (pool, bell) = (files.pool(), Arc::new(Notify::new()));
        let n_bytes = Arc::new(AtomicUsize::new(0));
        let place = match files.shared.settings.machine.threads {
            0 => Where::Here(Box::new(files), VecDeque::new()),
            _ => {
                let (sender, replies) = channel();
                let (commands, todo) = sync_channel(QUEUE);
                // Every open request has room for its URL.
                let (reads, wanted) = sync_channel(2 * n_requests + 64);
                let store = Threadside {
                    replies: sender,
                    bell: Arc::clone(&bell),
                };
                let (reader, pool) = (store.clone(), Arc::clone(&pool));
                let n_bytes = Arc::clone(&n_bytes);
                let threads = vec![
                    std::thread::spawn(move || store.keep(files, &todo, &n_bytes)),
                    std::thread::spawn(move || reader.read(&pool, &wanted)),
                ];
                Where::Threads {
                    replies,
                    commands,
                    reads,
                    threads,
                }
            }
        };
        Self {
            place,
            pool,
            bell,
            overflow: VecDeque::new(),
            n_bytes,
            n_asked: 0,
            n_commits: 0,
            n_others: 0,
            n_recalls: 0,
            n_reading: 0,
            buffer: Vec::new(),
        }
    }

    /// Whether the loop should wait for the store.
    pub(super) fn is_behind(&self) -> bool {
        self.n_bytes.load(Ordering::Relaxed) > MAX_BYTES
    }

    /// Whether a reply is expected.
    pub(super) fn is_busy(&self) -> bool {
        self.n_asked + self.n_commits + self.n_others + self.n_recalls + self.n_reading > 0
    }

    /// Executes a command now or soon.
    pub(super) fn send(&mut self, command: Command) -> Result<(), Error> {
        match &command {
            Command::Ask(_) => self.n_asked += 1,
            Command::Commit(_) => self.n_commits += 1,
            Command::Sync | Command::Tidy(_) | Command::Statistics(_) | Command::CountPages(_) => {
                self.n_others += 1
            }
            Command::Recall(_) | Command::Find(..) => self.n_recalls += 1,
            Command::Append { .. } => {}
        }
        if let Where::Here(files, replies) = &mut self.place {
            replies.extend(carry_out(files, command)?);
            return Ok(());
        }
        self.n_bytes.fetch_add(command.n_bytes(), Ordering::Relaxed);
        self.overflow.push_back(command);
        self.push_overflow();
        Ok(())
    }

    fn push_overflow(&mut self) {
        let Where::Threads { commands, .. } = &self.place else {
            return;
        };
        while let Some(command) = self.overflow.pop_front() {
            if let Err(TrySendError::Full(command)) = commands.try_send(command) {
                self.overflow.push_front(command);
                return;
            }
            // A store that has stopped gives the reason in its last reply.
        }
    }

    /// Looks up the next URL of a host, which must be in the file. Returns it at once if no thread
    /// is used.
    pub(super) fn read(&mut self, host: HostId, turn: Turn) -> Result<Option<Text>, Error> {
        if let Where::Threads { reads, .. } = &self.place
            && reads.try_send((host, turn)).is_ok()
        {
            self.n_reading += 1;
            return Ok(None);
        }
        let queued = self.pool.read(turn.place, &mut self.buffer)?;
        Ok(Some(queued.into()))
    }

    /// Returns a reply if there is one.
    pub(super) fn try_next(&mut self) -> Result<Option<Reply>, Error> {
        self.push_overflow();
        let reply = match &mut self.place {
            Where::Here(_, replies) => replies.pop_front(),
            Where::Threads { replies, .. } => replies.try_recv().ok(),
            Where::Nowhere => None,
        };
        self.count(reply)
    }

    /// Waits for a reply, which must be expected.
    pub(super) fn next(&mut self) -> Result<Option<Reply>, Error> {
        self.push_overflow();
        let reply = match &mut self.place {
            Where::Here(_, replies) => replies.pop_front(),
            Where::Threads { replies, .. } => replies.recv().ok(),
            Where::Nowhere => None,
        };
        match reply {
            None => Err(Error::Worker),
            reply => self.count(reply),
        }
    }

    fn count(&mut self, reply: Option<Reply>) -> Result<Option<Reply>, Error> {
        match &reply {
            Some(Reply::Answered { .. }) => self.n_asked -= 1,
            Some(Reply::Written(_)) => self.n_commits -= 1,
            Some(Reply::Synced | Reply::Tidied | Reply::Noted | Reply::Counted(_)) => {
                self.n_others -= 1;
            }
            Some(Reply::Recalled(_) | Reply::Located(..)) => self.n_recalls -= 1,
            Some(Reply::Read(..)) => self.n_reading -= 1,
            Some(Reply::Failed(_)) | None => {}
        }
        match reply {
            Some(Reply::Failed(error)) => Err(*error),
            reply => Ok(reply),
        }
    }
}

impl Drop for Background {
    /// Waits until all commands are executed.
    fn drop(&mut self) {
        if let Where::Threads {
            replies,
            commands,
            reads,
            threads,
        } = std::mem::replace(&mut self.place, Where::Nowhere)
        {
            for command in self.overflow.drain(..) {
                let _ = commands.send(command);
            }
            drop((replies, commands, reads));
            for thread in threads {
                let _ = thread.join();
            }
        }
    }
}

fn carry_out(files: &mut StoreFiles, command: Command) -> Result<Option<Reply>, Error> {
    Ok(Some(match command {
        Command::Ask(items) => Reply::Answered {
            answers: files.ask(&items)?,
            items,
            n_new: files.seen.n_new(),
        },
        Command::Append {
            part,
            record,
            claim,
            date,
            visited,
        } => {
            files.append(part, &record, claim, date, visited)?;
            return Ok(None);
        }
        Command::Recall(pages) => Reply::Recalled(files.recall(&pages)?),
        Command::Find(wanted, keys) => Reply::Located(wanted, files.find(&keys)?),
        Command::Commit(commit) => {
            files.commit(&commit)?;
            Reply::Written(commit.batch.end())
        }
        Command::Statistics(line) => {
            files.statistics.append(&line)?;
            Reply::Noted
        }
        Command::CountPages(folder) => Reply::Counted(log::pages_by_host(&folder)?),
        Command::Sync => {
            files.sync()?;
            Reply::Synced
        }
        Command::Tidy(date) => {
            files.tidy(date)?;
            Reply::Tidied
        }
    }))
}

/// The side of a thread.
#[derive(Debug, Clone)]
struct Threadside {
    replies: Sender<Reply>,
    bell: Arc<Notify>,
}

impl Threadside {
    fn reply(&self, reply: Reply) {
        // If the loop has ended, the reply is not needed.
        let _ = self.replies.send(reply);
        self.bell.notify_one();
    }

    fn keep(&self, mut files: StoreFiles, todo: &Receiver<Command>, n_bytes: &AtomicUsize) {
        while let Ok(command) = todo.recv() {
            let n = command.n_bytes();
            let reply = carry_out(&mut files, command);
            n_bytes.fetch_sub(n, Ordering::Relaxed);
            match reply {
                Ok(reply) => reply.into_iter().for_each(|reply| self.reply(reply)),
                Err(error) => return self.reply(Reply::Failed(Box::new(error))),
            }
        }
    }

    fn read(&self, pool: &Pool, wanted: &Receiver<(HostId, Turn)>) {
        let mut buffer = Vec::new();
        while let Ok((host, turn)) = wanted.recv() {
            match pool.read(turn.place, &mut buffer) {
                Ok(queued) => self.reply(Reply::Read(host, turn, Box::new(queued.into()))),
                Err(error) => return self.reply(Reply::Failed(Box::new(error))),
            }
        }
    }
}
