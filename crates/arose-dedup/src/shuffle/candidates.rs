//! Pairs that share a key and whose sketches pass a test.

use std::collections::{BTreeMap, BTreeSet};

use arose::rule::Criterion;
use bytemuck::Pod;
use serde_json::json;

use super::chunks::ChunkReader;
use super::runs::{Live, hash};
use super::wire::{Cursor, Message, Sink};
use super::{Context, Step, groups, kind};
use crate::Error;
use crate::config::Config;
use crate::marks::{MarkTables, Marks};
use crate::record::{CandidateKey, Ordinal, Samples, Vectors};
use crate::scheme::{Bands, KeyTables, Rules};
use crate::stage::bucket::{Bucket, N_HUGE, Tally, is_huge};

/// The step that sends sketches to the parts that compare them.
pub(super) fn live(config: &Config, context: Context) -> Box<dyn Step> {
    let n_bytes = match config.policy.criterion {
        Criterion::Jaccard(_) => size_of::<Samples>(),
        Criterion::Content(_) => size_of::<Marks>(),
        _ => size_of::<Vectors>(),
    };
    let cap = config.cap.get();
    let huge = context.long.iter().filter(|(_, _, n, _)| is_huge(*n, cap));
    let long = context.long.iter();
    Box::new(LiveSketches {
        n_bytes,
        long: long.map(|&(table, key, ..)| (table, key)).collect(),
        huge: huge
            .map(|&(table, key, _, last)| ((table, key), last))
            .collect(),
        context,
        sketches: Vec::new(),
        live: Vec::new(),
    })
}

struct LiveSketches {
    /// Bytes of a sketch.
    n_bytes: usize,
    context: Context,
    /// Large buckets.
    long: BTreeSet<(u32, u64)>,
    /// Huge buckets, and the document up to which all documents take part in them.
    huge: BTreeMap<(u32, u64), Ordinal>,
    /// The sketches of the shard, one after the other.
    sketches: Vec<u8>,
    live: Vec<Live>,
}

impl Step for LiveSketches {
    fn take(&mut self, message: &Message<'_>, _: &mut Sink) -> Result<(), Error> {
        if message.kind == kind::LIVE {
            self.live.extend(message.records::<Live>()?);
        } else {
            self.sketches.extend_from_slice(&message.bytes);
        }
        Ok(())
    }

    fn end(&mut self, part: i64, out: &mut Sink) -> Result<(), Error> {
        let sketches = std::mem::take(&mut self.sketches);
        let mut live = std::mem::take(&mut self.live);
        if live.is_empty() {
            return Ok(());
        }
        let start = self.context.start_of(part)?;
        live.sort_unstable_by_key(|live| (live.doc, live.table));
        let (mut last, mut n_huge) = (None, 0);
        for live in live {
            if last.replace(live.doc) != Some(live.doc) {
                n_huge = 0;
            }
            if let Some(last) = self.huge.get(&(live.table, live.key)) {
                n_huge += 1;
                if n_huge > N_HUGE && live.doc > *last {
                    continue;
                }
            }
            let sketch = match self.context.sketches.is_empty() {
                true => {
                    let at = (live.doc - start) as usize * self.n_bytes;
                    Cursor(sketches.get(at..).unwrap_or_default()).bytes(self.n_bytes)?
                }
                false => &[],
            };
            let to = self.context.part_of(hash(live.table, live.key));
            let pieces = [bytemuck::bytes_of(&live), sketch];
            let kind = match self.long.contains(&(live.table, live.key)) {
                true => kind::LONG,
                false => kind::MEMBER,
            };
            out.push(kind, to, live.doc.into(), &pieces)?;
        }
        // No message about long runs contains documents of two shards. Documents of a third shard
        // may be between them, and long runs are processed by ordinal.
        out.close_kind(kind::LONG)
    }
}

/// The step that compares sketches.
pub(super) fn candidates(config: &Config, context: Context) -> Result<Box<dyn Step>, Error> {
    Ok(match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            let tables = Bands::new(config, threshold)?;
            Box::new(Compare::new(tables, config.cap.get(), context))
        }
        Criterion::Content(_) => {
            let tables = MarkTables::new(config)?;
            Box::new(Compare::new(tables, config.cap.get(), context))
        }
        _ => Box::new(Compare::new(Rules::new(config)?, config.cap.get(), context)),
    })
}

struct Compare<T: KeyTables> {
    tables: T,
    cap: usize,
    context: Context,
    /// Documents of large buckets.
    long: BTreeMap<(u32, u64), usize>,
    /// Large buckets are processed as they arrive, which is by ordinal.
    long_buckets: BTreeMap<(u32, u64), Bucket<T::Sketch>>,
    members: Vec<Live>,
    sketches: Sketches<T::Sketch>,
    /// Candidates of the last documents.
    pairs: Vec<CandidateKey>,
    n_pairs: u64,
}

/// The source of the sketches of members.
enum Sketches<S> {
    /// In memory, in the order of the members.
    Here(Vec<S>),
    /// In the files of chunks.
    There(ChunkReader),
}

impl<T: KeyTables> Compare<T> {
    fn new(tables: T, cap: usize, context: Context) -> Self {
        let sketches = match &context.chunks {
            Some(folder) if !context.sketches.is_empty() => {
                Sketches::There(ChunkReader::new(folder.clone()))
            }
            _ => Sketches::Here(Vec::new()),
        };
        let long = context.long.iter();
        Self {
            tables,
            cap,
            long: long.map(|&(table, key, n, _)| ((table, key), n)).collect(),
            context,
            long_buckets: BTreeMap::new(),
            members: Vec::new(),
            sketches,
            pairs: Vec::new(),
            n_pairs: 0,
        }
    }

    /// Sends the candidates to the parts that verify them.
    fn push_pairs(&mut self, out: &mut Sink) -> Result<(), Error> {
        self.n_pairs += self.pairs.len() as u64;
        let mut pairs = self.pairs.drain(..);
        pairs.try_for_each(|pair| groups::push_pair(&self.context, pair, out))
    }

    fn push_long(&mut self, member: Live, sketch: T::Sketch, out: &mut Sink) -> Result<(), Error> {
        let key = (member.table, member.key);
        let n = self.long.get(&key).copied().unwrap_or(0);
        let bucket = self.long_buckets.entry(key);
        let bucket = bucket.or_insert_with(|| Bucket::new(n, self.cap));
        bucket.push(&self.tables, member.doc, sketch, &mut self.pairs);
        self.push_pairs(out)
    }
}

/// Reads the sketch of a document.
fn sketch<S: Pod>(chunks: &mut ChunkReader, context: &Context, doc: Ordinal) -> Result<S, Error> {
    let after = context
        .sketches
        .partition_point(|(first, ..)| *first <= doc);
    let (first, shard, start) = context.sketches[after.saturating_sub(1)];
    let at = start + u64::from(doc - first) * size_of::<S>() as u64;
    let mut sketch = S::zeroed();
    chunks.read(shard, at, bytemuck::bytes_of_mut(&mut sketch))?;
    Ok(sketch)
}

impl<T: KeyTables + Send> Step for Compare<T> {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let mut cursor = Cursor(&message.bytes);
        while !cursor.is_empty() {
            let member: Live = cursor.record()?;
            let is_long = message.kind == kind::LONG;
            let taken = match &mut self.sketches {
                Sketches::Here(_) => Some(cursor.record()?),
                Sketches::There(chunks) if is_long => {
                    Some(sketch(chunks, &self.context, member.doc)?)
                }
                Sketches::There(_) => None,
            };
            match taken {
                Some(sketch) if is_long => self.push_long(member, sketch, out)?,
                taken => {
                    self.members.push(member);
                    if let Sketches::Here(sketches) = &mut self.sketches {
                        sketches.extend(taken);
                    }
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let members = std::mem::take(&mut self.members);
        let here = match &mut self.sketches {
            Sketches::Here(sketches) => std::mem::take(sketches),
            Sketches::There(_) => Vec::new(),
        };
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_unstable_by_key(|&i| (members[i].table, members[i].key, members[i].doc));
        let key = |i: &usize| (members[*i].table, members[*i].key);
        let mut bucket = Bucket::new(0, self.cap);
        for run in order.chunk_by(|a, b| key(a) == key(b)) {
            bucket.begin(run.len());
            for &i in run {
                let doc = members[i].doc;
                let sketch = match &mut self.sketches {
                    Sketches::Here(_) => here[i],
                    Sketches::There(chunks) => sketch(chunks, &self.context, doc)?,
                };
                bucket.push(&self.tables, doc, sketch, &mut self.pairs);
                // A run of `n` documents may have `n` squared candidates.
                self.push_pairs(out)?;
            }
        }
        let mut tally = bucket.finish();
        for (_, bucket) in std::mem::take(&mut self.long_buckets) {
            tally.add(&bucket.finish());
        }
        self.note(&tally, out)
    }
}

impl<T: KeyTables> Compare<T> {
    fn note(&mut self, tally: &Tally, out: &mut Sink) -> Result<(), Error> {
        out.note(&json!({
            "tested": tally.n_tested,
            "capped": tally.n_capped,
            "max_capped": tally.largest_capped,
            "unled": tally.n_unled,
            "untested": tally.n_untested,
            "lost": tally.n_lost / self.tables.n_meetings(),
            "pairs": std::mem::take(&mut self.n_pairs),
        }))
    }
}
