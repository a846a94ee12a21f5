//! Links to partitions of other agents.

use super::*;
use crate::cluster::partition::partition_of;

/// URLs that were sent recently, to which further links add.
pub(super) const N_RECENT: usize = 1 << 17;

/// A URL that was sent recently. What further links bring to it is sent when it is as much as what
/// was sent before, so a URL with many links is sent a few times.
#[derive(Debug)]
pub(super) struct Recent {
    key: u128,
    target: u8,
    url: SentUrl,
    /// Mass and trust that were sent.
    sent: [f32; 2],
}

impl Recent {
    /// Adds the contribution of a link; returns the URL if it is to be sent again.
    fn add(&mut self, gift: Gift) -> Option<(u8, SentUrl)> {
        self.url.mass += gift.mass;
        self.url.trust += gift.trust;
        let unsent = [self.url.mass, self.url.trust];
        let is_much = |at: usize| unsent[at] > 0.0 && unsent[at] >= self.sent[at];
        if !is_much(0) && !is_much(1) {
            return None;
        }
        let again = self.url.clone();
        self.sent = [self.sent[0] + unsent[0], self.sent[1] + unsent[1]];
        (self.url.mass, self.url.trust) = (0.0, 0.0);
        Some((self.target, again))
    }
}

impl Member {
    /// Returns where a URL is that was sent recently.
    fn recent(&mut self, fingerprint: Fingerprint) -> &mut Option<Box<Recent>> {
        let hash = fingerprint.host ^ fingerprint.rest.rotate_left(17);
        &mut self.recent[hash as usize & (N_RECENT - 1)]
    }

    /// Sends a URL to the agent of its partition.
    fn send(&mut self, from: HostId, (target, url): (u8, SentUrl)) {
        let source = self.partition(from);
        self.sent.push((source, target, url));
    }
}

impl Crawl {
    /// Sends a link away that leads to another partition.
    pub(in crate::crawl) fn send_away(&mut self, pending: &Pending) {
        let (true, Some(from)) = (self.member.is_some(), pending.from) else {
            return;
        };
        let gift = match pending.is_again {
            true => Gift::NONE,
            false => self.frontier.give_away(from, pending.gift),
        };
        let Some(member) = &mut self.member else {
            return;
        };
        let found = &pending.found;
        let key = found.fingerprint.key();
        let slot = member.recent(found.fingerprint);
        if let Some(recent) = slot.as_mut().filter(|recent| recent.key == key) {
            let again = recent.add(gift);
            again.into_iter().for_each(|url| member.send(from, url));
            return;
        }
        let url = SentUrl {
            url: found.url.as_str().to_owned(),
            found_on: pending.found_on.to_string(),
            depth: pending.depth,
            n_redirects: pending.n_redirects,
            kind: found.kind,
            class: found.class,
            is_last: pending.is_last,
            of_repeat: pending.of_repeat,
            mass: gift.mass,
            trust: gift.trust,
        };
        let target = partition_of(found.url.site());
        *slot = Some(Box::new(Recent {
            key,
            target,
            sent: [gift.mass, gift.trust],
            url: SentUrl {
                mass: 0.0,
                trust: 0.0,
                ..url.clone()
            },
        }));
        member.send(from, (target, url));
    }

    /// Whether another agent crawls a host.
    pub(in crate::crawl) fn is_away(&self, id: HostId) -> bool {
        let member = self.member.as_ref();
        member.is_some_and(|member| !member.accepts(member.partition(id)))
    }

    /// Adds the contribution of a link to a URL that was sent to another agent.
    pub(in crate::crawl) fn give_away(&mut self, from: HostId, to: Fingerprint, gift: Gift) {
        let key = to.key();
        let Some(member) = &mut self.member else {
            return;
        };
        let slot = member.recent(to);
        if let Some(recent) = slot.as_mut().filter(|recent| recent.key == key) {
            let gift = self.frontier.give_away(from, gift);
            let again = recent.add(gift);
            again.into_iter().for_each(|url| member.send(from, url));
        }
    }
}
