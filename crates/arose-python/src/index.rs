//! The online index: have I seen this before?

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use arose_dedup::index::{self, Seen, Settings, Sketcher};
use pyo3::prelude::*;

use crate::error::{self, AroseError};
use crate::options;

/// A folder of sketches, open for writing and reading.
#[pyclass(frozen, module = "arose")]
pub(crate) struct Index {
    /// None once it is closed.
    open: Mutex<Option<Arc<Open>>>,
}

struct Open {
    index: index::Index,
    sketcher: Sketcher,
}

/// A document of the index that is a duplicate.
#[pyclass(frozen, get_all, module = "arose")]
pub(crate) struct Match {
    /// What it was inserted as.
    name: String,
    /// The rule that makes it a duplicate.
    rule: &'static str,
    /// How alike the sketches are.
    similarity: f64,
    /// Super-shingles that agree, of 6; None if the index does not keep them.
    b_sim: Option<u32>,
    /// Simhash bits that agree, of 384; None if the index does not keep them.
    c_sim: Option<u32>,
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
        format!("Match({name:?}, rule='{rule}', similarity={similarity:.4})")
    }
}

impl From<index::Match> for Match {
    fn from(found: index::Match) -> Self {
        let evidence = &found.evidence;
        let has_features = evidence.jaccard.is_none();
        Self {
            rule: found.rule.as_str(),
            similarity: found.similarity,
            b_sim: has_features.then_some(evidence.b_sim),
            c_sim: has_features.then_some(evidence.c_sim),
            name: found.name,
        }
    }
}

fn failed(error: index::Error) -> PyErr {
    AroseError::new_err(error::words(&error))
}

impl Index {
    fn new(index: index::Index) -> Self {
        let sketcher = Sketcher::new(index.settings());
        Self {
            open: Mutex::new(Some(Arc::new(Open { index, sketcher }))),
        }
    }

    /// Works on the open index without the interpreter lock.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Open) -> Result<T, index::Error> + Send,
    ) -> PyResult<T> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let open = open.ok_or_else(|| AroseError::new_err("the index is closed"))?;
        py.detach(|| work(&open)).map_err(failed)
    }
}

#[pymethods]
impl Index {
    /// Makes an empty index.
    #[staticmethod]
    fn create(py: Python<'_>, folder: PathBuf, options: &str) -> PyResult<Self> {
        let config = options::parse::<options::Options>(options)?.config()?;
        let settings = Settings::agreeing_with(&config);
        let index = py.detach(|| index::Index::create(&folder, settings));
        Ok(Self::new(index.map_err(failed)?))
    }

    /// Opens one that is there.
    #[staticmethod]
    fn open(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let index = py.detach(|| index::Index::open(&folder));
        Ok(Self::new(index.map_err(failed)?))
    }

    fn insert(&self, py: Python<'_>, name: &str, text: &str, host: Option<&str>) -> PyResult<()> {
        self.with(py, |open| {
            open.index.insert(name, &open.sketcher.sketch(text, host))
        })
    }

    fn query(&self, py: Python<'_>, text: &str, host: Option<&str>) -> PyResult<Vec<Match>> {
        let found = self.with(py, |open| {
            open.index.query(&open.sketcher.sketch(text, host))
        })?;
        Ok(found.into_iter().map(Match::from).collect())
    }

    /// Duplicates; if there are none, the document is inserted.
    fn query_or_insert(
        &self,
        py: Python<'_>,
        name: &str,
        text: &str,
        host: Option<&str>,
    ) -> PyResult<Vec<Match>> {
        let seen = self.with(py, |open| {
            let sketch = open.sketcher.sketch(text, host);
            open.index.query_or_insert(name, &sketch)
        })?;
        Ok(match seen {
            Seen::Known(found) => found.into_iter().map(Match::from).collect(),
            Seen::New => Vec::new(),
        })
    }

    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.with(py, |open| open.index.remove(name))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |open| open.index.commit())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let stats = self.with(py, |open| open.index.stats())?;
        Ok(stats.n_docs as usize)
    }

    /// Commits and lets go of the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let open = self
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        match open {
            None => Ok(()),
            Some(open) => py
                .detach(move || {
                    let done = open.index.commit();
                    drop(open);
                    done
                })
                .map_err(failed),
        }
    }
}
