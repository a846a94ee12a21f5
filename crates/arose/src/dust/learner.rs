//! The learner: hypotheses, evidence, probes, deferral, audits and blame.

use super::memory::{Frequent, Recent, Table};
use super::rule::{Parts, Rule};
use super::sequential::{Outcome, Sequential};
use super::standing::{Canonical, Config, Event, Place, RuleId, Standing, State};
use crate::digest::digest64;
use crate::mix::mix;

/// What is known of a rule.
#[derive(Debug, Clone)]
struct Hypothesis {
    standing: Standing,
    sum: f64,
    /// Contents of equal pairs, up to the number wanted.
    contents: Vec<u64>,
    /// Values met lately, how many, and how many were new.
    values: Vec<u32>,
    n_values: u32,
    n_new: u32,
    /// Probes that brought no page.
    n_failed: u32,
}

impl Hypothesis {
    /// Whether its values are nearly all different, or its name is known, or it has no values.
    fn is_session(&self) -> bool {
        let rule = &self.standing.rule;
        rule.is_known() || !rule.may_probe() || self.n_new * 10 >= self.n_values * 9
    }
}

/// An audit that failed: which of several rules is guilty?
#[derive(Debug, Clone)]
struct Blame {
    content: u64,
    rules: Vec<RuleId>,
    n_open: usize,
    is_settled: bool,
}

/// Why a URL was asked for.
#[derive(Debug, Clone)]
enum Wish {
    Probe(RuleId),
    Audit(Canonical),
    /// The canonical form, to be compared with an audited content.
    Compare {
        content: u64,
        url: String,
        rules: Vec<RuleId>,
    },
    Blame(usize, RuleId),
}

/// Values of a part that are remembered.
const MAX_VALUES: usize = 64;
/// Probes without a page after which no more are made.
const MAX_FAILED: u32 = 5;
/// Hypotheses of one template.
const MAX_RULES: usize = 64;
/// Wishes that wait.
const MAX_WISHES: usize = 20_000;
/// Rounds in which rules are applied.
const MAX_ROUNDS: usize = 10;
/// Deferred URLs of a rule after which half as many are audited.
const EARLY: f64 = 12.0;

/// Learns the rules of all sites of a crawl.
#[derive(Debug, Clone)]
pub struct Learner {
    config: Config,
    rules: Vec<Hypothesis>,
    /// Rules by scope.
    scopes: Table<Vec<RuleId>>,
    /// Sites that have active rules.
    active: Table<u32>,
    /// How common contents are in a scope.
    common: Table<Frequent>,
    /// Contents of URLs, and of groups of URLs that differ in one part.
    contents: Recent<u64>,
    wishes: Table<Vec<Wish>>,
    n_wishes: usize,
    blames: Vec<Blame>,
    events: Vec<Event>,
}

impl Learner {
    /// A learner that knows nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            contents: Recent::new(config.max_contents),
            config,
            rules: Vec::new(),
            scopes: Table::default(),
            active: Table::default(),
            common: Table::default(),
            wishes: Table::default(),
            n_wishes: 0,
            blames: Vec::new(),
            events: Vec::new(),
        }
    }

    /// All rules, in the order in which they were thought of.
    pub fn rules(&self) -> impl Iterator<Item = &Standing> {
        self.rules.iter().map(|rule| &rule.standing)
    }

    /// One rule.
    #[must_use]
    pub fn rule(&self, id: RuleId) -> Option<&Standing> {
        Some(&self.rules.get(id as usize)?.standing)
    }

    /// What has changed since this was asked last.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Puts a rule into a state, as a file or a person says; its evidence is kept if there is none
    /// yet.
    pub fn set(&mut self, standing: &Standing) -> Option<RuleId> {
        let id = self.hypothesis(&standing.scope, &standing.rule)?;
        let rule = &mut self.rules[id as usize];
        if rule.standing.n_same + rule.standing.n_different == 0 {
            let state = rule.standing.state;
            rule.standing = Standing {
                state,
                ..standing.clone()
            };
        }
        self.change(id, standing.state);
        Some(id)
    }

    /// The canonical form of a URL by the active rules, if it is another.
    #[must_use]
    pub fn canonical(&self, url: &str) -> Option<Canonical> {
        let parts = Parts::of(url)?;
        self.active.get(&key(parts.site()))?;
        let mut canonical = Canonical {
            url: url.to_owned(),
            is_fetchable: true,
            is_known: false,
            rules: Vec::new(),
        };
        for _ in 0..MAX_ROUNDS {
            let applied = canonical.rules.len();
            self.apply_all(&mut canonical);
            if canonical.rules.len() == applied {
                break;
            }
        }
        canonical.is_known = self.known(&canonical).is_some();
        (!canonical.rules.is_empty()).then_some(canonical)
    }

    /// The content of a page of this form that was fetched.
    fn known(&self, canonical: &Canonical) -> Option<u64> {
        let groups = canonical.rules.iter().map(|&id| group(id, &canonical.url));
        let mut keys = std::iter::once(key(&canonical.url)).chain(groups);
        keys.find_map(|key| self.contents.get(key))
    }

    fn apply_all(&self, canonical: &mut Canonical) {
        let Some(parts) = Parts::of(&canonical.url) else {
            return;
        };
        let mut rules: Vec<RuleId> = Vec::new();
        for scope in [parts.site().to_owned(), parts.template()] {
            let of_scope = self.scopes.get(&key(&scope)).into_iter().flatten();
            rules.extend(of_scope.filter(|&&id| self.is_active(id)));
        }
        rules.sort_by_cached_key(|&id| self.rules[id as usize].standing.rule.order());
        for id in rules {
            let standing = &self.rules[id as usize].standing;
            if let Some(url) = standing.rule.apply(&canonical.url) {
                canonical.url = url;
                canonical.is_fetchable &= standing.is_removable;
                if !canonical.rules.contains(&id) {
                    canonical.rules.push(id);
                }
            }
        }
    }

    fn is_active(&self, id: RuleId) -> bool {
        self.rules[id as usize].standing.state == State::Active
    }

    /// Where a URL that was found belongs. The caller fetches the canonical form if it is new, and
    /// otherwise [defers](Self::defer) the URL.
    #[must_use]
    pub fn place(&self, url: &str) -> Place {
        self.canonical(url).map_or(Place::Fetch, Place::Same)
    }

    /// Counts a URL that was not fetched because its canonical form is known; whether it is to be
    /// fetched all the same, as an audit.
    pub fn defer(&mut self, url: &str, canonical: &Canonical) -> bool {
        let mut share = self.config.audit_share;
        for &id in &canonical.rules {
            let rule = &mut self.rules[id as usize];
            let n_deferred = &mut rule.standing.n_deferred;
            *n_deferred = n_deferred.saturating_add(1);
            let early = 0.5 * EARLY / (EARLY + f64::from(*n_deferred));
            if !rule.is_session() {
                share = f64::max(share, early);
            }
        }
        let draw = mix(key(url) ^ 0x0061_7564_6974) as f64 / u64::MAX as f64;
        if draw >= share || !self.wish(url, Wish::Audit(canonical.clone())) {
            return false;
        }
        for &id in &canonical.rules {
            self.rules[id as usize].standing.n_audited += 1;
        }
        true
    }

    /// Takes down the content of a URL that was fetched: what stands for its text and that of its
    /// near duplicates; none for pages that do not count, such as errors and empty ones. Returns
    /// URLs to fetch for the sake of learning, except those that wait for a request already.
    pub fn fetched(&mut self, url: &str, content: Option<u64>) -> Vec<String> {
        let mut wanted = Vec::new();
        let wishes = self.wishes.remove(&key(url)).unwrap_or_default();
        let is_wish = !wishes.is_empty();
        self.n_wishes -= wishes.len();
        for wish in wishes {
            self.grant(url, content, wish, &mut wanted);
        }
        let Some(content) = content else {
            return wanted;
        };
        let own = self.canonical(url).map_or(url.to_owned(), |form| form.url);
        // A page that was fetched again is no new evidence.
        let is_new = self.contents.get(key(&own)).is_none();
        self.contents.insert(key(url), content);
        self.contents.insert(key(&own), content);
        if is_new {
            self.count(&own, content);
            self.learn(&own, content, is_wish, &mut wanted);
        }
        wanted
    }

    /// Counts how common a content is among the paths of a site.
    fn count(&mut self, url: &str, content: u64) {
        let Some(parts) = Parts::of(url) else {
            return;
        };
        let (site, page) = (key(parts.site()), mix(key(&parts.skeleton()) ^ content));
        // One page under many URLs counts once.
        if self.contents.get(page).is_none() {
            self.contents.insert(page, content);
            if self.common.len() < self.config.max_hypotheses || self.common.contains_key(&site) {
                self.common.entry(site).or_default().note(content);
            }
        }
    }

    /// Compares a page with those that differ in one part, and chooses a probe.
    fn learn(&mut self, own: &str, content: u64, is_wish: bool, wanted: &mut Vec<String>) {
        let Some(parts) = Parts::of(own) else {
            return;
        };
        let (site, template) = (parts.site().to_owned(), parts.template());
        let is_common = self.common.get(&key(&site));
        let is_common = is_common.is_some_and(|common| common.is_too_common(content));
        // As the bare form of what was fetched before.
        for scope in [&site, &template] {
            for id in self.scopes.get(&key(scope)).cloned().unwrap_or_default() {
                let group = group(id, own);
                if let Some(other) = self.contents.remove(group) {
                    self.rules[id as usize].standing.is_removable |= other == content;
                    self.judge(id, other == content, content, is_common);
                    self.contents.insert(group, content);
                }
            }
        }
        let mut probe = None;
        for rule in Rule::candidates(own) {
            let scope = match rule {
                Rule::Parameter(_) => &template,
                _ => &site,
            };
            let Some(id) = self.hypothesis(scope, &rule) else {
                continue;
            };
            if self.rules[id as usize].standing.state != State::Testing {
                continue;
            }
            let Some(bare) = rule.apply(own) else {
                continue;
            };
            let bare = self.canonical(&bare).map_or(bare, |form| form.url);
            // A probe repeats the values of another URL.
            let is_due = !is_wish && self.note_value(id, own);
            let group = group(id, &bare);
            if let Some(other) = self.contents.get(key(&bare)) {
                self.rules[id as usize].standing.is_removable |= other == content;
                self.judge(id, other == content, content, is_common);
            } else if let Some(other) = self.contents.get(group) {
                self.judge(id, other == content, content, is_common);
            } else if is_due && !is_common && probe.is_none() {
                probe = Some((id, bare));
            }
            self.contents.insert(group, content);
        }
        if let Some((id, bare)) = probe
            && self.wish(&bare, Wish::Probe(id))
        {
            self.rules[id as usize].standing.n_probes += 1;
            wanted.push(bare);
        }
    }

    /// Takes down the value of a part; whether it is time for a probe.
    fn note_value(&mut self, id: RuleId, url: &str) -> bool {
        let max_probes = self.config.max_probes;
        let rule = &mut self.rules[id as usize];
        let Some(value) = rule.standing.rule.value(url) else {
            return false;
        };
        let value = key(value) as u32;
        rule.n_values += 1;
        if !rule.values.contains(&value) {
            rule.n_new += 1;
            let at = rule.n_new as usize % MAX_VALUES;
            match rule.values.len() < MAX_VALUES {
                true => rule.values.push(value),
                false => rule.values[at] = value,
            }
        }
        let standing = &rule.standing;
        let may = standing.rule.may_probe()
            && rule.n_failed < MAX_FAILED
            && standing.n_probes < max_probes;
        may && (rule.n_values > 2 || standing.rule.is_known())
    }

    /// Takes down whether a pair was the same.
    fn judge(&mut self, id: RuleId, is_same: bool, content: u64, is_common: bool) {
        let min_contents = self.config.min_contents;
        let rule = &mut self.rules[id as usize];
        if rule.standing.state != State::Testing || (is_same && is_common) {
            return;
        }
        match is_same {
            true => {
                rule.standing.n_same += 1;
                rule.sum += match rule.is_session() {
                    true => self.config.test.same,
                    false => self.config.strict.same,
                };
                if rule.contents.len() < min_contents && !rule.contents.contains(&content) {
                    rule.contents.push(content);
                    rule.standing.n_contents += 1;
                }
            }
            false => {
                rule.standing.n_different += 1;
                rule.sum += self.config.test.different;
            }
        }
        match Sequential::outcome(rule.sum) {
            Outcome::Accepted if rule.contents.len() >= min_contents => {
                self.change(id, State::Active);
            }
            Outcome::Rejected => self.change(id, State::Rejected),
            // Evidence beyond the limit is not saved up.
            Outcome::Accepted => rule.sum = Sequential::ACCEPT,
            Outcome::Open => {}
        }
    }

    fn change(&mut self, id: RuleId, state: State) {
        let rule = &mut self.rules[id as usize];
        let before = std::mem::replace(&mut rule.standing.state, state);
        if state != State::Testing {
            rule.values = Vec::new();
        }
        let site = rule.standing.scope.split('/').next().unwrap_or_default();
        let site = key(site);
        match (before == State::Active, state == State::Active) {
            (false, true) => {
                *self.active.entry(site).or_default() += 1;
                self.events.push(Event::Activated(id));
            }
            (true, false) => {
                if let Some(n) = self.active.get_mut(&site) {
                    *n -= 1;
                    if *n == 0 {
                        self.active.remove(&site);
                    }
                }
                self.events.push(Event::Suspended(id));
            }
            _ => {}
        }
    }

    /// The number of a rule in a scope, made if there is room.
    fn hypothesis(&mut self, scope: &str, rule: &Rule) -> Option<RuleId> {
        let of_scope = self.scopes.get(&key(scope)).map_or(&[][..], Vec::as_slice);
        let found = of_scope.iter().find(|&&id| {
            let standing = &self.rules[id as usize].standing;
            standing.rule == *rule && standing.scope == scope
        });
        if let Some(&id) = found {
            return Some(id);
        }
        if self.rules.len() >= self.config.max_hypotheses || of_scope.len() >= MAX_RULES {
            return None;
        }
        let id = self.rules.len() as RuleId;
        let is_known = self.config.has_prior && rule.is_known();
        self.rules.push(Hypothesis {
            standing: Standing {
                scope: scope.to_owned(),
                rule: rule.clone(),
                state: State::Testing,
                n_same: 0,
                n_different: 0,
                n_contents: 0,
                n_probes: 0,
                n_deferred: 0,
                n_audited: 0,
                is_removable: false,
            },
            sum: if is_known { Sequential::KNOWN } else { 0.0 },
            contents: Vec::new(),
            values: Vec::new(),
            n_values: 0,
            n_new: 0,
            n_failed: 0,
        });
        self.scopes.entry(key(scope)).or_default().push(id);
        Some(id)
    }

    fn wish(&mut self, url: &str, wish: Wish) -> bool {
        if self.n_wishes >= MAX_WISHES {
            return false;
        }
        self.n_wishes += 1;
        self.wishes.entry(key(url)).or_default().push(wish);
        true
    }

    /// A URL was fetched that had been asked for.
    fn grant(&mut self, url: &str, content: Option<u64>, wish: Wish, wanted: &mut Vec<String>) {
        match (wish, content) {
            (Wish::Probe(id), None) => self.rules[id as usize].n_failed += 1,
            (Wish::Probe(_), Some(_)) | (Wish::Audit(_), None) => {}
            (Wish::Audit(canonical), Some(content)) => match self.known(&canonical) {
                Some(other) => {
                    self.compare(other == content, content, url, &canonical.rules, wanted)
                }
                None if canonical.is_fetchable => {
                    let compare = Wish::Compare {
                        content,
                        url: url.to_owned(),
                        rules: canonical.rules.clone(),
                    };
                    if self.wish(&canonical.url, compare) {
                        wanted.push(canonical.url);
                    }
                }
                None => {}
            },
            (
                Wish::Compare {
                    content,
                    url,
                    rules,
                },
                other,
            ) => {
                self.compare(other == Some(content), content, &url, &rules, wanted);
            }
            (Wish::Blame(blame, id), other) => self.blame(blame, id, other),
        }
    }

    /// An audited URL has the content of its canonical form, or another.
    fn compare(
        &mut self,
        is_same: bool,
        content: u64,
        url: &str,
        rules: &[RuleId],
        wanted: &mut Vec<String>,
    ) {
        let active = rules.iter().copied().filter(|&id| self.is_active(id));
        let active: Vec<RuleId> = active.collect();
        match (is_same, &active[..]) {
            (true, _) | (false, []) => {}
            (false, &[id]) => self.change(id, State::Suspended),
            (false, _) => self.look_for_guilty(content, url, &active, wanted),
        }
    }

    fn look_for_guilty(
        &mut self,
        content: u64,
        url: &str,
        rules: &[RuleId],
        wanted: &mut Vec<String>,
    ) {
        let number = self.blames.len();
        self.blames.push(Blame {
            content,
            rules: rules.to_vec(),
            n_open: 0,
            is_settled: false,
        });
        self.blames[number].n_open = rules.len();
        for &id in rules {
            let bare = self.rules[id as usize].standing.rule.apply(url);
            let bare = bare.unwrap_or_default();
            match self.contents.get(key(&bare)) {
                None if self.config.max_probes > 0 && self.wish(&bare, Wish::Blame(number, id)) => {
                    wanted.push(bare);
                }
                // What cannot be fetched says nothing against the rule.
                known => self.blame(number, id, known.or(Some(content))),
            }
        }
    }

    /// One rule alone was applied to a URL whose audit failed.
    fn blame(&mut self, number: usize, id: RuleId, content: Option<u64>) {
        let blame = &mut self.blames[number];
        blame.n_open -= 1;
        if content != Some(blame.content) {
            blame.is_settled = true;
            if self.is_active(id) {
                self.change(id, State::Suspended);
            }
            return;
        }
        // None is guilty alone: the youngest goes.
        if blame.n_open == 0 && !blame.is_settled {
            let youngest = blame.rules.iter().copied().max();
            if let Some(id) = youngest.filter(|&id| self.is_active(id)) {
                self.change(id, State::Suspended);
            }
        }
    }
}

fn key(text: &str) -> u64 {
    digest64(text.as_bytes())
}

/// What stands for all URLs that differ in one part from each other.
fn group(id: RuleId, bare: &str) -> u64 {
    mix(key(bare) ^ mix(u64::from(id) + 1))
}
