//! Crawl counters.
//!
//! Every URL met is counted once, so `discovered = queued + known + rejected` always holds; see
//! [`Counters::balance`]. The counters are part of the journal and continue after a crash.

use std::collections::BTreeMap;

pub use crate::fetch::Failure;
use crate::guard::{Counts, Reason};

/// A quantity that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    /// URLs met, in seeds, links, redirects and sitemaps.
    Discovered,
    /// Of these: new, approved and queued.
    Queued,
    /// Of these: met before.
    Known,
    /// Of these: not approved.
    Rejected,
    /// Requests sent.
    Requests,
    /// Bytes received.
    Bytes,
    /// Pages with text and a status of success.
    Pages,
    /// Exact duplicates of other pages.
    ExactDuplicates,
    /// Near duplicates of other pages.
    NearDuplicates,
    /// Redirect responses.
    Redirects,
    /// Responses with status 4xx.
    ClientErrors,
    /// Responses with status 5xx.
    ServerErrors,
    /// Truncated responses.
    Truncated,
    /// Requests without a response.
    Failures,
    /// URLs given up permanently without a response.
    Lost,
    /// URLs that robots.txt disallows.
    Disallowed,
    /// Responses that say that a site is too busy.
    Busy,
    /// Requests for robots.txt files.
    RobotsFiles,
    /// Hosts deferred to a later run because of the delay they require.
    DeferredHosts,
    /// Hosts deferred to a later run because their robots.txt is not available.
    UnreachableHosts,
    /// Failed DNS lookups.
    UnknownNames,
    /// URLs put aside because their path prefix or query parameters yielded nothing new.
    Stale,
    /// Seeds that are not URLs.
    BadSeeds,
    /// URLs queued by an earlier run that the settings of a later run do not allow.
    Withdrawn,
    /// Duplicates whose links were not followed.
    UnfollowedDuplicates,
    /// Pages whose weight is below 0.5.
    LowQuality,
    /// Of these: with a weight of at most 0.2.
    SpamLike,
    /// Pages that a rule of the settings rejects for their quality.
    QualityRejected,
    /// Sites reduced to one request per day because of the quality of their pages.
    BadSites,
    /// Visits of pages that were fetched before.
    Revisits,
    /// Of these: the content has changed.
    Changed,
    /// Of these: the server said that nothing has changed.
    NotModified,
    /// Pages that are gone: three visits found nothing there.
    GonePages,
    /// Pages fetched before that robots.txt or the settings no longer allow.
    ForbiddenPages,
    /// Hosts that reported changed pages as unchanged.
    UntrustedHosts,
    /// Changes announced by sitemaps and feeds.
    Signals,
    /// Announcements with impossible dates.
    ImplausibleSignals,
    /// Pages with a score, if the crawl has a topic.
    Scored,
    /// Of these: with a score of at least 0.5.
    OnTopic,
    /// Pages without a score because their scorer failed.
    Unscored,
    /// Pages whose links were queued before the score was known.
    LateScores,
    /// Responses of a scorer that are not scores.
    BadScores,
    /// Times that a scorer ended, took too long, or responded out of order.
    ScorerFailures,
    /// Pages whose links are not followed because they do not fit the topic.
    OffTopic,
    /// URLs deferred because a rule says that another URL has the same page.
    DeferredUrls,
    /// Of these: queued again, because the rule was wrong or the URL is wanted.
    RecalledUrls,
    /// URLs fetched to learn rules.
    Probes,
    /// URLs covered by a rule that are fetched all the same, to check the rule.
    Audits,
    /// Pages fetched before that have moved to another URL for good.
    MovedPages,
}

impl Counter {
    /// All of them, in order.
    pub const ALL: [Self; 49] = [
        Self::Discovered,
        Self::Queued,
        Self::Known,
        Self::Rejected,
        Self::Requests,
        Self::Bytes,
        Self::Pages,
        Self::ExactDuplicates,
        Self::NearDuplicates,
        Self::Redirects,
        Self::ClientErrors,
        Self::ServerErrors,
        Self::Truncated,
        Self::Failures,
        Self::Lost,
        Self::Disallowed,
        Self::Busy,
        Self::RobotsFiles,
        Self::DeferredHosts,
        Self::UnreachableHosts,
        Self::UnknownNames,
        Self::Stale,
        Self::BadSeeds,
        Self::Withdrawn,
        Self::UnfollowedDuplicates,
        Self::LowQuality,
        Self::SpamLike,
        Self::QualityRejected,
        Self::BadSites,
        Self::Revisits,
        Self::Changed,
        Self::NotModified,
        Self::GonePages,
        Self::ForbiddenPages,
        Self::UntrustedHosts,
        Self::Signals,
        Self::ImplausibleSignals,
        Self::Scored,
        Self::OnTopic,
        Self::Unscored,
        Self::LateScores,
        Self::BadScores,
        Self::ScorerFailures,
        Self::OffTopic,
        Self::DeferredUrls,
        Self::RecalledUrls,
        Self::Probes,
        Self::Audits,
        Self::MovedPages,
    ];

    /// Returns its machine-readable name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Queued => "queued",
            Self::Known => "known",
            Self::Rejected => "rejected",
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Pages => "pages",
            Self::ExactDuplicates => "exact_duplicates",
            Self::NearDuplicates => "near_duplicates",
            Self::Redirects => "redirects",
            Self::ClientErrors => "client_errors",
            Self::ServerErrors => "server_errors",
            Self::Truncated => "truncated",
            Self::Failures => "failures",
            Self::Lost => "lost",
            Self::Disallowed => "disallowed",
            Self::Busy => "busy",
            Self::RobotsFiles => "robots_files",
            Self::DeferredHosts => "deferred_hosts",
            Self::UnreachableHosts => "unreachable_hosts",
            Self::UnknownNames => "unknown_names",
            Self::Stale => "stale",
            Self::BadSeeds => "bad_seeds",
            Self::Withdrawn => "withdrawn",
            Self::UnfollowedDuplicates => "unfollowed_duplicates",
            Self::LowQuality => "low_quality",
            Self::SpamLike => "spam_like",
            Self::QualityRejected => "quality_rejected",
            Self::BadSites => "bad_sites",
            Self::Revisits => "revisits",
            Self::Changed => "changed",
            Self::NotModified => "not_modified",
            Self::GonePages => "gone_pages",
            Self::ForbiddenPages => "forbidden_pages",
            Self::UntrustedHosts => "untrusted_hosts",
            Self::Signals => "signals",
            Self::ImplausibleSignals => "implausible_signals",
            Self::Scored => "scored",
            Self::OnTopic => "on_topic",
            Self::Unscored => "unscored",
            Self::LateScores => "late_scores",
            Self::BadScores => "bad_scores",
            Self::ScorerFailures => "scorer_failures",
            Self::OffTopic => "off_topic_unfollowed",
            Self::DeferredUrls => "deferred_urls",
            Self::RecalledUrls => "recalled_urls",
            Self::Probes => "probes",
            Self::Audits => "audits",
            Self::MovedPages => "moved_pages",
        }
    }
}

/// Reasons for rejection other than those of the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The site has the maximum number of hosts.
    TooManyHosts,
    /// Another crawler owns the host.
    NotOurs,
    /// Too many redirects in a row.
    Redirects,
}

impl Refusal {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::TooManyHosts, Self::NotOurs, Self::Redirects];

    /// Returns its machine-readable code.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooManyHosts => "too-many-hosts",
            Self::NotOurs => "not-ours",
            Self::Redirects => "redirects",
        }
    }
}

const N_COUNTERS: usize = Counter::ALL.len();
const N_REASONS: usize = Reason::ALL.len();
const N_REFUSALS: usize = Refusal::ALL.len();
const N_VALUES: usize = N_COUNTERS + N_REASONS + N_REFUSALS + Failure::ALL.len();

/// All counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    values: [u64; N_VALUES],
    statuses: BTreeMap<u16, u64>,
    /// Numbers of pages rejected by rules of the settings, by rule.
    quality: BTreeMap<String, u64>,
    /// Counters in a journal that this version does not have.
    others: BTreeMap<String, u64>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            values: [0; N_VALUES],
            statuses: BTreeMap::new(),
            quality: BTreeMap::new(),
            others: BTreeMap::new(),
        }
    }
}

impl Counters {
    /// Returns the value of a counter.
    #[must_use]
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize]
    }

    pub(crate) fn add(&mut self, counter: Counter, n: u64) {
        self.values[counter as usize] += n;
    }

    /// Returns the number of URLs that the guard rejected for a reason.
    #[must_use]
    pub fn rejected(&self, reason: Reason) -> u64 {
        self.values[N_COUNTERS + reason as usize]
    }

    /// Returns the number of URLs rejected for another reason.
    #[must_use]
    pub fn refused(&self, refusal: Refusal) -> u64 {
        self.values[N_COUNTERS + N_REASONS + refusal as usize]
    }

    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.values[N_COUNTERS + N_REASONS + refusal as usize] += 1;
        self.add(Counter::Rejected, 1);
    }

    /// Returns the number of requests that failed in this way.
    #[must_use]
    pub fn failed(&self, failure: Failure) -> u64 {
        self.values[N_COUNTERS + N_REASONS + N_REFUSALS + failure as usize]
    }

    pub(crate) fn fail(&mut self, failure: Failure) {
        self.values[N_COUNTERS + N_REASONS + N_REFUSALS + failure as usize] += 1;
        self.add(Counter::Failures, 1);
    }

    /// Returns the numbers of responses by status, including those for robots.txt.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.statuses.iter().map(|(&status, &n)| (status, n))
    }

    /// Returns the numbers of pages that rules of the settings reject for their quality, by rule.
    pub fn quality_rejections(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        self.quality.iter().map(|(rule, &n)| (rule.as_str(), n))
    }

    pub(crate) fn reject_quality(&mut self, rule: &str) {
        *self.quality.entry(rule.to_owned()).or_default() += 1;
        self.add(Counter::QualityRejected, 1);
    }

    pub(crate) fn count_status(&mut self, status: u16) {
        *self.statuses.entry(status).or_default() += 1;
    }

    /// Returns the reasons why URLs were rejected, with their numbers; the guard's reasons come
    /// first.
    pub fn rejections(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let reasons = Reason::ALL.into_iter();
        let reasons = reasons.map(|reason| (reason.as_str(), self.rejected(reason)));
        let refusals = Refusal::ALL.into_iter();
        reasons.chain(refusals.map(|refusal| (refusal.as_str(), self.refused(refusal))))
    }

    /// Returns the kinds of failures of requests, with their numbers.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let failures = Failure::ALL.into_iter();
        failures.map(|failure| (failure.as_str(), self.failed(failure)))
    }

    /// Adds the decisions of the guard on links. Approved links are counted when it is known
    /// whether they are new.
    pub(crate) fn judge(&mut self, counts: &Counts) {
        self.add(Counter::Discovered, counts.total());
        self.add(Counter::Rejected, counts.total() - counts.approved);
        for reason in Reason::ALL {
            self.values[N_COUNTERS + reason as usize] += counts.rejected(reason);
        }
    }

    /// Returns the URLs discovered minus those queued, known or rejected. This is zero, except for
    /// URLs still being processed. If it is negative, some URLs were counted twice.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let parts = [Counter::Queued, Counter::Known, Counter::Rejected];
        let sum: u64 = parts.iter().map(|&part| self.get(part)).sum();
        self.get(Counter::Discovered).wrapping_sub(sum) as i64
    }

    /// Returns one line per nonzero counter, with its name, a space and its value.
    pub(crate) fn to_text(&self) -> String {
        let values = names().zip(self.values);
        let statuses = self.statuses();
        let statuses = statuses.map(|(status, n)| (format!("{STATUS}{status}"), n));
        let others = self.others.iter().map(|(name, &n)| (name.clone(), n));
        let quality = self.quality_rejections();
        let quality = quality.map(|(rule, n)| (format!("{QUALITY}{rule}"), n));
        let others = others.chain(quality);
        let mut text = String::new();
        for (name, n) in values.chain(statuses).chain(others).filter(|(_, n)| *n > 0) {
            text.push_str(&format!("{name} {n}\n"));
        }
        text
    }

    /// Reads counters by name. Counters that only another version has are preserved. Returns `None`
    /// if a line is malformed.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut counters = Self::default();
        for line in text.lines() {
            let (name, n) = line.split_once(' ')?;
            let n = n.parse().ok()?;
            let status = name.strip_prefix(STATUS);
            let rule = name.strip_prefix(QUALITY);
            if let Some(index) = names().position(|known| known == name) {
                counters.values[index] = n;
            } else if let Some(Ok(status)) = status.map(str::parse) {
                counters.statuses.insert(status, n);
            } else if let Some(rule) = rule {
                counters.quality.insert(rule.to_owned(), n);
            } else {
                counters.others.insert(name.to_owned(), n);
            }
        }
        Some(counters)
    }
}

const STATUS: &str = "status.";
const QUALITY: &str = "quality.";

/// Returns the names of all values, in order, as written to the journal.
fn names() -> impl Iterator<Item = String> {
    let counters = Counter::ALL.into_iter();
    let counters = counters.map(|counter| counter.as_str().to_owned());
    let reasons = Reason::ALL.into_iter();
    let reasons = reasons.map(|reason| format!("rejected.{}", reason.as_str()));
    let refusals = Refusal::ALL.into_iter();
    let refusals = refusals.map(|refusal| format!("refused.{}", refusal.as_str()));
    let failures = Failure::ALL.into_iter();
    let failures = failures.map(|failure| format!("failed.{}", failure.as_str()));
    counters.chain(reasons).chain(refusals).chain(failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_in_order() {
        for (index, counter) in Counter::ALL.into_iter().enumerate() {
            assert_eq!(counter as usize, index);
        }
        let names: std::collections::BTreeSet<&str> = Counter::ALL
            .iter()
            .map(|counter| counter.as_str())
            .collect();
        assert_eq!(names.len(), Counter::ALL.len());
    }

    /// Both URLs counted twice and URLs not counted show up.
    #[test]
    fn the_balance_has_a_sign() {
        let mut counters = Counters::default();
        counters.add(Counter::Known, 2);
        counters.add(Counter::Discovered, 1);
        assert_eq!(counters.balance(), -1);
        counters.add(Counter::Discovered, 3);
        assert_eq!(counters.balance(), 2);
    }

    #[test]
    fn counters_survive() {
        let mut counters = Counters::default();
        counters.add(Counter::Pages, 7);
        counters.refuse(Refusal::NotOurs);
        counters.reject_quality("ratio>4");
        counters.count_status(404);
        counters.count_status(404);
        let mut counts = Counts::default();
        counts.add(Err(Reason::Length));
        counts.add(Ok(()));
        counters.judge(&counts);
        let read = Counters::from_text(&counters.to_text()).unwrap();
        assert_eq!(read, counters);
        assert_eq!(read.statuses().collect::<Vec<_>>(), [(404, 2)]);
        assert_eq!(
            (
                read.rejected(Reason::Length),
                read.refused(Refusal::NotOurs)
            ),
            (1, 1)
        );
        assert_eq!(Counters::from_text("pages"), None);
        assert_eq!(Counters::from_text("pages x"), None);
    }

    /// A counter that is new in this version does not shift the others, and one from a newer
    /// version is not lost.
    #[test]
    fn counters_are_found_by_name() {
        let text = "requests 5\nfailed.timeout 2\nfuture 9\nstatus.200 4\npages 3\n";
        let counters = Counters::from_text(text).unwrap();
        assert_eq!(counters.get(Counter::Pages), 3);
        assert_eq!(counters.get(Counter::Requests), 5);
        assert_eq!(counters.failed(Failure::Slow), 2);
        let mut lines: Vec<String> = counters.to_text().lines().map(str::to_owned).collect();
        let mut expected: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        expected.sort();
        assert_eq!(lines, expected);
        let distinct: std::collections::BTreeSet<String> = names().collect();
        assert_eq!(distinct.len(), N_VALUES);
    }
}
