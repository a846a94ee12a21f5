//! The crawl: the loop that holds the parts together.
//!
//! ```text
//!  seeds ─► guard ─► seen? ─► journal + queues ─► workbench ─► fetcher ─► readers ─► archive
//!             ▲                                                              │
//!             └────────────────────────── links ◄────────────────────────────┘
//! ```
//!
//! One thread runs the loop with all requests and all queues, so none of them needs a lock. Other
//! threads parse pages, and read and write files ([`background`]). Changes go through the journal,
//! and a commit makes them durable ([`files`]).
//!
//! Clock, network, DNS, the order of URLs and the ownership of hosts are arguments ([`Seams`]).

mod background;
mod believed;
mod dust;
mod files;
mod focused;
mod join;
mod links;
mod listing;
mod live;
mod look;
mod member;
mod outage;
mod recalled;
mod recrawl;
mod refresh;
mod repair;
mod replay;
mod report;
mod response;
mod restore;
mod robots;
mod rule_lines;
mod rule_orders;
mod run;
mod seams;
mod sitemaps;
mod slots;
mod start;
mod store;
mod turn;
mod versions;
mod visited;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

pub use repair::{Repaired, repair};

pub use join::{Cluster, Servers, join};
pub use live::{is_paused, pause, reload, resume};

pub use believed::Freshness;

pub use dust::UrlRule;
pub use focused::Topic;

pub use rule_orders::{order_rules, url_rules};

pub use listing::{GonePages, PageInfo, Plan, gone_pages, page_state, pages, plan};

pub use refresh::{Refresh, refresh};

pub use versions::{PageVersion, versions};

pub use seams::{Priority, Seams};

pub use start::{BadSeed, kept_settings};

pub use look::{
    Status, agents, archives, index_lines, is_crawl, is_running, queued_urls, standing, status,
};

use crate::archive::{ArchiveWriter, Packed};
use crate::counters::Counters;
use crate::error::Error;
use crate::fetch::{Connection, Failure, Fetchers, Idle, Response};
use crate::frontier::{Frontier, RobotsJob, SiteQuality, SiteStanding, Standing, Turn};
use crate::journal::{Draft, HostId, Journal, Kind, Place};
use crate::load::Load;
use crate::names::Names;
use crate::order::{Gift, Weight};
use crate::page::{Found, Report, Shared, Ticket};
use crate::pages::Revisit;
use crate::resolve::{self, NoAddress};
use crate::scope::Seeded;
use crate::seen::Seen;
use crate::settings::Settings;
use crate::statistics::{Slowest, Statistics};
use crate::turns::Turns;
use crate::url::NormalUrl;
use crate::workers::Workers;
use background::Background;
use dust::Dust;
use files::GivenUp;
use outage::Outage;
use recrawl::RecrawlState;
use slots::Slots;

/// Controls a running crawl from outside, and shows its state.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    pause: AtomicBool,
    reload: AtomicBool,
    /// Maximum duration of the run in milliseconds; 0 to use the settings.
    millis: AtomicU64,
    wake: Notify,
    /// Messages not taken yet; locked only to add or take.
    messages: Mutex<Vec<String>>,
    /// Locked only to copy.
    snapshot: Mutex<Snapshot>,
}

impl Control {
    /// Tells the crawl to finish open requests and to leave a state that can be resumed.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Pauses the crawl, so that it sends no further requests, or lets it continue.
    pub fn pause(&self, is_paused: bool) {
        self.pause.store(is_paused, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Tells the crawl to read the settings in its directory again.
    pub fn reload(&self) {
        self.reload.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Limits the duration of this run, whatever the settings say. Requests still open at the end
    /// get a few seconds.
    pub fn end_after(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.millis.store(millis.max(1), Ordering::Relaxed);
    }

    /// Returns the messages of the crawl since the last call.
    #[must_use]
    pub fn take_messages(&self) -> Vec<String> {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *messages)
    }

    fn say(&self, message: String) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(message);
    }

    fn is_paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed)
    }

    fn takes_reload(&self) -> bool {
        self.reload.swap(false, Ordering::Relaxed)
    }

    /// Returns the maximum duration of the run, if it is limited here.
    fn duration(&self) -> Option<Duration> {
        let millis = self.millis.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Returns the state of the crawl as of the last second.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.snapshot
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn show(&self, snapshot: Snapshot) {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

/// The state of a crawl at a moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Counters of all runs.
    pub counters: Counters,
    /// Number of queued URLs.
    pub n_queued: u64,
    /// Number of hosts met.
    pub n_hosts: u64,
    /// Number of open requests.
    pub n_in_flight: usize,
    /// Whether the crawl is paused.
    pub is_paused: bool,
    /// Maximum number of open requests.
    pub limit: usize,
    /// Memory use in bytes.
    pub memory: u64,
    /// Duration of this run.
    pub elapsed: Duration,
    /// Number of pages fetched in this run.
    pub n_fetched: u64,
    /// Durations of the turns of the loop in this run.
    pub turns: Turns,
    /// The sites with the most trust, and their shares of the crawl.
    pub sites: Vec<SiteStanding>,
    /// The sites with the most pages of low quality in this run.
    pub poor_sites: Vec<SiteQuality>,
    /// Number of pages that a site currently gets with full priority, per trust of one seed.
    pub pages_for_trust: f64,
    /// The URLs with the highest priority among hosts that may receive a request, highest first.
    pub next: Vec<Standing>,
    /// The estimated freshness of pages; `None` if pages are not visited again.
    pub freshness: Option<Freshness>,
    /// The state of the topic; `None` if the crawl has none.
    pub topic: Option<Topic>,
    /// Number of URLs deferred by rules.
    pub n_deferred: u64,
    /// Number of rules that defer URLs.
    pub n_active_rules: u64,
    /// The most important URL rules.
    pub url_rules: Vec<UrlRule>,
}

/// How a crawl ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Counters of all runs.
    pub counters: Counters,
    /// The counters when this run began.
    pub before: Counters,
    /// Why it ended.
    pub end: End,
    /// The limit that ended it, if one did.
    pub limit: Option<Limit>,
    /// URLs that still wait.
    pub n_queued: u64,
    /// Of these: lost for now, because no attempt got a response.
    pub n_lost: u64,
    /// Of these: put aside, because their directories yielded nothing new.
    pub n_aside: u64,
    /// Number of URLs deferred by rules, in addition to the queued ones.
    pub n_deferred: u64,
    /// Number of hosts with queued URLs whose site, or the host itself, has reached its maximum
    /// number of pages.
    pub n_full_hosts: u64,
    /// Hosts where URLs wait because robots.txt requires a longer delay than the settings accept.
    pub n_deferred_hosts: u64,
    /// Seeds of this run that cannot be crawled, the first few.
    pub bad_seeds: Vec<BadSeed>,
    /// Number of seeds of this run that were met before.
    pub n_known_seeds: u64,
    /// Number of hosts met.
    pub n_hosts: u64,
    /// Duration of this run.
    pub elapsed: Duration,
    /// Number of responses in this run.
    pub n_fetched: u64,
    /// Durations of the turns of the loop in this run.
    pub turns: Turns,
}

/// Why a crawl ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing is queued any more.
    Done,
    /// It was told to stop.
    Stopped,
    /// A limit of the settings was reached.
    Limit,
    /// The remaining URLs must wait longer than the settings allow, or their sites have reached
    /// their maximum number of pages.
    Waiting,
}

/// A limit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Pages, of all runs.
    Pages,
    /// Bytes received, in all runs.
    Bytes,
    /// The time that the run may take.
    Time,
    /// How long this machine may be without network.
    Outage,
}

/// Where a crawl starts.
#[derive(Debug, Clone, Default)]
pub struct Seeds {
    /// URLs of pages.
    pub pages: Vec<String>,
    /// URLs of sitemaps, whose pages are seeds too.
    pub sitemaps: Vec<String>,
}

/// Crawls the real web into a directory, from opening to closing. Resumes an existing crawl, with
/// further seeds if there are any.
///
/// # Errors
///
/// If the settings are invalid or the directory cannot be read or written. Fetched pages are kept,
/// and the crawl can be resumed.
pub fn crawl(
    folder: &Path,
    mut settings: Settings,
    seeds: Seeds,
    control: &Control,
) -> Result<Summary, Error> {
    allow_files(&mut settings);
    block_on(async {
        let seams = match start::is_local(folder, &seeds, &settings)? {
            true => Seams::local(),
            false => Seams::real(&settings)?,
        };
        let mut crawl = start::start(folder, settings, seams, seeds)?;
        crawl.run(control).await
    })
}

/// Requests only the URLs that are lost for now. Links found meanwhile stay queued for the next
/// run.
///
/// # Errors
///
/// Those of [`crawl`].
pub fn retry(folder: &Path, mut settings: Settings, control: &Control) -> Result<Summary, Error> {
    allow_files(&mut settings);
    block_on(async {
        let seams = match start::is_local(folder, &Seeds::default(), &settings)? {
            true => Seams::local(),
            false => Seams::real(&settings)?,
        };
        start::limit_scope(folder, &mut settings, &Seeded::read(folder)?)?;
        let mut crawl = Crawl::open_lost(folder, settings, seams)?;
        crawl.run(control).await
    })
}

fn block_on(run: impl Future<Output = Result<Summary, Error>>) -> Result<Summary, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Error::Settings(format!("no event loop: {error}")))?;
    tokio::task::LocalSet::new().block_on(&runtime, run)
}

/// Raises the limit of open files as far as the system allows, and stays below it.
fn allow_files(settings: &mut Settings) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let most = current.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    });
    // The crawl's own files and DNS lookups need some.
    let most = most.saturating_sub(200).max(16);
    let fetch = &mut settings.fetch;
    // There may be as many slow requests as others.
    fetch.in_flight = fetch.in_flight.min(most / 3);
    fetch.idle_connections = fetch.idle_connections.min(most - 2 * fetch.in_flight);
}

/// An open crawl. Runs inside a [`tokio::task::LocalSet`].
pub struct Crawl {
    folder: PathBuf,
    shared: Arc<Shared>,
    seams: Rc<Seams>,
    start: Instant,
    frontier: Frontier,
    names: Names,
    /// Events on their way to the file.
    journal: Draft,
    counters: Counters,
    /// The counters when this run began.
    before: Counters,
    /// The limit that ends this run, once one is reached.
    limit: Option<Limit>,
    fetcher: Rc<Fetchers>,
    idle: Idle,
    load: Load,
    statistics: Statistics,
    /// Lines of the log, and hosts whose URLs get lines, since the last commit.
    lines: String,
    given_up: Vec<GivenUp>,
    slowest: Slowest,
    workers: Workers,
    /// The first seeds that cannot be crawled.
    bad_seeds: Vec<BadSeed>,
    /// Links of recently parsed pages, to be looked up together; each page comes after its links.
    found: Vec<Item>,
    /// Number of pages whose links are being looked up.
    n_reported: usize,
    /// Number of new URLs at the last reply.
    n_new: u64,
    /// Hosts that wait for something other than their turn.
    later: BinaryHeap<Reverse<(Duration, HostId)>>,
    /// The URLs that are being fetched or parsed.
    open: HashMap<Ticket, Turn>,
    n_tickets: Ticket,
    n_in_flight: usize,
    is_paused: bool,
    /// Number of pages fetched, by name, of hosts for which it is limited.
    n_host_pages: HashMap<String, u64>,
    slots: Slots,
    turns: Turns,
    /// Total delay of the loop.
    stalled: Duration,
    outage: Outage,
    n_fetched: u64,
    recrawl: RecrawlState,
    /// The topic of the crawl.
    topic: Option<Box<focused::Focusing>>,
    dust: Dust,
    /// Pages that a user requested and that are being looked up.
    ordered: Option<refresh::Ordered>,
    /// What it does for other agents, if it is one of several.
    member: Option<Box<member::Member>>,
    n_known_seeds: u64,
    committed: Duration,
    synced: Duration,
    sent: mpsc::Sender<Arrived>,
    arrived: mpsc::Receiver<Arrived>,
    background: Background,
    _lock: arose_dedup::disk::Lock,
}

impl std::fmt::Debug for Crawl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crawl")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

/// An approved link.
#[derive(Debug)]
struct Pending {
    found: Found,
    depth: u32,
    n_redirects: u8,
    /// The host on which it was found, and the page.
    from: Option<HostId>,
    found_on: Arc<str>,
    /// Whether it goes last.
    is_last: bool,
    /// Whether the page on which it was found repeats others.
    of_repeat: bool,
    /// Its contribution to the page it leads to.
    gift: Gift,
    /// Whether the page on which it was found had been fetched before.
    is_again: bool,
    /// The data that it takes from that page, if the crawl has a topic.
    parent: focused::Parent,
    /// Why URL rules are involved, if they are.
    mark: Option<Box<dust::Mark>>,
}

impl Pending {
    /// Whether a user passed it.
    fn is_seed(&self) -> bool {
        self.from.is_none() && self.depth == 0 && self.found_on.is_empty()
    }

    /// Whether it leads to the host on which it was found, and is neither requested for learning
    /// nor covered by a URL rule.
    fn is_further(&self) -> bool {
        self.mark.is_none() && self.found_on.starts_with(self.found.url.origin())
    }
}

/// An item to be looked up or completed, in order.
#[derive(Debug)]
enum Item {
    /// A link.
    Link(Pending),
    /// The page of the preceding links: it is done when these are queued.
    Page(Box<Reported>),
    /// The robots.txt of the preceding sitemaps: its rules are kept for the next run when these are
    /// queued.
    Rules {
        host: HostId,
        date: u64,
        text: Box<str>,
    },
    /// Something that another agent has found or handed over.
    Moved(member::Moved),
}

impl Item {
    /// Returns its approximate size in memory.
    fn n_bytes(&self) -> usize {
        let own = match self {
            Self::Link(pending) => pending.found.url.as_str().len(),
            Self::Page(page) => page.report.record.n_bytes(),
            Self::Rules { text, .. } => text.len(),
            Self::Moved(_) => 0,
        };
        own + size_of::<Self>()
    }
}

/// A parsed page.
#[derive(Debug)]
struct Reported {
    report: Report,
    /// Number of links that lead to hosts of other crawlers, and of redirects beyond the maximum.
    refused: [u64; 2],
}

/// The result of a task.
#[derive(Debug)]
enum Arrived {
    Response(Box<Completed>),
    Address(Box<str>, Result<resolve::Addresses, NoAddress>),
}

/// A completed request.
#[derive(Debug)]
struct Completed {
    host: HostId,
    address: IpAddr,
    asked: Asked,
    /// When it was sent, relative to the start of the crawl.
    since: Duration,
    /// Total delay of the loop until then.
    stalled: Duration,
    result: Result<Response, Failure>,
    connection: Option<Connection>,
}

/// The purpose of a request.
#[derive(Debug)]
enum Asked {
    Robots(RobotsJob),
    Page(Box<Page>),
}

/// A URL being requested.
#[derive(Debug)]
struct Page {
    ticket: Ticket,
    n_tries: u8,
    url: NormalUrl,
    kind: Kind,
    depth: u32,
    n_redirects: u8,
    /// Whether it was queued to go last.
    is_last: bool,
    /// Whether it was found on a page that repeats others.
    of_repeat: bool,
    /// The mass and trust from its links.
    weight: Weight,
    /// The page on which it was found.
    found_on: Box<str>,
    /// The earlier version, if the page was fetched before.
    revisit: Option<Box<Revisit>>,
    condition: Option<(&'static str, Box<str>)>,
}

impl Crawl {
    /// Returns the time since this run began; it never jumps.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Like [`Self::now`], without the delay of the loop: the response times of hosts are measured
    /// in this time.
    fn working_time(&self) -> Duration {
        self.now().saturating_sub(self.stalled)
    }

    fn settings(&self) -> &Settings {
        &self.shared.settings
    }
}
