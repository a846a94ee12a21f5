//! Size estimation: the size of a search engine, and the overlap of several.
//!
//! *Question.* A search engine, an archive or a web accepts queries but cannot be counted, and its
//! own claims are not reliable. How many pages does it have, alone and compared with others?
//!
//! *Idea.* Every method here samples pages or queries at random and derives a size from how often
//! they coincide. They differ in what can be sampled, and so in their biases:
//!
//! | to sample | and observe | see |
//! |---|---|---|
//! | nothing | the largest count a search engine claims | [`lower_bound`] |
//! | pages of each search engine, by random queries from a [`lexicon`] | whether the others have them | [`overlap`], [`least_squares`], [`joint`] |
//! | queries of a log | all their results, over all search engines | [`searches`] |
//! | addresses | whether a server responds | [`addresses`] |
//! | queries of a pool | in how many ways each result could have been found | [`pool`], [`corpus_size`] |
//! | [`links`], with jumps | how often the walk visits a page | [`walk`], [`pagerank`] |
//! | the same pages twice | how many occur again | [`capture`] |
//!
//! Each gives an [`Estimate`]: a value, a 95% interval for its sampling error, and in words the
//! biases that the interval does not cover. The interval of a share is
//! [Wilson's](crate::judgement::wilson). Values computed from several samples use the
//! [`bootstrap`]. Walks, whose steps are dependent, use batch means of a [`chain`].
//!
//! Data are passed as counts, slices and closures; nothing here searches or fetches. [`simulate`]
//! makes corpora, search engines, link graphs and address spaces of known size, which show how
//! reliable a method is before it is used on a real one.
//!
//! *Papers.* Bharat & Broder 1998; Lawrence & Giles 1998, 1999; Henzinger et al. 1999, 2000;
//! Bar-Yossef & Gurevich 2006; Broder et al. 2006.
//!
//! *Error.* Data that do not determine the result (no overlap, empty samples, search engines that
//! share nothing, NaN) give an [`Error`], never a number. *Not for* defining what is counted: the
//! report must say whether duplicates are collapsed, pages made on demand are excluded, or pages
//! known only by their links are included.

pub mod addresses;
pub mod bootstrap;
pub mod capture;
pub mod chain;
pub mod corpus_size;
pub mod joint;
pub mod least_squares;
pub mod lexicon;
pub mod links;
pub mod lower_bound;
mod method;
pub mod normal;
pub mod overlap;
pub mod pagerank;
pub mod pool;
pub mod searches;
pub mod simulate;
pub mod walk;

pub use method::{Bias, Method};

use std::fmt;

use crate::Error;
use crate::judgement::Interval;

/// An estimate with everything needed to assess it.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// The method; [`Method::biases`] lists the biases that the interval does not cover.
    pub method: Method,
    /// The estimated value, finite.
    pub value: f64,
    /// The 95% interval of the true value if the method has no bias. `None` for bounds, and if the
    /// data do not show their own spread.
    pub interval: Option<Interval>,
    /// The number of independent units: queries, pages, servers, or steps of a walk.
    pub n_samples: u64,
    /// The seed of the bootstrap, if there was one.
    pub seed: Option<u64>,
    /// Notes about this estimate.
    pub notes: Vec<Note>,
}

impl Estimate {
    /// Creates an estimate whose value is checked to be a number.
    fn new(method: Method, value: f64, n_samples: u64) -> Result<Self, Error> {
        if !value.is_finite() {
            let reason = format!("the formula gives {value}");
            return Err(Error::no_estimate(method.quantity(), reason));
        }
        Ok(Self {
            method,
            value,
            interval: None,
            n_samples,
            seed: None,
            notes: Vec::new(),
        })
    }

    fn with_interval(mut self, interval: Interval) -> Self {
        self.interval = Some(interval);
        self
    }

    /// Adds the interval of a bootstrap, or a note that there is none.
    fn with_bootstrap(mut self, interval: Option<Interval>, seed: u64) -> Self {
        self.interval = interval;
        self.seed = Some(seed);
        self.with_notes(interval.is_none().then_some(Note::NoSpread))
    }

    fn with_notes(mut self, notes: impl IntoIterator<Item = Note>) -> Self {
        self.notes.extend(notes);
        self.notes.sort_unstable();
        self.notes.dedup();
        self
    }
}

/// A note about one estimate, derived from its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Note {
    /// A count of zero was replaced by one half.
    ZeroCount,
    /// The true value is at least about this.
    LowerBound,
    /// All resamples give the same value, so the sample does not show its own error.
    NoSpread,
    /// The value is one by definition: the others are multiples of it.
    Reference,
    /// The linear and the logarithmic least squares differ by more than a standard error.
    FormsDiffer,
    /// Lookups without a response were omitted.
    SomeMissing,
    /// The number of effective samples is less than a tenth of those drawn.
    FewEffective,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::ZeroCount => "a count of zero was replaced by one half",
            Self::LowerBound => "a lower bound",
            Self::NoSpread => "the sample does not vary, so there is no interval",
            Self::Reference => "the unit of the other sizes",
            Self::FormsDiffer => "the two least-squares forms differ by more than a standard error",
            Self::SomeMissing => "lookups without a response were omitted",
            Self::FewEffective => "a few samples carry most of the weight",
        })
    }
}

/// Returns the mean of some numbers; NaN if there are none.
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the mean of values, each drawn `times` times.
fn mean_drawn(values: &[f64], times: &[u32]) -> f64 {
    let (mut sum, mut n) = (0.0, 0_u64);
    for (value, &drawn) in values.iter().zip(times) {
        sum += value * f64::from(drawn);
        n += u64::from(drawn);
    }
    sum / n as f64
}

/// A value with its error.
#[derive(Debug, Clone, Copy)]
struct Factor {
    value: f64,
    interval: Interval,
}

impl Factor {
    /// Returns its inverse.
    fn inverse(self) -> Self {
        let interval = Interval {
            low: 1.0 / self.interval.high,
            high: 1.0 / self.interval.low,
        };
        Self {
            value: 1.0 / self.value,
            interval,
        }
    }
}

/// Returns the product of independent positive factors. Its interval results from adding the
/// squares of their logarithmic distances to each end (Zou & Donner 2008).
///
/// This preserves the asymmetry of each interval, which a single standard error would not.
fn product(factors: &[Factor]) -> Factor {
    let value: f64 = factors.iter().map(|factor| factor.value).product();
    let distance = |end: fn(&Interval) -> f64| {
        let squares = factors
            .iter()
            .map(|factor| (end(&factor.interval) / factor.value).ln().powi(2));
        squares.sum::<f64>().sqrt()
    };
    let interval = Interval {
        low: value * (-distance(|interval| interval.low)).exp(),
        high: value * distance(|interval| interval.high).exp(),
    };
    Factor { value, interval }
}
