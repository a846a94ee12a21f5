//! Random walks on the live web, which fetch pages with the crawler.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, anyhow};
use arose_crawl::Settings as Crawling;
use arose_crawl::url::{Normalizer, SessionIds};
use arose_crawl::visit::{Download, Visit, Visits};
use arose_estimate::Findings;
use arose_estimate::engine::{Log, Progress, Reply, page_text};
use arose_estimate::walk::GraphMeasure;
use arose_estimate::walk::live::{self, Place};

use super::shown::step_of;
use super::walk::write_drawn;
use crate::crawl::read_settings;
use crate::options::duration;
use crate::output::{printable, say};
use crate::progress::watch;

/// Options of live walks.
#[derive(clap::Args)]
#[command(next_help_heading = "Live")]
pub(crate) struct Live {
    /// Walk on the live web, starting from URLs
    #[arg(long)]
    live: bool,
    /// Maximum number of requests, including robots.txt; the estimate uses the responses received
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "live")]
    budget: u64,
    /// Log of the pages met; an existing log is resumed
    #[arg(
        long,
        value_name = "FILE",
        requires = "live",
        conflicts_with = "replay"
    )]
    log: Option<PathBuf>,
    /// Read all pages from this log; send no requests
    #[arg(long, value_name = "FILE", requires = "live", conflicts_with = "draw")]
    replay: Option<PathBuf>,
    /// URL or email address where site owners can reach you; required beyond loopback
    #[arg(long, value_name = "CONTACT", requires = "live")]
    contact: Option<String>,
    /// Walk only on this host; repeatable
    #[arg(long, value_name = "NAME", requires = "live")]
    host: Vec<String>,
    /// Walk only on this domain and all hosts below it; repeatable
    #[arg(long, value_name = "NAME", requires = "live")]
    domain: Vec<String>,
    /// Seconds between requests to the same host or IP address
    #[arg(long, value_name = "SECONDS", requires = "live", value_parser = duration)]
    delay: Option<Duration>,
    /// Settings file of `arose crawl` (TOML): agent, scope, limits, delays
    #[arg(long, value_name = "FILE", requires = "live")]
    settings: Option<PathBuf>,
    /// Allow private and loopback IP addresses
    #[arg(long, requires = "live")]
    allow_private: bool,
    /// DNS server to use; repeatable
    #[arg(long, value_name = "ADDRESS:PORT", requires = "live")]
    name_server: Vec<SocketAddr>,
}

/// Settings of a walk.
pub(super) struct Walk<'w> {
    pub(super) seeds: &'w [PathBuf],
    pub(super) n_walks: usize,
    pub(super) n_steps: usize,
    pub(super) measures: Vec<GraphMeasure>,
    /// File for sampled pages.
    pub(super) draw: Option<&'w Path>,
    pub(super) n_drawn: usize,
    pub(super) seed: u64,
}

impl Live {
    pub(super) fn is_wanted(&self) -> bool {
        self.live
    }

    /// The settings in the file, with the options applied.
    fn crawling(&self) -> anyhow::Result<Crawling> {
        let mut settings = match &self.settings {
            Some(path) => read_settings(path)?,
            None => Crawling::default(),
        };
        if let Some(contact) = &self.contact {
            settings.agent.contact.clone_from(contact);
        }
        settings.scope.hosts.extend(self.host.iter().cloned());
        settings.scope.domains.extend(self.domain.iter().cloned());
        if let Some(delay) = self.delay {
            settings.polite.delay = delay.as_secs_f64();
            settings.polite.address_delay = delay.as_secs_f64();
        }
        settings.network.allow_private |= self.allow_private;
        settings.network.name_servers.extend(&self.name_server);
        Ok(settings)
    }

    fn log(&self) -> anyhow::Result<Log> {
        Ok(match (&self.replay, &self.log) {
            (Some(path), _) => Log::replay(path)?,
            (None, Some(path)) => Log::open(path)?,
            (None, None) => Log::off(),
        })
    }
}

/// Walks, and shows progress.
pub(super) fn run(live: &Live, walk: Walk<'_>) -> anyhow::Result<Findings> {
    let crawling = live.crawling()?;
    let settings = live::LiveSettings {
        n_walks: walk.n_walks,
        n_steps: walk.n_steps,
        seeds: seeds(walk.seeds, &crawling)?,
        measures: walk.measures,
        n_drawn: walk.n_drawn,
        web: name(&crawling),
        seed: walk.seed,
    };
    let log = live.log()?;
    let progress = Arc::new(Progress::default());
    let visits = match live.replay {
        Some(_) => None,
        None => Some(Visits::open(crawling, live.budget)?),
    };
    let mut source = |addresses: &[String]| match &visits {
        None => vec![None; addresses.len()],
        Some(visits) => {
            let found = visits.visit(addresses).into_iter().map(place).collect();
            progress
                .n_requests
                .store(visits.n_requests(), Ordering::Relaxed);
            found
        }
    };
    let walked = watch(step_of(&progress), || {
        live::run(&mut source, log, &settings, &progress)
    })?;
    if let (Some(path), Some(visits)) = (walk.draw, &visits) {
        fetch_drawn(path, visits, &walked.drawn)?;
    }
    Ok(walked.findings)
}

/// Fetches each sampled page once and writes it.
fn fetch_drawn(path: &Path, visits: &Visits, drawn: &[(String, u32)]) -> anyhow::Result<()> {
    let mut texts: BTreeMap<&str, Option<String>> = BTreeMap::new();
    for (url, _) in drawn {
        texts
            .entry(url)
            .or_insert_with(|| match visits.download(url) {
                Download::Body(body) => Some(page_text(&body.bytes, body.content_type.as_deref())),
                _ => None,
            });
    }
    let pages = drawn.iter().filter_map(|(url, walk)| {
        let text = texts.get(url.as_str())?.clone()?;
        Some((url.clone(), text, *walk))
    });
    let pages: Vec<(String, String, u32)> = pages.collect();
    if pages.len() < drawn.len() {
        say(format_args!(
            "arose: {} of {} sampled pages could not be fetched and are omitted",
            drawn.len() - pages.len(),
            drawn.len()
        ));
    }
    write_drawn(path, pages)
}

/// Normalized URLs of the seeds.
fn seeds(seeds: &[PathBuf], crawling: &Crawling) -> anyhow::Result<Vec<String>> {
    let normalizer = Normalizer {
        session_ids: match crawling.scope.drop_session_ids {
            true => SessionIds::Drop,
            false => SessionIds::Keep,
        },
        ..Normalizer::default()
    };
    let normal = seeds.iter().map(|seed| {
        let text = seed.to_str().ok_or_else(|| anyhow!("not valid UTF-8"));
        let url = text.and_then(|text| Ok(normalizer.normalize(text, None)?.to_string()));
        url.with_context(|| format!("cannot start from {}", printable(&seed.to_string_lossy())))
    });
    normal.collect()
}

/// Name of the web, or of the part in scope.
fn name(crawling: &Crawling) -> String {
    let scope = &crawling.scope;
    let lists = [
        ("hosts", &scope.hosts),
        ("domains", &scope.domains),
        ("not", &scope.blocked),
        ("matching", &scope.include),
        ("not matching", &scope.exclude),
    ];
    let limits = lists.iter().filter(|(_, list)| !list.is_empty());
    let limits: Vec<String> = limits
        .map(|(what, list)| format!("{what} {}", list.join(", ")))
        .collect();
    match limits.is_empty() {
        true => "the web".to_owned(),
        false => format!("the web, {}", limits.join("; ")),
    }
}

fn place(visit: Visit) -> Option<Reply<Place>> {
    let text = |url: arose_crawl::url::NormalUrl| url.to_string();
    Some(Reply::Answer(match visit {
        Visit::Page(links) => Place::Page(links.into_iter().map(text).collect()),
        Visit::Redirect(to) => Place::Redirect(text(to)),
        Visit::Nothing(reason) => Place::Nothing(reason),
        Visit::Disallowed => Place::Disallowed,
        Visit::Missing(reason) => return Some(Reply::Missing(reason)),
        Visit::Unasked => return None,
    }))
}
