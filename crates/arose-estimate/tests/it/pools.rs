//! Tests of pool sampling with difficult search engines.

use arose::estimate::simulate::{CorpusConfig, EngineConfig};
use arose_estimate::corpus_size::{self, Pools};
use arose_estimate::engine::{Fault, World};
use arose_estimate::pool::{self, PageMeasure, PoolConfig, Way, choose};
use arose_estimate::simulate::{SimulationSettings, panel};

/// A tenth of the searches time out: the interval for a share of nearly all pages ends at all
/// pages.
#[test]
fn issue_23_shares_stay_shares() {
    let settings = SimulationSettings {
        corpus: CorpusConfig {
            n_pages: 1000,
            median_length: 60.0,
            length_spread: 0.2,
            ..CorpusConfig::default()
        },
        shares: vec![0.5],
        fault: Fault::TimesOut,
        ..SimulationSettings::default()
    };
    let world = World::new(&settings.corpus, &settings.shares, 0.0).unwrap();
    let words = world.vocabulary();
    let mut n_wide = 0;
    for longer_than in [35, 40, 45, 60, 80] {
        let mut panel = panel(&world, &settings).unwrap();
        let own = pool::PoolSettings {
            n_samples: 300,
            measure: PageMeasure::LongerThan(longer_than),
            ways: vec![Way::Importance, Way::Rejection],
            n_controls: 10,
            seed: 1,
        };
        let queries = choose(&words, &PoolConfig::default());
        let findings = pool::run(&mut panel, 0, &words, queries, &own).unwrap();
        for figure in &findings.figures {
            let value = figure.value.unwrap();
            let [low, high] = figure.interval.unwrap_or([value; 2]);
            assert!(0.0 <= low && low <= value, "{figure:?}");
            assert!(value <= high && high <= 1.0, "{figure:?}");
            n_wide += u32::from(figure.sampling.is_some());
        }
    }
    assert!(n_wide > 5, "{n_wide} intervals know of missing answers");
}

/// Words on ten pages or more, and a search engine that shows three results: about one word in a
/// hundred of a page is valid. Its degree is then counted, and the findings say so.
#[test]
fn issue_23_few_valid_queries_are_all_asked() {
    let settings = SimulationSettings {
        corpus: CorpusConfig {
            n_pages: 400,
            median_length: 800.0,
            length_spread: 0.2,
            ..CorpusConfig::default()
        },
        shares: vec![0.5],
        engine: EngineConfig {
            limit: 3,
            ..EngineConfig::default()
        },
        ..SimulationSettings::default()
    };
    let world = World::new(&settings.corpus, &settings.shares, 0.0).unwrap();
    let words = world.vocabulary();
    let first = choose(
        &words,
        &PoolConfig {
            least: 10,
            ..PoolConfig::default()
        },
    );
    let engine = world.engine(0, settings.engine, Fault::None).unwrap();
    let truth = engine.matched_by(&first).len() as f64;
    let pools = Pools {
        first,
        ..Pools::default()
    };
    let own = corpus_size::CorpusSizeSettings {
        n_queries: 2000,
        n_controls: 10,
        seed: 1,
    };
    let mut panel = panel(&world, &settings).unwrap();
    let findings = corpus_size::run(&mut panel, 0, &words, &pools, &own).unwrap();
    let said = findings.warnings.join("\n");
    assert!(
        said.contains("200 consecutive words returned too much or another page; all their words"),
        "{said}"
    );
    let figure = &findings.figures[0];
    let [low, high] = figure.interval.unwrap();
    assert!(low < truth && truth < high, "{truth}: {figure:?}");
}
