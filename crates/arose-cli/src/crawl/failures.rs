//! `arose crawl failures`: the URLs whose last request failed, by reason.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use arose_crawl::FailedUrl;
use serde_json::json;

use crate::output::{remark, write_json};
use crate::read::Outcome;

/// Prints the failures of a crawl.
pub(super) fn run(dir: &Path, json: bool) -> anyhow::Result<Outcome> {
    let failed = arose_crawl::failures(dir)?;
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = match json {
        true => failed.iter().try_for_each(|failed| {
            let row = json!({
                "reason": failed.reason,
                "url": failed.url,
                "found_on": failed.found_on,
                "time": failed.time,
            });
            write_json(&mut out, &row)
        }),
        false => write_groups(&mut out, &failed),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the list")?;
    if failed.is_empty() {
        remark(format_args!("arose: no failures in `{}`", dir.display()));
        return Ok(Outcome::NothingFound);
    }
    Ok(Outcome::Found)
}

fn write_groups(out: &mut impl Write, failed: &[FailedUrl]) -> io::Result<()> {
    for group in failed.chunk_by(|a, b| a.reason == b.reason) {
        writeln!(out, "{}: {}", group[0].reason, group.len())?;
        for FailedUrl { url, found_on, .. } in group {
            match found_on {
                Some(found_on) => writeln!(out, "  {url}  found on {found_on}")?,
                None => writeln!(out, "  {url}")?,
            }
        }
    }
    Ok(())
}
