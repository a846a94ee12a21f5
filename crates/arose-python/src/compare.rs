//! Comparison of two texts by every score.

use std::num::NonZeroUsize;

use arose::compare::{Profile, Profiler};
use arose::rule::{Policy, Rule, ShortPolicy, SiteRelation};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::error;
use crate::options::{self, PolicyName};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    w: Option<NonZeroUsize>,
    policy: PolicyName,
    threshold: Option<f64>,
    site: Option<Site>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Site {
    Same,
    Different,
}

/// The comparison of two texts. Scores that cannot be computed are None.
#[pyclass(frozen, get_all, module = "arose")]
pub(crate) struct Comparison {
    /// Tokens of each text.
    n_tokens: (usize, usize),
    /// Distinct shingles of each text.
    n_shingles: (usize, usize),
    /// Distinct shingles in both.
    n_common: usize,
    /// The exact Jaccard similarity of the shingle sets.
    jaccard: Option<f64>,
    /// The exact share of each shingle set that the other also contains.
    containment: (Option<f64>, Option<f64>),
    /// The Jaccard similarity estimated from 84 MinHash values.
    jaccard_estimate: Option<f64>,
    /// Matching super-shingles, of 6.
    b_sim: u32,
    /// Matching simhash bits, of 384.
    c_sim: Option<u32>,
    /// The cosine of the token counts implied by these bits.
    cosine_estimate: Option<f64>,
    /// Whether the texts are the same after normalization.
    same_content: bool,
    /// Whether either text is too short for near duplicates.
    short: bool,
    /// The rule that makes the texts duplicates.
    rule: Option<&'static str>,
}

#[pymethods]
impl Comparison {
    /// Whether the texts are duplicates under the policy.
    #[getter]
    fn is_duplicate(&self) -> bool {
        self.rule.is_some()
    }

    fn __repr__(&self) -> String {
        let number = |value: Option<f64>| value.map_or("None".to_owned(), |v| format!("{v:.4}"));
        let rule = self
            .rule
            .map_or("None".to_owned(), |rule| format!("'{rule}'"));
        format!(
            "Comparison(jaccard={}, b_sim={}, c_sim={}, rule={rule})",
            number(self.jaccard),
            self.b_sim,
            self.c_sim
                .map_or("None".to_owned(), |bits| bits.to_string()),
        )
    }
}

#[pyfunction]
pub(crate) fn compare(py: Python<'_>, a: &str, b: &str, options: &str) -> PyResult<Comparison> {
    let options: Options = options::parse(options)?;
    if options.policy == PolicyName::Url {
        return Err(error::SettingError::new_err(
            "policy='url' compares URLs, not texts; choose another policy",
        ));
    }
    let by_site = options::is_by_site(options.policy);
    options::check_used(options.policy, "site", options.site.is_none(), by_site)?;
    let criterion = options::criterion(options.policy, options.threshold)?;
    let w = options.w.unwrap_or(criterion.default_w());
    let policy = Policy {
        criterion,
        short: ShortPolicy::ExactOnly,
    };
    let site = match options.site {
        Some(Site::Same) => SiteRelation::Same,
        Some(Site::Different) => SiteRelation::Different,
        None => SiteRelation::Unknown,
    };
    let compared = || {
        let profiler = Profiler::new(w);
        let [a, b] = [a, b].map(|text| profiler.profile(text));
        Ok(comparison(&profiler, &a, &b, &policy, site))
    };
    py.detach(|| error::guarded(compared))
}

fn comparison(
    profiler: &Profiler,
    a: &Profile,
    b: &Profile,
    policy: &Policy,
    site: SiteRelation,
) -> Comparison {
    let found = profiler.compare(a, b);
    Comparison {
        n_tokens: (a.n_tokens, b.n_tokens),
        n_shingles: (a.shingles.len(), b.shingles.len()),
        n_common: found.n_common,
        jaccard: found.jaccard,
        containment: found.containment.into(),
        jaccard_estimate: found.jaccard_estimate,
        b_sim: found.b_sim,
        c_sim: found.c_sim,
        cosine_estimate: found.cosine_estimate,
        same_content: found.same_content,
        short: found.either_short,
        rule: found.rule(policy, site).map(Rule::as_str),
    }
}
