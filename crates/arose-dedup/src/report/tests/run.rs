//! The files of a run, written by hand or by brute force.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arose::compare::{Profile, Profiler};
use arose::mix::SplitMix;
use arose_corpus::Config;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A row of `documents.parquet`.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentRow {
    pub(crate) id: String,
    pub(crate) url: Option<String>,
    pub(crate) source: String,
    pub(crate) position: String,
    pub(crate) digest: String,
    pub(crate) n_tokens: u32,
    pub(crate) cluster: u64,
    /// Document, rule and similarity, if it was dropped.
    pub(crate) dropped: Option<(u64, &'static str, Option<f64>)>,
}

/// A row of `pairs.parquet`.
#[derive(Debug, Clone)]
pub(crate) struct PairRow {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) jaccard: Option<f64>,
    pub(crate) c_sim: Option<u32>,
    pub(crate) rule: &'static str,
}

/// A directory with the files of a run.
pub(crate) struct Run {
    folder: TempDir,
    pub(crate) rows: Vec<DocumentRow>,
    pub(crate) pairs: Vec<PairRow>,
    pub(crate) summary: Value,
}

impl Run {
    /// A run that found these documents and pairs.
    pub(crate) fn new(rows: Vec<DocumentRow>, pairs: Vec<PairRow>) -> Self {
        let dropped = rows.iter().filter_map(|row| row.dropped);
        let (exact, near): (Vec<_>, Vec<_>) = dropped.partition(|(_, rule, _)| *rule == "exact");
        let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
        for row in &rows {
            *sizes.entry(row.cluster).or_default() += 1;
        }
        sizes.retain(|_, size| *size > 1);
        let summary = json!({
            "version": "0.1.0",
            "inputs": ["crawl.jsonl"],
            "settings": {
                "policy": "jaccard", "threshold": 0.8, "w": 5, "recall": 0.995, "samples": 128,
                "seed": 1, "verify": "text", "keep": "first", "cap": 1000, "mode": "henzinger",
            },
            "counts": {
                "read": rows.len(),
                "kept": rows.len() - exact.len() - near.len(),
                "dropped_exact": exact.len(),
                "dropped_near": near.len(),
                "empty": 1,
                "short": 2,
                "skipped": {"total": 0, "by_reason": {}},
                "text_bytes": 1_234_567,
                "candidates": 3 * pairs.len(),
                "pairs": pairs.len(),
                "clusters": sizes.len(),
                "largest_cluster": sizes.values().max().copied().unwrap_or(0),
            },
            "recall": {
                "promised": [
                    {"similarity": 0.8, "probability": 0.995_2},
                    {"similarity": 0.85, "probability": 0.999_6},
                    {"similarity": 0.9, "probability": 0.999_993},
                    {"similarity": 0.95, "probability": 1.0},
                ],
                "estimated": 0.999_3,
            },
            "cap": {"runs": 0, "documents": 0, "pairs_not_compared": 0},
            "stages": [
                {"name": "read", "seconds": 1.25, "records": rows.len()},
                {"name": "exact", "seconds": 0.08, "records": rows.len()},
                {"name": "candidates", "seconds": 0.61, "records": rows.len()},
                {"name": "verify", "seconds": 0.94, "records": 3 * pairs.len()},
                {"name": "cluster", "seconds": 0.02, "records": pairs.len()},
                {"name": "write", "seconds": 0.33, "records": rows.len()},
            ],
            "peak_memory_bytes": 87_654_321_u64,
        });
        let folder = tempfile::tempdir().expect("a place for temporary files");
        Self {
            folder,
            rows,
            pairs,
            summary,
        }
    }

    /// A run over a few hundred pages of a small web: mirrors, revisions, time stamps, templates.
    pub(crate) fn of_small_web(n_families: u64) -> Self {
        let mut run = Self::new(Vec::new(), Vec::new());
        let pages = small_web(n_families);
        let source = run.path("crawl.jsonl");
        let mut lines = String::new();
        let mut rows = Vec::new();
        let profiler = Profiler::new(5.try_into().expect("not zero"));
        let profiles: Vec<Profile> = pages
            .iter()
            .map(|page| profiler.profile(&page.text))
            .collect();
        for (i, page) in pages.iter().enumerate() {
            rows.push(DocumentRow {
                id: format!("page-{i:04}"),
                url: page.url.clone(),
                source: source.to_string_lossy().into_owned(),
                position: lines.len().to_string(),
                digest: profiles[i].digest.to_string(),
                n_tokens: profiles[i].n_tokens as u32,
                cluster: i as u64,
                dropped: None,
            });
            let line = json!({"id": format!("page-{i:04}"), "url": page.url, "text": page.text});
            lines += &format!("{line}\n");
        }
        std::fs::write(&source, lines).expect("can be written");
        let mut pairs = Vec::new();
        for a in 0..pages.len() {
            for b in (a + 1..pages.len()).filter(|&b| pages[a].family == pages[b].family) {
                let comparison = profiler.compare(&profiles[a], &profiles[b]);
                let jaccard = comparison.jaccard.unwrap_or(0.0);
                if jaccard >= 0.8 || comparison.same_content {
                    let rule = if comparison.same_content {
                        "exact"
                    } else {
                        "jaccard"
                    };
                    let (a, b) = (a as u64, b as u64);
                    pairs.push(PairRow {
                        a,
                        b,
                        jaccard: Some(jaccard),
                        c_sim: comparison.c_sim,
                        rule,
                    });
                }
            }
        }
        decide(&mut rows, &pairs);
        let made = Self::new(rows, pairs);
        (run.rows, run.pairs, run.summary) = (made.rows, made.pairs, made.summary);
        run.summary["counts"]["skipped"] = json!({
            "total": 17,
            "by_reason": {"truncated": 2, "media type without text": 11, "not a JSON object": 4},
        });
        run
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the files and the report, and reads the report.
    pub(crate) fn report(&self) -> Result<String, super::Error> {
        self.write_files();
        super::write(self.folder(), &Config::default())?;
        Ok(std::fs::read_to_string(self.path("report.html")).expect("just written"))
    }

    pub(crate) fn write_files(&self) {
        std::fs::write(self.path("summary.json"), self.summary.to_string()).expect("writable");
        self.write_documents();
        self.write_pairs();
    }

    fn write_documents(&self) {
        let rows = &self.rows;
        let text = |of: fn(&DocumentRow) -> &str| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(rows.iter().map(of)))
        };
        let dropped = rows.iter().map(|row| row.dropped);
        let kept_doc: UInt64Array = dropped.clone().map(|d| d.map(|(doc, _, _)| doc)).collect();
        let rule: StringArray = dropped
            .clone()
            .map(|d| d.map(|(_, rule, _)| rule))
            .collect();
        let similarity: Float64Array = dropped.clone().map(|d| d.and_then(|d| d.2)).collect();
        let kept: BooleanArray = dropped.map(|d| Some(d.is_none())).collect();
        let url: StringArray = rows.iter().map(|row| row.url.as_deref()).collect();
        let n_tokens = UInt32Array::from_iter_values(rows.iter().map(|row| row.n_tokens));
        let cluster = UInt64Array::from_iter_values(rows.iter().map(|row| row.cluster));
        write_table(
            &self.path("documents.parquet"),
            vec![
                (
                    "doc",
                    Arc::new(UInt64Array::from_iter_values(0..rows.len() as u64)),
                ),
                ("id", text(|row| &row.id)),
                ("url", Arc::new(url)),
                ("source", text(|row| &row.source)),
                ("position", text(|row| &row.position)),
                ("digest", text(|row| &row.digest)),
                ("n_tokens", Arc::new(n_tokens)),
                ("cluster", Arc::new(cluster)),
                ("kept", Arc::new(kept)),
                ("kept_doc", Arc::new(kept_doc)),
                ("rule", Arc::new(rule)),
                ("similarity", Arc::new(similarity)),
            ],
        );
    }

    fn write_pairs(&self) {
        let pairs = &self.pairs;
        let a = UInt64Array::from_iter_values(pairs.iter().map(|pair| pair.a));
        let b = UInt64Array::from_iter_values(pairs.iter().map(|pair| pair.b));
        let id = |doc: u64| self.rows[doc as usize].id.as_str();
        let id_a = StringArray::from_iter_values(pairs.iter().map(|pair| id(pair.a)));
        let id_b = StringArray::from_iter_values(pairs.iter().map(|pair| id(pair.b)));
        let jaccard: Float64Array = pairs.iter().map(|pair| pair.jaccard).collect();
        let c_sim: UInt32Array = pairs.iter().map(|pair| pair.c_sim).collect();
        let b_sim: UInt32Array = pairs.iter().map(|_| None::<u32>).collect();
        let rule = StringArray::from_iter_values(pairs.iter().map(|pair| pair.rule));
        let verified = StringArray::from_iter_values(pairs.iter().map(|_| "text"));
        write_table(
            &self.path("pairs.parquet"),
            vec![
                ("a", Arc::new(a)),
                ("b", Arc::new(b)),
                ("id_a", Arc::new(id_a)),
                ("id_b", Arc::new(id_b)),
                ("jaccard", Arc::new(jaccard)),
                ("b_sim", Arc::new(b_sim)),
                ("c_sim", Arc::new(c_sim)),
                ("rule", Arc::new(rule)),
                ("verified", Arc::new(verified)),
            ],
        );
    }
}

/// Writes a table with the nullable columns of the contract.
fn write_table(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    const WITH_GAPS: [&str; 7] = [
        "url",
        "kept_doc",
        "rule",
        "similarity",
        "jaccard",
        "b_sim",
        "c_sim",
    ];
    let field = |(name, array): &(&str, ArrayRef)| {
        let data_type: DataType = array.data_type().clone();
        Field::new(*name, data_type, WITH_GAPS.contains(name))
    };
    let schema = Arc::new(Schema::new(columns.iter().map(field).collect::<Vec<_>>()));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).expect("columns of one length");
    let file = File::create(path).expect("writable");
    let mut writer = ArrowWriter::try_new(file, schema, None).expect("writable");
    writer.write(&batch).expect("writable");
    writer.close().expect("writable");
}

/// Keeps the first of several similar documents, and names clusters.
fn decide(rows: &mut [DocumentRow], pairs: &[PairRow]) {
    for pair in pairs {
        let (a, b) = (pair.a as usize, pair.b as usize);
        if rows[a].dropped.is_none() && rows[b].dropped.is_none() {
            rows[b].dropped = Some((pair.a, pair.rule, pair.jaccard));
        }
        // Pairs of a family are adjacent, so one name is propagated at a time.
        let [old, new] = {
            let (a, b) = (rows[a].cluster, rows[b].cluster);
            [a.max(b), a.min(b)]
        };
        for row in rows.iter_mut().filter(|row| row.cluster == old) {
            row.cluster = new;
        }
    }
}

/// A page of the small web.
struct WebPage {
    family: u64,
    url: Option<String>,
    text: String,
}

const HOSTS: [&str; 12] = [
    "www.garden-notes.example.org",
    "mirror.example.net",
    "archive.rosarium.co.uk",
    "docs.trellis.dev",
    "news.hedgerow.com",
    "blog.hedgerow.com",
    "city-library.edu",
    "192.168.7.20:8080",
    "shop.petal.fr",
    "www.orchard.de",
    "kyoto-bara.jp",
    "herbarium.museum",
];

fn small_web(n_families: u64) -> Vec<WebPage> {
    let mut random = SplitMix::new(7);
    let mut pages = Vec::new();
    for family in 0..n_families {
        let original = article(&mut random);
        let n_copies = match random.below(20) {
            0 => 25,
            1..5 => 4,
            5..11 => 1,
            _ => 0,
        };
        for copy in 0..=n_copies {
            let host = HOSTS[random.below(HOSTS.len() as u64) as usize];
            let text = match copy {
                0 => original.clone(),
                _ => revised(&original, &mut random),
            };
            pages.push(WebPage {
                family,
                url: (family % 11 != 3).then(|| format!("https://{host}/{family}/{copy}.html")),
                text,
            });
        }
    }
    random.shuffle(&mut pages);
    pages
}

fn pick<'a>(random: &mut SplitMix, words: &[&'a str]) -> &'a str {
    words[random.below(words.len() as u64) as usize]
}

fn article(random: &mut SplitMix) -> String {
    const SUBJECTS: [&str; 10] = [
        "The gardener",
        "A climbing rose",
        "The old wall",
        "Every visitor",
        "The morning rain",
        "A patient reader",
        "The north border",
        "Nobody in the village",
        "The second edition",
        "Our guide",
    ];
    const VERBS: [&str; 10] = [
        "remembers",
        "outlives",
        "keeps",
        "returns to",
        "asks about",
        "shelters",
        "never mentions",
        "measures",
        "repeats",
        "gives away",
    ];
    const OBJECTS: [&str; 12] = [
        "the hedge along the canal",
        "a bed of white roses",
        "what the catalogue promised",
        "the cuttings from last autumn",
        "an unlabelled variety",
        "the frost of that year",
        "three kinds of thorn",
        "the first warm evening",
        "a copy of the planting plan",
        "the bench beneath the arch",
        "the names of all its neighbours",
        "an almost identical flower",
    ];
    const ENDS: [&str; 8] = [
        "before the gates open",
        "although it was pruned twice",
        "and then begins again",
        "for reasons of its own",
        "while the bees are still asleep",
        "in a different hand",
        "as the older books advise",
        "without being told",
    ];
    let mut text = format!(
        "Notes of {} {}, 20{}\n\n",
        1 + random.below(28),
        pick(random, &["May", "June", "July"]),
        10 + random.below(16)
    );
    for sentence in 0..12 + random.below(18) {
        let parts = [&SUBJECTS[..], &VERBS, &OBJECTS, &ENDS].map(|words| pick(random, words));
        text += &parts.join(" ");
        text += if sentence % 5 == 4 { ".\n\n" } else { ". " };
    }
    text.trim_end().to_owned()
}

/// A page with nothing, little or more changed.
fn revised(original: &str, random: &mut SplitMix) -> String {
    let mut words: Vec<String> = original.split_inclusive(' ').map(str::to_owned).collect();
    match random.below(8) {
        0 => return original.to_owned(),
        1 => return original.to_uppercase(),
        2 => {
            return format!(
                "Share this page. {original}\n\nPrinted on request; all rights reserved."
            );
        }
        3 => drop(words.drain(4..16)),
        _ => {
            for _ in 0..1 + random.below(5) {
                let at = random.below(words.len() as u64) as usize;
                words[at] =
                    pick(random, &["thistle ", "eventually ", "Wednesday ", "42 "]).to_owned();
            }
        }
    }
    words.concat()
}
