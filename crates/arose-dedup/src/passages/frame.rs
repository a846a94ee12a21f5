//! The steps common to all jobs on passages.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::config::PassagesConfig;
use super::kept::Written;
use super::read::{self, Read};
use crate::inputs::Inputs;
use crate::job::{incomplete_files, keep_standard_input, peak_memory};
use crate::losses;
use crate::source::{directory_from, path_text};
use crate::stage::update::{sync, sync_entry};
use crate::work::{Note, Start, Work, read_json, write_json};
use crate::{Error, Progress};

const SUMMARY: &str = "summary.json";
const REPORT: &str = "report.html";

/// The differences between the jobs.
pub(crate) struct JobPlan {
    /// Names of the tables in the output directory.
    pub(crate) tables: &'static [&'static str],
    pub(crate) stages: &'static [&'static str],
    /// Writes the report of a run, which must have a summary.
    pub(crate) report: fn(&Path) -> Result<(), Error>,
}

/// A run in its output directory.
pub(crate) struct Frame<'a> {
    pub(crate) config: &'a PassagesConfig,
    pub(crate) out: &'a Path,
    pub(crate) work: Work,
    pub(crate) progress: &'a Progress,
    plan: JobPlan,
    settings: Value,
    inputs: Inputs,
    /// The names of the inputs, with a file instead of standard input.
    readable: Vec<PathBuf>,
}

/// The results of the stages of a job.
pub(crate) struct Outcome {
    /// The part of the summary that is specific to the job.
    pub(crate) summary: Value,
    /// The file or directory of the kept documents, if they were written.
    pub(crate) kept: Option<Written>,
    pub(crate) read: Note<Read>,
}

impl<'a> Frame<'a> {
    /// Prepares the directory `out` for a run with these settings.
    pub(crate) fn open(
        plan: JobPlan,
        inputs: Inputs,
        config: &'a PassagesConfig,
        settings: Value,
        out: &'a Path,
        start: Start,
        progress: &'a Progress,
    ) -> Result<Self, Error> {
        if config.remove.is_some() {
            let paths = inputs.files.iter().map(|file| &file.path);
            check_rewritable(paths, config)?;
        }
        let mut identity = settings.clone();
        identity["inputs"] = json!(inputs.texts());
        identity["version"] = json!(env!("CARGO_PKG_VERSION"));
        let work = Work::open(out, &identity, &inputs, start)?;
        Ok(Self {
            config,
            out,
            work,
            progress,
            plan,
            settings,
            readable: inputs.names.clone(),
            inputs,
        })
    }

    /// Reads the input, calls `find` for the rest, and writes the summary. A complete run is not
    /// repeated.
    pub(crate) fn run(
        mut self,
        find: impl FnOnce(&Self, Note<Read>) -> Result<Outcome, Error>,
    ) -> Result<Value, Error> {
        let finished: Option<Value> = read_json(&self.out.join(SUMMARY))?;
        if let Some(summary) = finished {
            losses::check_finished(&summary, &self.config.shared())?;
            if !self.out.join(REPORT).exists() {
                self.finish()?;
            }
            return Ok(summary);
        }
        let has_pipe = self.inputs.is_read_once();
        match &self.inputs.moved {
            Some(moved) => self.readable = vec![moved.keep("input", &self.work, self.progress)?],
            None => keep_standard_input(&self.work, &mut self.readable, self.progress)?,
        }
        if has_pipe && self.config.remove.is_some() {
            check_rewritable(self.readable.iter(), self.config)?;
        }
        let read = self.read("read", &self.readable, self.config)?;
        let outcome = find(&self, read);
        if let Err(Error::InputLost { .. }) = outcome {
            // The next attempt must read the repaired file again.
            self.work.forget()?;
        }
        let outcome = outcome?;
        if !has_pipe {
            self.inputs.check_read(&outcome.read.found.sources)?;
        }
        let summary = self.summary(&outcome);
        let tables = self.plan.tables.iter().copied();
        let kept = outcome.kept.as_ref().map(|kept| &*kept.name);
        for name in tables.chain(kept) {
            sync(&self.out.join(name))?;
        }
        let path = self.out.join(SUMMARY);
        write_json(&path, &summary)?;
        sync_entry(&path)?;
        self.finish()?;
        Ok(summary)
    }

    fn finish(&self) -> Result<(), Error> {
        (self.plan.report)(self.out)?;
        self.work.clean(self.plan.stages)?;
        match self.inputs.moved {
            // The results refer to it.
            Some(_) => Ok(()),
            None => self.work.clean(&["input"]),
        }
    }

    /// Reads files into the columns of a stage.
    pub(crate) fn read(
        &self,
        stage: &str,
        paths: &[PathBuf],
        config: &PassagesConfig,
    ) -> Result<Note<Read>, Error> {
        let skip = vec![self.out.to_owned()];
        let read = self.work.stage(stage, self.progress, |folder| {
            read::run(paths, config, skip, folder, self.progress)
        })?;
        let shared = self.config.shared();
        let refused = read.found.losses.refuse(&shared, &read.found.warnings);
        if refused.is_err() {
            // The next attempt must read the repaired file again.
            self.work.clean(&["input", stage])?;
            self.work.forget()?;
        }
        refused.map(|()| read)
    }

    /// Returns the common part of all summaries, together with the part of a job.
    fn summary(&self, outcome: &Outcome) -> Value {
        let read = &outcome.read.found;
        let kept = outcome.kept.as_ref();
        let losses = read.losses.with(kept.map_or(&[], |kept| &kept.lost));
        let mut summary = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "inputs": self.inputs.texts(),
            "directory": directory_from(self.out).map(|path| path_text(&path)),
            "settings": self.settings,
            "counts": {
                "read": read.n_docs,
                "short": read.n_short,
                "tokens": read.n_tokens,
                "text_bytes": read.text_bytes,
                "null_text": read.skipped.get(arose_corpus::Reason::NullText.name()).unwrap_or(&0),
                "incomplete_files": losses.n_files,
                "damaged_records": losses.n_records,
                "skipped": {
                    "total": read.skipped.values().sum::<u64>(),
                    "by_reason": read.skipped,
                },
            },
            "incomplete_files": incomplete_files(&self.work, &losses),
            "unknown_files": losses.unknown_files,
            "warnings": read.warnings,
            "kept_in": kept.map(|kept| &kept.name),
            "sources": read.sources,
            "peak_memory_bytes": peak_memory(),
        });
        merge(&mut summary, &outcome.summary);
        summary
    }
}

/// Merges the members of one object into another, recursively.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from.clone(),
    }
}

/// Returns an error if the texts of a file cannot be replaced.
fn check_rewritable<'p>(
    paths: impl Iterator<Item = &'p PathBuf>,
    config: &PassagesConfig,
) -> Result<(), Error> {
    for path in paths.filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.is_file())) {
        if !arose_corpus::is_rewritable(path, &config.corpus) {
            return Err(Error::CutPage { path: path.clone() });
        }
    }
    Ok(())
}
