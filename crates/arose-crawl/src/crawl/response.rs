//! Responses: the pace of the host, retries, and passing pages to the parsers.

use super::*;
use crate::counters::Counter;
use crate::frontier::HostRules;
use crate::journal::Event;
use crate::log::Line;
use crate::pace::{self, Pause};
use crate::page::Job;
use crate::settings::seconds;

/// Number of requests for a URL while its host says that it is busy. The response to the last
/// request is archived like any other.
const BUSY_TRIES: u8 = 5;

impl Crawl {
    /// Handles the result of a request.
    pub(super) fn finish(&mut self, completed: Completed) -> Result<(), Error> {
        let now = self.now();
        self.n_in_flight -= 1;
        self.note_answered(completed.host, completed.address);
        let ended = self.working_time();
        self.slots
            .end(&mut self.frontier.hosts[completed.host as usize], ended);
        let Completed {
            host: id,
            address,
            asked,
            since,
            stalled,
            result,
            connection,
        } = completed;
        let late = self.stalled - stalled;
        let host = &self.frontier.hosts[id as usize];
        let took = now.saturating_sub(since + late);
        self.slowest.note(id, host.authority(), took);
        if let Some(connection) = connection {
            self.idle.put(id, connection, now);
        }
        let took = result.as_ref().map_or(Duration::ZERO, |response| {
            response.took.saturating_sub(late)
        });
        self.count(&result);
        let host = &self.frontier.hosts[id as usize];
        let polite = self.settings().polite_of(&host.origin, host.name());
        let address_next = now + seconds(polite.address_delay);
        if self.is_our_fault(id, &result, now) {
            self.ask_again(id, asked);
            let host_next = now + self.delay(id, took);
            self.frontier.release(id, host_next, address, address_next);
            return Ok(());
        }
        let wait = self.pace(id, &result);
        if let Err(failure) = result {
            self.log_failure(id, &asked, failure, now - since.min(now));
        }
        match asked {
            Asked::Robots(job) => self.finish_robots(id, address, job, result)?,
            Asked::Page(page) => self.finish_page(id, address, *page, result)?,
        }
        // After the response, so that a robots.txt that has just been read already applies.
        let host_next = now + wait.max(self.delay(id, took));
        self.frontier.release(id, host_next, address, address_next);
        Ok(())
    }

    /// Whether a request failed because this machine has no connection.
    fn is_our_fault(
        &mut self,
        id: HostId,
        result: &Result<Response, Failure>,
        now: Duration,
    ) -> bool {
        let host = &self.frontier.hosts[id as usize];
        match result {
            Ok(_) => {
                self.outage.note_response();
                self.find_host(id);
                return false;
            }
            Err(failure) if failure.is_passing() => {}
            Err(_) => return false,
        }
        if host.has_answered && host.pace.n_failures == 0 {
            for id in self.outage.note_failure(id, now) {
                self.frontier.hosts[id as usize].forgive();
            }
        }
        self.outage.is_on()
    }

    /// Puts a request back as if it had not been sent.
    fn ask_again(&mut self, id: HostId, asked: Asked) {
        match asked {
            Asked::Robots(job) => self.frontier.hosts[id as usize].jobs.push_front(job),
            Asked::Page(page) => self.put_back(id, page.ticket, page.n_tries),
        }
    }

    fn count(&mut self, result: &Result<Response, Failure>) {
        match result {
            Err(failure) => self.counters.fail(*failure),
            Ok(response) => {
                let message = &response.message;
                self.counters
                    .count_status(message.head().map_or(0, |head| head.status));
                self.n_fetched += 1;
                self.load.receive(message.bytes.len() as u64);
                self.counters
                    .add(Counter::Bytes, message.bytes.len() as u64);
                self.counters
                    .add(Counter::Truncated, u64::from(message.cut.is_some()));
            }
        }
    }

    /// Returns the time before the next request to a host, whatever the result of this one.
    fn delay(&self, id: HostId, took: Duration) -> Duration {
        let host = &self.frontier.hosts[id as usize];
        let robots = match &host.rules {
            HostRules::Known(robots, _) => Some(&**robots),
            _ => None,
        };
        let date = (self.seams.clock)().as_secs();
        let polite = self.settings().polite_of(&host.origin, host.name());
        host.pace.delay(took, robots, &polite, date)
    }

    /// Adapts the pace of a host and returns how long to wait.
    fn pace(&mut self, id: HostId, result: &Result<Response, Failure>) -> Duration {
        let date = (self.seams.clock)();
        let pace = &mut self.frontier.hosts[id as usize].pace;
        let pause = pace.note(result, &self.shared.settings, date.as_secs());
        let is_busy = result.as_ref().is_ok_and(pace::is_busy);
        self.counters.add(Counter::Busy, u64::from(is_busy));
        if let Pause::Asked(wait) = pause {
            let millis = (date + wait).as_millis() as u64;
            self.journal.push(Event::NotBefore { host: id, millis });
        }
        pause.duration()
    }

    fn finish_page(
        &mut self,
        id: HostId,
        address: IpAddr,
        page: Page,
        result: Result<Response, Failure>,
    ) -> Result<(), Error> {
        let n_tries = page.n_tries.saturating_add(1);
        let tries = self.settings().fetch.tries;
        match result {
            Ok(response) => {
                if pace::is_busy(&response) && n_tries < BUSY_TRIES {
                    self.log_busy(&page, &response);
                    self.put_back(id, page.ticket, n_tries);
                    return Ok(());
                }
                if self.is_to_check(&page, &response) {
                    self.log_busy(&page, &response);
                    self.put_back(id, page.ticket, page.n_tries);
                    return Ok(());
                }
                self.workers.submit(Job {
                    host: id,
                    ticket: Some(page.ticket),
                    url: page.url,
                    kind: page.kind,
                    depth: page.depth,
                    n_redirects: page.n_redirects,
                    is_last: page.is_last,
                    of_repeat: page.of_repeat,
                    weight: page.weight,
                    found_on: page.found_on,
                    took: response.took,
                    message: response.message,
                    date: (self.seams.clock)().as_secs() as i64,
                    address,
                    revisit: page.revisit,
                })
            }
            Err(failure) => {
                self.turn_address(id, failure);
                if failure.is_passing() && n_tries < tries {
                    self.put_back(id, page.ticket, n_tries);
                } else if failure.is_of_connection() {
                    self.lose_url(id, page.ticket);
                } else {
                    self.counters.add(Counter::Lost, 1);
                    self.forget(&page.url);
                    self.done_with(id, page.ticket);
                }
                self.lose_if_dead(id);
                Ok(())
            }
        }
    }

    /// Records that a request failed.
    fn log_failure(&mut self, id: HostId, asked: &Asked, failure: Failure, took: Duration) {
        let (url, found_on) = match asked {
            Asked::Page(page) => (page.url.as_str().into(), &*page.found_on),
            Asked::Robots(job) => {
                let origin = &self.frontier.hosts[id as usize].origin;
                (format!("{origin}{}", job.rest), "")
            }
        };
        let line = Line {
            date: (self.seams.clock)().as_secs() as i64,
            reason: failure.as_str(),
            took,
            found_on,
            url: &url,
            ..Line::default()
        };
        self.lines.push_str(&line.text());
    }

    /// Records that a page is to be requested again because its host is busy.
    fn log_busy(&mut self, page: &Page, response: &Response) {
        let line = Line {
            date: (self.seams.clock)().as_secs() as i64,
            status: response.message.head().map_or(0, |head| head.status),
            n_bytes: response.message.body().len(),
            took: response.took,
            found_on: &page.found_on,
            url: page.url.as_str(),
            ..Line::default()
        };
        self.lines.push_str(&line.text());
    }

    /// Queues a URL again, after the others of its host.
    fn put_back(&mut self, id: HostId, ticket: Ticket, n_tries: u8) {
        if let Some(turn) = self.open.remove(&ticket) {
            self.journal.push(Event::Tried {
                host: id,
                place: turn.place,
                n_tries,
            });
            self.frontier.hosts[id as usize].put_back(Turn { n_tries, ..turn });
        }
    }

    /// A host that never responds is lost for now, so that not each of its URLs is waited for.
    fn lose_if_dead(&mut self, id: HostId) {
        let pace = &self.frontier.hosts[id as usize].pace;
        if pace.is_dead(self.settings()) {
            self.lose_host(id);
        }
    }

    /// Switches a failed host to its next IP address, if it has several.
    pub(super) fn turn_address(&mut self, id: HostId, failure: Failure) {
        if !failure.is_passing() {
            return;
        }
        let host = &mut self.frontier.hosts[id as usize];
        let next = self.names.turn(host.name());
        if let Some(address) = next {
            host.address = Some(address);
            self.idle.take(id, Duration::ZERO);
        }
    }
}
