//! The web: all hosts, and the response of each to a request. It has no side effects; the
//! [server](crate::Server) sends the responses.

use std::net::Ipv4Addr;

use crate::config::{Config, Kind};
use crate::error::Error;
use crate::fault::{self, Fault};
use crate::folder;
use crate::graph::PageId;
use crate::host::{self, Host};
use crate::prose::Vocabulary;
use crate::random::Popularity;
use crate::reply::{Reply, Wire};
use crate::robots::{Around, Robots};
use crate::trap::{Place, Redirect};

/// A synthetic web.
pub struct Web {
    config: Config,
    hosts: Vec<Host>,
    vocabulary: Vocabulary,
    /// Which hosts are linked to most: those with low numbers.
    pub(crate) popularity: Popularity,
}

/// The inputs of responses besides the request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// Time of day, for pages that show it.
    pub unix_seconds: u64,
    /// The current version of [changing](Kind::Changing) pages.
    pub version: u64,
    /// Number of earlier requests to this host.
    pub n_visit: u64,
}

/// The parts of a request that responses depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Request<'a> {
    /// The requested host, without port.
    pub host: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The header `If-None-Match`.
    pub if_none_match: &'a str,
    /// The header `If-Modified-Since`.
    pub if_modified_since: &'a str,
    /// Whether `Accept-Encoding` names gzip.
    pub accepts_gzip: bool,
}

/// The dates of changes in a sitemap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dates {
    /// Those of the changes.
    True,
    /// Every page has changed just now, whenever it is requested.
    Now,
    /// There are none.
    Absent,
}

/// The content of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// No such host here.
    NoHost,
    /// The robots file, or a location it was moved to.
    Robots,
    /// A list of some pages in XML.
    Sitemap,
    /// The latest changes of a [changing](Kind::Changing) host as RSS.
    Feed,
    /// An ordinary page.
    Page(PageId),
    /// A redirect.
    Redirect(Redirect),
    /// A page with a fault.
    Fault(Fault),
    /// A randomly damaged response, selected by a number: `/noise/7` on a broken host.
    Noise(u64),
    /// A page of a trap; there is no end of them, and they have no content.
    Trap,
    /// A file or directory of a served directory, if it exists.
    File,
    /// Nothing.
    Missing,
}

/// The result of a DNS lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// An IP address, and how long it may be cached.
    Address {
        /// The number of the host.
        host: u32,
        /// Its IP address.
        address: Ipv4Addr,
        /// Seconds that this may be cached.
        ttl: u32,
    },
    /// Another name for the host with this number.
    Alias(u32),
    /// No such host name.
    Missing,
    /// The DNS server fails.
    Failure,
    /// The DNS server does not respond.
    Silence,
    /// The DNS server does not respond for IPv4 and has no IPv6 address.
    HalfSilence,
}

impl Web {
    /// Generates the hosts. Pages are generated on request.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: Config) -> Result<Self, Error> {
        config.check()?;
        Ok(Self {
            hosts: host::table(&config),
            vocabulary: Vocabulary::new(config.seed),
            popularity: Popularity::new(config.n_hosts),
            config,
        })
    }

    /// The settings.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// All hosts; their index is their number.
    #[must_use]
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    pub(crate) fn host(&self, id: PageId) -> &Host {
        &self.hosts[id.host as usize]
    }

    pub(crate) const fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The host with a name or an IP address.
    #[must_use]
    pub fn find_host(&self, name: &str) -> Option<u32> {
        self.place(name).map(|(host, _)| host)
    }

    fn place(&self, name: &str) -> Option<(u32, Place)> {
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            let idx = host::address_idx(address)?;
            let is_here = self.hosts.get(idx as usize)?.address == address;
            return is_here.then_some((idx, Place::At));
        }
        let name = name.strip_suffix('.').unwrap_or(name);
        if let Some(host) = self.named(name) {
            return Some((host, Place::At));
        }
        // A name below a host: the name of the host follows a dot.
        let (_, end) = name.rsplit_once('.')?;
        let stem = &name[..name.len() - end.len() - 1];
        let (below, label) = stem.rsplit_once('.')?;
        let host = self.named(&name[name.len() - end.len() - label.len() - 1..])?;
        match self.hosts[host as usize].kind {
            Kind::Dust | Kind::Variants if below.eq_ignore_ascii_case("www") => {
                Some((host, Place::At))
            }
            Kind::EndlessHosts => Some((host, Place::Below)),
            _ => None,
        }
    }

    /// Synthetic hosts have their number in their name; directories are few.
    fn named(&self, name: &str) -> Option<u32> {
        let label = name.split('.').next().unwrap_or(name);
        let digits = label.trim_start_matches(|c: char| !c.is_ascii_digit());
        let is_named = |idx: &usize| {
            let host = self.hosts.get(*idx);
            host.is_some_and(|host| host.name.eq_ignore_ascii_case(name))
        };
        let by_number = digits.parse().ok().filter(is_named);
        let folders = self.config.n_hosts as usize..self.hosts.len();
        let found = by_number.or_else(|| folders.into_iter().find(is_named))?;
        Some(found as u32)
    }

    /// The response of the DNS server.
    #[must_use]
    pub fn name(&self, name: &str) -> Name {
        let Some((idx, place)) = self.place(name) else {
            return Name::Missing;
        };
        let host = &self.hosts[idx as usize];
        let is_alias = name.len() > host.name.len() + 1 && place == Place::At;
        match host.kind {
            Kind::NoName => Name::Missing,
            Kind::NameFailure => Name::Failure,
            Kind::NameSilence => Name::Silence,
            Kind::NameHalfSilence => Name::HalfSilence,
            _ if is_alias => Name::Alias(idx),
            _ => Name::Address {
                host: idx,
                address: host.address,
                ttl: host.ttl,
            },
        }
    }

    /// `http://name`, with the port if it is not 80.
    #[must_use]
    pub fn origin(&self, name: &str) -> String {
        let mut origin = Vec::new();
        self.push_origin(name, &mut origin);
        String::from_utf8(origin).expect("names are UTF-8")
    }

    pub(crate) fn push_origin(&self, name: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"http://");
        out.extend_from_slice(name.as_bytes());
        if self.config.port != 80 {
            out.push(b':');
            crate::graph::push_number(u32::from(self.config.port), out);
        }
    }

    /// The content of a path with its query.
    #[must_use]
    pub fn target(&self, host_name: &str, target: &str) -> Target {
        match self.place(host_name) {
            Some((host, place)) => self.target_at(host, place, target),
            None => Target::NoHost,
        }
    }

    fn target_at(&self, host: u32, place: Place, target: &str) -> Target {
        let kind = self.hosts[host as usize].kind;
        let path = target.split('?').next().unwrap_or(target);
        if kind == Kind::Folder {
            return Target::File;
        }
        if self.robots_reply(host, path).is_some() {
            return Target::Robots;
        }
        if path == "/sitemap.xml" && place == Place::At {
            return Target::Sitemap;
        }
        if path == FEED && place == Place::At && kind == Kind::Changing {
            return Target::Feed;
        }
        if kind == Kind::EndlessHosts && place == Place::Below {
            return Target::Trap;
        }
        if kind == Kind::Variants {
            let page = self
                .variant_at(host, target)
                .map(|(selection, _)| selection.item);
            return page.map_or(Target::Missing, |page| Target::Page(PageId { host, page }));
        }
        if let Some(id) = self.page_at(host, target) {
            return Target::Page(id);
        }
        if let Some(redirect) = self.redirect_at(host, path) {
            return Target::Redirect(redirect);
        }
        match Fault::at(path) {
            Some(fault) if kind == Kind::Broken => Target::Fault(fault),
            None if kind == Kind::Broken => {
                let number = path.strip_prefix("/noise/").and_then(|n| n.parse().ok());
                number.map_or(Target::Missing, Target::Noise)
            }
            _ if self.is_trap(host, path, place) => Target::Trap,
            _ => Target::Missing,
        }
    }

    /// Responds to a request. `body` is a buffer for the response; its earlier content is ignored.
    #[must_use]
    pub fn answer(&self, request: &Request<'_>, moment: &Moment, mut body: Vec<u8>) -> Reply {
        body.clear();
        let Some((host, place)) = self.place(request.host) else {
            return Reply::text(421, "no such host here\n");
        };
        let target = self.target_at(host, place, request.target);
        if self.hosts[host as usize].kind == Kind::Busy
            && matches!(target, Target::Page(_))
            && moment.n_visit % 5 == 2
        {
            return busy(moment);
        }
        match target {
            Target::Page(_) | Target::Missing
                if self.hosts[host as usize].kind == Kind::Variants =>
            {
                self.answer_variant(host, request.target)
            }
            Target::Page(id) => self.page(id, request, moment, body),
            Target::Robots => {
                let path = request.target.split('?').next().unwrap_or_default();
                let reply = self.robots_reply(host, path);
                reply.expect("the target was found by asking for this reply")
            }
            Target::Sitemap => self.sitemap(host, moment),
            Target::Feed => self.feed(host, moment),
            Target::Redirect(redirect) => {
                let location = redirect.location.as_deref();
                let mut reply = Reply::redirect(redirect.status, location.unwrap_or_default());
                if location.is_none() {
                    reply.headers.clear();
                }
                reply
            }
            Target::Fault(fault) => {
                let home = PageId { host, page: 0 };
                self.render(home, "/", moment, &mut body);
                Reply::script(fault.status(), fault.script(&body))
            }
            Target::Noise(number) => {
                self.render(PageId { host, page: 0 }, "/", moment, &mut body);
                Reply::script(0, fault::noise(number, &body))
            }
            Target::Trap => {
                self.render_trap(host, request.host, request.target, &mut body);
                Reply::html(200, body)
            }
            Target::File => {
                let folder = host - self.config.n_hosts;
                let root = &self.config.folders[folder as usize].path;
                let mut reply = folder::answer(root, request.target);
                if self.config.folder_sessions && reply.content_type.starts_with("text/html") {
                    reply.body = self.with_sessions(host, request.target, &reply.body);
                }
                reply
            }
            Target::Missing | Target::NoHost => Reply::html(404, b"<p>Not found\n".to_vec()),
        }
    }

    fn page(&self, id: PageId, request: &Request<'_>, moment: &Moment, body: Vec<u8>) -> Reply {
        let kind = self.host(id).kind;
        let mut reply = Reply::html(200, body);
        if kind == Kind::Timestamp {
            self.render(id, request.target, moment, &mut reply.body);
            reply.wire = Wire::Chunked;
            return reply;
        }
        let tag = self.entity_tag(id, moment);
        reply.add_header("ETag", &tag);
        let modified = self.modified(id, moment);
        if !modified.is_empty() {
            reply.add_header("Last-Modified", &modified);
        }
        let is_known = match request.if_none_match {
            "" => !modified.is_empty() && request.if_modified_since == modified,
            known => known == tag,
        };
        if is_known {
            reply.status = 304;
            return reply;
        }
        self.render(id, request.target, moment, &mut reply.body);
        if kind == Kind::Template && request.accepts_gzip {
            reply.body = fault::gzip(&reply.body);
            reply.add_header("Content-Encoding", "gzip");
        }
        reply
    }

    /// When a [changing](Kind::Changing) page last changed, with one step per day; empty for
    /// others.
    fn modified(&self, id: PageId, moment: &Moment) -> String {
        if self.host(id).kind != Kind::Changing {
            return String::new();
        }
        let step = self.page_version(id, moment.version);
        crate::http::date(FIRST_STEP + 86_400 * step)
    }

    fn robots_reply(&self, host: u32, path: &str) -> Option<Reply> {
        // Most requests are for pages, which must not pay for the robots file.
        if !path.starts_with("/robots") {
            return None;
        }
        let own = &self.hosts[host as usize];
        let around = Around {
            agent: &self.config.agent,
            origin: &self.origin(&own.name),
            first_robots: &(self.origin(&self.hosts[0].name) + "/robots.txt"),
            is_first: host == 0,
        };
        own.robots.answer(path, &around)
    }

    /// The home page and the pages it links to: nothing that links would not find.
    fn sitemap(&self, host: u32, moment: &Moment) -> Reply {
        let own = &self.hosts[host as usize];
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        xml.push_str("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n");
        for page in 0..own.n_pages.min(5) {
            let id = PageId { host, page };
            xml.extend([
                "<url><loc>",
                &self.origin(&own.name),
                &self.path(id),
                "</loc>",
            ]);
            let step = match self.dates(host) {
                Dates::True => Some(self.page_version(id, moment.version)),
                Dates::Now => Some(moment.version),
                Dates::Absent => None,
            };
            if let Some(step) = step {
                let day = crate::http::day(FIRST_STEP + 86_400 * step);
                xml.extend(["<lastmod>", &day, "</lastmod>"]);
            }
            xml.push_str("</url>\n");
        }
        xml.push_str("</urlset>\n");
        Reply::typed(200, "application/xml", xml.into_bytes())
    }

    /// The dates in the sitemap of a host: of [changing](Kind::Changing) hosts true ones, ones of
    /// the current step and none in turn, by their numbers.
    #[must_use]
    pub fn dates(&self, host: u32) -> Dates {
        match (self.hosts[host as usize].kind, host % 3) {
            (Kind::Changing, 0) => Dates::True,
            (Kind::Changing, 1) => Dates::Now,
            _ => Dates::Absent,
        }
    }

    /// The pages of a host that changed last, newest first, with the dates of their last changes.
    fn feed(&self, host: u32, moment: &Moment) -> Reply {
        let own = &self.hosts[host as usize];
        let mut changes: Vec<(u64, u32)> = (0..own.n_pages)
            .map(|page| {
                let step = self.page_version(PageId { host, page }, moment.version);
                (step, page)
            })
            .filter(|(step, _)| *step > 0)
            .collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        xml.push_str("<rss version=\"2.0\"><channel>\n");
        for (step, page) in changes.into_iter().take(FEED_ENTRIES) {
            let url = self.origin(&own.name) + &self.path(PageId { host, page });
            let date = crate::http::date(FIRST_STEP + 86_400 * step);
            xml.extend(["<item><link>", &url, "</link><pubDate>", &date]);
            xml.push_str("</pubDate></item>\n");
        }
        xml.push_str("</channel></rss>\n");
        Reply::typed(200, "application/rss+xml", xml.into_bytes())
    }

    /// The robots file that applies to a host.
    #[must_use]
    pub fn robots(&self, host: u32) -> Robots {
        match self.hosts[host as usize].robots {
            // The robots file of the first host applies here too.
            Robots::RedirectedAway => self.hosts[0].robots,
            own => own,
        }
    }
}

/// The path of a feed.
pub(crate) const FEED: &str = "/feed.xml";

/// Maximum number of entries of a feed.
const FEED_ENTRIES: usize = 50;

/// The date of the first step of changing pages, in seconds since 1970.
const FIRST_STEP: u64 = 1_767_225_600;

/// Alternates between both statuses and both forms of the header.
fn busy(moment: &Moment) -> Reply {
    const SECONDS: u16 = 2;
    let status = if moment.n_visit.is_multiple_of(2) {
        429
    } else {
        503
    };
    let mut reply = Reply::text(status, "come back later\n");
    reply.retry_after = SECONDS;
    let value = match status {
        429 => SECONDS.to_string(),
        // A date has whole seconds: one more, so that waiting for it is long enough.
        _ => crate::http::date(moment.unix_seconds + u64::from(SECONDS) + 1),
    };
    reply.add_header("Retry-After", &value);
    reply
}

#[cfg(test)]
#[path = "web_tests.rs"]
mod tests;
