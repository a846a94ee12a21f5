//! robots.txt in a crawl: requests, redirects, and the rules that then apply.

use super::*;
use crate::contain::contain;
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::frontier::{HostRules, Stage};
use crate::journal::Event;
use crate::pace;
use crate::page::Job;
use crate::robots::{self, Robots, TimeOfDay};
use crate::url::Url;

/// Maximum size in bytes of rules stored for the next run; hosts with more are requested again.
pub(super) const MAX_KEPT_RULES: usize = 64 << 10;

impl Crawl {
    /// Handles the result of a request for robots.txt.
    pub(super) fn finish_robots(
        &mut self,
        id: HostId,
        address: IpAddr,
        job: RobotsJob,
        result: Result<Response, Failure>,
    ) -> Result<(), Error> {
        self.counters.add(Counter::RobotsFiles, 1);
        let origin = &self.frontier.hosts[id as usize].origin;
        let url = NormalUrl::from_parts(origin, &job.rest);
        self.read_robots(id, job, &result)?;
        let (Ok(response), Some(url)) = (result, url) else {
            return Ok(());
        };
        self.workers.submit(Job {
            host: id,
            ticket: None,
            url,
            kind: Kind::Page,
            depth: 0,
            n_redirects: 0,
            is_last: false,
            of_repeat: false,
            weight: Weight::default(),
            found_on: "".into(),
            took: response.took,
            message: response.message,
            date: (self.seams.clock)().as_secs() as i64,
            address,
            revisit: None,
        })
    }

    fn read_robots(
        &mut self,
        id: HostId,
        mut job: RobotsJob,
        result: &Result<Response, Failure>,
    ) -> Result<(), Error> {
        let head = result
            .as_ref()
            .ok()
            .and_then(|response| response.message.head());
        let status = head.map(|head| head.status);
        let location = head.and_then(|head| head.get("location"));
        if let (Some(300..=399), Some(location)) = (status, location) {
            return self.redirect_robots(id, &job, location);
        }
        if let Err(failure) = result {
            self.turn_address(id, *failure);
        }
        let file = result
            .as_ref()
            .map(|response| robots::File::new(&response.message));
        // A failing host may succeed later, and the file is worth waiting for.
        let is_passing = match &file {
            Ok(file) => file.is_passing(),
            Err(failure) => failure.is_passing(),
        };
        job.n_tries += 1;
        if is_passing && job.n_tries < self.settings().fetch.tries {
            self.back_off(id, job.n_tries);
            self.frontier.hosts[id as usize].jobs.push_front(job);
            return Ok(());
        }
        let outcome = file.as_ref().map(robots::File::outcome);
        self.set_outcome(job.host, outcome.unwrap_or(robots::Outcome::None))
    }

    fn back_off(&mut self, id: HostId, n_tries: u8) {
        let next = self.now() + pace::backoff(self.settings(), n_tries);
        let host = &mut self.frontier.hosts[id as usize];
        host.next = host.next.max(next);
    }

    /// Follows a redirect of robots.txt to a host, which gets the request in its turn.
    fn redirect_robots(
        &mut self,
        id: HostId,
        job: &RobotsJob,
        location: &str,
    ) -> Result<(), Error> {
        let origin = &self.frontier.hosts[id as usize].origin;
        let base = Url::parse(&format!("{origin}{}", job.rest)).ok();
        let target = self.shared.normalize(location, base.as_ref()).ok();
        if job.n_redirects >= robots::MAX_REDIRECTS {
            return self.set_outcome(job.host, robots::Outcome::TooManyRedirects);
        }
        // Nor can an agent ask hosts of others.
        let target = target.filter(|url| (self.seams.is_ours)(url));
        let target = target.and_then(|url| {
            let hash = Fingerprint::of(&url).host;
            Some((self.host_of(&url, hash)?, url))
        });
        // Hosts outside the scope are not requested, so their rules cannot be learned.
        let Some((host, url)) = target else {
            return self.set_outcome(job.host, robots::Outcome::None);
        };
        self.frontier.hosts[job.host as usize].rules = HostRules::Awaited;
        let job = RobotsJob {
            host: job.host,
            rest: url.rest().into(),
            n_redirects: job.n_redirects + 1,
            n_tries: 0,
        };
        self.frontier.push_job(host, job);
        Ok(())
    }

    fn set_outcome(&mut self, id: HostId, outcome: robots::Outcome<'_>) -> Result<(), Error> {
        let date = (self.seams.clock)().as_secs();
        let host = &self.frontier.hosts[id as usize];
        let since = match (outcome.is_unreachable(), host.unreachable_since) {
            (false, _) => 0,
            (true, 0) => date.max(1),
            (true, since) => since,
        };
        let so_long = Duration::from_secs(date.saturating_sub(since));
        if host.unreachable_since != since {
            self.frontier.hosts[id as usize].unreachable_since = since;
            self.journal.push(Event::Unreachable { host: id, since });
        }
        if outcome.is_unreachable() && so_long < robots::UNREACHABLE_FOR {
            self.leave_unreachable(id);
            return Ok(());
        }
        let agent = &self.settings().agent.name;
        let Some(robots) = contain(|| Robots::from_outcome(outcome, agent, so_long)) else {
            self.counters.fail(Failure::Unreadable);
            self.leave_unreachable(id);
            return Ok(());
        };
        if self.settings().scope.sitemaps {
            self.take_sitemaps(id, &robots.sitemaps)?;
        }
        self.set_rules(id, robots);
        Ok(())
    }

    /// Defers a host whose robots.txt is not available: its queued URLs are lost for now, and the
    /// file is requested again after a day, by the next run or by a retry.
    pub(super) fn leave_unreachable(&mut self, id: HostId) {
        self.counters.add(Counter::UnreachableHosts, 1);
        let until = self.now() + robots::MAX_AGE;
        let host = &mut self.frontier.hosts[id as usize];
        host.rules = HostRules::Unknown;
        host.next = host.next.max(until);
        if !std::mem::replace(&mut host.is_lost, true) {
            self.journal.push(Event::Lost { host: id, place: 0 });
        }
        self.frontier.advance(id);
    }

    /// Stores rules for the next run.
    pub(super) fn push_rules(&mut self, host: HostId, date: u64, text: Box<str>) {
        let text = &text;
        self.journal.push(Event::Rules { host, date, text });
    }

    fn set_rules(&mut self, id: HostId, robots: Robots) {
        let date = (self.seams.clock)().as_secs();
        let text = robots.to_text();
        if text.len() <= MAX_KEPT_RULES {
            // Its sitemaps are queued first, together with other waiting URLs.
            let (host, text) = (id, text.into());
            match self.found.is_empty() {
                true => self.push_rules(host, date, text),
                false => self.found.push(Item::Rules { host, date, text }),
            }
        }
        let delay = robots.delay(TimeOfDay::from_unix(date));
        let now = self.now();
        let host = &mut self.frontier.hosts[id as usize];
        if host.pace.asked_delay != delay {
            host.pace.asked_delay = delay;
            let millis = delay.as_millis() as u64;
            self.journal.push(Event::Delay { host: id, millis });
        }
        let settings = &self.shared.settings;
        if host.pace.is_deferred(Some(&robots), &settings.polite, date) {
            self.counters.add(Counter::DeferredHosts, 1);
        }
        if host.stage != Stage::Busy {
            let polite = settings.polite_of(&host.origin, host.name());
            let delay = host
                .pace
                .delay(Duration::ZERO, Some(&robots), &polite, date);
            host.next = host.next.max(now + delay);
        }
        host.rules = HostRules::Known(Arc::new(robots), now + robots::MAX_AGE);
        // It may have waited for the rules of another host.
        self.frontier.advance(id);
    }
}
