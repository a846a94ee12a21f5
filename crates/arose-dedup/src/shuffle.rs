//! The job as steps for a cluster: pure functions on messages, with shuffles between them.
//!
//! *Question.* How can the same job run on many machines and write the same rows, although any
//! machine may die? *Idea.* An engine such as Spark moves [`Message`]s to the parts to which they
//! are addressed, and runs a lost part again. A `Step` turns the messages of one part into other
//! messages and keeps no state. The output of a step depends only on the messages of its part, not
//! on the distribution of parts over machines. So any number of partitions and any loss give the
//! same rows.
//!
//! Messages are few and large. A step addresses thousands of records to a part in one message, so
//! that the engine moves bytes and never examines a record. A row per key would cost more than all
//! algorithms together. The messages of a part are sorted by kind and then by sequence number.
//!
//! | step | input, by part | output |
//! |---|---|---|
//! | `read` | a part of the input | shards: documents, sketches, tokens |
//! | `keys` | documents and sketches of a shard | `ENTRY` per table and `CONTENT`, by key |
//! | `runs` | entries and contents with one hash | `LIVE`: documents that share a key, by shard; `CLASS` and `COPIES`: exact duplicates, by shard of the first; `COPY` under the policy `content`, by shard |
//! | `live` | sketches and `LIVE` of a shard | `MEMBER`, `LONG`: key and sketch, if not read later, by key |
//! | `candidates` | members with one hash | `PAIR`, by the later document |
//! | `groups` | pairs | `WANT`: documents to fetch, by shard; `JUDGE`: pairs to verify, by group |
//! | `fetch` | documents, tokens or `PLACES`, classes and `WANT` of a shard | `CARD`: a document, by group |
//! | `verify` | cards and pairs of groups | `LINK`: verified pairs, by document |
//! | `edges` | links | `EDGE`, by node |
//! | `whole` | all edges, if they fit into one part | `EDGE`: components |
//! | `large`, `small` | edges of nodes | `EDGE`: one round of components |
//! | `attach` | edges that have become labels, links | `LINK`, by component |
//! | `stars` | links of components | `TAKEN`, by shard; `PAIR`: kept documents to compare, by the later document |
//! | `decide` | classes, `TAKEN` and exact duplicates of a shard | `VERDICT`, by shard |
//! | `documents` | documents and verdicts of a shard | rows |
//! | `linked` | links | `LINKED`: pairs, by the shard of the worse document |
//! | `name` | documents, verdicts and `LINKED` of a shard | `LISTED`: pairs, by the shard of the better document |
//! | `tally` | `LISTED` of a shard | the same, and sizes of clusters |
//! | `list` | documents and `LISTED` of a shard | rows of pairs |
//! | `spans` | documents and verdicts of a shard | `SPANS`: kept records, by part of the input |
//! | `kept` | `SPANS` of a part of the input | rows of files |
//!
//! Under the policy `content`, sketches depend on the text that sites repeat, so `keys` is replaced
//! by these steps. Exact duplicates are found before, by `contents` and `runs`:
//!
//! | step | input, by part | output |
//! |---|---|---|
//! | `contents` | documents of a shard | `CONTENT`, by content |
//! | `pages` | documents and sites of a shard | `SITE`, by site |
//! | `sites` | documents of sites | `PAGE`: documents of sites with enough pages, by shard |
//! | `postings` | documents, tokens and `PAGE` of a shard | `POSTING`: word pairs of pages, by word pair and site |
//! | `counts` | postings with one hash | `REPEATED`: word pairs that enough pages contain, by shard; `FRAMED`: the same without documents |
//! | `repeats` | `FRAMED` | rows |
//! | `weights` | documents, tokens, `REPEATED` and `COPY` of a shard | `MARKS` and `OTHERS`: sketches and counts, by shard |
//! | `mark-keys` | documents, `COPY` and `MARKS` of a shard | `ENTRY`, by key |
//!
//! After the last `stars`, kept documents are grouped by their versions. `version-pairs` outputs
//! the pairs of documents kept in place of versions. These are verified, `attach-later` addresses
//! them by component (`LATER`), and `versions` forms the groups (`VERSION`, by shard), which
//! `decide` passes on (`GROUP`).
//!
//! Under the policy `contained`, decisions depend on each other. After `contents` and `runs`,
//! `gather` addresses documents (`RECORDS`), tokens (`TEXTS`) and exact duplicates to one part, and
//! `contained` decides there: `TAKEN`, by shard, and `LINK`.
//!
//! The pairs that `stars` outputs pass through `groups`, `fetch` and `verify` again, and clusters
//! are formed from all links, until nothing new is found (at most [`MAX_REPAIRS`] times).
//!
//! Components are found by large-star and small-star rounds (Kiveris, Lattanzi, Mirrokni, Rastogi &
//! Vassilvitskii 2014) until no edge changes. If there are few edges, one part finds them.
//!
//! The output of `read` is most of the data. If executors share a directory, it stays there, and
//! messages contain its position.
//!
//! *Memory.* A step processes one part at a time and stores only the data it needs. Equal contents,
//! keys, pairs and edges are sorted in files if there are many. The documents under one very common
//! key are processed one by one, and output is passed on while the step runs. The driver determines
//! the size of parts.

mod candidates;
mod chunks;
mod components;
mod contained;
mod document;
mod groups;
mod kept;
mod read;
mod runs;
mod sites;
mod spill;
mod stars;
mod tables;
mod verify;
mod versions;
mod wire;

use std::path::PathBuf;

use arose::rule::{Criterion, Remove};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::config::Config;
use crate::marks::{MarkTables, Marks};
use crate::record::{Ordinal, Samples, Vectors};
use crate::scheme::{Bands, KeyTables, Rules};

use chunks::ChunkReader;

pub use kept::copy_kept;
pub use read::{Chunk, read_bytes, read_part};
pub use wire::{Drain, Message, Sink};

/// Maximum number of rounds in which kept documents are compared again.
pub const MAX_REPAIRS: u32 = crate::stage::repair::MAX_ROUNDS;

/// The kind of a message. The messages of a part arrive in this order.
pub mod kind {
    /// Counters and findings for the driver, as JSON.
    pub const NOTE: i32 = -1;
    /// Documents of a shard, and vectors or sketches.
    pub const DOCS: i32 = 0;
    /// Tokens of a shard.
    pub const TOKENS: i32 = 1;
    /// Exact duplicates.
    pub const CLASS: i32 = 2;
    /// Keys of documents.
    pub const ENTRY: i32 = 3;
    /// Contents of documents.
    pub const CONTENT: i32 = 4;
    /// Documents that share a key with another.
    pub const LIVE: i32 = 5;
    /// The same with their sketches.
    pub const MEMBER: i32 = 6;
    /// Candidates.
    pub const PAIR: i32 = 7;
    /// Documents to be fetched.
    pub const WANT: i32 = 8;
    /// Documents that were fetched.
    pub const CARD: i32 = 9;
    /// Candidates to verify.
    pub const JUDGE: i32 = 10;
    /// Edges between nodes.
    pub const EDGE: i32 = 11;
    /// Accepted pairs for `stars`.
    pub const LINK: i32 = 12;
    /// Pairs with the IDs of their worse documents.
    pub const LISTED: i32 = 13;
    /// Documents taken by a better one.
    pub const TAKEN: i32 = 14;
    /// The decision on a document.
    pub const VERDICT: i32 = 15;
    /// The positions of the tokens of a shard.
    pub const PLACES: i32 = 16;
    /// Accepted pairs for the rows of pairs.
    pub const LINKED: i32 = 17;
    /// Documents that share a key of a large bucket.
    pub const LONG: i32 = 18;
    /// Kept records.
    pub const SPANS: i32 = 19;
    /// Documents of sites.
    pub const SITE: i32 = 20;
    /// Documents of sites with enough pages, and their pages.
    pub const PAGE: i32 = 21;
    /// Word pairs of pages.
    pub const POSTING: i32 = 22;
    /// Word pairs of documents that other pages of the site contain.
    pub const REPEATED: i32 = 23;
    /// Documents that are not the first of their content.
    pub const COPY: i32 = 24;
    /// Sketches of a shard that depend on repeated text.
    pub const MARKS: i32 = 25;
    /// For each word pair of a document, the number of other pages that contain it.
    pub const OTHERS: i32 = 26;
    /// Accepted pairs of documents kept in place of versions.
    pub const LATER: i32 = 27;
    /// Documents whose content is a version of another.
    pub const VERSION: i32 = 28;
    /// The kept document under which versions are grouped.
    pub const GROUP: i32 = 29;
    /// Exact duplicates, one by one.
    pub const COPIES: i32 = 30;
    /// Word pairs that enough pages of a site contain.
    pub const FRAMED: i32 = 31;
    /// Records of documents, for the task that decides on all.
    pub const RECORDS: i32 = 32;
    /// Tokens of documents or their positions, for the task that decides on all.
    pub const TEXTS: i32 = 33;

    /// All kinds, by name.
    pub const ALL: [(&str, i32); 35] = [
        ("NOTE", NOTE),
        ("DOCS", DOCS),
        ("TOKENS", TOKENS),
        ("CLASS", CLASS),
        ("ENTRY", ENTRY),
        ("CONTENT", CONTENT),
        ("LIVE", LIVE),
        ("MEMBER", MEMBER),
        ("PAIR", PAIR),
        ("WANT", WANT),
        ("CARD", CARD),
        ("JUDGE", JUDGE),
        ("EDGE", EDGE),
        ("LINK", LINK),
        ("LISTED", LISTED),
        ("TAKEN", TAKEN),
        ("VERDICT", VERDICT),
        ("PLACES", PLACES),
        ("LINKED", LINKED),
        ("LONG", LONG),
        ("SPANS", SPANS),
        ("SITE", SITE),
        ("PAGE", PAGE),
        ("POSTING", POSTING),
        ("REPEATED", REPEATED),
        ("COPY", COPY),
        ("MARKS", MARKS),
        ("OTHERS", OTHERS),
        ("LATER", LATER),
        ("VERSION", VERSION),
        ("GROUP", GROUP),
        ("COPIES", COPIES),
        ("FRAMED", FRAMED),
        ("RECORDS", RECORDS),
        ("TEXTS", TEXTS),
    ];
}

/// The context of all steps of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// The version of the driver. Steps of another version return an error.
    pub version: String,
    /// Shards in input order: their part, and the ordinal of their first document.
    pub shards: Vec<(i64, Ordinal)>,
    /// The directory of the chunks, if they are not in messages.
    pub chunks: Option<PathBuf>,
    /// The positions of sketches, if they are read one by one: by first document, its shard and its
    /// byte.
    pub sketches: Vec<(Ordinal, i64, u64)>,
    /// Documents in all shards.
    pub n_docs: u64,
    /// Number of parts to which messages are addressed, without shards.
    pub n_parts: u32,
    /// Tables, keys and sizes of buckets beyond the cap, and the document up to which all documents
    /// take part in a huge one.
    pub long: Vec<(u32, u64, usize, Ordinal)>,
    /// Maximum number of documents that are verified together.
    pub group_docs: usize,
    /// Bytes that a step sorts in memory. More are sorted in files.
    pub sort_bytes: Option<u64>,
}

impl Context {
    /// Returns the part of the shard that contains a document.
    pub(crate) fn shard_of(&self, doc: Ordinal) -> i64 {
        let after = self.shards.partition_point(|(_, start)| *start <= doc);
        self.shards[after.saturating_sub(1)].0
    }

    /// Returns the ordinal of the first document of a shard.
    pub(crate) fn start_of(&self, part: i64) -> Result<Ordinal, Error> {
        let at = self.shards.binary_search_by_key(&part, |(part, _)| *part);
        let at = at.map_err(|_| Error::Message {
            detail: format!("there is no shard {part}"),
        })?;
        Ok(self.shards[at].1)
    }

    /// Returns the part for a hash.
    pub(crate) fn part_of(&self, hash: u64) -> i64 {
        (hash % u64::from(self.n_parts.max(1))) as i64
    }
}

/// Turns the messages of parts into other messages.
pub(crate) trait Step: Send {
    /// Processes a message of the current part.
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error>;

    /// Ends the current part.
    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error>;
}

/// A step running on the parts of one task of an engine.
pub struct Worker {
    step: Box<dyn Step>,
    chunks: Option<ChunkReader>,
    part: Option<i64>,
    sink: Sink,
}

impl Worker {
    /// Creates a worker for the step of this name; `drain` gets its output.
    ///
    /// # Errors
    ///
    /// If there is no such step, or the driver is of another version.
    pub fn new(name: &str, config: &Config, context: Context, drain: Drain) -> Result<Self, Error> {
        check_version(&context.version)?;
        Ok(Self {
            chunks: context.chunks.clone().map(ChunkReader::new),
            step: step(name, config, context)?,
            part: None,
            sink: Sink::new(drain),
        })
    }

    /// Processes the next message. The messages of a part must be adjacent, by kind and sequence
    /// number.
    ///
    /// # Errors
    ///
    /// If the message is malformed.
    pub fn push(&mut self, message: &Message<'_>) -> Result<(), Error> {
        if message.kind == kind::NOTE {
            return self.sink.forward(message);
        }
        if self.part != Some(message.part) {
            self.end_part()?;
            self.part = Some(message.part);
        }
        match &mut self.chunks {
            Some(chunks) if matches!(message.kind, kind::DOCS | kind::TOKENS) => {
                let message = chunks.resolve(message)?;
                self.step.take(&message, &mut self.sink)
            }
            _ => self.step.take(message, &mut self.sink),
        }
    }

    /// Ends the last part.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn finish(&mut self) -> Result<(), Error> {
        self.end_part()?;
        self.sink.finish()
    }

    fn end_part(&mut self) -> Result<(), Error> {
        match self.part.take() {
            Some(part) => self.step.end(part, &mut self.sink),
            None => Ok(()),
        }
    }
}

fn step(name: &str, config: &Config, context: Context) -> Result<Box<dyn Step>, Error> {
    Ok(match name {
        "keys" => runs::keys(config, context)?,
        "contents" => Box::new(runs::Contents::new(config, context)),
        "gather" => Box::new(contained::Gather::new(context)),
        "contained" => Box::new(contained::DecideContained::new(config, context)?),
        "pages" => Box::new(sites::Pages::new(context)),
        "sites" => Box::new(sites::FindSites::new(context)),
        "postings" => Box::new(sites::Postings::new(config, context)),
        "counts" => Box::new(sites::CountPages::new(context)),
        "repeats" => Box::new(sites::ListRepeats),
        "weights" => Box::new(sites::Weights::new(config, context)),
        "mark-keys" => Box::new(sites::MarkKeys::new(config, context)?),
        "runs" => Box::new(runs::Runs::new(config, context)),
        "live" => candidates::live(config, context),
        "candidates" => candidates::candidates(config, context)?,
        "groups" => Box::new(groups::Groups::new(context)),
        "fetch" => Box::new(verify::Fetch::new(config, context)),
        "verify" => Box::new(verify::VerifyPairs::new(config, context)?),
        "edges" => Box::new(components::Edges::new(context)),
        "whole" => components::whole(context),
        "large" => components::large_star(context),
        "small" => components::small_star(context),
        "attach" => Box::new(stars::Attach::new(context, kind::LINK)),
        "attach-later" => Box::new(stars::Attach::new(context, kind::LATER)),
        "stars" => Box::new(stars::Stars::new(config, context)),
        "version-pairs" => Box::new(versions::VersionPairs::new(config, context)),
        "versions" => Box::new(versions::Groups::new(config, context)),
        "decide" => Box::new(stars::Decide::new(config, context)),
        "documents" => Box::new(tables::Documents::new(config, context)),
        "linked" => Box::new(tables::Linked::new(context)),
        "name" => Box::new(tables::Name::new(context)),
        "tally" => Box::new(tables::Tally::default()),
        "list" => Box::new(tables::List::new(config, context)),
        "spans" => Box::new(kept::ShardSpans::new(config, context)),
        "kept" => Box::new(kept::FileSpans::default()),
        _ => {
            return Err(Error::Message {
                detail: format!("there is no step `{name}`"),
            });
        }
    })
}

/// Returns an error for a driver of another version.
///
/// # Errors
///
/// If `driver` is not the version of this library.
pub fn check_version(driver: &str) -> Result<(), Error> {
    let here = env!("CARGO_PKG_VERSION");
    if driver == here {
        return Ok(());
    }
    Err(Error::OtherVersion {
        driver: driver.to_owned(),
        here: here.to_owned(),
    })
}

/// Returns the settings that affect the result, by name.
#[must_use]
pub fn settings(config: &Config) -> Value {
    config.settings()
}

/// The size of the messages of a run, by which the driver determines the size of parts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sizes {
    /// Number of keys of a document.
    pub tables: u32,
    /// Bytes of the sketch of a document.
    pub sketch: usize,
    /// Bytes of a key in a message.
    pub entry: usize,
    /// Bytes of a content in a message.
    pub content: usize,
    /// Whether sketches are MinHash values, with additional vectors.
    pub has_samples: bool,
    /// Whether sketches depend on the text that sites repeat.
    pub has_marks: bool,
    /// Whether kept documents are grouped by their versions.
    pub has_versions: bool,
    /// Whether one task decides on all documents.
    pub is_gathered: bool,
}

/// Returns the sizes of messages under these settings.
///
/// # Errors
///
/// If the policy does not support another setting, or no keys reach the recall.
pub fn sizes(config: &Config) -> Result<Sizes, Error> {
    config.check_policy()?;
    let (tables, sketch, has_samples) = match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let tables = Bands::new(config, threshold)?.n_tables();
            (tables, size_of::<Samples>(), true)
        }
        Criterion::Content(_) => {
            let tables = MarkTables::new(config)?.n_tables();
            (tables, size_of::<Marks>(), false)
        }
        _ => (Rules::new(config)?.n_tables(), size_of::<Vectors>(), false),
    };
    let [entry, content] = runs::MESSAGE_BYTES;
    Ok(Sizes {
        tables,
        sketch,
        entry,
        content,
        has_samples,
        has_marks: matches!(config.policy.criterion, Criterion::Content(_)),
        has_versions: config.policy.criterion == Criterion::Content(Remove::Same),
        is_gathered: matches!(config.policy.criterion, Criterion::Contained(_)),
    })
}

/// Returns the names and types of the rows that `documents`, `list`, `kept` and `repeats` output.
#[must_use]
pub fn schemas() -> [(&'static str, arrow_schema::Schema); 4] {
    [
        ("documents", crate::stage::tables::document_schema()),
        ("pairs", crate::stage::tables::pair_schema()),
        ("kept", kept::schema()),
        ("repeats", crate::results::repeated::schema()),
    ]
}
