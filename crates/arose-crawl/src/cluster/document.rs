//! Documents that all agents of a crawl see, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::wire::VERSION;
use crate::settings::Settings;

/// Bytes of a document at most.
const MAX_DOCUMENT: usize = 512 << 10;

/// The key of the document that says what the crawl is.
pub(crate) const CRAWL: &str = "crawl";

/// The key that says that the crawl has ended.
pub(crate) const END: &str = "end";

/// What a crawl is; an agent that sees it otherwise cannot join.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(crate) struct CrawlDocument {
    /// Version of messages, and of the program.
    pub(crate) protocol: u8,
    pub(crate) version: String,
    /// All settings except those of machines, a line each.
    pub(crate) settings: BTreeMap<String, String>,
    /// A digest of the seeds.
    pub(crate) seeds: String,
}

impl CrawlDocument {
    pub(crate) fn new(settings: &Settings, seeds: &[String]) -> Result<Self, String> {
        let text = settings.to_toml().map_err(|error| error.to_string())?;
        let table: toml::Table = text.parse().map_err(|error| format!("settings: {error}"))?;
        let mut lines = BTreeMap::new();
        for (name, value) in &table {
            if name != "machine" {
                flatten(name, value, &mut lines);
            }
        }
        // How long a run may take is up to each agent.
        lines.retain(|name, _| !name.starts_with("stop."));
        let mut seeds = seeds.to_vec();
        seeds.sort_unstable();
        seeds.dedup();
        let digest = arose::digest::digest64(seeds.join("\n").as_bytes());
        Ok(Self {
            protocol: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: lines,
            seeds: format!("{} seeds, {digest:016x}", seeds.len()),
        })
    }

    /// What is wrong with an agent that sees the crawl as `other`.
    pub(crate) fn mismatch(&self, other: &Self) -> Option<String> {
        if (self.protocol, &self.version) != (other.protocol, &other.version) {
            return Some(format!(
                "the crawl runs version {} (protocol {}), this is {} (protocol {})",
                self.version, self.protocol, other.version, other.protocol
            ));
        }
        let names = self.settings.keys().chain(other.settings.keys());
        let value = |of: &Self, name: &String| match of.settings.get(name) {
            Some(value) => value.clone(),
            None => "not set".to_owned(),
        };
        let mut differing =
            names.filter(|name| self.settings.get(*name) != other.settings.get(*name));
        if let Some(name) = differing.next() {
            return Some(format!(
                "`{name}` is {} in the crawl and {} here; agents of one crawl need the same settings",
                value(self, name),
                value(other, name)
            ));
        }
        (self.seeds != other.seeds).then(|| {
            format!(
                "the crawl has {}, this agent {}; agents of one crawl need the same seeds",
                self.seeds, other.seeds
            )
        })
    }
}

fn flatten(name: &str, value: &toml::Value, lines: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (inner, value) in table {
                flatten(&format!("{name}.{inner}"), value, lines);
            }
        }
        // Passwords stay where they are.
        _ if name.starts_with("host.") => {
            let digest = arose::digest::digest64(value.to_string().as_bytes());
            lines.insert(name.to_owned(), format!("{digest:016x}"));
        }
        value => {
            lines.insert(name.to_owned(), value.to_string());
        }
    }
}

/// Whether an agent takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Presence {
    /// It does.
    Here,
    /// It has handed over what it had.
    Left,
    /// Others have taken over what it had.
    Dead,
}

/// An agent, which is its lease too.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub(crate) struct AgentDocument {
    pub(crate) name: String,
    pub(crate) presence: Presence,
    /// Renewals.
    pub(crate) beat: u64,
    pub(crate) weight: f64,
    /// Whether it has nothing to do, and a number that changes whenever it has.
    pub(crate) is_idle: bool,
    pub(crate) activity: u64,
    pub(crate) n_partitions: u64,
    pub(crate) n_pages: u64,
    pub(crate) pages_per_second: f64,
    pub(crate) n_queued: u64,
    pub(crate) n_in_flight: u64,
    /// Batches that their receivers have not confirmed, and commits that are not stored.
    pub(crate) n_unconfirmed: u64,
    pub(crate) lag: u64,
}

/// Who owns a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct OwnerDocument {
    pub(crate) owner: Option<String>,
    /// How often it was taken.
    pub(crate) epoch: u64,
}

pub(crate) fn agent_key(id: &str) -> String {
    format!("a.{id}")
}

pub(crate) fn owner_key(partition: u8) -> String {
    format!("l.{partition}")
}

pub(crate) fn drain_key(id: &str) -> String {
    format!("d.{id}")
}

/// As bytes.
pub(crate) fn write<D: Serialize>(document: &D) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

/// From bytes; none if they make no sense.
pub(crate) fn read<D: DeserializeOwned>(bytes: &[u8]) -> Option<D> {
    (bytes.len() <= MAX_DOCUMENT)
        .then(|| serde_json::from_slice(bytes).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named() {
        let seeds = ["http://a/".to_owned(), "http://b/".to_owned()];
        let document = CrawlDocument::new(&Settings::default(), &seeds).unwrap();
        assert_eq!(read(&write(&document)), Some(document.clone()));
        assert_eq!(document.mismatch(&document), None);
        let mut settings = Settings::default();
        settings.machine.threads += 1;
        settings.stop.pages = 7;
        let swapped = [seeds[1].clone(), seeds[0].clone()];
        let same = CrawlDocument::new(&settings, &swapped).unwrap();
        assert_eq!(document.mismatch(&same), None);
        settings.polite.delay = 3.5;
        let other = CrawlDocument::new(&settings, &seeds).unwrap();
        let text = document.mismatch(&other).unwrap();
        assert!(
            text.contains("`polite.delay` is 1.0 in the crawl and 3.5 here"),
            "{text}"
        );
        let other = CrawlDocument::new(&Settings::default(), &seeds[..1]).unwrap();
        assert!(document.mismatch(&other).unwrap().contains("2 seeds"));
        let newer = CrawlDocument {
            version: "9.9.9".to_owned(),
            ..document.clone()
        };
        assert!(document.mismatch(&newer).unwrap().contains("9.9.9"));
    }
}
