//! Settings of a search for passages.

use std::num::NonZeroU64;

use arose::passage::{self, Removal, Scope, Unit};
use arose::rule::Criterion;
use serde_json::{Value, json};

use crate::Error;
use crate::config::OnLoss;

/// How to find repeated passages, and whether to remove them.
#[derive(Debug, Clone)]
pub struct PassagesConfig {
    /// What is compared.
    pub text: TextElements,
    /// Minimum length of a passage, in tokens or units.
    pub min: usize,
    /// Minimum number of places, or of documents with [`Scope::Across`].
    pub times: NonZeroU64,
    /// Which places count.
    pub scope: Scope,
    /// Places listed for each passage; the others are counted.
    pub list: u64,
    /// What to remove from the kept documents. Without it, no kept documents are written.
    pub remove: Option<Remove>,
    /// Memory limit in bytes; does not affect results.
    pub memory: u64,
    /// What to do if part of the input cannot be read.
    pub on_loss: OnLoss,
    /// How documents are read. Its `threads` apply to the whole run.
    pub corpus: arose_corpus::Config,
}

/// The elements of which a text is a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextElements {
    /// Words, without case and symbols, as `arose dedup` compares them.
    Words,
    /// Words and symbols; case counts.
    Symbols,
    /// Lines, paragraphs or sentences.
    Units {
        /// The kind of unit.
        unit: Unit,
        /// Units with fewer words are never repeated.
        min_words: u32,
        /// How digits are compared.
        digits: Digits,
    },
}

/// How digits are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digits {
    /// Unchanged.
    Keep,
    /// All as 0.
    Zero,
}

/// What to remove, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remove {
    /// The tokens to remove.
    pub removal: Removal,
    /// Remove only complete units inside a removed span.
    pub cut: Option<Unit>,
    /// Text to insert at each cut.
    pub seam: String,
    /// Documents with fewer tokens left after cutting are dropped.
    pub min_left: u32,
}

impl Default for PassagesConfig {
    /// Passages of 50 words in any documents. Nothing is removed.
    fn default() -> Self {
        Self {
            text: TextElements::Words,
            min: passage::DEFAULT_TOKENS,
            times: NonZeroU64::new(2).expect("two is not zero"),
            scope: Scope::Any,
            list: 10_000,
            remove: None,
            memory: 1 << 30,
            on_loss: OnLoss::Report,
            corpus: arose_corpus::Config::default(),
        }
    }
}

impl Default for Remove {
    /// Removes later occurrences and drops documents of which nothing is left.
    fn default() -> Self {
        Self {
            removal: Removal::Later,
            cut: None,
            seam: String::new(),
            min_left: 1,
        }
    }
}

impl PassagesConfig {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// If the length of a passage is not in range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let name = match self.text {
            TextElements::Units { .. } => "--span",
            _ => "--min",
        };
        passage::check_length(name, self.min)?;
        if self.times.get() < 2 {
            return Err(Error::Times);
        }
        Ok(())
    }

    /// Returns the settings that affect the result, by name.
    pub(crate) fn settings(&self) -> Value {
        let shared = self.shared().settings();
        let mut settings = json!({
            "command": "passages",
            "tokens": match self.text {
                TextElements::Symbols => "all",
                _ => "words",
            },
            "unit": self.unit_name(),
            "min": self.min,
            "times": self.times,
            "scope": match self.scope {
                Scope::Any => "any",
                Scope::Across => "across",
                Scope::Within => "within",
            },
            "list": self.list,
            "remove": self.remove.as_ref().map_or("none", |remove| removal_name(remove.removal)),
        });
        if let TextElements::Units {
            min_words, digits, ..
        } = self.text
        {
            settings["min_unit"] = json!(min_words);
            settings["digits"] = json!(match digits {
                Digits::Keep => "keep",
                Digits::Zero => "zero",
            });
        }
        if let Some(remove) = &self.remove {
            settings["cut"] = json!(remove.cut.map_or("token", unit_name));
            settings["seam"] = json!(remove.seam);
            settings["min_left"] = json!(remove.min_left);
        }
        for name in [
            "mode", "statuses", "fields", "limits", "include", "exclude", "all_text",
        ] {
            if let Some(value) = shared.get(name) {
                settings[name] = value.clone();
            }
        }
        settings
    }

    /// Returns the name of the compared elements.
    pub(crate) fn unit_name(&self) -> &'static str {
        match self.text {
            TextElements::Units { unit, .. } => unit_name(unit),
            _ => "token",
        }
    }

    /// Returns the settings for reading in the form that the shared parts of the job take.
    pub(crate) fn shared(&self) -> crate::Config {
        crate::Config {
            memory: self.memory,
            on_loss: self.on_loss,
            corpus: self.corpus.clone(),
            ..crate::Config::of(Criterion::jaccard())
        }
    }

    /// Returns the bytes of one of `share` equal parts of the memory.
    pub(crate) fn part(&self, share: u64) -> u64 {
        self.memory / share
    }

    /// Returns the removal that is done, or that would be done.
    pub(crate) fn removal(&self) -> Remove {
        self.remove.clone().unwrap_or_default()
    }
}

pub(super) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Line => "line",
        Unit::Paragraph => "paragraph",
        Unit::Sentence => "sentence",
    }
}

pub(crate) fn removal_name(removal: Removal) -> &'static str {
    match removal {
        Removal::Later => "later",
        Removal::WholeFirst => "whole-first",
        Removal::All => "all",
    }
}
