//! Decodes bytes to text, as browsers do.
//!
//! The encoding comes from the first of these that is present: a byte-order mark; the charset of
//! the HTTP header; for HTML, a `<meta>` in the first 1,024 bytes (the *prescan* of the HTML
//! standard), and for XML, the declaration; UTF-8 if all bytes are valid; otherwise windows-1252,
//! in which every byte has a meaning. Bytes that are invalid in the chosen encoding become U+FFFD.
//! Decoding never fails.
//!
//! Labels and decoders are those of the Encoding Standard (`encoding_rs`): `iso-8859-1` means
//! windows-1252, as on the web.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};

/// Number of bytes in which a `<meta>` is searched for.
const PRESCAN_BYTES: usize = 1024;

/// The kind of markup, which decides which declaration inside the bytes counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Markup {
    /// `<meta charset>` counts.
    Html,
    /// `<?xml encoding?>` counts.
    Xml,
    /// Nothing inside counts.
    None,
}

/// Decodes `bytes`. The second value says whether malformed bytes were replaced by U+FFFD.
pub fn decode(bytes: &[u8], http_charset: Option<&str>, markup: Markup) -> (String, bool) {
    let (text, is_malformed) = decode_as(bytes, choose(bytes, http_charset, markup));
    (text.into_owned(), is_malformed)
}

/// Decodes bytes of a known encoding; a byte-order mark overrides it. Valid UTF-8 is not copied.
/// Otherwise memory is reserved once, so that a growing buffer never exists next to its old copy.
pub(crate) fn decode_as<'a>(bytes: &'a [u8], encoding: &'static Encoding) -> (Cow<'a, str>, bool) {
    let (encoding, bytes) = match Encoding::for_bom(bytes) {
        Some((marked, n)) => (marked, &bytes[n..]),
        None => (encoding, bytes),
    };
    let is_utf8 = encoding == UTF_8 || encoding.is_ascii_compatible() && bytes.is_ascii();
    if is_utf8 {
        return match UTF_8.decode_without_bom_handling_and_without_replacement(bytes) {
            Some(text) => (text, false),
            None => (Cow::Owned(replaced(bytes)), true),
        };
    }
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let n_bytes = decoder.max_utf8_buffer_length(bytes.len());
    let n_bytes = n_bytes.expect("bytes in memory are fewer than a third of the addresses");
    let mut text = String::with_capacity(n_bytes);
    let (_, _, is_malformed) = decoder.decode_to_string(bytes, &mut text, true);
    (Cow::Owned(text), is_malformed)
}

/// UTF-8 with U+FFFD in place of malformed bytes.
fn replaced(bytes: &[u8]) -> String {
    let sign = |invalid: &[u8]| match invalid {
        [] => "",
        _ => "\u{fffd}",
    };
    let chunks = || bytes.utf8_chunks();
    let n_bytes = chunks().map(|chunk| chunk.valid().len() + sign(chunk.invalid()).len());
    let mut text = String::with_capacity(n_bytes.sum());
    for chunk in chunks() {
        text.push_str(chunk.valid());
        text.push_str(sign(chunk.invalid()));
    }
    text
}

/// The encoding of `bytes`, in the order given above.
pub fn choose(bytes: &[u8], http_charset: Option<&str>, markup: Markup) -> &'static Encoding {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return encoding;
    }
    let from_http = http_charset.and_then(|label| Encoding::for_label(label.trim().as_bytes()));
    if let Some(encoding) = from_http {
        return encoding;
    }
    let head = &bytes[..bytes.len().min(PRESCAN_BYTES)];
    let declared = match markup {
        Markup::Html => prescan(head).or_else(|| xml_declaration(head)),
        Markup::Xml => xml_declaration(head),
        Markup::None => None,
    };
    declared.unwrap_or_else(|| match std::str::from_utf8(bytes) {
        Ok(_) if !bytes.is_ascii() => UTF_8,
        Ok(_) | Err(_) => WINDOWS_1252,
    })
}

/// The charset parameter of a `Content-Type` value.
pub fn content_type_charset(value: &str) -> Option<&str> {
    let lower = value.to_ascii_lowercase();
    let after = lower.find("charset")? + "charset".len();
    let rest = value[after..].trim_start().strip_prefix('=')?.trim_start();
    let label = match rest.as_bytes().first()? {
        quote @ (b'"' | b'\'') => rest[1..].split(char::from(*quote)).next()?,
        _ => rest.split([';', ' ', '\t', ',']).next()?,
    };
    (!label.is_empty()).then_some(label)
}

/// The encoding that the first usable `<meta>` names.
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while at < head.len() {
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            // The closing dashes may overlap the opening ones: `<!-->` is a complete comment.
            at += 2 + memchr::memmem::find(&rest[2..], b"-->")? + 3;
        } else if starts_tag(rest, b"<meta") && is_tag_break(rest.get(5)) {
            let (attributes, used) = attributes(&rest[5..]);
            if let Some(encoding) = meta_encoding(&attributes) {
                return Some(encoding);
            }
            at += 5 + used;
        } else if is_tag_start(rest) {
            let name = rest
                .iter()
                .take_while(|&&b| !is_space(b) && b != b'>')
                .count();
            at += name + attributes(&rest[name..]).1;
        } else if matches!(rest, [b'<', b'!' | b'/' | b'?', ..]) {
            at += memchr::memchr(b'>', rest)? + 1;
        } else {
            at += 1;
        }
    }
    None
}

fn starts_tag(bytes: &[u8], tag: &[u8]) -> bool {
    bytes
        .get(..tag.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(tag))
}

fn is_tag_break(byte: Option<&u8>) -> bool {
    byte.is_some_and(|&b| is_space(b) || b == b'/')
}

fn is_tag_start(bytes: &[u8]) -> bool {
    match bytes {
        [b'<', b'/', letter, ..] | [b'<', letter, ..] => letter.is_ascii_alphabetic(),
        _ => false,
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ')
}

/// Name and value, in lower case.
type NameAndValue = (Vec<u8>, Vec<u8>);

/// The attributes up to the end of the tag, and the bytes they take.
fn attributes(bytes: &[u8]) -> (Vec<NameAndValue>, usize) {
    let mut list: Vec<NameAndValue> = Vec::new();
    let mut at = 0;
    while let Some((name, value, end)) = attribute(bytes, at) {
        at = end;
        if list.iter().all(|(known, _)| *known != name) {
            list.push((name, value));
        }
    }
    let rest = bytes.get(at..).unwrap_or_default();
    let used = rest
        .iter()
        .take_while(|&&b| is_space(b) || b == b'/')
        .count();
    let closes = rest.get(used) == Some(&b'>');
    (list, (at + used + usize::from(closes)).min(bytes.len()))
}

/// One attribute, starting at `at`: name, value, and where it ends. None at `>` or if it is
/// truncated.
fn attribute(bytes: &[u8], mut at: usize) -> Option<(Vec<u8>, Vec<u8>, usize)> {
    while is_space(*bytes.get(at)?) || bytes[at] == b'/' {
        at += 1;
    }
    if bytes[at] == b'>' {
        return None;
    }
    let start = at;
    while let b = *bytes.get(at)?
        && !(is_space(b) || matches!(b, b'/' | b'>') || (b == b'=' && at > start))
    {
        at += 1;
    }
    let name = bytes[start..at].to_ascii_lowercase();
    while is_space(*bytes.get(at)?) {
        at += 1;
    }
    if bytes[at] != b'=' {
        return Some((name, Vec::new(), at));
    }
    at += 1;
    while is_space(*bytes.get(at)?) {
        at += 1;
    }
    let (value, end) = attribute_value(bytes, at)?;
    Some((name, value, end))
}

fn attribute_value(bytes: &[u8], at: usize) -> Option<(Vec<u8>, usize)> {
    match *bytes.get(at)? {
        quote @ (b'"' | b'\'') => {
            let length = memchr::memchr(quote, &bytes[at + 1..])?;
            let value = bytes[at + 1..at + 1 + length].to_ascii_lowercase();
            Some((value, at + length + 2))
        }
        b'>' => Some((Vec::new(), at)),
        _ => {
            let rest = &bytes[at..];
            let length = rest.iter().position(|&b| is_space(b) || b == b'>')?;
            Some((rest[..length].to_ascii_lowercase(), at + length))
        }
    }
}

/// The encoding that one `<meta>` names; a pragma counts only with `http-equiv="content-type"`.
fn meta_encoding(attributes: &[NameAndValue]) -> Option<&'static Encoding> {
    let value = |name: &[u8]| {
        attributes
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, v)| &v[..])
    };
    let label = match value(b"charset") {
        Some(label) => label,
        None if value(b"http-equiv") == Some(b"content-type") => pragma_label(value(b"content")?)?,
        None => return None,
    };
    usable(Encoding::for_label(label)?)
}

/// The label in `text/html; charset=utf-8`.
fn pragma_label(content: &[u8]) -> Option<&[u8]> {
    let mut rest = content;
    loop {
        rest = &rest[memchr::memmem::find(rest, b"charset")? + "charset".len()..];
        let after = rest.trim_ascii_start();
        if let Some(label) = after.strip_prefix(b"=") {
            let label = label.trim_ascii_start();
            return match *label.first()? {
                quote @ (b'"' | b'\'') => {
                    let end = memchr::memchr(quote, &label[1..])?;
                    Some(&label[1..=end])
                }
                _ => label.split(|&b| is_space(b) || b == b';').next(),
            };
        }
    }
}

/// The encoding that a declaration readable as ASCII can mean, which cannot be UTF-16.
fn usable(encoding: &'static Encoding) -> Option<&'static Encoding> {
    Some(match encoding {
        e if e == UTF_16BE || e == UTF_16LE => UTF_8,
        e if e == X_USER_DEFINED => WINDOWS_1252,
        e => e,
    })
}

/// The encoding of `<?xml version="1.0" encoding="…"?>`.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let rest = head.strip_prefix(b"<?xml")?;
    let rest = &rest[..memchr::memchr(b'>', rest)?];
    let after = memchr::memmem::find(rest, b"encoding")? + "encoding".len();
    let value = rest[after..]
        .trim_ascii_start()
        .strip_prefix(b"=")?
        .trim_ascii_start();
    let quote = *value.first().filter(|b| matches!(b, b'"' | b'\''))?;
    let end = memchr::memchr(quote, &value[1..])?;
    usable(Encoding::for_label(&value[1..=end])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], http: Option<&str>, expected: &str) {
        assert_eq!(choose(bytes, http, Markup::Html).name(), expected);
    }

    #[test]
    fn order_of_evidence() {
        check(
            b"\xef\xbb\xbf<meta charset=iso-8859-2>",
            Some("koi8-r"),
            "UTF-8",
        );
        check(b"\xff\xfea\0", None, "UTF-16LE");
        check(b"<meta charset=iso-8859-2>", Some("koi8-r"), "KOI8-R");
        check(b"<meta charset=iso-8859-2>", Some("no such"), "ISO-8859-2");
        check(b"<meta charset=utf-16>", None, "UTF-8");
        check("é".as_bytes(), None, "UTF-8");
        check(b"\xe9", None, "windows-1252");
        check(b"plain", None, "windows-1252");
        check(b"<?xml version='1.0' encoding='koi8-r'?>", None, "KOI8-R");
    }

    #[test]
    fn the_prescan_ends_after_1024_bytes() {
        let mut page = vec![b' '; 1024 - 25];
        page.extend(b"<meta charset=iso-8859-2>");
        check(&page, None, "ISO-8859-2");
        page.insert(0, b' ');
        check(&page, None, "windows-1252");
    }

    #[test]
    fn comments_hide_and_attributes_are_not_tags() {
        check(
            b"<!-- <meta charset=koi8-r> --><meta charset=big5>",
            None,
            "Big5",
        );
        check(b"<!--><meta charset=koi8-r>", None, "KOI8-R");
        check(b"<p title='<meta charset=koi8-r>'>", None, "windows-1252");
        check(b"<meta content='a; charset=koi8-r'>", None, "windows-1252");
        check(
            b"<meta content='a; charset=koi8-r' http-equiv=Content-Type>",
            None,
            "KOI8-R",
        );
    }

    #[test]
    fn charset_parameter() {
        for (value, expected) in [
            ("text/html; charset=UTF-8", Some("UTF-8")),
            ("text/html;CHARSET = \"big5\" ; x", Some("big5")),
            ("text/html;charset='koi8-r'", Some("koi8-r")),
            ("text/html", None),
            ("text/html; charset=", None),
        ] {
            assert_eq!(content_type_charset(value), expected, "{value}");
        }
    }

    #[test]
    fn malformed_bytes_become_replacement_characters() {
        let (text, is_malformed) = decode(b"a\xffb", Some("utf-8"), Markup::None);
        assert_eq!((text.as_str(), is_malformed), ("a\u{fffd}b", true));
    }

    /// For all bytes and encodings, the text is that of `encoding_rs`.
    #[test]
    fn decoding_is_that_of_the_library() {
        let mut state = 1u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        for encoding in [
            "utf-8",
            "windows-1252",
            "iso-2022-jp",
            "gb18030",
            "big5",
            "shift_jis",
            "euc-kr",
            "euc-jp",
            "utf-16le",
            "utf-16be",
            "replacement",
            "koi8-r",
            "x-user-defined",
        ] {
            let encoding = Encoding::for_label_no_replacement(encoding.as_bytes())
                .unwrap_or(encoding_rs::REPLACEMENT);
            for n in 0..300 {
                let mut bytes: Vec<u8> = (0..n % 40).map(|_| byte()).collect();
                if n % 3 == 0 {
                    bytes.iter_mut().for_each(|b| *b &= 0x7f);
                }
                let mark: &[u8] = [&b""[..], b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"][n % 4];
                let bytes = [mark, &bytes].concat();
                let (expected, _, was_malformed) = encoding.decode(&bytes);
                let (text, is_malformed) = decode_as(&bytes, encoding);
                assert_eq!((text, is_malformed), (expected, was_malformed), "{bytes:?}");
            }
        }
    }
}
