//! Tests of HTTP search engines, served on loopback in their documented format.

use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use arose_crawl::Settings as Crawling;
use arose_estimate::Error;
use arose_estimate::engine::{
    Description, Engine, Http, Page, Pages, Question, Reply, Requests, ResultList,
};
use serde_json::json;

use crate::loopback::{Said, parameter, serve, serve_all, serve_asked};

/// Result pages on loopback, without pauses.
fn pages() -> Rc<Pages> {
    let mut settings = Crawling::default();
    settings.network.allow_private = true;
    settings.polite.delay = 0.0;
    settings.polite.address_delay = 0.0;
    settings.polite.factor = 0.0;
    settings.fetch.tries = 1;
    settings.fetch.first_byte = 0.3;
    Rc::new(Pages::new(settings))
}

fn quick(description: Description) -> Http {
    let description = Description {
        delay: Some(0.0),
        timeout: Some(0.3),
        retries: Some(0),
        ..description
    };
    Http::new(&description, &pages()).unwrap()
}

fn found(engine: &mut Http, question: &Question) -> ResultList {
    answered(search(engine, question, 100))
}

fn text(engine: &mut Http, address: &str) -> String {
    answered(fetch(engine, address)).text
}

/// Searches with a sufficient request budget.
fn search(engine: &mut Http, question: &Question, limit: usize) -> Reply<ResultList> {
    let requests = Requests::new(u64::MAX);
    engine.search(question, limit, &requests).unwrap()
}

fn fetch(engine: &mut Http, address: &str) -> Reply<Page> {
    engine.fetch(address, &Requests::new(u64::MAX)).unwrap()
}

fn answered<T>(reply: Reply<T>) -> T {
    match reply {
        Reply::Answer(answer) => answer,
        Reply::Missing(reason) => panic!("{reason}"),
    }
}

fn missing<T: std::fmt::Debug>(reply: Reply<T>) -> String {
    match reply {
        Reply::Missing(reason) => reason,
        Reply::Answer(answer) => panic!("{answer:?}"),
    }
}

#[test]
fn elasticsearch() {
    for total in [json!({ "value": 57, "relation": "eq" }), json!(57)] {
        let address = serve(move |target| {
            if target.starts_with("/pages/_doc/b2") {
                return Said::json(json!({ "_id": "b2", "_source": { "text": "second" } }));
            }
            assert!(target.starts_with("/pages/_search?"), "{target}");
            let q = parameter(target, "q").unwrap();
            let expected = ["\"red rose\" AND \"thorn\"", "\"red\" OR \"rosé\""];
            assert!(expected.contains(&&q[..]), "{q}");
            assert_eq!(parameter(target, "size").unwrap(), "100");
            Said::json(
                json!({ "took": 3, "timed_out": false, "hits": { "total": total, "hits": [
                { "_id": "a1", "_score": 1.5,
                  "_source": { "url": "http://e.org/1", "text": "first" } },
                { "_id": "b2", "_score": 1.1, "_source": { "url": "http://e.org/2" } },
                { "_id": "c3", "_score": 0.1, "_source": {} },
            ] } }),
            )
        });
        let url = format!("http://{address}/pages/");
        let mut engine = quick(Description::preset("elasticsearch", &url));
        for question in [
            Question::all(&["red rose", "thorn"]),
            Question::any(&["red", "rosé"]),
        ] {
            let found = found(&mut engine, &question);
            assert_eq!(found.claimed, Some(57));
            assert_eq!(found.addresses, ["http://e.org/1", "http://e.org/2", "c3"]);
        }
        assert_eq!(text(&mut engine, "http://e.org/1"), "first");
        assert_eq!(text(&mut engine, "http://e.org/2"), "second");
    }
}

#[test]
fn solr() {
    let address = serve(|target| {
        if target.starts_with("/solr/core/get?id=2") {
            return Said::json(json!({ "doc": { "id": "2", "text": ["second", "part"] } }));
        }
        assert_eq!(parameter(target, "q").unwrap(), "\"red\" AND \"rose\"");
        assert_eq!(parameter(target, "rows").unwrap(), "100");
        Said::json(json!({
            "responseHeader": { "status": 0, "QTime": 1 },
            "response": { "numFound": 2, "start": 0, "numFoundExact": true, "docs": [
                { "id": "1", "url": ["http://e.org/1"], "text": ["first"] },
                { "id": "2", "url": "http://e.org/2" },
            ] },
        }))
    });
    let mut engine = quick(Description::preset(
        "solr",
        &format!("http://{address}/solr/core"),
    ));
    let found = found(&mut engine, &Question::all(&["red", "rose"]));
    assert_eq!((found.claimed, found.addresses.len()), (Some(2), 2));
    assert_eq!(text(&mut engine, "http://e.org/1"), "first");
    assert_eq!(text(&mut engine, "http://e.org/2"), "second\npart");
}

fn result_page() -> Description {
    toml::from_str(
        "results = 'li.hit'\naddress = 'a@href'\ncount = '#n'\nlimit = 25\nper_page = 10\n\
         and = ' +'\nphrase = '<{phrase}>'",
    )
    .unwrap()
}

/// Several pages of ten results, relative URLs, and a page that is fetched after a redirect.
#[test]
fn pages_of_results() {
    let address = serve(|target| {
        if target.starts_with("/p/") {
            return Said::html("<title>T</title><p>some <b>text");
        }
        assert_eq!(parameter(target, "q").unwrap(), "<red rose> +thorn");
        let first: usize = parameter(target, "from").unwrap().parse().unwrap();
        let hits: String = (first..first + 10)
            .map(|n| format!("<li class='hit x'><a href='/p/{n}?a=1&amp;b=2'>{n}</a></li>"))
            .collect();
        Said::html(format!("<p id=n>about 1,234 results</p><ol>{hits}</ol>"))
    });
    let mut engine = quick(Description {
        url: Some(format!("http://{address}/s?q={{query}}&from={{offset}}")),
        ..result_page()
    });
    let found = found(&mut engine, &Question::all(&["red rose", "thorn"]));
    assert_eq!(found.claimed, Some(1234));
    assert_eq!(found.addresses.len(), 25);
    assert_eq!(
        found.addresses[24],
        format!("http://{address}/p/24?a=1&b=2")
    );
    let words = text(&mut engine, &found.addresses[24]);
    assert_eq!(
        words.split_whitespace().collect::<Vec<_>>(),
        ["T", "some", "text"]
    );
}

/// Timeouts, errors with and without an error status, and refused connections all count as missing.
#[test]
fn what_is_missing() {
    let address = serve(|target| match &target[..3] {
        "/ti" => Said::Silence,
        "/st" => Said::Answer(503, "text/html", "<li class=hit><a href=/1></a>".to_owned()),
        "/ht" => Said::html("<h1>Internal error</h1>"),
        _ => Said::json("{\"error\": \"no\"}"),
    });
    for (path, reason) in [
        ("ti", "timed out"),
        ("st", "status 503"),
        ("ht", "neither results nor a count"),
    ] {
        let mut engine = quick(Description {
            url: Some(format!(
                "http://{address}/{path}?q={{query}}&from={{offset}}"
            )),
            ..result_page()
        });
        let said = missing(search(&mut engine, &Question::all(&["red"]), 10));
        assert!(said.contains(reason), "{said}");
    }
    let mut engine = quick(Description::preset("solr", &format!("http://{address}")));
    let said = missing(search(&mut engine, &Question::all(&["red"]), 10));
    assert!(said.contains("no list of results"), "{said}");
    let said = missing(fetch(&mut engine, &format!("http://{address}/timeless")));
    assert!(said.contains("no ID"), "{said}");
    let mut engine = quick(Description {
        url: Some(format!("http://{address}/s?q={{query}}&from={{offset}}")),
        ..result_page()
    });
    let said = missing(fetch(&mut engine, &format!("http://{address}/timeless")));
    assert!(said.contains("time"), "{said}");
    let mut engine = quick(Description::preset("solr", "http://127.0.0.1:1"));
    missing(search(&mut engine, &Question::all(&["red"]), 10));
}

/// A request that fails at first and then works gets a response, with a pause in between.
#[test]
fn tries_again() {
    let times = AtomicU64::new(0);
    let address = serve(move |_| match times.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Said::Answer(429, "text/html", String::new()),
        _ => Said::json(json!({ "response": { "numFound": 0, "docs": [] } })),
    });
    let mut engine = Http::new(
        &Description {
            delay: Some(0.001),
            retries: Some(2),
            ..Description::preset("solr", &format!("http://{address}"))
        },
        &pages(),
    )
    .unwrap();
    assert_eq!(
        found(&mut engine, &Question::all(&["red"])).claimed,
        Some(0)
    );
}

/// A budget limits requests: retries and pages of results count.
#[test]
fn every_request_counts() {
    let times = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&times);
    let address = serve(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Said::Answer(503, "text/html", String::new())
    });
    let mut engine = Http::new(
        &Description {
            delay: Some(0.0),
            retries: Some(2),
            ..Description::preset("solr", &format!("http://{address}"))
        },
        &pages(),
    )
    .unwrap();
    let requests = Requests::new(4);
    missing(
        engine
            .search(&Question::all(&["a"]), 10, &requests)
            .unwrap(),
    );
    let error = engine.search(&Question::all(&["b"]), 10, &requests);
    assert!(matches!(error, Err(Error::Budget { budget: 4 })));
    assert_eq!(times.load(Ordering::Relaxed), 4);
}

/// The header fields of a description may contain a password. They are sent with searches to the
/// search engine, but neither to result pages nor to redirect targets.
#[test]
fn fields_go_with_searches_alone() {
    let own = std::sync::Arc::new(Mutex::new(Vec::new()));
    let foreign = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&foreign);
    let other = serve_asked(move |asked| {
        log.lock().unwrap().push(asked.field("x-key"));
        Said::html("<p>a page")
    });
    let log = std::sync::Arc::clone(&own);
    let address = serve_asked(move |asked| {
        let field = asked.field("x-key");
        log.lock().unwrap().push((asked.target.clone(), field));
        match asked.target.starts_with("/away") {
            true => Said::Redirect(format!("http://{other}/there")),
            false => Said::json(json!({ "r": [
                { "u": format!("http://{other}/page") }, { "u": "/away" }, { "u": "/own" },
            ] })),
        }
    });
    let text = format!(
        "url = 'http://{address}/?q={{query}}'\nresults = '/r'\naddress = '/u'\n\
         [headers]\nX-Key = 'secret'\n"
    );
    let mut engine = quick(toml::from_str(&text).unwrap());
    for result in found(&mut engine, &Question::all(&["a"])).addresses {
        fetch(&mut engine, &result);
    }
    assert_eq!(*foreign.lock().unwrap(), [None, None]);
    let secret = Some("secret".to_owned());
    let expected = [("/?q=a", secret), ("/away", None), ("/own", None)];
    let expected = expected.map(|(target, field)| (target.to_owned(), field));
    assert_eq!(*own.lock().unwrap(), expected);
}

/// Searches, lookups and documents elsewhere, by a redirect or by the description, do not get them
/// either.
#[test]
fn fields_stay_with_the_origin() {
    let foreign = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&foreign);
    let answers = json!({ "r": [{ "u": "http://e.org/1" }] });
    let other = serve_asked(move |asked| {
        let field = asked.field("authorization");
        log.lock().unwrap().push((asked.target.clone(), field));
        Said::json(&answers)
    });
    let own = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&own);
    let address = serve_asked(move |asked| {
        log.lock().unwrap().push(asked.field("authorization"));
        Said::Redirect(format!("http://{other}{}", asked.target))
    });
    let text = format!(
        "url = 'http://{address}/?q={{query}}'\nlookup = 'http://{other}/l?u={{address}}'\n\
         document = 'http://{other}/d?u={{address}}'\nresults = '/r'\naddress = '/u'\n\
         headers = {{ Authorization = 'Bearer secret' }}\n"
    );
    let mut engine = quick(toml::from_str(&text).unwrap());
    let found = found(&mut engine, &Question::all(&["a"]));
    assert_eq!(found.addresses, ["http://e.org/1"]);
    fetch(&mut engine, "http://e.org/1");
    let contains = engine.contains("http://e.org/1", &Requests::new(1));
    assert_eq!(contains.unwrap(), Reply::Answer(true));
    let seen = foreign.lock().unwrap();
    let targets: Vec<&str> = seen.iter().map(|(target, _)| target.as_str()).collect();
    let url = "http%3A%2F%2Fe.org%2F1";
    let expected = [
        "/?q=a".to_owned(),
        format!("/d?u={url}"),
        format!("/l?u={url}"),
    ];
    assert_eq!(targets, expected);
    assert!(seen.iter().all(|(_, field)| field.is_none()), "{seen:?}");
    assert_eq!(*own.lock().unwrap(), [Some("Bearer secret".to_owned())]);
}

/// A search engine whose result pages are on a server with a robots.txt, and the paths requested
/// there.
fn engine_with_robots(pages: &Rc<Pages>) -> (Http, String, std::sync::Arc<Mutex<Vec<String>>>) {
    let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&seen);
    let address = serve_all(move |asked| {
        log.lock().unwrap().push(asked.target.clone());
        match asked.target.as_str() {
            "/robots.txt" => Said::Answer(
                200,
                "text/plain",
                "User-agent: *\nDisallow: /closed/\n".to_owned(),
            ),
            "/moved" => Said::Redirect("/closed/there".to_owned()),
            _ => Said::html("<p>a page"),
        }
    });
    let description = Description {
        url: Some(format!("http://{address}/s?q={{query}}&from={{offset}}")),
        delay: Some(0.0),
        ..result_page()
    };
    let engine = Http::new(&description, pages).unwrap();
    (engine, format!("http://{address}"), seen)
}

/// robots.txt is requested once and obeyed, wherever redirects lead.
#[test]
fn result_pages_obey_robots() {
    let (mut engine, base, seen) = engine_with_robots(&pages());
    for path in ["closed/1", "moved"] {
        let said = missing(fetch(&mut engine, &format!("{base}/{path}")));
        assert_eq!(said, "disallowed by robots.txt");
    }
    assert_eq!(text(&mut engine, &format!("{base}/open")).trim(), "a page");
    let expected = ["/robots.txt", "/moved", "/open"];
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// Every request for a result page counts, including robots.txt.
#[test]
fn result_pages_count_against_the_budget() {
    let (mut engine, base, seen) = engine_with_robots(&pages());
    let requests = Requests::new(3);
    for page in ["/1", "/2"] {
        let page = engine.fetch(&format!("{base}{page}"), &requests);
        assert!(matches!(page, Ok(Reply::Answer(_))), "{page:?}");
    }
    let error = engine.fetch(&format!("{base}/3"), &requests);
    assert!(matches!(error, Err(Error::Budget { budget: 3 })));
    assert_eq!(*seen.lock().unwrap(), ["/robots.txt", "/1", "/2"]);
}

/// Private and loopback IP addresses are requested only if allowed, and no page is fetched without
/// a contact. A search engine that returns the texts itself needs neither.
#[test]
fn result_pages_need_permission() {
    let mut settings = Crawling::default();
    settings.agent.contact = "https://me.example/bot".to_owned();
    settings.fetch.tries = 1;
    let (mut engine, base, seen) = engine_with_robots(&Rc::new(Pages::new(settings)));
    missing(fetch(&mut engine, &format!("{base}/page")));
    assert_eq!(*seen.lock().unwrap(), [""; 0]);

    let nameless = Rc::new(Pages::new(Crawling::default()));
    let description = Description {
        url: Some("http://127.0.0.1:1/s?q={query}&from={offset}".to_owned()),
        ..result_page()
    };
    let error = Http::new(&description, &nameless)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("contact"), "{error}");
    let solr = Description::preset("solr", "http://127.0.0.1:1");
    assert!(Http::new(&solr, &nameless).is_ok());
}

/// A lookup finds a URL if a result has it, however it is spelled.
#[test]
fn lookups_by_url() {
    let address = serve(|target| {
        let q = parameter(target, "q").unwrap();
        let docs = match q.as_str() {
            "url:\"https://e.org/1\"" => json!([{ "id": "9", "url": "http://e.org/1/" }]),
            "url:\"https://e.org/\"" => json!([{ "id": "9", "url": "http://e.org/1" }]),
            _ => return Said::Answer(500, "text/plain", q),
        };
        Said::json(json!({ "response": { "numFound": 1, "docs": docs } }))
    });
    let mut engine = quick(Description::preset("solr", &format!("http://{address}")));
    assert!(engine.has_lookup());
    let requests = Requests::new(u64::MAX);
    let mut contains = |url: &str| engine.contains(url, &requests).unwrap();
    assert_eq!(contains("https://e.org/1"), Reply::Answer(true));
    assert_eq!(contains("https://e.org/"), Reply::Answer(false));
    assert_eq!(
        contains("https://e.org/2"),
        Reply::Missing("status 500".to_owned())
    );
    let omega = quick(Description::preset("omega", &format!("http://{address}")));
    assert!(!omega.has_lookup());
}

#[test]
fn fields_are_sent_and_templates_filled() {
    let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&seen);
    let address = serve_asked(move |asked| {
        assert_eq!(asked.field("X-Name").as_deref(), Some("a b"));
        log.lock().unwrap().push(asked.target.clone());
        Said::json(json!({ "r": [] }))
    });
    let text = format!(
        "url = 'http://{address}/?q={{query}}&p={{page}}&n={{limit}}'\nresults = '/r'\n\
         address = '/u'\nlimit = 20\nper_page = 10\nword = '+{{word}}'\n\
         headers = {{ X-Name = 'a b' }}\n"
    );
    let mut engine = quick(toml::from_str(&text).unwrap());
    found(&mut engine, &Question::all(&["a&b", "ç"]));
    assert_eq!(*seen.lock().unwrap(), ["/?q=%2Ba%26b+%2B%C3%A7&p=1&n=10"]);
}

#[test]
fn descriptions_that_lack_something() {
    for (text, part) in [
        ("", "`results` is missing"),
        ("results = '/r'", "`address` is missing"),
        ("results = '/r'\naddress = '/u'", "`url` is missing"),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/'",
            "{query}",
        ),
        (
            "results = '/r'\naddress = 'u'\nurl = 'http://h/{query}'",
            "not a JSON pointer",
        ),
        (
            "results = 'li >'\naddress = '/u'\nurl = 'http://h/{query}'",
            "not an element",
        ),
        (
            "preset = 'altavista'\nurl = 'http://h'",
            "choose one of arose, elasticsearch",
        ),
        ("preset = 'solr'", "`url` is missing"),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\nper_page = 5",
            "{offset}",
        ),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\nlimit = 0",
            "at least 1",
        ),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\nword = 'x'",
            "{word}",
        ),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\ndelay = -1",
            "`delay` is -1; expected 0 to 3600 seconds",
        ),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\nlookup = 'http://h/'",
            "`lookup` has no place",
        ),
        (
            "results = '/r'\naddress = '/u'\nurl = 'h/{query}'",
            "`url`: relative URL",
        ),
    ] {
        let error = Http::new(&toml::from_str(text).unwrap(), &pages())
            .err()
            .unwrap();
        let Error::Description { what, .. } = &error else {
            panic!("{error}");
        };
        assert!(what.contains(part), "{text}: {what}");
    }
    assert!(toml::from_str::<Description>("reslts = '/r'").is_err());
}
