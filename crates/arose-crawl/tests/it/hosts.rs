//! Tests of crawls with more hosts than are kept in memory.

use std::time::Duration;

use testweb::judge::By;
use testweb::{Config, PageCount, Server};

use crate::web::{fetched, homes, reachable, run, settings};

/// With four of forty hosts in memory, all pages are fetched once and no host or IP address
/// receives a request too early.
#[test]
fn issue_22_few_hosts_in_memory_change_nothing() {
    let delay = Duration::from_millis(20);
    let server = Server::start(Config {
        pages: PageCount::Fixed(40),
        median_bytes: 2000,
        ..Config::plain(40)
    });
    let server = server.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.machine.hosts_in_memory = 4;
    settings.polite.delay = delay.as_secs_f64();
    settings.polite.address_delay = delay.as_secs_f64();
    let seeds = homes(&server);
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!(summary.n_queued, 0);
    let expected = reachable(&server, &seeds, None);
    let fetched = fetched(&server);
    assert!(expected.iter().all(|page| fetched.get(page) == Some(&1)));
    for by in [By::Host, By::Address] {
        assert_eq!(server.log().gaps_shorter_than(by, delay).len(), 0, "{by:?}");
    }
    server.stop().unwrap();
}
