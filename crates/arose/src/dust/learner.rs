//! The learner: hypotheses, evidence, probes, deferral, audits and blame.

use super::memory::{Frequent, Recent, Table};
use super::rule::{Parts, Rule};
use super::sequential::{Outcome, Sequential};
use super::standing::{Canonical, Config, Event, Place, RuleId, Standing, State};
use super::wishes::{Blame, Wish, Wishes};
use crate::digest::digest64;
use crate::mix::mix;
use std::collections::BTreeSet;

/// What is known of a rule.
#[derive(Debug, Clone)]
pub(super) struct Hypothesis {
    pub(super) standing: Standing,
    /// Stands for scope and rule, in every run alike.
    name: u64,
    pub(super) sum: f64,
    /// Contents of equal pairs, up to the number wanted.
    pub(super) contents: Vec<u64>,
    /// Values met lately, how many, and how many were new.
    values: Vec<u32>,
    pub(super) n_values: u32,
    pub(super) n_new: u32,
    /// Probes that brought no page.
    pub(super) n_failed: u32,
}

impl Hypothesis {
    /// Stands for the rule in all templates of its site.
    pub(super) fn of_site(&self) -> u64 {
        let Standing { scope, rule, .. } = &self.standing;
        let site = scope.split('/').next().unwrap_or_default();
        key(&format!("{site} {rule}"))
    }

    /// Whether its values are nearly all different, or its name is known, or it has no values.
    fn is_session(&self) -> bool {
        let rule = &self.standing.rule;
        rule.is_known() || !rule.may_probe() || self.n_new * 10 >= self.n_values * 9
    }
}

/// Values of a part that are remembered.
const MAX_VALUES: usize = 64;
/// Probes without a page after which no more are made.
const MAX_FAILED: u32 = 5;
/// Hypotheses of one template.
const MAX_RULES: usize = 64;
/// The part of all hypotheses that one site may have.
const SITE_PART: usize = 20;
/// Rounds in which rules are applied.
const MAX_ROUNDS: usize = 10;
/// Deferred URLs of a rule after which half as many are audited.
const EARLY: f64 = 12.0;

/// Learns the rules of all sites of a crawl.
#[derive(Debug, Clone)]
pub struct Learner {
    config: Config,
    pub(super) rules: Vec<Hypothesis>,
    /// Rules by scope.
    scopes: Table<Vec<RuleId>>,
    /// Sites that have active rules.
    active: Table<u32>,
    /// How common contents are in a scope.
    common: Table<Frequent>,
    /// Contents of URLs, and of groups of URLs that differ in one part.
    pub(super) contents: Recent<u64>,
    pub(super) wishes: Wishes,
    events: Vec<Event>,
    /// Hypotheses of each site: one site must not take the room of all others.
    n_of_site: Table<u32>,
    /// Contents of equal pairs of a rule in all templates of a site.
    pub(super) of_sites: Table<Vec<u64>>,
    /// Rules of which something else is known than when this was asked last.
    changed: BTreeSet<RuleId>,
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
            wishes: Wishes::default(),
            events: Vec::new(),
            n_of_site: Table::default(),
            of_sites: Table::default(),
            changed: BTreeSet::new(),
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

    /// The rules of which something else is known than when this was asked last, in order.
    pub fn take_changed(&mut self) -> Vec<RuleId> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    /// Puts a rule into a state, as a file or a person says; its evidence is kept if there is none
    /// yet.
    pub fn set(&mut self, standing: &Standing) -> Option<RuleId> {
        let id = self.hypothesis(&standing.scope, &standing.rule)?;
        let rule = self.touch(id);
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
        let groups = canonical
            .rules
            .iter()
            .map(|&id| self.group(id, &canonical.url));
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

    pub(super) fn is_active(&self, id: RuleId) -> bool {
        self.rules[id as usize].standing.state == State::Active
    }

    /// A rule of which something changes.
    fn touch(&mut self, id: RuleId) -> &mut Hypothesis {
        self.changed.insert(id);
        &mut self.rules[id as usize]
    }

    /// Whether all rules that gave a canonical form still hold.
    #[must_use]
    pub fn holds(&self, canonical: &Canonical) -> bool {
        canonical.rules.iter().all(|&id| self.is_active(id))
    }

    /// Whether the content of a URL is wanted for the sake of learning: a probe, or an audit.
    #[must_use]
    pub fn is_wanted(&self, url: &str) -> bool {
        self.wishes.has(key(url))
    }

    /// The content of a URL that was fetched, as far as it is remembered.
    #[must_use]
    pub fn content(&self, url: &str) -> Option<u64> {
        self.contents.get(key(url))
    }

    /// What stands for all URLs that differ in one part from each other.
    fn group(&self, id: RuleId, bare: &str) -> u64 {
        mix(key(bare) ^ mix(self.rules[id as usize].name))
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
            let rule = self.touch(id);
            let n_deferred = &mut rule.standing.n_deferred;
            *n_deferred = n_deferred.saturating_add(1);
            let early = 0.5 * EARLY / (EARLY + f64::from(*n_deferred));
            if !rule.is_session() {
                share = f64::max(share, early);
            }
        }
        let draw = mix(key(url) ^ 0x0061_7564_6974) as f64 / u64::MAX as f64;
        if draw < share {
            self.audit(url, canonical);
        }
        draw < share
    }

    /// Has the content of a URL compared with that of its canonical form when it is fetched.
    pub fn audit(&mut self, url: &str, canonical: &Canonical) {
        self.wish(url, Wish::Audit(canonical.clone()));
        for &id in &canonical.rules {
            self.touch(id).standing.n_audited += 1;
        }
    }

    /// Takes down the content of a URL that was fetched: what stands for its text and that of its
    /// near duplicates; none for pages that do not count, such as errors and empty ones. Returns
    /// URLs to fetch for the sake of learning, except those that wait for a request already.
    pub fn fetched(&mut self, url: &str, content: Option<u64>) -> Vec<String> {
        let mut wanted = Vec::new();
        let wishes = self.wishes.take(key(url));
        let is_wish = !wishes.is_empty();
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
        let content = self.words(content);
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
        let words = self.words(content);
        let is_common = is_common.is_some_and(|common| common.is_too_common(words));
        // As the bare form of what was fetched before.
        for scope in [&site, &template] {
            for id in self.scopes.get(&key(scope)).cloned().unwrap_or_default() {
                let group = self.group(id, own);
                if let Some(other) = self.contents.remove(group) {
                    self.touch(id).standing.is_removable |= other == content;
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
            let group = self.group(id, &bare);
            if let Some(other) = self.contents.get(key(&bare)) {
                self.touch(id).standing.is_removable |= other == content;
                self.judge(id, other == content, content, is_common);
            } else if let Some(other) = self.contents.get(group) {
                self.judge(id, other == content, content, is_common);
            } else if is_due && !is_common && probe.is_none() {
                probe = Some((id, bare));
            }
            self.contents.insert(group, content);
        }
        if let Some((id, bare)) = probe {
            self.wish(&bare, Wish::Probe(id));
            self.touch(id).standing.n_probes += 1;
            wanted.push(bare);
        }
    }

    /// Takes down the value of a part; whether it is time for a probe.
    fn note_value(&mut self, id: RuleId, url: &str) -> bool {
        let max_probes = self.config.max_probes;
        let rule = self.touch(id);
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
        let content = self.words(content);
        let rule = &mut self.rules[id as usize];
        if rule.standing.state != State::Testing || (is_same && is_common) {
            return;
        }
        self.changed.insert(id);
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
        // A template may have fewer pages than contents are wanted: those of its site count.
        let of_site = self.of_sites.entry(rule.of_site()).or_default();
        if is_same && of_site.len() < min_contents && !of_site.contains(&content) {
            of_site.push(content);
        }
        let n_contents = rule.contents.len().max(of_site.len());
        match Sequential::outcome(rule.sum) {
            Outcome::Accepted if n_contents >= min_contents => {
                self.change(id, State::Active);
            }
            Outcome::Rejected => self.change(id, State::Rejected),
            // Evidence beyond the limit is not saved up.
            Outcome::Accepted => rule.sum = Sequential::ACCEPT,
            Outcome::Open => {}
        }
    }

    pub(super) fn change(&mut self, id: RuleId, state: State) {
        let rule = self.touch(id);
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
    pub(super) fn hypothesis(&mut self, scope: &str, rule: &Rule) -> Option<RuleId> {
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
        let site = scope.split('/').next().unwrap_or_default();
        let n_of_site = self.n_of_site.entry(key(site)).or_default();
        if *n_of_site as usize >= (self.config.max_hypotheses / SITE_PART).max(MAX_RULES) {
            return None;
        }
        *n_of_site += 1;
        let id = self.rules.len() as RuleId;
        let is_known = self.config.has_prior && rule.is_known();
        self.rules.push(Hypothesis {
            standing: Standing::new(scope, rule.clone(), State::Testing),
            name: key(&format!("{scope} {rule}")),
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

    /// Takes down why a URL is wanted. The oldest wishes give way to new ones, since what they are
    /// about may never be fetched.
    fn wish(&mut self, url: &str, wish: Wish) {
        if let Some(Wish::Blame(number, id)) = self.wishes.push(key(url), wish) {
            let content = self.wishes.blame(number).map(|blame| blame.content);
            self.blame(number, id, content);
        }
    }

    /// A URL was fetched that had been asked for.
    fn grant(&mut self, url: &str, content: Option<u64>, wish: Wish, wanted: &mut Vec<String>) {
        match (wish, content) {
            (Wish::Probe(id), None) => self.touch(id).n_failed += 1,
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
                    self.wish(&canonical.url, compare);
                    wanted.push(canonical.url);
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
        let number = self.wishes.begin_blame(Blame {
            content,
            rules: rules.to_vec(),
            n_open: rules.len(),
            is_settled: false,
        });
        for &id in rules {
            let bare = self.rules[id as usize].standing.rule.apply(url);
            let bare = bare.unwrap_or_default();
            match self.contents.get(key(&bare)) {
                None if self.config.max_probes > 0 => {
                    self.wish(&bare, Wish::Blame(number, id));
                    wanted.push(bare);
                }
                // What cannot be fetched says nothing against the rule.
                known => self.blame(number, id, known.or(Some(content))),
            }
        }
    }

    /// One rule alone was applied to a URL whose audit failed.
    fn blame(&mut self, number: u64, id: RuleId, content: Option<u64>) {
        let Some(blame) = self.wishes.blame(number) else {
            return;
        };
        blame.n_open -= 1;
        let is_guilty = content != Some(blame.content);
        blame.is_settled |= is_guilty;
        // None is guilty alone: the youngest goes.
        let is_open = blame.n_open > 0;
        let youngest = blame.rules.iter().copied().max();
        let suspect = match (is_guilty, is_open || blame.is_settled) {
            (true, _) => Some(id),
            (false, true) => None,
            (false, false) => youngest,
        };
        if !is_open {
            self.wishes.end_blame(number);
        }
        if let Some(id) = suspect.filter(|&id| self.is_active(id)) {
            self.change(id, State::Suspended);
        }
    }
}

pub(super) fn key(text: &str) -> u64 {
    digest64(text.as_bytes())
}
