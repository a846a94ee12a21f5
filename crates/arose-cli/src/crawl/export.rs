//! `arose crawl export`: the index of the archives, or the queued URLs.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;

use crate::read::Outcome;

/// Prints the index of the archives, or the queued URLs, of all these directories.
pub(super) fn run(dirs: &[PathBuf], queue: bool) -> anyhow::Result<Outcome> {
    let mut lines = Vec::new();
    for dir in dirs {
        let agents = match arose_crawl::is_crawl(dir) {
            true => Vec::new(),
            false => arose_crawl::agents(dir)?,
        };
        let all = match agents.is_empty() {
            true => std::slice::from_ref(dir),
            false => &agents[..],
        };
        for dir in all {
            match queue {
                true => lines.extend(arose_crawl::queued_urls(dir)?),
                false => lines.extend(arose_crawl::index_lines(dir)?),
            }
        }
    }
    if !queue {
        lines.sort_unstable();
    }
    write_lines(&lines)
}

fn write_lines(lines: &[String]) -> anyhow::Result<Outcome> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    written
        .and_then(|()| out.flush())
        .context("cannot write the list")?;
    Ok(match lines.is_empty() {
        true => Outcome::NothingFound,
        false => Outcome::Found,
    })
}
