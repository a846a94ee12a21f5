//! The outcome of a request: a [`Message`] within its [`FetchLimits`], or a [`Failure`].

use std::time::Duration;

/// Limits of time and size of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchLimits {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) whole: Duration,
    pub(crate) max_head: usize,
    pub(crate) max_body: usize,
}

/// Why there is no response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The IP address is not allowed.
    Forbidden,
    /// The connection was refused, or the host is unreachable.
    Unreachable,
    /// The TLS handshake failed.
    Tls,
    /// The certificate of the server is expired or not yet valid.
    ExpiredCertificate,
    /// No trusted authority has signed the certificate of the server.
    UnknownIssuer,
    /// The certificate of the server is for another host.
    OtherName,
    /// The connection was closed before a response began.
    Closed,
    /// A phase took too long.
    Slow,
    /// The bytes received are not a response.
    NotHttp,
    /// The head of the response does not end.
    LongHead,
    /// A parser failed on the response.
    Unreadable,
}

impl Failure {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Forbidden,
        Self::Unreachable,
        Self::Tls,
        Self::ExpiredCertificate,
        Self::UnknownIssuer,
        Self::OtherName,
        Self::Closed,
        Self::Slow,
        Self::NotHttp,
        Self::LongHead,
        Self::Unreadable,
    ];

    /// Returns its machine-readable code.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden-address",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::ExpiredCertificate => "certificate-expired",
            Self::UnknownIssuer => "certificate-unknown-issuer",
            Self::OtherName => "certificate-other-name",
            Self::Closed => "closed",
            Self::Slow => "timeout",
            Self::NotHttp => "not-http",
            Self::LongHead => "long-head",
            Self::Unreadable => "unreadable",
        }
    }

    /// Whether no connection lasted long enough for a response; it may on another day.
    pub(crate) fn is_of_connection(self) -> bool {
        self.is_passing() || self.is_of_tls()
    }

    /// Whether the TLS connection failed.
    fn is_of_tls(self) -> bool {
        matches!(
            self,
            Self::Tls | Self::ExpiredCertificate | Self::UnknownIssuer | Self::OtherName
        )
    }

    /// Whether a retry may succeed.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::Unreachable | Self::Closed | Self::Slow)
    }
}

/// Why a body was truncated, in the terms of WARC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is longer than the limit.
    Length,
    /// It took longer than the limit.
    Time,
    /// The connection ended before it was complete, or the rest is malformed.
    Disconnect,
}

impl Cut {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
        }
    }
}

/// Head and body as received, with chunks joined.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) head_end: usize,
    pub(crate) cut: Option<Cut>,
}

impl Message {
    pub(crate) fn head_bytes(&self) -> &[u8] {
        &self.bytes[..self.head_end]
    }

    pub(crate) fn head(&self) -> Option<Head<'_>> {
        Head::parse(self.head_bytes())
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[self.head_end..]
    }
}

/// Status line and headers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'b> {
    pub(crate) status: u16,
    is_1_1: bool,
    lines: &'b [u8],
}

impl<'b> Head<'b> {
    /// Parses a head; `None` if the status line is malformed.
    pub(crate) fn parse(bytes: &'b [u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', bytes)?;
        let (line, lines) = (&bytes[..end], &bytes[end + 1..]);
        let mut words = line
            .split(u8::is_ascii_whitespace)
            .filter(|word| !word.is_empty());
        let version = words
            .next()
            .filter(|version| version.starts_with(b"HTTP/"))?;
        let status = std::str::from_utf8(words.next()?).ok()?;
        let status = status
            .parse()
            .ok()
            .filter(|status| (100..1000).contains(status))?;
        Some(Self {
            status,
            is_1_1: version == b"HTTP/1.1",
            lines,
        })
    }

    /// Returns the first value of a header, if it is text.
    pub(crate) fn get(&self, name: &str) -> Option<&'b str> {
        std::str::from_utf8(self.values(name).next()?).ok()
    }

    /// Returns all values of a header.
    pub(crate) fn values(&self, name: &str) -> impl Iterator<Item = &'b [u8]> {
        let lines = self.lines.split(|&byte| byte == b'\n');
        lines.filter_map(move |line| {
            let (found, value) = line.split_at_checked(name.len())?;
            let value = value.trim_ascii_start().strip_prefix(b":")?;
            let is_it = found.eq_ignore_ascii_case(name.as_bytes());
            is_it.then_some(value.trim_ascii())
        })
    }

    /// Whether the connection stays open.
    pub(super) fn is_persistent(&self) -> bool {
        let has = |word: &str| {
            let value = self.get("connection").unwrap_or_default();
            value
                .split(',')
                .any(|item| item.trim().eq_ignore_ascii_case(word))
        };
        match self.is_1_1 {
            true => !has("close"),
            false => has("keep-alive"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_leniently() {
        let bytes = b"HTTP/1.1  200 OK\nContent-Type : text/html\r\nno colon\r\nX: \xff\r\nLocation:/a\r\n\r\n";
        let head = Head::parse(bytes).unwrap();
        assert_eq!(head.status, 200);
        assert_eq!(head.get("content-type"), Some("text/html"));
        assert_eq!(head.get("location"), Some("/a"));
        assert_eq!(head.get("x"), None);
        assert_eq!(head.get("no"), None);
        assert!(Head::parse(b"HTTP/1.1 99\r\n\r\n").is_none());
        assert!(Head::parse(b"ICY 200 OK\r\n\r\n").is_none());
    }

    #[test]
    fn codes_are_in_order() {
        for (index, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(failure as usize, index);
        }
    }
}
