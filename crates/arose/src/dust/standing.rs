//! The public view of rules: settings, states, evidence, events.

use super::rule::PartRule;
use super::sequential::Sequential;

/// Settings for learning rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The test for rules whose values are nearly all different, such as session IDs, and for rules
    /// without values.
    pub test: Sequential,
    /// The test for rules with few values, such as sort orders, languages and pages of lists.
    pub strict: Sequential,
    /// Minimum number of different contents that the pairs of a rule must show.
    pub min_contents: usize,
    /// Whether rules with known names (`PHPSESSID`, `utm_source`) start half accepted.
    pub has_prior: bool,
    /// Maximum number of requests for one rule; 0 if nothing can be fetched.
    pub max_probes: u32,
    /// The share of deferred URLs that is fetched nevertheless in the long run.
    pub audit_share: f64,
    /// Maximum number of templates and hypotheses; further ones are ignored.
    pub max_hypotheses: usize,
    /// Number of contents of URLs that are remembered for comparison.
    pub max_contents: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            test: Sequential::default(),
            strict: Sequential::new(0.92, 0.995),
            min_contents: 5,
            has_prior: true,
            max_probes: 200,
            audit_share: 0.02,
            max_hypotheses: 200_000,
            max_contents: 500_000,
        }
    }
}

/// The number of a rule in its learner.
pub type RuleId = u32;

/// The state of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// More evidence is needed.
    Testing,
    /// It defers URLs.
    Active,
    /// The part matters.
    Rejected,
    /// It was active and an audit showed that it is wrong, or a person switched it off.
    Suspended,
}

impl State {
    /// Returns the name, as in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Testing => "testing",
            Self::Active => "active",
            Self::Rejected => "rejected",
            Self::Suspended => "suspended",
        }
    }

    /// Returns the state with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Testing, Self::Active, Self::Rejected, Self::Suspended]
            .into_iter()
            .find(|state| state.as_str() == name)
    }
}

/// A rule of a template, with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Its scope: a site, or a site and a path with `*` for variable segments.
    pub scope: String,
    /// The rule itself.
    pub rule: PartRule,
    /// Its state.
    pub state: State,
    /// Pairs with the same content.
    pub n_same: u32,
    /// Pairs with different contents.
    pub n_different: u32,
    /// Different contents among the equal pairs, as far as they were counted.
    pub n_contents: u32,
    /// Requests spent on it.
    pub n_probes: u32,
    /// URLs deferred because of it.
    pub n_deferred: u32,
    /// Deferred URLs that were fetched nevertheless.
    pub n_audited: u32,
    /// Whether the URL without the part is known to work.
    pub is_removable: bool,
}

/// A change of a rule that affects the crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It defers URLs from now on.
    Activated(RuleId),
    /// It was wrong: URLs deferred because of it must be fetched.
    Suspended(RuleId),
}

/// How to treat a URL that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Treatment {
    /// Fetch it.
    Fetch,
    /// Treat it as its canonical form.
    Same(Canonical),
}

/// The form of a URL that represents all URLs that differ only in parts that do not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    /// The form.
    pub url: String,
    /// Whether it can be fetched. If not, the first URL with this form is fetched.
    pub is_fetchable: bool,
    /// Whether a page of this form was already fetched, as far as is remembered.
    pub is_known: bool,
    /// The rules that were applied.
    pub rules: Vec<RuleId>,
}
