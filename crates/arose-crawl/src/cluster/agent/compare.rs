//! Duplicates across agents: has pages compared, and compares those of others
//! ([`crate::cluster::twins`]).

use super::*;
use crate::cluster::twins::{Finding, NewPage, Page};

/// Time between two rounds.
const ROUND: Duration = Duration::from_millis(200);

/// How long an answer is waited for; twice that the next time.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often a page is sent.
const MAX_TRIES: u32 = 5;

/// Pages that wait for answers at most; further ones are not compared.
const MAX_ASKED: usize = 50_000;

/// Pages of a message.
const MAX_PAGES: usize = 400;

/// Pages that are remembered as marked.
const MAX_MARKED: usize = 1 << 20;

/// A page that others compare.
#[derive(Debug)]
pub(super) struct Asked {
    page: NewPage,
    /// The partitions whose owners have not answered.
    left: Vec<u8>,
    n_tries: u32,
    due: Duration,
}

impl<B: Bus> RunningAgent<B> {
    /// Takes pages that were new to this agent.
    pub(super) fn take_new_pages(&self, pages: Vec<NewPage>) {
        let Some(twins) = &self.twins else {
            return;
        };
        let mut asked = self.asked.borrow_mut();
        for page in pages {
            if asked.len() >= MAX_ASKED {
                return;
            }
            let left = twins.partitions(&page.sketch);
            let key = page.page.clone();
            let one = Asked {
                page,
                left,
                n_tries: 0,
                due: Duration::ZERO,
            };
            asked.insert(key, one);
        }
    }

    /// Has pages compared.
    pub(super) async fn tend_twins(&self) {
        loop {
            sleep(ROUND).await;
            for (owner, pages) in self.due_pages() {
                for pages in pages.chunks(MAX_PAGES) {
                    let word = Word::Pages(self.id().to_owned(), pages.to_vec());
                    self.say(&owner, word).await;
                }
            }
        }
    }

    /// Pages whose time has come, by the agents that compare them.
    fn due_pages(&self) -> BTreeMap<String, Vec<NewPage>> {
        let (now, view) = (now(), self.view.borrow());
        let mut due: BTreeMap<String, Vec<NewPage>> = BTreeMap::new();
        let mut asked = self.asked.borrow_mut();
        let n_before = asked.len();
        asked.retain(|_, one| one.due > now || one.n_tries < MAX_TRIES);
        if asked.len() < n_before {
            self.note_activity();
        }
        for one in asked.values_mut().filter(|one| one.due <= now) {
            one.due = now + PATIENCE * (1 << one.n_tries);
            one.n_tries += 1;
            let owners = one.left.iter();
            let owners = owners.filter_map(|&of| view.owners[usize::from(of)].1.owner.as_ref());
            let owners: std::collections::BTreeSet<&String> = owners.collect();
            for owner in owners {
                due.entry(owner.clone()).or_default().push(one.page.clone());
            }
        }
        due
    }

    /// Compares pages of an agent, and tells what is found.
    pub(super) async fn compare_pages(&self, agent: &str, pages: Vec<NewPage>) {
        let Some(twins) = &self.twins else {
            return;
        };
        let mut found: BTreeMap<String, Vec<Finding>> = BTreeMap::new();
        for page in &pages {
            match twins.compare(agent, page) {
                Ok(findings) => {
                    for (whose, finding) in findings {
                        found.entry(whose).or_default().push(finding);
                    }
                }
                Err(error) => {
                    let message = format!("sketches of other agents: {error}");
                    return self.fail(Ending::Failed(message));
                }
            }
        }
        for (whose, findings) in found {
            for findings in findings.chunks(MAX_PAGES) {
                let word = Word::Findings(self.id().to_owned(), findings.to_vec());
                self.say(&whose, word).await;
            }
        }
    }

    /// Has pages marked that others have found to be duplicates.
    pub(super) async fn take_findings(&self, agent: &str, findings: Vec<Finding>) {
        for finding in findings {
            self.note_answer(agent, &finding.page);
            let is_original = finding.original.is_none();
            if is_original || !self.note_marked(&finding.page) {
                continue;
            }
            self.order(LoopOrder::Mark(Box::new(finding))).await;
        }
    }

    fn note_answer(&self, agent: &str, page: &Page) {
        let view = self.view.borrow();
        let mut asked = self.asked.borrow_mut();
        let Some(one) = asked.get_mut(page) else {
            return;
        };
        let owner = |partition: u8| view.owners[usize::from(partition)].1.owner.as_deref();
        one.left
            .retain(|&partition| owner(partition) != Some(agent));
        if one.left.is_empty() {
            asked.remove(page);
            self.note_activity();
        }
    }

    /// Remembers that a page is marked; whether it was not.
    fn note_marked(&self, page: &Page) -> bool {
        let mut marked = self.marked.borrow_mut();
        if marked.len() >= MAX_MARKED {
            marked.clear();
        }
        marked.insert(page.clone())
    }
}
