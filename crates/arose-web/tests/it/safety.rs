//! Tests of access control and security headers.

use std::net::SocketAddr;

use arose_search::{Index, SearchDir};
use arose_web::{Config, Error, serve};

use crate::server::{pages, start};

#[test]
fn every_answer_forbids_what_is_foreign() {
    let server = start(&pages(), None);
    for path in [
        "/",
        "/?q=rose",
        "/nothing",
        "/assets/app.js",
        "/api/search?q=rose",
        "/rate",
    ] {
        let head = server.get(path).head.to_lowercase();
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: same-origin",
        ] {
            assert!(head.contains(header), "{path}: {head}");
        }
        assert!(!head.contains("unsafe-inline"), "{path}");
    }
}

#[test]
fn no_path_leaves_the_folder() {
    let server = start(&pages(), None);
    for path in [
        "/assets/../Cargo.toml",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f",
        "//etc/passwd",
        "/cluster/..%2f..%2fetc",
        "/documents.parquet",
        "/pages.jsonl",
    ] {
        let answer = server.get(path);
        assert!(
            answer.status == 404 || answer.status == 400,
            "{path}: {}",
            answer.status
        );
        assert!(!answer.body.contains("root:"), "{path}");
    }
}

#[test]
fn names_of_others_and_pages_of_others_are_refused() {
    let server = start(&pages(), None);
    let foreign = server.send("GET / HTTP/1.1\r\nHost: evil.example\r\n", "");
    assert_eq!(foreign.status, 421);
    let form = "rater=x&by=b&a=0&b=1&verdict=correct";
    let head = format!(
        "POST /rate HTTP/1.1\r\nHost: {}\r\nOrigin: https://evil.example\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
        server.address,
        form.len()
    );
    assert_eq!(server.send(&head, form).status, 403);
    assert!(!server.out.join("ratings.jsonl").exists());
}

#[test]
fn a_token_is_asked_for() {
    let server = start(&pages(), Some("a-rose-is-a-rose"));
    assert_eq!(server.get("/").status, 401);
    assert_eq!(server.get("/api/search?q=rose").status, 401);
    assert_eq!(server.get("/?token=wrong").status, 401);
    let welcome = server.get("/?token=a-rose-is-a-rose");
    assert_eq!(welcome.status, 303);
    let head = welcome.head.to_lowercase();
    assert!(
        head.contains("httponly") && head.contains("samesite=strict"),
        "{head}"
    );
    let with = |header: &str| {
        let head = format!("GET / HTTP/1.1\r\nHost: {}\r\n{header}\r\n", server.address);
        server.send(&head, "").status
    };
    assert_eq!(with("Cookie: arose_token=a-rose-is-a-rose"), 200);
    assert_eq!(with("Authorization: Bearer a-rose-is-a-rose"), 200);
    assert_eq!(with("Cookie: arose_token=a-rose-is-a-ros"), 401);
}

#[test]
fn other_addresses_need_a_token() {
    let server = start(&pages(), None);
    let folder = SearchDir::open(&server.out).unwrap();
    let index = Index::open(&folder).unwrap();
    let address: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let config = Config {
        address,
        token: None,
        seed: 1,
        n_per_stratum: 1,
        versions: arose_search::Versions::All,
        watch: std::time::Duration::from_secs(2),
    };
    let result = serve(folder, index, &config, |_| panic!("it serves"));
    assert!(matches!(result, Err(Error::NeedsToken { .. })));
}

#[test]
fn bodies_have_a_size() {
    let server = start(&pages(), None);
    let form = format!("rater={}&by=b&a=0&b=1&verdict=correct", "x".repeat(200_000));
    // The server may close the connection before everything is sent; the response is then lost.
    assert!([0, 413].contains(&server.post("/rate", &form).status));
    assert!(!server.out.join("ratings.jsonl").exists());
    for (form, status) in [
        ("", 422),
        ("rater=x&by=b&a=0&b=1&verdict=maybe", 400),
        ("a=%ff", 422),
    ] {
        let answer = server.post("/rate", form);
        assert!(
            answer.status == status || answer.status == 400,
            "{form}: {}",
            answer.status
        );
    }
    assert_eq!(
        server
            .send(
                &format!("DELETE / HTTP/1.1\r\nHost: {}\r\n", server.address),
                ""
            )
            .status,
        405
    );
}
