//! Pages that wait at their hosts to be visited again.

use super::Frontier;
use super::queue::{QueueEntry, Tag};
use crate::journal::{HostId, Place, Queued};

impl Frontier {
    /// Queues a page at its host to be visited again.
    pub(crate) fn push_again(&mut self, queued: &Queued<'_>, tag: Tag, place: Place) {
        self.begin_again(queued.host);
        let entry = QueueEntry::new(tag, place, queued.weight, queued.class);
        match self.hosts.bring(queued.host) {
            true => self.hosts[queued.host as usize].push_again(entry),
            false => self.hosts.arriving(queued.host).again.push(entry),
        }
        self.n_queued += 1;
    }

    /// Whether the site of a host may get further new pages.
    pub(crate) fn admits_pages(&self, id: HostId) -> bool {
        let site = &self.sites[self.hosts.site(id) as usize];
        u64::from(site.n_pages) < self.budget.max_pages
    }

    /// Records that a page of a host is queued to be visited again.
    pub(crate) fn begin_again(&mut self, host: HostId) {
        *self.revisited.entry(host).or_default() += 1;
    }

    /// Records that a page is no longer queued to be visited again.
    pub(crate) fn end_again(&mut self, host: HostId) {
        if let Some(n) = self.revisited.get_mut(&host) {
            *n -= 1;
            if *n == 0 {
                self.revisited.remove(&host);
            }
        }
    }
}
