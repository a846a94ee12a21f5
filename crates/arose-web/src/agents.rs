//! The agents of a crawl on many machines, as one of them has seen them.
//!
//! An agent writes `cluster/agents.json` in its directory every few seconds. A file that is missing
//! or malformed shows nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use arose_dedup::report::html::Count;
use serde::Deserialize;

use crate::html::{Markup, name};
use crate::line_plot::number;

/// Maximum number of bytes of the file.
const MAX_BYTES: u64 = 8 << 20;

/// Maximum number of agents listed.
const MAX_AGENTS: usize = 200;

/// What an agent of a crawl on many machines has seen of all agents.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cluster {
    agents: Vec<Agent>,
}

/// An agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Agent {
    name: String,
    presence: String,
    n_partitions: u64,
    n_pages: u64,
    pages_per_second: f64,
    n_queued: u64,
    n_in_flight: u64,
}

/// An agent: its name, its state, its pages per second, and its counts.
pub(crate) type AgentRow = (Markup, Markup, String, [Count; 4]);

/// The agents of the crawl in a directory, and all of them together; none if it has one machine.
pub(crate) fn agents(folder: &Path) -> Vec<AgentRow> {
    let file = File::open(folder.join("cluster/agents.json"));
    let bytes = file.and_then(|file| {
        let mut bytes = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut bytes).map(|_| bytes)
    });
    let cluster = bytes
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let Cluster { agents } = cluster.unwrap_or_default();
    // Of several runs of an agent, the last one counts all pages.
    let last: BTreeMap<String, Agent> = agents
        .into_iter()
        .map(|agent| (agent.name.clone(), agent))
        .collect();
    let agents: Vec<Agent> = last.into_values().collect();
    if agents.is_empty() {
        return Vec::new();
    }
    let sum = |of: fn(&Agent) -> u64| agents.iter().map(of).sum();
    let all = Agent {
        name: "all agents".to_owned(),
        presence: String::new(),
        n_partitions: sum(|agent| agent.n_partitions),
        n_pages: sum(|agent| agent.n_pages),
        pages_per_second: agents.iter().map(|agent| agent.pages_per_second).sum(),
        n_queued: sum(|agent| agent.n_queued),
        n_in_flight: sum(|agent| agent.n_in_flight),
    };
    let rows = agents.iter().take(MAX_AGENTS).chain([&all]);
    rows.map(|agent| {
        let counts = [
            agent.n_partitions,
            agent.n_pages,
            agent.n_queued,
            agent.n_in_flight,
        ];
        (
            name(&agent.name),
            name(&agent.presence),
            number(agent.pages_per_second),
            counts.map(Count),
        )
    })
    .collect()
}
