//! Second stage: finds exact duplicates by sorting digests.

use std::path::Path;

use arose::rule::{Criterion, Rule};
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::column::{Scan, Writer};
use crate::config::Config;
use crate::record::{ALONE, Copied, DocRecord, EMPTY, Ordinal};
use crate::sorter::Sorter;
use crate::stage::columns::DOCS;
use crate::{Error, Progress};

/// Exact duplicates with the first document of their content, by ordinal.
pub(crate) const COPIES: &str = "copies";

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ExactResults {
    /// Number of documents whose content occurred before.
    pub(crate) n_copies: u64,
    /// Number of contents with more than one document.
    pub(crate) n_classes: u64,
    pub(crate) largest_class: u64,
}

/// A digest and its document, sorted by both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Content {
    digest: [u64; 2],
    doc: u64,
}

/// Returns the flag of documents that are never exact duplicates: empty ones, or those without a
/// URL if URLs are compared.
pub(crate) fn alone(config: &Config) -> u16 {
    match config.policy.criterion {
        Criterion::Url => ALONE,
        _ => EMPTY,
    }
}

/// Returns the rule by which documents of one digest are duplicates.
pub(crate) fn copy_rule(config: &Config) -> Rule {
    match config.policy.criterion {
        Criterion::Url => Rule::Url,
        _ => Rule::Exact,
    }
}

/// Finds the exact duplicates among the documents in `read` and writes them to `folder`.
pub(crate) fn run(
    read: &Path,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<ExactResults, Error> {
    let mut docs = Scan::<DocRecord>::open(&read.join(DOCS))?;
    progress.expect(docs.left());
    let mut contents = Sorter::new(&folder.join("digests"), config.part(4));
    let alone = alone(config);
    let mut ordinal = 0;
    while let Some(doc) = docs.next()? {
        if doc.flags & alone == 0 {
            contents.push(Content {
                digest: doc.digest,
                doc: ordinal,
            })?;
        }
        ordinal += 1;
        progress.advance(1)?;
    }
    let mut contents = contents.finish()?;
    let mut copies = Sorter::new(&folder.join("copies"), config.part(4));
    let mut found = ExactResults::default();
    let mut first: Option<Content> = None;
    let mut class_size = 0;
    while let Some(content) = contents.next()? {
        match first {
            Some(first) if first.digest == content.digest => {
                class_size += 1;
                found.n_copies += 1;
                found.n_classes += u64::from(class_size == 2);
                copies.push(Copied {
                    doc: content.doc as Ordinal,
                    first: first.doc as Ordinal,
                })?;
            }
            _ => {
                first = Some(content);
                class_size = 1;
            }
        }
        found.largest_class = found.largest_class.max(class_size);
    }
    let mut copies = copies.finish()?;
    let mut out = Writer::create(&folder.join(COPIES))?;
    while let Some(copy) = copies.next()? {
        out.push(&copy)?;
    }
    out.finish()?;
    Ok(found)
}
