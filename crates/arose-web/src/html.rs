//! Templates, and escaping of untrusted text.

use arose_dedup::report::html::{Plain, Text, clip, web_address};
use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::nav::Nav;

/// Maximum characters shown of a name or URL.
const MAX_NAME: usize = 160;

/// Maximum characters shown of a few sentences.
const MAX_PROSE: usize = 2000;

/// Markup that is safe to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Markup(pub(crate) String);

impl std::fmt::Display for Markup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl askama::filters::HtmlSafe for Markup {}

/// Untrusted text as the content of an element: always shown, never interpreted.
pub(crate) fn shown(text: &str) -> Markup {
    Markup(Text(text).to_string())
}

/// The same, with its middle omitted if it is long.
pub(crate) fn name(text: &str) -> Markup {
    shown(&clip(text, MAX_NAME))
}

/// Sentences, with their middle omitted if they are too long.
pub(crate) fn prose(text: &str) -> Markup {
    shown(&clip(text, MAX_PROSE))
}

/// A link to an external URL, or only its text if it is not a web URL.
pub(crate) fn address(url: &str) -> Markup {
    let text = url.strip_prefix("https://").unwrap_or(url);
    let text = name(text);
    Markup(match web_address(url) {
        Some(link) => format!(
            "<a class=\"url\" rel=\"noopener noreferrer\" href=\"{}\"><bdi>{text}</bdi></a>",
            Plain(link)
        ),
        None => format!("<bdi class=\"url\">{text}</bdi>"),
    })
}

/// A part of a URL of this server: everything except letters, digits and a few symbols is encoded.
pub(crate) fn in_address(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The day and time for a number of seconds since 1970.
pub(crate) fn date(seconds: i64) -> String {
    let days = seconds.div_euclid(86_400);
    let (hour, minute) = (
        seconds.rem_euclid(86_400) / 3600,
        seconds.rem_euclid(3600) / 60,
    );
    // From days since 1970 to year, month and day, with years that start in March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

/// A page with only a message.
#[derive(Template)]
#[template(path = "notice.html")]
pub(crate) struct Notice<'a> {
    pub(crate) nav: Nav,
    pub(crate) title: &'a str,
    pub(crate) detail: &'a str,
}

/// Renders a template; an error is shown in place of the page.
pub(crate) fn render(template: &impl Template) -> String {
    template
        .render()
        .unwrap_or_else(|error| format!("The page cannot be shown: {}", Text(&error.to_string())))
}

/// A static file of this server.
pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    let (kind, text) = match &name[..] {
        "style.css" => (
            "text/css; charset=utf-8",
            include_str!("../assets/style.css"),
        ),
        "app.js" => (
            "text/javascript; charset=utf-8",
            include_str!("../assets/app.js"),
        ),
        "icon.svg" => ("image/svg+xml", include_str!("../assets/icon.svg")),
        _ => return (StatusCode::NOT_FOUND, "no such file").into_response(),
    };
    ([(CONTENT_TYPE, kind)], text).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days() {
        assert_eq!(date(0), "1970-01-01 00:00");
        assert_eq!(date(951_782_400), "2000-02-29 00:00");
        assert_eq!(date(1_794_787_199), "2026-11-15 23:59");
        assert_eq!(date(-1), "1969-12-31 23:59");
    }

    #[test]
    fn addresses_are_links_only_if_they_lead_to_the_web() {
        assert!(
            address("https://x.org/<b>")
                .0
                .contains("href=\"https://x.org/&lt;b&gt;\"")
        );
        assert!(!address("javascript:alert(1)").0.contains("href"));
        assert_eq!(in_address("a b&\"é"), "a%20b%26%22%C3%A9");
    }
}
