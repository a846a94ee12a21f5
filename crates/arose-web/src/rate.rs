//! The pages of rating: one pair after the other, and the tables that come of it.
//!
//! A rater sees two documents and their differences, and no score. What is said goes to the file
//! before the next pair is shown.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use arose::judgement::{Tally, Verdict};
use arose_dedup::evaluate::ratings::{self, MAX_RATER, Rating, Row, Tables};
use arose_dedup::report::html::{Count, counted};
use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::html::{Markup, in_address, name, render};
use crate::pair::{Side, Two};
use crate::sample::{By, Chosen};
use crate::site::{Run, Shared, work};

/// Who rates, and what.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    rater: String,
    by: String,
    /// The pair to show, if not the next.
    a: String,
    b: String,
}

#[derive(Template)]
#[template(path = "rate.html")]
struct Page {
    rater: String,
    by: &'static str,
    n_pairs: usize,
    n_rated: usize,
    pair: Option<PairToRate>,
    can_undo: bool,
    raters: Vec<Markup>,
}

struct PairToRate {
    sides: [Side; 2],
    differences: Markup,
}

pub(crate) async fn page(
    State(site): State<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let page = work(&site, move |site| Ok(render(&page_of(site.run()?, &ask)?))).await?;
    Ok(Html(page).into_response())
}

fn page_of(run: &Run, ask: &Ask) -> Result<Page, Refusal> {
    let by = By::parse(&ask.by);
    let chosen = run.sample.pairs(by);
    let lines = run.ratings.lines();
    let rater = rater(&ask.rater);
    let rated = rated_by(&lines, &rater);
    let is_rated = |chosen: &&Chosen| rated.contains(&(chosen.pair.a, chosen.pair.b));
    let asked = (ask.a.parse().ok()).zip(ask.b.parse().ok());
    let next = match asked {
        Some(asked) => chosen
            .iter()
            .find(|chosen| (chosen.pair.a, chosen.pair.b) == asked),
        None => chosen.iter().find(|chosen| !is_rated(chosen)),
    };
    let pair = match next.filter(|_| !rater.is_empty()) {
        Some(chosen) => {
            let two = Two::of(run, chosen.pair.a, chosen.pair.b)?;
            Some(PairToRate {
                sides: [Side::new(&two, 0), Side::new(&two, 1)],
                differences: two.differences(run),
            })
        }
        None => None,
    };
    let raters: BTreeSet<&str> = lines.iter().map(|line| &*line.rater).collect();
    Ok(Page {
        by: by.as_str(),
        n_pairs: chosen.len(),
        n_rated: chosen.iter().filter(is_rated).count(),
        pair,
        can_undo: last_of(&lines, &rater).is_some(),
        raters: raters.into_iter().map(name).collect(),
        rater,
    })
}

/// A rater's name as it is kept: no blanks around, no controls, not too long.
fn rater(text: &str) -> String {
    let text = text.trim().chars().filter(|c| !c.is_control());
    text.take(MAX_RATER).collect()
}

fn rated_by(lines: &[Rating], rater: &str) -> BTreeSet<(u64, u64)> {
    let pairs = ratings::current(lines).into_iter();
    pairs
        .filter(|(_, raters)| raters.contains_key(rater))
        .map(|(pair, _)| pair)
        .collect()
}

/// What a rater said last and has not taken back.
fn last_of<'a>(lines: &'a [Rating], rater: &str) -> Option<&'a Rating> {
    let rated = rated_by(lines, rater);
    let mut said = lines
        .iter()
        .rev()
        .filter(|line| line.rater == rater && line.verdict.is_some());
    said.find(|line| rated.contains(&(line.a, line.b)))
}

/// What a rater says.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Said {
    rater: String,
    by: String,
    a: u64,
    b: u64,
    verdict: String,
}

pub(crate) async fn take(
    State(site): State<Shared>,
    Form(said): Form<Said>,
) -> Result<Response, Refusal> {
    let next = work(&site, move |site| {
        let run = site.run()?;
        let verdict: Verdict = said
            .verdict
            .parse()
            .map_err(|error: arose::Error| Refusal::bad_request(error.to_string()))?;
        let rater = rater(&said.rater);
        let mut all = run.sample.by_b.iter().chain(&run.sample.by_c);
        let chosen = all.find(|chosen| (chosen.pair.a, chosen.pair.b) == (said.a, said.b));
        let Some(chosen) = chosen.filter(|_| !rater.is_empty()) else {
            return Err(Refusal::bad_request(
                "This pair is not among those to be rated, or nobody rates it.",
            ));
        };
        run.ratings
            .append(line(run, chosen, &rater, Some(verdict))?)?;
        Ok(address(&rater, By::parse(&said.by)))
    })
    .await?;
    Ok(Redirect::to(&next).into_response())
}

fn line(
    run: &Run,
    chosen: &Chosen,
    rater: &str,
    verdict: Option<Verdict>,
) -> Result<Rating, Refusal> {
    let Chosen { pair, sites } = chosen;
    let mut docs = arose_dedup::results::details(&run.documents, &[pair.a, pair.b])?;
    let mut names = |doc| {
        let detail = docs.remove(&doc);
        detail.map_or_else(Default::default, |detail| (detail.id, detail.digest))
    };
    let ((id_a, digest_a), (id_b, digest_b)) = (names(pair.a), names(pair.b));
    Ok(Rating {
        time: now(),
        rater: rater.to_owned(),
        a: pair.a,
        b: pair.b,
        id_a,
        id_b,
        digest_a,
        digest_b,
        jaccard: pair.jaccard,
        b_sim: pair.b_sim,
        c_sim: pair.c_sim,
        sites: *sites,
        verdict,
    })
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn address(rater: &str, by: By) -> String {
    format!("/rate?rater={}&by={}", in_address(rater), by.as_str())
}

/// Who takes back.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Undo {
    rater: String,
    by: String,
}

pub(crate) async fn undo(
    State(site): State<Shared>,
    Form(undo): Form<Undo>,
) -> Result<Response, Refusal> {
    let next = work(&site, move |site| {
        let run = site.run()?;
        let rater = rater(&undo.rater);
        let address = address(&rater, By::parse(&undo.by));
        let lines = run.ratings.lines();
        let Some(last) = last_of(&lines, &rater) else {
            return Ok(address);
        };
        run.ratings.append(Rating {
            time: now(),
            verdict: None,
            ..last.clone()
        })?;
        Ok(format!("{address}&a={}&b={}", last.a, last.b))
    })
    .await?;
    Ok(Redirect::to(&next).into_response())
}

#[derive(Template)]
#[template(path = "ratings.html")]
struct TablesPage {
    n_rated: String,
    elsewhere: Option<String>,
    precision: Option<String>,
    decided: Option<String>,
    tables: Vec<Table>,
    raters: Vec<(Markup, RowShown)>,
    agreements: Vec<AgreementShown>,
}

struct Table {
    title: &'static str,
    head: &'static str,
    rows: Vec<RowShown>,
}

struct RowShown {
    name: String,
    n_found: String,
    n_rated: Count,
    shares: [ShareShown; 3],
    is_sum: bool,
}

struct ShareShown {
    share: String,
    interval: String,
}

struct AgreementShown {
    raters: [Markup; 2],
    n_pairs: Count,
    n_agreed: Count,
    kappa: String,
}

pub(crate) async fn tables(State(site): State<Shared>) -> Result<Response, Refusal> {
    let page = work(&site, |site| {
        let run = site.run()?;
        let tables = run.ratings.tables(&run.sample.population);
        Ok(render(&tables_page(&tables)))
    })
    .await?;
    Ok(Html(page).into_response())
}

fn tables_page(tables: &Tables) -> TablesPage {
    let all = Row {
        name: "all".to_owned(),
        n_found: tables.by_b.iter().map(|row| row.n_found).sum(),
        tally: tables.all,
    };
    let with_all = |rows: &[Row]| {
        let mut shown = vec![row_shown(&all)];
        shown[0].is_sum = true;
        shown.extend(rows.iter().map(row_shown));
        shown
    };
    let share = |value: Option<f64>| value.map(|value| format!("{value:.3}"));
    TablesPage {
        n_rated: counted(tables.all.total(), "pair", "pairs"),
        elsewhere: (tables.n_elsewhere > 0)
            .then(|| counted(tables.n_elsewhere, "rating is", "ratings are")),
        precision: share(tables.precision()),
        decided: share(tables.all.precision_of_decided()),
        tables: vec![
            Table {
                title: "By B-sim",
                head: "B-sim",
                rows: with_all(&tables.by_b),
            },
            Table {
                title: "By C-sim",
                head: "C-sim",
                rows: with_all(&tables.by_c),
            },
            Table {
                title: "By site",
                head: "Sites",
                rows: with_all(&tables.by_sites),
            },
        ],
        raters: tables
            .raters
            .iter()
            .map(|(rater, tally)| {
                let row = Row {
                    name: String::new(),
                    n_found: None,
                    tally: *tally,
                };
                (name(rater), row_shown(&row))
            })
            .collect(),
        agreements: tables
            .agreements
            .iter()
            .map(|agreement| AgreementShown {
                raters: [name(&agreement.raters.0), name(&agreement.raters.1)],
                n_pairs: Count(agreement.n_pairs),
                n_agreed: Count(agreement.n_agreed),
                kappa: share(agreement.kappa).unwrap_or_else(|| "–".to_owned()),
            })
            .collect(),
    }
}

fn row_shown(row: &Row) -> RowShown {
    RowShown {
        name: row.name.clone(),
        n_found: row
            .n_found
            .map_or_else(|| "–".to_owned(), |n| Count(n).to_string()),
        n_rated: Count(row.tally.total()),
        shares: Verdict::ALL.map(|verdict| share_shown(&row.tally, verdict)),
        is_sum: false,
    }
}

fn share_shown(tally: &Tally, verdict: Verdict) -> ShareShown {
    let interval = tally.interval(verdict);
    ShareShown {
        share: tally
            .share(verdict)
            .map_or_else(|| "–".to_owned(), |share| format!("{share:.2}")),
        interval: match tally.total() {
            0 => String::new(),
            _ => format!("{:.2}–{:.2}", interval.low, interval.high),
        },
    }
}
