//! Third stage: classes of anchors whose windows are identical.
//!
//! All members of a class have the same tokens from their first window to the end of their last, so
//! one of them stands for all. A group of anchors of one hash that is one class without ties is
//! settled: the places of each of its windows are those of the class.

use std::path::Path;

use arose::mix::mix;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::anchors::{ANCHORS, Placed, Search};
use super::text::Texts;
use crate::column::{Scan, Writer};
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Classes, in the order of their members.
pub(crate) const CLASSES: &str = "classes";
/// The members of all classes: document and first window.
pub(crate) const MEMBERS: &str = "members";

/// All places are preceded by the same token.
pub(crate) const SAME_BEFORE: u32 = 1;
/// All places are followed by the same token.
pub(crate) const SAME_AFTER: u32 = 2;
/// The places of the class are all places of its windows.
pub(crate) const SETTLED: u32 = 4;
const TIED: u32 = 8;

/// An anchor with what makes it a member of its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Member {
    hash: u64,
    content: [u64; 2],
    doc: u32,
    first: u32,
    n_windows: u32,
    /// [`SAME_BEFORE`] if there is a token before, and so on.
    flags: u32,
    before: u64,
    after: u64,
}

/// Anchors with equal windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Class {
    pub(crate) n_members: u64,
    /// The token before all members, if they have the same.
    pub(crate) before: u64,
    pub(crate) after: u64,
    /// The first member.
    pub(crate) doc: u32,
    pub(crate) first: u32,
    pub(crate) n_windows: u32,
    pub(crate) flags: u32,
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Classes {
    pub(crate) n_classes: u64,
    pub(crate) n_settled: u64,
}

pub(crate) fn run(
    texts: &Texts,
    anchors: &Path,
    search: &Search,
    folder: &Path,
    progress: &Progress,
) -> Result<Classes, Error> {
    let mut anchors = Scan::<Placed>::open(&anchors.join(ANCHORS))?;
    progress.expect(anchors.left());
    let mut sorter = Sorter::<Member>::new(&folder.join("sort"), search.allowance);
    let mut document = texts.reader()?;
    while let Some(anchor) = anchors.next()? {
        let tokens = document.tokens(anchor.doc)?;
        sorter.push(member(&anchor, tokens, search))?;
        progress.advance(1)?;
    }
    drop(document);
    let mut sorted = sorter.finish()?;
    let mut members = Writer::create(&folder.join(MEMBERS))?;
    let mut classes = Writer::create(&folder.join(CLASSES))?;
    let mut found = Classes::default();
    let mut before = None;
    let mut next = sorted.next()?;
    while let Some(first) = next {
        let mut class = open(&first);
        members.push(&[first.doc, first.first])?;
        next = sorted.next()?;
        while let Some(member) = next.filter(|next| is_one_class(next, &first)) {
            members.push(&[member.doc, member.first])?;
            add(&mut class, &member);
            next = sorted.next()?;
        }
        let is_alone =
            before != Some(first.hash) && next.is_none_or(|next| next.hash != first.hash);
        if is_alone && class.flags & TIED == 0 {
            class.flags |= SETTLED;
            found.n_settled += 1;
        }
        before = Some(first.hash);
        classes.push(&class)?;
    }
    members.finish()?;
    found.n_classes = classes.finish()?;
    Ok(found)
}

fn member(anchor: &Placed, tokens: &[u64], search: &Search) -> Member {
    let (first, n_windows) = anchor.windows();
    let start = first as usize;
    let end = start + n_windows as usize - 1 + search.n_tokens;
    let bytes = bytemuck::cast_slice(&tokens[start..end]);
    // As the seed of the hash, the lead could cancel out a difference of tokens.
    let content = xxh3_128(bytes) ^ u128::from(mix(u64::from(anchor.lead()) + 1));
    let before = start.checked_sub(1).map(|at| tokens[at]);
    let after = tokens.get(end).copied();
    let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
    Member {
        hash: anchor.hash(),
        content: [content as u64, (content >> 64) as u64],
        doc: anchor.doc,
        first,
        n_windows,
        flags: flag(before.is_some(), SAME_BEFORE)
            | flag(after.is_some(), SAME_AFTER)
            | flag(anchor.is_tied(), TIED),
        before: before.unwrap_or(0),
        after: after.unwrap_or(0),
    }
}

fn is_one_class(a: &Member, b: &Member) -> bool {
    (a.hash, a.content) == (b.hash, b.content)
}

fn open(first: &Member) -> Class {
    Class {
        n_members: 1,
        before: first.before,
        after: first.after,
        doc: first.doc,
        first: first.first,
        n_windows: first.n_windows,
        flags: first.flags,
    }
}

fn add(class: &mut Class, member: &Member) {
    class.n_members += 1;
    // The end of a document equals nothing, not even another end.
    if member.flags & SAME_BEFORE == 0 || member.before != class.before {
        class.flags &= !SAME_BEFORE;
    }
    if member.flags & SAME_AFTER == 0 || member.after != class.after {
        class.flags &= !SAME_AFTER;
    }
}
