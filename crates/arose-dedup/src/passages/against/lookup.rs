//! Looks up every window of the corpus in a reference in memory.

use std::path::Path;

use arose::passage::{Hit, Joiner, Reference};
use rayon::prelude::*;

use super::matches::{COMMON, MatchSorters, Matches, Span, linked};
use crate::column::{Scan, Writer};
use crate::passages::anchors::Search;
use crate::passages::text::Texts;
use crate::{Error, Progress};

/// Windows that were found, by document, until it is known which of them are common.
const HITS: &str = "hits";

pub(crate) fn run(
    corpus: &Texts,
    reference: &Reference,
    search: &Search,
    folder: &Path,
    out: &mut MatchSorters,
    progress: &Progress,
) -> Result<Matches, Error> {
    let path = folder.join(HITS);
    let mut hits = Writer::<[u32; 3]>::create(&path)?;
    let mut counts = DocumentCounts::new(reference.n_distinct());
    corpus.batches(search.batch_tokens(), progress, |batch| {
        let found = batch.par_iter().map(|(_, tokens)| reference.hits(tokens));
        let found: Vec<Vec<Hit>> = found.collect();
        for ((doc, _), own) in batch.iter().zip(found) {
            for hit in own {
                counts.add(hit.window, *doc);
                hits.push(&[*doc, hit.start, hit.window])?;
            }
        }
        Ok(())
    })?;
    hits.finish()?;
    let mut found = Matches {
        n_distinct: Some(reference.n_distinct() as u64),
        method: "memory".to_owned(),
        ..Matches::default()
    };
    let n = search.n_tokens as u32;
    for window in 0..reference.n_distinct() as u32 {
        let n_docs = counts.n_docs[window as usize];
        if n_docs == 0 {
            continue;
        }
        let places = reference.places(window);
        let flags = out.flags(n_docs.into(), places.len());
        found.n_found += 1;
        found.n_common += u64::from(flags & COMMON != 0);
        for &[doc, start] in places {
            let end = start + n;
            out.push_item(Span {
                doc,
                start,
                end,
                flags,
            })?;
        }
    }
    link(&path, reference, &counts, n, out)?;
    std::fs::remove_file(&path).map_err(Error::io("remove", &path))?;
    Ok(found)
}

/// Links the windows of documents with those of items.
fn link(
    hits: &Path,
    reference: &Reference,
    counts: &DocumentCounts,
    n: u32,
    out: &mut MatchSorters,
) -> Result<(), Error> {
    let mut hits = Scan::<[u32; 3]>::open(hits)?;
    let mut joiner = Joiner::new(n);
    let mut runs = Vec::new();
    let mut last = None;
    loop {
        let hit = hits.next()?;
        let doc = hit.map(|[doc, ..]| doc);
        if doc != last {
            joiner.finish(|run| runs.push(run));
        }
        for run in runs.drain(..) {
            let doc = last.expect("runs belong to the document before");
            let length = run.item_tokens.end - run.item_tokens.start;
            out.link([run.item, run.item_tokens.start], [doc, run.start], length)?;
        }
        last = doc;
        let Some([doc, start, window]) = hit else {
            return Ok(());
        };
        let places = reference.places(window);
        let flags = out.flags(counts.n_docs[window as usize].into(), places.len());
        let end = start + n;
        out.push_doc(Span {
            doc,
            start,
            end,
            flags,
        })?;
        if flags & COMMON == 0 {
            joiner.push(start, linked(places), |run| runs.push(run));
        }
    }
}

/// The number of documents that contain each distinct window.
struct DocumentCounts {
    n_docs: Vec<u32>,
    /// The last document that contains it, plus one.
    last: Vec<u32>,
}

impl DocumentCounts {
    fn new(n_distinct: usize) -> Self {
        Self {
            n_docs: vec![0; n_distinct],
            last: vec![0; n_distinct],
        }
    }

    fn add(&mut self, window: u32, doc: u32) {
        let last = &mut self.last[window as usize];
        if *last != doc + 1 {
            *last = doc + 1;
            self.n_docs[window as usize] += 1;
        }
    }
}
