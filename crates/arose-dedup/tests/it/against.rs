//! Tests of runs with an index: documents already in the index are dropped.

use std::fs;
use std::path::{Path, PathBuf};

use arose::Threshold;
use arose::mix::SplitMix;
use arose::rule::{Criterion, Policy, ShortPolicy};
use arose::shingle::ShingleLength;
use arose_dedup::index::{Index, Reader, Settings, Sketcher, verify};
use arose_dedup::{Against, Config, Error, Progress, Start, Update};
use serde_json::Value;

use crate::results::counts_add_up;
use crate::shared_data::DATA;
use crate::support::{Bench, family_texts};

fn against(bench: &Bench, update: Update) -> Config {
    let index = bench.path("index");
    Config {
        against: Some(Against { index, update }),
        ..Config::of(Criterion::jaccard())
    }
}

fn n_held(bench: &Bench) -> u64 {
    Reader::open(&bench.path("index")).unwrap().status().n_docs
}

/// An index of the first texts, under the names `held0`, `held1` and so on.
fn hold(bench: &Bench, texts: &[String]) -> Index {
    let index = Index::create(&bench.path("index"), jaccard()).unwrap();
    let sketcher = Sketcher::new(index.settings());
    for (i, text) in texts.iter().enumerate() {
        let site = format!("site{}.example", i % 7);
        let sketch = sketcher.sketch(text, Some(&site));
        index.insert(&format!("held{i}"), &sketch).unwrap();
    }
    index
}

/// Documents that a query of the index finds are dropped, and the rest is processed as if those did
/// not exist.
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
        // Exact duplicates share the decision on the first document of their content.
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
    assert!(report.contains("Already in the index"));
}

#[test]
fn an_empty_index_changes_nothing() {
    let texts = family_texts(200, 6);
    let [plain, beside] = [(); 2].map(|()| Bench::with_texts(&texts));
    plain.run(&Config::of(Criterion::jaccard()));
    drop(hold(&beside, &[]));
    let summary = beside.run(&against(&beside, Update::Leave));
    assert_eq!(summary["counts"]["dropped_known"], 0);
    assert_eq!(plain.docs(), beside.docs());
    assert_eq!(plain.pairs(), beside.pairs());
}

/// The same pages on the second day contain nothing new.
#[test]
fn what_is_kept_is_known_the_next_time() {
    let texts = family_texts(150, 7);
    let bench = Bench::with_texts(&texts);
    drop(hold(&bench, &[]));
    let summary = bench.run(&against(&bench, Update::Add));
    let kept = summary["counts"]["kept"].as_u64().unwrap();
    assert_eq!(summary["index"]["added"], kept);
    assert_eq!(n_held(&bench), kept);
    // A complete run is not repeated.
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

/// A run that died after adding some of its documents adds the others, and each only once. The
/// index then contains documents of the run, and they are still kept.
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
    // The last file cannot be written; everything before it is complete.
    fs::create_dir(bench.path("out/summary.json.part")).unwrap();
    let error = bench.run_on(&["input.jsonl"], &config).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let n_added = n_held(&bench);
    assert_eq!(n_added, n_held(&calm));
    // The list of documents to add remains until the summary is on disk.
    assert!(bench.path("out/.arose/update/pending").exists());
    assert!(!bench.path("out/summary.json").exists());
    // Removes half of the added documents, as if the run had not got that far.
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

/// Every policy of a run, with its own shingle length, and some with other settings.
fn policies() -> Vec<Config> {
    let jaccard = |threshold| Criterion::Jaccard(Threshold::new(threshold).unwrap());
    let criteria = [
        Criterion::Exact,
        Criterion::jaccard(),
        jaccard(0.5),
        jaccard(0.95),
        Criterion::PUBLISHED_B,
        Criterion::PUBLISHED_C,
        Criterion::PUBLISHED_COMBINED,
        Criterion::SITE,
        Criterion::SITE_UNION,
    ];
    let config = |criterion: Criterion, short, seed| Config {
        policy: Policy { criterion, short },
        shingle: ShingleLength::uniform(criterion.default_w()),
        seed,
        ..Config::of(Criterion::jaccard())
    };
    let mut all: Vec<Config> = criteria
        .into_iter()
        .map(|criterion| config(criterion, ShortPolicy::ExactOnly, 1))
        .collect();
    all.push(config(Criterion::jaccard(), ShortPolicy::LikeAny, 7));
    all
}

/// The settings of an index by Jaccard similarity.
fn jaccard() -> Settings {
    Settings::agreeing_with(&Config::of(Criterion::jaccard()))
}

/// Runs the same input twice with an index that gets the kept documents of the first run. The
/// second run keeps only empty documents.
fn check_nothing_leaks(inputs: &[PathBuf], config: &Config) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let index = folder.path().join("index");
    drop(Index::create(&index, Settings::agreeing_with(config)).unwrap());
    let config = Config {
        against: Some(Against {
            index,
            update: Update::Add,
        }),
        ..config.clone()
    };
    let run = |name: &str| {
        let out = folder.path().join(name);
        arose_dedup::run(inputs, &config, &out, Start::Resume, &Progress::default()).unwrap()
    };
    let [first, second] = ["first", "second"].map(run);
    let name = config.policy.criterion;
    assert_eq!(
        second["counts"]["kept"], second["counts"]["empty"],
        "{name:?}"
    );
    assert_eq!(second["index"]["agrees"], true, "{name:?}");
    assert!(first["counts"]["kept"].as_u64().unwrap() > 0);
    first
}

/// Families whose members share from half of their shingles to nearly all of them.
fn graded_texts(n: usize, seed: u64) -> Vec<String> {
    let mut random = SplitMix::new(seed);
    let mut texts = Vec::new();
    while texts.len() < n {
        let n_words = 40 + random.below(1500);
        let first: Vec<u64> = (0..n_words).map(|_| random.below(50_000)).collect();
        for member in 0..5 {
            let mut words = first.clone();
            // A replaced word changes five shingles of each document.
            let n_edits = random.below(1 + member * n_words / 40);
            for _ in 0..n_edits {
                words[random.below(n_words) as usize] = 50_000 + random.below(1_000_000);
            }
            let text: String = words.iter().map(|word| format!("w{word} ")).collect();
            texts.push(text);
        }
    }
    texts
}

#[test]
fn issue_20_a_corpus_against_its_own_kept_documents_keeps_none() {
    for (i, texts) in [family_texts(300, 11), graded_texts(300, 12)]
        .iter()
        .enumerate()
    {
        let bench = Bench::with_texts(texts);
        let inputs = [bench.path("input.jsonl")];
        for config in policies() {
            let first = check_nothing_leaks(&inputs, &config);
            let dropped = first["counts"]["dropped_near"].as_u64().unwrap();
            let is_exact = config.policy.criterion == Criterion::Exact;
            assert!(is_exact || dropped > 5, "{i}: {first}");
        }
    }
}

#[test]
fn issue_20_real_corpora_against_their_own_kept_documents_keep_none() {
    let licenses = "neardup-licenses/licenses.jsonl.zst";
    let answers = "neardup-short-answers/answers.jsonl.zst";
    for (set, configs) in [(licenses, &policies()[1..2]), (answers, &policies()[..])] {
        let path = Path::new(DATA).join(set);
        if !path.exists() {
            println!("skipped: no {set} beside the repository");
            continue;
        }
        for config in configs {
            check_nothing_leaks(std::slice::from_ref(&path), config);
        }
    }
}

/// The run warns about an index with another policy than its own.
#[test]
fn an_index_that_decides_otherwise_is_told() {
    let bench = Bench::with_texts(&family_texts(30, 3));
    let config = Config {
        policy: Policy::SITE,
        ..Config::of(Criterion::jaccard())
    };
    drop(Index::create(&bench.path("index"), Settings::agreeing_with(&config)).unwrap());
    let summary = bench.run(&against(&bench, Update::Leave));
    assert_eq!(summary["index"]["agrees"], false);
    assert_eq!(summary["index"]["policy"], "site, shingles of 5");
}

/// How often MinHash values take a pair for a duplicate, next to the exact similarity of the pair.
#[test]
fn an_index_of_samples_decides_as_promised() {
    let texts = graded_texts(1500, 14);
    let config = Config::of(Criterion::jaccard());
    let folder = tempfile::tempdir().unwrap();
    let index = Index::create(folder.path(), Settings::agreeing_with(&config)).unwrap();
    let sketcher = Sketcher::new(index.settings());
    let profiler = arose::compare::Profiler::new(config.shingle.w);
    let sketches: Vec<_> = texts
        .iter()
        .map(|text| sketcher.sketch(text, None))
        .collect();
    for (i, sketch) in sketches.iter().enumerate() {
        index.insert(&i.to_string(), sketch).unwrap();
    }
    let profiles: Vec<_> = texts.iter().map(|text| profiler.profile(text)).collect();
    let (mut n_due, mut n_missed, mut n_far, mut n_wrong) = (0, 0, 0, 0);
    for (i, sketch) in sketches.iter().enumerate() {
        let found = index.query(sketch).unwrap();
        let found: Vec<usize> = found
            .iter()
            .map(|found| found.name.parse().unwrap())
            .collect();
        // Members of a family are adjacent, and other documents have nothing in common.
        assert!(found.iter().all(|other| other / 5 == i / 5));
        for other in (i / 5 * 5..i / 5 * 5 + 5).filter(|other| *other != i) {
            let compared = profiler.compare(&profiles[i], &profiles[other]);
            let is_found = found.contains(&other);
            match compared.jaccard.unwrap() {
                0.8.. => {
                    n_due += 1;
                    n_missed += usize::from(!is_found);
                }
                ..0.6 => {
                    n_far += 1;
                    n_wrong += usize::from(is_found);
                }
                _ => {}
            }
        }
    }
    println!("{n_missed} of {n_due} missed, {n_wrong} of {n_far} below 0.6 found");
    assert!(n_due > 500 && n_far > 500, "{n_due}, {n_far}");
    assert!(n_missed * 200 <= n_due, "{n_missed} of {n_due}");
    assert!(n_wrong * 50 <= n_far, "{n_wrong} of {n_far}");
}
