//! Last stage, second part: the documents that stay, in the format they came in.
//!
//! A single input file becomes `kept.jsonl`, `kept.warc.gz` and so on. Of several, each becomes a
//! file in the directory `kept.files`, under its own path, so shards stay shards.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use arose_corpus::Position;
use bytemuck::{Pod, Zeroable};

use crate::column::Scan;
use crate::config::Config;
use crate::error::Change;
use crate::record::NullText;
use crate::sorter::{Sorted, Sorter};
use crate::source::Source;
use crate::stage::read::NULLS;
use crate::{Error, Progress};

/// Where the kept documents of each source are.
pub(crate) struct Kept {
    records: Sorter<Record>,
}

/// A record: where it starts, and where the next one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) position: Position,
    pub(crate) end: u64,
}

/// A record of a source, in the order in which they are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Record {
    source: u64,
    offset: u64,
    inner: u64,
    end: u64,
}

/// Ranges of bytes that are copied together.
const MAX_RANGES: usize = 1 << 14;

impl Kept {
    /// Records go to files in `scratch` where they do not fit the memory.
    pub(crate) fn new(scratch: &Path, config: &Config) -> Self {
        Self {
            records: Sorter::new(&scratch.join("spans"), config.part(8)),
        }
    }

    pub(crate) fn push(&mut self, source: u32, record: Span) -> Result<(), Error> {
        self.records.push(Record {
            source: source.into(),
            offset: record.position.offset,
            inner: record.position.inner,
            end: record.end,
        })
    }

    /// Adds the records without text, which no rule can drop.
    pub(crate) fn push_nulls(&mut self, read: &Path) -> Result<(), Error> {
        let mut nulls = Scan::<NullText>::open(&read.join(NULLS))?;
        while let Some(record) = nulls.next()? {
            let position = Position {
                offset: record.offset,
                inner: record.inner,
            };
            let end = record.end;
            self.push(record.source as u32, Span { position, end })?;
        }
        Ok(())
    }

    /// Copies them into `out`; the name of what was made.
    pub(crate) fn write(
        self,
        sources: &[Source],
        config: &Config,
        out: &Path,
        progress: &Progress,
    ) -> Result<PathBuf, Error> {
        let mut records = Records::new(self.records.finish()?, progress)?;
        match single_name(sources) {
            Some(name) => write_file(&mut records, sources, config, &out.join(name)),
            None => write_folder(&mut records, sources, config, &out.join("kept.files")),
        }
    }
}

fn write_file(
    records: &mut Records<'_>,
    sources: &[Source],
    config: &Config,
    path: &Path,
) -> Result<PathBuf, Error> {
    let partial = beside(path);
    let mut file = File::create(&partial).map_err(Error::io("create", &partial))?;
    for (number, source) in sources.iter().enumerate() {
        copy(source, number, records, &mut file, config)?;
    }
    fs::rename(&partial, path).map_err(Error::io("rename", &partial))?;
    Ok(path.to_owned())
}

fn write_folder(
    records: &mut Records<'_>,
    sources: &[Source],
    config: &Config,
    folder: &Path,
) -> Result<PathBuf, Error> {
    let partial = beside(folder);
    for old in [&partial, folder] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(Error::io("remove", old))?;
        }
    }
    fs::create_dir_all(&partial).map_err(Error::io("create", &partial))?;
    for (number, (source, name)) in sources.iter().zip(output_paths(sources)).enumerate() {
        if !records.has_more(number) {
            continue;
        }
        let path = partial.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        let mut file = File::create(&path).map_err(Error::io("create", &path))?;
        copy(source, number, records, &mut file, config)?;
    }
    fs::rename(&partial, folder).map_err(Error::io("rename", &partial))?;
    Ok(folder.to_owned())
}

/// The kept records, source by source.
struct Records<'a> {
    sorted: Sorted<Record>,
    next: Option<Record>,
    progress: &'a Progress,
}

impl<'a> Records<'a> {
    fn new(mut sorted: Sorted<Record>, progress: &'a Progress) -> Result<Self, Error> {
        Ok(Self {
            next: sorted.next()?,
            sorted,
            progress,
        })
    }

    /// Whether there are more of this source.
    fn has_more(&self, source: usize) -> bool {
        self.next.is_some_and(|next| next.source == source as u64)
    }

    /// The next record of this source; one of a file that was named twice comes once.
    fn next_of(&mut self, source: usize) -> Result<Option<Record>, Error> {
        let Some(record) = self.next.filter(|next| next.source == source as u64) else {
            return Ok(None);
        };
        let place = |record: &Record| (record.source, record.offset, record.inner);
        while self.next.as_ref().map(place) == Some(place(&record)) {
            self.next = self.sorted.next()?;
            self.progress.advance(1)?;
        }
        Ok(Some(record))
    }

    /// The next ranges of bytes of this source, records that follow each other in one.
    fn next_ranges(&mut self, source: usize) -> Result<Vec<Range<u64>>, Error> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        while ranges.len() < MAX_RANGES
            && let Some(record) = self.next_of(source)?
        {
            match ranges.last_mut() {
                Some(last) if last.end == record.offset => last.end = record.end,
                _ => ranges.push(record.offset..record.end),
            }
        }
        Ok(ranges)
    }
}

/// Copies the records of a source, all of which must still be there.
fn copy(
    source: &Source,
    number: usize,
    records: &mut Records<'_>,
    file: &mut File,
    config: &Config,
) -> Result<(), Error> {
    source.check()?;
    if arose_corpus::is_plain_json_lines(&source.path, &config.corpus) {
        while records.has_more(number) {
            let ranges = records.next_ranges(number)?;
            arose_corpus::keep_ranges(&source.path, &ranges, file)?;
        }
    } else {
        let mut positions = Vec::new();
        while let Some(record) = records.next_of(number)? {
            positions.push(Position {
                offset: record.offset,
                inner: record.inner,
            });
        }
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let kept = arose_corpus::keep(&source.path, &positions, &mut out, &config.corpus)?;
        if kept.missing > 0 {
            return Err(Error::InputChanged {
                path: source.path.clone(),
                change: Change::Content,
            });
        }
        out.flush().map_err(Error::io("write", &source.path))?;
    }
    source.check()
}

/// The name of the one file that all sources go into, if there is one source at most.
fn single_name(sources: &[Source]) -> Option<OsString> {
    match sources {
        [] => Some("kept.jsonl".into()),
        [source] => Some(format!("kept.{}", suffix(&source.path)).into()),
        _ => None,
    }
}

/// The end of a file name that tells its format: `jsonl.gz`.
fn suffix(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut parts = name.rsplit('.');
    let last = parts.next().unwrap_or_default();
    let is_packing = matches!(last, "gz" | "zst" | "xz" | "bz2");
    match (parts.next(), parts.next()) {
        (None, _) => "data".to_owned(),
        (Some(before), Some(_)) if is_packing => format!("{before}.{last}"),
        _ => last.to_owned(),
    }
}

/// Where the kept documents of each source are written, in the directory of all of them.
pub(crate) fn output_paths(sources: &[Source]) -> impl Iterator<Item = PathBuf> {
    let common = common_folder(sources);
    let path = move |source: &Source| {
        let name = source.path.strip_prefix(&common).unwrap_or(&source.path);
        safe(name)
    };
    sources.iter().map(path)
}

/// The deepest folder that holds all sources.
fn common_folder(sources: &[Source]) -> PathBuf {
    let mut parents = sources.iter().filter_map(|source| source.path.parent());
    let first = parents.next().map(Path::to_owned).unwrap_or_default();
    parents.fold(first, |common, parent| {
        let both = common.components().zip(parent.components());
        both.take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    })
}

/// A path that cannot leave the folder it is joined to.
fn safe(path: &Path) -> PathBuf {
    use std::path::Component::Normal;
    path.components()
        .filter(|component| matches!(component, Normal(_)))
        .collect()
}

/// Where a file is written before it is whole.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(paths: &[&str]) -> Vec<Source> {
        let source = |path: &&str| Source {
            path: path.into(),
            n_bytes: 0,
            modified_ns: 0,
        };
        paths.iter().map(source).collect()
    }

    #[track_caller]
    fn check(paths: &[&str], expected: Option<&str>) {
        assert_eq!(single_name(&sources(paths)), expected.map(Into::into));
    }

    #[test]
    fn the_name_tells_the_format() {
        check(&["a/b.jsonl"], Some("kept.jsonl"));
        check(&["a/b.1.jsonl.gz"], Some("kept.jsonl.gz"));
        check(&["a.jsonl.gz", "b.jsonl.gz"], None);
        check(&["crawl.warc.gz"], Some("kept.warc.gz"));
        check(&["a.jsonl.xz"], Some("kept.jsonl.xz"));
        check(&["a.1.csv.bz2"], Some("kept.csv.bz2"));
        check(&["table.parquet"], Some("kept.parquet"));
        check(&["one.parquet", "two.parquet"], None);
        check(&["page.html"], Some("kept.html"));
        check(&["a.html", "b.html"], None);
        check(&["a.jsonl", "b.jsonl.gz"], None);
        check(&["data"], Some("kept.data"));
        check(&["x.gz"], Some("kept.gz"));
        check(&[], Some("kept.jsonl"));
    }

    #[test]
    fn names_in_the_folder_start_where_sources_differ() {
        let sources = sources(&["site/a/index.html", "site/b/index.html"]);
        assert_eq!(common_folder(&sources), Path::new("site"));
        assert_eq!(safe(Path::new("/../../etc/x")), Path::new("etc/x"));
    }
}
