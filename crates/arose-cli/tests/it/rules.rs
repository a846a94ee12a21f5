//! Tests of `arose crawl rules`: rules are listed, switched, exported and imported.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use testweb::{Config, Flavour, PageCount, PageId, Server};

/// Runs the command. Returns its exit code and its output.
fn arose(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

fn crawl(server: &Server, host: u32, dir: &str) {
    let seed = server.web.url(PageId { host, page: 0 });
    let dns = server.dns.to_string();
    let (code, _, said) = arose(&[
        "crawl",
        &seed,
        "--allow-private",
        "--delay",
        "0",
        "--scope",
        "host",
        "--dns-server",
        &dns,
        "-o",
        dir,
    ]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn rules_are_listed_switched_and_carried_over() {
    let server = Server::start(Config {
        pages: PageCount::Fixed(80),
        median_bytes: 2000,
        ..Config::variants(1)
    });
    let server = server.unwrap();
    let is_print = |host: &u32| server.web.flavour(*host) == Some(Flavour::Print);
    let host = (0..20).find(is_print).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("crawl");
    let dir = dir.to_str().unwrap();
    crawl(&server, host, dir);
    let (code, list, _) = arose(&["crawl", "rules", dir]);
    assert_eq!(code, Some(0));
    let line = list.lines().find(|line| line.contains("word print"));
    let line = line.unwrap_or_else(|| panic!("{list}"));
    assert!(
        line.starts_with("active ") && line.contains(" deferred"),
        "{line}"
    );
    let file = folder.path().join("rules.jsonl");
    let file = file.to_str().unwrap();
    assert_eq!(arose(&["crawl", "rules", dir, "--export", file]).0, Some(0));
    let text = std::fs::read_to_string(file).unwrap();
    let rules = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let print = rules.into_iter().find(|rule| rule["rule"] == "word print");
    let print = print.unwrap();
    let scope = print["scope"].as_str().unwrap();
    // If the rule is switched off, the next run fetches the URLs that it deferred.
    let name = format!("{scope} word print");
    let (code, said, _) = arose(&["crawl", "rules", dir, "--off", &name]);
    assert_eq!(
        (code, said.starts_with("suspended ")),
        (Some(0), true),
        "{said}"
    );
    let status = |dir: &str| -> Value {
        serde_json::from_str(&arose(&["crawl", "status", dir, "--json"]).1).unwrap()
    };
    assert!(status(dir)["deferred_by_rules"].as_u64().unwrap() > 0);
    crawl(&server, host, dir);
    assert_eq!(status(dir)["deferred_by_rules"], 0);
    // In another crawl it applies immediately.
    let other = folder.path().join("other");
    let other = other.to_str().unwrap();
    let seed = server.web.url(PageId { host, page: 0 });
    let (dns, most) = (server.dns.to_string(), "3");
    let (code, ..) = arose(&[
        "crawl",
        &seed,
        "--allow-private",
        "--delay",
        "0",
        "--scope",
        "host",
        "--pages",
        most,
        "--dns-server",
        &dns,
        "-o",
        other,
    ]);
    assert_eq!(code, Some(0));
    assert_eq!(
        arose(&["crawl", "rules", other, "--import", file]).0,
        Some(0)
    );
    let (_, list, _) = arose(&["crawl", "rules", other]);
    assert!(list.contains("active "), "{list}");
    check_refusals(other, file);
    server.stop().unwrap();
}

/// An invalid rule is rejected with its position, and nothing is imported.
fn check_refusals(dir: &str, file: &str) {
    let before = arose(&["crawl", "rules", dir]).1;
    let text = std::fs::read_to_string(file).unwrap();
    std::fs::write(file, format!("{text}{{\"scope\": \"a.b\", \"ru")).unwrap();
    let (code, _, said) = arose(&["crawl", "rules", dir, "--import", file]);
    assert_eq!(code, Some(2));
    let number = text.lines().count() + 1;
    assert!(said.contains(&format!(":{number}: not a rule")), "{said}");
    for name in ["nothing", "a.b parameter", "no.such.site parameter sid"] {
        let (code, _, said) = arose(&["crawl", "rules", dir, "--off", name]);
        assert_eq!(code, Some(2), "{said}");
    }
    assert_eq!(arose(&["crawl", "rules", dir]).1, before);
    let nowhere = Path::new(dir).join("nowhere");
    assert_eq!(
        arose(&["crawl", "rules", nowhere.to_str().unwrap()]).0,
        Some(2)
    );
}
