//! Tests of methods on synthetic search engines, for which the ground truth is known.

use arose::estimate::simulate::{CorpusConfig, EngineConfig};
use arose_estimate::Error;
use arose_estimate::check::{By, Checking, Choice};
use arose_estimate::coverage::{self, DrawnPage};
use arose_estimate::engine::{
    Engine, Fault, Log, Page, Panel, Question, Reply, Requests, ResultList, World,
};
use arose_estimate::pool::{PoolConfig, choose};
use arose_estimate::simulate::{Part, SimulationSettings, coverage as covering, panel, run};
use arose_estimate::{Findings, corpus_size, overlap, searches};

/// Two search engines with 50% and 40% of 1,500 pages of about the same length.
fn small(part: Part) -> SimulationSettings {
    SimulationSettings {
        corpus: CorpusConfig {
            n_pages: 1500,
            median_length: 60.0,
            length_spread: 0.2,
            ..CorpusConfig::default()
        },
        shares: vec![0.5, 0.4],
        n_samples: 100,
        parts: vec![part],
        ..SimulationSettings::default()
    }
}

fn one(settings: &SimulationSettings) -> Findings {
    run(settings).unwrap().remove(0)
}

/// Nominal 95% intervals contain the true value in 90% to 99% of 300 studies.
#[track_caller]
fn check_coverage(settings: &SimulationSettings, figures: &[&str]) {
    let fared = covering(settings, 300).unwrap();
    for name in figures {
        let one = fared.iter().find(|one| one.name == *name);
        let one = one.unwrap_or_else(|| panic!("no {name} in {fared:?}"));
        assert_eq!(one.n_intervals, 300, "{one:?}");
        assert!((270..=297).contains(&one.n_covering), "{one:?}");
    }
}

#[test]
fn intervals_of_overlap() {
    let settings = SimulationSettings {
        n_samples: 60,
        ..small(Part::Overlap)
    };
    check_coverage(&settings, &["b / a", "union / a", "a / union", "b / union"]);
}

#[test]
fn intervals_of_searches() {
    let mut settings = small(Part::Searches);
    settings.corpus.n_pages = 1000;
    check_coverage(&settings, &["b / a", "a / all results", "b / all results"]);
}

/// The pages of each search engine are random, so every ten studies have a world of their own.
#[test]
fn intervals_of_searches_over_many_worlds() {
    let mut settings = small(Part::Searches);
    settings.corpus.n_pages = 500;
    let names = [
        "b / a",
        "a / all results",
        "b / all results",
        "all pages, by a and b",
    ];
    let mut n_covering = [0; 4];
    for world in 0..30 {
        settings.corpus.seed = 1000 + world;
        let fared = covering(&settings, 10).unwrap();
        for (name, n) in names.iter().zip(&mut n_covering) {
            let one = fared.iter().find(|one| one.name == *name).unwrap();
            *n += one.n_covering;
        }
    }
    assert!(
        n_covering.iter().all(|n| (270..=297).contains(n)),
        "{n_covering:?}"
    );
}

#[test]
fn intervals_of_pool_means() {
    let mut settings = small(Part::Pool);
    settings.corpus.n_pages = 600;
    settings.corpus.length_spread = 0.8;
    check_coverage(&settings, &["words per page, importance-weighted"]);
}

#[test]
fn intervals_of_corpus_size() {
    let settings = SimulationSettings {
        n_samples: 200,
        ..small(Part::CorpusSize)
    };
    check_coverage(&settings, &["pages matched by the pool"]);
}

#[test]
fn intervals_of_capture() {
    let settings = SimulationSettings {
        n_samples: 300,
        ..small(Part::Capture)
    };
    check_coverage(&settings, &["pages"]);
}

/// The uncorrected sampler favours long pages, the weighted one does not.
#[test]
fn weights_undo_the_bias_to_long_pages() {
    let mut settings = SimulationSettings {
        n_samples: 1000,
        ..small(Part::Pool)
    };
    settings.corpus.length_spread = 0.8;
    let findings = one(&settings);
    let error = |name: &str| {
        let figure = findings.figure(name).unwrap();
        figure.value.unwrap() / figure.truth.unwrap() - 1.0
    };
    assert!(error("words per page, importance-weighted").abs() < 0.08);
    assert!(error("words per page, plain") > 0.2);
}

/// In a world where a few long pages are sampled most of the time, thinned samples are more
/// accurate.
#[test]
fn length_correction_undoes_the_bias_to_long_pages() {
    let findings = one(&SimulationSettings {
        shares: vec![0.5, 0.4],
        n_samples: 1000,
        parts: vec![Part::Overlap],
        ..SimulationSettings::default()
    });
    let covers = |name: &str| findings.figure(name).unwrap().covers().unwrap();
    assert!(
        covers("b / a, length-corrected") && covers("a / union, length-corrected"),
        "{findings:#?}"
    );
    assert!(!covers("b / a"), "the world is no longer one that misleads");
}

/// The faults of a search engine, and the warnings that they must cause.
#[test]
fn engines_that_misbehave() {
    for (fault, part) in [
        (Fault::Lies, "its counts are not reliable"),
        (Fault::TimesOut, "timed out"),
        (Fault::Repeats, "repeated a page"),
        (Fault::Nonsense, "neither results nor a count"),
        (Fault::Changes(100), "changed during the study"),
    ] {
        let findings = one(&SimulationSettings {
            fault,
            ..small(Part::Overlap)
        });
        let said = findings.warnings.join("\n");
        assert!(said.contains(part), "{fault:?}: {said}");
        let figure = &findings.figures[0];
        assert!(figure.covers() != Some(false), "{fault:?}: {figure:?}");
        match fault {
            Fault::Changes(_) => assert!(figure.refused.is_some(), "{figure:?}"),
            Fault::Nonsense => {
                let ([low, high], [from, to]) =
                    (figure.interval.unwrap(), figure.sampling.unwrap());
                assert!(
                    low <= from && to <= high && high - low > to - from,
                    "{figure:?}"
                );
            }
            _ => assert!(figure.value.is_some(), "{figure:?}"),
        }
    }
}

/// The same faults of the search engine whose pages are counted: the warnings that they must cause,
/// and whether there is an estimate, whose interval then contains the true value.
#[test]
fn sizes_of_engines_that_misbehave() {
    for (fault, limit, part, is_given) in [
        (Fault::Lies, 100, "its counts are not reliable", true),
        (Fault::TimesOut, 100, "timed out", true),
        (Fault::Repeats, 100, "repeated a page", true),
        (Fault::Nonsense, 100, "neither results nor a count", true),
        (Fault::Changes(600), 100, "changed during the study", false),
        (Fault::None, 10, "more results than are shown", true),
    ] {
        let mut settings = SimulationSettings {
            shares: vec![0.5],
            n_samples: 300,
            fault,
            ..small(Part::CorpusSize)
        };
        settings.engine.limit = limit;
        let findings = one(&settings);
        let said = findings.warnings.join("\n");
        assert!(said.contains(part), "{fault:?}: {said}");
        // Unreliable counts do not show that results are truncated.
        let is_cut = said.contains("more results than are shown");
        assert_eq!(is_cut, limit == 10, "{fault:?}: {said}");
        let figure = &findings.figures[0];
        assert_eq!(figure.value.is_some(), is_given, "{fault:?}: {figure:?}");
        assert_eq!(figure.refused.is_none(), is_given, "{fault:?}: {figure:?}");
        assert_eq!(
            figure.covers(),
            is_given.then_some(true),
            "{fault:?}: {figure:?}"
        );
        if let Some(value) = figure.value {
            // A value twice as large is not an estimate, however wide its interval.
            let ratio = value / figure.truth.unwrap();
            assert!((0.7..1.3).contains(&ratio), "{fault:?}: {figure:?}");
        }
    }
}

/// Looks up pages in a world of two search engines.
fn checked(checking: Checking) -> Findings {
    let settings = small(Part::Overlap);
    let world = World::new(&settings.corpus, &settings.shares, 0.0).unwrap();
    let mut panel = panel(&world, &settings).unwrap();
    let own = overlap::OverlapSettings {
        n_samples: 300,
        checking,
        ..overlap::OverlapSettings::default()
    };
    overlap::run(&mut panel, &world.vocabulary(), &own).unwrap()
}

/// At least 99% of the pages found by URL are also found by words, whether the words are the rarest
/// or robust.
#[test]
fn words_find_what_urls_find() {
    for choice in [Choice::Rarest, Choice::Robust] {
        let findings = checked(Checking {
            by: By::Both,
            choice,
            n_words: choice.n_words(),
            ..Checking::default()
        });
        for engine in ["a", "b"] {
            let name = format!("found by words of those found by URL, {engine}");
            let figure = findings.figure(&name).unwrap();
            assert!(figure.value.unwrap() >= 0.99, "{figure:?}");
            // Its own 300 pages, and those of the other search engine that it has.
            assert!((400..600).contains(&figure.n_samples), "{figure:?}");
        }
    }
}

/// By URL alone, words that no search engine has do not matter.
#[test]
fn overlap_by_urls_alone() {
    let by_url = checked(Checking {
        by: By::Url,
        ..Checking::default()
    });
    let by_words = checked(Checking {
        n_compared: 0,
        ..Checking::default()
    });
    for name in ["b / a", "a in b", "b in a", "a / union"] {
        let value = |findings: &Findings| findings.figure(name).unwrap().value.unwrap();
        // The same pages are sampled; words miss at most one in a hundred.
        let (one, other) = (value(&by_url), value(&by_words));
        assert!((one / other - 1.0).abs() < 0.02, "{name}: {one}, {other}");
    }
    assert!(
        by_url
            .engines
            .iter()
            .all(|engine| engine.health.n_lookups > 300)
    );
}

/// Uniform pages, as sampled by eight walks and as sampled one by one: the share in each search
/// engine is in the interval.
#[test]
fn coverage_of_drawn_pages() {
    let settings = small(Part::Overlap);
    let world = World::new(&settings.corpus, &settings.shares, 0.0).unwrap();
    let mut reader = world
        .engine(0, EngineConfig::default(), Fault::None)
        .unwrap();
    let drawn = |walk: Option<u32>, place: usize| {
        // Every seventh page, from 1,500.
        let url = format!("sim://page/{}", place * 7 % 1500);
        let page = reader.fetch(&url, &Requests::new(u64::MAX));
        let Ok(Reply::Answer(Page { text, .. })) = page else {
            panic!("{page:?}");
        };
        DrawnPage { url, text, walk }
    };
    let mut drawn = drawn;
    let alone: Vec<DrawnPage> = (0..400).map(|place| drawn(None, place)).collect();
    let walked: Vec<DrawnPage> = (0..400)
        .map(|place| drawn(Some(place as u32 % 8), place))
        .collect();
    let mut methods = Vec::new();
    for pages in [&alone, &walked] {
        let mut panel = panel(&world, &settings).unwrap();
        let words = world.vocabulary();
        let findings = coverage::run(&mut panel, &words, pages, Checking::default(), 1).unwrap();
        for (engine, place) in [("a", 0), ("b", 1)] {
            let figure = findings.figure(&format!("share in {engine}")).unwrap();
            let truth = world.n_held(place) as f64 / 1500.0;
            let [low, high] = figure.interval.unwrap();
            assert!(low < truth && truth < high, "{truth}: {figure:?}");
            assert!(high - low < 0.15, "{figure:?}");
            methods.push(figure.method);
        }
    }
    assert_eq!(
        methods,
        ["overlap", "overlap", "random-walk", "random-walk"]
    );
}

/// Lookups without a response are neither found nor absent: the interval covers both.
#[test]
fn coverage_with_missing_answers() {
    let settings = SimulationSettings {
        fault: Fault::TimesOut,
        ..small(Part::Overlap)
    };
    let world = World::new(&settings.corpus, &settings.shares, 0.0).unwrap();
    let pages: Vec<DrawnPage> = (0..200)
        .map(|page| DrawnPage {
            url: format!("sim://page/{page}"),
            text: String::new(),
            walk: None,
        })
        .collect();
    let checking = Checking {
        by: By::Url,
        ..Checking::default()
    };
    let mut panel = panel(&world, &settings).unwrap();
    let words = world.vocabulary();
    let findings = coverage::run(&mut panel, &words, &pages, checking, 1).unwrap();
    let figure = findings.figure("share in b").unwrap();
    // One lookup in ten times out.
    assert_eq!(figure.notes, ["20 without a response"]);
    assert_eq!(figure.n_samples, 180);
    let held = (0..200).filter(|&page| world.holds[1][page] && (page + 1) % 10 != 0);
    let n_held = held.count() as f64;
    assert_eq!(figure.value, Some(n_held / 180.0));
    let ([low, high], [from, to]) = (figure.interval.unwrap(), figure.sampling.unwrap());
    assert!((low - 0.9 * from).abs() < 1e-9, "{figure:?}");
    assert!((high - (0.9 * to + 0.1)).abs() < 1e-9, "{figure:?}");
    let said = findings.warnings.join("\n");
    assert!(said.contains("20 of 200 lookups by URL"), "{said}");
}

/// A search engine that requests 100 results and gets 10.
struct Capped(Box<dyn Engine>);

impl Engine for Capped {
    fn limit(&self) -> usize {
        100
    }

    fn search(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<Reply<ResultList>, Error> {
        self.0.search(question, limit.min(10), requests)
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        self.0.fetch(address, requests)
    }

    fn has_lookup(&self) -> bool {
        false
    }

    fn contains(&mut self, _: &str, _: &Requests) -> Result<Reply<bool>, Error> {
        unreachable!("it has no lookup")
    }
}

#[test]
fn an_engine_that_caps_its_results() {
    let settings = small(Part::Overlap);
    let world = World::new(&settings.corpus, &settings.shares, 0.0).unwrap();
    let engine = |place| {
        let engine = world.engine(place, EngineConfig::default(), Fault::None);
        Box::new(Capped(Box::new(engine.unwrap()))) as Box<dyn Engine>
    };
    let engines = vec![("a".to_owned(), engine(0)), ("b".to_owned(), engine(1))];
    let mut panel = Panel::new(engines, &[], Log::off(), u64::MAX).unwrap();
    let own = overlap::OverlapSettings {
        n_samples: 100,
        ..overlap::OverlapSettings::default()
    };
    let findings = overlap::run(&mut panel, &world.vocabulary(), &own).unwrap();
    let said = findings.warnings.join("\n");
    assert!(said.contains("cut to at most 10 results"), "{said}");

    // If its counts are wrong as well, the number of responses of equal length shows the limit.
    let liar = world
        .engine(0, EngineConfig::default(), Fault::Lies)
        .unwrap();
    let engine: Box<dyn Engine> = Box::new(Capped(Box::new(liar)));
    let mut panel = Panel::new(vec![("a".to_owned(), engine)], &[], Log::off(), u64::MAX).unwrap();
    let words = world.vocabulary();
    let pools = corpus_size::Pools {
        first: choose(&words, &PoolConfig::default()),
        ..corpus_size::Pools::default()
    };
    let own = corpus_size::CorpusSizeSettings {
        n_queries: 50,
        n_controls: 10,
        seed: 1,
    };
    let findings = corpus_size::run(&mut panel, 0, &words, &pools, &own).unwrap();
    let said = findings.warnings.join("\n");
    assert!(said.contains("seems to show at most 10 results"), "{said}");
}

/// A search engine that returns three pages in ten twice, under http and https, and counts both.
struct Twins(Box<dyn Engine>);

impl Engine for Twins {
    fn limit(&self) -> usize {
        self.0.limit()
    }

    fn search(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<Reply<ResultList>, Error> {
        let Reply::Answer(found) = self.0.search(question, limit, requests)? else {
            return Ok(Reply::Missing("the engine within is silent".to_owned()));
        };
        let spellings = |address: &String| {
            let page = address.strip_prefix("sim://page/").unwrap();
            let is_twin = page.parse::<u64>().unwrap() % 10 < 3;
            let http = format!("http://sim.example/{page}");
            let https = is_twin.then(|| format!("https://sim.example/{page}"));
            std::iter::once(http).chain(https)
        };
        let shown = found.addresses.len() as u64;
        let addresses: Vec<String> = found.addresses.iter().flat_map(spellings).collect();
        // Results that are not shown also have duplicates; shown results are counted as returned.
        let unseen = found.claimed.unwrap().saturating_sub(shown);
        let claimed = Some(addresses.len() as u64 + unseen);
        Ok(Reply::Answer(ResultList { claimed, addresses }))
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        let (_, page) = address.rsplit_once('/').unwrap();
        let Reply::Answer(found) = self.0.fetch(&format!("sim://page/{page}"), requests)? else {
            return Ok(Reply::Missing("there is no such page".to_owned()));
        };
        let address = address.to_owned();
        Ok(Reply::Answer(Page { address, ..found }))
    }

    fn has_lookup(&self) -> bool {
        false
    }

    fn contains(&mut self, _: &str, _: &Requests) -> Result<Reply<bool>, Error> {
        unreachable!("it has no lookup")
    }
}

/// Pages that are returned twice are neither more pages nor a sign of results that are not shown.
#[test]
fn pages_under_two_addresses() {
    let mut settings = small(Part::Overlap);
    settings.corpus.n_pages = 800;
    let world = World::new(&settings.corpus, &[1.0, 1.0], 0.0).unwrap();
    let engine = |place| {
        let engine = world.engine(place, EngineConfig::default(), Fault::None);
        Box::new(Twins(Box::new(engine.unwrap()))) as Box<dyn Engine>
    };
    let words = world.vocabulary();
    let mut alone =
        Panel::new(vec![("a".to_owned(), engine(0))], &[], Log::off(), u64::MAX).unwrap();
    let pools = corpus_size::Pools {
        first: choose(&words, &PoolConfig::default()),
        ..corpus_size::Pools::default()
    };
    let own = corpus_size::CorpusSizeSettings {
        n_queries: 200,
        n_controls: 10,
        seed: 1,
    };
    let findings = corpus_size::run(&mut alone, 0, &words, &pools, &own).unwrap();
    let figure = &findings.figures[0];
    let [low, high] = figure.interval.unwrap();
    assert!(
        low <= 800.0 && (800.0..1000.0).contains(&high),
        "{figure:?}"
    );

    let engines = vec![("a".to_owned(), engine(0)), ("b".to_owned(), engine(1))];
    let mut both = Panel::new(engines, &[], Log::off(), u64::MAX).unwrap();
    let queries: Vec<Question> = pools
        .first
        .iter()
        .take(100)
        .map(|word| Question::all(&[word]))
        .collect();
    let own = searches::SearchSettings {
        checking: searches::Verification::Believed,
        size_of_first: None,
        seed: 1,
    };
    let findings = searches::run(&mut both, &queries, &own).unwrap();
    let said = findings.warnings.join("\n");
    assert!(
        !said.contains("more results than some search engine shows"),
        "{said}"
    );
}

/// A search engine that does not respond to every seventh query.
struct SixOfSeven(Box<dyn Engine>, u64);

impl Engine for SixOfSeven {
    fn limit(&self) -> usize {
        self.0.limit()
    }

    fn search(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<Reply<ResultList>, Error> {
        self.1 += 1;
        match self.1 % 7 {
            0 => Ok(Reply::Missing("timed out".to_owned())),
            _ => self.0.search(question, limit, requests),
        }
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        self.0.fetch(address, requests)
    }

    fn has_lookup(&self) -> bool {
        false
    }

    fn contains(&mut self, _: &str, _: &Requests) -> Result<Reply<bool>, Error> {
        unreachable!("it has no lookup")
    }
}

/// A page that one query did not find while the other got no response is not known to be absent. It
/// is omitted, whether it is there or not.
#[test]
fn one_answer_of_two_is_no_absence() {
    let settings = small(Part::Overlap);
    let world = World::new(&settings.corpus, &[0.5, 0.5], 0.0).unwrap();
    let engine = |place| {
        let engine = world.engine(place, EngineConfig::default(), Fault::None);
        Box::new(engine.unwrap()) as Box<dyn Engine>
    };
    let slow = Box::new(SixOfSeven(engine(1), 0)) as Box<dyn Engine>;
    let engines = vec![("a".to_owned(), engine(0)), ("b".to_owned(), slow)];
    let mut panel = Panel::new(engines, &[], Log::off(), u64::MAX).unwrap();
    let own = overlap::OverlapSettings {
        n_samples: 400,
        n_controls: 0,
        ..overlap::OverlapSettings::default()
    };
    let findings = overlap::run(&mut panel, &world.vocabulary(), &own).unwrap();
    let figure = findings.figure("a in b").unwrap();
    // One query in seven has no response, so one lookup in four lacks one: 294 are left, plus or
    // minus three standard errors. If a single response sufficed, one in seven would be lost and
    // 343 left.
    assert!((268..=320).contains(&figure.n_samples), "{figure:?}");
    // The remaining pages are like the others: within three standard errors of the true value.
    let value = figure.value.unwrap();
    let tolerance = 3.0 * (0.25 / figure.n_samples as f64).sqrt();
    assert!((value - 0.5).abs() < tolerance, "{figure:?}");
}

/// Copies at other URLs: with near duplicates they count as found, by URL they do not.
#[test]
fn duplicates_bracket_the_overlap() {
    let mut settings = small(Part::Overlap);
    settings.corpus.copied = 0.4;
    let findings = one(&settings);
    let figure = findings.figure("union / a").unwrap();
    let note = figure
        .notes
        .iter()
        .find(|note| note.contains("by URL only"));
    let strict: f64 = note.unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(strict > figure.value.unwrap() + 0.003, "{figure:?}");
}

fn error_of(settings: &SimulationSettings) -> String {
    run(settings).err().unwrap().to_string()
}

#[test]
fn nothing_in_common_nothing_at_all() {
    let empty = SimulationSettings {
        shares: vec![0.5, 0.0],
        ..small(Part::Overlap)
    };
    assert!(
        error_of(&empty).contains("no page of b could be sampled"),
        "{}",
        error_of(&empty)
    );

    let settings = small(Part::Overlap);
    let mut world = World::new(&settings.corpus, &[1.0, 1.0, 1.0], 0.0).unwrap();
    for page in 0..1500 {
        world.holds[0][page] = page < 600;
        world.holds[1][page] = page < 500;
        world.holds[2][page] = page >= 700;
    }
    let mut panel = panel(&world, &settings).unwrap();
    let own = overlap::OverlapSettings {
        n_samples: 50,
        ..overlap::OverlapSettings::default()
    };
    let error = overlap::run(&mut panel, &world.vocabulary(), &own)
        .err()
        .unwrap()
        .to_string();
    assert!(
        error.contains("2 is c") && error.contains("shares no sampled page"),
        "{error}"
    );

    let foreign: Vec<(String, u64)> = ["rosa", "spina", "hortus"]
        .map(|word| (word.to_owned(), 5))
        .to_vec();
    let error = overlap::run(&mut panel, &foreign, &own)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("another language"), "{error}");
}

/// A study stopped by its budget says so and uses the responses received.
#[test]
fn budgets() {
    let settings = small(Part::Overlap);
    let world = World::new(&settings.corpus, &settings.shares, 0.0).unwrap();
    let engines = (0..2).map(|place| {
        let engine = world
            .engine(place, EngineConfig::default(), Fault::None)
            .unwrap();
        (place.to_string(), Box::new(engine) as Box<dyn Engine>)
    });
    let mut panel = Panel::new(engines.collect(), &[], Log::off(), 600).unwrap();
    let own = overlap::OverlapSettings::default();
    let findings = overlap::run(&mut panel, &world.vocabulary(), &own).unwrap();
    assert!(
        findings.warnings[0].contains("the budget of requests was spent"),
        "{findings:?}"
    );
    let n = findings.figures[0].n_samples;
    assert!((20..300).contains(&n), "{n}");
}

#[test]
fn same_seed_same_figures() {
    let settings = small(Part::Overlap);
    assert_eq!(one(&settings), one(&settings));
    let other = SimulationSettings {
        seed: 2,
        ..settings.clone()
    };
    assert_ne!(one(&settings), one(&other));
}
