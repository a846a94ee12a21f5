//! Tests of the DNS server over UDP.

use testweb::{Kind, Names, Server};

use crate::client::{config, fetch, name_of, resolve};

#[test]
fn names_lead_to_addresses() {
    let server = Server::start(config()).unwrap();
    for host in server.web.hosts() {
        let expected = match host.kind {
            Kind::NoName => Some((3, None)),
            Kind::NameFailure => Some((2, None)),
            Kind::NameSilence => None,
            _ => Some((0, Some(host.address))),
        };
        assert_eq!(resolve(&server, &host.name), expected, "{}", host.name);
    }
    let log = server.log();
    assert_eq!(log.queries.len(), server.web.hosts().len());
    assert_eq!(&*log.queries[0].name, "plain0.test");
}

#[test]
fn trouble_comes_and_goes() {
    let server = Server::start(config()).unwrap();
    let host = &server.web.hosts()[0];
    server.control.set_names(Names::Failing);
    assert_eq!(resolve(&server, &host.name), Some((2, None)));
    server.control.set_names(Names::Silent);
    assert_eq!(resolve(&server, &host.name), None);
    server.control.set_names(Names::Fine);
    assert_eq!(resolve(&server, &host.name), Some((0, Some(host.address))));
}

/// Endless host names, an alias, and a host that moves to an IP address at which it is also served.
#[test]
fn other_names_and_other_places() {
    let server = Server::start(config()).unwrap();
    let endless = name_of(&server, Kind::EndlessHosts);
    assert!(matches!(
        resolve(&server, &format!("x9.{endless}")),
        Some((0, Some(_)))
    ));
    let dust = name_of(&server, Kind::Dust);
    let target = resolve(&server, &dust).unwrap();
    assert_eq!(resolve(&server, &format!("www.{dust}")), Some(target));
    let elsewhere = server.web.hosts()[1].address;
    server.control.move_host(0, elsewhere);
    let name = &server.web.hosts()[0].name;
    assert_eq!(resolve(&server, name), Some((0, Some(elsewhere))));
    let fetched = fetch(&server, elsewhere, name, "/").unwrap();
    assert_eq!(fetched.status, 200);
}
