//! Search for a reference larger than memory: anchors of both sides, sorted by hash.
//!
//! Equal windows have anchors with equal hashes, so only anchors whose hash occurs on both sides
//! are examined. Each of their windows becomes one record, and a second sort brings equal windows
//! together. Items are numbered after the documents, so the number determines the side.

use std::path::Path;

use arose::passage::RollingHash;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use super::matches::{COMMON, MatchSorters, Matches, Sides, Span, linked};
use crate::column::Scan;
use crate::passages::anchors::{Search, of_document};
use crate::passages::listing::MAX_LINKED;
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// An anchor of either side, sorted by its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Hashed {
    hash: u64,
    doc: u32,
    /// The first window, and the number of windows.
    first: u32,
    n_windows: u64,
}

/// An anchor of either side, sorted by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Placed {
    doc: u32,
    first: u32,
    n_windows: u64,
}

/// A window of either side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Window {
    hash: [u64; 2],
    doc: u32,
    start: u32,
}

pub(crate) fn run(
    sides: &Sides<'_>,
    search: &Search,
    folder: &Path,
    out: &mut MatchSorters,
    progress: &Progress,
) -> Result<Matches, Error> {
    let n_docs = sides.corpus.docs()?.left();
    let n_items = sides.reference.docs()?.left();
    if n_docs + n_items >= u64::from(u32::MAX) {
        return Err(Error::TooManyDocuments);
    }
    let n_docs = n_docs as u32;
    let [hashed, windows] = ["hashed", "windows"].map(|name| folder.join(name));
    sort_anchors(sides, n_docs, search, &hashed, progress)?;
    let placed = shared_anchors(&hashed, n_docs, search, folder)?;
    sort_windows(sides, n_docs, placed, search, &windows)?;
    let found = meet(&windows, n_docs, search, out)?;
    for path in [&hashed, &windows] {
        std::fs::remove_file(path).map_err(Error::io("remove", path))?;
    }
    Ok(found)
}

/// Writes the anchors of both sides, sorted by hash.
fn sort_anchors(
    sides: &Sides<'_>,
    n_docs: u32,
    search: &Search,
    path: &Path,
    progress: &Progress,
) -> Result<(), Error> {
    let mut sorter = Sorter::<Hashed>::new(path, search.allowance);
    for (texts, before) in [(sides.corpus, 0), (sides.reference, n_docs)] {
        texts.batches(search.batch_tokens(), progress, |batch| {
            let lists = batch
                .par_iter()
                .map(|(doc, tokens)| hashed(before + doc, tokens, search));
            let lists: Vec<Vec<Hashed>> = lists.collect();
            lists.iter().try_for_each(|list| sorter.extend(list))
        })?;
    }
    sorter.write(path).map(drop)
}

fn hashed(doc: u32, tokens: &[u64], search: &Search) -> Vec<Hashed> {
    let anchors = of_document(doc, tokens, search);
    let hashed = anchors.map(|(hash, anchor)| Hashed {
        hash,
        doc,
        first: anchor.first_window as u32,
        n_windows: (anchor.last_window - anchor.first_window + 1) as u64,
    });
    hashed.collect()
}

/// Passes the next group of records with the same key to `each`. Returns the number of records.
pub(super) fn next_group<T: Pod, K: PartialEq>(
    ahead: &mut (Scan<T>, Option<T>),
    key: impl Fn(&T) -> K,
    mut each: impl FnMut(&T),
) -> Result<u64, Error> {
    let (scan, next) = ahead;
    let Some(first) = next.as_ref().map(&key) else {
        return Ok(0);
    };
    let mut n = 0;
    while let Some(record) = next.as_ref().filter(|record| key(record) == first) {
        each(record);
        n += 1;
        *next = scan.next()?;
    }
    Ok(n)
}

/// Opens a scan of a file and reads its first record ahead.
pub(super) fn ahead<T: Pod>(path: &Path) -> Result<(Scan<T>, Option<T>), Error> {
    let mut scan = Scan::open(path)?;
    let first = scan.next()?;
    Ok((scan, first))
}

/// Returns the anchors whose hash occurs on both sides, by place.
fn shared_anchors(
    path: &Path,
    n_docs: u32,
    search: &Search,
    folder: &Path,
) -> Result<Sorter<Placed>, Error> {
    let mut placed = Sorter::new(&folder.join("placed"), search.allowance);
    let mut first = ahead::<Hashed>(path)?;
    let mut second = Scan::<Hashed>::open(path)?;
    loop {
        let mut has = [false; 2];
        let n = next_group(
            &mut first,
            |anchor: &Hashed| anchor.hash,
            |anchor| {
                has[usize::from(anchor.doc >= n_docs)] = true;
            },
        )?;
        for _ in 0..n {
            let anchor = second.next()?.expect("both looks are at one file");
            if has == [true; 2] {
                placed.push(Placed {
                    doc: anchor.doc,
                    first: anchor.first,
                    n_windows: anchor.n_windows,
                })?;
            }
        }
        if n == 0 {
            return Ok(placed);
        }
    }
}

/// Writes the windows of these anchors, sorted by hash.
fn sort_windows(
    sides: &Sides<'_>,
    n_docs: u32,
    placed: Sorter<Placed>,
    search: &Search,
    path: &Path,
) -> Result<(), Error> {
    let mut placed = placed.finish()?;
    let mut sorter = Sorter::<Window>::new(path, search.allowance);
    let mut corpus = sides.corpus.reader()?;
    let mut reference = sides.reference.reader()?;
    while let Some(anchor) = placed.next()? {
        let doc = anchor.doc;
        let tokens = match doc.checked_sub(n_docs) {
            None => corpus.tokens(doc)?,
            Some(item) => reference.tokens(item)?,
        };
        let (first, n_windows) = (anchor.first as usize, anchor.n_windows as usize);
        let end = first + n_windows - 1 + search.n_tokens;
        let hashes = RollingHash::new(&tokens[first..end]).windows(search.n_tokens);
        for (hash, start) in hashes.into_iter().zip(anchor.first..) {
            sorter.push(Window { hash, doc, start })?;
        }
    }
    sorter.write(path).map(drop)
}

/// Outputs the windows that both sides contain.
fn meet(
    path: &Path,
    n_docs: u32,
    search: &Search,
    out: &mut MatchSorters,
) -> Result<Matches, Error> {
    let mut first = ahead::<Window>(path)?;
    let mut second = Scan::<Window>::open(path)?;
    let mut found = Matches {
        method: "anchors".to_owned(),
        ..Matches::default()
    };
    loop {
        // Enough places to decide whether there are too many to link.
        let mut places: Vec<[u32; 2]> = Vec::new();
        let (mut n_with, mut last) = (0, None);
        let n = next_group(
            &mut first,
            |window| window.hash,
            |window| match window.doc.checked_sub(n_docs) {
                None => n_with += u64::from(last.replace(window.doc) != Some(window.doc)),
                Some(item) if places.len() as u64 <= MAX_LINKED => {
                    places.push([item, window.start])
                }
                Some(_) => {}
            },
        )?;
        if n == 0 {
            return Ok(found);
        }
        let is_found = n_with > 0 && !places.is_empty();
        let flags = out.flags(n_with, places.len());
        found.n_found += u64::from(is_found);
        found.n_common += u64::from(is_found && flags & COMMON != 0);
        for _ in 0..n {
            let Window { doc, start, .. } = second.next()?.expect("both looks are at one file");
            if !is_found {
                continue;
            }
            let end = start + search.n_tokens as u32;
            let span = |doc| Span {
                doc,
                start,
                end,
                flags,
            };
            if let Some(item) = doc.checked_sub(n_docs) {
                out.push_item(span(item))?;
                continue;
            }
            out.push_doc(span(doc))?;
            if flags & COMMON == 0 {
                for &place in linked(&places) {
                    out.link(place, [doc, start], search.n_tokens as u32)?;
                }
            }
        }
    }
}
