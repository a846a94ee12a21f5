//! Tests of hosts on IPv6, by IP address and by host name, over real sockets.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arose_crawl::connect::Waiting;
use arose_crawl::counters::Counter;
use arose_crawl::resolve::{Addresses, NoAddress, Resolve};
use arose_crawl::{End, Seams, Settings};

use crate::faults::{run_with, seams};
use crate::restart::{first_file, unpacked};

/// The header `Host` of every request.
type Hosts = Arc<Mutex<Vec<String>>>;

/// Serves two pages on the IPv6 loopback address for as long as the process lives; returns `None`
/// if the machine has no IPv6.
fn serve() -> Option<(SocketAddr, Hosts)> {
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).ok()?;
    let address = listener.local_addr().unwrap();
    let hosts = Hosts::default();
    let shown = Arc::clone(&hosts);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut buffer = [0; 1024];
            while !head.ends_with(b"\r\n\r\n") {
                let n_bytes = stream.read(&mut buffer).unwrap();
                head.extend_from_slice(&buffer[..n_bytes]);
            }
            let head = String::from_utf8(head).unwrap();
            let host = head.split("Host: ").nth(1).unwrap();
            let host = host.split("\r\n").next().unwrap().to_owned();
            shown.lock().unwrap().push(host);
            let body = match head.split(' ').nth(1).unwrap() {
                "/" => "<a href=/a>a</a> the words of a home page",
                "/a" => "the words of another page, which are others",
                _ => "",
            };
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\n\r\n";
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .unwrap();
        }
    });
    Some((address, hosts))
}

/// Resolves every host name to loopback, in both families.
struct Both;

impl Resolve for Both {
    fn resolve<'a>(&'a self, _: &'a str) -> Waiting<'a, Result<Addresses, NoAddress>> {
        let addresses = vec![IpAddr::from([127, 9, 9, 9]), Ipv6Addr::LOCALHOST.into()];
        let ttl = Duration::from_secs(60);
        Box::pin(async move { Ok(Addresses { addresses, ttl }) })
    }
}

#[test]
fn by_number_and_by_name() {
    for is_name in [false, true] {
        let Some((address, hosts)) = serve() else {
            println!("skipped: this machine has no IPv6");
            return;
        };
        let authority = match is_name {
            true => format!("six.test:{}", address.port()),
            false => address.to_string(),
        };
        let mut settings = Settings::default();
        settings.polite.delay = 0.0;
        settings.polite.address_delay = 0.0;
        settings.fetch.retry_delay = 0.01;
        let folder = tempfile::tempdir().unwrap();
        let seeds = vec![format!("http://{authority}/")];
        let summary = run_with(folder.path(), settings, seeds, |settings| Seams {
            resolver: Rc::new(Both),
            ..seams(settings, Box::new(|| Duration::from_secs(1_700_000_000)))
        });
        assert_eq!(summary.end, End::Done);
        assert_eq!(summary.counters.get(Counter::Pages), 2);
        let hosts = hosts.lock().unwrap();
        assert_eq!(hosts.len(), 3);
        assert!(hosts.iter().all(|host| *host == authority), "{hosts:?}");
        let archive = unpacked(&first_file(&folder.path().join("archive"), ".warc.gz"));
        assert_eq!(archive.matches("\r\nWARC-IP-Address: ::1\r\n").count(), 2);
    }
}
