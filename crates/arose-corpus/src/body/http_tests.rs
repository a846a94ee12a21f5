use std::io::Write;

use flate2::Compression;
use proptest::prelude::*;

use super::*;

fn small() -> Limits {
    Limits {
        body_bytes: 40 << 20,
        ..Limits::default()
    }
}

fn message(head: &str, body: &[u8]) -> Vec<u8> {
    let mut message = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").into_bytes();
    message.extend_from_slice(body);
    message
}

#[track_caller]
fn check(head: &str, body: &[u8], expected: &[u8], n_notes: usize) {
    let message = message(head, body);
    let response = Response::parse(&message, &small()).expect("a whole head");
    let (decoded, notes) = response.decoded_body(&small()).expect("within limits");
    assert_eq!(
        String::from_utf8_lossy(&decoded),
        String::from_utf8_lossy(expected)
    );
    assert_eq!(notes.len(), n_notes, "{notes:?}");
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

fn brotli(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut input = bytes;
    let params = brotli::enc::BrotliEncoderParams::default();
    brotli::BrotliCompress(&mut input, &mut out, &params).expect("to memory");
    out
}

#[test]
fn every_coding() {
    let text = b"a rose is a rose is a rose".as_slice();
    check("A: b", text, text, 0);
    check("Content-Encoding: gzip", &gzip(text), text, 0);
    check("Content-Encoding: x-gzip", &gzip(text), text, 0);
    check("Content-Encoding: deflate", &zlib(text), text, 0);
    let zlibbed = zlib(text);
    check(
        "Content-Encoding: deflate",
        &zlibbed[2..zlibbed.len() - 4],
        text,
        0,
    );
    check("Content-Encoding: br", &brotli(text), text, 0);
    let zstd = zstd::encode_all(text, 3).expect("to memory");
    check("Content-Encoding: zstd", &zstd, text, 0);
    check("Content-Encoding: gzip, br", &brotli(&gzip(text)), text, 0);
    check(
        "Content-Encoding: gzip\r\nContent-Encoding: br",
        &brotli(&gzip(text)),
        text,
        0,
    );
    check("Content-Encoding: utf-8", text, text, 0);
}

#[test]
fn chunks() {
    let head = "Transfer-Encoding: chunked";
    check(head, b"5\r\nrosea\r\n1;x=y\r\nb\r\n0\r\n\r\n", b"roseab", 0);
    check(head, b"5\nrosea\n0\n", b"rosea", 0);
    check(head, b"5\r\nrosea\r\nff\r\nrest", b"rosearest", 1);
    check(head, b"5\r\nrosea\r\nnonsense", b"rosea", 1);
    check(head, b"<p>joined already", b"<p>joined already", 0);
    check(head, b"-5\r\nabc", b"-5\r\nabc", 0);
}

#[test]
fn codings_that_are_not_there() {
    check("Content-Encoding: gzip", b"plain", b"plain", 0);
    check("Content-Encoding: br", b"plain text", b"plain text", 1);
    check("Content-Encoding: zstd", b"plain text", b"plain text", 0);
}

#[test]
fn a_body_cut_off_keeps_what_was_read() {
    let text: Vec<u8> = (0..50_000u32)
        .flat_map(|i| i.to_string().into_bytes())
        .collect();
    let packed = gzip(&text);
    let message = message("Content-Encoding: gzip", &packed[..packed.len() / 2]);
    let response = Response::parse(&message, &small()).expect("a whole head");
    let (body, notes) = response.decoded_body(&small()).expect("within limits");
    assert!(body.len() > 1000 && text.starts_with(&body));
    assert_eq!(notes.len(), 1);
}

#[test]
fn bombs_are_refused() {
    let zeros = vec![0; 48 << 20];
    for (coding, body) in [
        ("gzip", gzip(&zeros)),
        ("br", brotli(&zeros)),
        ("deflate", zlib(&zeros)),
    ] {
        let message = message(&format!("Content-Encoding: {coding}"), &body);
        let response = Response::parse(&message, &small()).expect("a whole head");
        let refused = response.decoded_body(&small()).expect_err("too much");
        assert_eq!(refused.0, Reason::Expansion, "{coding}");
    }
    let limits = Limits {
        body_bytes: 1000,
        ..Limits::default()
    };
    let message = message("Content-Encoding: gzip", &gzip(&zeros[..2000]));
    let response = Response::parse(&message, &limits).expect("a whole head");
    let refused = response.decoded_body(&limits).expect_err("too much");
    assert_eq!(refused.0, Reason::TooLarge);
}

#[test]
fn heads() {
    for bad in [
        &b""[..],
        b"GET / HTTP/1.0\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
    ] {
        assert!(Response::parse(bad, &small()).is_err(), "{bad:?}");
    }
    let response = Response::parse(b"HTTP/1.1 404 Not Found\r\nA: b", &small()).expect("no body");
    assert_eq!((response.status, response.body), (404, &b""[..]));
    let endless = [b"HTTP/1.1 200\r\n".as_slice(), &vec![b'a'; 300 << 10]].concat();
    assert!(Response::parse(&endless, &Limits::default()).is_err());
}

proptest! {
    #[test]
    fn any_body(body in proptest::collection::vec(any::<u8>(), 0..300), coding in 0..6usize) {
        let coding = ["gzip", "deflate", "br", "zstd", "chunked", "gzip, deflate, br, zstd"][coding];
        let head = format!("Content-Encoding: {coding}\r\nTransfer-Encoding: {coding}");
        let message = message(&head, &body);
        let response = Response::parse(&message, &small()).expect("a whole head");
        if let Ok((decoded, _)) = response.decoded_body(&small()) {
            prop_assert!(decoded.len() <= small().body_bytes);
        }
    }
}

/// Two successive codings are removed in the right order, and a bomb is rejected.
#[test]
fn content_is_decoded_within_limits() {
    let page = b"a rose is a rose is a rose ".repeat(10);
    let once = crate::format::warc::write::gzip(&[&page]).unwrap();
    let twice = crate::format::warc::write::gzip(&[&once]).unwrap();
    let limits = Limits::default();
    let decode = |codings, body| decode_content(codings, body, &limits);
    assert_eq!(decode("gzip", &once).unwrap(), page);
    assert_eq!(decode("GZIP, gzip", &twice).unwrap(), page);
    assert_eq!(decode("", &page).unwrap(), page);
    assert_eq!(decode("gzip", &page).unwrap(), page);
    let bomb = crate::format::warc::write::gzip(&[&vec![b' '; 100 << 20]]).unwrap();
    assert!(decode("gzip", &bomb).is_err());
}
