//! The texts of documents to show, read from their sources.
//!
//! The files of the run contain no texts. The sources may have changed or been removed since. This
//! is not an error but a note in the output.

use std::collections::BTreeMap;
use std::path::Path;

use arose_corpus::{Config, Document, Limits, Position, fetch};

use super::documents::Detail;
use crate::source::path_in;

/// Maximum size in bytes of a record that is shown.
const MAX_BYTES: usize = 8 << 20;

/// A text, or the reason why it is missing.
pub type ReadText = Result<String, &'static str>;

const GONE: &str = "Its source no longer exists.";
const CHANGED: &str = "Its source has changed since, or its record is too large to be shown.";
const OTHER: &str = "Its source now contains another text.";

/// Reads the texts of `documents` again, from inputs that were read with `config`. Relative sources
/// start at `directory` (see [`Summary::directory`](super::Summary::directory)).
pub fn texts(
    documents: &BTreeMap<u64, Detail>,
    directory: &Path,
    config: &Config,
) -> BTreeMap<u64, ReadText> {
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

/// The documents at each position of a file: several if the file was passed as an input several
/// times.
type Places = BTreeMap<Position, Vec<u64>>;

/// Returns documents by file and position. Documents without a position are omitted.
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

/// Returns the text of a document if it is still that of the run, by the digest that the run used.
fn checked(found: Option<Document>, detail: Option<&Detail>) -> ReadText {
    let document = found.ok_or(CHANGED)?;
    let digests = [document.content_digest(), document.digest].map(|digest| digest.to_string());
    match detail.is_some_and(|detail| digests.contains(&detail.digest)) {
        true => Ok(document.text),
        false => Err(OTHER),
    }
}
