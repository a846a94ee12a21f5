//! The manifest: the list of the files of the set.
//!
//! A text of a few lines, which is replaced atomically: written to another file, synced, renamed.
//! Until the rename the old files are the set, after it the new ones. Files that are not in the
//! manifest were left by a crash and are removed.
//!
//! ```text
//! arose-seen 2
//! url-rules 1
//! width 16
//! strings 0
//! mark 12
//! log 7
//! run 3
//! run 6
//! checksum 0123456789abcdef
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use arose::digest::digest64;
use arose_dedup::disk;

use super::record::Width;
use crate::error::{Context, Error};
use crate::url;

/// The version of all formats in the directory.
const VERSION: u64 = 2;

/// The names of the files, as numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Manifest {
    pub(super) log: u64,
    /// Oldest first.
    pub(super) runs: Vec<u64>,
    /// The length of the kept strings that the sorted runs need.
    pub(super) strings_end: u64,
    /// The mark of the last commit in the sorted runs.
    pub(super) mark: u64,
}

impl Manifest {
    pub(super) fn log_path(&self, folder: &Path) -> PathBuf {
        folder.join(format!("log-{:08}", self.log))
    }

    /// Returns the number for the next file.
    pub(super) fn next_number(&self) -> u64 {
        let newest = self.runs.iter().copied().chain([self.log]).max();
        newest.unwrap_or_default() + 1
    }

    /// Reads the manifest of a directory, if it has one.
    pub(super) fn read(folder: &Path, width: Width) -> Result<Option<Self>, Error> {
        let path = path(folder);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.context("reading", &path)?,
        };
        Self::parse(&text, &path, width).map(Some)
    }

    /// Makes this the manifest of the directory, atomically; [`sync`] makes it durable.
    pub(super) fn write(&self, folder: &Path, width: Width) -> Result<(), Error> {
        let temporary = folder.join("manifest.tmp");
        // A durable manifest must not list files whose names are not durable.
        sync(folder)?;
        let write = |text: &str| {
            let file = disk::File::create(&temporary)?;
            file.write_all_at(text.as_bytes(), 0)?;
            file.sync()?;
            disk::rename(&temporary, &path(folder))
        };
        write(&self.text(width)).context("writing", &temporary)
    }

    /// Removes files of the set that are not in the manifest, as a crash leaves them.
    pub(super) fn remove_others(&self, folder: &Path) -> Result<(), Error> {
        let mut named: Vec<PathBuf> = self.runs.iter().map(|&run| run_path(folder, run)).collect();
        named.push(self.log_path(folder));
        for entry in fs::read_dir(folder).context("reading", folder)? {
            let path = entry.context("reading", folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_ours = ["log-", "run-", "manifest.tmp"]
                .iter()
                .any(|start| name.starts_with(start));
            if is_ours && !named.contains(&path) {
                disk::remove(&path).context("removing", &path)?;
            }
        }
        Ok(())
    }

    fn text(&self, width: Width) -> String {
        let mut text = format!(
            "arose-seen {VERSION}\nurl-rules {}\nwidth {}\nstrings {}\nmark {}\nlog {}\n",
            url::VERSION,
            width.n_bytes(),
            self.strings_end,
            self.mark,
            self.log,
        );
        for run in &self.runs {
            text.push_str(&format!("run {run}\n"));
        }
        let checksum = digest64(text.as_bytes());
        text.push_str(&format!("checksum {checksum:016x}\n"));
        text
    }

    fn parse(text: &str, path: &Path, width: Width) -> Result<Self, Error> {
        let damaged = || Error::damaged(path, "it is not a manifest");
        let mut fields = text.lines().map(|line| line.split_once(' '));
        let mut number = |key: &str| match fields.next().flatten() {
            Some((name, value)) if name == key => value.parse::<u64>().ok(),
            _ => None,
        };
        for (setting, expected) in [
            ("arose-seen", VERSION),
            ("url-rules", u64::from(url::VERSION)),
            ("width", width.n_bytes() as u64),
        ] {
            let found = number(setting).ok_or_else(damaged)?;
            if found != expected {
                return Err(Error::Mismatch {
                    path: path.to_owned(),
                    setting,
                    found,
                    expected,
                });
            }
        }
        let mut manifest = Self {
            strings_end: number("strings").ok_or_else(damaged)?,
            mark: number("mark").ok_or_else(damaged)?,
            log: number("log").ok_or_else(damaged)?,
            runs: Vec::new(),
        };
        while let Some(run) = number("run") {
            manifest.runs.push(run);
        }
        if manifest.text(width) == text {
            Ok(manifest)
        } else {
            Err(damaged())
        }
    }
}

/// Returns when the file names in the directory are on the disk.
pub(super) fn sync(folder: &Path) -> Result<(), Error> {
    disk::sync_folder(folder).context("writing", folder)
}

fn path(folder: &Path) -> PathBuf {
    folder.join("manifest")
}

pub(super) fn run_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("run-{number:08}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(folder.path(), Width::Key).unwrap(), None);
        let manifest = Manifest {
            log: 7,
            runs: vec![3, 6],
            strings_end: 12,
            mark: 5,
        };
        manifest.write(folder.path(), Width::Key).unwrap();
        let read = Manifest::read(folder.path(), Width::Key).unwrap();
        assert_eq!(read.as_ref(), Some(&manifest));
        assert_eq!(manifest.next_number(), 8);
        let other = Manifest::read(folder.path(), Width::KeyAndPlace).unwrap_err();
        assert!(
            other
                .to_string()
                .ends_with("was made with width 16, not 24"),
            "{other}"
        );
    }

    #[test]
    fn any_change_is_noticed() {
        let manifest = Manifest {
            log: 2,
            runs: vec![1],
            strings_end: 0,
            mark: 0,
        };
        let text = manifest.text(Width::Key);
        let parse = |text: &str| Manifest::parse(text, Path::new("manifest"), Width::Key);
        assert_eq!(parse(&text).unwrap(), manifest);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            assert!(parse(&String::from_utf8(changed).unwrap()).is_err(), "{at}");
            assert!(parse(&text[..at]).is_err(), "{at}");
        }
    }
}
