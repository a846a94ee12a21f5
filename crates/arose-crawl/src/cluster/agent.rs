//! The agent: owns partitions on behalf of the loop of a crawl, and talks to the others.
//!
//! All of it happens on one thread, beside that of the loop, in a few tasks:
//!
//! - *renew* replaces the document of this agent, which is its lease, and moves the fence.
//! - *watch* sees the documents of others; *govern* decides from them what to take and what to hand
//!   over, fences agents that are silent, sends batches again, and recognizes the end.
//! - *publish* stores what the loop has committed in the logs of partitions, sends URLs to others,
//!   and confirms what others have sent.
//! - *hear* learns what others have confirmed; one task per partition receives URLs.
//! - *tend addresses* asks for IP addresses that several agents may ask, and grants them.
//! - *tend twins* has pages compared with those of other agents.
//! - *show* writes down what it sees of the others, for the page of the crawl.
//!
//! *Order.* Records of a commit that say what there is (hosts, URLs queued and sent) are stored in
//! all logs before those that say what is done, which go with the next commit. So a page is done in
//! one partition only when the URLs it leads to are queued in others. URLs of others are confirmed
//! when they are in the log.
//!
//! *Losses.* Servers that lose messages, or all they had, get them again: this agent's document and
//! those of its partitions from memory, and the logs from [copies](super::copy). A store without
//! any documents may be one that was lost, with agents that still own partitions. So partitions
//! that nobody ever took are free only when all leases from before would have ended.
//!
//! *End.* An agent whose document was changed by another, or whose log has a message of another,
//! has lost its partitions, and ends at once. What it had not stored is done again by others.

mod addresses;
mod compare;
mod exchange;
mod govern;
mod publish;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{sleep, timeout};

use super::address::{Ask, Grant, Granter, Return};
use super::bus::{Bus, BusError, Subject};
use super::copy::Copies;
use super::document::{
    self, AgentDocument, CRAWL, CrawlDocument, END, OwnerDocument, Presence, agent_key, owner_key,
};
use super::fence::now;
use super::lease::Terms;
use super::link::{Committed, Ending, LoopOrder, Opening, Outgoing, Records, Shared, Wire};
use super::partition::N_PARTITIONS;
use super::replay::{State, Unconfirmed};
use super::status::ClusterStatus;
use super::twins::{Page, Twins};
use super::view::View;
use super::wire::{self, Batch, Record, Title, Word};

/// Time between two looks at the others.
const TICK: Duration = Duration::from_millis(100);

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// How long records wait for a commit that they go with.
const FLUSH: Duration = Duration::from_millis(500);

/// When a batch is sent again that nobody confirms; twice that the next time.
const RESEND: Duration = Duration::from_secs(10);

/// Batches that wait for confirmation before no further requests are made.
const MAX_UNCONFIRMED: usize = 5000;

/// URLs of a partition that are handed to the loop in one piece.
const PIECE: usize = 4096;

/// How often an agent without work says so.
const IDLE_BEAT: Duration = Duration::from_millis(500);

/// Time between two descriptions of the cluster for people.
const SHOW: Duration = Duration::from_secs(2);

/// Numbers of batches that a former owner had not sent for certain.
const RESENT: u64 = 1 << 62;

/// An agent.
#[derive(Debug, Clone)]
pub(crate) struct AgentConfig {
    /// Its name, and the name of this run of it.
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) weight: f64,
    pub(crate) terms: Terms,
    /// Bytes of a log from which on it is replaced by a snapshot.
    pub(crate) snapshot_bytes: u64,
    /// How long IP addresses rest after a request.
    pub(crate) address_delay: Duration,
    pub(crate) crawl: CrawlDocument,
}

/// What an agent keeps in its directory.
#[derive(Debug)]
pub(crate) struct Stores {
    pub(crate) copies: Copies,
    /// Compares pages of other agents; none if the crawl does not compare pages.
    pub(crate) twins: Option<Twins>,
}

/// A partition, as its owner sees it.
#[derive(Debug, Default)]
struct Part {
    stage: Stage,
    log: Log,
    /// Records for the next message.
    carry: Records,
    receiver: Option<AbortHandle>,
    /// Bytes of the last snapshot.
    n_snapshot: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Foreign,
    Taking,
    Open,
    Closing,
}

#[derive(Debug, Default, Clone, Copy)]
struct Log {
    /// The number of the last message.
    tail: u64,
    epoch: u64,
    /// Messages of this epoch.
    number: u64,
}

/// URLs on their way to another agent.
#[derive(Debug)]
struct Underway {
    target: u8,
    message: Vec<u8>,
    /// Where their logs know them: partition, epoch, batch.
    sources: Vec<(u8, u64, u64)>,
    /// When they are sent again.
    due: Duration,
    wait: Duration,
    /// The epoch of the target when they were sent last.
    epoch: u64,
}

/// URLs of another agent.
struct Received<T> {
    partition: u8,
    /// Who sent them, and the number there.
    sender: String,
    number: u64,
    token: T,
}

struct RunningAgent<B: Bus> {
    bus: B,
    config: AgentConfig,
    copies: Copies,
    /// Since when the servers have had their store, as far as this agent knows.
    begun: Cell<Duration>,
    /// Whether servers lack the owners of partitions, and whether logs may lack messages.
    is_lost: Cell<bool>,
    is_doubtful: Cell<bool>,
    shared: Arc<Shared>,
    orders: mpsc::Sender<LoopOrder>,
    view: RefCell<View>,
    parts: RefCell<Vec<Part>>,
    underway: RefCell<BTreeMap<u64, Underway>>,
    granter: RefCell<Granter>,
    /// Compares pages of others; none if the crawl does not compare pages.
    twins: Option<Twins>,
    /// Pages that others compare, and those that were marked.
    asked: RefCell<BTreeMap<Page, compare::Asked>>,
    marked: RefCell<BTreeSet<Page>>,
    /// URLs that the loop has.
    deliveries: RefCell<HashMap<u64, Received<B::Token>>>,
    n_deliveries: Cell<u64>,
    n_resent: Cell<u64>,
    n_orders: Cell<u64>,
    n_commits: Cell<u64>,
    activity: Cell<u64>,
    /// The revision of this agent's document, and when the last renewal was sent that succeeded.
    revision: Cell<u64>,
    renewed: Cell<Duration>,
    n_beats: Cell<u64>,
    /// Pages and time at the last beat.
    measured: Cell<(u64, Duration)>,
    is_leaving: Cell<bool>,
    ending: RefCell<Option<Ending>>,
    ended: Notify,
    beat: Notify,
    tick: Notify,
}

/// Joins the crawl of a bus, or begins it.
///
/// # Errors
///
/// If the crawl is another one than this agent expects, or has ended.
pub(crate) async fn enter<B: Bus>(bus: &B, config: &AgentConfig) -> Result<(), String> {
    let key = Subject::Key(CRAWL.to_owned());
    for _ in 0..10 {
        let found = bus.read(&key, 0).await.map_err(|error| error.to_string())?;
        match found.last() {
            Some((_, bytes)) => {
                let unread = || "the crawl was begun by another version".to_owned();
                let crawl: CrawlDocument = document::read(bytes).ok_or_else(unread)?;
                return match crawl.mismatch(&config.crawl) {
                    Some(mismatch) => Err(mismatch),
                    None => Ok(()),
                };
            }
            None => match bus.append(&key, 0, document::write(&config.crawl)).await {
                Ok(_) => return Ok(()),
                Err(BusError::Conflict) => {}
                Err(error) => return Err(error.to_string()),
            },
        }
    }
    Err("the crawl can neither be read nor begun".to_owned())
}

/// Runs an agent until its loop has ended, or until it has lost its partitions.
pub(crate) async fn run<B: Bus>(
    bus: B,
    config: AgentConfig,
    stores: Stores,
    wire: Wire,
) -> Option<Ending> {
    let Stores { copies, twins } = stores;
    let mut parts = Vec::new();
    parts.resize_with(N_PARTITIONS, Part::default);
    let granter = Granter::new(&config.terms, config.address_delay);
    let agent = Rc::new(RunningAgent {
        bus,
        config,
        copies,
        begun: Cell::new(now()),
        is_lost: Cell::new(false),
        is_doubtful: Cell::new(false),
        shared: wire.shared,
        orders: wire.orders,
        view: RefCell::default(),
        parts: RefCell::new(parts),
        underway: RefCell::default(),
        granter: RefCell::new(granter),
        twins,
        asked: RefCell::default(),
        marked: RefCell::default(),
        deliveries: RefCell::default(),
        n_deliveries: Cell::new(0),
        n_resent: Cell::new(RESENT),
        n_orders: Cell::new(0),
        n_commits: Cell::new(0),
        activity: Cell::new(0),
        revision: Cell::new(0),
        renewed: Cell::new(now()),
        n_beats: Cell::new(0),
        measured: Cell::new((0, now())),
        is_leaving: Cell::new(false),
        ending: RefCell::new(None),
        ended: Notify::new(),
        beat: Notify::new(),
        tick: Notify::new(),
    });
    tokio::select! {
        () = agent.publish(wire.commits) => {}
        () = agent.renew() => {}
        () = agent.watch() => {}
        () = agent.hear() => {}
        () = agent.tend_addresses() => {}
        () = agent.tend_twins() => {}
        () = agent.show() => {}
        () = RunningAgent::govern(Rc::clone(&agent)) => {}
        () = agent.ended.notified() => {}
    }
    agent.copies.show(&ClusterStatus::of(&agent.view.borrow()));
    agent.shared.fence.close();
    for part in &*agent.parts.borrow() {
        part.receiver.iter().for_each(AbortHandle::abort);
    }
    let ending = agent.ending.borrow().clone();
    if let Some(ending @ (Ending::Fenced | Ending::Failed(_))) = &ending {
        // Where the loop has no room it ends without: the fence is closed.
        let order = agent.orders.send(LoopOrder::End(ending.clone()));
        let _ = timeout(Duration::from_secs(60), order).await;
        agent.shared.bell.notify_one();
    }
    ending
}

impl<B: Bus> RunningAgent<B> {
    fn id(&self) -> &str {
        &self.config.id
    }

    fn note_activity(&self) {
        self.activity.set(self.activity.get() + 1);
    }

    /// Ends at once.
    fn fail(&self, ending: Ending) {
        self.shared.fence.close();
        self.ending.borrow_mut().get_or_insert(ending);
        self.ended.notify_one();
    }

    /// Gives the loop an order.
    async fn order(&self, order: LoopOrder) {
        self.note_activity();
        self.n_orders.set(self.n_orders.get() + 1);
        if self.orders.send(order).await.is_err() {
            // The loop has ended; its last commit says the rest.
            return;
        }
        self.shared.bell.notify_one();
    }

    fn document(&self, presence: Presence) -> AgentDocument {
        let shared = &self.shared;
        let n_pages = shared.n_pages.load(Ordering::Relaxed);
        let (before, since) = self.measured.get();
        let passed = (now() - since).as_secs_f64().max(1e-3);
        let parts = self.parts.borrow();
        let open = parts.iter().filter(|part| part.stage == Stage::Open);
        AgentDocument {
            name: self.config.name.clone(),
            presence,
            beat: self.n_beats.get(),
            weight: self.config.weight,
            is_idle: self.is_idle(),
            activity: self.activity.get(),
            n_partitions: open.count() as u64,
            n_pages,
            pages_per_second: n_pages.saturating_sub(before) as f64 / passed,
            n_queued: shared.n_queued.load(Ordering::Relaxed),
            n_in_flight: shared.n_in_flight.load(Ordering::Relaxed),
            n_unconfirmed: self.underway.borrow().len() as u64,
            lag: shared.n_commits.load(Ordering::SeqCst)
                - self
                    .n_commits
                    .get()
                    .min(shared.n_commits.load(Ordering::SeqCst)),
        }
    }

    /// Whether there is nothing to do until something comes from others.
    fn is_idle(&self) -> bool {
        let shared = &self.shared;
        let parts = self.parts.borrow();
        let is_settled = |part: &Part| match part.stage {
            Stage::Foreign => true,
            Stage::Open => part.carry.is_empty(),
            Stage::Taking | Stage::Closing => false,
        };
        // The state of the loop counts only with all orders carried out.
        shared.n_orders.load(Ordering::SeqCst) == self.n_orders.get()
            && shared.is_idle.load(Ordering::SeqCst)
            && shared.n_commits.load(Ordering::SeqCst) == self.n_commits.get()
            && self.deliveries.borrow().is_empty()
            && self.underway.borrow().is_empty()
            && self.asked.borrow().is_empty()
            && parts.iter().all(is_settled)
    }

    /// Keeps the lease.
    async fn renew(&self) {
        loop {
            let sent = now();
            self.n_beats.set(self.n_beats.get() + 1);
            let document = self.document(Presence::Here);
            let was_idle = document.is_idle;
            match self.write_document(&document).await {
                Ok(()) => {
                    let terms = &self.config.terms;
                    let gap = sent.saturating_sub(self.renewed.get());
                    if gap > terms.lease / 2 {
                        // Whoever could not be heard is heard again first.
                        self.view.borrow_mut().doubt(now());
                    }
                    self.renewed.set(sent);
                    if gap > Duration::from_secs(1) {
                        let n_pages = self.shared.n_pages.load(Ordering::Relaxed);
                        self.measured.set((n_pages, sent));
                    }
                    let was_open = self.shared.fence.is_open();
                    self.shared.fence.open_until(terms.owner_stops(sent));
                    if !was_open {
                        self.shared.bell.notify_one();
                    }
                }
                Err(BusError::Conflict) => return self.fail(Ending::Fenced),
                Err(_) => {
                    // Servers that come back may have lost everything.
                    let _ = self.bus.prepare().await;
                    sleep(PAUSE).await;
                    continue;
                }
            }
            let wait = match was_idle {
                true => IDLE_BEAT.min(self.config.terms.renewal()),
                false => self.config.terms.renewal(),
            };
            let _ = timeout(wait, self.beat.notified()).await;
        }
    }

    /// Replaces the document of this agent. One that was stored without an answer counts.
    async fn write_document(&self, document: &AgentDocument) -> Result<(), BusError> {
        let key = Subject::Key(agent_key(self.id()));
        let bytes = document::write(document);
        let mut written = self
            .bus
            .append(&key, self.revision.get(), bytes.clone())
            .await;
        if written == Err(BusError::Conflict) {
            written = match self.bus.last(&key).await? {
                Some((revision, found)) => {
                    let found: Option<AgentDocument> = document::read(&found);
                    let is_ours = found.is_some_and(|found| found.presence == Presence::Here);
                    let revision = is_ours.then_some(revision).ok_or(BusError::Conflict)?;
                    self.bus.append(&key, revision, bytes).await
                }
                None => {
                    self.begin_again().await?;
                    self.bus.append(&key, 0, bytes).await
                }
            };
        }
        self.revision.set(written?);
        // Partitions of agents that nobody knows are free, so they come behind the agent.
        match self.is_lost.get() {
            true => self.restore_partitions().await,
            false => Ok(()),
        }
    }

    /// Begins the crawl again on servers that have lost everything. Agents that are not heard of
    /// since may own partitions, too.
    async fn begin_again(&self) -> Result<(), BusError> {
        self.is_lost.set(true);
        self.begun.set(now());
        *self.view.borrow_mut() = View::default();
        self.bus.look_again();
        let entered = enter(&self.bus, &self.config).await;
        entered.map_err(BusError::Unavailable)
    }

    /// Says again which partitions are here, and has their logs looked at.
    async fn restore_partitions(&self) -> Result<(), BusError> {
        for partition in 0..=u8::MAX {
            let (stage, epoch) = {
                let part = &self.parts.borrow()[usize::from(partition)];
                (part.stage, part.log.epoch)
            };
            if !matches!(stage, Stage::Open | Stage::Closing) {
                continue;
            }
            let document = OwnerDocument {
                owner: Some(self.id().to_owned()),
                epoch,
            };
            let key = Subject::Key(owner_key(partition));
            let last = self.bus.last(&key).await?;
            let is_there =
                |(_, bytes): &(u64, Vec<u8>)| document::read(bytes) == Some(document.clone());
            match last {
                Some(entry) if is_there(&entry) => {}
                // Another agent has been faster.
                Some(_) => return Err(BusError::Conflict),
                None => {
                    self.bus.append(&key, 0, document::write(&document)).await?;
                }
            }
        }
        self.is_lost.set(false);
        self.is_doubtful.set(true);
        Ok(())
    }

    /// Writes down what it sees of the others, for people.
    async fn show(&self) {
        loop {
            sleep(SHOW).await;
            self.copies.show(&ClusterStatus::of(&self.view.borrow()));
        }
    }

    /// Sees what others write.
    async fn watch(&self) {
        loop {
            let changes = self.bus.changes().await;
            let now = now();
            for (key, entry) in &changes {
                self.view.borrow_mut().take(key, entry, now);
            }
            self.tick.notify_one();
        }
    }
}
