//! The documents of a run, read again from their sources together with their rows.
//!
//! Rows and documents come in the same order, but sources may have been removed or changed since.
//! Then some rows have no document, and some documents no row. Both sides are split into *runs*,
//! which are stretches of one source with ascending positions. They are matched like two sorted
//! lists, by run and position.

use std::path::PathBuf;

use arose_corpus::{Document, Documents, Item, Position, read};

use crate::Error;
use crate::search_dir::SearchDir;

/// Stretches of rows that come from reading one source once.
#[derive(Debug, Default)]
pub(crate) struct Runs(pub(crate) Vec<Run>);

/// One such stretch.
#[derive(Debug)]
pub(crate) struct Run {
    source: String,
    last: Position,
    /// The source itself.
    pub(crate) file: PathBuf,
    /// Whether to read it.
    pub(crate) is_wanted: bool,
}

impl Runs {
    /// The number of the run that a row belongs to, which is the last run or a new one, and whether
    /// it is new.
    pub(crate) fn follow(&mut self, source: &str, position: Option<Position>) -> (usize, bool) {
        let position = position.unwrap_or_default();
        let is_new = match self.0.last_mut() {
            Some(run) if run.source == source && run.last < position => {
                run.last = position;
                false
            }
            _ => {
                self.0.push(Run {
                    source: source.to_owned(),
                    last: position,
                    file: PathBuf::new(),
                    is_wanted: false,
                });
                true
            }
        };
        (self.0.len() - 1, is_new)
    }
}

/// The documents of the wanted runs, in order.
pub(crate) struct Texts {
    items: Option<Documents<Item>>,
    /// The runs to read: their numbers and sources.
    runs: Vec<(usize, PathBuf)>,
    /// The run and position of the last document.
    at: Option<(usize, Position)>,
    /// A document that was read but not yet requested, and its run.
    next: Option<(usize, Box<Document>)>,
}

impl Texts {
    /// Starts to read the sources that are wanted and still exist.
    pub(crate) fn start(folder: &SearchDir, runs: &Runs) -> Result<Self, Error> {
        let wanted = runs.0.iter().enumerate().filter(|(_, run)| run.is_wanted);
        let runs: Vec<(usize, PathBuf)> = wanted
            .map(|(number, run)| (number, run.file.clone()))
            .filter(|(_, file)| file.is_file())
            .collect();
        let files: Vec<PathBuf> = runs.iter().map(|(_, file)| file.clone()).collect();
        let items = match files.is_empty() {
            true => None,
            false => Some(read(&files, folder.reading())?),
        };
        Ok(Self {
            items,
            runs,
            at: None,
            next: None,
        })
    }

    /// The sources that could not be read completely, with the reason.
    pub(crate) fn incomplete(&self) -> Vec<String> {
        let files = self
            .items
            .as_ref()
            .map(|items| items.counts().losses.files.iter());
        files
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect()
    }

    /// The document at a position of a run, if it still exists. Both must ascend.
    pub(crate) fn find(&mut self, run: usize, position: Position) -> Option<Box<Document>> {
        loop {
            if self.next.is_none() {
                self.next = self.advance();
            }
            let (next_run, document) = self.next.as_ref()?;
            match (*next_run, document.position).cmp(&(run, position)) {
                std::cmp::Ordering::Less => self.next = None,
                std::cmp::Ordering::Equal => return self.next.take().map(|(_, found)| found),
                std::cmp::Ordering::Greater => return None,
            }
        }
    }

    /// The next document of any run, with the number of that run.
    fn advance(&mut self) -> Option<(usize, Box<Document>)> {
        loop {
            let Item::Document(document) = self.items.as_mut()?.next()? else {
                continue;
            };
            let is_of = |run: usize| {
                let source = self.runs.get(run).map(|(_, file)| file.as_path());
                source == Some(&*document.source)
            };
            let run = match self.at {
                Some((run, last)) if is_of(run) && last < document.position => Some(run),
                Some((run, _)) => (run + 1..self.runs.len()).find(|&run| is_of(run)),
                None => (0..self.runs.len()).find(|&run| is_of(run)),
            };
            if let Some(run) = run {
                self.at = Some((run, document.position));
                return Some((self.runs[run].0, document));
            }
        }
    }
}
