//! Categories of difference: what kind of text two near duplicates differ in.
//!
//! *Question.* An algorithm calls two pages duplicates. Do they differ in their URL, in a footer,
//! in data such as scores or exchange rates, or in something that matters?
//!
//! *Idea.* Find the tokens that differ (the differences of [`report::diff`](crate::report)) and
//! determine what they have in common: they are parts of URLs, or they are at the end of both
//! texts, or they are numbers. The first condition that holds is the category.
//!
//! *Paper.* Henzinger 2006 classifies the differences of her samples by hand; these rules do it
//! automatically. *Parameters.* A footer is the last tenth of a text and at most [`MAX_FOOTER`]
//! tokens. *Cost.* One comparison of the two token sequences. *Error.* A footer is only the end of
//! a text; a reader may see another reason. Pairs that differ in more than is compared are `other`.
//! *Not for* deciding whether two documents are duplicates.

use arose::token::{Tokenizer, Tokens};

use crate::report::diff::{Bounds, changes};

/// Maximum number of tokens of a footer.
pub const MAX_FOOTER: usize = 100;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Number,
    /// A part of a URL, or an image, which is identified by its URL.
    Url,
}

/// A category of difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The tokens are the same.
    Nothing,
    /// Only parts of URLs differ.
    Url,
    /// Only the ends of the texts differ.
    Footer,
    /// Only numbers differ, as in sports results, exchange rates and counters.
    Numbers,
    /// Anything else.
    Other,
}

impl Difference {
    /// Every category, in the order of its declaration.
    pub const ALL: [Self; 5] = [
        Self::Nothing,
        Self::Url,
        Self::Footer,
        Self::Numbers,
        Self::Other,
    ];

    /// Its name in tables and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Url => "url",
            Self::Footer => "footer",
            Self::Numbers => "numbers",
            Self::Other => "other",
        }
    }
}

/// Tokens with their kinds.
#[derive(Debug, Clone, Default)]
pub struct KindedTokens {
    /// The tokens.
    pub tokens: Tokens,
    /// The kind of each.
    kinds: Vec<TokenKind>,
}

impl KindedTokens {
    /// The tokens of a text.
    #[must_use]
    pub fn of(tokenizer: &Tokenizer, text: &str) -> Self {
        let mut all = Self::default();
        all.push_text(tokenizer, text);
        all
    }

    /// Appends the tokens of a text. The ends of a text separate tokens.
    pub fn push_text(&mut self, tokenizer: &Tokenizer, text: &str) {
        self.tokens.push_text(tokenizer, text);
        tokenizer.for_each_place(text, |token, place| {
            let is_number = token.chars().all(char::is_numeric);
            self.kinds.push(match is_url(around(text, place.start)) {
                true => TokenKind::Url,
                false if is_number => TokenKind::Number,
                false => TokenKind::Word,
            });
        });
    }

    /// Appends an image.
    pub fn push_image(&mut self, src: &str) {
        self.tokens.push_image(src);
        self.kinds.resize(self.tokens.len(), TokenKind::Url);
    }
}

/// Returns the text between whitespace around a position.
fn around(text: &str, place: usize) -> &str {
    let (before, after) = text.split_at(place);
    let begin = before.rfind(char::is_whitespace).map_or(0, |at| {
        let blank = before[at..].chars().next().map_or(1, char::len_utf8);
        at + blank
    });
    let end = after.find(char::is_whitespace).unwrap_or(after.len());
    &text[begin..place + end]
}

/// Returns whether a run of characters without whitespace is a URL: with a scheme, with `www.`, a
/// path, or a host with a path.
fn is_url(run: &str) -> bool {
    let run = run.trim_matches(['(', ')', '<', '>', '"', '\'', ',', ';']);
    let host = run.split('/').next().unwrap_or_default();
    let is_host = |host: &str| host.contains('.') && host.chars().any(char::is_alphabetic);
    run.contains("://")
        || run.starts_with("www.")
        || run.len() > 1 && run.starts_with('/')
        || host.len() < run.len() && is_host(host)
}

/// Returns the category of the difference of two documents.
#[must_use]
pub fn difference(a: &KindedTokens, b: &KindedTokens) -> Difference {
    let (fingerprints_a, fingerprints_b) = (&a.tokens.fingerprints, &b.tokens.fingerprints);
    let (changes, ends) = changes(fingerprints_a, fingerprints_b, Bounds::PAGE);
    let is_whole = ends == [fingerprints_a.len(), fingerprints_b.len()];
    if !is_whole {
        return Difference::Other;
    }
    let are_all = |kind: TokenKind| {
        let mut changed = changes.iter().flat_map(|change| {
            let own = a.kinds[change.a.clone()].iter();
            own.chain(&b.kinds[change.b.clone()])
        });
        changed.all(|own| *own == kind)
    };
    let footers = [a, b].map(|one| footer(one.tokens.len()));
    let is_footer = |change: &crate::report::diff::Change| {
        change.a.start >= footers[0] && change.b.start >= footers[1]
    };
    if changes.is_empty() {
        Difference::Nothing
    } else if are_all(TokenKind::Url) {
        Difference::Url
    } else if changes.iter().all(is_footer) {
        Difference::Footer
    } else if are_all(TokenKind::Number) {
        Difference::Numbers
    } else {
        Difference::Other
    }
}

/// Returns where the footer of a text begins.
fn footer(n_tokens: usize) -> usize {
    n_tokens - (n_tokens / 10).min(MAX_FOOTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Difference::{Footer, Nothing, Numbers, Other, Url};

    #[track_caller]
    fn check(a: &str, b: &str, expected: Difference) {
        let [a, b] = [a, b].map(|text| KindedTokens::of(&Tokenizer::default(), text));
        assert_eq!(difference(&a, &b), expected);
        assert_eq!(difference(&b, &a), expected, "the other way round");
    }

    /// Thirty words, with a hole in the middle and one at the end.
    fn page(middle: &str, end: &str) -> String {
        let words = |from: u32, to: u32| -> String {
            (from..to).map(|word| format!("word{word}a ")).collect()
        };
        format!("{}{middle} {}{end}", words(0, 15), words(15, 30))
    }

    #[test]
    fn categories() {
        for (a, b, expected) in [
            (page("rose", "end"), page("Rose!", "end"), Nothing),
            (
                page("http://e.org/a?id=1", "end"),
                page("http://e.org/b?id=2&x", "end"),
                Url,
            ),
            (page("/cgi/1", "x"), page("/cgi/2", "x"), Url),
            (page("e.org/one", "x"), page("e.org/two", "x"), Url),
            (page("(www.one.org),", "x"), page("www.two.org", "x"), Url),
            (page("rose", "one two"), page("rose", "three"), Footer),
            (page("rose", ""), page("rose", "page 3"), Footer),
            // An end that differs only in numbers is still an end.
            (page("rose", "17"), page("rose", "18"), Footer),
            (page("3:1 4.5%", "x"), page("2:2 4.75%", "x"), Numbers),
            (page("17", "x"), page("", "x"), Numbers),
            (page("and/or", "x"), page("either/or", "x"), Other),
            (page("red rose", "x"), page("blue rose", "x"), Other),
            (page("3 roses", "x"), page("4 lilies", "x"), Other),
            (
                page("http://e.org/1 rose", "x"),
                page("http://e.org/2 lily", "x"),
                Other,
            ),
            (page("17", "one"), page("18", "two"), Other),
        ] {
            check(&a, &b, expected);
        }
    }

    #[test]
    fn short_and_empty_texts() {
        check("", "", Nothing);
        check("", "rose", Other);
        check("", "5", Numbers);
        // A tenth of nine words is empty.
        check("a b c d e f g h i", "a b c d e f g h j", Other);
    }

    #[test]
    fn images_are_urls() {
        let tokenizer = Tokenizer::default();
        let [a, b] = ["/1.png", "/2.png"].map(|src| {
            let mut tokens = KindedTokens::of(&tokenizer, "one two three");
            tokens.push_image(src);
            tokens.push_text(&tokenizer, "four five six seven eight nine ten eleven");
            tokens
        });
        assert_eq!(difference(&a, &b), Url);
    }

    /// Texts that share nothing are not compared completely.
    #[test]
    fn strangers_are_other() {
        let words =
            |letter: char| -> String { (0..9000).map(|n| format!("{letter}{n} ")).collect() };
        check(&words('a'), &words('b'), Other);
    }
}
