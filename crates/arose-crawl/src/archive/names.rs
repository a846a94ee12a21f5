//! Names of archive files: `arose-20261117055500-00000.warc.gz`.
//!
//! A name has a prefix, the time at which the file was started, and its number in the crawl, which
//! the journal has. Files are looked up by number, because prefix and time may be anything.

use std::path::{Path, PathBuf};

use arose_corpus::time;

use crate::error::{Context, Error};

const RECORDS: &str = ".warc.gz";
const INDEX: &str = ".cdxj";

/// Returns the name of a file without its ending.
pub(super) fn stem(prefix: &str, date: i64, number: u64) -> String {
    let digits: String = time::format(date)
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    format!("{prefix}-{digits}-{number:05}")
}

/// Returns the files of an archive with their numbers, in order.
pub(crate) fn files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    with_ending(folder, RECORDS)
}

/// Returns the index files of an archive with their numbers, in order.
pub(crate) fn index_files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, Error> {
    with_ending(folder, INDEX)
}

/// Returns the path of the file with this number, or its future path if there is none.
pub(crate) fn warc_path(folder: &Path, number: u64) -> Result<PathBuf, Error> {
    find(folder, number, RECORDS)
}

/// Returns the path of the index of this file, or its future path if there is none.
pub(crate) fn cdxj_path(folder: &Path, number: u64) -> Result<PathBuf, Error> {
    find(folder, number, INDEX)
}

/// Returns the file name of the records of a stem.
pub(super) fn records_of(folder: &Path, stem: &str) -> PathBuf {
    folder.join(format!("{stem}{RECORDS}"))
}

/// Returns the file name of the index of a stem.
pub(super) fn index_of(folder: &Path, stem: &str) -> PathBuf {
    folder.join(format!("{stem}{INDEX}"))
}

/// Returns the stem of the file with this number, from its records or its index.
pub(super) fn stem_of(folder: &Path, number: u64) -> Result<Option<String>, Error> {
    for ending in [RECORDS, INDEX] {
        let path = find(folder, number, ending)?;
        if path.exists() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            return Ok(name.strip_suffix(ending).map(str::to_owned));
        }
    }
    Ok(None)
}

fn find(folder: &Path, number: u64, ending: &str) -> Result<PathBuf, Error> {
    let found = with_ending(folder, ending)?.into_iter();
    let found = found.rev().find(|(other, _)| *other == number);
    let unknown = || folder.join(format!("*-{number:05}{ending}"));
    Ok(found.map_or_else(unknown, |(_, path)| path))
}

fn with_ending(folder: &Path, ending: &str) -> Result<Vec<(u64, PathBuf)>, Error> {
    let mut files = Vec::new();
    if folder.is_dir() {
        for entry in std::fs::read_dir(folder).context("reading", folder)? {
            let path = entry.context("reading", folder)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if let Some(number) = name.strip_suffix(ending).and_then(number) {
                files.push((number, path));
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns the number of a file; `None` if it is not a file of a crawl.
fn number(stem: &str) -> Option<u64> {
    let (rest, number) = stem.rsplit_once('-')?;
    let (_, date) = rest.rsplit_once('-')?;
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_ours = date.len() == 14 && is_number(date) && number.len() >= 5 && is_number(number);
    number.parse().ok().filter(|_| is_ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_by_number() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "arose-19700101000000-00000.warc.gz",
            "other-prefix-20261117055500-00001.warc.gz",
            "arose-20261117055500-123456.warc.gz",
            // Not files of a crawl.
            "notes-00003.warc.gz",
            "arose-20261117-00004.warc.gz",
            "arose-20261117055500-00005.warc.gz.rest",
            "arose-20261117055500-+0006.warc.gz",
        ];
        for name in names {
            std::fs::write(folder.path().join(name), b"").unwrap();
        }
        let numbers: Vec<u64> = files(folder.path())
            .unwrap()
            .iter()
            .map(|file| file.0)
            .collect();
        assert_eq!(numbers, [0, 1, 123_456]);
        assert_eq!(
            warc_path(folder.path(), 1).unwrap(),
            folder.path().join(names[1])
        );
        assert!(
            warc_path(folder.path(), 3)
                .unwrap()
                .ends_with("*-00003.warc.gz")
        );
        assert_eq!(stem("arose", 0, 0) + ".warc.gz", names[0]);
        assert_eq!(stem_of(folder.path(), 7).unwrap(), None);
    }
}
