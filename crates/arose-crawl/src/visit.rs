//! Visits: fetches single pages on demand, as politely as a crawl.
//!
//! *Question.* A random walk needs one page now and, once it has seen the links, another. A crawl
//! chooses the next page itself. How can a page be fetched on demand without being impolite?
//!
//! *Idea.* Each host has a gate. A request waits until the previous one is complete and the delay
//! required by the settings, robots.txt or the server has passed; the same applies to each IP
//! address. robots.txt is fetched first. Responses are parsed as in a crawl, so scope, limits,
//! `nofollow` and the normalization of URLs are the same. Redirects are returned, not followed.
//! Nothing is stored.
//!
//! *Parameters.* [`Settings`], of which queues, shares of sites, duplicates and archives have no
//! effect here; a maximum number of requests, robots.txt included. *Cost.* Each host is kept in
//! memory with its rules. *Not for* many pages: use a crawl.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::contain::{contain, contain_async};
use crate::crawl::Seams;
use crate::error::Error;
use crate::fetch::{Connection, Failure, Http, Request, Response};
use crate::guard::{Candidate, Reason};
use crate::journal::Kind;
use crate::names::{MAX_TTL, MIN_TTL};
use crate::order::Weight;
use crate::pace::{Pace, is_busy, opens_in};
use crate::page::{Job, Reader, Shared};
use crate::resolve::NoAddress;
use crate::robots::{self, Robots, TimeOfDay};
use crate::settings::{Settings, seconds};
use crate::url::{NormalUrl, Url};

/// The result of a visit to a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visit {
    /// A page, with the links in scope on it, each once.
    Page(Vec<NormalUrl>),
    /// A redirect to this URL.
    Redirect(NormalUrl),
    /// A response without a page, for this reason.
    Nothing(String),
    /// robots.txt disallows the URL.
    Disallowed,
    /// Unknown: there was no response, for this reason.
    Missing(String),
    /// Unknown: the maximum number of requests was reached.
    Unasked,
}

/// The body of a URL, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Download {
    /// A body without its content codings.
    Body(Body),
    /// A response without a page, for this reason.
    Nothing(String),
    /// robots.txt disallows the URL.
    Disallowed,
    /// Unknown: there was no response, for this reason.
    Missing(String),
    /// Unknown: the maximum number of requests was reached.
    Unasked,
}

/// The body of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The URL of the response, after redirects.
    pub url: NormalUrl,
    /// Its content type, as the server states it.
    pub content_type: Option<String>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Maximum number of redirects of a download.
const MAX_REDIRECTS: usize = 5;

/// Fetches pages on demand, a few of them at once per call.
pub struct Visits {
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
    visitor: Rc<Visitor>,
}

impl std::fmt::Debug for Visits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_requests = self.n_requests();
        f.debug_struct("Visits")
            .field("n_requests", &n_requests)
            .finish_non_exhaustive()
    }
}

impl Visits {
    /// Opens visits to the real web, with a maximum number of requests.
    ///
    /// # Errors
    ///
    /// If the settings are invalid, or have no contact and would lead beyond loopback.
    pub fn open(settings: Settings, max_requests: u64) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime =
            runtime.map_err(|error| Error::Settings(format!("no event loop: {error}")))?;
        let local = LocalSet::new();
        let visitor = local.block_on(&runtime, async {
            let seams = Seams::real(&settings)?;
            Visitor::new(settings, seams, max_requests)
        })?;
        Ok(Self {
            runtime,
            local,
            visitor: Rc::new(visitor),
        })
    }

    /// Visits these URLs. Requests to different hosts run at the same time.
    #[must_use]
    pub fn visit(&self, urls: &[String]) -> Vec<Visit> {
        let visitor = Rc::clone(&self.visitor);
        self.local.block_on(&self.runtime, visit_all(visitor, urls))
    }

    /// Returns the body of one URL, after redirects within the scope. Each URL on the way is
    /// fetched under the rules of its own host.
    #[must_use]
    pub fn download(&self, url: &str) -> Download {
        let download = self.visitor.download(url);
        self.local.block_on(&self.runtime, download)
    }

    /// Sets the maximum number of further requests.
    pub fn allow(&self, n_further: u64) {
        let max_requests = self.n_requests().saturating_add(n_further);
        self.visitor.max_requests.set(max_requests);
    }

    /// Returns the number of requests so far, robots.txt included.
    #[must_use]
    pub fn n_requests(&self) -> u64 {
        self.visitor.n_requests.get()
    }
}

async fn visit_all(visitor: Rc<Visitor>, urls: &[String]) -> Vec<Visit> {
    let mut tasks = JoinSet::new();
    for (place, url) in urls.iter().cloned().enumerate() {
        let visitor = Rc::clone(&visitor);
        tasks.spawn_local(async move { (place, visitor.visit(&url).await) });
    }
    let mut visits = vec![Visit::Missing("it could not be read".to_owned()); urls.len()];
    while let Some(done) = tasks.join_next().await {
        if let Ok((place, visit)) = done {
            visits[place] = visit;
        }
    }
    visits
}

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum No {
    /// The maximum number of requests was reached.
    Budget,
    Failed(Failure),
    /// No request is sent, for this reason.
    NotAsked(&'static str),
}

/// Hosts and IP addresses, and the time of the next request to each.
struct Visitor {
    shared: Arc<Shared>,
    seams: Seams,
    fetcher: Http,
    reader: RefCell<Reader>,
    hosts: RefCell<HashMap<Box<str>, Rc<VisitedHost>>>,
    /// The earliest time of the next request to each IP address; locked during a request.
    turns: RefCell<HashMap<IpAddr, Rc<Mutex<Instant>>>>,
    n_requests: Cell<u64>,
    max_requests: Cell<u64>,
}

/// Scheme, name and port. Of the two locks, `rules` is taken first.
struct VisitedHost {
    /// The rules and when they expire; `None` inside if they are not available. Locked while
    /// robots.txt is fetched.
    rules: Mutex<Option<(Option<Rc<Robots>>, Instant)>>,
    /// Locked during a request.
    gate: Mutex<Gate>,
}

/// The earliest time of the next request to a host, and its IP addresses.
struct Gate {
    addresses: Vec<IpAddr>,
    /// When the IP addresses expire.
    expires: Instant,
    /// When the last request ended.
    ended: Instant,
    /// The earliest time of the next request.
    next: Instant,
    pace: Pace,
    kept: Option<Connection>,
}

impl Visitor {
    fn new(mut settings: Settings, seams: Seams, max_requests: u64) -> Result<Self, Error> {
        settings.duplicates.check = false;
        let fetcher = Http::new(&settings, Rc::clone(&seams.connector))?;
        let shared = Arc::new(Shared::new(settings, None)?);
        Ok(Self {
            reader: RefCell::new(Reader::of_each(Arc::clone(&shared))),
            shared,
            seams,
            fetcher,
            hosts: RefCell::default(),
            turns: RefCell::default(),
            n_requests: Cell::new(0),
            max_requests: Cell::new(max_requests),
        })
    }

    fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    async fn visit(&self, text: &str) -> Visit {
        let url = match self.approve(text, None) {
            Ok(url) => url,
            Err(reason) => return Visit::Nothing(reason.to_string()),
        };
        match self.look(&url).await {
            Ok(visit) => visit,
            Err(No::Budget) => Visit::Unasked,
            Err(No::Failed(failure)) => Visit::Missing(failure.as_str().to_owned()),
            Err(No::NotAsked(reason)) => Visit::Missing(reason.to_owned()),
        }
    }

    async fn download(&self, text: &str) -> Download {
        let (mut text, mut base) = (text.to_owned(), None);
        for _ in 0..=MAX_REDIRECTS {
            let url = match self.approve(&text, base.as_ref()) {
                Ok(url) => url,
                Err(reason) => return Download::Nothing(reason.to_string()),
            };
            let response = match self.response(&url).await {
                Ok(Some(response)) => response,
                Ok(None) => return Download::Disallowed,
                Err(No::Budget) => return Download::Unasked,
                Err(No::Failed(failure)) => return Download::Missing(failure.as_str().to_owned()),
                Err(No::NotAsked(reason)) => return Download::Missing(reason.to_owned()),
            };
            if is_busy(&response) {
                return Download::Missing("busy".to_owned());
            }
            let head = response.message.head();
            let field = |name: &str| Some(head?.get(name)?.to_owned());
            match (head.map_or(0, |head| head.status), field("location")) {
                (200..=299, _) => {
                    let body = contain(|| self.reader.borrow().body(&response.message));
                    return match body.flatten() {
                        Some(bytes) => Download::Body(Body {
                            content_type: field("content-type"),
                            bytes,
                            url,
                        }),
                        None => Download::Nothing("its body cannot be decoded".to_owned()),
                    };
                }
                (300..=399, Some(location)) => {
                    base = Url::parse(url.as_str()).ok();
                    text = location;
                }
                (status, _) => return Download::Nothing(format!("status {status}")),
            }
        }
        Download::Nothing("too many redirects".to_owned())
    }

    fn approve(&self, text: &str, base: Option<&Url>) -> Result<NormalUrl, Reason> {
        let url = self.shared.normalize(text, base)?;
        let candidate = Candidate {
            url: &url,
            link_depth: 0,
            robots: None,
        };
        self.shared.guard.approve(&candidate)?;
        Ok(url)
    }

    async fn look(&self, url: &NormalUrl) -> Result<Visit, No> {
        Ok(match self.response(url).await? {
            Some(response) => self.read(url, response),
            None => Visit::Disallowed,
        })
    }

    /// Returns the response of a URL; `None` if robots.txt disallows it.
    async fn response(&self, url: &NormalUrl) -> Result<Option<Response>, No> {
        let robots = self.rules(url).await?;
        if !robots.verdict(url).allowed {
            return Ok(None);
        }
        let date = (self.seams.clock)().as_secs();
        if let Some(wait) = opens_in(&robots, date) {
            if wait > self.patience() {
                return Err(No::NotAsked("closed at this hour"));
            }
            sleep(wait).await;
        }
        let delay = robots.delay(TimeOfDay::from_unix(date));
        if delay > seconds(self.settings().polite.defer_above) {
            return Err(No::NotAsked("robots.txt requires too long a delay"));
        }
        self.ask(url, delay).await.map(Some)
    }

    /// Returns the longest wait for a host.
    fn patience(&self) -> Duration {
        let settings = self.settings();
        seconds(settings.stop.patience.max(settings.polite.defer_above))
    }

    fn read(&self, url: &NormalUrl, response: Response) -> Visit {
        if is_busy(&response) {
            return Visit::Missing("busy".to_owned());
        }
        let job = Job {
            host: 0,
            ticket: Some(0),
            url: url.clone(),
            kind: Kind::Page,
            depth: 0,
            n_redirects: 0,
            is_last: false,
            of_repeat: false,
            weight: Weight::default(),
            found_on: "".into(),
            took: Duration::ZERO,
            message: response.message,
            date: 0,
            address: Ipv4Addr::UNSPECIFIED.into(),
            revisit: None,
        };
        let report = self.reader.borrow_mut().look(&job, "");
        if report.is_unread {
            return Visit::Missing(Failure::Unreadable.as_str().to_owned());
        }
        let mut links = report.links.into_iter().map(|found| found.url);
        match report.status {
            200..=299 if report.is_page => {
                let mut met = BTreeSet::new();
                let is_new = |link: &NormalUrl| link != url && met.insert(link.clone());
                Visit::Page(links.filter(is_new).collect())
            }
            200..=299 => Visit::Nothing("no page".to_owned()),
            300..=399 => match links.next() {
                Some(target) => Visit::Redirect(target),
                None => Visit::Nothing("a redirect out of scope".to_owned()),
            },
            status => Visit::Nothing(format!("status {status}")),
        }
    }

    /// Returns the rules of the host of a URL.
    async fn rules(&self, url: &NormalUrl) -> Result<Rc<Robots>, No> {
        let host = self.host(url);
        let mut rules = host.rules.lock().await;
        let known = rules.as_ref().filter(|(_, until)| Instant::now() < *until);
        let robots = match known {
            Some((robots, _)) => robots.clone(),
            None => {
                let robots = self.robots(url).await?;
                *rules = Some((robots.clone(), Instant::now() + robots::MAX_AGE));
                self.set_asked_delay(&host, robots.as_deref()).await;
                robots
            }
        };
        robots.ok_or(No::NotAsked("robots.txt is not available"))
    }

    /// Stores the delay that robots.txt requires, which applies to every later request to the host.
    async fn set_asked_delay(&self, host: &VisitedHost, robots: Option<&Robots>) {
        let now = TimeOfDay::from_unix((self.seams.clock)().as_secs());
        let delay = robots.map_or(Duration::ZERO, |robots| robots.delay(now));
        host.gate.lock().await.pace.asked_delay = delay;
    }

    /// Fetches robots.txt, following redirects; `None` if it is not available.
    async fn robots(&self, url: &NormalUrl) -> Result<Option<Rc<Robots>>, No> {
        let agent = &self.settings().agent.name;
        let known = |outcome: robots::Outcome<'_>| {
            let robots = contain(|| Robots::from_outcome(outcome, agent, Duration::ZERO));
            robots.filter(|_| !outcome.is_unreachable()).map(Rc::new)
        };
        let Some(mut file) = NormalUrl::from_parts(url.origin(), "/robots.txt") else {
            return Ok(None);
        };
        for _ in 0..=robots::MAX_REDIRECTS {
            let place = file;
            let response = match self.ask(&place, Duration::ZERO).await {
                Ok(response) => response,
                Err(No::Budget) => return Err(No::Budget),
                Err(_) => return Ok(None),
            };
            let head = response.message.head();
            let status = head.map_or(0, |head| head.status);
            let location = head.and_then(|head| head.get("location"));
            let (300..=399, Some(location)) = (status, location) else {
                return Ok(known(robots::File::new(&response.message).outcome()));
            };
            let base = Url::parse(place.as_str()).ok();
            let target = self.shared.normalize(location, base.as_ref());
            // If a redirect cannot be followed, the rules are unknown.
            file = match target {
                Ok(target) => target,
                Err(_) => return Ok(None),
            };
        }
        Ok(known(robots::Outcome::TooManyRedirects))
    }

    /// Sends requests until a response is usable, up to the maximum number of attempts.
    async fn ask(&self, url: &NormalUrl, delay: Duration) -> Result<Response, No> {
        let mut n_left = self.settings().fetch.tries.max(1);
        loop {
            n_left -= 1;
            match self.request(url, delay).await {
                Ok(response) if is_busy(&response) && n_left > 0 => {}
                Err(No::Failed(failure)) if failure.is_passing() && n_left > 0 => {}
                outcome => return outcome,
            }
        }
    }

    /// Sends one request, at least `delay` after the previous one.
    async fn request(&self, url: &NormalUrl, delay: Duration) -> Result<Response, No> {
        let host = self.host(url);
        let mut gate = host.gate.lock().await;
        if gate.pace.is_dead(self.settings()) {
            return Err(No::NotAsked("its host does not respond"));
        }
        let address = self.address(url, &mut gate).await?;
        let next = gate.next.max(gate.ended + delay);
        if next > Instant::now() + self.patience() {
            return Err(No::NotAsked("its host requires a longer wait"));
        }
        sleep_until(next).await;
        let turn = self.turn(address);
        let mut turn = turn.lock().await;
        sleep_until(*turn).await;
        if self.n_requests.get() >= self.max_requests.get() {
            return Err(No::Budget);
        }
        self.n_requests.set(self.n_requests.get() + 1);
        let idle = seconds(self.settings().fetch.idle);
        let kept = gate.kept.take().filter(|_| gate.ended.elapsed() < idle);
        let request = Request::new(url, address);
        let (result, connection) = self.fetcher.request(&request, kept).await;
        gate.kept = connection;
        gate.ended = Instant::now();
        let polite = self.settings().polite_of(url.origin(), url.host());
        *turn = gate.ended + seconds(polite.address_delay);
        if result.as_ref().is_err_and(|failure| failure.is_passing()) {
            let n_addresses = gate.addresses.len();
            gate.addresses.rotate_left(n_addresses.min(1));
        }
        let date = (self.seams.clock)().as_secs();
        let settings = self.settings();
        let pause = gate.pace.note(&result, settings, date).duration();
        let took = result
            .as_ref()
            .map_or(Duration::ZERO, |response| response.took);
        gate.next = gate.ended + pause.max(gate.pace.delay(took, None, &polite, date));
        result.map_err(No::Failed)
    }

    /// Returns the IP address of a host.
    async fn address(&self, url: &NormalUrl, gate: &mut Gate) -> Result<IpAddr, No> {
        if let Ok(address) = url.host().trim_matches(['[', ']']).parse() {
            return Ok(address);
        }
        if gate.addresses.is_empty() || gate.expires <= Instant::now() {
            let resolver = &self.seams.resolver;
            let found = contain_async(async { resolver.resolve(url.host()).await }).await;
            match found.unwrap_or(Err(NoAddress::Failed)) {
                Ok(found) => {
                    gate.addresses = found.addresses;
                    gate.expires = Instant::now() + found.ttl.clamp(MIN_TTL, MAX_TTL);
                }
                // An old result is better than none.
                Err(_) => gate.pace.n_failures = gate.pace.n_failures.saturating_add(1),
            }
        }
        let unknown = No::NotAsked("its host has no IP address");
        gate.addresses.first().copied().ok_or(unknown)
    }

    fn host(&self, url: &NormalUrl) -> Rc<VisitedHost> {
        let mut hosts = self.hosts.borrow_mut();
        let host = hosts.entry(url.origin().into()).or_insert_with(|| {
            let now = Instant::now();
            Rc::new(VisitedHost {
                rules: Mutex::new(None),
                gate: Mutex::new(Gate {
                    addresses: Vec::new(),
                    expires: now,
                    ended: now,
                    next: now,
                    pace: Pace::default(),
                    kept: None,
                }),
            })
        });
        Rc::clone(host)
    }

    fn turn(&self, address: IpAddr) -> Rc<Mutex<Instant>> {
        let mut turns = self.turns.borrow_mut();
        let turn = turns.entry(address);
        Rc::clone(turn.or_insert_with(|| Rc::new(Mutex::new(Instant::now()))))
    }
}
