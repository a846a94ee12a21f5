//! The state of a cluster, for people.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::bus::{Bus, Login, Nats, Subject};
use super::document::{Presence, drain_key};
use super::fence::now;
use super::view::View;
use crate::error::Error;

/// When no more documents are expected, and how long they are waited for at most.
const PAUSE: Duration = Duration::from_millis(300);
const MAX_LOOK: Duration = Duration::from_secs(3);

/// An agent, as the others see it.
#[derive(Debug, Clone, Serialize)]
pub struct AgentStatus {
    /// Its name, and the name of this run of it.
    pub name: String,
    /// The name of this run of it.
    pub id: String,
    /// `here`, `draining`, `left` or `dead`.
    pub presence: &'static str,
    /// Partitions that it owns.
    pub n_partitions: u64,
    /// Pages it has fetched, in all its runs.
    pub n_pages: u64,
    /// Pages per second since its last renewal.
    pub pages_per_second: f64,
    /// URLs that wait there.
    pub n_queued: u64,
    /// Requests under way.
    pub n_in_flight: u64,
    /// Batches of URLs that their receivers have not confirmed.
    pub n_unconfirmed: u64,
    /// Commits that are not stored yet.
    pub lag: u64,
    /// Whether it has nothing to do.
    pub is_idle: bool,
}

/// A cluster, as its agents see it.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterStatus {
    /// Agents, by name.
    pub agents: Vec<AgentStatus>,
    /// Partitions without an owner.
    pub n_free: u64,
    /// Whether the crawl has ended.
    pub has_ended: bool,
    /// Version of the program that began it.
    pub version: String,
}

/// Returns the state of the crawl with this name.
///
/// # Errors
///
/// If the servers cannot be reached, or have no such crawl.
pub fn cluster_status(login: &Login, crawl: &str) -> Result<ClusterStatus, Error> {
    crate::cluster::block_on_bus(async {
        let (_, view) = look(login, crawl).await?;
        Ok(ClusterStatus::of(&view))
    })
}

impl ClusterStatus {
    /// What an agent sees of its cluster.
    pub(super) fn of(view: &View) -> Self {
        let all = view.agents.iter().map(|(id, seen)| {
            let document = &seen.document;
            let owned = view.owners.iter();
            let owned = owned.filter(|(_, owner)| owner.owner.as_ref() == Some(id));
            AgentStatus {
                name: document.name.clone(),
                id: id.clone(),
                presence: match document.presence {
                    Presence::Here if view.draining.contains(id) => "draining",
                    Presence::Here => "here",
                    Presence::Left => "left",
                    Presence::Dead => "dead",
                },
                n_partitions: owned.count() as u64,
                n_pages: document.n_pages,
                pages_per_second: document.pages_per_second,
                n_queued: document.n_queued,
                n_in_flight: document.n_in_flight,
                n_unconfirmed: document.n_unconfirmed,
                lag: document.lag,
                is_idle: document.is_idle,
            }
        });
        let mut agents: Vec<AgentStatus> = all.collect();
        agents.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        let n_free = (0..=u8::MAX).filter(|partition| view.is_free(*partition));
        let crawl = view.crawl.as_ref();
        Self {
            agents,
            n_free: n_free.count() as u64,
            has_ended: view.has_ended,
            version: crawl.map_or(String::new(), |crawl| crawl.version.clone()),
        }
    }
}

/// Has the agents with this name hand over what they have, and end.
///
/// # Errors
///
/// If the servers cannot be reached, or no agent of this name takes part.
pub fn drain(login: &Login, crawl: &str, agent: &str) -> Result<(), Error> {
    crate::cluster::block_on_bus(async {
        let (bus, view) = look(login, crawl).await?;
        let named = view
            .present()
            .filter(|(_, seen)| seen.document.name == agent);
        let ids: Vec<String> = named.map(|(id, _)| id.clone()).collect();
        if ids.is_empty() {
            let message = format!("no agent `{agent}` takes part in the crawl `{crawl}`");
            return Err(Error::Settings(message));
        }
        for id in ids.iter().filter(|id| !view.draining.contains(*id)) {
            let key = Subject::Key(drain_key(id));
            let written = bus.append(&key, 0, b"{}".to_vec()).await;
            written.map_err(|error| Error::Cluster(error.to_string()))?;
        }
        Ok(())
    })
}

async fn look(login: &Login, crawl: &str) -> Result<(Nats, View), Error> {
    let bus = Nats::connect(login, crawl, "status").await;
    let bus = bus.map_err(|error| Error::Cluster(error.to_string()))?;
    let mut view = View::default();
    // All documents come at once.
    let start = now();
    while now() - start < MAX_LOOK
        && let Ok(changes) = tokio::time::timeout(PAUSE, bus.changes()).await
    {
        for (key, entry) in &changes {
            view.take(key, entry, now());
        }
    }
    match view.crawl {
        Some(_) => Ok((bus, view)),
        None => Err(Error::Settings(format!(
            "no crawl `{crawl}` on these servers"
        ))),
    }
}

/// A name for the agent that crawls into a directory of this machine.
#[must_use]
pub fn agent_name(folder: &Path) -> String {
    let path = std::path::absolute(folder).unwrap_or(folder.to_owned());
    let digest = arose::digest::digest64(path.as_os_str().as_encoded_bytes());
    let machine = rustix::system::uname();
    let machine = machine.nodename().to_string_lossy();
    let letters = machine
        .chars()
        .take(40)
        .map(|c| match c.is_ascii_alphanumeric() {
            true => c,
            false => '-',
        });
    format!("{}-{:04x}", letters.collect::<String>(), digest >> 48)
}
