//! The HTTP/1.1 client of the crawler beside hyper: CPU time per response, and what each makes of
//! broken responses.
//!
//! Both fetch the same pages of a `testweb` on loopback over the same number of connections, on one
//! thread, with the same limits, into one buffer with the head and the body, which is what an
//! archive needs. Rounds alternate; the figure is the median of the thread's CPU time.

// As the crawler has it, for the modules in `fetch`.
#[path = "../../../crates/arose-crawl/src/number.rs"]
mod number;

/// What the crawler's client needs of a connection.
mod connect {
    use tokio::io::{AsyncRead, AsyncWrite};

    pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin {}

    impl<S: AsyncRead + AsyncWrite + Unpin> Stream for S {}
}

mod faults;
mod fetch;
mod own;
mod with_hyper;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use fetch::FetchLimits;
use rustix::time::{ClockId, clock_gettime};
use testweb::{Config, Fault, Kind, LogTo, PageCount, PageId, Robots, Server, Web};

#[derive(Parser)]
struct Options {
    /// Pages per round.
    #[arg(long, default_value_t = 20_000)]
    pages: usize,
    /// Rounds of each client.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Connections open at the same time.
    #[arg(long, default_value_t = 64)]
    connections: usize,
}

const USER_AGENT: &str = "arose-bench/0.1";
const PAGES_PER_HOST: u32 = 50;

/// A page to be fetched.
#[derive(Debug, Clone)]
struct Target {
    address: SocketAddr,
    authority: String,
    rest: String,
}

/// Which client fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client {
    Own,
    Hyper,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let server = Server::start(config(options.connections as u32, Kind::Plain))?;
    let jobs = jobs(&server.web, &options);
    let limits = limits(30.0, 120.0);
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..=options.rounds {
        for (client, times) in [Client::Own, Client::Hyper].into_iter().zip(&mut times) {
            let before = cpu_time();
            let local = tokio::task::LocalSet::new();
            let n_bytes = local.block_on(&runtime, fetch_all(client, &jobs, limits))?;
            let per_response = (cpu_time() - before) * 1e6 / options.pages as f64;
            // The first round of each warms caches up.
            if round > 0 {
                times.push((per_response, n_bytes));
            }
        }
    }
    println!("| client | CPU µs per response, median | least | most | bytes per round |");
    println!("|---|---|---|---|---|");
    for (client, times) in [Client::Own, Client::Hyper].into_iter().zip(&mut times) {
        times.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (least, most) = (times[0].0, times[times.len() - 1].0);
        let (median, n_bytes) = times[times.len() / 2];
        println!("| {client:?} | {median:.2} | {least:.2} | {most:.2} | {n_bytes} |");
    }
    server.stop()?;
    runtime.block_on(faults::compare())
}

fn config(n_hosts: u32, kind: Kind) -> Config {
    Config {
        n_hosts,
        n_addresses: n_hosts.min(16),
        pages: PageCount::Fixed(PAGES_PER_HOST),
        kinds: vec![(kind, 1)],
        robots: vec![(Robots::AllowAll, 1)],
        copies: 0.0,
        log: LogTo::Nothing,
        ..Config::default()
    }
}

fn limits(first_byte: f64, whole: f64) -> FetchLimits {
    FetchLimits {
        connect: Duration::from_secs(10),
        first_byte: Duration::from_secs_f64(first_byte),
        whole: Duration::from_secs_f64(whole),
        max_head: 64 << 10,
        max_body: 10 << 20,
    }
}

/// The pages of each connection, one host each.
fn jobs(web: &Web, options: &Options) -> Vec<Vec<Target>> {
    let per_connection = options.pages.div_ceil(options.connections);
    (0..options.connections as u32)
        .map(|host| {
            let page = |n: usize| target(web, host, n as u32 % PAGES_PER_HOST);
            (0..per_connection).map(page).collect()
        })
        .collect()
}

fn target(web: &Web, host: u32, page: u32) -> Target {
    let url = web.url(PageId { host, page });
    target_of(web, host, &url)
}

fn target_of(web: &Web, host: u32, url: &str) -> Target {
    let url = url.trim_start_matches("http://");
    let (authority, rest) = url.split_once('/').unwrap_or((url, ""));
    let port = web.config().port;
    Target {
        address: SocketAddr::new(web.hosts()[host as usize].address.into(), port),
        authority: authority.to_owned(),
        rest: format!("/{rest}"),
    }
}

/// Fetches everything; returns the bytes of heads and bodies.
async fn fetch_all(
    client: Client,
    jobs: &[Vec<Target>],
    limits: FetchLimits,
) -> anyhow::Result<usize> {
    let mut tasks = tokio::task::JoinSet::new();
    for job in jobs.iter().cloned() {
        tasks.spawn_local(async move {
            match client {
                Client::Own => own::fetch_all(&job, &limits).await,
                Client::Hyper => with_hyper::fetch_all(&job, &limits).await,
            }
        });
    }
    let mut n_bytes = 0;
    while let Some(done) = tasks.join_next().await {
        n_bytes += done??;
    }
    Ok(n_bytes)
}

/// CPU seconds of this thread.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The broken pages of a host.
fn broken(web: &Web) -> Vec<(Fault, Target)> {
    let host = (0..).zip(web.hosts()).find(|(_, host)| host.kind == Kind::Broken);
    let host = host.map_or(0, |(number, _)| number);
    let origin = web.origin(&web.hosts()[host as usize].name);
    let at = |fault: Fault| (fault, target_of(web, host, &(origin.clone() + &fault.path())));
    Fault::ALL.into_iter().map(at).collect()
}
