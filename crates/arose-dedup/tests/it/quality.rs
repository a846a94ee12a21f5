//! Tests of quality as columns and filters of a run.

use std::fs;

use arose::mix::SplitMix;
use arose::quality::{RULES, Selection};
use arose::rule::{Criterion, Remove};
use arose_dedup::{Config, Error, Exact, Progress, Quality, Start};
use serde_json::{Value, json};

use crate::results::counts_add_up;
use crate::support::{Bench, results};

fn with_filter(names: &[&str]) -> Config {
    let filters = names.iter().map(|name| Selection::named(name).unwrap());
    let filter = filters.fold(Selection::default(), Selection::union);
    Config {
        quality: Some(Quality { filter }),
        ..Config::of(Criterion::jaccard())
    }
}

/// Prose that passes every rule.
fn prose(seed: u64) -> String {
    let mut random = SplitMix::new(seed);
    let mut word = || {
        let letters = (0..5).map(|_| char::from(b'a' + random.below(26) as u8));
        letters.collect::<String>()
    };
    let mut line = || {
        let words: Vec<String> = (0..16).map(|_| word()).collect();
        format!("the {} of it.\n", words.join(" "))
    };
    (0..10).map(|_| line()).collect()
}

/// The same words on short lines, which FineWeb rejects.
fn list(seed: u64) -> String {
    prose(seed).replace(' ', "\n")
}

fn write(bench: &Bench, texts: &[String]) {
    let lines = texts.iter().enumerate().map(|(i, text)| {
        let url = format!("http://site{}.example/{i}", i % 3);
        json!({ "id": i.to_string(), "url": url, "text": text }).to_string() + "\n"
    });
    bench.write("input.jsonl", &lines.collect::<String>());
}

fn column(bench: &Bench, name: &str) -> Vec<Option<String>> {
    use arrow_array::{Array, cast::AsArray};
    let file = fs::File::open(bench.path("out/documents.parquet")).unwrap();
    let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file);
    let mut found = Vec::new();
    for batch in reader.unwrap().build().unwrap() {
        let batch = batch.unwrap();
        let column = batch.column_by_name(name).unwrap();
        for i in 0..column.len() {
            found.push(column.is_valid(i).then(|| {
                match column.data_type() {
                    arrow_schema::DataType::Utf8 => column.as_string::<i32>().value(i).to_owned(),
                    _ => column
                        .as_primitive::<arrow_array::types::Float32Type>()
                        .value(i)
                        .to_string(),
                }
            }));
        }
    }
    found
}

#[test]
fn columns_are_there_and_nothing_is_dropped_without_a_filter() {
    let bench = Bench::new();
    write(&bench, &[prose(1), list(2), String::new(), prose(1)]);
    let summary = bench.run(&with_filter(&[]));
    counts_add_up(&summary);
    assert_eq!(summary["counts"]["dropped_filtered"], 0);
    assert_eq!(summary["counts"]["dropped_exact"], 1);
    let failed = column(&bench, "failed_rules");
    assert_eq!(failed[0], None);
    let lines = failed[1].clone().unwrap();
    for rule in ["fineweb_short_lines", "fineweb_newlines", "c4_sentences"] {
        assert!(lines.contains(rule), "{lines}");
    }
    assert!(failed[2].clone().unwrap().contains("gopher_words"));
    for rule in &RULES {
        assert_eq!(column(&bench, rule.name).len(), 4);
    }
    assert_eq!(column(&bench, "gopher_words")[0].as_deref(), Some("190"));
    assert_eq!(column(&bench, "quality")[0].as_deref(), Some("1"));
    assert_eq!(column(&bench, "hidden_share")[0], None);
    assert_eq!(column(&bench, "filtered_by"), [None, None, None, None]);
    let rules = summary["quality"]["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["rule"] == "fineweb_newlines");
    let rule = rule.unwrap();
    assert_eq!(
        (&rule["fails"], &rule["examples"][0]["id"]),
        (&json!(1), &json!("1"))
    );
    let report = fs::read_to_string(bench.path("out/report.html")).unwrap();
    assert!(
        report.contains("<h2 id=\"quality-h\">Quality</h2>"),
        "{report}"
    );
    assert!(report.contains("fineweb_newlines"));
    assert_eq!(summary["quality"]["fails_by_family"]["fineweb"], 2);
}

/// Without the option, the results do not change.
#[test]
fn nothing_changes_unless_asked_for() {
    let bench = Bench::new();
    write(&bench, &[prose(1), list(2), prose(1)]);
    let summary = bench.run(&Config::of(Criterion::jaccard()));
    assert_eq!(summary["quality"], Value::Null);
    assert!(summary["settings"].get("quality").is_none());
    let docs = bench.docs();
    assert!(docs[1].kept);
    let report = fs::read_to_string(bench.path("out/report.html")).unwrap();
    assert!(!report.contains("quality-h"));
}

/// Nothing is dropped for a document that is itself dropped. The list comes first, has the words of
/// the prose, and would be the document to keep.
#[test]
fn what_is_filtered_keeps_nobody_out() {
    let criteria = [
        Criterion::Exact,
        Criterion::Jaccard(arose::Threshold::new(0.8).unwrap()),
        Criterion::Content(Remove::Same),
        Criterion::Contained(arose::Threshold::new(0.9).unwrap()),
        Criterion::SITE,
    ];
    for criterion in criteria {
        let bench = Bench::new();
        write(&bench, &[list(1), prose(1), prose(2), prose(1)]);
        let mut config = with_filter(&["fineweb"]);
        config.policy.criterion = criterion;
        let summary = bench.run(&config);
        counts_add_up(&summary);
        let docs = bench.docs();
        let rules: Vec<_> = docs.iter().map(|doc| doc.rule.as_deref()).collect();
        assert_eq!(
            rules,
            [Some("filter"), None, None, Some("exact")],
            "{criterion:?}"
        );
        assert_eq!(docs[3].kept_doc, Some(1));
        assert_eq!(docs[0].kept_doc, None);
        assert_eq!(summary["counts"]["dropped_filtered"], 1);
        assert_eq!(summary["counts"]["empty"], 0);
        let filtered = column(&bench, "filtered_by");
        assert!(filtered[0].as_ref().unwrap().contains("fineweb_newlines"));
        let kept = fs::read_to_string(bench.path("out/kept.jsonl")).unwrap();
        assert_eq!(kept.lines().count(), 2, "{criterion:?}");
        assert!(!kept.contains("\"id\":\"0\""));
    }
}

#[test]
fn urls_and_bytes_are_filtered_too() {
    let bench = Bench::new();
    let line =
        |text: String| json!({ "url": "http://a.example/", "text": text }).to_string() + "\n";
    bench.write(
        "input.jsonl",
        &(line(list(1)) + &line(prose(1)) + &line(prose(2))),
    );
    let mut config = with_filter(&["fineweb_newlines"]);
    config.policy.criterion = Criterion::Url;
    bench.run(&config);
    let rules: Vec<_> = bench.docs().into_iter().map(|doc| doc.rule).collect();
    assert_eq!(
        rules,
        [Some("filter".to_owned()), None, Some("url".to_owned())]
    );
    let bench = Bench::new();
    write(&bench, &[list(1), list(1), prose(1)]);
    let mut config = with_filter(&["fineweb_newlines"]);
    config.policy.criterion = Criterion::Exact;
    config.exact = Exact::Bytes;
    let summary = bench.run(&config);
    assert_eq!(summary["counts"]["dropped_filtered"], 2);
    assert_eq!(summary["counts"]["kept"], 1);
}

/// All files below a directory.
fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let found = paths.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    found.collect()
}

#[test]
fn pages_that_are_filtered_are_not_copied() {
    let bench = Bench::new();
    bench.write(
        "pages/a.html",
        &format!("<p>{}", prose(1).replace('\n', "<p>")),
    );
    bench.write(
        "pages/b.html",
        &format!("<p>{}", list(2).replace('\n', "<p>")),
    );
    let config = with_filter(&["fineweb_newlines"]);
    let summary = bench.run_on(&["pages"], &config).unwrap();
    assert_eq!(summary["counts"]["dropped_filtered"], 1);
    let kept = files(&bench.path("out/kept.files"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(kept[0].ends_with("a.html"));
    assert_eq!(column(&bench, "hidden_share")[0].as_deref(), Some("0"));
}

#[test]
fn an_input_that_the_filter_rejects_whole_leaves_nothing() {
    let bench = Bench::new();
    write(&bench, &[list(1), list(2)]);
    let summary = bench.run(&with_filter(&["fineweb", "gopher", "c4"]));
    counts_add_up(&summary);
    assert_eq!(summary["counts"]["kept"], 0);
    assert_eq!(summary["counts"]["dropped_filtered"], 2);
}

/// One thread or four, in one go or resumed from a checkpoint: the same bytes.
#[test]
fn the_same_bytes_however_it_runs() {
    let texts: Vec<String> = (0..600)
        .map(|i| {
            if i % 3 == 0 {
                list(i / 2)
            } else {
                prose(i / 2)
            }
        })
        .collect();
    let bench = Bench::new();
    write(&bench, &texts);
    let out = bench.path("out");
    let inputs = [bench.path("input.jsonl")];
    let mut config = with_filter(&["gopher", "fineweb"]);
    let run = |config: &Config, start| {
        let progress = Progress::default();
        let mut summary = arose_dedup::run(&inputs, config, &out, start, &progress).unwrap();
        (results(&out), summary["quality"].take())
    };
    config.corpus.threads = 1.try_into().unwrap();
    let first = run(&config, Start::Anew);
    assert!(first.1["rules"][0]["fails"].is_u64());
    config.corpus.threads = 4.try_into().unwrap();
    assert_eq!(run(&config, Start::Anew), first);

    config.checkpoint = std::time::Duration::ZERO;
    let checkpoint = bench.path("out/.arose/read.part/checkpoint.json");
    let progress = Progress::default();
    std::thread::scope(|scope| {
        let run = scope.spawn(|| arose_dedup::run(&inputs, &config, &out, Start::Anew, &progress));
        while !checkpoint.exists() && !run.is_finished() {
            std::thread::yield_now();
        }
        progress.stop();
        let _ = run.join().unwrap();
    });
    assert_eq!(run(&config, Start::Resume), first);
}

/// A run with another filter is a different run.
#[test]
fn the_filter_is_part_of_the_run() {
    let bench = Bench::new();
    write(&bench, &[prose(1), list(2)]);
    bench.run(&with_filter(&["c4"]));
    let inputs = [bench.path("input.jsonl")];
    for config in [
        with_filter(&["fineweb"]),
        with_filter(&[]),
        Config::of(Criterion::jaccard()),
    ] {
        let error = arose_dedup::run(
            &inputs,
            &config,
            &bench.path("out"),
            Start::Resume,
            &Progress::default(),
        );
        assert!(
            matches!(error, Err(Error::OtherSettings { .. })),
            "{error:?}"
        );
    }
    bench.run(&with_filter(&["c4"]));
}
