//! The whole job, from files to tables.

use std::fs::File;
use std::path::{Path, PathBuf};

use arose_dedup::{Progress, Start};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::errors::ParquetError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::options::{self, Options};
use crate::passages::Rows;
use crate::rows;
use crate::table::Table;
use crate::{error, watch};

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
    let mut config = options::parse::<Options>(options)?.config()?;
    let (inputs, is_crawl) = options::expanded(inputs)?;
    if is_crawl {
        config.corpus.statuses = arose_corpus::Statuses::Success;
    }
    let work =
        |start, counters: &Progress| arose_dedup::run(&inputs, &config, &output, start, counters);
    let summary = watched(py, force, Progress::default(), progress, work)?;
    let table = |name: &str| read_parquet(&output.join(name));
    let tables =
        py.detach(|| Ok::<_, PyErr>((table("documents.parquet")?, table("pairs.parquet")?)));
    let (documents, pairs) = tables?;
    Ok((summary, documents, pairs))
}

/// Runs the job on a table that was written to `file`, which is moved. The tables that come back
/// have a row per row of the table, and go by its rows.
#[pyfunction]
pub(crate) fn dedup_table(
    py: Python<'_>,
    rows: &Bound<'_, Rows>,
    output: PathBuf,
    options: &str,
    force: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, Table, Table)> {
    let config = options::parse::<Options>(options)?.config()?;
    let rows = rows.get();
    let input = rows.moved();
    let work = |start, counters: &Progress| {
        arose_dedup::run_moved(&input, &config, &output, start, counters)
    };
    let summary = watched(py, force, Progress::default(), progress, work)?;
    py.detach(|| {
        let path = output.join("documents.parquet");
        let numbering = rows.numbering(&path, &output, rows::DOCUMENTS)?;
        let documents = numbering.spread(&path)?;
        let pairs = read_parquet(&output.join("pairs.parquet"))?;
        Ok((summary, documents, numbering.renumber(&pairs)?))
    })
}

/// Runs `work` beside the interpreter; the summary as JSON.
pub(crate) fn watched(
    py: Python<'_>,
    force: bool,
    counters: Progress,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(Start, &Progress) -> Result<Value, arose_dedup::Error> + Send,
) -> PyResult<String> {
    let start = match force {
        true => Start::Anew,
        false => Start::Resume,
    };
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

/// Checks settings before anything is done.
#[pyfunction]
pub(crate) fn check(options: &str) -> PyResult<()> {
    let config = options::parse::<Options>(options)?.config()?;
    arose_dedup::promise(&config).map_err(error::run).map(drop)
}

/// The chance that a pair is found, at some similarities.
#[pyfunction]
pub(crate) fn promise(options: &str) -> PyResult<Vec<(f64, f64)>> {
    let config = options::parse::<Options>(options)?.config()?;
    arose_dedup::promise(&config).map_err(error::run)
}

/// A table of results.
pub(crate) fn read_parquet(path: &Path) -> PyResult<Table> {
    let reader = open_parquet(path, |_| true)?;
    let schema = reader.schema();
    let batches = reader.collect::<Result<Vec<RecordBatch>, ArrowError>>();
    Ok(Table::new(schema, batches.map_err(error::arrow)?))
}

/// Some columns of a table of results, batch by batch.
pub(crate) fn open_parquet(
    path: &Path,
    is_wanted: impl Fn(&str) -> bool,
) -> PyResult<ParquetRecordBatchReader> {
    let failed = |cause: ParquetError| {
        error::AroseError::new_err(format!("`{}`: {}", path.display(), error::words(&cause)))
    };
    let file = File::open(path).map_err(error::input)?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
    let fields = builder.schema().fields().iter().enumerate();
    let wanted = fields.filter(|(_, field)| is_wanted(field.name()));
    let wanted: Vec<usize> = wanted.map(|(i, _)| i).collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), wanted);
    let builder = builder.with_projection(mask).with_batch_size(1 << 15);
    builder.build().map_err(failed)
}
