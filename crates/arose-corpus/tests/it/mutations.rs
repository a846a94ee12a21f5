//! Mutates samples of every format at random: nothing may panic, hang or use excessive memory.
//!
//! Each input is a sample after one to eight changes, and goes through a parser of untrusted bytes:
//! pages in both modes, feeds, character sets, content codings, HTTP responses, and the reader with
//! archives, rows, lines, JSON, Parquet and compressed members. Tables are also copied, with the
//! columns that no reader uses. Samples are small corpora, the cases of the parse suites and, if
//! installed, real archives and pages. Everything follows from the seed.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `FUZZ_INPUTS` | number of inputs to try | 40,000 |
//! | `FUZZ_SECONDS` | seconds after which to stop | 45 |
//! | `FUZZ_SEED` | seed of the changes | 1 |

use std::io::Cursor;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use arose_corpus::html::{HtmlConfig as Page, Links, Mode, extract};
use arose_corpus::{
    Change, Config, Item, Limits, ParquetWriter, decode_content, keep, payload, read, read_from,
    rewrite,
};
use url::Url;

use crate::shared::{files, pages, suites};
use crate::support::{Folder, bzip2, documents, gzip, items, noise, response, shared, xz, zstd};

/// The kind of a sample, which determines its parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Html,
    /// A feed, a sitemap or other XML.
    Xml,
    /// Text in some character set.
    Encoded,
    /// A body in a content coding.
    Coded(&'static str),
    /// A response, in an intact record of an archive.
    Response,
    /// A Parquet file that is copied.
    Copied,
    /// A file with this name, for the reader.
    File(&'static str),
}

struct Sample {
    kind: Kind,
    bytes: Vec<u8>,
}

/// Samples are truncated: a long one tests nothing that a short one does not.
const MAX_SAMPLE: usize = 12 << 10;

/// Maximum time per input; each is a few kilobytes.
const SLOWEST: Duration = Duration::from_secs(20);

#[test]
fn broken_samples_are_read() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().unwrap())
    };
    let (n_inputs, seconds) = (number("FUZZ_INPUTS", 40_000), number("FUZZ_SECONDS", 45));
    let mut random = Random(number("FUZZ_SEED", 1));
    let samples = samples();
    let start = Instant::now();
    let mut n_tried = 0;
    let mut n_bytes = 0;
    let mut slowest = Duration::ZERO;
    while n_tried < n_inputs && start.elapsed().as_secs() < seconds {
        let sample = &samples[random.below(samples.len())];
        let mut bytes = sample.bytes.clone();
        for _ in 0..=random.below(8) {
            let other = &samples[random.below(samples.len())].bytes;
            change(&mut bytes, other, &mut random);
        }
        let kind = pack(sample.kind, &mut bytes, &mut random);
        let began = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| run(kind, &bytes)));
        slowest = slowest.max(began.elapsed());
        assert!(
            result.is_ok() && began.elapsed() < SLOWEST,
            "input {n_tried}, {kind:?}: {}",
            bytes.escape_ascii()
        );
        n_tried += 1;
        n_bytes += bytes.len();
    }
    println!(
        "{n_tried} inputs of {} samples, {n_bytes} bytes in {} s, the slowest in {slowest:?}",
        samples.len(),
        start.elapsed().as_secs()
    );
}

/// Reads an input in every suitable way, and checks properties of any result.
fn run(kind: Kind, bytes: &[u8]) {
    match kind {
        Kind::Html => {
            let html = String::from_utf8_lossy(bytes);
            let url = Url::parse("https://example.org/dir/page").unwrap();
            for mode in [Mode::Henzinger, Mode::Content] {
                let config = Page {
                    mode,
                    links: Links::Collect,
                    ..Page::default()
                };
                let found = extract(&html, Some(&url), &config);
                assert!(found.text.len() <= 3 * html.len() + 1);
                assert_eq!(found, extract(&html, Some(&url), &config));
            }
        }
        Kind::Xml => body(bytes, "application/xml"),
        Kind::Encoded => {
            for content_type in [
                "text/html",
                "text/plain",
                "text/html; charset=iso-2022-jp",
                "text/html; charset=gb18030",
                "text/xml; charset=utf-16",
            ] {
                body(bytes, content_type);
            }
        }
        Kind::Coded(codings) => drop(decode_content(codings, bytes, &Limits::default())),
        Kind::Response => {
            let record = record(bytes);
            let found = read_from(Path::new("a.warc"), Cursor::new(record), small());
            assert_eq!(found.count(), 1, "the record is intact");
        }
        Kind::Copied => copy(bytes),
        Kind::File(name) => {
            let found: Vec<Item> =
                read_from(Path::new(name), Cursor::new(bytes.to_vec()), small()).collect();
            // A compressed file may contain many times its own size.
            let magic = [
                &[0x1f, 0x8b][..],
                &[0x28, 0xb5],
                &[0x2a, 0x4d, 0x18],
                &[0xfd, 0x37, 0x7a],
                b"BZh",
            ];
            let is_packed = magic
                .iter()
                .any(|magic| memchr::memmem::find(bytes, magic).is_some());
            assert!(is_packed || found.len() <= bytes.len() + 1);
        }
    }
}

/// One thread and small limits, so that inputs reach them.
fn small() -> Config {
    Config {
        threads: NonZeroUsize::MIN,
        limits: Limits {
            record_bytes: 4 << 10,
            header_bytes: 1 << 10,
            ..Limits::default()
        },
        ..Config::default()
    }
}

/// An archive record around a response.
fn record(block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://x/\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

/// Copies all documents of a table, by rows and by texts. Rows that are not copied are reported.
fn copy(bytes: &[u8]) {
    let folder = Folder::new();
    let path = folder.file("a.parquet", bytes);
    let found: Vec<Item> = read(std::slice::from_ref(&path), small())
        .unwrap()
        .collect();
    let documents = documents(&found);
    let positions: Vec<_> = documents.iter().map(|document| document.position).collect();
    let Ok(kept) = keep(&path, &positions, std::io::sink(), &small()) else {
        return;
    };
    let is_whole = kept.copied + kept.missing == positions.len() as u64;
    assert!(is_whole || kept.lost.is_some(), "{kept:?}");
    let mut n_asked = 0;
    let rewritten = rewrite(&path, std::io::sink(), &small(), &mut |position| {
        n_asked += usize::from(positions.binary_search(&position).is_ok());
        Ok(Change::Keep)
    });
    assert!(rewritten.is_err() || n_asked == positions.len());
}

fn body(bytes: &[u8], content_type: &str) {
    let page = payload::read(bytes, Some(content_type), None, &Page::default());
    // A byte becomes at most three, and a character that is escaped for the extractor at most five.
    assert!(page.map_or(true, |page| page.text.len() <= 5 * bytes.len() + 9));
}

/// Pseudorandom numbers from a seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Byte sequences with a meaning to some parser.
const PIECES: [&[u8]; 44] = [
    b"<",
    b">",
    b"\"",
    b"'",
    b"<!--",
    b"-->",
    b"</",
    b"<script>",
    b"<svg>",
    b"&#",
    b"\0",
    b"<title>",
    b"<base href=//",
    b"<a href=",
    b"<![CDATA[",
    b"]]>",
    b"<?xml encoding='",
    b"&amp",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\x1b$B",
    b"\x81\x30",
    b"\xed\xa0\x80",
    b"\r\n\r\n",
    b"\n\n",
    b"\nWARC/1.0\r\n",
    b"Content-Length: ",
    b"99999999999999999999",
    b"-1",
    b"HTTP/1.1 200 OK\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"0\r\n\r\n",
    b"\n ",
    b"\"\"",
    b",\"",
    b"\t\"",
    b"\\u",
    b"\\ud800",
    b"{",
    b"[[[[",
    b"\x1f\x8b\x08\0",
    b"\x28\xb5\x2f\xfd",
    b"\x50\x2a\x4d\x18",
    b"PAR1",
];

fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let at = random.below(bytes.len() + 1);
    let end = at + random.below((bytes.len() - at).min(512) + 1);
    match random.below(6) {
        0 => drop(bytes.drain(at..end)),
        1 => {
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len() + 1);
            bytes.splice(to..to, copy);
        }
        2 => {
            let byte = random.next() as u8;
            bytes.get_mut(at).into_iter().for_each(|old| *old = byte);
        }
        3 => {
            let bit = 1 << random.below(8);
            bytes.get_mut(at).into_iter().for_each(|old| *old ^= bit);
        }
        4 => {
            let piece = PIECES[random.below(PIECES.len())];
            bytes.splice(at..at, piece.repeat(1 + random.below(3)));
        }
        _ => {
            let from = random.below(other.len() + 1);
            let to = from + random.below((other.len() - from).min(256) + 1);
            bytes.splice(at..at, other[from..to].iter().copied());
        }
    }
}

/// Puts some of the broken files into members, so that the damage is inside them.
fn pack(kind: Kind, bytes: &mut Vec<u8>, random: &mut Random) -> Kind {
    match (kind, random.below(8)) {
        (Kind::File(_), 0) => *bytes = gzip(bytes),
        (Kind::File(_), 1) => *bytes = zstd(bytes),
        (Kind::File(_), 3) => *bytes = xz(bytes),
        (Kind::File(_), 4) => *bytes = bzip2(bytes),
        // The same bytes under other names are other formats.
        (Kind::File(_), 2) => {
            let names = [
                "a.warc",
                "a.arc",
                "a.csv",
                "a.tsv",
                "a.jsonl",
                "a.json",
                "a.parquet",
                "a",
            ];
            return Kind::File(names[random.below(names.len())]);
        }
        _ => {}
    }
    kind
}

fn samples() -> Vec<Sample> {
    let mut samples = small_corpora();
    let mut add = |kind: Kind, bytes: &[u8]| {
        let bytes = bytes[..bytes.len().min(MAX_SAMPLE)].to_vec();
        samples.push(Sample { kind, bytes });
    };
    for folder in suites("wpt/tree-construction") {
        for (_, text) in files(&folder, "dat") {
            let cases = text.split("#data\n").skip(1);
            let cases = cases.filter_map(|case| case.split("\n#errors").next());
            cases.for_each(|case| add(Kind::Html, case.as_bytes()));
        }
    }
    for folder in suites("html5lib/tokenizer") {
        for (_, text) in files(&folder, "test") {
            let chunks = text.as_bytes().chunks(1 << 10).step_by(4);
            chunks.for_each(|chunk| add(Kind::Html, chunk));
        }
    }
    for folder in suites("html5lib/encoding") {
        for entry in std::fs::read_dir(folder).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes
                .chunks(1 << 10)
                .for_each(|chunk| add(Kind::Encoded, chunk));
        }
    }
    for page in pages("extract-readability-130") {
        add(Kind::Html, page["html"].as_str().unwrap().as_bytes());
    }
    for (folder, kind) in [
        ("warc-samples/warcio", Kind::File("a.warc")),
        ("warc-samples/commoncrawl", Kind::File("a.warc")),
        ("warc-samples/webarchive-commons", Kind::File("a.warc")),
        ("sitemap-samples", Kind::Xml),
    ] {
        let Some(folder) = shared(folder) else {
            continue;
        };
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                add(kind, &std::fs::read(path).unwrap());
            }
        }
    }
    samples
}

/// Samples of every format, repeated because the suites are large.
fn small_corpora() -> Vec<Sample> {
    const TIMES: usize = 40;
    let lines: String = (0..8)
        .map(|n| {
            format!(
                "{{\"id\":{n},\"text\":\"a\\u00e9 {}\",\"x\":[{{}}]}}\n",
                noise(n, 9)
            )
        })
        .collect();
    let array = format!(
        "[{}]",
        lines.trim_end().replace('\n', ",\n").replace('{', "{\n ")
    );
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nX: a\r\n b\r\n\
                Content-Length: 14\r\n\r\n<p>a rose</p>\r\n";
    let chunked = "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\nContent-Type: text/plain\n\n\
                   5\r\na ros\r\n1;x=y\r\ne\r\n0\r\nA: b\r\n\r\n";
    let archive: Vec<u8> = (0..4).flat_map(|n| response(n, &noise(9, 30))).collect();
    let members: Vec<u8> = (0..4)
        .flat_map(|n| gzip(&response(n, &noise(9, 30))))
        .collect();
    let frames: Vec<u8> = (0..4).flat_map(|n| zstd(noise(n, 30).as_bytes())).collect();
    let arc = "filedesc://a.arc 0.0.0.0 20080430204825 text/plain 9\n1 0 test\n\n\
               http://x/ 1.2.3.4 20080430204825 text/html 5\nabcde\n";
    let rows = "id,text,url\n1,\"a \"\"b\"\"\nc\",http://x/\n2,d,\n".repeat(9);
    let feed = "<?xml version='1.0'?><rss><channel><title>N</title><item><description>&lt;p>a\
                &lt;/p></description><content:encoded><![CDATA[<b>x</b>]]></content:encoded></item>\
                </channel></rss>";
    let atom = "<feed><title>F</title><entry><content type='xhtml'><div>x<br/>y <i>z</i> &amp;</div>\
                </content></entry></feed>";
    let page = "<html><base href='/b/'><title>T</title><a href=x rel=nofollow>a</a><img src=y>";
    let text = noise(3, 200);
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut deflated, text.as_bytes()).unwrap();
    let mut brotli = Vec::new();
    let params = brotli::enc::BrotliEncoderParams::default();
    brotli::BrotliCompress(&mut text.as_bytes(), &mut brotli, &params).unwrap();
    let samples = [
        (Kind::File("a.jsonl"), lines.clone().into_bytes()),
        (Kind::File("a.jsonl.gz"), gzip(lines.as_bytes())),
        (Kind::File("a.jsonl.xz"), xz(lines.as_bytes())),
        (Kind::File("a.jsonl.bz2"), bzip2(lines.as_bytes())),
        (Kind::File("a.json"), array.clone().into_bytes()),
        (Kind::File("a.json"), array[1..].replace("},", "}").into()),
        (Kind::File("a.zst"), frames),
        (Kind::File("a.warc"), archive),
        (Kind::File("a.warc.gz"), members),
        (Kind::File("a.arc"), arc.into()),
        (Kind::File("a.csv"), rows.clone().into_bytes()),
        (Kind::File("a.tsv"), rows.replace(',', "\t").into_bytes()),
        (Kind::File("a.parquet"), parquet(&lines)),
        (Kind::Copied, parquet(&lines)),
        (Kind::Copied, fixture("pyarrow-nested.parquet")),
        (Kind::Copied, fixture("polars-nested.parquet")),
        (Kind::Copied, fixture("pyarrow-dictionary.parquet")),
        (Kind::Response, http.into()),
        (Kind::Response, chunked.into()),
        (Kind::File("a"), b"id\ttext\n1\t\"a\n".to_vec()),
        (Kind::Xml, feed.into()),
        (Kind::Xml, atom.into()),
        (Kind::Html, page.into()),
        (
            Kind::Encoded,
            b"<meta charset=shift_jis>\x82\xa0\xff".to_vec(),
        ),
        (Kind::Coded("gzip"), gzip(text.as_bytes())),
        (Kind::Coded("deflate, gzip"), gzip(text.as_bytes())),
        (Kind::Coded("deflate"), deflated.finish().unwrap()),
        (Kind::Coded("br"), brotli),
        (Kind::Coded("zstd"), zstd(text.as_bytes())),
    ];
    let all = samples
        .iter()
        .flat_map(|sample| std::iter::repeat_n(sample, TIMES));
    all.map(|(kind, bytes)| Sample {
        kind: *kind,
        bytes: bytes.clone(),
    })
    .collect()
}

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(folder.join(name)).unwrap()
}

fn parquet(lines: &str) -> Vec<u8> {
    let folder = Folder::new();
    let found = items(&[&folder.file("a.jsonl", lines.as_bytes())]);
    let mut writer = ParquetWriter::new(Vec::new()).unwrap();
    for document in documents(&found) {
        writer.write(document.clone()).unwrap();
    }
    writer.finish().unwrap()
}
