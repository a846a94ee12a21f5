//! The workbench: which host may be asked next, and when?
//!
//! *Question.* Thousands of hosts wait, each until its own time, many at one address which has a
//! time of its own, and neither may be asked twice at once. Who is next?
//!
//! *Idea.* A queue per address of the hosts there, by the time from which they may be asked; above
//! it a heap of addresses by the time at which their first host and they themselves are ready
//! (Boldi et al. 2018, the workbench of BUbiNG). Taking a host takes its address off the heap, so
//! one request at a time per host and per address needs no further care. Among hosts that are
//! ready, the one that has waited longest goes first, so none is served twice before another that
//! was ready is served once.
//!
//! All of this exists twice, once per [`Lane`]. A host in the spare lane is taken only when no host
//! of the first lane is ready, so it uses capacity that would be idle and costs the others nothing.
//!
//! *Cost.* Logarithmic in hosts and addresses; about 70 bytes each. Filled by the frontier when a
//! host has something to fetch, emptied by it when a request may be made.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use crate::journal::HostId;

/// Which hosts go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Lane {
    /// Whenever they are ready.
    #[default]
    First,
    /// When no host of the first lane is ready.
    Spare,
}

impl Lane {
    const ALL: [Self; 2] = [Self::First, Self::Spare];
}

/// The number of an entry in the workbench; a host has one that counts.
pub(crate) type EntryId = u64;

/// Hosts by address and by time. Times are since the start of the crawl.
#[derive(Debug, Default)]
pub(crate) struct Workbench {
    numbers: HashMap<IpAddr, usize>,
    addresses: Vec<Address>,
    /// By lane, the addresses with hosts that are not being asked; outdated items are skipped.
    heaps: [BinaryHeap<Reverse<(Order, usize)>>; 2],
    n_pushed: EntryId,
    /// Addresses without hosts, with the times from which on they may be forgotten, and numbers of
    /// those that were.
    emptied: VecDeque<(Duration, usize)>,
    free: Vec<usize>,
    /// Hosts that wait in the first lane.
    pub(crate) n_first: usize,
}

/// Time, priority and, among equals, who came first.
type Order = (Duration, u64, EntryId);

#[derive(Debug, Default)]
struct Address {
    address: Option<IpAddr>,
    /// From when on it may be asked.
    next: Duration,
    first: Queue,
    /// Most addresses have no host there.
    spare: Option<Box<Queue>>,
    is_taken: bool,
}

/// The hosts of an address in one lane.
#[derive(Debug, Default)]
struct Queue {
    hosts: BinaryHeap<Reverse<(Order, HostId)>>,
    /// What stands for it in the heap now.
    item: Option<Order>,
}

impl Address {
    fn is_empty(&self) -> bool {
        let is_empty = |lane| self.queue(lane).is_none_or(|queue| queue.hosts.is_empty());
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
    /// Puts a host at an address, to be asked from `time` on; a smaller `priority` goes first.
    /// Returns the entry that stands for it.
    pub(crate) fn insert(
        &mut self,
        host: HostId,
        address: IpAddr,
        lane: Lane,
        time: Duration,
        priority: u64,
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
        let order = (time, priority, self.n_pushed);
        let address = &mut self.addresses[number];
        let queue = match lane {
            Lane::First => &mut address.first,
            Lane::Spare => address.spare.get_or_insert_default(),
        };
        queue.hosts.push(Reverse((order, host)));
        self.n_first += usize::from(lane == Lane::First);
        self.renew(number, lane);
        self.n_pushed
    }

    /// Takes the host that may be asked at `now`, if there is one, with its entry and its address,
    /// which stays taken until it is [released](Self::release). Entries that do not count any more
    /// are dropped.
    pub(crate) fn take(
        &mut self,
        now: Duration,
        counts: impl Fn(HostId, EntryId) -> bool,
    ) -> Option<(HostId, EntryId, IpAddr)> {
        self.forget(now);
        for lane in Lane::ALL {
            while let Some((host, entry, number)) = self.pop(lane, now) {
                self.n_first -= usize::from(lane == Lane::First);
                if counts(host, entry)
                    && let Some(address) = self.addresses[number].address
                {
                    self.claim(number);
                    return Some((host, entry, address));
                }
                self.renew(number, lane);
            }
        }
        None
    }

    /// Forgets addresses that may be asked and have no hosts.
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

    /// Takes the first host of a lane out of its queue, if its time has come.
    fn pop(&mut self, lane: Lane, now: Duration) -> Option<(HostId, EntryId, usize)> {
        self.drop_outdated(lane);
        let &Reverse(((time, ..), number)) = self.heaps[lane as usize].peek()?;
        if time > now {
            return None;
        }
        self.heaps[lane as usize].pop();
        let queue = self.addresses[number].queue_mut(lane)?;
        queue.item = None;
        let Reverse(((.., entry), host)) = queue.hosts.pop()?;
        Some((host, entry, number))
    }

    fn claim(&mut self, number: usize) {
        let address = &mut self.addresses[number];
        address.is_taken = true;
        for lane in Lane::ALL {
            if let Some(queue) = address.queue_mut(lane) {
                queue.item = None;
            }
        }
    }

    /// When the next host may be asked, if one waits whose address is free.
    pub(crate) fn next_time(&mut self) -> Option<Duration> {
        let times = Lane::ALL.map(|lane| {
            self.drop_outdated(lane);
            let first = self.heaps[lane as usize].peek();
            first.map(|Reverse(((time, ..), _))| *time)
        });
        times.into_iter().flatten().min()
    }

    /// Gives an address free, to be asked again from `next` on.
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

    /// Puts an address into the heap of a lane by the time of its first host there.
    fn renew(&mut self, number: usize, lane: Lane) {
        let address = &mut self.addresses[number];
        let (is_taken, next) = (address.is_taken, address.next);
        let Some(queue) = address.queue_mut(lane) else {
            return;
        };
        let Some(&Reverse(((time, priority, entry), _))) = queue.hosts.peek() else {
            return;
        };
        let item = (time.max(next), priority, entry);
        if !is_taken && queue.item != Some(item) {
            queue.item = Some(item);
            self.heaps[lane as usize].push(Reverse((item, number)));
        }
    }

    fn drop_outdated(&mut self, lane: Lane) {
        let heap = &mut self.heaps[lane as usize];
        while let Some(&Reverse((item, number))) = heap.peek() {
            let queue = self.addresses[number].queue(lane);
            if queue.is_some_and(|queue| queue.item == Some(item)) {
                return;
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
        bench.take(now, |_, _| true).map(|(host, ..)| host)
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
        assert_eq!((take(&mut bench, seconds(9)), bench.n_first), (None, 0));
    }

    #[test]
    fn among_equals_the_smaller_priority_then_the_first() {
        let mut bench = Workbench::default();
        for (host, priority) in [(1, 1), (2, 0), (3, 0)] {
            bench.insert(host, address(host as u8), Lane::First, seconds(1), priority);
        }
        let order: Vec<_> = std::iter::from_fn(|| take(&mut bench, seconds(1))).collect();
        assert_eq!(order, [2, 3, 1]);
    }

    /// A host of the spare lane goes when the first lane has none that is ready, at its own address
    /// or elsewhere, and an entry that was replaced is skipped.
    #[test]
    fn the_spare_lane_uses_what_is_idle() {
        let mut bench = Workbench::default();
        bench.insert(1, address(1), Lane::Spare, seconds(0), 0);
        let replaced = bench.insert(2, address(2), Lane::Spare, seconds(0), 0);
        bench.insert(2, address(2), Lane::First, seconds(0), 0);
        bench.insert(3, address(1), Lane::First, seconds(3), 0);
        let mut take = |now| {
            let taken = bench.take(seconds(now), |_, entry| entry != replaced);
            taken.map(|(host, ..)| host)
        };
        assert_eq!((take(0), take(0), take(0)), (Some(2), Some(1), None));
        bench.release(address(1), seconds(3));
        bench.insert(1, address(1), Lane::Spare, seconds(1), 0);
        let mut take = |now| {
            let taken = bench.take(seconds(now), |_, entry| entry != replaced);
            taken.map(|(host, ..)| host)
        };
        assert_eq!((take(2), take(3), take(9)), (None, Some(3), None));
        bench.release(address(2), seconds(0));
        assert_eq!(bench.take(seconds(9), |_, entry| entry != replaced), None);
        bench.release(address(1), seconds(4));
        assert_eq!(bench.next_time(), Some(seconds(4)));
    }

    /// Fifty hosts at ten addresses, 32 requests at once, random latencies; hosts move between
    /// addresses. No two requests to a host or an address overlap, and the pauses are kept.
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
