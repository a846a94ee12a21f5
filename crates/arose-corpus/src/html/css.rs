//! Finds the URLs that a style sheet loads: `url(…)` and `@import "…"`.
//!
//! A style sheet is not parsed. It is searched for these two forms, so a URL in a comment counts
//! too, and a URL with escapes is returned as written. Time is linear in the sheet.

/// The URLs of a style sheet as written, in order.
pub fn urls(css: &str) -> impl Iterator<Item = &str> {
    let mut rest = css;
    std::iter::from_fn(move || {
        loop {
            let (start, opener) = next_opener(rest)?;
            rest = &rest[start + opener.len()..];
            let (url, after) = match opener {
                "url(" => argument(rest),
                _ => quoted(rest.trim_start()).unwrap_or(("", rest)),
            };
            rest = after;
            let url = url.trim();
            if !url.is_empty() && !starts_with_ignoring_case(url, "data:") {
                return Some(url);
            }
        }
    })
}

const OPENERS: [&str; 2] = ["url(", "@import"];

/// The position of the next URL, and its form.
fn next_opener(css: &str) -> Option<(usize, &'static str)> {
    let mut candidates = memchr::memchr3_iter(b'u', b'U', b'@', css.as_bytes());
    candidates.find_map(|at| {
        let here = &css[at..];
        let opener = OPENERS
            .into_iter()
            .find(|opener| starts_with_ignoring_case(here, opener))?;
        Some((at, opener))
    })
}

fn starts_with_ignoring_case(text: &str, start: &str) -> bool {
    let head = text.as_bytes().get(..start.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

/// The text between the parentheses, and the rest.
fn argument(css: &str) -> (&str, &str) {
    let inner = css.trim_start();
    if let Some(found) = quoted(inner) {
        return found;
    }
    match inner.find(')') {
        Some(end) => (&inner[..end], &inner[end..]),
        None => ("", ""),
    }
}

/// A quoted string, and the rest.
fn quoted(css: &str) -> Option<(&str, &str)> {
    let quote = css.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = &css[1..];
    let end = inner.find([quote, '\n'])?;
    Some((&inner[..end], &inner[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(css: &str, expected: &[&str]) {
        assert_eq!(urls(css).collect::<Vec<_>>(), expected, "{css}");
    }

    #[test]
    fn urls_and_imports() {
        check(
            "a { background: url(x.png) } b { src: URL( 'y.woff' ) }",
            &["x.png", "y.woff"],
        );
        check(
            "@import \"a.css\"; @import url(b.css) print; @IMPORT 'c.css'",
            &["a.css", "b.css", "c.css"],
        );
        check(
            "p { background: url(data:image/png;base64,x) , url(\"z.gif\")",
            &["z.gif"],
        );
        check("url( url(", &[]);
        check("@import nothing; u @ ü url()", &[]);
        check("url(\"open", &[]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_searched(css in "(url\\(|@import|'|\"|\\)|ü|x| |\n)*") {
            let n_bytes: usize = urls(&css).map(str::len).sum();
            proptest::prop_assert!(n_bytes <= css.len());
        }
    }
}
