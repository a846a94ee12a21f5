//! An entry of a schedule in 7 bytes.

use std::cmp::Ordering;

/// A page and the time of its turn since the base of its schedule, in 7 bytes. The time comes
/// first, in units of [`UNIT`] seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry([u8; 7]);

/// Seconds to which times are rounded.
const UNIT: u32 = 8;

/// Seconds that entries can hold: four years.
pub(super) const SPAN: u32 = UNIT << 24;

/// The base of entries whose times are around this one.
pub(super) fn base_at(time: u32) -> u32 {
    time.saturating_sub(SPAN / 2) / UNIT * UNIT
}

impl Entry {
    pub(super) fn new(page: u32, time: u32, base: u32) -> Self {
        let units = time.saturating_sub(base).min(SPAN - 1) / UNIT;
        let [_, a, b, c] = units.to_be_bytes();
        let [d, e, f, g] = page.to_be_bytes();
        Self([a, b, c, d, e, f, g])
    }

    pub(super) fn page(self) -> u32 {
        let [.., a, b, c, d] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }

    pub(super) fn time(self, base: u32) -> u32 {
        let [a, b, c, ..] = self.0;
        base.saturating_add(u32::from_be_bytes([0, a, b, c]) * UNIT)
    }

    fn key(self) -> u64 {
        let [a, b, c, d, e, f, g] = self.0;
        u64::from_be_bytes([0, a, b, c, d, e, f, g])
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
