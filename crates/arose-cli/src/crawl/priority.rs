//! The order in which URLs are fetched, with reasons.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use arose_crawl::{SiteQuality, SiteStanding, Standing, Status};
use serde_json::{Value, json};

use crate::output::write_json;
use crate::read::Outcome;

/// Explains the position of a URL in the queue.
pub(super) fn explain(dir: &Path, url: &str, json: bool) -> anyhow::Result<Outcome> {
    let standing = arose_crawl::standing(dir, url)?;
    let mut out = io::stdout().lock();
    let written = match (&standing, json) {
        (Some(standing), true) => {
            let mut value = url_json(standing);
            let quality = standing.quality.as_ref();
            value["quality"] = quality.map_or(Value::Null, quality_json);
            write_json(&mut out, &value)
        }
        (None, true) => write_json(&mut out, &Value::Null),
        (Some(standing), false) => write_reasons(&mut out, standing),
        (None, false) => writeln!(
            out,
            "{url} is not queued: it was fetched, dropped or never met"
        ),
    };
    written.context("cannot write the reasons")?;
    Ok(match standing {
        Some(_) => Outcome::Found,
        None => Outcome::NothingFound,
    })
}

fn write_reasons(out: &mut impl Write, standing: &Standing) -> io::Result<()> {
    let site = &standing.site;
    writeln!(out, "{}", standing.url)?;
    writeln!(
        out,
        "priority {}, its mass times the share of its site",
        figure(standing.priority)
    )?;
    writeln!(
        out,
        "mass {}: 0.15, or 10 if it is a seed, and what the pages that link to it passed on",
        figure(standing.mass)
    )?;
    writeln!(
        out,
        "share {} of {}: {} pages requested, trust {}",
        figure(site.share),
        site.name,
        site.n_pages,
        figure(site.trust)
    )?;
    if let Some(quality) = &standing.quality {
        let note = if quality.is_bad {
            ", so it gets 1 request a day"
        } else {
            ""
        };
        writeln!(
            out,
            "quality: {} of {} pages of {} weigh less than 0.5{note}",
            quality.n_low, quality.n_pages, site.name
        )?;
    }
    match standing.is_last {
        true => writeln!(out, "after all others: only duplicates link to it"),
        false => Ok(()),
    }
}

/// The most important URLs, the most trusted sites and those with the most bad pages.
pub(super) fn write_lists(out: &mut impl Write, status: &Status) -> io::Result<()> {
    if !status.waiting.is_empty() {
        writeln!(
            out,
            "\n{:>9} {:>9} {:>9}  next URLs",
            "priority", "mass", "share"
        )?;
        for waiting in &status.waiting {
            let numbers = [waiting.priority, waiting.mass, waiting.site.share].map(figure);
            let [priority, mass, share] = numbers;
            writeln!(out, "{priority:>9} {mass:>9} {share:>9}  {}", waiting.url)?;
        }
    }
    if !status.sites.is_empty() {
        writeln!(
            out,
            "\n{:>9} {:>9} {:>9}  most trusted sites",
            "trust", "share", "pages"
        )?;
        for site in &status.sites {
            let [trust, share] = [site.trust, site.share].map(figure);
            writeln!(
                out,
                "{trust:>9} {share:>9} {:>9}  {}",
                site.n_pages, site.name
            )?;
        }
        writeln!(out)?;
    }
    if !status.poor_sites.is_empty() {
        writeln!(
            out,
            "{:>9} {:>9}  sites with the most pages of low quality, last run",
            "low", "pages"
        )?;
        for site in &status.poor_sites {
            let note = if site.is_bad {
                ", 1 request per day"
            } else {
                ""
            };
            writeln!(
                out,
                "{:>9} {:>9}  {}{note}",
                site.n_low, site.n_pages, site.name
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Formats a number of any magnitude.
fn figure(value: f64) -> String {
    match value {
        0.0 | 0.01.. => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

pub(super) fn url_json(standing: &Standing) -> Value {
    json!({
        "url": standing.url,
        "priority": standing.priority,
        "mass": standing.mass,
        "trust": standing.trust,
        "is_last": standing.is_last,
        "site": site_json(&standing.site),
        "quality": standing.quality.as_ref().map(quality_json),
    })
}

pub(super) fn site_json(site: &SiteStanding) -> Value {
    json!({
        "name": site.name,
        "trust": site.trust,
        "share": site.share,
        "pages": site.n_pages,
    })
}

pub(super) fn quality_json(site: &SiteQuality) -> Value {
    json!({
        "name": site.name,
        "low_quality": site.n_low,
        "pages": site.n_pages,
        "is_bad": site.is_bad,
    })
}
