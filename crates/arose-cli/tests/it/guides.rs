//! Runs the commands in the README and in the pages of `docs/`, page by page.
//!
//! Each page has a directory with the files that its commands name. Its blocks of shell commands
//! run there in order, as a reader would type them. Transcripts are compared by
//! [`golden`](super::golden); here it is enough that no command fails.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use tempfile::TempDir;

/// Commands that run until they are stopped; serve.rs tests them.
const SKIPPED: &str = "arose serve ";

/// Pages with commands that are not run here, and why.
const NOT_RUN: [(&str, &str); 3] = [
    (
        "docs/cluster.md",
        "needs Spark; the tests of the wheel run the job",
    ),
    (
        "docs/evaluation.md",
        "needs the collections that it measures",
    ),
    (
        "docs/guide-python.md",
        "installs the wheel; the gate does, too",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The shell commands of a page, with continued lines joined.
fn commands(page: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let blocks = text.split("\n```").skip(1).step_by(2);
    let blocks = blocks.filter_map(|block| block.strip_prefix("sh\n"));
    let lines = blocks.flat_map(|block| {
        let block = block.replace("\\\n", " ");
        let lines: Vec<String> = block.lines().map(str::to_owned).collect();
        lines
    });
    lines.filter(|line| line.starts_with("arose ")).collect()
}

/// A directory with every file that the commands name.
fn prepared() -> TempDir {
    let folder = TempDir::with_prefix("guides").unwrap();
    let at = |name: &str| folder.path().join(name);
    let texts = fs::read_to_string(root().join("examples/texts.jsonl")).unwrap();
    let lines: Vec<&str> = texts.lines().collect();
    for name in ["corpus", "shelf2", "monday", "tuesday", "archive", "site"] {
        fs::create_dir(at(name)).unwrap();
    }
    let jsonl = |name: &str, lines: &[&str]| fs::write(at(name), lines.join("\n") + "\n").unwrap();
    // The content decides how a file is read, not its name.
    jsonl("corpus/a.jsonl.zst", &lines[..60]);
    jsonl("corpus/b.jsonl.zst", &lines[40..100]);
    jsonl("corpus.jsonl", &lines[..80]);
    jsonl("next-month.jsonl", &lines[90..120]);
    jsonl("tuesday.jsonl", &lines[100..120]);
    jsonl("test.jsonl", &lines[70..90]);
    jsonl("shelf1.jsonl", &lines[..20]);
    jsonl("shelf2/more.jsonl", &lines[20..40]);
    let first: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
    for name in ["essay.txt", "quotation.txt"] {
        fs::write(at(name), first["text"].as_str().unwrap()).unwrap();
    }
    fs::copy(root().join("examples/page.html"), at("page.html")).unwrap();
    for (name, pages) in [("monday", 0..9), ("tuesday", 5..14), ("archive", 0..9)] {
        let file = File::create(at(name).join("0.warc.gz")).unwrap();
        pages.for_each(|n| write_record(&file, n));
    }
    for n in 0..9 {
        fs::write(at(&format!("site/{n}.html")), page(n)).unwrap();
    }
    let site = at("site");
    fs::write(
        at("seeds.txt"),
        format!("file://{}/0.html\n", site.display()),
    )
    .unwrap();
    // A directory in place of a server, and words of the texts.
    fs::write(at("a.toml"), "directory = \"engine\"\n").unwrap();
    fs::write(at("words.tsv"), "the\t40\nsoftware\t30\nlicense\t30\n").unwrap();
    folder
}

/// A page of a small site: its words depend on its number, and pages 0 and 1 are the same.
fn page(n: usize) -> String {
    let n = n.max(1);
    let words = (0..200).map(|i| format!("word{}", i * n % 997));
    let words: Vec<String> = words.collect();
    let links: String = (0..9)
        .map(|to| format!("<a href=\"{to}.html\">{to}</a> "))
        .collect();
    format!(
        "<html><title>Page {n}</title><p>old garden roses {}<p>{links}</html>",
        words.join(" ")
    )
}

/// Appends a page to a web archive as a gzip member.
fn write_record(file: &File, n: usize) {
    let http = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{}",
        page(n)
    );
    let mut member = GzEncoder::new(file, Compression::fast());
    write!(
        member,
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://example.org/{n}.html\r\n\
         WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{n:012}>\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
        http.len()
    )
    .unwrap();
    member.finish().unwrap();
}

/// Runs a command and returns its exit code and its messages.
fn run(command: &str, folder: &Path) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_arose"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .envs([
            ("PATH", &*path),
            ("XDG_CONFIG_HOME", "none"),
            ("HOME", "none"),
        ])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Runs the commands of a page after those that make what the page takes for granted.
fn check(page: &str, before: &[&str]) {
    let folder = prepared();
    for command in before {
        let (code, messages) = run(command, folder.path());
        assert_eq!(code, Some(0), "{command}\n{messages}");
    }
    let site = format!("file://{}/site/0.html", folder.path().display());
    let mut n_run = 0;
    for command in commands(page) {
        if command.starts_with(SKIPPED) {
            continue;
        }
        // As many documents as a test has time for, and a site without a network.
        let command = command.replace("--documents 100000", "--documents 300");
        let command = command.replace("https://example.org/", &site);
        let (code, messages) = run(&command, folder.path());
        // Nothing found is a result.
        let finds = [
            "arose search ",
            "arose index query ",
            "arose crawl failures ",
            "arose crawl retry ",
        ];
        let may_be_empty = finds.iter().any(|start| command.starts_with(start));
        let is_fine = code == Some(0) || code == Some(1) && may_be_empty;
        assert!(is_fine, "{page}: {command}\nexit code {code:?}\n{messages}");
        n_run += 1;
    }
    assert!(n_run > 0, "{page} has no commands");
}

/// Pages whose commands are run, and what they take for granted.
const GUIDES: [(&str, &[&str]); 6] = [
    ("docs/guide-archive.md", &[]),
    ("docs/guide-crawl.md", &[]),
    ("docs/guide-decontaminate.md", &[]),
    (
        "docs/guide-engines.md",
        &[
            "arose dedup corpus.jsonl -o out",
            "arose dedup corpus -o engine",
        ],
    ),
    ("docs/guide-measure.md", &[]),
    ("docs/guide-training-corpus.md", &[]),
];
const REFERENCE: [(&str, &[&str]); 4] = [
    ("docs/index-of-documents.md", &[]),
    ("docs/passages.md", &[]),
    ("docs/quality.md", &[]),
    ("docs/search.md", &["arose dedup corpus.jsonl -o out"]),
];

#[test]
fn issue_32_commands_of_the_readme() {
    check("README.md", &[]);
}

/// The first command builds and runs arose; here it runs the program that the tests have built.
#[test]
fn issue_32_the_quick_start_prints_what_the_readme_shows() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("## Quick start").unwrap();
    let block = |kind: &str| {
        let (_, rest) = section.split_once(&format!("```{kind}\n")).unwrap();
        rest.split_once("```").unwrap().0
    };
    let command = block("sh").trim();
    let command = command.strip_prefix("cargo run --release -- ").unwrap();
    let folder = TempDir::with_prefix("readme").unwrap();
    fs::create_dir(folder.path().join("examples")).unwrap();
    let texts = "examples/texts.jsonl";
    fs::copy(root().join(texts), folder.path().join(texts)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_arose"))
        .args(command.split(' '))
        .current_dir(folder.path())
        .envs([("XDG_CONFIG_HOME", "none"), ("HOME", "none")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), block("text"));
    assert!(folder.path().join("out/report.html").exists());
}

#[test]
fn issue_32_commands_of_guides() {
    for (page, before) in GUIDES {
        check(page, before);
    }
}

#[test]
fn issue_32_commands_of_the_reference() {
    for (page, before) in REFERENCE {
        check(page, before);
    }
}

#[test]
fn issue_32_every_page_with_commands_is_run() {
    let run = GUIDES.iter().chain(&REFERENCE).map(|(page, _)| *page);
    let known: Vec<&str> = run.chain(NOT_RUN.map(|(page, _)| page)).collect();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let page = format!("docs/{name}");
        let is_page = name.ends_with(".md");
        let text = || fs::read_to_string(root().join(&page)).unwrap();
        if is_page && text().contains("\n```console\n") {
            let golden = include_str!("golden.rs");
            assert!(
                golden.contains(&format!("\"{page}\"")),
                "the sessions of {page} are not compared"
            );
        }
        if is_page && !commands(&page).is_empty() {
            assert!(
                known.contains(&&*page),
                "{page} is neither run nor excepted"
            );
        }
    }
}
