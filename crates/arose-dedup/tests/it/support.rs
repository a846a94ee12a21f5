//! Test support: corpora, runs and their results.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arose::mix::SplitMix;
use arose_dedup::{Config, Error, Progress, Start};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A row of `documents.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Doc {
    pub(crate) id: String,
    pub(crate) cluster: u64,
    pub(crate) kept: bool,
    pub(crate) kept_doc: Option<u64>,
    pub(crate) rule: Option<String>,
    pub(crate) similarity: Option<f64>,
    pub(crate) known_as: Option<String>,
    pub(crate) group: u64,
    pub(crate) mode: Option<String>,
}

/// A row of `pairs.parquet`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) jaccard: Option<f64>,
    pub(crate) b_sim: Option<u32>,
    pub(crate) c_sim: Option<u32>,
    pub(crate) content: Option<f64>,
    pub(crate) content_unweighted: Option<f64>,
    pub(crate) rule: String,
    pub(crate) verified: String,
}

/// A directory with an input and an output.
pub(crate) struct Bench {
    pub(crate) folder: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn with_texts(texts: &[String]) -> Self {
        let bench = Self::new();
        let lines = texts.iter().enumerate().map(|(i, text)| {
            let url = format!("http://site{}.example/page{i}", i % 7);
            format!(
                "{}\n",
                json!({ "id": format!("d{i}"), "url": url, "text": text, "date": 7 * i % 1000 })
            )
        });
        bench.write("input.jsonl", &lines.collect::<String>());
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn run_on(&self, inputs: &[&str], config: &Config) -> Result<Value, Error> {
        let inputs: Vec<PathBuf> = inputs.iter().map(|name| self.path(name)).collect();
        let out = self.path("out");
        arose_dedup::run(&inputs, config, &out, Start::Resume, &Progress::default())
    }

    pub(crate) fn run(&self, config: &Config) -> Value {
        self.run_on(&["input.jsonl"], config).unwrap()
    }

    pub(crate) fn docs(&self) -> Vec<Doc> {
        docs(&self.path("out"))
    }

    pub(crate) fn pairs(&self) -> Vec<Pair> {
        pairs(&self.path("out"))
    }
}

/// The bytes of the results that must not depend on the course of a run.
pub(crate) fn results(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(out).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_file() && !["summary.json", "report.html"].contains(&&*name) {
            found.push((name, fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

pub(crate) fn docs(out: &Path) -> Vec<Doc> {
    let text = |batch: &RecordBatch, name: &str, i: usize| {
        let column = batch.column_by_name(name).unwrap().as_string::<i32>();
        column.is_valid(i).then(|| column.value(i).to_owned())
    };
    let number = |batch: &RecordBatch, name: &str, i: usize| {
        let column = batch
            .column_by_name(name)
            .unwrap()
            .as_primitive::<UInt64Type>();
        column.is_valid(i).then(|| column.value(i))
    };
    let mut rows = Vec::new();
    for batch in batches(&out.join("documents.parquet")) {
        for i in 0..batch.num_rows() {
            assert_eq!(number(&batch, "doc", i), Some(rows.len() as u64));
            let similarity = batch.column_by_name("similarity").unwrap();
            let similarity = similarity.as_primitive::<Float64Type>();
            rows.push(Doc {
                id: text(&batch, "id", i).unwrap(),
                cluster: number(&batch, "cluster", i).unwrap(),
                kept: batch.column_by_name("kept").unwrap().as_boolean().value(i),
                kept_doc: number(&batch, "kept_doc", i),
                rule: text(&batch, "rule", i),
                similarity: similarity.is_valid(i).then(|| similarity.value(i)),
                known_as: text(&batch, "known_as", i),
                group: number(&batch, "group", i).unwrap(),
                mode: text(&batch, "mode", i),
            });
        }
    }
    rows
}

pub(crate) fn pairs(out: &Path) -> Vec<Pair> {
    let mut rows = Vec::new();
    for batch in batches(&out.join("pairs.parquet")) {
        let number = |name: &str, i| {
            let column = batch.column_by_name(name).unwrap();
            column.as_primitive::<UInt64Type>().value(i)
        };
        let score = |name: &str, i| {
            let column = batch.column_by_name(name).unwrap();
            let column = column.as_primitive::<UInt32Type>();
            column.is_valid(i).then(|| column.value(i))
        };
        let text = |name: &str, i| {
            let column = batch.column_by_name(name).unwrap();
            column.as_string::<i32>().value(i).to_owned()
        };
        let share = |name: &str, i| {
            let column = batch.column_by_name(name).unwrap();
            let column = column.as_primitive::<Float64Type>();
            column.is_valid(i).then(|| column.value(i))
        };
        rows.extend((0..batch.num_rows()).map(|i| Pair {
            a: number("a", i),
            b: number("b", i),
            jaccard: share("jaccard", i),
            b_sim: score("b_sim", i),
            c_sim: score("c_sim", i),
            content: share("content", i),
            content_unweighted: share("content_unweighted", i),
            rule: text("rule", i),
            verified: text("verified", i),
        }));
    }
    rows
}

/// A column of numbers.
pub(crate) fn numbers(path: &Path, name: &str) -> Vec<u64> {
    let columns = batches(path).into_iter().map(|batch| {
        let column = batch.column_by_name(name).unwrap();
        column.as_primitive::<UInt64Type>().values().to_vec()
    });
    columns.flatten().collect()
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap());
    let reader = reader.unwrap().build().unwrap();
    reader.map(|batch| batch.unwrap()).collect()
}

/// Texts of which many are edited copies of others: small families, each member with some words of
/// the first one replaced, and occasional exact duplicates.
pub(crate) fn family_texts(n: usize, seed: u64) -> Vec<String> {
    let mut random = SplitMix::new(seed);
    let mut texts: Vec<Vec<u64>> = Vec::new();
    while texts.len() < n {
        let n_words = 30 + random.below(400);
        let first: Vec<u64> = (0..n_words).map(|_| random.below(5_000)).collect();
        for member in 0..1 + random.below(6) {
            let mut words = first.clone();
            let n_edits = if member == 0 { 0 } else { random.below(6) };
            for _ in 0..n_edits {
                let at = random.below(n_words) as usize;
                words[at] = 5_000 + random.below(100_000);
            }
            texts.push(words);
        }
    }
    texts.truncate(n);
    // Families are separated, so that neighbours in the input are unrelated.
    for i in (1..texts.len()).rev() {
        texts.swap(i, random.below(i as u64 + 1) as usize);
    }
    let text = |words: &Vec<u64>| words.iter().map(|word| format!("w{word} ")).collect();
    texts.iter().map(text).collect()
}
