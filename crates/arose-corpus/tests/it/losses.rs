//! Tests of which files of a directory are read, and of the messages about the rest.

use std::path::{Path, PathBuf};

use arose_corpus::{Config, Counts, Files, Loss, Reason, parts, read, read_from};

use crate::support::{Folder, documents, gzip, items, items_with, noise, piped, response, texts};

/// Reads everything and returns the counts.
fn counts(inputs: &[&Path], config: Config) -> Counts {
    let inputs: Vec<PathBuf> = inputs.iter().map(|path| path.to_path_buf()).collect();
    counted(read(&inputs, config).expect("they exist"))
}

fn counted(mut documents: arose_corpus::Documents<arose_corpus::Item>) -> Counts {
    documents.by_ref().for_each(drop);
    documents.counts().clone()
}

fn with(files: Files) -> Config {
    Config {
        files,
        ..Config::default()
    }
}

fn strings(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|pattern| pattern.to_string()).collect()
}

/// The names of the incomplete files, and the number of damaged records.
#[track_caller]
fn check(inputs: &[&Path], incomplete: &[(&str, Reason)], n_records: u64) {
    let losses = counts(inputs, Config::default()).losses;
    let named = losses.files.iter().map(|warning| {
        assert_eq!(warning.loss, Loss::File);
        let name = warning.source.file_name().unwrap_or_default();
        (name.to_str().unwrap(), warning.reason)
    });
    assert_eq!(named.collect::<Vec<_>>(), incomplete);
    assert_eq!(losses.n_files, incomplete.len() as u64);
    assert_eq!(losses.n_records, n_records);
}

#[test]
fn issue_19_hidden_entries_are_not_read() {
    let folder = Folder::new();
    folder.file("a.txt", b"a");
    folder.file(".hidden.txt", b"hidden");
    folder.file(".git/b.txt", b"hidden");
    folder.file("c/.d/e.txt", b"hidden");
    assert_eq!(texts(&items(&[folder.path()])), ["a"]);
    // A star does not match them either, but a file passed by name is read.
    assert_eq!(texts(&items(&[&folder.path().join("*.txt")])), ["a"]);
    let named = folder.path().join(".hidden.txt");
    assert_eq!(texts(&items(&[&named])), ["hidden"]);
    let named = folder.path().join(".git");
    assert_eq!(texts(&items(&[&named])), ["hidden"]);
}

#[test]
fn issue_19_directories_of_the_run_are_not_entered() {
    let folder = Folder::new();
    folder.file("a.txt", b"a");
    folder.file("out/kept.jsonl", br#"{"text":"own output"}"#);
    let skip = vec![folder.path().join("out"), folder.path().join("not there")];
    let config = with(Files {
        skip,
        ..Files::default()
    });
    assert_eq!(texts(&items_with(&[folder.path()], config.clone())), ["a"]);
    let pattern = folder.path().join("*");
    assert_eq!(texts(&items_with(&[&pattern], config)), ["a"]);
}

#[cfg(unix)]
#[test]
fn issue_19_linked_files_are_read_once() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    folder.file("m/1.txt", b"one");
    folder.file("m/2.txt", b"two");
    symlink("m", folder.path().join("a")).expect("allowed");
    symlink("m", folder.path().join("z")).expect("allowed");
    symlink("m/1.txt", folder.path().join("b.txt")).expect("allowed");
    let found = items(&[folder.path()]);
    assert_eq!(texts(&found), ["one", "two"]);
    assert!(documents(&found)[0].source.ends_with("a/1.txt"));
    let counts = counts(&[folder.path()], Config::default());
    assert_eq!(counts.skipped[&Reason::AlreadyRead], 3);
    assert!(counts.losses.is_empty());
    // A hard link is a separate file, and so is a file passed twice.
    let original = folder.path().join("m/1.txt");
    std::fs::hard_link(&original, folder.path().join("m/3.txt")).expect("allowed");
    let directory = folder.path().join("m");
    let found = items(&[&directory, &original]);
    assert_eq!(texts(&found), ["one", "two", "one", "one"]);
}

/// Two links in each of 40 directories to the next would give 2^40 paths.
#[cfg(unix)]
#[test]
fn issue_19_rows_of_links_do_not_multiply() {
    let folder = Folder::new();
    for n in 0..40 {
        folder.file(&format!("{n}/x.txt"), b"text");
        for link in ["a", "b"] {
            let link = folder.path().join(format!("{n}/{link}"));
            std::os::unix::fs::symlink(format!("../{}", n + 1), link).expect("allowed");
        }
    }
    folder.file("40/x.txt", b"text");
    assert_eq!(documents(&items(&[folder.path()])).len(), 41);
}

#[test]
fn issue_19_unknown_kinds_are_counted_by_extension() {
    let folder = Folder::new();
    for name in [
        "a.py",
        "b/c.PY",
        "d.rst",
        "LICENSE",
        "v1.a name with blanks",
    ] {
        folder.file(name, b"some text");
    }
    folder.file("e.txt", b"text");
    folder.file("f.png", b"\x89PNG\r\n\x1a\n\0\0");
    let found = counts(&[folder.path()], Config::default());
    let kinds: Vec<_> = found
        .unknown_files
        .iter()
        .map(|(k, n)| (&**k, *n))
        .collect();
    let expected = [
        (".png", 1),
        (".py", 2),
        (".rst", 1),
        ("no extension", 1),
        ("other", 1),
    ];
    assert_eq!(kinds, expected);
    assert_eq!((found.documents, found.losses.is_empty()), (1, true));
    // All text files, which excludes an image.
    let all_text = Files {
        all_text: true,
        ..Files::default()
    };
    let found = counts(&[folder.path()], with(all_text));
    assert_eq!(found.documents, 6);
    assert_eq!(found.unknown_files.len(), 1);
    assert!(found.losses.is_empty());
}

#[test]
fn issue_19_patterns_choose_files() {
    let folder = Folder::new();
    for name in [
        "a.txt",
        "b.py",
        "docs/c.txt",
        "docs/deep/d.txt",
        "node_modules/e.txt",
    ] {
        folder.file(name, name.as_bytes());
    }
    let chosen = |include: &[&str], exclude: &[&str]| -> Vec<String> {
        let files = Files {
            include: strings(include),
            exclude: strings(exclude),
            ..Files::default()
        };
        let found = items_with(&[folder.path()], with(files));
        texts(&found).into_iter().map(str::to_owned).collect()
    };
    assert_eq!(chosen(&["*.py"], &[]), ["b.py"]);
    assert_eq!(chosen(&["docs/*.txt"], &[]), ["docs/c.txt"]);
    assert_eq!(
        chosen(&["docs/**", "*.py"], &["deep"]),
        ["b.py", "docs/c.txt"]
    );
    assert_eq!(
        chosen(&[], &["node_modules/", "docs/deep/*"]),
        ["a.txt", "docs/c.txt"]
    );
    assert_eq!(chosen(&[], &["**/*.txt"]), Vec::<String>::new());
    // A file passed by name needs no pattern, and a malformed pattern is rejected.
    let files = |pattern: &str| Files {
        include: strings(&[pattern]),
        ..Files::default()
    };
    let named = folder.path().join("a.txt");
    assert_eq!(
        texts(&items_with(&[&named], with(files("*.py")))),
        ["a.txt"]
    );
    assert!(read(&[named], with(files("[a"))).is_err());
}

#[test]
fn issue_19_parts_are_chosen_alike() {
    let folder = Folder::new();
    folder.file("a.txt", b"a");
    folder.file(".b.txt", b"b");
    folder.file("c.py", b"c");
    let files = Files {
        exclude: strings(&["c.*"]),
        ..Files::default()
    };
    let inputs = [folder.path().to_owned()];
    let (parts, _) = parts(&inputs, 1 << 20, &with(files)).expect("it is there");
    let files = parts.iter().flat_map(|part| &part.files);
    assert_eq!(files.count(), 1);
}

#[test]
fn issue_19_null_texts_are_intact() {
    let lines =
        b"{\"text\":null}\n{\"id\":1}\n{\"text\":\"a\"}\n{\"text\":null,\"html\":\"<p>b\"}\n\
                  {\"content\":null,\"html\":null}\n{\"text\":[1]}\n";
    let found = counted(read_from("a.jsonl".as_ref(), &lines[..], Config::default()));
    assert_eq!(found.documents, 2);
    assert_eq!(found.skipped[&Reason::NullText], 2);
    assert_eq!(found.skipped[&Reason::NoText], 2);
    assert_eq!((found.losses.n_files, found.losses.n_records), (0, 2));
    // A CSV row that ends before the column.
    let found = counted(read_from(
        "a.csv".as_ref(),
        &b"id,text\n1\n2,b\n"[..],
        Config::default(),
    ));
    assert_eq!((found.documents, found.skipped[&Reason::NullText]), (1, 1));
}

#[test]
fn issue_19_truncated_files_are_incomplete() {
    let folder = Folder::new();
    let lines: String = (0..500)
        .map(|n| format!("{{\"text\":\"{}\"}}\n", noise(n, 30)))
        .collect();
    let cut = |bytes: &[u8], share: f64| bytes[..(bytes.len() as f64 * share) as usize].to_vec();
    let packed = gzip(lines.as_bytes());
    let a = folder.file("a.jsonl.gz", &cut(&packed, 0.5));
    let b = folder.file(
        "b.jsonl.zst",
        &cut(&crate::support::zstd(lines.as_bytes()), 0.9),
    );
    let archive = [response(1, &noise(1, 99)), response(2, &noise(2, 99))].concat();
    let c = folder.file("c.warc", &cut(&archive, 0.8));
    let d = folder.file("d.txt.gz", &cut(&packed, 0.5));
    let e = folder.file("e.jsonl.gz", &packed);
    let names = [
        ("a.jsonl.gz", Reason::Truncated),
        ("b.jsonl.zst", Reason::Truncated),
        ("c.warc", Reason::Truncated),
        ("d.txt.gz", Reason::Truncated),
    ];
    check(&[&a, &b, &c, &d, &e], &names, 0);
    let found = items(&[&a]);
    assert!((100..500).contains(&documents(&found).len()));
    // The same from a pipe.
    let found = piped("-", &cut(&packed, 0.5), Config::default());
    assert!(documents(&found).len() > 100);
    let found = counted(read_from(
        "-".as_ref(),
        std::io::Cursor::new(cut(&packed, 0.5)),
        Config::default(),
    ));
    assert_eq!(found.losses.n_files, 1);
}

/// Every format that can detect truncation does.
#[test]
fn issue_19_cut_files_of_every_format() {
    let folder = Folder::new();
    let file = |name: &str, bytes: &[u8]| folder.file(name, bytes);
    let line = "{\"text\":\"whole\"}\n";
    let cut = |bytes: &[u8], n: usize| bytes[..bytes.len() - n].to_vec();
    let lines: String = (0..500)
        .map(|n| format!("{{\"text\":\"{}\"}}\n", noise(n, 30)))
        .collect();
    let mut table = arose_corpus::ParquetWriter::new(Vec::new()).unwrap();
    let found = piped("a.jsonl", lines.as_bytes(), Config::default());
    for document in documents(&found) {
        table.write(document.clone()).unwrap();
    }
    let table = table.finish().unwrap();
    let arc = "filedesc://a.arc 0.0.0.0 20080430204825 text/plain 65\n\
               1 0 test\nURL IP-address Archive-date Content-type Archive-length\n\n\
               http://x/ 1.2.3.4 20080430204825 text/html 200\n<p>cut";
    let truncated = Reason::Truncated;
    let cases: Vec<(&str, Vec<u8>, Reason, usize)> = vec![
        (
            "a.jsonl",
            format!("{line}{{\"text\":\"cut").into(),
            truncated,
            1,
        ),
        ("b.jsonl", format!("{line}{{").into(), truncated, 1),
        ("c.ndjson", b"{\"text\":\"cu".to_vec(), truncated, 0),
        (
            "d.jsonl.gz",
            gzip(format!("{line}{{\"text\":").as_bytes()),
            truncated,
            1,
        ),
        (
            "e.json",
            b"{\"text\":\"a\"}\n{\"text\":tru".to_vec(),
            truncated,
            1,
        ),
        ("f.json", b"[{\"text\":\"a\"},".to_vec(), truncated, 1),
        (
            "g.csv",
            b"id,text\n1,one\n2,\"two\nlines".to_vec(),
            truncated,
            1,
        ),
        ("h.csv", b"id,text\n1,one\n2,\"two".to_vec(), truncated, 1),
        ("i.csv", b"id,text\n1,one\n2".to_vec(), truncated, 1),
        ("j.tsv", b"id\ttext\n1\tone\n2".to_vec(), truncated, 1),
        (
            "k.xml",
            b"<rss><item><title>one</title></item><item><ti".to_vec(),
            truncated,
            1,
        ),
        (
            "l.atom",
            b"<feed><entry><title>one</title></entry>".to_vec(),
            truncated,
            1,
        ),
        ("m.jsonl.gz", cut(&gzip(lines.as_bytes()), 30), truncated, 1),
        (
            "n.jsonl.zst",
            cut(&crate::support::zstd(lines.as_bytes()), 30),
            truncated,
            0,
        ),
        (
            "o.jsonl.xz",
            cut(&crate::support::xz(lines.as_bytes()), 30),
            truncated,
            0,
        ),
        (
            "p.jsonl.bz2",
            cut(&crate::support::bzip2(lines.as_bytes()), 30),
            truncated,
            0,
        ),
        ("q.warc", cut(&response(1, "one"), 7), truncated, 0),
        ("r.arc", arc.into(), truncated, 0),
        ("s.parquet", cut(&table, 30), Reason::BadParquet, 0),
    ];
    for (name, bytes, reason, n_documents) in cases {
        let path = file(name, &bytes);
        let found = counts(&[&path], Config::default());
        let files: Vec<_> = found.losses.files.iter().map(|file| file.reason).collect();
        assert_eq!((name, files), (name, vec![reason]));
        assert!(found.documents >= n_documents as u64, "{name}: {found:?}");
    }
    // A file that lacks only the last line end is complete.
    for (name, bytes) in [
        ("1.jsonl", &b"{\"text\":\"a\"}\n{\"text\":\"b\"}"[..]),
        ("2.csv", b"id,text\n1,one\n2,\"two\""),
        ("3.csv", b"id,text,note\n1,one,x\n2,two"),
        ("4.xml", b"<rss><title>one</title></rss>"),
    ] {
        check(&[&file(name, bytes)], &[], 0);
    }
    // A flaw in the middle of the last line is one damaged record.
    check(
        &[&file("5.jsonl", format!("{line}{{\"text\" 1}}").as_bytes())],
        &[],
        1,
    );
}

/// A page that the archiver truncated is a document with a warning, in an archive that is complete.
#[test]
fn issue_19_a_record_truncated_by_the_archiver_is_no_loss() {
    let record = String::from_utf8(response(1, "one")).unwrap();
    let record = record.replace("WARC-Type:", "WARC-Truncated: length\r\nWARC-Type:");
    let found = piped("a.warc", record.as_bytes(), Config::default());
    let warning = &documents(&found)[0].warnings[0];
    assert_eq!(
        (warning.reason, warning.loss),
        (Reason::Truncated, Loss::Nothing)
    );
    let bytes = std::io::Cursor::new(record.into_bytes());
    let found = counted(read_from("a.warc".as_ref(), bytes, Config::default()));
    assert!(found.losses.is_empty());
}

/// Damage inside a member loses a record if others follow, and the rest of the file if none do.
#[test]
fn issue_19_damaged_members() {
    let folder = Folder::new();
    let members: Vec<Vec<u8>> = (0..3)
        .map(|n| gzip(&response(n, &noise(n as u64, 400))))
        .collect();
    let damaged = |mut member: Vec<u8>| {
        let middle = member.len() / 2;
        member[middle..middle + 20].fill(0xff);
        member
    };
    let first = [
        damaged(members[0].clone()),
        members[1].clone(),
        members[2].clone(),
    ]
    .concat();
    let last = [
        members[0].clone(),
        members[1].clone(),
        damaged(members[2].clone()),
    ]
    .concat();
    check(&[&folder.file("first.warc.gz", &first)], &[], 1);
    let last = folder.file("last.warc.gz", &last);
    check(&[&last], &[("last.warc.gz", Reason::BadCompression)], 0);
}

#[test]
fn issue_19_files_without_a_text_column_are_incomplete() {
    let folder = Folder::new();
    let csv = folder.file("a.csv", b"id,words\n1,one\n");
    let lines = folder.file("b.jsonl", b"{\"words\":\"one\"}\n{\"words\":\"two\"}\n");
    let mixed = folder.file(
        "c.jsonl",
        b"{\"words\":\"one\"}\n{\"text\":\"two\"}\nthree\n",
    );
    let garbage = folder.file("d.warc", b"this is no archive\n\nat all\n");
    let parquet = folder.file("e.parquet", b"PAR1 and nothing of the kind");
    let binary = folder.file("f.bin", b"\0\x01\x02\x03\xff\xfe\0\0");
    let names = [
        ("a.csv", Reason::NoText),
        ("b.jsonl", Reason::NoText),
        ("d.warc", Reason::BadHeader),
        ("e.parquet", Reason::BadParquet),
        ("f.bin", Reason::UnknownFormat),
    ];
    check(
        &[&csv, &lines, &mixed, &garbage, &parquet, &binary],
        &names,
        5,
    );
}

#[test]
fn issue_19_empty_inputs_are_named_and_lose_nothing() {
    let folder = Folder::new();
    let names = [
        "a.jsonl",
        "b.csv",
        "c.parquet",
        "d.warc",
        "e.jsonl.gz",
        "f.txt",
    ];
    let bytes = |name: &str| match name.ends_with("gz") {
        true => gzip(b""),
        false => Vec::new(),
    };
    let files: Vec<PathBuf> = names
        .iter()
        .map(|name| folder.file(name, &bytes(name)))
        .collect();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let found = counts(&files, Config::default());
    assert!(found.losses.is_empty(), "{found:?}");
    assert_eq!(found.skipped[&Reason::Empty], 5);
    // A text of 0 bytes is a document without tokens, and is kept as one.
    assert_eq!((found.documents, found.marked[&Reason::Empty]), (1, 1));
    std::fs::create_dir(folder.path().join("g")).unwrap();
    let found = items(&[&folder.path().join("g")]);
    let [arose_corpus::Item::Skipped(warning)] = &found[..] else {
        panic!("{found:?}");
    };
    assert!(warning.is_reported());
    assert_eq!(
        (warning.reason, warning.loss),
        (Reason::Empty, Loss::Nothing)
    );
}

#[test]
fn issue_19_a_file_that_vanishes_is_incomplete() {
    let folder = Folder::new();
    for n in 0..200 {
        folder.file(&format!("{n:03}.txt"), b"text");
    }
    let config = Config {
        threads: std::num::NonZeroUsize::MIN,
        ..Config::default()
    };
    let mut documents = read(&[folder.path().to_owned()], config).expect("it is there");
    documents.next();
    std::fs::remove_file(folder.path().join("199.txt")).unwrap();
    let found = counted(documents);
    assert_eq!(found.losses.n_files, 1, "{found:?}");
    assert_eq!(found.documents, 199);
}
