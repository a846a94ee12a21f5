//! What can be searched: the output of a run, or a folder of web archives.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use arose_corpus::html::Mode;
use arose_corpus::{Config, Statuses};
use arose_dedup::results::{Summary, documents};
use serde::{Deserialize, Serialize};

use crate::Error;

/// How deep archives are looked for.
const MAX_DEPTH: usize = 8;

/// Where in the folder the index is; another layout gets another name.
const INDEX: &str = "search-1";

/// A folder that can be searched.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The folder.
    pub path: PathBuf,
    /// What it holds.
    pub kind: Kind,
}

/// What a folder holds.
#[derive(Debug, Clone)]
pub enum Kind {
    /// The output of `arose dedup`.
    Run(Box<Summary>),
    /// Web archives, such as a crawl writes; in the order of their names.
    Archives(Vec<PathBuf>),
}

impl Folder {
    /// Looks what a folder holds.
    ///
    /// # Errors
    ///
    /// If it is not there, holds nothing that can be searched, or a damaged run.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let entries = fs::read_dir(path).map_err(Error::io("open the folder", path))?;
        drop(entries);
        let kind = match path.join("documents.parquet").exists() {
            true => Kind::Run(Box::new(Summary::open(&path.join("summary.json"))?)),
            false => Kind::Archives(archives(path)?),
        };
        match &kind {
            Kind::Archives(files) if files.is_empty() => Err(Error::OtherKind {
                path: path.to_owned(),
            }),
            _ => Ok(Self {
                path: path.to_owned(),
                kind,
            }),
        }
    }

    /// Where the index of this folder is.
    #[must_use]
    pub fn index_path(&self) -> PathBuf {
        self.path.join(INDEX)
    }

    /// The table of documents of a run.
    pub(crate) fn documents(&self) -> PathBuf {
        self.path.join("documents.parquet")
    }

    /// How the documents are read for searching: pages without navigation and addresses of links.
    pub(crate) fn reading(&self) -> Config {
        let mut config = match &self.kind {
            Kind::Run(summary) => summary.reading(),
            Kind::Archives(_) => Config {
                statuses: Statuses::Success,
                ..Config::default()
            },
        };
        if config.html.mode == Mode::Henzinger {
            config.html.mode = Mode::Content;
        }
        config
    }

    /// The files that the index is made from, as they are now.
    pub(crate) fn stamps(&self) -> Result<Vec<Stamp>, Error> {
        let files = match &self.kind {
            Kind::Archives(files) => files.clone(),
            Kind::Run(_) => {
                let mut files = vec![self.path.join("summary.json"), self.documents()];
                files.extend(self.sources()?);
                files
            }
        };
        Ok(files.iter().map(|file| Stamp::of(file)).collect())
    }

    /// The files that documents were read from, in the order of the documents.
    pub(crate) fn sources(&self) -> Result<Vec<PathBuf>, Error> {
        let Kind::Run(_) = &self.kind else {
            return Ok(Vec::new());
        };
        let mut sources: Vec<PathBuf> = Vec::new();
        documents::for_each_source(&self.documents(), |source| {
            if sources.last().is_none_or(|last| last.as_os_str() != source) {
                sources.push(PathBuf::from(source));
            }
        })?;
        Ok(sources)
    }
}

/// A file as it was at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    path: PathBuf,
    /// None if it is not there.
    n_bytes: Option<u64>,
    /// Nanoseconds since 1970.
    changed: Option<u64>,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let metadata = fs::metadata(path).ok();
        let changed = metadata.as_ref().and_then(|metadata| {
            let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            u64::try_from(since.as_nanos()).ok()
        });
        Self {
            path: path.to_owned(),
            n_bytes: metadata.map(|metadata| metadata.len()),
            changed,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// All web archives below a folder, in the order of their names.
fn archives(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(Error::io("open the folder", &folder))?;
        for entry in entries {
            let path = entry.map_err(Error::io("read the folder", &folder))?.path();
            // Links are not followed: what is searched is in the folder.
            let kind = fs::symlink_metadata(&path).map(|metadata| metadata.file_type());
            match kind {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
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
