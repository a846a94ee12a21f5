//! Tests of real robots.txt files, sitemaps and URLs, broken at random: there is always a result,
//! and it is bounded.
//!
//! Responses are changed in the same way by `broken_responses_have_an_outcome`, beside the HTTP
//! client. `FUZZ_INPUTS` and `FUZZ_SEED` choose how many and which.

use arose::mix::SplitMix;
use arose_crawl::robots::{MAX_DELAY, Robots, TimeOfDay};
use arose_crawl::sitemap::{self, Limits};
use arose_crawl::url::{NormalUrl, Normalizer, SessionIds};

use crate::shared;
use crate::urls;

/// Samples are shortened: a long one tests nothing that a short one does not.
const MAX_SAMPLE: usize = 8 << 10;

const ROBOTS: &str = "\u{feff}User-agent: *\nCrawl-delay: 2.5\nRequest-rate: 1/5m 0600-0845\n\
    Visit-time: 2200-0400\nDisallow: /a*b$\nAllow: /a%3Ab\nSitemap: /s.xml\n\
    User-agent: arose\r\nDisallow:\r\n";
const SITEMAP: &str = "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>\
    <url><loc>http://x.example/a?b=1&amp;c</loc><lastmod>2026-01-01</lastmod><priority>NaN</priority></url>\
    <url><loc><![CDATA[http://x.example/b]]></loc></url></urlset>";

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// Changes a few bytes: removes, inserts or repeats some, or takes them from another sample.
fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut SplitMix) {
    let at = random.below(bytes.len() as u64 + 1) as usize;
    let end = (at + random.below(32) as usize).min(bytes.len());
    let from = random.below(other.len() as u64 + 1) as usize;
    let piece = &other[from..(from + random.below(32) as usize).min(other.len())];
    match random.below(5) {
        0 => drop(bytes.drain(at..end)),
        1 => drop(bytes.splice(at..end, piece.iter().copied())),
        2 => bytes.extend_from_within(at..end),
        3 => bytes.insert(at, random.below(256) as u8),
        _ => bytes
            .iter_mut()
            .skip(at)
            .take(1)
            .for_each(|byte| *byte ^= 1 << random.below(8)),
    }
}

/// Calls `check` with samples that were changed one to eight times.
fn broken(samples: &[Vec<u8>], salt: u64, check: impl Fn(&[u8])) {
    let mut random = SplitMix::new(number("FUZZ_SEED", 1) ^ salt);
    let draw = |random: &mut SplitMix| random.below(samples.len() as u64) as usize;
    for _ in 0..number("FUZZ_INPUTS", 20_000) {
        let mut bytes = samples[draw(&mut random)].clone();
        for _ in 0..=random.below(8) {
            let other = draw(&mut random);
            change(&mut bytes, &samples[other], &mut random);
        }
        check(&bytes);
    }
}

fn url(text: &str) -> NormalUrl {
    Normalizer::default().normalize(text, None).unwrap()
}

#[test]
fn broken_robots_files_have_a_verdict() {
    let mut samples = vec![ROBOTS.as_bytes().to_vec()];
    let rows = shared::rows("robots-suites/google_robots_test.jsonl").unwrap_or_default();
    let files = rows.iter().filter_map(|row| row["robots_txt"].as_str());
    samples.extend(files.map(|file| file.as_bytes()[..file.len().min(MAX_SAMPLE)].to_vec()));
    let urls = [
        "http://x.example/",
        "http://x.example/a%3Ab?c",
        "http://x.example/robots.txt",
    ];
    let urls = urls.map(url);
    let now = TimeOfDay::from_unix(12 * 3600);
    broken(&samples, 1, |file| {
        let robots = Robots::parse(file, "arose");
        assert!(robots.verdict(&urls[2]).allowed, "{}", file.escape_ascii());
        for url in &urls {
            let again = Robots::parse(file, "arose");
            assert_eq!(robots.verdict(url).allowed, again.verdict(url).allowed);
        }
        assert!(robots.delay(now) <= MAX_DELAY, "{}", file.escape_ascii());
    });
}

#[test]
fn broken_sitemaps_are_bounded() {
    let mut samples = vec![SITEMAP.as_bytes().to_vec()];
    if let Some(folder) = shared::path("sitemap-samples/crawler-commons/sitemaps") {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let bytes = std::fs::read(path).unwrap();
                samples.push(bytes[..bytes.len().min(MAX_SAMPLE)].to_vec());
            }
        }
    }
    broken(&samples, 2, |bytes| {
        let found = sitemap::parse(bytes, Limits::default());
        let n_urls = found.pages.len() + found.sitemaps.len();
        assert!(n_urls <= bytes.len(), "{}", bytes.escape_ascii());
    });
}

/// A URL, absolute or relative, has one normalized form or none, and its parts form the whole.
#[test]
fn broken_urls_have_one_normal_form() {
    let mut samples: Vec<Vec<u8>> = [
        "http://user:pw@x.example:8080/a/../b;c=1?d=%41&utm_source=e#f",
        "//x.example\\a\tb",
        "https://[::ffff:1.2.3.4]:0443/%zz?",
        "http://0x7f.1/",
        "HTTP://B\u{fc}cher.example./(S(abc))/?PHPSESSID=1&&=",
        "?a#b",
    ]
    .iter()
    .map(|url| url.as_bytes().to_vec())
    .collect();
    let suites = urls::inputs().unwrap_or_default();
    samples.extend(suites.into_iter().map(String::into_bytes));
    let base = url::Url::parse("http://example.org/a/b?c").unwrap();
    let normalizers = [SessionIds::Keep, SessionIds::Drop].map(|session_ids| Normalizer {
        session_ids,
        ..Normalizer::default()
    });
    broken(&samples, 3, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        for normalizer in &normalizers {
            let Ok(once) = normalizer.normalize(&text, Some(&base)) else {
                continue;
            };
            let again = normalizer.normalize(once.as_str(), None);
            assert_eq!(again.as_ref(), Ok(&once), "{text:?}");
            assert_eq!(format!("{}{}", once.origin(), once.rest()), once.as_str());
            assert!(once.path().starts_with('/') && once.host().contains(once.site()));
            // A byte that is escaped becomes three, and punycode is no longer than that.
            assert!(
                once.as_str().len() <= 9 * text.len() + 64,
                "{text:?}: {}",
                once.as_str()
            );
        }
    });
}
