//! The whole job, from files to tables.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose_dedup::{Progress, Start};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::ArrowError;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use pyo3::prelude::*;
use pyo3_arrow::input::AnyRecordBatch;

use crate::options::{self, Options};
use crate::table::Table;
use crate::{error, watch};

/// Runs the job; the summary as JSON, and the tables of documents and pairs.
///
/// `progress` is called with stage, records done and records in all, some times a second. Names of
/// files lose the folder `base`.
#[pyfunction]
pub(crate) fn dedup(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    options: &str,
    force: bool,
    progress: Option<Py<PyAny>>,
    base: Option<String>,
) -> PyResult<(String, Table, Table)> {
    let config = options::parse::<Options>(options)?.config()?;
    let start = match force {
        true => Start::Anew,
        false => Start::Resume,
    };
    let counters = Progress::default();
    let work = || arose_dedup::run(&inputs, &config, &output, start, &counters);
    let stop = || counters.stop();
    let look = |py: Python<'_>| match &progress {
        None => Ok(()),
        Some(callback) => {
            let now = counters.look();
            callback
                .call1(py, (now.stage, now.done, now.total))
                .map(drop)
        }
    };
    let summary = watch::run(py, work, stop, look)?.map_err(error::run)?;
    let base = base.map(|base| format!("{base}/"));
    let table = |name: &str| read_parquet(&output.join(name), base.as_deref());
    let tables =
        py.detach(|| Ok::<_, PyErr>((table("documents.parquet")?, table("pairs.parquet")?)));
    let (documents, pairs) = tables?;
    let summary = summary.to_string();
    let summary = base.map_or(summary.clone(), |base| summary.replace(&base, ""));
    Ok((summary, documents, pairs))
}

/// The chance that a pair is found, at some similarities.
#[pyfunction]
pub(crate) fn promise(options: &str) -> PyResult<Vec<(f64, f64)>> {
    let config = options::parse::<Options>(options)?.config()?;
    arose_dedup::promise(&config).map_err(error::run)
}

/// Writes anything Arrow to a Parquet file, which the job then reads.
#[pyfunction]
pub(crate) fn table_to_parquet(
    py: Python<'_>,
    table: AnyRecordBatch,
    path: PathBuf,
) -> PyResult<()> {
    let reader = table.into_reader()?;
    let schema = reader.schema();
    py.detach(|| {
        let failed = |cause: ParquetError| error::input(cause);
        let file = File::create(&path).map_err(error::input)?;
        let mut writer = ArrowWriter::try_new(file, schema, None).map_err(failed)?;
        for batch in reader {
            writer
                .write(&batch.map_err(error::arrow)?)
                .map_err(failed)?;
        }
        writer.close().map(drop).map_err(failed)
    })
}

fn read_parquet(path: &Path, base: Option<&str>) -> PyResult<Table> {
    let failed = |cause: ParquetError| {
        error::AroseError::new_err(format!("`{}`: {}", path.display(), error::words(&cause)))
    };
    let file = File::open(path).map_err(error::input)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    let schema = builder.schema().clone();
    let reader = builder.with_batch_size(1 << 16).build().map_err(failed)?;
    let batches = reader.map(|batch| match base {
        None => batch,
        Some(base) => without(base, &batch?),
    });
    let batches = batches.collect::<Result<Vec<RecordBatch>, ArrowError>>();
    Ok(Table::new(schema, batches.map_err(error::arrow)?))
}

/// A batch whose texts do not begin with `base`.
fn without(base: &str, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(|column| -> ArrayRef {
        match column.as_string_opt::<i32>() {
            None => Arc::clone(column),
            Some(texts) => {
                let texts = texts.iter();
                let short = texts.map(|text| text.map(|t| t.strip_prefix(base).unwrap_or(t)));
                Arc::new(short.collect::<StringArray>())
            }
        }
    });
    RecordBatch::try_new(batch.schema(), columns.collect())
}
