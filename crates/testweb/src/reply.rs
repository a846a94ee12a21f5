//! Responses of a host, before they are sent.

use crate::fault::Step;

/// A response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// As logged; a [script](Wire::Script) may send a different one.
    pub status: u16,
    /// Empty for none.
    pub content_type: &'static str,
    /// Further header lines, each with its line end.
    pub headers: String,
    /// The body.
    pub body: Vec<u8>,
    /// Seconds of `Retry-After`, 0 for none; stored separately for the judge.
    pub retry_after: u16,
    /// How it is sent.
    pub wire: Wire,
}

/// How a response is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wire {
    /// With `Content-Length`.
    Length,
    /// In chunks.
    Chunked,
    /// Byte for byte by the steps, instead of head and body; then the connection is closed.
    Script(Vec<Step>),
}

impl Reply {
    pub(crate) fn typed(status: u16, content_type: &'static str, body: Vec<u8>) -> Self {
        Self {
            status,
            content_type,
            headers: String::new(),
            body,
            retry_after: 0,
            wire: Wire::Length,
        }
    }

    pub(crate) fn html(status: u16, body: Vec<u8>) -> Self {
        Self::typed(status, "text/html; charset=utf-8", body)
    }

    pub(crate) fn text(status: u16, body: &str) -> Self {
        Self::typed(status, "text/plain", body.as_bytes().to_vec())
    }

    pub(crate) fn redirect(status: u16, location: &str) -> Self {
        let mut reply = Self::text(status, "moved\n");
        reply.add_header("Location", location);
        reply
    }

    pub(crate) fn script(status: u16, steps: Vec<Step>) -> Self {
        let mut reply = Self::text(status, "");
        reply.wire = Wire::Script(steps);
        reply
    }

    pub(crate) fn add_header(&mut self, name: &str, value: &str) {
        self.headers.extend([name, ": ", value, "\r\n"]);
    }
}

/// The reason phrase of a status.
pub(crate) const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Other",
    }
}

/// A plain head with a length, for scripts.
pub(crate) fn head(status: u16, content_type: &str, n_bytes: usize) -> Vec<u8> {
    let reason = reason(status);
    format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {n_bytes}\r\n\r\n"
    )
    .into_bytes()
}
