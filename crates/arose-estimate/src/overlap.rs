//! Overlap of search engines: relative sizes, union and coverage from sampled pages that are looked
//! up elsewhere.
//!
//! *Question.* None of several search engines can be counted. Which is the largest, how large is
//! their union, and which share of it does each have?
//!
//! *Idea.* Sample a page from each search engine by a query of two random words, fetch it, and look
//! it up in every other one ([`check`](crate::check)). All sizes follow from which search engines
//! have each page ([`least_squares`](arose::estimate::least_squares),
//! [`joint`](arose::estimate::joint)).
//!
//! The page is also looked up in its own search engine. A search engine that does not find its own
//! pages again also misses pages of others, so the share found is reported.
//!
//! Long pages contain more pairs of words and are sampled more often, about in proportion to the
//! square of their number of words. Therefore the estimates are also computed from pages thinned by
//! that square (`length-corrected` in the names).
//!
//! *Paper.* Bharat & Broder 1998. *Parameters.* Pages per search engine, and how they are looked
//! up. *Cost.* About `k n (k + 2)` requests for `k` search engines and `n` pages of each. *Error.*
//! Bootstrap over pages; lookups without a response count as their worst case. *Not for* search
//! engines that show only a few results: the first results are not representative.

mod figures;

use arose::estimate::joint::{Sampled, Samples};
use arose::estimate::least_squares::{Form, logarithmic};
use arose::estimate::lexicon::Lexicon;
use arose::estimate::overlap::Check;
use arose::mix::{SplitMix, mix};

use super::check::{Checker, Checking, Wanted};
use super::vocabulary::{lexicon, plain_words};
use super::{Findings, Series, is_point};
use crate::Error;
use crate::engine::{Panel, Question, Reply};

/// Number of consecutive failed queries after which a search engine is assumed to have no page.
const MAX_DRAWS: u64 = 500;

/// Maximum number of consecutive pages that cannot be fetched or have no words.
const MAX_UNUSABLE: u32 = 50;

/// A word is used for sampling if its page count is at least that of the most frequent word divided
/// by this.
const RAREST: u64 = 500;

/// If fewer words than this are available for sampling, rarer words are used too.
const MIN_DRAWING: usize = 100;

/// Maximum share of pages sampled from truncated responses; above it, the ranking matters.
const MAX_CUT: f64 = 0.2;

/// Settings for sampling and looking up pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverlapSettings {
    /// Number of pages per search engine.
    pub n_samples: usize,
    /// How pages are looked up.
    pub checking: Checking,
    /// Number of queries that are repeated at the end, per search engine.
    pub n_controls: u32,
    /// Least-squares form.
    pub form: Form,
    /// The search engine whose size is the unit.
    pub reference: usize,
    /// The seed of all random choices.
    pub seed: u64,
}

impl Default for OverlapSettings {
    fn default() -> Self {
        Self {
            n_samples: 400,
            checking: Checking::default(),
            n_controls: 10,
            form: Form::Logarithmic,
            reference: 0,
            seed: 1,
        }
    }
}

/// Samples pages, looks them up and computes the estimates.
///
/// # Errors
///
/// If no page can be sampled from a search engine, if search engines share no page even through
/// others, or if a search engine can no longer respond.
pub fn run(
    panel: &mut Panel,
    words: &[(String, u64)],
    settings: &OverlapSettings,
) -> Result<Findings, Error> {
    let drawing = drawing(words)?;
    let checker = Checker::new(panel, words, settings.checking)?;
    let mut sampling = Sampling::new(panel.n_engines(), settings, checker);
    let ended = sampling.draw_all(panel, &drawing);
    match ended {
        Err(error) if error.ends_study() && sampling.n_rounds() > 0 => {
            sampling.warnings.push(format!(
                "the budget of requests was spent after {} of {} pages per engine",
                sampling.n_rounds(),
                settings.n_samples
            ));
        }
        other => other?,
    }
    sampling.findings(panel)
}

/// The words for sampling pages.
///
/// Two rare words are hardly ever on one page. Therefore pages are sampled by words on at least one
/// page in [`RAREST`], if there are enough of them.
fn drawing(words: &[(String, u64)]) -> Result<Lexicon<String>, Error> {
    let most = words.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let least = (most / RAREST).max(5);
    let frequent: Vec<(String, u64)> = words.iter().filter(|(_, n)| *n >= least).cloned().collect();
    match frequent.len() {
        ..MIN_DRAWING => lexicon(words),
        _ => lexicon(&frequent),
    }
}

/// The pages sampled and found so far.
struct Sampling {
    settings: OverlapSettings,
    random: Vec<SplitMix>,
    checker: Checker,
    /// Pages of each search engine, accepting near duplicates.
    accepted: Vec<Vec<Sampled>>,
    /// The same pages, by URL only.
    strict: Vec<Vec<Sampled>>,
    /// For each page, approximately one over how often such pages are sampled.
    weights: Vec<Vec<f64>>,
    /// Number of pages looked up in their own search engine, and number found there.
    own: Vec<(u64, u64)>,
    /// Number of pages sampled, and number from responses that did not show all results.
    n_drawn: Vec<u64>,
    n_cut: Vec<u64>,
    n_weak: u64,
    n_unusable: u64,
    series: Vec<Series>,
    warnings: Vec<String>,
}

/// A sampled page.
struct Drawn {
    wanted: Wanted,
    /// One over the number of word pairs that could have sampled it.
    weight: f64,
}

impl Sampling {
    fn new(n_engines: usize, settings: &OverlapSettings, checker: Checker) -> Self {
        let random = |engine: usize| SplitMix::new(mix(settings.seed ^ mix(engine as u64 + 1)));
        Self {
            settings: *settings,
            random: (0..n_engines).map(random).collect(),
            checker,
            accepted: vec![Vec::new(); n_engines],
            strict: vec![Vec::new(); n_engines],
            weights: vec![Vec::new(); n_engines],
            own: vec![(0, 0); n_engines],
            n_drawn: vec![0; n_engines],
            n_cut: vec![0; n_engines],
            n_weak: 0,
            n_unusable: 0,
            series: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn n_rounds(&self) -> usize {
        self.accepted.iter().map(Vec::len).min().unwrap_or(0)
    }

    /// Samples a page of each search engine in turn, so that an interrupted study has some of each.
    fn draw_all(&mut self, panel: &mut Panel, drawing: &Lexicon<String>) -> Result<(), Error> {
        let n_engines = panel.n_engines();
        panel.expect((self.settings.n_samples * n_engines) as u64);
        let mut random = SplitMix::new(mix(self.settings.seed));
        for engine in 0..n_engines {
            let n_pairs = self.settings.n_controls;
            panel.compare_counts(engine, drawing, n_pairs, &mut random)?;
        }
        for round in 1..=self.settings.n_samples {
            for engine in 0..n_engines {
                let drawn = self.draw(panel, drawing, engine)?;
                let (accepted, strict) = self.look_up(panel, engine, &drawn.wanted)?;
                self.accepted[engine].push(accepted);
                self.strict[engine].push(strict);
                self.weights[engine].push(drawn.weight);
                self.n_weak += u64::from(drawn.wanted.strong.is_weak);
                panel.advance();
            }
            if is_point(round, self.settings.n_samples) {
                self.note_progress(panel, round);
            }
        }
        for engine in 0..n_engines {
            panel.ask_again(engine, self.settings.n_controls as usize, &mut random)?;
        }
        Ok(())
    }

    /// Samples a page with a text, by a query of two words.
    fn draw(
        &mut self,
        panel: &mut Panel,
        drawing: &Lexicon<String>,
        engine: usize,
    ) -> Result<Drawn, Error> {
        for _ in 0..MAX_UNUSABLE {
            let mut is_cut = false;
            let search = |words: [&String; 2]| -> Result<Option<Vec<usize>>, Error> {
                Ok(match &*panel.search(engine, &Question::all(&words))? {
                    Reply::Answer(hits) => {
                        let shown = hits.n_results as u64;
                        is_cut = hits.claimed.is_some_and(|claimed| claimed > shown);
                        Some(hits.pages.clone())
                    }
                    Reply::Missing(_) => None,
                })
            };
            let random = &mut self.random[engine];
            let drawn = drawing.draw_pages(1, MAX_DRAWS, random, search);
            let drawn = drawn.map_err(|error| no_page(panel.name(engine), error))?;
            let number = drawn.pages[0];
            self.n_drawn[engine] += 1;
            self.n_cut[engine] += u64::from(is_cut);
            if let Reply::Answer(page) = &*panel.fetch(engine, number)? {
                let words = plain_words(&page.text);
                let known = words.iter().filter(|word| drawing.frequency(word) > 0);
                let n_known = known.count().max(2) as f64;
                if let Some(wanted) = self.checker.wanted(number, page) {
                    return Ok(Drawn {
                        wanted,
                        weight: 1.0 / (n_known * (n_known - 1.0)),
                    });
                }
            }
            self.n_unusable += 1;
        }
        Err(Error::Words {
            what: format!(
                "{MAX_UNUSABLE} consecutive pages of {} have no text or no word of the lexicon",
                panel.name(engine)
            ),
        })
    }

    /// Which search engines have a page: accepting near duplicates, and by URL only.
    fn look_up(
        &mut self,
        panel: &mut Panel,
        own: usize,
        wanted: &Wanted,
    ) -> Result<(Sampled, Sampled), Error> {
        let (mut accepted, mut strict) = (Sampled::default(), Sampled::default());
        for engine in 0..panel.n_engines() {
            if engine == own {
                let check = self.checker.check_strictly(panel, engine, wanted)?;
                let (n, n_found) = &mut self.own[own];
                *n += u64::from(check != Check::Missing);
                *n_found += u64::from(check == Check::Found);
                continue;
            }
            let (by_address, check) = self.checker.check(panel, engine, wanted)?;
            record(&mut strict, engine, by_address);
            record(&mut accepted, engine, check);
        }
        Ok((accepted, strict))
    }

    fn note_progress(&mut self, panel: &Panel, round: usize) {
        let Ok(samples) = Samples::new(self.accepted.clone()) else {
            return;
        };
        let Ok(fit) = logarithmic(&samples.overlaps(), self.settings.reference) else {
            return;
        };
        for (engine, &size) in fit.sizes.iter().enumerate() {
            if engine == self.settings.reference {
                continue;
            }
            let name = size_name(panel, engine, self.settings.reference);
            let known = self.series.iter().position(|series| series.name == name);
            let place = known.unwrap_or_else(|| {
                self.series.push(Series {
                    name,
                    points: Vec::new(),
                });
                self.series.len() - 1
            });
            self.series[place].points.push((round as u64, size));
        }
    }
}

fn record(sampled: &mut Sampled, engine: usize, check: Check) {
    match check {
        Check::Found => sampled.held_by = sampled.held_by.with(engine),
        Check::Missing => sampled.missing = sampled.missing.with(engine),
        Check::Absent => {}
    }
}

fn size_name(panel: &Panel, engine: usize, reference: usize) -> String {
    format!("{} / {}", panel.name(engine), panel.name(reference))
}

fn no_page(engine: &str, error: Error) -> Error {
    match error {
        Error::Estimate(arose::Error::NoEstimate { reason, .. }) => Error::Words {
            what: format!(
                "no page of {engine} could be sampled: {reason}; the search engine is empty, or the \
                 lexicon is in another language"
            ),
        },
        error => error,
    }
}
