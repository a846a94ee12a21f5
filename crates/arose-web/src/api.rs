//! The same answers as JSON. `assets/openapi.json` describes them.

use arose_dedup::results::{Detail, details};
use arose_search::{Hit, Query as Search, Request};
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::Refusal;
use crate::catalog::Sort;
use crate::pair::Two;
use crate::site::{Shared, Site, work};
use crate::{clusters as list, crawl as figures, pair as two, search as page};

/// Results given at most.
const MAX_LIMIT: usize = 1000;

/// What a search is asked for with.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    q: String,
    sort: String,
    /// `false` gives every document.
    collapse: Option<bool>,
    offset: usize,
    limit: Option<usize>,
    cluster: Option<u64>,
}

/// Answers in JSON, errors as well.
async fn answer(
    site: &Shared,
    ask: impl FnOnce(&Site) -> Result<Value, Refusal> + Send + 'static,
) -> Response {
    match work(site, ask).await {
        Ok(value) => Json(value).into_response(),
        Err(refusal) => refusal.into_json(),
    }
}

/// What a query string says, or why it says nothing.
type Asked<T> = Result<Query<T>, axum::extract::rejection::QueryRejection>;

pub(crate) async fn search(State(site): State<Shared>, ask: Asked<Ask>) -> Response {
    let Query(ask) = match ask {
        Ok(ask) => ask,
        Err(error) => return Refusal::bad_request(error.body_text()).into_json(),
    };
    answer(&site, move |site| {
        let query: Search = ask
            .q
            .parse()
            .map_err(|error: arose_search::QueryError| Refusal::bad_request(error.to_string()))?;
        let html = page::Ask {
            sort: ask.sort,
            all: if ask.collapse == Some(false) { "1" } else { "" }.to_owned(),
            ..page::Ask::default()
        };
        let request = Request {
            offset: ask.offset,
            limit: ask.limit.unwrap_or(10).min(MAX_LIMIT),
            order: html.order(),
            collapse: html.collapse(),
            cluster: ask.cluster,
        };
        let results = site.index.search(&query, &request)?;
        Ok(json!({
            "documents": results.n_documents,
            "results": results.n_results,
            "hits": results.hits.iter().map(hit).collect::<Vec<_>>(),
        }))
    })
    .await
}

fn hit(hit: &Hit) -> Value {
    let snippet = hit.snippet.iter();
    json!({
        "doc": hit.doc,
        "cluster": hit.cluster,
        "alike": hit.n_alike,
        "kept": hit.kept,
        "score": hit.score,
        "id": hit.id,
        "url": hit.url,
        "title": hit.title,
        "language": hit.language,
        "time": hit.time,
        "snippet": snippet
            .map(|fragment| json!({ "text": fragment.text, "marked": fragment.marked }))
            .collect::<Vec<_>>(),
    })
}

pub(crate) async fn clusters(State(site): State<Shared>, Query(ask): Query<list::Ask>) -> Response {
    answer(&site, move |site| {
        let run = site.run()?;
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
    answer(&site, move |site| {
        let run = site.run()?;
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
    answer(&site, move |site| {
        let run = site.run()?;
        let two = Two::find(run, &ask.a, &ask.b)?;
        let now = two.compare(run).map(|now| {
            json!({
                "resemblance": now.resemblance,
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
    answer(&site, move |site| {
        let doc = doc
            .parse()
            .map_err(|_| Refusal::bad_request("A document is named by a number."))?;
        match site.index.text(doc)? {
            Some(text) => Ok(json!({ "doc": doc, "text": text })),
            None => Err(Refusal::not_found(
                "There is no document of this number with a text.",
            )),
        }
    })
    .await
}

pub(crate) async fn ratings(State(site): State<Shared>) -> Response {
    answer(&site, |site| {
        let run = site.run()?;
        Ok(run.ratings.tables(&run.sample.population).to_json())
    })
    .await
}

pub(crate) async fn crawl(State(site): State<Shared>) -> Response {
    answer(&site, |site| {
        let samples = figures::samples(&site.folder.path)?;
        Ok(json!({ "samples": samples }))
    })
    .await
}

pub(crate) async fn description() -> Response {
    let text = include_str!("../assets/openapi.json");
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}
