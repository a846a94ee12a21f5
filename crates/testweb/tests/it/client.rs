//! A client that shows raw bytes and how a connection ended.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::time::Duration;

use testweb::{Config, Fault, Kind, Names, PageCount, Robots, Server};

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
    /// No bytes arrived for a while.
    Quiet,
    /// As many bytes arrived as requested.
    Enough,
}

/// How long to wait before a connection counts as quiet. Only a connection that is silent forever
/// is waited for briefly. All others may take their time, or tests would fail on a busy machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Brief,
    Long,
}

impl Patience {
    const fn duration(self) -> Duration {
        match self {
            Patience::Brief => Duration::from_millis(200),
            Patience::Long => Duration::from_secs(120),
        }
    }

    /// A request for a path on a host.
    pub(crate) fn with(server: &Server, host: &str, target: &str) -> Self {
        let idx = server.web.find_host(host);
        let own = idx.map(|idx| &server.web.hosts()[idx as usize]);
        let is_silent = own.is_some_and(|own| {
            own.kind == Kind::NameSilence
                || own.robots == Robots::Silent && target == "/robots.txt"
                || target == Fault::Silence.path()
        });
        if is_silent { Self::Brief } else { Self::Long }
    }
}

/// Every kind of host, with few pages.
pub(crate) fn config() -> Config {
    Config {
        n_hosts: 84,
        n_addresses: 84,
        pages: PageCount::Fixed(12),
        median_bytes: 3000,
        ..Config::default()
    }
}

pub(crate) fn name_of(server: &Server, kind: Kind) -> String {
    let found = server.web.hosts().iter().find(|host| host.kind == kind);
    found.unwrap().name.clone()
}

/// Sends a request to the IP address of the host and reads until the end, a quiet moment, or `most`
/// bytes.
pub(crate) fn ask(server: &Server, host: &str, request: &str, most: usize) -> (Vec<u8>, End) {
    let idx = server.web.find_host(host).unwrap();
    let address = server.web.hosts()[idx as usize].address;
    let target = request.split(' ').nth(1).unwrap_or_default();
    let patience = Patience::with(server, host, target);
    ask_at(
        SocketAddrV4::new(address, server.web.config().port),
        request,
        most,
        patience,
    )
}

fn ask_at(place: SocketAddrV4, request: &str, most: usize, patience: Patience) -> (Vec<u8>, End) {
    let mut stream = TcpStream::connect(place).unwrap();
    stream.set_read_timeout(Some(patience.duration())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let mut chunk = [0; 1 << 16];
    while bytes.len() < most {
        match stream.read(&mut chunk) {
            Ok(0) => return (bytes, End::Closed),
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return (bytes, End::Reset),
            Err(_) => return (bytes, End::Quiet),
        }
    }
    (bytes, End::Enough)
}

pub(crate) fn request(host: &str, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// A parsed response.
pub(crate) struct Fetched {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Fetched {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(own, _)| *own == name).map(|(_, value)| value)
    }
}

/// Fetches a URL; `None` if no complete response arrived.
pub(crate) fn fetch(
    server: &Server,
    address: Ipv4Addr,
    host: &str,
    target: &str,
) -> Option<Fetched> {
    let place = SocketAddrV4::new(address, server.web.config().port);
    let patience = Patience::with(server, host, target);
    let (bytes, end) = ask_at(place, &request(host, target), usize::MAX, patience);
    (end == End::Closed).then(|| split(&bytes))?
}

pub(crate) fn split(bytes: &[u8]) -> Option<Fetched> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let mut body = bytes[end + 4..].to_vec();
    if head.contains("Transfer-Encoding: chunked") {
        body = unchunk(&body)?;
    }
    Some(Fetched { status, head, body })
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let len = usize::from_str_radix(str::from_utf8(&rest[..line]).ok()?, 16).ok()?;
        let chunk = rest.get(line + 2..line + 2 + len)?;
        rest = rest.get(line + 2 + len..)?.strip_prefix(b"\r\n")?;
        match len {
            0 => return Some(body),
            _ => body.extend_from_slice(chunk),
        }
    }
}

/// Code and last IP address of the DNS response for a host; `None` if there was none.
pub(crate) fn resolve(server: &Server, name: &str) -> Option<(u8, Option<Ipv4Addr>)> {
    let patience = match server.control.names() {
        Names::Silent => Patience::Brief,
        _ => Patience::with(server, name, ""),
    };
    let mut query = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        query.push(label.len() as u8);
        query.extend_from_slice(label.as_bytes());
    }
    query.extend([0, 0, 1, 0, 1]);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(patience.duration())).unwrap();
    socket.send_to(&query, server.dns).unwrap();
    let mut answer = [0; 512];
    let len = socket.recv(&mut answer).ok()?;
    assert_eq!(answer[..2], query[..2]);
    let octets: [u8; 4] = answer[len - 4..len].try_into().unwrap();
    let has_answers = answer[7] > 0;
    Some((answer[3], has_answers.then(|| Ipv4Addr::from(octets))))
}
