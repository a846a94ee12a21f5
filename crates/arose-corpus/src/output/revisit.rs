//! Documents dropped from a web archive, and the revisit records in their place.
//!
//! A revisit record documents a visit to a page without storing its body. It keeps the header of
//! the record that it replaces and the HTTP header, and refers to the kept record. If both are
//! known to have the same payload, it uses the standard profile `identical-payload-digest`, which
//! can be replayed. Other duplicates use a profile of arose, since the standard has none.

use std::collections::BTreeMap;

use data_encoding::BASE32;
use memchr::memmem;
use sha1::{Digest as _, Sha1};

use crate::document::Position;
use crate::format::warc::cut::Record;
use crate::time;

/// The profile of revisit records for near duplicates.
pub const NEAR_DUPLICATE: &str = "urn:arose:revisit:near-duplicate";
/// The standard profile, for records with the same payload.
pub const IDENTICAL: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// A dropped document.
#[derive(Debug, Clone, PartialEq)]
pub struct DroppedRecord {
    /// The start of its record.
    pub position: Position,
    /// The document that the revisit record refers to; if none, the record is omitted.
    pub original: Option<RefersTo>,
}

/// The document kept in place of another.
#[derive(Debug, Clone, PartialEq)]
pub struct RefersTo {
    /// Its number in the corpus; none if it is not in the corpus.
    pub number: Option<u64>,
    /// The URI of its record.
    pub id: Option<String>,
    /// Its URL.
    pub url: Option<String>,
    /// When it was fetched, in seconds since 1970.
    pub date: Option<i64>,
    /// The rule that matched the pair.
    pub rule: String,
    /// Their similarity.
    pub similarity: Option<f64>,
}

/// The payload digests of kept documents, by their numbers in the corpus. Contains the requested
/// documents, as far as their records have been copied.
pub type Payloads = BTreeMap<u64, Option<String>>;

/// The documents to drop from an archive.
#[derive(Debug)]
pub struct Dropped<'a> {
    /// The dropped documents of the file; ascending.
    records: &'a [DroppedRecord],
    /// Kept documents of the file for which others were dropped; ascending.
    originals: &'a [(Position, u64)],
    payloads: &'a mut Payloads,
}

/// The decision about a record.
pub(crate) enum Decision<'a> {
    Copy,
    Omit,
    Revisit(&'a RefersTo),
}

impl<'a> Dropped<'a> {
    /// The dropped documents of a file, and the kept documents for which others were dropped, both
    /// ascending by position.
    pub fn new(
        records: &'a [DroppedRecord],
        originals: &'a [(Position, u64)],
        payloads: &'a mut Payloads,
    ) -> Self {
        Self {
            records,
            originals,
            payloads,
        }
    }

    /// Decides about the next record in order, and stores its payload digest if it is requested.
    pub(crate) fn next(&mut self, record: &Record) -> Decision<'a> {
        let position = record.place.position;
        while let [(at, number), rest @ ..] = self.originals
            && *at <= position
        {
            if *at == position {
                self.payloads.insert(*number, Some(payload_digest(record)));
            }
            self.originals = rest;
        }
        while let [dropped, rest @ ..] = self.records
            && dropped.position <= position
        {
            self.records = rest;
            if dropped.position == position {
                return match &dropped.original {
                    Some(original) => Decision::Revisit(original),
                    None => Decision::Omit,
                };
            }
        }
        Decision::Copy
    }

    /// The payload digest of an original, if its record has been copied.
    pub(crate) fn payload_of(&self, original: &RefersTo) -> Option<&str> {
        self.payloads.get(&original.number?)?.as_deref()
    }
}

/// Header and block of the revisit record that replaces a record.
pub(crate) fn revisit(
    record: &Record,
    original: &RefersTo,
    original_payload: Option<&str>,
) -> [Vec<u8>; 2] {
    let payload = payload_digest(record);
    let profile = match original_payload == Some(&*payload) {
        true => IDENTICAL,
        false => NEAR_DUPLICATE,
    };
    let http_head = &record.block[..http_head_bytes(record)];
    let mut head = Vec::new();
    let mut put = |name: &str, value: &str| {
        // A line end in a value would start another field.
        let value = value.replace(['\r', '\n'], " ");
        head.extend(format!("{name}: {value}\r\n").into_bytes());
    };
    put("WARC-Type", "revisit");
    put("WARC-Profile", profile);
    put("WARC-Payload-Digest", &payload);
    if let Some(id) = &original.id {
        put(
            "WARC-Refers-To",
            &format!("<{}>", id.trim_matches(['<', '>'])),
        );
    }
    if let Some(url) = &original.url {
        put("WARC-Refers-To-Target-URI", url);
    }
    if let Some(date) = original.date {
        put("WARC-Refers-To-Date", &time::format(date));
    }
    put("Arose-Duplicate-Rule", &original.rule);
    if let Some(similarity) = original.similarity {
        put("Arose-Duplicate-Similarity", &format!("{similarity:.4}"));
    }
    put("Content-Length", &http_head.len().to_string());
    let (version, fields) = kept_fields(&record.raw_head);
    let head = [version, &head[..], &fields[..], b"\r\n"].concat();
    [head, http_head.to_vec()]
}

/// The first line of a header, and the fields that the revisit record keeps.
fn kept_fields(raw_head: &[u8]) -> (&[u8], Vec<u8>) {
    let replaced = [
        "warc-type",
        "warc-profile",
        "warc-payload-digest",
        "warc-block-digest",
        "warc-refers-to",
        "warc-refers-to-target-uri",
        "warc-refers-to-date",
        "warc-truncated",
        "content-length",
    ];
    let mut lines = raw_head.split_inclusive(|&byte| byte == b'\n');
    let version = lines.next().unwrap_or_default();
    let mut fields = Vec::new();
    let mut is_kept = false;
    for line in lines {
        // A line that starts with whitespace continues the previous field.
        if !matches!(line.first(), Some(b' ' | b'\t')) {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            let name = name.trim_ascii().to_ascii_lowercase();
            is_kept = !line.trim_ascii().is_empty()
                && !replaced.iter().any(|replaced| replaced.as_bytes() == name);
        }
        if is_kept {
            fields.extend_from_slice(line);
        }
    }
    (version, fields)
}

/// The digest of the payload: from the header, or else computed.
fn payload_digest(record: &Record) -> String {
    let lines = record.raw_head.split(|&byte| byte == b'\n');
    let mut stated = lines.filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (name, value) = line.split_once(':')?;
        let is_it = name.trim().eq_ignore_ascii_case("WARC-Payload-Digest");
        is_it.then(|| value.trim().to_owned())
    });
    stated.next().unwrap_or_else(|| {
        let payload = &record.block[http_head_bytes(record)..];
        format!("sha1:{}", BASE32.encode(&Sha1::digest(payload)))
    })
}

/// Number of bytes of the block that are an HTTP header.
fn http_head_bytes(record: &Record) -> usize {
    let content_type = record.head.content_type.as_deref().unwrap_or_default();
    if !content_type.trim_start().starts_with("application/http") {
        return 0;
    }
    let end = memmem::find(&record.block, b"\r\n\r\n");
    end.map_or(record.block.len(), |end| end + 4)
}
