//! Walks on the live web.
//!
//! *Question.* The same as on a graph ([`super::run`]), but without the graph: the links of a page
//! are known only after it has been fetched.
//!
//! *Idea.* The walks proceed in rounds. In each round, the current pages of all walks that no walk
//! has met before are fetched together, so that requests to different hosts can run at the same
//! time. Each page is fetched once. A redirect is a place with one link. An error, or a URL that
//! robots.txt disallows, is a place without links, where walks jump. Walks pass such places and
//! their ranks count, but estimates do not include them.
//!
//! *Cost.* One request per new URL, and robots.txt for each host. *Error.* As on a graph. The web
//! is never seen completely, and the findings say how much was unseen. *Not for* in-links: links
//! from unvisited pages are unknown, so such shares would be wrong without any indication. There
//! are no true values for comparison.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use arose::estimate::Method;
use arose::estimate::walk::{WalkConfig, Walker};
use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    Drawing, GraphMeasure, Tally, Walked, Weighed, add_figures, keep, random, warnings, weights,
};
use crate::Error;
use crate::engine::log::{Answered, Asked};
use crate::engine::{Header, Log, Progress, Reply, Seat};
use crate::{Figure, Findings, MAX_DOUBTFUL};

/// The content of a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// A page, and the URLs that it links to, each once.
    Page(Vec<String>),
    /// Another URL.
    Redirect(String),
    /// Not a page, for this reason: an error, an image.
    Nothing(String),
    /// A URL that robots.txt disallows.
    Disallowed,
}

/// Fetches URLs; none where no more requests are allowed.
pub type PlaceSource<'s> = dyn FnMut(&[String]) -> Vec<Option<Reply<Place>>> + 's;

/// Settings of live walks.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSettings {
    /// Number of walks; at least five for an interval.
    pub n_walks: usize,
    /// Steps per walk.
    pub n_steps: usize,
    /// Normalized URLs at which the walks start.
    pub seeds: Vec<String>,
    /// The properties to measure.
    pub measures: Vec<GraphMeasure>,
    /// Number of pages to sample, from all walks together.
    pub n_drawn: usize,
    /// A description of the web or its part, for the log; it must be the same when a walk is
    /// resumed.
    pub web: String,
    /// The seed of all random choices.
    pub seed: u64,
}

/// Walks and computes the estimates, as far as requests are allowed.
///
/// # Errors
///
/// If there are too few walks, in-links are to be measured, no seed leads to a page, or the log
/// cannot be written.
pub fn run(
    source: &mut PlaceSource<'_>,
    log: Log,
    settings: &LiveSettings,
    progress: &Progress,
) -> Result<Walked, Error> {
    let by_in_links = |measure: &&GraphMeasure| matches!(measure, GraphMeasure::InDegree(_));
    if settings.measures.iter().any(|one| by_in_links(&one)) {
        let what = "a live walk cannot measure in-links, because links from unvisited pages are \
            unknown; measure out:N or url:PART";
        return Err(Error::Words { what: what.into() });
    }
    let mut known = MetPages::new(log, settings)?;
    let seeds: Vec<u32> = settings
        .seeds
        .iter()
        .map(|seed| known.number(seed))
        .collect();
    let config = WalkConfig::new(settings.n_steps);
    let mut walkers = Vec::new();
    for place in 0..settings.n_walks {
        let random = random(settings.seed, place);
        walkers.push(Walker::new(&seeds, &config, random, |page| {
            known.host(page)
        })?);
    }
    let n_wanted = (settings.n_steps * settings.n_walks) as u64;
    progress.n_wanted.store(n_wanted, Ordering::Relaxed);
    let mut n_steps = 0;
    while walkers.iter().any(|walker| walker.page().is_some()) {
        if !known.learn(source, walkers.iter().filter_map(Walker::page))? {
            break;
        }
        for walker in &mut walkers {
            if let Some(page) = walker.page() {
                walker.step(known.links(page), |page| known.host(page));
                progress.n_done.fetch_add(1, Ordering::Relaxed);
            }
        }
        n_steps += 1;
    }
    known.findings(walkers, settings, n_steps)
}

/// The part of the web that the walks together have met.
#[derive(Default)]
struct MetPages {
    web: String,
    log: Log,
    addresses: Vec<String>,
    numbers: HashMap<String, u32>,
    hosts: Vec<u32>,
    host_numbers: HashMap<String, u32>,
    /// Its content; none if it was not requested.
    places: Vec<Option<Met>>,
}

/// A place that was requested.
struct Met {
    kind: Kind,
    links: Vec<u32>,
    /// The reason why it is not a page.
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Redirect,
    Nothing,
    Disallowed,
    Missing,
}

impl MetPages {
    fn new(mut log: Log, settings: &LiveSettings) -> Result<Self, Error> {
        let web = settings.web.clone();
        let seats = vec![Seat {
            name: web.clone(),
            limit: 0,
            has_lookup: false,
        }];
        log.begin(&Header {
            seats,
            words: Vec::new(),
        })?;
        Ok(Self {
            web,
            log,
            ..Self::default()
        })
    }

    /// The number of a URL; a new number if necessary.
    fn number(&mut self, address: &str) -> u32 {
        if let Some(&number) = self.numbers.get(address) {
            return number;
        }
        let number = self.addresses.len() as u32;
        let url = Url::parse(address).ok();
        let host = url.as_ref().and_then(Url::host_str).unwrap_or(address);
        let next = self.host_numbers.len() as u32;
        let host = *self.host_numbers.entry(host.to_owned()).or_insert(next);
        self.numbers.insert(address.to_owned(), number);
        self.addresses.push(address.to_owned());
        self.hosts.push(host);
        self.places.push(None);
        number
    }

    fn host(&self, page: u32) -> u32 {
        self.hosts[page as usize]
    }

    fn links(&self, page: u32) -> &[u32] {
        self.places[page as usize]
            .as_ref()
            .map_or(&[], |met| &met.links)
    }

    /// Requests the unknown URLs, from the log first. Returns whether all are known now.
    fn learn(
        &mut self,
        source: &mut PlaceSource<'_>,
        pages: impl Iterator<Item = u32>,
    ) -> Result<bool, Error> {
        let mut wanted: Vec<u32> = pages
            .filter(|&page| self.places[page as usize].is_none())
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let address = |page: &u32| self.addresses[*page as usize].clone();
        let addresses: Vec<String> = wanted.iter().map(address).collect();
        let mut replies: Vec<Option<Reply<Place>>> = addresses
            .iter()
            .map(|address| self.logged(address))
            .collect();
        let places = (0..replies.len()).filter(|&place| replies[place].is_none());
        let places: Vec<usize> = places.collect();
        let unknown: Vec<String> = places.iter().map(|&at| addresses[at].clone()).collect();
        if !unknown.is_empty() && !self.log.is_replay() {
            for ((&at, address), reply) in places.iter().zip(&unknown).zip(source(&unknown)) {
                if let Some(reply) = &reply {
                    let asked = Asked::Visit(address.clone());
                    let answered = Answered::Visit(reply.clone());
                    self.log.add(&self.web, &asked, &answered)?;
                }
                replies[at] = reply;
            }
        }
        let is_all = replies.iter().all(Option::is_some);
        // The order does not depend on the source, so that new URLs always get the same numbers.
        for (page, reply) in wanted.into_iter().zip(replies) {
            if let Some(reply) = reply {
                self.meet(page, reply);
            }
        }
        Ok(is_all)
    }

    fn logged(&self, address: &str) -> Option<Reply<Place>> {
        match self.log.known(&self.web, &Asked::Visit(address.to_owned())) {
            Some(Answered::Visit(reply)) => Some(reply.clone()),
            _ => None,
        }
    }

    fn meet(&mut self, page: u32, reply: Reply<Place>) {
        let (kind, addresses, reason) = match reply {
            Reply::Missing(reason) => (Kind::Missing, Vec::new(), reason),
            Reply::Answer(Place::Page(links)) => (Kind::Page, links, String::new()),
            Reply::Answer(Place::Redirect(to)) => (Kind::Redirect, vec![to], "a redirect".into()),
            Reply::Answer(Place::Nothing(reason)) => (Kind::Nothing, Vec::new(), reason),
            Reply::Answer(Place::Disallowed) => {
                let reason = "disallowed by robots.txt".to_owned();
                (Kind::Disallowed, Vec::new(), reason)
            }
        };
        let links = addresses.iter().map(|address| self.number(address));
        let links = links.collect();
        self.places[page as usize] = Some(Met {
            kind,
            links,
            reason,
        });
    }

    fn count(&self, kind: Kind) -> usize {
        self.places
            .iter()
            .flatten()
            .filter(|met| met.kind == kind)
            .count()
    }

    fn is_page(&self, page: usize) -> bool {
        self.places[page]
            .as_ref()
            .is_some_and(|met| met.kind == Kind::Page)
    }

    /// Whether each URL has the property.
    fn values(&self, measure: &GraphMeasure) -> Vec<bool> {
        let all = 0..self.addresses.len();
        all.map(|page| match measure {
            GraphMeasure::Name(part) => self.addresses[page].contains(part.as_str()),
            GraphMeasure::OutDegree(least) => self.links(page as u32).len() as u64 >= *least,
            GraphMeasure::InDegree(_) => false,
        })
        .collect()
    }

    fn findings(
        &self,
        walkers: Vec<Walker>,
        settings: &LiveSettings,
        n_steps: usize,
    ) -> Result<Walked, Error> {
        if self.count(Kind::Page) == 0 {
            return Err(self.no_page(&settings.seeds));
        }
        let measures = settings.measures.iter();
        let values: Vec<Vec<bool>> = measures.map(|measure| self.values(measure)).collect();
        let n_pages = self.addresses.len();
        let mut tallies = Vec::new();
        let mut drawing = Drawing::new(settings.n_drawn, settings.n_walks, settings.seed);
        for walker in walkers {
            let walk = walker.end();
            let mut weights = weights(|page| self.links(page), n_pages, &walk)?;
            for (page, weight) in weights.iter_mut().enumerate() {
                if !self.is_page(page) {
                    *weight = 0.0;
                }
            }
            let weighed = Weighed::new(&walk, &weights);
            drawing.draw(&weighed)?;
            tallies.push(weighed.tally(&values, keep(settings.n_walks)));
        }
        let counted = format!("pages reachable by links from the seeds, on {}", self.web);
        let mut findings = Findings::new("walk", &counted, settings.seed);
        findings.n_responses = self.places.iter().flatten().count() as u64;
        self.add_shares(&mut findings, settings, &tallies)?;
        if n_steps < settings.n_steps {
            findings.warnings.push(format!(
                "the walks ended after {n_steps} of {} steps: the budget of requests is spent, or \
                 the log ends here",
                settings.n_steps
            ));
        }
        findings.warnings.extend(self.sentences());
        findings.warnings.extend(warnings(&tallies, n_steps));
        Ok(Walked {
            findings: findings.with_biases(),
            drawn: drawing.named(|page| self.addresses[page as usize].clone()),
        })
    }

    fn add_shares(
        &self,
        findings: &mut Findings,
        settings: &LiveSettings,
        tallies: &[Tally],
    ) -> Result<(), Error> {
        let (n, n_missing) = (findings.n_responses, self.count(Kind::Missing));
        let is_empty = |tally: &Tally| {
            let mut measured = tally.measured.iter();
            measured.any(|one| one.sums().weight == 0.0)
        };
        let reason = if n_missing as f64 > MAX_DOUBTFUL * n as f64 {
            format!("{n_missing} of {n} URLs did not respond")
        } else if tallies.iter().any(is_empty) {
            "a walk met no page in its second half; raise --steps or --budget".to_owned()
        } else {
            return add_figures(findings, Method::RandomWalk, &settings.measures, tallies);
        };
        for measure in &settings.measures {
            let figure = Figure::refused(measure.name(), Method::RandomWalk, &reason);
            findings.figures.push(figure);
        }
        Ok(())
    }

    /// Counts of the URLs that are not pages.
    fn sentences(&self) -> Vec<String> {
        let n = self.places.iter().flatten().count();
        let each = [
            (Kind::Missing, "did not respond; they are not covered"),
            (
                Kind::Disallowed,
                "are disallowed by robots.txt; they are not covered",
            ),
        ];
        let counted = each.map(|(kind, what)| (self.count(kind), what));
        let met = counted.into_iter().filter(|(count, _)| *count > 0);
        met.map(|(count, what)| format!("{count} of {n} URLs {what}"))
            .collect()
    }

    fn no_page(&self, seeds: &[String]) -> Error {
        let first = seeds.iter().find_map(|seed| {
            let met = self.places[*self.numbers.get(seed)? as usize].as_ref()?;
            Some(format!(": {seed}, {}", met.reason))
        });
        Error::Words {
            what: format!("no seed leads to a page{}", first.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve pages in a ring with chords, a redirect, an error, a disallowed URL, and one that
    /// never responds.
    fn place(address: &str) -> Option<Reply<Place>> {
        let name = address.strip_prefix("http://h.test/")?;
        let at = |n: u32| format!("http://h.test/p{}", n % 12);
        Some(match name {
            "moved" => Reply::Answer(Place::Redirect(at(5))),
            "error" => Reply::Answer(Place::Nothing("status 404".to_owned())),
            "closed" => Reply::Answer(Place::Disallowed),
            "silent" => Reply::Missing("timeout".to_owned()),
            _ => {
                let n: u32 = name.strip_prefix('p')?.parse().ok()?;
                let mut links = vec![at(n + 1), at(n * n + 3)];
                let odd = ["moved", "error", "closed", "silent"].get(n as usize);
                links.extend(odd.map(|odd| format!("http://h.test/{odd}")));
                Reply::Answer(Place::Page(links))
            }
        })
    }

    fn settings() -> LiveSettings {
        LiveSettings {
            n_walks: 5,
            n_steps: 20_000,
            seeds: vec!["http://h.test/p0".to_owned()],
            measures: vec![
                GraphMeasure::OutDegree(3),
                GraphMeasure::Name("/p1".to_owned()),
            ],
            n_drawn: 0,
            web: "the web".to_owned(),
            seed: 1,
        }
    }

    fn walk(
        settings: &LiveSettings,
        log: Log,
        budget: usize,
    ) -> (Result<Findings, Error>, Vec<String>) {
        let (walked, asked) = walk_and_draw(settings, log, budget);
        (walked.map(|walked| walked.findings), asked)
    }

    fn walk_and_draw(
        settings: &LiveSettings,
        log: Log,
        budget: usize,
    ) -> (Result<Walked, Error>, Vec<String>) {
        let mut asked = Vec::new();
        let mut source = |addresses: &[String]| -> Vec<Option<Reply<Place>>> {
            let answer = |address: &String| {
                let is_allowed = asked.len() < budget;
                asked.extend(is_allowed.then(|| address.clone()));
                place(address).filter(|_| is_allowed)
            };
            addresses.iter().map(answer).collect()
        };
        let walked = run(&mut source, log, settings, &Progress::default());
        (walked, asked)
    }

    /// Four of twelve pages have a third link, and three are called p1, p10 or p11. The rest do not
    /// count, and nothing is requested twice.
    #[test]
    fn shares_of_a_small_web() {
        let (findings, mut asked) = walk(&settings(), Log::off(), 100);
        let findings = findings.unwrap();
        for (figure, truth) in findings.figures.iter().zip([4.0 / 12.0, 3.0 / 12.0]) {
            // Four standard errors of 50,000 visits with an autocorrelation time of about ten.
            assert!((figure.value.unwrap() - truth).abs() < 0.03, "{figure:?}");
            assert_eq!(figure.truth, None);
        }
        assert_eq!(findings.n_responses, 16);
        let said = findings.warnings.join("\n");
        assert!(said.contains("1 of 16 URLs did not respond"), "{said}");
        assert!(said.contains("1 of 16 URLs are disallowed"), "{said}");
        assert!(!said.contains("ended"), "{said}");
        asked.sort();
        asked.dedup();
        assert_eq!(asked.len(), 16);
    }

    /// Pages are sampled about equally often, and nothing else is sampled: each of twelve pages in
    /// a twelfth of 12,000 samples. Samples follow visits, whose own spread is about 4% (see
    /// above), so a quarter is four standard errors.
    #[test]
    fn drawn_pages_are_uniform() {
        let drawing = LiveSettings {
            n_drawn: 12_000,
            ..settings()
        };
        let (walked, _) = walk_and_draw(&drawing, Log::off(), 100);
        let drawn = walked.unwrap().drawn;
        assert_eq!(drawn.len(), 12_000);
        for walk in 0..5 {
            let n = drawn.iter().filter(|(_, own)| *own == walk).count();
            assert_eq!(n, 2400);
        }
        let mut times: HashMap<&str, usize> = HashMap::new();
        for (address, _) in &drawn {
            *times.entry(address).or_default() += 1;
        }
        assert_eq!(times.len(), 12, "{times:?}");
        assert!(times.values().all(|n| (750..1250).contains(n)), "{times:?}");
    }

    /// Interrupted, resumed with the same log, and replayed.
    #[test]
    fn budgets_and_logs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (short, asked) = walk(&settings(), Log::open(&path).unwrap(), 9);
        let said = short.unwrap().warnings.join("\n");
        assert!(said.contains("the walks ended after"), "{said}");
        assert_eq!(asked.len(), 9);
        let (again, _) = walk(&settings(), Log::replay(&path).unwrap(), 0);
        assert_eq!(again.unwrap().warnings.join("\n"), said);
        let (whole, asked) = walk(&settings(), Log::open(&path).unwrap(), 100);
        let whole = whole.unwrap();
        // The remaining URLs, and the one that did not respond if it was among the first nine.
        assert!((7..=8).contains(&asked.len()), "{asked:?}");
        assert_eq!(whole, walk(&settings(), Log::off(), 100).0.unwrap());
        let (replayed, asked) = walk(&settings(), Log::replay(&path).unwrap(), 100);
        assert_eq!((replayed.unwrap(), asked.len()), (whole, 0));
        let elsewhere = LiveSettings {
            web: "another web".to_owned(),
            ..settings()
        };
        let (refused, _) = walk(&elsewhere, Log::open(&path).unwrap(), 100);
        assert!(refused.unwrap_err().to_string().contains("another web"));
    }

    #[test]
    fn webs_that_give_nothing() {
        let of_seed = |seed: &str| LiveSettings {
            seeds: vec![format!("http://h.test/{seed}")],
            n_steps: 20,
            ..settings()
        };
        let (error, _) = walk(&of_seed("silent"), Log::off(), 100);
        assert!(error.unwrap_err().to_string().contains("silent, timeout"));
        let (error, _) = walk(&of_seed("p0"), Log::off(), 0);
        assert!(error.unwrap_err().to_string().contains("no seed leads"));
        let by_in_links = LiveSettings {
            measures: vec![GraphMeasure::InDegree(5)],
            ..settings()
        };
        let (error, _) = walk(&by_in_links, Log::off(), 100);
        assert!(error.unwrap_err().to_string().contains("in-links"));
        // Two silent seeds and a page: most URLs did not respond.
        let mut mostly_silent = of_seed("p3");
        mostly_silent.n_steps = 1;
        let silent = ["silent", "silent"].map(|name| format!("http://h.test/{name}"));
        mostly_silent.seeds.extend(silent);
        let (findings, _) = walk(&mostly_silent, Log::off(), 100);
        assert!(findings.is_err() || findings.unwrap().figures[0].refused.is_some());
    }
}
