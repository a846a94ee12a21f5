//! Tests that each fault is as described.

use std::io::Read;

use flate2::read::GzDecoder;
use testweb::{Fault, Kind, Server};

use crate::client::{End, ask, config, name_of, request, split};

/// The received bytes.
struct Seen {
    bytes: Vec<u8>,
    end: End,
    text: String,
}

impl Seen {
    fn body(&self) -> &[u8] {
        let end = self
            .bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n");
        &self.bytes[end.unwrap() + 4..]
    }

    fn header(&self, name: &str) -> Vec<&str> {
        let head = self.text.split("\r\n\r\n").next().unwrap();
        let lines = head.split("\r\n").filter_map(|line| line.split_once(": "));
        lines
            .filter(|(own, _)| *own == name)
            .map(|(_, value)| value)
            .collect()
    }

    fn length(&self) -> usize {
        self.header("Content-Length")[0].parse().unwrap()
    }

    /// Size line, rest.
    fn chunk(&self) -> (&str, usize) {
        assert_eq!(self.header("Transfer-Encoding"), ["chunked"]);
        let (size, rest) = self
            .text
            .split_once("\r\n\r\n")
            .unwrap()
            .1
            .split_once("\r\n")
            .unwrap();
        (size, rest.len())
    }

    fn unpacked(&self) -> std::io::Result<usize> {
        assert_eq!(self.header("Content-Encoding"), ["gzip"]);
        let mut page = Vec::new();
        GzDecoder::new(self.body()).read_to_end(&mut page)
    }
}

/// Whether a fault is present. Every fault needs a line, or this does not compile.
fn is_there(fault: Fault, seen: &Seen) -> bool {
    let is_closed = seen.end == End::Closed;
    let hex = |size: &str| usize::from_str_radix(size, 16);
    match fault {
        // Usually one byte; a few on a machine too busy to read each byte as it arrives.
        Fault::SlowBody => seen.end == End::Enough && seen.body().len() < 30,
        Fault::SlowHead => seen.end == End::Enough && seen.bytes.len() < 30,
        Fault::Silence => seen.end == End::Quiet && seen.bytes.is_empty(),
        Fault::EndlessBody => seen.end == End::Enough && seen.header("Content-Length").is_empty(),
        Fault::Reset => seen.end == End::Reset && seen.bytes.is_empty(),
        Fault::ResetInBody => seen.end == End::Reset,
        Fault::Close => is_closed && seen.bytes.is_empty(),
        Fault::CloseInHead => is_closed && !seen.text.contains("\r\n\r\n"),
        Fault::ChunkSizeGarbage => hex(seen.chunk().0).is_err(),
        Fault::ChunkSizeOverflow => u64::from_str_radix(seen.chunk().0, 16).is_err(),
        Fault::ChunkCutOff => is_closed && hex(seen.chunk().0).unwrap() > seen.chunk().1,
        Fault::ChunkNoEnd => is_closed && hex(seen.chunk().0).unwrap() + 2 == seen.chunk().1,
        Fault::ChunkNoLineEnd => hex(seen.chunk().0).unwrap() + 5 == seen.chunk().1,
        Fault::LengthTooLong => is_closed && seen.length() > seen.body().len(),
        Fault::LengthTooShort => seen.length() < seen.body().len(),
        Fault::LengthNegative => seen.header("Content-Length") == ["-1"],
        Fault::LengthTwice => seen.header("Content-Length").len() == 2,
        Fault::LengthAndChunks => seen.length() > 0 && hex(seen.chunk().0).is_ok(),
        Fault::GzipBomb => seen.unpacked().unwrap() > 500 * seen.bytes.len(),
        Fault::GzipCutOff | Fault::GzipGarbage | Fault::GzipBadChecksum => {
            seen.length() == seen.body().len() && seen.unpacked().is_err()
        }
        Fault::EncodingUnknown => seen.header("Content-Encoding") == ["rot13"],
        Fault::CharsetWrong => {
            seen.header("Content-Type")[0].ends_with("utf-8")
                && str::from_utf8(seen.body()).is_err()
        }
        Fault::CharsetContradiction => {
            seen.header("Content-Type")[0].ends_with("iso-8859-1")
                && seen.text.contains("charset=shift_jis")
                && seen.text.contains("Köln")
        }
        Fault::CharsetUnknown => seen.header("Content-Type")[0].ends_with("x-klingon"),
        Fault::CharsetUtf16 => {
            seen.header("Content-Type") == ["text/html"] && seen.body().starts_with(b"\0<\0!")
        }
        Fault::TypeMissing => is_closed && seen.header("Content-Type").is_empty(),
        Fault::TypeWrong => seen.body().iter().filter(|&&byte| byte == 0).count() > 2,
        Fault::StatusGarbage => !seen.text.starts_with("HTTP/"),
        Fault::StatusUnknown => seen.text.starts_with("HTTP/1.1 999 "),
        Fault::HeadMissing => is_closed && seen.text.starts_with("<!doctype"),
        Fault::InterimFlood => seen.text.matches("HTTP/1.1 103 ").count() == 1000,
        Fault::HeaderHuge => seen.header("X-Huge")[0].len() == 1 << 20,
        Fault::HeadersMany => seen.text.matches("\r\nX-").count() == 10_000,
        Fault::HeaderGarbage => seen.text.contains("\r\nno colon here\r\n: no name\r\n"),
        Fault::Controls => seen.header("Server")[0].starts_with('\u{1b}'),
        Fault::BodyForbidden => seen.text.starts_with("HTTP/1.1 204 ") && !seen.body().is_empty(),
        Fault::NotModifiedUnasked => seen.text.starts_with("HTTP/1.1 304 "),
    }
}

/// One byte past the head of slow bodies, one byte of slow heads, and some of endless bodies.
fn most_bytes(fault: Fault, n_head: usize) -> usize {
    match fault {
        Fault::SlowBody => n_head + 1,
        Fault::SlowHead => 1,
        Fault::EndlessBody => 1 << 20,
        _ => usize::MAX,
    }
}

/// All at once, since the slow ones take time.
#[test]
fn faults_are_what_they_say() {
    let server = Server::start(config()).unwrap();
    let name = name_of(&server, Kind::Broken);
    let (whole, _) = ask(&server, &name, &request(&name, "/"), usize::MAX);
    let page_length = split(&whole).unwrap().body.len();
    let n_head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {page_length}\r\n\r\n"
    );
    std::thread::scope(|scope| {
        for fault in Fault::ALL {
            let (server, name, n_head) = (&server, &name, n_head.len());
            scope.spawn(move || {
                let asked = request(name, &fault.path());
                let (bytes, end) = ask(server, name, &asked, most_bytes(fault, n_head));
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let seen = Seen { bytes, end, text };
                assert!(
                    is_there(fault, &seen),
                    "{fault:?}: {:?} {:.300}",
                    seen.end,
                    seen.text
                );
            });
        }
    });
    assert_eq!(server.log().records.len(), 1 + Fault::ALL.len());
}

/// The ordinary page next to them has no fault.
#[test]
fn ordinary_pages_have_no_fault() {
    let server = Server::start(config()).unwrap();
    let name = name_of(&server, Kind::Broken);
    let (bytes, end) = ask(&server, &name, &request(&name, "/"), usize::MAX);
    let text = String::from_utf8(bytes.clone()).unwrap();
    let seen = Seen { bytes, end, text };
    assert_eq!((seen.end, seen.length()), (End::Closed, seen.body().len()));
    let shape = [
        Fault::Silence,
        Fault::Reset,
        Fault::Close,
        Fault::LengthTooLong,
        Fault::LengthTooShort,
        Fault::LengthTwice,
        Fault::TypeMissing,
        Fault::TypeWrong,
        Fault::StatusGarbage,
        Fault::HeadMissing,
    ];
    for fault in shape {
        assert!(!is_there(fault, &seen), "{fault:?}");
    }
}
