//! The windows of classes whose groups are large or tied, one record each.
//!
//! The first member of a class writes a record for each of its windows, with the weight of the
//! class. A sort by hash brings equal windows of all classes together. Each window gets its number
//! of places, the first place, and the hash of the set of all places. Equal windows have anchors
//! with equal hashes, so the windows of a part match none outside it.

use std::path::Path;

use arose::passage::RollingHash;
use bytemuck::{Pod, Zeroable};

use super::anchors::Search;
use super::classes::{CLASSES, Class};
use super::place_set::PlaceSet;
use super::text::TextReader;
use crate::Error;
use crate::column::{Scan, Writer};
use crate::sorter::{Sorted, Sorter};

/// A class that writes its windows, sorted by the place of its first member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct HandIn {
    tokens_at: u64,
    doc: u32,
    first: u32,
    class: u64,
    weight: u64,
    set: u64,
    n_windows: u64,
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

/// Returns the repeated windows of the classes in `folder`, by class, and the number of window
/// records.
pub(crate) fn run(
    reader: &TextReader,
    search: &Search,
    folder: &Path,
) -> Result<(Sorted<RepeatedWindow>, u64), Error> {
    let windows = hand_in(reader, search, folder)?;
    let n_windows = meet(windows, folder)?;
    let mut slots = Scan::<u64>::open(&folder.join("slots"))?;
    let mut groups = Scan::<Distinct>::open(&folder.join("distinct"))?;
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

/// Writes a summary and the place of each distinct window. Returns the number of distinct windows.
fn meet(mut windows: Sorted<Window>, folder: &Path) -> Result<u64, Error> {
    let mut slots = Writer::create(&folder.join("slots"))?;
    let mut groups = Writer::create(&folder.join("distinct"))?;
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
    groups.finish()?;
    slots.finish()
}

fn hand_in(reader: &TextReader, search: &Search, folder: &Path) -> Result<Sorted<Window>, Error> {
    let mut firsts = firsts(search, folder)?;
    let mut windows = Sorter::new(&folder.join("windows"), search.allowance);
    let mut tokens = Vec::new();
    while let Some(class) = firsts.next()? {
        tokens.resize(class.n_windows as usize - 1 + search.n_tokens, 0);
        reader.tokens_at(class.tokens_at, &mut tokens)?;
        let hashes = RollingHash::new(&tokens).windows(search.n_tokens);
        let salt = search.salt(class.doc);
        let mut set = PlaceSet(class.set);
        for (offset, hash) in (0..).zip(hashes) {
            windows.push(Window {
                hash: [hash[0] ^ salt, hash[1]],
                doc: class.doc,
                token: class.first + offset,
                set: set.0,
                weight: class.weight,
                slot: class.class << OFFSET_BITS | u64::from(offset),
            })?;
            set = set.shifted(1);
        }
    }
    windows.finish()
}

/// Returns the classes of these groups by the place of their first member, so that tokens are read
/// in order.
fn firsts(search: &Search, folder: &Path) -> Result<Sorted<HandIn>, Error> {
    let mut classes = Scan::<Class>::open(&folder.join(CLASSES))?;
    let mut firsts = Sorter::new(&folder.join("firsts"), search.allowance);
    let mut number = 0;
    while let Some(class) = classes.next()? {
        if class.n_classes == 0 {
            firsts.push(HandIn {
                tokens_at: class.tokens_at,
                doc: class.doc,
                first: class.first,
                class: number,
                weight: class.n_members,
                set: class.set,
                n_windows: u64::from(class.n_windows),
            })?;
        }
        number += 1;
    }
    firsts.finish()
}
