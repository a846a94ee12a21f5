//! The page of a pair: two documents side by side.

use std::fmt::Write as _;

use arose::compare::{Comparison, Profiler};
use arose::token::Tokenizer;
use arose_dedup::report::diff::Bounds;
use arose_dedup::report::html::{Count, bytes};
use arose_dedup::report::side_by_side::{Showing, numbered_rows};
use arose_dedup::results::documents::site_of;
use arose_dedup::results::{Detail, Pair, ReadText, Repeated, details, pairs, texts};
use askama::Template;
use axum::extract::{Query, State};
use axum::response::{Html, IntoResponse, Response};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::clusters::{rule_in_words, similarity};
use crate::html::{Markup, address, name, render, shown};
use crate::lanes::{Lane, work};
use crate::nav::{Nav, Tab};
use crate::site::{Run, Shared, View};

/// Differences with few words around them, so that a long document is split into several rows.
const BOUNDS: Bounds = Bounds {
    context: 15,
    ..Bounds::PAGE
};

/// A pair has steps if it has more marks than this, or several rows.
const MAX_AT_ONCE: usize = 8;

/// Maximum bytes shown of a text.
const MAX_SHOWN: usize = 256 << 10;

/// The two requested documents.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ask {
    pub(crate) a: String,
    pub(crate) b: String,
}

/// Two documents with all their data.
pub(crate) struct Two {
    pub(crate) docs: [u64; 2],
    pub(crate) details: [Detail; 2],
    pub(crate) texts: [ReadText; 2],
    /// The entry of the run for them, if there is one.
    pub(crate) pair: Option<Pair>,
}

impl Two {
    /// Looks up two documents.
    pub(crate) fn find(run: &Run, a: &str, b: &str) -> Result<Self, Refusal> {
        let number = |text: &str| {
            text.trim().parse::<u64>().map_err(|_| {
                Refusal::bad_request(
                    "A pair is named by the numbers of its documents: /pair?a=1&b=2.",
                )
            })
        };
        Self::of(run, number(a)?, number(b)?)
    }

    pub(crate) fn of(run: &Run, a: u64, b: u64) -> Result<Self, Refusal> {
        let docs = [a.min(b), a.max(b)];
        let mut asked = docs.to_vec();
        asked.dedup();
        let found = details(&run.documents, &asked)?;
        let [Some(first), Some(second)] = docs.map(|doc| found.get(&doc).cloned()) else {
            return Err(Refusal::not_found(format!(
                "The run has {} documents, numbered from 0.",
                Count(run.summary.counts.read)
            )));
        };
        let read = texts(&found, &run.directory, &run.summary.reading());
        let texts = docs.map(|doc| {
            let text = read.get(&doc).cloned();
            text.unwrap_or(Err("Its position in the source is not known."))
        });
        let pair = match docs[0] == docs[1] {
            true => None,
            false => pairs::find(&run.pairs, docs[0], docs[1])?,
        };
        Ok(Self {
            docs,
            details: [first, second],
            texts,
            pair,
        })
    }

    /// All scores, computed from the texts.
    pub(crate) fn compare(&self, run: &Run) -> Option<Comparison> {
        let [Ok(a), Ok(b)] = &self.texts else {
            return None;
        };
        let profiler = Profiler::new(run.summary.shingle_length());
        Some(profiler.compare(&profiler.profile(a), &profiler.profile(b)))
    }

    /// The rows of a table with the differences, and their number. Each row has a number, and
    /// differences near each other share a row. Frames are marked if the repeated text of the sites
    /// is known.
    pub(crate) fn differences(&self, run: &Run, repeated: Option<&Repeated>) -> (Markup, usize) {
        let (mut table, mut n_differences) = (String::new(), 0);
        match &self.texts {
            [Ok(a), Ok(b)] => {
                let urls = [0, 1].map(|side| self.details[side].url.as_deref());
                let showing = Showing {
                    tokenizer: Tokenizer {
                        case: run.summary.case(),
                    },
                    bounds: BOUNDS,
                    frames: repeated.map(|repeated| (repeated, urls)),
                };
                n_differences =
                    numbered_rows(&mut table, [a, b], showing).expect("memory can be written to");
            }
            both => {
                table.push_str("<tr>");
                for text in both {
                    let what = match text {
                        Ok(_) => "This text can be read, the other cannot.",
                        Err(why) => why,
                    };
                    write!(table, "<td class=\"gap\">{what}</td>")
                        .expect("memory can be written to");
                }
                table.push_str("</tr>");
            }
        }
        (Markup(table), n_differences)
    }

    /// The text that the sites of the two documents repeat, under the policy `content`.
    fn repeated(&self, run: &Run) -> Result<Option<Repeated>, Refusal> {
        let readable = self.details.iter().zip(&self.texts);
        let readable = readable.filter_map(|(detail, text)| {
            let text = text.as_deref().ok()?;
            Some((detail.url.as_deref(), text))
        });
        let out = run.documents.parent().unwrap_or(&run.documents);
        Ok(Repeated::read(out, &run.summary, readable)?)
    }

    /// Whether the two documents are from the same site.
    pub(crate) fn sites(&self) -> &'static str {
        let [a, b] = [&self.details[0], &self.details[1]]
            .map(|detail| detail.url.as_deref().and_then(site_of));
        match (a, b) {
            (Some(a), Some(b)) if a == b => "same site",
            (Some(_), Some(_)) => "different sites",
            _ => "site unknown",
        }
    }
}

/// Whether a table of differences has links from one difference to the next.
pub(crate) fn has_hops(differences: &Markup, n_rows: usize) -> bool {
    n_rows > 1 || differences.0.matches("<mark>").count() > MAX_AT_ONCE
}

/// A document as the head of a column.
pub(crate) struct Side {
    pub(crate) doc: u64,
    pub(crate) name: Markup,
    pub(crate) address: Markup,
    pub(crate) n_tokens: Count,
    pub(crate) kept: bool,
    pub(crate) source: Markup,
    pub(crate) text: Markup,
    pub(crate) size: String,
    pub(crate) is_cut: bool,
}

impl Side {
    pub(crate) fn new(two: &Two, side: usize) -> Self {
        let detail = &two.details[side];
        let text = two.texts[side].as_deref().unwrap_or_default();
        let end = text.floor_char_boundary(MAX_SHOWN);
        Self {
            doc: two.docs[side],
            name: name(&detail.id),
            address: detail.url.as_deref().map(address).unwrap_or_default(),
            n_tokens: Count(detail.n_tokens.into()),
            kept: detail.kept,
            source: name(&detail.source),
            text: shown(&text[..end]),
            size: bytes(text.len() as u64),
            is_cut: end < text.len(),
        }
    }
}

/// A score: as recorded by the run, and as computed now.
struct Score {
    name: &'static str,
    recorded: String,
    recomputed: String,
    note: String,
}

#[derive(Template)]
#[template(path = "pair.html")]
struct Page {
    nav: Nav,
    sides: [Side; 2],
    cluster: Option<u64>,
    rule: &'static str,
    sites: &'static str,
    scores: Vec<Score>,
    differences: Markup,
    has_hops: bool,
    /// Whether frames are marked.
    has_frames: bool,
    turn: Option<Turn>,
}

/// Links to the other pairs of the same cluster.
struct Turn {
    number: usize,
    n_pairs: usize,
    before: Option<String>,
    after: Option<String>,
}

impl Turn {
    /// None unless the pair is the kept document of a cluster and a document dropped for it.
    fn of(run: &Run, docs: [u64; 2], cluster: u64) -> Option<Self> {
        let cluster = run.catalog.get(cluster)?;
        let other = match docs {
            [a, b] if a == cluster.id => b,
            [a, b] if b == cluster.id => a,
            _ => return None,
        };
        let members = run
            .catalog
            .members(cluster)
            .iter()
            .map(|&doc| u64::from(doc));
        let dropped: Vec<u64> = members.filter(|&doc| doc != cluster.id).collect();
        let at = dropped.iter().position(|&doc| doc == other)?;
        let address = |doc: &u64| format!("/pair?a={}&b={doc}", cluster.id);
        Some(Self {
            number: at + 1,
            n_pairs: dropped.len(),
            before: at
                .checked_sub(1)
                .and_then(|at| dropped.get(at))
                .map(address),
            after: dropped.get(at + 1).map(address),
        })
    }
}

pub(crate) async fn page(
    State(site): State<Shared>,
    Query(ask): Query<Ask>,
) -> Result<Response, Refusal> {
    let page = work(&site, Lane::Heavy, move |view, _| {
        let run = view.run()?;
        let two = Two::find(run, &ask.a, &ask.b)?;
        let repeated = two.repeated(run)?;
        Ok(render(&page_of(view, run, &two, repeated.as_ref())))
    })
    .await?;
    Ok(Html(page).into_response())
}

fn page_of(view: &View, run: &Run, two: &Two, repeated: Option<&Repeated>) -> Page {
    let (differences, n_differences) = two.differences(run, repeated);
    let cluster = two.details[1].cluster;
    let shares = two.details[0].cluster == cluster;
    Page {
        nav: Nav::new(view, Tab::Clusters),
        sides: [Side::new(two, 0), Side::new(two, 1)],
        cluster: run
            .catalog
            .get(cluster)
            .filter(|_| shares)
            .map(|cluster| cluster.id),
        rule: match &two.pair {
            Some(pair) => rule_in_words(Some(&pair.rule)),
            None if two.details[0].digest == two.details[1].digest => "exact duplicate",
            None => "the run does not list this pair",
        },
        sites: two.sites(),
        scores: scores(two, two.compare(run).as_ref(), run),
        has_hops: has_hops(&differences, n_differences),
        differences,
        has_frames: repeated.is_some(),
        turn: Turn::of(run, two.docs, cluster).filter(|_| shares),
    }
}

fn scores(two: &Two, now: Option<&Comparison>, run: &Run) -> Vec<Score> {
    let pair = two.pair.as_ref();
    let whole = |n: Option<u32>, of: u32| n.map_or("–".to_owned(), |n| format!("{n} of {of}"));
    let w = run.summary.shingle_length();
    let shingles = now.map_or(String::new(), |now| {
        let (common, union) = (Count(now.n_common as u64), Count(now.n_union as u64));
        format!("{common} of {union} distinct shingles of {w} tokens shared")
    });
    let content = pair.and_then(|pair| pair.content);
    let by_content = content.map(|[weighted, unweighted]| {
        [
            Score {
                name: "Content",
                recorded: similarity(Some(weighted)),
                recomputed: "–".to_owned(),
                note: "own text that both have in the same order".to_owned(),
            },
            Score {
                name: "Content, unweighted",
                recorded: similarity(Some(unweighted)),
                recomputed: similarity(now.map(|now| now.content.u)),
                note: "all text that both have in the same order".to_owned(),
            },
        ]
    });
    let others = vec![
        Score {
            name: "Jaccard similarity",
            recorded: similarity(pair.and_then(|pair| pair.jaccard)),
            recomputed: similarity(now.and_then(|now| now.jaccard)),
            note: shingles,
        },
        Score {
            name: "Containment of the first in the second",
            recorded: "–".to_owned(),
            recomputed: similarity(now.and_then(|now| now.containment[0])),
            note: String::new(),
        },
        Score {
            name: "Containment of the second in the first",
            recorded: "–".to_owned(),
            recomputed: similarity(now.and_then(|now| now.containment[1])),
            note: String::new(),
        },
        Score {
            name: "B-sim",
            recorded: whole(pair.and_then(|pair| pair.b_sim), 6),
            recomputed: whole(now.map(|now| now.b_sim), 6),
            note: "matching super-shingles".to_owned(),
        },
        Score {
            name: "C-sim",
            recorded: whole(pair.and_then(|pair| pair.c_sim), 384),
            recomputed: whole(now.and_then(|now| now.c_sim), 384),
            note: now
                .and_then(|now| now.cosine_estimate)
                .map_or(String::new(), |cosine| {
                    format!("matching simhash bits; cosine about {cosine:.3}")
                }),
        },
    ];
    by_content.into_iter().flatten().chain(others).collect()
}
