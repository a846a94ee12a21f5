//! Tests of bad input: each kind gives one warning with its position, and loses nothing else.

use arose_corpus::{Config, Item, Limits, Reason};

use crate::support::{
    Folder, check_damage, damage, documents, gzip, items, items_with, noise, piped, response, texts,
};

fn page(n: usize) -> Vec<u8> {
    response(n, &noise(n as u64, 200))
}

/// Members of an archive and their offsets.
fn members(n: usize, pack: fn(&[u8]) -> Vec<u8>) -> (Vec<Vec<u8>>, Vec<u64>) {
    let members: Vec<Vec<u8>> = (0..n).map(|i| pack(&page(i))).collect();
    let starts = members.iter().scan(0, |at, member| {
        let start = *at;
        *at += member.len() as u64;
        Some(start)
    });
    let starts = starts.collect();
    (members, starts)
}

fn urls(items: &[arose_corpus::Item]) -> Vec<String> {
    let documents = documents(items);
    documents
        .iter()
        .filter_map(|document| document.url.clone())
        .collect()
}

#[test]
fn truncated_gzip_member() {
    let (members, starts) = members(3, gzip);
    let mut archive = members.concat();
    archive.truncate(archive.len() - 40);
    let found = piped("a.warc.gz", &archive, Config::default());
    check_damage(&found, Reason::Truncated, starts[2]);
    assert_eq!(urls(&found), ["http://x/0", "http://x/1"]);
}

#[test]
fn truncated_gzip_of_lines() {
    let line = |n: u64| format!("{{\"text\":\"{}\"}}\n", noise(n, 50));
    let all: String = (0..1000).map(line).collect();
    let mut packed = gzip(all.as_bytes());
    packed.truncate(packed.len() / 2);
    let found = piped("a.jsonl.gz", &packed, Config::default());
    check_damage(&found, Reason::Truncated, 0);
    assert!(documents(&found).len() > 400);
}

/// Any single byte of the middle member may be wrong: the others are read, and there is one
/// warning.
#[test]
fn one_wrong_byte_costs_one_member() {
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, zstd_checked] {
        let (members, starts) = members(5, pack);
        let middle = starts[2] as usize;
        for at in (0..members[2].len()).step_by(7) {
            let mut archive = members.concat();
            archive[middle + at] ^= 0x55;
            let found = piped("a.warc", &archive, Config::default());
            let urls = urls(&found);
            for other in [0, 1, 3, 4] {
                let url = format!("http://x/{other}");
                assert!(
                    urls.contains(&url),
                    "byte {at}: lost {url}: {:?}",
                    damage(&found)
                );
            }
            // Some header bytes of a member have no meaning; then nothing is lost.
            let n_damage = damage(&found).len();
            assert_eq!(n_damage, 5 - urls.len(), "byte {at}: {:?}", damage(&found));
        }
    }
}

/// With a checksum, so that no wrong byte goes unnoticed.
fn zstd_checked(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::bulk::Compressor::new(3).expect("valid");
    encoder.include_checksum(true).expect("valid");
    encoder.compress(bytes).expect("to memory")
}

#[test]
fn content_length_too_large_too_small_or_absurd() {
    let with_length = |change: fn(usize) -> String| {
        let bytes = String::from_utf8(page(1)).expect("ASCII");
        let block = bytes.split("\r\n\r\n").next().expect("a header");
        let length = block.rsplit(' ').next().expect("its last field");
        let new = change(length.parse().expect("a number"));
        // The first length in the record is that of the archive, the second that of the server.
        bytes.replacen(
            &format!("Content-Length: {length}"),
            &format!("Content-Length: {new}"),
            1,
        )
    };
    for (change, reason) in [
        (
            (|n| (n + 5).to_string()) as fn(usize) -> String,
            Reason::BadLength,
        ),
        (|n| (n + 3000).to_string(), Reason::BadLength),
        (|n| (n - 5).to_string(), Reason::BadLength),
        (|_| "0".to_owned(), Reason::BadLength),
        (|_| "99999999999".to_owned(), Reason::TooLarge),
        (|_| "-1".to_owned(), Reason::BadHeader),
        (|_| "many".to_owned(), Reason::BadHeader),
    ] {
        let archive = [page(0), with_length(change).into_bytes(), page(2), page(3)].concat();
        let folder = Folder::new();
        let from_file = items(&[&folder.file("a.warc", &archive)]);
        check_damage(&from_file, reason, page(0).len() as u64);
        let from_pipe = piped("a.warc", &archive, Config::default());
        for found in [from_file, from_pipe] {
            let urls = urls(&found);
            assert!(urls.starts_with(&["http://x/0".to_owned()]), "{urls:?}");
            assert!(
                urls.ends_with(&["http://x/2".to_owned(), "http://x/3".to_owned()]),
                "{urls:?}"
            );
            assert_eq!(urls.len(), if reason == Reason::BadLength { 4 } else { 3 });
        }
    }
}

#[test]
fn a_block_found_by_the_next_start_is_whole() {
    let bytes = String::from_utf8(page(1)).expect("ASCII");
    let start = bytes.find("Content-Length: ").expect("a length");
    let end = start + bytes[start..].find("\r\n").expect("its end");
    for length in ["0", "10", "60000"] {
        let wrong = [&bytes[..start], "Content-Length: ", length, &bytes[end..]].concat();
        let archive = [page(0), wrong.into_bytes(), page(2)].concat();
        let found = piped("a.warc", &archive, Config::default());
        let good = piped("a.warc", &page(1), Config::default());
        assert_eq!(
            documents(&found)[1].text,
            documents(&good)[0].text,
            "{length}"
        );
    }
}

#[test]
fn parquet_without_a_text_column_lists_its_columns() {
    let folder = Folder::new();
    let bytes = parquet_of(&folder);
    let fields = arose_corpus::Fields {
        text: vec!["prose".to_owned()],
        ..Default::default()
    };
    let config = Config {
        fields,
        ..Config::default()
    };
    let good = folder.file("b.jsonl", br#"{"prose":"kept"}"#);
    let found = items_with(&[&folder.file("a.parquet", &bytes), &good], config);
    check_damage(&found, Reason::NoText, 0);
    let detail = &damage(&found)[0].detail;
    assert!(
        detail.contains("prose") && detail.contains("id, url, title, lang, text"),
        "{detail}"
    );
    assert_eq!(texts(&found), ["kept"]);
}

fn parquet_of(folder: &Folder) -> Vec<u8> {
    let lines: String = (0..50)
        .map(|n| format!("{{\"text\":\"{}\"}}\n", noise(n, 20)))
        .collect();
    let found = items(&[&folder.file("source.jsonl", lines.as_bytes())]);
    let mut writer = arose_corpus::ParquetWriter::new(Vec::new()).expect("to memory");
    for document in documents(&found) {
        writer.write(document.clone()).expect("to memory");
    }
    writer.finish().expect("to memory")
}

#[test]
fn damaged_parquet() {
    let folder = Folder::new();
    let good = parquet_of(&folder);
    let mut no_footer = good.clone();
    no_footer.truncate(good.len() / 2);
    let found = items(&[&folder.file("a.parquet", &no_footer)]);
    check_damage(&found, Reason::BadParquet, 0);
    let mut bad_page = good.clone();
    bad_page[200..400].fill(0xaa);
    let found = items(&[&folder.file("b.parquet", &bad_page)]);
    check_damage(&found, Reason::BadParquet, 0);
}

#[test]
fn lines_that_are_no_objects() {
    let lines =
        b"{\"text\":\"a\"}\n[1]\n{\"text\":\"b\"}\n{\"text\":\n{\"text\":\"c\"}\n{\"x\":1}\n";
    let found = piped("a.jsonl", lines, Config::default());
    let places: Vec<_> = damage(&found)
        .iter()
        .map(|warning| (warning.reason, warning.position.offset))
        .collect();
    assert_eq!(
        places,
        [
            (Reason::NotAnObject, 13),
            (Reason::NotAnObject, 30),
            (Reason::NoText, 52)
        ]
    );
    assert_eq!(texts(&found), ["a", "b", "c"]);
}

#[test]
fn a_line_beyond_the_limit() {
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(5000));
    let lines = format!("{{\"text\":\"a\"}}\n{long}\n{{\"text\":\"b\"}}\n");
    for block_bytes in [1, 100, 4000, 6000, 1 << 20] {
        let config = Config {
            limits: Limits {
                line_bytes: 4000,
                ..Limits::default()
            },
            ..crate::support::config(2, block_bytes)
        };
        let found = piped("a.jsonl", lines.as_bytes(), config);
        check_damage(&found, Reason::TooLarge, 13);
        assert_eq!(texts(&found), ["a", "b"]);
    }
}

/// Two gigabytes that are generated while they are read; the test may use far less memory.
#[test]
fn a_record_of_two_gigabytes() {
    use std::io::Read;
    let length: u64 = 2 << 30;
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: {length}\r\n\r\n"
    );
    let start = page(0).len() as u64;
    let bytes = std::io::Cursor::new([page(0), head.into_bytes()].concat())
        .chain(std::io::repeat(b'x').take(length))
        .chain(std::io::Cursor::new(
            [b"\r\n\r\n".to_vec(), page(1)].concat(),
        ));
    let found: Vec<_> =
        arose_corpus::read_from("big.warc".as_ref(), bytes, Config::default()).collect();
    check_damage(&found, Reason::TooLarge, start);
    assert_eq!(urls(&found), ["http://x/0", "http://x/1"]);
    let peak = peak_memory_mb();
    assert!(peak.is_none_or(|peak| peak < 1000), "{peak:?} MB");
}

/// The peak memory of this process.
fn peak_memory_mb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes / 1024)
}

#[test]
fn a_gzip_bomb() {
    let bomb = gzip(&vec![0; 256 << 20]);
    let line = gzip(b"{\"text\":\"after\"}\n");
    let before = gzip(b"{\"text\":\"before\"}\n");
    let start = before.len() as u64;
    let found = piped(
        "a.jsonl.gz",
        &[before, bomb.clone(), line].concat(),
        Config::default(),
    );
    check_damage(&found, Reason::Expansion, start);
    assert_eq!(texts(&found), ["before", "after"]);
    // As the body of a response.
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n",
        bomb.len()
    );
    let record = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nContent-Type: application/http\r\nContent-Length: {}\r\n\r\n{head}",
        head.len() + bomb.len()
    );
    let archive = [record.into_bytes(), bomb, b"\r\n\r\n".to_vec(), page(1)].concat();
    let found = piped("a.warc", &archive, Config::default());
    check_damage(&found, Reason::TooLarge, 0);
    assert_eq!(urls(&found), ["http://x/1"]);
}

#[cfg(unix)]
#[test]
fn a_symlink_loop() {
    let folder = Folder::new();
    folder.file("a/1.txt", b"one");
    folder.file("b/2.txt", b"two");
    std::os::unix::fs::symlink(folder.path(), folder.path().join("a/back")).expect("allowed");
    let found = items(&[folder.path()]);
    check_damage(&found, Reason::SymlinkLoop, 0);
    assert!(damage(&found)[0].source.ends_with("a/back"));
    assert_eq!(texts(&found), ["one", "two"]);
}

#[cfg(unix)]
#[test]
fn an_unreadable_file() {
    let folder = Folder::new();
    folder.file("1.txt", b"one");
    folder.file("3.txt", b"three");
    // Permissions do not stop every user; a link to a missing file does.
    std::os::unix::fs::symlink("nowhere", folder.path().join("2.txt")).expect("allowed");
    let found = items(&[folder.path()]);
    check_damage(&found, Reason::Unreadable, 0);
    assert!(damage(&found)[0].source.ends_with("2.txt"));
    assert_eq!(texts(&found), ["one", "three"]);
    // Files passed by name, and paths that are not files.
    let found = items(&[
        &folder.path().join("2.txt"),
        std::path::Path::new("/dev/null"),
    ]);
    assert_eq!(damage(&found).len(), 2);
}

#[test]
fn an_input_that_fails_while_it_is_read() {
    struct Failing(usize);
    impl std::io::Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let line = b"{\"text\":\"a\"}\n";
            match self.0 {
                0 => Err(std::io::Error::other("the disk is gone")),
                _ => {
                    self.0 -= 1;
                    buffer[..line.len()].copy_from_slice(line);
                    Ok(line.len())
                }
            }
        }
    }
    let found: Vec<_> =
        arose_corpus::read_from("a.jsonl".as_ref(), Failing(10), Config::default()).collect();
    check_damage(&found, Reason::Unreadable, 0);
    assert_eq!(documents(&found).len(), 10);
}

#[test]
fn csv_with_an_open_quote_or_too_many_cells() {
    let rows = "id,text\n1,one\n2,two,three\n4,four\n";
    let found = piped("a.csv", rows.as_bytes(), Config::default());
    check_damage(&found, Reason::BadRow, 14);
    assert_eq!(texts(&found), ["one", "four"]);
    let open = format!("id,text\n1,one\n2,\"two\n{}", "3,three\n".repeat(400));
    let config = Config {
        limits: Limits {
            record_bytes: 1000,
            ..Limits::default()
        },
        ..Config::default()
    };
    let found = piped("a.csv", open.as_bytes(), config);
    check_damage(&found, Reason::TooLarge, 14);
    assert_eq!(texts(&found).len(), 401);
}

#[test]
fn an_open_quote_costs_one_row() {
    let rows = "id,text\n1,\"a \"\"rose\"\"\nb\"\n2,\"open\n3,tulip\n4,lily\n";
    let found = piped("a.csv", rows.as_bytes(), Config::default());
    check_damage(&found, Reason::Truncated, 25);
    assert_eq!(texts(&found), ["a \"rose\"\nb", "tulip", "lily"]);
    let found = piped("a.csv", b"id,text\n1,rose\n2,\"open\n", Config::default());
    check_damage(&found, Reason::Truncated, 15);
    assert_eq!(texts(&found), ["rose"]);
}

#[test]
fn a_link_to_nowhere() {
    let folder = Folder::new();
    folder.file("a.txt", b"rose");
    let link = folder.path().join("b.txt");
    #[cfg(unix)]
    std::os::unix::fs::symlink("nowhere", &link).expect("can be made");
    if link.symlink_metadata().is_ok() {
        let found = items(&[folder.path()]);
        check_damage(&found, Reason::Unreadable, 0);
        assert!(!damage(&found)[0].detail.contains("b.txt"), "said twice");
        assert_eq!(texts(&found), ["rose"]);
    }
}

/// An archive record with any block.
fn record(url: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: {url}\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn with_records_of(record_bytes: usize) -> Config {
    Config {
        limits: Limits {
            record_bytes,
            ..Limits::default()
        },
        ..Config::default()
    }
}

/// The author of an oversized record body must not be able to forge the records after it, whether
/// or not the input can go back, and however long the body is.
#[test]
fn issue_19_a_record_beyond_the_limit_forges_nothing() {
    let forged = record("http://bank.example/", b"forged");
    for (before, after) in [(50, 5_000), (9_000, 9_000), (200_000, 10), (50, 400_000)] {
        let filler = |n: usize| noise(n as u64, n / 8).into_bytes();
        let body = [
            filler(before),
            b"\n".to_vec(),
            forged.clone(),
            filler(after),
        ]
        .concat();
        let archive = [
            record("http://x/0", b"zero"),
            record("http://x/1", &body),
            record("http://x/2", b"two"),
        ]
        .concat();
        let start = record("http://x/0", b"zero").len() as u64;
        let folder = Folder::new();
        for bytes in [archive.clone(), gzip(&archive)] {
            let offset = if bytes == archive { start } else { 0 };
            let config = || with_records_of(5_000);
            let from_file = items_with(&[&folder.file("a.warc", &bytes)], config());
            for found in [piped("a.warc", &bytes, config()), from_file] {
                check_damage(&found, Reason::TooLarge, offset);
                assert_eq!(
                    urls(&found),
                    ["http://x/0", "http://x/2"],
                    "{before} {after}"
                );
            }
        }
    }
}

/// In an archive of many members, the start of a member shows that a length beyond the limit is
/// wrong, even if the input cannot go back.
#[test]
fn issue_19_members_show_that_a_length_is_wrong() {
    let wrong = String::from_utf8(record("http://x/1", b"one")).expect("ASCII");
    let wrong = wrong.replace("Content-Length: 3", "Content-Length: 99999999");
    let mut archive = [gzip(&record("http://x/0", b"zero")), gzip(wrong.as_bytes())].concat();
    for n in 2..40 {
        let url = format!("http://x/{n}");
        archive.extend(gzip(&record(&url, noise(n, 100).as_bytes())));
    }
    let found = piped("a.warc.gz", &archive, with_records_of(5_000));
    assert_eq!(damage(&found).len(), 1, "{:?}", damage(&found));
    assert_eq!(urls(&found).len(), 39);
}

#[test]
fn issue_19_a_header_ends_where_the_next_record_starts() {
    let cut = b"WARC/1.0\r\nWARC-Type: response\r\n".to_vec();
    let archive = [record("http://x/0", b"0"), cut, record("http://x/2", b"2")].concat();
    let found = piped("a.warc", &archive, Config::default());
    check_damage(
        &found,
        Reason::BadHeader,
        record("http://x/0", b"0").len() as u64,
    );
    assert_eq!(urls(&found), ["http://x/0", "http://x/2"]);
}

#[test]
fn issue_19_tsv_has_no_quotes() {
    let rows = "id\ttext\n1\t\"Hello\n2\tshe said \"no\"\n3\tbye\"\n";
    for name in ["a.tsv", "a"] {
        let found = piped(name, rows.as_bytes(), Config::default());
        assert_eq!(texts(&found), ["\"Hello", "she said \"no\"", "bye\""]);
        assert!(damage(&found).is_empty(), "{:?}", damage(&found));
    }
}

/// Files that contain quotes are read unchanged, with a warning.
#[test]
fn issue_19_tsv_that_contradicts_itself() {
    let rows = "id\ttext\n1\t\"a \"\"rose\"\"\"\n2\t\"yes\" or \"no\"\n\"3\n\tx\"\ttulip\n";
    let found = piped("a.tsv", rows.as_bytes(), Config::default());
    assert_eq!(texts(&found), ["\"a \"\"rose\"\"\"", "\"yes\" or \"no\""]);
    let details: Vec<_> = damage(&found)
        .iter()
        .map(|warning| (warning.position.offset, warning.detail.as_str()))
        .collect();
    let kept = "cell 2 is in quotes, which TSV does not have; they are kept as text";
    assert_eq!(details[0], (8, kept));
    assert_eq!(details[1].0, 39);
    assert!(
        details[1].1.contains("the last opens a quote"),
        "{details:?}"
    );
    assert_eq!(details[2], (42, "3 cells under 2 columns"));
}

/// A header in quotes shows that the writer of a TSV file used quotes.
#[test]
fn issue_19_tsv_with_a_header_in_quotes() {
    let rows = "\"id\"\t\"text\"\n\"1\"\t\"a \"\"rose\"\"\"\n\"2\"\t\"two\nlines\"\n";
    let found = piped("a.tsv", rows.as_bytes(), Config::default());
    assert_eq!(texts(&found), ["a \"rose\"", "two\nlines"]);
    check_damage(&found, Reason::BadRow, 12);
}

/// A row ends with its line once too many bytes were scanned in vain; later rows are complete
/// again.
#[test]
fn issue_19_many_open_quotes_cost_their_lines() {
    let open = "a\"b,\"\n".repeat(100_000);
    let rows = format!("id,text\n1,one\n{open}\"b\"\"\n");
    let found = piped("a.csv", rows.as_bytes(), Config::default());
    assert_eq!(texts(&found)[0], "one");
    assert_eq!(damage(&found).len(), 100_001);
    let last = found.last().unwrap();
    assert!(matches!(last, Item::Skipped(warning) if warning.reason == Reason::Truncated));
    let config = with_records_of(100_000);
    let rows = format!("id,text\n{open}{open}x\"\n2,\"two\nlines\"\n");
    let found = piped("a.csv", rows.as_bytes(), config);
    assert_eq!(texts(&found).last(), Some(&"two\nlines"));
}

#[test]
fn a_row_of_very_many_cells() {
    let rows = format!("id,text\n1,one\n2,{}\n3,three\n", ",".repeat(200_000));
    let found = piped("a.csv", rows.as_bytes(), Config::default());
    check_damage(&found, Reason::BadRow, 14);
    assert_eq!(damage(&found)[0].detail, "200002 cells under 2 columns");
    assert_eq!(texts(&found), ["one", "three"]);
    let header = format!("text,{}\n1,one\n", "x,".repeat(70_000));
    let found = piped("a.csv", header.as_bytes(), Config::default());
    check_damage(&found, Reason::BadRow, 0);
}
