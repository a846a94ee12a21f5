//! Focus: what waits is ordered by how well it is likely to fit a topic.
//!
//! A scorer judges pages that were fetched, a link model predicts the scores of those that wait
//! ([`arose::focus`]). Here both meet the frontier: each URL that waits has a record of the links
//! to it, its *priority* is the predicted score times the fourth root of its mass, and the queues
//! are ordered by priority instead of mass. Predictions change with every page, so the one of a URL
//! is made again when a link to it is found, and when its turn comes: if it has fallen, the URL
//! goes back into its queue.
//!
//! One turn in twenty explores: it goes to the URL with the largest mass, whatever its score, so
//! that the model learns from what it would not have chosen, and topics are reached through pages
//! off them.
//!
//! Rehearsals play such crawls over known graphs ([`crate::rehearsal::Focused`]); `arose crawl`
//! does not use it yet.
//!
//! Memory: about 200 bytes per URL that waits, for at most `MAX_WAITING` of them; further ones
//! keep the priority that they were found with.

use std::collections::{BinaryHeap, HashMap};

use arose::focus::{Link, LinkModel, LinkWords, Score, Words};

/// URLs whose links are remembered.
pub(crate) const MAX_WAITING: usize = 2_000_000;

/// The priority of a URL with a score and a mass of 1. Queues tell priorities from 1/8 to 2,048
/// apart.
const SCALE: f32 = 256.0;

/// How much of its priority a URL may have lost since it was queued and is fetched all the same.
const TOLERANCE: f32 = 0.02;

/// Fetches of one point of the harvest curve, and points that are kept.
const PER_POINT: u64 = 1000;
const MAX_POINTS: usize = 10_000;

/// What is known of a URL that waits.
#[derive(Debug, Clone)]
struct Waiting {
    link: Link,
    mass: f32,
}

/// How many pages fit the topic.
#[derive(Debug, Clone, Default, PartialEq)]
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

    /// The share of pages that fit.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.n_fitting as f64 / self.n_pages.max(1) as f64
    }
}

/// The state of a focused crawl.
pub struct Focus {
    scorer: Box<dyn Score + Send>,
    model: LinkModel,
    waiting: HashMap<u128, Waiting>,
    /// URLs by the mass that they had when it was noted.
    massive: BinaryHeap<(u32, u128)>,
    /// Turns between two that explore; 0 for none.
    explore_every: u32,
    n_turns: u32,
    /// What was scored.
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
    /// Begins with a scorer, and a share of turns that explore.
    #[must_use]
    pub fn new(scorer: Box<dyn Score + Send>, explore: f64) -> Self {
        Self {
            scorer,
            model: LinkModel::new(),
            waiting: HashMap::new(),
            massive: BinaryHeap::new(),
            explore_every: match explore > 0.0 {
                true => (1.0 / explore).round().max(1.0) as u32,
                false => 0,
            },
            n_turns: 0,
            harvest: Harvest::default(),
        }
    }

    /// The words of a link.
    pub(crate) fn words(&self, anchor: &str, url: &str, tag_path: &str) -> LinkWords {
        LinkWords::new(anchor, url, tag_path, &*self.scorer)
    }

    /// Takes down a link to a URL that waits, from a page with a score, which brings so much mass;
    /// returns the priority of the URL.
    pub(crate) fn found(&mut self, key: u128, score: f32, words: &LinkWords, mass: f32) -> f32 {
        let is_full = self.waiting.len() >= MAX_WAITING;
        if is_full && !self.waiting.contains_key(&key) {
            let mut link = Link::default();
            link.add(score, words);
            return priority(self.model.score(&link), mass);
        }
        let waiting = self.waiting.entry(key).or_insert_with(|| Waiting {
            link: Link::default(),
            mass: 0.0,
        });
        waiting.link.add(score, words);
        let before = waiting.mass;
        waiting.mass += mass;
        let has_grown = before == 0.0 || waiting.mass.log2().floor() > before.log2().floor();
        if has_grown && self.explore_every > 0 && self.massive.len() < 2 * MAX_WAITING {
            self.massive.push((waiting.mass.to_bits(), key));
        }
        priority(self.model.score(&waiting.link), waiting.mass)
    }

    /// The priority that a URL has by now, if that is notably less than it was queued with.
    pub(crate) fn fallen(&self, key: u128, queued: f32) -> Option<f32> {
        let waiting = self.waiting.get(&key)?;
        let now = priority(self.model.score(&waiting.link), waiting.mass);
        (now < queued * (1.0 - TOLERANCE)).then_some(now)
    }

    /// Counts a turn; the URL to explore if it is time to.
    pub(crate) fn explore(&mut self) -> Option<u128> {
        self.n_turns += 1;
        if self.explore_every == 0 || !self.n_turns.is_multiple_of(self.explore_every) {
            return None;
        }
        loop {
            let (mass, key) = self.massive.pop()?;
            let Some(waiting) = self.waiting.get(&key) else {
                continue;
            };
            // It has become more since: its place in the order is another.
            if waiting.mass > 1.1 * f32::from_bits(mass) {
                self.massive.push((waiting.mass.to_bits(), key));
                continue;
            }
            return Some(key);
        }
    }

    /// Scores a page that was fetched, and learns from it; returns its score and the one that was
    /// predicted.
    pub(crate) fn fetched(&mut self, key: u128, page: &Words) -> (f32, Option<f32>) {
        let score = self.scorer.score(page);
        let score = if score.is_finite() {
            score.clamp(0.0, 1.0)
        } else {
            0.5
        };
        let waiting = self.waiting.remove(&key);
        let predicted = waiting.map(|waiting| {
            let predicted = self.model.score(&waiting.link);
            self.model.learn(&waiting.link, score);
            predicted
        });
        self.model.read(page, score);
        self.harvest.add(score);
        (score, predicted)
    }

    /// The mass of a URL that waits.
    pub(crate) fn mass(&self, key: u128) -> Option<f32> {
        Some(self.waiting.get(&key)?.mass)
    }
}

fn priority(score: f32, mass: f32) -> f32 {
    SCALE * score * mass.max(1e-6).sqrt().sqrt()
}
