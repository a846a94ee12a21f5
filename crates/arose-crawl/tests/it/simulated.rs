//! Tests of crawls of a simulated web in virtual time, in which a thousand seconds pass in one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use arose_crawl::connect::{Connect, Stream, Waiting};
use arose_crawl::resolve::{Addresses, NoAddress, Resolve};
use arose_crawl::{Control, Crawl, End, Seams, Settings, Summary, failures, queued_urls, status};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};

const N_PLAIN: u8 = 60;
const N_PAGES: u32 = 12;

/// A web of hosts `10.0.0.N`: the first ones are plain, and each of the others has one kind of
/// trouble.
#[derive(Clone, Default)]
struct Web {
    /// When the last page of each plain host was sent, and the number of pages.
    sent: Rc<RefCell<BTreeMap<u8, (Duration, u32)>>>,
    n_troubled: Rc<Cell<u32>>,
    /// Between these times nothing can be reached.
    outage: Rc<Cell<(Duration, Duration)>>,
    /// Number of connections tried meanwhile.
    n_in_vain: Rc<Cell<u32>>,
    /// The trouble is over.
    is_mended: Rc<Cell<bool>>,
}

/// The behaviour of the hosts after the plain ones.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// Never responds.
    Silent,
    /// Sends one byte per second.
    Slow,
    /// Closes at once.
    Closed,
    /// A body without end.
    Endless,
    /// Too busy for a minute.
    Busy,
}

const TROUBLE: [Trouble; 5] = [
    Trouble::Silent,
    Trouble::Slow,
    Trouble::Closed,
    Trouble::Endless,
    Trouble::Busy,
];

impl Connect for Web {
    fn connect(&self, address: SocketAddr) -> Waiting<'_, std::io::Result<Box<dyn Stream>>> {
        if self.is_out() {
            self.n_in_vain.set(self.n_in_vain.get() + 1);
            return Box::pin(async { Err(std::io::ErrorKind::NetworkUnreachable.into()) });
        }
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let IpAddr::V4(ip) = address.ip() else {
            unreachable!("all hosts are numbers")
        };
        let (web, host) = (self.clone(), ip.octets()[3]);
        tokio::task::spawn_local(async move {
            // Whatever ended the connection, it has ended.
            let _ = web.serve(host, theirs).await;
        });
        Box::pin(async move { Ok(Box::new(ours) as Box<dyn Stream>) })
    }
}

impl Web {
    async fn serve(&self, host: u8, mut stream: DuplexStream) -> std::io::Result<()> {
        let start = Instant::now();
        loop {
            let target = read_target(&mut stream).await?;
            sleep(Duration::from_millis(40)).await;
            if self.is_out() {
                return Err(std::io::ErrorKind::ConnectionReset.into());
            }
            if host < N_PLAIN || self.is_mended.get() || target == "/robots.txt" {
                stream.write_all(&page(host, &target)).await?;
                self.note(host, &target);
            } else {
                self.n_troubled.set(self.n_troubled.get() + 1);
                trouble(TROUBLE[host as usize % 5], &mut stream).await?;
            }
            if start.elapsed() > Duration::from_secs(100_000) {
                return Ok(());
            }
        }
    }

    fn note(&self, host: u8, target: &str) {
        if target != "/robots.txt" && (host < N_PLAIN || self.is_mended.get()) {
            let mut sent = self.sent.borrow_mut();
            let (last, n) = sent.entry(host).or_default();
            *last = elapsed();
            *n += 1;
        }
    }

    fn is_out(&self) -> bool {
        let (start, end) = self.outage.get();
        (start..end).contains(&elapsed())
    }

    /// The number of pages sent.
    fn n_sent(&self) -> u32 {
        self.sent.borrow().values().map(|(_, n)| n).sum()
    }
}

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Virtual time since the crawl began.
fn elapsed() -> Duration {
    let start = START.with(Cell::get);
    start.map_or(Duration::ZERO, |start| start.elapsed())
}

async fn read_target(stream: &mut DuplexStream) -> std::io::Result<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    Ok(request.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// A unique page with a link to the next one of its host.
fn page(host: u8, target: &str) -> Vec<u8> {
    let n: u32 = target.trim_start_matches("/p").parse().unwrap_or(0);
    let link = if n + 1 < N_PAGES {
        format!("<a href=/p{}>next</a>", n + 1)
    } else {
        String::new()
    };
    let (kind, body) = match target {
        "/robots.txt" => ("text/plain", String::new()),
        _ => (
            "text/html",
            format!(
                "<p>page {n} of host {host}, {} {link}",
                u32::from(host) * 1000 + n
            ),
        ),
    };
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

async fn trouble(kind: Trouble, stream: &mut DuplexStream) -> std::io::Result<()> {
    match kind {
        Trouble::Silent => sleep(Duration::from_secs(1_000_000)).await,
        Trouble::Slow => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                .await?;
            loop {
                sleep(Duration::from_secs(1)).await;
                stream.write_all(b"x").await?;
            }
        }
        Trouble::Closed => return Err(std::io::ErrorKind::ConnectionReset.into()),
        Trouble::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
            loop {
                sleep(Duration::from_millis(100)).await;
                stream.write_all(&[b'x'; 1 << 12]).await?;
            }
        }
        Trouble::Busy => {
            let busy = b"HTTP/1.1 503 Busy\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(busy).await?;
        }
    }
    Ok(())
}

/// The settings.
#[derive(Clone, Copy)]
enum Wanted {
    All,
    Lost,
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.fetch.max_body = 1 << 20;
    settings.stop.patience = 200.0;
    settings.stop.seconds = 600.0;
    settings.budget.pages = 100;
    settings
}

/// DNS lookups that fail until a time, and then resolve all host names to one host.
#[derive(Clone, Copy)]
struct Failing {
    until: Duration,
}

impl Resolve for Failing {
    fn resolve<'a>(&'a self, _name: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        Box::pin(async move {
            if elapsed() < self.until {
                return Err(NoAddress::Failed);
            }
            Ok(Addresses {
                addresses: vec![IpAddr::from([10, 0, 0, 1])],
                ttl: Duration::from_secs(3600),
            })
        })
    }
}

/// Crawls in virtual time, with DNS lookups that fail for a while.
fn crawl(
    web: &Web,
    folder: &Path,
    settings: Settings,
    seeds: Vec<String>,
    names: Failing,
    wanted: Wanted,
) -> Summary {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        START.with(|start| start.set(Some(Instant::now())));
        let seams = Seams {
            connector: Rc::new(web.clone()),
            resolver: Rc::new(names),
            clock: Box::new(|| Duration::from_secs(1_700_000_000)),
            priority: Box::new(|_, depth| depth),
            is_ours: Box::new(|_| true),
        };
        let crawl = match wanted {
            Wanted::All => Crawl::open(folder, settings, seams),
            Wanted::Lost => Crawl::open_lost(folder, settings, seams),
        };
        let mut crawl = crawl.unwrap();
        crawl.add_seeds(seeds.into_iter()).unwrap();
        crawl.run(&Control::default()).await.unwrap()
    })
}

const NAMES: Failing = Failing {
    until: Duration::ZERO,
};

/// All pages of a host.
fn pages(host: u8) -> impl Iterator<Item = String> {
    (0..N_PAGES).map(move |n| format!("http://10.0.0.{host}/p{n}"))
}

fn homes() -> Vec<String> {
    let home = |host| format!("http://10.0.0.{host}/p0");
    (0..N_PLAIN).map(home).collect()
}

/// Crawls the plain hosts and this many troubled ones, each with all its pages as seeds. Returns
/// when each plain host had sent its last page.
fn crawl_beside(n_troubled: u8) -> (BTreeMap<u8, (Duration, u32)>, u32) {
    let web = Web::default();
    let mut settings = settings();
    // Fewer than there are troubled hosts.
    settings.fetch.in_flight = 24;
    let mut seeds = homes();
    seeds.extend((N_PLAIN..N_PLAIN + n_troubled).flat_map(pages));
    let folder = tempfile::tempdir().unwrap();
    crawl(&web, folder.path(), settings, seeds, NAMES, Wanted::All);
    (web.sent.take(), web.n_troubled.get())
}

/// More hosts than slots hang, drip, close, send without end or are busy. All pages of every plain
/// host are fetched, and none waits more than 5% longer for its last one.
#[test]
fn trouble_slows_nobody_else() {
    let (alone, _) = crawl_beside(0);
    let (together, n_troubled) = crawl_beside(N_PLAIN);
    assert!(n_troubled > 100, "{n_troubled}");
    assert_eq!(alone.len(), usize::from(N_PLAIN));
    for (host, (last, n_pages)) in &together {
        let (alone, n_alone) = alone[host];
        assert_eq!((*n_pages, n_alone), (N_PAGES, N_PAGES), "{host}");
        assert!(
            *last <= alone.mul_f64(1.05),
            "{host}: {last:?} after {alone:?}"
        );
    }
    assert_eq!(together.len(), alone.len());
}

/// A host whose DNS lookups fail for longer than the crawl retries them keeps all its queued URLs.
/// A retry requests those and nothing else, the next run everything.
#[test]
fn names_that_fail_are_lost_for_now() {
    let (web, folder) = (Web::default(), tempfile::tempdir().unwrap());
    let mut settings = settings();
    settings.stop.patience = 5000.0;
    settings.stop.seconds = 0.0;
    let seeds = vec!["http://h.test/p0".to_owned(), "http://h.test/p9".to_owned()];
    let run = |until, seeds: &[String], wanted| {
        let names = Failing {
            until: Duration::from_secs(until),
        };
        let settings = settings.clone();
        crawl(&web, folder.path(), settings, seeds.to_vec(), names, wanted)
    };
    let summary = run(4000, &seeds, Wanted::All);
    assert_eq!((summary.end, summary.n_queued), (End::Waiting, 2));
    assert_eq!(summary.n_lost, 2);
    assert_eq!(status(folder.path()).unwrap().n_lost, 2);
    let failed = || -> Vec<(String, String)> {
        let failed = failures(folder.path()).unwrap().into_iter();
        failed.map(|failed| (failed.reason, failed.url)).collect()
    };
    let name = (
        "dns-failed".to_owned(),
        "http://h.test/robots.txt".to_owned(),
    );
    assert_eq!(failed(), [name]);
    let waiting = ["http://h.test/p11".to_owned()];
    let summary = run(0, &waiting, Wanted::Lost);
    // The whole host was lost, so its links are followed too.
    assert_eq!((summary.n_lost, web.n_sent()), (0, N_PAGES));
    assert_eq!(status(folder.path()).unwrap().n_lost, 0);
    assert_eq!(failed(), []);
    assert_eq!(run(0, &[], Wanted::All).end, End::Done);
}

/// URLs whose connections fail are lost for now, and so is a host that always fails. A retry
/// requests only them; new links and other hosts wait for the next run.
#[test]
fn connections_that_fail_are_lost_for_now() {
    let (web, folder) = (Web::default(), tempfile::tempdir().unwrap());
    let run = |seeds, wanted| {
        let mut settings = settings();
        settings.archive.compact = 100;
        settings.stop.patience = 10_000.0;
        settings.stop.seconds = 0.0;
        crawl(&web, folder.path(), settings, seeds, NAMES, wanted)
    };
    let closed =
        (N_PLAIN..).find(|&host| matches!(TROUBLE[usize::from(host) % 5], Trouble::Closed));
    let closed = closed.unwrap();
    let seeds: Vec<String> = pages(closed).chain(pages(1)).collect();
    let summary = run(seeds.clone(), Wanted::All);
    assert_eq!((summary.end, summary.n_queued), (End::Waiting, 12));
    assert_eq!((summary.n_lost, web.n_sent()), (12, N_PAGES));
    assert_eq!(status(folder.path()).unwrap().n_lost, 12);
    assert_eq!(queued_urls(folder.path()).unwrap().len(), 12);
    // Still the same.
    let summary = run(Vec::new(), Wanted::Lost);
    assert_eq!((summary.n_lost, summary.n_queued), (12, 12));
    web.is_mended.set(true);
    let other = vec!["http://10.0.0.2/p11".to_owned()];
    let summary = run(other, Wanted::Lost);
    assert_eq!((summary.n_lost, summary.n_queued), (0, 1));
    assert_eq!(web.n_sent(), 2 * N_PAGES);
    let summary = run(Vec::new(), Wanted::All);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    assert_eq!(web.n_sent(), 2 * N_PAGES + 1);
}

/// For ten minutes no host can be reached from here. The crawl pauses, hardly tries, and then
/// fetches everything without losing a URL.
#[test]
fn an_outage_pauses_the_crawl() {
    let (web, folder) = (Web::default(), tempfile::tempdir().unwrap());
    let second = Duration::from_secs;
    web.outage.set((second(5), second(605)));
    let mut settings = settings();
    settings.stop.seconds = 0.0;
    let summary = crawl(&web, folder.path(), settings, homes(), NAMES, Wanted::All);
    assert_eq!((summary.end, summary.n_lost), (End::Done, 0));
    assert_eq!(web.n_sent(), u32::from(N_PLAIN) * N_PAGES);
    let last = web.sent.borrow().values().map(|(last, _)| *last).max();
    assert!(last.unwrap() < second(700), "{last:?}");
    assert!(web.n_in_vain.get() < 250, "{}", web.n_in_vain.get());
    // The outage is longer than the settings allow, so everything waits for the next run.
    let (web, folder) = (Web::default(), tempfile::tempdir().unwrap());
    web.outage.set((second(5), second(100_000)));
    let summary = crawl(
        &web,
        folder.path(),
        self::settings(),
        homes(),
        NAMES,
        Wanted::All,
    );
    assert_eq!((summary.end, summary.n_lost), (End::Limit, 0));
    let mut settings = self::settings();
    settings.stop.seconds = 0.0;
    settings.stop.outage = 900.0;
    let summary = crawl(&web, folder.path(), settings, homes(), NAMES, Wanted::All);
    assert_eq!((summary.end, summary.n_lost), (End::Waiting, 0));
}
