//! The versions of a page that the archive has.

use arose_corpus::{html, payload};

use super::store::ARCHIVE;
use super::*;
use crate::archive;
use crate::contain::contain;
use crate::fetch::{Head, Message};
use crate::page::Reader;
use crate::pages::Position;

/// An archived visit of a page.
#[derive(Debug, Clone)]
pub struct PageVersion {
    /// The time of the visit as 14 digits: year, month, day, hour, minute, second.
    pub date: String,
    /// The status of the response.
    pub status: u16,
    /// The text of the page; `None` if it had not changed, or if it is not text.
    pub text: Option<String>,
    /// Whether the archive says that the page had not changed.
    pub is_same: bool,
}

/// Returns all visits of a page, oldest first. Reads the index of the whole archive.
///
/// # Errors
///
/// If there is no crawl in the directory, it is damaged, or the text is not a URL.
pub fn versions(folder: &Path, url: &str) -> Result<Vec<PageVersion>, Error> {
    let shared = Arc::new(Shared::new(kept_settings(folder)?, None)?);
    let wanted = shared.normalize(url, None);
    let wanted = wanted.map_err(|reason| Error::Settings(format!("`{url}`: {reason}")))?;
    let reader = Reader::of_each(shared);
    let path = folder.join(ARCHIVE);
    let files = archive::files(&path)?;
    let mut found = Vec::new();
    for line in index_lines(folder)? {
        let Some((url, date)) = archive::name_in_line(&line) else {
            continue;
        };
        if url == wanted.as_str()
            && let Some((name, offset)) = archive::place_of_line(&line)
            && let Some((number, _)) = files.iter().find(|(_, path)| path.ends_with(&name))
        {
            let file = u32::try_from(*number).unwrap_or(u32::MAX);
            found.push((date.to_owned(), Position { file, offset }));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let mut versions = Vec::with_capacity(found.len());
    for (date, position) in found {
        if let Some(stored) = archive::read_at(&path, position)? {
            versions.push(version(date, &stored, &reader, wanted.as_str()));
        }
    }
    Ok(versions)
}

fn version(date: String, stored: &archive::Stored, reader: &Reader, url: &str) -> PageVersion {
    let bytes = stored.block.clone();
    let head_end = memchr::memmem::find(&bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let message = Message {
        bytes,
        head_end,
        cut: None,
    };
    let head = Head::parse(message.head_bytes());
    let is_same = stored.field("WARC-Type") == Some("revisit");
    let text = || {
        let body = reader.body(&message)?;
        let content_type = head.and_then(|head| head.get("content-type"));
        let page = payload::read(&body, content_type, Some(url), &html::Config::default());
        page.ok().map(|page| page.text)
    };
    PageVersion {
        date,
        status: head.map_or(0, |head| head.status),
        text: if is_same {
            None
        } else {
            contain(text).flatten()
        },
        is_same,
    }
}
