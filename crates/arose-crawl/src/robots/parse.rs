//! Parses lines into groups.

use crate::mark::without_mark;

use super::extension::{RequestRate, VisitTime, parse_delay};
use super::{MAX_BYTES, MAX_STARS, Robots, Rule, RuleKind};

/// Parses a file for the crawler `agent`.
pub(super) fn parse(file: &[u8], agent: &str) -> Robots {
    let (text, is_cut) = cut(file);
    let text = without_mark(text);
    let mut parser = Parser::new(agent);
    for (index, line) in lines(&text).enumerate() {
        parser.line(line, u32::try_from(index + 1).unwrap_or(u32::MAX));
    }
    let mut robots = parser.finish();
    robots.is_cut |= is_cut;
    robots
}

/// Returns the complete lines within the first [`MAX_BYTES`], and whether the file is longer.
fn cut(file: &[u8]) -> (&[u8], bool) {
    let Some(start) = file.get(..MAX_BYTES).filter(|_| file.len() > MAX_BYTES) else {
        return (file, false);
    };
    let end = start.iter().rposition(|&byte| is_line_end(byte));
    (&start[..end.unwrap_or(0)], true)
}

/// Lines end with CR, LF or both; an empty line is a line.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = text.iter().position(|&byte| is_line_end(byte));
        let line = &text[..end.unwrap_or(text.len())];
        rest = end.map(|end| {
            let n_skipped = if text[end..].starts_with(b"\r\n") {
                2
            } else {
                1
            };
            &text[end + n_skipped..]
        });
        Some(line)
    })
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// The groups for this crawler and for all, as far as they are read.
struct Parser<'a> {
    agent: &'a str,
    /// Whom the current group is for.
    named: Named,
    /// Whether a rule was read since the last name; then the next name begins a new group.
    has_rules: bool,
    /// The group for this crawler, if the file names it.
    ours: Option<Robots>,
    everyones: Robots,
    sitemaps: Vec<String>,
}

#[derive(Default)]
struct Named {
    us: bool,
    everyone: bool,
}

impl<'a> Parser<'a> {
    fn new(agent: &'a str) -> Self {
        Self {
            agent: agent.split('/').next().unwrap_or_default().trim(),
            named: Named::default(),
            has_rules: false,
            ours: None,
            everyones: Robots::default(),
            sitemaps: Vec::new(),
        }
    }

    fn line(&mut self, line: &[u8], number: u32) {
        let Some((key, value)) = split(line) else {
            return;
        };
        match Key::from_name(key) {
            Some(Key::UserAgent) => self.user_agent(value),
            Some(Key::Rule(kind)) => self.rule(kind, value, number),
            Some(Key::CrawlDelay) => self.crawl_delay(value),
            Some(Key::RequestRate) => {
                if let Some(rate) = text(value).and_then(RequestRate::parse) {
                    self.add(|robots| robots.request_rates.push(rate.clone()));
                }
            }
            Some(Key::VisitTime) => {
                if let Some(hours) = text(value).and_then(VisitTime::parse) {
                    self.add(|robots| robots.visit_times.push(hours));
                }
            }
            Some(Key::Sitemap) => self
                .sitemaps
                .push(String::from_utf8_lossy(value).into_owned()),
            None => {}
        }
    }

    fn user_agent(&mut self, value: &[u8]) {
        if self.has_rules {
            self.named = Named::default();
            self.has_rules = false;
        }
        if value == b"*" || value.starts_with(b"* ") || value.starts_with(b"*\t") {
            self.named.everyone = true;
        } else if token(value).eq_ignore_ascii_case(self.agent.as_bytes()) {
            self.named.us = !self.agent.is_empty();
        }
        if self.named.us {
            self.ours.get_or_insert_default();
        }
    }

    /// Reads a rule. A rule without a pattern matches nothing, but still ends the names of its
    /// group.
    fn rule(&mut self, kind: RuleKind, value: &[u8], number: u32) {
        self.has_rules = true;
        if !value.is_empty() && (self.named.us || self.named.everyone) {
            let rule = Rule::new(kind, value, number);
            self.add(|robots| push_rule(robots, rule.clone()));
        }
    }

    fn crawl_delay(&mut self, value: &[u8]) {
        let delay = text(value).and_then(parse_delay);
        self.add(|robots| robots.crawl_delay = robots.crawl_delay.max(delay));
    }

    /// Adds something to the recipients of the current group.
    fn add(&mut self, add: impl Fn(&mut Robots)) {
        if let Some(ours) = self.ours.as_mut().filter(|_| self.named.us) {
            add(ours);
        }
        if self.named.everyone {
            add(&mut self.everyones);
        }
    }

    fn finish(self) -> Robots {
        let mut robots = self.ours.unwrap_or(self.everyones);
        robots.rules.sort_by_cached_key(Rule::precedence);
        robots.sitemaps = self.sitemaps;
        robots
    }
}

fn push_rule(robots: &mut Robots, rule: Rule) {
    if rule.pattern.has_star() {
        if robots.n_stars == MAX_STARS {
            robots.is_cut = true;
            return;
        }
        robots.n_stars += 1;
    }
    robots.rules.push(rule);
}

enum Key {
    UserAgent,
    Rule(RuleKind),
    CrawlDelay,
    RequestRate,
    VisitTime,
    Sitemap,
}

impl Key {
    fn from_name(name: &[u8]) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        Some(match name.as_slice() {
            b"user-agent" | b"useragent" | b"user agent" => Self::UserAgent,
            b"allow" => Self::Rule(RuleKind::Allow),
            b"disallow" | b"dissallow" | b"dissalow" | b"disalow" | b"diasllow" | b"disallaw"
            | b"desallow" => Self::Rule(RuleKind::Disallow),
            b"crawl-delay" | b"crawldelay" => Self::CrawlDelay,
            b"request-rate" => Self::RequestRate,
            b"visit-time" => Self::VisitTime,
            b"sitemap" | b"site-map" => Self::Sitemap,
            _ => return None,
        })
    }
}

/// Returns key and value of a line without its comment. If the colon is missing, whitespace
/// replaces it, provided that there are exactly two words.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b'#', line).unwrap_or(line.len());
    let line = line[..end].trim_ascii();
    if let Some(colon) = memchr::memchr(b':', line) {
        return Some((
            line[..colon].trim_ascii_end(),
            line[colon + 1..].trim_ascii_start(),
        ));
    }
    let space = line.iter().position(u8::is_ascii_whitespace)?;
    let value = line[space..].trim_ascii_start();
    let is_one_word = !value.iter().any(u8::is_ascii_whitespace);
    is_one_word.then_some((&line[..space], value))
}

/// Returns the name of a crawler in a file: up to a slash, a star or whitespace.
fn token(value: &[u8]) -> &[u8] {
    let is_end = |byte: &u8| matches!(byte, b'/' | b'*') || byte.is_ascii_whitespace();
    let end = value.iter().position(is_end).unwrap_or(value.len());
    &value[..end]
}

fn text(value: &[u8]) -> Option<&str> {
    std::str::from_utf8(value).ok()
}
