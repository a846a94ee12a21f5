//! The inputs of a run: their files, and the comparison with those of an earlier run.
//!
//! A run is identified by its settings and by its input files with their sizes and times. So added,
//! changed or removed files are detected. Nothing is known about standard input beforehand, so it
//! never counts as the same.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::error::InputChange;
use crate::job::not_read;
use crate::source::{InputFile, path_text};
use crate::stage::kept::output_paths;
use crate::work::Work;
use crate::{Error, Progress};

/// The inputs of a run.
pub(crate) struct Inputs {
    /// As passed by the user.
    pub(crate) names: Vec<PathBuf>,
    /// All their files, in order.
    pub(crate) files: Vec<InputFile>,
    /// The only input file, if it is to be moved.
    pub(crate) moved: Option<Moved>,
}

/// How the documents of a run are named in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Naming {
    /// By their URL, or else by file and ID, since the IDs of two files may be the same.
    Files,
    /// By their ID, since the file of a table is temporary and its IDs contain the name of the
    /// table.
    Table,
}

/// A file that is moved to the output directory and renamed.
#[derive(Debug, Clone)]
pub struct Moved {
    /// The new name, without an extension.
    pub name: String,
    /// A Parquet file.
    pub file: PathBuf,
}

impl Moved {
    /// Moves the file to a directory of the run. Returns its new path.
    pub(crate) fn keep(
        &self,
        stage: &str,
        work: &Work,
        progress: &Progress,
    ) -> Result<PathBuf, Error> {
        let file_name = format!("{}.parquet", self.name);
        work.stage(stage, progress, |folder| {
            let path = folder.join(&file_name);
            // A rename cannot move a file to another file system.
            if fs::rename(&self.file, &path).is_err() {
                fs::copy(&self.file, &path).map_err(Error::io("write", &path))?;
            }
            Ok(())
        })?;
        Ok(work.path(stage).join(file_name))
    }
}

impl Inputs {
    /// Returns the total size of all files in bytes.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.n_bytes).sum()
    }

    /// Lists the files and returns an error for those that a run into `out` would harm.
    ///
    /// # Errors
    ///
    /// If an input does not exist or is inside the output, or if two files would be written to one
    /// path. Nothing has been changed by then.
    pub(crate) fn list(names: &[PathBuf], config: &Config, out: &Path) -> Result<Self, Error> {
        let is_file = |name: &&PathBuf| name.as_os_str() != "-";
        let files: Vec<PathBuf> = names.iter().filter(is_file).cloned().collect();
        let mut chosen = config.corpus.files.clone();
        chosen.skip.extend(not_read(config, out));
        let paths = arose_corpus::files(&files, &chosen)?;
        check_apart(&files, &paths, out)?;
        let inputs = Self {
            names: names.to_vec(),
            files: paths.into_iter().map(InputFile::of_any).collect(),
            moved: None,
        };
        inputs.check_distinct()?;
        Ok(inputs)
    }

    /// Returns the one file that is to be moved.
    pub(crate) fn moved(input: &Moved) -> Self {
        Self {
            names: vec![PathBuf::from(&input.name)],
            files: Vec::new(),
            moved: Some(input.clone()),
        }
    }

    /// Returns whether there is input that cannot be read twice: standard input, or a table.
    pub(crate) fn is_read_once(&self) -> bool {
        self.moved.is_some() || self.names.iter().any(|name| name.as_os_str() == "-")
    }

    /// Returns how the documents are named in an index.
    pub(crate) fn naming(&self) -> Naming {
        match self.moved {
            Some(_) => Naming::Table,
            None => Naming::Files,
        }
    }

    /// Returns the names as text.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.names.iter().map(|name| path_text(name)).collect()
    }

    /// Returns an error if a run in `out` had other inputs.
    pub(crate) fn compare(&self, there: &[InputFile], out: &Path) -> Result<(), Error> {
        if self.is_read_once() {
            return Err(Error::ReadOnce {
                path: out.to_owned(),
                input: match self.moved {
                    Some(_) => "the table",
                    None => "standard input",
                },
            });
        }
        let changed = |path: &Path, change| {
            let path = path.to_owned();
            Err(Error::InputChanged { path, change })
        };
        let old = by_path(there);
        for file in &self.files {
            match old.get(&*file.path) {
                None => return changed(&file.path, InputChange::New),
                Some(old) if *old != file => return changed(&file.path, InputChange::Content),
                Some(_) => {}
            }
        }
        let new = by_path(&self.files);
        let gone = there.iter().find(|file| !new.contains_key(&*file.path));
        gone.map_or(Ok(()), |file| changed(&file.path, InputChange::Gone))
    }

    /// Returns an error if a file has changed since it was listed or read.
    pub(crate) fn check_read(&self, sources: &[InputFile]) -> Result<(), Error> {
        let listed = by_path(&self.files);
        for source in sources {
            source.check()?;
            let change = match listed.get(&*source.path) {
                Some(listed) if *listed == source => continue,
                Some(_) => InputChange::Content,
                None => InputChange::New,
            };
            return Err(Error::InputChanged {
                path: source.path.clone(),
                change,
            });
        }
        Ok(())
    }

    /// Returns an error if two files would be written to one path.
    fn check_distinct(&self) -> Result<(), Error> {
        let mut taken: BTreeMap<PathBuf, &Path> = BTreeMap::new();
        for (file, output) in self.files.iter().zip(output_paths(&self.files)) {
            match taken.insert(output.clone(), &file.path) {
                Some(other) if other != file.path => {
                    return Err(Error::OneOutput {
                        first: other.to_owned(),
                        second: file.path.clone(),
                        output,
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn by_path(files: &[InputFile]) -> BTreeMap<&Path, &InputFile> {
    files.iter().map(|file| (&*file.path, file)).collect()
}

/// Returns an error if an input is inside the output directory. An output inside an input is
/// omitted.
fn check_apart(names: &[PathBuf], files: &[PathBuf], out: &Path) -> Result<(), Error> {
    let out_real = real(out);
    let refused = |input: &Path| {
        Err(Error::InsideOutput {
            input: input.to_owned(),
            out: out.to_owned(),
        })
    };
    for name in names.iter().filter(|name| name.is_dir()) {
        let name_real = real(name);
        if name_real.starts_with(&out_real) {
            return refused(name);
        }
    }
    // Most files are in the same directory, and few are links.
    let mut is_inside: BTreeMap<&Path, bool> = BTreeMap::new();
    for file in files {
        let folder = file.parent().unwrap_or(Path::new(""));
        let is_link = fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_symlink());
        let by_folder = *is_inside
            .entry(folder)
            .or_insert_with(|| real(folder).starts_with(&out_real));
        if by_folder || is_link && real(file).starts_with(&out_real) {
            return refused(file);
        }
    }
    Ok(())
}

/// Returns a path without links and dots. If it does not exist, only its existing part is resolved.
fn real(path: &Path) -> PathBuf {
    let path = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}
