//! Bounds on the memory of list columns, computed from their levels before they are decoded.
//!
//! A run of equal values takes only a few bytes, however long it is, and so do its levels. A page
//! of 30 bytes may contain a list of a billion numbers. A repetition level of 0 starts a row, so
//! the levels of a page give the lengths of its rows. The levels are a small part of the page and
//! are read in runs.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::ParquetError;

use super::unpack::Refusal;
use crate::document::Reason;

/// Pages of a column of lists, up to the first row that is too long.
pub(super) struct Lists {
    pub(super) pages: Box<dyn PageReader>,
    /// The largest repetition level.
    pub(super) max_level: i16,
    /// Maximum number of values per row.
    pub(super) most_values: u64,
    /// Number of values of the last row so far.
    pub(super) n_values: u64,
    pub(super) refusal: Refusal,
}

impl Lists {
    fn check(&mut self, page: &Page) -> Result<(), ParquetError> {
        let levels = match page {
            Page::DictionaryPage { .. } => return Ok(()),
            Page::DataPage {
                buf,
                rep_level_encoding: Encoding::RLE,
                ..
            } => after_length(buf),
            Page::DataPage { .. } => None,
            Page::DataPageV2 {
                buf,
                rep_levels_byte_len,
                ..
            } => buf.get(..*rep_levels_byte_len as usize),
        };
        let mut rows = Rows {
            n_values: self.n_values,
            longest: self.n_values,
        };
        let n_bits = i16::BITS - self.max_level.leading_zeros();
        rows.add(levels.unwrap_or_default(), n_bits, page.num_values().into());
        self.n_values = rows.n_values;
        if rows.longest <= self.most_values {
            return Ok(());
        }
        let detail = format!("a list of more than {} values", self.most_values);
        // The first reason counts.
        let _ = self.refusal.set((Reason::TooLarge, detail.clone()));
        Err(ParquetError::General(detail))
    }
}

/// Levels that are preceded by their length.
fn after_length(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(..u32::from_le_bytes(*length) as usize)
}

/// The rows of a column, updated as levels are read.
#[derive(Debug, PartialEq, Eq)]
struct Rows {
    /// Number of values of the last row so far.
    n_values: u64,
    longest: u64,
}

impl Rows {
    /// Adds the levels of a page with `n_left` values: runs of equal levels and of bit-packed
    /// levels. Unreadable levels are assumed to belong to the same row.
    fn add(&mut self, mut levels: &[u8], n_bits: u32, mut n_left: u64) {
        while n_left > 0 {
            let Some(n) = self.run(&mut levels, n_bits, n_left) else {
                return self.repeat(1, n_left);
            };
            n_left -= n;
        }
    }

    /// Adds a run of at most `n_left` levels. Returns their number.
    fn run(&mut self, levels: &mut &[u8], n_bits: u32, n_left: u64) -> Option<u64> {
        let header = varint(levels)?;
        let n_bytes = n_bits.div_ceil(8) as usize;
        if header & 1 == 0 {
            let n = (header >> 1).min(n_left);
            let (level, rest) = levels.split_at_checked(n_bytes)?;
            *levels = rest;
            self.repeat(u64::from(level.iter().any(|&byte| byte > 0)), n);
            return (n > 0).then_some(n);
        }
        let n_packed = usize::try_from(header >> 1).ok()?;
        let (packed, rest) = levels.split_at_checked(n_packed.checked_mul(n_bits as usize)?)?;
        *levels = rest;
        let n = (n_packed as u64).saturating_mul(8).min(n_left);
        let bit = |at: u64| packed[(at / 8) as usize] >> (at % 8) & 1;
        for i in 0..n {
            let first = i * u64::from(n_bits);
            let level = (first..first + u64::from(n_bits)).any(|at| bit(at) == 1);
            self.repeat(level.into(), 1);
        }
        (n > 0).then_some(n)
    }

    /// Adds a level `n` times.
    fn repeat(&mut self, level: u64, n: u64) {
        match level {
            _ if n == 0 => {}
            0 => self.n_values = 1,
            _ => self.n_values = self.n_values.saturating_add(n),
        }
        self.longest = self.longest.max(self.n_values);
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

impl PageReader for Lists {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.n_values = 0;
        self.pages.skip_next_page()
    }
}

impl Iterator for Lists {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(levels: &[u8], n_bits: u32, n_values: u64, last: u64, longest: u64) {
        let mut rows = Rows {
            n_values: 0,
            longest: 0,
        };
        rows.add(levels, n_bits, n_values);
        let expected = Rows {
            n_values: last,
            longest,
        };
        assert_eq!(rows, expected, "{levels:?}");
    }

    #[test]
    fn levels_tell_the_longest_row() {
        // A run of seven equal levels: seven rows, or one row of eight values.
        check(&[7 << 1, 0], 1, 7, 1, 1);
        check(&[1 << 1, 0, 7 << 1, 1], 1, 8, 8, 8);
        // Eight packed levels, the first lowest: 0 1 1 0 1 0 0 1.
        check(&[1 << 1 | 1, 0b1001_0110], 1, 8, 2, 3);
        // Two bits each: 0 1 2 0 2 2 2 0; the second call omits the last level.
        check(&[1 << 1 | 1, 0b00_10_01_00, 0b00_10_10_10], 2, 8, 1, 4);
        check(&[1 << 1 | 1, 0b00_10_01_00, 0b00_10_10_10], 2, 7, 4, 4);
        // Missing levels are assumed to be the worst case.
        check(&[], 1, 5, 5, 5);
        check(&[3 << 1, 0], 1, 9, 7, 7);
        check(&[0, 0], 1, 4, 4, 4);
        check(&[0xff; 12], 1, 4, 4, 4);
        check(
            &[0x80, 0x80, 0x80, 0x80, 0x20, 1],
            1,
            1 << 40,
            1 << 40,
            1 << 40,
        );
    }
}
