//! Evaluates URLs that were fetched to learn: probes, audits, and the search for a wrong rule.

use super::learner::{Learner, key};
use super::standing::{Canonical, RuleId, Standing, State};
use super::wishes::{Blame, Errand, Wish};
use crate::mix::mix;

impl Learner {
    /// Records why a URL is requested. New wishes replace the oldest ones, whose URLs may never be
    /// fetched.
    pub(super) fn wish(&mut self, url: &str, wish: Wish) {
        let of_url = |errand| Some((key(url), errand));
        let errand = match &wish {
            Wish::Probe(id) => {
                let Standing { scope, rule, .. } = &self.rules[*id as usize].standing;
                of_url(Errand::Probe {
                    url: url.to_owned(),
                    scope: scope.clone(),
                    rule: rule.clone(),
                })
            }
            Wish::Audit(_) => of_url(Errand::Audit {
                url: url.to_owned(),
            }),
            Wish::Compare { content, url, .. } => Some(comparison(url, *content)),
            Wish::Blame(..) => None,
        };
        if let Some((key, errand)) = errand {
            self.wishes.note(key, Some(errand));
        }
        match self.wishes.push(key(url), wish) {
            Some((_, Wish::Blame(number, id))) => {
                let content = self.wishes.blame(number).map(|blame| blame.content);
                self.blame(number, id, content);
            }
            Some((key, Wish::Probe(id))) => {
                self.wishes.note(key, None);
                self.end_probe(id);
            }
            Some((key, Wish::Audit(_))) => self.wishes.note(key, None),
            Some((_, Wish::Compare { url, content, .. })) => {
                self.wishes.note(comparison(&url, content).0, None);
            }
            None => {}
        }
    }

    /// Records that a probe is no longer under way.
    fn end_probe(&mut self, id: RuleId) {
        let n_open = &mut self.rules[id as usize].n_open;
        *n_open = n_open.saturating_sub(1);
    }

    /// Handles a fetched URL for which there was a wish.
    pub(super) fn grant(
        &mut self,
        url: &str,
        content: Option<u64>,
        wish: Wish,
        wanted: &mut Vec<String>,
    ) {
        match (wish, content) {
            (Wish::Probe(id), content) => {
                self.end_probe(id);
                self.touch(id).n_failed += u32::from(content.is_none());
            }
            (Wish::Audit(_), None) => {}
            (Wish::Audit(canonical), Some(content)) => match self.known(&canonical) {
                Some(other) => {
                    self.compare(other == content, content, url, &canonical.rules, wanted)
                }
                None if self.is_blank(&canonical) => {
                    for id in canonical.rules {
                        if self.rules[id as usize].standing.n_same == 0 {
                            self.change(id, State::Suspended);
                        }
                    }
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
                self.wishes.note(comparison(&url, content).0, None);
                self.compare(other == Some(content), content, &url, &rules, wanted);
            }
            (Wish::Blame(blame, id), other) => self.blame(blame, id, other),
        }
    }

    /// Returns whether a rule was accepted because no page was found with its part.
    fn is_blank(&self, canonical: &Canonical) -> bool {
        let mut rules = canonical.rules.iter().map(|&id| &self.rules[id as usize]);
        rules.any(|rule| rule.n_blank > 0 && rule.standing.n_same == 0)
    }

    /// Compares the content of an audited URL with that of its canonical form.
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
        let (errand, comparison) = comparison(url, content);
        self.wishes.note(errand, Some(comparison));
        let number = self.wishes.begin_blame(Blame {
            errand,
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
                // A URL that cannot be fetched is not evidence against the rule.
                known => self.blame(number, id, known.or(Some(content))),
            }
        }
    }

    /// Handles the result of applying one rule alone to a URL whose audit failed.
    fn blame(&mut self, number: u64, id: RuleId, content: Option<u64>) {
        let Some(blame) = self.wishes.blame(number) else {
            return;
        };
        blame.n_open -= 1;
        let is_guilty = content != Some(blame.content);
        blame.is_settled |= is_guilty;
        // If no rule is wrong by itself, the newest is suspended.
        let is_open = blame.n_open > 0;
        let youngest = blame.rules.iter().copied().max();
        let suspect = match (is_guilty, is_open || blame.is_settled) {
            (true, _) => Some(id),
            (false, true) => None,
            (false, false) => youngest,
        };
        if !is_open && let Some(blame) = self.wishes.end_blame(number) {
            self.wishes.note(blame.errand, None);
        }
        if let Some(id) = suspect.filter(|&id| self.is_active(id)) {
            self.change(id, State::Suspended);
        }
    }

    /// Returns the requests for learning that were begun and ended since the last call, each with
    /// a key; none stands for one that has ended.
    pub fn take_errands(&mut self) -> Vec<(u64, Option<Errand>)> {
        self.wishes.take_news()
    }

    /// Resumes a request that was under way in another learner, whose rules and contents were
    /// restored. Returns the URLs to fetch, except those that are already waiting for a request.
    pub fn resume(&mut self, errand: Errand) -> Vec<String> {
        let mut wanted = Vec::new();
        match errand {
            Errand::Probe { url, .. } | Errand::Audit { url } if self.content(&url).is_some() => {
                self.wishes.note(key(&url), None);
            }
            Errand::Probe { url, scope, rule } => {
                if let Some(id) = self.hypothesis(&scope, &rule) {
                    self.rules[id as usize].n_open += 1;
                    self.wish(&url, Wish::Probe(id));
                    wanted.push(url);
                }
            }
            Errand::Audit { url } => {
                if let Some(canonical) = self.canonical(&url) {
                    self.wish(&url, Wish::Audit(canonical));
                    wanted.push(url);
                }
            }
            Errand::Compare { url, content } => {
                self.wishes.note(comparison(&url, content).0, None);
                if let Some(canonical) = self.canonical(&url) {
                    self.compare_again(url, content, canonical, &mut wanted);
                }
            }
        }
        wanted
    }
}

impl Learner {
    /// Compares the content of an audited URL with that of its canonical form, or requests that.
    fn compare_again(
        &mut self,
        url: String,
        content: u64,
        canonical: Canonical,
        wanted: &mut Vec<String>,
    ) {
        // The same content may be that of the audited URL itself, which stands for its canonical
        // form until that is fetched.
        let other = self.contents.get(key(&canonical.url));
        let rules = canonical.rules;
        if other.is_some_and(|other| other != content) {
            self.compare(false, content, &url, &rules, wanted);
        } else if canonical.is_fetchable {
            let compare = Wish::Compare {
                content,
                url,
                rules,
            };
            self.wish(&canonical.url, compare);
            wanted.push(canonical.url);
        }
    }
}

/// Returns the errand of a comparison, with its key.
fn comparison(url: &str, content: u64) -> (u64, Errand) {
    let errand = Errand::Compare {
        url: url.to_owned(),
        content,
    };
    (mix(key(url) ^ 0x0063_6f6d_7061_7265), errand)
}
