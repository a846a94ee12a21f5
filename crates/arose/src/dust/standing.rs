//! Rules as others see them: settings, states, evidence, events.

use super::rule::Rule;
use super::sequential::Sequential;

/// How rules are learned.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The test that a rule must pass whose values are nearly all different, as session IDs are,
    /// or that removes no value.
    pub test: Sequential,
    /// The test of a rule with few values, such as sort orders, languages and pages of lists.
    pub strict: Sequential,
    /// Different contents that its pairs must show.
    pub min_contents: usize,
    /// Whether rules with known names (`PHPSESSID`, `utm_source`) start half accepted.
    pub has_prior: bool,
    /// Requests that may be spent on one rule; 0 where nothing can be fetched.
    pub max_probes: u32,
    /// The share of deferred URLs that is fetched all the same in the long run.
    pub audit_share: f64,
    /// Templates and hypotheses that are learned about; further ones are not.
    pub max_hypotheses: usize,
    /// Contents of URLs that are remembered for comparison.
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

/// What a rule has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// More evidence is needed.
    Testing,
    /// It defers URLs.
    Active,
    /// The part matters.
    Rejected,
    /// It was active and an audit found it wrong, or a person switched it off.
    Suspended,
}

impl State {
    /// The name, as in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Testing => "testing",
            Self::Active => "active",
            Self::Rejected => "rejected",
            Self::Suspended => "suspended",
        }
    }

    /// The state with this name.
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
    /// Where it applies: a site, or a site and a path with `*` for variable segments.
    pub scope: String,
    /// What it removes.
    pub rule: Rule,
    /// What it has come to.
    pub state: State,
    /// Pairs with the same content, and with different ones.
    pub n_same: u32,
    /// Pairs with different contents.
    pub n_different: u32,
    /// Different contents among the equal pairs, as far as they were counted.
    pub n_contents: u32,
    /// Requests spent on it.
    pub n_probes: u32,
    /// URLs deferred because of it, and those of them that were fetched all the same.
    pub n_deferred: u32,
    /// Deferred URLs that were fetched all the same.
    pub n_audited: u32,
    /// Whether the URL without the part is known to work.
    pub is_removable: bool,
}

/// A change of a rule that matters to others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// It defers URLs from now on.
    Activated(RuleId),
    /// It was wrong: URLs deferred because of it must be fetched.
    Suspended(RuleId),
}

/// Where a URL that was found belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Among the URLs to fetch.
    Fetch,
    /// With its canonical form.
    Same(Canonical),
}

/// The form of a URL that stands for all that differ in nothing that matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    /// The form.
    pub url: String,
    /// Whether it can be fetched; if not, the first URL with this form is to be.
    pub is_fetchable: bool,
    /// Whether a page of this form was fetched already, as far as is remembered.
    pub is_known: bool,
    /// The rules that were applied.
    pub rules: Vec<RuleId>,
}
