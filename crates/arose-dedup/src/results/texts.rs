//! The texts of documents to show, read from their sources.
//!
//! The run's own files hold no texts. The sources may have changed or gone since; that is a note in
//! what is shown, not an error.

use std::collections::BTreeMap;
use std::path::Path;

use arose_corpus::{Config, Document, Limits, Position, fetch};

use super::documents::Detail;
use crate::source::path_in;

/// A record beyond this size is not shown.
const MAX_BYTES: usize = 8 << 20;

/// A text, or why there is none.
pub type Text = Result<String, &'static str>;

const GONE: &str = "Its source is no longer there.";
const CHANGED: &str = "Its source has changed since, or its record is too large to be shown.";
const OTHER: &str = "Its source holds another text by now.";

/// Reads the texts of `documents` again, from inputs that were read as `config` says; relative
/// sources start at `directory` (see [`Summary::directory`](super::Summary::directory)).
pub fn texts(
    documents: &BTreeMap<u64, Detail>,
    directory: &Path,
    config: &Config,
) -> BTreeMap<u64, Text> {
    let limits = Limits {
        record_bytes: config.limits.record_bytes.min(MAX_BYTES),
        line_bytes: config.limits.line_bytes.min(MAX_BYTES),
        body_bytes: config.limits.body_bytes.min(MAX_BYTES),
        ..config.limits.clone()
    };
    let config = Config {
        limits,
        ..config.clone()
    };
    let mut texts = BTreeMap::new();
    for (source, places) in by_source(documents) {
        let positions: Vec<Position> = places.keys().copied().collect();
        let found = fetch(&path_in(directory, source), &positions, &config);
        let mut found = found.map(Vec::into_iter);
        for docs in places.values() {
            let text = match &mut found {
                Err(_) => Err(GONE),
                Ok(found) => checked(found.next().flatten(), documents.get(&docs[0])),
            };
            texts.extend(docs.iter().map(|&doc| (doc, text.clone())));
        }
    }
    texts
}

/// The documents at each position of a file: more than one if the file was an input more than once.
type Places = BTreeMap<Position, Vec<u64>>;

/// Documents by file and position; those without a position are omitted.
fn by_source(documents: &BTreeMap<u64, Detail>) -> BTreeMap<&str, Places> {
    let mut sources: BTreeMap<&str, Places> = BTreeMap::new();
    for (&doc, detail) in documents {
        if let Some(position) = detail.position {
            let places = sources.entry(&detail.source).or_default();
            places.entry(position).or_default().push(doc);
        }
    }
    sources
}

/// The text of a document if it is the one the run has seen, by whichever digest the run has used.
fn checked(found: Option<Document>, detail: Option<&Detail>) -> Text {
    let document = found.ok_or(CHANGED)?;
    let digests = [document.content_digest(), document.digest].map(|digest| digest.to_string());
    match detail.is_some_and(|detail| digests.contains(&detail.digest)) {
        true => Ok(document.text),
        false => Err(OTHER),
    }
}
