//! hyper, with the same limits around it and its result in the same form.

use anyhow::bail;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::fetch::http1::ACCEPT;
use crate::fetch::{Cut, FetchLimits, Message};
use crate::{Target, USER_AGENT};

/// Fetches pages of one host over one connection.
pub(crate) async fn fetch_all(targets: &[Target], limits: &FetchLimits) -> anyhow::Result<usize> {
    let mut n_bytes = 0;
    let mut sender = None;
    for target in targets {
        let mut open = match sender.take() {
            Some(open) => open,
            None => connect(target).await?,
        };
        match fetch(&mut open, target, limits).await {
            Ok(message) => {
                n_bytes += message.bytes.len();
                sender = open.ready().await.is_ok().then_some(open);
            }
            Err(error) => bail!("{}: {error}", target.rest),
        }
    }
    Ok(n_bytes)
}

/// As lenient as hyper can be.
pub(crate) async fn connect(target: &Target) -> anyhow::Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(target.address).await?;
    let (sender, connection) = Builder::new()
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true)
        .ignore_invalid_headers_in_responses(true)
        .max_headers(10_000)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::task::spawn_local(async move {
        // It ends when the sender is dropped, or with an error that the next request meets.
        let _ = connection.await;
    });
    Ok(sender)
}

pub(crate) async fn fetch(
    sender: &mut SendRequest<Empty<Bytes>>,
    target: &Target,
    limits: &FetchLimits,
) -> anyhow::Result<Message> {
    let deadline = Instant::now() + limits.whole;
    let first_byte = (Instant::now() + limits.first_byte).min(deadline);
    let request = hyper::Request::get(&target.rest)
        .header("host", &target.authority)
        .header("user-agent", USER_AGENT)
        .header("accept", ACCEPT)
        .header("accept-encoding", "gzip, deflate, br")
        .body(Empty::new())?;
    let response = timeout_at(first_byte, sender.send_request(request)).await??;
    let mut bytes = head(&response);
    if bytes.len() > limits.max_head {
        bail!("long head");
    }
    let head_end = bytes.len();
    let mut body = response.into_body();
    let cut = loop {
        match timeout_at(deadline, body.frame()).await {
            Err(_) => break Some(Cut::Time),
            Ok(None) => break None,
            Ok(Some(Err(_))) => break Some(Cut::Disconnect),
            Ok(Some(Ok(frame))) => {
                bytes.extend_from_slice(&frame.into_data().unwrap_or_default());
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

/// The head as an archive needs it. hyper keeps neither its bytes nor the case of its names.
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
