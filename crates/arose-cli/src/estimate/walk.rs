//! `arose estimate walk`: shares of the pages that links reach.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use arose_corpus::Config as Reading;
use arose_estimate::coverage::DrawnPage;
use arose_estimate::graph::{self, Form, Graph};
use arose_estimate::walk::{self, Direction, Measure, Settings};
use clap::ValueEnum;

use super::live::{self, Live};
use super::shown::show;
use crate::read::Outcome;

/// In-degrees at which `--measure in` looks at their distribution, out-degrees likewise.
const DEGREES: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];

/// Walks along links, with a jump now and then, and corrects for popular pages.
///
/// The links are those of a crawl, of a file, or, with --live, of the web itself. Several walks
/// begin at seeds; how far they agree is told. Where the whole graph is known, the truth over all
/// pages that can be reached stands beside each figure.
///
/// A live walk fetches each page once, as politely as `arose crawl`: robots.txt is obeyed, a host
/// is asked one thing at a time, with a pause. --log keeps what it met, and the same command goes
/// on with it. --draw writes a uniform sample of pages, with their texts,
/// for `arose estimate coverage`. In-links cannot be measured live: those from pages not visited
/// are unknown.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose estimate walk crawl --measure in:5
  arose estimate walk links.txt.zst --form gaps --steps 16000000 --measure in
  arose estimate walk edges.tsv --form edges --both-ways
  arose estimate walk https://example.org/ --live --contact https://me.example/bot \\
    --domain example.org --budget 5000 --log walk.jsonl --measure out:20 --measure name:/blog/

Measures:
  in:N, out:N  the share of pages with N in-links or links at least
  in, out      the distribution: shares for 1, 2, 5, 10, 20, 50 and 100
  name:PART    the share of pages with PART in the address

Forms of a file, plain or compressed by zstd or gzip:
  edges      two names a line, a page and one it links to
  adjacency  line i holds the numbers of the pages that page i links to
  gaps       the same, each number but the first as its difference to the last")]
pub(crate) struct Options {
    /// A crawl or archives; files of links, with --form; or URLs to start from, with --live.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// How a file of links is written.
    #[arg(long, value_enum, conflicts_with = "live")]
    form: Option<FormName>,
    /// Walks; five at least.
    #[arg(long, value_name = "N", default_value_t = 5)]
    walks: usize,
    /// Steps of each walk.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    steps: usize,
    /// Where walks begin: names or numbers of pages; random pages if not given.
    #[arg(long, value_name = "PAGE", conflicts_with = "live")]
    from: Vec<String>,
    /// What is measured; in:5, or out:20 with --live, if not given.
    #[arg(long, value_name = "WHAT", value_parser = measures)]
    measure: Vec<Measures>,
    /// Write pages drawn by one over their PageRank to this file, as JSON Lines.
    #[arg(long, value_name = "FILE")]
    draw: Option<PathBuf>,
    /// Number of pages to draw.
    #[arg(long, value_name = "N", default_value_t = 400, requires = "draw")]
    draws: usize,
    /// Follows links backwards as well, without jumps.
    #[arg(long, conflicts_with = "live")]
    both_ways: bool,
    /// The seed of all choices.
    #[arg(long, value_name = "K", default_value_t = 1)]
    seed: u64,
    /// Prints one JSON object.
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

/// One measure, or those of a distribution.
#[derive(Debug, Clone)]
struct Measures(Vec<Measure>);

fn measures(text: &str) -> Result<Measures, String> {
    let number = |n: &str| {
        n.parse()
            .map_err(|_| format!("`{n}` is no number of links"))
    };
    let one = match text.split_once(':') {
        None if text == "in" => return Ok(Measures(DEGREES.map(Measure::InDegree).to_vec())),
        None if text == "out" => return Ok(Measures(DEGREES.map(Measure::OutDegree).to_vec())),
        Some(("in", n)) => number(n).map(Measure::InDegree)?,
        Some(("out", n)) => number(n).map(Measure::OutDegree)?,
        Some(("name", part)) if !part.is_empty() => Measure::Name(part.to_owned()),
        _ => return Err("write in, in:N, out, out:N or name:PART".to_owned()),
    };
    Ok(Measures(vec![one]))
}

impl Options {
    fn n_drawn(&self) -> usize {
        self.draw.as_ref().map_or(0, |_| self.draws)
    }

    fn measures(&self, otherwise: Measure) -> Vec<Measure> {
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
            measures: options.measures(Measure::OutDegree(20)),
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
                "{} is a URL; --live walks on the web itself",
                crate::input::name(&options.paths[0])
            );
            paths = crate::crawl::expand(&paths)?;
            Graph::of_pages(&paths, Reading::default())?
        }
        Some(form) => {
            ensure!(options.paths.len() == 1, "name one file of links");
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
        found.with_context(|| format!("there is no page {}", crate::output::printable(name)))
    });
    let settings = Settings {
        n_walks: options.walks,
        n_steps: options.steps,
        seeds: seeds.collect::<anyhow::Result<_>>()?,
        measures: options.measures(Measure::InDegree(5)),
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

/// Writes drawn pages: URL, text and the walk that drew each.
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
