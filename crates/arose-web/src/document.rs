//! The page of a document: its stored text and, for crawls, the stored page.
//!
//! A stored page is untrusted. It is shown in a frame without scripts, forms, plugins and origin,
//! and its content security policy forbids every request. Images and styles that are not in the
//! page itself are missing.

use arose_corpus::Stored;
use arose_dedup::report::html::{Count, bytes};
use arose_dedup::results::details;
use arose_search::{Collapse, Indexed, Query, Request, Scope};
use askama::Template;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_FRAME_OPTIONS};
use axum::response::{Html, IntoResponse, Response};

use crate::answer::Refusal;
use crate::clusters::{rule_in_words, similarity};
use crate::html::{Markup, address, date, name, render};
use crate::lanes::{Lane, Stop, work};
use crate::nav::{Nav, Tab};
use crate::passages::{Elsewhere, Shared};
use crate::site::{self, View};

/// Maximum number of bytes shown of a text.
const MAX_SHOWN: usize = 1 << 20;

/// The policy of stored pages, which may only be displayed.
const STORED_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
                             font-src data:; form-action 'none'; base-uri 'none'; \
                             frame-ancestors 'self'";

#[derive(Template)]
#[template(path = "document.html")]
struct Page {
    nav: Nav,
    doc: u64,
    title: Markup,
    id: Markup,
    address: Markup,
    when: String,
    language: Markup,
    source: Markup,
    decision: Option<Decision>,
    versions: Versions,
    text: Option<Markup>,
    elsewhere: Elsewhere,
    size: String,
    is_cut: bool,
    is_stored: bool,
    has_run: bool,
    /// The URL of the list of visits of the page.
    history: Option<String>,
}

/// The decision of a run or a crawl about the document.
struct Decision {
    kept: bool,
    /// The document it was dropped for.
    kept_doc: Option<u64>,
    rule: &'static str,
    similarity: String,
    /// Its cluster, if it has other documents.
    cluster: Option<u64>,
    n_tokens: Option<Count>,
}

/// Other kept documents of the same content.
#[derive(Default)]
struct Versions {
    /// The first of them, with their titles.
    listed: Vec<(u64, Markup)>,
    n_more: u64,
}

/// Maximum number of versions listed.
const MAX_VERSIONS: usize = 20;

pub(crate) async fn page(
    State(site): State<site::Shared>,
    Path(doc): Path<String>,
) -> Result<Response, Refusal> {
    let page = work(&site, Lane::Heavy, move |view, stop| {
        let (doc, document) = find(view, &doc)?;
        Ok(render(&page_of(view, doc, &document, stop)?))
    })
    .await?;
    Ok(Html(page).into_response())
}

/// Finds a document by its number.
pub(crate) fn find(view: &View, doc: &str) -> Result<(u64, Indexed), Refusal> {
    let doc: u64 = doc
        .trim()
        .parse()
        .map_err(|_| Refusal::bad_request("A document is named by its number: /document/1."))?;
    let document = view.index.document(doc)?.ok_or_else(|| {
        Refusal::not_found(format!(
            "There are {} documents, numbered from 0.",
            Count(view.index.n_documents())
        ))
    })?;
    Ok((doc, document))
}

fn page_of(view: &View, doc: u64, document: &Indexed, stop: &Stop) -> Result<Page, Refusal> {
    let text = document.text.as_deref();
    let end = text.map_or(0, |text| text.floor_char_boundary(MAX_SHOWN));
    let shared = match text {
        Some(text) => Shared::find(view, doc, &text[..end], stop)?,
        None => Shared::default(),
    };
    let title = document.title.as_deref().map(str::trim);
    let title = title.filter(|title| !title.is_empty());
    let title = title.or(document.url.as_deref()).unwrap_or(&document.id);
    Ok(Page {
        nav: Nav::new(view, Tab::Search),
        doc,
        title: name(title),
        id: name(&document.id),
        address: document.url.as_deref().map(address).unwrap_or_default(),
        when: document.time.map(date).unwrap_or_default(),
        language: document.language.as_deref().map(name).unwrap_or_default(),
        source: name(&document.source),
        decision: decision(view, doc, document)?,
        versions: versions(view, doc, document, stop)?,
        text: text.map(|text| shared.marked(&text[..end])),
        elsewhere: shared.elsewhere(),
        size: bytes(text.map_or(0, str::len) as u64),
        is_cut: text.is_some_and(|text| end < text.len()),
        is_stored: view.folder.is_archived(document),
        has_run: view.run.is_some(),
        history: crate::history::link(view, document.url.as_deref()),
    })
}

fn decision(view: &View, doc: u64, document: &Indexed) -> Result<Option<Decision>, Refusal> {
    let Some(run) = view.run.as_deref() else {
        let is_duplicate = document.cluster != doc;
        return Ok(is_duplicate.then(|| Decision {
            kept: false,
            kept_doc: Some(document.cluster),
            rule: match document.is_revisit {
                true => "exact duplicate, as recorded by the crawler",
                false => "near duplicate, as recorded by the crawler",
            },
            similarity: String::new(),
            cluster: None,
            n_tokens: None,
        }));
    };
    let detail = details(&run.documents, &[doc])?.remove(&doc);
    Ok(detail.map(|detail| Decision {
        kept: detail.kept,
        kept_doc: detail.kept_doc,
        rule: rule_in_words(detail.rule.as_deref()),
        similarity: detail
            .similarity
            .map(|value| similarity(Some(value)))
            .unwrap_or_default(),
        cluster: run.catalog.get(detail.cluster).map(|cluster| cluster.id),
        n_tokens: Some(Count(detail.n_tokens.into())),
    }))
}

/// The other versions of a kept document.
fn versions(view: &View, doc: u64, document: &Indexed, stop: &Stop) -> Result<Versions, Refusal> {
    if !document.kept || !view.index.has_versions() {
        return Ok(Versions::default());
    }
    let request = Request {
        limit: MAX_VERSIONS + 1,
        collapse: Collapse::Nothing,
        group: Some(document.group),
        scope: Scope::Kept,
        ..Request::default()
    };
    let query = Query::All(Vec::new());
    let found = view
        .index
        .search_while(&query, &request, &stop.as_go_on())?;
    let found = found.ok_or_else(Stop::refusal)?;
    let n_others = found.n_documents.saturating_sub(1);
    let others = found.hits.iter().filter(|hit| hit.doc != doc);
    let listed = others.take(MAX_VERSIONS).map(|hit| {
        let title = hit.title.as_deref().map(str::trim);
        let title = title.filter(|title| !title.is_empty());
        let title = title.or(hit.url.as_deref()).unwrap_or(&hit.id);
        (hit.doc, name(title))
    });
    let listed: Vec<(u64, Markup)> = listed.collect();
    Ok(Versions {
        n_more: n_others.saturating_sub(listed.len() as u64),
        listed,
    })
}

pub(crate) async fn stored(
    State(site): State<site::Shared>,
    Path(doc): Path<String>,
) -> Result<Response, Refusal> {
    let stored = work(&site, Lane::Heavy, move |view, _| {
        let (_, document) = find(view, &doc)?;
        let stored = view.folder.stored(&document)?;
        stored.ok_or_else(|| {
            Refusal::not_found("The archive no longer contains the page of this document.")
        })
    })
    .await?;
    let kind = content_type(&stored).ok_or_else(|| {
        Refusal::not_found(
            "The stored response is neither HTML nor plain text, so it is not shown.",
        )
    })?;
    let headers = [
        (CONTENT_TYPE, &*kind),
        (CONTENT_SECURITY_POLICY, STORED_POLICY),
        (X_FRAME_OPTIONS, "SAMEORIGIN"),
    ];
    let prefetch = [("x-dns-prefetch-control", "off")];
    Ok((headers, prefetch, stored.body).into_response())
}

/// The media type to show a stored page as, with its character set; none if it is not shown.
fn content_type(stored: &Stored) -> Option<String> {
    let stated = stored.content_type.as_deref().unwrap_or("text/html");
    let mut parts = stated.split(';').map(str::trim);
    let kind = match parts
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "text/html" | "application/xhtml+xml" | "" => "text/html",
        "text/plain" => "text/plain",
        _ => return None,
    };
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:+".contains(c);
        let is_name = name.trim().eq_ignore_ascii_case("charset");
        (is_name && !value.is_empty() && value.chars().all(is_plain)).then_some(value)
    });
    Some(match charset {
        Some(charset) => format!("{kind}; charset={charset}"),
        None => kind.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(stated: Option<&str>, expected: Option<&str>) {
        let stored = Stored {
            body: Vec::new(),
            content_type: stated.map(str::to_owned),
        };
        assert_eq!(content_type(&stored).as_deref(), expected);
    }

    #[test]
    fn only_text_is_shown() {
        check(None, Some("text/html"));
        check(
            Some("Text/HTML; Charset=\"UTF-8\""),
            Some("text/html; charset=UTF-8"),
        );
        check(Some("text/plain; charset=a\r\nX: y"), Some("text/plain"));
        check(Some("application/xhtml+xml"), Some("text/html"));
        check(Some("application/pdf"), None);
        check(Some("image/svg+xml"), None);
    }
}
