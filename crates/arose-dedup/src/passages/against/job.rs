//! The job that finds the items of a reference in a corpus.

use std::fs;
use std::path::{Path, PathBuf};

use arose::digest::Digest;
use arose::passage::Scope;
use serde_json::{Value, json};

use super::documents::{self, Documents};
use super::items::{self, Items};
use super::matches::{self, Matches, Sides};
use super::{MatchRemoval, Reference, ReferenceSearch, STAGES, report};
use crate::inputs::{Inputs, Moved};
use crate::job::{on_threads, rounded, stage};
use crate::passages::anchors::Search;
use crate::passages::config::PassagesConfig;
use crate::passages::frame::{Frame, JobPlan, Outcome};
use crate::passages::kept;
use crate::passages::read::Read;
use crate::passages::text::Texts;
use crate::source::{InputFile, path_text};
use crate::work::{Note, Start};
use crate::{Error, Progress};

const PLAN: JobPlan = JobPlan {
    tables: &["items.parquet", "matches.parquet", "documents.parquet"],
    stages: &STAGES,
    report: report::write,
};

/// Searches `inputs` for the items of a reference and writes the results to the directory `out`.
///
/// Returns the summary that is also in `summary.json`. A complete run with the same settings,
/// inputs and reference is not repeated; an interrupted one resumes.
///
/// # Errors
///
/// See [`Error`]. Malformed documents are not an error; a reference without text is.
pub fn run(
    inputs: &[PathBuf],
    against: &ReferenceSearch,
    config: &PassagesConfig,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    let list = || Inputs::list(inputs, &config.shared(), out);
    run_on(list, against, config, out, start, progress)
}

/// Like [`run`], but reads one file under another name and moves it to `out`; see
/// [`crate::run_moved`].
///
/// # Errors
///
/// As [`run`].
pub fn run_moved(
    input: &Moved,
    against: &ReferenceSearch,
    config: &PassagesConfig,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    let moved = || Ok(Inputs::moved(input));
    run_on(moved, against, config, out, start, progress)
}

fn run_on(
    inputs: impl FnOnce() -> Result<Inputs, Error> + Send,
    against: &ReferenceSearch,
    config: &PassagesConfig,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    config.check()?;
    on_threads(config.corpus.threads, out, || {
        let settings = settings(against, config)?;
        let frame = Frame::open(PLAN, inputs()?, config, settings, out, start, progress)?;
        frame.run(|frame, read| find(frame, read, against))
    })
}

/// Returns the settings that affect the result, including the files of the reference.
fn settings(against: &ReferenceSearch, config: &PassagesConfig) -> Result<Value, Error> {
    let reference = match &against.reference {
        Reference::Files(paths) => {
            let files = arose_corpus::files(paths, &config.corpus.files)?;
            json!(files.into_iter().map(InputFile::of_any).collect::<Vec<_>>())
        }
        Reference::Table(table) => {
            let bytes = fs::read(&table.file).map_err(Error::io("read", &table.file))?;
            json!([{ "table": table.name, "digest": Digest::of_bytes(&bytes).to_string() }])
        }
    };
    let mut settings = config.settings();
    if let Some(settings) = settings.as_object_mut() {
        settings.retain(|name, _| !["times", "scope"].contains(&&**name));
    }
    settings["against"] = reference;
    settings["common"] = json!(against.common);
    if config.remove.is_some() {
        settings["remove"] = json!(match against.found {
            MatchRemoval::Cut => "spans",
            MatchRemoval::Drop => "documents",
        });
    }
    Ok(settings)
}

fn find(frame: &Frame<'_>, read: Note<Read>, against: &ReferenceSearch) -> Result<Outcome, Error> {
    let Frame {
        work,
        config,
        progress,
        out,
        ..
    } = frame;
    let reference = read_reference(frame, against)?;
    let path = |stage: &str| work.path(stage);
    let search = &Search::new(config, Scope::Any);
    let texts = Texts::new(&path("read"));
    let matches = work.stage("matches", progress, |folder| {
        let sides = Sides {
            corpus: &texts,
            reference: &Texts::new(&path("reference")),
        };
        matches::run(&sides, against, search, config.part(4), folder, progress)
    })?;
    let items = work.stage("items", progress, |folder| {
        let stages = items::Stages {
            corpus: &texts,
            reference: &path("reference"),
            matches: &path("matches"),
            out,
        };
        items::run(
            &stages,
            &reference.found,
            search,
            config.list,
            folder,
            progress,
        )
    })?;
    let documents = work.stage("documents", progress, |folder| {
        let stages = documents::Stages {
            read: &path("read"),
            matches: &path("matches"),
            items: &path("items"),
            out,
        };
        documents::run(
            &stages,
            &read.found,
            search,
            config,
            against.found,
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
    let kept = kept.transpose()?;
    let all = All {
        read: &read,
        reference: &reference,
        matches: &matches,
        items: &items,
        documents: &documents,
        kept: kept.as_ref(),
    };
    Ok(Outcome {
        summary: all.summary(config),
        kept: kept.map(|note| note.found),
        read,
    })
}

/// Reads the items, at least one of which must have text.
fn read_reference(frame: &Frame<'_>, against: &ReferenceSearch) -> Result<Note<Read>, Error> {
    let config = PassagesConfig {
        remove: None,
        ..frame.config.clone()
    };
    let paths = match &against.reference {
        Reference::Files(paths) => paths.clone(),
        Reference::Table(table) => {
            vec![table.keep("reference-input", &frame.work, frame.progress)?]
        }
    };
    let reference = frame.read("reference", &paths, &config)?;
    if reference.found.n_tokens > 0 {
        return Ok(reference);
    }
    frame.work.clean(&["reference"])?;
    let names = match &against.reference {
        Reference::Files(paths) => paths.iter().map(|path| path_text(path)).collect(),
        Reference::Table(table) => vec![table.name.clone()],
    };
    Err(Error::EmptyReference {
        names: names.join("`, `"),
    })
}

/// The results of all stages.
struct All<'a> {
    read: &'a Note<Read>,
    reference: &'a Note<Read>,
    matches: &'a Note<Matches>,
    items: &'a Note<Items>,
    documents: &'a Note<Documents>,
    kept: Option<&'a Note<kept::Written>>,
}

impl All<'_> {
    /// Returns the part of the summary that is specific to this job.
    fn summary(&self, config: &PassagesConfig) -> Value {
        let (reference, matches) = (&self.reference.found, &self.matches.found);
        let (items, documents) = (&self.items.found, &self.documents.found);
        let n_tokens = self.read.found.n_tokens;
        let share = |part: u64, whole: u64| rounded(part as f64 / whole.max(1) as f64);
        json!({
            "counts": {
                "items": items.n_items,
                "item_tokens": items.n_tokens,
                "items_found": items.n_found,
                "items_whole": items.n_whole,
                "items_common_only": items.n_common_only,
                "items_undecided": items.n_undecided,
                "item_tokens_covered": items.covered,
                "item_share": share(items.covered, items.n_tokens),
                "items_capped": items.n_capped,
                "item_windows": matches.n_windows,
                "windows_found": matches.n_found,
                "windows_common": matches.n_common,
                "matches": items.n_matches,
                "matches_not_listed": items.n_unlisted,
                "documents_found": documents.n_found,
                "covered": documents.covered,
                "share": share(documents.covered, n_tokens),
            },
            "method": matches.method,
            "reference": {
                "sources": reference.sources,
                "skipped": reference.skipped,
                "incomplete_files": reference.losses.n_files,
                "damaged_records": reference.losses.n_records,
                "warnings": reference.warnings,
            },
            "removal": {
                "written": config.remove.is_some(),
                "removed": documents.removed,
                "kept": n_tokens - documents.removed,
                "share": share(documents.removed, n_tokens),
                "removed_bytes": documents.removed_bytes,
                "documents_changed": documents.n_changed,
                "documents_dropped": documents.n_dropped,
            },
            "most_found": items.top,
            "stages": self.stages(),
        })
    }

    fn stages(&self) -> Value {
        let (n_docs, n_items) = (self.read.found.n_docs, self.items.found.n_items);
        let mut stages = vec![
            stage("read", self.read, n_docs),
            stage("reference", self.reference, n_items),
            stage("matches", self.matches, self.matches.found.n_windows),
            stage("items", self.items, n_items),
            stage("documents", self.documents, n_docs),
        ];
        stages.extend(self.kept.map(|kept| stage("kept", kept, n_docs)));
        stages.into()
    }
}
