//! The pages of clusters: the list, and one cluster.

use arose_dedup::report::html::{Count, counted};
use arose_dedup::results::{Detail, details};
use askama::Template;
use axum::extract::{Path, Query, State};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::catalog::{Filter, Sort};
use crate::html::{Markup, address, in_address, name, render};
use crate::lanes::{Lane, work};
use crate::nav::{Nav, Tab};
use crate::site::{Run, Shared, View};

/// Clusters per page.
pub(crate) const PER_PAGE: usize = 25;

/// Members per page.
pub(crate) const MEMBERS_PER_PAGE: usize = 100;

/// The options of a list of clusters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    pub(crate) sort: String,
    pub(crate) site: String,
    pub(crate) min: String,
    pub(crate) mixed: String,
    pub(crate) page: String,
}

impl Ask {
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            site: self.site.chars().take(255).collect(),
            min_size: self.min.trim().parse().unwrap_or(2),
            is_mixed: !self.mixed.is_empty(),
        }
    }

    pub(crate) fn page(&self) -> usize {
        page_number(&self.page)
    }
}

/// The number of a page, from 1; an invalid number means the first.
pub(crate) fn page_number(text: &str) -> usize {
    text.trim().parse().unwrap_or(1).clamp(1, 1_000_000)
}

/// Links to the previous and next page.
pub(crate) struct Turn {
    pub(crate) page: usize,
    pub(crate) n_pages: usize,
    pub(crate) before: Option<String>,
    pub(crate) after: Option<String>,
}

impl Turn {
    /// Pages of `per_page` of `n` items, each at the URL that `address` returns for its number.
    pub(crate) fn new(
        page: usize,
        n: usize,
        per_page: usize,
        address: impl Fn(usize) -> String,
    ) -> Self {
        let n_pages = n.div_ceil(per_page).max(1);
        Self {
            page,
            n_pages,
            before: (page > 1).then(|| address((page - 1).min(n_pages))),
            after: (page < n_pages).then(|| address(page + 1)),
        }
    }
}

#[derive(Template)]
#[template(path = "clusters.html")]
struct ListPage {
    nav: Nav,
    n_all: String,
    n_found: String,
    sort: &'static str,
    site: String,
    min: usize,
    is_mixed: bool,
    rows: Vec<ListRow>,
    turn: Turn,
}

struct ListRow {
    id: u64,
    size: Count,
    lowest: String,
    site: Markup,
    is_mixed: bool,
    name: Markup,
}

pub(crate) async fn list(
    State(site): State<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let page = work(&site, Lane::Light, move |view, _| list_page(view, &ask)).await?;
    Ok(Html(render(&page)).into_response())
}

fn list_page(view: &View, ask: &Ask) -> Result<ListPage, Refusal> {
    let run = view.run()?;
    let (sort, filter, page) = (Sort::parse(&ask.sort), ask.filter(), ask.page());
    let offset = (page - 1) * PER_PAGE;
    let (n_found, clusters) = run.catalog.list(sort, &filter, offset, PER_PAGE);
    let mut ids: Vec<u64> = clusters.iter().map(|cluster| cluster.id).collect();
    ids.sort_unstable();
    let first = details(&run.documents, &ids)?;
    let rows = clusters.iter().map(|cluster| {
        let detail = first.get(&cluster.id);
        ListRow {
            id: cluster.id,
            size: Count(cluster.size() as u64),
            lowest: similarity(cluster.lowest),
            site: run.catalog.site(cluster).map(name).unwrap_or_default(),
            is_mixed: cluster.is_mixed,
            name: detail
                .map(|detail| name(short_name(detail)))
                .unwrap_or_default(),
        }
    });
    let rows = rows.collect();
    let mixed = if filter.is_mixed { "&mixed=1" } else { "" };
    let (site, min) = (in_address(&filter.site), filter.min_size);
    let turn = Turn::new(page, n_found, PER_PAGE, |page| {
        format!(
            "/clusters?sort={}&site={site}&min={min}{mixed}&page={page}",
            sort.as_str()
        )
    });
    Ok(ListPage {
        nav: Nav::new(view, Tab::Clusters),
        n_all: counted(run.catalog.len() as u64, "cluster", "clusters"),
        n_found: counted(n_found as u64, "cluster", "clusters"),
        sort: sort.as_str(),
        min,
        is_mixed: filter.is_mixed,
        site: filter.site,
        rows,
        turn,
    })
}

/// The URL of a document without its scheme, or its name.
fn short_name(detail: &Detail) -> &str {
    let url = detail.url.as_deref();
    let url = url.map(|url| url.split_once("://").map_or(url, |(_, rest)| rest));
    url.unwrap_or(&detail.id)
}

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    nav: Nav,
    size: String,
    site: Markup,
    is_mixed: bool,
    lowest: String,
    rows: Vec<Member>,
    turn: Turn,
}

struct Member {
    doc: u64,
    name: Markup,
    address: Markup,
    kept: bool,
    kept_doc: Option<u64>,
    kept_name: Markup,
    rule: &'static str,
    similarity: String,
    n_tokens: Count,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Place {
    page: String,
}

pub(crate) async fn one(
    State(site): State<Shared>,
    Path(cluster): Path<String>,
    Query(place): Query<Place>,
) -> Result<Response, Refusal> {
    let page = work(&site, Lane::Light, move |view, _| {
        cluster_page(view, &cluster, page_number(&place.page))
    })
    .await?;
    Ok(Html(render(&page)).into_response())
}

/// The cluster with this number, or why there is none.
pub(crate) fn find<'a>(run: &'a Run, id: &str) -> Result<&'a crate::catalog::Cluster, Refusal> {
    let found = id.parse().ok().and_then(|id| run.catalog.get(id));
    found.ok_or_else(|| {
        Refusal::not_found("There is no cluster of at least two documents with this number. A cluster has the number of its kept document.")
    })
}

fn cluster_page(view: &View, id: &str, page: usize) -> Result<ClusterPage, Refusal> {
    let run = view.run()?;
    let cluster = find(run, id)?;
    let members = run.catalog.members(cluster);
    let shown: Vec<u64> = members
        .iter()
        .skip((page - 1) * MEMBERS_PER_PAGE)
        .take(MEMBERS_PER_PAGE)
        .map(|&doc| u64::from(doc))
        .collect();
    let details_of = details(&run.documents, &shown)?;
    let mut kept: Vec<u64> = details_of
        .values()
        .filter_map(|detail| detail.kept_doc)
        .collect();
    kept.sort_unstable();
    kept.dedup();
    let kept = details(&run.documents, &kept)?;
    let mut rows: Vec<Member> = details_of
        .iter()
        .map(|(&doc, detail)| {
            let kept_name = detail.kept_doc.and_then(|doc| kept.get(&doc));
            Member {
                doc,
                name: name(&detail.id),
                address: detail.url.as_deref().map(address).unwrap_or_default(),
                kept: detail.kept,
                kept_doc: detail.kept_doc,
                kept_name: kept_name
                    .map(|kept| name(short_name(kept)))
                    .unwrap_or_default(),
                rule: rule_in_words(detail.rule.as_deref()),
                similarity: similarity(detail.similarity),
                n_tokens: Count(detail.n_tokens.into()),
            }
        })
        .collect();
    rows.sort_by_key(|row| !row.kept);
    let turn = Turn::new(page, members.len(), MEMBERS_PER_PAGE, |page| {
        format!("/cluster/{}?page={page}", cluster.id)
    });
    Ok(ClusterPage {
        nav: Nav::new(view, Tab::Clusters),
        size: counted(members.len() as u64, "document", "documents"),
        site: run.catalog.site(cluster).map(name).unwrap_or_default(),
        is_mixed: cluster.is_mixed,
        lowest: similarity(cluster.lowest),
        rows,
        turn,
    })
}

/// A similarity, or a dash.
pub(crate) fn similarity(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"))
}

/// A rule in words.
pub(crate) fn rule_in_words(rule: Option<&str>) -> &'static str {
    match rule {
        Some("exact") => "exact duplicate",
        Some("jaccard") => "Jaccard similarity",
        Some("same") => "the same document",
        Some("content") => "another version of the same content",
        Some("contained") => "containment",
        Some("url") => "the same URL",
        Some("b") => "B-sim",
        Some("c") => "C-sim",
        Some("combined") => "B-sim and C-sim",
        Some("site-same") => "B-sim and C-sim, same site",
        Some("site-cross") => "C-sim, different sites",
        Some("site-union") => "B-sim and C-sim, different sites",
        Some(_) => "another rule",
        None => "",
    }
}
