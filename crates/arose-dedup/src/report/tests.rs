//! Tests of complete reports.

mod run;

use arose::digest::Digest;
use arose::token::Tokenizer;
use serde_json::json;

use super::*;
use run::{DocumentRow, PairRow, Run};

/// All allowed elements. None of them loads or runs anything.
const ELEMENTS: &str = " html head meta title style body header main footer nav section article p \
    h1 h2 h3 h4 a b i strong small span code bdi mark table caption thead tbody tr th td div figure \
    figcaption details summary svg desc g line rect circle path text ";

const ATTRIBUTES: &str = " lang charset http-equiv content name class id href rel scope colspan role \
    aria-label aria-labelledby aria-hidden viewBox preserveAspectRatio x y x1 x2 y1 y2 cx cy r d \
    width height transform text-anchor ";

/// Checks that elements nest, are known and have known attributes, and that links lead to the web
/// or into the page.
#[track_caller]
fn check_page(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let body = html
        .strip_prefix("<!DOCTYPE html>")
        .expect("a document type");
    for part in body.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
            continue;
        }
        let is_empty = tag.ends_with('/');
        let mut parts = tag.trim_end_matches('/').splitn(2, ' ');
        let name = parts.next().expect("a name");
        assert!(ELEMENTS.contains(&format!(" {name} ")), "<{tag}>");
        let mut values = parts.next().unwrap_or_default().split('"');
        while let (Some(attribute), Some(value)) = (values.next(), values.next()) {
            let attribute = attribute.trim().trim_end_matches('=');
            assert!(ATTRIBUTES.contains(&format!(" {attribute} ")), "<{tag}>");
            let is_link = ["#", "http://", "https://"]
                .iter()
                .any(|start| value.starts_with(start));
            assert!(attribute != "href" || is_link, "<{tag}>");
        }
        if !is_empty && name != "meta" {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
    assert!(html.contains("default-src 'none'"));
}

/// The number in the row of this name in the table of counts.
fn counted(html: &str, name: &str) -> u64 {
    let row = format!("<th scope=\"row\">{name}</th><td class=\"n\">");
    let (_, rest) = html.split_once(&row).expect(name);
    let (number, _) = rest.split_once('<').expect("a cell ends");
    number.replace(',', "").parse().expect(name)
}

#[test]
fn counts_are_those_of_the_summary() {
    let run = Run::of_small_web(120);
    let html = run.report().unwrap();
    check_page(&html);
    let counts = &run.summary["counts"];
    let expected = |name: &str| counts[name].as_u64().unwrap();
    for (name, key) in [
        ("Documents read", "read"),
        ("Kept", "kept"),
        ("Dropped, exact duplicates", "dropped_exact"),
        ("Dropped, near duplicates", "dropped_near"),
    ] {
        assert!(expected(key) > 0, "{key}");
        assert_eq!(counted(&html, name), expected(key), "{name}");
    }
    assert_eq!(counted(&html, "Skipped"), 17);
    assert_eq!(counted(&html, "media type without text"), 11);
    assert_eq!(counted(&html, "All records"), expected("read") + 17);
    let (clusters, largest) = (expected("clusters"), expected("largest_cluster"));
    assert!(html.contains(&format!("from {clusters} clusters")));
    assert!(html.contains(&format!("the largest has {largest}.")));
    // Six kinds of evidence, all of them present.
    for text in [
        "Similarity 0.80 to 0.85",
        "Similarity 1 ",
        "99.930%",
        "hedgerow.com",
        "Time per stage",
    ] {
        assert!(html.contains(text), "{text}");
    }
    assert!(!html.contains("Its source"));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let mut run = Run::of_small_web(60);
    let html = run.report().unwrap();
    assert_eq!(run.report().unwrap(), html);
    run.summary["settings"]["seed"] = json!(2);
    let other = run.report().unwrap();
    let pairs = |html: &str| -> Vec<String> {
        let headings = html.split("<h4>Documents ").skip(1);
        headings
            .map(|part| part.split('<').next().unwrap().to_owned())
            .collect()
    };
    assert_ne!(pairs(&other), pairs(&html));
    assert_eq!(pairs(&other).len(), pairs(&html).len());
}

fn row(id: &str, cluster: u64) -> DocumentRow {
    DocumentRow {
        id: id.to_owned(),
        source: "gone.jsonl".to_owned(),
        position: "0".to_owned(),
        cluster,
        ..DocumentRow::default()
    }
}

fn pair(a: u64, b: u64, jaccard: f64) -> PairRow {
    PairRow {
        a,
        b,
        jaccard: Some(jaccard),
        c_sim: None,
        rule: "jaccard",
    }
}

#[test]
fn nothing_read() {
    let html = Run::new(Vec::new(), Vec::new()).report().unwrap();
    check_page(&html);
    assert_eq!(counted(&html, "All records"), 0);
    for text in [
        "No documents to compare",
        "no clusters to draw",
        "no pairs to show",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn nothing_dropped_and_one_cluster() {
    let html = Run::new(vec![row("a", 0), row("b", 1)], Vec::new())
        .report()
        .unwrap();
    check_page(&html);
    assert!(html.contains("<h1>No duplicates among 2 documents</h1>"));
    let mut rows = vec![row("a", 0), row("b", 0)];
    rows[1].dropped = Some((0, "jaccard", Some(0.875)));
    let html = Run::new(rows, vec![pair(0, 1, 0.875)]).report().unwrap();
    check_page(&html);
    assert!(html.contains("<h1>1 of 2 documents is a duplicate (50.0%)</h1>"));
    assert_eq!(html.matches("<circle").count(), 1);
    assert!(html.contains("0.875"));
}

/// A run with one pair, whose texts are in a file.
fn run_of(texts: [&str; 2]) -> Run {
    let mut run = Run::new(Vec::new(), Vec::new());
    let source = run.path("pair.jsonl");
    let lines = texts.map(|text| format!("{}\n", json!({ "text": text })));
    let mut rows = vec![row("a", 0), row("b", 0)];
    for (row, text) in rows.iter_mut().zip(texts) {
        let tokens = Tokenizer::default().tokens(text);
        row.source = source.to_string_lossy().into_owned();
        row.digest = Digest::of_text(text).to_string();
        row.n_tokens = tokens.len() as u32;
    }
    rows[1].position = lines[0].len().to_string();
    rows[1].dropped = Some((0, "jaccard", Some(0.9)));
    std::fs::write(&source, lines.concat()).unwrap();
    let made = Run::new(rows, vec![pair(0, 1, 0.9)]);
    (run.rows, run.pairs, run.summary) = (made.rows, made.pairs, made.summary);
    run
}

#[test]
fn differences_are_marked() {
    let html = run_of(["A rose is a rose", "a rose, was a ROSE!"])
        .report()
        .unwrap();
    check_page(&html);
    assert!(html.contains("<td><bdi>A rose <mark>is</mark> a rose</bdi></td>"));
    assert!(html.contains("<td><bdi>a rose, <mark>was</mark> a ROSE!</bdi></td>"));
    let html = run_of(["A rose", "a rose!"]).report().unwrap();
    assert!(html.contains("All 2 tokens are equal: they differ only in case"));
    let html = run_of(["東京の薔薇", "東京は薔薇"]).report().unwrap();
    assert!(html.contains("東京<mark>の</mark>薔薇"));
}

#[test]
fn hostile_texts_are_shown_and_not_obeyed() {
    let hostile = "</td></table><script>alert(1)</script> <img src=x onerror=alert(2)> &amp; \
                   \u{202e}abc\u{2066} \u{1b}[31m \u{0} ' \" ]]> --> é\u{301}\u{301}";
    let other = format!("{hostile} end");
    let mut run = run_of([hostile, &other]);
    run.rows[0].id = hostile.to_owned();
    run.rows[0].url = Some("javascript:alert(1)".to_owned());
    run.rows[1].url = Some(format!(
        "https://x\"onclick=\"alert(1)\u{202e}<script>.com/{hostile}"
    ));
    run.summary["inputs"] = json!([hostile, "-"]);
    run.summary["version"] = json!(hostile);
    run.summary["settings"][hostile] = json!({ hostile: hostile });
    run.summary["counts"]["skipped"] = json!({"total": 1, "by_reason": { hostile: 1 }});
    run.summary["stages"] = json!([{"name": hostile, "seconds": 1.0, "records": 1}]);
    let html = run.report().unwrap();
    check_page(&html);
    assert!(html.contains("&lt;script&gt;alert(1)"));
    assert!(html.contains("<i>U+202E</i>") && html.contains("<i>U+0000</i>"));
    assert!(!html.contains(['\u{202e}', '\u{2066}', '\u{1b}', '\u{0}']));
    assert!(html.contains("javascript:alert(1)</bdi>"));
}

#[test]
fn sources_that_are_gone_or_changed() {
    let run = run_of(["a rose is a rose", "a rose was a rose"]);
    let source = run.path("pair.jsonl");
    let text = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, text.replace("was", "has")).unwrap();
    let html = run.report().unwrap();
    assert!(html.contains("now contains another text"));
    assert!(html.contains("the other could not"));
    std::fs::write(&source, "{}").unwrap();
    assert!(run.report().unwrap().contains("has changed since"));
    std::fs::remove_file(&source).unwrap();
    let html = run.report().unwrap();
    check_page(&html);
    assert_eq!(html.matches("no longer exists").count(), 2);
}

#[test]
fn a_file_that_is_an_input_twice() {
    let mut run = run_of(["a rose", "a thorn"]);
    let (position, digest) = (run.rows[0].position.clone(), run.rows[0].digest.clone());
    (run.rows[1].position, run.rows[1].digest) = (position, digest);
    let html = run.report().unwrap();
    assert!(html.contains("All 2 tokens are equal: the two texts are identical."));
}

/// A million words, changed everywhere; one line of five megabytes without whitespace; one token.
#[test]
fn huge_texts_stay_small() {
    let words: Vec<String> = (0..1_000_000_u32).map(|i| (i % 7919).to_string()).collect();
    let text = words.join(" ");
    let changed = text.replace("77", "rose");
    let line = "ab\u{301}".repeat(1_300_000);
    let ideographs = "薔".repeat(1_000_000);
    for (a, b) in [
        (text.as_str(), changed.as_str()),
        (&line, &changed),
        (&line, &line[1..]),
        (&ideographs, &ideographs[3..]),
    ] {
        let html = run_of([a, b]).report().unwrap();
        check_page(&html);
        assert!(!html.contains("Its source"));
        assert!(html.len() < 200_000, "{} bytes", html.len());
    }
}

#[test]
fn damaged_files_are_named_and_the_old_report_stays() {
    let mut run = Run::of_small_web(10);
    let html = run.report().unwrap();
    let check = |run: &Run, file: &str| {
        let error = run.report().unwrap_err();
        assert!(error.to_string().contains(file), "{error}");
        assert_eq!(
            std::fs::read_to_string(run.path("report.html")).unwrap(),
            html
        );
        assert!(!run.path("report.html.part").exists());
    };
    let whole = run.summary.clone();
    run.summary["counts"]["kept"] = json!(0);
    check(&run, "summary.json");
    run.summary = json!({"version": "0.1.0"});
    check(&run, "summary.json");
    run.summary = whole.clone();
    run.rows[3].cluster = 9999;
    check(&run, "documents.parquet");
    run.rows[3].cluster = 3;
    run.rows.push(row("more", 5));
    check(&run, "documents.parquet");
}

#[test]
fn missing_tables_are_named() {
    let run = Run::of_small_web(10);
    for name in ["summary.json", "documents.parquet", "pairs.parquet"] {
        run.write_files();
        std::fs::remove_file(run.path(name)).unwrap();
        let error = write(run.folder(), &Config::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        std::fs::write(run.path(name), "no table").unwrap();
        let error = write(run.folder(), &Config::default()).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn pairs_without_similarity_have_a_place() {
    let mut run = run_of(["a rose is a rose", "a rose was a rose"]);
    run.pairs[0].jaccard = None;
    run.pairs[0].c_sim = Some(380);
    run.pairs[0].rule = "c";
    let html = run.report().unwrap();
    check_page(&html);
    assert!(html.contains("Similarity not computed"));
    assert!(html.contains("<b>380</b> of 384"));
}
