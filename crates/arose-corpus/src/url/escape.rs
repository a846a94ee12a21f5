//! Normalization of percent escapes.
//!
//! RFC 3986 (section 2.3) says which escapes mean the same as the character itself: those of the
//! *unreserved* characters, which are letters, digits and `-._~`. They are decoded. All other
//! escapes change the meaning and are kept, with digits in upper case. A `%` that does not start an
//! escape is kept too.
//!
//! Decoding must not make a new escape out of such a stray `%`. In `%%37e`, the first `%` is stray
//! and `%37` is a `7`, but `%7e` would be read as `~` the next time. An escape whose decoding would
//! complete another one is left unchanged, so that a second pass changes nothing.

/// Appends `text` to `out` with every escape normalized.
pub fn push_normal(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = push_escape(&rest[at..], out);
    }
    out.extend_from_slice(rest);
}

/// Appends the escape or stray `%` at the start of `text`. Returns the rest.
fn push_escape<'t>(text: &'t [u8], out: &mut Vec<u8>) -> &'t [u8] {
    match value(text) {
        Some(byte) if is_unreserved(byte) && !completes_escape(out, byte) => {
            out.push(byte);
            &text[3..]
        }
        Some(byte) => {
            push_escaped(byte, out);
            &text[3..]
        }
        None => {
            out.push(b'%');
            &text[1..]
        }
    }
}

/// Appends `byte` as an escape.
pub fn push_escaped(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let [high, low] = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    out.extend_from_slice(&[b'%', high, low]);
}

/// The byte of the escape at the start of `text`.
fn value(text: &[u8]) -> Option<u8> {
    match text {
        [b'%', high, low, ..] => Some(digit(*high)? << 4 | digit(*low)?),
        _ => None,
    }
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Whether `byte`, appended to `out`, would be read as a digit of an escape. Complete escapes end
/// three bytes after their `%`, so a `%` among the last two bytes is stray.
fn completes_escape(out: &[u8], byte: u8) -> bool {
    let after_stray = match out {
        [.., b'%'] => true,
        [.., b'%', first] => first.is_ascii_hexdigit(),
        _ => false,
    };
    after_stray && byte.is_ascii_hexdigit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn normal(text: &str) -> String {
        let mut out = Vec::new();
        push_normal(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn unreserved_characters_are_decoded() {
        assert_eq!(normal("%7Esmith%2d%2E%5f%41%7a%30"), "~smith-._Az0");
    }

    #[test]
    fn other_escapes_stay_in_upper_case() {
        assert_eq!(normal("%2fa%c3%a9%20%3A"), "%2Fa%C3%A9%20%3A");
    }

    #[test]
    fn stray_percent_signs_stay() {
        assert_eq!(normal("100%"), "100%");
        assert_eq!(normal("%zz%4"), "%zz%4");
    }

    #[test]
    fn decoding_makes_no_new_escape() {
        assert_eq!(normal("%%37e"), "%%37e");
        assert_eq!(normal("%7%65"), "%7%65");
        assert_eq!(normal("%g%65"), "%ge");
    }

    proptest! {
        #[test]
        fn a_second_pass_changes_nothing(text in "[%0-9a-fA-F~g/]{0,24}") {
            let once = normal(&text);
            prop_assert_eq!(normal(&once), once);
        }
    }
}
