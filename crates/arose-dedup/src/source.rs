//! Input files: detection of changes, and names that are not UTF-8.
//!
//! A path need not be valid UTF-8, but settings, summaries and tables are. A path that is valid
//! UTF-8 is written unchanged. In any other path, each invalid byte is written as a backslash, `x`
//! and two hexadecimal digits (`caf\xE9.html`). It is read back if there is no file with exactly
//! that name.

use std::borrow::Cow;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;
use crate::error::InputChange;

/// A file that contains documents, and data to detect changes of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct InputFile {
    #[serde(serialize_with = "write_path", deserialize_with = "read_path")]
    pub(crate) path: PathBuf,
    pub(crate) n_bytes: u64,
    pub(crate) modified_ns: u128,
}

impl InputFile {
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        let metadata = fs::metadata(path).map_err(Error::io("read", path))?;
        let modified = metadata.modified().map_err(Error::io("read", path))?;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            path: path.to_owned(),
            n_bytes: metadata.len(),
            modified_ns: since.as_nanos(),
        })
    }

    /// Returns the data of a file that may not be readable.
    pub(crate) fn of_any(path: PathBuf) -> Self {
        Self::of(&path).unwrap_or(Self {
            path,
            n_bytes: 0,
            modified_ns: 0,
        })
    }

    /// Returns an error if the file has changed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match Self::of(&self.path) {
            Ok(now) if now == *self => Ok(()),
            _ => Err(Error::InputChanged {
                path: self.path.clone(),
                change: InputChange::Content,
            }),
        }
    }
}

/// Returns a path as text.
pub(crate) fn path_text(path: &Path) -> String {
    path_cow(path).into_owned()
}

/// Like [`path_text`], borrowed if nothing is escaped.
pub(crate) fn path_cow(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) => text.into(),
        None => escaped(path).into(),
    }
}

/// Returns the path for a text in results, relative to the working directory.
#[must_use]
pub fn path_of(text: &str) -> PathBuf {
    path_in(Path::new(""), text)
}

/// Returns the path for a text in results, relative to `directory`.
pub(crate) fn path_in(directory: &Path, text: &str) -> PathBuf {
    let literal = directory.join(text);
    if !text.contains("\\x") || literal.symlink_metadata().is_ok() {
        return literal;
    }
    directory.join(unescaped(text))
}

/// Returns the working directory relative to `out`, which must exist; none if there is no such
/// path.
pub(crate) fn directory_from(out: &Path) -> Option<PathBuf> {
    let (out, here) = (
        out.canonicalize().ok()?,
        Path::new(".").canonicalize().ok()?,
    );
    let n_shared = out.components().zip(here.components());
    let n_shared = n_shared.take_while(|(a, b)| a == b).count();
    // Without a common root, as on two drives, the path begins at the root.
    if n_shared == 0 {
        return Some(here);
    }
    let up = out
        .components()
        .skip(n_shared)
        .map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(here.components().skip(n_shared)).collect();
    Some(match way.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => way,
    })
}

#[cfg(unix)]
fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

#[cfg(unix)]
fn unescaped(text: &str) -> PathBuf {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            None => {
                bytes.extend_from_slice(b"\\x");
                bytes.extend_from_slice(part.as_bytes());
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(not(unix))]
fn escaped(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(not(unix))]
fn unescaped(text: &str) -> PathBuf {
    text.into()
}

fn write_path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_text(path))
}

fn read_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    String::deserialize(deserializer).map(|text| path_of(&text))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_of_any_bytes_are_read_back() {
        for (bytes, text) in [
            (&b"caf\xe9.html"[..], "caf\\xE9.html"),
            (b"\xff\xfe", "\\xFF\\xFE"),
            ("café".as_bytes(), "café"),
            (b"a\\b", "a\\b"),
            (b"a\\xb\xe9", "a\\xb\\xE9"),
        ] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(path_text(path), text);
            assert_eq!(path_of(text), path, "{text}");
        }
    }
}
