//! Lists, switches and imports URL rules from outside a crawl.
//!
//! Orders are lines of a file in the directory of the crawl, as in `rules.jsonl`. A running crawl
//! checks for the file once per second, a new one when it starts. The file is removed when the
//! orders are committed. Applying an order twice has the same effect as once.

use arose_dedup::disk;

use super::*;
use crate::error::Context;
use crate::rules;

const ORDER: &str = "rules.order";

impl Crawl {
    /// Says once if there are too many rules to learn more.
    pub(super) fn look_at_rules(&mut self, control: &Control) {
        let learner = self.dust.learner.as_ref();
        let is_full = learner.is_some_and(|learner| learner.n_ignored() > 0);
        if is_full && !std::mem::replace(&mut self.dust.is_full, true) {
            let max = self.settings().rules.max_rules;
            control.say(format!(
                "nothing is learned about some URL templates, because there are too many; \
                 rules.max_rules is {max}"
            ));
        }
    }

    /// Applies switched or imported rules, if there are any.
    pub(super) fn take_rules_order(&mut self) -> Result<Option<String>, Error> {
        let path = self.folder.join(ORDER);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).context("reading", &path)?;
        let (rules, n_bad) = rules::parse_all(&text);
        let mut n_full = 0;
        let Some(learner) = &mut self.dust.learner else {
            live::remove(&path)?;
            let message = "URL rules are off (rules.on), so the changes were ignored";
            return Ok(Some(message.to_owned()));
        };
        for rule in &rules {
            n_full += u64::from(learner.set(rule).is_none());
        }
        self.hear_rules();
        self.commit_all()?;
        live::remove(&path)?;
        let n_taken = rules.len() as u64 - n_full;
        let mut message = format!("URL rules changed: {n_taken}");
        if n_bad + n_full > 0 {
            message.push_str(&format!(
                "; lines that are not rules: {n_bad}, rules above the limit: {n_full}"
            ));
        }
        Ok(Some(message))
    }
}

/// Returns the URL rules of a crawl with their evidence, as of its last commit, in the order in
/// which they were found. [Ordered](order_rules) rules that the crawl has not taken yet are shown
/// as they will be.
///
/// # Errors
///
/// If there is no crawl in the directory, or it is damaged.
pub fn url_rules(folder: &Path) -> Result<Vec<UrlRule>, Error> {
    let saved = look::url_rules(folder)?.saved()?;
    let mut rules: Vec<UrlRule> = saved.into_iter().map(|saved| saved.standing).collect();
    let order = std::fs::read_to_string(folder.join(ORDER)).unwrap_or_default();
    for ordered in rules::parse_all(&order).0 {
        let is_it = |rule: &&mut UrlRule| rule.scope == ordered.scope && rule.rule == ordered.rule;
        match rules.iter_mut().find(is_it) {
            Some(rule) => rule.state = ordered.state,
            None => rules.push(ordered),
        }
    }
    Ok(rules)
}

/// Sets the states of rules of a crawl as given, and adds rules that it does not have. A running
/// crawl takes them within a second, and a crawl that is started later takes them at once. When a
/// rule is switched off, the URLs that it deferred are queued again.
///
/// # Errors
///
/// If there is no crawl in the directory, or it cannot be written.
pub fn order_rules(folder: &Path, wanted: &[UrlRule]) -> Result<(), Error> {
    if !is_crawl(folder) {
        let message = format!("no crawl in `{}`", folder.display());
        return Err(Error::Settings(message));
    }
    let path = folder.join(ORDER);
    let mut text = std::fs::read_to_string(&path).unwrap_or_default();
    for rule in wanted {
        text.push_str(&rules::to_line(rule));
        text.push('\n');
    }
    disk::replace(&path, text.as_bytes()).context("writing", &path)
}
