//! Search in the results of a run or in web archives, and the state of a crawl.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;

use arose_search::{
    Collapse, Config, Hit, Index, Order, Progress, Query, Request, Scope, SearchDir, Versions,
};
use arrow_array::{BooleanArray, Float32Array, Int64Array, StringArray, UInt64Array};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error::{self, AroseError, InputError, SettingError};
use crate::table::{self, Table};
use crate::{options, watch};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    limit: usize,
    offset: usize,
    sort: Sort,
    collapse: Level,
    kept: bool,
    versions: Captures,
    per_site: Option<usize>,
    index: Option<PathBuf>,
    rebuild: bool,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    Score,
    Newest,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Content,
    Same,
    None,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Captures {
    All,
    Current,
}

/// Brings the search index of a directory up to date and searches; the numbers of documents and of
/// results, where the next results begin, and a row per result.
///
/// `progress` is called with the number of indexed documents while the index is built.
#[pyfunction]
pub(crate) fn search(
    py: Python<'_>,
    directory: PathBuf,
    query: &str,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(u64, u64, Option<usize>, Table)> {
    let options: Options = options::parse(options)?;
    let query: Query = query
        .parse()
        .map_err(|cause| SettingError::new_err(format!("query: {}", error::words(&cause))))?;
    let counters = Progress::default();
    let stop = || counters.stop.store(true, Relaxed);
    let look = |py: Python<'_>| match &progress {
        None => Ok(()),
        Some(callback) => {
            let done = counters.n_documents.load(Relaxed);
            callback.call1(py, ("index", done, py.None())).map(drop)
        }
    };
    let work = || {
        let folder = SearchDir::open(&directory)?;
        let folder = match &options.index {
            Some(index) => folder.with_index(index.clone()),
            None => folder,
        };
        if options.rebuild {
            arose_search::remove(&folder)?;
        }
        arose_search::update(&folder, &Config::default(), &counters)?;
        Index::open(&folder)?.search(&query, &options.request())
    };
    let found = watch::run(py, work, stop, look)?.map_err(failed)?;
    let table = hits(&found.hits)?;
    Ok((found.n_documents, found.n_results, found.next, table))
}

impl Options {
    fn request(&self) -> Request {
        Request {
            offset: self.offset,
            limit: self.limit,
            order: match self.sort {
                Sort::Score => Order::Score,
                Sort::Newest => Order::Newest,
            },
            collapse: match self.collapse {
                Level::Content => Collapse::Content,
                Level::Same => Collapse::Same,
                Level::None => Collapse::Nothing,
            },
            cluster: None,
            group: None,
            scope: match self.kept {
                true => Scope::Kept,
                false => Scope::All,
            },
            versions: match self.versions {
                Captures::All => Versions::All,
                Captures::Current => Versions::Current,
            },
            per_site: self.per_site.unwrap_or(match self.collapse {
                Level::Content | Level::Same => arose_cli::PER_SITE,
                Level::None => 0,
            }),
        }
    }
}

fn failed(cause: arose_search::Error) -> PyErr {
    use arose_search::Error as E;
    let words = error::words(&cause);
    match cause {
        E::OtherKind { .. } | E::Results(_) | E::Corpus(_) => InputError::new_err(words),
        E::TooFar { .. } => SettingError::new_err(words),
        _ => AroseError::new_err(words),
    }
}

/// Returns the results as columns, with the names of `arose search --json`.
fn hits(hits: &[Hit]) -> PyResult<Table> {
    let number = |of: fn(&Hit) -> u64| UInt64Array::from_iter_values(hits.iter().map(of));
    let text = |of: fn(&Hit) -> Option<&str>| StringArray::from_iter(hits.iter().map(of));
    let flag = |of: fn(&Hit) -> bool| BooleanArray::from_iter(hits.iter().map(|hit| Some(of(hit))));
    let snippet = |hit: &Hit| -> String {
        let parts = hit.snippet.iter().map(|part| part.text.as_str());
        parts.collect::<String>().trim().to_owned()
    };
    let columns = vec![
        table::column("rank", number(|hit| hit.rank as u64)),
        table::column("doc", number(|hit| hit.doc)),
        table::column("cluster", number(|hit| hit.cluster)),
        table::column("exact_duplicates", number(|hit| hit.n_exact)),
        table::column("near_duplicates", number(|hit| hit.n_near)),
        table::column("versions", number(|hit| hit.n_versions)),
        table::column("kept", flag(|hit| hit.kept)),
        table::column(
            "score",
            hits.iter().map(|hit| hit.score).collect::<Float32Array>(),
        ),
        table::column("id", text(|hit| Some(hit.id.as_str()))),
        table::column("url", text(|hit| hit.url.as_deref())),
        table::column("title", text(|hit| hit.title.as_deref())),
        table::column("language", text(|hit| hit.language.as_deref())),
        table::column(
            "time",
            hits.iter().map(|hit| hit.time).collect::<Int64Array>(),
        ),
        table::column("site", text(|hit| hit.site.as_deref())),
        table::column("more_from_site", flag(|hit| hit.more_from_site)),
        table::column(
            "snippet",
            StringArray::from_iter_values(hits.iter().map(snippet)),
        ),
    ];
    table::of_columns(columns).map_err(error::arrow)
}

/// Returns the state and counters of a crawl as JSON, as `arose crawl status --json` prints them.
#[pyfunction]
pub(crate) fn crawl_status(py: Python<'_>, directory: PathBuf) -> PyResult<String> {
    let status = py.detach(|| arose_cli::crawl_status(&directory));
    match status {
        Ok(status) => Ok(status.to_string()),
        Err(cause) => Err(InputError::new_err(error::in_python(&format!("{cause:#}")))),
    }
}
