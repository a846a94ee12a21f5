//! Normalized URLs: the one spelling used to compare URLs.
//!
//! *Question.* A page is linked to as `http://ABC.com/%7Esmith/`, as
//! `http://abc.com:80/~smith/#top` and in a dozen other ways. Fetching each would waste most of a
//! crawl. Which string represents all of them?
//!
//! *Idea.* Undo only differences that by RFC 3986 (section 6.2) cannot change the resource. In this
//! order: trim; resolve against a base; lower-case scheme and host; the host in ASCII
//! (IDNA); no user information and no trailing dot in the host; no default or empty port; escapes
//! of unreserved characters decoded and the others in upper case; no dot segments; `/` for an empty
//! path; no fragment; no empty query. The last is not safe by the RFC, but empty queries are mostly
//! left by forms and scripts; it has a switch ([`EmptyQuery`]). The characters that must be
//! escaped, backslashes, whitespace inside and odd forms of IPv4 addresses are read as browsers
//! do, by the crate `url`.
//!
//! *Session IDs.* Servers that track visitors without cookies write a session ID into every link:
//! `;jsessionid=…` in the path, `?PHPSESSID=…` in the query. [`SessionIds::Drop`] removes those
//! whose name is known to carry nothing else. It is off by default, because it goes beyond the RFC.
//!
//! Some changes are *never* made: sorting parameters, collapsing `//`, removing `index.html` or
//! `www.`. Each would be correct on most sites and lose pages on the others.
//!
//! *Cost.* About 30 ns for a URL that is already normalized, 300 to 600 ns otherwise; memory linear
//! in the URL. *Invariant.* Normalizing a normalized URL changes nothing. The rules are part of
//! every file that stores fingerprints: if a result changes, [`VERSION`] must be raised.
//!
//! ```
//! use arose_corpus::url::Normalizer;
//! let url = Normalizer::default().normalize("HTTP://ABC.com:80/%7Esmith/../a?#top", None)?;
//! assert_eq!(url.as_str(), "http://abc.com/a");
//! # Ok::<(), arose_corpus::url::Invalid>(())
//! ```

pub mod escape;
mod session_id;

use ::url::{Host, ParseError};
use arose::site::{SiteKind, site};

pub use ::url::Url;

/// The origin of local files.
const LOCAL: &str = "file://localhost";

/// The version of the rules. Fingerprints of different versions must not be compared.
pub const VERSION: u32 = 1;

/// Which rules to apply.
#[derive(Debug, Clone, Default)]
pub struct Normalizer {
    /// How to treat `user:password@`.
    pub user_info: UserInfo,
    /// How to treat a `?` with nothing after it.
    pub empty_query: EmptyQuery,
    /// How to treat session IDs and tracking parameters.
    pub session_ids: SessionIds,
    /// Whether URLs of local files are accepted.
    pub files: FileUrls,
}

/// Whether `file:` URLs are accepted. Their normalized URLs have a host: `file://localhost/path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileUrls {
    /// They are rejected.
    #[default]
    Refuse,
    /// They are accepted if they name no host or this one.
    Accept,
}

/// How to treat `user:password@`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UserInfo {
    /// Remove it: credentials in a link must not be used.
    #[default]
    Drop,
    /// Keep it.
    Keep,
}

/// How to treat a `?` with nothing after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EmptyQuery {
    /// Remove it.
    #[default]
    Drop,
    /// Keep it: RFC 3986 treats the two as different URLs.
    Keep,
}

/// How to treat parameters that only track a visitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionIds {
    /// Keep them.
    #[default]
    Keep,
    /// Remove those with a well-known name: session IDs (`PHPSESSID`, `;jsessionid=`, `/(S(…))/`)
    /// and tracking parameters of campaigns (`utm_source`, `gclid`).
    Drop,
}

/// Why a string is not a web URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A relative URL without a base.
    #[error("relative URL without a base; start it with http:// or https://")]
    Relative,
    /// Its scheme is neither `http` nor `https`.
    #[error("the scheme is not http or https")]
    Scheme,
    /// It cannot be read as a URL.
    #[error("{0}")]
    Syntax(ParseError),
}

impl Normalizer {
    /// The normalized URL of `input`, resolved against `base` if it is relative.
    ///
    /// # Errors
    ///
    /// [`Invalid`] if it is not an `http` or `https` URL.
    pub fn normalize(&self, input: &str, base: Option<&Url>) -> Result<NormalUrl, Invalid> {
        match NormalUrl::plain(input) {
            Some(url) if self.session_ids == SessionIds::Keep => Ok(url),
            _ => self.rewrite(input, base),
        }
    }

    /// The normalized URL of an absolute URL on the host of another, if it clearly is normalized
    /// already. Most links stay on their host, whose spelling need not be checked again.
    #[must_use]
    pub fn normalize_beside(&self, input: &str, other: &NormalUrl) -> Option<NormalUrl> {
        let rest = input.strip_prefix(other.origin())?;
        let is_plain =
            rest.starts_with('/') && is_plain_rest(rest) && self.session_ids == SessionIds::Keep;
        is_plain.then(|| NormalUrl {
            text: input.to_owned(),
            host: other.host,
            path_start: other.path_start,
        })
    }

    /// The slow path, which is correct for every input.
    fn rewrite(&self, input: &str, base: Option<&Url>) -> Result<NormalUrl, Invalid> {
        let parsed = match base {
            Some(base) => resolve(input, base),
            None => Url::parse(input),
        };
        let parsed = parsed.map_err(|error| match error {
            ParseError::RelativeUrlWithoutBase => Invalid::Relative,
            error => Invalid::Syntax(error),
        })?;
        let is_file = parsed.scheme() == "file" && self.files == FileUrls::Accept;
        if !is_file && !matches!(parsed.scheme(), "http" | "https") {
            return Err(Invalid::Scheme);
        }
        let mut out = Vec::with_capacity(parsed.as_str().len());
        let host = match (is_file, parsed.host_str()) {
            (false, _) => self.push_origin(&parsed, &mut out),
            (true, None | Some("" | "localhost")) => {
                out.extend_from_slice(LOCAL.as_bytes());
                (LOCAL.len() - "localhost".len(), LOCAL.len())
            }
            // Files of other machines are not accepted.
            (true, Some(_)) => return Err(Invalid::Scheme),
        };
        let path_start = out.len();
        self.push_path(parsed.path(), &mut out);
        if let Some(query) = parsed.query() {
            self.push_query(query, &mut out);
        }
        let text = String::from_utf8(out).expect("a parsed URL is ASCII and stays so");
        Ok(NormalUrl {
            text,
            host,
            path_start,
        })
    }

    /// Appends everything before the path. Returns the range of the host.
    fn push_origin(&self, url: &Url, out: &mut Vec<u8>) -> (usize, usize) {
        out.extend_from_slice(url.scheme().as_bytes());
        out.extend_from_slice(b"://");
        let has_user_info = !url.username().is_empty() || url.password().is_some();
        if self.user_info == UserInfo::Keep && has_user_info {
            out.extend_from_slice(url.username().as_bytes());
            if let Some(password) = url.password() {
                out.push(b':');
                out.extend_from_slice(password.as_bytes());
            }
            out.push(b'@');
        }
        let start = out.len();
        out.extend_from_slice(host(url).as_bytes());
        let end = out.len();
        if let Some(port) = url.port() {
            out.extend_from_slice(format!(":{port}").as_bytes());
        }
        (start, end)
    }

    fn push_path(&self, path: &str, out: &mut Vec<u8>) {
        let start = out.len();
        escape::push_normal(path.as_bytes(), out);
        if self.session_ids == SessionIds::Drop {
            session_id::drop_from_path(out, start);
        }
        if out.len() == start {
            out.push(b'/');
        }
    }

    fn push_query(&self, query: &str, out: &mut Vec<u8>) {
        let start = out.len();
        out.push(b'?');
        escape::push_normal(query.as_bytes(), out);
        if self.session_ids == SessionIds::Drop {
            session_id::drop_from_query(out, start + 1);
        }
        if out.len() == start + 1 && self.empty_query == EmptyQuery::Drop {
            out.truncate(start);
        }
    }
}

/// Browsers skip any number of slashes before the host; the crate skips only two.
fn resolve(input: &str, base: &Url) -> Result<Url, ParseError> {
    let is_slash = |c: char| matches!(c, '/' | '\\');
    let trimmed = input.trim_start_matches(|c: char| c <= ' ');
    let host = trimmed.trim_start_matches(is_slash);
    if trimmed.len() - host.len() > 2 && base.is_special() {
        base.join(&format!("//{host}"))
    } else {
        base.join(input)
    }
}

/// The host without the trailing dot, which stands for the DNS root. If there are several dots,
/// none is removed: the rest could then be read as an IP address, and no such host exists anyway.
fn host(url: &Url) -> &str {
    let text = url.host_str().unwrap_or_default();
    match url.host() {
        Some(Host::Domain(name)) => match name.strip_suffix('.') {
            Some(name) if !name.is_empty() && !name.ends_with('.') => name,
            _ => text,
        },
        _ => text,
    }
}

/// A normalized `http` or `https` URL, or that of a local file; only a [`Normalizer`] creates one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NormalUrl {
    text: String,
    /// Start and end of the host.
    host: (usize, usize),
    path_start: usize,
}

impl NormalUrl {
    /// A URL from an origin and the rest, both taken from a normalized URL; none if they cannot be
    /// parts of one.
    #[must_use]
    pub fn from_parts(origin: &str, rest: &str) -> Option<Self> {
        let start = origin.find("://")? + 3;
        let authority = &origin[start..];
        let user = authority.rfind('@').map_or(0, |at| at + 1);
        let host = &authority[user..];
        let length = match host.rfind(':') {
            Some(colon) if !host.ends_with(']') => colon,
            _ => host.len(),
        };
        let is_url = length > 0 && rest.starts_with('/');
        is_url.then(|| Self {
            text: [origin, rest].concat(),
            host: (start + user, start + user + length),
            path_start: origin.len(),
        })
    }

    /// The whole URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// `http`, `https` or `file`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.text.split(':').next().unwrap_or_default()
    }

    /// Whether it is the URL of a local file.
    #[must_use]
    pub fn is_file(&self) -> bool {
        self.text.starts_with("file:")
    }

    /// The host name or IP address, without port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.text[self.host.0..self.host.1]
    }

    /// The origin: `scheme://host[:port]`.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.text[..self.path_start]
    }

    /// Everything after the origin: path and query.
    #[must_use]
    pub fn rest(&self) -> &str {
        &self.text[self.path_start..]
    }

    /// The path, which begins with a slash.
    #[must_use]
    pub fn path(&self) -> &str {
        self.rest().split('?').next().unwrap_or_default()
    }

    /// The part after the first question mark.
    #[must_use]
    pub fn query(&self) -> Option<&str> {
        self.rest().split_once('?').map(|(_, query)| query)
    }

    /// The registrable domain of the host; an IP address is its own site.
    #[must_use]
    pub fn site(&self) -> &str {
        match site(self.host(), SiteKind::Registrable) {
            std::borrow::Cow::Borrowed(site) => site,
            // A normalized host is lower-case ASCII, which is never copied.
            std::borrow::Cow::Owned(_) => self.host(),
        }
    }

    /// `input` itself if it clearly is normalized: a lower-case host without port or encoding, and
    /// a path and query of characters that no rule changes. Most links are, and need no parser.
    fn plain(input: &str) -> Option<Self> {
        let after_scheme = match input.as_bytes() {
            [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => 7,
            [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => 8,
            _ => return None,
        };
        let slash = memchr::memchr(b'/', &input.as_bytes()[after_scheme..])? + after_scheme;
        let (host, rest) = (&input[after_scheme..slash], &input[slash..]);
        (is_plain_host(host) && is_plain_rest(rest)).then(|| Self {
            text: input.to_owned(),
            host: (after_scheme, slash),
            path_start: slash,
        })
    }
}

impl std::fmt::Display for NormalUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// Labels of lower-case letters, digits and hyphens, none of them encoded; the last is not a
/// number.
fn is_plain_host(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_plain = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-');
        !label.is_empty() && !label.starts_with("xn--") && label.bytes().all(is_plain)
    };
    let last = host.rsplit('.').next().unwrap_or_default();
    last.starts_with(|first: char| first.is_ascii_lowercase()) && host.split('.').all(is_label)
}

/// No escape, no character to be escaped, no segment that begins with a dot, no empty query.
fn is_plain_rest(rest: &str) -> bool {
    let mut previous = b'/';
    let is_plain = rest.bytes().all(|byte| {
        let fits = PLAIN[usize::from(byte)] && !(byte == b'.' && previous == b'/');
        previous = byte;
        fits
    });
    is_plain && !(previous == b'?' && memchr::memchr(b'?', rest.as_bytes()) == Some(rest.len() - 1))
}

static PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/-_.~+=&,;:@!$*()?";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests;
