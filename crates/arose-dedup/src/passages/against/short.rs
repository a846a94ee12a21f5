//! Items shorter than a window, which match completely or not at all.

use std::path::Path;

use arose::passage::{MIN_WHOLE, WholeItems};
use rayon::prelude::*;

use super::matches::{COMMON, MatchSorters, Sides, Span};
use super::sorted::{ahead, next_group};
use crate::column::{Column, Scan};
use crate::passages::anchors::Search;
use crate::passages::text::{DOCS, TOKENS, TextRecord};
use crate::sorter::Sorter;
use crate::{Error, Progress};

/// Maximum bytes of memory per token of a short item.
const BYTES_PER_TOKEN: u64 = 64;

/// Finds the short items. Loads as many at a time as fit into memory and scans the corpus for each
/// batch.
pub(crate) fn run(
    sides: &Sides<'_>,
    search: &Search,
    memory: u64,
    folder: &Path,
    out: &mut MatchSorters,
    progress: &Progress,
) -> Result<(), Error> {
    let items = Column::<TextRecord>::open(&sides.reference.path(DOCS), 0)?;
    let tokens = Column::<u64>::open(&sides.reference.path(TOKENS), 0)?;
    let n_items = sides.reference.docs()?.left() as u32;
    let mut places = Sorter::<[u32; 4]>::new(&folder.join("sort_short"), search.allowance);
    let (mut lot, mut n_tokens) = (Vec::new(), 0);
    for item in 0..n_items {
        let record = items.get(item)?;
        if (MIN_WHOLE..search.n_tokens).contains(&(record.n_tokens as usize)) {
            let mut own = vec![0; record.n_tokens as usize];
            tokens.read_into(record.tokens_at, &mut own)?;
            n_tokens += u64::from(record.n_tokens);
            lot.push((item, own));
        }
        let is_last = item + 1 == n_items;
        if !lot.is_empty() && (is_last || n_tokens * BYTES_PER_TOKEN > memory) {
            find(sides, &lot, search, &mut places, progress)?;
            (lot, n_tokens) = (Vec::new(), 0);
        }
    }
    take(places, folder, out)
}

/// Searches the corpus for a batch of items.
fn find(
    sides: &Sides<'_>,
    lot: &[(u32, Vec<u64>)],
    search: &Search,
    places: &mut Sorter<[u32; 4]>,
    progress: &Progress,
) -> Result<(), Error> {
    let whole = WholeItems::new(lot.iter().map(|(item, tokens)| (*item, &tokens[..])));
    let length = |item: u32| {
        let place = lot.partition_point(|(other, _)| *other < item);
        lot[place].1.len() as u32
    };
    sides
        .corpus
        .batches(search.batch_tokens(), progress, |batch| {
            let found = batch.par_iter().map(|(_, tokens)| whole.find(tokens));
            let found: Vec<Vec<[u32; 2]>> = found.collect();
            for ((doc, _), own) in batch.iter().zip(found) {
                for [item, start] in own {
                    places.push([item, *doc, start, length(item)])?;
                }
            }
            Ok(())
        })
}

/// Passes on the places of each item.
fn take(places: Sorter<[u32; 4]>, folder: &Path, out: &mut MatchSorters) -> Result<(), Error> {
    let path = folder.join("short");
    places.write(&path)?;
    let mut first = ahead::<[u32; 4]>(&path)?;
    let mut second = Scan::<[u32; 4]>::open(&path)?;
    loop {
        let (mut n_docs, mut last) = (0, None);
        let n = next_group(
            &mut first,
            |place| place[0],
            |place| {
                n_docs += u64::from(last.replace(place[1]) != Some(place[1]));
            },
        )?;
        let flags = out.flags(n_docs, 1);
        for number in 0..n {
            let [item, doc, start, n] = second.next()?.expect("both looks are at one file");
            let end = start + n;
            let span = |doc, start, end| Span {
                doc,
                start,
                end,
                flags,
            };
            if number == 0 {
                out.push_item(span(item, 0, n))?;
            }
            out.push_doc(span(doc, start, end))?;
            if flags & COMMON == 0 {
                out.link([item, 0], [doc, start], n)?;
            }
        }
        if n == 0 {
            return std::fs::remove_file(&path).map_err(Error::io("remove", &path));
        }
    }
}
