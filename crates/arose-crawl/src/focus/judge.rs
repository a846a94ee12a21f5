//! The scorers of a crawl, as its settings choose them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arose::focus::{Keywords, Linear, LinkWords, PageScorer, Words};
use arose_corpus::Item;

use super::program::{PageText, Program};
use crate::error::{Context, Error};
use crate::settings::{FocusSettings, ScorerKind, seconds};

/// Number of positions for the words of a trained model, as a power of two.
const BITS: u32 = 18;

/// Maximum number of examples of each kind; further ones change little.
const MAX_EXAMPLES: usize = 100_000;

/// Judges pages, on any thread.
#[derive(Debug)]
pub(crate) struct Judge {
    method: Method,
}

#[derive(Debug)]
enum Method {
    Keywords(Mutex<Keywords>),
    Linear(Mutex<Linear>),
    Program(Program),
}

/// The result of judging a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Judged {
    /// Its score.
    Score(f32),
    /// The score will come later, under this number.
    Asked(u64),
    /// There will be no score.
    None,
}

/// A scorer without words.
struct Blank;

impl PageScorer for Blank {
    fn score(&mut self, _: &Words) -> f32 {
        0.5
    }

    fn log_odds(&self, _: u64) -> f32 {
        0.0
    }
}

impl Judge {
    /// Creates the judge that the settings choose, if any. Reads models and examples and starts
    /// programs, and changes nothing.
    ///
    /// # Errors
    ///
    /// If the settings, a file that they refer to, or the program cannot be used.
    pub(crate) fn of(settings: &FocusSettings) -> Result<Option<Self>, Error> {
        settings.check()?;
        let refused = |error: arose::Error| Error::Settings(format!("focus: {error}"));
        let method = match settings.scorer {
            ScorerKind::None => return Ok(None),
            ScorerKind::Keywords => {
                let words = settings.keywords.iter().map(String::as_str);
                Method::Keywords(Mutex::new(Keywords::new(words).map_err(refused)?))
            }
            ScorerKind::Examples => {
                let (liked, disliked) = (examples(&settings.liked)?, examples(&settings.disliked)?);
                let model = Linear::train(&liked, &disliked, BITS).map_err(refused)?;
                Method::Linear(Mutex::new(model))
            }
            ScorerKind::Linear => Method::Linear(Mutex::new(read_model(&settings.model)?)),
            ScorerKind::Command => {
                let timeout = seconds(settings.timeout);
                Method::Program(Program::start(&settings.command, timeout)?)
            }
        };
        Ok(Some(Self { method }))
    }

    /// Judges a page with these words.
    pub(crate) fn judge(&self, page: PageText<'_>, words: &Words) -> Judged {
        match &self.method {
            Method::Keywords(scorer) => Judged::Score(lock(scorer).score(words)),
            Method::Linear(scorer) => Judged::Score(lock(scorer).score(words)),
            Method::Program(program) => program.ask(page).map_or(Judged::None, Judged::Asked),
        }
    }

    /// Returns the words of a link.
    pub(crate) fn words(&self, anchor: &str, rest: &str, tag_path: &str) -> LinkWords {
        match &self.method {
            Method::Keywords(scorer) => LinkWords::new(anchor, rest, tag_path, &*lock(scorer)),
            Method::Linear(scorer) => LinkWords::new(anchor, rest, tag_path, &*lock(scorer)),
            Method::Program(_) => LinkWords::new(anchor, rest, tag_path, &Blank),
        }
    }

    /// Returns the program that scores, if there is one.
    pub(crate) fn program(&self) -> Option<&Program> {
        match &self.method {
            Method::Program(program) => Some(program),
            _ => None,
        }
    }

    /// Returns the state learned from pages, for the next run.
    pub(crate) fn learned(&self) -> Vec<u64> {
        match &self.method {
            Method::Keywords(scorer) => lock(scorer).learned(),
            _ => Vec::new(),
        }
    }

    /// Restores the state that an earlier run learned.
    pub(crate) fn resume(&self, learned: &[u64]) {
        if let Method::Keywords(scorer) = &self.method {
            lock(scorer).resume(learned);
        }
    }
}

fn lock<T>(scorer: &Mutex<T>) -> MutexGuard<'_, T> {
    scorer.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read_model(path: &Path) -> Result<Linear, Error> {
    let text = std::fs::read_to_string(path).context("reading", path)?;
    Linear::parse(&text)
        .map_err(|error| Error::Settings(format!("focus.model: `{}`: {error}", path.display())))
}

/// Returns the words of all pages in directories, files, and files that are listed in `.list`
/// files.
fn examples(inputs: &[PathBuf]) -> Result<Vec<Words>, Error> {
    let mut paths = Vec::new();
    for input in inputs {
        match input.extension().is_some_and(|end| end == "list") {
            true => paths.extend(read_list(input)?),
            false => paths.push(input.clone()),
        }
    }
    let documents = arose_corpus::read(&paths, arose_corpus::Config::default());
    let documents = documents.map_err(|error| Error::Settings(format!("focus: {error}")))?;
    let words = documents.filter_map(|item| match item {
        Item::Document(document) => Some(Words::of(&document.text)),
        Item::Skipped(_) => None,
    });
    Ok(words.take(MAX_EXAMPLES).collect())
}

/// Returns the paths in a file, one per line, relative to the file.
fn read_list(list: &Path) -> Result<Vec<PathBuf>, Error> {
    let text = std::fs::read_to_string(list).context("reading", list)?;
    let base = list.parent().unwrap_or(Path::new(""));
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let path = |line: &str| match line.contains("://") {
        true => Err(Error::Settings(format!(
            "`{}` lists the URL {line}; examples are not fetched, so crawl them first and list \
             the archive",
            list.display()
        ))),
        false => Ok(base.join(line)),
    };
    lines.map(path).collect()
}
