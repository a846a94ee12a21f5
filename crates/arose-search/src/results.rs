//! Search requests and results.

use arose_corpus::Position;
use arose_dedup::report::html::counted;

use crate::collapse::{Collapse, Order};
use crate::snippet::Fragment;

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
    /// Only documents of this group of versions.
    pub group: Option<u64>,
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
            group: None,
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
    /// Those requested, best first.
    pub hits: Vec<Hit>,
    /// The offset at which the next results begin; none if there are no more.
    pub next: Option<usize>,
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its place among all results, from 0.
    pub rank: usize,
    /// The ordinal of the document: what [`Index::document`](crate::Index::document) takes.
    pub doc: u64,
    /// The ordinal of the kept document of its cluster.
    pub cluster: u64,
    /// The ordinal of the kept document that its versions are grouped under.
    pub group: u64,
    /// How many other documents of the cluster match the query and have the same text.
    pub n_exact: u64,
    /// How many other documents of the cluster match the query as well.
    pub n_near: u64,
    /// How many documents match the query that are other versions of its content, if versions are
    /// collapsed.
    pub n_versions: u64,
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
    /// Whether other results of its site were omitted after this one.
    pub more_from_site: bool,
    /// A few words around what was found.
    pub snippet: Vec<Fragment>,
}

impl Hit {
    /// The documents that it stands for: "2 exact duplicates, 1 near duplicate and 1 version"; none
    /// if it stands for itself.
    #[must_use]
    pub fn duplicates(&self) -> Option<String> {
        let parts = [
            (self.n_exact, "exact duplicate", "exact duplicates"),
            (self.n_near, "near duplicate", "near duplicates"),
            (self.n_versions, "version", "versions"),
        ];
        let parts = parts.into_iter().filter(|(n, ..)| *n > 0);
        let parts: Vec<String> = parts.map(|(n, one, many)| counted(n, one, many)).collect();
        let (last, others) = parts.split_last()?;
        Some(match others.is_empty() {
            true => last.clone(),
            false => format!("{} and {last}", others.join(", ")),
        })
    }
}

/// A document as it is in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct Indexed {
    /// The ordinal of the kept document of its cluster.
    pub cluster: u64,
    /// The ordinal of the kept document that its versions are grouped under.
    pub group: u64,
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
    /// Whether the archive has its text as that of another page, of which it is an exact duplicate.
    pub is_revisit: bool,
    /// The file that has its text, as the run or the directory names it.
    pub source: String,
    /// Where in that file.
    pub position: Option<Position>,
}
