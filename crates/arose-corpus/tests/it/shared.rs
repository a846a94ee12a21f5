//! The data sets outside the repository; tests that need them are skipped if they are absent.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A directory of data sets; none, with a message about the skipped test, if it is absent.
pub(crate) fn folder(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(name);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no data set {name}");
    None
}

/// The directories of a parse suite: the cases in the repository, and all cases if installed.
pub(crate) fn suites(name: &str) -> Vec<PathBuf> {
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/suites");
    let all = folder(&format!("html-parse-suites/{name}"));
    [own.join(name)].into_iter().chain(all).collect()
}

/// The files of a directory that end in `extension`, sorted by name, with their text.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (
                name,
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            )
        })
        .collect();
    files.sort();
    files
}

/// The rows of a data set of pages.
pub(crate) fn pages(name: &str) -> Vec<Value> {
    let Some(folder) = folder(name) else {
        return Vec::new();
    };
    let file = fs::File::open(folder.join("pages.jsonl.zst")).unwrap();
    let text = std::io::read_to_string(zstd::Decoder::new(file).unwrap()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
