//! Settings of URL rules.

use arose::dust::{Config, Sequential};
use serde::{Deserialize, Serialize};

/// How the crawl learns URL rules: which parts of the URLs of a site do not select a page.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Whether rules are learned and defer URLs.
    pub on: bool,
    /// Whether known session IDs and tracking parameters, such as `PHPSESSID` and `utm_source`,
    /// need half as much evidence.
    pub known_names: bool,
    /// Maximum number of requests spent on one rule.
    pub max_probes: u32,
    /// Share of deferred URLs that are fetched all the same.
    pub audits: f64,
    /// Whether all deferred URLs are fetched when nothing else is left.
    pub audit_all: bool,
    /// Share of equal pages that is too low for a rule.
    pub p0: f64,
    /// The same for parameters with few values, such as languages and sort orders.
    pub strict_p0: f64,
    /// Share of equal pages that a rule has.
    pub p1: f64,
    /// Minimum number of different contents in the evidence for a rule.
    pub min_contents: usize,
    /// Maximum number of rules that are learned, about 400 bytes each.
    pub max_rules: usize,
    /// Maximum number of pages whose content is remembered for comparison, about 200 bytes each.
    pub max_contents: usize,
}

impl Default for Rules {
    fn default() -> Self {
        let config = Config::default();
        Self {
            on: true,
            known_names: config.has_prior,
            max_probes: config.max_probes,
            audits: config.audit_share,
            audit_all: false,
            p0: 0.80,
            strict_p0: 0.92,
            p1: 0.995,
            min_contents: config.min_contents,
            max_rules: config.max_hypotheses,
            max_contents: config.max_contents,
        }
    }
}

impl Rules {
    /// Returns the settings of the learner.
    ///
    /// # Errors
    ///
    /// Which setting cannot be used, and why.
    pub fn learning(&self) -> Result<Config, String> {
        for (name, p0) in [("p0", self.p0), ("strict_p0", self.strict_p0)] {
            if !(0.0 < p0 && p0 < self.p1 && self.p1 < 1.0) {
                return Err(format!(
                    "rules.{name} is {p0} and rules.p1 is {}, expected 0 < {name} < p1 < 1",
                    self.p1
                ));
            }
        }
        if !(0.0..=1.0).contains(&self.audits) {
            return Err(format!("rules.audits is {}, expected 0 to 1", self.audits));
        }
        Ok(Config {
            test: Sequential::new(self.p0, self.p1),
            strict: Sequential::new(self.strict_p0, self.p1),
            min_contents: self.min_contents,
            has_prior: self.known_names,
            max_probes: self.max_probes,
            audit_share: self.audits,
            max_hypotheses: self.max_rules,
            max_contents: self.max_contents,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_learner() {
        assert_eq!(Rules::default().learning(), Ok(Config::default()));
    }

    #[test]
    fn shares_that_make_no_test_are_refused() {
        let wrong: [fn(&mut Rules); 5] = [
            |rules| rules.p0 = 0.0,
            |rules| rules.p0 = f64::NAN,
            |rules| rules.strict_p0 = 0.995,
            |rules| rules.p1 = 1.0,
            |rules| rules.audits = 1.5,
        ];
        for change in wrong {
            let mut rules = Rules::default();
            change(&mut rules);
            assert!(rules.learning().is_err(), "{rules:?}");
        }
    }
}
