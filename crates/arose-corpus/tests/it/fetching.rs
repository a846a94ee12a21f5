//! Tests that documents are found again by their positions.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};

use arose_corpus::{Config, Document, Error, ParquetWriter, Position, fetch};

use crate::support::{Folder, config, documents, gzip, items, noise, response, zstd};

/// Fetches every third document of a file and compares it with the result of reading.
#[track_caller]
fn check(name: &str, bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.file(name, bytes);
    let all = items(&[&path]);
    let all = documents(&all);
    assert!(!all.is_empty(), "{name}");
    for step in [1, 3, all.len()] {
        let chosen: Vec<&Document> = all.iter().copied().step_by(step).collect();
        let positions: Vec<Position> = chosen.iter().map(|document| document.position).collect();
        let found = fetch(&path, &positions, &Config::default()).expect("it exists");
        let found: Vec<&Document> = found.iter().flatten().collect();
        assert_eq!(found, chosen, "{name}");
    }
}

fn lines(n: u64) -> Vec<u8> {
    let line = |i: u64| {
        let text = noise(i, 5 + 400 * (i % 3) as usize);
        format!("{{\"id\":{i}, \"text\":\"{text}\"}}\n\n")
    };
    (0..n).map(line).collect::<String>().into_bytes()
}

#[test]
fn lines_plain_and_packed() {
    check("a.jsonl", &lines(100));
    check("marked.jsonl", &[b"\xef\xbb\xbf", &lines(3)[..]].concat());
    check("unended.jsonl", lines(3).trim_ascii_end());
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        check("one-member.jsonl.packed", &pack(&lines(100)));
        // Members that end in the middle of lines.
        let members: Vec<u8> = lines(100).chunks(7000).flat_map(pack).collect();
        check("members.jsonl", &members);
    }
}

#[test]
fn rows_plain_and_packed() {
    let rows: String = (0..50)
        .map(|i| format!("{i},\"a\n\"\"{}\"\r\n", noise(i, 20)))
        .collect();
    let table = format!("id,text\n{rows}");
    check("a.csv", table.as_bytes());
    check("a.csv.gz", &gzip(table.as_bytes()));
}

#[test]
fn archives_plain_and_packed() {
    let records: Vec<Vec<u8>> = (0..20)
        .map(|n| response(n, &noise(n as u64, 200)))
        .collect();
    check("a.warc", &records.concat());
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let members: Vec<u8> = records.iter().flat_map(|record| pack(record)).collect();
        check("a.warc.packed", &members);
        check("one-member.warc", &pack(&records.concat()));
    }
}

#[test]
fn tables_and_single_files() {
    let folder = Folder::new();
    let found = items(&[&folder.file("a.jsonl", &lines(40))]);
    let mut writer = ParquetWriter::new(Vec::new()).expect("to memory");
    for document in documents(&found) {
        writer.write(document.clone()).expect("to memory");
    }
    let bytes = writer.finish().expect("to memory");
    check("a.parquet", &bytes);
    check("packed.parquet", &gzip(&bytes));
    check("a.html", b"<p>rose</p>");
    check("a.txt.gz", &gzip(b"rose"));
}

/// A reader that went forward would have to pass 64 GiB to reach the second line.
#[test]
fn a_plain_file_is_not_read_through() {
    let folder = Folder::new();
    let line = b"{\"text\": \"rose\"}\n";
    let path = folder.file("a.jsonl", line);
    let far = 64 << 30;
    let mut file = File::options().write(true).open(&path).expect("just made");
    file.seek(SeekFrom::Start(far - 1)).expect("a sparse file");
    file.write_all(b"\n").expect("room");
    file.write_all(line).expect("room");
    let positions = [0, far].map(|offset| Position { offset, inner: 0 });
    let found = fetch(&path, &positions, &Config::default()).expect("it exists");
    let texts: Vec<&str> = found.iter().flatten().map(|found| &*found.text).collect();
    assert_eq!(texts, ["rose", "rose"]);
}

/// A member is accessed without reading the earlier ones, which are damaged here.
#[test]
fn members_before_are_not_unpacked() {
    let folder = Folder::new();
    let members: Vec<Vec<u8>> = (0..3).map(|i| gzip(&lines(i + 1))).collect();
    let mut bytes = members.concat();
    let offset = (members[0].len() + members[1].len()) as u64;
    bytes[15..offset as usize].fill(0xff);
    let path = folder.file("a.jsonl.gz", &bytes);
    let found = fetch(&path, &[Position { offset, inner: 0 }], &config(1, 1)).expect("it exists");
    let ids: Vec<_> = found
        .iter()
        .flatten()
        .map(|found| found.id.as_deref())
        .collect();
    assert_eq!(ids, [Some("0")]);
}

#[test]
fn changed_and_vanished_files() {
    let folder = Folder::new();
    let check_none = |name: &str, bytes: &[u8], positions: &[(u64, u64)]| {
        let path = folder.file(name, bytes);
        let at = |&(offset, inner)| Position { offset, inner };
        let positions: Vec<Position> = positions.iter().map(at).collect();
        let found = fetch(&path, &positions, &Config::default()).expect("it exists");
        assert_eq!(found, vec![None; positions.len()], "{name}");
    };
    // An object inside a line is not taken for a document.
    let nested = b"{\"a\":\n {\"text\": \"rose\"}}\nx{\"text\": \"rose\"}\n";
    check_none("a.jsonl", nested, &[(7, 0), (26, 0), (1000, 0)]);
    check_none("b.jsonl.gz", &gzip(nested), &[(0, 26), (0, 1000), (9, 0)]);
    check_none("c.warc", &response(1, "rose"), &[(1, 0), (1 << 40, 0)]);
    check_none("d.parquet", b"PAR1 no more", &[(0, 0), (1, 0)]);
    check_none("e.html", b"<p>rose", &[(1, 0)]);
    check_none("f.csv", b"text\nrose\n", &[(2, 0), (6, 0)]);
    check_none("empty.jsonl", b"", &[(0, 0), (5, 1)]);
    let gone = fetch(&folder.path().join("gone.jsonl"), &[], &Config::default());
    assert!(matches!(gone, Err(Error::NotFound { .. })), "{gone:?}");
}
