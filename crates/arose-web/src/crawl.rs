//! The page of a running or finished crawl, from `statistics.jsonl` in its directory.
//!
//! The crawler appends a line every few seconds. A line is an object with `seconds` since the
//! start, the counters by name, the numbers of hosts and of URLs in the queue, and optionally the
//! responses by status and the slowest hosts. Missing values are not shown, and partial or
//! malformed lines are skipped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use arose_dedup::report::html::{Count, bytes, seconds};
use askama::Template;
use axum::Form;
use axum::extract::{Path as UrlPath, Query, State as Site};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agents::{AgentRow, agents};
use crate::answer::Refusal;
use crate::bar_plot::{Bar, bar_plot};
use crate::html::{Markup, name, render};
use crate::lanes::{Lane, work};
use crate::line_plot::{line_plot, number};
use crate::nav::{Nav, Tab};
use crate::site::{Shared, View};

/// The file that a crawl writes.
const FILE: &str = "statistics.jsonl";

/// The file that identifies a crawl.
const JOURNAL: &str = "journal";

/// Maximum number of bytes of the file that are read; the crawler thins it out long before.
const MAX_BYTES: u64 = 32 << 20;

/// Maximum number of samples; if there are more, every second one is dropped repeatedly.
const MAX_SAMPLES: usize = 2000;

/// Maximum number of hosts and states listed.
const MAX_ROWS: usize = 12;

/// One line of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Sample {
    /// Seconds since the start of the crawl.
    pub(crate) seconds: f64,
    /// Responses by status.
    pub(crate) statuses: BTreeMap<String, u64>,
    /// Hosts and their response times in milliseconds.
    pub(crate) slowest: Vec<(String, f64)>,
    /// The most trusted sites, with their trust, their share, and the number of pages requested.
    pub(crate) sites: Vec<(String, f64, f64, u64)>,
    /// The sites with the most pages of low quality: the number of these, the number of pages read,
    /// and whether the site gets only one request per day.
    pub(crate) poor_sites: Vec<(String, u64, u64, bool)>,
    /// URL rules.
    pub(crate) url_rules: Vec<RuleSample>,
    /// The next URLs, with their mass and the share of their site.
    pub(crate) next: Vec<(String, f64, f64)>,
    /// The estimated share of pages that are up to date, if pages are visited again.
    pub(crate) fresh: Option<f64>,
    /// By maximum days since the last visit: number of pages, and the share up to date.
    pub(crate) fresh_by_age: Vec<(Option<f64>, u64, f64)>,
    /// By maximum changes per day: number of pages.
    pub(crate) pages_by_rate: Vec<(Option<f64>, u64)>,
    /// Sites with their number of pages, the share up to date, and the changes of a page per day.
    pub(crate) fresh_sites: Vec<(String, u64, f64, f64)>,
    /// The state of a crawl that looks for a topic.
    pub(crate) topic: Option<Topic>,
    /// Whether this is the last line.
    pub(crate) is_done: bool,
    /// All counters.
    #[serde(flatten)]
    pub(crate) counters: BTreeMap<String, Value>,
}

/// A URL rule: scope, rule, state, equal and different pairs, probes, URLs deferred and audited.
pub(crate) type RuleSample = (String, String, String, u64, u64, u64, u64, u64);

/// The state of a crawl that looks for a topic.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Topic {
    /// The share of pages on topic in each 1,000 pages; the last points.
    pub(crate) harvest: Vec<f64>,
    /// Words of links that speak for a page, and against it.
    pub(crate) best_words: Vec<(String, f64)>,
    pub(crate) worst_words: Vec<(String, f64)>,
    /// The pages that fit least among those expected to fit: URL, score, prediction.
    pub(crate) worst_pages: Vec<(String, f64, f64)>,
}

impl Sample {
    fn counter(&self, name: &str) -> Option<f64> {
        self.counters.get(name)?.as_f64()
    }
}

/// Minimum time over which a rate is computed: the sample at the end of a crawl may follow
/// immediately.
const MIN_SECONDS: f64 = 0.5;

/// The statistics of the served crawl. If the served directory is a run inside a crawl, those of
/// the directory above.
pub(crate) fn file(folder: &Path) -> Option<PathBuf> {
    let above = || {
        let above = folder.canonicalize().ok()?.parent()?.to_owned();
        above.join(JOURNAL).is_file().then(|| above.join(FILE))
    };
    let own = folder.join(FILE);
    match own.is_file() {
        true => Some(own),
        false => above().filter(|file| file.is_file()),
    }
}

/// The samples of a crawl, oldest first.
pub(crate) fn samples(folder: &Path) -> Result<Vec<Sample>, Refusal> {
    let file = file(folder).and_then(|file| File::open(file).ok());
    let file = file.ok_or_else(|| {
        Refusal::not_found(
            "This directory contains no statistics of a crawl. `arose crawl SEED -o DIR` writes them \
             while it runs.",
        )
    })?;
    let mut samples: Vec<Sample> = Vec::new();
    let mut step = 1;
    for (number, line) in BufReader::new(file.take(MAX_BYTES))
        .split(b'\n')
        .enumerate()
    {
        let Ok(line) = line else { break };
        let Ok(sample) = serde_json::from_slice::<Sample>(&line) else {
            continue;
        };
        // The last sample is always included.
        match number % step {
            0 => samples.push(sample),
            _ => samples.splice(samples.len() - 1.., [sample]).for_each(drop),
        }
        if samples.len() > MAX_SAMPLES {
            step *= 2;
            let mut n = 0;
            samples.retain(|_| {
                n += 1;
                n % 2 == 1
            });
        }
    }
    match samples.is_empty() {
        true => Err(Refusal::not_found(
            "The crawl has written no statistics yet. Reload this page in a moment.",
        )),
        false => Ok(samples),
    }
}

#[derive(Template)]
#[template(path = "crawl.html")]
struct Page {
    nav: Nav,
    state: State,
    agents: Vec<AgentRow>,
    /// Whether a process is running that accepts orders.
    takes_orders: bool,
    was_reloaded: bool,
    since: String,
    figures: Vec<(&'static str, String)>,
    plots: Vec<Markup>,
    counters: Vec<(String, String)>,
    statuses: Vec<(Markup, Count)>,
    slowest: Vec<(Markup, String)>,
    sites: Vec<(Markup, [String; 2], Count)>,
    poor_sites: Vec<(Markup, [Count; 2], bool)>,
    url_rules: Vec<RuleRow>,
    next: Vec<(Markup, [String; 3])>,
    fresh_by_age: Vec<(String, Count, String)>,
    pages_by_rate: Vec<(String, Count)>,
    fresh_sites: Vec<(Markup, Count, [String; 2])>,
    best_words: Vec<(Markup, String)>,
    worst_words: Vec<(Markup, String)>,
    worst_pages: Vec<(Markup, [String; 2])>,
}

/// A URL rule.
struct RuleRow {
    scope: Markup,
    rule: Markup,
    state: Markup,
    /// The number of each kind, with its name.
    counts: Vec<(&'static str, Count)>,
    /// Scope and rule, as orders name them, and whether the rule can be switched off, or on.
    name: String,
    is_active: bool,
}

/// The query parameters of the page.
#[derive(Debug, Deserialize)]
pub(crate) struct Ask {
    /// The last order given.
    order: Option<String>,
}

pub(crate) async fn page(
    Site(site): Site<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let was_reloaded = ask.order.as_deref() == Some("reload");
    let page = work(&site, Lane::Light, move |view, _| {
        let samples = samples(&view.folder.path)?;
        Ok(render(&Page {
            was_reloaded,
            ..page_of(view, &samples)
        }))
    })
    .await?;
    Ok(Html(page).into_response())
}

/// The state of a crawl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Paused,
    Finished,
    /// Its process ended before it could record its end.
    Interrupted,
}

/// The state of the crawl in a directory, whose last line is `last`.
fn state(folder: &Path, last: &Sample) -> State {
    match (arose_crawl::is_running(folder), last.is_done) {
        (Ok(true), _) if arose_crawl::is_paused(folder) => State::Paused,
        (Ok(true), _) => State::Running,
        (_, true) => State::Finished,
        (Ok(false), false) => State::Interrupted,
        // Only statistics, perhaps of a crawl on another machine.
        (Err(_), false) => State::Running,
    }
}

/// Passes an order on to the running crawl: `pause`, `resume` or `reload`.
pub(crate) async fn order(
    Site(site): Site<Shared>,
    UrlPath(order): UrlPath<String>,
) -> Result<Response, Refusal> {
    let to = match order.as_str() {
        "reload" => "/crawl?order=reload",
        _ => "/crawl",
    };
    work(&site, Lane::Light, move |view, _| {
        let folder = &view.folder.path;
        let taken = match order.as_str() {
            "pause" => arose_crawl::pause(folder),
            "resume" => arose_crawl::resume(folder),
            "reload" => arose_crawl::reload(folder),
            _ => return Err(Refusal::not_found("A crawl can pause, resume and reload.")),
        };
        taken.map_err(|error| Refusal {
            status: StatusCode::CONFLICT,
            title: "Order failed",
            detail: format!("The crawl did not carry out the order: {error}."),
        })
    })
    .await?;
    Ok(Redirect::to(to).into_response())
}

/// A URL rule to switch.
#[derive(Debug, Deserialize)]
pub(crate) struct Switch {
    /// Scope and rule, separated by a space.
    rule: String,
    /// `on` or `off`.
    to: String,
}

/// Switches a URL rule of the crawl on or off.
pub(crate) async fn switch(
    Site(site): Site<Shared>,
    Form(switch): Form<Switch>,
) -> Result<Response, Refusal> {
    work(&site, Lane::Light, move |view, _| {
        let state = match switch.to.as_str() {
            "on" => arose::dust::State::Active,
            "off" => arose::dust::State::Suspended,
            _ => return Err(Refusal::not_found("A URL rule can be switched on and off.")),
        };
        let folder = &view.folder.path;
        let refuse = |error: arose_crawl::Error| Refusal {
            status: StatusCode::CONFLICT,
            title: "Rule not switched",
            detail: format!("The crawl did not switch the rule: {error}."),
        };
        let rules = arose_crawl::url_rules(folder).map_err(refuse)?;
        let is_it =
            |rule: &&arose_crawl::UrlRule| format!("{} {}", rule.scope, rule.rule) == switch.rule;
        let Some(rule) = rules.iter().find(is_it) else {
            return Err(Refusal::not_found("The crawl has no such URL rule."));
        };
        let rule = arose_crawl::UrlRule {
            state,
            ..rule.clone()
        };
        arose_crawl::order_rules(folder, &[rule]).map_err(refuse)
    })
    .await?;
    Ok(Redirect::to("/crawl").into_response())
}

fn page_of(view: &View, samples: &[Sample]) -> Page {
    let last = samples.last().cloned().unwrap_or_default();
    let count = |name: &str| last.counter(name).map(|n| Count(n as u64).to_string());
    let dropped = last.counter("exact_duplicates").unwrap_or(0.0)
        + last.counter("near_duplicates").unwrap_or(0.0);
    let rate = last.counter("pages").unwrap_or(0.0) / last.seconds.max(1e-3);
    let figures = [
        ("pages", count("pages")),
        ("pages per second on average", Some(number(rate))),
        ("URLs in the queue", count("queue")),
        ("hosts", count("hosts")),
        (
            "URLs deferred by rules",
            last.counter("deferred")
                .filter(|&n| n > 0.0)
                .map(|n| Count(n as u64).to_string()),
        ),
        ("duplicates found", Some(Count(dropped as u64).to_string())),
        ("received", last.counter("bytes").map(|n| bytes(n as u64))),
        ("pages up to date (estimate)", last.fresh.map(percent)),
        (
            "pages on topic",
            last.topic
                .as_ref()
                .and_then(|_| harvest_rate(&last))
                .map(percent),
        ),
    ];
    let figures = figures
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    let curve = |name: &str| -> Vec<(f64, f64)> {
        let values = samples
            .iter()
            .filter_map(|s| Some((s.seconds, s.counter(name)?)));
        values.collect()
    };
    let again = |name: &str| match last.fresh {
        Some(_) => curve(name),
        None => Vec::new(),
    };
    let fresh = samples
        .iter()
        .filter_map(|sample| Some((sample.seconds, 100.0 * sample.fresh?)))
        .collect();
    let plots = [
        ("Pages per second", rates(&curve("pages"))),
        ("URLs in the queue", curve("queue")),
        ("Hosts", curve("hosts")),
        (
            "Duplicates found",
            sums(&curve("exact_duplicates"), &curve("near_duplicates")),
        ),
        ("Visits per second", rates(&again("revisits"))),
        ("Changed pages found", again("changed")),
        ("Pages up to date in percent (estimate)", fresh),
        ("Harvest: pages on topic in percent", harvest(samples)),
    ];
    let plots = plots.into_iter().filter(|(_, points)| !points.is_empty());
    let plots = plots.map(|(title, points)| line_plot(title, &points));
    let counters = last.counters.iter().filter_map(|(name, value)| {
        let n = value.as_f64()? as u64;
        let is_size = ["bytes", "memory"].contains(&name.as_str());
        let value = if is_size {
            bytes(n)
        } else {
            Count(n).to_string()
        };
        Some((name.replace('_', " "), value))
    });
    let topic = last.topic.clone().unwrap_or_default();
    let words = |words: &[(String, f64)]| -> Vec<(Markup, String)> {
        let words = words.iter().take(MAX_ROWS);
        words
            .map(|(word, weight)| (name(word), figure(*weight)))
            .collect()
    };
    let mut slowest = last.slowest.clone();
    slowest.sort_by(|a, b| b.1.total_cmp(&a.1));
    Page {
        nav: Nav::new(view, Tab::Crawl),
        state: state(&view.folder.path, &last),
        agents: agents(&view.folder.path),
        takes_orders: arose_crawl::is_running(&view.folder.path).unwrap_or(false),
        was_reloaded: false,
        since: seconds(last.seconds),
        figures: figures.collect(),
        plots: plots.chain(freshness_plots(&last)).collect(),
        counters: counters.collect(),
        statuses: last
            .statuses
            .iter()
            .take(MAX_ROWS)
            .map(|(status, &n)| (name(status), Count(n)))
            .collect(),
        slowest: slowest
            .iter()
            .take(MAX_ROWS)
            .map(|(host, ms)| (name(host), seconds(ms / 1000.0)))
            .collect(),
        sites: last
            .sites
            .iter()
            .take(MAX_ROWS)
            .map(|(site, trust, share, n)| (name(site), [*trust, *share].map(figure), Count(*n)))
            .collect(),
        poor_sites: last
            .poor_sites
            .iter()
            .take(MAX_ROWS)
            .map(|(site, n_low, n, is_bad)| (name(site), [Count(*n_low), Count(*n)], *is_bad))
            .collect(),
        url_rules: last
            .url_rules
            .iter()
            .take(MAX_ROWS)
            .map(
                |(scope, rule, state, same, different, probes, deferred, audited)| RuleRow {
                    scope: name(scope),
                    rule: name(rule),
                    state: name(state),
                    counts: vec![
                        ("Same", Count(*same)),
                        ("Different", Count(*different)),
                        ("Probes", Count(*probes)),
                        ("Deferred", Count(*deferred)),
                        ("Audited", Count(*audited)),
                    ],
                    name: format!("{scope} {rule}"),
                    is_active: state == "active",
                },
            )
            .collect(),
        next: last
            .next
            .iter()
            .take(MAX_ROWS)
            .map(|(url, mass, share)| (name(url), [*mass, *share, mass * share].map(figure)))
            .collect(),
        fresh_by_age: last
            .fresh_by_age
            .iter()
            .take(MAX_ROWS)
            .map(|&(days, n, fresh)| (bound(days), Count(n), share_of(n, fresh)))
            .collect(),
        pages_by_rate: last
            .pages_by_rate
            .iter()
            .take(MAX_ROWS)
            .map(|(rate, n)| (bound(*rate), Count(*n)))
            .collect(),
        fresh_sites: last
            .fresh_sites
            .iter()
            .take(MAX_ROWS)
            .map(|(site, n, fresh, rate)| (name(site), Count(*n), [percent(*fresh), figure(*rate)]))
            .collect(),
        best_words: words(&topic.best_words),
        worst_words: words(&topic.worst_words),
        worst_pages: topic
            .worst_pages
            .iter()
            .take(MAX_ROWS)
            .map(|(url, score, predicted)| (name(url), [*score, *predicted].map(figure)))
            .collect(),
    }
}

/// The share of scored pages that fit the topic.
fn harvest_rate(sample: &Sample) -> Option<f64> {
    let n_scored = sample.counter("scored")?;
    Some(sample.counter("on_topic")? / n_scored.max(1.0))
}

/// The share of pages on topic, in percent, between consecutive samples; a point needs at least 20
/// pages.
fn harvest(samples: &[Sample]) -> Vec<(f64, f64)> {
    const LEAST: f64 = 20.0;
    let mut points = Vec::new();
    let (mut scored, mut on_topic) = (0.0, 0.0);
    for sample in samples.iter().filter(|sample| sample.topic.is_some()) {
        let now = sample.counter("scored").zip(sample.counter("on_topic"));
        if let Some((n, fitting)) = now.filter(|(n, _)| *n >= scored + LEAST) {
            points.push((sample.seconds, 100.0 * (fitting - on_topic) / (n - scored)));
            (scored, on_topic) = (n, fitting);
        }
    }
    points
}

/// The pages up to date by time since the last visit, and the pages by change rate.
fn freshness_plots(last: &Sample) -> Vec<Markup> {
    let ages = last.fresh_by_age.iter().take(MAX_ROWS);
    let ages = ages.map(|&(days, n, fresh)| (class(days), share_of(n, fresh), fresh));
    let rates = last.pages_by_rate.iter().take(MAX_ROWS);
    let rates = rates.map(|&(rate, n)| (class(rate), Count(n).to_string(), n as f64));
    let plots: [(&str, Vec<Bar>, f64); 2] = [
        (
            "Pages up to date by days since the last visit (estimate)",
            ages.collect(),
            1.0,
        ),
        ("Pages by changes per day (estimate)", rates.collect(), 0.0),
    ];
    let plots = plots.into_iter().filter(|(_, bars, _)| !bars.is_empty());
    plots
        .map(|(title, bars, full)| bar_plot(title, &bars, full))
        .collect()
}

/// The label of a class of pages.
fn class(bound: Option<f64>) -> String {
    bound.map_or_else(|| "more".to_owned(), |bound| format!("≤ {bound}"))
}

/// A share of `n` pages, or a dash if there are none.
fn share_of(n: u64, share: f64) -> String {
    match n {
        0 => "–".to_owned(),
        _ => percent(share),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// The upper bound of a class of pages.
fn bound(bound: Option<f64>) -> String {
    bound.map_or_else(|| "more".to_owned(), |bound| bound.to_string())
}

/// A number of any magnitude, with at least three digits.
fn figure(value: f64) -> String {
    match value.abs() {
        0.0 | 0.01.. => format!("{value:.3}"),
        _ => format!("{value:.1e}"),
    }
}

/// The growth of a counter per second, between consecutive samples.
fn rates(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut rates = Vec::new();
    let Some(&(mut last)) = points.first() else {
        return rates;
    };
    for &point in points {
        let elapsed = point.0 - last.0;
        if elapsed >= MIN_SECONDS {
            rates.push((point.0, ((point.1 - last.1) / elapsed).max(0.0)));
            last = point;
        }
    }
    rates
}

fn sums(a: &[(f64, f64)], b: &[(f64, f64)]) -> Vec<(f64, f64)> {
    a.iter().zip(b).map(|(a, b)| (a.0, a.1 + b.1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_over_no_time_are_left_out() {
        let points = [(1.0, 100.0), (2.0, 150.0), (3.0, 140.0), (3.003, 142.0)];
        assert_eq!(rates(&points), [(2.0, 50.0), (3.0, 0.0)]);
        assert_eq!(rates(&[]), []);
    }

    #[test]
    fn figures_of_any_size() {
        let shown = [0.0, 1.0, 0.25, 12_345.678, 0.000_123, f64::NAN].map(figure);
        assert_eq!(
            shown,
            ["0.000", "1.000", "0.250", "12345.678", "1.2e-4", "NaN"]
        );
    }

    #[test]
    fn issue_27_the_harvest_is_a_curve() {
        let sample = |seconds, scored: u64, on_topic: u64| Sample {
            seconds,
            topic: Some(Topic::default()),
            counters: [("scored", scored), ("on_topic", on_topic)]
                .map(|(name, n)| (name.to_owned(), n.into()))
                .into(),
            ..Sample::default()
        };
        let samples = [
            sample(1.0, 40, 10),
            sample(2.0, 50, 20),
            sample(3.0, 80, 40),
        ];
        assert_eq!(harvest(&samples), [(1.0, 25.0), (3.0, 75.0)]);
        assert_eq!(harvest_rate(&samples[2]), Some(0.5));
        assert_eq!(harvest(&[Sample::default()]), []);
    }

    #[test]
    fn torn_and_senseless_lines_are_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        assert!(samples(folder.path()).is_err());
        let line = |i: usize| format!("{{\"seconds\": {i}, \"pages\": {}}}\n", 10 * i);
        let mut text: String = (0..5000).map(line).collect();
        text.push_str("nonsense\n[]\n{\"seconds\": 5000, \"pages\": 7, \"statu");
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let samples = samples(folder.path()).unwrap();
        assert!(samples.len() <= MAX_SAMPLES + 1);
        assert_eq!(samples.last().unwrap().seconds, 4999.0);
        assert!(samples.is_sorted_by(|a, b| a.seconds < b.seconds));
        assert_eq!(rates(&[(0.0, 0.0), (2.0, 10.0), (2.0, 11.0)]), [(2.0, 5.0)]);
    }
}
