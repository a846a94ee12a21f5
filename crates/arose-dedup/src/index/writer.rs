//! The writer of an open index: its log, and its filter of names.

use super::log::Log;
use super::screen::Screen;
use super::state::{Prepared, State};
use crate::disk::Lock;

/// The state that belongs to the one writer of an index.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) log: Log,
    /// Number of removed rows in the file that the manifest lists.
    pub(super) n_dead_written: u64,
    pub(super) keys: Vec<u64>,
    /// Number of documents inserted since the index was opened.
    pub(super) n_inserted: usize,
    /// Created when there are many documents to insert.
    pub(super) names: Option<Screen>,
    /// Locked as long as the index is open.
    pub(super) _lock: Lock,
}

impl Writer {
    /// Builds a filter of names, or a larger one, if this many more documents make it worthwhile.
    /// Building it takes as long as about a hundred thousand insertions into an index of ten
    /// million.
    pub(super) fn screen_names(&mut self, state: &State, n_more: usize) {
        let n_held = state.recent.next_row() as usize;
        self.n_inserted += n_more;
        let has_room = |screen: &Screen| screen.has_room_for(n_more);
        if self.n_inserted > n_held / 64 && !self.names.as_ref().is_some_and(has_room) {
            self.names = Some(Screen::of(state));
        }
    }

    /// Adds a document that is already in the log.
    pub(super) fn insert(&mut self, state: &mut State, document: &Prepared<'_>) {
        state.insert(document.name, &document.sketch, &mut self.keys);
        state.count(&document.counted);
        if let Some(names) = &mut self.names {
            names.insert(state.plan.name_key(document.name));
        }
    }
}
