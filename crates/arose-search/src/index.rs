//! Runs queries on a search index.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tantivy::collector::TopDocs;
use tantivy::query::TermQuery;
use tantivy::schema::{Field, IndexRecordOption, Value};
use tantivy::{DocAddress, IndexReader, ReloadPolicy, Searcher, TantivyDocument, Term};

use arose_corpus::Position;
use arose_dedup::Versions;

use crate::Error;
use crate::collapse::{Collapse, GoOn, Order, Ranking, Representative, Wanted, find};
use crate::columns::Columns;
use crate::compile::{Compiled, Compiler, among, within};
use crate::cost::{self, Cost};
use crate::facets::{self, Facets};
use crate::per_site::PerSite;
use crate::query::Query;
use crate::results::{Hit, Indexed, MAX_RESULTS, Request, Results, Scope};
use crate::schema::Fields;
use crate::search_dir::{SearchDir, State};
use crate::snippet::Patterns;
use crate::update::{Payload, open};

/// A snapshot of an index that many threads can search at once.
pub struct Index {
    path: PathBuf,
    fields: Fields,
    view: View,
    state: State,
}

/// The searchable state of an index.
pub(crate) struct View {
    pub(crate) searcher: Searcher,
    pub(crate) columns: Columns,
}

impl View {
    fn open(reader: &IndexReader) -> tantivy::Result<Self> {
        let searcher = reader.searcher();
        let columns = Columns::open(&searcher)?;
        Ok(Self { searcher, columns })
    }

    /// The results of a query and the ranks to return; none if the search was stopped.
    fn page(
        &self,
        query: &Query,
        compiled: &Compiled,
        request: &Request,
        go_on: &GoOn,
    ) -> tantivy::Result<Option<(Ranking, Shown)>> {
        let limits = request.per_site > 0 && self.columns.has_sites && !query.names_site();
        let per_site = match limits {
            true => request.per_site,
            false => usize::MAX,
        };
        let end = request.offset + request.limit;
        // If results of a site are omitted, others follow. More results are then needed, but seldom
        // all.
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
            let ranking = find(&self.searcher, &self.columns, compiled, &wanted, go_on)?;
            let Some(ranking) = ranking else {
                return Ok(None);
            };
            let shown = self.shown(&ranking, per_site, request)?;
            let is_done = shown.ranks.len() == request.limit
                || ranking.best.len() as u64 == ranking.n_results;
            found = Some((ranking, shown));
            if is_done {
                break;
            }
        }
        // A limit makes room for other sites. If there are none, it has no purpose.
        if let Some((ranking, shown)) = &mut found
            && limits
            && shown.is_one_site
            && shown.ranks.len() < request.limit
        {
            *shown = self.shown(ranking, usize::MAX, request)?;
        }
        Ok(found)
    }

    fn shown(
        &self,
        ranking: &Ranking,
        per_site: usize,
        request: &Request,
    ) -> tantivy::Result<Shown> {
        let mut per_site = PerSite::new(per_site);
        let ranked = ranking.best.iter().enumerate().skip(request.offset);
        let mut ranks: Vec<(usize, bool)> = Vec::new();
        let mut next = None;
        for (rank, document) in ranked {
            let (columns, local) = self.columns.of(document.address());
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
                // The last displayed result of the site indicates that there are more.
                Some(last) => ranks[last].1 = true,
            }
        }
        let is_cut = ranks.len() == request.limit && request.limit > 0;
        let end = ranking.best.len();
        if next.is_none() && is_cut && (end as u64) < ranking.n_results && end < MAX_RESULTS {
            next = Some(end);
        }
        Ok(Shown {
            ranks,
            next,
            is_one_site: per_site.is_one_site(),
        })
    }
}

/// The results to return: ranks, each with whether others of its site were omitted.
struct Shown {
    ranks: Vec<(usize, bool)>,
    next: Option<usize>,
    is_one_site: bool,
}

impl Index {
    /// Opens the index of a directory in the state that the last [`update`](crate::update()) left.
    ///
    /// # Errors
    ///
    /// If there is no index, or if it is damaged.
    pub fn open(folder: &SearchDir) -> Result<Self, Error> {
        let path = folder.index_path();
        if !path.join("meta.json").exists() {
            return Err(Error::NoIndex { path });
        }
        let index = unless_damaged(&path, || open(&path))?;
        let payload = Payload::of(&index).filter(|payload| payload.is_complete);
        let Some(Payload { state, .. }) = payload else {
            return Err(Error::NoIndex { path });
        };
        let reader: IndexReader = unless_damaged(&path, || {
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual);
            reader.try_into().map_err(Error::index(&path))
        })?;
        let view = unless_damaged(&path, || View::open(&reader).map_err(Error::index(&path)))?;
        Ok(Self {
            fields: Fields::new(),
            view,
            path,
            state,
        })
    }

    /// Reads all of the index and compares it with its checksums.
    ///
    /// # Errors
    ///
    /// If it is damaged.
    pub fn verify(&self) -> Result<(), Error> {
        let index = self.view.searcher.index().clone();
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

    /// The files that it was made from, in their state at that time.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Whether the index contains versions, which are kept documents with the same content.
    #[must_use]
    pub fn has_versions(&self) -> bool {
        self.view.columns.n_groups.is_some()
    }

    /// Number of documents.
    #[must_use]
    pub fn n_documents(&self) -> u64 {
        self.view.searcher.num_docs()
    }

    /// Runs a query.
    ///
    /// # Errors
    ///
    /// If results beyond [`MAX_RESULTS`] are requested, or the index is damaged.
    pub fn search(&self, query: &Query, request: &Request) -> Result<Results, Error> {
        let go_on: GoOn = Arc::new(|| true);
        let found = self.search_while(query, request, &go_on)?;
        found.ok_or(Error::Stopped)
    }

    /// Runs a query as long as `go_on` returns true. It is called every few matches, inside
    /// phrases, and between results. Returns none if the search was stopped.
    ///
    /// # Errors
    ///
    /// Those of [`search`](Self::search).
    pub fn search_while(
        &self,
        query: &Query,
        request: &Request,
        go_on: &GoOn,
    ) -> Result<Option<Results>, Error> {
        let end = request.offset.saturating_add(request.limit);
        if end > MAX_RESULTS {
            return Err(Error::TooFar { max: MAX_RESULTS });
        }
        let compiled = self.compiled(query, request, go_on)?;
        let patterns = Patterns::new(query);
        self.with_view(|view| {
            let Some((ranking, shown)) = view.page(query, &compiled, request, go_on)? else {
                return Ok(None);
            };
            let mut hits = Vec::with_capacity(shown.ranks.len());
            for &(rank, more_from_site) in &shown.ranks {
                if !go_on() {
                    return Ok(None);
                }
                let hit = self.hit(view, &ranking.best[rank], request.order, &patterns)?;
                hits.push(Hit {
                    rank,
                    more_from_site,
                    ..hit
                });
            }
            Ok(Some(Results {
                n_documents: ranking.n_documents,
                n_results: ranking.n_results,
                hits,
                next: shown.next,
            }))
        })
    }

    fn compiled(&self, query: &Query, request: &Request, go_on: &GoOn) -> Result<Compiled, Error> {
        let mut compiled = self.compiler(go_on).compile(query);
        if let Some(cluster) = request.cluster {
            compiled = within(compiled, self.fields.cluster, cluster);
        }
        if let Some(group) = request.group {
            compiled = within(compiled, self.fields.group, group);
        }
        if request.scope == Scope::Kept {
            compiled = within(compiled, self.fields.kept, 1);
        }
        if request.versions == Versions::Current {
            let current = |view: &View| Ok(view.columns.current(&view.searcher).clone());
            compiled = among(compiled, &self.with_view(current)?);
        }
        Ok(compiled)
    }

    /// Returns whether some pages have captures that are not current.
    ///
    /// # Errors
    ///
    /// If the index cannot be read.
    pub fn has_superseded(&self) -> Result<bool, Error> {
        self.with_view(|view| Ok(!view.columns.current(&view.searcher).is_all()))
    }

    pub(crate) fn compiler<'a>(&'a self, go_on: &'a GoOn) -> Compiler<'a> {
        let fields = &self.fields;
        Compiler { fields, go_on }
    }

    /// Counts the matching documents of a request by site, language and year, as long as `go_on`
    /// returns true; none if the search was stopped.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn facets_while(
        &self,
        query: &Query,
        request: &Request,
        go_on: &GoOn,
    ) -> Result<Option<Facets>, Error> {
        let compiled = self.compiled(query, request, go_on)?;
        let clause = compiled.choice.unwrap_or(compiled.scored);
        self.with_view(|view| facets::count(&view.searcher, &view.columns, &*clause, go_on))
    }

    /// The cost of a query before it runs, from the sizes of the lists that it reads.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn cost(&self, query: &Query) -> Result<Cost, Error> {
        self.with_view(|view| cost::of(query, &self.fields, &view.searcher))
    }

    /// The best documents for a query without the data to show them. Returns the number of results,
    /// and ordinals with URLs, or with IDs if there is no URL.
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
        let go_on: GoOn = Arc::new(|| true);
        let compiled = self.compiler(&go_on).compile(query);
        let wanted = Wanted {
            size: limit.clamp(1, MAX_RESULTS),
            order: Order::Score,
            collapse,
        };
        self.with_view(|view| {
            let (searcher, columns) = (&view.searcher, &view.columns);
            let ranking = find(searcher, columns, &compiled, &wanted, &go_on)?;
            let ranking = ranking.unwrap_or_default();
            let located = ranking.best.iter().take(limit).map(|document| {
                let stored: TantivyDocument = view.searcher.doc(document.address())?;
                let (columns, local) = view.columns.of(document.address());
                let name = text_of(&stored, self.fields.url);
                let name = name.or_else(|| text_of(&stored, self.fields.id));
                let name = name.unwrap_or_default().to_owned();
                Ok((columns.docs.get_val(local), name))
            });
            let located = located.collect::<tantivy::Result<_>>()?;
            Ok((ranking.n_results, located))
        })
    }

    /// The words of all documents with the number of documents that contain each, in alphabetical
    /// order; `wanted` selects words.
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

    /// The text of a document; none if there is no such document, or it has no text.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn text(&self, doc: u64) -> Result<Option<String>, Error> {
        Ok(self.document(doc)?.and_then(|document| document.text))
    }

    /// The document with this ordinal, if any.
    ///
    /// # Errors
    ///
    /// If the index is damaged.
    pub fn document(&self, doc: u64) -> Result<Option<Indexed>, Error> {
        self.with_view(
            |view| match address_of(doc, &view.searcher, &self.fields)? {
                Some(address) => self.indexed(view, address).map(Some),
                None => Ok(None),
            },
        )
    }

    pub(crate) fn indexed(&self, view: &View, address: DocAddress) -> tantivy::Result<Indexed> {
        let stored: TantivyDocument = view.searcher.doc(address)?;
        let (columns, local) = view.columns.of(address);
        let owned = |field| text_of(&stored, field).map(str::to_owned);
        let original = match stored.get_first(self.fields.original) {
            Some(original) => {
                let original = original.as_u64().unwrap_or_default();
                address_of(original, &view.searcher, &self.fields)?
            }
            None => None,
        };
        // Fields that an exact duplicate lacks are stored with its original.
        let of_original = match original {
            Some(original) => Some(view.searcher.doc::<TantivyDocument>(original)?),
            None => None,
        };
        let full = of_original.as_ref().unwrap_or(&stored);
        let shared = |field| text_of(full, field).map(str::to_owned);
        Ok(Indexed {
            cluster: columns.clusters.get_val(local),
            group: columns.groups.get_val(local),
            kept: columns.kept.get_val(local) == 1,
            id: owned(self.fields.id).unwrap_or_default(),
            url: owned(self.fields.url),
            title: shared(self.fields.title),
            language: shared(self.fields.stated_language),
            time: columns.times.first(local),
            text: shared(self.fields.text),
            is_revisit: original.is_some(),
            source: shared(self.fields.source).unwrap_or_default(),
            position: text_of(full, self.fields.position).and_then(Position::parse),
        })
    }

    fn hit(
        &self,
        view: &View,
        shown: &Representative,
        order: Order,
        patterns: &Patterns,
    ) -> tantivy::Result<Hit> {
        let document = self.indexed(view, shown.address())?;
        let (columns, local) = view.columns.of(shown.address());
        let [n_exact, n_near, n_versions] = shown.n_others();
        Ok(Hit {
            rank: 0,
            doc: columns.docs.get_val(local),
            cluster: document.cluster,
            group: document.group,
            n_exact,
            n_near,
            n_versions,
            kept: document.kept,
            score: shown.score(order),
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

    pub(crate) fn with_view<T>(
        &self,
        work: impl FnOnce(&View) -> tantivy::Result<T>,
    ) -> Result<T, Error> {
        let work = || work(&self.view).map_err(Error::index(&self.path));
        unless_damaged(&self.path, work)
    }
}

/// The address of the document with this ordinal in an index.
pub(crate) fn address_of(
    doc: u64,
    searcher: &Searcher,
    fields: &Fields,
) -> tantivy::Result<Option<DocAddress>> {
    let term = Term::from_field_u64(fields.doc, doc);
    let query = TermQuery::new(term, IndexRecordOption::Basic);
    let first = TopDocs::with_limit(1).order_by_score();
    let found = searcher.search(&query, &first)?;
    Ok(found.first().map(|(_, address)| *address))
}

fn text_of(stored: &TantivyDocument, field: Field) -> Option<&str> {
    stored.get_first(field)?.as_str()
}

/// Turns a panic into an error. The library checks little of its input, and panics on some damage.
fn unless_damaged<T>(path: &Path, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Error::Damaged {
            path: path.to_owned(),
            detail: "inconsistent files".to_owned(),
        })
    })
}
