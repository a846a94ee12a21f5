//! The data sets beside the repository; tests that need them are skipped where they are absent.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// A file or folder of the data sets, or nothing with a word about the test that is skipped.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no {name} beside the repository");
    None
}

/// The bytes of a file, decompressed if it is of zstd.
pub(crate) fn bytes(name: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(path(name)?).unwrap();
    Some(if name.ends_with(".zst") {
        zstd::decode_all(bytes.as_slice()).unwrap()
    } else {
        bytes
    })
}

/// The rows of a file of JSON lines.
pub(crate) fn rows(name: &str) -> Option<Vec<Value>> {
    let bytes = bytes(name)?;
    let lines = bytes.split(|&byte| byte == b'\n');
    let lines = lines.filter(|line| !line.is_empty());
    Some(
        lines
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect(),
    )
}
