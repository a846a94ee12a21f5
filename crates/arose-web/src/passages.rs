//! Marks the passages of a document that other documents also contain.

use std::ops::Range;

use arose_dedup::report::html::counted;
use arose_search::{Quotation, Quotations, Quoting};

use crate::answer::Refusal;
use crate::html::{Markup, name, shown};
use crate::lanes::Stop;
use crate::site::View;

/// Minimum number of tokens of a passage: the default of `arose passages`.
const MIN_TOKENS: usize = 50;

/// Maximum number of bytes of a text that are compared.
const MAX_BYTES: usize = 256 << 10;

/// Maximum number of documents to compare.
const MAX_DOCUMENTS: usize = 200;

/// Maximum number of documents listed per passage.
const MAX_LISTED: usize = 5;

/// The passages that a document shares with others.
#[derive(Default)]
pub(crate) struct Shared {
    found: Option<Quotations>,
    /// The passages in the text, as byte ranges that do not overlap.
    passages: Vec<Range<usize>>,
    is_cut: bool,
}

/// Their description on a page.
pub(crate) struct Elsewhere {
    /// One sentence; none if nothing is shared.
    pub(crate) in_words: Option<String>,
    /// The passages in order.
    pub(crate) passages: Vec<Listed>,
}

/// A passage and the documents that contain parts of it.
pub(crate) struct Listed {
    pub(crate) number: usize,
    pub(crate) documents: Vec<(u64, Markup)>,
    pub(crate) n_more: usize,
}

impl Shared {
    /// Compares a document with all others.
    pub(crate) fn find(view: &View, doc: u64, text: &str, stop: &Stop) -> Result<Self, Refusal> {
        let end = text.floor_char_boundary(MAX_BYTES);
        let quoting = Quoting {
            min_tokens: MIN_TOKENS,
            except: Some(doc),
            max_documents: MAX_DOCUMENTS,
        };
        let go_on = stop.as_go_on();
        let found = view
            .index
            .quotations_while(&text[..end], &quoting, &go_on)?;
        let found = found.ok_or_else(Stop::refusal)?;
        let ranges = found.documents.iter().flat_map(|other| &other.passages);
        let passages = union(ranges.cloned().collect());
        Ok(Self {
            found: Some(found),
            passages,
            is_cut: end < text.len(),
        })
    }

    /// The text with the passages marked.
    pub(crate) fn marked(&self, text: &str) -> Markup {
        let mut marked = String::new();
        let mut at = 0;
        for (i, passage) in self.passages.iter().enumerate() {
            marked.push_str(&shown(&text[at..passage.start]).0);
            let number = i + 1;
            let inner = shown(&text[passage.clone()]);
            marked.push_str(&format!(
                "<mark id=\"p{number}\">{inner}<a class=\"elsewhere\" href=\"#e{number}\" \
                 aria-label=\"Where passage {number} occurs\">{number}</a></mark>"
            ));
            at = passage.end;
        }
        marked.push_str(&shown(&text[at..]).0);
        Markup(marked)
    }

    /// The description below the text.
    pub(crate) fn elsewhere(&self) -> Elsewhere {
        let Some(found) = self.found.as_ref().filter(|_| !self.passages.is_empty()) else {
            return Elsewhere {
                in_words: None,
                passages: Vec::new(),
            };
        };
        let passages = (1..).zip(&self.passages);
        let passages = passages.map(|(number, bytes)| listed(number, bytes, &found.documents));
        Elsewhere {
            in_words: Some(self.in_words(found)),
            passages: passages.collect(),
        }
    }

    fn in_words(&self, found: &Quotations) -> String {
        let n_documents = found.documents.len() as u64;
        let mut words = format!(
            "{} of at least {MIN_TOKENS} tokens also {} in {}.",
            counted(self.passages.len() as u64, "passage", "passages"),
            match self.passages.len() {
                1 => "occurs",
                _ => "occur",
            },
            counted(n_documents, "other document", "other documents"),
        );
        if found.n_left_out > 0 {
            let left_out = counted(
                found.n_left_out as u64,
                "similar one was",
                "similar ones were",
            );
            words.push_str(&format!(" A further {left_out} not compared."));
        }
        if self.is_cut {
            words.push_str(" Only the first 256 KiB of the text were compared.");
        }
        words
    }
}

fn listed(number: usize, bytes: &Range<usize>, documents: &[Quotation]) -> Listed {
    let is_shared = |other: &&Quotation| {
        let mut theirs = other.passages.iter();
        theirs.any(|theirs| theirs.start < bytes.end && bytes.start < theirs.end)
    };
    let others: Vec<&Quotation> = documents.iter().filter(is_shared).collect();
    let named = others.iter().take(MAX_LISTED).map(|other| {
        let document = &other.document;
        let title = document.title.as_deref().filter(|title| !title.is_empty());
        let title = title.or(document.url.as_deref()).unwrap_or(&document.id);
        (other.doc, name(title))
    });
    Listed {
        number,
        documents: named.collect(),
        n_more: others.len().saturating_sub(MAX_LISTED),
    }
}

/// The bytes that are in any of these ranges, as ranges that do not touch.
fn union(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut union: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match union.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => union.push(range),
        }
    }
    union
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined() {
        assert_eq!(union(vec![5..9, 0..3, 2..4, 6..7]), [0..4, 5..9]);
        assert_eq!(union(vec![3..5, 0..3]), std::slice::from_ref(&(0..5)));
        assert_eq!(union(Vec::new()), Vec::<Range<usize>>::new());
    }
}
