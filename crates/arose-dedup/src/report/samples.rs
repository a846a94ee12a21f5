//! The evidence: the documents, texts and differences of the shown pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::path::Path;

use arose::token::{Case, Tokenizer};
use arose_corpus::Config;

use super::Error;
use super::diff::Bounds;
use super::documents::Cluster;
use super::html::{Count, Plain, Text, clip, counted, web_address};
use super::pairs::PairSample;
use super::side_by_side::{Showing, rows};
use crate::results::{Detail, Pair, ReadText, Repeated, Summary, details, texts};

/// Maximum number of characters shown of a name or a URL.
const MAX_NAME: usize = 120;

/// Maximum number of characters shown of a name inside a sentence.
const MAX_SHORT_NAME: usize = 40;

/// The data of the shown documents.
pub(super) struct Evidence {
    details: BTreeMap<u64, Detail>,
    texts: BTreeMap<u64, ReadText>,
    case: Case,
    /// The data of the policy `content`.
    repeated: Option<Repeated>,
}

impl Evidence {
    /// Selects the rows of the documents to be shown, and reads the texts of those in pairs.
    pub(super) fn gather<'a>(
        out: &Path,
        summary: &Summary,
        clusters: impl Iterator<Item = &'a Cluster>,
        pairs: &PairSample,
        corpus: &Config,
    ) -> Result<Self, Error> {
        let documents = &out.join("documents.parquet");
        let case = summary.case();
        let in_pairs: BTreeSet<u64> = pairs.docs().collect();
        let members = clusters.flat_map(|cluster| {
            let members = cluster.members.winners().copied();
            members.chain(cluster.kept)
        });
        let all: BTreeSet<u64> = in_pairs.iter().copied().chain(members).collect();
        let all: Vec<u64> = all.into_iter().collect();
        let details = details(documents, &all)?;
        let mut shown = details.clone();
        shown.retain(|doc, _| in_pairs.contains(doc));
        let texts = texts(&shown, &summary.directory(out), corpus);
        let readable = texts.iter().filter_map(|(doc, text)| {
            let url = details.get(doc)?.url.as_deref();
            Some((url, text.as_deref().ok()?))
        });
        let repeated = Repeated::read(out, summary, readable)?;
        Ok(Self {
            details,
            texts,
            case,
            repeated,
        })
    }

    /// Returns the data of a document.
    pub(super) fn detail(&self, doc: u64) -> Option<&Detail> {
        self.details.get(&doc)
    }

    /// Writes the name of a document, and its URL if it has one.
    pub(super) fn name(&self, f: &mut String, doc: u64) -> fmt::Result {
        let Some(detail) = self.detail(doc) else {
            return write!(f, "<bdi class=\"id\">document {doc}</bdi>");
        };
        let id = clip(&detail.id, MAX_NAME);
        write!(f, "<bdi class=\"id\">{}</bdi>", Text(&id))?;
        match &detail.url {
            Some(url) if *url != detail.id => address(f, url),
            _ => Ok(()),
        }
    }

    /// Writes the name of a document inside a sentence.
    pub(super) fn short_name(&self, f: &mut String, doc: u64) -> fmt::Result {
        match self.detail(doc) {
            Some(detail) => write!(f, "<bdi>{}</bdi>", Text(&clip(&detail.id, MAX_SHORT_NAME))),
            None => write!(f, "document {}", Count(doc)),
        }
    }

    /// Returns whether frames are marked.
    pub(super) fn has_frames(&self) -> bool {
        self.repeated.is_some()
    }

    /// Writes two documents side by side.
    pub(super) fn compare(&self, f: &mut String, pair: &Pair) -> fmt::Result {
        f.write_str("<table class=\"diff\"><thead><tr>")?;
        for doc in [pair.a, pair.b] {
            f.write_str("<th scope=\"col\">")?;
            self.name(f, doc)?;
            if let Some(detail) = self.detail(doc) {
                let tokens = counted(detail.n_tokens.into(), "token", "tokens");
                let decision = if detail.kept { "kept" } else { "dropped" };
                write!(f, "<span class=\"decision\">{tokens}, {decision}</span>")?;
            }
            f.write_str("</th>")?;
        }
        f.write_str("</tr></thead><tbody>")?;
        match (self.texts.get(&pair.a), self.texts.get(&pair.b)) {
            (Some(Ok(a)), Some(Ok(b))) => {
                let url = |doc| self.detail(doc).and_then(|detail| detail.url.as_deref());
                let urls = [url(pair.a), url(pair.b)];
                let showing = Showing {
                    tokenizer: Tokenizer { case: self.case },
                    bounds: Bounds::SAMPLE,
                    frames: self.repeated.as_ref().map(|repeated| (repeated, urls)),
                };
                rows(f, [a, b], showing)?;
            }
            (a, b) => {
                f.write_str("<tr>")?;
                missing(f, a)?;
                missing(f, b)?;
                f.write_str("</tr>")?;
            }
        }
        f.write_str("</tbody></table>")
    }
}

/// Writes a URL, as a link if it is a web URL.
fn address(f: &mut String, url: &str) -> fmt::Result {
    let shown = url.strip_prefix("https://").unwrap_or(url);
    let shown = clip(shown, MAX_NAME);
    match web_address(url) {
        Some(link) => write!(
            f,
            "<a class=\"url\" rel=\"noopener noreferrer\" href=\"{}\"><bdi>{}</bdi></a>",
            Plain(link),
            Text(&shown)
        ),
        None => write!(f, "<bdi class=\"url\">{}</bdi>", Text(&shown)),
    }
}

/// Returns the reason why a text is not shown, if there is one.
fn missing(f: &mut String, text: Option<&ReadText>) -> fmt::Result {
    let why = match text {
        Some(Err(why)) => why,
        Some(Ok(_)) => "This text could be read again, the other could not.",
        None => "Its position in the source is not known.",
    };
    write!(f, "<td class=\"gap\">{why}</td>")
}
