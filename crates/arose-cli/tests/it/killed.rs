//! Tests in which `arose dedup` is killed at random moments, or has no space to write, and is
//! restarted.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Number of moments at which runs are killed.
const N_KILLS: u32 = 24;

fn dedup(input: &Path, out: &Path) -> Command {
    start("dedup", input, out)
}

fn start(name: &str, input: &Path, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.arg(name).arg(input).arg("-o").arg(out);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn result(out: &Path) -> Vec<Vec<u8>> {
    let names = ["documents.parquet", "pairs.parquet", "kept.jsonl"];
    names.map(|name| fs::read(out.join(name)).unwrap()).into()
}

/// A corpus of clusters of three documents that differ in one word.
fn write_input(path: &Path) {
    let mut lines = String::new();
    for i in 0_u32..3_000 {
        let words = (0..120).map(|k| format!("w{} ", (i / 3).wrapping_mul(7919) % 9973 * 131 + k));
        lines.push_str(&format!(
            "{{\"text\": \"{}end{i}\"}}\n",
            words.collect::<String>()
        ));
    }
    fs::write(path, lines).unwrap();
}

/// A full disk, simulated by a limit on file sizes. The error names the file, and with enough space
/// the run resumes and gives the same bytes.
#[test]
fn a_full_disk_is_an_error_and_no_wrong_file() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    write_input(&input);
    let calm = folder.path().join("calm");
    assert!(dedup(&input, &calm).status().unwrap().success());
    let out = folder.path().join("out");
    // In blocks of 1024 bytes, from far too little to not quite enough for the largest result.
    let files = fs::read_dir(&calm).unwrap();
    let sizes = files.map(|file| file.unwrap().metadata().unwrap().len());
    let most = sizes.max().unwrap() / 1024 - 1;
    for n_blocks in [8, most / 8, most / 2, most] {
        let mut limited = Command::new("bash");
        let script = "trap '' XFSZ; ulimit -f \"$0\"; exec \"$@\"";
        limited.args(["-c", script, &n_blocks.to_string()]);
        limited.arg(env!("CARGO_BIN_EXE_arose"));
        limited.arg("dedup").arg(&input).arg("-o").arg(&out);
        let output = limited.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{n_blocks}: {message}");
        assert!(
            message.contains("cannot write `") || message.contains("parquet"),
            "{message}"
        );
        assert!(!out.join("summary.json").exists());
    }
    assert!(dedup(&input, &out).status().unwrap().success());
    assert_eq!(result(&out), result(&calm));
}

#[test]
fn an_output_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    write_input(&input);
    let output = dedup(&input, &input.join("out"))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        message.contains("cannot create") && message.contains("input.jsonl"),
        "{message}"
    );
}

/// A run that is killed at any moment and restarted, once or many times, gives the bytes of an
/// undisturbed run. Until then, every file in the directory is complete or missing.
#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    write_input(&input);
    check_kills(N_KILLS, folder.path(), |out| dedup(&input, out));
}

/// Kills a command `n` times. Its final output must be that of an undisturbed run.
fn check_kills(n: u32, folder: &Path, command: impl Fn(&Path) -> Command) {
    let calm = folder.join("calm");
    let begin = Instant::now();
    assert!(command(&calm).status().unwrap().success());
    let mut length = begin.elapsed();
    let expected = all_results(&calm);
    let out = folder.join("out");
    let mut n_kills = 0;
    for attempt in 0_u32..10 * n {
        if n_kills == n {
            break;
        }
        let moment = length.mul_f64(f64::from(attempt * 7 % n) / f64::from(n));
        match is_killed_after(moment, &mut command(&out)) {
            true => n_kills += 1,
            // The undisturbed run had less of the machine to itself than this one.
            false => length = length.mul_f64(0.9),
        }
        // Every third run may complete, after one, two or three kills.
        if attempt % 3 == 2 {
            let end = command(&out).stderr(Stdio::piped()).output().unwrap();
            let said = String::from_utf8_lossy(&end.stderr);
            assert!(end.status.success(), "killed after {moment:?}: {said}");
            assert!(all_results(&out) == expected, "killed after {moment:?}");
            fs::remove_dir_all(&out).unwrap();
        }
    }
    assert_eq!(n_kills, n, "runs end before they can be killed");
    // The last attempts may have completed a run.
    for folder in [&calm, &out] {
        let _ = fs::remove_dir_all(folder);
    }
}

/// A search for passages is killed at 30 moments, and so is one for the items of a reference.
#[test]
fn issue_29_a_killed_search_for_passages_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let [input, reference] = ["input.jsonl", "items.jsonl"].map(|name| folder.path().join(name));
    write_input(&input);
    let lines = fs::read_to_string(&input).unwrap();
    let items = lines.split_inclusive('\n').step_by(100).collect::<String>();
    fs::write(&reference, items).unwrap();
    check_kills(30, folder.path(), |out| {
        let mut command = start("passages", &input, out);
        command.args(["--remove", "later"]);
        command
    });
    check_kills(30, folder.path(), |out| {
        let mut command = start("passages", &input, out);
        command.arg("--against").arg(&reference);
        command.args(["--remove", "spans"]);
        command
    });
}

/// Files of several formats, so that reading is interrupted in each of them.
fn write_mixed_inputs(folder: &Path) {
    let mut lines = String::new();
    let mut rows = "id,text\n".to_owned();
    for i in 0_u32..6_000 {
        let words = (0..150).map(|k| format!("w{} ", (i / 3).wrapping_mul(7919) % 9973 * 131 + k));
        let text = words.collect::<String>();
        lines.push_str(&format!("{{\"id\": {i}, \"text\": \"{text}end{i}\"}}\n"));
        if i % 100 == 7 {
            lines.push_str("not an object\n{\"text\": null}\n");
        }
        if i % 4 == 0 {
            rows.push_str(&format!("{i},\"{text}row {i}\"\n"));
        }
    }
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("a.jsonl"), &lines).unwrap();
    fs::write(folder.join("b.csv"), &rows).unwrap();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(lines.as_bytes()).unwrap();
    fs::write(folder.join("c.jsonl.gz"), packer.finish().unwrap()).unwrap();
    for i in 0..50 {
        fs::write(folder.join(format!("d{i}.txt")), format!("page {i}")).unwrap();
    }
}

/// All files of a result by name, without times.
fn all_results(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![out.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(out)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            match path.is_dir() {
                true if name != ".arose" => folders.push(path),
                false if !["summary.json", "report.html"].contains(&&*name) => {
                    found.push((name, fs::read(&path).unwrap()));
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Number of records in the last checkpoint of a run.
fn n_checkpointed(out: &Path) -> u64 {
    let bytes = fs::read(out.join(".arose/read.part/checkpoint.json")).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    value["n_rows"].as_u64().unwrap_or(0)
}

/// A run that is killed repeatedly while it reads resumes from its last checkpoint each time. It
/// gives the bytes of an undisturbed run, for any number of threads.
#[test]
fn issue_20_reading_goes_on_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input");
    write_mixed_inputs(&input);
    let calm = folder.path().join("calm");
    assert!(dedup(&input, &calm).status().unwrap().success());
    let expected = all_results(&calm);
    assert!(expected.len() > 4, "{}", expected.len());
    let counts = |out: &Path| {
        let bytes = fs::read(out.join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        (summary["counts"].clone(), summary["warnings"].clone())
    };
    for threads in ["1", "3"] {
        let out = folder.path().join(threads);
        let mut command = dedup(&input, &out);
        command.args(["--threads", threads, "--checkpoint-millis", "1"]);
        let mut n_kills = 0;
        let mut n_before = 0;
        // Each run is killed as soon as it has progressed further than the previous one.
        loop {
            let mut run = command.spawn().unwrap();
            let mut n_after = n_before;
            while n_after <= n_before && run.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_micros(200));
                n_after = n_checkpointed(&out).max(n_before);
            }
            if run.try_wait().unwrap().is_some() {
                break;
            }
            run.kill().unwrap();
            run.wait().unwrap();
            let n_there = n_checkpointed(&out);
            if out.join(".arose/read").exists() || n_there == 0 {
                break;
            }
            assert!(n_there >= n_before, "{n_there} after {n_before}");
            (n_before, n_kills) = (n_there, n_kills + 1);
        }
        assert!(n_kills >= 5, "{n_kills} kills while reading");
        assert!(command.status().unwrap().success());
        assert_eq!(all_results(&out), expected, "{threads} threads");
        assert_eq!(counts(&out), counts(&calm), "{threads} threads");
    }
}

/// A run that adds to an index is killed at any moment and restarted. Every kept document is in the
/// index once, and no document is dropped because the run itself had added it.
#[test]
fn a_killed_run_adds_to_the_index_once() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    write_input(&input);
    let run = |name: &str| {
        let seen = folder.path().join(name).join("seen");
        let mut command = dedup(&input, &folder.path().join(name).join("out"));
        command.arg("--against").arg(seen).arg("--update-index");
        command
    };
    let create = |name: &str| {
        fs::create_dir(folder.path().join(name)).unwrap();
        assert!(
            index(folder.path(), &["create", &format!("{name}/seen")])
                .status
                .success()
        );
    };
    let held = |name: &str| {
        let seen = format!("{name}/seen");
        assert!(index(folder.path(), &["verify", &seen]).status.success());
        let status = index(folder.path(), &["status", "--json", &seen]).stdout;
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
        status["documents"].as_u64().unwrap()
    };
    create("calm");
    let begin = Instant::now();
    assert!(run("calm").status().unwrap().success());
    let length = begin.elapsed();
    assert_eq!(held("calm"), 1000);
    for attempt in 0_u32..12 {
        let name = attempt.to_string();
        create(&name);
        // Most of them in the second half, where documents are added.
        let moment = length.mul_f64(0.4 + f64::from(attempt) / 16.0);
        is_killed_after(moment, &mut run(&name));
        assert!(run(&name).status().unwrap().success());
        let [out, calm] = [&*name, "calm"].map(|name| folder.path().join(name).join("out"));
        assert_eq!(result(&out), result(&calm), "killed after {moment:?}");
        assert_eq!(held(&name), 1000, "killed after {moment:?}");
    }
}

fn index(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.arg("index").args(arguments).current_dir(folder);
    command.output().unwrap()
}

/// Starts a run and kills it after a time; false if it had already ended.
fn is_killed_after(moment: Duration, command: &mut Command) -> bool {
    let mut run = command.spawn().unwrap();
    let begin = Instant::now();
    while begin.elapsed() < moment && run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(200));
    }
    let is_alive = run.try_wait().unwrap().is_none();
    if is_alive {
        run.kill().unwrap();
    }
    run.wait().unwrap();
    is_alive
}
