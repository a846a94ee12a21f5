//! `arose crawl`: fetches pages politely and drops duplicates on the way.

mod closing;
mod failures;
mod metrics;
mod pages;
pub(crate) mod progress;
mod repair;
mod seeds;
mod signals;
mod watch;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use arose_crawl::counters::{Counter, Counters};
use arose_crawl::settings::{DuplicateLinks, Reach, TEMPLATE};
use arose_crawl::{Control, End, Settings, Status, Summary};
use serde_json::{Value, json};

use crate::output::write_json;
use crate::read::Outcome;

/// Crawls the web, politely, and drops duplicates on the way.
///
/// Starts from SEEDs (URLs, files of URLs, sitemaps; `-` is standard input) and writes into DIR:
/// archive/*.warc.gz with every response and archive/*.cdxj that says where each is. A page with
/// the payload of another is a revisit record; a near duplicate is stored whole and names what it
/// resembles. The sites of the seeds are the scope; `--scope` says otherwise. robots.txt is obeyed,
/// Crawl-delay, Request-rate and Visit-time included. A crawl that was interrupted or killed goes
/// on where it was when it is started again with the same DIR; Ctrl-C finishes what is in flight.
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
  arose crawl failures crawl                # what failed, by reason
  arose crawl retry crawl                   # what could not be reached
  arose crawl -o crawl --recrawl --every 30d # visits pages again
  arose crawl plan crawl --per-second 0.5   # what visits would buy
  arose crawl refresh crawl https://example.org/news
  arose crawl pause crawl                   # and resume, and reload
  arose crawl repair crawl                  # after damage to its files
  arose crawl export crawl > index.cdxj
  arose dedup crawl -o kept

Exit code 0 means done, 1 nothing was fetched, 2 an error."
)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    crawl: Crawl,
}

#[derive(clap::Args)]
struct Crawl {
    /// URLs, files of URLs, sitemaps; `-` is standard input.
    #[arg(value_name = "SEED")]
    seeds: Vec<String>,
    /// The folder to write into; a crawl that is there goes on.
    #[arg(
        short,
        long,
        value_name = "DIR",
        required_unless_present = "print_settings"
    )]
    output: Option<PathBuf>,
    /// Settings, as a TOML file; kept in DIR for the next run.
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
    /// A URL or mail address for the owners of sites; needed to leave loopback.
    #[arg(long, value_name = "ADDRESS")]
    contact: Option<String>,
    /// Crawls this host only; may be given several times.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Crawls this domain and all hosts below it only; may be given several times.
    #[arg(long, value_name = "NAME")]
    domain: Vec<String>,
    /// How far from the seeds to go; kept for the next run [default: site]
    #[arg(long, value_name = "REACH", conflicts_with_all = ["host", "domain"])]
    scope: Option<Scope>,
    /// Also fetch what pages need to be shown (styles, pictures, scripts, fonts), from any host
    #[arg(long)]
    requisites: bool,
    /// Links from a seed, at most.
    #[arg(long, value_name = "N")]
    depth: Option<u32>,
    /// Pages, at most.
    #[arg(long, value_name = "N")]
    pages: Option<u64>,
    /// Seconds of this run, at most; not kept for the next one
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seconds between two requests to a host, and to an address.
    #[arg(long, value_name = "S")]
    delay: Option<f64>,
    /// Asks private and loopback addresses too.
    #[arg(long)]
    allow_private: bool,
    /// When to follow the links of duplicates.
    #[arg(long, value_name = "WHEN")]
    duplicate_links: Option<WhenFollowed>,
    /// Asks this name server; may be given several times.
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
    #[arg(long, value_name = "TIME", requires = "recrawl", value_parser = pages::days)]
    every: Option<f64>,
    /// Serves counters in the format of Prometheus at this address.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Prints a settings file with every default, and does nothing.
    #[arg(long)]
    print_settings: bool,
    /// Prints the summary as JSON.
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
    /// Behind all other links
    Last,
    /// Never, except those of seeds
    Never,
    /// Like other links
    First,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show the state and counters of a crawl.
    Status {
        /// The folder of the crawl.
        dir: PathBuf,
        /// Prints it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Ask again for the URLs that are lost for now, and for nothing else.
    Retry {
        /// The folder of the crawl.
        dir: PathBuf,
        /// Prints the summary as JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the URLs whose last try failed, by reason
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
    /// The pages go to the front of the queues of their hosts. A running crawl answers when it will
    /// visit each; otherwise `arose crawl -o DIR` visits them first.
    Refresh {
        /// Directory of the crawl
        dir: PathBuf,
        /// URLs of pages or sitemaps; one that ends in `*` stands for all pages that begin so
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
    /// Have a running crawl send no further requests until it is resumed
    Pause {
        /// Directory of the crawl
        dir: PathBuf,
    },
    /// Have a paused crawl continue
    Resume {
        /// Directory of the crawl
        dir: PathBuf,
    },
    /// Have a running crawl take the settings in DIR/settings.toml
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
    /// Prints what was fetched as one sorted CDXJ index, or the URLs that still wait.
    Export {
        /// The folder of the crawl.
        dir: PathBuf,
        /// Prints the URLs that wait instead.
        #[arg(long)]
        queue: bool,
    },
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    match &options.command {
        Some(Command::Status { dir, json }) => status(dir, *json),
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
        Some(Command::Pause { dir }) => order(arose_crawl::pause(dir)),
        Some(Command::Resume { dir }) => order(arose_crawl::resume(dir)),
        Some(Command::Reload { dir }) => order(arose_crawl::reload(dir)),
        Some(Command::Repair { dir, json }) => repair::run(dir, *json),
        Some(Command::Export { dir, queue: false }) => export_index(dir),
        Some(Command::Export { dir, queue: true }) => export_queue(dir),
        None => crawl(&options.crawl),
    }
}

/// An order to a running crawl, which has taken it or not.
fn order(taken: Result<(), arose_crawl::Error>) -> anyhow::Result<Outcome> {
    taken?;
    Ok(Outcome::Found)
}

/// Inputs of other commands, with the archives of a crawl in place of its folder.
///
/// # Errors
///
/// If the archives of a crawl cannot be listed.
pub fn expand(inputs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut expanded = Vec::new();
    for input in inputs {
        match arose_crawl::is_crawl(input) {
            true => expanded.extend(arose_crawl::archives(input)?),
            false => expanded.push(input.clone()),
        }
    }
    Ok(expanded)
}

fn crawl(options: &Crawl) -> anyhow::Result<Outcome> {
    let (false, Some(folder)) = (options.print_settings, &options.output) else {
        let mut out = io::stdout().lock();
        out.write_all(TEMPLATE.as_bytes())
            .context("cannot write the settings")?;
        return Ok(Outcome::Found);
    };
    let seeds = seeds::read(&options.seeds)?;
    let is_new = !arose_crawl::is_crawl(folder);
    anyhow::ensure!(
        !(is_new && seeds.pages.is_empty() && seeds.sitemaps.is_empty()),
        "there is no crawl in `{}` to resume; pass seeds",
        folder.display()
    );
    let settings = settings(options, folder)?;
    let control = Arc::new(Control::default());
    signals::stop_on_interrupt(&control);
    if let Some(address) = options.metrics {
        metrics::serve(address, &control)?;
    }
    if let Some(seconds) = options.seconds.filter(|seconds| *seconds > 0.0) {
        let duration = Duration::try_from_secs_f64(seconds);
        control.end_after(duration.context("`--seconds` is too large")?);
    }
    let shown = progress::start(&control);
    let summary = arose_crawl::crawl(folder, settings, seeds, &control);
    shown.end();
    end(summary, folder, options.json)
}

/// Goes on with the settings of the last run.
fn retry(folder: &Path, json: bool) -> anyhow::Result<Outcome> {
    anyhow::ensure!(
        arose_crawl::is_crawl(folder),
        "`{}` holds no crawl; pass the directory of one",
        folder.display()
    );
    let settings = arose_crawl::kept_settings(folder)?;
    let control = Arc::new(Control::default());
    signals::stop_on_interrupt(&control);
    let shown = progress::start(&control);
    let summary = arose_crawl::retry(folder, settings, &control);
    shown.end();
    end(summary, folder, json)
}

fn end(
    summary: Result<Summary, arose_crawl::Error>,
    folder: &Path,
    json: bool,
) -> anyhow::Result<Outcome> {
    let summary = summary.with_context(|| format!("the crawl in {} stopped", folder.display()))?;
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

/// Those of the file, else those of the last run, with what the options say.
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
    settings.polite.delay = options.delay.unwrap_or(settings.polite.delay);
    settings.polite.address_delay = options.delay.unwrap_or(settings.polite.address_delay);
    settings.network.allow_private |= options.allow_private;
    settings.duplicates.links = match options.duplicate_links {
        Some(WhenFollowed::Last) => DuplicateLinks::Last,
        Some(WhenFollowed::Never) => DuplicateLinks::Never,
        Some(WhenFollowed::First) => DuplicateLinks::First,
        None => settings.duplicates.links,
    };
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
        (settings.recrawl.every, settings.recrawl.per_second) = (every, 0.0);
    }
    Ok(settings)
}

/// Adds what is not there yet: the same command may resume a crawl.
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
    Settings::parse(&text).with_context(|| format!("cannot use the settings {}", path.display()))
}

fn write_summary(out: &mut impl Write, summary: &Summary, folder: &Path) -> io::Result<()> {
    write_counters(out, &summary.counters)?;
    writeln!(out, "{:<20} {:>12}", "still queued", summary.n_queued)?;
    let rate = summary.n_fetched as f64 / summary.elapsed.as_secs_f64().max(1e-9);
    writeln!(
        out,
        "{:<20} {:>12}  in {:.1} s, {rate:.0} a second",
        "answers, this run",
        summary.n_fetched,
        summary.elapsed.as_secs_f64()
    )?;
    for line in closing::lines(summary, folder) {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "archive: {}", folder.join("archive").display())
}

/// The counters that are not zero, and why what was rejected was.
fn write_counters(out: &mut impl Write, counters: &Counters) -> io::Result<()> {
    for counter in Counter::ALL {
        let value = counters.get(counter);
        if value > 0 {
            writeln!(
                out,
                "{:<20} {value:>12}",
                counter.as_str().replace('_', " ")
            )?;
        }
    }
    for (reason, value) in counters.rejections().filter(|(_, value)| *value > 0) {
        writeln!(out, "  rejected, {reason:<17} {value:>4}")?;
    }
    for (failure, value) in counters.failures().filter(|(_, value)| *value > 0) {
        writeln!(out, "  failed, {failure:<19} {value:>4}")?;
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
        "answers": summary.n_fetched,
        "seconds": summary.elapsed.as_secs_f64(),
        "counters": counters_json(&summary.counters),
    })
}

/// The state and counters of a crawl, as `arose crawl status --json` prints them.
///
/// # Errors
///
/// If there is no crawl in the directory, or it is damaged.
pub fn crawl_status(dir: &Path) -> anyhow::Result<Value> {
    Ok(status_json(&arose_crawl::status(dir)?))
}

fn status_json(status: &Status) -> Value {
    json!({
        "state": state(status),
        "still_queued": status.n_queued,
        "lost_for_now": status.n_lost,
        "hosts": status.n_hosts,
        "archive_files": status.n_archive_files,
        "archive_bytes": status.n_archive_bytes,
        "counters": counters_json(&status.counters),
    })
}

fn state(status: &Status) -> &'static str {
    match (status.is_running, status.is_closed) {
        (true, _) => "running",
        (false, true) => "stopped in good order",
        (false, false) => "interrupted",
    }
}

fn status(dir: &Path, json: bool) -> anyhow::Result<Outcome> {
    let status = arose_crawl::status(dir)?;
    let mut out = io::stdout().lock();
    let state = state(&status);
    let written = match json {
        true => write_json(&mut out, &status_json(&status)),
        false => write_counters(&mut out, &status.counters).and_then(|()| {
            writeln!(out, "{:<20} {:>12}", "still queued", status.n_queued)?;
            writeln!(out, "{:<20} {:>12}", "lost for now", status.n_lost)?;
            writeln!(out, "{:<20} {:>12}", "hosts", status.n_hosts)?;
            writeln!(
                out,
                "{:<20} {:>12}",
                "archive files", status.n_archive_files
            )?;
            writeln!(
                out,
                "{:<20} {:>12}",
                "archive bytes", status.n_archive_bytes
            )?;
            writeln!(out, "{state}")
        }),
    };
    written.context("cannot write the status")?;
    Ok(Outcome::Found)
}

fn export_index(dir: &Path) -> anyhow::Result<Outcome> {
    let mut lines = arose_crawl::index_lines(dir)?;
    lines.sort_unstable();
    write_lines(&lines)
}

fn export_queue(dir: &Path) -> anyhow::Result<Outcome> {
    write_lines(&arose_crawl::queued_urls(dir)?)
}

fn write_lines(lines: &[String]) -> anyhow::Result<Outcome> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let written = lines.iter().try_for_each(|line| writeln!(out, "{line}"));
    written
        .and_then(|()| out.flush())
        .context("cannot write the list")?;
    Ok(match lines.is_empty() {
        true => Outcome::NothingFound,
        false => Outcome::Found,
    })
}
