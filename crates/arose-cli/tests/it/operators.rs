//! Tests of commands for operators of a crawl: scope, orders to a running crawl, and errors.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testweb::{Config, Kind, PageCount, PageId, Server};

fn arose() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.stdin(Stdio::null());
    command
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

fn web(n_hosts: u32, n_pages: u32) -> Server {
    let server = Server::start(Config {
        pages: PageCount::Fixed(n_pages),
        median_bytes: 1000,
        ..Config::plain(n_hosts)
    });
    server.unwrap()
}

fn home(server: &Server) -> String {
    server.web.url(PageId { host: 0, page: 0 })
}

/// An error before the start leaves no directory behind.
#[test]
fn issue_22_a_failed_start_leaves_no_directory() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl");
    let path = dir.display().to_string();
    let settings = folder.path().join("bad.toml");
    std::fs::write(&settings, "[scope]\nexclude = [\"(\"]\n").unwrap();
    let settings = settings.display().to_string();
    let contact = ["--contact", "me@example.org"];
    for (arguments, part) in [
        (&["http://example.org/"][..], "contact"),
        (
            &["http://[bad/", contact[0], contact[1]],
            "no seed can be crawled: `http://[bad/`: it is not a valid URL",
        ),
        (
            &[
                "http://example.org/",
                "--settings",
                &settings,
                contact[0],
                contact[1],
            ],
            "exclude",
        ),
    ] {
        let mut all = arguments.to_vec();
        all.extend(["-o", &path]);
        let (code, _, error) = typed(&all);
        assert_eq!(code, Some(2), "{arguments:?}: {error}");
        assert!(error.contains(part), "{error}");
        assert!(!dir.exists(), "{arguments:?}");
    }
}

/// The site of the seed is the scope, and the closing message names the URLs outside. `--scope web`
/// fetches them. A bad seed is reported.
#[test]
fn issue_22_the_seeds_are_the_scope() {
    let server = web(5, 6);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl").display().to_string();
    let (dns, seed) = (server.dns.to_string(), home(&server));
    let common = [
        "--allow-private",
        "--delay",
        "0",
        "--dns-server",
        &dns,
        "-o",
        &dir,
    ];
    let mut arguments = vec![seed.as_str(), "http://[bad/"];
    arguments.extend(common);
    let (code, text, error) = typed(&arguments);
    assert_eq!(code, Some(0), "{error}");
    assert!(
        text.contains("bad seed `http://[bad/`: it is not a valid URL"),
        "{text}"
    );
    assert!(text.contains("links out of scope: "), "{text}");
    let hosts = |server: &Server| {
        let log = server.log();
        let hosts = log.records.iter().map(|record| record.host.to_string());
        hosts.collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(hosts(&server).len(), 1);
    let wide = folder.path().join("wide").display().to_string();
    let mut arguments = vec![seed.as_str(), "--scope", "web"];
    arguments.extend(&common[..5]);
    arguments.extend(["-o", &wide]);
    let (code, _, error) = typed(&arguments);
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(hosts(&server).len(), 5);
    let (code, text, _) = typed(&["failures", &wide]);
    assert!(code == Some(1) || text.contains("  found on "), "{text}");
    server.stop().unwrap();
}

fn start(server: &Server, dir: &Path) -> Child {
    let mut command = arose();
    command.args(["crawl", &home(server), "--allow-private", "--delay", "0.05"]);
    command.args(["--scope", "web", "--seconds", "120", "--dns-server"]);
    command.arg(server.dns.to_string()).arg("-o").arg(dir);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.unwrap()
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

/// A running crawl pauses, resumes and applies new settings, and keeps its own if they are invalid.
/// Its time limit is not kept.
#[test]
fn issue_22_a_running_crawl_takes_orders() {
    let server = web(4, 3000);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl");
    let path = dir.display().to_string();
    let mut child = start(&server, &dir);
    wait_until("requests", || server.n_requests() > 20);
    assert_eq!(typed(&["pause", &path]).0, Some(0));
    let silent = || {
        let before = server.n_requests();
        std::thread::park_timeout(Duration::from_secs(2));
        server.n_requests() == before
    };
    wait_until("silence", silent);
    assert_eq!(typed(&["resume", &path]).0, Some(0));
    let before = server.n_requests();
    wait_until("requests again", || server.n_requests() > before + 20);
    let settings = dir.join("settings.toml");
    let text = std::fs::read_to_string(&settings).unwrap();
    assert!(text.contains("seconds = 0.0"), "{text}");
    std::fs::write(&settings, format!("{text}\n[nonsense]\n")).unwrap();
    let (code, _, error) = typed(&["reload", &path]);
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("nonsense"), "{error}");
    // Settings that say nothing else are taken.
    std::fs::write(&settings, &text).unwrap();
    let (code, _, error) = typed(&["reload", &path]);
    assert_eq!(code, Some(0), "{error}");
    let before = server.n_requests();
    wait_until("requests with new settings", || {
        server.n_requests() > before + 20
    });
    // The pages that a host already has count towards a new limit.
    let name = &server.web.hosts()[0].name;
    let n_pages = || {
        let log = server.log();
        let records = log.records.iter();
        records.filter(|record| *record.host == **name).count()
    };
    wait_until("a hundred pages", || n_pages() > 100);
    let limited = format!("{text}\n[host.{name:?}]\nmax_pages = 100\n");
    std::fs::write(&settings, limited).unwrap();
    let (code, _, error) = typed(&["reload", &path]);
    assert_eq!(code, Some(0), "{error}");
    let n_before = n_pages();
    wait_until("a full host", || {
        let n = n_pages();
        std::thread::park_timeout(Duration::from_secs(1));
        n_pages() == n
    });
    let n_after = n_pages();
    assert!(n_after < n_before + 60, "{n_before} {n_after}");
    // Everything is excluded from now on, so the crawl ends. A signal reloads the settings, too.
    std::fs::write(&settings, text.replace("exclude = []", "exclude = [\".\"]")).unwrap();
    let hangup = Command::new("kill")
        .args(["-HUP", &child.id().to_string()])
        .status();
    assert!(hangup.unwrap().success());
    wait_until("the end", || child.try_wait().unwrap().is_some());
    let (code, _, error) = typed(&["pause", &path]);
    assert_eq!(code, Some(2));
    assert!(error.contains("no crawl is running in"), "{error}");
    server.stop().unwrap();
}

/// The closing message says what was left for which reason, and how to get it: the suggested
/// command or setting does what is said of it.
#[test]
fn issue_22_the_closing_message_says_what_was_left() {
    let server = web(3, 12);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl").display().to_string();
    let (dns, seed) = (server.dns.to_string(), home(&server));
    let base = [
        "--delay",
        "0",
        "--dns-server",
        &dns,
        "--contact",
        "me@example.org",
        "-o",
        &dir,
    ];
    let run = |more: &[&str]| {
        let (code, text, error) = typed(&[&base[..], more].concat());
        assert!(code.is_some_and(|code| code < 2), "{error}");
        text
    };
    let has = |text: &str, lines: &[&str]| {
        for line in lines {
            let line = line.replace("DIR", &dir);
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
    };
    // A refused address: nothing was sent, and the option that allows it is named.
    let text = run(&[&seed]);
    assert_eq!(server.n_requests(), 0);
    has(
        &text,
        &[
            "URLs lost for now: 1; `arose crawl failures DIR` has the reasons, and `arose crawl retry \
             DIR` requests them again",
            "refused requests to private IP addresses: 1; `arose crawl -o DIR --allow-private` allows \
             them",
        ],
    );
    let (_, text, _) = typed(&["failures", &dir]);
    assert_eq!(text, format!("forbidden-address: 1\n  {seed}robots.txt\n"));
    // It is allowed now, so nothing is said of it. A budget ends this run.
    let text = run(&["--allow-private", "--pages", "2"]);
    assert!(
        !text.contains("private IP") && !text.contains("lost for now"),
        "{text}"
    );
    has(
        &text,
        &["the maximum number of pages was reached; `arose crawl -o DIR --pages N` fetches more"],
    );
    // The command that it names. Only what the scope and robots.txt keep out is left.
    let text = run(&["--pages", "1000"]);
    assert!(text.contains("\nnothing is left to fetch\n"), "{text}");
    assert!(text.contains("\nlinks out of scope: "), "{text}");
    assert!(
        text.contains("\nURLs that robots.txt disallows: "),
        "{text}"
    );
    let n_robots = typed(&["failures", &dir]).1;
    assert!(n_robots.starts_with("robots: "), "{n_robots}");
    // A time limit, a depth, an exclusion, and a limit of the host.
    let settings = folder.path().join("settings.toml");
    let name = &server.web.hosts()[0].name;
    let text = format!(
        "[scope]\nexclude = [\"/private\"]\nsitemaps = false\n[host.{name:?}]\nmax_pages = 3\n"
    );
    std::fs::write(&settings, text).unwrap();
    let other = folder.path().join("other").display().to_string();
    let settings = settings.display().to_string();
    let more = ["--allow-private", "--settings", &settings, &seed];
    let (_, text, error) = typed(&[&base[..7], &[other.as_str()], &more[..]].concat());
    assert!(
        text.contains(
            "\nhosts that reached their maximum number of pages: 1; `max_pages` of `[budget]` or of \
             the host in the settings allows more\n"
        ),
        "{text}{error}"
    );
    let third = folder.path().join("third").display().to_string();
    let more = ["--allow-private", "--depth", "1", "--scope", "host", &seed];
    let (_, text, error) = typed(&[&base[..7], &[third.as_str()], &more[..]].concat());
    let found = text.contains("\nlinks too far from the seeds: ")
        && text.contains("; `--depth` allows more\n");
    assert!(found, "{text}{error}");
    let fourth = folder.path().join("fourth").display().to_string();
    let more = ["--allow-private", "--delay", "2", "--seconds", "1", &seed];
    let (_, text, error) = typed(&[&base[2..7], &[fourth.as_str()], &more[..]].concat());
    let line = format!("the time limit was reached; resume with `arose crawl -o {fourth}`");
    assert!(text.contains(&line), "{text}{error}");
    server.stop().unwrap();
}

/// Why a URL stands where it stands, the most important URLs that wait, and sites by share and
/// quality.
#[test]
fn issue_26_the_order_is_explained() {
    let server = Server::start(Config {
        pages: PageCount::Fixed(60),
        kinds: vec![(Kind::Plain, 1), (Kind::Stuffed, 1)],
        ..Config::plain(4)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl").display().to_string();
    let dns = server.dns.to_string();
    let homes: Vec<String> = (0..4)
        .map(|host| server.web.url(PageId { host, page: 0 }))
        .collect();
    let mut arguments = vec![
        "--allow-private",
        "--delay",
        "0",
        "--dns-server",
        &dns,
        "-o",
        &dir,
    ];
    arguments.extend(["--scope", "web", "--pages", "60"]);
    arguments.extend(homes.iter().map(String::as_str));
    let (code, _, error) = typed(&arguments);
    assert_eq!(code, Some(0), "{error}");
    let (_, text, _) = typed(&["status", &dir]);
    for part in [
        "  next URLs\n",
        "  most trusted sites\n",
        "  sites with the most pages of low quality, last run\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let (_, text, _) = typed(&["status", &dir, "--json"]);
    let status: serde_json::Value = serde_json::from_str(&text).unwrap();
    let waiting = status["waiting"].as_array().unwrap();
    let number = |value: &serde_json::Value, name: &str| value[name].as_f64().unwrap();
    assert_eq!(waiting.len(), 10);
    for one in waiting {
        let product = number(one, "mass") * number(&one["site"], "share");
        assert!(
            (number(one, "priority") / product - 1.0).abs() < 1e-6,
            "{one}"
        );
    }
    let priorities: Vec<f64> = waiting.iter().map(|one| number(one, "priority")).collect();
    assert!(priorities.is_sorted_by(|a, b| a >= b), "{priorities:?}");
    assert_eq!(status["sites"].as_array().unwrap().len(), 4);
    let poor = &status["poor_sites"][0];
    assert!(number(poor, "low_quality") > 0.0, "{status}");
    // A URL of a site of low quality is explained with that.
    let (_, queue, _) = typed(&["export", &dir, "--queue"]);
    let name = poor["name"].as_str().unwrap();
    let of_poor = queue.lines().find(|url| url.contains(name)).unwrap();
    let (code, text, error) = typed(&["status", &dir, "--why", of_poor]);
    assert_eq!(code, Some(0), "{error}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], of_poor);
    for (line, start) in lines[1..]
        .iter()
        .zip(["priority ", "mass ", "share ", "quality: "])
    {
        assert!(line.starts_with(start), "{text}");
    }
    assert!(
        lines[4].contains(&format!("pages of {name} weigh less than 0.5")),
        "{text}"
    );
    let (code, text, _) = typed(&["status", &dir, "--why", &homes[0]]);
    assert_eq!(code, Some(1));
    assert!(text.contains("is not queued"), "{text}");
    server.stop().unwrap();
}
