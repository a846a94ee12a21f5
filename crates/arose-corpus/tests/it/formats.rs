//! Tests of every format: uncompressed, compressed and piped.

use arose_corpus::{Config, Fields, Item, ParquetWriter, Reason, Statuses, write_json};

use crate::support::{Folder, documents, gzip, items, items_with, piped, response, texts, zstd};

const EXPECTED: [&str; 3] = ["one", "two\nlines", "drei ß"];

/// The same three documents in this format.
fn corpus(format: &str) -> Vec<u8> {
    let folder = Folder::new();
    let lines = r#"{"id":1,"url":"http://x/1","text":"one","lang":"en"}
{"id":"2","url":"http://x/2","text":"two\nlines","title":"T"}

{"id":"3","content":"drei \u00df"}
"#;
    match format {
        "jsonl" => lines.into(),
        "csv" => "id,url,text\n1,http://x/1,one\n2,http://x/2,\"two\nlines\"\n3,,drei ß\n".into(),
        "tsv" => "id\turl\ttext\n1\thttp://x/1\tone\n2\thttp://x/2\ttwo lines\n3\t\tdrei ß".into(),
        "warc" => (0..3).flat_map(|n| response(n, EXPECTED[n])).collect(),
        "parquet" => {
            let source = folder.file("a.jsonl", lines.as_bytes());
            let mut writer = ParquetWriter::new(Vec::new()).expect("to memory");
            for item in items(&[&source]) {
                if let Item::Document(document) = item {
                    writer.write(*document).expect("to memory");
                }
            }
            writer.finish().expect("to memory")
        }
        other => panic!("{other}"),
    }
}

#[track_caller]
fn check(name: &str, bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.file(name, bytes);
    let from_file = items(&[&path]);
    let found = texts(&from_file);
    assert_eq!(found.len(), EXPECTED.len(), "{name}");
    for (found, expected) in found.iter().zip(EXPECTED) {
        // A page also has a title, and line ends in it are only spaces.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words(found).ends_with(&words(expected)), "{name}: {found}");
    }
    let from_pipe = piped(name, bytes, Config::default());
    assert_eq!(
        texts(&from_pipe),
        texts(&from_file),
        "{name} through a pipe"
    );
}

/// The last rows of a file also end at a carriage return and a line feed.
#[test]
fn rows_with_two_byte_line_ends() {
    let rows = String::from_utf8(corpus("csv")).unwrap();
    let rows = rows.replace('\n', "\r\n").replace("two\r\n", "two\n");
    check("a.csv", rows.as_bytes());
    check("unended.csv", rows.trim_end().as_bytes());
}

#[test]
fn formats_and_packings() {
    for format in ["jsonl", "csv", "tsv", "warc", "parquet"] {
        let bytes = corpus(format);
        check(&format!("a.{format}"), &bytes);
        check(&format!("a.{format}.gz"), &gzip(&bytes));
        check(&format!("a.{format}.zst"), &zstd(&bytes));
        // The content decides: the name need not show the compression or the format.
        check("anything", &bytes);
        check("anything", &gzip(&bytes));
    }
}

#[test]
fn fields_of_a_document() {
    let folder = Folder::new();
    let line = br#"{"text":"a","id":7,"url":"u","title":"t","language":"l","date":"1970-01-01T00:01:00Z"}"#;
    let found = items(&[&folder.file("a.jsonl", line)]);
    let document = documents(&found)[0];
    assert_eq!(document.id.as_deref(), Some("7"));
    assert_eq!(document.url.as_deref(), Some("u"));
    assert_eq!(document.title.as_deref(), Some("t"));
    assert_eq!(document.language.as_deref(), Some("l"));
    assert_eq!(document.fetched, Some(60));
    assert_eq!(document.digest, arose_corpus::Digest::of_bytes(b"a"));
}

#[test]
fn names_of_fields_have_an_order_and_can_be_set() {
    let folder = Folder::new();
    let line = br#"{"body":"b","content":"c","x":"y","html":"<p>h</p>"}"#;
    let path = folder.file("a.jsonl", line);
    assert_eq!(texts(&items(&[&path])), ["c"]);
    let only = |text: &[&str]| Config {
        fields: Fields {
            text: text.iter().map(|name| name.to_string()).collect(),
            ..Fields::default()
        },
        ..Config::default()
    };
    assert_eq!(texts(&items_with(&[&path], only(&["x", "body"]))), ["y"]);
    assert_eq!(texts(&items_with(&[&path], only(&[]))), ["h"]);
}

#[test]
fn folders_are_walked_by_name() {
    let folder = Folder::new();
    folder.file("b/2.txt", b"two");
    folder.file("b/10.md", b"ten");
    folder.file("a.html", b"<p>a</p>");
    folder.file("c.htm.gz", &gzip(b"<p>c</p>"));
    folder.file("d.jsonl", br#"{"text":"d"}"#);
    folder.file("e.css", b"p {}");
    folder.file("f.txt", b"\xe9t\xe9");
    folder.file("unnamed", br#"{"text":"json"}"#);
    let found = items(&[folder.path()]);
    assert_eq!(texts(&found), ["a", "ten", "two", "c", "d", "été", "json"]);
    let skipped: Vec<_> = found
        .iter()
        .filter_map(|item| match item {
            Item::Skipped(warning) => Some(warning.reason),
            Item::Document(_) => None,
        })
        .collect();
    assert_eq!(skipped, [Reason::UnknownFormat]);
}

#[test]
fn patterns() {
    let folder = Folder::new();
    for name in ["b.txt", "a.txt", "c.md"] {
        folder.file(name, name.as_bytes());
    }
    assert_eq!(
        texts(&items(&[&folder.path().join("*.txt")])),
        ["a.txt", "b.txt"]
    );
    for missing in ["*.nothing", "nothing"] {
        let inputs = [folder.path().join(missing)];
        assert!(
            arose_corpus::read(&inputs, Config::default()).is_err(),
            "{missing}"
        );
    }
}

#[test]
fn statuses_can_be_restricted() {
    let mut archive = response(1, "one");
    let not_found = String::from_utf8(response(2, "two")).expect("ASCII");
    archive.extend(not_found.replace("200 OK", "404 No").into_bytes());
    let any = piped("a.warc", &archive, Config::default());
    assert_eq!(documents(&any)[1].status, Some(404));
    let success = Config {
        statuses: Statuses::Success,
        ..Config::default()
    };
    assert_eq!(documents(&piped("a.warc", &archive, success)).len(), 1);
}

#[test]
fn json_lines_are_read_back() {
    let archive = [response(1, "one"), response(2, "zwei “Rosen”\u{0}\u{2028}")].concat();
    let found = piped("a.warc", &archive, Config::default());
    let mut lines = Vec::new();
    for document in documents(&found) {
        write_json(document, &mut lines).expect("to memory");
    }
    let again = piped("a.jsonl", &lines, Config::default());
    for (before, after) in documents(&found).iter().zip(documents(&again)) {
        assert_eq!(
            (
                &before.id,
                &before.url,
                &before.title,
                &before.text,
                before.fetched
            ),
            (
                &after.id,
                &after.url,
                &after.title,
                &after.text,
                after.fetched
            ),
        );
    }
    assert_eq!(documents(&again).len(), 2);
}

#[test]
fn a_zstd_dictionary_at_the_start_of_an_archive() {
    let records: Vec<Vec<u8>> = (0..40)
        .map(|n| response(n, &format!("page {n} of many")))
        .collect();
    let dictionary = zstd::dict::from_samples(&records, 2000).expect("enough samples");
    let mut archive = 0x184d_2a5d_u32.to_le_bytes().to_vec();
    archive.extend((dictionary.len() as u32).to_le_bytes());
    archive.extend(&dictionary);
    for record in &records {
        let mut encoder = zstd::bulk::Compressor::with_dictionary(3, &dictionary).expect("valid");
        archive.extend(encoder.compress(record).expect("to memory"));
    }
    let found = piped("a.warc.zst", &archive, Config::default());
    assert_eq!(documents(&found).len(), 40);
}
