//! What is to be done with a host that is being read into memory.

use super::Choice;
use super::host::{Host, RobotsJob};
use super::queue::{QueueEntry, Tag};
use crate::order::{Gift, Level};

/// What is to be done with a host when it is in memory.
#[derive(Debug, Default)]
pub(crate) struct Arriving {
    /// URLs to be queued, and whether they go last.
    pub(super) queued: Vec<(QueueEntry, bool)>,
    /// Pages to be visited again.
    pub(super) again: Vec<QueueEntry>,
    /// robots.txt files to be fetched there.
    pub(super) jobs: Vec<RobotsJob>,
    /// Seeds that are known and may be queued there, with their numbers.
    pub(crate) lifts: Vec<(Tag, u32)>,
    /// Gifts of links to URLs that may be queued there, by the second halves of their fingerprints.
    pub(crate) gifts: Vec<(u64, Gift)>,
    /// New masses of URLs that may be queued there, likewise.
    pub(crate) masses: Vec<(u64, Level)>,
    /// It was taken off the workbench.
    pub(crate) taken: Option<Choice>,
    /// Its IP address is needed.
    pub(crate) resolves: bool,
    /// Its lane may have changed.
    pub(crate) moves: bool,
    /// It has something to fetch.
    pub(crate) advances: bool,
    /// Its deferred URLs are to be queued again.
    pub(crate) recalls: bool,
}

impl Arriving {
    /// Adds what is to be fetched to the host.
    pub(super) fn fill(&mut self, host: &mut Host) {
        for (entry, is_last) in self.queued.drain(..) {
            host.push(entry, is_last);
        }
        for entry in self.again.drain(..) {
            host.push_again(entry);
        }
        host.jobs.extend(self.jobs.drain(..));
    }
}
