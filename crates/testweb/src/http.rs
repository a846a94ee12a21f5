//! HTTP/1.1 as far as this server needs it: parses request heads and writes response heads.
//!
//! It does not use an HTTP library, since half of the responses must violate the protocol, which a
//! library would not allow.

use crate::reply::{Reply, Wire, reason};

/// Maximum size of a head.
const MOST_BYTES: usize = 64 << 10;

/// The head of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head<'a> {
    pub(crate) method: Method,
    pub(crate) host: &'a str,
    pub(crate) target: &'a str,
    pub(crate) if_none_match: &'a str,
    pub(crate) if_modified_since: &'a str,
    pub(crate) accepts_gzip: bool,
    pub(crate) then: Then,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Head,
    Other,
}

/// What happens to the connection after the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    Close,
}

/// The state of the bytes received so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed<'a> {
    /// The beginning of a head.
    Partial,
    /// An invalid request, which gets only this status.
    Bad(u16),
    /// A complete head with its number of bytes.
    Whole(Head<'a>, usize),
}

/// Parses a head.
pub(crate) fn parse(input: &[u8]) -> Parsed<'_> {
    let end = input.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(end) = end else {
        return match input.len() {
            0..MOST_BYTES => Parsed::Partial,
            _ => Parsed::Bad(431),
        };
    };
    let head = str::from_utf8(&input[..end]).ok().and_then(read_head);
    head.map_or(Parsed::Bad(400), |head| Parsed::Whole(head, end + 4))
}

fn read_head(text: &str) -> Option<Head<'_>> {
    let mut lines = text.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let mut head = Head {
        method: match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => Method::Other,
        },
        host: "",
        target,
        if_none_match: "",
        if_modified_since: "",
        accepts_gzip: false,
        then: if version == "HTTP/1.1" {
            Then::Keep
        } else {
            Then::Close
        },
    };
    for line in lines {
        let (name, value) = line.split_once(':')?;
        head.read_header(name, value.trim());
    }
    if let Some(rest) = target.strip_prefix("http://") {
        let end = rest.find('/').unwrap_or(rest.len());
        head.host = &rest[..end];
        head.target = if end == rest.len() { "/" } else { &rest[end..] };
    }
    head.host = head.host.split(':').next().unwrap_or_default();
    let is_clean = |text: &str| text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let is_good = head.target.starts_with('/') && is_clean(head.target) && is_clean(head.host);
    (is_good && !head.host.is_empty()).then_some(head)
}

impl<'a> Head<'a> {
    fn read_header(&mut self, name: &str, value: &'a str) {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            self.host = value;
        } else if is("connection") && value.eq_ignore_ascii_case("close") {
            self.then = Then::Close;
        } else if is("if-none-match") {
            self.if_none_match = value;
        } else if is("if-modified-since") {
            self.if_modified_since = value;
        } else if is("accept-encoding") {
            self.accepts_gzip = value.contains("gzip");
        } else if is("content-length") || is("transfer-encoding") {
            // The next bytes are a body, which this server does not read.
            self.then = Then::Close;
        }
    }
}

/// Appends the head of a response.
pub(crate) fn push_head(reply: &Reply, then: Then, unix_seconds: u64, out: &mut Vec<u8>) {
    use std::io::Write;
    let status = reply.status;
    let mut head = || -> std::io::Result<()> {
        write!(out, "HTTP/1.1 {status} {}\r\nDate: ", reason(status))?;
        out.extend_from_slice(date(unix_seconds).as_bytes());
        out.extend_from_slice(b"\r\n");
        if !reply.content_type.is_empty() {
            write!(out, "Content-Type: {}\r\n", reply.content_type)?;
        }
        out.extend_from_slice(reply.headers.as_bytes());
        if then == Then::Close {
            out.extend_from_slice(b"Connection: close\r\n");
        }
        match reply.wire {
            Wire::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            _ if status == 304 => {}
            _ => write!(out, "Content-Length: {}\r\n", reply.body.len())?,
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    };
    head().expect("writing to memory does not fail");
}

/// Splits a body into chunks.
pub(crate) fn chunks(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + body.len() / 256 + 16);
    for chunk in body.chunks(4096) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// A time in the format of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn date(unix_seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (days, seconds) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let (week_day, month) = (DAYS[(days % 7) as usize], MONTHS[month]);
    format!("{week_day}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// A day in the format of sitemaps: `1994-11-06`.
pub(crate) fn day(unix_seconds: u64) -> String {
    let (year, month, day) = civil(unix_seconds / 86_400);
    format!("{year:04}-{:02}-{day:02}", month + 1)
}

/// Year, month from 0 and day for a number of days since 1970. Years start on the first of March,
/// so that the leap day is last (Hinnant 2013).
const fn civil(days: u64) -> (u64, usize, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + if month < 2 { 1 } else { 0 };
    (year, month as usize, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head<'a>(host: &'a str, target: &'a str) -> Head<'a> {
        Head {
            method: Method::Get,
            host,
            target,
            if_none_match: "",
            if_modified_since: "",
            accepts_gzip: false,
            then: Then::Keep,
        }
    }

    #[track_caller]
    fn check(input: &str, expected: Parsed<'_>) {
        assert_eq!(parse(input.as_bytes()), expected, "{input:?}");
    }

    #[test]
    fn heads() {
        let get = "GET /a?b HTTP/1.1\r\nHost: X.test:80\r\n\r\n";
        check(get, Parsed::Whole(head("X.test", "/a?b"), get.len()));
        check(&get[..get.len() - 1], Parsed::Partial);
        check("", Parsed::Partial);
        check("GET / HTTP/1.1\r\n\r\n", Parsed::Bad(400));
        check("GET x HTTP/1.1\r\nHost: a\r\n\r\n", Parsed::Bad(400));
        check("GET /\x07 HTTP/1.1\r\nHost: a\r\n\r\n", Parsed::Bad(400));
        check("\r\n\r\n", Parsed::Bad(400));
    }

    #[test]
    fn headers() {
        let input = "HEAD http://b.test HTTP/1.0\r\nhost: a\r\nIf-None-Match: \"x\"\r\n\
                     Accept-Encoding: br, gzip\r\n\r\n";
        let expected = Head {
            method: Method::Head,
            if_none_match: "\"x\"",
            accepts_gzip: true,
            then: Then::Close,
            ..head("b.test", "/")
        };
        check(input, Parsed::Whole(expected, input.len()));
    }

    #[test]
    fn endless_heads_are_refused() {
        assert_eq!(parse(&vec![b'a'; MOST_BYTES]), Parsed::Bad(431));
    }

    #[test]
    fn dates() {
        assert_eq!(date(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(date(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(date(4_107_542_399), "Sun, 28 Feb 2100 23:59:59 GMT");
        assert_eq!(day(784_111_777), "1994-11-06");
    }

    #[test]
    fn chunking() {
        assert_eq!(chunks(b"abc"), b"3\r\nabc\r\n0\r\n\r\n");
        assert_eq!(chunks(b""), b"0\r\n\r\n");
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(input: Vec<u8>) {
            parse(&input);
        }
    }
}
