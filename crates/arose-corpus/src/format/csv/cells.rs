//! Rows split into cells, and writing cells.

use crate::document::Position;

/// A row split into cells, with the bytes it was split from.
pub(crate) struct Cells {
    pub(crate) position: Position,
    pub(crate) raw: Vec<u8>,
    pub(super) text: Vec<u8>,
    pub(super) ends: Vec<usize>,
    /// Number of cells of the row, which may be more than `ends` has.
    pub(super) n_cells: usize,
    pub(super) note: Option<&'static str>,
}

impl Cells {
    pub(super) fn get(&self, column: usize) -> Option<&[u8]> {
        let start = match column {
            0 => 0,
            _ => *self.ends.get(column - 1)?,
        };
        self.text.get(start..*self.ends.get(column)?)
    }

    /// The row with another text in a column; cells are quoted where necessary. None if the row has
    /// no such column, or if a file without quotes cannot express the text.
    pub(crate) fn with_text(&self, column: usize, text: &str, style: Style) -> Option<Vec<u8>> {
        self.get(column)?;
        let mut row = Vec::new();
        for i in 0..self.ends.len() {
            if i > 0 {
                row.push(style.delimiter);
            }
            let cell = match i == column {
                true => text.as_bytes(),
                false => self.get(i)?,
            };
            style.put(cell, &mut row)?;
        }
        Some(row)
    }

    pub(super) fn names(&self) -> Vec<String> {
        let cells = (0..self.ends.len()).filter_map(|column| self.get(column));
        cells
            .map(|cell| String::from_utf8_lossy(cell).trim().to_owned())
            .collect()
    }
}

/// How cells are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(super) delimiter: u8,
    pub(super) quotes: Quotes,
}

impl Style {
    /// Appends a cell; none if it cannot be written.
    fn put(self, cell: &[u8], row: &mut Vec<u8>) -> Option<()> {
        let is_special =
            |byte: &u8| matches!(byte, b'"' | b'\r' | b'\n') || *byte == self.delimiter;
        match (self.quotes, cell.iter().any(is_special)) {
            (_, false) => row.extend_from_slice(cell),
            (Quotes::Plain, true) => {
                let breaks = |byte: &u8| matches!(byte, b'\r' | b'\n') || *byte == self.delimiter;
                if cell.iter().any(breaks) {
                    return None;
                }
                row.extend_from_slice(cell);
            }
            (Quotes::Enclose, true) => {
                row.push(b'"');
                for &byte in cell {
                    row.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
                }
                row.push(b'"');
            }
        }
        Some(())
    }
}

/// The meaning of quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// They enclose cells.
    Enclose,
    /// They have no special meaning.
    Plain,
}
