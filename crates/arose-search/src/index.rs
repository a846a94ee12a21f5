//! Runs queries on a search index.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use tantivy::collector::{Count, TopDocs};
use tantivy::query::TermQuery;
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, IndexReader, ReloadPolicy, Searcher, TantivyDocument, Term};

use arose_corpus::Position;

use crate::Error;
use crate::collapse::{Collapse, Findings, Found, GoOn, Order, Wanted, find};
use crate::columns::Columns;
use crate::compile::{Compiled, compile, matching, within};
use crate::cost;
use crate::facets::{self, Facets};
use crate::folder::Folder;
use crate::per_site::PerSite;
use crate::query::Query;
use crate::schema::Fields;
use crate::snippet::{Fragment, Patterns};
use crate::update::{Payload, open};

/// Results beyond these are not given.
pub const MAX_RESULTS: usize = 100_000;

/// Which documents are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All.
    #[default]
    All,
    /// Those that the run has kept.
    Kept,
}

/// Which results are wanted, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Results to skip.
    pub offset: usize,
    /// Results to return.
    pub limit: usize,
    /// How they are ranked.
    pub order: Order,
    /// What counts as one.
    pub collapse: Collapse,
    /// Only documents of this cluster.
    pub cluster: Option<u64>,
    /// Which documents are searched.
    pub scope: Scope,
    /// Results of one site among those returned; 0 for any number. It does not apply where the
    /// query names a site or all documents are of one site.
    pub per_site: usize,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: 10,
            order: Order::default(),
            collapse: Collapse::default(),
            cluster: None,
            scope: Scope::default(),
            per_site: 0,
        }
    }
}

/// The results of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// How many documents match, exactly.
    pub n_documents: u64,
    /// How many results that makes, exactly: fewer than documents where near duplicates are
    /// collapsed.
    pub n_results: u64,
    /// Those asked for, best first.
    pub hits: Vec<Hit>,
    /// The offset at which the next results begin; none if there are no more.
    pub next: Option<usize>,
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its place among all results, from 0.
    pub rank: usize,
    /// The ordinal of the document: what [`Index::document`] takes.
    pub doc: u64,
    /// The ordinal of the kept document of its cluster.
    pub cluster: u64,
    /// How many other documents of the cluster match the query as well.
    pub n_alike: u64,
    /// Whether the run has kept it.
    pub kept: bool,
    /// How well it matches (BM25); none if results are ranked by time.
    pub score: Option<f32>,
    /// The input's own name for it, else its file and position.
    pub id: String,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its language, as it states it.
    pub language: Option<String>,
    /// When it was fetched, in seconds since 1970.
    pub time: Option<i64>,
    /// Its site.
    pub site: Option<String>,
    /// Whether other results of its site were left out after this one.
    pub more_from_site: bool,
    /// A few words around what was found.
    pub snippet: Vec<Fragment>,
}

/// A document as it is in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct Indexed {
    /// The ordinal of the kept document of its cluster.
    pub cluster: u64,
    /// Whether the run has kept it.
    pub kept: bool,
    /// The input's own name for it, else its file and position.
    pub id: String,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its language, as it states it.
    pub language: Option<String>,
    /// When it was fetched, in seconds since 1970.
    pub time: Option<i64>,
    /// Its text; none if its source could not be read.
    pub text: Option<String>,
    /// The file it was read from, as the run or the directory names it.
    pub source: String,
    /// Where in that file.
    pub position: Option<Position>,
}

/// An index that many threads can search at once.
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

    /// The results of a query and which of them are returned; none if it was stopped.
    fn page(
        &self,
        query: &Query,
        compiled: &Compiled,
        request: &Request,
        go_on: GoOn<'_>,
    ) -> tantivy::Result<Option<(Findings, Shown)>> {
        let limits = request.per_site > 0 && self.columns.has_sites && !query.names_site();
        let per_site = match limits {
            true => request.per_site,
            false => usize::MAX,
        };
        let end = request.offset + request.limit;
        // Where a site is left out, others follow: more is needed, and seldom all.
        let sizes = match limits {
            true => vec![end.saturating_mul(5).min(MAX_RESULTS), MAX_RESULTS],
            false => vec![end],
        };
        let mut found = None;
        for size in sizes {
            let wanted = Wanted {
                size: size.max(1),
                order: request.order,
                collapse: request.collapse,
            };
            let findings = find(&self.searcher, &self.columns, compiled, &wanted, go_on)?;
            let Some(findings) = findings else {
                return Ok(None);
            };
            let shown = self.shown(&findings, per_site, request)?;
            let is_done = shown.ranks.len() == request.limit
                || findings.best.len() as u64 == findings.n_results;
            found = Some((findings, shown));
            if is_done {
                break;
            }
        }
        Ok(found)
    }

    fn shown(
        &self,
        findings: &Findings,
        per_site: usize,
        request: &Request,
    ) -> tantivy::Result<Shown> {
        let mut per_site = PerSite::new(per_site);
        let ranked = findings.best.iter().enumerate().skip(request.offset);
        let mut ranks: Vec<(usize, bool)> = Vec::new();
        let mut next = None;
        for (rank, found) in ranked {
            let (columns, local) = self.columns.of(found.address());
            let site = match per_site.is_limited() {
                true => columns.site(local)?,
                false => None,
            };
            if ranks.len() == request.limit {
                next = Some(rank);
                break;
            }
            match per_site.take(site, ranks.len()) {
                None => ranks.push((rank, false)),
                // The last result of the site that is shown tells that there are more.
                Some(last) => ranks[last].1 = true,
            }
        }
        let is_cut = ranks.len() == request.limit && request.limit > 0;
        let end = findings.best.len();
        if next.is_none() && is_cut && (end as u64) < findings.n_results && end < MAX_RESULTS {
            next = Some(end);
        }
        Ok(Shown { ranks, next })
    }
}

/// Which results are returned: ranks, each with whether others of its site were left out.
struct Shown {
    ranks: Vec<(usize, bool)>,
    next: Option<usize>,
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

    /// Runs a query.
    ///
    /// # Errors
    ///
    /// If results beyond [`MAX_RESULTS`] are asked for, or the index is damaged.
    pub fn search(&self, query: &Query, request: &Request) -> Result<Results, Error> {
        let found = self.search_while(query, request, &|| true)?;
        found.ok_or(Error::Stopped)
    }

    /// Runs a query as long as `go_on` says so, which is asked every few thousand matches and
    /// between results; none if it was stopped.
    ///
    /// # Errors
    ///
    /// Those of [`search`](Self::search).
    pub fn search_while(
        &self,
        query: &Query,
        request: &Request,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Results>, Error> {
        let end = request.offset.saturating_add(request.limit);
        if end > MAX_RESULTS {
            return Err(Error::TooFar { max: MAX_RESULTS });
        }
        let compiled = self.compiled(query, request);
        let patterns = Patterns::new(query);
        self.with_view(|view| {
            let Some((findings, shown)) = view.page(query, &compiled, request, go_on)? else {
                return Ok(None);
            };
            let mut hits = Vec::with_capacity(shown.ranks.len());
            for &(rank, more_from_site) in &shown.ranks {
                if !go_on() {
                    return Ok(None);
                }
                let found = &findings.best[rank];
                let hit = self.hit(view, found, request.order, &patterns)?;
                hits.push(Hit {
                    rank,
                    more_from_site,
                    ..hit
                });
            }
            Ok(Some(Results {
                n_documents: findings.n_documents,
                n_results: findings.n_results,
                hits,
                next: shown.next,
            }))
        })
    }

    fn compiled(&self, query: &Query, request: &Request) -> Compiled {
        let mut compiled = compile(query, &self.fields);
        if let Some(cluster) = request.cluster {
            compiled = within(compiled, self.fields.cluster, cluster);
        }
        if request.scope == Scope::Kept {
            compiled = within(compiled, self.fields.kept, 1);
        }
        compiled
    }

    /// Counts the documents that match by site, language and year, as long as `go_on` says so; none
    /// if it was stopped.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn facets_while(
        &self,
        query: &Query,
        scope: Scope,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Facets>, Error> {
        let request = Request {
            scope,
            ..Request::default()
        };
        let compiled = self.compiled(query, &request);
        let clause = compiled.choice.unwrap_or(compiled.scored);
        self.with_view(|view| facets::count(&view.searcher, &view.columns, &*clause, go_on))
    }

    /// About how many bytes of the index a query reads, from the sizes of its lists: what it costs
    /// before it is run.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn cost(&self, query: &Query) -> Result<u64, Error> {
        self.with_view(|view| cost::of(query, &self.fields, &view.searcher))
    }

    /// The best documents for a query without what is needed to show them: how many results there
    /// are, and ordinals with URLs, or IDs where there is no URL.
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
            let (searcher, columns) = (&view.searcher, &view.columns);
            let findings = find(searcher, columns, &compiled, &wanted, &|| true)?;
            let findings = findings.unwrap_or_default();
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
        Ok(self.document(doc)?.and_then(|document| document.text))
    }

    /// A document; none if there is none of this ordinal.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn document(&self, doc: u64) -> Result<Option<Indexed>, Error> {
        let term = Term::from_field_u64(self.fields.doc, doc);
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        self.with_view(|view| {
            let found = view
                .searcher
                .search(&query, &TopDocs::with_limit(1).order_by_score())?;
            match found.first() {
                Some((_, address)) => self.indexed(view, *address).map(Some),
                None => Ok(None),
            }
        })
    }

    fn indexed(&self, view: &View, address: DocAddress) -> tantivy::Result<Indexed> {
        let stored: TantivyDocument = view.searcher.doc(address)?;
        let (columns, local) = view.columns.of(address);
        let owned = |field| text_of(&stored, field).map(str::to_owned);
        Ok(Indexed {
            cluster: columns.clusters.get_val(local),
            kept: columns.kept.get_val(local) == 1,
            id: owned(self.fields.id).unwrap_or_default(),
            url: owned(self.fields.url),
            title: owned(self.fields.title),
            language: owned(self.fields.stated_language),
            time: columns.times.first(local),
            text: owned(self.fields.text),
            source: owned(self.fields.source).unwrap_or_default(),
            position: text_of(&stored, self.fields.position).and_then(Position::parse),
        })
    }

    fn hit(
        &self,
        view: &View,
        found: &Found,
        order: Order,
        patterns: &Patterns,
    ) -> tantivy::Result<Hit> {
        let document = self.indexed(view, found.address())?;
        let (columns, local) = view.columns.of(found.address());
        Ok(Hit {
            rank: 0,
            doc: columns.docs.get_val(local),
            cluster: document.cluster,
            n_alike: found.n_documents - 1,
            kept: document.kept,
            score: found.score(order),
            id: document.id,
            url: document.url,
            title: document.title,
            language: document.language,
            time: document.time,
            site: columns.site(local)?,
            more_from_site: false,
            snippet: patterns.snippet(document.text.as_deref().unwrap_or_default()),
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
