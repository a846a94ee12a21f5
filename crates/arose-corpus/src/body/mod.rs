//! Extracts the text of a record body: HTTP framing and codings, character sets, media types.

pub mod charset;
mod feed;
pub(crate) mod headers;
pub(crate) mod http;
pub mod payload;
mod pdf;
