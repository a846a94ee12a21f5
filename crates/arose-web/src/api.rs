//! The JSON API, described in `assets/openapi.json`.

use arose_dedup::results::{Detail, details};
use arose_search::{Collapse, Hit, Query as Search, Request, Scope, Versions};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::catalog::Sort;
use crate::lanes::{Lane, Stop, work, work_for};
use crate::pair::Two;
use crate::site::{Shared, View};
use crate::{clusters as list, crawl as figures, document as found, pair as two, search as page};

/// Maximum number of results.
const MAX_LIMIT: usize = 1000;

/// Parameters of a search.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    q: String,
    sort: String,
    /// Documents that are shown as one result: `content`, `same` or `none`; `false` means `none`.
    collapse: Option<String>,
    offset: usize,
    limit: Option<usize>,
    cluster: Option<u64>,
    /// `true` returns only kept documents.
    kept: Option<bool>,
    /// Which captures of a page to search: `all` or `current`; if missing, those that the server is
    /// set to.
    versions: Option<String>,
    /// Maximum number of results per site; any number if it is 0 or missing.
    per_site: usize,
}

/// Responds in JSON, also for errors.
async fn answer(
    site: &Shared,
    lane: Lane,
    ask: impl FnOnce(&View) -> Result<Value, Refusal> + Send + 'static,
) -> Response {
    in_json(work(site, lane, move |view, _| ask(view)).await)
}

fn in_json(answered: Result<Value, Refusal>) -> Response {
    match answered {
        Ok(value) => Json(value).into_response(),
        Err(refusal) => refusal.into_json(),
    }
}

/// The parsed query string, or the reason why it is invalid.
type Asked<T> = Result<Query<T>, axum::extract::rejection::QueryRejection>;

pub(crate) async fn search(State(site): State<Shared>, ask: Asked<Ask>) -> Response {
    let Query(ask) = match ask {
        Ok(ask) => ask,
        Err(error) => return Refusal::bad_request(error.body_text()).into_json(),
    };
    let query: Search = match ask.q.parse() {
        Ok(query) => query,
        Err(error) => {
            let error: arose_search::QueryError = error;
            return Refusal::bad_request(error.to_string()).into_json();
        }
    };
    let collapse = match ask.collapse.as_deref() {
        None | Some("content" | "true") => Collapse::Content,
        Some("same") => Collapse::Same,
        Some("none" | "false") => Collapse::Nothing,
        Some(_) => {
            let words = "`collapse` is `content`, `same` or `none`";
            return Refusal::bad_request(words.to_owned()).into_json();
        }
    };
    let html = page::Ask {
        sort: ask.sort.clone(),
        ..page::Ask::default()
    };
    let versions = match ask.versions.as_deref() {
        None => None,
        Some("all") => Some(Versions::All),
        Some("current") => Some(Versions::Current),
        Some(_) => {
            let words = "`versions` is `all` or `current`";
            return Refusal::bad_request(words.to_owned()).into_json();
        }
    };
    let request = Request {
        offset: ask.offset,
        limit: ask.limit.unwrap_or(10).min(MAX_LIMIT),
        order: html.order(),
        collapse,
        cluster: ask.cluster,
        group: None,
        scope: match ask.kept {
            Some(true) => Scope::Kept,
            _ => Scope::All,
        },
        versions: Versions::All,
        per_site: ask.per_site,
    };
    let found = work_for(&site, Some(query.clone()), move |view, stop| {
        let request = Request {
            versions: view.versions(versions),
            ..request
        };
        let found = view
            .index
            .search_while(&query, &request, &stop.as_go_on())?;
        let hit = |found: &Hit| {
            let mut value = hit(found);
            if view.is_gone(found) {
                value["gone"] = true.into();
            }
            value
        };
        let results = found.ok_or_else(Stop::refusal)?;
        Ok(json!({
            "documents": results.n_documents,
            "results": results.n_results,
            "next": results.next,
            "hits": results.hits.iter().map(hit).collect::<Vec<_>>(),
        }))
    });
    in_json(found.await)
}

fn hit(hit: &Hit) -> Value {
    let snippet = hit.snippet.iter();
    json!({
        "rank": hit.rank,
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
        "more_from_site": hit.more_from_site,
        "snippet": snippet
            .map(|fragment| json!({ "text": fragment.text, "marked": fragment.marked }))
            .collect::<Vec<_>>(),
    })
}

pub(crate) async fn clusters(State(site): State<Shared>, Query(ask): Query<list::Ask>) -> Response {
    answer(&site, Lane::Light, move |view| {
        let run = view.run()?;
        let offset = (ask.page() - 1) * list::PER_PAGE;
        let sort = Sort::parse(&ask.sort);
        let (n, shown) = run
            .catalog
            .list(sort, &ask.filter(), offset, list::PER_PAGE);
        let shown = shown.into_iter().map(|cluster| {
            json!({
                "cluster": cluster.id,
                "documents": cluster.size(),
                "lowest_similarity": cluster.lowest,
                "site": run.catalog.site(cluster),
                "several_sites": cluster.is_mixed,
            })
        });
        Ok(json!({ "clusters": n, "shown": shown.collect::<Vec<_>>() }))
    })
    .await
}

pub(crate) async fn cluster(State(site): State<Shared>, Path(id): Path<String>) -> Response {
    answer(&site, Lane::Light, move |view| {
        let run = view.run()?;
        let cluster = list::find(run, &id)?;
        let members = run.catalog.members(cluster).iter().take(MAX_LIMIT);
        let members: Vec<u64> = members.map(|&doc| u64::from(doc)).collect();
        let found = details(&run.documents, &members)?;
        let shown: Vec<Value> = found
            .iter()
            .map(|(doc, detail)| row(*doc, detail))
            .collect();
        Ok(json!({ "cluster": cluster.id, "documents": cluster.size(), "members": shown }))
    })
    .await
}

fn row(doc: u64, detail: &Detail) -> Value {
    json!({
        "doc": doc,
        "id": detail.id,
        "url": detail.url,
        "tokens": detail.n_tokens,
        "cluster": detail.cluster,
        "kept": detail.kept,
        "kept_doc": detail.kept_doc,
        "rule": detail.rule,
        "similarity": detail.similarity,
    })
}

pub(crate) async fn pair(State(site): State<Shared>, Query(ask): Query<two::Ask>) -> Response {
    answer(&site, Lane::Heavy, move |view| {
        let run = view.run()?;
        let two = Two::find(run, &ask.a, &ask.b)?;
        let now = two.compare(run).map(|now| {
            json!({
                "similarity": now.jaccard,
                "containment": now.containment,
                "common_shingles": now.n_common,
                "distinct_shingles": now.n_union,
                "b_sim": now.b_sim,
                "c_sim": now.c_sim,
            })
        });
        let recorded = two.pair.as_ref().map(|pair| {
            json!({
                "jaccard": pair.jaccard,
                "b_sim": pair.b_sim,
                "c_sim": pair.c_sim,
                "rule": pair.rule,
                "verified": pair.verified,
            })
        });
        let [a, b] = [0, 1].map(|side| row(two.docs[side], &two.details[side]));
        Ok(json!({ "a": a, "b": b, "recorded": recorded, "recomputed": now, "sites": two.sites() }))
    })
    .await
}

pub(crate) async fn document(State(site): State<Shared>, Path(doc): Path<String>) -> Response {
    answer(&site, Lane::Light, move |view| {
        let (doc, document) = found::find(view, &doc)?;
        Ok(json!({
            "doc": doc,
            "cluster": document.cluster,
            "kept": document.kept,
            "id": document.id,
            "url": document.url,
            "title": document.title,
            "language": document.language,
            "time": document.time,
            "source": document.source,
            "position": document.position.map(|position| position.to_string()),
            "text": document.text,
        }))
    })
    .await
}

pub(crate) async fn ratings(State(site): State<Shared>) -> Response {
    answer(&site, Lane::Light, |view| {
        let run = view.run()?;
        Ok(run.ratings.tables(&run.sample.population).to_json())
    })
    .await
}

pub(crate) async fn crawl(State(site): State<Shared>) -> Response {
    answer(&site, Lane::Light, |view| {
        let samples = figures::samples(&view.folder.path)?;
        Ok(json!({ "samples": samples }))
    })
    .await
}

/// Pages to visit now.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    urls: Vec<String>,
}

/// Makes the crawl visit pages as soon as politeness allows.
pub(crate) async fn refresh(
    State(site): State<Shared>,
    wanted: Result<Json<Wanted>, axum::extract::rejection::JsonRejection>,
) -> Response {
    let Ok(Json(wanted)) = wanted else {
        return Refusal::bad_request("The body must be JSON: {\"urls\": [...]}.").into_json();
    };
    answer(&site, Lane::Light, move |view| {
        let taken = arose_crawl::refresh(&view.folder.path, &wanted.urls);
        let pages = taken.map_err(|error| Refusal {
            status: axum::http::StatusCode::CONFLICT,
            title: "Order failed",
            detail: format!("The crawl did not carry out the order: {error}."),
        })?;
        let pages = pages.iter().map(|(url, refresh)| {
            let (state, seconds) = match refresh {
                arose_crawl::Refresh::In(seconds) => ("queued", Some(*seconds)),
                arose_crawl::Refresh::Next => ("next-run", None),
                arose_crawl::Refresh::Unknown => ("unknown", None),
                arose_crawl::Refresh::Invalid => ("invalid", None),
            };
            json!({ "url": url, "state": state, "seconds": seconds })
        });
        Ok(json!({ "pages": pages.collect::<Vec<Value>>() }))
    })
    .await
}

pub(crate) async fn description() -> Response {
    let text = include_str!("../assets/openapi.json");
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
