//! Pairs that share a key and pass the test of their sketches.

use std::collections::{BTreeMap, BTreeSet};

use arose::mix::mix;
use arose::rule::Criterion;
use serde_json::json;

use super::runs::{Live, hash};
use super::wire::{Cursor, Message, Sink};
use super::{Context, Step, kind};
use crate::Error;
use crate::config::Config;
use crate::record::{Ordinal, PairKey, Samples, Vectors};
use crate::scheme::{Bands, Rules, Tables};
use crate::stage::candidates::{LongRun, alike, meets_first_in};

/// The step that sends sketches to where they are compared.
pub(super) fn live(config: &Config, context: Context) -> Box<dyn Step> {
    let n_bytes = match config.policy.criterion {
        Criterion::Jaccard(_) => size_of::<Samples>(),
        _ => size_of::<Vectors>(),
    };
    Box::new(LiveSketches {
        n_bytes,
        context,
        sketches: Vec::new(),
        live: Vec::new(),
    })
}

struct LiveSketches {
    /// Bytes of a sketch.
    n_bytes: usize,
    context: Context,
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
        live.sort_unstable_by_key(|live| live.doc);
        for live in live {
            let at = (live.doc - start) as usize * self.n_bytes;
            let sketch = Cursor(sketches.get(at..).unwrap_or_default()).bytes(self.n_bytes)?;
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
    sketches: Vec<T::Sketch>,
    n_tested: u64,
}

impl<T: Tables> Compare<T> {
    fn new(tables: T, context: Context) -> Self {
        Self {
            tables,
            long: context.long.iter().copied().collect(),
            context,
            long_runs: BTreeMap::new(),
            members: Vec::new(),
            sketches: Vec::new(),
            n_tested: 0,
        }
    }

    fn push_long(&mut self, member: Live, sketch: T::Sketch, out: &mut Sink) {
        let Self {
            tables,
            context,
            long,
            long_runs,
            ..
        } = self;
        let is_new =
            |a: &T::Sketch, b: &T::Sketch| meets_first_in(tables, long, member.table, a, b);
        let run = long_runs.entry((member.table, member.key)).or_default();
        for a in run.push(tables, member.doc, sketch, is_new) {
            push_pair(context, PairKey { a, b: member.doc }, out);
        }
    }
}

fn push_pair(context: &Context, pair: PairKey, out: &mut Sink) {
    let part = context.part_of(mix(pair.b.into()));
    out.push(
        kind::PAIR,
        part,
        pair.b.into(),
        &[bytemuck::bytes_of(&pair)],
    );
}

impl<T: Tables + Send> Step for Compare<T> {
    fn take(&mut self, message: &Message<'_>, out: &mut Sink) -> Result<(), Error> {
        let mut cursor = Cursor(&message.bytes);
        while !cursor.is_empty() {
            let member: Live = cursor.record()?;
            let sketch: T::Sketch = cursor.record()?;
            if self.long.contains(&(member.table, member.key)) {
                self.push_long(member, sketch, out);
            } else {
                self.members.push(member);
                self.sketches.push(sketch);
            }
        }
        Ok(())
    }

    fn end(&mut self, _: i64, out: &mut Sink) -> Result<(), Error> {
        let members = std::mem::take(&mut self.members);
        let sketches = std::mem::take(&mut self.sketches);
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_unstable_by_key(|&i| (members[i].table, members[i].key, members[i].doc));
        let key = |i: &usize| (members[*i].table, members[*i].key);
        for run in order.chunk_by(|a, b| key(a) == key(b)) {
            let n = run.len() as u64;
            self.n_tested += n * (n - 1) / 2;
            let table = members[run[0]].table;
            let own: Vec<T::Sketch> = run.iter().map(|&i| sketches[i]).collect();
            let is_new = |a: &T::Sketch, b: &T::Sketch| {
                meets_first_in(&self.tables, &self.long, table, a, b)
            };
            for (i, j) in alike(&self.tables, &own, is_new) {
                let [a, b]: [Ordinal; 2] = [i, j].map(|i| members[run[i]].doc);
                push_pair(&self.context, PairKey { a, b }, out);
            }
        }
        let long_runs = std::mem::take(&mut self.long_runs);
        self.n_tested += long_runs.values().map(|run| run.n_tested).sum::<u64>();
        out.note(&json!({ "tested": std::mem::take(&mut self.n_tested) }));
        Ok(())
    }
}
