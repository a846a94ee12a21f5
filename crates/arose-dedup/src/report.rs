//! The report of a run: one HTML file that a person likes to read.
//!
//! *Question.* A run drops documents. Should one believe it?
//!
//! *Idea.* Say in plain words what was found, and show the evidence: how many documents went where
//! and why, how large clusters are, how similar the pairs, which sites lost most, and, for each
//! level of similarity, a few pairs chosen by lot with every difference marked.
//!
//! [`write()`] reads what the run has written (`documents.parquet`, `pairs.parquet` and
//! `summary.json`) and, for the pairs it shows, the sources themselves, at the positions the tables
//! give. A source that has gone or changed is noted in the report.
//!
//! The file needs nothing else: style and plots (SVG) are inside it, there are no scripts, and its
//! content security policy forbids the browser to load or run anything. Foreign text is escaped
//! without exception. It follows the reader's colour scheme, fits a telephone, prints, and can be
//! listened to.
//!
//! *Cost.* Two passes over some columns of the documents and one over the pairs; four bytes of
//! memory per document; up to 8 MiB for each of at most 42 texts, and usually far less. The same
//! files give the same bytes, but for the times that the summary holds.
//!
//! *Not for* machines: they read the tables.

mod course;
mod diff;
mod documents;
mod html;
mod lot;
mod page;
mod pairs;
mod plot;
mod samples;
mod sites;
mod summary;
mod table;
mod texts;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use arose::token::Case;
use arose_corpus::Config;
use serde_json::Value;

use documents::{Census, CloserLook};
use pairs::Pairs;
use samples::Evidence;
use summary::Summary;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing failed.
    #[error("{what} `{}`", path.display())]
    Io {
        /// What was being done.
        what: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A table could not be read.
    #[error("parquet file `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What the format's library says.
        source: parquet::errors::ParquetError,
    },
    /// The summary is not what a run writes.
    #[error("summary `{}`", path.display())]
    Summary {
        /// The file.
        path: PathBuf,
        /// What the format's library says.
        source: serde_json::Error,
    },
    /// A file holds what no run writes.
    #[error("damaged file `{}`: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
}

impl Error {
    fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Error::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}

/// Writes `report.html` into the folder `out` of a finished run whose input was read as `corpus`
/// says.
///
/// # Errors
///
/// If the run's files cannot be read or disagree, or the report cannot be written. A report that
/// was there before stays until the new one is complete.
pub fn write(out: &Path, corpus: &Config) -> Result<(), Error> {
    let summary = Summary::open(&out.join("summary.json"))?;
    let documents = out.join("documents.parquet");
    let census = Census::take(&documents, &summary.counts)?;
    let cluster_sizes = census.cluster_sizes();
    let CloserLook { clusters, sites } =
        documents::closer_look(&documents, census, summary.seed())?;
    let pairs = Pairs::open(&out.join("pairs.parquet"), summary.seed())?;
    let case = case(&summary);
    let evidence = Evidence::gather(&documents, &clusters, &pairs, case, corpus)?;
    let page = page::Page {
        summary: &summary,
        cluster_sizes: &cluster_sizes,
        clusters: &clusters,
        sites: &sites,
        pairs: &pairs,
        evidence: &evidence,
    };
    put(&out.join("report.html"), &page.to_string())
}

/// How the run compared letters.
fn case(summary: &Summary) -> Case {
    match summary.settings.get("case").and_then(Value::as_str) {
        Some("keep") => Case::Keep,
        _ => Case::Fold,
    }
}

/// Puts a file in its place at once: whole or not at all.
fn put(path: &Path, text: &str) -> Result<(), Error> {
    let unfinished = path.with_extension("html.part");
    let result = File::create(&unfinished).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)
    });
    result.map_err(|source| Error::Io {
        what: "cannot write",
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests;
