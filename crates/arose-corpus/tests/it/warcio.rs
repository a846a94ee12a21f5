//! Tests that the reference implementation in Python reads written archives, including digests.

use std::io::Write;
use std::process::{Command, Stdio};

use arose_corpus::warc::write::{NewRecord, Packing, WarcWriter};

use crate::support::{documents, piped};

/// Prints kind, URL, payload and whether the digests are correct, one line per record.
const SCRIPT: &str = r#"
import sys
from warcio.archiveiterator import ArchiveIterator
for record in ArchiveIterator(sys.stdin.buffer, check_digests=True):
    payload = record.content_stream().read()
    url = record.rec_headers.get_header("WARC-Target-URI")
    print(record.rec_type, url, payload.decode(), record.digest_checker.passed)
"#;

fn archive(packing: Packing) -> Vec<u8> {
    let mut writer = WarcWriter::new(Vec::new(), packing);
    let response = NewRecord {
        kind: "response",
        url: Some("http://x/1"),
        date: 1_715_997_490,
        id: None,
        content_type: "application/http; msgtype=response",
        http_head: b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
        body: b"a rose",
        fields: &[],
    };
    let resource = NewRecord {
        kind: "resource",
        url: Some("http://x/2"),
        content_type: "text/plain",
        http_head: b"",
        body: b"is a rose",
        ..response
    };
    for record in [response, resource] {
        writer.write(&record).expect("to memory");
    }
    writer.into_inner()
}

#[test]
fn our_reader_reads_what_is_written() {
    for packing in [Packing::Plain, Packing::Gzip] {
        let found = piped("a.warc", &archive(packing), Default::default());
        let documents = documents(&found);
        let texts: Vec<&str> = documents
            .iter()
            .map(|document| document.text.as_str())
            .collect();
        assert_eq!(texts, ["a rose", "is a rose"]);
        assert_eq!(documents[0].fetched, Some(1_715_997_490));
        assert!(
            documents
                .iter()
                .all(|document| document.warnings.is_empty())
        );
    }
}

#[test]
fn warcio_reads_what_is_written() {
    // `AROSE_PYTHON` sets an interpreter with the package, as in `.ci/run`; then it must work.
    let named = std::env::var("AROSE_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let probe = Command::new(&python)
        .args(["-c", "import warcio"])
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        assert_eq!(named, None, "it has no package warcio");
        println!("skipped: {python} has no package warcio");
        return;
    }
    for packing in [Packing::Plain, Packing::Gzip] {
        let mut child = Command::new(&python)
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it ran before");
        let mut stdin = child.stdin.take().expect("piped");
        stdin.write_all(&archive(packing)).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(
            lines.lines().collect::<Vec<_>>(),
            [
                "response http://x/1 a rose True",
                "resource http://x/2 is a rose True"
            ]
        );
    }
}
