//! Crawls of a simulated web in virtual time, where a thousand seconds pass in one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use arose_crawl::connect::{Connect, Stream, Waiting};
use arose_crawl::resolve::NameServers;
use arose_crawl::{Control, Crawl, Seams, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};

const N_PLAIN: u8 = 60;
const N_PAGES: u32 = 12;

/// A web of hosts `10.0.0.N`, the first ones plain, the others trouble of a kind each.
#[derive(Clone, Default)]
struct Web {
    /// When the last page of each plain host was sent, and how many were.
    sent: Rc<RefCell<BTreeMap<u8, (Duration, u32)>>>,
    n_troubled: Rc<Cell<u32>>,
}

/// What the hosts after the plain ones do.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// Never answers.
    Silent,
    /// A byte a second.
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
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let IpAddr::V4(ip) = address.ip() else {
            unreachable!("all hosts are numbers")
        };
        let (web, host) = (self.clone(), ip.octets()[3]);
        tokio::task::spawn_local(async move {
            // Whatever ends a connection, it has ended.
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
            if host < N_PLAIN || target == "/robots.txt" {
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
        if target != "/robots.txt" && host < N_PLAIN {
            let mut sent = self.sent.borrow_mut();
            let (last, n) = sent.entry(host).or_default();
            *last = START
                .with(|start| start.get())
                .map_or(Duration::ZERO, |start| start.elapsed());
            *n += 1;
        }
    }
}

thread_local! {
    static START: Cell<Option<Instant>> = const { Cell::new(None) };
}

async fn read_target(stream: &mut DuplexStream) -> std::io::Result<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    Ok(request.split(' ').nth(1).unwrap_or_default().to_owned())
}

/// A page of its own with links to the next one of its host.
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

/// Crawls the plain hosts and so many troubled ones, each with all its pages as seeds; when each
/// plain host had sent its last page.
fn crawl(n_troubled: u8) -> (BTreeMap<u8, (Duration, u32)>, u32) {
    let web = Web::default();
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.fetch.in_flight = 128;
    settings.fetch.max_body = 1 << 20;
    settings.stop.patience = 200.0;
    settings.stop.seconds = 600.0;
    settings.budget.pages = 100;
    let seeds = (0..N_PLAIN + n_troubled).flat_map(|host| {
        let n_seeds = if host < N_PLAIN { 1 } else { N_PAGES };
        (0..n_seeds).map(move |n| format!("http://10.0.0.{host}/p{n}"))
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        START.with(|start| start.set(Some(Instant::now())));
        let seams = Seams {
            connector: Rc::new(web.clone()),
            resolver: Rc::new(NameServers::new(&["127.0.0.1:53".parse().unwrap()]).unwrap()),
            clock: Box::new(|| Duration::from_secs(1_700_000_000)),
            priority: Box::new(|_, depth| depth),
            is_ours: Box::new(|_| true),
        };
        let mut crawl = Crawl::open(folder.path(), settings, seams).unwrap();
        crawl.add_seeds(seeds).unwrap();
        crawl.run(&Control::default()).await.unwrap();
    });
    (web.sent.take(), web.n_troubled.get())
}

/// Half as many hosts again that hang, drip, close, send without end or are busy: every plain host
/// has all its pages fetched, and none waits five per cent longer for its last one.
#[test]
fn trouble_slows_nobody_else() {
    let (alone, _) = crawl(0);
    let (together, n_troubled) = crawl(N_PLAIN / 2);
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
