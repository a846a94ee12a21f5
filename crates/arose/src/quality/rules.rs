//! The rules of C4, Gopher and FineWeb, by name.

use super::Signals;

/// The publication of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Rae et al., *Scaling language models: methods, analysis and insights from training Gopher*,
    /// 2021: quality and repetition (table A1).
    Gopher,
    /// Raffel et al., *Exploring the limits of transfer learning with a unified text-to-text
    /// transformer*, 2020.
    C4,
    /// Penedo et al., *The FineWeb datasets*, 2024.
    FineWeb,
}

impl Family {
    /// All families.
    pub const ALL: [Self; 3] = [Self::Gopher, Self::C4, Self::FineWeb];

    /// Returns the name of the filter with all its rules.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gopher => "gopher",
            Self::C4 => "c4",
            Self::FineWeb => "fineweb",
        }
    }
}

/// The values that pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// This value and greater ones.
    AtLeast(f64),
    /// This value and smaller ones.
    AtMost(f64),
    /// These two values and all between.
    Between(f64, f64),
}

impl Bound {
    /// Returns whether a value passes.
    #[must_use]
    pub fn admits(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
            Self::Between(least, most) => (least..=most).contains(&value),
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "at least {least}"),
            Self::AtMost(most) => write!(f, "at most {most}"),
            Self::Between(least, most) => write!(f, "{least} to {most}"),
        }
    }
}

/// A rule: a value of the text and the range in which it must lie.
#[derive(Debug, Clone, Copy)]
pub struct QualityRule {
    /// Its name as a filter and as a column.
    pub name: &'static str,
    /// Its publication.
    pub family: Family,
    /// The values that pass.
    pub bound: Bound,
    /// A description of the value.
    pub measures: &'static str,
    value: fn(&Signals) -> f64,
}

impl QualityRule {
    /// Returns the value of a text.
    #[must_use]
    pub fn value(&self, signals: &Signals) -> f64 {
        (self.value)(signals)
    }

    /// Returns whether the text fails the rule.
    #[must_use]
    pub fn rejects(&self, signals: &Signals) -> bool {
        !self.bound.admits(self.value(signals))
    }
}

macro_rules! rule {
    ($family:ident, $name:literal, $bound:expr, $measures:literal, $value:expr) => {
        QualityRule {
            name: $name,
            family: Family::$family,
            bound: $bound,
            measures: $measures,
            value: $value,
        }
    };
}

use Bound::{AtLeast, AtMost, Between};

/// The number of rules; [`Selection`] has a bit for each.
pub const N_RULES: usize = 28;

/// All rules, in the order of columns.
#[rustfmt::skip]
pub static RULES: [QualityRule; N_RULES] = [
    rule!(Gopher, "gopher_words", Between(50.0, 100_000.0), "words", |s| s.repetition.n_words.into()),
    rule!(Gopher, "gopher_mean_word", Between(3.0, 10.0), "characters per word", |s| s.mean_word),
    rule!(Gopher, "gopher_hashes", AtMost(0.1), "hash signs per word", |s| s.hashes),
    rule!(Gopher, "gopher_ellipses", AtMost(0.1), "ellipses per word", |s| s.ellipses),
    rule!(Gopher, "gopher_bullets", AtMost(0.9), "lines that start with a bullet", |s| s.bullet_lines),
    rule!(Gopher, "gopher_ellipsis_lines", AtMost(0.3), "lines that end with an ellipsis", |s| s.ellipsis_lines),
    rule!(Gopher, "gopher_alphabetic", AtLeast(0.8), "words with a letter", |s| s.alphabetic_words),
    rule!(Gopher, "gopher_stop_words", AtLeast(2.0), "frequent English words", |s| s.stop_words.into()),
    rule!(Gopher, "gopher_dup_lines", AtMost(0.3), "repeated lines", |s| s.dup_lines),
    rule!(Gopher, "gopher_dup_line_chars", AtMost(0.2), "characters in repeated lines", |s| s.repetition.dup_line_chars),
    rule!(Gopher, "gopher_dup_paragraphs", AtMost(0.3), "repeated paragraphs", |s| s.dup_paragraphs),
    rule!(Gopher, "gopher_dup_paragraph_chars", AtMost(0.2), "characters in repeated paragraphs", |s| s.dup_paragraph_chars),
    rule!(Gopher, "gopher_top_2_gram", AtMost(0.20), "characters in the most frequent 2-gram", |s| s.top_grams[0]),
    rule!(Gopher, "gopher_top_3_gram", AtMost(0.18), "characters in the most frequent 3-gram", |s| s.top_grams[1]),
    rule!(Gopher, "gopher_top_4_gram", AtMost(0.16), "characters in the most frequent 4-gram", |s| s.top_grams[2]),
    rule!(Gopher, "gopher_dup_5_grams", AtMost(0.15), "characters in repeated 5-grams", |s| s.dup_grams[0]),
    rule!(Gopher, "gopher_dup_6_grams", AtMost(0.14), "characters in repeated 6-grams", |s| s.dup_grams[1]),
    rule!(Gopher, "gopher_dup_7_grams", AtMost(0.13), "characters in repeated 7-grams", |s| s.dup_grams[2]),
    rule!(Gopher, "gopher_dup_8_grams", AtMost(0.12), "characters in repeated 8-grams", |s| s.dup_grams[3]),
    rule!(Gopher, "gopher_dup_9_grams", AtMost(0.11), "characters in repeated 9-grams", |s| s.dup_grams[4]),
    rule!(Gopher, "gopher_dup_10_grams", AtMost(0.10), "characters in repeated 10-grams", |s| s.dup_grams[5]),
    rule!(C4, "c4_sentences", AtLeast(5.0), "sentences in lines of prose", |s| s.sentences.into()),
    rule!(C4, "c4_braces", AtMost(0.0), "opening braces", |s| s.braces.into()),
    rule!(C4, "c4_lorem_ipsum", AtMost(0.0), "occurrences of lorem ipsum", |s| s.lorem_ipsum.into()),
    rule!(FineWeb, "fineweb_punctuation", AtLeast(0.12), "lines that end with punctuation", |s| s.punctuated_lines),
    rule!(FineWeb, "fineweb_short_lines", AtMost(0.67), "lines of at most 30 characters", |s| s.short_lines),
    rule!(FineWeb, "fineweb_dup_chars", AtMost(0.01), "characters in repeated lines", |s| s.dup_chars),
    rule!(FineWeb, "fineweb_newlines", AtMost(0.3), "line ends per word", |s| s.newlines),
];

/// Some of the rules: those of a filter, or those that a text fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Selection(pub u64);

impl Selection {
    /// Returns the rules that a text fails.
    #[must_use]
    pub fn failed(signals: &Signals) -> Self {
        let fails = |(i, rule): (usize, &QualityRule)| u64::from(rule.rejects(signals)) << i;
        Self(RULES.iter().enumerate().map(fails).sum())
    }

    /// Returns the rule with this name, or all rules of the family with this name; none if neither
    /// exists.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let is_meant = |rule: &QualityRule| rule.name == name || rule.family.as_str() == name;
        let bits = RULES.iter().enumerate().filter(|(_, rule)| is_meant(rule));
        let bits = bits.map(|(i, _)| 1 << i).sum();
        (bits != 0).then_some(Self(bits))
    }

    /// Returns the rules in either selection.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the rules in both selections.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether there are no rules.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the rules, in order.
    pub fn rules(self) -> impl Iterator<Item = &'static QualityRule> {
        let rules = RULES.iter().enumerate();
        rules
            .filter(move |(i, _)| self.0 >> i & 1 != 0)
            .map(|(_, rule)| rule)
    }

    /// Returns the names of the rules, separated by commas.
    #[must_use]
    pub fn names(self) -> String {
        let names: Vec<&str> = self.rules().map(|rule| rule.name).collect();
        names.join(",")
    }
}
