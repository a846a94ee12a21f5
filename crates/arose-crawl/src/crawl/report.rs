//! Reports of parsed pages: updates the archive, the counters and the queues.

use arose::digest::digest64;

use super::background::Command;
use super::*;
use crate::archive::Part;
use crate::counters::{Counter, Refusal};
use crate::frontier::{LOW, Novelty, SPAM};

/// The quality of a page, as far as known.
struct PageQuality {
    host: HostId,
    weight: f32,
    own: f32,
    template: Option<u64>,
    rejected_by: Option<Box<str>>,
}

impl Crawl {
    /// Accepts a parsed page. Its links are looked up first.
    pub(super) fn take_report(&mut self, report: Report) -> Result<(), Error> {
        match self.hold(report) {
            Some(report) => self.take_read(report),
            None => Ok(()),
        }
    }

    /// Accepts a page whose score is known or not waited for.
    pub(super) fn take_read(&mut self, mut report: Report) -> Result<(), Error> {
        if let Some(failure) = report.failure {
            return Err(Error::Contents(failure));
        }
        let mut refused = [0; 2];
        let found_on = self.url_of(report.host, &report.rest);
        let gifts = Gifts::of(&report);
        let parent = self.parent(&mut report);
        let of_repeat = self.leads_to_repeats(&report);
        self.meet_words(&report);
        for found in std::mem::take(&mut report.links) {
            let (depth, n_redirects) = match found.is_redirect {
                true => (report.depth, report.n_redirects + 1),
                // A part of the page, so it has the same depth.
                false if found.kind == Kind::Requisite => (report.depth, 0),
                false => (report.depth.saturating_add(1), 0),
            };
            let pending = Pending {
                depth,
                n_redirects,
                from: Some(report.host),
                found_on: Arc::clone(&found_on),
                is_last: report.is_last,
                of_repeat,
                gift: gifts.to(&found),
                is_again: report.revisit.is_some(),
                parent,
                mark: None,
                found,
            };
            match self.refusal(&pending) {
                Some(Refusal::NotOurs) => {
                    refused[0] += 1;
                    self.send_away(&pending);
                }
                Some(_) => refused[1] += 1,
                None => self.push_found(pending),
            }
        }
        let page = Reported { report, refused };
        // A page waits with the links that were found before it.
        match self.found.is_empty() {
            true => self.finish_report(page, 0),
            false => {
                self.n_reported += 1;
                self.found.push(Item::Page(Box::new(page)));
                Ok(())
            }
        }
    }

    /// Completes a page whose links are queued; so many of them are new and lead to its host.
    pub(super) fn finish_report(&mut self, page: Reported, n_found: u32) -> Result<(), Error> {
        let Reported {
            mut report,
            refused,
        } = page;
        self.learn_from(&mut report);
        if report.is_unread {
            self.counters.fail(Failure::Unreadable);
        }
        // A page contributes to known pages only when it is fetched for the first time.
        if report.ticket.is_some() && report.revisit.is_none() {
            self.pass_on(&report);
        }
        let lesson = self.lesson(&report);
        self.lines.push_str(&report.line);
        let date = (self.seams.clock)().as_secs() as i64;
        let part = match report.ticket {
            Some(_) => Part::Pages,
            None => Part::Robots,
        };
        let visited = self.note_visit(&report);
        self.recrawl.hear(&report.announced);
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
        self.learn(lesson);
        if report.is_unread {
            self.counters.add(Counter::Lost, 1);
            return Ok(());
        }
        let judged = PageQuality {
            host: report.host,
            weight: report.quality,
            own: report.own_quality,
            template: report.template,
            rejected_by: report.rejected_by,
        };
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
            let novelty = Novelty {
                n_found,
                ..report.novelty
            };
            self.record_novelty(report.host, &report.rest, novelty);
            self.record_quality(&judged);
        }
        Ok(())
    }

    /// Adds the contributions of a page to the known pages that it links to, and to its original.
    fn pass_on(&mut self, report: &Report) {
        let gifts = Gifts::of(report);
        for &known in &report.known {
            self.give(report.host, known, gifts.link);
        }
        if let Some(original) = report.original_key {
            self.give(report.host, original, gifts.original);
        }
    }

    /// Returns the URL of a page of a host.
    fn url_of(&self, id: HostId, rest: &str) -> Arc<str> {
        let origin = &self.frontier.hosts[id as usize].origin;
        format!("{origin}{rest}").into()
    }

    /// Counts a page by its quality, and updates the quality of its site.
    fn record_quality(&mut self, page: &PageQuality) {
        let counts = [
            (Counter::LowQuality, page.weight < LOW),
            (Counter::SpamLike, page.weight <= SPAM),
        ];
        for (counter, is_counted) in counts {
            self.counters.add(counter, is_counted.into());
        }
        if let Some(rule) = &page.rejected_by {
            self.counters.reject_quality(rule);
        }
        let site = self.frontier.hosts.site(page.host);
        let conduct = self.frontier.conduct.entry(site).or_default();
        let was_bad = conduct.is_bad();
        conduct.record(page.own);
        let mut n_fallen = u64::from(!was_bad && conduct.is_bad());
        if let Some(template) = page.template {
            for site in self.frontier.templates.record(template, site) {
                let conduct = self.frontier.conduct.entry(site).or_default();
                n_fallen += u64::from(!conduct.is_bad());
                conduct.join_template();
            }
        }
        self.frontier.note_quality(site);
        self.counters.add(Counter::BadSites, n_fallen);
    }

    /// Whether the URLs found on a page are those of a page that repeats others.
    fn leads_to_repeats(&self, report: &Report) -> bool {
        let page = &report.novelty;
        if !report.is_page {
            return page.of_repeat;
        }
        // A seed is named for the pages it links to.
        let folders = &self.frontier.hosts[report.host as usize].folders;
        report.depth > 0
            && report.revisit.is_none()
            && (page.original.is_some()
                || folders.as_ref().is_some_and(|folders| folders.knows(page)))
    }

    /// Makes the words of a page known to the pages that are read before its links are queued.
    fn meet_words(&mut self, report: &Report) {
        let page = &report.novelty;
        if report.is_page && report.revisit.is_none() && page.shape.is_some() {
            let host = &mut self.frontier.hosts[report.host as usize];
            host.folders.get_or_insert_default().meet(page);
        }
    }

    fn record_novelty(&mut self, id: HostId, rest: &str, page: Novelty) {
        let stale_after = self.settings().duplicates.stale_after;
        let host = &mut self.frontier.hosts[id as usize];
        if page.original.is_some() || page.shape.is_some() || host.folders.is_some() {
            let folders = host.folders.get_or_insert_default();
            folders.record(rest, page, stale_after);
        }
    }
}

/// The contributions of a page.
#[derive(Debug, Clone, Copy)]
struct Gifts {
    /// To each page that it links to.
    link: Gift,
    /// To the page that it duplicates.
    original: Gift,
    /// To the parts needed to show it.
    requisite: Gift,
    /// To the target of its redirect.
    target: Gift,
}

impl Gifts {
    fn of(report: &Report) -> Self {
        let draw = digest64(report.rest.as_bytes()) ^ u64::from(report.host);
        let whole = Gift::whole(report.weight, draw);
        // A duplicate passes everything to its original, unless its links count like those of other
        // pages.
        let is_copy = report.original.is_some() && report.is_last;
        // The list of a site says nothing about its pages, unless a user passed the list.
        let is_own_list = report.kind == Kind::Sitemap && whole.trust == 0.0;
        let link = match is_copy || is_own_list {
            true => Gift::NONE,
            false => Gift::share_of(report.weight, report.quality, report.n_links, draw),
        };
        Self {
            link,
            original: if is_copy { whole } else { Gift::NONE },
            requisite: Gift {
                trust: 0.0,
                ..whole
            },
            target: whole,
        }
    }

    fn to(&self, found: &Found) -> Gift {
        match found {
            Found {
                is_repeat: true, ..
            } => Gift::NONE,
            Found {
                is_redirect: true, ..
            } => self.target,
            Found {
                kind: Kind::Requisite,
                ..
            } => self.requisite,
            _ => self.link,
        }
    }
}
