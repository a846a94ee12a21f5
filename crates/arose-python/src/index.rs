//! The index: looks up duplicates of new documents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arose_dedup::index::{self, Seen, Settings, Sketch, Sketcher};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::error::{self, AroseError};
use crate::options;
use crate::text::{self, Texts};

/// Number of rows whose names are read at once.
const BATCH: u32 = 1 << 14;
/// Number of texts that are sketched between two checks for signals.
const TEXTS: usize = 1 << 13;

/// A directory of sketches.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Index {
    /// None once it is closed.
    open: Mutex<Option<Arc<Open>>>,
}

struct Open {
    index: Kind,
    sketcher: Sketcher,
    /// Present while this process may write.
    _mark: Option<Mark>,
}

enum Kind {
    Writer(index::Index),
    Reader(index::Reader),
}

/// The indexes that this process has open for writing, by their paths.
static OPEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// An entry in [`OPEN`], removed when it is dropped.
struct Mark(PathBuf);

impl Mark {
    fn new(folder: &Path) -> Self {
        let path = real(folder);
        marks().insert(path.clone());
        Self(path)
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        marks().remove(&self.0);
    }
}

fn marks() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

/// A document of the index that is a duplicate.
#[pyclass(frozen, get_all, module = "arose")]
pub(crate) struct Match {
    /// The name under which it was inserted.
    name: String,
    /// The rule that makes it a duplicate.
    rule: &'static str,
    /// The similarity of the sketches.
    similarity: f64,
    /// Matching super-shingles, of 6; None if the index does not store them.
    b_sim: Option<u32>,
    /// Matching simhash bits, of 384; None if the index does not store them.
    c_sim: Option<u32>,
    /// The weighted score of the policy content; None under other policies.
    content: Option<f64>,
    /// The unweighted score of the policy content; None under other policies.
    content_unweighted: Option<f64>,
    /// Number of pages of the site on which the scores are based; None under other policies.
    site_pages: Option<u64>,
}

#[pymethods]
impl Match {
    fn __repr__(&self) -> String {
        let Self {
            name,
            rule,
            similarity,
            ..
        } = self;
        let name = text::quoted(name);
        format!("Match({name}, rule='{rule}', similarity={similarity:.4})")
    }
}

impl From<index::Match> for Match {
    fn from(found: index::Match) -> Self {
        let evidence = &found.evidence;
        let has_features = evidence.jaccard.is_none() && found.content.is_none();
        Self {
            rule: found.rule.as_str(),
            similarity: found.similarity,
            b_sim: has_features.then_some(evidence.b_sim),
            c_sim: has_features.then_some(evidence.c_sim),
            content: found.content.map(|scores| scores.weighted),
            content_unweighted: found.content.map(|scores| scores.unweighted),
            site_pages: found.content.map(|scores| scores.n_site_pages),
            name: found.name,
        }
    }
}

/// Describes an error of an index. This process itself may hold the lock.
pub(crate) fn failed(error: index::Error) -> PyErr {
    match &error {
        index::Error::Locked { path } if marks().contains(&real(path)) => {
            AroseError::new_err(format!(
                "`{}` is already open for writing in this process; close it or pass read_only=True",
                path.display()
            ))
        }
        index::Error::Parameter { .. } => error::setting(error),
        _ => AroseError::new_err(error::words(&error)),
    }
}

impl Open {
    fn query(&self, text: &str, host: Option<&str>) -> Result<Vec<index::Match>, index::Error> {
        let sketch = self.sketcher.sketch(text, host);
        match &self.index {
            Kind::Writer(index) => index.query(&sketch),
            Kind::Reader(reader) => reader.query(&sketch),
        }
    }
}

impl Index {
    fn new(index: index::Index, folder: &Path) -> Self {
        let sketcher = Sketcher::new(index.settings());
        Self {
            open: Mutex::new(Some(Arc::new(Open {
                index: Kind::Writer(index),
                sketcher,
                _mark: Some(Mark::new(folder)),
            }))),
        }
    }

    /// Runs an operation on an index that may be written to.
    fn write<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&index::Index, &Sketcher) -> Result<T, index::Error> + Send,
    ) -> PyResult<T> {
        let open = self.opened()?;
        match &open.index {
            Kind::Writer(index) => {
                let work = || work(index, &open.sketcher).map_err(failed);
                py.detach(|| error::guarded(work))
            }
            Kind::Reader(_) => Err(AroseError::new_err(
                "the index is open for reading only; open it without read_only=True",
            )),
        }
    }

    fn opened(&self) -> PyResult<Arc<Open>> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        open.ok_or_else(|| AroseError::new_err("the index is closed"))
    }
}

#[pymethods]
impl Index {
    /// Create an empty index.
    #[staticmethod]
    fn create(py: Python<'_>, directory: PathBuf, options: &str) -> PyResult<Self> {
        let options: options::Options = options::parse(options)?;
        // An index counts the text that sites repeat; sketches alone do not have it.
        if options.policy != options::PolicyName::Content {
            options::check_sketches(options.policy)?;
        }
        let config = options.config()?;
        let settings = Settings::agreeing_with(&config);
        let index = py.detach(|| index::Index::create(&directory, settings));
        let index = index.map_err(failed)?;
        Ok(Self::new(index, &directory))
    }

    /// Open an existing index.
    #[staticmethod]
    fn open(py: Python<'_>, directory: PathBuf, read_only: bool) -> PyResult<Self> {
        if read_only {
            let reader = py
                .detach(|| index::Reader::open(&directory))
                .map_err(failed)?;
            let sketcher = Sketcher::new(reader.settings());
            let open = Open {
                index: Kind::Reader(reader),
                sketcher,
                _mark: None,
            };
            return Ok(Self {
                open: Mutex::new(Some(Arc::new(open))),
            });
        }
        let index = py.detach(|| index::Index::open(&directory));
        let index = index.map_err(failed)?;
        Ok(Self::new(index, &directory))
    }

    fn insert(&self, py: Python<'_>, name: &str, text: &str, host: Option<&str>) -> PyResult<()> {
        self.write(py, |index, sketcher| {
            index.insert(name, &sketcher.sketch(text, host))
        })
    }

    /// Add documents, sketched on all cores. Return their number.
    fn add(
        &self,
        py: Python<'_>,
        names: &Bound<'_, PyAny>,
        texts: &Bound<'_, PyAny>,
        hosts: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        let (names, texts) = (extract("names", names)?, extract("texts", texts)?);
        let names = names.all("name")?;
        let texts = texts.all("text")?;
        check_lengths("names", names.len(), "texts", texts.len())?;
        let hosts = hosts.map(|hosts| extract("hosts", hosts)).transpose()?;
        let pages = pages(&texts, hosts.as_ref())?;
        for (names, pages) in names.chunks(TEXTS).zip(pages.chunks(TEXTS)) {
            py.check_signals()?;
            self.write(py, |index, sketcher| {
                let sketches = in_parallel(pages, |page| sketcher.sketch(page.0, page.1));
                let names = names.iter().copied();
                let documents: Vec<(&str, &Sketch)> = names.zip(&sketches).collect();
                index.insert_all(&documents)
            })?;
        }
        Ok(texts.len())
    }

    fn query(&self, py: Python<'_>, text: &str, host: Option<&str>) -> PyResult<Vec<Match>> {
        let open = self.opened()?;
        let query = || open.query(text, host).map_err(failed);
        let found = py.detach(|| error::guarded(query))?;
        Ok(found.into_iter().map(Match::from).collect())
    }

    /// Return the duplicates of each text.
    fn query_many(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        hosts: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Vec<Match>>> {
        let open = self.opened()?;
        let texts = extract("texts", texts)?;
        let texts = texts.all("text")?;
        let hosts = hosts.map(|hosts| extract("hosts", hosts)).transpose()?;
        let mut matches = Vec::with_capacity(texts.len());
        for pages in pages(&texts, hosts.as_ref())?.chunks(TEXTS) {
            py.check_signals()?;
            let query = || Ok(in_parallel(pages, |page| open.query(page.0, page.1)));
            for found in py.detach(|| error::guarded(query))? {
                let found = found.map_err(failed)?;
                matches.push(found.into_iter().map(Match::from).collect());
            }
        }
        Ok(matches)
    }

    /// Return the duplicates. If there are none, insert the document.
    fn query_or_insert(
        &self,
        py: Python<'_>,
        name: &str,
        text: &str,
        host: Option<&str>,
    ) -> PyResult<Vec<Match>> {
        let seen = self.write(py, |index, sketcher| {
            index.query_or_insert(name, &sketcher.sketch(text, host))
        })?;
        Ok(match seen {
            Seen::Known(found) => found.into_iter().map(Match::from).collect(),
            Seen::New => Vec::new(),
        })
    }

    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.write(py, |index, _| index.remove(name))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.write(py, |index, _| index.commit())
    }

    /// Return names of documents from a row on, in the order of insertion, and the row from which
    /// to continue; none at the end.
    fn names(&self, py: Python<'_>, row: u32) -> PyResult<(Vec<String>, Option<u32>)> {
        let open = self.opened()?;
        let end = row.saturating_add(BATCH);
        let found = py.detach(|| match &open.index {
            Kind::Writer(index) => Ok((index.names_in(row..end)?, index.next_row()?)),
            Kind::Reader(reader) => Ok((reader.names_in(row..end)?, reader.next_row())),
        });
        let (names, next_row) = found.map_err(failed)?;
        Ok((names, (end < next_row).then_some(end)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let open = self.opened()?;
        let status = py.detach(|| match &open.index {
            Kind::Writer(index) => index.status(),
            Kind::Reader(reader) => Ok(reader.status()),
        });
        Ok(status.map_err(failed)?.n_docs as usize)
    }

    /// Commit and release the directory.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(open) = open else {
            return Ok(());
        };
        py.detach(move || {
            let done = match &open.index {
                Kind::Writer(index) => index.commit(),
                Kind::Reader(_) => Ok(()),
            };
            drop(open);
            done
        })
        .map_err(failed)
    }
}

/// Returns texts. An error names the parameter.
fn extract(parameter: &str, object: &Bound<'_, PyAny>) -> PyResult<Texts> {
    Texts::extract(object).map_err(|cause| {
        let py = object.py();
        match cause.is_instance_of::<PyTypeError>(py) {
            true => PyTypeError::new_err(format!("{parameter}: {}", cause.value(py))),
            false => cause,
        }
    })
}

/// A text and its host.
type Page<'t> = (&'t str, Option<&'t str>);

/// Returns texts with their hosts. All hosts are unknown if none are given.
fn pages<'t>(texts: &[&'t str], hosts: Option<&'t Texts>) -> PyResult<Vec<Page<'t>>> {
    let Some(hosts) = hosts else {
        return Ok(texts.iter().map(|text| (*text, None)).collect());
    };
    let hosts = hosts.views();
    check_lengths("hosts", hosts.len(), "texts", texts.len())?;
    Ok(texts.iter().copied().zip(hosts).collect())
}

fn check_lengths(one: &str, n: usize, other: &str, n_other: usize) -> PyResult<()> {
    match n == n_other {
        true => Ok(()),
        false => Err(PyValueError::new_err(format!(
            "{n} {one} for {n_other} {other}"
        ))),
    }
}

/// Applies `work` to every text on all cores. Threads do not survive a fork, so they are created
/// each time.
fn in_parallel<T: Send>(pages: &[Page<'_>], work: impl Fn(&Page<'_>) -> T + Sync) -> Vec<T> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let part = pages.len().div_ceil(cores).max(64);
    std::thread::scope(|scope| {
        let parts = pages.chunks(part);
        let work = &work;
        let threads: Vec<_> = parts
            .map(|pages| scope.spawn(move || pages.iter().map(work).collect::<Vec<T>>()))
            .collect();
        let parts = threads.into_iter();
        parts
            .flat_map(|part| {
                part.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}
