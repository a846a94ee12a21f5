//! Tests with the sample archives outside the repository, and the encoding suite.

use std::collections::BTreeMap;
use std::path::Path;

use arose_corpus::charset::{Markup, choose};
use arose_corpus::{Item, Reason};

use crate::shared::suites;
use crate::support::{damage, documents, items, shared};

/// Records by kind, as far as they are visible; `document` for those that became one.
fn kinds(items: &[Item]) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for item in items {
        let kind = match item {
            Item::Document(_) => "document",
            Item::Skipped(warning) if warning.reason.is_damage() => continue,
            Item::Skipped(warning) => &warning.detail,
        };
        *kinds.entry(kind.to_owned()).or_default() += 1;
    }
    kinds
}

/// Reads one sample and checks the kinds of its records and its damage.
#[track_caller]
fn check(name: &str, expected: &[(&str, usize)], damaged: &[(Reason, u64)]) {
    let Some(path) = shared(&format!("warc-samples/{name}")) else {
        return;
    };
    let items = items(&[&path]);
    let expected = expected
        .iter()
        .map(|(kind, n)| (kind.to_string(), *n))
        .collect();
    assert_eq!(kinds(&items), expected, "{name}");
    let places: Vec<_> = damage(&items)
        .iter()
        .map(|warning| (warning.reason, warning.position.offset))
        .collect();
    assert_eq!(places, damaged, "{name}");
}

#[test]
fn good_archives_have_the_records_that_warcio_counts() {
    for name in ["warcio/example.warc", "warcio/example.warc.gz"] {
        check(
            name,
            &[
                ("document", 1),
                ("request", 2),
                ("revisit", 1),
                ("warcinfo", 2),
            ],
            &[],
        );
    }
    // 16 responses, three of which are images, and three resources.
    for name in [
        "webarchive-commons/IAH-urls-wget.warc",
        "webarchive-commons/IAH-urls-wget.warc.gz",
    ] {
        let images = [("image/gif", 1), ("image/jpeg", 1), ("image/png", 1)];
        let others = [("document", 13 + 3), ("request", 16), ("warcinfo", 1)];
        check(name, &[images.as_slice(), &others].concat(), &[]);
    }
    for name in [
        "commoncrawl/whirlwind.warc",
        "commoncrawl/whirlwind.warc.gz",
    ] {
        check(
            name,
            &[
                ("document", 1),
                ("metadata", 1),
                ("request", 1),
                ("warcinfo", 1),
            ],
            &[],
        );
    }
    for name in [
        "commoncrawl/whirlwind.warc.wet",
        "commoncrawl/whirlwind.warc.wet.gz",
    ] {
        check(name, &[("document", 1), ("warcinfo", 1)], &[]);
    }
    for name in [
        "commoncrawl/whirlwind.warc.wat",
        "commoncrawl/whirlwind.warc.wat.gz",
    ] {
        check(name, &[("metadata", 1), ("warcinfo", 1)], &[]);
    }
    for name in ["warcio/example.arc", "warcio/example.arc.gz"] {
        check(name, &[("document", 1), ("filedesc", 1)], &[]);
    }
    check("warcio/example-digest.warc", &[("request", 4)], &[]);
    check(
        "warcio/example-iana.org-chunked.warc",
        &[("document", 1), ("request", 1), ("warcinfo", 1)],
        &[],
    );
    check(
        "warcio/example-resource.warc.gz",
        &[("document", 1), ("warcinfo", 2)],
        &[],
    );
    check(
        "warcio/example-space-in-target-uri.warc.gz",
        &[("image/png", 1), ("warcinfo", 1)],
        &[],
    );
    check(
        "warcio/post-test.warc.gz",
        &[("document", 3), ("request", 3)],
        &[],
    );
    check(
        "webarchive-commons/mutliple-headers.warc",
        &[("document", 1)],
        &[],
    );
    let wget = [
        ("document", 3),
        ("metadata", 1),
        ("request", 1),
        ("warcinfo", 1),
    ];
    check("warcio/example-wget-bad-target-uri.warc.gz", &wget, &[]);
}

/// Reading continues where `warcio` stops.
#[test]
fn broken_archives_are_read_to_the_end() {
    // Several records in one member, or one record in several.
    let six = [
        ("document", 1),
        ("request", 2),
        ("revisit", 1),
        ("warcinfo", 2),
    ];
    check("warcio/example-bad-non-chunked.warc.gz", &six, &[]);
    let six = [
        ("document", 2),
        ("request", 2),
        ("revisit", 1),
        ("warcinfo", 1),
    ];
    check("warcio/example-bad.warc.gz.bad", &six, &[]);
    check(
        "warcio/example-wrong-chunks.warc.gz",
        &[("document", 1), ("request", 1)],
        &[],
    );
    // Lengths that are wrong by a few bytes, and one in an archive whose line ends were changed.
    let trunc = [("document", 1), ("request", 1), ("warcinfo", 2)];
    check(
        "warcio/example-trunc.warc",
        &trunc,
        &[(Reason::BadLength, 1197)],
    );
    let links = [("document", 7), ("warcinfo", 1)];
    check(
        "webarchive-commons/link-extraction-test.warc",
        &links,
        &[(Reason::BadLength, 2807)],
    );
    let arc = [("document", 1), ("filedesc", 1)];
    check(
        "warcio/example-space-in-url.arc",
        &arc,
        &[(Reason::BadLength, 151)],
    );
    // Lengths that are not numbers.
    let bad = [
        (Reason::BadHeader, 0),
        (Reason::BadHeader, 134),
        (Reason::BadHeader, 262),
    ];
    check("warcio/bad.arc", &[("document", 1)], &bad);
    // Records without line ends between them.
    let names = [
        ("image/gif", 1),
        ("image/jpeg", 1),
        ("image/png", 1),
        ("text/dns", 1),
    ];
    let arc = [("document", 4), ("filedesc", 1)];
    check(
        "webarchive-commons/IAH-20080430204825-00000-blackbook-truncated.arc",
        &[names.as_slice(), &arc].concat(),
        &[],
    );
}

#[test]
fn plain_and_packed_archives_hold_the_same_documents() {
    for (plain, packed) in [
        ("warcio/example.warc", "warcio/example.warc.gz"),
        (
            "webarchive-commons/IAH-urls-wget.warc",
            "webarchive-commons/IAH-urls-wget.warc.gz",
        ),
        (
            "commoncrawl/whirlwind.warc",
            "commoncrawl/whirlwind.warc.gz",
        ),
        (
            "commoncrawl/whirlwind.warc.wet",
            "commoncrawl/whirlwind.warc.wet.gz",
        ),
    ] {
        let Some(root) = shared("warc-samples") else {
            return;
        };
        let read = |name: &str| items(&[&root.join(name)]);
        let (plain, packed) = (read(plain), read(packed));
        for (a, b) in documents(&plain).iter().zip(documents(&packed)) {
            assert_eq!(
                (&a.id, &a.url, &a.text, a.digest),
                (&b.id, &b.url, &b.text, b.digest)
            );
        }
        assert_eq!(plain.len(), packed.len());
    }
}

/// The cases of one file: data and the name of the expected encoding.
fn encoding_cases(path: &Path) -> Vec<(Vec<u8>, String)> {
    let bytes = std::fs::read(path).expect("readable");
    let finder = memchr::memmem::Finder::new(b"#data\n");
    let mut starts: Vec<usize> = finder.find_iter(&bytes).collect();
    starts.push(bytes.len());
    let cases = starts.windows(2).filter_map(|pair| {
        let case = &bytes[pair[0] + b"#data\n".len()..pair[1]];
        let middle = memchr::memmem::rfind(case, b"\n#encoding\n")?;
        let name = String::from_utf8_lossy(&case[middle + b"\n#encoding\n".len()..]);
        let name = name.lines().next().unwrap_or_default().to_lowercase();
        Some((case[..middle].to_vec(), name))
    });
    cases.collect()
}

/// The encoding cases of html5lib. Seven of 82 differ, all in the same way: their `<meta>` ends
/// after the first 1,024 bytes. A browser starts over when its parser meets it; the specification
/// stops searching.
#[test]
fn encodings_of_html5lib() {
    for folder in suites("html5lib/encoding") {
        check_encodings(&folder);
    }
}

fn check_encodings(root: &Path) {
    let mut n_cases = 0;
    let mut n_different = 0;
    for file in ["tests1.dat", "tests2.dat", "test-yahoo-jp.dat"] {
        for (data, expected) in encoding_cases(&root.join(file)) {
            n_cases += 1;
            let found = choose(&data, None, Markup::Html).name().to_lowercase();
            if found == expected {
                continue;
            }
            n_different += 1;
            let last_meta = memchr::memmem::rfind(&data, b"<meta");
            let start = String::from_utf8_lossy(&data[..data.len().min(200)]).into_owned();
            assert!(
                last_meta > Some(1000),
                "{file}: {found} for {expected}: {start}"
            );
        }
    }
    assert_eq!(n_cases, 82);
    assert_eq!(n_different, 7);
}
