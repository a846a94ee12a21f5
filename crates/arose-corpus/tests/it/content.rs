//! Compares main content with three sets of real pages.
//!
//! The forest was trained on the first two sets. These scores are therefore lower bounds against
//! regressions, not estimates for unseen pages; those come from cross-validation (see
//! `bench/extract`).

use arose_corpus::html::content::{Forest, LinkDensity, MainContent, measure};
use serde_json::Value;

use crate::score::{Shingles, mean, word_f1};
use crate::shared::pages;

fn word_f1_of(method: &dyn MainContent, pages: &[Value]) -> f64 {
    let score = |page: &Value| {
        let found = method.main_text(page["html"].as_str().unwrap());
        word_f1(&found, page["main_content"].as_str().unwrap_or(""))
    };
    mean(&pages.iter().map(score).collect::<Vec<f64>>())
}

#[test]
fn pages_of_seven_kinds() {
    let pages = pages("extract-wcxb-dev");
    if pages.is_empty() {
        return;
    }
    let (forest, density) = (
        word_f1_of(&Forest, &pages),
        word_f1_of(&LinkDensity, &pages),
    );
    println!("extract-wcxb-dev: word F1 forest {forest:.3}, link density {density:.3}");
    assert!(forest >= 0.86);
    assert!(density >= 0.60);
}

#[test]
fn articles() {
    let pages = pages("extract-articles-181");
    if pages.is_empty() {
        return;
    }
    let mut shingles = Shingles::default();
    for page in &pages {
        let found = Forest.main_text(page["html"].as_str().unwrap());
        shingles.add(&found, page["article_body"].as_str().unwrap());
    }
    let [f1, precision, recall] = shingles.result();
    println!("extract-articles-181: F1 {f1:.3}, precision {precision:.3}, recall {recall:.3}");
    assert!(f1 >= 0.95);
}

/// Agreement with Readability.js, which is another tool and not a ground truth; no page of this set
/// was used in training.
#[test]
fn reader_view() {
    let pages = pages("extract-readability-130");
    if pages.is_empty() {
        return;
    }
    let score = |page: &Value| {
        let found = Forest.main_text(page["html"].as_str().unwrap());
        let expected = measure(page["expected_html"].as_str().unwrap());
        let expected: Vec<&str> = expected.iter().map(|block| block.text.as_str()).collect();
        word_f1(&found, &expected.join("\n"))
    };
    let agreement = mean(&pages.iter().map(score).collect::<Vec<f64>>());
    println!("extract-readability-130: word F1 against the peer {agreement:.3}");
    assert!(agreement >= 0.80);
}
