//! Tests of normalized URLs on collections of URLs: idempotent on all, equal to theirs except where
//! listed.

use std::collections::BTreeMap;
use std::fs;

use arose::site::{SiteKind, site};
use arose_crawl::url::{EmptyQuery, FileUrls, Normalizer, SessionIds, UserInfo};
use serde_json::Value;
use url::Url;

use crate::shared;

fn normal(input: &str) -> Option<String> {
    let url = Normalizer::default().normalize(input, None).ok()?;
    Some(url.as_str().to_owned())
}

/// Parses the fields of a line of comma-separated values; quotes only around whole fields.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let field = fields.last_mut().unwrap();
        match c {
            '"' if is_quoted && characters.peek() == Some(&'"') => {
                field.push('"');
                characters.next();
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            ' ' if field.is_empty() => {}
            c => field.push(c),
        }
    }
    fields
}

fn table(name: &str) -> Option<Vec<Vec<String>>> {
    let path = shared::path("url-suites/crawler-commons")?.join(name);
    let text = fs::read_to_string(path).unwrap();
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    Some(lines.map(fields).collect())
}

fn objects(name: &str) -> Option<Vec<Value>> {
    let bytes = shared::bytes(&format!("url-suites/wpt/{name}"))?;
    // Half a surrogate pair is not valid text in Rust; any other character serves the purpose.
    let text = String::from_utf8(bytes).unwrap().replace("\\ud", "\\u0");
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap();
    Some(rows.into_iter().filter(Value::is_object).collect())
}

/// Differences between the normalized URLs of another program and of this one, with the rule behind
/// each.
#[test]
fn another_programs_normal_forms() {
    let Some(rows) = table("weirdToNormalizedUrls.csv") else {
        return;
    };
    let mut counts = BTreeMap::new();
    for row in &rows {
        let (input, theirs) = (row[0].as_str(), row[1].trim());
        let ours = normal(input);
        if ours.as_deref() != Some(theirs) {
            *counts.entry(reason(input, theirs)).or_insert(0) += 1;
        }
    }
    println!("{counts:?} of {}", rows.len());
    let expected = [
        ("a path may hold empty segments", 6),
        ("a stray % is left as it is, as browsers do", 5),
        ("no web address", 8),
        ("parameters keep their order and spelling", 11),
        ("queries may hold []^`|, as in browsers", 4),
        ("without a scheme it is relative", 1),
    ];
    assert_eq!(rows.len(), 112);
    assert_eq!(counts, BTreeMap::from(expected));
}

/// Returns the rule that explains a difference on an input of the other program's list.
fn reason(input: &str, theirs: &str) -> &'static str {
    let scheme = input.split("//").next().unwrap();
    if !input.contains(":/") {
        "without a scheme it is relative"
    } else if !scheme.starts_with("http") || theirs == "http:/" {
        "no web address"
    } else if input.contains(['[', '^', '`', '|']) {
        "queries may hold []^`|, as in browsers"
    } else if theirs.contains("%25") {
        "a stray % is left as it is, as browsers do"
    } else if input.matches("//").count() > 1 {
        "a path may hold empty segments"
    } else if input.contains(['&', '=']) {
        "parameters keep their order and spelling"
    } else {
        panic!("{input} is {theirs} for no reason we know")
    }
}

/// Every text that resolves to a web URL by the rules of browsers is one here, and its normalized
/// form differs only by our rules. Every other text is not a URL here.
#[test]
fn what_browsers_take_for_a_web_address() {
    let Some(rows) = objects("urltestdata.json") else {
        return;
    };
    let mut n_web = 0;
    let mut differences = Vec::new();
    for row in &rows {
        let input = row["input"].as_str().unwrap();
        let base = row["base"].as_str().map(|base| Url::parse(base).unwrap());
        let found = Normalizer::default().normalize(input, base.as_ref()).ok();
        let href = row["href"].as_str().filter(|href| href.starts_with("http"));
        let is_web =
            href.is_some_and(|href| href.starts_with("http:") || href.starts_with("https:"));
        n_web += usize::from(is_web);
        let expected = href.filter(|_| is_web).and_then(normal);
        let found = found.map(|url| url.as_str().to_owned());
        if found.is_some() != is_web || found != expected {
            differences.push(format!("{input:?} {found:?}"));
        }
    }
    // Host names with an encoding that decodes to nothing: the crate `url` refuses them, as
    // browsers did when it was written, and they cannot be registered.
    let expected = [
        "\"http://a.b.c.xn--pokxncvks\" None",
        "\"http://10.0.0.xn--pokxncvks\" None",
        "\"http://a.b.c.XN--pokxncvks\" None",
        "\"http://a.b.c.Xn--pokxncvks\" None",
        "\"http://10.0.0.XN--pokxncvks\" None",
        "\"http://10.0.0.xN--pokxncvks\" None",
        "\"https://xn--/\" None",
    ];
    assert_eq!(differences, expected);
    assert!(n_web > 200, "{n_web}");
}

/// All URLs of all files.
pub(crate) fn inputs() -> Option<Vec<String>> {
    let rows = objects("urltestdata.json")?;
    let mut inputs: Vec<String> = rows
        .iter()
        .map(|row| row["input"].as_str().unwrap().to_owned())
        .collect();
    for name in [
        "weirdToNormalizedUrls.csv",
        "url-resolve.csv",
        "invalidUrls.csv",
    ] {
        inputs.extend(table(name).unwrap().into_iter().flatten());
    }
    for row in objects("toascii.json")
        .unwrap()
        .iter()
        .chain(&objects("IdnaTestV2.json").unwrap())
    {
        inputs.push(format!("http://{}/", row["input"].as_str().unwrap()));
    }
    Some(inputs)
}

/// All URLs of all files, and mutations of them, under every setting.
#[test]
fn idempotent_on_every_input() {
    let Some(inputs) = inputs() else {
        return;
    };
    let mut random = arose::mix::SplitMix::new(1);
    let n_mutations = 4;
    let mutated: Vec<String> = inputs
        .iter()
        .flat_map(|input| std::iter::repeat_n(input, n_mutations))
        .map(|input| mutate(input, &mut random))
        .collect();
    let base = Url::parse("http://example.org/a/b?c").unwrap();
    let mut n_normal = 0;
    for input in inputs.iter().chain(&mutated) {
        for normalizer in [
            Normalizer::default(),
            Normalizer {
                user_info: UserInfo::Keep,
                empty_query: EmptyQuery::Keep,
                session_ids: SessionIds::Drop,
                files: FileUrls::Accept,
            },
        ] {
            if let Ok(once) = normalizer.normalize(input, Some(&base)) {
                let twice = normalizer.normalize(once.as_str(), None);
                assert_eq!(twice.as_ref(), Ok(&once), "{input:?}");
                n_normal += 1;
            }
        }
    }
    println!(
        "{n_normal} normal forms of {} inputs",
        inputs.len() + mutated.len()
    );
    assert!(n_normal > 10_000, "{n_normal}");
}

/// Inserts a few significant characters into a text, or removes some.
fn mutate(text: &str, random: &mut arose::mix::SplitMix) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let telling: Vec<char> = "%25eE7./?#;:@&=\\ é".chars().collect();
    for _ in 0..3 {
        let at = random.below(characters.len() as u64 + 1) as usize;
        if random.below(3) == 0 && at < characters.len() {
            characters.remove(at);
        } else {
            characters.insert(at, telling[random.below(telling.len() as u64) as usize]);
        }
    }
    characters.into_iter().collect()
}

#[test]
fn relative_references() {
    let Some(rows) = table("url-resolve.csv") else {
        return;
    };
    let mut n_checked = 0;
    for row in rows.iter().filter(|row| row[2].starts_with("http")) {
        let base = Url::parse(&row[1]).ok();
        let found = Normalizer::default()
            .normalize(&row[0], base.as_ref())
            .unwrap();
        assert_eq!(Some(found.as_str()), normal(&row[2]).as_deref(), "{row:?}");
        n_checked += 1;
    }
    assert!(n_checked >= 20, "{n_checked}");
}

/// Hosts given as URLs have the site that the list's own cases require.
#[test]
fn sites_of_hosts() {
    let Some(text) = shared::bytes("url-suites/publicsuffix/tests.txt") else {
        return;
    };
    let text = String::from_utf8(text).unwrap();
    let mut n_checked = 0;
    for line in text.lines().filter(|line| !line.starts_with("//")) {
        let mut words = line.split_whitespace();
        let (Some(host), Some(expected)) = (words.next(), words.next()) else {
            continue;
        };
        let Ok(url) = Normalizer::default().normalize(&format!("http://{host}/"), None) else {
            continue;
        };
        let expected = match expected {
            "null" => url.host().to_owned(),
            name => site(
                Url::parse(&format!("http://{name}/"))
                    .unwrap()
                    .host_str()
                    .unwrap(),
                SiteKind::Registrable,
            )
            .into_owned(),
        };
        assert_eq!(url.site(), expected, "{line}");
        n_checked += 1;
    }
    assert!(n_checked > 50, "{n_checked}");
}
