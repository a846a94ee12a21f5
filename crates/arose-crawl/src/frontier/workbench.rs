//! The workbench: selects the next host that may receive a request.
//!
//! *Question.* Thousands of hosts wait, each until its own time. Many share an IP address, which
//! has a time of its own, and neither may receive two requests at once. Which host is next?
//!
//! *Idea.* Each IP address has a queue of its hosts, by the time of their next request. Above it, a
//! heap orders IP addresses by the time at which they and their first host are ready (Boldi et al.
//! 2018, the workbench of BUbiNG). At that time the IP address goes to a second heap, with the best
//! of its hosts, where the one with the highest [`Rank`] is next. Among equals, the one that has
//! waited longest is next, so none is served twice before another ready host of its rank is served
//! once. Taking a host removes its IP address from both heaps. So one request at a time per host
//! and per IP address needs no further check.
//!
//! Ranks fall while hosts wait, so a host is ranked again just before it is taken. A host whose
//! rank has risen is inserted again, and its old entry becomes invalid.
//!
//! All of this exists twice, once per [`Lane`]. A host in the spare lane is taken only when no host
//! of the first lane is ready. So it uses otherwise idle capacity and costs the others nothing.
//!
//! *Cost.* Logarithmic in hosts and IP addresses; about 70 bytes each. The frontier adds a host
//! when it has something to fetch, and takes it when a request may be made. *Error.* Of the ready
//! hosts at one IP address, the best of the [`LOOKED_AT`] that have waited longest goes first.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::journal::HostId;

/// The priority class of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Lane {
    /// Taken whenever it is ready.
    #[default]
    First,
    /// Taken when no host of the first lane is ready.
    Spare,
}

impl Lane {
    const ALL: [Self; 2] = [Self::First, Self::Spare];
}

/// The number of an entry in the workbench; a host has one valid entry.
pub(crate) type EntryId = u64;

/// Orders ready hosts; the largest goes first.
pub(crate) type Rank = u32;

/// Number of hosts of an IP address among which the best is chosen.
const LOOKED_AT: usize = 32;

/// What to do with an entry whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// Take its host.
    Fine,
    /// Its rank has fallen to this.
    Lower(Rank),
    /// It is no longer valid.
    Outdated,
}

/// A host that may receive a request, and its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) host: HostId,
    pub(crate) entry: EntryId,
    pub(crate) rank: Rank,
    pub(crate) address: IpAddr,
}

/// An IP address with a ready host, by the rank, time and entry of that host.
type Ready = (Rank, Reverse<Duration>, Reverse<EntryId>, usize);

/// Hosts by IP address and time. Times are relative to the start of the crawl.
#[derive(Debug, Default)]
pub(crate) struct Workbench {
    numbers: HashMap<IpAddr, usize>,
    addresses: Vec<Address>,
    /// By lane: IP addresses whose time has not come, and those with ready hosts. Outdated items
    /// are skipped.
    waiting: [BinaryHeap<Reverse<(Duration, EntryId, usize)>>; 2],
    ready: [BinaryHeap<Ready>; 2],
    n_pushed: EntryId,
    /// Number of all entries, including outdated ones.
    pub(crate) n_entries: usize,
    /// IP addresses without hosts, with the times from which they may be forgotten, and the free
    /// numbers of forgotten ones.
    emptied: VecDeque<(Duration, usize)>,
    free: Vec<usize>,
}

/// A host in its queue, ordered by time and then by insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingHost {
    time: Duration,
    entry: EntryId,
    host: HostId,
    rank: Rank,
}

#[derive(Debug, Default)]
struct Address {
    address: Option<IpAddr>,
    /// The earliest time of its next request.
    next: Duration,
    first: Queue,
    /// Most IP addresses have no host there.
    spare: Option<Box<Queue>>,
    is_taken: bool,
}

/// The hosts of an IP address in one lane.
#[derive(Debug, Default)]
struct Queue {
    hosts: BinaryHeap<Reverse<WaitingHost>>,
    /// Its item among those whose time has not come.
    item: Option<(Duration, EntryId)>,
    /// The host that represents it among the ready ones.
    chosen: Option<WaitingHost>,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.chosen.is_none()
    }

    /// Puts the chosen host back.
    fn put_back(&mut self) {
        self.hosts.extend(self.chosen.take().map(Reverse));
    }

    /// Chooses the best host among those that have waited longest.
    fn choose(&mut self, now: Duration) -> Option<WaitingHost> {
        let mut others = Vec::new();
        while let Some(&Reverse(host)) = self.hosts.peek()
            && host.time <= now
            && others.len() < LOOKED_AT
        {
            self.hosts.pop();
            if let Some(worse) = match self.chosen {
                Some(chosen) if chosen.rank >= host.rank => Some(host),
                _ => self.chosen.replace(host),
            } {
                others.push(Reverse(worse));
            }
        }
        self.hosts.extend(others);
        self.chosen
    }
}

impl Address {
    fn is_empty(&self) -> bool {
        let is_empty = |lane| self.queue(lane).is_none_or(Queue::is_empty);
        Lane::ALL.into_iter().all(is_empty)
    }

    fn queue(&self, lane: Lane) -> Option<&Queue> {
        match lane {
            Lane::First => Some(&self.first),
            Lane::Spare => self.spare.as_deref(),
        }
    }

    fn queue_mut(&mut self, lane: Lane) -> Option<&mut Queue> {
        match lane {
            Lane::First => Some(&mut self.first),
            Lane::Spare => self.spare.as_deref_mut(),
        }
    }
}

impl Workbench {
    /// Adds a host at an IP address, to be requested from `time` on; the largest `rank` goes first.
    /// Returns its entry.
    pub(crate) fn insert(
        &mut self,
        host: HostId,
        address: IpAddr,
        lane: Lane,
        time: Duration,
        rank: Rank,
    ) -> EntryId {
        let (addresses, free) = (&mut self.addresses, &mut self.free);
        let number = *self.numbers.entry(address).or_insert_with(|| {
            let number = free.pop().unwrap_or(addresses.len());
            if number == addresses.len() {
                addresses.push(Address::default());
            }
            addresses[number].address = Some(address);
            number
        });
        self.n_pushed += 1;
        self.n_entries += 1;
        let address = &mut self.addresses[number];
        let queue = match lane {
            Lane::First => &mut address.first,
            Lane::Spare => address.spare.get_or_insert_default(),
        };
        // A better one may have to be chosen.
        if queue.chosen.is_some_and(|chosen| chosen.rank < rank) {
            queue.put_back();
        }
        queue.hosts.push(Reverse(WaitingHost {
            time,
            entry: self.n_pushed,
            host,
            rank,
        }));
        self.renew(number, lane);
        self.n_pushed
    }

    /// Takes the best host that is ready at `now`, if there is one. Its IP address stays taken
    /// until it is [released](Self::release).
    pub(crate) fn take(
        &mut self,
        now: Duration,
        mut judge: impl FnMut(HostId, EntryId, Rank) -> Judgement,
    ) -> Option<Choice> {
        self.forget(now);
        for lane in Lane::ALL {
            self.promote(lane, now);
            while let Some((number, host)) = self.pop(lane) {
                self.n_entries -= 1;
                match (
                    judge(host.host, host.entry, host.rank),
                    self.addresses[number].address,
                ) {
                    (Judgement::Fine, Some(address)) => {
                        self.claim(number);
                        return Some(Choice {
                            host: host.host,
                            entry: host.entry,
                            rank: host.rank,
                            address,
                        });
                    }
                    (Judgement::Lower(rank), _) => {
                        self.n_entries += 1;
                        if let Some(queue) = self.addresses[number].queue_mut(lane) {
                            queue.hosts.push(Reverse(WaitingHost { rank, ..host }));
                        }
                    }
                    (Judgement::Fine | Judgement::Outdated, _) => {}
                }
                self.renew(number, lane);
                self.promote(lane, now);
            }
        }
        None
    }

    /// Forgets IP addresses that are free and have no hosts.
    fn forget(&mut self, now: Duration) {
        while let Some(&(time, number)) = self.emptied.front()
            && time <= now
        {
            self.emptied.pop_front();
            let address = &self.addresses[number];
            let is_due = !address.is_taken && address.next <= now;
            if address.is_empty()
                && is_due
                && let Some(name) = address.address
            {
                self.numbers.remove(&name);
                self.addresses[number] = Address::default();
                self.free.push(number);
            }
        }
    }

    /// Moves the IP addresses of a lane whose time has come to the heap by rank.
    fn promote(&mut self, lane: Lane, now: Duration) {
        loop {
            self.drop_outdated(lane);
            match self.waiting[lane as usize].peek() {
                Some(&Reverse((time, _, number))) if time <= now => {
                    self.waiting[lane as usize].pop();
                    let queue = self.addresses[number].queue_mut(lane);
                    let Some(queue) = queue else { continue };
                    queue.item = None;
                    if let Some(host) = queue.choose(now) {
                        let item = (host.rank, Reverse(host.time), Reverse(host.entry), number);
                        self.ready[lane as usize].push(item);
                    }
                }
                _ => return,
            }
        }
    }

    /// Takes the best host of a lane out of its queue.
    fn pop(&mut self, lane: Lane) -> Option<(usize, WaitingHost)> {
        self.drop_outdated(lane);
        let (.., number) = self.ready[lane as usize].pop()?;
        let host = self.addresses[number].queue_mut(lane)?.chosen.take()?;
        Some((number, host))
    }

    fn claim(&mut self, number: usize) {
        let address = &mut self.addresses[number];
        address.is_taken = true;
        for lane in Lane::ALL {
            if let Some(queue) = address.queue_mut(lane) {
                queue.item = None;
                queue.put_back();
            }
        }
    }

    /// Returns when the next host with a free IP address is ready, if there is one.
    pub(crate) fn next_time(&mut self) -> Option<Duration> {
        let times = Lane::ALL.map(|lane| {
            self.drop_outdated(lane);
            let ready = self.ready[lane as usize].peek().map(|item| item.1.0);
            let waiting = self.waiting[lane as usize].peek();
            ready.or(waiting.map(|Reverse((time, ..))| *time))
        });
        times.into_iter().flatten().min()
    }

    /// Returns the first ready hosts, up to this number; the best one of each IP address.
    pub(crate) fn best(&self, n: usize) -> Vec<HostId> {
        let heap = self.ready[Lane::First as usize].as_slice();
        let mut best = Vec::new();
        let mut reached = BinaryHeap::from_iter(heap.first().map(|item| (item, 0)));
        // The number of outdated items that are skipped is bounded.
        for _ in 0..16 * n {
            let Some((&(_, _, Reverse(entry), number), at)) = reached.pop() else {
                break;
            };
            let chosen = self.addresses[number].queue(Lane::First);
            let chosen = chosen.and_then(|queue| queue.chosen);
            let chosen = chosen.filter(|chosen| chosen.entry == entry);
            best.extend(chosen.map(|chosen| chosen.host));
            let below = [2 * at + 1, 2 * at + 2];
            reached.extend(below.into_iter().filter_map(|at| Some((heap.get(at)?, at))));
            if best.len() == n {
                break;
            }
        }
        best
    }

    /// Releases an IP address, which may receive a request again from `next` on.
    pub(crate) fn release(&mut self, address: IpAddr, next: Duration) {
        if let Some(&number) = self.numbers.get(&address) {
            let address = &mut self.addresses[number];
            address.is_taken = false;
            address.next = address.next.max(next);
            let (is_empty, next) = (address.is_empty(), address.next);
            for lane in Lane::ALL {
                self.renew(number, lane);
            }
            if is_empty {
                self.emptied.push_back((next, number));
            }
        }
    }

    /// Makes an IP address wait for the time of its first host of a lane, unless one is chosen.
    fn renew(&mut self, number: usize, lane: Lane) {
        let address = &mut self.addresses[number];
        let (is_taken, next) = (address.is_taken, address.next);
        let Some(queue) = address.queue_mut(lane) else {
            return;
        };
        let Some(&Reverse(first)) = queue.hosts.peek() else {
            return;
        };
        let item = (first.time.max(next), first.entry);
        if !is_taken && queue.chosen.is_none() && queue.item != Some(item) {
            queue.item = Some(item);
            self.waiting[lane as usize].push(Reverse((item.0, item.1, number)));
        }
    }

    fn drop_outdated(&mut self, lane: Lane) {
        let heap = &mut self.waiting[lane as usize];
        while let Some(&Reverse((time, entry, number))) = heap.peek() {
            let queue = self.addresses[number].queue(lane);
            if queue.is_some_and(|queue| queue.item == Some((time, entry))) {
                break;
            }
            heap.pop();
        }
        let heap = &mut self.ready[lane as usize];
        while let Some(&(rank, _, Reverse(entry), number)) = heap.peek() {
            let chosen = self.addresses[number]
                .queue(lane)
                .and_then(|queue| queue.chosen);
            if chosen.is_some_and(|chosen| chosen.entry == entry && chosen.rank == rank) {
                break;
            }
            heap.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    use arose::mix::SplitMix;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn take(bench: &mut Workbench, now: Duration) -> Option<HostId> {
        bench
            .take(now, |_, _, _| Judgement::Fine)
            .map(|choice| choice.host)
    }

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[test]
    fn one_host_at_a_time_per_address() {
        let mut bench = Workbench::default();
        bench.insert(1, address(1), Lane::First, seconds(0), 0);
        bench.insert(2, address(1), Lane::First, seconds(0), 0);
        bench.insert(3, address(2), Lane::First, seconds(5), 0);
        assert_eq!(take(&mut bench, seconds(0)), Some(1));
        assert_eq!(take(&mut bench, seconds(0)), None);
        assert_eq!(bench.next_time(), Some(seconds(5)));
        bench.release(address(1), seconds(2));
        assert_eq!(bench.next_time(), Some(seconds(2)));
        assert_eq!(take(&mut bench, seconds(1)), None);
        assert_eq!(take(&mut bench, seconds(2)), Some(2));
        assert_eq!(take(&mut bench, seconds(5)), Some(3));
        assert_eq!((take(&mut bench, seconds(9)), bench.n_entries), (None, 0));
    }

    #[test]
    fn among_those_that_are_ready_the_largest_rank_then_the_first() {
        let mut bench = Workbench::default();
        for (host, rank, time) in [(1, 0, 0), (2, 1, 1), (3, 1, 1), (4, 9, 2)] {
            bench.insert(host, address(host as u8), Lane::First, seconds(time), rank);
        }
        let order: Vec<_> = std::iter::from_fn(|| take(&mut bench, seconds(1))).collect();
        assert_eq!(order, [2, 3, 1]);
        assert_eq!(bench.next_time(), Some(seconds(2)));
    }

    /// Of the hosts at one IP address, the best goes first, even if it arrives while another is
    /// chosen.
    #[test]
    fn the_best_host_of_an_address() {
        let mut bench = Workbench::default();
        for (host, rank) in [(1, 3), (2, 5)] {
            bench.insert(host, address(1), Lane::First, seconds(0), rank);
        }
        bench.insert(3, address(2), Lane::First, seconds(0), 9);
        assert_eq!(take(&mut bench, seconds(1)), Some(3));
        assert_eq!(bench.best(5), [2]);
        bench.insert(4, address(1), Lane::First, seconds(0), 6);
        for host in [4, 2, 1] {
            assert_eq!(take(&mut bench, seconds(1)), Some(host));
            assert_eq!(take(&mut bench, seconds(1)), None);
            bench.release(address(1), seconds(0));
        }
        assert_eq!((take(&mut bench, seconds(1)), bench.n_entries), (None, 0));
    }

    /// A host whose rank has fallen lets others go first. One that was inserted again with a higher
    /// rank goes earlier, and only once.
    #[test]
    fn ranks_change() {
        let mut bench = Workbench::default();
        bench.insert(1, address(1), Lane::First, seconds(0), 8);
        bench.insert(2, address(2), Lane::First, seconds(0), 5);
        let mut judge = |host, _, rank| match (host, rank) {
            (1, 8) => Judgement::Lower(3),
            _ => Judgement::Fine,
        };
        let of = |choice: Choice| (choice.host, choice.rank);
        assert_eq!(bench.take(seconds(0), &mut judge).map(of), Some((2, 5)));
        let risen = bench.insert(1, address(1), Lane::First, seconds(0), 7);
        bench.insert(3, address(3), Lane::First, seconds(0), 4);
        let mut judge = |host, entry, _| match host == 1 && entry != risen {
            true => Judgement::Outdated,
            false => Judgement::Fine,
        };
        assert_eq!(bench.take(seconds(0), &mut judge).map(of), Some((1, 7)));
        bench.release(address(1), seconds(0));
        assert_eq!(bench.take(seconds(0), &mut judge).map(of), Some((3, 4)));
        assert_eq!(bench.take(seconds(0), &mut judge), None);
        assert_eq!(bench.n_entries, 0);
    }

    /// A host of the spare lane is taken when the first lane has none that is ready, at its own IP
    /// address or elsewhere. A replaced entry is skipped.
    #[test]
    fn the_spare_lane_uses_what_is_idle() {
        let mut bench = Workbench::default();
        bench.insert(1, address(1), Lane::Spare, seconds(0), 0);
        let replaced = bench.insert(2, address(2), Lane::Spare, seconds(0), 0);
        bench.insert(2, address(2), Lane::First, seconds(0), 0);
        bench.insert(3, address(1), Lane::First, seconds(3), 0);
        let judge = |_, entry, _| match entry == replaced {
            true => Judgement::Outdated,
            false => Judgement::Fine,
        };
        let mut take = |now| bench.take(seconds(now), judge).map(|choice| choice.host);
        assert_eq!((take(0), take(0), take(0)), (Some(2), Some(1), None));
        bench.release(address(1), seconds(3));
        bench.insert(1, address(1), Lane::Spare, seconds(1), 0);
        let mut take = |now| bench.take(seconds(now), judge).map(|choice| choice.host);
        assert_eq!((take(2), take(3), take(9)), (None, Some(3), None));
        bench.release(address(2), seconds(0));
        assert_eq!(bench.take(seconds(9), judge), None);
        bench.release(address(1), seconds(4));
        assert_eq!(bench.next_time(), Some(seconds(4)));
    }

    /// Fifty hosts at ten IP addresses, 32 requests at once, random latencies; hosts move between
    /// IP addresses. No two requests to a host or an IP address overlap, and the delays are kept.
    #[test]
    fn simulated_politeness() {
        let mut random = SplitMix::new(7);
        let mut bench = Workbench::default();
        let mut at: BTreeMap<HostId, IpAddr> = BTreeMap::new();
        for host in 0..50 {
            at.insert(host, address((host % 10) as u8));
            bench.insert(host, at[&host], Lane::First, Duration::ZERO, 0);
        }
        let mut free: BTreeMap<String, Duration> = BTreeMap::new();
        let mut in_flight: Vec<(Duration, HostId)> = Vec::new();
        let mut now = Duration::ZERO;
        let mut served: BTreeMap<HostId, u32> = BTreeMap::new();
        for _ in 0..20_000 {
            while in_flight.len() < 32 {
                let Some(host) = take(&mut bench, now) else {
                    break;
                };
                for key in [format!("host {host}"), format!("address {}", at[&host])] {
                    assert!(
                        free.get(&key).is_none_or(|&free| free <= now),
                        "{key} at {now:?}"
                    );
                    free.insert(key, Duration::MAX);
                }
                *served.entry(host).or_default() += 1;
                let latency = Duration::from_millis(random.below(400));
                in_flight.push((now + latency, host));
            }
            in_flight.sort();
            let next = bench.next_time().filter(|_| in_flight.len() < 32);
            match in_flight.first().copied() {
                Some((end, host)) if next.is_none_or(|next| end <= next) => {
                    in_flight.remove(0);
                    now = end;
                    let (host_delay, address_delay) = (seconds(1), Duration::from_millis(300));
                    free.insert(format!("host {host}"), now + host_delay);
                    free.insert(format!("address {}", at[&host]), now + address_delay);
                    bench.release(at[&host], now + address_delay);
                    if random.below(10) == 0 {
                        at.insert(host, address(random.below(10) as u8));
                    }
                    bench.insert(host, at[&host], Lane::First, now + host_delay, 0);
                }
                _ => now = next.unwrap(),
            }
        }
        let least = served.values().min().unwrap();
        assert!(*least > 50, "{served:?}");
    }
}
