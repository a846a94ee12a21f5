//! Writes WARC 1.1 records.
//!
//! Each record is one gzip member, so that it can be read alone by its offset. It has SHA-1 digests
//! of its block and, for HTTP messages, of the payload, in base 32 as is customary. Time and ID
//! come from the caller. A missing record ID is derived from the content, so the same input gives
//! the same bytes.

use std::io::{self, Write};

use arose::digest::Digest;
use data_encoding::BASE32;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha1::{Digest as _, Sha1};

use crate::time;

/// A record to write.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// `response`, `resource`, `conversion`, `warcinfo`, …
    pub kind: &'a str,
    /// The URL of the record.
    pub url: Option<&'a str>,
    /// When it was fetched or created, in seconds since 1970.
    pub date: i64,
    /// Its URI, without angle brackets; derived from the rest if none.
    pub id: Option<&'a str>,
    /// The media type of the block; `application/http; msgtype=response` for a response.
    pub content_type: &'a str,
    /// Status line and headers with their blank line; empty if the block is not an HTTP message.
    pub http_head: &'a [u8],
    /// The payload as received.
    pub body: &'a [u8],
    /// Further header fields.
    pub fields: &'a [(&'a str, &'a str)],
}

/// The position of a written record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Offset in the file.
    pub offset: u64,
    /// Length in the file, in bytes.
    pub length: u64,
}

/// How records are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Not at all.
    Plain,
    /// One gzip member per record.
    Gzip,
}

/// Writes records one after another.
#[derive(Debug)]
pub struct WarcWriter<W> {
    out: W,
    packing: Packing,
    offset: u64,
}

impl<W: Write> WarcWriter<W> {
    /// Starts a file.
    pub fn new(out: W, packing: Packing) -> Self {
        Self {
            out,
            packing,
            offset: 0,
        }
    }

    /// Writes a record.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn write(&mut self, record: &NewRecord<'_>) -> io::Result<Span> {
        let header = header(record);
        let parts = [
            header.as_bytes(),
            record.http_head,
            record.body,
            b"\r\n\r\n",
        ];
        self.write_raw(&parts)
    }

    /// Writes the parts of an existing record unchanged.
    ///
    /// # Errors
    ///
    /// If the output cannot be written.
    pub fn write_raw(&mut self, parts: &[&[u8]]) -> io::Result<Span> {
        let packed = match self.packing {
            Packing::Plain => parts.concat(),
            Packing::Gzip => gzip(parts)?,
        };
        self.out.write_all(&packed)?;
        let span = Span {
            offset: self.offset,
            length: packed.len() as u64,
        };
        self.offset += span.length;
        Ok(span)
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// One gzip member.
pub(crate) fn gzip(parts: &[&[u8]]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    for part in parts {
        encoder.write_all(part)?;
    }
    encoder.finish()
}

fn header(record: &NewRecord<'_>) -> String {
    let length = record.http_head.len() + record.body.len();
    let mut text = String::from("WARC/1.1\r\n");
    let mut field = |name: &str, value: &str| {
        // A line end in a value would start another field.
        let value = value.replace(['\r', '\n'], " ");
        text.push_str(&format!("{name}: {value}\r\n"));
    };
    field("WARC-Type", record.kind);
    field("WARC-Record-ID", &format!("<{}>", id(record)));
    field("WARC-Date", &time::format(record.date));
    if let Some(url) = record.url {
        field("WARC-Target-URI", url);
    }
    field("Content-Type", record.content_type);
    for (name, value) in record.fields {
        field(name, value);
    }
    field(
        "WARC-Block-Digest",
        &digest(&[record.http_head, record.body]),
    );
    if !record.http_head.is_empty() {
        field("WARC-Payload-Digest", &digest(&[record.body]));
    }
    field("Content-Length", &length.to_string());
    text.push_str("\r\n");
    text
}

fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha1::new();
    for part in parts {
        hash.update(part);
    }
    format!("sha1:{}", BASE32.encode(&hash.finalize()))
}

/// The given ID, or a UUID (version 8, custom) from a digest of the whole record.
fn id(record: &NewRecord<'_>) -> String {
    if let Some(id) = record.id {
        return id.trim_matches(['<', '>']).to_owned();
    }
    let key = format!(
        "{} {} {:?} {} {}",
        record.kind,
        record.date,
        record.url,
        Digest::of_bytes(record.http_head),
        Digest::of_bytes(record.body)
    );
    let hex = Digest::of_bytes(key.as_bytes()).to_string();
    let (a, b, c, d, e) = (
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..],
    );
    format!("urn:uuid:{a}-{b}-8{c}-8{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: NewRecord<'_> = NewRecord {
        kind: "response",
        url: Some("http://x/\r\nevil: yes"),
        date: 0,
        id: None,
        content_type: "application/http; msgtype=response",
        http_head: b"HTTP/1.1 200 OK\r\n\r\n",
        body: b"rose",
        fields: &[("WARC-IP-Address", "1.2.3.4")],
    };

    #[test]
    fn header_fields() {
        let mut writer = WarcWriter::new(Vec::new(), Packing::Plain);
        let first = writer.write(&RECORD).expect("to memory");
        let second = writer.write(&RECORD).expect("to memory");
        assert_eq!((first.offset, second.offset), (0, first.length));
        let bytes = writer.into_inner();
        let text = String::from_utf8_lossy(&bytes[..first.length as usize]);
        assert!(text.starts_with("WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:"));
        assert!(text.contains("\r\nWARC-Date: 1970-01-01T00:00:00Z\r\n"));
        assert!(text.contains("\r\nWARC-Target-URI: http://x/  evil: yes\r\n"));
        // The digest of `rose`, computed with sha1sum and base32.
        assert!(text.contains("\r\nWARC-Payload-Digest: sha1:"));
        assert!(text.ends_with("Content-Length: 23\r\n\r\nHTTP/1.1 200 OK\r\n\r\nrose\r\n\r\n"));
    }

    #[test]
    fn digest_is_sha1_in_base_32() {
        assert_eq!(digest(&[b""]), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ");
        assert_eq!(digest(&[b"ro", b"se"]), digest(&[b"rose"]));
    }

    #[test]
    fn ids_depend_on_content() {
        let other = NewRecord {
            body: b"rosa",
            ..RECORD
        };
        assert_ne!(id(&RECORD), id(&other));
        assert_eq!(id(&RECORD), id(&RECORD));
        assert_eq!(id(&RECORD).len(), "urn:uuid:".len() + 36);
    }
}
