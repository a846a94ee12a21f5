//! Tests of TLS connections: HTTP/2 if it is offered, HTTP/1.1 if not, none with a bad certificate;
//! the limits of HTTP/2.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use arose_crawl::connect::Waiting;
use arose_crawl::counters::{Counter, Failure};
use arose_crawl::resolve::{Addresses, NoAddress, Resolve};
use arose_crawl::{Control, Seams, Seeds, Settings, Summary, crawl, index_lines};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use crate::faults::{run_with, seams};
use crate::restart::{first_file, unpacked};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Numbers of requests by HTTP version.
#[derive(Default)]
struct Seen {
    http1: AtomicUsize,
    http2: AtomicUsize,
}

/// Serves three pages at an IP address of its own for as long as the process lives, with a
/// self-signed certificate.
fn serve(protocol: &'static [u8]) -> (SocketAddr, Arc<Seen>) {
    serve_as(protocol, "server")
}

/// The same with the certificate and key of this name.
fn serve_as(protocol: &'static [u8], name: &'static str) -> (SocketAddr, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let shown = Arc::clone(&seen);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(accept(listener, protocol, name, shown));
    });
    (address, seen)
}

async fn accept(listener: std::net::TcpListener, protocol: &[u8], name: &str, seen: Arc<Seen>) {
    let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
    let certificate = CertificateDer::from_pem_file(fixture(&certificate)).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture(&key)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    listener.set_nonblocking(true).unwrap();
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(stream) = acceptor.accept(stream).await else {
            continue;
        };
        let seen = Arc::clone(&seen);
        let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
        let io = TokioIo::new(stream);
        if protocol == b"h2" {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(io, service));
        } else {
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    }
}

/// A body that is sent at once and then ends, or does not end.
struct Page {
    bytes: Option<Bytes>,
    ends: bool,
}

impl Body for Page {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.bytes.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

async fn answer(request: Request<Incoming>, seen: Arc<Seen>) -> Result<Response<Page>, Infallible> {
    match request.version() {
        Version::HTTP_2 => seen.http2.fetch_add(1, Ordering::Relaxed),
        _ => seen.http1.fetch_add(1, Ordering::Relaxed),
    };
    let mut response = Response::builder().header("content-type", "text/html");
    let mut ends = true;
    let (status, body) = match request.uri().path() {
        "/silent" => std::future::pending().await,
        "/stuck" => {
            ends = false;
            (200, "the beginning of a page".to_owned())
        }
        "/long" => (200, "x".repeat(64 << 10)),
        "/headers" => {
            for n in 0..30 {
                response = response.header(format!("x-{n}"), "h".repeat(1000));
            }
            (200, "a page behind many headers".to_owned())
        }
        "/" => (
            200,
            "<title>home</title><a href=/a>a</a> <a href=/b>b</a> words of the home page"
                .to_owned(),
        ),
        "/a" => (
            200,
            "<title>a</title> the first page, with words of its own".to_owned(),
        ),
        "/b" => (
            200,
            "<title>b</title> the second page, which says something else".to_owned(),
        ),
        _ => (404, "nothing".to_owned()),
    };
    let bytes = Some(Bytes::from(body));
    let page = Page { bytes, ends };
    Ok(response.status(status).body(page).unwrap())
}

fn settings(certificates: Option<PathBuf>) -> Settings {
    let mut settings = Settings::default();
    settings.network.allow_private = true;
    settings.network.certificates = certificates;
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.fetch.retry_delay = 0.01;
    settings
}

fn run(address: SocketAddr, certificates: Option<PathBuf>) -> (Summary, Vec<String>) {
    let settings = settings(certificates);
    let folder = tempfile::tempdir().unwrap();
    let seeds = Seeds {
        pages: vec![format!("https://{address}/")],
        sitemaps: Vec::new(),
    };
    let summary = crawl(folder.path(), settings, seeds, &Control::default()).unwrap();
    (summary, index_lines(folder.path()).unwrap())
}

#[test]
fn both_versions() {
    for (protocol, counts) in [(b"h2".as_slice(), (0, 4)), (b"http/1.1", (4, 0))] {
        let (address, seen) = serve(protocol);
        let (summary, lines) = run(address, Some(fixture("server.pem")));
        assert_eq!(summary.counters.get(Counter::Pages), 3);
        assert_eq!(lines.len(), 3);
        let found = (
            seen.http1.load(Ordering::Relaxed),
            seen.http2.load(Ordering::Relaxed),
        );
        assert_eq!(found, counts);
    }
}

#[test]
fn unknown_certificates_are_refused() {
    let (address, seen) = serve(b"h2");
    let (summary, _) = run(address, None);
    assert_eq!(summary.n_fetched, 0);
    assert!(summary.counters.failed(Failure::UnknownIssuer) > 0);
    assert_eq!(seen.http2.load(Ordering::Relaxed), 0);
}

/// Over HTTP/2 as over HTTP/1.1, bodies without end and silence run into their limits. The received
/// part of a body is kept and marked, and the following pages are fetched.
#[test]
fn limits_hold_over_http2() {
    let (address, seen) = serve(b"h2");
    let mut settings = settings(Some(fixture("server.pem")));
    settings.fetch.first_byte = 0.5;
    settings.fetch.whole = 1.0;
    settings.fetch.tries = 1;
    settings.fetch.max_body = 32 << 10;
    settings.fetch.max_head = 16 << 10;
    // A request without limits must not block the test.
    settings.stop.seconds = 60.0;
    let folder = tempfile::tempdir().unwrap();
    let pages = ["silent", "stuck", "long", "headers", "a"];
    let seeds = Seeds {
        pages: pages.map(|page| format!("https://{address}/{page}")).into(),
        sitemaps: Vec::new(),
    };
    let summary = crawl(folder.path(), settings, seeds, &Control::default()).unwrap();
    let counters = &summary.counters;
    assert_eq!(counters.failed(Failure::Slow), 1);
    assert_eq!(counters.failed(Failure::LongHead), 1);
    assert_eq!(counters.get(Counter::Truncated), 2);
    // The page that never arrived is lost for now.
    assert_eq!((summary.n_queued, summary.n_lost), (1, 1));
    assert_eq!(index_lines(folder.path()).unwrap().len(), 3);
    assert_eq!(seen.http2.load(Ordering::Relaxed), 1 + pages.len());
    let archive = unpacked(&first_file(&folder.path().join("archive"), ".warc.gz"));
    for reason in ["length", "time"] {
        let line = format!("\r\nWARC-Truncated: {reason}\r\n");
        assert_eq!(archive.matches(&line).count(), 1, "{reason}");
    }
}

/// Resolves every host name to loopback.
struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        let addresses = vec![IpAddr::from([127, 0, 0, 1])];
        let ttl = Duration::from_secs(60);
        Box::pin(async move { Ok(Addresses { addresses, ttl }) })
    }
}

/// Crawls these hosts, all of which resolve to one IP address.
fn run_named(settings: Settings, names: &[&str], address: SocketAddr) -> Summary {
    let folder = tempfile::tempdir().unwrap();
    let seeds = names
        .iter()
        .map(|name| format!("https://{name}.test:{}/", address.port()));
    run_with(folder.path(), settings, seeds.collect(), |settings| Seams {
        resolver: Rc::new(Loopback),
        ..seams(settings, Box::new(|| Duration::from_secs(1_700_000_000)))
    })
}

/// A certificate that is trusted, but for another host, is refused before anything is sent.
#[test]
fn certificates_of_other_hosts_are_refused() {
    let (address, seen) = serve(b"h2");
    let settings = settings(Some(fixture("server.pem")));
    let summary = run_named(settings, &["other"], address);
    assert_eq!(summary.n_fetched, 0);
    assert!(summary.counters.failed(Failure::OtherName) > 0);
    assert_eq!(seen.http2.load(Ordering::Relaxed), 0);
}

/// A host whose certificate is signed by the operator's own authority is fetched if that authority
/// is trusted. It is not fetched under another host name, or if the authority is unknown.
#[test]
fn issue_22_authorities_of_one_s_own_are_trusted() {
    let (address, seen) = serve_as(b"h2", "signed");
    let trusting = || settings(Some(fixture("authority.pem")));
    for (settings, name, failure) in [
        (trusting(), "other", Failure::OtherName),
        (settings(None), "own", Failure::UnknownIssuer),
        (
            settings(Some(fixture("server.pem"))),
            "own",
            Failure::UnknownIssuer,
        ),
    ] {
        let summary = run_named(settings, &[name], address);
        assert_eq!(summary.n_fetched, 0, "{name}");
        assert!(summary.counters.failed(failure) > 0, "{name}");
    }
    assert_eq!(seen.http2.load(Ordering::Relaxed), 0);
    let summary = run_named(trusting(), &["own"], address);
    assert_eq!(summary.counters.get(Counter::Pages), 3);
    assert_eq!(seen.http2.load(Ordering::Relaxed), 4);
}

/// A host whose certificates are not to be checked is fetched all the same; others are not.
#[test]
fn issue_22_certificates_of_named_hosts_are_ignored() {
    let (address, seen) = serve(b"h2");
    let mut settings = settings(None);
    settings.network.ignore_certificates = vec!["own.test".to_owned()];
    let summary = run_named(settings, &["own", "other"], address);
    assert_eq!(summary.counters.get(Counter::Pages), 3);
    assert!(summary.counters.failed(Failure::UnknownIssuer) > 0);
    assert_eq!(seen.http2.load(Ordering::Relaxed), 4);
}
