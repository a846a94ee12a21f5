//! Tests of the crawl page of `arose serve`, during a crawl and afterwards.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use testweb::{Config, Kind, PageCount, PageId, Server};

fn arose() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.stdin(Stdio::null());
    command
}

/// Crawls into `folder`, with 0.1 seconds between two requests to a host.
fn crawl(server: &Server, folder: &Path) -> Child {
    let seed = server.web.url(PageId { host: 0, page: 0 });
    let mut command = arose();
    command.args([
        "crawl",
        &seed,
        "--allow-private",
        "--delay",
        "0.1",
        "--json",
        "-o",
    ]);
    command
        .arg(folder)
        .args(["--dns-server", &server.dns.to_string()]);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Serves `folder`; returns the URL.
fn serve(folder: &Path) -> (Child, String) {
    let mut command = arose();
    command
        .arg("serve")
        .arg(folder)
        .args(["--listen", "127.0.0.1:0"]);
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

/// Opens the crawl in a real browser, if there is one, and returns when the page has changed; see
/// `tests/watch.mjs`.
fn watch(address: &str) -> Option<Child> {
    let Ok(module) = std::env::var("AROSE_PLAYWRIGHT") else {
        eprintln!("SKIPPED: no browser; `.ci/run` installs one and sets AROSE_PLAYWRIGHT");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch.mjs");
    let mut command = Command::new("node");
    command.arg(script).arg(format!("http://{address}"));
    command.env("AROSE_PLAYWRIGHT", module);
    let mut browser = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut said = BufReader::new(browser.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert_eq!(line, "changed\n");
    Some(browser)
}

/// The last sample in the JSON of the page.
fn last_sample(address: &str) -> Value {
    let mut stream = TcpStream::connect(address).unwrap();
    let request =
        format!("GET /api/crawl HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let json: Value =
        serde_json::from_str(&body[body.find('{').unwrap()..=body.rfind('}').unwrap()]).unwrap();
    json["samples"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn the_page_shows_a_crawl_while_it_runs_and_when_it_is_done() {
    let config = Config {
        // More pages than it can fetch: it is stopped as soon as the browser has seen it.
        pages: PageCount::Fixed(400),
        median_bytes: 1000,
        ..Config::plain(8)
    };
    let server = Server::start(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("crawl");
    let crawl = crawl(&server, &folder);
    let path = folder.join("statistics.jsonl");
    while std::fs::read_to_string(&path)
        .unwrap_or_default()
        .is_empty()
    {
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let (mut serving, address) = serve(&folder);
    let sample = last_sample(&address);
    assert_eq!(sample["is_done"], false, "{sample}");
    let number = |sample: &Value, name: &str| sample[name].as_u64().unwrap();
    assert!(
        number(&sample, "pages") > 0 && number(&sample, "queue") > 0,
        "{sample}"
    );
    assert!(
        number(&sample, "hosts") > 0 && number(&sample, "bytes") > 0,
        "{sample}"
    );
    assert!(number(&sample["statuses"], "200") > 0, "{sample}");
    assert!(sample["slowest"][0][1].as_f64().unwrap() > 0.0, "{sample}");
    let browser = watch(&address);
    let stopped = Command::new("kill")
        .args(["-INT", &crawl.id().to_string()])
        .status();
    assert!(stopped.unwrap().success());
    let output = crawl.wait_with_output().unwrap();
    if let Some(mut browser) = browser {
        assert!(browser.wait().unwrap().success());
    }
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let sample = last_sample(&address);
    assert_eq!(sample["is_done"], true, "{sample}");
    for name in ["pages", "bytes", "exact_duplicates", "near_duplicates"] {
        assert_eq!(sample[name], summary["counters"][name], "{name}");
    }
    assert_eq!(sample["queue"], summary["still_queued"]);
    assert_eq!(sample["hosts"], summary["hosts"]);
    serving.kill().unwrap();
    serving.wait().unwrap();
    server.stop().unwrap();
}

/// Runs `arose crawl` with these arguments. Returns exit code, standard output and standard error.
fn typed(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = arose().arg("crawl").args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// The pages that a server sent, each with its number of requests.
fn sent(server: &Server) -> BTreeMap<String, u32> {
    let mut pages = BTreeMap::new();
    for record in &server.log().records {
        if record.status == 200 && *record.target != *"/robots.txt" {
            let url = format!("{}{}", record.host, record.target);
            *pages.entry(url).or_default() += 1;
        }
    }
    pages
}

/// A flipped byte in the journal: every command names it and the remedy, `repair` rebuilds the
/// crawl and reports what it did, and the crawl ends with each page fetched once.
#[test]
fn a_damaged_crawl_is_repaired_by_command() {
    let config = Config {
        pages: PageCount::Fixed(12),
        ..Config::plain(6)
    };
    let server = Server::start(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl").display().to_string();
    let seeds: Vec<String> = (0..6)
        .map(|host| server.web.url(PageId { host, page: 0 }))
        .collect();
    let dns = server.dns.to_string();
    let mut arguments = vec!["--allow-private", "--delay", "0", "--dns-server", &dns];
    arguments.extend(["--pages", "30", "-o", &dir]);
    arguments.extend(seeds.iter().map(String::as_str));
    let (code, text, _) = typed(&arguments);
    assert_eq!(code, Some(0), "{text}");
    let journal = format!("{dir}/journal");
    let mut bytes = std::fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&journal, &bytes).unwrap();
    for arguments in [
        &["-o", dir.as_str()][..],
        &["status", &dir],
        &["retry", &dir],
    ] {
        let (code, text, error) = typed(arguments);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{arguments:?}");
        let place = format!("`{journal}` is damaged at byte ");
        assert!(error.contains(&place), "{error}");
        assert!(
            error.contains("rebuild it with `arose crawl repair`"),
            "{error}"
        );
        assert_eq!(std::fs::read(&journal).unwrap(), bytes);
    }
    let (code, text, error) = typed(&["repair", &dir]);
    assert_eq!(code, Some(0), "{error}");
    let row = |label: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_default().trim().parse().unwrap()
    };
    assert!(row("records in the archive") >= 30, "{text}");
    assert!(row("queued") > 0 && row("unreadable journal bytes") > 0);
    assert!(text.contains(&format!("kept aside: {journal}.damaged-1\n")));
    let remedy = format!("rebuilt; resume with `arose crawl -o {dir}`\n");
    assert!(text.ends_with(&remedy), "{text}");
    assert_eq!(
        std::fs::read(format!("{journal}.damaged-1")).unwrap(),
        bytes
    );
    let (code, text, _) = typed(&["repair", &dir]);
    assert_eq!(code, Some(0));
    assert_eq!(text, "no damage found; nothing was changed\n");
    let (_, text, _) = typed(&["repair", &dir, "--json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["is_sound"], true);
    let (code, text, error) = typed(&["-o", &dir, "--pages", "0"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(
        text.contains("still queued                      0"),
        "{text}"
    );
    let sent = sent(&server);
    assert!(sent.len() >= 72, "{}", sent.len());
    assert!(sent.values().all(|&n| n == 1), "{sent:?}");
    server.stop().unwrap();
}

/// A host that cannot be reached for a while: its URLs are marked as failed, and `retry` fetches
/// only them once the host is reachable.
#[test]
fn a_retry_fetches_what_was_lost() {
    let config = Config {
        pages: PageCount::Fixed(3),
        ..Config::plain(2)
    };
    let server = Server::start(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("settings.toml");
    std::fs::write(
        &settings,
        "[fetch]\nretry_delay = 0.01\n[scope]\nsitemaps = false\n",
    )
    .unwrap();
    let (settings, dns) = (settings.display().to_string(), server.dns.to_string());
    let dir = folder.path().join("crawl").display().to_string();
    let seeds = [0, 1].map(|host| server.web.url(PageId { host, page: 0 }));
    let address = server.web.hosts()[1].address;
    server
        .control
        .move_host(1, std::net::Ipv4Addr::new(127, 250, 250, 250));
    let mut arguments = vec!["--allow-private", "--delay", "0", "--dns-server", &dns];
    arguments.extend(["--settings", &settings, "--depth", "0", "-o", &dir]);
    arguments.extend(seeds.iter().map(String::as_str));
    let (code, text, error) = typed(&arguments);
    assert_eq!(code, Some(0), "{error}");
    assert!(text.contains("URLs lost for now: 1;"), "{text}");
    assert_eq!(sent(&server).len(), 1);
    server.control.move_host(1, address);
    let (code, text, error) = typed(&["retry", &dir]);
    assert_eq!(code, Some(0), "{error}");
    assert!(!text.contains("lost for now"), "{text}");
    assert!(
        text.contains("still queued                      0"),
        "{text}"
    );
    let sent = sent(&server);
    assert_eq!(sent.values().collect::<Vec<_>>(), [&1, &1], "{sent:?}");
    // No failed URLs are left, so there is nothing to do.
    let n_requests = server.n_requests();
    assert_eq!(typed(&["retry", &dir]).0, Some(0));
    assert_eq!(server.n_requests(), n_requests);
    server.stop().unwrap();
}

/// A host that refuses connections: the closing message says that its URL failed, `status` counts
/// it, and a retry requests only it again.
#[test]
fn lost_urls_are_counted_and_asked_for_again() {
    let config = Config {
        pages: PageCount::Fixed(3),
        kinds: vec![(Kind::Refused, 1)],
        ..Config::plain(2)
    };
    let server = Server::start(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("settings.toml");
    std::fs::write(&settings, "[fetch]\nretry_delay = 0.01\n").unwrap();
    let dir = folder.path().join("crawl");
    let run = |arguments: &[&str]| {
        let output = arose().arg("crawl").args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}");
        text
    };
    let seeds = [0, 1].map(|host: usize| server.web.origin(&server.web.hosts()[host].name) + "/");
    let (dns, dir) = (server.dns.to_string(), dir.display().to_string());
    let settings = settings.display().to_string();
    let mut arguments = vec!["--allow-private", "--delay", "0", "--dns-server", &dns];
    arguments.extend(["--settings", &settings, "-o", &dir]);
    arguments.extend(seeds.iter().map(String::as_str));
    let text = run(&arguments);
    let lost = format!(
        "URLs lost for now: 1; `arose crawl failures {dir}` has the reasons, and `arose crawl retry \
         {dir}` requests them again"
    );
    assert!(
        text.contains(&lost) && !text.contains("everything"),
        "{text}"
    );
    let status: Value = serde_json::from_str(&run(&["status", &dir, "--json"])).unwrap();
    assert_eq!(
        (&status["still_queued"], &status["lost_for_now"]),
        (&1.into(), &1.into())
    );
    let n_requests = server.n_requests();
    let retried: Value = serde_json::from_str(&run(&["retry", &dir, "--json"])).unwrap();
    assert_eq!(
        (&retried["end"], &retried["lost_for_now"]),
        (&"waiting".into(), &1.into())
    );
    assert_eq!(server.n_requests(), n_requests);
    server.stop().unwrap();
}
