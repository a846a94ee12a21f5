//! Rules: parts of URLs that may not matter.
//!
//! Every rule removes something, so a URL only becomes shorter, and no set of rules can loop.

use std::fmt;
use std::str::FromStr;

/// A part of a URL that may not select the page.
///
/// The text form, which [`Display`](fmt::Display) writes and [`FromStr`] reads, is a word and, for
/// most rules, what it is about: `parameter sid`, `path-parameter jsessionid`,
/// `segment S- 13 mixed`, `index index.html`, `word print`, `slash`, `www`, `https`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A parameter of the query: `sid=…`.
    Parameter(String),
    /// A parameter in the path: `;jsessionid=…`.
    PathParameter(String),
    /// A segment of the path that looks like a session ID.
    Segment(Class),
    /// The name of a directory's page: `index.html` at the end of the path.
    Index(String),
    /// A segment of the path that selects a view, such as `print`.
    Word(String),
    /// A slash at the end of the path.
    Slash,
    /// `www.` before the host.
    Www,
    /// `https` where `http` has the same.
    Https,
}

/// What session IDs in paths have in common: how they begin, how long they are, and their
/// characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// The beginning, up to the first `-` or `_` if it is among the first four characters.
    pub prefix: String,
    /// Characters in all.
    pub length: usize,
    /// Which characters follow the prefix.
    pub alphabet: Alphabet,
}

/// Characters of a session ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Alphabet {
    /// Digits and the letters a to f.
    Hex,
    /// Digits and lower-case letters, or digits and upper-case letters.
    Single,
    /// Digits and letters of both cases.
    Mixed,
}

const ALPHABETS: [(Alphabet, &str); 3] = [
    (Alphabet::Hex, "hex"),
    (Alphabet::Single, "single"),
    (Alphabet::Mixed, "mixed"),
];

/// Names of pages that a server also gives for their directory.
const INDEX_NAMES: [&str; 8] = [
    "index.html",
    "index.htm",
    "index.php",
    "index.jsp",
    "index.asp",
    "default.aspx",
    "default.asp",
    "default.htm",
];

/// Segments that select a view of a page.
const VIEW_WORDS: [&str; 4] = ["amp", "print", "printable", "printer"];

/// Candidates of one URL, at most.
const MAX_CANDIDATES: usize = 24;

/// Shorter segments are not session IDs.
const MIN_SEGMENT: usize = 8;

/// A URL in its parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    scheme: &'a str,
    host: &'a str,
    path: &'a str,
    query: Option<&'a str>,
}

impl<'a> Parts<'a> {
    pub(super) fn of(url: &'a str) -> Option<Self> {
        let (scheme, after) = url.split_once("://")?;
        let slash = after.find('/')?;
        let (host, rest) = after.split_at(slash);
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (rest, None),
        };
        Some(Self {
            scheme,
            host,
            path,
            query,
        })
    }

    /// The host, with its twin with `www.` counted as the same.
    pub(super) fn site(&self) -> &'a str {
        self.host.strip_prefix("www.").unwrap_or(self.host)
    }

    /// The site and the path with variable segments as `*`: pages that one program makes.
    pub(super) fn template(&self) -> String {
        let mut text = self.site().to_owned();
        let mut segments = self.path[1..].split('/').peekable();
        while let Some(segment) = segments.next() {
            let segment = segment.split(';').next().unwrap_or_default();
            let is_last = segments.peek().is_none();
            let is_program = is_last && is_program(segment);
            let is_word = segment.len() <= 20 && !segment.bytes().any(|b| b.is_ascii_digit());
            text.push('/');
            text.push_str(match is_program || (is_word && !is_last) {
                true => segment,
                false => "*",
            });
        }
        text
    }

    /// The path without session IDs: what every rule leaves.
    pub(super) fn skeleton(&self) -> String {
        let mut text = self.site().to_owned();
        for segment in self.path[1..].split('/') {
            let own = segment.split(';').next().unwrap_or_default();
            if Class::of(own).is_none() {
                text.push('/');
                text.push_str(own);
            }
        }
        text
    }

    fn text(&self) -> String {
        let mut text = format!("{}://{}{}", self.scheme, self.host, self.path);
        if let Some(query) = self.query {
            text.push('?');
            text.push_str(query);
        }
        text
    }
}

/// Whether a last segment names a program rather than a page.
fn is_program(segment: &str) -> bool {
    let end = segment.rsplit_once('.').map_or("", |(_, end)| end);
    let programs = [
        "php", "asp", "aspx", "jsp", "cgi", "do", "pl", "py", "cfm", "dll", "exe",
    ];
    programs.contains(&end) && !segment.bytes().any(|b| b.is_ascii_digit())
}

impl Rule {
    /// The rules that would change a URL.
    #[must_use]
    pub fn candidates(url: &str) -> Vec<Self> {
        let Some(parts) = Parts::of(url) else {
            return Vec::new();
        };
        let mut rules = Vec::new();
        for parameter in parts.query.into_iter().flat_map(|query| query.split('&')) {
            if let Some((name, _)) = parameter.split_once('=') {
                rules.push(Self::Parameter(name.to_owned()));
            }
        }
        let segments = parts.path[1..].split('/');
        for segment in segments {
            let (own, parameters) = segment.split_once(';').unwrap_or((segment, ""));
            let names = parameters.split(';').filter_map(|one| one.split_once('='));
            rules.extend(names.map(|(name, _)| Self::PathParameter(name.to_owned())));
            rules.extend(Class::of(own).map(Self::Segment));
            if VIEW_WORDS.contains(&own) {
                rules.push(Self::Word(own.to_owned()));
            }
        }
        let last = parts.path.rsplit('/').next().unwrap_or_default();
        if INDEX_NAMES.contains(&last) {
            rules.push(Self::Index(last.to_owned()));
        }
        let others = [Self::Slash, Self::Www, Self::Https];
        rules.extend(others.into_iter().filter(|rule| rule.apply(url).is_some()));
        rules.sort();
        rules.dedup();
        rules.truncate(MAX_CANDIDATES);
        rules
    }

    /// The URL without the part; none if it has no such part.
    #[must_use]
    pub fn apply(&self, url: &str) -> Option<String> {
        let parts = Parts::of(url)?;
        match self {
            Self::Parameter(name) => without_parameter(&parts, name),
            Self::PathParameter(name) => without_path_parameter(&parts, name),
            Self::Segment(class) => without_segment(&parts, |segment| {
                segment.len() == class.length && Class::of(segment).as_ref() == Some(class)
            }),
            Self::Word(word) => without_segment(&parts, |segment| segment == word),
            Self::Index(name) => {
                let path = parts.path.strip_suffix(name.as_str())?;
                path.ends_with('/').then(|| Parts { path, ..parts }.text())
            }
            Self::Slash => {
                let path = parts.path.strip_suffix('/')?;
                (!path.is_empty()).then(|| Parts { path, ..parts }.text())
            }
            Self::Www => {
                let host = parts.host.strip_prefix("www.")?;
                host.contains('.').then(|| Parts { host, ..parts }.text())
            }
            Self::Https => (parts.scheme == "https").then(|| {
                let scheme = "http";
                Parts { scheme, ..parts }.text()
            }),
        }
    }

    /// The value that a URL has in this part, for rules whose values differ.
    pub(super) fn value<'a>(&self, url: &'a str) -> Option<&'a str> {
        let parts = Parts::of(url)?;
        let of = |text: &'a str, separator: char, name: &str| {
            let mut all = text.split(separator).filter_map(|one| one.split_once('='));
            all.find(|&(found, _)| found == name)
                .map(|(_, value)| value)
        };
        match self {
            Self::Parameter(name) => of(parts.query?, '&', name),
            Self::PathParameter(name) => {
                let mut segments = parts.path.split('/');
                segments.find_map(|segment| of(segment, ';', name))
            }
            Self::Segment(class) => {
                let mut segments = parts.path.split('/');
                segments.find(|segment| Class::of(segment).as_ref() == Some(class))
            }
            _ => None,
        }
    }

    /// Whether requests may be spent on it: only parts that have values of their own.
    pub(super) fn may_probe(&self) -> bool {
        matches!(
            self,
            Self::Parameter(_) | Self::PathParameter(_) | Self::Segment(_)
        )
    }

    /// Whether the name alone tells that it is a session ID or a mark of a campaign.
    #[must_use]
    pub fn is_known(&self) -> bool {
        match self {
            Self::Parameter(name) | Self::PathParameter(name) => is_known_name(name),
            _ => false,
        }
    }

    /// The name as an order: shorter ones first.
    pub(super) fn order(&self) -> (usize, String) {
        let text = self.to_string();
        (text.len(), text)
    }
}

/// Names that carry a session or a mark of a campaign and nothing else. Case does not matter.
const KNOWN_NAMES: [&str; 24] = [
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "cfid",
    "cftoken",
    "dclid",
    "fbclid",
    "gbraid",
    "gclid",
    "gclsrc",
    "igshid",
    "jsessionid",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "oscsid",
    "phpsessid",
    "twclid",
    "vero_id",
    "wbraid",
    "yclid",
    "zenid",
];

/// Beginnings of such names.
const KNOWN_PREFIXES: [&str; 3] = ["aspsessionid", "pk_campaign", "utm_"];

/// Whether a parameter of this name is known to carry a session or a mark of a campaign and nothing
/// else: a name that frameworks choose, not authors of pages. Names that sometimes select a page,
/// such as `sid`, `ref` or `session`, are not known.
#[must_use]
pub fn is_known_name(name: &str) -> bool {
    let is_prefix = |prefix: &&str| {
        let start = name.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    let is_name = |known: &&str| name.eq_ignore_ascii_case(known);
    KNOWN_NAMES.iter().any(is_name) || KNOWN_PREFIXES.iter().any(is_prefix)
}

impl Class {
    /// The class of a segment, if it looks like a session ID: long, of letters and digits.
    #[must_use]
    pub fn of(segment: &str) -> Option<Self> {
        let is_sign = |byte: &u8| matches!(byte, b'-' | b'_');
        let start = segment.bytes().take(4).position(|byte| is_sign(&byte));
        let (prefix, id) = segment.split_at(start.map_or(0, |at| at + 1));
        if segment.len() < MIN_SEGMENT || !id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            return None;
        }
        let has = |test: fn(&u8) -> bool| id.as_bytes().iter().any(test);
        let has_digit = has(u8::is_ascii_digit);
        let (has_lower, has_upper) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
        let alphabet = match (has_lower, has_upper) {
            (false, false) => return None,
            (true, true) => Alphabet::Mixed,
            _ if !has_digit => return None,
            _ if id.bytes().all(|b| b.is_ascii_hexdigit()) => Alphabet::Hex,
            _ => Alphabet::Single,
        };
        Some(Self {
            prefix: prefix.to_owned(),
            length: segment.len(),
            alphabet,
        })
    }
}

fn without_parameter(parts: &Parts<'_>, name: &str) -> Option<String> {
    let query = parts.query?;
    let is_it = |one: &&str| one.split_once('=').is_some_and(|(found, _)| found == name);
    if !query.split('&').any(|one| is_it(&one)) {
        return None;
    }
    let kept: Vec<&str> = query.split('&').filter(|one| !is_it(one)).collect();
    let kept = kept.join("&");
    let query = (!kept.is_empty()).then_some(kept.as_str());
    Some(Parts { query, ..*parts }.text())
}

fn without_path_parameter(parts: &Parts<'_>, name: &str) -> Option<String> {
    let is_it = |one: &&str| one.split_once('=').is_some_and(|(found, _)| found == name);
    let clean = |segment: &str| {
        let mut pieces = segment.split(';');
        let own = pieces.next().unwrap_or_default();
        let kept = pieces.filter(|one| !is_it(one));
        std::iter::once(own)
            .chain(kept)
            .collect::<Vec<_>>()
            .join(";")
    };
    let segments: Vec<String> = parts.path.split('/').map(clean).collect();
    let path = segments.join("/");
    // A dot segment would mean something else.
    let is_sound = path.len() < parts.path.len()
        && !segments
            .iter()
            .any(|segment| matches!(&segment[..], "." | ".."));
    is_sound.then(|| {
        Parts {
            path: &path,
            ..*parts
        }
        .text()
    })
}

/// Removes the first segment that fits, unless it is the only one.
fn without_segment(parts: &Parts<'_>, fits: impl Fn(&str) -> bool) -> Option<String> {
    let segments: Vec<&str> = parts.path[1..].split('/').collect();
    let at = segments.iter().position(|segment| fits(segment))?;
    if segments.len() < 2 {
        return None;
    }
    let kept = segments[..at].iter().chain(&segments[at + 1..]);
    let kept: Vec<&str> = kept.copied().collect();
    let path = format!("/{}", kept.join("/"));
    Some(
        Parts {
            path: &path,
            ..*parts
        }
        .text(),
    )
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parameter(name) => write!(f, "parameter {name}"),
            Self::PathParameter(name) => write!(f, "path-parameter {name}"),
            Self::Segment(class) => {
                let alphabet = ALPHABETS.iter().find(|(one, _)| *one == class.alphabet);
                let alphabet = alphabet.map_or("", |(_, name)| name);
                let prefix = if class.prefix.is_empty() {
                    "*"
                } else {
                    &class.prefix
                };
                write!(f, "segment {prefix} {} {alphabet}", class.length)
            }
            Self::Index(name) => write!(f, "index {name}"),
            Self::Word(word) => write!(f, "word {word}"),
            Self::Slash => f.write_str("slash"),
            Self::Www => f.write_str("www"),
            Self::Https => f.write_str("https"),
        }
    }
}

/// A text that is not a rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rule; expected e.g. `parameter sid`, `index index.html` or `slash`")]
pub struct NoRule(pub String);

impl FromStr for Rule {
    type Err = NoRule;

    fn from_str(text: &str) -> Result<Self, NoRule> {
        let no_rule = || NoRule(text.chars().take(100).collect());
        let (kind, about) = text.split_once(' ').unwrap_or((text, ""));
        let is_name = !about.is_empty()
            && !about
                .bytes()
                .any(|b| b.is_ascii_whitespace() || b"/?&;=#".contains(&b));
        match kind {
            "parameter" if is_name => Ok(Self::Parameter(about.to_owned())),
            "path-parameter" if is_name => Ok(Self::PathParameter(about.to_owned())),
            "index" if is_name => Ok(Self::Index(about.to_owned())),
            "word" if is_name => Ok(Self::Word(about.to_owned())),
            "slash" if about.is_empty() => Ok(Self::Slash),
            "www" if about.is_empty() => Ok(Self::Www),
            "https" if about.is_empty() => Ok(Self::Https),
            "segment" => class(about).map(Self::Segment).ok_or_else(no_rule),
            _ => Err(no_rule()),
        }
    }
}

fn class(text: &str) -> Option<Class> {
    let mut words = text.split(' ');
    let (prefix, length, name) = (words.next()?, words.next()?, words.next()?);
    let alphabet = ALPHABETS.iter().find(|(_, known)| *known == name)?.0;
    let length = length
        .parse()
        .ok()
        .filter(|&length| length >= MIN_SEGMENT)?;
    let prefix = if prefix == "*" { "" } else { prefix };
    words.next().is_none().then(|| Class {
        prefix: prefix.to_owned(),
        length,
        alphabet,
    })
}
