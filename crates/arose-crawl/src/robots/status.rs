//! The meaning of the response to a request for `/robots.txt`, before its lines are read.

use std::time::Duration;

use super::Robots;

/// Maximum age of a file before it is fetched again, unless the site is unreachable.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// Maximum number of redirects; the RFC requires at least five.
pub const MAX_REDIRECTS: u32 = 5;

/// After being unreachable for this long, a site is treated as one without rules.
pub const UNREACHABLE_FOR: Duration = Duration::from_secs(30 * 24 * 3600);

/// The result of the request, after redirects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome<'b> {
    /// A final status, and the body.
    Status(u16, &'b [u8]),
    /// More than [`MAX_REDIRECTS`] redirects.
    TooManyRedirects,
    /// No useful response: no such host, no connection, too slow, truncated, cannot be decoded, or
    /// redirected to a URL where the crawler does not go.
    None,
}

impl Outcome<'_> {
    /// Whether the file was not available, so that it is unknown what is allowed.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Status(status, _) => !matches!(status, 200..=299 | 400..=428 | 430..=499),
            Self::TooManyRedirects => false,
            Self::None => true,
        }
    }
}

impl Robots {
    /// Returns the rules after this outcome, for the crawler `agent`, on a site that has been
    /// unreachable for the given time.
    ///
    /// 2xx: the file applies. 4xx, and redirects without end: there is no file, and everything is
    /// allowed. Anything else: the site is unreachable, and nothing is allowed, for 30 days. RFC
    /// 9309 counts 429 among the 4xx. But a server that receives too many requests has not said
    /// that it has no rules. It is treated as unreachable, so that its Retry-After is obeyed.
    #[must_use]
    pub fn from_outcome(outcome: Outcome<'_>, agent: &str, unreachable_for: Duration) -> Self {
        match outcome {
            Outcome::Status(200..=299, body) => Self::parse(body, agent),
            _ if outcome.is_unreachable() && unreachable_for < UNREACHABLE_FOR => {
                Self::disallow_all()
            }
            _ => Self::allow_all(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Normalizer;

    #[track_caller]
    fn check(outcome: Outcome<'_>, days: u64, allowed: bool) {
        let unreachable_for = Duration::from_secs(days * 24 * 3600);
        let robots = Robots::from_outcome(outcome, "arose", unreachable_for);
        let url = Normalizer::default().normalize("http://h/a", None).unwrap();
        assert_eq!(robots.verdict(&url).allowed, allowed, "{outcome:?} {days}");
    }

    #[test]
    fn statuses() {
        let body = b"User-agent: *\nDisallow: /a\n";
        check(Outcome::Status(200, body), 0, false);
        check(Outcome::Status(206, b""), 0, true);
        for status in [400, 401, 403, 404, 410, 451, 499] {
            check(Outcome::Status(status, body), 0, true);
        }
        for status in [100, 304, 429, 500, 503, 599, 600, 0] {
            check(Outcome::Status(status, b""), 0, false);
            check(Outcome::Status(status, b""), 29, false);
            check(Outcome::Status(status, b""), 30, true);
        }
        check(Outcome::TooManyRedirects, 0, true);
        check(Outcome::None, 0, false);
        check(Outcome::None, 30, true);
    }
}
