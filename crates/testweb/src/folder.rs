//! Directories of files as hosts.
//!
//! A path is looked up below the root. The response for a directory is its `index.html`, or else a
//! list of its contents, so that everything in it can be found. Nothing above the root is served,
//! but symbolic links are followed, because documentation is full of them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::reply::Reply;

/// Maximum size of a file that is served.
const MOST_BYTES: u64 = 64 << 20;

/// The response for a path with its query.
pub(crate) fn answer(root: &Path, target: &str) -> Reply {
    let path = target.split('?').next().unwrap_or_default();
    let Some(file) = locate(root, path) else {
        return missing();
    };
    if !file.is_dir() {
        return read(&file).unwrap_or_else(missing);
    }
    if !path.ends_with('/') {
        return Reply::redirect(301, &format!("{path}/"));
    }
    let index = read(&file.join("index.html"));
    index.or_else(|| list(&file)).unwrap_or_else(missing)
}

/// The paths of all files below the root that are served, in order. Links to directories are not
/// entered, since they may form cycles.
pub(crate) fn targets(root: &Path) -> io::Result<Vec<String>> {
    let mut targets = Vec::new();
    let mut folders = vec![(root.to_owned(), String::from("/"))];
    while let Some((folder, prefix)) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let target = format!("{prefix}{}", escape(&name));
            if entry.file_type()?.is_dir() {
                folders.push((entry.path(), target + "/"));
            } else if is_served(&entry.path()) {
                targets.push(target);
            }
        }
    }
    targets.sort();
    Ok(targets)
}

fn is_served(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MOST_BYTES)
}

fn missing() -> Reply {
    Reply::html(404, b"<p>Not found\n".to_vec())
}

/// The file at a path, unless the path leads above the root.
fn locate(root: &Path, path: &str) -> Option<PathBuf> {
    let mut file = root.to_owned();
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let name = unescape(segment)?;
        if name == ".." || name == "." || name.contains(['/', '\0']) {
            return None;
        }
        file.push(name);
    }
    Some(file)
}

/// Decodes percent escapes; `None` if the result is not text.
fn unescape(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|&b| char::from(b).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

fn escape(name: &str) -> String {
    let escaped = name.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'+' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    escaped.collect()
}

fn read(file: &Path) -> Option<Reply> {
    if !is_served(file) {
        return None;
    }
    let extension = file.extension().and_then(|name| name.to_str());
    let content_type = match extension.unwrap_or_default() {
        // The page itself declares its character set.
        "html" | "htm" | "xhtml" => "text/html",
        "txt" | "" => "text/plain",
        "css" => "text/css",
        "js" => "text/javascript",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "gz" => "application/gzip",
        _ => "application/octet-stream",
    };
    Some(Reply::typed(200, content_type, fs::read(file).ok()?))
}

fn list(folder: &Path) -> Option<Reply> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let slash = if entry.path().is_dir() { "/" } else { "" };
        names.push(escape(&name) + slash);
    }
    names.sort();
    let mut page = String::from("<!doctype html><title>Files</title>\n");
    for name in names {
        page.extend(["<p><a href=\"", &name, "\">", &name, "</a>\n"]);
    }
    Some(Reply::html(200, page.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a b.html"), "<p>A").unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        fs::write(folder.path().join("sub/index.html"), "<p>I").unwrap();
        folder
    }

    #[track_caller]
    fn check(target: &str, status: u16, body: &str) {
        let folder = folder();
        let reply = answer(folder.path(), target);
        assert_eq!(reply.status, status, "{target}");
        let text = String::from_utf8(reply.body).unwrap();
        assert!(text.contains(body), "{target}: {text}");
    }

    #[test]
    fn answers() {
        check("/a%20b.html", 200, "<p>A");
        check("/a%20b.html?x", 200, "<p>A");
        check("/", 200, "<a href=\"a%20b.html\">");
        check("/", 200, "<a href=\"sub/\">");
        check("/sub/", 200, "<p>I");
        check("/sub", 301, "moved");
        check("/no.html", 404, "Not found");
    }

    #[test]
    fn what_is_listed_is_served() {
        let folder = folder();
        let targets = targets(folder.path()).unwrap();
        assert_eq!(targets, ["/a%20b.html", "/sub/index.html"]);
        for target in targets {
            assert_eq!(answer(folder.path(), &target).status, 200);
        }
    }

    #[test]
    fn nothing_above_the_root() {
        let folder = folder();
        let root = folder.path().join("sub");
        for target in [
            "/../a%20b.html",
            "/%2e%2e/a%20b.html",
            "/..%2fa%20b.html",
            "/%00",
        ] {
            assert_eq!(answer(&root, target).status, 404, "{target}");
        }
    }
}
