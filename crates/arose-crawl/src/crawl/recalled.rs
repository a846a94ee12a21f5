//! Queues deferred URLs again: wanted ones, those of suspended rules, and all of them for an audit.

use super::*;
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::frontier::{RECALLED, Tag};
use crate::journal::Event;

/// Maximum number of hosts per turn whose deferred URLs are queued again.
const MAX_RECALLED: usize = 256;

impl Crawl {
    /// Queues a wanted URL again if it was deferred.
    pub(super) fn recall_one(&mut self, fingerprint: Fingerprint) {
        let Some(id) = self.frontier.find(fingerprint.host) else {
            return;
        };
        if !self.dust.deferred.hosts.contains_key(&id) {
            return;
        }
        let tag = Tag::of(fingerprint.rest);
        let host = &mut self.frontier.hosts[id as usize];
        let found = host.deferred.iter().find(|(_, (other, _))| *other == tag);
        let Some(place) = found.map(|(&place, _)| place) else {
            return;
        };
        if let Some(turn) = host.remove(place) {
            host.put_back(turn);
        }
        self.note_recalled(id, &[place], 0);
    }

    /// Records that deferred URLs are queued again.
    fn note_recalled(&mut self, id: HostId, places: &[Place], n_tries: u8) {
        for &place in places {
            self.journal.push(Event::Tried {
                host: id,
                place,
                n_tries,
            });
        }
        let host = &self.frontier.hosts[id as usize];
        self.dust.deferred.set(id, host);
        let n = places.len() as u64;
        self.counters.add(Counter::RecalledUrls, n);
        self.frontier.n_queued += n;
        self.frontier.advance(id);
    }

    /// Queues all URLs again that are deferred at a host.
    pub(super) fn recall_host(&mut self, id: HostId) {
        let places = self.frontier.hosts[id as usize].recall();
        self.note_recalled(id, &places, RECALLED);
    }

    /// Continues with hosts whose deferred URLs are to be queued again. Those that are not in
    /// memory are handled when they are.
    pub(super) fn recall_some(&mut self) {
        for _ in 0..MAX_RECALLED {
            if self.frontier.hosts.is_behind() {
                break;
            }
            let Some(id) = self.dust.recalling.pop() else {
                break;
            };
            match self.frontier.hosts.bring(id) {
                true => self.recall_host(id),
                false => self.frontier.hosts.arriving(id).recalls = true,
            }
        }
    }

    /// Queues all deferred URLs again if rules are off.
    pub(super) fn recall_if_off(&mut self) -> Result<(), Error> {
        if self.dust.learner.is_none() {
            for id in self.dust.deferred.hosts.keys().copied().collect::<Vec<_>>() {
                self.recall_host(id);
                self.frontier.hosts.shelve(2)?;
            }
        }
        Ok(())
    }

    /// Queues all deferred URLs once, if nothing else is left and the settings require it. Returns
    /// whether there were any.
    pub(super) fn audit_rest(&mut self) -> bool {
        let is_asked = self.settings().rules.audit_all && !self.dust.audits_all;
        if !is_asked || self.dust.deferred.n() == 0 {
            return false;
        }
        self.dust.audits_all = true;
        let hosts = self.dust.deferred.hosts.keys().rev();
        self.dust.recalling.extend(hosts);
        true
    }
}
