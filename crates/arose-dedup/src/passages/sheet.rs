//! Rows of a result table, column by column.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_schema::{DataType, Field, Schema};

use crate::Error;
use crate::stage::kept::beside;
use crate::table::Table;

const BATCH_ROWS: usize = 1 << 14;

/// A value of a row.
pub(crate) enum Cell<'a> {
    Number(u64),
    /// A number that may be missing.
    Maybe(Option<u64>),
    Share(Option<f64>),
    Flag(bool),
    Text(&'a str),
    MaybeText(Option<&'a str>),
}

enum Builder {
    Number(UInt64Builder),
    Share(Float64Builder),
    Flag(BooleanBuilder),
    Text(StringBuilder),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Number,
    Share,
    Flag,
    Text,
}

/// The name of a column, its type, and whether values may be missing.
pub(crate) type Head = (&'static str, ColumnKind, bool);

/// A Parquet file being written, which is renamed when it is complete.
pub(crate) struct Sheet {
    path: PathBuf,
    table: Table,
    kinds: Vec<ColumnKind>,
    builders: Vec<Builder>,
    n_waiting: usize,
    n_rows: u64,
}

impl Sheet {
    pub(crate) fn create(path: &Path, heads: &[Head]) -> Result<Self, Error> {
        let fields = heads.iter().map(|(name, kind, is_nullable)| {
            let data_type = match kind {
                ColumnKind::Number => DataType::UInt64,
                ColumnKind::Share => DataType::Float64,
                ColumnKind::Flag => DataType::Boolean,
                ColumnKind::Text => DataType::Utf8,
            };
            Field::new(*name, data_type, *is_nullable)
        });
        let schema = Schema::new(fields.collect::<Vec<_>>());
        let kinds: Vec<ColumnKind> = heads.iter().map(|(_, kind, _)| *kind).collect();
        Ok(Self {
            path: path.to_owned(),
            table: Table::create_of_numbers(&beside(path), schema)?,
            builders: kinds.iter().map(|kind| builder(*kind)).collect(),
            kinds,
            n_waiting: 0,
            n_rows: 0,
        })
    }

    pub(crate) fn push(&mut self, cells: &[Cell<'_>]) -> Result<(), Error> {
        debug_assert_eq!(cells.len(), self.builders.len());
        for (builder, cell) in self.builders.iter_mut().zip(cells) {
            match (builder, cell) {
                (Builder::Number(column), Cell::Number(value)) => column.append_value(*value),
                (Builder::Number(column), Cell::Maybe(value)) => column.append_option(*value),
                (Builder::Share(column), Cell::Share(value)) => column.append_option(*value),
                (Builder::Flag(column), Cell::Flag(value)) => column.append_value(*value),
                (Builder::Text(column), Cell::Text(value)) => column.append_value(value),
                (Builder::Text(column), Cell::MaybeText(value)) => column.append_option(*value),
                _ => unreachable!("cells are as their heads say"),
            }
        }
        self.n_rows += 1;
        self.n_waiting += 1;
        if self.n_waiting == BATCH_ROWS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let empty = self.kinds.iter().map(|kind| builder(*kind)).collect();
        let builders = std::mem::replace(&mut self.builders, empty);
        self.n_waiting = 0;
        let arrays = builders.into_iter().map(|builder| -> ArrayRef {
            match builder {
                Builder::Number(mut column) => Arc::new(column.finish()),
                Builder::Share(mut column) => Arc::new(column.finish()),
                Builder::Flag(mut column) => Arc::new(column.finish()),
                Builder::Text(mut column) => Arc::new(column.finish()),
            }
        });
        self.table.write(arrays.collect())
    }

    /// Renames the file. Returns its number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, Error> {
        self.flush()?;
        self.table.close()?;
        let partial = beside(&self.path);
        fs::rename(&partial, &self.path).map_err(Error::io("rename", &partial))?;
        Ok(self.n_rows)
    }
}

fn builder(kind: ColumnKind) -> Builder {
    match kind {
        ColumnKind::Number => Builder::Number(UInt64Builder::new()),
        ColumnKind::Share => Builder::Share(Float64Builder::new()),
        ColumnKind::Flag => Builder::Flag(BooleanBuilder::new()),
        ColumnKind::Text => Builder::Text(StringBuilder::new()),
    }
}
