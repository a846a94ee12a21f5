//! Finds a few fields of a JSON object without building the object.
//!
//! A JSON line is mostly one long string. A parser that builds a tree copies and hashes everything;
//! this scanner walks over the top level, steps over values it does not want, and hands back
//! slices. Strings are crossed by a vectorised search for a quote or backslash, so the cost is
//! close to that of reading the bytes once; only the wanted strings are unescaped, run by run, with
//! tables for what follows a backslash (a writer that knows only ASCII escapes every other letter).
//!
//! It accepts exactly what RFC 8259 accepts, up to 127 nested levels, and forgives three things
//! that occur in real corpora: control characters in strings, bytes that are not UTF-8 and lone
//! surrogates, which become U+FFFD. Of equal keys the last counts, as in most parsers.

use std::borrow::Cow;

use memchr::memchr2;

/// A wanted value, still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// What stands between the quotes.
    Text(Quoted<'a>),
    /// A number as written.
    Number(&'a [u8]),
    /// Anything else.
    Other,
}

/// The inside of a JSON string: every backslash in it starts a whole escape, and a quote follows
/// none but a backslash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quoted<'a> {
    bytes: &'a [u8],
    is_escaped: bool,
}

/// Why a line is no JSON object.
pub(crate) type Flaw = &'static str;

/// Calls `found` with every key and value of the top level of `line`.
pub(crate) fn scan<'a>(
    line: &'a [u8],
    mut found: impl FnMut(Quoted<'a>, Value<'a>),
) -> Result<(), Flaw> {
    let mut scanner = Scanner { bytes: line, at: 0 };
    scanner.space();
    if scanner.peek() != Some(b'{') {
        return Err("it does not start with `{`");
    }
    scanner.at += 1;
    scanner.space();
    if scanner.peek() == Some(b'}') {
        scanner.at += 1;
    } else {
        loop {
            let key = scanner.key()?;
            let value = scanner.value()?;
            found(key, value);
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
        Some(_) => Err("something follows the object"),
    }
}

impl<'a> Quoted<'a> {
    /// Whether it spells `name`.
    pub(crate) fn is(&self, name: &str) -> bool {
        match self.is_escaped {
            false => self.bytes == name.as_bytes(),
            true => self.unescape().0 == name,
        }
    }

    /// The string, and whether anything in it had to be replaced by U+FFFD.
    pub(crate) fn unescape(&self) -> (Cow<'a, str>, bool) {
        if !self.is_escaped {
            return match std::str::from_utf8(self.bytes) {
                Ok(text) => (Cow::Borrowed(text), false),
                Err(_) => (String::from_utf8_lossy(self.bytes), true),
            };
        }
        let (bytes, is_lossy) = unescape_bytes(self.bytes);
        match String::from_utf8(bytes) {
            Ok(text) => (Cow::Owned(text), is_lossy),
            Err(error) => {
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                (Cow::Owned(text), true)
            }
        }
    }
}

/// Replaces escapes, all of which the scanner has found to be well formed.
fn unescape_bytes(mut bytes: &[u8]) -> (Vec<u8>, bool) {
    // No escape stands for more bytes than it has.
    let mut out = Vec::with_capacity(bytes.len());
    let mut is_lossy = false;
    loop {
        let run = special(bytes).unwrap_or(bytes.len());
        out.extend_from_slice(&bytes[..run]);
        bytes = &bytes[run..];
        // Escapes often come in rows: letters beyond ASCII, or `\r\n\r\n`.
        while let [b'\\', code, rest @ ..] = bytes {
            bytes = rest;
            match SIMPLE[usize::from(*code)] {
                0 => {
                    let (letter, used) = unescape_unicode(rest);
                    is_lossy |= letter.is_none();
                    push(&mut out, letter.unwrap_or(char::REPLACEMENT_CHARACTER));
                    bytes = rest.get(used..).unwrap_or_default();
                }
                byte => out.push(byte),
            }
        }
        if bytes.is_empty() {
            return (out, is_lossy);
        }
    }
}

/// What the letter after a backslash stands for; 0 for `u` and for what may not stand there.
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

/// Appends a letter in UTF-8. Parts of fixed length are copied without a call.
fn push(out: &mut Vec<u8>, letter: char) {
    let mut buffer = [0; 4];
    match *letter.encode_utf8(&mut buffer).as_bytes() {
        [a] => out.push(a),
        [a, b] => out.extend_from_slice(&[a, b]),
        [a, b, c] => out.extend_from_slice(&[a, b, c]),
        _ => out.extend_from_slice(&buffer),
    }
}

/// The letter of `XXXX` or `XXXX\uXXXX` at the start, none for a lone surrogate, and the bytes it
/// takes.
fn unescape_unicode(bytes: &[u8]) -> (Option<char>, usize) {
    let first = hex4(bytes).unwrap_or(0);
    if let Some(letter) = char::from_u32(first) {
        return (Some(letter), 4);
    }
    let is_leading = (0xd800..0xdc00).contains(&first);
    if is_leading && bytes.get(4..6) == Some(br"\u") {
        let second = hex4(&bytes[6..]).unwrap_or(0);
        if (0xdc00..0xe000).contains(&second) {
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return (char::from_u32(code), 10);
        }
    }
    (None, 4)
}

/// The number that four hexadecimal digits at the start spell.
fn hex4(bytes: &[u8]) -> Option<u32> {
    let [a, b, c, d] = *bytes.first_chunk()?;
    let [a, b, c, d] = [a, b, c, d].map(|digit| u32::from(HEX[usize::from(digit)]));
    let is_hex = (a | b | c | d) & u32::from(NO_DIGIT) == 0;
    is_hex.then_some(a << 12 | b << 8 | c << 4 | d)
}

/// In [`HEX`], what is no digit.
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

/// Where the first quote or backslash is. The next few words are searched here, since it is often
/// near, and calling the vectorised search costs more than they do.
fn special(bytes: &[u8]) -> Option<usize> {
    const N_WORDS: usize = 4;
    let words = bytes.chunks_exact(8).take(N_WORDS);
    for (n, word) in words.enumerate() {
        let word = u64::from_le_bytes(*word.first_chunk()?);
        let found = zero_bytes(word ^ spread(b'"')) | zero_bytes(word ^ spread(b'\\'));
        if found != 0 {
            return Some(8 * n + found.trailing_zeros() as usize / 8);
        }
    }
    let rest = 8 * (bytes.len() / 8).min(N_WORDS);
    memchr2(b'"', b'\\', &bytes[rest..]).map(|at| rest + at)
}

const fn spread(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The top bit of each byte that is zero, up to and with the first; above it there may be others.
const fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(spread(1)) & !word & spread(0x80)
}

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
            Some(b'{' | b'[') => self.nested().map(|()| Value::Other),
            Some(b'-' | b'0'..=b'9') => self.number().map(Value::Number),
            _ => self.word().map(|()| Value::Other),
        }
    }

    /// The rest of a string whose opening quote has been read.
    fn string(&mut self) -> Result<Quoted<'a>, Flaw> {
        const OPEN: Flaw = "a string does not end";
        let start = self.at;
        let mut is_escaped = false;
        loop {
            let rest = self.bytes.get(self.at..).ok_or(OPEN)?;
            self.at += special(rest).ok_or(OPEN)?;
            while self.peek() == Some(b'\\') {
                is_escaped = true;
                self.at += 1;
                self.escape()?;
            }
            if self.peek() == Some(b'"') {
                let bytes = &self.bytes[start..self.at];
                self.at += 1;
                return Ok(Quoted { bytes, is_escaped });
            }
        }
    }

    fn escape(&mut self) -> Result<(), Flaw> {
        match self.next() {
            Some(b'u') => {
                let digits = self.bytes.get(self.at..).and_then(hex4);
                self.at += 4;
                digits.map(drop).ok_or("`\\u` without four digits")
            }
            Some(code) if SIMPLE[usize::from(code)] != 0 => Ok(()),
            _ => Err("an unknown escape"),
        }
    }

    fn number(&mut self) -> Result<&'a [u8], Flaw> {
        const FLAW: Flaw = "a malformed number";
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
        for word in ["null", "true", "false"] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(());
            }
        }
        Err("neither a value nor a word of JSON")
    }

    /// Steps over an array or object. The kinds of the open brackets are bits of one number, so
    /// nesting costs no memory and has a limit.
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
                _ => drop(self.value()?),
            }
            if self.close(&mut kinds)? {
                return Ok(());
            }
            self.space();
            self.element(kinds)?;
        }
    }

    /// Steps to the value of the next element: over its key, in an object.
    fn element(&mut self, kinds: u128) -> Result<(), Flaw> {
        match closing(kinds) {
            b'}' => self.key().map(drop),
            _ => Ok(()),
        }
    }

    /// After a value inside brackets: closes as many as close here; whether none is left open. A
    /// comma is consumed.
    fn close(&mut self, kinds: &mut u128) -> Result<bool, Flaw> {
        while *kinds != 1 {
            self.space();
            match self.next() {
                Some(b',') => return Ok(false),
                Some(byte) if byte == closing(*kinds) => *kinds >>= 1,
                _ => return Err("brackets do not match"),
            }
        }
        Ok(true)
    }
}

/// What closes the innermost bracket.
fn closing(kinds: u128) -> u8 {
    if kinds & 1 == 0 { b'}' } else { b']' }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
