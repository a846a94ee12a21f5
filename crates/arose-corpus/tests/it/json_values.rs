//! Tests of JSON that is detected by its beginning, and of JSON that is not JSON Lines.

use std::io::Read;
use std::path::Path;

use arose_corpus::{
    Config, Item, Limits, Position, Reason, fetch, is_json_array, is_plain_json_lines, keep,
    read_from,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{
    Folder, Pack, bzip2, config, damage, documents, gzip, items, items_with, noise, piped, texts,
    xz, zstd,
};

/// Reads the bytes as a file with this name, compressed in every way, and from standard input.
#[track_caller]
fn check(name: &str, bytes: &[u8], expected: &[&str]) {
    let folder = Folder::new();
    let packings: [(&str, Pack); 5] = [
        ("", <[u8]>::to_vec),
        (".gz", gzip),
        (".zst", zstd),
        (".xz", xz),
        (".bz2", bzip2),
    ];
    for (ending, pack) in packings {
        let name = format!("{name}{ending}");
        let found = items(&[&folder.file(&name, &pack(bytes))]);
        assert_eq!(texts(&found), expected, "{name}");
        assert_eq!(damage(&found), [] as [&_; 0], "{name}");
        assert_eq!(
            piped("-", &pack(bytes), Config::default()).len(),
            found.len()
        );
    }
    for threads in [1, 3] {
        for block_bytes in [1, 100, 1 << 20] {
            let found = piped("-", bytes, config(threads, block_bytes));
            assert_eq!(texts(&found), expected, "{name} in blocks of {block_bytes}");
        }
    }
}

fn long_lines(n_bytes: usize) -> (Vec<u8>, Vec<String>) {
    let texts: Vec<String> = (0..3)
        .map(|n| format!("{n} {}", "rose ".repeat(n_bytes / 5)))
        .collect();
    let lines = texts
        .iter()
        .map(|text| json!({"text": text}).to_string() + "\n");
    (lines.collect::<String>().into_bytes(), texts)
}

#[test]
fn issue_19_a_long_first_line() {
    for n_bytes in [60_000, 96_000, 200_000, 3_000_000] {
        let (lines, expected) = long_lines(n_bytes);
        let expected: Vec<&str> = expected.iter().map(|text| text.trim()).collect();
        let folder = Folder::new();
        for name in ["a.json", "data"] {
            let path = folder.file(name, &lines);
            assert_eq!(texts(&items(&[&path])), expected, "{name}");
            assert!(is_plain_json_lines(&path, &Config::default()), "{name}");
            let path = folder.file(&format!("{name}.gz"), &gzip(&lines));
            assert_eq!(texts(&items(&[&path])), expected, "{name}.gz");
        }
        for bytes in [lines.clone(), gzip(&lines)] {
            assert_eq!(texts(&piped("-", &bytes, Config::default())), expected);
        }
    }
}

/// A line beyond the limit is reported, and the others are read.
#[test]
fn a_first_line_beyond_the_limit() {
    let (lines, expected) = long_lines(500_000);
    let lines = [&lines[..], b"{\"text\":\"short\"}\n"].concat();
    let limits = Limits {
        line_bytes: 200_000,
        ..Limits::default()
    };
    let config = Config {
        limits,
        ..Config::default()
    };
    let found = piped("-", &lines, config);
    assert_eq!(texts(&found), ["short"]);
    assert_eq!(damage(&found).len(), expected.len());
}

const TEXTS: [&str; 3] = ["one", "two\n{lines}", "three \"]}\\"];

fn objects() -> Vec<Value> {
    let object = |(n, text)| json!({"id": n, "meta": {"text": "not me", "list": [{}, [{"text": "nor me"}]]}, "text": text});
    TEXTS.iter().enumerate().map(object).collect()
}

#[test]
fn issue_19_arrays_of_objects() {
    let array = Value::Array(objects());
    let lines: Vec<String> = objects().iter().map(Value::to_string).collect();
    for bytes in [
        array.to_string(),
        serde_json::to_string_pretty(&array).unwrap(),
        format!("[{}\n]", lines.join(",\n")),
        format!(
            "\u{feff} \r\n[\r\n  {}\r\n]\r\n",
            lines.join("\r\n  ,\r\n  ")
        ),
    ] {
        check("a.json", bytes.as_bytes(), &TEXTS);
        check("data", bytes.as_bytes(), &TEXTS);
    }
}

#[test]
fn issue_19_objects_one_after_the_other() {
    let pretty: Vec<String> = objects()
        .iter()
        .map(|object| serde_json::to_string_pretty(object).unwrap())
        .collect();
    let compact: Vec<String> = objects().iter().map(Value::to_string).collect();
    for bytes in [
        pretty.join("\n"),
        pretty.concat(),
        pretty.join(",\n"),
        compact.concat(),
        compact.join(" "),
    ] {
        check("a.json", bytes.as_bytes(), &TEXTS);
        check("data", bytes.as_bytes(), &TEXTS);
    }
    check("one.json", pretty[0].as_bytes(), &TEXTS[..1]);
}

#[test]
fn positions_lead_back() {
    let array = serde_json::to_vec_pretty(&Value::Array(objects())).unwrap();
    let folder = Folder::new();
    for (name, bytes) in [
        ("a.json", array.clone()),
        ("a.json.gz", gzip(&array)),
        ("a.json.xz", xz(&array)),
        ("a.json.bz2", bzip2(&array)),
        ("members.json.gz", array.chunks(40).flat_map(gzip).collect()),
        (
            "members.json.bz2",
            array.chunks(40).flat_map(bzip2).collect(),
        ),
    ] {
        let path = folder.file(name, &bytes);
        let found = items(&[&path]);
        let positions: Vec<Position> = documents(&found).iter().map(|d| d.position).collect();
        assert_eq!(positions.len(), 3, "{name}");
        if name == "a.json" {
            let at = |p: &Position| array[p.offset as usize];
            assert!(positions.iter().all(|p| at(p) == b'{' && p.inner == 0));
        }
        for chosen in [&positions[..], &positions[2..]] {
            let again = fetch(&path, chosen, &Config::default()).unwrap();
            let again: Vec<_> = again.iter().flatten().collect();
            assert_eq!(again.len(), chosen.len(), "{name}");
            assert_eq!(again.last(), documents(&found).last(), "{name}");
        }
        let nowhere = Position {
            offset: 1,
            inner: 1,
        };
        assert_eq!(
            fetch(&path, &[nowhere], &Config::default()).unwrap(),
            [None]
        );
    }
}

/// Records are copied unchanged, in an array if they were in one.
#[test]
fn kept_objects() {
    let folder = Folder::new();
    let keep = |name: &str, bytes: &[u8], every: usize| {
        let path = folder.file(name, bytes);
        let found = items(&[&path]);
        let positions = documents(&found)
            .into_iter()
            .map(|document| document.position);
        let positions: Vec<Position> = positions.step_by(every).collect();
        let mut copy = Vec::new();
        let kept = keep(&path, &positions, &mut copy, &Config::default()).unwrap();
        assert_eq!((kept.copied, kept.missing), (positions.len() as u64, 0));
        copy
    };
    let pretty = |value: &Value| serde_json::to_string_pretty(value).unwrap();
    let array = pretty(&Value::Array(objects()));
    let copy: Value = serde_json::from_slice(&keep("a.json", array.as_bytes(), 2)).unwrap();
    let expected = Value::Array(objects().into_iter().step_by(2).collect());
    assert_eq!(copy, expected);
    assert!(is_json_array(
        &folder.path().join("a.json"),
        &Config::default()
    ));
    let packed = keep("a.json.xz", &xz(array.as_bytes()), 2);
    assert_eq!(
        texts(&piped("-", &packed, Config::default())),
        [TEXTS[0], TEXTS[2]]
    );
    let sequence = objects().iter().map(pretty).collect::<String>();
    let copy = keep("b.json", sequence.as_bytes(), 2);
    let expected = [pretty(&objects()[0]), pretty(&objects()[2])].join("\n") + "\n";
    assert_eq!(String::from_utf8(copy).unwrap(), expected);
    assert!(!is_json_array(
        &folder.path().join("b.json"),
        &Config::default()
    ));
    let path = folder.file("c.json", array.as_bytes());
    let mut copy = Vec::new();
    arose_corpus::keep(&path, &[], &mut copy, &Config::default()).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&copy).unwrap(), json!([]));
}

/// Each flaw is reported once with its position; everything else is read.
#[track_caller]
fn check_flaw(bytes: &str, expected: &[&str], reason: Reason, at: usize) {
    for found in [
        piped("a.json", bytes.as_bytes(), Config::default()),
        piped("-", bytes.as_bytes(), config(2, 10)),
    ] {
        assert_eq!(texts(&found), expected, "{bytes:.300}");
        let found: Vec<_> = damage(&found)
            .iter()
            .map(|warning| (warning.reason, warning.position.offset))
            .collect();
        assert_eq!(found, [(reason, at as u64)], "{bytes:.300}");
    }
}

#[test]
fn flawed_objects_cost_themselves() {
    use Reason::NotAnObject as Bad;
    // Flaws between intact brackets, on one line.
    for flawed in [
        "{\"x\":NaN}",
        "{\"x\":[{},{\"text\":tru}]}",
        "{x:1}",
        "{\"x\":\"\\q\"}",
        "{\"a\":{\"b\":1]]",
    ] {
        let array = format!("[{{\"text\":\"a\"}},{flawed},{{\"text\":\"b\"}}]");
        check_flaw(&array, &["a", "b"], Bad, 14);
    }
    for flawed in ["17", "\"text\"", "null", "[{\"text\":\"x\"}]"] {
        let array = format!("[{{\"text\":\"a\"}},{flawed},{{\"text\":\"b\"}}]");
        check_flaw(&array, &["a", "b"], Bad, 14);
    }
    // Missing brackets and quotes, over several lines.
    for flawed in [
        "{\n  \"x\": 1\n",
        "{\n  \"x\": \"1\n}\n",
        "{\n  \"x: \"1\"\n}\n",
        "{\n \"x\": [\n {\n}\n",
    ] {
        let sequence = format!(
            "{{\n  \"text\": \"a\"\n}}\n{flawed}{{\n  \"text\": \"b\"\n}}\n{{\n  \"text\": \"c\"\n}}\n"
        );
        check_flaw(&sequence, &["a", "b", "c"], Bad, 18);
        // In an array, an array that is not closed swallows what follows, which cannot be detected.
        if flawed.contains('[') {
            continue;
        }
        let array = format!(
            "[\n  {}\n]",
            sequence
                .trim()
                .replace('\n', "\n  ")
                .replace("}\n  {", "},\n  {")
        );
        check_flaw(&array, &["a", "b", "c"], Bad, 29);
    }
    let junk = "[{\"text\":\"a\"} hello, {\"text\":\"b\"}]";
    check_flaw(junk, &["a", "b"], Bad, 14);
}

#[test]
fn deep_large_and_cut_objects() {
    let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let array = format!("[{{\"text\":\"a\"}},{deep},{{\"text\":\"b\"}}]");
    check_flaw(&array, &["a", "b"], Reason::NotAnObject, 14);
    let open = format!("[{{\"text\":\"a\"}},{}", "[".repeat(1_000_000));
    check_flaw(&open, &["a"], Reason::NotAnObject, 14);
    check_flaw("[{\"text\":\"a\"},", &["a"], Reason::Truncated, 14);
    check_flaw(
        "[{\"text\":\"a\"},{\"text\":\"b",
        &["a"],
        Reason::Truncated,
        14,
    );
    check_flaw(
        "{\n\"text\":\"a\"}\n{\"text\":",
        &["a"],
        Reason::Truncated,
        14,
    );
    let large = format!(
        "[{{\"text\":\"a\"}},{{\"text\":\"{}\"}},{{\"text\":\"b\"}}]",
        "x".repeat(500_000)
    );
    for line_bytes in [1000, 100_000, 400_000] {
        let limits = Limits {
            line_bytes,
            ..Limits::default()
        };
        let config = Config {
            limits,
            ..config(1, 1000)
        };
        let found = piped("a.json", large.as_bytes(), config);
        assert_eq!(texts(&found), ["a", "b"]);
        assert_eq!(damage(&found)[0].reason, Reason::TooLarge);
        assert_eq!(damage(&found).len(), 1);
    }
}

/// A damaged member loses the objects in it.
#[test]
fn damaged_compression() {
    let objects: Vec<String> = (0..30)
        .map(|n| {
            serde_json::to_string_pretty(&json!({"id": n, "text": noise(n, 100)})).unwrap() + "\n"
        })
        .collect();
    for pack in [gzip as fn(&[u8]) -> Vec<u8>, xz, bzip2] {
        let members: Vec<Vec<u8>> = objects
            .iter()
            .map(|object| pack(object.as_bytes()))
            .collect();
        let start: usize = members[..7].iter().map(Vec::len).sum();
        let mut bytes = members.concat();
        bytes[start + members[7].len() / 2] ^= 0x10;
        let found = piped("a.json", &bytes, Config::default());
        // The bytes that the decoder returned before it noticed the damage are there, changed.
        let intact = documents(&found);
        let intact = intact.iter().filter(|document| {
            let n: u64 = document
                .id
                .as_deref()
                .and_then(|id| id.parse().ok())
                .unwrap_or(99);
            document.text == noise(n, 100)
        });
        assert_eq!(intact.count(), 29);
        let warnings = damage(&found);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert_eq!(warnings[0].reason, Reason::BadCompression);
        assert_eq!(warnings[0].position.offset, start as u64);
    }
}

/// Text that is not JSON is not read as JSON.
#[test]
fn texts_that_start_with_brackets() {
    for text in [
        "{% include x %}\nrose",
        "[1] A rose.\n[2] Another.",
        "[link](rose)",
        "{ rose }",
        "{}: rose",
        "[ ] rose",
        "[rose]\na = 1",
    ] {
        let found = piped("-", text.as_bytes(), Config::default());
        assert_eq!(texts(&found), [text]);
        let folder = Folder::new();
        assert_eq!(
            texts(&items(&[&folder.file("a.md", text.as_bytes())])),
            [text]
        );
    }
    let folder = Folder::new();
    folder.file("settings.conf", b"{\n  \"a\": 1\n}");
    folder.file("part-00000", b"[\n {\"text\": \"rose\"}\n]");
    let found = items(&[folder.path()]);
    assert_eq!(texts(&found), ["rose"]);
    assert_eq!(damage(&found).len(), 0);
}

/// JSON Lines with a damaged first line are still JSON Lines.
#[test]
fn a_flawed_first_line() {
    for first in ["{\"text\": \"a", "{\"text\": NaN}", "{\"text\": \"a\"} x"] {
        let lines = format!("{first}\n{{\"text\":\"b\"}}\n{{\"text\":\"c\"}}\n");
        check_flaw(&lines, &["b", "c"], Reason::NotAnObject, 0);
    }
    let found = piped(
        "-",
        b"{\"text\": NaN}\n{\"text\": NaN}\n",
        Config::default(),
    );
    assert_eq!(damage(&found).len(), 2, "{found:?}");
    let found = piped(
        "a.json",
        b"{\n \"x\": NaN\n}\n{\n \"text\": \"b\"\n}",
        Config::default(),
    );
    assert_eq!((texts(&found), damage(&found).len()), (vec!["b"], 1));
}

/// An endless array, read while it is written.
struct Endless(u64, Vec<u8>);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.1.is_empty() {
            let start = if self.0 == 0 { "[" } else { "," };
            self.1 = format!("{start}\n  {{\n    \"text\": \"rose {}\"\n  }}", self.0).into_bytes();
            self.0 += 1;
        }
        let n = buffer.len().min(self.1.len());
        buffer[..n].copy_from_slice(&self.1[..n]);
        self.1.drain(..n);
        Ok(n)
    }
}

#[test]
fn arrays_are_streamed() {
    let mut found = read_from(Path::new("-"), Endless(0, Vec::new()), config(2, 10_000));
    let last = found.by_ref().nth(20_000);
    let Some(Item::Document(document)) = last else {
        panic!("{last:?}");
    };
    assert_eq!(document.text, "rose 20000");
}

#[track_caller]
fn fields(text: &str, url: &str) -> Config {
    let mut config = Config::default();
    config.fields.text = vec![text.to_owned()];
    config.fields.url = vec![url.to_owned()];
    config
}

#[test]
fn issue_19_fields_by_path() {
    let check = |line: &str, text: Option<&str>, url: Option<&str>| {
        for input in [line.to_owned(), format!("[{line}]")] {
            let folder = Folder::new();
            let path = folder.file("a.json", input.as_bytes());
            let found = items_with(&[&path], fields("data.text", "meta.page.url"));
            let document = documents(&found).first().copied();
            assert_eq!(document.map(|d| d.text.as_str()), text, "{input}");
            assert_eq!(document.and_then(|d| d.url.as_deref()), url, "{input}");
        }
    };
    check(
        r#"{"data":{"text":"a","x":1},"meta":{"page":{"url":"u"}}}"#,
        Some("a"),
        Some("u"),
    );
    check(
        r#"{"data.text":"a","data":{"text":"b"},"meta.page":{"url":"u"}}"#,
        Some("a"),
        Some("u"),
    );
    check(
        r#"{"data":{"text":"b"},"data.text":"a","meta":{"page.url":7}}"#,
        Some("a"),
        Some("7"),
    );
    check(
        r#"{"d\u0061ta":{"t\u0065xt":"\u00e4"},"meta":[{"page":1}]}"#,
        Some("ä"),
        None,
    );
    // The last of equal keys counts.
    check(
        r#"{"data":{"text":"a"},"data":{"text":"b"}}"#,
        Some("b"),
        None,
    );
    check(r#"{"data":{"text":"a"},"data":null}"#, None, None);
    check(r#"{"data":{"text":{"text":"a"}},"text":"b"}"#, None, None);
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i32>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::String),
        "[\\[\\]{}\",:\\\\\n a]{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            proptest::collection::vec((".{0,4}", inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// A full parser gives the expected content.
    #[test]
    fn agrees_with_a_full_parser(
        trees in proptest::collection::vec(("[ -~]{0,20}", tree()), 1..8),
        is_pretty in any::<bool>(),
        is_array in any::<bool>(),
        block_bytes in 1_usize..300,
    ) {
        let objects: Vec<Value> = trees.iter().map(|(text, tree)| json!({"text": text, "x": tree})).collect();
        let print = |value: &Value| match is_pretty {
            true => serde_json::to_string_pretty(value).unwrap(),
            false => value.to_string(),
        };
        let bytes = match is_array {
            true => print(&Value::Array(objects)),
            false => objects.iter().map(print).collect(),
        };
        let found = piped("a.json", bytes.as_bytes(), config(1, block_bytes));
        let expected: Vec<&str> = trees.iter().map(|(text, _)| text.trim()).collect();
        prop_assert_eq!(texts(&found), expected);
        prop_assert_eq!(damage(&found).len(), 0);
    }

    /// Random bytes in place of some: only warnings, and the same for any block size.
    #[test]
    fn any_damage(
        trees in proptest::collection::vec(tree(), 1..6),
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), "[\\[\\]{}\",:\\\\\n a]"), 1..6),
        is_array in any::<bool>(),
    ) {
        let objects: Vec<Value> = trees.iter().map(|tree| json!({"text": "rose", "x": tree})).collect();
        let print = |value: &Value| serde_json::to_string_pretty(value).unwrap();
        let mut bytes = match is_array {
            true => print(&Value::Array(objects)).into_bytes(),
            false => objects.iter().map(print).collect::<String>().into_bytes(),
        };
        for (index, letter) in edits {
            let at = index.index(bytes.len());
            bytes[at] = letter.as_bytes()[0];
        }
        let whole = piped("a.json", &bytes, config(1, 1 << 20));
        prop_assert_eq!(piped("a.json", &bytes, config(2, 16)), whole);
    }
}
