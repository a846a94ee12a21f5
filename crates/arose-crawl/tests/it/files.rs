//! Tests of crawls of local files: a mirror directory as if it were served.

use std::collections::BTreeSet;
use std::path::Path;

use arose_crawl::counters::Counter;
use arose_crawl::settings::Reach;
use arose_crawl::{Control, End, Seeds, Settings, Summary, crawl, index_lines, queued_urls};
use testweb::{Config, Kind, PageCount, Server};

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn run(output: &Path, settings: Settings, seeds: &[String]) -> Summary {
    let seeds = Seeds {
        pages: seeds.to_vec(),
        sitemaps: Vec::new(),
    };
    crawl(output, settings, seeds, &Control::default()).unwrap()
}

/// The URLs in the archive, with the status of each.
fn archived(output: &Path) -> BTreeSet<(String, String)> {
    let lines = index_lines(output).unwrap().into_iter();
    let entry = |line: String| {
        let json: serde_json::Value =
            serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
        let text = |name: &str| json[name].as_str().unwrap().to_owned();
        (text("url"), text("status"))
    };
    lines.map(entry).collect()
}

/// Fetches pages, directories and the files they link to, but nothing outside, and needs neither a
/// contact nor a network. A second run resumes.
#[test]
fn issue_27_a_directory_is_crawled() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("mirror");
    write(
        &root,
        "index.html",
        "<p>home <a href=a/>a</a> <a href=/etc/passwd>p</a> <a href=../secret.html>s</a> <a href=http://127.0.0.1:1/>h</a>",
    );
    write(
        &root,
        "a/one.html",
        "<p>one <a href='two%20words.html'>two</a><a href=none.html>n</a>",
    );
    write(
        &root,
        "a/two words.html",
        "<p>two <a href=../link/secret.html>out</a> <a href=b>b</a>",
    );
    write(&root, "a/b/index.html", "<p>bottom of all");
    write(folder.path(), "secret.html", "secret");
    std::os::unix::fs::symlink(folder.path(), root.join("link")).unwrap();
    let output = folder.path().join("crawl");
    let seed = format!("file://{}/", root.display());
    for reach in [Reach::Site, Reach::Web] {
        let mut settings = Settings::default();
        settings.scope.reach = reach;
        let output = output.join(format!("{reach:?}"));
        std::fs::create_dir_all(&output).unwrap();
        let summary = run(&output, settings.clone(), std::slice::from_ref(&seed));
        let base = format!("file://localhost{}", root.display());
        let expected = [
            ("/", "200"),
            ("/a/", "200"),
            ("/a/one.html", "200"),
            ("/a/two%20words.html", "200"),
            ("/a/none.html", "404"),
            ("/a/b", "301"),
            ("/a/b/", "200"),
            ("/link/secret.html", "403"),
        ];
        let expected = expected.map(|(path, status)| (format!("{base}{path}"), status.to_owned()));
        assert_eq!(archived(&output), BTreeSet::from(expected), "{reach:?}");
        assert_eq!(summary.counters.get(Counter::Pages), 5);
        let again = run(&output, settings, &[]);
        assert_eq!(again.n_fetched, 0);
        // A link to the web is queued, in vain, only if everything is in scope.
        let waiting = queued_urls(&output).unwrap();
        assert!(
            waiting
                .iter()
                .all(|url| url.starts_with("http://127.0.0.1:1/")),
            "{waiting:?}"
        );
        assert!(reach == Reach::Web || summary.end == End::Done && waiting.is_empty());
    }
}

/// No page of the web leads to a file, whatever the scope.
#[test]
fn issue_27_the_web_does_not_lead_to_files() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap().join("site");
    let local = root.join("local/index.html");
    write(&root, "local/index.html", "<p>local");
    let link = format!(
        "<p>home <a href='file://{}'>file</a> <a href=x.html>x</a>",
        local.display()
    );
    write(&root, "served/index.html", &link);
    write(
        &root,
        "served/x.html",
        &format!(
            "<meta http-equiv=refresh content='0; url=file://{}'>x",
            local.display()
        ),
    );
    let server = Server::start(Config {
        folders: testweb::Folder::below(&root).unwrap(),
        kinds: vec![(Kind::Plain, 1)],
        pages: PageCount::Fixed(2),
        ..Config::plain(1)
    });
    let server = server.unwrap();
    let mut settings = crate::web::settings(&server);
    settings.stop.patience = 0.1;
    let seeds = [
        server.web.origin("served.test") + "/index.html",
        // Another directory may be read.
        format!("file://{}/served/x.html", root.display()),
    ];
    let output = folder.path().join("crawl");
    run(&output, settings, &seeds);
    let archived = archived(&output);
    let is_local = |(url, _): &&(String, String)| url.ends_with("/local/index.html");
    assert_eq!(archived.iter().filter(is_local).count(), 0, "{archived:?}");
    assert_eq!(archived.len(), 3, "{archived:?}");
    server.stop().unwrap();
}
