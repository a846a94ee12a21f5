//! Texts of documents for display, and their differences.

use std::path::PathBuf;

use arose::token::Tokenizer;
use arose_dedup::report::diff::{Bounds, Diff, Hunk, Pieces};
use arose_dedup::report::side_by_side::{self, Showing};
use arose_dedup::results::{Summary, documents, texts as read_texts};
use pyo3::prelude::*;

use crate::error::{self, AroseError};
use crate::options;

/// Return the texts of documents of a run, read from their sources.
#[pyfunction]
pub(crate) fn texts(py: Python<'_>, output: PathBuf, docs: Vec<u64>) -> PyResult<Vec<String>> {
    py.detach(|| {
        let failed = |cause| AroseError::new_err(error::words(&cause));
        let summary = Summary::open(&output.join("summary.json")).map_err(failed)?;
        let path = output.join("documents.parquet");
        let mut ascending = docs.clone();
        ascending.sort_unstable();
        ascending.dedup();
        let details = documents::details(&path, &ascending).map_err(failed)?;
        let found = read_texts(&details, &summary.directory(&output), &summary.reading());
        let texts = docs.iter().map(|doc| match found.get(doc) {
            Some(Ok(text)) => Ok(text.clone()),
            Some(Err(why)) => Err(AroseError::new_err(format!("document {doc}: {why}"))),
            None => Err(AroseError::new_err(format!("no document {doc}"))),
        });
        texts.collect()
    })
}

/// Write the report of a run that has only its tables.
#[pyfunction]
pub(crate) fn write_report(py: Python<'_>, output: PathBuf, options: &str) -> PyResult<()> {
    let config = options::parse::<options::Options>(options)?.config()?;
    let written = py.detach(|| arose_dedup::report::write(&output, &config.corpus));
    written.map_err(|cause| AroseError::new_err(error::words(&cause)))
}

/// Return the differences of two texts: as text, `[-only a-]` and `{+only b+}`, and as rows of an
/// HTML table.
#[pyfunction]
pub(crate) fn differences(py: Python<'_>, a: &str, b: &str) -> (String, String) {
    py.detach(|| {
        let mut html = String::new();
        let tokenizer = Tokenizer::default();
        let showing = Showing {
            tokenizer,
            bounds: Bounds::PAGE,
            frames: None,
        };
        side_by_side::rows(&mut html, [a, b], showing).expect("memory can be written to");
        let text = match (marked(a, b, tokenizer), a == b) {
            (Some(text), _) => text,
            (None, true) => "no differences".to_owned(),
            (None, false) => "no differences except case, punctuation and whitespace".to_owned(),
        };
        (text, html)
    })
}

/// Returns the changes as text; none if the tokens are the same.
fn marked(a: &str, b: &str, tokenizer: Tokenizer) -> Option<String> {
    let (a, b) = (Pieces::new(a, tokenizer), Pieces::new(b, tokenizer));
    let diff = Diff::new(&a, &b, Bounds::PAGE);
    if diff.hunks.is_empty() {
        return None;
    }
    let mut text = String::new();
    for hunk in &diff.hunks {
        if hunk.n_hidden > 0 {
            text.push_str("… ");
        }
        mark(&mut text, hunk, &a, &b);
    }
    if diff.n_hidden_after > 0 || diff.n_left != [0, 0] {
        text.push('…');
    }
    Some(text.trim_end().to_owned())
}

fn mark(text: &mut String, hunk: &Hunk, a: &Pieces<'_>, b: &Pieces<'_>) {
    let mut shown = hunk.a.start;
    for change in &hunk.changes {
        text.push_str(a.text(shown..change.a.start));
        for (pieces, range, signs) in [(a, &change.a, ["[-", "-] "]), (b, &change.b, ["{+", "+} "])]
        {
            if !range.is_empty() {
                let words = pieces.text(range.clone()).trim_end();
                text.extend([signs[0], words, signs[1]]);
            }
        }
        shown = change.a.end;
    }
    text.push_str(a.text(shown..hunk.a.end));
}
