//! Rules with everything learned about them, stored from one run to the next.

use super::learner::{Learner, key};
use super::standing::{RuleId, Standing, State};
use crate::mix::mix;

/// The state of a rule in a learner, except for the contents of single URLs.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The rule and its evidence.
    pub standing: Standing,
    /// The sum of the [sequential test](super::Sequential) so far.
    pub sum: f64,
    /// Contents of equal pairs, as far as they were counted.
    pub contents: Vec<u64>,
    /// Number of values met.
    pub n_values: u32,
    /// Number of these that were new.
    pub n_new: u32,
    /// Probes without a page.
    pub n_failed: u32,
}

impl Learner {
    /// Returns the complete state of a rule.
    #[must_use]
    pub fn saved(&self, id: RuleId) -> Option<Saved> {
        let rule = self.rules.get(id as usize)?;
        Some(Saved {
            standing: rule.standing.clone(),
            sum: rule.sum,
            contents: rule.contents.clone(),
            n_values: rule.n_values,
            n_new: rule.n_new,
            n_failed: rule.n_failed,
        })
    }

    /// Restores the state of a rule from another learner; none if there are too many rules. It
    /// causes no [event](super::Event).
    pub fn restore(&mut self, saved: Saved) -> Option<RuleId> {
        let standing = &saved.standing;
        let id = self.hypothesis(&standing.scope, &standing.rule)?;
        let state = standing.state;
        let rule = &mut self.rules[id as usize];
        let before = rule.standing.state;
        rule.standing = saved.standing;
        rule.standing.state = before;
        rule.sum = if saved.sum.is_finite() {
            saved.sum
        } else {
            0.0
        };
        rule.contents = saved.contents;
        (rule.n_values, rule.n_new) = (saved.n_values, saved.n_new);
        rule.n_failed = saved.n_failed;
        let (of_site, contents) = (rule.of_site(), rule.contents.clone());
        let site = self.of_sites.entry(of_site).or_default();
        site.count(rule, rule.standing.n_same, rule.standing.n_different);
        let all = &mut site.contents;
        let new = contents
            .into_iter()
            .filter(|content| !all.contains(content));
        let new: Vec<u64> = new.collect();
        all.extend(new);
        if before != state {
            self.change(id, state);
            self.take_events();
        }
        self.take_changed();
        Some(id)
    }

    /// Returns the ID of a content. It is equal for pages with the same digest, and for a page and
    /// the `original` that it duplicates. Contents with the same digest of `words` count as one if
    /// different contents are required, since an error page may have other links every time.
    pub fn content_id(&mut self, text: u64, words: u64, original: Option<&str>) -> u64 {
        let by_text = mix(text ^ 0x7465_7874);
        let known = self.contents.get(by_text);
        let of_original = || self.contents.get(key(original?));
        let content = known.or_else(of_original).unwrap_or(text);
        self.contents.insert(by_text, content);
        if known.is_none() && content == text {
            self.contents.insert(words_key(content), words);
        }
        content
    }

    /// Returns the ID of the words of a content.
    pub(super) fn words(&self, content: u64) -> u64 {
        let words = self.contents.get(words_key(content));
        words.unwrap_or(content)
    }

    /// Returns the contents remembered since the last call, to be [recalled](Self::recall) by
    /// another learner: hashes and IDs of contents.
    pub fn take_remembered(&mut self) -> Vec<(u64, u64)> {
        self.contents.take_news()
    }

    /// Adds the contents that another learner remembered.
    pub fn recall(&mut self, remembered: impl IntoIterator<Item = (u64, u64)>) {
        for (key, content) in remembered {
            self.contents.insert(key, content);
        }
        self.contents.take_news();
    }
}

fn words_key(content: u64) -> u64 {
    mix(content ^ 0x0077_6f72_6473)
}

impl Standing {
    /// Creates a rule without evidence, in a given state.
    #[must_use]
    pub fn new(scope: &str, rule: super::PartRule, state: State) -> Self {
        Self {
            scope: scope.to_owned(),
            rule,
            state,
            n_same: 0,
            n_different: 0,
            n_contents: 0,
            n_probes: 0,
            n_deferred: 0,
            n_audited: 0,
            is_removable: false,
        }
    }
}
