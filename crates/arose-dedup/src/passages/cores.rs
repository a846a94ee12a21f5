//! Large groups of classes without ties, compared with their first class token by token.
//!
//! *Question.* A passage in many documents has anchors near its ends whose windows also contain
//! text around it, which differs in each document. So there are as many classes as documents. Which
//! of their windows are repeated?
//!
//! *Idea.* All classes are aligned at the selected gram, as in [`super::groups`]. The text around
//! it that they all have in common is the *core*. A window inside the core is in all classes, so it
//! needs one record. A window that extends beyond the core contains the next token on that side. If
//! no other member has that token there, the window is not repeated. Only the others are sorted.

use std::ops::Range;
use std::path::Path;

use arose::mix::mix;
use bytemuck::{Pod, Zeroable};

use super::anchors::Search;
use super::classes::{Class, GroupKind, PartClasses};
use super::parts::Twice;
use super::place_set::PlaceSet;
use super::runs::Run;
use super::spool::{Spool, SpoolScan};
use super::text::TextReader;
use crate::Error;

/// The large groups of a part.
pub(crate) struct Cores {
    /// One for each group.
    pub(crate) cores: Spool<Core>,
    /// One for each class.
    pub(crate) edges: Spool<ClassEdge>,
    /// Tokens next to a core that several members may have.
    pub(crate) next_tokens: Twice,
}

/// What all classes of a group have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Core {
    /// The number of its tokens before the anchor, and from the anchor on.
    n_common: [u32; 2],
    /// The first place of its first window.
    first_doc: u32,
    first_token: u32,
    /// The number of places of its windows.
    count: u64,
    /// The hash of the set of places of its first window.
    set: u64,
    /// The next token of the first class on each side, or [`NONE`].
    next: [u64; 2],
    /// Distinguishes groups.
    number: u64,
}

/// How far a class agrees with the first one of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ClassEdge {
    /// The number of equal tokens before the anchor, and from the anchor on.
    n_equal: [u32; 2],
    /// The next token on each side, or [`NONE`].
    next: [u64; 2],
}

/// No token. A token of this value only costs time.
const NONE: u64 = 0;

impl Core {
    /// Adds the places of a class.
    fn add(&mut self, class: &Class) {
        let from = class.lead - self.n_common[0];
        let place = (class.doc, class.first + from);
        (self.first_doc, self.first_token) = place.min((self.first_doc, self.first_token));
        self.count += class.n_members;
        let set = PlaceSet(class.set).shifted(from);
        self.set = PlaceSet(self.set).and(set).0;
    }

    /// Returns the windows of a class that are in the core, from the first to the end. If there are
    /// none, the windows from the end to the first extend beyond the common text on both sides.
    fn windows(&self, class: &Class, n_tokens: usize) -> [u32; 2] {
        let [n_before, n_after] = self.n_common;
        let first = class.lead - n_before;
        let end = (class.lead + n_after + 1).saturating_sub(n_tokens as u32);
        [first, end].map(|window| window.min(class.n_windows))
    }

    /// Returns the run of the windows in the core, with its start relative to the first window of
    /// the class.
    pub(crate) fn run(&self, class: &Class, n_tokens: usize) -> Option<Run> {
        let [start, end] = self.windows(class, n_tokens);
        (start < end).then(|| Run {
            doc: 0,
            start,
            n_windows: end - start,
            times: 1,
            step: 0,
            first_doc: self.first_doc,
            first_token: self.first_token,
            count: self.count,
            set: self.set,
        })
    }

    /// Returns hashes of the next tokens of a class beyond the core.
    fn next_tokens(&self, edge: &ClassEdge) -> [Option<u64>; 2] {
        std::array::from_fn(|side| {
            let token = match edge.n_equal[side] > self.n_common[side] {
                true => self.next[side],
                false => edge.next[side],
            };
            (token != NONE).then(|| mix(token ^ mix(2 * self.number + side as u64)))
        })
    }
}

/// The tokens of a class around its anchor.
#[derive(Default)]
struct ClassTokens {
    tokens: Vec<u64>,
    lead: usize,
}

impl ClassTokens {
    fn read(&mut self, class: &Class, n_tokens: usize, reader: &TextReader) -> Result<(), Error> {
        let n = class.n_windows as usize - 1 + n_tokens;
        self.lead = class.lead as usize;
        self.tokens.resize(n, 0);
        reader.tokens_at(class.tokens_at, &mut self.tokens)
    }

    /// Returns the tokens before the anchor, the nearest first, and those from the anchor on.
    fn sides(&self) -> [impl Iterator<Item = u64>; 2] {
        let (before, after) = self.tokens.split_at(self.lead);
        let none = &self.tokens[..0];
        [(before, none), (none, after)]
            .map(|(before, after)| before.iter().rev().chain(after).copied())
    }

    fn edge(&self, first: &Self) -> ClassEdge {
        let mut edge = ClassEdge::zeroed();
        let sides = self.sides().into_iter().zip(first.sides());
        for (side, (own, first)) in sides.enumerate() {
            let mut own = own.peekable();
            for there in first {
                if own.next_if_eq(&there).is_none() {
                    break;
                }
                edge.n_equal[side] += 1;
            }
            edge.next[side] = own.next().unwrap_or(NONE);
        }
        edge
    }
}

impl Cores {
    /// Compares the classes of large groups.
    pub(crate) fn find(
        found: &mut PartClasses,
        reader: &TextReader,
        search: &Search,
        folder: &Path,
    ) -> Result<Self, Error> {
        let mut edges = Spool::new(&folder.join("edges"), search.allowance / 4);
        let mut common = Spool::new(&folder.join("common"), search.allowance / 8);
        let mut contexts = [ClassTokens::default(), ClassTokens::default()];
        for_each_large(found, |classes, n_classes| {
            let core = compare(
                classes,
                n_classes,
                &mut contexts,
                &mut edges,
                (reader, search),
            )?;
            common.push(&core)
        })?;
        let mut cores = Spool::new(&folder.join("cores"), search.allowance / 8);
        let mut next_tokens = Twice::new(2 * edges.len());
        let (mut common, mut edges_left) = (common.scan()?, edges.scan()?);
        for_each_large(found, |classes, n_classes| {
            let mut core = common.next()?.expect("one for each group");
            (core.first_doc, core.first_token) = (u32::MAX, u32::MAX);
            for _ in 0..n_classes {
                let class = classes.next()?.expect("as many classes as the group says");
                let edge = edges_left.next()?.expect("one for each class");
                core.add(&class);
                for token in core.next_tokens(&edge).into_iter().flatten() {
                    // All windows of a class with several members are repeated.
                    (0..class.n_members.min(2)).for_each(|_| next_tokens.insert(token));
                }
            }
            cores.push(&core)
        })?;
        Ok(Self {
            cores,
            edges,
            next_tokens,
        })
    }

    /// Returns the windows of a class beyond the core that may be repeated.
    pub(crate) fn others(
        next_tokens: &Twice,
        core: &Core,
        edge: &ClassEdge,
        class: &Class,
        n_tokens: usize,
    ) -> [Range<u32>; 2] {
        let [before, after] = core
            .next_tokens(edge)
            .map(|token| token.is_some_and(|token| next_tokens.contains(token)));
        let [first, end] = core.windows(class, n_tokens);
        if before && after && end <= first {
            return [0..class.n_windows, 0..0];
        }
        let beyond = [0..first.min(end), first.max(end)..class.n_windows];
        [
            if before { beyond[0].clone() } else { 0..0 },
            if after { beyond[1].clone() } else { 0..0 },
        ]
    }
}

/// Writes the edges of the classes of a group. Returns what they have in common, without places.
fn compare(
    classes: &mut SpoolScan<'_, Class>,
    n_classes: u32,
    [first, own]: &mut [ClassTokens; 2],
    edges: &mut Spool<ClassEdge>,
    (reader, search): (&TextReader, &Search),
) -> Result<Core, Error> {
    let mut core = Core::zeroed();
    (core.number, core.n_common) = (edges.len(), [u32::MAX; 2]);
    for number in 0..n_classes {
        let class = classes.next()?.expect("as many classes as the group says");
        let context = if number == 0 { &mut *first } else { &mut *own };
        context.read(&class, search.n_tokens, reader)?;
        let edge = if number == 0 {
            first.edge(first)
        } else {
            own.edge(first)
        };
        edges.push(&edge)?;
        for (common, equal) in core.n_common.iter_mut().zip(edge.n_equal) {
            *common = equal.min(*common);
        }
    }
    let next = first.sides().into_iter().zip(core.n_common);
    for (token, (mut side, n)) in core.next.iter_mut().zip(next) {
        *token = side.nth(n as usize).unwrap_or(NONE);
    }
    Ok(core)
}

/// Calls `take` for each large group with its number of classes, which it must take.
fn for_each_large(
    found: &mut PartClasses,
    mut take: impl FnMut(&mut SpoolScan<'_, Class>, u32) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut groups, mut classes) = (found.groups.scan()?, found.classes.scan()?);
    while let Some(group) = groups.next()? {
        match group.kind() {
            GroupKind::Large => take(&mut classes, group.n_classes)?,
            _ => classes.skip(group.n_classes)?,
        }
    }
    Ok(())
}
