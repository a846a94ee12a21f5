//! Purposes of page parts, from class names, IDs and roles.
//!
//! Authors name things by purpose: `site-footer`, `relatedPosts`, `article__body`. Names are split
//! into words at punctuation and at capitals. Each word is looked up in one short list per purpose.

use super::super::packed::{Packed, insert};

/// Purposes that a name can indicate, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hints(pub(super) u32);

impl Hints {
    /// The part is initially hidden, according to an attribute and not to its name.
    pub(super) const HIDDEN: Self = Self(1 << 14);

    /// The purposes named in an attribute's value.
    pub(super) fn of_names(names: &str) -> Self {
        let mut hints = Self::default();
        let mut word = Packed::EMPTY;
        let mut was_lower = false;
        for &byte in names.as_bytes().iter().take(MAX_NAME_BYTES) {
            if !byte.is_ascii_alphanumeric() || (was_lower && byte.is_ascii_uppercase()) {
                hints.0 |= purpose(word);
                word = Packed::EMPTY;
            }
            if byte.is_ascii_alphabetic() {
                word.push(byte);
            }
            was_lower = byte.is_ascii_lowercase();
        }
        hints.0 |= purpose(word);
        hints
    }

    /// Both sets together.
    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Longer names are machine-generated; the rest of them is ignored.
const MAX_NAME_BYTES: usize = 256;

/// Words by purpose; the position is the bit.
#[rustfmt::skip]
pub(super) const PURPOSES: [&[&str]; 20] = [
    &[
        "nav", "navbar", "navigation", "menu", "menus", "submenu", "megamenu", "dropdown", "toc",
        "toolbar", "skip", "tabs", "menuitem", "subnav", "topnav", "sitemap", "links",
    ],
    &["footer", "foot", "copyright", "legal", "colophon", "bottom", "contentinfo", "disclaimer"],
    &["header", "head", "masthead", "banner", "topbar", "top", "logo", "brand", "branding"],
    &[
        "sidebar", "side", "aside", "rail", "widget", "widgets", "secondary", "right", "left",
        "complementary", "sidenav", "column",
    ],
    &["comment", "comments", "disqus", "respond", "reply", "replies", "discussion", "commentlist"],
    &[
        "share", "sharing", "social", "follow", "facebook", "twitter", "addthis", "sharedaddy",
        "icons", "linkedin", "whatsapp", "sns",
    ],
    &[
        "related", "recommended", "recommendations", "recommend", "more", "similar", "also",
        "popular", "trending", "latest", "recent", "upsell", "suggestions", "suggested", "next",
        "prev", "previous", "recirc", "readmore", "featured",
    ],
    &[
        "ad", "ads", "advert", "advertisement", "sponsor", "sponsored", "promo", "promotion",
        "outbrain", "taboola", "cta", "adsense", "promos", "offer", "offers", "donate",
    ],
    &[
        "cookie", "cookies", "consent", "gdpr", "popup", "modal", "overlay", "dialog", "lightbox",
        "notice", "alert", "toast", "tooltip", "onetrust", "paywall", "announcement",
    ],
    &[
        "form", "login", "signin", "signup", "register", "subscribe", "subscription", "newsletter",
        "search", "input", "contact", "filter", "filters", "facet", "facets", "sort", "refine",
    ],
    &[
        "meta", "byline", "author", "authors", "date", "time", "timestamp", "published", "posted",
        "info", "credit", "bio",
    ],
    &[
        "content", "article", "post", "entry", "story", "body", "text", "main", "page", "blog",
        "copy", "prose", "markdown", "richtext", "rte", "paragraph", "rich", "wysiwyg",
    ],
    &[
        "product", "products", "price", "prices", "cart", "shop", "buy", "item", "items", "sku",
        "variant", "shipping", "stock", "checkout", "wishlist", "quantity",
    ],
    &[
        "review", "reviews", "rating", "ratings", "thread", "topic", "message", "answer", "answers",
        "question", "cooked", "forum", "user", "username", "avatar", "testimonial", "testimonials",
        "votes",
    ],
    &[
        "hidden", "hide", "sr", "visually", "offscreen", "collapse", "collapsed", "invisible",
        "print", "noprint", "screen",
    ],
    &[
        "caption", "figure", "image", "img", "gallery", "carousel", "slider", "slide", "video",
        "media", "player", "swiper", "slick", "photo", "thumbnail", "thumb",
    ],
    &[
        "list", "listing", "results", "result", "grid", "archive", "feed", "collection", "card",
        "cards", "tile", "tiles", "category", "categories", "tag", "tags",
    ],
    &[
        "doc", "docs", "documentation", "code", "highlight", "example", "api", "reference",
        "section", "chapter", "sect", "refsect",
    ],
    &[
        "hero", "intro", "lead", "summary", "teaser", "excerpt", "headline", "title", "subtitle",
        "dek", "description", "desc", "details", "detail", "specs", "features", "overview",
    ],
    &[
        "breadcrumb", "breadcrumbs", "pagination", "pager", "paging", "crumbs", "pages", "steps",
        "accordion", "faq", "toggle", "tab", "panel",
    ],
];

static TABLE: [(u128, u8); 1024] = {
    let mut table = [(0, 0); 1024];
    let mut purpose = 0;
    while purpose < PURPOSES.len() {
        let mut at = 0;
        while at < PURPOSES[purpose].len() {
            table = insert(table, PURPOSES[purpose][at], purpose as u8);
            at += 1;
        }
        purpose += 1;
    }
    table
};

/// The bit of a word's purpose, or 0.
fn purpose(word: Packed) -> u32 {
    word.find(&TABLE).map_or(0, |purpose| 1 << purpose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &str, purposes: &[u32]) {
        let expected = purposes.iter().fold(0, |bits, bit| bits | 1 << bit);
        assert_eq!(Hints::of_names(names).0, expected, "{names}");
    }

    #[test]
    fn names_are_cut_into_words() {
        check("site-footer", &[1]);
        check("relatedPosts", &[6]);
        check("article__body NAV", &[11, 0]);
        check("sidebar2", &[3]);
        check("x foo unrelated", &[]);
        check("", &[]);
    }

    #[test]
    fn every_word_is_found_once() {
        let mut seen = std::collections::BTreeSet::new();
        for (bit, words) in PURPOSES.iter().enumerate() {
            for word in words.iter() {
                assert!(seen.insert(*word), "{word}");
                check(word, &[bit as u32]);
            }
        }
    }
}
