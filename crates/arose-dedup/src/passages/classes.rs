//! Classes of anchors whose windows are identical.
//!
//! All members of a class have the same tokens from their first window to the end of their last, so
//! one of them can represent all. A group of anchors with one hash is settled if it is one class
//! without ties. Then the places of each of its windows are those of the class.

use std::path::Path;

use bytemuck::{Pod, Zeroable};

use super::anchors::{ANCHORS, Member, Search};
use super::parts::{self, Twice};
use super::place_set::PlaceSet;
use crate::Error;
use crate::column::{Scan, Writer};

/// Classes, in the order of their members.
pub(crate) const CLASSES: &str = "classes";
/// The members of all classes: document and first window.
pub(crate) const MEMBERS: &str = "members";

/// Anchors with equal windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Class {
    pub(crate) n_members: u64,
    /// The hash of the set of places of the first windows.
    pub(crate) set: u64,
    /// The first member: its first token in the file of tokens, and its place.
    pub(crate) tokens_at: u64,
    pub(crate) doc: u32,
    pub(crate) first: u32,
    pub(crate) n_windows: u32,
    /// Whether the places of the class are all places of its windows.
    pub(crate) is_settled: u32,
}

/// Writes the classes of a part to `folder`. Returns the number of their anchors.
pub(crate) fn run(anchors: &Path, part: u64, search: &Search, folder: &Path) -> Result<u64, Error> {
    let base = anchors.join(ANCHORS);
    let repeated = repeated(&base, part)?;
    let is_wanted = |member: &Member| member.is_tied() || repeated.contains(member.hash);
    let mut sorted = parts::sorted::<Member>(&base, part, search.allowance, is_wanted)?;
    let mut members = Writer::create(&folder.join(MEMBERS))?;
    let mut classes = Writer::create(&folder.join(CLASSES))?;
    let mut before = None;
    let mut next = sorted.next()?;
    while let Some(first) = next {
        let mut class = Class {
            n_members: 0,
            set: 0,
            tokens_at: first.tokens_at(),
            doc: first.doc,
            first: first.first,
            n_windows: first.n_windows(),
            is_settled: 0,
        };
        let mut set = PlaceSet::default();
        let mut is_tied = false;
        let is_member =
            |member: &Member| (member.hash, member.content) == (first.hash, first.content);
        while let Some(member) = next.filter(is_member) {
            class.n_members += 1;
            set = set.and(PlaceSet::of(member.doc, member.first));
            is_tied |= member.is_tied();
            members.push(&[member.doc, member.first])?;
            next = sorted.next()?;
        }
        class.set = set.0;
        let is_alone =
            before != Some(first.hash) && next.is_none_or(|next| next.hash != first.hash);
        class.is_settled = u32::from(is_alone && !is_tied);
        before = Some(first.hash);
        classes.push(&class)?;
    }
    classes.finish()?;
    members.finish()
}

/// Hashes that may have several anchors. An anchor whose hash is unique and that is not tied has no
/// repeated window. In unrelated text nearly all anchors are of this kind, and they need not be
/// sorted.
fn repeated(base: &Path, part: u64) -> Result<Twice, Error> {
    let mut scan = Scan::<Member>::open(&parts::path(base, part))?;
    let mut repeated = Twice::new(scan.left());
    while let Some(member) = scan.next()? {
        repeated.insert(member.hash);
    }
    Ok(repeated)
}
