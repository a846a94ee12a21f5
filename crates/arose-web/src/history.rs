//! The history of a page that a crawl visited again: every visit, and two versions side by side.

use arose::token::Tokenizer;
use arose_crawl::PageVersion;
use arose_dedup::report::diff::Bounds;
use arose_dedup::report::side_by_side::{Showing, numbered_rows};
use askama::Template;
use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::html::{Markup, address, in_address, render};
use crate::lanes::{Lane, work};
use crate::nav::{Nav, Tab};
use crate::site::{Shared, View};

/// Maximum number of visits listed, the last ones.
const MAX_ROWS: usize = 200;

/// The requested page, and the numbers of two of its versions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    url: String,
    from: Option<usize>,
    to: Option<usize>,
}

#[derive(Template)]
#[template(path = "history.html")]
struct Page {
    nav: Nav,
    address: Markup,
    state: &'static str,
    n_visits: usize,
    n_versions: usize,
    n_left_out: usize,
    rows: Vec<Row>,
    compared: Option<[String; 2]>,
    differences: Markup,
}

/// A visit.
struct Row {
    date: String,
    status: u16,
    what: &'static str,
    /// The number of the version, and the link that compares it with the previous one.
    version: Option<(usize, String)>,
}

pub(crate) async fn page(
    State(site): State<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let page = work(&site, Lane::Heavy, move |view, _| {
        Ok(render(&page_of(view, &ask)?))
    })
    .await?;
    Ok(Html(page).into_response())
}

/// The link to the history of a page, if the directory is that of a crawl.
pub(crate) fn link(view: &View, url: Option<&str>) -> Option<String> {
    let url = url.filter(|_| arose_crawl::is_crawl(&view.folder.path))?;
    Some(format!("/history?url={}", in_address(url)))
}

fn page_of(view: &View, ask: &Ask) -> Result<Page, Refusal> {
    let folder = &view.folder.path;
    if !arose_crawl::is_crawl(folder) {
        let why = "Only the directory of a crawl has histories of pages.";
        return Err(Refusal::not_found(why));
    }
    let wrong = |error: arose_crawl::Error| Refusal::bad_request(format!("{error}."));
    let visits = arose_crawl::versions(folder, &ask.url).map_err(wrong)?;
    if visits.is_empty() {
        return Err(Refusal::not_found("The crawl has not fetched this page."));
    }
    let state = arose_crawl::page_state(folder, &ask.url).map_err(wrong)?;
    let versions: Vec<&PageVersion> = visits.iter().filter(|v| v.text.is_some()).collect();
    let last = versions.len();
    let to = ask.to.unwrap_or(last).clamp(1, last.max(1));
    let from = ask
        .from
        .unwrap_or(to.saturating_sub(1))
        .clamp(1, last.max(1));
    let compared = [from, to].map(|number| versions.get(number - 1).copied());
    let (compared, differences) = match compared {
        [Some(a), Some(b)] if from != to => {
            let title = |number: usize, visit: &PageVersion| {
                format!("Version {number}, {}", time(&visit.date))
            };
            (Some([title(from, a), title(to, b)]), differences(a, b))
        }
        _ => (None, Markup::default()),
    };
    Ok(Page {
        nav: Nav::new(view, Tab::Crawl),
        address: address(&ask.url),
        state: in_words(state),
        n_visits: visits.len(),
        n_versions: last,
        n_left_out: visits.len().saturating_sub(MAX_ROWS),
        rows: rows(&visits, &ask.url),
        compared,
        differences,
    })
}

fn in_words(state: Option<&'static str>) -> &'static str {
    match state {
        Some("live") => "visited when due",
        Some("missing") => "not found at the last visit; it will be tried again",
        Some("gone") => "gone: not found at three visits",
        Some("forbidden") => "no longer visited: robots.txt or the settings do not allow it",
        _ => "not in the page table",
    }
}

/// The last visits, the latest first.
fn rows(visits: &[PageVersion], url: &str) -> Vec<Row> {
    let mut n = 0;
    let mut rows: Vec<Row> = visits
        .iter()
        .map(|visit| {
            let is_version = visit.text.is_some();
            n += usize::from(is_version);
            let before = n.saturating_sub(1).max(1);
            let link = format!("/history?url={}&from={before}&to={n}", in_address(url));
            Row {
                date: time(&visit.date),
                status: visit.status,
                what: match (visit.is_same, is_version, n) {
                    (true, ..) => "unchanged",
                    (false, true, 1) => "first version",
                    (false, true, _) => "changed",
                    (false, false, _) => "no text",
                },
                version: is_version.then_some((n, link)),
            }
        })
        .collect();
    rows.reverse();
    rows.truncate(MAX_ROWS);
    rows
}

/// Formats 14 digits as `2026-11-17 08:00:00`.
fn time(digits: &str) -> String {
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    format!(
        "{}-{}-{} {}:{}:{}",
        part(0, 4),
        part(4, 6),
        part(6, 8),
        part(8, 10),
        part(10, 12),
        part(12, 14)
    )
}

fn differences(a: &PageVersion, b: &PageVersion) -> Markup {
    let texts = [a, b].map(|visit| visit.text.as_deref().unwrap_or_default());
    let showing = Showing {
        tokenizer: Tokenizer::default(),
        bounds: Bounds {
            context: 15,
            ..Bounds::PAGE
        },
        frames: None,
    };
    let mut table = String::new();
    numbered_rows(&mut table, texts, showing).expect("memory can be written to");
    Markup(table)
}
