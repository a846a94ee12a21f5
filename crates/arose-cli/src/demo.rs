//! `arose demo`: a synthetic web on this machine, crawled, deduplicated, and compared with the
//! ground truth.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use arose_crawl::counters::Counter;
use arose_crawl::settings::{DuplicateLinks, Reach};
use arose_crawl::{Control, Seeds, Settings, Summary};
use arose_dedup::{Config as DedupConfig, Progress, Start};
use serde_json::Value;
use testweb::judge::By;
use testweb::truth::Visit;
use testweb::{Config, Kind, PageCount, PageId, Robots, Server, Target};

use crate::crawl::progress as crawl;
use crate::dedup::progress as dedup;
use crate::output::{remark, row};
use crate::progress::watch;
use crate::read::Outcome;

/// Crawl a synthetic web on this machine and compare the result with the ground truth.
///
/// Needs no network: the web is served on loopback, with mirrors, near mirrors, templates, session
/// IDs in URLs, an endless calendar and robots.txt files of many kinds. The crawl waits a tenth of
/// a second between requests to a host and recognizes duplicates on the way. Then the archive is
/// deduplicated, and the last lines show what to open: a report, and the web pages of
/// `arose serve`, which --serve starts immediately.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose demo
  arose demo --serve
  arose demo --hosts 200 -o demo

Exit code: 0 if all pages were found and every rule was obeyed, 1 if not, 2 on error.")]
pub(crate) struct Options {
    /// Number of hosts
    #[arg(long, value_name = "N", default_value_t = 40)]
    hosts: u32,
    /// Seed of the synthetic web
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Output directory; must not contain a crawl
    #[arg(short, long, value_name = "DIR", default_value = "arose-demo")]
    output: PathBuf,
    /// Serve the results at the end, until Ctrl-C [default address: a free port on loopback]
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    serve: Option<SocketAddr>,
}

/// Subdirectory of the output for the deduplicated archive.
const DEDUP: &str = "dedup";

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let folder = &options.output;
    anyhow::ensure!(
        !arose_crawl::is_crawl(folder),
        "`{}` already contains a crawl; remove it or choose another directory with -o",
        folder.display()
    );
    let is_open = options
        .serve
        .is_some_and(|address| !address.ip().is_loopback());
    anyhow::ensure!(
        !is_open,
        "--serve takes loopback addresses only; use `arose serve` with --token for others"
    );
    let server = Server::start(web(options)).context("cannot serve the synthetic web")?;
    let seeds: Vec<String> = home_pages(&server);
    remark(format_args!(
        "arose demo: synthetic web of {} hosts on loopback",
        server.web.hosts().len()
    ));
    let control = Arc::new(Control::default());
    let start = Seeds {
        pages: seeds.clone(),
        sitemaps: Vec::new(),
    };
    let summary = watch(crawl::step_of(&control), || {
        arose_crawl::crawl(folder, settings(&server), start, &control)
    });
    let summary = summary.context("the crawl failed")?;
    let kept = deduplicate(folder)?;
    let is_right = tell(&server, &seeds, &summary, &kept, folder)?;
    server.stop().context("cannot stop the synthetic web")?;
    if let Some(address) = options.serve {
        crate::serve::serve_here(&folder.join(DEDUP), address)?;
    }
    Ok(match is_right {
        true => Outcome::Found,
        false => Outcome::NothingFound,
    })
}

fn web(options: &Options) -> Config {
    Config {
        seed: options.seed,
        n_hosts: options.hosts,
        n_addresses: options.hosts,
        pages: PageCount::Fixed(20),
        median_bytes: 4096,
        kinds: vec![
            (Kind::Plain, 8),
            (Kind::Mirror, 2),
            (Kind::NearMirror, 3),
            (Kind::Template, 2),
            (Kind::PathCrumb, 1),
            (Kind::QueryCrumb, 1),
            (Kind::Redirects, 1),
            (Kind::Calendar, 1),
            (Kind::Maze, 1),
        ],
        robots: vec![
            (Robots::NotPrivate, 6),
            (Robots::Wildcards, 1),
            (Robots::OwnGroup, 1),
            (Robots::Redirected, 1),
            (Robots::Missing, 1),
            (Robots::DisallowAll, 1),
        ],
        ..Config::default()
    }
}

/// Settings with short delays, since the web is served by this process.
fn settings(server: &Server) -> Settings {
    let mut settings = Settings::default();
    settings.scope.reach = Reach::Web;
    settings.network.allow_private = true;
    settings.network.dns_servers = vec![server.dns];
    settings.polite.delay = 0.1;
    settings.polite.address_delay = 0.1;
    settings.polite.factor = 0.0;
    settings.duplicates.links = DuplicateLinks::First;
    // All pages of mirrors must be found.
    settings.duplicates.stale_after = 0;
    settings.budget.max_pages = 100;
    settings
}

fn home_pages(server: &Server) -> Vec<String> {
    let hosts = (0..).zip(server.web.hosts());
    let hosts = hosts.filter(|(_, host)| host.kind.has_pages());
    hosts
        .map(|(host, _)| server.web.url(PageId { host, page: 0 }))
        .collect()
}

fn deduplicate(folder: &Path) -> anyhow::Result<Value> {
    let inputs = arose_crawl::archives(folder)?;
    let mut config = DedupConfig::default();
    config.corpus.statuses = arose_corpus::Statuses::Success;
    let out = folder.join(DEDUP);
    let progress = Progress::default();
    let summary = watch(dedup::step_of(&progress), || {
        arose_dedup::run(&inputs, &config, &out, Start::Anew, &progress)
    });
    summary.context("cannot deduplicate")
}

/// Prints the result next to the ground truth, and returns whether they agree.
fn tell(
    server: &Server,
    seeds: &[String],
    summary: &Summary,
    kept: &Value,
    folder: &Path,
) -> anyhow::Result<bool> {
    let visit = Visit {
        seeds: seeds.to_vec(),
        max_redirects: 5,
        minute: None,
    };
    let reachable = server.web.reachable(&visit);
    let log = server.log();
    let mut fetched: BTreeMap<PageId, u32> = BTreeMap::new();
    for record in log.records.iter().filter(|record| record.status == 200) {
        if let Target::Page(id) = server.web.target(&record.host, &record.target) {
            *fetched.entry(id).or_default() += 1;
        }
    }
    let found = reachable
        .iter()
        .filter(|id| fetched.contains_key(id))
        .count();
    let originals: BTreeSet<PageId> = fetched
        .keys()
        .map(|&id| server.web.original(id).map_or(id, |(original, _)| original))
        .collect();
    let n_copies = fetched.len() - originals.len();
    let n_rude = log.overlaps(By::Host).len()
        + log.overlaps(By::Address).len()
        + log.disallowed(&server.web).len()
        + log.before_robots().len();
    let counters = &summary.counters;
    let n_dropped = counters.get(Counter::ExactDuplicates) + counters.get(Counter::NearDuplicates);
    let counts = &kept["counts"];
    let count = |name: &str| counts[name].as_u64().unwrap_or(0);
    let mut out = io::stdout().lock();
    let out = &mut out;
    let note = format!("of {} reachable", reachable.len());
    row(out, "pages found", found, &note)?;
    let note = format!("{n_copies} pages duplicate others; the rest are traps");
    row(out, "duplicates in the crawl", n_dropped, &note)?;
    let n_dropped = count("dropped_exact") + count("dropped_near");
    let note = "near duplicates; the archive stores exact duplicates once";
    row(out, "dropped by dedup", n_dropped, note)?;
    let note = format!("of {}, by the log of the servers", log.records.len());
    row(out, "broken rules", n_rude, &note)?;
    let dedup = folder.join(DEDUP);
    writeln!(out, "archive: {}", folder.join("archive").display())?;
    writeln!(out, "report: {}", dedup.join("report.html").display())?;
    writeln!(
        out,
        "to browse search, clusters, pairs and the crawl: arose serve {}",
        dedup.display()
    )?;
    Ok(found == reachable.len() && n_rude == 0)
}
