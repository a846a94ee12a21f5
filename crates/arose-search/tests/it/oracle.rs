//! The expected results of a search, by brute force over all documents.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use arose::token::Tokenizer;
use arose_dedup::results::{Detail, documents};
use arose_search::{Collapse, Part, Query};

use crate::support::Page;

/// All documents of a run with their decisions.
pub(crate) struct Oracle {
    pages: Vec<Page>,
    details: Vec<Detail>,
    /// The words of title and text.
    titles: Vec<Vec<String>>,
    texts: Vec<Vec<String>>,
    /// The words of the URL.
    urls: Vec<Vec<String>>,
}

/// One expected result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expected {
    pub(crate) doc: u64,
    pub(crate) n_exact: u64,
    pub(crate) n_near: u64,
    pub(crate) n_versions: u64,
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    Tokenizer::default().for_each(text, |word| words.push(word.to_owned()));
    words
}

fn n_runs(words: &[String], phrase: &[String]) -> usize {
    words
        .windows(phrase.len())
        .filter(|window| *window == phrase)
        .count()
}

/// Shared shingles of eight tokens divided by the distinct ones of both texts.
fn jaccard(a: &[String], b: &[String]) -> f64 {
    use std::collections::BTreeSet;
    if a == b {
        return 1.0;
    }
    let [a, b] = [a, b].map(|words| words.windows(8).collect::<BTreeSet<_>>());
    a.intersection(&b).count() as f64 / a.union(&b).count().max(1) as f64
}

impl Oracle {
    pub(crate) fn new(out: &Path, pages: &[Page]) -> Self {
        let mut details = Vec::new();
        documents::for_each(&out.join("documents.parquet"), |_, detail| {
            details.push(detail);
            Ok::<_, arose_dedup::results::Error>(())
        })
        .unwrap();
        let title = |page: &Page| words(page.title.as_deref().unwrap_or_default());
        Self {
            titles: pages.iter().map(title).collect(),
            texts: pages.iter().map(|page| words(&page.text)).collect(),
            urls: pages.iter().map(|page| words(&page.url)).collect(),
            pages: pages.to_vec(),
            details,
        }
    }

    fn title(&self, doc: usize) -> &[String] {
        &self.titles[doc]
    }

    fn n_in_body(&self, doc: usize, phrase: &[String]) -> usize {
        n_runs(self.title(doc), phrase) + n_runs(&self.texts[doc], phrase)
    }

    pub(crate) fn matches(&self, doc: usize, query: &Query) -> bool {
        let page = &self.pages[doc];
        match query {
            Query::Words(Part::Text, phrase) => self.n_in_body(doc, phrase) > 0,
            Query::Words(Part::Title, phrase) => n_runs(self.title(doc), phrase) > 0,
            Query::Words(Part::Url, phrase) => n_runs(&self.urls[doc], phrase) > 0,
            Query::Site(site) => {
                let host = page
                    .url
                    .split("//")
                    .nth(1)
                    .unwrap()
                    .split('/')
                    .next()
                    .unwrap();
                host == site || host.ends_with(&format!(".{site}"))
            }
            Query::Prefix(part, prefix) => {
                let in_title = self.title(doc).iter();
                let mut words: Box<dyn Iterator<Item = &String>> = match part {
                    Part::Text => Box::new(in_title.chain(&self.texts[doc])),
                    Part::Title => Box::new(in_title),
                    Part::Url => Box::new(self.urls[doc].iter()),
                };
                words.any(|word| word.starts_with(prefix))
            }
            Query::Year(year) => page.time.is_some_and(|_| *year == 1970),
            Query::Language(language) => page.language.as_ref() == Some(language),
            Query::All(parts) => parts.iter().all(|part| self.matches(doc, part)),
            Query::Any(parts) => parts.iter().any(|part| self.matches(doc, part)),
            Query::Not(inner) => !self.matches(doc, inner),
        }
    }

    pub(crate) fn matching(&self, query: &Query) -> Vec<usize> {
        let docs = 0..self.pages.len();
        docs.filter(|&doc| self.matches(doc, query)).collect()
    }

    /// BM25 with k1 = 1.2 and b = 0.75 over title and text, and over the title again.
    pub(crate) fn score(&self, doc: usize, query: &Query) -> f64 {
        match query {
            Query::Words(Part::Text, phrase) => {
                let both = |doc: usize| [self.title(doc), &self.texts[doc]];
                let title = |doc: usize| [self.title(doc), &[]];
                self.bm25(doc, phrase, both) + self.bm25(doc, phrase, title)
            }
            Query::Words(Part::Title, phrase) => {
                self.bm25(doc, phrase, |doc| [self.title(doc), &[]])
            }
            Query::Words(Part::Url, phrase) => self.bm25(doc, phrase, |doc| [&self.urls[doc], &[]]),
            Query::All(parts) | Query::Any(parts) => {
                let parts = parts.iter();
                parts.map(|part| self.score(doc, part)).sum()
            }
            _ => 0.0,
        }
    }

    fn bm25<'a>(
        &'a self,
        doc: usize,
        phrase: &[String],
        text: impl Fn(usize) -> [&'a [String]; 2],
    ) -> f64 {
        let n_docs = self.pages.len() as f64;
        let length = |doc: usize| text(doc).iter().map(|words| words.len()).sum::<usize>() as f64;
        let frequency = |doc: usize, phrase: &[String]| {
            text(doc)
                .iter()
                .map(|words| n_runs(words, phrase))
                .sum::<usize>() as f64
        };
        let idf = |word: &String| {
            let word = std::slice::from_ref(word);
            let n = (0..self.pages.len())
                .filter(|&doc| frequency(doc, word) > 0.0)
                .count() as f64;
            (1.0 + (n_docs - n + 0.5) / (n + 0.5)).ln()
        };
        let mean = (0..self.pages.len()).map(length).sum::<f64>() / n_docs;
        let count = frequency(doc, phrase);
        let norm = 1.2 * (0.25 + 0.75 * length(doc) / mean);
        phrase.iter().map(idf).sum::<f64>() * 2.2 * count / (count + norm)
    }

    /// The document that a result with `doc` represents: the one it was dropped for, or itself.
    /// Nothing else is taken from the run, and [`check_star`](Self::check_star) compares the texts.
    fn kept(&self, doc: usize) -> u64 {
        self.details[doc].kept_doc.unwrap_or(doc as u64)
    }

    /// Number of these documents that the run kept.
    pub(crate) fn n_kept(&self, docs: std::ops::Range<usize>) -> usize {
        let details = self.details[docs].iter();
        details.filter(|detail| detail.kept).count()
    }

    /// Checks by brute force that every document is similar to the one that represents its result.
    pub(crate) fn check_star(&self, threshold: f64) {
        for doc in 0..self.pages.len() {
            let kept = self.kept(doc) as usize;
            assert!(
                self.details[kept].kept,
                "{doc} was dropped for {kept}, which is not kept"
            );
            let similarity = jaccard(&self.texts[doc], &self.texts[kept]);
            assert!(similarity >= threshold, "{doc} and {kept}: {similarity}");
        }
    }

    /// The results in order; greater keys are better.
    pub(crate) fn results<K: PartialOrd>(
        &self,
        query: &Query,
        collapse: Collapse,
        key: impl Fn(usize) -> K,
    ) -> Vec<Expected> {
        let mut clusters: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for doc in self.matching(query) {
            let cluster = match collapse {
                Collapse::Content => self.details[doc].group,
                Collapse::Same => self.kept(doc),
                Collapse::Nothing => doc as u64,
            };
            clusters.entry(cluster).or_default().push(doc);
        }
        let mut shown: Vec<(usize, Vec<usize>)> = clusters
            .into_iter()
            .map(|(head, docs)| {
                let rank = |&doc: &usize| (doc as u64 == head, key(doc), Reverse(doc));
                let best = docs
                    .iter()
                    .max_by(|a, b| rank(a).partial_cmp(&rank(b)).unwrap());
                (*best.unwrap(), docs)
            })
            .collect();
        shown.sort_by(|(a, _), (b, _)| {
            let ranks = [(key(*a), Reverse(*a)), (key(*b), Reverse(*b))];
            ranks[1].partial_cmp(&ranks[0]).unwrap()
        });
        let shown = shown.into_iter();
        shown
            .map(|(doc, docs)| {
                let head = self.details[doc].group;
                let is_version =
                    |doc: usize| collapse == Collapse::Content && self.kept(doc) != head;
                let n_others = docs.len() as u64 - 1;
                let [n_exact, n_versions] = match is_version(doc) {
                    true => [0, n_others],
                    false => {
                        let versions = docs.iter().filter(|&&doc| is_version(doc));
                        [self.n_exact(doc, &docs), versions.count() as u64]
                    }
                };
                Expected {
                    doc: doc as u64,
                    n_exact,
                    n_near: n_others - n_exact - n_versions,
                    n_versions,
                }
            })
            .collect()
    }

    /// Number of other documents among these that are exact duplicates of the kept one, if `shown`
    /// is.
    fn n_exact(&self, shown: usize, docs: &[usize]) -> u64 {
        let kept = &self.pages[self.kept(shown) as usize].text;
        let is_exact = |doc: usize| self.pages[doc].text == *kept;
        let others = docs.iter().filter(|&&doc| doc != shown && is_exact(doc));
        match is_exact(shown) {
            true => others.count() as u64,
            false => 0,
        }
    }

    pub(crate) fn time(&self, doc: usize) -> Option<i64> {
        self.pages[doc].time
    }
}
