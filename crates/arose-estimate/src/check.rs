//! Looks up pages in search engines.
//!
//! *Question.* A page was sampled somewhere. Does another search engine have it?
//!
//! *Idea.* Query words that hardly any other page contains together, and search the results for the
//! page: the same URL, the URL that a result redirects to, or a near duplicate among the first
//! [`Checking::n_compared`] results. The words are the eight rarest of the page, or the five with
//! the highest tf-idf ([`Choice`]). A search engine with lookup by URL gives a second, independent
//! check ([`By`]). The share of the pages found by URL that words also find shows how many pages
//! the first check misses.
//!
//! *Papers.* Bharat & Broder 1998; Phelps & Wilensky 2000. *Cost.* Per page and search engine, two
//! searches, up to [`Checking::n_compared`] fetches and one lookup. *Error.* A page counts as
//! absent only if every query got a response. If one response sufficed for found pages, they would
//! be missing less often than others. *Not for* search engines that do not index whole texts.

use arose::compare::{Profile, Profiler};
use arose::estimate::Method;
use arose::estimate::lexicon::{Lexicon, ROBUST_WORDS, STRONG_WORDS, StrongQuery};
use arose::estimate::overlap::{Check, Containment};
use arose::rule::{Policy, SiteRelation};
use arose::shingle::FEATURE_W;
use arose::site::SiteKind;
use serde::Deserialize;

use super::vocabulary::{lexicon, plain_occurrences};
use super::{Figure, ends};
use crate::Error;
use crate::engine::{Page, Panel, Question, Reply};

/// Which words of a page to query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    /// The rarest words.
    #[default]
    Rarest,
    /// The words with the highest tf-idf, as in robust hyperlinks.
    Robust,
}

impl Choice {
    /// Number of words per query in the literature.
    #[must_use]
    pub const fn n_words(self) -> usize {
        match self {
            Self::Rarest => STRONG_WORDS,
            Self::Robust => ROBUST_WORDS,
        }
    }
}

/// How to look up a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// By its words.
    #[default]
    Words,
    /// By its URL; every search engine must support lookup by URL.
    Url,
    /// Both ways; search engines without lookup by URL are queried only by words.
    Both,
}

/// Settings for looking up pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checking {
    /// By words, by URL, or by both.
    pub by: By,
    /// Which words to query.
    pub choice: Choice,
    /// Number of words per query.
    pub n_words: usize,
    /// Number of top results to compare as near duplicates.
    pub n_compared: usize,
}

impl Default for Checking {
    fn default() -> Self {
        Self {
            by: By::default(),
            choice: Choice::default(),
            n_words: STRONG_WORDS,
            n_compared: 3,
        }
    }
}

/// A page to look up.
pub(crate) struct Wanted {
    /// Its number in the panel.
    pub(crate) number: usize,
    page: Page,
    pub(crate) strong: StrongQuery<String>,
    profile: Profile,
}

/// Looks up pages, and compares the results of words and URLs.
pub(crate) struct Checker {
    pub(crate) checking: Checking,
    lexicon: Lexicon<String>,
    profiler: Profiler,
    /// For each search engine, the pages found by URL, and whether words also found them.
    by_url: Vec<Containment>,
}

impl Checker {
    /// # Errors
    ///
    /// If there are too few words, or a search engine without lookup by URL is to be queried by URL
    /// only.
    pub(crate) fn new(
        panel: &Panel,
        words: &[(String, u64)],
        checking: Checking,
    ) -> Result<Self, Error> {
        let mut engines = 0..panel.n_engines();
        if checking.by == By::Url
            && let Some(engine) = engines.find(|&engine| !panel.has_lookup(engine))
        {
            let name = panel.name(engine);
            let what = format!(
                "{name} does not support lookup by URL; set `lookup` in its description or check by words"
            );
            return Err(Error::Words { what });
        }
        Ok(Self {
            checking,
            lexicon: lexicon(words)?,
            profiler: Profiler::new(FEATURE_W),
            by_url: vec![Containment::default(); panel.n_engines()],
        })
    }

    /// Prepares a page; none if it must be looked up by words and has none.
    pub(crate) fn wanted(&self, number: usize, page: &Page) -> Option<Wanted> {
        let words = plain_occurrences(&page.text);
        let n_words = self.checking.n_words;
        let strong = match self.checking.choice {
            Choice::Rarest => self.lexicon.strong_query(words, n_words),
            Choice::Robust => self.lexicon.robust_query(words, n_words),
        };
        let can_be_asked = !strong.first.is_empty() || self.checking.by == By::Url;
        can_be_asked.then(|| Wanted {
            number,
            profile: self.profiler.profile(&page.text),
            page: page.clone(),
            strong,
        })
    }

    /// Whether a search engine has a page, without accepting near duplicates.
    pub(crate) fn check_strictly(
        &mut self,
        panel: &mut Panel,
        engine: usize,
        wanted: &Wanted,
    ) -> Result<Check, Error> {
        let looked_up = self.look_up(panel, engine, wanted)?;
        let by_words = self.by_words(panel, engine, wanted, 0)?;
        self.compare(engine, looked_up, by_words);
        Ok(either(looked_up, by_words))
    }

    /// Whether a search engine has a page: without and with accepting near duplicates.
    pub(crate) fn check(
        &mut self,
        panel: &mut Panel,
        engine: usize,
        wanted: &Wanted,
    ) -> Result<(Check, Check), Error> {
        let strict = self.check_strictly(panel, engine, wanted)?;
        if strict == Check::Found || self.checking.n_compared == 0 || self.checking.by == By::Url {
            return Ok((strict, strict));
        }
        let looked_up = self.look_up(panel, engine, wanted)?;
        let by_words = self.by_words(panel, engine, wanted, self.checking.n_compared)?;
        Ok((strict, either(looked_up, by_words)))
    }

    /// The result of the lookup by URL; none if it is not used.
    fn look_up(
        &self,
        panel: &mut Panel,
        engine: usize,
        wanted: &Wanted,
    ) -> Result<Option<Check>, Error> {
        if self.checking.by == By::Words {
            return Ok(None);
        }
        let reply = panel.contains(engine, wanted.number, &wanted.page.address)?;
        Ok(reply.map(|reply| match reply {
            Reply::Answer(true) => Check::Found,
            Reply::Answer(false) => Check::Absent,
            Reply::Missing(_) => Check::Missing,
        }))
    }

    /// The result of strong queries; none if they are not used.
    fn by_words(
        &self,
        panel: &mut Panel,
        engine: usize,
        wanted: &Wanted,
        n_compared: usize,
    ) -> Result<Option<Check>, Error> {
        if self.checking.by == By::Url {
            return Ok(None);
        }
        let mut outcome = Check::Absent;
        for words in [&wanted.strong.first, &wanted.strong.second] {
            if words.is_empty() {
                continue;
            }
            let found = self.finds(panel, engine, wanted, words, n_compared)?;
            outcome = match (outcome, found) {
                (_, None) | (Check::Missing, _) => Check::Missing,
                (_, Some(true)) => Check::Found,
                (before, Some(false)) => before,
            };
        }
        Ok(Some(outcome))
    }

    /// Whether a page is among the results for some words; none without a response.
    fn finds(
        &self,
        panel: &mut Panel,
        engine: usize,
        wanted: &Wanted,
        words: &[String],
        n_compared: usize,
    ) -> Result<Option<bool>, Error> {
        let reply = panel.search(engine, &Question::all(words))?;
        let Reply::Answer(hits) = &*reply else {
            return Ok(None);
        };
        let is_it = |panel: &Panel, page: usize| panel.are_one(page, wanted.number);
        if hits.pages.iter().any(|&page| is_it(panel, page)) {
            return Ok(Some(true));
        }
        for &page in hits.pages.iter().take(n_compared) {
            if let Reply::Answer(other) = &*panel.fetch(engine, page)?
                && (is_it(panel, page) || self.is_near_duplicate(wanted, other))
            {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// Whether another page is a near duplicate under the default policy.
    fn is_near_duplicate(&self, wanted: &Wanted, other: &Page) -> bool {
        let profile = self.profiler.profile(&other.text);
        let comparison = self.profiler.compare(&wanted.profile, &profile);
        let hosts = [&wanted.page.address, &other.address].map(|address| host(address));
        let site = SiteRelation::of(
            hosts[0].as_deref(),
            hosts[1].as_deref(),
            SiteKind::Registrable,
        );
        comparison.rule(&Policy::SITE, site).is_some()
    }

    /// Counts whether words find a page that was found by URL.
    fn compare(&mut self, engine: usize, looked_up: Option<Check>, by_words: Option<Check>) {
        let counts = &mut self.by_url[engine];
        match (looked_up, by_words) {
            (Some(Check::Found), Some(Check::Found)) => counts.n_found += 1,
            (Some(Check::Found), Some(Check::Absent)) => counts.n_absent += 1,
            (Some(Check::Found), Some(Check::Missing)) => counts.n_missing += 1,
            _ => {}
        }
    }

    /// For each search engine, the share of the pages found by URL that words also found.
    pub(crate) fn figures(&self, panel: &Panel) -> Vec<Figure> {
        let engines = self.by_url.iter().enumerate();
        let figures = engines.filter_map(|(engine, counts)| {
            let (share, interval) = counts.share()?;
            let name = format!(
                "found by words of those found by URL, {}",
                panel.name(engine)
            );
            let mut figure = Figure::plain(name, Method::Overlap, share, counts.n_checked());
            figure.interval = Some(ends(interval));
            Some(figure)
        });
        figures.collect()
    }
}

/// Missing if either lookup is missing; otherwise found if either finds the page, else absent.
fn either(one: Option<Check>, other: Option<Check>) -> Check {
    match (one, other) {
        (Some(Check::Missing), _) | (_, Some(Check::Missing)) | (None, None) => Check::Missing,
        (Some(Check::Found), _) | (_, Some(Check::Found)) => Check::Found,
        _ => Check::Absent,
    }
}

fn host(address: &str) -> Option<String> {
    let url = url::Url::parse(address).ok()?;
    url.host_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_only_if_all_say_so() {
        use Check::{Absent, Found, Missing};
        for (one, other, expected) in [
            (Some(Found), Some(Absent), Found),
            (Some(Absent), Some(Found), Found),
            (Some(Absent), Some(Absent), Absent),
            (Some(Found), Some(Missing), Missing),
            (Some(Missing), Some(Found), Missing),
            (None, Some(Absent), Absent),
            (Some(Found), None, Found),
            (None, None, Missing),
        ] {
            assert_eq!(either(one, other), expected, "{one:?} {other:?}");
        }
    }
}
