//! The quality of the documents in the summary of a run.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Number of documents by the quality rules that they fail.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct QualityCounts {
    /// Rules whose failure drops a document.
    pub filter: Vec<String>,
    /// Documents that fail any rule.
    pub fails_any: u64,
    /// Documents that fail a rule of a family.
    pub fails_by_family: BTreeMap<String, u64>,
    /// Documents whose weight is below 0.5.
    pub below_half: u64,
    /// Every rule.
    pub rules: Vec<RuleCount>,
}

/// A rule and the documents that fail it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RuleCount {
    /// Its name.
    pub rule: String,
    /// What it measures.
    pub measures: String,
    /// The values that pass.
    pub passes: String,
    /// Number of documents that fail it.
    pub fails: u64,
    /// The first of these documents.
    pub examples: Vec<Example>,
}

/// A document that fails a rule.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Example {
    /// Its ID.
    pub id: String,
    /// Its value.
    pub value: f64,
    /// Its first words.
    pub text: String,
}
