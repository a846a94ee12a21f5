//! Engines behind HTTP, served on loopback in the form their documentation gives.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use arose_estimate::Error;
use arose_estimate::engine::{Description, Engine, Found, Http, Question, Reply};
use serde_json::json;

use crate::loopback::{Said, parameter, serve};

fn quick(description: Description) -> Http {
    Http::new(&Description {
        delay_ms: Some(0),
        timeout_ms: Some(300),
        retries: Some(0),
        ..description
    })
    .unwrap()
}

fn found(engine: &mut Http, question: &Question) -> Found {
    engine.search(question, 100).unwrap().answer().unwrap()
}

fn text(engine: &mut Http, address: &str) -> String {
    engine.fetch(address).unwrap().answer().unwrap().text
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

/// Several pages of ten results, relative addresses, the page itself fetched after a redirect.
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

/// Time-outs, errors with and without their status, and connections to nobody are all missing.
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
        let reply = engine.search(&Question::all(&["red"]), 10).unwrap();
        let said = missing(reply);
        assert!(said.contains(reason), "{said}");
    }
    let mut engine = quick(Description::preset("solr", &format!("http://{address}")));
    let said = missing(engine.search(&Question::all(&["red"]), 10).unwrap());
    assert!(said.contains("no list of results"), "{said}");
    let said = missing(engine.fetch(&format!("http://{address}/timeless")).unwrap());
    assert!(said.contains("timed out"), "{said}");
    let mut engine = quick(Description::preset("solr", "http://127.0.0.1:1"));
    missing(engine.search(&Question::all(&["red"]), 10).unwrap());
}

/// What fails at first and then works is answered, with a pause in between.
#[test]
fn tries_again() {
    let times = AtomicU64::new(0);
    let address = serve(move |_| match times.fetch_add(1, Ordering::Relaxed) {
        0 | 1 => Said::Answer(429, "text/html", String::new()),
        _ => Said::json(json!({ "response": { "numFound": 0, "docs": [] } })),
    });
    let mut engine = Http::new(&Description {
        delay_ms: Some(1),
        retries: Some(2),
        ..Description::preset("solr", &format!("http://{address}"))
    })
    .unwrap();
    assert_eq!(
        found(&mut engine, &Question::all(&["red"])).claimed,
        Some(0)
    );
}

#[test]
fn fields_are_sent_and_templates_filled() {
    let seen = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&seen);
    let address = serve(move |target| {
        log.lock().unwrap().push(target.to_owned());
        Said::json(json!({ "r": [] }))
    });
    let text = format!(
        "url = 'http://{address}/?q={{query}}&p={{page}}&n={{limit}}'\nresults = '/r'\n\
         address = '/u'\nlimit = 20\nper_page = 10\nword = '+{{word}}'\n"
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
            "no JSON pointer",
        ),
        (
            "results = 'li >'\naddress = '/u'\nurl = 'http://h/{query}'",
            "no element",
        ),
        (
            "preset = 'altavista'\nurl = 'http://h'",
            "there are arose, elasticsearch",
        ),
        ("preset = 'solr'", "`url` is missing"),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\nper_page = 5",
            "{offset}",
        ),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\nlimit = 0",
            "above zero",
        ),
        (
            "results = '/r'\naddress = '/u'\nurl = 'http://h/{query}'\nword = 'x'",
            "{word}",
        ),
    ] {
        let error = Http::new(&toml::from_str(text).unwrap()).err().unwrap();
        let Error::Description { what, .. } = &error else {
            panic!("{error}");
        };
        assert!(what.contains(part), "{text}: {what}");
    }
    assert!(toml::from_str::<Description>("reslts = '/r'").is_err());
}
