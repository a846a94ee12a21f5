//! What an agent sees of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::bus::Stored;
use super::document::{self, AgentDocument, CRAWL, CrawlDocument, END, OwnerDocument, Presence};
use super::lease::{Terms, Watched};
use super::partition::{N_PARTITIONS, Node, owners};

/// An agent, as another one sees it.
#[derive(Debug, Clone)]
pub(crate) struct SeenAgent {
    pub(crate) document: AgentDocument,
    pub(crate) watched: Watched,
}

/// What an agent sees of the others. Documents that make no sense do not count.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) agents: BTreeMap<String, SeenAgent>,
    /// With the revisions of their documents.
    pub(crate) owners: Vec<(u64, OwnerDocument)>,
    pub(crate) draining: BTreeSet<String>,
    pub(crate) crawl: Option<CrawlDocument>,
    pub(crate) has_ended: bool,
    /// All agents idle: their activities and revisions when that was seen first.
    quiet: Option<BTreeMap<String, (u64, u64)>>,
}

impl Default for View {
    fn default() -> Self {
        Self {
            agents: BTreeMap::new(),
            owners: vec![Default::default(); N_PARTITIONS],
            draining: BTreeSet::new(),
            crawl: None,
            has_ended: false,
            quiet: None,
        }
    }
}

impl View {
    /// Takes in a document.
    pub(crate) fn take(&mut self, key: &str, (revision, bytes): &Stored, now: Duration) {
        match key.split_once('.') {
            Some(("a", id)) => {
                if let Some(document) = document::read(bytes) {
                    self.see(id, document, *revision, now);
                }
            }
            Some(("l", partition)) => {
                if let (Ok(at), Some(document)) = (partition.parse::<u8>(), document::read(bytes)) {
                    self.own(at, *revision, document);
                }
            }
            Some(("d", id)) => {
                self.draining.insert(id.to_owned());
            }
            None if key == CRAWL => self.crawl = document::read(bytes),
            None if key == END => self.has_ended = true,
            _ => {}
        }
    }

    fn see(&mut self, id: &str, document: AgentDocument, revision: u64, now: Duration) {
        let since = now;
        let watched = Watched { revision, since };
        let seen = self
            .agents
            .entry(id.to_owned())
            .or_insert_with(|| SeenAgent {
                document: document.clone(),
                watched,
            });
        if revision >= seen.watched.revision {
            seen.watched.see(revision, now);
            seen.document = document;
        }
    }

    /// Takes down who owns a partition.
    pub(crate) fn own(&mut self, partition: u8, revision: u64, document: OwnerDocument) {
        let owner = &mut self.owners[usize::from(partition)];
        if revision > owner.0 {
            *owner = (revision, document);
        }
    }

    /// Starts over with all leases: versions may have been missed until now.
    pub(crate) fn doubt(&mut self, now: Duration) {
        let agents = self.agents.values_mut();
        agents.for_each(|seen| seen.watched.doubt(now));
    }

    fn is_here(&self, id: &str) -> bool {
        let seen = self.agents.get(id);
        seen.is_some_and(|seen| seen.document.presence == Presence::Here)
    }

    /// Whether the owner of a partition has been seen, if it has one.
    pub(crate) fn knows(&self, document: &OwnerDocument) -> bool {
        let owner = document.owner.as_ref();
        owner.is_none_or(|id| self.agents.contains_key(id))
    }

    /// Agents that take part.
    pub(crate) fn present(&self) -> impl Iterator<Item = (&String, &SeenAgent)> {
        let agents = self.agents.iter();
        agents.filter(|(_, seen)| seen.document.presence == Presence::Here)
    }

    /// Who should own each partition. Of agents with the same name, the first one counts.
    pub(crate) fn desired(&self) -> Option<Vec<String>> {
        let mut names = BTreeSet::new();
        let agents = self.present().filter(|(id, seen)| {
            !self.draining.contains(*id) && names.insert(seen.document.name.clone())
        });
        let agents: Vec<(String, Node)> = agents
            .map(|(id, seen)| {
                let name = seen.document.name.clone();
                let weight = seen.document.weight.clamp(0.0, 1e6);
                (id.clone(), Node { name, weight })
            })
            .collect();
        let nodes: Vec<Node> = agents.iter().map(|(_, node)| node.clone()).collect();
        let number = |id: &String| agents.iter().position(|(of, _)| of == id);
        let current = self.owners.iter();
        let current = current.map(|(_, owner)| owner.owner.as_ref().and_then(number));
        let owners = owners(&nodes, &current.collect::<Vec<_>>())?;
        Some(owners.iter().map(|&at| agents[at].0.clone()).collect())
    }

    /// Whether anybody may take a partition now.
    pub(crate) fn is_free(&self, partition: u8) -> bool {
        let owner = &self.owners[usize::from(partition)].1.owner;
        !owner.as_ref().is_some_and(|id| self.is_here(id))
    }

    /// Agents whose leases have ended, with the revisions of their documents.
    pub(crate) fn silent(
        &self,
        terms: &Terms,
        me: &str,
        now: Duration,
    ) -> Vec<(String, SeenAgent)> {
        let silent = self
            .present()
            .filter(|(id, seen)| *id != me && seen.watched.has_ended(terms, now));
        silent
            .map(|(id, seen)| (id.clone(), seen.clone()))
            .collect()
    }

    /// Whether nothing is left to do anywhere: all agents were idle, and then said so again without
    /// having done anything in between, so there was a moment when all of them were.
    pub(crate) fn is_over(&mut self) -> bool {
        let is_owned = |partition: u8| !self.is_free(partition);
        let is_quiet =
            self.present().all(|(_, seen)| seen.document.is_idle) && (0..=u8::MAX).all(is_owned);
        if !is_quiet {
            self.quiet = None;
            return false;
        }
        let state = |(id, seen): (&String, &SeenAgent)| {
            let state = (seen.document.activity, seen.watched.revision);
            (id.clone(), state)
        };
        let current: BTreeMap<_, _> = self.present().map(state).collect();
        let Some(before) = &self.quiet else {
            self.quiet = Some(current);
            return false;
        };
        let is_same = before.keys().eq(current.keys())
            && before
                .values()
                .zip(current.values())
                .all(|(a, b)| a.0 == b.0);
        if !is_same {
            self.quiet = Some(current);
            return false;
        }
        before
            .values()
            .zip(current.values())
            .all(|(a, b)| b.1 > a.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, is_idle: bool, activity: u64) -> AgentDocument {
        AgentDocument {
            name: name.to_owned(),
            presence: Presence::Here,
            beat: 0,
            weight: 1.0,
            is_idle,
            activity,
            n_partitions: 0,
            n_pages: 0,
            pages_per_second: 0.0,
            n_queued: 0,
            n_in_flight: 0,
            n_unconfirmed: 0,
            lag: 0,
        }
    }

    fn view_of(agents: &[(&str, bool, u64)]) -> View {
        let mut view = View::default();
        for (number, &(name, is_idle, activity)) in (1..).zip(agents) {
            view.see(name, agent(name, is_idle, activity), number, Duration::ZERO);
        }
        for partition in 0..=u8::MAX {
            let owner = Some(agents[0].0.to_owned());
            view.own(partition, 1, OwnerDocument { owner, epoch: 1 });
        }
        view
    }

    fn say(view: &mut View, name: &str, activity: u64, revision: u64) {
        view.see(name, agent(name, true, activity), revision, Duration::ZERO);
    }

    #[test]
    fn a_crawl_is_over_when_all_were_idle_at_once() {
        let mut view = view_of(&[("a", true, 5), ("b", true, 7)]);
        assert!(!view.is_over());
        say(&mut view, "a", 5, 10);
        assert!(!view.is_over());
        say(&mut view, "b", 7, 11);
        assert!(view.is_over());
    }

    #[test]
    fn work_in_between_starts_over() {
        let mut view = view_of(&[("a", true, 5), ("b", true, 7)]);
        assert!(!view.is_over());
        // Idle again, but not all the time.
        say(&mut view, "a", 6, 10);
        say(&mut view, "b", 7, 11);
        assert!(!view.is_over());
        say(&mut view, "a", 6, 12);
        say(&mut view, "b", 7, 13);
        assert!(view.is_over());
        // A partition that nobody owns may have work.
        let nobody = OwnerDocument {
            owner: None,
            epoch: 1,
        };
        view.own(9, 2, nobody);
        assert!(!view.is_over() && view.is_free(9));
    }

    #[test]
    fn the_first_of_two_agents_with_one_name_counts() {
        let mut view = view_of(&[("a-1", true, 0), ("b-1", true, 0)]);
        say(&mut view, "a-2", 0, 5);
        let rename = |view: &mut View, id: &str, name: &str| {
            let seen = view.agents.get_mut(id);
            seen.unwrap().document.name = name.to_owned();
        };
        rename(&mut view, "a-1", "a");
        rename(&mut view, "a-2", "a");
        let desired = view.desired().unwrap();
        assert!(!desired.contains(&"a-2".to_owned()));
        view.draining.insert("a-1".to_owned());
        assert!(view.desired().unwrap().contains(&"a-2".to_owned()));
    }
}
