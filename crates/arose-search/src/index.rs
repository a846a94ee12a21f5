//! Asks an index.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tantivy::collector::{Count, TopDocs};
use tantivy::query::TermQuery;
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{IndexReader, ReloadPolicy, Searcher, TantivyDocument, Term};

use crate::Error;
use crate::collapse::{Collapse, Found, Order, Wanted, find};
use crate::columns::Columns;
use crate::compile::{compile, matching, within};
use crate::folder::Folder;
use crate::query::Query;
use crate::schema::Fields;
use crate::snippet::{Fragment, Patterns};
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
    /// What is asked; replaced as a whole.
    view: RwLock<Arc<View>>,
}

/// The index at some time.
struct View {
    searcher: Searcher,
    columns: Columns,
}

impl View {
    fn open(reader: &IndexReader) -> tantivy::Result<Arc<Self>> {
        let searcher = reader.searcher();
        let columns = Columns::open(&searcher)?;
        Ok(Arc::new(Self { searcher, columns }))
    }
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
        let reader: IndexReader = unless_damaged(&path, || {
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
            reader.try_into().map_err(Error::index(&path))
        })?;
        let view = unless_damaged(&path, || View::open(&reader).map_err(Error::index(&path)))?;
        Ok(Self {
            fields: Fields::new(),
            reader,
            view: RwLock::new(view),
            path,
        })
    }

    /// Sees what updates have done since the index was opened.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn reload(&self) -> Result<(), Error> {
        let view = unless_damaged(&self.path, || {
            let view = self.reader.reload().and_then(|()| View::open(&self.reader));
            view.map_err(Error::index(&self.path))
        })?;
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = view;
        Ok(())
    }

    /// Reads all of the index and compares it with its checksums.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    pub fn verify(&self) -> Result<(), Error> {
        let index = self.view().searcher.index().clone();
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
        self.view().searcher.num_docs()
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
        let wanted = Wanted {
            size: size.max(1),
            order: request.order,
            collapse: request.collapse,
        };
        let patterns = Patterns::new(query);
        self.with_view(|view| {
            let findings = find(&view.searcher, &view.columns, &compiled, &wanted)?;
            let shown = findings
                .best
                .iter()
                .skip(request.offset)
                .take(request.limit);
            let hits = shown.map(|found| self.hit(view, found, request.order, &patterns));
            Ok(Results {
                n_documents: findings.n_documents,
                n_results: findings.n_results,
                hits: hits.collect::<tantivy::Result<_>>()?,
            })
        })
    }

    /// The best documents for a query without what is needed to show them: how many results there
    /// are, and ordinals with addresses, or ids where there is no address.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn addresses(
        &self,
        query: &Query,
        limit: usize,
        collapse: Collapse,
    ) -> Result<(u64, Vec<(u64, String)>), Error> {
        let compiled = compile(query, &self.fields);
        let wanted = Wanted {
            size: limit.clamp(1, MAX_RESULTS),
            order: Order::Score,
            collapse,
        };
        self.with_view(|view| {
            let findings = find(&view.searcher, &view.columns, &compiled, &wanted)?;
            let located = findings.best.iter().take(limit).map(|found| {
                let stored: TantivyDocument = view.searcher.doc(found.address())?;
                let (columns, local) = view.columns.of(found.address());
                let name = text_of(&stored, self.fields.url);
                let name = name.or_else(|| text_of(&stored, self.fields.id));
                let name = name.unwrap_or_default().to_owned();
                Ok((columns.docs.get_val(local), name))
            });
            let located = located.collect::<tantivy::Result<_>>()?;
            Ok((findings.n_results, located))
        })
    }

    /// The words of all documents with the number of documents that hold each, in the order of the
    /// alphabet; `wanted` says which.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn vocabulary(&self, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, u64)>, Error> {
        self.with_view(|view| {
            let mut words: BTreeMap<String, u64> = BTreeMap::new();
            for segment in view.searcher.segment_readers() {
                let inverted = segment.inverted_index(self.fields.body)?;
                let mut terms = inverted.terms().stream()?;
                while terms.advance() {
                    if let Ok(word) = std::str::from_utf8(terms.key())
                        && wanted(word)
                    {
                        let n = u64::from(terms.value().doc_freq);
                        *words.entry(word.to_owned()).or_default() += n;
                    }
                }
            }
            Ok(words.into_iter().collect())
        })
    }

    /// How many documents match, near duplicates counted one by one.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn count(&self, query: &Query) -> Result<u64, Error> {
        let compiled = matching(query, &self.fields);
        self.with_view(|view| Ok(view.searcher.search(&*compiled, &Count)? as u64))
    }

    /// The text of a document; none if there is no such document, or it has none.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn text(&self, doc: u64) -> Result<Option<String>, Error> {
        let term = Term::from_field_u64(self.fields.doc, doc);
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        self.with_view(|view| {
            let found = view
                .searcher
                .search(&query, &TopDocs::with_limit(1).order_by_score())?;
            let Some((_, address)) = found.first() else {
                return Ok(None);
            };
            let stored: TantivyDocument = view.searcher.doc(*address)?;
            Ok(text_of(&stored, self.fields.text).map(str::to_owned))
        })
    }

    fn hit(
        &self,
        view: &View,
        found: &Found,
        order: Order,
        patterns: &Patterns,
    ) -> tantivy::Result<Hit> {
        let stored: TantivyDocument = view.searcher.doc(found.address())?;
        let (columns, local) = view.columns.of(found.address());
        let text = |field| text_of(&stored, field);
        let owned = |field| text(field).map(str::to_owned);
        Ok(Hit {
            doc: columns.docs.get_val(local),
            cluster: columns.clusters.get_val(local),
            n_alike: found.n_documents - 1,
            kept: columns.places[local as usize].is_kept(),
            score: found.score(order),
            id: owned(self.fields.id).unwrap_or_default(),
            url: owned(self.fields.url),
            title: owned(self.fields.title),
            language: owned(self.fields.stated_language),
            time: columns.times.first(local),
            snippet: patterns.snippet(text(self.fields.text).unwrap_or_default()),
        })
    }

    fn view(&self) -> Arc<View> {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&view)
    }

    fn with_view<T>(&self, work: impl FnOnce(&View) -> tantivy::Result<T>) -> Result<T, Error> {
        let view = self.view();
        unless_damaged(&self.path, || work(&view).map_err(Error::index(&self.path)))
    }
}

fn text_of(stored: &TantivyDocument, field: Field) -> Option<&str> {
    stored.get_first(field)?.as_str()
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
