//! Archive records: a response in WARC format, and the line of the index with its position.

use std::net::IpAddr;

use arose::digest::digest64;
use arose::mix::mix;
use arose_corpus::{IDENTICAL, NEAR_DUPLICATE, time};
use data_encoding::BASE32;
use sha1::{Digest as _, Sha1};

use super::pack::{Member, Packer};
use super::surt;
use crate::cluster::twins::Page;
use crate::content::Original;
use crate::fetch::Cut;
use crate::pages::Sketch;
use crate::settings::DuplicateBody;

/// The field with the sketch of a page.
pub(crate) const SKETCH: &str = "Arose-Sketch";

/// The profile of a response without a body because the page has not changed.
const UNMODIFIED: &str = "http://netpreserve.org/warc/1.1/revisit/server-not-modified";

/// A response to be archived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) url: &'a str,
    /// Seconds since 1970.
    pub(crate) date: i64,
    pub(crate) address: IpAddr,
    pub(crate) status: u16,
    pub(crate) media_type: &'a str,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
    /// The digest of the body.
    pub(crate) payload: &'a str,
    pub(crate) cut: Option<Cut>,
    pub(crate) original: Option<&'a Original>,
    /// What to do with the body if the original has another payload.
    pub(crate) near_duplicates: DuplicateBody,
    /// The request, if it is to be archived too.
    pub(crate) request: Option<&'a [u8]>,
    /// The sketch that the next visit is compared with.
    pub(crate) sketch: Sketch,
}

/// A record ready to be appended.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// The response, which is in the index, and the request for it if that is archived.
    pub(super) members: Vec<Member>,
    /// The line of the index up to the position of the record.
    pub(super) line: Option<String>,
}

impl Packed {
    /// Returns its size in bytes.
    pub(crate) fn n_bytes(&self) -> usize {
        let line = self.line.as_ref().map_or(0, String::len);
        line + self
            .members
            .iter()
            .map(|member| member.len(&[]))
            .sum::<usize>()
    }
}

#[cfg(test)]
impl Packed {
    /// Returns all members as they appear in a file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for member in &self.members {
            member.seal(b"WARC/1.1\r\n", &mut bytes);
        }
        bytes
    }
}

impl Record<'_> {
    pub(crate) fn pack(&self, packer: &mut Packer) -> Packed {
        let is_same = |original: &Original| original.payload == self.payload;
        let drops = self.near_duplicates == DuplicateBody::Drop;
        // The server reported no change and sent no body.
        let is_unmodified = self.status == 304;
        let drops = drops || is_unmodified;
        let revisited = self.original.filter(|original| drops || is_same(original));
        let is_revisit = revisited.is_some();
        let body = if is_revisit { &[] } else { self.body };
        let head = head_as_stored(self.head);
        let date = time::format(self.date);
        let mut fields = String::with_capacity(512);
        let mut field = |name: &str, value: &str| {
            fields.push_str(name);
            fields.push_str(": ");
            fields.push_str(value);
            fields.push_str("\r\n");
        };
        field("WARC-Type", if is_revisit { "revisit" } else { "response" });
        let id = response_id(self.url, self.date, self.payload);
        field("WARC-Record-ID", &format!("<{id}>"));
        field("WARC-Date", &date);
        field("WARC-Target-URI", self.url);
        field("WARC-IP-Address", &self.address.to_string());
        let of_original = revisited.filter(|_| is_unmodified);
        let payload = of_original.map_or(self.payload, |original| &original.payload);
        field("WARC-Payload-Digest", payload);
        field("WARC-Block-Digest", &digest(&[&head, body]));
        if let Some(cut) = self.cut {
            field("WARC-Truncated", cut.as_str());
        }
        if let Some(original) = revisited {
            let profile = match (is_unmodified, is_same(original)) {
                (true, _) => UNMODIFIED,
                (false, true) => IDENTICAL,
                (false, false) => NEAR_DUPLICATE,
            };
            let id = response_id(&original.url, original.date, &original.payload);
            field("WARC-Profile", profile);
            field("WARC-Refers-To", &format!("<{id}>"));
            field("WARC-Refers-To-Target-URI", &original.url);
            field("WARC-Refers-To-Date", &time::format(original.date));
            if !is_same(original) && !is_unmodified {
                field("Arose-Duplicate-Payload", &original.payload);
            }
        } else if let Some(original) = self.original {
            // The standard defines its own fields for revisit records.
            field("Arose-Duplicate-Of", &original.url);
            field("Arose-Duplicate-Of-Date", &time::format(original.date));
        }
        if let Some(original) = self.original.filter(|_| !is_unmodified) {
            let rule = if is_same(original) {
                "same-payload"
            } else {
                original.rule
            };
            field("Arose-Duplicate-Rule", rule);
            let similarity = format!("{:.4}", original.similarity);
            field("Arose-Duplicate-Similarity", &similarity);
            if let Some(n) = original.site_pages {
                field("Arose-Duplicate-Site-Pages", &n.to_string());
            }
        }
        // A visit refers to the last response with content, which this is not.
        if let Some(sketch) = self.sketch.to_text().filter(|_| !is_unmodified) {
            field(SKETCH, &sketch);
        }
        field("Content-Type", "application/http; msgtype=response");
        field("Content-Length", &(head.len() + body.len()).to_string());
        let parts = [fields.as_bytes(), b"\r\n", &head, body, b"\r\n\r\n"];
        let mut members = vec![packer.pack(&parts)];
        if let Some(request) = self.request {
            members.push(self.pack_request(request, &id, &date, packer));
        }
        Packed {
            members,
            line: Some(self.line(&date, is_revisit)),
        }
    }

    /// Builds a record of the request for the record `answer`.
    fn pack_request(&self, bytes: &[u8], answer: &str, date: &str, packer: &mut Packer) -> Member {
        let id = record_id(answer.as_bytes(), bytes.len() as u64);
        let head = format!(
            "WARC-Type: request\r\nWARC-Record-ID: <{id}>\r\nWARC-Date: {date}\r\n\
             WARC-Target-URI: {}\r\nWARC-IP-Address: {}\r\nWARC-Concurrent-To: <{answer}>\r\n\
             WARC-Block-Digest: {}\r\n\
             Content-Type: application/http; msgtype=request\r\nContent-Length: {}\r\n\r\n",
            self.url,
            self.address,
            digest(&[bytes]),
            bytes.len()
        );
        packer.pack(&[head.as_bytes(), bytes, b"\r\n\r\n"])
    }

    /// Builds `org,example)/path 20240518015810 {"url": …, ` and so on, without the position.
    pub(super) fn line(&self, date: &str, is_revisit: bool) -> String {
        let digits: String = date.chars().filter(char::is_ascii_digit).collect();
        let media_type = if is_revisit {
            "warc/revisit"
        } else {
            self.media_type
        };
        let mut line = format!("{} {digits} {{", surt::key(self.url));
        let mut field = |name: &str, value: &str| {
            let value = serde_json::Value::from(value);
            line.push_str(&format!("\"{name}\": {value}, "));
        };
        field("url", self.url);
        if !media_type.is_empty() {
            let media_type: String = media_type.chars().take(MAX_MEDIA_TYPE).collect();
            field("mime", &media_type);
        }
        field("status", &self.status.to_string());
        field("digest", self.payload);
        line
    }
}

/// Maximum number of characters of a media type in the index.
const MAX_MEDIA_TYPE: usize = 100;

/// Returns a media type without its parameters.
pub(crate) fn bare_media_type(value: &str) -> &str {
    let end = value.trim().find([';', ' ', '\t']);
    &value.trim()[..end.unwrap_or(value.trim().len())]
}

/// Chunks have been joined, so the header that announces them is renamed, as is customary.
fn head_as_stored(head: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    const NAME: &[u8] = b"\ntransfer-encoding";
    let found = memchr::memchr_iter(b'\n', head).find(|&at| {
        let line = head.get(at..at + NAME.len());
        line.is_some_and(|line| line.eq_ignore_ascii_case(NAME))
    });
    match found {
        None => head.into(),
        Some(at) => [&head[..=at], b"X-Crawl-", &head[at + 1..]].concat().into(),
    }
}

/// Returns the ID of the record of a response.
pub(super) fn response_id(url: &str, date: i64, payload: &str) -> String {
    record_id(url.as_bytes(), date as u64 ^ digest64(payload.as_bytes()))
}

/// Returns a UUID of version 8 (custom format), always the same for the same record.
pub(super) fn record_id(name: &[u8], salt: u64) -> String {
    let first = mix(digest64(name) ^ mix(salt));
    let second = mix(first ^ mix(name.len() as u64));
    format!(
        "urn:uuid:{:08x}-{:04x}-8{:03x}-8{:03x}-{:012x}",
        first >> 32,
        first >> 16 & 0xffff,
        first & 0xfff,
        second >> 52,
        second & 0xffff_ffff_ffff
    )
}

/// Returns the digest of a payload in the notation of archives.
pub(crate) fn payload_digest(body: &[u8]) -> String {
    digest(&[body])
}

/// Returns the digest of parts that follow each other.
pub(super) fn digest(parts: &[&[u8]]) -> String {
    let mut sha1 = Sha1::new();
    parts.iter().for_each(|part| sha1.update(part));
    let mut text = String::with_capacity(37);
    text.push_str("sha1:");
    BASE32.encode_append(&sha1.finalize(), &mut text);
    text
}

/// The response that a record of scores belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    url: Box<str>,
    date: i64,
    id: String,
}

impl Note {
    /// Identifies the response with this body.
    pub(crate) fn new(url: &str, date: i64, payload: &str) -> Self {
        Self {
            url: url.into(),
            date,
            id: response_id(url, date, payload),
        }
    }

    /// Returns the URL of the response.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Builds a `metadata` record with the score of a page and its predicted score.
    pub(crate) fn pack(&self, score: f32, predicted: Option<f32>, packer: &mut Packer) -> Packed {
        let mut body = format!("focus-score: {score:.4}\r\n");
        if let Some(predicted) = predicted {
            body.push_str(&format!("focus-predicted: {predicted:.4}\r\n"));
        }
        self.pack_fields("focus", &body, packer)
    }

    /// Builds a `metadata` record that says that a page duplicates one of another agent.
    pub(crate) fn pack_duplicate(
        &self,
        original: &Page,
        similarity: f32,
        packer: &mut Packer,
    ) -> Packed {
        let id = response_id(&original.url, original.date, &original.payload);
        let body = format!(
            "Arose-Duplicate-Of: {}\r\nArose-Duplicate-Of-Date: {}\r\n\
             Arose-Duplicate-Of-Record: <{id}>\r\nArose-Duplicate-Rule: late\r\n\
             Arose-Duplicate-Similarity: {similarity:.4}\r\n",
            original.url,
            time::format(original.date),
        );
        self.pack_fields("duplicate", &body, packer)
    }

    /// Builds a `metadata` record with these fields.
    fn pack_fields(&self, kind: &str, body: &str, packer: &mut Packer) -> Packed {
        let id = record_id(self.id.as_bytes(), digest64(kind.as_bytes()));
        let head = format!(
            "WARC-Type: metadata\r\nWARC-Record-ID: <{id}>\r\nWARC-Date: {}\r\n\
             WARC-Target-URI: {}\r\nWARC-Concurrent-To: <{}>\r\nWARC-Block-Digest: {}\r\n\
             Content-Type: application/warc-fields\r\nContent-Length: {}\r\n\r\n",
            time::format(self.date),
            self.url,
            self.id,
            digest(&[body.as_bytes()]),
            body.len()
        );
        Packed {
            members: vec![packer.pack(&[head.as_bytes(), body.as_bytes(), b"\r\n\r\n"])],
            line: None,
        }
    }
}

impl Packed {
    /// Appends the members of another one.
    pub(crate) fn append(&mut self, other: Self) {
        self.members.extend(other.members);
    }
}
