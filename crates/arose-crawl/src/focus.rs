//! Focused crawls: queued URLs are ordered by how well they are likely to fit a topic.
//!
//! A scorer judges fetched pages, and a link model predicts the scores of queued ones
//! ([`arose::focus`]). This module connects both to the frontier. Each queued URL has a record of
//! the links to it. Its *priority* is the predicted score times the fourth root of its mass, and
//! the queues are ordered by priority instead of mass. Predictions change with every page, so that
//! of a URL is computed again when a link to it is found, and when its turn comes. If its priority
//! has fallen, the URL goes back into its queue.
//!
//! One turn in twenty explores: it goes to the URL with the largest mass, whatever its score. So
//! the model learns from pages that it would not have chosen, and topics are reached through pages
//! off them.
//!
//! Crawls use it if the settings have a scorer (`crawl/focused.rs`), and rehearsals play such
//! crawls over known graphs ([`crate::rehearsal::Focused`]). `judge.rs` has the scorers of the
//! settings, `program.rs` the scorer that is a process, and `files.rs` the state that survives a
//! crash.
//!
//! Memory: about 200 bytes per queued URL, for at most `MAX_WAITING` of them. Further URLs keep the
//! priority that they were found with.

mod files;
mod judge;
mod program;

use std::collections::{BinaryHeap, HashMap};
use std::path::Path;

use crate::error::Error;
use crate::order::{BASE, SEED};
pub(crate) use files::{Changes, FocusFiles, check};
pub(crate) use judge::{Judge, Judged};
pub(crate) use program::{PageText, ScoreReport};
use serde::{Deserialize, Serialize};

use arose::focus::{Link, LinkModel, LinkWords, PageScorer, Words};

/// Maximum number of URLs whose links are remembered.
pub(crate) const MAX_WAITING: usize = 2_000_000;

/// The priority of a URL with a score and a mass of 1. Queues distinguish priorities from 1/8 to
/// 2,048.
const SCALE: f32 = 256.0;

/// The priority of URLs that go before all others.
pub(crate) const FIRST: f32 = 2000.0;

/// Maximum number of consecutive URLs that are queued again because their predictions have fallen.
const MAX_FALLEN: u32 = 200;

/// The share of its priority that a URL may have lost since it was queued without going back.
const TOLERANCE: f32 = 0.02;

/// Number of pages per point of the harvest curve, and maximum number of points.
const PER_POINT: u64 = 1000;
const MAX_POINTS: usize = 10_000;

/// The record of a queued URL.
#[derive(Debug, Clone)]
struct QueuedLink {
    link: Link,
    mass: f32,
    /// Whether it keeps its priority, whatever the prediction.
    stays: bool,
    /// Its position in the file.
    slot: u32,
}

/// The slots of a file, one per URL.
#[derive(Debug, Default)]
struct Slots {
    n: u32,
    free: Vec<u32>,
    /// Slots that changed since the last commit, with the URLs that have them now.
    changed: HashMap<u32, Option<u128>>,
}

impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.n += 1;
            self.n - 1
        })
    }
}

/// Numbers of pages that fit the topic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Harvest {
    /// Pages scored.
    pub n_pages: u64,
    /// Pages with a score of at least 0.5.
    pub n_fitting: u64,
    /// The sum of all scores.
    pub sum: f64,
    /// The share of fitting pages in each 1,000, in order.
    pub curve: Vec<f32>,
    n_in_point: u64,
}

impl Harvest {
    fn add(&mut self, score: f32) {
        let fits = score >= 0.5;
        self.n_pages += 1;
        self.n_fitting += u64::from(fits);
        self.sum += f64::from(score);
        self.n_in_point += u64::from(fits);
        if self.n_pages.is_multiple_of(PER_POINT) {
            let n = std::mem::take(&mut self.n_in_point);
            if self.curve.len() < MAX_POINTS {
                self.curve.push(n as f32 / PER_POINT as f32);
            }
        }
    }

    /// Continues with these totals, which may be ahead of the saved ones. Points in between get
    /// their mean.
    fn catch_up(&mut self, n_pages: u64, n_fitting: u64) {
        let n_missing = n_pages.saturating_sub(self.n_pages);
        let n_fitting_missing = n_fitting.saturating_sub(self.n_fitting);
        if n_missing == 0 {
            return;
        }
        let rate = (n_fitting_missing as f32 / n_missing as f32).min(1.0);
        let n_points = (n_pages / PER_POINT) as usize;
        let before = (self.n_in_point as f32
            + rate * (PER_POINT - self.n_pages % PER_POINT) as f32)
            / PER_POINT as f32;
        if self.curve.len() < n_points.min(MAX_POINTS) {
            self.curve.push(before.min(1.0));
            self.curve.resize(n_points.min(MAX_POINTS), rate);
            self.n_in_point = 0;
        }
        let n_rest = (n_pages % PER_POINT).min(n_missing);
        self.n_in_point += (rate * n_rest as f32) as u64;
        (self.n_pages, self.n_fitting) = (n_pages, n_fitting);
    }

    /// Returns the share of pages that fit.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.n_fitting as f64 / self.n_pages.max(1) as f64
    }
}

/// The state of a focused crawl.
pub struct Focus {
    /// `None` if pages are judged elsewhere.
    scorer: Option<Box<dyn PageScorer + Send>>,
    model: LinkModel,
    waiting: HashMap<u128, QueuedLink>,
    /// URLs with the mass that they had when they were added.
    massive: BinaryHeap<(u32, u128)>,
    /// Turns between two that explore; 0 for none.
    explore_every: u32,
    n_turns: u32,
    n_fallen: u32,
    /// `None` if nothing is written to disk.
    slots: Option<Slots>,
    topic: String,
    /// The number of the last state that was written.
    n_states: u64,
    /// The scores so far.
    pub harvest: Harvest,
}

impl std::fmt::Debug for Focus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Focus")
            .field("n_waiting", &self.waiting.len())
            .field("harvest", &self.harvest)
            .finish_non_exhaustive()
    }
}

impl Focus {
    /// Creates a focus with a scorer and the share of turns that explore.
    #[must_use]
    pub fn new(scorer: Box<dyn PageScorer + Send>, explore: f64) -> Self {
        Self {
            scorer: Some(scorer),
            ..Self::unscored(explore)
        }
    }

    fn unscored(explore: f64) -> Self {
        Self {
            scorer: None,
            model: LinkModel::new(),
            waiting: HashMap::new(),
            massive: BinaryHeap::new(),
            explore_every: match explore > 0.0 {
                true => (1.0 / explore).round().max(1.0) as u32,
                false => 0,
            },
            n_turns: 0,
            n_fallen: 0,
            slots: None,
            topic: String::new(),
            n_states: 0,
            harvest: Harvest::default(),
        }
    }

    /// Opens the focus of a crawl, which resumes. The two numbers are those of scored and of
    /// fitting pages.
    pub(crate) fn open(
        folder: &Path,
        settings: &crate::settings::FocusSettings,
        judge: &Judge,
        (n_pages, n_fitting): (u64, u64),
    ) -> Result<(Self, FocusFiles), Error> {
        let (files, kept) = FocusFiles::open(folder, &settings.topic())?;
        judge.resume(&kept.head.learned);
        let mut focus = Self {
            model: kept.model.unwrap_or_default(),
            topic: kept.head.topic,
            n_states: kept.head.number,
            harvest: kept.head.harvest,
            ..Self::unscored(settings.explore)
        };
        focus.harvest.catch_up(n_pages, n_fitting);
        let mut is_free = vec![true; kept.n_slots as usize];
        #[expect(
            clippy::iter_over_hash_type,
            reason = "a heap gives the same order, whatever order it was filled in"
        )]
        for (key, waiting) in &kept.waiting {
            is_free[waiting.slot as usize] = false;
            if focus.explore_every > 0 {
                focus.massive.push((waiting.mass.to_bits(), *key));
            }
        }
        let free = (0..kept.n_slots).filter(|&slot| is_free[slot as usize]);
        focus.slots = Some(Slots {
            n: kept.n_slots,
            free: free.collect(),
            changed: HashMap::new(),
        });
        focus.waiting = kept.waiting;
        Ok((focus, files))
    }

    /// Returns the changes since the last call, with the state if `with_state` is set.
    pub(crate) fn take_changes(&mut self, judge: &Judge, with_state: bool) -> Changes {
        let waiting = &self.waiting;
        let changed = self
            .slots
            .as_mut()
            .map(|slots| std::mem::take(&mut slots.changed));
        let slot = |(slot, key): (u32, Option<u128>)| {
            let owner = key.and_then(|key| Some((key, waiting.get(&key)?)));
            let bytes = owner.map(|(key, waiting)| files::slot_bytes(key, waiting));
            (slot, bytes.unwrap_or([0; files::SLOT]))
        };
        let mut slots: Vec<_> = changed.into_iter().flatten().map(slot).collect();
        slots.sort_unstable_by_key(|(slot, _)| *slot);
        let learned = self.model.take_changes();
        if !with_state {
            return Changes {
                slots,
                state: None,
                model: Some(files::changes_bytes(self.n_states, &learned)),
            };
        }
        self.n_states += 1;
        let head = files::Head {
            topic: self.topic.clone(),
            number: self.n_states,
            harvest: self.harvest.clone(),
            learned: judge.learned(),
        };
        Changes {
            slots,
            state: Some(files::state_bytes(&head, &self.model)),
            model: None,
        }
    }

    /// Returns the words of a link.
    pub(crate) fn words(&self, anchor: &str, url: &str, tag_path: &str) -> LinkWords {
        match &self.scorer {
            Some(scorer) => LinkWords::new(anchor, url, tag_path, &**scorer),
            None => LinkWords::default(),
        }
    }

    /// Records a link to a queued URL, with the score of its page and the mass that it brings.
    /// Returns the priority of the URL.
    pub(crate) fn found(&mut self, key: u128, score: f32, words: &LinkWords, mass: f32) -> f32 {
        let mut link = Link::default();
        if !self.waiting.contains_key(&key) && self.waiting.len() >= MAX_WAITING {
            link.add(score, words);
            return priority(self.model.score(&link), mass);
        }
        let waiting = self.admit(key);
        waiting.link.add(score, words);
        self.give(key, mass).unwrap_or(0.0)
    }

    /// Records a seed, or a list of pages.
    pub(crate) fn seed(&mut self, key: u128) -> f32 {
        if self.waiting.len() < MAX_WAITING {
            let waiting = self.admit(key);
            waiting.stays = true;
            waiting.mass = waiting.mass.max(SEED);
        }
        FIRST
    }

    /// Records that a queued URL redirects to a new one. Returns the priority of the new one.
    pub(crate) fn moved(&mut self, from: u128, to: u128, mass: f32) -> f32 {
        let link = self.waiting.get(&from).map(|waiting| waiting.link.clone());
        let link = link.unwrap_or_default();
        if self.waiting.len() >= MAX_WAITING {
            return priority(self.model.score(&link), mass);
        }
        self.admit(to).link = link;
        self.give(to, mass).unwrap_or(0.0)
    }

    /// Records another link to a URL, if it is queued.
    pub(crate) fn met(&mut self, key: u128, score: f32, words: &LinkWords) {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.link.add(score, words);
            note(&mut self.slots, waiting.slot, Some(key));
        }
    }

    /// Adds mass to a URL, if it is queued; returns its new priority.
    pub(crate) fn give(&mut self, key: u128, mass: f32) -> Option<f32> {
        let waiting = self.waiting.get_mut(&key)?;
        let before = waiting.mass;
        waiting.mass += mass;
        note(&mut self.slots, waiting.slot, Some(key));
        let has_grown = before == 0.0 || waiting.mass.log2().floor() > before.log2().floor();
        if has_grown && self.explore_every > 0 && self.massive.len() < 2 * MAX_WAITING {
            self.massive.push((waiting.mass.to_bits(), key));
        }
        Some(match waiting.stays {
            true => FIRST,
            false => priority(self.model.score(&waiting.link), waiting.mass),
        })
    }

    /// Corrects the score of a page that links to a URL, if that is queued; returns its new
    /// priority.
    pub(crate) fn correct(&mut self, key: u128, from: f32, to: f32) -> Option<f32> {
        self.waiting.get_mut(&key)?.link.correct(from, to);
        self.give(key, 0.0)
    }

    fn admit(&mut self, key: u128) -> &mut QueuedLink {
        let slots = &mut self.slots;
        self.waiting.entry(key).or_insert_with(|| {
            let slot = slots.as_mut().map_or(0, Slots::take);
            note(slots, slot, Some(key));
            QueuedLink {
                link: Link::default(),
                mass: 0.0,
                stays: false,
                slot,
            }
        })
    }

    /// Returns the current priority of a URL, if it is notably lower than when it was queued.
    pub(crate) fn fallen(&self, key: u128, queued: f32) -> Option<f32> {
        let waiting = self.waiting.get(&key)?;
        let now = priority(self.model.score(&waiting.link), waiting.mass);
        (!waiting.stays && now < queued * (1.0 - TOLERANCE)).then_some(now)
    }

    /// Like [`Self::fallen`], for at most [`MAX_FALLEN`] URLs between two that are fetched.
    pub(crate) fn sinks(&mut self, key: u128, queued: f32) -> Option<f32> {
        let fallen = self
            .fallen(key, queued)
            .filter(|_| self.n_fallen < MAX_FALLEN);
        self.n_fallen = if fallen.is_some() {
            self.n_fallen + 1
        } else {
            0
        };
        fallen
    }

    /// Counts a turn; returns the URL to explore if this turn explores.
    pub(crate) fn explore(&mut self) -> Option<u128> {
        match self.is_to_explore() {
            true => self.explore_next(),
            false => None,
        }
    }

    /// Counts a turn; returns whether this turn explores.
    pub(crate) fn is_to_explore(&mut self) -> bool {
        self.n_turns = self.n_turns.wrapping_add(1);
        self.explore_every > 0 && self.n_turns.is_multiple_of(self.explore_every)
    }

    /// Returns the URL to explore.
    pub(crate) fn explore_next(&mut self) -> Option<u128> {
        loop {
            let (mass, key) = self.massive.pop()?;
            let Some(waiting) = self.waiting.get_mut(&key) else {
                continue;
            };
            // Its mass has grown since, so its position in the heap is out of date.
            if waiting.mass > 1.1 * f32::from_bits(mass) {
                self.massive.push((waiting.mass.to_bits(), key));
                continue;
            }
            waiting.stays = self.slots.is_some();
            return Some(key);
        }
    }

    /// Scores a fetched page and learns from it; returns its score and the predicted one.
    pub(crate) fn fetched(&mut self, key: u128, page: &Words) -> (f32, Option<f32>) {
        let score = self
            .scorer
            .as_mut()
            .map_or(0.5, |scorer| scorer.score(page));
        let score = if score.is_finite() {
            score.clamp(0.0, 1.0)
        } else {
            0.5
        };
        (score, self.learn(key, page, score))
    }

    /// Learns the score of a page; returns the predicted one.
    pub(crate) fn learn(&mut self, key: u128, page: &Words, score: f32) -> Option<f32> {
        let link = self.forget(key).filter(|link| link.n_parents() > 0);
        let predicted = link.map(|link| self.learn_link(&link, score));
        self.model.read(page, score);
        self.harvest.add(score);
        predicted
    }

    /// Learns the score of the page that a link leads to; returns the predicted one.
    pub(crate) fn learn_link(&mut self, link: &Link, score: f32) -> f32 {
        let predicted = self.model.score(link);
        self.model.learn(link, score);
        predicted
    }

    /// Learns from the text of a page whose link was removed before.
    pub(crate) fn read(&mut self, page: &Words, score: f32) {
        self.model.read(page, score);
        self.harvest.add(score);
    }

    /// Removes a URL that is no longer queued; returns its record.
    pub(crate) fn forget(&mut self, key: u128) -> Option<Link> {
        let waiting = self.waiting.remove(&key)?;
        note(&mut self.slots, waiting.slot, None);
        if let Some(slots) = &mut self.slots {
            slots.free.push(waiting.slot);
        }
        Some(waiting.link)
    }

    /// Returns the mass of a queued URL.
    pub(crate) fn mass(&self, key: u128) -> Option<f32> {
        Some(self.waiting.get(&key)?.mass)
    }

    /// Returns the learned weight of a word of links.
    pub(crate) fn weight_of(&self, word: u64) -> f32 {
        self.model.weight_of(word)
    }
}

/// Estimates the mass of a URL from its priority, if nothing else is known.
pub(crate) fn likely_mass(priority: f32) -> f32 {
    let mass = (priority / (SCALE * 0.5)).powi(4);
    mass.clamp(BASE, SEED)
}

/// Records that a slot has changed.
fn note(slots: &mut Option<Slots>, slot: u32, key: Option<u128>) {
    if let Some(slots) = slots {
        slots.changed.insert(slot, key);
    }
}

fn priority(score: f32, mass: f32) -> f32 {
    SCALE * score * mass.max(1e-6).sqrt().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{FocusSettings as Settings, ScorerKind};

    fn settings() -> Settings {
        Settings {
            scorer: ScorerKind::Keywords,
            keywords: vec!["violin".to_owned()],
            ..Settings::default()
        }
    }

    /// The records of queued URLs and the learned model survive a restart. Slots of fetched URLs
    /// are reused, and a damaged slot or state is left out.
    #[test]
    fn issue_27_a_focus_survives() {
        let folder = tempfile::tempdir().unwrap();
        let judge = Judge::of(&settings()).unwrap().unwrap();
        let (mut focus, files) = Focus::open(folder.path(), &settings(), &judge, (0, 0)).unwrap();
        let words = judge.words("violin music", "/a", "p>a");
        focus.seed(1);
        for key in 2..50 {
            focus.found(key, 0.9, &words, 0.5);
        }
        focus.learn(2, &Words::of("a violin"), 0.8);
        focus.learn(1, &Words::of("a violin"), 0.1);
        focus.found(100, 0.2, &words, 3.0);
        files.write(&focus.take_changes(&judge, true)).unwrap();
        let reopen = || {
            Focus::open(folder.path(), &settings(), &judge, (2, 1))
                .unwrap()
                .0
        };
        let again = reopen();
        assert_eq!(again.waiting.len(), 48);
        for key in [3, 49, 100] {
            let [a, b] = [&focus, &again].map(|focus| &focus.waiting[&key]);
            assert_eq!((a.mass, &a.link), (b.mass, &b.link));
            assert_eq!(focus.model.score(&a.link), again.model.score(&b.link));
        }
        assert_eq!(again.harvest, focus.harvest);
        assert_eq!(again.slots.as_ref().unwrap().n, 49);
        let links = folder.path().join("focus.links");
        let mut bytes = std::fs::read(&links).unwrap();
        bytes[5 * 128 + 20] ^= 1;
        std::fs::write(&links, &bytes[..bytes.len() - 7]).unwrap();
        assert_eq!(reopen().waiting.len(), 46);
        // Another topic starts with nothing learned.
        let other = Settings {
            keywords: vec!["market".to_owned()],
            ..settings()
        };
        let other_judge = Judge::of(&other).unwrap().unwrap();
        let (other, _) = Focus::open(folder.path(), &other, &other_judge, (2, 1)).unwrap();
        assert_eq!((other.waiting.len(), other.harvest.n_pages), (0, 2));
    }

    /// What the model learns between two states survives a crash, commit by commit, up to a commit
    /// that was cut off. Changes of an older state are not applied to a newer one.
    #[test]
    fn issue_27_a_kill_loses_one_commit_of_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let judge = Judge::of(&settings()).unwrap().unwrap();
        let (mut focus, files) = Focus::open(folder.path(), &settings(), &judge, (0, 0)).unwrap();
        let words = judge.words("violin music", "/a", "p>a");
        let model = || {
            let (focus, _) = Focus::open(folder.path(), &settings(), &judge, (0, 0)).unwrap();
            focus.model.to_bytes()
        };
        let changes = folder.path().join("focus.changes");
        let mut before = Vec::new();
        for key in 1..=9 {
            focus.found(key, 0.9, &words, 0.5);
            focus.learn(key, &Words::of(&format!("a violin{key}")), 0.8);
            if key == 4 {
                before = std::fs::read(&changes).unwrap();
            }
            let with_state = key == 4;
            files
                .write(&focus.take_changes(&judge, with_state))
                .unwrap();
            assert_eq!(model(), focus.model.to_bytes(), "{key}");
        }
        let bytes = std::fs::read(&changes).unwrap();
        let last = focus.model.to_bytes();
        std::fs::write(&changes, &bytes[..bytes.len() - 1]).unwrap();
        assert!(model() != last);
        // As if the machine had stopped between state and changes.
        files.write(&focus.take_changes(&judge, true)).unwrap();
        std::fs::write(&changes, &before).unwrap();
        assert_eq!(model(), last);
    }

    /// After a crash the totals are those of the journal.
    #[test]
    fn issue_27_a_harvest_catches_up() {
        let mut harvest = Harvest::default();
        (0..1500).for_each(|n| harvest.add(if n % 2 == 0 { 1.0 } else { 0.0 }));
        harvest.catch_up(4200, 750 + 1350);
        assert_eq!((harvest.n_pages, harvest.n_fitting), (4200, 2100));
        assert_eq!(harvest.curve.len(), 4);
        assert!(
            harvest.curve.iter().all(|rate| (rate - 0.5).abs() < 1e-3),
            "{harvest:?}"
        );
        let before = harvest.clone();
        harvest.catch_up(4200, 2100);
        assert_eq!(harvest, before);
    }

    #[test]
    fn issue_27_exploring_takes_the_most_massive() {
        let judge = Judge::of(&settings()).unwrap().unwrap();
        let mut focus = Focus::unscored(0.5);
        let words = judge.words("", "", "");
        focus.found(1, 0.9, &words, 0.2);
        focus.found(2, 0.1, &words, 5.0);
        focus.found(3, 0.5, &words, 1.0);
        assert_eq!(
            [(); 4].map(|()| focus.explore()),
            [None, Some(2), None, Some(3)]
        );
    }
}
