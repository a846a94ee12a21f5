//! Generates ordinary pages: words, links and size, as HTML.
//!
//! Everything on a page is a function of the key of its host, its number and, for some hosts, the
//! session ID, the version or the time. Sizes are log-normal, as on the web: median
//! [`Config::median_bytes`](crate::Config::median_bytes), at least 2 KiB of text, at most 1 MiB.
//!
//! Cost: `testweb load` measures 1/40 ms of the server's CPU time for a page of 15 KB, from reading
//! the request to passing on the response, including system time.

use crate::config::Kind;
use crate::graph::{Link, PageId, push_number, strip_crumb};
use crate::prose::{Edits, Prose, SENTENCE_BYTES};
use crate::random::{Random, key, text_key};
use crate::truth::Likeness;
use crate::web::{FEED, Moment, Web};

/// Minimum length of the text: in a shorter text, one changed line would make a different page.
const LEAST_BYTES: f64 = 2048.0;
const MOST_BYTES: f64 = 1_048_576.0;
const PARAGRAPH_SENTENCES: usize = 7;
/// Percentage of sentences that all pages of a template host share.
const TEMPLATE_PERCENT: usize = 55;
/// Approximate number of bytes of a link; links count towards the size.
const LINK_BYTES: usize = 50;

impl Web {
    /// Appends the page. `target` is that of the request; links take their session ID from it.
    pub(crate) fn render(&self, id: PageId, target: &str, moment: &Moment, out: &mut Vec<u8>) {
        let plan = self.plan(id, moment);
        let links = self.links(id);
        let kind = self.host(id).kind;
        if kind.is_spam() && kind != Kind::Scraped {
            return self.render_spam(id, &links, out);
        }
        if kind == Kind::Topic {
            return self.render_topic(id, out);
        }
        out.reserve(plan.n_bytes + plan.n_bytes / 4 + links.len() * 2 * LINK_BYTES);
        out.extend_from_slice(b"<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>");
        let mut title = Prose::new(self.vocabulary(), key(plan.text, 1), None);
        title.words(3, out);
        out.extend_from_slice(b"</title>");
        if kind == Kind::Changing && id.page == 0 {
            let feed = "<link rel=\"alternate\" type=\"application/rss+xml\" href=\"";
            out.extend([feed, FEED, "\">"].concat().bytes());
        }
        out.extend_from_slice(b"</head>\n<body>\n<h1>");
        title.words(4, out);
        out.extend_from_slice(b"</h1>\n");
        if kind == Kind::Timestamp {
            push_clock(moment, out);
        }
        if kind == Kind::Shop {
            push_article(id.page, out);
        }
        let session = self.session(id, target);
        self.push_body(id, &plan, &links, &session, out);
        out.extend_from_slice(b"<p>");
        Prose::new(self.vocabulary(), key(plan.variant, 2), None).words(3, out);
        out.extend_from_slice(b"\n</body></html>\n");
    }

    /// A validator: equal for equal pages.
    pub(crate) fn entity_tag(&self, id: PageId, moment: &Moment) -> String {
        let plan = self.plan(id, moment);
        format!("\"{:016x}\"", key(plan.text, plan.variant))
    }

    /// The last step up to `version` at which a page of a [changing](Kind::Changing) host changed,
    /// or 0 for never. Each page changes at each step with a probability of its own, from 1 in 1 to
    /// 1 in 64, or never.
    #[must_use]
    pub fn page_version(&self, id: PageId, version: u64) -> u64 {
        let page_key = key(key(self.host(id).key, u64::from(id.page)), 4);
        let period = match page_key % 8 {
            7 => return 0,
            power => 1 << power,
        };
        let changes = |step: &u64| key(page_key, *step).is_multiple_of(period);
        // The probability of 4,096 steps without a change is e^-64.
        let first = version.saturating_sub(4096) + 1;
        (first..=version).rev().find(changes).unwrap_or(0)
    }

    fn plan(&self, id: PageId, moment: &Moment) -> Plan {
        let host = self.host(id);
        let copied = self.copied(id);
        let page = copied.map_or(id.page, |(page, _)| page);
        let page_key = key(host.key, u64::from(page));
        let is_near_copy = matches!(copied, Some((_, Likeness::Near)));
        let is_near_host = host.kind == Kind::NearMirror;
        let variant = match (is_near_host, is_near_copy) {
            (false, false) => 0,
            (true, false) => key(u64::from(id.host), u64::from(page)),
            (false, true) => key(host.key, key(7, u64::from(id.page))),
            (true, true) => key(u64::from(id.host), key(7, u64::from(id.page))),
        };
        let version = match host.kind {
            Kind::Changing => self.page_version(id, moment.version),
            _ => 0,
        };
        let page_key = match (host.kind, page) {
            // The page with the same number, or another if the original host has no such page.
            (Kind::Scraped, _) => {
                let original = &self.hosts()[self.scraped_host(id.host) as usize];
                key(original.key, u64::from(page % original.n_pages.max(1)))
            }
            (Kind::Shop, _) => key(host.key, 0),
            (Kind::SameHome, 0) => key(self.config().seed, 0),
            _ => page_key,
        };
        let normal = Random::new(key(page_key, 3)).normal();
        let median = f64::from(self.config().median_bytes);
        let n_bytes = median * (self.config().size_sigma * normal).exp();
        Plan {
            text: key(page_key, 100 + version),
            variant,
            n_bytes: n_bytes.clamp(LEAST_BYTES, MOST_BYTES) as usize,
        }
    }

    /// The plain host whose text a [scraped](Kind::Scraped) host shows.
    #[must_use]
    pub fn scraped_host(&self, host: u32) -> u32 {
        let hosts = self.hosts().iter();
        let plain: Vec<u32> = (0..)
            .zip(hosts)
            .filter(|(_, host)| host.kind == Kind::Plain)
            .map(|(idx, _)| idx)
            .collect();
        plain[key(u64::from(host), 12) as usize % plain.len()]
    }

    /// Paragraphs, with the links distributed evenly after them.
    fn push_body(&self, id: PageId, plan: &Plan, links: &[Link], session: &str, out: &mut Vec<u8>) {
        let text_bytes = plan.n_bytes.saturating_sub(links.len() * LINK_BYTES);
        let n_sentences = (text_bytes / SENTENCE_BYTES).max(2 * PARAGRAPH_SENTENCES);
        let n_paragraphs = n_sentences.div_ceil(PARAGRAPH_SENTENCES);
        let is_template = self.host(id).kind == Kind::Template;
        let edits =
            (plan.variant != 0).then(|| Edits::new(plan.variant, self.config().edits_per_thousand));
        let mut prose = Prose::new(self.vocabulary(), plan.text, edits);
        let mut template = Prose::new(self.vocabulary(), self.host(id).key, None);
        let mut n_done = 0;
        for paragraph in 1..=n_paragraphs {
            out.extend_from_slice(b"<p>");
            let is_shared = is_template && paragraph * 100 <= n_paragraphs * TEMPLATE_PERCENT;
            let source = if is_shared { &mut template } else { &mut prose };
            source.sentences(PARAGRAPH_SENTENCES, out);
            out.extend_from_slice(b"</p>\n");
            let n_due = links.len() * paragraph / n_paragraphs;
            for (idx, link) in links.iter().enumerate().take(n_due).skip(n_done) {
                let form = key(key(plan.text, 5), idx as u64);
                self.push_link(id, link, form, session, out);
            }
            n_done = n_due;
        }
    }

    pub(crate) fn push_link(
        &self,
        id: PageId,
        link: &Link,
        form: u64,
        session: &str,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(b"<a href=\"");
        match link {
            Link::Own(page) => {
                let target = PageId { page: *page, ..id };
                self.push_own(target, form, session, out);
            }
            Link::Page(target) => {
                let name = &self.hosts()[target.host as usize].name;
                self.push_origin(name, out);
                self.push_other_form(*target, form, out);
            }
            Link::Path(path) => out.extend_from_slice(path.as_bytes()),
            Link::Url(url) => out.extend_from_slice(url.as_bytes()),
        }
        out.extend_from_slice(b"\">");
        Prose::new(self.vocabulary(), form, None).words(2, out);
        out.extend_from_slice(b"</a>\n");
    }

    /// A link within the host, with its session ID if it has one.
    fn push_own(&self, target: PageId, form: u64, session: &str, out: &mut Vec<u8>) {
        let host = self.host(target);
        match host.kind {
            Kind::PathCrumb => {
                out.extend_from_slice(b"/S-");
                out.extend_from_slice(session.as_bytes());
                self.push_path(target, out);
            }
            Kind::QueryCrumb => {
                self.push_path(target, out);
                out.extend_from_slice(b"?sid=");
                out.extend_from_slice(session.as_bytes());
            }
            Kind::FreshSessions => {
                self.push_path(target, out);
                out.extend_from_slice(b"?sid=");
                out.extend_from_slice(session_name(text_key(form, session)).as_bytes());
            }
            Kind::Dust => {
                if form >> 60 == 0 {
                    self.push_origin(&format!("www.{}", host.name), out);
                }
                self.push_other_form(target, form, out);
            }
            _ => self.push_path(target, out),
        }
    }

    /// The path, in one of the forms of a [dust](Kind::Dust) host.
    fn push_other_form(&self, target: PageId, form: u64, out: &mut Vec<u8>) {
        let is_dust = self.host(target).kind == Kind::Dust;
        match form % 4 {
            1 if is_dust && target.page > 0 => {
                out.extend_from_slice(b"/story?id=");
                push_number(target.page, out);
            }
            2 if is_dust => {
                self.push_path(target, out);
                let name = if target.page > 0 {
                    "/index.html"
                } else {
                    "index.html"
                };
                out.extend_from_slice(name.as_bytes());
            }
            _ => self.push_path(target, out),
        }
    }

    /// The session ID of a request, or a new one if it has none.
    fn session(&self, id: PageId, target: &str) -> String {
        let fresh = || session_name(text_key(self.host(id).key, target));
        match self.host(id).kind {
            Kind::PathCrumb => {
                strip_crumb(target).map_or_else(fresh, |(session, _)| session.to_owned())
            }
            Kind::QueryCrumb => {
                let given = target.split_once("?sid=").map(|(_, session)| session);
                let is_good = |session: &&str| {
                    session.len() == 11 && session.bytes().all(|b| b.is_ascii_alphanumeric())
                };
                given.filter(is_good).map_or_else(fresh, str::to_owned)
            }
            Kind::FreshSessions => fresh(),
            _ => String::new(),
        }
    }
}

/// The inputs of a page.
struct Plan {
    text: u64,
    /// Selects the small changes of a near duplicate; 0 for none.
    variant: u64,
    n_bytes: usize,
}

/// Eleven letters and digits.
pub(crate) fn session_name(session: u64) -> String {
    const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut random = Random::new(session);
    let letters = (0..11).map(|_| char::from(ALPHABET[random.below(62) as usize]));
    letters.collect()
}

/// The part in which the pages of a shop differ.
fn push_article(page: u32, out: &mut Vec<u8>) {
    let (whole, cents) = (10 + page * 7 % 90, page * 13 % 100);
    let line = format!("<p>Article {}, price {whole}.{cents:02}</p>\n", 1000 + page);
    out.extend_from_slice(line.as_bytes());
}

fn push_clock(moment: &Moment, out: &mut Vec<u8>) {
    let date = crate::http::date(moment.unix_seconds);
    let line = format!(
        "<p>Generated on {date} for reader {}.</p>\n",
        moment.n_visit
    );
    out.extend_from_slice(line.as_bytes());
}
