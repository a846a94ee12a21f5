//! Extracts the bytes of a robots.txt from a response.

use std::borrow::Cow;

use super::{MAX_BYTES, Outcome};
use crate::contain::contain;
use crate::fetch::{Cut, Message};

/// A robots.txt as received, decoded.
#[derive(Debug)]
pub(crate) struct File<'m> {
    status: u16,
    /// `None` if it is truncated or cannot be decoded.
    body: Option<Cow<'m, [u8]>>,
}

impl<'m> File<'m> {
    pub(crate) fn new(message: &'m Message) -> Self {
        let head = message.head();
        let status = head.map_or(0, |head| head.status);
        let codings = head.and_then(|head| head.get("content-encoding"));
        let limits = arose_corpus::Limits {
            // Far more than is read of a file, but bounded.
            body_bytes: 16 * MAX_BYTES,
            expansion: u64::MAX,
            ..arose_corpus::Limits::default()
        };
        let decode = || {
            let codings = codings.unwrap_or_default();
            arose_corpus::decode_content_strictly(codings, message.body(), &limits)
        };
        let body = contain(decode).flatten();
        let body = body.filter(|body| match message.cut {
            None => true,
            // The rest would not be read anyway.
            Some(_) if body.len() >= MAX_BYTES => true,
            Some(Cut::Length) => codings.is_none(),
            Some(Cut::Time | Cut::Disconnect) => false,
        });
        Self { status, body }
    }

    /// Returns the outcome for the host that it was fetched for.
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        match (self.status, &self.body) {
            (200..=299, None) => Outcome::None,
            (status, body) => Outcome::Status(status, body.as_deref().unwrap_or_default()),
        }
    }

    /// Whether another request may return more.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            (self.status, &self.body),
            (429 | 500..=599, _) | (200..=299, None)
        )
    }
}
