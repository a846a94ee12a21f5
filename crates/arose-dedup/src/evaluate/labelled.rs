//! Labelled pairs: pairs of documents with a label, or with a similarity computed elsewhere.
//!
//! Three kinds of JSON Lines files are read, uncompressed or compressed with gzip or zstd:
//!
//! - one pair per line, with both texts or with the IDs of documents in a second file, and a label,
//!   a Jaccard similarity, or both;
//! - one document per line, with a field that is equal for versions of one document
//!   ([`Pairing::Groups`]): every two documents make a pair;
//! - one document per line, some of which are sources of others ([`Pairing::Sources`]).
//!
//! Field names have defaults ([`Fields`]) and can be set. A name such as `doc#rev` joins two fields
//! with `#`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use arose::Threshold;
use arose::digest::{ContentHasher, Digest};
use arose::judgement::Verdict;
use arose::token::Tokenizer;
use arose_corpus::html::{self, ImageTerm};
use serde_json::Value;

use super::Error;
use super::difference::KindedTokens;
use super::lines::{Record, for_each_record};

/// Maximum number of documents of which all pairs are formed: 3,000 documents have 4.5 million.
pub const MAX_GROUPED: usize = 3000;

/// Labelled pairs and their documents.
#[derive(Debug, Clone, Default)]
pub struct LabelledPairs {
    /// The documents, in the order of the files.
    pub documents: Vec<LabelledDocument>,
    /// The pairs, in the order of the files.
    pub pairs: Vec<LabelledPair>,
}

/// A document of labelled pairs.
#[derive(Debug, Clone)]
pub struct LabelledDocument {
    /// Its name in the files.
    pub id: String,
    /// Its URL, if given.
    pub url: Option<String>,
    /// Its text.
    pub content: KindedTokens,
    /// Its content digest, equal for exact duplicates.
    pub digest: Digest,
}

/// Two documents and their label.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelledPair {
    /// The index of one in [`LabelledPairs::documents`].
    pub a: usize,
    /// The index of the other.
    pub b: usize,
    /// The label of the raters, or the one that follows from the listed similarity.
    pub verdict: Verdict,
    /// The Jaccard similarity that the file lists.
    pub jaccard: Option<f64>,
}

/// The input and its format.
#[derive(Debug, Clone)]
pub struct LabelledConfig {
    /// The file with the pairs, or with documents to be paired.
    pub labelled: PathBuf,
    /// The documents, if the pairs refer to them by ID.
    pub documents: Option<PathBuf>,
    /// The names of the fields.
    pub fields: Fields,
    /// Which labels mean duplicates.
    pub labels: Labels,
    /// How pairs are formed.
    pub pairing: Pairing,
    /// How to extract text from a field with HTML.
    pub mode: html::Mode,
}

/// The source of the pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// The file lists them.
    Listed,
    /// All pairs of documents. Documents with equal fields `group` are duplicates, unless they have
    /// different fields `version`: then they are undecided.
    Groups,
    /// Each document with the one of its `group` whose `label` is that of sources. The label of the
    /// other document is that of the pair.
    Sources,
}

/// The meaning of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// Labels of duplicates. If empty: the usual words, true, and numbers from 1 on.
    pub duplicate: Vec<String>,
    /// Labels of pairs that the raters left undecided.
    pub undecided: Vec<String>,
    /// The label of documents from which others were derived.
    pub source: Option<String>,
    /// Pairs without a label are duplicates if their listed similarity is at least this.
    pub min_jaccard: Threshold,
}

/// The fields by role. For each role the names it may have; the first one present is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    names: BTreeMap<&'static str, Vec<String>>,
}

const GUESSES: [(&str, &[&str]); 14] = [
    ("a", &["a", "id_a", "doc_a", "id1", "left"]),
    ("b", &["b", "id_b", "doc_b", "id2", "right"]),
    ("group", &["group", "cluster"]),
    ("html", &["html", "raw_html"]),
    (
        "id",
        &["id", "doc_id", "uid", "_id", "file", "doc#rev", "page#seq"],
    ),
    ("jaccard", &["jaccard", "resemblance", "similarity"]),
    ("label", &["label", "judgement", "verdict", "duplicate"]),
    ("text", &["text", "content", "raw_content", "body"]),
    ("text_a", &["text_a", "text1"]),
    ("text_b", &["text_b", "text2"]),
    ("url", &["url", "uri", "link", "source_url"]),
    ("url_a", &["url_a", "url1"]),
    ("url_b", &["url_b", "url2"]),
    ("version", &["version"]),
];

impl Default for Fields {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            names: GUESSES.map(|(role, guesses)| (role, names(guesses))).into(),
        }
    }
}

impl Fields {
    /// The role of a field.
    pub fn roles() -> impl Iterator<Item = &'static str> {
        GUESSES.into_iter().map(|(role, _)| role)
    }

    /// Adds the field `name` as the first choice for a role.
    ///
    /// # Errors
    ///
    /// If there is no such role.
    pub fn prefer(&mut self, role: &str, name: &str) -> Result<(), Error> {
        let Some(names) = self.names.get_mut(role) else {
            let roles: Vec<&str> = Self::roles().collect();
            let message = format!("no role `{role}`; expected one of {}", roles.join(", "));
            return Err(Error::Setting(message));
        };
        names.insert(0, name.to_owned());
        Ok(())
    }

    fn find(&self, record: &Record, role: &str) -> Option<String> {
        self.names
            .get(role)?
            .iter()
            .find_map(|name| joined(record, name))
    }

    fn expect(&self, record: &Record, role: &str) -> Result<String, String> {
        self.find(record, role).ok_or_else(|| {
            let names = self
                .names
                .get(role)
                .map_or(String::new(), |names| names.join(", "));
            format!("no field for `{role}`; expected one of {names}")
        })
    }
}

/// Returns the value of a field, or of several joined by `#`.
fn joined(record: &Record, name: &str) -> Option<String> {
    let values = name.split('#').map(|name| match record.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    });
    Some(values.collect::<Option<Vec<_>>>()?.join("#"))
}

impl Default for Labels {
    fn default() -> Self {
        Self {
            duplicate: Vec::new(),
            undecided: Vec::new(),
            source: None,
            min_jaccard: Threshold::new(0.8).expect("it lies in 0..=1"),
        }
    }
}

impl Labels {
    const DUPLICATE: [&str; 6] = [
        "correct",
        "duplicate",
        "near-duplicate",
        "same",
        "true",
        "yes",
    ];
    const DISTINCT: [&str; 5] = ["incorrect", "distinct", "different", "false", "no"];

    fn verdict(&self, label: &str) -> Result<Verdict, String> {
        let is_in = |list: &[String]| list.iter().any(|name| name == label);
        if is_in(&self.duplicate) {
            Ok(Verdict::Correct)
        } else if is_in(&self.undecided) || label == Verdict::Undecided.as_str() {
            Ok(Verdict::Undecided)
        } else if !self.duplicate.is_empty() {
            Ok(Verdict::Incorrect)
        } else if let Ok(degree) = label.parse::<f64>() {
            Ok(decided(degree >= 1.0))
        } else if Self::DUPLICATE.contains(&label) || Self::DISTINCT.contains(&label) {
            Ok(decided(Self::DUPLICATE.contains(&label)))
        } else {
            Err(format!(
                "unknown label `{label}`; set the labels of duplicates with --duplicate"
            ))
        }
    }
}

fn decided(is_duplicate: bool) -> Verdict {
    match is_duplicate {
        true => Verdict::Correct,
        false => Verdict::Incorrect,
    }
}

/// Reads labelled pairs.
///
/// # Errors
///
/// If a file cannot be read, or a line is malformed.
pub fn read(config: &LabelledConfig) -> Result<LabelledPairs, Error> {
    match config.pairing {
        Pairing::Listed => read_listed(config),
        Pairing::Groups => {
            let (documents, groups) = read_grouped(config)?;
            check_number(config, documents.len())?;
            let pairs = all_pairs(&groups);
            Ok(LabelledPairs { documents, pairs })
        }
        Pairing::Sources => {
            let (documents, groups) = read_grouped(config)?;
            let pairs = pairs_with_sources(config, &documents, &groups)?;
            Ok(LabelledPairs { documents, pairs })
        }
    }
}

fn check_number(config: &LabelledConfig, n_documents: usize) -> Result<(), Error> {
    let flaw = format!("{n_documents} documents; --group pairs at most {MAX_GROUPED}");
    match n_documents <= MAX_GROUPED {
        true => Ok(()),
        false => Err(Error::file(&config.labelled, flaw)),
    }
}

/// Documents by ID.
#[derive(Default)]
struct Library {
    documents: Vec<LabelledDocument>,
    places: HashMap<String, usize>,
}

impl Library {
    /// Returns the index of a document, which may already exist with the same text.
    fn add(&mut self, document: LabelledDocument) -> Result<usize, String> {
        match self.places.get(&document.id) {
            Some(&place) if self.documents[place].digest == document.digest => Ok(place),
            Some(_) => Err(format!(
                "`{}` is the ID of two texts",
                Printed(&document.id)
            )),
            None => {
                let place = self.documents.len();
                self.places.insert(document.id.clone(), place);
                self.documents.push(document);
                Ok(place)
            }
        }
    }

    fn place(&self, id: &str) -> Result<usize, String> {
        let place = self.places.get(id).copied();
        place.ok_or_else(|| format!("no document has the ID `{}`", Printed(id)))
    }
}

/// Returns a name from a file, safe for a terminal.
struct Printed<'a>(&'a str);

impl fmt::Display for Printed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_debug())
    }
}

fn read_listed(config: &LabelledConfig) -> Result<LabelledPairs, Error> {
    let mut library = Library::default();
    if let Some(path) = &config.documents {
        read_documents(config, path, |document, _| library.add(document).map(drop))?;
    }
    let mut pairs = Vec::new();
    for_each_record(&config.labelled, |record| {
        let [a, b] = match config.documents {
            Some(_) => named(&config.fields, record, &library)?,
            None => inline(&config.fields, record, &mut library)?,
        };
        let jaccard = config
            .fields
            .find(record, "jaccard")
            .map(|value| number(&value));
        let jaccard = jaccard.transpose()?;
        let verdict = listed_verdict(config, record, jaccard)?;
        pairs.push(LabelledPair {
            a,
            b,
            verdict,
            jaccard,
        });
        Ok(())
    })?;
    let documents = library.documents;
    Ok(LabelledPairs { documents, pairs })
}

fn number(value: &str) -> Result<f64, String> {
    let number = value
        .parse::<f64>()
        .ok()
        .filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| format!("`{}` is not a similarity", Printed(value)))
}

/// Returns the indexes of two documents of the second file.
fn named(fields: &Fields, record: &Record, library: &Library) -> Result<[usize; 2], String> {
    let [a, b] = ["a", "b"].map(|role| library.place(&fields.expect(record, role)?));
    Ok([a?, b?])
}

/// Returns the indexes of two documents whose texts are in the line of the pair.
fn inline(fields: &Fields, record: &Record, library: &mut Library) -> Result<[usize; 2], String> {
    if fields.find(record, "a").is_none() && fields.find(record, "text").is_some() {
        return Err(
            "a document, not a pair; set the field that duplicates share with --group".to_owned(),
        );
    }
    let mut add = |id: &str, text: &str, url: &str| {
        let text = fields.expect(record, text);
        let text =
            text.map_err(|flaw| format!("{flaw}; pass the documents with --documents-from"))?;
        library.add(LabelledDocument {
            id: fields.expect(record, id)?,
            url: fields.find(record, url),
            content: KindedTokens::of(&Tokenizer::default(), &text),
            digest: Digest::of_text(&text),
        })
    };
    Ok([add("a", "text_a", "url_a")?, add("b", "text_b", "url_b")?])
}

fn listed_verdict(
    config: &LabelledConfig,
    record: &Record,
    jaccard: Option<f64>,
) -> Result<Verdict, String> {
    match (config.fields.find(record, "label"), jaccard) {
        (Some(label), _) => config.labels.verdict(&label),
        (None, Some(jaccard)) => Ok(decided(config.labels.min_jaccard.reached_by(jaccard))),
        (None, None) => {
            let labels = config
                .fields
                .expect(record, "label")
                .err()
                .unwrap_or_default();
            Err(format!("{labels}; and none for `jaccard`"))
        }
    }
}

/// Calls `each` with every document of a file and its record.
fn read_documents(
    config: &LabelledConfig,
    path: &Path,
    mut each: impl FnMut(LabelledDocument, &Record) -> Result<(), String>,
) -> Result<(), Error> {
    let tokenizer = Tokenizer::default();
    for_each_record(path, |record| {
        let html = config.fields.find(record, "html");
        let (content, digest) = match (config.fields.find(record, "text"), html) {
            (Some(text), _) => {
                let content = KindedTokens::of(&tokenizer, &text);
                (content, Digest::of_text(&text))
            }
            (None, Some(html)) => page_content(&tokenizer, &html, config.mode),
            (None, None) => return config.fields.expect(record, "text").map(drop),
        };
        let id = config.fields.expect(record, "id")?;
        let url = config.fields.find(record, "url");
        let document = LabelledDocument {
            id,
            url,
            content,
            digest,
        };
        each(document, record)
    })
}

/// Returns the tokens of a page, including its images, and its content digest.
fn page_content(tokenizer: &Tokenizer, page: &str, mode: html::Mode) -> (KindedTokens, Digest) {
    let config = html::HtmlConfig {
        mode,
        ..html::HtmlConfig::default()
    };
    let extracted = html::extract(page, None, &config);
    let (mut tokens, mut content) = (KindedTokens::default(), ContentHasher::new());
    let mut begin = 0;
    for ImageTerm { at, src } in &extracted.images {
        let text = extracted.text.get(begin..*at).unwrap_or_default();
        tokens.push_text(tokenizer, text);
        tokens.push_image(src);
        content.push_text(text);
        content.push_image(src);
        begin = *at;
    }
    let text = extracted.text.get(begin..).unwrap_or_default();
    tokens.push_text(tokenizer, text);
    content.push_text(text);
    (tokens, content.finish())
}

/// The fields of a document.
struct Belonging {
    group: String,
    version: Option<String>,
    label: Option<String>,
}

fn read_grouped(config: &LabelledConfig) -> Result<(Vec<LabelledDocument>, Vec<Belonging>), Error> {
    let mut library = Library::default();
    let mut groups = Vec::new();
    let path = config.documents.as_ref().unwrap_or(&config.labelled);
    let fields = &config.fields;
    read_documents(config, path, |document, record| {
        let id = document.id.clone();
        if library.add(document)? < groups.len() {
            return Err(format!("`{}` occurs twice", Printed(&id)));
        }
        groups.push(Belonging {
            group: fields.expect(record, "group")?,
            version: fields.find(record, "version"),
            label: fields.find(record, "label"),
        });
        Ok(())
    })?;
    Ok((library.documents, groups))
}

fn all_pairs(groups: &[Belonging]) -> Vec<LabelledPair> {
    let verdict = |a: &Belonging, b: &Belonging| match (a.group == b.group, a.version == b.version)
    {
        (true, true) => Verdict::Correct,
        (true, false) => Verdict::Undecided,
        (false, _) => Verdict::Incorrect,
    };
    let all = (0..groups.len()).flat_map(|a| (a + 1..groups.len()).map(move |b| (a, b)));
    all.map(|(a, b)| LabelledPair {
        a,
        b,
        verdict: verdict(&groups[a], &groups[b]),
        jaccard: None,
    })
    .collect()
}

fn pairs_with_sources(
    config: &LabelledConfig,
    documents: &[LabelledDocument],
    groups: &[Belonging],
) -> Result<Vec<LabelledPair>, Error> {
    let path = config.documents.as_ref().unwrap_or(&config.labelled);
    let is_source = |own: &Belonging| own.label == config.labels.source;
    let sources = groups.iter().enumerate().filter(|(_, own)| is_source(own));
    let sources: HashMap<&str, usize> = sources.map(|(a, own)| (own.group.as_str(), a)).collect();
    let mut pairs = Vec::new();
    for (b, own) in groups.iter().enumerate().filter(|(_, own)| !is_source(own)) {
        let id = Printed(&documents[b].id);
        let Some(&a) = sources.get(own.group.as_str()) else {
            return Err(Error::file(
                path,
                format!("`{id}` has no source in its group"),
            ));
        };
        let Some(label) = &own.label else {
            return Err(Error::file(path, format!("`{id}` has no label")));
        };
        let verdict = config.labels.verdict(label);
        pairs.push(LabelledPair {
            a,
            b,
            verdict: verdict.map_err(|flaw| Error::file(path, flaw))?,
            jaccard: None,
        });
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests;
