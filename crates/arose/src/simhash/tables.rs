//! Permuted sorted tables: finds 64-bit fingerprints that differ in at most three bits.
//!
//! *Question.* Is there a nearly identical page among billions, if only eight bytes of each are
//! stored?
//!
//! *Idea.* A sorted list finds the fingerprints that share leading bits with a query, but a
//! differing bit may be among those. So keep several copies, each with different bits moved to the
//! front before sorting. Divide the bits into blocks. Three differing bits affect at most three of
//! them, so with every choice of unaffected blocks as a leading part, all leading bits are right in
//! one copy. Probe each copy by its leading bits and check the full distance of the fingerprints
//! found (Manku, Jain & Das Sarma 2007).
//!
//! *Parameters.* The [`Design`]: more tables allow more leading bits, thus fewer candidates.
//!
//! *Cost.* `16` bytes per fingerprint and table; per query and table one binary search and about
//! `2^(d - p)` comparisons for `2^d` fingerprints and `p` leading bits: see
//! [`expected_candidates`].
//!
//! *Error.* Every fingerprint within three bits is found, and no other. Two unrelated pages are
//! that close with probability `43745 / 2^64`; see [`accidental_pairs`].
//!
//! *Not for* more than three differing bits, nor for wider fingerprints: use
//! [`pieces`](super::pieces).

use super::Fingerprint;

/// The maximum number of differing bits of similar fingerprints.
pub const MAX_DISTANCE: u32 = 3;

/// The number of 64-bit fingerprints within [`MAX_DISTANCE`] of a given one:
/// `1 + 64 + 2016 + 41664`.
pub const N_NEIGHBOURS: u64 = 43_745;

/// Returns the expected number of pairs of unrelated pages that are similar by accident.
///
/// ```
/// use arose::simhash::tables::accidental_pairs;
/// assert_eq!((accidental_pairs(8e9) / 100.0).round(), 759.0);
/// ```
#[must_use]
pub fn accidental_pairs(n_pages: f64) -> f64 {
    n_pages * (n_pages - 1.0) / 2.0 * N_NEIGHBOURS as f64 / 2_f64.powi(64)
}

/// Returns the expected number of fingerprints in one table that share `n_leading` bits with a
/// query by accident.
///
/// ```
/// use arose::simhash::tables::expected_candidates;
/// assert_eq!(expected_candidates(2_f64.powi(34), 31), 8.0);
/// assert_eq!(expected_candidates(2_f64.powi(34), 25), 512.0);
/// ```
#[must_use]
pub fn expected_candidates(n_stored: f64, n_leading: u32) -> f64 {
    n_stored / 2_f64.powi(n_leading as i32)
}

/// The leading bits of each table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Design {
    /// Four blocks of 16 bits, one leads: 16 leading bits.
    Four,
    /// Five blocks of 13 or 12 bits, two lead: 25 or 26 leading bits.
    Ten,
    /// Four blocks of 16 bits, one leads; the other 48 bits are four blocks of 12, one follows: 28
    /// leading bits.
    Sixteen,
    /// Six blocks of 11 or 10 bits, three lead: 31 to 33 leading bits.
    Twenty,
}

impl Design {
    /// All designs, the fewest tables first.
    pub const ALL: [Self; 4] = [Self::Four, Self::Ten, Self::Sixteen, Self::Twenty];

    /// Returns the leading bits of each table, as a mask.
    #[must_use]
    pub fn leading(self) -> Vec<u64> {
        match self {
            Self::Four => choose(&blocks(u64::MAX, 4), 1),
            Self::Ten => choose(&blocks(u64::MAX, 5), 2),
            Self::Sixteen => blocks(u64::MAX, 4)
                .into_iter()
                .flat_map(|first| blocks(!first, 4).into_iter().map(move |next| first | next))
                .collect(),
            Self::Twenty => choose(&blocks(u64::MAX, 6), 3),
        }
    }
}

/// An in-memory index of 64-bit fingerprints that finds those within three bits.
#[derive(Debug, Clone)]
pub struct Tables {
    tables: Vec<Table>,
}

impl Tables {
    /// Sorts the fingerprints once per table.
    #[must_use]
    pub fn new(design: Design, fingerprints: &[Fingerprint<1>]) -> Self {
        let tables = design.leading().into_iter();
        Self {
            tables: tables
                .map(|leading| Table::new(leading, fingerprints))
                .collect(),
        }
    }

    /// Returns all fingerprints within [`MAX_DISTANCE`] of `query`, as index and distance, by
    /// index.
    #[must_use]
    pub fn neighbours(&self, query: &Fingerprint<1>) -> Vec<(usize, u32)> {
        let [query] = query.0;
        let mut found = Vec::new();
        for (table_idx, table) in self.tables.iter().enumerate() {
            let earlier = &self.tables[..table_idx];
            for (differing, idx) in table.probe(query) {
                let distance = differing.count_ones();
                // A pair that matches in the leading bits of several tables counts in the first.
                if distance <= MAX_DISTANCE && earlier.iter().all(|t| t.leading & differing != 0) {
                    found.push((idx, distance));
                }
            }
        }
        found.sort_unstable();
        found
    }
}

/// One permuted and sorted copy.
#[derive(Debug, Clone)]
struct Table {
    /// The leading bits.
    leading: u64,
    order: BitOrder,
    /// Permuted fingerprints with their indices, sorted.
    rows: Vec<(u64, usize)>,
}

impl Table {
    fn new(leading: u64, fingerprints: &[Fingerprint<1>]) -> Self {
        let order = BitOrder::new(leading);
        let rows = fingerprints.iter().enumerate();
        let mut rows: Vec<_> = rows
            .map(|(idx, print)| (order.apply(print.0[0]), idx))
            .collect();
        rows.sort_unstable();
        Self {
            leading,
            order,
            rows,
        }
    }

    /// Returns the rows that match `query` in the leading bits: the differing bits, and the index.
    fn probe(&self, query: u64) -> impl Iterator<Item = (u64, usize)> {
        let permuted = self.order.apply(query);
        let rest = u64::MAX >> self.leading.count_ones();
        let start = self.rows.partition_point(|row| row.0 < permuted & !rest);
        let rows = self.rows[start..].iter();
        rows.take_while(move |row| row.0 <= permuted | rest)
            .map(move |&(row, idx)| (self.order.undo(row) ^ query, idx))
    }
}

/// An order of the 64 bits, as runs of bits that stay together: the start and length of each.
///
/// The first run becomes the most significant.
#[derive(Debug, Clone)]
struct BitOrder(Vec<(u32, u32)>);

impl BitOrder {
    /// Moves the bits of the mask `leading` to the front.
    fn new(leading: u64) -> Self {
        let mut order = runs(leading);
        order.extend(runs(!leading));
        Self(order)
    }

    fn apply(&self, bits: u64) -> u64 {
        self.0.iter().fold(0, |permuted, &(start, length)| {
            permuted << length | (bits >> start & low(length))
        })
    }

    fn undo(&self, mut permuted: u64) -> u64 {
        let mut bits = 0;
        for &(start, length) in self.0.iter().rev() {
            bits |= (permuted & low(length)) << start;
            permuted >>= length;
        }
        bits
    }
}

/// Returns the lowest `length` bits, for 1 to 63.
const fn low(length: u32) -> u64 {
    (1 << length) - 1
}

/// Returns the runs of set bits in a mask that has both set and clear bits.
fn runs(mut mask: u64) -> Vec<(u32, u32)> {
    let mut runs = Vec::new();
    while mask != 0 {
        let start = mask.trailing_zeros();
        let length = (mask >> start).trailing_ones();
        runs.push((start, length));
        mask &= !(low(length) << start);
    }
    runs
}

/// Divides the set bits of `mask` into `n` blocks whose sizes differ by at most one, larger first.
fn blocks(mask: u64, n: usize) -> Vec<u64> {
    let bits: Vec<u64> = (0..64)
        .map(|i| 1 << i)
        .filter(|bit| mask & bit != 0)
        .collect();
    let (size, larger) = (bits.len() / n, bits.len() % n);
    let mut rest = &bits[..];
    let mut cut = |size: usize| {
        let (block, after) = rest.split_at(size);
        rest = after;
        block.iter().fold(0, |block, bit| block | bit)
    };
    (0..n)
        .map(|i| cut(size + usize::from(i < larger)))
        .collect()
}

/// Returns the unions of every choice of `k` blocks.
fn choose(blocks: &[u64], k: u32) -> Vec<u64> {
    let choices = (0_u32..1 << blocks.len()).filter(|choice| choice.count_ones() == k);
    let union = |choice: u32| {
        let chosen = blocks
            .iter()
            .enumerate()
            .filter(|(i, _)| choice >> i & 1 == 1);
        chosen.fold(0, |union, (_, block)| union | block)
    };
    choices.map(union).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mix::SplitMix;
    use proptest::prelude::*;

    /// Number of tables, and the fewest and most leading bits.
    #[test]
    fn designs_of_the_specification() {
        for (design, n_tables, fewest, most) in [
            (Design::Four, 4, 16, 16),
            (Design::Ten, 10, 25, 26),
            (Design::Sixteen, 16, 28, 28),
            (Design::Twenty, 20, 31, 33),
        ] {
            let sizes: Vec<u32> = design.leading().iter().map(|m| m.count_ones()).collect();
            assert_eq!(sizes.len(), n_tables, "{design:?}");
            assert_eq!(sizes.iter().min(), Some(&fewest), "{design:?}");
            assert_eq!(sizes.iter().max(), Some(&most), "{design:?}");
        }
        let sizes = |n| {
            blocks(u64::MAX, n)
                .iter()
                .map(|b| b.count_ones())
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(5), [13, 13, 13, 13, 12]);
        assert_eq!(sizes(6), [11, 11, 11, 11, 10, 10]);
    }

    /// All masks of `n_bits` set bits among 64.
    fn masks(n_bits: u32) -> Vec<u64> {
        if n_bits == 0 {
            return vec![0];
        }
        let shorter = masks(n_bits - 1);
        let above = |mask: u64| 64 - mask.leading_zeros()..64;
        shorter
            .into_iter()
            .flat_map(|mask| above(mask).map(move |i| mask | 1 << i))
            .collect()
    }

    /// Each of the 43,745 neighbours of a stored fingerprint finds it, among others.
    #[test]
    fn every_neighbour_is_found() {
        let mut random = SplitMix::new(3);
        let stored: Vec<_> = (0..1000)
            .map(|_| Fingerprint([random.next_u64()]))
            .collect();
        let neighbours: Vec<u64> = (0..=MAX_DISTANCE).flat_map(masks).collect();
        assert_eq!(neighbours.len() as u64, N_NEIGHBOURS);
        for design in Design::ALL {
            let tables = Tables::new(design, &stored);
            for mask in &neighbours {
                let query = Fingerprint([stored[500].0[0] ^ mask]);
                assert_eq!(
                    tables.neighbours(&query),
                    [(500, mask.count_ones())],
                    "{design:?}"
                );
            }
        }
    }

    /// None of the 635,376 fingerprints at distance 4 is found.
    #[test]
    fn distance_four_is_never_reported() {
        let stored = Fingerprint([0x0123_4567_89AB_CDEF]);
        let masks = masks(4);
        assert_eq!(masks.len(), 635_376);
        for design in Design::ALL {
            let tables = Tables::new(design, &[stored]);
            for mask in &masks {
                assert!(
                    tables
                        .neighbours(&Fingerprint([stored.0[0] ^ mask]))
                        .is_empty()
                );
            }
        }
    }

    /// Crowded fingerprints, with few random bits among zeros or ones, so that many are equal or
    /// close and lie at either end of a run.
    #[test]
    fn crowds_are_those_of_brute_force() {
        let mut random = SplitMix::new(4);
        let sparse = 0x1111_0101_0001_1001;
        let mut sample = || random.next_u64() & sparse;
        let zeros: Vec<_> = (0..300).map(|_| Fingerprint([sample()])).collect();
        let ones: Vec<_> = (0..300).map(|_| Fingerprint([!sample()])).collect();
        for (design, stored) in Design::ALL
            .into_iter()
            .flat_map(|d| [(d, &zeros), (d, &ones)])
        {
            let tables = Tables::new(design, stored);
            for query in stored {
                let distances = stored.iter().map(|other| query.distance(other)).enumerate();
                let expected: Vec<_> = distances.filter(|found| found.1 <= 3).collect();
                assert_eq!(tables.neighbours(query), expected, "{design:?}");
            }
        }
    }

    #[test]
    fn nothing_stored_nothing_found() {
        for design in Design::ALL {
            assert_eq!(Tables::new(design, &[]).neighbours(&Fingerprint([7])), []);
        }
    }

    proptest! {
        #[test]
        fn permutations_can_be_undone(bits: u64) {
            for leading in Design::ALL.into_iter().flat_map(Design::leading) {
                let order = BitOrder::new(leading);
                prop_assert_eq!(order.undo(order.apply(bits)), bits);
                prop_assert_eq!(order.apply(bits).count_ones(), bits.count_ones());
                prop_assert_eq!(order.apply(leading).leading_ones(), leading.count_ones());
            }
        }
    }

    /// About 75,900 accidental pairs among 8e9 pages; 43,745 / 2^64 = 2.371e-15 per pair.
    #[test]
    fn accidents() {
        assert!((N_NEIGHBOURS as f64 / 2_f64.powi(64) - 2.371e-15).abs() < 5e-19);
        assert!((accidental_pairs(8e9) - 75_885.5).abs() < 0.1);
        assert_eq!(accidental_pairs(1.0), 0.0);
    }

    #[test]
    fn candidates_per_probe() {
        assert_eq!(expected_candidates(2_f64.powi(34), 31), 8.0);
        assert_eq!(expected_candidates(2_f64.powi(34), 25), 512.0);
    }
}
