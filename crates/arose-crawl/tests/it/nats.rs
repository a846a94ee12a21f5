//! A NATS server on loopback for tests.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server with JetStream and a store of its own. It ends with the test.
pub(crate) struct NatsServer {
    child: Option<Child>,
    pub(crate) port: u16,
    store: tempfile::TempDir,
    options: Vec<String>,
}

/// Where the program is; none if it is not installed.
fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let mut programs = folders.map(|folder| folder.join("nats-server"));
    programs.find(|program| program.is_file())
}

/// Ports that nobody listens on.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

impl NatsServer {
    /// Starts a server; none if the program is not installed, which `.ci/run` does.
    pub(crate) fn start(options: &[&str]) -> Option<Self> {
        program()?;
        let options = options.iter().map(|&option| option.to_owned());
        let [port] = free_ports();
        let mut server = Self::new(port, options.collect());
        server.run();
        Some(server)
    }

    /// Starts three servers that keep each message together.
    #[allow(
        dead_code,
        reason = "only some of the tests that use this file need three"
    )]
    pub(crate) fn start_three() -> Option<Vec<Self>> {
        program()?;
        let ports: [u16; 6] = free_ports();
        let (clients, routes) = ports.split_at(3);
        let all: Vec<String> = routes
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        let servers = clients.iter().zip(&all).map(|(&port, own)| {
            let name = format!("n{port}");
            let options = ["--cluster", own, "--cluster_name", "arose", "--name", &name];
            let mut options = options.map(str::to_owned).to_vec();
            options.extend([
                "--routes".to_owned(),
                all.join(","),
                "--no_advertise".to_owned(),
            ]);
            Self::new(port, options)
        });
        let mut servers: Vec<Self> = servers.collect();
        servers.iter_mut().for_each(Self::run);
        Some(servers)
    }

    fn new(port: u16, options: Vec<String>) -> Self {
        Self {
            child: None,
            port,
            store: tempfile::tempdir().unwrap(),
            options,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Starts it again, with what it had stored.
    pub(crate) fn run(&mut self) {
        let child = Command::new(program().unwrap())
            .args([
                "-a",
                "127.0.0.1",
                "-js",
                "-p",
                &self.port.to_string(),
                "-sd",
            ])
            .arg(self.store())
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let start = Instant::now();
        while TcpStream::connect(address).is_err() {
            assert!(start.elapsed() < Duration::from_secs(10), "no NATS server");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn store(&self) -> &Path {
        self.store.path()
    }

    /// Loses all it has stored, while it does not run.
    pub(crate) fn wipe(&mut self) {
        std::fs::remove_dir_all(self.store()).unwrap();
        std::fs::create_dir(self.store()).unwrap();
    }

    /// Ends it without warning.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}
