//! Scores ways to find the main content of a page, and writes the rows a new forest is trained on.
//!
//! `bench-extract score DATA` prints a table over the sets below `DATA`; `bench-extract rows SET`
//! writes a JSON line per page with the text and the numbers of every block.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use arose_corpus::html::content::{Forest, LinkDensity, MainContent, measure};
use serde_json::{Value, json};

#[path = "../../../crates/arose-corpus/tests/it/score.rs"]
mod score;

use score::{Shingles, mean, word_f1};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["score", data] => score_all(Path::new(data)),
        ["rows", set] => write_rows(Path::new(set)),
        _ => eprintln!("usage: bench-extract score DATA | rows SET"),
    }
}

/// A port of Readability.js.
struct DomSmoothie;

impl MainContent for DomSmoothie {
    fn main_text(&self, html: &str) -> String {
        let article = dom_smoothie::Readability::new(html, None, None).and_then(|mut r| r.parse());
        article
            .map(|article| all_text(&article.content))
            .unwrap_or_default()
    }
}

/// A port of go-trafilatura.
struct Trafilatura;

impl MainContent for Trafilatura {
    fn main_text(&self, html: &str) -> String {
        let found = trafilatura::extract(html, &trafilatura::Options::default());
        found.map(|found| found.content_text).unwrap_or_default()
    }
}

/// Everything the page says.
struct Everything;

impl MainContent for Everything {
    fn main_text(&self, html: &str) -> String {
        all_text(html)
    }
}

fn all_text(html: &str) -> String {
    let blocks = measure(html);
    blocks
        .iter()
        .map(|block| block.text.as_str())
        .collect::<Vec<_>>()
        .join("\n")
}

fn score_all(data: &Path) {
    let mixed = read(&data.join("extract-wcxb-dev"));
    let articles = read(&data.join("extract-articles-181"));
    let reader = read(&data.join("extract-readability-130"));
    println!(
        "| method | word F1, 568 mixed | 4-gram F1, 181 articles | word F1 to reader view | ms/page |"
    );
    println!("|---|---|---|---|---|");
    let methods: [(&str, &dyn MainContent); 5] = [
        ("forest (ours, seen in training)", &Forest),
        ("link density (ours)", &LinkDensity),
        ("dom_smoothie 0.19", &DomSmoothie),
        ("trafilatura 0.6 (Rust)", &Trafilatura),
        ("everything", &Everything),
    ];
    for (name, method) in methods {
        let start = Instant::now();
        let words = mean(&run(method, &mixed, |page| text(page, "main_content")));
        let mut shingles = Shingles::default();
        for page in &articles {
            shingles.add(
                &method.main_text(&text(page, "html")),
                &text(page, "article_body"),
            );
        }
        let view = mean(&run(method, &reader, |page| {
            all_text(&text(page, "expected_html"))
        }));
        let n_pages = mixed.len() + articles.len() + reader.len();
        let ms = start.elapsed().as_secs_f64() * 1e3 / n_pages as f64;
        let f1 = shingles.result()[0];
        println!("| {name} | {words:.3} | {f1:.3} | {view:.3} | {ms:.2} |");
    }
}

fn run(method: &dyn MainContent, pages: &[Value], truth: impl Fn(&Value) -> String) -> Vec<f64> {
    pages
        .iter()
        .map(|page| word_f1(&method.main_text(&text(page, "html")), &truth(page)))
        .collect()
}

fn write_rows(set: &Path) {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for page in read(set) {
        let blocks = measure(&text(&page, "html"));
        let blocks: Vec<Value> = blocks
            .into_iter()
            .map(|block| json!([block.text, block.features]))
            .collect();
        let truth = page
            .get("main_content")
            .or_else(|| page.get("article_body"));
        let row =
            json!({"id": page["id"], "kind": page["page_type"], "truth": truth, "blocks": blocks});
        writeln!(out, "{row}").expect("standard output is open");
    }
}

fn read(set: &Path) -> Vec<Value> {
    let file = std::fs::File::open(set.join("pages.jsonl.zst")).expect("the set is there");
    let text = std::io::read_to_string(zstd::Decoder::new(file).expect("zstd")).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn text(page: &Value, key: &str) -> String {
    page[key].as_str().unwrap_or_default().to_owned()
}
