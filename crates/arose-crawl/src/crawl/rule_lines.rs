//! URL rules as lines of the journal, with the open probes and the contents of recent pages.

use std::collections::{HashMap, VecDeque};
use std::path::Path;

use arose::dust::{Errand, Saved};

use super::store;
use crate::error::Error;
use crate::journal::MAX_CONTENTS;
use crate::rules;

/// The last line of each rule, in order of first occurrence, and the last contents.
#[derive(Debug, Default)]
pub(super) struct Lines {
    numbers: HashMap<u64, usize>,
    lines: Vec<String>,
    pub(super) contents: VecDeque<(u64, u64)>,
}

impl Lines {
    pub(super) fn set(&mut self, key: u64, text: &str) {
        let number = *self.numbers.entry(key).or_insert(self.lines.len());
        match self.lines.get_mut(number) {
            Some(line) => text.clone_into(line),
            None => self.lines.push(text.to_owned()),
        }
    }

    pub(super) fn remember(&mut self, pairs: &[u8]) {
        let (numbers, _) = pairs.as_chunks::<8>();
        let numbers: Vec<u64> = numbers
            .iter()
            .map(|&bytes| u64::from_le_bytes(bytes))
            .collect();
        let (pairs, _) = numbers.as_chunks::<2>();
        self.contents
            .extend(pairs.iter().map(|&[key, content]| (key, content)));
        let n_over = self.contents.len().saturating_sub(MAX_CONTENTS);
        self.contents.drain(..n_over);
    }

    /// Parses the rules. A line that is not a rule is damage, because the journal has checksums.
    pub(super) fn saved(&self) -> Result<Vec<Saved>, Error> {
        let lines = self.lines.iter();
        let lines = lines.filter(|line| !line.is_empty() && rules::parse_errand(line).is_none());
        let saved = lines.map(|line| rules::parse_saved(line));
        let saved: Result<Vec<Saved>, String> = saved.collect();
        saved.map_err(|_| Error::damaged(Path::new(store::JOURNAL), "a URL rule cannot be read"))
    }

    /// Parses the requests for learning that were under way. Those that have ended are empty lines.
    pub(super) fn errands(&self) -> impl Iterator<Item = Errand> {
        let lines = self.lines.iter();
        lines.filter_map(|line| rules::parse_errand(line))
    }
}

#[cfg(test)]
mod tests {
    use arose::dust::{Standing, State};

    use super::*;

    /// Rules and open requests are distinguished, and a request that has ended is forgotten.
    #[test]
    fn issue_27_requests_for_learning_come_back() {
        let mut lines = Lines::default();
        let rule = Standing::new("a.b", arose::dust::PartRule::Www, State::Active);
        let errand = Errand::Audit {
            url: "http://www.a.b/".to_owned(),
        };
        lines.set(1, &rules::to_line(&rule));
        lines.set(2, &rules::to_errand(&errand));
        lines.set(3, &rules::to_errand(&errand));
        lines.set(3, "");
        let saved = lines.saved().unwrap();
        assert_eq!(saved.len(), 1);
        assert_eq!(saved[0].standing, rule);
        assert_eq!(lines.errands().collect::<Vec<_>>(), [errand]);
        lines.set(4, "{}");
        assert!(lines.saved().is_err());
    }
}
