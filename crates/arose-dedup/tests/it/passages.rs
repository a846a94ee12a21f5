//! Tests of `passages`: counts on published data, and the same bytes under all conditions.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::mix::SplitMix;
use arose::passage::Removal;
use arose_dedup::passages::against::{self, MatchRemoval, Reference, ReferenceSearch};
use arose_dedup::passages::{PassagesConfig, Remove, run};
use arose_dedup::{Error, Progress, Start};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation;

use crate::support::{numbers, results};

/// The files of a result by name.
type Files = Vec<(String, Vec<u8>)>;

fn summary(input: &Path, config: &PassagesConfig, out: &Path) -> Value {
    let inputs = [input.to_owned()];
    run(
        &inputs,
        config,
        out,
        Start::Resume,
        &Progress::of_passages(),
    )
    .unwrap()
}

fn shared(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = root.join(name);
    if !path.exists() {
        println!("{} is not there; the test is skipped", path.display());
        return None;
    }
    Some(path)
}

/// Windows repeated and distinct, occurrences and passages, tokens covered, removed by `later` and
/// `whole-first`, documents emptied.
#[track_caller]
fn check(name: &str, n_tokens: u64, min: usize, expected: [u64; 8]) {
    let Some(input) = shared(name) else {
        return;
    };
    let mut removed = Vec::new();
    for removal in [Removal::Later, Removal::WholeFirst] {
        let folder = tempfile::tempdir().unwrap();
        let config = PassagesConfig {
            min,
            memory: 256 << 20,
            remove: Some(Remove {
                removal,
                ..Remove::default()
            }),
            ..PassagesConfig::default()
        };
        let summary = summary(&input, &config, &folder.path().join("out"));
        let number = |part: &str, name: &str| summary[part][name].as_u64().unwrap();
        assert_eq!(number("counts", "tokens"), n_tokens);
        let names = ["repeated", "distinct", "occurrences", "passages", "covered"];
        let counts = names.map(|name| number("counts", name));
        assert_eq!(counts[..], expected[..5], "{name} {min}");
        assert_eq!(number("counts", "later"), counts[0] - counts[1]);
        removed.push(number("removal", "removed"));
        match removal {
            Removal::Later => removed.push(number("removal", "documents_emptied")),
            _ => assert_eq!(number("removal", "windows_without_whole_copy"), 0),
        }
    }
    assert_eq!(
        [removed[0], removed[2], removed[1]],
        expected[5..],
        "{name} {min}"
    );
}

#[test]
fn revisions_of_documents() {
    let name = "neardup-pep-revisions/revisions.jsonl.zst";
    let n_tokens = 3_912_839;
    let at_13 = [
        3_517_898, 939_037, 110_968, 29_200, 3_680_234, 2_768_027, 2_544_313, 55,
    ];
    check(name, n_tokens, 13, at_13);
    let at_50 = [
        3_153_747, 933_373, 35_984, 11_430, 3_480_459, 2_533_745, 2_198_096, 23,
    ];
    check(name, n_tokens, 50, at_50);
    let at_100 = [
        2_863_883, 897_797, 21_415, 7_104, 3_317_529, 2_373_035, 1_979_630, 23,
    ];
    check(name, n_tokens, 100, at_100);
}

/// The passage with the most places, and the longest one.
#[test]
fn issue_29_the_most_repeated_passage_of_revisions() {
    let Some(input) = shared("neardup-pep-revisions/revisions.jsonl.zst") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let summary = summary(
        &input,
        &PassagesConfig::default(),
        &folder.path().join("out"),
    );
    assert_eq!(summary["counts"]["longest"], 5001);
    assert_eq!(summary["counts"]["most_places"], 14);
    let top = &summary["most_repeated"][0];
    assert_eq!(top["occurrences"], 14);
    assert_eq!(top["tokens"], 54);
    assert_eq!(top["first_doc"], 75);
    let places = numbers(&folder.path().join("out/passages.parquet"), "first_token");
    let number = top["passage"].as_u64().unwrap() as usize;
    assert_eq!(places[number], 44);
}

#[test]
fn short_answers() {
    let name = "neardup-short-answers/answers.jsonl.zst";
    check(
        name,
        21_627,
        8,
        [6_243, 1_893, 1_404, 373, 8_414, 6_147, 5_340, 1],
    );
    check(
        name,
        21_627,
        13,
        [4_924, 1_651, 631, 191, 6_932, 4_794, 4_164, 1],
    );
}

/// Texts of which a third is copied from others.
fn repeating_texts(n: usize) -> Vec<String> {
    let mut random = SplitMix::new(29);
    let mut texts: Vec<Vec<String>> = Vec::new();
    for number in 0..n {
        let mut text: Vec<String> = (0..200)
            .map(|_| format!("w{}", random.below(5000)))
            .collect();
        if number > 0 && random.below(3) > 0 {
            let source = texts[random.below(number as u64) as usize].clone();
            let start = random.below(100) as usize;
            text.splice(50..50, source[start..start + 90].iter().cloned());
        }
        if number % 10 == 0 {
            text.extend(
                "this line stands in many of the texts and repeats"
                    .split(' ')
                    .map(String::from),
            );
        }
        texts.push(text);
    }
    texts.iter().map(|text| text.join(" ")).collect()
}

fn jsonl(path: &Path, texts: &[String]) {
    let lines = texts
        .iter()
        .map(|text| json!({ "text": text }).to_string() + "\n");
    fs::write(path, lines.collect::<String>()).unwrap();
}

/// Results do not depend on threads and memory, nor on an interruption.
#[test]
fn issue_29_the_same_bytes_at_any_thread_count_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let [input, reference] = ["in.jsonl", "items.jsonl"].map(|name| folder.path().join(name));
    let texts = repeating_texts(300);
    jsonl(&input, &texts);
    let items: Vec<String> = texts
        .iter()
        .step_by(7)
        .map(|text| text[40..400].to_owned())
        .collect();
    jsonl(&reference, &items);
    let against = ReferenceSearch {
        reference: Reference::Files(vec![reference]),
        common: 5.try_into().unwrap(),
        found: MatchRemoval::Cut,
    };
    let mut expected: Option<[Files; 2]> = None;
    for (threads, memory) in [(1, 1 << 30), (1, 1 << 12), (4, 1 << 30), (3, 1 << 16)] {
        let mut config = PassagesConfig {
            min: 8,
            memory,
            remove: Some(Remove::default()),
            ..PassagesConfig::default()
        };
        config.corpus.threads = threads.try_into().unwrap();
        let outs = ["repeated", "against"]
            .map(|name| folder.path().join(format!("{name}-{threads}-{memory}")));
        let (mut progress, mut matched) = (Progress::of_passages(), Progress::of_reference());
        let inputs = [input.clone()];
        if memory == 1 << 16 {
            // Stopped immediately, and started again.
            progress.stop();
            matched.stop();
            let stopped = run(&inputs, &config, &outs[0], Start::Resume, &progress);
            assert!(matches!(stopped, Err(Error::Stopped)));
            let stopped = against::run(
                &inputs,
                &against,
                &config,
                &outs[1],
                Start::Resume,
                &matched,
            );
            assert!(matches!(stopped, Err(Error::Stopped)));
            (progress, matched) = (Progress::of_passages(), Progress::of_reference());
        }
        let repeated = run(&inputs, &config, &outs[0], Start::Resume, &progress).unwrap();
        assert!(repeated["counts"]["passages"].as_u64().unwrap() > 100);
        let found = against::run(
            &inputs,
            &against,
            &config,
            &outs[1],
            Start::Resume,
            &matched,
        )
        .unwrap();
        assert!(found["counts"]["items_found"].as_u64().unwrap() > 30);
        let method = if memory < 1 << 20 {
            "anchors"
        } else {
            "memory"
        };
        assert_eq!(found["method"], method);
        let bytes = [results(&outs[0]), results(&outs[1])];
        assert_eq!([bytes[0].len(), bytes[1].len()], [5, 4]);
        match &expected {
            None => expected = Some(bytes),
            Some(expected) => assert!(*expected == bytes, "{threads} threads, {memory} bytes"),
        }
    }
}

/// Writes texts in a format, under a name with its extension.
fn write_as(folder: &Path, format: &str, texts: &[&str]) -> PathBuf {
    let path = folder.join(format!("in.{format}"));
    match format {
        "jsonl" | "jsonl.gz" | "jsonl.zst" => {
            let lines = texts
                .iter()
                .map(|text| json!({ "id": 1, "text": text }).to_string() + "\n");
            let bytes = lines.collect::<String>();
            let bytes = match format {
                "jsonl.gz" => {
                    let level = flate2::Compression::fast();
                    let mut packer = flate2::write::GzEncoder::new(Vec::new(), level);
                    std::io::Write::write_all(&mut packer, bytes.as_bytes()).unwrap();
                    packer.finish().unwrap()
                }
                "jsonl.zst" => zstd::encode_all(bytes.as_bytes(), 1).unwrap(),
                _ => bytes.into_bytes(),
            };
            fs::write(&path, bytes).unwrap();
        }
        "json" => {
            let rows: Vec<Value> = texts.iter().map(|text| json!({ "text": text })).collect();
            fs::write(&path, serde_json::to_string_pretty(&rows).unwrap()).unwrap();
        }
        "csv" | "tsv" => {
            // Cells of TSV have no quotes.
            let row = |text: &&str| match format {
                "csv" => format!("1,\"{text}\"\n"),
                _ => format!("1\t{text}\n"),
            };
            let head = if format == "csv" {
                "id,text"
            } else {
                "id\ttext"
            };
            let rows = texts.iter().map(row).collect::<String>();
            fs::write(&path, format!("{head}\n{rows}")).unwrap();
        }
        "parquet" => {
            let column: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
            let batch = RecordBatch::try_from_iter([("text", column)]).unwrap();
            let file = fs::File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
        }
        _ => {
            let folder = folder.join("texts");
            fs::create_dir(&folder).unwrap();
            for (number, text) in texts.iter().enumerate() {
                fs::write(folder.join(format!("{number}.txt")), text).unwrap();
            }
            return folder;
        }
    }
    path
}

/// Texts can be cut in every format, and are read back as expected.
#[test]
fn issue_29_every_format_can_be_cut() {
    let texts = [
        "Nothing: é, 東京.",
        "One two three four five. Own words here.",
        "Before, one TWO three four five; after “it”.",
        "one two three four five",
    ];
    let expected = [texts[0], texts[1], "Before, after “it”."];
    for format in [
        "jsonl",
        "jsonl.gz",
        "jsonl.zst",
        "json",
        "csv",
        "tsv",
        "parquet",
        "txt",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let input = write_as(folder.path(), format, &texts);
        let out = folder.path().join("out");
        let config = PassagesConfig {
            min: 4,
            remove: Some(Remove::default()),
            ..PassagesConfig::default()
        };
        let summary = summary(&input, &config, &out);
        assert_eq!(summary["removal"]["documents_dropped"], 1, "{format}");
        let kept = out.join(summary["kept_in"].as_str().unwrap());
        let read = arose_corpus::read(&[kept], arose_corpus::Config::default()).unwrap();
        let left: Vec<String> = read
            .filter_map(|item| match item {
                arose_corpus::Item::Document(document) => Some(document.text),
                arose_corpus::Item::Skipped(_) => None,
            })
            .collect();
        assert_eq!(left, expected, "{format}");
    }
}

/// Right-to-left and combining scripts, clusters of several characters, and one endless word.
#[test]
fn issue_29_cuts_leave_valid_text_in_any_script() {
    let arabic = "بِسْمِ ٱللَّهِ ٱلرَّحْمَٰنِ ٱلرَّحِيمِ";
    let hindi = "क्षत्रिय विद्यार्थी श्रीमान् नमस्ते";
    let marks = "e\u{301}a\u{300} o\u{308}u\u{30a} i\u{302}y\u{301} n\u{303}c\u{327}";
    let faces = "one 👩‍👩‍👧 two 🇩🇪 three 👍🏽 four";
    let thai = "ภาษาไทยเป็นภาษาที่มีระดับเสียง";
    let endless = "x".repeat(300_000);
    let mut texts = Vec::new();
    for part in [arabic, hindi, marks, faces, thai, &*endless] {
        texts.push(format!("start {part} end"));
        texts.push(format!("begin\u{600}7 {part}\u{301} stop"));
        texts.push(format!("{part}{part}"));
    }
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.jsonl");
    jsonl(&input, &texts);
    for min in [1, 2, 4] {
        for removal in [Removal::Later, Removal::WholeFirst, Removal::All] {
            let out = folder.path().join(format!("{min}-{removal:?}"));
            let config = PassagesConfig {
                min,
                remove: Some(Remove {
                    removal,
                    min_left: 0,
                    ..Remove::default()
                }),
                ..PassagesConfig::default()
            };
            let summary = summary(&input, &config, &out);
            assert!(summary["removal"]["removed"].as_u64().unwrap() > 0);
            let kept = fs::read_to_string(out.join("kept.jsonl")).unwrap();
            let left: Vec<Value> = kept
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert_eq!(left.len(), texts.len());
            for (left, text) in left.iter().zip(&texts) {
                // The remaining text consists of complete clusters of the text, in their order.
                let mut clusters = text.graphemes(true);
                let left = left["text"].as_str().unwrap();
                for cluster in left.graphemes(true) {
                    assert!(
                        clusters.any(|other| other == cluster),
                        "{left:?} of {text:?}"
                    );
                }
            }
        }
    }
}

/// Removed spans may overlap: every token is removed once.
#[test]
fn issue_29_overlapping_removals_take_each_token_once() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.jsonl");
    let texts = ["a b c d e f g h", "a b c d x", "c d e f y", "b c d e f z"].map(String::from);
    jsonl(&input, &texts);
    let config = PassagesConfig {
        min: 3,
        remove: Some(Remove::default()),
        ..PassagesConfig::default()
    };
    let out = folder.path().join("out");
    let summary = summary(&input, &config, &out);
    let kept = fs::read_to_string(out.join("kept.jsonl")).unwrap();
    let left: Vec<&str> = kept.lines().collect();
    assert_eq!(
        left[1..],
        ["{\"text\":\"x\"}", "{\"text\":\"y\"}", "{\"text\":\"z\"}"]
    );
    let removal = &summary["removal"];
    assert_eq!(
        (&removal["removed"], &removal["kept"]),
        (&json!(13), &json!(11))
    );
}

/// Later occurrences at equal distances share a row of `removed.parquet`, and none is missing.
#[test]
fn issue_29_periodic_text_needs_few_rows() {
    const MIN: u64 = 8;
    for word in ["x ", "a b ", "one line of six words here "] {
        let folder = tempfile::tempdir().unwrap();
        let [input, out] = ["in.jsonl", "out"].map(|name| folder.path().join(name));
        let text = word.repeat(1000);
        jsonl(&input, std::slice::from_ref(&text));
        let tokens: Vec<&str> = text.split_whitespace().collect();
        let period = (tokens.len() / 1000) as u64;
        let config = PassagesConfig {
            min: MIN as usize,
            ..PassagesConfig::default()
        };
        let summary = summary(&input, &config, &out);
        let n_windows = tokens.len() as u64 - MIN + 1;
        assert_eq!(summary["counts"]["repeated"], n_windows, "{word}");
        assert_eq!(summary["counts"]["later"], n_windows - period, "{word}");
        let column = |name: &str| numbers(&out.join("removed.parquet"), name);
        let (starts, ends) = (column("start"), column("end"));
        let (sources, source_ends) = (column("source_start"), column("source_end"));
        let periods = column("period");
        assert!(starts.len() < 8, "{word}: {} rows", starts.len());
        let mut n_later = 0;
        for row in 0..starts.len() {
            let n = source_ends[row] - sources[row];
            let source = &tokens[sources[row] as usize..source_ends[row] as usize];
            let step = periods[row].max(1) as usize;
            for start in (starts[row]..=ends[row] - n).step_by(step) {
                assert_eq!(&tokens[start as usize..(start + n) as usize], source);
                n_later += n - MIN + 1;
            }
        }
        assert_eq!(n_later, n_windows - period, "{word}");
        let longest = numbers(&out.join("documents.parquet"), "longest")[0];
        assert!(
            longest >= tokens.len() as u64 - 2 * period,
            "{word}: {longest}"
        );
    }
}

/// A word without end is one token, which is repeated and removed as any other.
#[test]
fn issue_29_an_endless_word_is_one_token() {
    let folder = tempfile::tempdir().unwrap();
    let [input, out] = ["in.jsonl", "out"].map(|name| folder.path().join(name));
    let word = "endless".repeat(1 << 18);
    jsonl(
        &input,
        &[word.clone(), format!("a {word}"), "b c".to_owned()],
    );
    let config = PassagesConfig {
        min: 1,
        remove: Some(Remove::default()),
        ..PassagesConfig::default()
    };
    let summary = summary(&input, &config, &out);
    assert_eq!(summary["counts"]["tokens"], 5);
    assert_eq!(summary["counts"]["passages"], 1);
    assert_eq!(summary["removal"]["removed"], 1);
    assert_eq!(summary["removal"]["removed_bytes"], word.len());
    let kept = fs::read_to_string(out.join("kept.jsonl")).unwrap();
    let texts = kept.lines().map(|line| {
        let row: Value = serde_json::from_str(line).unwrap();
        row["text"].as_str().unwrap().to_owned()
    });
    assert_eq!(texts.collect::<Vec<_>>(), [&word, "a ", "b c"]);
}

/// The report warns if more than half of the text would be removed, and only then.
#[test]
fn issue_29_a_removal_of_most_of_the_text_is_warned_of() {
    let line = "one line of several words that is repeated in every document of all";
    for (n_copies, is_warned) in [(9, true), (1, false)] {
        let folder = tempfile::tempdir().unwrap();
        let [input, out] = ["in.jsonl", "out"].map(|name| folder.path().join(name));
        let texts = (0..n_copies).map(|i| format!("{line} {i}"));
        jsonl(&input, &texts.collect::<Vec<_>>());
        let config = PassagesConfig {
            min: 5,
            ..PassagesConfig::default()
        };
        summary(&input, &config, &out);
        let report = fs::read_to_string(out.join("report.html")).unwrap();
        assert_eq!(report.contains("Warning:"), is_warned, "{n_copies} copies");
    }
}
