//! `crawl.log`: the result of every URL that was tried.
//!
//! It has one line per request, and one for each URL that was given up without a request, in the
//! order in which they ended. Nine fields are separated by spaces, with `-` for missing values:
//!
//! ```text
//! time  status or reason  bytes of the body  ms  media type  digest  duplicate of  found on  URL
//! ```
//!
//! Nothing depends on the file. It is written with each commit. A partial line is cut off at the
//! next start. A URL that is fetched again because of a crash has two lines.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use arose_corpus::time;

use crate::archive::bare_media_type;
use crate::error::{Context, Error};

/// The file in the directory of a crawl.
const FILE: &str = "crawl.log";

/// The log, open for appending.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    file: File,
}

/// A line.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Line<'a> {
    /// Seconds since 1970.
    pub(crate) date: i64,
    /// The status, or 0 if there is none.
    pub(crate) status: u16,
    /// Why there is no status.
    pub(crate) reason: &'a str,
    /// Bytes of the body.
    pub(crate) n_bytes: usize,
    pub(crate) took: Duration,
    pub(crate) content_type: &'a str,
    pub(crate) digest: &'a str,
    pub(crate) duplicate_of: &'a str,
    pub(crate) found_on: &'a str,
    pub(crate) url: &'a str,
}

impl Line<'_> {
    /// Returns the line with its line end.
    pub(crate) fn text(&self) -> String {
        let mut text = time::format(self.date);
        match self.reason {
            "" => {
                let _ = write!(text, " {:03} {}", self.status, self.n_bytes);
            }
            reason => {
                let _ = write!(text, " {reason} {}", self.n_bytes);
            }
        }
        let _ = write!(text, " {}", self.took.as_millis());
        let media_type = bare_media_type(self.content_type);
        for field in [
            media_type,
            self.digest,
            self.duplicate_of,
            self.found_on,
            self.url,
        ] {
            text.push(' ');
            match field {
                "" => text.push('-'),
                field => text.extend(field.chars().take(MAX_FIELD).map(printable)),
            }
        }
        text.push('\n');
        text
    }
}

/// Maximum number of characters of a field.
const MAX_FIELD: usize = 1 << 14;

/// Escapes a field, so that no server can add lines or fields.
fn printable(c: char) -> char {
    match c.is_control() || c.is_whitespace() {
        true => '?',
        false => c,
    }
}

impl Log {
    /// Opens the log of a directory, or creates an empty one.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).context("opening", &path)?;
        let end = end_of_last_line(&mut file).context("reading", &path)?;
        let cut = file.set_len(end).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.context("cutting", &path)?;
        Ok(Self { path, file })
    }

    /// Writes lines to the file.
    pub(crate) fn append(&mut self, lines: &str) -> Result<(), Error> {
        let written = self.file.write_all(lines.as_bytes());
        written.context("writing", &self.path)
    }
}

/// Returns the end of the last complete line.
fn end_of_last_line(file: &mut File) -> std::io::Result<u64> {
    const STEP: u64 = 64 << 10;
    let mut end = file.metadata()?.len();
    let mut bytes = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(STEP);
        bytes.resize((end - start) as usize, 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        if let Some(at) = memchr::memrchr(b'\n', &bytes) {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// A URL whose last try failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedUrl {
    /// The status, 400 or above, or why there was none.
    pub reason: String,
    /// The URL.
    pub url: String,
    /// The page on which it was found, if that is known.
    pub found_on: Option<String>,
    /// When it failed.
    pub time: String,
}

/// Returns the URLs whose last try failed, by reason and then by URL, without robots.txt files that
/// do not exist. Memory grows only with their number.
///
/// # Errors
///
/// If the directory has no log, or it cannot be read.
pub fn failures(folder: &Path) -> Result<Vec<FailedUrl>, Error> {
    let path = folder.join(FILE);
    let file = File::open(&path).context("reading", &path)?;
    let mut failed: HashMap<String, FailedUrl> = HashMap::new();
    for line in BufReader::new(file).lines() {
        let line = line.context("reading", &path)?;
        let Some((url, failure)) = outcome(&line) else {
            continue;
        };
        match failure {
            Some(failure) => failed.insert(url.to_owned(), failure),
            None => failed.remove(url),
        };
    }
    let mut failed: Vec<FailedUrl> = failed.into_values().collect();
    failed.sort_by(|a, b| (&a.reason, &a.url).cmp(&(&b.reason, &b.url)));
    Ok(failed)
}

/// Returns the number of pages fetched from each host.
pub(crate) fn pages_by_host(folder: &Path) -> Result<HashMap<String, u64>, Error> {
    let path = folder.join(FILE);
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        file => file.context("reading", &path)?,
    };
    let mut n_pages = HashMap::new();
    for line in BufReader::new(file).lines() {
        let line = line.context("reading", &path)?;
        let Some((url, None)) = outcome(&line) else {
            continue;
        };
        let url = url::Url::parse(url).ok();
        let is_page = url.as_ref().is_some_and(|url| url.path() != "/robots.txt");
        if let Some(name) = url
            .as_ref()
            .filter(|_| is_page)
            .and_then(url::Url::host_str)
        {
            *n_pages.entry(name.to_owned()).or_default() += 1;
        }
    }
    Ok(n_pages)
}

/// Returns the URL of a line and how it failed, if it did.
fn outcome(line: &str) -> Option<(&str, Option<FailedUrl>)> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [time, reason, _, _, _, _, _, found_on, url] = fields[..] else {
        return None;
    };
    let has_failed = match reason.parse() {
        // A host without a robots.txt has no rules.
        Ok(400..=499) if url.ends_with("/robots.txt") => false,
        Ok(status) => status >= 400_u16,
        Err(_) => true,
    };
    let failure = has_failed.then(|| FailedUrl {
        reason: reason.to_owned(),
        url: url.to_owned(),
        found_on: (found_on != "-").then(|| found_on.to_owned()),
        time: time.to_owned(),
    });
    Some((url, failure))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_nine_fields_whatever_servers_say() {
        let line = Line {
            date: 1_700_000_000,
            status: 200,
            n_bytes: 12,
            took: Duration::from_millis(34),
            content_type: "text/ht\u{b}ml; charset=\nx",
            digest: "sha1:A",
            url: "http://h/a",
            ..Line::default()
        };
        assert_eq!(
            line.text(),
            "2023-11-14T22:13:20Z 200 12 34 text/ht?ml sha1:A - - http://h/a\n"
        );
        let failed = Line {
            reason: "timeout",
            found_on: "http://h/",
            content_type: "",
            digest: "",
            ..line
        };
        assert_eq!(
            failed.text(),
            "2023-11-14T22:13:20Z timeout 12 34 - - - http://h/ http://h/a\n"
        );
    }

    /// A partial line is cut off, and a URL that succeeds in the end has not failed.
    #[test]
    fn the_last_try_counts() {
        let folder = tempfile::tempdir().unwrap();
        let line = |reason: &'static str, status, url: &'static str| {
            let line = Line {
                reason,
                status,
                url,
                ..Line::default()
            };
            line.text()
        };
        let mut log = Log::open(folder.path()).unwrap();
        log.append(&line("timeout", 0, "http://h/a")).unwrap();
        log.append(&line("", 404, "http://h/b")).unwrap();
        log.append("torn").unwrap();
        let mut log = Log::open(folder.path()).unwrap();
        log.append(&line("", 301, "http://h/a")).unwrap();
        log.append(&line("closed", 0, "http://h/c")).unwrap();
        let failed = failures(folder.path()).unwrap();
        let failed: Vec<(&str, &str)> = failed
            .iter()
            .map(|failed| (failed.reason.as_str(), failed.url.as_str()))
            .collect();
        assert_eq!(failed, [("404", "http://h/b"), ("closed", "http://h/c")]);
    }
}
