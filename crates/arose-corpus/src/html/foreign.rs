//! Tracks `svg` and `math`, whose elements follow other rules.
//!
//! In `svg`, a `title` is not raw text, and CDATA sections are recognized. Therefore the tokenizer
//! keeps a short stack of the open `svg` and `math` elements, and of the elements in them that
//! contain HTML again.

use super::tag::Tag;

/// Maximum nesting that is tracked; deeper foreign elements count as those around them.
const MAX_DEPTH: usize = 64;

/// The stack of foreign elements; empty in most pages.
#[derive(Debug, Default)]
pub(super) struct Foreign(Vec<Tag>);

impl Foreign {
    /// Whether the current position is directly inside `svg` or `math`.
    pub(super) fn is_inside(&self) -> bool {
        matches!(self.0.last(), Some(Tag::Svg | Tag::Math))
    }

    /// Handles a start tag. Returns whether its element is foreign.
    #[inline]
    pub(super) fn start(&mut self, tag: Tag, self_closing: bool) -> bool {
        if self.0.is_empty() && !matches!(tag, Tag::Svg | Tag::Math) {
            return false;
        }
        if self.is_inside() && ends_foreign(tag) {
            self.0.clear();
        }
        let inside = self.is_inside();
        let opens = match self.0.last() {
            _ if matches!(tag, Tag::Svg | Tag::Math) => true,
            Some(Tag::Svg) => matches!(tag, Tag::ForeignObject | Tag::Desc | Tag::Title),
            Some(Tag::Math) => holds_text(tag),
            _ => false,
        };
        if opens && !self_closing && self.0.len() < MAX_DEPTH {
            self.0.push(tag);
        }
        opens || inside
    }

    /// Handles an end tag.
    #[inline]
    pub(super) fn end(&mut self, tag: Tag) {
        if let Some(at) = self.0.iter().rposition(|&open| open == tag) {
            self.0.truncate(at);
        }
    }
}

/// Whether an element of `math` contains HTML.
fn holds_text(tag: Tag) -> bool {
    matches!(
        tag,
        Tag::Mi | Tag::Mo | Tag::Mn | Tag::Ms | Tag::Mtext | Tag::AnnotationXml
    )
}

/// Whether an HTML element inside foreign content ends it.
#[rustfmt::skip]
fn ends_foreign(tag: Tag) -> bool {
    use Tag::{
        B, Big, Blockquote, Body, Br, Center, Code, Dd, Div, Dl, Dt, Em, Embed, H1, H2, H3, H4, H5,
        H6, Head, Hr, I, Img, Li, Listing, Menu, Meta, Nobr, Ol, P, Pre, Ruby, S, Small, Span,
        Strike, Strong, Sub, Sup, Table, Tt, U, Ul, Var,
    };
    matches!(
        tag,
        B | Big | Blockquote | Body | Br | Center | Code | Dd | Div | Dl | Dt | Em | Embed | H1 | H2
            | H3 | H4 | H5 | H6 | Head | Hr | I | Img | Li | Listing | Menu | Meta | Nobr | Ol | P
            | Pre | Ruby | S | Small | Span | Strike | Strong | Sub | Sup | Table | Tt | U | Ul | Var
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_returns_inside_integration_points() {
        let mut foreign = Foreign::default();
        assert!(!foreign.start(Tag::Title, false));
        assert!(foreign.start(Tag::Svg, false));
        assert!(foreign.start(Tag::Title, false));
        assert!(!foreign.is_inside());
        assert!(!foreign.start(Tag::Div, false));
        foreign.end(Tag::Title);
        assert!(foreign.is_inside());
        assert!(!foreign.start(Tag::Div, false));
        assert!(!foreign.is_inside());
    }

    #[test]
    fn self_closing_elements_hold_nothing() {
        let mut foreign = Foreign::default();
        assert!(foreign.start(Tag::Svg, true));
        assert!(!foreign.is_inside());
    }

    #[test]
    fn nesting_is_bounded() {
        let mut foreign = Foreign::default();
        for _ in 0..1000 {
            foreign.start(Tag::Svg, false);
        }
        assert_eq!(foreign.0.len(), MAX_DEPTH);
    }
}
