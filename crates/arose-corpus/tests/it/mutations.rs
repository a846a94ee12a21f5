//! Real pages, broken at random: no panic, bounded text, the same result twice.

use arose_corpus::html::{Config, Links, Mode, extract};
use proptest::prelude::*;
use proptest::test_runner::{Config as RunnerConfig, TestRunner};
use url::Url;

use crate::shared::pages;

/// A change to a page, places given as shares of its length.
#[derive(Clone, Debug)]
enum Change {
    /// Drops a stretch.
    Cut(f64, f64),
    /// Repeats a stretch elsewhere.
    Copy(f64, f64, f64),
    /// Overwrites a byte.
    Set(f64, u8),
    /// Inserts a piece of markup.
    Insert(f64, &'static str),
}

fn change() -> impl Strategy<Value = Change> {
    let pieces = vec![
        "<", ">", "\"", "'", "<!--", "-->", "</", "<script>", "<svg>", "&#", "\0", "<title>",
    ];
    prop_oneof![
        (0.0..1.0, 0.0..0.2).prop_map(|(at, len)| Change::Cut(at, len)),
        (0.0..1.0, 0.0..0.1, 0.0..1.0).prop_map(|(at, len, to)| Change::Copy(at, len, to)),
        (0.0..1.0, any::<u8>()).prop_map(|(at, byte)| Change::Set(at, byte)),
        (0.0..1.0, prop::sample::select(pieces)).prop_map(|(at, text)| Change::Insert(at, text)),
    ]
}

fn apply(page: &mut Vec<u8>, change: &Change) {
    let n = page.len();
    let place = |share: f64| ((n as f64 * share) as usize).min(n);
    match *change {
        Change::Cut(at, len) => drop(page.drain(place(at)..place(at + len))),
        Change::Copy(at, len, to) => {
            let copy = page[place(at)..place(at + len)].to_vec();
            page.splice(place(to)..place(to), copy);
        }
        Change::Set(at, byte) => page
            .iter_mut()
            .skip(place(at))
            .take(1)
            .for_each(|old| *old = byte),
        Change::Insert(at, text) => drop(page.splice(place(at)..place(at), text.bytes())),
    }
}

#[test]
fn broken_pages_are_read() {
    let pages = pages("extract-readability-130");
    if pages.is_empty() {
        return;
    }
    let url = Url::parse("https://example.org/dir/page").unwrap();
    let mut runner = TestRunner::new(RunnerConfig::with_cases(200));
    let case = (0..pages.len(), prop::collection::vec(change(), 1..8));
    let result = runner.run(&case, |(at, changes)| {
        let mut page = pages[at]["html"].as_str().unwrap().as_bytes().to_vec();
        changes.iter().for_each(|change| apply(&mut page, change));
        let html = String::from_utf8_lossy(&page);
        for mode in [Mode::Henzinger, Mode::Content] {
            let config = Config {
                mode,
                links: Links::Collect,
                ..Config::default()
            };
            let found = extract(&html, Some(&url), &config);
            prop_assert!(found.text.len() <= 3 * html.len() + 1);
            prop_assert_eq!(&found, &extract(&html, Some(&url), &config));
        }
        Ok(())
    });
    result.unwrap();
}
