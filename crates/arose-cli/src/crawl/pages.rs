//! `arose crawl pages`, `plan` and `refresh`: known pages, the benefit of visits, and visits on
//! demand.

use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use arose_crawl::{PageInfo, Refresh};
use serde_json::{Value, json};

use crate::output::write_json;
use crate::read::Outcome;

/// The current time, in seconds since 1970.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u32::try_from(since.unwrap_or_default().as_secs()).unwrap_or(u32::MAX)
}

/// Lists the pages of a crawl.
pub(super) fn list(dir: &Path, json: bool) -> anyhow::Result<Outcome> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut n_pages = 0;
    let mut written = Ok(());
    arose_crawl::list_pages(dir, now(), |page| {
        n_pages += 1;
        if written.is_ok() {
            written = match json {
                true => write_json(&mut out, &as_json(&page)),
                false => write(&mut out, &page),
            };
        }
        Ok(())
    })?;
    written
        .and_then(|()| out.flush())
        .context("cannot write the list")?;
    Ok(match n_pages {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

fn write(out: &mut impl Write, page: &PageInfo) -> io::Result<()> {
    let url = page.url.as_deref().unwrap_or("(not in the archive)");
    writeln!(
        out,
        "{} {:<9} versions {:<4} changes per day {:<8.4} fresh {:.2}  {url}",
        page.status, page.state, page.n_versions, page.rate, page.fresh
    )
}

fn time(seconds: u32) -> Value {
    match seconds {
        0 => Value::Null,
        seconds => arose_corpus::time::format(seconds.into()).into(),
    }
}

fn as_json(page: &PageInfo) -> Value {
    json!({
        "url": page.url,
        "state": page.state,
        "status": page.status,
        "first": time(page.first),
        "last": time(page.last),
        "due": time(page.due),
        "versions": page.n_versions,
        "changes": page.history.n_changes,
        "days_unchanged": page.history.unchanged,
        "days_changed": page.history.changed,
        "importance": page.importance,
        "changes_per_day": page.rate,
        "fresh": page.fresh,
        "etag": page.etag,
        "last_modified": page.last_modified,
    })
}

/// Prints how many pages a budget of visits would keep up to date.
pub(super) fn plan(dir: &Path, per_second: f64, json: bool) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        per_second.is_finite() && per_second > 0.0,
        "`--per-second` is {per_second}, expected a number above 0"
    );
    let plan = arose_crawl::plan(dir, now(), per_second)?;
    let mut out = io::stdout().lock();
    let written = match json {
        true => write_json(
            &mut out,
            &json!({
                "pages": plan.n_pages,
                "fresh_now": plan.fresh_now,
                "mean_interval_days": plan.every,
                "fresh": plan.fresh,
                "fresh_in_turn": plan.fresh_in_turn,
            }),
        ),
        false => writeln!(
            out,
            "pages: {}, up to date now: {:.1}% (estimated)\n\
             {per_second} visits per second: every page once in {:.1} days on average\n\
             up to date: {:.1}%; if all pages were visited in turn: {:.1}%",
            plan.n_pages,
            100.0 * plan.fresh_now,
            plan.every,
            100.0 * plan.fresh,
            100.0 * plan.fresh_in_turn
        ),
    };
    written.context("cannot write the plan")?;
    Ok(Outcome::Found)
}

/// Requests visits of pages now.
pub(super) fn refresh(dir: &Path, urls: &[String], json: bool) -> anyhow::Result<Outcome> {
    let answers = arose_crawl::refresh(dir, urls)?;
    anyhow::ensure!(
        !answers.is_empty(),
        "no page fetched begins with any of these URLs"
    );
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut n_accepted = 0;
    for (url, refresh) in &answers {
        n_accepted += usize::from(matches!(refresh, Refresh::In(_) | Refresh::Next));
        let written = match json {
            true => write_json(&mut out, &answer_json(url, refresh)),
            false => writeln!(out, "{url}: {}", said(refresh)),
        };
        written.context("cannot write the result")?;
    }
    out.flush().context("cannot write the result")?;
    Ok(match n_accepted {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

fn said(refresh: &Refresh) -> String {
    match refresh {
        Refresh::In(seconds) => format!("visited in {seconds:.1} s"),
        Refresh::Next => "visited first when the crawl is resumed".to_owned(),
        Refresh::Unknown => "never fetched; pass it as a seed".to_owned(),
        Refresh::Invalid => "not a URL".to_owned(),
    }
}

fn answer_json(url: &str, refresh: &Refresh) -> Value {
    let (state, seconds) = match refresh {
        Refresh::In(seconds) => ("queued", Some(*seconds)),
        Refresh::Next => ("next-run", None),
        Refresh::Unknown => ("unknown", None),
        Refresh::Invalid => ("invalid", None),
    };
    json!({"url": url, "state": state, "seconds": seconds})
}
