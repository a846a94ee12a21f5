//! Tests of pages that are visited again: `arose crawl pages`, `plan`, `refresh` and `watch`, and
//! which versions `arose search`, `serve` and `dedup` see.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The site: a home page, and pages that stay, change, disappear and move when `phase` is 1.
struct Site {
    phase: Arc<AtomicU32>,
    home: String,
    /// The paths that were requested.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    /// Serves the site for as long as the process lives.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let home = format!("http://{}/", listener.local_addr().unwrap());
        let phase = Arc::new(AtomicU32::new(0));
        let asked = Arc::default();
        let (now, log) = (Arc::clone(&phase), Arc::clone(&asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                // A client that disconnects is not an error of the site.
                let _ = answer(stream.unwrap(), now.load(Ordering::Relaxed), &log);
            }
        });
        Self { phase, home, asked }
    }

    fn url(&self, page: &str) -> String {
        format!("{}{page}", self.home)
    }

    /// How often a path was requested.
    fn n_asked(&self, path: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|other| *other == path).count()
    }
}

fn answer(mut stream: TcpStream, phase: u32, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let target = request.split(' ').nth(1).unwrap_or("/");
    asked.lock().unwrap().push(target.to_owned());
    let mut more = String::new();
    let (status, body) = match (target, phase) {
        ("/", _) => {
            let pages = ["same", "changed", "gone", "moved", "sitemap.xml"];
            let links = pages.map(|page| format!("<a href=/{page}>a page</a> "));
            ("200 OK", text("home", 0) + &links.concat())
        }
        ("/same" | "/moved", 0) | ("/same", _) => ("200 OK", text(&target[1..], 0)),
        ("/changed", _) => ("200 OK", text("changed", phase)),
        ("/gone", 0) => ("200 OK", text("gone", 0)),
        ("/moved", _) => {
            more.push_str("Location: /target\r\n");
            ("301 Moved Permanently", String::new())
        }
        ("/target", 1) => ("200 OK", text("moved", 0)),
        _ => ("404 Not Found", String::new()),
    };
    let n = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\n{more}Content-Length: {n}\r\n\
         Connection: close\r\n\r\n{body}"
    )
}

/// A page of other words than all others, one of which names page and version.
fn text(page: &str, version: u32) -> String {
    let mut html = format!("<title>marker{page}v{version}</title><p>marker{page}v{version} ");
    for n in 0..80 {
        let _ = write!(html, "{page}{version}word{n} ");
    }
    html + "</p>"
}

fn arose() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.stdin(Stdio::null());
    command
}

/// Runs `arose`. Returns exit code, standard output and standard error.
fn typed(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = arose()
        .current_dir(folder)
        .args(arguments)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    (code, text(output.stdout), text(output.stderr))
}

/// Runs `arose`, which must succeed; returns the JSON objects that it prints, one per line.
#[track_caller]
fn json(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let (code, out, message) = typed(folder, arguments);
    assert_eq!(code, 0, "{arguments:?}: {message}");
    let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
    lines.collect()
}

/// Crawls the site and visits its pages again, until one is gone. Returns the pages by URL.
fn crawled(folder: &Path, site: &Site) -> BTreeMap<String, Value> {
    let first = ["crawl", &site.home, "--allow-private", "--delay", "0"];
    let run = |arguments: &[&str]| {
        let (code, out, message) = typed(folder, arguments);
        assert_ne!(code, 2, "{message}");
        out
    };
    run(&[&first[..], &["-o", "crawl"]].concat());
    let pages = json(folder, &["crawl", "pages", "crawl", "--json"]);
    assert_eq!(pages.len(), 6, "{pages:?}");
    let prefix = site.url("*");
    site.phase.store(1, Ordering::Relaxed);
    for (visit, wanted) in [&*prefix, &*site.url("gone"), &*site.url("gone")]
        .into_iter()
        .enumerate()
    {
        let answers = json(folder, &["crawl", "refresh", "crawl", wanted, "--json"]);
        assert_eq!(answers.len(), if visit == 0 { 6 } else { 1 }, "{answers:?}");
        assert!(answers.iter().all(|answer| answer["state"] == "next-run"));
        run(&["crawl", "-o", "crawl"]);
    }
    let known = run(&["crawl", &site.home, "-o", "crawl"]);
    assert!(
        known.contains("seeds met before: 1; `arose crawl refresh"),
        "{known}"
    );
    let pages = json(folder, &["crawl", "pages", "crawl", "--json"]).into_iter();
    let pages = pages.map(|page| (page["url"].as_str().unwrap().to_owned(), page));
    pages.collect()
}

/// Whether a search finds documents, and what it prints.
fn search(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let (code, out, message) = typed(folder, &[&["search", "crawl"], arguments].concat());
    assert_ne!(code, 2, "{message}");
    (code == 0, out + &message)
}

#[test]
fn issue_25_versions_from_crawl_to_search() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let site = Site::start();
    let pages = crawled(folder, &site);
    let page = |name: &str| &pages[&site.url(name)];
    for (name, state, status, versions) in [
        ("same", "live", 200, 1),
        ("changed", "live", 200, 2),
        ("gone", "gone", 404, 1),
        ("target", "live", 200, 1),
    ] {
        let page = page(name);
        assert_eq!(page["state"], state, "{page}");
        assert_eq!(page["status"], status, "{page}");
        assert_eq!(page["versions"], versions, "{page}");
    }
    assert_eq!(page("moved")["status"], 301);
    assert_eq!(page("target")["first"], page("moved")["first"]);
    let plan = json(
        folder,
        &["crawl", "plan", "crawl", "--per-second", "1", "--json"],
    );
    // All but the page that is gone, and the sitemap that was never there.
    assert_eq!(
        plan[0]["pages"].as_u64().unwrap() + 2,
        pages.len() as u64,
        "{plan:?}"
    );
    assert!(plan[0]["fresh"].as_f64().unwrap() > 0.9, "{plan:?}");
    let (code, watched, _) = typed(folder, &["crawl", "watch", "crawl", &site.url("changed")]);
    assert_eq!(code, 0);
    let lines: Vec<&str> = watched.lines().collect();
    assert!(lines[0].ends_with(" 200 first version"), "{watched}");
    assert!(lines[1].ends_with(" 200 changed"), "{watched}");
    for (sign, marker) in [("- ", "markerchangedv0"), ("+ ", "markerchangedv1")] {
        let mut changes = lines[2..].iter();
        let is_there = changes.any(|line| line.starts_with(sign) && line.contains(marker));
        assert!(is_there, "{watched}");
    }

    let all = ["--versions", "all"];
    for word in [
        "markersamev0",
        "markerchangedv1",
        "markergonev0",
        "markermovedv0",
    ] {
        assert!(search(folder, &[word]).0, "{word}");
        assert!(search(folder, &[&[word], &all[..]].concat()).0, "{word}");
    }
    let (is_found, said) = search(folder, &["markerchangedv0"]);
    assert!(!is_found, "{said}");
    let hint = "1 earlier version matches; search them with --versions all";
    assert!(said.contains(hint), "{said}");
    assert!(search(folder, &[&["markerchangedv0"], &all[..]].concat()).0);
    let (_, said) = search(folder, &["markergonev0"]);
    assert!(said.contains("gone: not found at three visits"), "{said}");
    let (_, said) = search(folder, &["markersamev0"]);
    assert!(!said.contains("gone:"), "{said}");

    for (versions, has_old) in [("current", false), ("all", true)] {
        let (code, _, message) = typed(
            folder,
            &["dedup", "crawl", "-o", versions, "--versions", versions],
        );
        assert_eq!(code, 0, "{message}");
        for (word, is_there) in [("markerchangedv0", has_old), ("markerchangedv1", true)] {
            let (code, ..) = typed(
                folder,
                &["search", versions, word, "--versions", "all", "--kept"],
            );
            assert_eq!(code == 0, is_there, "{versions}: {word}");
        }
    }
}

/// Serves the crawl; returns the process and the address.
fn serve(folder: &Path) -> (Child, String) {
    let mut command = arose();
    command.current_dir(folder);
    command.args(["serve", "crawl", "--listen", "127.0.0.1:0"]);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let address = lines.map_while(Result::ok).find_map(|line| {
        let rest = line.strip_prefix("arose: open http://")?;
        Some(rest.trim_end_matches('/').to_owned())
    });
    (child, address.unwrap())
}

fn request(address: &str, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let n = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n\
         Content-Type: application/json\r\n\
         Content-Length: {n}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn issue_25_versions_in_the_browser() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let site = Site::start();
    crawled(folder, &site);
    let (mut serving, address) = serve(folder);
    let get = |target: &str| request(&address, &format!("GET {target}"), "");
    let has = |answer: &str, part: &str| assert!(answer.contains(part), "{part}: {answer}");
    has(&get("/?q=markerchangedv0"), "No results");
    has(&get("/?q=markerchangedv0&captures=all"), "1 document");
    has(&get("/?q=markerchangedv1"), "1 document");
    has(&get("/?q=markerchangedv1"), "name=\"captures\"");
    has(&get("/?q=markergonev0"), "<span class=\"tag\">gone</span>");
    has(&get("/api/search?q=markerchangedv0"), "\"documents\":0");
    has(
        &get("/api/search?q=markerchangedv0&versions=all"),
        "\"documents\":1",
    );
    has(&get("/api/search?q=markergonev0"), "\"gone\":true");
    has(&get("/api/search?q=x&versions=old"), "400");
    let changed = site.url("changed");
    let history = get(&format!("/history?url={changed}"));
    for part in [
        "first version",
        "changed",
        "markerchangedv0",
        "markerchangedv1",
        "<mark>",
    ] {
        has(&history, part);
    }
    has(
        &get(&format!("/history?url={}", site.url("gone"))),
        "gone: not found at three visits",
    );
    let body = format!("{{\"urls\": [\"{changed}\", \"nothing\"]}}");
    let answer = request(&address, "POST /api/refresh", &body);
    has(&answer, "200 OK");
    has(
        &answer,
        &format!("\"url\":\"{changed}\",\"state\":\"next-run\""),
    );
    serving.kill().unwrap();
    serving.wait().unwrap();
}

/// Waits until a condition holds; fails after half a minute.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A running crawl visits a page at once that the page of the crawl or the command asks for, and
/// says when. Its metrics have what it believes of its pages.
#[test]
fn issue_25_a_running_crawl_is_asked_for_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let site = Site::start();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let metrics = port.unwrap().to_string();
    let mut command = arose();
    command.current_dir(folder).args(["crawl", &site.home]);
    command.args(["--allow-private", "--delay", "0.1", "--recrawl", "--every"]);
    command.args([
        "30d",
        "--seconds",
        "60",
        "-o",
        "crawl",
        "--metrics",
        &metrics,
    ]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut crawling = quiet.spawn().unwrap();
    wait_until("all pages", || site.n_asked("/sitemap.xml") == 1);
    let statistics = folder.join("crawl/statistics.jsonl");
    wait_until("a commit", || {
        statistics.exists() && site.n_asked("/moved") == 1
    });
    let (mut serving, address) = serve(folder);
    let changed = site.url("changed");
    let body = format!("{{\"urls\": [\"{changed}\", \"{}\"]}}", site.url("never"));
    // A page is known once it is committed.
    let mut answer = String::new();
    wait_until("a known page", || {
        answer = request(&address, "POST /api/refresh", &body);
        assert!(answer.contains("200 OK"), "{answer}");
        answer.contains("queued")
    });
    let body: Value = serde_json::from_str(&answer[answer.find('{').unwrap()..]).unwrap();
    let pages = &body["pages"];
    assert_eq!(pages[0]["url"], changed, "{answer}");
    assert_eq!(pages[0]["state"], "queued", "{answer}");
    assert!(pages[0]["seconds"].as_f64() < Some(5.0), "{answer}");
    assert_eq!(pages[1]["state"], "unknown", "{answer}");
    wait_until("the visit", || site.n_asked("/changed") == 2);
    // Prefixes are known there as well.
    let body = format!("{{\"urls\": [\"{}\"]}}", site.url("mov*"));
    let answer = request(&address, "POST /api/refresh", &body);
    assert!(
        answer.contains(&format!("\"url\":\"{}\"", site.url("moved"))),
        "{answer}"
    );
    wait_until("the visit of a prefix", || site.n_asked("/moved") == 2);
    // Several orders at a time: each has its own answer.
    std::thread::scope(|scope| {
        for page in ["same", "gone", "changed"] {
            let site = &site;
            scope.spawn(move || {
                let url = site.url(page);
                let answers = json(folder, &["crawl", "refresh", "crawl", &url, "--json"]);
                assert_eq!(answers.len(), 1, "{answers:?}");
                assert_eq!(
                    (&answers[0]["url"], &answers[0]["state"]),
                    (&url.into(), &"queued".into())
                );
            });
        }
    });
    let is_visited = || {
        site.n_asked("/same") == 2 && site.n_asked("/gone") == 2 && site.n_asked("/changed") == 3
    };
    wait_until("the visits of all orders", is_visited);
    let seen = request(&metrics, "GET /metrics", "");
    for line in ["arose_crawl_revisits_total", "arose_crawl_fresh "] {
        assert!(seen.contains(&format!("\n{line}")), "{line}: {seen}");
    }
    for child in [&mut serving, &mut crawling] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
