//! Search engines, words and logs on the command line.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use arose_corpus::Config as Reading;
use arose_crawl::Settings as Crawling;
use arose_estimate::check::{By, Checking, Choice};
use arose_estimate::engine::{self, Description, Log, PRESETS, Pages, Panel, Progress};
use arose_estimate::vocabulary::{self, Vocabulary};

use clap::ValueEnum;

use super::shown::step_of;
use crate::crawl::read_settings;
use crate::options::duration;
use crate::progress::watch;

/// Options of all commands that query search engines.
#[derive(clap::Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct Asking {
    /// Log of queries and responses; an existing log is resumed
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    log: Option<PathBuf>,
    /// Read all responses from this log; send no requests
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Maximum number of requests, including retries; the estimate uses the responses received
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    budget: u64,
    /// Seconds between requests to the same search engine; overrides its description
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    delay: Option<Duration>,
    /// Maximum number of results per query; overrides the description of the search engine
    #[arg(short, long, value_name = "N")]
    limit: Option<usize>,
    /// Documents, or `.tsv` lists of words and page counts, to take query words from; repeatable
    /// [default: the first local search engine]
    #[arg(long, value_name = "PATH")]
    lexicon: Vec<PathBuf>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// URL or email address where site owners can reach you; required to fetch result pages beyond
    /// loopback
    #[arg(long, value_name = "CONTACT")]
    contact: Option<String>,
    /// Allow result pages on private and loopback IP addresses
    #[arg(long)]
    allow_private: bool,
    /// Settings file of `arose crawl` (TOML) for fetching result pages
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How pages are looked up in search engines.
#[derive(clap::Args)]
pub(crate) struct Lookup {
    /// How to look up pages
    #[arg(long, value_enum, default_value_t = ByName::Words)]
    check: ByName,
    /// Which words of a page to query
    #[arg(long, value_enum, default_value_t = ChoiceName::Rarest)]
    choice: ChoiceName,
    /// Words per query [default: 8, or 5 with --choice robust]
    #[arg(long, value_name = "N")]
    terms: Option<usize>,
    /// Number of top results to compare as near duplicates; 0 compares URLs only
    #[arg(long, value_name = "N", default_value_t = 3)]
    compare: usize,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ByName {
    /// By queries of their words
    Words,
    /// By URL; every search engine must support lookup by URL
    Url,
    /// Both ways; also reports how many of the pages found by URL the queries find
    Both,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ChoiceName {
    /// The rarest words
    Rarest,
    /// The words with the highest tf-idf, as in robust hyperlinks
    Robust,
}

impl Lookup {
    pub(crate) fn checking(&self) -> Checking {
        let choice = match self.choice {
            ChoiceName::Rarest => Choice::Rarest,
            ChoiceName::Robust => Choice::Robust,
        };
        Checking {
            by: match self.check {
                ByName::Words => By::Words,
                ByName::Url => By::Url,
                ByName::Both => By::Both,
            },
            choice,
            n_words: self.terms.unwrap_or(choice.n_words()),
            n_compared: self.compare,
        }
    }
}

/// Whether a method needs a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    Needed,
    NotNeeded,
}

/// Opened search engines, and words to query.
pub(crate) struct Ready {
    pub(crate) panel: Panel,
    pub(crate) words: Vocabulary,
}

impl Asking {
    /// Opens search engines, words and log.
    pub(crate) fn open(&self, engines: &[String], need: Words) -> anyhow::Result<Ready> {
        let ready = match &self.replay {
            Some(path) => self.replay(path)?,
            None => self.open_engines(engines, need)?,
        };
        if need == Words::Needed {
            vocabulary::lexicon(&ready.words)?;
        }
        Ok(ready)
    }

    fn replay(&self, path: &Path) -> anyhow::Result<Ready> {
        let log = Log::replay(path)?;
        let words = match self.lexicon.is_empty() {
            false => vocabulary::open(&self.lexicon, Reading::default())?,
            true => log
                .header()
                .map(|header| header.words.clone())
                .unwrap_or_default(),
        };
        let panel = Panel::replay(log);
        Ok(Ready { panel, words })
    }

    fn open_engines(&self, engines: &[String], need: Words) -> anyhow::Result<Ready> {
        ensure!(
            !engines.is_empty(),
            "no search engine; pass one, or a log with --replay"
        );
        let log = match &self.log {
            Some(path) => Log::open(path)?,
            None => Log::off(),
        };
        let mut words = match (&self.lexicon[..], log.header()) {
            ([], Some(header)) => header.words.clone(),
            ([], None) => Vocabulary::new(),
            (paths, _) => vocabulary::open(paths, Reading::default())?,
        };
        let mut opened = Vec::new();
        let pages = Rc::new(Pages::new(self.crawling()?));
        for argument in engines {
            let mut description = describe(argument)?;
            let delay = self.delay.map(|delay| delay.as_secs_f64());
            description.delay = delay.or(description.delay);
            description.limit = self.limit.or(description.limit);
            let name = description.name.clone().unwrap_or_else(|| argument.clone());
            let (engine, own) = engine::open(&description, &pages)
                .with_context(|| format!("search engine {name}"))?;
            if words.is_empty() && need == Words::Needed {
                words = own;
            }
            opened.push((name, engine));
        }
        let panel = Panel::new(opened, &words, log, self.budget)?;
        Ok(Ready { panel, words })
    }
}

impl Asking {
    /// Settings for fetching result pages.
    fn crawling(&self) -> anyhow::Result<Crawling> {
        let mut settings = match &self.settings {
            Some(path) => read_settings(path)?,
            None => Crawling::default(),
        };
        if let Some(contact) = &self.contact {
            settings.agent.contact.clone_from(contact);
        }
        settings.network.allow_private |= self.allow_private;
        Ok(settings)
    }
}

impl Ready {
    /// Runs `work` while another thread shows progress.
    pub(crate) fn watched<T>(
        &mut self,
        work: impl FnOnce(&mut Panel, &Vocabulary) -> Result<T, arose_estimate::Error>,
    ) -> anyhow::Result<T> {
        let progress: Arc<Progress> = self.panel.progress();
        let (panel, words) = (&mut self.panel, &self.words);
        Ok(watch(step_of(&progress), || work(panel, words))?)
    }
}

/// The search engine given by an argument.
fn describe(argument: &str) -> anyhow::Result<Description> {
    let (name, what) = match argument.split_once('=') {
        Some((name, what)) if is_name(name) => (Some(name.to_owned()), what),
        _ => (None, argument),
    };
    let mut description = match what.split_once(':') {
        Some((preset, url)) if PRESETS.contains(&preset) => Description {
            name: Some(preset.to_owned()),
            ..Description::preset(preset, url)
        },
        _ => described_by(Path::new(what))?,
    };
    description.name = name.or(description.name);
    Ok(description)
}

fn is_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.chars().all(is_plain)
}

fn described_by(path: &Path) -> anyhow::Result<Description> {
    let is_file = path
        .extension()
        .is_some_and(|extension| extension == "toml");
    if is_file {
        return Ok(Description::open(path)?);
    }
    ensure!(
        path.is_dir(),
        "`{}` is not a search engine; pass a directory, a .toml file, or {}",
        crate::input::name(path),
        PRESETS.map(|preset| format!("{preset}:URL")).join(", ")
    );
    let name = path.file_name().unwrap_or(path.as_os_str());
    Ok(Description {
        name: Some(name.to_string_lossy().into_owned()),
        directory: Some(path.to_owned()),
        ..Description::default()
    })
}
