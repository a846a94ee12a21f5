//! The batch job: finds duplicates in files and writes the kept documents with evidence.

mod found;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use arose::rule::{Criterion, Remove};
use serde_json::{Value, json};

use crate::column::Writer;
use crate::config::{Config, Exact, KeptAs, ListedPairs, Update};
use crate::inputs::{Inputs, Moved};
use crate::losses::{self, IncompleteFile};
use crate::marks::MarkTables;
use crate::progress::STAGES;
use crate::results::repeated::{self, REPEATS};
use crate::scheme::{Bands, Rules};
use crate::source::{InputFile, directory_from, path_text};
use crate::stage::dropped::DroppedDocs;
use crate::stage::indexed::{self, OpenIndex};
use crate::stage::kept::{Kept, beside};
use crate::stage::tables::{self, Dropped, Rows};
use crate::stage::{candidates, cluster, contained, exact, ids, read, sites, update, verify};
use crate::work::{Note, Start, Work, read_json, write_json, write_json_to_disk};
use crate::{Error, Progress};
use found::StageResults;

const DOCUMENTS: &str = "documents.parquet";
const LISTED_PAIRS: &str = "pairs.parquet";
const SUMMARY: &str = "summary.json";
const IDS: &str = "kept.ids.jsonl";
const REPORT: &str = "report.html";

/// Similarities at which the expected recall is reported.
const CURVE: [f64; 11] = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 1.0];

/// Finds the duplicates in `inputs` and writes the results to the directory `out`.
///
/// Returns the summary that is also in `summary.json`. A complete run in `out` is not repeated, and
/// an interrupted one is resumed.
///
/// # Errors
///
/// See [`Error`]. Malformed documents are not errors.
pub fn run(
    inputs: &[PathBuf],
    config: &Config,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    on_threads(config.corpus.threads, out, || {
        let inputs = Inputs::list(inputs, config, out)?;
        Job::open_with(inputs, config, out, start, progress)?.run()
    })
}

/// Runs a job in `out` on this many threads.
pub(crate) fn on_threads<T: Send>(
    threads: NonZeroUsize,
    out: &Path,
    run: impl FnOnce() -> Result<T, Error> + Send,
) -> Result<T, Error> {
    let threads = threads.get();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Error::Io {
        action: "start threads for",
        path: out.to_owned(),
        source: io::Error::other(error),
    })?;
    pool.install(run)
}

/// Like [`run`], for one file with a name of its own that is moved into `out`: a table in memory
/// that the caller has written. Its contents cannot be compared with those of an earlier run, so an
/// earlier run in `out` is never continued.
///
/// # Errors
///
/// See [`Error`].
pub fn run_moved(
    input: &Moved,
    config: &Config,
    out: &Path,
    start: Start,
    progress: &Progress,
) -> Result<Value, Error> {
    on_threads(config.corpus.threads, out, || {
        Job::open_with(Inputs::moved(input), config, out, start, progress)?.run()
    })
}

/// Returns the probability of finding a pair at several similarities.
///
/// # Errors
///
/// If the settings cannot be met.
pub fn promise(config: &Config) -> Result<Vec<(f64, f64)>, Error> {
    let bands = match config.policy.criterion {
        Criterion::Jaccard(threshold) => Some(Bands::new(config, threshold)?),
        _ => None,
    };
    let rules = Rules::new(config)?;
    let marks = match config.policy.criterion {
        Criterion::Content(_) => Some(MarkTables::new(config)?),
        _ => None,
    };
    let chance = |similarity| match (&bands, &marks) {
        (Some(bands), _) => bands.probability(similarity),
        (None, Some(marks)) => marks.probability(similarity, 0.0),
        (None, None) => rules.probability(similarity),
    };
    Ok(CURVE
        .map(|similarity| (similarity, chance(similarity)))
        .into())
}

/// Describes the search for candidates.
///
/// # Errors
///
/// If the settings cannot be met.
pub fn method(config: &Config) -> Result<String, Error> {
    Ok(match config.policy.criterion {
        Criterion::Exact => "exact duplicates only".to_owned(),
        Criterion::Contained(_) => "anchors of windows, verified on the shingles".to_owned(),
        Criterion::Url => "documents with the same normalized URL".to_owned(),
        Criterion::Jaccard(threshold) => {
            let banding = Bands::new(config, threshold)?.banding();
            format!("{} bands of {} MinHash values", banding.b(), banding.q())
        }
        Criterion::Content(_) => MarkTables::new(config)?.method(),
        _ => {
            use crate::scheme::KeyTables;
            format!(
                "{} tables of super-shingles and simhash pieces",
                Rules::new(config)?.n_tables()
            )
        }
    })
}

struct Job<'a> {
    inputs: Inputs,
    /// The names of the inputs, with a file in place of standard input.
    readable: Vec<PathBuf>,
    config: &'a Config,
    out: &'a Path,
    work: Work,
    progress: &'a Progress,
}

impl<'a> Job<'a> {
    fn open_with(
        inputs: Inputs,
        config: &'a Config,
        out: &'a Path,
        start: Start,
        progress: &'a Progress,
    ) -> Result<Self, Error> {
        promise(config)?;
        if config.exact == Exact::Bytes && config.against.is_some() {
            return Err(Error::BytesAgainstIndex);
        }
        config.check_policy()?;
        let mut settings = config.settings();
        settings["inputs"] = json!(inputs.texts());
        settings["version"] = json!(env!("CARGO_PKG_VERSION"));
        // The tables do not depend on it, but fewer other files are written.
        if config.output.kept == KeptAs::Nothing {
            settings["tables_only"] = json!(true);
        }
        let work = Work::open(out, &settings, &inputs, start)?;
        let readable = inputs.names.clone();
        Ok(Self {
            inputs,
            readable,
            config,
            out,
            work,
            progress,
        })
    }

    fn run(mut self) -> Result<Value, Error> {
        if let Some(summary) = self.finished()? {
            losses::check_finished(&summary, self.config)?;
            if !self.out.join(REPORT).exists() {
                self.finish()?;
            }
            return Ok(summary);
        }
        let index = self
            .config
            .against
            .as_ref()
            .map(OpenIndex::open)
            .transpose()?;
        if let Some(summary) = update::prepared(&self.work.path("update"))? {
            return self.complete(summary, index.as_ref());
        }
        match &self.inputs.moved {
            Some(moved) => self.readable = vec![moved.keep("input", &self.work, self.progress)?],
            None => keep_standard_input(&self.work, &mut self.readable, self.progress)?,
        }
        let read = self.read()?;
        let found = StageResults::find(&self, read, index.as_ref())?;
        if !self.inputs.is_read_once() {
            self.inputs.check_read(&found.read.found.sources)?;
        }
        let rows = self.write(&found)?;
        let summary = self.summary(&found, &rows);
        if let Some(index @ OpenIndex::Writer(_)) = &index {
            self.prepare_update(index, &found.read.found.sources, &summary)?;
        }
        self.complete(summary, index.as_ref())
    }

    /// Makes the decisions of the run final: writes the documents to add to the index, and the
    /// results, to disk.
    fn prepare_update(
        &self,
        index: &OpenIndex,
        sources: &[InputFile],
        summary: &Value,
    ) -> Result<(), Error> {
        self.sync_results(summary)?;
        let [read, written] = ["read", "write"].map(|stage| self.work.path(stage));
        let stages = [&*read, &*written];
        self.work.stage("update", self.progress, |folder| {
            let sources = (sources, self.inputs.naming());
            update::prepare(stages, index, sources, summary, folder, self.progress)
        })?;
        update::sync_entry(&self.work.path("update"))
    }

    /// Syncs the results to disk.
    fn sync_results(&self, summary: &Value) -> Result<(), Error> {
        let kept_in = summary["kept_in"].as_str().unwrap_or(DOCUMENTS);
        for name in [DOCUMENTS, LISTED_PAIRS, kept_in] {
            update::sync(&self.out.join(name))?;
        }
        match self.config.policy.criterion {
            Criterion::Content(_) => update::sync(&self.out.join(REPEATS)),
            _ => Ok(()),
        }
    }

    /// Completes a run whose decisions are final.
    ///
    /// The summary marks the run as complete. So the results are on disk before the summary, and
    /// the summary is on disk before the list of documents to add is deleted.
    fn complete(&self, summary: Value, index: Option<&OpenIndex>) -> Result<Value, Error> {
        if let Some(OpenIndex::Writer(index)) = index {
            update::carry_out(&self.work.path("update"), index)?;
        }
        let path = self.out.join(SUMMARY);
        match self.config.output.kept {
            KeptAs::Nothing => write_json(&path, &summary)?,
            KeptAs::Copies | KeptAs::Ids => {
                self.sync_results(&summary)?;
                write_json_to_disk(&path, &summary)?;
            }
        }
        self.finish()?;
        Ok(summary)
    }

    /// Writes the report and removes the work files.
    fn finish(&self) -> Result<(), Error> {
        if self.config.output.kept != KeptAs::Nothing {
            crate::report::write(self.out, &self.config.corpus)?;
        }
        self.work.clean(&STAGES)
    }

    /// Returns the summary of a complete run.
    fn finished(&self) -> Result<Option<Value>, Error> {
        read_json(&self.out.join(SUMMARY))
    }

    /// Reads the input, except for the results and an index inside it.
    fn read(&self) -> Result<Note<read::Read>, Error> {
        let skip = not_read(self.config, self.out);
        let read = self.work.stage("read", self.progress, |folder| {
            if !self.inputs.is_read_once() {
                self.progress.expect_bytes(self.inputs.n_bytes());
            }
            read::run(&self.readable, self.config, skip, folder, self.progress)
        })?;
        let refused = read.found.losses.refuse(self.config, &read.found.warnings);
        if refused.is_err() {
            // The next attempt must read the repaired files.
            self.work.clean(&["input", "read"])?;
            self.work.forget()?;
        }
        refused.map(|()| read)
    }

    fn write(&self, found: &StageResults) -> Result<Note<Rows>, Error> {
        let read = &found.read.found;
        let names = ["read", "exact", "verify", "cluster", "lookup"];
        let [read_in, exact, verify, cluster, lookup] = names.map(|stage| self.work.path(stage));
        let stages = tables::Stages {
            read: &read_in,
            exact: &exact,
            verify: &verify,
            cluster: &cluster,
            has_versions: self.config.policy.criterion == Criterion::Content(Remove::Same),
            n_repairs: found.clusters.found.n_repairs,
            lookup: self.config.against.as_ref().map(|_| &*lookup),
        };
        self.work.stage("write", self.progress, |folder| {
            let mut kept = Kept::new(folder, self.config);
            let has_copies = self.config.output.kept == KeptAs::Copies;
            let mut ordinals = Writer::create(&folder.join(update::KEPT))?;
            let documents = self.out.join(DOCUMENTS);
            let partial = beside(&documents);
            let mut dropped = Dropped::new(read.n_docs, self.config, folder);
            let mut rows = tables::write_documents(
                &stages,
                read,
                self.config,
                &partial,
                self.progress,
                &mut dropped,
                |doc, source, record| {
                    if has_copies {
                        kept.push(source, record)?;
                    }
                    ordinals.push(&doc)
                },
            )?;
            ordinals.finish()?;
            kept.push_nulls(&read_in)?;
            self.progress.expect(read.n_null());
            fs::rename(&partial, &documents).map_err(Error::io("rename", &partial))?;
            let pairs = self.out.join(LISTED_PAIRS);
            let partial = beside(&pairs);
            dropped.write_pairs(
                &stages,
                self.config,
                folder,
                &partial,
                &mut rows,
                self.progress,
            )?;
            fs::rename(&partial, &pairs).map_err(Error::io("rename", &partial))?;
            if found.sites.is_some() {
                let repeats = self.out.join(REPEATS);
                let partial = beside(&repeats);
                repeated::write(&self.work.path("sites").join(sites::COUNTS), &partial)?;
                fs::rename(&partial, &repeats).map_err(Error::io("rename", &partial))?;
            }
            rows.kept_in = match self.config.output.kept {
                KeptAs::Ids => {
                    ids::write(&documents, &self.out.join(IDS))?;
                    self.progress.advance(rows.kept + read.n_null())?;
                    Some(IDS.to_owned())
                }
                KeptAs::Nothing => {
                    self.progress.advance(rows.kept + read.n_null())?;
                    None
                }
                KeptAs::Copies => {
                    let (name, lost) = self.write_copies(kept, &read_in, read)?;
                    rows.lost = lost;
                    Some(name)
                }
            };
            Ok(rows)
        })
    }

    /// Writes the kept documents in their input format. Returns the name of the output, and the
    /// files of which some documents could not be copied.
    fn write_copies(
        &self,
        kept: Kept,
        read_in: &Path,
        read: &read::Read,
    ) -> Result<(String, Vec<IncompleteFile>), Error> {
        let mut sources = read.sources.clone();
        // An archive without documents contains other records, which are all kept.
        let known: BTreeSet<&Path> = read.sources.iter().map(|source| &*source.path).collect();
        let others = self.inputs.files.iter();
        let others = others.filter(|file| !known.contains(&*file.path));
        let others =
            others.filter(|file| arose_corpus::is_archive(&file.path, &self.config.corpus));
        sources.extend(others.cloned());
        let documents = self.out.join(DOCUMENTS);
        let dropped = DroppedDocs::read(&documents, read_in, &sources, self.config)?;
        let written = kept.write(&sources, dropped, self.config, self.out, self.progress);
        if let Err(Error::InputLost { .. }) = written {
            self.work.forget()?;
        }
        let (path, lost) = written?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok((name.into_owned(), lost))
    }

    /// Returns the effect of the index on the run, or null without an index.
    fn index_summary(&self, found: &StageResults, rows: &Rows) -> Value {
        let (Some(against), Some(lookups)) = (&self.config.against, &found.lookups) else {
            return Value::Null;
        };
        json!({
            "path": against.index.display().to_string(),
            "documents": lookups.found.n_in_index,
            "known_contents": lookups.found.n_matched,
            "policy": lookups.found.policy,
            "agrees": lookups.found.agrees,
            "added": match against.update {
                Update::Leave => 0,
                Update::Add => rows.kept,
            },
        })
    }

    fn summary(&self, found: &StageResults, rows: &Note<Rows>) -> Value {
        let read = &found.read.found;
        let candidates = &found.candidates.found;
        let written = &rows.found;
        let losses = read.losses.with(&written.lost);
        // Containment is found by a heuristic whose recall is not known.
        let has_chance = !matches!(
            self.config.policy.criterion,
            Criterion::Contained(_) | Criterion::Url
        );
        let promised = match has_chance {
            true => promise(self.config).unwrap_or_default(),
            false => Vec::new(),
        };
        let promised = promised.into_iter().map(|(similarity, probability)| {
            json!({ "similarity": similarity, "probability": rounded(probability) })
        });
        let verified = &found.verified.found;
        let estimated = (verified.estimated_pairs + candidates.tally.n_lost).max(1.0);
        let recall = (has_chance && verified.n_pairs > 0)
            .then(|| rounded(verified.n_pairs as f64 / estimated));
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "inputs": self.inputs.texts(),
            "directory": directory_from(self.out).map(|path| path_text(&path)),
            "settings": self.config.settings(),
            "counts": {
                "read": read.n_docs,
                "kept": written.kept,
                "dropped_exact": written.dropped_exact,
                "dropped_near": written.dropped_near,
                "dropped_known": written.dropped_known,
                "dropped_empty": written.dropped_empty,
                "dropped_filtered": written.dropped_filtered,
                "dropped_superseded": written.dropped_superseded,
                "empty": read.n_empty,
                "short": read.n_short,
                "not_judged": candidates.n_unjudged,
                "null_text": read.n_null(),
                "incomplete_files": losses.n_files,
                "damaged_records": losses.n_records,
                "skipped": {
                    "total": read.skipped.values().sum::<u64>(),
                    "by_reason": read.skipped,
                },
                "tokens": read.n_tokens,
                "text_bytes": read.text_bytes,
                "tested": candidates.tally.n_tested,
                "candidates": candidates.n_pairs,
                "pairs": written.pairs,
                "pairs_not_listed": written.pairs_not_listed + candidates.n_unlisted,
                "clusters": written.clusters,
                "clustered_documents": written.clustered,
                "largest_cluster": written.largest_cluster,
                "version_groups": found.clusters.found.versions.n_groups,
                "versions": found.clusters.found.versions.n_documents,
            },
            "sites": found.sites.as_ref().map(|sites| json!({
                "sites": sites.found.n_sites,
                "pages": sites.found.n_pages,
                "framed_word_pairs": sites.found.n_framed,
            })),
            "quality": self.config.quality.map(|quality| read.quality.summary(quality.filter)),
            "recall": { "promised": promised.collect::<Vec<_>>(), "estimated": recall },
            "index": self.index_summary(found, written),
            "cap": {
                "runs": candidates.tally.n_capped,
                "documents": candidates.tally.n_unled,
                "longest": candidates.tally.largest_capped,
                "pairs_not_compared": candidates.tally.n_untested,
            },
            "incomplete_files": incomplete_files(&self.work, &losses),
            "unknown_files": losses.unknown_files,
            "warnings": read.warnings,
            "kept_in": written.kept_in,
            "stages": found.stages(rows),
            "sources": read.sources,
            "peak_memory_bytes": peak_memory(),
        })
    }
}

/// Writes standard input to a file that takes its place, because it can be read only once.
pub(crate) fn keep_standard_input(
    work: &Work,
    readable: &mut [PathBuf],
    progress: &Progress,
) -> Result<(), Error> {
    let mut inputs = readable.iter();
    let Some(index) = inputs.position(|input| input.as_os_str() == "-") else {
        return Ok(());
    };
    let note = work.stage("input", progress, |folder| {
        let path = folder.join("stdin");
        let mut file = File::create(&path).map_err(Error::io("create", &path))?;
        io::copy(&mut io::stdin().lock(), &mut file).map_err(Error::io("write", &path))?;
        drop(file);
        let name = format!("stdin.{}", format_of(&path)?);
        let named = folder.join(&name);
        fs::rename(&path, &named).map_err(Error::io("rename", &path))?;
        Ok(name)
    })?;
    readable[index] = work.path("input").join(note.found);
    Ok(())
}

/// Incomplete files. The copy of standard input has a name of its own.
pub(crate) fn incomplete_files(work: &Work, losses: &losses::Losses) -> Vec<IncompleteFile> {
    let copies = work.path("input");
    let mut files = losses.files.clone();
    for file in &mut files {
        if file.path.starts_with(&copies) {
            file.path = "-".into();
        }
    }
    files
}

/// Directories that are not read even if they are inside an input: the results, and an index.
pub(crate) fn not_read(config: &Config, out: &Path) -> Vec<PathBuf> {
    let index = config.against.iter().map(|against| against.index.clone());
    index.chain([out.to_owned()]).collect()
}

pub(crate) fn stage<R>(name: &str, note: &Note<R>, n_records: u64) -> Value {
    json!({
        "name": name,
        "seconds": rounded(note.seconds),
        "cpu_seconds": note.cpu_seconds.map(rounded),
        "records": n_records,
    })
}

/// Rounds to six decimal places, which are enough for people and are preserved in a file.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Returns the file extension for the format of a file, from its first bytes.
fn format_of(path: &Path) -> Result<&'static str, Error> {
    use std::io::Read as _;
    let mut start = [0; 8];
    let mut file = File::open(path).map_err(Error::io("open", path))?;
    let n = file.read(&mut start).map_err(Error::io("read", path))?;
    Ok(match &start[..n] {
        [0x1f, 0x8b, ..] => "gz",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zst",
        [b'{', ..] => "jsonl",
        [b'W', b'A', b'R', b'C', b'/', ..] => "warc",
        [b'P', b'A', b'R', b'1', ..] => "parquet",
        _ => "txt",
    })
}

/// Peak memory of this process, if the system reports it.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
