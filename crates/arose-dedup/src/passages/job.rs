//! The job that finds repeated passages and writes the tables and the documents without them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::anchors::{self, Anchors, Search};
use super::config::{PassagesConfig, removal_name};
use super::documents::{self, Documents};
use super::frame::{Frame, JobPlan, Outcome};
use super::listing::{self, Listing};
use super::occurrences::{self, Occurrences};
use super::read::Read;
use super::runs::{self, Runs};
use super::text::Texts;
use super::{STAGES, kept, report};
use crate::inputs::{Inputs, Moved};
use crate::job::{on_threads, rounded, stage};
use crate::work::{Note, Start};
use crate::{Error, Progress};

const PLAN: JobPlan = JobPlan {
    tables: &[
        "passages.parquet",
        "places.parquet",
        "documents.parquet",
        "removed.parquet",
    ],
    stages: &STAGES,
    report: report::write,
};

/// Finds the repeated passages in `inputs` and writes the results to the directory `out`.
///
/// Returns the summary that is also in `summary.json`. A complete run with the same settings and
/// inputs is not repeated; an interrupted one resumes.
///
/// # Errors
///
/// See [`Error`]. Malformed documents are not an error.
pub fn run(
    inputs: &[PathBuf],
    config: &PassagesConfig,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    let list = || Inputs::list(inputs, &config.shared(), out);
    run_on(list, config, out, start, progress)
}

/// Like [`run`], but reads one file under another name and moves it to `out`; see
/// [`crate::run_moved`].
///
/// # Errors
///
/// See [`Error`].
pub fn run_moved(
    input: &Moved,
    config: &PassagesConfig,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    run_on(|| Ok(Inputs::moved(input)), config, out, start, progress)
}

fn run_on(
    inputs: impl FnOnce() -> Result<Inputs, Error> + Send,
    config: &PassagesConfig,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    config.check()?;
    on_threads(config.corpus.threads, out, || {
        let settings = config.settings();
        Frame::open(PLAN, inputs()?, config, settings, out, start, progress)?.run(find)
    })
}

/// The results of the stages.
struct StageNotes {
    read: Note<Read>,
    anchors: Note<Anchors>,
    runs: Note<Runs>,
    occurrences: Note<Occurrences>,
    listing: Note<Listing>,
    documents: Note<Documents>,
    kept: Option<Note<kept::Written>>,
}

/// The stages after reading.
fn find(frame: &Frame<'_>, read: Note<Read>) -> Result<Outcome, Error> {
    let Frame {
        work,
        config,
        progress,
        out,
        ..
    } = frame;
    let path = |stage: &str| work.path(stage);
    let texts = Texts::new(&path("read"));
    let search = &Search::new(config, config.scope);
    let anchors = work.stage("anchors", progress, |folder| {
        anchors::run(&texts, search, folder, progress)
    })?;
    let runs = work.stage("runs", progress, |folder| {
        let anchors_in = path("anchors");
        runs::run(
            &texts,
            &anchors_in,
            &anchors.found,
            search,
            folder,
            progress,
        )
    })?;
    let occurrences = work.stage("occurrences", progress, |folder| {
        let runs_in = path("runs");
        occurrences::run(
            &texts,
            &runs_in,
            &runs.found,
            search,
            config,
            folder,
            progress,
        )
    })?;
    let listing = work.stage("passages", progress, |folder| {
        let occurrences_in = path("occurrences");
        let folders = [&*occurrences_in, folder, out];
        let n_parts = runs.found.n_parts;
        listing::run(&texts, folders, n_parts, search, config, progress)
    })?;
    let documents = work.stage("documents", progress, |folder| {
        let stages = documents::Stages {
            read: &path("read"),
            listing: &path("passages"),
            out,
        };
        documents::run(
            &stages,
            &read.found,
            &listing.found,
            search,
            config,
            folder,
            progress,
        )
    })?;
    let kept = config.remove.as_ref().map(|_| {
        work.stage("kept", progress, |_| {
            let documents = path("documents");
            kept::run(&texts, &read.found, &documents, config, out, progress)
        })
    });
    let found = StageNotes {
        kept: kept.transpose()?,
        read,
        anchors,
        runs,
        occurrences,
        listing,
        documents,
    };
    Ok(Outcome {
        summary: found.summary(config),
        kept: found.kept.map(|note| note.found),
        read: found.read,
    })
}

impl StageNotes {
    /// Returns the part of the summary that is specific to this job.
    fn summary(&self, config: &PassagesConfig) -> Value {
        let read = &self.read.found;
        let listing = &self.listing.found;
        let documents = &self.documents.found;
        let remove = config.removal();
        let share = |part: u64, whole: u64| rounded(part as f64 / whole.max(1) as f64);
        json!({
            "counts": {
                "windows": self.anchors.found.n_windows,
                "repeated": listing.n_repeated,
                "distinct": listing.n_distinct,
                "later": listing.n_later,
                "passages": listing.n_passages,
                "occurrences": listing.n_occurrences,
                "longest": listing.longest,
                "most_places": listing.most_places,
                "covered": documents.covered,
                "share": share(documents.covered, read.n_tokens),
                "capped_passages": listing.n_capped,
                "places_not_listed": listing.n_unlisted,
                "capped_documents": documents.n_capped,
            },
            "removal": {
                "mode": removal_name(remove.removal),
                "written": config.remove.is_some(),
                "removed": documents.removed,
                "kept": read.n_tokens - documents.removed,
                "share": share(documents.removed, read.n_tokens),
                "removed_bytes": documents.removed_bytes,
                "documents_changed": documents.n_changed,
                "documents_emptied": documents.n_emptied,
                "documents_dropped": documents.n_dropped,
                "windows_without_whole_copy": documents.n_lost,
                "rows": documents.n_rows,
            },
            "most_repeated": listing.top,
            "most_covered": documents.top,
            "stages": self.stages(),
        })
    }

    /// Returns time and records of each stage. The records are the counted units of work.
    fn stages(&self) -> Value {
        let n_docs = self.read.found.n_docs;
        let n_records = self.occurrences.found.n_records;
        let mut stages = vec![
            stage("read", &self.read, n_docs),
            stage("anchors", &self.anchors, self.anchors.found.n_anchors),
            stage("runs", &self.runs, self.runs.found.n_runs),
            stage("occurrences", &self.occurrences, n_records),
            stage("passages", &self.listing, n_records),
            stage("documents", &self.documents, n_docs),
        ];
        stages.extend(self.kept.iter().map(|kept| stage("kept", kept, n_docs)));
        stages.into()
    }
}
