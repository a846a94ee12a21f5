//! Decodes character references such as `&amp;`, `&#233;` and `&#xE9;`.
//!
//! Follows the HTML standard. A name without its semicolon counts for the 106 old names, longest
//! first (`&notit` is `¬it`). Inside an attribute it does not count if a letter, digit or `=`
//! follows, so that `?a=1&copy=2` stays a query. Numbers in 128..=159 mean windows-1252, as in old
//! pages. Numbers beyond Unicode become U+FFFD. The output has at most three times the bytes of the
//! input (U+FFFD for NUL; the worst reference, `&nGt;`, turns five bytes into six).

use std::borrow::Cow;

use super::entity_table::{LEGACY, NAMED};

/// The place of a reference; the rules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between tags.
    Text,
    /// In the value of an attribute.
    Attribute,
}

/// Decodes all references of `raw`; borrows if there is nothing to decode.
///
/// Carriage returns become line feeds, as in the input stream of the standard. In an attribute, NUL
/// becomes U+FFFD. In text it stays, because only the caller knows whether to drop or replace it.
#[must_use]
pub fn decode(raw: &str, place: Place) -> Cow<'_, str> {
    if memchr::memchr3(b'&', b'\r', b'\0', raw.as_bytes()).is_none() {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr3(b'&', b'\r', b'\0', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        rest = decode_one(&rest[at..], place, &mut out);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes the reference at the start of `rest` and returns the rest.
fn decode_one<'a>(rest: &'a str, place: Place, out: &mut String) -> &'a str {
    let tail = &rest[1..];
    match rest.as_bytes()[0] {
        b'\r' => {
            out.push('\n');
            tail.strip_prefix('\n').unwrap_or(tail)
        }
        b'\0' => {
            out.push(if place == Place::Attribute {
                '\u{fffd}'
            } else {
                '\0'
            });
            tail
        }
        _ => match reference(tail, place) {
            Some((value, used)) => {
                value.push_to(out);
                &tail[used..]
            }
            None => {
                out.push('&');
                tail
            }
        },
    }
}

/// The value of a reference.
enum Value {
    Char(char),
    Named(&'static str),
}

impl Value {
    fn push_to(&self, out: &mut String) {
        match self {
            Self::Char(char) => out.push(*char),
            Self::Named(text) => out.push_str(text),
        }
    }
}

/// The reference after an `&` and the number of its bytes, including the semicolon.
fn reference(tail: &str, place: Place) -> Option<(Value, usize)> {
    if let Some(number) = tail.strip_prefix('#') {
        let (char, used) = numeric(number)?;
        return Some((Value::Char(char), used + 1));
    }
    let bytes = tail.as_bytes();
    if let Some(found) = common(bytes) {
        return Some(found);
    }
    // The longest name has 31 bytes, not counting its semicolon.
    let run = bytes
        .iter()
        .take(32)
        .take_while(|byte| byte.is_ascii_alphanumeric())
        .count();
    if bytes.get(run) == Some(&b';')
        && let Ok(at) = NAMED.binary_search_by(|(name, _)| (*name).cmp(&tail[..run]))
    {
        return Some((Value::Named(NAMED[at].1), run + 1));
    }
    let (value, used) = legacy(&tail[..run])?;
    let follower = bytes.get(used).copied().unwrap_or(b' ');
    let in_query = follower == b'=' || follower.is_ascii_alphanumeric();
    (place == Place::Text || !in_query).then_some((Value::Named(value), used))
}

/// The five most common references, found without a search.
fn common(tail: &[u8]) -> Option<(Value, usize)> {
    match tail {
        [b'l', b't', b';', ..] => Some((Value::Char('<'), 3)),
        [b'g', b't', b';', ..] => Some((Value::Char('>'), 3)),
        [b'a', b'm', b'p', b';', ..] => Some((Value::Char('&'), 4)),
        [b'q', b'u', b'o', b't', b';', ..] => Some((Value::Char('"'), 5)),
        [b'n', b'b', b's', b'p', b';', ..] => Some((Value::Char('\u{a0}'), 5)),
        _ => None,
    }
}

/// The longest old name that is a prefix of `run`.
fn legacy(run: &str) -> Option<(&'static str, usize)> {
    let longest = run.len().min(6);
    let used = (2..=longest)
        .rev()
        .find(|&len| LEGACY.binary_search(&&run[..len]).is_ok())?;
    let at = NAMED
        .binary_search_by(|(name, _)| (*name).cmp(&run[..used]))
        .ok()?;
    Some((NAMED[at].1, used))
}

/// The character for a number, which starts after `#`, and the number of bytes used.
fn numeric(number: &str) -> Option<(char, usize)> {
    let (radix, skip) = match number.as_bytes().first()? {
        b'x' | b'X' => (16, 1),
        _ => (10, 0),
    };
    let mut code = 0u32;
    let mut used = skip;
    for digit in number[skip..]
        .bytes()
        .map_while(|byte| (byte as char).to_digit(radix))
    {
        // Saturates far above Unicode, where all values mean the same.
        code = code.saturating_mul(radix).saturating_add(digit);
        used += 1;
    }
    if used == skip {
        return None;
    }
    used += usize::from(number.as_bytes().get(used) == Some(&b';'));
    Some((character(code), used))
}

/// The character that a number stands for.
fn character(code: u32) -> char {
    match code {
        0 => '\u{fffd}',
        0x80..=0x9f => WINDOWS_1252[(code - 0x80) as usize],
        _ => char::from_u32(code).unwrap_or('\u{fffd}'),
    }
}

/// 0x80..=0x9f in windows-1252; the five unassigned ones stay control characters.
#[rustfmt::skip]
static WINDOWS_1252: [char; 32] = [
    '\u{20ac}', '\u{81}', '\u{201a}', '\u{192}', '\u{201e}', '\u{2026}', '\u{2020}', '\u{2021}',
    '\u{2c6}', '\u{2030}', '\u{160}', '\u{2039}', '\u{152}', '\u{8d}', '\u{17d}', '\u{8f}',
    '\u{90}', '\u{2018}', '\u{2019}', '\u{201c}', '\u{201d}', '\u{2022}', '\u{2013}', '\u{2014}',
    '\u{2dc}', '\u{2122}', '\u{161}', '\u{203a}', '\u{153}', '\u{9d}', '\u{17e}', '\u{178}',
];

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        assert_eq!(decode(raw, Place::Text), expected);
    }

    #[test]
    fn named_references() {
        check("a &amp; b", "a & b");
        check("caf&eacute;", "café");
        check("caf&eacute", "café");
        check("&NotEqualTilde;", "\u{2242}\u{338}");
        check("&CounterClockwiseContourIntegral;", "\u{2233}");
        check("&nosuch; &; & &&amp;", "&nosuch; &; & &&");
    }

    #[test]
    fn the_longest_old_name_wins() {
        check("&notit;", "¬it;");
        check("&notin;", "∉");
        check("&ampamp;", "&amp;");
        check("&sup1x", "¹x");
    }

    #[test]
    fn numbers() {
        check("&#65;&#x41;&#X41&#x4g", "AAA\u{4}g");
        check("&#150;&#x80;&#0;", "–€\u{fffd}");
        check(
            "&#xD800;&#x110000;&#99999999999999;",
            "\u{fffd}\u{fffd}\u{fffd}",
        );
        check("&#;&#x;&#", "&#;&#x;&#");
    }

    #[test]
    fn queries_in_attributes_stay() {
        let raw = "?a=1&copy=2&region=3&lt;&amp";
        assert_eq!(decode(raw, Place::Attribute), "?a=1&copy=2&region=3<&");
        assert_eq!(decode(raw, Place::Text), "?a=1©=2®ion=3<&");
    }

    #[test]
    fn line_ends_and_nul() {
        check("a\r\nb\rc\0", "a\nb\nc\0");
        assert_eq!(decode("\0", Place::Attribute), "\u{fffd}");
    }

    #[test]
    fn tables_are_sorted() {
        assert!(NAMED.is_sorted_by(|a, b| a.0 < b.0));
        assert!(LEGACY.is_sorted_by(|a, b| a < b));
        for name in LEGACY {
            assert!(
                legacy(name).is_some_and(|(_, used)| used == name.len()),
                "{name}"
            );
        }
    }
}
