//! The writing side of an open index: its log, and what it knows of the names.

use super::log::Log;
use super::screen::Screen;
use super::state::{Prepared, State};
use crate::disk::Lock;

/// What the one who writes to an index has to himself.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) log: Log,
    /// Rows known to be gone by the file that the manifest names.
    pub(super) n_dead_written: u64,
    pub(super) keys: Vec<u64>,
    /// Documents inserted since it was opened.
    pub(super) n_inserted: usize,
    /// Made when there is much to insert.
    pub(super) names: Option<Screen>,
    /// Locked as long as it is open.
    pub(super) _lock: Lock,
}

impl Writer {
    /// Makes a screen of names, or a larger one, if so many more documents make it worth it: it
    /// takes as long as some hundred thousand insertions into an index of ten million.
    pub(super) fn screen_names(&mut self, state: &State, n_more: usize) {
        let n_held = state.recent.next_row() as usize;
        self.n_inserted += n_more;
        let has_room = |screen: &Screen| screen.has_room_for(n_more);
        if self.n_inserted > n_held / 64 && !self.names.as_ref().is_some_and(has_room) {
            self.names = Some(Screen::of(state));
        }
    }

    /// Adds a document that the log has.
    pub(super) fn insert(&mut self, state: &mut State, document: &Prepared<'_>) {
        state.insert(document.name, &document.sketch, &mut self.keys);
        state.count(&document.counted);
        if let Some(names) = &mut self.names {
            names.insert(state.plan.name_key(document.name));
        }
    }
}
