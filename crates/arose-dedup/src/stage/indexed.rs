//! Beside the second stage: looks up the documents in an index.
//!
//! The index decides by its own policy and on its own sketches, which are computed from the tokens
//! that the first stage stored. If its policy is that of the run, it finds every document that the
//! run would drop for one of its documents: both have the same keys and the same sketches, and the
//! index reports as duplicates the candidates that the run would still compare by text. Documents
//! already in the index are dropped before the kept documents are chosen among the rest, so no
//! document is dropped for one that is itself dropped. As everywhere in the run, the first of
//! several exact duplicates decides for all of them.

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
use crate::source::{InputFile, path_text};
use crate::stage::columns::DOCS;
use crate::stage::exact::COPIES;
use crate::stage::read::Read;
use crate::stage::urls::host;
use crate::{Error, Progress};

/// File with a record for each document: the duplicate found in the index, if any.
pub(crate) const MATCHES: &str = "matches";
/// File with the names of these duplicates.
pub(crate) const MATCH_NAMES: &str = "match_names";

/// Number of documents that are looked up together.
const BATCH: usize = 1 << 12;

/// A duplicate found in an index.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct IndexMatch {
    pub(crate) similarity: f64,
    /// The position of its name in the file of names.
    name_at: u64,
    n_name: u32,
    /// One more than the position of the rule in [`Rule::ALL`]; 0 if no duplicate was found.
    rule: u32,
}

impl IndexMatch {
    /// Returns the rule that matched, or none if the document is not in the index.
    pub(crate) fn rule(&self) -> Option<Rule> {
        Rule::ALL.get(self.rule.checked_sub(1)? as usize).copied()
    }
}

/// The results of the stage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Lookups {
    /// Number of documents in the index.
    pub(crate) n_in_index: u64,
    /// Number of distinct documents already in the index.
    pub(crate) n_matched: u64,
    /// The policy of the index.
    pub(crate) policy: String,
    /// Whether the run has the same policy.
    pub(crate) agrees: bool,
}

/// An index, open for reading or writing as the run requires.
pub(crate) enum OpenIndex {
    Reader(Reader),
    Writer(Index),
}

impl OpenIndex {
    /// Opens the index. If documents will be added, it stays locked until the end of the run.
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
            Self::Reader(reader) => reader.status().n_docs,
            Self::Writer(index) => index.status()?.n_docs,
        })
    }

    /// Returns the most similar document, the oldest if there are several.
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

/// The rows that the first stage wrote, in order.
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

    /// Returns the row of a document, which must come after all documents requested before.
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

/// Computes the sketches of an index from the tokens that the first stage stored.
pub(crate) struct Sketches {
    sketcher: Sketcher,
    tokens: TokenColumn,
    /// The paths of the source files.
    sources: Vec<String>,
    naming: Naming,
}

impl Sketches {
    pub(crate) fn open(
        read: &Path,
        settings: &Settings,
        sources: &[InputFile],
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

    /// Returns the names of documents in an index, and their sketches.
    pub(crate) fn all(&self, rows: Vec<(DocRecord, Name)>) -> Result<Vec<(String, Sketch)>, Error> {
        let sketched = rows.into_par_iter();
        let sketched = sketched.map(|(record, name)| self.of(&record, name));
        sketched.collect()
    }

    /// Returns the name of a document in an index, and its sketch.
    pub(crate) fn of(&self, record: &DocRecord, name: Name) -> Result<(String, Sketch), Error> {
        let tokens = self.tokens(record)?;
        let host = name.url.as_deref().and_then(host);
        let mut sketch = self
            .sketcher
            .sketch_of_tokens(&tokens, record.content(), host);
        if let Some(url) = &name.url {
            sketch = sketch.of_page(url);
        }
        Ok((self.name(record, name), sketch))
    }

    /// Returns the name given by [`index::name`](crate::index::name), or the ID of a document of a
    /// table.
    fn name(&self, record: &DocRecord, name: Name) -> String {
        if self.naming == Naming::Table {
            return name.id;
        }
        let source = &self.sources[record.source as usize];
        let has_source = name.id.strip_prefix(&**source);
        match name.url {
            Some(url) => url,
            // The name of a document without an ID is its position.
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

/// Looks up every distinct document in the index and writes the matches to `folder`.
pub(crate) fn run(
    [read, exact]: [&Path; 2],
    index: &OpenIndex,
    documents: &Read,
    config: &Config,
    folder: &Path,
    progress: &Progress,
) -> Result<Lookups, Error> {
    // Lookups need no name.
    let sketches = Sketches::open(read, index.settings(), &documents.sources, Naming::Files)?;
    let n_docs = documents.n_docs;
    let mut rows = Rows::open(read)?;
    let mut copies = Scan::<Copied>::open(&exact.join(COPIES))?;
    let mut next_copy = copies.next()?;
    let mut matches = Writer::create(&folder.join(MATCHES))?;
    let mut names = Writer::<u8>::create(&folder.join(MATCH_NAMES))?;
    let mut found = Lookups {
        n_in_index: index.n_docs()?,
        n_matched: 0,
        policy: index.settings().describe(),
        agrees: index.settings().agrees_with(config),
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
        let looked_up = firsts.into_par_iter().map(|row| {
            let Some((record, name)) = row else {
                return Ok(None);
            };
            if record.flags & (FILTERED | SUPERSEDED) != 0 {
                return Ok(None);
            }
            index.best(&sketches.of(&record, name)?.1)
        });
        for found_match in looked_up.collect::<Result<Vec<_>, Error>>()? {
            let record = found_match.map_or(Ok(IndexMatch::zeroed()), |found_match| {
                found.n_matched += 1;
                write_match(&found_match, &mut names)
            })?;
            matches.push(&record)?;
        }
        progress.advance(docs.len() as u64)?;
    }
    matches.finish()?;
    names.finish()?;
    Ok(found)
}

fn write_match(found: &Match, names: &mut Writer<u8>) -> Result<IndexMatch, Error> {
    let name_at = names.len();
    names.extend(found.name.as_bytes())?;
    Ok(IndexMatch {
        similarity: found.similarity,
        name_at,
        n_name: found.name.len() as u32,
        rule: rule_index(found.rule) + 1,
    })
}

/// The matches by document.
pub(crate) struct IndexMatches {
    matches: Column<IndexMatch>,
    names: Column<u8>,
}

impl IndexMatches {
    pub(crate) fn open(folder: &Path, config: &Config) -> Result<Self, Error> {
        Ok(Self {
            matches: Column::open(&folder.join(MATCHES), config.part(16))?,
            names: Column::open(&folder.join(MATCH_NAMES), config.part(16))?,
        })
    }

    pub(crate) fn of(&self, first: Ordinal) -> Result<IndexMatch, Error> {
        self.matches.get(first)
    }

    /// Returns the name of the matched document in the index.
    pub(crate) fn name(&self, found: &IndexMatch) -> Result<String, Error> {
        let mut bytes = vec![0; found.n_name as usize];
        self.names.read_into(found.name_at, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
