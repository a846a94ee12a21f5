//! IP addresses: which agent may ask one now?
//!
//! *Question.* Sites of several partitions may share an IP address, so several agents may want to
//! ask it. It must never get two requests at once, nor two without a delay between them.
//!
//! *Idea.* An IP address has a partition, as sites have, and the owner of that partition grants it
//! to one agent at a time, for a window of a few seconds. Windows are leases: the holder counts its
//! window from the moment before it asked, and sends nothing after it; the granter counts from the
//! moment it grants. The holder extends its window while it has something to ask, and returns the
//! IP address when another agent waits for it, with the time for which it must rest.
//!
//! *Changes of the granter.* The next one does not know the windows that the last one granted, so
//! it grants nothing until they have ended, except to agents that say they hold an IP address:
//! the last granter has granted it to no other.
//!
//! *Lost and late messages.* Requests are repeated. A grant counts only if it answers a recent
//! request, made after the IP address was returned last. A lost return costs one window.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::fence::Fence;
use super::lease::{Terms, slowed};
use super::partition::partition_of;

/// Length of a window, if leases are long enough.
const WINDOW: Duration = Duration::from_secs(10);

/// Time between two requests for an IP address that are not answered.
const REPEAT: Duration = Duration::from_millis(500);

/// Age of a request whose answer still counts.
const FRESH: Duration = Duration::from_secs(2);

/// The longest rest that another agent can ask for.
const MAX_REST: Duration = Duration::from_secs(3600);

/// IP addresses that are remembered while they are not held.
const MAX_KNOWN: usize = 100_000;

/// Agents that wait for an IP address at most.
const MAX_WAITING: usize = 1000;

/// Returns the partition whose owner grants an IP address.
pub(crate) fn granting_partition(address: IpAddr) -> u8 {
    partition_of(&address.to_canonical().to_string())
}

/// The length of a window under these terms.
pub(crate) fn window(terms: &Terms) -> Duration {
    WINDOW.min(terms.lease / 3)
}

/// A request for an IP address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) address: IpAddr,
    /// Milliseconds of the clock of the agent that asks.
    pub(crate) sent: u64,
    /// Whether it holds the IP address now.
    pub(crate) holds: bool,
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) address: IpAddr,
    /// As in the request.
    pub(crate) sent: u64,
    /// Milliseconds from then on that the window has.
    pub(crate) window: u64,
    /// Milliseconds from the arrival of the grant before which the IP address rests.
    pub(crate) rest: u64,
    /// Whether it extends a window, which must not have ended.
    pub(crate) extends: bool,
}

/// What the holder of an IP address says when it needs it no more, or is asked to return it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Return {
    pub(crate) address: IpAddr,
    /// Milliseconds for which the IP address rests.
    pub(crate) rest: u64,
}

/// What a granter sends: to whom, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Grant(String, Grant),
    /// Another agent waits for it.
    Recall(String, IpAddr),
}

/// An IP address, as its granter sees it.
#[derive(Debug, Default)]
struct Granted {
    /// Who holds it, and when its window ends for certain.
    holder: Option<(String, Duration)>,
    /// Until when it rests.
    rests_until: Duration,
    waiting: VecDeque<(String, u64)>,
    recalled: Duration,
}

/// Grants the IP addresses of partitions.
#[derive(Debug)]
pub(crate) struct Granter {
    window: Duration,
    /// The longest time for which an IP address rests after a request.
    delay: Duration,
    addresses: HashMap<IpAddr, Granted>,
    /// When each partition may be granted from; none if its owner is another agent.
    from: Vec<Option<Duration>>,
}

impl Granter {
    pub(crate) fn new(terms: &Terms, delay: Duration) -> Self {
        Self {
            window: window(terms),
            delay,
            addresses: HashMap::new(),
            from: vec![None; 256],
        }
    }

    /// How long a window may last by the clock of this agent, with the rest after it.
    fn whole(&self) -> Duration {
        slowed(self.window) + self.delay
    }

    /// Begins to grant the IP addresses of a partition, which `epoch - 1` agents did before.
    pub(crate) fn open(&mut self, partition: u8, epoch: u64, now: Duration) {
        let wait = match epoch {
            0 | 1 => Duration::ZERO,
            _ => self.whole(),
        };
        self.from[usize::from(partition)] = Some(now + wait);
    }

    /// Ends it.
    pub(crate) fn close(&mut self, partition: u8) {
        self.from[usize::from(partition)] = None;
        self.addresses
            .retain(|address, _| granting_partition(*address) != partition);
    }

    /// Takes a request of an agent; returns what to send, to whom.
    pub(crate) fn ask(&mut self, agent: &str, ask: Ask, now: Duration) -> Option<Answer> {
        let from = self.from[usize::from(granting_partition(ask.address))]?;
        let (whole, window) = (self.whole(), self.window);
        let granted = self.addresses.entry(ask.address).or_default();
        let is_holder = matches!(&granted.holder, Some((holder, _)) if holder == agent);
        let is_taken = matches!(&granted.holder, Some((_, until)) if now < *until);
        if is_holder || !is_taken && (ask.holds || now >= from) {
            granted.waiting.retain(|(waiting, _)| waiting != agent);
            return Some(granted.grant(agent, ask, window, whole, now));
        }
        let mut waiting = granted.waiting.iter();
        match waiting.position(|(waiting, _)| waiting == agent) {
            Some(at) => granted.waiting[at].1 = ask.sent,
            None if granted.waiting.len() < MAX_WAITING => {
                granted.waiting.push_back((agent.to_owned(), ask.sent));
            }
            None => return None,
        }
        granted.recall(ask.address, now)
    }

    /// Takes an IP address back; returns what to send, to whom.
    pub(crate) fn take_back(&mut self, agent: &str, back: Return, now: Duration) -> Option<Answer> {
        let granted = self.addresses.get_mut(&back.address)?;
        if !matches!(&granted.holder, Some((holder, _)) if holder == agent) {
            return None;
        }
        granted.holder = None;
        let rest = Duration::from_millis(back.rest).min(MAX_REST);
        granted.rests_until = now + rest;
        self.next(back.address, now)
    }

    /// Grants what agents wait for and nobody holds any more, and recalls the rest again.
    pub(crate) fn look(&mut self, now: Duration) -> Vec<Answer> {
        let waited = self
            .addresses
            .iter()
            .filter(|(_, of)| !of.waiting.is_empty());
        let mut waited: Vec<IpAddr> = waited.map(|(address, _)| *address).collect();
        waited.sort_unstable();
        if self.addresses.len() > MAX_KNOWN {
            let is_over = |of: &Granted| {
                of.waiting.is_empty()
                    && of.rests_until <= now
                    && of.holder.as_ref().is_none_or(|(_, until)| *until <= now)
            };
            self.addresses.retain(|_, of| !is_over(of));
        }
        let answers = waited
            .into_iter()
            .filter_map(|address| self.next(address, now));
        answers.collect()
    }

    /// Grants an IP address to the agent that has waited longest, if it can.
    fn next(&mut self, address: IpAddr, now: Duration) -> Option<Answer> {
        let from = self.from[usize::from(granting_partition(address))]?;
        let (whole, window) = (self.whole(), self.window);
        let granted = self.addresses.get_mut(&address)?;
        if matches!(&granted.holder, Some((_, until)) if now < *until) {
            return granted.recall(address, now);
        }
        if now < from {
            return None;
        }
        let (agent, sent) = granted.waiting.pop_front()?;
        let ask = Ask {
            address,
            sent,
            holds: false,
        };
        Some(granted.grant(&agent, ask, window, whole, now))
    }
}

impl Granted {
    fn grant(
        &mut self,
        agent: &str,
        ask: Ask,
        window: Duration,
        whole: Duration,
        now: Duration,
    ) -> Answer {
        self.holder = Some((agent.to_owned(), now + whole));
        let rest = self.rests_until.saturating_sub(now);
        let grant = Grant {
            address: ask.address,
            sent: ask.sent,
            window: window.as_millis() as u64,
            rest: rest.as_millis() as u64 + u64::from(!rest.is_zero()),
            extends: ask.holds,
        };
        Answer::Grant(agent.to_owned(), grant)
    }

    /// Asks the holder to return it, now and then, while others wait.
    fn recall(&mut self, address: IpAddr, now: Duration) -> Option<Answer> {
        let (holder, _) = self.holder.as_ref()?;
        if self.waiting.is_empty() || now < self.recalled + REPEAT {
            return None;
        }
        self.recalled = now;
        Some(Answer::Recall(holder.clone(), address))
    }
}

/// An IP address, as an agent sees it that wants it.
#[derive(Debug, Default)]
struct Wanted {
    /// Until when requests may be made.
    fence: Arc<Fence>,
    until: Duration,
    not_before: Duration,
    asked: Option<Duration>,
    returned: Duration,
    is_in_use: bool,
    used: Duration,
    is_recalled: bool,
}

/// Whether an IP address may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    Now,
    /// After this time, at the earliest.
    In(Duration),
}

/// The IP addresses that an agent holds, shared by its two threads.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    /// Held for one operation.
    state: Mutex<Held>,
    /// Rings when an IP address is wanted or returned.
    pub(crate) bell: Notify,
}

#[derive(Debug, Default)]
struct Held {
    addresses: HashMap<IpAddr, Wanted>,
    asks: Vec<Ask>,
    returns: Vec<Return>,
}

impl Holder {
    fn state(&self) -> MutexGuard<'_, Held> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an IP address may be asked now.
    pub(crate) fn turn(&self, address: IpAddr, now: Duration) -> Turn {
        const SOON: Duration = Duration::from_millis(20);
        let mut state = self.state();
        let state = &mut *state;
        let wanted = state.addresses.entry(address).or_default();
        wanted.used = now;
        if now < wanted.until && !wanted.is_recalled {
            let rest = wanted.not_before.saturating_sub(now);
            return match rest.is_zero() {
                true => Turn::Now,
                false => Turn::In(rest),
            };
        }
        if now >= wanted.until {
            wanted.is_recalled = false;
        }
        if !wanted.is_recalled && wanted.asked.is_none_or(|asked| now >= asked + REPEAT) {
            wanted.asked = Some(now);
            state.asks.push(Ask {
                address,
                sent: now.as_millis() as u64,
                holds: false,
            });
            self.bell.notify_one();
        }
        Turn::In(SOON)
    }

    /// Notes that a request is made, which [`Holder::release`] ends.
    pub(crate) fn take(&self, address: IpAddr) {
        self.state().addresses.entry(address).or_default().is_in_use = true;
    }

    /// Notes that a request has ended, and for how long the IP address rests.
    pub(crate) fn release(&self, address: IpAddr, rest: Duration, now: Duration) {
        let mut state = self.state();
        let state = &mut *state;
        if let Some(wanted) = state.addresses.get_mut(&address) {
            wanted.is_in_use = false;
            wanted.not_before = now + rest;
            if wanted.is_recalled {
                state.returns.push(wanted.give_back(address, now));
                self.bell.notify_one();
            }
        }
    }

    /// Takes a grant.
    pub(crate) fn grant(&self, grant: Grant, now: Duration) {
        let sent = Duration::from_millis(grant.sent);
        let mut state = self.state();
        let Some(wanted) = state.addresses.get_mut(&grant.address) else {
            return;
        };
        let is_fresh = sent <= now && now - sent <= FRESH;
        wanted.asked = None;
        // A new granter takes the word of a holder. By the time it answers, the window may have
        // ended, and the granter before may have granted another one.
        let is_late = grant.extends && now >= wanted.until;
        if !is_fresh || is_late || sent <= wanted.returned {
            return;
        }
        let until = sent + Duration::from_millis(grant.window).min(WINDOW);
        wanted.until = wanted.until.max(until);
        wanted.fence.open_until(wanted.until);
        let rest = Duration::from_millis(grant.rest).min(MAX_REST);
        wanted.not_before = wanted.not_before.max(now + rest);
    }

    /// Returns an IP address that another agent waits for, now or when it is used no more.
    pub(crate) fn recall(&self, address: IpAddr, now: Duration) {
        self.bell.notify_one();
        let mut state = self.state();
        let state = &mut *state;
        let Some(wanted) = state.addresses.get_mut(&address) else {
            // It was forgotten, after its window.
            state.returns.push(Return { address, rest: 0 });
            return;
        };
        match wanted.is_in_use {
            true => wanted.is_recalled = true,
            false => state.returns.push(wanted.give_back(address, now)),
        }
    }

    /// Returns what is to be sent, with extensions of windows that are used and end soon.
    pub(crate) fn outgoing(&self, window: Duration, now: Duration) -> (Vec<Ask>, Vec<Return>) {
        let mut state = self.state();
        let state = &mut *state;
        let due = state.addresses.iter_mut();
        let due = due.filter(|(_, wanted)| wanted.is_due(window, now));
        let asks = due.map(|(&address, wanted)| {
            wanted.asked = Some(now);
            Ask {
                address,
                sent: now.as_millis() as u64,
                holds: true,
            }
        });
        let mut asks: Vec<Ask> = asks.collect();
        asks.sort_unstable_by_key(|ask| ask.address);
        state.asks.extend(asks);
        if state.addresses.len() > MAX_KNOWN {
            let is_over = |wanted: &Wanted| !wanted.is_in_use && wanted.until + FRESH < now;
            state.addresses.retain(|_, wanted| !is_over(wanted));
        }
        (
            std::mem::take(&mut state.asks),
            std::mem::take(&mut state.returns),
        )
    }

    /// The fence of an IP address.
    pub(crate) fn fence(&self, address: IpAddr) -> Arc<Fence> {
        let mut state = self.state();
        Arc::clone(&state.addresses.entry(address).or_default().fence)
    }
}

impl Wanted {
    /// Whether a window is used and ends soon.
    fn is_due(&self, window: Duration, now: Duration) -> bool {
        let is_used = self.is_in_use || !self.is_recalled && now < self.used + window;
        let is_ending = now < self.until && self.until - now < window / 2;
        is_used && is_ending && self.asked.is_none_or(|asked| now >= asked + REPEAT)
    }

    fn give_back(&mut self, address: IpAddr, now: Duration) -> Return {
        self.until = Duration::ZERO;
        self.fence.close();
        (self.returned, self.asked, self.is_recalled) = (now, None, false);
        let rest = self.not_before.saturating_sub(now);
        Return {
            address,
            rest: rest.as_millis() as u64 + u64::from(!rest.is_zero()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arose::mix::SplitMix;

    const DELAY: Duration = Duration::from_millis(40);

    fn terms() -> Terms {
        Terms::new(Duration::from_secs(6))
    }

    /// A message on its way.
    #[derive(Debug)]
    enum Message {
        Ask(usize, Ask),
        Return(usize, Return),
        Answer(Answer),
    }

    /// Agents that want one IP address, with messages that are late or lost, requests of any
    /// length, agents that stop for a while, and granters that follow each other: there are never
    /// two requests at once, nor two without the delay.
    #[test]
    fn one_request_at_a_time() {
        let address = IpAddr::from([127, 0, 0, 9]);
        let partition = granting_partition(address);
        let window = window(&terms());
        let mut random = SplitMix::new(28);
        let mut n_requests = [0_u32; 3];
        let start = Duration::from_secs(1000);
        let mut granter = Granter::new(&terms(), DELAY);
        granter.open(partition, 1, start);
        let holders: [Holder; 3] = Default::default();
        // When the request of an agent ends; what is on its way, in order per sender and receiver.
        let mut ends: [Option<Duration>; 3] = [None; 3];
        let mut sleeps = [start; 3];
        let mut queues: [VecDeque<(Duration, Message)>; 6] = Default::default();
        let (mut last_end, mut epoch) = (Duration::ZERO, 1);
        let mut n_lost = 0;
        for step in 0..200_000_u64 {
            let now = start + Duration::from_millis(step);
            let mut send = |queue: &mut VecDeque<(Duration, Message)>, message| {
                if random.below(20) == 0 {
                    n_lost += 1;
                    return;
                }
                let late = if random.below(20) == 0 { 900 } else { 5 };
                let late = Duration::from_millis(random.below(late));
                let due = queue.back().map_or(now, |(due, _)| *due).max(now + late);
                queue.push_back((due, message));
            };
            if step % 20_011 == 20_010 {
                // Another granter, which knows nothing.
                epoch += 1;
                granter = Granter::new(&terms(), DELAY);
                granter.open(partition, epoch, now);
            }
            for answer in granter.look(now) {
                let (Answer::Grant(agent, _) | Answer::Recall(agent, _)) = &answer;
                let at: usize = agent.parse().unwrap();
                send(&mut queues[3 + at], Message::Answer(answer));
            }
            for at in 0..6 {
                while let Some((due, _)) = queues[at].front()
                    && *due <= now
                    && (at < 3 || sleeps[at - 3] <= now)
                {
                    let Some((_, message)) = queues[at].pop_front() else {
                        break;
                    };
                    let answer = match message {
                        Message::Ask(agent, ask) => granter.ask(&agent.to_string(), ask, now),
                        Message::Return(agent, back) => {
                            granter.take_back(&agent.to_string(), back, now)
                        }
                        Message::Answer(Answer::Grant(_, grant)) => {
                            holders[at - 3].grant(grant, now);
                            None
                        }
                        Message::Answer(Answer::Recall(_, address)) => {
                            holders[at - 3].recall(address, now);
                            None
                        }
                    };
                    if let Some(answer) = answer {
                        let (Answer::Grant(agent, _) | Answer::Recall(agent, _)) = &answer;
                        let to: usize = agent.parse().unwrap();
                        send(&mut queues[3 + to], Message::Answer(answer));
                    }
                }
            }
            for at in 0..3 {
                let holder = &holders[at];
                // The fence cuts transfers at the end of a window, of stopped agents, too.
                let is_cut = !holder.is_open(address, now);
                if ends[at].is_some_and(|end| end > Duration::ZERO) && is_cut {
                    last_end = last_end.max(now);
                }
                if sleeps[at] > now {
                    if is_cut {
                        ends[at] = ends[at].map(|_| Duration::ZERO);
                    }
                    continue;
                }
                if random_chance(step, at as u64) {
                    sleeps[at] = now + Duration::from_millis(step % 3000);
                }
                if let Some(end) = ends[at]
                    && (end <= now || is_cut)
                {
                    if end > Duration::ZERO {
                        last_end = last_end.max(now);
                    }
                    ends[at] = None;
                    holder.release(address, DELAY, now);
                }
                let (asks, returns) = holder.outgoing(window, now);
                asks.into_iter()
                    .for_each(|ask| send(&mut queues[at], Message::Ask(at, ask)));
                returns
                    .into_iter()
                    .for_each(|back| send(&mut queues[at], Message::Return(at, back)));
                if ends[at].is_none() && holder.turn(address, now) == Turn::Now {
                    holder.take(address);
                    let busy =
                        (0..3).filter(|&of| ends[of].is_some_and(|end| end > Duration::ZERO));
                    assert_eq!(busy.count(), 0, "step {step}, agent {at}");
                    assert!(now >= last_end + DELAY, "step {step}, agent {at}");
                    n_requests[at] += 1;
                    ends[at] = Some(now + Duration::from_millis(1 + step % 97));
                }
            }
        }
        assert!(n_lost > 50, "{n_lost} lost, {n_requests:?}");
        assert!(n_requests.iter().all(|&n| n > 100), "{n_requests:?}");
    }

    fn random_chance(step: u64, at: u64) -> bool {
        arose::mix::SplitMix::new(step * 3 + at).below(20_000) == 0
    }

    impl Holder {
        fn is_open(&self, address: IpAddr, now: Duration) -> bool {
            let state = self.state();
            state
                .addresses
                .get(&address)
                .is_some_and(|wanted| now < wanted.until)
        }
    }

    #[test]
    fn late_grants_do_not_count() {
        let address = IpAddr::from([127, 0, 0, 9]);
        let at = |millis: u64| Duration::from_millis(1_000_000 + millis);
        let grant = |sent: u64| Grant {
            address,
            sent: 1_000_000 + sent,
            window: 5000,
            rest: 0,
            extends: false,
        };
        let holder = Holder::default();
        assert_ne!(holder.turn(address, at(0)), Turn::Now);
        holder.grant(grant(0), at(2500));
        assert_ne!(holder.turn(address, at(2500)), Turn::Now);
        holder.grant(grant(2500), at(2510));
        assert_eq!(holder.turn(address, at(2510)), Turn::Now);
        holder.take(address);
        holder.recall(address, at(2520));
        assert_eq!(holder.outgoing(Duration::from_secs(5), at(2520)).1, []);
        holder.release(address, DELAY, at(2600));
        let returned = holder.outgoing(Duration::from_secs(5), at(2600)).1;
        assert_eq!((returned.len(), returned[0].rest), (1, 41));
        // The answer to a request from before the return.
        holder.grant(grant(2590), at(2610));
        assert_ne!(holder.turn(address, at(2700)), Turn::Now);
        // Windows are not longer than agreed.
        let long = Grant {
            window: 1 << 40,
            ..grant(2700)
        };
        holder.grant(long, at(2710));
        assert_eq!(holder.turn(address, at(2710)), Turn::Now);
        let late = Grant {
            extends: true,
            ..grant(12_690)
        };
        holder.grant(late, at(12_701));
        assert_ne!(holder.turn(address, at(12_700)), Turn::Now);
    }
}
