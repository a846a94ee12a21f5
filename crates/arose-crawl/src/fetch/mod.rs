//! The fetcher: one GET, whatever the server does.
//!
//! *Question.* Servers hang, lie about lengths, send without end, close in the middle, present bad
//! certificates. What came of this request? *Idea.* Every phase has a time and every part a size
//! ([`Limits`]); the outcome is a [`Response`], perhaps marked as cut, or a [`Failure`]. Redirects
//! are not followed here: their targets are new URLs, and go the way of all URLs.
//!
//! Plain HTTP and what TLS negotiates down to is [`http1`], written for this; where a server offers
//! HTTP/2 that is spoken, by `hyper`. A connection that can be used again is kept, one per host, in
//! a pool of bounded size ([`Idle`]).

pub(crate) mod http1;
mod http2;
mod idle;
mod tls;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, timeout_at};

use crate::connect::{Connect, Stream};
use crate::error::Error;
use crate::settings::{self, Settings, seconds};
use http1::Reuse;

#[cfg(test)]
pub(crate) use http1::exchange;
pub(crate) use http1::request as request_bytes;
pub(crate) use idle::Idle;
pub(crate) use tls::Tls;

/// Times and sizes of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) whole: Duration,
    pub(crate) max_head: usize,
    pub(crate) max_body: usize,
}

impl Limits {
    pub(crate) fn new(fetch: &settings::Fetch) -> Self {
        Self {
            connect: seconds(fetch.connect),
            first_byte: seconds(fetch.first_byte),
            whole: seconds(fetch.whole),
            max_head: fetch.max_head,
            max_body: fetch.max_body,
        }
    }
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
    /// The connection was closed before an answer began.
    Closed,
    /// A phase took too long.
    Slow,
    /// What came is no answer.
    NotHttp,
    /// The head of the answer does not end.
    LongHead,
}

impl Failure {
    /// All of them, in order.
    pub const ALL: [Self; 7] = [
        Self::Forbidden,
        Self::Unreachable,
        Self::Tls,
        Self::Closed,
        Self::Slow,
        Self::NotHttp,
        Self::LongHead,
    ];

    /// A code for machines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden-address",
            Self::Unreachable => "unreachable",
            Self::Tls => "tls",
            Self::Closed => "closed",
            Self::Slow => "timeout",
            Self::NotHttp => "not-http",
            Self::LongHead => "long-head",
        }
    }

    /// Whether no connection stood long enough for a response: another day it may.
    pub(crate) fn is_of_connection(self) -> bool {
        self.is_passing() || self == Self::Tls
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
        let lines = self.lines.split(|&byte| byte == b'\n');
        let mut values = lines.filter_map(|line| {
            let (found, value) = line.split_at_checked(name.len())?;
            let value = value.trim_ascii_start().strip_prefix(b":")?;
            found.eq_ignore_ascii_case(name.as_bytes()).then_some(value)
        });
        std::str::from_utf8(values.next()?.trim_ascii()).ok()
    }

    /// Whether the connection stays open.
    fn is_persistent(&self) -> bool {
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

/// What to fetch.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) address: SocketAddr,
    /// Name without port, for certificates.
    pub(crate) name: Box<str>,
    pub(crate) authority: Box<str>,
    pub(crate) is_tls: bool,
    /// Path and query.
    pub(crate) rest: Box<str>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) message: Message,
    pub(crate) took: Duration,
}

/// A connection that can carry a request.
pub(crate) enum Connection {
    Http1(Box<dyn Stream>),
    Http2(http2::Sender),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Http1(_) => "Http1",
            Self::Http2(_) => "Http2",
        })
    }
}

impl Connection {
    /// Whether nothing has come since the last answer, in particular no end.
    async fn is_open(&mut self) -> bool {
        match self {
            Self::Http2(sender) => sender.is_open(),
            Self::Http1(stream) => {
                poll_fn(|context| {
                    let mut byte = [0];
                    let mut buffer = ReadBuf::new(&mut byte);
                    let read = Pin::new(&mut *stream).poll_read(context, &mut buffer);
                    Poll::Ready(read.is_pending())
                })
                .await
            }
        }
    }
}

async fn usable(kept: Option<Connection>) -> Option<Connection> {
    let mut kept = kept?;
    kept.is_open().await.then_some(kept)
}

/// What all requests share.
pub(crate) struct Fetcher {
    pub(crate) connector: Rc<dyn Connect>,
    pub(crate) tls: Tls,
    pub(crate) limits: Limits,
    pub(crate) user_agent: String,
}

impl Fetcher {
    pub(crate) fn new(settings: &Settings, connector: Rc<dyn Connect>) -> Result<Self, Error> {
        Ok(Self {
            connector,
            tls: Tls::new(settings.network.certificates.as_deref())?,
            limits: Limits::new(&settings.fetch),
            user_agent: settings.user_agent(),
        })
    }

    /// Sends a request, over `kept` if there is such a connection; returns what came of it and the
    /// connection if it can be used again.
    ///
    /// A kept connection that the server has closed meanwhile is not used. One that it closes while
    /// the request is on its way is a failure: the server may have seen the request, and a second
    /// one would come too soon.
    pub(crate) async fn fetch(
        &self,
        request: &Request,
        kept: Option<Connection>,
    ) -> (Result<Response, Failure>, Option<Connection>) {
        let start = Instant::now();
        let deadline = start + self.limits.whole;
        let connection = match usable(kept).await {
            Some(kept) => Ok(kept),
            // Apart, so that a request over a kept connection does not carry the room for a
            // handshake.
            None => Box::pin(self.connect(request, deadline)).await,
        };
        let outcome = match connection {
            Ok(connection) => self.exchange(connection, request, deadline).await,
            Err(failure) => Err(failure),
        };
        match outcome {
            Ok((message, connection)) => {
                let took = start.elapsed();
                (Ok(Response { message, took }), connection)
            }
            Err(failure) => (Err(failure), None),
        }
    }

    async fn connect(&self, request: &Request, deadline: Instant) -> Result<Connection, Failure> {
        let deadline = (Instant::now() + self.limits.connect).min(deadline);
        let connect = async {
            let stream =
                self.connector
                    .connect(request.address)
                    .await
                    .map_err(|error| match error.kind() {
                        std::io::ErrorKind::PermissionDenied => Failure::Forbidden,
                        _ => Failure::Unreachable,
                    })?;
            match request.is_tls {
                true => self.tls.secure(stream, &request.name).await,
                false => Ok(Connection::Http1(stream)),
            }
        };
        timeout_at(deadline, connect)
            .await
            .unwrap_or(Err(Failure::Slow))
    }

    async fn exchange(
        &self,
        connection: Connection,
        request: &Request,
        deadline: Instant,
    ) -> Result<(Message, Option<Connection>), Failure> {
        match connection {
            Connection::Http1(mut stream) => {
                let bytes = http1::request(&request.authority, &request.rest, &self.user_agent);
                let (message, reuse) =
                    http1::exchange(&mut *stream, &bytes, &self.limits, deadline).await?;
                let kept = (reuse == Reuse::Yes).then_some(Connection::Http1(stream));
                Ok((message, kept))
            }
            Connection::Http2(mut sender) => {
                let message = Box::pin(sender.exchange(request, self, deadline)).await?;
                Ok((message, Some(Connection::Http2(sender))))
            }
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
