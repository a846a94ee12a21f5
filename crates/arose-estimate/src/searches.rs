//! Random searches: compares search engines on the results of real queries.
//!
//! *Question.* For the queries that people send, which search engine returns more pages, and which
//! share of all results does each return?
//!
//! *Idea.* Send each query of a log to each search engine, keep the pages that contain its words,
//! collapse near duplicates, and divide sums ([`arose::estimate::searches`]). Only queries whose
//! results are available in full are used.
//!
//! *Papers.* Lawrence & Giles 1998, 1999. *Parameters.* The queries; whether pages are fetched for
//! verification. *Cost.* One search per query and search engine, and one fetch per page. *Error.*
//! Studentized bootstrap over queries, widened because few pages match many of them: the estimates
//! are about what the search engines have. *Not for* search engines that truncate their results.

use std::collections::BTreeMap;

use arose::compare::{Profile, Profiler};
use arose::estimate::bootstrap::Bootstrap;
use arose::estimate::joint::EngineSet;
use arose::estimate::searches::{
    self as formulas, About, MAX_RESULTS, Results, VerifiedResult, mean_of_ratios, ratio_of_sums,
};
use arose::estimate::{Estimate, Method};
use arose::rule::{Policy, SiteRelation};
use arose::shingle::FEATURE_W;

use super::{Figure, Findings, MAX_DOUBTFUL, Series, is_point};
use crate::engine::{Panel, Question, Reply};
use arose_search::words;

use crate::Error;

/// How to verify results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// Fetch pages, drop those without the query words, and collapse near duplicates.
    Verified,
    /// Trust result lists and compare URLs.
    Believed,
}

/// Settings for comparing search engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchSettings {
    /// How to verify results.
    pub checking: Verification,
    /// The size of the first search engine, if known, to estimate the size of the union.
    pub size_of_first: Option<u64>,
    /// The seed of the bootstrap.
    pub seed: u64,
}

/// Counts of the queries by outcome.
#[derive(Debug, Default)]
struct Outcomes {
    n_missing: u64,
    n_cut: u64,
    n_large: u64,
    n_unverified: u64,
    n_unfetched: u64,
}

/// Sends the queries, verifies the results and computes the estimates.
///
/// # Errors
///
/// If no query gives usable results, or a search engine can no longer respond.
pub fn run(
    panel: &mut Panel,
    queries: &[Question],
    settings: &SearchSettings,
) -> Result<Findings, Error> {
    let profiler = Profiler::new(FEATURE_W);
    let mut outcomes = Outcomes::default();
    let mut results: Vec<Results> = Vec::new();
    let mut series = Series {
        name: format!("results of {} / results of all", panel.name(0)),
        points: Vec::new(),
    };
    let mut warnings = Vec::new();
    panel.expect(queries.len() as u64);
    for (place, question) in queries.iter().enumerate() {
        match results_of(panel, question, settings.checking, &profiler, &mut outcomes) {
            Ok(found) => results.extend(found),
            Err(error) if error.ends_study() && !results.is_empty() => {
                warnings.push(format!(
                    "the budget of requests was spent after {place} of {} queries",
                    queries.len()
                ));
                break;
            }
            Err(error) => return Err(error),
        }
        panel.advance();
        if is_point(place + 1, queries.len()) {
            series.points.extend(share_so_far(&results, place + 1));
        }
    }
    let (results, n_large) = formulas::usable(results);
    outcomes.n_large += n_large as u64;
    let counted = match settings.checking {
        Verification::Verified => {
            "pages that contain the query words, near duplicates counted once"
        }
        Verification::Believed => "URLs that search engines return, unverified",
    };
    let mut findings = Findings::new("searches", counted, settings.seed);
    findings.figures = figures(panel, &results, queries.len(), &outcomes, settings);
    findings.series.push(series);
    findings.warnings = warnings;
    findings.warnings.extend(outcomes.sentences(queries.len()));
    Ok(findings.finished(panel))
}

/// The search engines that returned each page; none if the query cannot be used.
fn results_of(
    panel: &mut Panel,
    question: &Question,
    checking: Verification,
    profiler: &Profiler,
    outcomes: &mut Outcomes,
) -> Result<Option<Results>, Error> {
    let mut returned: BTreeMap<usize, EngineSet> = BTreeMap::new();
    for engine in 0..panel.n_engines() {
        let reply = panel.search(engine, question)?;
        let Reply::Answer(hits) = &*reply else {
            outcomes.n_missing += 1;
            return Ok(None);
        };
        if hits.is_cut(panel.limit(engine)) {
            outcomes.n_cut += 1;
            return Ok(None);
        }
        for &page in &hits.pages {
            let holders = returned.entry(page).or_default();
            *holders = holders.with(engine);
        }
    }
    if returned
        .values()
        .map(|set| set.len() as usize)
        .sum::<usize>()
        >= MAX_RESULTS
    {
        outcomes.n_large += 1;
        return Ok(None);
    }
    if checking == Verification::Believed {
        let found = returned.into_iter();
        let found = found.map(|(page, engines)| found_at(page, engines));
        return Ok(Some(found.collect()));
    }
    let verified = verified(panel, question, &returned, profiler, outcomes)?;
    Ok(Some(verified))
}

/// The pages that contain the query words, with near duplicates counted once.
fn verified(
    panel: &mut Panel,
    question: &Question,
    returned: &BTreeMap<usize, EngineSet>,
    profiler: &Profiler,
    outcomes: &mut Outcomes,
) -> Result<Results, Error> {
    let mut kept: Vec<(Profile, VerifiedResult)> = Vec::new();
    for (&page, &holders) in returned {
        let engine = holders.0.trailing_zeros() as usize;
        let reply = panel.fetch(engine, page)?;
        let Reply::Answer(text) = &*reply else {
            outcomes.n_unfetched += 1;
            continue;
        };
        if !holds(&text.text, question) {
            outcomes.n_unverified += 1;
            continue;
        }
        let profile = profiler.profile(&text.text);
        let is_same = |other: &Profile| {
            let comparison = profiler.compare(&profile, other);
            comparison
                .rule(&Policy::SITE, SiteRelation::Unknown)
                .is_some()
        };
        match kept.iter_mut().find(|(other, _)| is_same(other)) {
            Some((_, found)) => found.engines = EngineSet(found.engines.0 | holders.0),
            None => kept.push((profile, found_at(page, holders))),
        }
    }
    Ok(kept.into_iter().map(|(_, found)| found).collect())
}

fn found_at(page: usize, engines: EngineSet) -> VerifiedResult {
    VerifiedResult {
        page: page as u64,
        engines,
    }
}

/// Whether a text contains all words and phrases of a query.
fn holds(text: &str, question: &Question) -> bool {
    let text = words::words(text);
    question.parts.iter().all(|part| {
        let part = words::words(part);
        text.windows(part.len().max(1)).any(|window| window == part)
    })
}

fn share_so_far(results: &[Results], n: usize) -> Option<(u64, f64)> {
    let all = results.iter().flatten();
    let (mut n_first, mut n_all) = (0.0, 0.0);
    for found in all {
        n_all += 1.0;
        n_first += f64::from(u8::from(found.engines.contains(0)));
    }
    (n_all > 0.0).then(|| (n as u64, n_first / n_all))
}

fn figures(
    panel: &Panel,
    results: &[Results],
    n_queries: usize,
    outcomes: &Outcomes,
    settings: &SearchSettings,
) -> Vec<Figure> {
    let (about, bootstrap) = (About::Pages, Bootstrap::new(settings.seed));
    let n_unanswered = outcomes.n_missing as f64;
    if n_queries > 0 && n_unanswered > MAX_DOUBTFUL * n_queries as f64 {
        let reason = format!(
            "{} of {n_queries} queries got no response",
            outcomes.n_missing
        );
        let name = "relative sizes from results";
        return vec![Figure::refused(name, Method::RatioOfSums, reason)];
    }
    let mut figures = Vec::new();
    let mut add = |name: String, method: Method, estimate: Result<Estimate, arose::Error>| {
        figures.push(Figure::of(&name, method, &estimate));
    };
    for engine in 1..panel.n_engines() {
        let name = format!("{} / {}", panel.name(engine), panel.name(0));
        let ratio = ratio_of_sums(results, engine, 0, about, &bootstrap);
        add(name, Method::RatioOfSums, ratio);
    }
    for engine in 0..panel.n_engines() {
        let name = format!("{} / all results", panel.name(engine));
        let share = formulas::coverage(results, engine, about, &bootstrap);
        add(name, Method::SearchCoverage, share);
    }
    if let Some(size) = settings.size_of_first {
        for engine in 1..panel.n_engines() {
            let name = format!("all pages, by {} and {}", panel.name(0), panel.name(engine));
            let all = formulas::two_engine_size(size as f64, results, 0, engine, about, &bootstrap);
            add(name, Method::TwoEngines, all);
        }
    }
    for (engine, figure) in (1..panel.n_engines()).zip(&mut figures) {
        if let Ok(mean) = mean_of_ratios(results, engine, 0) {
            figure.notes.push(format!(
                "the mean of ratios, which is biased, is {:.3} without {} queries",
                mean.value, mean.n_dropped
            ));
        }
    }
    figures
}

impl Outcomes {
    fn sentences(&self, n_queries: usize) -> Vec<String> {
        let each = [
            (self.n_missing, "had no response from some search engine"),
            (self.n_cut, "had more results than some search engine shows"),
            (self.n_large, "had too many results in total"),
        ];
        let mut sentences: Vec<String> = each
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} of {n_queries} queries {what} and were omitted"))
            .collect();
        if self.n_unverified > 0 {
            let n = self.n_unverified;
            sentences.push(format!(
                "{n} results do not contain the query words and were dropped"
            ));
        }
        if self.n_unfetched > 0 {
            let n = self.n_unfetched;
            sentences.push(format!("{n} results could not be fetched and were dropped"));
        }
        sentences
    }
}
