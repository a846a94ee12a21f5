//! The versions of a page that the archive has.

use std::collections::{BTreeMap, HashSet};

use arose_corpus::{html, payload};

use super::store::ARCHIVE;
use super::*;
use crate::archive;
use crate::contain::contain;
use crate::fetch::{Head, Message};
use crate::fingerprint::Fingerprint;
use crate::page::Reader;
use crate::pages::Position;
use crate::sitemap;

/// An archived visit of a page.
#[derive(Debug, Clone)]
pub struct PageVersion {
    /// The time of the visit as 14 digits: year, month, day, hour, minute, second.
    pub date: String,
    /// The status of the response.
    pub status: u16,
    /// The text of the page; `None` if it had not changed, is not text, or is not in the archive.
    pub text: Option<String>,
    /// Whether the page had not changed since the visit before.
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
    let wanted = wanted.as_str();
    let reader = Reader::of_each(shared);
    let path = folder.join(ARCHIVE);
    let mut found = places(folder, |url, _| url == wanted)?;
    found.sort_by(|a, b| a.0.1.cmp(&b.0.1));
    let mut versions = Vec::with_capacity(found.len());
    // The visit whose content is that of the page, and those whose content is elsewhere.
    let mut last = None;
    let mut elsewhere: BTreeMap<(String, String), Vec<usize>> = BTreeMap::new();
    for ((_, date), position) in found {
        let Some(stored) = archive::read_at(&path, position)? else {
            continue;
        };
        let named = named(&stored);
        let this = (wanted.to_owned(), date.clone());
        let is_same = named.is_some() && named == last;
        let text = match &named {
            None => text(&stored, &reader, wanted),
            Some(_) => None,
        };
        match named {
            Some(named) if !is_same => {
                let users = elsewhere.entry(named.clone()).or_default();
                users.push(versions.len());
                last = Some(named);
            }
            None if text.is_some() => last = Some(this),
            _ => {}
        }
        versions.push(PageVersion {
            date,
            status: Head::parse(&stored.block).map_or(0, |head| head.status),
            text,
            is_same,
        });
    }
    if !elsewhere.is_empty() {
        let is_named = |url: &str, date: &str| {
            let name = (url.to_owned(), date.to_owned());
            elsewhere.contains_key(&name)
        };
        for (name, position) in places(folder, is_named)? {
            let stored = archive::read_at(&path, position)?;
            let text = stored.and_then(|stored| text(&stored, &reader, &name.0));
            for &visit in elsewhere.get(&name).into_iter().flatten() {
                versions[visit].text.clone_from(&text);
            }
        }
    }
    Ok(versions)
}

/// Returns the pages that fetched sitemaps and feeds among these URLs listed at their last visits.
/// Reads the page table, which may be some seconds behind a running crawl.
pub(super) fn listed_pages(folder: &Path, urls: &[String]) -> Result<Vec<String>, Error> {
    let shared = Arc::new(Shared::new(kept_settings(folder)?, None)?);
    let keys: HashSet<u128> = urls
        .iter()
        .filter_map(|url| shared.normalize(url, None).ok())
        .map(|url| Fingerprint::of(&url).key())
        .collect();
    let mut positions = Vec::new();
    listing::each(folder, &BTreeMap::new(), |_, record| {
        if record.kind == Kind::Sitemap && keys.contains(&record.fingerprint.key()) {
            positions.push(record.position);
        }
        Ok(())
    })?;
    let reader = Reader::of_each(shared);
    let path = folder.join(ARCHIVE);
    let mut pages = Vec::new();
    for position in positions {
        let mut stored = archive::read_at(&path, position)?;
        // A list that has not changed is in an earlier record.
        if let Some(name) = stored.as_ref().and_then(named) {
            let found = places(folder, |url, date| url == name.0 && date == name.1)?;
            stored = match found.first() {
                Some((_, position)) => archive::read_at(&path, *position)?,
                None => None,
            };
        }
        let listed = stored.and_then(|stored| {
            let body = reader.body(&message(&stored))?;
            contain(|| sitemap::parse(&body, sitemap::Limits::default()))
        });
        pages.extend(
            listed
                .into_iter()
                .flat_map(|list| list.pages)
                .map(|page| page.url),
        );
    }
    Ok(pages)
}

/// URL and date of a record, by which others refer to it.
type Name = (String, String);

/// The names and positions of the records that `is_wanted`, by the index of the archive.
fn places(
    folder: &Path,
    is_wanted: impl Fn(&str, &str) -> bool,
) -> Result<Vec<(Name, Position)>, Error> {
    let files = archive::files(&folder.join(ARCHIVE))?;
    let mut found = Vec::new();
    for line in index_lines(folder)? {
        if let Some((url, date)) = archive::name_in_line(&line)
            && is_wanted(&url, date)
            && let Some((name, offset)) = archive::place_of_line(&line)
            && let Some((number, _)) = files.iter().find(|(_, path)| path.ends_with(&name))
        {
            let file = u32::try_from(*number).unwrap_or(u32::MAX);
            let name = (url, date.to_owned());
            found.push((name, Position { file, offset }));
        }
    }
    Ok(found)
}

/// The record that has the content of a revisit record: an earlier one of the page, or one of
/// another page.
fn named(stored: &archive::Stored) -> Option<Name> {
    let is_revisit = stored.field("WARC-Type") == Some("revisit");
    let url = stored.field("WARC-Refers-To-Target-URI");
    let date = stored.field("WARC-Refers-To-Date").filter(|_| is_revisit)?;
    let digits = date.chars().filter(char::is_ascii_digit).collect();
    Some((url?.to_owned(), digits))
}

/// The response in an archive record.
fn message(stored: &archive::Stored) -> Message {
    let bytes = stored.block.clone();
    let head_end = memchr::memmem::find(&bytes, b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    Message {
        bytes,
        head_end,
        cut: None,
    }
}

/// The text of an archived page.
fn text(stored: &archive::Stored, reader: &Reader, url: &str) -> Option<String> {
    let message = message(stored);
    let text = || {
        let head = Head::parse(message.head_bytes());
        let body = reader.body(&message)?;
        let content_type = head.and_then(|head| head.get("content-type"));
        let page = payload::read(&body, content_type, Some(url), &html::HtmlConfig::default());
        page.ok().map(|page| page.text)
    };
    contain(text).flatten()
}
