//! The thread that merges sorted runs in the background.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::file::{Content, sync_folder};
use super::folder::{Fresh, discard};
use super::manifest::Part;
use super::merge::{merge, pick};
use super::{Error, Shared};

/// Number of sorted runs at which writers wait for the thread to catch up.
const MAX_RUNS: usize = 40;

/// The state shared with the thread.
#[derive(Debug, Default)]
pub(super) struct Merger {
    signal: Mutex<Signal>,
    changed: Condvar,
    /// Set when the index is closed; a merge in progress then ends early.
    is_stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct Signal {
    /// Whether sorted runs have been added since the thread last looked.
    is_wanted: bool,
    is_busy: bool,
    /// The error of the last merge.
    failure: Option<Error>,
}

impl Merger {
    /// Tells the thread to look for sorted runs to merge.
    pub(super) fn wake(&self) {
        self.update(|signal| signal.is_wanted = true);
    }

    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.update(|_| ());
    }

    /// Waits until nothing is left to merge, or merging failed.
    pub(super) fn wait_until_idle(&self) -> Result<(), Error> {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let is_at_work = |signal: &mut Signal| signal.is_wanted || signal.is_busy;
        let mut signal = self
            .changed
            .wait_while(signal, is_at_work)
            .map_err(|_| Error::Broken)?;
        signal.failure.take().map_or(Ok(()), Err)
    }

    /// Waits while there are too many sorted runs and the thread is merging them.
    pub(super) fn wait_for_room(
        &self,
        n_runs: impl Fn() -> Result<usize, Error>,
    ) -> Result<(), Error> {
        while n_runs()? > MAX_RUNS {
            let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
            if !(signal.is_wanted || signal.is_busy) {
                break;
            }
            drop(self.changed.wait(signal).map_err(|_| Error::Broken)?);
        }
        Ok(())
    }

    fn update(&self, change: impl FnOnce(&mut Signal)) {
        let mut signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut signal);
        self.changed.notify_all();
    }

    /// Waits for a merge to do. Returns false when the index is closed.
    fn wait_for_work(&self) -> bool {
        let signal = self.signal.lock().unwrap_or_else(PoisonError::into_inner);
        let has_nothing = |signal: &mut Signal| !signal.is_wanted && !self.is_stopped();
        let waited = self.changed.wait_while(signal, has_nothing);
        let mut signal = waited.unwrap_or_else(PoisonError::into_inner);
        signal.is_wanted = false;
        signal.is_busy = true;
        !self.is_stopped()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// Starts the thread.
pub(super) fn start(shared: Arc<Shared>) -> Result<JoinHandle<()>, Error> {
    let folder = shared.folder.clone();
    let thread = Builder::new().name("arose index merge".to_owned());
    let thread = thread.spawn(move || {
        let merger = &shared.merger;
        while merger.wait_for_work() {
            let failure = merge_all(&shared).err();
            merger.update(|signal| {
                signal.is_busy = false;
                signal.failure = failure;
            });
        }
        merger.update(|signal| signal.is_busy = false);
    });
    thread.map_err(Error::io("start a thread for", &folder))
}

fn merge_all(shared: &Shared) -> Result<(), Error> {
    while !shared.merger.is_stopped() && merge_next(shared)? {
        shared.merger.update(|_| ());
    }
    Ok(())
}

/// Merges the sorted runs that are due. Returns false if none are.
fn merge_next(shared: &Shared) -> Result<bool, Error> {
    let runs = {
        let state = shared.read()?;
        let runs = state.runs.iter();
        let (n_rows, n_entries): (Vec<u64>, Vec<u64>) = runs
            .map(|run| (u64::from(run.n_rows()), u64::from(run.n_entries())))
            .unzip();
        match pick(&n_rows, &n_entries, shared.options.recent_docs.get().into()) {
            Some(range) => state.runs[range].to_vec(),
            None => return Ok(false),
        }
    };
    let mut fresh = Fresh::new(&shared.folder);
    let number = shared.manifest()?.take_number();
    let path = fresh.path(Content::Run, number);
    let Some(mut merged) = merge(&runs, &path, number, || shared.merger.is_stopped())? else {
        return Ok(false);
    };

    let allowance = shared.read()?.allowance.clone();
    merged.hold(&allowance)?;
    let mut manifest = shared.manifest()?;
    let parts = manifest.runs.iter().map(|part| part.number);
    let Some(start) = parts
        .into_iter()
        .position(|number| number == runs[0].number)
    else {
        // The index was compacted meanwhile and these sorted runs no longer exist.
        return Ok(true);
    };
    let range = start..start + runs.len();
    let mut next = manifest.clone();
    let check = merged.check();
    next.runs.splice(range.clone(), [Part { number, check }]);
    next.write(&shared.folder)?;
    fresh.keep(&next);
    shared.change()?.runs.splice(range, [Arc::new(merged)]);
    *manifest = next;
    // Files of the previous manifest remain until that manifest has been replaced on disk.
    sync_folder(&shared.folder)?;
    for run in runs {
        discard(&Content::Run.path(&shared.folder, run.number));
    }
    Ok(true)
}
