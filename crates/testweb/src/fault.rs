//! Faults of servers, byte for byte.
//!
//! A fault is data, a list of [`Step`]s, so that the bytes on the wire can be read here and the
//! server only plays them. Every script ends by closing the connection.

use std::io::Write;
use std::time::Duration;

use flate2::write::GzEncoder;
use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::random::{Random, key};

/// A fault of a server. Each has its page, [`path`](Fault::path), on every
/// [broken](crate::Kind::Broken) host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The body is sent at one byte per second.
    SlowBody,
    /// The head is sent at one byte per second.
    SlowHead,
    /// The request is read, but gets no response.
    Silence,
    /// A body without length that never ends.
    EndlessBody,
    /// The connection is reset without a response.
    Reset,
    /// The connection is reset in the middle of the body.
    ResetInBody,
    /// The connection is closed without a response.
    Close,
    /// The connection is closed in the middle of the head.
    CloseInHead,
    /// A chunk whose size is not a number.
    ChunkSizeGarbage,
    /// A chunk whose size needs 68 bits.
    ChunkSizeOverflow,
    /// A chunk that is shorter than its size.
    ChunkCutOff,
    /// Chunks without the final empty one.
    ChunkNoEnd,
    /// A chunk without a line end after it.
    ChunkNoLineEnd,
    /// `Content-Length` is greater than the body.
    LengthTooLong,
    /// `Content-Length` is less than the body.
    LengthTooShort,
    /// `Content-Length` is negative.
    LengthNegative,
    /// Two different values of `Content-Length`.
    LengthTwice,
    /// `Content-Length` and chunks.
    LengthAndChunks,
    /// 256 MiB of zeros in 256 KiB of gzip.
    GzipBomb,
    /// gzip truncated in the middle.
    GzipCutOff,
    /// Declared as gzip, but it is not.
    GzipGarbage,
    /// gzip with a wrong checksum.
    GzipBadChecksum,
    /// An unknown content encoding.
    EncodingUnknown,
    /// Declared as UTF-8, but it is Latin-1.
    CharsetWrong,
    /// The head declares Latin-1, the page declares Shift JIS, and it is UTF-8.
    CharsetContradiction,
    /// An unknown character set.
    CharsetUnknown,
    /// UTF-16 without a byte-order mark and without a declaration.
    CharsetUtf16,
    /// No content type.
    TypeMissing,
    /// Declared as HTML, but it is random bytes.
    TypeWrong,
    /// An invalid status line.
    StatusGarbage,
    /// Status 999.
    StatusUnknown,
    /// A page without a head, as before HTTP/1.0.
    HeadMissing,
    /// A thousand heads with status 103 before the response.
    InterimFlood,
    /// A header of one mebibyte.
    HeaderHuge,
    /// Ten thousand headers.
    HeadersMany,
    /// Headers without a colon, without a name, and with a folded line.
    HeaderGarbage,
    /// Terminal control sequences in headers and title.
    Controls,
    /// Status 204 with a body.
    BodyForbidden,
    /// Status 304 in response to an unconditional request.
    NotModifiedUnasked,
}

/// An action on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Sends bytes.
    Send(Vec<u8>),
    /// Sends bytes one at a time.
    Drip {
        /// The bytes to send.
        bytes: Vec<u8>,
        /// The delay before each byte.
        every: Duration,
    },
    /// Sends the bytes repeatedly until the client disconnects.
    Repeat(Vec<u8>),
    /// Waits until the client disconnects, at most one hour.
    Hang,
    /// Resets the connection.
    Reset,
}

const SECOND: Duration = Duration::from_secs(1);
/// Decompressed size of the bomb, in MiB.
const BOMB_MEBIBYTES: usize = 256;
const PREFIX: &str = "/fault/";
const HTML: &str = "text/html; charset=utf-8";

impl Fault {
    /// Every fault.
    pub const ALL: [Fault; 39] = [
        Fault::SlowBody,
        Fault::SlowHead,
        Fault::Silence,
        Fault::EndlessBody,
        Fault::Reset,
        Fault::ResetInBody,
        Fault::Close,
        Fault::CloseInHead,
        Fault::ChunkSizeGarbage,
        Fault::ChunkSizeOverflow,
        Fault::ChunkCutOff,
        Fault::ChunkNoEnd,
        Fault::ChunkNoLineEnd,
        Fault::LengthTooLong,
        Fault::LengthTooShort,
        Fault::LengthNegative,
        Fault::LengthTwice,
        Fault::LengthAndChunks,
        Fault::GzipBomb,
        Fault::GzipCutOff,
        Fault::GzipGarbage,
        Fault::GzipBadChecksum,
        Fault::EncodingUnknown,
        Fault::CharsetWrong,
        Fault::CharsetContradiction,
        Fault::CharsetUnknown,
        Fault::CharsetUtf16,
        Fault::TypeMissing,
        Fault::TypeWrong,
        Fault::StatusGarbage,
        Fault::StatusUnknown,
        Fault::HeadMissing,
        Fault::InterimFlood,
        Fault::HeaderHuge,
        Fault::HeadersMany,
        Fault::HeaderGarbage,
        Fault::Controls,
        Fault::BodyForbidden,
        Fault::NotModifiedUnasked,
    ];

    /// The path of the fault on a broken host.
    #[must_use]
    pub fn path(self) -> String {
        format!("{PREFIX}{self:?}")
    }

    /// The fault at a path.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        let name = path.strip_prefix(PREFIX)?;
        Self::ALL
            .into_iter()
            .find(|fault| format!("{fault:?}") == name)
    }

    /// The status for the log: that seen by a lenient client, or 0 for none.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Fault::SlowHead | Fault::Silence | Fault::Reset | Fault::Close => 0,
            Fault::CloseInHead | Fault::StatusGarbage | Fault::HeadMissing => 0,
            Fault::StatusUnknown => 999,
            Fault::BodyForbidden => 204,
            Fault::NotModifiedUnasked => 304,
            _ => 200,
        }
    }

    /// The steps to perform instead of sending `page`.
    pub(crate) fn script(self, page: &[u8]) -> Vec<Step> {
        match self {
            Fault::SlowBody | Fault::SlowHead | Fault::Silence | Fault::EndlessBody => {
                self.slow(page)
            }
            Fault::Reset | Fault::ResetInBody | Fault::Close | Fault::CloseInHead => {
                self.broken_off(page)
            }
            _ => vec![Step::Send(self.bytes(page))],
        }
    }

    fn slow(self, page: &[u8]) -> Vec<Step> {
        let head = plain_head(page.len());
        let drip = |bytes: &[u8]| Step::Drip {
            bytes: bytes.to_vec(),
            every: SECOND,
        };
        match self {
            Fault::SlowBody => vec![Step::Send(head), drip(page)],
            Fault::SlowHead => vec![drip(&head), Step::Send(page.to_vec())],
            Fault::EndlessBody => {
                let head = head_with(200, &format!("Content-Type: {HTML}\r\n"));
                vec![Step::Send(head), Step::Repeat(page.to_vec())]
            }
            _ => vec![Step::Hang],
        }
    }

    fn broken_off(self, page: &[u8]) -> Vec<Step> {
        let head = plain_head(page.len());
        match self {
            Fault::Reset => vec![Step::Reset],
            Fault::ResetInBody => {
                let sent = [&head, &page[..page.len() / 2]].concat();
                vec![Step::Send(sent), Step::Reset]
            }
            Fault::CloseInHead => vec![Step::Send(head[..head.len() / 2].to_vec())],
            _ => Vec::new(),
        }
    }

    fn bytes(self, page: &[u8]) -> Vec<u8> {
        use Fault as F;
        match self {
            F::ChunkSizeGarbage => chunked(&[b"zz\r\n", page, b"\r\n0\r\n\r\n"]),
            F::ChunkSizeOverflow => chunked(&[b"10000000000000000\r\n", page, b"\r\n0\r\n\r\n"]),
            F::ChunkCutOff => chunked(&[&chunk_size(page.len() + 1000), page]),
            F::ChunkNoEnd => chunked(&[&chunk_size(page.len()), page, b"\r\n"]),
            F::ChunkNoLineEnd => chunked(&[&chunk_size(page.len()), page, b"0\r\n\r\n"]),
            F::LengthTooLong => whole(&length(page.len() + 1000), page),
            F::LengthTooShort => whole(&length(page.len() / 2), page),
            F::LengthNegative => whole("Content-Length: -1\r\n", page),
            F::LengthTwice => whole(&(length(page.len()) + &length(page.len() / 2)), page),
            F::LengthAndChunks => {
                let body = [&chunk_size(page.len()), page, b"\r\n0\r\n\r\n"].concat();
                let headers = length(page.len() / 2) + "Transfer-Encoding: chunked\r\n";
                whole(&headers, &body)
            }
            F::GzipBomb => encoded("gzip", &bomb()),
            F::GzipCutOff => {
                let packed = gzip(page);
                encoded("gzip", &packed[..packed.len() / 2])
            }
            F::GzipGarbage => encoded("gzip", page),
            F::GzipBadChecksum => {
                let mut packed = gzip(page);
                let checksum = packed.len() - 8;
                packed[checksum] ^= 0xff;
                encoded("gzip", &packed)
            }
            F::EncodingUnknown => encoded("rot13", page),
            F::CharsetWrong
            | F::CharsetContradiction
            | F::CharsetUnknown
            | F::CharsetUtf16
            | F::TypeMissing
            | F::TypeWrong => self.mislabelled(page),
            _ => self.bad_head(page),
        }
    }

    fn mislabelled(self, page: &[u8]) -> Vec<u8> {
        let text = "<!doctype html><title>Über</title><p>Grüße aus Köln, à bientôt, ¡olé!\n";
        match self {
            Fault::CharsetWrong => {
                let latin1: Vec<u8> = text.chars().map(|c| c as u32 as u8).collect();
                typed(HTML, &latin1)
            }
            Fault::CharsetContradiction => {
                let body = format!("<meta charset=shift_jis>{text}");
                typed("text/html; charset=iso-8859-1", body.as_bytes())
            }
            Fault::CharsetUnknown => typed("text/html; charset=x-klingon", text.as_bytes()),
            Fault::CharsetUtf16 => {
                let body: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
                typed("text/html", &body)
            }
            Fault::TypeMissing => [head_with(200, &length(page.len())), page.to_vec()].concat(),
            _ => {
                let mut random = Random::new(page.len() as u64);
                let noise: Vec<u8> = (0..4096).map(|_| random.next() as u8).collect();
                typed(HTML, &noise)
            }
        }
    }

    fn bad_head(self, page: &[u8]) -> Vec<u8> {
        let length = length(page.len());
        match self {
            Fault::StatusGarbage => [b"HTPT/x.y two hundred\r\n\r\n", page].concat(),
            Fault::StatusUnknown => [&head_with(999, &length), page].concat(),
            Fault::HeadMissing => page.to_vec(),
            Fault::InterimFlood => {
                let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n".repeat(1000);
                [interim, plain_head(page.len()), page.to_vec()].concat()
            }
            Fault::HeaderHuge => whole(
                &format!("X-Huge: {}\r\n{length}", "h".repeat(1 << 20)),
                page,
            ),
            Fault::HeadersMany => {
                let many: String = (0..10_000).map(|i| format!("X-{i}: {i}\r\n")).collect();
                whole(&(many + &length), page)
            }
            Fault::HeaderGarbage => whole(
                &format!("no colon here\r\n: no name\r\nX-Fold: a\r\n b\r\n{length}"),
                page,
            ),
            Fault::Controls => {
                let body = "<!doctype html><title>\u{1b}]0;owned\u{7}\u{1b}[2J</title><p>x\n";
                let headers = format!(
                    "Server: \u{1b}[31mred\u{1b}[0m\r\nX-Bell: \u{7}\u{8}\r\nContent-Length: {}\r\n",
                    body.len()
                );
                whole(&headers, body.as_bytes())
            }
            Fault::BodyForbidden => [&head_with(204, &length), page].concat(),
            _ => [&head_with(304, &length), page].concat(),
        }
    }
}

/// A damaged response selected by `number`: bytes changed, removed, duplicated or truncated.
pub(crate) fn noise(number: u64, page: &[u8]) -> Vec<Step> {
    let mut random = Random::new(key(number, 0x6e6f_6973));
    let mut bytes = typed(HTML, &page[..page.len().min(2000)]);
    for _ in 0..=random.below(8) {
        // Half of the damage is in the head, where it matters.
        let reach = [120, bytes.len() as u64][random.below(2) as usize];
        let start = (random.below(reach) as usize).min(bytes.len());
        let end = (start + random.below(40) as usize).min(bytes.len());
        let piece = bytes[start..end].to_vec();
        match random.below(8) {
            0 => bytes.truncate(start),
            1 | 2 => drop(bytes.drain(start..end)),
            3 => drop(bytes.splice(start..start, piece)),
            _ => bytes[start..end]
                .iter_mut()
                .for_each(|byte| *byte = random.next() as u8),
        }
    }
    vec![Step::Send(bytes)]
}

fn head_with(status: u16, headers: &str) -> Vec<u8> {
    let reason = crate::reply::reason(status);
    format!("HTTP/1.1 {status} {reason}\r\n{headers}\r\n").into_bytes()
}

fn plain_head(n_bytes: usize) -> Vec<u8> {
    crate::reply::head(200, HTML, n_bytes)
}

fn length(n_bytes: usize) -> String {
    format!("Content-Length: {n_bytes}\r\n")
}

fn whole(headers: &str, body: &[u8]) -> Vec<u8> {
    let headers = format!("Content-Type: {HTML}\r\n{headers}");
    [&head_with(200, &headers), body].concat()
}

fn typed(content_type: &str, body: &[u8]) -> Vec<u8> {
    [&crate::reply::head(200, content_type, body.len()), body].concat()
}

fn encoded(encoding: &str, body: &[u8]) -> Vec<u8> {
    let headers = format!("Content-Encoding: {encoding}\r\n{}", length(body.len()));
    whole(&headers, body)
}

fn chunk_size(n_bytes: usize) -> Vec<u8> {
    format!("{n_bytes:x}\r\n").into_bytes()
}

fn chunked(parts: &[&[u8]]) -> Vec<u8> {
    whole("Transfer-Encoding: chunked\r\n", &parts.concat())
}

/// Compresses a page with gzip.
pub(crate) fn gzip(page: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let packed = encoder.write_all(page).and_then(|()| encoder.finish());
    packed.expect("writing to memory does not fail")
}

/// Zeros as one valid gzip member: one mebibyte is compressed once, flushed so that it is
/// self-contained, and repeated.
fn bomb() -> Vec<u8> {
    let zeros = vec![0; 1 << 20];
    let mut block = Vec::with_capacity(64 << 10);
    Compress::new(Compression::best(), false)
        .compress_vec(&zeros, &mut block, FlushCompress::Full)
        .expect("a fresh compressor takes any bytes");
    let mut checksum = Crc::new();
    for _ in 0..BOMB_MEBIBYTES {
        checksum.update(&zeros);
    }
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    packed.extend(block.repeat(BOMB_MEBIBYTES));
    // An empty last block, the checksum, and the length.
    packed.extend([3, 0]);
    packed.extend(checksum.sum().to_le_bytes());
    packed.extend(checksum.amount().to_le_bytes());
    packed
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_fault_is_found_by_its_path() {
        for fault in Fault::ALL {
            assert_eq!(Fault::at(&fault.path()), Some(fault));
        }
        assert_eq!(Fault::at("/fault/"), None);
        assert_eq!(Fault::at("/"), None);
    }

    #[test]
    fn scripts_differ() {
        let page = b"<p>a page of some length, at least as long as this";
        let scripts = Fault::ALL.map(|fault| fault.script(page));
        for (i, script) in scripts.iter().enumerate() {
            assert!(!scripts[..i].contains(script), "{:?}", Fault::ALL[i]);
        }
    }

    #[test]
    fn noise_is_damage() {
        let page = vec![b'x'; 3000];
        let whole = vec![Step::Send(typed(HTML, &page[..2000]))];
        let noises: Vec<Vec<Step>> = (0..1000).map(|number| noise(number, &page)).collect();
        let n_whole = noises.iter().filter(|noise| **noise == whole).count();
        assert!(n_whole < 20, "{n_whole} were left whole");
        assert_eq!(noises[7], noise(7, &page));
        noise(1, b"");
    }

    /// The bomb is a valid member, so a decoder stops only if it counts.
    #[test]
    fn the_bomb_unpacks() {
        let packed = bomb();
        assert!(packed.len() < 512 << 10, "{}", packed.len());
        let mut decoder = flate2::read::GzDecoder::new(&packed[..]);
        let mut buffer = vec![1; 1 << 20];
        let mut total = 0;
        loop {
            match decoder.read(&mut buffer).unwrap() {
                0 => break,
                n => {
                    assert!(buffer[..n].iter().all(|&byte| byte == 0));
                    total += n;
                }
            }
        }
        assert_eq!(total, BOMB_MEBIBYTES << 20);
    }
}
