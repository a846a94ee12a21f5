//! `arose index add`: documents into an index.

use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use arose_dedup::index::{Error, Index, Seen, Sketch};

use super::{Work, sketches};
use crate::corpus::Choosing;
use crate::losses::{self, Warnings};
use crate::output::printable;
use crate::read::Outcome;

/// Adds documents of archives, tables and folders.
///
/// A document goes by its address, else by its id, else by its file and position. One whose name is
/// in the index already is passed over and counted.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose index add seen crawl.warc.gz
  arose index add --new seen tomorrow.jsonl > new.txt
  arose index add --replace seen changed.jsonl

Exit code: 0 if done, 1 if there were no documents, 2 on error, 3 if a file could not be read
completely.")]
pub(super) struct Options {
    /// The index.
    folder: PathBuf,
    /// Files, folders, patterns; `-` is standard input.
    #[arg(required = true, value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Adds only documents that are no duplicates of one that is there, and prints their names.
    #[arg(long)]
    new: bool,
    /// Replaces documents of the same name.
    #[arg(long, conflicts_with = "new")]
    replace: bool,
    #[command(flatten)]
    reading: Choosing,
    /// Add nothing if part of the input cannot be read. This reads the input twice.
    #[arg(long)]
    strict: bool,
}

/// Documents that are inserted at once.
const GROUP: usize = 1024;

/// Adds documents.
pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    crate::input::check_standard_input_once(&options.inputs)?;
    let index = Index::open(&options.folder)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut progress = Progress::new();
    let mut group = Vec::new();
    let mut warnings = Warnings::default();
    let config = options.reading.config(vec![options.folder.clone()]);
    if options.strict {
        losses::check(&options.inputs, config.clone())?;
    }
    let mut works = sketches(&options.inputs, config, index.settings())?;
    for work in works.by_ref() {
        match work {
            Work::Skipped(warning) => warnings.show(&warning),
            Work::Document(name, sketch) if options.new => {
                let fate = add_new(&index, &name, &sketch)?;
                if fate == Fate::Added {
                    writeln!(out, "{}", printable(&name)).context("cannot write the result")?;
                }
                progress.count(fate);
            }
            Work::Document(name, sketch) if options.replace => {
                progress.count(match index.replace(&name, &sketch)? {
                    true => Fate::Replaced,
                    false => Fate::Added,
                });
            }
            Work::Document(name, sketch) => {
                group.push((name, sketch));
                if group.len() == GROUP {
                    add_group(&index, &group, &mut progress)?;
                    group.clear();
                }
            }
        }
    }
    add_group(&index, &group, &mut progress)?;
    index.commit()?;
    out.flush().context("cannot write the result")?;
    progress.finish();
    let outcome = match progress.total() {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    };
    Ok(losses::outcome(&works.counts().losses, outcome))
}

/// What became of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Added,
    Replaced,
    /// Its name is there already.
    Present,
    /// It is a duplicate.
    Duplicate,
}

fn add_new(index: &Index, name: &str, sketch: &Sketch) -> Result<Fate, Error> {
    match index.query_or_insert(name, sketch) {
        Ok(Seen::New) => Ok(Fate::Added),
        Ok(Seen::Known(_)) => Ok(Fate::Duplicate),
        Err(Error::Exists { .. }) => Ok(Fate::Present),
        Err(error) => Err(error),
    }
}

/// Adds documents together, and one by one if the name of one of them is there.
fn add_group(
    index: &Index,
    group: &[(String, Sketch)],
    progress: &mut Progress,
) -> Result<(), Error> {
    let borrowed: Vec<_> = group
        .iter()
        .map(|(name, sketch)| (&**name, sketch))
        .collect();
    match index.insert_all(&borrowed) {
        Ok(()) => group.iter().for_each(|_| progress.count(Fate::Added)),
        Err(Error::Exists { .. }) => {
            for (name, sketch) in borrowed {
                progress.count(match index.insert(name, sketch) {
                    Ok(()) => Fate::Added,
                    Err(Error::Exists { .. }) => Fate::Present,
                    Err(error) => return Err(error),
                });
            }
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Counts what became of documents and says so every few seconds.
struct Progress {
    /// In the order of [`Fate`].
    counts: [u64; 4],
    next: Instant,
}

impl Progress {
    const INTERVAL: Duration = Duration::from_secs(2);

    fn new() -> Self {
        let next = Instant::now() + Self::INTERVAL;
        Self {
            counts: [0; 4],
            next,
        }
    }

    fn count(&mut self, fate: Fate) {
        self.counts[fate as usize] += 1;
        if Instant::now() >= self.next {
            self.next = Instant::now() + Self::INTERVAL;
            if io::stderr().is_terminal() {
                eprint!("\rarose: {}\x1B[K\r", self.line());
            } else {
                eprintln!("arose: {}", self.line());
            }
        }
    }

    fn line(&self) -> String {
        let [added, replaced, present, duplicate] = self.counts;
        let mut line = format!("{added} added");
        let others = [
            (replaced, "replaced"),
            (present, "there already"),
            (duplicate, "duplicates"),
        ];
        for (n, what) in others.into_iter().filter(|&(n, _)| n > 0) {
            write!(line, ", {n} {what}").expect("strings take all that is written to them");
        }
        line
    }

    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    fn finish(&self) {
        eprintln!("{}", self.line());
    }
}
