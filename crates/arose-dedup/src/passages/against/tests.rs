//! Tests: both methods of finding matches against brute force, and the complete job on small
//! corpora.

use std::fs;
use std::num::NonZeroU64;
use std::path::Path;

use arose::mix::SplitMix;
use arose::passage::{MIN_WHOLE, Scope};
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use super::matches::{COMMON, LINKS, MatchSorters, SPANS_OF_DOCS, SPANS_OF_ITEMS, Sides, Span};
use super::{MatchRemoval, Reference, ReferenceSearch, lookup, matches, run, short, sorted};
use crate::column::Scan;
use crate::passages::anchors::Search;
use crate::passages::config::{PassagesConfig, Remove};
use crate::passages::partners::Link;
use crate::passages::partners::runs;
use crate::passages::tests::{random_corpus, write_columns};
use crate::passages::text::Texts;
use crate::{Error, Progress, Start};

fn scan<T: bytemuck::Pod>(path: &Path) -> Vec<T> {
    let mut scan = Scan::open(path).unwrap();
    std::iter::from_fn(|| scan.next().unwrap()).collect()
}

/// Spans of items and of documents as (number, start, end, is common), and shared runs as (item,
/// document, shift, start, end).
type Met = (
    [Vec<(u32, u32, u32, bool)>; 2],
    Vec<(u32, u32, i32, u32, u32)>,
);

fn met(folder: &Path, n_tokens: u32) -> Met {
    let spans = [SPANS_OF_ITEMS, SPANS_OF_DOCS].map(|name| {
        let spans = scan::<Span>(&folder.join(name)).into_iter();
        let spans = spans.map(|s| (s.doc, s.start, s.end, s.flags & COMMON != 0));
        spans.collect()
    });
    let links: Vec<Link> = scan(&folder.join(LINKS));
    let mut found = Vec::new();
    for links in links.chunk_by(|a, b| (a.doc, a.partner) == (b.doc, b.partner)) {
        let runs = runs(links, n_tokens).into_iter();
        found.extend(runs.map(|r| (r.doc, r.partner, r.shift, r.start, r.end)));
    }
    (spans, found)
}

/// The same result by brute force.
fn by_definition(docs: &[Vec<u64>], items: &[Vec<u64>], n: usize, common: u64) -> Met {
    let mut item_spans = Vec::new();
    let mut doc_spans = Vec::new();
    let mut found = Vec::new();
    let is_in = |text: &[u64], part: &[u64]| text.windows(part.len()).any(|other| other == part);
    let n_docs = |part: &[u64]| docs.iter().filter(|doc| is_in(doc, part)).count() as u64;
    for (item, tokens) in (0..).zip(items) {
        let is_short = (MIN_WHOLE..n).contains(&tokens.len());
        let length = if is_short { tokens.len() } else { n };
        // Windows of the item that are listed one by one.
        let mut told = Vec::new();
        for (start, part) in (0_u32..).zip(tokens.windows(length)) {
            let n_docs = n_docs(part);
            let end = start + length as u32;
            if n_docs > 0 {
                item_spans.push((item, start, end, n_docs > common));
            }
            told.push(n_docs > 0 && n_docs <= common);
        }
        for (doc, text) in (0..).zip(docs) {
            for i in (0..told.len()).filter(|i| told[*i]) {
                for j in (0..text.len()).filter(|j| text[*j..].starts_with(&tokens[i..i + length]))
                {
                    let is_start = i == 0 || j == 0 || !told[i - 1] || text[j - 1] != tokens[i - 1];
                    if !is_start {
                        continue;
                    }
                    let next = |k: &usize| {
                        told.get(i + k).is_some_and(|told| *told)
                            && text.get(j + k + length - 1) == Some(&tokens[i + k + length - 1])
                    };
                    let n_more = (1..).take_while(next).count();
                    let end = i + n_more + length;
                    found.push((item, doc, j as i32 - i as i32, i as u32, end as u32));
                }
            }
        }
    }
    for (doc, text) in (0..).zip(docs) {
        for (start, part) in (0_u32..).zip(text.windows(n)) {
            if items.iter().any(|item| is_in(item, part)) {
                doc_spans.push((doc, start, start + n as u32, n_docs(part) > common));
            }
        }
        for item in items
            .iter()
            .filter(|item| (MIN_WHOLE..n).contains(&item.len()))
        {
            for start in (0..text.len()).filter(|at| text[*at..].starts_with(item)) {
                let (start, end) = (start as u32, (start + item.len()) as u32);
                doc_spans.push((doc, start, end, n_docs(item) > common));
            }
        }
    }
    item_spans.sort_unstable();
    doc_spans.sort_unstable();
    found.sort_unstable();
    ([item_spans, doc_spans], found)
}

/// With any amount of memory, the stage finds the matches of the definition.
#[test]
fn issue_29_matches_are_those_of_the_definition() {
    let mut random = SplitMix::new(7);
    let mut n_matches = 0;
    for _ in 0..200 {
        let mut docs = random_corpus(&mut random);
        let mut items = random_corpus(&mut random);
        // Common text, in a window and in a short item.
        docs.push([&items[0][..], &[900], &items[0]].concat());
        items.push(docs[0].iter().take(10).copied().collect());
        let n_tokens = 1 + random.below(12) as usize;
        let common = 1 + random.below(3);
        let expected = by_definition(&docs, &items, n_tokens, common);
        n_matches += expected.1.len();
        let search = Search {
            allowance: 0,
            ..Search::new(
                &PassagesConfig {
                    min: n_tokens,
                    ..PassagesConfig::default()
                },
                Scope::Any,
            )
        };
        let [corpus, reference] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        write_columns(corpus.path(), &docs);
        write_columns(reference.path(), &items);
        let sides = Sides {
            corpus: &Texts::new(corpus.path()),
            reference: &Texts::new(reference.path()),
        };
        for is_in_memory in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            let progress = Progress::of_reference();
            let mut out = MatchSorters::new(folder, &search, common);
            match is_in_memory {
                true => {
                    let whole = matches::whole(sides.reference, &search).unwrap();
                    lookup::run(sides.corpus, &whole, &search, folder, &mut out, &progress).unwrap()
                }
                false => sorted::run(&sides, &search, folder, &mut out, &progress).unwrap(),
            };
            short::run(&sides, &search, 0, folder, &mut out, &progress).unwrap();
            out.finish(folder).unwrap();
            let found = met(folder, n_tokens as u32);
            assert_eq!(
                found, expected,
                "{docs:?} {items:?} {n_tokens} {common} {is_in_memory}"
            );
        }
    }
    assert!(n_matches > 1000, "{n_matches} matches");
}

fn jsonl(path: &Path, texts: &[String]) {
    let lines = texts
        .iter()
        .map(|text| json!({ "text": text }).to_string() + "\n");
    fs::write(path, lines.collect::<String>()).unwrap();
}

/// Searches texts for items. Returns the summary and the remaining texts.
fn search(
    texts: &[String],
    items: &[String],
    found: MatchRemoval,
    config: &PassagesConfig,
) -> Result<(Value, Vec<String>), Error> {
    let folder = tempfile::tempdir().unwrap();
    let [input, reference, out] =
        ["in.jsonl", "items.jsonl", "out"].map(|name| folder.path().join(name));
    jsonl(&input, texts);
    jsonl(&reference, items);
    let against = ReferenceSearch {
        reference: Reference::Files(vec![reference]),
        common: NonZeroU64::new(1000).unwrap(),
        found,
    };
    let progress = Progress::of_reference();
    let summary = run(&[input], &against, config, &out, Start::Resume, &progress)?;
    let kept = fs::read_to_string(out.join("kept.jsonl")).unwrap_or_default();
    let left = kept.lines().map(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["text"].as_str().unwrap().to_owned()
    });
    Ok((summary, left.collect()))
}

fn config(min: usize, remove: Option<Remove>) -> PassagesConfig {
    PassagesConfig {
        min,
        remove,
        ..PassagesConfig::default()
    }
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

#[test]
fn issue_29_removal_takes_spans_or_documents() {
    let corpus = texts([
        "Before. One two three four five six. After.",
        "Nothing in common here.",
        "one TWO three",
    ]);
    let items = texts(["Zero one two, three four five!", "tiny"]);
    let remove = || config(3, Some(Remove::default()));
    let (summary, left) = search(&corpus, &items, MatchRemoval::Cut, &remove()).unwrap();
    assert_eq!(left, ["Before. six. After.", "Nothing in common here."]);
    let counts = &summary["counts"];
    assert_eq!(counts["items_found"], 1);
    assert_eq!(counts["items_undecided"], 1);
    assert_eq!(counts["documents_found"], 2);
    assert_eq!(summary["removal"]["removed"], 8);
    let (_, left) = search(&corpus, &items, MatchRemoval::Drop, &remove()).unwrap();
    assert_eq!(left, ["Nothing in common here."]);
    // By default, no corpus is written.
    let (summary, left) = search(&corpus, &items, MatchRemoval::Cut, &config(3, None)).unwrap();
    assert!(left.is_empty());
    assert_eq!(summary["removal"]["written"], false);
}

#[test]
fn issue_29_a_reference_without_text_is_an_error() {
    for items in [texts([]), texts(["", "..."])] {
        let result = search(&texts(["one"]), &items, MatchRemoval::Cut, &config(3, None));
        assert!(matches!(result, Err(Error::EmptyReference { .. })));
    }
}

/// A column of the table of items.
fn numbers(out: &Path, name: &str) -> Vec<u64> {
    let file = fs::File::open(out.join("items.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let batches = reader.build().unwrap().map(Result::unwrap);
    let columns = batches.map(|batch| batch.column_by_name(name).unwrap().clone());
    columns
        .flat_map(|column| column.as_primitive::<UInt64Type>().values().to_vec())
        .collect()
}

/// Words that no two texts share by chance.
fn words(random: &mut SplitMix, n: u64) -> Vec<String> {
    let word = |_| format!("w{:x}", random.next_u64() >> 32);
    (0..n).map(word).collect()
}

/// 600 questions of 25 to 150 words, each planted in a page: 100 verbatim, 100 broken into lines of
/// 8 words, 100 with other case and symbols, 100 with every 20th word changed, 100 with every 10th
/// word changed, and 100 by half. Of those with every 10th word changed, two have a compound of
/// five tokens in an unchanged stretch. One of those by half has 25 words. Four other pages share
/// nine words with a question.
#[test]
fn issue_29_planted_questions_are_found() {
    let mut random = SplitMix::new(13);
    let mut questions = Vec::new();
    let mut pages = Vec::new();
    for kind in 0..6 {
        for number in 0..100 {
            let n_words = match (kind, number) {
                (5, 0) => 25,
                (5, _) => 26 + random.below(125),
                _ => 25 + random.below(126),
            };
            let mut question = words(&mut random, n_words);
            if kind == 4 && number < 2 {
                question[14] = "state-of-the-art-model".to_owned();
            }
            let mut planted = question.clone();
            match kind {
                3 | 4 => {
                    let step = if kind == 3 { 20 } else { 10 };
                    for word in planted.iter_mut().skip(step - 1).step_by(step) {
                        *word = words(&mut random, 1).remove(0);
                    }
                }
                5 => planted.truncate(n_words as usize / 2),
                _ => {}
            }
            let planted = match kind {
                1 => planted
                    .chunks(8)
                    .map(|line| line.join(" "))
                    .collect::<Vec<_>>()
                    .join("\n"),
                2 => format!("«{}»", planted.join(", ").to_uppercase()),
                _ => planted.join(" "),
            };
            let (before, after) = (words(&mut random, 100), words(&mut random, 100));
            pages.push(format!(
                "{} {planted} {}",
                before.join(" "),
                after.join(" ")
            ));
            questions.push(question);
        }
    }
    for question in &questions[..4] {
        let mut page = words(&mut random, 200);
        page.splice(50..50, question[..9].iter().cloned());
        pages.push(page.join(" "));
    }
    let items: Vec<String> = questions.iter().map(|words| words.join(" ")).collect();
    let folder = tempfile::tempdir().unwrap();
    let [input, reference] = ["in.jsonl", "items.jsonl"].map(|name| folder.path().join(name));
    jsonl(&input, &pages);
    jsonl(&reference, &items);
    for (min, by_kind, n_documents) in [(13, [100, 100, 100, 100, 2, 99], 501), (8, [100; 6], 604)]
    {
        let out = folder.path().join(min.to_string());
        let against = ReferenceSearch {
            reference: Reference::Files(vec![reference.clone()]),
            common: NonZeroU64::new(1000).unwrap(),
            found: MatchRemoval::Cut,
        };
        let inputs = [input.clone()];
        let (config, progress) = (config(min, None), Progress::of_reference());
        let summary = run(&inputs, &against, &config, &out, Start::Resume, &progress).unwrap();
        let found = numbers(&out, "covered");
        let counts: Vec<usize> = found
            .chunks(100)
            .map(|kind| kind.iter().filter(|covered| **covered > 0).count())
            .collect();
        assert_eq!(counts, by_kind, "{min}");
        assert_eq!(
            summary["counts"]["items_found"],
            by_kind.iter().sum::<usize>()
        );
        assert_eq!(summary["counts"]["documents_found"], n_documents);
        // Verbatim questions are found completely.
        let longest = numbers(&out, "longest");
        let tokens = numbers(&out, "tokens");
        assert_eq!(longest[..300], tokens[..300]);
    }
}
