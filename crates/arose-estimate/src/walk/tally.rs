//! Summarizes a walk: a few sums for each measure instead of its steps.

use arose::estimate::chain::{Part, Sums, Weighted};
use arose::estimate::walk::{Walk, draw_visits};
use arose::mix::SplitMix;

use crate::N_POINTS;

/// A finished walk, and the weights of its visits.
pub(super) struct Weighed<'w> {
    pub(super) visits: &'w [u32],
    /// Number of initial visits that do not count.
    pub(super) n_early: usize,
    pub(super) unseen_share: f64,
    pub(super) n_seen: usize,
    /// The weight of each page; zero if it is not a page.
    pub(super) weights: &'w [f64],
}

/// The sums of a walk for every measure.
pub(super) struct Tally {
    /// The share of its pages that was unknown while visits counted.
    pub(super) unseen_share: f64,
    /// Number of pages visited or linked to.
    pub(super) n_seen: usize,
    pub(super) measured: Vec<Measured>,
}

/// The sums of a walk for one measure.
#[derive(Default)]
pub(super) struct Measured {
    /// Visits, and visits with the property, in each half of the walk.
    halves: [Counts; 2],
    /// The visits that count, in as many parts as there are points, each with its last step.
    parts: Vec<(u64, Sums)>,
    /// The same, step by step; only if there is no other walk for comparison.
    pub(super) steps: Vec<Weighted>,
}

#[derive(Default, Clone, Copy)]
struct Counts {
    n: usize,
    n_with: usize,
}

/// Whether the steps of a walk are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    Sums,
    Steps,
}

impl<'w> Weighed<'w> {
    /// A walk with jumps, without its first half.
    pub(super) fn new(walk: &'w Walk, weights: &'w [f64]) -> Self {
        Self {
            visits: &walk.visits,
            n_early: walk.visits.len() - walk.settled().len(),
            unseen_share: walk.unseen_share(),
            n_seen: walk.n_seen(),
            weights,
        }
    }

    /// Samples pages among the visits that count, each visit by its weight.
    pub(super) fn draw(&self, n: usize, random: &mut SplitMix) -> Result<Vec<u32>, arose::Error> {
        let weight = |page: u32| self.weights[page as usize];
        let counted = self.visits[self.n_early..].iter().copied();
        let counted: Vec<u32> = counted.filter(|&page| weight(page) > 0.0).collect();
        if counted.is_empty() {
            return Ok(Vec::new());
        }
        let weights: Vec<f64> = counted.iter().map(|&page| weight(page)).collect();
        draw_visits(&counted, &weights, n, random)
    }

    /// Computes the sums; `values` has for each measure whether each page has the property.
    pub(super) fn tally(&self, values: &[Vec<bool>], keep: Keep) -> Tally {
        let mut measured: Vec<Measured> = values.iter().map(|_| Measured::default()).collect();
        // One pass over the visits serves all measures: the number of visits per page is enough.
        let mut times = vec![0_u32; self.weights.len()];
        let half = self.visits.len() / 2;
        for (start, end) in self.cuts() {
            times.fill(0);
            for &page in &self.visits[start..end] {
                times[page as usize] += 1;
            }
            for (measured, has) in measured.iter_mut().zip(values) {
                let (counts, sums) = self.sum(&times, has);
                let own = &mut measured.halves[usize::from(start >= half)];
                own.n += counts.n;
                own.n_with += counts.n_with;
                if start >= self.n_early {
                    measured.parts.push((end as u64, sums));
                }
            }
        }
        if keep == Keep::Steps {
            for (measured, has) in measured.iter_mut().zip(values) {
                measured.steps = self.steps(has);
            }
        }
        Tally {
            unseen_share: self.unseen_share,
            n_seen: self.n_seen,
            measured,
        }
    }

    /// The parts of the walk: its early part, and the rest in parts one of which ends at half of
    /// the walk.
    fn cuts(&self) -> Vec<(usize, usize)> {
        let n = self.visits.len() - self.n_early;
        let end = |part: usize| self.n_early + part * n / N_POINTS;
        let parts = (0..N_POINTS).map(|part| (end(part), end(part + 1)));
        let all = std::iter::once((0, self.n_early)).chain(parts);
        all.filter(|(start, end)| start < end).collect()
    }

    fn sum(&self, times: &[u32], has: &[bool]) -> (Counts, Sums) {
        let (mut counts, mut sums) = (Counts::default(), Sums::default());
        for ((&n, &weight), &has) in times.iter().zip(self.weights).zip(has) {
            if n == 0 || weight == 0.0 {
                continue;
            }
            counts.n += n as usize;
            sums.weight += f64::from(n) * weight;
            if has {
                counts.n_with += n as usize;
                sums.value += f64::from(n) * weight;
            }
        }
        (counts, sums)
    }

    fn steps(&self, has: &[bool]) -> Vec<Weighted> {
        let counted = self.visits[self.n_early..].iter();
        let steps = counted.map(|&page| Weighted {
            value: f64::from(u8::from(has[page as usize])),
            weight: self.weights[page as usize],
        });
        steps.filter(|step| step.weight > 0.0).collect()
    }
}

impl Measured {
    /// Sums over all visits that count.
    pub(super) fn sums(&self) -> Sums {
        self.parts.iter().map(|(_, sums)| *sums).sum()
    }

    /// All visits, and those with the property, unweighted.
    pub(super) fn counts(&self) -> (usize, usize) {
        let [first, second] = self.halves;
        (first.n + second.n, first.n_with + second.n_with)
    }

    /// Its halves, for comparison with other walks.
    pub(super) fn halves(&self) -> [Part; 2] {
        self.halves.map(|half| Part::of_ones(half.n_with, half.n))
    }
}

/// The corrected share over all walks as they progressed.
pub(super) fn course<'m>(walks: impl Iterator<Item = &'m Measured> + Clone) -> Vec<(u64, f64)> {
    let n_parts = walks.clone().map(|walk| walk.parts.len()).min();
    let mut so_far = Sums::default();
    let mut points = Vec::new();
    for part in 0..n_parts.unwrap_or(0) {
        let own = walks.clone().map(|walk| walk.parts[part].1);
        so_far = [so_far, own.sum()].into_iter().sum();
        let until = walks.clone().map(|walk| walk.parts[part].0).max();
        if so_far.weight > 0.0 {
            points.push((until.unwrap_or(0), so_far.value / so_far.weight));
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten visits, the first four early, page 2 not a page; computed by hand.
    #[test]
    fn sums_by_hand() {
        let weighed = Weighed {
            visits: &[0, 0, 1, 0, 1, 1, 0, 2, 1, 2],
            n_early: 4,
            unseen_share: 0.0,
            n_seen: 3,
            weights: &[1.0, 3.0, 0.0],
        };
        let tally = weighed.tally(&[vec![false, true, true]], Keep::Steps);
        let measured = &tally.measured[0];
        // Of visits 5 to 10, three are to page 1, one to page 0, and two to no page.
        let expected = Sums {
            weight: 10.0,
            value: 9.0,
        };
        assert_eq!(measured.sums(), expected);
        assert_eq!(measured.steps.iter().copied().collect::<Sums>(), expected);
        assert_eq!(measured.counts(), (8, 4));
        let last = *course(std::iter::once(measured)).last().unwrap();
        assert_eq!(last, (10, 0.9));
    }

    /// Halves are those of the complete walk, whether or not its first half counts.
    #[test]
    fn halves_of_the_whole_walk() {
        let visits: Vec<u32> = (0..40).map(|step| u32::from(step >= 20)).collect();
        for n_early in [0, 20] {
            let weighed = Weighed {
                visits: &visits,
                n_early,
                unseen_share: 0.0,
                n_seen: 2,
                weights: &[1.0, 1.0],
            };
            let tally = weighed.tally(&[vec![false, true]], Keep::Sums);
            let means = tally.measured[0].halves().map(|half| (half.n, half.mean));
            assert_eq!(means, [(20, 0.0), (20, 1.0)]);
        }
    }
}
