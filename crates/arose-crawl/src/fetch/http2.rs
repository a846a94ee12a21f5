//! HTTP/2 through `hyper`, for servers that offer it over TLS.
//!
//! The head is written in the form of HTTP/1.1, as archives have it.

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};

use super::{Cut, Failure, Http, Message, Request};
use crate::connect::Stream;

/// A connection that carries one request after another.
pub(crate) struct Sender {
    sender: http2::SendRequest<Empty<Bytes>>,
}

/// Runs the connection in the background, on the thread of the crawl.
#[derive(Clone, Copy)]
struct Here;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Here {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

impl Sender {
    pub(super) async fn new(stream: impl Stream + 'static) -> Result<Self, Failure> {
        let handshake = http2::Builder::new(Here)
            .max_header_list_size(64 << 10)
            .handshake(TokioIo::new(stream))
            .await;
        let (sender, connection) = handshake.map_err(|_| Failure::Tls)?;
        tokio::task::spawn_local(async move {
            // It ends when the sender is dropped, or with an error that the next request returns.
            let _ = connection.await;
        });
        Ok(Self { sender })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(super) async fn exchange(
        &mut self,
        request: &Request,
        fetcher: &Http,
        deadline: Instant,
    ) -> Result<Message, Failure> {
        let limits = fetcher.limits_of(request);
        let first_byte = (Instant::now() + limits.first_byte).min(deadline);
        let sent = hyper::Request::get(format!("https://{}{}", request.authority, request.rest))
            .header("user-agent", &fetcher.user_agent)
            .header("accept", super::http1::ACCEPT)
            .header("accept-encoding", "gzip, deflate, br");
        let extra = fetcher.extra_headers(request).into_iter();
        let sent = extra.fold(sent, |sent, (name, value)| sent.header(name, value));
        let sent = sent.body(Empty::new()).map_err(|_| Failure::NotHttp)?;
        let ready = timeout_at(first_byte, self.sender.ready()).await;
        ready
            .map_err(|_| Failure::Slow)?
            .map_err(|_| Failure::Closed)?;
        let response = timeout_at(first_byte, self.sender.send_request(sent)).await;
        let response = response.map_err(|_| Failure::Slow)?;
        let response =
            response.map_err(|error| match error.is_closed() || error.is_canceled() {
                true => Failure::Closed,
                false => Failure::NotHttp,
            })?;
        let mut bytes = head(&response);
        if bytes.len() > limits.max_head {
            return Err(Failure::LongHead);
        }
        let head_end = bytes.len();
        let mut body = response.into_body();
        let cut = loop {
            match timeout_at(deadline, body.frame()).await {
                Err(_) => break Some(Cut::Time),
                Ok(None) => break None,
                Ok(Some(Err(_))) => break Some(Cut::Disconnect),
                Ok(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    bytes.extend_from_slice(&data);
                    if bytes.len() - head_end > limits.max_body {
                        bytes.truncate(head_end + limits.max_body);
                        break Some(Cut::Length);
                    }
                }
            }
        };
        Ok(Message {
            bytes,
            head_end,
            cut,
        })
    }
}

/// Writes the head in the form of HTTP/1.1.
fn head<B>(response: &hyper::Response<B>) -> Vec<u8> {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut out = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    for (name, value) in response.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out
}
