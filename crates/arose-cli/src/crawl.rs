//! `arose crawl`: fetches pages politely and recognizes duplicates on the way.

mod closing;
mod cluster;
mod export;
mod failures;
mod inputs;
mod metrics;
mod pages;
mod priority;
pub(crate) mod progress;
mod repair;
mod rules;
mod seeds;
mod status;
mod topic;
mod watch;

pub use inputs::expand;
pub use status::crawl_status;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use arose_crawl::counters::{Counter, Counters};
use arose_crawl::settings::{DuplicateLinks, FocusSettings, Reach, TEMPLATE};
use arose_crawl::{Control, End, Settings, Summary};
use serde_json::{Value, json};

use crate::options::duration;
use crate::output::{row, write_json};
use crate::progress::watch;
use crate::read::Outcome;
use crate::signals::{self, Actions};

/// Crawl websites politely and recognize duplicates on the way.
///
/// Starts from SEEDs (URLs, files of URLs, sitemaps; `-` is standard input) and writes to DIR:
/// archive/*.warc.gz with every response and archive/*.cdxj, which locates each of them. A page
/// with the payload of another becomes a revisit record; a near duplicate is stored whole, with the
/// page that it duplicates. The crawl stays on the sites of the seeds, unless --scope is given. It
/// obeys robots.txt, including Crawl-delay, Request-rate and Visit-time. An interrupted or killed
/// crawl resumes when you start it again with the same DIR; Ctrl-C finishes open requests.
#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  arose crawl https://example.org/ -o example --contact https://me.example/bot
  arose crawl seeds.txt -o crawl --contact me@example.org --settings crawl.toml
  arose crawl -o crawl                      # resumes
  arose crawl --print-settings > crawl.toml # every setting with its default
  arose crawl status crawl
  arose crawl failures crawl                # failed URLs, by reason
  arose crawl retry crawl                   # URLs that could not be reached
  arose crawl -o crawl --recrawl --every 30d # visits pages again
  arose crawl plan crawl --per-second 0.5   # the effect of more visits
  arose crawl refresh crawl https://example.org/news
  arose crawl https://example.org/ -o music --topic music.toml --contact me@example.org
  arose crawl pause crawl                   # and resume, and reload
  arose crawl rules crawl                   # parts of URLs that do not matter
  arose crawl file:///srv/mirror/ -o local  # a directory of this machine
  arose crawl seeds.txt -o part --join nats://10.0.0.1:4222 --crawl news # on every machine
  arose crawl cluster news --join nats://10.0.0.1:4222
  arose crawl repair crawl                  # after damage to its files
  arose crawl export crawl > index.cdxj
  arose dedup crawl -o kept

Exit code: 0 if done, 1 if nothing was fetched, 2 on error."
)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    crawl: Crawl,
}

#[derive(clap::Args)]
struct Crawl {
    /// URLs, files of URLs, sitemaps; `-` is standard input
    #[arg(value_name = "SEED")]
    seeds: Vec<String>,
    /// Output directory; a crawl in it is resumed
    #[arg(
        short,
        long,
        value_name = "DIR",
        required_unless_present = "print_settings"
    )]
    output: Option<PathBuf>,
    /// Settings file (TOML); kept in DIR for the next run
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// URL or email address where site owners can reach you; required beyond loopback
    #[arg(long, value_name = "ADDRESS")]
    contact: Option<String>,
    /// Crawl only this host; repeatable
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Crawl only this domain and its subdomains; repeatable
    #[arg(long, value_name = "NAME")]
    domain: Vec<String>,
    /// How far from the seeds to go; kept for the next run [default: site]
    #[arg(long, value_name = "REACH", conflicts_with_all = ["host", "domain"])]
    scope: Option<Scope>,
    /// Also fetch styles, images, scripts and fonts of pages, from any host
    #[arg(long)]
    requisites: bool,
    /// Maximum link depth from a seed
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Stop after this many pages
    #[arg(long, value_name = "N")]
    pages: Option<u64>,
    /// Stop after this time, e.g. 90 or 2h; not kept for the next run
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    seconds: Option<Duration>,
    /// Seconds between requests to the same host or IP address, or e.g. 500ms
    #[arg(long, value_name = "SECONDS", value_parser = duration)]
    delay: Option<Duration>,
    /// Allow private and loopback IP addresses
    #[arg(long)]
    allow_private: bool,
    /// When to follow the links of duplicates
    #[arg(long, value_name = "WHEN")]
    duplicate_links: Option<WhenFollowed>,
    /// Look for pages of the topic that FILE describes (TOML); kept for the next run
    #[arg(long, value_name = "FILE")]
    topic: Option<PathBuf>,
    /// DNS server to use; repeatable
    #[arg(long, value_name = "ADDRESS:PORT")]
    name_server: Vec<SocketAddr>,
    /// Visit pages again when a visit is worth it, until the crawl is stopped; kept for the next
    /// run
    #[arg(long)]
    recrawl: bool,
    /// Requests for pages per second with `--recrawl`, visits and new URLs together
    #[arg(long, value_name = "N", requires = "recrawl", conflicts_with = "every")]
    per_second: Option<f64>,
    /// Mean time between two visits of a page with `--recrawl`, e.g. 30d [default: 30d]
    #[arg(long, value_name = "TIME", requires = "recrawl", value_parser = duration)]
    every: Option<Duration>,
    #[command(flatten)]
    member: cluster::Member,
    /// Serve counters for Prometheus on this IP address and port
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Print a settings file with all defaults and exit
    #[arg(long)]
    print_settings: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
}

/// How far from the seeds a crawl goes.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Scope {
    /// The directory of a seed and all below it
    Prefix,
    /// The host of a seed
    Host,
    /// The registrable domain of a seed
    Site,
    /// Everywhere
    Web,
}

impl From<Scope> for Reach {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Prefix => Self::Prefix,
            Scope::Host => Self::Host,
            Scope::Site => Self::Site,
            Scope::Web => Self::Web,
        }
    }
}

/// When the links of duplicates are followed.
#[derive(Clone, Copy, clap::ValueEnum)]
enum WhenFollowed {
    /// After all other links
    Last,
    /// Never, except those of seeds
    Never,
    /// Like other links
    First,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the state and counters of a crawl
    Status {
        /// Directory of the crawl
        dir: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        /// Explain the position of this URL in the queue, and print nothing else
        #[arg(long, value_name = "URL")]
        why: Option<String>,
    },
    /// Fetch the URLs that could not be reached, and no others
    Retry {
        /// Directory of the crawl
        dir: PathBuf,
        /// Print the summary as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the URLs whose last request failed, by reason
    Failures {
        /// Directory of the crawl
        dir: PathBuf,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List the pages fetched: versions, change rates, next visits
    Pages {
        /// Directory of the crawl
        dir: PathBuf,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show how many pages a budget of visits would keep up to date
    Plan {
        /// Directory of the crawl
        dir: PathBuf,
        /// Visits per second
        #[arg(long, value_name = "N")]
        per_second: f64,
        /// Print the plan as JSON
        #[arg(long)]
        json: bool,
    },
    /// Visit pages again as soon as politeness allows
    ///
    /// The pages go to the front of the queues of their hosts. A running crawl reports when it will
    /// visit each; otherwise `arose crawl -o DIR` visits them first.
    Refresh {
        /// Directory of the crawl
        dir: PathBuf,
        /// URLs of pages or sitemaps; one that ends in `*` stands for all pages with this prefix
        #[arg(value_name = "URL", required = true)]
        urls: Vec<String>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show every visit of a page and what changed, from the archive
    Watch {
        /// Directory of the crawl
        dir: PathBuf,
        /// URL of the page
        url: String,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// List the URL rules that the crawl has learned, or switch them
    ///
    /// A rule says which part of the URLs of a site does not select a page, such as a session ID.
    /// URLs that differ in nothing else are deferred, and queued again if the rule turns out to be
    /// wrong or is switched off. A running crawl applies rules within a second; otherwise
    /// `arose crawl -o DIR` applies them first.
    Rules(rules::Options),
    /// Pause a running crawl
    Pause {
        /// Directory of the crawl
        dir: PathBuf,
    },
    /// Resume a paused crawl
    Resume {
        /// Directory of the crawl
        dir: PathBuf,
    },
    /// Reload the settings of a running crawl from DIR/settings.toml
    ///
    /// SIGHUP does the same. If the settings cannot be used, the crawl continues with those it has.
    Reload {
        /// Directory of the crawl
        dir: PathBuf,
    },
    /// Rebuild the queue of a damaged crawl from its archive
    ///
    /// Reads every record of the archive and every readable part of the journal, and writes journal
    /// and seen set again. Damaged files are kept under another name, and no archive file is
    /// removed. Afterwards `arose crawl -o DIR` resumes the crawl.
    Repair {
        /// Directory of the crawl
        dir: PathBuf,
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the agents of a crawl on many machines, or drain one
    Cluster(cluster::Options),
    /// Print the archive index as sorted CDXJ, or the queued URLs
    Export {
        /// Directory of the crawl, or those of all its agents
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        /// Print the queued URLs instead
        #[arg(long)]
        queue: bool,
    },
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    match &options.command {
        Some(Command::Status { dir, json, why }) => match why {
            None => status::print(dir, *json),
            Some(url) => priority::explain(dir, url, *json),
        },
        Some(Command::Retry { dir, json }) => retry(dir, *json),
        Some(Command::Failures { dir, json }) => failures::run(dir, *json),
        Some(Command::Pages { dir, json }) => pages::list(dir, *json),
        Some(Command::Plan {
            dir,
            per_second,
            json,
        }) => pages::plan(dir, *per_second, *json),
        Some(Command::Refresh { dir, urls, json }) => pages::refresh(dir, urls, *json),
        Some(Command::Watch { dir, url, json }) => watch::run(dir, url, *json),
        Some(Command::Rules(options)) => rules::run(options),
        Some(Command::Pause { dir }) => order(arose_crawl::pause(dir)),
        Some(Command::Resume { dir }) => order(arose_crawl::resume(dir)),
        Some(Command::Reload { dir }) => order(arose_crawl::reload(dir)),
        Some(Command::Repair { dir, json }) => repair::run(dir, *json),
        Some(Command::Cluster(options)) => cluster::run(options),
        Some(Command::Export { dirs, queue }) => export::run(dirs, *queue),
        None => crawl(&options.crawl),
    }
}

/// The result of an order to a running crawl.
fn order(taken: Result<(), arose_crawl::Error>) -> anyhow::Result<Outcome> {
    taken?;
    Ok(Outcome::Found)
}

fn crawl(options: &Crawl) -> anyhow::Result<Outcome> {
    let (false, Some(folder)) = (options.print_settings, &options.output) else {
        let mut out = io::stdout().lock();
        out.write_all(TEMPLATE.as_bytes())
            .context("cannot write the settings")?;
        return Ok(Outcome::Found);
    };
    let cluster = options.member.cluster(folder)?;
    let seeds = seeds::read(&options.seeds)?;
    let is_new = cluster.is_some() || !arose_crawl::is_crawl(folder);
    anyhow::ensure!(
        !(is_new && seeds.pages.is_empty() && seeds.sitemaps.is_empty()),
        "no crawl to resume in `{}`; pass at least one seed",
        folder.display()
    );
    let settings = settings(options, folder)?;
    let control = Arc::new(Control::default());
    stop_on_interrupt(&control);
    if let Some(address) = options.metrics {
        metrics::serve(address, &control)?;
    }
    if let Some(time) = options.seconds.filter(|time| !time.is_zero()) {
        control.end_after(time);
    }
    let summary = watch(progress::step_of(&control), || match &cluster {
        Some(cluster) => arose_crawl::join(folder, settings, seeds, cluster, &control),
        None => arose_crawl::crawl(folder, settings, seeds, &control),
    });
    end(summary, folder, options.json)
}

/// Ctrl-C finishes open requests; SIGHUP reloads the settings.
fn stop_on_interrupt(control: &Arc<Control>) {
    let [stopped, reloaded] = [Arc::clone(control), Arc::clone(control)];
    signals::watch(Actions {
        message: "finishing open requests; press Ctrl-C again to stop now",
        stop: Box::new(move || stopped.stop()),
        reload: Some(Box::new(move || reloaded.reload())),
    });
}

/// Resumes with the settings of the last run.
fn retry(folder: &Path, json: bool) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        arose_crawl::is_crawl(folder),
        "no crawl in `{}`; pass the directory of a crawl",
        folder.display()
    );
    let settings = arose_crawl::kept_settings(folder)?;
    let control = Arc::new(Control::default());
    stop_on_interrupt(&control);
    let summary = watch(progress::step_of(&control), || {
        arose_crawl::retry(folder, settings, &control)
    });
    end(summary, folder, json)
}

fn end(
    summary: Result<Summary, arose_crawl::Error>,
    folder: &Path,
    json: bool,
) -> anyhow::Result<Outcome> {
    let summary = match summary {
        // Nothing was started.
        Err(error @ arose_crawl::Error::Settings(_)) => return Err(error.into()),
        summary => {
            summary.with_context(|| format!("the crawl in `{}` stopped", folder.display()))?
        }
    };
    let mut out = io::stdout().lock();
    let written = match json {
        true => write_json(&mut out, &summary_json(&summary)),
        false => write_summary(&mut out, &summary, folder),
    };
    written.context("cannot write the summary")?;
    Ok(match summary.counters.get(Counter::Pages) {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

/// The settings of the file, or else of the last run, with the options applied.
fn settings(options: &Crawl, folder: &Path) -> anyhow::Result<Settings> {
    let mut settings = match &options.settings {
        Some(path) => read_settings(path)?,
        None => arose_crawl::kept_settings(folder)?,
    };
    if let Some(contact) = &options.contact {
        settings.agent.contact.clone_from(contact);
    }
    add_new(&mut settings.scope.hosts, &options.host);
    add_new(&mut settings.scope.domains, &options.domain);
    settings.scope.reach = options.scope.map_or(settings.scope.reach, Reach::from);
    settings.scope.requisites |= options.requisites;
    settings.scope.max_depth = options.depth.unwrap_or(settings.scope.max_depth);
    settings.stop.pages = options.pages.unwrap_or(settings.stop.pages);
    if let Some(delay) = options.delay {
        settings.polite.delay = delay.as_secs_f64();
        settings.polite.address_delay = delay.as_secs_f64();
    }
    settings.network.allow_private |= options.allow_private;
    settings.duplicates.links = match options.duplicate_links {
        Some(WhenFollowed::Last) => DuplicateLinks::Last,
        Some(WhenFollowed::Never) => DuplicateLinks::Never,
        Some(WhenFollowed::First) => DuplicateLinks::First,
        None => settings.duplicates.links,
    };
    if let Some(topic) = &options.topic {
        settings.focus = FocusSettings::read(topic)?;
    }
    add_new(&mut settings.network.name_servers, &options.name_server);
    settings.recrawl.on |= options.recrawl;
    if let Some(per_second) = options.per_second {
        anyhow::ensure!(
            per_second.is_finite() && per_second > 0.0,
            "`--per-second` is {per_second}, expected a number above 0"
        );
        settings.recrawl.per_second = per_second;
    }
    if let Some(every) = options.every {
        anyhow::ensure!(
            !every.is_zero(),
            "`--every` is 0, expected a time such as 30d"
        );
        let days = every.as_secs_f64() / 86_400.0;
        (settings.recrawl.every, settings.recrawl.per_second) = (days, 0.0);
    }
    Ok(settings)
}

/// Adds only new items, because the same command may resume a crawl.
fn add_new<T: PartialEq + Clone>(list: &mut Vec<T>, more: &[T]) {
    for item in more {
        if !list.contains(item) {
            list.push(item.clone());
        }
    }
}

pub(crate) fn read_settings(path: &Path) -> anyhow::Result<Settings> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read the settings {}", path.display()))?;
    let settings = Settings::parse(&text);
    let mut settings =
        settings.with_context(|| format!("cannot use the settings {}", path.display()))?;
    let base = std::path::absolute(path);
    let base = base.with_context(|| format!("cannot read the settings {}", path.display()))?;
    settings
        .focus
        .settle(base.parent().unwrap_or(Path::new("/")));
    Ok(settings)
}

fn write_summary(out: &mut impl Write, summary: &Summary, folder: &Path) -> io::Result<()> {
    write_counters(out, &summary.counters)?;
    row(out, "still queued", summary.n_queued, "")?;
    let seconds = summary.elapsed.as_secs_f64();
    let rate = summary.n_fetched as f64 / seconds.max(1e-9);
    let note = format!("in {seconds:.1} s, {rate:.0} per second");
    row(out, "responses in this run", summary.n_fetched, &note)?;
    for line in closing::lines(summary, folder) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "archive: {}", folder.join("archive").display())
}

/// The counters that are not zero, and rejections by reason.
fn write_counters(out: &mut impl Write, counters: &Counters) -> io::Result<()> {
    for counter in Counter::ALL {
        let value = counters.get(counter);
        if value > 0 {
            row(out, &counter.as_str().replace('_', " "), value, "")?;
        }
    }
    for (reason, value) in counters.rejections().filter(|(_, value)| *value > 0) {
        row(out, &format!("  rejected, {reason}"), value, "")?;
    }
    for (rule, value) in counters.quality_rejections() {
        row(out, &format!("  quality, {rule}"), value, "")?;
    }
    for (failure, value) in counters.failures().filter(|(_, value)| *value > 0) {
        row(out, &format!("  failed, {failure}"), value, "")?;
    }
    Ok(())
}

fn counters_json(counters: &Counters) -> Value {
    let mut object = serde_json::Map::new();
    for counter in Counter::ALL {
        object.insert(counter.as_str().to_owned(), counters.get(counter).into());
    }
    let table = |rows: &mut dyn Iterator<Item = (&'static str, u64)>| -> Value {
        let rows = rows.filter(|(_, value)| *value > 0);
        rows.map(|(name, value)| (name.to_owned(), Value::from(value)))
            .collect()
    };
    object.insert("rejections".to_owned(), table(&mut counters.rejections()));
    let quality = counters.quality_rejections();
    let quality = quality.map(|(rule, value)| (rule.to_owned(), Value::from(value)));
    object.insert("quality_rejections".to_owned(), quality.collect());
    object.insert("failure_kinds".to_owned(), table(&mut counters.failures()));
    Value::Object(object)
}

fn summary_json(summary: &Summary) -> Value {
    json!({
        "end": match summary.end {
            End::Done => "done",
            End::Stopped => "stopped",
            End::Limit => "limit",
            End::Waiting => "waiting",
        },
        "still_queued": summary.n_queued,
        "lost_for_now": summary.n_lost,
        "put_aside": summary.n_aside,
        "hosts": summary.n_hosts,
        "responses": summary.n_fetched,
        "seconds": summary.elapsed.as_secs_f64(),
        "counters": counters_json(&summary.counters),
    })
}
