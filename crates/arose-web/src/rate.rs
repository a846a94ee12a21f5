//! The pages for rating pairs, and the tables of ratings.
//!
//! A rater sees two documents and their differences, but no score. A rating is on disk before the
//! next pair is shown.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use arose::judgement::Verdict;
use arose_dedup::evaluate::ratings::{
    self, By, Level, MAX_RATER, Rating, Row, Tables, WeightedShare,
};
use arose_dedup::report::html::{Count, counted};
use askama::Template;
use axum::Form;
use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::html::{Markup, in_address, name, render};
use crate::lanes::{Lane, work};
use crate::nav::{Nav, Tab};
use crate::pair::{Side, Two, has_hops};
use crate::sample::Chosen;
use crate::site::{Run, Shared, View};

/// The rater and the sample.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    rater: String,
    by: String,
    /// The pair to show, if it is not the next one.
    a: String,
    b: String,
}

#[derive(Template)]
#[template(path = "rate.html")]
struct Page {
    nav: Nav,
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
    has_hops: bool,
}

pub(crate) async fn page(
    State(site): State<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let page = work(&site, Lane::Heavy, move |view, _| {
        Ok(render(&page_of(view, &ask)?))
    })
    .await?;
    Ok(Html(page).into_response())
}

fn page_of(view: &View, ask: &Ask) -> Result<Page, Refusal> {
    let run = view.run()?;
    let by = By::parse(&ask.by);
    let chosen = run.sample.pairs(by);
    let lines = run.ratings.lines();
    let rater = rater(&ask.rater);
    let rated = rated_by(&lines, &rater, by);
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
            // Raters rate the texts, not the decision of the policy.
            let (differences, n_differences) = two.differences(run, None);
            Some(PairToRate {
                sides: [Side::new(&two, 0), Side::new(&two, 1)],
                has_hops: has_hops(&differences, n_differences),
                differences,
            })
        }
        None => None,
    };
    let raters: BTreeSet<&str> = lines.iter().map(|line| &*line.rater).collect();
    Ok(Page {
        nav: Nav::new(view, Tab::Rate),
        by: by.as_str(),
        n_pairs: chosen.len(),
        n_rated: chosen.iter().filter(is_rated).count(),
        pair,
        can_undo: last_of(&lines, &rater, by).is_some(),
        raters: raters.into_iter().map(name).collect(),
        rater,
    })
}

/// The name of a rater as stored: trimmed, without control characters, not too long.
fn rater(text: &str) -> String {
    let text = text.trim().chars().filter(|c| !c.is_control());
    text.take(MAX_RATER).collect()
}

/// The pairs of a sample that a rater has rated. A pair in both samples is rated in both, because a
/// rating counts for the sample of the pair.
fn rated_by(lines: &[Rating], rater: &str, by: By) -> BTreeSet<(u64, u64)> {
    let drawn = lines.iter().filter(|line| line.drawn_by == Some(by));
    let pairs = ratings::current(drawn).into_iter();
    pairs
        .filter(|(_, raters)| raters.contains_key(rater))
        .map(|(pair, _)| pair)
        .collect()
}

/// The last rating of a rater in a sample that was not undone.
fn last_of<'a>(lines: &'a [Rating], rater: &str, by: By) -> Option<&'a Rating> {
    let rated = rated_by(lines, rater, by);
    let mut said = lines
        .iter()
        .rev()
        .filter(|line| line.rater == rater && line.verdict.is_some() && line.drawn_by == Some(by));
    said.find(|line| rated.contains(&(line.a, line.b)))
}

/// A submitted rating.
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
    let next = work(&site, Lane::Light, move |view, _| {
        let run = view.run()?;
        let verdict: Verdict = said
            .verdict
            .parse()
            .map_err(|error: arose::Error| Refusal::bad_request(error.to_string()))?;
        let rater = rater(&said.rater);
        let by = By::parse(&said.by);
        let mut all = run.sample.pairs(by).iter();
        let chosen = all.find(|chosen| (chosen.pair.a, chosen.pair.b) == (said.a, said.b));
        let Some(chosen) = chosen.filter(|_| !rater.is_empty()) else {
            return Err(Refusal::bad_request(
                "This pair is not in the sample to rate, or the rater has no name. If the run was \
                 repeated, reload the page.",
            ));
        };
        run.ratings
            .append(line(run, chosen, &rater, (by, verdict))?)?;
        Ok(address(&rater, by))
    })
    .await?;
    Ok(Redirect::to(&next).into_response())
}

fn line(
    run: &Run,
    chosen: &Chosen,
    rater: &str,
    (by, verdict): (By, Verdict),
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
        drawn_by: Some(by),
        range: Some(Level::of(by, pair.b_sim, pair.c_sim).name()),
        verdict: Some(verdict),
    })
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn address(rater: &str, by: By) -> String {
    format!("/rate?rater={}&by={}", in_address(rater), by.as_str())
}

/// A request to undo.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Undo {
    rater: String,
    by: String,
}

pub(crate) async fn undo(
    State(site): State<Shared>,
    Form(undo): Form<Undo>,
) -> Result<Response, Refusal> {
    let next = work(&site, Lane::Light, move |view, _| {
        let run = view.run()?;
        let (rater, by) = (rater(&undo.rater), By::parse(&undo.by));
        let address = address(&rater, by);
        let lines = run.ratings.lines();
        let Some(last) = last_of(&lines, &rater, by) else {
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
    nav: Nav,
    n_rated: String,
    elsewhere: Option<String>,
    undrawn: Option<String>,
    precision: Option<(String, String)>,
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
    name: &'static str,
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
    let page = work(&site, Lane::Light, |view, _| {
        let run = view.run()?;
        let tables = run.ratings.tables(&run.sample.population);
        Ok(render(&tables_page(view, &tables)))
    })
    .await?;
    Ok(Html(page).into_response())
}

fn tables_page(view: &View, tables: &Tables) -> TablesPage {
    let shown = |rows: &[Row]| -> Vec<RowShown> {
        let mut shown: Vec<RowShown> = rows.iter().map(row_shown).collect();
        if let Some(all) = shown.first_mut() {
            all.is_sum = true;
        }
        shown
    };
    let share = |value: Option<f64>| value.map(|value| format!("{value:.3}"));
    TablesPage {
        nav: Nav::new(view, Tab::Ratings),
        n_rated: counted(tables.all.total(), "pair", "pairs"),
        elsewhere: (tables.n_elsewhere > 0)
            .then(|| counted(tables.n_elsewhere, "rating is", "ratings are")),
        undrawn: (tables.n_undrawn > 0)
            .then(|| counted(tables.n_undrawn, "rated pair does", "rated pairs do")),
        precision: tables.precision().map(|share| {
            let WeightedShare { value, interval } = share;
            (
                format!("{value:.3}"),
                format!("{:.3} to {:.3}", interval.low, interval.high),
            )
        }),
        decided: share(tables.all.precision_of_decided()),
        tables: vec![
            Table {
                title: "By B-sim",
                head: "B-sim",
                rows: shown(&tables.by_b),
            },
            Table {
                title: "By C-sim",
                head: "C-sim",
                rows: shown(&tables.by_c),
            },
            Table {
                title: "By site",
                head: "Sites",
                rows: shown(&tables.by_sites),
            },
        ],
        raters: tables
            .raters
            .iter()
            .map(|(rater, tally)| {
                let row = Row::plain(String::new(), None, *tally);
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
        shares: [
            share_shown("Correct", row.shares[0]),
            share_shown("Incorrect", row.shares[1]),
            share_shown("Undecided", row.shares[2]),
        ],
        is_sum: false,
    }
}

fn share_shown(name: &'static str, share: Option<WeightedShare>) -> ShareShown {
    ShareShown {
        name,
        share: share.map_or_else(|| "–".to_owned(), |share| format!("{:.2}", share.value)),
        interval: share.map_or_else(String::new, |share| {
            format!("{:.2}–{:.2}", share.interval.low, share.interval.high)
        }),
    }
}
