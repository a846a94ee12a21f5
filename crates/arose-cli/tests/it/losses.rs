//! Tests of exit codes and messages if part of the input cannot be read.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use flate2::write::GzEncoder;

struct Bench(tempfile::TempDir);

impl Bench {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    fn run_with(&self, arguments: &[&str], input: &[u8]) -> Ran {
        let mut child = Command::new(env!("CARGO_BIN_EXE_arose"))
            .args(arguments)
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads no input may have ended by now.
        let _ = child.stdin.take().unwrap().write_all(input);
        Ran(child.wait_with_output().unwrap())
    }
}

struct Ran(Output);

impl Ran {
    #[track_caller]
    fn code(&self, code: i32) -> &Self {
        assert_eq!(self.0.status.code(), Some(code), "{:?}", self.0);
        self
    }

    #[track_caller]
    fn says(&self, words: &str) -> &Self {
        assert!(self.err().contains(words), "{words}: {:?}", self.0);
        self
    }

    #[track_caller]
    fn prints(&self, words: &str) -> &Self {
        assert!(self.out().contains(words), "{words}: {:?}", self.0);
        self
    }

    fn out(&self) -> &str {
        std::str::from_utf8(&self.0.stdout).unwrap()
    }

    fn err(&self) -> &str {
        std::str::from_utf8(&self.0.stderr).unwrap()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The first half of a compressed file of lines.
fn truncated() -> Vec<u8> {
    let mut state = 1_u64;
    let mut line = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        format!("{{\"text\":\"{state:x} {:x}\"}}\n", state >> 9)
    };
    let lines: String = (0..3000).map(|_| line()).collect();
    let packed = gzip(lines.as_bytes());
    packed[..packed.len() / 2].to_vec()
}

const LAST: &str = "arose: 1 file could not be read completely; everything else is done\n";

#[test]
fn issue_19_read_ends_with_3_if_a_file_is_incomplete() {
    let bench = Bench::new();
    bench.file("a.jsonl", "{\"text\":\"one\"}\n");
    bench.file("b.jsonl.gz", truncated());
    bench.file("c.txt", "two");
    let ran = bench.run(&["read", "a.jsonl", "b.jsonl.gz", "c.txt"]);
    ran.code(3).prints("\"one\"").prints("\"two\"").says(LAST);
    ran.says("arose: b.jsonl.gz: truncated: the input ends in a member\n");
    // The same from standard input, and with no readable input at all.
    bench
        .run_with(&["read", "-"], &truncated())
        .code(3)
        .says("arose: standard input: truncated");
    bench.file("d.csv", "id,words\n1,one\n");
    let ran = bench.run(&["read", "d.csv"]);
    ran.code(3)
        .says("columns found: id, words; set --text-field\n");
    bench.file("e.jsonl", "{\"words\":1}\n");
    bench.run(&["read", "e.jsonl"]).code(3).says(LAST);
}

/// Each command names the files it cannot read, and processes the rest.
#[track_caller]
fn check_unreadable(run: impl Fn(&[&str]) -> Ran, cause: &str) {
    let named = format!("in/b.jsonl: unreadable: {cause}");
    let ran = run(&["read", "in"]);
    ran.code(3).says(&named).says(LAST).prints("\"one\"");
    let ran = run(&["dedup", "in", "-o", "out"]);
    ran.code(3).says(&named);
    run(&["index", "create", "seen"]).code(0);
    let ran = run(&["index", "add", "seen", "in"]);
    ran.code(3).says(&named).says("2 added");
    run(&["read", "in/b.jsonl"]).code(3).says(&named).says(LAST);
    run(&["read", "--strict", "in"]).code(2).says(&named);
}

/// A file that can be opened, but fails when it is read, for any user.
#[cfg(target_os = "linux")]
#[test]
fn issue_19_files_that_fail_when_read() {
    let bench = Bench::new();
    bench.file("in/a.jsonl", "{\"text\":\"one\"}\n");
    bench.file("in/c.txt", "two");
    std::os::unix::fs::symlink("/proc/self/mem", bench.path().join("in/b.jsonl")).unwrap();
    check_unreadable(|arguments| bench.run(arguments), "Input/output error");
}

/// Files without permission. Root can read them all, so there the command runs as the user nobody.
#[cfg(target_os = "linux")]
#[test]
fn issue_19_files_without_permission() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let bench = Bench::new();
    bench.file("in/a.jsonl", "{\"text\":\"one\"}\n");
    bench.file("in/b.jsonl", "{\"text\":\"secret\"}\n");
    bench.file("in/c.txt", "two");
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(bench.path(), 0o777);
    allow(&bench.path().join("in/b.jsonl"), 0);
    if fs::metadata(bench.path()).unwrap().uid() != 0 {
        return check_unreadable(|arguments| bench.run(arguments), "Permission denied");
    }
    let as_nobody = |arguments: &[&str]| {
        let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"];
        let ran = Command::new("setpriv")
            .args(nobody)
            .arg(env!("CARGO_BIN_EXE_arose"))
            .args(arguments)
            .current_dir(bench.path())
            .output();
        Ran(ran.expect("setpriv is part of util-linux"))
    };
    check_unreadable(as_nobody, "Permission denied");
}

#[test]
fn issue_19_damaged_records_end_with_0() {
    let bench = Bench::new();
    let lines: String = (0..30)
        .map(|n| format!("{{\"text\":\"{n}\"}}\nbad {n}\n"))
        .collect();
    bench.file("a.jsonl", lines);
    let ran = bench.run(&["read", "a.jsonl"]);
    ran.code(0).says("  30 skipped: not a JSON object\n");
    assert_eq!(ran.err().matches("arose: a.jsonl, byte ").count(), 20);
    let ran = bench.run(&["dedup", "a.jsonl", "-o", "out"]);
    ran.code(0).prints("  not a JSON object              30\n");
    bench.run(&["index", "create", "seen"]).code(0);
    let ran = bench.run(&["index", "add", "seen", "a.jsonl"]);
    ran.code(0).says("30 added");
    assert_eq!(ran.err().matches("arose: a.jsonl, byte ").count(), 20);
}

#[test]
fn issue_19_strict_ends_with_2() {
    let bench = Bench::new();
    bench.file(
        "a.jsonl",
        "{\"text\":\"one\"}\nbad\n{\"text\":null}\n{\"text\":\"two\"}\n",
    );
    bench.file("good.jsonl", "{\"text\":\"one\"}\n{\"text\":null}\n");
    bench.file("b.jsonl.gz", truncated());
    let remedy = "; repair the input or run without --strict\n";
    for input in ["a.jsonl", "b.jsonl.gz"] {
        let ran = bench.run(&["read", "--strict", input]);
        ran.code(2)
            .says("arose: the input is incomplete: ")
            .says(remedy);
        let ran = bench.run(&["dedup", "--strict", input, "-o", "out"]);
        ran.code(2)
            .says("arose: the input is incomplete: 1 ")
            .says(remedy);
        assert!(!bench.path().join("out/kept.jsonl").exists());
        fs::remove_dir_all(bench.path().join("out")).unwrap();
        bench
            .run(&["sketch", "--strict", input])
            .code(2)
            .says(remedy);
    }
    bench.run(&["index", "create", "seen"]).code(0);
    for input in ["a.jsonl", "b.jsonl.gz"] {
        bench
            .run(&["index", "add", "--strict", "seen", "good.jsonl", input])
            .code(2)
            .says(remedy);
    }
    bench
        .run(&["index", "status", "seen"])
        .prints("documents                         0\n");
    bench
        .run(&["index", "query", "--strict", "seen", "a.jsonl"])
        .code(2)
        .says(remedy);
    let ran = bench.run_with(&["index", "add", "--strict", "seen", "-"], b"text");
    ran.code(2)
        .says("--strict cannot check standard input before it is used; pass a file\n");
    for command in [
        &["read"][..],
        &["dedup", "-o", "out"],
        &["index", "add", "seen"],
    ] {
        let arguments = [command, &["--strict", "good.jsonl"]].concat();
        bench.run(&arguments).code(0);
    }
}

#[test]
fn issue_19_dedup_names_incomplete_files() {
    let bench = Bench::new();
    bench.file("a.jsonl", "{\"text\":\"one\"}\n{\"text\":null}\n");
    bench.file("b.jsonl.gz", truncated());
    bench.file("c.py", "print()");
    let ran = bench.run(&["dedup", ".", "-o", "out"]);
    ran.code(3)
        .says("arose: ./b.jsonl.gz: truncated")
        .says(LAST);
    // The summary names the file, once.
    ran.prints(
        "incomplete files                  1  not read completely\n  ./b.jsonl.gz: truncated: ",
    );
    assert_eq!(ran.out().matches("b.jsonl.gz").count(), 1, "{}", ran.out());
    ran.prints("unknown formats                   1  .py 1\n");
    ran.prints("  1 record with null text in the kept output\n");
    // A completed run reports it again, also in JSON.
    let ran = bench.run(&["dedup", ".", "-o", "out", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(ran.code(3).says(LAST).out()).unwrap();
    assert_eq!(summary["incomplete_files"][0]["reason"], "truncated");
    // Standard input is reported by its name.
    let ran = bench.run_with(&["dedup", "-", "-o", "piped"], &truncated());
    ran.code(3).says("arose: standard input: truncated");
    let passages = bench.run(&["passages", "b.jsonl.gz", "-o", "passages"]);
    passages.code(3).says("arose: b.jsonl.gz: truncated");
    passages.prints("not read completely\n  b.jsonl.gz: truncated: ");
    assert_eq!(passages.out().matches("b.jsonl.gz").count(), 1);
}

#[test]
fn issue_19_an_index_is_not_read_into_itself() {
    let bench = Bench::new();
    bench.run(&["index", "create", "seen"]).code(0);
    bench.file("seen/stray.txt", "stray");
    bench.file("a.txt", "one");
    bench.file("b.jsonl.gz", truncated());
    let ran = bench.run(&["index", "add", ".", "--exclude", "*.gz", "seen"]);
    ran.code(2);
    bench
        .run(&["index", "add", "seen", ".", "--exclude", "*.gz"])
        .code(0)
        .says("1 added");
    bench
        .run(&["index", "add", "seen", "b.jsonl.gz"])
        .code(3)
        .says(LAST);
    bench
        .run(&["index", "query", "seen", "b.jsonl.gz", "a.txt"])
        .code(3)
        .says(LAST);
}

#[test]
fn issue_19_empty_inputs_are_said() {
    let bench = Bench::new();
    fs::create_dir(bench.path().join("empty")).unwrap();
    bench.file("a.jsonl", "");
    let ran = bench.run(&["read", "empty", "a.jsonl"]);
    ran.code(1)
        .says("arose: empty: empty input: directory without readable files\n");
    ran.says("arose: a.jsonl: empty input: 0 bytes\n");
    bench
        .run(&["read", "*.nothing"])
        .code(2)
        .says("no file matches `*.nothing`");
    bench
        .run(&["dedup", "empty", "-o", "out", "--strict"])
        .code(1);
}

#[test]
fn issue_19_files_are_chosen() {
    let bench = Bench::new();
    for name in ["a.py", "b.rst", "c.txt", "d/e.py", "LICENSE"] {
        bench.file(name, name);
    }
    let ran = bench.run(&["read", "."]);
    ran.code(0)
        .says("  unknown formats: .py 2, .rst 1, no extension 1\n");
    let read = |more: &[&str]| {
        let ran = bench.run(&[&["read", "--format", "text", "."], more].concat());
        let names = ran
            .out()
            .lines()
            .filter_map(|line| line.strip_prefix("== "));
        names
            .map(|name| name.trim_end_matches("#0").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(read(&["--include", "*.py"]), ["./a.py", "./d/e.py"]);
    assert_eq!(read(&["--all-text", "--exclude", "d"]).len(), 4);
    let ran = bench.run(&["dedup", ".", "-o", "out", "--all-text"]);
    ran.code(0).prints("read                              5\n");
    bench
        .run(&["read", ".", "--include", "[a"])
        .code(2)
        .says("malformed pattern `[a`");
}

#[test]
fn issue_19_compare_reads_what_others_read() {
    let bench = Bench::new();
    let text = "A rose is a rose, whatever anyone may call it, on this or any other day.";
    let page = format!("<html><style>p {{}}</style><p>{text}</p></html>");
    bench.file("a.txt", text);
    bench.file("b.html", &page);
    bench.file("c.txt.gz", gzip(text.as_bytes()));
    bench.file(
        "d.jsonl",
        format!("{{\"id\":\"x\",\"text\":\"{text}\"}}\n{{\"text\":\"other\"}}\n"),
    );
    let exact = "rule     exact: the texts are the same\n";
    bench
        .run(&["compare", "a.txt", "b.html"])
        .code(0)
        .prints(exact);
    bench
        .run(&["compare", "a.txt", "c.txt.gz"])
        .code(0)
        .prints(exact);
    bench
        .run_with(&["compare", "-", "c.txt.gz"], page.as_bytes())
        .code(0)
        .prints(exact);
    bench
        .run(&["compare", "a.txt", "b.html", "--mode", "plain"])
        .code(0)
        .prints("rule     none");
    let ran = bench.run(&["compare", "a.txt", "d.jsonl"]);
    ran.code(2)
        .says("d.jsonl contains more than one document; choose one with --document-b ID\n");
    bench
        .run(&["compare", "a.txt", "d.jsonl", "--document-b", "x"])
        .code(0)
        .prints(exact);
    let ran = bench.run(&[
        "compare",
        "d.jsonl",
        "d.jsonl",
        "--document-a",
        "x",
        "--document-b",
        "0",
    ]);
    ran.code(0).prints(exact);
    let ran = bench.run(&["compare", "a.txt", "d.jsonl", "--document-b", "y"]);
    ran.code(2).says("d.jsonl contains no document `y`\n");
    bench.file("e.jsonl.gz", truncated());
    let ran = bench.run(&["compare", "a.txt", "e.jsonl.gz", "--document-b", "0"]);
    ran.code(2).says("arose: cannot read e.jsonl.gz: truncated");
}

#[test]
fn issue_19_sketch_reads_what_others_read() {
    let bench = Bench::new();
    bench.file(
        "a.jsonl",
        "{\"id\":\"x\",\"text\":\"a rose\"}\n{\"text\":\"is a rose\"}\n",
    );
    bench.file("b.html.gz", gzip(b"<p>a <b>ro</b>se</p>"));
    bench.file("c.jsonl.gz", truncated());
    let ran = bench.run(&["sketch", "--json", "a.jsonl", "b.html.gz"]);
    let sketches = ran.code(0).out().lines().map(|line| {
        let sketch: serde_json::Value = serde_json::from_str(line).unwrap();
        (
            sketch["id"].as_str().unwrap().to_owned(),
            sketch["tokens"].as_u64(),
        )
    });
    let expected = [("x", 2), ("a.jsonl#27", 3), ("b.html.gz#0", 2)];
    let expected = expected.map(|(id, n)| (id.to_owned(), Some(n)));
    assert_eq!(sketches.collect::<Vec<_>>(), expected);
    let ran = bench.run(&["sketch", "b.html.gz", "c.jsonl.gz", "a.jsonl"]);
    ran.code(3)
        .says(LAST)
        .prints("b.html.gz\n  tokens          2")
        .prints("x\n  tokens          2");
}

#[test]
fn issue_19_search_names_incomplete_archives() {
    let bench = Bench::new();
    let body = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\na rose is a rose";
    let record = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Target-URI: \
         http://x.example/\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nContent-Type: application/http\r\n\
         Content-Length: {}\r\n\r\n{body}\r\n\r\n",
        body.len()
    );
    bench.file(
        "web/a.warc",
        format!("{record}{}", &record[..record.len() - 30]),
    );
    let ran = bench.run(&["search", "web", "rose"]);
    ran.code(0)
        .says("a.warc, byte ")
        .says("; only part of it is in the search index\n");
}
