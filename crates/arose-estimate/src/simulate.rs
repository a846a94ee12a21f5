//! Simulated studies, which show how reliable each method is.
//!
//! *Question.* Before an estimate about a real search engine is trusted: what would the same method
//! with the same sample give where the true value is known?
//!
//! *Idea.* Generate a [`World`] of synthetic search engines, run the methods on it as on real ones,
//! and show the true value next to each estimate. Run many such studies and count how often the
//! intervals contain it ([`coverage`]).
//!
//! *Parameters.* The world: pages, shares, dependence, duplicates, faults. *Cost.* About one second
//! per study. *Not for* biases that are not simulated.

use std::collections::{BTreeMap, BTreeSet};

use arose::estimate::simulate::{CorpusConfig, EngineConfig, choose_distinct};
use arose::mix::{SplitMix, mix};
use serde::Serialize;

use super::pool::{PageMeasure, PoolConfig, Way, choose};
use super::vocabulary::{Vocabulary, lexicon};
use super::{Findings, capture, corpus_size, lower_bound, overlap, pool, searches};
use crate::Error;
use crate::engine::{Engine, Fault, Log, Panel, Question, World};

/// A method that can be simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// A lower bound from claimed counts.
    LowerBound,
    /// Relative sizes, union and coverage.
    Overlap,
    /// Relative sizes by random queries.
    Searches,
    /// A mean over uniform pages.
    Pool,
    /// The size of one search engine.
    CorpusSize,
    /// All pages, from two samples.
    Capture,
}

impl Part {
    /// All methods.
    pub const ALL: [Self; 6] = [
        Self::LowerBound,
        Self::Overlap,
        Self::Searches,
        Self::Pool,
        Self::CorpusSize,
        Self::Capture,
    ];
}

/// Settings of a world and its studies.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulationSettings {
    /// The pages.
    pub corpus: CorpusConfig,
    /// The share of the pages in each search engine.
    pub shares: Vec<f64>,
    /// Tendency of search engines to have the same popular pages.
    pub dependence: f64,
    /// How search engines behave.
    pub engine: EngineConfig,
    /// The fault of the last search engine.
    pub fault: Fault,
    /// Number of pages per search engine, or of queries.
    pub n_samples: usize,
    /// The methods to run.
    pub parts: Vec<Part>,
    /// The seed of the study; the corpus has its own.
    pub seed: u64,
}

impl Default for SimulationSettings {
    /// Four search engines with 50%, 40%, 16% and 8.5% of 4,000 pages.
    fn default() -> Self {
        Self {
            corpus: CorpusConfig::default(),
            shares: vec![0.5, 0.4, 0.16, 0.085],
            dependence: 0.0,
            engine: EngineConfig::default(),
            fault: Fault::None,
            n_samples: 400,
            parts: Part::ALL.to_vec(),
            seed: 1,
        }
    }
}

/// Runs one study.
///
/// # Errors
///
/// If a setting is out of range, or a method has no data to work with.
pub fn run(settings: &SimulationSettings) -> Result<Vec<Findings>, Error> {
    let world = World::new(&settings.corpus, &settings.shares, settings.dependence)?;
    run_in(&world, settings)
}

/// Runs one study in an existing world.
fn run_in(world: &World, settings: &SimulationSettings) -> Result<Vec<Findings>, Error> {
    let vocabulary = world.vocabulary();
    let parts = settings.parts.iter();
    parts
        .map(|&part| {
            let mut panel = panel(world, settings)?;
            study(part, world, settings, &vocabulary, &mut panel)
        })
        .collect()
}

/// The search engines of a world; the last one has the fault.
///
/// # Errors
///
/// If a setting is out of range.
pub fn panel(world: &World, settings: &SimulationSettings) -> Result<Panel, Error> {
    let n = world.holds.len();
    let engines = (0..n).map(|place| {
        let config = EngineConfig {
            seed: mix(settings.engine.seed ^ place as u64),
            ..settings.engine
        };
        let fault = match place + 1 == n {
            true => settings.fault,
            false => Fault::None,
        };
        let engine: Box<dyn Engine> = Box::new(world.engine(place, config, fault)?);
        Ok((name(place), engine))
    });
    let engines = engines.collect::<Result<Vec<_>, Error>>()?;
    Panel::new(engines, &[], Log::off(), u64::MAX)
}

/// Search engines are called a, b, c and so on.
fn name(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place) if place < 26 => char::from(b'a' + place).to_string(),
        _ => format!("engine{place}"),
    }
}

fn study(
    part: Part,
    world: &World,
    settings: &SimulationSettings,
    vocabulary: &Vocabulary,
    panel: &mut Panel,
) -> Result<Findings, Error> {
    let (n, seed) = (settings.n_samples, settings.seed);
    Ok(match part {
        Part::LowerBound => {
            let found = lower_bound::run(panel, &lists(vocabulary), seed)?;
            with_truths(found, |name| {
                let engine = engine_named(world, name.strip_prefix("claimed by ")?)?;
                Some(world.n_held(engine) as f64)
            })
        }
        Part::Overlap => {
            let own = overlap::OverlapSettings {
                n_samples: n,
                seed,
                ..overlap::OverlapSettings::default()
            };
            let found = overlap::run(panel, vocabulary, &own)?;
            let truths = overlap_truths(world);
            with_truths(found, |name| {
                truths
                    .get(name.trim_end_matches(", length-corrected"))
                    .copied()
            })
        }
        Part::Searches => {
            let words = lexicon(vocabulary)?;
            let mut random = SplitMix::new(mix(seed ^ 0x5EA));
            let queries: Vec<Question> = (0..n)
                .map(|_| Question::all(&words.draw_pair(&mut random)))
                .collect();
            let own = searches::SearchSettings {
                checking: searches::Verification::Verified,
                size_of_first: Some(world.n_held(0) as u64),
                seed,
            };
            let found = searches::run(panel, &queries, &own)?;
            let truths = overlap_truths(world);
            with_truths(found, |name| {
                let name = name.replace("all results", "union");
                let all = world.corpus.pages.len() as f64;
                let is_all = name.starts_with("all pages");
                is_all.then_some(all).or_else(|| truths.get(&name).copied())
            })
        }
        Part::Pool => {
            let words = choose(vocabulary, &PoolConfig::default());
            let engine = world.engine(0, settings.engine, Fault::None)?;
            let pages = engine.matched_by(&words);
            let lengths = pages
                .iter()
                .map(|&page| world.corpus.pages[page].tokens.len());
            let truth = lengths.sum::<usize>() as f64 / pages.len().max(1) as f64;
            let own = pool::PoolSettings {
                n_samples: n,
                measure: PageMeasure::Words,
                ways: vec![Way::Importance, Way::Plain],
                n_controls: 10,
                seed,
            };
            let found = pool::run(panel, 0, vocabulary, words, &own)?;
            with_truths(found, |_| Some(truth))
        }
        Part::CorpusSize => {
            let first = choose(vocabulary, &PoolConfig::default());
            let engine = world.engine(0, settings.engine, Fault::None)?;
            let truth = engine.matched_by(&first).len() as f64;
            let pools = corpus_size::Pools {
                first,
                ..corpus_size::Pools::default()
            };
            let own = corpus_size::CorpusSizeSettings {
                n_queries: n,
                n_controls: 10,
                seed,
            };
            let found = corpus_size::run(panel, 0, vocabulary, &pools, &own)?;
            with_truths(found, |_| Some(truth))
        }
        Part::Capture => {
            let n_pages = world.corpus.pages.len();
            let mut random = SplitMix::new(mix(seed ^ 0xCA));
            let lists: Vec<BTreeSet<String>> = [n, n * 3 / 4]
                .iter()
                .map(|&n| {
                    let pages = choose_distinct(n_pages, n, &mut random);
                    pages.iter().map(ToString::to_string).collect()
                })
                .collect();
            let found = capture::of_lists(&lists);
            with_truths(found, |name| (name == "pages").then_some(n_pages as f64))
        }
    })
}

/// Disjoint lists of the most frequent words.
fn lists(vocabulary: &Vocabulary) -> Vec<Vec<String>> {
    let mut frequent: Vec<&(String, u64)> = vocabulary.iter().collect();
    frequent.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let words: Vec<String> = frequent
        .iter()
        .take(32)
        .map(|(word, _)| word.clone())
        .collect();
    words.chunks(8).map(<[String]>::to_vec).collect()
}

fn with_truths(mut findings: Findings, truth: impl Fn(&str) -> Option<f64>) -> Findings {
    for figure in &mut findings.figures {
        figure.truth = truth(&figure.name);
    }
    findings
}

fn engine_named(world: &World, wanted: &str) -> Option<usize> {
    (0..world.holds.len()).find(|&place| name(place) == wanted)
}

/// The overlap estimates if every page were sampled and found.
fn overlap_truths(world: &World) -> BTreeMap<String, f64> {
    let n = world.holds.len();
    let held = |place: usize| world.n_held(place) as f64;
    let union = world.n_union() as f64;
    let mut truths = BTreeMap::new();
    truths.insert(format!("union / {}", name(0)), union / held(0));
    for place in 0..n {
        truths.insert(
            format!("{} / {}", name(place), name(0)),
            held(place) / held(0),
        );
        truths.insert(format!("{} / union", name(place)), held(place) / union);
        for other in (0..n).filter(|&other| other != place) {
            let both = world.holds[place].iter().zip(&world.holds[other]);
            let both = both.filter(|(a, b)| **a && **b).count() as f64;
            truths.insert(
                format!("{} in {}", name(place), name(other)),
                both / held(place),
            );
        }
    }
    let mut exactly = vec![0.0; n];
    for page in 0..world.corpus.pages.len() {
        let times = world.holds.iter().filter(|holds| holds[page]).count();
        if times > 0 {
            exactly[times - 1] += 1.0 / union;
        }
    }
    for (fewer, share) in exactly.into_iter().enumerate() {
        truths.insert(format!("in exactly {} of them", fewer + 1), share);
    }
    truths
}

/// The accuracy of an estimate over many studies.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Fared {
    /// The estimate.
    pub name: String,
    /// The method.
    pub method: &'static str,
    /// Number of studies that gave a value.
    pub n_given: u64,
    /// Number of studies whose interval contains the true value.
    pub n_covering: u64,
    /// Number of studies with an interval.
    pub n_intervals: u64,
    /// The mean of value divided by true value, minus one.
    pub mean_error: f64,
    /// The standard deviation of value divided by true value.
    pub deviation: f64,
}

/// Runs many studies in one world, each with its own seed, and counts how often the intervals are
/// right.
///
/// # Errors
///
/// Like [`run`].
pub fn coverage(settings: &SimulationSettings, n_studies: u64) -> Result<Vec<Fared>, Error> {
    let world = World::new(&settings.corpus, &settings.shares, settings.dependence)?;
    let mut fared: Vec<Fared> = Vec::new();
    let mut squares: Vec<f64> = Vec::new();
    for study in 0..n_studies {
        let own = SimulationSettings {
            seed: mix(settings.seed ^ mix(study + 1)),
            ..settings.clone()
        };
        for figure in run_in(&world, &own)?
            .iter()
            .flat_map(|found| &found.figures)
        {
            let Some(truth) = figure.truth else {
                continue;
            };
            let is_same = |one: &Fared| one.name == figure.name && one.method == figure.method;
            let place = fared.iter().position(is_same).unwrap_or_else(|| {
                fared.push(Fared {
                    name: figure.name.clone(),
                    method: figure.method,
                    ..Fared::default()
                });
                squares.push(0.0);
                fared.len() - 1
            });
            if let Some(value) = figure.value {
                let error = value / truth - 1.0;
                fared[place].n_given += 1;
                fared[place].mean_error += error;
                squares[place] += error * error;
            }
            if let Some(covers) = figure.covers() {
                fared[place].n_intervals += 1;
                fared[place].n_covering += u64::from(covers);
            }
        }
    }
    for (one, squares) in fared.iter_mut().zip(squares) {
        let n = one.n_given.max(1) as f64;
        one.mean_error /= n;
        one.deviation = (squares / n - one.mean_error.powi(2)).max(0.0).sqrt();
    }
    Ok(fared)
}
