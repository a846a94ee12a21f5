//! `arose search`: finds documents by their words, near duplicates as one.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use anyhow::Context;
use arose_search::{
    Collapse, Config, Folder, Fragment, Hit, Index, Order, Progress, Query, Request, Results,
    Updated,
};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::output::{printable, watch, write_json};
use crate::read::Outcome;

/// Searches what `arose dedup` or `arose crawl` has written, near duplicates collapsed.
///
/// The index is made when a folder is searched for the first time, and brought up to date when the
/// folder has changed; it is in the folder itself.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  arose search out 'red rose'
  arose search out '\"a rose is a rose\" -thorn site:example.org'
  arose search out 'title:roses (white OR red)' --sort newest --limit 20
  arose search out rose --json --no-collapse

Queries:
  red rose            both words              red OR rose     one of them
  \"red rose\"          one after the other     rose -thorn     without the other; also NOT
  (a OR b) c          brackets
  site:example.org    of a host or domain     lang:en         in a language
  title:rose          in the title            url:rose        in the address

Exit code 0 means found, 1 nothing found, 2 an error.")]
pub(crate) struct Options {
    /// The output folder of `arose dedup`, or a folder of web archives.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// What to look for; several words may be given as several arguments.
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    /// Results to show.
    #[arg(short, long, value_name = "N", default_value_t = 10)]
    limit: usize,
    /// Results to pass over.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: usize,
    /// How results are ranked.
    #[arg(long, value_enum, default_value_t = Sort::Score)]
    sort: Sort,
    /// Shows every document that matches, near duplicates as well.
    #[arg(long)]
    no_collapse: bool,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    /// Removes the index and makes it anew.
    #[arg(long)]
    rebuild: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sort {
    /// Those that match best first.
    Score,
    /// Those fetched last first.
    Newest,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Outcome> {
    let query: Query = options.query.join(" ").parse()?;
    let request = Request {
        offset: options.offset,
        limit: options.limit,
        order: match options.sort {
            Sort::Score => Order::Score,
            Sort::Newest => Order::Newest,
        },
        collapse: match options.no_collapse {
            false => Collapse::ByCluster,
            true => Collapse::Nothing,
        },
        cluster: None,
    };
    let index = index(&Folder::open(&options.folder)?, options.rebuild)?;
    let results = index.search(&query, &request)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let written = match options.json {
        true => write_json(&mut out, &as_json(&results)),
        false => write_text(&mut out, &results, options.offset),
    };
    written
        .and_then(|()| out.flush())
        .context("cannot write the result")?;
    Ok(match results.n_documents {
        0 => Outcome::NothingFound,
        _ => Outcome::Found,
    })
}

/// The index of a folder, up to date; what is done for that is told on standard error.
pub(crate) fn index(folder: &Folder, rebuild: bool) -> anyhow::Result<Index> {
    if rebuild {
        arose_search::remove(folder)?;
    }
    let progress = Progress::default();
    let updated = watch(line_of(&progress), || {
        arose_search::update(folder, &Config::default(), &progress)
    })?;
    tell(&updated);
    Ok(Index::open(folder)?)
}

fn tell(updated: &Updated) {
    if updated.n_added + updated.n_removed > 0 {
        eprintln!(
            "arose: {} documents in the index, {} added, {} removed",
            updated.n_documents, updated.n_added, updated.n_removed
        );
    }
    for file in &updated.incomplete {
        eprintln!(
            "arose: {}; only part of it is in the search index",
            printable(file)
        );
    }
    if updated.n_without_text > 0 {
        eprintln!(
            "arose: the sources of {} documents have gone or changed: these are found by address \
             only; put the files back, or run `arose dedup` again",
            updated.n_without_text
        );
    }
}

/// Says how much is indexed, and at which rate.
fn line_of(progress: &Progress) -> impl FnMut() -> String + Send {
    let begin = Instant::now();
    move || {
        let n = progress.n_documents.load(Relaxed);
        let megabytes = progress.text_bytes.load(Relaxed) as f64 / 1e6;
        let rate = megabytes / begin.elapsed().as_secs_f64().max(0.001);
        format!("indexing: {n} documents, {megabytes:.0} MB, {rate:.1} MB a second")
    }
}

fn plural(n: u64) -> &'static str {
    match n {
        1 => "",
        _ => "s",
    }
}

fn write_text(out: &mut impl Write, results: &Results, offset: usize) -> io::Result<()> {
    let (n_documents, n_results) = (results.n_documents, results.n_results);
    write!(out, "{n_documents} document{}", plural(n_documents))?;
    if n_documents != n_results {
        write!(out, " in {n_results} result{}", plural(n_results))?;
    }
    writeln!(out)?;
    for (number, hit) in (offset + 1..).zip(&results.hits) {
        write_hit(out, number, hit)?;
    }
    Ok(())
}

fn write_hit(out: &mut impl Write, number: usize, hit: &Hit) -> io::Result<()> {
    let address = hit.url.as_ref().unwrap_or(&hit.id);
    let name = hit.title.as_deref().filter(|title| !title.is_empty());
    let score = hit
        .score
        .map_or(String::new(), |score| format!("  {score:.2}"));
    writeln!(
        out,
        "\n{number:>3}  {}{score}",
        printable(name.unwrap_or(address))
    )?;
    if name.is_some() {
        writeln!(out, "     {}", printable(address))?;
    }
    let words: String = hit.snippet.iter().map(|fragment| &*fragment.text).collect();
    if !words.is_empty() {
        writeln!(out, "     {}", printable(words.trim()))?;
    }
    match hit.n_alike {
        0 => Ok(()),
        1 => writeln!(out, "     and 1 near duplicate"),
        n => writeln!(out, "     and {n} near duplicates"),
    }
}

fn as_json(results: &Results) -> Value {
    let hits: Vec<Value> = results.hits.iter().map(hit_as_json).collect();
    json!({ "documents": results.n_documents, "results": results.n_results, "hits": hits })
}

fn hit_as_json(hit: &Hit) -> Value {
    let snippet: Vec<Value> = hit
        .snippet
        .iter()
        .map(|Fragment { text, marked }| json!({ "text": text, "marked": marked }))
        .collect();
    json!({
        "doc": hit.doc,
        "cluster": hit.cluster,
        "alike": hit.n_alike,
        "kept": hit.kept,
        "score": hit.score,
        "id": hit.id,
        "url": hit.url,
        "title": hit.title,
        "language": hit.language,
        "time": hit.time,
        "snippet": snippet,
    })
}
