//! Parses responses into results, counts and texts.

use arose_corpus::charset::{Markup, content_type_charset, decode};
use arose_corpus::html::token::{TextKind, Token, Tokenizer};
use serde_json::Value;

use super::select::{Path, Scraped, scrape};

/// Paths of the results in a response.
#[derive(Debug, Clone)]
pub(super) enum Places {
    /// In JSON, by pointers; several are tried in order.
    Json {
        results: Pointers,
        address: Pointers,
        count: Option<Pointers>,
        text: Option<Pointers>,
        id: Option<Pointers>,
    },
    /// In HTML or XML, by paths.
    Html {
        results: Path,
        address: Path,
        count: Option<Path>,
        /// Text on a page without results.
        none: Option<String>,
    },
}

/// JSON pointers, of which the first that exists counts.
#[derive(Debug, Clone)]
pub(super) struct Pointers(Vec<String>);

impl Pointers {
    /// Parses `/a/b | /c`; an empty pointer is the value itself.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let pointers: Vec<String> = text.split('|').map(|part| part.trim().to_owned()).collect();
        match pointers
            .iter()
            .find(|part| !part.is_empty() && !part.starts_with('/'))
        {
            Some(part) => Err(format!("`{part}` is not a JSON pointer; start it with `/`")),
            None => Ok(Self(pointers)),
        }
    }

    pub(super) fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let found = self.0.iter().filter_map(|pointer| value.pointer(pointer));
        found.into_iter().find(|value| !value.is_null())
    }

    /// The value as text: lists are joined, numbers written out.
    pub(super) fn text(&self, value: &Value) -> Option<String> {
        text_of(self.find(value)?)
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().filter_map(text_of).collect();
            (!parts.is_empty()).then(|| parts.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    }
}

/// One result of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Item {
    pub(super) address: String,
    pub(super) id: Option<String>,
    pub(super) text: Option<String>,
}

/// The content of a response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Parsed {
    pub(super) claimed: Option<u64>,
    pub(super) items: Vec<Item>,
}

impl Places {
    /// Parses a response, or returns why it is invalid. A valid response has results or a count,
    /// unlike an error page with a success status.
    pub(super) fn read(&self, body: &str) -> Result<Parsed, String> {
        match self {
            Self::Json {
                results,
                address,
                count,
                text,
                id,
            } => {
                let value: Value = serde_json::from_str(body)
                    .map_err(|_| "the response is not JSON".to_owned())?;
                let claimed = count.as_ref().and_then(|count| count.text(&value));
                let claimed = claimed.as_deref().and_then(number_in);
                let Some(Value::Array(list)) = results.find(&value) else {
                    return Err("the response contains no list of results".to_owned());
                };
                let read = |pointers: &Option<Pointers>, item: &Value| {
                    pointers.as_ref().and_then(|pointers| pointers.text(item))
                };
                let items = list.iter().filter_map(|item| {
                    let id = read(id, item);
                    Some(Item {
                        address: address.text(item).or_else(|| id.clone())?,
                        text: read(text, item),
                        id,
                    })
                });
                Ok(Parsed {
                    claimed,
                    items: items.collect(),
                })
            }
            Self::Html {
                results,
                address,
                count,
                none,
            } => {
                let Scraped {
                    count,
                    results: addresses,
                } = scrape(body, results, address, count.as_ref());
                let claimed = count.as_deref().and_then(number_in);
                let says_none = none.as_ref().is_some_and(|none| body.contains(none));
                if addresses.is_empty() && claimed.is_none() && !says_none {
                    return Err("the response contains neither results nor a count".to_owned());
                }
                let items = addresses.into_iter().map(|address| Item {
                    address,
                    ..Item::default()
                });
                Ok(Parsed {
                    claimed: claimed.or(says_none.then_some(0)),
                    items: items.collect(),
                })
            }
        }
    }
}

/// The first number in a text, with thousands separators: `about 9,870,000 results`.
fn number_in(text: &str) -> Option<u64> {
    let start = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[start..];
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (mut digits, mut rest) = (rest[..end].to_owned(), &rest[end..]);
    // A separator counts only before exactly three digits.
    while let Some(mark) = rest.chars().next()
        && matches!(mark, ',' | '.' | '\'' | '\u{a0}' | '\u{202f}' | ' ')
    {
        let group = &rest[mark.len_utf8()..];
        let n = group.bytes().take_while(u8::is_ascii_digit).count();
        if n != 3 {
            break;
        }
        digits.push_str(&group[..3]);
        rest = &group[3..];
    }
    digits.parse().ok()
}

/// The text of a page or document of any format.
#[must_use]
pub fn page_text(body: &[u8], content_type: Option<&str>) -> String {
    let charset = content_type.and_then(content_type_charset);
    let is_plain = content_type.is_some_and(|kind| kind.starts_with("text/plain"));
    if is_plain {
        return decode(body, charset, Markup::None).0;
    }
    let (html, _) = decode(body, charset, Markup::Html);
    let mut text = String::new();
    let mut tokenizer = Tokenizer::new(&html);
    while let Some(token) = tokenizer.next_token() {
        match token {
            Token::Text(piece) if piece.kind != TextKind::Raw => text.push_str(&piece.decoded()),
            Token::Start(name) | Token::End(name) if name.tag.separates() => text.push('\n'),
            _ => {}
        }
    }
    text
}

/// The text of a response.
pub(super) fn body_text(body: &[u8], content_type: Option<&str>) -> String {
    let charset = content_type
        .and_then(content_type_charset)
        .or(Some("utf-8"));
    decode(body, charset, Markup::None).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_engines_write_them() {
        for (text, expected) in [
            ("1-3 of exactly 5 matches", Some(1)),
            ("about 9,870,000 results", Some(9_870_000)),
            ("1.234 Treffer", Some(1234)),
            ("1 234\u{a0}567", Some(1_234_567)),
            ("12, 345", Some(12)),
            ("1,2345", Some(1)),
            ("none", None),
            ("99999999999999999999999", None),
        ] {
            assert_eq!(number_in(text), expected, "{text}");
        }
    }

    #[test]
    fn pages_become_texts() {
        let html = b"<title>A &amp; b</title><script>no</script><p>one<p>tw<b>o</b>";
        let words = arose_search::words::words(&page_text(html, Some("text/html")));
        assert_eq!(words, ["a", "b", "one", "two"]);
        let plain = page_text("<p>é".as_bytes(), Some("text/plain; charset=utf-8"));
        assert_eq!(plain, "<p>é");
    }

    #[test]
    fn an_error_page_is_no_answer() {
        let places = Places::Html {
            results: "li".parse().unwrap(),
            address: "a@href".parse().unwrap(),
            count: Some("#n".parse().unwrap()),
            none: Some("Nothing found".to_owned()),
        };
        assert!(places.read("<h1>Internal error</h1>").is_err());
        assert_eq!(
            places.read("<h1>Nothing found</h1>").unwrap().claimed,
            Some(0)
        );
        assert_eq!(places.read("<p id=n>7</p>").unwrap().claimed, Some(7));
    }
}
