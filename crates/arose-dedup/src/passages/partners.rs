//! The passages that a document shares with other documents.

use std::ops::Range;

use arose::passage::Scope;
use bytemuck::{Pod, Zeroable};

use super::listing::{CAPPED, Listed, Mark};
use crate::Error;
use crate::column::Column;

/// An occurrence that a partner also contains, `shift` tokens further on, sorted so that runs
/// follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) doc: u32,
    pub(crate) partner: u32,
    pub(crate) shift: i32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Link {
    /// The order of the links of a document.
    fn place(&self) -> u128 {
        let shift = self.shift.cast_unsigned() ^ 1 << 31;
        u128::from(self.partner) << 64 | u128::from(shift) << 32 | u128::from(self.start)
    }
}

/// Finds the links of documents in the lists of passages.
pub(crate) struct Linker {
    pub(crate) lists: Column<Listed>,
    pub(crate) scope: Scope,
}

impl Linker {
    /// Returns the links of a document, in order.
    pub(crate) fn links(&self, marks: &[Mark]) -> Result<Vec<Link>, Error> {
        let mut links = Vec::new();
        let mut listed = Vec::new();
        let none = Listed {
            doc: 0,
            start: 0,
            times: 0,
            step: 0,
        };
        for mark in marks {
            listed.resize(mark.n_listed(), none);
            self.lists.read_into(mark.list_at, &mut listed)?;
            let push = |start: u32, partner: u32, there: u32, n_tokens: u32| {
                let is_same = mark.doc == partner;
                if !(is_same && (start == there || self.scope == Scope::Across)) {
                    links.push(Link {
                        doc: mark.doc,
                        partner,
                        shift: there.wrapping_sub(start) as i32,
                        start,
                        end: start + n_tokens,
                    });
                }
            };
            match mark.flags & CAPPED == 0 {
                true => link_all(mark, &listed, push),
                false => link_first(mark, &listed[0], push),
            }
        }
        links.sort_unstable_by_key(Link::place);
        Ok(links)
    }
}

/// Links every occurrence of a mark to all places.
fn link_all(mark: &Mark, listed: &[Listed], mut push: impl FnMut(u32, u32, u32, u32)) {
    for span in mark.spans() {
        for other in listed {
            for i in 0..other.times {
                let there = other.start + i * other.step;
                push(span.start, other.doc, there, span.end - span.start);
            }
        }
    }
}

/// Links a mark to the first place, and to itself if it repeats itself.
fn link_first(mark: &Mark, first: &Listed, mut push: impl FnMut(u32, u32, u32, u32)) {
    let (one, all) = (mark.end - mark.start, mark.last_end() - mark.start);
    let n_shared = match mark.step == first.step {
        true => all.min(one + (first.times - 1) * first.step),
        false => one,
    };
    push(mark.start, first.doc, first.start, n_shared);
    if mark.times > 1 {
        let second = mark.start + mark.step;
        push(second, mark.doc, mark.start, all - mark.step);
    }
}

/// The longest shared run and the best partner of a document.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Partners {
    pub(crate) longest: Option<Longest>,
    pub(crate) best: Option<BestPartner>,
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
pub(crate) struct BestPartner {
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
                partners.best = Some(BestPartner {
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
