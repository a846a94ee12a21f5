//! A complete study: one settings file, one directory of results.
//!
//! ```toml
//! samples = 1000
//! lexicon = ["crawl.warc.gz"]
//!
//! [[engine]]
//! name = "ours"
//! directory = "out"
//!
//! [[engine]]
//! name = "theirs"
//! preset = "solr"
//! url = "http://127.0.0.1:8983/solr/pages"
//! ```
//!
//! The directory contains `estimates.json` (all estimates), `report.html` (the same as an offline
//! page) and `requests.jsonl` (all queries and responses). An interrupted study resumes from the
//! latter. A replayed study reads all responses from it and gives the same estimates, byte for
//! byte.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use arose_corpus::Config as Reading;
use serde::{Deserialize, Serialize};

use super::check::{By, Checking, Choice};
use super::pool::{PageMeasure, PoolConfig, Way, choose};
use super::vocabulary::{self, Vocabulary, lexicon};
use super::{Findings, corpus_size, coverage, lower_bound, overlap, pool, report, searches};
use crate::Error;
use crate::engine::{Description, Log, Pages, Panel, Progress, Question, open};

/// Settings of a study.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The search engines; sizes are relative to the first.
    #[serde(rename = "engine")]
    pub engines: Vec<Description>,
    /// Number of pages sampled from each search engine.
    pub samples: usize,
    /// Number of queries for the size of each search engine; 0 omits this estimate.
    pub size_queries: usize,
    /// Number of pages for the mean length of each search engine; 0 omits this estimate.
    pub pool_samples: usize,
    /// A file of queries, one per line.
    pub queries: Option<PathBuf>,
    /// A file of pages sampled by a walk or otherwise, to estimate the share in each search engine.
    pub pages: Option<PathBuf>,
    /// Documents or lists to take words from; the local search engines if empty.
    pub lexicon: Vec<PathBuf>,
    /// Maximum number of requests.
    pub budget: u64,
    /// The seed of all random choices.
    pub seed: u64,
    /// How to look up pages: `words`, `url` or `both`.
    pub check: By,
    /// Which words to query: `rarest` or `robust`.
    pub choice: Choice,
    /// Number of words per query. Default: that of the literature.
    pub terms: Option<usize>,
    /// Number of top results to compare as near duplicates.
    pub compare: usize,
    /// A URL or email address where site owners can reach the operator, to fetch result pages.
    pub contact: String,
    /// Whether result pages on private and loopback IP addresses may be fetched.
    pub allow_private: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            engines: Vec::new(),
            samples: overlap::OverlapSettings::default().n_samples,
            size_queries: 200,
            pool_samples: 0,
            queries: None,
            pages: None,
            lexicon: Vec::new(),
            budget: 100_000,
            seed: 1,
            check: By::default(),
            choice: Choice::default(),
            terms: None,
            compare: Checking::default().n_compared,
            contact: String::new(),
            allow_private: false,
        }
    }
}

impl Config {
    /// Reads the settings of a study. Relative paths are relative to the settings file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
        let bad = |what: String| Error::Settings {
            path: path.to_owned(),
            what,
        };
        let mut config: Self = toml::from_str(&text).map_err(|error| bad(error.to_string()))?;
        if config.engines.is_empty() {
            return Err(bad(
                "it lists no search engine; add one with [[engine]]".to_owned()
            ));
        }
        let beside = path.parent().unwrap_or(Path::new(""));
        let files = config.lexicon.iter_mut().chain(&mut config.queries);
        for file in files.chain(&mut config.pages) {
            *file = beside.join(&*file);
        }
        for (place, engine) in config.engines.iter_mut().enumerate() {
            if let Some(directory) = &mut engine.directory {
                *directory = beside.join(&*directory);
            }
            let guess = || format!("engine{}", place + 1);
            engine.name = Some(engine.name.take().unwrap_or_else(guess));
        }
        Ok(config)
    }

    /// How pages are looked up.
    fn checking(&self) -> Checking {
        Checking {
            by: self.check,
            choice: self.choice,
            n_words: self.terms.unwrap_or(self.choice.n_words()),
            n_compared: self.compare,
        }
    }

    /// How result pages are fetched.
    fn crawling(&self) -> arose_crawl::Settings {
        let mut settings = arose_crawl::Settings::default();
        settings.agent.contact.clone_from(&self.contact);
        settings.network.allow_private = self.allow_private;
        settings
    }
}

/// Source of the responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The search engines, and the log of earlier responses.
    Engines,
    /// The log only.
    Log,
}

/// The results of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// The search engines.
    pub engines: Vec<String>,
    /// The seed.
    pub seed: u64,
    /// The results of each method.
    pub findings: Vec<Findings>,
    /// Methods without a result, with the reason.
    pub refused: Vec<Refused>,
}

/// A method without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The method.
    pub method: String,
    /// The reason.
    pub reason: String,
}

/// The opened search engines of a study, with the words to query.
fn prepare(config: &Config, log: &Path, source: Source) -> Result<(Panel, Vocabulary), Error> {
    if source == Source::Log {
        let log = Log::replay(log)?;
        let words = log.header().map(|header| header.words.clone());
        return Ok((Panel::replay(log), words.unwrap_or_default()));
    }
    let log = Log::open(log)?;
    let mut words = match config.lexicon.is_empty() {
        true => Vocabulary::new(),
        false => vocabulary::open(&config.lexicon, Reading::default())?,
    };
    let mut engines = Vec::new();
    let pages = Rc::new(Pages::new(config.crawling()));
    for description in &config.engines {
        let (engine, own) = open(description, &pages)?;
        if words.is_empty() {
            words = own;
        }
        engines.push((description.name.clone().unwrap_or_default(), engine));
    }
    // A resumed study samples from the words it started with.
    let words = match log.header() {
        Some(header) if !header.words.is_empty() => header.words.clone(),
        _ => words,
    };
    lexicon(&words)?;
    Ok((Panel::new(engines, &words, log, config.budget)?, words))
}

/// Runs all methods selected by the settings. `watch` receives the progress.
///
/// # Errors
///
/// If search engines cannot be opened or results cannot be written. A method without a result is
/// not an error: it is listed with the reason.
pub fn run(
    config: &Config,
    out: &Path,
    source: Source,
    watch: impl FnOnce(Arc<Progress>),
) -> Result<Study, Error> {
    fs::create_dir_all(out).map_err(Error::io("create the directory", out))?;
    let (mut panel, words) = prepare(config, &out.join("requests.jsonl"), source)?;
    watch(panel.progress());
    let mut study = Study {
        engines: (0..panel.n_engines())
            .map(|engine| panel.name(engine).to_owned())
            .collect(),
        seed: config.seed,
        findings: Vec::new(),
        refused: Vec::new(),
    };
    for (method, found) in methods(config, &mut panel, &words) {
        match found {
            Ok(findings) => study.findings.push(findings),
            Err(Error::Io {
                action,
                path,
                source,
            }) => {
                return Err(Error::Io {
                    action,
                    path,
                    source,
                });
            }
            Err(error) => study.refused.push(Refused {
                method,
                reason: error.to_string(),
            }),
        }
    }
    write(&study, out)?;
    Ok(study)
}

/// Runs the methods in order, cheapest first.
fn methods(
    config: &Config,
    panel: &mut Panel,
    words: &Vocabulary,
) -> Vec<(String, Result<Findings, Error>)> {
    let mut all = Vec::new();
    let lists: Vec<Vec<String>> = lower_bound::LANGUAGES
        .iter()
        .map(|(_, words)| words.map(str::to_owned).to_vec())
        .collect();
    let bound = lower_bound::run(panel, &lists, config.seed);
    all.push(("lower-bound".to_owned(), bound));
    if panel.n_engines() > 1 && config.samples > 0 {
        let settings = overlap::OverlapSettings {
            n_samples: config.samples,
            checking: config.checking(),
            seed: config.seed,
            ..overlap::OverlapSettings::default()
        };
        let found = overlap::run(panel, words, &settings);
        all.push(("overlap".to_owned(), found));
    }
    if let Some(path) = &config.pages {
        let found = coverage::read(path)
            .and_then(|pages| coverage::run(panel, words, &pages, config.checking(), config.seed));
        all.push(("coverage".to_owned(), found));
    }
    if let Some(path) = &config.queries {
        all.push(("searches".to_owned(), run_queries(panel, path, config.seed)));
    }
    for engine in 0..panel.n_engines() {
        let name = panel.name(engine).to_owned();
        if config.size_queries > 0 {
            let found = size(config, panel, engine, words);
            all.push((format!("corpus-size of {name}"), found));
        }
        if config.pool_samples > 0 {
            let found = length(config, panel, engine, words);
            all.push((format!("pool of {name}"), found));
        }
    }
    all
}

fn run_queries(panel: &mut Panel, path: &Path, seed: u64) -> Result<Findings, Error> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let queries: Vec<Question> = text.lines().filter_map(Question::typed).collect();
    let settings = searches::SearchSettings {
        checking: searches::Verification::Verified,
        size_of_first: None,
        seed,
    };
    searches::run(panel, &queries, &settings)
}

fn size(
    config: &Config,
    panel: &mut Panel,
    engine: usize,
    words: &Vocabulary,
) -> Result<Findings, Error> {
    let pools = corpus_size::Pools {
        first: choose(words, &PoolConfig::default()),
        ..corpus_size::Pools::default()
    };
    let settings = corpus_size::CorpusSizeSettings {
        n_queries: config.size_queries,
        n_controls: 10,
        seed: config.seed,
    };
    let found = corpus_size::run(panel, engine, words, &pools, &settings)?;
    Ok(of_engine(found, panel.name(engine)))
}

fn length(
    config: &Config,
    panel: &mut Panel,
    engine: usize,
    words: &Vocabulary,
) -> Result<Findings, Error> {
    let settings = pool::PoolSettings {
        n_samples: config.pool_samples,
        measure: PageMeasure::Words,
        ways: vec![Way::Importance, Way::Plain],
        n_controls: 10,
        seed: config.seed,
    };
    let pool = choose(words, &PoolConfig::default());
    let found = pool::run(panel, engine, words, pool, &settings)?;
    Ok(of_engine(found, panel.name(engine)))
}

/// Adds the name of the search engine to the names of its estimates.
fn of_engine(mut findings: Findings, engine: &str) -> Findings {
    for figure in &mut findings.figures {
        figure.name = format!("{} of {engine}", figure.name);
    }
    for series in &mut findings.series {
        series.name = format!("{} of {engine}", series.name);
    }
    findings
        .engines
        .retain(|behaviour| behaviour.name == engine);
    findings
}

fn write(study: &Study, out: &Path) -> Result<(), Error> {
    let json = serde_json::to_string_pretty(study).map_err(|error| Error::Io {
        action: "write",
        path: out.join("estimates.json"),
        source: error.into(),
    })?;
    for (name, text) in [
        ("estimates.json", format!("{json}\n")),
        ("report.html", report::page(study)),
    ] {
        let (path, temporary) = (out.join(name), out.join(format!(".{name}")));
        fs::write(&temporary, text)
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(Error::io("write", &path))?;
    }
    Ok(())
}
