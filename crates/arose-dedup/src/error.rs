//! Errors of a run.

use std::io;
use std::path::{Path, PathBuf};

/// An error that stops a run. Malformed content does not: it is skipped, counted and reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid setting.
    #[error(transparent)]
    Setting(#[from] arose::Error),
    /// A higher recall than the sketch allows.
    #[error(
        "cannot reach recall {recall} at threshold {threshold} with {} MinHash values; lower \
         --recall or raise --threshold",
        crate::record::N_SAMPLES
    )]
    Recall {
        /// The requested recall.
        recall: f64,
        /// The threshold.
        threshold: f64,
    },
    /// Too few simhash bits to find all pairs.
    #[error("cannot find all pairs with {min_bits} matching simhash bits; require at least 361")]
    Bits {
        /// The requested bits.
        min_bits: u32,
    },
    /// An input that does not exist or cannot be copied.
    #[error(transparent)]
    Corpus(#[from] arose_corpus::Error),
    /// Reading or writing a file of the run failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A damaged file of the run.
    #[error("`{}` is damaged: {detail}; remove the directory or start over with --force", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The output directory is a file.
    #[error("`{}` is not a directory; choose another output directory", path.display())]
    NotDirectory {
        /// The path.
        path: PathBuf,
    },
    /// The output directory contains other files.
    #[error("`{}` is not empty and contains no run of arose; choose another directory", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// The output directory contains a run with other settings.
    #[error(
        "`{}` already contains a run with {setting} {there}, not {here}; choose another directory \
         or replace the run with --force", path.display()
    )]
    OtherSettings {
        /// The directory.
        path: PathBuf,
        /// The setting that differs.
        setting: String,
        /// Its value in the existing run.
        there: String,
        /// Its value now.
        here: String,
    },
    /// Another process is using the output directory.
    #[error("another run is using `{}`; wait for it or choose another directory", path.display())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// The inputs differ from those of the run.
    #[error("`{}` {change}; start over with --force or choose another output directory", path.display())]
    InputChanged {
        /// The input file that differs.
        path: PathBuf,
        /// How it differs.
        change: InputChange,
    },
    /// The directory contains a run, and the content of standard input or a table is not known.
    #[error(
        "`{}` already contains a run, and {input} may differ from its input; start over \
         with --force, or choose another output directory", path.display()
    )]
    ReadOnce {
        /// The output directory.
        path: PathBuf,
        /// What cannot be read twice.
        input: &'static str,
    },
    /// Revisit records are requested, but no input is a web archive.
    #[error("--dropped revisit has no effect: no input file is a web archive; remove it")]
    NoArchive,
    /// Part of the input could not be read, and the run is strict.
    #[error(
        "the input is incomplete: {} cannot be read, first {first}; repair the input or run without \
         --strict", lost(*n_files, *n_records)
    )]
    InputLost {
        /// Incomplete files.
        n_files: u64,
        /// Damaged records.
        n_records: u64,
        /// The first of them.
        first: String,
    },
    /// The run would remove or read its own results.
    #[error(
        "input `{}` is inside the output directory `{}`; choose another output directory",
        input.display(), out.display()
    )]
    InsideOutput {
        /// The input.
        input: PathBuf,
        /// The output directory.
        out: PathBuf,
    },
    /// Kept documents of two input files would be written to one file.
    #[error(
        "`{}` and `{}` would become one file in the output, `{}`; pass absolute paths without `..`",
        first.display(), second.display(), output.display()
    )]
    OneOutput {
        /// One input file.
        first: PathBuf,
        /// Another.
        second: PathBuf,
        /// Where both would be written.
        output: PathBuf,
    },
    /// The newest document is to be kept, but no document has a time.
    #[error("no document has a time; set its field with --time-field or choose another --keep")]
    NoTime,
    /// The document with the highest priority is to be kept, but no document has a priority.
    #[error("no document has a number in the field `{fields}`; check --priority-field")]
    NoPriority {
        /// The fields that were looked for.
        fields: String,
    },
    /// Exact duplicates by bytes cannot be looked up in an index.
    #[error("--exact bytes cannot be combined with --against: an index compares text")]
    BytesAgainstIndex,
    /// An option that the policy does not support.
    #[error(
        "{option} cannot be combined with --policy {policy}; remove it or choose another policy"
    )]
    PolicyOption {
        /// The option.
        option: &'static str,
        /// The policy.
        policy: &'static str,
    },
    /// An option that has no effect, or that requires another one.
    #[error("{0}")]
    Choice(String),
    /// More documents than ordinals.
    #[error("more than 4294967295 documents; split the input")]
    TooManyDocuments,
    /// More tokens than a search for passages can number.
    #[error("the input has 2^46 tokens or more; split it")]
    TooManyTokens,
    /// A passage must have at least two places.
    #[error("--times is 1, expected at least 2: every passage occurs once")]
    Times,
    /// Text extracted from web pages cannot be cut in place.
    #[error(
        "`{}` contains web pages or archived responses, which cannot be cut in place; extract the \
         text first with `arose read`, or run without --remove", path.display()
    )]
    CutPage {
        /// The input file.
        path: PathBuf,
    },
    /// A directory that is not an index of passages.
    #[error("no index of passages in `{}`; create one with `arose index create --passages`", path.display())]
    NoPassages {
        /// The directory.
        path: PathBuf,
    },
    /// The reference contains no text.
    #[error("the reference `{names}` contains no text; check its files and --text-field")]
    EmptyReference {
        /// The files and directories.
        names: String,
    },
    /// Two different passages have the same hash.
    #[error("two different passages have the same hash; run with another --min")]
    Collision,
    /// A result table could not be written or read.
    #[error("parquet file `{}`", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The error of the Parquet library.
        source: parquet::errors::ParquetError,
    },
    /// An index could not be queried or updated.
    #[error(transparent)]
    Index(#[from] crate::index::Error),
    /// The report could not be written.
    #[error("cannot write the report")]
    Report(#[from] crate::report::Error),
    /// A malformed message between steps.
    #[error("malformed message: {detail}")]
    Message {
        /// What is wrong with it.
        detail: String,
    },
    /// Driver and executor run different versions.
    #[error(
        "the driver runs arose {driver} and this executor {here}; install the same wheel on all machines"
    )]
    OtherVersion {
        /// Version of the driver.
        driver: String,
        /// Version of this library.
        here: String,
    },
    /// The caller stopped the run.
    #[error("interrupted; run the same command to resume")]
    Stopped,
}

/// Counts in words.
fn lost(n_files: u64, n_records: u64) -> String {
    let files = crate::report::html::counted(n_files, "file", "files");
    let records = crate::report::html::counted(n_records, "record", "records");
    match (n_files, n_records) {
        (_, 0) => files,
        (0, _) => records,
        _ => format!("{files} and {records}"),
    }
}

/// How an input file differs from the one that a run has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputChange {
    /// The file is new.
    New,
    /// The size or modification time differs.
    Content,
    /// The file no longer exists or is no longer an input.
    Gone,
}

impl std::fmt::Display for InputChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::New => "was added after the run read its input",
            Self::Content => "has changed since it was read",
            Self::Gone => "was removed after it was read",
        })
    }
}

impl Error {
    /// Creates an error from the failed action and its file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
