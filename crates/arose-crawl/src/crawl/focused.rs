//! Focused crawls: scores of pages, and priorities of the URLs they link to.
//!
//! Pages are scored where they are parsed. Here, the scores reach the frontier. Links carry the
//! score of their page. Queued URLs have the priority of the [`Focus`] in place of their mass. If
//! the prediction for a URL has fallen since it was queued, it goes back into its queue when its
//! turn comes. The mass that pages pass on is not affected.
//!
//! Scores of an external program arrive later. The page waits for its score in memory; neither its
//! host nor the fetcher waits. If the score takes too long, the links are queued as those of a page
//! with score 0.5, and their priorities are corrected when it arrives.

use std::collections::BTreeMap;

use arose::focus::{Link, LinkWords, Words};

use super::background::{Command, Text};
use super::*;
use crate::archive::{Note, Packer, Part};
use crate::counters::Counter;
use crate::fingerprint::Fingerprint;
use crate::focus::{Changes, FIRST, Focus, FocusFiles, Judge, Judged, ScoreReport, likely_mass};
use crate::frontier::{QueueEntry, Tag};
use crate::order::Level;
use crate::page::OnTopic;
use crate::settings::seconds;

/// Maximum number of pages that wait for their scores.
const MAX_HELD: usize = 256;

/// Maximum number of pages whose links are corrected when their scores arrive. Scores of further
/// pages are only counted.
const MAX_CORRECTED: usize = 4096;

/// Maximum number of scores that arrive before the reports of their pages.
const MAX_EARLY: usize = 8192;

/// Maximum number of words whose text is remembered, and number of words shown.
const MAX_NAMES: usize = 50_000;
const N_SHOWN: usize = 10;

/// Number of points of the harvest curve that are shown.
const N_POINTS: usize = 200;

/// Time between two writes of the complete state. What the link model learns in between is written
/// with each commit.
const KEEP: Duration = Duration::from_secs(30);

/// The smallest priority that queues can represent.
const LEAST: f32 = 0.126;

/// Maximum number of URLs tried for one exploration.
const MAX_EXPLORED: usize = 8;

/// The data that links take from their page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parent {
    /// The score of the page.
    score: f32,
    /// Identifies its URL.
    key: u128,
}

impl Default for Parent {
    fn default() -> Self {
        Self { score: 0.5, key: 0 }
    }
}

/// The state of a crawl that looks for a topic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topic {
    /// Number of pages with a score.
    pub n_pages: u64,
    /// Of these: with a score of at least 0.5.
    pub n_fitting: u64,
    /// The share of these in each 1,000 pages, for the last points.
    pub harvest: Vec<f32>,
    /// The words of links that speak most for a page.
    pub best_words: Vec<(String, f32)>,
    /// The words of links that speak most against a page.
    pub worst_words: Vec<(String, f32)>,
    /// The pages that fell furthest below their predicted scores: URL, score, prediction.
    pub worst_pages: Vec<(String, f32, f32)>,
}

/// A page whose links were queued without its score.
#[derive(Debug)]
struct Late {
    key: u128,
    note: Note,
    words: Words,
    /// Its record before it was fetched.
    link: Option<Link>,
    targets: Vec<u128>,
    /// Whether it was fetched before.
    is_again: bool,
}

/// The focus of a crawl.
pub(super) struct Focusing {
    focus: Focus,
    judge: Arc<Judge>,
    packer: Packer,
    is_hard: bool,
    patience: Duration,
    /// Pages that wait for their scores, by number, with the time since when they wait.
    held: BTreeMap<u64, (Report, Duration)>,
    late: HashMap<u64, Late>,
    /// Scores of pages that are not reported yet.
    early: BTreeMap<u64, Option<f32>>,
    names: HashMap<u64, Box<str>>,
    worst_pages: Vec<(String, f32, f32)>,
    /// The number of failures of the program at the last check and in the last report.
    n_failures: u64,
    n_told: u64,
    n_bad: u64,
    /// When the state was last written.
    kept: Duration,
    is_closing: bool,
}

impl Focusing {
    /// Opens the focus of a crawl.
    pub(super) fn open(
        folder: &Path,
        settings: &Settings,
        judge: &Arc<Judge>,
        counters: &Counters,
    ) -> Result<(Self, FocusFiles), Error> {
        let [n_pages, n_fitting] = [Counter::Scored, Counter::OnTopic].map(|c| counters.get(c));
        let (focus, files) = Focus::open(folder, &settings.focus, judge, (n_pages, n_fitting))?;
        let focusing = Self {
            focus,
            judge: Arc::clone(judge),
            packer: Packer::new(settings.archive.level),
            is_hard: settings.focus.hard,
            patience: seconds(settings.focus.patience),
            held: BTreeMap::new(),
            late: HashMap::new(),
            early: BTreeMap::new(),
            names: HashMap::new(),
            worst_pages: Vec::new(),
            n_failures: 0,
            n_told: 0,
            n_bad: 0,
            kept: Duration::ZERO,
            is_closing: false,
        };
        Ok((focusing, files))
    }

    /// Returns the number of pages that wait for their scores.
    pub(super) fn n_held(&self) -> usize {
        self.held.len()
    }

    /// Returns the number of pages that did not wait for their scores, which are still outstanding.
    pub(super) fn n_late(&self) -> usize {
        self.late.len()
    }

    /// Returns when the first of them has waited long enough.
    pub(super) fn overdue(&self) -> Option<Duration> {
        let (_, since) = self.held.first_key_value()?.1;
        Some(*since + self.patience)
    }

    /// Writes the complete state with the next commit.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Returns the changes to be written with a commit.
    pub(super) fn take_changes(&mut self, now: Duration) -> Changes {
        let with_state = std::mem::take(&mut self.is_closing) || now >= self.kept + KEEP;
        if with_state {
            self.kept = now;
        }
        self.focus.take_changes(&self.judge, with_state)
    }

    /// Returns the state of the crawl for display.
    pub(super) fn shown(&self) -> Topic {
        let words = self.names.iter();
        let words = words.map(|(word, name)| (name.to_string(), self.focus.weight_of(*word)));
        let mut words: Vec<(String, f32)> = words.collect();
        words.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let best = words
            .iter()
            .take(N_SHOWN)
            .filter(|(_, weight)| *weight > 0.0);
        let worst = words
            .iter()
            .rev()
            .take(N_SHOWN)
            .filter(|(_, weight)| *weight < 0.0);
        let harvest = &self.focus.harvest;
        let from = harvest.curve.len().saturating_sub(N_POINTS);
        Topic {
            n_pages: harvest.n_pages,
            n_fitting: harvest.n_fitting,
            harvest: harvest.curve[from..].to_vec(),
            best_words: best.cloned().collect(),
            worst_words: worst.cloned().collect(),
            worst_pages: self.worst_pages.clone(),
        }
    }

    /// Records the page if it is one of those furthest below their predicted scores.
    fn note_page(&mut self, url: &str, score: f32, predicted: Option<f32>) {
        let Some(predicted) = predicted else { return };
        let miss = |page: &(String, f32, f32)| page.2 - page.1;
        let page = (url.to_owned(), score, predicted);
        if score >= 0.5 || miss(&page) <= 0.0 {
            return;
        }
        let at = self
            .worst_pages
            .partition_point(|other| miss(other) >= miss(&page));
        self.worst_pages.insert(at, page);
        self.worst_pages.truncate(N_SHOWN);
    }
}

impl Crawl {
    /// Returns a report that can be processed now. A report that waits for its score is kept back.
    pub(super) fn hold(&mut self, mut report: Report) -> Option<Report> {
        let now = self.now();
        let Some(topic) = &mut self.topic else {
            return Some(report);
        };
        let asked = match report.on_topic.as_ref().and_then(|on| on.page.as_ref()) {
            Some((_, Judged::Asked(id))) => *id,
            _ => return Some(report),
        };
        match topic.early.remove(&asked) {
            Some(score) => {
                settle(&mut report, score);
                Some(report)
            }
            None => {
                topic.held.insert(asked, (report, now));
                None
            }
        }
    }

    /// Processes scores that have arrived, and pages that have waited long enough.
    pub(super) fn take_scores(&mut self) -> Result<(), Error> {
        let now = self.now();
        let Some(topic) = &mut self.topic else {
            return Ok(());
        };
        let outcomes = topic.judge.program().map(|program| program.take());
        let mut ready = Vec::new();
        let mut corrected = Vec::new();
        for ScoreReport { id, score } in outcomes.into_iter().flatten() {
            if let Some((mut report, _)) = topic.held.remove(&id) {
                settle(&mut report, score);
                ready.push(report);
            } else if let Some(late) = topic.late.remove(&id) {
                corrected.push((late, score));
            } else {
                topic.early.insert(id, score);
                if topic.early.len() > MAX_EARLY {
                    topic.early.pop_first();
                }
            }
        }
        while let Some(first) = topic.held.first_entry() {
            let is_late = now >= first.get().1 + topic.patience;
            if !is_late && topic.held.len() <= MAX_HELD {
                break;
            }
            ready.extend(topic.held.pop_first().map(|(_, (report, _))| report));
            self.counters.add(Counter::LateScores, 1);
        }
        for (late, score) in corrected {
            self.correct(late, score)?;
        }
        ready
            .into_iter()
            .try_for_each(|report| self.take_read(report))
    }

    /// Returns the data that the links of a page take from it. Links that must not be followed are
    /// removed.
    pub(super) fn parent(&mut self, report: &mut Report) -> Parent {
        let Some(topic) = &mut self.topic else {
            return Parent::default();
        };
        let Some(on_topic) = &mut report.on_topic else {
            return Parent::default();
        };
        let mut parent = Parent {
            key: on_topic.key,
            ..Parent::default()
        };
        match &mut on_topic.page {
            Some((_, Judged::Score(score))) => {
                if !score.is_finite() {
                    *score = 0.5;
                }
                *score = score.clamp(0.0, 1.0);
                parent.score = *score;
            }
            Some((words, Judged::Asked(id))) => {
                let links = report.links.iter().filter(|found| !found.is_repeat);
                let targets = links.map(|found| found.fingerprint.key());
                let late = Late {
                    key: on_topic.key,
                    note: on_topic.note.clone(),
                    words: std::mem::take(words),
                    link: None,
                    targets: match topic.late.len() < MAX_CORRECTED {
                        true => targets.collect(),
                        false => Vec::new(),
                    },
                    is_again: report.revisit.is_some(),
                };
                topic.late.insert(*id, late);
            }
            Some((_, Judged::None)) | None => {}
        }
        // A user who passes a seed wants the pages it links to.
        if topic.is_hard && parent.score < 0.5 && report.depth > 0 && !report.links.is_empty() {
            report.links.clear();
            report.counts = crate::guard::Counts::default();
            self.counters.add(Counter::OffTopic, 1);
        }
        parent
    }

    /// Learns from a page whose links are queued, and writes its scores to the archive.
    pub(super) fn learn_from(&mut self, report: &mut Report) {
        let (Some(topic), Some(on_topic)) = (&mut self.topic, report.on_topic.take()) else {
            return;
        };
        let OnTopic {
            key,
            note,
            page,
            names,
        } = *on_topic;
        for (word, name) in names {
            if topic.names.len() < MAX_NAMES {
                topic.names.insert(word, name);
            }
        }
        let is_again = report.revisit.is_some();
        let (score, predicted) = match page {
            Some((words, Judged::Score(score))) if !is_again => {
                self.counters.add(Counter::Scored, 1);
                self.counters.add(Counter::OnTopic, u64::from(score >= 0.5));
                (score, topic.focus.learn(key, &words, score))
            }
            Some((_, Judged::Score(score))) => (score, None),
            Some((_, Judged::Asked(id))) => {
                let link = topic.focus.forget(key);
                if let Some(late) = topic.late.get_mut(&id) {
                    late.link = link;
                }
                return;
            }
            page => {
                let is_unscored = page.is_some() && !is_again;
                self.counters.add(Counter::Unscored, is_unscored.into());
                topic.focus.forget(key);
                return;
            }
        };
        topic.note_page(note.url(), score, predicted);
        if !report.is_unread {
            let scores = note.pack(score, predicted, &mut topic.packer);
            report.record.append(scores);
        }
    }

    /// Processes a score that arrived late, if it arrived at all.
    fn correct(&mut self, late: Late, score: Option<f32>) -> Result<(), Error> {
        let Some(topic) = &mut self.topic else {
            return Ok(());
        };
        let Some(score) = score else {
            self.counters
                .add(Counter::Unscored, u64::from(!late.is_again));
            return Ok(());
        };
        let mut predicted = None;
        if !late.is_again {
            let link = late.link.or_else(|| topic.focus.forget(late.key));
            predicted = link.map(|link| topic.focus.learn_link(&link, score));
            topic.focus.read(&late.words, score);
            self.counters.add(Counter::Scored, 1);
            self.counters.add(Counter::OnTopic, u64::from(score >= 0.5));
        }
        topic.note_page(late.note.url(), score, predicted);
        let record = late.note.pack(score, predicted, &mut topic.packer);
        let unscored = Parent::default().score;
        let priorities = late.targets.iter().filter_map(|&target| {
            let priority = topic.focus.correct(target, unscored, score)?;
            Some((target, priority))
        });
        let priorities: Vec<_> = priorities.collect();
        for (target, priority) in priorities {
            self.set_priority(target, priority);
        }
        self.background.send(Command::Append {
            part: Part::Pages,
            record,
            claim: None,
            date: (self.seams.clock)().as_secs() as i64,
            visited: None,
        })
    }

    /// Returns the weight of a new URL to which a link brings this mass.
    pub(super) fn focused(&mut self, weight: Weight, pending: &Pending, mass: f32) -> Weight {
        let Some(topic) = &mut self.topic else {
            return weight;
        };
        let key = pending.found.fingerprint.key();
        let mass = crate::order::BASE + mass;
        let nothing = LinkWords::default();
        let words = pending.found.words.as_deref().unwrap_or(&nothing);
        let priority = match &pending.found {
            found if pending.is_seed() || found.kind == Kind::Sitemap => topic.focus.seed(key),
            found if found.is_redirect => topic.focus.moved(pending.parent.key, key, mass),
            _ => topic.focus.found(key, pending.parent.score, words, mass),
        };
        Weight {
            mass: Level::of(priority),
            ..weight
        }
    }

    /// Records a link to a known URL.
    pub(super) fn meet_again(&mut self, pending: &Pending) {
        let Some(topic) = &mut self.topic else {
            return;
        };
        let found = &pending.found;
        let key = found.fingerprint.key();
        if pending.is_seed() {
            if topic.focus.mass(key).is_some() {
                let priority = topic.focus.seed(key);
                self.set_priority(key, priority);
            }
        } else if let (Some(words), false) = (&found.words, found.is_repeat) {
            topic.focus.met(key, pending.parent.score, words);
        }
    }

    /// Takes the mass out of the contribution of a link and adds it to the record of the URL in the
    /// focus.
    pub(super) fn give_mass(&mut self, to: Fingerprint, gift: Gift) -> Gift {
        let Some(topic) = &mut self.topic else {
            return gift;
        };
        if let Some(priority) = topic.focus.give(to.key(), gift.mass) {
            self.set_priority(to.key(), priority);
        }
        Gift { mass: 0.0, ..gift }
    }

    /// Sets the priority of a queued URL. Returns whether it changed, or may change because its
    /// host is not in memory.
    fn set_priority(&mut self, key: u128, priority: f32) -> bool {
        let [host, rest] = [(key >> 64) as u64, key as u64];
        let Some(host) = self.frontier.find(host) else {
            return false;
        };
        let is_cold = !self.frontier.hosts.is_warm(host);
        let changed = self.frontier.reweigh(host, rest, Level::of(priority));
        self.note_weight(host, changed);
        is_cold || changed.is_some()
    }

    /// Whether a URL whose turn it is goes back into its queue because its prediction has fallen.
    pub(super) fn sinks(&mut self, id: HostId, turn: Turn, text: &Text, url: &NormalUrl) -> bool {
        let Some(topic) = &mut self.topic else {
            return false;
        };
        let queued = turn.weight.mass.amount();
        let is_page = text.kind == Kind::Page && !self.recrawl.is_again(turn.place);
        let key = Fingerprint::of(url).key();
        if !is_page || turn.n_tries > 0 || queued <= LEAST {
            return false;
        }
        if let Some(priority) = topic.focus.sinks(key, queued) {
            let weight = Weight {
                mass: Level::of(priority),
                ..turn.weight
            };
            let entry = QueueEntry::new(Tag::of(key as u64), turn.place, weight, text.class);
            self.frontier.hosts[id as usize].push(entry, text.is_last);
            return true;
        }
        self.explore();
        false
    }

    /// Counts a fetched page. Now and then, the next URL is chosen by its mass.
    fn explore(&mut self) {
        let next = |topic: &mut Box<Focusing>| topic.focus.explore_next();
        let is_due = self
            .topic
            .as_mut()
            .is_some_and(|topic| topic.focus.is_to_explore());
        for _ in 0..if is_due { MAX_EXPLORED } else { 0 } {
            match self.topic.as_mut().and_then(next) {
                Some(key) if self.set_priority(key, FIRST) => return,
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Returns the weight of a URL by its links alone, whatever its priority.
    pub(super) fn unfocused(&self, weight: Weight, url: &NormalUrl) -> Weight {
        let Some(topic) = &self.topic else {
            return weight;
        };
        let mass = topic.focus.mass(Fingerprint::of(url).key());
        let mass = mass.unwrap_or_else(|| likely_mass(weight.mass.amount()));
        Weight {
            mass: Level::of(mass),
            ..weight
        }
    }

    /// Forgets a URL that is given up.
    pub(super) fn forget(&mut self, url: &NormalUrl) {
        if let Some(topic) = &mut self.topic {
            topic.focus.forget(Fingerprint::of(url).key());
        }
    }

    /// Like [`Self::forget`], for the text of a URL that may be invalid.
    pub(super) fn forget_at(&mut self, id: HostId, text: &Text) {
        let origin = &self.frontier.hosts[id as usize].origin;
        if self.topic.is_some()
            && let Some(url) = NormalUrl::from_parts(origin, &text.rest)
        {
            self.forget(&url);
        }
    }

    /// Counts the failures of the program, and reports them.
    pub(super) fn look_at_scorer(&mut self, control: &Control) {
        let Some(topic) = &mut self.topic else {
            return;
        };
        let Some(program) = topic.judge.program() else {
            return;
        };
        let tally = &program.tally;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let [died, hung] = [read(&tally.n_died), read(&tally.n_hung)];
        let [disordered, bad] = [read(&tally.n_disordered), read(&tally.n_bad)];
        let n_failures = died + hung + disordered;
        self.counters
            .add(Counter::ScorerFailures, n_failures - topic.n_failures);
        self.counters.add(Counter::BadScores, bad - topic.n_bad);
        (topic.n_failures, topic.n_bad) = (n_failures, bad);
        if n_failures + bad >= 2 * topic.n_told.max(1) || n_failures + bad > 0 && topic.n_told == 0
        {
            topic.n_told = n_failures + bad;
            control.say(format!(
                "the scorer has ended {died} times, taken too long {hung} times, responded out \
                 of order {disordered} times, and returned {bad} values that are not scores; \
                 pages without a score count as 0.5"
            ));
        }
    }
}

/// Records the program's result for a page.
fn settle(report: &mut Report, score: Option<f32>) {
    if let Some((_, verdict)) = report.on_topic.as_mut().and_then(|on| on.page.as_mut()) {
        *verdict = score.map_or(Judged::None, Judged::Score);
    }
}
