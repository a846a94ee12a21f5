//! Rows of `repeats.parquet`: the word pairs that sites repeat, under the policy `content`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arose::site::SiteKind;
use arose::token::Tokenizer;
use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use serde_json::Value;

use super::table::scan;
use super::{Error, Summary};
use crate::column::Scan;
use crate::config::SiteCounts;
use crate::report::diff::Pieces;
use crate::stage::counts::Framed;
use crate::stage::urls::site_digest;
use crate::stage::weigher::{Weigher, key, salt};
use crate::table::Table;

/// The name of the file in the output directory.
pub(crate) const REPEATS: &str = "repeats.parquet";

/// Rows written at a time.
const BATCH_ROWS: usize = 1 << 16;

/// Writes the counts of a run, which are in order of their keys, as a table.
pub(crate) fn write(counts: &Path, path: &Path) -> Result<(), crate::Error> {
    let mut table = Table::create(path, schema())?;
    let mut counts = Scan::<Framed>::open(counts)?;
    while counts.left() > 0 {
        let mut some = Vec::new();
        while let Some(framed) = counts.next()? {
            some.push(framed);
            if some.len() == BATCH_ROWS {
                break;
            }
        }
        table.write(columns(&some))?;
    }
    table.close()
}

pub(crate) fn schema() -> Schema {
    Schema::new(vec![
        Field::new("key", DataType::UInt64, false),
        Field::new("other_pages", DataType::UInt32, false),
    ])
}

/// Returns the columns of rows for these word pairs.
pub(crate) fn columns(framed: &[Framed]) -> Vec<ArrayRef> {
    let keys = framed.iter().map(|framed| framed.key);
    let others = framed.iter().map(|framed| framed.n_others as u32);
    vec![
        Arc::new(UInt64Array::from_iter_values(keys)),
        Arc::new(UInt32Array::from_iter_values(others)),
    ]
}

/// The text of chosen documents of a run that their sites repeat.
#[derive(Debug, Clone)]
pub struct Repeated {
    site: SiteKind,
    site_counts: SiteCounts,
    tokenizer: Tokenizer,
    counts: HashMap<u64, u64>,
}

impl Repeated {
    /// Looks up the word pairs of these documents, given by URL and text. Returns none if the
    /// policy of the run does not count repeated text. Images are not part of the texts, so a word
    /// pair with an image is not found. Takes one pass over the table.
    ///
    /// # Errors
    ///
    /// If the table is damaged.
    pub fn read<'a>(
        out: &Path,
        summary: &Summary,
        documents: impl Iterator<Item = (Option<&'a str>, &'a str)>,
    ) -> Result<Option<Self>, Error> {
        let path = out.join(REPEATS);
        if !path.exists() {
            return Ok(None);
        }
        let setting = |name| summary.settings.get(name).and_then(Value::as_str);
        let mut repeated = Self {
            site: match setting("site") {
                Some("henzinger") => SiteKind::Henzinger,
                _ => SiteKind::Registrable,
            },
            site_counts: match setting("site_counts") {
                Some("sampled") => SiteCounts::Sampled,
                _ => SiteCounts::Exact,
            },
            tokenizer: Tokenizer {
                case: summary.case(),
            },
            counts: HashMap::new(),
        };
        for (url, text) in documents {
            let salt = salt(site_digest(url, repeated.site));
            let shingles = Pieces::new(text, repeated.tokenizer).word_pairs();
            let keys = shingles.iter().map(|&shingle| (key(shingle, salt), 0));
            repeated.counts.extend(keys);
        }
        scan(&path, &["key", "other_pages"], |batch| {
            let (keys, others) = (batch.u64s("key")?, batch.u32s("other_pages")?);
            for (key, &n_others) in keys.values().iter().zip(others.values()) {
                if let Some(count) = repeated.counts.get_mut(key) {
                    *count = n_others.into();
                }
            }
            Ok::<(), Error>(())
        })?;
        Ok(Some(repeated))
    }

    /// Returns the weight of each word pair of a document that was looked up.
    pub(crate) fn weights(&self, url: Option<&str>, shingles: &[u64]) -> Vec<f64> {
        let salt = salt(site_digest(url, self.site));
        let mut weights = Vec::new();
        Weigher::of(self.site_counts).weigh(shingles, &mut weights, |shingle| {
            let n_others = self.counts.get(&key(shingle, salt));
            n_others.copied().unwrap_or(0)
        });
        weights
    }
}
