//! Full-text search over documents, with near duplicates collapsed into one result.
//!
//! A [`SearchDir`] is the output of `arose dedup`, or a directory of web archives. [`update()`]
//! builds or updates its index. [`Index::search`] runs a [`Query`] and returns exact counts and the
//! best [`Hit`]s. Each hit stands for all matching documents of its cluster. A cluster is a kept
//! document and the documents dropped for it, or a page of a crawl and the pages that the crawler
//! recorded as its duplicates.
//!
//! ```no_run
//! use arose_search::{Config, SearchDir, Index, Progress, Query, Request, update};
//! use std::path::Path;
//!
//! let folder = SearchDir::open(Path::new("out"))?;
//! update(&folder, &Config::default(), &Progress::default())?;
//! let index = Index::open(&folder)?;
//! let query: Query = "\"a rose\" -thorn site:example.org".parse()?;
//! let results = index.search(&query, &Request::default())?;
//! println!("{} documents in {} results", results.n_documents, results.n_results);
//! for hit in results.hits {
//!     println!("{:?} and {} near duplicates", hit.url, hit.n_near);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Index::quotations_while`] finds the documents that share passages with a text.
//!
//! The index itself is that of tantivy: an inverted index with positions in immutable segments,
//! BM25, and columns. This crate adds the selection of documents, their words (those of
//! [`arose::token`]), the query language ([`Query`]), and the definition of one result
//! ([`Collapse`]).
#![forbid(unsafe_code)]

mod collapse;
mod columns;
mod compile;
mod cost;
mod current;
mod directory;
mod error;
mod facets;
mod index;
mod pages;
mod per_site;
mod phrase;
mod query;
mod quote;
mod results;
mod rows;
mod schema;
mod search_dir;
mod snippet;
mod texts;
mod update;
pub mod words;

pub use arose_dedup::Versions;
pub use collapse::{Collapse, GoOn, Order};
pub use cost::Cost;
pub use error::Error;
pub use facets::Facets;
pub use index::Index;
pub use query::{Part, Query, QueryError};
pub use quote::{Quotation, Quotations, Quoting};
pub use results::{Hit, Indexed, MAX_RESULTS, Request, Results, Scope};
pub use search_dir::{Kind, SearchDir, State};
pub use snippet::Fragment;
pub use update::{Config, Progress, Updated, remove, update};
