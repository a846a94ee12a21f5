//! Beside the second stage: which contents does an index hold already?
//!
//! The index judges by its own policy and on its own sketches, which are made from the tokens that
//! the first stage kept. If the policy is that of the run, it knows whatever the run would drop for
//! one of its documents: both see the same keys and the same sketches, and the index takes for a
//! duplicate what the run would still compare by text. A content that it knows is dropped before
//! anything is chosen among the rest, so that nothing is dropped for a document that does not stay
//! itself. As everywhere in the run, a content is judged by its first document and the copies share
//! the verdict.

use std::path::Path;

use arose::rule::Rule;
use arose::token::Tokens;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::column::{Column, Scan, Writer};
use crate::config::{Against, Config, Update};
use crate::dictionary::TokenColumn;
use crate::index::{Index, Match, Reader, Settings, Sketch, Sketcher};
use crate::inputs::Naming;
use crate::names::{Name, NameScan};
use crate::record::{Copied, DocRecord, FILTERED, Ordinal, SUPERSEDED, UNSPACED, rule_index};
use crate::source::{Source, path_text};
use crate::stage::columns::DOCS;
use crate::stage::exact::COPIES;
use crate::stage::read::Read;
use crate::stage::urls::host;
use crate::{Error, Progress};

/// For each document that is the first of its content, what the index knows of it.
pub(crate) const KNOWN: &str = "known";
/// What the index calls them.
pub(crate) const KNOWN_AS: &str = "known_as";

/// Documents that are looked up together.
const BATCH: usize = 1 << 12;

/// What an index knows of a document.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Known {
    pub(crate) similarity: f64,
    /// Where the name of the document it is like starts.
    name_at: u64,
    n_name: u32,
    /// One more than the rule's place in [`Rule::ALL`]; 0 if it is not known.
    rule: u32,
}

impl Known {
    /// The rule by which the index knows the document, if it does.
    pub(crate) fn rule(&self) -> Option<Rule> {
        Rule::ALL.get(self.rule.checked_sub(1)? as usize).copied()
    }
}

/// What the stage found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Held {
    /// Documents in the index.
    pub(crate) n_held: u64,
    /// Contents that it knows.
    pub(crate) n_known: u64,
    /// What the index decides by.
    pub(crate) policy: String,
    /// Whether the run decides alike.
    pub(crate) agrees: bool,
}

/// An index open for as much as a run does with it.
pub(crate) enum Holder {
    Reader(Reader),
    Writer(Index),
}

impl Holder {
    /// Opens the index; one that will be added to is ours until the end of the run.
    pub(crate) fn open(against: &Against) -> Result<Self, Error> {
        Ok(match against.update {
            Update::Leave => Self::Reader(Reader::open(&against.index)?),
            Update::Add => Self::Writer(Index::open(&against.index)?),
        })
    }

    pub(crate) fn settings(&self) -> &Settings {
        match self {
            Self::Reader(reader) => reader.settings(),
            Self::Writer(index) => index.settings(),
        }
    }

    fn n_docs(&self) -> Result<u64, Error> {
        Ok(match self {
            Self::Reader(reader) => reader.stats().n_docs,
            Self::Writer(index) => index.stats()?.n_docs,
        })
    }

    /// The document that is most like a sketch, the oldest of several.
    fn best(&self, sketch: &Sketch) -> Result<Option<Match>, Error> {
        let found = match self {
            Self::Reader(reader) => reader.query(sketch)?,
            Self::Writer(index) => index.query(sketch)?,
        };
        let better = |best: Match, next: Match| match next.similarity > best.similarity {
            true => next,
            false => best,
        };
        Ok(found.into_iter().reduce(better))
    }
}

/// What the first stage left of each document, in order.
pub(crate) struct Rows {
    records: Scan<DocRecord>,
    names: NameScan,
    next: Ordinal,
}

impl Rows {
    pub(crate) fn open(read: &Path) -> Result<Self, Error> {
        Ok(Self {
            records: Scan::open(&read.join(DOCS))?,
            names: NameScan::open(read)?,
            next: 0,
        })
    }

    /// The row of a document that comes after all asked for before.
    pub(crate) fn of(&mut self, doc: Ordinal) -> Result<(DocRecord, Name), Error> {
        loop {
            let record = self.records.next()?.expect("a record for every document");
            let name = self.names.next()?;
            self.next += 1;
            if self.next > doc {
                return Ok((record, name));
            }
        }
    }
}

/// Makes the sketches that an index has from what the first stage left.
pub(crate) struct Sketches {
    sketcher: Sketcher,
    tokens: TokenColumn,
    /// The files that documents come from, as text.
    sources: Vec<String>,
    naming: Naming,
}

impl Sketches {
    pub(crate) fn open(
        read: &Path,
        settings: &Settings,
        sources: &[Source],
        naming: Naming,
    ) -> Result<Self, Error> {
        let sources = sources.iter().map(|source| path_text(&source.path));
        Ok(Self {
            sources: sources.collect(),
            naming,
            sketcher: Sketcher::new(settings),
            tokens: TokenColumn::open(read)?,
        })
    }

    /// The name of a document in an index, and its sketch.
    pub(crate) fn of(&self, record: &DocRecord, name: Name) -> Result<(String, Sketch), Error> {
        let tokens = self.tokens(record)?;
        let host = name.url.as_deref().and_then(host);
        let sketch = self
            .sketcher
            .sketch_of_tokens(&tokens, record.content(), host);
        let name = self.name(record, name);
        let sketch = sketch.of_page(&name);
        Ok((name, sketch))
    }

    /// As [`index::name`](crate::index::name); a document of a table goes by its ID.
    fn name(&self, record: &DocRecord, name: Name) -> String {
        if self.naming == Naming::Table {
            return name.id;
        }
        let source = &self.sources[record.source as usize];
        let has_source = name.id.strip_prefix(&**source);
        match name.url {
            Some(url) => url,
            // A document without an ID is called by its place.
            None if has_source.is_some_and(|rest| rest.starts_with('#')) => name.id,
            None => format!("{source}#{}", name.id),
        }
    }

    fn tokens(&self, record: &DocRecord) -> Result<Tokens, Error> {
        let mut fingerprints = Vec::new();
        self.tokens.read(&record.tokens(), &mut fingerprints)?;
        let n_unspaced = match record.flags & UNSPACED {
            0 => 0,
            _ => fingerprints.len(),
        };
        Ok(Tokens {
            fingerprints,
            n_unspaced,
        })
    }
}

/// Asks the index for every content and leaves the answers in `folder`.
pub(crate) fn run(
    [read, exact]: [&Path; 2],
    holder: &Holder,
    documents: &Read,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Held, Error> {
    // What is looked up needs no name.
    let sketches = Sketches::open(read, holder.settings(), &documents.sources, Naming::Files)?;
    let n_docs = documents.n_docs;
    let mut rows = Rows::open(read)?;
    let mut copies = Scan::<Copied>::open(&exact.join(COPIES))?;
    let mut next_copy = copies.next()?;
    let mut known = Writer::create(&folder.join(KNOWN))?;
    let mut names = Writer::<u8>::create(&folder.join(KNOWN_AS))?;
    let mut found = Held {
        n_held: holder.n_docs()?,
        n_known: 0,
        policy: holder.settings().describe(),
        agrees: holder.settings().agrees_with(config),
    };
    progress.expect(n_docs);
    let n_docs = n_docs as Ordinal;
    for start in (0..n_docs).step_by(BATCH) {
        let docs = start..(start + BATCH as Ordinal).min(n_docs);
        let firsts = docs.clone().map(|doc| {
            let row = rows.of(doc)?;
            if next_copy.is_some_and(|copy| copy.doc == doc) {
                next_copy = copies.next()?;
                return Ok(None);
            }
            Ok(Some(row))
        });
        let firsts = firsts.collect::<Result<Vec<_>, Error>>()?;
        let asked = firsts.into_par_iter().map(|row| {
            let Some((record, name)) = row else {
                return Ok(None);
            };
            if record.flags & (FILTERED | SUPERSEDED) != 0 {
                return Ok(None);
            }
            holder.best(&sketches.of(&record, name)?.1)
        });
        for answer in asked.collect::<Result<Vec<_>, Error>>()? {
            let record = answer.map_or(Ok(Known::zeroed()), |answer| {
                found.n_known += 1;
                write_known(&answer, &mut names)
            })?;
            known.push(&record)?;
        }
        progress.advance(docs.len() as u64)?;
    }
    known.finish()?;
    names.finish()?;
    Ok(found)
}

fn write_known(answer: &Match, names: &mut Writer<u8>) -> Result<Known, Error> {
    let name_at = names.len();
    names.extend(answer.name.as_bytes())?;
    Ok(Known {
        similarity: answer.similarity,
        name_at,
        n_name: answer.name.len() as u32,
        rule: rule_index(answer.rule) + 1,
    })
}

/// The answers, by document.
pub(crate) struct Answers {
    known: Column<Known>,
    names: Column<u8>,
}

impl Answers {
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            known: Column::open(&folder.join(KNOWN), config.part(16))?,
            names: Column::open(&folder.join(KNOWN_AS), config.part(16))?,
        })
    }

    pub(crate) fn of(&self, first: Ordinal) -> Result<Known, Error> {
        self.known.get(first)
    }

    /// What the index calls the document that a known one is like.
    pub(crate) fn name(&self, known: &Known) -> Result<String, Error> {
        let mut bytes = vec![0; known.n_name as usize];
        self.names.read_into(known.name_at, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
