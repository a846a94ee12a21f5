//! `testweb load`: measures how many pages one core serves.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::json;
use testweb::{LogTo, PageId, Server, Web};

use crate::options::WebOptions;

/// Serve a web, fetch its pages as fast as possible, and print one line of JSON.
///
/// The result is pages per second of the server's own CPU time (user and system), since the load
/// runs on the same machine. Linux only.
#[derive(clap::Args)]
#[command(after_help = "Example:
  testweb load --hosts 5000 --mixture plain --port 0 --for 10")]
pub(crate) struct Options {
    #[command(flatten)]
    web: WebOptions,
    /// Number of open connections
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::new(16).expect("16 is not 0"))]
    connections: NonZeroU32,
    /// Pages to fetch over a connection before the next host
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::new(20).expect("20 is not 0"))]
    pages_per_connection: NonZeroU32,
    /// Duration
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 5)]
    seconds: u64,
    /// Record every request in memory, as tests do
    #[arg(long)]
    log: bool,
}

/// The totals of one connection after another.
#[derive(Default)]
struct Haul {
    n_pages: u64,
    n_bytes: u64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let mut config = options.web.config()?;
    config.log = if options.log {
        LogTo::Memory
    } else {
        LogTo::Nothing
    };
    let server = Server::start(config)?;
    // A thread gets its name only once it runs; a response proves that it does.
    fetch_home(&server.web)?;
    let cpu_before = server_seconds()?;
    let start = Instant::now();
    let deadline = start + Duration::from_secs(options.seconds);
    let hauls = std::thread::scope(|scope| {
        let web = &server.web;
        let fetch = |worker| scope.spawn(move || fetch_until(deadline, web, options, worker));
        let workers: Vec<_> = (0..options.connections.get()).map(fetch).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        let hauls = joined.map(|haul| haul.unwrap_or_else(|_| bail!("a worker panicked")));
        hauls.collect::<anyhow::Result<Vec<Haul>>>()
    })?;
    let wall = start.elapsed().as_secs_f64();
    let cpu = server_seconds()? - cpu_before;
    let n_pages: u64 = hauls.iter().map(|haul| haul.n_pages).sum();
    let n_bytes: u64 = hauls.iter().map(|haul| haul.n_bytes).sum();
    let report = json!({
        "pages": n_pages,
        "mean_bytes": n_bytes / n_pages.max(1),
        "seconds": wall,
        "server_cpu_seconds": cpu,
        "pages_per_second": n_pages as f64 / wall,
        "pages_per_server_cpu_second": n_pages as f64 / cpu,
    });
    writeln!(io::stdout().lock(), "{report}").context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

fn fetch_home(web: &Web) -> anyhow::Result<()> {
    let home = &web.hosts()[0];
    let mut stream = TcpStream::connect((home.address, web.config().port))?;
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", home.name).as_bytes())?;
    read_reply(&mut stream, &mut Vec::new())
}

/// CPU time of the serving thread.
fn server_seconds() -> anyhow::Result<f64> {
    let tasks = fs::read_dir("/proc/self/task").context("cannot list our threads")?;
    for task in tasks.flatten() {
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        // The main thread is also called testweb, like the program.
        let is_main = task.file_name().to_str() == Some(&std::process::id().to_string());
        if name.trim() == "testweb" && !is_main {
            let times = fs::read_to_string(task.path().join("schedstat"))?;
            let nanos = times.split(' ').next().unwrap_or_default().parse::<f64>();
            return Ok(nanos.context("schedstat holds no time")? / 1e9);
        }
    }
    bail!("the server's thread is not there")
}

/// Goes round the hosts; each worker starts at a different one.
fn fetch_until(
    deadline: Instant,
    web: &Web,
    options: &Options,
    worker: u32,
) -> anyhow::Result<Haul> {
    let n_hosts = web.config().n_hosts;
    let mut haul = Haul::default();
    let mut buffer = Vec::new();
    for turn in 0.. {
        let host = ((turn * u64::from(options.connections.get()) + u64::from(worker))
            % u64::from(n_hosts)) as u32;
        let own = &web.hosts()[host as usize];
        if !own.kind.has_pages() {
            continue;
        }
        let mut stream = TcpStream::connect((own.address, web.config().port))
            .with_context(|| format!("cannot connect to {}", own.name))?;
        stream.set_nodelay(true)?;
        for nth in 0..options.pages_per_connection.get() {
            if Instant::now() >= deadline {
                return Ok(haul);
            }
            let page = (turn as u32).wrapping_add(nth) % own.n_pages;
            let path = web.path(PageId { host, page });
            let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", own.name);
            stream.write_all(request.as_bytes())?;
            read_reply(&mut stream, &mut buffer)?;
            haul.n_pages += 1;
            haul.n_bytes += buffer.len() as u64;
        }
    }
    Ok(haul)
}

/// Reads one response. The next one cannot be there yet, since it was not requested.
fn read_reply(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<()> {
    buffer.clear();
    let mut chunk = [0; 1 << 16];
    let mut expected = None;
    loop {
        match stream.read(&mut chunk)? {
            0 => bail!("the server closed the connection"),
            n => buffer.extend_from_slice(&chunk[..n]),
        }
        if expected.is_none() {
            expected = expected_bytes(buffer);
        }
        let is_whole = match expected {
            Some(Some(n_bytes)) => buffer.len() >= n_bytes,
            Some(None) => buffer.ends_with(b"\r\n0\r\n\r\n"),
            None => false,
        };
        if is_whole {
            return Ok(());
        }
    }
}

/// Number of bytes of head and body, once the head is complete; the inner `None` means chunks.
fn expected_bytes(buffer: &[u8]) -> Option<Option<usize>> {
    let end = buffer.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&buffer[..end]);
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    Some(
        length
            .and_then(|length| length.parse::<usize>().ok())
            .map(|length| end + length),
    )
}
