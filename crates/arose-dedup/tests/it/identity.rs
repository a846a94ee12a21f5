//! Tests of the identity of a run in a directory, which includes its inputs.

use std::fs;
use std::path::PathBuf;

use arose_dedup::{Config, Error, Progress, Start};
use serde_json::Value;

use crate::support::{Bench, family_texts};

fn line(text: &str) -> String {
    format!("{{\"text\": \"{text}\"}}\n")
}

fn run(bench: &Bench, inputs: &[PathBuf], start: Start) -> Result<Value, Error> {
    let progress = Progress::default();
    arose_dedup::run(
        inputs,
        &Config::default(),
        &bench.path("out"),
        start,
        &progress,
    )
}

#[test]
fn a_file_added_to_a_directory_is_noticed() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", &line("one"));
    run(&bench, &[bench.path("in")], Start::Resume).unwrap();
    bench.write("in/b.jsonl", &line("two"));
    let error = run(&bench, &[bench.path("in")], Start::Resume).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("b.jsonl` was added after"), "{error}");
    assert!(error.contains("--force"), "{error}");
    let summary = run(&bench, &[bench.path("in")], Start::Anew).unwrap();
    assert_eq!(summary["counts"]["read"], 2);
}

#[test]
fn a_file_added_to_a_pattern_is_noticed() {
    let bench = Bench::new();
    bench.write("a.jsonl", &line("one"));
    run(&bench, &[bench.path("*.jsonl")], Start::Resume).unwrap();
    bench.write("b.jsonl", &line("two"));
    let error = run(&bench, &[bench.path("*.jsonl")], Start::Resume).unwrap_err();
    assert!(
        error.to_string().contains("b.jsonl` was added after"),
        "{error}"
    );
}

#[test]
fn a_file_that_is_gone_is_noticed() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", &line("one"));
    bench.write("in/b.jsonl", &line("two"));
    run(&bench, &[bench.path("in")], Start::Resume).unwrap();
    fs::remove_file(bench.path("in/b.jsonl")).unwrap();
    let error = run(&bench, &[bench.path("in")], Start::Resume).unwrap_err();
    assert!(
        error.to_string().contains("b.jsonl` was removed after"),
        "{error}"
    );
}

/// A file without documents has no row, but it is an input.
#[test]
fn a_file_without_documents_is_noticed() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", &line("one"));
    run(&bench, &[bench.path("in")], Start::Resume).unwrap();
    bench.write("in/b.jsonl", "");
    let error = run(&bench, &[bench.path("in")], Start::Resume).unwrap_err();
    assert!(
        error.to_string().contains("b.jsonl` was added after"),
        "{error}"
    );
}

/// Stages completed for other inputs are not used.
#[test]
fn an_interrupted_run_on_other_inputs_is_not_resumed() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", &line("one"));
    let progress = Progress::default();
    progress.stop();
    let inputs = [bench.path("in")];
    let out = bench.path("out");
    let stopped = arose_dedup::run(&inputs, &Config::default(), &out, Start::Resume, &progress);
    assert!(matches!(stopped, Err(Error::Stopped)));
    bench.write("in/b.jsonl", &line("two"));
    let error = run(&bench, &inputs, Start::Resume).unwrap_err();
    assert!(
        error.to_string().contains("b.jsonl` was added after"),
        "{error}"
    );
}

#[test]
fn an_input_inside_the_output_is_refused() {
    let bench = Bench::with_texts(&family_texts(20, 1));
    bench.run(&Config::default());
    let kept = bench.path("out/kept.jsonl");
    let before = fs::read(&kept).unwrap();
    for start in [Start::Resume, Start::Anew] {
        let error = run(&bench, std::slice::from_ref(&kept), start).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("kept.jsonl` is inside"), "{error}");
    }
    let error = run(&bench, &[bench.path("out")], Start::Anew).unwrap_err();
    assert!(error.to_string().contains("is inside"), "{error}");
    assert_eq!(fs::read(&kept).unwrap(), before);
    assert!(bench.path("out/summary.json").exists());
}

/// A run that reads its own results would have different inputs every time.
#[test]
fn an_output_inside_an_input_is_not_read() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", &line("one"));
    let out = bench.path("in/out");
    let progress = Progress::default();
    let inputs = [bench.path("in")];
    let run = || {
        let config = Config::default();
        arose_dedup::run(&inputs, &config, &out, Start::Resume, &progress).unwrap()
    };
    assert_eq!(run()["counts"]["read"], 1);
    assert_eq!(run()["counts"]["read"], 1);
}

#[test]
fn two_inputs_for_one_output_are_refused() {
    let bench = Bench::new();
    bench.write("pages/a.html", "<p>one");
    bench.write("x/pages/a.html", "<p>two");
    let inputs = [
        bench.path("x/../pages/a.html"),
        bench.path("x/pages/a.html"),
    ];
    let error = run(&bench, &inputs, Start::Resume).unwrap_err().to_string();
    assert!(error.contains("x/../pages/a.html` and `"), "{error}");
    assert!(
        error.contains("one file in the output, `pages/a.html`"),
        "{error}"
    );
    assert!(!bench.path("out").exists());
    let apart = [bench.path("pages/a.html"), bench.path("x/pages/a.html")];
    run(&bench, &apart, Start::Resume).unwrap();
    assert!(bench.path("out/kept.files/x/pages/a.html").exists());
}

#[test]
fn a_mistyped_input_leaves_nothing_behind() {
    let bench = Bench::new();
    for missing in ["missing.jsonl", "missing/*.jsonl"] {
        let error = run(&bench, &[bench.path(missing)], Start::Resume).unwrap_err();
        assert!(matches!(error, Error::Corpus(_)), "{error}");
        assert!(!bench.path("out").exists());
    }
}

#[cfg(unix)]
#[test]
fn a_file_name_may_be_any_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new();
    let name = OsStr::from_bytes(b"caf\xe9.html");
    fs::create_dir_all(bench.path("in")).unwrap();
    fs::write(bench.path("in").join(name), "<p>one page").unwrap();
    bench.write("in/b.html", "<p>another page");
    let summary = run(&bench, &[bench.path("in")], Start::Resume).unwrap();
    assert_eq!(summary["counts"]["kept"], 2);
    assert!(bench.path("out/kept.files").join(name).exists());
    let ids: Vec<String> = bench.docs().into_iter().map(|doc| doc.id).collect();
    assert!(ids[1].ends_with("caf\\xE9.html#0"), "{ids:?}");
    let report = fs::read_to_string(bench.path("out/report.html")).unwrap();
    assert!(!report.contains("no longer exists"));
    // The run is complete, and differs from a run on a file with a name that looks the same.
    run(&bench, &[bench.path("in")], Start::Resume).unwrap();
    fs::rename(
        bench.path("in").join(name),
        bench.path("in").join(OsStr::from_bytes(b"caf\xe8.html")),
    )
    .unwrap();
    let error = run(&bench, &[bench.path("in")], Start::Resume).unwrap_err();
    assert!(error.to_string().contains("was added after"), "{error}");
}
