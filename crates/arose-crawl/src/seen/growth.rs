//! Turns a full buffer into a sorted run, here or on a thread.
//!
//! A full buffer is *frozen*: lookups still find its keys, and new ones go into another. The frozen
//! keys and the newest sorted runs become one sorted run, which replaces them in the commit after
//! it is written. Until then nothing on the disk has changed, except for a file that is not in the
//! manifest.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::log::KeyLog;
use super::manifest::{self, Manifest};
use super::merge::merge;
use super::record::KeyRecord;
use super::run::Run;
use super::{KeyHash, Keys, Merges, Seen, words};
use crate::error::Error;
use crate::task::Task;

/// Maximum number of buffers that are filled while sorted runs are merged.
const MOST_BUFFERS: usize = 4;

/// A merge in progress.
#[derive(Debug, Default)]
pub(super) struct Growth {
    frozen: Option<Frozen>,
    /// Reads a sorted run into memory.
    holding: Option<Task<()>>,
}

#[derive(Debug)]
struct Frozen {
    keys: Arc<Keys>,
    /// The number of newest sorted runs that are merged, and the number of the new one.
    n_merged: usize,
    number: u64,
    /// The last mark of the keys.
    mark: u64,
    strings_end: u64,
    task: Option<Task<Option<Run>>>,
    run: Option<Arc<Run>>,
}

impl Growth {
    /// Returns the frozen keys.
    pub(super) fn keys(&self) -> Option<Arc<Keys>> {
        self.frozen.as_ref().map(|frozen| Arc::clone(&frozen.keys))
    }

    pub(super) fn n_keys(&self) -> u64 {
        self.frozen
            .as_ref()
            .map_or(0, |frozen| frozen.keys.len() as u64)
    }
}

impl Seen {
    /// Whether there are enough committed keys for a sorted run.
    pub(super) fn is_buffer_full(&self) -> bool {
        self.buffer.len() - self.uncommitted.len() >= self.config.buffer_keys.max(1)
    }

    /// Whether a sorted run is written and ready to be installed. Waits for one if there are too
    /// many keys in memory.
    pub(super) fn has_merged(&mut self) -> Result<bool, Error> {
        let is_crowded = self.buffer.len() >= MOST_BUFFERS * self.config.buffer_keys.max(1);
        let Some(frozen) = &mut self.growth.frozen else {
            return Ok(false);
        };
        let is_ready = frozen.task.as_ref().is_some_and(Task::is_finished);
        if (is_ready || is_crowded)
            && let Some(task) = frozen.task.take()
        {
            match task.join() {
                Ok(run) => frozen.run = run.map(Arc::new),
                Err(error) => {
                    self.thaw();
                    return Err(error);
                }
            }
        }
        Ok(self.has_run())
    }

    fn has_run(&self) -> bool {
        let frozen = self.growth.frozen.as_ref();
        frozen.is_some_and(|frozen| frozen.run.is_some())
    }

    /// Puts frozen keys back after a failed merge.
    fn thaw(&mut self) {
        if let Some(frozen) = self.growth.frozen.take() {
            let keys = frozen.keys.iter();
            self.buffer.extend(keys.map(|(&key, &place)| (key, place)));
        }
    }

    /// Installs a sorted run that is ready, and starts the next one if necessary.
    pub(super) fn grow(&mut self) -> Result<(), Error> {
        if let Some(task) = self.growth.holding.take_if(|task| task.is_finished()) {
            task.join()?;
        }
        if self.has_run() {
            self.install()?;
        }
        if self.growth.frozen.is_none() && self.is_buffer_full() {
            self.freeze()?;
        }
        match self.has_run() {
            true => self.install(),
            false => Ok(()),
        }
    }

    /// Freezes the committed keys of the buffer, and merges them.
    fn freeze(&mut self) -> Result<(), Error> {
        let mut rest = Keys::with_hasher(KeyHash::new());
        rest.extend(
            self.uncommitted
                .iter()
                .map(|record| (words(record.key), record.place)),
        );
        let mut keys = std::mem::replace(&mut self.buffer, rest);
        for record in &self.uncommitted {
            keys.remove(&words(record.key));
        }
        let n_merged = self.n_runs_to_merge(keys.len() as u64);
        let keys = Arc::new(keys);
        let number = self.manifest.next_number();
        let mut frozen = Frozen {
            keys: Arc::clone(&keys),
            n_merged,
            number,
            mark: self.mark,
            strings_end: self.strings_end(),
            task: None,
            run: None,
        };
        let runs = self.runs[self.runs.len() - n_merged..].to_vec();
        let (path, width) = (manifest::run_path(&self.folder, number), self.width);
        let work = move |stop: &AtomicBool| merge(&runs, sorted(&keys), &path, width, stop);
        match self.config.merges {
            Merges::Here => {
                self.growth.frozen = Some(frozen);
                let run = work(&AtomicBool::new(false)).inspect_err(|_| self.thaw())?;
                if let Some(frozen) = &mut self.growth.frozen {
                    frozen.run = run.map(Arc::new);
                }
            }
            Merges::Aside => {
                frozen.task = Some(Task::start(work));
                self.growth.frozen = Some(frozen);
            }
        }
        Ok(())
    }

    /// Replaces sorted runs by their merged one. The manifest decides: before it is replaced,
    /// nothing has changed; after it, everything has. The log starts over, with the keys that were
    /// committed meanwhile.
    fn install(&mut self) -> Result<(), Error> {
        let Some(frozen) = &self.growth.frozen else {
            return Ok(());
        };
        let Some(run) = frozen.run.clone() else {
            return Ok(());
        };
        if let Some(strings) = &self.strings {
            strings.sync()?;
        }
        let first_merged = self.runs.len() - frozen.n_merged;
        let manifest = Manifest {
            log: frozen.number + 1,
            runs: [&self.manifest.runs[..first_merged], &[frozen.number]].concat(),
            strings_end: frozen.strings_end,
            mark: frozen.mark,
        };
        let mut log = KeyLog::create(&manifest.log_path(&self.folder), self.width)?;
        let n_uncommitted = self.uncommitted.len();
        if self.buffer.len() > n_uncommitted {
            let mut keys = self.buffer.clone();
            for record in &self.uncommitted {
                keys.remove(&words(record.key));
            }
            log.append(&sorted(&keys), self.strings_end(), self.mark)?;
            log.sync()?;
        }
        manifest.write(&self.folder, self.width)?;
        self.runs.truncate(first_merged);
        self.runs.push(run);
        self.log = log;
        self.manifest = manifest;
        self.growth.frozen = None;
        manifest::sync(&self.folder)?;
        self.manifest.remove_others(&self.folder)?;
        self.hold_last()
    }

    /// Loads sorted runs into memory, the oldest and largest first, as far as they fit.
    pub(super) fn hold_runs(&self) -> Result<(), Error> {
        let held = self.held_runs();
        held.into_iter().try_for_each(|at| self.runs[at].hold())
    }

    /// Loads the newest sorted run into memory, if it fits.
    fn hold_last(&mut self) -> Result<(), Error> {
        if self.held_runs().last() != Some(&(self.runs.len() - 1)) {
            return Ok(());
        }
        let Some(run) = self.runs.last().map(Arc::clone) else {
            return Ok(());
        };
        match self.config.merges {
            Merges::Here => run.hold(),
            Merges::Aside => {
                // If it is replaced meanwhile, that does not matter.
                self.growth.holding = Some(Task::start(move |_| run.hold()));
                Ok(())
            }
        }
    }

    /// Returns the sorted runs that fit into the memory limit.
    fn held_runs(&self) -> Vec<usize> {
        let mut n_left = self.config.held_bytes;
        let fits = |&at: &usize| match n_left.checked_sub(self.runs[at].n_block_bytes()) {
            Some(n) => {
                n_left = n;
                true
            }
            None => false,
        };
        (0..self.runs.len()).filter(fits).collect()
    }

    /// Returns how many sorted runs are less than twice as large as all newer keys.
    fn n_runs_to_merge(&self, n_keys: u64) -> usize {
        let mut n_newer = n_keys;
        let small = self.runs.iter().rev().take_while(|run| {
            let is_small = run.n_records < 2 * n_newer;
            n_newer += run.n_records;
            is_small
        });
        small.count()
    }
}

#[expect(clippy::iter_over_hash_type, reason = "sorted before it is used")]
fn sorted(keys: &Keys) -> Vec<KeyRecord> {
    let mut records = Vec::with_capacity(keys.len());
    for (&[host, rest], &place) in keys {
        let key = u128::from(host) << 64 | u128::from(rest);
        records.push(KeyRecord { key, place });
    }
    records.sort_unstable();
    records
}
