//! Tests of an index whose process is killed, or whose disk is full.
//!
//! The test program starts itself again: the test [`child`] does nothing unless an environment
//! variable tells it to.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};

use arose::digest::Digest;
use arose::mix::SplitMix;
use arose_dedup::index::{Error, Index, Kind, Options, Settings, Sketch, verify};

const FOLDER: &str = "AROSE_TEST_INDEX_FOLDER";
const TASK: &str = "AROSE_TEST_INDEX_TASK";

/// The task of the other process.
#[test]
fn child() {
    let (Ok(folder), Ok(task)) = (env::var(FOLDER), env::var(TASK)) else {
        return;
    };
    let folder = Path::new(&folder);
    match task.split_once(' ') {
        Some(("work", start)) => work(folder, start.parse().unwrap()),
        Some(("fill", recent_docs)) => fill(folder, recent_docs.parse().unwrap()),
        _ => panic!("{task}"),
    }
}

fn command(folder: &Path, task: &str) -> Command {
    let mut command = Command::new("sh");
    // A write beyond the limit is then an error, not a signal.
    command
        .args(["-c", "trap '' XFSZ; ${LIMIT:-:}; exec \"$0\" \"$@\""])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "index_faults::child", "--nocapture"])
        .env(FOLDER, folder)
        .env(TASK, task)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Super-shingles and a simhash, twelve words.
fn settings() -> Settings {
    let recall = arose::Threshold::new(0.9).unwrap();
    Settings {
        kind: Kind::of(arose::rule::Criterion::SITE, recall),
        ..Settings::default()
    }
}

fn open(folder: &Path, recent_docs: u32) -> Index {
    let recent_docs = NonZeroU32::new(recent_docs).unwrap();
    let cache_bytes = 5_000;
    let options = Options {
        recent_docs,
        cache_bytes,
        ..Options::default()
    };
    Index::open_with(folder, options).unwrap()
}

fn say(line: &str) {
    let mut out = io::stdout();
    writeln!(out, "ack {line}").unwrap();
    out.flush().unwrap();
}

fn sketch(number: u64) -> Sketch {
    let mut random = SplitMix::new(number);
    Sketch {
        digest: Digest(number.into()),
        site: None,
        is_short: false,
        words: (0..12).map(|_| random.next_u64()).collect(),
        pairs: None,
    }
}

/// The history of the index, one step after the other, the same in every process.
#[derive(Debug, Clone, Copy)]
enum Step {
    Insert(u64),
    Replace(u64),
    Remove(u64),
    Compact,
}

fn step(number: u64) -> Step {
    match number % 64 {
        63 => Step::Compact,
        9 | 30 | 51 => Step::Remove(number - 7),
        20 | 40 => Step::Replace(number - 3),
        _ => Step::Insert(number),
    }
}

type Model = BTreeMap<u64, Sketch>;

/// A replaced document has the sketch of another number.
const OTHER: u64 = 1 << 40;

fn apply(model: &mut Model, step: Step) {
    match step {
        Step::Insert(number) => drop(model.insert(number, sketch(number))),
        Step::Replace(number) => drop(model.insert(number, sketch(number + OTHER))),
        Step::Remove(number) => drop(model.remove(&number)),
        Step::Compact => {}
    }
}

fn work(folder: &Path, start: u64) {
    // Many runs, and so merges, between two compactions.
    let index = open(folder, 2);
    for number in start.. {
        match step(number) {
            Step::Insert(doc) => index.insert(&doc.to_string(), &sketch(doc)).unwrap(),
            Step::Replace(doc) => {
                let was_there = index.replace(&doc.to_string(), &sketch(doc + OTHER));
                assert!(was_there.unwrap());
            }
            Step::Remove(doc) => assert!(index.remove(&doc.to_string()).unwrap()),
            Step::Compact => index.compact().unwrap(),
        }
        say(&number.to_string());
    }
}

/// Returns whether index and model contain the same documents.
fn agrees(index: &Index, model: &Model) -> bool {
    let is_found = |(number, sketch): (&u64, &Sketch)| {
        let name = number.to_string();
        let found = index.query(sketch).unwrap();
        index.sketch(&name).unwrap().as_ref() == Some(sketch)
            && found.iter().any(|found| found.name == name)
    };
    index.status().unwrap().n_docs == model.len() as u64 && model.iter().all(is_found)
}

/// Sixty times, a process works on an index and is killed after it has acknowledged a random number
/// of steps: between two steps, in a step, in a merge, in a compaction. Afterwards everything
/// acknowledged is in the index. The step that was not acknowledged has taken effect completely or
/// not at all.
#[test]
fn killed_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    drop(Index::create(folder.path(), settings()).unwrap());
    let mut random = SplitMix::new(9);
    let mut model = Model::new();
    let mut next = 0;
    for _ in 0..60 {
        let n_acknowledged = run_and_kill(folder.path(), next, random.below(40));
        for number in next..next + n_acknowledged {
            apply(&mut model, step(number));
        }
        next += n_acknowledged;
        verify(folder.path()).unwrap();
        let index = open(folder.path(), 8);
        if !agrees(&index, &model) {
            apply(&mut model, step(next));
            next += 1;
            assert!(agrees(&index, &model), "before step {next}");
        }
        index.verify().unwrap();
    }
    assert!(next > 500, "only {next} steps");
}

/// Kills the process after it has acknowledged `n` steps. Returns the number acknowledged by then.
fn run_and_kill(folder: &Path, start: u64, n: u64) -> u64 {
    let mut child = command(folder, &format!("work {start}")).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut n_acknowledged = 0;
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap() == 0 || !line.ends_with('\n') {
            break;
        }
        if let Some(number) = line.strip_prefix("ack ") {
            assert_eq!(number.trim_end(), (start + n_acknowledged).to_string());
            n_acknowledged += 1;
        }
        if n_acknowledged >= n {
            // The output written before it died is still in the pipe.
            child.kill().unwrap();
        }
    }
    let _ = child.wait();
    let mut errors = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut errors)
        .unwrap();
    assert!(!errors.contains("panicked"), "{errors}");
    n_acknowledged
}

/// Inserts documents until writing fails, up to 2,000.
fn fill(folder: &Path, recent_docs: u32) {
    let index = open(folder, recent_docs);
    let mut n_docs = 0;
    let refusal = loop {
        match index.insert(&n_docs.to_string(), &sketch(n_docs)) {
            Ok(()) => n_docs += 1,
            Err(error) => break Some(error),
        }
        if n_docs == 2000 {
            break None;
        }
    };
    let is_full = matches!(refusal, Some(Error::Io { what: "write", .. }));
    assert_eq!(is_full, recent_docs > 100, "{refusal:?}");
    // Small sorted runs can be written and large ones cannot.
    assert_eq!(index.wait_for_merging().is_ok(), is_full);
    let model = (0..n_docs).map(|number| (number, sketch(number))).collect();
    assert!(agrees(&index, &model));
    say(&n_docs.to_string());
}

/// No file may become larger than 16 KiB.
fn fill_a_small_disk(recent_docs: u32) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    drop(Index::create(folder.path(), settings()).unwrap());
    let output = command(folder.path(), &format!("fill {recent_docs}"))
        .env("LIMIT", "ulimit -f 32")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    let n_docs = said.lines().find_map(|line| line.strip_prefix("ack "));
    let n_docs: u64 = n_docs
        .unwrap_or_else(|| panic!("{said} {errors}"))
        .parse()
        .unwrap();
    verify(folder.path()).unwrap();
    let index = open(folder.path(), recent_docs);
    let mut model: Model = (0..n_docs).map(|number| (number, sketch(number))).collect();
    assert!(agrees(&index, &model));
    // With free space again, writing continues.
    index.insert("9999", &sketch(9999)).unwrap();
    model.insert(9999, sketch(9999));
    index.compact().unwrap();
    assert!(agrees(&index, &model));
    n_docs
}

#[test]
fn a_full_disk_refuses_the_next_document() {
    let n_docs = fill_a_small_disk(1000);
    assert!((50..1000).contains(&n_docs), "{n_docs}");
}

#[test]
fn a_full_disk_stops_merging_first() {
    assert_eq!(fill_a_small_disk(20), 2000);
}
