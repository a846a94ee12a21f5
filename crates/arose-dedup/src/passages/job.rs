//! The job: finds repeated passages in files and writes the tables and the documents without them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use arose::passage::gram_length;
use arose::winnow::Ties;
use serde_json::{Value, json};

use super::anchors::{self, Anchors, Search};
use super::classes::{self, Classes};
use super::config::{Config, removal_name};
use super::documents::{self, Documents};
use super::listing::{self, Listing};
use super::occurrences::{self, Occurrences};
use super::read::{self, Read};
use super::runs::{self, Runs};
use super::text::Texts;
use super::windows::{self, Windows};
use super::{STAGES, kept, report};
use crate::inputs::Inputs;
use crate::job::{incomplete_files, keep_standard_input, peak_memory, rounded, stage};
use crate::losses;
use crate::stage::update::{sync, sync_entry};
use crate::work::{Note, Start, Work, read_json, write_json};
use crate::{Error, Progress};

const SUMMARY: &str = "summary.json";
const REPORT: &str = "report.html";
const TABLES: [&str; 4] = [
    "passages.parquet",
    "places.parquet",
    "documents.parquet",
    "removed.parquet",
];

/// Finds the repeated passages in `inputs` and writes the results into the directory `out`.
///
/// Returns the summary that is also in `summary.json`. A complete run with the same settings and
/// inputs is not repeated; an interrupted one resumes.
///
/// # Errors
///
/// See [`Error`]; bad documents are none.
pub fn run(
    inputs: &[PathBuf],
    config: &Config,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    config.check()?;
    let threads = config.corpus.threads.get();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Io {
        action: "start threads for",
        path: out.to_owned(),
        source: io::Error::other(error),
    })?;
    pool.install(|| Job::open(inputs, config, out, start, progress)?.run())
}

struct Job<'a> {
    inputs: Inputs,
    /// The names of the inputs, with a file in place of standard input.
    readable: Vec<PathBuf>,
    config: &'a Config,
    out: &'a Path,
    work: Work,
    progress: &'a Progress,
}

/// What the stages found.
struct Found {
    read: Note<Read>,
    anchors: Note<Anchors>,
    classes: Note<Classes>,
    windows: Note<Windows>,
    runs: Note<Runs>,
    occurrences: Note<Occurrences>,
    listing: Note<Listing>,
    documents: Note<Documents>,
    kept: Option<Note<String>>,
}

impl<'a> Job<'a> {
    fn open(
        inputs: &[PathBuf],
        config: &'a Config,
        out: &'a Path,
        start: Start,
        progress: &'a Progress,
    ) -> Result<Self, Error> {
        let inputs = Inputs::list(inputs, &config.shared(), out)?;
        if config.remove.is_some() {
            let paths = inputs.files.iter().map(|file| &file.path);
            check_rewritable(paths, config)?;
        }
        let mut settings = config.settings();
        settings["inputs"] = json!(inputs.texts());
        settings["version"] = json!(env!("CARGO_PKG_VERSION"));
        let work = Work::open(out, &settings, &inputs, start)?;
        Ok(Self {
            readable: inputs.names.clone(),
            inputs,
            config,
            out,
            work,
            progress,
        })
    }

    fn run(mut self) -> Result<Value, Error> {
        let finished: Option<Value> = read_json(&self.out.join(SUMMARY))?;
        if let Some(summary) = finished {
            losses::check_finished(&summary, &self.config.shared())?;
            if !self.out.join(REPORT).exists() {
                self.finish()?;
            }
            return Ok(summary);
        }
        let has_pipe = self.inputs.has_standard_input();
        keep_standard_input(&self.work, &mut self.readable, self.progress)?;
        if has_pipe && self.config.remove.is_some() {
            check_rewritable(self.readable.iter(), self.config)?;
        }
        let read = self.read()?;
        let found = self.find(read)?;
        if !has_pipe {
            self.inputs.check_read(&found.read.found.sources)?;
        }
        let summary = self.summary(&found);
        let kept = found.kept.iter().map(|note| &*note.found);
        for name in TABLES.into_iter().chain(kept) {
            sync(&self.out.join(name))?;
        }
        let path = self.out.join(SUMMARY);
        write_json(&path, &summary)?;
        sync_entry(&path)?;
        self.finish()?;
        Ok(summary)
    }

    fn finish(&self) -> Result<(), Error> {
        report::write(self.out)?;
        self.work.clean(&STAGES)?;
        self.work.clean(&["input"])
    }

    fn read(&self) -> Result<Note<Read>, Error> {
        let skip = vec![self.out.to_owned()];
        let read = self.work.stage("read", self.progress, |folder| {
            read::run(&self.readable, self.config, skip, folder, self.progress)
        })?;
        let shared = self.config.shared();
        let refused = read.found.losses.refuse(&shared, &read.found.warnings);
        if refused.is_err() {
            // The next attempt must read what was repaired.
            self.work.clean(&["input", "read"])?;
            self.work.forget()?;
        }
        refused.map(|()| read)
    }

    fn find(&self, read: Note<Read>) -> Result<Found, Error> {
        let (work, config, progress) = (&self.work, self.config, self.progress);
        let path = |stage: &str| work.path(stage);
        let texts = Texts::new(&path("read"));
        let search = &Search {
            n_tokens: config.min,
            gram: gram_length(config.min),
            ties: Ties::Robust,
            rehash: |hash| hash,
            scope: config.scope,
            allowance: config.part(4),
        };
        let anchors = work.stage("anchors", progress, |folder| {
            anchors::run(&texts, search, folder, progress)
        })?;
        let classes = work.stage("classes", progress, |folder| {
            classes::run(&texts, &path("anchors"), search, folder, progress)
        })?;
        let windows = work.stage("windows", progress, |folder| {
            windows::run(&texts, &path("classes"), search, folder, progress)
        })?;
        let runs = work.stage("runs", progress, |folder| {
            let stages = [&*path("classes"), &*path("windows")];
            runs::run(stages, search, folder, progress)
        })?;
        let occurrences = work.stage("occurrences", progress, |folder| {
            occurrences::run(&texts, &path("runs"), search, config, folder, progress)
        })?;
        let listing = work.stage("passages", progress, |folder| {
            let folders = [folder, self.out];
            listing::run(
                &texts,
                &path("occurrences"),
                search,
                config,
                folders,
                progress,
            )
        })?;
        let documents = work.stage("documents", progress, |folder| {
            let stages = documents::Stages {
                read: &path("read"),
                listing: &path("passages"),
                out: self.out,
            };
            let n_distinct = listing.found.n_distinct;
            documents::run(
                &stages,
                &read.found,
                n_distinct,
                search,
                config,
                folder,
                progress,
            )
        })?;
        let kept = config.remove.as_ref().map(|_| {
            work.stage("kept", progress, |_| {
                let documents = path("documents");
                kept::run(&texts, &read.found, &documents, config, self.out, progress)
            })
        });
        Ok(Found {
            kept: kept.transpose()?,
            read,
            anchors,
            classes,
            windows,
            runs,
            occurrences,
            listing,
            documents,
        })
    }

    fn summary(&self, found: &Found) -> Value {
        let read = &found.read.found;
        let listing = &found.listing.found;
        let documents = &found.documents.found;
        let remove = self.config.removal();
        let share = |part: u64, whole: u64| rounded(part as f64 / whole.max(1) as f64);
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "inputs": self.inputs.texts(),
            "settings": self.config.settings(),
            "counts": {
                "read": read.n_docs,
                "short": read.n_short,
                "tokens": read.n_tokens,
                "text_bytes": read.text_bytes,
                "windows": found.anchors.found.n_windows,
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
                "null_text": read.skipped.get(arose_corpus::Reason::NullText.name()).unwrap_or(&0),
                "incomplete_files": read.losses.n_files,
                "damaged_records": read.losses.n_records,
                "skipped": {
                    "total": read.skipped.values().sum::<u64>(),
                    "by_reason": read.skipped,
                },
            },
            "removal": {
                "mode": removal_name(remove.removal),
                "written": self.config.remove.is_some(),
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
            "incomplete_files": incomplete_files(&self.work, &read.losses),
            "unknown_files": read.losses.unknown_files,
            "warnings": read.warnings,
            "kept_in": found.kept.as_ref().map(|note| &note.found),
            "stages": found.stages(),
            "sources": read.sources,
            "peak_memory_bytes": peak_memory(),
        })
    }
}

impl Found {
    /// Time and records of each stage; the records are the work that was counted.
    fn stages(&self) -> Value {
        let n_docs = self.read.found.n_docs;
        let n_occurrences = self.occurrences.found.n_occurrences;
        let mut stages = vec![
            stage("read", &self.read, n_docs),
            stage("anchors", &self.anchors, self.anchors.found.n_anchors),
            stage("classes", &self.classes, self.anchors.found.n_shared),
            stage("windows", &self.windows, self.windows.found.n_windows),
            stage("runs", &self.runs, self.runs.found.n_runs),
            stage("occurrences", &self.occurrences, n_occurrences),
            stage("passages", &self.listing, n_occurrences),
            stage("documents", &self.documents, n_docs),
        ];
        stages.extend(self.kept.iter().map(|kept| stage("kept", kept, n_docs)));
        stages.into()
    }
}

/// An error if the texts of a file cannot be replaced.
fn check_rewritable<'p>(
    paths: impl Iterator<Item = &'p PathBuf>,
    config: &Config,
) -> Result<(), Error> {
    for path in paths.filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file())) {
        if !arose_corpus::is_rewritable(path, &config.corpus) {
            return Err(Error::CutPage { path: path.clone() });
        }
    }
    Ok(())
}
