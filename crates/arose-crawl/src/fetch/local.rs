//! Local files: crawls a directory with the mirror of a site as if it were served.
//!
//! A file gets the response of a web server: with a status, a media type by its name, and its
//! bytes. A directory gets its `index.html`, or a page that lists its entries; its URL without a
//! final slash redirects to the one with it. Only files below the directories of seeds are read.
//! Symbolic links are followed, and a target outside these directories is refused. So are devices,
//! pipes and sockets.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::message::{Cut, Failure, Message};
use super::{Fetch, Request, Response};
use crate::connect::Waiting;

/// Maximum number of listed entries of a directory.
const MAX_ENTRIES: usize = 100_000;

/// Fetches local files.
///
/// ```
/// use arose_crawl::fetch::{Fetch, Files, Request};
/// use arose_crawl::url::{self, Normalizer};
/// # let directory = tempfile::tempdir()?;
/// # std::fs::write(directory.path().join("rose.txt"), "A rose is a rose.")?;
/// let root = directory.path().display();
/// let files = Files::new(&[format!("{root}/")], 1 << 20);
/// let normalizer = Normalizer {
///     files: url::FileUrls::Accept,
///     ..Normalizer::default()
/// };
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// for (url, status) in [(format!("file://{root}/rose.txt"), 200), ("file:///etc/".into(), 403)] {
///     let url = normalizer.normalize(&url, None)?;
///     let request = Request::new(&url, [127, 0, 0, 1].into());
///     let response = runtime.block_on(files.fetch(&request)).unwrap();
///     assert_eq!(response.status(), Some(status));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Directories whose files may be read, with symbolic links resolved.
    roots: Vec<PathBuf>,
    max_body: usize,
}

impl Files {
    /// Reads files below these directories, given as paths of URLs. Longer files are truncated.
    #[must_use]
    pub fn new(directories: &[String], max_body: usize) -> Self {
        let paths = directories.iter().map(|directory| path_of(directory));
        let roots = paths.filter_map(|path| path.canonicalize().ok());
        Self {
            roots: roots.collect(),
            max_body,
        }
    }

    /// Returns the response for a path with its query.
    fn answer(&self, rest: &str) -> Message {
        let path = rest.split('?').next().unwrap_or_default();
        match self.read(path) {
            Ok(answer) => answer,
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory) => plain(404, "no such file"),
            Err(ErrorKind::PermissionDenied) => plain(403, "not allowed"),
            Err(_) => plain(500, "cannot be read"),
        }
    }

    fn read(&self, path: &str) -> Result<Message, ErrorKind> {
        let file = self.allowed(&path_of(path))?;
        if !file.is_dir() {
            return self.file(&file, &file);
        }
        if !path.ends_with('/') {
            let head = format!("HTTP/1.1 301 Moved\r\nLocation: {path}/\r\n");
            return Ok(message(head, b"", None));
        }
        match self.allowed(&file.join("index.html")) {
            Ok(index) if index.is_file() => self.file(&index, &file.join("index.html")),
            _ => list(&file),
        }
    }

    /// Returns the target of a path, if it may be read.
    fn allowed(&self, path: &Path) -> Result<PathBuf, ErrorKind> {
        let real = path.canonicalize().map_err(|error| error.kind())?;
        match self.roots.iter().any(|root| real.starts_with(root)) {
            true => Ok(real),
            false => Err(ErrorKind::PermissionDenied),
        }
    }

    fn file(&self, real: &Path, named: &Path) -> Result<Message, ErrorKind> {
        // Opening a pipe would block until another program writes to it.
        let metadata = real.metadata().map_err(|error| error.kind())?;
        if !metadata.is_file() {
            return Err(ErrorKind::PermissionDenied);
        }
        let file = File::open(real).map_err(|error| error.kind())?;
        let mut body = Vec::new();
        let limit = self.max_body as u64;
        let read = file.take(limit + 1).read_to_end(&mut body);
        read.map_err(|error| error.kind())?;
        let cut = (body.len() > self.max_body).then_some(Cut::Length);
        body.truncate(self.max_body);
        let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
        if let Some(media_type) = media_type(named) {
            head.push_str(&format!("Content-Type: {media_type}\r\n"));
        }
        Ok(message(head, &body, cut))
    }
}

impl Fetch for Files {
    fn fetch<'a>(&'a self, request: &'a Request) -> Waiting<'a, Result<Response, Failure>> {
        let start = Instant::now();
        let (files, rest) = (self.clone(), request.rest.clone());
        Box::pin(async move {
            // A disk may be slow; requests to other hosts continue.
            let read = tokio::task::spawn_blocking(move || files.answer(&rest)).await;
            let took: Duration = start.elapsed();
            let response = read.map(|message| Response { message, took });
            response.map_err(|_| Failure::Unreadable)
        })
    }
}

/// Returns the file for the path of a URL.
fn path_of(path: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(unescaped(path)))
}

fn unescaped(path: &str) -> Vec<u8> {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes
            .get(at + 1..at + 3)
            .and_then(|hex| std::str::from_utf8(hex).ok());
        let hex = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match hex.filter(|_| byte == b'%') {
            Some(escaped) => {
                out.push(escaped);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Returns a page that links to the entries of a directory, in order, without hidden ones.
fn list(directory: &Path) -> Result<Message, ErrorKind> {
    use std::os::unix::ffi::OsStrExt;
    let entries = directory.read_dir().map_err(|error| error.kind())?;
    let mut names: Vec<(std::ffi::OsString, bool)> = entries
        .filter_map(Result::ok)
        .map(|entry| (entry.file_name(), entry.path().is_dir()))
        .filter(|(name, _)| !name.as_bytes().starts_with(b"."))
        .take(MAX_ENTRIES)
        .collect();
    names.sort();
    let mut body =
        "<!doctype html><meta charset=\"utf-8\"><title>Directory</title>\n<ul>\n".to_owned();
    for (name, is_directory) in names {
        let slash = if is_directory { "/" } else { "" };
        let href: String = name.as_bytes().iter().map(|&byte| escaped(byte)).collect();
        let shown = name.to_string_lossy();
        let shown = shown.replace('&', "&amp;").replace('<', "&lt;");
        body.push_str(&format!(
            "<li><a href=\"./{href}{slash}\">{shown}{slash}</a>\n"
        ));
    }
    body.push_str("</ul>\n");
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n".to_owned();
    Ok(message(head, body.as_bytes(), None))
}

fn escaped(byte: u8) -> String {
    match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    }
}

fn plain(status: u16, text: &str) -> Message {
    let head = format!("HTTP/1.1 {status} {text}\r\nContent-Type: text/plain\r\n");
    message(head, text.as_bytes(), None)
}

fn message(head: String, body: &[u8], cut: Option<Cut>) -> Message {
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    Message {
        head_end: head.len(),
        bytes: [head.as_bytes(), body].concat(),
        cut,
    }
}

/// Returns the media type of a file by its name; `None` if the content decides.
fn media_type(path: &Path) -> Option<&'static str> {
    let end = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match end.as_str() {
        "html" | "htm" => "text/html",
        "xhtml" => "application/xhtml+xml",
        "txt" | "text" => "text/plain",
        "md" => "text/markdown",
        "xml" => "application/xml",
        "json" => "application/json",
        "pdf" => "application/pdf",
        "css" => "text/css",
        "js" | "mjs" => "text/javascript",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "svg" => "image/svg+xml",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff" | "woff2" => "font/woff2",
        "zip" => "application/zip",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(files: &Files, path: &Path) -> (u16, String) {
        use std::os::unix::ffi::OsStrExt;
        let path: String = path
            .as_os_str()
            .as_bytes()
            .iter()
            .map(|&byte| match byte {
                b'/' => "/".to_owned(),
                byte => escaped(byte),
            })
            .collect();
        let message = files.answer(&path);
        let body = String::from_utf8_lossy(message.body()).into_owned();
        (message.head().unwrap().status, body)
    }

    /// Nothing outside the directories of the seeds is read, whatever links to it.
    #[test]
    fn issue_27_files_stay_in_their_directories() {
        let folder = tempfile::tempdir().unwrap();
        let (root, out) = (folder.path().join("a b"), folder.path().join("out"));
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(&out).unwrap();
        std::fs::write(out.join("secret.html"), "secret").unwrap();
        std::fs::write(root.join("ü <&.html"), "page").unwrap();
        std::fs::write(root.join("large.txt"), "x".repeat(200)).unwrap();
        std::os::unix::fs::symlink(&out, root.join("link")).unwrap();
        std::os::unix::fs::symlink(root.join("large.txt"), root.join("sub/inside.txt")).unwrap();
        std::os::unix::fs::symlink(out.join("secret.html"), root.join("sub/index.html")).unwrap();
        let directory = format!("{}/a%20b/", folder.path().display());
        let files = Files::new(&[directory], 100);
        let ask = |path: &str| status(&files, &folder.path().join(path));
        assert_eq!(ask("a b/link/secret.html").0, 403);
        assert_eq!(ask("a b/../out/secret.html").0, 403);
        assert_eq!(ask("out/secret.html").0, 403);
        assert_eq!(status(&files, Path::new("/etc/passwd")).0, 403);
        assert_eq!(status(&files, Path::new("/dev/zero")).0, 403);
        assert_eq!(ask("a b/none.html").0, 404);
        assert_eq!(ask("a b/large.txt/x").0, 404);
        assert_eq!(ask("a b/ü <&.html"), (200, "page".to_owned()));
        assert_eq!(ask("a b/sub/inside.txt").1.len(), 100);
        assert_eq!(ask("a b/sub").0, 301);
        // An index outside the directories is not used.
        let (status, listing) = ask("a b/sub/");
        assert_eq!(status, 200);
        assert!(
            listing.contains("inside.txt") && !listing.contains("secret"),
            "{listing}"
        );
        let (_, listing) = ask("a b/");
        assert!(
            listing.contains("<a href=\"./%C3%BC%20%3C%26.html\">ü &lt;&amp;.html</a>"),
            "{listing}"
        );
        assert!(listing.contains("./sub/\""), "{listing}");
        assert_eq!(Files::default().answer("/").head().unwrap().status, 403);
    }
}
