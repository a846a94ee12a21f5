//! Secure connections: HTTP/2 where it is offered, HTTP/1.1 where not, none with a bad certificate.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arose_crawl::counters::{Counter, Failure};
use arose_crawl::{Control, Seeds, Settings, Summary, crawl, index_lines};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// How many requests came by which version.
#[derive(Default)]
struct Seen {
    http1: AtomicUsize,
    http2: AtomicUsize,
}

/// Serves three pages at an address of its own, for as long as the process lives.
fn serve(protocol: &'static [u8]) -> (SocketAddr, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let shown = Arc::clone(&seen);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(accept(listener, protocol, shown));
    });
    (address, seen)
}

async fn accept(listener: std::net::TcpListener, protocol: &[u8], seen: Arc<Seen>) {
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
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
        let service = service_fn(move |request| std::future::ready(answer(&request, &seen)));
        let io = TokioIo::new(stream);
        if protocol == b"h2" {
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(io, service));
        } else {
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(io, service));
        }
    }
}

fn answer(request: &Request<Incoming>, seen: &Seen) -> Result<Response<Full<Bytes>>, Infallible> {
    match request.version() {
        Version::HTTP_2 => seen.http2.fetch_add(1, Ordering::Relaxed),
        _ => seen.http1.fetch_add(1, Ordering::Relaxed),
    };
    let (status, body) = match request.uri().path() {
        "/" => (
            200,
            "<title>home</title><a href=/a>a</a> <a href=/b>b</a> words of the home page",
        ),
        "/a" => (
            200,
            "<title>a</title> the first page, with words of its own",
        ),
        "/b" => (
            200,
            "<title>b</title> the second page, which says something else",
        ),
        _ => (404, "nothing"),
    };
    let response = Response::builder()
        .status(status)
        .header("content-type", "text/html");
    Ok(response.body(Full::new(Bytes::from(body))).unwrap())
}

fn run(address: SocketAddr, certificates: Option<PathBuf>) -> (Summary, Vec<String>) {
    let mut settings = Settings::default();
    settings.network.allow_private = true;
    settings.network.certificates = certificates;
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.fetch.retry_delay = 0.01;
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
    assert!(summary.counters.failed(Failure::Tls) > 0);
    assert_eq!(seen.http2.load(Ordering::Relaxed), 0);
}
