//! Parts of a corpus, for readers on many machines.
//!
//! [`parts`] splits the inputs into parts in input order: a range of lines of a large uncompressed
//! JSON Lines file, one other large file, or a number of small files. [`read_part`] reads one of
//! them. The items of all parts, in order, are those of [`read`](crate::read).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::document::{Item, Warning};
use crate::error::Error;
use crate::output::keep::is_plain_json_lines;
use crate::pipeline::read::Documents;
use crate::source::input::{Input, Inputs, Origin};

/// Maximum number of small files in a part.
const MAX_FILES: usize = 4096;

/// The input of one reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Files in order.
    pub files: Vec<PartFile>,
    /// The lines of its only file that start in this range; all lines if none.
    pub range: Option<Range<u64>>,
}

/// A file of a part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether it was found in a directory. Such a file is skipped if neither its name nor its
    /// content shows its format.
    pub is_found: bool,
}

/// Splits `inputs` into parts of about `n_bytes`, and also returns the skipped items.
///
/// # Errors
///
/// If an input passed by the user does not exist.
pub fn parts(
    inputs: &[PathBuf],
    n_bytes: u64,
    config: &Config,
) -> Result<(Vec<Part>, Vec<Warning>), Error> {
    let n_bytes = n_bytes.max(1);
    let mut cutter = Cutter {
        n_bytes,
        parts: Vec::new(),
        small: Vec::new(),
        small_bytes: 0,
    };
    let mut skipped = Vec::new();
    for input in Inputs::new(inputs, &config.files)? {
        match input {
            Input::File(path, origin) => cutter.push(&path, origin, config),
            Input::Skipped(Item::Skipped(warning)) => skipped.push(warning),
            Input::Skipped(Item::Document(_)) | Input::Pipe(..) => {}
        }
    }
    cutter.end_small();
    Ok((cutter.parts, skipped))
}

struct Cutter {
    n_bytes: u64,
    parts: Vec<Part>,
    /// Files for the next part.
    small: Vec<PartFile>,
    small_bytes: u64,
}

impl Cutter {
    fn push(&mut self, path: &Path, origin: Origin, config: &Config) {
        let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let file = PartFile {
            path: path.to_owned(),
            is_found: origin == Origin::Directory,
        };
        if length <= self.n_bytes {
            self.small.push(file);
            self.small_bytes += length;
            if self.small_bytes >= self.n_bytes || self.small.len() == MAX_FILES {
                self.end_small();
            }
            return;
        }
        self.end_small();
        if is_named_json_lines(path) && is_plain_json_lines(path, config) {
            let starts = (0..length).step_by(usize::try_from(self.n_bytes).unwrap_or(usize::MAX));
            for start in starts {
                self.parts.push(Part {
                    files: vec![file.clone()],
                    range: Some(start..(start + self.n_bytes).min(length)),
                });
            }
        } else {
            self.parts.push(Part {
                files: vec![file],
                range: None,
            });
        }
    }

    fn end_small(&mut self) {
        self.small_bytes = 0;
        if !self.small.is_empty() {
            self.parts.push(Part {
                files: std::mem::take(&mut self.small),
                range: None,
            });
        }
    }
}

/// Whether the name of the file says that it contains JSON Lines.
fn is_named_json_lines(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default();
    extension == "jsonl" || extension == "ndjson"
}

/// Reads a part, with `work` applied to every item on the worker threads.
///
/// # Errors
///
/// If a range of lines cannot be read.
pub fn read_part<T: Send + 'static>(
    part: &Part,
    config: Config,
    work: impl Fn(Item) -> T + Send + Sync + 'static,
) -> Result<Documents<T>, Error> {
    let (Some(range), [file]) = (&part.range, &part.files[..]) else {
        let files = part.files.iter().map(|file| {
            let origin = match file.is_found {
                true => Origin::Directory,
                false => Origin::Named,
            };
            (file.path.clone(), origin)
        });
        return Ok(Documents::start(Inputs::of_files(files), config, work));
    };
    let (start, reader) = lines(&file.path, range).map_err(|source| Error::Io {
        what: "cannot read",
        path: file.path.clone(),
        source,
    })?;
    let inputs = match reader.limit() {
        // A range inside one long line has no line of its own, but the file is not empty.
        0 => Inputs::of_files(std::iter::empty()),
        _ => Inputs::from_reader(&file.path, Box::new(reader)),
    };
    Ok(Documents::start(inputs, config, move |item| {
        work(moved(item, start))
    }))
}

/// The start of the first line that starts in `range`, and a reader of all lines that do.
fn lines(path: &Path, range: &Range<u64>) -> io::Result<(u64, io::Take<File>)> {
    let mut file = File::open(path)?;
    let start = line_start(&mut file, range.start)?;
    let end = line_start(&mut file, range.end)?;
    file.seek(SeekFrom::Start(start))?;
    Ok((start, file.take(end.saturating_sub(start))))
}

/// The first byte at or after `at` that starts a line.
fn line_start(file: &mut File, at: u64) -> io::Result<u64> {
    if at == 0 {
        return Ok(0);
    }
    file.seek(SeekFrom::Start(at - 1))?;
    let mut reader = BufReader::new(&mut *file);
    let skipped = reader.skip_until(b'\n')?;
    Ok(at - 1 + skipped as u64)
}

/// An item with its positions shifted by `start`.
fn moved(mut item: Item, start: u64) -> Item {
    match &mut item {
        Item::Document(document) => {
            document.position.offset += start;
            for warning in &mut document.warnings {
                warning.position.offset += start;
            }
        }
        Item::Skipped(warning) => warning.position.offset += start,
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let mut lines = String::new();
        for i in 0..200 {
            match i % 7 {
                3 => writeln!(lines, "not an object {i}"),
                5 => writeln!(lines),
                n => writeln!(lines, "{{\"text\": \"{}\"}}", "word ".repeat(n * i)),
            }
            .unwrap();
        }
        let path = folder.path();
        std::fs::write(path.join("b.jsonl"), lines.trim_end()).unwrap();
        for name in ["a.txt", "c.html", "d.unknown", "e.md"] {
            std::fs::write(path.join(name), format!("the text of {name}")).unwrap();
        }
        folder
    }

    /// Parts of any size contain the same items as the whole.
    #[test]
    fn parts_are_the_whole() {
        let folder = folder();
        let inputs = [folder.path().to_owned(), folder.path().join("d.unknown")];
        let whole: Vec<Item> = crate::read(&inputs, Config::default()).unwrap().collect();
        assert!(whole.len() > 150);
        for n_bytes in [1, 100, 5_000, 1 << 30] {
            let config = Config::default();
            let (parts, skipped) = parts(&inputs, n_bytes, &config).unwrap();
            assert!(skipped.is_empty());
            assert_eq!(parts.len() > 3, n_bytes < 10_000, "{n_bytes}");
            let items = parts
                .iter()
                .flat_map(|part| read_part(part, config.clone(), |item| item).unwrap());
            assert_eq!(items.collect::<Vec<_>>(), whole, "{n_bytes}");
        }
    }
}
