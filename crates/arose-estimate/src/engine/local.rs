//! A local search index as a search engine: the output of `arose dedup`, or a crawl.

use std::collections::HashMap;

use super::{Engine, Joining, Page, Question, Reply, Requests, ResultList, address};
use arose_search::{Collapse, Index, Part, Query, words};

use crate::Error;

/// Number of lookup results that are compared. The URL itself contains no words other than those
/// searched for, so it ranks first.
const N_LOOKED_UP: usize = 100;

/// An index queried like any search engine.
pub struct Local {
    index: Index,
    collapse: Collapse,
    limit: usize,
    /// The documents of the URLs it has returned.
    documents: HashMap<String, u64>,
}

impl Local {
    /// A search engine that shows at most `limit` results, with near duplicates collapsed or not.
    #[must_use]
    pub fn new(index: Index, collapse: Collapse, limit: usize) -> Self {
        Self {
            index,
            collapse,
            limit,
            documents: HashMap::new(),
        }
    }

    /// The index that is queried.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }
}

impl Engine for Local {
    fn limit(&self) -> usize {
        self.limit
    }

    fn search(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<Reply<ResultList>, Error> {
        requests.take()?;
        let parts = question.parts.iter().map(|part| Query::phrase(part));
        let query = match question.joining {
            Joining::All if question.parts.is_empty() => Query::Any(Vec::new()),
            Joining::All => Query::All(parts.collect()),
            Joining::Any => Query::Any(parts.collect()),
        };
        let (claimed, located) =
            self.index
                .addresses(&query, limit.min(self.limit), self.collapse)?;
        let mut addresses = Vec::with_capacity(located.len());
        for (doc, address) in located {
            self.documents.insert(address.clone(), doc);
            addresses.push(address);
        }
        Ok(Reply::Answer(ResultList {
            claimed: Some(claimed),
            addresses,
        }))
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        requests.take()?;
        let text = match self.documents.get(address) {
            Some(&doc) => self.index.text(doc)?,
            None => None,
        };
        Ok(match text {
            Some(text) => Reply::Answer(Page {
                address: address.to_owned(),
                text,
            }),
            None => Reply::Missing("the index has no text of this page".to_owned()),
        })
    }

    fn has_lookup(&self) -> bool {
        true
    }

    fn contains(&mut self, address: &str, requests: &Requests) -> Result<Reply<bool>, Error> {
        requests.take()?;
        let wanted = address::normal(address);
        let Some((_, bare)) = wanted.split_once("://") else {
            return Ok(Reply::Missing("not a URL".to_owned()));
        };
        let query = Query::Words(Part::Url, words::words(bare));
        let (_, located) = self
            .index
            .addresses(&query, N_LOOKED_UP, Collapse::Nothing)?;
        let mut located = located.iter();
        let holds = located.any(|(_, other)| address::normal(other) == wanted);
        Ok(Reply::Answer(holds))
    }
}
