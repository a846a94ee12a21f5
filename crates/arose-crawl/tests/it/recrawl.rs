//! Pages that are visited again, in virtual time: a simulated web whose pages change.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arose::mix::SplitMix;
use arose_crawl::connect::{Connect, Stream, Waiting};
use arose_crawl::counters::Counter;
use arose_crawl::resolve::NameServers;
use arose_crawl::{
    Control, Crawl, End, PageInfo, Refresh, Seams, Settings, Summary, index_lines, list_pages,
};
use arose_dedup::disk::Recording;
use testweb::{Config, Kind, PageCount, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};

use crate::power::{CUTS, Cut, Disk, check_references, restore, survivors};

const N_HOSTS: u8 = 4;
const N_PAGES: u32 = 12;

/// When the world began, in seconds since 1970.
const BEGIN: u64 = 1_700_000_000;

/// What a page does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    /// Stays as it is.
    Constant,
    /// Has other words every so many seconds.
    Changing(u64),
    /// Has other bytes with every request, and the same words.
    Noisy,
    /// Is gone after so many seconds.
    Leaving(u64),
    /// Says "not modified" whatever happens, and has other words every so many seconds.
    Lying(u64),
    /// Is at `/q` instead of `/p` after so many seconds.
    Moving(u64),
    /// Has senseless validators: tags of 64 kB and dates of the future and of 1970.
    Senseless,
    /// Has another word in place of one of 2,000 every so many seconds.
    Drifting(u64),
    /// Has the words of two versions in turn, each for so many seconds.
    Returning(u64),
    /// Is forbidden by robots.txt after so many seconds.
    Closing(u64),
}

/// Time, host, target and status of a request.
type Request = (u64, u8, String, u16);

/// Hosts `10.0.0.N` whose page 0 links to all others.
#[derive(Clone)]
struct Web {
    page: fn(u8, u32) -> Page,
    /// When the runs of the crawl began.
    began: Duration,
    start: Instant,
    log: Rc<RefCell<Vec<Request>>>,
}

impl Web {
    fn new(page: fn(u8, u32) -> Page, began: u64) -> Self {
        Self {
            page,
            began: Duration::from_secs(began),
            start: Instant::now(),
            log: Rc::default(),
        }
    }

    fn date(&self) -> Duration {
        self.began + self.start.elapsed()
    }

    fn respond(&self, host: u8, request: &str) -> Vec<u8> {
        let target = request.split(' ').nth(1).unwrap_or_default().to_owned();
        let now = self.date().as_secs();
        let condition = request
            .lines()
            .find_map(|line| line.strip_prefix("If-None-Match: "));
        let (status, etag, body) = self.page_at(host, &target, now);
        let is_same = condition.is_some_and(|tag| tag.trim() == etag);
        let kind = self.kind(host, &target);
        let lies = matches!(kind, Some(Page::Lying(_) | Page::Senseless));
        let is_asked = condition.is_some() || request.contains("\r\nIf-Modified-Since: ");
        let status = match is_asked && (is_same || lies) {
            true => 304,
            false => status,
        };
        tell(&target);
        let location = match status {
            301 => format!("Location: /q{}\r\n", &target[2..]),
            _ => String::new(),
        };
        let etag = match kind {
            Some(Page::Senseless) => format!("\"{}\"", "x".repeat(64 << 10)),
            _ => etag,
        };
        let modified = match kind {
            Some(Page::Senseless) if host.is_multiple_of(2) => {
                "Last-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
            }
            Some(Page::Senseless) => "Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
            _ => "",
        };
        self.log.borrow_mut().push((now, host, target, status));
        let body = if status == 304 { String::new() } else { body };
        let tag = match etag.is_empty() {
            true => String::new(),
            false => format!("ETag: {etag}\r\n"),
        };
        let length = match status {
            304 => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: text/html\r\n{tag}{modified}{location}{length}\r\n"
        );
        [head.as_bytes(), body.as_bytes()].concat()
    }

    fn robots(&self, host: u8, now: u64) -> String {
        let is_closed = |page: &u32| match (self.page)(host, *page) {
            Page::Closing(after) => now - BEGIN > after,
            _ => false,
        };
        let closed = (0..N_PAGES).filter(is_closed);
        let lines = closed.map(|page| format!("Disallow: /p{page}$\n"));
        format!("User-agent: *\n{}", lines.collect::<String>())
    }

    fn kind(&self, host: u8, target: &str) -> Option<Page> {
        let number = target.strip_prefix(['/'])?.strip_prefix(['p', 'q'])?;
        Some((self.page)(host, number.parse().ok()?))
    }

    fn page_at(&self, host: u8, target: &str, now: u64) -> (u16, String, String) {
        let Some(kind) = self.kind(host, target) else {
            return match target {
                "/robots.txt" => (200, String::new(), self.robots(host, now)),
                _ => (404, String::new(), "nothing".to_owned()),
            };
        };
        let age = now - BEGIN;
        let version = match kind {
            Page::Changing(every) | Page::Lying(every) | Page::Drifting(every) => age / every,
            Page::Returning(every) => age / every % 2,
            _ => 0,
        };
        if let Page::Leaving(after) = kind
            && age > after
        {
            return (410, String::new(), "gone".to_owned());
        }
        let is_old = target.starts_with("/p");
        match kind {
            Page::Moving(after) if is_old == (age <= after) => {}
            Page::Moving(_) if is_old => return (301, String::new(), "elsewhere".to_owned()),
            _ if is_old => {}
            _ => return (404, String::new(), "nothing".to_owned()),
        }
        let number: u32 = target[2..].parse().unwrap();
        let name = u64::from(host) << 40 | u64::from(number) << 20;
        let words = match kind {
            Page::Drifting(_) => drifting_words(name, version),
            _ => words(name | version),
        };
        let links: Vec<String> = match number {
            0 => (1..N_PAGES)
                .map(|n| format!("<a href=/p{n}>page</a>"))
                .collect(),
            _ => Vec::new(),
        };
        let noise = match kind {
            Page::Noisy => format!("<!-- {now} {} -->", self.log.borrow().len()),
            _ => String::new(),
        };
        let etag = match kind {
            Page::Noisy | Page::Senseless | Page::Drifting(_) => String::new(),
            _ => format!("\"{host}-{number}-{version}\""),
        };
        (200, etag, format!("{noise}<p>{words} {}", links.join(" ")))
    }
}

/// 2,000 words, of which as many as the version says are other ones than at first. By shingles of
/// five words, one of them changes about 9 of 384 simhash bits, and six change 12.
fn drifting_words(seed: u64, version: u64) -> String {
    let word = |n: u64| {
        let is_new = u64::from(n < version);
        format!("w{}", SplitMix::new(seed ^ n << 1 ^ is_new).below(1 << 30))
    };
    let words: Vec<String> = (0..2000).map(word).collect();
    words.join(" ")
}

fn words(seed: u64) -> String {
    let mut random = SplitMix::new(seed);
    let words: Vec<String> = (0..60)
        .map(|_| format!("w{}", random.below(5000)))
        .collect();
    words.join(" ")
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
        sleep(Duration::from_millis(20)).await;
        let response = web.respond(host, &String::from_utf8_lossy(&request));
        stream.write_all(&response).await?;
    }
}

fn settings(seconds: f64) -> Settings {
    let mut settings = Settings::default();
    settings.machine.threads = 0;
    settings.scope.sitemaps = false;
    settings.stop.seconds = seconds;
    settings.polite.factor = 0.0;
    settings.budget.pages = 1000;
    settings.recrawl.on = true;
    settings.recrawl.per_second = 0.2;
    settings.recrawl.min_interval = 60.0;
    settings
}

/// Crawls in virtual time from a date on.
fn crawl(
    folder: &Path,
    began: u64,
    settings: Settings,
    page: fn(u8, u32) -> Page,
) -> (Summary, Vec<Request>) {
    crawl_and(folder, began, settings, page, |_| {})
}

/// The same, and something is done whenever the crawl looks at the calendar.
fn crawl_and(
    folder: &Path,
    began: u64,
    settings: Settings,
    page: fn(u8, u32) -> Page,
    at: impl Fn(u64) + 'static,
) -> (Summary, Vec<Request>) {
    let clock = move |date: Duration| {
        at(date.as_secs());
        date
    };
    crawl_by(folder, began, settings, page, clock)
}

/// The same, by a calendar that may be wrong.
fn crawl_by(
    folder: &Path,
    began: u64,
    settings: Settings,
    page: fn(u8, u32) -> Page,
    calendar: impl Fn(Duration) -> Duration + 'static,
) -> (Summary, Vec<Request>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let web = Web::new(page, began);
        let clock = web.clone();
        let seams = Seams {
            connector: Rc::new(web.clone()),
            resolver: Rc::new(NameServers::new(&["127.0.0.1:53".parse().unwrap()]).unwrap()),
            clock: Box::new(move || calendar(clock.date())),
            priority: Box::new(|_, depth| depth),
            is_ours: Box::new(|_| true),
        };
        let mut crawl = Crawl::open(folder, settings, seams).unwrap();
        let seeds = (0..N_HOSTS).map(|host| format!("http://10.0.0.{host}/p0"));
        crawl.add_seeds(seeds).unwrap();
        let summary = crawl.run(&Control::default()).await.unwrap();
        drop(crawl);
        (summary, web.log.take())
    })
}

fn listed(folder: &Path, date: u64) -> BTreeMap<String, PageInfo> {
    let mut pages = BTreeMap::new();
    list_pages(folder, date as u32, |page| {
        let url = page.url.clone().unwrap();
        assert!(pages.insert(url.clone(), page).is_none(), "{url} twice");
        Ok(())
    })
    .unwrap();
    pages
}

/// Responses and revisit records of each URL, by the index of the archive.
fn archived(folder: &Path) -> BTreeMap<String, (u16, u16)> {
    let mut records: BTreeMap<String, (u16, u16)> = BTreeMap::new();
    for line in index_lines(folder).unwrap() {
        let json: serde_json::Value =
            serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        let (full, again) = records
            .entry(json["url"].as_str().unwrap().to_owned())
            .or_default();
        match json["mime"] == "warc/revisit" {
            true => *again += 1,
            false => *full += 1,
        }
    }
    records
}

/// Every interval between two visits was counted once, every version is in the archive once, and
/// no page has more changes than versions.
#[track_caller]
fn check_statistics(folder: &Path, date: u64) {
    let archived = archived(folder);
    for (url, page) in listed(folder, date) {
        let days = f64::from(page.last - page.first) / 86_400.0;
        let counted = f64::from(page.history.unchanged + page.history.changed);
        assert!(
            (counted - days).abs() <= 1e-4 * days + 1e-5,
            "{url}: {counted} of {days} days"
        );
        assert_eq!(
            page.history.n_changes,
            f32::from(page.n_versions - 1),
            "{url}"
        );
        assert_eq!(
            archived[&url].0, page.n_versions,
            "{url}: {:?}",
            archived[&url]
        );
    }
}

fn mixed(host: u8, page: u32) -> Page {
    match (host, page % 4) {
        (_, 1) => Page::Changing(1200),
        (_, 2) => Page::Noisy,
        (0, 3) => Page::Leaving(3000),
        _ => Page::Constant,
    }
}

/// Changes of content are found, other bytes are none, and the budget is spent and no more. What is
/// the same is a revisit record, what has changed is stored.
#[test]
fn changes_are_changes_of_content() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = 3.0 * 3600.0;
    let (summary, log) = crawl(folder.path(), BEGIN, settings(seconds), mixed);
    assert_eq!(summary.end, End::Limit);
    let counters = &summary.counters;
    let end = BEGIN + seconds as u64;
    let pages = listed(folder.path(), end);
    assert_eq!(pages.len(), usize::from(N_HOSTS) * N_PAGES as usize);
    for (url, page) in &pages {
        let number: u32 = url.rsplit("/p").next().unwrap().parse().unwrap();
        let host: u8 = url["http://10.0.0.".len()..]
            .split('/')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        match mixed(host, number) {
            Page::Changing(_) => assert!(page.n_versions > 3, "{url}: {page:?}"),
            Page::Leaving(_) => assert_eq!((page.state, page.status), ("gone", 410), "{url}"),
            _ => assert_eq!((page.n_versions, page.history.n_changes), (1, 0.0), "{url}"),
        }
        assert!(
            page.history.unchanged > 0.0,
            "{url} was never visited again"
        );
    }
    // A page that is gone is asked for three times, each time after twice the pause before.
    for number in [3, 7, 11] {
        let target = format!("/p{number}");
        let asked = log
            .iter()
            .filter(|(_, host, other, _)| *host == 0 && *other == target);
        let (gone, there): (Vec<_>, Vec<_>) = asked.partition(|(.., status)| *status == 410);
        let times = there.last().copied().into_iter().chain(gone);
        let times: Vec<u64> = times.map(|(time, ..)| *time).collect();
        assert_eq!(times.len(), 4, "{target}: {times:?}");
        for three in times.windows(3) {
            let [before, after] = [three[1] - three[0], three[2] - three[1]];
            assert!(after + 2 >= 2 * before, "{target}: {times:?}");
        }
    }
    // Within five per cent of the budget over any ten minutes, from the first request on.
    let pages_asked = log
        .iter()
        .filter(|(_, _, target, _)| target != "/robots.txt");
    let times: Vec<u64> = pages_asked.map(|(time, ..)| time - BEGIN).collect();
    for start in (0..seconds as u64 - 600).step_by(10) {
        let n = times
            .iter()
            .filter(|time| (start..start + 600).contains(*time))
            .count();
        assert!(
            (114..=126).contains(&n),
            "{n} requests in ten minutes from {start}"
        );
    }
    assert!(counters.get(Counter::NotModified) > 100, "{counters:?}");
    assert_eq!(counters.get(Counter::UntrustedHosts), 0);
    assert_eq!(counters.get(Counter::GonePages), 3);
    assert_eq!(counters.balance(), 0);
    check_references(folder.path());
    let archived = archived(folder.path());
    for (url, page) in pages.iter().filter(|(_, page)| page.state == "live") {
        assert_eq!(archived[url].0, page.n_versions, "{url}");
    }
}

/// The times at which each page was asked for, by host and target.
fn times(log: &[Request]) -> BTreeMap<(u8, &str), Vec<u64>> {
    let mut times: BTreeMap<(u8, &str), Vec<u64>> = BTreeMap::new();
    for (time, host, target, _) in log {
        if target != "/robots.txt" {
            times.entry((*host, target)).or_default().push(*time);
        }
    }
    times
}

/// Without a rate, every page is visited once in so many days on average, however often pages
/// change, and no page before the minimum interval is over.
#[test]
fn issue_25_every_page_has_its_visits() {
    let folder = tempfile::tempdir().unwrap();
    let (every, least) = (1800, 900);
    let mut settings = settings(6.0 * 3600.0);
    settings.recrawl.per_second = 0.0;
    settings.recrawl.every = every as f64 / 86_400.0;
    settings.recrawl.min_interval = least as f64;
    let (summary, log) = crawl(folder.path(), BEGIN, settings, unvalidated);
    let times = times(&log);
    let n_pages = u64::from(N_HOSTS) * u64::from(N_PAGES);
    assert_eq!(times.len() as u64, n_pages);
    let n_visits = summary.counters.get(Counter::Revisits);
    let expected = n_pages * 6 * 3600 / every;
    assert!(
        n_visits * 100 >= expected * 95 && n_visits * 100 <= expected * 105,
        "{n_visits} visits, expected {expected}"
    );
    for (page, times) in times {
        assert!(times.len() > 4, "{page:?}: {times:?}");
        for pair in times.windows(2) {
            assert!(pair[1] - pair[0] >= least, "{page:?}: {times:?}");
        }
    }
}

/// Pages without validators: a response "not modified" may be checked at once by a second request.
fn unvalidated(_: u8, page: u32) -> Page {
    match page % 2 {
        0 => Page::Noisy,
        _ => Page::Drifting(300),
    }
}

fn mixed_for_good(_: u8, page: u32) -> Page {
    match page % 3 {
        1 => Page::Changing(1200),
        2 => Page::Noisy,
        _ => Page::Constant,
    }
}

/// While new URLs wait, visits have their share of the requests, and afterwards all of them.
#[test]
fn issue_25_visits_and_new_urls_share_the_budget() {
    for share in [0.25, 0.75] {
        let folder = tempfile::tempdir().unwrap();
        let rate = 0.02;
        let mut settings = settings(4.0 * 3600.0);
        settings.recrawl.per_second = rate;
        settings.recrawl.share = share;
        let (_, log) = crawl(folder.path(), BEGIN, settings, mixed_for_good);
        let times = times(&log);
        assert_eq!(times.len(), usize::from(N_HOSTS) * N_PAGES as usize);
        let last_new = times.values().map(|times| times[0]).max().unwrap();
        let n = |times: &mut dyn Iterator<Item = u64>| times.count() as f64;
        let is_early = |time: &u64| *time <= last_new;
        let n_all = n(&mut times.values().flatten().copied().filter(is_early));
        let n_again = n_all - times.len() as f64;
        println!("{share}: {n_again} of {n_all} requests until {last_new} are visits");
        assert!((n_again / n_all - share).abs() < 0.1, "{n_again} {n_all}");
        let seconds = (last_new - BEGIN) as f64;
        assert!(n_all <= 1.05 * rate * seconds + 4.0, "{n_all} in {seconds}");
        let n_late = n(&mut times.values().flatten().copied()) - n_all;
        let seconds = 4.0 * 3600.0 - seconds;
        let expected = rate * seconds;
        assert!((n_late / expected - 1.0).abs() < 0.1, "{n_late} {expected}");
    }
}

fn lying(_: u8, page: u32) -> Page {
    match page {
        0 => Page::Constant,
        _ => Page::Lying(600),
    }
}

/// Servers that say "not modified" of pages that have changed are found out, and not asked so
/// again.
#[test]
fn liars_are_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(2.0 * 3600.0);
    settings.recrawl.per_second = 1.0;
    settings.polite.delay = 0.2;
    let (summary, log) = crawl(folder.path(), BEGIN, settings, lying);
    let counters = &summary.counters;
    assert_eq!(
        counters.get(Counter::UntrustedHosts),
        u64::from(N_HOSTS),
        "{counters:?}"
    );
    let late = log.iter().filter(|(time, ..)| *time > BEGIN + 5400);
    assert!(late.clone().count() > 1000);
    assert_eq!(late.filter(|(.., status)| *status == 304).count(), 0);
}

fn changing(_: u8, page: u32) -> Page {
    match page % 2 {
        0 => Page::Changing(30),
        _ => Page::Constant,
    }
}

/// Visits by the second, and small files, so that much happens.
fn hurried(seconds: f64, n_run: u64) -> Settings {
    let mut settings = settings(seconds);
    settings.polite.delay = 0.5;
    settings.recrawl.per_second = 2.0;
    settings.recrawl.min_interval = 10.0;
    settings.archive.compact = if n_run.is_multiple_of(2) {
        4000
    } else {
        64 << 20
    };
    settings.archive.max_file = 40_000;
    settings
}

/// At fifty moments the process is killed or the power is cut: no visit is lost or counted twice.
#[test]
fn statistics_survive_power_cuts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    let mut random = SplitMix::new(17);
    let mut disk = Disk::default();
    disk.folders.insert(root.clone());
    let mut n_run = 0;
    let mut run = |disk: &Disk| {
        restore(disk, &root);
        let recording = Recording::start(&root);
        let settings = hurried(120.0, n_run);
        let began = BEGIN + n_run * 10_000;
        n_run += 1;
        crawl(&root, began, settings, changing);
        check_statistics(&root, began + 120);
        check_references(&root);
        recording.changes()
    };
    let mut base = disk.clone();
    let mut changes = run(&base);
    for n in 0..50 {
        let at = 1 + random.below(changes.len() as u64) as usize;
        let cut: Cut = CUTS[n % CUTS.len()];
        let left = survivors(&base, &changes[..at], cut, &mut random);
        // Every few cuts what was left is the base of the next ones.
        if n % 10 == 9 {
            changes = run(&left);
            base = left;
        } else {
            run(&left);
        }
    }
}

const KILLED: &str = "AROSE_RECRAWL_KILLED";

/// Says which page is asked for, if a parent listens.
fn tell(target: &str) {
    if std::env::var_os(KILLED).is_some() {
        println!("\nasked {target}");
    }
}

/// The process that the next test kills; without a directory in the environment there is nothing
/// to do.
#[test]
fn child() {
    let Ok(text) = std::env::var(KILLED) else {
        return;
    };
    let (n_run, folder) = text.split_once(' ').unwrap();
    let n_run: u64 = n_run.parse().unwrap();
    let began = BEGIN + n_run * 10_000;
    crawl(Path::new(folder), began, hurried(1000.0, n_run), changing);
}

/// A process is killed at fifty moments, after a random number of requests: no visit is lost or
/// counted twice.
#[test]
fn statistics_survive_kills() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("crawl");
    std::fs::create_dir(&root).unwrap();
    let mut random = SplitMix::new(23);
    let mut n_visits = 0.0;
    for n_run in 0..50 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["recrawl::child", "--exact", "--nocapture"])
            .env(KILLED, format!("{n_run} {}", root.display()))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut asked = lines.filter(|line| line.as_ref().unwrap().starts_with("asked "));
        let n_asked = 1 + random.below(200) as usize;
        let last = asked.nth(n_asked);
        child.kill().unwrap();
        let end = child.wait().unwrap();
        assert!(last.is_some() && !end.success(), "{n_asked}: {end:?}");
        // The next run takes up what was left.
        let began = BEGIN + n_run * 10_000 + 5_000;
        crawl(&root, began, hurried(5.0, n_run), changing);
        check_statistics(&root, began + 5);
        check_references(&root);
        let pages = listed(&root, began + 5);
        let days: f32 = pages
            .values()
            .map(|page| page.history.unchanged + page.history.changed)
            .sum();
        assert!(days >= n_visits, "{days} days of {n_visits}");
        n_visits = days;
    }
}

/// What is known of pages, except for what no archive has: the importance, and what follows from
/// it.
fn known(pages: &BTreeMap<String, PageInfo>) -> BTreeMap<&str, String> {
    let known = |page: &PageInfo| {
        let PageInfo {
            first,
            last,
            status,
            state,
            n_versions,
            history,
            ..
        } = page;
        let days = |days: f32| (f64::from(days) * 8640.0).round() / 8640.0;
        let (unchanged, changed) = (days(history.unchanged), days(history.changed));
        format!("{first} {last} {status} {state} {n_versions} {unchanged:.4} {changed:.4}")
    };
    let pages = pages.iter();
    pages
        .map(|(url, page)| (url.as_str(), known(page)))
        .collect()
}

/// A page table that is cut or lost is reported, and repaired from the archive: the past of every
/// page is as before, and visits go on.
#[test]
fn issue_25_a_short_page_table_is_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    // The journal forgets what the table has.
    let mut first = settings(7200.0);
    first.archive.compact = 4000;
    crawl(root, BEGIN, first, mixed);
    let end = BEGIN + 7200;
    let before = listed(root, end);
    assert!(before.values().any(|page| page.state == "gone"));
    let path = root.join("pages/records");
    for n_left in [1000, 0] {
        let rows = std::fs::read(&path).unwrap();
        assert_eq!(rows.len(), 64 * before.len());
        std::fs::write(&path, &rows[..n_left]).unwrap();
        if n_left == 0 {
            std::fs::remove_dir_all(root.join("pages")).unwrap();
        }
        let mut wide = settings(1.0);
        wide.scope.reach = arose_crawl::settings::Reach::Web;
        wide.network.allow_private = true;
        let (seeds, control) = (arose_crawl::Seeds::default(), Control::default());
        let error = arose_crawl::crawl(root, wide, seeds, &control).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("pages/records") && message.contains("arose crawl repair"),
            "{message}"
        );
        let repaired = arose_crawl::repair(root, settings(1.0)).unwrap();
        let n_lost = before.len() - n_left / 64;
        assert_eq!(repaired.n_restored_pages, n_lost as u64, "{repaired:?}");
        println!("{n_lost} of {} rows restored", before.len());
        assert_eq!(known(&listed(root, end)), known(&before));
        let again = arose_crawl::repair(root, settings(1.0)).unwrap();
        assert!(again.is_sound, "{again:?}");
    }
    let began = BEGIN + 8000;
    let (summary, _) = crawl(root, began, settings(3600.0), mixed);
    assert_eq!(summary.counters.balance(), 0);
    let after = listed(root, began + 3600);
    assert_eq!(after.len(), before.len());
    for (url, page) in after {
        let is_later = u64::from(page.last) > began;
        assert_eq!(is_later, page.state != "gone", "{url}: {page:?}");
        assert!(
            page.n_versions >= before[&url].n_versions,
            "{url}: {page:?}"
        );
    }
}

/// Changes so small that each is noise add up: a page is compared with the version that is stored,
/// not with the last visit.
#[test]
fn small_changes_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let (summary, _) = crawl(
        folder.path(),
        BEGIN,
        settings(7200.0),
        |_, page| match page {
            0 => Page::Constant,
            _ => Page::Drifting(150),
        },
    );
    let counters = &summary.counters;
    let n_drifting = u64::from(N_HOSTS) * u64::from(N_PAGES - 1);
    // 48 of 2,000 words are other ones in the end: several versions, and far fewer than visits.
    assert!(counters.get(Counter::Changed) >= n_drifting, "{counters:?}");
    assert!(
        2 * counters.get(Counter::Changed) < counters.get(Counter::Revisits),
        "{counters:?}"
    );
    check_statistics(folder.path(), BEGIN + 7200);
}

/// A page that has an earlier text again has changed, although the archive stores nothing new.
#[test]
fn issue_25_pages_that_return_have_changed() {
    let folder = tempfile::tempdir().unwrap();
    crawl(
        folder.path(),
        BEGIN,
        settings(7200.0),
        |_, page| match page {
            0 => Page::Constant,
            _ => Page::Returning(1500),
        },
    );
    let pages = listed(folder.path(), BEGIN + 7200);
    for (url, page) in pages.iter().filter(|(url, _)| !url.ends_with("/p0")) {
        assert!(page.n_versions >= 4, "{url}: {page:?}");
        let visits = arose_crawl::versions(folder.path(), url).unwrap();
        let texts: Vec<&str> = visits
            .iter()
            .filter_map(|visit| visit.text.as_deref())
            .collect();
        assert_eq!(texts.len(), usize::from(page.n_versions), "{url}");
        for (n, text) in texts.iter().enumerate() {
            assert_eq!(text.trim(), texts[n % 2].trim(), "{url}");
        }
        assert_ne!(texts[0], texts[1], "{url}");
        let is_known = |visit: &&arose_crawl::PageVersion| visit.is_same == visit.text.is_none();
        assert_eq!(
            visits.iter().filter(is_known).count(),
            visits.len(),
            "{url}"
        );
    }
}

/// A page that robots.txt forbids later is not requested again, and is listed as forbidden.
#[test]
fn forbidden_pages_are_listed_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let page = |_: u8, page: u32| match page % 3 {
        1 => Page::Closing(1000),
        _ => Page::Constant,
    };
    crawl(folder.path(), BEGIN, settings(900.0), page);
    // Rules are believed for a day.
    let began = BEGIN + 2 * 86_400;
    let (summary, log) = crawl(folder.path(), began, settings(1800.0), page);
    let n_closed = u64::from(N_HOSTS) * u64::from(N_PAGES / 3);
    let counters = &summary.counters;
    assert_eq!(
        counters.get(Counter::ForbiddenPages),
        n_closed,
        "{counters:?}"
    );
    assert_eq!(counters.balance(), 0);
    let is_closed = |name: &str| name.rsplit("/p").next().unwrap().parse::<u32>().unwrap() % 3 == 1;
    for (_, host, target, _) in log
        .iter()
        .filter(|(_, _, target, _)| target != "/robots.txt")
    {
        assert!(!is_closed(target), "{target} of {host}");
    }
    for (url, page) in listed(folder.path(), began + 1800) {
        let state = if is_closed(&url) { "forbidden" } else { "live" };
        assert_eq!(page.state, state, "{url}");
    }
}

fn moving(_: u8, page: u32) -> Page {
    match page {
        0 => Page::Constant,
        n if n % 2 == 0 => Page::Moving(5400),
        _ => Page::Changing(1800),
    }
}

/// A page that has moved has its past at its new URL. The old one is still asked for, but less
/// often, and nothing starves.
#[test]
fn moved_pages_keep_their_past() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = 5.0 * 3600.0;
    let (summary, log) = crawl(folder.path(), BEGIN, settings(seconds), moving);
    let pages = listed(folder.path(), BEGIN + seconds as u64);
    let n_moved = u64::from(N_HOSTS) * u64::from((N_PAGES - 1) / 2);
    assert_eq!(summary.counters.get(Counter::MovedPages), n_moved);
    let (mut n_old, mut n_new) = (0, 0);
    for host in 0..N_HOSTS {
        for number in (2..N_PAGES).step_by(2) {
            let [old, new] = ["p", "q"].map(|name| {
                let url = format!("http://10.0.0.{host}/{name}{number}");
                &pages[&url]
            });
            assert_eq!((old.state, old.status), ("live", 301));
            assert_eq!((new.state, new.status, new.first), ("live", 200, old.first));
            // Three visits or so before it moved.
            assert!(new.history.unchanged > 0.03, "{new:?}");
            assert_eq!(new.history.n_changes, 0.0, "{new:?}");
            let asked = |name: &str| {
                let target = format!("/{name}{number}");
                let late = log.iter().filter(|(time, ..)| *time > BEGIN + 9000);
                late.filter(|(_, other, of, _)| *other == host && *of == target)
                    .count()
            };
            assert!(asked("q") > 0, "/q{number} of {host} starves");
            n_old += asked("p");
            n_new += asked("q");
        }
    }
    assert!(n_old > 0 && 2 * n_old < n_new, "{n_old} {n_new}");
    assert_eq!(summary.counters.balance(), 0);
    check_references(folder.path());
}

/// Tags of 64 kB and dates that cannot be are not sent back, and pages are visited all the same.
#[test]
fn senseless_validators_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let (summary, log) = crawl(folder.path(), BEGIN, settings(3600.0), |_, _| {
        Page::Senseless
    });
    assert!(summary.counters.get(Counter::Revisits) > 300);
    assert_eq!(summary.counters.get(Counter::NotModified), 0);
    assert_eq!(summary.counters.get(Counter::Changed), 0);
    assert!(log.iter().all(|(.., status)| *status == 200), "{log:?}");
    check_statistics(folder.path(), BEGIN + 3600);
}

/// Over HTTP: hosts whose pages change, with feeds and with sitemaps whose dates are true, always
/// now, or absent. Feeds are found on home pages, their entries and the dates announce changes,
/// dates that are always now starve no page, and the crawler stays polite. A day takes a quarter of
/// a second.
#[test]
fn issue_25_changes_over_http() {
    let server = Server::start(Config {
        kinds: vec![(Kind::Changing, 1)],
        pages: PageCount::Fixed(20),
        ..Config::plain(6)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = crate::web::settings(&server);
    settings.polite.delay = 0.01;
    settings.stop.seconds = 32.0;
    settings.recrawl.on = true;
    settings.recrawl.per_second = 80.0;
    // A fast machine would find every change by itself before the feed announces it.
    settings.recrawl.min_interval = 5.0 * 86_400.0;
    let mut seams = Seams::real(&settings).unwrap();
    let (control, start) = (Arc::clone(&server.control), std::time::Instant::now());
    seams.clock = Box::new(move || {
        let days = start.elapsed().as_secs_f64() * 4.0;
        control.set_version(days as u64);
        // Changing pages have the dates of these days.
        Duration::from_secs_f64(1_767_225_600.0 + days * 86_400.0)
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let seeds = crate::web::homes(&server);
    let summary = tokio::task::LocalSet::new().block_on(&runtime, async {
        let mut crawl = Crawl::open(folder.path(), settings, seams).unwrap();
        crawl.add_seeds(seeds.into_iter()).unwrap();
        crawl.run(&Control::default()).await.unwrap()
    });
    let n_feeds = server
        .log()
        .records
        .iter()
        .filter(|record| &*record.target == "/feed.xml" && record.status == 200)
        .count();
    let counters = &summary.counters;
    assert!(n_feeds > 12, "{n_feeds} requests for feeds: {summary:?}");
    assert!(counters.get(Counter::Signals) > 20, "{counters:?}");
    assert_eq!(counters.get(Counter::ImplausibleSignals), 0);
    assert!(counters.get(Counter::Changed) > 20, "{counters:?}");
    crate::web::check_polite(&server, Duration::from_millis(10));
    check_versions(&server, folder.path());
    server.stop().unwrap();
}

/// No page has more versions than it had, those that never changed have one, and none starves,
/// whatever dates the sitemap of its host has.
fn check_versions(server: &Server, folder: &Path) {
    let end = server.control.version();
    let mut n_of_dates: BTreeMap<String, u32> = BTreeMap::new();
    for (url, page) in listed(folder, u64::from(u32::MAX)) {
        let Some(id) = crate::web::page_of(server, &url) else {
            continue;
        };
        let steps = (1..=end).filter(|&step| server.web.page_version(id, step) == step);
        let n_most = 1 + steps.count();
        let n_versions = usize::from(page.n_versions);
        assert!((1..=n_most).contains(&n_versions), "{url}: {page:?}");
        let days = f64::from(page.last - page.first) / 86_400.0;
        assert!(days > 0.5 * end as f64, "{url} starves: {page:?}");
        let dates = format!("{:?}", server.web.dates(id.host));
        *n_of_dates.entry(dates).or_default() += 1;
    }
    println!("{n_of_dates:?}");
    assert_eq!(n_of_dates.len(), 3, "{n_of_dates:?}");
}

/// A running crawl asks for a page that somebody wants within a second and the delay of its host.
#[test]
fn refresh_starts_within_the_delay_of_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let (at, order) = (BEGIN + 900, folder.path().join("refresh"));
    let is_given = Cell::new(false);
    let settings = settings(1200.0);
    let delay = settings.polite.delay.ceil() as u64;
    let (_, log) = crawl_and(folder.path(), BEGIN, settings, changing, move |now| {
        if now >= at && !is_given.replace(true) {
            std::fs::write(&order, "http://10.0.0.2/p7\nhttp://10.0.0.3/p9\n").unwrap();
        }
    });
    for (host, page) in [(2, "/p7"), (3, "/p9")] {
        let first = log
            .iter()
            .find(|(time, other, target, _)| *time >= at && *other == host && target == page);
        let (time, ..) = first.expect("the page was wanted");
        assert!(*time <= at + 2 + delay, "{page} after {} s", time - at);
    }
}

/// If more visits are due than a host may be asked for, new URLs still have their share of its
/// requests.
#[test]
fn issue_25_new_urls_do_not_starve() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(1300.0);
    settings.polite.delay = 30.0;
    settings.recrawl.per_second = 1.0;
    let (_, log) = crawl(folder.path(), BEGIN, settings, changing);
    let times = times(&log);
    assert_eq!(times.len(), usize::from(N_HOSTS) * N_PAGES as usize);
    for host in 0..N_HOSTS {
        let of_host = || times.iter().filter(|((of, _), _)| *of == host);
        let last_new = of_host().map(|(_, times)| times[0]).max().unwrap();
        let all = of_host().flat_map(|(_, times)| times);
        let n_until = all.filter(|time| **time <= last_new).count();
        // Twelve of them are new; the first few have no others to share with.
        assert!(
            (16..=25).contains(&n_until),
            "{host}: {n_until} until {last_new}"
        );
    }
}

/// Pages that somebody wants and that wait behind many others go before them, those of earlier
/// orders first, also in the next run.
#[test]
fn issue_25_refresh_moves_queued_pages_forward() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(1300.0);
    // More visits are due than hosts can be asked for: ten pages wait at each.
    settings.polite.delay = 30.0;
    settings.recrawl.per_second = 1.0;
    let urls = |numbers: &[u32]| -> String {
        let url = |n| format!("http://10.0.0.2/p{n}\n");
        numbers.iter().map(url).collect()
    };
    let order = folder.path().join("refresh");
    let n_given = Cell::new(0);
    let orders = [
        (905, urls(&[3, 8])),
        (909, urls(&[5, 3])),
        (1294, urls(&[7, 9])),
    ];
    let give = move |now: u64| {
        if let Some((at, text)) = orders.get(n_given.get())
            && now >= BEGIN + at
            && !order.exists()
        {
            std::fs::write(&order, text).unwrap();
            n_given.set(n_given.get() + 1);
        }
    };
    let (_, log) = crawl_and(folder.path(), BEGIN, settings.clone(), changing, give);
    let next = |log: &[Request], at: u64, n: usize| -> Vec<String> {
        let of_host = log
            .iter()
            .filter(|(time, host, ..)| *time > at && *host == 2);
        let targets = of_host.map(|(_, _, target, _)| target.clone());
        targets
            .filter(|target| target != "/robots.txt")
            .take(n)
            .collect()
    };
    // Every thirty seconds there is a request: at 901, 931 and so on.
    let mut found = next(&log, BEGIN + 905, 3);
    found[..2].sort();
    assert_eq!(found, ["/p3", "/p8", "/p5"], "{log:?}");
    let began = BEGIN + 2000;
    let (_, log) = crawl(folder.path(), began, settings, changing);
    let mut found = next(&log, began, 2);
    found.sort();
    assert_eq!(found, ["/p7", "/p9"]);
}

/// A page that somebody wants is visited as soon as its host may be asked, whatever else is due.
#[test]
fn refresh_goes_to_the_front() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = settings(300.0);
    first.recrawl.on = false;
    crawl(folder.path(), BEGIN, first, changing);
    let before = listed(folder.path(), BEGIN + 1000);
    let url = "http://10.0.0.2/p7".to_owned();
    let unknown = "http://10.0.0.2/other".to_owned();
    let answers = arose_crawl::refresh(folder.path(), &[url.clone(), unknown]).unwrap();
    assert_eq!(answers[0], (url.clone(), Refresh::Next));
    // Nothing else is visited: the crawl does not visit pages again.
    let mut second = settings(60.0);
    second.recrawl.on = false;
    let began = BEGIN + 5000;
    let (summary, log) = crawl(folder.path(), began, second, changing);
    let asked: Vec<_> = log
        .iter()
        .filter(|(_, _, target, _)| target != "/robots.txt")
        .collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!((asked[0].1, asked[0].2.as_str()), (2, "/p7"));
    // Two seconds for the order, one for the host, which rests when a crawl is opened again.
    assert!(asked[0].0 <= began + 4, "{asked:?}");
    assert_eq!(summary.counters.get(Counter::Revisits), 1);
    let after = listed(folder.path(), BEGIN + 6000);
    for (other, page) in &after {
        assert_eq!(page.last > before[other].last, *other == url, "{other}");
    }
    let text = std::fs::read_to_string(folder.path().join("refresh.answer")).unwrap();
    assert!(
        text.lines()
            .any(|line| line == "unknown http://10.0.0.2/other"),
        "{text}"
    );
}

/// Dates from a clock that was wrong starve no page.
#[test]
fn clocks_that_jump_are_survived() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = settings(300.0);
    first.recrawl.on = false;
    // A year ahead, then back.
    crawl(folder.path(), BEGIN + 31_536_000, first, changing);
    let (summary, _) = crawl(folder.path(), BEGIN + 1000, settings(1800.0), changing);
    let n_pages = u64::from(N_HOSTS) * u64::from(N_PAGES);
    assert!(
        summary.counters.get(Counter::Revisits) >= n_pages,
        "{:?}",
        summary.counters
    );
    let pages = listed(folder.path(), BEGIN + 3000);
    assert!(
        pages
            .values()
            .all(|page| u64::from(page.last) < BEGIN + 10_000)
    );
    assert!(pages.values().all(|page| page.history.unchanged < 1.0));
}

/// A clock that is a year ahead for ten minutes, and later ten days behind, while the crawl runs:
/// visits go on at the same rate, and every page has its turn afterwards.
#[test]
fn issue_25_clocks_that_jump_during_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let (day, hour) = (86_400, 3600);
    let calendar = move |date: Duration| match date.as_secs() - BEGIN {
        1800..2400 => date + Duration::from_secs(365 * day),
        3600..4200 => date - Duration::from_secs(10 * day),
        _ => date,
    };
    let settings = settings(2.0 * hour as f64);
    let rate = settings.recrawl.per_second;
    let (_, log) = crawl_by(folder.path(), BEGIN, settings, mixed_for_good, calendar);
    let times = times(&log);
    assert_eq!(times.len(), usize::from(N_HOSTS) * N_PAGES as usize);
    let starts = (0..2 * hour - 600).step_by(600);
    for start in starts.map(|start| BEGIN + start) {
        let all = times.values().flatten();
        let n = all
            .filter(|time| (start..start + 600).contains(*time))
            .count();
        assert!(n as f64 <= 1.1 * 600.0 * rate, "{n} requests from {start}");
    }
    for (page, times) in &times {
        let n_late = times.iter().filter(|time| **time > BEGIN + 4200).count();
        assert!(n_late > 0, "{page:?} starves: {times:?}");
    }
    for (url, page) in listed(folder.path(), BEGIN + 2 * hour) {
        assert!(u64::from(page.last) <= BEGIN + 2 * hour, "{url}: {page:?}");
    }
}
