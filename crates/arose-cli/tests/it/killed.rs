//! `arose dedup` is killed at random moments and started again.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Moments at which runs are killed.
const N_KILLS: u32 = 24;

fn dedup(input: &Path, out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_arose"));
    command.arg("dedup").arg(input).arg("-o").arg(out);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn result(out: &Path) -> Vec<Vec<u8>> {
    let names = ["documents.parquet", "pairs.parquet", "kept.jsonl"];
    names.map(|name| fs::read(out.join(name)).unwrap()).into()
}

/// A run killed at any moment and started again, once or many times, gives the bytes of an
/// undisturbed one; what is in the folder before that is whole or not there.
#[test]
fn a_killed_run_resumes_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("input.jsonl");
    let mut lines = String::new();
    for i in 0_u32..3_000 {
        // Families of three that differ in one word.
        let words = (0..120).map(|k| format!("w{} ", (i / 3).wrapping_mul(7919) % 9973 * 131 + k));
        lines.push_str(&format!(
            "{{\"text\": \"{}end{i}\"}}\n",
            words.collect::<String>()
        ));
    }
    fs::write(&input, lines).unwrap();
    let calm = folder.path().join("calm");
    let begin = Instant::now();
    assert!(dedup(&input, &calm).status().unwrap().success());
    let length = begin.elapsed();
    let expected = result(&calm);

    let out = folder.path().join("out");
    let mut n_kills = 0;
    for kill in 0..N_KILLS {
        // The first half spreads over one run; the others strike a fresh run each.
        if kill >= N_KILLS / 2 {
            _ = fs::remove_dir_all(&out);
        }
        let mut run = dedup(&input, &out).spawn().unwrap();
        let moment = length.mul_f64(f64::from(kill * 7 % N_KILLS) / f64::from(N_KILLS));
        let begin = Instant::now();
        while begin.elapsed() < moment && run.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(200));
        }
        if run.try_wait().unwrap().is_none() {
            run.kill().unwrap();
            n_kills += 1;
        }
        run.wait().unwrap();
        if kill >= N_KILLS / 2 {
            assert!(dedup(&input, &out).status().unwrap().success());
            assert_eq!(result(&out), expected, "killed after {moment:?}");
        }
    }
    assert!(dedup(&input, &out).status().unwrap().success());
    assert_eq!(result(&out), expected);
    assert!(
        n_kills >= N_KILLS / 2,
        "only {n_kills} runs were still alive"
    );
}
