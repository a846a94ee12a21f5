//! Comparing engines: overlap, least squares, joint coverage, searches, the lower bound.

use std::collections::BTreeMap;

use arose::Error;
use arose::estimate::bootstrap::{Bootstrap, IntervalKind};
use arose::estimate::joint::{self, EngineSet, Sampled, Samples};
use arose::estimate::least_squares::{self, Form};
use arose::estimate::lexicon::{Lexicon, ROBUST_WORDS, STRONG_WORDS};
use arose::estimate::lower_bound::{Claim, lower_bound};
use arose::estimate::overlap::{Check, Containment, relative_size};
use arose::estimate::searches::{self, About, Results, VerifiedResult};
use arose::estimate::simulate::{
    Corpus, CorpusConfig, Engine, EngineConfig, choose_distinct, holdings,
};
use arose::mix::SplitMix;

use super::{check_coverage, mean_and_deviation, quick};

/// Four engines that hold 50, 40, 16 and 8.5% of 20,000 pages.
const SHARES: [f64; 4] = [0.5, 0.4, 0.16, 0.085];
const N_PAGES: usize = 20_000;

/// What a world of engines really looks like.
struct World {
    holds: Vec<Vec<bool>>,
    sizes: Vec<f64>,
    union: f64,
}

impl World {
    fn new(seed: u64) -> Self {
        let holds = holdings(N_PAGES, &SHARES, 0.0, seed).unwrap();
        let size = |held: &Vec<bool>| held.iter().filter(|&&held| held).count() as f64;
        let sizes = holds.iter().map(size).collect();
        let in_any = |page: &usize| holds.iter().any(|held| held[*page]);
        let union = (0..N_PAGES).filter(in_any).count() as f64;
        Self {
            holds,
            sizes,
            union,
        }
    }

    /// `n` pages of each engine, drawn without repetition and looked up in all.
    fn samples(&self, n: usize, random: &mut SplitMix) -> Samples {
        let look_up = |page: usize| Sampled {
            held_by: (0..4).filter(|&engine| self.holds[engine][page]).collect(),
            ..Sampled::default()
        };
        let draw = |held: &Vec<bool>| {
            let pages: Vec<usize> = (0..N_PAGES).filter(|&page| held[page]).collect();
            let places = choose_distinct(pages.len(), n, random);
            places
                .into_iter()
                .map(|place| look_up(pages[place]))
                .collect()
        };
        Samples::new(self.holds.iter().map(draw).collect()).unwrap()
    }
}

/// Means and deviations of the relative errors of h, e, i and the union, over 200 runs.
fn relative_errors(n: usize, form: Form) -> Vec<(f64, f64)> {
    let world = World::new(1);
    let mut random = SplitMix::new(2);
    let mut errors = vec![Vec::new(); 4];
    for _ in 0..200 {
        let samples = world.samples(n, &mut random);
        let joint = joint::estimate(&samples, 0, form, &value_only()).unwrap();
        for engine in 1..4 {
            let truth = world.sizes[engine] / world.sizes[0];
            errors[engine - 1].push(joint.sizes[engine].value / truth - 1.0);
        }
        errors[3].push(joint.union.value * world.sizes[0] / world.union - 1.0);
    }
    let told: Vec<(f64, f64)> = errors
        .iter()
        .map(|errors| mean_and_deviation(errors))
        .collect();
    println!("{form:?}, n = {n}: {told:.4?}");
    told
}

/// 400 pages per engine: mean error up to 3%, deviations up to 9, 11, 14 and 4%.
#[test]
fn four_engines_with_400_pages_each() {
    for form in [Form::Linear, Form::Logarithmic] {
        let errors = relative_errors(400, form);
        for ((mean, deviation), limit) in errors.into_iter().zip([0.09, 0.11, 0.14, 0.04]) {
            assert!(mean.abs() <= 0.03, "{form:?}: mean {mean}");
            assert!(
                deviation <= limit,
                "{form:?}: deviation {deviation} > {limit}"
            );
        }
    }
}

/// 1,600 pages per engine: deviations of 3.1, 4.2, 4.5 and 1.4%. A deviation of 200 values has the
/// relative standard error 1/20, and the published figures have it too: four of both together.
#[test]
fn four_engines_with_1600_pages_each() {
    let errors = relative_errors(1600, Form::Logarithmic);
    for ((_, deviation), expected) in errors.into_iter().zip([0.031, 0.042, 0.045, 0.014]) {
        assert!(
            (deviation / expected - 1.0).abs() < 4.0 * 0.05 * 2_f64.sqrt(),
            "{deviation}, {expected}"
        );
    }
}

/// Where only the value matters.
fn value_only() -> Bootstrap {
    Bootstrap {
        n_resamples: 1,
        kind: IntervalKind::Percentile,
        seed: 1,
    }
}

/// Draws `n` pages from one engine with repetition and looks each up in another.
fn containment(from: &[usize], other: &[bool], n: usize, random: &mut SplitMix) -> Containment {
    let check = |_| {
        let page = from[random.below(from.len() as u64) as usize];
        if other[page] {
            Check::Found
        } else {
            Check::Absent
        }
    };
    (0..n).map(check).collect()
}

#[test]
fn overlap_intervals_cover() {
    let world = World::new(3);
    let pages = |engine: usize| -> Vec<usize> {
        (0..N_PAGES)
            .filter(|&page| world.holds[engine][page])
            .collect()
    };
    let own = [pages(0), pages(1), pages(3)];
    check_coverage("overlap", |seed| {
        let mut random = SplitMix::new(seed);
        let mut ratio = |a: usize, b: usize, n: usize| {
            let a_in_b = containment(
                &own[a],
                &world.holds[if b == 2 { 3 } else { b }],
                n,
                &mut random,
            );
            let b_in_a = containment(&own[b], &world.holds[a], n, &mut random);
            let truth = own[a].len() as f64 / own[b].len() as f64;
            (relative_size(&a_in_b, &b_in_a).unwrap(), truth)
        };
        vec![ratio(0, 1, 600), ratio(0, 1, 50), ratio(0, 2, 200)]
    });
}

/// Sizes, union, coverage and multiplicities, in both forms.
#[test]
fn joint_intervals_cover() {
    let world = World::new(4);
    let n_held_by = |page: usize| world.holds.iter().filter(|held| held[page]).count();
    let held_by_two = (0..N_PAGES).filter(|&page| n_held_by(page) == 2).count() as f64;
    for form in [Form::Linear, Form::Logarithmic] {
        check_coverage(&format!("joint, {form:?}"), |seed| {
            let samples = world.samples(200, &mut SplitMix::new(seed));
            let told = joint::estimate(&samples, 0, form, &quick(seed)).unwrap();
            let unit = world.sizes[0];
            let mut figures: Vec<_> = (1..4)
                .map(|engine| (told.sizes[engine].clone(), world.sizes[engine] / unit))
                .collect();
            figures.push((told.union, world.union / unit));
            figures.push((told.coverage[0].clone(), unit / world.union));
            figures.push((told.coverage[3].clone(), world.sizes[3] / world.union));
            figures.push((told.held_by_exactly[1].clone(), held_by_two / world.union));
            figures
        });
    }
}

/// Pairs alone give a lower bound of the union.
#[test]
fn pairs_bound_the_union() {
    let world = World::new(5);
    let overlaps = world.samples(1600, &mut SplitMix::new(1)).overlaps();
    let bound = least_squares::union_lower_bound(&overlaps, &world.sizes);
    assert!(
        bound < world.union && bound >= world.sizes[0],
        "{bound}, {}",
        world.union
    );
}

/// A corpus and engines that hold parts of it.
fn engines(corpus: &Corpus, shares: &[f64], dependence: f64, config: EngineConfig) -> Vec<Engine> {
    let holds = holdings(corpus.pages.len(), shares, dependence, 6).unwrap();
    let engine = |holds| Engine::new(corpus, holds, config).unwrap();
    holds.into_iter().map(engine).collect()
}

/// All results of a log of queries, each a single word of middle frequency.
fn log_of_searches(engines: &[Engine]) -> Vec<Results> {
    let ask = |term: u32| -> Results {
        let mut found: BTreeMap<usize, EngineSet> = BTreeMap::new();
        for (engine, index) in engines.iter().enumerate() {
            for page in index.matching_all(&[term]) {
                let holders = found.entry(page).or_default();
                *holders = holders.with(engine);
            }
        }
        let found = found.into_iter();
        found
            .map(|(page, engines)| VerifiedResult {
                page: page as u64,
                engines,
            })
            .collect()
    };
    (50..1550).map(ask).collect()
}

/// The truth is what all queries of the log would give.
#[test]
fn search_intervals_cover() {
    let corpus = CorpusConfig {
        n_pages: 1000,
        ..CorpusConfig::default()
    };
    let corpus = Corpus::new(&corpus).unwrap();
    let log = log_of_searches(&engines(&corpus, &[0.5, 0.3], 0.0, EngineConfig::default()));
    let figures = |queries: &[Results], bootstrap: &Bootstrap| {
        [
            searches::ratio_of_sums(queries, 0, 1, About::Queries, bootstrap).unwrap(),
            searches::coverage(queries, 0, About::Queries, bootstrap).unwrap(),
            searches::two_engine_size(500.0, queries, 0, 1, About::Queries, bootstrap).unwrap(),
        ]
    };
    let truth = figures(&log, &value_only());
    check_coverage("searches", |seed| {
        let mut random = SplitMix::new(seed);
        let mut draw = || log[random.below(log.len() as u64) as usize].clone();
        let queries: Vec<Results> = (0..100).map(|_| draw()).collect();
        let told = figures(&queries, &quick(seed));
        told.into_iter()
            .zip(truth.iter().map(|truth| truth.value))
            .collect()
    });
}

/// Two engines that both prefer the popular pages make the world look smaller.
#[test]
fn dependent_engines_underestimate() {
    let corpus = CorpusConfig {
        n_pages: 1000,
        ..CorpusConfig::default()
    };
    let corpus = Corpus::new(&corpus).unwrap();
    let size = |dependence: f64| {
        let engines = engines(&corpus, &[0.5, 0.3], dependence, EngineConfig::default());
        let log = log_of_searches(&engines);
        let size = engines[0].n_pages() as f64;
        searches::two_engine_size(size, &log, 0, 1, About::Pages, &value_only())
            .unwrap()
            .value
    };
    // 1000 (0.5 * 0.3) / (0.15 + 0.15 / 2) = 667; overlaps of about 150 and 225 pages are known to
    // 8% and 7% by their choice alone.
    let (independent, dependent) = (size(0.0), size(0.5));
    println!("two engines: {independent:.0} when independent, {dependent:.0} when not");
    assert!((independent / 1000.0 - 1.0).abs() < 0.25 && (dependent / 667.0 - 1.0).abs() < 0.25);
    assert!(dependent < independent);
}

/// Claims that are off by up to a fifth contradict each other, and never admit to more than that.
#[test]
fn noisy_claims_show_their_noise() {
    let corpus = Corpus::new(&CorpusConfig::default()).unwrap();
    let bound = |count_noise: f64| {
        let config = EngineConfig {
            count_noise,
            ..EngineConfig::default()
        };
        let engine = engines(&corpus, &[0.5], 0.0, config).remove(0);
        let claims: Vec<Claim<u32>> = (1..=12)
            .flat_map(|n| [(0..n).collect(), (100..100 + n).collect()])
            .map(|words: Vec<u32>| Claim {
                count: engine.claim(&words),
                words,
            })
            .collect();
        (lower_bound(&claims).unwrap(), engine.n_pages() as f64)
    };
    let (honest, truth) = bound(0.0);
    assert_eq!(honest.noise.n_violations, 0);
    assert!(honest.claimed as f64 <= truth && honest.claimed as f64 > 0.9 * truth);
    let (noisy, truth) = bound(0.2);
    println!("claims of {truth} pages off by up to .2: {noisy:?}");
    assert!(noisy.noise.n_violations > 0);
    assert!(
        (0.05..=0.2 + 1e-3).contains(&noisy.noise.least_error),
        "{noisy:?}"
    );
    assert!(noisy.cautious() < noisy.claimed as f64);
}

fn lexicon_of(corpus: &Corpus) -> Lexicon<u32> {
    let frequencies = corpus.frequencies();
    Lexicon::new((0..).zip(frequencies).collect()).unwrap()
}

/// An engine that indexes the full text gives a page back in at least 99% of the cases.
#[test]
fn strong_queries_find_their_page() {
    let corpus = Corpus::new(&CorpusConfig::default()).unwrap();
    let lexicon = lexicon_of(&corpus);
    let config = EngineConfig {
        limit: 10,
        ..EngineConfig::default()
    };
    let engine = engines(&corpus, &[0.5], 0.0, config).remove(0);
    for n_words in [STRONG_WORDS, ROBUST_WORDS] {
        let held: Vec<usize> = engine.pages();
        let finds = |page: &&usize| {
            let tokens = corpus.pages[**page].tokens.iter().copied();
            let terms = match n_words {
                STRONG_WORDS => lexicon.strong_query(tokens, n_words).first,
                _ => lexicon.robust_query(tokens, n_words).first,
            };
            engine.search(&terms).unwrap().contains(page)
        };
        let n_found = held.iter().filter(finds).count();
        println!("{n_words} words find {n_found} of {} pages", held.len());
        assert!(n_found * 100 >= held.len() * 99);
    }
}

/// One sample looked up by name alone, and with copies accepted.
type Sides = (Containment, Containment);

/// The whole method of Bharat and Broder on a corpus with copies: pages drawn by pairs of words,
/// looked up by strong queries, once by name alone and once with copies accepted.
#[test]
fn copies_count_as_found_or_not() {
    let config = CorpusConfig {
        copied: 0.3,
        ..CorpusConfig::default()
    };
    let corpus = Corpus::new(&config).unwrap();
    let lexicon = lexicon_of(&corpus);
    let engines = engines(&corpus, &[0.5, 0.25], 0.0, EngineConfig::default());
    let mut random = SplitMix::new(9);
    let original = |page: usize| corpus.pages[page].original;
    let mut look_up = |from: usize, other: usize| {
        let search =
            |words: [&u32; 2]| Ok::<_, Error>(engines[from].search(&words.map(|&word| word)));
        let pages = lexicon
            .draw_pages(1000, u64::MAX, &mut random, search)
            .unwrap()
            .pages;
        let check = |page: usize, is_it: &dyn Fn(&usize) -> bool| {
            let tokens = corpus.pages[page].tokens.iter().copied();
            let query = lexicon.strong_query(tokens, STRONG_WORDS);
            let finds = |words: &Vec<u32>| {
                let results = engines[other].search(words);
                results.is_some_and(|results| results.iter().any(is_it))
            };
            match [query.first, query.second].iter().any(finds) {
                true => Check::Found,
                false => Check::Absent,
            }
        };
        let by_name = |&page: &usize| check(page, &|&result| result == page);
        let with_copies =
            |&page: &usize| check(page, &|&result| original(result) == original(page));
        (
            pages.iter().map(by_name).collect(),
            pages.iter().map(with_copies).collect(),
        )
    };
    let (there, back): (Sides, Sides) = (look_up(0, 1), look_up(1, 0));
    assert!(there.1.n_found > there.0.n_found && back.1.n_found > back.0.n_found);
    let truth = engines[0].n_pages() as f64 / engines[1].n_pages() as f64;
    let by_name = relative_size(&there.0, &back.0).unwrap();
    let with_copies = relative_size(&there.1, &back.1).unwrap();
    println!(
        "{truth:.3} by name {:.3}, with copies {:.3}",
        by_name.value, with_copies.value
    );
    // Engines are independent of what is on a page, so the weights of the draws cancel; four
    // standard errors of the ratio of 1,000 pages each, 0.09.
    assert!((by_name.value / truth).ln().abs() < 4.0 * 0.09);
    // Copies make both samples look more alike, and so the engines.
    assert!(with_copies.value < by_name.value);
}
