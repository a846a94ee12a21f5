//! Settings of focused crawls.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Error};

/// The topic of the crawl.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FocusSettings {
    /// The scorer of pages.
    pub scorer: ScorerKind,
    /// Words of the topic, for the scorer `keywords`.
    pub keywords: Vec<String>,
    /// Pages that fit and pages that do not, for the scorer `examples`: directories and files.
    pub liked: Vec<PathBuf>,
    /// See `liked`.
    pub disliked: Vec<PathBuf>,
    /// A model file, for the scorer `linear`.
    pub model: PathBuf,
    /// A program and its arguments, for the scorer `command`.
    pub command: Vec<String>,
    /// Maximum number of seconds that the program may take for a page before it is restarted.
    pub timeout: f64,
    /// Maximum number of seconds that a page waits for its score before its links are queued
    /// without it.
    pub patience: f64,
    /// Whether to ignore the links of pages with a score below 0.5.
    pub hard: bool,
    /// Share of the pages that are chosen by their links alone.
    pub explore: f64,
}

impl Default for FocusSettings {
    fn default() -> Self {
        Self {
            scorer: ScorerKind::None,
            keywords: Vec::new(),
            liked: Vec::new(),
            disliked: Vec::new(),
            model: PathBuf::new(),
            command: Vec::new(),
            timeout: 10.0,
            patience: 2.0,
            hard: false,
            explore: 0.05,
        }
    }
}

/// The scorers of pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ScorerKind {
    /// None: the crawl has no topic.
    #[default]
    None,
    /// A list of words.
    Keywords,
    /// A model trained on examples.
    Examples,
    /// A model from a file.
    Linear,
    /// A program.
    Command,
}

impl FocusSettings {
    /// Whether the crawl has a topic.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.scorer != ScorerKind::None
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Reads a topic file: the settings of `[focus]` at its top level. Paths in it are relative to
    /// the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not such a file, or has no scorer.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).context("reading", path)?;
        let named = |error: &dyn std::fmt::Display| {
            Error::Settings(format!("`{}`: {error}", path.display()))
        };
        let mut focus: Self = toml::from_str(&text).map_err(|error| named(&error))?;
        if !focus.is_on() {
            return Err(named(
                &"no scorer; set `scorer` to keywords, examples, linear or command",
            ));
        }
        let base = std::path::absolute(path).context("reading", path)?;
        focus.settle(base.parent().unwrap_or(Path::new("/")));
        Ok(focus)
    }

    /// Makes all paths absolute, so that the crawl can be resumed from any directory.
    pub fn settle(&mut self, base: &Path) {
        let paths = self.liked.iter_mut().chain(&mut self.disliked);
        for path in paths.chain([&mut self.model]) {
            if !path.as_os_str().is_empty() {
                *path = base.join(&*path);
            }
        }
    }

    /// Returns a text that differs between topics.
    pub(crate) fn topic(&self) -> String {
        let topic = Self {
            timeout: 0.0,
            patience: 0.0,
            hard: false,
            explore: 0.0,
            ..self.clone()
        };
        serde_json::to_string(&topic).unwrap_or_default()
    }

    /// Checks all settings that can be checked without reading files.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let is_time = |value: f64| value > 0.0 && value <= 3600.0;
        let refused = |text: &str| Err(Error::Settings(text.to_owned()));
        if !(0.0..=1.0).contains(&self.explore) {
            return refused("focus.explore must be between 0 and 1");
        }
        if !is_time(self.timeout) || !is_time(self.patience) {
            return refused("focus.timeout and focus.patience must be above 0 and at most 3600");
        }
        match self.scorer {
            ScorerKind::Keywords if self.keywords.is_empty() => {
                refused("focus.keywords is empty; list the words of the topic")
            }
            ScorerKind::Examples if self.liked.is_empty() || self.disliked.is_empty() => refused(
                "focus.liked and focus.disliked must each list at least one directory or file",
            ),
            ScorerKind::Linear if self.model.as_os_str().is_empty() => {
                refused("focus.model is empty; set it to a model file")
            }
            ScorerKind::Command if self.command.is_empty() => {
                refused("focus.command is empty; set it to a program and its arguments")
            }
            _ => Ok(()),
        }
    }
}
