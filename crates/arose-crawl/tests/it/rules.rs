//! Tests of URL rules: crawls of a web whose pages have URLs without end, compared with the ground
//! truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use arose::dust::State;
use arose_crawl::counters::Counter;
use arose_crawl::settings::DuplicateLinks;
use arose_crawl::{End, Settings, Summary, UrlRule, order_rules, queued_urls, status, url_rules};
use testweb::{Config, Flavour, Folder, PageCount, Server};

use crate::web::{home, run, settings};

fn serve(n_items: u32) -> Server {
    let server = Server::start(Config {
        pages: PageCount::Fixed(n_items),
        median_bytes: 2000,
        ..Config::variants(1)
    });
    server.unwrap()
}

/// Links of duplicates are not followed; otherwise sessions would never end. Nothing else prevents
/// endless cycles.
fn careful(server: &Server) -> Settings {
    let mut settings = settings(server);
    settings.duplicates.links = DuplicateLinks::Never;
    settings.scope.sitemaps = false;
    settings
}

/// The requests to a host.
#[derive(Debug, Default)]
struct Asked {
    n: usize,
    contents: BTreeSet<u64>,
}

/// Whether a path is one of a plain page, such as `/t6/p1.html`.
fn is_plain(target: &str) -> bool {
    target.starts_with("/t") && target.ends_with(".html")
}

/// The requests to each host, by its number; `www.` is the same host.
fn asked(server: &Server) -> BTreeMap<u32, Asked> {
    let mut hosts: BTreeMap<u32, Asked> = BTreeMap::new();
    for record in &server.log().records {
        let host = server.web.find_host(&record.host).unwrap();
        // Links of the plain host lead to pages that these hosts do not have. They are requested
        // once, whatever the rules.
        let is_dead = server.web.flavour(host).is_some() && is_plain(&record.target);
        if &*record.target == "/robots.txt" || is_dead {
            continue;
        }
        let asked = hosts.entry(host).or_default();
        asked.n += 1;
        if record.status == 200
            && let Some((_, content)) = server.web.variant_at(host, &record.target)
        {
            asked.contents.insert(content);
        }
    }
    hosts
}

fn host_of(server: &Server, flavour: Flavour) -> u32 {
    let mut hosts = 0..server.web.hosts().len() as u32;
    hosts
        .find(|&host| server.web.flavour(host) == Some(flavour))
        .unwrap()
}

/// The rules of a host, without `slash` and similar rules that need no evidence.
fn rules_of(server: &Server, folder: &Path, host: u32) -> Vec<UrlRule> {
    let name = &server.web.hosts()[host as usize].name;
    let is_its = |rule: &UrlRule| rule.scope.split([':', '/']).next() == Some(name);
    let rules = url_rules(folder).unwrap().into_iter();
    rules.filter(is_its).collect()
}

fn active(rules: &[UrlRule]) -> BTreeSet<String> {
    let active = rules.iter().filter(|rule| rule.state == State::Active);
    active.map(|rule| rule.rule.to_string()).collect()
}

/// The true rules, and the maximum number of requests per page that is distinct under them.
fn truth(flavour: Flavour) -> (&'static [&'static str], f64) {
    match flavour {
        Flavour::Session => (&["parameter ref", "parameter sid", "parameter sort"], 1.6),
        Flavour::Fickle => (&["parameter sid", "parameter sort"], 1.6),
        Flavour::PathSession => (&["path-parameter jsessionid"], 1.3),
        Flavour::Crumb => (&["segment S- 13 mixed"], 1.6),
        Flavour::Campaign => (&["parameter utm_medium", "parameter utm_source"], 1.3),
        Flavour::Index => (&["index index.html"], 1.6),
        Flavour::Print => (&["word print"], 1.6),
        Flavour::Twin => (&["www"], 1.6),
        Flavour::Query => (&[], 1.6),
        Flavour::Pair => (&["parameter sid"], 1.6),
        Flavour::Soft => (&[], f64::INFINITY),
    }
}

/// All linked contents were fetched; probes may have found more.
#[track_caller]
fn check_contents(asked: &BTreeSet<u64>, contents: &BTreeSet<u64>, flavour: Flavour) {
    let n_lost = contents.difference(asked).count();
    assert_eq!(n_lost, 0, "{flavour:?}: of {} contents", contents.len());
}

#[track_caller]
fn check_host(server: &Server, folder: &Path, flavour: Flavour, asked: &Asked) {
    let host = host_of(server, flavour);
    let rules = rules_of(server, folder, host);
    let (expected, most) = truth(flavour);
    let (selections, contents) = server.web.variants(host);
    let n = selections.len();
    println!(
        "{flavour:?}: {} requests for {n} pages ({:.2}), {} of {} contents",
        asked.n,
        asked.n as f64 / n as f64,
        asked.contents.len(),
        contents.len()
    );
    for rule in &rules {
        if rule.state != State::Testing || rule.n_probes > 0 {
            println!(
                "  {} {}: {:?}, {} same, {} different, {} probes, {} deferred, {} audited",
                rule.scope,
                rule.rule,
                rule.state,
                rule.n_same,
                rule.n_different,
                rule.n_probes,
                rule.n_deferred,
                rule.n_audited
            );
        }
    }
    check_contents(&asked.contents, &contents, flavour);
    let expected: BTreeSet<String> = expected.iter().map(|&rule| rule.to_owned()).collect();
    // Some session IDs happen to have letters of one case only. They have a rule of their own,
    // which is just as true, but many of them are needed to find it.
    let rare = match flavour {
        Flavour::Crumb => "segment S- 13 single",
        _ => "",
    };
    let mut active = active(&rules);
    active.remove(rare);
    assert_eq!(active, expected, "{flavour:?}: rules");
    for rule in &rules {
        let name = rule.rule.to_string();
        let is_true = expected.contains(&name) || name == rare;
        assert!(is_true || rule.n_deferred <= 50, "{rule:?}");
    }
    let share = asked.n as f64 / n as f64;
    assert!(share <= most, "{flavour:?}: {share}");
}

/// Every true rule is found, no false one stays, nothing is lost, and few pages are fetched twice.
#[test]
fn variants_are_learned_and_nothing_is_lost() {
    check_variants(500);
}

/// The same for larger sites.
#[test]
fn variants_of_larger_sites_are_learned() {
    check_variants(1000);
}

#[track_caller]
fn check_variants(n_items: u32) {
    let server = serve(n_items);
    let folder = tempfile::tempdir().unwrap();
    let summary = run(folder.path(), careful(&server), &[home(&server, 0)]);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    let asked = asked(&server);
    for flavour in Flavour::ALL {
        let host = host_of(&server, flavour);
        check_host(&server, folder.path(), flavour, &asked[&host]);
    }
    // The host without parameters receives requests only for its pages.
    let n_plain = server.web.reachable(&testweb::truth::Visit {
        seeds: vec![home(&server, 0)],
        max_redirects: 5,
        minute: None,
    });
    let n_plain = n_plain.iter().filter(|id| id.host == 0).count();
    let log = server.log();
    let pages = log.records.iter();
    let pages = pages.filter(|one| server.web.find_host(&one.host) == Some(0));
    let pages = pages.map(|record| &*record.target).collect::<BTreeSet<_>>();
    assert_eq!(asked[&0].n + 1, pages.len(), "and robots.txt");
    // A few pages have links only from pages that the other hosts do not have.
    let n_missing = n_plain - asked[&0].n;
    assert!(n_missing <= n_plain / 50, "{n_missing} of {n_plain}");
    let rules = rules_of(&server, folder.path(), 0);
    assert!(rules.iter().all(|rule| rule.n_probes == 0), "{rules:?}");
    check_counters(folder.path(), &summary);
    server.stop().unwrap();
}

/// The deferred URLs match the counters, and the directory agrees with the run.
#[track_caller]
fn check_counters(folder: &Path, summary: &Summary) {
    let counter = |counter| summary.counters.get(counter);
    let n_deferred = counter(Counter::DeferredUrls) - counter(Counter::RecalledUrls);
    assert_eq!(summary.n_deferred, n_deferred);
    assert!(n_deferred > 0);
    assert_eq!(summary.counters.balance(), 0);
    let status = status(folder).unwrap();
    assert_eq!((status.n_deferred, status.n_queued), (n_deferred, 0));
    assert!(queued_urls(folder).unwrap().is_empty());
    let rules = url_rules(folder).unwrap();
    let n_active = rules.iter().filter(|rule| rule.state == State::Active);
    assert_eq!(status.n_active_rules, n_active.count() as u64);
}

/// Without rules the same hosts have no end.
#[test]
fn without_rules_there_is_no_end() {
    let server = serve(60);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = careful(&server);
    settings.rules.on = false;
    settings.duplicates.links = DuplicateLinks::First;
    settings.stop.pages = 3000;
    let summary = run(folder.path(), settings, &[home(&server, 0)]);
    assert_eq!(summary.end, End::Limit);
    assert_eq!(summary.counters.get(Counter::DeferredUrls), 0);
    server.stop().unwrap();
}

/// A rule that is switched on by hand is wrong: audits find out, and all URLs that it deferred are
/// fetched. One that is switched off by hand defers nothing more.
#[test]
fn rules_are_switched_and_wrong_ones_suspended() {
    let server = serve(120);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = careful(&server);
    settings.stop.pages = 500;
    let seeds = [home(&server, 0)];
    let summary = run(folder.path(), settings.clone(), &seeds);
    assert_eq!(summary.end, End::Limit);
    let name = |flavour: Flavour| {
        let origin = server
            .web
            .origin(&server.web.hosts()[host_of(&server, flavour) as usize].name);
        origin.strip_prefix("http://").unwrap().to_owned()
    };
    let rule = |flavour, path: &str, rule: &str, state| UrlRule {
        is_removable: true,
        ..UrlRule::new(
            &format!("{}{path}", name(flavour)),
            rule.parse().unwrap(),
            state,
        )
    };
    let wrong = [
        rule(Flavour::Query, "/view.php", "parameter lang", State::Active),
        rule(Flavour::Query, "/list/*", "parameter page", State::Active),
    ];
    let off = rule(
        Flavour::Session,
        "/item/*",
        "parameter sort",
        State::Suspended,
    );
    order_rules(folder.path(), &wrong).unwrap();
    order_rules(folder.path(), &[off]).unwrap();
    // They are in the list before a crawl has taken them.
    let listed = rules_of(&server, folder.path(), host_of(&server, Flavour::Query));
    assert_eq!(active(&listed).len(), 2);
    settings.stop.pages = 0;
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    assert!(summary.counters.get(Counter::RecalledUrls) > 0);
    let asked = asked(&server);
    for flavour in [Flavour::Query, Flavour::Session] {
        let host = host_of(&server, flavour);
        let (_, contents) = server.web.variants(host);
        check_contents(&asked[&host].contents, &contents, flavour);
        let active = active(&rules_of(&server, folder.path(), host));
        match flavour {
            // Enough links with `ref` may have been met, or not.
            Flavour::Session => {
                assert!(active.contains("parameter sid") && !active.contains("parameter sort"));
            }
            _ => assert_eq!(active, BTreeSet::new()),
        }
    }
    server.stop().unwrap();
}

/// On a site of a few pages, too, a wrong rule that is switched on by hand is found and nothing is
/// lost.
#[test]
fn issue_27_wrong_rules_of_small_sites_are_suspended() {
    let server = serve(12);
    let host = host_of(&server, Flavour::Query);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = careful(&server);
    settings.scope.reach = arose_crawl::settings::Reach::Host;
    settings.stop.pages = 1;
    let seeds = [home(&server, host)];
    run(folder.path(), settings.clone(), &seeds);
    let origin = server.web.origin(&server.web.hosts()[host as usize].name);
    let site = origin.strip_prefix("http://").unwrap();
    let wrong = [
        ("/view.php", "parameter lang"),
        ("/list/*", "parameter page"),
    ];
    let wrong = wrong.map(|(path, rule)| UrlRule {
        is_removable: true,
        ..UrlRule::new(
            &format!("{site}{path}"),
            rule.parse().unwrap(),
            State::Active,
        )
    });
    order_rules(folder.path(), &wrong).unwrap();
    settings.stop.pages = 0;
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!((summary.end, summary.n_queued), (End::Done, 0));
    let (_, contents) = server.web.variants(host);
    check_contents(&asked(&server)[&host].contents, &contents, Flavour::Query);
    assert_eq!(
        active(&rules_of(&server, folder.path(), host)),
        BTreeSet::new()
    );
    server.stop().unwrap();
}

/// Lines that are not rules are ignored, and the order is removed once taken.
#[test]
fn an_order_that_is_damaged_is_taken_as_far_as_it_goes() {
    let server = serve(20);
    let folder = tempfile::tempdir().unwrap();
    let seeds = [home(&server, 0)];
    let mut settings = careful(&server);
    settings.stop.pages = 30;
    run(folder.path(), settings.clone(), &seeds);
    let good = UrlRule::new("a.test/x", "parameter q".parse().unwrap(), State::Active);
    order_rules(folder.path(), &[good]).unwrap();
    let path = folder.path().join("rules.order");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{{\"scope\":\"b.test\",\"ru\n\u{0}\n")).unwrap();
    settings.stop.pages = 0;
    assert_eq!(run(folder.path(), settings, &seeds).end, End::Done);
    assert!(!path.exists());
    let rules = url_rules(folder.path()).unwrap();
    let is_good = |rule: &&UrlRule| rule.scope == "a.test/x" && rule.state == State::Active;
    assert_eq!(rules.iter().filter(is_good).count(), 1);
    assert!(rules.iter().all(|rule| rule.scope != "b.test"));
    server.stop().unwrap();
}

/// With `audit_all`, all deferred URLs are fetched in the end.
#[test]
fn all_is_audited_on_request() {
    let server = serve(200);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = careful(&server);
    settings.rules.audit_all = true;
    let host = host_of(&server, Flavour::Print);
    let seeds = [home(&server, host)];
    settings.scope.reach = arose_crawl::settings::Reach::Host;
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!((summary.end, summary.n_deferred), (End::Done, 0));
    assert!(summary.counters.get(Counter::Audits) > 10);
    assert_eq!(
        active(&rules_of(&server, folder.path(), host)),
        BTreeSet::from(["word print".to_owned()])
    );
    server.stop().unwrap();
}

/// Deferred URLs are queued again when rules are turned off.
#[test]
fn without_rules_what_was_deferred_comes_back() {
    let server = serve(200);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = careful(&server);
    settings.scope.reach = arose_crawl::settings::Reach::Host;
    let seeds = [home(&server, host_of(&server, Flavour::Print))];
    let summary = run(folder.path(), settings.clone(), &seeds);
    let n_deferred = summary.n_deferred;
    assert!(n_deferred > 10, "{n_deferred}");
    let n_before = server.n_requests();
    settings.rules.on = false;
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!((summary.end, summary.n_deferred), (End::Done, 0));
    assert!(server.n_requests() >= n_before + n_deferred);
    server.stop().unwrap();
}

/// The paths that a crawl of directories requested, with the number of requests.
fn paths(server: &Server) -> (BTreeSet<String>, usize) {
    let log = server.log();
    let answered = log.records.iter().filter(|record| record.status == 200);
    let pages = answered.filter(|record| &*record.target != "/robots.txt");
    let mut n = 0;
    let paths = pages.map(|record| {
        n += 1;
        let path = record.target.split('?').next().unwrap_or_default();
        format!("{}{path}", record.host)
    });
    let paths = paths.collect();
    (paths, n)
}

/// Two documentation sites, as they are and with sessions and campaigns in their links: the same
/// pages are found.
#[test]
fn documentation_with_sessions_loses_nothing() {
    let packages = ["libxslt1-dev", "valgrind"].map(str::to_owned);
    let Ok(folders) = Folder::debian(&packages) else {
        println!("skipped: no documentation of {packages:?}");
        return;
    };
    let found = [false, true].map(|folder_sessions| {
        let server = Server::start(Config {
            folders: folders.clone(),
            folder_sessions,
            pages: PageCount::Fixed(1),
            ..Config::plain(1)
        });
        let server = server.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut settings = careful(&server);
        // As by default: links of copies come last.
        settings.duplicates.links = DuplicateLinks::Last;
        settings.stop.pages = 20_000;
        let seeds = folders
            .iter()
            .map(|folder| server.web.origin(&folder.host) + "/");
        let seeds: Vec<String> = seeds.collect();
        let summary = run(folder.path(), settings, &seeds);
        let found = paths(&server);
        for rule in url_rules(folder.path()).unwrap() {
            println!(
                "{} {}: {:?}, {} same, {} different, {} probes, {} deferred, {} audited",
                rule.scope,
                rule.rule,
                rule.state,
                rule.n_same,
                rule.n_different,
                rule.n_probes,
                rule.n_deferred,
                rule.n_audited
            );
        }
        println!(
            "{} paths, {} requests, {} deferred, {:?}, {:?}",
            found.0.len(),
            found.1,
            summary.n_deferred,
            summary.end,
            active(&url_rules(folder.path()).unwrap())
        );
        server.stop().unwrap();
        found
    });
    let [(paths, n), (with_sessions, n_with_sessions)] = found;
    let lost: Vec<&String> = paths.difference(&with_sessions).collect();
    assert_eq!(lost, [""; 0]);
    // Many templates of few pages with many links each: most requests are probes and audits.
    assert!(n_with_sessions <= 6 * n, "{n_with_sessions} for {n}");
}

const FOLDER: &str = "AROSE_RULES_FOLDER";
const DNS: &str = "AROSE_RULES_DNS";
const SEED: &str = "AROSE_RULES_SEED";
const COMPACT: &str = "AROSE_RULES_COMPACT";
const N_KILLS: u64 = 12;

/// The code of the child; without a directory in the environment there is nothing to do.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let value = |name| std::env::var(name).unwrap();
    let mut settings = Settings::default();
    settings.scope.reach = arose_crawl::settings::Reach::Web;
    settings.network.allow_private = true;
    settings.network.dns_servers = vec![value(DNS).parse().unwrap()];
    settings.polite.delay = 0.002;
    settings.polite.address_delay = 0.002;
    settings.polite.factor = 0.0;
    settings.duplicates.links = DuplicateLinks::Never;
    settings.duplicates.stale_after = 0;
    settings.scope.sitemaps = false;
    settings.archive.commit = 0.01;
    settings.archive.compact = value(COMPACT).parse().unwrap();
    // Most hosts are on the disk.
    settings.machine.hosts_in_memory = 4;
    run(Path::new(&folder), settings, &[value(SEED)]);
}

fn start(folder: &Path, server: &Server, compact: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["rules::child", "--exact"])
        .env(FOLDER, folder)
        .env(DNS, server.dns.to_string())
        .env(SEED, home(server, 0))
        .env(COMPACT, compact.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A crawl is killed again and again, every second time while its journal is rewritten all the
/// time. Active rules stay active, deferred URLs stay deferred, and nothing is lost in the end.
#[test]
fn rules_and_deferred_urls_survive_kills() {
    let server = serve(100);
    let folder = tempfile::tempdir().unwrap();
    let mut before: BTreeSet<String> = BTreeSet::new();
    let mut n_most = 0;
    for n in 1..=N_KILLS {
        let compact = if n % 2 == 0 { 4000 } else { 1 << 26 };
        let mut child = start(folder.path(), &server, compact);
        let n_requests = server.n_requests() + 180;
        while server.n_requests() < n_requests && child.try_wait().unwrap().is_none() {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let rules = url_rules(folder.path()).unwrap();
        let names = |state| {
            let rules = rules.iter().filter(move |rule| rule.state == state);
            let names = rules.map(|rule| format!("{} {}", rule.scope, rule.rule));
            names.collect::<BTreeSet<_>>()
        };
        let now = names(State::Active);
        let gone: Vec<&String> = before.difference(&now).collect();
        let suspended = names(State::Suspended);
        assert!(
            gone.iter().all(|&name| suspended.contains(name)),
            "{gone:?}"
        );
        before = now;
        let status = status(folder.path()).unwrap();
        let counter = |counter| status.counters.get(counter);
        let n_deferred = counter(Counter::DeferredUrls) - counter(Counter::RecalledUrls);
        assert_eq!(status.n_deferred, n_deferred);
        n_most = n_most.max(n_deferred);
    }
    assert!(before.len() >= 3 && n_most > 20, "{before:?} {n_most}");
    assert!(
        start(folder.path(), &server, 4000)
            .wait()
            .unwrap()
            .success()
    );
    let asked = asked(&server);
    for flavour in Flavour::ALL {
        let host = host_of(&server, flavour);
        let (selections, contents) = server.web.variants(host);
        let n = asked[&host].n;
        println!("{flavour:?}: {n} requests for {}", selections.len());
        check_contents(&asked[&host].contents, &contents, flavour);
    }
    assert_eq!(status(folder.path()).unwrap().n_queued, 0);
    server.stop().unwrap();
}
