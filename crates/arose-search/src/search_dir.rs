//! Directories that can be searched: the output of a run, or web archives.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use arose_corpus::html::Mode;
use arose_corpus::{Config, Revisits, Statuses, Stored, fetch_stored};
use arose_dedup::results::{Summary, documents};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::results::Indexed;

/// Maximum depth at which archives are searched for.
const MAX_DEPTH: usize = 8;

/// The subdirectory of the index; another layout gets another name.
const INDEX: &str = "search-5";

/// The file that identifies a crawl, and the directory of its archives.
const CRAWL: (&str, &str) = ("journal", "archive");

/// A directory that can be searched.
#[derive(Debug, Clone)]
pub struct SearchDir {
    /// The directory.
    pub path: PathBuf,
    /// Its content.
    pub kind: Kind,
    /// The absolute path of the same directory.
    pub(crate) base: PathBuf,
    /// The directory of its index, if it is not in the directory itself.
    index: Option<PathBuf>,
}

/// What a directory contains.
#[derive(Debug, Clone)]
pub enum Kind {
    /// The output of `arose dedup`.
    Run(Box<Summary>),
    /// Web archives, for example of a crawl, in the order of their names.
    Archives(Vec<PathBuf>),
}

impl SearchDir {
    /// Determines what a directory contains.
    ///
    /// # Errors
    ///
    /// If it does not exist, contains nothing that can be searched, or contains a damaged run.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_file() {
            return Err(Error::OtherKind {
                path: path.to_owned(),
            });
        }
        fs::read_dir(path).map_err(Error::io("open the directory", path))?;
        let base = fs::canonicalize(path).map_err(Error::io("open the directory", path))?;
        let kind = match path.join("documents.parquet").exists() {
            true => Kind::Run(Box::new(Summary::open(&path.join("summary.json"))?)),
            false => Kind::Archives(archives(&base)?),
        };
        match &kind {
            Kind::Archives(files) if files.is_empty() => Err(Error::OtherKind {
                path: path.to_owned(),
            }),
            _ => Ok(Self {
                path: path.to_owned(),
                kind,
                base,
                index: None,
            }),
        }
    }

    /// The same directory with its index in `index`, for directories that cannot be written to.
    #[must_use]
    pub fn with_index(mut self, index: PathBuf) -> Self {
        self.index = Some(index);
        self
    }

    /// Determines again what the directory contains.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub fn reopen(&self) -> Result<Self, Error> {
        let mut folder = Self::open(&self.path)?;
        folder.index = self.index.clone();
        Ok(folder)
    }

    /// The directory of the index.
    #[must_use]
    pub fn index_path(&self) -> PathBuf {
        let inside = || self.path.join(INDEX);
        self.index
            .as_ref()
            .map_or_else(inside, |index| index.join(INDEX))
    }

    /// The table of documents of a run.
    pub(crate) fn documents(&self) -> PathBuf {
        self.path.join("documents.parquet")
    }

    /// How documents are read for searching: pages without navigation and without the URLs of
    /// links.
    pub(crate) fn reading(&self) -> Config {
        let mut config = match &self.kind {
            Kind::Run(summary) => summary.reading(),
            Kind::Archives(_) => Config {
                statuses: Statuses::Success,
                revisits: Revisits::Read,
                ..Config::default()
            },
        };
        if matches!(config.html.mode, Mode::Henzinger | Mode::Visible) {
            config.html.mode = Mode::Content;
        }
        config
    }

    /// The current state of the files that the index is made from.
    ///
    /// # Errors
    ///
    /// If the table of documents cannot be read.
    pub(crate) fn state(&self) -> Result<State, Error> {
        let files = match &self.kind {
            Kind::Archives(files) => files.clone(),
            Kind::Run(_) => {
                let tables = ["summary.json", "documents.parquet", "pairs.parquet"];
                let mut files: Vec<PathBuf> = tables.map(|name| self.base.join(name)).to_vec();
                files.extend(self.sources()?);
                files
            }
        };
        Ok(State(files.iter().map(|file| Stamp::of(file)).collect()))
    }

    /// Whether a document was read from an archive, which contains its page.
    #[must_use]
    pub fn is_archived(&self, document: &Indexed) -> bool {
        document.position.is_some() && is_archive(Path::new(&document.source))
    }

    /// The page of a document in the archive; none if it no longer exists.
    ///
    /// # Errors
    ///
    /// If the file does not exist.
    pub fn stored(&self, document: &Indexed) -> Result<Option<Stored>, Error> {
        let file = match &self.kind {
            Kind::Run(_) => self.source(&document.source),
            Kind::Archives(_) => self.base.join(&document.source),
        };
        match document.position {
            Some(position) => Ok(fetch_stored(&file, position, &self.reading())?),
            None => Ok(None),
        }
    }

    /// The path of the file that the table of a run calls `source`.
    pub(crate) fn source(&self, source: &str) -> PathBuf {
        match &self.kind {
            Kind::Run(summary) => summary.source(&self.path, source),
            Kind::Archives(_) => PathBuf::from(source),
        }
    }

    /// The files that documents were read from, in the order of the documents.
    fn sources(&self) -> Result<Vec<PathBuf>, Error> {
        let mut sources: Vec<String> = Vec::new();
        documents::for_each_source(&self.documents(), |source| {
            if sources.last().is_none_or(|last| last != source) {
                sources.push(source.to_owned());
            }
        })?;
        Ok(sources.iter().map(|source| self.source(source)).collect())
    }
}

/// The state of the files that an index is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct State(pub(crate) Vec<Stamp>);

impl State {
    /// Whether the files of the directory are unchanged, as far as size, time and permissions show.
    #[must_use]
    pub fn is_current(&self, folder: &SearchDir) -> bool {
        let is_complete = match &folder.kind {
            Kind::Run(_) => true,
            Kind::Archives(_) => archives(&folder.base)
                .is_ok_and(|files| files.iter().eq(self.0.iter().map(|stamp| &stamp.path))),
        };
        is_complete && self.0.iter().all(|stamp| *stamp == Stamp::of(&stamp.path))
    }
}

/// The state of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Stamp {
    path: PathBuf,
    /// None if the file does not exist.
    n_bytes: Option<u64>,
    /// Nanoseconds since 1970.
    changed: Option<u64>,
    /// Whether the file can be opened; a change of this does not change the time.
    is_readable: bool,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        let changed = metadata.as_ref().and_then(|metadata| {
            let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(since.as_nanos()).ok()
        });
        let is_file = metadata.as_ref().is_some_and(fs::Metadata::is_file);
        Self {
            path: path.to_owned(),
            n_bytes: metadata.map(|metadata| metadata.len()),
            changed,
            is_readable: is_file && fs::File::open(path).is_ok(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The directory of the archives. In a crawl, only its archive is searched, because its robots.txt
/// files are next to it, and possibly the output of a run.
fn archive_root(base: &Path) -> PathBuf {
    let (journal, archive) = CRAWL;
    match base.join(journal).is_file() && base.join(archive).is_dir() {
        true => base.join(archive),
        false => base.to_owned(),
    }
}

/// All web archives below a directory, in the order of their names. The directory may contain a
/// crawl, or those of all agents of one.
fn archives(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![(archive_root(folder), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(Error::io("open the directory", &folder))?;
        for entry in entries {
            let path = entry
                .map_err(Error::io("read the directory", &folder))?
                .path();
            // Symbolic links are not followed: only the directory itself is searched.
            let kind = fs::symlink_metadata(&path).map(|metadata| metadata.file_type());
            match kind {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                    folders.push((archive_root(&path), depth + 1));
                }
                Ok(kind) if kind.is_file() && is_archive(&path) => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_archive(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let name = name
        .strip_suffix(".gz")
        .or(name.strip_suffix(".zst"))
        .unwrap_or(&name);
    name.ends_with(".warc") || name.ends_with(".arc")
}
