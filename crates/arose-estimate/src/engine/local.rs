//! An index of this crate as an engine: the output of `arose dedup`, or a crawl.

use std::collections::HashMap;

use super::{Engine, Found, Joining, Page, Question, Reply, Requests};
use arose_search::{Collapse, Index, Query};

use crate::Error;

/// An index asked like any engine.
pub struct Local {
    index: Index,
    collapse: Collapse,
    limit: usize,
    /// The documents behind the addresses it has given.
    documents: HashMap<String, u64>,
}

impl Local {
    /// An engine that shows at most `limit` results, near duplicates collapsed or not.
    #[must_use]
    pub fn new(index: Index, collapse: Collapse, limit: usize) -> Self {
        Self {
            index,
            collapse,
            limit,
            documents: HashMap::new(),
        }
    }

    /// The index that is asked.
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
    ) -> Result<Reply<Found>, Error> {
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
        Ok(Reply::Answer(Found {
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
            None => Reply::Missing("the index holds no text of this page".to_owned()),
        })
    }
}
