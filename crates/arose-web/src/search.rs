//! The page of search.

use arose_dedup::report::html::{Count, counted};
use arose_search::{Collapse, Fragment, Hit, Order, Query as Search, Request};
use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::clusters::{Turn, page_number};
use crate::html::{Markup, address, date, in_address, name, render, shown};
use crate::site::{Shared, Site, work};

/// Results on a page.
const PER_PAGE: usize = 10;

/// Near duplicates shown when a result is expanded.
const MAX_EXPANDED: usize = 50;

/// What a search is asked for with.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    pub(crate) q: String,
    pub(crate) sort: String,
    pub(crate) all: String,
    pub(crate) page: String,
    /// The cluster whose members are to be shown.
    pub(crate) expand: String,
}

impl Ask {
    pub(crate) fn order(&self) -> Order {
        match &self.sort[..] {
            "newest" => Order::Newest,
            _ => Order::Score,
        }
    }

    pub(crate) fn collapse(&self) -> Collapse {
        match &self.all[..] {
            "" => Collapse::ByCluster,
            _ => Collapse::Nothing,
        }
    }

    /// The address of this search, but for page and expansion.
    fn address(&self) -> String {
        let sort = if self.order() == Order::Newest {
            "&sort=newest"
        } else {
            ""
        };
        let all = if self.collapse() == Collapse::Nothing {
            "&all=1"
        } else {
            ""
        };
        format!("/?q={}{sort}{all}", in_address(&self.q))
    }
}

#[derive(Template)]
#[template(path = "search.html")]
struct Page {
    q: String,
    is_newest: bool,
    is_all: bool,
    n_documents: Count,
    has_run: bool,
    fault: Option<String>,
    found: Option<Found>,
}

struct Found {
    in_words: String,
    results: Vec<Entry>,
    turn: Turn,
}

struct Entry {
    number: usize,
    doc: u64,
    cluster: u64,
    title: Markup,
    address: Markup,
    when: String,
    language: Markup,
    snippet: Markup,
    n_alike: u64,
    alike: String,
    expand: String,
    members: Vec<Member>,
    n_hidden: u64,
}

struct Member {
    doc: u64,
    title: Markup,
    address: Markup,
    kept: bool,
    snippet: Markup,
}

pub(crate) async fn page(
    State(site): State<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let (status, page) = work(&site, move |site| {
        let page = answer(site, &ask)?;
        let status = match page.fault {
            Some(_) => StatusCode::BAD_REQUEST,
            None => StatusCode::OK,
        };
        Ok((status, render(&page)))
    })
    .await?;
    Ok((status, Html(page)).into_response())
}

fn answer(site: &Site, ask: &Ask) -> Result<Page, Refusal> {
    let (mut fault, mut found) = (None, None);
    if !ask.q.trim().is_empty() {
        match ask.q.parse() {
            Ok(query) => found = Some(find(site, ask, &query)?),
            Err(error) => fault = Some(error.to_string()),
        }
    }
    Ok(Page {
        q: ask.q.clone(),
        is_newest: ask.order() == Order::Newest,
        is_all: ask.collapse() == Collapse::Nothing,
        n_documents: Count(site.index.n_documents()),
        has_run: site.run.is_some(),
        fault,
        found,
    })
}

fn find(site: &Site, ask: &Ask, query: &Search) -> Result<Found, Refusal> {
    let page = page_number(&ask.page);
    let offset = (page - 1) * PER_PAGE;
    let request = Request {
        offset,
        limit: PER_PAGE,
        order: ask.order(),
        collapse: ask.collapse(),
        cluster: None,
    };
    let results = site.index.search(query, &request)?;
    let expanded: Option<u64> = ask.expand.parse().ok();
    let base = ask.address();
    let mut shown = Vec::new();
    for (number, hit) in (offset + 1..).zip(&results.hits) {
        let members = match expanded == Some(hit.cluster) {
            true => members(site, query, hit)?,
            false => Vec::new(),
        };
        let expand = format!("{base}&page={page}&expand={}#r{number}", hit.cluster);
        shown.push(result(number, hit, expand, members));
    }
    let n_pages = usize::try_from(results.n_results).unwrap_or(usize::MAX);
    let n_pages = n_pages.min(arose_search::MAX_RESULTS);
    let documents = counted(results.n_documents, "document", "documents");
    Ok(Found {
        in_words: match results.n_documents == results.n_results {
            true => documents,
            false => format!(
                "{documents} in {}",
                counted(results.n_results, "result", "results")
            ),
        },
        results: shown,
        turn: Turn::new(page, n_pages, PER_PAGE, |page| {
            format!("{base}&page={page}")
        }),
    })
}

/// The other documents of a result's cluster that match.
fn members(site: &Site, query: &Search, hit: &Hit) -> Result<Vec<Member>, Refusal> {
    let request = Request {
        limit: MAX_EXPANDED + 1,
        collapse: Collapse::Nothing,
        cluster: Some(hit.cluster),
        ..Request::default()
    };
    let found = site.index.search(query, &request)?.hits;
    let others = found.into_iter().filter(|member| member.doc != hit.doc);
    let members = others.take(MAX_EXPANDED).map(|member| Member {
        doc: member.doc,
        title: title(&member),
        address: member.url.as_deref().map(address).unwrap_or_default(),
        kept: member.kept,
        snippet: marked(&member.snippet),
    });
    Ok(members.collect())
}

fn result(number: usize, hit: &Hit, expand: String, members: Vec<Member>) -> Entry {
    Entry {
        number,
        doc: hit.doc,
        cluster: hit.cluster,
        title: title(hit),
        address: hit.url.as_deref().map(address).unwrap_or_default(),
        when: hit.time.map(date).unwrap_or_default(),
        language: hit.language.as_deref().map(name).unwrap_or_default(),
        snippet: marked(&hit.snippet),
        n_alike: hit.n_alike,
        alike: counted(hit.n_alike, "near duplicate", "near duplicates"),
        expand,
        n_hidden: hit.n_alike.saturating_sub(members.len() as u64),
        members,
    }
}

fn title(hit: &Hit) -> Markup {
    let title = hit
        .title
        .as_deref()
        .map(str::trim)
        .filter(|title| !title.is_empty());
    let last_of_url = hit.url.as_deref().map(|url| {
        let path = url.split(['?', '#']).next().unwrap_or(url);
        path.trim_end_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(path)
    });
    let last_of_url = last_of_url.filter(|part| !part.is_empty());
    name(title.or(last_of_url).unwrap_or(&hit.id))
}

/// A snippet with what was asked for marked.
fn marked(fragments: &[Fragment]) -> Markup {
    let parts = fragments.iter().map(|fragment| {
        let text = shown(&fragment.text);
        match fragment.marked {
            true => format!("<mark>{text}</mark>"),
            false => text.0,
        }
    });
    Markup(parts.collect())
}
