//! Short names as numbers, for lookup tables that are built at compile time.

/// A name while it is read: a 1, followed by its bytes in lower case.
#[derive(Clone, Copy)]
pub(super) struct Packed {
    bytes: u128,
    len: usize,
}

impl Packed {
    pub(super) const EMPTY: Self = Self { bytes: 1, len: 0 };

    /// Appends a byte.
    #[inline]
    pub(super) fn push(&mut self, byte: u8) {
        self.bytes = self.bytes << 8 | byte.to_ascii_lowercase() as u128;
        self.len += 1;
    }

    /// The value of the name in an open-addressing table filled by [`insert`].
    #[inline]
    pub(super) fn find<T: Copy, const SLOTS: usize>(self, table: &[(u128, T); SLOTS]) -> Option<T> {
        // The leading 1 takes one byte; no name in a table is longer.
        if self.len > MAX_LEN {
            return None;
        }
        let mut at = slot(self.bytes, SLOTS);
        while table[at].0 != 0 {
            if table[at].0 == self.bytes {
                return Some(table[at].1);
            }
            at = (at + 1) % SLOTS;
        }
        None
    }
}

const MAX_LEN: usize = 15;

/// Adds a name to a table; 0 marks a free slot, and no name packs to 0.
pub(super) const fn insert<T: Copy, const SLOTS: usize>(
    mut table: [(u128, T); SLOTS],
    name: &str,
    value: T,
) -> [(u128, T); SLOTS] {
    let name = name.as_bytes();
    assert!(name.len() <= MAX_LEN);
    let mut key = 1;
    let mut at = 0;
    while at < name.len() {
        key = key << 8 | name[at] as u128;
        at += 1;
    }
    let mut at = slot(key, SLOTS);
    while table[at].0 != 0 {
        at = (at + 1) % SLOTS;
    }
    table[at] = (key, value);
    table
}

/// Multiplicative hashing; `slots` is a power of two.
const fn slot(key: u128, slots: usize) -> usize {
    let folded = (key >> 64) as u64 ^ key as u64;
    (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - slots.trailing_zeros())) as usize
}
