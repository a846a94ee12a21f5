//! Tests of the rules on examples, of the published test cases, and of idempotence on any input.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn normal(input: &str) -> String {
    let normal = Normalizer::default().normalize(input, None).unwrap();
    normal.as_str().to_owned()
}

#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(normal(input), expected, "{input}");
    assert_eq!(normal(expected), expected, "again: {expected}");
}

#[test]
fn five_spellings_of_one_page() {
    for input in [
        "http://abc.COM:80/~smith/home.html",
        "http://ABC.com/%7Esmith/home.html",
        "http://ABC.com:/%7Esmith/home.html?",
        "http://abc.com:/~smith/../~smith/home.html?",
        "http://ABC.com/././~smith/home.html",
    ] {
        check(input, "http://abc.com/~smith/home.html");
    }
}

#[test]
fn oracles() {
    check("http://abc.com", "http://abc.com/");
    check("HTTP://abc.com/a/b/../../../c/./d/..", "http://abc.com/c/");
    check(
        "http://abc.com/%2fa%c3%a9?x=%7e#f",
        "http://abc.com/%2Fa%C3%A9?x=~",
    );
    check("http://abc.com/a//b/?", "http://abc.com/a//b/");
    check("http://abc.com:8080/%zz", "http://abc.com:8080/%zz");
}

#[test]
fn hosts() {
    check("http://bücher.de/", "http://xn--bcher-kva.de/");
    check("http://example%2Ecom/", "http://example.com/");
    check("https://www.example.org./", "https://www.example.org/");
    check("http://h../", "http://h../");
    check("http://./", "http://./");
    check("http://0x7f.1/", "http://127.0.0.1/");
    check("http://1.2.3.4./", "http://1.2.3.4/");
    check("http://[2001:DB8:0::1]:80/", "http://[2001:db8::1]/");
    check("http://h:443/", "http://h:443/");
    check("https://h:443/", "https://h/");
    check("http://u:p@h/x", "http://h/x");
}

#[test]
fn what_is_never_done() {
    check("http://h/?b=1&a=2", "http://h/?b=1&a=2");
    check("http://h/a//b", "http://h/a//b");
    check("http://h/index.html", "http://h/index.html");
    check("http://www.h.com/", "http://www.h.com/");
    check("http://h/%3A", "http://h/%3A");
}

#[test]
fn as_browsers_read() {
    check(" http://h/a b\t \n", "http://h/a%20b");
    check("http:\\\\h\\a", "http://h/a");
    check("http://h/%2e%2E/a", "http://h/a");
}

#[test]
fn invalid() {
    let reason = |input: &str| Normalizer::default().normalize(input, None).unwrap_err();
    assert_eq!(reason("a/b"), Invalid::Relative);
    assert_eq!(reason(""), Invalid::Relative);
    assert_eq!(reason("ftp://h/"), Invalid::Scheme);
    assert_eq!(reason("mailto:a@b"), Invalid::Scheme);
    assert_eq!(reason("http://"), Invalid::Syntax(ParseError::EmptyHost));
    assert!(matches!(reason("http://h:99999/"), Invalid::Syntax(_)));
}

#[test]
fn relative_to_a_base() {
    let base = Url::parse("http://abc.com/a/b?q#f").unwrap();
    let resolve = |input: &str| {
        let normal = Normalizer::default().normalize(input, Some(&base)).unwrap();
        normal.as_str().to_owned()
    };
    assert_eq!(resolve("../%7Ec"), "http://abc.com/~c");
    assert_eq!(resolve(""), "http://abc.com/a/b?q");
    assert_eq!(resolve("#x"), "http://abc.com/a/b?q");
    assert_eq!(resolve("?"), "http://abc.com/a/b");
    assert_eq!(resolve("//x.org"), "http://x.org/");
    assert_eq!(resolve(" /\\/\\x.org"), "http://x.org/");
    assert_eq!(resolve("http://x.org/y"), "http://x.org/y");
}

#[test]
fn switches() {
    let keep = Normalizer {
        user_info: UserInfo::Keep,
        empty_query: EmptyQuery::Keep,
        ..Normalizer::default()
    };
    let url = keep.normalize("http://u:p@ABC.com/?#x", None).unwrap();
    assert_eq!(url.as_str(), "http://u:p@abc.com/?");
    assert_eq!(
        (url.host(), url.origin()),
        ("abc.com", "http://u:p@abc.com")
    );
    assert_eq!(url.query(), Some(""));
}

#[test]
fn crumbs_are_dropped_on_request() {
    let normalizer = Normalizer {
        session_ids: SessionIds::Drop,
        ..Normalizer::default()
    };
    let check = |input: &str, expected: &str| {
        let url = normalizer.normalize(input, None).unwrap();
        assert_eq!(url.as_str(), expected, "{input}");
    };
    check("http://h/a;jsessionid=1A.node2", "http://h/a");
    check("http://h/a;v=1;JSESSIONID=1A/b?c", "http://h/a;v=1/b?c");
    check("http://h/(S(lit3py55t21z5v55))/a", "http://h/a");
    check("http://h/(S(lit3py55t21z5v55))", "http://h/");
    check("http://h/?a=1&PHPSESSID=0123&b=2", "http://h/?a=1&b=2");
    check("http://h/?utm_source=x&utm_medium=y", "http://h/");
    check("http://h/?UTM%5Fsource=x", "http://h/");
    check("http://h/?a=1&ASPSESSIONIDQABC=Z", "http://h/?a=1");
    // Without a value, or with another name, it may select a page.
    check("http://h/?phpsessid&sid=1", "http://h/?phpsessid&sid=1");
    check("http://h/..;jsessionid=1/a", "http://h/..;jsessionid=1/a");
    check("http://h/a;x;jsessionid", "http://h/a;x;jsessionid");
}

#[test]
fn parts() {
    let url = Normalizer::default()
        .normalize("https://www.Example.co.uk:8443/a/b?c?d", None)
        .unwrap();
    assert_eq!(url.scheme(), "https");
    assert_eq!(url.host(), "www.example.co.uk");
    assert_eq!(url.origin(), "https://www.example.co.uk:8443");
    assert_eq!(url.rest(), "/a/b?c?d");
    assert_eq!(url.path(), "/a/b");
    assert_eq!(url.query(), Some("c?d"));
    assert_eq!(url.site(), "example.co.uk");
}

#[test]
fn plain_urls_are_spared_the_parser() {
    for url in ["http://h.org/", "https://a-b.c1/x/y.html?q=1&r=a:b"] {
        assert!(NormalUrl::plain(url).is_some(), "{url}");
    }
    for url in [
        "http://h.org/?",
        "http://h.org",
        "http://H.org/",
        "http://h.org/.x",
        "http://1.2/",
        "http://h.org/a#b",
    ] {
        assert!(NormalUrl::plain(url).is_none(), "{url}");
    }
}

/// URLs that come near every rule.
fn any_url() -> impl Strategy<Value = String> {
    let scheme = "(http|https|HTTP|ftp)?:?/{0,3}";
    let host = "(u(:p)?@)?[a-zA-Z0-9.\\-%ü\\[\\]:]{0,10}(:[0-9]{0,3})?";
    let rest = "[/?#&=;.%a-fS2-7(){}~|\\\\ é\\-]{0,20}";
    (scheme, host, rest).prop_map(|(scheme, host, rest)| scheme + &host + "/" + &rest)
}

fn normalizers() -> Vec<Normalizer> {
    let mut all = Vec::new();
    for user_info in [UserInfo::Drop, UserInfo::Keep] {
        for empty_query in [EmptyQuery::Drop, EmptyQuery::Keep] {
            for session_ids in [SessionIds::Drop, SessionIds::Keep] {
                all.push(Normalizer {
                    user_info,
                    empty_query,
                    session_ids,
                    files: FileUrls::Accept,
                });
            }
        }
    }
    all
}

fn check_idempotent(input: &str) {
    for normalizer in normalizers() {
        if let Ok(once) = normalizer.normalize(input, None) {
            let twice = normalizer.normalize(once.as_str(), None).unwrap();
            assert_eq!(once, twice, "{input}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn idempotent_near_the_rules(url in any_url()) {
        check_idempotent(&url);
    }

    #[test]
    fn idempotent_on_any_text(text in any::<String>()) {
        check_idempotent(&text);
        check_idempotent(&format!("http://h/{text}"));
        check_idempotent(&format!("http://{text}/"));
    }

    #[test]
    fn the_short_way_equals_the_long_one(
        url in "https?://[a-z0-9.-]{1,8}/[a-zA-Z0-9/._~+=&,;:@!$*()?'%#-]{0,16}",
    ) {
        let normalizer = Normalizer::default();
        prop_assert_eq!(normalizer.normalize(&url, None), normalizer.rewrite(&url, None));
    }

    #[test]
    fn the_fragment_never_matters(url in any_url(), fragment in any::<String>()) {
        let normalizer = Normalizer::default();
        let stem = url.split('#').next().unwrap();
        let plain = normalizer.normalize(&format!("{stem}#"), None);
        prop_assert_eq!(normalizer.normalize(&format!("{stem}#{fragment}"), None), plain);
    }

    #[test]
    fn parts_make_the_whole(url in any_url()) {
        if let Ok(url) = Normalizer::default().normalize(&url, None) {
            prop_assert_eq!(format!("{}{}", url.origin(), url.rest()), url.as_str());
            let start = format!("{}://{}", url.scheme(), url.host());
            prop_assert!(url.origin().starts_with(&start));
            prop_assert!(url.path().starts_with('/'));
            prop_assert!(url.host().contains(url.site()));
        }
    }
}

#[test]
fn urls_are_put_together_from_their_parts() {
    for text in [
        "http://h/",
        "http://h.org:8080/a?b",
        "https://127.0.0.1:81/x",
        "https://[::1]:444/",
        "http://[::1]/a:b",
    ] {
        let url = Normalizer::default().normalize(text, None).unwrap();
        assert_eq!(NormalUrl::from_parts(url.origin(), url.rest()), Some(url));
    }
    assert_eq!(NormalUrl::from_parts("h", "/"), None);
    assert_eq!(NormalUrl::from_parts("http://", "/"), None);
    assert_eq!(NormalUrl::from_parts("http://h", ""), None);
}

proptest! {
    /// For a link to the same host, the fast path gives the same normalized URL as the slow path.
    #[test]
    fn links_to_the_same_host(rest in "/[a-zA-Z0-9./?%~:#-]{0,12}", port in prop::option::of(1..9999_u16)) {
        let normalizer = Normalizer::default();
        let origin = format!("http://127.0.0.1{}", port.map_or(String::new(), |port| format!(":{port}")));
        let page = normalizer.normalize(&format!("{origin}/"), None).unwrap();
        let link = format!("{}{rest}", page.origin());
        if let Some(found) = normalizer.normalize_beside(&link, &page) {
            prop_assert_eq!(Ok(found), normalizer.normalize(&link, None));
        }
    }
}

/// Where local files are accepted, they are URLs with a host.
#[test]
fn issue_27_files() {
    let normalizer = Normalizer {
        files: FileUrls::Accept,
        ..Normalizer::default()
    };
    let normal = |input: &str, base: Option<&str>| {
        let base = base.map(|base| Url::parse(base).unwrap());
        normalizer.normalize(input, base.as_ref())
    };
    let url = normal("file:///a/./b%7e/../c d.html?#x", None).unwrap();
    assert_eq!(url.as_str(), "file://localhost/a/c%20d.html");
    assert_eq!(
        (url.host(), url.rest(), url.scheme()),
        ("localhost", "/a/c%20d.html", "file")
    );
    assert!(url.is_file());
    let below = normal("../x", Some(url.as_str())).unwrap();
    assert_eq!(below.as_str(), "file://localhost/x");
    assert_eq!(normal(below.as_str(), None), Ok(below.clone()));
    assert_eq!(
        NormalUrl::from_parts(below.origin(), below.rest()),
        Some(below)
    );
    assert_eq!(normal("file://server/share", None), Err(Invalid::Scheme));
    let refused = Normalizer::default().normalize("file:///a", None);
    assert_eq!(refused, Err(Invalid::Scheme));
}
