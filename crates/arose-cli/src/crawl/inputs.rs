//! Crawls as inputs of other commands.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// Inputs of other commands, with the archives of a crawl in place of its directory.
///
/// # Errors
///
/// If the archives of a crawl cannot be listed.
pub fn expand(inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut expanded = Vec::new();
    for input in inputs {
        match arose_crawl::is_crawl(input) {
            true => expanded.extend(arose_crawl::archives(input)?),
            false => expanded.extend(with_agents(input)?),
        }
    }
    Ok(expanded)
}

/// An input, or what is in it if that includes the directories of agents.
fn with_agents(input: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let agents = arose_crawl::agents(input)?;
    if agents.is_empty() {
        return Ok(vec![input.to_owned()]);
    }
    let entries = std::fs::read_dir(input)
        .and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.path()))
                .collect::<io::Result<Vec<_>>>()
        })
        .with_context(|| format!("cannot read `{}`", input.display()))?;
    let mut others: Vec<PathBuf> = entries
        .into_iter()
        .filter(|path| !agents.contains(path))
        .collect();
    others.sort();
    let mut all = Vec::new();
    for agent in &agents {
        all.extend(arose_crawl::archives(agent)?);
    }
    all.extend(others);
    Ok(all)
}
