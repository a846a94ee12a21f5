//! `arose crawl watch`: shows the changes of a page, from the archive.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use arose_crawl::PageVersion;
use serde_json::json;

use crate::output::write_json;
use crate::read::Outcome;

/// Prints all visits of a page, and the text that each version adds and removes.
pub(super) fn run(dir: &Path, url: &str, json: bool) -> anyhow::Result<Outcome> {
    let versions = arose_crawl::versions(dir, url)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut before: Option<&str> = None;
    for version in &versions {
        let difference = version.text.as_deref().map(|text| {
            let difference = difference(before.unwrap_or_default(), text);
            (difference, before.replace(text).is_none())
        });
        let written = match json {
            true => write_row(&mut out, version, difference.as_ref()),
            false => write(&mut out, version, difference.as_ref()),
        };
        written.context("cannot write the list")?;
    }
    out.flush().context("cannot write the list")?;
    Ok(match versions.is_empty() {
        true => Outcome::NothingFound,
        false => Outcome::Found,
    })
}

/// Removed and added lines.
type Difference = (Vec<String>, Vec<String>);

fn write(
    out: &mut impl Write,
    version: &PageVersion,
    difference: Option<&(Difference, bool)>,
) -> io::Result<()> {
    let (date, status) = (readable(&version.date), version.status);
    match difference {
        None if version.is_same => writeln!(out, "{date} {status} unchanged"),
        None => writeln!(out, "{date} {status} no text"),
        Some((_, true)) => writeln!(out, "{date} {status} first version"),
        Some(((gone, new), false)) => {
            writeln!(out, "{date} {status} changed")?;
            gone.iter().try_for_each(|line| writeln!(out, "- {line}"))?;
            new.iter().try_for_each(|line| writeln!(out, "+ {line}"))
        }
    }
}

/// Formats 14 digits as `2026-11-17 08:00:00`; anything else is unchanged.
fn readable(date: &str) -> String {
    if date.len() != 14 || !date.bytes().all(|byte| byte.is_ascii_digit()) {
        return date.to_owned();
    }
    let (day, time) = date.split_at(8);
    format!(
        "{}-{}-{} {}:{}:{}",
        &day[..4],
        &day[4..6],
        &day[6..],
        &time[..2],
        &time[2..4],
        &time[4..]
    )
}

fn write_row(
    out: &mut impl Write,
    version: &PageVersion,
    difference: Option<&(Difference, bool)>,
) -> io::Result<()> {
    let difference = difference.filter(|(_, is_first)| !is_first);
    let row = json!({
        "date": version.date,
        "status": version.status,
        "unchanged": version.is_same,
        "removed": difference.map(|((gone, _), _)| gone),
        "added": difference.map(|((_, new), _)| new),
    });
    write_json(out, &row)
}

/// Sentences and lines that occur in only one of two texts, or more often in it.
fn difference(old: &str, new: &str) -> Difference {
    let parts = |text: &str| -> Vec<String> {
        let lines = text.lines().flat_map(|line| line.split_inclusive(". "));
        let parts = lines.map(|part| part.trim().to_owned());
        parts.filter(|part| !part.is_empty()).collect()
    };
    let (old, new) = (parts(old), parts(new));
    let only = |these: &[String], others: &[String]| {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for other in others {
            *counts.entry(other).or_default() += 1;
        }
        let mut only = Vec::new();
        for part in these {
            match counts.get_mut(part.as_str()).filter(|n| **n > 0) {
                Some(n) => *n -= 1,
                None => only.push(part.clone()),
            }
        }
        only
    };
    (only(&old, &new), only(&new, &old))
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn what_is_in_both_is_no_difference() {
        let (gone, new) = difference("One. Two. Two.\nThree", "Two. One. Four.\nThree");
        assert_eq!(gone, ["Two."]);
        assert_eq!(new, ["Four."]);
        assert_eq!(difference("a\nb", "b\na"), (Vec::new(), Vec::new()));
    }
}
