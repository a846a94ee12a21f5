//! Last stage: the documents without the removed passages, in their input format.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

use arose::passage::without;
use arose_corpus::{Change, Position};
use serde::{Deserialize, Serialize};

use super::config::PassagesConfig;
use super::cut::{CUT, CUTS, DECISIONS, DROP, Decision};
use super::read::Read;
use super::text::{TextReader, Texts};
use crate::column::{Column, Scan};
use crate::error;
use crate::losses::{IncompleteFile, refuse_lost};
use crate::source::InputFile;
use crate::stage::kept::{beside, output_paths, single_name};
use crate::{Error, Progress};

/// The result of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Written {
    /// The file or directory of the kept documents.
    pub(crate) name: String,
    /// Files with records that could not be copied.
    pub(crate) lost: Vec<IncompleteFile>,
}

/// Writes the kept documents to `out`.
pub(crate) fn run(
    texts: &Texts,
    read: &Read,
    documents: &Path,
    config: &PassagesConfig,
    out: &Path,
    progress: &Progress,
) -> Result<Written, Error> {
    let seam = config.removal().seam;
    let mut decisions = Decisions::open(documents, texts.reader()?, &seam)?;
    progress.expect(decisions.n_left());
    let name = match single_name(&read.sources) {
        Some(name) => name.to_string_lossy().into_owned(),
        None => "kept.files".to_owned(),
    };
    let (place, partial) = (out.join(&name), beside(&out.join(&name)));
    for old in [&place, &partial] {
        remove(old)?;
    }
    match read.sources.len() {
        0 => drop(File::create(&partial).map_err(Error::io("create", &partial))?),
        1 => drop(write(
            0,
            &read.sources[0],
            &partial,
            &mut decisions,
            config,
            progress,
        )?),
        _ => {
            fs::create_dir_all(&partial).map_err(Error::io("create", &partial))?;
            let files = read.sources.iter().zip(output_paths(&read.sources));
            for (number, (source, name)) in files.enumerate() {
                let path = partial.join(name);
                let folder = path.parent().unwrap_or(&partial);
                fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
                let n_kept = write(number, source, &path, &mut decisions, config, progress)?;
                if n_kept == 0 {
                    remove(&path)?;
                }
            }
        }
    }
    fs::rename(&partial, &place).map_err(Error::io("rename", &partial))?;
    let lost = decisions.lost;
    Ok(Written { name, lost })
}

fn remove(path: &Path) -> Result<(), Error> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Error::io("remove", path)(error))
        }
        _ => Ok(()),
    }
}

/// Writes the records of one source. Returns the number of records left.
fn write(
    number: usize,
    source: &InputFile,
    path: &Path,
    decisions: &mut Decisions,
    config: &PassagesConfig,
    progress: &Progress,
) -> Result<u64, Error> {
    source.check()?;
    decisions.begin(number as u64)?;
    let file = File::create(path).map_err(Error::io("create", path))?;
    let out = BufWriter::with_capacity(1 << 20, file);
    let lost = arose_corpus::rewrite(&source.path, out, &config.corpus, &mut |position| {
        let change = decisions.at(position)?;
        let n_taken = std::mem::take(&mut decisions.n_taken);
        progress.advance(n_taken).map_err(io::Error::other)?;
        Ok(change)
    })?;
    if let Some(lost) = &lost {
        let lost = IncompleteFile::from(lost);
        refuse_lost(&lost, &config.shared())?;
        decisions.lost.push(lost);
    }
    source.check()?;
    match decisions.end()? {
        true => Ok(decisions.n_kept),
        false => Err(Error::InputChanged {
            path: source.path.clone(),
            change: error::InputChange::Content,
        }),
    }
}

/// Decisions in the order of the records.
struct Decisions {
    scan: Scan<Decision>,
    next: Option<Decision>,
    cuts: Column<[u32; 2]>,
    reader: TextReader,
    seam: String,
    source: u64,
    /// Decisions read from the file and not yet counted as progress.
    n_taken: u64,
    n_kept: u64,
    /// Whether all records that were read before have been found.
    is_complete: bool,
    lost: Vec<IncompleteFile>,
}

impl Decisions {
    fn open(documents: &Path, reader: TextReader, seam: &str) -> Result<Self, Error> {
        let mut scan = Scan::open(&documents.join(DECISIONS))?;
        let next = scan.next()?;
        Ok(Self {
            scan,
            next,
            cuts: Column::open(&documents.join(CUTS), 0)?,
            reader,
            seam: seam.to_owned(),
            source: 0,
            n_taken: 0,
            n_kept: 0,
            is_complete: true,
            lost: Vec::new(),
        })
    }

    /// Returns the number of remaining decisions.
    fn n_left(&self) -> u64 {
        self.scan.left() + u64::from(self.next.is_some())
    }

    fn begin(&mut self, source: u64) -> Result<(), Error> {
        (self.source, self.n_kept, self.is_complete) = (source, 0, true);
        Ok(())
    }

    /// Returns the decision on the record at a position. Skipped records are omitted.
    fn at(&mut self, position: Position) -> io::Result<Change> {
        self.find(position).map_err(io::Error::other)
    }

    fn find(&mut self, position: Position) -> Result<Change, Error> {
        let place = |decision: &Decision| Position {
            offset: decision.offset,
            inner: decision.inner,
        };
        let mut found = None;
        while let Some(decision) = self
            .next
            .filter(|next| next.source == self.source && place(next) <= position)
        {
            // If a file was passed twice, the first copy decides.
            match place(&decision) == position {
                true => found = found.or(Some(decision)),
                false => self.is_complete = false,
            }
            self.n_taken += 1;
            self.next = self.scan.next()?;
        }
        match found {
            None => Ok(Change::Drop),
            Some(decision) => self.change(&decision),
        }
    }

    fn change(&mut self, decision: &Decision) -> Result<Change, Error> {
        match decision.kind {
            DROP => return Ok(Change::Drop),
            CUT => {}
            _ => {
                self.n_kept += 1;
                return Ok(Change::Keep);
            }
        }
        self.n_kept += 1;
        let mut ranges = vec![[0; 2]; decision.n_cuts as usize];
        self.cuts.read_into(decision.cuts_at, &mut ranges)?;
        let record = self.reader.record(decision.doc)?;
        let text = self.reader.text(&record)?;
        let ranges = ranges.into_iter().map(|[start, end]| start..end);
        Ok(Change::Text(without(&text, ranges, &self.seam)))
    }

    /// Whether all records of the source were found.
    fn end(&mut self) -> Result<bool, Error> {
        let is_left = self.next.is_some_and(|next| next.source == self.source);
        Ok(self.is_complete && !is_left)
    }
}
