//! Rows of `documents.parquet`.

use std::collections::BTreeMap;
use std::path::Path;

use arose::site::{SiteKind, site};
use arose_corpus::Position;
use arrow_array::{Array, BooleanArray, Float64Array, StringArray, UInt32Array, UInt64Array};

use super::Error;
use super::table::{Batch, scan, select};

/// Names longer than any valid host are truncated, so that tables of them have a bounded size.
const MAX_NAME_BYTES: usize = 255;

const COLUMNS: [&str; 12] = [
    "doc",
    "id",
    "url",
    "source",
    "position",
    "digest",
    "n_tokens",
    "kept",
    "kept_doc",
    "rule",
    "similarity",
    "group",
];

/// A row of the table of documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    /// Its ID in the input, or else its file and position.
    pub id: String,
    /// Its URL.
    pub url: Option<String>,
    /// The file from which it was read.
    pub source: String,
    /// Its position in that file.
    pub position: Option<Position>,
    /// The digest of its tokens, in hexadecimal.
    pub digest: String,
    /// Number of tokens.
    pub n_tokens: u32,
    /// The kept document of its cluster: the one for which it was dropped, or itself.
    pub cluster: u64,
    /// The kept document of its group of versions; that of its cluster if it has no versions.
    pub group: u64,
    /// Whether it is kept.
    pub kept: bool,
    /// The document for which it was dropped.
    pub kept_doc: Option<u64>,
    /// The rule by which it was dropped.
    pub rule: Option<String>,
    /// Its similarity to the document for which it was dropped.
    pub similarity: Option<f64>,
}

/// Returns the rows of these documents, which must be ascending, of the table at `path`.
///
/// # Errors
///
/// If the table cannot be read.
pub fn details(path: &Path, docs: &[u64]) -> Result<BTreeMap<u64, Detail>, Error> {
    let mut found = BTreeMap::new();
    select(path, &COLUMNS, docs, |batch| {
        let rows = Rows::of(batch)?;
        found.extend((0..batch.n_rows()).map(|row| rows.detail(row)));
        Ok(())
    })?;
    Ok(found)
}

/// Calls `each` with every row in order.
///
/// # Errors
///
/// If the table cannot be read, or `each` returns an error.
pub fn for_each<E: From<Error>>(
    path: &Path,
    mut each: impl FnMut(u64, Detail) -> Result<(), E>,
) -> Result<(), E> {
    scan(path, &COLUMNS, |batch| {
        let rows = Rows::of(batch)?;
        (0..batch.n_rows()).try_for_each(|row| {
            let (doc, detail) = rows.detail(row);
            each(doc, detail)
        })
    })
}

/// Calls `each` with the source of every document in order.
///
/// # Errors
///
/// If the table cannot be read.
pub fn for_each_source(path: &Path, mut each: impl FnMut(&str)) -> Result<(), Error> {
    scan(path, &["source"], |batch| {
        let sources = batch.strings("source")?;
        (0..batch.n_rows()).for_each(|row| each(sources.value(row)));
        Ok(())
    })
}

/// Calls `each` with the URL of every document in order.
///
/// # Errors
///
/// If the table cannot be read.
pub fn for_each_url(path: &Path, mut each: impl FnMut(Option<&str>)) -> Result<(), Error> {
    scan(path, &["url"], |batch| {
        let urls = batch.strings("url")?;
        (0..batch.n_rows()).for_each(|row| each(text(urls, row)));
        Ok(())
    })
}

/// Calls `each` with ordinal and cluster of every document in order. A cluster is a kept document
/// and the documents dropped for it. It is identified by the ordinal of the kept document.
///
/// # Errors
///
/// If the table cannot be read.
pub fn for_each_cluster(path: &Path, mut each: impl FnMut(u64, u64)) -> Result<(), Error> {
    scan(path, &["doc", "kept_doc"], |batch| {
        let (docs, kept_docs) = (batch.u64s("doc")?, batch.u64s("kept_doc")?);
        for row in 0..batch.n_rows() {
            let doc = docs.value(row);
            let is_dropped = kept_docs.is_valid(row);
            each(
                doc,
                if is_dropped {
                    kept_docs.value(row)
                } else {
                    doc
                },
            );
        }
        Ok(())
    })
}

/// The columns of a batch.
struct Rows<'a> {
    docs: &'a UInt64Array,
    ids: &'a StringArray,
    urls: &'a StringArray,
    sources: &'a StringArray,
    positions: &'a StringArray,
    digests: &'a StringArray,
    n_tokens: &'a UInt32Array,
    kept: &'a BooleanArray,
    kept_docs: &'a UInt64Array,
    rules: &'a StringArray,
    similarities: &'a Float64Array,
    /// Runs of earlier versions have no groups.
    groups: Option<&'a UInt64Array>,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a Batch<'_>) -> Result<Self, Error> {
        Ok(Self {
            docs: batch.u64s("doc")?,
            ids: batch.strings("id")?,
            urls: batch.strings("url")?,
            sources: batch.strings("source")?,
            positions: batch.strings("position")?,
            digests: batch.strings("digest")?,
            n_tokens: batch.u32s("n_tokens")?,
            kept: batch.bools("kept")?,
            kept_docs: batch.u64s("kept_doc")?,
            rules: batch.strings("rule")?,
            similarities: batch.f64s("similarity")?,
            groups: match batch.has("group") {
                true => Some(batch.u64s("group")?),
                false => None,
            },
        })
    }

    /// Returns the ordinal and the details of a row.
    fn detail(&self, row: usize) -> (u64, Detail) {
        let owned = |column| text(column, row).map(str::to_owned);
        let doc = self.docs.value(row);
        let kept_doc = self.kept_docs.is_valid(row);
        let kept_doc = kept_doc.then(|| self.kept_docs.value(row));
        let cluster = kept_doc.unwrap_or(doc);
        let is_scored = self.similarities.is_valid(row);
        let detail = Detail {
            id: owned(self.ids).unwrap_or_default(),
            url: owned(self.urls),
            source: owned(self.sources).unwrap_or_default(),
            position: text(self.positions, row).and_then(Position::parse),
            digest: owned(self.digests).unwrap_or_default(),
            n_tokens: self.n_tokens.value(row),
            cluster,
            group: self.groups.map_or(cluster, |groups| groups.value(row)),
            kept: self.kept.value(row),
            kept_doc,
            rule: owned(self.rules),
            similarity: is_scored.then(|| self.similarities.value(row)),
        };
        (doc, detail)
    }
}

/// Returns the text in a row of a column.
pub(crate) fn text(column: &StringArray, row: usize) -> Option<&str> {
    column.is_valid(row).then(|| column.value(row))
}

/// Returns the site of a URL; none if it has no host.
pub fn site_of(url: &str) -> Option<String> {
    let host = host_of(url)?;
    let mut site = site(host, SiteKind::Registrable).into_owned();
    if site.len() > MAX_NAME_BYTES {
        site.truncate(site.floor_char_boundary(MAX_NAME_BYTES));
    }
    (!site.is_empty()).then_some(site)
}

/// Returns the host between `//` and the path, possibly with a port.
pub fn host_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("//")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host = authority.rsplit('@').next()?;
    (!host.is_empty()).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Option<&str>) {
        assert_eq!(site_of(url).as_deref(), expected, "{url}");
    }

    #[test]
    fn sites_of_addresses() {
        check("https://www.example.co.uk/a?b#c", Some("example.co.uk"));
        check("http://user:pass@Example.com:8080", Some("example.com"));
        check("//example.org?x", Some("example.org"));
        check("http://[::1]:80/", Some("[::1]"));
        check("https://evil.com\\@good.com/", Some("evil.com"));
        check("http:///path", None);
        check("mailto:a@example.com", None);
        check("", None);
        check(
            &format!("http://{}/", "é".repeat(500)),
            Some(&"é".repeat(127)),
        );
    }
}
