//! The similarity of pairs, and a sample of them, from `pairs.parquet`.

use std::path::Path;

use super::Error;
use super::lot::Lot;
use crate::results::pairs::{Pair, Rows, for_each_row};
use arose::mix::mix;

/// Number of pairs shown of each similarity range.
const MAX_PAIRS: usize = 3;

/// Number of bars of one hundredth, and one for similarity 1.
pub(super) const N_BARS: usize = 101;

/// A similarity range. Pairs are shown range by range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShownRange {
    Below80,
    From80,
    From85,
    From90,
    From95,
    Equal,
    Unknown,
}

impl ShownRange {
    /// All ranges, the least similar first.
    pub(super) const ALL: [ShownRange; 7] = [
        ShownRange::Below80,
        ShownRange::From80,
        ShownRange::From85,
        ShownRange::From90,
        ShownRange::From95,
        ShownRange::Equal,
        ShownRange::Unknown,
    ];

    fn of(similarity: Option<f64>) -> Self {
        match similarity {
            None => ShownRange::Unknown,
            Some(1.0..) => ShownRange::Equal,
            Some(0.95..) => ShownRange::From95,
            Some(0.90..) => ShownRange::From90,
            Some(0.85..) => ShownRange::From85,
            Some(0.80..) => ShownRange::From80,
            Some(_) => ShownRange::Below80,
        }
    }

    /// The heading of the range.
    pub(super) fn name(self) -> &'static str {
        match self {
            ShownRange::Below80 => "below 0.80",
            ShownRange::From80 => "0.80 to 0.85",
            ShownRange::From85 => "0.85 to 0.90",
            ShownRange::From90 => "0.90 to 0.95",
            ShownRange::From95 => "0.95 to 1",
            ShownRange::Equal => "1",
            ShownRange::Unknown => "not computed",
        }
    }
}

/// Counts of all pairs, and a sample of them.
#[derive(Debug)]
pub(super) struct PairSample {
    /// Number of pairs by similarity in hundredths, rounded down.
    pub(super) histogram: [u64; N_BARS],
    /// By range, in the order of [`ShownRange::ALL`].
    levels: Vec<(u64, Lot<Pair>)>,
}

impl PairSample {
    /// Reads the table.
    pub(super) fn open(path: &Path, seed: u64) -> Result<Self, Error> {
        let mut pairs = Self {
            histogram: [0; N_BARS],
            levels: vec![(0, Lot::new(seed, MAX_PAIRS)); ShownRange::ALL.len()],
        };
        for_each_row(path, |rows, row| {
            pairs.add(rows, row);
            Ok(())
        })?;
        Ok(pairs)
    }

    fn add(&mut self, rows: &Rows<'_>, row: usize) {
        let jaccard = rows.jaccard(row);
        if let Some(similarity) = jaccard {
            self.histogram[bar(similarity)] += 1;
        }
        let (count, lot) = &mut self.levels[ShownRange::of(jaccard) as usize];
        *count += 1;
        let [a, b] = rows.docs(row);
        lot.draw(mix(a).wrapping_add(b), || rows.pair(row));
    }

    /// Returns the number of pairs with a similarity.
    pub(super) fn n_measured(&self) -> u64 {
        self.histogram.iter().sum()
    }

    /// Returns the ranges that have pairs, with the number of pairs and a sample of them.
    pub(super) fn levels(&self) -> impl Iterator<Item = (ShownRange, u64, Vec<&Pair>)> {
        let levels = ShownRange::ALL.into_iter().zip(&self.levels);
        levels
            .filter(|(_, (count, _))| *count > 0)
            .map(|(level, (count, lot))| (level, *count, lot.winners().collect()))
    }

    /// Returns the documents of all pairs to be shown.
    pub(super) fn docs(&self) -> impl Iterator<Item = u64> {
        let pairs = self.levels.iter().flat_map(|(_, lot)| lot.winners());
        pairs.flat_map(|pair| [pair.a, pair.b])
    }
}

/// Returns the bar of a similarity, corrected for the rounding of hundredths.
fn bar(similarity: f64) -> usize {
    let hundredths = (similarity.clamp(0.0, 1.0) * 100.0 + 1e-9).floor();
    match similarity < 1.0 {
        true => (hundredths as usize).min(N_BARS - 2),
        false => N_BARS - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(similarity: f64, level: ShownRange, expected: usize) {
        assert_eq!(ShownRange::of(Some(similarity)), level, "{similarity}");
        assert_eq!(bar(similarity), expected, "{similarity}");
    }

    #[test]
    fn ends_of_levels_and_bars() {
        check(0.0, ShownRange::Below80, 0);
        check(0.57, ShownRange::Below80, 57);
        check(0.799_999, ShownRange::Below80, 79);
        check(0.80, ShownRange::From80, 80);
        check(0.85, ShownRange::From85, 85);
        check(0.90, ShownRange::From90, 90);
        check(0.95, ShownRange::From95, 95);
        check(1.0 - f64::EPSILON, ShownRange::From95, 99);
        check(1.0, ShownRange::Equal, 100);
        assert_eq!(ShownRange::of(None), ShownRange::Unknown);
    }

    #[test]
    fn levels_stand_where_their_number_says() {
        for (i, level) in ShownRange::ALL.into_iter().enumerate() {
            assert_eq!(level as usize, i);
        }
    }
}
