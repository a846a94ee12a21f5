//! Pairs that share a key and pass the test of their sketches.

use std::collections::{BTreeMap, BTreeSet};

use arose::rule::Criterion;
use bytemuck::Pod;
use serde_json::json;

use super::chunks::ChunkReader;
use super::groups::Judge;
use super::runs::{Live, hash};
use super::wire::{Cursor, Message, Sink};
use super::{Context, Step, groups, kind};
use crate::Error;
use crate::config::Config;
use crate::record::{Ordinal, PairKey, Samples, Vectors};
use crate::scheme::{Bands, Rules, Tables};
use crate::stage::candidates::{LongRun, N_HUGE, alike, meets_first_in};

/// The step that sends sketches to where they are compared.
pub(super) fn live(config: &Config, context: Context) -> Box<dyn Step> {
    let n_bytes = match config.policy.criterion {
        Criterion::Jaccard(_) => size_of::<Samples>(),
        _ => size_of::<Vectors>(),
    };
    Box::new(LiveSketches {
        n_bytes,
        huge: context.huge.iter().copied().collect(),
        context,
        sketches: Vec::new(),
        live: Vec::new(),
    })
}

struct LiveSketches {
    /// Bytes of a sketch.
    n_bytes: usize,
    context: Context,
    huge: BTreeSet<(u32, u64)>,
    /// Those of the shard, one after the other.
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
            if self.huge.contains(&(live.table, live.key)) {
                n_huge += 1;
                if n_huge > N_HUGE {
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
            out.push(kind::MEMBER, to, live.doc.into(), &pieces);
        }
        // No message holds documents of two shards: those of a third may lie between them, and
        // long runs are taken by ordinal.
        out.finish();
        Ok(())
    }
}

/// Documents of a run whose pairs are judged together, if they have pairs enough.
const GROUP_DOCS: usize = 6;

/// The step that compares sketches.
pub(super) fn candidates(config: &Config, context: Context) -> Result<Box<dyn Step>, Error> {
    Ok(match config.policy.criterion {
        Criterion::Jaccard(threshold) => {
            Box::new(Compare::new(Bands::new(config, threshold)?, context))
        }
        _ => Box::new(Compare::new(Rules::new(config)?, context)),
    })
}

struct Compare<T: Tables> {
    tables: T,
    context: Context,
    long: BTreeSet<(u32, u64)>,
    /// Long runs are taken as they come, which is by ordinal.
    long_runs: BTreeMap<(u32, u64), LongRun<T::Sketch>>,
    members: Vec<Live>,
    sketches: Sketches<T::Sketch>,
    n_tested: u64,
    n_pairs: u64,
}

/// Where the sketches of members are.
enum Sketches<S> {
    /// Here, in the order of the members.
    Here(Vec<S>),
    /// In the files of chunks.
    There(ChunkReader),
}

impl<T: Tables> Compare<T> {
    fn new(tables: T, context: Context) -> Self {
        let sketches = match &context.chunks {
            Some(folder) if !context.sketches.is_empty() => {
                Sketches::There(ChunkReader::new(folder.clone()))
            }
            _ => Sketches::Here(Vec::new()),
        };
        Self {
            tables,
            long: context.long.iter().copied().collect(),
            context,
            long_runs: BTreeMap::new(),
            members: Vec::new(),
            sketches,
            n_tested: 0,
            n_pairs: 0,
        }
    }

    fn push_long(&mut self, member: Live, sketch: T::Sketch, out: &mut Sink) {
        let Self {
            tables,
            context,
            long,
            long_runs,
            n_pairs,
            ..
        } = self;
        // Those that meet in a run that is expanded are found there.
        let n_tables = tables.n_tables();
        let is_new = |a: &T::Sketch, b: &T::Sketch| meets_first_in(tables, long, n_tables, a, b);
        let key = (member.table, member.key);
        let run = long_runs.entry(key);
        let run = run.or_insert_with(|| LongRun::new(context.huge.contains(&key)));
        for a in run.push(tables, member.doc, sketch, is_new) {
            push_pair(context, PairKey { a, b: member.doc }, out);
            *n_pairs += 1;
        }
    }

    fn push_run(&mut self, members: &[Live], sketches: &[T::Sketch], out: &mut Sink) {
        let n = members.len() as u64;
        self.n_tested += n * (n - 1) / 2;
        let Live { table, key, .. } = members[0];
        let is_new =
            |a: &T::Sketch, b: &T::Sketch| meets_first_in(&self.tables, &self.long, table, a, b);
        let pairs = alike(&self.tables, sketches, is_new);
        self.n_pairs += pairs.len() as u64;
        let pairs = pairs.into_iter().map(|(i, j)| PairKey {
            a: members[i].doc,
            b: members[j].doc,
        });
        if members.len() >= GROUP_DOCS && pairs.len() >= members.len() {
            let group = hash(table, key);
            let judged: Vec<Judge> = pairs.map(|pair| Judge { group, pair }).collect();
            let (part, seq) = (self.context.part_of(group), judged[0].pair.b.into());
            out.push(kind::JUDGE, part, seq, &[bytemuck::cast_slice(&judged)]);
        } else {
            pairs.for_each(|pair| push_pair(&self.context, pair, out));
        }
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

fn push_pair(context: &Context, pair: PairKey, out: &mut Sink) {
    let part = groups::part_of(context, pair);
    let seq = pair.b.into();
    out.push(kind::PAIR, part, seq, &[bytemuck::bytes_of(&pair)]);
}

impl<T: Tables + Send> Step for Compare<T> {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let mut cursor = Cursor(&message.bytes);
        while !cursor.is_empty() {
            let member: Live = cursor.record()?;
            let is_long = self.long.contains(&(member.table, member.key));
            let taken = match &mut self.sketches {
                Sketches::Here(_) => Some(cursor.record()?),
                Sketches::There(chunks) if is_long => {
                    Some(sketch(chunks, &self.context, member.doc)?)
                }
                Sketches::There(_) => None,
            };
            match taken {
                Some(sketch) if is_long => self.push_long(member, sketch, out),
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
        for run in order.chunk_by(|a, b| key(a) == key(b)) {
            let own: Vec<Live> = run.iter().map(|&i| members[i]).collect();
            let sketches: Vec<T::Sketch> = match &mut self.sketches {
                Sketches::Here(_) => run.iter().map(|&i| here[i]).collect(),
                Sketches::There(chunks) => {
                    let docs = own.iter().map(|member| member.doc);
                    let sketches = docs.map(|doc| sketch(chunks, &self.context, doc));
                    sketches.collect::<Result<_, Error>>()?
                }
            };
            self.push_run(&own, &sketches, out);
        }
        let long_runs = std::mem::take(&mut self.long_runs);
        self.n_tested += long_runs.values().map(|run| run.n_tested).sum::<u64>();
        out.note(&json!({
            "tested": std::mem::take(&mut self.n_tested),
            "pairs": std::mem::take(&mut self.n_pairs),
        }));
        Ok(())
    }
}
