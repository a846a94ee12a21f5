//! Tests of ratings: they are stored, and shown in tables.

use std::fs;

use crate::server::{Answer, Server, dedup, pages, serve_folder, start};

/// The value of a hidden field.
fn field<'a>(page: &'a Answer, name: &str) -> &'a str {
    let mark = format!("name=\"{name}\" value=\"");
    page.body
        .split_once(&mark)
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap()
}

/// Rates every pair of the sample.
pub(crate) fn rate_all(server: &Server, rater: &str, verdict: impl Fn(usize) -> &'static str) {
    let page = server.get(&format!("/rate?rater={rater}"));
    let (_, after) = page.body.split_once("max=\"").unwrap();
    let total: usize = after.split('"').next().unwrap().parse().unwrap();
    for i in 0..total {
        rate(server, rater, verdict(i));
    }
}

fn rate(server: &Server, rater: &str, verdict: &str) {
    let page = server.get(&format!("/rate?rater={rater}"));
    assert_eq!(page.status, 200);
    let (a, b) = (field(&page, "a"), field(&page, "b"));
    let form = format!("rater={rater}&by=b&a={a}&b={b}&verdict={verdict}");
    let answer = server.post("/rate", &form);
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert!(
        answer.head.contains(&format!("/rate?rater={rater}&by=b")),
        "{}",
        answer.head
    );
}

#[test]
fn ratings_are_kept_and_counted() {
    let server = start(&pages(), None);
    let welcome = server.get("/rate").body;
    assert!(welcome.contains("Your name") && welcome.contains("scores are not shown"));
    for verdict in ["correct", "correct", "incorrect", "undecided"] {
        rate(&server, "anna", verdict);
    }
    rate(&server, "bob", "correct");
    let tables = server.json("/api/ratings");
    assert_eq!(tables["all"]["pairs"], 4);
    assert_eq!(tables["all"]["correct"]["pairs"], 2);
    assert_eq!(tables["agreement"][0]["agreed"], 1);
    let lines = fs::read_to_string(server.out.join("ratings.jsonl")).unwrap();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["drawn_by"], "b");
        assert_eq!(line["range"].as_str().unwrap(), line["b_sim"].to_string());
    }
    let page = server.get("/ratings").body;
    assert!(
        page.contains("4 pairs rated") && page.contains("Agreement"),
        "{page}"
    );
    // The rating page shows no score.
    let next = server.get("/rate?rater=anna").body;
    assert!(next.contains("4 of "), "{next}");
    assert!(!next.contains("B-sim") && !next.contains("Jaccard similarity"));
    // Another server on the same directory finds them again.
    let again = Server {
        address: serve_folder(&server.out, None),
        out: server.out.clone(),
        folder: tempfile::tempdir().unwrap(),
    };
    assert_eq!(again.json("/api/ratings"), tables);
}

/// The run is repeated in the same directory, in another order and without one of the pages.
#[test]
fn ratings_find_their_pairs_in_a_run_made_anew() {
    let server = start(&pages(), None);
    for _ in 0..10 {
        rate(&server, "anna", "correct");
    }
    let mut others = pages();
    others.reverse();
    others.retain(|page| page["id"] != "t3");
    let lines = fs::read_to_string(server.out.join("ratings.jsonl")).unwrap();
    let n_gone = lines.lines().filter(|line| line.contains("\"t3\"")).count();
    assert!((1..10).contains(&n_gone), "{lines}");
    dedup(server.folder.path(), &others);
    let again = Server {
        address: serve_folder(&server.out, None),
        out: server.out.clone(),
        folder: tempfile::tempdir().unwrap(),
    };
    let tables = again.json("/api/ratings");
    assert_eq!(tables["all"]["pairs"], 10 - n_gone);
    assert_eq!(tables["elsewhere"], n_gone);
    // The running server is updated.
    server.wait_for("/api/ratings", |answer| {
        serde_json::from_str(&answer.body).is_ok_and(|seen: serde_json::Value| seen == tables)
    });
    let page = again.get("/ratings").body;
    assert!(
        page.contains("of pairs that this run does not list"),
        "{page}"
    );
    let after = fs::read_to_string(server.out.join("ratings.jsonl")).unwrap();
    assert_eq!(after, lines);
    rate(&again, "anna", "incorrect");
    assert_eq!(again.json("/api/ratings")["all"]["pairs"], 11 - n_gone);
}

#[test]
fn the_last_rating_can_be_taken_back() {
    let server = start(&pages(), None);
    rate(&server, "anna", "correct");
    rate(&server, "anna", "incorrect");
    let answer = server.post("/rate/undo", "rater=anna&by=b");
    assert_eq!(answer.status, 303);
    assert_eq!(server.json("/api/ratings")["all"]["pairs"], 1);
    let lines = fs::read_to_string(server.out.join("ratings.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 3, "nothing is ever removed: {lines}");
    server.post("/rate/undo", "rater=anna&by=b");
    let last = server.post("/rate/undo", "rater=anna&by=b");
    assert_eq!(last.status, 303);
    assert_eq!(server.json("/api/ratings")["all"]["pairs"], 0);
}

#[test]
fn only_what_was_drawn_is_rated() {
    let server = start(&pages(), None);
    for form in [
        "rater=x&by=b&a=0&b=15&verdict=correct",
        "rater=+&by=b&a=0&b=1&verdict=correct",
    ] {
        assert_eq!(server.post("/rate", form).status, 400, "{form}");
    }
    assert!(!server.out.join("ratings.jsonl").exists());
}

#[test]
fn all_pairs_come_to_an_end() {
    let server = start(&pages(), None);
    let page = server.get("/rate?rater=x&by=c");
    let total: usize = page
        .body
        .split_once("max=\"")
        .unwrap()
        .1
        .split('"')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    for _ in 0..total {
        let page = server.get("/rate?rater=x&by=c");
        let form = format!(
            "rater=x&by=c&a={}&b={}&verdict=correct",
            field(&page, "a"),
            field(&page, "b")
        );
        assert_eq!(server.post("/rate", &form).status, 303);
    }
    assert!(server.get("/rate?rater=x&by=c").body.contains("Thank you"));
}

/// The question has the choices yes, no and unsure, in the words of the page.
#[test]
fn issue_23_duplicates_or_not() {
    let server = start(&pages(), None);
    let page = server.get("/rate?rater=anna").body;
    assert!(page.contains("Are these duplicates?"), "{page}");
    for answer in ["</kbd> Yes<", "</kbd> No<", "</kbd> Unsure<"] {
        assert!(page.contains(answer), "{answer}");
    }
}

/// A pair in both samples is rated for the sample in which it was shown.
#[test]
fn issue_23_samples_are_not_mixed() {
    let server = start(&pages(), None);
    for _ in 0..3 {
        rate(&server, "anna", "correct");
    }
    let tables = server.json("/api/ratings");
    assert_eq!(tables["sample"], "b");
    assert_eq!(tables["by_b_sim"][0]["rated"]["pairs"], 3);
    assert_eq!(tables["by_c_sim"][0]["rated"]["pairs"], 0);
    assert!(server.get("/rate?rater=anna&by=c").body.contains("0 of "));
    let undone = server.post("/rate/undo", "rater=anna&by=c");
    assert_eq!(undone.status, 303);
    assert_eq!(server.json("/api/ratings")["all"]["pairs"], 3);
}

/// When every range is rated, precision is weighted by the sizes of the ranges, with an interval.
#[test]
fn issue_23_precision_is_weighted() {
    let server = start(&pages(), None);
    rate_all(&server, "x", |i| match i % 3 {
        0 => "incorrect",
        _ => "correct",
    });
    let tables = server.json("/api/ratings");
    let rows = tables["by_b_sim"].as_array().unwrap();
    let (mut sum, mut n) = (0.0, 0.0);
    for row in &rows[1..] {
        let found = row["found"].as_f64().unwrap();
        sum += found * row["rated"]["correct"]["share"].as_f64().unwrap();
        n += found;
    }
    let precision = tables["precision"].as_f64().unwrap();
    assert!((precision - sum / n).abs() < 1e-9, "{precision} {sum} {n}");
    let ends = tables["precision_interval"].as_array().unwrap();
    assert!(ends[0].as_f64() <= Some(precision) && ends[1].as_f64() >= Some(precision));
    assert!(server.get("/ratings").body.contains("95% interval"));
}
