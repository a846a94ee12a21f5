//! Tests of sites that serve each page twice: over HTTP and HTTPS, and with and without `www.`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arose::dust::State;
use arose::mix::SplitMix;
use arose_crawl::connect::{Allowed, Connect, Stream, Tcp, Waiting};
use arose_crawl::counters::Counter;
use arose_crawl::resolve::{Addresses, NoAddress, Resolve};
use arose_crawl::settings::Reach;
use arose_crawl::{End, Seams, Settings, url_rules};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::faults::{run_with, seams};

const N_ITEMS: u64 = 200;
const N_LINKS: u64 = 8;

/// The numbers of requests by URL without scheme and `www.`, except for robots.txt.
type Log = Arc<Mutex<BTreeMap<String, usize>>>;

/// What the twins of a site differ in.
#[derive(Debug, Clone, Copy)]
enum Twin {
    Https,
    Www,
    /// Both serve other pages.
    None,
}

/// A page of the site: the same for both twins, except that half of the links lead to each.
fn page(twin: Twin, host: &str, is_tls: bool, path: &str) -> Option<String> {
    let item: u64 = match path {
        "/" => 0,
        path => path.strip_prefix("/item/")?.parse().ok()?,
    };
    if item >= N_ITEMS {
        return None;
    }
    let is_other = matches!(twin, Twin::None) && is_tls;
    let mut text = SplitMix::new(2 * item + u64::from(is_other));
    let mut html = format!("<title>Item {item}</title><p>");
    for _ in 0..80 {
        let mut word = text.below(1 << 24);
        for _ in 0..5 {
            html.push(char::from(b'a' + (word % 26) as u8));
            word /= 26;
        }
        html.push(' ');
    }
    html.push_str("</p>");
    let mut links = SplitMix::new(1000 + item);
    for n in 0..N_LINKS {
        let to = match n {
            0 => 2 * item + 1,
            1 => 2 * item + 2,
            _ => links.below(N_ITEMS),
        };
        let name = host.strip_prefix("www.").unwrap_or(host);
        let start = match (twin, links.below(2)) {
            (Twin::Www, 1) => "http://www.",
            (Twin::Https | Twin::None, 1) => "https://",
            _ => "http://",
        };
        if to < N_ITEMS {
            html.push_str(&format!("<a href=\"{start}{name}/item/{to}\">more</a> "));
        }
    }
    Some(html)
}

fn answer(request: &Request<Incoming>, twin: Twin, is_tls: bool, log: &Log) -> Response<String> {
    let host = request.headers()["host"].to_str().unwrap();
    let path = request.uri().path();
    let found = page(twin, host, is_tls, path);
    if found.is_some() {
        let name = host.strip_prefix("www.").unwrap_or(host);
        let scheme = match (twin, is_tls) {
            (Twin::None, true) => "https://",
            _ => "",
        };
        let mut log = log.lock().unwrap();
        *log.entry(format!("{scheme}{name}{path}")).or_default() += 1;
    }
    let status = if found.is_some() { 200 } else { 404 };
    let response = Response::builder().status(status);
    let response = response.header("content-type", "text/html");
    response.body(found.unwrap_or_default()).unwrap()
}

/// Serves the site at two ports, for as long as the process lives: plain, and over TLS.
fn serve(twin: Twin) -> ([SocketAddr; 2], Log) {
    let log = Log::default();
    let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = [&listeners[0], &listeners[1]].map(|one| one.local_addr().unwrap());
    let noted = Arc::clone(&log);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let [plain, secure] = listeners;
        runtime.block_on(async {
            tokio::join!(
                accept(plain, None, twin, &noted),
                accept(secure, Some(acceptor()), twin, &noted)
            )
        });
    });
    (addresses, log)
}

pub(crate) fn acceptor() -> TlsAcceptor {
    let fixture = |name: &str| {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        folder.join(name)
    };
    let certificate = CertificateDer::from_pem_file(fixture("signed.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("signed.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth();
    let config = config.with_single_cert(vec![certificate], key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(
    listener: std::net::TcpListener,
    acceptor: Option<TlsAcceptor>,
    twin: Twin,
    log: &Log,
) {
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (log, is_tls) = (Arc::clone(log), acceptor.is_some());
        let service = service_fn(move |request| {
            let response = answer(&request, twin, is_tls, &log);
            async move { Ok::<_, Infallible>(response) }
        });
        let server = hyper::server::conn::http1::Builder::new();
        match &acceptor {
            None => {
                tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
            }
            Some(acceptor) => {
                if let Ok(stream) = acceptor.accept(stream).await {
                    tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
                }
            }
        }
    }
}

/// Resolves every host name to loopback.
pub(crate) struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        let addresses = vec![IpAddr::from([127, 0, 0, 1])];
        let ttl = Duration::from_secs(3600);
        Box::pin(async move { Ok(Addresses { addresses, ttl }) })
    }
}

/// Connects to the ports of the test instead of 80 and 443.
pub(crate) struct Ports(pub(crate) [SocketAddr; 2]);

impl Connect for Ports {
    fn connect(&self, address: SocketAddr) -> Waiting<'_, std::io::Result<Box<dyn Stream>>> {
        let to = self.0[usize::from(address.port() == 443)];
        let addresses = Allowed::Loopback;
        Box::pin(async move { Tcp { addresses }.connect(to).await })
    }
}

/// Crawls the site; returns the number of requests by page and the active rules.
fn crawl(twin: Twin) -> (BTreeMap<String, usize>, Vec<String>) {
    let (addresses, log) = serve(twin);
    let mut settings = Settings::default();
    settings.scope.reach = Reach::Web;
    settings.scope.sitemaps = false;
    settings.network.allow_private = true;
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    settings.network.certificates = Some(fixtures.join("authority.pem"));
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings.duplicates.stale_after = 0;
    let folder = tempfile::tempdir().unwrap();
    let seeds = vec!["http://own.test/".to_owned()];
    let summary = run_with(folder.path(), settings, seeds, |settings| Seams {
        resolver: Rc::new(Loopback),
        connector: Rc::new(Ports(addresses)),
        ..seams(settings, Box::new(|| Duration::from_secs(1_700_000_000)))
    });
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    assert_eq!(summary.counters.get(Counter::Failures), 0);
    let rules = url_rules(folder.path()).unwrap();
    let active = rules.iter().filter(|rule| rule.state == State::Active);
    let active = active.map(|rule| format!("{} {}", rule.scope, rule.rule));
    let log = log.lock().unwrap().clone();
    (log, active.collect())
}

/// Every page of a twin site is fetched, and hardly any twice.
#[test]
fn issue_27_twins_are_found() {
    for (twin, rule) in [(Twin::Https, "own.test https"), (Twin::Www, "own.test www")] {
        let (pages, rules) = crawl(twin);
        let n_requests: usize = pages.values().sum();
        println!("{twin:?}: {n_requests} requests for {} pages", pages.len());
        // The home page has two URLs: it is the first item.
        assert_eq!(pages.len() as u64, N_ITEMS + 1, "{twin:?}");
        assert_eq!(rules, [rule]);
        assert!(n_requests as f64 <= 1.6 * N_ITEMS as f64, "{n_requests}");
    }
}

/// Sites that serve other pages over HTTPS are no twins.
#[test]
fn issue_27_other_sites_are_not_twins() {
    let (pages, rules) = crawl(Twin::None);
    assert_eq!(rules, [""; 0]);
    let n_secure = pages.keys().filter(|url| url.starts_with("https")).count();
    let n_plain = pages.len() - n_secure;
    // Nearly every item has a link to each of the two.
    assert!(n_secure as u64 > N_ITEMS * 9 / 10 && n_plain as u64 > N_ITEMS * 9 / 10);
    assert!(pages.values().all(|&n| n == 1), "{pages:?}");
}
