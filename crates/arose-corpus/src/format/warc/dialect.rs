//! The header formats of WARC and ARC.

use memchr::{memchr, memchr_iter, memrchr};

use crate::body::headers::{Headers, to_text};
use crate::document::{DuplicateBody, Original};
use crate::output::revisit::NEAR_DUPLICATE;
use crate::time;

/// Number of bytes needed to recognize the start of a record; a longer first line is not a start.
pub(crate) const START_BYTES: usize = 4096;

/// The two formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Warc,
    Arc,
}

/// The header of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// `response`, `request`, …; ARC has only `response` and `filedesc`.
    pub(crate) kind: String,
    /// Length of the block in bytes.
    pub(crate) length: u64,
    pub(crate) id: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) fetched: Option<i64>,
    pub(crate) content_type: Option<String>,
    pub(crate) language: Option<String>,
    /// Why the archiver stored less than the complete body.
    pub(crate) truncated: Option<String>,
    /// The page that this one duplicates.
    pub(crate) duplicate_of: Option<Box<Original>>,
}

/// The state of a header at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// The header is complete and takes this many bytes.
    Head(usize, Box<Head>),
    /// The header does not end within the bytes.
    Open,
    /// The header takes this many bytes and is unusable.
    Bad(usize, String),
}

impl Dialect {
    /// Detects the format from the first bytes of a stream.
    pub(crate) fn sniff(start: &[u8]) -> Option<Self> {
        let start = start.trim_ascii_start();
        if is_warc_version(start) {
            return Some(Dialect::Warc);
        }
        start.starts_with(b"filedesc:").then_some(Dialect::Arc)
    }

    /// Whether a record starts here. `bytes` must contain [`START_BYTES`] bytes, or all bytes to
    /// the end of the input.
    pub(crate) fn is_start(self, bytes: &[u8]) -> bool {
        let bytes = &bytes[..bytes.len().min(START_BYTES)];
        match self {
            Dialect::Warc => is_warc_version(bytes),
            Dialect::Arc => {
                let line = &bytes[..memchr(b'\n', bytes).unwrap_or(bytes.len())];
                ArcLine::parse(line).is_some()
            }
        }
    }

    /// The first position after a line end at which a record starts.
    pub(crate) fn find_start(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Dialect::Warc => memchr::memmem::find_iter(bytes, b"\nWARC/")
                .map(|i| i + 1)
                .find(|&i| is_warc_version(&bytes[i..])),
            Dialect::Arc => memchr_iter(b'\n', bytes)
                .map(|i| i + 1)
                .find(|&i| self.is_start(&bytes[i..])),
        }
    }

    /// Reads the header at the start of `bytes`.
    pub(crate) fn parse(self, bytes: &[u8]) -> Parsed {
        match self {
            Dialect::Warc => parse_warc(bytes),
            Dialect::Arc => parse_arc(bytes),
        }
    }
}

/// `WARC/1.0` or similar, with its line end.
fn is_warc_version(bytes: &[u8]) -> bool {
    match bytes.strip_prefix(b"WARC/") {
        Some([b'0'..=b'9', b'.', b'0'..=b'9', rest @ ..]) => {
            matches!(rest.first(), None | Some(b'\r' | b'\n' | b' '))
        }
        _ => false,
    }
}

/// How the header at the start of some bytes ends.
enum End {
    /// With a blank line, before this byte.
    Blank(usize),
    /// Another record starts at this byte: the header was truncated.
    Start(usize),
}

fn end_of_warc_header(bytes: &[u8]) -> Option<End> {
    memchr_iter(b'\n', bytes).find_map(|end| match bytes.get(end + 1..)? {
        [b'\n', ..] => Some(End::Blank(end + 2)),
        [b'\r', b'\n', ..] => Some(End::Blank(end + 3)),
        rest => is_warc_version(rest).then_some(End::Start(end + 1)),
    })
}

fn parse_warc(bytes: &[u8]) -> Parsed {
    let end = match end_of_warc_header(bytes) {
        Some(End::Blank(end)) => end,
        Some(End::Start(start)) => {
            return Parsed::Bad(start, "the next record starts inside the header".to_owned());
        }
        None => return Parsed::Open,
    };
    let first_line = memchr(b'\n', bytes).map_or(0, |i| i + 1);
    let headers = Headers::parse(&bytes[first_line..end]);
    let text = |name: &str| headers.get(name).map(str::to_owned);
    let length = headers.get("content-length").map(str::parse);
    let Some(Ok(length)) = length else {
        let value = headers.get("content-length").unwrap_or("none");
        return Parsed::Bad(end, format!("content length: {value}"));
    };
    let brackets: &[char] = &['<', '>'];
    Parsed::Head(
        end,
        Box::new(Head {
            kind: headers
                .get("warc-type")
                .unwrap_or_default()
                .to_ascii_lowercase(),
            length,
            id: headers
                .get("warc-record-id")
                .map(|id| id.trim_matches(brackets).to_owned()),
            url: headers
                .get("warc-target-uri")
                .map(|url| url.trim_matches(brackets).to_owned()),
            fetched: headers.get("warc-date").and_then(time::parse),
            content_type: text("content-type"),
            language: text("warc-identified-content-language"),
            truncated: text("warc-truncated"),
            duplicate_of: duplicate_of(&headers).map(Box::new),
        }),
    )
}

/// The page that a record declares as its original. Revisit records use the fields of the standard,
/// other records those of `arose crawl`.
fn duplicate_of(headers: &Headers) -> Option<Original> {
    let is_revisit = headers
        .get("warc-type")
        .is_some_and(|kind| kind.eq_ignore_ascii_case("revisit"));
    let (url, date, body) = match is_revisit {
        true => (
            "warc-refers-to-target-uri",
            "warc-refers-to-date",
            revisited_body(headers.get("warc-profile")?)?,
        ),
        false => (
            "arose-duplicate-of",
            "arose-duplicate-of-date",
            DuplicateBody::Stored,
        ),
    };
    Some(Original {
        url: headers
            .get(url)?
            .trim_matches(&['<', '>'] as &[char])
            .to_owned(),
        fetched: headers.get(date).and_then(time::parse),
        body,
    })
}

/// The body that a revisit record of this profile implies; none for unknown profiles.
fn revisited_body(profile: &str) -> Option<DuplicateBody> {
    let names = [
        "/revisit/identical-payload-digest",
        "/revisit/server-not-modified",
    ];
    if names.iter().any(|name| profile.ends_with(name)) {
        return Some(DuplicateBody::Same);
    }
    (profile == NEAR_DUPLICATE).then_some(DuplicateBody::Dropped)
}

fn parse_arc(bytes: &[u8]) -> Parsed {
    let Some(end) = memchr(b'\n', bytes) else {
        return Parsed::Open;
    };
    let Some(line) = ArcLine::parse(&bytes[..end]) else {
        return Parsed::Bad(end + 1, "no ARC header".to_owned());
    };
    let Some(length) = to_text(line.length).parse().ok() else {
        return Parsed::Bad(end + 1, format!("archive length: {}", to_text(line.length)));
    };
    let is_file = line.url.starts_with(b"filedesc:");
    Parsed::Head(
        end + 1,
        Box::new(Head {
            kind: if is_file { "filedesc" } else { "response" }.to_owned(),
            length,
            id: None,
            url: Some(to_text(line.url)),
            fetched: time::parse(&to_text(line.date)),
            content_type: Some(to_text(line.content_type)),
            language: None,
            truncated: None,
            duplicate_of: None,
        }),
    )
}

/// `URL IP date type length`, or in version 2 with five more fields before the length. URLs may
/// contain spaces, so the line is read from its end.
struct ArcLine<'a> {
    url: &'a [u8],
    date: &'a [u8],
    content_type: &'a [u8],
    length: &'a [u8],
}

impl<'a> ArcLine<'a> {
    fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.trim_ascii_end();
        // Most lines of a page are not headers; a header has a scheme and ends with its length.
        let colon = memchr(b':', &line[..line.len().min(16)])?;
        if !line[..colon].iter().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let (rest, length) = last_word(line)?;
        Self::with_type(rest, length).or_else(|| {
            // Result code, checksum, location, offset and file name of version 2.
            let rest = (0..5).try_fold(rest, |rest, _| Some(last_word(rest)?.0))?;
            Self::with_type(rest, length)
        })
    }

    fn with_type(rest: &'a [u8], length: &'a [u8]) -> Option<Self> {
        let (rest, content_type) = last_word(rest)?;
        let (rest, date) = last_word(rest)?;
        let (url, ip) = last_word(rest)?;
        let is_date = date.len() >= 8 && date.iter().all(u8::is_ascii_digit);
        let is_ip = ip
            .iter()
            .all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b':'));
        (is_date && is_ip && !url.is_empty()).then_some(Self {
            url,
            date,
            content_type,
            length,
        })
    }
}

/// Splits off the word after the last space.
fn last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memrchr(b' ', line)?;
    let (rest, word) = (&line[..space], &line[space + 1..]);
    (!word.is_empty()).then_some((rest, word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(dialect: Dialect, bytes: &[u8]) -> Head {
        match dialect.parse(bytes) {
            Parsed::Head(_, head) => *head,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn warc_header() {
        let bytes = b"WARC/1.1\r\nWARC-Type: Response\r\nContent-Length: 12\r\nWARC-Target-URI: <http://x/>\r\n\
                      WARC-Date: 1970-01-01T00:00:09Z\r\n\r\nblock";
        let head = head(Dialect::Warc, bytes);
        assert_eq!((head.kind.as_str(), head.length), ("response", 12));
        assert_eq!(
            (head.url.as_deref(), head.fetched),
            (Some("http://x/"), Some(9))
        );
        assert_eq!(Dialect::Warc.parse(&bytes[..40]), Parsed::Open);
        let bad = b"WARC/1.0\r\nContent-Length: -5\r\n\r\n";
        assert!(matches!(Dialect::Warc.parse(bad), Parsed::Bad(32, _)));
    }

    #[test]
    fn arc_lines() {
        let head = head(
            Dialect::Arc,
            b"http://x/a b 1.2.3.4 20080430204825 text/html 7\nblock",
        );
        assert_eq!(
            (head.url.as_deref(), head.length),
            (Some("http://x/a b"), 7)
        );
        let version_2 = b"http://x/ 1.2.3.4 20080430204825 text/html 200 - - 0 a.arc 9\n";
        assert_eq!(self::head(Dialect::Arc, version_2).length, 9);
        for line in [
            &b"http://x/ 1.2.3.4 2008 text/html 7"[..],
            b"a b c d e",
            b"",
            b"Date: Wed, 30 Apr 2008",
        ] {
            assert!(!Dialect::Arc.is_start(line));
        }
    }

    #[test]
    fn starts() {
        assert_eq!(
            Dialect::Warc.find_start(b"WARC/1.0\r\nx\nWARC/x\nWARC/1.1\r\n"),
            Some(19)
        );
        assert_eq!(Dialect::Warc.find_start(b"x WARC/1.0\r\n"), None);
        let arc = b"x\nhttp://x/ 1.2.3.4 20080430204825 text/html abc\n";
        assert_eq!(Dialect::Arc.find_start(arc), Some(2));
    }
}
