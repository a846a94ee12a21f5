//! Tests of the frontier.

use super::trust::ROUND;
use super::*;
use crate::fingerprint::Fingerprint;
use crate::journal::{Event, Kind};
use crate::url::Normalizer;

fn add(frontier: &mut Frontier, text: &str) -> Result<HostId, TooManyHosts> {
    let url = Normalizer::default().normalize(text, None).unwrap();
    frontier.add_host(&url, Fingerprint::of(&url).host)
}

fn push(frontier: &mut Frontier, host: HostId, mass: f32, place: Place) {
    let weight = Weight {
        mass: Level::of(mass.abs()),
        trust: Level::NONE,
    };
    let queued = Queued {
        host,
        depth: 0,
        weight,
        class: 0,
        is_last: mass < 0.0,
        of_repeat: false,
        n_redirects: 0,
        kind: Kind::Page,
        rest: "/",
        found_on: "",
    };
    let tag = Tag::of(place);
    frontier.push(&queued, tag, place);
}

fn frontier() -> Frontier {
    let budget = Budget {
        max_pages: 40,
        pages: 10,
        max_hosts: 2,
    };
    Frontier::new(budget, Order::Opic)
}

#[test]
fn a_site_has_only_so_many_hosts() {
    let mut frontier = frontier();
    assert_eq!(add(&mut frontier, "http://a.x.org/"), Ok(0));
    assert_eq!(add(&mut frontier, "http://b.x.org/"), Ok(1));
    assert_eq!(add(&mut frontier, "http://c.x.org/"), Err(TooManyHosts));
    assert_eq!(add(&mut frontier, "http://y.org/"), Ok(2));
}

#[test]
fn urls_leave_by_priority_then_in_order() {
    let mut frontier = frontier();
    let host = add(&mut frontier, "http://h.org/").unwrap();
    for (mass, place) in [(1.0, 10), (2.0, 20), (1.0, 30), (2.0, 40)] {
        push(&mut frontier, host, mass, place);
    }
    let gift = Gift {
        mass: 1.5,
        ..Gift::NONE
    };
    assert_eq!(
        frontier.give(host, 30, gift).map(|(place, _)| place),
        Some(30)
    );
    assert_eq!(frontier.give(host, 31, gift), None);
    let host = &mut frontier.hosts[host as usize];
    let order: Vec<Place> = std::iter::from_fn(|| host.pop())
        .map(|turn| turn.place)
        .collect();
    assert_eq!(order, [30, 20, 40, 10]);
}

/// A host with an IP address and one queued URL.
fn add_ready(frontier: &mut Frontier, text: &str, n: u8) -> HostId {
    let host = add(frontier, text).unwrap();
    frontier.hosts[host as usize].address = Some(IpAddr::from([1, 1, 1, n]));
    push(frontier, host, 1.0, u64::from(n));
    host
}

fn taken(frontier: &mut Frontier, now: Duration) -> Option<HostId> {
    frontier.take(now).map(|taken| match taken {
        Taken::Host(id) => id,
        Taken::Later => panic!("all hosts are in memory"),
    })
}

fn site(frontier: &mut Frontier, host: HostId) -> &mut SiteState {
    let site = frontier.hosts[host as usize].site;
    &mut frontier.sites[site as usize]
}

const NOW: Duration = Duration::ZERO;

/// A host lets others go first when its site has had its share, and is taken when there are no
/// others. It comes first again when another site trusts it. With its maximum number of pages it is
/// parked.
#[test]
fn shares_order_and_never_drop() {
    let mut frontier = frontier();
    let over = add_ready(&mut frontier, "http://h.org/", 1);
    let other = add_ready(&mut frontier, "http://o.org/", 2);
    frontier.entrust(None, over, 0.5);
    frontier.entrust(None, other, 1.0);
    site(&mut frontier, over).n_pages = 7;
    frontier.advance(over);
    frontier.advance(other);
    let take = |frontier: &mut Frontier| taken(frontier, NOW);
    assert_eq!(take(&mut frontier), Some(other));
    assert_eq!(take(&mut frontier), Some(over));
    frontier.release(over, NOW, IpAddr::from([1, 1, 1, 1]), NOW);
    frontier.release(other, NOW, IpAddr::from([1, 1, 1, 2]), NOW);
    site(&mut frontier, other).n_pages = 15;
    let of = frontier.hosts.site(over);
    frontier.entrust(Some(of), over, 1.0);
    assert_eq!(site(&mut frontier, over).trust, 0.5);
    frontier.entrust(Some(of + 1), over, 0.25);
    assert_eq!(take(&mut frontier), Some(over));
    assert_eq!(take(&mut frontier), Some(other));
    assert_eq!(take(&mut frontier), None);
    site(&mut frontier, over).n_pages = 40;
    frontier.release(over, NOW, IpAddr::from([1, 1, 1, 1]), NOW);
    assert_eq!(frontier.hosts[over as usize].stage, Stage::Parked);
    frontier.rebalance();
    assert_eq!((take(&mut frontier), frontier.n_queued), (None, 2));
    let trust = |event: &Event<'_>| match *event {
        Event::Trust { host, trust } => (host, trust),
        _ => panic!("{event:?}"),
    };
    let changes: Vec<_> = frontier.take_changes().iter().map(trust).collect();
    assert_eq!(changes, [(over, 0.75), (other, 0.75)]);
    assert!(frontier.take_changes().is_empty());
}

/// A host goes first when a link raises the priority of its queued URLs.
#[test]
fn links_raise_hosts() {
    let mut frontier = frontier();
    for n in 0..3 {
        let host = add_ready(&mut frontier, &format!("http://h{n}.org/"), n);
        frontier.entrust(None, host, 1.0);
        frontier.advance(host);
    }
    let gift = Gift {
        mass: 4.0,
        ..Gift::NONE
    };
    assert!(frontier.give(2, 2, gift).is_some());
    let order: Vec<_> = std::iter::from_fn(|| taken(&mut frontier, NOW)).collect();
    assert_eq!(order, [2, 0, 1]);
    for host in 0..3 {
        frontier.hosts[host as usize].pop();
        let address = IpAddr::from([1, 1, 1, host]);
        frontier.release(host.into(), NOW, address, NOW);
    }
    assert_eq!(
        (taken(&mut frontier, NOW), frontier.bench.n_entries),
        (None, 0)
    );
}

/// A seed that is already queued gets the weight of seeds, once.
#[test]
fn a_known_url_may_become_a_seed() {
    let mut frontier = frontier();
    let host = add_ready(&mut frontier, "http://h.org/", 1);
    let tag = Tag::of(1);
    let (place, weight) = frontier.lift(host, tag, 0).unwrap();
    assert_eq!((place, weight.mass), (1, Level::of(10.0)));
    assert_eq!(frontier.lift(host, tag, 0), None);
    let trust = site(&mut frontier, host).trust;
    assert!((trust - 1.0).abs() < 1e-3, "{trust}");
}

/// If all sites are far beyond their shares, trust becomes worth more until they are not.
#[test]
fn shares_double_when_all_are_used_up() {
    let mut frontier = frontier();
    for n in 0..20 {
        let host = add_ready(&mut frontier, &format!("http://h{n}.org/"), n);
        frontier.entrust(None, host, 1e-5);
        site(&mut frontier, host).n_pages = 9;
        frontier.advance(host);
    }
    for n in 0..20 * ROUND {
        let host = taken(&mut frontier, NOW).unwrap();
        let address = IpAddr::from([1, 1, 1, host as u8]);
        frontier.release(host, NOW, address, NOW);
        assert!(frontier.bench.n_entries == 20, "{n}");
    }
    // 1e-5 of trust for 10 pages is 1e-4, over 10 pages 1e-5: ten doublings from 0.01.
    assert_eq!(frontier.scale.n_doublings, 10);
    let events = frontier.take_changes();
    assert_eq!(events.last(), Some(&Event::Doublings { n: 10 }));
}

/// Across sites, one link brings a small part of all trust. Within a site, and if a page stands for
/// another, all trust is passed on.
#[test]
fn issue_26_one_link_brings_little() {
    let mut frontier = frontier();
    let from = add(&mut frontier, "http://a.org/").unwrap();
    let own = add(&mut frontier, "http://www.a.org/").unwrap();
    let other = add(&mut frontier, "http://b.org/").unwrap();
    frontier.entrust(None, from, 10.0);
    let weight = Weight {
        mass: Level::of(1.0),
        trust: Level::of_trust(1.0, 0),
    };
    let link = Gift::share_of(weight, 1.0, 1, 3);
    assert_eq!(frontier.carried(from, own, link), link);
    let carried = frontier.carried(from, other, link);
    assert!((carried.trust - 0.002).abs() < 1e-6, "{carried:?}");
    assert_eq!(carried.mass, link.mass);
    let whole = Gift::whole(weight, 3);
    assert_eq!(frontier.carried(from, other, whole), whole);
}

/// The number of pages that trust is worth grows with the crawl.
#[test]
fn issue_26_trust_is_worth_more_in_a_larger_crawl() {
    let mut frontier = frontier();
    let host = add_ready(&mut frontier, "http://h.org/", 1);
    frontier.entrust(None, host, 2.0);
    let site = frontier.hosts.site(host);
    frontier.count_pages(site, 30);
    frontier.advance(host);
    let address = IpAddr::from([1, 1, 1, 1]);
    for _ in 0..10 * ROUND {
        let host = taken(&mut frontier, NOW).unwrap();
        frontier.release(host, NOW, address, NOW);
    }
    // 64 times 30 pages for 2 units of trust are 960, starting at 10: six doublings to 640.
    assert_eq!(frontier.scale.n_doublings, 6);
}

/// URLs found on duplicates go after everything else, at their host and between hosts.
#[test]
fn links_of_duplicates_go_last() {
    let mut frontier = frontier();
    let last = add(&mut frontier, "http://l.org/").unwrap();
    frontier.hosts[last as usize].address = Some(IpAddr::from([1, 1, 1, 1]));
    push(&mut frontier, last, -1.0, 5);
    frontier.advance(last);
    let other = add_ready(&mut frontier, "http://o.org/", 2);
    push(&mut frontier, other, -9.0, 8);
    push(&mut frontier, other, 0.5, 9);
    frontier.advance(other);
    assert_eq!(taken(&mut frontier, NOW), Some(other));
    assert_eq!(taken(&mut frontier, NOW), Some(last));
    assert_eq!(frontier.hosts[other as usize].drain(), [2, 9, 8]);
}

/// Lost URLs are fetched alone, or with all others.
#[test]
fn lost_urls_are_kept() {
    let mut frontier = frontier();
    let host = add_ready(&mut frontier, "http://h.org/", 1);
    push(&mut frontier, host, 1.0, 7);
    frontier.hosts[host as usize].lose(7);
    let gone = add_ready(&mut frontier, "http://g.org/", 2);
    frontier.hosts[gone as usize].is_lost = true;
    assert_eq!((frontier.n_lost(), frontier.n_queued), (2, 3));
    frontier.hold_queues().unwrap();
    (0..2).for_each(|host| frontier.hosts[host].forgive());
    let pop = |host: &mut Host| host.pop().map(|turn| turn.place);
    let host = &mut frontier.hosts[host as usize];
    assert_eq!((pop(host), pop(host)), (Some(7), None));
    assert_eq!(host.drain(), [1]);
    assert_eq!(pop(&mut frontier.hosts[gone as usize]), Some(2));
}

/// Whatever is done with hosts that are not in memory, none of them is read at once, and all of it
/// has happened when they are.
#[test]
fn issue_22_nothing_waits_for_hosts_on_the_shelf() {
    const N: HostId = 12;
    let folder = tempfile::tempdir().unwrap();
    let mut frontier = frontier();
    frontier.hosts.limit(folder.path(), "hosts.tmp", 2).unwrap();
    for id in 0..N {
        let host = add(&mut frontier, &format!("http://h{id}.org/")).unwrap();
        push(&mut frontier, host, 1.0, Place::from(id) + 1);
        frontier.hosts[host as usize].address = Some([127, 0, 0, 1].into());
        frontier.advance(host);
    }
    frontier.hosts.shelve(N as usize).unwrap();
    frontier.hosts.keep_aside(|| ());
    // Until then, they are in memory.
    frontier.hosts.write_all().unwrap();
    let tag = |id: HostId| Tag::of(u64::from(id) + 1);
    let all_rest = |frontier: &Frontier| (0..N - 2).all(|id| !frontier.hosts.is_warm(id));
    assert!(all_rest(&frontier));
    let gift = Gift {
        mass: 5.0,
        trust: 1.0,
        is_link: true,
        ..Gift::NONE
    };
    let job = RobotsJob {
        host: 3,
        rest: "/robots.txt".into(),
        n_redirects: 1,
        n_tries: 0,
    };
    assert_eq!(frontier.lift(0, tag(0), 0), None);
    assert_eq!(frontier.give(1, 2, gift), None);
    assert_eq!(frontier.reweigh(2, 3, Level::of(7.0)), None);
    frontier.push_job(3, job);
    push(&mut frontier, 4, 2.0, 100);
    frontier.entrust(None, 5, 1.0);
    frontier.raise(6, Level::of(9.0));
    frontier.name_sites();
    frontier.rebalance();
    assert!(all_rest(&frontier));
    assert_eq!(frontier.trusted_sites().len(), 0);
    let mut arrived = Vec::new();
    while let Some((id, arriving)) = frontier.hosts.wait_arrived().unwrap() {
        arrived.push(id);
        for &(tag, number) in &arriving.lifts {
            assert!(frontier.lift(id, tag, number).is_some());
        }
        for &(rest_hash, gift) in &arriving.gifts {
            assert!(frontier.give(id, rest_hash, gift).is_some());
        }
        for &(rest_hash, mass) in &arriving.masses {
            assert!(frontier.reweigh(id, rest_hash, mass).is_some());
        }
    }
    assert_eq!(arrived, [0, 1, 2, 3, 4, 5]);
    assert_eq!(frontier.hosts[3].jobs.len(), 1);
    let n_queued = frontier.hosts[4].waiting().count();
    assert_eq!(n_queued, 2);
    frontier.name_sites();
    let sites = frontier.trusted_sites().into_iter();
    let mut names: Vec<String> = sites.map(|site| site.name).collect();
    names.sort();
    assert_eq!(names, ["h0.org", "h5.org"]);
}
