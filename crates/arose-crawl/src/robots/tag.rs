//! `X-Robots-Tag`: the directives of a response for crawlers.
//!
//! A header has directives separated by commas. `name:` before a directive addresses it, and those
//! that follow, to one crawler. Some directives have values; that of `unavailable_after` is a date,
//! which may itself have commas and colons. All headers count, and the strictest directive applies.
//! `unavailable_after` is about search results and says nothing about links.

/// Directives with a value, which are not names of crawlers.
const WITH_VALUE: [&str; 4] = [
    "unavailable_after",
    "max-snippet",
    "max-image-preview",
    "max-video-preview",
];

/// Whether the header with this value tells all crawlers, or the crawler `agent`, not to follow
/// links.
pub(crate) fn forbids_following(value: &str, agent: &str) -> bool {
    let mut is_for_us = true;
    for part in value.split(',') {
        let mut directive = part.trim();
        if let Some((name, rest)) = directive.split_once(':') {
            let name = name.trim_end();
            // A space inside is part of a date: `25 Jun 2010 15:00:00 PST`.
            if is_one_of(name, &WITH_VALUE) || name.contains(char::is_whitespace) {
                continue;
            }
            is_for_us = name == "*" || name.eq_ignore_ascii_case(agent);
            directive = rest.trim();
        }
        if is_for_us && is_one_of(directive, &["nofollow", "none"]) {
            return true;
        }
    }
    false
}

fn is_one_of(word: &str, words: &[&str]) -> bool {
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: bool) {
        assert_eq!(forbids_following(value, "arose"), expected, "{value}");
    }

    #[test]
    fn directives() {
        check("nofollow", true);
        check("NoIndex , NONE", true);
        check("noindex", false);
        check("", false);
        check("nofollowing", false);
    }

    #[test]
    fn values_are_no_names() {
        check(
            "unavailable_after: 25 Jun 2010 15:00:00 PST, nofollow",
            true,
        );
        check(
            "unavailable_after: Friday, 25-Jun-10 15:00:00 UTC, nofollow",
            true,
        );
        check("unavailable_after: 2010-06-25T15:00:00Z,nofollow", true);
        check("max-snippet:-1, nofollow", true);
        check("unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT", false);
        check(
            "other: unavailable_after: 1 Jan 2030 00:00:00 GMT, nofollow",
            false,
        );
    }

    #[test]
    fn names_hold_until_the_next() {
        check("arose: nofollow", true);
        check("Arose : noindex, nofollow", true);
        check("other: noindex, nofollow", false);
        check("other: none, arose: nofollow", true);
        check("arose: noindex, other: nofollow", false);
        check("*: nofollow", true);
    }
}
