//! Asks an index.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tantivy::collector::{Count, TopDocs};
use tantivy::query::TermQuery;
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{IndexReader, ReloadPolicy, Searcher, TantivyDocument, Term};

use crate::Error;
use crate::collapse::{Collapse, Collapsing, Findings, Found, Order};
use crate::compile::{compile, matching, within};
use crate::folder::Folder;
use crate::query::Query;
use crate::schema::{Fields, GROUP};
use crate::snippet::{Fragment, snippet};
use crate::update::{Payload, open};

/// Results beyond these are not given.
pub const MAX_RESULTS: usize = 100_000;

/// Which results are wanted, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Results to pass over.
    pub offset: usize,
    /// Results to give.
    pub limit: usize,
    /// How they are ranked.
    pub order: Order,
    /// What counts as one.
    pub collapse: Collapse,
    /// Only documents of this cluster.
    pub cluster: Option<u64>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: 10,
            order: Order::default(),
            collapse: Collapse::default(),
            cluster: None,
        }
    }
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// How many documents match, exactly.
    pub n_documents: u64,
    /// How many results that makes, exactly: fewer than documents where near duplicates are
    /// collapsed.
    pub n_results: u64,
    /// Those asked for, best first.
    pub hits: Vec<Hit>,
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The ordinal of the document: what [`Index::text`] takes.
    pub doc: u64,
    /// The smallest ordinal in its cluster.
    pub cluster: u64,
    /// How many other documents of the cluster match the query as well.
    pub n_alike: u64,
    /// Whether the run has kept it; documents without duplicates are.
    pub kept: bool,
    /// How well it matches (BM25); none if results are ranked by time.
    pub score: Option<f32>,
    /// The input's own name for it, else its file and position.
    pub id: String,
    /// Its address.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its language, as it states it.
    pub language: Option<String>,
    /// When it was fetched, in seconds since 1970.
    pub time: Option<i64>,
    /// A few words around what was found.
    pub snippet: Vec<Fragment>,
}

/// An index that can be asked from many threads at once.
pub struct Index {
    path: PathBuf,
    fields: Fields,
    reader: IndexReader,
}

impl Index {
    /// Opens the index of a folder, as the last [`update`](crate::update()) left it.
    ///
    /// # Errors
    ///
    /// If there is none, or if it is damaged.
    pub fn open(folder: &Folder) -> Result<Self, Error> {
        let path = folder.index_path();
        if !path.join("meta.json").exists() {
            return Err(Error::NoIndex { path });
        }
        let index = unless_damaged(&path, || open(&path))?;
        if Payload::of(&index).is_none_or(|payload| !payload.is_complete) {
            return Err(Error::NoIndex { path });
        }
        let reader = unless_damaged(&path, || {
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
            reader.try_into().map_err(Error::index(&path))
        })?;
        Ok(Self {
            fields: Fields::new(),
            reader,
            path,
        })
    }

    /// Sees what updates have done since the index was opened.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn reload(&self) -> Result<(), Error> {
        unless_damaged(&self.path, || {
            self.reader.reload().map_err(Error::index(&self.path))
        })
    }

    /// Reads all of the index and compares it with its checksums.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    pub fn verify(&self) -> Result<(), Error> {
        let index = self.reader.searcher().index().clone();
        let damaged = unless_damaged(&self.path, || {
            index.validate_checksum().map_err(Error::index(&self.path))
        })?;
        match damaged.iter().min() {
            None => Ok(()),
            Some(file) => Err(Error::Damaged {
                path: self.path.clone(),
                detail: format!("the checksum of {} does not match", file.display()),
            }),
        }
    }

    /// How many documents there are.
    #[must_use]
    pub fn n_documents(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Answers a query.
    ///
    /// # Errors
    ///
    /// If results beyond [`MAX_RESULTS`] are asked for, or the index is damaged.
    pub fn search(&self, query: &Query, request: &Request) -> Result<Results, Error> {
        let size = request.offset.saturating_add(request.limit);
        if size > MAX_RESULTS {
            return Err(Error::TooFar { max: MAX_RESULTS });
        }
        let mut compiled = compile(query, &self.fields);
        if let Some(cluster) = request.cluster {
            compiled = within(compiled, cluster, &self.fields);
        }
        let collector = Collapsing {
            size: size.max(1),
            order: request.order,
            collapse: request.collapse,
        };
        self.with_searcher(|searcher| {
            let findings: Findings = searcher.search(&*compiled, &collector)?;
            let shown = findings
                .best
                .iter()
                .skip(request.offset)
                .take(request.limit);
            let hits = shown.map(|found| self.hit(searcher, found, request.order, query));
            Ok(Results {
                n_documents: findings.n_documents,
                n_results: findings.n_results,
                hits: hits.collect::<tantivy::Result<_>>()?,
            })
        })
    }

    /// How many documents match, near duplicates counted one by one.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn count(&self, query: &Query) -> Result<u64, Error> {
        let compiled = matching(query, &self.fields);
        self.with_searcher(|searcher| Ok(searcher.search(&*compiled, &Count)? as u64))
    }

    /// The text of a document; none if there is no such document, or it has none.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn text(&self, doc: u64) -> Result<Option<String>, Error> {
        let term = Term::from_field_u64(self.fields.doc, doc);
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        self.with_searcher(|searcher| {
            let found = searcher.search(&query, &TopDocs::with_limit(1).order_by_score())?;
            let Some((_, address)) = found.first() else {
                return Ok(None);
            };
            let stored: TantivyDocument = searcher.doc(*address)?;
            Ok(text_of(&stored, self.fields.text))
        })
    }

    fn hit(
        &self,
        searcher: &Searcher,
        found: &Found,
        order: Order,
        query: &Query,
    ) -> tantivy::Result<Hit> {
        let address = found.ranked.address();
        let stored: TantivyDocument = searcher.doc(address)?;
        let columns = searcher.segment_reader(address.segment_ord).fast_fields();
        let number = |name: &str| -> tantivy::Result<u64> {
            Ok(columns.u64(name)?.first(address.doc_id).unwrap_or(0))
        };
        let group = number(GROUP)?;
        let text = |field| text_of(&stored, field);
        Ok(Hit {
            doc: number("doc")?,
            cluster: number("cluster")?,
            n_alike: found.n_documents - 1,
            kept: group == 0 || group & 1 == 1,
            score: found.ranked.score(order),
            id: text(self.fields.id).unwrap_or_default(),
            url: text(self.fields.url),
            title: text(self.fields.title),
            language: text(self.fields.stated_language),
            time: columns.i64("time")?.first(address.doc_id),
            snippet: snippet(&text(self.fields.text).unwrap_or_default(), query),
        })
    }

    fn with_searcher<T>(
        &self,
        work: impl FnOnce(&Searcher) -> tantivy::Result<T>,
    ) -> Result<T, Error> {
        let searcher = self.reader.searcher();
        unless_damaged(&self.path, || {
            work(&searcher).map_err(Error::index(&self.path))
        })
    }
}

fn text_of(stored: &TantivyDocument, field: Field) -> Option<String> {
    let value = stored.get_first(field)?;
    value.as_str().map(str::to_owned)
}

/// The library checks little of what it reads, and panics on some damage.
fn unless_damaged<T>(path: &Path, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::Damaged {
            path: path.to_owned(),
            detail: "its files do not hold what they should".to_owned(),
        })
    })
}
