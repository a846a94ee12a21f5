//! Tests of groups, precedence and extensions, and of any bytes.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::url::Normalizer;

fn url(path: &str) -> NormalUrl {
    let text = format!("http://h{path}");
    Normalizer::default().normalize(&text, None).unwrap()
}

/// Whether `agent` may fetch `path`, and the line that decides.
#[track_caller]
fn check(file: &str, agent: &str, path: &str, expected: (bool, Option<u32>)) {
    let robots = Robots::parse(file.as_bytes(), agent);
    let verdict = robots.verdict(&url(path));
    let found = (verdict.allowed, verdict.rule.map(|rule| rule.line));
    assert_eq!(found, expected, "{agent} {path}\n{file}");
}

#[test]
fn files_of_the_lecture() {
    check("User-agent: *\nDisallow:\n", "x", "/a", (true, None));
    check("User-agent: *\nDisallow: /\n", "x", "/a", (false, Some(2)));
    let two = "User-agent: *\nDisallow: /cgi-bin/\nDisallow: /private/\n";
    check(two, "x", "/cgi-bin/a", (false, Some(2)));
    check(two, "x", "/private/", (false, Some(3)));
    check(two, "x", "/cgi-bin", (true, None));
    let bad = "User-agent: BadBot\nDisallow: /private/\n";
    check(bad, "BadBot", "/private/a", (false, Some(2)));
    check(bad, "badbot", "/a", (true, None));
    check(bad, "x", "/private/a", (true, None));
    let wget = "User-agent: wget\nDisallow: /\n\nUser-agent: *\nAllow: /\n";
    check(wget, "Wget/1.21", "/a", (false, Some(2)));
    check(wget, "x", "/a", (true, Some(5)));
    let own = "User-agent: *\nDisallow: /a\n\nUser-agent: wget\nDisallow: /b\n";
    check(own, "wget", "/a", (true, None));
}

#[test]
fn groups_of_one_crawler_are_merged() {
    let file = "User-agent: a\nDisallow: /1\n\nUser-agent: b\nDisallow: /2\n\nuser-agent: A\nDisallow: /3\n";
    check(file, "a", "/1", (false, Some(2)));
    check(file, "a", "/2", (true, None));
    check(file, "a", "/3", (false, Some(8)));
}

#[test]
fn a_group_without_rules_still_names_us() {
    let file = "User-agent: *\nDisallow: /\n\nUser-agent: a\n";
    check(file, "a", "/", (true, None));
    check(file, "b", "/", (false, Some(2)));
}

#[test]
fn names() {
    let file = "User-agent: Mediapartners-Google*\nUser-agent: k2spider\n\
                User-agent: sitecheck.internetseer.com (For more info)\nUser-agent: bot/1.0\n\
                User-agent: *rose\nDisallow: /\n";
    for agent in [
        "mediapartners-google",
        "K2Spider",
        "sitecheck.internetseer.com",
        "bot",
    ] {
        check(file, agent, "/", (false, Some(6)));
    }
    for agent in ["k", "sitecheck", "rose", "", "bo"] {
        check(file, agent, "/", (true, None));
    }
}

#[test]
fn the_longest_pattern_decides() {
    let file =
        "User-agent: *\nAllow: /page\nDisallow: /*.html\nDisallow: /x\nAllow: /x\nAllow: /x\n";
    check(file, "a", "/page.html", (false, Some(3)));
    check(file, "a", "/page", (true, Some(2)));
    check(file, "a", "/x", (true, Some(5)));
}

#[test]
fn spellings_of_a_pattern_are_equally_long() {
    let file = "User-agent: *\nDisallow: /%61%62\nAllow: /a*\n";
    check(file, "a", "/abc", (true, Some(3)));
}

#[test]
fn the_file_itself_is_always_allowed() {
    check(
        "User-agent: *\nDisallow: /\n",
        "a",
        "/robots.txt",
        (true, None),
    );
    check(
        "User-agent: *\nDisallow: /\n",
        "a",
        "/robots.txt2",
        (false, Some(2)),
    );
}

#[test]
fn line_ends_marks_and_comments() {
    for file in [
        "User-agent: *\rDisallow: /a\r",
        "User-agent: *\r\nDisallow: /a",
        "\u{FEFF}User-agent: *\nDisallow: /a # and more",
        "  user-agent :*\n\tDISALLOW\t:\t/a#b",
        "User-agent *\nDisallow /a",
        "Useragent: *\nDissallow: /a",
    ] {
        check(file, "x", "/a", (false, Some(2)));
    }
}

#[test]
fn utf_16() {
    let text = "User-agent: *\nDisallow: /ü\n";
    let little: Vec<u8> = "\u{FEFF}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let big: Vec<u8> = "\u{FEFF}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(u16::to_be_bytes)
        .collect();
    for file in [little, big] {
        assert!(!Robots::parse(&file, "x").verdict(&url("/%C3%BC")).allowed);
    }
}

#[test]
fn rules_before_the_first_name_are_nobodys() {
    check(
        "Disallow: /\nUser-agent: *\nDisallow: /a\n",
        "x",
        "/b",
        (true, None),
    );
}

#[test]
fn other_lines_do_not_end_a_group() {
    let file = "User-agent: a\nCrawl-delay: 10\nSitemap: http://h/s.xml\nFoo: bar\nUser-agent: b\n\
                Disallow: /p\n\nUser-agent: *\nCrawl-delay: 30\nCrawl-delay: 7\nCrawl-delay: x\n";
    check(file, "a", "/p", (false, Some(6)));
    check(file, "b", "/p", (false, Some(6)));
    let delay = |agent| Robots::parse(file.as_bytes(), agent).crawl_delay;
    assert_eq!(delay("a"), Some(Duration::from_secs(10)));
    assert_eq!(delay("b"), None);
    assert_eq!(delay("c"), Some(Duration::from_secs(30)));
    assert_eq!(
        Robots::parse(file.as_bytes(), "b").sitemaps,
        ["http://h/s.xml"]
    );
}

#[test]
fn the_first_rate_of_the_hour_and_the_delay() {
    let file = "User-agent: a\nRequest-rate: 5/1m 0200-2259\nRequest-rate: 20/1m 2300-0159\n\
                Crawl-delay: 4\nVisit-time: 0600-0845\nVisit-time: 2000-2100\n";
    let robots = Robots::parse(file.as_bytes(), "a");
    let at = |text| TimeOfDay::parse(text).unwrap();
    assert_eq!(robots.delay(at("1200")), Duration::from_secs(12));
    assert_eq!(robots.delay(at("0000")), Duration::from_secs(4));
    for (time, expected) in [("0845", true), ("0846", false), ("2030", true)] {
        assert_eq!(robots.is_open(at(time)), expected, "{time}");
    }
    assert!(Robots::parse(file.as_bytes(), "b").is_open(at("0000")));
}

#[test]
fn a_line_cut_by_the_limit_is_not_read() {
    let mut file = b"User-agent: *\nDisallow: /a\n#".to_vec();
    file.resize(MAX_BYTES - "\nDisallow: /".len(), b'x');
    file.extend_from_slice(b"\nDisallow: /private\n");
    let robots = Robots::parse(&file, "x");
    assert!(robots.is_cut);
    assert!(!robots.verdict(&url("/a")).allowed);
    assert!(robots.verdict(&url("/b")).allowed);
    file.truncate(MAX_BYTES);
    let whole = Robots::parse(&file, "x");
    assert!(!whole.is_cut && !whole.verdict(&url("/b")).allowed);
}

#[test]
fn rules_are_shown_as_written() {
    let robots = Robots::parse(b"user-agent: *\ndisallow:   /a%2fb*$ # no\n", "x");
    let verdict = robots.verdict(&url("/a%2Fb"));
    assert_eq!(verdict.rule.unwrap().to_string(), "Disallow: /a%2fb*$");
}

/// A file of stars only, against a path on which a backtracking matcher would never return. Ten
/// thousand such rules take milliseconds here. With backtracking, the first would not end.
#[test]
fn wildcards_do_not_blow_up() {
    let rule = format!("Disallow: /{}b$\n", "*a".repeat(20));
    let file = format!("User-agent: *\n{}Disallow: /*\n", rule.repeat(MAX_STARS));
    let robots = Robots::parse(file.as_bytes(), "x");
    assert!(robots.is_cut);
    assert!(
        robots
            .verdict(&url(&format!("/{}", "a".repeat(2000))))
            .allowed
    );
}

/// Bytes that look like a file, or do not.
fn any_file() -> impl Strategy<Value = Vec<u8>> {
    let line = "(user-agent|allow|disallow|crawl-delay|request-rate|visit-time|sitemap|x)?[: ]{0,2}[a/*$%5#0-9. -]{0,12}[\r\n]{0,2}";
    let lines = prop::collection::vec(line, 0..20).prop_map(|lines| lines.concat().into_bytes());
    prop_oneof![lines, any::<Vec<u8>>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes_have_a_verdict(file in any_file(), agent in "[a/]{0,3}", path in "/[a%5*$/]{0,9}") {
        let robots = Robots::parse(&file, &agent);
        let path = url(&path);
        let verdict = robots.verdict(&path);
        prop_assert!(verdict.rule.is_some() || verdict.allowed);
        let n_lines = file.iter().filter(|&&byte| matches!(byte, b'\r' | b'\n')).count() + 1;
        prop_assert!(verdict.rule.is_none_or(|rule| rule.line as usize <= n_lines));
        prop_assert!(robots.delay(TimeOfDay::from_unix(0)) >= robots.crawl_delay.unwrap_or_default());
        prop_assert!(robots.verdict(&url("/robots.txt")).allowed);
    }

    /// The order of the lines of a group does not change what is allowed.
    #[test]
    fn order_of_rules_does_not_matter(rules in prop::collection::vec("(allow|disallow): [a/*$]{0,5}", 0..8), path in "/[a/]{0,6}") {
        let verdict = |rules: &[String]| {
            let file = format!("user-agent: *\n{}", rules.join("\n"));
            Robots::parse(file.as_bytes(), "x").verdict(&url(&path)).allowed
        };
        let reversed: Vec<String> = rules.iter().rev().cloned().collect();
        prop_assert_eq!(verdict(&rules), verdict(&reversed));
    }
}

/// A kept file has the same rules for this crawler, also after it is kept again.
#[test]
fn kept_rules_decide_alike() {
    let file = b"User-agent: *\nDisallow: /\nUser-agent: arose\nAllow: /a*b$\nDisallow: /caf\xc3\xa9/\n\
        Disallow: /x%2fy?q=%7e\nDisallow: /\xff\nAllow: /$$\nCrawl-delay: 2.5\nRequest-rate: 1/10 0600-0845\n\
        Request-rate: 3/1m\nVisit-time: 2200-0400\nSitemap: http://h/s\n";
    let robots = Robots::parse(file, "arose");
    let kept = Robots::parse(robots.to_text().as_bytes(), "somebody");
    let rules = |robots: &Robots| -> Vec<(RuleKind, Pattern)> {
        let rules = robots.rules.iter();
        rules
            .map(|rule| (rule.kind, rule.pattern.clone()))
            .collect()
    };
    assert_eq!(rules(&kept), rules(&robots));
    assert_eq!(kept.rules.len(), 5);
    assert_eq!(kept.crawl_delay, robots.crawl_delay);
    assert_eq!(kept.request_rates, robots.request_rates);
    assert_eq!(kept.visit_times, robots.visit_times);
    assert_eq!(kept.to_text(), robots.to_text());
}
