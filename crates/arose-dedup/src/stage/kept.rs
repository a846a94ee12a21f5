//! Last stage, second part: writes the kept documents in their input format.
//!
//! A single input file becomes `kept.jsonl`, `kept.warc.gz` and so on. Each of several input files
//! becomes a file in the directory `kept.files`, under its own path, so shards remain shards. With
//! a limit on file size, each becomes as many files as needed, `NAME-00000.jsonl` and so on.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arose_corpus::{Parts, Position};
use bytemuck::{Pod, Zeroable};

use crate::column::Scan;
use crate::config::Config;
use crate::error::InputChange;
use crate::losses::{IncompleteFile, refuse_lost};
use crate::record::NullText;
use crate::sorter::{Sorted, Sorter};
use crate::source::InputFile;
use crate::stage::columns::NULLS;
use crate::stage::dropped::DroppedDocs;
use crate::{Error, Progress};

/// The positions of the kept documents of each source.
pub(crate) struct Kept {
    records: Sorter<Record>,
}

/// A record: its start, and the start of the next one.
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

/// Maximum number of byte ranges that are copied together.
const MAX_RANGES: usize = 1 << 14;

impl Kept {
    /// Collects records, in files in `scratch` if they do not fit into memory.
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

    /// Copies the records to `out`. Returns the name of the output, and the input files with
    /// records that could not be copied.
    pub(crate) fn write(
        self,
        sources: &[InputFile],
        mut dropped: DroppedDocs,
        config: &Config,
        out: &Path,
        progress: &Progress,
    ) -> Result<(PathBuf, Vec<IncompleteFile>), Error> {
        let mut records = Records::new(self.records.finish()?, progress)?;
        let path = match single_name(sources).filter(|_| config.output.max_file_bytes.is_none()) {
            Some(name) => {
                let path = out.join(name);
                write_file(&mut records, sources, &mut dropped, config, &path)
            }
            None => {
                let folder = out.join("kept.files");
                write_folder(&mut records, sources, &mut dropped, config, &folder)
            }
        };
        path.map(|path| (path, records.lost))
    }
}

fn write_file(
    records: &mut Records<'_>,
    sources: &[InputFile],
    dropped: &mut DroppedDocs,
    config: &Config,
    path: &Path,
) -> Result<PathBuf, Error> {
    let partial = beside(path);
    File::create(&partial).map_err(Error::io("create", &partial))?;
    for (number, source) in sources.iter().enumerate() {
        copy(source, number, records, dropped, &partial, config)?;
    }
    fs::rename(&partial, path).map_err(Error::io("rename", &partial))?;
    Ok(path.to_owned())
}

fn write_folder(
    records: &mut Records<'_>,
    sources: &[InputFile],
    dropped: &mut DroppedDocs,
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
        if !records.has_more(number) && dropped.of(number).is_none() {
            continue;
        }
        let path = partial.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
        }
        copy(source, number, records, dropped, &path, config)?;
    }
    fs::rename(&partial, folder).map_err(Error::io("rename", &partial))?;
    Ok(folder.to_owned())
}

/// The kept records, source by source.
struct Records<'a> {
    sorted: Sorted<Record>,
    next: Option<Record>,
    /// Files with records that could not be copied.
    lost: Vec<IncompleteFile>,
    progress: &'a Progress,
}

impl<'a> Records<'a> {
    fn new(mut sorted: Sorted<Record>, progress: &'a Progress) -> Result<Self, Error> {
        Ok(Self {
            next: sorted.next()?,
            sorted,
            lost: Vec::new(),
            progress,
        })
    }

    /// Returns whether there are more records of this source.
    fn has_more(&self, source: usize) -> bool {
        self.next.is_some_and(|next| next.source == source as u64)
    }

    /// Returns the next record of this source. If a file was passed twice, each record occurs once.
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
}

/// Copies the records of a source, all of which must still exist, to files with this path.
fn copy(
    source: &InputFile,
    number: usize,
    records: &mut Records<'_>,
    dropped: &mut DroppedDocs,
    path: &Path,
    config: &Config,
) -> Result<(), Error> {
    source.check()?;
    let files = Files::create(path, config.output.max_file_bytes)?;
    if arose_corpus::is_plain_json_lines(&source.path, &config.corpus) {
        copy_lines(source, number, records, files)?;
    } else {
        copy_records(source, number, records, dropped, files, config)?;
    }
    source.check()
}

/// Copies the kept lines of a plain file, with consecutive lines in one range.
fn copy_lines(
    source: &InputFile,
    number: usize,
    records: &mut Records<'_>,
    mut files: Files,
) -> Result<(), Error> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut n_bytes = 0;
    while let Some(record) = records.next_of(number)? {
        let n = record.end.saturating_sub(record.offset);
        // One more byte for a line end, which the last line may lack.
        let is_over = |limit| n_bytes > 0 && n_bytes + n + 1 > limit;
        let is_full = files.limit().is_some_and(is_over);
        if is_full || ranges.len() == MAX_RANGES {
            arose_corpus::keep_ranges(&source.path, &ranges, files.file.get_mut())?;
            ranges.clear();
        }
        if is_full {
            let created = files.next_part();
            created.map_err(Error::io("create", &files.path))?;
            n_bytes = 0;
        }
        match ranges.last_mut() {
            Some(last) if last.end == record.offset => last.end = record.end,
            _ => ranges.push(record.offset..record.end),
        }
        n_bytes += n;
    }
    arose_corpus::keep_ranges(&source.path, &ranges, files.file.get_mut())?;
    Ok(())
}

/// Copies the kept records of any other file. From an archive, also copies records without a
/// document.
fn copy_records(
    source: &InputFile,
    number: usize,
    records: &mut Records<'_>,
    dropped: &mut DroppedDocs,
    files: Files,
    config: &Config,
) -> Result<(), Error> {
    let mut positions = Vec::new();
    while let Some(record) = records.next_of(number)? {
        positions.push(Position {
            offset: record.offset,
            inner: record.inner,
        });
    }
    dropped.spare(number, &positions);
    let mut dropped = dropped.of(number);
    let dropped = dropped.as_mut();
    let kept = arose_corpus::keep_parts(&source.path, &positions, dropped, files, &config.corpus)?;
    if let Some(lost) = &kept.lost {
        let lost = IncompleteFile::from(lost);
        refuse_lost(&lost, config)?;
        records.lost.push(lost);
    }
    if kept.missing > 0 {
        return Err(Error::InputChanged {
            path: source.path.clone(),
            change: InputChange::Content,
        });
    }
    Ok(())
}

/// A file, or several files if the size is limited.
struct Files {
    path: PathBuf,
    limit: Option<NonZeroU64>,
    /// Number of files before this one.
    n_before: u32,
    file: BufWriter<File>,
    n_bytes: u64,
}

impl Files {
    fn create(path: &Path, limit: Option<NonZeroU64>) -> Result<Self, Error> {
        let first = match limit {
            Some(_) => part_path(path, 0),
            None => path.to_owned(),
        };
        let file = File::create(&first).map_err(Error::io("create", &first))?;
        Ok(Self {
            path: path.to_owned(),
            limit,
            n_before: 0,
            file: BufWriter::with_capacity(1 << 20, file),
            n_bytes: 0,
        })
    }
}

impl Write for Files {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.n_bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Parts for Files {
    fn limit(&self) -> Option<u64> {
        self.limit.map(NonZeroU64::get)
    }

    fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    fn next_part(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.n_before += 1;
        let file = File::create(part_path(&self.path, self.n_before))?;
        self.file = BufWriter::with_capacity(1 << 20, file);
        self.n_bytes = 0;
        Ok(())
    }
}

/// `a/b.jsonl.gz` becomes `a/b-00007.jsonl.gz`.
fn part_path(path: &Path, number: u32) -> PathBuf {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let suffix = suffix(path);
    let n_stem = name
        .strip_suffix(suffix.as_bytes())
        .and_then(|rest| rest.strip_suffix(b"."))
        .map_or(name.len(), <[u8]>::len);
    let (stem, end) = split_name(path.file_name().unwrap_or_default(), n_stem);
    let mut numbered = stem;
    numbered.push(format!("-{number:05}"));
    numbered.push(end);
    path.with_file_name(numbered)
}

/// Splits a name in two.
fn split_name(name: &std::ffi::OsStr, at: usize) -> (OsString, OsString) {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let (start, end) = name.as_bytes().split_at(at);
    (
        OsString::from_vec(start.to_vec()),
        OsString::from_vec(end.to_vec()),
    )
}

/// Returns the name of the single output file if there is at most one source.
pub(crate) fn single_name(sources: &[InputFile]) -> Option<OsString> {
    match sources {
        [] => Some("kept.jsonl".into()),
        [source] => Some(format!("kept.{}", suffix(&source.path)).into()),
        _ => None,
    }
}

/// Returns the end of a file name that determines its format: `jsonl.gz`.
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

/// Returns the paths of the kept documents of each source, in their common directory.
pub(crate) fn output_paths(sources: &[InputFile]) -> impl Iterator<Item = PathBuf> {
    let common = common_folder(sources);
    let path = move |source: &InputFile| {
        let name = source.path.strip_prefix(&common).unwrap_or(&source.path);
        safe(name)
    };
    sources.iter().map(path)
}

/// Returns the deepest directory that contains all sources.
fn common_folder(sources: &[InputFile]) -> PathBuf {
    let mut parents = sources.iter().filter_map(|source| source.path.parent());
    let first = parents.next().map(Path::to_owned).unwrap_or_default();
    parents.fold(first, |common, parent| {
        let both = common.components().zip(parent.components());
        both.take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
    })
}

/// Returns a path that cannot leave the directory to which it is joined.
fn safe(path: &Path) -> PathBuf {
    use std::path::Component::Normal;
    path.components()
        .filter(|component| matches!(component, Normal(_)))
        .collect()
}

/// Returns the path of a file until it is complete.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(paths: &[&str]) -> Vec<InputFile> {
        let source = |path: &&str| InputFile {
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
    fn parts_have_numbers_before_the_format() {
        for (path, expected) in [
            ("a/b.jsonl", "a/b-00003.jsonl"),
            ("a/b.1.jsonl.gz", "a/b.1-00003.jsonl.gz"),
            ("data", "data-00003"),
            ("x.gz", "x-00003.gz"),
        ] {
            assert_eq!(part_path(Path::new(path), 3), Path::new(expected));
        }
    }

    #[test]
    fn names_in_the_folder_start_where_sources_differ() {
        let sources = sources(&["site/a/index.html", "site/b/index.html"]);
        assert_eq!(common_folder(&sources), Path::new("site"));
        assert_eq!(safe(Path::new("/../../etc/x")), Path::new("etc/x"));
    }
}
