//! Extracts text, links and metadata from HTML, in time linear in the page.
//!
//! A page can be read in three ways, selected by [`Mode`]: all its text in order, for duplicate
//! detection; its main content, for people and search; or the input itself, if it already is text.
//! All modes accept any string, use memory proportional to it, and never fail.
//!
//! No browser-like tree is ever built. General parsers take quadratic time on a page of unclosed
//! tags, and 3 to 10 times longer on ordinary pages.
//!
//! ```
//! use arose_corpus::html::{HtmlConfig, extract};
//!
//! let page = extract("<title>T</title><p>ro<b>se</b> &amp; more", None, &HtmlConfig::default());
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

/// How to read a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All text that readers see, without URLs and images.
    #[default]
    Visible,
    /// All text with the URLs of links and images.
    Henzinger,
    /// The main content, without navigation, advertisements and notices; all visible text of a page
    /// without main content.
    Content,
    /// The input is text, not HTML, and is returned unchanged.
    Plain,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Visible, Self::Henzinger, Self::Content, Self::Plain];

    /// Returns its name in options and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Visible => "visible",
            Self::Henzinger => "henzinger",
            Self::Content => "content",
            Self::Plain => "plain",
        }
    }
}

/// An optional part of the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// Left out.
    #[default]
    Off,
    /// Included.
    On,
}

/// What to extract, and how. The default extracts text in [`Mode::Visible`] and no links.
#[derive(Clone, Debug, Default)]
pub struct HtmlConfig {
    /// The text to extract.
    pub mode: Mode,
    /// Whether to collect links.
    pub links: Links,
    /// `alt` of images, in the modes `henzinger` and `visible`.
    pub alt: Switch,
    /// `content` of description and keywords, in the modes `henzinger` and `visible`.
    pub meta: Switch,
    /// Whether to report how much of the text is hidden or inside links, in the modes `henzinger`
    /// and `visible`.
    pub visibility: Switch,
    /// Whether to report the anchor text and the tag path of each link, in the modes `henzinger`
    /// and `visible`.
    pub anchors: Switch,
}

/// The result of reading a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    /// The text: words separated by one space, blocks by one line end.
    pub text: String,
    /// Images in order; only in mode `henzinger`.
    pub images: Vec<ImageTerm>,
    /// The metadata and links of the page.
    pub metadata: Metadata,
    /// Parts that were truncated or not understood.
    pub warnings: Vec<HtmlWarning>,
}

/// An image as a term of the page. It is hashed separately from all words, so it is not part of the
/// text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageTerm {
    /// The byte of [`Extracted::text`] before which the image is; it ends a word there.
    pub at: usize,
    /// `src` as written, without surrounding whitespace. It is not resolved, so that mirrors agree.
    pub src: String,
}

/// A part of a page that could not be used as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HtmlWarning {
    /// `<base href>` is not a web URL and was ignored.
    BadBase,
    /// Elements are nested too deeply; the innermost count as one. Only in mode `content`.
    TooDeep,
    /// The base URL of the page is too long to resolve links; relative ones were dropped.
    LongBase,
    /// The resolved links of the page are many times longer than the page; the last were dropped.
    LinksTruncated,
    /// More images than a page of its size could show; the last were dropped.
    ImagesTruncated,
    /// More blocks than the limit; the last count as one. Only in mode `content`.
    TooManyBlocks,
}

impl std::fmt::Display for HtmlWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::BadBase => "its base is not a web URL",
            Self::TooDeep => "nested too deeply; the innermost elements count as one",
            Self::LongBase => "its base URL is too long; relative links are dropped",
            Self::LinksTruncated => "more links than the page could hold; the last are dropped",
            Self::ImagesTruncated => "more images than the page could hold; the last are dropped",
            Self::TooManyBlocks => "more blocks than the limit; the last count as one",
        })
    }
}

/// Reads a page. `page_url` is its URL; without it, links stay as written.
#[must_use]
pub fn extract(html: &str, page_url: Option<&Url>, config: &HtmlConfig) -> Extracted {
    match config.mode {
        Mode::Henzinger | Mode::Visible => henzinger::extract(html, page_url, config),
        Mode::Content => match content::extract(html, page_url, config) {
            page if page.text.is_empty() => {
                let visible = HtmlConfig {
                    mode: Mode::Visible,
                    ..config.clone()
                };
                henzinger::extract(html, page_url, &visible)
            }
            page => page,
        },
        Mode::Plain => Extracted {
            text: html.to_owned(),
            metadata: Metadata {
                mode: Some(Mode::Plain),
                ..Metadata::default()
            },
            ..Extracted::default()
        },
    }
}
