//! Escaping of foreign text in a page.
//!
//! All text that does not come from this crate is written through [`Text`], or through [`Plain`]
//! where markup is not allowed. Invisible characters that would change the display of the text
//! around them are shown by their numbers: controls, directional marks, invisible separators.

use std::fmt::{self, Write};

/// Text as the content of an element.
#[derive(Debug, Clone, Copy)]
pub struct Text<'a>(pub &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, |f, c| write!(f, "<i>U+{:04X}</i>", u32::from(c)))
    }
}

/// Text as the value of an attribute or a title.
#[derive(Debug, Clone, Copy)]
pub struct Plain<'a>(pub &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, self.0, |f, _| f.write_char('\u{FFFD}'))
    }
}

/// Writes text with markup characters escaped and calls `hidden` for hidden characters. All text
/// between them is written unchanged, a stretch at a time.
fn escape(
    f: &mut fmt::Formatter<'_>,
    text: &str,
    hidden: impl Fn(&mut fmt::Formatter<'_>, char) -> fmt::Result,
) -> fmt::Result {
    let mut start = 0;
    for (at, c) in text.char_indices() {
        let escaped = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            '"' => "&quot;",
            '\'' => "&#39;",
            c if is_hidden(c) => "",
            _ => continue,
        };
        f.write_str(&text[start..at])?;
        match escaped {
            "" => hidden(f, c)?,
            escaped => f.write_str(escaped)?,
        }
        start = at + c.len_utf8();
    }
    f.write_str(&text[start..])
}

/// Returns whether a character is a control except whitespace, a directional mark, or a separator
/// without width or meaning. Joiners, which many scripts need, are not hidden.
fn is_hidden(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{61C}' | '\u{180E}' | '\u{200B}' | '\u{200E}' | '\u{200F}' | '\u{FEFF}' => true,
        '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}' => true,
        _ => c.is_control(),
    }
}

/// Returns a text of at most `max` characters, without its middle if it is longer.
#[must_use]
pub fn clip(text: &str, max: usize) -> String {
    let (mut head, tail) = (2 * max / 3, max / 3);
    if text.len() <= max || text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    head = head.max(1);
    let from_end = text.char_indices().rev().nth(tail.saturating_sub(1));
    let start = from_end.map_or(0, |(at, _)| at);
    let head: String = text.chars().take(head).collect();
    format!("{head}…{}", &text[start..])
}

/// Returns a URL to link to; none if it is not a web URL.
#[must_use]
pub fn web_address(url: &str) -> Option<&str> {
    let is_scheme = |scheme: &str| {
        let head = url.get(..scheme.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(scheme))
    };
    ["http://", "https://"]
        .into_iter()
        .any(is_scheme)
        .then_some(url)
}

/// A count with thousands separators.
#[derive(Debug, Clone, Copy)]
pub struct Count(pub u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::new();
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// Returns a count with its noun.
#[must_use]
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", Count(n), if n == 1 { one } else { many })
}

/// A part of a whole, to a tenth of a percent; never rounded to all or nothing.
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    let tenths = 1000.0 * part as f64 / whole.max(1) as f64;
    match tenths {
        _ if part == 0 => "0%".to_owned(),
        _ if part == whole => "100%".to_owned(),
        ..1.0 => "< 0.1%".to_owned(),
        999.0.. => "> 99.9%".to_owned(),
        _ => format!("{:.1}%", tenths / 10.0),
    }
}

/// A size in bytes, to about three digits.
#[must_use]
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    let mut size = n as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if size < 1000.0 {
            break;
        }
        size /= 1000.0;
        unit = next;
    }
    match (unit, size) {
        ("bytes", _) => counted(n, "byte", "bytes"),
        (_, ..9.95) => format!("{size:.1} {unit}"),
        _ => format!("{size:.0} {unit}"),
    }
}

/// A length of time.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    match seconds {
        ..0.0995 => format!("{:.0} ms", seconds.max(0.0) * 1000.0),
        ..9.95 => format!("{seconds:.1} s"),
        ..99.5 => format!("{seconds:.0} s"),
        ..5970.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hostile_text_is_shown() {
        let text = "<script>alert('1')</script> & \"\u{202e}\0\u{7f}\u{200f}";
        assert_eq!(
            Text(text).to_string(),
            "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; &quot;\
             <i>U+202E</i><i>U+0000</i><i>U+007F</i><i>U+200F</i>"
        );
        assert_eq!(Plain("a\u{202e}\"b").to_string(), "a\u{FFFD}&quot;b");
        // Joiners are parts of words.
        assert_eq!(Text("می\u{200c}خواهم").to_string(), "می\u{200c}خواهم");
    }

    proptest! {
        #[test]
        fn no_markup_gets_through(text in any::<String>()) {
            let shown = Text(&text).to_string().replace("<i>U+", "").replace("</i>", "");
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
            prop_assert!(!Plain(&text).to_string().contains(['<', '>', '"', '\'']));
        }

        #[test]
        fn clipped_texts_are_short(text in any::<String>(), max in 3_usize..20) {
            let clipped = clip(&text, max);
            prop_assert!(clipped.chars().count() <= max + 1);
            prop_assert_eq!(clipped == text, text.chars().count() <= max);
        }
    }

    #[test]
    fn numbers_for_people() {
        let counts = [0, 999, 1000, 1_234_567].map(|n| Count(n).to_string());
        assert_eq!(counts, ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(counted(1, "pair", "pairs"), "1 pair");
        let shares = [(0, 0), (1, 3), (3, 3), (1, 5000), (4999, 5000)];
        let shares = shares.map(|(part, whole)| percent(part, whole));
        assert_eq!(shares, ["0%", "33.3%", "100%", "< 0.1%", "> 99.9%"]);
        let sizes = [1, 999, 1500, 99_900_000, 2_000_000_000].map(bytes);
        assert_eq!(sizes, ["1 byte", "999 bytes", "1.5 kB", "100 MB", "2.0 GB"]);
        let times = [0.0, 0.05, 1.0, 60.0, 600.0, 7200.0].map(seconds);
        assert_eq!(times, ["0 ms", "50 ms", "1.0 s", "60 s", "10 min", "2.0 h"]);
    }

    #[test]
    fn only_web_addresses_are_followed() {
        assert!(web_address("HTTPS://example.com").is_some());
        for url in [
            "javascript:alert(1)",
            " http://x",
            "data:text/html,x",
            "http:/x",
            "日本",
        ] {
            assert_eq!(web_address(url), None, "{url}");
        }
    }
}
