//! The crawl: the loop that holds the parts together.
//!
//! ```text
//!  seeds ─► guard ─► seen? ─► journal + queues ─► workbench ─► fetcher ─► readers ─► archive
//!             ▲                                                              │
//!             └────────────────────────── links ◄────────────────────────────┘
//! ```
//!
//! One thread runs the loop, all requests and all queues, so none of them needs a lock; pages are
//! read on others, and files are read and written on others ([`background`]). What changes goes
//! through the journal, and a commit makes it last ([`files`]).
//!
//! Clock, network, names, the order of URLs and the owner of a host are arguments ([`Seams`]).

mod background;
mod believed;
mod dust;
mod files;
mod focused;
mod links;
mod listing;
mod live;
mod look;
mod outage;
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
    Status, archives, index_lines, is_crawl, is_running, queued_urls, standing, status,
};

use crate::archive::{Archive, Packed};
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
use recrawl::Recrawl;
use slots::Slots;

/// Stops a crawl from outside, and shows how it does.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    pause: AtomicBool,
    reload: AtomicBool,
    /// Milliseconds that the run may take; 0 for as long as the settings say.
    millis: AtomicU64,
    wake: Notify,
    /// What there is to tell; held to add or take.
    messages: Mutex<Vec<String>>,
    /// Held for a copy only.
    snapshot: Mutex<Snapshot>,
}

impl Control {
    /// Asks the crawl to finish what is in flight and to leave a state that can be resumed.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Sends no further requests until told otherwise.
    pub fn pause(&self, is_paused: bool) {
        self.pause.store(is_paused, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Has the crawl read the settings in its directory again.
    pub fn reload(&self) {
        self.reload.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Limits how long this run may take, whatever the settings say. What is in flight at the end
    /// gets a few seconds.
    pub fn end_after(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self.millis.store(millis.max(1), Ordering::Relaxed);
    }

    /// What the crawl had to tell since this was asked last.
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

    /// How long the run may take, if that is limited here.
    fn duration(&self) -> Option<Duration> {
        let millis = self.millis.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// The state of the crawl, as of the last second.
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

/// A crawl at a moment.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Counters, earlier runs included.
    pub counters: Counters,
    /// URLs that wait.
    pub n_queued: u64,
    /// Hosts met.
    pub n_hosts: u64,
    /// Requests under way.
    pub n_in_flight: usize,
    /// Whether it was told to pause.
    pub is_paused: bool,
    /// Requests that may be under way.
    pub limit: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Since this run began.
    pub elapsed: Duration,
    /// Pages fetched in this run.
    pub n_fetched: u64,
    /// How long the turns of the loop took in this run.
    pub turns: Turns,
    /// The sites that are trusted most, and what they get of the crawl.
    pub sites: Vec<SiteStanding>,
    /// The sites with the most pages of low quality in this run.
    pub poor_sites: Vec<SiteQuality>,
    /// Pages that a site gets with full priority for as much trust as a seed has, by now.
    pub pages_for_trust: f64,
    /// The URLs with the highest priority among hosts that may be asked, the first one first.
    pub next: Vec<Standing>,
    /// What is believed of pages; none if they are not visited again.
    pub freshness: Option<Freshness>,
    /// The state of a crawl that looks for a topic; none if it has none.
    pub topic: Option<Topic>,
    /// URLs that rules defer.
    pub n_deferred: u64,
    /// Rules that do so.
    pub n_active_rules: u64,
    /// The URL rules that matter most.
    pub url_rules: Vec<UrlRule>,
}

/// How a crawl ended.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Counters, earlier runs included.
    pub counters: Counters,
    /// Why it ended.
    pub end: End,
    /// URLs that still wait.
    pub n_queued: u64,
    /// Of these: lost for now, because no try got a response.
    pub n_lost: u64,
    /// Of these: put aside, because their directories gave nothing new.
    pub n_aside: u64,
    /// URLs that rules defer, beside those that wait.
    pub n_deferred: u64,
    /// Hosts where URLs wait because their site, or the host itself, has had all its pages.
    pub n_full_hosts: u64,
    /// Seeds of this run that cannot be crawled, the first few.
    pub bad_seeds: Vec<BadSeed>,
    /// Seeds of this run that were met before.
    pub n_known_seeds: u64,
    /// Hosts met.
    pub n_hosts: u64,
    /// Of this run.
    pub elapsed: Duration,
    /// Answers in this run.
    pub n_fetched: u64,
    /// How long the turns of the loop took in this run.
    pub turns: Turns,
}

/// Why a crawl ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Nothing waits any more.
    Done,
    /// It was asked to stop.
    Stopped,
    /// A limit of the settings was reached.
    Limit,
    /// What is left waits for longer than the settings allow, or its sites have had all their
    /// pages.
    Waiting,
}

/// Where a crawl starts.
#[derive(Debug, Clone, Default)]
pub struct Seeds {
    /// URLs of pages.
    pub pages: Vec<String>,
    /// URLs of sitemaps, whose pages are seeds too.
    pub sitemaps: Vec<String>,
}

/// Crawls into a folder, with the real world outside: the whole of it, from opening to closing. A
/// crawl that is there goes on, with further seeds if there are any.
///
/// # Errors
///
/// If the settings cannot be used or the folder cannot be read or written. What was fetched before
/// is kept, and the crawl can be resumed.
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

/// Asks again for the URLs that are lost for now, and for nothing else: links that are found wait
/// for the next run.
///
/// # Errors
///
/// As [`crawl`].
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

/// Asks the system for as many open files as it gives, and stays below that.
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
    // Some are for the crawl's own files and for names.
    let most = most.saturating_sub(200).max(16);
    let fetch = &mut settings.fetch;
    // There may be as many slow requests as others.
    fetch.in_flight = fetch.in_flight.min(most / 3);
    fetch.idle_connections = fetch.idle_connections.min(most - 2 * fetch.in_flight);
}

/// A crawl that is open. Runs inside a [`tokio::task::LocalSet`].
pub struct Crawl {
    folder: PathBuf,
    shared: Arc<Shared>,
    seams: Rc<Seams>,
    start: Instant,
    frontier: Frontier,
    names: Names,
    /// What happened, on its way to the file.
    journal: Draft,
    counters: Counters,
    fetcher: Rc<Fetchers>,
    idle: Idle,
    load: Load,
    statistics: Statistics,
    /// Lines of the log, and hosts whose URLs get lines, since the last commit.
    lines: String,
    given_up: Vec<GivenUp>,
    slowest: Slowest,
    workers: Workers,
    /// The first of the seeds that cannot be crawled.
    bad_seeds: Vec<BadSeed>,
    /// Links of pages read lately, to be asked for in one go, each page behind its links.
    found: Vec<Item>,
    /// Pages that wait for the answers to their links.
    n_reported: usize,
    /// How many URLs had been new when the last answer was given.
    n_new: u64,
    /// Hosts that wait for something else than their turn.
    later: BinaryHeap<Reverse<(Duration, HostId)>>,
    /// The URLs that are being fetched or read.
    open: HashMap<Ticket, Turn>,
    n_tickets: Ticket,
    n_in_flight: usize,
    is_paused: bool,
    /// Pages fetched of hosts whose number is limited, by name.
    n_host_pages: HashMap<String, u64>,
    slots: Slots,
    turns: Turns,
    /// Time that the loop was late by.
    stalled: Duration,
    outage: Outage,
    n_fetched: u64,
    recrawl: Recrawl,
    /// What the crawl looks for.
    topic: Option<Box<focused::Focusing>>,
    dust: Dust,
    /// Pages that somebody asked for and that are looked for.
    ordered: Option<refresh::Ordered>,
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

/// A link that was found and approved.
#[derive(Debug)]
struct Pending {
    found: Found,
    depth: u32,
    n_redirects: u8,
    /// The host it was found on, and the page.
    from: Option<HostId>,
    found_on: Arc<str>,
    /// Whether it goes last.
    is_last: bool,
    /// What it brings to the page it leads to.
    gift: Gift,
    /// Whether the page was fetched before that it was found on.
    is_again: bool,
    /// What it has from that page where the crawl has a topic.
    parent: focused::Parent,
    /// What URL rules have to do with it.
    mark: Option<Box<dust::Mark>>,
}

impl Pending {
    /// Whether somebody named it to begin with.
    fn is_seed(&self) -> bool {
        self.from.is_none() && self.depth == 0
    }
}

/// What the links that were found are asked for with.
#[derive(Debug)]
enum Item {
    /// A link.
    Link(Pending),
    /// The page whose links came before: it is done when these are queued.
    Page(Box<Reported>),
    /// The robots.txt whose sitemaps came before: it counts in the next run when these are queued.
    Rules {
        host: HostId,
        date: u64,
        text: Box<str>,
    },
}

impl Item {
    /// About how much memory it takes.
    fn n_bytes(&self) -> usize {
        let own = match self {
            Self::Link(pending) => pending.found.url.as_str().len(),
            Self::Page(page) => page.report.record.n_bytes(),
            Self::Rules { text, .. } => text.len(),
        };
        own + size_of::<Self>()
    }
}

/// A page that was read.
#[derive(Debug)]
struct Reported {
    report: Report,
    /// Links that lead to hosts of other crawlers, and redirects beyond those that are followed.
    refused: [u64; 2],
}

/// What a task brings back.
#[derive(Debug)]
enum Arrived {
    Response(Box<Completed>),
    Address(Box<str>, Result<resolve::Addresses, NoAddress>),
}

/// A request that has ended.
#[derive(Debug)]
struct Completed {
    host: HostId,
    address: IpAddr,
    asked: Asked,
    /// When it was sent, since the start of the crawl.
    since: Duration,
    /// Time that the loop had been late by until then.
    stalled: Duration,
    result: Result<Response, Failure>,
    connection: Option<Connection>,
}

/// What a request was for.
#[derive(Debug)]
enum Asked {
    Robots(RobotsJob),
    Page(Box<Page>),
}

/// A URL in flight.
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
    /// What is known of it by its links.
    weight: Weight,
    /// The page that it was found on.
    found_on: Box<str>,
    /// The version that was there before, and how to ask for another one.
    revisit: Option<Box<Revisit>>,
    condition: Option<(&'static str, Box<str>)>,
}

impl Crawl {
    /// Time since this run began; it never jumps.
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// As [`Self::now`], without the time that the loop was late by: how long hosts take is told by
    /// this one.
    fn working_time(&self) -> Duration {
        self.now().saturating_sub(self.stalled)
    }

    fn settings(&self) -> &Settings {
        &self.shared.settings
    }
}
