//! Reports of readers: what a page held goes to the archive, the counters and the queues.

use super::*;
use crate::counters::Counter;
use crate::frontier::Novelty;
use crate::page::Report;

impl Crawl {
    /// Takes in what was read of a page.
    pub(super) fn take_report(&mut self, report: Report) -> Result<(), Error> {
        if let Some(failure) = report.failure {
            return Err(Error::Contents(failure));
        }
        if report.is_unread {
            self.counters.fail(Failure::Unreadable);
        }
        self.log.push(&report.line)?;
        let date = (self.seams.clock)().as_secs() as i64;
        let Some(ticket) = report.ticket else {
            return self.robots_archive.append(&report.record, date);
        };
        self.archive.append(&report.record, date)?;
        if let (Some(contents), Some(claim)) = (&self.shared.contents, report.claim) {
            contents.give_back(claim);
        }
        self.done_with(report.host, ticket);
        if report.is_unread {
            self.counters.add(Counter::Lost, 1);
            return Ok(());
        }
        self.counters.judge(&report.counts);
        self.counters.add(Counter::Discovered, report.n_known);
        self.counters.add(Counter::Known, report.n_known);
        match report.status {
            300..=399 => self.counters.add(Counter::Redirects, 1),
            400..=499 => self.counters.add(Counter::ClientErrors, 1),
            500.. => self.counters.add(Counter::ServerErrors, 1),
            _ => self.counters.add(Counter::Pages, u64::from(report.is_page)),
        }
        if let Some(original) = &report.original {
            let counter = match original.rule {
                "exact" => Counter::ExactDuplicates,
                _ => Counter::NearDuplicates,
            };
            self.counters.add(counter, 1);
        }
        if report.is_page {
            let is_unfollowed = u64::from(report.is_unfollowed);
            self.counters
                .add(Counter::UnfollowedDuplicates, is_unfollowed);
            self.record_novelty(report.host, &report.rest, report.novelty);
        }
        let found_on = self.url_of(report.host, &report.rest);
        for found in report.links {
            let (depth, n_redirects) = match found.is_redirect {
                true => (report.depth, report.n_redirects + 1),
                // Needed to show the page, so no further away than it is.
                false if found.kind == Kind::Requisite => (report.depth, 0),
                false => (report.depth.saturating_add(1), 0),
            };
            let from = Some(report.host);
            self.take_link(Pending {
                found,
                depth,
                n_redirects,
                from,
                found_on: Rc::clone(&found_on),
                is_last: report.is_last,
            })?;
        }
        Ok(())
    }

    /// The URL of a page of a host.
    fn url_of(&self, id: HostId, rest: &str) -> Rc<str> {
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
