//! Change histories of pages.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A page and when it changed, in days since the beginning of 1970.
pub struct Page {
    pub created: f64,
    pub deleted: f64,
    pub changes: Vec<f64>,
}

impl Page {
    /// The page from a time on, in seconds, if it is there from then to the end.
    fn since(mut self, start: Option<f64>) -> Option<Self> {
        let Some(start) = start.map(|seconds| seconds / 86_400.0) else {
            return Some(self);
        };
        if self.created > start || self.deleted.is_finite() {
            return None;
        }
        self.created = start;
        self.changes.retain(|time| *time > start);
        Some(self)
    }
}

/// Reads the pages of a file: those whose number leaves the remainder `part` names, as `0/2`.
pub fn read(path: &Path, part: &str, start: Option<f64>) -> Result<Vec<Page>> {
    let (remainder, n_parts) = part.split_once('/').context("part is not like 0/2")?;
    let (remainder, n_parts): (usize, usize) = (remainder.parse()?, n_parts.parse()?);
    let file = File::open(path).with_context(|| format!("opening `{}`", path.display()))?;
    let reader: Box<dyn Read> = match path.extension().is_some_and(|end| end == "zst") {
        true => Box::new(zstd::Decoder::new(file)?),
        false => Box::new(file),
    };
    let mut pages = Vec::new();
    for (number, line) in BufReader::new(reader).lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() || number % n_parts.max(1) != remainder {
            continue;
        }
        let page = page(&line).with_context(|| format!("line {}", number + 1))?;
        pages.extend(page.and_then(|page| page.since(start)));
    }
    if pages.is_empty() {
        bail!("`{}` has no pages", path.display());
    }
    Ok(pages)
}

/// None if the page was gone as soon as it came.
fn page(line: &str) -> Result<Option<Page>> {
    let value: Value = serde_json::from_str(line)?;
    let day = |value: &Value| value.as_f64().map(|seconds| seconds / 86_400.0);
    let created = day(&value["created"]).context("no `created`")?;
    let deleted = match &value["deleted"] {
        Value::Null => f64::INFINITY,
        time => day(time).context("`deleted` is not a time")?,
    };
    let changes = value["changes"].as_array().context("no `changes`")?;
    let changes: Option<Vec<f64>> = changes.iter().map(day).collect();
    let mut changes = changes.context("a change is not a time")?;
    changes.retain(|time| *time > created && *time < deleted);
    changes.sort_by(f64::total_cmp);
    Ok((created < deleted).then_some(Page {
        created,
        deleted,
        changes,
    }))
}
