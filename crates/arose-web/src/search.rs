//! The search page.

use arose_dedup::report::html::{Count, counted};
use arose_search::{
    Collapse, Facets, Fragment, Hit, Order, Query as Search, Request, Results, Scope, Versions,
};
use askama::Template;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::export;
use crate::html::{Markup, address, date, in_address, name, render, shown};
use crate::lanes::{Stop, work_for};
use crate::nav::{Nav, Tab};
use crate::site::{Shared, View};

/// Results per page.
const PER_PAGE: usize = 10;

/// Results per site on one page.
const PER_SITE: usize = 2;

/// Near duplicates shown when a result is expanded.
const MAX_EXPANDED: usize = 50;

/// Parameters of a search.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    pub(crate) q: String,
    pub(crate) sort: String,
    pub(crate) all: String,
    /// Show versions one by one.
    pub(crate) versions: String,
    /// Show only kept documents.
    pub(crate) kept: String,
    /// Which captures of a page to show: `all`, `current`, or what the server is set to.
    pub(crate) captures: String,
    /// Number of results before the first one shown.
    pub(crate) from: String,
    /// The cluster whose members are shown.
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
        match (&self.all[..], &self.versions[..]) {
            ("", "") => Collapse::Content,
            ("", _) => Collapse::Same,
            _ => Collapse::Nothing,
        }
    }

    fn scope(&self) -> Scope {
        match &self.kept[..] {
            "" => Scope::All,
            _ => Scope::Kept,
        }
    }

    /// Which captures are wanted; none if that is left to the server.
    pub(crate) fn captures(&self) -> Option<Versions> {
        match &self.captures[..] {
            "all" => Some(Versions::All),
            "current" => Some(Versions::Current),
            _ => None,
        }
    }

    /// The first page of results. If every document is a result, results per site are not limited.
    pub(crate) fn request(&self, view: &View) -> Request {
        Request {
            offset: 0,
            limit: PER_PAGE,
            order: self.order(),
            collapse: self.collapse(),
            cluster: None,
            group: None,
            scope: self.scope(),
            versions: view.versions(self.captures()),
            per_site: match self.collapse() {
                Collapse::Content | Collapse::Same => PER_SITE,
                Collapse::Nothing => 0,
            },
        }
    }

    /// The options of this search in a URL, for another query.
    fn options(&self, q: &str) -> String {
        let mut address = format!("q={}", in_address(q));
        if self.order() == Order::Newest {
            address.push_str("&sort=newest");
        }
        match self.collapse() {
            Collapse::Content => {}
            Collapse::Same => address.push_str("&versions=1"),
            Collapse::Nothing => address.push_str("&all=1"),
        }
        if self.scope() == Scope::Kept {
            address.push_str("&kept=1");
        }
        match self.captures() {
            None => {}
            Some(Versions::All) => address.push_str("&captures=all"),
            Some(Versions::Current) => address.push_str("&captures=current"),
        }
        address
    }

    /// The URL of this search, without offset and expansion.
    fn address(&self) -> String {
        format!("/?{}", self.options(&self.q))
    }

    /// The URL of this search with one more condition.
    fn narrowed(&self, condition: &str) -> String {
        // The query is one condition, whatever its parts.
        let q = match self.q.contains(" OR ") {
            true => format!("({}) {condition}", self.q.trim()),
            false => format!("{} {condition}", self.q.trim()),
        };
        format!("/?{}", self.options(&q))
    }
}

#[derive(Template)]
#[template(path = "search.html")]
struct Page {
    nav: Nav,
    q: String,
    is_newest: bool,
    is_all: bool,
    /// Whether versions are shown one by one.
    is_versions: bool,
    is_kept: bool,
    /// Whether all captures are shown.
    is_every: bool,
    /// Whether pages may have several captures.
    has_captures: bool,
    n_documents: String,
    has_run: bool,
    /// Whether documents have versions.
    has_versions: bool,
    fault: Option<String>,
    found: Option<Listing>,
}

struct Listing {
    in_words: String,
    results: Vec<Entry>,
    facets: Vec<Facet>,
    first: Option<String>,
    next: Option<String>,
    csv: String,
    lines: String,
    max_export: Count,
}

/// Documents by site, language or year.
struct Facet {
    title: &'static str,
    values: Vec<(Markup, Count, String)>,
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
    /// The duplicates that it represents, in words.
    duplicates: Option<String>,
    expand: String,
    members: Vec<Member>,
    n_hidden: u64,
    is_dropped: bool,
    /// Whether the crawler found nothing there at its last visits.
    is_gone: bool,
    /// The name of its site and the link to its other results.
    more: Option<(Markup, String)>,
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
    let query = match ask.q.trim().is_empty() {
        true => Ok(None),
        false => ask.q.parse::<Search>().map(Some),
    };
    let known = query.clone().unwrap_or_default();
    let (status, page) = work_for(&site, known, move |view, stop| {
        let page = answer(view, &ask, query, stop)?;
        let status = match page.fault {
            Some(_) => StatusCode::BAD_REQUEST,
            None => StatusCode::OK,
        };
        Ok((status, render(&page)))
    })
    .await?;
    Ok((status, Html(page)).into_response())
}

fn answer(
    view: &View,
    ask: &Ask,
    query: Result<Option<Search>, arose_search::QueryError>,
    stop: &Stop,
) -> Result<Page, Refusal> {
    let (fault, found) = match query {
        Ok(None) => (None, None),
        Ok(Some(query)) => (None, Some(find(view, ask, &query, stop)?)),
        Err(error) => (Some(error.to_string()), None),
    };
    Ok(Page {
        nav: Nav::new(view, Tab::Search),
        q: ask.q.clone(),
        is_newest: ask.order() == Order::Newest,
        is_all: ask.collapse() == Collapse::Nothing,
        is_versions: ask.collapse() == Collapse::Same,
        is_kept: ask.scope() == Scope::Kept,
        is_every: view.versions(ask.captures()) == Versions::All,
        has_captures: view.index.has_superseded()?,
        n_documents: counted(view.index.n_documents(), "document", "documents"),
        has_run: view.run.is_some(),
        has_versions: view.index.has_versions(),
        fault,
        found,
    })
}

fn find(view: &View, ask: &Ask, query: &Search, stop: &Stop) -> Result<Listing, Refusal> {
    let from: usize = ask.from.trim().parse().unwrap_or(0);
    let request = Request {
        offset: from,
        ..ask.request(view)
    };
    let go_on = stop.as_go_on();
    let results = view.index.search_while(query, &request, &go_on)?;
    let results = results.ok_or_else(Stop::refusal)?;
    let facets = view.index.facets_while(query, &request, &go_on)?;
    let facets = facets.ok_or_else(Stop::refusal)?;
    let expanded: Option<u64> = ask.expand.parse().ok();
    let mut entries = Vec::new();
    for hit in &results.hits {
        let members = match expanded == Some(head(ask, hit)) {
            true => members(view, ask, query, hit, stop)?,
            false => Vec::new(),
        };
        entries.push(Entry {
            is_gone: view.is_gone(hit),
            ..entry(ask, from, hit, members)
        });
    }
    let export = format!("/export?{}", ask.options(&ask.q));
    Ok(Listing {
        in_words: in_words(&results, from),
        results: entries,
        facets: shown_facets(ask, &facets),
        first: (from > 0).then(|| ask.address()),
        next: results
            .next
            .map(|next| format!("{}&from={next}", ask.address())),
        csv: format!("{export}&format=csv"),
        lines: format!("{export}&format=jsonl"),
        max_export: Count(results.n_results.min(export::MAX_RESULTS as u64)),
    })
}

fn in_words(results: &Results, from: usize) -> String {
    let documents = counted(results.n_documents, "document", "documents");
    let mut words = match results.n_documents == results.n_results {
        true => documents,
        false => format!(
            "{documents} in {}",
            counted(results.n_results, "result", "results")
        ),
    };
    if from > 0 {
        words.push_str(&format!(", after the first {}", Count(from as u64)));
    }
    words
}

/// The informative counts: those with at least two values, or with one that not all documents have.
fn shown_facets(ask: &Ask, facets: &Facets) -> Vec<Facet> {
    let named = |field: &str, values: &[(String, u64)]| -> Vec<(Markup, Count, String)> {
        let values = values.iter().map(|(value, n)| {
            let narrowed = ask.narrowed(&format!("{field}:{value}"));
            (name(value), Count(*n), narrowed)
        });
        values.collect()
    };
    let years = facets.years.iter().map(|(year, n)| (year.to_string(), *n));
    let years: Vec<(String, u64)> = years.collect();
    let all = [
        ("Sites", named("site", &facets.sites)),
        ("Languages", named("lang", &facets.languages)),
        ("Years", named("year", &years)),
    ];
    let all = all.into_iter().filter(|(_, values)| values.len() > 1);
    all.map(|(title, values)| Facet { title, values }).collect()
}

/// The ordinal that the documents of a result share.
fn head(ask: &Ask, hit: &Hit) -> u64 {
    match ask.collapse() {
        Collapse::Content => hit.group,
        Collapse::Same | Collapse::Nothing => hit.cluster,
    }
}

/// The other matching documents of a result.
fn members(
    view: &View,
    ask: &Ask,
    query: &Search,
    hit: &Hit,
    stop: &Stop,
) -> Result<Vec<Member>, Refusal> {
    let request = Request {
        limit: MAX_EXPANDED + 1,
        collapse: Collapse::Nothing,
        cluster: (ask.collapse() != Collapse::Content).then_some(hit.cluster),
        group: (ask.collapse() == Collapse::Content).then_some(hit.group),
        scope: ask.scope(),
        versions: view.versions(ask.captures()),
        ..Request::default()
    };
    let found = view.index.search_while(query, &request, &stop.as_go_on())?;
    let found = found.ok_or_else(Stop::refusal)?.hits;
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

fn entry(ask: &Ask, from: usize, hit: &Hit, members: Vec<Member>) -> Entry {
    let number = hit.rank + 1;
    let more = hit.site.as_deref().filter(|_| hit.more_from_site);
    Entry {
        number,
        doc: hit.doc,
        cluster: hit.cluster,
        title: title(hit),
        address: hit.url.as_deref().map(address).unwrap_or_default(),
        when: hit.time.map(date).unwrap_or_default(),
        language: hit.language.as_deref().map(name).unwrap_or_default(),
        snippet: marked(&hit.snippet),
        duplicates: hit.duplicates(),
        expand: format!(
            "{}&from={from}&expand={}#r{number}",
            ask.address(),
            head(ask, hit)
        ),
        n_hidden: (hit.n_exact + hit.n_near + hit.n_versions).saturating_sub(members.len() as u64),
        members,
        is_dropped: !hit.kept,
        is_gone: false,
        more: more.map(|site| (name(site), ask.narrowed(&format!("site:{site}")))),
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

/// A snippet with the query words marked.
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
