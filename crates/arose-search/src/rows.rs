//! Rows of the index: the indexed form of a document, and the hashes that show whether it changed.
//!
//! A row has two hashes of 64 bits. Its *key* covers the data known before the document is read:
//! for a run the table row, for archives the URL and time. Its *row* covers the key and everything
//! that reading adds. If a source is unchanged and its keys are in the index, it is not read again.
//! If a source has changed, only rows with another hash are indexed again.

use arose::token::fingerprint;
use arose_corpus::{Document, Position};
use arose_dedup::results::Detail;
use arose_dedup::results::documents::{host_of, site_of};
use tantivy::TantivyDocument;

use crate::schema::Fields;

/// Number of bits of a row hash that identify the archive. With more archives, some share a number
/// and are then read again more often.
const FILE_BITS: u32 = 20;

const FILE_MASK: u64 = (1 << FILE_BITS) - 1;

/// The bit in the row of an archived page that says whether it has its text.
const TEXT_BIT: u64 = 1 << FILE_BITS;

/// The input of a hash: parts with their lengths, so that no two lists of parts give the same
/// bytes.
#[derive(Default)]
struct Name(Vec<u8>);

impl Name {
    fn number(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn text(self, text: Option<&str>) -> Self {
        let mut name = self.number(text.map_or(u64::MAX, |text| text.len() as u64));
        name.0
            .extend_from_slice(text.unwrap_or_default().as_bytes());
        name
    }

    fn position(self, position: Position) -> Self {
        self.number(position.offset).number(position.inner)
    }

    /// The properties of a document known only after reading it.
    fn document(self, document: &Document) -> Self {
        let digest = document.digest.to_string();
        self.text(document.title.as_deref())
            .text(document.language.as_deref())
            .number(document.fetched.is_some().into())
            .number(document.fetched.unwrap_or_default() as u64)
            .text(Some(&digest))
    }

    fn hash(self) -> u64 {
        fingerprint(&self.0)
    }
}

/// The key of a document of a run.
pub(crate) fn key_in_run(doc: u64, detail: &Detail) -> u64 {
    Name::default()
        .number(doc)
        .text(Some(&detail.source))
        .position(detail.position.unwrap_or_default())
        .number(detail.cluster)
        .number(detail.group)
        .number(detail.kept.into())
        .number(is_superseded(detail).into())
        .text(Some(&detail.digest))
        .text(Some(&detail.id))
        .text(detail.url.as_deref())
        .hash()
}

/// Whether a run dropped a document because its page was fetched again later.
pub(crate) fn is_superseded(detail: &Detail) -> bool {
    detail.rule.as_deref() == Some("superseded")
}

/// The row of a document of a run; its last bit says whether the text could be read.
pub(crate) fn row_in_run(key: u64, document: Option<&Document>) -> u64 {
    match document {
        Some(document) => Name::default().number(key).document(document).hash() | 1,
        None => Name::default().number(key).hash() & !1,
    }
}

/// Whether the row of a document of a run has its text.
pub(crate) fn has_text(row: u64) -> bool {
    row & 1 == 1
}

/// The key of an archived page, by which duplicates refer to it.
pub(crate) fn key_in_archive(url: Option<&str>, fetched: Option<i64>) -> u64 {
    let time = fetched.unwrap_or_default() as u64;
    Name::default().text(url).number(time).hash()
}

/// The key of a page that an archive has as an exact or dropped duplicate of page `original`. It is
/// one document, however often it was visited.
pub(crate) fn key_of_revisit(url: Option<&str>, original: u64) -> u64 {
    const REVISIT: u64 = 1 << 63;
    Name::default().text(url).number(original | REVISIT).hash()
}

/// The key of the same page at a later visit, if it had another text in between.
pub(crate) fn key_of_return(key: u64, fetched: Option<i64>) -> u64 {
    let time = fetched.unwrap_or_default() as u64;
    Name::default().number(key).number(time).hash()
}

/// The row of a page whose text is that of another row, or unknown; its last bits are the number of
/// the file.
pub(crate) fn row_of_revisit(
    file: u64,
    (key, doc): (u64, u64),
    cluster: u64,
    original: Option<u64>,
) -> u64 {
    let row = Name::default()
        .number(file)
        .number(key)
        .number(doc)
        .number(cluster)
        .number(original.unwrap_or_default())
        .hash();
    match original {
        Some(_) => in_file(row, file) | TEXT_BIT,
        None => in_file(row, file) & !TEXT_BIT,
    }
}

/// The row of a document of an archive; its last bits are the number of the file.
pub(crate) fn row_in_archive(file: u64, (doc, cluster): (u64, u64), document: &Document) -> u64 {
    let row = Name::default()
        .number(file)
        .number(doc)
        .number(cluster)
        .position(document.position)
        .text(document.id.as_deref())
        .text(document.url.as_deref())
        .text(Some(&document.source.to_string_lossy()))
        .document(document)
        .hash();
    in_file(row, file) | TEXT_BIT
}

fn in_file(row: u64, file: u64) -> u64 {
    (row & !FILE_MASK) | (file & FILE_MASK)
}

/// Whether the row of an archived page has its text.
pub(crate) fn page_has_text(row: u64) -> bool {
    row & TEXT_BIT != 0
}

/// Whether a row belongs to one of the first `n_files` archives.
pub(crate) fn is_of_first(row: u64, n_files: usize) -> bool {
    row & FILE_MASK < n_files as u64
}

/// The index entry of a document.
pub(crate) struct Entry<'a> {
    pub(crate) row: u64,
    pub(crate) key: u64,
    pub(crate) doc: u64,
    pub(crate) cluster: u64,
    pub(crate) group: u64,
    pub(crate) page: u64,
    pub(crate) version: u64,
    pub(crate) fetched: Option<i64>,
    pub(crate) is_kept: bool,
    /// Whether it is an exact duplicate of the kept document of its cluster.
    pub(crate) is_exact: bool,
    pub(crate) id: &'a str,
    pub(crate) url: Option<&'a str>,
    pub(crate) source: &'a str,
    pub(crate) position: Option<Position>,
    pub(crate) document: Option<&'a Document>,
    /// The ordinal of the document with which its text is stored, if it is another one.
    pub(crate) original: Option<u64>,
}

impl Entry<'_> {
    pub(crate) fn to_document(&self, fields: &Fields) -> TantivyDocument {
        let mut entry = TantivyDocument::default();
        entry.add_u64(fields.row, self.row);
        entry.add_u64(fields.key, self.key);
        entry.add_u64(fields.doc, self.doc);
        entry.add_u64(fields.cluster, self.cluster);
        entry.add_u64(fields.group, self.group);
        entry.add_u64(fields.page, self.page);
        entry.add_u64(fields.version, self.version);
        if let Some(fetched) = self.fetched {
            entry.add_i64(fields.fetched, fetched);
        }
        entry.add_u64(fields.kept, self.is_kept.into());
        entry.add_u64(fields.exact, self.is_exact.into());
        entry.add_text(fields.id, self.id);
        entry.add_text(fields.source, self.source);
        if let Some(position) = self.position {
            entry.add_text(fields.position, position.to_string());
        }
        if let Some(url) = self.url {
            entry.add_text(fields.url, url);
            entry.add_text(fields.url_words, url);
            domains(url).for_each(|domain| entry.add_text(fields.domain, domain));
            if let Some(site) = site_of(url) {
                entry.add_text(fields.site, site.to_lowercase());
            }
        }
        if let Some(document) = self.document {
            describe(&mut entry, fields, document);
            match self.original {
                Some(original) => entry.add_u64(fields.original, original),
                None => store(&mut entry, fields, document),
            }
        }
        entry
    }
}

/// The displayed properties of a document.
fn store(entry: &mut TantivyDocument, fields: &Fields, document: &Document) {
    if let Some(title) = &document.title {
        entry.add_text(fields.title, title);
    }
    entry.add_text(fields.text, &document.text);
    if let Some(language) = &document.language {
        entry.add_text(fields.stated_language, language);
    }
}

/// The searchable properties of a document, except for its URL.
fn describe(entry: &mut TantivyDocument, fields: &Fields, document: &Document) {
    if let Some(title) = &document.title {
        entry.add_text(fields.title_words, title);
        entry.add_text(fields.body, title);
    }
    entry.add_text(fields.body, &document.text);
    if let Some(language) = &document.language {
        languages(language).for_each(|language| entry.add_text(fields.language, language));
        if let Some(main) = languages(language).last().filter(|main| !main.is_empty()) {
            entry.add_text(fields.main_language, main);
        }
    }
    if let Some(time) = document.fetched {
        entry.add_i64(fields.time, time);
    }
}

/// The host of a URL and every domain that contains it.
fn domains(url: &str) -> impl Iterator<Item = String> {
    let host = host_of(url).unwrap_or_default();
    let name = match host.starts_with('[') {
        true => host,
        false => host.split(':').next().unwrap_or_default(),
    };
    let name = name.trim_end_matches('.').to_lowercase();
    let mut rest = (!name.is_empty()).then_some(name);
    std::iter::from_fn(move || {
        let this = rest.take()?;
        rest = this.split_once('.').map(|(_, above)| above.to_owned());
        Some(this)
    })
}

/// A language in the form for comparison: `en_GB` and `EN-gb` are `en-gb`.
pub(crate) fn normalized_language(stated: &str) -> String {
    let language: String = stated.trim().to_lowercase().replace('_', "-");
    // The index limits the size of terms.
    language.chars().take(64).collect()
}

/// A language as stated, and the same without its region.
fn languages(stated: &str) -> impl Iterator<Item = String> {
    let full = normalized_language(stated);
    let main = full.split_once('-').map(|(main, _)| main.to_owned());
    [Some(full), main].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: &[&str]) {
        assert_eq!(domains(url).collect::<Vec<_>>(), expected, "{url}");
    }

    #[test]
    fn a_host_is_in_its_domains() {
        check("https://A.b.org:80/x", &["a.b.org", "b.org", "org"]);
        check("http://localhost", &["localhost"]);
        check("http://[::1]:80/", &["[::1]:80"]);
        check("nothing", &[]);
    }

    #[test]
    fn a_language_is_its_own_and_its_main_one() {
        assert_eq!(languages("en_GB").collect::<Vec<_>>(), ["en-gb", "en"]);
        assert_eq!(languages("de").collect::<Vec<_>>(), ["de"]);
    }

    #[test]
    fn names_tell_parts_from_their_borders() {
        let name = |a: Option<&str>, b: Option<&str>| Name::default().text(a).text(b).hash();
        assert_ne!(name(Some("ab"), Some("c")), name(Some("a"), Some("bc")));
        assert_ne!(name(None, Some("")), name(Some(""), None));
        assert_ne!(name(None, None), name(Some(""), None));
    }
}
