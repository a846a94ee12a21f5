//! The state of a crawl that looks for a topic.

use std::io::{self, Write};

use arose_crawl::Topic;
use serde_json::{Value, json};

/// Number of points of the harvest curve that are printed.
const N_POINTS: usize = 10;

/// The topic in the form of `arose crawl status --json`.
pub(super) fn topic_json(topic: &Topic) -> Value {
    json!({
        "pages": topic.n_pages,
        "on_topic": topic.n_fitting,
        "harvest_rate": rate(topic),
        "harvest": topic.harvest.iter().map(|&rate| short(rate)).collect::<Vec<_>>(),
        "best_words": words_json(&topic.best_words),
        "worst_words": words_json(&topic.worst_words),
        "worst_pages": topic.worst_pages.iter().map(page_json).collect::<Vec<_>>(),
    })
}

fn words_json(words: &[(String, f32)]) -> Vec<Value> {
    let words = words.iter();
    words
        .map(|(word, weight)| json!({"word": word, "weight": short(*weight)}))
        .collect()
}

fn page_json((url, score, predicted): &(String, f32, f32)) -> Value {
    json!({"url": url, "score": short(*score), "predicted": short(*predicted)})
}

fn short(number: f32) -> f64 {
    (f64::from(number) * 1e4).round() / 1e4
}

fn rate(topic: &Topic) -> f64 {
    let rate = topic.n_fitting as f64 / topic.n_pages.max(1) as f64;
    (rate * 1e4).round() / 1e4
}

/// Writes the harvest, the words that speak for and against pages, and the pages that disappoint.
pub(super) fn write(out: &mut impl Write, topic: &Topic) -> io::Result<()> {
    writeln!(
        out,
        "\nharvest: {} of {} pages on topic ({:.1}%)",
        topic.n_fitting,
        topic.n_pages,
        100.0 * rate(topic)
    )?;
    if !topic.harvest.is_empty() {
        let from = topic.harvest.len().saturating_sub(N_POINTS);
        let points = topic.harvest[from..].iter();
        let points: Vec<String> = points.map(|rate| format!("{:.1}%", 100.0 * rate)).collect();
        writeln!(out, "last thousands of pages: {}", points.join(" "))?;
    }
    for (title, words) in [
        ("link words for the topic", &topic.best_words),
        ("link words against the topic", &topic.worst_words),
    ] {
        if !words.is_empty() {
            let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
            writeln!(out, "{title}: {}", words.join(" "))?;
        }
    }
    if !topic.worst_pages.is_empty() {
        writeln!(
            out,
            "\n{:>9} {:>9}  pages far below their predicted score",
            "score", "predicted"
        )?;
        for (url, score, predicted) in &topic.worst_pages {
            writeln!(out, "{score:>9.3} {predicted:>9.3}  {url}")?;
        }
    }
    Ok(())
}
