//! Reads and writes documents: web archives, JSON Lines, Parquet, CSV and directories of pages.
//!
//! [`read`] turns files, directories and patterns into a stream of [`Document`]s, with many
//! threads, in input order, in bounded memory. [`html`] extracts text, links and metadata from
//! pages. Any bytes are valid input: a record that cannot be read is an [`Item::Skipped`] with
//! file, position and reason, and the rest is still read.
//!
//! ```
//! use arose_corpus::{Config, Item, read_from};
//! use std::path::Path;
//!
//! let lines = "{\"text\": \"a rose\"}\n[1, 2]\n{\"text\": \"is a rose\"}\n";
//! let mut texts = Vec::new();
//! for item in read_from(Path::new("roses.jsonl"), lines.as_bytes(), Config::default()) {
//!     match item {
//!         Item::Document(document) => texts.push(document.text),
//!         Item::Skipped(warning) => assert_eq!(
//!             warning.to_string(),
//!             "roses.jsonl, byte 19: not a JSON object: does not start with `{`",
//!         ),
//!     }
//! }
//! assert_eq!(texts, ["a rose", "is a rose"]);
//! ```
#![forbid(unsafe_code)]

mod body;
mod config;
mod document;
mod error;
mod format;
pub mod html;
mod losses;
mod output;
mod pipeline;
pub mod quality;
mod source;
pub mod time;
pub mod url;

pub use arose::digest::Digest;
pub use body::http::{decode_content, decode_content_strictly};
pub use body::{charset, payload};
pub use config::{Config, Fields, Files, Limits, Revisits, Statuses};
pub use document::{Counts, Document, DuplicateBody, Item, Original, Position, Reason, Warning};
pub use error::Error;
pub use format::cell::cell_text;
pub use format::json::lines::read_line_text;
pub use format::warc;
pub use losses::{Loss, Losses};
pub use output::keep::{
    Kept, is_archive, is_json_array, is_plain_json_lines, keep, keep_parts, keep_ranges,
};
pub use output::parts::Parts;
pub use output::revisit::{Dropped, DroppedRecord, IDENTICAL, NEAR_DUPLICATE, Payloads, RefersTo};
pub use output::rewrite::{Change, is_rewritable, rewrite};
pub use output::write::{ParquetWriter, write_json, write_json_with};
pub use pipeline::bookmark::Bookmark;
pub use pipeline::fetch::{Stored, fetch, fetch_stored};
pub use pipeline::part::{Part, PartFile, parts, read_part};
pub use pipeline::read::{Documents, read, read_from, read_from_bookmark, read_map};
pub use source::input::files;
