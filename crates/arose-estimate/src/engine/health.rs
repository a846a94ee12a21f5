//! Behaviour of a search engine during a study, which every estimate reports.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Reply;
use super::panel::Hits;

/// Maximum number of distinct reasons for missing responses.
const MAX_REASONS: usize = 20;

/// Counts of the requests to one search engine and their outcomes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Health {
    /// Number of searches.
    pub n_searches: u64,
    /// Number of searches without a response.
    pub n_missing: u64,
    /// Number of searches without a result.
    pub n_empty: u64,
    /// Number of searches that showed fewer results than match, by the count or limit of the search
    /// engine.
    pub n_cut: u64,
    /// Number of searches that returned a page more than once.
    pub n_repeating: u64,
    /// Number of searches that claim fewer results than they show.
    pub n_contradicting: u64,
    /// Maximum number of results seen in one response.
    pub most_shown: usize,
    /// Number of pages requested.
    pub n_fetches: u64,
    /// Number of these without a response.
    pub n_fetches_missing: u64,
    /// Number of lookups of URLs.
    pub n_lookups: u64,
    /// Number of these without a response.
    pub n_lookups_missing: u64,
    /// Reasons for missing responses, with their counts.
    pub reasons: BTreeMap<String, u64>,
    /// Results of control queries.
    pub controls: Controls,
}

/// Queries sent to check the search engine rather than its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Controls {
    /// Number of queries repeated at the end.
    pub n_repeated: u64,
    /// Number of these with different results.
    pub n_changed: u64,
    /// Number of pairs of queries of which one must match at least as many pages as the other.
    pub n_comparable: u64,
    /// Number of these for which it claims fewer.
    pub n_violations: u64,
}

impl Health {
    /// The share of searches without a response.
    #[must_use]
    pub fn missing_rate(&self) -> f64 {
        share(self.n_missing, self.n_searches)
    }

    /// The share of repeated queries with different results.
    #[must_use]
    pub fn changed_rate(&self) -> f64 {
        share(self.controls.n_changed, self.controls.n_repeated)
    }

    /// Whether its counts contradict each other or its results.
    #[must_use]
    pub fn has_wrong_counts(&self) -> bool {
        self.n_contradicting > 0 || self.controls.n_violations > 0
    }

    /// Counts a search for at most `limit` results.
    pub(super) fn count_search(&mut self, reply: &Reply<Hits>, limit: usize) {
        self.n_searches += 1;
        let hits = match reply {
            Reply::Missing(reason) => {
                self.n_missing += 1;
                return self.count_reason(reason);
            }
            Reply::Answer(hits) => hits,
        };
        let n_results = hits.n_results;
        self.most_shown = self.most_shown.max(n_results);
        self.n_empty += u64::from(n_results == 0);
        self.n_repeating += u64::from(hits.pages.len() < n_results);
        let claims_less = hits
            .claimed
            .is_some_and(|claimed| claimed < n_results as u64);
        self.n_contradicting += u64::from(claims_less);
        self.n_cut += u64::from(hits.is_cut(limit));
    }

    pub(super) fn count_fetch<T>(&mut self, reply: &Reply<T>) {
        self.n_fetches += 1;
        if let Reply::Missing(reason) = reply {
            self.n_fetches_missing += 1;
            self.count_reason(reason);
        }
    }

    pub(super) fn count_lookup(&mut self, reply: &Reply<bool>) {
        self.n_lookups += 1;
        if let Reply::Missing(reason) = reply {
            self.n_lookups_missing += 1;
            self.count_reason(reason);
        }
    }

    fn count_reason(&mut self, reason: &str) {
        let is_known = self.reasons.contains_key(reason) || self.reasons.len() < MAX_REASONS;
        let reason = if is_known { reason } else { "other reasons" };
        *self.reasons.entry(reason.to_owned()).or_default() += 1;
    }

    /// Remarks about this search engine, as predicates that follow its name.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let mut say = |is_so: bool, words: String| {
            if is_so {
                remarks.push(words);
            }
        };
        let reason = self.reasons.iter().max_by_key(|(_, n)| **n);
        let reason = reason.map_or(String::new(), |(reason, _)| format!(" ({reason})"));
        let answered = self.n_searches - self.n_missing;
        say(
            self.n_missing + self.n_fetches_missing > 0,
            format!(
                "did not respond to {} of {} searches and {} of {} fetches{reason}",
                self.n_missing, self.n_searches, self.n_fetches_missing, self.n_fetches
            ),
        );
        say(
            self.n_lookups_missing > 0,
            format!(
                "did not respond to {} of {} lookups by URL",
                self.n_lookups_missing, self.n_lookups
            ),
        );
        say(
            self.n_repeating > 0,
            format!(
                "repeated a page in {} of {answered} responses; repetitions were ignored",
                self.n_repeating
            ),
        );
        say(
            self.n_contradicting > 0,
            format!(
                "claimed fewer results than it showed in {} of {answered} responses: its counts \
                 are not reliable",
                self.n_contradicting
            ),
        );
        let Controls {
            n_repeated,
            n_changed,
            n_comparable,
            n_violations,
        } = self.controls;
        say(
            n_violations > 0,
            format!(
                "claimed fewer results for a broader query in {n_violations} of {n_comparable} \
                 comparisons: its counts are not reliable"
            ),
        );
        say(
            n_changed > 0,
            format!(
                "changed during the study: {n_changed} of {n_repeated} repeated queries returned \
                 different results"
            ),
        );
        remarks
    }
}

fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 / whole as f64,
    }
}
