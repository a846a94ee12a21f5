//! Tests with web archives: other records are copied, and dropped documents are removed or become
//! revisits.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::{Command, Stdio};

use arose::rule::Criterion;
use arose_corpus::warc::write::{NewRecord, Packing, WarcWriter};
use arose_dedup::{Config, DroppedAs, Error, KeptAs, Output, Progress, Start};
use serde_json::Value;

use crate::support::{Bench, family_texts};

const HTML: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
const IMAGE: &str = "HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n";

/// A record of an archive: its header fields in lower case, and its block.
type Record = (BTreeMap<String, String>, String);

/// Pages 0 and 1 are the same, page 2 is a near duplicate of them, and page 3 is different.
fn pages() -> Vec<String> {
    let words = |n: usize| {
        (0..200)
            .map(|i| format!("word{} ", i + n))
            .collect::<String>()
    };
    let first = words(0);
    vec![
        first.clone(),
        first.clone(),
        first.replace("word100 ", "other "),
        words(5000),
    ]
}

/// An archive with every kind of record.
fn archive(packing: Packing) -> Vec<u8> {
    let mut writer = WarcWriter::new(Vec::new(), packing);
    let mut put = |kind, n: usize, http_head: &str, body: &[u8]| {
        let url = format!("http://site.example/{n}");
        let id = format!(
            "urn:uuid:00000000-0000-4000-8000-{n:06}{:06}",
            kind_number(kind)
        );
        let record = NewRecord {
            kind,
            url: Some(&url),
            date: 1_700_000_000 + n as i64,
            id: Some(&id),
            content_type: match kind {
                "warcinfo" | "metadata" => "application/warc-fields",
                "request" => "application/http; msgtype=request",
                _ => "application/http; msgtype=response",
            },
            http_head: http_head.as_bytes(),
            body,
            fields: &[],
        };
        writer.write(&record).unwrap();
    };
    put("warcinfo", 99, "", b"software: test\r\n");
    for (n, text) in pages().iter().enumerate() {
        put("request", n, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"");
        put("response", n, HTML, format!("<p>{text}").as_bytes());
        put("metadata", n, "", b"fetchTimeMs: 7\r\n");
    }
    put("response", 50, IMAGE, b"\x89PNG picture");
    put("revisit", 51, HTML, b"");
    writer.into_inner()
}

fn kind_number(kind: &str) -> usize {
    let kinds = ["warcinfo", "request", "response", "metadata", "revisit"];
    kinds.iter().position(|other| *other == kind).unwrap()
}

/// The records of an archive, read by an independent reader.
fn records(bytes: &[u8]) -> Vec<Record> {
    let mut plain = Vec::new();
    match bytes.starts_with(b"\x1f\x8b") {
        true => drop(
            flate2::read::MultiGzDecoder::new(bytes)
                .read_to_end(&mut plain)
                .unwrap(),
        ),
        false => plain.extend_from_slice(bytes),
    }
    let mut rest = &plain[..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let end = rest
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap();
        let head = std::str::from_utf8(&rest[..end]).unwrap();
        let mut lines = head.split("\r\n");
        assert!(lines.next().unwrap().starts_with("WARC/1."));
        let fields: BTreeMap<String, String> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let n: usize = fields["content-length"].parse().unwrap();
        let block = &rest[end + 4..end + 4 + n];
        found.push((fields, String::from_utf8_lossy(block).into_owned()));
        rest = rest[end + 4 + n..].strip_prefix(b"\r\n\r\n").unwrap();
    }
    found
}

/// Kind and URL of each record.
fn outline(records: &[Record]) -> Vec<(&str, &str)> {
    records
        .iter()
        .map(|(fields, _)| (&*fields["warc-type"], &*fields["warc-target-uri"]))
        .collect()
}

fn run(bench: &Bench, input: &str, output: Output) -> Result<Value, Error> {
    let config = Config {
        output,
        ..Config::of(Criterion::jaccard())
    };
    bench.run_on(&[input], &config)
}

const REVISIT: Output = Output {
    kept: KeptAs::Copies,
    dropped: DroppedAs::Revisit,
    max_file_bytes: None,
};

#[test]
fn issue_20_what_is_no_dropped_document_passes_through() {
    for (packing, name) in [(Packing::Gzip, "warc.gz"), (Packing::Plain, "warc")] {
        let bench = Bench::new();
        let bytes = archive(packing);
        let input = format!("in.{name}");
        fs::write(bench.path(&input), &bytes).unwrap();
        let summary = run(&bench, &input, Output::default()).unwrap();
        assert_eq!(summary["counts"]["kept"], 2);
        let before = records(&bytes);
        let after = records(&fs::read(bench.path(&format!("out/kept.{name}"))).unwrap());
        let is_dropped = |record: &&Record| {
            let url = &*record.0["warc-target-uri"];
            record.0["warc-type"] == "response"
                && ["http://site.example/1", "http://site.example/2"].contains(&url)
        };
        let expected: Vec<Record> = before.iter().filter(|r| !is_dropped(r)).cloned().collect();
        assert_eq!(outline(&after), outline(&expected));
        assert_eq!(after, expected);
    }
}

#[test]
fn issue_20_dropped_documents_become_revisit_records() {
    let bench = Bench::new();
    let bytes = archive(Packing::Gzip);
    fs::write(bench.path("in.warc.gz"), &bytes).unwrap();
    run(&bench, "in.warc.gz", REVISIT).unwrap();
    let copy = bench.path("out/kept.warc.gz");
    let after = records(&fs::read(&copy).unwrap());
    let before = records(&bytes);
    assert_eq!(after.len(), before.len());
    let response = |n: usize| {
        let url = format!("http://site.example/{n}");
        let is_it = |record: &&Record| {
            let kind = &*record.0["warc-type"];
            record.0["warc-target-uri"] == url && (kind == "revisit" || kind == "response")
        };
        after.iter().find(is_it).unwrap()
    };
    let kept = response(0);
    for (n, profile, rule) in [
        (1, arose_corpus::IDENTICAL, "exact"),
        (2, arose_corpus::NEAR_DUPLICATE, "jaccard"),
    ] {
        let (fields, block) = response(n);
        assert_eq!(fields["warc-type"], "revisit");
        assert_eq!(fields["warc-profile"], profile);
        assert_eq!(fields["warc-refers-to"], kept.0["warc-record-id"]);
        assert_eq!(fields["warc-refers-to-target-uri"], "http://site.example/0");
        assert_eq!(fields["warc-refers-to-date"], kept.0["warc-date"]);
        assert_eq!(fields["arose-duplicate-rule"], rule);
        assert_eq!(block, HTML);
        let own = before
            .iter()
            .find(|record| record.0["warc-record-id"] == fields["warc-record-id"]);
        assert_eq!(
            own.unwrap().0["warc-payload-digest"],
            fields["warc-payload-digest"]
        );
    }
    check_by_warcio(&copy);
}

/// The reference implementation in Python, if it is installed, reads all records and checks their
/// digests.
fn check_by_warcio(path: &Path) {
    let named = std::env::var("AROSE_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let script = "import sys\n\
        from warcio.archiveiterator import ArchiveIterator\n\
        for record in ArchiveIterator(open(sys.argv[1], 'rb'), check_digests='raise'):\n    \
            record.content_stream().read()\n    \
            print(record.rec_type)\n";
    let output = Command::new(&python)
        .args(["-c", script])
        .arg(path)
        .stderr(Stdio::piped())
        .output();
    let Ok(output) = output else {
        println!("skipped: no {python}");
        return;
    };
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("No module named 'warcio'") {
        assert_eq!(named, None, "it has no package warcio");
        println!("skipped: {python} has no package warcio");
        return;
    }
    assert!(output.status.success(), "{error}");
    let kinds = String::from_utf8_lossy(&output.stdout).into_owned();
    let expected = records(&fs::read(path).unwrap());
    let expected: Vec<&str> = expected
        .iter()
        .map(|record| &*record.0["warc-type"])
        .collect();
    assert_eq!(kinds.lines().collect::<Vec<_>>(), expected);
}

/// An archive of images has no documents. It is copied next to the one that has.
#[test]
fn an_archive_without_documents_passes_through() {
    let bench = Bench::new();
    let mut writer = WarcWriter::new(Vec::new(), Packing::Gzip);
    let image = NewRecord {
        kind: "response",
        url: Some("http://site.example/i.png"),
        date: 0,
        id: None,
        content_type: "application/http; msgtype=response",
        http_head: IMAGE.as_bytes(),
        body: b"\x89PNG",
        fields: &[],
    };
    writer.write(&image).unwrap();
    let images = writer.into_inner();
    fs::create_dir(bench.path("in")).unwrap();
    fs::write(bench.path("in/a.warc.gz"), archive(Packing::Gzip)).unwrap();
    fs::write(bench.path("in/b.warc.gz"), &images).unwrap();
    run(&bench, "in", Output::default()).unwrap();
    let copy = fs::read(bench.path("out/kept.files/b.warc.gz")).unwrap();
    assert_eq!(copy, images);
}

/// Every record occurs twice, once kept and once dropped. The copy has it once.
#[test]
fn an_archive_that_is_named_twice_is_copied_once() {
    let bench = Bench::new();
    fs::write(bench.path("in.warc.gz"), archive(Packing::Gzip)).unwrap();
    run(&bench, "in.warc.gz", Output::default()).unwrap();
    let once = fs::read(bench.path("out/kept.warc.gz")).unwrap();
    fs::remove_dir_all(bench.path("out")).unwrap();
    let inputs = ["in.warc.gz", "in.warc.gz"];
    bench
        .run_on(&inputs, &Config::of(Criterion::jaccard()))
        .unwrap();
    assert!(fs::read(bench.path("out/kept.warc.gz")).unwrap() == once);
}

#[test]
fn revisit_records_need_an_archive() {
    let bench = Bench::with_texts(&family_texts(20, 1));
    let error = run(&bench, "input.jsonl", REVISIT).unwrap_err();
    assert!(matches!(error, Error::NoArchive), "{error}");
}

/// Split or not, the kept documents are the same, and no file is too large.
#[test]
fn issue_20_files_are_split_by_size() {
    let texts = family_texts(150, 4);
    let plain = fs::read(Bench::with_texts(&texts).path("input.jsonl")).unwrap();
    let rows: String = texts
        .iter()
        .enumerate()
        .map(|(i, text)| format!("{i},{text}\n"))
        .collect();
    let values = String::from_utf8(plain.clone())
        .unwrap()
        .trim()
        .replace('\n', ",\n ");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, &plain).unwrap();
    let inputs = [
        ("in.jsonl", plain.clone()),
        ("in.jsonl.gz", gzip.finish().unwrap()),
        ("in.csv", format!("id,text\n{rows}").into_bytes()),
        ("in.json", format!("[{values}]").into_bytes()),
        ("in.warc.gz", archive(Packing::Gzip)),
    ];
    for (name, bytes) in inputs {
        let bench = Bench::new();
        fs::write(bench.path(name), &bytes).unwrap();
        let whole = run(&bench, name, Output::default()).unwrap();
        fs::rename(bench.path("out"), bench.path("whole")).unwrap();
        let limit = (bytes.len() / 6).max(1500) as u64;
        let output = Output {
            max_file_bytes: NonZeroU64::new(limit),
            ..Output::default()
        };
        let summary = run(&bench, name, output).unwrap();
        assert_eq!(summary["kept_in"], "kept.files");
        let folder = bench.path("out/kept.files");
        let mut parts: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        parts.sort();
        assert!(parts.len() > 1, "{name}: {parts:?}");
        for part in &parts {
            let n = fs::metadata(part).unwrap().len();
            assert!(n <= limit, "{}: {n} of {limit}", part.display());
        }
        let whole_copy = bench.path("whole").join(whole["kept_in"].as_str().unwrap());
        let read = |paths: &[std::path::PathBuf]| -> Vec<(Option<String>, String)> {
            let items = arose_corpus::read(paths, arose_corpus::Config::default()).unwrap();
            let documents = items.filter_map(|item| match item {
                arose_corpus::Item::Document(document) => Some(document),
                arose_corpus::Item::Skipped(_) => None,
            });
            documents
                .map(|document| (document.id, document.text))
                .collect()
        };
        let expected = read(&[whole_copy]);
        assert!(expected.len() > 1, "{name}");
        assert_eq!(read(&parts), expected, "{name}");
    }
}

#[test]
fn issue_20_only_the_names_are_written() {
    let bench = Bench::with_texts(&family_texts(50, 1));
    let output = Output {
        kept: KeptAs::Ids,
        ..Output::default()
    };
    let summary = run(&bench, "input.jsonl", output).unwrap();
    assert_eq!(summary["kept_in"], "kept.ids.jsonl");
    let text = fs::read_to_string(bench.path("out/kept.ids.jsonl")).unwrap();
    let docs = bench.docs();
    let kept: Vec<&str> = docs
        .iter()
        .filter(|doc| doc.kept)
        .map(|doc| &*doc.id)
        .collect();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&str> = lines
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, kept);
    assert!(
        lines[0]["source"]
            .as_str()
            .unwrap()
            .ends_with("input.jsonl")
    );
    assert!(!bench.path("out/kept.jsonl").exists());
    // A run with another choice is a different run.
    let inputs = [bench.path("input.jsonl")];
    let again = arose_dedup::run(
        &inputs,
        &Config::of(Criterion::jaccard()),
        &bench.path("out"),
        Start::Resume,
        &Progress::default(),
    );
    assert!(matches!(again, Err(Error::OtherSettings { .. })));
}
