//! Parses responses: extracts links, checks for duplicates, and makes the archive record.
//!
//! This code needs neither network nor clock nor frontier. Most of the CPU time of a crawl is spent
//! here, so it runs on separate threads ([`crate::workers`]). The size of the output is bounded by
//! that of the input.

mod likeness;
mod links;
mod quality;
mod repetition;
mod topic;
mod version;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arose::digest::digest64;
use arose::focus::LinkWords;
use arose_corpus::html::{self, Links, Mode, Switch};
use arose_corpus::payload;
use arose_corpus::quality::Assessor;
use arose_corpus::{Limits, decode_content};
use arose_dedup::index::{self, Sketch};

use crate::archive::{Packed, Packer, Record, bare_media_type, payload_digest};
use crate::contain::contain;
use crate::content::{Claim, Contents, Name, Original, Sketcher, settings_of};
use crate::error::Error;
use crate::fetch::{Failure, Head, Message, request_bytes};
use crate::fingerprint::Fingerprint;
use crate::focus::Judge;
use crate::frontier::Novelty;
use crate::guard::{Counts, Guard, Reason};
use crate::journal::{HostId, Kind};
use crate::log;
use crate::order::Weight;
use crate::pages::{Revisit, Version};
use crate::robots;
use crate::settings::{DuplicateBody, DuplicateLinks, DuplicatePolicy, Settings};
use crate::url::{FileUrls, NormalUrl, Normalizer, SessionIds, Url};
pub(crate) use likeness::Likeness;
use links::{Link, N_RECENT, Recent};
pub(crate) use quality::Rejections;
use quality::{Judged, is_same_site, template};
use repetition::{leads_on, shape};
pub(crate) use topic::OnTopic;
use version::{elsewhere, is_as_before, nonzero, note_unmodified, raw};

/// Identifies a queued URL while it is fetched and parsed.
pub(crate) type Ticket = u64;

/// A response to be parsed.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) host: HostId,
    /// The queued URL that was requested; `None` for a robots.txt, which is only archived.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) url: NormalUrl,
    pub(crate) kind: Kind,
    pub(crate) depth: u32,
    pub(crate) n_redirects: u8,
    /// Whether it was queued to go last.
    pub(crate) is_last: bool,
    /// Whether it was found on a page that repeats others.
    pub(crate) of_repeat: bool,
    /// The mass and trust from its links.
    pub(crate) weight: Weight,
    /// The page on which it was found; empty for seeds.
    pub(crate) found_on: Box<str>,
    pub(crate) message: Message,
    /// The duration of the request.
    pub(crate) took: Duration,
    /// When the response arrived, in seconds since 1970.
    pub(crate) date: i64,
    pub(crate) address: IpAddr,
    /// The earlier version, if the page was fetched before.
    pub(crate) revisit: Option<Box<Revisit>>,
}

/// The result of parsing a response.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) host: HostId,
    pub(crate) ticket: Option<Ticket>,
    pub(crate) rest: String,
    pub(crate) kind: Kind,
    pub(crate) depth: u32,
    pub(crate) n_redirects: u8,
    pub(crate) status: u16,
    pub(crate) is_page: bool,
    /// The weight of the page, from 0.1 to 1; 1 if it is unknown.
    pub(crate) quality: f32,
    /// The weight of its own text, even if it duplicates another page.
    pub(crate) own_quality: f32,
    /// The rule of the settings that rejects it.
    pub(crate) rejected_by: Option<Box<str>>,
    /// A hash shared by home pages of one template at one IP address; `None` for other pages.
    pub(crate) template: Option<u64>,
    /// Whether it has any text.
    pub(crate) has_text: bool,
    /// A digest of its content without session IDs in links.
    pub(crate) likeness: Likeness,
    /// Whether a parser failed on it.
    pub(crate) is_unread: bool,
    pub(crate) original: Option<Original>,
    /// The fingerprint of the URL of its original.
    pub(crate) original_key: Option<Fingerprint>,
    /// The mass and trust from its links when it was fetched.
    pub(crate) weight: Weight,
    /// Its importance: its mass times its quality.
    pub(crate) importance: f32,
    /// What it adds to the pages that its host has shown before.
    pub(crate) novelty: Novelty,
    /// Whether its links go last.
    pub(crate) is_last: bool,
    /// Whether it has links that are not followed because it is a duplicate.
    pub(crate) is_unfollowed: bool,
    /// Given back when the record is in the archive.
    pub(crate) claim: Option<Claim>,
    /// The error of the index of contents.
    pub(crate) failure: Option<index::Error>,
    pub(crate) links: Vec<Found>,
    /// Links met recently on the same site, and fingerprints of the different URLs among them.
    pub(crate) n_known: u64,
    pub(crate) known: Vec<Fingerprint>,
    /// Number of different pages that it links to.
    pub(crate) n_links: usize,
    pub(crate) counts: Counts,
    pub(crate) record: Packed,
    /// Its line in the log.
    pub(crate) line: String,
    /// Its content, and the earlier version.
    pub(crate) version: Version,
    pub(crate) revisit: Option<Box<Revisit>>,
    /// Pages that a list reports as changed, by fingerprint, with the date of the change.
    pub(crate) announced: Vec<(u128, u32)>,
    /// The fingerprint of the URL that it redirects to.
    pub(crate) leads_to: Option<u128>,
    /// The data of the page for a focus.
    pub(crate) on_topic: Option<Box<OnTopic>>,
}

impl Report {
    /// Creates an empty report.
    fn new(job: &Job) -> Self {
        Self {
            host: job.host,
            ticket: job.ticket,
            rest: job.url.rest().to_owned(),
            kind: job.kind,
            depth: job.depth,
            n_redirects: job.n_redirects,
            status: job.message.head().map_or(0, |head| head.status),
            is_page: false,
            quality: 1.0,
            own_quality: 1.0,
            rejected_by: None,
            template: None,
            has_text: false,
            likeness: Likeness::default(),
            is_unread: false,
            original: None,
            original_key: None,
            weight: job.weight,
            importance: job.weight.mass.amount(),
            claim: None,
            novelty: Novelty::of(job.of_repeat),
            is_last: job.is_last,
            is_unfollowed: false,
            failure: None,
            links: Vec::new(),
            n_known: 0,
            known: Vec::new(),
            n_links: 0,
            counts: Counts::default(),
            record: Packed::default(),
            line: String::new(),
            version: Version::default(),
            revisit: None,
            announced: Vec::new(),
            leads_to: None,
            on_topic: None,
        }
    }
}

/// An approved link.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) url: NormalUrl,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) kind: Kind,
    pub(crate) is_redirect: bool,
    /// Its priority in a sitemap ([`crate::order::class_of`]).
    pub(crate) class: u8,
    /// Whether another link on the page leads to the same URL.
    pub(crate) is_repeat: bool,
    /// Its anchor and its position on the page, if a focus needs them.
    pub(crate) words: Option<Box<LinkWords>>,
}

/// Data shared by all readers.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) guard: Guard,
    pub(crate) normalizer: Normalizer,
    pub(crate) contents: Option<Arc<Contents>>,
    pub(crate) rejections: Rejections,
    /// Scores pages; `None` if there is no focus.
    pub(crate) judge: Option<Arc<Judge>>,
}

/// Builds the guard of these settings.
pub(crate) fn guard(settings: &Settings) -> Result<Guard, Error> {
    Guard::new(settings.scope.guard()).map_err(|error| {
        let source = std::error::Error::source(&error).map(ToString::to_string);
        Error::Settings(format!("{error}: {}", source.unwrap_or_default()))
    })
}

/// Builds the normalizer of these settings.
pub(crate) fn normalizer(settings: &Settings) -> Normalizer {
    let session_ids = match settings.scope.drop_session_ids {
        true => SessionIds::Drop,
        false => SessionIds::Keep,
    };
    Normalizer {
        session_ids,
        files: match settings.scope.files.is_empty() {
            true => FileUrls::Refuse,
            false => FileUrls::Accept,
        },
        ..Normalizer::default()
    }
}

impl Shared {
    /// Prepares the shared data for these settings.
    pub(crate) fn new(settings: Settings, contents: Option<Arc<Contents>>) -> Result<Self, Error> {
        let guard = guard(&settings)?;
        Ok(Self {
            normalizer: normalizer(&settings),
            guard,
            contents,
            rejections: Rejections::parse(&settings.quality.reject)?,
            settings,
            judge: None,
        })
    }

    /// Creates the sketcher for the index of contents or, without an index, for comparing versions.
    fn sketcher(&self) -> Sketcher {
        match &self.contents {
            Some(contents) => Sketcher::new(contents.settings()),
            None => Sketcher::new(&settings_of(DuplicatePolicy::default())),
        }
    }

    /// Normalizes a URL from a server without a page reader. If a parser fails on it, the URL is
    /// invalid.
    pub(crate) fn normalize(&self, text: &str, base: Option<&Url>) -> Result<NormalUrl, Reason> {
        let normalized = contain(|| {
            #[cfg(test)]
            tests::fail_if_told_to_by(text);
            self.normalizer.normalize(text, base)
        });
        normalized.map_or(Err(Reason::Invalid), |url| url.map_err(Into::into))
    }
}

/// Parses pages one after another.
#[derive(Debug)]
pub(crate) struct Reader {
    shared: Arc<Shared>,
    packer: Packer,
    sketcher: Sketcher,
    assessor: Assessor,
    html: html::HtmlConfig,
    limits: Limits,
    user_agent: String,
    /// Recently met links, each in its own slot. Most links of a page were already on the previous
    /// page and need no further work. Empty if every link of a page is wanted.
    recent: Vec<Recent>,
    /// Scratch space: the URLs that the links of a page lead to.
    targets: Vec<(u128, usize)>,
    /// Words of anchors that were reported to the focus.
    named: topic::Named,
}

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        // A focus needs every link.
        let n_recent = if shared.judge.is_some() { 0 } else { N_RECENT };
        Self {
            recent: vec![Recent::default(); n_recent],
            ..Self::of_each(shared)
        }
    }

    /// Uses these settings from now on.
    pub(crate) fn renew(&mut self, shared: &Arc<Shared>) {
        if !Arc::ptr_eq(&self.shared, shared) {
            *self = Self::new(Arc::clone(shared));
        }
    }

    /// Creates a reader that reports every link of every page, however often it was met.
    pub(crate) fn of_each(shared: Arc<Shared>) -> Self {
        let settings = &shared.settings;
        Self {
            packer: Packer::new(settings.archive.level),
            sketcher: shared.sketcher(),
            assessor: Assessor::default(),
            html: html::HtmlConfig {
                mode: Mode::Henzinger, // Rules for URLs compare links.
                visibility: Switch::On,
                links: match settings.scope.requisites {
                    true => Links::CollectAll,
                    false => Links::Collect,
                },
                anchors: match shared.judge.is_some() {
                    true => Switch::On,
                    false => Switch::Off,
                },
                ..html::HtmlConfig::default()
            },
            limits: Limits {
                body_bytes: settings
                    .fetch
                    .max_body
                    .saturating_mul(settings.fetch.max_expansion.max(1)),
                expansion: settings.fetch.max_expansion as u64,
                ..Limits::default()
            },
            user_agent: settings.user_agent(),
            recent: Vec::new(),
            targets: Vec::new(),
            named: topic::Named::default(),
            shared,
        }
    }

    /// Normalizes a URL that was normalized here before.
    pub(crate) fn normalize(&self, text: &str) -> Option<NormalUrl> {
        self.shared.normalizer.normalize(text, None).ok()
    }

    /// Returns the body of a response without content codings; `None` if they cannot be removed.
    pub(crate) fn body(&self, message: &Message) -> Option<Vec<u8>> {
        let head = message.head();
        let codings = head.and_then(|head| head.get("content-encoding"));
        let body = decode_content(codings.unwrap_or_default(), message.body(), &self.limits);
        body.ok().map(std::borrow::Cow::into_owned)
    }

    /// Parses a response and packs it for the archive.
    pub(crate) fn read(&mut self, job: Job) -> Report {
        let payload = payload_digest(job.message.body());
        let mut report = self.look(&job, &payload);
        let packed = contain(|| self.pack(&job, &payload, &report));
        report.is_unread |= packed.is_none();
        report.record = packed.unwrap_or_default();
        report.line = line(&job, &payload, &report);
        report.revisit = job.revisit;
        report
    }

    /// Parses a response whose body has this digest. If a parser fails on it, the report says only
    /// that.
    pub(crate) fn look(&mut self, job: &Job, payload: &str) -> Report {
        if let Some(report) = contain(|| self.parse(job, payload)) {
            return report;
        }
        // Replaces what the failed parser may have left inconsistent.
        *self = Self {
            recent: vec![Recent::default(); self.recent.len()],
            ..Self::of_each(Arc::clone(&self.shared))
        };
        Report {
            is_unread: true,
            ..Report::new(job)
        }
    }

    fn parse(&mut self, job: &Job, payload: &str) -> Report {
        let head = job.message.head();
        let header = |name: &str| head.and_then(|head| head.get(name)).unwrap_or_default();
        let mut report = Report::new(job);
        report.on_topic = self.on_topic(job, payload);
        #[cfg(test)]
        tests::fail_if_told_to(job);
        match report.status {
            _ if job.ticket.is_none() => {}
            200..=299 if job.kind == Kind::Sitemap => {
                report.version = raw(job);
                self.read_sitemap(job, head, &mut report);
            }
            200..=299 => self.read_page(job, head, payload, &mut report),
            304 if job.revisit.is_some() => note_unmodified(job, &mut report),
            300..=399 => {
                report.version = elsewhere(job, header("location"));
                let link = Link {
                    text: header("location"),
                    kind: job.kind,
                    is_redirect: true,
                    class: 0,
                    name: ("", ""),
                };
                self.add_link(job, &link, &mut report);
                let to = report.links.last();
                report.leads_to = to.map(|found| found.fingerprint.key());
            }
            _ => {}
        }
        version::refer_back(job, &mut report);
        self.count_links(&mut report);
        let original = report.original.as_ref();
        let url = original.and_then(|original| self.normalize(&original.url));
        report.original_key = url.map(|url| Fingerprint::of(&url));
        report.importance = report.weight.mass.amount() * report.quality;
        report
    }

    fn pack(&mut self, job: &Job, payload: &str, report: &Report) -> Packed {
        let shared = Arc::clone(&self.shared);
        let message = &job.message;
        let head = message.head();
        let header = |name: &str| head.and_then(|head| head.get(name)).unwrap_or_default();
        let media_type = bare_media_type(header("content-type"));
        let request = shared.settings.archive.requests.then(|| {
            let authority = job
                .url
                .origin()
                .split_once("://")
                .map_or("", |(_, rest)| rest);
            // Archives must not contain credentials.
            request_bytes(authority, job.url.rest(), &self.user_agent, &[])
        });
        let record = Record {
            url: job.url.as_str(),
            date: job.date,
            address: job.address,
            status: report.status,
            media_type,
            head: message.head_bytes(),
            body: message.body(),
            payload,
            cut: message.cut,
            original: report.original.as_ref(),
            near_duplicates: match report.version.is_same {
                true => DuplicateBody::Drop,
                false => shared.settings.duplicates.body,
            },
            request: request.as_deref(),
            sketch: report.version.sketch,
        };
        record.pack(&mut self.packer)
    }

    fn read_page(&mut self, job: &Job, head: Option<Head<'_>>, digest: &str, report: &mut Report) {
        let shared = Arc::clone(&self.shared);
        let header = |name: &str| head.and_then(|head| head.get(name));
        let codings = header("content-encoding").unwrap_or_default();
        let Ok(body) = decode_content(codings, job.message.body(), &self.limits) else {
            return;
        };
        let url = job.url.as_str();
        let page = payload::read(&body, header("content-type"), Some(url), &self.html);
        let keeps_sketches = shared.contents.is_some() || shared.settings.recrawl.on;
        let sketch = match &page {
            Ok(page) if keeps_sketches => self.sketcher.page(page, job.url.host()).of_page(url),
            Ok(page) => Sketch::of_digest(page.content_digest()),
            Err(_) => self.sketcher.bytes(&body),
        };
        report.version.digest = nonzero(sketch.digest.0 as u64);
        if keeps_sketches && page.is_ok() {
            report.version.sketch = self.sketcher.version();
        }
        if is_as_before(job, report) {
            // Equal bytes have equal links.
            let is_identical = report
                .original
                .as_ref()
                .is_some_and(|o| o.payload == digest);
            if is_identical {
                report.is_page = page.is_ok();
                return;
            }
        } else if let Some(contents) = &shared.contents
            && !body.is_empty()
        {
            let date = job.date;
            let payload = digest;
            let bytes = || self.sketcher.bytes(job.message.body());
            let judged = contents.claim().and_then(|claim| {
                report.claim = Some(claim);
                contents.judge_payload(Name { url, payload, date }, &sketch, bytes)
            });
            match judged {
                Ok(original) => report.original = original,
                Err(error) => report.failure = Some(error),
            }
        }
        if shared.settings.scope.requisites {
            self.add_requisites(
                job,
                &body,
                header("content-type"),
                page.as_ref().ok(),
                report,
            );
        }
        let Ok(page) = page else { return };
        // Only images and the like are expected here. Links of other content are not followed.
        if job.kind == Kind::Requisite {
            return;
        }
        report.is_page = true;
        report.has_text = !page.text.trim().is_empty();
        if shared.settings.rules.on {
            report.likeness = Likeness::of(&page);
        }
        let original = report.original.as_ref();
        let original = original.filter(|_| !report.version.is_same);
        report.novelty.original = original.map(|original| digest64(original.url.as_bytes()));
        report.novelty.shape = shape(&job.url, &page.text);
        self.judge_quality(job, &page, report);
        self.judge_topic(job, &page, report);
        // A user who passes a seed wants the pages it links to.
        let is_duplicate = report.original.is_some() && job.revisit.is_none();
        let links = match is_duplicate && job.depth > 0 {
            true => shared.settings.duplicates.links,
            false => DuplicateLinks::First,
        };
        report.is_last = links == DuplicateLinks::Last;
        let mut tags = head.iter().flat_map(|head| head.values("x-robots-tag"));
        let agent = &shared.settings.agent.name;
        let asks_not =
            tags.any(|tag| robots::forbids_following(&String::from_utf8_lossy(tag), agent));
        if let Some(metadata) = page.metadata
            && !asks_not
            && !metadata.robots.nofollow
            && report.rejected_by.is_none()
        {
            match links {
                DuplicateLinks::Never => report.is_unfollowed = !metadata.links.is_empty(),
                _ => {
                    self.name_words(&metadata, report);
                    self.add_feeds(job, &metadata, report);
                    self.add_links(job, &metadata, report);
                }
            }
        }
        report.novelty.leads_on = leads_on(&job.url, &report.links);
    }

    /// Weighs a page, and checks whether the settings reject it.
    fn judge_quality(&mut self, job: &Job, page: &payload::Page, report: &mut Report) {
        let metadata = page.metadata.as_deref();
        let detail = self.shared.rejections.detail();
        let title = page.title.as_deref();
        let found = self.assessor.page(&page.text, title, metadata, detail);
        let original = report.original.as_ref().map(|original| &*original.url);
        let is_scraped = original.is_some_and(|original| !is_same_site(original, &job.url));
        let judged = Judged::new(found, is_scraped);
        report.quality = judged.weight as f32;
        report.own_quality = judged.own as f32;
        report.rejected_by = self.shared.rejections.of(&judged);
        let visibility = metadata.and_then(|metadata| metadata.visibility.as_deref());
        let visibility = visibility.filter(|_| job.url.rest() == "/");
        report.template = visibility.map(|seen| template(seen.skeleton, job.address));
    }
}

/// Returns the log line of a response whose body has this digest.
fn line(job: &Job, payload: &str, report: &Report) -> String {
    let content_type = job.message.head().and_then(|head| head.get("content-type"));
    let rejected = report.rejected_by.as_ref();
    let rejected = rejected.map(|rule| format!("quality:{rule}"));
    let line = log::Line {
        date: job.date,
        status: report.status,
        reason: match (report.is_unread, rejected.as_deref()) {
            (true, _) => Failure::Unreadable.as_str(),
            (false, Some(rejected)) => rejected,
            (false, None) => "",
        },
        n_bytes: job.message.body().len(),
        took: job.took,
        content_type: content_type.unwrap_or_default(),
        digest: payload,
        duplicate_of: report.original.as_ref().map_or("", |of| &of.url),
        found_on: &job.found_on,
        url: job.url.as_str(),
    };
    line.text()
}

#[cfg(test)]
mod tests;
