//! An HTTP search engine, as specified by a [`Description`].
//!
//! Requests are polite: one at a time, with a pause in between, and a user agent in every request.
//! Temporary failures (a timeout, a status of 429 or 5xx) are retried after a longer pause, and
//! then count as missing. A response that contains neither results nor a count is also missing,
//! whatever its status.
//!
//! The header fields of a description often contain credentials. They are sent with searches,
//! lookups and documents only to the origin of the search engine's own URL. They are not sent to
//! redirect targets, nor to result pages, which are fetched as by the crawler ([`Pages`]).

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use ureq::Agent;
use url::Url;

use super::answer::{Parsed, Places, Pointers, body_text, page_text};
use super::{
    Description, Engine, Format, Joining, Page, Pages, Question, Reply, Requests, ResultList,
    address,
};
use crate::Error;

/// Maximum number of bytes read of one response.
const MAX_BODY: u64 = 16 << 20;

/// Maximum number of result texts that are kept.
const MAX_TEXTS: usize = 2000;

/// Maximum pause, and maximum time to wait for a response.
const MAX_PAUSE: Duration = Duration::from_secs(3600);

/// Maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Maximum number of result IDs that are kept.
const MAX_IDS: usize = 500_000;

/// The user agent.
const USER_AGENT: &str = concat!(
    "arose-estimate/",
    env!("CARGO_PKG_VERSION"),
    " (size estimation; one request at a time)"
);

/// An HTTP search engine.
pub struct Http {
    settings: HttpSettings,
    places: Places,
    document_text: Option<Pointers>,
    agent: Agent,
    pages: Rc<Pages>,
    last_request: Option<Instant>,
    remembered: Remembered,
}

struct HttpSettings {
    url: String,
    /// The only origin that `headers` are sent to.
    origin: url::Origin,
    document: Option<String>,
    lookup: Option<String>,
    headers: Vec<(String, String)>,
    limit: usize,
    per_page: usize,
    delay: Duration,
    retries: u32,
    word: String,
    phrase: String,
    and: String,
    or: String,
}

/// Properties of results besides their URL: all IDs, and the most recent texts.
#[derive(Default)]
struct Remembered {
    ids: HashMap<String, String>,
    texts: HashMap<String, String>,
    /// The URLs of the texts, oldest first.
    order: VecDeque<String>,
}

impl Remembered {
    fn add(&mut self, address: &str, id: Option<String>, text: Option<String>) {
        if let Some(id) = id
            && self.ids.len() < MAX_IDS
        {
            self.ids.insert(address.to_owned(), id);
        }
        let Some(text) = text else {
            return;
        };
        if self.texts.insert(address.to_owned(), text).is_none() {
            self.order.push_back(address.to_owned());
        }
        if self.order.len() > MAX_TEXTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.texts.remove(&oldest);
        }
    }
}

/// Why a request failed.
struct Failure {
    reason: String,
    may_pass: bool,
}

impl Failure {
    fn lasting(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            may_pass: false,
        }
    }
}

/// The reason why there is no response.
enum Trouble {
    /// The response is missing, for this reason.
    Missing(String),
    /// The study ends here.
    Ended(Error),
}

impl From<String> for Trouble {
    fn from(reason: String) -> Self {
        Self::Missing(reason)
    }
}

/// Converts missing responses to replies, and the rest to errors.
fn reply<T>(outcome: Result<T, Trouble>) -> Result<Reply<T>, Error> {
    match outcome {
        Ok(answer) => Ok(Reply::Answer(answer)),
        Err(Trouble::Missing(reason)) => Ok(Reply::Missing(reason)),
        Err(Trouble::Ended(error)) => Err(error),
    }
}

/// The result of one request.
enum Step {
    Done(Response),
    Redirect(String),
}

/// A received response.
struct Response {
    address: String,
    content_type: Option<String>,
    body: Vec<u8>,
}

impl Http {
    /// The search engine of a description. Texts that it does not return itself come from the
    /// result pages.
    ///
    /// # Errors
    ///
    /// If the description is incomplete or contradictory, or if texts come from result pages and
    /// their settings cannot be used.
    pub fn new(description: &Description, pages: &Rc<Pages>) -> Result<Self, Error> {
        let filled = description.filled()?;
        let places = places(&filled)?;
        let pointers = |text: &String| Pointers::new(text).map_err(|what| filled.bad(&what));
        let document_text = filled.document_text.as_ref().map(pointers).transpose()?;
        let settings = settings(&filled)?;
        if filled.leaves_texts_to_pages() {
            pages.visits()?;
        }
        let timeout = seconds(&filled, "timeout", filled.timeout, 10.0)?;
        let agent = Agent::config_builder()
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .user_agent(USER_AGENT)
            // Redirects are followed in this module, since header fields must not be sent along.
            .max_redirects(0)
            .build()
            .new_agent();
        Ok(Self {
            settings,
            places,
            document_text,
            agent,
            pages: Rc::clone(pages),
            last_request: None,
            remembered: Remembered::default(),
        })
    }

    /// A query in the syntax of this search engine.
    fn written(&self, question: &Question) -> String {
        let settings = &self.settings;
        let parts = question.parts.iter().map(|part| match part.contains(' ') {
            true => settings.phrase.replace("{phrase}", part),
            false => settings.word.replace("{word}", part),
        });
        let between = match question.joining {
            Joining::All => &settings.and,
            Joining::Any => &settings.or,
        };
        parts.collect::<Vec<String>>().join(between)
    }

    fn url(&self, question: &Question, offset: usize) -> String {
        let query = encoded(&self.written(question));
        let page = offset / self.settings.per_page + 1;
        self.settings
            .url
            .replace("{limit}", &self.settings.per_page.to_string())
            .replace("{offset}", &offset.to_string())
            .replace("{page}", &page.to_string())
            .replace("{query}", &query)
    }

    /// One page of results.
    fn results(&mut self, url: &str, requests: &Requests) -> Result<Parsed, Trouble> {
        let response = self.get(url, requests)?;
        let body = body_text(&response.body, response.content_type.as_deref());
        let mut parsed = self.places.read(&body)?;
        let base = Url::parse(&response.address).ok();
        for item in &mut parsed.items {
            let is_relative =
                Url::parse(&item.address) == Err(url::ParseError::RelativeUrlWithoutBase);
            // IDs that are not URLs are unchanged.
            let is_path = item.address.starts_with(['/', '.', '?']);
            if let (true, true, Some(base)) = (is_relative, is_path, &base)
                && let Ok(whole) = base.join(&item.address)
            {
                item.address = whole.into();
            }
            let (id, text) = (item.id.take(), item.text.take());
            self.remembered.add(&item.address, id, text);
        }
        Ok(parsed)
    }

    /// All results up to the limit, page after page.
    fn all_results(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<ResultList, Trouble> {
        let mut found = ResultList::default();
        while found.addresses.len() < limit {
            let url = self.url(question, found.addresses.len());
            let parsed = self.results(&url, requests)?;
            let n = parsed.items.len();
            found.claimed = found.claimed.or(parsed.claimed);
            found
                .addresses
                .extend(parsed.items.into_iter().map(|item| item.address));
            let has_all = found
                .claimed
                .is_some_and(|claimed| claimed <= found.addresses.len() as u64);
            if n < self.settings.per_page || has_all || self.settings.per_page >= limit {
                break;
            }
        }
        found.addresses.truncate(limit);
        Ok(found)
    }

    fn document(&mut self, address: &str, requests: &Requests) -> Result<Page, Trouble> {
        if let Some(text) = self.remembered.texts.get(address) {
            return Ok(Page {
                address: address.to_owned(),
                text: text.clone(),
            });
        }
        let Some(template) = self.settings.document.clone() else {
            return self.result_page(address, requests);
        };
        let template = match self.remembered.ids.get(address) {
            Some(id) => template.replace("{id}", &encoded(id)),
            None if template.contains("{id}") => {
                return Err(Trouble::Missing("the result has no ID".to_owned()));
            }
            None => template,
        };
        let url = template.replace("{address}", &encoded(address));
        let response = self.get(&url, requests)?;
        let text = match &self.document_text {
            None => page_text(&response.body, response.content_type.as_deref()),
            Some(pointers) => {
                let value = serde_json::from_slice(&response.body)
                    .map_err(|_| "the document is not JSON".to_owned())?;
                let text = pointers.text(&value);
                text.ok_or_else(|| "the document has no text".to_owned())?
            }
        };
        Ok(Page {
            address: address.to_owned(),
            text,
        })
    }

    /// The page that a result leads to. On the search engine's own host, its pause applies as well.
    fn result_page(&mut self, address: &str, requests: &Requests) -> Result<Page, Trouble> {
        let is_own = Url::parse(address).is_ok_and(|url| url.origin() == self.settings.origin);
        if is_own {
            self.pause(self.settings.delay);
        }
        let fetched = self.pages.fetch(address, requests);
        if is_own {
            self.last_request = Some(Instant::now());
        }
        match fetched.map_err(Trouble::Ended)? {
            Reply::Answer(page) => Ok(page),
            Reply::Missing(reason) => Err(Trouble::Missing(reason)),
        }
    }

    /// Whether a lookup of a URL returns that URL.
    fn look_up(&mut self, wanted: &str, requests: &Requests) -> Result<bool, Trouble> {
        let Some(template) = &self.settings.lookup else {
            return Err(Trouble::Missing("no lookup by URL".to_owned()));
        };
        let bare = wanted.split_once("://").map_or(wanted, |(_, rest)| rest);
        let url = template
            .replace("{address}", &encoded(wanted))
            .replace("{bare}", &encoded(bare));
        let parsed = self.results(&url, requests)?;
        let wanted = address::normal(wanted);
        let mut items = parsed.items.iter();
        Ok(items.any(|item| address::normal(&item.address) == wanted))
    }

    /// Waits until this much time has passed since the last request.
    fn pause(&self, pause: Duration) {
        if let Some(last) = self.last_request {
            thread::sleep(pause.saturating_sub(last.elapsed()));
        }
    }

    /// Sends a request, and retries it after a pause.
    fn get(&mut self, url: &str, requests: &Requests) -> Result<Response, Trouble> {
        let mut pause = self.settings.delay;
        for attempt in 0.. {
            self.pause(pause);
            let response = self.follow(url, requests)?;
            match response {
                Ok(response) => return Ok(response),
                Err(failure) if failure.may_pass && attempt < self.settings.retries => {
                    pause = (pause * 2).max(Duration::from_millis(100));
                }
                Err(failure) => return Err(Trouble::Missing(failure.reason)),
            }
        }
        unreachable!("the loop ends by an answer or with the last attempt")
    }

    /// One try, including its redirects; an error if the budget is spent.
    fn follow(
        &mut self,
        url: &str,
        requests: &Requests,
    ) -> Result<Result<Response, Failure>, Trouble> {
        let mut url = url.to_owned();
        for _ in 0..=MAX_REDIRECTS {
            requests.take().map_err(Trouble::Ended)?;
            let response = self.get_once(&url);
            self.last_request = Some(Instant::now());
            match response {
                Ok(Step::Done(response)) => return Ok(Ok(response)),
                Ok(Step::Redirect(next)) => url = next,
                Err(failure) => return Ok(Err(failure)),
            }
        }
        Ok(Err(Failure::lasting("too many redirects")))
    }

    fn get_once(&self, url: &str) -> Result<Step, Failure> {
        let failed = |error: ureq::Error| Failure {
            may_pass: !matches!(error, ureq::Error::BadUri(_) | ureq::Error::HostNotFound),
            reason: match error {
                ureq::Error::Timeout(_) => "timed out".to_owned(),
                ureq::Error::ConnectionFailed => "connection failed".to_owned(),
                error => error.to_string(),
            },
        };
        let mut request = self.agent.get(url);
        if Url::parse(url).is_ok_and(|url| url.origin() == self.settings.origin) {
            for (name, value) in &self.settings.headers {
                request = request.header(name, value);
            }
        }
        let mut response = request.call().map_err(failed)?;
        let status = response.status().as_u16();
        let field = |name: &str| {
            let value = response.headers().get(name)?.to_str().ok();
            value.map(str::to_owned)
        };
        if matches!(status, 301 | 302 | 303 | 307 | 308) {
            let to = field("location").unwrap_or_default();
            let to = Url::parse(url).and_then(|url| url.join(&to));
            let to =
                to.map_err(|_| Failure::lasting(format!("status {status} without a target")))?;
            return match to.scheme() {
                "http" | "https" => Ok(Step::Redirect(to.into())),
                scheme => Err(Failure::lasting(format!("redirected to {scheme}"))),
            };
        }
        if !(200..300).contains(&status) {
            return Err(Failure {
                reason: format!("status {status}"),
                may_pass: status == 429 || status >= 500,
            });
        }
        let content_type = field("content-type");
        let body = response.body_mut().with_config().limit(MAX_BODY);
        Ok(Step::Done(Response {
            address: url.to_owned(),
            content_type,
            body: body.read_to_vec().map_err(failed)?,
        }))
    }
}

impl Engine for Http {
    fn limit(&self) -> usize {
        self.settings.limit
    }

    fn search(
        &mut self,
        question: &Question,
        limit: usize,
        requests: &Requests,
    ) -> Result<Reply<ResultList>, Error> {
        reply(self.all_results(question, limit.min(self.settings.limit), requests))
    }

    fn fetch(&mut self, address: &str, requests: &Requests) -> Result<Reply<Page>, Error> {
        reply(self.document(address, requests))
    }

    fn has_lookup(&self) -> bool {
        self.settings.lookup.is_some()
    }

    fn contains(&mut self, address: &str, requests: &Requests) -> Result<Reply<bool>, Error> {
        reply(self.look_up(address, requests))
    }
}

fn settings(filled: &Description) -> Result<HttpSettings, Error> {
    let url = filled.url.clone();
    let url = url.ok_or_else(|| filled.bad("`url` is missing; set it to the URL of the server"))?;
    if !url.contains("{query}") {
        return Err(filled.bad("`url` has no place for the query; write {query} there"));
    }
    let limit = filled.limit.unwrap_or(100);
    let per_page = filled.per_page.unwrap_or(limit);
    if limit == 0 || per_page == 0 {
        return Err(filled.bad("`limit` and `per_page` must be at least 1"));
    }
    if per_page < limit && !url.contains("{offset}") && !url.contains("{page}") {
        return Err(filled.bad("`url` needs {offset} or {page} if `per_page` is below `limit`"));
    }
    let or = |text: &Option<String>, default: &str| text.clone().unwrap_or(default.to_owned());
    let headers = filled.headers.iter();
    let origin = Url::parse(&url).map_err(|error| filled.bad(&format!("`url`: {error}")))?;
    let settings = HttpSettings {
        origin: origin.origin(),
        url,
        document: filled.document.clone(),
        lookup: filled.lookup.clone(),
        headers: headers
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        limit,
        per_page,
        delay: seconds(filled, "delay", filled.delay, 1.0)?,
        retries: filled.retries.unwrap_or(2),
        word: or(&filled.word, "{word}"),
        phrase: or(&filled.phrase, "\"{phrase}\""),
        and: or(&filled.and, " "),
        or: or(&filled.or, " OR "),
    };
    let has = |template: &str, place: &str| template.contains(place);
    if let Some(lookup) = &settings.lookup
        && !has(lookup, "{address}")
        && !has(lookup, "{bare}")
    {
        return Err(filled.bad("`lookup` has no place for the URL; write {address} or {bare}"));
    }
    if !has(&settings.word, "{word}") || !has(&settings.phrase, "{phrase}") {
        return Err(filled.bad("`word` needs {word} and `phrase` needs {phrase}"));
    }
    Ok(settings)
}

/// A number of seconds from a description, or its default.
fn seconds(
    filled: &Description,
    name: &str,
    value: Option<f64>,
    default: f64,
) -> Result<Duration, Error> {
    let value = value.unwrap_or(default);
    let duration = Duration::try_from_secs_f64(value).ok();
    let duration = duration.filter(|duration| *duration <= MAX_PAUSE);
    let expected = MAX_PAUSE.as_secs();
    duration.ok_or_else(|| {
        filled.bad(&format!(
            "`{name}` is {value}; expected 0 to {expected} seconds"
        ))
    })
}

fn places(filled: &Description) -> Result<Places, Error> {
    let needed = |name: &str, value: &Option<String>| {
        let missing = || {
            filled.bad(&format!(
                "`{name}` is missing; set it to its path in responses"
            ))
        };
        value.clone().ok_or_else(missing)
    };
    let results = needed("results", &filled.results)?;
    let address = needed("address", &filled.address)?;
    let guess = match results.starts_with('/') {
        true => Format::Json,
        false => Format::Html,
    };
    let bad = |what: String| filled.bad(&what);
    match filled.format.unwrap_or(guess) {
        Format::Json => {
            let optional = |text: &Option<String>| {
                let pointers = text.as_ref().map(|text| Pointers::new(text));
                pointers.transpose().map_err(bad)
            };
            Ok(Places::Json {
                results: Pointers::new(&results).map_err(bad)?,
                address: Pointers::new(&address).map_err(bad)?,
                count: optional(&filled.count)?,
                text: optional(&filled.text)?,
                id: optional(&filled.id)?,
            })
        }
        Format::Html => {
            let count = filled.count.as_ref().map(|path| path.parse());
            Ok(Places::Html {
                results: results.parse().map_err(bad)?,
                address: address.parse().map_err(bad)?,
                count: count.transpose().map_err(bad)?,
                none: filled.none.clone(),
            })
        }
    }
}

/// Encodes text for a query string.
fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
