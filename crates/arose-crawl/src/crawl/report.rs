//! Reports of readers: what a page held goes to the archive, the counters and the queues.

use super::*;
use crate::counters::Counter;
use crate::page::Report;

impl Crawl {
    /// Takes in what was read of a page.
    pub(super) fn take_report(&mut self, report: Report) -> Result<(), Error> {
        if let Some(failure) = report.failure {
            return Err(Error::Contents(failure));
        }
        let Some(ticket) = report.ticket else {
            return self.robots_archive.append(&report.record);
        };
        self.archive.append(&report.record)?;
        if let (Some(contents), Some(claim)) = (&self.shared.contents, report.claim) {
            contents.give_back(claim);
        }
        self.done_with(report.host, ticket);
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
