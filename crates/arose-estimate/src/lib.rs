//! Estimates the size and overlap of search engines.
//!
//! The mathematics is in [`arose::estimate`]; this crate applies it to [search engines](engine).
//! There is one file per method. Each queries a [`Panel`], passes the responses to the formulas,
//! and returns [`Findings`]: estimates with intervals, the behaviour of every search engine,
//! warnings, and the biases that the intervals do not cover.
//!
//! | method | queries | finds |
//! |---|---|---|
//! | [`lower_bound`] | frequent words of many languages | a lower bound on the claimed size |
//! | [`overlap`] | random pages of each engine in all others | relative sizes, union, coverage |
//! | [`coverage`] | pages sampled elsewhere, e.g. by a walk | the share of them in each engine |
//! | [`searches`] | the queries of a log | relative sizes and coverage on these queries |
//! | [`pool`] | queries of a pool, degrees of pages | shares and means over uniform pages |
//! | [`corpus_size`] | the same | the number of pages |
//! | [`walk`] | links | shares of reachable pages |
//! | [`addresses`] | a simulated address space | servers |
//! | [`capture`] | nothing: lists of pages | the number of pages from the overlap of the lists |
//!
//! [`study`] runs a complete comparison and writes a report; [`simulate`] shows on synthetic search
//! engines how reliable each method is.
//!
//! *Missing data.* Missing and changed responses widen an interval to all values that they allow
//! ([`Figure::sampling`] is the interval without them). If they are more than half, or if the data
//! do not determine a value, there is no estimate.

#![forbid(unsafe_code)]

pub mod addresses;
pub mod capture;
pub mod check;
pub mod corpus_size;
pub mod coverage;
mod desk;
pub mod engine;
mod error;
pub mod graph;
pub mod lower_bound;
pub mod overlap;
pub mod pool;
mod report;
pub mod searches;
pub mod simulate;
pub mod study;
pub mod vocabulary;
pub mod walk;

pub use error::Error;

use arose::estimate::{Estimate, Method};
use arose::judgement::Interval;
use serde::Serialize;

use crate::engine::{Health, Panel};

/// Maximum share of missing or changed responses; above it there is no estimate.
const MAX_DOUBTFUL: f64 = 0.5;

/// Number of points plotted of an estimate as the sample grows.
const N_POINTS: usize = 20;

/// The results of a method.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Findings {
    /// The method.
    pub method: &'static str,
    /// What the estimates count.
    pub counted: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// Number of responses used, from search engines or a log.
    pub n_responses: u64,
    /// The estimates, the most important first.
    pub figures: Vec<Figure>,
    /// The behaviour of each search engine.
    pub engines: Vec<Behaviour>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// Errors that the intervals do not cover.
    pub biases: Vec<Bias>,
    /// Estimates as the sample grew.
    pub series: Vec<Series>,
}

/// One estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its name.
    pub name: String,
    /// The method of the estimate.
    pub method: &'static str,
    /// The value; none if there is no estimate.
    pub value: Option<f64>,
    /// The 95% interval if the method has no bias, with the worst case for missing responses.
    pub interval: Option<[f64; 2]>,
    /// The same if missing responses are like the others; none if none are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<[f64; 2]>,
    /// Number of independent samples.
    pub n_samples: u64,
    /// Remarks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The reason why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The true value, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<f64>,
}

/// The behaviour of a search engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Behaviour {
    /// Its name.
    pub name: String,
    /// Maximum number of results that it shows.
    pub limit: usize,
    /// Its counters.
    #[serde(flatten)]
    pub health: Health,
}

/// An error of a method that more samples do not reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Bias {
    /// Its name, one word.
    pub name: &'static str,
    /// Its effect.
    pub effect: &'static str,
}

/// An estimate as the sample grew.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Sample sizes and values.
    pub points: Vec<(u64, f64)>,
}

impl Figure {
    /// An estimate with the interval of its sample.
    #[must_use]
    pub fn new(name: impl Into<String>, estimate: &Estimate) -> Self {
        Self {
            name: name.into(),
            method: estimate.method.as_str(),
            value: Some(estimate.value),
            interval: estimate.interval.map(ends),
            sampling: None,
            n_samples: estimate.n_samples,
            notes: estimate.notes.iter().map(ToString::to_string).collect(),
            refused: None,
            truth: None,
        }
    }

    /// An estimate without an interval.
    #[must_use]
    pub fn plain(name: impl Into<String>, method: Method, value: f64, n_samples: u64) -> Self {
        Self {
            name: name.into(),
            method: method.as_str(),
            value: Some(value),
            interval: None,
            sampling: None,
            n_samples,
            notes: Vec::new(),
            refused: None,
            truth: None,
        }
    }

    /// An estimate that the data do not allow.
    #[must_use]
    pub fn refused(name: impl Into<String>, method: Method, reason: impl ToString) -> Self {
        Self {
            value: None,
            refused: Some(reason.to_string()),
            ..Self::plain(name, method, 0.0, 0)
        }
    }

    /// An estimate, or the reason why there is none.
    #[must_use]
    pub fn of(name: &str, method: Method, estimate: &Result<Estimate, arose::Error>) -> Self {
        match estimate {
            Ok(estimate) => Self::new(name, estimate),
            Err(error) => Self::refused(name, method, error),
        }
    }

    /// Adds the true value.
    #[must_use]
    pub fn with_truth(self, truth: f64) -> Self {
        Self {
            truth: Some(truth),
            ..self
        }
    }

    /// Widens the interval so that it includes another.
    #[must_use]
    fn widened(mut self, other: Option<[f64; 2]>) -> Self {
        if let (Some([low, high]), Some(other)) = (self.interval, other) {
            let wide = [low.min(other[0]), high.max(other[1])];
            if wide != [low, high] {
                self.sampling = self.sampling.or(Some([low, high]));
                self.interval = Some(wide);
            }
        }
        self
    }

    /// Whether the interval contains the true value; none if either is unknown.
    #[must_use]
    pub fn covers(&self) -> Option<bool> {
        let ([low, high], truth) = (self.interval?, self.truth?);
        Some(low <= truth && truth <= high)
    }
}

impl Findings {
    /// Findings without estimates.
    fn new(method: &'static str, counted: &str, seed: u64) -> Self {
        Self {
            method,
            counted: counted.to_owned(),
            seed,
            ..Self::default()
        }
    }

    /// Adds the behaviour of the search engines, and the biases of the methods of all estimates.
    fn finished(mut self, panel: &Panel) -> Self {
        self.n_responses = panel.n_responses();
        self.engines = (0..panel.n_engines())
            .map(|engine| Behaviour {
                name: panel.name(engine).to_owned(),
                limit: panel.limit(engine),
                health: panel.health(engine).clone(),
            })
            .collect();
        for engine in &self.engines {
            let remarks = engine.health.remarks().into_iter();
            let remarks = remarks.map(|remark| format!("{} {remark}", engine.name));
            self.warnings.extend(remarks);
        }
        self.with_biases()
    }

    /// Adds the biases of the methods of all estimates.
    fn with_biases(mut self) -> Self {
        for figure in &self.figures {
            let method = Method::ALL.iter().find(|m| m.as_str() == figure.method);
            for bias in method.map_or(&[][..], |method| method.biases()) {
                let bias = Bias {
                    name: bias.name,
                    effect: bias.effect,
                };
                if !self.biases.contains(&bias) {
                    self.biases.push(bias);
                }
            }
        }
        self
    }

    /// The estimate with a name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

fn ends(interval: Interval) -> [f64; 2] {
    [interval.low, interval.high]
}

/// Whether the sample has grown to a size at which a point is plotted.
fn is_point(n: usize, n_wanted: usize) -> bool {
    let step = n_wanted.div_ceil(N_POINTS).max(1);
    n.is_multiple_of(step) && n > 0
}
