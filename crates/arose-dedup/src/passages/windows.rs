//! The windows of classes whose groups are large or tied, one record each.
//!
//! The first member of a class writes a record for each of its windows that may be repeated and is
//! not in the core of a large group, with the weight of the class. A sort by hash brings equal
//! windows of all classes together. Each window gets its number of places, the first place, and the
//! hash of the set of all places. Equal windows have anchors with equal hashes, so the windows of a
//! part match none outside it.

use std::ops::Range;
use std::path::Path;

use arose::passage::RollingHash;
use bytemuck::{Pod, Zeroable};

use super::anchors::Search;
use super::classes::{Class, GroupKind, PartClasses};
use super::cores::Cores;
use super::place_set::PlaceSet;
use super::spool::Spool;
use super::text::TextReader;
use crate::Error;
use crate::sorter::{Sorted, Sorter};

/// Windows of a class that write records, sorted by the place of the first member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Stretch {
    tokens_at: u64,
    doc: u32,
    /// The first window.
    token: u32,
    /// The class and the number of the first window in it.
    slot: u64,
    weight: u64,
    /// The hash of the set of places of the first window.
    set: u64,
    n_windows: u64,
}

impl Stretch {
    fn of(class: &Class, number: u64, windows: Range<u32>) -> Self {
        Self {
            tokens_at: class.tokens_at + u64::from(windows.start),
            doc: class.doc,
            token: class.first + windows.start,
            slot: number << OFFSET_BITS | u64::from(windows.start),
            weight: class.n_members,
            set: PlaceSet(class.set).shifted(windows.start).0,
            n_windows: u64::from(windows.end - windows.start),
        }
    }
}

/// A record of a window, sorted by its hash, then place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Window {
    hash: [u64; 2],
    doc: u32,
    token: u32,
    set: u64,
    weight: u64,
    /// The class and the number of the window in it.
    slot: u64,
}

/// A summary of all places of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Distinct {
    n_records: u64,
    count: u64,
    set: u64,
    doc: u32,
    token: u32,
}

/// A repeated window of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RepeatedWindow {
    slot: u64,
    pub(crate) count: u64,
    /// The hash of the set of places.
    pub(crate) set: u64,
    /// The first place.
    pub(crate) doc: u32,
    pub(crate) token: u32,
}

/// Bits of a slot for the number of a window.
const OFFSET_BITS: u32 = 17;

impl RepeatedWindow {
    pub(crate) fn class(&self) -> u64 {
        self.slot >> OFFSET_BITS
    }

    pub(crate) fn offset(&self) -> u32 {
        self.slot as u32 & ((1 << OFFSET_BITS) - 1)
    }
}

/// Returns the repeated windows of the classes of large and tied groups, by class, and the number
/// of window records. Windows in a core are not among them.
pub(crate) fn run(
    found: &mut PartClasses,
    cores: &mut Cores,
    reader: &TextReader,
    search: &Search,
    folder: &Path,
) -> Result<(Sorted<RepeatedWindow>, u64), Error> {
    let windows = hand_in(found, cores, reader, search, folder)?;
    let Met {
        mut slots,
        mut groups,
    } = meet(windows, search, folder)?;
    let (mut slots, mut groups) = (slots.scan()?, groups.scan()?);
    let n_windows = slots.left();
    let mut results = Sorter::new(&folder.join("repeated"), search.allowance);
    while let Some(group) = groups.next()? {
        for _ in 0..group.n_records {
            let slot = slots.next()?.expect("a slot for each record");
            if group.count > 1 {
                results.push(RepeatedWindow {
                    slot,
                    count: group.count,
                    set: group.set,
                    doc: group.doc,
                    token: group.token,
                })?;
            }
        }
    }
    Ok((results.finish()?, n_windows))
}

/// Windows by content.
struct Met {
    slots: Spool<u64>,
    /// A summary for each distinct window.
    groups: Spool<Distinct>,
}

fn meet(mut windows: Sorted<Window>, search: &Search, folder: &Path) -> Result<Met, Error> {
    let mut slots = Spool::new(&folder.join("slots"), search.allowance / 4);
    let mut groups = Spool::new(&folder.join("distinct"), search.allowance / 4);
    let mut next = windows.next()?;
    while let Some(first) = next {
        let mut group = Distinct {
            n_records: 0,
            count: 0,
            set: 0,
            doc: first.doc,
            token: first.token,
        };
        while let Some(window) = next.filter(|window| window.hash == first.hash) {
            slots.push(&window.slot)?;
            group.n_records += 1;
            group.count += window.weight;
            group.set = PlaceSet(group.set).and(PlaceSet(window.set)).0;
            next = windows.next()?;
        }
        groups.push(&group)?;
    }
    Ok(Met { slots, groups })
}

fn hand_in(
    found: &mut PartClasses,
    cores: &mut Cores,
    reader: &TextReader,
    search: &Search,
    folder: &Path,
) -> Result<Sorted<Window>, Error> {
    let mut stretches = stretches(found, cores, search, folder)?;
    let mut windows = Sorter::new(&folder.join("windows"), search.allowance);
    let mut tokens = Vec::new();
    while let Some(stretch) = stretches.next()? {
        tokens.resize(stretch.n_windows as usize - 1 + search.n_tokens, 0);
        reader.tokens_at(stretch.tokens_at, &mut tokens)?;
        let hashes = RollingHash::new(&tokens).windows(search.n_tokens);
        let salt = search.salt(stretch.doc);
        let mut set = PlaceSet(stretch.set);
        for (offset, hash) in (0..).zip(hashes) {
            windows.push(Window {
                hash: [hash[0] ^ salt, hash[1]],
                doc: stretch.doc,
                token: stretch.token + offset,
                set: set.0,
                weight: stretch.weight,
                slot: stretch.slot + u64::from(offset),
            })?;
            set = set.shifted(1);
        }
    }
    windows.finish()
}

/// Returns the stretches by the place of the first member, so that tokens are read in order.
fn stretches(
    found: &mut PartClasses,
    cores: &mut Cores,
    search: &Search,
    folder: &Path,
) -> Result<Sorted<Stretch>, Error> {
    let mut stretches = Sorter::new(&folder.join("stretches"), search.allowance);
    let (mut groups, mut classes) = (found.groups.scan()?, found.classes.scan()?);
    let next_tokens = &cores.next_tokens;
    let (mut cores, mut edges) = (cores.cores.scan()?, cores.edges.scan()?);
    let mut number = 0;
    while let Some(group) = groups.next()? {
        let core = match group.kind() {
            GroupKind::Settled | GroupKind::Small => {
                classes.skip(group.n_classes)?;
                number += u64::from(group.n_classes);
                continue;
            }
            GroupKind::Large => cores.next()?,
            GroupKind::Tied => None,
        };
        for _ in 0..group.n_classes {
            let class = classes.next()?.expect("as many classes as groups say");
            let ranges = match core {
                None => [0..class.n_windows, 0..0],
                Some(core) => {
                    let edge = edges.next()?.expect("one for each class");
                    Cores::others(next_tokens, &core, &edge, &class, search.n_tokens)
                }
            };
            for range in ranges.into_iter().filter(|range| !range.is_empty()) {
                stretches.push(Stretch::of(&class, number, range))?;
            }
            number += 1;
        }
    }
    stretches.finish()
}
