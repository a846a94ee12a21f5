//! Tests that kept records are copied unchanged.

use arose_corpus::{Config, Kept, Position, keep};

use crate::support::{Folder, documents, gzip, items, noise, response, zstd};

/// Keeps every other document of a file and compares the documents of both files.
#[track_caller]
fn check(name: &str, bytes: &[u8]) -> Vec<u8> {
    let folder = Folder::new();
    let path = folder.file(name, bytes);
    let before = items(&[&path]);
    let chosen: Vec<_> = documents(&before).into_iter().step_by(2).collect();
    let positions: Vec<Position> = chosen.iter().map(|document| document.position).collect();
    let mut copy = Vec::new();
    let kept = keep(&path, &positions, &mut copy, &Config::default()).expect("readable");
    let copied = positions.len() as u64;
    let expected = Kept {
        copied,
        ..Kept::default()
    };
    assert_eq!(kept, expected, "{name}");
    let after = items(&[&folder.file(&format!("kept-{name}"), &copy)]);
    let after = documents(&after);
    assert_eq!(after.len(), chosen.len(), "{name}");
    for (before, after) in chosen.iter().zip(after) {
        assert_eq!(
            (&before.id, &before.text),
            (&after.id, &after.text),
            "{name}"
        );
        assert_eq!(after.warnings, [], "{name}");
    }
    copy
}

fn lines() -> Vec<u8> {
    let line = |n: u64| {
        format!(
            "{{ \"id\":{n}, \"extra\": [1, {{}}],\"text\":\"{}\"}}\r\n",
            noise(n, 30)
        )
    };
    (0..9).map(line).collect::<String>().into_bytes()
}

#[test]
fn lines_stay_as_they_are() {
    let copy = check("a.jsonl", &lines());
    let expected: Vec<u8> = lines()
        .split_inclusive(|&b| b == b'\n')
        .step_by(2)
        .flatten()
        .copied()
        .collect();
    assert_eq!(copy, expected);
    check("a.jsonl.gz", &gzip(&lines()));
    check("a.jsonl.zst", &zstd(&lines()));
}

#[test]
fn rows_keep_their_header_and_quotes() {
    let rows = b"id,other,text\n1,x,\"a\nb\"\n2,y,c\n3,\"z\",\"d\"\"e\"";
    assert_eq!(
        check("a.csv", rows),
        b"id,other,text\n1,x,\"a\nb\"\n3,\"z\",\"d\"\"e\"\n"
    );
}

#[test]
fn archives_keep_members_and_file_headers() {
    let info = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nContent-Length: 4\r\n\r\na: b\r\n\r\n".to_vec();
    let records: Vec<Vec<u8>> = (0..5).map(|n| response(n, &noise(n as u64, 50))).collect();
    let all: Vec<Vec<u8>> = [vec![info.clone()], records.clone()].concat();
    let expected: Vec<&Vec<u8>> = [&info, &records[0], &records[2], &records[4]].into();
    let plain = check("a.warc", &all.concat());
    assert_eq!(
        plain,
        expected
            .iter()
            .copied()
            .flatten()
            .copied()
            .collect::<Vec<_>>()
    );
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd] {
        let archive: Vec<u8> = all.iter().flat_map(|record| pack(record)).collect();
        let packed = check("a.warc", &archive);
        // The compressed bytes themselves are copied.
        assert_eq!(
            packed,
            expected
                .iter()
                .flat_map(|record| pack(record))
                .collect::<Vec<_>>()
        );
    }
    // All records in one member: each gets its own.
    let copy = check("a.warc.gz", &gzip(&all.concat()));
    let members = memchr::memmem::find_iter(&copy, b"\x1f\x8b\x08").count();
    assert_eq!(members, 4);
}

#[test]
fn parquet_rows_keep_all_columns() {
    let folder = Folder::new();
    let found = items(&[&folder.file("a.jsonl", &lines())]);
    let mut writer = arose_corpus::ParquetWriter::new(Vec::new()).expect("to memory");
    for document in documents(&found) {
        writer.write(document.clone()).expect("to memory");
    }
    let bytes = writer.finish().expect("to memory");
    let copy = check("a.parquet", &bytes);
    // Columns that no reader uses are there, too.
    let names = |bytes: &[u8]| {
        let tail = String::from_utf8_lossy(bytes).into_owned();
        ["digest", "offset", "inner", "status"].map(|name| tail.contains(name))
    };
    assert_eq!(names(&copy), [true; 4]);
}

#[test]
fn single_documents_and_positions_that_do_not_exist() {
    check("a.html", b"<p>rose</p>");
    let folder = Folder::new();
    let path = folder.file("a.jsonl", &lines());
    let nowhere = [3, 70_000].map(|offset| Position { offset, inner: 0 });
    let kept = keep(&path, &nowhere, Vec::new(), &Config::default()).expect("readable");
    assert_eq!(
        kept,
        Kept {
            missing: 2,
            ..Kept::default()
        }
    );
}
