//! `arose crawl --join` and `arose crawl cluster`: one crawl on many machines.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use arose_crawl::Cluster;
use arose_crawl::cluster::{AgentStatus, ClusterStatus, Login, cluster_status, drain};
use serde_json::json;

use crate::options::duration;
use crate::output::write_json;
use crate::read::Outcome;

/// Bytes that URLs on their way between agents may take on the servers.
const MAX_QUEUE: u64 = 4 << 30;

/// Bytes of the log of a partition from which on it is replaced by a snapshot.
const SNAPSHOT_BYTES: u64 = 16 << 20;

/// How agents reach the servers between them.
#[derive(clap::Args)]
pub(super) struct Servers {
    /// NATS servers that the agents of a crawl share, separated by commas, e.g.
    /// nats://10.0.0.1:4222 or tls://nats.example:4222
    #[arg(long, value_name = "SERVERS")]
    join: Option<String>,
    /// File with `user:password` or a token for the NATS servers
    #[arg(long, value_name = "FILE", requires = "join")]
    nats_login: Option<PathBuf>,
    /// Certificates of authorities for the NATS servers (PEM)
    #[arg(long, value_name = "FILE", requires = "join")]
    nats_ca: Option<PathBuf>,
    /// Certificate of this machine for the NATS servers (PEM)
    #[arg(long, value_name = "FILE", requires = "nats_key")]
    nats_cert: Option<PathBuf>,
    /// Key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "nats_cert")]
    nats_key: Option<PathBuf>,
    /// NATS servers that keep each message: 1, 3 or 5
    #[arg(long, value_name = "N", default_value_t = 1, requires = "join")]
    nats_replicas: usize,
}

impl Servers {
    fn login(&self) -> anyhow::Result<Option<Login>> {
        let Some(servers) = &self.join else {
            return Ok(None);
        };
        let (mut user, mut token) = (None, None);
        if let Some(path) = &self.nats_login {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read `{}`", path.display()))?;
            match text.trim().split_once(':') {
                Some((name, password)) => user = Some((name.to_owned(), password.to_owned())),
                None => token = Some(text.trim().to_owned()),
            }
        }
        Ok(Some(Login {
            servers: servers.clone(),
            user,
            token,
            authorities: self.nats_ca.clone(),
            certificate: self.nats_cert.clone().zip(self.nats_key.clone()),
            max_queue: MAX_QUEUE,
            n_replicas: self.nats_replicas,
        }))
    }
}

/// How this machine takes part in a crawl.
#[derive(clap::Args)]
pub(super) struct Member {
    #[command(flatten)]
    servers: Servers,
    /// Name of the crawl that the agents share
    #[arg(long, value_name = "NAME", requires = "join")]
    crawl: Option<String>,
    /// Name of this agent [default: made from the name of the machine and DIR]
    #[arg(long, value_name = "NAME", requires = "join")]
    agent: Option<String>,
    /// Part of the crawl that this agent takes, relative to the others
    #[arg(long, value_name = "N", default_value_t = 1.0, requires = "join")]
    weight: f64,
    /// How long other agents wait before they take over from one that is silent
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = duration, requires = "join")]
    lease: Duration,
}

impl Member {
    /// How to join a crawl; none if there is none to join.
    pub(super) fn cluster(&self, folder: &Path) -> anyhow::Result<Option<Cluster>> {
        let Some(login) = self.servers.login()? else {
            return Ok(None);
        };
        let crawl = self.crawl.clone();
        Ok(Some(Cluster {
            servers: arose_crawl::Servers::Nats(login),
            crawl: crawl.context("pass the name of the crawl with `--crawl`")?,
            agent: match &self.agent {
                Some(agent) => agent.clone(),
                None => arose_crawl::cluster::agent_name(folder),
            },
            weight: self.weight,
            lease: self.lease,
            snapshot_bytes: SNAPSHOT_BYTES,
        }))
    }
}

/// Shows a crawl that runs on many machines, or drains an agent.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Name of the crawl
    name: String,
    #[command(flatten)]
    servers: Servers,
    /// Have this agent hand over its part to the others and end
    #[arg(long, value_name = "AGENT")]
    drain: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let login = options.servers.login()?;
    let login = login.context("pass the NATS servers of the crawl with `--join`")?;
    if let Some(agent) = &options.drain {
        drain(&login, &options.name, agent)?;
        return Ok(Outcome::Found);
    }
    let status = cluster_status(&login, &options.name)?;
    let mut out = io::stdout().lock();
    let written = match options.json {
        true => write_json(&mut out, &as_json(&status)),
        false => write(&mut out, &status),
    };
    written.context("cannot write the state of the cluster")?;
    Ok(Outcome::Found)
}

fn write(out: &mut impl Write, status: &ClusterStatus) -> io::Result<()> {
    let head = [
        "agent",
        "state",
        "partitions",
        "pages",
        "per second",
        "queued",
        "open",
        "unconfirmed",
        "lag",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(status.agents.iter().map(|agent| {
        [
            agent.name.clone(),
            agent.presence.to_owned(),
            agent.n_partitions.to_string(),
            agent.n_pages.to_string(),
            format!("{:.1}", agent.pages_per_second),
            agent.n_queued.to_string(),
            agent.n_in_flight.to_string(),
            agent.n_unconfirmed.to_string(),
            agent.lag.to_string(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in &rows {
        let cells = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(at, (cell, &width))| match at {
                0 | 1 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    writeln!(out, "partitions without an owner: {}", status.n_free)?;
    if status.has_ended {
        writeln!(out, "the crawl has ended")?;
    }
    Ok(())
}

fn as_json(status: &ClusterStatus) -> serde_json::Value {
    let agent = |agent: &AgentStatus| {
        json!({
            "agent": agent.name,
            "run": agent.id,
            "state": agent.presence,
            "partitions": agent.n_partitions,
            "pages": agent.n_pages,
            "pages_per_second": agent.pages_per_second,
            "queued": agent.n_queued,
            "open": agent.n_in_flight,
            "unconfirmed": agent.n_unconfirmed,
            "lag": agent.lag,
            "idle": agent.is_idle,
        })
    };
    json!({
        "agents": status.agents.iter().map(agent).collect::<Vec<_>>(),
        "free_partitions": status.n_free,
        "ended": status.has_ended,
        "version": status.version,
    })
}
