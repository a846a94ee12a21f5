//! Expands inputs (files, directories, patterns, `-`) to files, one after another.
//!
//! Directories are walked in the order of their names (see [`walk`](crate::source::walk)), so the
//! order of documents is that of the names on any machine.

use std::collections::{HashSet, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::Files;
use crate::document::{Item, Position, Reason};
use crate::error::Error;
use crate::format::row::RecordPlace;
use crate::source::walk::{Rules, Walk};

/// All files that `inputs` expand to, in order, readable or not. Standard input is not included.
///
/// # Errors
///
/// If an input passed by the user does not exist.
pub fn files(inputs: &[PathBuf], chosen: &Files) -> Result<Vec<PathBuf>, Error> {
    let files = Inputs::new(inputs, chosen)?.filter_map(|input| match input {
        Input::File(path, _) => Some(path.to_path_buf()),
        Input::Pipe(..) | Input::Skipped(_) => None,
    });
    Ok(files.collect())
}

/// An input to read, or a skipped one.
pub(crate) enum Input {
    /// A file, and whether it was passed by the user or found in a directory.
    File(Arc<Path>, Origin),
    /// Bytes from a pipe or another reader.
    Pipe(Arc<Path>, Box<dyn Read + Send>),
    /// A skipped input.
    Skipped(Item),
}

/// The origin of a file. A file passed by the user is read whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    Named,
    Directory,
}

/// All inputs in order.
pub(crate) struct Inputs {
    pending: VecDeque<Pending>,
    walk: Option<Walk>,
    rules: Rules,
    /// Digests of the real paths of all files found in directories.
    seen: HashSet<u128>,
}

enum Pending {
    Path(PathBuf),
    File(PathBuf, Origin),
    Pipe(Arc<Path>, Box<dyn Read + Send>),
    Skipped(Item),
}

impl Inputs {
    /// Checks that the inputs exist.
    pub(crate) fn new(names: &[PathBuf], files: &Files) -> Result<Self, Error> {
        let rules = Rules::new(files)?;
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
                pending.extend(matches(name, &rules)?);
            }
        }
        Ok(Self {
            rules,
            ..Self::of(pending)
        })
    }

    /// Files that are known to exist.
    pub(crate) fn of_files(files: impl Iterator<Item = (PathBuf, Origin)>) -> Self {
        Self::of(files.map(|(path, origin)| Pending::File(path, origin)))
    }

    /// A single input from any reader.
    pub(crate) fn from_reader(name: &Path, reader: Box<dyn Read + Send>) -> Self {
        Self::of([Pending::Pipe(name.into(), reader)])
    }

    fn of(pending: impl IntoIterator<Item = Pending>) -> Self {
        Self {
            pending: pending.into_iter().collect(),
            walk: None,
            rules: Rules::default(),
            seen: HashSet::new(),
        }
    }
}

/// The files that match a pattern, in order. As in a shell, `*` does not match hidden files.
fn matches(name: &Path, rules: &Rules) -> Result<Vec<Pending>, Error> {
    let pattern = name.to_str().filter(|name| name.contains(['*', '?', '[']));
    let Some(pattern) = pattern else {
        return Err(Error::NotFound {
            path: name.to_owned(),
        });
    };
    let owned = || pattern.to_owned();
    let options = glob::MatchOptions {
        require_literal_leading_dot: true,
        ..glob::MatchOptions::default()
    };
    let paths = glob::glob_with(pattern, options).map_err(|source| Error::Pattern {
        pattern: owned(),
        source,
    })?;
    let found: Vec<Pending> = paths
        .filter(|path| !path.as_ref().is_ok_and(|path| rules.is_skipped(path)))
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
    RecordPlace::new(&path.into(), Position::default())
        .skipped(Reason::Unreadable, error.to_string())
}

/// The label under which a file of unknown kind is counted: its extension in lower case.
pub(crate) fn extension(path: &Path) -> String {
    /// Longer extensions are part of a name that contains a dot.
    const LONGEST: usize = 16;
    let extension = path
        .extension()
        .map(|extension| extension.to_string_lossy());
    match extension {
        None => "no extension".to_owned(),
        Some(text) if text.len() > LONGEST || !text.chars().all(char::is_alphanumeric) => {
            "other".to_owned()
        }
        Some(text) => format!(".{}", text.to_lowercase()),
    }
}

impl Iterator for Inputs {
    type Item = Input;

    fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(walk) = &mut self.walk {
                match walk.next(&self.rules, &mut self.seen) {
                    Some(input) => return Some(input),
                    None => self.walk = None,
                }
            }
            match self.pending.pop_front()? {
                Pending::Skipped(item) => return Some(Input::Skipped(item)),
                Pending::Pipe(name, reader) => return Some(Input::Pipe(name, reader)),
                Pending::File(path, origin) => return Some(Input::File(path.into(), origin)),
                Pending::Path(path) if path.is_dir() => self.walk = Some(Walk::new(path)),
                Pending::Path(path) => return Some(Input::File(path.into(), Origin::Named)),
            }
        }
    }
}
