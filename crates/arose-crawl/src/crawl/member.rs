//! A crawl as a member of a cluster: what the loop does for its agent ([`crate::cluster`]).
//!
//! The loop crawls the partitions that its agent owns. It sends links to other partitions away,
//! queues URLs that other agents send, takes in the state of partitions that come, and finishes
//! with those that go. With every commit it tells the agent what has changed in which partition. A
//! crawl on one machine has none of this.

mod away;
mod moving;
mod twins;

use std::collections::VecDeque;

use super::*;
use crate::cluster::address::Turn;
use crate::cluster::fence::now;
use crate::cluster::link::{
    Committed, Ending, Link, LoopOrder, Opening, Outgoing, Records, Shared,
};
use crate::cluster::partition::{N_PARTITIONS, partition_of};
use crate::cluster::replay::MovedUrl;
use crate::cluster::twins::NewPage;
use crate::cluster::wire::{MAX_BATCH, MAX_BATCH_BYTES, Record, SentUrl};
use crate::content::Contents;
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::journal::{Batch, Event};

/// Orders that are carried out in one turn.
const MAX_ORDERS: usize = 16;

/// How soon a host is looked at again whose partition is about to go.
const AGAIN: Duration = Duration::from_millis(500);

/// The loop's knowledge of its cluster.
#[derive(Debug)]
pub(super) struct Member {
    link: Link,
    /// Partitions in which something may happen, and their epochs; 0 for the others.
    epochs: [u64; N_PARTITIONS],
    /// Partitions that are to go, and how far that is.
    closing: Vec<(u8, Closing)>,
    /// The partition of each host, and the epoch in which its number was told.
    hosts: Vec<(u8, u64)>,
    n_in_flight: [u32; N_PARTITIONS],
    /// Pages that were asked for, some of which are done.
    asked: Vec<(Ticket, u8)>,
    /// Links to other partitions since the last commit: from, to, what.
    sent: Vec<(u8, u8, SentUrl)>,
    n_batches: u64,
    recent: Vec<Option<Box<away::Recent>>>,
    /// Where new pages are kept.
    contents: Option<Arc<Contents>>,
    /// Deliveries that were queued since the last commit.
    applied: Vec<u64>,
    /// Commits that are being written, and where they end; then those that wait for room.
    unwritten: VecDeque<(Place, Committed)>,
    written: VecDeque<Committed>,
    /// Seeds of each partition.
    seeds: Vec<(u8, NormalUrl, Kind)>,
    n_orders: u64,
    /// Why the agent ends, if it does.
    pub(super) ending: Option<Ending>,
}

/// How far a partition is that is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    /// Requests are under way.
    Asked,
    /// Links to it that were found before may be.
    Behind,
    /// Nothing is under way.
    Ready,
}

/// Something of a partition that comes, on its way through the seen set.
#[derive(Debug)]
pub(super) enum Moved {
    /// A URL that needs no request.
    Ended(Fingerprint),
    /// A URL that waits.
    Waiting(NormalUrl, Fingerprint, Box<MovedUrl>),
    /// All of a partition has come.
    Opened(u8),
    /// All links to a partition have come that were found while it was here.
    Closed(u8),
    /// All URLs of a delivery have come.
    Applied(u64),
}

impl Moved {
    /// What the seen set is told.
    pub(super) fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::Ended(fingerprint) | Self::Waiting(_, fingerprint, _) => Some(*fingerprint),
            Self::Opened(_) | Self::Closed(_) | Self::Applied(_) => None,
        }
    }
}

/// Records of all partitions.
type ByPartition = [Records; N_PARTITIONS];

fn by_partition() -> ByPartition {
    std::array::from_fn(|_| Records::default())
}

/// Those of partitions that have any.
fn told(records: ByPartition) -> Vec<(u8, Records)> {
    let records = (0..=u8::MAX).zip(records);
    records.filter(|(_, records)| !records.is_empty()).collect()
}

impl Member {
    pub(super) fn new(
        link: Link,
        seeds: Vec<(NormalUrl, Kind)>,
        contents: Option<Arc<Contents>>,
    ) -> Self {
        let seeds = seeds.into_iter();
        let seeds = seeds.map(|(url, kind)| (partition_of(url.site()), url, kind));
        Self {
            link,
            epochs: [0; N_PARTITIONS],
            closing: Vec::new(),
            hosts: Vec::new(),
            n_in_flight: [0; N_PARTITIONS],
            asked: Vec::new(),
            sent: Vec::new(),
            n_batches: 0,
            recent: std::iter::repeat_with(|| None)
                .take(away::N_RECENT)
                .collect(),
            contents,
            applied: Vec::new(),
            unwritten: VecDeque::new(),
            written: VecDeque::new(),
            seeds: seeds.collect(),
            n_orders: 0,
            ending: None,
        }
    }

    /// Takes down a host that was met.
    pub(super) fn meet(&mut self, url: &NormalUrl) {
        self.hosts.push((partition_of(url.site()), 0));
    }

    fn partition(&self, id: HostId) -> u8 {
        self.hosts[id as usize].0
    }

    /// Whether a host must not be asked now.
    fn bars(&self, id: HostId) -> bool {
        let partition = self.partition(id);
        self.epochs[usize::from(partition)] == 0 || self.closes(partition)
    }

    /// Whether a partition is to go.
    fn closes(&self, partition: u8) -> bool {
        self.closing
            .iter()
            .any(|(closing, _)| *closing == partition)
    }

    /// Whether URLs of a partition are queued here: from the moment when its state begins to come
    /// until all requests of it have ended that were made before it goes.
    fn accepts(&self, partition: u8) -> bool {
        let mut closing = self.closing.iter();
        self.epochs[usize::from(partition)] > 0
            && !closing.any(|(of, stage)| *of == partition && *stage != Closing::Asked)
    }

    /// Whether no requests may be made at all.
    fn is_stopped(&self) -> bool {
        let shared = &self.link.shared;
        let is_crowded = shared.is_crowded.load(Ordering::Relaxed);
        !shared.fence.is_open() || is_crowded || !self.written.is_empty()
    }

    /// Takes the pages that were new since the last call.
    fn take_new(&self) -> Vec<NewPage> {
        let contents = self.contents.as_ref();
        contents.map_or(Vec::new(), |contents| contents.take_new())
    }

    fn set_owned(&self, partition: u8, is_owned: bool) {
        let owned = &self.link.shared.owned[usize::from(partition)];
        owned.store(is_owned, Ordering::Relaxed);
    }

    /// Makes batches of the links to other partitions, and records of those.
    fn batches(&mut self, first: &mut ByPartition) -> Vec<Outgoing> {
        let mut sent = std::mem::take(&mut self.sent);
        sent.sort_by_key(|(_, target, _)| *target);
        let mut batches: Vec<Outgoing> = Vec::new();
        let mut n_bytes = 0;
        for (source, target, url) in sent {
            let is_full = |batch: &Outgoing| {
                batch.target != target
                    || batch.urls.len() >= MAX_BATCH
                    || n_bytes + url.n_bytes() > MAX_BATCH_BYTES
            };
            if batches.last().is_none_or(is_full) {
                self.n_batches += 1;
                n_bytes = 0;
                batches.push(Outgoing {
                    number: self.n_batches,
                    target,
                    sources: Vec::new(),
                    urls: Vec::new(),
                });
            }
            if let Some(batch) = batches.last_mut() {
                n_bytes += url.n_bytes();
                if !batch.sources.contains(&source) {
                    batch.sources.push(source);
                }
                let record = Record::Sent {
                    batch: batch.number,
                    target,
                    urls: vec![url.clone()],
                };
                first[usize::from(source)].push(&record);
                batch.urls.push(url);
            }
        }
        batches
    }

    /// Hands commits on that are written.
    fn push_written(&mut self) {
        while let Some(commit) = self.written.pop_front() {
            match self.link.commits.try_send(commit) {
                Ok(()) => self.link.shared.n_commits.fetch_add(1, Ordering::SeqCst),
                Err(mpsc::error::TrySendError::Full(commit)) => {
                    return self.written.push_front(commit);
                }
                Err(mpsc::error::TrySendError::Closed(_)) => return,
            };
        }
    }

    /// What is to be told and needs nothing of the journal.
    fn rest(&mut self) -> Option<Committed> {
        let new_pages = self.take_new();
        if self.applied.is_empty() && self.sent.is_empty() && new_pages.is_empty() {
            return None;
        }
        let mut first = by_partition();
        let batches = self.batches(&mut first);
        Some(Committed {
            first: told(first),
            batches,
            new_pages,
            applied: std::mem::take(&mut self.applied),
            ..Committed::default()
        })
    }

    /// Whether all that happened is on its way to others.
    fn has_told_all(&self) -> bool {
        let has_links = !self.sent.is_empty() || !self.applied.is_empty();
        !has_links && self.unwritten.is_empty() && self.written.is_empty()
    }
}

impl Crawl {
    /// Makes this crawl a member of a cluster.
    pub(super) fn become_member(&mut self, link: Link, seeds: Vec<(NormalUrl, Kind)>) {
        let contents = self.shared.contents.clone();
        contents.iter().for_each(|contents| contents.share());
        self.member = Some(Box::new(Member::new(link, seeds, contents)));
    }

    /// Rings when the agent has something to say.
    pub(super) fn cluster_bell(&self) -> Option<Arc<Shared>> {
        let member = self.member.as_ref()?;
        Some(Arc::clone(&member.link.shared))
    }

    /// Why there is nothing left to do, if no other agent has anything to do with that.
    pub(super) fn exhausted_alone(&mut self) -> Option<End> {
        match self.member {
            Some(_) => None,
            None => self.exhausted(),
        }
    }

    /// How a crawl ends with its agent.
    pub(super) fn end_of(&self, ending: &Ending) -> End {
        match (ending, self.frontier.n_queued) {
            (Ending::Done, 0) => End::Done,
            (Ending::Done, _) => End::Waiting,
            (Ending::Drained | Ending::Fenced | Ending::Failed(_), _) => End::Stopped,
        }
    }

    /// Why the agent of this crawl has ended.
    pub(super) fn ending(&self) -> Option<&Ending> {
        self.member.as_ref()?.ending.as_ref()
    }

    /// Whether no requests may be made now because of other agents.
    pub(super) fn is_fenced(&self) -> bool {
        self.member
            .as_ref()
            .is_some_and(|member| member.is_stopped())
    }

    /// Whether a host must not be asked because of other agents.
    pub(super) fn is_barred(&self, id: HostId) -> bool {
        self.member.as_ref().is_some_and(|member| member.bars(id))
    }

    /// Gives a host free again that must not be asked.
    pub(super) fn leave_barred(&mut self, id: HostId, address: IpAddr, now: Duration) {
        let is_gone = self
            .member
            .as_ref()
            .is_some_and(|member| member.epochs[usize::from(member.partition(id))] == 0);
        if is_gone {
            self.forget_host(id);
        }
        self.frontier.release(id, now + AGAIN, address, now);
    }

    /// How long to wait before it is looked again whether an IP address may be asked; none if it
    /// may be now. Other agents may want to ask it, too.
    pub(super) fn wait_for_address(&self, address: IpAddr) -> Option<Duration> {
        let shared = &self.member.as_ref()?.link.shared;
        match shared.addresses.turn(address, now()) {
            Turn::Now => None,
            Turn::In(wait) => Some(wait),
        }
    }

    /// Takes down that a host is asked.
    pub(super) fn note_asked(&mut self, id: HostId, address: IpAddr, asked: &Asked) {
        let Some(member) = &mut self.member else {
            return;
        };
        member.link.shared.addresses.take(address);
        let partition = member.partition(id);
        member.n_in_flight[usize::from(partition)] += 1;
        if let Asked::Page(page) = asked {
            member.asked.push((page.ticket, partition));
        }
        if member.asked.len() > 2 * self.open.len() + 1024 {
            let open = &self.open;
            member.asked.retain(|(ticket, _)| open.contains_key(ticket));
        }
    }

    /// Takes down that a request has ended.
    pub(super) fn note_answered(&mut self, id: HostId, address: IpAddr) {
        let rest = crate::settings::seconds(self.settings().polite.address_delay);
        if let Some(member) = &mut self.member {
            let shared = &member.link.shared;
            shared.addresses.release(address, rest, now());
            let partition = usize::from(member.partition(id));
            member.n_in_flight[partition] -= 1;
        }
    }

    /// Carries out what the agent has ordered.
    pub(super) fn take_cluster_orders(&mut self) -> Result<(), Error> {
        for _ in 0..MAX_ORDERS {
            let Some(member) = &mut self.member else {
                return Ok(());
            };
            if self.background.is_behind() {
                return Ok(());
            }
            let order = match member.link.orders.try_recv() {
                Ok(order) => order,
                Err(mpsc::error::TryRecvError::Empty) => return Ok(()),
                Err(mpsc::error::TryRecvError::Disconnected) => {
                    let failed = Ending::Failed("the agent has failed".to_owned());
                    member.ending.get_or_insert(failed);
                    return Ok(());
                }
            };
            member.n_orders += 1;
            match order {
                LoopOrder::Open(opening) => self.open_part(*opening),
                LoopOrder::Apply {
                    delivery,
                    partition,
                    urls,
                } => self.apply_urls(delivery, partition, urls),
                LoopOrder::Close(partition) => {
                    if !member.closes(partition) {
                        member.closing.push((partition, Closing::Asked));
                    }
                }
                LoopOrder::Mark(finding) => self.mark_duplicate(&finding)?,
                LoopOrder::End(ending) => {
                    member.ending.get_or_insert(ending);
                }
            }
        }
        Ok(())
    }

    /// Takes down what a batch of events means for other agents.
    pub(super) fn note_commit(&mut self, batch: &Batch) {
        let Some(mut member) = self.member.take() else {
            return;
        };
        let mut first = by_partition();
        let mut then = by_partition();
        batch.each(|place, event| {
            let Some(id) = event.host() else {
                return;
            };
            let (partition, told) = member.hosts[id as usize];
            let at = usize::from(partition);
            if member.epochs[at] == 0 {
                return;
            }
            if told != member.epochs[at] {
                member.hosts[id as usize].1 = member.epochs[at];
                let origin = &self.frontier.hosts[id as usize].origin;
                first[at].push(&Record::Host { id, origin });
            }
            let out = match event {
                Event::Url(_) => &mut first[at],
                Event::Done { .. }
                | Event::Dropped { .. }
                | Event::Weight { .. }
                | Event::Delay { .. }
                | Event::NotBefore { .. }
                | Event::Rules { .. }
                | Event::Trust { .. } => &mut then[at],
                _ => return,
            };
            out.push(&Record::Event { place, event });
        });
        let batches = member.batches(&mut first);
        let commit = Committed {
            first: told(first),
            then: told(then),
            batches,
            new_pages: member.take_new(),
            applied: std::mem::take(&mut member.applied),
            closed: Vec::new(),
            is_last: false,
        };
        member.unwritten.push_back((batch.end(), commit));
        self.member = Some(member);
    }

    /// Hands on what is in the journal.
    pub(super) fn note_written(&mut self, end: Place) {
        let Some(member) = &mut self.member else {
            return;
        };
        while let Some((place, _)) = member.unwritten.front()
            && *place <= end
        {
            let commit = member.unwritten.pop_front();
            member.written.extend(commit.map(|(_, commit)| commit));
        }
        member.push_written();
    }

    /// Does what is to be done for the agent at the end of a turn.
    pub(super) fn end_member_turn(&mut self) -> Result<(), Error> {
        if self.member.is_none() {
            return Ok(());
        }
        self.close_partitions()?;
        let is_written = self.journal.pending() == 0 && self.background.n_commits == 0;
        let is_idle = self.is_quiet_member();
        let Some(member) = &mut self.member else {
            return Ok(());
        };
        if is_written && member.unwritten.is_empty() {
            let rest = member.rest();
            member.written.extend(rest);
        }
        member.push_written();
        let is_idle = is_idle && is_written && member.has_told_all() && member.closing.is_empty();
        let shared = &member.link.shared;
        shared.is_idle.store(is_idle, Ordering::SeqCst);
        let pages = self.counters.get(Counter::Pages);
        shared.n_pages.store(pages, Ordering::Relaxed);
        shared
            .n_queued
            .store(self.frontier.n_queued, Ordering::Relaxed);
        shared
            .n_in_flight
            .store(self.n_in_flight as u64, Ordering::Relaxed);
        // Behind the state that follows from them.
        shared.n_orders.store(member.n_orders, Ordering::SeqCst);
        Ok(())
    }

    /// Whether there is nothing to do until something comes from outside.
    fn is_quiet_member(&mut self) -> bool {
        self.is_quiet() && self.exhausted().is_some()
    }

    /// Hands everything over at the end of a run. All of it is in the journal.
    pub(super) fn leave_cluster(&mut self) {
        if let Some(member) = &mut self.member {
            for partition in 0..=u8::MAX {
                member.set_owned(partition, false);
            }
            let open = (0..=u8::MAX).filter(|at| member.epochs[usize::from(*at)] > 0);
            member.written.push_back(Committed {
                closed: open.collect(),
                is_last: true,
                ..Committed::default()
            });
        }
    }

    /// What is left to be handed on at the end of a run, and where to.
    pub(super) fn last_commits(
        &mut self,
    ) -> Option<(VecDeque<Committed>, mpsc::Sender<Committed>)> {
        let member = self.member.take()?;
        let Member { link, written, .. } = *member;
        Some((written, link.commits))
    }
}
