//! The client of the crawler.

use anyhow::bail;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::fetch::http1::{Reuse, exchange, request};
use crate::fetch::{Failure, FetchLimits, Message};
use crate::{Target, USER_AGENT};

/// Fetches pages of one host over one connection.
pub(crate) async fn fetch_all(targets: &[Target], limits: &FetchLimits) -> anyhow::Result<usize> {
    let mut n_bytes = 0;
    let mut stream = None;
    for target in targets {
        let mut open = match stream.take() {
            Some(open) => open,
            None => TcpStream::connect(target.address).await?,
        };
        match fetch(&mut open, target, limits).await {
            Ok((message, reuse)) => {
                n_bytes += message.bytes.len();
                stream = (reuse == Reuse::Yes).then_some(open);
            }
            Err(failure) => bail!("{}: {failure:?}", target.rest),
        }
    }
    Ok(n_bytes)
}

pub(crate) async fn fetch(
    stream: &mut TcpStream,
    target: &Target,
    limits: &FetchLimits,
) -> Result<(Message, Reuse), Failure> {
    let bytes = request(&target.authority, &target.rest, USER_AGENT);
    exchange(stream, &bytes, limits, Instant::now() + limits.whole).await
}
