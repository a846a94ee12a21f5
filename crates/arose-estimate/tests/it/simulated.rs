//! Methods over synthetic engines, where the truth is known.

use arose::estimate::simulate::{CorpusConfig, EngineConfig};
use arose_estimate::Error;
use arose_estimate::engine::{
    Engine, Fault, Found, Log, Page, Panel, Question, Reply, Requests, World,
};
use arose_estimate::pool::{PoolConfig, choose};
use arose_estimate::simulate::{Part, Settings, coverage, panel, run};
use arose_estimate::{Findings, corpus_size, overlap, searches};

/// Two engines that hold 50 and 40 % of 1,500 pages of about the same length.
fn small(part: Part) -> Settings {
    Settings {
        corpus: CorpusConfig {
            n_pages: 1500,
            median_length: 60.0,
            length_spread: 0.2,
            ..CorpusConfig::default()
        },
        shares: vec![0.5, 0.4],
        n_samples: 100,
        parts: vec![part],
        ..Settings::default()
    }
}

fn one(settings: &Settings) -> Findings {
    run(settings).unwrap().remove(0)
}

/// Nominal 95 % intervals hold the truth in 90 to 99 % of 300 studies.
#[track_caller]
fn check_coverage(settings: &Settings, figures: &[&str]) {
    let fared = coverage(settings, 300).unwrap();
    for name in figures {
        let one = fared.iter().find(|one| one.name == *name);
        let one = one.unwrap_or_else(|| panic!("no {name} in {fared:?}"));
        assert_eq!(one.n_intervals, 300, "{one:?}");
        assert!((270..=297).contains(&one.n_covering), "{one:?}");
    }
}

#[test]
fn intervals_of_overlap() {
    let settings = Settings {
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

/// Which pages the engines hold is chance, so every ten studies have a world of their own.
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
        let fared = coverage(&settings, 10).unwrap();
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
    let settings = Settings {
        n_samples: 200,
        ..small(Part::CorpusSize)
    };
    check_coverage(&settings, &["pages matched by the pool"]);
}

#[test]
fn intervals_of_capture() {
    let settings = Settings {
        n_samples: 300,
        ..small(Part::Capture)
    };
    check_coverage(&settings, &["pages"]);
}

/// The plain sampler sees long pages, the weighted one does not.
#[test]
fn weights_undo_the_bias_to_long_pages() {
    let mut settings = Settings {
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

/// In a world where a few long pages are drawn most of the time, thinned samples come closer.
#[test]
fn evened_pages_undo_the_bias_to_long_pages() {
    let findings = one(&Settings {
        shares: vec![0.5, 0.4],
        n_samples: 1000,
        parts: vec![Part::Overlap],
        ..Settings::default()
    });
    let covers = |name: &str| findings.figure(name).unwrap().covers().unwrap();
    assert!(
        covers("b / a, evened") && covers("a / union, evened"),
        "{findings:#?}"
    );
    assert!(!covers("b / a"), "the world is no longer one that misleads");
}

/// What an engine may do wrong, and what must be said of it.
#[test]
fn engines_that_misbehave() {
    for (fault, part) in [
        (Fault::Lies, "its counts cannot be trusted"),
        (Fault::TimesOut, "timed out"),
        (Fault::Repeats, "more than once"),
        (Fault::Nonsense, "neither results nor a count"),
        (Fault::Changes(100), "changed during the study"),
    ] {
        let findings = one(&Settings {
            fault,
            ..small(Part::Overlap)
        });
        let said = findings.doubts.join("\n");
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

/// The same faults of the engine whose pages are counted.
#[test]
fn sizes_of_engines_that_misbehave() {
    for (fault, limit, part) in [
        (Fault::Lies, 100, "its counts cannot be trusted"),
        (Fault::TimesOut, 100, "timed out"),
        (Fault::Repeats, 100, "more than once"),
        (Fault::Nonsense, 100, "neither results nor a count"),
        (Fault::Changes(600), 100, "changed during the study"),
        (Fault::None, 10, "more results than are shown"),
    ] {
        let mut settings = Settings {
            shares: vec![0.5],
            n_samples: 300,
            fault,
            ..small(Part::CorpusSize)
        };
        settings.engine.limit = limit;
        let findings = one(&settings);
        let said = findings.doubts.join("\n");
        assert!(said.contains(part), "{fault:?}: {said}");
        // Four standard errors of 300 queries, unless it is refused.
        let figure = &findings.figures[0];
        let is_near = |value: f64| (value / figure.truth.unwrap() - 1.0).abs() < 0.3;
        assert!(figure.value.is_none_or(is_near), "{fault:?}: {figure:?}");
    }
}

/// An engine that asks for 100 and gets 10.
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
    ) -> Result<Reply<Found>, Error> {
        self.0.search(question, limit.min(10), requests)
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        self.0.fetch(address, requests)
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
    let own = overlap::Settings {
        n_samples: 100,
        ..overlap::Settings::default()
    };
    let findings = overlap::run(&mut panel, &world.vocabulary(), &own).unwrap();
    let said = findings.doubts.join("\n");
    assert!(said.contains("cut to at most 10 results"), "{said}");

    // Where its counts are wrong as well, the cap is told by how many answers are as long.
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
    let own = corpus_size::Settings {
        n_queries: 50,
        n_controls: 10,
        seed: 1,
    };
    let findings = corpus_size::run(&mut panel, 0, &words, &pools, &own).unwrap();
    let said = findings.doubts.join("\n");
    assert!(said.contains("seems to show at most 10 results"), "{said}");
}

/// An engine that returns three pages in ten twice, under http and https, and counts both.
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
    ) -> Result<Reply<Found>, Error> {
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
        // What is not shown has twins, too; what is shown is counted as it is returned.
        let unseen = found.claimed.unwrap().saturating_sub(shown);
        let claimed = Some(addresses.len() as u64 + unseen);
        Ok(Reply::Answer(Found { claimed, addresses }))
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        let (_, page) = address.rsplit_once('/').unwrap();
        let Reply::Answer(found) = self.0.fetch(&format!("sim://page/{page}"), requests)? else {
            return Ok(Reply::Missing("there is no such page".to_owned()));
        };
        let address = address.to_owned();
        Ok(Reply::Answer(Page { address, ..found }))
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
    let own = corpus_size::Settings {
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
    let own = searches::Settings {
        checking: searches::Checking::Believed,
        size_of_first: None,
        seed: 1,
    };
    let findings = searches::run(&mut both, &queries, &own).unwrap();
    let said = findings.doubts.join("\n");
    assert!(
        !said.contains("more results than some engine shows"),
        "{said}"
    );
}

/// An engine that leaves every seventh question without an answer.
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
    ) -> Result<Reply<Found>, Error> {
        self.1 += 1;
        match self.1 % 7 {
            0 => Ok(Reply::Missing("timed out".to_owned())),
            _ => self.0.search(question, limit, requests),
        }
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        self.0.fetch(address, requests)
    }
}

/// A page that one query did not find while the other had no answer is not known to be absent: it
/// is left out, whether it is there or not.
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
    let own = overlap::Settings {
        n_samples: 100,
        n_controls: 0,
        ..overlap::Settings::default()
    };
    let findings = overlap::run(&mut panel, &world.vocabulary(), &own).unwrap();
    let figure = findings.figure("a in b").unwrap();
    // One query in seven has no answer, so about one check in four lacks one.
    assert!((65..=85).contains(&figure.n_samples), "{figure:?}");
    // What is left is like the rest: within three standard errors of the truth.
    let value = figure.value.unwrap();
    let tolerance = 3.0 * (0.25 / figure.n_samples as f64).sqrt();
    assert!((value - 0.5).abs() < tolerance, "{figure:?}");
}

/// Copies at other addresses: by near duplicates they count as held, by address they do not.
#[test]
fn duplicates_bracket_the_overlap() {
    let mut settings = small(Part::Overlap);
    settings.corpus.copied = 0.4;
    let findings = one(&settings);
    let figure = findings.figure("union / a").unwrap();
    let note = figure
        .notes
        .iter()
        .find(|note| note.contains("by address only"));
    let strict: f64 = note.unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!(strict > figure.value.unwrap() + 0.003, "{figure:?}");
}

fn error_of(settings: &Settings) -> String {
    run(settings).err().unwrap().to_string()
}

#[test]
fn nothing_in_common_nothing_at_all() {
    let empty = Settings {
        shares: vec![0.5, 0.0],
        ..small(Part::Overlap)
    };
    assert!(
        error_of(&empty).contains("no page of b could be drawn"),
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
    let own = overlap::Settings {
        n_samples: 50,
        ..overlap::Settings::default()
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

/// A study cut short by its budget says so and estimates from what it has.
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
    let own = overlap::Settings::default();
    let findings = overlap::run(&mut panel, &world.vocabulary(), &own).unwrap();
    assert!(
        findings.doubts[0].contains("the budget of requests was spent"),
        "{findings:?}"
    );
    let n = findings.figures[0].n_samples;
    assert!((20..300).contains(&n), "{n}");
}

#[test]
fn same_seed_same_figures() {
    let settings = small(Part::Overlap);
    assert_eq!(one(&settings), one(&settings));
    let other = Settings {
        seed: 2,
        ..settings.clone()
    };
    assert_ne!(one(&settings), one(&other));
}
