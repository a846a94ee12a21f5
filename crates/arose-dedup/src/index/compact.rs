//! Compaction: reclaims the space of removed documents and replaces many sorted runs by one.
//!
//! The remaining documents are rewritten in order, as if they had just been inserted. Their rows
//! are then numbered without gaps. The manifest switches from the old files to the new ones
//! atomically, so a process that dies leaves a complete index of either.

use std::sync::Arc;

use super::dead::Dead;
use super::file::{Allowance, Content};
use super::folder::{Fresh, discard};
use super::log::Log;
use super::manifest::{Manifest, Part};
use super::merge::merge;
use super::recent::Recent;
use super::records::Records;
use super::run::{MAX_ENTRIES, MAX_ROWS, Run};
use super::sketch::Sketch;
use super::{Error, Shared, Writer, sync_or_refuse};

/// Rewrites an index without recent documents.
pub(super) fn compact(shared: &Shared, writer: &mut Writer) -> Result<(), Error> {
    let mut manifest = shared.manifest()?;
    let (records, runs, dead, allowance) = {
        let state = shared.read()?;
        (
            state.records.clone(),
            state.runs.clone(),
            state.dead.clone(),
            state.allowance.clone(),
        )
    };
    if dead.len() == 0 && runs.len() <= 1 {
        return Ok(());
    }
    let mut next = manifest.clone();
    let mut fresh = Fresh::new(&shared.folder);
    let parts = if dead.len() == 0 {
        (records, runs)
    } else {
        rewrite(shared, &records, &dead, &mut next, &mut fresh)?
    };
    let (records, runs) = merge_runs(parts, &allowance, &mut next, &mut fresh)?;
    // The log lists removed rows by number, and the numbers of rows have changed.
    next.log = next.take_number();
    let log = Log::create(&fresh.path(Content::Log, next.log), next.log)?;
    next.write(&shared.folder)?;
    fresh.keep(&next);

    let mut state = shared.change()?;
    let n_rows = records.iter().map(|records| records.n_rows()).sum();
    state.recent = Recent::new(n_rows, shared.n_words);
    state.records = records;
    state.runs = runs;
    state.dead = Dead::default();
    drop(state);
    writer.log = log;
    writer.n_dead_written = 0;
    let old = std::mem::replace(&mut *manifest, next);
    sync_or_refuse(&shared.folder, writer)?;
    discard_old(shared, &old, &manifest);
    Ok(())
}

type Parts = (Vec<Arc<Records>>, Vec<Arc<Run>>);

/// Writes the remaining documents as if they were inserted now.
fn rewrite(
    shared: &Shared,
    records: &[Arc<Records>],
    dead: &Dead,
    next: &mut Manifest,
    fresh: &mut Fresh<'_>,
) -> Result<Parts, Error> {
    next.records.clear();
    next.runs.clear();
    next.dead = None;
    let (plan, allowance) = {
        let state = shared.read()?;
        (Arc::clone(&state.plan), state.allowance.clone())
    };
    let n_words = shared.n_words;
    let mut parts = (Vec::new(), Vec::new());
    let mut recent = Recent::new(0, n_words);
    let mut write = |recent: &mut Recent, next: &mut Manifest| {
        let (records, run) = recent.write(next, fresh, &allowance)?;
        parts.0.push(Arc::new(records));
        parts.1.push(Arc::new(run));
        *recent = recent.next();
        Ok(())
    };
    let mut keys = Vec::new();
    for records in records {
        let block = records.load()?;
        let rows = (records.first_row()..).take(records.n_rows() as usize);
        let mut sketch = Sketch::empty();
        for (number, _) in rows.enumerate().filter(|&(_, row)| !dead.contains(row)) {
            block.sketch_into(number, &mut sketch);
            plan.document_keys(block.name(number), &sketch, &mut keys);
            recent.push(block.name(number), &sketch, &keys);
            let is_full = recent.n_rows() >= shared.options.recent_docs.get() as usize;
            if is_full || !recent.block.has_room_for(1) {
                write(&mut recent, next)?;
            }
        }
    }
    if recent.n_rows() > 0 {
        write(&mut recent, next)?;
    }
    Ok(parts)
}

/// Merges everything into one sorted run, if the numbers of rows and entries allow it.
fn merge_runs(
    (records, mut runs): Parts,
    allowance: &Allowance,
    next: &mut Manifest,
    fresh: &mut Fresh<'_>,
) -> Result<Parts, Error> {
    let n_rows: u64 = runs.iter().map(|run| u64::from(run.n_rows())).sum();
    let n_entries: u64 = runs.iter().map(|run| u64::from(run.n_entries())).sum();
    let fits = n_rows < MAX_ROWS && n_entries <= MAX_ENTRIES;
    if runs.len() > 1 && fits {
        let number = next.take_number();
        let path = fresh.path(Content::Run, number);
        if let Some(mut merged) = merge(&runs, &path, number, || false)? {
            merged.hold(allowance)?;
            let check = merged.check();
            next.runs = vec![Part { number, check }];
            runs = vec![Arc::new(merged)];
        }
    }
    Ok((records, runs))
}

/// Removes the files that only the old manifest lists.
fn discard_old(shared: &Shared, old: &Manifest, new: &Manifest) {
    let all = [
        (Content::Log, vec![old.log]),
        (
            Content::Dead,
            old.dead.iter().map(|part| part.number).collect(),
        ),
        (
            Content::SiteCounts,
            old.counts.iter().map(|part| part.number).collect(),
        ),
        (
            Content::Records,
            old.records.iter().map(|part| part.number).collect(),
        ),
        (
            Content::Run,
            old.runs.iter().map(|part| part.number).collect(),
        ),
    ];
    for (content, numbers) in all {
        for number in numbers {
            if !new.names(content, number) {
                discard(&content.path(&shared.folder, number));
            }
        }
    }
}
