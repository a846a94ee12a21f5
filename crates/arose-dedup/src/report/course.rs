//! The section on the course of the run: recall, time, settings.

use std::fmt::{self, Write};

use serde_json::Value;

use super::html::{Count, Text, bytes, clip, counted, seconds};
use super::page::section;
use super::plot;
use crate::results::{Cap, Recall, Summary};

/// Maximum number of characters shown of a setting.
const MAX_VALUE: usize = 200;

/// Writes the section.
pub(super) fn put(f: &mut String, summary: &Summary) -> fmt::Result {
    section(f, "run", "The run")?;
    f.write_str("<div class=\"plots\">\n<div><h3>Recall</h3>\n")?;
    recall(f, &summary.recall)?;
    cap(f, &summary.cap)?;
    f.write_str("</div>\n<div><h3>Time</h3>\n")?;
    stages(f, summary)?;
    f.write_str("</div>\n<div><h3>Settings</h3>\n")?;
    settings(f, summary)?;
    f.write_str("</div>\n</div>\n</section>\n")
}

fn recall(f: &mut String, recall: &Recall) -> fmt::Result {
    if let Some(estimated) = recall.estimated {
        writeln!(
            f,
            "<p>Estimated recall: <strong>{}</strong>.</p>",
            fraction(estimated)
        )?;
    }
    if recall.promised.is_empty() {
        return Ok(());
    }
    f.write_str(
        "<table class=\"bars\"><caption>Expected recall by similarity</caption><thead><tr>\
         <th scope=\"col\">Similarity</th><th scope=\"col\" class=\"n\">Found</th><td></td>\
         </tr></thead><tbody>",
    )?;
    for promise in &recall.promised {
        write!(
            f,
            "<tr><th scope=\"row\">{:.2}</th><td class=\"n\">{}</td><td>",
            promise.similarity,
            fraction(promise.probability)
        )?;
        plot::inline_bar(f, promise.probability)?;
        f.write_str("</td></tr>\n")?;
    }
    f.write_str("</tbody></table>\n")
}

fn cap(f: &mut String, cap: &Cap) -> fmt::Result {
    match cap.runs {
        0 => f.write_str("<p class=\"note\">No key exceeded the cap.</p>\n"),
        runs => writeln!(
            f,
            "<p class=\"note\">{} shared by more documents than the cap: {} in them, {} not compared \
             with each other.</p>",
            counted(runs, "key was", "keys were"),
            counted(cap.documents, "document", "documents"),
            counted(cap.pairs_not_compared, "pair", "pairs")
        ),
    }
}

fn stages(f: &mut String, summary: &Summary) -> fmt::Result {
    let times = || summary.stages.iter().map(|stage| stage.seconds);
    let longest = times().fold(f64::MIN_POSITIVE, f64::max);
    write!(f, "<p>{} in all", seconds(times().sum()))?;
    if let Some(peak) = summary.peak_memory_bytes {
        write!(f, ", with at most {} of memory", bytes(peak))?;
    }
    f.write_str(
        ".</p>\n<table class=\"bars\"><caption>Time per stage</caption><thead><tr>\
         <th scope=\"col\">Stage</th><th scope=\"col\" class=\"n\">Records</th>\
         <th scope=\"col\" class=\"n\">Time</th><td></td></tr></thead><tbody>",
    )?;
    for stage in &summary.stages {
        write!(
            f,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td>",
            Text(&clip(&stage.name, MAX_VALUE)),
            Count(stage.records),
            seconds(stage.seconds)
        )?;
        plot::inline_bar(f, stage.seconds / longest)?;
        f.write_str("</td></tr>\n")?;
    }
    f.write_str("</tbody></table>")
}

fn settings(f: &mut String, summary: &Summary) -> fmt::Result {
    f.write_str(
        "<table><thead><tr><th scope=\"col\">Setting</th><th scope=\"col\">Value</th></tr>\
         </thead><tbody>",
    )?;
    for (name, value) in &summary.settings {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Null => "none".to_owned(),
            other => other.to_string(),
        };
        writeln!(
            f,
            "<tr><th scope=\"row\">{}</th><td><code>{}</code></td></tr>",
            Text(&clip(name, MAX_VALUE)),
            Text(&clip(&value, MAX_VALUE))
        )?;
    }
    f.write_str("</tbody></table>")
}

/// Formats a probability, with all its leading nines and one more digit.
fn fraction(probability: f64) -> String {
    let digits = match 1.0 - probability {
        0.01.. => 1,
        0.001.. => 2,
        0.0001.. => 3,
        _ => 4,
    };
    match probability {
        1.0.. => "100%".to_owned(),
        0.999_999..1.0 => "> 99.9999%".to_owned(),
        _ => format!("{:.digits$}%", 100.0 * probability),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_are_not_rounded_away() {
        let shown = [
            0.0,
            0.5,
            0.985,
            0.995_2,
            0.999_63,
            0.999_993,
            0.999_999_9,
            1.0,
        ]
        .map(fraction);
        let expected = [
            "0.0%",
            "50.0%",
            "98.5%",
            "99.52%",
            "99.963%",
            "99.9993%",
            "> 99.9999%",
            "100%",
        ];
        assert_eq!(shown, expected);
    }
}
