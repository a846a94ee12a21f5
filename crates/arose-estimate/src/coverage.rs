//! Coverage: the share of pages sampled elsewhere that each search engine has.
//!
//! *Question.* Pages were sampled by a walk along links, or are a uniform sample for another
//! reason. Which share of the population does a search engine have?
//!
//! *Idea.* Look up every page in every search engine ([`check`](crate::check)) and count. The
//! sampled pages are equally likely ([`walk`](crate::walk) samples each visit by one over its
//! PageRank), so the share found is the coverage.
//!
//! *Papers.* Henzinger et al. 1999, 2000; Bharat & Broder 1998 for the lookup. *Parameters.* How
//! pages are looked up. *Cost.* Per page and search engine, two searches and up to three fetches.
//! *Error.* Pages of one walk are not independent. With at least five walks, the interval is
//! Student's over walks, otherwise Wilson's over pages. Lookups without a response count as their
//! worst case. *Not for* pages sampled through a search engine: they favour long pages.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use arose::estimate::Method;
use arose::estimate::chain::{Sums, Weighted};
use arose::estimate::overlap::{Check, Containment};
use arose::estimate::walk::{MIN_WALKS, mean_over_walks};
use serde::{Deserialize, Serialize};

use super::check::{By, Checker, Checking};
use super::{Figure, Findings, MAX_DOUBTFUL, ends};
use crate::Error;
use crate::engine::{Page, Panel};

/// A sampled page: a line of the file that `arose estimate walk --draw` writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawnPage {
    /// Its URL.
    pub url: String,
    /// Its text; may be empty if pages are looked up only by URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The walk that sampled it; none if pages are independent of each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<u32>,
}

/// Reads sampled pages, one JSON object per line.
///
/// # Errors
///
/// If the file cannot be read, a line is not a sampled page, or there are no pages.
pub fn read(path: &Path) -> Result<Vec<DrawnPage>, Error> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let bad = |what: String| Error::Settings {
        path: path.to_owned(),
        what,
    };
    let mut pages = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let page = serde_json::from_str(line)
            .map_err(|error| bad(format!("line {number} is not a sampled page: {error}")))?;
        pages.push(page);
    }
    match pages.is_empty() {
        true => Err(bad("no page".to_owned())),
        false => Ok(pages),
    }
}

/// Looks up the pages in every search engine.
///
/// # Errors
///
/// If no page can be looked up, or a search engine can no longer respond.
pub fn run(
    panel: &mut Panel,
    words: &[(String, u64)],
    pages: &[DrawnPage],
    checking: Checking,
    seed: u64,
) -> Result<Findings, Error> {
    let checker = Checker::new(panel, words, checking)?;
    let mut checks = Checks {
        checker,
        rows: Vec::new(),
        n_without_words: 0,
        n_weak: 0,
    };
    let counted = "sampled pages; a near duplicate in a search engine counts as the page";
    let mut findings = Findings::new("coverage", counted, seed);
    panel.expect(pages.len() as u64);
    match checks.look_up_all(panel, pages) {
        Err(error) if error.ends_study() && !checks.rows.is_empty() => {
            findings.warnings.push(format!(
                "the budget of requests was spent after {} of {} pages",
                checks.rows.len(),
                pages.len()
            ));
        }
        other => other?,
    }
    if checks.rows.is_empty() {
        return Err(Error::Words {
            what: "no sampled page has a word of the lexicon; pass --lexicon in its language, or \
                   --check url"
                .to_owned(),
        });
    }
    for engine in 0..panel.n_engines() {
        findings.figures.push(checks.figure(panel, engine));
    }
    findings.figures.extend(checks.checker.figures(panel));
    findings.warnings.extend(checks.warnings());
    Ok(findings.finished(panel))
}

/// A page that was looked up, and the result of each search engine.
struct Row {
    walk: Option<u32>,
    checks: Vec<Check>,
}

struct Checks {
    checker: Checker,
    rows: Vec<Row>,
    n_without_words: usize,
    n_weak: usize,
}

impl Checks {
    fn look_up_all(&mut self, panel: &mut Panel, pages: &[DrawnPage]) -> Result<(), Error> {
        for drawn in pages {
            let page = Page {
                address: drawn.url.clone(),
                text: drawn.text.clone(),
            };
            let number = panel.page_at(&drawn.url);
            if let Some(wanted) = self.checker.wanted(number, &page) {
                let mut checks = Vec::with_capacity(panel.n_engines());
                for engine in 0..panel.n_engines() {
                    checks.push(self.checker.check(panel, engine, &wanted)?.1);
                }
                self.n_weak += usize::from(wanted.strong.is_weak);
                self.rows.push(Row {
                    walk: drawn.walk,
                    checks,
                });
            } else {
                self.n_without_words += 1;
            }
            panel.advance();
        }
        Ok(())
    }

    fn figure(&self, panel: &Panel, engine: usize) -> Figure {
        let method = match self.by_walk(engine).is_some() {
            true => Method::RandomWalk,
            false => Method::Overlap,
        };
        let name = format!("share in {}", panel.name(engine));
        let counts = self.counts(engine);
        let n = counts.n_checked() + counts.n_missing;
        let Some((share, interval)) = counts.share() else {
            return Figure::refused(name, method, "no lookup got a response");
        };
        if counts.n_missing as f64 > MAX_DOUBTFUL * n as f64 {
            let reason = format!("{} of {n} lookups got no response", counts.n_missing);
            return Figure::refused(name, method, reason);
        }
        let mut figure = Figure::plain(name, method, share, counts.n_checked());
        let over_walks = self.by_walk(engine).and_then(|walks| {
            let estimate = mean_over_walks(method, &walks).ok()?;
            estimate.interval.map(ends)
        });
        let clamped = |[low, high]: [f64; 2]| [low.max(0.0), high.min(1.0)];
        figure.interval = over_walks.map(clamped).or(Some(ends(interval)));
        if counts.n_missing > 0 {
            let missing = format!("{} without a response", counts.n_missing);
            figure.notes.push(missing);
            // Pages without a response count as all absent for the lower end, as all found for the
            // upper end.
            let kept = counts.n_checked() as f64 / n as f64;
            let wide = figure
                .interval
                .map(|[low, high]| [low * kept, high * kept + (1.0 - kept)]);
            figure = figure.widened(wide);
        }
        figure
    }

    fn counts(&self, engine: usize) -> Containment {
        let mut counts = Containment::default();
        for row in &self.rows {
            match row.checks[engine] {
                Check::Found => counts.n_found += 1,
                Check::Absent => counts.n_absent += 1,
                Check::Missing => counts.n_missing += 1,
            }
        }
        counts
    }

    /// The counts of each walk for a search engine; none if pages have no walks or too few.
    fn by_walk(&self, engine: usize) -> Option<Vec<Sums>> {
        let mut walks: BTreeMap<u32, Sums> = BTreeMap::new();
        for row in &self.rows {
            let sums = walks.entry(row.walk?).or_default();
            let value = match row.checks[engine] {
                Check::Found => 1.0,
                Check::Absent => 0.0,
                Check::Missing => continue,
            };
            sums.add(Weighted { value, weight: 1.0 });
        }
        (walks.len() >= MIN_WALKS).then(|| walks.into_values().collect())
    }

    fn warnings(&self) -> Vec<String> {
        let n = self.rows.len() + self.n_without_words;
        let mut warnings = Vec::new();
        if self.n_without_words > 0 {
            warnings.push(format!(
                "{} of {n} pages have no word of the lexicon, and were left out",
                self.n_without_words
            ));
        }
        if self.n_weak > 0 && self.checker.checking.by != By::Url {
            warnings.push(format!(
                "{} of {n} pages have fewer than {} words of the lexicon",
                self.n_weak, self.checker.checking.n_words
            ));
        }
        warnings
    }
}
