//! The directory of an index: locks it for one writer and removes stale files.

use std::fs;
use std::path::{Path, PathBuf};

use super::Error;
use super::file::Content;
use super::manifest::Manifest;
use crate::disk::{self, Lock};

/// Files that are written but not yet part of the index. They are removed unless
/// [kept](Fresh::keep).
#[derive(Debug)]
pub(super) struct Fresh<'a> {
    folder: &'a Path,
    files: Vec<(Content, u64)>,
}

impl<'a> Fresh<'a> {
    pub(super) fn new(folder: &'a Path) -> Self {
        let files = Vec::new();
        Self { folder, files }
    }

    /// Returns the path of a file to write.
    pub(super) fn path(&mut self, content: Content, number: u64) -> PathBuf {
        self.files.push((content, number));
        content.path(self.folder, number)
    }

    /// Keeps the files, which the manifest now lists.
    pub(super) fn keep(mut self, manifest: &Manifest) {
        self.files
            .retain(|&(content, number)| !manifest.names(content, number));
    }
}

impl Drop for Fresh<'_> {
    fn drop(&mut self) {
        for &(content, number) in &self.files {
            let path = content.path(self.folder, number);
            discard(&path);
            discard(&path.with_extension("part"));
        }
    }
}

/// Locks a directory for one writer.
pub(super) fn take_lock(folder: &Path) -> Result<Lock, Error> {
    let path = folder.join(LOCK);
    let lock = Lock::take(&path).map_err(Error::io("lock", &path))?;
    lock.ok_or_else(|| Error::Locked {
        path: folder.to_owned(),
    })
}

pub(super) const LOCK: &str = "lock";

/// Returns an error if a directory contains anything except the remains of an interrupted
/// `Index::create`.
pub(super) fn check_unused(folder: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let name = entry.map_err(Error::io("read", folder))?.file_name();
        let name = name.to_string_lossy();
        if name != LOCK && name != "manifest.part" && name != "log-000001" {
            return Err(Error::NotEmpty {
                path: folder.to_owned(),
            });
        }
    }
    Ok(())
}

/// Removes index files that the manifest does not list: a writer died while it wrote them.
pub(super) fn remove_leftovers(folder: &Path, manifest: &Manifest) -> Result<(), Error> {
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let stem = name.strip_suffix(".part");
        let is_ours = |name: &str| name == "manifest" || Content::of_name(name).is_some();
        let is_left = match stem {
            Some(stem) => is_ours(stem),
            None => Content::of_name(&name)
                .is_some_and(|(content, number)| !manifest.names(content, number)),
        };
        if is_left {
            discard(&entry.path());
        }
    }
    Ok(())
}

/// Removes a file that is no longer part of the index. If this fails, the next opening removes it.
pub(super) fn discard(path: &Path) {
    let _ = disk::remove(path);
}

/// Tries again if a file disappeared because a writer in another process replaced it.
pub(super) fn retry<T>(open: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
    let mut n_left = 20;
    loop {
        match open() {
            Err(Error::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound && n_left > 0 =>
            {
                n_left -= 1;
            }
            result => return result,
        }
    }
}
