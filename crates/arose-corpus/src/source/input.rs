//! From what the user names (files, folders, patterns, `-`) to files, one after another.
//!
//! Folders are walked in the order of their names, so the order of documents is that of the names
//! on any machine. Symbolic links are followed; one that leads back to a folder it lies in is
//! reported and passed by.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use crate::document::{Item, Position, Reason};
use crate::error::Error;
use crate::format::row::Place;

/// All files that `inputs` stand for, in order, whether they will turn out to be readable or not;
/// standard input is none.
///
/// # Errors
///
/// If an input that was named does not exist.
pub fn files(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let files = Inputs::new(inputs)?.filter_map(|input| match input {
        Input::File(path, _) => Some(path.to_path_buf()),
        Input::Pipe(..) | Input::Skipped(_) => None,
    });
    Ok(files.collect())
}

/// Something to read, or why something is not.
pub(crate) enum Input {
    /// A file, and whether the user named it or a folder held it.
    File(Arc<Path>, Origin),
    /// Bytes that come by themselves.
    Pipe(Arc<Path>, Box<dyn Read + Send>),
    /// What was passed by.
    Skipped(Item),
}

/// How a file got here: one that was named is read whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Named,
    Folder,
}

/// All inputs in order.
pub(crate) struct Inputs {
    pending: VecDeque<Pending>,
    walk: Option<walkdir::IntoIter>,
}

enum Pending {
    Path(PathBuf),
    File(PathBuf, Origin),
    Pipe(Arc<Path>, Box<dyn Read + Send>),
    Skipped(Item),
}

impl Inputs {
    /// Checks that what was named exists.
    pub(crate) fn new(names: &[PathBuf]) -> Result<Self, Error> {
        let mut pending = VecDeque::new();
        for name in names {
            if name.as_os_str() == "-" {
                pending.push_back(Pending::Pipe(
                    name.as_path().into(),
                    Box::new(std::io::stdin()),
                ));
            } else if name.symlink_metadata().is_ok() {
                pending.push_back(Pending::Path(name.clone()));
            } else {
                pending.extend(matches(name)?);
            }
        }
        Ok(Self {
            pending,
            walk: None,
        })
    }

    /// Files that are known to be there.
    pub(crate) fn of_files(files: impl Iterator<Item = (PathBuf, Origin)>) -> Self {
        let files = files.map(|(path, origin)| Pending::File(path, origin));
        Self {
            pending: files.collect(),
            walk: None,
        }
    }

    /// A single input from anywhere.
    pub(crate) fn from_reader(name: &Path, reader: Box<dyn Read + Send>) -> Self {
        Self {
            pending: VecDeque::from([Pending::Pipe(name.into(), reader)]),
            walk: None,
        }
    }
}

/// The files that a pattern stands for, in order.
fn matches(name: &Path) -> Result<Vec<Pending>, Error> {
    let pattern = name.to_str().filter(|name| name.contains(['*', '?', '[']));
    let Some(pattern) = pattern else {
        return Err(Error::NotFound {
            path: name.to_owned(),
        });
    };
    let owned = || pattern.to_owned();
    let paths = glob::glob(pattern).map_err(|source| Error::Pattern {
        pattern: owned(),
        source,
    })?;
    let found: Vec<Pending> = paths
        .map(|path| match path {
            Ok(path) => Pending::Path(path),
            Err(error) => Pending::Skipped(unreadable(error.path(), error.error())),
        })
        .collect();
    match found.is_empty() {
        true => Err(Error::NoMatch { pattern: owned() }),
        false => Ok(found),
    }
}

pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Item {
    Place::new(&path.into(), Position::default()).skipped(Reason::Unreadable, error.to_string())
}

impl Iterator for Inputs {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(walk) = &mut self.walk {
                match walk.find_map(walked) {
                    Some(input) => return Some(input),
                    None => self.walk = None,
                }
            }
            match self.pending.pop_front()? {
                Pending::Skipped(item) => return Some(Input::Skipped(item)),
                Pending::Pipe(name, reader) => return Some(Input::Pipe(name, reader)),
                Pending::File(path, origin) => return Some(Input::File(path.into(), origin)),
                Pending::Path(path) if path.is_dir() => {
                    let walk = WalkDir::new(path).follow_links(true).sort_by_file_name();
                    self.walk = Some(walk.into_iter());
                }
                Pending::Path(path) => return Some(Input::File(path.into(), Origin::Named)),
            }
        }
    }
}

/// What a step of a walk means; nothing for a folder.
fn walked(entry: walkdir::Result<walkdir::DirEntry>) -> Option<Input> {
    let error = match entry {
        Ok(entry) if entry.file_type().is_dir() => return None,
        Ok(entry) if entry.file_type().is_file() => {
            return Some(Input::File(entry.into_path().into(), Origin::Folder));
        }
        Ok(entry) => {
            let place = Place::new(&entry.path().into(), Position::default());
            let item = place.skipped(Reason::UnknownFormat, "not a regular file");
            return Some(Input::Skipped(item));
        }
        Err(error) => error,
    };
    let path = error.path().unwrap_or(Path::new("")).into();
    let place = Place::new(&path, Position::default());
    Some(Input::Skipped(match error.loop_ancestor() {
        Some(ancestor) => {
            let detail = format!("it leads back to {}", ancestor.display());
            place.skipped(Reason::SymlinkLoop, detail)
        }
        // The place is told already; only the cause is missing.
        None => {
            let cause = error.io_error().map(ToString::to_string);
            place.skipped(
                Reason::Unreadable,
                cause.unwrap_or_else(|| error.to_string()),
            )
        }
    }))
}
