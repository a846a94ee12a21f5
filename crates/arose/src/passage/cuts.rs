//! Selects the tokens to remove.

use std::ops::Range;

/// The tokens to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// Every token that some later window covers.
    Later,
    /// The same, except the tokens of first windows: each repeated string remains complete
    /// somewhere.
    WholeFirst,
    /// Every token that some repeated window covers.
    All,
}

/// The role of an occurrence in its passage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Its first occurrence.
    First,
    /// A later one.
    Later,
    /// Another occurrence in the document of the first, if documents are counted.
    Own,
}

/// Returns the tokens to remove, as disjoint ranges in order, given the occurrences in order of
/// their start.
///
/// ```
/// use arose::passage::{Removal, Role, removed};
/// let found = [(0..4, Role::First), (2..6, Role::Later)];
/// assert_eq!(removed(found.clone(), Removal::Later), [2..6]);
/// assert_eq!(removed(found.clone(), Removal::WholeFirst), [4..6]);
/// assert_eq!(removed(found, Removal::All), [0..6]);
/// ```
pub fn removed(
    occurrences: impl IntoIterator<Item = (Range<u32>, Role)>,
    removal: Removal,
) -> Vec<Range<u32>> {
    let (mut gone, mut protected) = (Vec::new(), Vec::new());
    for (range, role) in occurrences {
        match role {
            _ if removal == Removal::All => unite(&mut gone, range),
            Role::Later => unite(&mut gone, range),
            Role::First => unite(&mut protected, range),
            Role::Own => {}
        }
    }
    match removal {
        Removal::WholeFirst => subtract(&gone, &protected),
        Removal::Later | Removal::All => gone,
    }
}

/// Adds a range that starts no earlier than the last one did.
fn unite(ranges: &mut Vec<Range<u32>>, range: Range<u32>) {
    match ranges.last_mut() {
        Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}

/// Returns the part of `ranges` that is not in `others`; both are disjoint and in order.
fn subtract(ranges: &[Range<u32>], others: &[Range<u32>]) -> Vec<Range<u32>> {
    let mut left = Vec::new();
    let mut others = others.iter().peekable();
    for range in ranges {
        let mut start = range.start;
        while let Some(other) = others.peek()
            && other.start < range.end
        {
            if other.start > start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
            if other.end > range.end {
                break;
            }
            others.next();
        }
        if start < range.end {
            left.push(start..range.end);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The result equals the definition, token by token.
        #[test]
        fn ranges_follow_the_definition(
            mut found in prop::collection::vec((0..30_u32, 1..8_u32, 0..3_usize), 0..12),
        ) {
            found.sort_unstable();
            let roles = [Role::First, Role::Later, Role::Own];
            let found: Vec<(Range<u32>, Role)> = found
                .into_iter()
                .map(|(start, n, role)| (start..start + n, roles[role]))
                .collect();
            let covers = |token: u32, wanted: Option<Role>| {
                let mut ranges = found.iter();
                ranges.any(|(range, role)| {
                    range.contains(&token) && wanted.is_none_or(|wanted| wanted == *role)
                })
            };
            for removal in [Removal::Later, Removal::WholeFirst, Removal::All] {
                let ranges = removed(found.clone(), removal);
                prop_assert!(ranges.windows(2).all(|two| two[0].end < two[1].start
                    || removal == Removal::WholeFirst && two[0].end <= two[1].start));
                for token in 0..40 {
                    let is_gone = match removal {
                        Removal::Later => covers(token, Some(Role::Later)),
                        Removal::WholeFirst => {
                            covers(token, Some(Role::Later)) && !covers(token, Some(Role::First))
                        }
                        Removal::All => covers(token, None),
                    };
                    let n = ranges.iter().filter(|range| range.contains(&token)).count();
                    prop_assert_eq!(n, usize::from(is_gone));
                }
            }
        }
    }
}
