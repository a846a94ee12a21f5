//! Counts of matches by site, language and year.
//!
//! This takes one more pass over the matches, without scores. Sites and languages are counted by
//! their number in a segment, so that names are looked up only for those that occur. Memory: 8
//! bytes per site and language of a segment.

use std::collections::BTreeMap;

use tantivy::Searcher;
use tantivy::columnar::StrColumn;
use tantivy::query::{EnableScoring, Query as Clause};

use crate::collapse::{GoOn, for_each_block};
use crate::columns::Columns;
use crate::compile::year_of;

/// Number of values listed per kind.
const MAX_VALUES: usize = 10;

/// Counts of matching documents by site, language and year, the most frequent first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facets {
    /// By site.
    pub sites: Vec<(String, u64)>,
    /// By language, without the region.
    pub languages: Vec<(String, u64)>,
    /// By year of fetching, UTC.
    pub years: Vec<(i32, u64)>,
}

/// Counts the documents that match a query; none if the search was stopped.
pub(crate) fn count(
    searcher: &Searcher,
    columns: &Columns,
    query: &dyn Clause,
    go_on: &GoOn,
) -> tantivy::Result<Option<Facets>> {
    let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
    let (mut sites, mut languages) = (BTreeMap::new(), BTreeMap::new());
    let mut years: BTreeMap<i32, u64> = BTreeMap::new();
    for (reader, segment) in searcher.segment_readers().iter().zip(&columns.segments) {
        let mut by_site = Counts::new(segment.sites.as_ref());
        let mut by_language = Counts::new(segment.languages.as_ref());
        let goes_on = for_each_block(&*weight, reader, go_on, |docs| {
            for &doc in docs {
                by_site.add(doc);
                by_language.add(doc);
                if let Some(time) = segment.times.first(doc) {
                    *years.entry(year_of(time)).or_default() += 1;
                }
            }
        })?;
        if !goes_on {
            return Ok(None);
        }
        by_site.finish(&mut sites)?;
        by_language.finish(&mut languages)?;
    }
    Ok(Some(Facets {
        sites: most_frequent(sites),
        languages: most_frequent(languages),
        years: most_frequent(years),
    }))
}

/// Documents by their value in a column of a segment.
struct Counts<'a> {
    column: Option<&'a StrColumn>,
    by_ord: Vec<u64>,
}

impl<'a> Counts<'a> {
    fn new(column: Option<&'a StrColumn>) -> Self {
        let n_values = column.map_or(0, |column| column.num_terms());
        let by_ord = vec![0; n_values];
        Self { column, by_ord }
    }

    #[inline]
    fn add(&mut self, doc: u32) {
        let ord = self.column.and_then(|column| column.ords().first(doc));
        if let Some(n) = ord.and_then(|ord| self.by_ord.get_mut(ord as usize)) {
            *n += 1;
        }
    }

    fn finish(self, totals: &mut BTreeMap<String, u64>) -> tantivy::Result<()> {
        let Some(column) = self.column else {
            return Ok(());
        };
        for (ord, n) in (0..).zip(self.by_ord).filter(|(_, n)| *n > 0) {
            let mut name = String::new();
            if column.ord_to_str(ord, &mut name)? {
                *totals.entry(name).or_default() += n;
            }
        }
        Ok(())
    }
}

fn most_frequent<T: Ord>(counts: BTreeMap<T, u64>) -> Vec<(T, u64)> {
    let mut counts: Vec<(T, u64)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(MAX_VALUES);
    counts
}
