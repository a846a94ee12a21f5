//! Tests with damaged responses, from the connection to the archive record.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::time::Duration;

use arose::mix::SplitMix;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use super::*;
use crate::fetch::{Failure, FetchLimits, exchange};

const N_ANSWERS: u64 = 100_000;

/// Valid responses, to be damaged: with a length, in chunks, compressed, redirected, a sitemap.
fn whole() -> Vec<Vec<u8>> {
    let page = "<title>a</title><p>A rose is <a href=/b?x=1#y>a rose</a> is <img src=r.png> a \
        <a href='http://other.test/'>rose</a> is a rose<meta name=robots content=noindex>";
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(page.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let map = "<urlset><url><loc>http://h.test/1</loc></url></urlset>";
    let head =
        |fields: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{fields}\r\n\r\n");
    let by_length = |body: &[u8], fields: &str| {
        let length = format!("Content-Length: {}{fields}", body.len());
        [head(&length).as_bytes(), body].concat()
    };
    let chunks = format!("{:x}\r\n{page}\r\n0\r\n\r\n", page.len());
    vec![
        by_length(page.as_bytes(), ""),
        [head("Transfer-Encoding: chunked"), chunks]
            .concat()
            .into_bytes(),
        by_length(&packed, "\r\nContent-Encoding: gzip"),
        b"HTTP/1.1 302 Found\r\nLocation: ../c d?\r\nContent-Length: 0\r\n\r\n".to_vec(),
        by_length(map.as_bytes(), ""),
    ]
}

/// Changes, repeats, drops or inserts bytes, or cuts off the end.
fn damage(bytes: &mut Vec<u8>, random: &mut SplitMix) {
    const WORDS: [&[u8]; 8] = [
        b"\r\n\r\n",
        b"\0",
        b"HTTP/1.1 100\r\n\r\n",
        b"ffffffffffffffff",
        b"<a href=",
        b"Content-Length: 3\r\n",
        b"%zz",
        b"\xff\xfe",
    ];
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let end = (at + random.below(40) as usize).min(bytes.len());
        match random.below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            3 => drop(bytes.splice(at..at, WORDS[random.below(8) as usize].iter().copied())),
            4 => drop(bytes.splice(at..end, WORDS[random.below(8) as usize].iter().copied())),
            _ => bytes
                .get_mut(at)
                .into_iter()
                .for_each(|byte| *byte = random.next_u64() as u8),
        }
    }
}

fn reader() -> Reader {
    let shared = Shared::new(Settings::default(), None).unwrap();
    Reader::new(Arc::new(shared))
}

/// A hundred thousand damaged responses are processed like all others. Each ends as a failure or as
/// a complete record with its links, within the limits.
#[test]
fn any_answer_is_met() {
    const LIMITS: FetchLimits = FetchLimits {
        connect: Duration::from_secs(1),
        first_byte: Duration::from_secs(5),
        whole: Duration::from_secs(20),
        max_head: 200,
        max_body: 600,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let (whole, mut reader) = (whole(), reader());
    let url = Normalizer::default()
        .normalize("http://h.test/a/", None)
        .unwrap();
    let mut random = SplitMix::new(11);
    let (mut failures, mut statuses, mut n_links) = (BTreeSet::new(), BTreeSet::new(), 0);
    runtime.unwrap().block_on(async {
        for n in 0..N_ANSWERS {
            let mut bytes = whole[n as usize % whole.len()].clone();
            damage(&mut bytes, &mut random);
            let (mut ours, mut theirs) = tokio::io::duplex(1 << 16);
            theirs.write_all(&bytes).await.unwrap();
            drop(theirs);
            let deadline = Instant::now() + LIMITS.whole;
            let message = match exchange(&mut ours, b"", &LIMITS, deadline).await {
                Ok((message, _)) => message,
                Err(failure) => {
                    failures.insert(failure);
                    continue;
                }
            };
            assert!(message.body().len() <= LIMITS.max_body && message.head_end <= bytes.len());
            let report = reader.read(Job {
                host: 0,
                ticket: Some(0),
                url: url.clone(),
                kind: if n % 5 == 4 {
                    Kind::Sitemap
                } else {
                    Kind::Page
                },
                depth: 0,
                n_redirects: 0,
                is_last: false,
                of_repeat: false,
                weight: Weight::default(),
                found_on: "".into(),
                took: std::time::Duration::ZERO,
                message,
                date: 0,
                address: IpAddr::from([127, 0, 0, 1]),
                revisit: None,
            });
            assert!(
                !report.is_unread,
                "a parser panicked on {:?}",
                String::from_utf8_lossy(&bytes)
            );
            statuses.insert(report.status);
            n_links += report.links.len();
            assert!(report.links.len() <= bytes.len());
            if n % 100 == 0 {
                check_record(&report.record);
            }
        }
    });
    let met = [Failure::Closed, Failure::NotHttp, Failure::LongHead];
    assert!(
        met.iter().all(|failure| failures.contains(failure)),
        "{failures:?}"
    );
    assert!(statuses.contains(&200) && statuses.contains(&302) && statuses.len() > 5);
    assert!(n_links > 5_000, "{n_links}");
}

/// It can be decompressed, and its length is as stated.
#[track_caller]
fn check_record(record: &Packed) {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(record.bytes().as_slice())
        .read_to_end(&mut bytes)
        .unwrap();
    let end = memchr::memmem::find(&bytes, b"\r\n\r\n").unwrap() + 4;
    let fields = std::str::from_utf8(&bytes[..end]).unwrap();
    let length = fields
        .split("Content-Length: ")
        .nth(1)
        .unwrap()
        .split('\r')
        .next()
        .unwrap();
    assert_eq!(
        bytes.len() - end - 4,
        length.parse::<usize>().unwrap(),
        "{fields}"
    );
}

/// A path on which parsers panic, which no known page causes.
const FAILS: &str = "/a-parser-fails";

pub(super) fn fail_if_told_to(job: &Job) {
    fail_if_told_to_by(job.url.rest());
}

pub(super) fn fail_if_told_to_by(text: &str) {
    assert_ne!(text, FAILS, "told to fail, in a test");
}

fn job(path: &str) -> Job {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=/x>x</a>".to_vec();
    let head_end = bytes.len() - 17;
    Job {
        host: 7,
        ticket: Some(9),
        url: Normalizer::default()
            .normalize(&format!("http://h.test{path}"), None)
            .unwrap(),
        kind: Kind::Page,
        depth: 0,
        n_redirects: 0,
        is_last: false,
        of_repeat: false,
        weight: Weight::default(),
        found_on: "".into(),
        took: std::time::Duration::ZERO,
        message: Message {
            bytes,
            head_end,
            cut: None,
        },
        date: 0,
        address: IpAddr::from([10, 0, 0, 1]),
        revisit: None,
    }
}

/// If a parser panics, there are a record and a report that say so, and the reader still works.
#[test]
fn issue_21_panics_of_parsers_are_contained() {
    let mut reader = reader();
    for (path, is_unread) in [("/a", false), (FAILS, true), ("/b", false)] {
        let report = reader.read(job(path));
        assert_eq!((report.ticket, report.is_unread), (Some(9), is_unread));
        assert_eq!(report.is_page, !is_unread);
        assert!(!report.record.bytes().is_empty());
    }
}

/// The same for URLs in redirects of robots.txt and in its lines, which do not go through a reader.
#[test]
fn issue_21_panics_over_urls_are_contained() {
    let shared = Shared::new(Settings::default(), None).unwrap();
    let base = Url::parse("http://h.test/robots.txt").unwrap();
    let normalize = |text| shared.normalize(text, Some(&base));
    assert_eq!(normalize("/a").unwrap().as_str(), "http://h.test/a");
    assert_eq!(normalize(FAILS), Err(Reason::Invalid));
    assert_eq!(normalize("ftp://h.test/"), Err(Reason::Scheme));
}
