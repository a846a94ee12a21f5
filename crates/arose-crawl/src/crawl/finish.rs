//! What came of a request: paces, retries, robots files, pages.

use super::*;
use crate::fingerprint::Fingerprint;
use crate::frontier::{Rules, Stage};
use crate::journal::Event;
use crate::page::{Job, Report};
use crate::robots::{self, Robots, TimeOfDay};
use crate::settings::seconds;
use crate::stats::Counter;
use crate::url::Url;

/// The longest that a busy or failing host is left alone before it is tried again.
const MAX_BACKOFF: Duration = Duration::from_secs(3600);
/// Successes after which a busy host is asked twice as often.
const RECOVERY: u8 = 10;
/// How often a URL is asked for while its host says that it is busy.
const BUSY_TRIES: u8 = 20;
/// Bytes of rules that are kept for the next run; who has more is asked again.
pub(super) const MAX_KEPT_RULES: usize = 64 << 10;
/// Sitemaps of one robots.txt that are read.
const MAX_SITEMAPS: usize = 100;

impl Crawl {
    /// Takes an answer in.
    pub(super) fn finish(&mut self, answer: Answer) -> Result<(), Error> {
        let now = self.now();
        self.n_in_flight -= 1;
        let Answer {
            host: id,
            address,
            asked,
            since,
            result,
            connection,
        } = answer;
        self.slowest.note(id, now - since.min(now));
        if let Some(connection) = connection {
            self.idle.put(id, connection, now);
        }
        let took = result
            .as_ref()
            .map_or(Duration::ZERO, |response| response.took);
        self.count(&result);
        let wait = self.pace(id, &result);
        match asked {
            Asked::Robots(job) => self.finish_robots(id, address, job, result)?,
            Asked::Page(page) => self.finish_page(id, address, *page, result)?,
        }
        // After the answer: a robots.txt that has just been read counts already.
        let host_next = now + wait.max(self.delay(id, took));
        let address_next = now + seconds(self.settings().polite.address_delay);
        self.frontier.release(id, host_next, address, address_next);
        Ok(())
    }

    fn count(&mut self, result: &Result<Response, Failure>) {
        match result {
            Err(failure) => self.stats.fail(*failure),
            Ok(response) => {
                let message = &response.message;
                self.stats
                    .answer(message.head().map_or(0, |head| head.status));
                self.n_fetched += 1;
                self.load.receive(message.bytes.len() as u64);
                self.stats.add(Counter::Bytes, message.bytes.len() as u64);
                self.stats
                    .add(Counter::Truncated, u64::from(message.cut.is_some()));
            }
        }
    }

    /// The time that must pass before a host is asked again, whatever came of the request.
    fn delay(&self, id: HostId, took: Duration) -> Duration {
        let polite = &self.settings().polite;
        let host = &self.frontier.hosts[id as usize];
        let adaptive = took
            .mul_f64(polite.factor.max(0.0))
            .min(seconds(polite.max_delay));
        let asked = match &host.rules {
            Rules::Known(robots, _) if !robots.request_rates.is_empty() => {
                robots.delay(TimeOfDay::from_unix((self.seams.clock)().as_secs()))
            }
            _ => host.asked_delay,
        };
        seconds(polite.delay)
            .max(adaptive)
            .max(asked)
            .max(host.busy_delay)
    }

    /// Slows down for hosts that are busy or fail, and speeds up again for those that recover;
    /// returns how long the host is to be left alone.
    fn pace(&mut self, id: HostId, result: &Result<Response, Failure>) -> Duration {
        let retry_delay = seconds(self.settings().fetch.retry_delay);
        let least = seconds(self.settings().polite.delay).max(Duration::from_secs(1));
        let host = &mut self.frontier.hosts[id as usize];
        let response = match result {
            Ok(response) => response,
            // A server that answers nonsense is there all the same.
            Err(failure) if !failure.is_passing() => return Duration::ZERO,
            Err(_) => {
                host.n_failures = host.n_failures.saturating_add(1);
                let doublings = u32::from(host.n_failures - 1).min(10);
                return (retry_delay * (1 << doublings)).min(MAX_BACKOFF);
            }
        };
        host.n_failures = 0;
        let head = response.message.head();
        if !head.is_some_and(|head| matches!(head.status, 429 | 503)) {
            host.n_successes += 1;
            if host.n_successes >= RECOVERY {
                host.n_successes = 0;
                let halved = host.busy_delay / 2;
                host.busy_delay = if halved < least {
                    Duration::ZERO
                } else {
                    halved
                };
            }
            return Duration::ZERO;
        }
        host.n_successes = 0;
        self.stats.add(Counter::Busy, 1);
        let date = (self.seams.clock)();
        let asked = head.and_then(|head| head.get("retry-after"));
        let asked = asked.and_then(|value| retry_after(value, date.as_secs()));
        let Some(wait) = asked else {
            host.busy_delay = (host.busy_delay.max(least) * 2).min(MAX_BACKOFF);
            return host.busy_delay;
        };
        let millis = (date + wait).as_millis() as u64;
        self.journal.push(Event::NotBefore { host: id, millis });
        wait
    }

    fn finish_page(
        &mut self,
        id: HostId,
        address: IpAddr,
        page: Page,
        result: Result<Response, Failure>,
    ) -> Result<(), Error> {
        let n_tries = page.n_tries + 1;
        let tries = self.settings().fetch.tries;
        match result {
            Ok(response) => {
                let status = response.message.head().map_or(0, |head| head.status);
                if matches!(status, 429 | 503) && n_tries < BUSY_TRIES {
                    self.put_back(id, page.ticket, n_tries);
                    return Ok(());
                }
                self.workers.submit(Job {
                    host: id,
                    ticket: Some(page.ticket),
                    url: page.url,
                    kind: page.kind,
                    depth: page.depth,
                    n_redirects: page.n_redirects,
                    message: response.message,
                    date: (self.seams.clock)().as_secs() as i64,
                    address,
                })
            }
            Err(failure) => {
                if failure == Failure::Unreachable {
                    self.turn_address(id);
                }
                if failure.is_passing() && n_tries < tries {
                    self.put_back(id, page.ticket, n_tries);
                } else {
                    self.stats.add(Counter::Lost, 1);
                    self.done_with(id, page.ticket);
                }
                self.give_up_if_dead(id);
                Ok(())
            }
        }
    }

    /// Puts a URL back, to be tried next.
    fn put_back(&mut self, id: HostId, ticket: Ticket, n_tries: u8) {
        if let Some(place) = self.open.remove(&ticket) {
            self.frontier.hosts[id as usize].put_back(Turn { place, n_tries });
        }
    }

    /// A host that never answers has all its URLs dropped, or each would be waited for.
    fn give_up_if_dead(&mut self, id: HostId) {
        let n_failures = self.frontier.hosts[id as usize].n_failures;
        if n_failures >= self.settings().fetch.tries.saturating_mul(3) {
            self.give_up(id);
            self.frontier.hosts[id as usize].stage = Stage::Busy;
        }
    }

    fn turn_address(&mut self, id: HostId) {
        let host = &mut self.frontier.hosts[id as usize];
        let next = self.names.turn(host.name());
        if let Some(address) = next {
            host.address = Some(address);
            self.idle.take(id, Duration::ZERO);
        }
    }

    /// What holds after the answer for a robots.txt.
    fn finish_robots(
        &mut self,
        id: HostId,
        address: IpAddr,
        job: RobotsJob,
        result: Result<Response, Failure>,
    ) -> Result<(), Error> {
        self.stats.add(Counter::RobotsFiles, 1);
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
            message: response.message,
            date: (self.seams.clock)().as_secs() as i64,
            address,
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
        // Whoever cannot answer now may do so later; the file is worth waiting for.
        let is_passing = match status {
            None => result.as_ref().is_err_and(|failure| failure.is_passing()),
            Some(status) => matches!(status, 429 | 500..=599),
        };
        job.n_tries += 1;
        if is_passing && job.n_tries < self.settings().fetch.tries {
            self.back_off(id, job.n_tries);
            self.frontier.hosts[id as usize].jobs.push_front(job);
            return Ok(());
        }
        let answer = match result {
            Ok(response) => robots::Answer::Status(status.unwrap_or(0), response.message.body()),
            Err(_) => robots::Answer::None,
        };
        self.set_answer(job.host, answer)
    }

    fn back_off(&mut self, id: HostId, n_tries: u8) {
        let now = self.now();
        let retry_delay = seconds(self.settings().fetch.retry_delay);
        let doublings = u32::from(n_tries.saturating_sub(1)).min(10);
        let host = &mut self.frontier.hosts[id as usize];
        host.next = host
            .next
            .max(now + (retry_delay * (1 << doublings)).min(MAX_BACKOFF));
    }

    /// Follows a robots.txt to where it is said to be, which is asked in its turn.
    fn redirect_robots(
        &mut self,
        id: HostId,
        job: &RobotsJob,
        location: &str,
    ) -> Result<(), Error> {
        let origin = &self.frontier.hosts[id as usize].origin;
        let base = Url::parse(&format!("{origin}{}", job.rest)).ok();
        let target = self
            .shared
            .normalizer
            .normalize(location, base.as_ref())
            .ok();
        let target = target.filter(|_| job.n_redirects < robots::MAX_REDIRECTS);
        let target = target.and_then(|url| {
            let hash = Fingerprint::of(&url).host;
            Some((self.host_of(&url, hash)?, url))
        });
        let Some((host, url)) = target else {
            return self.set_answer(job.host, robots::Answer::TooManyRedirects);
        };
        self.frontier.hosts[job.host as usize].rules = Rules::Awaited;
        self.frontier.hosts[host as usize]
            .jobs
            .push_back(RobotsJob {
                host: job.host,
                rest: url.rest().into(),
                n_redirects: job.n_redirects + 1,
                n_tries: 0,
            });
        self.frontier.advance(host);
        Ok(())
    }

    fn set_answer(&mut self, id: HostId, answer: robots::Answer<'_>) -> Result<(), Error> {
        let date = (self.seams.clock)().as_secs();
        let host = &self.frontier.hosts[id as usize];
        let since = match (answer.is_unreachable(), host.unreachable_since) {
            (false, _) => 0,
            (true, 0) => date.max(1),
            (true, since) => since,
        };
        let so_long = Duration::from_secs(date.saturating_sub(since));
        if host.unreachable_since != since {
            self.frontier.hosts[id as usize].unreachable_since = since;
            self.journal.push(Event::Unreachable { host: id, since });
        }
        if answer.is_unreachable() && so_long < robots::UNREACHABLE_FOR {
            self.leave_unreachable(id);
            return Ok(());
        }
        let agent = &self.settings().agent.name;
        let robots = Robots::from_answer(answer, agent, so_long);
        let sitemaps = robots.sitemaps.clone();
        self.set_rules(id, robots);
        match self.settings().scope.sitemaps {
            true => self.take_sitemaps(id, &sitemaps),
            false => Ok(()),
        }
    }

    /// Leaves a host alone whose robots.txt cannot be had: what waits there goes on waiting, and
    /// the file is asked for again after a day, or by the next run.
    pub(super) fn leave_unreachable(&mut self, id: HostId) {
        self.stats.add(Counter::UnreachableHosts, 1);
        let until = self.now() + robots::MAX_AGE;
        let host = &mut self.frontier.hosts[id as usize];
        host.rules = Rules::Unknown;
        host.next = host.next.max(until);
        self.frontier.advance(id);
    }

    fn set_rules(&mut self, id: HostId, robots: Robots) {
        let date = (self.seams.clock)().as_secs();
        let text = robots.to_text();
        if text.len() <= MAX_KEPT_RULES {
            let text = &text;
            self.journal.push(Event::Rules {
                host: id,
                date,
                text,
            });
        }
        let delay = robots.delay(TimeOfDay::from_unix(date));
        let now = self.now();
        let host = &mut self.frontier.hosts[id as usize];
        host.rules = Rules::Known(Arc::new(robots), now + robots::MAX_AGE);
        if host.stage != Stage::Busy {
            host.next = host.next.max(now + delay);
        }
        if host.asked_delay != delay {
            host.asked_delay = delay;
            let millis = delay.as_millis() as u64;
            self.journal.push(Event::Delay { host: id, millis });
        }
        // It may have waited for what another host had to say.
        self.frontier.advance(id);
    }

    fn take_sitemaps(&mut self, id: HostId, sitemaps: &[String]) -> Result<(), Error> {
        let base = Url::parse(&self.frontier.hosts[id as usize].origin).ok();
        for text in sitemaps.iter().take(MAX_SITEMAPS) {
            let url = self.shared.normalizer.normalize(text, base.as_ref());
            let mut counts = crate::guard::Counts::default();
            let judged = url.map_err(Into::into).and_then(|url| {
                let candidate = crate::guard::Candidate {
                    url: &url,
                    link_depth: 0,
                    robots: None,
                };
                self.shared.guard.approve(&candidate).map(|()| url)
            });
            counts.add(judged.as_ref().map(|_| ()).map_err(|reason| *reason));
            self.stats.judge(&counts);
            if let Ok(url) = judged {
                let found = Found {
                    fingerprint: Fingerprint::of(&url),
                    url,
                    kind: Kind::Sitemap,
                    is_redirect: false,
                };
                self.take_link(Pending {
                    found,
                    depth: 0,
                    n_redirects: 0,
                    from: Some(id),
                })?;
            }
        }
        Ok(())
    }

    /// Takes in what was read of a page.
    pub(super) fn take_report(&mut self, report: Report) -> Result<(), Error> {
        if let Some(failure) = report.failure {
            return Err(Error::Contents(failure));
        }
        let Some(ticket) = report.ticket else {
            return self.robots_archive.append(&report.record);
        };
        self.archive.append(&report.record)?;
        self.done_with(report.host, ticket);
        self.stats.judge(&report.counts);
        self.stats.add(Counter::Discovered, report.n_known);
        self.stats.add(Counter::Known, report.n_known);
        match report.status {
            300..=399 => self.stats.add(Counter::Redirects, 1),
            400..=499 => self.stats.add(Counter::ClientErrors, 1),
            500.. => self.stats.add(Counter::ServerErrors, 1),
            _ => self.stats.add(Counter::Pages, u64::from(report.is_page)),
        }
        if let Some(original) = &report.original {
            let counter = match original.rule {
                "exact" => Counter::ExactDuplicates,
                _ => Counter::NearDuplicates,
            };
            self.stats.add(counter, 1);
        }
        if report.is_page {
            let host = &mut self.frontier.hosts[report.host as usize];
            let is_duplicate = report.original.is_some();
            if is_duplicate || host.folders.is_some() {
                host.folders
                    .get_or_insert_default()
                    .record(&report.rest, is_duplicate);
            }
        }
        for found in report.links {
            let (depth, n_redirects) = match found.is_redirect {
                true => (report.depth, report.n_redirects + 1),
                false => (report.depth.saturating_add(1), 0),
            };
            let from = Some(report.host);
            self.take_link(Pending {
                found,
                depth,
                n_redirects,
                from,
            })?;
        }
        Ok(())
    }
}

/// The time that `Retry-After` asks for: seconds, or a date.
pub(crate) fn retry_after(value: &str, unix_seconds: u64) -> Option<Duration> {
    const MOST: u64 = 24 * 3600;
    let seconds = match value.trim().parse::<u64>() {
        Ok(seconds) => seconds,
        Err(_) => http_date(value)?.saturating_sub(unix_seconds),
    };
    Some(Duration::from_secs(seconds.min(MOST)))
}

/// Seconds since 1970 of `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = text.split_once(',')?.1.split_whitespace();
    let day = words.next()?;
    let month = MONTHS.find(words.next().filter(|month| month.len() == 3)?)? / 3 + 1;
    let (year, clock) = (words.next()?, words.next()?);
    let iso = format!("{year}-{month:02}-{day:0>2}T{clock}Z");
    u64::try_from(arose_corpus::time::parse(&iso)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_seconds() {
        assert_eq!(
            http_date("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777)
        );
        assert_eq!(http_date("gibberish, 1 2 3 4"), None);
        assert_eq!(retry_after("120", 0), Some(Duration::from_secs(120)));
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(retry_after(date, 784_111_770), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(date, 784_111_780), Some(Duration::ZERO));
        assert_eq!(
            retry_after("999999999999", 0),
            Some(Duration::from_secs(86400))
        );
        assert_eq!(retry_after("soon", 0), None);
    }
}
