//! Tests: the stages against brute force, and the complete job on small corpora.

use std::fs;
use std::num::NonZeroU64;
use std::path::Path;

use arose::mix::SplitMix;
use arose::passage::{Occurrence, Place, Removal, Scope, Unit};
use arose::testing::repeated_passages;
use arose::winnow::Ties;
use serde_json::{Value, json};

use super::anchors::Search;
use super::config::{Digits, PassagesConfig, Remove, TextElements};
use super::occurrences::{OCCURRENCES, OccurrenceRun, PASSAGES, PassageRecord};
use super::text::{DOCS, STARTS, TEXTS, TOKENS, TextRecord, Texts};
use super::{anchors, occurrences, runs};
use crate::column::{Scan, Writer};
use crate::{Error, Progress, Start};

/// Writes the columns of documents whose tokens are all one byte long.
pub(super) fn write_columns(folder: &Path, docs: &[Vec<u64>]) {
    let mut records = Writer::create(&folder.join(DOCS)).unwrap();
    let mut tokens = Writer::<u64>::create(&folder.join(TOKENS)).unwrap();
    let mut starts = Writer::<u32>::create(&folder.join(STARTS)).unwrap();
    let mut texts = Writer::<u8>::create(&folder.join(TEXTS)).unwrap();
    for doc in docs {
        records
            .push(&TextRecord {
                tokens_at: tokens.len(),
                text_at: texts.len(),
                offset: 0,
                inner: 0,
                source: 0,
                n_tokens: doc.len() as u32,
                n_bytes: doc.len() as u32,
                is_ascii: 1,
            })
            .unwrap();
        tokens.extend(doc).unwrap();
        starts
            .extend(&(0..doc.len() as u32).collect::<Vec<_>>())
            .unwrap();
        texts.extend(&vec![b'x'; doc.len()]).unwrap();
    }
    records.finish().unwrap();
    tokens.finish().unwrap();
    starts.finish().unwrap();
    texts.finish().unwrap();
}

/// Returns the occurrences in each document, as found by the stages.
fn find(docs: &[Vec<u64>], search: &Search, times: u64) -> Vec<Vec<Occurrence>> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_columns(folder, docs);
    let texts = Texts::new(folder);
    let progress = Progress::of_passages();
    let config = PassagesConfig {
        times: NonZeroU64::new(times).unwrap(),
        scope: search.scope,
        ..PassagesConfig::default()
    };
    let found = anchors::run(&texts, search, folder, &progress).unwrap();
    let found = runs::run(&texts, folder, &found, search, folder, &progress).unwrap();
    occurrences::run(&texts, folder, &found, search, &config, folder, &progress).unwrap();
    let mut passages = Scan::<PassageRecord>::open(&folder.join(PASSAGES)).unwrap();
    let mut found = Scan::<OccurrenceRun>::open(&folder.join(OCCURRENCES)).unwrap();
    let mut all = vec![Vec::new(); docs.len()];
    while let Some(passage) = passages.next().unwrap() {
        for _ in 0..passage.n_records {
            let one = found.next().unwrap().unwrap();
            if passage.is_wanted == 0 {
                continue;
            }
            let own = (0..one.times).map(|i| Occurrence {
                start: one.start_of(i),
                end: one.end + i * one.step,
                count: passage.n_places,
                first: Place {
                    doc: one.first_doc,
                    token: one.first_token,
                },
            });
            all[one.doc as usize].extend(own);
        }
    }
    all.iter_mut().for_each(|document| document.sort_unstable());
    all
}

/// 1 to 4 documents over 1 to 8 symbols, with some strings in several places.
pub(super) fn random_corpus(random: &mut SplitMix) -> Vec<Vec<u64>> {
    let n_symbols = 1 + random.below(8);
    let text = |random: &mut SplitMix, n: u64| -> Vec<u64> {
        (0..n).map(|_| 100 + random.below(n_symbols)).collect()
    };
    let n_planted = random.below(12);
    let planted = text(random, n_planted);
    let n_docs = 1 + random.below(4);
    let document = |_| {
        let mut tokens = Vec::new();
        for _ in 0..random.below(4) {
            let n = random.below(12);
            tokens.extend(text(random, n));
            if random.below(2) == 0 {
                tokens.extend(&planted);
            }
        }
        tokens
    };
    (0..n_docs).map(document).collect()
}

fn three_values(hash: u64) -> u64 {
    hash % 3 * 2
}

/// For any length of grams, rule of selection and hash, the stages find the passages of the
/// definition.
#[test]
fn stages_find_what_brute_force_finds() {
    let mut random = SplitMix::new(29);
    let mut n_occurrences = 0;
    for round in 0..60 {
        let docs = random_corpus(&mut random);
        let n_tokens = 1 + random.below(7) as usize;
        let scope = [Scope::Any, Scope::Across, Scope::Within][round % 3];
        let times = 2 + random.below(2);
        let expected: Vec<_> = repeated_passages(&docs, n_tokens, times, scope).collect();
        n_occurrences += expected.iter().map(Vec::len).sum::<usize>();
        for gram in 1..=n_tokens {
            for ties in [Ties::Robust, Ties::Rightmost] {
                for rehash in [None, Some(three_values as fn(u64) -> u64)] {
                    let search = Search {
                        n_tokens,
                        gram,
                        ties,
                        rehash,
                        scope,
                        allowance: 0,
                    };
                    let found = find(&docs, &search, times);
                    assert_eq!(found, expected, "{docs:?} {search:?}");
                }
            }
        }
    }
    assert!(n_occurrences > 500, "{n_occurrences} occurrences");
}

fn config(min: usize) -> PassagesConfig {
    PassagesConfig {
        min,
        ..PassagesConfig::default()
    }
}

/// Writes texts as JSON Lines, searches them, and returns the summary and the remaining texts.
fn run(texts: &[&str], config: &PassagesConfig) -> (Value, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.jsonl");
    let lines = texts
        .iter()
        .map(|text| json!({ "text": text }).to_string() + "\n");
    fs::write(&input, lines.collect::<String>()).unwrap();
    let out = folder.path().join("out");
    let summary = super::run(
        &[input],
        config,
        &out,
        Start::Resume,
        &Progress::of_passages(),
    );
    let summary = summary.unwrap();
    let kept = fs::read_to_string(out.join("kept.jsonl")).unwrap_or_default();
    let texts = kept.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["text"].as_str().unwrap().to_owned()
    });
    (summary, texts.collect())
}

/// The remaining texts, separated by `; `. Dropped documents are missing.
#[track_caller]
fn check(texts: &[&str], min: usize, left: [&str; 3]) {
    for (removal, expected) in [Removal::Later, Removal::WholeFirst, Removal::All]
        .into_iter()
        .zip(left)
    {
        let remove = Remove {
            removal,
            min_left: 0,
            ..Remove::default()
        };
        let config = PassagesConfig {
            remove: Some(remove),
            ..config(min)
        };
        let (summary, texts) = run(texts, &config);
        let texts: Vec<&str> = texts.iter().map(|text| text.trim_end()).collect();
        assert_eq!(texts.join("; "), expected, "{removal:?}");
        let removal = &summary["removal"];
        let parts = removal["kept"].as_u64().unwrap() + removal["removed"].as_u64().unwrap();
        assert_eq!(summary["counts"]["tokens"], parts);
    }
}

const R: &str = "a rose is a rose is a rose";

/// The worked examples of the definitions, from files to files.
#[test]
fn oracles_of_removal() {
    check(&[R], 1, ["a rose is", "a rose is", ""]);
    check(&[R], 2, ["a rose is", "a rose is a", ""]);
    for min in 3..=5 {
        check(&[R], min, ["a rose is", "a rose is a rose", ""]);
    }
    check(&[R], 6, [R, R, R]);
    check(&["x x x x x x x"], 3, ["x", "x x x", ""]);
    let moved = ["e a b c d f g h", "e f a b c d g h"];
    let kept = "e a b c d f g h; e f g h";
    check(&moved, 4, [kept, kept, "e f g h; e f g h"]);
    let nested = ["p q r s t u v w", "1 p q r s t u v w 2", "3 r s t u 4"];
    let kept = "p q r s t u v w; 1 2; 3 4";
    check(&nested, 3, [kept, kept, "; 1 2; 3 4"]);
    let chained = ["a b c d e", "c d e f g", "b c d e f"];
    check(
        &chained,
        3,
        ["a b c d e; f g; ", "a b c d e; d e f g; ", "a; g; "],
    );
    let chained = ["a b c d", "a b c d e f", "c d e f g"];
    check(
        &chained,
        3,
        ["a b c d; e f; g", "a b c d; c d e f; g", "; ; g"],
    );
    let runs = [
        "a a a a a a a a a a a a b b b c c c c c",
        "a a a a a a a a a a a a c c c c c",
    ];
    check(&runs, 3, ["a b b b c; ", "a a a b b b c c c; ", "b b b; "]);
    let poems = ["春眠不覚暁処処聞啼鳥", "夜来風雨声春眠不覚暁"];
    let kept = "春眠不覚暁処処聞啼鳥; 夜来風雨声";
    check(&poems, 5, [kept, kept, "処処聞啼鳥; 夜来風雨声"]);
}

#[test]
fn versions_of_a_text() {
    let texts = [
        "a b c d e f g h i j",
        "a b c x e f g h i j",
        "a b c x e f g y i j",
    ];
    let first = texts[0];
    let left = [
        &format!("{first}; x; y i j")[..],
        &format!("{first}; b c x e f; y i j"),
        "d; ; y i j",
    ];
    check(&texts, 3, left);
    let (summary, _) = run(&texts, &config(3));
    let counts = &summary["counts"];
    assert_eq!([&counts["occurrences"], &counts["passages"]], [10, 4]);
}

#[test]
fn scopes() {
    let left = |scope| {
        let config = PassagesConfig {
            scope,
            remove: Some(Remove::default()),
            ..config(3)
        };
        run(&[R, "is a rose is"], &config).1
    };
    assert_eq!(left(Scope::Any), ["a rose is "]);
    assert_eq!(left(Scope::Across), [R]);
    assert_eq!(left(Scope::Within), ["a rose is ", "is a rose is"]);
}

fn units(unit: Unit, span: usize, min_words: u32, digits: Digits) -> PassagesConfig {
    PassagesConfig {
        text: TextElements::Units {
            unit,
            min_words,
            digits,
        },
        min: span,
        remove: Some(Remove::default()),
        ..PassagesConfig::default()
    }
}

#[test]
fn units_in_place_of_tokens() {
    let pages = [
        "Home\nAbout\nA rose\nContact\n",
        "Home\nAbout\nAnother\nContact\n",
    ];
    let (summary, left) = run(&pages, &units(Unit::Line, 1, 0, Digits::Keep));
    assert_eq!(left, [pages[0], "Another\n"]);
    assert_eq!(summary["counts"]["occurrences"], 4);
    // Lines with fewer than two words are never repeated.
    let (summary, left) = run(&pages, &units(Unit::Line, 1, 2, Digits::Keep));
    assert_eq!(
        (left, &summary["counts"]["repeated"]),
        (pages.map(str::to_owned).into(), &json!(0))
    );
    let sentences = ["Aa. Bb. Cc. Dd.", "Xx. Aa. Bb. Cc. Yy.", "Aa. Bb."];
    let (_, left) = run(&sentences, &units(Unit::Sentence, 3, 0, Digits::Keep));
    assert_eq!(left, ["Aa. Bb. Cc. Dd.", "Xx. Yy.", "Aa. Bb."]);
    let dated = ["Printed 2024-01-02\nx\n", "Printed 2025-11-12\ny\n"];
    let (_, left) = run(&dated, &units(Unit::Line, 1, 0, Digits::Zero));
    assert_eq!(left, [dated[0], "y\n"]);
    // Case and symbols count, whitespace does not.
    let alike = ["A  rose!\n", "a rose!\n", "A rose\n", "A rose!\nB"];
    let (_, left) = run(&alike, &units(Unit::Paragraph, 1, 0, Digits::Keep));
    assert_eq!(left, alike);
    let (_, left) = run(&alike, &units(Unit::Line, 1, 0, Digits::Keep));
    assert_eq!(left, [alike[0], alike[1], alike[2], "B"]);
}

#[test]
fn cuts_at_units_and_seams() {
    let texts = [
        "One two three four five.",
        "Zero.\nOne two. Three four. Five six.\nSeven.",
    ];
    let remove = |cut, seam: &str| PassagesConfig {
        remove: Some(Remove {
            cut,
            seam: seam.to_owned(),
            ..Remove::default()
        }),
        ..config(3)
    };
    let left = |cut, seam| run(&texts, &remove(cut, seam)).1[1].clone();
    assert_eq!(left(None, ""), "Zero.\nsix.\nSeven.");
    assert_eq!(left(None, "[...] "), "Zero.\n[...] six.\nSeven.");
    assert_eq!(left(Some(Unit::Sentence), ""), "Zero.\nFive six.\nSeven.");
    assert_eq!(left(Some(Unit::Line), ""), texts[1]);
}

#[test]
fn symbols_and_case_count_for_code() {
    let texts = [
        "if (a) { return b; }",
        "IF a RETURN b",
        "if (a) { return b; }",
    ];
    let config = |text| PassagesConfig {
        text,
        remove: Some(Remove::default()),
        ..config(4)
    };
    assert_eq!(run(&texts, &config(TextElements::Words)).1, texts[..1]);
    assert_eq!(run(&texts, &config(TextElements::Symbols)).1, texts[..2]);
}

#[test]
fn absurd_settings_are_refused() {
    for (min, times) in [(0, 2), (65_537, 2), (5, 1)] {
        let config = PassagesConfig {
            times: NonZeroU64::new(times).unwrap(),
            ..config(min)
        };
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let result = super::run(&[], &config, &out, Start::Resume, &Progress::of_passages());
        assert!(
            matches!(result, Err(Error::Setting(_) | Error::Times)),
            "{min} {times}"
        );
        assert!(!out.exists());
    }
}
