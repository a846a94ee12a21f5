//! Crawls that look for a topic, over HTTP: what comes first, what survives a kill, and scorers
//! that misbehave.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use arose_crawl::counters::Counter;
use arose_crawl::settings::ScorerKind;
use arose_crawl::{Control, End, Seeds, Settings, Summary, archives, crawl, status};
use testweb::{Config, Kind, PageCount, PageId, Server, topic_words};

use crate::web::{fetched, home, reachable, run};

const TOPIC: u32 = 3;

fn web(n_hosts: u32, n_pages: u32) -> Server {
    let config = Config {
        kinds: vec![(Kind::Topic, 1)],
        pages: PageCount::Fixed(n_pages),
        ..Config::plain(1 + n_hosts)
    };
    Server::start(config).unwrap()
}

/// One request at a time, so that the order is the crawler's.
fn settings(server: &Server) -> Settings {
    let mut settings = crate::web::settings(server);
    settings.budget.pages = 10_000;
    settings.scope.sitemaps = false;
    settings.focus.scorer = ScorerKind::Keywords;
    settings.focus.keywords = topic_words(TOPIC)[..8].to_vec();
    settings
}

/// The pages that were asked for, in order.
fn order(server: &Server) -> Vec<PageId> {
    let log = server.log();
    let records = log.records.iter().filter(|record| record.status == 200);
    let page = |host: &str, target: &str| match server.web.target(host, target) {
        testweb::Target::Page(id) => Some(id),
        _ => None,
    };
    records
        .filter_map(|record| page(&record.host, &record.target))
        .collect()
}

fn n_on_topic(server: &Server, pages: &[PageId]) -> usize {
    let is_on = |id: &&PageId| server.web.topic(**id) == Some(TOPIC);
    pages.iter().filter(is_on).count()
}

/// What a crawl gets that knows which of the pages it has links to are on the topic.
fn oracle(server: &Server, n_seeds: u32, n: usize) -> usize {
    let hosts = 1..=n_seeds;
    let mut waiting: Vec<PageId> = hosts.map(|host| PageId { host, page: 0 }).collect();
    let mut known: BTreeSet<PageId> = waiting.iter().copied().collect();
    let mut pages = Vec::new();
    while pages.len() < n && !waiting.is_empty() {
        let is_on = |id: &PageId| server.web.topic(*id) == Some(TOPIC);
        let next = waiting.iter().position(is_on).unwrap_or(0);
        let page = waiting.remove(next);
        pages.push(page);
        let links = server.web.topic_links(page);
        waiting.extend(links.into_iter().filter(|&link| known.insert(link)));
    }
    n_on_topic(server, &pages)
}

/// Nine of ten pages that an oracle gets, within 30% of the fetches; the others come later, each
/// once. The archive has the scores.
#[test]
fn issue_27_a_topic_comes_first() {
    let server = web(4, 300);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.fetch.in_flight = 2;
    let seeds = [1, 2, 3, 4].map(|host| home(&server, host));
    let summary = run(folder.path(), settings, &seeds);
    assert_eq!(summary.end, End::Done);
    let pages = order(&server);
    let expected = reachable(&server, &seeds, None);
    assert_eq!((pages.len(), expected.len()), (1200, 1200));
    assert_eq!(pages.iter().copied().collect::<BTreeSet<_>>(), expected);
    let n = pages.len() * 3 / 10;
    let (found, best) = (n_on_topic(&server, &pages[..n]), oracle(&server, 4, n));
    println!("{found} on topic among the first {n}, an oracle has {best}");
    assert!(10 * found >= 9 * best && best > 100, "{found} {best}");
    let counters = &summary.counters;
    assert_eq!(counters.get(Counter::Scored), 1200);
    let n_fitting = counters.get(Counter::OnTopic) as usize;
    let n_true = n_on_topic(&server, &pages);
    assert!(
        n_fitting.abs_diff(n_true) <= n_true / 20,
        "{n_fitting} {n_true}"
    );
    let scores = scores(folder.path());
    assert_eq!(scores.len(), 1200);
    for (url, (score, predicted)) in &scores {
        let (host, target) = server.web.split_url(url).unwrap();
        let id = server.web.page_at(host, target).unwrap();
        let is_on = server.web.topic(id) == Some(TOPIC);
        assert!(
            is_on == (*score >= 0.5) || (score - 0.5).abs() < 0.3,
            "{url} {score}"
        );
        // Nobody predicts seeds, unless pages link to them.
        assert!(predicted.is_some() || seeds.contains(url), "{url}");
    }
    let topic = status(folder.path()).unwrap().topic.unwrap();
    assert_eq!((topic.n_pages, topic.harvest.len()), (1200, 1));
    let is_of_topic = |(word, _): &(String, f32)| topic_words(TOPIC).contains(word);
    // Pages come in another order each time, and so do words. The page model knows those of the
    // topic from the start, so the link model learns more of others.
    let n_of_topic =
        |words: &[(String, f32)]| words.iter().filter(|word| is_of_topic(word)).count();
    let (n_best, n_worst) = (
        n_of_topic(&topic.best_words),
        n_of_topic(&topic.worst_words),
    );
    assert!(n_best >= 2 && n_best > n_worst, "{topic:?}");
    server.stop().unwrap();
}

/// One seed is as good as four: that only one site has a seed does not hold the others back.
#[test]
fn issue_27_a_topic_comes_first_from_one_seed() {
    let server = web(4, 300);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.fetch.in_flight = 2;
    settings.budget.pages = Settings::default().budget.pages;
    run(folder.path(), settings, &[home(&server, 1)]);
    let pages = order(&server);
    assert_eq!(pages.len(), 1200);
    let n = pages.len() * 3 / 10;
    let (found, best) = (n_on_topic(&server, &pages[..n]), oracle(&server, 1, n));
    println!("{found} on topic among the first {n}, an oracle has {best}");
    assert!(10 * found >= 9 * best && best > 100, "{found} {best}");
    server.stop().unwrap();
}

/// The scores that the archive has, by URL: of the page, and predicted.
fn scores(folder: &Path) -> BTreeMap<String, (f32, Option<f32>)> {
    let mut scores = BTreeMap::new();
    for archive in archives(folder).unwrap() {
        let file = std::fs::File::open(archive).unwrap();
        let mut bytes = Vec::new();
        flate2::read::MultiGzDecoder::new(file)
            .read_to_end(&mut bytes)
            .unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for record in text.split("WARC-Type: metadata\r\n").skip(1) {
            let field = |name: &str| {
                let value = record.split(&format!("{name}: ")).nth(1)?;
                value.split("\r\n").next().map(str::to_owned)
            };
            let head = record.split("WARC/1.1").next().unwrap();
            let predicted = head
                .split("focus-predicted: ")
                .nth(1)
                .map(|value| value.split("\r\n").next().unwrap().parse().unwrap());
            let url = field("WARC-Target-URI").unwrap();
            let score = field("focus-score").unwrap().parse().unwrap();
            assert_eq!(scores.insert(url, (score, predicted)), None);
        }
    }
    scores
}

/// Without a topic there is nothing of one: no file, no setting, no record.
#[test]
fn issue_27_without_a_topic_nothing_changes() {
    let server = web(1, 40);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.focus = Default::default();
    run(folder.path(), settings.clone(), &[home(&server, 1)]);
    let names: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        !names.iter().any(|name| name.contains("focus")),
        "{names:?}"
    );
    let kept = std::fs::read_to_string(folder.path().join("settings.toml")).unwrap();
    assert!(!kept.contains("focus"), "{kept}");
    assert!(scores(folder.path()).is_empty());
    assert_eq!(status(folder.path()).unwrap().topic, None);
    // What waits would mean something else.
    settings.focus = self::settings(&server).focus;
    let refused = crawl(
        folder.path(),
        settings,
        Seeds::default(),
        &Control::default(),
    );
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("was started without a topic"), "{message}");
    server.stop().unwrap();
}

/// Links of pages off the topic are not followed, except those of seeds.
#[test]
fn issue_27_a_hard_focus_stays_on_the_topic() {
    let server = web(2, 200);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    settings.focus.hard = true;
    let seed = PageId { host: 1, page: 0 };
    let summary = run(folder.path(), settings, &[home(&server, 1)]);
    let scores = scores(folder.path());
    let mut allowed = BTreeSet::from([seed]);
    let pages = order(&server);
    for id in &pages {
        let (score, _) = scores[&server.web.url(*id)];
        if score >= 0.5 || *id == seed {
            allowed.extend(server.web.topic_links(*id));
        }
    }
    assert_eq!(pages.iter().copied().collect::<BTreeSet<_>>(), allowed);
    assert!(pages.len() < 400, "{}", pages.len());
    let counters = &summary.counters;
    assert!(counters.get(Counter::OffTopic) > 20 && counters.balance() == 0);
    server.stop().unwrap();
}

const FOLDER: &str = "AROSE_FOCUS_FOLDER";
const DNS: &str = "AROSE_FOCUS_DNS";
const SEED: &str = "AROSE_FOCUS_SEED";

/// What the child does; without a folder in the environment there is nothing to do.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let value = |name| std::env::var(name).unwrap();
    run(
        Path::new(&folder),
        careful(value(DNS).parse().unwrap()),
        &[value(SEED)],
    );
}

fn careful(dns: std::net::SocketAddr) -> Settings {
    let mut settings = Settings::default();
    settings.scope.reach = arose_crawl::settings::Reach::Web;
    settings.network.allow_private = true;
    settings.network.dns_servers = vec![dns];
    settings.polite.delay = 0.002;
    settings.polite.address_delay = 0.002;
    settings.polite.factor = 0.0;
    settings.duplicates.stale_after = 0;
    settings.budget.pages = 10_000;
    settings.archive.commit = 0.01;
    settings.scope.sitemaps = false;
    settings.focus.scorer = ScorerKind::Keywords;
    settings.focus.keywords = topic_words(TOPIC)[..8].to_vec();
    settings
}

/// Killed ten times, the crawl loses nothing, counts each page once, and stays with its topic.
#[test]
fn issue_27_a_killed_crawl_keeps_its_topic() {
    let server = web(3, 250);
    let folder = tempfile::tempdir().unwrap();
    let seeds = [home(&server, 1)];
    for n_kills in 1..=10 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["focus::child", "--exact"])
            .env(FOLDER, folder.path())
            .env(DNS, server.dns.to_string())
            .env(SEED, &seeds[0])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while order(&server).len() < 15 * n_kills && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let before = order(&server).len();
    let summary = run(folder.path(), careful(server.dns), &seeds);
    assert_eq!(summary.end, End::Done);
    let pages = order(&server);
    let expected = reachable(&server, &seeds, None);
    assert_eq!(pages.iter().copied().collect::<BTreeSet<_>>(), expected);
    // A page that was under way at a kill is fetched again.
    assert!(pages.len() < expected.len() + 300, "{}", pages.len());
    assert_eq!(summary.counters.get(Counter::Scored), expected.len() as u64);
    assert_eq!(scores(folder.path()).len(), expected.len());
    let next = &pages[before..before + 40];
    let found = n_on_topic(&server, next);
    let n_left = n_on_topic(&server, &pages[before..]);
    println!("{found} of 40 pages after the last kill are on topic, {n_left} were left");
    assert!(found >= 24.min(n_left * 6 / 10), "{found} {n_left}");
    server.stop().unwrap();
}

/// A program that reads lines, counts them as `n`, and does this with each.
fn program(settings: &mut Settings, each: &str) {
    let word = &topic_words(TOPIC)[0][..6];
    let good = format!("case \"$line\" in *{word}*) s=0.9;; *) s=0.1;; esac");
    let script = format!("n=0; while read -r line; do n=$((n+1)); {good}; {each}; done");
    settings.focus.scorer = ScorerKind::Command;
    settings.focus.command = ["sh", "-c", &script].map(str::to_owned).to_vec();
    settings.focus.timeout = 0.5;
    settings.focus.patience = 0.3;
    settings.fetch.in_flight = 2;
}

/// Crawls with a program as scorer: all pages are fetched, whatever it does.
fn crawl_with(
    each: &str,
    change: impl Fn(&mut Settings),
) -> (Summary, Duration, PathBuf, tempfile::TempDir) {
    let server = web(2, 40);
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings(&server);
    program(&mut settings, each);
    change(&mut settings);
    let seeds = [home(&server, 1)];
    let start = Instant::now();
    let summary = run(folder.path(), settings, &seeds);
    let took = start.elapsed();
    assert_eq!(summary.end, End::Done, "{each}");
    let fetched: BTreeSet<PageId> = fetched(&server).into_keys().collect();
    assert_eq!(fetched, reachable(&server, &seeds, None), "{each}");
    assert_eq!(
        (fetched.len(), summary.counters.balance()),
        (80, 0),
        "{each}"
    );
    server.stop().unwrap();
    let path = folder.path().to_owned();
    (summary, took, path, folder)
}

/// Waits for every score, however busy the machine is.
fn patient(settings: &mut Settings) {
    settings.focus.timeout = 60.0;
    settings.focus.patience = 60.0;
}

#[test]
fn issue_27_a_program_scores() {
    let (summary, _, path, _folder) = crawl_with("echo $s", patient);
    let get = |counter| summary.counters.get(counter);
    assert_eq!((get(Counter::Scored), get(Counter::Unscored)), (80, 0));
    assert_eq!(
        (get(Counter::ScorerFailures), get(Counter::BadScores)),
        (0, 0)
    );
    assert_eq!(scores(&path).len(), 80);
    // A ninth of the pages, and links with such words.
    assert!(get(Counter::OnTopic) >= 8, "{}", get(Counter::OnTopic));
    let named = "echo \"{\\\"id\\\": $n, \\\"score\\\": $s}\"";
    let (summary, ..) = crawl_with(named, patient);
    assert_eq!(summary.counters.get(Counter::Scored), 80);
}

/// Scores that come late count as 0.5 first, and are taken in when they come.
#[test]
fn issue_27_late_scores_are_corrected() {
    let (summary, took, path, _folder) = crawl_with("sleep 0.02; echo $s", |settings| {
        settings.focus.patience = 0.001;
        settings.focus.timeout = 20.0;
    });
    let get = |counter| summary.counters.get(counter);
    assert!(
        get(Counter::LateScores) > 20,
        "{}",
        get(Counter::LateScores)
    );
    // Those that were under way when nothing else was left were waited for.
    assert_eq!((get(Counter::Scored), get(Counter::Unscored)), (80, 0));
    assert_eq!(scores(&path).len(), 80);
    assert!(took < Duration::from_secs(60), "{took:?}");
}

/// Dying, hanging, nonsense and answers out of order: counted, and the crawl goes on.
#[test]
fn issue_27_programs_that_misbehave() {
    let nothing = |_: &mut Settings| ();
    let failures = |summary: &Summary| summary.counters.get(Counter::ScorerFailures);
    // Dies at every tenth page, which has no score.
    let (summary, took, ..) = crawl_with("[ $n = 10 ] && exit 1; echo $s", patient);
    assert!(
        failures(&summary) >= 3 && took < Duration::from_secs(60),
        "{took:?}"
    );
    assert!(summary.counters.get(Counter::Scored) > 40);
    // Dies at once.
    let (summary, took, ..) = crawl_with("exit 3", nothing);
    assert!(
        failures(&summary) >= 3 && took < Duration::from_secs(60),
        "{took:?}"
    );
    assert_eq!(summary.counters.get(Counter::Scored), 0);
    // Hangs at the first page, also after a restart.
    let (summary, took, ..) = crawl_with("sleep 1000", nothing);
    assert!(
        failures(&summary) >= 1 && took < Duration::from_secs(60),
        "{took:?}"
    );
    assert_eq!(summary.counters.get(Counter::Scored), 0);
    // No numbers, or absurd ones.
    let each = "case $((n % 4)) in 0) echo NaN;; 1) echo 7;; 2) echo '[]';; 3) echo $s;; esac";
    let (summary, ..) = crawl_with(each, patient);
    let get = |counter| summary.counters.get(counter);
    assert_eq!((get(Counter::BadScores), get(Counter::Scored)), (60, 20));
    assert_eq!((get(Counter::Unscored), failures(&summary)), (60, 0));
    // Out of order, and more answers than questions.
    let (summary, took, ..) = crawl_with("echo '{\"id\": 99999, \"score\": 1}'", nothing);
    assert!(
        failures(&summary) >= 1 && took < Duration::from_secs(60),
        "{took:?}"
    );
    assert_eq!(summary.counters.get(Counter::Scored), 0);
    let (summary, took, ..) = crawl_with("echo $s; echo $s", nothing);
    assert!(
        failures(&summary) >= 1 && took < Duration::from_secs(60),
        "{took:?}"
    );
    // A line without end.
    let (summary, ..) = crawl_with(
        "while :; do printf xxxxxxxxxxxxxxxxxxxxxxxxxxx; done",
        nothing,
    );
    assert!(failures(&summary) >= 1);
}

/// What is wrong with a topic is said before anything is written.
#[test]
fn issue_27_bad_topics_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let model = "arose-linear 1\nbits 18\nbias -1\nweights 2\nword violin 4\nword bond -2.5\nend\n";
    let check = |change: &dyn Fn(&mut arose_crawl::settings::FocusSettings), expected: &str| {
        let output = folder.path().join("crawl");
        let mut settings = Settings::default();
        settings.network.allow_private = true;
        settings.network.dns_servers = vec!["127.0.0.1:53".parse().unwrap()];
        change(&mut settings.focus);
        let seeds = Seeds {
            pages: vec!["http://127.0.0.1:1/".to_owned()],
            sitemaps: Vec::new(),
        };
        let error = crawl(&output, settings, seeds, &Control::default()).unwrap_err();
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        assert!(message.contains(expected), "{message}");
        assert!(!output.exists(), "{expected}");
    };
    for cut in [0, 20, 60, model.len() - 2] {
        let path = file("cut.model", &model[..cut]);
        check(
            &|focus| (focus.scorer, focus.model) = (ScorerKind::Linear, path.clone()),
            "focus.model",
        );
    }
    let missing = folder.path().join("missing");
    check(
        &|focus| (focus.scorer, focus.model) = (ScorerKind::Linear, missing.clone()),
        "missing",
    );
    check(
        &|focus| focus.scorer = ScorerKind::Keywords,
        "focus.keywords is empty",
    );
    check(&|focus| focus.scorer = ScorerKind::Examples, "focus.liked");
    let one = file("one.txt", "a violin");
    check(
        &|focus| {
            focus.scorer = ScorerKind::Examples;
            (focus.liked, focus.disliked) = (vec![one.clone()], vec![missing.clone()]);
        },
        "missing",
    );
    let list = file("urls.list", "https://example.org/\n");
    check(
        &|focus| {
            focus.scorer = ScorerKind::Examples;
            (focus.liked, focus.disliked) = (vec![list.clone()], vec![one.clone()]);
        },
        "examples are not fetched",
    );
    check(
        &|focus| {
            focus.scorer = ScorerKind::Command;
            focus.command = vec!["/no/such/program".to_owned()];
        },
        "cannot be started",
    );
    check(&|focus| focus.explore = f64::NAN, "focus.explore");
    check(&|focus| focus.timeout = 0.0, "focus.timeout");
}

/// Directories and lists of example pages, and a model file, judge as they should.
#[test]
fn issue_27_examples_and_models() {
    let server = web(2, 120);
    let folder = tempfile::tempdir().unwrap();
    let page = |id: PageId| {
        let request = testweb::Request {
            host: &server.web.hosts()[1].name,
            target: &server.web.path(id),
            ..testweb::Request::default()
        };
        server
            .web
            .answer(&request, &testweb::Moment::default(), Vec::new())
            .body
    };
    let [liked, disliked] = ["liked", "disliked"].map(|name| folder.path().join(name));
    std::fs::create_dir(&liked).unwrap();
    std::fs::create_dir(&disliked).unwrap();
    for n in 0..90 {
        let id = PageId { host: 1, page: n };
        let is_on = server.web.topic(id) == Some(TOPIC);
        let path = if is_on { &liked } else { &disliked };
        std::fs::write(path.join(format!("{n}.html")), page(id)).unwrap();
    }
    let names = std::fs::read_dir(&disliked).unwrap();
    let names: Vec<String> = names
        .map(|entry| format!("disliked/{}\n", entry.unwrap().file_name().display()))
        .collect();
    let list = folder.path().join("disliked.list");
    std::fs::write(&list, names.concat()).unwrap();
    let words: String = topic_words(TOPIC)
        .iter()
        .map(|word| format!("word {word} 9\n"))
        .collect();
    let model = format!("arose-linear 1\nbits 18\nbias -2\nweights 16\n{words}end\n");
    std::fs::write(folder.path().join("model"), model).unwrap();
    for scorer in ["examples", "linear"] {
        let topic = folder.path().join("topic.toml");
        let text = format!(
            "scorer = \"{scorer}\"\nliked = [\"liked\"]\ndisliked = [\"disliked.list\"]\nmodel = \"model\"\n"
        );
        std::fs::write(&topic, text).unwrap();
        let mut settings = settings(&server);
        settings.focus = arose_crawl::settings::FocusSettings::read(&topic).unwrap();
        let output = folder.path().join(scorer);
        let summary = run(&output, settings, &[home(&server, 1)]);
        assert_eq!(summary.counters.get(Counter::Scored), 240);
        let is_wrong = |(url, (score, _)): &(String, (f32, Option<f32>))| {
            let (host, target) = server.web.split_url(url).unwrap();
            let id = server.web.page_at(host, target).unwrap();
            (server.web.topic(id) == Some(TOPIC)) != (*score >= 0.5)
        };
        let n_wrong = scores(&output).into_iter().filter(is_wrong).count();
        assert!(n_wrong <= 5, "{scorer}: {n_wrong} of 240");
    }
    server.stop().unwrap();
}
