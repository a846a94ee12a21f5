use super::*;

#[test]
fn the_sequential_test_has_the_numbers_of_the_specification() {
    let test = Sequential::default();
    assert!((test.same - 0.2181).abs() < 5e-5 && (test.different + 3.6889).abs() < 5e-5);
    assert!((Sequential::ACCEPT - 4.5539).abs() < 5e-5);
    assert!((Sequential::REJECT + 2.9857).abs() < 5e-5);
    assert!((Sequential::KNOWN - 2.28).abs() < 5e-3);
    let in_a_row = |test: Sequential, start: f64| {
        let enough = |n: &u32| start + f64::from(*n) * test.same >= Sequential::ACCEPT;
        (1..1000).find(enough).unwrap()
    };
    assert_eq!(in_a_row(test, 0.0), 21);
    assert_eq!(in_a_row(test, Sequential::KNOWN), 11);
    assert_eq!(in_a_row(Sequential::new(0.95, 0.999), 0.0), 91);
    assert_eq!(Sequential::outcome(test.different), Outcome::Rejected);
    assert!((lower_bound(20) - 0.861).abs() < 5e-4);
    assert!((lower_bound(59) - 0.9505).abs() < 5e-5);
}

#[track_caller]
fn check(rule: &str, url: &str, expected: Option<&str>) {
    let rule: PartRule = rule.parse().unwrap();
    assert_eq!(rule.apply(url).as_deref(), expected);
    if let Some(expected) = expected {
        assert!(PartRule::candidates(url).contains(&rule), "{rule}");
        assert!(expected.len() < url.len());
    }
}

#[test]
fn rules_remove_one_part() {
    check("parameter sid", "http://a.b/c?sid=1", Some("http://a.b/c"));
    check(
        "parameter sid",
        "http://a.b/c?x=2&sid=1&y=3",
        Some("http://a.b/c?x=2&y=3"),
    );
    check(
        "parameter sid",
        "http://a.b/c?sid=1&sid=2",
        Some("http://a.b/c"),
    );
    check("parameter sid", "http://a.b/c?sid", None);
    check("parameter sid", "http://a.b/c?xsid=1", None);
    check(
        "path-parameter jsessionid",
        "http://a.b/c;jsessionid=AB1/d;x=1",
        Some("http://a.b/c/d;x=1"),
    );
    check(
        "path-parameter jsessionid",
        "http://a.b/..;jsessionid=AB1/d",
        None,
    );
    check(
        "segment S- 13 mixed",
        "http://a.b/S-fXyiE5bZS43/c.html",
        Some("http://a.b/c.html"),
    );
    check("segment S- 13 mixed", "http://a.b/S-fXyiE5bZS43", None);
    check(
        "segment * 8 hex",
        "http://a.b/12ab34ef/c",
        Some("http://a.b/c"),
    );
    check(
        "index index.html",
        "http://a.b/c/index.html?x=1",
        Some("http://a.b/c/?x=1"),
    );
    check("index index.html", "http://a.b/c/myindex.html", None);
    check("word print", "http://a.b/print/c", Some("http://a.b/c"));
    check("word print", "http://a.b/c/print", Some("http://a.b/c"));
    check("slash", "http://a.b/c/", Some("http://a.b/c"));
    check("slash", "http://a.b/", None);
    check("www", "http://www.a.b/", Some("http://a.b/"));
    check("www", "http://www.b/", None);
    check("https", "https://a.b/c", Some("http://a.b/c"));
    check("https", "http://a.b/c", None);
}

#[test]
fn rules_are_written_and_read_back() {
    for text in [
        "parameter sid",
        "path-parameter jsessionid",
        "segment S- 13 mixed",
        "segment * 32 hex",
        "index index.html",
        "word print",
        "slash",
        "www",
        "https",
    ] {
        assert_eq!(text.parse::<PartRule>().unwrap().to_string(), text);
    }
    for bad in [
        "",
        "parameter",
        "parameter a b",
        "slash x",
        "segment S- 3 hex",
        "drop a",
        "index ../x",
    ] {
        assert!(bad.parse::<PartRule>().is_err(), "{bad}");
    }
}

#[test]
fn templates_star_what_varies() {
    for (url, template) in [
        ("http://www.a.b/item/17?x=1", "a.b/item/*"),
        ("https://a.b/news/2024/some-title.html", "a.b/news/*/*"),
        ("http://a.b:8080/view.php?id=3", "a.b:8080/view.php"),
        ("http://a.b/", "a.b/*"),
        ("http://a.b/c;jsessionid=1/d", "a.b/c/*"),
    ] {
        assert_eq!(rule::Parts::of(url).unwrap().template(), template);
    }
}

/// Fetches pages, and sends probes immediately.
fn feed(learner: &mut Learner, url: &str, content: &dyn Fn(&str) -> Option<u64>) -> usize {
    let mut queue = vec![url.to_owned()];
    let mut n = 0;
    while let Some(url) = queue.pop() {
        n += 1;
        queue.extend(learner.fetched(&url, content(&url)));
    }
    n
}

fn learner_without_prior() -> Learner {
    Learner::new(Config {
        has_prior: false,
        ..Config::default()
    })
}

/// Nothing is learned from a site that responds to every request with one page, or with the same
/// few.
#[test]
fn soft_404_teaches_nothing() {
    for n_contents in [1, 4] {
        let mut learner = learner_without_prior();
        for n in 0..300_u64 {
            let url = format!("http://a.b/page/{n}?sid={:x}&p={}", 91 * n, n % 3);
            feed(&mut learner, &url, &|_| Some(n % n_contents));
        }
        assert!(
            learner.rules().all(|rule| rule.state != State::Active),
            "{n_contents}"
        );
        assert!(learner.take_events().is_empty());
    }
}

/// Errors are not evidence, and probes that only give errors end.
#[test]
fn errors_do_not_count() {
    let mut learner = learner_without_prior();
    let content = |url: &str| url.split_once("id=").map(|(_, id)| id.parse().unwrap());
    let mut n_requests = 0;
    for n in 0..300 {
        n_requests += feed(
            &mut learner,
            &format!("http://a.b/view.php?id={n}"),
            &content,
        );
    }
    assert!(n_requests <= 310, "{n_requests}");
    assert!(learner.rules().all(|rule| rule.state != State::Active));
}

/// A site without parameters costs no additional request.
#[test]
fn no_probes_without_parameters() {
    let mut learner = Learner::new(Config::default());
    let mut n_requests = 0;
    for n in 0..500 {
        let url = format!("https://www.a.b/dir{}/page-{n}/", n % 7);
        n_requests += feed(&mut learner, &url, &|_| Some(n));
    }
    assert_eq!(n_requests, 500);
}

/// Session IDs of every kind, and equivalent forms, are found; parts that select the page are not.
#[test]
fn rules_of_every_kind() {
    let mut learner = learner_without_prior();
    let hex = |n: u64| format!("{:016x}", crate::mix::mix(n));
    for n in 0..400_u64 {
        let item = n % 60;
        let crumb = format!("S-{}aZ1", &hex(n)[..8]);
        let page = Some(item);
        for url in [
            format!("http://a.b/p/{item};jsessionid={}", hex(n)),
            format!("http://c.d/{crumb}/p/{item}"),
            format!(
                "http://e.f/p{item}/{}",
                if n < 60 { "" } else { "index.html" }
            ),
            format!("http://{}g.h/p/{item}", if n < 60 { "" } else { "www." }),
            format!("{}://i.j/p/{item}", if n < 60 { "http" } else { "https" }),
            format!("http://k.l/{}p/{item}", if n < 60 { "" } else { "print/" }),
        ] {
            feed(&mut learner, &url, &|_| page);
        }
        let id = n;
        let content = |url: &str| {
            let is_german = url.contains("lang=de");
            url.contains("id=")
                .then_some(2 * id + u64::from(is_german) + 10_000)
        };
        let lang = ["de", "en"][n as usize / 2 % 2];
        feed(
            &mut learner,
            &format!("http://m.n/view.php?id={id}&lang={lang}"),
            &content,
        );
    }
    let active = |learner: &Learner| {
        let active = learner.rules().filter(|rule| rule.state == State::Active);
        let mut active: Vec<String> = active
            .map(|rule| format!("{} {}", rule.scope, rule.rule))
            .collect();
        active.sort();
        active
    };
    assert_eq!(
        active(&learner),
        [
            "a.b path-parameter jsessionid",
            "c.d segment S- 13 mixed",
            "e.f index index.html",
            "g.h www",
            "i.j https",
            "k.l word print",
        ]
    );
    // Canonical forms are fixed points.
    for url in [
        "https://i.j/p/3",
        "http://www.g.h/p/3",
        "http://c.d/S-12345678aZ1/p/3",
    ] {
        let canonical = learner.canonical(url).unwrap();
        assert_eq!(learner.canonical(&canonical.url), None, "{}", canonical.url);
    }
}

fn standing(scope: &str, rule: &str) -> Standing {
    Standing {
        scope: scope.to_owned(),
        rule: rule.parse().unwrap(),
        state: State::Active,
        n_same: 0,
        n_different: 0,
        n_contents: 0,
        n_probes: 0,
        n_deferred: 0,
        n_audited: 0,
        is_removable: true,
    }
}

/// A failed audit suspends the wrong rule and keeps the other.
#[test]
fn only_the_guilty_rule_is_suspended() {
    for first in ["sid", "lang"] {
        let mut learner = learner_without_prior();
        let second = if first == "sid" { "lang" } else { "sid" };
        for name in [first, second] {
            learner.set(&standing("a.b/p/*", &format!("parameter {name}")));
        }
        learner.take_events();
        let content = |url: &str| {
            let page = url
                .split(['/', '?'])
                .nth(4)
                .unwrap()
                .parse::<u64>()
                .unwrap();
            Some(2 * page + u64::from(url.contains("lang=de")))
        };
        let mut n_deferred = 0;
        for n in 0..2000 {
            let url = format!("http://a.b/p/{}?sid={n}&lang=de", n % 50);
            let Treatment::Same(canonical) = learner.place(&url) else {
                break;
            };
            if canonical.rules.len() < 2 {
                break;
            }
            feed(&mut learner, &canonical.url, &content);
            n_deferred += 1;
            if learner.defer(&url, &canonical) {
                feed(&mut learner, &url, &content);
            }
        }
        let lang = learner
            .rules()
            .position(|one| one.rule.to_string() == "parameter lang");
        let lang = lang.unwrap() as RuleId;
        assert_eq!(
            learner.take_events(),
            [Event::Suspended(lang)],
            "{n_deferred}"
        );
        assert!(n_deferred < 200, "{n_deferred}");
        let canonical = learner.canonical("http://a.b/p/1?sid=7&lang=de").unwrap();
        assert_eq!(canonical.url, "http://a.b/p/1?lang=de");
    }
}

/// Whatever rules are read from a file, canonical forms are reached and do not change.
#[test]
fn no_rules_loop() {
    let mut learner = Learner::new(Config::default());
    for rule in [
        "parameter a",
        "parameter b",
        "slash",
        "index index.html",
        "https",
        "www",
        "word print",
        "segment * 8 hex",
    ] {
        for scope in ["x.y", "x.y/*", "x.y/print/*", "x.y/*/*"] {
            learner.set(&standing(scope, rule));
        }
    }
    let segments = ["print", "12ab34ef", "index.html", "p", ""];
    for a in segments {
        for b in segments {
            for c in segments {
                let url = format!("https://www.x.y/{a}/{b}/{c}?a=1&b=2&c=3");
                let canonical = learner.canonical(&url).unwrap();
                assert!(canonical.url.len() < url.len());
                assert_eq!(
                    learner.canonical(&canonical.url),
                    None,
                    "{url} {}",
                    canonical.url
                );
            }
        }
    }
}

/// Memory is bounded for any URLs.
#[test]
fn many_templates() {
    let mut learner = Learner::new(Config {
        max_hypotheses: 1000,
        max_contents: 1000,
        ..Config::default()
    });
    for n in 0..20_000 {
        feed(
            &mut learner,
            &format!("http://h{n}.x/a/b{n}?p{n}=1&q=2"),
            &|_| Some(n),
        );
    }
    assert!(learner.rules().count() <= 1000);
    assert!(learner.n_ignored() > 10_000);
}

/// Requests under way in one learner are resumed in another: a deferred URL is audited, and a
/// failed audit finds the wrong rule.
#[test]
fn errands_are_resumed() {
    let sid = standing("a.b/p/*", "parameter sid");
    let lang = standing("a.b/p/*", "parameter lang");
    let active = || {
        let mut learner = learner_without_prior();
        learner.set(&sid);
        learner.set(&lang);
        learner.take_events();
        learner
    };
    let content = |url: &str| Some(u64::from(url.contains("lang=de")));
    let url = "http://a.b/p/1?sid=7&lang=de";
    // The learner is lost after each number of requests.
    for n_requests in 0..4 {
        let mut learner = active();
        let mut errands = std::collections::BTreeMap::new();
        let mut remembered = Vec::new();
        let canonical = learner.canonical(url).unwrap();
        assert!(learner.defer(url, &canonical));
        let mut queue = vec![url.to_owned()];
        let mut n_left = n_requests;
        let mut keep = |learner: &mut Learner| {
            for (key, errand) in learner.take_errands() {
                match errand {
                    Some(errand) => errands.insert(key, errand),
                    None => errands.remove(&key),
                };
            }
            remembered.extend(learner.take_remembered());
            errands.clone()
        };
        keep(&mut learner);
        while n_left > 0
            && let Some(url) = queue.pop()
        {
            n_left -= 1;
            queue.extend(learner.fetched(&url, content(&url)));
            keep(&mut learner);
        }
        let errands = keep(&mut learner);
        let mut learner = active();
        learner.recall(remembered);
        let mut queue: Vec<String> = errands
            .into_values()
            .flat_map(|errand| learner.resume(errand))
            .collect();
        while let Some(url) = queue.pop() {
            queue.extend(learner.fetched(&url, content(&url)));
        }
        let states: Vec<State> = learner.rules().map(|rule| rule.state).collect();
        assert_eq!(
            states,
            [State::Active, State::Suspended],
            "after {n_requests} requests"
        );
        let open = learner.take_errands();
        let n_begun = open.iter().filter(|(_, errand)| errand.is_some()).count();
        assert!(n_begun * 2 <= open.len(), "{open:?}");
    }
}

/// A rule that is active in one template of a site needs few pairs in the others, unless it was
/// wrong in one.
#[test]
fn templates_of_a_site_confirm_each_other() {
    for is_wrong_once in [false, true] {
        let mut learner = learner_without_prior();
        let mut n = 0;
        let mut visit = |learner: &mut Learner, template: &str, page: u64, matters: bool| {
            n += 1;
            let url = format!("http://a.b/{template}/{page}?sid={:x}", 7919 * n);
            if learner.place(&url) != Treatment::Fetch {
                return false;
            }
            let own = crate::digest::digest64(template.as_bytes()) ^ page;
            feed(learner, &url, &|url: &str| {
                Some(own ^ if matters { key_of(url) } else { 0 })
            });
            true
        };
        if is_wrong_once {
            for page in 0..5 {
                visit(&mut learner, "other", page, true);
            }
        }
        for page in 0..40 {
            visit(&mut learner, "one", page, false);
        }
        let n_fetched = (0..40).filter(|&page| visit(&mut learner, "two", page, false));
        let n_fetched = n_fetched.count();
        match is_wrong_once {
            true => assert!(n_fetched > 15, "{n_fetched}"),
            false => assert!((3..=6).contains(&n_fetched), "{n_fetched}"),
        }
    }
}

/// A site of many small templates, none of which has enough pages for a rule by itself: their
/// evidence is pooled, unless one pair differs.
#[test]
fn issue_27_templates_pool_their_evidence() {
    let learn = |wrong: Option<u64>| {
        let mut learner = learner_without_prior();
        let mut n_fetched = 0;
        for n in 0..120_u64 {
            let (template, page) = (n % 10, n / 10 % 4);
            let letter = char::from(b'a' + template as u8);
            let url = format!("http://a.b/{letter}/{page}?sid={:x}", 7919 * (n + 1));
            let own = 100 * template + page;
            if learner.place(&url) == Treatment::Fetch {
                n_fetched += feed(&mut learner, &url, &|url: &str| {
                    let matters = wrong == Some(template);
                    Some(own ^ if matters { key_of(url) } else { 0 })
                });
            }
        }
        let rules = learner.rules();
        let n_active = rules.filter(|rule| rule.state == State::Active).count();
        (n_active, n_fetched)
    };
    // Four pages each, fetched and probed: pairs beyond the 21st are not needed.
    let (n_active, n_fetched) = learn(None);
    assert_eq!(n_active, 10);
    assert!(n_fetched <= 80, "{n_fetched}");
    let (n_active, _) = learn(Some(3));
    assert_eq!(n_active, 0);
}

/// A template that had enough pairs before another one confirmed the rule waits for no more.
#[test]
fn issue_27_a_template_is_accepted_when_another_confirms_its_rule() {
    let mut learner = learner_without_prior();
    let mut visit = |template: &str, page: u64| {
        let n = 1 + page + 100 * template.len() as u64;
        let url = format!("http://a.b/{template}/{page}?sid={:x}", 7919 * n);
        let own = key_of(template) ^ page;
        feed(&mut learner, &url, &|_| Some(own));
        let active = |rule: &&Standing| rule.state == State::Active;
        learner.rules().filter(active).count()
    };
    for page in 0..8 {
        assert_eq!(visit("short", page), 0);
    }
    let found: Vec<usize> = (0..40).map(|page| visit("long", page)).collect();
    assert!(!found.contains(&1), "{found:?}");
    assert_eq!(found.last(), Some(&2));
}

/// Links to missing pages, each with a new session ID, end where other pages have shown that the ID
/// does not matter; a page among them suspends the rule.
#[test]
fn missing_pages_end() {
    let mut learner = learner_without_prior();
    for n in 0..40 {
        let url = format!("http://a.b/one/{n}?sid={:x}", 7919 * n);
        feed(&mut learner, &url, &|_| Some(n));
    }
    learner.take_events();
    let url = |n: u64| format!("http://a.b/none/1?sid={:x}", 7919 * n);
    let mut n_fetched = 0;
    let visit = |learner: &mut Learner, n: u64, content: Option<u64>| {
        let url = url(n);
        let is_fetched = match learner.place(&url) {
            Treatment::Fetch => true,
            Treatment::Same(canonical) => learner.defer(&url, &canonical),
        };
        if is_fetched {
            feed(learner, &url, &|_| content);
        }
        is_fetched
    };
    for n in 0..1000 {
        n_fetched += usize::from(visit(&mut learner, n, None));
    }
    assert!((5..60).contains(&n_fetched), "{n_fetched}");
    // A page that came back is found by the audits.
    let n_pages = (1000..3000).filter(|&n| visit(&mut learner, n, Some(n)));
    assert!(n_pages.count() > 100);
}

fn key_of(url: &str) -> u64 {
    crate::digest::digest64(url.as_bytes())
}

/// The first URLs that a rule without evidence defers are all fetched.
#[test]
fn rules_of_people_are_audited_at_once() {
    let mut learner = Learner::new(Config::default());
    learner.set(&standing("a.b/p/*", "parameter lang"));
    for n in 0..5 {
        let url = format!("http://a.b/p/{n}?lang=de");
        let canonical = learner.canonical(&url).unwrap();
        assert!(learner.defer(&url, &canonical), "{n}");
    }
}
