//! Tests of one crawl by several agents over a NATS server, with the log of the web as judge.
//!
//! Agents that are to be killed or stopped are processes: the test starts its own program again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use arose_crawl::cluster::{Local, Login, cluster_status, drain};
use arose_crawl::counters::Counter;
use arose_crawl::settings::Reach;
use arose_crawl::{
    Cluster, Control, End, Error, Seeds, Servers, Settings, Summary, crawl, index_lines, join,
};
use testweb::{Config, Kind, PageCount, PageId, Server};

use crate::nats::NatsServer;
use crate::web::{check_polite, fetched, home, reachable};

const FOLDER: &str = "AROSE_CLUSTER_FOLDER";
const DNS: &str = "AROSE_CLUSTER_DNS";
const SEED: &str = "AROSE_CLUSTER_SEED";
const SERVERS: &str = "AROSE_CLUSTER_SERVERS";
const AGENT: &str = "AROSE_CLUSTER_AGENT";
const LEASE_SECONDS: &str = "AROSE_CLUSTER_LEASE";

/// Of agents that are killed or stopped, and of others. A new crawl begins after one of them.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(10);

/// Time between two requests to a host; long random faults take their time.
fn delay() -> Duration {
    let millis = std::env::var("AROSE_FAULT_DELAY").map_or(40, |text| text.parse().unwrap());
    Duration::from_millis(millis)
}

fn web(n_hosts: u32, n_pages: u32) -> Server {
    let config = Config {
        // Hosts of several partitions share an IP address.
        n_addresses: n_hosts.div_ceil(3),
        pages: PageCount::Fixed(n_pages),
        median_bytes: 2000,
        ..Config::plain(n_hosts)
    };
    Server::start(config).unwrap()
}

fn settings(dns: std::net::SocketAddr) -> Settings {
    let mut settings = Settings::default();
    settings.scope.reach = Reach::Web;
    settings.network.allow_private = true;
    settings.network.name_servers = vec![dns];
    settings.polite.delay = delay().as_secs_f64();
    settings.polite.address_delay = delay().as_secs_f64();
    settings.polite.factor = 0.0;
    settings.duplicates.links = arose_crawl::settings::DuplicateLinks::First;
    settings.duplicates.stale_after = 0;
    settings.scope.sitemaps = false;
    settings.archive.commit = 0.1;
    settings.fetch.retry_delay = 0.1;
    settings.machine.threads = 1;
    settings
}

pub(crate) fn login(servers: &str) -> Login {
    Login {
        servers: servers.to_owned(),
        max_queue: 64 << 20,
        n_replicas: servers.split(',').count(),
        ..Login::default()
    }
}

pub(crate) fn cluster(servers: &str, agent: &str, lease: Duration) -> Cluster {
    Cluster {
        servers: Servers::Nats(login(servers)),
        crawl: "test".to_owned(),
        agent: agent.to_owned(),
        weight: 1.0,
        lease,
        // So that there are some.
        snapshot_bytes: 2000,
    }
}

fn run(
    folder: &Path,
    settings: Settings,
    seed: &str,
    cluster: &Cluster,
    control: &Control,
) -> Result<Summary, Error> {
    let seeds = Seeds {
        pages: vec![seed.to_owned()],
        sitemaps: Vec::new(),
    };
    join(folder, settings, seeds, cluster, control)
}

/// The code of a child; without a directory in the environment there is nothing to do.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let variable = |name: &str| std::env::var(name).unwrap();
    let settings = settings(variable(DNS).parse().unwrap());
    let lease = Duration::from_secs(variable(LEASE_SECONDS).parse().unwrap());
    let cluster = cluster(&variable(SERVERS), &variable(AGENT), lease);
    let control = Control::default();
    let summary = run(
        Path::new(&folder),
        settings,
        &variable(SEED),
        &cluster,
        &control,
    );
    let summary = summary.unwrap();
    println!("\n{:?} {}", summary.end, summary.n_fetched);
    assert!(
        matches!(summary.end, End::Done | End::Stopped),
        "{summary:?}"
    );
}

/// An agent in a process of its own, which ends with the test.
pub(crate) struct AgentProcess(Child);

impl std::ops::Deref for AgentProcess {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl std::ops::DerefMut for AgentProcess {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn spawn(
    folder: &Path,
    server: &Server,
    nats: &NatsServer,
    agent: &str,
    lease: Duration,
) -> AgentProcess {
    spawn_at(folder, server, &nats.url(), agent, lease)
}

pub(crate) fn spawn_at(
    folder: &Path,
    server: &Server,
    servers: &str,
    agent: &str,
    lease: Duration,
) -> AgentProcess {
    let started = Command::new(std::env::current_exe().unwrap())
        .args(["cluster::child", "--exact", "--nocapture"])
        .env(FOLDER, folder.join(agent))
        .env(DNS, server.dns.to_string())
        .env(SEED, home(server, 0))
        .env(SERVERS, servers)
        .env(AGENT, agent)
        .env(LEASE_SECONDS, lease.as_secs().to_string())
        .stdout(Stdio::null())
        .spawn();
    AgentProcess(started.unwrap())
}

pub(crate) fn signal(child: &Child, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(90), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_for_requests(server: &Server, n_requests: usize) {
    wait_for("too few requests", || {
        server.log().records.len() >= n_requests
    });
}

/// Every reachable page was fetched, politely, and few of them again; the archives have them all.
#[track_caller]
pub(crate) fn check(server: &Server, folder: &Path, agents: &[&str], most_repeats: u32) {
    let expected = reachable(server, &[home(server, 0)], None);
    let fetched = fetched(server);
    let pages: BTreeSet<PageId> = fetched.keys().copied().collect();
    let missing: Vec<_> = expected.difference(&pages).collect();
    assert!(missing.is_empty(), "{} missing: {missing:?}", missing.len());
    assert_eq!(pages, expected);
    let n_repeats: u32 = fetched.values().map(|n| n - 1).sum();
    println!("{} pages, {n_repeats} again", pages.len());
    check_polite(server, delay());
    assert!(n_repeats <= most_repeats, "{n_repeats}");
    let mut archived = BTreeSet::new();
    for agent in agents {
        for line in index_lines(&folder.join(agent)).unwrap() {
            let json: serde_json::Value =
                serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
            if json["status"] == "200" && !json["url"].as_str().unwrap().ends_with("robots.txt") {
                archived.insert(json["url"].as_str().unwrap().to_owned());
            }
        }
    }
    let urls: BTreeSet<String> = expected.iter().map(|&id| server.web.url(id)).collect();
    assert_eq!(archived, urls);
}

fn wait_for_end(mut children: Vec<AgentProcess>) {
    for child in &mut children {
        let start = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if start.elapsed() > Duration::from_secs(120) {
                child.kill().unwrap();
                panic!("an agent does not end");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success());
    }
}

/// Three agents fetch every page once, and all of them see the end.
#[test]
fn issue_28_three_agents_crawl_like_one() {
    let Some(nats) = NatsServer::start(&[]) else {
        println!("skipped: no nats-server");
        return;
    };
    let server = web(60, 12);
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let summaries: Vec<Summary> = std::thread::scope(|scope| {
        let agents = ["a", "b", "c"].map(|agent| {
            let (folder, seed) = (folder.path().join(agent), home(&server, 0));
            let (settings, cluster) = (settings(server.dns), cluster(&nats.url(), agent, LONG));
            scope.spawn(move || run(&folder, settings, &seed, &cluster, &Control::default()))
        });
        agents.map(|agent| agent.join().unwrap().unwrap()).into()
    });
    println!("{:?}", start.elapsed());
    assert!(
        summaries.iter().all(|summary| summary.end == End::Done),
        "{summaries:?}"
    );
    assert!(summaries.iter().all(|summary| summary.n_fetched > 50));
    check(&server, folder.path(), &["a", "b", "c"], 0);
    let status = cluster_status(&login(&nats.url()), "test").unwrap();
    assert!(status.has_ended);
    assert_eq!(status.agents.len(), 3);
    server.stop().unwrap();
}

#[test]
fn issue_28_a_killed_agent_is_replaced() {
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let server = web(60, 30);
    let folder = tempfile::tempdir().unwrap();
    let mut agents: Vec<AgentProcess> = ["a", "b", "c"]
        .map(|agent| spawn(folder.path(), &server, &nats, agent, LEASE))
        .into();
    wait_for_requests(&server, 500);
    agents[1].kill().unwrap();
    agents[1].wait().unwrap();
    agents.remove(1);
    wait_for_end(agents);
    check(&server, folder.path(), &["a", "b", "c"], 150);
    server.stop().unwrap();
}

/// URLs and digests of all pages of archives.
fn contents(folders: &[PathBuf]) -> BTreeSet<(String, String)> {
    let lines = folders
        .iter()
        .flat_map(|folder| index_lines(folder).unwrap());
    lines
        .filter_map(|line| {
            let json: serde_json::Value = serde_json::from_str(&line[line.find('{')?..]).unwrap();
            let field = |name: &str| json[name].as_str().map(str::to_owned);
            Some((field("url")?, field("digest")?))
        })
        .collect()
}

/// Agents of one process, without servers: together their archives have the pages of one machine,
/// and as many of them are marked as duplicates.
#[test]
fn issue_28_agents_together_have_what_one_machine_has() {
    let config = Config {
        n_addresses: 8,
        pages: PageCount::Fixed(12),
        kinds: vec![(Kind::Plain, 2), (Kind::Mirror, 1), (Kind::NearMirror, 1)],
        ..Config::plain(24)
    };
    let server = Server::start(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let seeds = |server: &Server| Seeds {
        pages: (0..24).map(|host| home(server, host)).collect(),
        sitemaps: Vec::new(),
    };
    let control = Control::default();
    let (one, settings) = (folder.path().join("one"), settings(server.dns));
    let alone = crawl(&one, settings.clone(), seeds(&server), &control).unwrap();
    let local = Local::new("first");
    let agents = ["a", "b", "c"].map(|agent| folder.path().join(agent));
    let summaries: Vec<Summary> = std::thread::scope(|scope| {
        let runs = agents.each_ref().map(|path| {
            let cluster = Cluster {
                servers: Servers::Here(local.clone()),
                agent: path.file_name().unwrap().to_string_lossy().into_owned(),
                ..cluster("", "", Duration::from_secs(3))
            };
            let (settings, seeds) = (settings.clone(), seeds(&server));
            scope.spawn(move || join(path, settings, seeds, &cluster, &Control::default()))
        });
        runs.map(|run| run.join().unwrap().unwrap()).into()
    });
    assert!(summaries.iter().all(|summary| summary.n_fetched > 20));
    assert_eq!(contents(&agents), contents(&[one]));
    check_polite(&server, delay());
    let n_duplicates = |summary: &Summary| {
        let counters = &summary.counters;
        counters.get(Counter::ExactDuplicates) + counters.get(Counter::NearDuplicates)
    };
    let together: u64 = summaries.iter().map(n_duplicates).sum();
    assert!(n_duplicates(&alone) > 100);
    assert_eq!(together, n_duplicates(&alone));
    server.stop().unwrap();
}

/// With three servers, agents go on while any one of them is away.
#[test]
fn issue_28_one_of_three_servers_may_fail() {
    let Some(mut nats) = NatsServer::start_three() else {
        return;
    };
    let server = web(60, 30);
    let folder = tempfile::tempdir().unwrap();
    let urls: Vec<String> = nats.iter().map(NatsServer::url).collect();
    let agents: Vec<AgentProcess> = ["a", "b", "c"]
        .map(|agent| spawn_at(folder.path(), &server, &urls.join(","), agent, LONG))
        .into();
    wait_for_requests(&server, 400);
    for nats in &mut nats[..2] {
        nats.kill();
        std::thread::sleep(Duration::from_secs(2));
        nats.run();
        std::thread::sleep(Duration::from_secs(3));
    }
    wait_for_end(agents);
    check(&server, folder.path(), &["a", "b", "c"], 60);
    server.stop().unwrap();
}

/// No server for longer than a lease: agents stop, and go on when it is there again.
#[test]
fn issue_28_agents_wait_for_the_server() {
    let Some(mut nats) = NatsServer::start(&[]) else {
        return;
    };
    let server = web(60, 30);
    let folder = tempfile::tempdir().unwrap();
    let agents: Vec<AgentProcess> = ["a", "b", "c"]
        .map(|agent| spawn(folder.path(), &server, &nats, agent, LEASE))
        .into();
    wait_for_requests(&server, 400);
    nats.kill();
    std::thread::sleep(LEASE);
    let n_before = server.log().records.len();
    std::thread::sleep(LEASE);
    let n_after = server.log().records.len();
    assert_eq!(n_before, n_after, "requests without a lease");
    nats.run();
    wait_for_end(agents);
    check(&server, folder.path(), &["a", "b", "c"], 150);
    server.stop().unwrap();
}

/// An agent that is stopped for two leases sends nothing when it goes on, and joins again.
#[test]
fn issue_28_a_stopped_agent_sends_nothing_late() {
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let server = web(60, 40);
    let folder = tempfile::tempdir().unwrap();
    let agents: Vec<AgentProcess> = ["a", "b", "c"]
        .map(|agent| spawn(folder.path(), &server, &nats, agent, LEASE))
        .into();
    wait_for_requests(&server, 400);
    signal(&agents[0], "-STOP");
    std::thread::sleep(2 * LEASE);
    signal(&agents[0], "-CONT");
    wait_for_end(agents);
    check(&server, folder.path(), &["a", "b", "c"], 150);
    server.stop().unwrap();
}

/// Agents that come later and go earlier: nothing is fetched twice.
#[test]
fn issue_28_agents_come_and_go() {
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let server = web(60, 40);
    let folder = tempfile::tempdir().unwrap();
    let mut agents = vec![spawn(folder.path(), &server, &nats, "a", LONG)];
    wait_for_requests(&server, 200);
    agents.extend(["b", "c"].map(|agent| spawn(folder.path(), &server, &nats, agent, LONG)));
    let login = login(&nats.url());
    wait_for("b and c own nothing", || {
        let status = cluster_status(&login, "test").unwrap();
        let agents = status.agents.iter();
        agents.filter(|agent| agent.n_partitions > 80).count() == 3
    });
    drain(&login, "test", "a").unwrap();
    wait_for("a does not end", || agents[0].try_wait().unwrap().is_some());
    let status = cluster_status(&login, "test").unwrap();
    assert!(!status.has_ended && status.n_free == 0, "{status:?}");
    wait_for_end(agents);
    check(&server, folder.path(), &["a", "b", "c"], 0);
    server.stop().unwrap();
}

/// Agents that see the crawl otherwise are refused, and told why.
#[test]
fn issue_28_other_settings_are_refused_by_name() {
    let Some(nats) = NatsServer::start(&[]) else {
        return;
    };
    let server = web(2, 2);
    let folder = tempfile::tempdir().unwrap();
    let cluster = |agent| cluster(&nats.url(), agent, LONG);
    let control = Control::default();
    let seed = home(&server, 0);
    let first = run(
        &folder.path().join("a"),
        settings(server.dns),
        &seed,
        &cluster("a"),
        &control,
    );
    assert_eq!(first.unwrap().end, End::Done);
    let mut other = settings(server.dns);
    other.polite.delay = 0.5;
    let refused = run(
        &folder.path().join("b"),
        other,
        &seed,
        &cluster("b"),
        &control,
    );
    let message = refused.unwrap_err().to_string();
    assert!(
        message.contains("`polite.delay` is 0.04 in the crawl and 0.5 here"),
        "{message}"
    );
    let seed = home(&server, 1);
    let refused = run(
        &folder.path().join("c"),
        settings(server.dns),
        &seed,
        &cluster("c"),
        &control,
    );
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("the same seeds"), "{message}");
    assert!(!folder.path().join("b").exists());
    server.stop().unwrap();
}
