//! Settings as chosen by users. Omitted settings have defaults that depend on the others, and a
//! setting without effect is an error.

use std::num::NonZeroU64;

use arose::passage::{Removal, Scope, Unit};

use super::against::{self, MatchRemoval, Reference, ReferenceSearch};
use super::config::{Digits, PassagesConfig, Remove, TextElements, unit_name};
use crate::Error;
use crate::config::OnLoss;

/// The choices of a user; see `arose passages --help`.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// Compare these units; default: tokens.
    pub unit: Option<Unit>,
    /// Minimum length of a passage in tokens.
    pub min: Option<usize>,
    /// Minimum length of a passage in units.
    pub span: Option<usize>,
    /// Units with fewer words are unique.
    pub min_unit: Option<u32>,
    /// How digits in units are compared.
    pub digits: Option<Digits>,
    /// How text is split into tokens.
    pub tokens: Option<Tokens>,
    /// Minimum number of occurrences.
    pub times: Option<NonZeroU64>,
    /// Which occurrences count.
    pub scope: Option<Scope>,
    /// Places listed for each passage or item.
    pub list: Option<u64>,
    /// What to remove.
    pub remove: Option<Which>,
    /// Keep the first occurrence of each passage whole.
    pub whole_first: bool,
    /// Cut only whole units.
    pub cut: Option<Unit>,
    /// Text to insert at each cut.
    pub seam: Option<String>,
    /// Documents with fewer tokens left are dropped.
    pub min_left: Option<u32>,
    /// Passages of a reference in more documents are reported separately.
    pub common: Option<NonZeroU64>,
}

/// How text is split into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// Words; case and symbols do not count.
    Words,
    /// Words and symbols with their case.
    All,
}

/// What to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// All occurrences except the first.
    Later,
    /// All occurrences.
    All,
    /// Passages that occur in the reference.
    Spans,
    /// Documents with a passage that occurs in the reference.
    Documents,
}

impl Which {
    fn is_of_reference(self) -> bool {
        matches!(self, Self::Spans | Self::Documents)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Later => "later",
            Self::All => "all",
            Self::Spans => "spans",
            Self::Documents => "documents",
        }
    }
}

impl Choices {
    /// Checks that every choice has an effect, with or without a reference.
    ///
    /// # Errors
    ///
    /// [`Error::Choice`] if a choice has no effect.
    pub fn check(&self, has_reference: bool) -> Result<(), Error> {
        self.check_unit()?;
        self.check_reference(has_reference)?;
        self.check_removal(has_reference)
    }

    fn check_unit(&self) -> Result<(), Error> {
        let is_token = self.unit.is_none();
        let unit = self.unit.map_or("token", unit_name);
        for (option, is_given, is_used) in [
            ("--min", self.min.is_some(), is_token),
            ("--tokens", self.tokens.is_some(), is_token),
            ("--cut", self.cut.is_some(), is_token),
            ("--span", self.span.is_some(), !is_token),
            ("--min-unit", self.min_unit.is_some(), !is_token),
            ("--digits", self.digits.is_some(), !is_token),
        ] {
            refuse(is_given && !is_used, || {
                format!(
                    "{option} has no effect with --unit {unit}; remove it or choose another unit"
                )
            })?;
        }
        Ok(())
    }

    fn check_reference(&self, has_reference: bool) -> Result<(), Error> {
        for (option, is_given) in [
            ("--times", self.times.is_some()),
            ("--scope", self.scope.is_some()),
        ] {
            refuse(is_given && has_reference, || {
                format!("{option} has no effect with --against; remove it")
            })?;
        }
        refuse(self.common.is_some() && !has_reference, || {
            "--common has no effect without --against; remove it or pass a reference".to_owned()
        })
    }

    fn check_removal(&self, has_reference: bool) -> Result<(), Error> {
        let Some(which) = self.remove else {
            let given = [
                ("--whole-first", self.whole_first),
                ("--cut", self.cut.is_some()),
                ("--seam", self.seam.is_some()),
                ("--min-left", self.min_left.is_some()),
            ];
            let given = given.into_iter().find(|(_, is_given)| *is_given);
            return given.map_or(Ok(()), |(option, _)| {
                refuse(true, || format!("{option} has no effect without --remove"))
            });
        };
        refuse(which.is_of_reference() != has_reference, || {
            let (needs, instead) = match which.is_of_reference() {
                true => ("requires", "later or all"),
                false => ("has no effect with", "spans or documents"),
            };
            let name = which.name();
            format!("--remove {name} {needs} --against; choose {instead}")
        })?;
        let has_cut = self.cut.is_some() || self.seam.is_some() || self.min_left.is_some();
        refuse(which == Which::Documents && has_cut, || {
            "--cut, --seam and --min-left have no effect with --remove documents".to_owned()
        })?;
        refuse(self.whole_first && which != Which::Later, || {
            "--whole-first has no effect without --remove later; remove it or pass --remove later"
                .to_owned()
        })
    }

    /// The settings of a run.
    #[must_use]
    pub fn config(
        &self,
        has_reference: bool,
        memory: u64,
        on_loss: OnLoss,
        corpus: arose_corpus::Config,
    ) -> PassagesConfig {
        let default = PassagesConfig::default();
        let (text, min) = self.text(has_reference);
        PassagesConfig {
            text,
            min,
            times: self.times.unwrap_or(default.times),
            scope: self.scope.unwrap_or(default.scope),
            list: self.list.unwrap_or(default.list),
            remove: self.remove.map(|which| self.removal(which)),
            memory,
            on_loss,
            corpus,
        }
    }

    /// What is compared, and the minimum length of a passage.
    fn text(&self, has_reference: bool) -> (TextElements, usize) {
        let Some(unit) = self.unit else {
            let text = match self.tokens {
                None | Some(Tokens::Words) => TextElements::Words,
                Some(Tokens::All) => TextElements::Symbols,
            };
            let min = match has_reference {
                true => against::DEFAULT_TOKENS,
                false => PassagesConfig::default().min,
            };
            return (text, self.min.unwrap_or(min));
        };
        let span = self.span.unwrap_or(match unit {
            Unit::Sentence => 3,
            Unit::Line | Unit::Paragraph => 1,
        });
        let min_words = match (unit, span) {
            (Unit::Line | Unit::Paragraph, 1) => 10,
            _ => 0,
        };
        let text = TextElements::Units {
            unit,
            min_words: self.min_unit.unwrap_or(min_words),
            digits: self.digits.unwrap_or(Digits::Keep),
        };
        (text, span)
    }

    fn removal(&self, which: Which) -> Remove {
        let default = Remove::default();
        Remove {
            removal: match (which, self.whole_first) {
                (Which::Later, false) => Removal::Later,
                (Which::Later, true) => Removal::WholeFirst,
                (Which::All | Which::Spans | Which::Documents, _) => Removal::All,
            },
            cut: self.cut,
            seam: self.seam.clone().unwrap_or_default(),
            min_left: self.min_left.unwrap_or(default.min_left),
        }
    }

    /// Returns the settings of a search for a reference.
    #[must_use]
    pub fn against(&self, reference: Reference) -> ReferenceSearch {
        let default = NonZeroU64::new(against::DEFAULT_COMMON);
        ReferenceSearch {
            reference,
            common: self.common.or(default).unwrap_or(NonZeroU64::MIN),
            found: match self.remove {
                Some(Which::Documents) => MatchRemoval::Drop,
                _ => MatchRemoval::Cut,
            },
        }
    }
}

fn refuse(is_refused: bool, why: impl FnOnce() -> String) -> Result<(), Error> {
    match is_refused {
        true => Err(Error::Choice(why())),
        false => Ok(()),
    }
}
