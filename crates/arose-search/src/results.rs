//! Search requests and results.

use arose_corpus::Position;
use arose_dedup::Versions;
use arose_dedup::report::html::counted;

use crate::collapse::{Collapse, Order};
use crate::snippet::Fragment;

/// Maximum number of results that can be listed.
pub const MAX_RESULTS: usize = 100_000;

/// Which documents to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scope {
    /// All documents.
    #[default]
    All,
    /// Documents that the run kept.
    Kept,
}

/// Which results to return, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Number of results to skip.
    pub offset: usize,
    /// Number of results to return.
    pub limit: usize,
    /// How they are ranked.
    pub order: Order,
    /// What counts as one result.
    pub collapse: Collapse,
    /// Search only documents of this cluster.
    pub cluster: Option<u64>,
    /// Search only documents of this group of versions.
    pub group: Option<u64>,
    /// Which documents to search.
    pub scope: Scope,
    /// Which captures of a page to search, if there are several of its URL.
    pub versions: Versions,
    /// Maximum number of results per site among those returned; 0 for any number. It does not apply
    /// if the query names a site or all results are from one site.
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
            versions: Versions::default(),
            per_site: 0,
        }
    }
}

/// The results of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// The exact number of documents that match.
    pub n_documents: u64,
    /// The exact number of results; fewer than documents if near duplicates are collapsed.
    pub n_results: u64,
    /// The requested results, best first.
    pub hits: Vec<Hit>,
    /// The offset of the next results; none if there are no more.
    pub next: Option<usize>,
}

/// One result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Its position among all results, from 0.
    pub rank: usize,
    /// The ordinal of the document, as used by [`Index::document`](crate::Index::document).
    pub doc: u64,
    /// The ordinal of the kept document of its cluster.
    pub cluster: u64,
    /// The ordinal of the kept document that its versions are grouped under.
    pub group: u64,
    /// Number of other matching documents of the cluster with the same text.
    pub n_exact: u64,
    /// Number of other matching documents of the cluster.
    pub n_near: u64,
    /// Number of matching documents that are other versions of its content, if versions are
    /// collapsed.
    pub n_versions: u64,
    /// Whether the run kept it.
    pub kept: bool,
    /// Its score (BM25); none if results are ranked by time.
    pub score: Option<f32>,
    /// Its ID from the input, or else its file and position.
    pub id: String,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its language, as the document states it.
    pub language: Option<String>,
    /// When it was fetched, in seconds since 1970.
    pub time: Option<i64>,
    /// Its site.
    pub site: Option<String>,
    /// Whether other results of its site were omitted after this one.
    pub more_from_site: bool,
    /// A few words around the matches.
    pub snippet: Vec<Fragment>,
}

impl Hit {
    /// The documents that it stands for: "2 exact duplicates, 1 near duplicate and 1 version"; none
    /// if it stands only for itself.
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

/// A document in the index.
#[derive(Debug, Clone, PartialEq)]
pub struct Indexed {
    /// The ordinal of the kept document of its cluster.
    pub cluster: u64,
    /// The ordinal of the kept document that its versions are grouped under.
    pub group: u64,
    /// Whether the run kept it.
    pub kept: bool,
    /// Its ID from the input, or else its file and position.
    pub id: String,
    /// Its URL.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its language, as the document states it.
    pub language: Option<String>,
    /// When it was fetched, in seconds since 1970.
    pub time: Option<i64>,
    /// Its text; none if its source could not be read.
    pub text: Option<String>,
    /// Whether the archive stores its text only with another page, of which it is an exact
    /// duplicate.
    pub is_revisit: bool,
    /// The path of the file with its text, as the run or the directory names it.
    pub source: String,
    /// Its position in that file.
    pub position: Option<Position>,
}
