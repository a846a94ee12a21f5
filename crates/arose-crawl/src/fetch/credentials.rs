//! Credentials of single hosts: headers, cookies and passwords.
//!
//! Credentials belong to an origin: scheme, name and port. They are looked up by the origin of each
//! request, so a redirect or link to another host or port, or from `https` to `http`, does not
//! carry them. An entry `host."example.org"` without a scheme applies to `https://example.org`
//! only; other origins are written in full, as in `host."http://localhost:8080"`. Cookies of a
//! Netscape file follow their own rules: domain, path, `secure` and expiry date.
//!
//! Credentials are never stored: neither the requests in the archive nor the settings in its first
//! record contain them.

use std::collections::HashMap;
use std::path::Path;

use data_encoding::BASE64;

use super::Request;
use crate::error::{Context, Error};
use crate::settings::{HostSettings, Settings};

/// Headers by origin, and cookies by domain.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    by_origin: HashMap<String, Sent>,
    cookies: Vec<Cookie>,
}

/// The data sent to an origin.
#[derive(Debug, Default)]
struct Sent {
    headers: Vec<(String, String)>,
    cookies: String,
}

/// A cookie of a file.
#[derive(Debug, PartialEq, Eq)]
struct Cookie {
    /// Without a dot before it.
    domain: String,
    /// Whether hosts below the domain get it too.
    goes_below: bool,
    path: String,
    is_secure: bool,
    /// Seconds since 1970; 0 for never.
    expires: u64,
    /// `name=value`.
    pair: String,
}

impl Credentials {
    /// Reads the credentials of these settings.
    pub(crate) fn new(settings: &Settings) -> Result<Self, Error> {
        let mut by_origin = HashMap::new();
        for (key, host) in &settings.host {
            let sent = sent(key, host)?;
            if !sent.headers.is_empty() || !sent.cookies.is_empty() {
                by_origin.insert(origin(key), sent);
            }
        }
        let cookies = match &settings.network.cookies {
            Some(path) => read_cookies(path)?,
            None => Vec::new(),
        };
        Ok(Self { by_origin, cookies })
    }

    /// Returns the headers for a request at a time in seconds since 1970.
    pub(super) fn headers(&self, request: &Request, now: u64) -> Vec<(&str, String)> {
        if self.by_origin.is_empty() && self.cookies.is_empty() {
            return Vec::new();
        }
        let scheme = if request.is_tls { "https" } else { "http" };
        let sent = self
            .by_origin
            .get(&format!("{scheme}://{}", request.authority));
        let headers = sent.iter().flat_map(|sent| &sent.headers);
        let mut headers: Vec<(&str, String)> = headers
            .map(|(name, value)| (name.as_str(), value.clone()))
            .collect();
        let own = sent.map(|sent| sent.cookies.as_str()).into_iter();
        let from_file = self
            .cookies
            .iter()
            .filter(|cookie| cookie.is_for(request, now));
        let pairs = own.chain(from_file.map(|cookie| cookie.pair.as_str()));
        let pairs: Vec<&str> = pairs.filter(|pair| !pair.is_empty()).collect();
        if !pairs.is_empty() {
            headers.push(("Cookie", pairs.join("; ")));
        }
        headers
    }
}

/// Returns the origin of an entry, as it occurs in URLs.
fn origin(key: &str) -> String {
    let text = match key.contains("://") {
        true => key.to_owned(),
        false => format!("https://{key}"),
    };
    let url = url::Url::parse(&text).ok();
    url.map_or(text, |url| url.origin().ascii_serialization())
}

fn sent(key: &str, host: &HostSettings) -> Result<Sent, Error> {
    let bad = |what: &str| Error::Settings(format!("`host.\"{key}\"`: {what}"));
    let mut headers: Vec<(String, String)> = host.headers.clone().into_iter().collect();
    match (&host.user, &host.bearer) {
        (Some(_), Some(_)) => return Err(bad("set either user and password or bearer, not both")),
        (Some(user), None) => {
            let pair = format!("{user}:{}", host.password.as_deref().unwrap_or_default());
            let value = format!("Basic {}", BASE64.encode(pair.as_bytes()));
            headers.push(("Authorization".to_owned(), value));
        }
        (None, Some(token)) => {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        (None, None) if host.password.is_some() => return Err(bad("a password needs a user")),
        (None, None) => {}
    }
    let cookies = host.cookies.clone().unwrap_or_default();
    let all = headers.iter().map(|(name, value)| (name.as_str(), value));
    for (name, value) in all.chain([("Cookie", &cookies)]) {
        let is_name = hyper::header::HeaderName::from_bytes(name.as_bytes()).is_ok();
        let is_value = hyper::header::HeaderValue::from_str(value).is_ok();
        if !is_name || !is_value {
            return Err(bad(&format!("`{name}` cannot be sent as a header")));
        }
    }
    Ok(Sent { headers, cookies })
}

/// Reads a Netscape cookie file, as browsers and curl export it.
fn read_cookies(path: &Path) -> Result<Vec<Cookie>, Error> {
    let text = std::fs::read_to_string(path).context("reading", path)?;
    let mut cookies = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.strip_prefix("#HttpOnly_").unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let cookie = Cookie::parse(line).ok_or_else(|| {
            let path = path.display();
            Error::Settings(format!(
                "`{path}`, line {number}: expected seven fields with tabs between them: domain, \
                 TRUE or FALSE, path, TRUE or FALSE, expiry, name, value"
            ))
        })?;
        cookies.push(cookie);
    }
    Ok(cookies)
}

impl Cookie {
    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim_end_matches('\r').split('\t').collect();
        let [domain, below, path, secure, expires, name, value] = fields[..] else {
            return None;
        };
        let is_true = |text: &str| match text {
            "TRUE" => Some(true),
            "FALSE" => Some(false),
            _ => None,
        };
        let pair = format!("{name}={value}");
        hyper::header::HeaderValue::from_str(&pair).ok()?;
        Some(Self {
            domain: domain.trim_start_matches('.').to_ascii_lowercase(),
            goes_below: is_true(below)?,
            path: path.to_owned(),
            is_secure: is_true(secure)?,
            expires: expires.parse().ok()?,
            pair,
        })
    }

    fn is_for(&self, request: &Request, now: u64) -> bool {
        let is_host = match request.name.strip_suffix(self.domain.as_str()) {
            Some("") => true,
            Some(before) => self.goes_below && before.ends_with('.'),
            None => false,
        };
        let path = request.rest.split('?').next().unwrap_or_default();
        let is_path = path.strip_prefix(self.path.as_str()).is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        });
        let is_valid = self.expires == 0 || now < self.expires;
        is_host && is_path && is_valid && (request.is_tls || !self.is_secure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Kind;

    fn request(url: &str) -> Request {
        let (scheme, rest) = url.split_once("://").unwrap();
        let (authority, path) = rest.split_at(rest.find('/').unwrap());
        Request {
            address: "127.0.0.1:1".parse().unwrap(),
            name: authority.split(':').next().unwrap().into(),
            authority: authority.into(),
            is_tls: scheme == "https",
            is_file: false,
            rest: path.into(),
            kind: Kind::Page,
            condition: None,
            kept: Default::default(),
        }
    }

    fn credentials(toml: &str) -> Result<Credentials, Error> {
        Credentials::new(&Settings::parse(toml).unwrap())
    }

    #[track_caller]
    fn check(credentials: &Credentials, url: &str, expected: &[(&str, &str)]) {
        let headers = credentials.headers(&request(url), 1000);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        assert_eq!(headers, expected, "{url}");
    }

    #[test]
    fn issue_22_credentials_belong_to_one_origin() {
        let credentials = credentials(
            "[host.\"example.org\"]\nuser = \"u\"\npassword = \"p\"\n\
             [host.\"http://localhost:8080\"]\nbearer = \"t\"\ncookies = \"a=b\"\n\
             headers = { X-Key = \"k\" }\n",
        );
        let credentials = credentials.unwrap();
        check(
            &credentials,
            "https://example.org/x",
            &[("Authorization", "Basic dTpw")],
        );
        check(
            &credentials,
            "http://localhost:8080/",
            &[
                ("X-Key", "k"),
                ("Authorization", "Bearer t"),
                ("Cookie", "a=b"),
            ],
        );
        for other in [
            "http://example.org/",
            "https://example.org:444/",
            "https://www.example.org/",
            "https://example.org.evil.test/",
            "http://localhost/",
            "https://localhost:8080/",
        ] {
            check(&credentials, other, &[]);
        }
    }

    #[test]
    fn what_cannot_be_sent_is_refused() {
        for (toml, part) in [
            ("[host.h]\nuser = \"u\"\nbearer = \"t\"\n", "not both"),
            ("[host.h]\npassword = \"p\"\n", "needs a user"),
            ("[host.h]\nheaders = { \"a b\" = \"c\" }\n", "`a b`"),
            ("[host.h]\ncookies = \"a\\nb\"\n", "`Cookie`"),
        ] {
            let error = credentials(toml).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn issue_22_cookie_files_go_by_domain_path_and_date() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cookies.txt");
        let text = "# Netscape HTTP Cookie File\n\n\
            .example.org\tTRUE\t/\tFALSE\t0\ta\t1\n\
            #HttpOnly_example.org\tFALSE\t/docs\tTRUE\t2000\tb\t2\n\
            example.org\tFALSE\t/\tFALSE\t999\told\t3\n";
        std::fs::write(&path, text).unwrap();
        let credentials = credentials(&format!(
            "[network]\ncookies = {:?}\n",
            path.display().to_string()
        ));
        let credentials = credentials.unwrap();
        check(
            &credentials,
            "http://example.org/docs",
            &[("Cookie", "a=1")],
        );
        check(
            &credentials,
            "https://example.org/docs/x?y",
            &[("Cookie", "a=1; b=2")],
        );
        check(
            &credentials,
            "https://example.org/docsx",
            &[("Cookie", "a=1")],
        );
        check(
            &credentials,
            "https://www.example.org/docs/",
            &[("Cookie", "a=1")],
        );
        check(&credentials, "https://notexample.org/", &[]);
        std::fs::write(&path, "a b c\n").unwrap();
        let error = read_cookies(&path).unwrap_err().to_string();
        assert!(error.contains("line 1: expected seven fields"), "{error}");
    }
}
