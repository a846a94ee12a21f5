//! The data sets beside the repository. Tests that need them are skipped if they are absent.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

/// Returns a file or directory of the data sets, or prints that the test is skipped and returns
/// `None`.
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

/// Returns the bytes of a file, decompressed if it is zstd.
pub(crate) fn bytes(name: &str) -> Option<Vec<u8>> {
    let bytes = fs::read(path(name)?).unwrap();
    Some(if name.ends_with(".zst") {
        zstd::decode_all(bytes.as_slice()).unwrap()
    } else {
        bytes
    })
}

/// Returns the rows of a JSON Lines file.
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
