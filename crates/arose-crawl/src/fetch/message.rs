//! What comes of a request: a [`Message`] within its [`FetchLimits`], or a [`Failure`].

use std::time::Duration;

/// Times and sizes of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchLimits {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) whole: Duration,
    pub(crate) max_head: usize,
    pub(crate) max_body: usize,
}

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// The address may not be asked.
    Forbidden,
    /// Nobody listens there, or nobody can be reached.
    Unreachable,
    /// No secure connection could be agreed on.
    Tls,
    /// The certificate of the server is expired, or not valid yet.
    ExpiredCertificate,
    /// Nobody who is trusted has signed the certificate of the server.
    UnknownIssuer,
    /// The certificate of the server is for another host.
    OtherName,
    /// The connection was closed before an answer began.
    Closed,
    /// A phase took too long.
    Slow,
    /// What came is no answer.
    NotHttp,
    /// The head of the answer does not end.
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

    /// A code for machines.
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

    /// Whether no connection stood long enough for a response: another day it may.
    pub(crate) fn is_of_connection(self) -> bool {
        self.is_passing() || self.is_of_tls()
    }

    /// Whether no secure connection could be made.
    fn is_of_tls(self) -> bool {
        matches!(
            self,
            Self::Tls | Self::ExpiredCertificate | Self::UnknownIssuer | Self::OtherName
        )
    }

    /// Whether another try may succeed.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::Unreachable | Self::Closed | Self::Slow)
    }
}

/// What cut a body short, in the words of WARC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// It is longer than the limit.
    Length,
    /// It took longer than the limit.
    Time,
    /// The connection ended before it, or it makes no sense from there on.
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

/// Head and body as they came, chunks joined.
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
    /// Reads a head; none if the status line is none.
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

    /// The first value of a header, if it is text.
    pub(crate) fn get(&self, name: &str) -> Option<&'b str> {
        std::str::from_utf8(self.values(name).next()?).ok()
    }

    /// All values of a header.
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
