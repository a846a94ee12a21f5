//! A scripted web in virtual time: a function responds to every request.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use arose_crawl::connect::{Connect, Stream, Waiting};
use arose_crawl::resolve::{Addresses, NoAddress, Resolve};
use arose_crawl::{Control, Crawl, Priority, Seams, Settings, Summary};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::time::Instant;

/// A request that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    /// The time since the crawl began.
    pub(crate) at: Duration,
    pub(crate) address: IpAddr,
    pub(crate) host: String,
    pub(crate) target: String,
    /// Number of earlier requests for the same target of the same host.
    pub(crate) n_before: usize,
    /// All of its lines.
    pub(crate) head: String,
}

/// The response of a server to a request.
pub(crate) enum Reply {
    /// Sends these bytes and keeps the connection open.
    Send(Vec<u8>),
    /// Sends these bytes and closes the connection.
    Close(Vec<u8>),
    /// Sends these bytes, one per second.
    Trickle(Vec<u8>),
    /// Makes reading from the connection panic.
    Panic,
}

type Answer = dyn Fn(&Request) -> Reply;

/// Host names with their IP addresses, a function that responds, and a log of requests.
#[derive(Clone)]
pub(crate) struct Web {
    names: BTreeMap<String, Vec<IpAddr>>,
    refused: Vec<IpAddr>,
    answer: Rc<Answer>,
    log: Rc<RefCell<Vec<Request>>>,
    start: Rc<RefCell<Option<Instant>>>,
    /// Seconds since 1970 at which the next crawl begins.
    date: Rc<Cell<u64>>,
}

impl Web {
    pub(crate) fn new(
        names: &[(&str, &[&str])],
        answer: impl Fn(&Request) -> Reply + 'static,
    ) -> Self {
        let parse = |address: &&str| address.parse().unwrap();
        let names = names.iter().map(|(name, addresses)| {
            let addresses = addresses.iter().map(parse).collect();
            ((*name).to_owned(), addresses)
        });
        Self {
            names: names.collect(),
            refused: Vec::new(),
            answer: Rc::new(answer),
            log: Rc::default(),
            start: Rc::default(),
            date: Rc::new(Cell::new(1_700_000_000)),
        }
    }

    /// Lets time pass between two crawls.
    pub(crate) fn advance(&self, seconds: u64) {
        self.date.set(self.date.get() + seconds);
    }

    /// Sets the time of day at which the next crawl begins.
    pub(crate) fn set_time_of_day(&self, hour: u64, minute: u64) {
        let day = self.date.get() / 86_400 + 1;
        self.date.set(day * 86_400 + hour * 3600 + minute * 60);
    }

    /// Makes an IP address refuse connections.
    pub(crate) fn refusing(mut self, address: &str) -> Self {
        self.refused.push(address.parse().unwrap());
        self
    }

    /// Returns all requests so far, of all crawls.
    pub(crate) fn log(&self) -> Vec<Request> {
        self.log.borrow().clone()
    }

    /// Returns the targets requested from a host, without robots.txt, in order.
    pub(crate) fn targets(&self, host: &str) -> Vec<String> {
        let log = self.log();
        let pages = log
            .iter()
            .filter(|request| request.host == host && request.target != "/robots.txt");
        pages.map(|request| request.target.clone()).collect()
    }

    /// Crawls breadth first.
    pub(crate) fn crawl(&self, folder: &Path, settings: Settings, seeds: &[&str]) -> Summary {
        self.crawl_in_order(folder, settings, seeds, Box::new(|_, depth| depth))
    }

    pub(crate) fn crawl_in_order(
        &self,
        folder: &Path,
        settings: Settings,
        seeds: &[&str],
        priority: Box<Priority>,
    ) -> Summary {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        let seeds: Vec<String> = seeds.iter().map(|seed| (*seed).to_owned()).collect();
        tokio::task::LocalSet::new().block_on(&runtime, async {
            let (start, date) = (Instant::now(), Duration::from_secs(self.date.get()));
            self.start.replace(Some(start));
            let seams = Seams {
                connector: Rc::new(self.clone()),
                resolver: Rc::new(self.clone()),
                clock: Box::new(move || date + start.elapsed()),
                priority,
                is_ours: Box::new(|_| true),
            };
            let mut crawl = Crawl::open(folder, settings, seams).unwrap();
            crawl.add_seeds(seeds.into_iter()).unwrap();
            let summary = crawl.run(&Control::default()).await.unwrap();
            self.advance(start.elapsed().as_secs());
            summary
        })
    }

    async fn serve(self, address: IpAddr, mut stream: DuplexStream, is_broken: Rc<RefCell<bool>>) {
        while let Some(request) = self.receive(address, &mut stream).await {
            let (bytes, is_open) = match (self.answer)(&request) {
                Reply::Trickle(bytes) => {
                    for byte in bytes {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        if stream.write_u8(byte).await.is_err() {
                            return;
                        }
                    }
                    continue;
                }
                Reply::Send(bytes) => (bytes, true),
                Reply::Close(bytes) => (bytes, false),
                Reply::Panic => {
                    is_broken.replace(true);
                    (b"HTTP/1.1 200 OK\r\n".to_vec(), false)
                }
            };
            if stream.write_all(&bytes).await.is_err() || !is_open {
                return;
            }
        }
    }

    async fn receive(&self, address: IpAddr, stream: &mut DuplexStream) -> Option<Request> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let host = head.split("Host: ").nth(1)?.split("\r\n").next()?;
        let target = head.split(' ').nth(1)?.to_owned();
        let mut log = self.log.borrow_mut();
        let is_same = |other: &&Request| other.host == host && other.target == target;
        let request = Request {
            at: self
                .start
                .borrow()
                .map_or(Duration::ZERO, |start| start.elapsed()),
            address,
            host: host.to_owned(),
            n_before: log.iter().filter(is_same).count(),
            target,
            head: head.clone(),
        };
        log.push(request.clone());
        Some(request)
    }
}

impl Connect for Web {
    fn connect(&self, address: SocketAddr) -> Waiting<'_, std::io::Result<Box<dyn Stream>>> {
        let address = address.ip();
        if self.refused.contains(&address) {
            let refused = std::io::ErrorKind::ConnectionRefused;
            return Box::pin(async move { Err(refused.into()) });
        }
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let is_broken = Rc::new(RefCell::new(false));
        tokio::task::spawn_local(self.clone().serve(address, theirs, Rc::clone(&is_broken)));
        let stream = Breakable {
            stream: ours,
            is_broken,
        };
        Box::pin(async move { Ok(Box::new(stream) as Box<dyn Stream>) })
    }
}

impl Resolve for Web {
    fn resolve<'a>(&'a self, name: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        let addresses = self.names.get(name).cloned();
        Box::pin(async move {
            assert_ne!(name, "panic.test", "told to fail, in a test");
            let addresses = addresses.ok_or(NoAddress::Unknown)?;
            let ttl = Duration::from_secs(60);
            Ok(Addresses { addresses, ttl })
        })
    }
}

/// A connection on which reading may panic, as a parser might.
struct Breakable {
    stream: DuplexStream,
    is_broken: Rc<RefCell<bool>>,
}

impl AsyncRead for Breakable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_read(context, buffer);
        assert!(!*self.is_broken.borrow(), "told to fail, in a test");
        poll
    }
}

impl AsyncWrite for Breakable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A response with headers, each with its line end, and a body.
pub(crate) fn response(status: u16, headers: &str, body: &[u8]) -> Reply {
    let head = format!(
        "HTTP/1.1 {status} Status\r\n{headers}Content-Length: {}\r\n\r\n",
        body.len()
    );
    Reply::Send([head.as_bytes(), body].concat())
}

/// A unique page that links to these targets.
pub(crate) fn page(request: &Request, links: &[&str]) -> Reply {
    page_with(request, "", links)
}

pub(crate) fn page_with(request: &Request, headers: &str, links: &[&str]) -> Reply {
    let links: Vec<String> = links
        .iter()
        .map(|link| format!("<a href='{link}'>{link}</a>"))
        .collect();
    let Request { host, target, .. } = request;
    // The words do not repeat; otherwise all pages would look like spam.
    let word = |n: u32| {
        let mut hasher = DefaultHasher::new();
        (host, target, n).hash(&mut hasher);
        format!("w{:x}", hasher.finish())
    };
    let words: Vec<String> = (0..50).map(word).collect();
    let body = format!("<p>{} {}", words.join(" "), links.join(" "));
    let headers = format!("Content-Type: text/html\r\n{headers}");
    response(200, &headers, body.as_bytes())
}

/// Settings without threads, so that time stands still while pages are read, and with much
/// patience.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.stop.patience = 1000.0;
    settings.budget.pages = 1000;
    settings
}
