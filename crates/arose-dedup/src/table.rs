//! A Parquet file being written, by a thread of its own if there is one.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::Error;
use crate::config::KeptAs;

/// Number of rows of a row group, which is in memory until it is complete.
const GROUP_ROWS: usize = 1 << 17;
/// The same without compression.
const PLAIN_GROUP_ROWS: usize = 1 << 15;
/// A Parquet file being written. Encoding takes as long as making the rows, so a separate thread
/// encodes unless the run has only one thread.
pub(crate) struct Table {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: Encoder,
}

enum Encoder {
    Here(Box<ArrowWriter<BufWriter<File>>>),
    There {
        batches: SyncSender<RecordBatch>,
        thread: JoinHandle<Result<(), ParquetError>>,
    },
}

impl Encoder {
    fn new(mut writer: ArrowWriter<BufWriter<File>>) -> Self {
        if rayon::current_num_threads() == 1 {
            return Self::Here(Box::new(writer));
        }
        let (sender, batches) = sync_channel::<RecordBatch>(1);
        let thread = std::thread::spawn(move || {
            batches.iter().try_for_each(|batch| writer.write(&batch))?;
            writer.close().map(drop)
        });
        Self::There {
            batches: sender,
            thread,
        }
    }

    fn write(&mut self, batch: RecordBatch) -> Result<(), ParquetError> {
        match self {
            Self::Here(writer) => writer.write(&batch),
            // A thread that has ended says why when it is closed.
            Self::There { batches, .. } => {
                let _ = batches.send(batch);
                Ok(())
            }
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
        }
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

    /// Creates a table of results. One that is read at once and then removed is not compressed.
    pub(crate) fn create_for(kept: KeptAs, path: &Path, schema: Schema) -> Result<Self, Error> {
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
        Self::create_with(properties.build(), path, schema)
    }

    fn create_with(
        properties: WriterProperties,
        path: &Path,
        schema: Schema,
    ) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        let schema = Arc::new(schema);
        let file = BufWriter::new(file);
        let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(properties));
        Ok(Self {
            path: path.to_owned(),
            schema,
            writer: Encoder::new(writer.map_err(failed(path))?),
        })
    }

    pub(crate) fn write(&mut self, columns: Vec<ArrayRef>) -> Result<(), Error> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let batch = batch.map_err(|error| failed(&self.path)(error.into()))?;
        self.writer.write(batch).map_err(failed(&self.path))
    }

    pub(crate) fn close(self) -> Result<(), Error> {
        self.writer.close().map_err(failed(&self.path))
    }
}

fn failed(path: &Path) -> impl FnOnce(ParquetError) -> Error {
    move |source| Error::Parquet {
        path: path.to_owned(),
        source,
    }
}
