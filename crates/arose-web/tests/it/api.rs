//! Tests of the JSON API and its description.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::ratings::rate_all;
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
        (
            large["exact_duplicates"].as_u64(),
            large["near_duplicates"].as_u64(),
            large["kept"].as_bool()
        ),
        (Some(0), Some(11), Some(true))
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
        ("/api/document/x", 400),
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
    assert_eq!(now["similarity"], then["jaccard"]);
    assert_eq!(now["b_sim"], then["b_sim"]);
    assert_eq!(now["c_sim"], then["c_sim"]);
}

/// Every described path responds, and every response follows its schema: all required fields, no
/// undescribed field, and values of the right type.
#[test]
fn the_description_is_true() {
    let server = start(&pages(), None);
    rate(&server);
    // With every pair rated, the precision and its interval are known.
    rate_all(&server, "z", |_| "correct");
    let line =
        r#"{"seconds": 1.5, "pages": 3, "statuses": {"200": 3}, "slowest": [["x.org", 2.0]]}"#;
    std::fs::write(server.out.join("statistics.jsonl"), format!("{line}\n")).unwrap();
    let description = server.json("/api/openapi.json");
    let paths = description["paths"].as_object().unwrap();
    let asked = [
        ("/api/search", "/api/search?q=rose"),
        (
            "/api/search",
            "/api/search?q=rose&sort=newest&per_site=1&kept=true&limit=1",
        ),
        ("/api/document/{doc}", "/api/document/0"),
        ("/api/clusters", "/api/clusters"),
        ("/api/cluster/{cluster}", "/api/cluster/0"),
        ("/api/pair", "/api/pair?a=0&b=1"),
        ("/api/pair", "/api/pair?a=0&b=15"),
        ("/api/ratings", "/api/ratings"),
        ("/api/crawl", "/api/crawl"),
    ];
    for (path, request) in asked {
        let schema =
            &paths[path]["get"]["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{path} has no schema");
        validate(&description, schema, &server.json(request), request);
    }
    let known: BTreeSet<&str> = asked
        .iter()
        .map(|(path, _)| *path)
        .chain(["/api/openapi.json", "/api/refresh"])
        .collect();
    assert_eq!(
        paths.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        known
    );
    let error = server.get("/api/search?q=%22");
    let schema =
        &description["components"]["responses"]["Error"]["content"]["application/json"]["schema"];
    validate(
        &description,
        schema,
        &serde_json::from_str(&error.body).unwrap(),
        "error",
    );
}

fn rate(server: &crate::server::Server) {
    let form = "rater=x&by=b&a=0&b=1&verdict=correct";
    let other = "rater=y&by=b&a=0&b=1&verdict=incorrect";
    assert_eq!(server.post("/rate", form).status, 303);
    assert_eq!(server.post("/rate", other).status, 303);
}

/// Compares a value with a schema; `at` is its path.
fn validate(description: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let found = description.pointer(name.trim_start_matches('#')).unwrap();
        return validate(description, found, value, at);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(some) => some.iter().map(|one| one.as_str().unwrap()).collect(),
        _ => panic!("{at} has no type in {schema}"),
    };
    let is_allowed = allowed.contains(&kind) || (kind == "integer" && allowed.contains(&"number"));
    assert!(is_allowed, "{at} is {kind}, not {allowed:?}");
    if let Value::Array(items) = value {
        for (i, item) in items.iter().enumerate() {
            validate(description, &schema["items"], item, &format!("{at}/{i}"));
        }
    }
    let Value::Object(fields) = value else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(
            fields.contains_key(name.as_str().unwrap()),
            "{at} has no {name}"
        );
    }
    for (name, field) in fields {
        let properties = &schema["properties"][name];
        let described = match properties.is_object() {
            true => properties,
            false => &schema["additionalProperties"],
        };
        assert!(described.is_object(), "{at}/{name} is not described");
        validate(description, described, field, &format!("{at}/{name}"));
    }
}
