//! The part of the input that could not be read, as reported by a run.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arose_corpus::{Counts, Position, Reason, Warning};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::config::{Config, OnLoss};
use crate::error::InputChange;
use crate::source::InputFile;

/// Maximum number of incomplete files that are listed, the same as in the reader.
const MAX_FILES: usize = 1000;

/// A file of the input that could not be read completely.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IncompleteFile {
    /// The file; `-` is standard input.
    pub path: PathBuf,
    /// The position at which reading failed.
    #[serde(default)]
    pub position: String,
    /// The reason, as in the counts of skipped records.
    pub reason: String,
    /// Details.
    #[serde(default)]
    pub detail: String,
    /// Its size when it was read; none if it did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    modified_ns: Option<u128>,
}

impl From<&Warning> for IncompleteFile {
    fn from(warning: &Warning) -> Self {
        let stamp = InputFile::of(&warning.source).ok();
        Self {
            path: warning.source.to_path_buf(),
            position: warning.position.to_string(),
            reason: warning.reason.name().to_owned(),
            detail: warning.detail.clone(),
            n_bytes: stamp.as_ref().map(|stamp| stamp.n_bytes),
            modified_ns: stamp.map(|stamp| stamp.modified_ns),
        }
    }
}

impl std::fmt::Display for IncompleteFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let position = Position::parse(&self.position).unwrap_or_default();
        write!(f, "{}: {}", position.within(&self.path), self.reason)?;
        match self.detail.as_str() {
            "" => Ok(()),
            detail => write!(f, ": {detail}"),
        }
    }
}

impl IncompleteFile {
    /// Returns an error if the file has changed, since it may be readable now.
    fn check(&self) -> Result<(), Error> {
        let now = InputFile::of(&self.path).ok();
        let now = now.map(|now| (now.n_bytes, now.modified_ns));
        match now == self.n_bytes.zip(self.modified_ns) {
            true => Ok(()),
            false => Err(Error::InputChanged {
                path: self.path.clone(),
                change: InputChange::Content,
            }),
        }
    }
}

/// The part of the input that the reading stage missed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Losses {
    /// The first of them.
    pub(crate) files: Vec<IncompleteFile>,
    pub(crate) n_files: u64,
    pub(crate) n_records: u64,
    /// Number of files of unknown formats, by extension.
    pub(crate) unknown_files: BTreeMap<String, u64>,
}

impl From<&Counts> for Losses {
    fn from(counts: &Counts) -> Self {
        let losses = &counts.losses;
        Self {
            files: losses.files.iter().map(IncompleteFile::from).collect(),
            n_files: losses.n_files,
            n_records: losses.n_records,
            unknown_files: counts.unknown_files.clone(),
        }
    }
}

impl Losses {
    /// Returns these, and files with records that were read but could not be copied.
    pub(crate) fn with(&self, lost: &[IncompleteFile]) -> Self {
        let mut all = self.clone();
        for file in lost {
            if all.files.iter().any(|there| there.path == file.path) {
                continue;
            }
            all.n_files += 1;
            if all.files.len() < MAX_FILES {
                all.files.push(file.clone());
            }
        }
        all
    }

    /// Returns an error if something is missing and the run is strict.
    pub(crate) fn refuse(&self, config: &Config, warnings: &[String]) -> Result<(), Error> {
        if config.on_loss == OnLoss::Report || self.n_files + self.n_records == 0 {
            return Ok(());
        }
        let first = self.files.first().map(ToString::to_string);
        // Some warnings do not report a loss.
        let is_loss = |warning: &&String| {
            let harmless = [Reason::Empty, Reason::SymlinkLoop];
            !harmless
                .iter()
                .any(|reason| warning.contains(reason.name()))
        };
        let record = warnings.iter().find(is_loss).cloned();
        Err(Error::InputLost {
            n_files: self.n_files,
            n_records: self.n_records,
            first: first.or(record).unwrap_or_default(),
        })
    }
}

/// Returns an error if a record could not be copied and the run is strict.
pub(crate) fn refuse_lost(lost: &IncompleteFile, config: &Config) -> Result<(), Error> {
    let lost = std::slice::from_ref(lost);
    Losses::default().with(lost).refuse(config, &[])
}

/// Checks the summary of an earlier run: its incomplete files have not changed, and losses are
/// acceptable.
pub(crate) fn check_finished(summary: &Value, config: &Config) -> Result<(), Error> {
    let files = summary["incomplete_files"].as_array().into_iter().flatten();
    let files =
        files.filter_map(|file| serde_json::from_value::<IncompleteFile>(file.clone()).ok());
    let files: Vec<IncompleteFile> = files.collect();
    for file in files.iter().filter(|file| file.path.as_os_str() != "-") {
        file.check()?;
    }
    let count = |name: &str| summary["counts"][name].as_u64().unwrap_or(0);
    let losses = Losses {
        files,
        n_files: count("incomplete_files"),
        n_records: count("damaged_records"),
        unknown_files: BTreeMap::new(),
    };
    let warnings = summary["warnings"].as_array().into_iter().flatten();
    let warnings: Vec<String> = warnings
        .filter_map(|w| Some(w.as_str()?.to_owned()))
        .collect();
    losses.refuse(config, &warnings)
}
