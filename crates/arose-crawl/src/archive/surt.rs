//! Keys of the index: URLs with the host name reversed, so that the pages of a site are adjacent.
//!
//! *Question.* A replay system looks up a URL by its key, and a page may have been linked under
//! another spelling. Which key does the system look up? *Idea.* The SURT form (Sort-friendly URI
//! Reordering Transform) as the Internet Archive canonicalizes it and `pywb` and `cdxj-indexer`
//! compute it: `https://www.Example.org:8080/A/?b=2&a=1` is `org,example:8080)/a?a=1&b=2`.
//! *Limits.* Only for [normalized](crate::url::NormalUrl) URLs. Tests compare the keys with those
//! of the Python package.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// Returns the key of a normalized URL.
pub(super) fn key(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let rest = rest.split('#').next().unwrap_or_default();
    let (path, query) = match rest.split_once('?') {
        Some((path, query)) => (path, query),
        None => (rest, ""),
    };
    let mut key = host_key(authority);
    key.push(')');
    key.push_str(&path_key(path));
    let query = query_key(query);
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query);
    }
    key
}

/// Returns host and port, without `www.`, `www2.` and similar prefixes.
fn host_key(authority: &str) -> String {
    let authority = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match authority.rfind(':') {
        Some(colon) if !authority.ends_with(']') => authority.split_at(colon),
        _ => (authority, ""),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = without_www(host);
    let labels: Vec<&str> = host.rsplit('.').collect();
    labels.join(",") + port
}

fn without_www(host: &str) -> &str {
    let rest = host.strip_prefix("www").unwrap_or_default();
    let rest = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    rest.strip_prefix('.').unwrap_or(host)
}

/// Returns the path in lower case, with normalized escapes, without dot segments, double slashes
/// and a trailing slash.
fn path_key(path: &str) -> String {
    let decoded = decode(path);
    let mut kept: Vec<&[u8]> = Vec::new();
    for segment in decoded.split(|&byte| byte == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." if !kept.is_empty() => {
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let last = kept.pop().unwrap_or_default();
    let mut path = String::from("/");
    for segment in kept.iter().filter(|segment| !segment.is_empty()) {
        push_encoded(segment, &mut path);
        path.push('/');
    }
    push_encoded(last, &mut path);
    let path = without_path_session(&path);
    match path.strip_suffix('/') {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => path.into_owned(),
    }
}

/// Returns the query in lower case, with normalized escapes, without session IDs, and with
/// parameters sorted by name and value.
fn query_key(query: &str) -> String {
    let mut encoded = String::with_capacity(query.len());
    push_encoded(&decode(query), &mut encoded);
    let query = without_query_sessions(encoded);
    let mut parameters: Vec<(&str, Option<&str>)> = query
        .split('&')
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (parameter, None),
        })
        .collect();
    parameters.sort_unstable();
    let parameters = parameters.iter().map(|(name, value)| match value {
        Some(value) => Cow::from(format!("{name}={value}")),
        None => Cow::from(*name),
    });
    parameters.collect::<Vec<_>>().join("&")
}

/// Decodes percent-encoding repeatedly until none is left.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    while let Some(decoded) = decode_once(&bytes) {
        bytes = decoded;
    }
    bytes
}

fn decode_once(bytes: &[u8]) -> Option<Vec<u8>> {
    let escape = |at: usize| {
        let digits = bytes.get(at + 1..at + 3).filter(|_| bytes[at] == b'%')?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        Some((digit(digits[0])? * 16 + digit(digits[1])?) as u8)
    };
    let mut decoded = Vec::new();
    let (mut at, mut has_changed) = (0, false);
    while at < bytes.len() {
        let byte = escape(at);
        decoded.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
        has_changed |= byte.is_some();
    }
    has_changed.then_some(decoded)
}

/// Appends bytes in lower case and escapes everything that must not occur in a line of the index.
fn push_encoded(bytes: &[u8], to: &mut String) {
    for &byte in bytes {
        match byte {
            b'#' | b'%' | 0..=b' ' | 0x7f.. => to.push_str(&format!("%{byte:02x}")),
            _ => to.push(char::from(byte.to_ascii_lowercase())),
        }
    }
}

/// Removes the session IDs that ASP.NET puts into paths: `/(S(…))/page.aspx`, `/(…)/page.aspx`.
static PATH_SESSIONS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        r"^(.*/)\((?:[a-z]\([0-9a-z]{24}\))+\)/([^?]+\.aspx.*)$",
        r"^(.*/)\([0-9a-z]{24}\)/([^?]+\.aspx.*)$",
    ]
    .map(|pattern| Regex::new(pattern).expect("the pattern is valid, as tests show"))
});

fn without_path_session(path: &str) -> Cow<'_, str> {
    let mut path = Cow::from(path);
    if path.contains(".aspx") {
        for pattern in PATH_SESSIONS.iter() {
            if let Some(parts) = pattern.captures(&path) {
                path = Cow::from(format!("{}{}", &parts[1], &parts[2]));
            }
        }
    }
    path
}

static QUERY_SESSIONS: LazyLock<[Regex; 5]> = LazyLock::new(|| {
    [
        "jsessionid=[0-9a-z]{32}",
        "phpsessid=[0-9a-z]{32}",
        "sid=[0-9a-z]{32}",
        "aspsessionid[a-z]{8}=[a-z]{24}",
        "cfid=[^&]+&cftoken=[^&]+",
    ]
    .map(|session| {
        let pattern = format!("^(.*){session}(?:&(.*))?$");
        Regex::new(&pattern).expect("the pattern is valid, as tests show")
    })
});

fn without_query_sessions(mut query: String) -> String {
    if ["sid=", "sess", "cfid="]
        .iter()
        .any(|name| query.contains(name))
    {
        for pattern in QUERY_SESSIONS.iter() {
            if let Some(parts) = pattern.captures(&query) {
                let after = parts.get(2).map_or("", |after| after.as_str());
                query = format!("{}{after}", &parts[1]);
            }
        }
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of the package `surt` 0.3.1.
    #[test]
    fn keys() {
        let session = "0123456789abcdef0123456789ABCDEF";
        for (url, expected) in [
            ("http://www.example.org:8080/A?b", "org,example:8080)/a?b"),
            ("http://127.0.0.1:8080/p/", "1,0,0,127:8080)/p"),
            ("http://[::1]:81/x", "::1:81)/x"),
            ("http://[::1]/", "::1)/"),
            ("https://www2.example.org/", "org,example)/"),
            ("http://www.com/", "com)/"),
            ("http://wwww.a.org/", "org,a,wwww)/"),
            ("http://a.org/a//b/../c/?z=1&a=2&a", "org,a)/a/c?a&a=2&z=1"),
            ("http://a.org/%7Ea%2Fb%20c%25d", "org,a)/~a/b%20c%25d"),
            ("http://a.org/?", "org,a)/"),
            ("http://a.org/x?%26b=1&A=%2526", "org,a)/x?&&a=&b=1"),
            ("http://a.org/x?b=1&&a", "org,a)/x?&a&b=1"),
            ("http://a.org/../x", "org,a)/../x"),
            ("http://a.org/x/?a=", "org,a)/x?a="),
            ("http://a.org/a/./b/.", "org,a)/a/b"),
            ("http://a.org/%", "org,a)/%25"),
            ("http://a.org/%zz%41", "org,a)/%25zza"),
            ("http://a.org/a%00b", "org,a)/a%00b"),
            ("http://a.org/x?y?z=/", "org,a)/x?y?z=/"),
            (
                "http://a.org/%C3%A9\"q\"?%C3%BC=\"1\"",
                "org,a)/%c3%a9\"q\"?%c3%bc=\"1\"",
            ),
            (
                "http://a.org/(S(abcdefghijklmnopqrstuvwx))/p.aspx?q",
                "org,a)/p.aspx?q",
            ),
            (
                "http://a.org/d/(abcdefghijklmnopqrstuvwX)/p.ASPX",
                "org,a)/d/p.aspx",
            ),
            (
                &format!("http://a.org/x?PHPSESSID={session}&x=1"),
                "org,a)/x?x=1",
            ),
            (&format!("http://a.org/x?sid={session}"), "org,a)/x"),
            (
                &format!("http://a.org/x?b=1&jsessionid={session}&a=1"),
                "org,a)/x?a=1&b=1",
            ),
            ("http://a.org/x?cfid=1&cftoken=2&a=1", "org,a)/x?a=1"),
        ] {
            assert_eq!(key(url), expected, "{url}");
        }
    }
}
