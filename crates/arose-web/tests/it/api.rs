//! The same answers as JSON, and their description.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::server::{pages, start};

#[test]
fn search_and_texts() {
    let server = start(&pages(), None);
    let found = server.json("/api/search?q=rose");
    assert_eq!(
        (found["documents"].as_u64(), found["results"].as_u64()),
        (Some(17), Some(4))
    );
    let hits = found["hits"].as_array().unwrap();
    let large = hits.iter().find(|hit| hit["cluster"] == 0).unwrap();
    assert_eq!(
        (large["alike"].as_u64(), large["kept"].as_bool()),
        (Some(11), Some(true))
    );
    let all = server.json("/api/search?q=rose&collapse=false&limit=1000");
    assert_eq!(all["hits"].as_array().unwrap().len(), 17);
    let members = server.json("/api/search?q=rose&collapse=false&cluster=12&limit=50");
    assert_eq!(members["documents"], 3);
    let text = server.json("/api/document/15");
    assert_eq!(text["text"], "only one rose of its kind");
    for (path, status) in [
        ("/api/search?q=%22", 400),
        ("/api/search?q=rose&limit=x", 400),
        ("/api/search?q=rose&offset=100000", 400),
        ("/api/document/99", 404),
        ("/api/document/../../etc/passwd", 404),
        ("/api/nothing", 404),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}");
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(error["error"].is_string(), "{path}");
    }
}

#[test]
fn clusters_and_pairs() {
    let server = start(&pages(), None);
    let clusters = server.json("/api/clusters");
    assert_eq!(clusters["clusters"], 2);
    assert_eq!(clusters["shown"][0]["documents"], 12);
    assert_eq!(clusters["shown"][1]["several_sites"], true);
    let cluster = server.json("/api/cluster/12");
    assert_eq!(cluster["members"].as_array().unwrap().len(), 3);
    let pair = server.json("/api/pair?a=0&b=1");
    let (now, then) = (&pair["recomputed"], &pair["recorded"]);
    assert_eq!(now["resemblance"], then["jaccard"]);
    assert_eq!(now["b_sim"], then["b_sim"]);
    assert_eq!(now["c_sim"], then["c_sim"]);
}

/// Every path that is described answers, and every answer has the fields that are required.
#[test]
fn the_description_is_true() {
    let server = start(&pages(), None);
    let description = server.json("/api/openapi.json");
    let paths: BTreeSet<&str> = description["paths"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let asked = [
        ("/api/search", "/api/search?q=rose"),
        ("/api/document/{doc}", "/api/document/0"),
        ("/api/clusters", "/api/clusters"),
        ("/api/cluster/{cluster}", "/api/cluster/0"),
        ("/api/pair", "/api/pair?a=0&b=1"),
        ("/api/ratings", "/api/ratings"),
        ("/api/openapi.json", "/api/openapi.json"),
    ];
    let known: BTreeSet<&str> = asked
        .iter()
        .map(|(path, _)| *path)
        .chain(["/api/crawl"])
        .collect();
    assert_eq!(paths, known);
    let hit = &description["components"]["schemas"]["Hit"]["required"];
    for (_, request) in asked {
        let answer = server.json(request);
        for hit_found in answer["hits"].as_array().into_iter().flatten() {
            let fields: BTreeSet<&String> = hit_found.as_object().unwrap().keys().collect();
            for name in hit.as_array().unwrap() {
                assert!(
                    fields.contains(&name.as_str().unwrap().to_owned()),
                    "{name}"
                );
            }
        }
    }
}
