//! The report of a run: one HTML file.
//!
//! *Question.* A run drops documents. Can you trust it?
//!
//! *Idea.* State in plain words what was found, and show the evidence. The report contains the
//! numbers of kept and dropped documents with the reasons, the sizes of clusters, the similarity of
//! pairs, and the sites with the most dropped documents. For each similarity range, it shows a
//! random sample of pairs with every difference marked.
//!
//! [`write()`] reads the files of the run (`documents.parquet`, `pairs.parquet` and `summary.json`)
//! and, for the pairs it shows, the sources themselves, at the positions in the tables. The report
//! notes sources that no longer exist or have changed.
//!
//! The file is self-contained: it includes style and plots (SVG), has no scripts, and its content
//! security policy forbids the browser to load or run anything. All text from documents is escaped.
//! It follows the reader's colour scheme, fits a phone, prints, and works with screen readers.
//!
//! *Cost.* Two passes over some columns of the documents and one over the pairs; four bytes of
//! memory per document; up to 8 MiB for each of at most 42 texts, and usually far less. The same
//! files give the same bytes, except for the times in the summary.
//!
//! *Not for* programs, which read the tables.

mod course;
pub mod diff;
mod documents;
pub mod html;
mod losses;
pub(crate) mod lot;
pub(crate) mod page;
mod pairs;
mod plot;
mod quality;
mod rated;
mod samples;
pub mod side_by_side;
mod sites;
mod versions;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use arose_corpus::Config;

use crate::evaluate::{
    self,
    ratings::{Population, Ratings, Tables},
};
pub use crate::results::Error;
use crate::results::Summary;
use documents::{Census, CloserLook};
use pairs::PairSample;
use samples::Evidence;

/// Writes `report.html` to the directory `out` of a finished run whose input was read with
/// `corpus`.
///
/// # Errors
///
/// If the run's files cannot be read or disagree, or the report cannot be written. An existing
/// report is replaced only when the new one is complete.
pub fn write(out: &Path, corpus: &Config) -> Result<(), Error> {
    let summary = Summary::open(&out.join("summary.json"))?;
    let documents = out.join("documents.parquet");
    let census = Census::take(&documents, &summary.counts)?;
    let cluster_sizes = census.cluster_sizes();
    let CloserLook { clusters, sites } =
        documents::closer_look(&documents, census, summary.seed())?;
    let pairs = PairSample::open(&out.join("pairs.parquet"), summary.seed())?;
    let groups = versions::largest_groups(&documents, &summary)?;
    let shown = clusters.iter().chain(&groups);
    let evidence = Evidence::gather(out, &summary, shown, &pairs, corpus)?;
    let ratings = ratings(out)?;
    let page = page::ReportPage {
        summary: &summary,
        cluster_sizes: &cluster_sizes,
        clusters: &clusters,
        groups: &groups,
        sites: &sites,
        pairs: &pairs,
        evidence: &evidence,
        ratings: ratings.as_ref(),
    };
    put(&out.join("report.html"), &page.to_string())
}

/// Returns the tables of the ratings in `out`; none if there are no ratings.
fn ratings(out: &Path) -> Result<Option<Tables>, Error> {
    let path = out.join("ratings.jsonl");
    let ratings = Ratings::of_run(out).map_err(|error| match error {
        evaluate::Error::Results(error) => error,
        error => Error::damaged(&path, error.to_string()),
    })?;
    let tables = ratings.tables(&Population::of_run(out)?);
    let has_any = !ratings.lines().is_empty() || tables.n_elsewhere > 0;
    Ok(has_any.then_some(tables))
}

/// Replaces a file atomically.
pub(crate) fn put(path: &Path, text: &str) -> Result<(), Error> {
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
