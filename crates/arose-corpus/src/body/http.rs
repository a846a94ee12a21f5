//! HTTP messages in archives: head, transfer and content codings.
//!
//! Archives are often inconsistent: a body may be stored decoded while its header still says
//! `chunked` or `gzip`. Therefore each coding is decoded only if the bytes look like it. If
//! decoding fails in the middle, the output so far is kept, with a note, as in a browser. Two kinds
//! of bodies are rejected: bodies larger than the limit and decompression bombs. Both are detected
//! without decompressing any further.

use std::borrow::Cow;
use std::io::Read;

use crate::body::headers::{Headers, end_of_header};
use crate::config::Limits;
use crate::document::Reason;

/// A response: its status, its headers and its body as stored.
#[derive(Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) headers: Headers,
    pub(crate) body: &'a [u8],
}

/// A reason with details.
pub(crate) type Note = (Reason, String);

impl<'a> Response<'a> {
    /// Splits the stored bytes of a response.
    pub(crate) fn parse(block: &'a [u8], limits: &Limits) -> Result<Self, Note> {
        let bad = |detail: &str| (Reason::BadHttp, detail.to_owned());
        let head = &block[..block.len().min(limits.header_bytes)];
        if !head.starts_with(b"HTTP/") {
            return Err(bad("no status line"));
        }
        // Without a blank line, all bytes are header: a response without a body.
        let end = match end_of_header(head) {
            Some(end) => end,
            None if block.len() <= limits.header_bytes => block.len(),
            None => return Err(bad("unterminated header")),
        };
        let first_line = memchr::memchr(b'\n', head).map_or(end, |i| i + 1);
        let status = String::from_utf8_lossy(&head[..first_line]);
        let status = status.split_ascii_whitespace().nth(1);
        Ok(Self {
            status: status
                .and_then(|s| s.parse().ok())
                .ok_or_else(|| bad("no status code"))?,
            headers: Headers::parse(&head[first_line..end]),
            body: &block[end..],
        })
    }

    /// The decoded body, and the errors met while decoding.
    pub(crate) fn decoded_body(&self, limits: &Limits) -> Result<(Cow<'a, [u8]>, Vec<Note>), Note> {
        let mut notes = Vec::new();
        let mut body = Cow::Borrowed(self.body);
        let codings = self
            .codings("transfer-encoding")
            .chain(self.codings("content-encoding"));
        for coding in codings {
            let (decoded, note) = undo(&coding, &body, limits)?;
            notes.extend(note.map(|detail| (Reason::BadHttp, detail)));
            if let Some(decoded) = decoded {
                body = Cow::Owned(decoded);
            }
        }
        match body.len() > limits.body_bytes {
            true => Err(too_large(limits)),
            false => Ok((body, notes)),
        }
    }

    /// The codings of one header, last applied first; a hostile list is truncated.
    fn codings(&self, name: &str) -> impl Iterator<Item = String> {
        let list = self.headers.all(name).flat_map(|value| value.split(','));
        let mut codings: Vec<String> = list
            .map(|c| c.trim().to_ascii_lowercase())
            .take(4)
            .collect();
        codings.reverse();
        codings.into_iter()
    }
}

/// Whether a response has as many bytes as its own `Content-Length` says.
pub(crate) fn is_whole(block: &[u8], limits: &Limits) -> bool {
    let Ok(response) = Response::parse(block, limits) else {
        return false;
    };
    let length = response
        .headers
        .get("content-length")
        .map(str::parse::<usize>);
    matches!(length, Some(Ok(length)) if response.body.len() >= length)
}

fn too_large(limits: &Limits) -> Note {
    let detail = format!("a body of more than {} bytes", limits.body_bytes);
    (Reason::TooLarge, detail)
}

/// Decodes a body by its `Content-Encoding`. If the body does not match a coding, returns the
/// output so far, as a browser would.
///
/// # Errors
///
/// If the result is larger than the limits allow, with the reason.
pub fn decode_content<'a>(
    codings: &str,
    body: &'a [u8],
    limits: &Limits,
) -> Result<Cow<'a, [u8]>, Reason> {
    let mut body = Cow::Borrowed(body);
    let codings: Vec<&str> = codings.split(',').map(str::trim).take(4).collect();
    for coding in codings.iter().rev() {
        let undone = undo(&coding.to_ascii_lowercase(), &body, limits);
        if let (Some(decoded), _) = undone.map_err(|(reason, _)| reason)? {
            body = Cow::Owned(decoded);
        }
    }
    Ok(body)
}

/// Decodes like [`decode_content`], but only if the result is certain. Returns nothing if a coding
/// is unknown, does not match the body, is truncated, or exceeds the limits.
#[must_use]
pub fn decode_content_strictly<'a>(
    codings: &str,
    body: &'a [u8],
    limits: &Limits,
) -> Option<Cow<'a, [u8]>> {
    let mut body = Cow::Borrowed(body);
    for coding in codings.split(',').map(str::trim).rev() {
        let coding = coding.to_ascii_lowercase();
        if body.is_empty() || matches!(coding.as_str(), "" | "identity") {
            continue;
        }
        match undo(&coding, &body, limits) {
            Ok((Some(decoded), None)) => body = Cow::Owned(decoded),
            _ => return None,
        }
    }
    Some(body)
}

/// The result of decoding one coding: the bytes, if there was anything to decode, and the error.
type Undone = (Option<Vec<u8>>, Option<String>);

fn undo(coding: &str, body: &[u8], limits: &Limits) -> Result<Undone, Note> {
    match coding {
        "chunked" => Ok(dechunk(body)),
        "gzip" | "x-gzip" if body.starts_with(&[0x1f, 0x8b]) => {
            unpack(flate2::read::MultiGzDecoder::new(body), body, limits)
        }
        "deflate" if is_zlib(body) => unpack(flate2::read::ZlibDecoder::new(body), body, limits),
        "deflate" => unpack(flate2::read::DeflateDecoder::new(body), body, limits),
        "br" => unpack(
            brotli_decompressor::Decompressor::new(body, 4096),
            body,
            limits,
        ),
        "zstd" if body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => {
            let decoder = zstd::Decoder::with_buffer(body);
            match decoder {
                Ok(decoder) => unpack(decoder, body, limits),
                Err(error) => Ok((None, Some(format!("zstd: {error}")))),
            }
        }
        _ => Ok((None, None)),
    }
}

fn is_zlib(body: &[u8]) -> bool {
    match body {
        [method, flags, ..] => {
            method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31)
        }
        _ => false,
    }
}

/// Reads a decoder up to its end, an error or a limit.
fn unpack(mut decoder: impl Read, body: &[u8], limits: &Limits) -> Result<Undone, Note> {
    const STEP: u64 = 64 << 10;
    let mut out = Vec::new();
    loop {
        let before = out.len();
        let result = decoder.by_ref().take(STEP).read_to_end(&mut out);
        if limits.is_bomb(body.len() as u64, out.len() as u64) {
            let detail = format!("a body of {} bytes became {}", body.len(), out.len());
            return Err((Reason::Expansion, detail));
        }
        if out.len() > limits.body_bytes {
            return Err(too_large(limits));
        }
        match result {
            Ok(_) if out.len() == before => return Ok((Some(out), None)),
            Ok(_) => {}
            // No output: the body was most likely stored decoded.
            Err(_) if out.is_empty() => {
                return Ok((None, Some("not encoded as declared".to_owned())));
            }
            Err(error) => return Ok((Some(out), Some(error.to_string()))),
        }
    }
}

/// Joins chunks. A body that does not start with a chunk was stored already joined.
fn dechunk(body: &[u8]) -> Undone {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    loop {
        let Some((size, after)) = chunk_size(rest) else {
            return match out.is_empty() {
                true => (None, None),
                false => (Some(out), Some("chunk without a size".to_owned())),
            };
        };
        if size == 0 {
            return (Some(out), None);
        }
        let Some(chunk) = after.get(..size) else {
            out.extend_from_slice(after);
            return (Some(out), Some("the last chunk is truncated".to_owned()));
        };
        out.extend_from_slice(chunk);
        rest = &after[size..];
        rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        rest = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
}

/// The chunk size in the first line, and the bytes after that line.
fn chunk_size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let line_end = memchr::memchr(b'\n', &bytes[..bytes.len().min(1024)])?;
    let line = bytes[..line_end].trim_ascii();
    let digits = line.split(|&b| b == b';').next()?.trim_ascii();
    let digits = std::str::from_utf8(digits).ok()?;
    let all_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let size = usize::from_str_radix(digits, 16).ok().filter(|_| all_hex)?;
    Some((size, &bytes[line_end + 1..]))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
