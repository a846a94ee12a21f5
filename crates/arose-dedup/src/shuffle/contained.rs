//! The policy `contained`: one task decides on all documents.
//!
//! *Question.* A document is dropped for a longer document that is *kept*. So the decision on it
//! needs the decisions on all longer documents, and parts cannot be processed independently. What
//! is left to distribute?
//!
//! *Idea.* Reading, exact duplicates, rows and the kept records are distributed as for the other
//! policies. In between, one task gets records and tokens of all documents in order, stores them as
//! a local run does, and runs its stages ([`contained`]). *Bounds.* It uses [`MEMORY_BYTES`] of
//! memory, and temporary files of about 130 bytes per document, 2 to 10 bytes per token and 12 to
//! 28 bytes per anchor, of which there is one for about 9 tokens. If executors share a directory,
//! it reads the tokens there.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use arose::Threshold;
use arose::mix::mix;
use arose::rule::Criterion;
use bytemuck::Zeroable;
use serde_json::json;
use tempfile::TempDir;

use super::chunks::{ChunkPlace, ChunkReader};
use super::document::{Copies, Docs};
use super::stars::Taken;
use super::wire::{Cursor, Message, Sink, records, torn};
use super::{Context, Step, kind};
use crate::column::{Scan, Writer};
use crate::config::Config;
use crate::dictionary::{TokenPlace, TokenWriter};
use crate::job::on_threads;
use crate::lookup::Flags;
use crate::record::{Accepted, Copied, DocRecord};
use crate::sorter::Sorter;
use crate::stage::cluster::{self, Link};
use crate::stage::columns::DOCS;
use crate::stage::contained;
use crate::stage::exact::COPIES;
use crate::stage::rank::{Rank, Ranks};
use crate::stage::verify::PAIRS;
use crate::{Error, Progress};

/// Memory of the task that decides, in bytes.
const MEMORY_BYTES: u64 = 256 << 20;

/// The step that addresses documents, tokens and exact duplicates to one part.
pub(super) struct Gather(Context);

impl Gather {
    pub(super) fn new(context: Context) -> Self {
        Self(context)
    }
}

impl Step for Gather {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let seq = match message.kind {
            kind::COPIES => message.seq,
            _ => i64::from(self.0.start_of(message.part)?) + message.seq,
        };
        let (kind, bytes) = match message.kind {
            kind::DOCS => {
                let records = Docs::of(message)?.records;
                (kind::RECORDS, bytemuck::cast_slice(&records).to_vec())
            }
            // The part says in which file they are.
            kind::PLACES => {
                let part = message.part.to_le_bytes();
                (kind::TEXTS, [&part, &*message.bytes].concat())
            }
            kind::TOKENS => (kind::TEXTS, message.bytes.to_vec()),
            kind => (kind, message.bytes.to_vec()),
        };
        out.forward(&Message {
            part: 0,
            kind,
            seq,
            bytes: bytes.into(),
            more: None,
        })
    }

    fn end(&mut self, _: i64, _: &mut Sink) -> Result<(), Error> {
        Ok(())
    }
}

/// The step that decides. Exact duplicates arrive first, then records, then tokens.
pub(super) struct DecideContained {
    least: Threshold,
    config: Config,
    context: Context,
    chunks: Option<ChunkReader>,
    columns: Option<GatheredColumns>,
}

impl DecideContained {
    pub(super) fn new(config: &Config, context: Context) -> Result<Self, Error> {
        let Criterion::Contained(least) = config.policy.criterion else {
            return Err(Error::Message {
                detail: "the step `contained` is for the policy `contained`".to_owned(),
            });
        };
        Ok(Self {
            least,
            config: Config {
                memory: context.sort_bytes.unwrap_or(MEMORY_BYTES),
                ..config.clone()
            },
            chunks: context.chunks.clone().map(ChunkReader::new),
            context,
            columns: None,
        })
    }

    /// Returns the tokens of a message, which are elsewhere if executors share a directory.
    fn tokens(&mut self, message: &Message<'_>) -> Result<Vec<u64>, Error> {
        let Some(chunks) = &mut self.chunks else {
            return records(&message.bytes);
        };
        let mut cursor = Cursor(&message.bytes);
        let (part, place) = (cursor.record()?, cursor.record::<ChunkPlace>()?);
        let mut bytes = vec![0; place.n_bytes as usize];
        chunks.read(part, place.start, &mut bytes)?;
        records(&bytes)
    }
}

/// Runs the stages of a local run on the columns in a directory, and outputs pairs and dropped
/// documents.
fn decide(
    least: Threshold,
    config: &Config,
    context: &Context,
    folder: &Path,
    out: &mut Sink,
) -> Result<(), Error> {
    let [read, exact, candidates, verify, cluster] = STAGES.map(|stage| folder.join(stage));
    let progress = &Progress::default();
    let found = contained::candidates([&read, &exact], config, &candidates, progress)?;
    let stages = [&*read, &*candidates];
    let verified = contained::verify(stages, found.n_slots, least, config, &verify, progress)?;
    let ranks = Ranks::new(&read, &exact, config, &cluster)?;
    let mut is_taken = Flags::new(context.n_docs as usize);
    let mut all = Scan::<cluster::Taken>::open(&verify.join(contained::TAKEN))?;
    while let Some(found) = all.next()? {
        is_taken.set(found.doc as usize);
        let taken = Taken {
            doc: found.doc,
            kept_doc: ranks.best(found.centre)?,
            scores: found.scores,
        };
        let (part, seq) = (context.shard_of(taken.doc), taken.doc.into());
        out.push(kind::TAKEN, part, seq, &[bytemuck::bytes_of(&taken)])?;
    }
    let mut pairs = Scan::<Accepted>::open(&verify.join(PAIRS))?;
    while let Some(Accepted { a, b, scores }) = pairs.next()? {
        // Exactly one of them is dropped.
        let (centre, other) = if is_taken.is_set(a as usize) {
            (b, a)
        } else {
            (a, b)
        };
        let link = Link {
            rank: Rank::zeroed(),
            other,
            centre,
            scores,
        };
        let part = context.part_of(mix(a.into()));
        out.push(kind::LINK, part, a.into(), &[bytemuck::bytes_of(&link)])?;
    }
    out.note(&json!({
        "accepted": verified.n_pairs,
        "not_judged": found.n_unjudged,
    }))
}

/// The directories of the stages.
const STAGES: [&str; 5] = ["read", "exact", "candidates", "verify", "cluster"];
/// Records whose tokens have not arrived.
const WAITING: &str = "waiting";

/// The columns of a local run, while they are written.
struct GatheredColumns {
    folder: TempDir,
    copies: Option<Sorter<Copied>>,
    waiting: Writer<DocRecord>,
    texts: Option<GatheredTexts>,
}

/// The columns of documents, from the first tokens on.
struct GatheredTexts {
    waiting: Scan<DocRecord>,
    docs: Writer<DocRecord>,
    tokens: TokenWriter,
}

impl GatheredColumns {
    fn create(config: &Config) -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::io("create", &std::env::temp_dir()))?;
        for stage in STAGES {
            let path = folder.path().join(stage);
            std::fs::create_dir(&path).map_err(Error::io("create", &path))?;
        }
        let copies = Sorter::new(&folder.path().join("copies"), config.part(4));
        Ok(Self {
            copies: Some(copies),
            waiting: Writer::create(&folder.path().join(WAITING))?,
            texts: None,
            folder,
        })
    }

    fn path(&self, stage: &str, name: &str) -> PathBuf {
        self.folder.path().join(stage).join(name)
    }

    fn copies(&mut self) -> &mut Sorter<Copied> {
        self.copies.as_mut().expect("not finished")
    }

    fn texts(&mut self) -> Result<&mut GatheredTexts, Error> {
        if self.texts.is_none() {
            self.waiting.flush()?;
            self.texts = Some(GatheredTexts {
                waiting: Scan::open(&self.folder.path().join(WAITING))?,
                docs: Writer::create(&self.path("read", DOCS))?,
                tokens: TokenWriter::create(None, &self.folder.path().join("read"))?,
            });
        }
        Ok(self.texts.as_mut().expect("just set"))
    }

    /// Ends all columns.
    fn finish(&mut self) -> Result<(), Error> {
        self.texts()?;
        let mut texts = self.texts.take().expect("just set");
        // Only documents without tokens are left.
        texts.push(&[], true)?;
        texts.docs.finish()?;
        texts.tokens.finish()?;
        let copies = self.copies.take().expect("not finished");
        copies.write(&self.path("exact", COPIES)).map(drop)
    }
}

impl GatheredTexts {
    /// Writes the documents of these tokens; if they are the last ones, also those without tokens.
    fn push(&mut self, mut tokens: &[u64], is_last: bool) -> Result<(), Error> {
        while (is_last || !tokens.is_empty())
            && let Some(mut record) = self.waiting.next()?
        {
            let n_tokens = record.n_tokens as usize;
            let (own, rest) = tokens.split_at_checked(n_tokens).ok_or_else(torn)?;
            tokens = rest;
            let TokenPlace {
                at,
                n_literals,
                dictionary,
                ..
            } = self.tokens.push(own)?;
            record.tokens_at = at;
            record.n_literals = n_literals;
            record.dictionary = dictionary;
            self.docs.push(&record)?;
        }
        match tokens {
            [] => Ok(()),
            _ => Err(torn()),
        }
    }
}

impl Step for DecideContained {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if self.columns.is_none() {
            self.columns = Some(GatheredColumns::create(&self.config)?);
        }
        if message.kind == kind::TEXTS {
            let tokens = self.tokens(message)?;
            let columns = self.columns.as_mut().expect("just set");
            return columns.texts()?.push(&tokens, false);
        }
        let columns = self.columns.as_mut().expect("just set");
        if message.kind == kind::RECORDS {
            return columns.waiting.extend(&message.records::<DocRecord>()?);
        }
        for Copies { first, docs } in Copies::all(message)? {
            let copies = docs.into_iter().filter(|doc| *doc != first);
            copies
                .map(|doc| Copied { doc, first })
                .try_for_each(|copied| columns.copies().push(copied))?;
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let Some(mut columns) = self.columns.take() else {
            return Ok(());
        };
        columns.finish()?;
        // The engine runs a task for every core.
        let folder = columns.folder.path();
        let (least, config, context) = (self.least, &self.config, &self.context);
        on_threads(NonZeroUsize::MIN, folder, || {
            decide(least, config, context, folder, out)
        })
    }
}
