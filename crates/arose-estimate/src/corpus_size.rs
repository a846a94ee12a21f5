//! Corpus size: the number of pages of a search engine, from queries alone.
//!
//! *Question.* There is one search engine, no other to compare it with, and its counts are not
//! reliable. How many pages does it have?
//!
//! *Idea.* Sample words of a [pool](super::pool) in proportion to the number of pages of the
//! vocabulary that contain them. Every result counts one over the number of pool words that return
//! it. Each word is weighted by the inverse of its probability. The weighted mean times the size of
//! the pool is the number of matched pages ([`arose::estimate::corpus_size`]). A second,
//! independent pool shows how many pages neither matches.
//!
//! *Paper.* Broder et al. 2006. *Parameters.* The pools and the number of queries. *Cost.* Per
//! query one search, and per result one fetch and several searches. *Error.* Bootstrap over
//! queries. *Not for* pages without any word of the pool, unless there is a second pool.

use std::collections::{HashMap, HashSet};

use arose::estimate::bootstrap::Bootstrap;
use arose::estimate::corpus_size::{
    PoolSample, QueryOdds, from_matched_share, matched_pages, two_pools,
};
use arose::estimate::pool::Answer;
use arose::estimate::{Estimate, Method};
use arose::mix::{SplitMix, mix};

use super::desk::Desk;
use super::pool::{Quantity, settled, tolerate_budget};
use super::vocabulary::Vocabulary;
use super::{Figure, Findings, Series, is_point};
use crate::engine::Panel;
use arose_search::words;

use crate::Error;

/// Settings of the queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorpusSizeSettings {
    /// Number of queries per pool.
    pub n_queries: usize,
    /// Number of queries that are repeated at the end.
    pub n_controls: u32,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The sources of queries.
#[derive(Debug, Clone, Default)]
pub struct Pools {
    /// The pool.
    pub first: Vec<String>,
    /// Another pool that is independent of the first; may be empty.
    pub second: Vec<String>,
    /// Texts of pages sampled uniformly; may be empty.
    pub uniform_texts: Vec<String>,
}

/// The weights of the queries of one pool.
#[derive(Default)]
struct Weights {
    n_pool: u64,
    all: Vec<f64>,
    /// The same, for pages that the other pool also matches.
    shared: Vec<f64>,
    n_missing: u64,
    series: Vec<(u64, f64)>,
    /// Number of queries sent when the budget ended.
    ended_at: Option<usize>,
}

/// Sends the queries to one search engine and computes the estimates.
///
/// # Errors
///
/// If a pool is empty, no query gets a response, or the search engine can no longer respond.
pub fn run(
    panel: &mut Panel,
    engine: usize,
    vocabulary: &Vocabulary,
    pools: &Pools,
    settings: &CorpusSizeSettings,
) -> Result<Findings, Error> {
    let mut random = SplitMix::new(mix(settings.seed ^ 0xC0));
    let n_pools = 1 + u64::from(!pools.second.is_empty());
    panel.expect(n_pools * settings.n_queries as u64);
    let mut warnings = Vec::new();
    let n_pages: HashMap<&str, u64> = vocabulary
        .iter()
        .map(|(word, n)| (word.as_str(), *n))
        .collect();
    let mut weigh = |panel: &mut Panel, own: &[String], other: &[String]| {
        let desk = Desk::open(panel, engine, vocabulary, own.to_vec(), settings.n_controls)?;
        let expected = |word: &String| n_pages.get(word.as_str()).copied().unwrap_or(0);
        let odds = QueryOdds::new(&own.iter().map(expected).collect::<Vec<_>>());
        weights(desk, &odds, other, settings, &mut random, &mut warnings)
    };
    let first = weigh(panel, &pools.first, &pools.second)?;
    let second = match pools.second.is_empty() {
        true => None,
        false => Some(weigh(panel, &pools.second, &pools.first)?),
    };
    let n_controls = settings.n_controls as usize;
    tolerate_budget(panel.ask_again(engine, n_controls, &mut random))?;
    let mut findings = Findings::new("corpus-size", "pages, each URL once", settings.seed);
    findings.figures = figures(&first, second.as_ref(), pools, settings.seed);
    findings.figures = settled(panel, engine, Quantity::Amount, findings.figures);
    findings.series.push(Series {
        name: MATCHED.to_owned(),
        points: first.series.clone(),
    });
    findings.warnings = warnings;
    Ok(findings.finished(panel))
}

const MATCHED: &str = "pages matched by the pool";

fn weights(
    mut desk: Desk<'_>,
    odds: &QueryOdds,
    other: &[String],
    settings: &CorpusSizeSettings,
    random: &mut SplitMix,
    warnings: &mut Vec<String>,
) -> Result<Weights, Error> {
    let mut weights = Weights {
        n_pool: desk.pool.len() as u64,
        ..Weights::default()
    };
    let other: HashSet<&str> = other.iter().map(String::as_str).collect();
    for place in 0..settings.n_queries {
        let query = odds.draw(random);
        let factor = odds.factor(query);
        match weigh_query(&mut desk, query, &other, random, &mut weights) {
            Ok((all, shared)) => {
                weights.all.push(factor * all);
                weights.shared.push(factor * shared);
            }
            Err(error) if error.ends_study() && !weights.all.is_empty() => {
                weights.ended_at = Some(place);
                break;
            }
            Err(error) => return Err(error),
        }
        desk.panel.advance();
        if is_point(place + 1, settings.n_queries) && !weights.all.is_empty() {
            let mean = weights.all.iter().sum::<f64>() / weights.all.len() as f64;
            let size = weights.n_pool as f64 * mean;
            weights.series.push((place as u64 + 1, size));
        }
    }
    warnings.extend(desk.warnings());
    if weights.n_missing > 0 {
        let n = weights.n_missing;
        warnings.push(format!(
            "{n} queries got no response; pages that only such words return are not counted"
        ));
    }
    if let Some(place) = weights.ended_at {
        let n = settings.n_queries;
        warnings.push(format!(
            "the budget of requests was spent after {place} of {n} queries"
        ));
    }
    Ok(weights)
}

/// The weight of one query: of all its pages, and of those that the other pool also matches.
fn weigh_query(
    desk: &mut Desk<'_>,
    query: usize,
    other: &HashSet<&str>,
    random: &mut SplitMix,
    weights: &mut Weights,
) -> Result<(f64, f64), Error> {
    let pages = match desk.answer(query)? {
        // Without a response, no page can count the query, so its weight is zero, as after an
        // overflow.
        Answer::Missing => {
            weights.n_missing += 1;
            Vec::new()
        }
        Answer::Overflow => Vec::new(),
        Answer::Pages(pages) => pages,
    };
    let (mut all, mut shared, mut n_read) = (0.0, 0.0, 0_u32);
    for &page in &pages {
        // A page returned for a word that is not in its text would not count that word as its own.
        let Some(predicted) = desk.predicted(page)? else {
            continue;
        };
        n_read += 1;
        if predicted.binary_search(&query).is_err() {
            continue;
        }
        let Some(weight) = desk.inverse_degree(page, random)? else {
            continue;
        };
        all += weight;
        if !other.is_empty()
            && let Some(text) = desk.page(page)?
            && words::words(&text.text)
                .iter()
                .any(|word| other.contains(word.as_str()))
        {
            shared += weight;
        }
    }
    // Results that could not be fetched are assumed to be like the others.
    let scale = match n_read {
        0 => 1.0,
        n => pages.len() as f64 / f64::from(n),
    };
    Ok((scale * all, scale * shared))
}

fn figures(first: &Weights, second: Option<&Weights>, pools: &Pools, seed: u64) -> Vec<Figure> {
    let bootstrap = Bootstrap::new(seed);
    let matched = matched_pages(first.n_pool, &first.all, &bootstrap);
    let mut figures = vec![Figure::of(MATCHED, Method::MatchedPages, &matched)];
    if let Ok(matched) = &matched
        && !pools.uniform_texts.is_empty()
    {
        let all = from_sample(matched, pools);
        figures.insert(0, Figure::of("all pages", Method::MatchedShare, &all));
    }
    if let Some(second) = second {
        let all = two_pools(first.sample(), second.sample(), &bootstrap);
        figures.insert(
            0,
            Figure::of("all pages, by two pools", Method::TwoPools, &all),
        );
    }
    figures
}

impl Weights {
    /// The sample in the form of the formula.
    fn sample(&self) -> PoolSample<'_> {
        PoolSample {
            n_pool: self.n_pool,
            weights: &self.all,
            shared_weights: &self.shared,
        }
    }
}

/// The number of all pages, from the matched pages and a uniform sample of texts.
fn from_sample(matched: &Estimate, pools: &Pools) -> Result<Estimate, arose::Error> {
    let pool: HashSet<&str> = pools.first.iter().map(String::as_str).collect();
    let is_matched = |text: &&String| {
        let words = words::words(text);
        words.iter().any(|word| pool.contains(word.as_str()))
    };
    let n_matched = pools.uniform_texts.iter().filter(is_matched).count();
    from_matched_share(matched, n_matched as u64, pools.uniform_texts.len() as u64)
}
