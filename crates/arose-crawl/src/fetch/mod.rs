//! The fetcher: one GET, whatever the server does.
//!
//! *Question.* Servers hang, lie about lengths, send without end, close in the middle, present bad
//! certificates. What is the result of this request? *Idea.* Every phase has a time limit and every
//! part a size limit (`FetchLimits`). The outcome is a [`Response`], perhaps marked as truncated,
//! or a [`Failure`]. Redirects are not followed here: their targets are new URLs and are treated
//! like any other.
//!
//! A [`Fetch`] turns a [`Request`] into a response. There are two: [`Http`] for the web and
//! [`Files`] for local files. A crawl chooses between them by the scheme of the URL, or uses a
//! third one for all its requests ([`Crawl::fetch_with`](crate::Crawl::fetch_with)).
//!
//! HTTP/1.1, with and without TLS, is implemented in `http1` for this crate. If a server offers
//! HTTP/2, `hyper` handles it. A connection that can be used again is kept, one per host, in a pool
//! of bounded size (`Idle`).

mod credentials;
pub(crate) mod http1;
mod http2;
mod idle;
mod local;
mod message;
mod tls;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
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
use crate::url::NormalUrl;
use credentials::Credentials;
use http1::Reuse;

#[cfg(test)]
pub(crate) use http1::exchange;
pub(crate) use http1::request as request_bytes;
pub(crate) use idle::Idle;
pub use local::Files;
pub use message::Failure;
pub(crate) use message::{Cut, FetchLimits, Head, Message};
pub(crate) use tls::Tls;

impl FetchLimits {
    pub(crate) fn new(fetch: &settings::FetchSettings) -> Self {
        Self {
            connect: seconds(fetch.connect),
            first_byte: seconds(fetch.first_byte),
            whole: seconds(fetch.whole),
            max_head: fetch.max_head,
            max_body: fetch.max_body,
        }
    }
}

/// A request for one URL.
#[derive(Debug)]
pub struct Request {
    pub(crate) address: SocketAddr,
    /// Host name without port, for certificates.
    pub(crate) name: Box<str>,
    pub(crate) authority: Box<str>,
    pub(crate) is_tls: bool,
    /// Whether it is for a local file.
    pub(crate) is_file: bool,
    /// Path and query.
    pub(crate) rest: Box<str>,
    /// What it is expected to lead to, which limits the size of the body.
    pub(crate) kind: Kind,
    /// The header of a conditional request.
    pub(crate) condition: Option<(&'static str, Box<str>)>,
    /// A connection that may carry the request, and afterwards one that may carry another request.
    pub(crate) kept: RefCell<Option<Connection>>,
}

impl Request {
    /// Creates a request for a page. `address` is that of its host; local files need none.
    #[must_use]
    pub fn new(url: &NormalUrl, address: IpAddr) -> Self {
        let authority = url.origin().split_once("://").map_or("", |(_, rest)| rest);
        let is_tls = url.scheme() == "https";
        let port = authority.strip_prefix(url.host());
        let port = port.and_then(|port| port.strip_prefix(':')?.parse().ok());
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        Self {
            address: SocketAddr::new(address, port),
            name: url.host().into(),
            authority: authority.into(),
            is_tls,
            is_file: url.is_file(),
            rest: url.rest().into(),
            kind: Kind::Page,
            condition: None,
            kept: RefCell::default(),
        }
    }

    /// Returns the host name, without a port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.name
    }

    /// Returns the path and the query of the URL.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.rest
    }

    /// Returns the IP address and the port of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the header of a conditional request, if it is one.
    #[must_use]
    pub fn condition(&self) -> Option<(&str, &str)> {
        let condition = self.condition.as_ref();
        condition.map(|(name, value)| (*name, &**value))
    }
}

/// A response in the form of HTTP, whatever the protocol is.
#[derive(Debug)]
pub struct Response {
    pub(crate) message: Message,
    pub(crate) took: Duration,
}

impl Response {
    /// Creates a response with a status, a media type and a body.
    #[must_use]
    pub fn new(status: u16, media_type: &str, body: &[u8]) -> Self {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} -\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n"
        );
        Self {
            message: Message {
                head_end: head.len(),
                bytes: [head.as_bytes(), body].concat(),
                cut: None,
            },
            took: Duration::ZERO,
        }
    }

    /// Returns the status; `None` if the head is malformed.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        Some(self.message.head()?.status)
    }

    /// Returns the body, as received.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.message.body()
    }
}

/// The result of a request: a response or why there is none, and the connection if it can be used
/// again.
pub(crate) type Exchange = (Result<Response, Failure>, Option<Connection>);

/// Fetches URLs of one protocol.
///
/// A response must stay within the limits of the settings, in size and in time, because servers may
/// be hostile. If there is no response, the result is a [`Failure`], never a panic.
///
/// ```
/// use std::rc::Rc;
///
/// use arose_crawl::connect::Waiting;
/// use arose_crawl::counters::Counter;
/// use arose_crawl::fetch::{Failure, Fetch, Request, Response};
/// use arose_crawl::{Control, Crawl, Seams, Settings};
///
/// /// A web of two pages, in memory.
/// struct Memory;
///
/// impl Fetch for Memory {
///     fn fetch<'a>(&'a self, request: &'a Request) -> Waiting<'a, Result<Response, Failure>> {
///         let page = match request.target() {
///             "/" => "A rose is a rose. <a href=/more>More roses</a>",
///             "/more" => "What is in a name?",
///             _ => "",
///         };
///         let status = if page.is_empty() { 404 } else { 200 };
///         let response = Response::new(status, "text/html", page.as_bytes());
///         Box::pin(async move { Ok(response) })
///     }
/// }
///
/// let directory = tempfile::tempdir()?;
/// let mut settings = Settings::default();
/// settings.network.allow_private = true;
/// settings.scope.reach = arose_crawl::settings::Reach::Web;
/// settings.polite.delay = 0.0;
/// settings.polite.address_delay = 0.0;
/// let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// let summary = tokio::task::LocalSet::new().block_on(&runtime, async {
///     let mut crawl = Crawl::open(directory.path(), settings, Seams::local())?;
///     crawl.fetch_with(Rc::new(Memory));
///     crawl.add_seeds(["http://127.0.0.1/".to_owned()].into_iter())?;
///     crawl.run(&Control::default()).await
/// })?;
/// assert_eq!(summary.counters.get(Counter::Pages), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Fetch {
    /// Sends a request and returns its response.
    fn fetch<'a>(&'a self, request: &'a Request) -> Waiting<'a, Result<Response, Failure>>;
}

/// All fetchers.
pub(crate) struct Fetchers {
    http: Http,
    files: Files,
    /// Handles all requests in place of both.
    other: RefCell<Option<Rc<dyn Fetch>>>,
}

impl Fetchers {
    pub(crate) fn new(settings: &Settings, connector: Rc<dyn Connect>) -> Result<Self, Error> {
        Ok(Self {
            http: Http::new(settings, connector)?,
            files: Files::new(&settings.scope.files, settings.fetch.max_body),
            other: RefCell::default(),
        })
    }

    /// Sets the fetcher that handles all requests, or removes it.
    pub(crate) fn replace(&self, other: Option<Rc<dyn Fetch>>) {
        self.other.replace(other);
    }

    /// Returns the fetcher that handles all requests in place of HTTP and files.
    pub(crate) fn other(&self) -> Option<Rc<dyn Fetch>> {
        self.other.borrow().clone()
    }

    /// Passes a request to its fetcher.
    pub(crate) async fn fetch(&self, request: &Request) -> Result<Response, Failure> {
        match (self.other(), request.is_file) {
            (Some(other), _) => other.fetch(request).await,
            (None, true) => self.files.fetch(request).await,
            (None, false) => self.http.fetch(request).await,
        }
    }
}

impl Fetch for Http {
    fn fetch<'a>(&'a self, request: &'a Request) -> Waiting<'a, Result<Response, Failure>> {
        Box::pin(async move {
            let (result, connection) = self.request(request, request.kept.take()).await;
            request.kept.replace(connection);
            result
        })
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
    /// Whether nothing has arrived since the last response, such as the end of the connection.
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

/// Fetches over HTTP, with TLS for `https`.
pub struct Http {
    pub(crate) connector: Rc<dyn Connect>,
    pub(crate) tls: Tls,
    credentials: Credentials,
    pub(crate) limits: FetchLimits,
    pub(crate) user_agent: String,
    /// Maximum sizes of bodies of single hosts, by name.
    max_bodies: HashMap<String, usize>,
}

fn max_bodies(settings: &Settings) -> HashMap<String, usize> {
    let hosts = settings.host.iter();
    let hosts = hosts.filter_map(|(key, host)| Some((host_name(key), host.max_body?)));
    hosts.collect()
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

impl Http {
    /// Creates a fetcher with the limits, credentials and certificates of the settings.
    ///
    /// # Errors
    ///
    /// If certificates or credentials cannot be read.
    pub fn new(settings: &Settings, connector: Rc<dyn Connect>) -> Result<Self, Error> {
        Ok(Self {
            connector,
            tls: Tls::new(&settings.network)?,
            credentials: Credentials::new(settings)?,
            max_bodies: max_bodies(settings),
            limits: FetchLimits::new(&settings.fetch),
            user_agent: settings.user_agent(),
        })
    }

    /// Returns the limits for a request. A sitemap may be as large as the protocol allows.
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

    /// Sends a request, over `kept` if that connection is open; returns the result, and the
    /// connection if it can be used again.
    ///
    /// A kept connection that the server has closed meanwhile is not used. If the server closes it
    /// while the request is on its way, that is a failure: the server may have received the
    /// request, and a second one would come too soon.
    pub(crate) async fn request(&self, request: &Request, kept: Option<Connection>) -> Exchange {
        let start = Instant::now();
        let deadline = start + self.limits.whole;
        let connection = match usable(kept).await {
            Some(kept) => Ok(kept),
            // Boxed, so that a request over a kept connection does not need the memory of a
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

    /// Returns the headers that only this host is sent.
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
