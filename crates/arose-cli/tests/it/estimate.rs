//! Tests of `arose estimate`: directories, `arose serve`, logs, replays, studies, budgets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use testweb::judge::By;
use testweb::truth::Visit;
use testweb::{Config, PageCount, PageId, Server};

fn arose(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args(arguments)
        .current_dir(folder)
        .output();
    output.unwrap()
}

#[track_caller]
fn done(output: Output) -> Vec<u8> {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    output.stdout
}

/// A page of frequent and rare words; the same number gives the same page.
fn page(number: u64) -> Value {
    let mut state = number * 7919 + 1;
    let mut words = Vec::new();
    for _ in 0..150 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let chance = (state >> 11) as f64 / (1_u64 << 53) as f64;
        words.push(format!("word{}", (3000_f64.powf(chance)) as u64));
    }
    let url = format!("http://pages.example/{number}");
    json!({ "url": url, "text": words.join(" ") })
}

/// Deduplicates pages into a directory.
fn index(folder: &Path, name: &str, numbers: std::ops::Range<u64>) {
    let lines: String = numbers
        .map(|number| format!("{}\n", page(number)))
        .collect();
    let input = format!("{name}.jsonl");
    fs::write(folder.join(&input), lines).unwrap();
    done(arose(folder, &["dedup", &input, "-o", name]));
}

/// `arose serve` on a free port; it ends with the test.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(folder: &Path, name: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
            .args(["serve", name, "--listen", "127.0.0.1:0"])
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let line = lines.find(|line| line.contains("open http")).unwrap();
        // Later messages must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url = line.split("open ").nth(1).unwrap().trim_end_matches('/');
        Self {
            url: url.to_owned(),
            child,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn figure<'a>(findings: &'a Value, name: &str) -> &'a Value {
    let figures = findings["figures"].as_array().unwrap();
    let found = figures.iter().find(|figure| figure["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {findings}"))
}

/// A directory and a server of arose: logged, truncated, resumed and replayed.
#[test]
fn overlap_with_a_served_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    index(folder, "a", 0..200);
    index(folder, "b", 100..260);
    let served = Served::start(folder, "b");
    let theirs = format!("b=arose:{}", served.url);
    let asked = [
        "estimate", "overlap", "a", &theirs, "-n", "60", "--delay", "0", "--json",
    ];
    let with = |more: &[&'static str]| [&asked[..], more].concat();
    let short: Value = serde_json::from_slice(&done(arose(
        folder,
        &with(&["--log", "l", "--budget", "150"]),
    )))
    .unwrap();
    assert!(short["warnings"].to_string().contains("budget"), "{short}");
    let whole = done(arose(folder, &with(&["--log", "l"])));
    let findings: Value = serde_json::from_slice(&whole).unwrap();
    for (name, truth) in [("b / a", 0.8), ("a / union", 0.77), ("b / union", 0.615)] {
        let value = figure(&findings, name)["value"].as_f64().unwrap();
        // Three standard errors of 60 pages each.
        assert!((value / truth - 1.0).abs() < 0.35, "{name}: {value}");
    }
    // The same by URL, for the directory and the server.
    let by_url = done(arose(folder, &with(&["--check", "url"])));
    let by_url: Value = serde_json::from_slice(&by_url).unwrap();
    for name in ["a in b", "b in a", "b / a"] {
        let value = |findings: &Value| figure(findings, name)["value"].as_f64().unwrap();
        let (one, other) = (value(&by_url), value(&findings));
        assert!((one - other).abs() < 0.02, "{name}: {one}, {other}");
    }
    drop(served);
    let again = ["estimate", "overlap", "--replay", "l", "-n", "60", "--json"];
    assert_eq!(done(arose(folder, &again)), whole);
    let other = arose(
        folder,
        &["estimate", "overlap", "--replay", "l", "--seed", "2"],
    );
    assert_eq!(other.status.code(), Some(2));
    let said = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(said.contains("no response to"), "{said}");
}

#[test]
fn a_study_and_its_replay() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    index(folder, "a", 0..150);
    index(folder, "b", 50..200);
    fs::write(
        folder.join("log.txt"),
        "word900 word20\nword77\n\"word3 word5\"\n",
    )
    .unwrap();
    let drawn: String = (0..100)
        .map(|number| format!("{}\n", page(number)))
        .collect();
    fs::write(folder.join("drawn.jsonl"), drawn).unwrap();
    let study = "pages = 'drawn.jsonl'\ncheck = 'both'\nsamples = 50\nsize_queries = 60\npool_samples = 40\nqueries = 'log.txt'\n\
                 [[engine]]\nname = 'a'\ndirectory = 'a'\n[[engine]]\nname = 'b'\ndirectory = 'b'\n";
    fs::write(folder.join("study.toml"), study).unwrap();
    let run = ["estimate", "study", "study.toml", "-o", "b/study"];
    done(arose(folder, &run));
    let read = |name: &str| fs::read_to_string(folder.join("b/study").join(name)).unwrap();
    let (estimates, report) = (read("estimates.json"), read("report.html"));
    let found: Value = serde_json::from_str(&estimates).unwrap();
    let methods: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|findings| findings["method"].as_str().unwrap())
        .collect();
    assert_eq!(found["refused"], json!([]));
    for method in [
        "lower-bound",
        "overlap",
        "coverage",
        "searches",
        "corpus-size",
        "pool",
    ] {
        assert!(methods.contains(&method), "{methods:?}");
    }
    // Of the pages 0 to 99, search engine a has all, and b those from 50 on.
    let mut all = found["findings"].as_array().unwrap().iter();
    let coverage = all.find(|findings| findings["method"] == "coverage");
    let coverage = coverage.unwrap();
    for (name, share) in [("share in a", 1.0), ("share in b", 0.5)] {
        assert_eq!(figure(coverage, name)["value"], share);
    }
    assert!(report.contains("b / a") && !report.contains("src="));
    fs::remove_dir_all(folder.join("a")).unwrap();
    done(arose(folder, &[&run[..], &["--offline"]].concat()));
    assert_eq!(read("estimates.json"), estimates);
    assert_eq!(read("report.html"), report);
    check_page(&Served::start(folder, "b"), &found);
    // A closed standard error must not cause a panic.
    let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args([&run[..], &["--offline"]].concat())
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"lower-bound: "));
}

/// `arose serve` shows all results of a study: estimates with their notes, warnings, and biases.
#[track_caller]
fn check_page(served: &Served, found: &Value) {
    let host = served.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!("GET /estimates HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let mut expected = Vec::new();
    for findings in list(&found["findings"]) {
        expected.push(findings["counted"].clone());
        expected.extend(list(&findings["warnings"]));
        expected.extend(
            list(&findings["biases"])
                .iter()
                .map(|bias| bias["effect"].clone()),
        );
        for figure in list(&findings["figures"]) {
            expected.push(figure["name"].clone());
            expected.extend(figure.get("notes").map(list).unwrap_or_default());
        }
    }
    assert!(expected.len() > 40, "{expected:?}");
    for text in &expected {
        let text = text.as_str().unwrap();
        let text = text.replace('&', "&amp;").replace('"', "&quot;");
        let text = text.replace('\'', "&#39;");
        assert!(page.contains(&text), "no `{text}` in {page}");
    }
}

/// If there is no estimate, the reason is one line, with the remedy.
#[test]
fn clear_errors() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    index(folder, "a", 0..60);
    index(folder, "b", 1000..1060);
    fs::write(folder.join("foreign.tsv"), "rosa\t5\nspina\t4\nhortus\t3\n").unwrap();
    fs::write(folder.join("study.toml"), "sample = 3\n").unwrap();
    let page = "url = 'http://127.0.0.1:1/?q={query}'\nresults = 'li'\naddress = 'a@href'\n";
    fs::write(folder.join("page.toml"), page).unwrap();
    fs::write(folder.join("broken.jsonl"), "{\"line\":\"search\"\n").unwrap();
    for (arguments, part) in [
        (&["overlap", "a", "b", "-n", "20"][..], "0 is a, 1 is b"),
        (&["overlap", "a"], "at least two search engines"),
        (&["overlap", "a", "page.toml"], "no contact"),
        (
            &[
                "overlap",
                "a",
                "page.toml",
                "--allow-private",
                "--check",
                "url",
            ],
            "page does not support lookup by URL",
        ),
        (
            &["coverage", "a", "--pages-from", "foreign.tsv"],
            "line 1 is not a sampled page",
        ),
        (&["overlap", "a", "a"], "two search engines are named a"),
        (
            &["overlap", "a", "b", "--lexicon", "foreign.tsv"],
            "another language",
        ),
        (
            &[
                "corpus-size",
                "a",
                "--min-pages",
                "900",
                "--max-pages",
                "901",
            ],
            "the pool is empty",
        ),
        (
            &["corpus-size", "solr:http://127.0.0.1:1", "--delay", "0"],
            "too few to query",
        ),
        (
            &["lower-bound", "solr:http://127.0.0.1:1", "--delay", "0"],
            "did not respond",
        ),
        (&["study", "study.toml", "-o", "out"], "unknown field"),
        (&["overlap", "--replay", "broken.jsonl"], "line 1"),
        (&["walk", "foreign.tsv", "--form", "gaps"], "line 1"),
        (&["walk", "http://h.test/"], "--live"),
        (&["walk", "http://h.test/", "--live"], "no contact"),
        (&["walk", "x", "--live", "--allow-private"], "cannot start"),
        (
            &[
                "walk",
                "http://127.0.0.1:1/",
                "--live",
                "--allow-private",
                "--measure",
                "in:5",
            ],
            "cannot measure in-links",
        ),
    ] {
        let output = arose(folder, &[&["estimate"][..], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(part), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    }
}

/// The estimate of a live walk next to the share of reachable pages.
#[track_caller]
fn check_share(findings: &Value, part: &str, server: &Server, seed: &str) {
    let visit = Visit {
        seeds: vec![seed.to_owned()],
        max_redirects: 5,
        minute: None,
    };
    let reachable = server.web.reachable(&visit);
    let with = reachable
        .iter()
        .filter(|&&page| server.web.url(page).contains(part));
    let truth = with.count() as f64 / reachable.len() as f64;
    let name = format!("share of pages with {part} in the URL");
    let figure = figure(findings, &name);
    let value = figure["value"].as_f64().unwrap();
    // Most pages are visited dozens of times, so the error of the share is small.
    assert!(
        truth > 0.1 && (value - truth).abs() < 0.03,
        "{truth}, {figure}"
    );
}

/// Walks on a web of 240 pages: polite according to the log of the server, correct according to the
/// ground truth, truncated, resumed and replayed.
#[test]
fn a_live_walk() {
    let server = Server::start(Config {
        pages: PageCount::Fixed(40),
        median_bytes: 1000,
        ..Config::plain(6)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let seed = server.web.url(PageId { host: 0, page: 0 });
    let part = format!("url:{}", server.web.hosts()[1].name);
    let names = server.dns.to_string();
    let asked = [
        "estimate",
        "walk",
        &seed,
        "--live",
        "--allow-private",
        "--dns-server",
        &names,
        "--delay",
        "0.01",
        "--steps",
        "20000",
        "--measure",
        &part,
        "--measure",
        "out:5",
        "--json",
    ];
    let with = |more: &[&'static str]| [&asked[..], more].concat();
    let walked = |more: &[&'static str]| done(arose(folder, &with(more)));
    let short = walked(&["--log", "l", "--budget", "60"]);
    let short: Value = serde_json::from_slice(&short).unwrap();
    assert!(
        short["warnings"].to_string().contains("the walks ended"),
        "{short}"
    );
    assert_eq!(server.log().records.len(), 60);
    let whole = walked(&["--log", "l"]);
    let findings: Value = serde_json::from_slice(&whole).unwrap();
    check_share(&findings, &server.web.hosts()[1].name, &server, &seed);
    assert!(
        !findings["warnings"].to_string().contains("ended"),
        "{findings}"
    );
    let log = server.log();
    let delay = Duration::from_millis(10);
    for by in [By::Host, By::Address] {
        assert_eq!(log.overlaps(by), []);
        assert_eq!(log.gaps_shorter_than(by, delay), []);
    }
    assert_eq!(log.disallowed(&server.web), [0_usize; 0]);
    assert_eq!(log.before_robots(), [0_usize; 0]);
    assert_eq!(log.repeats(), [0_usize; 0]);
    let n_asked = log.records.len();
    assert_eq!(walked(&["--replay", "l"]), whole);
    assert_eq!(server.log().records.len(), n_asked);
    let drawn = [
        "--log",
        "l",
        "--draw",
        "drawn.jsonl",
        "--draws",
        "100",
        "--budget",
        "400",
    ];
    assert_eq!(walked(&drawn), whole);
    server.stop().unwrap();
    check_coverage(folder);
}

/// An index of the sampled pages contains all of them, an index of other pages none.
#[track_caller]
fn check_coverage(folder: &Path) {
    let lines = fs::read_to_string(folder.join("drawn.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 100);
    for line in lines.lines() {
        let page: Value = serde_json::from_str(line).unwrap();
        assert!(page["text"].as_str().unwrap().len() > 100, "{page}");
        assert!(page["walk"].as_u64().unwrap() < 5);
    }
    done(arose(
        folder,
        &["dedup", "drawn.jsonl", "-o", "held", "-w", "3"],
    ));
    index(folder, "strange", 0..50);
    for (check, share) in [("words", 1.0), ("url", 1.0), ("both", 1.0)] {
        let options = ["--pages-from", "drawn.jsonl", "--check", check, "--json"];
        let asked = [&["estimate", "coverage", "held", "strange"][..], &options].concat();
        let found: Value = serde_json::from_slice(&done(arose(folder, &asked))).unwrap();
        let value = |name: &str| figure(&found, name)["value"].as_f64().unwrap();
        assert!(value("share in held") >= share - 0.01, "{found}");
        assert_eq!(value("share in strange"), 0.0, "{found}");
    }
}
