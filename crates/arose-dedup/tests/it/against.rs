//! A run beside an index of what is held already.

use std::fs;
use std::path::Path;

use arose_dedup::index::{Index, Reader, Settings, Sketcher, verify};
use arose_dedup::{Against, Config, Error, Progress, Start, Update};

use crate::results::counts_add_up;
use crate::support::{Bench, family_texts};

fn against(bench: &Bench, update: Update) -> Config {
    let index = bench.path("index");
    Config {
        against: Some(Against { index, update }),
        ..Config::default()
    }
}

fn n_held(bench: &Bench) -> u64 {
    Reader::open(&bench.path("index")).unwrap().stats().n_docs
}

/// An index of the first texts, under the names `held0`, `held1` and so on.
fn hold(bench: &Bench, texts: &[String]) -> Index {
    let index = Index::create(&bench.path("index"), Settings::default()).unwrap();
    let sketcher = Sketcher::new(index.settings());
    for (i, text) in texts.iter().enumerate() {
        let site = format!("site{}.example", i % 7);
        let sketch = sketcher.sketch(text, Some(&site));
        index.insert(&format!("held{i}"), &sketch).unwrap();
    }
    index
}

/// What a question to the index finds is dropped, and the rest is judged as if that were not there.
#[test]
fn what_is_held_is_dropped_with_evidence() {
    let texts = family_texts(400, 5);
    let bench = Bench::with_texts(&texts);
    drop(hold(&bench, &texts[..100]));
    let summary = bench.run(&against(&bench, Update::Leave));
    counts_add_up(&summary);
    let reader = Reader::open(&bench.path("index")).unwrap();
    let sketcher = Sketcher::new(reader.settings());
    let docs = bench.docs();
    let mut n_known = 0;
    for (i, (doc, text)) in docs.iter().zip(&texts).enumerate() {
        // Copies share the verdict on the first document of their content.
        let first = texts.iter().position(|other| other == text).unwrap();
        let site = format!("site{}.example", first % 7);
        let found = reader.query(&sketcher.sketch(text, Some(&site))).unwrap();
        let names: Vec<&str> = found.iter().map(|found| &*found.name).collect();
        match &doc.known_as {
            Some(name) => {
                n_known += 1;
                assert!(names.contains(&&**name), "document {i}: {name}, {names:?}");
                assert!(!doc.kept && doc.kept_doc.is_none());
                let best = found
                    .iter()
                    .map(|found| found.similarity)
                    .fold(0.0, f64::max);
                assert_eq!(doc.similarity, Some(best));
                let rule = doc.rule.as_deref().unwrap();
                assert!(found.iter().any(|found| found.rule.as_str() == rule));
            }
            None => assert!(names.is_empty(), "document {i}: {names:?}"),
        }
        if let Some(kept) = doc.kept_doc {
            assert!(docs[kept as usize].kept, "dropped for a dropped one");
        }
    }
    assert!(n_known >= 100, "{n_known}");
    assert_eq!(summary["counts"]["dropped_known"], n_known);
    assert_eq!(summary["index"]["documents"], 100);
    assert_eq!(summary["index"]["added"], 0);
    assert_eq!(n_held(&bench), 100);
    let report = fs::read_to_string(bench.path("out/report.html")).unwrap();
    assert!(report.contains("Dropped, held by the index"));
}

#[test]
fn an_empty_index_changes_nothing() {
    let texts = family_texts(200, 6);
    let [plain, beside] = [(); 2].map(|()| Bench::with_texts(&texts));
    plain.run(&Config::default());
    drop(hold(&beside, &[]));
    let summary = beside.run(&against(&beside, Update::Leave));
    assert_eq!(summary["counts"]["dropped_known"], 0);
    assert_eq!(plain.docs(), beside.docs());
    assert_eq!(plain.pairs(), beside.pairs());
}

/// The second day of the same pages has nothing new.
#[test]
fn what_is_kept_is_known_the_next_time() {
    let texts = family_texts(150, 7);
    let bench = Bench::with_texts(&texts);
    drop(hold(&bench, &[]));
    let summary = bench.run(&against(&bench, Update::Add));
    let kept = summary["counts"]["kept"].as_u64().unwrap();
    assert_eq!(summary["index"]["added"], kept);
    assert_eq!(n_held(&bench), kept);
    // Done is done.
    bench.run(&against(&bench, Update::Add));
    assert_eq!(n_held(&bench), kept);
    let again = Bench::with_texts(&texts);
    fs::rename(bench.path("index"), again.path("index")).unwrap();
    let summary = again.run(&against(&again, Update::Add));
    counts_add_up(&summary);
    for (first, second) in bench.docs().iter().zip(again.docs()) {
        assert!(!first.kept || second.known_as.is_some());
        assert!(!first.kept || second.rule.as_deref() == Some("exact"));
    }
    verify(&again.path("index")).unwrap();
}

/// A run that died after it had added some of its documents adds the others, and each once: the
/// index knows documents of the run by then, and they stay kept.
#[test]
fn a_run_that_died_while_it_added_goes_on() {
    let texts = family_texts(150, 8);
    let calm = Bench::with_texts(&texts);
    drop(hold(&calm, &texts[..20]));
    let expected = calm.run(&against(&calm, Update::Add));

    let bench = Bench::with_texts(&texts);
    drop(hold(&bench, &texts[..20]));
    let config = against(&bench, Update::Add);
    let progress = Progress::default();
    progress.stop();
    let inputs = [bench.path("input.jsonl")];
    let stopped = arose_dedup::run(
        &inputs,
        &config,
        &bench.path("out"),
        Start::Resume,
        &progress,
    );
    assert!(matches!(stopped, Err(Error::Stopped)));
    // The last file cannot be written: all before it is done.
    fs::create_dir(bench.path("out/summary.json.part")).unwrap();
    let error = bench.run_on(&["input.jsonl"], &config).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let n_added = n_held(&bench);
    assert_eq!(n_added, n_held(&calm));
    // Half of what was added is taken away, as if it had not come to it.
    let index = Index::open(&bench.path("index")).unwrap();
    let names = bench
        .docs()
        .into_iter()
        .enumerate()
        .filter(|(_, doc)| doc.kept);
    let names: Vec<String> = names
        .map(|(i, _)| format!("http://site{}.example/page{i}", i % 7))
        .collect();
    for name in names.iter().step_by(2) {
        assert!(index.remove(name).unwrap(), "{name}");
    }
    drop(index);
    fs::remove_dir(bench.path("out/summary.json.part")).unwrap();
    let summary = bench.run(&config);
    assert_eq!(summary["counts"], expected["counts"]);
    assert_eq!(bench.docs(), calm.docs());
    assert_eq!(n_held(&bench), n_added);
    verify(&bench.path("index")).unwrap();
    assert!(!bench.path("out/.arose/update").exists());
}

#[test]
fn an_index_that_is_not_there_or_in_use_is_named() {
    let bench = Bench::with_texts(&family_texts(10, 1));
    let check = |bench: &Bench, update| {
        let error = bench.run_on(&["input.jsonl"], &against(bench, update));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("index"), "{error}");
        assert!(!bench.path("out/summary.json").exists());
    };
    check(&bench, Update::Leave);
    let index = hold(&bench, &[]);
    check(&bench, Update::Add);
    drop(index);
    let manifest = bench.path("index/manifest");
    flip_a_bit(&manifest);
    check(&bench, Update::Leave);
    flip_a_bit(&manifest);
    bench.run(&against(&bench, Update::Leave));
}

fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(path, bytes).unwrap();
}
