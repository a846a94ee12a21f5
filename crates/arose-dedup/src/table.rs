//! A Parquet file being written: by a thread of its own, or its columns by all threads.
//!
//! *Question.* Encoding takes as long as making the rows. How can more than one core do it, with
//! the same bytes for any number of threads?
//!
//! *Idea.* Rows that one thread makes are encoded by another one in the meantime. Rows that all
//! threads make are encoded by all of them too, each column by one thread at a time. A column gets
//! its values in order either way. *Bounds.* In memory are the batches being written and one row
//! group. *Error.* A failure of the other thread is reported when the file is closed.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use rayon::prelude::*;

use crate::Error;
use crate::config::KeptAs;

/// Number of rows of a row group, which is in memory until it is complete.
const GROUP_ROWS: usize = 1 << 16;
/// The same without compression.
const PLAIN_GROUP_ROWS: usize = 1 << 15;
/// A Parquet file being written.
pub(crate) struct Table {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: Encoder,
}

enum Encoder {
    /// If the run has only one thread.
    Here(Box<ArrowWriter<BufWriter<File>>>),
    There {
        batches: SyncSender<RecordBatch>,
        thread: JoinHandle<Result<(), ParquetError>>,
    },
    Together(Box<Together>),
}

impl Encoder {
    fn new(mut writer: ArrowWriter<BufWriter<File>>) -> Self {
        if rayon::current_num_threads() == 1 {
            return Self::Here(Box::new(writer));
        }
        // Batches are made by all threads together, so that they arrive together.
        let (sender, batches) = sync_channel::<RecordBatch>(2 * rayon::current_num_threads());
        let thread = std::thread::spawn(move || {
            batches.iter().try_for_each(|batch| writer.write(&batch))?;
            writer.close().map(drop)
        });
        Self::There {
            batches: sender,
            thread,
        }
    }

    fn write(&mut self, batches: Vec<RecordBatch>) -> Result<(), ParquetError> {
        match self {
            Self::Here(writer) => batches.iter().try_for_each(|batch| writer.write(batch)),
            // A thread that has ended says why when it is closed.
            Self::There { batches: there, .. } => {
                let _ = batches.into_iter().try_for_each(|batch| there.send(batch));
                Ok(())
            }
            Self::Together(writer) => writer.write(batches),
        }
    }

    fn close(self) -> Result<(), ParquetError> {
        match self {
            Self::Here(writer) => writer.close().map(drop),
            Self::There { batches, thread } => {
                drop(batches);
                let joined = thread.join();
                joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
            Self::Together(writer) => writer.close(),
        }
    }
}

/// A file whose columns are encoded by the threads of the pool that calls it.
struct Together {
    file: SerializedFileWriter<BufWriter<File>>,
    factory: ArrowRowGroupWriterFactory,
    /// The columns of the row group; none if it has no rows yet.
    columns: Vec<ArrowColumnWriter>,
    /// Number of rows of the row group so far.
    n_rows: usize,
    /// Number of rows of a complete row group.
    group_rows: usize,
}

impl Together {
    fn new(writer: ArrowWriter<BufWriter<File>>) -> Result<Self, ParquetError> {
        let (file, factory) = writer.into_serialized_writer()?;
        let group_rows = file.properties().max_row_group_row_count();
        Ok(Self {
            file,
            factory,
            columns: Vec::new(),
            n_rows: 0,
            group_rows: group_rows.unwrap_or(GROUP_ROWS),
        })
    }

    fn write(&mut self, batches: Vec<RecordBatch>) -> Result<(), ParquetError> {
        let mut waiting = Vec::new();
        for batch in batches {
            let mut start = 0;
            while start < batch.num_rows() {
                let n = (batch.num_rows() - start).min(self.group_rows - self.n_rows);
                waiting.push(batch.slice(start, n));
                start += n;
                self.n_rows += n;
                if self.n_rows == self.group_rows {
                    self.encode(&std::mem::take(&mut waiting))?;
                    self.end_group()?;
                }
            }
        }
        self.encode(&waiting)
    }

    /// Encodes batches of the same row group.
    fn encode(&mut self, batches: &[RecordBatch]) -> Result<(), ParquetError> {
        let Some(first) = batches.first() else {
            return Ok(());
        };
        if self.columns.is_empty() {
            let group = self.file.flushed_row_groups().len();
            self.columns = self.factory.create_column_writers(group)?;
        }
        let schema = first.schema();
        let columns = self.columns.par_iter_mut().enumerate();
        columns.try_for_each(|(i, writer)| {
            for batch in batches {
                for leaf in compute_leaves(schema.field(i), batch.column(i))? {
                    writer.write(&leaf)?;
                }
            }
            Ok(())
        })
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        self.n_rows = 0;
        let columns = std::mem::take(&mut self.columns).into_par_iter();
        let columns = columns.map(ArrowColumnWriter::close);
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        if columns.is_empty() {
            return Ok(());
        }
        let mut group = self.file.next_row_group()?;
        for column in columns {
            column.append_to_row_group(&mut group)?;
        }
        group.close().map(drop)
    }

    fn close(mut self) -> Result<(), ParquetError> {
        self.end_group()?;
        self.file.close().map(drop)
    }
}

impl Table {
    pub(crate) fn create(path: &Path, schema: Schema) -> Result<Self, Error> {
        Self::create_for(KeptAs::Copies, path, schema)
    }

    /// Creates a table whose numbers are mostly different, so that differences between them take
    /// less space and time than a dictionary.
    pub(crate) fn create_of_numbers(path: &Path, schema: Schema) -> Result<Self, Error> {
        let level = ZstdLevel::try_new(1).map_err(failed(path))?;
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_dictionary_enabled(false)
            .set_column_dictionary_enabled("source".into(), true);
        for field in schema.fields() {
            if *field.data_type() == DataType::UInt64 {
                let column = ColumnPath::from(field.name().as_str());
                properties = properties.set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
            }
        }
        Self::create_with(properties.build(), path, schema)
    }

    /// Creates a table of results, whose rows one thread makes.
    pub(crate) fn create_for(kept: KeptAs, path: &Path, schema: Schema) -> Result<Self, Error> {
        Self::create_with(of_results(kept, path)?, path, schema)
    }

    /// Creates a table of results, whose rows all threads make. Each field must be a single column.
    pub(crate) fn create_together(
        kept: KeptAs,
        path: &Path,
        schema: Schema,
    ) -> Result<Self, Error> {
        let (schema, writer) = open(of_results(kept, path)?, path, schema)?;
        let writer = Together::new(writer).map_err(failed(path))?;
        Ok(Self {
            path: path.to_owned(),
            schema,
            writer: Encoder::Together(Box::new(writer)),
        })
    }

    fn create_with(
        properties: WriterProperties,
        path: &Path,
        schema: Schema,
    ) -> Result<Self, Error> {
        let (schema, writer) = open(properties, path, schema)?;
        Ok(Self {
            path: path.to_owned(),
            schema,
            writer: Encoder::new(writer),
        })
    }

    pub(crate) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        self.write_all(vec![columns])
    }

    /// Writes several batches of rows.
    pub(crate) fn write_all(&mut self, batches: Vec<Vec<ArrayRef>>) -> Result<(), Error> {
        let batches = batches
            .into_iter()
            .map(|columns| RecordBatch::try_new(Arc::clone(&self.schema), columns));
        let batches = batches.collect::<Result<_, _>>();
        let batches = batches.map_err(|error| failed(&self.path)(error.into()))?;
        self.writer.write(batches).map_err(failed(&self.path))
    }

    pub(crate) fn close(self) -> Result<(), Error> {
        self.writer.close().map_err(failed(&self.path))
    }
}

/// Returns the properties of a table of results. One that is read at once and then removed is not
/// compressed.
fn of_results(kept: KeptAs, path: &Path) -> Result<WriterProperties, Error> {
    let level = ZstdLevel::try_new(1).map_err(failed(path))?;
    let mut properties = match kept {
        KeptAs::Nothing => WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_column_dictionary_enabled("source".into(), true)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_max_row_group_row_count(Some(PLAIN_GROUP_ROWS)),
        KeptAs::Copies | KeptAs::Ids => WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(GROUP_ROWS)),
    };
    for unique in ["doc", "id", "url", "position", "digest", "key"] {
        properties = properties.set_column_dictionary_enabled(unique.into(), false);
    }
    Ok(properties.build())
}

fn open(
    properties: WriterProperties,
    path: &Path,
    schema: Schema,
) -> Result<(Arc<Schema>, ArrowWriter<BufWriter<File>>), Error> {
    let file = File::create(path).map_err(Error::io("create", path))?;
    let schema = Arc::new(schema);
    let file = BufWriter::new(file);
    let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
    Ok((schema, writer.map_err(failed(path))?))
}

fn failed(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    move |source| Error::Parquet {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{StringArray, UInt64Array};
    use arrow_schema::Field;

    use super::*;

    fn batches() -> Vec<Vec<ArrayRef>> {
        let numbers = (0..150_000_u64).collect::<Vec<_>>();
        let batches = numbers.chunks(4096).map(|numbers| {
            let texts = numbers.iter().map(|n| (n % 3 > 0).then(|| n.to_string()));
            let numbers = UInt64Array::from_iter_values(numbers.iter().copied());
            let columns: Vec<ArrayRef> =
                vec![Arc::new(numbers), Arc::new(texts.collect::<StringArray>())];
            columns
        });
        batches.collect()
    }

    /// The same bytes whoever encodes, over several row groups, and also without rows.
    #[test]
    fn threads_do_not_matter() {
        let folder = tempfile::tempdir().unwrap();
        let schema = || {
            Schema::new(vec![
                Field::new("doc", DataType::UInt64, false),
                Field::new("rule", DataType::Utf8, true),
            ])
        };
        let written = |n_threads: usize, kept, batches: &[Vec<ArrayRef>], is_together: bool| {
            let path = folder.path().join("table");
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads);
            pool.build().unwrap().install(|| {
                if is_together {
                    let mut table = Table::create_together(kept, &path, schema()).unwrap();
                    for batches in batches.chunks(5) {
                        table.write_all(batches.to_vec()).unwrap();
                    }
                    table.close().unwrap();
                } else {
                    let mut table = Table::create_for(kept, &path, schema()).unwrap();
                    for batch in batches {
                        table.write(batch.clone()).unwrap();
                    }
                    table.close().unwrap();
                }
            });
            std::fs::read(&path).unwrap()
        };
        for (kept, batches) in [
            (KeptAs::Nothing, batches()),
            (KeptAs::Copies, batches()),
            (KeptAs::Copies, Vec::new()),
        ] {
            let expected = written(1, kept, &batches, false);
            for (n_threads, is_together) in [(3, false), (1, true), (3, true)] {
                let found = written(n_threads, kept, &batches, is_together);
                assert!(found == expected, "{kept:?}, {n_threads}, {is_together}");
            }
        }
    }

    #[test]
    fn a_failed_write_is_reported() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2);
        pool.build().unwrap().install(|| {
            let schema = Schema::new(vec![Field::new("doc", DataType::UInt64, false)]);
            let path = Path::new("/dev/full");
            let mut table = Table::create_together(KeptAs::Nothing, path, schema).unwrap();
            let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..100_000));
            let written = table.write_all(vec![vec![column]]);
            let error = written.and_then(|()| table.close()).unwrap_err();
            assert!(matches!(error, Error::Parquet { .. }), "{error}");
        });
    }
}
