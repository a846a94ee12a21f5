//! Makes a document from a record.

use crate::config::{Config, Revisits, Statuses};
use arose::digest::Digest;

use crate::body::http::{Note, Response};
use crate::body::payload;
use crate::document::{Document, Item, Reason, Warning};
use crate::format::row::RecordPlace;
use crate::format::warc::cut::Record;
use crate::format::warc::dialect::{Dialect, Head};
use crate::losses::Loss;
use crate::pipeline::fetch::Stored;

impl Head {
    /// Whether records of this kind can contain a document.
    pub(crate) fn may_be_document(&self) -> bool {
        matches!(self.kind.as_str(), "response" | "resource" | "conversion")
    }

    /// Whether the block is an HTTP message.
    fn is_http(&self, dialect: Dialect, block: &[u8]) -> bool {
        let content_type = self.content_type.as_deref().unwrap_or_default();
        match dialect {
            Dialect::Warc if self.kind != "response" => false,
            Dialect::Warc => {
                content_type.starts_with("application/http") || block.starts_with(b"HTTP/")
            }
            Dialect::Arc => block.starts_with(b"HTTP/"),
        }
    }
}

/// A body with its metadata.
struct RecordBody<'a> {
    bytes: std::borrow::Cow<'a, [u8]>,
    content_type: Option<&'a str>,
    language: Option<&'a str>,
    status: Option<u16>,
    notes: Vec<Note>,
}

impl Record {
    /// The body of this record as a browser receives it; none if there is no body or its framing is
    /// broken.
    pub(crate) fn stored(&self, config: &Config) -> Option<Stored> {
        if !self.head.may_be_document() {
            return None;
        }
        if !self.head.is_http(self.dialect, &self.block) {
            return Some(Stored {
                body: self.block.clone(),
                content_type: self.head.content_type.clone(),
            });
        }
        let response = Response::parse(&self.block, &config.limits).ok()?;
        let (body, _) = response.decoded_body(&config.limits).ok()?;
        Some(Stored {
            body: body.into_owned(),
            content_type: response.headers.get("content-type").map(str::to_owned),
        })
    }

    /// The document of this record, or the reason why there is none.
    pub(crate) fn read(&self, config: &Config) -> Item {
        let is_revisit = self.head.kind == "revisit" && self.head.duplicate_of.is_some();
        if is_revisit && config.revisits == Revisits::Read {
            return self.read_revisit(config);
        }
        if !self.head.may_be_document() {
            return self
                .place
                .skipped(Reason::RecordKind, self.head.kind.clone());
        }
        if !self.head.is_http(self.dialect, &self.block) {
            let body = RecordBody {
                bytes: std::borrow::Cow::Borrowed(&self.block),
                content_type: self.head.content_type.as_deref(),
                language: None,
                status: None,
                notes: Vec::new(),
            };
            return self.item(body, config);
        }
        let response = match Response::parse(&self.block, &config.limits) {
            Ok(response) => response,
            Err((reason, detail)) => return self.place.skipped(reason, detail),
        };
        if let Some(skipped) = self.unwanted(&response, config) {
            return skipped;
        }
        match response.decoded_body(&config.limits) {
            Ok((bytes, notes)) => {
                let body = RecordBody {
                    bytes,
                    content_type: response.headers.get("content-type"),
                    language: response.headers.get("content-language"),
                    status: Some(response.status),
                    notes,
                };
                self.item(body, config)
            }
            Err((reason, detail)) => self.place.skipped(reason, detail),
        }
    }

    /// A skipped item for a response whose status is not wanted.
    fn unwanted(&self, response: &Response<'_>, config: &Config) -> Option<Item> {
        let is_success = (200..300).contains(&response.status);
        let is_unwanted = config.statuses == Statuses::Success && !is_success;
        is_unwanted.then(|| {
            self.place
                .skipped(Reason::Status, response.status.to_string())
        })
    }

    /// The document of a revisit record, whose text is that of its original or unknown. The HTTP
    /// header, if present, says whether the page has text at all.
    fn read_revisit(&self, config: &Config) -> Item {
        let response = Response::parse(&self.block, &config.limits).ok();
        if let Some(skipped) = response
            .as_ref()
            .and_then(|response| self.unwanted(response, config))
        {
            return skipped;
        }
        let headers = response.as_ref().map(|response| &response.headers);
        let field = |name| headers.and_then(|headers| headers.get(name));
        let body = RecordBody {
            bytes: std::borrow::Cow::Borrowed(b""),
            content_type: field("content-type"),
            language: field("content-language"),
            status: response.as_ref().map(|response| response.status),
            notes: Vec::new(),
        };
        self.item(body, config)
    }

    fn item(&self, body: RecordBody<'_>, config: &Config) -> Item {
        let url = self.head.url.as_deref();
        let page = payload::read(&body.bytes, body.content_type, url, &config.html);
        let mut page = match page {
            Ok(page) => page,
            Err((reason, detail)) => return self.place.skipped(reason, detail),
        };
        let mut notes = body.notes;
        notes.extend(page.notes());
        if let Some(why) = &self.head.truncated {
            notes.push((Reason::Truncated, format!("by the archiver: {why}")));
        }
        let language = self.head.language.clone().or(page.language);
        Item::Document(Box::new(Document {
            id: self.head.id.clone(),
            url: self.head.url.clone(),
            title: page.title,
            language: language.or_else(|| body.language.map(str::to_owned)),
            fetched: self.head.fetched,
            status: body.status,
            duplicate_of: self.head.duplicate_of.clone(),
            images: page.images,
            page: page.metadata,
            warnings: self.warnings(notes),
            ..RecordPlace::clone(&self.place).document(page.text, Digest::of_bytes(&body.bytes))
        }))
    }

    fn warnings(&self, notes: Vec<Note>) -> Vec<Warning> {
        let notes = notes
            .into_iter()
            .map(|(reason, detail)| self.place.warning(reason, detail));
        let warnings = self.warning.clone().into_iter().chain(notes);
        // The document was read despite the warning.
        let loss = Loss::Nothing;
        warnings
            .map(|warning| Warning { loss, ..warning })
            .collect()
    }
}
