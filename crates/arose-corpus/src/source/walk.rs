//! Walks a directory and selects the files to read, each once.
//!
//! Entries come in the order of their names. Hidden entries, excluded entries and the directories
//! of [`Files::skip`] are omitted without a warning, as the user requested. Symbolic links are
//! followed. A file or directory that several links lead to is read where it is met first, and only
//! counted after that. A link to a directory that contains the link is reported.
//!
//! *Memory.* 16 bytes per file and directory found: the digest of its real path, to recognize it
//! again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use arose::digest::Digest;
use glob::{MatchOptions, Pattern};
use walkdir::{DirEntry, WalkDir};

use crate::config::Files;
use crate::document::{Item, Position, Reason};
use crate::error::Error;
use crate::format::row::RecordPlace;
use crate::source::input::{Input, Origin};

/// `*` matches within a path segment; `**` matches across segments.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// [`Files`], compiled.
#[derive(Default)]
pub(crate) struct Rules {
    include: Vec<Glob>,
    exclude: Vec<Glob>,
    /// Real paths.
    skip: Vec<PathBuf>,
}

impl Rules {
    pub(crate) fn new(files: &Files) -> Result<Self, Error> {
        let globs = |patterns: &[String]| -> Result<Vec<Glob>, Error> {
            patterns.iter().map(|pattern| Glob::new(pattern)).collect()
        };
        Ok(Self {
            include: globs(&files.include)?,
            exclude: globs(&files.exclude)?,
            // A directory that does not exist cannot be met.
            skip: files.skip.iter().flat_map(std::fs::canonicalize).collect(),
        })
    }

    /// Whether a path is, or is inside, one of the directories to skip.
    pub(crate) fn is_skipped(&self, path: &Path) -> bool {
        !self.skip.is_empty()
            && std::fs::canonicalize(path).is_ok_and(|real| self.is_skipped_real(&real))
    }

    fn is_skipped_real(&self, real: &Path) -> bool {
        self.skip.iter().any(|skip| real.starts_with(skip))
    }

    fn is_excluded(&self, below: &Path) -> bool {
        self.exclude.iter().any(|glob| glob.matches(below))
    }

    fn is_included(&self, below: &Path) -> bool {
        self.include.is_empty() || self.include.iter().any(|glob| glob.matches(below))
    }
}

/// A pattern for names, or for paths if it has a `/`.
struct Glob {
    pattern: Pattern,
    is_path: bool,
}

impl Glob {
    fn new(text: &str) -> Result<Self, Error> {
        let trimmed = text.trim_start_matches("./").trim_end_matches('/');
        let pattern = Pattern::new(trimmed).map_err(|source| Error::Pattern {
            pattern: text.to_owned(),
            source,
        })?;
        let is_path = trimmed.contains('/');
        Ok(Self { pattern, is_path })
    }

    fn matches(&self, below: &Path) -> bool {
        let path = match self.is_path {
            true => below,
            false => below.file_name().map_or(below, Path::new),
        };
        self.pattern.matches_path_with(path, MATCHING)
    }
}

/// A directory being walked.
pub(crate) struct Walk {
    root: PathBuf,
    real_root: Option<PathBuf>,
    entries: walkdir::IntoIter,
    /// The depth of the outermost linked directory that the walk is in.
    link_depth: Option<usize>,
    is_empty: bool,
}

impl Walk {
    pub(crate) fn new(root: PathBuf) -> Self {
        let walk = WalkDir::new(&root).follow_links(true).sort_by_file_name();
        Self {
            real_root: std::fs::canonicalize(&root).ok(),
            entries: walk.into_iter(),
            root,
            link_depth: None,
            is_empty: true,
        }
    }

    /// The next file or warning; none at the end.
    pub(crate) fn next(&mut self, rules: &Rules, seen: &mut HashSet<u128>) -> Option<Input> {
        while let Some(entry) = self.entries.next() {
            let found = match entry {
                Ok(entry) if self.is_left_out(&entry, rules) => {
                    if entry.file_type().is_dir() {
                        self.entries.skip_current_dir();
                    }
                    None
                }
                Ok(entry) if self.is_known(&entry, seen) => {
                    if entry.file_type().is_dir() {
                        self.entries.skip_current_dir();
                    }
                    let place = RecordPlace::new(&entry.path().into(), Position::default());
                    Some(Input::Skipped(place.skipped(Reason::AlreadyRead, "")))
                }
                Ok(entry) => found(&entry),
                Err(error) => Some(Input::Skipped(failure(&error))),
            };
            if found.is_some() {
                self.is_empty = false;
                return found;
            }
        }
        // Reported once.
        std::mem::take(&mut self.is_empty).then(|| {
            let place = RecordPlace::new(&self.root.as_path().into(), Position::default());
            Input::Skipped(place.skipped(Reason::Empty, "directory without readable files"))
        })
    }

    /// Whether an entry, and everything in it, is left out.
    fn is_left_out(&mut self, entry: &DirEntry, rules: &Rules) -> bool {
        let (depth, is_dir) = (entry.depth(), entry.file_type().is_dir());
        if self.link_depth.is_some_and(|link| depth <= link) {
            self.link_depth = None;
        }
        if entry.path_is_symlink() && is_dir && depth > 0 {
            self.link_depth.get_or_insert(depth);
        }
        let is_hidden = depth > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
        if is_hidden || (depth > 0 && rules.is_excluded(self.below(entry))) {
            return true;
        }
        match is_dir {
            true => self
                .real_path(entry)
                .is_some_and(|real| rules.is_skipped_real(&real)),
            false => !rules.is_included(self.below(entry)),
        }
    }

    /// Whether a file or directory was met before. A directory is not entered twice. Otherwise
    /// links from each of a series of directories to the next would multiply the number of paths.
    fn is_known(&self, entry: &DirEntry, seen: &mut HashSet<u128>) -> bool {
        let kind = entry.file_type();
        let digest = |real: PathBuf| Digest::of_bytes(real.as_os_str().as_encoded_bytes()).0;
        let is_new = |real| seen.insert(digest(real));
        (kind.is_dir() || kind.is_file()) && !self.real_path(entry).is_none_or(is_new)
    }

    /// The path below the root.
    fn below<'a>(&self, entry: &'a DirEntry) -> &'a Path {
        entry
            .path()
            .strip_prefix(&self.root)
            .unwrap_or(entry.path())
    }

    /// The path without symbolic links; computed only for an entry behind a link.
    fn real_path(&self, entry: &DirEntry) -> Option<PathBuf> {
        match self.link_depth.is_some() || entry.path_is_symlink() {
            true => std::fs::canonicalize(entry.path()).ok(),
            false => Some(self.real_root.as_ref()?.join(self.below(entry))),
        }
    }
}

/// The input for an entry; none for a directory.
fn found(entry: &DirEntry) -> Option<Input> {
    let kind = entry.file_type();
    let place = RecordPlace::new(&entry.path().into(), Position::default());
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => None,
        (_, true) => Some(Input::File(place.source, Origin::Directory)),
        _ => {
            let item = place.skipped(Reason::UnknownFormat, "not a regular file");
            Some(Input::Skipped(item))
        }
    }
}

fn failure(error: &walkdir::Error) -> Item {
    let path = error.path().unwrap_or(Path::new("")).into();
    let place = RecordPlace::new(&path, Position::default());
    match error.loop_ancestor() {
        Some(ancestor) => {
            let detail = format!("leads back to {}", ancestor.display());
            place.skipped(Reason::SymlinkLoop, detail)
        }
        // The warning already has the path; only the cause is missing.
        None => {
            let cause = error.io_error().map(ToString::to_string);
            let detail = cause.unwrap_or_else(|| error.to_string());
            place.skipped(Reason::Unreadable, detail)
        }
    }
}
