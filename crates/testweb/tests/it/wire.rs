//! Tests of ordinary responses over the network, their log, and changes while serving.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testweb::judge::By;
use testweb::log::Log;
use testweb::{Config, Fault, Folder, Kind, LogTo, Moment, PageId, Request, Server};

use crate::client::{End, ask, config, fetch, name_of, request, split};

#[test]
fn the_wire_carries_what_the_web_answers() {
    let server = Server::start(config()).unwrap();
    let web = &server.web;
    for id in web.pages().step_by(5) {
        let host = &web.hosts()[id.host as usize];
        if matches!(host.kind, Kind::Timestamp | Kind::Busy) {
            continue;
        }
        let target = web.path(id);
        let fetched = fetch(&server, host.address, &host.name, &target).unwrap();
        let asked = Request {
            host: &host.name,
            target: &target,
            ..Request::default()
        };
        let expected = web.answer(&asked, &Moment::default(), Vec::new());
        assert_eq!(fetched.status, expected.status);
        assert!(fetched.body == expected.body, "{}", web.url(id));
        let length = fetched.header("Content-Length").unwrap();
        assert_eq!(length, expected.body.len().to_string());
    }
}

/// Two requests at once on one connection, then a third: three responses in order.
#[test]
fn connections_are_kept() {
    let server = Server::start(config()).unwrap();
    let host = &server.web.hosts()[0];
    let get = |target: &str| format!("HEAD {target} HTTP/1.1\r\nHost: {}\r\n\r\n", host.name);
    let three = get("/") + &get("/nothing") + &request(&host.name, "/robots.txt");
    let (bytes, end) = ask(&server, &host.name, &three, usize::MAX);
    let text = String::from_utf8(bytes).unwrap();
    let statuses: Vec<&str> = text
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|part| &part[..3])
        .collect();
    assert_eq!((statuses, end), (vec!["200", "404", "200"], End::Closed));
    assert_eq!(server.log().n_connections, 1);
}

#[test]
fn bad_requests() {
    let server = Server::start(config()).unwrap();
    let name = &server.web.hosts()[0].name;
    let status = |request: &str| {
        let (bytes, _) = ask(&server, name, request, usize::MAX);
        split(&bytes).unwrap().status
    };
    assert_eq!(status("nonsense\r\n\r\n"), 400);
    assert_eq!(status(&request("nowhere.test", "/")), 421);
    assert_eq!(status(&request(name, "/").replace("GET", "POST")), 405);
    let huge = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(70_000));
    assert_eq!(status(&huge), 431);
}

#[test]
fn polite_and_impolite_clients_are_told_apart() {
    let server = Server::start(config()).unwrap();
    let broken = name_of(&server, Kind::Broken);
    let polite = &server.web.hosts()[0];
    let port = server.web.config().port;
    for _ in 0..5 {
        fetch(&server, polite.address, &polite.name, "/").unwrap();
    }
    let log = server.log();
    assert_eq!(log.records.len(), 5);
    assert!(log.overlaps(By::Host).is_empty() && log.overlaps(By::Address).is_empty());
    assert_eq!(
        log.gaps_shorter_than(By::Host, Duration::from_secs(1_000_000))
            .len(),
        4
    );
    // A slow response is in progress while the next is requested, and until the log is read. For a
    // client that has disconnected, only the last moment it was seen waiting is known.
    let host = server.web.find_host(&broken).unwrap();
    let address = server.web.hosts()[host as usize].address;
    let mut slow = TcpStream::connect((address, port)).unwrap();
    let slow_request = request(&broken, &Fault::SlowBody.path());
    slow.write_all(slow_request.as_bytes()).unwrap();
    slow.read_exact(&mut [0; 20]).unwrap();
    let (_, end) = ask(&server, &broken, &request(&broken, "/"), usize::MAX);
    assert_eq!(end, End::Closed);
    let log = server.log();
    drop(slow);
    assert_eq!(log.overlaps(By::Host).len(), 1);
    assert_eq!(log.overlaps(By::Address).len(), 1);
    let private = server.web.path(PageId { host: 0, page: 9 });
    assert!(log.disallowed(&server.web).is_empty());
    fetch(&server, polite.address, &polite.name, &private).unwrap();
    assert_eq!(server.log().disallowed(&server.web), [7]);
}

/// A client that gives up on a silent server counts as gone from then on.
#[test]
fn leaving_ends_a_request() {
    let server = Server::start(config()).unwrap();
    let broken = name_of(&server, Kind::Broken);
    let (_, end) = ask(
        &server,
        &broken,
        &request(&broken, &Fault::Silence.path()),
        usize::MAX,
    );
    assert_eq!(end, End::Quiet);
    ask(&server, &broken, &request(&broken, "/"), usize::MAX);
    let log = server.log();
    assert!(log.overlaps(By::Host).is_empty());
}

/// Damage is sent unchanged.
#[test]
fn noise_is_served() {
    let server = Server::start(config()).unwrap();
    let broken = name_of(&server, Kind::Broken);
    let noise = |number| ask(&server, &broken, &request(&broken, number), usize::MAX);
    assert_eq!(noise("/noise/1").1, End::Closed);
    assert_eq!(noise("/noise/1"), noise("/noise/1"));
    assert_ne!(noise("/noise/1"), noise("/noise/2"));
}

#[test]
fn the_log_goes_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let server = Server::start(Config {
        log: LogTo::File(path.clone()),
        ..config()
    })
    .unwrap();
    let host = server.web.hosts()[0].clone();
    let (bytes, _) = ask(&server, &host.name, &request(&host.name, "/"), usize::MAX);
    assert_eq!(server.n_requests(), 1);
    server.stop().unwrap();
    let log = Log::open(&path).unwrap();
    let record = &log.records[0];
    assert_eq!((&*record.host, &*record.target), (&*host.name, "/"));
    assert_eq!((record.address, record.status), (host.address, 200));
    assert_eq!(record.n_bytes, bytes.len() as u64);
    assert!(record.start <= record.end);
}

#[test]
fn versions_are_set_from_outside() {
    let server = Server::start(config()).unwrap();
    let web = &server.web;
    let host = web.find_host(&name_of(&server, Kind::Changing)).unwrap();
    let own = &web.hosts()[host as usize];
    let id = (0..own.n_pages)
        .map(|page| PageId { host, page })
        .find(|&id| web.page_version(id, 50) > 0)
        .unwrap();
    let get = || fetch(&server, own.address, &own.name, &web.path(id)).unwrap();
    let before = get();
    server.control.set_version(50);
    let after = get();
    assert!(before.body != after.body);
    assert_ne!(before.header("ETag"), after.header("ETag"));
    assert!(after.body == get().body);
}

#[test]
fn folders_are_hosts() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("My Docs")).unwrap();
    std::fs::write(folder.path().join("My Docs/a.html"), "<p>hello").unwrap();
    let server = Server::start(Config {
        folders: Folder::below(folder.path()).unwrap(),
        ..config()
    })
    .unwrap();
    let host = server.web.hosts().last().unwrap();
    assert_eq!((&*host.name, host.kind), ("my-docs.test", Kind::Folder));
    let list = fetch(&server, host.address, &host.name, "/").unwrap();
    assert!(
        String::from_utf8(list.body)
            .unwrap()
            .contains("href=\"a.html\"")
    );
    assert_eq!(
        fetch(&server, host.address, &host.name, "/a.html")
            .unwrap()
            .body,
        b"<p>hello"
    );
    assert!(Folder::debian(&["../etc".to_owned()]).is_err());
}
