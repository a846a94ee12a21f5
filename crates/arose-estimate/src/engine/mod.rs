//! Search engines: systems that return URLs for queries.
//!
//! *Question.* An estimate needs three things from a search engine: the URLs of pages with some
//! words, their number, and the text of a page. Search engines differ in how they are queried and
//! in how they fail. How can one method run on all of them?
//!
//! *Idea.* One small trait, [`Engine`]. A [`Question`] states which words must be on the page, all
//! or any of them. Each search engine writes it in its own syntax. The response is a
//! [`ResultList`], or the reason why there is none ([`Reply::Missing`]): a timeout is not "no
//! results". There are three kinds: [`Local`] queries a local search index, [`Http`] any server
//! described by a few lines of TOML ([`Description`]), [`Simulated`] a synthetic search engine
//! whose content is known.
//!
//! Methods do not query search engines directly, but through a [`Panel`]. It sends no query twice
//! and keeps within a budget. It writes every query and response to a [`Log`], and reads them from
//! the log when a study is repeated or replayed. It also records the behaviour of each search
//! engine ([`Health`]).

mod address;
mod answer;
mod description;
mod health;
mod http;
mod local;
pub(crate) mod log;
mod pages;
mod panel;
mod requests;
mod select;
mod simulated;

pub use answer::page_text;
pub use description::{Description, Format, PRESETS};
pub use health::{Controls, Health};
pub use http::Http;
pub use local::Local;
pub use log::{Header, Log, Seat};
pub use pages::Pages;
pub use panel::{Panel, Progress};
pub use requests::Requests;
pub use simulated::{Fault, Simulated, World};

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::vocabulary::{Vocabulary, of_local};
use arose_search::{Collapse, Config, Index, Progress as Indexing, SearchDir, update};

use crate::Error;

/// Opens the search engine of a description, and its words if they are available.
///
/// A directory is indexed first, if it is new or has changed. Result pages are fetched through
/// `pages`.
///
/// # Errors
///
/// If the description is incomplete, or the directory cannot be searched.
pub fn open(
    description: &Description,
    pages: &Rc<Pages>,
) -> Result<(Box<dyn Engine>, Vocabulary), Error> {
    let Some(path) = &description.directory else {
        return Ok((Box::new(Http::new(description, pages)?), Vocabulary::new()));
    };
    let folder = SearchDir::open(path)?;
    update(&folder, &Config::default(), &Indexing::default())?;
    let limit = description.limit.unwrap_or(100);
    let local = Local::new(Index::open(&folder)?, Collapse::Nothing, limit);
    let words = of_local(&local)?;
    Ok((Box::new(local), words))
}

/// A system that returns URLs for queries.
pub trait Engine {
    /// Maximum number of results that it shows.
    fn limit(&self) -> usize;

    /// The first results of a query, at most `limit`. Each request is taken from `requests`.
    ///
    /// # Errors
    ///
    /// If no request is left, or the search engine can no longer respond, e.g. because its files
    /// are damaged. A temporary failure, such as a timeout, is [`Reply::Missing`].
    fn search(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<Reply<ResultList>, Error>;

    /// The text of a page that was among its results.
    ///
    /// # Errors
    ///
    /// Like [`Self::search`].
    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error>;

    /// Whether it supports lookup by URL.
    fn has_lookup(&self) -> bool;

    /// Whether it has the page at a URL; called only if it [has a lookup](Self::has_lookup).
    ///
    /// # Errors
    ///
    /// Like [`Self::search`].
    fn contains(&mut self, address: &str, requests: &Requests) -> Result<Reply<bool>, Error>;
}

/// The words that a page must contain. A part of several words is a phrase.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Question {
    /// Whether all parts must match, or any.
    pub joining: Joining,
    /// Words and phrases.
    pub parts: Vec<String>,
}

/// How the parts of a query are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Joining {
    /// Pages with every part.
    All,
    /// Pages with at least one part.
    Any,
}

impl Question {
    /// Pages with all of these words and phrases.
    #[must_use]
    pub fn all(parts: &[impl AsRef<str>]) -> Self {
        Self::new(Joining::All, parts)
    }

    /// Pages with any of these words and phrases.
    #[must_use]
    pub fn any(parts: &[impl AsRef<str>]) -> Self {
        Self::new(Joining::Any, parts)
    }

    fn new(joining: Joining, parts: &[impl AsRef<str>]) -> Self {
        let parts = parts.iter().map(|part| part.as_ref().to_owned());
        Self {
            joining,
            parts: parts.collect(),
        }
    }

    /// A query as people type it: words, and phrases in quotation marks. `None` if it has no word.
    ///
    /// ```
    /// use arose_estimate::engine::Question;
    /// let question = Question::typed("\"Red rose\" thorn").unwrap();
    /// assert_eq!(question, Question::all(&["red rose", "thorn"]));
    /// assert_eq!(Question::typed(" \"\" ?"), None);
    /// ```
    #[must_use]
    pub fn typed(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        for (place, piece) in text.split('"').enumerate() {
            let words = arose_search::words::words(piece);
            match place % 2 {
                0 => parts.extend(words),
                _ if words.is_empty() => {}
                _ => parts.push(words.join(" ")),
            }
        }
        (!parts.is_empty()).then_some(Self {
            joining: Joining::All,
            parts,
        })
    }
}

/// A response, or the reason why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply<T> {
    /// The response.
    Answer(T),
    /// There is no response, for this reason; this says nothing about the pages of the search
    /// engine.
    Missing(String),
}

/// The results of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResultList {
    /// The number of matching pages, as claimed by the search engine; none if it claims no number.
    pub claimed: Option<u64>,
    /// The URLs shown, best first, as returned by the search engine.
    pub addresses: Vec<String>,
}

/// The text of a page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// Its final URL, after redirects.
    pub address: String,
    /// Its text.
    pub text: String,
}
