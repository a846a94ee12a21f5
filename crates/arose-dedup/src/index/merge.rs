//! Merging: replaces many small sorted runs by a few large ones.
//!
//! A query looks into every sorted run. So whenever [`FANOUT`] neighbouring runs have about the
//! same size, they become one. If memory fits `m` documents, `n` documents are in at most `3
//! log_4(n / m)` sorted runs, and each entry is written `log_4(n / m)` times. With a fan-out of
//! sixteen instead of four, entries would be written half as often. But twenty million documents
//! would be in 19 sorted runs instead of 5, and a query would take four times as long. Records are
//! never rewritten.
//!
//! Merging works on *blocks* of the space of prefixes, as narrow as the widest bucket of all runs.
//! A block has few entries, uniformly distributed, so they are sorted again ([`Order`]). This is
//! cheaper than comparing the heads of the runs entry by entry.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::Error;
use super::order::Order;
use super::run::{Entries, MAX_ENTRIES, MAX_ROWS, Run, RunWriter};

/// Number of sorted runs of about the same size that become one.
pub(super) const FANOUT: usize = 4;

/// Returns which neighbouring sorted runs to merge next, given the numbers of rows and entries of
/// each; none if no merge is due. Runs that together exceed the limits of one run stay separate,
/// and do not prevent others from being merged.
///
/// The level of a run is the logarithm of its size, in steps of [`FANOUT`]. Since runs only grow
/// towards the older end, levels mostly fall from left to right. The function merges the first
/// stretch of [`FANOUT`] runs, from the right, in which no run has a lower level than a run to its
/// right.
pub(super) fn pick(n_rows: &[u64], n_entries: &[u64], unit: u64) -> Option<Range<usize>> {
    let level = |n: u64| (n / unit.max(1)).max(1).ilog(FANOUT as u64);
    let levels: Vec<u32> = n_rows.iter().map(|&n| level(n)).collect();
    let mut end = levels.len();
    while end > 0 {
        // The stretch of runs that end here and are no larger than the last of them.
        let last = levels[end - 1];
        let start = levels[..end]
            .iter()
            .rposition(|&l| l > last)
            .map_or(0, |i| i + 1);
        let fits = |range: &Range<usize>| {
            let sum = |numbers: &[u64]| numbers[range.clone()].iter().sum::<u64>();
            sum(n_rows) < MAX_ROWS && sum(n_entries) <= MAX_ENTRIES
        };
        let range = start..end;
        if range.len() >= FANOUT && fits(&range) {
            return Some(range);
        }
        end = start;
    }
    None
}

/// Writes the sorted run with all entries of neighbouring runs; none if `is_stopped` becomes true
/// before.
pub(super) fn merge(
    runs: &[Arc<Run>],
    path: &Path,
    number: u64,
    is_stopped: impl Fn() -> bool,
) -> Result<Option<Run>, Error> {
    let first_row = runs.first().map_or(0, |run| run.first_row());
    let n_rows = runs.iter().map(|run| run.n_rows()).sum();
    let n_entries: u64 = runs.iter().map(|run| u64::from(run.n_entries())).sum();
    if n_entries > MAX_ENTRIES {
        return Err(Error::Full);
    }
    let mut writer = RunWriter::create(path, first_row, n_rows, n_entries as u32)?;
    let mut sources: Vec<(Entries<'_>, u32)> = runs
        .iter()
        .map(|run| (run.entries(), run.first_row() - first_row))
        .collect();
    let block_bits = runs.iter().map(|run| run.bucket_bits()).min().unwrap_or(0);
    let mut order = Order::default();
    let mut block = Vec::new();
    for block_number in 0..1_u64 << block_bits {
        block.clear();
        for (entries, shift) in &mut sources {
            entries.read_block(block_bits, *shift, &mut block)?;
        }
        for entry in order.sort(&block, block_bits) {
            writer.push(*entry)?;
        }
        if block_number % (1 << 10) == 0 && is_stopped() {
            return Ok(None);
        }
    }
    writer.finish(path, number).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorted runs with ten entries per row.
    fn pick(n_rows: &[u64], unit: u64) -> Option<Range<usize>> {
        let n_entries: Vec<u64> = n_rows.iter().map(|n| 10 * n).collect();
        super::pick(n_rows, &n_entries, unit)
    }

    /// Four sorted runs too large for one stay as they are, and smaller ones are still merged.
    #[test]
    fn a_full_run_does_not_stop_merging() {
        let large = 110_000_000;
        assert_eq!(pick(&[large; 4], 100_000), None);
        let mut runs = vec![large; 4];
        runs.extend([100_000; 4]);
        assert_eq!(pick(&runs, 100_000), Some(4..8));
        assert_eq!(pick(&[100_000_000; 4], 100_000), Some(0..4));
    }

    #[test]
    fn four_of_a_size_become_one() {
        assert_eq!(pick(&[], 10), None);
        assert_eq!(pick(&[10, 10, 10], 10), None);
        assert_eq!(pick(&[10, 10, 10, 10], 10), Some(0..4));
        assert_eq!(pick(&[40, 10, 10, 10], 10), None);
        assert_eq!(pick(&[40, 40, 40, 10, 10, 10, 10], 10), Some(3..7));
        assert_eq!(pick(&[40, 40, 40, 40], 10), Some(0..4));
        assert_eq!(pick(&[40, 40, 40, 40, 10], 10), Some(0..4));
    }

    /// Small sorted runs that precede larger ones are merged with them.
    #[test]
    fn stragglers_go_with_the_others() {
        assert_eq!(pick(&[40, 3, 40, 40, 40], 10), Some(0..5));
    }

    #[test]
    fn runs_stay_few() {
        let mut runs: Vec<u64> = Vec::new();
        let mut n_written = 0;
        for _ in 0..1000 {
            runs.push(10);
            while let Some(range) = pick(&runs, 10) {
                let sum = runs[range.clone()].iter().sum();
                n_written += sum;
                runs.splice(range, [sum]);
            }
            assert!(runs.len() <= 15, "{runs:?}");
        }
        assert_eq!(runs.iter().sum::<u64>(), 10_000);
        assert!(n_written <= 5 * 10_000, "{n_written}");
    }
}
