//! Tests of a site that moves to HTTPS while a crawl keeps visiting its pages.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arose::mix::SplitMix;
use arose_crawl::counters::Counter;
use arose_crawl::{PageInfo, Seams, Settings, list_pages};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::faults::{run_with, seams};
use crate::twins::{Loopback, Ports, acceptor};

const N_PAGES: u32 = 30;

/// Days of the calendar in a second, the first of them, and when the site moves.
const PACE: f64 = 4.0;
const BEGIN: u64 = 1_700_000_000;
const MOVE: Duration = Duration::from_secs(9);

/// Responses to later requests may not count.
const END: Duration = Duration::from_secs(35);

/// Time since the start, whether over TLS, path and status of each request.
type Log = Arc<Mutex<Vec<(Duration, bool, String, u16)>>>;

/// A site whose home page links to all others. Every third page changes all the time.
fn answer(
    request: &Request<Incoming>,
    is_tls: bool,
    start: Instant,
    log: &Log,
) -> Response<String> {
    let path = request.uri().path().to_owned();
    let now = start.elapsed();
    let number = path.strip_prefix("/p").and_then(|n| n.parse().ok());
    let number = if path == "/" { Some(0) } else { number };
    let response = Response::builder().header("content-type", "text/html");
    let (status, response, body) = match number.filter(|n| *n < N_PAGES) {
        _ if path == "/robots.txt" => (200, response, String::new()),
        None => (404, response, String::new()),
        Some(_) if !is_tls && now > MOVE => {
            let to = format!("https://own.test{path}");
            (301, response.header("location", to), String::new())
        }
        Some(number) => {
            let version = match number % 3 {
                2 => now.as_secs(),
                _ => 0,
            };
            let mut random = SplitMix::new(u64::from(number) << 20 | version);
            let words: Vec<String> = (0..60)
                .map(|_| format!("w{}", random.below(5000)))
                .collect();
            let links = (1..N_PAGES).filter(|_| number == 0);
            let links: Vec<String> = links.map(|n| format!("<a href=/p{n}>page</a>")).collect();
            let body = format!("<p>{} {}", words.join(" "), links.join(" "));
            (200, response, body)
        }
    };
    log.lock().unwrap().push((now, is_tls, path, status));
    response.status(status).body(body).unwrap()
}

/// Serves the site at two ports, for as long as the process lives: plain, and over TLS.
fn serve(start: Instant) -> ([SocketAddr; 2], Log) {
    let log = Log::default();
    let listeners = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let addresses = [&listeners[0], &listeners[1]].map(|one| one.local_addr().unwrap());
    for (listener, is_tls) in listeners.into_iter().zip([false, true]) {
        let log = Arc::clone(&log);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(accept(listener, is_tls, start, &log));
        });
    }
    (addresses, log)
}

async fn accept(listener: std::net::TcpListener, is_tls: bool, start: Instant, log: &Log) {
    listener.set_nonblocking(true).unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let acceptor = acceptor();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let log = Arc::clone(log);
        let service = service_fn(move |request| {
            let response = answer(&request, is_tls, start, &log);
            async move { Ok::<_, Infallible>(response) }
        });
        let server = hyper::server::conn::http1::Builder::new();
        if !is_tls {
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        } else if let Ok(stream) = acceptor.accept(stream).await {
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    }
}

/// A site that moves to HTTPS keeps the change history of each of its pages. Old and new URLs are
/// visited, the old ones less often; nothing starves, and requests stay within the budget.
#[test]
fn issue_25_a_site_that_moves_to_https_keeps_its_past() {
    let start = Instant::now();
    let (addresses, log) = serve(start);
    let mut settings = Settings::default();
    settings.scope.sitemaps = false;
    settings.network.allow_private = true;
    let fixtures = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    settings.network.certificates = Some(fixtures.join("authority.pem"));
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings.stop.seconds = 36.0;
    settings.recrawl.on = true;
    settings.recrawl.per_second = 12.0;
    settings.recrawl.min_interval = 3600.0;
    let folder = tempfile::tempdir().unwrap();
    let date = move || {
        let days = start.elapsed().as_secs_f64() * PACE;
        Duration::from_secs(BEGIN) + Duration::from_secs_f64(days * 86_400.0)
    };
    let seeds = vec!["http://own.test/".to_owned()];
    let summary = run_with(folder.path(), settings, seeds, |settings| Seams {
        resolver: Rc::new(Loopback),
        connector: Rc::new(Ports(addresses)),
        ..seams(settings, Box::new(date))
    });
    let counters = &summary.counters;
    assert_eq!(counters.get(Counter::MovedPages), u64::from(N_PAGES));
    assert_eq!(counters.get(Counter::Failures), 0, "{counters:?}");
    assert_eq!(counters.balance(), 0);
    let mut pages: BTreeMap<String, PageInfo> = BTreeMap::new();
    list_pages(folder.path(), date().as_secs() as u32, |page| {
        pages.insert(page.url.clone().unwrap(), page);
        Ok(())
    })
    .unwrap();
    assert_eq!(pages.len(), 2 * N_PAGES as usize, "{:?}", pages.keys());
    let log = log.lock().unwrap();
    // Whatever the machine does, a page is not asked for before it is known, nor all at once.
    let late = log.iter().filter(|(time, ..)| *time > MOVE * 2);
    let late: Vec<_> = late.filter(|(.., path, _)| path != "/robots.txt").collect();
    let (mut n_old, mut n_new, mut n_known) = (0, 0, 0);
    for number in 0..N_PAGES {
        let path = match number {
            0 => "/".to_owned(),
            n => format!("/p{n}"),
        };
        let [old, new] =
            ["http", "https"].map(|scheme| &pages[&format!("{scheme}://own.test{path}")]);
        assert_eq!((old.state, old.status), ("live", 301), "{path}");
        assert_eq!((new.state, new.status), ("live", 200), "{path}");
        // A new URL that is fetched before the old one is seen to move has its past from the next
        // visit on.
        let moved = log
            .iter()
            .find(|(_, tls, of, status)| !tls && *of == path && *status == 301);
        let moved = moved.unwrap().0 + Duration::from_millis(200);
        let mut visits = log.iter().filter(|(_, tls, of, _)| *tls && *of == path);
        if visits.any(|(time, ..)| *time > moved && *time < END) {
            assert_eq!(new.first, old.first, "{path}");
            let mut before = log
                .iter()
                .filter(|(_, tls, of, status)| !tls && *of == path && *status == 200)
                .map(|(time, ..)| time.as_secs_f64() * PACE);
            let begin = before.next().unwrap();
            let days = before.next_back().unwrap_or(begin) - begin;
            let known = f64::from(new.history.unchanged + new.history.changed);
            assert!(known > 0.9 * days - 1.0, "{path}: {known} of {days} days");
            n_known += 1;
        }
        let is_changing = number % 3 == 2;
        assert_eq!(new.history.n_changes > 0.0, is_changing, "{path}: {new:?}");
        let asked = |is_tls: bool| {
            let asked = late
                .iter()
                .filter(|(_, tls, of, _)| *tls == is_tls && *of == path);
            asked.count()
        };
        assert!(asked(true) > 0, "{path} starves");
        n_old += asked(false);
        n_new += asked(true);
    }
    assert!(n_old > 0 && 2 * n_old < n_new, "{n_old} {n_new}");
    assert!(n_known > N_PAGES / 2, "{n_known}");
    let n_requests = log.len() as f64;
    assert!(n_requests < 1.05 * 12.0 * 36.0 + 10.0, "{n_requests}");
}
