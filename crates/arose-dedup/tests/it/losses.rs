//! Tests of the files that a run reads, of records without text, and of reported losses.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use arose_dedup::{Config, Error, OnLoss};
use arrow_array::{Int64Array, RecordBatch, StringArray};
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use crate::support::Bench;

const ROSE: &str = "a rose is a rose is a rose whatever else anyone may call it on that day";
const THORN: &str = "no rose without a thorn and no thorn without somebody who complains of it";

fn strict() -> Config {
    Config {
        on_loss: OnLoss::Refuse,
        ..Config::default()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A truncated file of lines that are all different.
fn truncated() -> Vec<u8> {
    let mut state = 1_u64;
    let lines: String = (0..2000)
        .map(|_| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            format!(
                "{{\"text\":\"{state:x} {:x} {:x}\"}}\n",
                state >> 9,
                state >> 17
            )
        })
        .collect();
    let packed = gzip(lines.as_bytes());
    packed[..packed.len() / 2].to_vec()
}

#[test]
fn issue_19_the_output_in_the_input_is_not_read() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", &format!("{}\n", json!({ "text": ROSE })));
    bench.write(
        "in/.cache/b.jsonl",
        &format!("{}\n", json!({ "text": THORN })),
    );
    bench.write("in/c.py", "print('a rose')");
    let inputs = [bench.path("in")];
    let out = bench.path("in/out");
    let run = |start| {
        let progress = arose_dedup::Progress::default();
        arose_dedup::run(&inputs, &Config::default(), &out, start, &progress).unwrap()
    };
    let first = run(arose_dedup::Start::Resume);
    assert_eq!(first["counts"]["read"], 1);
    assert_eq!(first["unknown_files"], json!({ ".py": 1 }));
    // Even with its own results in the directory, it still reads one document.
    assert_eq!(run(arose_dedup::Start::Anew)["counts"]["read"], 1);
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("Files of unknown formats were not read: .py 1."));
}

#[test]
fn issue_19_an_input_in_the_output_is_refused() {
    let bench = Bench::with_texts(&[ROSE.to_owned()]);
    bench.run(&Config::default());
    let again = bench.run_on(&["out/kept.jsonl"], &Config::default());
    assert!(
        matches!(again, Err(Error::InsideOutput { .. })),
        "{again:?}"
    );
}

#[test]
fn issue_19_null_texts_stay_in_the_kept_lines() {
    let bench = Bench::new();
    let null = "{\"id\": 1,  \"text\": null, \"other\":[1]}\r\n";
    let rose = format!("{}\n", json!({ "id": 2, "text": ROSE }));
    let lines = [
        null,
        &rose,
        &null.replace('1', "3"),
        &rose.replace('2', "4"),
        "{\"text\":null}",
    ];
    bench.write("input.jsonl", &lines.concat());
    let summary = bench.run(&Config::default());
    let counts = &summary["counts"];
    assert_eq!((&counts["read"], &counts["kept"]), (&json!(2), &json!(1)));
    assert_eq!(counts["null_text"], 3);
    assert_eq!(
        counts["skipped"],
        json!({ "total": 3, "by_reason": { "null text": 3 } })
    );
    assert_eq!(
        (&counts["incomplete_files"], &counts["damaged_records"]),
        (&json!(0), &json!(0))
    );
    let kept = fs::read_to_string(bench.path("out/kept.jsonl")).unwrap();
    let expected = [lines[0], lines[1], lines[2], lines[4], "\n"];
    assert_eq!(kept, expected.concat());
    assert_eq!(bench.docs().len(), 2);
    let report = fs::read_to_string(bench.path("out/report.html")).unwrap();
    assert!(report.contains("3 records have null text."));
    // This is not a loss, and neither is a null in a compressed file.
    fs::write(
        bench.path("input.jsonl.gz"),
        gzip(lines.concat().as_bytes()),
    )
    .unwrap();
    fs::remove_dir_all(bench.path("out")).unwrap();
    bench.run_on(&["input.jsonl.gz"], &strict()).unwrap();
    let mut kept = String::new();
    let packed = fs::File::open(bench.path("out/kept.jsonl.gz")).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut kept).unwrap();
    assert_eq!(kept, expected.concat());
}

#[test]
fn issue_19_null_texts_stay_in_the_kept_rows() {
    let bench = Bench::new();
    let ids = Int64Array::from_iter_values(0..5);
    let texts = StringArray::from(vec![None, Some(ROSE), Some(ROSE), None, Some(THORN)]);
    let batch = RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as _),
        ("text", Arc::new(texts) as arrow_array::ArrayRef),
    ]);
    let batch = batch.unwrap();
    let file = fs::File::create(bench.path("input.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let summary = bench.run_on(&["input.parquet"], &strict()).unwrap();
    assert_eq!(summary["counts"]["null_text"], 2);
    let kept = arose_corpus::read(&[bench.path("out/kept.parquet")], Default::default()).unwrap();
    let mut kept = kept;
    kept.by_ref().for_each(drop);
    assert_eq!(kept.counts().documents, 2);
    assert_eq!(kept.counts().skipped[&arose_corpus::Reason::NullText], 2);
}

#[test]
fn issue_19_incomplete_files_are_named_and_the_rest_is_done() {
    let bench = Bench::with_texts(&[ROSE.to_owned(), THORN.to_owned()]);
    fs::write(bench.path("cut.jsonl.gz"), truncated()).unwrap();
    bench.write("columns.csv", "id,words\n1,rose\n");
    let inputs = ["input.jsonl", "cut.jsonl.gz", "columns.csv"];
    let summary = bench.run_on(&inputs, &Config::default()).unwrap();
    assert_eq!(summary["counts"]["incomplete_files"], 2);
    let names: Vec<&str> = files(&summary)
        .iter()
        .map(|file| file["reason"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["truncated", "no text field"]);
    assert!(summary["counts"]["kept"].as_u64().unwrap() > 100);
    let report = fs::read_to_string(bench.path("out/report.html")).unwrap();
    assert!(report.contains("2 files could not be read completely."));
    assert!(report.contains("cut.jsonl.gz: truncated"));
    // A repaired file is detected.
    bench.write("columns.csv", "id,text\n1,rose\n");
    let again = bench.run_on(&inputs, &Config::default());
    assert!(
        matches!(again, Err(Error::InputChanged { .. })),
        "{again:?}"
    );
}

/// A file that can be opened but not read, for any user.
#[cfg(target_os = "linux")]
#[test]
fn issue_19_files_that_fail_when_read_are_named() {
    let bench = Bench::with_texts(&[ROSE.to_owned(), THORN.to_owned()]);
    for name in ["mem.jsonl", "mem.txt", "mem.warc", "mem.parquet"] {
        std::os::unix::fs::symlink("/proc/self/mem", bench.path(name)).unwrap();
        let summary = bench
            .run_on(&["input.jsonl", name], &Config::default())
            .unwrap();
        assert_eq!(summary["counts"]["kept"], 2, "{name}");
        assert_eq!(summary["counts"]["incomplete_files"], 1, "{name}");
        assert_eq!(files(&summary)[0]["reason"], "unreadable", "{name}");
        fs::remove_dir_all(bench.path("out")).unwrap();
        let refused = bench.run_on(&["input.jsonl", name], &strict());
        assert!(
            matches!(refused, Err(Error::InputLost { .. })),
            "{refused:?}"
        );
        fs::remove_dir_all(bench.path("out")).unwrap();
    }
}

fn files(summary: &Value) -> &Vec<Value> {
    summary["incomplete_files"].as_array().unwrap()
}

#[test]
fn issue_19_a_damaged_record_is_counted() {
    let bench = Bench::new();
    bench.write(
        "input.jsonl",
        &format!("{}\nnot JSON\n", json!({ "text": ROSE })),
    );
    let summary = bench.run(&Config::default());
    assert_eq!(summary["counts"]["damaged_records"], 1);
    assert_eq!(files(&summary).len(), 0);
    // A finished run fails like a new one.
    let again = bench.run_on(&["input.jsonl"], &strict());
    assert!(
        matches!(
            again,
            Err(Error::InputLost {
                n_files: 0,
                n_records: 1,
                ..
            })
        ),
        "{again:?}"
    );
}

#[test]
fn issue_19_strict_keeps_nothing_and_reads_again() {
    let bench = Bench::with_texts(&[ROSE.to_owned()]);
    fs::write(bench.path("cut.jsonl.gz"), truncated()).unwrap();
    let inputs = ["input.jsonl", "cut.jsonl.gz"];
    let error = bench.run_on(&inputs, &strict()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.starts_with("the input is incomplete: 1 file cannot be read, first "),
        "{message}"
    );
    assert!(
        message.ends_with("; repair the input or run without --strict"),
        "{message}"
    );
    let left: Vec<_> = fs::read_dir(bench.path("out")).unwrap().collect();
    assert_eq!(left.len(), 1, "only the work directory: {left:?}");
    // After the repair, it is read again.
    fs::write(bench.path("cut.jsonl.gz"), gzip(b"{\"text\":\"whole\"}\n")).unwrap();
    let summary = bench.run_on(&inputs, &strict()).unwrap();
    assert_eq!(summary["counts"]["read"], 2);
}

#[test]
fn issue_19_a_damaged_row_group_does_not_stop_the_run() {
    let bench = Bench::new();
    let path = bench.path("input.parquet");
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(10))
        .build();
    let texts = (0..30).map(|n| format!("{n} {}", ROSE.repeat(n + 1)));
    let texts = StringArray::from_iter_values(texts);
    let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as arrow_array::ArrayRef)]);
    let batch = batch.unwrap();
    let file = fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let metadata = writer.close().unwrap();
    let (start, length) = metadata.row_group(1).column(0).byte_range();
    let mut bytes = fs::read(&path).unwrap();
    bytes[start as usize..(start + length) as usize].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let summary = bench
        .run_on(&["input.parquet"], &Config::default())
        .unwrap();
    assert_eq!(summary["counts"]["incomplete_files"], 1);
    assert_eq!(summary["counts"]["read"], 20);
    let kept = arose_corpus::read(&[bench.path("out/kept.parquet")], Default::default()).unwrap();
    assert_eq!(
        kept.count() as u64,
        summary["counts"]["kept"].as_u64().unwrap()
    );
}

/// A table of three row groups of ten rows. The second is damaged in one column. The bytes before
/// the damage can be read.
fn damaged_table(column: usize) -> [Vec<u8>; 2] {
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(10))
        .build();
    // No two of them are similar.
    let text = |n: usize| (0..20).map(move |i| format!("word{} ", 100 * n + i));
    let texts = StringArray::from_iter_values((0..30).map(|n| text(n).collect::<String>()));
    let notes = StringArray::from_iter_values((0..30).map(|n| format!("note {n}")));
    let batch = RecordBatch::try_from_iter([
        ("text", Arc::new(texts) as arrow_array::ArrayRef),
        ("note", Arc::new(notes) as arrow_array::ArrayRef),
    ]);
    let batch = batch.unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let metadata = writer.close().unwrap();
    let (start, length) = metadata.row_group(1).column(column).byte_range();
    let mut damaged = bytes.clone();
    damaged[start as usize..(start + length) as usize].fill(0xff);
    [bytes, damaged]
}

/// Documents of a table whose other columns are damaged: they are read, and cannot be copied.
#[test]
fn issue_19_rows_that_cannot_be_copied_are_named() {
    let bench = Bench::with_texts(&[THORN.to_owned()]);
    let [whole, damaged] = damaged_table(1);
    fs::write(bench.path("table.parquet"), &damaged).unwrap();
    let inputs = ["input.jsonl", "table.parquet"];
    let summary = bench.run_on(&inputs, &Config::default()).unwrap();
    assert_eq!(summary["counts"]["read"], 31);
    assert_eq!(summary["counts"]["incomplete_files"], 1);
    let file = &files(&summary)[0];
    assert_eq!(file["path"], json!(bench.path("table.parquet")));
    assert_eq!(
        (&file["reason"], &file["position"]),
        (&json!("damaged parquet"), &json!("10"))
    );
    let detail = file["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("row group 1 cannot be copied: "),
        "{detail}"
    );
    let kept = bench.path("out/kept.files/table.parquet");
    let kept = arose_corpus::read(&[kept], Default::default()).unwrap();
    assert_eq!((&summary["counts"]["kept"], kept.count()), (&json!(31), 20));
    assert!(bench.path("out/kept.files/input.jsonl").exists());
    let report = fs::read_to_string(bench.path("out/report.html")).unwrap();
    assert!(report.contains("1 file could not be read completely."));
    // A strict run has no kept output, and starts over after the file is repaired.
    fs::remove_dir_all(bench.path("out")).unwrap();
    let refused = bench.run_on(&inputs, &strict());
    assert!(
        matches!(refused, Err(Error::InputLost { n_files: 1, .. })),
        "{refused:?}"
    );
    assert!(!bench.path("out/kept.files").exists());
    fs::write(bench.path("table.parquet"), &whole).unwrap();
    let summary = bench.run_on(&inputs, &strict()).unwrap();
    assert_eq!(summary["counts"]["incomplete_files"], 0);
}

/// Passages are cut out of what can be read of a table, whichever column is damaged.
#[test]
fn issue_19_passages_of_damaged_tables() {
    use arose_dedup::passages::{self, Remove};
    for (column, n_read) in [(0, 20), (1, 30)] {
        let bench = Bench::new();
        let [_, damaged] = damaged_table(column);
        fs::write(bench.path("table.parquet"), &damaged).unwrap();
        let inputs = [bench.path("table.parquet")];
        let run = |config: &passages::PassagesConfig| {
            let progress = arose_dedup::Progress::of_passages();
            let start = arose_dedup::Start::Resume;
            passages::run(&inputs, config, &bench.path("out"), start, &progress)
        };
        let config = passages::PassagesConfig {
            remove: Some(Remove::default()),
            ..passages::PassagesConfig::default()
        };
        let summary = run(&config).unwrap();
        assert_eq!(summary["counts"]["read"], n_read, "{column}");
        assert_eq!(summary["counts"]["incomplete_files"], 1, "{column}");
        assert_eq!(files(&summary)[0]["reason"], "damaged parquet", "{column}");
        let kept = bench.path("out/kept.parquet");
        let kept = arose_corpus::read(&[kept], Default::default()).unwrap();
        assert_eq!(kept.count(), 20, "{column}");
        fs::remove_dir_all(bench.path("out")).unwrap();
        let refused = run(&passages::PassagesConfig {
            on_loss: OnLoss::Refuse,
            ..config
        });
        assert!(
            matches!(refused, Err(Error::InputLost { n_files: 1, .. })),
            "{refused:?}"
        );
        assert!(!bench.path("out/kept.parquet").exists());
    }
}
