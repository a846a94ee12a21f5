//! The threads beside the loop: one that writes, one that reads queued URLs.
//!
//! *Question.* The loop must never be late for a host, and files take as long as they take: a sync
//! may take a second, and so may reading a URL that was queued days ago. Who waits? *Idea.* Others.
//! The loop sends commands to the *store*, which carries them out in order ([`Files`]) and sends
//! what is to be known back. A *reader* looks up URLs whose turn it is and that are not in memory.
//! Meanwhile the loop goes on with other hosts.
//!
//! *Order.* The links of a page are asked for before the page counts as done, and the record of a
//! page is appended before the commit that says so: commands are carried out in the order in which
//! they were sent. A URL is in the seen set for good only with the commit that queues it.
//!
//! *Bounds.* Commands take at most [`MAX_BYTES`] of memory and a batch more; while there are as
//! many, the loop takes in no pages, and then sends no requests. Replies are no more than commands.
//!
//! With `machine.threads = 0` all of it is done at once by the loop, which tests use to have time
//! stand still meanwhile.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;

use super::files::{Commit, Files, Recall, Visited};
use super::*;
use crate::archive::Part;
use crate::content::Claim;
use crate::journal::{Pool, Queued};
use crate::log::Line;
use crate::pages::PageId;
use crate::seen::Membership;

/// What pages are looked for, for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Somebody wants them visited.
    Order,
    /// Their sites announce changes.
    Signals,
}

/// Commands in the channel; others wait in the loop.
const QUEUE: usize = 256;

/// Bytes of commands from which on the loop waits.
const MAX_BYTES: usize = 64 << 20;

/// What the loop wants done.
#[derive(Debug)]
pub(super) enum Command {
    /// Whether these links were met before.
    Ask(Vec<Item>),
    /// Append a record.
    Append {
        part: Part,
        record: Packed,
        claim: Option<Claim>,
        date: i64,
        visited: Option<Visited>,
    },
    /// Read back what visits of these pages need.
    Recall(Vec<PageId>),
    /// Look for the pages with these fingerprints.
    Find(Wanted, HashSet<u128>),
    /// Make all that happened survive the end of the process.
    Commit(Box<Commit>),
    /// Make all that was committed survive the end of the machine.
    Sync,
    /// Leave a short journal behind. Now, in seconds since 1970.
    Tidy(u64),
}

impl Command {
    /// About how much memory it takes.
    fn n_bytes(&self) -> usize {
        match self {
            Self::Ask(items) => items.iter().map(Item::n_bytes).sum(),
            Self::Append { record, .. } => record.n_bytes(),
            Self::Commit(commit) => commit.n_bytes(),
            Self::Sync | Self::Tidy(_) | Self::Recall(_) | Self::Find(..) => 0,
        }
    }
}

/// What comes back.
#[derive(Debug)]
pub(super) enum Reply {
    /// Links, and whether each was met before.
    Answered {
        items: Vec<Item>,
        answers: Vec<Membership>,
        /// How many URLs have been new so far.
        n_new: u64,
    },
    /// Events before this place are in the file.
    Written(Place),
    /// All is on the disk.
    Synced,
    /// The journal is as short as it will be.
    Tidied,
    /// What visits of pages need.
    Recalled(Vec<Recall>),
    /// The pages with some fingerprints.
    Located(Wanted, HashMap<u128, PageId>),
    /// The URL whose turn it is at a host.
    Read(HostId, Turn, Box<Text>),
    /// Nothing more is done.
    Failed(Box<Error>),
}

/// A queued URL as it was read back.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) depth: u32,
    pub(super) is_last: bool,
    pub(super) class: u8,
    pub(super) n_redirects: u8,
    pub(super) kind: Kind,
    pub(super) rest: Box<str>,
    found_on: Box<str>,
}

impl Text {
    /// The URL that it was found on, if that is known; `origin` is that of its host.
    pub(super) fn found_on(&self, origin: &str) -> String {
        match self.found_on.starts_with('/') {
            true => format!("{origin}{}", self.found_on),
            false => self.found_on.to_string(),
        }
    }

    /// The line of the log that says why it is given up without a request.
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
            class: queued.class,
            n_redirects: queued.n_redirects,
            kind: queued.kind,
            rest: queued.rest.into(),
            found_on: queued.found_on.into(),
        }
    }
}

/// The loop's side.
#[derive(Debug)]
pub(super) struct Background {
    place: Where,
    pool: Arc<Pool>,
    /// Rings when a reply has come.
    pub(super) bell: Arc<Notify>,
    /// Commands that the channel had no room for.
    overflow: VecDeque<Command>,
    /// Bytes of commands that were not carried out.
    n_bytes: Arc<AtomicUsize>,
    /// Answers, commits and others that are to come.
    pub(super) n_asked: usize,
    pub(super) n_commits: usize,
    pub(super) n_others: usize,
    pub(super) n_recalls: usize,
    pub(super) n_reading: usize,
    /// Scratch.
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Where {
    Here(Box<Files>, VecDeque<Reply>),
    Threads {
        replies: Receiver<Reply>,
        commands: SyncSender<Command>,
        reads: SyncSender<(HostId, Turn)>,
        threads: Vec<JoinHandle<()>>,
    },
    Nowhere,
}

impl Background {
    /// Takes charge of the files of a crawl that makes so many requests at a time.
    pub(super) fn new(files: Files, n_requests: usize) -> Self {
        let (pool, bell) = (files.pool(), Arc::new(Notify::new()));
        let n_bytes = Arc::new(AtomicUsize::new(0));
        let place = match files.shared.settings.machine.threads {
            0 => Where::Here(Box::new(files), VecDeque::new()),
            _ => {
                let (sender, replies) = channel();
                let (commands, todo) = sync_channel(QUEUE);
                // Every request that may be made has room for its URL.
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

    /// Whether a reply is to come.
    pub(super) fn is_busy(&self) -> bool {
        self.n_asked + self.n_commits + self.n_others + self.n_recalls + self.n_reading > 0
    }

    /// Has a command carried out, now or soon.
    pub(super) fn send(&mut self, command: Command) -> Result<(), Error> {
        match &command {
            Command::Ask(_) => self.n_asked += 1,
            Command::Commit(_) => self.n_commits += 1,
            Command::Sync | Command::Tidy(_) => self.n_others += 1,
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
            // A store that has ended says why in its last reply.
        }
    }

    /// Looks for the URL whose turn it is at a host, which must be in the file; tells it at once if
    /// that is done here.
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

    /// A reply that is there.
    pub(super) fn try_next(&mut self) -> Result<Option<Reply>, Error> {
        self.push_overflow();
        let reply = match &mut self.place {
            Where::Here(_, replies) => replies.pop_front(),
            Where::Threads { replies, .. } => replies.try_recv().ok(),
            Where::Nowhere => None,
        };
        self.count(reply)
    }

    /// Waits for a reply, which must be to come.
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
            Some(Reply::Synced | Reply::Tidied) => self.n_others -= 1,
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
    /// Waits until all that was sent is carried out.
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

fn carry_out(files: &mut Files, command: Command) -> Result<Option<Reply>, Error> {
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

/// A thread's side.
#[derive(Debug, Clone)]
struct Threadside {
    replies: Sender<Reply>,
    bell: Arc<Notify>,
}

impl Threadside {
    fn reply(&self, reply: Reply) {
        // Where nobody listens any more, nobody has to know.
        let _ = self.replies.send(reply);
        self.bell.notify_one();
    }

    fn keep(&self, mut files: Files, todo: &Receiver<Command>, n_bytes: &AtomicUsize) {
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
