//! Capture-recapture: the size of the population from which lists of pages were sampled.
//!
//! *Question.* Two or more lists of pages were sampled independently from one set. How large is the
//! set?
//!
//! *Idea.* For two lists, use Chapman's formula. For more, use Chao's lower bound, from the numbers
//! of pages on exactly one and exactly two lists ([`arose::estimate::capture`]). *Not for* lists of
//! different search engines taken at face value: popular pages are on both.

use std::collections::{BTreeMap, BTreeSet};

use arose::estimate::Method;
use arose::estimate::capture::{Captures, chao1, chapman, lincoln_petersen};

use super::{Figure, Findings};

/// The size from two samples, of which only the counts are known.
#[must_use]
pub fn of_counts(n_first: u64, n_second: u64, n_both: u64) -> Findings {
    let mut findings = Findings::new("capture", "distinct pages", 0);
    let estimate = chapman(n_first, n_second, n_both);
    let mut figure = Figure::of("pages", Method::Chapman, &estimate);
    if let Some(size) = lincoln_petersen(n_first, n_second, n_both) {
        figure
            .notes
            .push(format!("{size:.1} by Lincoln and Petersen"));
    }
    findings.figures = vec![figure];
    findings.with_biases()
}

/// The size from lists of names; each name counts once per list.
#[must_use]
pub fn of_lists(lists: &[BTreeSet<String>]) -> Findings {
    if let [first, second] = lists {
        let n_both = first.intersection(second).count() as u64;
        let mut findings = of_counts(first.len() as u64, second.len() as u64, n_both);
        findings.counted = "distinct names".to_owned();
        return findings;
    }
    let mut times: BTreeMap<&str, u64> = BTreeMap::new();
    for name in lists.iter().flatten() {
        *times.entry(name).or_default() += 1;
    }
    let captures: Captures = times.values().copied().collect();
    let mut findings = Findings::new("capture", "distinct names", 0);
    let chao = chao1(&captures);
    let mut figure = Figure::of("pages (lower bound)", Method::Chao1, &chao);
    figure.notes.push(format!(
        "{} seen, {} of these once, {} twice",
        captures.n_seen, captures.n_once, captures.n_twice
    ));
    findings.figures.push(figure);
    findings.with_biases()
}
