//! Access control and security headers.
//!
//! A browser that visits another site can be made to send requests to loopback. Three checks reject
//! such requests. The `Host` must be an IP address of this machine or the one listened on, against
//! host names that were pointed here. Requests that change something must come from a page of this
//! server (`Origin`, `Sec-Fetch-Site`). Responses may not be framed or read by other sites. If a
//! token is required, it comes in a cookie that a link with `?token=` sets, or as `Authorization:
//! Bearer`.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::answer::Refusal;
use crate::site::Shared;

/// Maximum time for a response.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Maximum size of a request body, in bytes.
const MAX_BODY: usize = 64 << 10;

/// Maximum length of a request URL, in bytes.
const MAX_ADDRESS: usize = 16 << 10;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// Maximum time for the body of a request.
const BODY_TIME: Duration = Duration::from_secs(5);

const COOKIE_NAME: &str = "arose_token";

/// Lets a request pass, or returns the reason for its rejection.
pub(crate) async fn guard(State(site): State<Shared>, request: Request, next: Next) -> Response {
    let is_asset = request.uri().path().starts_with("/assets/");
    let mut response = match check(&site, &request) {
        Ok(()) => answer(request, next).await,
        Err(response) => *response,
    };
    let headers = response.headers_mut();
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        // With a stricter policy, browsers hide the origin of forms, and ratings would be rejected.
        (REFERRER_POLICY, "same-origin"),
        (
            CACHE_CONTROL,
            if is_asset { "max-age=3600" } else { "no-store" },
        ),
    ];
    for (name, value) in fixed {
        // A stored page has a stricter policy.
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    headers.insert(
        "cross-origin-resource-policy",
        HeaderValue::from_static("same-origin"),
    );
    response
}

async fn answer(request: Request, next: Next) -> Response {
    let request = match with_body(request).await {
        Ok(request) => request,
        Err(refusal) => return refusal.into_response(),
    };
    match tokio::time::timeout(MAX_TIME, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Refusal {
            status: StatusCode::GATEWAY_TIMEOUT,
            title: "Timed out",
            detail: "The response was not ready after 30 seconds.".to_owned(),
        }
        .into_response(),
    }
}

/// The request with its body read, within limits on size and time.
async fn with_body(request: Request) -> Result<Request, Refusal> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    let read = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_BODY)).await;
    let refusal = |status, detail: &str| Refusal {
        status,
        title: "Invalid request",
        detail: detail.to_owned(),
    };
    match read {
        Ok(Ok(bytes)) => Ok(Request::from_parts(parts, Body::from(bytes))),
        Ok(Err(_)) => Err(refusal(
            StatusCode::PAYLOAD_TOO_LARGE,
            "The body of the request is too large.",
        )),
        Err(_) => Err(refusal(
            StatusCode::REQUEST_TIMEOUT,
            "The body of the request took longer than 5 seconds.",
        )),
    }
}

fn check(site: &Shared, request: &Request) -> Result<(), Box<Response>> {
    let refuse = |status, detail: &str| {
        Err(Box::new(
            Refusal {
                status,
                title: "Access denied",
                detail: detail.to_owned(),
            }
            .into_response(),
        ))
    };
    let (headers, uri) = (request.headers(), request.uri());
    if uri
        .path_and_query()
        .is_some_and(|path| path.as_str().len() > MAX_ADDRESS)
    {
        return refuse(
            StatusCode::URI_TOO_LONG,
            "The URL is too long. Shorten the query.",
        );
    }
    if !is_own_host(headers, site.token()) {
        return refuse(
            StatusCode::MISDIRECTED_REQUEST,
            "This server responds only to its own address. Use the one printed when it started.",
        );
    }
    if request.method() != Method::GET && request.method() != Method::HEAD && !is_own_page(headers)
    {
        return refuse(
            StatusCode::FORBIDDEN,
            "Changes are accepted only from pages of this server.",
        );
    }
    let Some(token) = site.token() else {
        return Ok(());
    };
    if is_known(headers, token) {
        return Ok(());
    }
    match given(uri) {
        Some(given) if is_equal(given, token) => Err(Box::new(welcome(uri, token))),
        _ => refuse(
            StatusCode::UNAUTHORIZED,
            "Open the URL with ?token= and the access token that the server was started with.",
        ),
    }
}

/// Whether the `Host` is an IP address or `localhost`. With a token any host name is accepted,
/// since the cookie belongs to one host only.
fn is_own_host(headers: &HeaderMap, token: Option<&str>) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    token.is_some() || name == "localhost" || bare.parse::<std::net::IpAddr>().is_ok()
}

/// Whether a request that changes something comes from a page of this server, or not from a
/// browser.
fn is_own_page(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if text("sec-fetch-site").is_some_and(|site| site != "same-origin" && site != "none") {
        return false;
    }
    match (text(ORIGIN.as_str()), text(HOST.as_str())) {
        (None, _) => true,
        (Some(origin), Some(host)) => origin
            .split_once("://")
            .is_some_and(|(_, origin)| origin == host),
        (Some(_), None) => false,
    }
}

fn is_known(headers: &HeaderMap, token: &str) -> bool {
    let bearer = headers
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    let cookies = headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let cookies = cookies.flat_map(|line| line.split(';')).filter_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    });
    bearer
        .into_iter()
        .chain(cookies)
        .any(|given| is_equal(given, token))
}

fn given(uri: &Uri) -> Option<&str> {
    let mut parts = uri.query()?.split('&');
    parts.find_map(|part| part.strip_prefix("token="))
}

/// Sets the cookie and removes the token from the URL.
fn welcome(uri: &Uri, token: &str) -> Response {
    let cookie = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict");
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let values = [
        (LOCATION, HeaderValue::from_str(uri.path())),
        (SET_COOKIE, HeaderValue::from_str(&cookie)),
    ];
    for (name, value) in values {
        if let Ok(value) = value {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Compares in a time that does not reveal the position of the first difference.
fn is_equal(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let differences = given.iter().zip(token).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    #[track_caller]
    fn check_host(host: &'static str, expected: bool) {
        assert_eq!(
            is_own_host(&headers(&[("host", host)]), None),
            expected,
            "{host}"
        );
    }

    #[test]
    fn names_of_others_are_refused() {
        for host in [
            "localhost:8080",
            "localhost",
            "127.0.0.1:80",
            "[::1]:8080",
            "192.168.0.7",
        ] {
            check_host(host, true);
        }
        for host in [
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
        ] {
            check_host(host, false);
        }
        assert!(!is_own_host(&HeaderMap::new(), None));
        assert!(is_own_host(
            &headers(&[("host", "archive.example")]),
            Some("x")
        ));
    }

    #[test]
    fn pages_of_others_may_not_rate() {
        let host = ("host", "localhost:80");
        assert!(is_own_page(&headers(&[host])));
        assert!(is_own_page(&headers(&[
            host,
            ("origin", "http://localhost:80")
        ])));
        assert!(!is_own_page(&headers(&[
            host,
            ("origin", "http://evil.example")
        ])));
        assert!(!is_own_page(&headers(&[host, ("origin", "null")])));
        assert!(!is_own_page(&headers(&[
            host,
            ("sec-fetch-site", "cross-site")
        ])));
    }

    #[test]
    fn tokens_by_cookie_or_header() {
        assert!(is_known(
            &headers(&[("cookie", "a=b; arose_token=rose")]),
            "rose"
        ));
        assert!(is_known(
            &headers(&[("authorization", "Bearer rose")]),
            "rose"
        ));
        assert!(!is_known(
            &headers(&[("cookie", "arose_token=ros")]),
            "rose"
        ));
        assert!(!is_known(&headers(&[("authorization", "rose")]), "rose"));
        assert_eq!(given(&"/x?q=1&token=rose".parse().unwrap()), Some("rose"));
    }
}
