//! Joint coverage: the size of the union of several search engines, and the share of each.
//!
//! *Question.* Sizes are known up to a unit ([`crate::estimate::least_squares`]). Which share of
//! the union does each search engine have?
//!
//! *Idea.* The sum of the sizes counts a page once per search engine that has it. So let every
//! sampled page count one over that number m: `|union| = sum over x of s_x mean(1/m over the sample
//! of x)`. This requires looking up each sampled page in all search engines, not only in pairs. The
//! same sums give the number of pages in exactly two, three or all of them. Coverage is size
//! divided by union.
//!
//! The interval comes from resampling the pages of each search engine
//! ([`crate::estimate::bootstrap`]) and solving everything again: the pairs are not independent,
//! because they share their samples.
//!
//! *Paper.* Bharat & Broder 1998, who found 100, 77, 32 and 17 of 160 million joint pages in
//! November 1997, and 1.4% in all four. *Parameters.* Pages per search engine; 400 give relative
//! errors of 9% to 14% for sizes and 4% for the union. *Cost.* One addition per page and resample.
//! *Error.* Covers 92% to 97%. *Not for* pages outside all search engines, which only
//! [`crate::estimate::capture`] estimates.

use crate::Error;
use crate::estimate::bootstrap::Bootstrap;
use crate::estimate::least_squares::{self, Fit, Form, MAX_ENGINES, Overlaps};
use crate::estimate::overlap::Containment;
use crate::estimate::{Estimate, Method, Note};
use crate::judgement::Interval;

/// A set of search engines: bit `i` stands for search engine `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EngineSet(pub u64);

impl EngineSet {
    /// Returns whether the set contains a search engine.
    #[must_use]
    pub const fn contains(self, engine: usize) -> bool {
        engine < MAX_ENGINES && self.0 >> engine & 1 == 1
    }

    /// Returns the set with one additional search engine; at most 64 are distinguished.
    #[must_use]
    pub const fn with(self, engine: usize) -> Self {
        if engine < MAX_ENGINES {
            Self(self.0 | 1 << engine)
        } else {
            self
        }
    }

    /// Returns the number of search engines in the set.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<usize> for EngineSet {
    fn from_iter<I: IntoIterator<Item = usize>>(engines: I) -> Self {
        engines.into_iter().fold(Self::default(), Self::with)
    }
}

/// A page drawn from one search engine and looked up in all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sampled {
    /// The search engines that have it, always including its own.
    pub held_by: EngineSet,
    /// The search engines that did not respond.
    pub missing: EngineSet,
}

/// A sample of pages from each search engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Samples {
    by_engine: Vec<Vec<Sampled>>,
}

impl Samples {
    /// Creates the samples of search engines 0, 1, and so on.
    ///
    /// A page counts as found in the search engine from which it was drawn. If a search engine is
    /// listed both as having a page and as missing, it has the page.
    ///
    /// # Errors
    ///
    /// Returns an error if there are fewer than 2 or more than 64 search engines, or if a sample is
    /// empty.
    pub fn new(mut by_engine: Vec<Vec<Sampled>>) -> Result<Self, Error> {
        let n = by_engine.len();
        if !(2..=MAX_ENGINES).contains(&n) {
            return Err(Error::parameter("engines", n, "2 up to 64"));
        }
        if let Some(empty) = by_engine.iter().position(Vec::is_empty) {
            let reason = format!("the sample of engine {empty} is empty");
            return Err(Error::no_estimate(Method::JointCoverage.quantity(), reason));
        }
        let known = u64::MAX >> (MAX_ENGINES - n);
        for (own, pages) in by_engine.iter_mut().enumerate() {
            for page in pages {
                page.held_by = EngineSet(page.held_by.with(own).0 & known);
                page.missing = EngineSet(page.missing.0 & known & !page.held_by.0);
            }
        }
        Ok(Self { by_engine })
    }

    /// Returns the number of search engines sampled.
    #[must_use]
    pub fn n_engines(&self) -> usize {
        self.by_engine.len()
    }

    /// Returns the number of sampled pages of each search engine.
    #[must_use]
    pub fn n_pages(&self) -> Vec<usize> {
        self.by_engine.iter().map(Vec::len).collect()
    }

    /// Returns the pairwise counts.
    #[must_use]
    pub fn overlaps(&self) -> Overlaps {
        let groups = Groups::new(self);
        let ones = vec![1; groups.group_of.len()];
        groups.overlaps(&groups.totals(&ones))
    }

    fn any_missing(&self) -> bool {
        let mut pages = self.by_engine.iter().flatten();
        pages.any(|page| !page.missing.is_empty())
    }
}

/// Sizes, union and coverage, estimated from the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    /// The size of each search engine; that of the reference is 1.
    pub sizes: Vec<Estimate>,
    /// The size of the union, in the same unit.
    pub union: Estimate,
    /// The share of the union that each search engine has.
    pub coverage: Vec<Estimate>,
    /// The shares of the union that are in exactly 1, 2, .. search engines.
    pub held_by_exactly: Vec<Estimate>,
    /// The fit of the chosen form.
    pub fit: Fit,
    /// The fit of the other form; report both if a size has the note [`Note::FormsDiffer`].
    pub other_fit: Fit,
}

/// Estimates sizes, union and coverage with their intervals.
///
/// # Errors
///
/// Returns an error under the conditions of [`least_squares::linear`], if too few resamples connect
/// the search engines, or if no page of some sample was looked up in all of them.
///
/// ```
/// use arose::estimate::bootstrap::Bootstrap;
/// use arose::estimate::joint::{EngineSet, Sampled, Samples, estimate};
/// use arose::estimate::least_squares::Form;
/// // Engine 0 holds pages 0..60, engine 1 holds pages 40..80; all of them were drawn.
/// let holders = |page: u32| [page < 60, page >= 40];
/// let drawn = |engine: usize| {
///     let own = (0..80).filter(move |&page| holders(page)[engine]);
///     let check = |page| (0..2).filter(|&other| holders(page)[other]).collect::<EngineSet>();
///     own.map(|page| Sampled { held_by: check(page), ..Sampled::default() }).collect()
/// };
/// let samples = Samples::new(vec![drawn(0), drawn(1)])?;
/// let joint = estimate(&samples, 0, Form::Logarithmic, &Bootstrap::new(1))?;
/// assert!((joint.coverage[0].value - 60.0 / 80.0).abs() < 1e-12);
/// assert!((joint.coverage[1].value - 40.0 / 80.0).abs() < 1e-12);
/// # Ok::<(), arose::Error>(())
/// ```
pub fn estimate(
    samples: &Samples,
    reference: usize,
    form: Form,
    bootstrap: &Bootstrap,
) -> Result<Joint, Error> {
    let groups = Groups::new(samples);
    let ones = vec![1; groups.group_of.len()];
    let totals = groups.totals(&ones);
    let overlaps = groups.overlaps(&totals);
    let fits = [Form::Linear, Form::Logarithmic].map(|form| solve(&overlaps, reference, form));
    let [linear, logarithmic] = fits;
    let (fit, other_fit) = match form {
        Form::Linear => (linear?, logarithmic?),
        Form::Logarithmic => (logarithmic?, linear?),
    };
    let figures = groups.figures(&totals, &fit.sizes).ok_or_else(|| {
        let reason = "no page of some sample was looked up in all engines";
        Error::no_estimate(Method::JointCoverage.quantity(), reason)
    })?;
    let intervals = bootstrap.intervals(&samples.n_pages(), |counts| {
        let totals = groups.totals(counts);
        let fit = solve(&groups.overlaps(&totals), reference, form).ok();
        let figures = fit.and_then(|fit| groups.figures(&totals, &fit.sizes));
        figures.map_or_else(|| vec![f64::NAN; groups.n_figures()], Figures::into_row)
    })?;
    let told = Told {
        figures: figures.into_row(),
        intervals,
        n_samples: groups.group_of.len() as u64,
        seed: bootstrap.seed,
        notes: notes(samples, &fit),
    };
    told.joint(reference, form, fit, other_fit)
}

fn solve(overlaps: &Overlaps, reference: usize, form: Form) -> Result<Fit, Error> {
    match form {
        Form::Linear => least_squares::linear(overlaps, reference),
        Form::Logarithmic => least_squares::logarithmic(overlaps, reference),
    }
}

fn notes(samples: &Samples, fit: &Fit) -> Vec<Note> {
    let zero = (fit.n_zero_counts > 0).then_some(Note::ZeroCount);
    let missing = samples.any_missing().then_some(Note::SomeMissing);
    zero.into_iter().chain(missing).collect()
}

/// The values estimated from one set of samples.
struct Figures {
    sizes: Vec<f64>,
    union: f64,
    held_by_exactly: Vec<f64>,
}

impl Figures {
    /// Returns sizes, union, coverage and shares in exactly 1, 2, .. search engines: `3 k + 1`
    /// numbers.
    fn into_row(self) -> Vec<f64> {
        let shares = self.sizes.iter().chain(&self.held_by_exactly);
        // Noisy sizes can add up to a union smaller than one of them.
        let shares: Vec<f64> = shares.map(|size| (size / self.union).min(1.0)).collect();
        let mut row = self.sizes;
        row.push(self.union);
        row.extend(shares);
        row
    }
}

/// Sampled pages grouped by the results of their lookups, since only these matter.
struct Groups {
    n_engines: usize,
    /// The search engine from which the page was drawn, and the results of the lookups.
    keys: Vec<(usize, Sampled)>,
    /// The group of each page, search engine after search engine.
    group_of: Vec<usize>,
}

impl Groups {
    fn new(samples: &Samples) -> Self {
        let pages = samples.by_engine.iter().enumerate();
        let pages: Vec<(usize, Sampled)> = pages
            .flat_map(|(engine, pages)| pages.iter().map(move |&page| (engine, page)))
            .collect();
        let mut keys = pages.clone();
        keys.sort_unstable();
        keys.dedup();
        let group_of = pages
            .iter()
            .map(|page| keys.partition_point(|key| key < page));
        Self {
            n_engines: samples.n_engines(),
            group_of: group_of.collect(),
            keys,
        }
    }

    fn n_figures(&self) -> usize {
        3 * self.n_engines + 1
    }

    /// Returns the number of drawn pages of each group.
    fn totals(&self, counts: &[u32]) -> Vec<u64> {
        let mut totals = vec![0; self.keys.len()];
        for (&group, &count) in self.group_of.iter().zip(counts) {
            totals[group] += u64::from(count);
        }
        totals
    }

    fn overlaps(&self, totals: &[u64]) -> Overlaps {
        let mut overlaps =
            Overlaps::new(self.n_engines).expect("2 to 64 engines, checked in `Samples::new`");
        for checked in 0..self.n_engines {
            let mut cells = vec![Containment::default(); self.n_engines];
            for (&(sampled, page), &n) in self.keys.iter().zip(totals) {
                let cell = &mut cells[sampled];
                if page.held_by.contains(checked) {
                    cell.n_found += n;
                } else if page.missing.contains(checked) {
                    cell.n_missing += n;
                } else {
                    cell.n_absent += n;
                }
            }
            for (sampled, &cell) in cells.iter().enumerate().filter(|&(x, _)| x != checked) {
                overlaps
                    .set(sampled, checked, cell)
                    .expect("both are below the number of engines");
            }
        }
        overlaps
    }

    /// Returns sizes, union and multiplicities; `None` if some search engine has no page with all
    /// responses.
    fn figures(&self, totals: &[u64], sizes: &[f64]) -> Option<Figures> {
        let n = self.n_engines;
        let mut n_complete = vec![0; n];
        let mut n_held_by = vec![vec![0; n]; n];
        let complete = self.keys.iter().zip(totals);
        for (&(sampled, page), &n) in complete.filter(|((_, page), _)| page.missing.is_empty()) {
            n_complete[sampled] += n;
            n_held_by[page.held_by.len() as usize - 1][sampled] += n;
        }
        if n_complete.contains(&0) {
            return None;
        }
        let pages_held_by = |(fewer, counts): (usize, &Vec<u64>)| {
            let shares = counts.iter().zip(&n_complete).zip(sizes);
            let held = shares.map(|((&n, &all), size)| size * n as f64 / all as f64);
            held.sum::<f64>() / (fewer + 1) as f64
        };
        let held_by_exactly: Vec<f64> = n_held_by.iter().enumerate().map(pages_held_by).collect();
        Some(Figures {
            sizes: sizes.to_vec(),
            union: held_by_exactly.iter().sum(),
            held_by_exactly,
        })
    }
}

/// All values with their intervals, in the order of [`Figures::into_row`].
struct Told {
    figures: Vec<f64>,
    intervals: Vec<Option<Interval>>,
    n_samples: u64,
    seed: u64,
    notes: Vec<Note>,
}

impl Told {
    fn joint(
        &self,
        reference: usize,
        form: Form,
        fit: Fit,
        other_fit: Fit,
    ) -> Result<Joint, Error> {
        let n = fit.sizes.len();
        let joint = |place| self.estimate(Method::JointCoverage, place);
        let size = |engine: usize| {
            let estimate = self.estimate(form.method(), engine)?;
            if engine == reference {
                return Ok(Estimate {
                    interval: None,
                    notes: vec![Note::Reference],
                    ..estimate
                });
            }
            let differ = differ(&estimate, other_fit.sizes[engine]);
            Ok(estimate.with_notes(differ.then_some(Note::FormsDiffer)))
        };
        Ok(Joint {
            sizes: (0..n).map(size).collect::<Result<_, Error>>()?,
            union: joint(n)?,
            coverage: (n + 1..2 * n + 1)
                .map(joint)
                .collect::<Result<_, Error>>()?,
            held_by_exactly: (2 * n + 1..3 * n + 1)
                .map(joint)
                .collect::<Result<_, Error>>()?,
            fit,
            other_fit,
        })
    }

    fn estimate(&self, method: Method, place: usize) -> Result<Estimate, Error> {
        let estimate = Estimate::new(method, self.figures[place], self.n_samples)?;
        let estimate = estimate.with_bootstrap(self.intervals[place], self.seed);
        Ok(estimate.with_notes(self.notes.iter().copied()))
    }
}

/// Returns whether another value is more than a standard error away, judged by the width of the
/// interval.
fn differ(estimate: &Estimate, other: f64) -> bool {
    estimate.interval.is_some_and(|interval| {
        let standard_error = (interval.high - interval.low) / (2.0 * crate::judgement::Z_95);
        (estimate.value - other).abs() > standard_error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search engines of the lecture, as lists of their pages.
    const ENGINES: [&[u32]; 4] = [
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        &[5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
        &[1, 5, 9, 13, 15, 16],
        &[2, 6, 10, 14, 15, 17, 18, 19],
    ];

    fn census(n_copies: usize) -> Vec<Vec<Sampled>> {
        let sampled = |page: &u32| Sampled {
            held_by: (0..4)
                .filter(|&engine| ENGINES[engine].contains(page))
                .collect(),
            ..Sampled::default()
        };
        let drawn = |pages: &&[u32]| pages.repeat(n_copies).iter().map(sampled).collect();
        ENGINES.iter().map(drawn).collect()
    }

    fn quick(seed: u64) -> Bootstrap {
        Bootstrap {
            n_resamples: 400,
            ..Bootstrap::new(seed)
        }
    }

    #[test]
    fn nineteen_pages_together() {
        let samples = Samples::new(census(10)).unwrap();
        for form in [Form::Linear, Form::Logarithmic] {
            let joint = estimate(&samples, 0, form, &quick(1)).unwrap();
            assert!((joint.union.value - 19.0 / 12.0).abs() < 1e-12);
            for (coverage, n_pages) in joint.coverage.iter().zip([12.0, 10.0, 6.0, 8.0]) {
                assert!((coverage.value - n_pages / 19.0).abs() < 1e-12);
                assert!(coverage.interval.unwrap().contains(n_pages / 19.0));
            }
            // Pages 3, 4, 16, 17, 18, 19 in one search engine; 5, 6, 9, 10 in three; none in all
            // four.
            for (held, n_pages) in joint.held_by_exactly.iter().zip([6.0, 9.0, 4.0, 0.0]) {
                assert!((held.value - n_pages / 19.0).abs() < 1e-12, "{held:?}");
            }
            assert_eq!(joint.sizes[0].notes, [Note::Reference]);
            assert_eq!(joint.sizes[1].method, form.method());
        }
    }

    /// Of 160 million pages, 100, 77, 32 and 17 million are 62.5, 48.1, 20 and 10.6%, and the 2.2
    /// million in all four are 1.4%.
    #[test]
    fn published_coverage() {
        let figures = Figures {
            sizes: vec![100.0, 77.0, 32.0, 17.0],
            union: 160.0,
            held_by_exactly: vec![0.0, 0.0, 0.0, 2.2],
        };
        let row = figures.into_row();
        for (share, percent) in row[5..]
            .iter()
            .zip([62.5, 48.125, 20.0, 10.625, 0.0, 0.0, 0.0, 1.375])
        {
            assert!((share * 100.0 - percent).abs() < 1e-9);
        }
    }

    /// If one search engine does not respond to half of the lookups at random, the estimates do not
    /// change, but have a note.
    #[test]
    fn missing_answers_are_left_out() {
        let mut pages = census(40);
        for (at, page) in pages[0].iter_mut().enumerate() {
            // A cycle of twelve pages without responses alternates with a cycle of twelve with
            // responses.
            if (at / 12) % 2 == 0 {
                page.held_by = EngineSet(page.held_by.0 & !(1 << 2));
                page.missing = EngineSet(1 << 2);
            }
        }
        let samples = Samples::new(pages).unwrap();
        let joint = estimate(&samples, 0, Form::Logarithmic, &quick(1)).unwrap();
        assert!((joint.union.value - 19.0 / 12.0).abs() < 1e-12);
        assert_eq!(joint.union.notes, [Note::SomeMissing]);
        assert_eq!(samples.overlaps().of(0, 2).n_missing, 240);
    }

    /// Search engine 1 is half of search engine 0 by their own overlap, but five sixths through
    /// search engine 2.
    #[test]
    fn contradicting_pairs_are_noted() {
        let drawn = |held_by: u64, n: usize| {
            let page = Sampled {
                held_by: EngineSet(held_by),
                ..Sampled::default()
            };
            vec![page; n]
        };
        let samples = Samples::new(vec![
            [drawn(7, 500), drawn(1, 500)].concat(),
            [drawn(7, 950), drawn(2, 50)].concat(),
            [drawn(7, 300), drawn(6, 200), drawn(4, 500)].concat(),
        ]);
        let joint = estimate(&samples.unwrap(), 0, Form::default(), &quick(1)).unwrap();
        let [first, other] = [&joint.fit, &joint.other_fit].map(|fit| fit.sizes[1]);
        assert!(
            joint.sizes[1].notes.contains(&Note::FormsDiffer),
            "{first}, {other}"
        );
        assert_eq!((joint.sizes[1].value, joint.sizes[0].value), (first, 1.0));
    }

    #[test]
    fn identical_engines_have_no_spread() {
        let both = Sampled {
            held_by: EngineSet(3),
            ..Sampled::default()
        };
        let samples = Samples::new(vec![vec![both; 30], vec![both; 30]]).unwrap();
        let joint = estimate(&samples, 0, Form::Logarithmic, &quick(1)).unwrap();
        assert_eq!((joint.sizes[1].value, joint.sizes[1].interval), (1.0, None));
        assert_eq!(joint.sizes[1].notes, [Note::NoSpread]);
    }

    #[test]
    fn bad_data() {
        let alone = |engine| {
            vec![
                Sampled {
                    held_by: [engine].into_iter().collect(),
                    ..Sampled::default()
                };
                9
            ]
        };
        assert!(Samples::new(vec![alone(0)]).is_err());
        assert!(Samples::new(vec![alone(0), vec![]]).is_err());
        assert!(Samples::new(vec![alone(0); 65]).is_err());
        let apart = Samples::new(vec![alone(0), alone(1)]).unwrap();
        let error = estimate(&apart, 0, Form::Logarithmic, &quick(1))
            .unwrap_err()
            .to_string();
        assert!(error.contains("shares no sampled page"), "{error}");
        assert!(estimate(&apart, 5, Form::Linear, &quick(1)).is_err());
        // Search engine 1 never responds, so nothing is known about it.
        let silent = vec![
            Sampled {
                missing: EngineSet(2),
                ..Sampled::default()
            };
            9
        ];
        let samples = Samples::new(vec![silent, alone(1)]).unwrap();
        assert!(estimate(&samples, 0, Form::Linear, &quick(1)).is_err());
    }

    #[test]
    fn sets_of_engines() {
        let set: EngineSet = [0, 3, 63, 64].into_iter().collect();
        assert_eq!((set.len(), set.is_empty()), (3, false));
        assert!(set.contains(63) && !set.contains(64) && !set.contains(1));
    }
}
