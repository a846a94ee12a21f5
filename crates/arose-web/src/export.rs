//! Exports results as CSV or JSON Lines.

use std::fmt::Write as _;

use arose_search::{Hit, Query as Search, Request};
use axum::extract::{Query, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::answer::Refusal;
use crate::lanes::{Lane, Stop, work};
use crate::search::Ask as Searched;
use crate::site::Shared;

/// Maximum number of results in a file.
pub(crate) const MAX_RESULTS: usize = 10_000;

/// The columns of a CSV file.
const HEAD: &str = "rank,doc,cluster,exact_duplicates,near_duplicates,versions,kept,score,id,url,title,language,time,site\n";

/// What to export, and how. The options are those of a search.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    q: String,
    sort: String,
    all: String,
    versions: String,
    kept: String,
    captures: String,
    /// `csv` or `jsonl`.
    format: String,
}

pub(crate) async fn export(
    State(site): State<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let is_csv = ask.format == "csv";
    let text = work(&site, Lane::Heavy, move |view, stop| {
        let query: Search = ask
            .q
            .parse()
            .map_err(|error: arose_search::QueryError| Refusal::bad_request(error.to_string()))?;
        let searched = Searched {
            sort: ask.sort,
            all: ask.all,
            versions: ask.versions,
            kept: ask.kept,
            captures: ask.captures,
            ..Searched::default()
        };
        let request = Request {
            limit: MAX_RESULTS,
            per_site: 0,
            ..searched.request(view)
        };
        let found = view
            .index
            .search_while(&query, &request, &stop.as_go_on())?;
        let hits = found.ok_or_else(Stop::refusal)?.hits;
        Ok(match is_csv {
            true => as_csv(&hits),
            false => as_lines(&hits),
        })
    })
    .await?;
    let (kind, file) = match is_csv {
        true => (
            "text/csv; charset=utf-8",
            "attachment; filename=\"results.csv\"",
        ),
        false => (
            "application/jsonl",
            "attachment; filename=\"results.jsonl\"",
        ),
    };
    Ok(([(CONTENT_TYPE, kind), (CONTENT_DISPOSITION, file)], text).into_response())
}

fn as_lines(hits: &[Hit]) -> String {
    let lines = hits.iter().map(|hit| {
        let line = json!({
            "rank": hit.rank + 1,
            "doc": hit.doc,
            "cluster": hit.cluster,
            "exact_duplicates": hit.n_exact,
            "near_duplicates": hit.n_near,
            "versions": hit.n_versions,
            "kept": hit.kept,
            "score": hit.score,
            "id": hit.id,
            "url": hit.url,
            "title": hit.title,
            "language": hit.language,
            "time": hit.time,
            "site": hit.site,
        });
        format!("{line}\n")
    });
    lines.collect()
}

fn as_csv(hits: &[Hit]) -> String {
    let mut text = HEAD.to_owned();
    for hit in hits {
        let number = |value: Option<String>| value.unwrap_or_default();
        write!(
            text,
            "{},{},{},{},{},{},{},{},",
            hit.rank + 1,
            hit.doc,
            hit.cluster,
            hit.n_exact,
            hit.n_near,
            hit.n_versions,
            hit.kept,
            number(hit.score.map(|score| score.to_string())),
        )
        .expect("memory can be written to");
        let texts = [
            Some(&hit.id),
            hit.url.as_ref(),
            hit.title.as_ref(),
            hit.language.as_ref(),
        ];
        for value in texts {
            text.push_str(&cell(value.map_or("", |value| value)));
            text.push(',');
        }
        text.push_str(&number(hit.time.map(|time| time.to_string())));
        text.push(',');
        text.push_str(&cell(hit.site.as_deref().unwrap_or_default()));
        text.push('\n');
    }
    text
}

/// A text as a cell. Spreadsheets take some characters at its start for a formula, so a quote is
/// put before them.
fn cell(text: &str) -> String {
    let guard = match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => "'",
        false => "",
    };
    match text.contains([',', '"', '\n', '\r']) || !guard.is_empty() {
        true => format!("\"{guard}{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_hold_one_value() {
        assert_eq!(cell("a b"), "a b");
        assert_eq!(cell("a, \"b\"\n"), "\"a, \"\"b\"\"\n\"");
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
    }
}
