//! The log of all queries and responses, from which estimates can be recomputed.
//!
//! The log has one JSON object per line: first the search engines, then the vocabulary, then all
//! requests in order. A line truncated by a crash is dropped, and a run with the same log resumes
//! where the last one stopped. A resumed run sends requests without a response again; a replay does
//! not.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Page, Question, Reply, ResultList};
use crate::Error;
use crate::walk::live::Place;

/// The version of the file format.
const VERSION: u32 = 1;

/// A search engine in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Its name.
    pub name: String,
    /// Maximum number of results that it shows.
    pub limit: usize,
    /// Whether it supports lookup by URL.
    #[serde(default)]
    pub has_lookup: bool,
}

/// The header of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// The search engines, in order.
    pub seats: Vec<Seat>,
    /// The words that queries are made of, with the number of pages that contain each; may be
    /// empty.
    pub words: Vec<(String, u64)>,
}

/// A request to a search engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Asked {
    /// A search: the query, and the number of earlier repetitions.
    Search(Question, u32),
    /// The text of a page.
    Fetch(String),
    /// Whether there is a page at a URL.
    Lookup(String),
    /// The content of a URL, for a walk.
    Visit(String),
}

/// A response to any of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answered {
    Search(Reply<ResultList>),
    Fetch(Reply<Page>),
    Lookup(Reply<bool>),
    Visit(Reply<Place>),
}

impl Answered {
    fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::Search(Reply::Missing(_))
                | Self::Fetch(Reply::Missing(_))
                | Self::Lookup(Reply::Missing(_))
                | Self::Visit(Reply::Missing(_))
        )
    }
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase", deny_unknown_fields)]
enum Line {
    Engines {
        version: u32,
        engines: Vec<Seat>,
    },
    Lexicon {
        words: Vec<(String, u64)>,
    },
    Search {
        engine: String,
        question: Question,
        #[serde(default, skip_serializing_if = "is_zero")]
        again: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        claimed: Option<u64>,
        #[serde(default)]
        addresses: Vec<String>,
    },
    Fetch {
        engine: String,
        address: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        found_at: Option<String>,
        #[serde(default)]
        text: String,
    },
    Lookup {
        engine: String,
        address: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
        #[serde(default)]
        is_held: bool,
    },
    Visit {
        engine: String,
        address: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missing: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<Place>,
    },
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Queries and responses, stored in a file or not.
#[derive(Debug, Default)]
pub struct Log {
    path: PathBuf,
    header: Option<Header>,
    known: HashMap<(String, Asked), Answered>,
    mode: Mode,
}

#[derive(Debug, Default)]
enum Mode {
    /// Nothing is stored.
    #[default]
    Off,
    /// New responses are appended.
    Adding(BufWriter<File>),
    /// No requests are sent.
    Replaying,
}

impl Log {
    /// A log that stores nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Resumes a log, or creates it.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or written, or is not a log.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut log = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        let n_whole = if path.exists() { log.read()? } else { 0 };
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(Error::io("write the log", path))?;
        file.set_len(n_whole)
            .and_then(|()| file.seek(std::io::SeekFrom::End(0)))
            .map_err(Error::io("write the log", path))?;
        log.mode = Mode::Adding(BufWriter::new(file));
        Ok(log)
    }

    /// Reads every response from a log and sends no requests.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is not a log.
    pub fn replay(path: &Path) -> Result<Self, Error> {
        let mut log = Self {
            path: path.to_owned(),
            mode: Mode::Replaying,
            ..Self::default()
        };
        log.read()?;
        match log.header {
            Some(_) => Ok(log),
            None => Err(log.bad(
                1,
                "it lists no search engines; is it a log of `arose estimate`?",
            )),
        }
    }

    /// The header of the log, if it existed before.
    #[must_use]
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// Whether no requests are sent.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        matches!(self.mode, Mode::Replaying)
    }

    /// Writes the header of a new log; an existing log must have the same search engines.
    pub(crate) fn begin(&mut self, header: &Header) -> Result<(), Error> {
        if let Some(old) = &self.header {
            let names = |header: &Header| -> Vec<String> {
                let seats = header.seats.iter();
                seats
                    .map(|seat| format!("{} (limit {})", seat.name, seat.limit))
                    .collect()
            };
            let (old, new) = (names(old).join(", "), names(header).join(", "));
            if old != new {
                let what = format!("it is about other search engines: {old}, not {new}");
                return Err(self.bad(1, &what));
            }
            return Ok(());
        }
        self.write(&Line::Engines {
            version: VERSION,
            engines: header.seats.clone(),
        })?;
        if !header.words.is_empty() {
            let words = header.words.clone();
            self.write(&Line::Lexicon { words })?;
        }
        Ok(())
    }

    /// The earlier response of a search engine, if it is usable.
    pub(crate) fn known(&self, engine: &str, asked: &Asked) -> Option<&Answered> {
        let found = self.known.get(&(engine.to_owned(), asked.clone()))?;
        (self.is_replay() || !found.is_missing()).then_some(found)
    }

    /// Adds a response.
    pub(crate) fn add(
        &mut self,
        engine: &str,
        asked: &Asked,
        answered: &Answered,
    ) -> Result<(), Error> {
        if !matches!(self.mode, Mode::Adding(_)) {
            return Ok(());
        }
        self.write(&line(engine, asked, answered))
    }

    fn write(&mut self, line: &Line) -> Result<(), Error> {
        let Mode::Adding(file) = &mut self.mode else {
            return Ok(());
        };
        // One line at a time, so that an interruption loses only the current query.
        serde_json::to_writer(&mut *file, line)
            .map_err(std::io::Error::from)
            .and_then(|()| file.write_all(b"\n"))
            .and_then(|()| file.flush())
            .map_err(Error::io("write the log", &self.path))
    }

    /// Reads all complete lines. Returns their length in bytes.
    fn read(&mut self) -> Result<u64, Error> {
        let path = self.path.clone();
        let file = File::open(&path).map_err(Error::io("open the log", &path))?;
        let mut reader = BufReader::new(file);
        let (mut n_whole, mut number, mut text) = (0, 0, Vec::new());
        loop {
            text.clear();
            let n = reader
                .read_until(b'\n', &mut text)
                .map_err(Error::io("read the log", &path))?;
            number += 1;
            if n == 0 || text.last() != Some(&b'\n') {
                return Ok(n_whole);
            }
            let line = serde_json::from_slice(&text)
                .map_err(|error| self.bad(number, &error.to_string()))?;
            self.take(line, number)?;
            n_whole += n as u64;
        }
    }

    fn take(&mut self, line: Line, number: u64) -> Result<(), Error> {
        match line {
            Line::Engines { version, .. } if version != VERSION => {
                let what = format!("it has version {version}; expected {VERSION}");
                return Err(self.bad(number, &what));
            }
            Line::Engines { engines, .. } => {
                self.header = Some(Header {
                    seats: engines,
                    words: Vec::new(),
                });
            }
            Line::Lexicon { words } => {
                if let Some(header) = &mut self.header {
                    header.words = words;
                }
            }
            Line::Search {
                engine,
                question,
                again,
                missing,
                claimed,
                addresses,
            } => {
                let results = ResultList { claimed, addresses };
                let reply = missing.map_or(Reply::Answer(results), Reply::Missing);
                let asked = Asked::Search(question, again);
                self.known.insert((engine, asked), Answered::Search(reply));
            }
            Line::Fetch {
                engine,
                address,
                missing,
                found_at,
                text,
            } => {
                let page = Page {
                    address: found_at.unwrap_or_else(|| address.clone()),
                    text,
                };
                let reply = missing.map_or(Reply::Answer(page), Reply::Missing);
                let asked = Asked::Fetch(address);
                self.known.insert((engine, asked), Answered::Fetch(reply));
            }
            Line::Lookup {
                engine,
                address,
                missing,
                is_held,
            } => {
                let reply = missing.map_or(Reply::Answer(is_held), Reply::Missing);
                let asked = Asked::Lookup(address);
                self.known.insert((engine, asked), Answered::Lookup(reply));
            }
            Line::Visit {
                engine,
                address,
                missing,
                place,
            } => {
                let reply = match (missing, place) {
                    (None, Some(place)) => Reply::Answer(place),
                    (Some(reason), None) => Reply::Missing(reason),
                    _ => return Err(self.bad(number, "expected one of `missing` and `place`")),
                };
                let asked = Asked::Visit(address);
                self.known.insert((engine, asked), Answered::Visit(reply));
            }
        }
        Ok(())
    }

    fn bad(&self, line: u64, what: &str) -> Error {
        Error::Log {
            path: self.path.clone(),
            line,
            what: what.to_owned(),
        }
    }

    /// The error for a query that is not in a replayed log.
    pub(super) fn unknown(&self, engine: &str, asked: &Asked) -> Error {
        let asked = match asked {
            Asked::Search(question, _) => format!("a search for {}", question.parts.join(" ")),
            Asked::Fetch(address) | Asked::Visit(address) => format!("the page {address}"),
            Asked::Lookup(address) => format!("a lookup of {address}"),
        };
        Error::NotInLog {
            path: self.path.clone(),
            what: format!("{asked} at {engine}"),
        }
    }
}

fn line(engine: &str, asked: &Asked, answered: &Answered) -> Line {
    let engine = engine.to_owned();
    match (asked, answered) {
        (Asked::Search(question, again), Answered::Search(reply)) => {
            let (missing, results) = split(reply);
            Line::Search {
                engine,
                question: question.clone(),
                again: *again,
                missing,
                claimed: results.claimed,
                addresses: results.addresses,
            }
        }
        (Asked::Fetch(address), Answered::Fetch(reply)) => {
            let (missing, page) = split(reply);
            let is_elsewhere = missing.is_none() && page.address != *address;
            Line::Fetch {
                engine,
                address: address.clone(),
                missing,
                found_at: is_elsewhere.then_some(page.address),
                text: page.text,
            }
        }
        (Asked::Lookup(address), Answered::Lookup(reply)) => {
            let (missing, is_held) = split(reply);
            Line::Lookup {
                engine,
                address: address.clone(),
                missing,
                is_held,
            }
        }
        (Asked::Visit(address), Answered::Visit(reply)) => {
            let (missing, place) = match reply {
                Reply::Answer(place) => (None, Some(place.clone())),
                Reply::Missing(reason) => (Some(reason.clone()), None),
            };
            Line::Visit {
                engine,
                address: address.clone(),
                missing,
                place,
            }
        }
        (Asked::Search(..) | Asked::Fetch(_) | Asked::Lookup(_) | Asked::Visit(_), _) => {
            unreachable!("a response has the kind of its request")
        }
    }
}

fn split<T: Clone + Default>(reply: &Reply<T>) -> (Option<String>, T) {
    match reply {
        Reply::Answer(answer) => (None, answer.clone()),
        Reply::Missing(reason) => (Some(reason.clone()), T::default()),
    }
}
