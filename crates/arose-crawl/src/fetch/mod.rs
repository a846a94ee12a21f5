//! The fetcher: one GET, whatever the server does.
//!
//! *Question.* Servers hang, lie about lengths, send without end, close in the middle, present bad
//! certificates. What is the result of this request? *Idea.* Every phase has a time limit and every
//! part a size limit ([`FetchLimits`]). The outcome is a [`Response`], perhaps marked as truncated,
//! or a [`Failure`]. Redirects are not followed here: their targets are new URLs and are treated
//! like any other.
//!
//! A [`Fetch`] turns a [`Request`] into a response. There are two: [`Fetcher`] for HTTP and
//! [`Local`] for local files. [`Fetchers`] has one of each and chooses by the scheme. A further
//! protocol is a further [`Fetch`] and its arm in [`Fetchers::of`]; its URLs must be ones that
//! [`crate::url`] accepts. It needs the following:
//!
//! ```ignore
//! struct Always(&'static [u8]);
//!
//! impl Fetch for Always {
//!     fn fetch<'a>(&'a self, _: &'a Request, _: Option<Connection>) -> Waiting<'a, Fetched> {
//!         let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".as_bytes();
//!         let bytes = [head, self.0].concat();
//!         let message = Message { bytes, head_end: head.len(), cut: None };
//!         let took = Duration::ZERO;
//!         Box::pin(async move { (Ok(Response { message, took }), None) })
//!     }
//! }
//! ```
//!
//! Plain HTTP and what TLS negotiates down to is [`http1`], written for this; where a server offers
//! HTTP/2 that is spoken, by `hyper`. A connection that can be used again is kept, one per host, in
//! a pool of bounded size ([`Idle`]).

mod credentials;
pub(crate) mod http1;
mod http2;
mod idle;
mod local;
mod message;
mod tls;

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Instant, timeout_at};

use crate::connect::{Connect, Stream, Waiting};
use crate::error::Error;
use crate::journal::Kind;
use crate::settings::{self, Settings, host_name, seconds};
use crate::sitemap;
use credentials::Credentials;
use http1::Reuse;

#[cfg(test)]
pub(crate) use http1::exchange;
pub(crate) use http1::request as request_bytes;
pub(crate) use idle::Idle;
pub(crate) use local::Local;
pub use message::Failure;
pub(crate) use message::{Cut, FetchLimits, Head, Message};
pub(crate) use tls::Tls;

impl FetchLimits {
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

/// What to fetch.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) address: SocketAddr,
    /// Name without port, for certificates.
    pub(crate) name: Box<str>,
    pub(crate) authority: Box<str>,
    pub(crate) is_tls: bool,
    /// Whether it is for a local file.
    pub(crate) is_file: bool,
    /// Path and query.
    pub(crate) rest: Box<str>,
    /// What it leads to, which decides how large the body may be.
    pub(crate) kind: Kind,
    /// A header that asks for another version than the one that is there.
    pub(crate) condition: Option<(&'static str, Box<str>)>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) message: Message,
    pub(crate) took: Duration,
}

/// What comes of a request: a response or why there is none, and the connection if it can carry
/// another one.
pub(crate) type Fetched = (Result<Response, Failure>, Option<Connection>);

/// Answers requests of one protocol.
pub(crate) trait Fetch {
    /// Answers a request, over `kept` if that is a connection that can be used. The answer has the
    /// form of one of HTTP, whatever the protocol is, and is bounded by the limits of the settings.
    fn fetch<'a>(&'a self, request: &'a Request, kept: Option<Connection>) -> Waiting<'a, Fetched>;
}

/// All that answer requests.
pub(crate) struct Fetchers {
    http: Fetcher,
    files: Local,
}

impl Fetchers {
    pub(crate) fn new(settings: &Settings, connector: Rc<dyn Connect>) -> Result<Self, Error> {
        Ok(Self {
            http: Fetcher::new(settings, connector)?,
            files: Local::new(&settings.scope.files, settings.fetch.max_body),
        })
    }

    /// The one that answers a request.
    pub(crate) fn of(&self, request: &Request) -> &dyn Fetch {
        match request.is_file {
            true => &self.files,
            false => &self.http,
        }
    }
}

impl Fetch for Fetcher {
    fn fetch<'a>(&'a self, request: &'a Request, kept: Option<Connection>) -> Waiting<'a, Fetched> {
        Box::pin(self.request(request, kept))
    }
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
    credentials: Credentials,
    pub(crate) limits: FetchLimits,
    pub(crate) user_agent: String,
    /// The largest body of single hosts, by name.
    max_bodies: HashMap<String, usize>,
}

fn max_bodies(settings: &Settings) -> HashMap<String, usize> {
    let hosts = settings.host.iter();
    let hosts = hosts.filter_map(|(key, host)| Some((host_name(key), host.max_body?)));
    hosts.collect()
}

impl Fetcher {
    pub(crate) fn new(settings: &Settings, connector: Rc<dyn Connect>) -> Result<Self, Error> {
        Ok(Self {
            connector,
            tls: Tls::new(&settings.network)?,
            credentials: Credentials::new(settings)?,
            max_bodies: max_bodies(settings),
            limits: FetchLimits::new(&settings.fetch),
            user_agent: settings.user_agent(),
        })
    }

    /// The limits for a request. A sitemap may be as large as the protocol allows.
    fn limits_of(&self, request: &Request) -> FetchLimits {
        let of_host = self.max_bodies.get(&*request.name).copied();
        let max_body = of_host.unwrap_or(self.limits.max_body);
        let max_body = match request.kind {
            Kind::Page | Kind::Requisite => max_body,
            Kind::Sitemap => max_body.max(sitemap::MAX_BYTES as usize),
        };
        FetchLimits {
            max_body,
            ..self.limits
        }
    }

    /// Sends a request, over `kept` if there is such a connection; returns what came of it and the
    /// connection if it can be used again.
    ///
    /// A kept connection that the server has closed meanwhile is not used. One that it closes while
    /// the request is on its way is a failure: the server may have seen the request, and a second
    /// one would come too soon.
    pub(crate) async fn request(&self, request: &Request, kept: Option<Connection>) -> Fetched {
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

    /// Headers that this host alone is sent.
    fn extra_headers(&self, request: &Request) -> Vec<(&str, String)> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let mut headers = self.credentials.headers(request, now);
        let condition = request.condition.iter();
        headers.extend(condition.map(|(name, value)| (*name, value.to_string())));
        headers
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
                let headers = self.extra_headers(request);
                let bytes = http1::request(
                    &request.authority,
                    &request.rest,
                    &self.user_agent,
                    &headers,
                );
                let limits = self.limits_of(request);
                let (message, reuse) =
                    http1::exchange(&mut *stream, &bytes, &limits, deadline).await?;
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
