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
use super::spool::Spool;
use crate::Error;
use crate::column::Scan;
use crate::sorter::Sorted;

/// The classes of a part.
pub(crate) struct PartClasses {
    /// In order of their hashes.
    pub(crate) groups: Spool<GroupSize>,
    /// In the order of their groups.
    pub(crate) classes: Spool<Class>,
    /// The members of all classes: document and first window.
    pub(crate) members: Spool<[u32; 2]>,
}

/// Classes with one hash.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct GroupSize {
    pub(crate) n_classes: u32,
    /// Whether a member is tied.
    is_tied: u32,
}

/// How the repeated windows of a group are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupKind {
    /// The places of the only class are all places of its windows.
    Settled,
    /// Few classes without ties are compared with each other.
    Small,
    /// Many classes without ties are compared with one of them.
    Large,
    /// Windows are sorted.
    Tied,
}

/// Classes of larger groups are not compared with each other.
const MAX_CLASSES: u32 = 16;

impl GroupSize {
    pub(crate) fn kind(self) -> GroupKind {
        match self.n_classes {
            _ if self.is_tied > 0 => GroupKind::Tied,
            1 => GroupKind::Settled,
            2..=MAX_CLASSES => GroupKind::Small,
            _ => GroupKind::Large,
        }
    }
}

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
}

impl Class {
    fn of(first: &Member) -> Self {
        Self {
            n_members: 0,
            set: 0,
            tokens_at: first.tokens_at(),
            doc: first.doc,
            first: first.first,
            n_windows: first.n_windows(),
            lead: first.lead as u32,
        }
    }
}

/// Returns the classes of a part. Those that do not fit into memory are written to `folder`.
pub(crate) fn run(
    anchors: &Path,
    part: u64,
    search: &Search,
    folder: &Path,
) -> Result<PartClasses, Error> {
    let mut sorted = repeated(&anchors.join(ANCHORS), part, search.allowance)?;
    let mut found = PartClasses {
        groups: Spool::new(&folder.join("groups"), search.allowance / 8),
        classes: Spool::new(&folder.join("classes"), search.allowance / 2),
        members: Spool::new(&folder.join("members"), search.allowance / 4),
    };
    let mut group = GroupSize::default();
    let mut next = sorted.next()?;
    while let Some(first) = next {
        let mut class = Class::of(&first);
        let mut set = PlaceSet::default();
        let is_member =
            |member: &Member| (member.hash, member.content) == (first.hash, first.content);
        while let Some(member) = next.filter(is_member) {
            class.n_members += 1;
            set = set.and(PlaceSet::of(member.doc, member.first));
            group.is_tied |= u32::from(member.is_tied());
            found.members.push(&[member.doc, member.first])?;
            next = sorted.next()?;
        }
        class.set = set.0;
        group.n_classes += 1;
        found.classes.push(&class)?;
        if next.is_none_or(|next| next.hash != first.hash) {
            found.groups.push(&std::mem::take(&mut group))?;
        }
    }
    Ok(found)
}

/// Returns the anchors of a part that may have repeated windows, in order.
///
/// An anchor whose hash is unique and that is not tied has none. In unrelated text nearly all
/// anchors are of this kind, and they need not be sorted.
fn repeated(base: &Path, part: u64, allowance: u64) -> Result<Sorted<Member>, Error> {
    let is_wanted =
        |member: &Member, twice: &Twice| member.is_tied() || twice.contains(member.hash);
    if let Some(mut members) = parts::load::<Member>(base, part, allowance)? {
        let mut twice = Twice::new(members.len() as u64);
        members.iter().for_each(|member| twice.insert(member.hash));
        members.retain(|member| is_wanted(member, &twice));
        return Ok(Sorted::Memory(parts::in_order(members).into_iter()));
    }
    let mut scan = Scan::<Member>::open(&parts::path(base, part))?;
    let mut twice = Twice::new(scan.left());
    while let Some(member) = scan.next()? {
        twice.insert(member.hash);
    }
    parts::sorted_runs(base, part, allowance, |member| is_wanted(member, &twice))
}
