//! Tests of commands for operators of a crawl: scope, orders to a running crawl, and errors.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use testweb::{Config, PageCount, PageId, Server};

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
        "--name-server",
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
    command.args(["--scope", "web", "--seconds", "120", "--name-server"]);
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
    // Everything is excluded from now on, so the crawl ends.
    std::fs::write(&settings, text.replace("exclude = []", "exclude = [\".\"]")).unwrap();
    let (code, _, error) = typed(&["reload", &path]);
    assert_eq!(code, Some(0), "{error}");
    wait_until("the end", || child.try_wait().unwrap().is_some());
    let (code, _, error) = typed(&["pause", &path]);
    assert_eq!(code, Some(2));
    assert!(error.contains("no crawl is running in"), "{error}");
    server.stop().unwrap();
}
