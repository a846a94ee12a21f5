//! Links of a page: as found, whether they are approved, and how many there are.

use arose::digest::digest64;
use arose_corpus::{Limits, decode_content, html, payload};

use super::version::listed;
use super::{Found, Job, Reader, Report};
use crate::archive::bare_media_type;
use crate::fetch::Head;
use crate::fingerprint::Fingerprint;
use crate::guard::{Candidate, Reason};
use crate::journal::Kind;
use crate::order::class_of;
use crate::sitemap;
use crate::url::Url;

/// A link that was met recently.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Recent {
    /// A hash of its text and of the site on which it was found.
    pub(super) key: u64,
    /// The fingerprint of its target; zeros if it is not followed.
    pub(super) host: u64,
    pub(super) rest: u64,
}

/// Number of links that are remembered, a power of two.
pub(super) const N_RECENT: usize = 1 << 17;

/// Maximum number of feeds of a page that are read: one for all entries and a few for parts of the
/// site.
const MAX_FEEDS: usize = 4;

/// A link as found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) text: &'a str,
    pub(super) kind: Kind,
    pub(super) is_redirect: bool,
    pub(super) class: u8,
    /// Its anchor and its tag path.
    pub(super) name: (&'a str, &'a str),
}

impl Reader {
    /// Counts the different pages that a page links to, and marks links that repeat another.
    pub(super) fn count_links(&mut self, report: &mut Report) {
        let targets = &mut self.targets;
        targets.clear();
        let is_page = |found: &&Found| found.kind != Kind::Requisite && !found.is_redirect;
        let n_links = report.links.len();
        let links = report.links.iter().enumerate();
        targets.extend(
            links
                .filter(|(_, found)| is_page(found))
                .map(|(at, found)| (found.fingerprint.key(), at)),
        );
        let known = report.known.iter().enumerate();
        targets.extend(known.map(|(at, known)| (known.key(), n_links + at)));
        targets.sort_unstable();
        let mut before: Option<(u128, usize)> = None;
        let mut others = Vec::new();
        for &(key, at) in targets.iter() {
            let is_repeat = before.is_some_and(|(before, _)| before == key);
            // The words of a repeated link are added to the first one.
            if is_repeat
                && let Some((_, first)) = before
                && let Some(more) = report
                    .links
                    .get_mut(at)
                    .and_then(|found| found.words.take())
                && let Some(Found {
                    words: Some(words), ..
                }) = report.links.get_mut(first)
            {
                words.merge(&more);
            }
            if !is_repeat {
                before = Some((key, at));
            }
            report.n_links += usize::from(!is_repeat);
            match at.checked_sub(n_links) {
                None => report.links[at].is_repeat = is_repeat,
                Some(at) if !is_repeat => others.push(report.known[at]),
                Some(_) => {}
            }
        }
        report.known = others;
        targets.shrink_to(1 << 12);
    }

    /// Adds the requisites of a page or a style sheet.
    pub(super) fn add_requisites(
        &mut self,
        job: &Job,
        body: &[u8],
        content_type: Option<&str>,
        page: Option<&payload::Page>,
        report: &mut Report,
    ) {
        let media_type = bare_media_type(content_type.unwrap_or_default());
        let metadata = page.and_then(|page| page.metadata.as_ref());
        let is_style = media_type.eq_ignore_ascii_case("text/css");
        let sheet = match is_style {
            true => String::from_utf8_lossy(body),
            false => "".into(),
        };
        let of_page = metadata.iter().flat_map(|metadata| &metadata.requisites);
        let of_page = of_page
            .map(String::as_str)
            .filter(|_| job.kind == Kind::Page);
        for text in of_page.chain(html::css::urls(&sheet)) {
            let link = Link {
                text,
                kind: Kind::Requisite,
                is_redirect: false,
                class: 0,
                name: ("", ""),
            };
            self.add_link(job, &link, report);
        }
    }

    /// Adds the feeds of a home page or a seed, which list pages as sitemaps do. They come before
    /// its links, which may lead to the same URLs as pages.
    pub(super) fn add_feeds(&mut self, job: &Job, metadata: &html::Metadata, report: &mut Report) {
        let is_home = job.depth == 0 || job.url.rest() == "/";
        if !is_home || !self.shared.settings.scope.sitemaps {
            return;
        }
        for text in metadata.feeds.iter().take(MAX_FEEDS) {
            let link = Link {
                text,
                kind: Kind::Sitemap,
                is_redirect: false,
                class: 0,
                name: ("", ""),
            };
            self.add_link(job, &link, report);
        }
    }

    pub(super) fn add_links(&mut self, job: &Job, metadata: &html::Metadata, report: &mut Report) {
        let refresh = metadata
            .refresh
            .iter()
            .filter_map(|refresh| refresh.url.as_deref());
        let others = metadata.canonical.as_deref().into_iter().chain(refresh);
        let follow_nofollow = self.shared.settings.scope.follow_nofollow;
        let anchors = metadata.anchors.as_ref();
        let name = |at: usize| match anchors {
            Some(anchors) if at < anchors.len() => anchors.get(at),
            _ => ("", ""),
        };
        let links = metadata.links.iter().enumerate();
        let links = links.filter(|(_, link)| follow_nofollow || !link.nofollow);
        let links = links.map(|(at, link)| (link.url.as_str(), name(at)));
        for (text, name) in links.chain(others.map(|text| (text, ("", "")))) {
            let link = Link {
                text,
                kind: Kind::Page,
                is_redirect: false,
                class: 0,
                name,
            };
            self.add_link(job, &link, report);
        }
    }

    pub(super) fn read_sitemap(&mut self, job: &Job, head: Option<Head<'_>>, report: &mut Report) {
        let codings = head.and_then(|head| head.get("content-encoding"));
        let codings = codings.unwrap_or_default();
        // A list of URLs compresses far better than a page does.
        let limits = Limits {
            body_bytes: sitemap::MAX_BYTES as usize + 1,
            expansion: u64::MAX,
            ..self.limits.clone()
        };
        let Ok(body) = decode_content(codings, job.message.body(), &limits) else {
            return;
        };
        let sitemap = sitemap::parse(&body, sitemap::Limits::default());
        let entries = sitemap.pages.iter().map(|entry| (entry, Kind::Page));
        let entries = entries.chain(sitemap.sitemaps.iter().map(|entry| (entry, Kind::Sitemap)));
        let classes = sitemap.pages.iter().map(|entry| class_of(entry.priority()));
        // A priority that all entries share says nothing.
        let is_told = {
            let mut classes = classes.filter(|&class| class > 0);
            let first = classes.next();
            classes.any(|class| Some(class) != first)
        };
        if !sitemap.pages.is_empty() || !sitemap.sitemaps.is_empty() {
            report.version = listed(job, &sitemap);
        }
        if self.shared.settings.recrawl.on {
            let base = Url::parse(job.url.as_str()).ok();
            let dated = sitemap.pages.iter().filter_map(|entry| {
                let date = entry.modified()?;
                let url = self
                    .shared
                    .normalizer
                    .normalize(&entry.url, base.as_ref())
                    .ok()?;
                Some((Fingerprint::of(&url).key(), date))
            });
            report.announced = dated.collect();
        }
        for (entry, kind) in entries {
            let link = Link {
                text: &entry.url,
                kind,
                is_redirect: false,
                class: if is_told {
                    class_of(entry.priority())
                } else {
                    0
                },
                name: ("", ""),
            };
            self.add_link(job, &link, report);
        }
    }

    /// Normalizes a link, checks it with the guard, and adds it to the report.
    pub(super) fn add_link(&mut self, job: &Job, link: &Link<'_>, report: &mut Report) {
        let text = link.text.split('#').next().unwrap_or_default();
        let key = digest64(text.as_bytes()) ^ digest64(job.url.origin().as_bytes());
        let key = key ^ (link.kind as u64) << 7 | 1;
        // The decision of the guard depends on the depth, so it may differ between two pages.
        let can_skip = !link.is_redirect && self.shared.settings.scope.max_depth == u32::MAX;
        let slot = self.recent.get_mut(key as usize >> 1 & (N_RECENT - 1));
        let mut slot = slot.filter(|_| can_skip);
        if let Some(recent) = slot.as_ref().filter(|slot| slot.key == key) {
            report.n_known += 1;
            let Recent { host, rest, .. } = **recent;
            if (host | rest) > 0 && link.kind != Kind::Requisite {
                report.known.push(Fingerprint { host, rest });
            }
            return;
        }
        let url = match self.shared.normalizer.normalize_beside(text, &job.url) {
            Some(url) => Ok(url),
            None => {
                let base = Url::parse(job.url.as_str()).ok();
                self.shared.normalizer.normalize(text, base.as_ref())
            }
        };
        let is_further = !link.is_redirect && link.kind != Kind::Requisite;
        let link_depth = job.depth.saturating_add(u32::from(is_further));
        let judged = url.map_err(Into::into).and_then(|url| {
            // Pages of the web must not make the crawler read local files.
            if url.is_file() && !job.url.is_file() {
                return Err(Reason::Scheme);
            }
            let candidate = Candidate {
                url: &url,
                link_depth,
                robots: None,
            };
            let guard = &self.shared.guard;
            guard
                .approve_for(&candidate, link.kind.into())
                .map(|()| url)
        });
        report
            .counts
            .add(judged.as_ref().map(|_| ()).map_err(|reason| *reason));
        let fingerprint = judged.as_ref().ok().map(Fingerprint::of);
        if let Some(slot) = &mut slot {
            **slot = Recent {
                key,
                host: fingerprint.map_or(0, |to| to.host),
                rest: fingerprint.map_or(0, |to| to.rest),
            };
        }
        if let (Ok(url), Some(fingerprint)) = (judged, fingerprint) {
            let (anchor, path) = link.name;
            let judge = self.shared.judge.as_ref();
            let words = judge.map(|judge| judge.words(anchor, url.rest(), path));
            report.links.push(Found {
                words: words.map(Box::new),
                fingerprint,
                url,
                kind: link.kind,
                is_redirect: link.is_redirect,
                class: link.class,
                is_repeat: false,
            });
        }
    }
}
