//! Chooses and sends the next request to a host.

use std::cell::RefCell;

use super::background::Text;
use super::*;
use crate::contain::contain_async;
use crate::counters::Counter;
use crate::fetch::Request;
use crate::frontier::{Arriving, Host, HostRules, PROBE, Stage, Taken};
use crate::guard::{Candidate, Guard, Reason};
use crate::journal::{Event, Kind};
use crate::log::Line;
use crate::names::HostAddress;
use crate::pace::{DEFERRED, opens_in};
use crate::robots::Robots;

/// Maximum number of URLs examined in one turn if robots.txt disallows one after another.
const MAX_SKIPS: usize = 1000;

/// Maximum number of hosts per turn whose IP addresses are looked up.
const MAX_RESOLVED: usize = 1000;

/// What to request from a host.
enum Next {
    Page(Box<Page>),
    /// Its URL is being read from the file.
    Reading,
    Nothing,
}

impl Crawl {
    /// Sends as many requests as are allowed now.
    pub(super) fn take_turns(&mut self) -> Result<(), Error> {
        let now = self.now();
        self.slots.age(
            &mut self.frontier.hosts,
            self.start.elapsed().saturating_sub(self.stalled),
        );
        while self.has_slot()
            && self.workers.backlog() < 1.0
            && self.load.wait(now).is_zero()
            && self.outage.admits(now)
        {
            match self.frontier.take(now) {
                Some(Taken::Host(host)) => self.begin(host, now)?,
                Some(Taken::Later) => {}
                None => break,
            }
        }
        Ok(())
    }

    /// Whether another request may be open.
    pub(super) fn has_slot(&self) -> bool {
        let limit = self.load.limit;
        let n_reading = self.background.n_reading + self.frontier.n_coming;
        self.n_in_flight + n_reading - self.slots.n_apart(limit) < limit
    }

    /// Continues with hosts that were read into memory.
    pub(super) fn take_hosts(&mut self) -> Result<(), Error> {
        while let Some((id, arriving)) = self.frontier.hosts.next_arrived() {
            self.take_host(id, &arriving)?;
        }
        Ok(())
    }

    pub(super) fn take_host(&mut self, id: HostId, arriving: &Arriving) -> Result<(), Error> {
        self.frontier.hosts.check()?;
        let now = self.now();
        if let Some(taken) = arriving.taken
            && self.frontier.claim(taken)
        {
            self.begin(id, now)?;
        }
        if arriving.resolves {
            self.resolve(id, now);
        }
        if arriving.moves {
            self.frontier.move_up(id);
        }
        if arriving.advances {
            self.frontier.advance(id);
        }
        if arriving.recalls {
            self.recall_host(id);
        }
        for &(tag, number) in &arriving.lifts {
            let lifted = self.frontier.lift(id, tag, number);
            self.note_weight(id, lifted);
        }
        for &(rest_hash, mass) in &arriving.masses {
            let changed = self.frontier.reweigh(id, rest_hash, mass);
            self.note_weight(id, changed);
        }
        for &(rest_hash, gift) in &arriving.gifts {
            let given = self.frontier.give(id, rest_hash, gift);
            self.note_weight(id, given);
        }
        self.frontier.raise_first(id);
        Ok(())
    }

    /// Whether a DNS lookup may start now.
    pub(super) fn can_look_up(&self) -> bool {
        !self.frontier.unresolved.is_empty()
            && self.names.has_room()
            && !self.frontier.hosts.is_behind()
    }

    /// Starts the DNS lookups that are needed, as far as allowed.
    pub(super) fn look_up(&mut self) {
        let now = self.now();
        for _ in 0..MAX_RESOLVED {
            if !self.can_look_up() {
                break;
            }
            if let Some(id) = self.frontier.unresolved.pop_front() {
                self.resolve(id, now);
            }
        }
        while let Some(name) = self.names.next_question() {
            let (seams, sent) = (Rc::clone(&self.seams), self.sent.clone());
            tokio::task::spawn_local(async move {
                let found = contain_async(async { seams.resolver.resolve(&name).await }).await;
                let found = found.unwrap_or(Err(NoAddress::Failed));
                let _ = sent.send(Arrived::Address(name, found)).await;
            });
        }
    }

    /// Continues with a host that waits for its IP address.
    pub(super) fn resolve(&mut self, id: HostId, now: Duration) {
        if !self.frontier.hosts.bring(id) {
            self.frontier.hosts.arriving(id).resolves = true;
            return;
        }
        let host = &mut self.frontier.hosts[id as usize];
        if host.is_file() {
            host.be_here();
            self.frontier.advance(id);
            return;
        }
        match self.names.want(host.name(), id, now) {
            HostAddress::At(address) => {
                host.address = Some(address);
                host.pace.n_failures = 0;
                host.stage = Stage::Rest;
                self.frontier.advance(id);
            }
            HostAddress::Soon => {}
            HostAddress::Nowhere(NoAddress::Unknown, _) => {
                self.counters.add(Counter::UnknownNames, 1);
                self.give_up(id);
            }
            HostAddress::Nowhere(NoAddress::Failed, until) => {
                // While DNS servers fail for all names, the failure of one name means nothing.
                let counts = !self.names.are_failing();
                host.pace.n_failures = host.pace.n_failures.saturating_add(u8::from(counts));
                if host.pace.n_failures > self.settings().fetch.tries {
                    self.log_nameless(id);
                    self.lose_host(id);
                    self.later.push(Reverse((now + PROBE, id)));
                } else {
                    self.later.push(Reverse((until, id)));
                }
            }
        }
    }

    /// Continues with the hosts that have waited long enough for DNS lookups.
    pub(super) fn wake(&mut self, now: Duration) {
        while let Some(&Reverse((time, id))) = self.later.peek()
            && time <= now
        {
            self.later.pop();
            self.frontier.unresolved.push_back(id);
        }
    }

    /// Drops all URLs queued at a host whose name does not exist.
    pub(super) fn give_up(&mut self, id: HostId) {
        let host = &mut self.frontier.hosts[id as usize];
        host.stage = Stage::Rest;
        let places = host.drain();
        self.counters.add(Counter::Lost, places.len() as u64);
        let origin = host.origin.clone();
        for &place in &places {
            self.done(id, place);
        }
        self.given_up.push(GivenUp { origin, places });
        self.drop_jobs(id);
    }

    /// Logs why a queued URL is given up without a request.
    fn log_untried(&mut self, id: HostId, text: &Text, reason: &str) {
        let origin = &self.frontier.hosts[id as usize].origin;
        let date = (self.seams.clock)().as_secs() as i64;
        self.lines.push_str(&text.untried(origin, reason, date));
    }

    /// Logs that the DNS servers of a host fail, with the URL that would have been requested first.
    fn log_nameless(&mut self, id: HostId) {
        let origin = &self.frontier.hosts[id as usize].origin;
        let line = Line {
            date: (self.seams.clock)().as_secs() as i64,
            reason: "dns-failed",
            url: &format!("{origin}/robots.txt"),
            ..Line::default()
        };
        self.lines.push_str(&line.text());
    }

    /// Gives up a host that cannot be reached. All its URLs are lost for now: they are requested
    /// again after a day, by the next run or by a retry.
    pub(super) fn lose_host(&mut self, id: HostId) {
        let until = self.now() + PROBE;
        let host = &mut self.frontier.hosts[id as usize];
        host.next = host.next.max(until);
        host.pace.n_failures = 0;
        if !std::mem::replace(&mut host.is_lost, true) {
            self.journal.push(Event::Lost { host: id, place: 0 });
        }
        self.drop_jobs(id);
    }

    /// Records that a URL is lost for now.
    pub(super) fn lose_url(&mut self, id: HostId, ticket: Ticket) {
        let until = self.now() + PROBE;
        if let Some(turn) = self.open.remove(&ticket) {
            let host = &mut self.frontier.hosts[id as usize];
            host.lost.push(turn);
            host.wakes = host.wakes.max(until);
            let place = turn.place;
            self.journal.push(Event::Lost { host: id, place });
        }
    }

    /// Records that a host can be reached again.
    pub(super) fn find_host(&mut self, id: HostId) {
        let host = &mut self.frontier.hosts[id as usize];
        host.has_answered = true;
        if std::mem::take(&mut host.is_lost) {
            host.forgive();
            self.journal.push(Event::Found { host: id });
        }
    }

    /// Drops the robots.txt requests to a host. Other hosts that wait for a file there get none.
    fn drop_jobs(&mut self, id: HostId) {
        let jobs = std::mem::take(&mut self.frontier.hosts[id as usize].jobs);
        for job in jobs.into_iter().filter(|job| job.host != id) {
            self.leave_unreachable(job.host);
        }
    }

    /// Completes a URL that was fetched or read.
    pub(super) fn done_with(&mut self, host: HostId, ticket: Ticket) {
        if let Some(turn) = self.open.remove(&ticket) {
            self.done(host, turn.place);
        }
    }

    /// Removes a URL from the queue permanently.
    pub(super) fn done(&mut self, host: HostId, place: Place) {
        // A page that was visited again was counted at its first fetch.
        let event = match self.end_visit(host, place) {
            true => Event::Dropped { host, place },
            false => Event::Done { host, place },
        };
        self.journal.push(event);
        self.frontier.n_queued = self.frontier.n_queued.saturating_sub(1);
    }

    /// Removes a URL from the queue that must not be requested.
    pub(super) fn drop_url(&mut self, host: HostId, place: Place) {
        self.forbid(host, place);
        self.journal.push(Event::Dropped { host, place });
        self.frontier.n_queued = self.frontier.n_queued.saturating_sub(1);
    }

    /// Sends a request to a host that was taken off the workbench, or releases the host.
    fn begin(&mut self, id: HostId, now: Duration) -> Result<(), Error> {
        let host = &mut self.frontier.hosts[id as usize];
        let Some(address) = host.address else {
            return Ok(());
        };
        if self.slots.hold_back(host, self.load.limit) {
            let next = Slots::again(now);
            self.frontier.release(id, next, address, now);
            return Ok(());
        }
        // If the host name was forgotten, it is looked up again, as that of a new host.
        let is_file = host.is_file();
        if !is_file && !self.names.knows(host.name()) {
            host.address = None;
            self.frontier.release(id, now, address, now);
            return Ok(());
        }
        // Starts a new lookup if the result is too old, which is used in the meantime.
        if !is_file
            && let HostAddress::At(current) = self.names.want(host.name(), id, now)
            && current != address
        {
            host.address = Some(current);
            self.idle.take(id, now);
            self.frontier.release(id, now, address, now);
            return Ok(());
        }
        if let Some(job) = host.jobs.pop_front() {
            self.ask(id, address, Asked::Robots(job), now);
            return Ok(());
        }
        if is_file {
            host.allow_all();
        }
        host.read_rules();
        let robots = match &host.rules {
            HostRules::Known(robots, until) if now < *until => Arc::clone(robots),
            HostRules::Awaited => {
                self.frontier.release(id, now, address, now);
                return Ok(());
            }
            HostRules::Unknown | HostRules::Known(..) | HostRules::Kept(..) => {
                let rest = "/robots.txt".into();
                let job = RobotsJob {
                    host: id,
                    rest,
                    n_redirects: 0,
                    n_tries: 0,
                };
                self.ask(id, address, Asked::Robots(job), now);
                return Ok(());
            }
        };
        let date = (self.seams.clock)().as_secs();
        let pace = &self.frontier.hosts[id as usize].pace;
        if pace.is_deferred(Some(&*robots), &self.settings().polite, date) {
            self.counters.add(Counter::DeferredHosts, 1);
            self.frontier.release(id, now + DEFERRED, address, now);
            return Ok(());
        }
        if let Some(wait) = opens_in(&robots, date) {
            self.frontier.release(id, now + wait, address, now);
            return Ok(());
        }
        if self.has_all_pages(&self.frontier.hosts[id as usize]) {
            self.frontier.release(id, now + DEFERRED, address, now);
            return Ok(());
        }
        if let Some(wait) = self.wait_for_new(id) {
            self.frontier.release(id, now + wait, address, now);
            return Ok(());
        }
        let next = self.next_page(id, &robots, now)?;
        self.ask_for(id, address, next, now);
        Ok(())
    }

    /// Requests the next page of a host, or releases the host.
    fn ask_for(&mut self, id: HostId, address: IpAddr, next: Next, now: Duration) {
        match next {
            Next::Page(page) => {
                // Budgets are for new pages only.
                if page.revisit.is_none() {
                    self.recrawl.spend_new();
                    self.count_page(id);
                    let site = self.frontier.hosts[id as usize].site;
                    self.frontier.count_pages(site, 1);
                }
                self.ask(id, address, Asked::Page(page), now);
            }
            Next::Reading => {}
            Next::Nothing => self.frontier.release(id, now, address, now),
        }
    }

    /// Continues with a host whose URL was read back.
    pub(super) fn go_on(&mut self, id: HostId, turn: Turn, text: &Text) -> Result<(), Error> {
        let now = self.now();
        let host = &mut self.frontier.hosts[id as usize];
        let Some(address) = host.address else {
            return Ok(());
        };
        let HostRules::Known(robots, _) = &host.rules else {
            host.put_back(turn);
            self.frontier.release(id, now, address, now);
            return Ok(());
        };
        let robots = Arc::clone(robots);
        let next = match self.admit(id, turn, text, &robots, now) {
            Some(page) => Next::Page(Box::new(page)),
            None => self.next_page(id, &robots, now)?,
        };
        self.ask_for(id, address, next, now);
        Ok(())
    }

    /// Whether the host has reached the maximum number of pages in its settings.
    pub(super) fn has_all_pages(&self, host: &Host) -> bool {
        let settings = self.settings().of_host(&host.origin, host.name());
        let most = settings.and_then(|settings| settings.max_pages);
        let n_pages = || self.n_host_pages.get(host.name()).copied().unwrap_or(0);
        most.is_some_and(|most| n_pages() >= most)
    }

    /// Counts a request for a page, if the number is limited.
    fn count_page(&mut self, id: HostId) {
        let host = &self.frontier.hosts[id as usize];
        let settings = self.settings().of_host(&host.origin, host.name());
        if settings.is_some_and(|settings| settings.max_pages.is_some()) {
            *self.n_host_pages.entry(host.name().to_owned()).or_default() += 1;
        }
    }

    /// Returns the next URL of a host that may be fetched.
    fn next_page(&mut self, id: HostId, robots: &Robots, now: Duration) -> Result<Next, Error> {
        for _ in 0..MAX_SKIPS {
            let share = self.visit_share(id);
            let host = &mut self.frontier.hosts[id as usize];
            let turn = host.pop_shared(share);
            let Some(turn) = turn.or_else(|| host.pop_woken(now)) else {
                return Ok(Next::Nothing);
            };
            let text = match self.journal.read(turn.place) {
                Some(queued) => queued.into(),
                None => match self.background.read(id, turn)? {
                    Some(text) => text,
                    None => return Ok(Next::Reading),
                },
            };
            if let Some(page) = self.admit(id, turn, &text, robots, now) {
                return Ok(Next::Page(Box::new(page)));
            }
        }
        Ok(Next::Nothing)
    }

    /// Returns the page of a URL, if it may be fetched now. Otherwise, the URL is dropped or put
    /// aside.
    fn admit(
        &mut self,
        id: HostId,
        turn: Turn,
        text: &Text,
        robots: &Robots,
        now: Duration,
    ) -> Option<Page> {
        let stale_after = self.settings().duplicates.stale_after;
        // Its archive is gone, and with it the version to compare with.
        if self.recrawl.is_forgotten(turn.place) {
            self.done(id, turn.place);
            return None;
        }
        let host = &mut self.frontier.hosts[id as usize];
        let url = NormalUrl::from_parts(&host.origin, &text.rest);
        let Some(url) = url.filter(|url| robots.verdict(url).allowed) else {
            self.counters.add(Counter::Disallowed, 1);
            self.log_untried(id, text, "robots");
            self.forget_at(id, text);
            self.drop_url(id, turn.place);
            return None;
        };
        if let Err(reason) = approve(&self.shared.guard, &url, text) {
            self.counters.add(Counter::Withdrawn, 1);
            self.log_untried(id, text, reason.as_str());
            self.forget(&url);
            self.drop_url(id, turn.place);
            return None;
        }
        if self.puts_off(id, turn, &url, text, robots) {
            return None;
        }
        let host = &mut self.frontier.hosts[id as usize];
        let turn = turn.without_recall();
        let folders = host.folders.as_deref_mut();
        let is_new = text.depth > 0 && !self.recrawl.is_again(turn.place);
        let conduct = self.frontier.conduct.get_mut(&host.site);
        let folders = folders.filter(|_| text.of_repeat);
        let is_stale = is_new
            && (folders.is_some_and(|folders| !folders.admits(url.rest(), stale_after, now))
                || stale_after > 0 && conduct.is_some_and(|conduct| !conduct.admits(now)));
        if is_stale {
            self.counters.add(Counter::Stale, 1);
            host.aside.push(turn);
            host.wakes = now + PROBE;
            return None;
        }
        if self.sinks(id, turn, text, &url) {
            return None;
        }
        let weight = self.unfocused(turn.weight, &url);
        let host = &self.frontier.hosts[id as usize];
        let (revisit, condition) = self.recrawl.visit(id, turn.place);
        self.n_tickets += 1;
        self.open.insert(self.n_tickets, turn);
        Some(Page {
            ticket: self.n_tickets,
            n_tries: turn.n_tries,
            url,
            kind: text.kind,
            depth: text.depth,
            n_redirects: text.n_redirects,
            is_last: text.is_last,
            of_repeat: text.of_repeat,
            weight: revisit.as_ref().map_or(weight, |revisit| revisit.weight()),
            found_on: text.found_on(&host.origin).into(),
            revisit,
            condition,
        })
    }

    fn ask(&mut self, id: HostId, address: IpAddr, asked: Asked, now: Duration) {
        let host = &self.frontier.hosts[id as usize];
        let (rest, kind) = match &asked {
            Asked::Robots(job) => (&*job.rest, Kind::Page),
            Asked::Page(page) => (page.url.rest(), page.kind),
        };
        let mut request = request(host, address, rest, kind);
        if let Asked::Page(page) = &asked {
            request.condition.clone_from(&page.condition);
        }
        request.kept = RefCell::new(self.idle.take(id, now));
        let (fetcher, sent) = (Rc::clone(&self.fetcher), self.sent.clone());
        self.n_in_flight += 1;
        let (started, stalled) = (self.working_time(), self.stalled);
        self.slots
            .begin(id, &mut self.frontier.hosts[id as usize], started);
        self.counters.add(Counter::Requests, 1);
        tokio::task::spawn_local(async move {
            let fetched = contain_async(fetcher.fetch(&request)).await;
            let connection = request.kept.take().filter(|_| fetched.is_some());
            let result = fetched.unwrap_or(Err(Failure::Unreadable));
            let completed = Completed {
                host: id,
                address,
                asked,
                since: now,
                stalled,
                result,
                connection,
            };
            let _ = sent.send(Arrived::Response(Box::new(completed))).await;
        });
    }
}

/// Whether a queued URL is still in scope: the settings may have changed since it was found.
fn approve(guard: &Guard, url: &NormalUrl, text: &Text) -> Result<(), Reason> {
    let candidate = Candidate {
        url,
        link_depth: text.depth,
        robots: None,
    };
    guard.approve_for(&candidate, text.kind.into())
}

fn request(host: &Host, address: IpAddr, rest: &str, kind: Kind) -> Request {
    Request {
        address: super::store::socket(host, address),
        name: host.name().into(),
        authority: host.authority().into(),
        is_tls: host.is_tls(),
        is_file: host.is_file(),
        rest: rest.into(),
        kind,
        condition: None,
        kept: RefCell::default(),
    }
}
