//! The work directory of a run: one run at a time, stages in order, each atomic.
//!
//! `OUT/.arose` contains the settings and a directory for each stage. A stage writes into a
//! directory with a temporary name, which is renamed only when everything is complete, with a note
//! of the result. So an interrupted stage leaves nothing behind, and a completed stage is never
//! repeated. Only the first stage writes checkpoints (`stage/checkpoint.rs`). Work files are not
//! synced to disk: after a power failure, stages are repeated.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::disk::{self, Lock};
use crate::inputs::Inputs;
use crate::source::InputFile;
use crate::stage::checkpoint::CHECKPOINT;
use crate::stage::kept::beside;
use crate::{Error, Progress};

const FOLDER: &str = ".arose";
const SETTINGS: &str = "settings.json";
const INPUTS: &str = "inputs.json";
const NOTE: &str = "stage.json";

/// What to do about an existing run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Resume it if its settings are the same.
    Resume,
    /// Remove it.
    Anew,
}

/// An output directory that belongs to this process.
pub(crate) struct Work {
    folder: PathBuf,
    /// The lock, which the operating system releases if the process dies.
    _lock: Lock,
}

/// The result of a stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Note<R> {
    pub(crate) seconds: f64,
    /// CPU time of all threads, if the operating system reports it.
    pub(crate) cpu_seconds: Option<f64>,
    /// The boot of the machine in which it was written.
    boot: String,
    pub(crate) found: R,
}

impl Work {
    /// Opens the directory `out` for a run with these settings and inputs.
    pub(crate) fn open(
        out: &Path,
        settings: &Value,
        inputs: &Inputs,
        start: Start,
    ) -> Result<Self, Error> {
        let folder = out.join(FOLDER);
        let is_ours = folder.is_dir();
        if out.exists() && !out.is_dir() {
            return Err(Error::NotDirectory {
                path: out.to_owned(),
            });
        }
        if out.is_dir() && !is_ours && !is_empty(out)? {
            return Err(Error::Foreign {
                path: out.to_owned(),
            });
        }
        fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        let lock = lock(out, &folder)?;
        let path = folder.join(SETTINGS);
        match (start, read_json::<Value>(&path)?) {
            (Start::Resume, Some(there)) => {
                compare(out, &there, settings)?;
                let files: Option<Vec<InputFile>> = read_json(&folder.join(INPUTS))?;
                inputs.compare(&files.unwrap_or_default(), out)?;
            }
            _ => {
                clear(out, &folder)?;
                write_json(&folder.join(INPUTS), &inputs.files)?;
                // Written last, since it marks the existence of a run.
                write_json(&path, settings)?;
            }
        }
        Ok(Self {
            folder,
            _lock: lock,
        })
    }

    /// Removes everything from which another run could resume. The next run starts over, whatever
    /// its inputs are.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        let path = self.folder.join(SETTINGS);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Returns the directory of a completed stage.
    pub(crate) fn path(&self, stage: &str) -> PathBuf {
        self.folder.join(stage)
    }

    /// Returns the result of a stage, if it is complete.
    pub(crate) fn note<R: DeserializeOwned>(&self, stage: &str) -> Result<Option<Note<R>>, Error> {
        let note: Option<Note<R>> = read_json(&self.path(stage).join(NOTE))?;
        Ok(note.filter(|note| note.boot == boot()))
    }

    /// Runs a stage, unless it is complete.
    pub(crate) fn stage<R: Serialize + DeserializeOwned>(
        &self,
        stage: &str,
        progress: &Progress,
        run: impl FnOnce(&Path) -> Result<R, Error>,
    ) -> Result<Note<R>, Error> {
        progress.begin(stage);
        if let Some(note) = self.note(stage)? {
            return Ok(note);
        }
        let path = self.path(stage);
        let partial = beside(&path);
        remove_folder(&path)?;
        // An interrupted stage with a checkpoint keeps its files and resumes from them.
        if !partial.join(CHECKPOINT).is_file() {
            remove_folder(&partial)?;
            fs::create_dir(&partial).map_err(Error::io("create", &partial))?;
        }
        let (begin, cpu_begin) = (Instant::now(), cpu_seconds());
        let found = run(&partial)?;
        progress.end();
        let note = Note {
            seconds: begin.elapsed().as_secs_f64(),
            cpu_seconds: cpu_seconds().zip(cpu_begin).map(|(end, begin)| end - begin),
            boot: boot(),
            found,
        };
        write_json(&partial.join(NOTE), &note)?;
        fs::rename(&partial, &path).map_err(Error::io("rename", &partial))?;
        Ok(note)
    }

    /// Removes the files of all stages, but not the note that they are complete.
    pub(crate) fn clean(&self, stages: &[&str]) -> Result<(), Error> {
        for stage in stages {
            remove_folder(&self.path(stage))?;
        }
        Ok(())
    }
}

/// Returns an error if another process uses the directory.
fn lock(out: &Path, folder: &Path) -> Result<Lock, Error> {
    let path = folder.join("lock");
    let lock = Lock::take(&path).map_err(Error::io("lock", &path))?;
    lock.ok_or_else(|| Error::Busy {
        path: out.to_owned(),
    })
}

/// Returns an error with the first setting that differs.
fn compare(out: &Path, there: &Value, here: &Value) -> Result<(), Error> {
    if there == here {
        return Ok(());
    }
    let (Some(all), Some(old)) = (here.as_object(), there.as_object()) else {
        return Err(Error::Damaged {
            path: out.join(FOLDER).join(SETTINGS),
            detail: "no settings".to_owned(),
        });
    };
    let names = all.keys().chain(old.keys());
    let mut names = names.filter(|name| all.get(*name) != old.get(*name));
    let setting = names.next().cloned().unwrap_or_default();
    let show = |value: Option<&Value>| value.map_or("none".to_owned(), shown);
    Err(Error::OtherSettings {
        path: out.to_owned(),
        there: show(old.get(&setting)),
        here: show(all.get(&setting)),
        setting,
    })
}

/// Returns a value for people: without quotes, lists separated by commas.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Removes the files of a run from its directories, except for the lock.
fn clear(out: &Path, folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let path = entry.map_err(Error::io("read", folder))?.path();
        if path.is_dir() {
            remove_folder(&path)?;
        } else if path.file_name().is_some_and(|name| name != "lock") {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    for entry in fs::read_dir(out).map_err(Error::io("read", out))? {
        let path = entry.map_err(Error::io("read", out))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_result = name.starts_with("kept.")
            || [
                "documents.parquet",
                "pairs.parquet",
                "repeats.parquet",
                "passages.parquet",
                "places.parquet",
                "removed.parquet",
                "items.parquet",
                "matches.parquet",
                "summary.json",
                "report.html",
            ]
            .iter()
            .any(|result| name.starts_with(result));
        if is_result && path.is_dir() {
            remove_folder(&path)?;
        } else if is_result {
            fs::remove_file(&path).map_err(Error::io("remove", &path))?;
        }
    }
    Ok(())
}

fn remove_folder(path: &Path) -> Result<(), Error> {
    match disk::remove_folder(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

fn is_empty(folder: &Path) -> Result<bool, Error> {
    let mut entries = fs::read_dir(folder).map_err(Error::io("read", folder))?;
    Ok(entries.next().is_none())
}

/// Returns the boot ID of the machine; empty if it is unknown.
pub(crate) fn boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

/// Returns the CPU time of this process so far, to a hundredth of a second, if the operating system
/// reports it.
fn cpu_seconds() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name in the second field may contain anything, but ends with the last parenthesis.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / 100.0)
}

pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(Error::io("read", path))?,
    };
    serde_json::from_slice(&bytes)
        .map(Some)
        .map_err(|error| Error::Damaged {
            path: path.to_owned(),
            detail: error.to_string(),
        })
}

/// Writes a file atomically, as long as the machine runs.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let partial = beside(path);
    fs::write(&partial, json_bytes(value)).map_err(Error::io("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::io("rename", &partial))
}

/// Writes a file atomically. It is on disk when this returns.
pub(crate) fn write_json_to_disk(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    disk::replace(path, &json_bytes(value)).map_err(Error::io("write", path))
}

fn json_bytes(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(value).expect("own types have string keys");
    bytes.push(b'\n');
    bytes
}
