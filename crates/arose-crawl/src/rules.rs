//! URL rules as a file, `rules.jsonl`: one JSON object per line.
//!
//! | field | meaning |
//! |---|---|
//! | `scope` | site, or site and path with `*` for variable segments |
//! | `rule` | what is removed, e.g. `parameter sid` ([`arose::dust::Rule`]) |
//! | `state` | `testing`, `active`, `rejected` or `suspended` |
//! | `same`, `different` | pairs of URLs with the same and with different contents |
//! | `contents` | different contents among the equal pairs, up to the number required |
//! | `probes` | requests spent on it |
//! | `deferred`, `audited` | URLs not fetched because of it, and those fetched all the same |
//! | `removable` | whether the URL without the part is known to work |
//!
//! Only `scope`, `rule` and `state` are required, so that rules can be written by hand.

use arose::dust::{Rule, Standing, State};
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
}

/// Writes a rule as a line, without its end.
#[must_use]
pub fn to_line(standing: &Standing) -> String {
    let line = Line {
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
    };
    serde_json::to_string(&line).unwrap_or_default()
}

/// Reads a line.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse_line(line: &str) -> Result<Standing, String> {
    let line: Line = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let rule: Rule = line.rule.parse().map_err(|error| format!("{error}"))?;
    let Some(state) = State::named(&line.state) else {
        let states = "testing, active, rejected or suspended";
        return Err(format!("`state` is `{}`, expected {states}", line.state));
    };
    if line.scope.is_empty() || line.scope.starts_with('/') || line.scope.contains("://") {
        return Err(format!(
            "`scope` is `{}`, expected a host, or a host and a path",
            line.scope
        ));
    }
    Ok(Standing {
        scope: line.scope,
        rule,
        state,
        n_same: line.same,
        n_different: line.different,
        n_contents: line.contents,
        n_probes: line.probes,
        n_deferred: line.deferred,
        n_audited: line.audited,
        is_removable: line.removable,
    })
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
