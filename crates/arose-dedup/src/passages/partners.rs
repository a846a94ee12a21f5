//! The passages that a document shares with other documents.

use std::ops::Range;

use super::listing::Link;

/// The longest shared run and the best partner of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Partners {
    pub(crate) longest: Option<Longest>,
    pub(crate) best: Option<Best>,
}

/// The longest run of tokens that also occurs elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Longest {
    pub(crate) n_tokens: u32,
    /// Where it starts here.
    pub(crate) start: u32,
    /// The other places where it occurs.
    pub(crate) doc: u32,
    pub(crate) start_there: u32,
}

/// The document with the most shared tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Best {
    pub(crate) doc: u32,
    /// Tokens of this document in shared runs.
    pub(crate) shared: u32,
    /// Tokens of the other in shared runs.
    pub(crate) shared_there: u32,
}

impl Partners {
    /// Computes these from links sorted by partner, shift and start. Of equal partners, the first
    /// one counts.
    pub(crate) fn of(doc: u32, links: &[Link], n_tokens: u32) -> Self {
        let mut partners = Self::default();
        for links in links.chunk_by(|a, b| a.partner == b.partner) {
            let runs = runs(links, n_tokens);
            for run in &runs {
                let length = run.end - run.start;
                if partners
                    .longest
                    .is_none_or(|longest| length > longest.n_tokens)
                {
                    partners.longest = Some(Longest {
                        n_tokens: length,
                        start: run.start,
                        doc: run.partner,
                        start_there: run.start.wrapping_add_signed(run.shift),
                    });
                }
            }
            let partner = links[0].partner;
            let here = n_covered(runs.iter().map(|run| run.start..run.end).collect());
            if partner != doc && partners.best.is_none_or(|best| here > best.shared) {
                let there = runs.iter().map(|run| {
                    let shifted = |token: u32| token.wrapping_add_signed(run.shift);
                    shifted(run.start)..shifted(run.end)
                });
                partners.best = Some(Best {
                    doc: partner,
                    shared: here,
                    shared_there: n_covered(there.collect()),
                });
            }
        }
        partners
    }
}

/// Returns the maximal runs of occurrences with one shift.
pub(crate) fn runs(links: &[Link], n_tokens: u32) -> Vec<Link> {
    let mut runs: Vec<Link> = Vec::new();
    for link in links {
        match runs.last_mut() {
            Some(last) if last.shift == link.shift && link.start + n_tokens == last.end + 1 => {
                last.end = link.end;
            }
            _ => runs.push(*link),
        }
    }
    runs
}

/// Returns the number of tokens in these ranges.
fn n_covered(mut ranges: Vec<Range<u32>>) -> u32 {
    ranges.sort_unstable_by_key(|range| range.start);
    let (mut n, mut end) = (0, 0);
    for range in ranges {
        n += range.end.saturating_sub(range.start.max(end));
        end = end.max(range.end);
    }
    n
}
