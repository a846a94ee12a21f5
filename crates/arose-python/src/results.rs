//! Tables of results, read from the files of a run.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::SchemaRef;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use pyo3::prelude::*;
use rayon::prelude::*;

use crate::error;
use crate::table::Table;

/// Number of rows in a batch.
const BATCH_ROWS: usize = 1 << 15;

/// A file of results of which only some columns are read.
pub(crate) struct Columns<'a> {
    path: &'a Path,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
}

impl<'a> Columns<'a> {
    /// Selects the columns whose names are wanted.
    pub(crate) fn open(path: &'a Path, is_wanted: impl Fn(&str) -> bool) -> PyResult<Self> {
        let file = File::open(path).map_err(error::input)?;
        let metadata = ArrowReaderMetadata::load(&file, Default::default());
        let metadata = metadata.map_err(|cause| failed(path, &cause))?;
        let fields = metadata.schema().fields().iter().enumerate();
        let wanted = fields.filter(|(_, field)| is_wanted(field.name()));
        let wanted: Vec<usize> = wanted.map(|(i, _)| i).collect();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), wanted);
        Ok(Self {
            path,
            metadata,
            mask,
        })
    }

    /// Returns the number of rows.
    pub(crate) fn n_rows(&self) -> u64 {
        self.metadata.metadata().file_metadata().num_rows() as u64
    }

    /// Returns all batches in order. Row groups are read on all threads of [`on_threads`].
    pub(crate) fn read(&self) -> PyResult<(SchemaRef, Vec<RecordBatch>)> {
        self.read_groups()
            .map_err(|cause| failed(self.path, &cause))
    }

    fn read_groups(&self) -> Result<(SchemaRef, Vec<RecordBatch>), ParquetError> {
        let groups = 0..self.metadata.metadata().num_row_groups();
        let read = |group| self.read_group(group);
        let groups: Vec<Vec<RecordBatch>> = match rayon::current_thread_index() {
            Some(_) => groups.into_par_iter().map(read).collect::<Result<_, _>>()?,
            // A global pool does not survive the fork of a process.
            None => groups.map(read).collect::<Result<_, _>>()?,
        };
        let schema = self.reader(&[])?.schema();
        Ok((schema, groups.into_iter().flatten().collect()))
    }

    fn read_group(&self, group: usize) -> Result<Vec<RecordBatch>, ParquetError> {
        let batches = self.reader(&[group])?.collect::<Result<_, _>>();
        batches.map_err(ParquetError::from)
    }

    fn reader(&self, groups: &[usize]) -> Result<ParquetRecordBatchReader, ParquetError> {
        let file = File::open(self.path)?;
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_row_groups(groups.to_vec())
            .with_projection(self.mask.clone())
            .with_batch_size(BATCH_ROWS)
            .build()
    }
}

fn failed(path: &Path, cause: &ParquetError) -> PyErr {
    error::AroseError::new_err(format!("`{}`: {}", path.display(), error::words(cause)))
}

/// Returns a table of results.
pub(crate) fn read_parquet(path: &Path) -> PyResult<Table> {
    let (schema, batches) = Columns::open(path, |_| true)?.read()?;
    Ok(Table::new(schema, batches))
}

/// Runs `work` on as many threads as a run may use.
pub(crate) fn on_threads<T: Send>(
    threads: NonZeroUsize,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads.get())
        .build();
    let pool = pool.map_err(|cause| error::AroseError::new_err(error::words(&cause)))?;
    pool.install(work)
}
