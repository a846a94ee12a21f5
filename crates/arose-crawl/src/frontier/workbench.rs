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
//! *Cost.* Logarithmic in hosts and addresses; some 60 bytes each. Filled by the frontier when a
//! host has something to fetch, emptied by it when a request may be made.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

use crate::journal::HostId;

/// Hosts by address and by time. Times are since the start of the crawl.
#[derive(Debug, Default)]
pub(crate) struct Workbench {
    numbers: HashMap<IpAddr, usize>,
    addresses: Vec<Address>,
    /// Addresses with hosts that are not being asked; outdated items are skipped.
    heap: BinaryHeap<Reverse<(Order, usize)>>,
    n_pushed: u64,
    /// Hosts that wait.
    pub(crate) n_hosts: usize,
}

/// Time, priority and, among equals, who came first.
type Order = (Duration, u32, u64);

#[derive(Debug, Default)]
struct Address {
    /// From when on it may be asked.
    next: Duration,
    hosts: BinaryHeap<Reverse<(Order, HostId)>>,
    is_taken: bool,
    /// What stands for it in the heap now.
    item: Option<Order>,
}

impl Workbench {
    /// Puts a host at an address, to be asked from `time` on; a smaller `priority` goes first.
    pub(crate) fn insert(&mut self, host: HostId, address: IpAddr, time: Duration, priority: u32) {
        let addresses = &mut self.addresses;
        let number = *self.numbers.entry(address).or_insert_with(|| {
            addresses.push(Address::default());
            addresses.len() - 1
        });
        self.n_pushed += 1;
        let order = (time, priority, self.n_pushed);
        self.addresses[number].hosts.push(Reverse((order, host)));
        self.n_hosts += 1;
        self.renew(number);
    }

    /// Takes the host that may be asked at `now`, if there is one; its address stays taken until it
    /// is [released](Self::release).
    pub(crate) fn take(&mut self, now: Duration) -> Option<HostId> {
        self.drop_outdated();
        let &Reverse(((time, ..), number)) = self.heap.peek()?;
        if time > now {
            return None;
        }
        self.heap.pop();
        let address = &mut self.addresses[number];
        address.item = None;
        let Reverse((_, host)) = address.hosts.pop()?;
        address.is_taken = true;
        self.n_hosts -= 1;
        Some(host)
    }

    /// When the next host may be asked, if one waits whose address is free.
    pub(crate) fn next_time(&mut self) -> Option<Duration> {
        self.drop_outdated();
        self.heap.peek().map(|Reverse(((time, ..), _))| *time)
    }

    /// Gives an address free, to be asked again from `next` on.
    pub(crate) fn release(&mut self, address: IpAddr, next: Duration) {
        if let Some(&number) = self.numbers.get(&address) {
            let address = &mut self.addresses[number];
            address.is_taken = false;
            address.next = address.next.max(next);
            self.renew(number);
        }
    }

    /// Puts an address into the heap by the time of its first host.
    fn renew(&mut self, number: usize) {
        let address = &mut self.addresses[number];
        let Some(&Reverse(((time, priority, n_pushed), _))) = address.hosts.peek() else {
            return;
        };
        let item = (time.max(address.next), priority, n_pushed);
        if !address.is_taken && address.item != Some(item) {
            address.item = Some(item);
            self.heap.push(Reverse((item, number)));
        }
    }

    fn drop_outdated(&mut self) {
        while let Some(&Reverse((item, number))) = self.heap.peek()
            && self.addresses[number].item != Some(item)
        {
            self.heap.pop();
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

    fn address(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[test]
    fn one_host_at_a_time_per_address() {
        let mut bench = Workbench::default();
        bench.insert(1, address(1), seconds(0), 0);
        bench.insert(2, address(1), seconds(0), 0);
        bench.insert(3, address(2), seconds(5), 0);
        assert_eq!(bench.take(seconds(0)), Some(1));
        assert_eq!(bench.take(seconds(0)), None);
        assert_eq!(bench.next_time(), Some(seconds(5)));
        bench.release(address(1), seconds(2));
        assert_eq!(bench.next_time(), Some(seconds(2)));
        assert_eq!(bench.take(seconds(1)), None);
        assert_eq!(bench.take(seconds(2)), Some(2));
        assert_eq!(bench.take(seconds(5)), Some(3));
        assert_eq!((bench.take(seconds(9)), bench.n_hosts), (None, 0));
    }

    #[test]
    fn among_equals_the_smaller_priority_then_the_first() {
        let mut bench = Workbench::default();
        for (host, priority) in [(1, 1), (2, 0), (3, 0)] {
            bench.insert(host, address(host as u8), seconds(1), priority);
        }
        let order: Vec<_> = std::iter::from_fn(|| bench.take(seconds(1))).collect();
        assert_eq!(order, [2, 3, 1]);
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
            bench.insert(host, at[&host], Duration::ZERO, 0);
        }
        let mut free: BTreeMap<String, Duration> = BTreeMap::new();
        let mut in_flight: Vec<(Duration, HostId)> = Vec::new();
        let mut now = Duration::ZERO;
        let mut served: BTreeMap<HostId, u32> = BTreeMap::new();
        for _ in 0..20_000 {
            while in_flight.len() < 32 {
                let Some(host) = bench.take(now) else { break };
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
                    bench.insert(host, at[&host], now + host_delay, 0);
                }
                _ => now = next.unwrap(),
            }
        }
        let least = served.values().min().unwrap();
        assert!(*least > 50, "{served:?}");
    }
}
