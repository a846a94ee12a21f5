//! Generates hostile input of any size.

use std::io::Write as _;

use std::sync::Arc;

use arose_corpus::html::Mode::{Content, Henzinger};
use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, Encoding};
use parquet::file::properties::WriterProperties;

use crate::ways::Way;

/// Generates input of about `n` bytes.
pub(crate) struct Generator {
    pub(crate) name: &'static str,
    pub(crate) make: fn(usize) -> Vec<u8>,
    pub(crate) ways: &'static [Way],
}

/// Pages are read in both modes, alone and inside the formats that contain them.
const PAGE: &[Way] = &[
    Way::Page(Henzinger),
    Way::Page(Content),
    Way::Response(Content),
];
const CARRIED: &[Way] = &[
    Way::Page(Henzinger),
    Way::Page(Content),
    Way::Response(Henzinger),
    Way::Response(Content),
    Way::JsonField(Content),
    Way::CsvField(Content),
    Way::Pipe("a.html"),
    Way::File("a.html"),
];
const XML: &[Way] = &[Way::Body("application/xml"), Way::Pipe("a.xml")];
const CSV: &[Way] = &[Way::Pipe("a.csv"), Way::File("a.csv"), Way::Copy("a.csv")];
const TSV: &[Way] = &[Way::Pipe("a.tsv"), Way::Copy("a.tsv")];
const JSON: &[Way] = &[Way::Pipe("a.jsonl"), Way::Copy("a.jsonl")];
const WARC: &[Way] = &[
    Way::Pipe("a.warc"),
    Way::File("a.warc"),
    Way::Copy("a.warc"),
];
const ARC: &[Way] = &[Way::Pipe("a.arc"), Way::File("a.arc"), Way::Copy("a.arc")];
const PACKED: &[Way] = &[
    Way::Pipe("a.jsonl"),
    Way::File("a.jsonl"),
    Way::File("a.warc"),
    Way::Copy("a.jsonl"),
];
const PARQUET: &[Way] = &[
    Way::Pipe("a.parquet"),
    Way::File("a.parquet"),
    Way::Copy("a.parquet"),
];
const TEXT: &[Way] = &[Way::Body("text/plain"), Way::Pipe("a.txt")];

/// Starting a decoder takes as long as reading several kilobytes, so members are fewer than other
/// pieces.
const MEMBER_SHARE: usize = 32;

/// A table of generators; each repeats a piece unless a function is named.
macro_rules! table {
    ($($name:literal, $ways:expr, $make:expr;)*) => {
        &[$(Generator { name: $name, make: $make, ways: $ways },)*]
    };
}

#[rustfmt::skip]
pub(crate) const GENERATORS: &[Generator] = table![
    "blocks of a letter", CARRIED, |n| again("a<p>", n);
    "nested blocks", CARRIED, |n| again("<div>", n);
    "nested blocks with text", PAGE, |n| again("<div>a", n);
    "nested blocks, closed", PAGE, |n| paired("<div>", "</div>", n);
    "nested inline elements", PAGE, |n| again("<b>", n);
    "misnested inline elements", PAGE, |n| again("<b><i></b>a</i>", n);
    "end tags without a start", PAGE, |n| again("</p></div></li>", n);
    "nested tables", PAGE, |n| again("<table><tr><td>", n);
    "cells of a table", PAGE, |n| after("<table>", "<tr><td>1<td>2", n);
    "items of a list", PAGE, |n| after("<ul>", "<li>a", n);
    "headings", PAGE, |n| again("<h1>a<h2>b", n);
    "definition lists", PAGE, |n| again("<dl><dt>a<dd>b", n);
    "paragraphs in buttons", PAGE, |n| again("<button><p>a", n);
    "options", PAGE, |n| again("<select><option>a", n);
    "templates", PAGE, |n| again("<template>a", n);
    "one tag of many attributes", PAGE, |n| [&b"<div"[..], &again(" a=b", n), b">"].concat();
    "many tags of many attributes", PAGE, |n| again(&format!("<link{}>", " a".repeat(500)), n);
    "one attribute many times", PAGE, |n| again("<p class=a class=a class=a class=a>", n);
    "a long attribute", PAGE, |n| [&b"<a href='"[..], &again("%20", n), b"'>x</a>"].concat();
    "long class names", PAGE, |n| again(&format!("<p class='{}'>", "nav ".repeat(60)), n);
    "open quotes in tags", PAGE, |n| again("<a b='", n);
    "open tags", PAGE, |n| again("<a ", n);
    "references", PAGE, |n| again("&amp;&notit;&#x10ffff;&CounterClockwiseContourIntegral;", n);
    "bad references", PAGE, |n| again("&&#;&x;&#99999999999;", n);
    "references in attributes", PAGE, |n| again("<a href='?a&copy=b&amp;c'>x</a>", n);
    "NULs and carriage returns", PAGE, |n| again("\0\r\r\n", n);
    "signs that open nothing", PAGE, |n| again("<<a<", n);
    "open comments", PAGE, |n| again("<!--->x<!--a--", n);
    "declarations", PAGE, |n| again("<!x<?y", n);
    "scripts in comments in scripts", PAGE, |n| after("<script>", "<!--<script></script", n);
    "raw text that almost ends", PAGE, |n| after("<style>", "</styl></style", n);
    "titles", PAGE, |n| again("<title>a b</title>", n);
    "a title of many words", PAGE, |n| [&b"<title>"[..], &again("a b ", n / 2), b"</title>", &again("a b ", n / 2)].concat();
    "textareas", PAGE, |n| again("<textarea>&lt;</textare", n);
    "drawings", PAGE, |n| again("<svg><title><math><mi>a", n);
    "sections of CDATA", PAGE, |n| after("<svg>", "<![CDATA[a]]>", n);
    "images", CARRIED, |n| again("<img src=a>", n);
    "links without an address", PAGE, |n| again("<a href>", n);
    "short links", CARRIED, |n| again("<a href=a>", n);
    "links to parents", PAGE, |n| again("<a href=../../../../../../x>", n);
    "short links under a long base", CARRIED, |n| base(n, "<a href=a>");
    "parents under a long base", PAGE, |n| base(n, "<a href=../a>");
    "encoded links under a long base", PAGE, |n| base(n, "<a href='?é'>");
    "no links under a long base", PAGE, |n| base(n, "<a href='http://['>");
    "languages under a long base", PAGE, |n| base(n, "<link rel=alternate hreflang=a href=a>");
    "languages", PAGE, |n| again("<link rel=alternate hreflang=a href=a>", n);
    "relations", PAGE, |n| again(&format!("<link rel='{}' href=a>", "next ".repeat(100)), n);
    "meta elements", PAGE, |n| again("<meta http-equiv=refresh content='1;url=a'><meta property=og:type content=a>", n);
    "structured data", PAGE, |n| script(n, "\"@type\":\"\\\"@type\"");
    "structured text", PAGE, |n| article(n);
    "long words", PAGE, |n| again("a", n);
    "prose", PAGE, |n| again("<p>One sentence, which is long enough to be prose, and its end is near. </p>", n);

    "nested XML", XML, |n| again("<a>", n);
    "nested XML, closed", XML, |n| paired("<a>", "</a>", n);
    "empty elements", XML, |n| after("<r>", "<a/>", n);
    "references of XML", XML, |n| after("<r>", "&lt;&#65;", n);
    "attributes of XML", XML, |n| after("<r", " a='b'", n);
    "comments of XML", XML, |n| after("<r>", "<!----><?a?>a", n);
    "entities of XML", XML, |n| after("<!DOCTYPE r [", "<!ENTITY a 'b'>", n);
    "feed entries", XML, |n| after("<rss>", "<item><title>a</title></item>", n);
    "feed content in CDATA", XML, |n| after("<rss><title>", "<![CDATA[a&<]]>", n);
    "feed content in elements", XML, |n| after("<feed><content><div>", "<p>a<br/>b&amp;</p>", n);
    "nested feed content", XML, |n| after("<feed>", "<content>", n);
    "feed content full of signs", XML, |n| after("<feed><content><div>", "<![CDATA[<a&a]]>", n);

    "chunks of a byte", &[Way::Pipe("a.warc")], |n| record(&http("Transfer-Encoding: chunked\r\n", &again("1\r\na\r\n", n)));
    "folded headers of HTTP", &[Way::Pipe("a.warc")], |n| records(n, &http(&again_text("\n a", 60_000), b"a"));
    "headers of HTTP", &[Way::Pipe("a.warc")], |n| records(n, &http(&again_text("a:\n", 60_000), b"a"));
    "codings of HTTP", &[Way::Codings("gzip, gzip, gzip")], |n| gzip(&gzip(&gzip(&noise(n))));
    "deflate", &[Way::Codings("deflate")], |n| deflate(&noise(n));
    "not gzip", &[Way::Codings("gzip")], |n| [&[0x1f, 0x8b, 8, 0][..], &noise(n)].concat();

    "folded headers of records", WARC, |n| records_with(n, &again_text("X: a\n b\n c\n", 60_000));
    "headers of records", WARC, |n| records_with(n, &again_text("a:\r\n", 60_000));
    "headers without an end", WARC, |n| again("WARC/1.0\r\n", n);
    "headers that do not end in time", WARC, |n| after("WARC/1.0\r\n", "a: b\r\n", n);
    "line ends between records", WARC, |n| [record(b"a"), again("\r\n", n), record(b"b")].concat();
    "empty records", WARC, |n| repeat(&record(b""), n);
    "records that say too much", WARC, |n| repeat(&claims(n / 2), n);
    "records that say far too much", WARC, |n| repeat(&claims(1 << 40), n);
    "records that say too little", WARC, |n| [lying(1), again("\r\nx", n)].concat();
    "records inside a record", WARC, |n| record(&repeat(&[b"\n".to_vec(), record(b"a")].concat(), n));
    "lines that are almost records", WARC, |n| [record(b"a"), again("WARC/1.x\nWARC/", n)].concat();
    "lines of ARC", ARC, |n| [arc(), again("http://x/ 1.2.3.4 20080430204825 text/html 9\n", n)].concat();
    "lines that are almost ARC", ARC, |n| [arc(), again("http: 1.2.3.4 2008 a\n", n)].concat();
    "line ends of ARC", ARC, |n| [arc(), again("\n", n)].concat();

    "quotes inside cells", CSV, |n| [csv(), again("a\"b,\"\n", n), b"\"b\"\"".to_vec()].concat();
    "open quotes", CSV, |n| [csv(), again("1,\"a\n", n)].concat();
    "an open quote", CSV, |n| [csv(), b"1,\"".to_vec(), again("a,b\n", n)].concat();
    "quotes alone", CSV, |n| [csv(), again("\"\"\"\n", n)].concat();
    "rows of a letter", CSV, |n| [csv(), again("a\n", n)].concat();
    "blank rows", CSV, |n| [csv(), again("\r\n", n)].concat();
    "cells of one row", CSV, |n| [csv(), again(",", n)].concat();
    "columns", CSV, |n| [again("a,", n / 2), b"text\n".to_vec(), again("b,", n / 2)].concat();
    "cells of TSV", TSV, |n| [b"id\ttext\n".to_vec(), again("1\t\"a\"\"b\"\n", n)].concat();
    "open quotes of TSV", TSV, |n| [b"id\ttext\n".to_vec(), again("1\t\"a\n\"\n", n)].concat();

    "nested JSON", JSON, |n| again("{\"a\":[", n);
    "deep lines", JSON, |n| again(&format!("{{\"text\":{}1{}}}\n", "[".repeat(120), "]".repeat(120)), n);
    "escapes", JSON, |n| wrapped("{\"text\":\"", "\\u0041\\n", "\"}\n", n);
    "open escapes", JSON, |n| after("{\"text\":\"", "\\\"", n);
    "surrogates", JSON, |n| wrapped("{\"text\":\"", "\\ud800", "\"}\n", n);
    "keys", JSON, |n| wrapped("{", "\"a\":1,", "\"text\":\"b\"}\n", n);
    "one key many times", JSON, |n| wrapped("{", "\"text\":\"\\u0041\",", "\"text\":\"b\"}\n", n);
    "a long escaped key", JSON, |n| wrapped("{\"", "\\u0074", "\":1,\"text\":\"b\"}\n", n);
    "numbers", JSON, |n| wrapped("{\"id\":", "1", ",\"text\":\"b\"}\n", n);
    "lines of a letter", JSON, |n| again("{\"text\":\"a\"}\n1\n", n);
    "blank lines", JSON, |n| [b"{\"text\":\"a\"}".to_vec(), again("\n", n)].concat();
    "objects without an end", JSON, |n| again("{\"text\":\"a\"", n);

    "members of nothing", PACKED, |n| repeat(&gzip(b""), n / MEMBER_SHARE);
    "members of a line", PACKED, |n| repeat(&gzip(b"{\"text\":\"a\"}\n"), n / MEMBER_SHARE);
    "members of a letter", PACKED, |n| repeat(&gzip(b"a"), n / MEMBER_SHARE);
    "starts of members", PACKED, |n| [gzip(b"{}\n"), repeat(&[0x1f, 0x8b, 8, 0], n / MEMBER_SHARE / 4)].concat();
    "padding between members", PACKED, |n| [gzip(b"{}\n"), vec![0; n], gzip(b"{}\n")].concat();
    "one large member", PACKED, |n| gzip(&noise(n));
    "frames of nothing", PACKED, |n| repeat(&zstd::encode_all(&b""[..], 0).unwrap(), n / MEMBER_SHARE / 4);
    "frames of a line", PACKED, |n| repeat(&zstd::encode_all(&b"{\"text\":\"a\"}\n"[..], 0).unwrap(), n / MEMBER_SHARE);
    "starts of frames", PACKED, |n| [zstd::encode_all(&b"{}\n"[..], 0).unwrap(), repeat(&[0x28, 0xb5, 0x2f, 0xfd], n / MEMBER_SHARE)].concat();
    "skippable frames", PACKED, |n| [zstd::encode_all(&b"{}\n"[..], 0).unwrap(), repeat(&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0], n / MEMBER_SHARE)].concat();

    "a column of one text", PARQUET, |n| parquet(texts(n, 64), Encoding::RLE_DICTIONARY, Codec::UNCOMPRESSED);
    "a column of common beginnings", PARQUET, |n| parquet(texts(n, 64), Encoding::DELTA_BYTE_ARRAY, Codec::UNCOMPRESSED);
    "a column of one long cell", PARQUET, |n| parquet(texts(n, 1), Encoding::PLAIN, Codec::UNCOMPRESSED);
    "a packed column", PARQUET, |n| parquet(texts(n, 1), Encoding::PLAIN, Codec::SNAPPY);
    "another column of one text", PARQUET, |n| parquet(beside_text(texts(n, 64)), Encoding::RLE_DICTIONARY, Codec::UNCOMPRESSED);
    "another column of common beginnings", PARQUET, |n| parquet(beside_text(texts(n, 64)), Encoding::DELTA_BYTE_ARRAY, Codec::UNCOMPRESSED);
    "another column of one long cell", PARQUET, |n| parquet(beside_text(texts(n, 1)), Encoding::PLAIN, Codec::UNCOMPRESSED);
    "another column of long cells, packed", PARQUET, |n| parquet(beside_text(cells(n)), Encoding::PLAIN, Codec::SNAPPY);
    "another column of lists", PARQUET, |n| parquet(beside_text(lists(n)), Encoding::PLAIN, Codec::UNCOMPRESSED);
    "many other columns", PARQUET, |n| parquet(columns(n), Encoding::PLAIN, Codec::UNCOMPRESSED);

    "bytes that grow", &[Way::Body("text/html; charset=windows-1252"), Way::Pipe("a.html")], |n| repeat(&[0x80], n);
    "bytes that are no UTF-8", &[Way::Body("text/html; charset=utf-8"), Way::Body("text/plain; charset=utf-8")], |n| repeat(&[0xff], n);
    "switches of a character set", &[Way::Body("text/html; charset=iso-2022-jp")], |n| repeat(b"\x1b$B\x1b(Ba", n);
    "pairs cut in half", &[Way::Body("text/html; charset=gb18030"), Way::Body("text/html; charset=big5")], |n| repeat(&[0x81, 0x30, 0x81], n);
    "UTF-16 without an end", TEXT, |n| [&[0xff, 0xfe][..], &repeat(&[0, 0xd8], n), &[0]].concat();
    "declarations of character sets", &[Way::Body("text/html")], |n| again("<meta charset=x content='charset charset'>", n);
];

/// A repeated piece.
fn again(piece: &str, n: usize) -> Vec<u8> {
    repeat(piece.as_bytes(), n)
}

fn again_text(piece: &str, n: usize) -> String {
    piece.repeat(n / piece.len())
}

fn repeat(piece: &[u8], n: usize) -> Vec<u8> {
    piece.repeat(n / piece.len() + 1)
}

fn after(start: &str, piece: &str, n: usize) -> Vec<u8> {
    [start.as_bytes(), &again(piece, n)].concat()
}

fn wrapped(start: &str, piece: &str, end: &str, n: usize) -> Vec<u8> {
    [start.as_bytes(), &again(piece, n), end.as_bytes()].concat()
}

/// As many ends as starts.
fn paired(start: &str, end: &str, n: usize) -> Vec<u8> {
    let times = n / (start.len() + end.len());
    [start.repeat(times), end.repeat(times)]
        .concat()
        .into_bytes()
}

/// A base URL that is half of the input, and a piece that uses it.
fn base(n: usize, piece: &str) -> Vec<u8> {
    let base = format!("<base href='/{}/'>", "b".repeat(n / 2));
    after(&base, piece, n / 2)
}

fn script(n: usize, piece: &str) -> Vec<u8> {
    wrapped(
        "<script type=application/ld+json>",
        piece,
        "</script><p>a",
        n,
    )
}

/// Text that is also in the structured data of the page.
fn article(n: usize) -> Vec<u8> {
    let start = "<script type=application/ld+json>{\"articleBody\":\"";
    let data = wrapped(start, "a b c d ", "\"}</script>", n / 2);
    [data, again("<p>a b c d ", n / 2)].concat()
}

fn http(headers: &str, body: &[u8]) -> Vec<u8> {
    let headers = headers.trim_start_matches('\n');
    let end = if headers.ends_with('\n') { "" } else { "\r\n" };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{headers}{end}\r\n");
    [head.as_bytes(), body].concat()
}

fn record(block: &[u8]) -> Vec<u8> {
    record_with("", block)
}

fn record_with(headers: &str, block: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\n{headers}WARC-Target-URI: http://x/\r\nContent-Length: {}\r\n\r\n",
        block.len()
    );
    [head.as_bytes(), block, b"\r\n\r\n"].concat()
}

fn records(n: usize, block: &[u8]) -> Vec<u8> {
    repeat(&record(block), n)
}

fn records_with(n: usize, headers: &str) -> Vec<u8> {
    repeat(&record_with(headers, b"a"), n)
}

/// A record that declares about `length` bytes and, repeated, ends in the middle of another.
fn claims(length: usize) -> Vec<u8> {
    let piece = lying(length).len();
    lying(length / piece * piece + 25)
}

/// A record of one byte that declares another length.
fn lying(length: usize) -> Vec<u8> {
    format!("WARC/1.0\r\nWARC-Type: response\r\nContent-Length: {length}\r\n\r\na\r\n\r\n")
        .into_bytes()
}

fn arc() -> Vec<u8> {
    let block = "1 0 test\nURL IP-address Archive-date Content-type Archive-length\n";
    let head = "filedesc://a.arc 0.0.0.0 20080430204825 text/plain";
    format!("{head} {}\n{block}\n", block.len()).into_bytes()
}

fn csv() -> Vec<u8> {
    b"id,text\n".to_vec()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A column of `n_rows` equal texts of `n` bytes.
fn texts(n: usize, n_rows: usize) -> Vec<(String, ArrayRef)> {
    let text = String::from_utf8(noise(n)).unwrap();
    let texts = StringArray::from(vec![text.as_str(); n_rows]);
    vec![("text".to_owned(), Arc::new(texts))]
}

/// A column of eight different texts.
fn cells(n: usize) -> Vec<(String, ArrayRef)> {
    let text = String::from_utf8(noise(n)).unwrap();
    let cells = text.as_bytes().chunks(text.len().div_ceil(8));
    let cells = cells.map(|cell| std::str::from_utf8(cell).unwrap());
    vec![(
        "text".to_owned(),
        Arc::new(StringArray::from_iter_values(cells)),
    )]
}

/// A column of lists of numbers, all in the first row except for one.
fn lists(n: usize) -> Vec<(String, ArrayRef)> {
    let mut lists = ListBuilder::new(Int64Builder::new());
    (0..n as i64 / 8).for_each(|i| lists.values().append_value(i));
    lists.append(true);
    lists.values().append_value(1);
    lists.append(true);
    vec![("text".to_owned(), Arc::new(lists.finish()))]
}

/// Columns of one kilobyte each.
fn columns(n: usize) -> Vec<(String, ArrayRef)> {
    let column = |i: usize| {
        let name = match i {
            0 => "text".to_owned(),
            i => format!("c{i}"),
        };
        let (_, texts) = texts(256, 4).remove(0);
        (name, texts)
    };
    (0..n / 1024).map(column).collect()
}

/// The column under another name, next to one of short texts.
fn beside_text(columns: Vec<(String, ArrayRef)>) -> Vec<(String, ArrayRef)> {
    let (_, other) = columns.into_iter().next().unwrap();
    let texts = StringArray::from_iter_values((0..other.len()).map(|i| format!("text {i}")));
    vec![
        ("text".to_owned(), Arc::new(texts)),
        ("other".to_owned(), other),
    ]
}

fn parquet(columns: Vec<(String, ArrayRef)>, encoding: Encoding, codec: Codec) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(codec)
        .set_dictionary_enabled(encoding == Encoding::RLE_DICTIONARY)
        .set_dictionary_page_size_limit(1 << 30)
        .set_data_page_size_limit(1 << 30);
    let properties = match encoding {
        Encoding::RLE_DICTIONARY => properties,
        encoding => properties.set_encoding(encoding),
    };
    let schema = batch.schema();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema, Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

/// Lines that compress badly.
fn noise(n: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes = Vec::with_capacity(n);
    while bytes.len() < n {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(format!("{{\"text\":\"{state:x}\"}}\n").bytes());
    }
    bytes
}
