//! Before the first stage: finds the versions of pages that were fetched again later.
//!
//! *Question.* An archive has several captures of a URL, and only the current content is wanted.
//! *Idea.* First read only the URLs and times of the input, sort them, and take the last capture of
//! each URL. A revisit record says that a page was the same as in an earlier capture, so that
//! capture counts as fetched at the time of the revisit. If a page returned to its first version,
//! that version is therefore the last one. If the record names a page of another URL, no capture of
//! this URL is current.
//!
//! Documents without a URL or a time are always current. *Cost.* The input is read twice; 48 bytes
//! per document, sorted on disk if they do not fit into memory.

use std::path::{Path, PathBuf};

use arose::digest::Digest;
use arose_corpus::{Document, DuplicateBody, Item, Revisits};
use bytemuck::{Pod, Zeroable};

use crate::column::Scan;
use crate::config::{Config, Versions};
use crate::sorter::Sorter;
use crate::stage::urls::normal_url;
use crate::{Error, Progress};

/// File with the ordinals of documents that are not current, in order.
const SUPERSEDED_DOCS: &str = "superseded";

/// A capture of a URL. The first one in this order was made last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Capture {
    url: [u64; 2],
    /// The time, inverted so that later ones are smaller.
    time: u64,
    doc: u64,
    kind: u64,
    /// The time of the capture that a revisit record names.
    named: u64,
}

/// Kinds: a document with its text; a revisit record that names a capture of its own URL; one that
/// names another URL.
const DOCUMENT: u64 = 0;
const AS_BEFORE: u64 = 1;
const AS_ANOTHER: u64 = 2;

/// Returns a number that is smaller for later times.
fn later_first(time: i64) -> u64 {
    !(time as u64 ^ 1 << 63)
}

/// The documents of a run that are not current, to be looked up in input order.
pub(crate) struct Superseded {
    docs: Option<Scan<u64>>,
    next: Option<u64>,
}

impl Superseded {
    /// Finds these documents, unless all versions are wanted or the file already exists.
    pub(crate) fn find(
        inputs: &[PathBuf],
        config: &Config,
        corpus: &arose_corpus::Config,
        folder: &Path,
        progress: &Progress,
    ) -> Result<Self, Error> {
        if config.versions == Versions::All {
            return Ok(Self {
                docs: None,
                next: None,
            });
        }
        let path = folder.join(SUPERSEDED_DOCS);
        if !path.exists() {
            let found = superseded(inputs, config, corpus, folder, progress)?;
            // An existing file is complete.
            let part = folder.join("superseded.part");
            found.write(&part)?;
            std::fs::rename(&part, &path).map_err(Error::io("rename", &part))?;
        }
        let mut docs = Scan::open(&path)?;
        let next = docs.next()?;
        Ok(Self {
            docs: Some(docs),
            next,
        })
    }

    /// Returns whether a document is not current. Documents must be requested in ascending order.
    pub(crate) fn has(&mut self, doc: u64) -> Result<bool, Error> {
        let Some(docs) = &mut self.docs else {
            return Ok(false);
        };
        while self.next.is_some_and(|next| next < doc) {
            self.next = docs.next()?;
        }
        Ok(self.next == Some(doc))
    }
}

/// Returns the ordinals of superseded documents, to be sorted.
fn superseded(
    inputs: &[PathBuf],
    config: &Config,
    corpus: &arose_corpus::Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Sorter<u64>, Error> {
    let corpus = arose_corpus::Config {
        revisits: Revisits::Read,
        ..corpus.clone()
    };
    let mut captures = Sorter::new(&folder.join("captures"), config.part(4));
    let mut n_docs = 0;
    for capture in arose_corpus::read_map(inputs, corpus, |item| capture(&item))? {
        let (is_document, capture) = capture;
        if let Some(capture) = capture {
            captures.push(Capture {
                doc: !n_docs,
                ..capture
            })?;
        }
        n_docs += u64::from(is_document);
        progress.advance(0)?;
    }
    let mut captures = captures.finish()?;
    let mut found = Sorter::new(&folder.join("superseded-docs"), config.part(4));
    let mut last: Option<Capture> = None;
    while let Some(capture) = captures.next()? {
        let is_new = last.is_none_or(|last| last.url != capture.url);
        let last = last.insert(match is_new {
            true => capture,
            false => last.unwrap_or(capture),
        });
        if capture.kind != DOCUMENT {
            continue;
        }
        let is_current = is_new || (last.kind == AS_BEFORE && last.named == capture.time);
        if is_current {
            // If several captures have the named time, the first one counts.
            last.kind = DOCUMENT;
        } else {
            found.push(!capture.doc)?;
        }
    }
    Ok(found)
}

/// Returns whether an item of the input is a document of the run, and its capture if URL and time
/// are known.
fn capture(item: &Item) -> (bool, Option<Capture>) {
    let Item::Document(document) = item else {
        return (false, None);
    };
    let named = document.duplicate_of.as_deref();
    let revisit = named.filter(|named| named.body != DuplicateBody::Stored);
    let (kind, named) = match revisit {
        None => (DOCUMENT, Some(0)),
        Some(named) if Some(&named.url) == document.url.as_ref() => (AS_BEFORE, named.fetched),
        Some(_) => (AS_ANOTHER, Some(0)),
    };
    let capture = |time, named| Capture {
        url: url_digest(document),
        time: later_first(time),
        doc: 0,
        kind,
        named: later_first(named),
    };
    let has_url = document.url.is_some();
    let times = document.fetched.zip(named).filter(|_| has_url);
    (
        revisit.is_none(),
        times.map(|(time, named)| capture(time, named)),
    )
}

fn url_digest(document: &Document) -> [u64; 2] {
    let Digest(digest) = Digest::of_bytes(normal_url(document).as_bytes());
    [digest as u64, (digest >> 64) as u64]
}
