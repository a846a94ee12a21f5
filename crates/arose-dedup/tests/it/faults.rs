//! Tests of runs that are stopped, disturbed or started in the wrong directory.

use std::fs;

use arose::rule::Criterion;
use arose_dedup::disk::{DiskChange, Recording};
use arose_dedup::index::{Index, Settings};
use arose_dedup::{Against, Config, Error, Keep, Progress, Start, Update};

use crate::support::{Bench, family_texts, results};

#[test]
fn a_run_that_is_done_is_not_repeated() {
    let bench = Bench::with_texts(&family_texts(100, 1));
    let first = bench.run(&Config::of(Criterion::jaccard()));
    let before = fs::metadata(bench.path("out/documents.parquet")).unwrap();
    assert_eq!(bench.run(&Config::of(Criterion::jaccard())), first);
    let after = fs::metadata(bench.path("out/documents.parquet")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
}

#[test]
fn other_settings_are_named() {
    let bench = Bench::with_texts(&family_texts(50, 1));
    bench.run(&Config::of(Criterion::jaccard()));
    let config = Config {
        keep: Keep::Longest,
        ..Config::of(Criterion::jaccard())
    };
    let error = bench
        .run_on(&["input.jsonl"], &config)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a run with keep first, not longest"),
        "{error}"
    );
    let inputs = [bench.path("input.jsonl")];
    let progress = Progress::default();
    arose_dedup::run(&inputs, &config, &bench.path("out"), Start::Anew, &progress).unwrap();
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let bench = Bench::with_texts(&family_texts(10, 1));
    bench.write("out/thesis.txt", "mine");
    let error = bench
        .run_on(&["input.jsonl"], &Config::of(Criterion::jaccard()))
        .unwrap_err();
    assert!(matches!(error, Error::Foreign { .. }), "{error}");
    assert_eq!(fs::read_dir(bench.path("out")).unwrap().count(), 1);
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let bench = Bench::with_texts(&family_texts(10, 1));
    fs::create_dir_all(bench.path("out/.arose")).unwrap();
    let lock = fs::File::create(bench.path("out/.arose/lock")).unwrap();
    lock.lock().unwrap();
    let error = bench
        .run_on(&["input.jsonl"], &Config::of(Criterion::jaccard()))
        .unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    drop(lock);
    bench.run(&Config::of(Criterion::jaccard()));
}

/// A run that is stopped in a stage resumes there: earlier stages are not repeated.
#[test]
fn a_stopped_run_goes_on() {
    let texts = family_texts(300, 2);
    let undisturbed = Bench::with_texts(&texts);
    undisturbed.run(&Config::of(Criterion::jaccard()));
    for stage in ["exact", "candidates", "verify", "cluster"] {
        let bench = Bench::with_texts(&texts);
        stop_in(&bench, stage);
        let note = bench.path("out/.arose/read/stage.json");
        let before = fs::metadata(&note).unwrap().modified().unwrap();
        let stopped = bench.path(&format!("out/.arose/{stage}/stage.json"));
        assert!(!stopped.exists(), "{stage} is done");
        // Settings other than those of the earlier stages are an error.
        let other = Config {
            keep: Keep::Longest,
            ..Config::of(Criterion::jaccard())
        };
        let error = bench.run_on(&["input.jsonl"], &other).unwrap_err();
        assert!(matches!(error, Error::OtherSettings { .. }), "{error}");
        assert_eq!(fs::metadata(&note).unwrap().modified().unwrap(), before);
        bench.run(&Config::of(Criterion::jaccard()));
        assert_eq!(bench.pairs(), undisturbed.pairs());
        assert_eq!(results(&bench.path("out")).len(), 3);
    }
}

/// Starts a run that fails in a stage, because something else has the name of the stage.
fn stop_in(bench: &Bench, stage: &str) {
    let progress = Progress::default();
    progress.stop();
    let inputs = [bench.path("input.jsonl")];
    let out = bench.path("out");
    let stopped = arose_dedup::run(
        &inputs,
        &Config::of(Criterion::jaccard()),
        &out,
        Start::Resume,
        &progress,
    );
    assert!(matches!(stopped, Err(Error::Stopped)));
    let obstacle = bench.write(&format!("out/.arose/{stage}"), "");
    let error = bench.run_on(&["input.jsonl"], &Config::of(Criterion::jaccard()));
    assert!(matches!(error, Err(Error::Io { .. })), "{error:?}");
    fs::remove_file(obstacle).unwrap();
}

/// Keys are removed when the buckets are complete, so a run that ends after that resumes from the
/// buckets.
#[test]
fn issue_20_a_run_goes_on_from_its_buckets() {
    let texts = family_texts(300, 2);
    let undisturbed = Bench::with_texts(&texts);
    undisturbed.run(&Config::of(Criterion::jaccard()));
    let bench = Bench::with_texts(&texts);
    stop_in(&bench, "candidates");
    let keys = bench.path("out/.arose/read/keys0");
    assert!(keys.exists());
    // Sketches are computed from tokens, after the buckets.
    let (tokens, away) = (bench.path("out/.arose/read/tokens"), bench.path("tokens"));
    fs::rename(&tokens, &away).unwrap();
    let error = bench.run_on(&["input.jsonl"], &Config::of(Criterion::jaccard()));
    assert!(matches!(error, Err(Error::Io { .. })), "{error:?}");
    assert!(!keys.exists());
    fs::rename(&away, &tokens).unwrap();
    bench.run(&Config::of(Criterion::jaccard()));
    assert_eq!(bench.pairs(), undisturbed.pairs());
    assert_eq!(bench.docs(), undisturbed.docs());
}

#[test]
fn an_input_that_changed_after_the_run_is_noticed() {
    let bench = Bench::with_texts(&family_texts(50, 1));
    bench.run(&Config::of(Criterion::jaccard()));
    let mut text = fs::read_to_string(bench.path("input.jsonl")).unwrap();
    text.push_str("{\"text\": \"one more\"}\n");
    bench.write("input.jsonl", &text);
    let error = bench
        .run_on(&["input.jsonl"], &Config::of(Criterion::jaccard()))
        .unwrap_err();
    assert!(matches!(error, Error::InputChanged { .. }), "{error}");
}

/// A run that is stopped while reading resumes after its last checkpoint, but only if the machine
/// has not been restarted since.
#[test]
fn issue_20_a_stopped_reading_goes_on() {
    let texts = family_texts(2000, 9);
    let undisturbed = Bench::with_texts(&texts);
    undisturbed.run(&Config::of(Criterion::jaccard()));
    let bench = Bench::with_texts(&texts);
    let config = Config {
        checkpoint: std::time::Duration::ZERO,
        ..Config::of(Criterion::jaccard())
    };
    let progress = Progress::default();
    let checkpoint = bench.path("out/.arose/read.part/checkpoint.json");
    let stopped = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let inputs = [bench.path("input.jsonl")];
            arose_dedup::run(
                &inputs,
                &config,
                &bench.path("out"),
                Start::Resume,
                &progress,
            )
        });
        while !checkpoint.exists() && !run.is_finished() {
            std::thread::yield_now();
        }
        progress.stop();
        run.join().unwrap()
    });
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    let text = fs::read_to_string(&checkpoint).unwrap();
    // As after a power failure: the content of the columns is not trusted.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if !boot.is_empty() {
        fs::write(&checkpoint, text.replace(boot.trim(), "another")).unwrap();
        fs::write(bench.path("out/.arose/read.part/docs"), "").unwrap();
    }
    bench.run(&config);
    check_same(&bench, &undisturbed);
}

/// Work files are not synced, so after a power failure they may contain anything. Stages that were
/// completed before the machine was restarted are repeated.
#[test]
fn issue_20_work_from_before_a_power_cut_is_not_relied_on() {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if boot.is_empty() {
        println!("skipped: the system does not tell when it was started");
        return;
    }
    let texts = family_texts(200, 12);
    let undisturbed = Bench::with_texts(&texts);
    undisturbed.run(&Config::of(Criterion::jaccard()));
    let bench = Bench::with_texts(&texts);
    stop_in(&bench, "cluster");
    for stage in ["read", "exact", "candidates", "verify"] {
        let folder = bench.path("out/.arose").join(stage);
        let note = folder.join("stage.json");
        let text = fs::read_to_string(&note).unwrap();
        assert!(text.contains(boot.trim()), "{stage}");
        for entry in fs::read_dir(&folder).unwrap() {
            // Zeros, like blocks that were never written.
            let path = entry.unwrap().path();
            let n = fs::metadata(&path).unwrap().len() as usize;
            fs::write(&path, vec![0; n]).unwrap();
        }
        fs::write(&note, text.replace(boot.trim(), "another")).unwrap();
    }
    bench.run(&Config::of(Criterion::jaccard()));
    check_same(&bench, &undisturbed);
}

/// The results of two runs on the same texts, in files with different paths.
#[track_caller]
fn check_same(one: &Bench, other: &Bench) {
    assert!(one.docs() == other.docs());
    assert!(one.pairs() == other.pairs());
    let kept = [one, other].map(|bench| fs::read(bench.path("out/kept.jsonl")).unwrap());
    assert!(kept[0] == kept[1]);
}

/// After a power failure that follows the writing of the summary, all results are on disk. The list
/// of documents to add to the index is removed only when the summary is on disk too.
#[test]
fn issue_20_results_are_on_the_disk_before_the_summary() {
    for update in [None, Some(Update::Add)] {
        let bench = Bench::with_texts(&family_texts(40, 3));
        let (out, index) = (bench.path("out"), bench.path("index"));
        let jaccard = Config::of(Criterion::jaccard());
        drop(Index::create(&index, Settings::agreeing_with(&jaccard)).unwrap());
        let config = Config {
            against: update.map(|update| Against { index, update }),
            ..Config::of(Criterion::jaccard())
        };
        let recording = Recording::start(&out);
        bench.run(&config);
        let changes = recording.changes();
        let place = |name: &str, find: &dyn Fn(&DiskChange) -> bool| {
            let place = changes.iter().position(find);
            place.unwrap_or_else(|| panic!("no sync or name of {name}: {changes:?}"))
        };
        let named = |name: &str| {
            let path = out.join(name);
            let mut links = changes.iter().filter_map(|change| match change {
                DiskChange::Link { path: link, file } if *link == path => Some(*file),
                _ => None,
            });
            links.next().unwrap_or_else(|| panic!("no file {name}"))
        };
        let synced = |name: &str| {
            let number = named(name);
            place(
                name,
                &|change| matches!(change, DiskChange::Sync { file } if *file == number),
            )
        };
        let summary = place(
            "summary.json",
            &|change| matches!(change, DiskChange::Rename { to, .. } if *to == out.join("summary.json")),
        );
        for result in ["documents.parquet", "pairs.parquet", "kept.jsonl"] {
            assert!(synced(result) < summary, "{result}");
        }
        assert!(synced("summary.json.part") < summary);
        let lasts = changes[summary..]
            .iter()
            .position(|change| matches!(change, DiskChange::SyncFolder { path } if *path == out));
        let lasts = summary + lasts.expect("the name of the summary is synced");
        let note = out.join(".arose/update");
        let forgotten = changes
            .iter()
            .rposition(|change| matches!(change, DiskChange::Remove { path } if *path == note));
        assert_eq!(forgotten.is_some(), update.is_some());
        assert!(forgotten.is_none_or(|forgotten| lasts < forgotten));
    }
}
