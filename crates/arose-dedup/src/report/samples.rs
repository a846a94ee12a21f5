//! The evidence: the documents, texts and differences behind what is shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::ops::Range;
use std::path::Path;

use arose::token::{Case, Tokenizer};
use arose_corpus::Config;

use super::Error;
use super::diff::{Change, Diff, Hunk, Pieces};
use super::documents::{Cluster, Detail, details};
use super::html::{Count, Plain, Text, clip, counted, web_address};
use super::pairs::{Pair, Pairs};
use super::texts::{self, texts};

/// Characters shown of a name or an address.
const MAX_NAME: usize = 120;

/// Characters shown of a name inside a sentence.
const MAX_SHORT_NAME: usize = 40;

/// Pieces shown at each end of one long change.
const MAX_RUN: usize = 60;

/// Characters shown of one run of text, whatever its pieces.
const MAX_CHARS: usize = 4000;

/// Pieces shown of texts that are equal.
const N_OPENING: usize = 60;

/// What is known about the documents shown.
pub(super) struct Evidence {
    details: BTreeMap<u64, Detail>,
    texts: BTreeMap<u64, texts::Text>,
    case: Case,
}

impl Evidence {
    /// Picks the rows of the documents to be shown, and reads the texts of those in pairs.
    pub(super) fn gather(
        documents: &Path,
        clusters: &[Cluster],
        pairs: &Pairs,
        case: Case,
        corpus: &Config,
    ) -> Result<Self, Error> {
        let in_pairs: BTreeSet<u64> = pairs.docs().collect();
        let members = clusters.iter().flat_map(|cluster| {
            let members = cluster.members.winners().copied();
            members.chain(cluster.kept)
        });
        let all: BTreeSet<u64> = in_pairs.iter().copied().chain(members).collect();
        let all: Vec<u64> = all.into_iter().collect();
        let details = details(documents, &all)?;
        let mut shown = details.clone();
        shown.retain(|doc, _| in_pairs.contains(doc));
        let texts = texts(&shown, case, corpus);
        Ok(Self {
            details,
            texts,
            case,
        })
    }

    /// What is known of a document.
    pub(super) fn detail(&self, doc: u64) -> Option<&Detail> {
        self.details.get(&doc)
    }

    /// The name of a document, and its address if it has one.
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

    /// The name of a document inside a sentence.
    pub(super) fn short_name(&self, f: &mut String, doc: u64) -> fmt::Result {
        match self.detail(doc) {
            Some(detail) => write!(f, "<bdi>{}</bdi>", Text(&clip(&detail.id, MAX_SHORT_NAME))),
            None => write!(f, "document {}", Count(doc)),
        }
    }

    /// Two documents side by side.
    pub(super) fn compare(&self, f: &mut String, pair: &Pair) -> fmt::Result {
        f.write_str("<table class=\"diff\"><thead><tr>")?;
        for doc in [pair.a, pair.b] {
            f.write_str("<th scope=\"col\">")?;
            self.name(f, doc)?;
            if let Some(detail) = self.detail(doc) {
                let tokens = counted(detail.n_tokens.into(), "token", "tokens");
                let fate = if detail.kept { "kept" } else { "dropped" };
                write!(f, "<span class=\"fate\">{tokens}, {fate}</span>")?;
            }
            f.write_str("</th>")?;
        }
        f.write_str("</tr></thead><tbody>")?;
        match (self.texts.get(&pair.a), self.texts.get(&pair.b)) {
            (Some(Ok(a)), Some(Ok(b))) => {
                let tokenizer = Tokenizer { case: self.case };
                differences(f, a, b, tokenizer)?;
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

/// An address, to be followed if it leads to the web.
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

/// Why a text is not shown, if it is not.
fn missing(f: &mut String, text: Option<&texts::Text>) -> fmt::Result {
    let why = match text {
        Some(Err(why)) => why,
        Some(Ok(_)) => "This text could be read again, the other could not.",
        None => "Its place in the source is not known.",
    };
    write!(f, "<td class=\"gap\">{why}</td>")
}

fn differences(f: &mut String, a: &str, b: &str, tokenizer: Tokenizer) -> fmt::Result {
    let is_same_text = a == b;
    let (a, b) = (Pieces::new(a, tokenizer), Pieces::new(b, tokenizer));
    let diff = Diff::new(&a, &b);
    if diff.hunks.is_empty() {
        let n = N_OPENING.min(a.len());
        f.write_str("<tr>")?;
        cell(f, &a, 0..n, &[])?;
        cell(f, &b, 0..n, &[])?;
        f.write_str("</tr>")?;
        let how = match is_same_text {
            true => "the two texts are identical",
            false => "they differ only in case, punctuation or white space",
        };
        let n = counted(a.len() as u64, "token is", "tokens are");
        return gap(f, &format!("All {n} equal: {how}."));
    }
    for hunk in &diff.hunks {
        hidden(f, hunk.n_hidden)?;
        show(f, hunk, &a, &b)?;
    }
    hidden(f, diff.n_hidden_after)?;
    match diff.n_left {
        [0, 0] => Ok(()),
        [a, b] => {
            let (a, b) = (Count(a as u64), Count(b as u64));
            gap(
                f,
                &format!(
                    "There are more differences; the remaining {a} and {b} tokens are not shown."
                ),
            )
        }
    }
}

fn hidden(f: &mut String, n: usize) -> fmt::Result {
    match n {
        0 => Ok(()),
        n => gap(f, &counted(n as u64, "equal token", "equal tokens")),
    }
}

fn gap(f: &mut String, what: &str) -> fmt::Result {
    write!(f, "<tr><td class=\"gap\" colspan=\"2\">{what}</td></tr>")
}

fn show(f: &mut String, hunk: &Hunk, a: &Pieces<'_>, b: &Pieces<'_>) -> fmt::Result {
    let side = |of: fn(&Change) -> &Range<usize>| -> Vec<Range<usize>> {
        hunk.changes
            .iter()
            .map(|change| of(change).clone())
            .collect()
    };
    f.write_str("<tr>")?;
    cell(f, a, hunk.a.clone(), &side(|change| &change.a))?;
    cell(f, b, hunk.b.clone(), &side(|change| &change.b))?;
    f.write_str("</tr>")
}

/// One text's part of a hunk, with what only this text has marked.
fn cell(
    f: &mut String,
    pieces: &Pieces<'_>,
    shown: Range<usize>,
    marked: &[Range<usize>],
) -> fmt::Result {
    f.write_str("<td><bdi>")?;
    let mut at = shown.start;
    for mark in marked {
        run(f, pieces, at..mark.start)?;
        if !mark.is_empty() {
            marked_run(f, pieces, mark.clone())?;
        }
        at = mark.end;
    }
    run(f, pieces, at..shown.end)?;
    f.write_str("</bdi></td>")
}

/// Marks the text of some pieces but for the blanks after it.
fn marked_run(f: &mut String, pieces: &Pieces<'_>, range: Range<usize>) -> fmt::Result {
    let text = pieces.text(range.clone());
    let blanks = &text[text.trim_end().len()..];
    let mut marked = String::new();
    run(&mut marked, pieces, range)?;
    let marked = marked.strip_suffix(blanks).unwrap_or(&marked);
    write!(f, "<mark>{marked}</mark>{}", Text(&clip(blanks, 2)))
}

/// The text of some pieces, shortened if there are very many.
fn run(f: &mut String, pieces: &Pieces<'_>, range: Range<usize>) -> fmt::Result {
    if range.len() <= 2 * MAX_RUN {
        let text = clip(pieces.text(range), MAX_CHARS);
        return write!(f, "{}", Text(&text));
    }
    let head = range.start..range.start + MAX_RUN;
    let tail = range.end - MAX_RUN..range.end;
    let n = Count((range.len() - 2 * MAX_RUN) as u64);
    run(f, pieces, head)?;
    write!(f, "<span class=\"gap\"> [{n} tokens more] </span>")?;
    run(f, pieces, tail)
}
