//! Detects pages of traps: the same words, and links to further pages of the same kind.

use arose::digest::digest64;

use super::Found;
use crate::url::NormalUrl;

/// Texts up to this many bytes, without digits and URLs, always have their words compared.
const SHORT: usize = 1024;

/// Returns the digest of the words of a text, without digits and URLs, if pages of traps are
/// likely: for short texts, and for URLs with a query or an ID in the path.
pub(super) fn shape(url: &NormalUrl, text: &str) -> Option<u64> {
    let mut segments = url.path().split('/');
    let max_bytes = match url.query().is_some() || segments.any(looks_like_id) {
        true => usize::MAX,
        false => SHORT,
    };
    let words = text.split_ascii_whitespace();
    let mut shape = Vec::with_capacity(text.len().min(max_bytes));
    for word in words.filter(|word| !word.contains(['/', '?'])) {
        shape.extend(word.bytes().filter(|byte| !byte.is_ascii_digit()));
        shape.push(b' ');
        if shape.len() > max_bytes {
            return None;
        }
    }
    let is_empty = shape.iter().all(|&byte| byte == b' ');
    (!is_empty).then(|| digest64(&shape))
}

fn looks_like_id(segment: &str) -> bool {
    let has = |is: fn(&u8) -> bool| segment.bytes().any(|byte| is(&byte));
    segment.len() >= 8
        && !segment.contains('.')
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}

/// Whether a page links to others of its kind: to URLs with the same query parameters or the same
/// topmost path segment.
pub(super) fn leads_on(url: &NormalUrl, links: &[Found]) -> bool {
    let path = url.path();
    let top = path.get(1..).and_then(|rest| rest.find('/'));
    let is_own = |other: &NormalUrl| {
        let is_near = top.is_some_and(|end| other.path().starts_with(&path[..end + 2]));
        let query = url.query().zip(other.query());
        is_near || query.is_some_and(|(own, other)| names(own).eq(names(other)))
    };
    let is_other = |other: &NormalUrl| other.rest() != url.rest() && is_own(other);
    let mut links = links.iter().map(|found| &found.url);
    links.any(|other| other.origin() == url.origin() && is_other(other))
}

/// Returns the names of the parameters of a query.
fn names(query: &str) -> impl Iterator<Item = &str> {
    let pairs = query.split('&');
    pairs.map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
}
