//! `arose crawl status`: the state of a crawl, its counters, and the next URLs.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use arose_crawl::Status;
use serde_json::{Value, json};

use super::{counters_json, priority, rules, topic, write_counters};
use crate::output::{row, write_json};
use crate::read::Outcome;

/// The state and counters of a crawl, as `arose crawl status --json` prints them.
///
/// # Errors
///
/// If there is no crawl in the directory, or it is damaged.
pub fn crawl_status(dir: &Path) -> anyhow::Result<Value> {
    Ok(status_json(&arose_crawl::status(dir)?))
}

fn status_json(status: &Status) -> Value {
    json!({
        "state": state(status),
        "still_queued": status.n_queued,
        "lost_for_now": status.n_lost,
        "hosts": status.n_hosts,
        "archive_files": status.n_archive_files,
        "archive_bytes": status.n_archive_bytes,
        "waiting": status.waiting.iter().map(priority::url_json).collect::<Vec<_>>(),
        "sites": status.sites.iter().map(priority::site_json).collect::<Vec<_>>(),
        "poor_sites": status.poor_sites.iter().map(priority::quality_json).collect::<Vec<_>>(),
        "pages_for_trust": status.pages_for_trust,
        "topic": status.topic.as_ref().map(topic::topic_json),
        "deferred_by_rules": status.n_deferred,
        "active_rules": status.n_active_rules,
        "rules": status.url_rules.iter().map(rules::rule_json).collect::<Vec<_>>(),
        "counters": counters_json(&status.counters),
    })
}

fn state(status: &Status) -> &'static str {
    match (status.is_running, status.is_closed) {
        (true, _) => "running",
        (false, true) => "stopped in good order",
        (false, false) => "interrupted",
    }
}

/// Prints the state and counters of a crawl.
pub(super) fn print(dir: &Path, json: bool) -> anyhow::Result<Outcome> {
    let status = arose_crawl::status(dir)?;
    let mut out = io::stdout().lock();
    let state = state(&status);
    let written = match json {
        true => write_json(&mut out, &status_json(&status)),
        false => write_counters(&mut out, &status.counters).and_then(|()| {
            row(&mut out, "still queued", status.n_queued, "")?;
            row(&mut out, "lost for now", status.n_lost, "")?;
            row(&mut out, "hosts", status.n_hosts, "")?;
            row(&mut out, "archive files", status.n_archive_files, "")?;
            row(&mut out, "archive bytes", status.n_archive_bytes, "")?;
            write_rules(&mut out, &status)?;
            priority::write_lists(&mut out, &status)?;
            if let Some(topic) = &status.topic {
                topic::write(&mut out, topic)?;
            }
            writeln!(out, "{state}")
        }),
    };
    written.context("cannot write the status")?;
    Ok(Outcome::Found)
}

/// The most important URL rules, if there are any.
fn write_rules(out: &mut impl Write, status: &Status) -> io::Result<()> {
    if status.url_rules.is_empty() {
        return Ok(());
    }
    row(out, "deferred by rules", status.n_deferred, "")?;
    row(out, "active rules", status.n_active_rules, "")?;
    writeln!(out, "URL rules:")?;
    for rule in &status.url_rules {
        write!(out, "  ")?;
        rules::write_rule(out, rule)?;
    }
    Ok(())
}
