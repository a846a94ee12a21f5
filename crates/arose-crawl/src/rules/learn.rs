//! Learns URL rules offline, from a list of URLs with digests of their contents.

use std::io::BufRead;

use arose::digest::digest64;
use arose::dust::{Config, Learner, Standing, State, Treatment};
use serde_json::Value;

/// The result of learning from a list of URLs.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// Rules with evidence, in the order in which they were first considered.
    pub rules: Vec<Standing>,
    /// Number of lines with a URL and a content.
    pub n_urls: u64,
    /// Of these: pages that do not count, such as errors.
    pub n_errors: u64,
    /// Number of malformed lines.
    pub n_bad: u64,
    /// Number of URLs that the active rules map to the same URL as an earlier one.
    pub n_covered: u64,
}

/// Longer lines are skipped and counted.
const MAX_LINE: usize = 1 << 20;

/// Learns from lines. Each is a JSON object with the fields `url` and `digest`, a URL and a digest
/// separated by a tab, or a line of a CDXJ index. Pages with equal digests are the same. If there
/// is a field `status`, only 200 counts. Nothing is fetched, so rules come only from pairs of URLs
/// in the list, and every URL that a rule covers audits it.
///
/// # Errors
///
/// If the lines cannot be read.
pub fn learn(mut lines: impl BufRead, config: Config) -> std::io::Result<Learned> {
    let mut learner = Learner::new(Config {
        max_probes: 0,
        ..config
    });
    let (mut n_urls, mut n_errors, mut n_bad, mut n_covered) = (0, 0, 0, 0);
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line)? {
        if line.is_empty() {
            continue;
        }
        let Some((url, content)) = parse(&line) else {
            n_bad += 1;
            continue;
        };
        n_urls += 1;
        let Some(content) = content else {
            n_errors += 1;
            continue;
        };
        if let Treatment::Same(canonical) = learner.place(&url)
            && canonical.is_known
        {
            n_covered += 1;
            if !learner.defer(&url, &canonical) {
                learner.audit(&url, &canonical);
            }
        }
        learner.fetched(&url, Some(content));
    }
    let rules = learner.rules().filter(|rule| {
        let has_pairs = rule.n_same + rule.n_different > 0;
        has_pairs || rule.state != State::Testing
    });
    Ok(Learned {
        rules: rules.cloned().collect(),
        n_urls,
        n_errors,
        n_bad,
        n_covered,
    })
}

/// Reads the next line without its end; returns whether there is one. A line that is too long is
/// reduced to some bytes that are not a valid line.
fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> std::io::Result<bool> {
    line.clear();
    let mut has_some = false;
    loop {
        let bytes = lines.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        has_some = true;
        let end = bytes.iter().position(|&byte| byte == b'\n');
        let n = end.unwrap_or(bytes.len());
        let room = (MAX_LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(&bytes[..n.min(room)]);
        lines.consume(end.map_or(n, |end| end + 1));
        if end.is_some() {
            break;
        }
    }
    if line.len() > MAX_LINE {
        *line = b"\0".to_vec();
    }
    while line.last().is_some_and(u8::is_ascii_whitespace) {
        line.pop();
    }
    Ok(has_some)
}

/// Returns the URL of a line and its content, if it is a page that counts.
fn parse(line: &[u8]) -> Option<(String, Option<u64>)> {
    let line = std::str::from_utf8(line).ok()?;
    let object = match line.as_bytes().first()? {
        b'{' => line,
        _ => match line.split_once('\t') {
            Some((url, digest)) => return of_text(url, digest.split('\t').next()?),
            // A CDXJ line: key, time, object.
            None => line
                .splitn(3, ' ')
                .nth(2)
                .filter(|rest| rest.starts_with('{'))?,
        },
    };
    let fields: Value = serde_json::from_str(object).ok()?;
    let text = |name: &str| match fields.get(name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let url = text("url")?;
    let is_page = text("status").is_none_or(|status| status == "200" || status == "-");
    let (url, content) = of_text(&url, &text("digest")?)?;
    Some((url, content.filter(|_| is_page)))
}

fn of_text(url: &str, digest: &str) -> Option<(String, Option<u64>)> {
    let url = crate::url::Normalizer::default()
        .normalize(url, None)
        .ok()?;
    let content = (!digest.is_empty()).then(|| digest64(digest.as_bytes()))?;
    Some((url.as_str().to_owned(), Some(content)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(text: &str) -> Learned {
        learn(text.as_bytes(), Config::default()).unwrap()
    }

    fn active(learned: &Learned) -> Vec<String> {
        let rules = learned.rules.iter();
        let active = rules.filter(|rule| rule.state == State::Active);
        active
            .map(|rule| format!("{} {}", rule.scope, rule.rule))
            .collect()
    }

    /// The same list gives the same rules in each format.
    #[test]
    fn every_form_of_a_list() {
        let urls = (0..300).map(|n| (format!("http://a.b/item/{}?sid=x{n}", n % 40), n % 40));
        let urls: Vec<(String, u32)> = urls.collect();
        let text = |line: fn(&str, u32) -> String| -> String {
            let lines = urls.iter().map(|(url, n)| line(url, *n));
            lines.collect()
        };
        let tabs = text(|url, n| format!("{url}\td{n}\n"));
        let json = text(|url, n| format!("{{\"url\": \"{url}\", \"digest\": \"d{n}\"}}\n"));
        let cdxj = text(|url, n| {
            format!(
                "b,a)/ 2026 {{\"url\": \"{url}\", \"digest\": \"d{n}\", \"status\": \"200\"}}\n"
            )
        });
        let expected = learned(&tabs);
        assert_eq!(active(&expected), ["a.b/item/* parameter sid"]);
        assert_eq!((expected.n_urls, expected.n_bad), (300, 0));
        assert!(expected.n_covered > 150, "{}", expected.n_covered);
        assert_eq!(learned(&json), expected);
        assert_eq!(learned(&cdxj), expected);
    }

    /// A rule that later lines contradict does not stay active, and errors are ignored.
    #[test]
    fn later_lines_can_refute() {
        let mut text = String::new();
        for n in 0..200 {
            text.push_str(&format!("http://a.b/i/{}?sid=x{n}\td{}\n", n % 30, n % 30));
        }
        assert_eq!(active(&learned(&text)).len(), 1);
        for n in 0..5 {
            text.push_str(&format!("http://a.b/i/{n}?sid=y{n}\tother{n}\n"));
        }
        assert_eq!(active(&learned(&text)), [""; 0]);
        let errors: String = (0..200)
            .map(|n| {
                format!(
                    "{{\"url\":\"http://a.b/?s=x{n}\",\"digest\":\"e{}\",\"status\":404}}\n",
                    n % 9
                )
            })
            .collect();
        let learned = learned(&errors);
        assert_eq!((learned.n_errors, learned.rules.len()), (200, 0));
    }

    #[test]
    fn what_is_no_line_is_counted() {
        let long = format!("http://a.b/{}\td\n", "x".repeat(2 << 20));
        let bad = format!(
            "\n{{\"url\": 3}}\n{{\nnothing\nftp://a.b/\td\nhttp://a.b/\t\n\u{fffd}\n{long}http://a.b/c\td"
        );
        let learned = learned(&bad);
        assert_eq!((learned.n_urls, learned.n_bad), (1, 7));
    }
}
