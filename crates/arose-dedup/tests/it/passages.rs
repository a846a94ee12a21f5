//! `passages` as its users see it: counts on published data, and the same bytes in any way.

use std::path::{Path, PathBuf};

use arose::passage::Removal;
use arose_dedup::passages::{Config, Remove, run};
use arose_dedup::{Progress, Start};
use serde_json::Value;

fn summary(input: &Path, config: &Config, out: &Path) -> Value {
    let inputs = [input.to_owned()];
    run(
        &inputs,
        config,
        out,
        Start::Resume,
        &Progress::of_passages(),
    )
    .unwrap()
}

fn shared(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = root.join(name);
    if !path.exists() {
        println!("{} is not there; the test is skipped", path.display());
        return None;
    }
    Some(path)
}

/// Windows repeated and distinct, occurrences and passages, tokens covered, removed by `later` and
/// `whole-first`, documents emptied.
#[track_caller]
fn check(name: &str, n_tokens: u64, min: usize, expected: [u64; 8]) {
    let Some(input) = shared(name) else {
        return;
    };
    let mut removed = Vec::new();
    for removal in [Removal::Later, Removal::WholeFirst] {
        let folder = tempfile::tempdir().unwrap();
        let config = Config {
            min,
            memory: 256 << 20,
            remove: Some(Remove {
                removal,
                ..Remove::default()
            }),
            ..Config::default()
        };
        let summary = summary(&input, &config, &folder.path().join("out"));
        let number = |part: &str, name: &str| summary[part][name].as_u64().unwrap();
        assert_eq!(number("counts", "tokens"), n_tokens);
        let names = ["repeated", "distinct", "occurrences", "passages", "covered"];
        let counts = names.map(|name| number("counts", name));
        assert_eq!(counts[..], expected[..5], "{name} {min}");
        assert_eq!(number("counts", "later"), counts[0] - counts[1]);
        removed.push(number("removal", "removed"));
        match removal {
            Removal::Later => removed.push(number("removal", "documents_emptied")),
            _ => assert_eq!(number("removal", "windows_without_whole_copy"), 0),
        }
    }
    assert_eq!(
        [removed[0], removed[2], removed[1]],
        expected[5..],
        "{name} {min}"
    );
}

#[test]
fn revisions_of_documents() {
    let name = "neardup-pep-revisions/revisions.jsonl.zst";
    let n_tokens = 3_912_839;
    let at_13 = [
        3_517_898, 939_037, 110_968, 29_200, 3_680_234, 2_768_027, 2_544_313, 55,
    ];
    check(name, n_tokens, 13, at_13);
    let at_50 = [
        3_153_747, 933_373, 35_984, 11_430, 3_480_459, 2_533_745, 2_198_096, 23,
    ];
    check(name, n_tokens, 50, at_50);
    let at_100 = [
        2_863_883, 897_797, 21_415, 7_104, 3_317_529, 2_373_035, 1_979_630, 23,
    ];
    check(name, n_tokens, 100, at_100);
}

#[test]
fn short_answers() {
    let name = "neardup-short-answers/answers.jsonl.zst";
    check(
        name,
        21_627,
        8,
        [6_243, 1_893, 1_404, 373, 8_414, 6_147, 5_340, 1],
    );
    check(
        name,
        21_627,
        13,
        [4_924, 1_651, 631, 191, 6_932, 4_794, 4_164, 1],
    );
}
