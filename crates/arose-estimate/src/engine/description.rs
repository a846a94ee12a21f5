//! Description of an HTTP search engine in a few lines of TOML.
//!
//! ```toml
//! name = "example"
//! url = "https://search.example.org/?q={query}&n={limit}"
//! format = "html"
//! results = "ol.results li"
//! address = "a.title@href"
//! count = "#count"
//! limit = 50
//! delay = 2
//! ```
//!
//! A preset provides the settings of a known kind; other settings override it.
//! `docs/estimation.md` lists all settings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Error;

/// The known kinds of search engines.
pub const PRESETS: [&str; 4] = ["arose", "elasticsearch", "solr", "omega"];

/// How to query a search engine and where to find results in its responses.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Description {
    /// Its name in results.
    pub name: Option<String>,
    /// One of [`PRESETS`].
    pub preset: Option<String>,
    /// A directory instead of a server: the output of `arose dedup`, or a crawl.
    pub directory: Option<PathBuf>,
    /// The URL to query, with `{query}`, `{limit}`, `{offset}`, `{page}`; for a preset, the URL of
    /// the server.
    pub url: Option<String>,
    /// Format of responses.
    pub format: Option<Format>,
    /// Path of the list of results: a JSON pointer, or a path of elements.
    pub results: Option<String>,
    /// Path of the URL in a result.
    pub address: Option<String>,
    /// Path of the number of results.
    pub count: Option<String>,
    /// Path of the full text in a result.
    pub text: Option<String>,
    /// Path of the ID in a result.
    pub id: Option<String>,
    /// The URL of the text of a page, with `{id}` and `{address}`. Default: the result page.
    pub document: Option<String>,
    /// The URL that looks up a page by its own URL, with `{address}`, or `{bare}` for the URL
    /// without its scheme. The response has the form of a search response.
    pub lookup: Option<String>,
    /// Path of the text in that response, if it is JSON.
    pub document_text: Option<String>,
    /// Text on a page without results.
    pub none: Option<String>,
    /// Maximum number of results to request.
    pub limit: Option<usize>,
    /// Number of results per page, if more than one page must be requested.
    pub per_page: Option<usize>,
    /// Seconds between requests.
    pub delay: Option<f64>,
    /// Maximum seconds to wait for a response.
    pub timeout: Option<f64>,
    /// Number of retries after a temporary failure.
    pub retries: Option<u32>,
    /// How a word is written, with `{word}`.
    pub word: Option<String>,
    /// How a phrase is written, with `{phrase}`.
    pub phrase: Option<String>,
    /// Separator of words that must all match.
    pub and: Option<String>,
    /// Separator of words of which at least one must match.
    pub or: Option<String>,
    /// Header fields sent with every request to the origin of `url`.
    pub headers: BTreeMap<String, String>,
}

/// Format of responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JSON, read by pointers.
    Json,
    /// HTML or XML, read by paths of elements.
    Html,
}

impl Description {
    /// Reads a description from a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is not a description.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
        let mut description: Self = toml::from_str(&text).map_err(|error| Error::Settings {
            path: path.to_owned(),
            what: error.to_string(),
        })?;
        if description.name.is_none() {
            let stem = path.file_stem().unwrap_or_default();
            description.name = Some(stem.to_string_lossy().into_owned());
        }
        Ok(description)
    }

    /// A server of a known kind at a URL.
    #[must_use]
    pub fn preset(preset: &str, url: &str) -> Self {
        Self {
            preset: Some(preset.to_owned()),
            url: Some(url.to_owned()),
            ..Self::default()
        }
    }

    /// The description, with missing settings filled in from its preset.
    ///
    /// # Errors
    ///
    /// If there is no such preset, or no URL.
    pub(super) fn filled(&self) -> Result<Self, Error> {
        let Some(preset) = &self.preset else {
            return Ok(self.clone());
        };
        let Some(url) = &self.url else {
            return Err(self.bad("`url` is missing; set it to the URL of the server"));
        };
        let base = url.trim_end_matches('/');
        let Some(known) = known(preset, base) else {
            let all = PRESETS.join(", ");
            return Err(self.bad(&format!("no preset `{preset}`; choose one of {all}")));
        };
        let own = self.clone();
        Ok(Self {
            url: known.url,
            format: own.format.or(known.format),
            results: own.results.or(known.results),
            address: own.address.or(known.address),
            count: own.count.or(known.count),
            text: own.text.or(known.text),
            id: own.id.or(known.id),
            document: own.document.or(known.document),
            lookup: own.lookup.or(known.lookup),
            document_text: own.document_text.or(known.document_text),
            word: own.word.or(known.word),
            phrase: own.phrase.or(known.phrase),
            and: own.and.or(known.and),
            or: own.or.or(known.or),
            ..own
        })
    }

    /// Whether texts are available only from the result pages.
    pub(super) fn leaves_texts_to_pages(&self) -> bool {
        self.text.is_none() && self.document.is_none()
    }

    /// An error in this description.
    pub(super) fn bad(&self, what: &str) -> Error {
        let name = self.name.as_ref().or(self.url.as_ref());
        Error::Description {
            name: name.cloned().unwrap_or_else(|| "without a name".to_owned()),
            what: what.to_owned(),
        }
    }
}

/// The settings that all servers of one kind share.
fn known(preset: &str, base: &str) -> Option<Description> {
    let text = |text: &str| Some(text.to_owned());
    let lucene = Description {
        format: Some(Format::Json),
        word: text("\"{word}\""),
        phrase: text("\"{phrase}\""),
        and: text(" AND "),
        or: text(" OR "),
        ..Description::default()
    };
    Some(match preset {
        "arose" => Description {
            url: Some(format!(
                "{base}/api/search?q={{query}}&limit={{limit}}&collapse=false"
            )),
            results: text("/hits"),
            address: text("/url | /id"),
            count: text("/documents"),
            id: text("/doc"),
            document: Some(format!("{base}/api/document/{{id}}")),
            lookup: Some(format!(
                "{base}/api/search?q=url:%22{{bare}}%22&limit=100&collapse=false"
            )),
            document_text: text("/text"),
            and: text(" "),
            ..lucene
        },
        "elasticsearch" => Description {
            url: Some(format!(
                "{base}/_search?q={{query}}&size={{limit}}&track_total_hits=true"
            )),
            results: text("/hits/hits"),
            address: text("/_source/url | /_id"),
            // A number up to version 6, an object since then.
            count: text("/hits/total/value | /hits/total"),
            text: text("/_source/text"),
            id: text("/_id"),
            document: Some(format!("{base}/_doc/{{id}}")),
            lookup: Some(format!("{base}/_search?q=url:%22{{address}}%22&size=100")),
            document_text: text("/_source/text"),
            ..lucene
        },
        "solr" => Description {
            url: Some(format!("{base}/select?q={{query}}&rows={{limit}}&wt=json")),
            results: text("/response/docs"),
            address: text("/url | /id"),
            count: text("/response/numFound"),
            text: text("/text"),
            id: text("/id"),
            document: Some(format!("{base}/get?id={{id}}&wt=json")),
            lookup: Some(format!(
                "{base}/select?q=url:%22{{address}}%22&rows=100&wt=json"
            )),
            document_text: text("/doc/text"),
            ..lucene
        },
        "omega" => {
            let mark = if base.contains('?') { '&' } else { '?' };
            Description {
                // A large MINHITS makes the count exact; quotation marks turn stemming off.
                url: Some(format!(
                    "{base}{mark}P={{query}}&FMT=xml&HITSPERPAGE={{limit}}&MINHITS=1000000"
                )),
                format: Some(Format::Html),
                results: text("hit"),
                address: text("@url"),
                count: text("results@matches"),
                ..lucene
            }
        }
        _ => return None,
    })
}
