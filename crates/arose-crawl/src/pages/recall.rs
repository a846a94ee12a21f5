//! Reads the last version of a page back from the archive, for the next visit.

use arose_corpus::time;

use super::{PageId, Record, Sketch};
use crate::archive::{Heads, SKETCH};
use crate::content::Original;
use crate::error::Error;
use crate::fetch::Head;
use crate::order::{Level, Weight};

/// The validators that a server sent with a version of a page, unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Validators {
    pub(crate) etag: Option<Box<str>>,
    pub(crate) last_modified: Option<Box<str>>,
}

/// Longer validators are not sent back, because no honest server sends them.
const MAX_VALIDATOR: usize = 1024;

impl Validators {
    /// Returns those of a response.
    pub(crate) fn of(head: Option<Head<'_>>) -> Self {
        let get = |name: &str| {
            let value = head.and_then(|head| head.get(name))?.trim();
            let is_plain = |byte: u8| (0x20..0x7f).contains(&byte);
            let is_usable =
                !value.is_empty() && value.len() <= MAX_VALIDATOR && value.bytes().all(is_plain);
            is_usable.then(|| value.into())
        };
        Self {
            etag: get("etag"),
            last_modified: get("last-modified"),
        }
    }

    /// Drops an impossible date: from the first days of 1970, or after the response.
    fn believed_at(mut self, date: i64) -> Self {
        const YEAR: u64 = 365 * 86_400;
        let latest = u64::try_from(date).unwrap_or(0);
        self.last_modified = self.last_modified.filter(|text| {
            let time = crate::date::parse(text);
            time.is_some_and(|time| (YEAR..=latest).contains(&time))
        });
        self
    }

    /// Returns the header of a conditional request; the entity tag takes precedence over the date,
    /// which only has seconds.
    pub(crate) fn header(&self) -> Option<(&'static str, &str)> {
        let etag = self.etag.as_deref().map(|etag| ("If-None-Match", etag));
        let date = self.last_modified.as_deref();
        etag.or_else(|| date.map(|date| ("If-Modified-Since", date)))
    }
}

/// The version of a page that a visit is compared with.
#[derive(Debug, Clone)]
pub(crate) struct Revisit {
    pub(crate) page: PageId,
    pub(crate) record: Record,
    pub(crate) sketch: Sketch,
    /// The archive record with the content of the last version; `None` if it had no content.
    pub(crate) original: Option<Original>,
}

impl Revisit {
    /// Returns the weight that new links pass on. The trust of a page is spent at its first fetch.
    pub(crate) fn weight(&self) -> Weight {
        let importance = self.record.statistics.importance() as f32;
        Weight {
            mass: Level::of(importance),
            trust: Level::NONE,
        }
    }

    /// Whether the content is that of the last version: the same text, or one that differs only in
    /// noise. Bytes alone never count.
    pub(crate) fn is_same(&self, digest: u64, sketch: &Sketch) -> bool {
        self.record.digest == digest || self.sketch.is_alike(sketch)
    }
}

/// A version of a page as read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Version {
    /// The digest of its content; 0 if it has none.
    pub(crate) digest: u64,
    pub(crate) sketch: Sketch,
    /// Whether it is unchanged since the last visit.
    pub(crate) is_same: bool,
}

/// A page to be visited again.
#[derive(Debug)]
pub(crate) struct Recalled {
    pub(crate) page: PageId,
    pub(crate) url: String,
    pub(crate) validators: Validators,
    pub(crate) revisit: Box<Revisit>,
}

/// Reads the data for a visit; `None` if it is no longer in the archive.
pub(crate) fn recall(
    archive: &mut Heads,
    page: PageId,
    record: Record,
) -> Result<Option<Recalled>, Error> {
    let Some(stored) = archive.read(record.position)? else {
        return Ok(None);
    };
    let field = |name: &str| stored.field(name);
    let Some(url) = field("WARC-Target-URI") else {
        return Ok(None);
    };
    let is_revisit = field("WARC-Type") == Some("revisit");
    let (url_of, date_of) = match is_revisit {
        true => ("WARC-Refers-To-Target-URI", "WARC-Refers-To-Date"),
        false => ("WARC-Target-URI", "WARC-Date"),
    };
    let payload = field("Arose-Duplicate-Payload").or_else(|| field("WARC-Payload-Digest"));
    let payload = payload.unwrap_or_default();
    let original = || {
        Some(Original {
            url: field(url_of)?.to_owned(),
            payload: payload.to_owned(),
            date: time::parse(field(date_of)?)?,
            rule: "exact",
            similarity: 1.0,
            site_pages: None,
        })
    };
    let head = Head::parse(&stored.block);
    let has_content = head.is_some_and(|head| (200..300).contains(&head.status));
    Ok(Some(Recalled {
        page,
        url: url.to_owned(),
        validators: match has_content {
            true => {
                let date = field("WARC-Date").and_then(time::parse);
                Validators::of(head).believed_at(date.unwrap_or(0))
            }
            false => Validators::default(),
        },
        revisit: Box::new(Revisit {
            page,
            record,
            sketch: field(SKETCH).map_or_else(Sketch::default, Sketch::from_text),
            original: original().filter(|_| has_content),
        }),
    }))
}
