//! Tests of the archive: the contents of its files, before and after a crash.

use std::io::Read;

use arose_corpus::NEAR_DUPLICATE;

use super::record::response_id;
use super::*;
use crate::content::Original;
use crate::pages::Sketch;
use crate::settings::DuplicateBody;

const RECORD: Record<'static> = Record {
    url: "http://www.example.org:8080/A?b",
    date: 0,
    address: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    status: 200,
    media_type: "text/html",
    head: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    body: b"rose",
    payload: "sha1:X",
    cut: None,
    original: None,
    near_duplicates: DuplicateBody::Keep,
    request: None,
    sketch: Sketch([0; 6]),
};

fn unpack(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes)
        .read_to_end(&mut out)
        .unwrap();
    out
}

fn text(record: &Record<'_>) -> String {
    let packed = record.pack(&mut Packer::new(1));
    String::from_utf8(unpack(&packed.bytes())).unwrap()
}

#[test]
fn responses() {
    let text = text(&RECORD);
    assert!(
        text.starts_with("WARC/1.1\r\nWARC-Type: response\r\n"),
        "{text}"
    );
    assert!(
        text.contains("\r\nX-Crawl-Transfer-Encoding: chunked\r\n"),
        "{text}"
    );
    assert!(text.ends_with("\r\n\r\nrose\r\n\r\n"), "{text}");
    assert!(text.contains(&format!(
        "\r\nContent-Length: {}\r\n",
        RECORD.head.len() + 8 + 4
    )));
}

#[test]
fn duplicates_are_revisits() {
    let original = Original {
        url: "http://o/".to_owned(),
        payload: "sha1:X".to_owned(),
        date: 60,
        rule: "exact",
        similarity: 1.0,
        site_pages: None,
    };
    let record = Record {
        original: Some(&original),
        ..RECORD
    };
    let same = text(&record);
    assert!(same.contains("\r\nWARC-Type: revisit\r\n"), "{same}");
    assert!(same.contains("/identical-payload-digest\r\n"), "{same}");
    assert!(
        same.contains("\r\nWARC-Refers-To-Target-URI: http://o/\r\n"),
        "{same}"
    );
    assert!(
        same.contains("\r\nWARC-Refers-To-Date: 1970-01-01T00:01:00Z\r\n"),
        "{same}"
    );
    assert!(same.ends_with("chunked\r\n\r\n\r\n\r\n"), "{same}");
    let id = response_id("http://o/", 60, "sha1:X");
    assert!(
        same.contains(&format!("\r\nWARC-Refers-To: <{id}>\r\n")),
        "{same}"
    );
    let near = Original {
        payload: "sha1:Y".to_owned(),
        rule: "combined",
        ..original.clone()
    };
    let record = Record {
        original: Some(&near),
        ..record
    };
    let dropped = text(&Record {
        near_duplicates: DuplicateBody::Drop,
        ..record
    });
    assert!(dropped.contains(NEAR_DUPLICATE) && dropped.contains("WARC-Type: revisit"));
    let kept = text(&record);
    assert!(kept.contains("WARC-Type: response") && kept.ends_with("rose\r\n\r\n"));
    assert!(!kept.contains("WARC-Refers-To"), "{kept}");
    for text in [dropped, kept.clone()] {
        assert!(text.contains("\r\nArose-Duplicate-Rule: combined\r\n"));
    }
    assert!(
        kept.contains("\r\nArose-Duplicate-Of: http://o/\r\n"),
        "{kept}"
    );
}

fn config(max_file: u64) -> ArchiveConfig {
    let mut settings = Settings::default();
    settings.archive.max_file = max_file;
    settings.agent.operator = "An archive,\nof the web".to_owned();
    ArchiveConfig::new(&settings).unwrap()
}

fn open(folder: &Path, extent: Extent, max_file: u64) -> Result<ArchiveWriter, Error> {
    ArchiveWriter::open(folder, extent, config(max_file), 1_700_000_000)
}

#[test]
fn lines_of_the_index_say_where_records_are() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = open(folder.path(), Extent::default(), 1 << 20).unwrap();
    let packed = RECORD.pack(&mut Packer::new(1));
    archive.append(&packed, 0).unwrap();
    archive.append(&packed, 0).unwrap();
    archive.flush().unwrap();
    let path = folder.path().join("arose-20231114221320-00000.warc.gz");
    let bytes = std::fs::read(path).unwrap();
    let index = folder.path().join("arose-20231114221320-00000.cdxj");
    let index = std::fs::read_to_string(index).unwrap();
    assert_eq!(index.lines().count(), 2);
    let first = String::from_utf8(unpack(&bytes)).unwrap();
    let id = first
        .lines()
        .find_map(|line| line.strip_prefix("WARC-Record-ID: "));
    for line in index.lines() {
        let (key, rest) = line.split_once(' ').unwrap();
        assert_eq!(key, "org,example:8080)/a?b");
        let (date, json) = rest.split_once(' ').unwrap();
        assert_eq!(date, "19700101000000");
        let json: serde_json::Value = serde_json::from_str(json).unwrap();
        assert_eq!(json["filename"], "arose-20231114221320-00000.warc.gz");
        let number = |name: &str| json[name].as_str().unwrap().parse::<usize>().unwrap();
        let member = &bytes[number("offset")..][..number("length")];
        let start = format!("WARC/1.1\r\nWARC-Warcinfo-ID: {}\r\n", id.unwrap());
        let record = String::from_utf8(unpack(member)).unwrap();
        assert!(
            record.starts_with(&(start + "WARC-Type: response\r\n")),
            "{record}"
        );
    }
}

/// Every file begins with a record that says when, how and by which program it was made. Records
/// refer to that of their own file, also after a restart.
#[test]
fn files_say_who_made_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut archive = open(folder.path(), Extent::default(), 1500).unwrap();
    let packed = RECORD.pack(&mut Packer::new(1));
    for n in 0..6 {
        archive.append(&packed, 1_700_000_000 + n).unwrap();
        let extent = archive.flush().unwrap();
        drop(archive);
        archive = open(folder.path(), extent, 1500).unwrap();
    }
    let files = files(folder.path()).unwrap();
    assert!(files.len() > 1, "{files:?}");
    let mut ids = std::collections::BTreeSet::new();
    for (number, path) in &files {
        let text = String::from_utf8(unpack(&std::fs::read(path).unwrap())).unwrap();
        let records: Vec<&str> = text.split("WARC/1.1\r\n").skip(1).collect();
        let field = |record: &str, name: &str| {
            let line = record.lines().find(|line| line.starts_with(name));
            line.map(|line| line[name.len() + 2..].to_owned())
        };
        let info = records[0];
        assert_eq!(field(info, "WARC-Type").as_deref(), Some("warcinfo"));
        assert!(
            field(info, "WARC-Date")
                .unwrap()
                .starts_with("2023-11-14T22:13:2")
        );
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(
            field(info, "WARC-Filename").as_deref(),
            Some(name),
            "{number}"
        );
        assert_eq!(
            field(info, "operator").as_deref(),
            Some("An archive, of the web")
        );
        let agent = concat!("arose/", env!("CARGO_PKG_VERSION"));
        assert_eq!(
            field(info, "http-header-user-agent").as_deref(),
            Some(agent)
        );
        let settings: serde_json::Value =
            serde_json::from_str(&field(info, "settings").unwrap()).unwrap();
        assert_eq!(settings["polite"]["delay"], 1.0);
        let id = field(info, "WARC-Record-ID").unwrap();
        assert!(records.len() > 1);
        for record in &records[1..] {
            assert_eq!(field(record, "WARC-Warcinfo-ID").as_ref(), Some(&id));
            assert_eq!(field(record, "WARC-Block-Digest").unwrap().len(), 37);
        }
        assert!(ids.insert(id));
    }
}

#[test]
fn prefixes_are_plain() {
    for prefix in ["", "a/b", "..\\x", "ä", "a b", "a\nb"] {
        let mut settings = Settings::default();
        settings.archive.prefix = prefix.to_owned();
        let error = ArchiveConfig::new(&settings).unwrap_err().to_string();
        assert!(error.starts_with("archive.prefix must be"), "{error}");
    }
}

/// The request follows its response and refers to it. The index lists only the response.
#[test]
fn requests_stand_beside_their_answers() {
    let with = Record {
        request: Some(b"GET / HTTP/1.1\r\n\r\n"),
        ..RECORD
    };
    let packed = with.pack(&mut Packer::new(1));
    let alone = RECORD.pack(&mut Packer::new(1));
    let (both, alone) = (packed.bytes(), alone.bytes());
    assert_eq!(both[..alone.len()], alone);
    let answer = text(&RECORD);
    let request = String::from_utf8(unpack(&both[alone.len()..])).unwrap();
    let id = answer
        .lines()
        .find_map(|line| line.strip_prefix("WARC-Record-ID: "))
        .unwrap();
    assert!(
        request.contains(&format!("\r\nWARC-Concurrent-To: {id}\r\n")),
        "{request}"
    );
    assert!(
        request.ends_with("\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n\r\n"),
        "{request}"
    );
}

#[test]
fn what_the_journal_does_not_know_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let packed = RECORD.pack(&mut Packer::new(1));
    let mut archive = open(folder.path(), Extent::default(), 3000).unwrap();
    archive.append(&packed, 0).unwrap();
    let extent = archive.flush().unwrap();
    for _ in 0..30 {
        archive.append(&packed, 0).unwrap();
    }
    assert!(archive.flush().unwrap().file > 1);
    drop(archive);
    let mut archive = open(folder.path(), extent, 3000).unwrap();
    assert_eq!(archive.flush().unwrap(), extent);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    let beyond = Extent {
        bytes: extent.bytes + 1,
        ..extent
    };
    assert!(open(folder.path(), beyond, 3000).is_err());
}

/// Missing parts are reported, and nothing is created or cut off because of them.
#[test]
fn a_missing_archive_stays_missing() {
    let folder = tempfile::tempdir().unwrap();
    let extent = Extent {
        file: 2,
        bytes: 10,
        index_bytes: 5,
    };
    let later = folder.path().join("arose-20231114221320-00003.warc.gz");
    std::fs::write(later, b"later").unwrap();
    let error = open(folder.path(), extent, 800).unwrap_err();
    assert!(error.to_string().contains("00002.warc.gz"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Only complete records with their lines confirm an extent.
#[test]
fn records_bear_out_what_is_said_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let packed = RECORD.pack(&mut Packer::new(1));
    let mut archive = open(folder.path(), Extent::default(), 1 << 20).unwrap();
    let start = Extent::default();
    let mut extents = Vec::new();
    for _ in 0..3 {
        archive.append(&packed, 0).unwrap();
        extents.push(archive.flush().unwrap());
    }
    let bears = |from, to| bears_out(folder.path(), from, to).unwrap();
    assert!(bears(start, extents[2]) && bears(extents[0], extents[1]));
    let without_line = Extent {
        index_bytes: extents[0].index_bytes,
        ..extents[1]
    };
    assert!(!bears(extents[0], without_line));
    let amid = Extent {
        bytes: extents[2].bytes - 1,
        ..extents[2]
    };
    assert!(!bears(start, amid));
    for (path, at) in [
        (warc_path(folder.path(), 0).unwrap(), extents[1].bytes + 40),
        (
            cdxj_path(folder.path(), 0).unwrap(),
            extents[1].index_bytes + 60,
        ),
    ] {
        let whole = std::fs::read(&path).unwrap();
        let mut torn = whole.clone();
        torn[at as usize..].fill(0);
        std::fs::write(&path, &torn).unwrap();
        assert!(bears(start, extents[1]) && !bears(start, extents[2]));
        std::fs::write(&path, &whole[..at as usize]).unwrap();
        assert!(bears(start, extents[1]) && !bears(start, extents[2]));
        std::fs::write(&path, &whole).unwrap();
    }
    let line = index_line(folder.path());
    assert_eq!(name_in_line(&line).unwrap().0, RECORD.url);
}

fn index_line(folder: &Path) -> String {
    let text = std::fs::read_to_string(cdxj_path(folder, 0).unwrap()).unwrap();
    text.lines().next().unwrap().to_owned()
}

/// Whatever servers send and links contain, a line of the index is one line with one object.
#[test]
fn what_servers_send_stays_within_its_line() {
    let evil = Record {
        url: "http://a/\"x\"?\\",
        media_type: "a\"}\n\\x",
        ..RECORD
    };
    let line = evil.line("1970", false) + "\"length\": \"1\"}";
    assert_eq!(line.lines().count(), 1);
    let json = &line[line.find('{').unwrap()..];
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(
        (&json["url"], &json["mime"]),
        (&evil.url.into(), &evil.media_type.into())
    );
    assert_eq!(name_in_line(&line).unwrap().0, evil.url);
    let none = Record {
        media_type: "",
        ..RECORD
    };
    assert!(!none.line("1970", false).contains("mime"));
}

/// Heads are those of whole records, whatever the size of a body.
#[test]
fn heads_are_read_without_bodies() {
    let folder = tempfile::tempdir().unwrap();
    let body = vec![b'x'; 100_000];
    let records = [
        RECORD,
        Record {
            body: &body,
            sketch: Sketch([1, 2, 3, 4, 5, 6]),
            ..RECORD
        },
        Record {
            head: b"HTTP/1.1 204 No Content\r\n\r\n",
            body: b"",
            ..RECORD
        },
    ];
    let mut archive = open(folder.path(), Extent::default(), u64::MAX).unwrap();
    let positions = records.map(|record| {
        let packed = record.pack(&mut Packer::new(1));
        archive.append(&packed, 0).unwrap()
    });
    archive.flush().unwrap();
    let mut heads = Heads::new(folder.path());
    for (position, record) in positions.into_iter().zip(records) {
        let whole = read_at(folder.path(), position).unwrap().unwrap();
        let head = heads.read(position).unwrap().unwrap();
        for name in ["WARC-Type", "WARC-Target-URI", "WARC-Date", SKETCH] {
            assert_eq!(head.field(name), whole.field(name), "{name}");
        }
        assert_eq!(head.field(SKETCH), record.sketch.to_text().as_deref());
        assert!(whole.block.starts_with(&head.block));
        assert!(head.block.ends_with(b"\r\n\r\n") && head.block.len() < 100);
    }
    let nowhere = crate::pages::Position { file: 7, offset: 0 };
    assert!(heads.read(nowhere).unwrap().is_none());
}
