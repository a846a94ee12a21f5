//! HTML to text, links and metadata, in time linear in the page.
//!
//! "Obtaining text from raw HTML is not as easy as it sounds." Three readings of a page, by
//! [`Mode`]: everything it says in order, for duplicate detection; its main content, for people and
//! search; or the input itself, when it was text already. All of them take any string, keep memory
//! proportional to it, and never fail.
//!
//! A tree in the browser's sense is never built: general parsers take quadratic time on a page of
//! unclosed tags, and 3 to 10 times longer on ordinary ones.
//!
//! ```
//! use arose_corpus::html::{Config, extract};
//!
//! let page = extract("<title>T</title><p>ro<b>se</b> &amp; more", None, &Config::default());
//! assert_eq!(page.text, "T\nrose & more");
//! assert_eq!(page.metadata.title.as_deref(), Some("T"));
//! ```

mod anchor;
pub mod content;
pub mod css;
pub mod entity;
mod entity_table;
mod foreign;
mod henzinger;
mod packed;
mod page;
mod resolve;
mod sink;
pub mod tag;
#[cfg(test)]
mod tests;
pub mod token;
mod visibility;

use url::Url;

pub use anchor::Anchors;
pub use page::{Alternate, Link, Links, MetaRobots, Metadata, Refresh};
pub use visibility::Visibility;

/// How a page is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All text with the addresses of links and images, for duplicate detection.
    #[default]
    Henzinger,
    /// The text that readers see, all of it, without addresses and images.
    Visible,
    /// The main content, without navigation, advertisements and notices.
    Content,
    /// The input is text, not HTML: it is returned as it is.
    Plain,
}

/// An optional part of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// Left out.
    #[default]
    Off,
    /// Taken in.
    On,
}

/// What to read and how. The default reads text as [`Mode::Henzinger`] and no links.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Which text.
    pub mode: Mode,
    /// Whether to collect links.
    pub links: Links,
    /// `alt` of images, in the modes `henzinger` and `visible`.
    pub alt: Switch,
    /// `content` of description and keywords, in the modes `henzinger` and `visible`.
    pub meta: Switch,
    /// Whether to tell how much of the text is hidden or stands in links, in the modes `henzinger`
    /// and `visible`.
    pub visibility: Switch,
    /// Whether to tell the anchor text and the tag path of each link, in the modes `henzinger` and
    /// `visible`.
    pub anchors: Switch,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    /// Words one blank apart, blocks one line apart.
    pub text: String,
    /// Images in order; only in mode `henzinger`.
    pub images: Vec<ImageTerm>,
    /// What the page says about itself, and its links.
    pub metadata: Metadata,
    /// What was cut or could not be understood.
    pub warnings: Vec<Warning>,
}

/// An image as a term of the page. It is hashed apart from all words, so it is no part of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageTerm {
    /// The byte of [`Extracted::text`] before which the image stands; it ends a word there.
    pub at: usize,
    /// `src` as written, without white space around it; unresolved, so that mirrors agree.
    pub src: String,
}

/// What could not be taken as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// `<base href>` is no web address; it was ignored.
    BadBase,
    /// Elements are nested too deep; the innermost count as one. Only in mode `content`.
    TooDeep,
    /// The base URL of the page is too long to resolve links; relative ones were dropped.
    LongBase,
    /// The links of the page, resolved, are many times longer than the page; the last were dropped.
    LinksTruncated,
    /// More images than a page of its size could show; the last were dropped.
    ImagesTruncated,
    /// More blocks than are told apart; the last count as one. Only in mode `content`.
    TooManyBlocks,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::BadBase => "its base is no web address",
            Self::TooDeep => "nested too deep; the innermost elements count as one",
            Self::LongBase => "its base URL is too long; relative links are dropped",
            Self::LinksTruncated => "more links than the page could hold; the last are dropped",
            Self::ImagesTruncated => "more images than the page could hold; the last are dropped",
            Self::TooManyBlocks => "more blocks than are told apart; the last count as one",
        })
    }
}

/// Reads a page. `page_url` is where it came from; without it links stay as written.
#[must_use]
pub fn extract(html: &str, page_url: Option<&Url>, config: &Config) -> Extracted {
    match config.mode {
        Mode::Henzinger | Mode::Visible => henzinger::extract(html, page_url, config),
        Mode::Content => content::extract(html, page_url, config),
        Mode::Plain => Extracted {
            text: html.to_owned(),
            ..Extracted::default()
        },
    }
}
