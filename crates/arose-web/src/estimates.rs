//! The page of estimates: the studies of `arose estimate study` in the directory or just below it.

use std::fs;
use std::path::{Path, PathBuf};

use arose_dedup::report::html::Count;
use askama::Template;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use serde_json::Value;

use crate::answer::Refusal;
use crate::html::{Markup, name, prose, render};
use crate::lanes::{Lane, work};
use crate::nav::{Nav, Tab};
use crate::site::{Shared, View};

/// The file that a study writes.
const FILE: &str = "estimates.json";

/// Maximum size of such a file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of studies shown.
const MAX_STUDIES: usize = 20;

/// Maximum number of estimates and notes shown of one method.
const MAX_ROWS: usize = 200;

/// The studies of a directory, in the order of their names.
pub(crate) fn studies(folder: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = below.map(|entry| entry.path()).filter(|path| path.is_dir());
    let all = std::iter::once(folder.to_owned()).chain(below);
    let mut files: Vec<PathBuf> = all
        .map(|path| path.join(FILE))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.truncate(MAX_STUDIES);
    files
}

#[derive(Template)]
#[template(path = "estimates.html")]
struct Page {
    nav: Nav,
    studies: Vec<Study>,
}

struct Study {
    name: Markup,
    fault: Option<String>,
    engines: Vec<Markup>,
    methods: Vec<Method>,
    /// Methods without a result, each with the reason.
    refused: Vec<(Markup, Markup)>,
}

struct Method {
    name: Markup,
    counted: Markup,
    figures: Vec<Figure>,
    warnings: Vec<Markup>,
    /// Names and effects.
    biases: Vec<(Markup, Markup)>,
}

struct Figure {
    name: Markup,
    /// Remarks, including the reason if it has no value.
    notes: Vec<Markup>,
    value: String,
    interval: String,
    n_samples: String,
}

pub(crate) async fn page(State(site): State<Shared>) -> Result<Response, Refusal> {
    let page = work(&site, Lane::Light, |view, _| page_of(view)).await?;
    Ok(Html(page).into_response())
}

fn page_of(view: &View) -> Result<String, Refusal> {
    let folder = &view.folder.path;
    let studies: Vec<Study> = studies(folder)
        .iter()
        .map(|file| study(folder, file))
        .collect();
    match studies.is_empty() {
        true => Err(Refusal::not_found(
            "This directory contains no estimates. `arose estimate study -o DIR` writes them.",
        )),
        false => Ok(render(&Page {
            nav: Nav::new(view, Tab::Estimates),
            studies,
        })),
    }
}

fn study(folder: &Path, file: &Path) -> Study {
    let place = file.parent().unwrap_or(file);
    let place = place
        .strip_prefix(folder)
        .unwrap_or(place)
        .to_string_lossy();
    let mut study = Study {
        name: name(if place.is_empty() {
            "this directory"
        } else {
            &place
        }),
        fault: None,
        engines: Vec::new(),
        methods: Vec::new(),
        refused: Vec::new(),
    };
    match read(file) {
        Ok(value) => {
            study.engines = texts(&value["engines"]);
            study.methods = list(&value["findings"]).map(method).collect();
            study.refused = named(&value["refused"], ["method", "reason"]);
        }
        Err(fault) => study.fault = Some(fault),
    }
    study
}

fn read(file: &Path) -> Result<Value, String> {
    let n_bytes = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if n_bytes > MAX_BYTES {
        return Err(format!(
            "the file has {} bytes, which is too large to show",
            Count(n_bytes)
        ));
    }
    let bytes = fs::read(file).map_err(|error| error.to_string())?;
    serde_json::from_slice(&bytes).map_err(|error| error.to_string())
}

fn method(value: &Value) -> Method {
    Method {
        name: text(&value["method"]),
        counted: text(&value["counted"]),
        figures: list(&value["figures"]).map(figure).collect(),
        warnings: texts(&value["warnings"]),
        biases: named(&value["biases"], ["name", "effect"]),
    }
}

fn figure(value: &Value) -> Figure {
    let number = |value: &Value| value.as_f64().map_or_else(|| "–".to_owned(), shown_number);
    let interval = &value["interval"];
    let mut notes = texts(&value["notes"]);
    if value["refused"].is_string() {
        notes.push(text(&value["refused"]));
    }
    Figure {
        name: text(&value["name"]),
        notes,
        value: number(&value["value"]),
        interval: match (interval.get(0), interval.get(1)) {
            (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
            _ => "–".to_owned(),
        },
        n_samples: value["n_samples"]
            .as_u64()
            .map_or_else(|| "–".to_owned(), |n| Count(n).to_string()),
    }
}

/// A number with its significant digits.
fn shown_number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", Count(size.round() as u64))
        }
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten().take(MAX_ROWS)
}

fn text(value: &Value) -> Markup {
    prose(value.as_str().unwrap_or_default())
}

fn texts(value: &Value) -> Vec<Markup> {
    list(value).map(text).collect()
}

/// Two texts of each object in a list.
fn named(value: &Value, keys: [&str; 2]) -> Vec<(Markup, Markup)> {
    let pair = |value: &Value| (text(&value[keys[0]]), text(&value[keys[1]]));
    list(value).map(pair).collect()
}
