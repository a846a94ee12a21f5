//! Options for the quality of documents, and its fields in the output.

use arose::quality::{Family, RULES, Selection};
use arose_corpus::quality::{Assessment, SIGNALS};
use serde_json::{Map, Value, json};

/// A rule, or all rules of a family, by name.
pub(crate) fn filter(name: &str) -> Result<Selection, String> {
    Selection::named(name.trim()).ok_or_else(|| {
        let families = Family::ALL.map(Family::as_str).join(", ");
        let rules: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
        format!("expected one of {families}, {}", rules.join(", "))
    })
}

/// The rules to filter by; none if quality is not measured.
pub(crate) fn chosen(is_asked: bool, filter: &[Selection]) -> Option<Selection> {
    let all = filter
        .iter()
        .fold(Selection::default(), |all, one| all.union(*one));
    (is_asked || !filter.is_empty()).then_some(all)
}

/// The quality of a document, as fields of its JSON object.
pub(crate) fn fields(found: &Assessment) -> Map<String, Value> {
    let signals = SIGNALS.into_iter().zip(found.values().map(rounded));
    let rules = RULES.iter();
    let rules = rules.map(|rule| (rule.name, rounded(Some(rule.value(&found.signals)))));
    let mut fields: Map<String, Value> = signals
        .chain(rules)
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    let failed = Selection::failed(&found.signals);
    let failed: Vec<&str> = failed.rules().map(|rule| rule.name).collect();
    fields.insert("failed_rules".to_owned(), json!(failed));
    fields
}

/// A value rounded to six decimal places.
fn rounded(value: Option<f64>) -> Value {
    json!(value.map(|value| (value * 1e6).round() / 1e6))
}
