//! What stops a run.

use std::io;
use std::path::{Path, PathBuf};

/// A reason to stop. Bad content is none: it is skipped, counted and reported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting that no algorithm can work with.
    #[error(transparent)]
    Setting(#[from] arose::Error),
    /// More recall than the sketch can give.
    #[error(
        "no banding of {} samples finds {recall} of the pairs at threshold {threshold}; ask for \
         less recall or a higher threshold",
        crate::record::N_SAMPLES
    )]
    Recall {
        /// The share asked for.
        recall: f64,
        /// At this similarity.
        threshold: f64,
    },
    /// Fewer simhash bits than pairs can be found by.
    #[error(
        "pairs that agree in {min_bits} simhash bits cannot all be found; ask for at least 361"
    )]
    Bits {
        /// The bits asked for.
        min_bits: u32,
    },
    /// An input that is not there or cannot be copied.
    #[error(transparent)]
    Corpus(#[from] arose_corpus::Error),
    /// Reading or writing a file of the run failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was being done.
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file of the run is not what was written.
    #[error("`{}` is damaged: {detail}; remove the folder or start anew with --force", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        detail: String,
    },
    /// The output folder belongs to something else.
    #[error("`{}` is not empty and holds no run of arose; choose another folder", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// The output folder holds a run with other settings.
    #[error(
        "`{}` holds a run with another {setting}: {there} there, {here} here; choose another \
         folder, or replace it with --force", path.display()
    )]
    OtherSettings {
        /// The folder.
        path: PathBuf,
        /// The setting that differs.
        setting: String,
        /// Its value in the folder.
        there: String,
        /// Its value now.
        here: String,
    },
    /// Another process is at work in the output folder.
    #[error("another run is at work in `{}`; wait for it, or choose another folder", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// The inputs are not those of the run.
    #[error("`{}` {change}; start over with --force, or choose another output directory", path.display())]
    InputChanged {
        /// The input file that differs.
        path: PathBuf,
        /// How it differs.
        change: Change,
    },
    /// There is a run, and what standard input or a table will contain is not known.
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
    /// Revisit records are asked for, and no input has such.
    #[error("--dropped revisit has no effect: no input file is a web archive; remove it")]
    NoArchive,
    /// Part of the input could not be read, and the run was told to stop then.
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
    /// The newest document is to be kept, and none has a time.
    #[error("no document has a time; name its field with --time-field, or choose another --keep")]
    NoTime,
    /// The document of the highest priority is to be kept, and none has one.
    #[error("no document has a number in the field `{fields}`; check --priority-field")]
    NoPriority {
        /// The fields that were looked for.
        fields: String,
    },
    /// Exact duplicates by bytes cannot be looked up in an index.
    #[error("--exact bytes cannot be combined with --against: an index compares text")]
    BytesAgainstIndex,
    /// A policy that cannot do what an option asks for.
    #[error(
        "{option} cannot be combined with --policy {policy}; remove it or choose another policy"
    )]
    PolicyOption {
        /// The option.
        option: &'static str,
        /// The policy.
        policy: &'static str,
    },
    /// A choice that has no effect, or that needs another one.
    #[error("{0}")]
    Choice(String),
    /// A policy that is not there on a cluster.
    #[error("the policy {0} does not run on a cluster; use another policy or `arose dedup`")]
    PolicyOnCluster(&'static str),
    /// More documents than ordinals.
    #[error("more than 4294967295 documents; split the input")]
    TooManyDocuments,
    /// A passage must have at least two places.
    #[error("--times is 1, expected at least 2: every passage occurs once")]
    Times,
    /// Text that was taken from web pages cannot be cut where it stands.
    #[error(
        "`{}` contains web pages or archived responses, which cannot be cut in place; extract the \
         text first with `arose read`, or run without --remove", path.display()
    )]
    CutPage {
        /// The input file.
        path: PathBuf,
    },
    /// A directory that is no index of passages.
    #[error("no index of passages in `{}`; create one with `arose index create --passages`", path.display())]
    NoPassages {
        /// The directory.
        path: PathBuf,
    },
    /// There is nothing to look for.
    #[error("the reference `{names}` contains no text; check its files and --text-field")]
    EmptyReference {
        /// The files and directories named.
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
        /// What the format's library says.
        source: parquet::errors::ParquetError,
    },
    /// The index of what is held could not be asked or added to.
    #[error(transparent)]
    Index(#[from] crate::index::Error),
    /// The report could not be made.
    #[error("cannot make the report")]
    Report(#[from] crate::report::Error),
    /// A message between steps is not what a step has written.
    #[error("cannot take a message: {detail}")]
    Message {
        /// What is wrong with it.
        detail: String,
    },
    /// Driver and executor do not run the same program.
    #[error(
        "the driver runs arose {driver} and this executor {here}; install the same wheel on all"
    )]
    OtherVersion {
        /// Of the driver.
        driver: String,
        /// Of this library.
        here: String,
    },
    /// The caller asked to stop.
    #[error("stopped; the same command goes on from here")]
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

/// How an input file differs from what a run has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It was not there.
    New,
    /// It has another size or modification time.
    Content,
    /// It is not there any more, or is no input any more.
    Gone,
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::New => "is new since the run read its input",
            Self::Content => "has changed since it was read",
            Self::Gone => "is gone since it was read",
        })
    }
}

impl Error {
    /// Says what was being done to which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}
