//! Finds a few fields of a JSON object without building the object.
//!
//! A line of JSON Lines is mostly one long string. A parser that builds a tree copies and hashes
//! everything. This scanner walks over the top level, skips unwanted values, and returns slices. A
//! vectorized search for the closing quote crosses strings, so the cost is close to that of reading
//! the bytes once. Only wanted strings are unescaped, and their escapes are checked in the same
//! single pass. That pass is expensive, because writers limited to ASCII escape all letters beyond
//! ASCII.
//!
//! It accepts exactly what RFC 8259 accepts, up to 127 nested levels. It also tolerates three
//! defects of real corpora: control characters in strings, invalid UTF-8 and lone surrogates. The
//! latter two become U+FFFD. The last of equal keys counts, as in most parsers.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// A wanted value, still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// The text between the quotes.
    Text(Quoted<'a>),
    /// A number as written.
    Number(&'a [u8]),
    /// A nested object, known to be well-formed.
    Object(&'a [u8]),
    /// `null`.
    Null,
    /// Anything else.
    Other,
}

/// The inside of a JSON string. Its escapes may be flawed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quoted<'a> {
    bytes: &'a [u8],
    is_escaped: bool,
}

/// Why a line is not a JSON object.
pub(crate) type Flaw = &'static str;

/// Calls `found` with every key and value of the top level of `line`. Escapes in the values are not
/// checked: `found` must check each value, or keep it and unescape it later, and pass flaws on.
pub(crate) fn scan<'a>(
    line: &'a [u8],
    mut found: impl FnMut(Quoted<'a>, Value<'a>) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    let mut scanner = Scanner { bytes: line, at: 0 };
    scanner.space();
    if scanner.peek() != Some(b'{') {
        return Err("does not start with `{`");
    }
    scanner.at += 1;
    scanner.space();
    if scanner.peek() == Some(b'}') {
        scanner.at += 1;
    } else {
        loop {
            let key = scanner.key()?;
            let value = scanner.value()?;
            found(key, value)?;
            scanner.space();
            match scanner.next() {
                Some(b',') => scanner.space(),
                Some(b'}') => break,
                _ => return Err("neither `,` nor `}` after a value"),
            }
        }
    }
    scanner.space();
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err("text after the object"),
    }
}

/// The extent of the JSON value at the start of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// It has this many bytes.
    Whole(usize),
    /// It has no flaw so far and continues after the last byte.
    Open,
    /// It is flawed at this byte, or shortly before.
    Flawed(usize, Flaw),
}

/// Measures the value at the start of `bytes`, whose end may be missing. A number that reaches the
/// last byte counts as complete.
pub(crate) fn extent(bytes: &[u8]) -> Extent {
    let mut scanner = Scanner { bytes, at: 0 };
    match scanner.value().and_then(|value| value.check()) {
        Ok(()) => Extent::Whole(scanner.at),
        Err(flaw) if scanner.ran_out(flaw) => Extent::Open,
        Err(flaw) => Extent::Flawed(scanner.at, flaw),
    }
}

impl Value<'_> {
    /// Checks that its escapes are well-formed.
    pub(crate) fn check(&self) -> Result<(), Flaw> {
        match self {
            Value::Text(text) => text.check(),
            Value::Number(_) | Value::Object(_) | Value::Null | Value::Other => Ok(()),
        }
    }
}

impl<'a> Quoted<'a> {
    /// The text between the quotes, including escapes.
    pub(crate) fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether it spells `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        match self.is_escaped {
            false => self.bytes == name.as_bytes(),
            true => self.unescape().is_ok_and(|(text, _)| text == name),
        }
    }

    /// The string, and whether anything in it was replaced by U+FFFD.
    pub(crate) fn unescape(&self) -> Result<(Cow<'a, str>, bool), Flaw> {
        if !self.is_escaped {
            return Ok(match simdutf8::basic::from_utf8(self.bytes) {
                Ok(text) => (Cow::Borrowed(text), false),
                Err(_) => (String::from_utf8_lossy(self.bytes), true),
            });
        }
        let (bytes, is_lossy) = unescape_bytes(self.bytes)?;
        // Copying checked bytes is cheaper than the check of the standard library.
        Ok(match simdutf8::basic::from_utf8(&bytes) {
            Ok(text) => (Cow::Owned(text.to_owned()), is_lossy),
            Err(_) => (
                Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
                true,
            ),
        })
    }

    fn check(&self) -> Result<(), Flaw> {
        let mut rest = self.bytes;
        while let Some(at) = memchr(b'\\', rest).filter(|_| self.is_escaped) {
            let after = &rest[at + 1..];
            let (_, used) = escape(after)?;
            rest = &after[used..];
        }
        Ok(())
    }
}

/// Replaces escapes. Everything is written directly to its place in one buffer, in words rather
/// than bytes. Later writes overwrite the excess bytes.
fn unescape_bytes(bytes: &[u8]) -> Result<(Vec<u8>, bool), Flaw> {
    // No escape stands for more bytes than it takes itself.
    let mut out = vec![0; bytes.len() + 8];
    let mut is_lossy = false;
    let (mut from, mut to) = (0, 0);
    while from < bytes.len() {
        let run = copy_run(&bytes[from..], &mut out[to..]);
        (from, to) = (from + run, to + run);
        // Escapes often follow one another: letters beyond ASCII, or `\r\n\r\n`.
        while bytes.get(from) == Some(&b'\\') {
            let (letter, used) = escape(&bytes[from + 1..])?;
            is_lossy |= letter.is_none();
            let mut buffer = [0; 4];
            let letter = letter.unwrap_or(char::REPLACEMENT_CHARACTER);
            let n = letter.encode_utf8(&mut buffer).len();
            out[to..to + 4].copy_from_slice(&buffer);
            (from, to) = (from + 1 + used, to + n);
        }
    }
    out.truncate(to);
    Ok((out, is_lossy))
}

/// Copies the bytes before a backslash and returns their number. `to` is at least 8 bytes longer
/// than `from`.
fn copy_run(from: &[u8], to: &mut [u8]) -> usize {
    // The next backslash is often near, and calling the vectorized search costs more than a few
    // words.
    const N_WORDS: usize = 4;
    let words = from.chunks_exact(8).take(N_WORDS);
    for (n, word) in words.enumerate() {
        to[8 * n..8 * n + 8].copy_from_slice(word);
        let word = word.first_chunk().copied().unwrap_or_default();
        let found = zero_bytes(u64::from_le_bytes(word) ^ spread(b'\\'));
        if found != 0 {
            return 8 * n + found.trailing_zeros() as usize / 8;
        }
    }
    let done = 8 * (from.len() / 8).min(N_WORDS);
    let rest = &from[done..];
    let run = memchr(b'\\', rest).unwrap_or(rest.len());
    to[done..done + run].copy_from_slice(&rest[..run]);
    done + run
}

/// The letter of the escape whose backslash is before `after`, and the bytes it takes. The letter
/// is none for a lone surrogate.
fn escape(after: &[u8]) -> Result<(Option<char>, usize), Flaw> {
    match after {
        [b'u', digits @ ..] => unescape_unicode(digits),
        [code, ..] if SIMPLE[usize::from(*code)] != 0 => {
            Ok((Some(char::from(SIMPLE[usize::from(*code)])), 1))
        }
        _ => Err("unknown escape"),
    }
}

/// The meaning of the letter after a backslash; 0 for `u` and for invalid letters.
const SIMPLE: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = *b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
    let mut at = 0;
    while at < pairs.len() {
        table[pairs[at] as usize] = pairs[at + 1];
        at += 2;
    }
    table
};

/// The letter of `XXXX` or `XXXX\uXXXX` at the start, and the bytes it takes with its `u`. The
/// letter is none for a lone surrogate.
fn unescape_unicode(digits: &[u8]) -> Result<(Option<char>, usize), Flaw> {
    let first = hex4(digits).ok_or("`\\u` without four digits")?;
    if let Some(letter) = char::from_u32(first) {
        return Ok((Some(letter), 5));
    }
    let is_leading = (0xd800..0xdc00).contains(&first);
    if is_leading
        && let Some([b'\\', b'u', digits @ ..]) = digits.get(4..)
        && let Some(second @ 0xdc00..0xe000) = hex4(digits)
    {
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return Ok((char::from_u32(code), 11));
    }
    Ok((None, 5))
}

/// The value of the four hexadecimal digits at the start.
fn hex4(bytes: &[u8]) -> Option<u32> {
    let [a, b, c, d] = *bytes.first_chunk()?;
    let [a, b, c, d] = [a, b, c, d].map(|digit| u32::from(HEX[usize::from(digit)]));
    let is_hex = (a | b | c | d) & u32::from(NO_DIGIT) == 0;
    is_hex.then_some(a << 12 | b << 8 | c << 4 | d)
}

/// Marks bytes in [`HEX`] that are not digits.
const NO_DIGIT: u8 = 0x80;

/// The value of each hexadecimal digit.
const HEX: [u8; 256] = {
    let mut table = [NO_DIGIT; 256];
    let digits = b"0123456789abcdef";
    let mut value = 0;
    while value < 16 {
        table[digits[value] as usize] = value as u8;
        table[digits[value].to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    table
};

const fn spread(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The top bit of each zero byte, up to and including the first; higher bits may also be set.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(spread(1)) & !word & spread(0x80)
}

/// The flaw of a string without a closing quote.
const OPEN: Flaw = "unterminated string";

/// The literal values.
const WORDS: [&str; 3] = ["null", "true", "false"];

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    /// Whether a flaw is only that the bytes end here.
    fn ran_out(&self, flaw: Flaw) -> bool {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let is_word_cut = || WORDS.iter().any(|word| word.as_bytes().starts_with(rest));
        flaw == OPEN || rest.is_empty() || is_word_cut()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// A key with its colon.
    fn key(&mut self) -> Result<Quoted<'a>, Flaw> {
        if self.next() != Some(b'"') {
            return Err("a key is not in quotes");
        }
        let key = self.string()?;
        key.check()?;
        self.space();
        if self.next() != Some(b':') {
            return Err("no `:` after a key");
        }
        self.space();
        Ok(key)
    }

    fn value(&mut self) -> Result<Value<'a>, Flaw> {
        match self.peek() {
            Some(b'"') => {
                self.at += 1;
                self.string().map(Value::Text)
            }
            Some(b'{') => {
                let start = self.at;
                self.nested()?;
                Ok(Value::Object(&self.bytes[start..self.at]))
            }
            Some(b'[') => self.nested().map(|()| Value::Other),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            Some(b'n') => self.word().map(|()| Value::Null),
            _ => self.word().map(|()| Value::Other),
        }
    }

    /// The rest of a string whose opening quote has been read. It ends at the first quote after an
    /// even number of backslashes.
    fn string(&mut self) -> Result<Quoted<'a>, Flaw> {
        let rest = self.bytes.get(self.at..).ok_or(OPEN)?;
        let first = memchr2(b'"', b'\\', rest).ok_or(OPEN)?;
        let is_escaped = rest[first] == b'\\';
        let mut end = first;
        if is_escaped {
            loop {
                end += memchr(b'"', &rest[end..]).ok_or(OPEN)?;
                let before = rest[..end].iter().rev();
                if before.take_while(|&&b| b == b'\\').count() % 2 == 0 {
                    break;
                }
                end += 1;
            }
        }
        self.at += end + 1;
        Ok(Quoted {
            bytes: &rest[..end],
            is_escaped,
        })
    }

    fn number(&mut self) -> Result<&'a [u8], Flaw> {
        const FLAW: Flaw = "malformed number";
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.digits() {
            0 => return Err(FLAW),
            n if n > 1 && self.bytes[self.at - n] == b'0' => return Err(FLAW),
            _ => {}
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return Err(FLAW);
            }
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            if self.digits() == 0 {
                return Err(FLAW);
            }
        }
        Ok(&self.bytes[start..self.at])
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self) -> Result<(), Flaw> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        for word in WORDS {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(());
            }
        }
        Err("not a JSON value")
    }

    /// Skips an array or object. The kinds of the open brackets are bits of one number, so nesting
    /// takes no memory and has a limit.
    fn nested(&mut self) -> Result<(), Flaw> {
        let mut kinds: u128 = 1;
        loop {
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    if kinds >> 126 != 0 {
                        return Err("nested too deeply");
                    }
                    kinds = kinds << 1 | u128::from(open == b'[');
                    self.at += 1;
                    self.space();
                    if self.peek() != Some(closing(kinds)) {
                        self.element(kinds)?;
                        continue;
                    }
                    self.at += 1;
                    kinds >>= 1;
                }
                _ => self.value()?.check()?,
            }
            if self.close(&mut kinds)? {
                return Ok(());
            }
            self.space();
            self.element(kinds)?;
        }
    }

    /// Moves to the value of the next element; in an object, past its key.
    fn element(&mut self, kinds: u128) -> Result<(), Flaw> {
        match closing(kinds) {
            b'}' => self.key().map(drop),
            _ => Ok(()),
        }
    }

    /// Closes as many brackets as end after a value. Returns whether none is left open. Consumes a
    /// comma.
    fn close(&mut self, kinds: &mut u128) -> Result<bool, Flaw> {
        while *kinds != 1 {
            self.space();
            match self.next() {
                Some(b',') => return Ok(false),
                Some(byte) if byte == closing(*kinds) => *kinds >>= 1,
                _ => return Err("mismatched brackets"),
            }
        }
        Ok(true)
    }
}

/// The character that closes the innermost bracket.
fn closing(kinds: u128) -> u8 {
    if kinds & 1 == 0 { b'}' } else { b']' }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
