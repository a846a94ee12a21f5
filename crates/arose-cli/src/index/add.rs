//! `arose index add`: adds documents to an index.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, ensure};
use arose_dedup::index::{Error, Index, Seen, Sketch};
use arose_dedup::passages::index::is_index;
use clap::ValueEnum;

use super::{Work, sketches};
use crate::corpus::Choosing;
use crate::losses::{self, Warnings};
use crate::output::{printable, remark, say};
use crate::progress::{Display, Step};
use crate::read::Outcome;

/// Add documents from archives, tables and directories.
///
/// The name of a document is its URL, or its file and ID, or its file and position. If the index
/// contains the name with the same text, the document is only counted. --on-conflict decides what
/// happens if the text differs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index add seen crawl.warc.gz
  arose index add --new seen tomorrow.jsonl > new.txt
  arose index add --on-conflict replace seen changed.jsonl

Exit code: 0 if done, 1 if there were no documents, 2 on error or if documents were refused, 3 if a
file could not be read completely.")]
pub(super) struct Options {
    /// Directory of the index
    #[arg(value_name = "INDEX")]
    folder: PathBuf,
    /// Files, directories, patterns; `-` is standard input
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Add only documents without a duplicate in the index, and print their names
    #[arg(long)]
    new: bool,
    /// What to do if the index contains the name with another text
    #[arg(long, value_enum, default_value_t = Conflict::Refuse)]
    on_conflict: Conflict,
    #[command(flatten)]
    reading: Choosing,
    /// Add nothing if part of the input cannot be read; reads the input twice
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Conflict {
    /// Keep the text in the index, report the document, and exit with code 2
    Refuse,
    /// Replace the text in the index
    Replace,
    /// Keep the text in the index
    Skip,
}

/// Number of refused documents that are reported one by one.
const MAX_NAMED: u64 = 20;

/// Number of documents inserted at once.
const GROUP: usize = 1024;

/// Adds documents.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    crate::input::check_standard_input_once(&options.inputs)?;
    let config = options.reading.config(vec![options.folder.clone()]);
    if is_index(&options.folder) {
        ensure!(
            !options.new && options.on_conflict == Conflict::Refuse,
            "--new and --on-conflict have no effect on an index of passages; remove them"
        );
        if options.strict {
            losses::check(&options.inputs, config.clone())?;
        }
        return super::passages::add(&options.folder, &options.inputs, &config);
    }
    let index = Index::open(&options.folder)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut progress = Progress::new();
    let mut group = Vec::new();
    let mut warnings = Warnings::default();
    if options.strict {
        losses::check(&options.inputs, config.clone())?;
    }
    let mut works = sketches(&options.inputs, config, index.settings())?;
    for work in works.by_ref() {
        match work {
            Work::Skipped(warning) => warnings.show(&warning),
            Work::Document(name, sketch) if options.new => {
                let addition = add_new(&index, &name, &sketch, options.on_conflict)?;
                if addition == Addition::Added {
                    writeln!(out, "{}", printable(&name)).context("cannot write the result")?;
                }
                progress.count(&name, addition);
            }
            Work::Document(name, sketch) => {
                group.push((name, sketch));
                if group.len() == GROUP {
                    add_group(&index, &group, options.on_conflict, &mut progress)?;
                    group.clear();
                }
            }
        }
    }
    add_group(&index, &group, options.on_conflict, &mut progress)?;
    index.commit()?;
    out.flush().context("cannot write the result")?;
    let refused = progress.counts[Addition::Refused as usize];
    let total = progress.finish();
    ensure!(
        refused == 0,
        "documents refused: {refused}; their names are in the index with another text; pass \
         --on-conflict replace or --on-conflict skip"
    );
    let outcome = match total {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    };
    Ok(losses::outcome(&works.counts().losses, outcome))
}

/// The result of adding a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Addition {
    Added,
    Replaced,
    /// The name is already in the index with the same text.
    Present,
    /// The document is a duplicate.
    Duplicate,
    /// The name is in the index with another text, which is an error.
    Refused,
    /// The name is in the index with another text, which is ignored.
    Skipped,
}

fn add_new(
    index: &Index,
    name: &str,
    sketch: &Sketch,
    on_conflict: Conflict,
) -> Result<Addition, Error> {
    match index.query_or_insert(name, sketch) {
        Ok(Seen::New) => Ok(Addition::Added),
        Ok(Seen::Known(_)) => Ok(Addition::Duplicate),
        Err(Error::Exists { .. }) => settle(index, name, sketch, on_conflict),
        Err(error) => Err(error),
    }
}

/// Handles a document whose name is already in the index.
fn settle(
    index: &Index,
    name: &str,
    sketch: &Sketch,
    on_conflict: Conflict,
) -> Result<Addition, Error> {
    let there = index.sketch(name)?;
    if there.is_some_and(|there| there.digest == sketch.digest) {
        return Ok(Addition::Present);
    }
    match on_conflict {
        Conflict::Refuse => Ok(Addition::Refused),
        Conflict::Skip => Ok(Addition::Skipped),
        Conflict::Replace => index.replace(name, sketch).map(|_| Addition::Replaced),
    }
}

/// Adds documents together, or one by one if a name is already in the index.
fn add_group(
    index: &Index,
    group: &[(String, Sketch)],
    on_conflict: Conflict,
    progress: &mut Progress,
) -> Result<(), Error> {
    let borrowed: Vec<_> = group
        .iter()
        .map(|(name, sketch)| (&**name, sketch))
        .collect();
    match index.insert_all(&borrowed) {
        Ok(()) => {
            for (name, _) in borrowed {
                progress.count(name, Addition::Added);
            }
        }
        Err(Error::Exists { .. }) => {
            for (name, sketch) in borrowed {
                let addition = match index.insert(name, sketch) {
                    Ok(()) => Addition::Added,
                    Err(Error::Exists { .. }) => settle(index, name, sketch, on_conflict)?,
                    Err(error) => return Err(error),
                };
                progress.count(name, addition);
            }
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Counts the results and shows them.
struct Progress {
    /// In the order of [`Addition`].
    counts: [u64; 6],
    display: Display,
}

impl Progress {
    fn new() -> Self {
        Self {
            counts: [0; 6],
            display: Display::new(),
        }
    }

    fn count(&mut self, name: &str, addition: Addition) {
        let count = &mut self.counts[addition as usize];
        *count += 1;
        if addition == Addition::Refused && *count <= MAX_NAMED {
            say(format_args!(
                "arose: `{}` is in the index with another text",
                printable(name)
            ));
        }
        let [added, others @ ..] = self.counts;
        self.display.tick(|| Step {
            stage: "add".to_owned(),
            done: added,
            unit: "documents",
            note: in_words(others),
            ..Step::default()
        });
    }

    /// Removes the display and prints the counts.
    fn finish(self) -> u64 {
        let [added, others @ ..] = self.counts;
        let total = self.counts.iter().sum();
        drop(self.display);
        let others = match in_words(others) {
            none if none.is_empty() => none,
            some => format!(", {some}"),
        };
        remark(format_args!("{added} added{others}"));
        total
    }
}

/// All counts except the number of added documents, without zeros.
fn in_words(counts: [u64; 5]) -> String {
    let names = [
        "replaced",
        "already in the index",
        "duplicates",
        "refused",
        "skipped",
    ];
    let named = counts.into_iter().zip(names).filter(|(n, _)| *n > 0);
    let named: Vec<String> = named.map(|(n, name)| format!("{n} {name}")).collect();
    named.join(", ")
}
