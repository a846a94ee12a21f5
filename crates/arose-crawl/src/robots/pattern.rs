//! Patterns of rules, and paths in the normalized form in which they are compared.
//!
//! A pattern is split at its stars. The first piece must begin the path. Each further piece is
//! searched from the end of the previous match, and the leftmost match is taken: if the pattern can
//! match at all, this finds a match. So there is no backtracking. Because the search for a piece is
//! linear (two-way), the whole is linear in pattern plus path, regardless of the number of stars.

use std::borrow::Cow;

use memchr::memmem;

use crate::url::escape;

/// A pattern with `*` for anything and a final `$` for the end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pattern {
    /// Normalized, without the final `$`, and with one star in place of several.
    text: Box<[u8]>,
    is_anchored: bool,
}

impl Pattern {
    pub(super) fn new(written: &[u8]) -> Self {
        let (written, is_anchored) = match written.strip_suffix(b"$") {
            Some(stem) => (stem, true),
            None => (written, false),
        };
        let mut text = canonical(written, |byte| byte == b'*');
        text.dedup_by(|next, previous| (*next, *previous) == (b'*', b'*'));
        Self {
            text: text.into(),
            is_anchored,
        }
    }

    /// Returns how specific it is: the number of octets of the normalized pattern.
    pub(super) fn n_octets(&self) -> usize {
        self.text.len() + usize::from(self.is_anchored)
    }

    pub(super) fn has_star(&self) -> bool {
        self.text.contains(&b'*')
    }

    /// Whether it matches a path from [`canonical_path`].
    pub(super) fn is_match(&self, path: &[u8]) -> bool {
        let mut pieces = self.text.split(|&byte| byte == b'*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else {
            return false;
        };
        let Some(last) = pieces.next_back() else {
            return rest.is_empty() || !self.is_anchored;
        };
        for piece in pieces {
            match memmem::find(rest, piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        if self.is_anchored {
            rest.ends_with(last)
        } else {
            memmem::find(rest, last).is_some()
        }
    }
}

/// Writes the normalized pattern, which is ASCII and matches the same paths.
impl std::fmt::Display for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.text))?;
        f.write_str(if self.is_anchored { "$" } else { "" })
    }
}

/// Normalizes a path and query for comparison with patterns. A star or dollar of the URL is
/// escaped, because it is not one of a pattern.
pub(super) fn canonical_path(path: &[u8]) -> Cow<'_, [u8]> {
    let is_canonical = |&byte: &u8| byte != b'%' && is_kept(byte);
    if path.iter().all(is_canonical) {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(canonical(path, |_| false))
    }
}

/// Normalizes escapes, and escapes characters that are not allowed in URLs, except those that
/// `is_special` keeps.
fn canonical(text: &[u8], is_special: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut normal = Vec::with_capacity(text.len());
    escape::push_normal(text, &mut normal);
    let mut out = Vec::with_capacity(normal.len());
    for byte in normal {
        if is_kept(byte) || is_special(byte) {
            out.push(byte);
        } else {
            escape::push_escaped(byte, &mut out);
        }
    }
    out
}

/// Whether the byte is a character of URLs, except three: `*` and `$`, which have a meaning in
/// patterns, and `'`, which URL parsers escape in a query but not in a path.
fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!&()+,;=%".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, path: &str, expected: bool) {
        let path_bytes = canonical_path(path.as_bytes());
        let is_match = Pattern::new(pattern.as_bytes()).is_match(&path_bytes);
        assert_eq!(is_match, expected, "{pattern} {path}");
    }

    #[test]
    fn prefixes() {
        check("/fish", "/fish/salmon", true);
        check("/fish", "/catfish", false);
        check("/", "/", true);
        check("fish", "/fish", false);
    }

    #[test]
    fn stars() {
        check("/*.php", "/a/b.php?c", true);
        check("*.php", "/b.php", true);
        check("/a**b", "/axxb", true);
        check("/a*", "/a", true);
        check("/a*b*c", "/abc", true);
        check("/a*bc*c", "/abc", false);
        check("/*aa*aa", "/aaa", false);
    }

    #[test]
    fn ends() {
        check("/a$", "/a", true);
        check("/a$", "/ab", false);
        check("/*.php$", "/x.php.php", true);
        check("/*.php$", "/x.php?y", false);
        check("/*$", "/x", true);
        check("/a*a$", "/a", false);
        check("/a$b", "/a$bc", true);
        check("$", "/", false);
    }

    /// Examples of RFC 9309, section 2.2.2 and 2.2.3.
    #[test]
    fn spellings() {
        check("/foo/bar/\u{30C4}", "/foo/bar/%E3%83%84", true);
        check("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84", true);
        check("/foo/bar/%62%61%7A", "/foo/bar/baz", true);
        check(
            "/foo/bar?baz=https://foo.bar",
            "/foo/bar?baz=https://foo.bar",
            true,
        );
        check(
            "/path/file-with-a-%2A.html",
            "/path/file-with-a-*.html",
            true,
        );
        check("/path/foo-%24", "/path/foo-$", true);
        check("/a%3Ab", "/a:b", false);
        check("/a b", "/a%20b", true);
        check("/?it's", "/?it%27s", true);
    }

    /// The definition: tries all ways to replace each star by a text.
    fn is_match_slowly(pattern: &[u8], path: &[u8]) -> bool {
        match (pattern, path) {
            ([], _) | ([b'$'], []) => true,
            ([b'*', rest @ ..], _) => {
                (0..=path.len()).any(|taken| is_match_slowly(rest, &path[taken..]))
            }
            ([first, pattern @ ..], [byte, path @ ..]) if first == byte => {
                is_match_slowly(pattern, path)
            }
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn leftmost_finds_suffice(pattern in "[ab*]{0,8}\\$?", path in "[ab]{0,12}") {
            let expected = is_match_slowly(pattern.as_bytes(), path.as_bytes());
            prop_assert_eq!(Pattern::new(pattern.as_bytes()).is_match(path.as_bytes()), expected);
        }

        #[test]
        fn spelling_is_idempotent(path in any::<Vec<u8>>()) {
            let once = canonical_path(&path).into_owned();
            prop_assert_eq!(canonical_path(&once).into_owned(), once.clone());
        }
    }
}
