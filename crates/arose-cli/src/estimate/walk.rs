//! `arose estimate walk`: shares of reachable pages, by random walks along links.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use arose_corpus::Config as Reading;
use arose_estimate::coverage::DrawnPage;
use arose_estimate::graph::{self, Form, Graph};
use arose_estimate::walk::{self, Direction, GraphMeasure, WalkSettings};
use clap::ValueEnum;

use super::live::{self, Live};
use super::shown::show;
use crate::read::Outcome;

/// Degrees at which `--measure in` and `--measure out` sample the distribution.
const DEGREES: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];

/// Estimate shares of reachable pages by random walks along links.
///
/// The walks include occasional random jumps, and the estimates are corrected for popular pages.
/// The links come from a crawl, from a file or, with --live, from the web itself. Several walks
/// start from seeds, and their agreement is reported. If the whole graph is known, the true value
/// over all reachable pages is printed next to each estimate.
///
/// A live walk fetches each page once, as politely as `arose crawl`: it obeys robots.txt and sends
/// one request at a time to each host, with a pause. With --log, an interrupted walk resumes when
/// you run the same command again. --draw writes a uniform sample of pages with their texts for
/// `arose estimate coverage`. A live walk cannot measure in-links, because links from unvisited
/// pages are unknown.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate walk crawl --measure in:5
  arose estimate walk links.txt.zst --form gaps --steps 16000000 --measure in
  arose estimate walk edges.tsv --form edges --both-ways
  arose estimate walk https://example.org/ --live --contact https://me.example/bot \\
    --domain example.org --budget 5000 --log walk.jsonl --measure out:20 --measure url:/blog/

Measures:
  in:N, out:N  share of pages with at least N in-links or links
  in, out      distribution: shares for 1, 2, 5, 10, 20, 50 and 100
  url:PART     share of pages with PART in the URL

File formats, uncompressed or compressed with zstd or gzip:
  edges      two names per line: a page and a page it links to
  adjacency  line i lists the numbers of the pages that page i links to
  gaps       the same, with each number except the first as the difference to the previous one")]
pub(crate) struct Options {
    /// Crawl or archives; with --form, a file of links; with --live, URLs to start from
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Format of the file of links
    #[arg(long, value_enum, conflicts_with = "live")]
    form: Option<FormName>,
    /// Number of walks, at least 5
    #[arg(long, value_name = "N", default_value_t = 5)]
    walks: usize,
    /// Steps per walk
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    steps: usize,
    /// Name or number of a page to start from; repeatable [default: random pages]
    #[arg(long, value_name = "PAGE", conflicts_with = "live")]
    from: Vec<String>,
    /// What to measure; repeatable [default: in:5, or out:20 with --live]
    #[arg(long, value_name = "WHAT", value_parser = measures)]
    measure: Vec<Measures>,
    /// Write a sample of pages, weighted by one over their PageRank, to this file as JSON Lines
    #[arg(long, value_name = "FILE")]
    draw: Option<PathBuf>,
    /// Number of pages to sample with --draw
    #[arg(long, value_name = "N", default_value_t = 400, requires = "draw")]
    draws: usize,
    /// Also follow links backwards, without jumps
    #[arg(long, conflicts_with = "live")]
    both_ways: bool,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    live: Live,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FormName {
    Edges,
    Adjacency,
    Gaps,
}

/// One measure, or the measures of a distribution.
#[derive(Debug, Clone)]
struct Measures(Vec<GraphMeasure>);

fn measures(text: &str) -> Result<Measures, String> {
    let number = |n: &str| {
        n.parse()
            .map_err(|_| format!("`{n}` is not a number of links"))
    };
    let one = match text.split_once(':') {
        None if text == "in" => return Ok(Measures(DEGREES.map(GraphMeasure::InDegree).to_vec())),
        None if text == "out" => {
            return Ok(Measures(DEGREES.map(GraphMeasure::OutDegree).to_vec()));
        }
        Some(("in", n)) => number(n).map(GraphMeasure::InDegree)?,
        Some(("out", n)) => number(n).map(GraphMeasure::OutDegree)?,
        Some(("url", part)) if !part.is_empty() => GraphMeasure::Name(part.to_owned()),
        _ => return Err("expected in, in:N, out, out:N or url:PART".to_owned()),
    };
    Ok(Measures(vec![one]))
}

impl Options {
    fn n_drawn(&self) -> usize {
        self.draw.as_ref().map_or(0, |_| self.draws)
    }

    fn measures(&self, otherwise: GraphMeasure) -> Vec<GraphMeasure> {
        match self.measure.is_empty() {
            true => vec![otherwise],
            false => self.measure.iter().flat_map(|one| one.0.clone()).collect(),
        }
    }
}

pub(super) fn run(options: &Options) -> anyhow::Result<Outcome> {
    if options.live.is_wanted() {
        let walk = live::Walk {
            seeds: &options.paths,
            n_walks: options.walks,
            n_steps: options.steps,
            measures: options.measures(GraphMeasure::OutDegree(20)),
            draw: options.draw.as_deref(),
            n_drawn: options.n_drawn(),
            seed: options.seed,
        };
        return show(&[live::run(&options.live, walk)?], options.json);
    }
    let mut paths = options.paths.clone();
    let graph = match options.form {
        None => {
            let is_url = |path: &&PathBuf| path.to_string_lossy().contains("://");
            let url = options.paths.iter().find(is_url);
            ensure!(
                url.is_none(),
                "`{}` is a URL; pass --live to walk on the web",
                crate::input::name(&options.paths[0])
            );
            paths = crate::crawl::expand(&paths)?;
            Graph::of_pages(&paths, Reading::default())?
        }
        Some(form) => {
            ensure!(
                options.paths.len() == 1,
                "--form takes exactly one file of links"
            );
            let form = match form {
                FormName::Edges => Form::Edges,
                FormName::Adjacency => Form::Adjacency,
                FormName::Gaps => Form::Gaps,
            };
            Graph::open(&options.paths[0], form)?
        }
    };
    let seeds = options.from.iter().map(|name| {
        let found = graph.find(name);
        found.with_context(|| format!("no page `{}`", crate::output::printable(name)))
    });
    let settings = WalkSettings {
        n_walks: options.walks,
        n_steps: options.steps,
        seeds: seeds.collect::<anyhow::Result<_>>()?,
        measures: options.measures(GraphMeasure::InDegree(5)),
        direction: match options.both_ways {
            false => Direction::Forwards,
            true => Direction::BothWays,
        },
        n_drawn: options.n_drawn(),
        seed: options.seed,
    };
    let walked = walk::run(&graph, &settings)?;
    if let Some(path) = &options.draw {
        // A file of links has no texts: such pages can be looked up by URL only.
        let texts = match options.form {
            Some(_) => BTreeMap::new(),
            None => {
                let wanted = walked.drawn.iter().map(|(url, _)| url.as_str()).collect();
                graph::texts(&paths, Reading::default(), &wanted)?
            }
        };
        let pages = walked.drawn.into_iter().map(|(url, walk)| {
            let text = texts.get(&url).cloned().unwrap_or_default();
            (url, text, walk)
        });
        write_drawn(path, pages)?;
    }
    show(&[walked.findings], options.json)
}

/// Writes sampled pages: URL, text and the walk that sampled each.
pub(super) fn write_drawn(
    path: &Path,
    pages: impl IntoIterator<Item = (String, String, u32)>,
) -> anyhow::Result<()> {
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        for (url, text, walk) in pages {
            let walk = Some(walk);
            serde_json::to_writer(&mut out, &DrawnPage { url, text, walk })?;
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    write().with_context(|| format!("cannot write `{}`", path.display()))
}
