//! The crawl loop.

use super::background::Command;
use super::*;
use crate::counters::Counter;
use crate::frontier::{Host, HostRules, Stage};
use crate::load::{self, Sample};
use crate::settings::seconds;
use crate::statistics::LineKind;
use crate::turns::STALL;

/// How often the load is checked and the state is published.
const TICK: Duration = Duration::from_secs(1);

/// How long open requests are waited for when the crawl ends.
const GRACE: Duration = Duration::from_secs(5);

/// How long scores of pages are waited for when nothing else is left to do.
const SCORES: Duration = Duration::from_secs(30);

/// Maximum number of hosts per turn that are examined for the shelf.
const MAX_SHELVED: usize = 256;

/// Maximum number of results that are processed before requests are sent.
const BURST: usize = 64;

impl Crawl {
    /// Crawls until nothing is left to do, a limit is reached, or `control` says to stop. Then
    /// waits for open requests and leaves a state that can be resumed.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read or written. The crawl can be resumed from the last commit.
    pub async fn run(&mut self, control: &Control) -> Result<Summary, Error> {
        let mut ticked = self.now();
        let mut before = self.counters.clone();
        let mut end = None;
        let mut ended = None;
        let mut quiet = None;
        self.forget_orders()?;
        self.take_refresh()?;
        self.tell_rules_order(control)?;
        let mut burst = Vec::with_capacity(BURST);
        loop {
            let begun = self.now();
            self.take_arrived(&mut burst)?;
            while !self.is_behind()
                && let Some(report) = self.workers.try_next()?
            {
                self.take_report(report)?;
            }
            self.take_scores()?;
            self.queue_found()?;
            self.take_replies()?;
            self.take_hosts()?;
            self.recall_some();
            self.take_cluster_orders()?;
            let now = self.now();
            if now - ticked >= TICK {
                self.tick(control, &before, LineKind::Next)?;
                (ticked, before) = (now, self.counters.clone());
            }
            self.wake(now);
            self.look_up();
            end = end.or_else(|| self.limit_reached(control));
            self.recrawl.is_ending = end.is_some() || self.is_paused;
            if end.is_none() && !self.is_paused {
                self.take_turns()?;
            }
            self.commit_if_due()?;
            self.end_member_turn()?;
            self.frontier.hosts.shelve(MAX_SHELVED)?;
            ended = ended.or_else(|| self.is_urgent(control).then_some(now));
            let is_overdue = ended.is_some_and(|ended| now - ended >= GRACE);
            if (self.is_quiet() || is_overdue && self.has_read_all())
                && let Some(end) = end.or_else(|| self.exhausted_alone())
            {
                let since = *quiet.get_or_insert(now);
                let patience = if ended.is_some() { GRACE } else { SCORES };
                if !self.awaits_scores() || now - since >= patience {
                    self.close()?;
                    self.leave_cluster();
                    self.tick(control, &before, LineKind::Last)?;
                    self.settle()?;
                    return self.summary(end);
                }
            } else {
                quiet = None;
            }
            self.end_turn(begun);
            let is_ending = end.is_some() || self.is_paused || self.is_fenced();
            self.wait(control, &mut burst, is_ending).await?;
        }
    }

    /// Records the duration of a turn.
    fn end_turn(&mut self, begun: Duration) {
        let took = self.now() - begun;
        self.turns.note(took);
        if took > STALL {
            self.stalled += took;
        }
    }

    /// Processes what has arrived.
    fn take_arrived(&mut self, burst: &mut Vec<Arrived>) -> Result<(), Error> {
        for arrived in burst.drain(..) {
            self.take(arrived)?;
        }
        while let Ok(arrived) = self.arrived.try_recv() {
            self.take(arrived)?;
        }
        Ok(())
    }

    fn take(&mut self, arrived: Arrived) -> Result<(), Error> {
        match arrived {
            Arrived::Response(completed) => self.finish(*completed),
            Arrived::Address(name, found) => {
                let now = self.now();
                for host in self.names.resolved(&name, found, now) {
                    self.resolve(host, now);
                }
                Ok(())
            }
        }
    }

    /// Waits until something arrives or is due.
    async fn wait(
        &mut self,
        control: &Control,
        burst: &mut Vec<Arrived>,
        is_ending: bool,
    ) -> Result<(), Error> {
        let now = self.now();
        let mut due =
            now + TICK.min(seconds(self.settings().archive.commit).max(Duration::from_millis(10)));
        if !is_ending && self.workers.backlog() < 1.0 {
            let next = match self.has_slot() {
                true => self.frontier.bench.next_time(),
                false => self.slots.next().map(|next| next + self.stalled),
            };
            let next = next.map(|next| next.max(now + self.load.wait(now)));
            let next = next.map(|next| next.max(self.outage.next().unwrap_or_default()));
            due = next.map_or(due, |next| next.min(due));
        }
        if let Some(overdue) = self.topic.as_ref().and_then(|topic| topic.overdue()) {
            due = due.min(overdue);
        }
        let can_recall = self.dust.is_recalling() && !self.frontier.hosts.is_behind();
        if self.can_look_up() || can_recall || !self.found.is_empty() {
            due = now;
        }
        let due = self.start + due;
        let is_behind = self.is_behind();
        let cluster = self.cluster_bell();
        let report = tokio::select! {
            biased;
            _ = self.arrived.recv_many(burst, BURST) => None,
            report = self.workers.next(), if !is_behind => report,
            () = self.background.bell.notified() => None,
            () = tokio::time::sleep_until(due) => None,
            () = control.wake.notified() => None,
            () = rung(cluster.as_deref()) => None,
        };
        match report {
            Some(report) => self.take_report(report),
            None => Ok(()),
        }
    }

    /// Whether nothing is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.n_in_flight == 0 && self.has_read_all()
    }

    /// Whether pages should wait for the threads that read and write.
    pub(super) fn is_behind(&self) -> bool {
        self.background.is_behind() || self.frontier.hosts.is_behind()
    }

    /// Whether everything that arrived has been processed.
    fn has_read_all(&self) -> bool {
        let background = &self.background;
        let n_arriving = self.frontier.hosts.n_arriving();
        let n_awaited = background.n_reading + background.n_asked + background.n_recalls;
        let is_asking = n_awaited + n_arriving > 0 || self.dust.is_recalling();
        !is_asking && self.workers.n_open == 0 && self.found.is_empty() && self.n_held() == 0
    }

    /// Returns the number of pages that wait for their scores.
    fn n_held(&self) -> usize {
        self.topic.as_ref().map_or(0, |topic| topic.n_held())
    }

    /// Whether scores are outstanding for pages that did not wait for them.
    fn awaits_scores(&self) -> bool {
        self.topic.as_ref().is_some_and(|topic| topic.n_late() > 0)
    }

    /// Whether the run must end soon. Open requests then have little time, and are sent again by
    /// the next run.
    fn is_urgent(&self, control: &Control) -> bool {
        control.is_stopped() || self.is_late(control) || self.ending().is_some()
    }

    fn is_late(&self, control: &Control) -> bool {
        let stop = seconds(self.settings().stop.seconds);
        let most = control.duration().or((!stop.is_zero()).then_some(stop));
        most.is_some_and(|most| self.now() >= most)
    }

    /// Whether a host will have its turn within reasonable time.
    fn has_work(&mut self) -> bool {
        let horizon = self.now() + seconds(self.settings().stop.patience);
        let is_near = |time: Duration| time <= horizon;
        let later = self.later.peek();
        self.names.n_open() > 0
            || self.outage.is_on()
            || !self.frontier.unresolved.is_empty()
            || later.is_some_and(|Reverse((time, _))| is_near(*time))
            || self.frontier.bench.next_time().is_some_and(is_near)
    }

    /// Why there is nothing left to do; none if there is.
    pub(super) fn exhausted(&mut self) -> Option<End> {
        if self.is_paused || self.has_work() || self.recrawl.goes_on() || self.audit_rest() {
            return None;
        }
        match self.frontier.n_queued {
            0 => Some(End::Done),
            _ => Some(End::Waiting),
        }
    }

    fn limit_reached(&mut self, control: &Control) -> Option<End> {
        if control.is_stopped() {
            return Some(End::Stopped);
        }
        if let Some(ending) = self.ending() {
            return Some(self.end_of(ending));
        }
        let limit = self.limit_of_run(control)?;
        self.limit = Some(limit);
        Some(match limit {
            Limit::Outage => End::Waiting,
            Limit::Pages | Limit::Bytes | Limit::Time => End::Limit,
        })
    }

    fn limit_of_run(&self, control: &Control) -> Option<Limit> {
        let stop = &self.settings().stop;
        let is_over = |limit: u64, value: u64| limit > 0 && value >= limit;
        let outage = seconds(stop.outage);
        let n_reading = self.background.n_reading + self.frontier.n_coming;
        let n_open = self.n_in_flight + n_reading + self.n_reported + self.n_held();
        let n_answers = self.counters.get(Counter::Pages) + (n_open + self.workers.n_open) as u64;
        let is_cut_off = !outage.is_zero() && self.outage.lasted(self.now()) >= outage;
        let limits = [
            (is_cut_off, Limit::Outage),
            (is_over(stop.pages, n_answers), Limit::Pages),
            (
                is_over(stop.bytes, self.counters.get(Counter::Bytes)),
                Limit::Bytes,
            ),
            (self.is_late(control), Limit::Time),
        ];
        let reached = limits.into_iter().find(|(is_reached, _)| *is_reached);
        reached.map(|(_, limit)| limit)
    }

    /// Evaluates the last second, and publishes the state of the crawl.
    fn tick(&mut self, control: &Control, before: &Counters, line: LineKind) -> Result<(), Error> {
        let now = self.now();
        self.take_orders(control)?;
        self.look_at_scorer(control);
        self.look_at_rules(control);
        let memory = load::memory();
        let since = |counter| self.counters.get(counter) - before.get(counter);
        self.load.adapt(&Sample {
            memory,
            n_requests: since(Counter::Requests),
            n_failures: since(Counter::Failures),
            backlog: self.workers.backlog(),
        });
        self.idle.drop_old(now);
        self.frontier.rebalance();
        self.frontier.name_sites();
        self.visit_pages()?;
        let snapshot = Snapshot {
            counters: self.counters.clone(),
            n_queued: self.frontier.n_queued,
            n_hosts: self.frontier.hosts.len() as u64,
            n_in_flight: self.n_in_flight,
            is_paused: self.is_paused,
            limit: self.load.limit,
            memory,
            elapsed: now,
            n_fetched: self.n_fetched,
            turns: self.turns.clone(),
            sites: self.frontier.trusted_sites(),
            poor_sites: self.frontier.poor_sites(),
            pages_for_trust: self.frontier.pages_for_trust(),
            next: self.next_urls(),
            freshness: self.believed(),
            topic: self.topic.as_ref().map(|topic| topic.shown()),
            n_deferred: self.dust.deferred.n(),
            n_active_rules: self.dust.n_active(),
            url_rules: self.dust.shown(),
        };
        let slowest = self.slowest.rows();
        if let Some(line) = self.statistics.next_line(line, &snapshot, &slowest) {
            self.background.send(Command::Statistics(line))?;
        }
        control.show(snapshot);
        Ok(())
    }

    /// Returns the best URLs of the hosts that come first, as far as they are in memory.
    fn next_urls(&self) -> Vec<Standing> {
        const N_LISTED: usize = 10;
        let hosts = self.frontier.bench.best(N_LISTED).into_iter();
        let told = hosts.filter_map(|host| {
            let waiting = self.frontier.best_of(host)?;
            let queued = self.journal.read(waiting.place)?;
            Some(self.frontier.standing(waiting, queued.rest))
        });
        told.collect()
    }

    /// Hosts at which URLs wait that budgets or limits leave there, and those at which they wait
    /// because the host requires too long a delay.
    fn n_held_hosts(&self) -> (u64, u64) {
        let date = (self.seams.clock)().as_secs();
        let (mut n_full, mut n_deferred) = (0, 0);
        for id in 0..self.frontier.hosts.len() as HostId {
            if self.frontier.hosts.may_have_work(id) {
                let held = |host: &Host| self.is_held(host, date);
                let (is_full, is_deferred) = self.frontier.hosts.show(id, held);
                n_full += u64::from(is_full);
                n_deferred += u64::from(is_deferred);
            }
        }
        (n_full, n_deferred)
    }

    /// Whether URLs wait at a host because of a budget or limit, or because of its delay.
    fn is_held(&self, host: &Host, date: u64) -> (bool, bool) {
        let is_full = host.stage == Stage::Parked || self.has_all_pages(host);
        let robots = match &host.rules {
            HostRules::Known(robots, _) => Some(&**robots),
            _ => None,
        };
        let polite = &self.settings().polite;
        let is_deferred = !is_full && host.pace.is_deferred(robots, polite, date);
        let has_work = host.has_work();
        (is_full && has_work, is_deferred && has_work)
    }

    fn summary(&mut self, end: End) -> Result<Summary, Error> {
        let (n_full_hosts, n_deferred_hosts) = self.n_held_hosts();
        self.frontier.hosts.check()?;
        Ok(Summary {
            n_full_hosts,
            n_deferred_hosts,
            bad_seeds: self.bad_seeds.clone(),
            counters: self.counters.clone(),
            before: self.before.clone(),
            end,
            limit: self.limit,
            n_queued: self.frontier.n_queued,
            n_lost: self.frontier.n_lost(),
            n_aside: self.frontier.n_aside(),
            n_deferred: self.dust.deferred.n(),
            n_known_seeds: self.n_known_seeds,
            n_hosts: self.frontier.hosts.len() as u64,
            elapsed: self.now(),
            n_fetched: self.n_fetched,
            turns: self.turns.clone(),
        })
    }
}

/// Waits for an agent, if there is one.
async fn rung(cluster: Option<&crate::cluster::link::Shared>) {
    match cluster {
        Some(shared) => shared.bell.notified().await,
        None => std::future::pending().await,
    }
}
