//! Tolerant parsing of `Name: value` lines in WARC and HTTP headers.
//!
//! Lines end with CRLF or LF, folded lines are joined, and lines without a colon are dropped. Names
//! are compared without case. Values that are not UTF-8 are read as Latin-1, so that no byte is
//! lost.

/// The fields of one header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in bytes.split(|&b| b == b'\n') {
            if fields.len() == MAX_FIELDS {
                break;
            }
            let text = to_text(line.trim_ascii_end());
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                if let Some((_, value)) = fields.last_mut() {
                    fold(value, text.trim());
                }
            } else if let Some((name, value)) = text.split_once(':') {
                fields.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        Self(fields)
    }

    /// The value of the first field with this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The values of all fields with this name.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let fields = self.0.iter();
        let same = fields.filter(move |(known, _)| known.eq_ignore_ascii_case(name));
        same.map(|(_, value)| value.as_str())
    }
}

/// Maximum number of fields that are read; servers and archivers write a few dozen.
const MAX_FIELDS: usize = 8192;

/// Appends a folded line in place. Copying the value for each line would be quadratic.
fn fold(value: &mut String, line: &str) {
    if !value.is_empty() && !line.is_empty() {
        value.push(' ');
    }
    value.push_str(line);
}

/// The end of the header that starts at 0: the index after its blank line.
pub(crate) fn end_of_header(bytes: &[u8]) -> Option<usize> {
    let mut lines = memchr::memchr_iter(b'\n', bytes);
    lines.find_map(|end| match bytes.get(end + 1..)? {
        [b'\n', ..] => Some(end + 2),
        [b'\r', b'\n', ..] => Some(end + 3),
        _ => None,
    })
}

pub(crate) fn to_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&b| char::from(b)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgiving() {
        let headers =
            Headers::parse(b"A: 1\r\nb :2\nnonsense\n  \nC:\r\n x\r\n\ty\r\nA: 3\nD: \xe9\n\n");
        assert_eq!(headers.get("a"), Some("1"));
        assert_eq!(headers.all("A").collect::<Vec<_>>(), ["1", "3"]);
        assert_eq!(headers.get("B"), Some("2"));
        assert_eq!(headers.get("c"), Some("x y"));
        assert_eq!(headers.get("d"), Some("é"));
        assert_eq!(headers.get("e"), None);
    }

    #[test]
    fn header_ends_at_the_first_blank_line() {
        assert_eq!(end_of_header(b"a: b\r\n\r\nbody\n\n"), Some(8));
        assert_eq!(end_of_header(b"a: b\n\nbody"), Some(6));
        assert_eq!(end_of_header(b"a: b\r\n"), None);
        assert_eq!(end_of_header(b""), None);
    }
}
