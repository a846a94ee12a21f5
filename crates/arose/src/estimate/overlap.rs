//! Overlap: the relative size of two search engines.
//!
//! *Question.* Neither search engine can be counted, but pages can be sampled from each and looked
//! up in the other. Which one is larger, and by how much?
//!
//! *Idea.* The pages in both are one set, seen from two sides: `|A| Pr(A in B) = |A and B| = |B|
//! Pr(B in A)`. So `|A| / |B| = Pr(B in A) / Pr(A in B)`. If half of A is in B and a sixth of B is
//! in A, then A is a third of B. Each probability is the share of a sample found on the other side
//! ([`Containment`]); the logarithm of the ratio is nearly normal with variance `(1-f)/(n f) +
//! (1-g)/(m g)`.
//!
//! *Paper.* Bharat & Broder 1998. [`crate::estimate::lexicon`] describes how pages are sampled and
//! looked up.
//!
//! *Parameters.* The sample sizes: 600 pages of each with f = 1/2 and g = 1/6 give a relative error
//! of 10%. *Error.* Covers 92% to 97% instead of 95%. A count of zero becomes 1/2 of n + 1 and is
//! noted; a full count keeps its value, but never claims to be without error. *Not for* search
//! engines without any overlap, which are an error, nor for pages sampled with unequal probability:
//! the ratio is then that of the weights under which they were sampled ([`crate::estimate::pool`]
//! corrects this).

use crate::Error;
use crate::estimate::{Estimate, Method, Note};
use crate::judgement::{Interval, Z_95, wilson};

/// The result of looking up one page in a search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// The search engine has it.
    Found,
    /// The search engine does not have it.
    Absent,
    /// There was no response, because of a timeout or error. This is not the same as absent.
    Missing,
}

/// The number of pages of one search engine's sample that another search engine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Containment {
    /// Pages found there.
    pub n_found: u64,
    /// Pages not found there.
    pub n_absent: u64,
    /// Lookups without a response.
    pub n_missing: u64,
}

impl Containment {
    /// Creates counts of pages found and not found.
    #[must_use]
    pub const fn new(n_found: u64, n_absent: u64) -> Self {
        Self {
            n_found,
            n_absent,
            n_missing: 0,
        }
    }

    /// Returns the number of pages whose lookup had a response.
    #[must_use]
    pub const fn n_checked(&self) -> u64 {
        self.n_found.saturating_add(self.n_absent)
    }

    /// Returns the share of lookups without a response; `None` without lookups.
    #[must_use]
    pub fn missing_rate(&self) -> Option<f64> {
        let n = self.n_checked().saturating_add(self.n_missing);
        (n > 0).then(|| self.n_missing as f64 / n as f64)
    }

    /// Returns the share found, with its interval; `None` without a response.
    #[must_use]
    pub fn share(&self) -> Option<(f64, Interval)> {
        let n = self.n_checked();
        let interval = wilson(self.n_found, n, Z_95);
        (n > 0).then(|| (self.n_found as f64 / n as f64, interval))
    }

    /// Returns the share found, with a count of zero replaced by one half; NaN without a response.
    pub(super) fn positive_share(&self) -> f64 {
        let n = self.n_checked() as f64;
        match self.n_found {
            0 if n > 0.0 => 0.5 / (n + 1.0),
            found => found as f64 / n,
        }
    }

    /// Returns the variance of the logarithm of the share, positive even if every page was found.
    pub(super) fn log_variance(&self) -> f64 {
        let n = self.n_checked() as f64;
        let share = match self.n_absent {
            0 => (n + 0.5) / (n + 1.0),
            _ => self.positive_share(),
        };
        (1.0 - share) / (n * share)
    }
}

impl Extend<Check> for Containment {
    fn extend<I: IntoIterator<Item = Check>>(&mut self, checks: I) {
        for check in checks {
            match check {
                Check::Found => self.n_found += 1,
                Check::Absent => self.n_absent += 1,
                Check::Missing => self.n_missing += 1,
            }
        }
    }
}

impl FromIterator<Check> for Containment {
    fn from_iter<I: IntoIterator<Item = Check>>(checks: I) -> Self {
        let mut containment = Self::default();
        containment.extend(checks);
        containment
    }
}

/// Estimates `|A| / |B|` from A's sample looked up in B and B's in A.
///
/// # Errors
///
/// Returns an error if no page of a sample had a response, or if no page of either was found in the
/// other.
///
/// ```
/// use arose::estimate::overlap::{Containment, relative_size};
/// let (a_in_b, b_in_a) = (Containment::new(300, 300), Containment::new(100, 500));
/// let estimate = relative_size(&a_in_b, &b_in_a)?;
/// assert!((estimate.value - 1.0 / 3.0).abs() < 1e-12);
/// let interval = estimate.interval.unwrap();
/// assert_eq!(format!("{:.3}-{:.3}", interval.low, interval.high), "0.274-0.406");
/// # Ok::<(), arose::Error>(())
/// ```
pub fn relative_size(a_in_b: &Containment, b_in_a: &Containment) -> Result<Estimate, Error> {
    let quantity = Method::Overlap.quantity();
    if a_in_b.n_checked() == 0 || b_in_a.n_checked() == 0 {
        let reason = "a sample has no page whose lookup got a response";
        return Err(Error::no_estimate(quantity, reason));
    }
    if a_in_b.n_found == 0 && b_in_a.n_found == 0 {
        let reason = "no page of either sample was found in the other engine";
        return Err(Error::no_estimate(quantity, reason));
    }
    let ratio = b_in_a.positive_share() / a_in_b.positive_share();
    let stretch = (Z_95 * log_ratio_error(a_in_b, b_in_a)).exp();
    let interval = Interval {
        low: ratio / stretch,
        high: ratio * stretch,
    };
    let n_samples = a_in_b.n_checked().saturating_add(b_in_a.n_checked());
    let any = |count: fn(&Containment) -> bool| count(a_in_b) || count(b_in_a);
    Ok(Estimate::new(Method::Overlap, ratio, n_samples)?
        .with_interval(interval)
        .with_notes(any(|side| side.n_found == 0).then_some(Note::ZeroCount))
        .with_notes(any(|side| side.n_missing > 0).then_some(Note::SomeMissing)))
}

/// Returns the standard error of `ln |A| / |B|`.
#[must_use]
pub fn log_ratio_error(a_in_b: &Containment, b_in_a: &Containment) -> f64 {
    (a_in_b.log_variance() + b_in_a.log_variance()).sqrt()
}

/// Returns the interval that is valid for any results of the missing lookups.
///
/// It extends from the low end if all missing pages of A and none of B were found, to the high end
/// if none of A and all of B were found. Without missing lookups it equals that of
/// [`relative_size`].
///
/// # Errors
///
/// Returns an error under the conditions of [`relative_size`], and if all pages found could have
/// been missing.
pub fn worst_case(a_in_b: &Containment, b_in_a: &Containment) -> Result<Interval, Error> {
    let all_found = |side: &Containment| {
        Containment::new(side.n_found.saturating_add(side.n_missing), side.n_absent)
    };
    let all_absent = |side: &Containment| {
        Containment::new(side.n_found, side.n_absent.saturating_add(side.n_missing))
    };
    let least = relative_size(&all_found(a_in_b), &all_absent(b_in_a))?;
    let most = relative_size(&all_absent(a_in_b), &all_found(b_in_a))?;
    Ok(Interval {
        low: least.interval.map_or(0.0, |interval| interval.low),
        high: most
            .interval
            .map_or(f64::INFINITY, |interval| interval.high),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_third_of_the_other() {
        let (a_in_b, b_in_a) = (Containment::new(300, 300), Containment::new(100, 500));
        let estimate = relative_size(&a_in_b, &b_in_a).unwrap();
        assert!((estimate.value - 1.0 / 3.0).abs() < 1e-15);
        assert!((log_ratio_error(&a_in_b, &b_in_a) - 0.1).abs() < 1e-15);
        let interval = estimate.interval.unwrap();
        assert!((interval.low - 0.274).abs() < 0.0005 && (interval.high - 0.406).abs() < 0.0005);
        assert_eq!((estimate.n_samples, estimate.notes), (1200, vec![]));
    }

    #[test]
    fn zero_counts_are_halves_and_noted() {
        let estimate = relative_size(&Containment::new(0, 9), &Containment::new(5, 5)).unwrap();
        assert!((estimate.value - 0.5 / (0.5 / 10.0)).abs() < 1e-12);
        assert_eq!(estimate.notes, [Note::ZeroCount]);
    }

    /// If both samples are found completely, the sizes are close, but not necessarily equal.
    #[test]
    fn full_counts_are_not_certain() {
        let full = Containment::new(20, 0);
        let estimate = relative_size(&full, &full).unwrap();
        let interval = estimate.interval.unwrap();
        assert_eq!(estimate.value, 1.0);
        assert!(interval.low < 0.96 && interval.high > 1.04, "{interval:?}");
    }

    #[test]
    fn missing_is_not_absent() {
        let checks = [Check::Found, Check::Absent, Check::Missing, Check::Missing];
        let side: Containment = checks.into_iter().collect();
        assert_eq!((side.n_checked(), side.missing_rate()), (2, Some(0.5)));
        assert_eq!(side.share().unwrap().0, 0.5);
        let estimate = relative_size(&side, &side).unwrap();
        assert_eq!(
            (estimate.value, estimate.notes),
            (1.0, vec![Note::SomeMissing])
        );
        let (narrow, wide) = (
            estimate.interval.unwrap(),
            worst_case(&side, &side).unwrap(),
        );
        assert!(wide.low < narrow.low && wide.high > narrow.high);
    }

    #[test]
    fn no_overlap_is_refused() {
        let (none, some, empty) = (
            Containment::new(0, 50),
            Containment::new(5, 5),
            Containment::default(),
        );
        let error = relative_size(&none, &none).unwrap_err().to_string();
        assert!(error.contains("no page of either sample"), "{error}");
        assert!(relative_size(&empty, &some).is_err());
        assert!(relative_size(&some, &empty).is_err());
        assert_eq!((empty.share(), empty.missing_rate()), (None, None));
    }

    proptest! {
        #[test]
        fn seen_from_the_other_side_it_is_the_inverse(
            found in 1_u64..500, absent in 0_u64..500, other in 1_u64..500, lacking in 0_u64..500,
        ) {
            let (a, b) = (Containment::new(found, absent), Containment::new(other, lacking));
            let (there, back) = (relative_size(&a, &b).unwrap(), relative_size(&b, &a).unwrap());
            prop_assert!((there.value * back.value - 1.0).abs() < 1e-12);
            let (there, back) = (there.interval.unwrap(), back.interval.unwrap());
            prop_assert!((there.low * back.high - 1.0).abs() < 1e-12);
            prop_assert!(there.low < there.high);
        }

        #[test]
        fn no_counts_panic(found: u64, absent: u64, missing: u64, other: u64) {
            let a = Containment { n_found: found, n_absent: absent, n_missing: missing };
            let b = Containment { n_found: other, n_absent: absent, n_missing: found };
            let _ = (relative_size(&a, &b), worst_case(&a, &b));
        }
    }
}
