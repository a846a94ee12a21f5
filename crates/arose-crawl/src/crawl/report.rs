//! Reports of readers: what a page held goes to the archive, the counters and the queues.

use super::background::Command;
use super::*;
use crate::archive::Part;
use crate::counters::{Counter, Refusal};
use crate::frontier::Novelty;

impl Crawl {
    /// Takes in what was read of a page: first its links are asked for.
    pub(super) fn take_report(&mut self, mut report: Report) -> Result<(), Error> {
        if let Some(failure) = report.failure {
            return Err(Error::Contents(failure));
        }
        let mut refused = [0; 2];
        let found_on = self.url_of(report.host, &report.rest);
        for found in std::mem::take(&mut report.links) {
            let (depth, n_redirects) = match found.is_redirect {
                true => (report.depth, report.n_redirects + 1),
                // Needed to show the page, so no further away than it is.
                false if found.kind == Kind::Requisite => (report.depth, 0),
                false => (report.depth.saturating_add(1), 0),
            };
            let pending = Pending {
                found,
                depth,
                n_redirects,
                from: Some(report.host),
                found_on: Arc::clone(&found_on),
                is_last: report.is_last,
            };
            match self.refusal(&pending) {
                Some(Refusal::NotOurs) => refused[0] += 1,
                Some(_) => refused[1] += 1,
                None => self.found.push(Item::Link(pending)),
            }
        }
        let page = Reported { report, refused };
        // What follows the links of others waits with them.
        match self.found.is_empty() {
            true => self.finish_report(page),
            false => {
                self.n_reported += 1;
                self.found.push(Item::Page(Box::new(page)));
                Ok(())
            }
        }
    }

    /// Takes in a page whose links are queued.
    pub(super) fn finish_report(&mut self, page: Reported) -> Result<(), Error> {
        let Reported { report, refused } = page;
        if report.is_unread {
            self.counters.fail(Failure::Unreadable);
        }
        self.lines.push_str(&report.line);
        let date = (self.seams.clock)().as_secs() as i64;
        let part = match report.ticket {
            Some(_) => Part::Pages,
            None => Part::Robots,
        };
        let visited = self.note_visit(&report);
        self.background.send(Command::Append {
            part,
            record: report.record,
            claim: report.claim,
            date,
            visited,
        })?;
        let Some(ticket) = report.ticket else {
            return Ok(());
        };
        self.done_with(report.host, ticket);
        if report.is_unread {
            self.counters.add(Counter::Lost, 1);
            return Ok(());
        }
        let is_again = report.revisit.is_some();
        self.counters.judge(&report.counts);
        self.counters.add(Counter::Discovered, report.n_known);
        self.counters.add(Counter::Known, report.n_known);
        for (refusal, n) in [Refusal::NotOurs, Refusal::Redirects]
            .into_iter()
            .zip(refused)
        {
            (0..n).for_each(|_| self.counters.refuse(refusal));
        }
        match report.status {
            // Each page counts once.
            _ if is_again => {}
            300..=399 => self.counters.add(Counter::Redirects, 1),
            400..=499 => self.counters.add(Counter::ClientErrors, 1),
            500.. => self.counters.add(Counter::ServerErrors, 1),
            _ => self.counters.add(Counter::Pages, u64::from(report.is_page)),
        }
        if let Some(original) = report.original.as_ref().filter(|_| !is_again) {
            let counter = match original.rule {
                "exact" => Counter::ExactDuplicates,
                _ => Counter::NearDuplicates,
            };
            self.counters.add(counter, 1);
        }
        if report.is_page && !is_again {
            let is_unfollowed = u64::from(report.is_unfollowed);
            self.counters
                .add(Counter::UnfollowedDuplicates, is_unfollowed);
            self.record_novelty(report.host, &report.rest, report.novelty);
        }
        Ok(())
    }

    /// The URL of a page of a host.
    fn url_of(&self, id: HostId, rest: &str) -> Arc<str> {
        let origin = &self.frontier.hosts[id as usize].origin;
        format!("{origin}{rest}").into()
    }

    fn record_novelty(&mut self, id: HostId, rest: &str, page: Novelty) {
        let stale_after = self.settings().duplicates.stale_after;
        let host = &mut self.frontier.hosts[id as usize];
        if page.is_duplicate || page.shape.is_some() || host.folders.is_some() {
            let folders = host.folders.get_or_insert_default();
            folders.record(rest, page, stale_after);
        }
    }
}
