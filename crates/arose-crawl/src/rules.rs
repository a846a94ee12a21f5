//! URL rules as a file, `rules.jsonl`: one JSON object per line.
//!
//! | field | meaning |
//! |---|---|
//! | `scope` | site, or site and path with `*` for variable segments |
//! | `rule` | what is removed, e.g. `parameter sid` ([`arose::dust::PartRule`]) |
//! | `state` | `testing`, `active`, `rejected` or `suspended` |
//! | `same`, `different` | pairs of URLs with the same and with different contents |
//! | `contents` | different contents among the equal pairs, up to the number required |
//! | `probes` | requests spent on it |
//! | `deferred`, `audited` | URLs not fetched because of it, and those fetched all the same |
//! | `removable` | whether the URL without the part is known to work |
//!
//! Only `scope`, `rule` and `state` are required, so that rules can be written by hand.

mod learn;

pub use learn::{Learned, learn};

use arose::dust::{Errand, PartRule, Saved, Standing, State};
use serde::{Deserialize, Serialize};

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    scope: String,
    rule: String,
    state: String,
    #[serde(default)]
    same: u32,
    #[serde(default)]
    different: u32,
    #[serde(default)]
    contents: u32,
    #[serde(default)]
    probes: u32,
    #[serde(default)]
    deferred: u32,
    #[serde(default)]
    audited: u32,
    #[serde(default)]
    removable: bool,
    /// Fields that only the journal has: the state of the test, contents, values and failed probes.
    #[serde(default, skip_serializing_if = "is_default")]
    sum: f64,
    #[serde(default, skip_serializing_if = "is_default")]
    digests: Vec<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    values: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    new_values: u32,
    #[serde(default, skip_serializing_if = "is_default")]
    failed: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Writes a rule as a line, without its line end.
#[must_use]
pub fn to_line(standing: &Standing) -> String {
    serde_json::to_string(&Line::of(standing)).unwrap_or_default()
}

/// Writes all data of a rule as a line, without its line end.
pub(crate) fn to_saved(saved: &Saved) -> String {
    let line = Line {
        sum: saved.sum,
        digests: saved.contents.clone(),
        values: saved.n_values,
        new_values: saved.n_new,
        failed: saved.n_failed,
        ..Line::of(&saved.standing)
    };
    serde_json::to_string(&line).unwrap_or_default()
}

/// Parses a line of the journal.
pub(crate) fn parse_saved(line: &str) -> Result<Saved, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    Ok(Saved {
        sum: line.sum,
        contents: line.digests.clone(),
        n_values: line.values,
        n_new: line.new_values,
        n_failed: line.failed,
        standing: line.standing()?,
    })
}

/// A line of the journal about a request for learning that is under way.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrandLine {
    errand: String,
    #[serde(default, skip_serializing_if = "is_default")]
    scope: String,
    #[serde(default, skip_serializing_if = "is_default")]
    rule: String,
    #[serde(default, skip_serializing_if = "is_default")]
    content: Option<u64>,
}

/// Writes a request that is under way as a line, without its line end.
pub(crate) fn to_errand(errand: &Errand) -> String {
    let line = |url: &str| ErrandLine {
        errand: url.to_owned(),
        scope: String::new(),
        rule: String::new(),
        content: None,
    };
    let line = match errand {
        Errand::Probe { url, scope, rule } => ErrandLine {
            scope: scope.clone(),
            rule: rule.to_string(),
            ..line(url)
        },
        Errand::Audit { url } => line(url),
        Errand::Compare { url, content } => ErrandLine {
            content: Some(*content),
            ..line(url)
        },
    };
    serde_json::to_string(&line).unwrap_or_default()
}

/// Parses such a line; none if it is about something else.
pub(crate) fn parse_errand(line: &str) -> Option<Errand> {
    let line: ErrandLine = serde_json::from_str(line).ok()?;
    let url = line.errand;
    Some(match (line.content, line.rule.as_str()) {
        (Some(content), _) => Errand::Compare { url, content },
        (None, "") => Errand::Audit { url },
        (None, rule) => Errand::Probe {
            url,
            scope: line.scope,
            rule: rule.parse().ok()?,
        },
    })
}

/// Parses the rules of a file, and counts the lines that are not rules; empty lines do not count.
#[must_use]
pub fn parse_all(text: &str) -> (Vec<Standing>, u64) {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let mut n_bad = 0;
    let rules = lines.filter_map(|line| match parse_line(line) {
        Ok(rule) => Some(rule),
        Err(_) => {
            n_bad += 1;
            None
        }
    });
    let rules = rules.collect();
    (rules, n_bad)
}

impl Line {
    fn of(standing: &Standing) -> Self {
        Self {
            scope: standing.scope.clone(),
            rule: standing.rule.to_string(),
            state: standing.state.as_str().to_owned(),
            same: standing.n_same,
            different: standing.n_different,
            contents: standing.n_contents,
            probes: standing.n_probes,
            deferred: standing.n_deferred,
            audited: standing.n_audited,
            removable: standing.is_removable,
            sum: 0.0,
            digests: Vec::new(),
            values: 0,
            new_values: 0,
            failed: 0,
        }
    }

    fn standing(self) -> Result<Standing, String> {
        let rule: PartRule = self.rule.parse().map_err(|error| format!("{error}"))?;
        let Some(state) = State::named(&self.state) else {
            let states = "testing, active, rejected or suspended";
            return Err(format!("`state` is `{}`, expected {states}", self.state));
        };
        if self.scope.is_empty() || self.scope.starts_with('/') || self.scope.contains("://") {
            return Err(format!(
                "`scope` is `{}`, expected a host, or a host and a path",
                self.scope
            ));
        }
        Ok(Standing {
            scope: self.scope,
            rule,
            state,
            n_same: self.same,
            n_different: self.different,
            n_contents: self.contents,
            n_probes: self.probes,
            n_deferred: self.deferred,
            n_audited: self.audited,
            is_removable: self.removable,
        })
    }
}

/// Parses a line.
///
/// # Errors
///
/// A description of the mistake in the line.
pub fn parse_line(line: &str) -> Result<Standing, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    line.standing()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_and_read_back() {
        let line = r#"{"scope":"a.b/item/*","rule":"parameter sid","state":"active","same":21,"different":0,"contents":5,"probes":3,"deferred":7,"audited":1,"removable":true}"#;
        assert_eq!(to_line(&parse_line(line).unwrap()), line);
        let short = r#"{"scope":"a.b","rule":"https","state":"suspended"}"#;
        assert_eq!(parse_line(short).unwrap().state, State::Suspended);
    }

    #[test]
    fn errands_are_written_and_read_back() {
        let url = "http://a.b/c?d=\"e\"".to_owned();
        for errand in [
            Errand::Probe {
                url: url.clone(),
                scope: "a.b/*".to_owned(),
                rule: PartRule::Parameter("sid".to_owned()),
            },
            Errand::Audit { url: url.clone() },
            Errand::Compare { url, content: 7 },
        ] {
            let line = to_errand(&errand);
            assert!(parse_saved(&line).is_err());
            assert_eq!(parse_errand(&line), Some(errand));
        }
        let rule = Standing::new("a.b", PartRule::Www, State::Active);
        assert_eq!(parse_errand(&to_line(&rule)), None);
    }

    #[test]
    fn wrong_lines_are_refused() {
        for bad in [
            "",
            "{}",
            r#"{"scope":"a.b","rule":"https"}"#,
            r#"{"scope":"a.b","rule":"drop everything","state":"active"}"#,
            r#"{"scope":"a.b","rule":"https","state":"on"}"#,
            r#"{"scope":"http://a.b","rule":"https","state":"active"}"#,
            r#"{"scope":"a.b","rule":"https","state":"active","same":-1}"#,
            r#"{"scope":"a.b","rule":"https","state":"active","extra":1}"#,
        ] {
            assert!(parse_line(bad).is_err(), "{bad}");
        }
    }
}
