//! The tokenizer: splits a page into tags, text and comments, without copying.
//!
//! Follows the tokenization rules of the HTML standard where they decide what is text and what is
//! the value of an attribute: quoting in all its forms, comments that end oddly, raw text in
//! `script` and similar elements, CDATA in foreign content, and unclosed constructs. Tokens are
//! slices of the input. References in them are decoded on demand by [`decode`], since most are
//! never looked at.
//!
//! The tree builder of a browser tells its tokenizer when raw text starts. Here there is no tree.
//! The tokenizer therefore watches its own start tags, and keeps a short stack of open `svg` and
//! `math` elements, inside which `title` and `style` are ordinary elements. In valid pages it does
//! not differ from a browser. In broken pages, tags that the tree builder would ignore (a
//! `textarea` directly inside a `select`) switch to raw text here.
//!
//! Every byte is read once, except those of attribute names, which are read twice. Time is `O(n)`,
//! and memory a few kilobytes for any input.

use memchr::{memchr, memchr_iter};

use super::entity::{Place, decode};
use super::foreign::Foreign;
use super::packed::Packed;
use super::tag::Tag;
use std::borrow::Cow;

/// Maximum number of attributes kept per tag; further ones are skipped.
pub const MAX_ATTRIBUTES: usize = 512;

/// A piece of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// Characters; a run of text may come in several pieces.
    Text(Text<'a>),
    /// `<name …>`; its attributes are in [`Tokenizer::attributes`] until the next token.
    Start(Name<'a>),
    /// `</name>`
    End(Name<'a>),
    /// A comment, or markup that a browser treats as one, without its delimiters.
    Comment(&'a str),
    /// `<!doctype …>`, the part after the keyword.
    Doctype(&'a str),
}

/// Characters as written in the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The undecoded characters.
    pub raw: &'a str,
    /// The rules that apply to them.
    pub kind: TextKind,
}

/// The kind of a stretch of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// Ordinary text: references are decoded, and the tree of a browser drops NUL.
    Data,
    /// `title` and `textarea`: references are decoded.
    Escapable,
    /// `script`, `style`, `xmp`, `iframe` …: nothing is decoded.
    Raw,
    /// A CDATA section: nothing is decoded.
    Cdata,
}

impl<'a> Text<'a> {
    /// The decoded characters.
    #[must_use]
    pub fn decoded(&self) -> Cow<'a, str> {
        match self.kind {
            TextKind::Data => decode(self.raw, Place::Text),
            TextKind::Cdata => decode_line_ends(self.raw),
            TextKind::Raw => replace_nul(decode_line_ends(self.raw)),
            TextKind::Escapable => replace_nul(decode(self.raw, Place::Text)),
        }
    }
}

fn decode_line_ends(raw: &str) -> Cow<'_, str> {
    if memchr(b'\r', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    Cow::Owned(raw.replace("\r\n", "\n").replace('\r', "\n"))
}

fn replace_nul(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr(b'\0', text.as_bytes()).is_none() {
        return text;
    }
    Cow::Owned(text.replace('\0', "\u{fffd}"))
}

/// The name of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    /// As written, in any case.
    pub raw: &'a str,
    /// The tag with this name.
    pub tag: Tag,
    /// Whether the tag ends in `/>`.
    pub self_closing: bool,
    /// Whether a start tag opens an element of `svg` or `math`, where names have other meanings.
    pub is_foreign: bool,
}

/// One attribute of a start tag. Of several attributes with the same name, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// As written, in any case.
    pub name: &'a str,
    /// As written, without quotes and with references not decoded.
    pub raw_value: &'a str,
}

impl<'a> Attribute<'a> {
    /// The decoded value.
    #[must_use]
    pub fn value(&self) -> Cow<'a, str> {
        decode(self.raw_value, Place::Attribute)
    }
}

/// How the tokenizer reads the next characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State<'a> {
    /// Tags and text.
    Data,
    /// Text and references up to the end tag of this name.
    Escapable(&'a str),
    /// Text up to the end tag of this name.
    Raw(&'a str),
    /// Like `Raw("script")`, but an end tag inside `<!--<script>…-->` does not count.
    Script,
    /// Text to the end of the input.
    Plaintext,
    /// Text up to `]]>`.
    Cdata,
}

/// Reads tokens one after the other.
///
/// ```
/// use arose_corpus::html::token::{Token, Tokenizer};
///
/// let mut tokenizer = Tokenizer::new("<a href='?x=1&amp;y=2'>go");
/// let Some(Token::Start(name)) = tokenizer.next_token() else { panic!("no tag") };
/// assert_eq!(name.raw, "a");
/// assert_eq!(tokenizer.attribute("href").as_deref(), Some("?x=1&y=2"));
/// ```
#[derive(Debug)]
pub struct Tokenizer<'a> {
    input: &'a str,
    at: usize,
    state: State<'a>,
    attributes: Vec<Attribute<'a>>,
    foreign: Foreign,
    noscript: Noscript,
}

/// The content of `<noscript>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noscript {
    /// Raw text that is not shown, because scripts run.
    Hidden,
    /// Ordinary markup, because scripts do not run.
    Markup,
}

impl<'a> Tokenizer<'a> {
    /// Starts at the beginning of a page.
    #[must_use]
    pub fn new(input: &'a str) -> Self {
        Self::in_state(input, State::Data)
    }

    /// Starts in the middle of a page, for example inside a `textarea`.
    #[must_use]
    pub fn in_state(input: &'a str, state: State<'a>) -> Self {
        Self {
            input,
            at: 0,
            state,
            attributes: Vec::new(),
            foreign: Foreign::default(),
            noscript: Noscript::Hidden,
        }
    }

    /// Reads `<noscript>` in the given way instead of hiding it.
    #[must_use]
    pub fn with_noscript(self, noscript: Noscript) -> Self {
        Self { noscript, ..self }
    }

    /// The attributes of the start tag read last.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute<'a>] {
        &self.attributes
    }

    /// The value of an attribute of the start tag read last; `name` is in lower case.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<Cow<'a, str>> {
        let found = self
            .attributes
            .iter()
            .find(|a| a.name.eq_ignore_ascii_case(name))?;
        Some(found.value())
    }

    /// The next token, or none at the end.
    pub fn next_token(&mut self) -> Option<Token<'a>> {
        loop {
            if self.at >= self.input.len() {
                return None;
            }
            let token = match self.state {
                State::Data => self.data(),
                State::Plaintext => Some(self.text_until(self.input.len(), TextKind::Raw)),
                State::Cdata => self.cdata(),
                State::Escapable(name) => self.raw_text(name, TextKind::Escapable),
                State::Raw(name) => self.raw_text(name, TextKind::Raw),
                State::Script => self.script(),
            };
            if token.is_some() {
                return token;
            }
        }
    }

    fn bytes(&self) -> &'a [u8] {
        self.input.as_bytes()
    }

    /// The byte at `at + ahead`, or NUL past the end, which has no special meaning to any caller.
    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    fn text_until(&mut self, end: usize, kind: TextKind) -> Token<'a> {
        let raw = &self.input[self.at..end];
        self.at = end;
        Token::Text(Text { raw, kind })
    }

    /// Text up to the next markup, or that markup; none for markup without a token.
    fn data(&mut self) -> Option<Token<'a>> {
        if self.peek(0) == b'<' && self.starts_markup() {
            return self.markup();
        }
        // A `<` that does not start markup is text.
        let start = self.at + 1;
        let end = memchr(b'<', &self.bytes()[start..]).map_or(self.input.len(), |len| start + len);
        // Skipping a multi-byte character is safe: `<` never occurs inside one.
        Some(self.text_until(end, TextKind::Data))
    }

    /// Whether the `<` here opens a tag, a comment or a declaration.
    fn starts_markup(&self) -> bool {
        match self.peek(1) {
            b'!' | b'?' => true,
            b'/' => self.at + 2 < self.input.len(),
            next => next.is_ascii_alphabetic(),
        }
    }

    fn markup(&mut self) -> Option<Token<'a>> {
        match self.peek(1) {
            b'!' => self.declaration(),
            b'?' => Some(self.bogus_comment(1)),
            b'/' => match self.peek(2) {
                b'>' => {
                    self.at += 3;
                    None
                }
                next if next.is_ascii_alphabetic() => self.end_tag(),
                _ => Some(self.bogus_comment(2)),
            },
            _ => self.start_tag(),
        }
    }

    fn declaration(&mut self) -> Option<Token<'a>> {
        let rest = &self.bytes()[self.at + 2..];
        if rest.starts_with(b"--") {
            return Some(self.comment());
        }
        if rest
            .get(..7)
            .is_some_and(|word| word.eq_ignore_ascii_case(b"doctype"))
        {
            self.at += 9;
            return Some(Token::Doctype(self.until_greater()));
        }
        if rest.starts_with(b"[CDATA[") && self.foreign.is_inside() {
            self.at += 9;
            self.state = State::Cdata;
            return None;
        }
        Some(self.bogus_comment(2))
    }

    /// The text before the next `>`; consumes the `>` as well.
    fn until_greater(&mut self) -> &'a str {
        let rest = &self.input[self.at..];
        let len = memchr(b'>', rest.as_bytes()).unwrap_or(rest.len());
        self.at = (self.at + len + 1).min(self.input.len());
        &rest[..len]
    }

    fn bogus_comment(&mut self, skip: usize) -> Token<'a> {
        self.at += skip;
        Token::Comment(self.until_greater())
    }

    /// A comment ends at `-->` or `--!>`, immediately at `>` or `->`, and at the end of the input.
    fn comment(&mut self) -> Token<'a> {
        let rest = &self.input[self.at + 4..];
        for end in memchr_iter(b'>', rest.as_bytes()) {
            let body = &rest[..end];
            let content = body.strip_suffix("--").or_else(|| body.strip_suffix("--!"));
            let abrupt = (body.is_empty() || body == "-").then_some("");
            if let Some(content) = content.or(abrupt) {
                self.at += 4 + end + 1;
                return Token::Comment(content);
            }
        }
        self.at = self.input.len();
        let ends = ["--!", "--", "-"];
        Token::Comment(
            ends.iter()
                .find_map(|end| rest.strip_suffix(end))
                .unwrap_or(rest),
        )
    }

    fn cdata(&mut self) -> Option<Token<'a>> {
        let rest = &self.input[self.at..];
        let (text, used) = match memchr::memmem::find(rest.as_bytes(), b"]]>") {
            Some(len) => (&rest[..len], len + 3),
            None => (rest, rest.len()),
        };
        self.at += used;
        self.state = State::Data;
        (!text.is_empty()).then_some(Token::Text(Text {
            raw: text,
            kind: TextKind::Cdata,
        }))
    }

    /// The whole raw text up to its end tag, or that end tag.
    fn raw_text(&mut self, name: &str, kind: TextKind) -> Option<Token<'a>> {
        let end = self.raw_end(self.at, name);
        if end > self.at {
            return Some(self.text_until(end, kind));
        }
        self.state = State::Data;
        self.end_tag()
    }

    /// The start of the end tag of raw text `name`, searched from `from`.
    fn raw_end(&self, from: usize, name: &str) -> usize {
        memchr_iter(b'<', &self.bytes()[from..])
            .map(|len| from + len)
            .find(|&at| is_tag_at(&self.bytes()[at..], b"</", name))
            .unwrap_or(self.input.len())
    }

    fn script(&mut self) -> Option<Token<'a>> {
        let end = self.script_end();
        if end > self.at {
            return Some(self.text_until(end, TextKind::Raw));
        }
        self.state = State::Data;
        self.end_tag()
    }

    /// The end of the script. `<!--` hides further `<script>` tags up to their end tag or `-->`.
    fn script_end(&self) -> usize {
        let bytes = self.bytes();
        let mut escaped = Escape::None;
        let mut at = self.at;
        while let Some(len) = memchr::memchr2(b'<', b'-', &bytes[at..]) {
            at += len;
            let rest = &bytes[at..];
            match escaped {
                Escape::None | Escape::Single if is_tag_at(rest, b"</", "script") => return at,
                Escape::Double if is_tag_at(rest, b"</", "script") => escaped = Escape::Single,
                Escape::Single if is_tag_at(rest, b"<", "script") => escaped = Escape::Double,
                Escape::None if rest.starts_with(b"<!--") => {
                    escaped = Escape::Single;
                    // The dashes of `<!-->` close it again.
                    at += 1;
                }
                Escape::Single | Escape::Double if rest.starts_with(b"-->") => {
                    escaped = Escape::None;
                }
                _ => {}
            }
            at += 1;
        }
        self.input.len()
    }

    fn start_tag(&mut self) -> Option<Token<'a>> {
        let name = self.tag_name(1);
        let self_closing = self.tag_rest()?;
        let mut name = Name {
            self_closing,
            ..name
        };
        name.is_foreign = self.foreign.start(name.tag, self_closing);
        if !name.is_foreign {
            self.follow_start(name);
        }
        Some(Token::Start(name))
    }

    fn end_tag(&mut self) -> Option<Token<'a>> {
        let name = self.tag_name(2);
        let self_closing = self.tag_rest()?;
        self.foreign.end(name.tag);
        Some(Token::End(Name {
            self_closing,
            ..name
        }))
    }

    /// Reads the name that starts `skip` bytes ahead.
    fn tag_name(&mut self, skip: usize) -> Name<'a> {
        let start = self.at + skip;
        let mut key = Packed::EMPTY;
        let mut end = start;
        for &byte in &self.bytes()[start..] {
            if matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'>') {
                break;
            }
            key.push(byte);
            end += 1;
        }
        self.at = end;
        Name {
            raw: &self.input[start..end],
            tag: Tag::from_packed(key),
            self_closing: false,
            is_foreign: false,
        }
    }

    /// Reads attributes up to and including `>`. Returns whether the tag ended in `/>`; none if the
    /// input ends first, because the standard drops such a tag.
    fn tag_rest(&mut self) -> Option<bool> {
        self.attributes.clear();
        let bytes = self.bytes();
        loop {
            match *bytes.get(self.at)? {
                b'>' => {
                    self.at += 1;
                    return Some(false);
                }
                b'/' if bytes.get(self.at + 1) == Some(&b'>') => {
                    self.at += 2;
                    return Some(true);
                }
                b'/' | b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' => self.at += 1,
                _ => self.attribute_here()?,
            }
        }
    }

    /// Reads one attribute; none if the input ends inside a quoted value.
    fn attribute_here(&mut self) -> Option<()> {
        let name = self.attribute_name();
        let bytes = self.bytes();
        let after_name = self.at;
        self.skip_space();
        let mut raw_value = "";
        if bytes.get(self.at) == Some(&b'=') {
            self.at += 1;
            self.skip_space();
            raw_value = self.attribute_value()?;
        } else {
            self.at = after_name;
        }
        if self.attributes.len() < MAX_ATTRIBUTES {
            self.attributes.push(Attribute { name, raw_value });
        }
        Some(())
    }

    /// A name may start with `=`; a later `=` ends it.
    fn attribute_name(&mut self) -> &'a str {
        let rest = &self.input[self.at..];
        let ends = |byte: &u8| {
            matches!(
                byte,
                b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'>' | b'='
            )
        };
        let len = rest.bytes().skip(1).position(|byte| ends(&byte));
        let name = &rest[..len.map_or(rest.len(), |len| len + 1)];
        self.at += name.len();
        name
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(0), b'\t' | b'\n' | b'\x0c' | b'\r' | b' ') {
            self.at += 1;
        }
    }

    fn attribute_value(&mut self) -> Option<&'a str> {
        let quote = *self.bytes().get(self.at)?;
        if matches!(quote, b'"' | b'\'') {
            let rest = &self.input[self.at + 1..];
            let len = memchr(quote, rest.as_bytes());
            self.at = len.map_or(self.input.len(), |len| self.at + len + 2);
            return len.map(|len| &rest[..len]);
        }
        let rest = &self.input[self.at..];
        let ends = |byte| matches!(byte, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'>');
        let len = rest.bytes().position(ends).unwrap_or(rest.len());
        self.at += len;
        Some(&rest[..len])
    }

    /// Does what the tree builder of a browser would tell its tokenizer after a start tag.
    fn follow_start(&mut self, name: Name<'a>) {
        self.state = match name.tag {
            Tag::Title | Tag::Textarea => State::Escapable(name.raw),
            Tag::Script => State::Script,
            Tag::Plaintext => State::Plaintext,
            Tag::Style | Tag::Xmp | Tag::Iframe | Tag::Noembed | Tag::Noframes => {
                State::Raw(name.raw)
            }
            Tag::Noscript if self.noscript == Noscript::Hidden => State::Raw(name.raw),
            _ => State::Data,
        };
    }
}

/// How deeply a script is hidden in a comment.
#[derive(Clone, Copy)]
enum Escape {
    None,
    Single,
    Double,
}

/// Whether `rest` starts with `open`, `name` in any case, and the end of a name.
fn is_tag_at(rest: &[u8], open: &[u8], name: &str) -> bool {
    let Some(tail) = rest.strip_prefix(open) else {
        return false;
    };
    let Some((head, tail)) = tail.split_at_checked(name.len()) else {
        return false;
    };
    let ended = matches!(
        tail.first(),
        Some(b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b'/' | b'>')
    );
    ended && head.eq_ignore_ascii_case(name.as_bytes())
}
