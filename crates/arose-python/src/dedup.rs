//! The complete job, from files to tables.

use std::path::PathBuf;

use arose_dedup::{Progress, Start};
use pyo3::prelude::*;
use serde_json::Value;

use crate::options::{self, Options};
use crate::passages::Rows;
use crate::results::{on_threads, read_parquet};
use crate::rows;
use crate::table::Table;
use crate::{error, watch};

/// Runs the job on files. Returns the summary as JSON, and the tables of documents and pairs.
///
/// `progress` is called several times per second with the stage, the number of records processed,
/// and their total.
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
    let tables = || Ok((table("documents.parquet")?, table("pairs.parquet")?));
    let (documents, pairs) = py.detach(|| on_threads(config.corpus.threads, tables))?;
    Ok((summary, documents, pairs))
}

/// Runs the job on a table that was written to `file`, which is moved. The returned tables have one
/// row per row of the table, and refer to its rows.
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
    let tables = || {
        let path = output.join("documents.parquet");
        let numbering = rows.numbering(&path, &output, rows::DOCUMENTS)?;
        let documents = numbering.spread(&path)?;
        let pairs = read_parquet(&output.join("pairs.parquet"))?;
        Ok((documents, numbering.renumber(&pairs)?))
    };
    let (documents, pairs) = py.detach(|| on_threads(config.corpus.threads, tables))?;
    Ok((summary, documents, pairs))
}

/// Runs `work` without the interpreter lock. Returns the summary as JSON.
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

/// Checks settings before the run starts.
#[pyfunction]
pub(crate) fn check(options: &str) -> PyResult<()> {
    let config = options::parse::<Options>(options)?.config()?;
    arose_dedup::promise(&config).map_err(error::run).map(drop)
}

/// Returns the probability of finding a pair, for several similarities.
#[pyfunction]
pub(crate) fn promise(options: &str) -> PyResult<Vec<(f64, f64)>> {
    let config = options::parse::<Options>(options)?.config()?;
    arose_dedup::promise(&config).map_err(error::run)
}
