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

use crate::column::Scan;
use crate::config::Config;
use crate::error::Change;
use crate::record::NullText;
use crate::source::Source;
use crate::stage::read::NULLS;
use crate::{Error, Progress};

/// Where the kept documents of each source are.
pub(crate) struct Kept {
    records: Vec<Vec<Span>>,
}

/// A record: where it starts, and where the next one does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) position: Position,
    pub(crate) end: u64,
}

impl Kept {
    pub(crate) fn new(n_sources: usize) -> Self {
        Self {
            records: vec![Vec::new(); n_sources],
        }
    }

    pub(crate) fn push(&mut self, source: u32, record: Span) {
        self.records[source as usize].push(record);
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
            self.push(record.source as u32, Span { position, end });
        }
        Ok(())
    }

    /// Copies them into `out`; the name of what was made.
    pub(crate) fn write(
        mut self,
        sources: &[Source],
        config: &Config,
        out: &Path,
        progress: &Progress,
    ) -> Result<PathBuf, Error> {
        for records in &mut self.records {
            // A file that was named twice is copied once.
            records.sort_unstable();
            records.dedup_by_key(|record| record.position);
        }
        match single_name(sources) {
            Some(name) => self.write_file(sources, config, &out.join(name), progress),
            None => self.write_folder(sources, config, &out.join("kept.files"), progress),
        }
    }

    fn write_file(
        &self,
        sources: &[Source],
        config: &Config,
        path: &Path,
        progress: &Progress,
    ) -> Result<PathBuf, Error> {
        let partial = beside(path);
        let mut file = File::create(&partial).map_err(Error::io("create", &partial))?;
        for (source, records) in sources.iter().zip(&self.records) {
            copy(source, records, &mut file, config)?;
            progress.advance(records.len() as u64)?;
        }
        fs::rename(&partial, path).map_err(Error::io("rename", &partial))?;
        Ok(path.to_owned())
    }

    fn write_folder(
        &self,
        sources: &[Source],
        config: &Config,
        folder: &Path,
        progress: &Progress,
    ) -> Result<PathBuf, Error> {
        let partial = beside(folder);
        for old in [&partial, folder] {
            if old.exists() {
                fs::remove_dir_all(old).map_err(Error::io("remove", old))?;
            }
        }
        fs::create_dir_all(&partial).map_err(Error::io("create", &partial))?;
        let files = sources.iter().zip(output_paths(sources));
        for ((source, name), records) in files.zip(&self.records) {
            if records.is_empty() {
                continue;
            }
            let path = partial.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(Error::io("create", parent))?;
            }
            let mut file = File::create(&path).map_err(Error::io("create", &path))?;
            copy(source, records, &mut file, config)?;
            progress.advance(records.len() as u64)?;
        }
        fs::rename(&partial, folder).map_err(Error::io("rename", &partial))?;
        Ok(folder.to_owned())
    }
}

/// Copies records, all of which must still be there.
fn copy(source: &Source, records: &[Span], file: &mut File, config: &Config) -> Result<(), Error> {
    source.check()?;
    if arose_corpus::is_plain_json_lines(&source.path, &config.corpus) {
        arose_corpus::keep_ranges(&source.path, &ranges(records), file)?;
    } else {
        let positions: Vec<Position> = records.iter().map(|record| record.position).collect();
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

/// The bytes of records, those that follow each other in one range.
fn ranges(records: &[Span]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for record in records {
        let start = record.position.offset;
        match ranges.last_mut() {
            Some(last) if last.end == start => last.end = record.end,
            _ => ranges.push(start..record.end),
        }
    }
    ranges
}

/// The name of the one file that all sources go into, if there is one source at most.
pub(crate) fn single_name(sources: &[Source]) -> Option<OsString> {
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
