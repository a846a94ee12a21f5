//! Makes a document from the fields of a record (a JSON object, a CSV row, a Parquet row).

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use arose::digest::Digest;

use crate::body::payload;
use crate::config::{Config, Fields, N_SLOTS, Slot};
use crate::document::{Document, Item, Position, Reason, Warning};
use crate::losses::Loss;
use crate::source::stream::Break;
use crate::time;

/// The position of a record.
#[derive(Debug, Clone)]
pub(crate) struct RecordPlace {
    pub(crate) source: Arc<Path>,
    pub(crate) position: Position,
}

impl RecordPlace {
    pub(crate) fn new(source: &Arc<Path>, position: Position) -> Self {
        Self {
            source: Arc::clone(source),
            position,
        }
    }

    pub(crate) fn warning(&self, reason: Reason, detail: impl Into<String>) -> Warning {
        Warning {
            source: Arc::clone(&self.source),
            position: self.position,
            reason,
            detail: detail.into(),
            loss: reason.loss(),
        }
    }

    pub(crate) fn skipped(&self, reason: Reason, detail: impl Into<String>) -> Item {
        Item::Skipped(self.warning(reason, detail))
    }

    /// A warning that the file, or an unknown part of it, is missing.
    pub(crate) fn lost_file(&self, reason: Reason, detail: impl Into<String>) -> Item {
        let loss = Loss::File;
        Item::Skipped(Warning {
            loss,
            ..self.warning(reason, detail)
        })
    }

    /// The warning about a break in the stream at this position.
    pub(crate) fn broken(&self, at_break: Break) -> Item {
        match at_break.is_last {
            true => self.lost_file(at_break.reason, at_break.detail),
            false => self.skipped(at_break.reason, at_break.detail),
        }
    }

    /// A document at this position with only a text.
    pub(crate) fn document(self, text: String, digest: Digest) -> Document {
        Document {
            id: None,
            url: None,
            title: None,
            language: None,
            text,
            images: Vec::new(),
            page: None,
            source: self.source,
            position: self.position,
            digest,
            fetched: None,
            priority: None,
            status: None,
            duplicate_of: None,
            warnings: Vec::new(),
        }
    }
}

/// The warning that no column contains text.
pub(crate) fn no_text(place: &RecordPlace, fields: &Fields, columns: &[String]) -> Item {
    let (names, columns) = (fields.text_names(), columns.join(", "));
    place.lost_file(
        Reason::NoText,
        format!("none of {names}; columns found: {columns}"),
    )
}

/// The wanted fields of one record, by [`Slot`].
#[derive(Debug, Default)]
pub(crate) struct Row<'a> {
    pub(crate) values: [Option<Cow<'a, str>>; N_SLOTS],
    /// Whether malformed bytes were replaced.
    pub(crate) is_malformed: bool,
    /// Whether the record has a field for the text, but without a value.
    pub(crate) is_null: bool,
}

impl Row<'_> {
    /// The document made of these fields, or the reason why there is none.
    pub(crate) fn into_item(mut self, place: RecordPlace, config: &Config) -> Item {
        let text = self.take(Slot::Text);
        let html = self.values[Slot::Html as usize].take();
        let (page, digest) = match (text, html) {
            (Some(text), _) => {
                let digest = Digest::of_bytes(text.as_bytes());
                let page = payload::Page {
                    text,
                    ..payload::Page::default()
                };
                (page, digest)
            }
            (None, Some(html)) => {
                let url = self.values[Slot::Url as usize].as_deref();
                let page = payload::html(&html, url, &config.html);
                (page, Digest::of_bytes(html.as_bytes()))
            }
            (None, None) if self.is_null => return place.skipped(Reason::NullText, ""),
            (None, None) => {
                let names = config.fields.text_names();
                return place.skipped(Reason::NoText, format!("none of {names}"));
            }
        };
        let mut page = page;
        page.is_malformed = self.is_malformed;
        let notes = page.notes().into_iter();
        let warnings = notes.map(|(reason, detail)| place.warning(reason, detail));
        let warnings = warnings.collect();
        let fetched = self.take(Slot::Fetched).and_then(|date| time::parse(&date));
        let priority = self.take(Slot::Priority);
        let priority = priority.and_then(|value| number(value.trim()));
        Item::Document(Box::new(Document {
            id: self.take(Slot::Id),
            url: self.take(Slot::Url),
            title: self.take(Slot::Title).or(page.title),
            language: self.take(Slot::Language).or(page.language),
            fetched,
            priority,
            images: page.images,
            page: page.metadata,
            warnings,
            ..place.document(page.text, digest)
        }))
    }

    fn take(&mut self, slot: Slot) -> Option<String> {
        self.values[slot as usize].take().map(Cow::into_owned)
    }
}

/// The number for a value: the number itself, 0 and 1 for `false` and `true`, or seconds since 1970
/// for a time.
fn number(value: &str) -> Option<f64> {
    if let Ok(number) = value.parse::<f64>() {
        return (!number.is_nan()).then_some(number);
    }
    match value {
        "false" => Some(0.0),
        "true" => Some(1.0),
        _ => {
            let seconds = time::parse(value)? as f64;
            let (_, fraction) = value.split_once('.').unwrap_or_default();
            let digits = fraction.find(|c: char| !c.is_ascii_digit());
            let fraction = &fraction[..digits.unwrap_or(fraction.len())];
            let fraction: f64 = format!("0.{fraction}").parse().unwrap_or(0.0);
            Some(seconds + fraction)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number("0.25"), Some(0.25));
        assert_eq!(number("-3"), Some(-3.0));
        assert_eq!(number("true"), Some(1.0));
        assert_eq!(number("1970-01-02"), Some(86_400.0));
        assert_eq!(number("1970-01-01T00:00:01.5Z"), Some(1.5));
        assert_eq!(number("1970-01-01T01:00:01.25+01:00"), Some(1.25));
        assert_eq!(number("NaN"), None);
        assert_eq!(number("rose"), None);
        assert_eq!(number(""), None);
    }
}
