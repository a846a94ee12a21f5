//! The job in pieces for a cluster: pure steps over messages, with shuffles between them.
//!
//! The question: how does the same job run on many machines, with the same rows, when any of them
//! may die? The idea: an engine such as Spark moves [`Message`]s to the parts they are addressed to
//! and runs a lost part again; a `Step` turns the messages of one part into others and keeps
//! nothing. What a step gives depends on the messages of its part alone, not on how parts are
//! spread over machines, so any number of partitions and any loss give the same rows.
//!
//! Messages are few and large. A step addresses thousands of records to a part in one message, so
//! that the engine moves bytes and never looks at a record: a row per key would cost more than all
//! algorithms together. A part's messages come by kind and then by sequence number.
//!
//! | step | gets, by part | gives |
//! |---|---|---|
//! | `read` | a part of the input | shards: documents, sketches, tokens |
//! | `keys` | documents and sketches of a shard | `ENTRY` per table and `CONTENT`, by key |
//! | `runs` | entries and contents with one hash | `LIVE`: who meets somebody, by shard; `CLASS` and `COPIES`: equal contents, by shard of the first |
//! | `live` | sketches and `LIVE` of a shard | `MEMBER`, `LONG`: key and sketch, if not read later, by key |
//! | `candidates` | members with one hash | `PAIR`, by the later document |
//! | `groups` | pairs | `WANT`: documents to fetch, by shard; `JUDGE`: pairs, by group |
//! | `fetch` | documents, tokens or `PLACES`, classes and `WANT` of a shard | `CARD`: a document, by group |
//! | `verify` | cards and pairs of groups | `LINK`: verified pairs, by document |
//! | `edges` | links | `EDGE`, by node |
//! | `whole` | all edges, if they fit one part | `EDGE`: components |
//! | `large`, `small` | edges of nodes | `EDGE`: one round of components |
//! | `attach` | edges that are labels by now, links | `LINK`, by component |
//! | `stars` | links of components | `TAKEN`, by shard; `PAIR`: kept documents to compare, by the later document |
//! | `decide` | classes, `TAKEN` and copies of a shard | `VERDICT`, by shard |
//! | `documents` | documents and verdicts of a shard | rows |
//! | `linked` | links | `LINKED`: pairs, by the shard of the lesser document |
//! | `name` | documents, verdicts and `LINKED` of a shard | `LISTED`: pairs, by the shard of the better document |
//! | `tally` | `LISTED` of a shard | the same, and sizes of clusters |
//! | `list` | documents and `LISTED` of a shard | rows of pairs |
//! | `spans` | documents and verdicts of a shard | `SPANS`: records that stay, by part of the input |
//! | `kept` | `SPANS` of a part of the input | rows of files |
//!
//! The pairs that `stars` gives go through `groups`, `fetch` and `verify` again, and clusters are
//! made from all links, until nothing new is found (at most [`MAX_REPAIRS`] times).
//!
//! Components are found by large-star and small-star rounds (Kiveris, Lattanzi, Mirrokni, Rastogi &
//! Vassilvitskii 2014) until no edge changes, those of few edges in one part.
//!
//! What `read` gives is most of all there is. Where executors share a directory it stays there, and
//! messages say where.
//!
//! *Memory.* A step holds one part at a time, and of that what it needs: equal contents, keys,
//! pairs and edges are sorted in files if they are many, the documents under one very common key
//! are taken one by one, and what a step gives is handed on while it works. Parts are sized by the
//! driver.

mod candidates;
mod chunks;
mod components;
mod document;
mod groups;
mod kept;
mod read;
mod runs;
mod spill;
mod stars;
mod tables;
mod verify;
mod wire;

use std::path::PathBuf;

use arose::rule::Criterion;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Error;
use crate::config::Config;
use crate::record::{Ordinal, Samples, Vectors};
use crate::scheme::{Bands, Rules, Tables};

use chunks::ChunkReader;

pub use kept::copy_kept;
pub use read::{Chunk, read_bytes, read_part};
pub use wire::{Drain, Message, Sink};

/// Rounds in which kept documents are compared again.
pub const MAX_REPAIRS: u32 = crate::stage::repair::MAX_ROUNDS;

/// What a message is; those of a part come in this order.
pub mod kind {
    /// Counters and findings for the driver, as JSON.
    pub const NOTE: i32 = -1;
    /// Documents of a shard, and vectors or sketches.
    pub const DOCS: i32 = 0;
    /// Tokens of a shard.
    pub const TOKENS: i32 = 1;
    /// Documents of equal content.
    pub const CLASS: i32 = 2;
    /// Keys of documents.
    pub const ENTRY: i32 = 3;
    /// Contents of documents.
    pub const CONTENT: i32 = 4;
    /// Documents that meet somebody.
    pub const LIVE: i32 = 5;
    /// The same with their sketches.
    pub const MEMBER: i32 = 6;
    /// Candidates.
    pub const PAIR: i32 = 7;
    /// Documents to be fetched.
    pub const WANT: i32 = 8;
    /// Documents that were fetched.
    pub const CARD: i32 = 9;
    /// Candidates to be judged.
    pub const JUDGE: i32 = 10;
    /// Edges between nodes.
    pub const EDGE: i32 = 11;
    /// Accepted pairs on their way to stars.
    pub const LINK: i32 = 12;
    /// Pairs with the IDs of their lesser documents.
    pub const LISTED: i32 = 13;
    /// Documents that a better one took.
    pub const TAKEN: i32 = 14;
    /// What happens to a document.
    pub const VERDICT: i32 = 15;
    /// Where the tokens of a shard are.
    pub const PLACES: i32 = 16;
    /// Accepted pairs on their way to rows.
    pub const LINKED: i32 = 17;
    /// Documents of equal content, one by one.
    pub const COPIES: i32 = 18;
    /// Documents that meet somebody in a large bucket.
    pub const LONG: i32 = 19;
    /// Records that stay.
    pub const SPANS: i32 = 20;

    /// All of them by name.
    pub const ALL: [(&str, i32); 22] = [
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
        ("COPIES", COPIES),
        ("LONG", LONG),
        ("SPANS", SPANS),
    ];
}

/// What every step of a run is told.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Context {
    /// The version of the driver; steps of another are refused.
    pub version: String,
    /// Shards in input order: their part, and the ordinal of their first document.
    pub shards: Vec<(i64, Ordinal)>,
    /// The directory that chunks are in, if they are not in messages.
    pub chunks: Option<PathBuf>,
    /// Where sketches are, if they are read one by one: by first document, its shard and its byte.
    pub sketches: Vec<(Ordinal, i64, u64)>,
    /// Documents in all shards.
    pub n_docs: u64,
    /// Parts that messages are addressed to, other than shards.
    pub n_parts: u32,
    /// Tables, keys and sizes of buckets beyond the cap, and up to which document everybody takes
    /// part in a huge one.
    pub long: Vec<(u32, u64, usize, Ordinal)>,
    /// Documents that may be judged together.
    pub group_docs: usize,
    /// Bytes that a step sorts in memory; more go to files.
    pub sort_bytes: Option<u64>,
}

impl Context {
    /// The part of the shard that a document is in.
    pub(crate) fn shard_of(&self, doc: Ordinal) -> i64 {
        let after = self.shards.partition_point(|(_, start)| *start <= doc);
        self.shards[after.saturating_sub(1)].0
    }

    /// The ordinal of the first document of a shard.
    pub(crate) fn start_of(&self, part: i64) -> Result<Ordinal, Error> {
        let at = self.shards.binary_search_by_key(&part, |(part, _)| *part);
        let at = at.map_err(|_| Error::Message {
            detail: format!("no shard has the number {part}"),
        })?;
        Ok(self.shards[at].1)
    }

    /// The part for what has this hash.
    pub(crate) fn part_of(&self, hash: u64) -> i64 {
        (hash % u64::from(self.n_parts.max(1))) as i64
    }
}

/// Turns the messages of parts into others.
pub(crate) trait Step: Send {
    /// Takes a message of the current part.
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error>;

    /// The current part has no more messages.
    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error>;
}

/// A step at work on the parts that one task of an engine has.
pub struct Worker {
    step: Box<dyn Step>,
    chunks: Option<ChunkReader>,
    part: Option<i64>,
    sink: Sink,
}

impl Worker {
    /// A worker for the step of this name; `drain` gets what it gives.
    ///
    /// # Errors
    ///
    /// If there is no such step, the driver is of another version, or the policy does not run on a
    /// cluster.
    pub fn new(name: &str, config: &Config, context: Context, drain: Drain) -> Result<Self, Error> {
        check_version(&context.version)?;
        check_policy(config)?;
        Ok(Self {
            chunks: context.chunks.clone().map(ChunkReader::new),
            step: step(name, config, context)?,
            part: None,
            sink: Sink::new(drain),
        })
    }

    /// Takes the next message; those of a part must come together, by kind and sequence number.
    ///
    /// # Errors
    ///
    /// If the message is not what a step has written.
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
        "runs" => Box::new(runs::Runs::new(config, context)),
        "live" => candidates::live(config, context),
        "candidates" => candidates::candidates(config, context)?,
        "groups" => Box::new(groups::Groups::new(context)),
        "fetch" => Box::new(verify::Fetch::new(config, context)),
        "verify" => Box::new(verify::Verify::new(config, context)?),
        "edges" => Box::new(components::Edges::new(context)),
        "whole" => components::whole(context),
        "large" => components::large_star(context),
        "small" => components::small_star(context),
        "attach" => Box::new(stars::Attach::new(context)),
        "stars" => Box::new(stars::Stars::new(context)),
        "decide" => Box::new(stars::Decide::new(context)),
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

/// Refuses to work with a driver of another version.
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

/// The settings that shape the result, by name.
#[must_use]
pub fn settings(config: &Config) -> Value {
    config.settings()
}

/// Refuses policies whose stages have no steps here.
///
/// # Errors
///
/// If the policy is one of these.
pub fn check_policy(config: &Config) -> Result<(), Error> {
    let criterion = config.policy.criterion;
    match criterion {
        Criterion::Content(_) | Criterion::Contained(_) | Criterion::Url => {
            Err(Error::PolicyOnCluster(criterion.name()))
        }
        _ => Ok(()),
    }
}

/// How many bytes the messages of a run have, by which the driver sizes parts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Sizes {
    /// Keys of a document.
    pub tables: u32,
    /// Bytes of what a document is compared by.
    pub sketch: usize,
    /// Bytes of a key in a message.
    pub entry: usize,
    /// Bytes of a content in a message.
    pub content: usize,
    /// Whether sketches are samples, beside which there are vectors.
    pub has_samples: bool,
}

/// The sizes of messages under these settings.
///
/// # Errors
///
/// If no keys reach the recall.
pub fn sizes(config: &Config) -> Result<Sizes, Error> {
    let (tables, sketch, has_samples) = match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let tables = Bands::new(config, threshold)?.n_tables();
            (tables, size_of::<Samples>(), true)
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
    })
}

/// The names and types of the rows that `documents`, `list` and `kept` give.
#[must_use]
pub fn schemas() -> [(&'static str, arrow_schema::Schema); 3] {
    [
        ("documents", crate::stage::tables::document_schema()),
        ("pairs", crate::stage::tables::pair_schema()),
        ("kept", kept::schema()),
    ]
}
