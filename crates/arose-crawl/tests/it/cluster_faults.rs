//! Random faults while three agents crawl, with the log of the web as judge.
//!
//! The short form is part of the tests. A long one, with other faults for every seed:
//!
//! ```text
//! AROSE_FAULTS=200 AROSE_FAULT_PAGES=1500 AROSE_FAULT_DELAY=900 AROSE_FAULT_SEED=1 \
//!     AROSE_FAULT_SERVERS=3 cargo test -p arose-crawl --test it random_faults -- --nocapture
//! ```

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arose::mix::SplitMix;
use arose_crawl::cluster::{Login, cluster_status, drain};
use testweb::{Config, PageCount, Server};

use crate::cluster::{AgentProcess, LEASE, check, login, signal, spawn_at};
use crate::nats::NatsServer;

const AGENTS: [&str; 3] = ["a", "b", "c"];

/// A connection to the NATS server that can be cut.
struct Wire {
    port: u16,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let wire = Self {
            port: listener.local_addr().unwrap().port(),
            is_cut: Arc::default(),
            open: Arc::default(),
        };
        let (is_cut, open) = (Arc::clone(&wire.is_cut), Arc::clone(&wire.open));
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let Ok(far) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
                    continue;
                };
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let [near_again, far_again] = [&near, &far].map(|side| side.try_clone().unwrap());
                let kept = [&near, &far].map(|side| side.try_clone().unwrap());
                open.lock().unwrap().extend(kept);
                std::thread::spawn(move || forward(near, far));
                std::thread::spawn(move || forward(far_again, near_again));
            }
        });
        wire
    }

    fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    fn set_cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
        if is_cut {
            for side in self.open.lock().unwrap().drain(..) {
                let _ = side.shutdown(Shutdown::Both);
            }
        }
    }
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 1 << 14];
    while let Ok(n @ 1..) = from.read(&mut bytes)
        && to.write_all(&bytes[..n]).is_ok()
    {}
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Three agents, some of which may not run.
struct Rig<'w> {
    server: &'w Server,
    nats: Vec<NatsServer>,
    /// Of each agent to each server.
    wires: [Vec<Wire>; 3],
    folder: &'w Path,
    agents: [Option<AgentProcess>; 3],
    random: SplitMix,
    login: Login,
}

impl Rig<'_> {
    fn start(&mut self, at: usize) {
        let urls: Vec<String> = self.wires[at].iter().map(Wire::url).collect();
        let agent = spawn_at(self.folder, self.server, &urls.join(","), AGENTS[at], LEASE);
        self.agents[at] = Some(agent);
    }

    /// Whether an agent has seen the end of the crawl.
    fn has_ended(&mut self) -> bool {
        for agent in self.agents.iter_mut().flatten() {
            if let Some(status) = agent.try_wait().unwrap() {
                assert!(status.success());
                return true;
            }
        }
        false
    }

    fn some_time(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.random.below(1000) as f64 / 1000.0)
    }

    /// Makes a fault, and what ends it; returns its name.
    fn fault(&mut self) -> String {
        let at = self.random.below(3) as usize;
        let time = self.some_time(3 * LEASE);
        match self.random.below(8) {
            0 | 1 => {
                let mut agent = self.agents[at].take().unwrap();
                agent.kill().unwrap();
                agent.wait().unwrap();
                std::thread::sleep(time);
                // With its old disk, or on another machine.
                let is_lost = self.random.below(2) == 0;
                if is_lost {
                    let folder = self.folder.join(AGENTS[at]);
                    let kept = self.folder.join(format!(
                        "kept-{}-{}",
                        AGENTS[at],
                        folder_count(self.folder)
                    ));
                    std::fs::rename(folder, kept).unwrap();
                }
                self.start(at);
                format!("kill {at} for {time:?}, disk lost: {is_lost}")
            }
            2 => {
                let agent = self.agents[at].as_ref().unwrap();
                signal(agent, "-STOP");
                std::thread::sleep(time);
                signal(agent, "-CONT");
                format!("stop {at} for {time:?}")
            }
            3 => {
                self.wires[at].iter().for_each(|wire| wire.set_cut(true));
                std::thread::sleep(time);
                self.wires[at].iter().for_each(|wire| wire.set_cut(false));
                format!("cut {at} for {time:?}")
            }
            4 => {
                let which = self.random.below(self.nats.len() as u64) as usize;
                self.nats[which].kill();
                std::thread::sleep(time);
                self.nats[which].run();
                format!("kill server {which} for {time:?}")
            }
            5 => {
                self.nats.iter_mut().for_each(NatsServer::kill);
                std::thread::sleep(time);
                self.nats.iter_mut().for_each(NatsServer::run);
                format!("kill all servers for {time:?}")
            }
            6 => {
                self.nats.iter_mut().for_each(NatsServer::kill);
                self.nats.iter_mut().for_each(NatsServer::wipe);
                self.nats.iter_mut().for_each(NatsServer::run);
                "wipe all servers".to_owned()
            }
            _ => {
                if drain(&self.login, "test", AGENTS[at]).is_ok() {
                    let mut agent = self.agents[at].take().unwrap();
                    let status = wait_some(&mut agent);
                    assert!(status, "agent {at} does not end");
                    self.start(at);
                }
                format!("drain {at}")
            }
        }
    }

    /// Waits until all partitions have owners again; whether the crawl has ended instead.
    fn recover(&mut self) -> bool {
        let start = Instant::now();
        loop {
            if self.has_ended() {
                return true;
            }
            let status = cluster_status(&self.login, "test");
            if status.is_ok_and(|status| {
                let here = status
                    .agents
                    .iter()
                    .filter(|agent| agent.presence == "here");
                here.count() == 3 && status.n_free == 0
            }) {
                return false;
            }
            assert!(start.elapsed() < Duration::from_secs(120), "no recovery");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn folder_count(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn wait_some(agent: &mut AgentProcess) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(120) {
        if agent.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    agent.kill().unwrap();
    false
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Whatever happens, no host and no IP address gets two requests at once, or two without the delay
/// between them, every page is fetched, and the archives have them all.
#[test]
fn issue_28_random_faults() {
    let nats = match variable("AROSE_FAULT_SERVERS", 1) {
        3 => NatsServer::start_three(),
        _ => NatsServer::start(&[]).map(|server| vec![server]),
    };
    let Some(nats) = nats else {
        println!("skipped: no nats-server");
        return;
    };
    let n_faults = variable("AROSE_FAULTS", 5);
    let config = Config {
        n_addresses: 24,
        pages: PageCount::Fixed(variable("AROSE_FAULT_PAGES", 60) as u32),
        median_bytes: 2000,
        ..Config::plain(60)
    };
    let server = Server::start(config).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let seed = variable("AROSE_FAULT_SEED", 28);
    let urls: Vec<String> = nats.iter().map(NatsServer::url).collect();
    let mut rig = Rig {
        server: &server,
        wires: [(); 3].map(|()| nats.iter().map(|server| Wire::to(server.port)).collect()),
        login: login(&urls.join(",")),
        nats,
        folder: folder.path(),
        agents: [None, None, None],
        random: SplitMix::new(seed),
    };
    (0..3).for_each(|at| rig.start(at));
    let start = Instant::now();
    let mut n_made = 0;
    while n_made < n_faults && !rig.recover() {
        std::thread::sleep(rig.some_time(LEASE));
        let n_before = server.log().records.len();
        let begun = start.elapsed();
        let fault = rig.fault();
        let n_after = server.log().records.len();
        println!("{begun:.1?} {fault}: {n_before} to {n_after} requests");
        n_made += 1;
    }
    assert!(n_made > 0, "the crawl was over before the first fault");
    for agent in rig.agents.iter_mut().flatten() {
        assert!(wait_some(agent), "an agent does not end");
    }
    println!("{n_made} faults, {:?}", start.elapsed());
    let folders = std::fs::read_dir(folder.path()).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: Vec<String> = names.collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    check(&server, folder.path(), &names, 150 * n_made as u32);
    server.stop().unwrap();
}
