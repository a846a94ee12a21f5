//! Hypotheses: the evidence for a rule in its template, and in all templates of its site.

use super::learner::key;
use super::standing::{RuleId, Standing, State};

/// Number of deferred URLs of a rule after which the share of audits halves.
const EARLY: f64 = 12.0;
/// Number of deferred URLs that are all audited if there is no evidence for the rule yet.
const UNTESTED: u32 = 20;
/// Maximum number of audits of a rule of a small site, for parts with few values and for others.
const ENOUGH: [u32; 2] = [30, 12];
/// Number of pages of a site that allow one more audit. Links do not: thousands of them may lead to
/// one page.
const PAGES: u32 = 10;
/// Number of audits that a rule may always have in its template.
const ANYWAY: u32 = 2;
/// Number of equal pairs in all templates of a site that confirm a rule about session IDs: as many
/// as a single template needs.
const POOLED: u32 = 21;

/// The state of a rule in the learner.
#[derive(Debug, Clone)]
pub(super) struct Hypothesis {
    pub(super) standing: Standing,
    /// A hash of scope and rule, the same in every run.
    pub(super) name: u64,
    pub(super) sum: f64,
    /// Whether the sum started half accepted.
    pub(super) has_prior: bool,
    /// Contents of equal pairs, up to the number wanted.
    pub(super) contents: Vec<u64>,
    /// Values met recently, the number of values met, and the number of new ones.
    pub(super) values: Vec<u32>,
    pub(super) n_values: u32,
    pub(super) n_new: u32,
    /// Probes without a page.
    pub(super) n_failed: u32,
    /// URLs with this part whose responses are no pages.
    pub(super) n_blank: u32,
    /// Probes whose pages have not come yet.
    pub(super) n_open: u32,
}

/// What the templates of a site have learned about a rule.
#[derive(Debug, Clone, Default)]
pub(super) struct OfSite {
    /// The rule in each of its templates.
    pub(super) rules: Vec<RuleId>,
    /// Contents of equal pairs, up to the number wanted.
    pub(super) contents: Vec<u64>,
    /// Equal pairs in templates where it is about session IDs, and unequal pairs in any.
    pub(super) n_same: u32,
    pub(super) n_different: u32,
    /// Number of templates in which it is active.
    pub(super) n_active: u32,
    /// Number of templates in which it was found wrong.
    pub(super) n_wrong: u32,
    /// Number of audits in all templates, since the learner was created.
    pub(super) n_audited: u32,
}

impl OfSite {
    /// Returns whether the rule is wrong in no template, and active in one or supported by enough
    /// pairs of all.
    pub(super) fn is_confirmed(&self) -> bool {
        let is_supported = self.n_same >= POOLED && self.n_different == 0;
        self.n_wrong == 0 && (self.n_active > 0 || is_supported)
    }

    /// Counts pairs of a template.
    pub(super) fn count(&mut self, rule: &Hypothesis, n_same: u32, n_different: u32) {
        let n_same = if rule.is_session() { n_same } else { 0 };
        self.n_same = self.n_same.saturating_add(n_same);
        self.n_different = self.n_different.saturating_add(n_different);
    }

    /// Counts a template whose state has changed.
    pub(super) fn note(&mut self, before: State, now: State) {
        let is_wrong = |state| matches!(state, State::Rejected | State::Suspended);
        let change = |n: &mut u32, was: bool, is: bool| {
            *n = n.saturating_sub(was.into()) + u32::from(is);
        };
        let is_active = |state| state == State::Active;
        change(&mut self.n_active, is_active(before), is_active(now));
        change(&mut self.n_wrong, is_wrong(before), is_wrong(now));
    }
}

impl Hypothesis {
    /// Returns a hash of the rule in all templates of its site.
    pub(super) fn of_site(&self) -> u64 {
        let Standing { scope, rule, .. } = &self.standing;
        let site = scope.split('/').next().unwrap_or_default();
        key(&format!("{site} {rule}"))
    }

    /// Returns the current share of its deferred URLs that are fetched nevertheless, given the
    /// share in the long run and the number of pages of its site. The first URLs of a rule that a
    /// person switched on without evidence are all fetched.
    pub(super) fn audit_share(&self, general: f64, of_site: &OfSite, n_pages: u32) -> f64 {
        let standing = &self.standing;
        if standing.n_same == 0 && standing.n_deferred <= UNTESTED {
            return 1.0;
        }
        let enough = ENOUGH[usize::from(self.is_session())];
        let is_enough = of_site.n_audited >= enough + n_pages / PAGES;
        if is_enough && standing.n_audited >= ANYWAY && standing.n_same > 0 {
            return 0.0;
        }
        let early = 0.5 * EARLY / (EARLY + f64::from(standing.n_deferred));
        match self.is_session() {
            true => general,
            false => general.max(early),
        }
    }

    /// Returns whether its values nearly all differ, its name is known, or it has no values.
    pub(super) fn is_session(&self) -> bool {
        let rule = &self.standing.rule;
        rule.is_known() || !rule.may_probe() || self.n_new * 10 >= self.n_values * 9
    }
}
