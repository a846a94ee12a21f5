//! Element names known to the extractors, and the effect of each on the text around it.
//!
//! A name is packed into a number in lower case and looked up in a table that is built at compile
//! time, because this runs for every tag of a page.

use super::packed::{Packed, insert};

/// Declares the known elements once: the variant and its name.
macro_rules! tags {
    ($($variant:ident $name:literal)*) => {
        /// An element whose name matters to the extractors.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Tag {
            $(#[doc = concat!("`<", $name, ">`")] $variant,)*
            /// Any other element.
            Other,
        }

        /// Every known name, in the order of the variants.
        const NAMES: &[(&str, Tag)] = &[$(($name, Tag::$variant)),*];
    };
}

tags! {
    A "a" Abbr "abbr" Address "address" AnnotationXml "annotation-xml" Area "area"
    Article "article" Aside "aside" Audio "audio" B "b" Base "base" Big "big"
    Blockquote "blockquote" Body "body" Br "br" Button "button" Canvas "canvas" Caption "caption"
    Center "center" Cite "cite" Code "code" Col "col" Dd "dd" Del "del" Desc "desc"
    Details "details" Dialog "dialog" Dir "dir" Div "div" Dl "dl" Dt "dt" Em "em" Embed "embed"
    Fieldset "fieldset" Figcaption "figcaption" Figure "figure" Font "font" Footer "footer"
    ForeignObject "foreignobject" Form "form" Frame "frame" Frameset "frameset" H1 "h1" H2 "h2"
    H3 "h3" H4 "h4" H5 "h5" H6 "h6" Head "head" Header "header" Hgroup "hgroup" Hr "hr"
    Html "html" I "i" Iframe "iframe" Image "image" Img "img" Input "input" Label "label"
    Legend "legend" Li "li" Link "link" Listing "listing" Main "main" Map "map" Math "math"
    Menu "menu" Meta "meta" Mi "mi" Mn "mn" Mo "mo" Ms "ms" Mtext "mtext" Nav "nav" Nobr "nobr"
    Noembed "noembed" Noframes "noframes" Noscript "noscript" Object "object" Ol "ol"
    Optgroup "optgroup" Option "option" P "p" Param "param" Picture "picture"
    Plaintext "plaintext" Pre "pre" Progress "progress" Q "q" Ruby "ruby" S "s" Samp "samp"
    Script "script" Search "search" Section "section" Select "select" Small "small"
    Source "source" Span "span" Strike "strike" Strong "strong" Style "style" Sub "sub"
    Summary "summary" Sup "sup" Svg "svg" Table "table" Tbody "tbody" Td "td"
    Template "template" Textarea "textarea" Tfoot "tfoot" Th "th" Thead "thead" Time "time"
    Title "title" Tr "tr" Track "track" Tt "tt" U "u" Ul "ul" Var "var" Video "video" Wbr "wbr"
    Xmp "xmp"
}

impl Tag {
    /// The tag with this name, in any case.
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        let mut packed = Packed::EMPTY;
        for &byte in name.as_bytes() {
            packed.push(byte);
        }
        Self::from_packed(packed)
    }

    /// The tag of a name that was packed while reading.
    #[inline]
    pub(super) fn from_packed(name: Packed) -> Self {
        name.find(&TABLE).unwrap_or(Self::Other)
    }

    /// The name in lower case; empty for [`Tag::Other`].
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(self as usize).map_or("", |entry| entry.0)
    }

    /// Whether a browser starts a new line, cell or box here, so that the text before and after
    /// belongs to different words. Unknown elements flow with the text, as in browsers.
    #[must_use]
    pub fn separates(self) -> bool {
        !matches!(
            self,
            Self::A
                | Self::Abbr
                | Self::B
                | Self::Big
                | Self::Cite
                | Self::Code
                | Self::Del
                | Self::Em
                | Self::Font
                | Self::I
                | Self::Img
                | Self::Label
                | Self::Map
                | Self::Mi
                | Self::Mn
                | Self::Mo
                | Self::Ms
                | Self::Mtext
                | Self::Nobr
                | Self::Other
                | Self::Picture
                | Self::Q
                | Self::Ruby
                | Self::S
                | Self::Samp
                | Self::Script
                | Self::Small
                | Self::Source
                | Self::Span
                | Self::Strike
                | Self::Strong
                | Self::Style
                | Self::Sub
                | Self::Sup
                | Self::Template
                | Self::Time
                | Self::Tt
                | Self::U
                | Self::Var
                | Self::Wbr
        )
    }

    /// Whether the element never has content, so that its start tag opens nothing.
    #[must_use]
    pub fn is_void(self) -> bool {
        matches!(
            self,
            Self::Area
                | Self::Base
                | Self::Br
                | Self::Col
                | Self::Embed
                | Self::Frame
                | Self::Hr
                | Self::Image
                | Self::Img
                | Self::Input
                | Self::Link
                | Self::Meta
                | Self::Param
                | Self::Source
                | Self::Track
                | Self::Wbr
        )
    }
}

/// Four times as many slots as names, so that probing is short.
static TABLE: [(u128, Tag); 512] = {
    let mut table = [(0, Tag::Other); 512];
    let mut at = 0;
    while at < NAMES.len() {
        table = insert(table, NAMES[at].0, NAMES[at].1);
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_finds_its_tag() {
        for &(name, tag) in NAMES {
            assert_eq!(Tag::from_name(name), tag);
            assert_eq!(Tag::from_name(&name.to_ascii_uppercase()), tag);
            assert_eq!(tag.name(), name);
        }
    }

    #[test]
    fn unknown_names_are_other() {
        for name in [
            "",
            "x",
            "divv",
            "averylongnameofmorethansixteenbytes",
            "\0a",
        ] {
            assert_eq!(Tag::from_name(name), Tag::Other);
        }
    }

    #[test]
    fn inline_elements_join_words() {
        for name in [
            "a", "b", "i", "em", "strong", "span", "font", "u", "sub", "sup", "small",
        ] {
            assert!(!Tag::from_name(name).separates(), "{name}");
        }
        for name in [
            "p", "div", "br", "li", "td", "th", "tr", "table", "h1", "title", "option",
        ] {
            assert!(Tag::from_name(name).separates(), "{name}");
        }
    }
}
