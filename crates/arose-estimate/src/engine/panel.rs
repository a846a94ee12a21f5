//! The search engines of a study, queried in the same way: no request is repeated, all are logged,
//! and the number is limited.
//!
//! Pages are numbered over all search engines, so that a page has one number whichever search
//! engine returns it and however it spells the URL. A query with a response is not sent again in
//! the same run. The results would be the same, and the load on search engines stays low.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arose::estimate::lexicon::Lexicon;
use arose::mix::SplitMix;

use super::log::{Answered, Asked};
use super::{
    Engine, Header, Health, Log, Page, Question, Reply, Requests, ResultList, Seat, address,
};
use crate::Error;

/// Number of initial queries without any response after which a search engine is given up.
const MAX_SILENT: u64 = 5;

/// Progress of a study, to be shown by another thread.
#[derive(Debug, Default)]
pub struct Progress {
    /// Number of requests sent.
    pub n_requests: AtomicU64,
    /// Number of completed units of work: pages sampled, queries sent.
    pub n_done: AtomicU64,
    /// Total number of units.
    pub n_wanted: AtomicU64,
}

/// The results of a search, as distinct page numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hits {
    pub(crate) claimed: Option<u64>,
    pub(crate) pages: Vec<usize>,
    /// Number of results as returned: a page may be returned under several URLs.
    pub(crate) n_results: usize,
}

impl Hits {
    /// Whether more results match than were returned: by the count of the search engine, or else
    /// because it returned its maximum number. Both are about results as returned, not about pages.
    pub(crate) fn is_cut(&self, limit: usize) -> bool {
        match self.claimed {
            Some(claimed) => claimed > self.n_results as u64,
            None => self.n_results >= limit,
        }
    }
}

/// The search engines of a study.
pub struct Panel {
    members: Vec<Member>,
    log: Log,
    requests: Requests,
    n_responses: u64,
    /// The number of each normalized URL.
    numbers: HashMap<String, usize>,
    addresses: Vec<String>,
    /// Pages that redirect to others.
    aliases: HashMap<usize, usize>,
}

struct Member {
    seat: Seat,
    /// None if responses come from a log.
    engine: Option<Box<dyn Engine>>,
    health: Health,
    answers: HashMap<Question, Rc<Reply<Hits>>>,
    pages: HashMap<usize, Rc<Reply<Page>>>,
    /// Whether it has pages, according to its lookup.
    lookups: HashMap<usize, Reply<bool>>,
    /// The spelling of page URLs by this search engine.
    spellings: HashMap<usize, String>,
    /// The queries in the order in which they were sent.
    asked: Vec<Question>,
    /// How often each query was repeated.
    repeats: HashMap<Question, u32>,
}

impl Member {
    /// The queries with results, in the order in which they were sent.
    fn answered(&self) -> Vec<Question> {
        let has_results =
            |question: &&Question| match self.answers.get(*question).map(|reply| &**reply) {
                Some(Reply::Answer(hits)) => !hits.pages.is_empty(),
                _ => false,
            };
        self.asked.iter().filter(has_results).cloned().collect()
    }

    fn new(seat: Seat, engine: Option<Box<dyn Engine>>) -> Self {
        Self {
            seat,
            engine,
            health: Health::default(),
            answers: HashMap::new(),
            pages: HashMap::new(),
            lookups: HashMap::new(),
            spellings: HashMap::new(),
            asked: Vec::new(),
            repeats: HashMap::new(),
        }
    }
}

impl Panel {
    /// Search engines by name, with a budget of at most `budget` requests in total. `words` are
    /// written to the log.
    ///
    /// # Errors
    ///
    /// If two search engines have the same name, or the log has other search engines.
    pub fn new(
        engines: Vec<(String, Box<dyn Engine>)>,
        words: &[(String, u64)],
        mut log: Log,
        budget: u64,
    ) -> Result<Self, Error> {
        let mut names = HashSet::new();
        for (name, _) in &engines {
            if !names.insert(name.as_str()) {
                return Err(Error::SameName { name: name.clone() });
            }
        }
        let members = engines.into_iter().map(|(name, engine)| {
            let seat = Seat {
                name,
                limit: engine.limit(),
                has_lookup: engine.has_lookup(),
            };
            Member::new(seat, Some(engine))
        });
        let members: Vec<Member> = members.collect();
        log.begin(&Header {
            seats: members.iter().map(|member| member.seat.clone()).collect(),
            words: words.to_vec(),
        })?;
        Ok(Self::with_members(members, log, budget))
    }

    /// The search engines of a replayed log.
    #[must_use]
    pub fn replay(log: Log) -> Self {
        let seats = log.header().map_or(&[][..], |header| &header.seats);
        let members = seats.iter().map(|seat| Member::new(seat.clone(), None));
        let members = members.collect();
        Self::with_members(members, log, u64::MAX)
    }

    fn with_members(members: Vec<Member>, log: Log, budget: u64) -> Self {
        Self {
            members,
            log,
            requests: Requests::new(budget),
            n_responses: 0,
            numbers: HashMap::new(),
            addresses: Vec::new(),
            aliases: HashMap::new(),
        }
    }

    /// The progress, for another thread.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(self.requests.progress())
    }

    /// Number of search engines.
    #[must_use]
    pub fn n_engines(&self) -> usize {
        self.members.len()
    }

    /// The name of a search engine.
    #[must_use]
    pub fn name(&self, engine: usize) -> &str {
        &self.members[engine].seat.name
    }

    /// Maximum number of results that a search engine shows.
    #[must_use]
    pub fn limit(&self, engine: usize) -> usize {
        self.members[engine].seat.limit
    }

    /// The behaviour of a search engine so far.
    #[must_use]
    pub fn health(&self, engine: usize) -> &Health {
        &self.members[engine].health
    }

    /// Number of responses used so far, including missing ones, from search engines or the log.
    #[must_use]
    pub fn n_responses(&self) -> u64 {
        self.n_responses
    }

    /// Sets the total number of units of work.
    pub(crate) fn expect(&self, n_wanted: u64) {
        let progress = self.requests.progress();
        progress.n_wanted.store(n_wanted, Ordering::Relaxed);
        progress.n_done.store(0, Ordering::Relaxed);
    }

    /// Counts one completed unit.
    pub(crate) fn advance(&self) {
        let progress = self.requests.progress();
        progress.n_done.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends a query to a search engine, unless it was sent before.
    pub(crate) fn search(
        &mut self,
        engine: usize,
        question: &Question,
    ) -> Result<Rc<Reply<Hits>>, Error> {
        if let Some(known) = self.members[engine].answers.get(question) {
            return Ok(Rc::clone(known));
        }
        let reply = self.ask_search(engine, question, 0)?;
        let limit = self.limit(engine);
        let hits = self.number(engine, &reply);
        let member = &mut self.members[engine];
        member.health.count_search(&hits, limit);
        let hits = Rc::new(hits);
        if let Reply::Missing(reason) = &reply
            && member.health.n_searches == MAX_SILENT
            && member.health.n_missing == MAX_SILENT
        {
            return Err(Error::Silent {
                engine: member.seat.name.clone(),
                n: MAX_SILENT,
                reason: reason.clone(),
            });
        }
        member.answers.insert(question.clone(), Rc::clone(&hits));
        member.asked.push(question.clone());
        Ok(hits)
    }

    /// The text of a page, from a search engine that returned it.
    pub(crate) fn fetch(&mut self, engine: usize, page: usize) -> Result<Rc<Reply<Page>>, Error> {
        if let Some(known) = self.members[engine].pages.get(&page) {
            return Ok(Rc::clone(known));
        }
        let spelling = self.members[engine].spellings.get(&page);
        let address = spelling.unwrap_or(&self.addresses[page]).clone();
        let asked = Asked::Fetch(address.clone());
        let answered = self.ask(engine, &asked, |engine, requests| {
            engine.fetch(&address, requests).map(Answered::Fetch)
        })?;
        let Answered::Fetch(reply) = answered else {
            return Err(self.log.unknown(self.name(engine), &asked));
        };
        if let Reply::Answer(found) = &reply {
            let alias = self.number_of(&found.address);
            if alias != page {
                self.aliases.insert(page, alias);
            }
        }
        let reply = Rc::new(reply);
        let member = &mut self.members[engine];
        member.health.count_fetch(&reply);
        member.pages.insert(page, Rc::clone(&reply));
        Ok(reply)
    }

    /// Whether a search engine has a page, according to its lookup by URL; none if it has no such
    /// lookup. `address` is the URL as spelled by the search engine that returned the page.
    pub(crate) fn contains(
        &mut self,
        engine: usize,
        page: usize,
        address: &str,
    ) -> Result<Option<Reply<bool>>, Error> {
        let member = &self.members[engine];
        if !member.seat.has_lookup {
            return Ok(None);
        }
        if let Some(known) = member.lookups.get(&page) {
            return Ok(Some(known.clone()));
        }
        let asked = Asked::Lookup(address.to_owned());
        let answered = self.ask(engine, &asked, |engine, requests| {
            engine.contains(address, requests).map(Answered::Lookup)
        })?;
        let Answered::Lookup(reply) = answered else {
            return Err(self.log.unknown(self.name(engine), &asked));
        };
        let member = &mut self.members[engine];
        member.health.count_lookup(&reply);
        member.lookups.insert(page, reply.clone());
        Ok(Some(reply))
    }

    /// Whether a search engine supports lookup by URL.
    pub(crate) fn has_lookup(&self, engine: usize) -> bool {
        self.members[engine].seat.has_lookup
    }

    /// The number of the page at a URL; a new number if necessary.
    pub(crate) fn page_at(&mut self, address: &str) -> usize {
        self.number_of(address)
    }

    /// Whether two pages are the same, by URL or by redirect target.
    pub(crate) fn are_one(&self, a: usize, b: usize) -> bool {
        let end = |page: usize| self.aliases.get(&page).copied().unwrap_or(page);
        a == b || end(a) == end(b)
    }

    /// Sends queries whose counts must be consistent, to test whether counts are reliable: there
    /// cannot be more pages with two words than with one of them. Runs once per search engine.
    pub(crate) fn compare_counts(
        &mut self,
        engine: usize,
        lexicon: &Lexicon<String>,
        n_pairs: u32,
        random: &mut SplitMix,
    ) -> Result<(), Error> {
        if self.health(engine).controls.n_comparable > 0 {
            return Ok(());
        }
        for _ in 0..n_pairs {
            let [first, second] = lexicon.draw_pair(random).map(String::as_str);
            let single = self.claim(engine, &Question::all(&[first]))?;
            let both = self.claim(engine, &Question::all(&[first, second]))?;
            let either = self.claim(engine, &Question::any(&[first, second]))?;
            let controls = &mut self.members[engine].health.controls;
            for (fewer, more) in [(both, single), (single, either)] {
                if let (Some(fewer), Some(more)) = (fewer, more) {
                    controls.n_comparable += 1;
                    controls.n_violations += u64::from(fewer > more);
                }
            }
        }
        Ok(())
    }

    fn claim(&mut self, engine: usize, question: &Question) -> Result<Option<u64>, Error> {
        Ok(match &*self.search(engine, question)? {
            Reply::Answer(hits) => hits.claimed,
            Reply::Missing(_) => None,
        })
    }

    /// Repeats some queries, to see whether the search engine has changed.
    pub(crate) fn ask_again(
        &mut self,
        engine: usize,
        n: usize,
        random: &mut SplitMix,
    ) -> Result<(), Error> {
        let mut answered = self.members[engine].answered();
        // For the earliest queries, the search engine had the most time to change.
        answered.truncate((answered.len() / 20).max(2 * n));
        random.shuffle(&mut answered);
        for question in answered.iter().take(n) {
            let times = self.members[engine].repeats.entry(question.clone());
            let again = times.and_modify(|times| *times += 1).or_insert(1);
            let again = *again;
            let reply = self.ask_search(engine, question, again)?;
            let now = self.number(engine, &reply);
            let member = &mut self.members[engine];
            if let (Reply::Answer(now), Reply::Answer(then)) = (&now, &*member.answers[question]) {
                member.health.controls.n_repeated += 1;
                member.health.controls.n_changed += u64::from(differ(then, now));
            }
        }
        Ok(())
    }

    fn ask_search(
        &mut self,
        engine: usize,
        question: &Question,
        again: u32,
    ) -> Result<Reply<ResultList>, Error> {
        let limit = self.limit(engine);
        let asked = Asked::Search(question.clone(), again);
        let answered = self.ask(engine, &asked, |engine, requests| {
            let reply = engine.search(question, limit, requests)?;
            Ok(Answered::Search(reply))
        })?;
        match answered {
            Answered::Search(reply) => Ok(reply),
            Answered::Fetch(_) | Answered::Lookup(_) | Answered::Visit(_) => {
                Err(self.log.unknown(self.name(engine), &asked))
            }
        }
    }

    /// A response from the log, or else from the search engine, if the budget allows.
    fn ask(
        &mut self,
        engine: usize,
        asked: &Asked,
        work: impl FnOnce(&mut dyn Engine, &Requests) -> Result<Answered, Error>,
    ) -> Result<Answered, Error> {
        let member = &mut self.members[engine];
        if let Some(known) = self.log.known(&member.seat.name, asked) {
            self.n_responses += 1;
            return Ok(known.clone());
        }
        let Some(source) = &mut member.engine else {
            return Err(self.log.unknown(&member.seat.name, asked));
        };
        let answered = work(&mut **source, &self.requests)?;
        self.log.add(&member.seat.name, asked, &answered)?;
        self.n_responses += 1;
        Ok(answered)
    }

    /// Numbers the distinct pages of a response.
    fn number(&mut self, engine: usize, reply: &Reply<ResultList>) -> Reply<Hits> {
        let found = match reply {
            Reply::Missing(reason) => return Reply::Missing(reason.clone()),
            Reply::Answer(found) => found,
        };
        let mut pages = Vec::with_capacity(found.addresses.len());
        let mut met = HashSet::new();
        for address in &found.addresses {
            let page = self.number_of(address);
            if met.insert(page) {
                pages.push(page);
            }
            if *address != self.addresses[page] {
                let spellings = &mut self.members[engine].spellings;
                spellings.entry(page).or_insert_with(|| address.clone());
            }
        }
        Reply::Answer(Hits {
            claimed: found.claimed,
            pages,
            n_results: found.addresses.len(),
        })
    }

    fn number_of(&mut self, address: &str) -> usize {
        let normal = address::normal(address);
        let next = self.addresses.len();
        let page = *self.numbers.entry(normal.clone()).or_insert(next);
        if page == next {
            self.addresses.push(normal);
        }
        page
    }
}

/// Whether a response has changed: it has other pages, regardless of their order.
fn differ(then: &Hits, now: &Hits) -> bool {
    let sorted = |hits: &Hits| {
        let mut pages = hits.pages.clone();
        pages.sort_unstable();
        pages
    };
    sorted(then) != sorted(now)
}
