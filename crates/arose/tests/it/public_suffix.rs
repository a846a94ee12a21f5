//! The test cases of the public suffix list: a host and its registrable domain, or `null`.

use std::path::Path;

use arose::site::{SiteKind, site};

const CASES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/url-suites/publicsuffix/tests.txt"
);

#[test]
fn registrable_sites_agree_with_the_list() {
    if !Path::new(CASES).exists() {
        println!("skipped: {CASES} does not exist");
        return;
    }
    #[expect(clippy::disallowed_methods, reason = "the test owns its input")]
    let cases = std::fs::read_to_string(CASES).unwrap();
    let n_checked = cases
        .lines()
        .filter(|line| is_case(line))
        .map(check)
        .count();
    assert!(n_checked > 70, "only {n_checked} cases in {CASES}");
}

fn is_case(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("//") && !line.starts_with("null")
}

/// A host without a registrable domain is its own site.
#[track_caller]
fn check(line: &str) {
    let (host, domain) = line.split_once(' ').expect("a case is two words");
    let expected = match domain {
        "null" => host.to_lowercase(),
        domain => domain.to_owned(),
    };
    assert_eq!(site(host, SiteKind::Registrable), expected, "{host}");
}
