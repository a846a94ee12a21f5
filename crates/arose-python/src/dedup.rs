//! The whole job, from files to tables.

use std::fs::File;
use std::path::{Path, PathBuf};

use arose_dedup::{Moved, Progress, Start};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::options::{self, Options};
use crate::table::Table;
use crate::{error, rows, watch};

/// Runs the job on files; the summary as JSON, and the tables of documents and pairs.
///
/// `progress` is called with stage, records done and records in all, several times per second.
#[pyfunction]
pub(crate) fn dedup(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    options: &str,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Table, Table)> {
    let config = options::parse::<Options>(options)?.config()?;
    let work =
        |start, counters: &Progress| arose_dedup::run(&inputs, &config, &output, start, counters);
    let summary = watched(py, force, progress, work)?;
    let table = |name: &str| read_parquet(&output.join(name));
    let tables =
        py.detach(|| Ok::<_, PyErr>((table("documents.parquet")?, table("pairs.parquet")?)));
    let (documents, pairs) = tables?;
    Ok((summary, documents, pairs))
}

/// Runs the job on a table that was written to `file`, which is moved. The tables that come back
/// have a row per row of the table, and go by its rows.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as many as the job has")]
pub(crate) fn dedup_table(
    py: Python<'_>,
    file: PathBuf,
    name: String,
    n_rows: u64,
    output: PathBuf,
    options: &str,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Table, Table)> {
    let config = options::parse::<Options>(options)?.config()?;
    let input = Moved { name, file };
    let work = |start, counters: &Progress| {
        arose_dedup::run_moved(&input, &config, &output, start, counters)
    };
    let summary = watched(py, force, progress, work)?;
    py.detach(|| {
        let documents = read_parquet(&output.join("documents.parquet"))?;
        let pairs = read_parquet(&output.join("pairs.parquet"))?;
        let (documents, pairs) = rows::aligned(&documents, &pairs, n_rows, &input.name)?;
        Ok((summary, documents, pairs))
    })
}

/// Runs `work` beside the interpreter; the summary as JSON.
fn watched(
    py: Python<'_>,
    force: bool,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Start, &Progress) -> Result<Value, arose_dedup::Error> + Send,
) -> PyResult<String> {
    let start = match force {
        true => Start::Anew,
        false => Start::Resume,
    };
    let counters = Progress::default();
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
    let summary = watch::run(py, || work(start, &counters), stop, look)?;
    Ok(summary.map_err(error::run)?.to_string())
}

/// The chance that a pair is found, at some similarities.
#[pyfunction]
pub(crate) fn promise(options: &str) -> PyResult<Vec<(f64, f64)>> {
    let config = options::parse::<Options>(options)?.config()?;
    arose_dedup::promise(&config).map_err(error::run)
}

pub(crate) fn read_parquet(path: &Path) -> PyResult<Table> {
    let failed = |cause: ParquetError| {
        error::AroseError::new_err(format!("`{}`: {}", path.display(), error::words(&cause)))
    };
    let file = File::open(path).map_err(error::input)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    let schema = builder.schema().clone();
    let reader = builder.with_batch_size(1 << 16).build().map_err(failed)?;
    let batches = reader.collect::<Result<Vec<RecordBatch>, ArrowError>>();
    Ok(Table::new(schema, batches.map_err(error::arrow)?))
}
