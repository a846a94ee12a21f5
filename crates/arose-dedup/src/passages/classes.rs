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
    /// The number of tokens from the first window to the anchor.
    pub(crate) lead: u32,
    /// The number of classes of its group if it has no ties and is small, otherwise 0.
    pub(crate) n_classes: u64,
}

/// Classes of larger groups are not compared with each other: their windows are sorted.
const MAX_CLASSES: usize = 16;

impl Class {
    /// Whether the places of the class are all places of its windows.
    pub(crate) fn is_settled(&self) -> bool {
        self.n_classes == 1
    }

    fn of(first: &Member) -> Self {
        Self {
            n_members: 0,
            set: 0,
            tokens_at: first.tokens_at(),
            doc: first.doc,
            first: first.first,
            n_windows: first.n_windows(),
            lead: first.lead as u32,
            n_classes: 0,
        }
    }
}

/// Writes the classes of a part to `folder`. Returns the number of their anchors.
pub(crate) fn run(anchors: &Path, part: u64, search: &Search, folder: &Path) -> Result<u64, Error> {
    let base = anchors.join(ANCHORS);
    let repeated = repeated(&base, part)?;
    let is_wanted = |member: &Member| member.is_tied() || repeated.contains(member.hash);
    let mut sorted = parts::sorted::<Member>(&base, part, search.allowance, is_wanted)?;
    let mut members = Writer::create(&folder.join(MEMBERS))?;
    let mut classes = Writer::create(&folder.join(CLASSES))?;
    let mut group = Group::default();
    let mut next = sorted.next()?;
    while let Some(first) = next {
        let mut class = Class::of(&first);
        let mut set = PlaceSet::default();
        let is_member =
            |member: &Member| (member.hash, member.content) == (first.hash, first.content);
        while let Some(member) = next.filter(is_member) {
            class.n_members += 1;
            set = set.and(PlaceSet::of(member.doc, member.first));
            group.is_tied |= member.is_tied();
            members.push(&[member.doc, member.first])?;
            next = sorted.next()?;
        }
        class.set = set.0;
        group.push(class, &mut classes)?;
        if next.is_none_or(|next| next.hash != first.hash) {
            group.finish(&mut classes)?;
        }
    }
    classes.finish()?;
    members.finish()
}

/// The classes of anchors with one hash, as far as they are not written yet.
#[derive(Default)]
struct Group {
    classes: Vec<Class>,
    is_tied: bool,
    is_large: bool,
}

impl Group {
    fn push(&mut self, class: Class, out: &mut Writer<Class>) -> Result<(), Error> {
        self.classes.push(class);
        if self.classes.len() > MAX_CLASSES {
            self.is_large = true;
            out.extend(&self.classes)?;
            self.classes.clear();
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Writer<Class>) -> Result<(), Error> {
        if !self.is_large && !self.is_tied {
            let n_classes = self.classes.len() as u64;
            let classes = self.classes.iter_mut();
            classes.for_each(|class| class.n_classes = n_classes);
        }
        out.extend(&self.classes)?;
        self.classes.clear();
        self.is_tied = false;
        self.is_large = false;
        Ok(())
    }
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
