//! Pool sampling of a search engine: shares and means over uniformly sampled pages.
//!
//! *Question.* What is the mean length of the pages of a search engine, or the share of its pages
//! with some property, although long pages match more queries?
//!
//! *Idea.* The pool is a set of words of medium frequency; a query is one of them. A page is
//! fetched, and the pool words in its text are the queries that should return it. Sending some of
//! them estimates its degree. Each page then counts one over its degree
//! ([`arose::estimate::pool`]).
//!
//! *Papers.* Bar-Yossef & Gurevich 2006, 2007. *Parameters.* The pool, the measure, the method.
//! *Cost.* Per page a few searches, one fetch and, for the degree, one or more searches. Rejection
//! and Metropolis-Hastings query all pool words of a page. *Error.* Bootstrap over pages, batch
//! means over a walk. *Not for* pages without a word of the pool.

use arose::estimate::bootstrap::Bootstrap;
use arose::estimate::chain::{self, Weighted};
use arose::estimate::pool::{
    PageDegree, Picking, Steps, importance_mean, metropolis, reject, share,
};
use arose::estimate::{Estimate, Method};
use arose::mix::{SplitMix, mix};

use super::desk::Desk;
use super::vocabulary::Vocabulary;
use super::{Figure, Findings, MAX_DOUBTFUL, Series, is_point};
use crate::engine::{Page, Panel};
use arose_search::words;

use crate::Error;

/// Which words belong to a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolConfig {
    /// Minimum number of pages of the vocabulary with a word.
    pub least: u64,
    /// Maximum number of pages of the vocabulary with a word.
    pub most: u64,
    /// Maximum number of words; the rest are omitted evenly.
    pub size: usize,
}

impl Default for PoolConfig {
    fn default() -> Self {
        Self {
            least: 2,
            most: 50,
            size: 10_000,
        }
    }
}

/// The words of a pool, in alphabetical order.
#[must_use]
pub fn choose(vocabulary: &Vocabulary, config: &PoolConfig) -> Vec<String> {
    let fits = |n: u64| (config.least..=config.most).contains(&n);
    let mut pool: Vec<String> = vocabulary
        .iter()
        .filter(|(_, n)| fits(*n))
        .map(|(word, _)| word.clone())
        .collect();
    if pool.len() > config.size {
        pool.sort_by_cached_key(|word| {
            word.bytes()
                .fold(1, |hash, byte| mix(hash ^ u64::from(byte)))
        });
        pool.truncate(config.size);
        pool.sort_unstable();
    }
    pool
}

/// The measured property of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageMeasure {
    /// Its number of words.
    Words,
    /// Whether it has more words than this.
    LongerThan(u64),
    /// Whether it has this word or phrase.
    Contains(String),
    /// Whether its URL contains this.
    Address(String),
}

impl PageMeasure {
    pub(super) fn of(&self, page: &Page) -> f64 {
        let indicator = |holds: bool| f64::from(u8::from(holds));
        match self {
            Self::Words => words::words(&page.text).len() as f64,
            Self::LongerThan(n) => indicator(words::words(&page.text).len() as u64 > *n),
            Self::Address(part) => indicator(page.address.contains(part.as_str())),
            Self::Contains(phrase) => {
                let (text, phrase) = (words::words(&page.text), words::words(phrase));
                indicator(text.windows(phrase.len().max(1)).any(|at| at == phrase))
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Words => "words per page".to_owned(),
            Self::LongerThan(n) => format!("share of pages with more than {n} words"),
            Self::Contains(phrase) => format!("share of pages with \"{phrase}\""),
            Self::Address(part) => format!("share of pages with {part} in the URL"),
        }
    }

    fn is_share(&self) -> bool {
        *self != Self::Words
    }
}

/// How to correct for unequal probabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// No correction, for comparison.
    Plain,
    /// By weights.
    Importance,
    /// By thinning.
    Rejection,
    /// By a walk.
    Metropolis,
}

/// Settings for sampling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolSettings {
    /// Number of pages, or steps of a walk.
    pub n_samples: usize,
    /// The property to measure.
    pub measure: PageMeasure,
    /// How to correct for unequal probabilities.
    pub ways: Vec<Way>,
    /// Number of queries that are repeated at the end.
    pub n_controls: u32,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Samples pages of one search engine, weights them and computes the estimates.
///
/// # Errors
///
/// If the pool is empty or gives no page, or the search engine can no longer respond.
pub fn run(
    panel: &mut Panel,
    engine: usize,
    vocabulary: &Vocabulary,
    pool: Vec<String>,
    settings: &PoolSettings,
) -> Result<Findings, Error> {
    let mut random = SplitMix::new(mix(settings.seed));
    let mut desk = Desk::open(panel, engine, vocabulary, pool, settings.n_controls)?;
    let mut findings = Findings::new(
        "pool",
        "pages that a word of the pool returns, each URL once",
        settings.seed,
    );
    let n_ways = settings.ways.len() as u64;
    desk.panel.expect(n_ways * settings.n_samples as u64);
    for &way in &settings.ways {
        let figure = way.figure(&mut desk, settings, &mut random, &mut findings);
        match figure {
            Ok(figure) => findings.figures.push(figure),
            Err(error) if error.ends_study() || matches!(error, Error::Estimate(_)) => {
                let name = format!("{} ({way:?})", settings.measure.name()).to_lowercase();
                let reason = match error.ends_study() {
                    true => "the budget of requests was spent".to_owned(),
                    false => error.to_string(),
                };
                findings
                    .figures
                    .push(Figure::refused(name, way.method(), reason));
            }
            Err(error) => return Err(error),
        }
    }
    findings.warnings = desk.warnings();
    let n_controls = settings.n_controls as usize;
    tolerate_budget(desk.panel.ask_again(engine, n_controls, &mut random))?;
    let quantity = match settings.measure.is_share() {
        true => Quantity::Share,
        false => Quantity::Amount,
    };
    findings.figures = settled(desk.panel, engine, quantity, findings.figures);
    Ok(findings.finished(panel))
}

/// The kind of an estimate about one search engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantity {
    /// A share of the pages, from 0 to 1.
    Share,
    /// A number or a mean without an upper bound.
    Amount,
}

impl Quantity {
    /// The interval if only the share `kept` of the responses could be used.
    fn widened(self, low: f64, high: f64, kept: f64) -> [f64; 2] {
        match self {
            Self::Share => [low * kept, high * kept + (1.0 - kept)],
            Self::Amount => [low * kept, high / kept],
        }
    }
}

/// Ignores the error if the budget does not allow a control query.
pub(super) fn tolerate_budget(outcome: Result<(), Error>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.ends_study() => Ok(()),
        other => other,
    }
}

/// Estimates about one search engine. They are refused if many responses are missing or changed,
/// and widened if a few are.
///
/// The interval extends to its position if the missing part counted nothing, and to its position if
/// it counted in full.
pub(super) fn settled(
    panel: &Panel,
    engine: usize,
    quantity: Quantity,
    figures: Vec<Figure>,
) -> Vec<Figure> {
    let health = panel.health(engine);
    let (missing, changed) = (health.missing_rate(), health.changed_rate());
    let settle = |figure: Figure| {
        if figure.value.is_none() {
            return figure;
        }
        if missing > MAX_DOUBTFUL || changed > MAX_DOUBTFUL {
            return Figure {
                value: None,
                interval: None,
                refused: Some(format!(
                    "{:.0}% of the searches got no response, and {:.0}% of the repeated ones got a \
                     different response",
                    100.0 * missing,
                    100.0 * changed
                )),
                ..figure
            };
        }
        let kept = (1.0 - missing) * (1.0 - changed);
        let wide = figure
            .interval
            .map(|[low, high]| quantity.widened(low, high, kept));
        figure.widened(wide)
    };
    figures.into_iter().map(settle).collect()
}

impl Way {
    fn method(self) -> Method {
        match self {
            Self::Plain | Self::Importance => Method::Importance,
            Self::Rejection => Method::Rejection,
            Self::Metropolis => Method::MetropolisHastings,
        }
    }

    fn figure(
        self,
        desk: &mut Desk<'_>,
        settings: &PoolSettings,
        random: &mut SplitMix,
        findings: &mut Findings,
    ) -> Result<Figure, Error> {
        let name = settings.measure.name();
        match self {
            Self::Plain => {
                let drawn = desk.draw(settings, Picking::AnyQuery, random)?;
                let values: Vec<f64> = desk.values(&drawn, settings)?;
                let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
                let mut figure = Figure::plain(
                    format!("{name}, plain"),
                    self.method(),
                    mean,
                    drawn.len() as u64,
                );
                figure.method = "any-query";
                let note = "biased towards long pages; for comparison";
                figure.notes.push(note.to_owned());
                Ok(figure)
            }
            Self::Importance => importance(desk, settings, random, findings),
            Self::Rejection => rejection(desk, settings, random),
            Self::Metropolis => walk(desk, settings, random),
        }
    }
}

fn importance(
    desk: &mut Desk<'_>,
    settings: &PoolSettings,
    random: &mut SplitMix,
    findings: &mut Findings,
) -> Result<Figure, Error> {
    let drawn = desk.draw(settings, Picking::ByCardinality, random)?;
    let mut sample = Vec::new();
    let mut series = Series {
        name: settings.measure.name(),
        points: Vec::new(),
    };
    let (mut sum, mut total) = (0.0, 0.0);
    for (place, &page) in drawn.iter().enumerate() {
        let (Some(value), Some(weight)) = (
            desk.value(page, &settings.measure)?,
            desk.inverse_degree(page, random)?,
        ) else {
            continue;
        };
        sum += weight * value;
        total += weight;
        sample.push(Weighted { value, weight });
        if is_point(place + 1, drawn.len()) {
            series.points.push((place as u64 + 1, sum / total));
        }
    }
    let estimate = importance_mean(&sample, &Bootstrap::new(settings.seed))?;
    let name = format!("{}, importance-weighted", settings.measure.name());
    let mut figure = Figure::new(name, &estimate.estimate);
    figure.notes.push(format!(
        "equivalent to {:.0} uniform pages",
        estimate.effective_size
    ));
    findings.series.push(series);
    Ok(figure)
}

fn rejection(
    desk: &mut Desk<'_>,
    settings: &PoolSettings,
    random: &mut SplitMix,
) -> Result<Figure, Error> {
    let drawn = desk.draw(settings, Picking::ByCardinality, random)?;
    let mut degrees = Vec::new();
    for &page in &drawn {
        let degree = desk.queries_of(page)?.len() as u64;
        if degree > 0 {
            degrees.push(PageDegree { page, degree });
        }
    }
    let least = degrees.iter().map(|page| page.degree).min().unwrap_or(1);
    let kept = reject(&degrees, least, random)?;
    let values = desk.values(&kept, settings)?;
    let name = format!("{}, by rejection", settings.measure.name());
    let estimate: Estimate = if settings.measure.is_share() {
        let n_with = values.iter().filter(|&&value| value > 0.0).count();
        share(n_with as u64, values.len() as u64)?
    } else {
        let uniform: Vec<Weighted> = values.iter().map(|&value| uniform(value)).collect();
        let mean = importance_mean(&uniform, &Bootstrap::new(settings.seed))?;
        Estimate {
            method: Method::Rejection,
            ..mean.estimate
        }
    };
    Ok(Figure::new(name, &estimate))
}

fn walk(
    desk: &mut Desk<'_>,
    settings: &PoolSettings,
    random: &mut SplitMix,
) -> Result<Figure, Error> {
    let start = desk.draw_one(Picking::ByCardinality, random)?;
    let steps = Steps {
        n_kept: settings.n_samples,
        burn_in: settings.n_samples / 10,
    };
    let desk = std::cell::RefCell::new(desk);
    let drawn = metropolis(
        start,
        steps,
        random,
        |page| desk.borrow_mut().queries_of(page),
        |query| desk.borrow_mut().answer(query),
    )?;
    let desk = desk.into_inner();
    let mut chain = Vec::new();
    for &page in &drawn.pages {
        chain.extend(desk.value(page, &settings.measure)?.map(uniform));
    }
    let estimate = chain::weighted_mean(Method::MetropolisHastings, &chain)?;
    let name = format!("{}, by Metropolis-Hastings", settings.measure.name());
    Ok(Figure::new(name, &estimate))
}

fn uniform(value: f64) -> Weighted {
    Weighted { value, weight: 1.0 }
}
