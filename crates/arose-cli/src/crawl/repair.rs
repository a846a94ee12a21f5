//! `arose crawl repair`: rebuilds a damaged crawl.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use arose_crawl::Repaired;
use serde_json::{Value, json};

use crate::output::{row, write_json};
use crate::read::Outcome;

pub(super) fn run(dir: &Path, json: bool) -> anyhow::Result<Outcome> {
    let settings = arose_crawl::kept_settings(dir)?;
    let repaired = arose_crawl::repair(dir, settings)
        .with_context(|| format!("cannot repair the crawl in `{}`", dir.display()))?;
    let mut out = io::stdout().lock();
    let written = match json {
        true => write_json(&mut out, &as_json(&repaired)),
        false => write(&mut out, &repaired, dir),
    };
    written.context("cannot write the result")?;
    Ok(Outcome::Found)
}

fn write(out: &mut impl Write, repaired: &Repaired, dir: &Path) -> io::Result<()> {
    if repaired.is_sound {
        return writeln!(out, "no damage found; nothing was changed");
    }
    let mut row = |label: &str, n: u64| row(out, label, n, "");
    row("records in the archive", repaired.n_records)?;
    row("hosts", repaired.n_hosts)?;
    row("queued", repaired.n_queued)?;
    row("  found in pages only", repaired.n_from_links)?;
    row("unreadable journal bytes", repaired.n_lost_bytes)?;
    row("damaged archive bytes", repaired.n_damaged_bytes)?;
    row("unfinished record bytes", repaired.n_cut_bytes)?;
    row("index files rebuilt", repaired.n_index_files)?;
    row("pages restored in the table", repaired.n_restored_pages)?;
    for path in &repaired.aside {
        writeln!(out, "kept aside: {}", path.display())?;
    }
    let dir = dir.display();
    writeln!(out, "rebuilt; resume with `arose crawl -o {dir}`")
}

fn as_json(repaired: &Repaired) -> Value {
    let aside = repaired.aside.iter();
    let aside: Vec<String> = aside.map(|path| path.display().to_string()).collect();
    json!({
        "is_sound": repaired.is_sound,
        "records": repaired.n_records,
        "hosts": repaired.n_hosts,
        "queued": repaired.n_queued,
        "queued_from_links": repaired.n_from_links,
        "unreadable_journal_bytes": repaired.n_lost_bytes,
        "damaged_archive_bytes": repaired.n_damaged_bytes,
        "cut_archive_bytes": repaired.n_cut_bytes,
        "index_files_rebuilt": repaired.n_index_files,
        "restored_pages": repaired.n_restored_pages,
        "aside": aside,
    })
}
