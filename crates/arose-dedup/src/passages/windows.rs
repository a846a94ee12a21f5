//! Fourth stage: the windows of unsettled classes, one record each.
//!
//! The first member of a class hands in its windows with the weight of the class. Sorted by their
//! hash, equal windows of all classes meet, and each gets its number of places, the first of them,
//! and whether all have the same token before and after them.

use std::path::Path;

use arose::passage::RollingHash;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use super::anchors::Search;
use super::classes::{CLASSES, Class, SAME_AFTER, SAME_BEFORE, SETTLED};
use super::text::Texts;
use crate::column::{Scan, Writer};
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Repeated windows by class.
pub(crate) const RESULTS: &str = "results";

/// A class that hands in its windows, sorted by the place of its first member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct HandIn {
    doc: u32,
    first: u32,
    n_windows: u32,
    flags: u32,
    class: u64,
    weight: u64,
    before: u64,
    after: u64,
}

/// A window that was handed in, sorted by its hash, then place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Window {
    hash: [u64; 2],
    doc: u32,
    token: u32,
    class: u64,
    weight: u64,
    before: u64,
    after: u64,
    offset: u32,
    flags: u32,
}

/// What is known of all places of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Distinct {
    n_records: u64,
    count: u64,
    doc: u32,
    token: u32,
    flags: u32,
    padding: u32,
}

/// A repeated window of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Repeated {
    pub(crate) class: u64,
    pub(crate) offset: u32,
    pub(crate) flags: u32,
    pub(crate) count: u64,
    /// The first place.
    pub(crate) doc: u32,
    pub(crate) token: u32,
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Windows {
    /// Windows that were handed in.
    pub(crate) n_windows: u64,
}

pub(crate) fn run(
    texts: &Texts,
    classes: &Path,
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Windows, Error> {
    let found = sort(texts, classes, search, folder, progress)?;
    let mut slots = Scan::<[u64; 2]>::open(&folder.join("slots"))?;
    let mut groups = Scan::<Distinct>::open(&folder.join("distinct"))?;
    let mut results = Sorter::new(&folder.join("sort"), search.allowance);
    while let Some(group) = groups.next()? {
        for _ in 0..group.n_records {
            let [class, offset] = slots.next()?.expect("a slot for each record");
            if group.count < 2 {
                continue;
            }
            results.push(Repeated {
                class,
                offset: offset as u32,
                flags: group.flags,
                count: group.count,
                doc: group.doc,
                token: group.token,
            })?;
        }
    }
    results.write(&folder.join(RESULTS))?;
    for name in ["slots", "distinct"] {
        let path = folder.join(name);
        std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    }
    Ok(found)
}

/// Sorts the windows and leaves, for each distinct one, what is known of it, and where it stands.
fn sort(
    texts: &Texts,
    classes: &Path,
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Windows, Error> {
    let mut windows = hand_in(texts, classes, search, folder, progress)?.finish()?;
    let mut slots = Writer::create(&folder.join("slots"))?;
    let mut groups = Writer::create(&folder.join("distinct"))?;
    let mut open: Option<(Window, Distinct)> = None;
    while let Some(window) = windows.next()? {
        slots.push(&[window.class, u64::from(window.offset)])?;
        match &mut open {
            Some((first, group)) if first.hash == window.hash => {
                group.n_records += 1;
                group.count += window.weight;
                for (flag, is_same) in [
                    (SAME_BEFORE, first.before == window.before),
                    (SAME_AFTER, first.after == window.after),
                ] {
                    if window.flags & flag == 0 || !is_same {
                        group.flags &= !flag;
                    }
                }
            }
            _ => {
                if let Some((_, group)) = open {
                    groups.push(&group)?;
                }
                let group = Distinct {
                    n_records: 1,
                    count: window.weight,
                    doc: window.doc,
                    token: window.token,
                    flags: window.flags,
                    padding: 0,
                };
                open = Some((window, group));
            }
        }
    }
    if let Some((_, group)) = open {
        groups.push(&group)?;
    }
    groups.finish()?;
    let n_windows = slots.finish()?;
    Ok(Windows { n_windows })
}

fn hand_in(
    texts: &Texts,
    classes: &Path,
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Sorter<Window>, Error> {
    let mut classes = Scan::<Class>::open(&classes.join(CLASSES))?;
    let mut firsts = Sorter::new(&folder.join("firsts"), search.allowance);
    let (mut number, mut n_firsts) = (0, 0);
    while let Some(class) = classes.next()? {
        if class.flags & SETTLED == 0 {
            n_firsts += 1;
            firsts.push(HandIn {
                doc: class.doc,
                first: class.first,
                n_windows: class.n_windows,
                flags: class.flags & (SAME_BEFORE | SAME_AFTER),
                class: number,
                weight: class.n_members,
                before: class.before,
                after: class.after,
            })?;
        }
        number += 1;
    }
    let mut firsts = firsts.finish()?;
    let mut windows = Sorter::new(&folder.join("windows"), search.allowance);
    let mut document = texts.reader()?;
    progress.expect(n_firsts);
    while let Some(class) = firsts.next()? {
        let tokens = document.tokens(class.doc)?;
        let start = class.first as usize;
        let end = start + class.n_windows as usize - 1 + search.n_tokens;
        let hashes = RollingHash::new(&tokens[start..end]).windows(search.n_tokens);
        let salt = search.salt(class.doc);
        for (offset, hash) in hashes.into_iter().enumerate() {
            let (is_first, is_last) = (offset == 0, offset + 1 == class.n_windows as usize);
            let flags = class.flags
                | if is_first { 0 } else { SAME_BEFORE }
                | if is_last { 0 } else { SAME_AFTER };
            windows.push(Window {
                hash: [hash[0] ^ salt, hash[1]],
                doc: class.doc,
                token: class.first + offset as u32,
                class: class.class,
                weight: class.weight,
                before: if is_first {
                    class.before
                } else {
                    tokens[start + offset - 1]
                },
                after: if is_last {
                    class.after
                } else {
                    tokens[start + offset + search.n_tokens]
                },
                offset: offset as u32,
                flags,
            })?;
        }
        progress.advance(1)?;
    }
    Ok(windows)
}
