//! Sites that announce changes, in virtual time with a calendar that runs 288 times as fast: what
//! announcements are worth, and what becomes of wrong ones.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use arose::mix::SplitMix;
use arose_crawl::connect::{Connect, Stream, Waiting};
use arose_crawl::counters::Counter;
use arose_crawl::resolve::DnsServers;
use arose_crawl::{Control, Crawl, Seams, Settings, Summary};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};

const N_HOSTS: u8 = 1;
const N_PAGES: u32 = 150;

/// When the world began, in seconds since 1970.
const BEGIN: u64 = 1_700_000_000;
const DAY: f64 = 86_400.0;

/// Seconds of the calendar in a second of the crawl: a day takes five minutes.
const ACCELERATION: f64 = 288.0;

/// Days of a crawl, and those before anything is measured.
const DAYS: f64 = 24.0;
const WARM: f64 = 10.0;

/// Changes and wrong announcements of a page per day.
const RATE: f64 = 0.5;
const FALSE_RATE: f64 = 0.05;

/// Days between two visits of a page on average, as the budget has it.
const EVERY: f64 = 2.0;

/// What sitemaps say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sitemaps {
    /// There are none.
    None,
    /// Four of five changes, and one wrong date in twenty days.
    Good,
    /// The same, the latest ones in a feed that the first page names.
    Feed,
    /// Every page has changed a moment ago, whenever somebody looks.
    AlwaysNow,
    /// Dates of the future and of 1970.
    Impossible,
}

/// A page and its past and future, in days since the world began.
struct Page {
    changes: Vec<f64>,
    announced: Vec<f64>,
}

impl Page {
    fn new(host: u8, number: u32) -> Self {
        let mut random = SplitMix::new(u64::from(host) << 32 | u64::from(number));
        let mut unit = move || (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
        let mut times = |rate: f64| {
            let mut times = Vec::new();
            let mut time = 0.0;
            while time < DAYS {
                time -= unit().ln() / rate;
                times.push((time, unit()));
            }
            times
        };
        let changes = times(RATE);
        let wrong = times(FALSE_RATE);
        let right = changes.iter().filter(|(_, draw)| *draw < 0.8);
        let mut announced: Vec<f64> = right.chain(&wrong).map(|(time, _)| *time).collect();
        announced.sort_by(f64::total_cmp);
        Self {
            changes: changes.into_iter().map(|(time, _)| time).collect(),
            announced,
        }
    }
}

/// Hosts `10.0.0.N` whose page 0 links to all others.
#[derive(Clone)]
struct Web {
    sitemaps: Sitemaps,
    pages: Rc<Vec<Vec<Page>>>,
    start: Instant,
    /// Days, hosts and targets of requests.
    log: Rc<RefCell<Vec<(f64, u8, String)>>>,
}

impl Web {
    fn new(sitemaps: Sitemaps) -> Self {
        let host = |host| (0..N_PAGES).map(|page| Page::new(host, page)).collect();
        Self {
            sitemaps,
            pages: Rc::new((0..N_HOSTS).map(host).collect()),
            start: Instant::now(),
            log: Rc::default(),
        }
    }

    fn day(&self) -> f64 {
        self.start.elapsed().as_secs_f64() * ACCELERATION / DAY
    }

    fn date(&self) -> Duration {
        Duration::from_secs_f64(BEGIN as f64 + self.day() * DAY)
    }

    fn respond(&self, host: u8, target: &str) -> (u16, String) {
        let now = self.day();
        self.log.borrow_mut().push((now, host, target.to_owned()));
        match target {
            "/robots.txt" if matches!(self.sitemaps, Sitemaps::None | Sitemaps::Feed) => {
                (200, String::new())
            }
            "/robots.txt" => (200, format!("Sitemap: http://10.0.0.{host}/sitemap.xml\n")),
            "/sitemap.xml" => (200, self.sitemap(host, now)),
            "/feed" => (200, self.feed(host, now)),
            _ => match target.strip_prefix("/p").and_then(|text| text.parse().ok()) {
                Some(number) if number < N_PAGES => (200, self.page(host, number, now)),
                _ => (404, "nothing".to_owned()),
            },
        }
    }

    fn sitemap(&self, host: u8, now: f64) -> String {
        let mut text = "<urlset>".to_owned();
        for (number, page) in self.pages[usize::from(host)].iter().enumerate() {
            let date = match self.sitemaps {
                Sitemaps::AlwaysNow => now,
                Sitemaps::Impossible if number % 2 == 0 => now + 1000.0,
                Sitemaps::Impossible => -19_600.0,
                _ => {
                    let n = page.announced.partition_point(|time| *time <= now);
                    n.checked_sub(1).map_or(0.0, |last| page.announced[last])
                }
            };
            let seconds = BEGIN as f64 + date * DAY;
            let date = arose_corpus::time::format(seconds as i64);
            let url = format!("http://10.0.0.{host}/p{number}");
            text.push_str(&format!(
                "<url><loc>{url}</loc><lastmod>{date}</lastmod></url>"
            ));
        }
        text
    }

    /// The latest forty announcements, as RSS with the dates of mail in another time zone.
    fn feed(&self, host: u8, now: f64) -> String {
        let mut latest: Vec<(f64, usize)> = Vec::new();
        for (number, page) in self.pages[usize::from(host)].iter().enumerate() {
            let n = page.announced.partition_point(|time| *time <= now);
            let last = n.checked_sub(1).map(|last| page.announced[last]);
            latest.extend(last.map(|time| (time, number)));
        }
        latest.sort_by(|a, b| b.0.total_cmp(&a.0));
        let items: Vec<String> = latest
            .iter()
            .take(40)
            .map(|(time, number)| {
                let seconds = BEGIN as i64 + (time * DAY) as i64 - 5 * 3600;
                let text = arose_corpus::time::format(seconds);
                // As in 2023-11-14T22:13:20Z; the world ends in December.
                let month = if &text[5..7] == "11" { "Nov" } else { "Dec" };
                let (year, day, clock) = (&text[..4], &text[8..10], &text[11..19]);
                let date = format!("{day} {month} {year} {clock} -0500");
                format!("<item><link>/p{number}</link><pubDate>{date}</pubDate></item>")
            })
            .collect();
        format!("<rss><channel>{}</channel></rss>", items.concat())
    }

    fn page(&self, host: u8, number: u32, now: f64) -> String {
        let page = &self.pages[usize::from(host)][number as usize];
        let version = page.changes.partition_point(|time| *time <= now);
        let seed = u64::from(host) << 48 | u64::from(number) << 24 | version as u64;
        let mut random = SplitMix::new(seed);
        let words: Vec<String> = (0..60)
            .map(|_| format!("w{}", random.below(5000)))
            .collect();
        let links: Vec<String> = match number {
            0 => (1..N_PAGES)
                .map(|n| format!("<a href=/p{n}>page</a>"))
                .collect(),
            _ => Vec::new(),
        };
        let head = match (self.sitemaps, number) {
            (Sitemaps::Feed, 0) => "<link rel=alternate type=application/rss+xml href=/feed>",
            _ => "",
        };
        format!("{head}<p>{} {}", words.join(" "), links.join(" "))
    }

    /// The share of pages that were up to date, by the requests that came.
    fn fresh(&self) -> f64 {
        let mut visits = vec![vec![Vec::new(); N_PAGES as usize]; usize::from(N_HOSTS)];
        for (day, host, target) in self.log.borrow().iter() {
            let number = target
                .strip_prefix("/p")
                .and_then(|text| text.parse::<usize>().ok());
            if let Some(number) = number {
                visits[usize::from(*host)][number].push(*day);
            }
        }
        let (mut fresh, mut total) = (0.0, 0.0);
        for (pages, visits) in self.pages.iter().zip(&visits) {
            for (page, visits) in pages.iter().zip(visits) {
                for (at, day) in visits.iter().enumerate() {
                    let until = visits.get(at + 1).map_or(DAYS, |next| next.min(DAYS));
                    let change = page.changes.partition_point(|time| time <= day);
                    let changed = page.changes.get(change).map_or(DAYS, |time| *time);
                    fresh += (changed.min(until) - day.max(WARM)).max(0.0);
                    total += (until - day.max(WARM)).max(0.0);
                }
            }
        }
        fresh / total
    }
}

impl Connect for Web {
    fn connect(&self, address: SocketAddr) -> Waiting<'_, std::io::Result<Box<dyn Stream>>> {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let IpAddr::V4(ip) = address.ip() else {
            unreachable!("all hosts are numbers")
        };
        let web = self.clone();
        tokio::task::spawn_local(async move {
            // Whatever ends a connection, it has ended.
            let _ = serve(web, ip.octets()[3], theirs).await;
        });
        Box::pin(async move { Ok(Box::new(ours) as Box<dyn Stream>) })
    }
}

async fn serve(web: Web, host: u8, mut stream: DuplexStream) -> std::io::Result<()> {
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await?);
        }
        sleep(Duration::from_millis(5)).await;
        let request = String::from_utf8_lossy(&request);
        let target = request.split(' ').nth(1).unwrap_or_default();
        let (status, body) = web.respond(host, target);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n"
        );
        stream
            .write_all(&[head.as_bytes(), body.as_bytes()].concat())
            .await?;
    }
}

/// Crawls for 24 days with as many requests as give each page one in two days.
fn crawl(folder: &Path, sitemaps: Sitemaps) -> (Summary, Web) {
    let seconds = DAYS * DAY / ACCELERATION;
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.scope.sitemaps = sitemaps != Sitemaps::None;
    settings.stop.seconds = seconds;
    settings.polite.factor = 0.0;
    settings.polite.delay = 0.2;
    settings.polite.address_delay = 0.2;
    settings.recrawl.on = true;
    let n_pages = f64::from(N_HOSTS) * f64::from(N_PAGES);
    settings.recrawl.per_second = n_pages / EVERY / DAY * ACCELERATION;
    settings.recrawl.min_interval = 3600.0;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let web = Web::new(sitemaps);
        let clock = web.clone();
        let seams = Seams {
            connector: Rc::new(web.clone()),
            resolver: Rc::new(DnsServers::new(&["127.0.0.1:53".parse().unwrap()]).unwrap()),
            clock: Box::new(move || clock.date()),
            priority: Box::new(|_, depth| depth),
            is_ours: Box::new(|_| true),
        };
        let mut crawl = Crawl::open(folder, settings, seams).unwrap();
        let seeds = (0..N_HOSTS).map(|host| format!("http://10.0.0.{host}/p0"));
        crawl.add_seeds(seeds).unwrap();
        let summary = crawl.run(&Control::default()).await.unwrap();
        drop(crawl);
        (summary, web)
    })
}

/// Lists whose dates announce four of five changes and are wrong once in twenty days keep at least
/// 1.2 times as many pages up to date as the same requests without them, those for lists included.
/// Sitemaps and feeds are such lists.
#[test]
fn announced_changes_are_found_sooner() {
    let folder = tempfile::tempdir().unwrap();
    let (_, without) = crawl(&folder.path().join("a"), Sitemaps::None);
    for (name, sitemaps, list) in [
        ("b", Sitemaps::Good, "/sitemap.xml"),
        ("c", Sitemaps::Feed, "/feed"),
    ] {
        let (summary, with) = crawl(&folder.path().join(name), sitemaps);
        let (before, after) = (without.fresh(), with.fresh());
        let (n_before, n_after) = (without.log.borrow().len(), with.log.borrow().len());
        let log = with.log.borrow();
        let n_lists = log.iter().filter(|(.., target)| target == list).count();
        println!(
            "{before:.3} with {n_before} requests, {after:.3} with {n_after}, {n_lists} of them \
             for {list}"
        );
        assert!(
            n_after as f64 <= 1.02 * n_before as f64,
            "{n_before} {n_after}"
        );
        assert!(
            summary.counters.get(Counter::Signals) > 600,
            "{:?}",
            summary.counters
        );
        assert!(after >= 1.2 * before, "{list}: {before} {after}");
    }
}

/// Dates that say nothing cost nothing but the requests for sitemaps, and no page starves.
#[test]
fn senseless_dates_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (_, without) = crawl(&folder.path().join("a"), Sitemaps::None);
    for (name, sitemaps) in [("b", Sitemaps::AlwaysNow), ("c", Sitemaps::Impossible)] {
        let (summary, with) = crawl(&folder.path().join(name), sitemaps);
        let (before, after) = (without.fresh(), with.fresh());
        println!(
            "{sitemaps:?}: {before:.3} {after:.3} {:?}",
            summary.counters
        );
        assert!(after >= 0.93 * before, "{sitemaps:?}: {before} {after}");
        let n_bad = summary.counters.get(Counter::ImplausibleSignals);
        assert_eq!(n_bad > 0, sitemaps == Sitemaps::Impossible);
        let log = with.log.borrow();
        for number in 0..N_PAGES {
            let target = format!("/p{number}");
            let visits = log
                .iter()
                .filter(|(_, host, other)| *host == 0 && *other == target);
            let days: Vec<f64> = visits.map(|(day, ..)| *day).collect();
            let longest = days
                .windows(2)
                .map(|pair| pair[1] - pair[0])
                .fold(0.0, f64::max);
            assert!(longest < 5.0 * EVERY, "{target} waited {longest} days");
        }
    }
}
