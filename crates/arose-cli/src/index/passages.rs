//! `arose index` on an index of passages.

use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use arose::passage::DEFAULT_TOKENS;
use arose::token::Tokens;
use arose_corpus::Config;
use arose_dedup::Progress;
use arose_dedup::passages::index::{Answer, PassageIndex, PassageReader, is_index};
use arose_dedup::report::html::counted;
use serde_json::{Value, json};

use crate::dedup::progress::step_of;
use crate::losses;
use crate::output::{printable, remark, row, say, write_json};
use crate::progress::watch;
use crate::read::Outcome;

pub(super) fn create(folder: &Path, min: Option<usize>) -> anyhow::Result<Outcome> {
    PassageIndex::create(folder, min.unwrap_or(DEFAULT_TOKENS))?;
    remark(format_args!(
        "arose: created an index of passages in `{}`",
        folder.display()
    ));
    Ok(Outcome::Found)
}

pub(super) fn add(folder: &Path, inputs: &[PathBuf], config: &Config) -> anyhow::Result<Outcome> {
    let mut index = PassageIndex::open(folder)?;
    let progress = Progress::of_passages();
    let added = watch(step_of(&progress), || {
        index.add(inputs, config, arose_dedup::default_memory(), &progress)
    })?;
    for warning in added.warnings() {
        say(format_args!("arose: {}", printable(warning)));
    }
    remark(format_args!(
        "added {}",
        counted(added.n_docs(), "document", "documents")
    ));
    if let n_files @ 1.. = added.n_incomplete() {
        losses::say_incomplete(n_files);
        return Ok(Outcome::Incomplete);
    }
    Ok(match added.n_docs() {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

pub(super) fn status(folder: &Path, is_json: bool) -> anyhow::Result<Outcome> {
    let status = PassageIndex::status(folder)?;
    let rows = [
        ("documents", status.n_docs),
        ("tokens", status.n_tokens),
        ("min", status.min as u64),
        ("segments", status.n_segments as u64),
        ("disk_bytes", status.disk_bytes),
    ];
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match is_json {
        true => {
            let object: serde_json::Map<String, Value> = rows
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect();
            write_json(&mut out, &object.into())
        }
        false => rows
            .iter()
            .try_for_each(|(name, value)| row(&mut out, &name.replace('_', " "), value, "")),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(Outcome::Found)
}

/// Returns an error if the index contains passages, which do not support this command.
pub(super) fn refuse(folder: &Path, what: &str) -> anyhow::Result<()> {
    if is_index(folder) {
        bail!(
            "`{}` is an index of passages, which does not support `{what}`; create a new index instead",
            folder.display()
        );
    }
    Ok(())
}

/// Looks up texts in an index of passages and prints the matches.
pub(super) struct Lookup {
    reader: PassageReader,
    is_json: bool,
    out: BufWriter<StdoutLock<'static>>,
    outcome: Outcome,
}

impl Lookup {
    pub(super) fn open(folder: &Path, is_json: bool) -> anyhow::Result<Self> {
        Ok(Self {
            reader: PassageReader::open(folder)?,
            is_json,
            out: BufWriter::new(io::stdout().lock()),
            outcome: Outcome::NothingFound,
        })
    }

    /// Prints the documents that contain passages of a text.
    pub(super) fn look_up(&mut self, name: &str, tokens: &Tokens) -> anyhow::Result<()> {
        let answer = self.reader.query(&tokens.fingerprints)?;
        if !answer.runs.is_empty() {
            self.outcome = Outcome::Found;
        }
        let written = match self.is_json {
            true => write_json(&mut self.out, &as_json(name, &answer)),
            false => self.write(name, &answer),
        };
        written.context("cannot write the result")
    }

    fn write(&mut self, name: &str, answer: &Answer) -> io::Result<()> {
        let out = &mut self.out;
        if answer.runs.is_empty() && answer.is_guaranteed {
            return Ok(());
        }
        writeln!(out, "{}", printable(name))?;
        for run in &answer.runs {
            let (start, end) = (run.start, run.start + run.n_tokens);
            let there = run.doc_start;
            let name = printable(&run.name);
            writeln!(
                out,
                "  {:>6} tokens, {start} to {end}, at token {there} in {name}",
                run.n_tokens
            )?;
        }
        for document in &answer.documents {
            writeln!(
                out,
                "  {:.4} of the text is in {}; {:.4} of that document is in the text",
                document.containment,
                printable(&document.name),
                document.containment_there
            )?;
        }
        if !answer.is_guaranteed {
            let min = self.reader.min();
            writeln!(out, "  fewer than {min} tokens; matches may be missing")?;
        }
        if answer.is_capped {
            writeln!(
                out,
                "  not all documents are listed: some passages occur in too many"
            )?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> anyhow::Result<Outcome> {
        self.out.flush().context("cannot write the result")?;
        Ok(self.outcome)
    }
}

fn as_json(name: &str, answer: &Answer) -> Value {
    let runs = answer.runs.iter().map(|run| {
        json!({
            "name": run.name,
            "tokens": run.n_tokens,
            "start": run.start,
            "document_start": run.doc_start,
        })
    });
    let documents = answer.documents.iter().map(|document| {
        json!({
            "name": document.name,
            "containment": document.containment,
            "containment_there": document.containment_there,
        })
    });
    json!({
        "name": name,
        "documents": documents.collect::<Vec<_>>(),
        "matches": runs.collect::<Vec<_>>(),
        "guaranteed": answer.is_guaranteed,
        "capped": answer.is_capped,
    })
}
