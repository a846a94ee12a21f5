//! What the loop of a crawl and its agent tell each other. Each has a thread of its own.
//!
//! The agent fills the channel of orders and the loop empties it; with commits it is the other way
//! round. Both are bounded: an agent waits until there is room, and a loop keeps commits that there
//! is no room for and sends no requests meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::{Notify, mpsc};

use super::address::Holder;
use super::fence::Fence;
use super::partition::N_PARTITIONS;
use super::replay::{MovedHost, MovedUrl};
use super::twins::{Finding, NewPage};
use super::wire::{Record, SentUrl};

/// Bytes of records from which on the next one goes into another message. One record has at most
/// 128 KiB.
const MAX_PIECE: usize = 400 << 10;

/// Orders and commits that may be on their way.
const ROOM: usize = 64;

/// What the agent wants of the loop.
#[derive(Debug)]
pub(crate) enum LoopOrder {
    /// A part of the state of a partition that is to be crawled from now on.
    Open(Box<Opening>),
    /// URLs that another agent has found.
    Apply {
        /// By which the agent knows them.
        delivery: u64,
        partition: u8,
        urls: Vec<SentUrl>,
    },
    /// Finish with a partition.
    Close(u8),
    /// Mark a page that duplicates a page of another agent.
    Mark(Box<Finding>),
    /// Finish.
    End(Ending),
}

/// A part of the state of a partition.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub(crate) partition: u8,
    pub(crate) epoch: u64,
    pub(crate) hosts: Vec<MovedHost>,
    /// Fingerprints of URLs that need no request.
    pub(crate) ended: Vec<u128>,
    /// URLs that wait, with their origins in place of numbers of hosts.
    pub(crate) waiting: Vec<(String, MovedUrl)>,
    pub(crate) is_last: bool,
}

/// Why an agent ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing waits anywhere.
    Done,
    /// It was told to hand everything over.
    Drained,
    /// Another agent has taken over, because this one was not heard of for too long.
    Fenced,
    /// It cannot go on.
    Failed(String),
}

/// What a commit of the loop means for other agents. All of it is in the journal.
#[derive(Debug, Default)]
pub(crate) struct Committed {
    /// Records of partitions that have to be stored before `then`: hosts, URLs queued and sent.
    pub(crate) first: Vec<(u8, Records)>,
    /// Records that count only when those of all partitions before are stored.
    pub(crate) then: Vec<(u8, Records)>,
    pub(crate) batches: Vec<Outgoing>,
    /// Pages that are new to this agent.
    pub(crate) new_pages: Vec<NewPage>,
    /// Deliveries whose URLs are queued.
    pub(crate) applied: Vec<u64>,
    /// Partitions that are finished with.
    pub(crate) closed: Vec<u8>,
    /// Whether it is the last one.
    pub(crate) is_last: bool,
}

impl Committed {
    /// Whether the next commit may be stored together with this one.
    pub(crate) fn is_open(&self) -> bool {
        self.closed.is_empty() && !self.is_last
    }

    /// Adds the next commit to this one, which is [open](Self::is_open).
    pub(crate) fn append(&mut self, next: Self) {
        self.first.extend(next.first);
        self.then.extend(next.then);
        self.batches.extend(next.batches);
        self.new_pages.extend(next.new_pages);
        self.applied.extend(next.applied);
        (self.closed, self.is_last) = (next.closed, next.is_last);
    }
}

/// Records of a partition, in pieces that fit into a message.
#[derive(Debug, Default)]
pub(crate) struct Records(Vec<Vec<u8>>);

impl Records {
    pub(crate) fn push(&mut self, record: &Record<'_>) {
        if self.0.last().is_none_or(|piece| piece.len() > MAX_PIECE) {
            self.0.push(Vec::new());
        }
        if let Some(piece) = self.0.last_mut() {
            record.write(piece);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds records behind these.
    pub(crate) fn append(&mut self, more: Self) {
        for piece in more.0 {
            match self.0.last_mut() {
                Some(last) if last.len() + piece.len() <= MAX_PIECE => last.extend(piece),
                _ => self.0.push(piece),
            }
        }
    }

    pub(crate) fn into_pieces(self) -> Vec<Vec<u8>> {
        self.0
    }
}

/// URLs of other partitions.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) number: u64,
    pub(crate) target: u8,
    /// Partitions whose pages lead there.
    pub(crate) sources: Vec<u8>,
    pub(crate) urls: Vec<SentUrl>,
}

/// What both sides look at.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Partitions whose URLs are queued here.
    pub(crate) owned: [AtomicBool; N_PARTITIONS],
    pub(crate) fence: Arc<Fence>,
    pub(crate) addresses: Holder,
    /// Whether the loop has nothing to do.
    pub(crate) is_idle: AtomicBool,
    /// Whether so many URLs wait for other agents that no further ones should come.
    pub(crate) is_crowded: AtomicBool,
    /// Orders carried out, and commits handed on.
    pub(crate) n_orders: AtomicU64,
    pub(crate) n_commits: AtomicU64,
    pub(crate) n_pages: AtomicU64,
    pub(crate) n_queued: AtomicU64,
    pub(crate) n_in_flight: AtomicU64,
    /// Rings when there is an order.
    pub(crate) bell: Notify,
}

impl Shared {
    pub(crate) fn owns(&self, partition: u8) -> bool {
        self.owned[usize::from(partition)].load(Ordering::Relaxed)
    }
}

/// The loop's side.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) orders: mpsc::Receiver<LoopOrder>,
    pub(crate) commits: mpsc::Sender<Committed>,
    pub(crate) shared: Arc<Shared>,
}

/// The agent's side.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) orders: mpsc::Sender<LoopOrder>,
    pub(crate) commits: mpsc::Receiver<Committed>,
    pub(crate) shared: Arc<Shared>,
}

/// A loop and an agent that know each other.
pub(crate) fn link() -> (Link, Wire) {
    let (order, orders) = mpsc::channel(ROOM);
    let (commit, commits) = mpsc::channel(ROOM);
    let shared = Arc::new(Shared {
        owned: [const { AtomicBool::new(false) }; N_PARTITIONS],
        fence: Arc::default(),
        addresses: Holder::default(),
        is_idle: AtomicBool::new(false),
        is_crowded: AtomicBool::new(false),
        n_orders: AtomicU64::new(0),
        n_commits: AtomicU64::new(0),
        n_pages: AtomicU64::new(0),
        n_queued: AtomicU64::new(0),
        n_in_flight: AtomicU64::new(0),
        bell: Notify::new(),
    });
    let link = Link {
        orders,
        commits: commit,
        shared: Arc::clone(&shared),
    };
    let wire = Wire {
        orders: order,
        commits,
        shared,
    };
    (link, wire)
}
