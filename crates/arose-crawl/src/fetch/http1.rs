//! An HTTP/1.1 client for a crawler: one GET at a time, any response.
//!
//! It is written for this purpose, because a crawler spends most of its time here and meets hostile
//! servers here. A response stays in the buffer it was read into: head and body go to the archive
//! unchanged. Whatever the bytes are, the outcome is a [`Message`] or a [`Failure`], within the
//! limits. Tests cover heads without end, false lengths, malformed chunks and bodies without end.
//!
//! Like browsers, the client is lenient: lines may end without a carriage return, headers without a
//! colon are ignored, and repeated equal lengths count as one. A truncated body is kept and marked.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout_at};

use super::{Cut, Failure, FetchLimits, Head, Message};
use crate::connect::Stream;
use crate::number::saturating;

/// Sends a request over a connection and reads the response. Also returns whether the connection
/// can be used again.
pub(crate) async fn exchange(
    stream: &mut dyn Stream,
    request: &[u8],
    limits: &FetchLimits,
    deadline: Instant,
) -> Result<(Message, Reuse), Failure> {
    let first_byte = (Instant::now() + limits.first_byte).min(deadline);
    timeout_at(first_byte, stream.write_all(request))
        .await
        .map_err(|_| Failure::Slow)?
        .map_err(|_| Failure::Closed)?;
    let mut input = Input {
        stream,
        bytes: Vec::with_capacity(FIRST_READ),
        deadline: first_byte,
    };
    let head_end = read_head(&mut input, limits).await?;
    input.deadline = deadline;
    let head = Head::parse(&input.bytes[..head_end]).ok_or(Failure::NotHttp)?;
    let framing = framing(&head)?;
    let is_persistent = head.is_persistent();
    let (bytes, head_end, cut, is_whole) = match framing {
        Framing::None => without_body(input, head_end),
        Framing::Length(length) => read_length(input, head_end, length, limits).await,
        Framing::Chunked => read_chunked(input, head_end, limits).await,
        Framing::ToEnd => read_to_end(input, head_end, limits).await,
    };
    let reuse = match is_persistent && is_whole {
        true => Reuse::Yes,
        false => Reuse::No,
    };
    let message = Message {
        bytes,
        head_end,
        cut,
    };
    Ok((message, reuse))
}

/// Whether a connection can carry another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Yes,
    No,
}

/// Maximum number of interim responses before the final one.
const MAX_INTERIM: u32 = 16;

/// Size of a median page with its head.
const FIRST_READ: usize = 16 << 10;

/// How the end of a body is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    None,
    Length(usize),
    Chunked,
    ToEnd,
}

fn framing(head: &Head<'_>) -> Result<Framing, Failure> {
    if matches!(head.status, 204 | 304) {
        return Ok(Framing::None);
    }
    if let Some(codings) = head.get("transfer-encoding") {
        let last = codings.rsplit(',').next().unwrap_or_default();
        return Ok(match last.trim().eq_ignore_ascii_case("chunked") {
            true => Framing::Chunked,
            false => Framing::ToEnd,
        });
    }
    let Some(length) = head.get("content-length") else {
        return Ok(Framing::ToEnd);
    };
    // Servers that send a length twice, or a wrong one, still send a page.
    let length = length.split(',').next().unwrap_or_default().trim();
    // A length that exceeds the address space is valid, but the body will be truncated.
    let length = saturating(length).map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    Ok(length.map_or(Framing::ToEnd, Framing::Length))
}

struct Input<'s> {
    stream: &'s mut dyn Stream,
    bytes: Vec<u8>,
    deadline: Instant,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    Some,
    End,
    Broken,
    Late,
}

impl Input<'_> {
    async fn more(&mut self) -> Read {
        if self.bytes.capacity() - self.bytes.len() < 1024 {
            self.bytes.reserve(self.bytes.len().max(FIRST_READ));
        }
        match timeout_at(self.deadline, self.stream.read_buf(&mut self.bytes)).await {
            Ok(Ok(0)) => Read::End,
            Ok(Ok(_)) => Read::Some,
            Ok(Err(_)) => Read::Broken,
            Err(_) => Read::Late,
        }
    }
}

/// Reads to the end of the final head and returns its position. Interim responses are dropped.
async fn read_head(input: &mut Input<'_>, limits: &FetchLimits) -> Result<usize, Failure> {
    let mut searched: usize = 0;
    let mut n_interim = 0;
    loop {
        if !is_http(&input.bytes) {
            return Err(Failure::NotHttp);
        }
        // The empty line may be split between two reads.
        let from = searched.saturating_sub(3);
        if let Some(end) = end_of_head(&input.bytes, from) {
            if !is_interim(&input.bytes[..end]) {
                return Ok(end);
            }
            n_interim += 1;
            if n_interim > MAX_INTERIM {
                return Err(Failure::NotHttp);
            }
            input.bytes.drain(..end);
            searched = 0;
            continue;
        }
        searched = input.bytes.len();
        if input.bytes.len() > limits.max_head {
            return Err(Failure::LongHead);
        }
        match input.more().await {
            Read::Some => {}
            Read::End | Read::Broken if input.bytes.is_empty() => return Err(Failure::Closed),
            Read::End | Read::Broken => return Err(Failure::NotHttp),
            Read::Late => return Err(Failure::Slow),
        }
    }
}

/// Whether the bytes begin like a response.
fn is_http(bytes: &[u8]) -> bool {
    let length = bytes.len().min(5);
    bytes[..length] == b"HTTP/"[..length]
}

/// Whether the status is 1xx. 101 does not count, because the request never asks for it.
fn is_interim(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let status = first.split(|&byte| byte == b' ').nth(1);
    status.is_some_and(|status| status.starts_with(b"1") && !status.starts_with(b"101"))
}

/// Returns the end of the head, searching from `from` on.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = memchr::memchr(b'\n', bytes.get(at..)?) {
        let after = at + found + 1;
        match bytes.get(after..) {
            Some([b'\n', ..]) => return Some(after + 1),
            Some([b'\r', b'\n', ..]) => return Some(after + 2),
            _ => at = after,
        }
    }
    None
}

/// Buffer, end of the head, cause of truncation, and whether the body ended where it should.
type BodyRead = (Vec<u8>, usize, Option<Cut>, bool);

/// Reads a response without a body. Bytes after the head belong to no request, so a connection with
/// such bytes is not used again.
fn without_body(mut input: Input<'_>, head_end: usize) -> BodyRead {
    let is_whole = input.bytes.len() == head_end;
    input.bytes.truncate(head_end);
    (input.bytes, head_end, None, is_whole)
}

async fn read_length(
    mut input: Input<'_>,
    head_end: usize,
    length: usize,
    limits: &FetchLimits,
) -> BodyRead {
    let wanted = length.min(limits.max_body);
    // A length is only a promise: memory is allocated as bytes arrive.
    let ahead = wanted.min(1 << 20) + head_end;
    input.bytes.reserve(ahead.saturating_sub(input.bytes.len()));
    let mut cut = None;
    while input.bytes.len() - head_end < wanted {
        cut = cut_of(input.more().await);
        if cut.is_some() {
            break;
        }
    }
    let is_whole = input.bytes.len() - head_end == length;
    if cut.is_none() && length > limits.max_body {
        cut = Some(Cut::Length);
    }
    input.bytes.truncate(head_end + wanted);
    (input.bytes, head_end, cut, is_whole && cut.is_none())
}

async fn read_to_end(mut input: Input<'_>, head_end: usize, limits: &FetchLimits) -> BodyRead {
    let cut = loop {
        if input.bytes.len() - head_end > limits.max_body {
            break Some(Cut::Length);
        }
        match input.more().await {
            Read::Some => {}
            Read::End => break None,
            other => break cut_of(other),
        }
    };
    input.bytes.truncate(head_end + limits.max_body);
    (input.bytes, head_end, cut, false)
}

/// Joins chunks into a separate buffer.
async fn read_chunked(mut input: Input<'_>, head_end: usize, limits: &FetchLimits) -> BodyRead {
    let mut out = input.bytes[..head_end].to_vec();
    input.bytes.drain(..head_end);
    let mut chunks = Chunks::default();
    let cut = loop {
        match chunks.take(&mut input.bytes, &mut out) {
            Ok(true) => break None,
            Ok(false) => {}
            Err(()) => break Some(Cut::Disconnect),
        }
        if out.len() - head_end > limits.max_body {
            break Some(Cut::Length);
        }
        if let Some(cut) = cut_of(input.more().await) {
            break Some(cut);
        }
    };
    out.truncate(head_end + limits.max_body);
    let is_whole = cut.is_none() && input.bytes.is_empty();
    (out, head_end, cut, is_whole)
}

fn cut_of(read: Read) -> Option<Cut> {
    match read {
        Read::Some => None,
        Read::End | Read::Broken => Some(Cut::Disconnect),
        Read::Late => Some(Cut::Time),
    }
}

/// Position in a chunked body.
#[derive(Debug, Default)]
struct Chunks {
    /// Bytes left in the current chunk; `None` before its size line.
    left: Option<usize>,
    in_trailer: bool,
}

impl Chunks {
    /// Moves the available bytes of chunks to `out`. Returns true at the end of the last chunk, and
    /// an error if a chunk size is malformed.
    fn take(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<bool, ()> {
        let mut at = 0;
        let result = loop {
            let rest = &input[at..];
            if self.in_trailer {
                let Some(end) = memchr::memchr(b'\n', rest) else {
                    break if rest.len() > MAX_LINE {
                        Err(())
                    } else {
                        Ok(false)
                    };
                };
                let is_blank = rest[..end].trim_ascii().is_empty();
                at += end + 1;
                if is_blank {
                    break Ok(true);
                }
                continue;
            }
            if let Some(left) = self.left {
                let n_bytes = left.min(rest.len());
                out.extend_from_slice(&rest[..n_bytes]);
                at += n_bytes;
                self.left = Some(left - n_bytes).filter(|&left| left > 0);
                if self.left.is_some() {
                    break Ok(false);
                }
                continue;
            }
            let Some(end) = memchr::memchr(b'\n', rest) else {
                break if rest.len() > MAX_LINE {
                    Err(())
                } else {
                    Ok(false)
                };
            };
            let line = rest[..end].trim_ascii();
            at += end + 1;
            // The line end after a chunk.
            if line.is_empty() {
                continue;
            }
            match chunk_size(line) {
                Some(0) => self.in_trailer = true,
                Some(size) => self.left = Some(size),
                None => break Err(()),
            }
        };
        input.drain(..at);
        result
    }
}

const MAX_LINE: usize = 4096;

fn chunk_size(line: &[u8]) -> Option<usize> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    usize::from_str_radix(digits, 16).ok()
}

/// Builds the request for a path.
pub(crate) fn request(
    authority: &str,
    rest: &str,
    user_agent: &str,
    others: &[(&str, String)],
) -> Vec<u8> {
    let mut request = format!(
        "GET {rest} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {user_agent}\r\n\
         Accept: {ACCEPT}\r\nAccept-Encoding: gzip, deflate, br\r\n"
    );
    for (name, value) in others {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    request.into_bytes()
}

/// The preferred media types.
pub(crate) const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.5";

#[cfg(test)]
mod tests;
